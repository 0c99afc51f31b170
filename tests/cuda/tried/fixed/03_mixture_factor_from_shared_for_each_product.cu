// mixture_factor_from_shared_for_each_product, side vectors: compute more results a thread from each value read from shared memory.
#include <random>

#include "../tried.cuh"

constexpr int AXES = 16, COMPONENTS = 16, ROWS_OF_FOUR = 40;
// A running sum of exponentials and the largest exponent so far.
struct LogSum {
    float top = -1e30f, sum = 0.f;
    __device__ void add(float x) {
        float higher = fmaxf(top, x);
        sum = sum * __expf(top - higher) + __expf(x - higher);
        top = higher;
    }
    __device__ float value() const { return top + __logf(sum); }
};
// Rows of a factor filled up with zeros to vectors of four, component after component.
__global__ void __launch_bounds__(128) mixture_vectors(const float4 *__restrict__ points, const float4 *__restrict__ factors, const float4 *__restrict__ means, const float *__restrict__ weights, float *__restrict__ out, int n) {
    __shared__ float4 factor[COMPONENTS * ROWS_OF_FOUR], mean[COMPONENTS * AXES / 4];
    for (int i = threadIdx.x; i < COMPONENTS * ROWS_OF_FOUR; i += 128) factor[i] = factors[i];
    for (int i = threadIdx.x; i < COMPONENTS * AXES / 4; i += 128) mean[i] = means[i];
    __syncthreads();
    int point = blockIdx.x * 128 + threadIdx.x;
    if (point >= n) return;
    float4 x[AXES / 4];
    LogSum total;
#pragma unroll
    for (int a = 0; a < AXES / 4; ++a) x[a] = points[static_cast<size_t>(a) * n + point];
#pragma unroll 1
    for (int k = 0; k < COMPONENTS; ++k) {
        const float4 *row = factor + k * ROWS_OF_FOUR;
        float4 off[AXES / 4];
        float far = 0.f;
#pragma unroll
        for (int a = 0; a < AXES / 4; ++a) {
            float4 m = mean[k * (AXES / 4) + a];
            off[a] = make_float4(x[a].x - m.x, x[a].y - m.y, x[a].z - m.z, x[a].w - m.w);
        }
        int at = 0;
#pragma unroll
        for (int i = 0; i < AXES; ++i) {
            float sum = 0.f;
#pragma unroll
            for (int a = 0; a <= i / 4; ++a, ++at) sum += row[at].x * off[a].x + row[at].y * off[a].y + row[at].z * off[a].z + row[at].w * off[a].w;
            far += sum * sum;
        }
        total.add(weights[k] - 0.5f * far);
    }
    out[point] = total.value();
}
// POINTS a thread: each vector of a factor and a mean is read once for all of them.
template <int POINTS>
__global__ void __launch_bounds__(128) mixture_vectors_points(const float4 *__restrict__ points, const float4 *__restrict__ factors, const float4 *__restrict__ means, const float *__restrict__ weights, float *__restrict__ out, int n) {
    __shared__ float4 factor[COMPONENTS * ROWS_OF_FOUR], mean[COMPONENTS * AXES / 4];
    for (int i = threadIdx.x; i < COMPONENTS * ROWS_OF_FOUR; i += 128) factor[i] = factors[i];
    for (int i = threadIdx.x; i < COMPONENTS * AXES / 4; i += 128) mean[i] = means[i];
    __syncthreads();
    const int first = blockIdx.x * 128 * POINTS + threadIdx.x;
    float4 x[POINTS][AXES / 4];
    LogSum total[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p)
#pragma unroll
        for (int a = 0; a < AXES / 4; ++a) x[p][a] = points[static_cast<size_t>(a) * n + min(first + 128 * p, n - 1)];
#pragma unroll 1
    for (int k = 0; k < COMPONENTS; ++k) {
        const float4 *row = factor + k * ROWS_OF_FOUR;
        float4 off[POINTS][AXES / 4];
        float far[POINTS] = {};
#pragma unroll
        for (int a = 0; a < AXES / 4; ++a) {
            const float4 m = mean[k * (AXES / 4) + a];
#pragma unroll
            for (int p = 0; p < POINTS; ++p) off[p][a] = make_float4(x[p][a].x - m.x, x[p][a].y - m.y, x[p][a].z - m.z, x[p][a].w - m.w);
        }
        int at = 0;
#pragma unroll
        for (int i = 0; i < AXES; ++i) {
            float sum[POINTS] = {};
#pragma unroll
            for (int a = 0; a <= i / 4; ++a, ++at) {
                const float4 f = row[at];
#pragma unroll
                for (int p = 0; p < POINTS; ++p) sum[p] += f.x * off[p][a].x + f.y * off[p][a].y + f.z * off[p][a].z + f.w * off[p][a].w;
            }
#pragma unroll
            for (int p = 0; p < POINTS; ++p) far[p] += sum[p] * sum[p];
        }
#pragma unroll
        for (int p = 0; p < POINTS; ++p) total[p].add(weights[k] - 0.5f * far[p]);
    }
#pragma unroll
    for (int p = 0; p < POINTS; ++p)
        if (first + 128 * p < n) out[first + 128 * p] = total[p].value();
}

int main() {
    const int n = 1 << 20;
    std::mt19937 random(53);
    auto noise = [&](float size) { return size * (static_cast<float>(random() % 65536) / 32768.f - 1.f); };
    std::vector<float> weights(COMPONENTS);
    std::vector<float4> rows(COMPONENTS * ROWS_OF_FOUR), places(COMPONENTS * AXES / 4);
    for (int k = 0; k < COMPONENTS; ++k) {
        float padded[4 * ROWS_OF_FOUR] = {};
        weights[k] = noise(1.f) - 3.f;
        for (int i = 0, at = 0; i < AXES; ++i) {
            (&places[k * (AXES / 4) + i / 4].x)[i % 4] = noise(1.f);
            for (int j = 0; j <= i; ++j) padded[at + j] = i == j ? 1.f + noise(0.3f) : noise(0.2f);
            at += 4 * (i / 4 + 1);
        }
        for (int v = 0; v < ROWS_OF_FOUR; ++v) rows[k * ROWS_OF_FOUR + v] = make_float4(padded[4 * v], padded[4 * v + 1], padded[4 * v + 2], padded[4 * v + 3]);
    }
    const float4 *points = reinterpret_cast<const float4 *>(drawn<float>(static_cast<size_t>(AXES) * n, -1.5, 1.5, 1)), *factors = copied(rows), *means = copied(places);
    const float *shares = copied(weights);
    float *out = get<float>(n);
    judge({
        {"as_it_is", [=] { mixture_vectors<<<8192, 128>>>(points, factors, means, shares, out, n); }},
        {"two_points", [=] { mixture_vectors_points<2><<<4096, 128>>>(points, factors, means, shares, out, n); }},
        {"four_points", [=] { mixture_vectors_points<4><<<2048, 128>>>(points, factors, means, shares, out, n); }},
    }, {{out, n}});
}
