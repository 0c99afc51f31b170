// linear_fp32_small_tile, side four: more or larger blocks; the work cut finer.
#include "../tried.cuh"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

template <int TILE, int PER>
__global__ void __launch_bounds__(TILE / PER * (TILE / PER)) linear_blocked(const float *__restrict__ x, const float *__restrict__ w,
    const float *__restrict__ bias, float *__restrict__ y, int n, int depth) {
    constexpr int SIDE = TILE / PER, THREADS = SIDE * SIDE, K = 16;
    __shared__ float xs[K][TILE + 1], ws[K][TILE + 1];
    int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sum[PER][PER] = {};
    for (int k = 0; k < depth; k += K) {
#pragma unroll
        for (int i = threadIdx.x; i < TILE * K; i += THREADS) {
            xs[i % K][i / K] = x[(row0 + i / K) * depth + k + i % K];
            ws[i % K][i / K] = w[(column0 + i / K) * depth + k + i % K];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < K; ++i) {
            float a[PER], c[PER];
#pragma unroll
            for (int p = 0; p < PER; ++p) a[p] = xs[i][ty + SIDE * p], c[p] = ws[i][tx + SIDE * p];
#pragma unroll
            for (int p = 0; p < PER; ++p)
#pragma unroll
                for (int q = 0; q < PER; ++q) sum[p][q] += a[p] * c[q];
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < PER; ++p)
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            int column = column0 + tx + SIDE * q;
            y[(row0 + ty + SIDE * p) * n + column] = sum[p][q] + bias[column];
        }
}

// Rewrites: the same loop of 256 threads over depths first ... end, for a tile of 16 PY x 16 PX outputs.
constexpr int K = 16;
template <int PY, int PX> struct Tiles { float xs[K][16 * PY + 1], ws[K][16 * PX + 1]; };
template <int PY, int PX, class Sync>
__device__ __forceinline__ void add_products(float (&sum)[PY][PX], Tiles<PY, PX> &s, const float *__restrict__ x, const float *__restrict__ w, int t, int row0, int column0, int depth, int first, int end, Sync sync) {
    int tx = t % 16, ty = t / 16;
    for (int k = first; k < end; k += K) {
#pragma unroll
        for (int i = t; i < 16 * PY * K; i += 256) s.xs[i % K][i / K] = x[(row0 + i / K) * depth + k + i % K];
#pragma unroll
        for (int i = t; i < 16 * PX * K; i += 256) s.ws[i % K][i / K] = w[(column0 + i / K) * depth + k + i % K];
        sync();
#pragma unroll
        for (int i = 0; i < K; ++i) {
            float a[PY], c[PX];
#pragma unroll
            for (int p = 0; p < PY; ++p) a[p] = s.xs[i][ty + 16 * p];
#pragma unroll
            for (int q = 0; q < PX; ++q) c[q] = s.ws[i][tx + 16 * q];
#pragma unroll
            for (int p = 0; p < PY; ++p)
#pragma unroll
                for (int q = 0; q < PX; ++q) sum[p][q] += a[p] * c[q];
        }
        sync();
    }
}
struct Block { __device__ void operator()() const { __syncthreads(); } };
struct Group { int id; __device__ void operator()() const { asm volatile("bar.sync %0, 256;" ::"r"(id + 1) : "memory"); } };

// Smaller tiles: 512 blocks of 64 x 32 outputs, or 1024 of 32 x 32.
template <int PY, int PX>
__global__ void __launch_bounds__(256) linear_tile(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias, float *__restrict__ y, int n, int depth) {
    __shared__ Tiles<PY, PX> s;
    int t = threadIdx.x, row0 = blockIdx.y * 16 * PY, column0 = blockIdx.x * 16 * PX;
    float sum[PY][PX] = {};
    add_products(sum, s, x, w, t, row0, column0, depth, 0, depth, Block{});
#pragma unroll
    for (int p = 0; p < PY; ++p)
#pragma unroll
        for (int q = 0; q < PX; ++q) {
            int column = column0 + t % 16 + 16 * q;
            y[(row0 + t / 16 + 16 * p) * n + column] = sum[p][q] + bias[column];
        }
}
// The depth cut in gridDim.z, sums added in global memory (zero before).
__global__ void __launch_bounds__(256) linear_split_atomic(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias, float *__restrict__ y, int n, int depth) {
    __shared__ Tiles<4, 4> s;
    int t = threadIdx.x, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64, each = depth / gridDim.z;
    float sum[4][4] = {};
    add_products(sum, s, x, w, t, row0, column0, depth, blockIdx.z * each, (blockIdx.z + 1) * each, Block{});
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            int column = column0 + t % 16 + 16 * q;
            atomicAdd(&y[(row0 + t / 16 + 16 * p) * n + column], sum[p][q] + (blockIdx.z ? 0.f : bias[column]));
        }
}
// The depth cut in two, each half by a block of a pair (a cluster) or by 256 threads of a block of 512. Each half hands eight
// sums a thread to the other through shared memory and ends the other eight.
__device__ __forceinline__ void hand_over(const float (&sum)[4][4], float *room, int t, int half) {
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q) if (p / 2 != half) room[(p % 2 * 4 + q) * 256 + t] = sum[p][q];
}
__device__ __forceinline__ void finish(const float (&sum)[4][4], const float *room, int t, int half, int row0, int column0, const float *bias, float *y, int n) {
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q) if (p / 2 == half) {
            int column = column0 + t % 16 + 16 * q;
            y[(row0 + t / 16 + 16 * p) * n + column] = sum[p][q] + room[(p % 2 * 4 + q) * 256 + t] + bias[column];
        }
}
static_assert(sizeof(Tiles<4, 4>) >= 8 * 256 * sizeof(float), "room for the sums");
__global__ void __cluster_dims__(1, 1, 2) __launch_bounds__(256) linear_split_cluster(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias, float *__restrict__ y, int n, int depth) {
    __shared__ Tiles<4, 4> s;
    cg::cluster_group pair = cg::this_cluster();
    int t = threadIdx.x, half = blockIdx.z, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[4][4] = {}, *room = reinterpret_cast<float *>(&s);
    add_products(sum, s, x, w, t, row0, column0, depth, half * depth / 2, (half + 1) * depth / 2, Block{});
    hand_over(sum, room, t, half);
    pair.sync();
    finish(sum, pair.map_shared_rank(room, 1 - half), t, half, row0, column0, bias, y, n);
    pair.sync();
}
__global__ void __launch_bounds__(512, 2) linear_split_in_block(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias, float *__restrict__ y, int n, int depth) {
    __shared__ Tiles<4, 4> s[2];
    int t = threadIdx.x % 256, half = threadIdx.x / 256, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[4][4] = {};
    add_products(sum, s[half], x, w, t, row0, column0, depth, half * depth / 2, (half + 1) * depth / 2, Group{half});
    hand_over(sum, reinterpret_cast<float *>(&s[half]), t, half);
    __syncthreads();
    finish(sum, reinterpret_cast<const float *>(&s[1 - half]), t, half, row0, column0, bias, y, n);
}

int main() {
    const int n = 1024;
    const float *x = drawn<float>(n * n, -1, 1, 1), *w = drawn<float>(n * n, -1, 1, 2), *bias = drawn<float>(n, -1, 1, 3);
    float *y = get<float>(n * n);
    const auto atomic = [=](int parts) { cudaMemsetAsync(y, 0, n * n * sizeof(float)), linear_split_atomic<<<dim3(16, 16, parts), 256>>>(x, w, bias, y, n, n); };  // with its zeroing
    judge({{"as_it_is", [=] { linear_blocked<64, 4><<<dim3(16, 16), 256>>>(x, w, bias, y, n, n); }},
        {"split2_in_block_of_512", [=] { linear_split_in_block<<<dim3(16, 16), 512>>>(x, w, bias, y, n, n); }},
        {"split2_cluster", [=] { linear_split_cluster<<<dim3(16, 16, 2), 256>>>(x, w, bias, y, n, n); }},
        {"split2_atomic_and_memset", [=] { atomic(2); }},
        {"split4_atomic_and_memset", [=] { atomic(4); }},
        {"tile_64x32", [=] { linear_tile<4, 2><<<dim3(32, 16), 256>>>(x, w, bias, y, n, n); }},
        {"tile_32x32", [=] { linear_tile<2, 2><<<dim3(32, 32), 256>>>(x, w, bias, y, n, n); }}}, {{y, size_t(n) * n}});
}
