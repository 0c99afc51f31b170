// 17: dust that sinks, side "eight"; products with reciprocals, fast division, algebra.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s: line %d\n", cudaGetErrorString(e), __LINE__); return 1; } } while (0)

__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__global__ void fill(float *data, size_t count, float low, float high, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) data[i] = low + (high - low) * (hash(unsigned(i) ^ seed * 0x9e3779b9u) >> 8) / 16777216.f;
}
static double difference(const std::vector<float> &right, const std::vector<float> &other) {
    double most = 0.0;
    for (size_t i = 0; i < right.size(); ++i) {
        const double d = right[i] == other[i] ? 0.0 : std::abs(double(right[i]) - other[i]) / std::max(std::abs(double(right[i])), 1e-30);
        if (!(d <= most)) most = d;  // NaN, too
        if (std::isnan(most)) break;
    }
    return most;
}
// Median of 50 launches after 10, each behind a flush of the L2 cache and `prepare`.
static float median_time(const std::function<void()> &prepare, const std::function<void()> &run, void *flush) {
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    std::vector<float> times;
    for (int i = 0; i < 60; ++i) {
        prepare(), cudaMemsetAsync(flush, 0, 128 << 20);
        cudaEventRecord(a), run(), cudaEventRecord(b), cudaEventSynchronize(b);
        float ms = 0.f;
        cudaEventElapsedTime(&ms, a, b);
        if (i > 9) times.push_back(ms * 1e3f);
    }
    cudaEventDestroy(a), cudaEventDestroy(b);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}
struct Form { const char *name; std::function<void()> run; double diff; };

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
    float *density, *thickness, *speed, *dust, *out;  // out: after, then ground
    void *flush;
    CHECK(cudaMalloc(&density, all * 4)); CHECK(cudaMalloc(&thickness, all * 4)); CHECK(cudaMalloc(&speed, all * 4)); CHECK(cudaMalloc(&dust, all * 4));
    CHECK(cudaMalloc(&out, (all + columns) * 4)); CHECK(cudaMalloc(&flush, 128 << 20));
    fill<<<512, 256>>>(density, all, 0.1f, 1.2f, 1), fill<<<512, 256>>>(thickness, all, 100.f, 900.f, 2);
    fill<<<512, 256>>>(speed, all, 0.01f, 2.f, 3), fill<<<512, 256>>>(dust, all, 0.f, 1.f, 4);
    CHECK(cudaDeviceSynchronize());
    const Column c{density, thickness, speed, columns, layers};

    std::vector<Form> forms = {
        {"as_it_is", [&] { sink_dust_eight<AS_IT_IS><<<columns / 128, 128>>>(c, dust, out, out + all, 300.f); }, 0},
        {"reciprocals_fast", [&] { sink_dust_eight<RECIPROCALS_FAST><<<columns / 128, 128>>>(c, dust, out, out + all, 300.f); }, 0},
        {"fast", [&] { sink_dust_eight<FAST><<<columns / 128, 128>>>(c, dust, out, out + all, 300.f); }, 0},
        {"reciprocals", [&] { sink_dust_eight<RECIPROCALS><<<columns / 128, 128>>>(c, dust, out, out + all, 300.f); }, 0},
        {"algebra", [&] { sink_dust_eight<ALGEBRA><<<columns / 128, 128>>>(c, dust, out, out + all, 300.f); }, 0},
        {"algebra_fast", [&] { sink_dust_eight<ALGEBRA_FAST><<<columns / 128, 128>>>(c, dust, out, out + all, 300.f); }, 0},
    };
    std::vector<float> right(all + columns), other(all + columns);
    for (Form &form : forms) {
        CHECK(cudaMemset(out, 0xff, (all + columns) * 4));
        form.run();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(other.data(), out, other.size() * 4, cudaMemcpyDeviceToHost));
        if (&form == &forms[0]) right = other;
        form.diff = difference(right, other);
    }
    for (int turn = 0; turn < 2; ++turn)
        for (const Form &form : forms) printf("STMT 17 %s %.3f %.3g\n", form.name, median_time([] {}, form.run, flush), form.diff);
    CHECK(cudaDeviceSynchronize());
}
