// closing_prices_out_of_whole_days, side plane: a thread computes four neighbouring results.
#include "../tried.cuh"

__global__ void __launch_bounds__(256) price_trend_plane(const float *__restrict__ closes, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i + 4 >= count) return;
    const float mean = 0.2f * (closes[i] + closes[i + 1] + closes[i + 2] + closes[i + 3] + closes[i + 4]);
    out[i] = closes[i + 4] / mean - 1.0f;
}
template <bool VECTORS>
__global__ void __launch_bounds__(256) price_trend_four(const float *__restrict__ closes, float *__restrict__ out, int count) {
    const int i = 4 * (blockIdx.x * 256 + threadIdx.x);
    if (i + 4 >= count) return;
    float c[8], found[4];
    if (VECTORS) *reinterpret_cast<float4 *>(c) = *reinterpret_cast<const float4 *>(closes + i), *reinterpret_cast<float4 *>(c + 4) = *reinterpret_cast<const float4 *>(closes + i + 4);
    else
#pragma unroll
        for (int k = 0; k < 8; k++) c[k] = closes[i + k];
#pragma unroll
    for (int k = 0; k < 4; k++) found[k] = c[k + 4] / (0.2f * (c[k] + c[k + 1] + c[k + 2] + c[k + 3] + c[k + 4])) - 1.0f;
    if (VECTORS) *reinterpret_cast<float4 *>(out + i) = *reinterpret_cast<float4 *>(found);
    else
#pragma unroll
        for (int k = 0; k < 4; k++) out[i + k] = found[k];
}

int main() {
    const int n = 1 << 22;
    const float *closes = drawn<float>(n, 50, 60, 1);
    float *out = get<float>(n - 4);
    judge({{"as_it_is", [=] { price_trend_plane<<<n / 256, 256>>>(closes, out, n); }},
        {"four_by_words", [=] { price_trend_four<false><<<n / 1024, 256>>>(closes, out, n); }},
        {"four_by_vectors", [=] { price_trend_four<true><<<n / 1024, 256>>>(closes, out, n); }}}, {{out, size_t(n - 4)}});
}
