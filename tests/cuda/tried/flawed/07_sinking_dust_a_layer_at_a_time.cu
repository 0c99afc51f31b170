// sinking_dust_a_layer_at_a_time, side flawed: reciprocals in place of repeated divisions, fast functions or algebra
#include "../tried.cuh"

struct Column {
    const float *density, *thickness, *speed;
    int columns, layers;
};

__device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
    const float share = dt * speed / thickness, mass = (dust * density * thickness + dt * flux) / (1.f + share);
    flux = mass * speed / thickness;
    return mass / (density * thickness);
}

__global__ void __launch_bounds__(128) sink_dust(Column c, const float *dust, float *after, float *ground, float dt) {
    const int x = blockIdx.x * 128 + threadIdx.x;
    if (x >= c.columns) return;
    float flux = 0.f;
    for (int z = 0; z < c.layers; z++) {
        const size_t at = static_cast<size_t>(z) * c.columns + x;
        after[at] = sink(flux, dust[at], c.density[at], c.thickness[at], c.speed[at], dt);
    }
    ground[x] = flux;
}

template <bool FAST> __device__ __forceinline__ float ratio(float a, float b) { return FAST ? __fdividef(a, b) : a / b; }

// Each division as it stands.
struct Plain {
    template <bool FAST> static __device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
        const float share = ratio<FAST>(dt * speed, thickness), mass = ratio<FAST>(dust * density * thickness + dt * flux, 1.f + share);
        flux = ratio<FAST>(mass * speed, thickness);
        return ratio<FAST>(mass, density * thickness);
    }
};
// Thickness is divided by once: three divisions.
struct Reciprocal {
    template <bool FAST> static __device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
        const float rate = speed * ratio<FAST>(1.f, thickness), mass = ratio<FAST>(dust * density * thickness + dt * flux, 1.f + dt * rate);
        flux = mass * rate;
        return ratio<FAST>(mass, density * thickness);
    }
};
// One reciprocal of density times thickness, for all but the division of the mass: two divisions.
struct SharedReciprocal {
    template <bool FAST> static __device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
        const float air = density * thickness, inverse = ratio<FAST>(1.f, air), rate = speed * density * inverse;
        const float mass = ratio<FAST>(dust * air + dt * flux, 1.f + dt * rate);
        flux = mass * rate;
        return mass * inverse;
    }
};
// Algebra: mass = X * thickness / (thickness + dt * speed), so a single division serves all.
struct Algebra {
    template <bool FAST> static __device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
        const float inverse = ratio<FAST>(1.f, density * (thickness + dt * speed));
        const float now = (dust * density * thickness + dt * flux) * inverse;
        flux = now * (density * speed);
        return now;
    }
};

template <typename How, bool FAST> __global__ void __launch_bounds__(128) sink_dust_less(Column c, const float *dust, float *after, float *ground, float dt) {
    const int x = blockIdx.x * 128 + threadIdx.x;
    if (x >= c.columns) return;
    float flux = 0.f;
    for (int z = 0; z < c.layers; z++) {
        const size_t at = static_cast<size_t>(z) * c.columns + x;
        after[at] = How::template sink<FAST>(flux, dust[at], c.density[at], c.thickness[at], c.speed[at], dt);
    }
    ground[x] = flux;
}

int main() {
    const int n = 32768, layers = 80;
    const size_t all = size_t(n) * layers;
    const Column c{drawn<float>(all, 0.1, 1.2, 1), drawn<float>(all, 100, 900, 2), drawn<float>(all, 0.01, 2, 3), n, layers};
    const float *dust = drawn<float>(all, 0, 1, 4);
    float *after = get<float>(all), *ground = get<float>(n);
    const float dt = 300.f;
    judge({{"as_it_is", [=] { sink_dust<<<256, 128>>>(c, dust, after, ground, dt); }},
        {"reciprocals_and_fast", [=] { sink_dust_less<SharedReciprocal, true><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"thickness_once_and_fast", [=] { sink_dust_less<Reciprocal, true><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"fast_functions", [=] { sink_dust_less<Plain, true><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"thickness_once", [=] { sink_dust_less<Reciprocal, false><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"reciprocals", [=] { sink_dust_less<SharedReciprocal, false><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"algebra_one_division", [=] { sink_dust_less<Algebra, false><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"algebra_one_fast_division", [=] { sink_dust_less<Algebra, true><<<256, 128>>>(c, dust, after, ground, dt); }}},
        {{after, all}, {ground, size_t(n)}});
}
