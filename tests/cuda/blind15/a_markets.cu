// Finance: resampled histories, netting, streams of order books, local volatility, credit. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- years put together from days of the past drawn at random: final wealth and deepest fall ---

constexpr int YEAR = 252, TEN_YEARS = 2520;

struct SplitMix {
    unsigned long long state;
    __device__ __forceinline__ unsigned long long next() {
        unsigned long long z = state += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
    }
};
struct Year {
    float wealth = 1.f, peak = 1.f, fall = 0.f;
    __device__ __forceinline__ void day(float change) {
        wealth = fmaf(wealth, change, wealth);
        peak = fmaxf(peak, wealth);
        fall = fmaxf(fall, peak - wealth);
    }
};

struct AnyCount {
    unsigned long long days;
    __device__ __forceinline__ unsigned operator()(unsigned long long draw) const { return static_cast<unsigned>(draw % days); }
};
struct TenYears {
    __device__ __forceinline__ unsigned operator()(unsigned long long draw) const { return static_cast<unsigned>(draw % TEN_YEARS); }
};
struct Reciprocal {
    unsigned long long inverse;  // 2^64 / days, rounded down
    unsigned days;
    __device__ __forceinline__ unsigned operator()(unsigned long long draw) const {
        const unsigned rest = static_cast<unsigned>(draw) - static_cast<unsigned>(__umul64hi(draw, inverse)) * days;
        return rest >= days ? rest - days : rest;
    }
};

template <typename Pick>
__global__ void __launch_bounds__(256) resampled_years(const float *__restrict__ changes, float *__restrict__ wealth, float *__restrict__ fall, Pick pick, int paths, unsigned long long seed) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= paths) return;
    SplitMix random{seed + static_cast<unsigned long long>(path) * 0xd1342543de82ef95ull};
    Year year;
    for (int day = 0; day < YEAR; day++) year.day(changes[pick(random.next())]);
    wealth[path] = year.wealth;
    fall[path] = year.fall;
}

Study resampled("bootstrap_days_by_remainders_of_64_bits", "finance", 1 << 18, "262144 years of 252 days drawn from ten years of a portfolio's days: final wealth and deepest fall",
    "each draw is a remainder of 64 bits by a number of days known only at run time",
    {{"reciprocal", "product with the reciprocal and one correction", {"integer_arithmetic"}}, {"constant", "the number of days known to the compiler", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const float *changes = b.random<float>(TEN_YEARS, -0.02, 0.0205);
        float *wealth = b.output<float>(n), *fall = b.output<float>(n);
        const unsigned long long seed = 20080915;
        return {{"flawed", launch(resampled_years<AnyCount>, blocks(n, 256), 256, 0, changes, wealth, fall, AnyCount{TEN_YEARS}, n, seed)},
            {"reciprocal", launch(resampled_years<Reciprocal>, blocks(n, 256), 256, 0, changes, wealth, fall, Reciprocal{~0ull / TEN_YEARS, TEN_YEARS}, n, seed)},
            {"constant", launch(resampled_years<TenYears>, blocks(n, 256), 256, 0, changes, wealth, fall, TenYears{}, n, seed)}};
    });

// --- exposures: the values of all trades that are netted with each other, above the collateral's threshold ---

constexpr int PATHS = 1024;

struct Netting {
    const int *begin;  // trades of a set one after the other
    const float4 *values;  // PATHS of a trade in a row
    const float *threshold;
    float4 *out;
};

__device__ __forceinline__ void add(float4 &sum, float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; }
__device__ __forceinline__ float4 above(float4 sum, float threshold) {
    return make_float4(fmaxf(sum.x - threshold, 0.f), fmaxf(sum.y - threshold, 0.f), fmaxf(sum.z - threshold, 0.f), fmaxf(sum.w - threshold, 0.f));
}

__global__ void __launch_bounds__(PATHS / 4) exposures(Netting n) {
    const int set = blockIdx.x, end = n.begin[set + 1];
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int trade = n.begin[set]; trade < end; trade++) add(sum, n.values[static_cast<size_t>(trade) * (PATHS / 4) + threadIdx.x]);
    n.out[static_cast<size_t>(set) * (PATHS / 4) + threadIdx.x] = above(sum, n.threshold[set]);
}
// Four groups of threads take every fourth trade.
__global__ void __launch_bounds__(PATHS) exposures_groups(Netting n) {
    __shared__ float4 part[4][PATHS / 4];
    const int set = blockIdx.x, end = n.begin[set + 1], path = threadIdx.x % (PATHS / 4), group = threadIdx.x / (PATHS / 4);
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int trade = n.begin[set] + group; trade < end; trade += 4) add(sum, n.values[static_cast<size_t>(trade) * (PATHS / 4) + path]);
    part[group][path] = sum;
    __syncthreads();
    if (group > 0) return;
    for (int g = 1; g < 4; g++) add(sum, part[g][path]);
    n.out[static_cast<size_t>(set) * (PATHS / 4) + path] = above(sum, n.threshold[set]);
}
// A block for 128 paths of a set, whose eight warps share the trades.
__global__ void __launch_bounds__(256) exposures_chunks(Netting n) {
    __shared__ float4 part[8][32];
    const int set = blockIdx.x, end = n.begin[set + 1], lane = threadIdx.x % 32, warp = threadIdx.x / 32, path = blockIdx.y * 32 + lane;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int trade = n.begin[set] + warp; trade < end; trade += 8) add(sum, n.values[static_cast<size_t>(trade) * (PATHS / 4) + path]);
    part[warp][lane] = sum;
    __syncthreads();
    if (warp > 0) return;
    for (int w = 1; w < 8; w++) add(sum, part[w][lane]);
    n.out[static_cast<size_t>(set) * (PATHS / 4) + path] = above(sum, n.threshold[set]);
}

Study netting_sets("netting_sets_a_block_for_3_trades_or_1200", "finance", 640, "exposures of 640 netting sets of 3 to 1200 trades on 1024 paths",
    "a block for each netting set, and the largest have many times the mean number of trades",
    {{"chunks", "a block for 128 paths of a set, its warps share the trades", {"workload_imbalance"}}, {"groups", "four groups of threads a set, every fourth trade each", {"workload_imbalance", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> begin(n + 1);
        for (long i = 0; i < n; i++) {
            const double u = (hash(static_cast<unsigned>(i) + 3) % 10000 + 1) / 10000.0;
            begin[i + 1] = begin[i] + 2 + static_cast<int>(std::min(1200.0, 10.0 / std::pow(u, 0.85)));
        }
        const Netting netting{b.copy(begin), reinterpret_cast<const float4 *>(b.random<float>(static_cast<size_t>(begin[n]) * PATHS, -1, 1.05)), b.random<float>(n, 0, 2),
            reinterpret_cast<float4 *>(b.output<float>(n * PATHS))};
        const unsigned sets = static_cast<unsigned>(n);
        return {{"flawed", launch(exposures, sets, PATHS / 4, 0, netting)}, {"chunks", launch(exposures_chunks, dim3(sets, PATHS / 128), 256, 0, netting)}, {"groups", launch(exposures_groups, sets, PATHS, 0, netting)}};
    });

// --- streams of messages on order books: how much more is bid than asked for, and the mean price of trades ---

struct Message {
    float wait, price, amount;
    int kind;  // 0: bid placed, 1: bid withdrawn, 2: offer placed, 3: offer withdrawn, 4: trade
};

struct Book {
    float imbalance = 0.f, traded = 0.f, paid = 0.f, best = 0.f;
    __device__ __forceinline__ void take(const Message &m) {
        const float sign = m.kind == 0 || m.kind == 3 ? 1.f : m.kind == 4 ? 0.f : -1.f;
        imbalance = imbalance * __expf(-m.wait) + sign * m.amount;
        best = fmaxf(best, imbalance);
        if (m.kind == 4) traded += m.amount, paid = fmaf(m.amount, m.price, paid);
    }
    __device__ __forceinline__ float4 result() const { return make_float4(imbalance, best, traded, traded > 0.f ? paid / traded : 0.f); }
};

__device__ __forceinline__ Message message_of(float4 v) { return {v.x, v.y, v.z, __float_as_int(v.w)}; }

__global__ void __launch_bounds__(128) books(const float4 *__restrict__ messages, float4 *__restrict__ out, int streams, int length) {
    const int stream = blockIdx.x * 128 + threadIdx.x;
    if (stream >= streams) return;
    Book book;
    for (int i = 0; i < length; i++) book.take(message_of(messages[static_cast<size_t>(stream) * length + i]));
    out[stream] = book.result();
}
// Messages of all streams side by side, as they would be if they were stored by their number.
__global__ void __launch_bounds__(128) books_side_by_side(const float4 *__restrict__ messages, float4 *__restrict__ out, int streams, int length) {
    const int stream = blockIdx.x * 128 + threadIdx.x;
    if (stream >= streams) return;
    Book book;
    for (int i = 0; i < length; i++) book.take(message_of(messages[static_cast<size_t>(i) * streams + stream]));
    out[stream] = book.result();
}
// A warp brings eight messages of each of its 32 streams through shared memory.
__global__ void __launch_bounds__(128) books_staged(const float4 *__restrict__ messages, float4 *__restrict__ out, int streams, int length) {
    __shared__ float4 staged[4][32][9];
    const int stream = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = stream - lane;
    if (first >= streams) return;
    Book book;
    for (int from = 0; from < length; from += 8) {
#pragma unroll
        for (int r = 0; r < 8; r++) {
            const int row = r * 4 + lane / 8;
            staged[warp][row][lane % 8] = messages[static_cast<size_t>(first + row) * length + from + lane % 8];
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; i++) book.take(message_of(staged[warp][lane][i]));
        __syncwarp();
    }
    out[stream] = book.result();
}

Study order_books("book_messages_of_a_stream_in_a_row", "finance", 1 << 16, "imbalance of bids and offers and mean price of trades for 65536 streams of 96 messages",
    "a thread reads the messages of its stream, which lie in a row: neighbouring lanes are 1536 bytes apart",
    {{"side_by_side", "messages stored by their number, those of all streams side by side", {"uncoalesced_access"}}, {"staged", "eight messages of 32 streams at a time through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int length = 96, streams = static_cast<int>(n);
        std::vector<float> rows(n * length * 4), turned(n * length * 4);
        for (long s = 0; s < n; s++)
            for (int i = 0; i < length; i++) {
                const unsigned draw = hash(static_cast<unsigned>(s * length + i));
                const int kind = draw % 16 < 5 ? 0 : draw % 16 < 8 ? 1 : draw % 16 < 12 ? 2 : draw % 16 < 14 ? 3 : 4;
                float m[4] = {(draw >> 4 & 255) / 512.f, 90.f + (draw >> 12 & 1023) / 50.f, 1.f + (draw >> 22 & 127), 0.f};
                static_assert(sizeof kind == sizeof m[3], "a kind is stored as a float's bits");
                std::copy_n(reinterpret_cast<const unsigned char *>(&kind), 4, reinterpret_cast<unsigned char *>(&m[3]));
                std::copy_n(m, 4, &rows[(s * length + i) * 4]);
                std::copy_n(m, 4, &turned[(i * n + s) * 4]);
            }
        auto by_stream = reinterpret_cast<const float4 *>(b.copy(rows)), by_number = reinterpret_cast<const float4 *>(b.copy(turned));
        auto out = reinterpret_cast<float4 *>(b.output<float>(n * 4));
        return {{"flawed", launch(books, blocks(n, 128), 128, 0, by_stream, out, streams, length)}, {"side_by_side", launch(books_side_by_side, blocks(n, 128), 128, 0, by_number, out, streams, length)},
            {"staged", launch(books_staged, blocks(n, 128), 128, 0, by_stream, out, streams, length)}};
    });

// --- a call on paths whose volatility depends on time and price, from a table over strikes that are not evenly spaced ---

constexpr int STRIKES = 96, STEPS = 128;

struct LocalVolatility {
    const float *strikes, *table;  // logarithms of strikes, rising; STRIKES volatilities in a row for each step
    float root_of_step, strike;
    int paths;
    unsigned seed;
};

__device__ __forceinline__ float normal(unsigned path, unsigned step, unsigned seed) {
    const unsigned a = hash(path * STEPS + step + seed), c = hash(a ^ 0x68bc21ebu);
    const float radius = sqrtf(-2.f * __logf((a >> 8) * 5.9604645e-8f + 3e-8f));
    return radius * __cosf((c >> 8) * 3.7450704e-7f);
}
__device__ __forceinline__ float between(const float *strikes, const float *row, int i, float x) {
    const float share = __saturatef(__fdividef(x - strikes[i], strikes[i + 1] - strikes[i]));
    return fmaf(share, row[i + 1] - row[i], row[i]);
}
__device__ __forceinline__ float moved(const LocalVolatility &v, float x, float volatility, int path, int step) {
    const float s = volatility * v.root_of_step;
    return x + s * normal(path, step, v.seed) - 0.5f * s * s;
}
__device__ __forceinline__ int bisected(const float *strikes, float x) {
    int low = 0, high = STRIKES - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (strikes[middle] <= x) low = middle;
        else high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(256) local_volatility(LocalVolatility v, float *__restrict__ out) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= v.paths) return;
    float x = 0.f;
    for (int step = 0; step < STEPS; step++) x = moved(v, x, between(v.strikes, v.table + step * STRIKES, bisected(v.strikes, x), x), path, step);
    out[path] = fmaxf(__expf(x) - v.strike, 0.f);
}
// The strikes in shared memory.
__global__ void __launch_bounds__(256) local_volatility_shared(LocalVolatility v, float *__restrict__ out) {
    __shared__ float strikes[STRIKES];
    if (threadIdx.x < STRIKES) strikes[threadIdx.x] = v.strikes[threadIdx.x];
    __syncthreads();
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= v.paths) return;
    float x = 0.f;
    for (int step = 0; step < STEPS; step++) x = moved(v, x, between(strikes, v.table + step * STRIKES, bisected(strikes, x), x), path, step);
    out[path] = fmaxf(__expf(x) - v.strike, 0.f);
}
// From where the price was one step before, which is seldom more than two strikes away.
__global__ void __launch_bounds__(256) local_volatility_followed(LocalVolatility v, float *__restrict__ out) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= v.paths) return;
    float x = 0.f;
    int i = bisected(v.strikes, x);
    for (int step = 0; step < STEPS; step++) {
        while (i > 0 && v.strikes[i] > x) i--;
        while (i < STRIKES - 2 && v.strikes[i + 1] <= x) i++;
        x = moved(v, x, between(v.strikes, v.table + step * STRIKES, i, x), path, step);
    }
    out[path] = fmaxf(__expf(x) - v.strike, 0.f);
}

Study local_volatilities("local_volatility_strike_bisected_each_step", "finance", 1 << 18, "a call on 262144 paths of 128 steps under local volatility, from a table of 96 strikes that are not evenly spaced",
    "the strike is found by bisection in global memory at every step, seven loads that wait for each other",
    {{"shared", "strikes in shared memory", {"memory_latency"}}, {"followed", "from the strike of the step before", {"memory_latency", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> strikes(STRIKES), table(STRIKES * STEPS);
        for (int i = 0; i < STRIKES; i++) {
            const double u = 2.0 * i / (STRIKES - 1) - 1;
            strikes[i] = static_cast<float>(1.2 * (0.35 * u + 0.65 * u * u * u));  // denser at the money
        }
        for (int step = 0; step < STEPS; step++)
            for (int i = 0; i < STRIKES; i++) table[step * STRIKES + i] = static_cast<float>(0.2 + 0.12 * strikes[i] * strikes[i] - 0.08 * strikes[i] / (1 + 0.01 * step));
        const LocalVolatility v{b.copy(strikes), b.copy(table), std::sqrt(1.f / STEPS), 1.02f, static_cast<int>(n), 77};
        float *out = b.output<float>(n);
        return {{"flawed", launch(local_volatility, blocks(n, 256), 256, 0, v, out)}, {"shared", launch(local_volatility_shared, blocks(n, 256), 256, 0, v, out)}, {"followed", launch(local_volatility_followed, blocks(n, 256), 256, 0, v, out)}};
    });

// --- credit default swaps: the spread at which premiums are worth the protection, from hazards between five dates ---

constexpr int PILLARS = 5;

struct Swaps {
    const float *hazard;  // PILLARS rows, contracts side by side
    const float *rate;
    const int *quarters;
    float *spread;
    int count;
};

__device__ __forceinline__ int pillar_of(int quarter) { return (quarter >= 4) + (quarter >= 12) + (quarter >= 20) + (quarter >= 28); }

struct Exponential {
    static __device__ __forceinline__ double of(double x) { return exp(x); }
    static __device__ __forceinline__ float of(float x) { return __expf(x); }
};

template <typename Real>
__global__ void __launch_bounds__(128) credit_spreads(Swaps s) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const Real quarter = Real(0.25), rate = s.rate[i];
    const int quarters = s.quarters[i];
    Real hazards = 0, alive = 1, premium = 0, protection = 0;
    for (int q = 0; q < quarters; q++) {
        hazards += Real(s.hazard[static_cast<size_t>(pillar_of(q)) * s.count + i]) * quarter;
        const Real time = quarter * (q + 1), still = Exponential::of(-hazards), paid = Exponential::of(-rate * time), middle = Exponential::of(-rate * (time - quarter * Real(0.5)));
        premium += quarter * paid * still;
        protection += middle * (alive - still);
        alive = still;
    }
    s.spread[i] = static_cast<float>(Real(0.6) * protection / premium);
}
// Still in double, but discount and survival are carried from quarter to quarter: an exponential where the hazard changes.
__global__ void __launch_bounds__(128) credit_spreads_carried(Swaps s) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const int quarters = s.quarters[i];
    const double half = exp(-0.125 * s.rate[i]), discount = half * half;
    double alive = 1, paid = 1, premium = 0, protection = 0;
    for (int q = 0, pillar = 0; q < quarters; pillar++) {
        const double kept = exp(-0.25 * s.hazard[static_cast<size_t>(pillar) * s.count + i]);
        for (; q < quarters && pillar_of(q) == pillar; q++) {
            const double still = alive * kept, middle = paid * half;
            paid *= discount;
            premium += 0.25 * paid * still;
            protection += middle * (alive - still);
            alive = still;
        }
    }
    s.spread[i] = static_cast<float>(0.6 * protection / premium);
}

Study credit_swaps("credit_spreads_exponentials_in_double", "finance", 1 << 19, "fair spreads of 524288 credit default swaps of 3 to 10 years with quarterly premiums",
    "three exponentials in double for each quarter",
    {{"single", "the same in single precision", {"double_precision"}}, {"carried", "discounts and survival carried from quarter to quarter, still in double", {"expensive_math", "double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> quarters(n);
        const int usual[] = {12, 20, 20, 20, 28, 40};
        for (long i = 0; i < n; i++) quarters[i] = usual[hash(static_cast<unsigned>(i / 96)) % 6];
        const Swaps s{b.random<float>(PILLARS * n, 0.002, 0.08), b.random<float>(n, 0.005, 0.05), b.copy(quarters), b.output<float>(n), static_cast<int>(n)};
        return {{"flawed", launch(credit_spreads<double>, blocks(n, 128), 128, 0, s)}, {"single", launch(credit_spreads<float>, blocks(n, 128), 128, 0, s)}, {"carried", launch(credit_spreads_carried, blocks(n, 128), 128, 0, s)}};
    });

}  // namespace
