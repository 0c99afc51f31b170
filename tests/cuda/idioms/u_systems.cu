// Materials, trackers, secrets, routes, reactions, recursions, particles and voices.
#include <algorithm>

#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- what materials look like: graphs of 24 nodes, seen at 64 points ---

constexpr int NODES = 24, POINTS = 64, SEEN = 160;

struct __align__(4) Node {
    unsigned char what, from;
    __half amount;
};
__device__ __forceinline__ float evaluated(unsigned what, float amount, float value, float input) {
    if (what == 0) return value + amount * input;
    if (what == 1) return value * input + amount;
    if (what == 2) return __sinf(value + input) * amount;
    if (what == 3) return __fdividef(input, 1.0f + value * value);
    if (what == 4) return sqrtf(fabsf(value * input) + amount);
    if (what == 5) return expf(-fabsf(value)) * input;
    return fmaxf(value, input) - amount;
}
__global__ void __launch_bounds__(SEEN) material_looks(const Node *nodes, const float4 *points, float *looks, int materials) {
    __shared__ float seen[POINTS][4];
    if (threadIdx.x < POINTS) {
        const float4 p = points[threadIdx.x];
        seen[threadIdx.x][0] = p.x, seen[threadIdx.x][1] = p.y, seen[threadIdx.x][2] = p.z, seen[threadIdx.x][3] = p.w;
    }
    __syncthreads();
    const int material = blockIdx.x * SEEN + threadIdx.x;
    if (material >= materials) return;
    float sum = 0.0f;
    int point = POINTS;
    while (point-- > 0) {
        const Node *node = nodes + material;
        float value = 0.5f;
        int left = NODES;
        do {
            const Node now = *node;
            value = evaluated(now.what, __half2float(now.amount), value, seen[point][now.from]);
            node += materials;
        } while (--left);
        sum += value;
    }
    looks[material] = sum * (1.0f / POINTS);
}
__device__ __forceinline__ float chosen(const float4 &p, unsigned which) {
    const float low = which & 1 ? p.y : p.x, high = which & 1 ? p.w : p.z;
    return which & 2 ? high : low;
}
// A material for a warp, two points for each of its lanes, one after the other.
__global__ void __launch_bounds__(SEEN) material_looks_warps(const Node *__restrict__ nodes, const float4 *__restrict__ points, float *__restrict__ looks, int materials) {
    const int material = blockIdx.x * (SEEN / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (material >= materials) return;
    float sum = 0.0f;
    for (int point = lane; point < POINTS; point += 32) {
        const float4 p = points[point];
        float value = 0.5f;
        for (int k = 0; k < NODES; ++k) {
            const Node now = nodes[k * materials + material];
            value = evaluated(now.what, __half2float(now.amount), value, chosen(p, now.from));
        }
        sum += value;
    }
    sum = warp_sum(sum);
    if (lane == 0) looks[material] = sum * (1.0f / POINTS);
}
// Both points of a lane at once; the nodes of the block's five materials in shared memory.
__global__ void __launch_bounds__(SEEN) material_looks_staged(const Node *__restrict__ nodes, const float4 *__restrict__ points, float *__restrict__ looks, int materials) {
    constexpr int OWN = SEEN / 32;
    __shared__ Node graph[OWN][NODES];
    if (threadIdx.x < OWN * NODES) graph[threadIdx.x % OWN][threadIdx.x / OWN] = nodes[threadIdx.x / OWN * materials + blockIdx.x * OWN + threadIdx.x % OWN];
    const int which = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 near = points[lane], far = points[lane + 32];
    __syncthreads();
    float a = 0.5f, z = 0.5f;
    for (int k = 0; k < NODES; ++k) {
        const Node now = graph[which][k];
        const float amount = __half2float(now.amount);
        a = evaluated(now.what, amount, a, chosen(near, now.from));
        z = evaluated(now.what, amount, z, chosen(far, now.from));
    }
    const float sum = warp_sum(a + z);
    if (lane == 0) looks[blockIdx.x * OWN + which] = sum * (1.0f / POINTS);
}

Study materials("materials_each_lane_other_nodes", "rendering", 100000, "looks of 100000 materials, graphs of 24 nodes of seven kinds, at 64 points",
    "each lane of a warp follows the nodes of another material: a warp goes through all kinds of nodes at each step",
    {{"warps", "a material a warp, a point a lane", {"branch_divergence"}}, {"staged", "two points a lane at once, nodes in shared memory", {"branch_divergence", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Node> list(n * NODES);
        for (unsigned i = 0; i < list.size(); i++) {
            const unsigned chance = hash(i);
            list[i].what = static_cast<unsigned char>(chance % 7), list[i].from = static_cast<unsigned char>(chance >> 8 & 3), list[i].amount = __float2half(0.25f + (chance >> 16) % 1024 / 2048.0f);
        }
        const Node *nodes = b.copy(list);
        const auto *points = reinterpret_cast<const float4 *>(b.random<float>(4 * POINTS));
        float *looks = b.output<float>(n);
        const int count = static_cast<int>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(material_looks, blocks(n, SEEN), SEEN, 0, nodes, points, looks, count)}, {"warps", launch(material_looks_warps, blocks(n, SEEN / 32), SEEN, 0, nodes, points, looks, count)},
            {"staged", launch(material_looks_staged, n / (SEEN / 32), SEEN, 0, nodes, points, looks, count)}};
    });

// --- how uncertain trackers of moving things become in a step ---

constexpr int STATES = 9;

struct Square {
    float of[STATES][STATES];
};
struct Noise {
    float of[STATES];
};
// A column of F P F' + Q.
__device__ __forceinline__ void predict_column(const Square &motion, const Square &before, Square &after, const Noise &noise, int column) {
    float share[STATES], moved[STATES];
#pragma unroll
    for (int k = 0; k < STATES; ++k) share[k] = motion.of[column][k];
#pragma unroll
    for (int r = 0; r < STATES; ++r) {
        moved[r] = 0.0f;
#pragma unroll
        for (int k = 0; k < STATES; ++k) moved[r] += before.of[r][k] * share[k];
    }
#pragma unroll
    for (int r = 0; r < STATES; ++r) {
        float sum = r == column ? noise.of[r] : 0.0f;
#pragma unroll
        for (int k = 0; k < STATES; ++k) sum += motion.of[r][k] * moved[k];
        after.of[r][column] = sum;
    }
}
__global__ void __launch_bounds__(256) predicted(const Square *motion, const Square *before, Square *after, const Noise noise, int trackers) {
    const int warps = gridDim.x * 8, lane = threadIdx.x & 31;
    for (int tracker = blockIdx.x * 8 + (threadIdx.x >> 5); tracker < trackers; tracker += warps)
        if (lane < STATES) predict_column(motion[tracker], before[tracker], after[tracker], noise, lane);
}
// Three trackers a warp.
__global__ void __launch_bounds__(256) predicted_threes(const Square *__restrict__ motion, const Square *__restrict__ before, Square *__restrict__ after, const Noise noise, int trackers) {
    const int lane = threadIdx.x & 31, which = lane / STATES, tracker = (blockIdx.x * 8 + (threadIdx.x >> 5)) * 3 + which;
    if (which < 3 && tracker < trackers) predict_column(motion[tracker], before[tracker], after[tracker], noise, lane % STATES);
}
// 32 trackers for a block of 288 threads.
__global__ void __launch_bounds__(32 * STATES) predicted_packed(const Square *__restrict__ motion, const Square *__restrict__ before, Square *__restrict__ after, const Noise noise, int trackers) {
    const int tracker = blockIdx.x * 32 + threadIdx.x / STATES;
    if (tracker < trackers) predict_column(motion[tracker], before[tracker], after[tracker], noise, threadIdx.x % STATES);
}

Study trackers("tracker_covariances_nine_lanes_of_a_warp", "robotics", 120000, "covariances of 120000 trackers of nine states after a step",
    "a tracker a warp and a column a lane: 23 of 32 lanes have nothing to do",
    {{"threes", "three trackers a warp", {"idle_threads"}}, {"packed", "32 trackers for a block of 288 threads", {"idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int NUMBERS = STATES * STATES;
        const auto *motion = reinterpret_cast<const Square *>(b.random<float>(n * NUMBERS)), *before = reinterpret_cast<const Square *>(b.random<float>(n * NUMBERS));
        auto *after = reinterpret_cast<Square *>(b.output<float>(n * NUMBERS));
        const Noise noise = {{0.1f, 0.1f, 0.1f, 0.2f, 0.2f, 0.2f, 0.4f, 0.4f, 0.4f}};
        const int count = static_cast<int>(n);
        return {{"flawed", launch(predicted, blocks(n, 8 * 4), 256, 0, motion, before, after, noise, count)}, {"threes", launch(predicted_threes, blocks(n, 24), 256, 0, motion, before, after, noise, count)},
            {"packed", launch(predicted_packed, blocks(n, 32), 32 * STATES, 0, motion, before, after, noise, count)}};
    });

// --- shares of a secret: a polynomial over a prime field at many points ---

constexpr unsigned PRIME = 0x7fffffffu;
constexpr int COEFFICIENTS = 3000, HOLDERS = 128;

// h x + c modulo 2^31 - 1.
__device__ __forceinline__ unsigned horner(unsigned h, unsigned x, unsigned c) {
    const unsigned long long wide = static_cast<unsigned long long>(h) * x + c;
    const unsigned folded = (static_cast<unsigned>(wide) & PRIME) + static_cast<unsigned>(wide >> 31);
    return folded >= PRIME ? folded - PRIME : folded;
}
__device__ __forceinline__ void fetch(unsigned *own, const unsigned *coefficients) {
    for (int k = threadIdx.x; k < COEFFICIENTS; k += blockDim.x) own[k] = coefficients[k];
    __syncthreads();
}
__global__ void __launch_bounds__(HOLDERS) secret_shares(const unsigned *coefficients, const unsigned *points, unsigned *shares) {
    __shared__ unsigned own[COEFFICIENTS];
    fetch(own, coefficients);
    const unsigned x = points[blockIdx.x * HOLDERS + threadIdx.x];
    unsigned share = 0;
#pragma unroll 8
    for (int k = COEFFICIENTS - 1; k >= 0; --k) share = horner(share, x, own[k]);
    shares[blockIdx.x * HOLDERS + threadIdx.x] = share;
}
// Every fourth coefficient to each of four sums.
__global__ void __launch_bounds__(HOLDERS) secret_shares_fours(const unsigned *__restrict__ coefficients, const unsigned *__restrict__ points, unsigned *__restrict__ shares) {
    __shared__ unsigned own[COEFFICIENTS];
    fetch(own, coefficients);
    const unsigned x = points[blockIdx.x * HOLDERS + threadIdx.x], square = horner(x, x, 0), fourth = horner(square, square, 0);
    unsigned a = 0, b = 0, c = 0, d = 0;
#pragma unroll 2
    for (int k = COEFFICIENTS - 4; k >= 0; k -= 4) {
        a = horner(a, fourth, own[k]);
        b = horner(b, fourth, own[k + 1]);
        c = horner(c, fourth, own[k + 2]);
        d = horner(d, fourth, own[k + 3]);
    }
    shares[blockIdx.x * HOLDERS + threadIdx.x] = horner(horner(horner(d, x, c), x, b), x, a);
}
// Eight lanes a point, every eighth coefficient each.
__global__ void __launch_bounds__(2 * HOLDERS) secret_shares_lanes(const unsigned *__restrict__ coefficients, const unsigned *__restrict__ points, unsigned *__restrict__ shares) {
    __shared__ unsigned own[COEFFICIENTS];
    fetch(own, coefficients);
    const int point = (blockIdx.x * 2 * HOLDERS + threadIdx.x) / 8, part = threadIdx.x % 8;
    const unsigned x = points[point];
    unsigned power = x, share = 0;
#pragma unroll
    for (int doubling = 0; doubling < 3; ++doubling) power = horner(power, power, 0);
    for (int k = COEFFICIENTS - 8 + part; k >= 0; k -= 8) share = horner(share, power, own[k]);
    for (int k = 0; k < part; ++k) share = horner(share, x, 0);
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) share = horner(share, 1, __shfl_down_sync(0xffffffffu, share, offset, 8));
    if (part == 0) shares[point] = share;
}

Study secrets("secret_shares_one_chain_a_point", "cryptography", 16896, "a polynomial of 3000 coefficients modulo a prime at 16896 points",
    "a step of Horner's scheme waits for the one before, 3000 times in a row, in one warp a scheduler",
    {{"fours", "four sums a thread", {"instruction_latency"}}, {"lanes", "eight lanes a point", {"instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *coefficients = b.random<unsigned>(COEFFICIENTS, 0.0, PRIME), *points = b.random<unsigned>(n, 1.0, PRIME);
        unsigned *shares = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(secret_shares, n / HOLDERS, HOLDERS, 0, coefficients, points, shares)}, {"fours", launch(secret_shares_fours, n / HOLDERS, HOLDERS, 0, coefficients, points, shares)},
            {"lanes", launch(secret_shares_lanes, n * 8 / (2 * HOLDERS), 2 * HOLDERS, 0, coefficients, points, shares)}};
    });

// --- shortest routes from one station to all others, Bellman's rounds ---

constexpr int STATIONS = 3072, LINES = 4, ROUNDS = 60;

struct Network {
    const int *from, *minutes;  // of each station's lines: first those of all stations, then the second ones, ...
};
__global__ void relax(Network network, const int *before, int *after) {
    const int station = blockIdx.x * blockDim.x + threadIdx.x;
    if (station >= STATIONS) return;
    int best = before[station];
    for (int line = 0; line < LINES; ++line) {
        const int at = line * STATIONS + station;
        best = min(best, before[network.from[at]] + network.minutes[at]);
    }
    after[station] = best;
}
// Several rounds in one block; three stations a thread, whose lines stay in registers.
__global__ void __launch_bounds__(STATIONS / 3) relax_rounds(Network network, const int *__restrict__ before, int *__restrict__ after, int rounds) {
    __shared__ int best[2][STATIONS];
    int from[3][LINES], minutes[3][LINES], now = 0;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const int station = k * (STATIONS / 3) + threadIdx.x;
        best[0][station] = before[station];
#pragma unroll
        for (int line = 0; line < LINES; ++line) from[k][line] = network.from[line * STATIONS + station], minutes[k][line] = network.minutes[line * STATIONS + station];
    }
    while (rounds-- > 0) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const int station = k * (STATIONS / 3) + threadIdx.x;
            int own = best[now][station];
#pragma unroll
            for (int line = 0; line < LINES; ++line) own = min(own, best[now][from[k][line]] + minutes[k][line]);
            best[now ^ 1][station] = own;
        }
        now ^= 1;
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) after[k * (STATIONS / 3) + threadIdx.x] = best[now][k * (STATIONS / 3) + threadIdx.x];
}

Study routes("shortest_routes_a_launch_each_round", "transport", ROUNDS, "60 rounds of shortest routes to 3072 stations of four lines each",
    "a launch a round, of 24 blocks that have a few dozen instructions to do",
    {{"in_one_block", "all rounds in one block, in shared memory", {"launch_overhead"}}, {"twelves", "twelve rounds a launch", {"launch_overhead"}}},
    [](Buffers &b, long rounds) -> Sides {
        std::vector<int> from(STATIONS * LINES), minutes(from.size()), start(STATIONS, 100000000);
        for (int k = 0; k < STATIONS * LINES; k++) {
            const int station = k % STATIONS, line = k / STATIONS;
            from[k] = line == 0 ? (station + STATIONS - 1) % STATIONS : line == 1 ? (station + 1) % STATIONS : static_cast<int>(hash(k) % STATIONS);
            minutes[k] = 2 + static_cast<int>(hash(k + 50000) % 60);
        }
        start[0] = 0;
        const Network network = {b.copy(from), b.copy(minutes)};
        const int *first = b.copy(start), count = static_cast<int>(rounds);
        int *best = b.output<int>(STATIONS), *other = b.allocate<int>(STATIONS);
        b.tolerance = 0.0;
        const auto chain = [=](int length, auto round) {
            return [=] {
                for (int k = 0; k < length; k++) {
                    const bool last = (length - 1 - k) % 2 == 0;
                    round(k == 0 ? first : last ? other : best, last ? best : other)();
                }
            };
        };
        const auto one = [=](const int *before, int *after) { return launch(relax, STATIONS / 128, 128, 0, network, before, after); };
        const auto twelve = [=](const int *before, int *after) { return launch(relax_rounds, 1, STATIONS / 3, 0, network, before, after, 12); };
        return {{"flawed", chain(count, one), one(first, best), count}, {"in_one_block", launch(relax_rounds, 1, STATIONS / 3, 0, network, first, best, count)},
            {"twelves", chain(count / 12, twelve), twelve(first, best), count / 12}};
    });

// --- a step of chemical reactions in each cell: five equations ---

constexpr int SPECIES = 5, REACTORS = 64;

struct Reactors {
    const double *rates, *sources;  // of all cells side by side
    double *changes;
    long long cells;
};
__device__ __forceinline__ double matrix_entry(const Reactors &r, long long cell, int row, int column) { return r.rates[(row * SPECIES + column) * r.cells + cell] + (row == column ? 2.0 : 0.0); }
__global__ void __launch_bounds__(REACTORS) reaction_steps(const Reactors reactors) {
    const long long cell = static_cast<long long>(blockIdx.x) * REACTORS + threadIdx.x;
    if (cell >= reactors.cells) return;
    double a[SPECIES][SPECIES + 1];
    for (int row = 0; row < SPECIES; ++row) {
        for (int column = 0; column < SPECIES; ++column) a[row][column] = matrix_entry(reactors, cell, row, column);
        a[row][SPECIES] = reactors.sources[row * reactors.cells + cell];
    }
    for (int step = 0; step < SPECIES; ++step) {
        int pivot = step;
        for (int row = step + 1; row < SPECIES; ++row)
            if (fabs(a[row][step]) > fabs(a[pivot][step])) pivot = row;
        for (int column = step; column <= SPECIES; ++column) {
            const double kept = a[step][column];
            a[step][column] = a[pivot][column];
            a[pivot][column] = kept;
        }
        const double inverse = 1.0 / a[step][step];
        for (int row = step + 1; row < SPECIES; ++row) {
            const double factor = a[row][step] * inverse;
            for (int column = step + 1; column <= SPECIES; ++column) a[row][column] -= factor * a[step][column];
        }
    }
    for (int row = SPECIES - 1; row >= 0; --row) {
        double x = a[row][SPECIES];
        for (int column = row + 1; column < SPECIES; ++column) x -= a[row][column] * a[column][SPECIES];
        a[row][SPECIES] = x / a[row][row];
        reactors.changes[row * reactors.cells + cell] = a[row][SPECIES];
    }
}
// All loops unrolled; a row that should be the pivot's changes places with it by selection.
__global__ void __launch_bounds__(REACTORS) reaction_steps_selected(const Reactors reactors) {
    const long long cell = static_cast<long long>(blockIdx.x) * REACTORS + threadIdx.x;
    if (cell >= reactors.cells) return;
    double a[SPECIES][SPECIES + 1];
#pragma unroll
    for (int row = 0; row < SPECIES; ++row) {
#pragma unroll
        for (int column = 0; column < SPECIES; ++column) a[row][column] = matrix_entry(reactors, cell, row, column);
        a[row][SPECIES] = reactors.sources[row * reactors.cells + cell];
    }
#pragma unroll
    for (int step = 0; step < SPECIES; ++step) {
#pragma unroll
        for (int row = step + 1; row < SPECIES; ++row) {
            const bool better = fabs(a[row][step]) > fabs(a[step][step]);
#pragma unroll
            for (int column = step; column <= SPECIES; ++column) {
                const double high = a[step][column], low = a[row][column];
                a[step][column] = better ? low : high;
                a[row][column] = better ? high : low;
            }
        }
        const double inverse = 1.0 / a[step][step];
#pragma unroll
        for (int row = step + 1; row < SPECIES; ++row) {
            const double factor = a[row][step] * inverse;
#pragma unroll
            for (int column = step + 1; column <= SPECIES; ++column) a[row][column] -= factor * a[step][column];
        }
    }
#pragma unroll
    for (int row = SPECIES - 1; row >= 0; --row) {
        double x = a[row][SPECIES];
#pragma unroll
        for (int column = row + 1; column < SPECIES; ++column) x -= a[row][column] * a[column][SPECIES];
        a[row][SPECIES] = x / a[row][row];
        reactors.changes[row * reactors.cells + cell] = a[row][SPECIES];
    }
}

Study reactions("reaction_steps_rows_swapped_by_index", "chemistry", 600000, "600000 systems of five equations in double precision, by elimination with a pivot",
    "the row of the pivot is known at run time only: the matrix of a thread lies in local memory",
    {{"selected", "rows change places by selection, all in registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const Reactors reactors = {b.random<double>(n * SPECIES * SPECIES), b.random<double>(n * SPECIES), b.output<double>(n * SPECIES), n};
        b.tolerance = 1e-6;
        return {{"flawed", launch(reaction_steps, blocks(n, REACTORS), REACTORS, 0, reactors)}, {"selected", launch(reaction_steps_selected, blocks(n, REACTORS), REACTORS, 0, reactors)}};
    });

// --- recursions x = a x + b along many signals ---

constexpr int LENGTH = 1024;

struct Straight {
    __device__ static int place(int i) { return i; }
};
struct Spaced {
    __device__ static int place(int i) { return i + (i >> 5); }
};
// First a, then b, taken together.
__device__ __forceinline__ float2 after(float2 first, float2 second) { return make_float2(first.x * second.x, fmaf(second.x, first.y, second.y)); }

// Up and down a tree; two moments a thread.
template <typename Layout>
__global__ void __launch_bounds__(LENGTH / 2) recursions(const float *factors, const float *terms, float *states, float start) {
    __shared__ float factor[LENGTH + LENGTH / 32], term[LENGTH + LENGTH / 32];
    const int t = threadIdx.x;
    const size_t base = static_cast<size_t>(blockIdx.x) * LENGTH;
    float2 own[2];
    for (int k = 0; k < 2; ++k) {
        const int i = t + k * (LENGTH / 2);
        own[k] = make_float2(factors[base + i], terms[base + i]);
        factor[Layout::place(i)] = own[k].x, term[Layout::place(i)] = own[k].y;
    }
    int apart = 1;
    for (int pairs = LENGTH / 2; pairs > 0; pairs /= 2, apart *= 2) {
        __syncthreads();
        if (t < pairs) {
            const int left = Layout::place(apart * (2 * t + 1) - 1), right = Layout::place(apart * (2 * t + 2) - 1);
            const float2 both = after(make_float2(factor[left], term[left]), make_float2(factor[right], term[right]));
            factor[right] = both.x, term[right] = both.y;
        }
    }
    __syncthreads();
    if (t == 0) factor[Layout::place(LENGTH - 1)] = 1.0f, term[Layout::place(LENGTH - 1)] = 0.0f;
    for (int pairs = 1; pairs < LENGTH; pairs *= 2) {
        apart /= 2;
        __syncthreads();
        if (t < pairs) {
            const int left = Layout::place(apart * (2 * t + 1) - 1), right = Layout::place(apart * (2 * t + 2) - 1);
            const float2 below = make_float2(factor[left], term[left]), above = make_float2(factor[right], term[right]), both = after(above, below);
            factor[left] = above.x, term[left] = above.y;
            factor[right] = both.x, term[right] = both.y;
        }
    }
    __syncthreads();
    for (int k = 0; k < 2; ++k) {
        const int i = t + k * (LENGTH / 2);
        const float before = fmaf(factor[Layout::place(i)], start, term[Layout::place(i)]);
        states[base + i] = fmaf(own[k].x, before, own[k].y);
    }
}
// Two moments side by side a thread; warps by shuffles.
__global__ void __launch_bounds__(LENGTH / 2) recursions_warps(const float2 *__restrict__ factors, const float2 *__restrict__ terms, float2 *__restrict__ states, float start) {
    __shared__ float2 warps[LENGTH / 64];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t at = static_cast<size_t>(blockIdx.x) * (LENGTH / 2) + threadIdx.x;
    const float2 a = factors[at], b = terms[at];
    float2 sum = after(make_float2(a.x, b.x), make_float2(a.y, b.y));
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const float2 earlier = make_float2(__shfl_up_sync(0xffffffffu, sum.x, offset), __shfl_up_sync(0xffffffffu, sum.y, offset));
        if (lane >= offset) sum = after(earlier, sum);
    }
    if (lane == 31) warps[warp] = sum;
    float2 before = make_float2(__shfl_up_sync(0xffffffffu, sum.x, 1), __shfl_up_sync(0xffffffffu, sum.y, 1));
    if (lane == 0) before = make_float2(1.0f, 0.0f);
    __syncthreads();
    float state = start;
    for (int w = 0; w < warp; ++w) state = fmaf(warps[w].x, state, warps[w].y);
    state = fmaf(before.x, state, before.y);
    const float next = fmaf(a.x, state, b.x);
    states[at] = make_float2(next, fmaf(a.y, next, b.y));
}

Study signals("recursions_up_and_down_a_tree", "signal processing", 12000, "12000 recursions of 1024 steps, as a scan in shared memory",
    "lanes are a distance apart that doubles from step to step: up to 32 words of one bank a request",
    {{"spaced", "a word left out after every 32", {"shared_bank_conflicts"}}, {"warps", "scans of warps by shuffles", {"shared_bank_conflicts", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const float *factors = b.random<float>(n * LENGTH, 0.5, 0.99), *terms = b.random<float>(n * LENGTH);
        float *states = b.output<float>(n * LENGTH);
        const auto pairs_of = [](const float *values) { return reinterpret_cast<const float2 *>(values); };
        return {{"flawed", launch(recursions<Straight>, n, LENGTH / 2, 0, factors, terms, states, 1.0f)}, {"spaced", launch(recursions<Spaced>, n, LENGTH / 2, 0, factors, terms, states, 1.0f)},
            {"warps", launch(recursions_warps, n, LENGTH / 2, 0, pairs_of(factors), pairs_of(terms), reinterpret_cast<float2 *>(states), 1.0f)}};
    });

// --- energy of all particles' motion ---

// Speed in x, y and z, mass in w.
__global__ void kinetic_energy(const float4 *particles, double *energy, int count) {
    __shared__ double sums[32];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const float4 p = particles[i];
        sum += 0.5f * p.w * (p.x * p.x + p.y * p.y + p.z * p.z);
    }
    double total = sum;
    for (int offset = 16; offset; offset >>= 1) total += __shfl_down_sync(0xffffffffu, total, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned w = 1; w < blockDim.x / 32; ++w) total += sums[w];
        atomicAdd(energy, total);
    }
}

Study particles("kinetic_energy_one_block", "molecular dynamics", 250000, "kinetic energy of 250000 particles",
    "a single block of 768 threads goes over all of them",
    {{"blocks", "264 blocks of 256 threads, an atomic each", {"small_grid"}}, {"wide", "132 blocks of 512 threads, an atomic each", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const auto *particles = reinterpret_cast<const float4 *>(b.random<float>(4 * n, 0.1, 1.0));
        double *energy = b.output<double>(1, true);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(kinetic_energy, 1, 768, 0, particles, energy, count)}, {"blocks", launch(kinetic_energy, 264, 256, 0, particles, energy, count)}, {"wide", launch(kinetic_energy, 132, 512, 0, particles, energy, count)}};
    });

// --- how alike voices are ---

constexpr int VOICES = 64, PART = 32, ROW = PART + 8;

struct Voices {
    const __half *known, *heard;  // a row each
    float *scores;
    int count, features;  // of those heard
};
__device__ __forceinline__ void bring(__half (&to)[VOICES][ROW], const __half *from, int features, int part) {
    for (int item = threadIdx.x; item < VOICES * PART / 8; item += 128) {
        const int row = item / (PART / 8), eight = item % (PART / 8) * 8;
        *reinterpret_cast<uint4 *>(&to[row][eight]) = *reinterpret_cast<const uint4 *>(from + static_cast<size_t>(row) * features + part + eight);
    }
}
union Eight {
    uint4 word;
    __half2 pair[4];
    __device__ Eight() : word() {}
};
// 64 x 64 scores a block, 8 x 4 a thread.
__global__ void __launch_bounds__(128) voice_scores(Voices v) {
    __shared__ __align__(16) __half known[VOICES][ROW], heard[VOICES][ROW];
    const int row0 = blockIdx.y * VOICES, column0 = blockIdx.x * VOICES, x = threadIdx.x % 16, y = threadIdx.x / 16;
    float scores[8][4] = {};
    for (int part = 0; part < v.features; part += PART) {
        bring(known, v.known + static_cast<size_t>(row0) * v.features, v.features, part);
        bring(heard, v.heard + static_cast<size_t>(column0) * v.features, v.features, part);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < PART; k += 8) {
            Eight a[8], b[4];
#pragma unroll
            for (int i = 0; i < 8; ++i) a[i].word = *reinterpret_cast<const uint4 *>(&known[y + 8 * i][k]);
#pragma unroll
            for (int j = 0; j < 4; ++j) b[j].word = *reinterpret_cast<const uint4 *>(&heard[x + 16 * j][k]);
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                float2 wide[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) wide[j] = __half22float2(b[j].pair[pair]);
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float2 own = __half22float2(a[i].pair[pair]);
#pragma unroll
                    for (int j = 0; j < 4; ++j) scores[i][j] = fmaf(own.y, wide[j].y, fmaf(own.x, wide[j].x, scores[i][j]));
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) v.scores[static_cast<size_t>(row0 + y + 8 * i) * v.count + column0 + x + 16 * j] = scores[i][j];
}
// The same tiles, 32 x 32 scores a warp as products of matrices.
__global__ void __launch_bounds__(128) voice_scores_fragments(Voices v) {
    namespace wmma = nvcuda::wmma;
    __shared__ __align__(16) __half known[VOICES][ROW], heard[VOICES][ROW];
    const int row0 = blockIdx.y * VOICES, column0 = blockIdx.x * VOICES, warp = threadIdx.x / 32, down = warp / 2 * 32, across = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> scores[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) wmma::fill_fragment(scores[i / 2][i % 2], 0.0f);
    for (int part = 0; part < v.features; part += PART) {
        bring(known, v.known + static_cast<size_t>(row0) * v.features, v.features, part);
        bring(heard, v.heard + static_cast<size_t>(column0) * v.features, v.features, part);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PART; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(a[i], &known[down + 16 * i][k], ROW), wmma::load_matrix_sync(b[i], &heard[across + 16 * i][k], ROW);
#pragma unroll
            for (int i = 0; i < 4; ++i) wmma::mma_sync(scores[i / 2][i % 2], a[i / 2], b[i % 2], scores[i / 2][i % 2]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) wmma::store_matrix_sync(v.scores + static_cast<size_t>(row0 + down + i / 2 * 16) * v.count + column0 + across + i % 2 * 16, scores[i / 2][i % 2], v.count, wmma::mem_row_major);
}

Study voices("voice_scores_halves_on_fma", "speech", 1600, "scores of 1600 voices heard against 1600 known ones, 640 features each, kept as halves",
    "halves are widened and multiplied on the FMA pipe",
    {{"fragments", "the same tiles on the tensor cores", {"tensor_cores_idle"}}},
    [](Buffers &b, long n) -> Sides {
        const int features = 640, count = static_cast<int>(n);
        const Voices v = {b.random<__half>(n * features), b.random<__half>(n * features), b.output<float>(n * n), count, features};
        b.tolerance = 1e-3;
        const dim3 grid(count / VOICES, count / VOICES);
        return {{"flawed", launch(voice_scores, grid, 128, 0, v)}, {"fragments", launch(voice_scores_fragments, grid, 128, 0, v)}};
    });

}  // namespace
