// all_pairs_correlation_half_on_fma, side flawed: let neighbouring threads load neighbouring addresses: neighbouring lanes load neighbouring parts of a row.
#include "../tried.cuh"

#include <cuda_fp16.h>

constexpr int FEATURES = 256;

__global__ void __launch_bounds__(256) correlate(const __half *one, const __half *two, float *out, int pixels, float scale) {
    __shared__ __align__(16) float a[32][68], b[32][68];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = threadIdx.x % 64, part = threadIdx.x / 64 * 8;
    size_t frame = static_cast<size_t>(blockIdx.z) * pixels;
    const __half *left = one + (frame + blockIdx.y * 64 + row) * FEATURES + part, *right = two + (frame + blockIdx.x * 64 + row) * FEATURES + part;
    float sum[4][4] = {};
    for (int k = 0; k < FEATURES; k += 32) {
        uint4 p = *reinterpret_cast<const uint4 *>(left + k), q = *reinterpret_cast<const uint4 *>(right + k);
        const __half *from = reinterpret_cast<const __half *>(&p), *and_from = reinterpret_cast<const __half *>(&q);
#pragma unroll
        for (int j = 0; j < 8; ++j) a[part + j][row] = __half2float(from[j]), b[part + j][row] = __half2float(and_from[j]);
        __syncthreads();
#pragma unroll 8
        for (int s = 0; s < 32; ++s) {
            float4 u = *reinterpret_cast<const float4 *>(&a[s][4 * ty]), v = *reinterpret_cast<const float4 *>(&b[s][4 * tx]);
            const float l[4] = {u.x, u.y, u.z, u.w}, r[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
        }
        __syncthreads();
    }
    float4 *corner = reinterpret_cast<float4 *>(out) + ((frame + blockIdx.y * 64 + 4 * ty) * pixels + blockIdx.x * 64) / 4 + tx;
#pragma unroll
    for (int i = 0; i < 4; ++i) corner[i * pixels / 4] = make_float4(scale * sum[i][0], scale * sum[i][1], scale * sum[i][2], scale * sum[i][3]);
}
// LANES lanes load a row, a Vector each. Columns of the tiles are turned (TURNED) by the lane, so that its stores fall into
// banks of their own: bank = row ^ lane * TURN, of 32 / LANES rows a warp.
template <int LANES, class Vector, bool TURNED>
__global__ void __launch_bounds__(256) correlate_lanes(const __half *one, const __half *two, float *out, int pixels, float scale) {
    constexpr int EACH = sizeof(Vector) / 2, DEPTH = LANES * EACH, ROWS = 256 / LANES, PASSES = 64 / ROWS, TURN = TURNED ? 32 / LANES : 0;
    __shared__ __align__(16) float a[DEPTH][68], b[DEPTH][68];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = threadIdx.x / LANES, lane = threadIdx.x % LANES, part = lane * EACH;
    size_t frame = static_cast<size_t>(blockIdx.z) * pixels;
    const __half *left = one + (frame + blockIdx.y * 64 + row) * FEATURES + part, *right = two + (frame + blockIdx.x * 64 + row) * FEATURES + part;
    float sum[4][4] = {};
    for (int k = 0; k < FEATURES; k += DEPTH) {
        Vector p[PASSES], q[PASSES];
#pragma unroll
        for (int n = 0; n < PASSES; ++n) {
            p[n] = *reinterpret_cast<const Vector *>(left + n * ROWS * FEATURES + k);
            q[n] = *reinterpret_cast<const Vector *>(right + n * ROWS * FEATURES + k);
        }
#pragma unroll
        for (int n = 0; n < PASSES; ++n) {
            const __half *from = reinterpret_cast<const __half *>(&p[n]), *and_from = reinterpret_cast<const __half *>(&q[n]);
            const int column = (row + n * ROWS) ^ lane * TURN;
#pragma unroll
            for (int j = 0; j < EACH; ++j) a[part + j][column] = __half2float(from[j]), b[part + j][column] = __half2float(and_from[j]);
        }
        __syncthreads();
#pragma unroll(8 / EACH)
        for (int s = 0; s < LANES; ++s) {
            const int down = 4 * ty ^ s * TURN, across = 4 * tx ^ s * TURN;
#pragma unroll
            for (int t = s * EACH; t < s * EACH + EACH; ++t) {
                float4 u = *reinterpret_cast<const float4 *>(&a[t][down]), v = *reinterpret_cast<const float4 *>(&b[t][across]);
                const float l[4] = {u.x, u.y, u.z, u.w}, r[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
            }
        }
        __syncthreads();
    }
    float4 *corner = reinterpret_cast<float4 *>(out) + ((frame + blockIdx.y * 64 + 4 * ty) * pixels + blockIdx.x * 64) / 4 + tx;
#pragma unroll
    for (int i = 0; i < 4; ++i) corner[i * pixels / 4] = make_float4(scale * sum[i][0], scale * sum[i][1], scale * sum[i][2], scale * sum[i][3]);
}

int main() {
    const int frames = 4, pixels = 2048;
    const size_t in = static_cast<size_t>(frames) * pixels * FEATURES, count = static_cast<size_t>(frames) * pixels * pixels;
    const __half *one = drawn<__half>(in, -1.0, 1.0, 1), *two = drawn<__half>(in, -1.0, 1.0, 2);
    float *out = get<float>(count);
    auto launch = [=](auto kernel) { return [=] { kernel<<<dim3(pixels / 64, pixels / 64, frames), 256>>>(one, two, out, pixels, 0.0625f); }; };
    judge({
        {"as_it_is", launch(correlate)},
        {"four_lanes_a_row", launch(correlate_lanes<4, uint4, true>)},
        {"four_lanes_a_row_bank_conflicts", launch(correlate_lanes<4, uint4, false>)},
        {"eight_lanes_a_row_narrow", launch(correlate_lanes<8, uint2, true>)},
        {"eight_lanes_a_row_deep", launch(correlate_lanes<8, uint4, true>)},
    }, {{out, count}});
}
