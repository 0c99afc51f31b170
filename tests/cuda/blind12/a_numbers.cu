// Statistics, finite fields, the ocean and flames. Each kernel but the sound one has one weakness and two ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- columns of a trace combined by powers of a challenge, modulo 2^64 - 2^32 + 1 ---

using Word = unsigned long long;
constexpr Word PRIME = 0xffffffff00000001ull, LOW = 0xffffffffull;
constexpr int COLUMNS = 32;

struct Powers {
    Word of[COLUMNS];
};

__device__ __forceinline__ Word times_by_remainder(Word a, Word b) { return static_cast<Word>(static_cast<unsigned __int128>(a) * b % PRIME); }
// 2^64 is 2^32 - 1, 2^96 is -1.
__device__ __forceinline__ Word folded(Word low, Word high) {
    const Word top = high >> 32, middle = high & LOW;
    Word rest = low - top;
    if (low < top) rest -= LOW;
    const Word add = (middle << 32) - middle;
    Word sum = rest + add;
    if (sum < add) sum += LOW;
    return sum >= PRIME ? sum - PRIME : sum;
}
__device__ __forceinline__ Word plus(Word a, Word b) {
    const Word sum = a + b;
    return sum < a || sum >= PRIME ? sum - PRIME : sum;
}

__global__ void __launch_bounds__(256) combine_by_remainder(const Word *__restrict__ trace, Word *__restrict__ out, Powers powers, int rows) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    Word sum = 0;
    for (int c = 0; c < COLUMNS; c++) sum = plus(sum, times_by_remainder(trace[static_cast<size_t>(c) * rows + row], powers.of[c]));
    out[row] = sum;
}
__global__ void __launch_bounds__(256) combine_folded(const Word *__restrict__ trace, Word *__restrict__ out, Powers powers, int rows) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    Word sum = 0;
#pragma unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        const Word v = trace[static_cast<size_t>(c) * rows + row];
        sum = plus(sum, folded(v * powers.of[c], __umul64hi(v, powers.of[c])));
    }
    out[row] = sum;
}
// Products are added up in three words; their sum is reduced once. 2^128 is -2^32.
__global__ void __launch_bounds__(256) combine_late(const Word *__restrict__ trace, Word *__restrict__ out, Powers powers, int rows) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    Word low = 0, high = 0, carries = 0;
#pragma unroll 8
    for (int c = 0; c < COLUMNS; c++) {
        const Word v = trace[static_cast<size_t>(c) * rows + row], a = v * powers.of[c], b = __umul64hi(v, powers.of[c]);
        low += a;
        const Word up = low < a;
        high += b;
        carries += high < b;
        high += up;
        carries += high < up;
    }
    const Word sum = folded(low, high), less = carries << 32;
    out[row] = sum >= less ? sum - less : sum + (PRIME - less);
}

Study combine("trace_columns_by_wide_remainders", "cryptography", 1 << 20, "32 columns of 1048576 field elements of 64 bits combined by powers of a challenge",
    "each product of 128 bits is reduced by a general division",
    {{"folded", "reduced by the form of the prime", {"integer_arithmetic"}}, {"late", "products added up in three words, their sum reduced once", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Word> trace(n * COLUMNS);
        for (size_t i = 0; i < trace.size(); i++) trace[i] = (static_cast<Word>(hash(static_cast<unsigned>(i))) << 32 | hash(static_cast<unsigned>(i) + 0x9e3779b9u)) % PRIME;
        Powers powers;
        powers.of[0] = 1;
        for (int c = 1; c < COLUMNS; c++) powers.of[c] = static_cast<Word>(static_cast<unsigned __int128>(powers.of[c - 1]) * 0x123456789abcdefull % PRIME);
        const Word *values = b.copy(trace);
        Word *out = b.output<Word>(n);
        b.tolerance = 0.0;
        const int rows = static_cast<int>(n);
        return {{"flawed", launch(combine_by_remainder, n / 256, 256, 0, values, out, powers, rows)}, {"folded", launch(combine_folded, n / 256, 256, 0, values, out, powers, rows)},
            {"late", launch(combine_late, n / 256, 256, 0, values, out, powers, rows)}};
    });

// --- p-values of a chi-square test: the upper incomplete gamma function as a continued fraction ---

constexpr float TINY = 1e-30f;
constexpr int TERMS = 48;

__device__ __forceinline__ float before_fraction(float x, float a) { return __expf(a * __logf(x) - x - lgammaf(a)); }

__global__ void __launch_bounds__(256) p_values(const float *__restrict__ statistic, const float *__restrict__ freedom, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float x = 0.5f * statistic[i], a = 0.5f * freedom[i];
    float b = x + 1.f - a, c = 1.f / TINY, d = 1.f / b, h = d;
    for (int n = 1; n <= TERMS; n++) {
        const float an = -n * (n - a);
        b += 2.f;
        d = an * d + b;
        if (fabsf(d) < TINY) d = TINY;
        c = b + an / c;
        if (fabsf(c) < TINY) c = TINY;
        d = 1.f / d;
        h *= d * c;
    }
    out[i] = before_fraction(x, a) * h;
}
__global__ void __launch_bounds__(256) p_values_quick(const float *__restrict__ statistic, const float *__restrict__ freedom, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float x = 0.5f * statistic[i], a = 0.5f * freedom[i];
    float b = x + 1.f - a, c = 1.f / TINY, d = __fdividef(1.f, b), h = d;
    for (int n = 1; n <= TERMS; n++) {
        const float an = -n * (n - a);
        b += 2.f;
        d = an * d + b;
        if (fabsf(d) < TINY) d = TINY;
        c = b + __fdividef(an, c);
        if (fabsf(c) < TINY) c = TINY;
        d = __fdividef(1.f, d);
        h *= d * c;
    }
    out[i] = before_fraction(x, a) * h;
}
// From the last term inwards: numerator and denominator are kept apart, scaled every fourth term, and divided once.
__global__ void __launch_bounds__(256) p_values_once(const float *__restrict__ statistic, const float *__restrict__ freedom, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float x = 0.5f * statistic[i], a = 0.5f * freedom[i];
    float top = x + 1.f - a + 2.f * TERMS, bottom = 1.f;
#pragma unroll 4
    for (int n = TERMS; n >= 1; n--) {
        const float b = x - 1.f - a + 2.f * n, an = -n * (n - a), next = fmaf(b, top, an * bottom);
        bottom = top;
        top = next;
        if (n % 4 == 1) top *= 0x1p-28f, bottom *= 0x1p-28f;
    }
    out[i] = before_fraction(x, a) * (bottom / top);
}

Study p_value("p_values_two_quotients_a_term", "statistics", 1 << 20, "p-values of 1048576 chi-square statistics by 48 terms of a continued fraction",
    "two precise quotients for each term",
    {{"quick", "fast quotients", {"expensive_math"}}, {"once", "numerator and denominator from the last term on, divided once", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float *statistic = b.random<float>(n, 14, 60), *freedom = b.random<float>(n, 2, 10);
        float *out = b.output<float>(n);
        return {{"flawed", launch(p_values, n / 256, 256, 0, statistic, freedom, out)}, {"quick", launch(p_values_quick, n / 256, 256, 0, statistic, freedom, out)},
            {"once", launch(p_values_once, n / 256, 256, 0, statistic, freedom, out)}};
    });

// --- rank correlation: how many pairs of observations go the same way in both variables, for each observation ---

__device__ __forceinline__ int agreement(float2 p, float2 q) { return (p.x - q.x) * (p.y - q.y) > 0.f ? 1 : -1; }

__global__ void __launch_bounds__(256) concordance(const float *x, const float *y, int *out, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    int sum = 0;
    for (int j = blockIdx.y * 512; j < (blockIdx.y + 1) * 512; j++) sum += agreement(make_float2(x[i], y[i]), make_float2(x[j], y[j]));
    atomicAdd(&out[i], sum);
}
__global__ void __launch_bounds__(256) concordance_four(const float2 *__restrict__ points, int *__restrict__ out, int n) {
    const int first = blockIdx.x * 1024 + threadIdx.x;
    float2 own[4];
    int sum[4] = {};
#pragma unroll
    for (int k = 0; k < 4; k++) own[k] = points[first + k * 256];
#pragma unroll 4
    for (int j = blockIdx.y * 512; j < (blockIdx.y + 1) * 512; j++) {
        const float2 other = points[j];
#pragma unroll
        for (int k = 0; k < 4; k++) sum[k] += agreement(own[k], other);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) atomicAdd(&out[first + k * 256], sum[k]);
}
__global__ void __launch_bounds__(256) concordance_tile(const float4 *__restrict__ two_points, int *__restrict__ out, int n) {
    __shared__ float4 tile[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float2 own = reinterpret_cast<const float2 *>(two_points)[i];
    tile[threadIdx.x] = two_points[blockIdx.y * 256 + threadIdx.x];
    __syncthreads();
    int sum = 0;
#pragma unroll 8
    for (int j = 0; j < 256; j++) {
        const float4 both = tile[j];
        sum += agreement(own, make_float2(both.x, both.y)) + agreement(own, make_float2(both.z, both.w));
    }
    atomicAdd(&out[i], sum);
}

Study kendall("concordant_pairs_read_for_each", "statistics", 32768, "rank correlation of 32768 observations: concordant less discordant pairs of each",
    "both variables of the other observation are read from memory for each pair",
    {{"four", "four observations a thread, both variables in one word", {"redundant_loads"}}, {"tile", "512 others in shared memory, two of them a read", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> x(n), y(n);
        std::vector<float2> points(n);
        for (long i = 0; i < n; i++) {
            x[i] = static_cast<float>(hash(static_cast<unsigned>(i)) >> 8), y[i] = 0.5f * x[i] + static_cast<float>(hash(static_cast<unsigned>(i) + 1234567u) >> 8);
            points[i] = make_float2(x[i], y[i]);
        }
        const float *of_x = b.copy(x), *of_y = b.copy(y);
        const float2 *both = b.copy(points);
        int *out = b.output<int>(n, true);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        const unsigned parts = blocks(n, 512);
        return {{"flawed", launch(concordance, dim3(n / 256, parts), 256, 0, of_x, of_y, out, count)}, {"four", launch(concordance_four, dim3(n / 1024, parts), 256, 0, both, out, count)},
            {"tile", launch(concordance_tile, dim3(n / 256, parts), 256, 0, reinterpret_cast<const float4 *>(both), out, count)}};
    });

// --- density of sea water from temperature, salinity and pressure: the equation of state of 1980 ---

template <typename T>
__device__ __forceinline__ T density_at_surface(T t, T s, T root) {
    const T pure = T(999.842594) + t * (T(6.793952e-2) + t * (T(-9.095290e-3) + t * (T(1.001685e-4) + t * (T(-1.120083e-6) + t * T(6.536332e-9)))));
    const T linear = T(8.24493e-1) + t * (T(-4.0899e-3) + t * (T(7.6438e-5) + t * (T(-8.2467e-7) + t * T(5.3875e-9))));
    const T rooted = T(-5.72466e-3) + t * (T(1.0227e-4) + t * T(-1.6546e-6));
    return pure + s * (linear + root * rooted + s * T(4.8314e-4));
}
template <typename T>
__device__ __forceinline__ T bulk_modulus(T t, T s, T root, T p) {
    const T pure = T(19652.21) + t * (T(148.4206) + t * (T(-2.327105) + t * (T(1.360477e-2) + t * T(-5.155288e-5))));
    const T linear = T(54.6746) + t * (T(-0.603459) + t * (T(1.09987e-2) + t * T(-6.1670e-5)));
    const T rooted = T(7.944e-2) + t * (T(1.6483e-2) + t * T(-5.3009e-4));
    const T a = T(3.239908) + t * (T(1.43713e-3) + t * (T(1.16092e-4) + t * T(-5.77905e-7))) + s * (T(2.2838e-3) + t * (T(-1.0981e-5) + t * T(-1.6078e-6)) + root * T(1.91075e-4));
    const T b = T(8.50935e-5) + t * (T(-6.12293e-6) + t * T(5.2787e-8)) + s * (T(-9.9348e-7) + t * (T(2.0816e-8) + t * T(9.1697e-10)));
    return pure + s * (linear + root * rooted) + p * (a + p * b);
}

__global__ void __launch_bounds__(256) densities(const float *__restrict__ temperature, const float *__restrict__ salinity, const float *__restrict__ pressure, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const double t = temperature[i], s = salinity[i], p = pressure[i], root = sqrt(s);
    out[i] = static_cast<float>(density_at_surface(t, s, root) / (1.0 - p / bulk_modulus(t, s, root, p)) - 1000.0);
}
// What is above 1000 kg/m³, so that few digits cancel.
__device__ __forceinline__ float above(float t, float s, float p) {
    const float root = sqrtf(s), surface = density_at_surface(t, s, root), share = p / bulk_modulus(t, s, root, p);
    return (surface - 1000.f) + surface * (share / (1.f - share));
}
__global__ void __launch_bounds__(256) densities_floats(const float *__restrict__ temperature, const float *__restrict__ salinity, const float *__restrict__ pressure, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = above(temperature[i], salinity[i], pressure[i]);
}
__global__ void __launch_bounds__(256) densities_quads(const float4 *__restrict__ temperature, const float4 *__restrict__ salinity, const float4 *__restrict__ pressure, float4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 t = temperature[i], s = salinity[i], p = pressure[i];
    out[i] = make_float4(above(t.x, s.x, p.x), above(t.y, s.y, p.y), above(t.z, s.z, p.z), above(t.w, s.w, p.w));
}

Study sea_water("sea_water_density_in_double", "HPC", 1 << 25, "density of sea water at 33554432 points, equation of state of 1980",
    "polynomials, root and quotients in double, fields in float",
    {{"floats", "in float", {"double_precision"}}, {"quads", "in float, four points a thread", {"double_precision", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *t = b.random<float>(n, -2, 30), *s = b.random<float>(n, 30, 40), *p = b.random<float>(n, 0, 600);
        float *out = b.output<float>(n);
        auto quads = [](const float *data) { return reinterpret_cast<const float4 *>(data); };
        return {{"flawed", launch(densities, n / 256, 256, 0, t, s, p, out)}, {"floats", launch(densities_floats, n / 256, 256, 0, t, s, p, out)},
            {"quads", launch(densities_quads, n / 1024, 256, 0, quads(t), quads(s), quads(p), reinterpret_cast<float4 *>(out))}};
    });

// --- rates of a flame's reactions, which a table lists ---

constexpr int SPECIES = 16, REACTIONS = 40, CELLS_A_BLOCK = 128;

struct Reaction {
    int in1, in2, out1, out2;
    float factor, activation;
};

// CELL words from one cell to the next, KIND words from one species to the next.
template <int CELL, int KIND, int ROOM>
__global__ void __launch_bounds__(CELLS_A_BLOCK) reaction_rates(const float *__restrict__ amount, const float *__restrict__ temperature, const Reaction *__restrict__ reactions, float *__restrict__ out, int cells) {
    __shared__ float held[ROOM], rate[ROOM];
    const int cell = blockIdx.x * CELLS_A_BLOCK + threadIdx.x, own = threadIdx.x * CELL;
    for (int s = 0; s < SPECIES; s++) {
        held[own + s * KIND] = amount[static_cast<size_t>(s) * cells + cell];
        rate[own + s * KIND] = 0.f;
    }
    const float cold = 1.f / temperature[cell];
    for (int r = 0; r < REACTIONS; r++) {
        const Reaction now = reactions[r];
        const float speed = now.factor * __expf(-now.activation * cold) * held[own + now.in1 * KIND] * held[own + now.in2 * KIND];
        rate[own + now.in1 * KIND] -= speed;
        rate[own + now.in2 * KIND] -= speed;
        rate[own + now.out1 * KIND] += speed;
        rate[own + now.out2 * KIND] += speed;
    }
    for (int s = 0; s < SPECIES; s++) out[static_cast<size_t>(s) * cells + cell] = rate[own + s * KIND];
}

Study flame("reaction_rates_strips_of_16_species", "HPC", 1 << 20, "rates of 16 species by 40 reactions from a table, 1048576 cells",
    "each thread's species lie side by side in shared memory: the lanes of a warp meet in two banks",
    {{"turned", "one species of all cells side by side", {"shared_bank_conflicts"}}, {"padded", "strips of 17 words", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Reaction> list(REACTIONS);
        for (int r = 0; r < REACTIONS; r++) {
            auto draw = [&](unsigned k) { return hash(r * 8 + k + 5); };
            list[r] = {static_cast<int>(draw(0) % 16), static_cast<int>(draw(1) % 16), static_cast<int>(draw(2) % 16), static_cast<int>(draw(3) % 16), 0.5f + draw(4) % 100 / 50.f, 500.f + draw(5) % 3000};
        }
        const float *amount = b.random<float>(n * SPECIES, 0, 1), *temperature = b.random<float>(n, 800, 2400);
        const Reaction *table = b.copy(list);
        float *out = b.output<float>(n * SPECIES);
        const int cells = static_cast<int>(n);
        constexpr int ROOM = CELLS_A_BLOCK * SPECIES;
        return {{"flawed", launch(reaction_rates<SPECIES, 1, ROOM>, n / CELLS_A_BLOCK, CELLS_A_BLOCK, 0, amount, temperature, table, out, cells)},
            {"turned", launch(reaction_rates<1, CELLS_A_BLOCK, ROOM>, n / CELLS_A_BLOCK, CELLS_A_BLOCK, 0, amount, temperature, table, out, cells)},
            {"padded", launch(reaction_rates<SPECIES + 1, 1, ROOM + CELLS_A_BLOCK>, n / CELLS_A_BLOCK, CELLS_A_BLOCK, 0, amount, temperature, table, out, cells)}};
    });

// --- z -> z² + c, 256 times from each of many points, which all stay near ---

__global__ void __launch_bounds__(256) orbits(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out_x, float *__restrict__ out_y, float cx, float cy) {
    const int first = blockIdx.x * 1024 + threadIdx.x;
    float a[4], b[4];
#pragma unroll
    for (int k = 0; k < 4; k++) a[k] = x[first + k * 256], b[k] = y[first + k * 256];
#pragma unroll 8
    for (int step = 0; step < 256; step++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float twice = a[k] + a[k], real = fmaf(-b[k], b[k], fmaf(a[k], a[k], cx));
            b[k] = fmaf(twice, b[k], cy);
            a[k] = real;
        }
#pragma unroll
    for (int k = 0; k < 4; k++) out_x[first + k * 256] = a[k], out_y[first + k * 256] = b[k];
}

Study bounded("sound_bounded_orbits", "rendering", 1 << 22, "256 steps of a quadratic map from 4194304 points", "", {}, [](Buffers &b, long n) -> Sides {
    const float *x = b.random<float>(n, -0.4, 0.4), *y = b.random<float>(n, -0.4, 0.4);
    float *out_x = b.output<float>(n), *out_y = b.output<float>(n);
    return {{"sound", launch(orbits, n / 1024, 256, 0, x, y, out_x, out_y, 0.05f, -0.08f)}};
});

}  // namespace
