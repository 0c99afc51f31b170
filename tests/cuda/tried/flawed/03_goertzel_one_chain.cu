// Statement 3: goertzel_one_chain, side flawed: the signal in shared memory, loaded once a block.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
constexpr bool RELATIVE = true;  // differences as a share of the largest value
__host__ __device__ __forceinline__ unsigned hash_of(unsigned x) { x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu; return x ^ (x >> 16); }
struct Form { const char *name; std::function<void()> run; };
// Each form against the first (as it is), then two turns of timing. `prepare` is run before each launch, not timed.
template <class T> void judge(int index, const std::vector<Form> &forms, T *out, size_t count, std::function<void()> prepare) {
    std::vector<double> differences;
    std::vector<T> right(count), got(count);
    for (const Form &f : forms) {
        prepare(), f.run(), cudaMemcpy(got.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost);
        if (cudaError_t e = cudaGetLastError()) printf("STMT %d %s failed: %s\n", index, f.name, cudaGetErrorString(e)), exit(1);
        if (&f == &forms[0]) right = got;
        double worst = 0, largest = 0;
        for (size_t i = 0; i < count; ++i) {
            const double d = std::abs(double(got[i]) - double(right[i]));
            if (!(d <= worst)) worst = d == d ? d : INFINITY;  // outputs are poisoned with NaN
            largest = std::max(largest, std::abs(double(right[i])));
        }
        differences.push_back(RELATIVE ? worst / largest : worst);
    }
    void *flush;
    cudaEvent_t a, b;
    cudaMalloc(&flush, 128 << 20), cudaEventCreate(&a), cudaEventCreate(&b);
    for (int turn = 0; turn < 2; ++turn)
        for (size_t f = 0; f < forms.size(); ++f) {
            std::vector<float> t;
            for (int i = 0; i < 60; ++i) {
                float ms;
                prepare(), cudaMemsetAsync(flush, 0, 128 << 20), cudaEventRecord(a), forms[f].run(), cudaEventRecord(b), cudaEventSynchronize(b);
                cudaEventElapsedTime(&ms, a, b);
                if (i > 9) t.push_back(ms * 1e3f);
            }
            std::sort(t.begin(), t.end());
            printf("STMT %d %s %.2f %g\n", index, forms[f].name, t[t.size() / 2], differences[f]);
        }
    if (cudaError_t e = cudaGetLastError()) printf("STMT %d failed: %s\n", index, cudaGetErrorString(e));
}
template <class T> __global__ void fill(T *x, size_t count, unsigned seed) {  // -1 ... 1
    for (size_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) x[i] = T((hash_of(i + seed) >> 8) / 8388608.f - 1.f);
}

__global__ void __launch_bounds__(128) goertzel(const float *__restrict__ x, float *__restrict__ power, int samples) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    float c = 2.f * cosf(0.05f + f * 1.7e-4f), s1 = 0.f, s2 = 0.f;
    for (int i = 0; i < samples; i++) {
        float s = x[i] + c * s1 - s2;
        s2 = s1, s1 = s;
    }
    power[f] = s1 * s1 + s2 * s2 - c * s1 * s2;
}
constexpr int TILE = 4096, FOURS = TILE / 4;  // 16 KiB; samples: a multiple of it

// The same loop, from the tile.
__global__ void __launch_bounds__(128) goertzel_tile(const float *__restrict__ x, float *__restrict__ power, int samples) {
    __shared__ float4 tile[FOURS];
    const float *of_tile = reinterpret_cast<const float *>(tile);
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    float c = 2.f * cosf(0.05f + f * 1.7e-4f), s1 = 0.f, s2 = 0.f;
    for (int first = 0; first < samples; first += TILE) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < FOURS; i += 128) tile[i + threadIdx.x] = reinterpret_cast<const float4 *>(x + first)[i + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < TILE; i++) {
            float s = of_tile[i] + c * s1 - s2;
            s2 = s1, s1 = s;
        }
    }
    power[f] = s1 * s1 + s2 * s2 - c * s1 * s2;
}
__device__ __forceinline__ void four_steps(float4 x, float c, float &s1, float &s2) {
    const float of[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float s = of[k] + c * s1 - s2;
        s2 = s1, s1 = s;
    }
}
// COUNT fours of the tile, read in pairs, each pair while the one before is used. Reads two fours past the end.
template <int COUNT> __device__ __forceinline__ void steps(const float4 *tile, float c, float &s1, float &s2) {
    float4 a = tile[0], b = tile[1];
#pragma unroll 2
    for (int i = 0; i < COUNT; i += 2) {
        const float4 next = tile[i + 2], after = tile[i + 3];
        four_steps(a, c, s1, s2), four_steps(b, c, s1, s2);
        a = next, b = after;
    }
}
__global__ void __launch_bounds__(128) goertzel_tile_fours(const float *__restrict__ x, float *__restrict__ power, int samples) {
    __shared__ float4 tile[FOURS + 2];
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    float c = 2.f * cosf(0.05f + f * 1.7e-4f), s1 = 0.f, s2 = 0.f;
    for (int first = 0; first < samples; first += TILE) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < FOURS; i += 128) tile[i + threadIdx.x] = reinterpret_cast<const float4 *>(x + first)[i + threadIdx.x];
        __syncthreads();
        steps<FOURS>(tile, c, s1, s2);
    }
    power[f] = s1 * s1 + s2 * s2 - c * s1 * s2;
}
// The tile comes in four pieces of 4 KiB; the filters start when the first is there.
__global__ void __launch_bounds__(128) goertzel_tile_pieces(const float *__restrict__ x, float *__restrict__ power, int samples) {
    constexpr int PIECE = FOURS / 4;
    __shared__ float4 tile[FOURS + 2];
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    float s1 = 0.f, s2 = 0.f, c = 0.f;
    for (int first = 0; first < samples; first += TILE) {
        __syncthreads();
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
            for (int i = p * PIECE; i < (p + 1) * PIECE; i += 128) __pipeline_memcpy_async(&tile[i + threadIdx.x], reinterpret_cast<const float4 *>(x + first) + i + threadIdx.x, 16);
            __pipeline_commit();
        }
        if (first == 0) c = 2.f * cosf(0.05f + f * 1.7e-4f);
        __pipeline_wait_prior(3), __syncthreads(), steps<PIECE>(tile, c, s1, s2);
        __pipeline_wait_prior(2), __syncthreads(), steps<PIECE>(tile + PIECE, c, s1, s2);
        __pipeline_wait_prior(1), __syncthreads(), steps<PIECE>(tile + 2 * PIECE, c, s1, s2);
        __pipeline_wait_prior(0), __syncthreads(), steps<PIECE>(tile + 3 * PIECE, c, s1, s2);
    }
    power[f] = s1 * s1 + s2 * s2 - c * s1 * s2;
}
int main() {
    const int filters = 16896, samples = 4096;
    float *x, *power;
    cudaMalloc(&x, 4 * samples), cudaMalloc(&power, 4 * filters);
    fill<<<16, 256>>>(x, samples, 1);
    auto form = [&](const char *name, auto kernel) { return Form{name, [=] { kernel<<<filters / 128, 128>>>(x, power, samples); }}; };
    judge(3, {form("as_it_is", goertzel), form("tile", goertzel_tile), form("tile_read_ahead", goertzel_tile_fours), form("tile_in_pieces", goertzel_tile_pieces)},
        power, filters, [&] { cudaMemsetAsync(power, 0xff, 4 * filters); });
}
