// volatility_surface_for_blocks_of_64, side flawed: fast functions, and an approximation of one's own.
#include "../tried.cuh"

constexpr int ACROSS = 96, ALONG = 104, SMS = 132;
struct Calls { const float *moneyness, *years; float *price; int count; };
enum { PRECISE, SERIES, TANH };

__device__ __forceinline__ float volatility(const float *surface, float moneyness, float years) {
    const float u = (moneyness - 0.5f) * (ACROSS - 1.001f), v = years * ((ALONG - 1.001f) / 5.f);
    const int i = static_cast<int>(u), j = static_cast<int>(v);
    const float a = u - i, b = v - j;
    const float *at = surface + j * ACROSS + i;
    return (1.f - b) * (at[0] + a * (at[1] - at[0])) + b * (at[ACROSS] + a * (at[ACROSS + 1] - at[ACROSS]));
}
__device__ __forceinline__ float root(float x) {
    float found;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(found) : "f"(x));
    return found;
}
// SERIES: within 8e-8 (Abramowitz and Stegun 26.2.17); TANH: within 4e-4.
template <int FORM>
__device__ __forceinline__ float normal_share(float x) {
    if (FORM == PRECISE) return normcdff(x);
    if (FORM == TANH) {
        float found;
        asm("tanh.approx.f32 %0, %1;" : "=f"(found) : "f"(0.79788456f * x * fmaf(0.044715f * x, x, 1.f)));
        return fmaf(0.5f, found, 0.5f);
    }
    const float t = __fdividef(1.f, fmaf(0.2316419f, fabsf(x), 1.f));
    const float tail = 0.39894228f * __expf(-0.5f * x * x) * t * fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.330274429f, -1.821255978f), 1.781477937f), -0.356563782f), 0.319381530f);
    return x < 0.f ? tail : 1.f - tail;
}
template <int FORM>
__device__ __forceinline__ float call_price(const float *surface, float moneyness, float years) {
    const float spread = volatility(surface, moneyness, years) * (FORM == PRECISE ? sqrtf(years) : root(years));
    const float d1 = (FORM == PRECISE ? __logf(moneyness) / spread : __fdividef(__logf(moneyness), spread)) + 0.5f * spread;
    return moneyness * normal_share<FORM>(d1) - normal_share<FORM>(d1 - spread);
}
template <int FORM>
__global__ void __launch_bounds__(64) price_calls(Calls calls, const float *__restrict__ surface) {
    __shared__ float held[ACROSS * ALONG];
    for (int k = threadIdx.x; k < ACROSS * ALONG; k += 64) held[k] = surface[k];
    __syncthreads();
    for (int i = blockIdx.x * 64 + threadIdx.x; i < calls.count; i += gridDim.x * 64) calls.price[i] = call_price<FORM>(held, calls.moneyness[i], calls.years[i]);
}

int main() {
    const int n = 1 << 23;
    std::vector<float> points(ACROSS * ALONG);
    for (int j = 0; j < ALONG; j++)
        for (int i = 0; i < ACROSS; i++) points[j * ACROSS + i] = 0.18f + 0.3f * std::pow(i / 95.f - 0.5f, 2.f) + 0.05f * std::exp(-0.03f * j) + 0.01f * std::sin(0.7f * i + 0.4f * j);
    const float *surface = copied(points);
    float *out = get<float>(n);
    const Calls calls{drawn<float>(n, 0.5, 1.5, 1), drawn<float>(n, 0.05, 5.0, 2), out, n};
    judge({{"as_it_is", [=] { price_calls<PRECISE><<<SMS * 5, 64>>>(calls, surface); }},
        {"fast_and_a_series", [=] { price_calls<SERIES><<<SMS * 5, 64>>>(calls, surface); }},
        {"fast_and_tanh", [=] { price_calls<TANH><<<SMS * 5, 64>>>(calls, surface); }}}, {{out, size_t(n)}});
}
