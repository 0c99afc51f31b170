// input_moments_in_136_tiles, side flawed: the next tile is fetched while this one is used.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "../tried.cuh"

using namespace nvcuda;
constexpr int SIDE = 128, DEPTH = 32, PITCH = SIDE + 8, THREADS = 256, WIDE = 64, ACROSS = SIDE / WIDE, LOADS = DEPTH * SIDE / 8 / THREADS;

__device__ __forceinline__ int2 tile_of(int number) {
    int row = static_cast<int>((sqrtf(8.0f * number + 1.0f) - 1.0f) / 2.0f);
    while ((row + 1) * (row + 2) / 2 <= number) row++;
    while (row * (row + 1) / 2 > number) row--;
    return make_int2(row, number - row * (row + 1) / 2);
}
struct Sums {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> of[2][WIDE / 16];
    __device__ __forceinline__ Sums() {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < WIDE / 16; j++) wmma::fill_fragment(of[i][j], 0.0f);
    }
    __device__ __forceinline__ void add(const __half *left, const __half *right, int y, int z) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b[WIDE / 16];
            for (int i = 0; i < 2; i++) wmma::load_matrix_sync(a[i], left + k * PITCH + y + i * 16, PITCH);
            for (int j = 0; j < WIDE / 16; j++) wmma::load_matrix_sync(b[j], right + k * PITCH + z + j * 16, PITCH);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < WIDE / 16; j++) wmma::mma_sync(of[i][j], a[i], b[j], of[i][j]);
        }
    }
    __device__ __forceinline__ void store(float *tile, int features) {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < WIDE / 16; j++) wmma::store_matrix_sync(tile + static_cast<size_t>(i) * 16 * features + j * 16, of[i][j], features, wmma::mem_row_major);
    }
};
__global__ void __launch_bounds__(THREADS) second_moments(const __half *__restrict__ x, float *__restrict__ out, int tokens, int features) {
    __shared__ __align__(32) __half left[DEPTH * PITCH], right[DEPTH * PITCH];
    const int2 at = tile_of(blockIdx.x);
    const int row = at.x, column = at.y, warp = threadIdx.x / 32, y = warp / ACROSS * 32, z = warp % ACROSS * WIDE;
    Sums sums;
    for (int t = 0; t < tokens; t += DEPTH) {
#pragma unroll
        for (int i = threadIdx.x; i < DEPTH * SIDE / 8; i += THREADS) {
            const int k = i / (SIDE / 8), c = i % (SIDE / 8) * 8;
            const __half *from = x + static_cast<size_t>(t + k) * features + c;
            *reinterpret_cast<uint4 *>(&left[k * PITCH + c]) = *reinterpret_cast<const uint4 *>(from + row * SIDE);
            *reinterpret_cast<uint4 *>(&right[k * PITCH + c]) = *reinterpret_cast<const uint4 *>(from + column * SIDE);
        }
        __syncthreads();
        sums.add(left, right, y, z);
        __syncthreads();
    }
    sums.store(out + static_cast<size_t>(row * SIDE + y) * features + column * SIDE + z, features);
}
// The next tile waits in registers.
__global__ void __launch_bounds__(THREADS) second_moments_ahead(const __half *__restrict__ x, float *__restrict__ out, int tokens, int features) {
    __shared__ __align__(32) __half left[DEPTH * PITCH], right[DEPTH * PITCH];
    const int2 at = tile_of(blockIdx.x);
    const int warp = threadIdx.x / 32, y = warp / ACROSS * 32, z = warp % ACROSS * WIDE;
    Sums sums;
    uint4 rows[LOADS], columns[LOADS];
    auto load = [&](int t) {
#pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const int i = threadIdx.x + l * THREADS;
            const __half *from = x + static_cast<size_t>(t + i / (SIDE / 8)) * features + i % (SIDE / 8) * 8;
            rows[l] = *reinterpret_cast<const uint4 *>(from + at.x * SIDE), columns[l] = *reinterpret_cast<const uint4 *>(from + at.y * SIDE);
        }
    };
    load(0);
    for (int t = 0; t < tokens; t += DEPTH) {
#pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const int i = threadIdx.x + l * THREADS, place = i / (SIDE / 8) * PITCH + i % (SIDE / 8) * 8;
            *reinterpret_cast<uint4 *>(&left[place]) = rows[l], *reinterpret_cast<uint4 *>(&right[place]) = columns[l];
        }
        __syncthreads();
        load(t + DEPTH < tokens ? t + DEPTH : 0);
        sums.add(left, right, y, z);
        __syncthreads();
    }
    sums.store(out + static_cast<size_t>(at.x * SIDE + y) * features + at.y * SIDE + z, features);
}
// Three tiles in turn, copied asynchronously.
constexpr int STAGES = 3;
__global__ void __launch_bounds__(THREADS) second_moments_async(const __half *__restrict__ x, float *__restrict__ out, int tokens, int features) {
    extern __shared__ __align__(32) __half held[];
    const int2 at = tile_of(blockIdx.x);
    const int warp = threadIdx.x / 32, y = warp / ACROSS * 32, z = warp % ACROSS * WIDE;
    Sums sums;
    auto copy = [&](int number) {
        __half *left = held + number % STAGES * 2 * DEPTH * PITCH, *right = left + DEPTH * PITCH;
        if (number * DEPTH < tokens)
#pragma unroll
            for (int l = 0; l < LOADS; l++) {
                const int i = threadIdx.x + l * THREADS, place = i / (SIDE / 8) * PITCH + i % (SIDE / 8) * 8;
                const __half *from = x + static_cast<size_t>(number * DEPTH + i / (SIDE / 8)) * features + i % (SIDE / 8) * 8;
                __pipeline_memcpy_async(&left[place], from + at.x * SIDE, 16), __pipeline_memcpy_async(&right[place], from + at.y * SIDE, 16);
            }
        __pipeline_commit();
    };
    for (int s = 0; s < STAGES - 1; s++) copy(s);
    for (int number = 0; number * DEPTH < tokens; number++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        copy(number + STAGES - 1);
        const __half *left = held + number % STAGES * 2 * DEPTH * PITCH;
        sums.add(left, left + DEPTH * PITCH, y, z);
    }
    sums.store(out + static_cast<size_t>(at.x * SIDE + y) * features + at.y * SIDE + z, features);
}

int main() {
    const int tokens = 8192, n = 2048, large = n / SIDE, tiles = large * (large + 1) / 2, bytes = STAGES * 2 * DEPTH * PITCH * sizeof(__half);
    const float *numbers = drawn<float>(size_t(tokens) * n, -0.2, 1.0, 1);
    std::vector<float> host(size_t(tokens) * n);
    check(cudaMemcpy(host.data(), numbers, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
    std::vector<__half> halves(host.size());
    for (size_t i = 0; i < host.size(); i++) halves[i] = __float2half(host[i]);
    const __half *x = copied(halves);
    float *out = get<float>(size_t(n) * n);
    check(cudaFuncSetAttribute(second_moments_async, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    // The upper half is nobody's.
    judge({{"as_it_is", [=] { second_moments<<<tiles, THREADS>>>(x, out, tokens, n); }},
        {"async_3_tiles", [=] { second_moments_async<<<tiles, THREADS, bytes>>>(x, out, tokens, n); }},
        {"registers_2_tiles", [=] { second_moments_ahead<<<tiles, THREADS>>>(x, out, tokens, n); }}},
        {{out, size_t(n) * n}}, [=] { check(cudaMemsetAsync(out, 0, size_t(n) * n * sizeof(float))); });
}
