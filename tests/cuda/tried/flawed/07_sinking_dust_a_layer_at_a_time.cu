#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

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

// --- data, comparison, timing ---

__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__device__ void put(float *p, float v) { *p = v; }
__device__ void put(__half *p, float v) { *p = __float2half(v); }
template <typename T> __global__ void fill(T *data, size_t count, double low, double high, unsigned seed) {
    size_t i = blockIdx.x * size_t{256} + threadIdx.x;
    if (i < count) put(data + i, static_cast<float>(low + hash(static_cast<unsigned>(i) ^ hash(seed)) / 4294967296.0 * (high - low)));
}
void check(cudaError_t status) {
    if (status != cudaSuccess) printf("error: %s\n", cudaGetErrorString(status)), exit(1);
}
template <typename T> T *get(size_t count) {
    T *data;
    check(cudaMalloc(&data, count * sizeof(T)));
    return data;
}
template <typename T> T *drawn(size_t count, double low = -1, double high = 1) {
    static unsigned seed = 0;
    T *data = get<T>(count);
    fill<<<(count + 255) / 256, 256>>>(data, count, low, high, ++seed);
    check(cudaGetLastError());
    return data;
}
struct Form {
    const char *name;
    std::function<void()> run;
    double diff = 0;
};
float median_time(const Form &f) {
    static void *flush = get<char>(128 << 20);
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    std::vector<float> times;
    for (int i = 0; i < 60; ++i) {
        cudaMemsetAsync(flush, 0, 128 << 20);
        cudaEventRecord(a), f.run(), cudaEventRecord(b), check(cudaEventSynchronize(b));
        float ms = 0.f;
        cudaEventElapsedTime(&ms, a, b);
        if (i > 9) times.push_back(ms * 1e3f);
    }
    cudaEventDestroy(a), cudaEventDestroy(b);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}
struct Output { const float *data; size_t count; };
// The difference is relative to the value or, where that is smaller, to the mean magnitude of the output.
void judge(int index, std::vector<Form> forms, const std::vector<Output> &outputs) {
    std::vector<std::vector<float>> first;
    for (Form &f : forms) {
        for (const Output &o : outputs) cudaMemset(const_cast<float *>(o.data), 0xff, o.count * 4);
        f.run();
        check(cudaGetLastError()), check(cudaDeviceSynchronize());
        std::vector<std::vector<float>> now;
        for (const Output &o : outputs) now.emplace_back(o.count), check(cudaMemcpy(now.back().data(), o.data, o.count * 4, cudaMemcpyDeviceToHost));
        if (first.empty()) first = now;
        for (size_t k = 0; k < now.size(); ++k) {
            double mean = 0;
            for (float v : first[k]) mean += std::fabs(v);
            mean = std::max(mean / first[k].size(), 1e-30);
            for (size_t i = 0; i < now[k].size(); ++i) {
                double d = std::fabs(double(now[k][i]) - first[k][i]) / std::max(std::fabs(double(first[k][i])), mean);
                f.diff = std::max(f.diff, std::isnan(d) ? 1e99 : d);
            }
        }
    }
    for (int turn = 0; turn < 2; ++turn)
        for (const Form &f : forms) printf("STMT %d %s %.3f %.3g\n", index, f.name, median_time(f), f.diff);
    check(cudaDeviceSynchronize());
}

int main() {
    const int n = 32768, layers = 80;
    const size_t all = size_t(n) * layers;
    const Column c{drawn<float>(all, 0.1, 1.2), drawn<float>(all, 100, 900), drawn<float>(all, 0.01, 2), n, layers};
    const float *dust = drawn<float>(all, 0, 1);
    float *after = get<float>(all), *ground = get<float>(n);
    const float dt = 300.f;
    judge(7, {{"as_it_is", [=] { sink_dust<<<256, 128>>>(c, dust, after, ground, dt); }},
        {"reciprocals_and_fast", [=] { sink_dust_less<SharedReciprocal, true><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"thickness_once_and_fast", [=] { sink_dust_less<Reciprocal, true><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"fast_functions", [=] { sink_dust_less<Plain, true><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"thickness_once", [=] { sink_dust_less<Reciprocal, false><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"reciprocals", [=] { sink_dust_less<SharedReciprocal, false><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"algebra_one_division", [=] { sink_dust_less<Algebra, false><<<256, 128>>>(c, dust, after, ground, dt); }},
        {"algebra_one_fast_division", [=] { sink_dust_less<Algebra, true><<<256, 128>>>(c, dust, after, ground, dt); }}},
        {{after, all}, {ground, size_t(n)}});
}
