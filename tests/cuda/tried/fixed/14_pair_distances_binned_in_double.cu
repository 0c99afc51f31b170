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

constexpr int BINS = 256, TILE = 256;  // particles at a time
constexpr float WIDTH = 0.02f, BOX = 10.24f;
struct SingleBin {
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(sqrtf(square) * (1.f / WIDTH)); }
};
// Rewrites: only the root differs.
struct RsqrtBin {  // as rsqrtf is without options
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(square * rsqrtf(square) * (1.f / WIDTH)); }
};
struct ApproxBin {  // what -prec-sqrt=false makes of sqrtf
    __device__ __forceinline__ int operator()(float square) const { float root; asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(square)); return static_cast<int>(root * (1.f / WIDTH)); }
};
struct ApproxFtzBin {  // and with -ftz=true: no scaling of denormal numbers
    __device__ __forceinline__ int operator()(float square) const { float root; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square)); return static_cast<int>(root * (1.f / WIDTH)); }
};
struct RsqrtFtzBin {
    __device__ __forceinline__ int operator()(float square) const { float inverse; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square)); return static_cast<int>(square * inverse * (1.f / WIDTH)); }
};
__device__ __forceinline__ float nearest_image(float d) { return d - BOX * rintf(d * (1.f / BOX)); }

template <typename Bin, int COPIES>
__global__ void __launch_bounds__(TILE) pair_distances(const float *x, const float *y, const float *z, int *counts, int part) {
    __shared__ float4 tile[TILE];
    __shared__ int found[COPIES][BINS];
    Bin bin;
    for (int c = 0; c < COPIES; ++c) found[c][threadIdx.x] = 0;
    int i = blockIdx.x * TILE + threadIdx.x;
    float px = x[i], py = y[i], pz = z[i];
    int *mine = found[threadIdx.x / 32 % COPIES];
    for (int first = blockIdx.y * part; first < (static_cast<int>(blockIdx.y) + 1) * part; first += TILE) {
        __syncthreads();
        tile[threadIdx.x] = {x[first + threadIdx.x], y[first + threadIdx.x], z[first + threadIdx.x], 0.f};
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < TILE; ++k) {
            float dx = nearest_image(px - tile[k].x), dy = nearest_image(py - tile[k].y), dz = nearest_image(pz - tile[k].z);
            float square = dx * dx + dy * dy + dz * dz;
            if (square > 0.f && square < BOX * BOX / 4) atomicAdd(&mine[min(bin(square), BINS - 1)], 1);
        }
    }
    __syncthreads();
    int sum = 0;
    for (int c = 0; c < COPIES; ++c) sum += found[c][threadIdx.x];
    if (sum) atomicAdd(&counts[threadIdx.x], sum);
}

int main() {
    const int n = 1 << 14, part = n / 16;
    float *x = random_floats(n, 0, BOX, 1), *y = random_floats(n, 0, BOX, 2), *z = random_floats(n, 0, BOX, 3);
    int *counts; cudaMalloc(&counts, BINS * sizeof(int));
    const auto zero = [=] { cudaMemsetAsync(counts, 0, BINS * sizeof(int)); };
    const dim3 grid(n / TILE, 16);
    study(14, {{"as_it_is", zero, [=] { pair_distances<SingleBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"rsqrtf", zero, [=] { pair_distances<RsqrtBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"sqrt_approx_as_prec_sqrt_false", zero, [=] { pair_distances<ApproxBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"sqrt_approx_ftz", zero, [=] { pair_distances<ApproxFtzBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"rsqrt_approx_ftz", zero, [=] { pair_distances<RsqrtFtzBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }}}, counts, size_t(BINS));
}
