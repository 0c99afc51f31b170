// goertzel_one_chain, side flawed: load what a block's threads share into shared memory, once.
#include "../tried.cuh"

#include <cuda_pipeline.h>

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
    const float *x = drawn<float>(samples, -1.0, 1.0, 1);
    float *power = get<float>(filters);
    auto launch = [=](auto kernel) { return [=] { kernel<<<filters / 128, 128>>>(x, power, samples); }; };
    judge({
        {"as_it_is", launch(goertzel)},
        {"tile", launch(goertzel_tile)},
        {"tile_read_ahead", launch(goertzel_tile_fours)},
        {"tile_in_pieces", launch(goertzel_tile_pieces)},
    }, {{power, filters}});
}
