// sinking_dust_a_layer_at_a_time, side eight: products with reciprocals, fast division, algebra.
#include "../tried.cuh"

struct Column {
    const float *density, *thickness, *speed;
    int columns, layers;
};
// Nothing but dt stays the same from layer to layer: what can be done once is done once a layer, outside the chain through flux.
enum How { AS_IT_IS, FAST, RECIPROCALS, RECIPROCALS_FAST, ALGEBRA, ALGEBRA_FAST };
template <How HOW> __device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
    if (HOW == AS_IT_IS) {
        const float share = dt * speed / thickness, mass = (dust * density * thickness + dt * flux) / (1.f + share);
        flux = mass * speed / thickness;
        return mass / (density * thickness);
    }
    if (HOW == FAST) {
        const float share = __fdividef(dt * speed, thickness), mass = __fdividef(dust * density * thickness + dt * flux, 1.f + share);
        flux = __fdividef(mass * speed, thickness);
        return __fdividef(mass, density * thickness);
    }
    if (HOW == RECIPROCALS || HOW == RECIPROCALS_FAST) {  // thickness divides three times: once; the other two divisors stay
        auto inverse = [](float x) { return HOW == RECIPROCALS ? 1.f / x : __fdividef(1.f, x); };
        const float rate = speed * inverse(thickness), whole = density * thickness, kept = inverse(1.f + dt * rate), mass = (dust * whole + dt * flux) * kept;
        flux = mass * rate;
        return mass * inverse(whole);
    }
    // mass = numerator * thickness / (thickness + dt * speed): one reciprocal serves all.
    const float below = thickness + dt * speed, inverse = HOW == ALGEBRA ? 1.f / (density * below) : __fdividef(1.f, density * below);
    const float numerator = dust * density * thickness + dt * flux;
    flux = numerator * (speed * density * inverse);
    return numerator * inverse;
}
template <How HOW>
__global__ void __launch_bounds__(128) sink_dust_eight(Column c, const float *__restrict__ dust, float *__restrict__ after, float *__restrict__ ground, float dt) {
    const int x = blockIdx.x * 128 + threadIdx.x;
    if (x >= c.columns) return;
    float flux = 0.f;
    for (int first = 0; first < c.layers; first += 8) {
        float d[8], r[8], t[8], v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const size_t at = static_cast<size_t>(min(first + k, c.layers - 1)) * c.columns + x;
            d[k] = dust[at], r[k] = c.density[at], t[k] = c.thickness[at], v[k] = c.speed[at];
        }
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (first + k < c.layers) after[static_cast<size_t>(first + k) * c.columns + x] = sink<HOW>(flux, d[k], r[k], t[k], v[k], dt);
    }
    ground[x] = flux;
}

int main() {
    const int columns = 32768, layers = 80;
    const size_t all = size_t(columns) * layers;
    const float *density = drawn<float>(all, 0.1, 1.2, 1), *thickness = drawn<float>(all, 100, 900, 2), *speed = drawn<float>(all, 0.01, 2, 3), *dust = drawn<float>(all, 0, 1, 4);
    float *after = get<float>(all), *ground = get<float>(columns);
    const Column c{density, thickness, speed, columns, layers};
    judge({{"as_it_is", [=] { sink_dust_eight<AS_IT_IS><<<columns / 128, 128>>>(c, dust, after, ground, 300.f); }},
        {"reciprocals_fast", [=] { sink_dust_eight<RECIPROCALS_FAST><<<columns / 128, 128>>>(c, dust, after, ground, 300.f); }},
        {"fast", [=] { sink_dust_eight<FAST><<<columns / 128, 128>>>(c, dust, after, ground, 300.f); }},
        {"reciprocals", [=] { sink_dust_eight<RECIPROCALS><<<columns / 128, 128>>>(c, dust, after, ground, 300.f); }},
        {"algebra", [=] { sink_dust_eight<ALGEBRA><<<columns / 128, 128>>>(c, dust, after, ground, 300.f); }},
        {"algebra_fast", [=] { sink_dust_eight<ALGEBRA_FAST><<<columns / 128, 128>>>(c, dust, after, ground, 300.f); }}}, {{after, all}, {ground, columns}});
}
