// volatility_surface_for_blocks_of_64, side four: use less shared memory a block; larger blocks could share it.
#include "../tried.cuh"

constexpr int ACROSS = 96, ALONG = 104, SMS = 132;
struct Calls { const float *moneyness, *years; float *price; int count; };

__device__ __forceinline__ float volatility(const float *surface, float moneyness, float years) {
    const float u = (moneyness - 0.5f) * (ACROSS - 1.001f), v = years * ((ALONG - 1.001f) / 5.f);
    const int i = static_cast<int>(u), j = static_cast<int>(v);
    const float a = u - i, b = v - j;
    const float *at = surface + j * ACROSS + i;
    return (1.f - b) * (at[0] + a * (at[1] - at[0])) + b * (at[ACROSS] + a * (at[ACROSS + 1] - at[ACROSS]));
}
__device__ __forceinline__ float call_price(const float *surface, float moneyness, float years) {
    const float spread = volatility(surface, moneyness, years) * sqrtf(years), d1 = __logf(moneyness) / spread + 0.5f * spread;
    return moneyness * normcdff(d1) - normcdff(d1 - spread);
}
__device__ __forceinline__ void price_all(const Calls &calls, const float *surface, int threads) {
    auto moneyness = reinterpret_cast<const float4 *>(calls.moneyness), years = reinterpret_cast<const float4 *>(calls.years);
    auto price = reinterpret_cast<float4 *>(calls.price);
    for (int i = blockIdx.x * threads + threadIdx.x; i < calls.count / 4; i += gridDim.x * threads) {
        const float4 m = moneyness[i], t = years[i];
        price[i] = make_float4(call_price(surface, m.x, t.x), call_price(surface, m.y, t.y), call_price(surface, m.z, t.z), call_price(surface, m.w, t.w));
    }
}
// As in the study.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) price_calls_four(Calls calls, const float *__restrict__ surface) {
    __shared__ float held[ACROSS * ALONG];
    for (int k = threadIdx.x; k < ACROSS * ALONG; k += THREADS) held[k] = surface[k];
    __syncthreads();
    auto moneyness = reinterpret_cast<const float4 *>(calls.moneyness), years = reinterpret_cast<const float4 *>(calls.years);
    auto price = reinterpret_cast<float4 *>(calls.price);
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < calls.count / 4; i += gridDim.x * THREADS) {
        const float4 m = moneyness[i], t = years[i];
        price[i] = make_float4(call_price(held, m.x, t.x), call_price(held, m.y, t.y), call_price(held, m.z, t.z), call_price(held, m.w, t.w));
    }
}
// Larger blocks share the surface; PER_SM of them have registers.
template <int THREADS, int PER_SM>
__global__ void __launch_bounds__(THREADS, PER_SM) price_calls_larger(Calls calls, const float *__restrict__ surface) {
    __shared__ float held[ACROSS * ALONG];
    for (int k = threadIdx.x; k < ACROSS * ALONG; k += THREADS) held[k] = surface[k];
    __syncthreads();
    price_all(calls, held, THREADS);
}
// No shared memory: the surface, which all blocks only read, comes through L1.
__global__ void __launch_bounds__(256) price_calls_cached(Calls calls, const float *__restrict__ surface) { price_all(calls, surface, 256); }

int main() {
    const int n = 1 << 23;
    std::vector<float> points(ACROSS * ALONG);
    for (int j = 0; j < ALONG; j++)
        for (int i = 0; i < ACROSS; i++) points[j * ACROSS + i] = 0.18f + 0.3f * std::pow(i / 95.f - 0.5f, 2.f) + 0.05f * std::exp(-0.03f * j) + 0.01f * std::sin(0.7f * i + 0.4f * j);
    const float *surface = copied(points);
    float *out = get<float>(n);
    const Calls calls{drawn<float>(n, 0.5, 1.5, 1), drawn<float>(n, 0.05, 5.0, 2), out, n};
    judge({
        {"as_it_is", [=] { price_calls_four<64><<<660, 64>>>(calls, surface); }},
        {"blocks_of_128", [=] { price_calls_larger<128, 5><<<SMS * 5, 128>>>(calls, surface); }},
        {"blocks_of_256", [=] { price_calls_larger<256, 5><<<SMS * 5, 256>>>(calls, surface); }},
        {"blocks_of_384", [=] { price_calls_larger<384, 5><<<SMS * 5, 384>>>(calls, surface); }},
        {"blocks_of_512_two_an_sm", [=] { price_calls_larger<512, 2><<<SMS * 2, 512>>>(calls, surface); }},
        {"blocks_of_512_four_an_sm", [=] { price_calls_larger<512, 4><<<SMS * 4, 512>>>(calls, surface); }},
        {"blocks_of_1024", [=] { price_calls_larger<1024, 2><<<SMS * 2, 1024>>>(calls, surface); }},
        {"no_shared_memory", [=] { price_calls_cached<<<SMS * 8, 256>>>(calls, surface); }},
    }, {{out, n}});
}
