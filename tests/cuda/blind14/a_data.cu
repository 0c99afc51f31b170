// Data: trades, time stamps, program text, inverted indexes, books of positions, rolling statistics. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- bars of a minute from trades: least and greatest price, volume and number, for each share and minute ---

struct Bars {
    int *low, *high, *volume, *trades;
};
struct Trades {
    const int *bar, *price, *volume;  // in the order of bars, as a day's file holds them
    int count;
};

__global__ void __launch_bounds__(256) minute_bars(Trades t, Bars b) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= t.count) return;
    const int bar = t.bar[i], price = t.price[i];
    atomicMin(&b.low[bar], price);
    atomicMax(&b.high[bar], price);
    atomicAdd(&b.volume[bar], t.volume[i]);
    atomicAdd(&b.trades[bar], 1);
}
// The lanes of a warp that hold the same bar combine what they have; the first of them hands it in.
__global__ void __launch_bounds__(256) minute_bars_warp(Trades t, Bars b) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const bool there = i < t.count;
    const int bar = there ? t.bar[i] : -1;
    int low = there ? t.price[i] : 0, high = low, volume = there ? t.volume[i] : 0, trades = 1;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_down_sync(~0u, bar, offset), l = __shfl_down_sync(~0u, low, offset), h = __shfl_down_sync(~0u, high, offset);
        const int v = __shfl_down_sync(~0u, volume, offset), n = __shfl_down_sync(~0u, trades, offset);
        if (lane + offset < 32 && other == bar) low = min(low, l), high = max(high, h), volume += v, trades += n;
    }
    const int before = __shfl_up_sync(~0u, bar, 1);
    if (!there || (lane > 0 && before == bar)) return;
    atomicMin(&b.low[bar], low);
    atomicMax(&b.high[bar], high);
    atomicAdd(&b.volume[bar], volume);
    atomicAdd(&b.trades[bar], trades);
}
// Sixteen trades in a row for each thread, which hands in where the bar changes.
__global__ void __launch_bounds__(256) minute_bars_runs(Trades t, Bars b) {
    const int first = (blockIdx.x * 256 + threadIdx.x) * 16;
    if (first >= t.count) return;
    int bar = t.bar[first], low = 1 << 30, high = 0, volume = 0, trades = 0;
    auto hand_in = [&] {
        atomicMin(&b.low[bar], low);
        atomicMax(&b.high[bar], high);
        atomicAdd(&b.volume[bar], volume);
        atomicAdd(&b.trades[bar], trades);
    };
#pragma unroll
    for (int four = first; four < first + 16; four += 4) {
        const int4 bars = *reinterpret_cast<const int4 *>(&t.bar[four]), prices = *reinterpret_cast<const int4 *>(&t.price[four]), volumes = *reinterpret_cast<const int4 *>(&t.volume[four]);
        const int own[4] = {bars.x, bars.y, bars.z, bars.w}, price[4] = {prices.x, prices.y, prices.z, prices.w}, amount[4] = {volumes.x, volumes.y, volumes.z, volumes.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (own[k] != bar) {
                hand_in();
                bar = own[k], low = 1 << 30, high = volume = trades = 0;
            }
            low = min(low, price[k]), high = max(high, price[k]), volume += amount[k], trades++;
        }
    }
    hand_in();
}

Study trade_bars("minute_bars_four_atomics_a_trade", "finance", 1 << 23, "least and greatest price, volume and number of 8388608 trades for each share and minute, trades in the order of these",
    "four atomics for each trade, on the bar that its neighbours are of, too",
    {{"warp", "lanes of one bar combined by shuffles first", {"global_atomics"}}, {"runs", "sixteen trades a thread, handed in where the bar changes", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> bar(n);
        int open = 0;
        for (long i = 0, left = 3; i < n; i++, left--) {
            if (left == 0) {
                open++;
                const unsigned draw = hash(static_cast<unsigned>(open));
                left = draw % 16 ? 1 + draw % 61 : 100 + draw % 700;
            }
            bar[i] = open;
        }
        const int bars = open + 1;
        const Trades t{b.copy(bar), b.random<int>(n, 9000, 11000), b.random<int>(n, 1, 500), static_cast<int>(n)};
        const std::vector<int> far(bars, 1 << 30);
        const int *initial = b.copy(far);
        const Bars out{b.changed<int>(initial, bars), b.output<int>(bars, true), b.output<int>(bars, true), b.output<int>(bars, true)};
        b.tolerance = 0.0;
        return {{"flawed", launch(minute_bars, blocks(n, 256), 256, 0, t, out)}, {"warp", launch(minute_bars_warp, blocks(n, 256), 256, 0, t, out)}, {"runs", launch(minute_bars_runs, blocks(n, 4096), 256, 0, t, out)}};
    });

// --- columns of time stamps: each block of 1024 holds its first value and the differences, of which small ones are small both ways ---

constexpr int STAMPS = 1024;

__device__ __forceinline__ int both_ways(unsigned code) { return static_cast<int>(code >> 1) ^ -static_cast<int>(code & 1); }

__global__ void __launch_bounds__(STAMPS) stamps(const unsigned short *__restrict__ codes, const long long *__restrict__ bases, long long *__restrict__ out) {
    __shared__ int sums[STAMPS];
    const size_t at = static_cast<size_t>(blockIdx.x) * STAMPS + threadIdx.x;
    sums[threadIdx.x] = both_ways(codes[at]);
    __syncthreads();
    for (int offset = 1; offset < STAMPS; offset *= 2) {
        const int before = threadIdx.x >= offset ? sums[threadIdx.x - offset] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    out[at] = bases[blockIdx.x] + sums[threadIdx.x];
}

__device__ __forceinline__ int sum_up_to(int v) {
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const int before = __shfl_up_sync(~0u, v, offset);
        if (threadIdx.x % 32 >= offset) v += before;
    }
    return v;
}
// Sums within warps by shuffles, then of the warps' sums.
__global__ void __launch_bounds__(STAMPS) stamps_shuffled(const unsigned short *__restrict__ codes, const long long *__restrict__ bases, long long *__restrict__ out) {
    __shared__ int of_warps[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t at = static_cast<size_t>(blockIdx.x) * STAMPS + threadIdx.x;
    const int own = sum_up_to(both_ways(codes[at]));
    if (lane == 31) of_warps[warp] = own;
    __syncthreads();
    const int before = __reduce_add_sync(~0u, lane < warp ? of_warps[lane] : 0);
    out[at] = bases[blockIdx.x] + before + own;
}
// A warp decodes a block of 1024 alone, eight stamps a lane and step.
__global__ void __launch_bounds__(256) stamps_warp(const uint4 *__restrict__ codes, const long long *__restrict__ bases, longlong2 *__restrict__ out) {
    const int lane = threadIdx.x % 32, block = (blockIdx.x * 256 + threadIdx.x) / 32;
    long long base = bases[block];
    uint4 packed[4];
#pragma unroll
    for (int step = 0; step < 4; step++) packed[step] = codes[static_cast<size_t>(block) * (STAMPS / 8) + step * 32 + lane];
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const unsigned word[4] = {packed[step].x, packed[step].y, packed[step].z, packed[step].w};
        int sum[8], total = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) sum[k] = total += both_ways(word[k / 2] >> 16 * (k % 2) & 0xffff);
        const int all = sum_up_to(total);
        const long long before = base + all - total;
#pragma unroll
        for (int k = 0; k < 4; k++) out[(static_cast<size_t>(block) * (STAMPS / 8) + step * 32 + lane) * 4 + k] = make_longlong2(before + sum[2 * k], before + sum[2 * k + 1]);
        base += __shfl_sync(~0u, all, 31);
    }
}

Study time_stamps("time_stamps_summed_between_barriers", "databases", 1 << 24, "16777216 time stamps of 64 bits from differences of 16, in blocks of 1024 that each have a first value",
    "the running sum of a block is taken in ten steps with two barriers each",
    {{"shuffled", "running sums by shuffles, one barrier", {"barriers"}}, {"warp", "a warp a block of stamps, eight stamps a lane, no barrier", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const long count = n / STAMPS;
        std::vector<unsigned short> codes(n);
        for (long i = 0; i < n; i++) codes[i] = hash(static_cast<unsigned>(i)) % (hash(static_cast<unsigned>(i) + 5) % 50 ? 700 : 65536);
        std::vector<long long> bases(count);
        for (long i = 0; i < count; i++) bases[i] = 1700000000000ll + i * 300000;
        const unsigned char *packed = b.copy(std::vector<unsigned char>(reinterpret_cast<const unsigned char *>(codes.data()), reinterpret_cast<const unsigned char *>(codes.data() + n)));
        const long long *first = b.copy(bases);
        auto out = reinterpret_cast<long long *>(b.output<unsigned long long>(n));
        b.tolerance = 0.0;
        return {{"flawed", launch(stamps, count, STAMPS, 0, reinterpret_cast<const unsigned short *>(packed), first, out)},
            {"shuffled", launch(stamps_shuffled, count, STAMPS, 0, reinterpret_cast<const unsigned short *>(packed), first, out)},
            {"warp", launch(stamps_warp, count / 8, 256, 0, reinterpret_cast<const uint4 *>(packed), first, reinterpret_cast<longlong2 *>(out))}};
    });

// --- lexers: an automaton runs over lines of program text and counts the tokens of each ---

constexpr int STATES = 384, CLASSES = 64, LINE = 128;

struct Lines {
    const uint4 *text;  // 16 letters of a line each; those of all lines side by side
    int count;
};

template <typename State>
__device__ __forceinline__ int tokens_of_line(const State *next, const unsigned char *classes, Lines lines, int line) {
    int state = 0, tokens = 0;
    for (int piece = 0; piece < LINE / 16; piece++) {
        const uint4 letters = lines.text[static_cast<size_t>(piece) * lines.count + line];
        const unsigned word[4] = {letters.x, letters.y, letters.z, letters.w};
#pragma unroll
        for (int k = 0; k < 16; k++) {
            state = next[state * CLASSES + classes[word[k / 4] >> 8 * (k % 4) & 255]];
            tokens += state < 24;  // these end a token
        }
    }
    return tokens;
}

// The automaton in shared memory: 96 KiB as ints, 48 KiB as numbers of 16 bits.
template <typename State, int THREADS>
__global__ void __launch_bounds__(THREADS) lex(const int *__restrict__ automaton, const unsigned char *__restrict__ classes, Lines lines, int *__restrict__ out) {
    extern __shared__ int room[];
    State *next = reinterpret_cast<State *>(room);
    unsigned char *of_letter = reinterpret_cast<unsigned char *>(next + STATES * CLASSES);
    for (int i = threadIdx.x; i < STATES * CLASSES; i += THREADS) next[i] = static_cast<State>(automaton[i]);
    for (int i = threadIdx.x; i < 256; i += THREADS) of_letter[i] = classes[i];
    __syncthreads();
    for (int line = blockIdx.x * THREADS + threadIdx.x; line < lines.count; line += gridDim.x * THREADS) out[line] = tokens_of_line(next, of_letter, lines, line);
}

Study lexer("lexer_automaton_of_96_kib_in_shared", "text", 1 << 20, "tokens counted in 1048576 lines of 128 letters by an automaton of 384 states and 64 kinds of letters",
    "the automaton takes 96 KiB of shared memory, so that two blocks of 128 threads fit",
    {{"short", "states as 16-bit numbers: four blocks fit", {"low_occupancy"}}, {"large_blocks", "blocks of 1024 threads share the automaton", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> automaton(STATES * CLASSES);
        for (size_t i = 0; i < automaton.size(); i++) {
            const unsigned draw = hash(static_cast<unsigned>(i) + 99);
            automaton[i] = draw % 5 == 0 ? draw / 5 % 24 : draw % 5 < 4 ? (i / CLASSES + draw / 5 % 3) % STATES : draw / 5 % STATES;
        }
        std::vector<unsigned char> classes(256), text(n * LINE);
        for (int i = 0; i < 256; i++) classes[i] = hash(i + 7) % CLASSES;
        const char usual[] = "etaoin shrdlu_(){};,.=+-*/<>0123456789\"'cmfpgwybvk";
        for (size_t i = 0; i < text.size(); i++) {
            const unsigned draw = hash(static_cast<unsigned>(i));
            text[i] = usual[std::min(draw % 50, draw / 50 % 50)];
        }
        const int *next = b.copy(automaton);
        const unsigned char *kinds = b.copy(classes);
        const Lines lines{reinterpret_cast<const uint4 *>(b.copy(text)), static_cast<int>(n)};
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const int sms = multiprocessors();
        constexpr size_t WIDE = STATES * CLASSES * 4 + 256, SHORT = STATES * CLASSES * 2 + 256;
        return {{"flawed", launch(lex<int, 128>, sms * 2, 128, WIDE, next, kinds, lines, out)}, {"short", launch(lex<unsigned short, 128>, sms * 4, 128, SHORT, next, kinds, lines, out)},
            {"large_blocks", launch(lex<int, 1024>, sms * 2, 1024, WIDE, next, kinds, lines, out)}};
    });

// --- inverted indexes: the most that a term can add to a document's score, over all its postings ---

struct Index {
    const int *begin, *document;
    const unsigned char *frequency;
    const float *length;  // of documents, as shares of the mean
};

__device__ __forceinline__ float impact(const Index &index, int posting) {
    const float often = index.frequency[posting];
    return often * 2.2f / (often + 1.2f * (0.25f + 0.75f * index.length[index.document[posting]]));
}
template <int THREADS>
__device__ __forceinline__ float most_of_block(float most) {
    __shared__ float of_warps[THREADS / 32];
    most = warp_max(most);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = most;
    __syncthreads();
    most = of_warps[0];
    for (int w = 1; w < THREADS / 32; w++) most = fmaxf(most, of_warps[w]);
    return most;
}
// Scores are not negative: their bits are ordered as they are.
__device__ __forceinline__ void hand_in_most(float *out, float most) { atomicMax(reinterpret_cast<int *>(out), __float_as_int(most)); }

__global__ void __launch_bounds__(128) most_impacts(Index index, float *__restrict__ out) {
    const int end = index.begin[blockIdx.x + 1];
    float most = 0.f;
    for (int i = index.begin[blockIdx.x] + threadIdx.x; i < end; i += 128) most = fmaxf(most, impact(index, i));
    most = most_of_block<128>(most);
    if (threadIdx.x == 0) out[blockIdx.x] = most;
}
struct Piece {
    int term, begin, end;
};
// Lists are cut into pieces of 2048 postings at most.
__global__ void __launch_bounds__(128) most_impacts_pieces(Index index, const Piece *__restrict__ pieces, float *out) {
    const Piece piece = pieces[blockIdx.x];
    float most = 0.f;
    for (int i = piece.begin + threadIdx.x; i < piece.end; i += 128) most = fmaxf(most, impact(index, i));
    most = most_of_block<128>(most);
    if (threadIdx.x == 0) hand_in_most(out + piece.term, most);
}
// Each warp takes 1024 postings in a row, whatever terms they are of, and hands in where the term ends.
__global__ void __launch_bounds__(128) most_impacts_even(Index index, float *out, int terms) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 128 + threadIdx.x) / 32 * 1024, last = min(first + 1024, index.begin[terms]);
    if (first >= last) return;
    int low = 0, high = terms;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (index.begin[middle] <= first) low = middle;
        else high = middle;
    }
    for (int term = low, at = first; at < last; term++) {
        const int end = min(last, index.begin[term + 1]);
        float most = 0.f;
#pragma unroll 4
        for (int i = at + lane; i < end; i += 32) most = fmaxf(most, impact(index, i));
        most = warp_max(most);
        if (lane == 0) hand_in_most(out + term, most);
        at = end;
    }
}

Study impacts("posting_lists_a_block_for_any_length", "search", 40000, "the greatest BM25 contribution of each of 40000 terms over its postings, of which common terms have very many",
    "a block for each term: the longest lists take all the time",
    {{"pieces", "lists cut into pieces of 2048, one a block", {"workload_imbalance"}}, {"even", "1024 postings a warp, across the ends of lists", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int documents = 1 << 20;
        std::vector<int> begin(n + 1);
        std::vector<Piece> pieces;
        for (long t = 0; t < n; t++) {
            const long rank = (t * 7919 + 13) % n;  // terms stand in the order of their letters
            const int many = static_cast<int>(8 + n * 15.0 / (rank + 1.0));
            begin[t + 1] = begin[t] + many;
            for (int from = begin[t]; from < begin[t + 1]; from += 2048) pieces.push_back({static_cast<int>(t), from, std::min(from + 2048, begin[t + 1])});
        }
        const int all = begin[n];
        std::vector<int> flat;
        for (const Piece &p : pieces) flat.insert(flat.end(), {p.term, p.begin, p.end});
        std::vector<int> document(all);
        for (long t = 0; t < n; t++) {
            const int many = begin[t + 1] - begin[t];
            for (int i = 0; i < many; i++) document[begin[t] + i] = static_cast<int>((static_cast<long long>(i) * documents + hash(static_cast<unsigned>(begin[t] + i)) % documents) / many);
        }
        const Index index{b.copy(begin), b.copy(document), b.random<unsigned char>(all, 1, 12), b.random<float>(documents, 0.2, 2.5)};
        auto list = reinterpret_cast<const Piece *>(b.copy(flat));
        float *out = b.output<float>(n, true);
        return {{"flawed", launch(most_impacts, n, 128, 0, index, out)}, {"pieces", launch(most_impacts_pieces, pieces.size(), 128, 0, index, list, out)},
            {"even", launch(most_impacts_even, blocks(all, 4096), 128, 0, index, out, static_cast<int>(n))}};
    });

// --- profits of trading desks: each desk's positions times the changes of prices in each scenario ---

constexpr int SCENARIOS = 512;

struct Desks {
    const int *begin, *share;  // positions of a desk one after the other
    const float *amount, *changes;  // changes: SCENARIOS in a row for each share
};

__global__ void __launch_bounds__(SCENARIOS) profits(Desks d, float *__restrict__ out) {
    const int desk = blockIdx.x, scenario = threadIdx.x;
    float sum = 0.f;
    for (int i = d.begin[desk]; i < d.begin[desk + 1]; i++) sum = fmaf(d.amount[i], d.changes[static_cast<size_t>(d.share[i]) * SCENARIOS + scenario], sum);
    out[desk * SCENARIOS + scenario] = sum;
}
// The positions of a desk are split among many blocks, which add what they have.
__global__ void __launch_bounds__(SCENARIOS) profits_split(Desks d, float *out) {
    const int desk = blockIdx.x, scenario = threadIdx.x, begin = d.begin[desk], count = d.begin[desk + 1] - begin;
    const int from = begin + static_cast<int>(static_cast<long long>(count) * blockIdx.y / gridDim.y), to = begin + static_cast<int>(static_cast<long long>(count) * (blockIdx.y + 1) / gridDim.y);
    float sum = 0.f;
#pragma unroll 8
    for (int i = from; i < to; i++) sum = fmaf(d.amount[i], d.changes[static_cast<size_t>(d.share[i]) * SCENARIOS + scenario], sum);
    atomicAdd(&out[desk * SCENARIOS + scenario], sum);
}
// A block for 32 scenarios of a desk; its 32 warps take positions in turns.
__global__ void __launch_bounds__(1024) profits_columns(Desks d, float *__restrict__ out) {
    __shared__ float part[32][33];
    const int desk = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, scenario = blockIdx.y * 32 + lane, end = d.begin[desk + 1];
    float sum = 0.f;
#pragma unroll 4
    for (int i = d.begin[desk] + warp; i < end; i += 32) sum = fmaf(d.amount[i], d.changes[static_cast<size_t>(d.share[i]) * SCENARIOS + scenario], sum);
    part[warp][lane] = sum;
    __syncthreads();
    sum = warp_sum(part[lane][warp]);
    if (lane == 0) out[desk * SCENARIOS + blockIdx.y * 32 + warp] = sum;
}

Study desk_profits("profits_of_24_desks_a_block_each", "finance", 24, "profits of 24 desks of about 5600 positions each in 512 scenarios of 4000 shares",
    "a block for each desk: 24 of them",
    {{"split", "each desk's positions split among 32 blocks, added by atomics", {"small_grid"}}, {"columns", "a block for 32 scenarios of a desk, its warps share the positions", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const int shares = 4000;
        std::vector<int> begin(n + 1);
        for (long i = 0; i < n; i++) begin[i + 1] = begin[i] + 5000 + static_cast<int>(hash(static_cast<unsigned>(i)) % 1200);
        const Desks d{b.copy(begin), b.random<int>(begin[n], 0, shares), b.random<float>(begin[n], -1000, 1000), b.random<float>(static_cast<size_t>(shares) * SCENARIOS, -0.05, 0.05)};
        float *out = b.output<float>(n * SCENARIOS, true);
        const unsigned desks = static_cast<unsigned>(n);
        return {{"flawed", launch(profits, desks, SCENARIOS, 0, d, out)}, {"split", launch(profits_split, dim3(desks, 32), SCENARIOS, 0, d, out)},
            {"columns", launch(profits_columns, dim3(desks, SCENARIOS / 32), 1024, 0, d, out)}};
    });

// --- bands around rolling means of 20 days, and how far above or below them a price is ---

constexpr int WINDOW = 20;

__device__ __forceinline__ float band_score(float price, float sum, float squares) {
    const float mean = sum * (1.f / WINDOW), variance = fmaxf(squares * (1.f / WINDOW) - mean * mean, 1e-6f);
    return (price - mean) * rsqrtf(variance);
}

// The last 20 prices go round in an array.
__global__ void __launch_bounds__(128) bands(const float *__restrict__ prices, float *__restrict__ out, int series, int days) {
    const int s = blockIdx.x * 128 + threadIdx.x;
    if (s >= series) return;
    float last[WINDOW] = {}, sum = 0.f, squares = 0.f;
    for (int day = 0, slot = 0; day < days; day++) {
        const float price = prices[static_cast<size_t>(day) * series + s], old = last[slot];
        sum += price - old;
        squares += price * price - old * old;
        last[slot] = price;
        slot = slot + 1 == WINDOW ? 0 : slot + 1;
        out[static_cast<size_t>(day) * series + s] = day + 1 < WINDOW ? 0.f : band_score(price, sum, squares);
    }
}
// Twenty days a turn: each has its register.
__global__ void __launch_bounds__(128) bands_by_twenty(const float *__restrict__ prices, float *__restrict__ out, int series, int days) {
    const int s = blockIdx.x * 128 + threadIdx.x;
    if (s >= series) return;
    float last[WINDOW] = {}, sum = 0.f, squares = 0.f;
    for (int first = 0; first < days; first += WINDOW) {
#pragma unroll
        for (int k = 0; k < WINDOW; k++) {
            const int day = first + k;
            if (day >= days) break;
            const float price = prices[static_cast<size_t>(day) * series + s], old = last[k];
            sum += price - old;
            squares += price * price - old * old;
            last[k] = price;
            out[static_cast<size_t>(day) * series + s] = day + 1 < WINDOW ? 0.f : band_score(price, sum, squares);
        }
    }
}
// The price of 20 days ago is read once more.
__global__ void __launch_bounds__(128) bands_read_again(const float *__restrict__ prices, float *__restrict__ out, int series, int days) {
    const int s = blockIdx.x * 128 + threadIdx.x;
    if (s >= series) return;
    float sum = 0.f, squares = 0.f;
#pragma unroll 4
    for (int day = 0; day < days; day++) {
        const float price = prices[static_cast<size_t>(day) * series + s], old = day < WINDOW ? 0.f : prices[static_cast<size_t>(day - WINDOW) * series + s];
        sum += price - old;
        squares += price * price - old * old;
        out[static_cast<size_t>(day) * series + s] = day + 1 < WINDOW ? 0.f : band_score(price, sum, squares);
    }
}

Study rolling_bands("rolling_bands_window_in_local", "finance", 1 << 18, "how far 262144 series of 120 prices are from the mean of the last 20, in standard deviations",
    "the window is an array with a running index, which lies in local memory",
    {{"by_twenty", "twenty days a turn, so that indices are fixed", {"local_memory"}}, {"read_again", "the price that leaves the window read from memory again", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int days = 120, series = static_cast<int>(n);
        const float *prices = b.random<float>(n * days, 1, 3);
        float *out = b.output<float>(n * days);
        b.tolerance = 1e-4;
        return {{"flawed", launch(bands, blocks(n, 128), 128, 0, prices, out, series, days)}, {"by_twenty", launch(bands_by_twenty, blocks(n, 128), 128, 0, prices, out, series, days)},
            {"read_again", launch(bands_read_again, blocks(n, 128), 128, 0, prices, out, series, days)}};
    });

}  // namespace
