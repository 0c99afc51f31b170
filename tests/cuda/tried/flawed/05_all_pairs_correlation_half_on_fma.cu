// Statement 5: all_pairs_correlation_half_on_fma, side flawed: neighbouring lanes load neighbouring parts of a row.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>
#include <cuda_fp16.h>
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
    __half *one, *two;
    float *out;
    cudaMalloc(&one, 2 * in), cudaMalloc(&two, 2 * in), cudaMalloc(&out, 4 * count);
    fill<<<1024, 256>>>(one, in, 1), fill<<<1024, 256>>>(two, in, 0x10000001);
    auto form = [&](const char *name, auto kernel) { return Form{name, [=] { kernel<<<dim3(pixels / 64, pixels / 64, frames), 256>>>(one, two, out, pixels, 0.0625f); }}; };
    judge(5, {form("as_it_is", correlate), form("four_lanes_a_row", correlate_lanes<4, uint4, true>), form("four_lanes_a_row_bank_conflicts", correlate_lanes<4, uint4, false>),
        form("eight_lanes_a_row_narrow", correlate_lanes<8, uint2, true>), form("eight_lanes_a_row_deep", correlate_lanes<8, uint4, true>)},
        out, count, [&] { cudaMemsetAsync(out, 0xff, 4 * count); });
}
