// Pieces of geodesy, finance, astronomy and geometry. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- the nearest station of each place on the globe ---

constexpr int STATIONS = 128;

__global__ void nearest_station(const float2 *places, const float2 *stations, float *distance, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = places[i];
    float best = 1e30f;
    for (int s = 0; s < STATIONS; ++s) {
        float2 q = stations[s];
        float up = (q.x - p.x) * (3.14159265358979 / 180.0) / 2.0, across = (q.y - p.y) * (3.14159265358979 / 180.0) / 2.0;
        float a = sinf(up) * sinf(up) + cosf(p.x * 0.017453292f) * cosf(q.x * 0.017453292f) * sinf(across) * sinf(across);
        best = fminf(best, 2.0 * 6371.0 * asinf(fminf(sqrtf(a), 1.f)));
    }
    distance[i] = best;
}
__global__ void nearest_station_float(const float2 *__restrict__ places, const float2 *__restrict__ stations, float *__restrict__ distance, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float half = 3.14159265f / 360.f;
    float2 p = places[i];
    float best = 1e30f;
    for (int s = 0; s < STATIONS; ++s) {
        float2 q = stations[s];
        float up = (q.x - p.x) * half, across = (q.y - p.y) * half;
        float a = sinf(up) * sinf(up) + cosf(p.x * 0.017453292f) * cosf(q.x * 0.017453292f) * sinf(across) * sinf(across);
        best = fminf(best, 2.f * 6371.f * asinf(fminf(sqrtf(a), 1.f)));
    }
    distance[i] = best;
}
// Points on the unit sphere: a distance is a difference squared, and the angle comes once at the end.
__global__ void nearest_station_vectors(const float2 *__restrict__ places, const float2 *__restrict__ stations, float *__restrict__ distance, int n) {
    __shared__ float4 on_sphere[STATIONS];
    const float degree = 0.017453292f;
    auto sphere = [degree](float2 p) { return float4{cosf(p.x * degree) * cosf(p.y * degree), cosf(p.x * degree) * sinf(p.y * degree), sinf(p.x * degree), 0.f}; };
    for (int s = threadIdx.x; s < STATIONS; s += blockDim.x) on_sphere[s] = sphere(stations[s]);
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = sphere(places[i]);
    float best = 4.f;
#pragma unroll 8
    for (int s = 0; s < STATIONS; ++s) {
        float x = on_sphere[s].x - p.x, y = on_sphere[s].y - p.y, z = on_sphere[s].z - p.z;
        best = fminf(best, x * x + y * y + z * z);
    }
    distance[i] = 2.f * 6371.f * asinf(fminf(sqrtf(best) * 0.5f, 1.f));
}

Study stations("nearest_station_degrees_in_double", "geodesy", 1 << 19, "distance of 524288 places on the globe to the nearest of 128 stations",
    "degrees become radians by double constants: quotients, products and conversions in FP64 for each pair",
    {{"floats", "the same in FP32", {"double_precision"}}, {"vectors", "points on the unit sphere: no angles but the last", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *places = b.random<float>(2 * n, -80, 80), *stations = b.random<float>(2 * STATIONS, -80, 80), *distance = b.output<float>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(nearest_station, n / 256, 256, 0, (float2 *)places, (float2 *)stations, distance, n)},
            {"floats", launch(nearest_station_float, n / 256, 256, 0, (float2 *)places, (float2 *)stations, distance, n)},
            {"vectors", launch(nearest_station_vectors, n / 256, 256, 0, (float2 *)places, (float2 *)stations, distance, n)}};
    });

// --- likelihood of returns under many candidates of a model of changing variance ---

__global__ void likelihoods(const float *returns, const float4 *candidates, float *out, int count, int days) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= count) return;
    float4 k = candidates[c];
    float variance = k.w, sum = 0.f;
    for (int t = 0; t < days; ++t) {
        float square = returns[t] * returns[t];
        sum += logf(variance) + square / variance;
        variance = k.x + k.y * square + k.z * variance;
    }
    out[c] = -0.5f * sum;
}
__global__ void likelihoods_fast(const float *__restrict__ returns, const float4 *__restrict__ candidates, float *__restrict__ out, int count, int days) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= count) return;
    float4 k = candidates[c];
    float variance = k.w, sum = 0.f;
    for (int t = 0; t < days; ++t) {
        float square = returns[t] * returns[t];
        sum += __logf(variance) + __fdividef(square, variance);
        variance = k.x + k.y * square + k.z * variance;
    }
    out[c] = -0.5f * sum;
}
// Variances of eight days are multiplied: one logarithm for all of them.
__global__ void likelihoods_products(const float *__restrict__ returns, const float4 *__restrict__ candidates, float *__restrict__ out, int count, int days) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= count) return;
    float4 k = candidates[c];
    float variance = k.w, sum = 0.f;
    for (int t = 0; t < days; t += 8) {
        float product = 1.f;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            float square = returns[t + j] * returns[t + j];
            product *= variance;
            sum += square / variance;
            variance = k.x + k.y * square + k.z * variance;
        }
        sum += logf(product);
    }
    out[c] = -0.5f * sum;
}

Study variances("return_likelihood_log_each_day", "finance", 1 << 18, "likelihood of 1024 returns under 262144 candidates of a model of changing variance",
    "a precise logarithm and a precise quotient a day",
    {{"fast", "the fast logarithm and quotient", {"expensive_math"}}, {"products", "one logarithm for the product of eight variances", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int days = 1024;
        float *returns = b.random<float>(days, -1, 1), *candidates = b.random<float>(4 * n, 0.05, 0.4), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(likelihoods, n / 256, 256, 0, returns, (float4 *)candidates, out, n, days)},
            {"fast", launch(likelihoods_fast, n / 256, 256, 0, returns, (float4 *)candidates, out, n, days)},
            {"products", launch(likelihoods_products, n / 256, 256, 0, returns, (float4 *)candidates, out, n, days)}};
    });

// --- cash flows discounted by a curve given at 96 maturities ---

constexpr int PILLARS = 96;
struct Curve {
    const float *maturity, *rate;
};
__device__ __forceinline__ float discounted(float amount, float time, float m0, float m1, float r0, float r1) {
    return amount * __expf(-time * (r0 + (r1 - r0) * __fdividef(time - m0, m1 - m0)));
}
__global__ void discount(Curve curve, const float *amounts, const float *times, float *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = times[i];
    int k = 1;
    while (k < PILLARS - 1 && curve.maturity[k] < t) ++k;
    values[i] = discounted(amounts[i], t, curve.maturity[k - 1], curve.maturity[k], curve.rate[k - 1], curve.rate[k]);
}
__global__ void __launch_bounds__(256) discount_halves(Curve curve, const float *__restrict__ amounts, const float *__restrict__ times, float *__restrict__ values, int n) {
    __shared__ float maturity[128], rate[128];
    for (int i = threadIdx.x; i < 128; i += 256) maturity[i] = i < PILLARS ? curve.maturity[i] : 1e30f, rate[i] = i < PILLARS ? curve.rate[i] : 0.f;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float t = times[i];
        int k = 0;  // how many of the pillars 1 ... lie before t
#pragma unroll
        for (int step = 64; step; step /= 2) k += k + step < 127 && maturity[k + step] < t ? step : 0;
        k = min(k + 1, PILLARS - 1);
        values[i] = discounted(amounts[i], t, maturity[k - 1], maturity[k], rate[k - 1], rate[k]);
    }
}
// Where a time lies is looked up in 1024 equal steps first; at most a pillar or two are left to walk.
__global__ void __launch_bounds__(256) discount_steps(Curve curve, const float *__restrict__ amounts, const float *__restrict__ times, float *__restrict__ values, int n, float longest) {
    __shared__ float maturity[PILLARS], rate[PILLARS];
    __shared__ unsigned char first[1024];
    for (int i = threadIdx.x; i < PILLARS; i += 256) maturity[i] = curve.maturity[i], rate[i] = curve.rate[i];
    __syncthreads();
    for (int s = threadIdx.x; s < 1024; s += 256) {
        float t = s * longest / 1024.f * 0.99999f;
        int low = 1, high = PILLARS - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (maturity[middle] < t) low = middle + 1;
            else high = middle;
        }
        first[s] = low;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float t = times[i];
        int k = first[min(static_cast<int>(t * (1024.f / longest)), 1023)];
        while (k < PILLARS - 1 && maturity[k] < t) ++k;
        values[i] = discounted(amounts[i], t, maturity[k - 1], maturity[k], rate[k - 1], rate[k]);
    }
}

Study discounts("cash_flows_walk_along_the_curve", "finance", 1 << 24, "16777216 cash flows discounted by a curve of 96 maturities",
    "each flow walks along the curve until its time: lanes need one to 95 steps",
    {{"halves", "the curve in shared memory, seven halving steps", {"branch_divergence"}},
        {"steps", "a table of 1024 equal steps in shared memory", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> maturity(PILLARS), rate(PILLARS);
        for (int k = 0; k < PILLARS; ++k) maturity[k] = 50.f * k / (PILLARS - 1) * (0.5f + 0.5f * k / (PILLARS - 1)), rate[k] = 0.02f + 0.0003f * (hash(k) % 64);
        Curve curve{b.copy(maturity), b.copy(rate)};
        float *amounts = b.random<float>(n, 1, 100), *times = b.random<float>(n, 0.01, 49.9), *values = b.output<float>(n);
        b.tolerance = 1e-3;
        int grid = 8 * multiprocessors();
        return {{"flawed", launch(discount, n / 256, 256, 0, curve, amounts, times, values, n)}, {"halves", launch(discount_halves, grid, 256, 0, curve, amounts, times, values, n)},
            {"steps", launch(discount_steps, grid, 256, 0, curve, amounts, times, values, n, 50.f)}};
    });

// --- Kepler's equation for many bodies ---

__global__ void eccentric(const float *mean, const float *eccentricity, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = mean[i], e = eccentricity[i], x = m, step;
    int rounds = 0;
    do {
        step = (x - e * sin(x) - m) / (1.0 - e * cos(x));
        x -= step;
    } while (fabsf(step) > 1e-6f && ++rounds < 20);
    out[i] = x;
}
__global__ void eccentric_float(const float *__restrict__ mean, const float *__restrict__ eccentricity, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = mean[i], e = eccentricity[i], x = m, step;
    int rounds = 0;
    do {
        float s, c;
        sincosf(x, &s, &c);
        step = (x - e * s - m) / (1.f - e * c);
        x -= step;
    } while (fabsf(step) > 1e-6f && ++rounds < 20);
    out[i] = x;
}
// A better start and three steps of third order for everyone.
__global__ void eccentric_fixed(const float *__restrict__ mean, const float *__restrict__ eccentricity, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = mean[i], e = eccentricity[i], s, c;
    sincosf(m, &s, &c);
    float x = m + e * s * (1.f + e * c);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        sincosf(x, &s, &c);
        float f = x - e * s - m, slope = 1.f - e * c;
        x -= f * slope / (slope * slope - 0.5f * f * e * s);
    }
    out[i] = x;
}

Study bodies("kepler_one_double_literal", "astronomy", 1 << 23, "Kepler's equation for 8388608 bodies by Newton's method, float",
    "a literal of FP64 makes each step's quotient FP64, and sine and cosine are worked out apart",
    {{"floats", "the same in FP32 with one sincosf", {"double_precision"}}, {"fixed", "a better start and three steps of third order in FP32", {"double_precision", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        float *mean = b.random<float>(n, 0, 3.14), *e = b.random<float>(n, 0, 0.6), *out = b.output<float>(n);
        b.tolerance = 1e-4;
        return {{"flawed", launch(eccentric, n / 256, 256, 0, mean, e, out, n)}, {"floats", launch(eccentric_float, n / 256, 256, 0, mean, e, out, n)},
            {"fixed", launch(eccentric_fixed, n / 256, 256, 0, mean, e, out, n)}};
    });

// --- how much of a cell triangles cover ---

__device__ __forceinline__ float2 crossing(float2 a, float2 b, int axis, float limit) {
    float pa = axis ? a.y : a.x, pb = axis ? b.y : b.x, t = (limit - pa) / (pb - pa);
    return {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
}
__device__ __forceinline__ bool inside(float2 p, int axis, float sign, float limit) { return sign * ((axis ? p.y : p.x) - limit) >= 0.f; }

template <typename Corners>
__device__ __forceinline__ float covered(const float2 *triangles, int i, Corners now, Corners then) {
    for (int k = 0; k < 3; ++k) now[k] = triangles[3 * i + k];
    int count = 3;
    for (int side = 0; side < 4; ++side) {
        int axis = side / 2, kept = 0;
        float sign = side % 2 ? -1.f : 1.f, limit = side % 2 ? 1.f : 0.f;
        for (int k = 0; k < count; ++k) {
            float2 a = now[k], b = now[k + 1 < count ? k + 1 : 0];
            bool ia = inside(a, axis, sign, limit), ib = inside(b, axis, sign, limit);
            if (ia) then[kept++] = a;
            if (ia != ib) then[kept++] = crossing(a, b, axis, limit);
        }
        Corners other = now;
        now = then, then = other, count = kept;
    }
    float area = 0.f;
    for (int k = 0; k < count; ++k) {
        float2 a = now[k], b = now[k + 1 < count ? k + 1 : 0];
        area += a.x * b.y - a.y * b.x;
    }
    return 0.5f * fabsf(area);
}
__global__ void __launch_bounds__(128) coverage(const float2 *triangles, float *areas, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 first[12], second[12];
    areas[i] = covered<float2 *>(triangles, i, first, second);
}
struct Strip {  // a thread's corners in shared memory
    float2 *base;
    __device__ float2 &operator[](int k) const { return base[k * 64]; }
};
__global__ void __launch_bounds__(64) coverage_shared(const float2 *__restrict__ triangles, float *areas, int n) {
    __shared__ float2 corners[2][12][64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    areas[i] = covered<Strip>(triangles, i, Strip{&corners[0][0][threadIdx.x]}, Strip{&corners[1][0][threadIdx.x]});
}
// Corners flow through the four sides one by one: each side remembers its first and last, none is stored.
struct Sum {
    float2 first{}, last{};
    bool any = false;
    float area = 0.f;
    __device__ void put(float2 p) {
        if (any) area += last.x * p.y - last.y * p.x;
        else first = p, any = true;
        last = p;
    }
    __device__ float close() { return any ? area + last.x * first.y - last.y * first.x : 0.f; }
};
template <int SIDE>
struct Clip {
    static constexpr int AXIS = SIDE / 2;
    static constexpr float SIGN = SIDE % 2 ? -1.f : 1.f, LIMIT = SIDE % 2 ? 1.f : 0.f;
    Clip<SIDE + 1> next;
    float2 first{}, last{};
    bool any = false;
    __device__ void edge(float2 a, float2 b) {
        bool ia = inside(a, AXIS, SIGN, LIMIT), ib = inside(b, AXIS, SIGN, LIMIT);
        if (ia) next.put(a);
        if (ia != ib) next.put(crossing(a, b, AXIS, LIMIT));
    }
    __device__ void put(float2 p) {
        if (any) edge(last, p);
        else first = p, any = true;
        last = p;
    }
    __device__ float close() {
        if (any) edge(last, first);
        return next.close();
    }
};
template <>
struct Clip<4> : Sum {};
__global__ void __launch_bounds__(128) coverage_stream(const float2 *__restrict__ triangles, float *areas, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Clip<0> sides;
    for (int k = 0; k < 3; ++k) sides.put(triangles[3 * i + k]);
    areas[i] = 0.5f * fabsf(sides.close());
}

Study covers("clipped_corners_in_local_arrays", "graphics", 1 << 22, "area of 4194304 triangles within a square, by clipping at its four sides",
    "corners are kept in two arrays with indices known at run time: they lie in local memory",
    {{"shared", "the arrays in shared memory", {"local_memory"}}, {"stream", "corners flow through the four sides, none is stored", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        float *triangles = b.random<float>(6 * n, -0.5, 1.5), *areas = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(coverage, n / 128, 128, 0, (float2 *)triangles, areas, n)}, {"shared", launch(coverage_shared, n / 64, 64, 0, (float2 *)triangles, areas, n)},
            {"stream", launch(coverage_stream, n / 128, 128, 0, (float2 *)triangles, areas, n)}};
    });

}  // namespace
