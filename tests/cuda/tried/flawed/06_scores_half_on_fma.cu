// scores_half_on_fma, side flawed: eight elements a thread, up to 16 bytes an access
#include "../tried.cuh"

#include <cuda_fp16.h>

__global__ void __launch_bounds__(256) scores_fma(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ s, int length) {
    __shared__ float qs[32][65], ks[32][65];  // 64 features in two halves, 64 x 64 scores a block
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    size_t head = size_t(blockIdx.z) * length * 64;
    float sum[4][4] = {};
    for (int f = 0; f < 64; f += 32) {
        for (int i = t; i < 64 * 32; i += 256) {
            qs[i % 32][i / 32] = __half2float(q[head + (row0 + i / 32) * 64 + f + i % 32]);
            ks[i % 32][i / 32] = __half2float(k[head + (column0 + i / 32) * 64 + f + i % 32]);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            float a[4], c[4];
#pragma unroll
            for (int p = 0; p < 4; ++p) a[p] = qs[i][ty + 16 * p], c[p] = ks[i][tx + 16 * p];
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int r = 0; r < 4; ++r) sum[p][r] += a[p] * c[r];
        }
        __syncthreads();
    }
    for (int p = 0; p < 4; ++p)
        for (int r = 0; r < 4; ++r) s[(size_t(blockIdx.z) * length + row0 + ty + 16 * p) * length + column0 + tx + 16 * r] = sum[p][r] * 0.125f;
}

__device__ __forceinline__ uint4 eight(const __half *p) { return *reinterpret_cast<const uint4 *>(p); }
__device__ __forceinline__ void widen(float (&v)[8], const uint4 &h) {
    const __half2 *pair = reinterpret_cast<const __half2 *>(&h);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        float2 w = __half22float2(pair[e]);
        v[2 * e] = w.x, v[2 * e + 1] = w.y;
    }
}

// A thread loads 8 features of one query and of one key at once. STORES: its scores lie side by side and are stored as
// float4; the keys' places in shared memory are permuted so that its reads stay as they are, and without conflicts.
template <bool STORES> __global__ void __launch_bounds__(256) scores_wide(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ s, int length) {
    constexpr int APART = STORES ? 18 : 16, PITCH = STORES ? 71 : 65;
    __shared__ float qs[32][65], ks[32][PITCH];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    int row = t / 4, feature = t % 4 * 8, place = STORES ? row / 4 + row % 4 * APART : row;
    size_t head = size_t(blockIdx.z) * length * 64;
    float sum[4][4] = {};
    for (int f = 0; f < 64; f += 32) {
        uint4 wide_q = eight(q + head + (row0 + row) * 64 + f + feature), wide_k = eight(k + head + (column0 + row) * 64 + f + feature);
        float u[8], v[8];
        widen(u, wide_q), widen(v, wide_k);
#pragma unroll
        for (int e = 0; e < 8; ++e) qs[feature + e][row] = u[e], ks[feature + e][place] = v[e];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            float a[4], c[4];
#pragma unroll
            for (int p = 0; p < 4; ++p) a[p] = qs[i][ty + 16 * p], c[p] = ks[i][tx + APART * p];
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int r = 0; r < 4; ++r) sum[p][r] += a[p] * c[r];
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        float *out = s + (size_t(blockIdx.z) * length + row0 + ty + 16 * p) * length + column0;
        if (STORES) *reinterpret_cast<float4 *>(out + 4 * tx) = make_float4(sum[p][0] * 0.125f, sum[p][1] * 0.125f, sum[p][2] * 0.125f, sum[p][3] * 0.125f);
        else
#pragma unroll
            for (int r = 0; r < 4; ++r) out[tx + 16 * r] = sum[p][r] * 0.125f;
    }
}

// Shared memory is read by float4, too; places are turned by 8 a feature group, so that nothing conflicts.
__global__ void __launch_bounds__(256) scores_wide_shared(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ s, int length) {
    __shared__ __align__(16) float qs[32][64], ks[32][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    int row = t / 4, feature = t % 4 * 8, place = row ^ feature;
    size_t head = size_t(blockIdx.z) * length * 64;
    float sum[4][4] = {};
    for (int f = 0; f < 64; f += 32) {
        uint4 wide_q = eight(q + head + (row0 + row) * 64 + f + feature), wide_k = eight(k + head + (column0 + row) * 64 + f + feature);
        float u[8], v[8];
        widen(u, wide_q), widen(v, wide_k);
#pragma unroll
        for (int e = 0; e < 8; ++e) qs[feature + e][place] = u[e], ks[feature + e][place] = v[e];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int turn = i / 8 * 8;
            const float4 a4 = *reinterpret_cast<const float4 *>(&qs[i][(4 * ty) ^ turn]), c4 = *reinterpret_cast<const float4 *>(&ks[i][(4 * tx) ^ turn]);
            const float a[4] = {a4.x, a4.y, a4.z, a4.w}, c[4] = {c4.x, c4.y, c4.z, c4.w};
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int r = 0; r < 4; ++r) sum[p][r] += a[p] * c[r];
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; ++p)
        *reinterpret_cast<float4 *>(s + (size_t(blockIdx.z) * length + row0 + 4 * ty + p) * length + column0 + 4 * tx) =
            make_float4(sum[p][0] * 0.125f, sum[p][1] * 0.125f, sum[p][2] * 0.125f, sum[p][3] * 0.125f);
}

int main() {
    const int heads = 32, n = 1024;
    const __half *q = drawn<__half>(heads * n * 64, -1, 1, 1), *k = drawn<__half>(heads * n * 64, -1, 1, 2);
    float *s = get<float>(size_t(heads) * n * n);
    const dim3 grid(n / 64, n / 64, heads);
    judge({{"as_it_is", [=] { scores_fma<<<grid, 256>>>(q, k, s, n); }},
        {"loads_16_bytes", [=] { scores_wide<false><<<grid, 256>>>(q, k, s, n); }},
        {"loads_and_stores_16_bytes", [=] { scores_wide<true><<<grid, 256>>>(q, k, s, n); }},
        {"shared_16_bytes_too", [=] { scores_wide_shared<<<grid, 256>>>(q, k, s, n); }}}, {{s, size_t(heads) * n * n}});
}
