#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <type_traits>
#include <vector>
#include <cuda_runtime.h>
struct Form { const char *name; std::function<void()> prepare, run; };
// Compares every form with the first, then times all in two turns, with a cold L2.
template <class T> void study(int index, const std::vector<Form> &forms, T *out, size_t count) {
    std::vector<T> reference(count), own(count); std::vector<double> diff;
    for (const Form &f : forms) {
        std::vector<T> &to = diff.empty() ? reference : own;
        cudaMemset(out, 0xff, count * sizeof(T)), f.prepare(), f.run();
        cudaMemcpy(to.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost);
        double most = 0, largest = 0;
        for (size_t i = 0; i < count; ++i) {
            double d = std::abs(double(to[i]) - double(reference[i]));
            most = std::max(most, std::isnan(d) ? double(INFINITY) : d), largest = std::max(largest, std::abs(double(reference[i])));
        }
        diff.push_back(std::is_floating_point<T>::value ? most / largest : most);
        if (cudaError_t e = cudaGetLastError()) fprintf(stderr, "%s: %s\n", f.name, cudaGetErrorString(e)), exit(1);
    }
    cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
    void *flush; cudaMalloc(&flush, 128 << 20);
    for (int turn = 0; turn < 2; ++turn)
        for (size_t f = 0; f < forms.size(); ++f) {
            std::vector<float> t;
            for (int i = 0; i < 60; ++i) {
                forms[f].prepare(), cudaMemsetAsync(flush, i, 128 << 20);
                cudaEventRecord(a), forms[f].run(), cudaEventRecord(b), cudaEventSynchronize(b);
                float ms; cudaEventElapsedTime(&ms, a, b); if (i > 9) t.push_back(ms * 1e3f);
            }
            std::sort(t.begin(), t.end());
            printf("STMT %d %s %.3f %g\n", index, forms[f].name, t[t.size() / 2], diff[f]);
        }
    if (cudaError_t e = cudaGetLastError()) fprintf(stderr, "%s\n", cudaGetErrorString(e)), exit(1);
}
__host__ __device__ __forceinline__ unsigned hash(unsigned x) { x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu; return x ^ (x >> 16); }
__global__ void fill(float *data, size_t count, float low, float high, unsigned seed) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) data[i] = low + (high - low) * (hash(unsigned(i) + seed * 0x9e3779b9u) >> 8) * (1.f / (1 << 24));
}
float *random_floats(size_t count, float low, float high, unsigned seed) {
    float *data; cudaMalloc(&data, count * sizeof(float));
    fill<<<unsigned((count + 255) / 256), 256>>>(data, count, low, high, seed);
    return data;
}

constexpr int BANDS = 224, MINERALS = 8;
struct Sums {
    float with[MINERALS] = {}, own = 0.0f;
    __device__ void add(float value, const float *minerals) {
#pragma unroll
        for (int k = 0; k < MINERALS; k++) with[k] += value * minerals[k];
        own += value * value;
    }
};
__device__ __forceinline__ float angle(float product, float square) { return acosf(fminf(1.0f, product * rsqrtf(square))); }

template <int PIECE>
__global__ void __launch_bounds__(64) spectral_angles(const float *__restrict__ spectra, const float *__restrict__ minerals, float *__restrict__ out, int pixels) {
    extern __shared__ float room[];
    float *library = room, *tile = room + PIECE * MINERALS;
    const int t = threadIdx.x, first = blockIdx.x * 64;
    Sums sums;
    for (int start = 0; start < BANDS; start += PIECE) {
        for (int i = t; i < PIECE * MINERALS; i += 64) library[i] = minerals[start * MINERALS + i];
        for (int i = t; i < PIECE * 64; i += 64) tile[i / PIECE * (PIECE + 1) + i % PIECE] = spectra[static_cast<size_t>(first + i / PIECE) * BANDS + start + i % PIECE];
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < PIECE; i++) sums.add(tile[t * (PIECE + 1) + i], library + i * MINERALS);
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < MINERALS; k++) out[static_cast<size_t>(k) * pixels + first + t] = angle(sums.with[k], sums.own);
}

// Rewrites. LOADS: vectors from global memory, stored as four floats (rows of 33: no conflicts). TILE: rows of 36, and vectors into
// and out of the tile, too. ALL: the library in vectors, too.
enum { LOADS, TILE, ALL };
template <int FORM, int PIECE>
__global__ void __launch_bounds__(64) spectral_angles_vectors(const float *__restrict__ spectra, const float *__restrict__ minerals, float *__restrict__ out, int pixels) {
    constexpr int PITCH = FORM == LOADS ? PIECE + 1 : PIECE + 4, FOURS = PIECE / 4;
    __shared__ __align__(16) float library[PIECE * MINERALS], tile[64 * PITCH];
    const int t = threadIdx.x, first = blockIdx.x * 64;
    Sums sums;
    for (int start = 0; start < BANDS; start += PIECE) {
        if (FORM == ALL) for (int i = t; i < PIECE * MINERALS / 4; i += 64) reinterpret_cast<float4 *>(library)[i] = reinterpret_cast<const float4 *>(minerals + start * MINERALS)[i];
        else for (int i = t; i < PIECE * MINERALS; i += 64) library[i] = minerals[start * MINERALS + i];
        float4 v[FOURS];
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            const int i = j * 64 + t;
            v[j] = *reinterpret_cast<const float4 *>(spectra + static_cast<size_t>(first + i / FOURS) * BANDS + start + i % FOURS * 4);
        }
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            const int i = j * 64 + t;
            float *to = tile + i / FOURS * PITCH + i % FOURS * 4;
            if (FORM == LOADS) to[0] = v[j].x, to[1] = v[j].y, to[2] = v[j].z, to[3] = v[j].w;
            else *reinterpret_cast<float4 *>(to) = v[j];
        }
        __syncthreads();
        if (FORM == LOADS) {
#pragma unroll 8
            for (int i = 0; i < PIECE; i++) sums.add(tile[t * PITCH + i], library + i * MINERALS);
        } else {
#pragma unroll 2
            for (int i = 0; i < PIECE; i += 4) {
                const float4 four = *reinterpret_cast<const float4 *>(tile + t * PITCH + i);
                const float values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int k = 0; k < 4; k++)
                    if (FORM == ALL) {
                        const float4 *m = reinterpret_cast<const float4 *>(library + (i + k) * MINERALS), a = m[0], b = m[1];
                        const float of[MINERALS] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
                        sums.add(values[k], of);
                    } else sums.add(values[k], library + (i + k) * MINERALS);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < MINERALS; k++) out[static_cast<size_t>(k) * pixels + first + t] = angle(sums.with[k], sums.own);
}

int main() {
    const int n = 1 << 18;
    std::vector<float> library(BANDS * MINERALS);
    for (int k = 0; k < MINERALS; k++) {
        float square = 0.0f;
        for (int i = 0; i < BANDS; i++) square += powf(library[i * MINERALS + k] = 0.1f + (hash(k * 1000 + i / 8) % 1000) * 1e-3f, 2.0f);
        for (int i = 0; i < BANDS; i++) library[i * MINERALS + k] /= sqrtf(square);
    }
    float *cube = random_floats(size_t(n) * BANDS, 0.05f, 1.0f, 1), *minerals, *out;
    cudaMalloc(&minerals, library.size() * 4), cudaMalloc(&out, size_t(n) * MINERALS * 4);
    cudaMemcpy(minerals, library.data(), library.size() * 4, cudaMemcpyHostToDevice);
    const size_t room = (32 * MINERALS + 64 * 33) * sizeof(float);
    const auto nothing = [] {};
    study(12, {{"as_it_is", nothing, [=] { spectral_angles<32><<<n / 64, 64, room>>>(cube, minerals, out, n); }},
        {"vector_loads_only", nothing, [=] { spectral_angles_vectors<LOADS, 32><<<n / 64, 64>>>(cube, minerals, out, n); }},
        {"vectors_and_tile", nothing, [=] { spectral_angles_vectors<TILE, 32><<<n / 64, 64>>>(cube, minerals, out, n); }},
        {"vectors_everywhere", nothing, [=] { spectral_angles_vectors<ALL, 32><<<n / 64, 64>>>(cube, minerals, out, n); }}}, out, size_t(n) * MINERALS);
}
