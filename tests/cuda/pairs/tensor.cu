// Products of half-precision tiles on the FMA pipe, or on the tensor cores.
#include <mma.h>

#include "pair.cuh"

namespace {

using namespace nvcuda;

constexpr int B = 64, K = 32, PAD = 8;

// A block of 128 threads computes 64 x 64 of C = A B (row-major halves, sums in FP32).
template <bool Tensor>
__global__ void __launch_bounds__(128)
    product(const __half *__restrict__ a, const __half *__restrict__ b, float *__restrict__ c, int n, int depth) {
    __shared__ __half as[B][K + PAD], bs[K][B + PAD];
    int warp = threadIdx.x / 32, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[8][4] = {};
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> parts[4];
    if (Tensor)
        for (auto &part : parts) wmma::fill_fragment(part, 0.0f);
    for (int k0 = 0; k0 < depth; k0 += K) {
        for (int i = threadIdx.x; i < B * K / 8; i += 128) {
            *reinterpret_cast<uint4 *>(&as[i / 4][i % 4 * 8]) =
                *reinterpret_cast<const uint4 *>(&a[size_t(blockIdx.y * B + i / 4) * depth + k0 + i % 4 * 8]);
            *reinterpret_cast<uint4 *>(&bs[i / 8][i % 8 * 8]) =
                *reinterpret_cast<const uint4 *>(&b[size_t(k0 + i / 8) * n + blockIdx.x * B + i % 8 * 8]);
        }
        __syncthreads();
        if (Tensor) {
#pragma unroll
            for (int k = 0; k < K; k += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
                wmma::load_matrix_sync(left, &as[warp * 16][k], K + PAD);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
                    wmma::load_matrix_sync(right, &bs[k][j * 16], B + PAD);
                    wmma::mma_sync(parts[j], left, right, parts[j]);
                }
            }
        } else {
#pragma unroll 4
            for (int k = 0; k < K; ++k) {
                float x[8], y[4];
                for (int i = 0; i < 8; ++i) x[i] = __half2float(as[ty * 8 + i][k]);
                for (int j = 0; j < 4; ++j) y[j] = __half2float(bs[k][tx + 16 * j]);
                for (int i = 0; i < 8; ++i)
                    for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
            }
        }
        __syncthreads();
    }
    if (Tensor) {
        for (int j = 0; j < 4; ++j)
            wmma::store_matrix_sync(
                &c[size_t(blockIdx.y * B + warp * 16) * n + blockIdx.x * B + j * 16], parts[j], n, wmma::mem_row_major);
    } else {
        for (int i = 0; i < 8; ++i)
            for (int j = 0; j < 4; ++j)
                c[size_t(blockIdx.y * B + ty * 8 + i) * n + blockIdx.x * B + tx + 16 * j] = sum[i][j];
    }
}
Sides product_sides(Buffers &b, long n, long depth) {
    __half *x = b.random<__half>(n * depth), *y = b.random<__half>(n * depth);
    float *out = b.output<float>(n * n);
    b.tolerance = 1e-3;
    dim3 grid(n / B, n / B);
    return flawed_mended(launch(product<false>, grid, 128, 0, x, y, out, n, depth),
        launch(product<true>, grid, 128, 0, x, y, out, n, depth));
}
Family half_product("half_product", "gemm_half", {1024, 4096}, mend("tensor_cores_idle"),
    [](Buffers &b, long n) { return product_sides(b, n, n); });
// So shallow that writing the result is the limit.
Family half_product_shallow("half_product_shallow", "gemm_half", {4096, 8192}, mend("tensor_cores_idle"),
    [](Buffers &b, long n) { return product_sides(b, n, 64); });

// Scores of attention, queries against keys of 64: FMA or tensor cores, then a scale; one head after the other.
template <bool Tensor>
__global__ void __launch_bounds__(128)
    scores(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ out, int length) {
    constexpr int D = 64;
    __shared__ __half qs[64][D + PAD], ks[64][D + PAD];
    __shared__ float tile[Tensor ? 64 : 1][Tensor ? 64 + 4 : 1];
    size_t head = blockIdx.z;
    const __half *queries = q + (head * length + blockIdx.y * 64) * D,
                 *keys = k + (head * length + blockIdx.x * 64) * D;
    float *to = out + head * length * length + size_t(blockIdx.y) * 64 * length + blockIdx.x * 64;
    for (int i = threadIdx.x; i < 64 * D / 8; i += 128) {
        *reinterpret_cast<uint4 *>(&qs[i / 8][i % 8 * 8]) = *reinterpret_cast<const uint4 *>(&queries[i * 8]);
        *reinterpret_cast<uint4 *>(&ks[i / 8][i % 8 * 8]) = *reinterpret_cast<const uint4 *>(&keys[i * 8]);
    }
    __syncthreads();
    int warp = threadIdx.x / 32, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    if (Tensor) {
        for (int j = 0; j < 4; ++j) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> part;
            wmma::fill_fragment(part, 0.0f);
            for (int d = 0; d < D; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
                wmma::load_matrix_sync(left, &qs[warp * 16][d], D + PAD);
                wmma::load_matrix_sync(right, &ks[j * 16][d], D + PAD);
                wmma::mma_sync(part, left, right, part);
            }
            wmma::store_matrix_sync(&tile[warp * 16][j * 16], part, 68, wmma::mem_row_major);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * 64; i += 128)
            to[size_t(i / 64) * length + i % 64] = tile[i / 64][i % 64] * 0.125f;
        return;
    }
    float sum[8][4] = {};
#pragma unroll 4
    for (int d = 0; d < D; ++d) {
        float x[8], y[4];
        for (int i = 0; i < 8; ++i) x[i] = __half2float(qs[ty * 8 + i][d]);
        for (int j = 0; j < 4; ++j) y[j] = __half2float(ks[tx + 16 * j][d]);
        for (int i = 0; i < 8; ++i)
            for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 4; ++j) to[size_t(ty * 8 + i) * length + tx + 16 * j] = sum[i][j] * 0.125f;
}
Family attention_scores("attention_scores", "attention", {1024, 4096}, mend("tensor_cores_idle", "real"),
    [](Buffers &b, long length) -> Sides {
        long heads = length > 2000 ? 4 : 16;
        __half *q = b.random<__half>(heads * length * 64), *k = b.random<__half>(heads * length * 64);
        float *out = b.output<float>(heads * length * length);
        dim3 grid(length / 64, length / 64, heads);
        b.tolerance = 1e-3;
        return flawed_mended(launch(scores<false>, grid, 128, 0, q, k, out, length),
            launch(scores<true>, grid, 128, 0, q, k, out, length));
    });

}  // namespace
