// Scans, vacancies, voices and routes.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- in which cell of an octree the points of a scan lie ---

constexpr int LEVELS = 9;  // coordinates of nine bits, packed ten bits apart

__device__ __forceinline__ int octant(unsigned point, int bit) {
    return static_cast<int>((point >> bit & 1) | (point >> (bit + 10) & 1) << 1 | (point >> (bit + 20) & 1) << 2);
}
// A child below zero is a cell that is not divided.
__global__ void __launch_bounds__(320) locate(const unsigned *__restrict__ points, const int *__restrict__ children, int *__restrict__ cells, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned point = points[i];
        int node = 0, bit = LEVELS - 1;
        do node = children[node * 8 + octant(point, bit--)];
        while (node >= 0);
        cells[i] = ~node;
    }
}
// From a table of the nodes or cells of one level.
template <int LEVEL>
__global__ void __launch_bounds__(320) locate_from(const unsigned *__restrict__ points, const int *__restrict__ children, const int *__restrict__ starts, int *__restrict__ cells, int count) {
    constexpr unsigned MASK = (1u << LEVEL) - 1;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned point = points[i], top = point >> (LEVELS - LEVEL);
        int node = starts[(top & MASK) | (top >> 10 & MASK) << LEVEL | (top >> 20 & MASK) << (2 * LEVEL)], bit = LEVELS - LEVEL - 1;
        while (node >= 0) node = children[node * 8 + octant(point, bit--)];
        cells[i] = ~node;
    }
}

Study octree("scan_points_located_from_the_root", "robotics", 1 << 22, "cells of an octree of nine levels in which 4194304 points of a scan lie",
    "nine steps from the root, each a load that waits for the one before",
    {{"from_5", "the first five levels by a table", {"memory_latency"}}, {"from_7", "the first seven levels by a table", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        struct Cell {
            int x, y, z, level, node;
        };
        constexpr double CENTRE = 256.0, RADIUS = 200.0;
        // Cells that the surface of a ball goes through are divided.
        auto divided = [](const Cell &cell) {
            if (cell.level == LEVELS) return false;
            const int size = 1 << (LEVELS - cell.level), at[3] = {cell.x, cell.y, cell.z};
            double near = 0.0, far = 0.0;
            for (int low : at) {
                const double below = CENTRE - low * size, above = (low + 1) * size - CENTRE, least = std::max(0.0, -std::min(below, above)), most = std::max(below, above);
                near += least * least, far += most * most;
            }
            return near <= RADIUS * RADIUS && far >= RADIUS * RADIUS;
        };
        std::vector<int> children(8, 0), starts_5(1 << 15), starts_7(1 << 21);
        std::vector<Cell> open(1, Cell{0, 0, 0, 0, 0});
        int leaves = 0;
        auto fill = [&](std::vector<int> &starts, int level, const Cell &cell, int value) {
            if (cell.level > level) return;
            const int across = 1 << (level - cell.level);
            for (int z = 0; z < across; z++)
                for (int y = 0; y < across; y++)
                    for (int x = 0; x < across; x++) starts[(cell.x * across + x) | (cell.y * across + y) << level | (cell.z * across + z) << (2 * level)] = value;
        };
        for (size_t done = 0; done < open.size(); done++) {
            const Cell parent = open[done];
            for (int o = 0; o < 8; o++) {
                Cell child{parent.x * 2 + (o & 1), parent.y * 2 + (o >> 1 & 1), parent.z * 2 + (o >> 2), parent.level + 1, 0};
                int value = ~leaves;
                const bool more = divided(child);
                if (more) {
                    value = child.node = static_cast<int>(children.size() / 8);
                    children.resize(children.size() + 8);
                    open.push_back(child);
                } else leaves++;
                children[parent.node * 8 + o] = value;
                if (!more || child.level == 5) fill(starts_5, 5, child, value);
                if (!more || child.level == 7) fill(starts_7, 7, child, value);
            }
        }
        std::vector<unsigned> points(n);
        for (long i = 0; i < n; i++) {
            // Around the ball, within a cell or two of its surface.
            const double up = hash(static_cast<unsigned>(3 * i)) / 2147483648.0 - 1.0, angle = hash(static_cast<unsigned>(3 * i + 1)) / 4294967296.0 * 6.283185307179586, off = RADIUS + hash(static_cast<unsigned>(3 * i + 2)) / 4294967296.0 * 2.0 - 1.0;
            const double flat = std::sqrt(1.0 - up * up) * off;
            points[i] = static_cast<unsigned>(CENTRE + flat * std::cos(angle)) | static_cast<unsigned>(CENTRE + flat * std::sin(angle)) << 10 | static_cast<unsigned>(CENTRE + up * off) << 20;
        }
        const unsigned *scan = b.copy(points);
        const int *tree = b.copy(children), *from_5 = b.copy(starts_5), *from_7 = b.copy(starts_7), count = static_cast<int>(n);
        int *cells = b.output<int>(n);
        b.tolerance = 0.0;
        const unsigned grid = std::min(blocks(n, 320), 6u * multiprocessors());
        return {{"flawed", launch(locate, grid, 320, 0, scan, tree, cells, count)}, {"from_5", launch(locate_from<5>, grid, 320, 0, scan, tree, from_5, cells, count)},
            {"from_7", launch(locate_from<7>, grid, 320, 0, scan, tree, from_7, cells, count)}};
    });

// --- which vacancies suit whom ---

constexpr int PEOPLE = 1 << 19, VACANCIES = 1 << 16;

struct Skills {
    uint4 low, high;
};
struct Market {
    const float2 *places;
    const Skills *skills;  // needed, or at hand
    const int2 *pay;       // at least and at most
};
__device__ __forceinline__ bool nearby(float2 a, float2 b) {
    const float dx = a.x - b.x, dy = a.y - b.y;
    return dx * dx + dy * dy < 0.04f;
}
__device__ __forceinline__ int lacking(const Skills &needed, const Skills &present) {
    return __popc(needed.low.x & ~present.low.x) + __popc(needed.low.y & ~present.low.y) + __popc(needed.low.z & ~present.low.z) + __popc(needed.low.w & ~present.low.w) + __popc(needed.high.x & ~present.high.x) +
           __popc(needed.high.y & ~present.high.y) + __popc(needed.high.z & ~present.high.z) + __popc(needed.high.w & ~present.high.w);
}
__device__ __forceinline__ int agreed(int2 asked, int2 offered) { return min(asked.y, offered.y) - max(asked.x, offered.x); }
// 100 or less for a pair that suits, less what is lacking; 0 for others.
__global__ void __launch_bounds__(256) suit(const int2 *__restrict__ pairs, Market people, Market vacancies, unsigned char *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int2 pair = pairs[i];
    const bool near = nearby(people.places[pair.x], vacancies.places[pair.y]);
    const int missing = lacking(vacancies.skills[pair.y], people.skills[pair.x]), range = agreed(people.pay[pair.x], vacancies.pay[pair.y]);
    out[i] = near & (range >= 0) & (missing < 100) ? static_cast<unsigned char>(100 - missing) : 0;
}
__global__ void __launch_bounds__(256) suit_in_turn(const int2 *__restrict__ pairs, Market people, Market vacancies, unsigned char *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int2 pair = pairs[i];
    unsigned char suits = 0;
    if (nearby(people.places[pair.x], vacancies.places[pair.y]) && agreed(people.pay[pair.x], vacancies.pay[pair.y]) >= 0) {
        const int missing = lacking(vacancies.skills[pair.y], people.skills[pair.x]);
        if (missing < 100) suits = static_cast<unsigned char>(100 - missing);
    }
    out[i] = suits;
}

Study vacancy("vacancies_skills_loaded_for_those_far_away", "labour markets", 1 << 22, "how well 4194304 pairs of 524288 people and 65536 vacancies suit, of which one in ten is near enough",
    "place, pay and skills of both sides are read for every pair, also for those too far apart",
    {{"in_turn", "pay and skills of those nearby only", {"redundant_loads", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto side = [&](int size, int bits) {
            std::vector<float2> places(size);
            std::vector<Skills> skills(size);
            std::vector<int2> pay(size);
            for (int k = 0; k < size; k++) {
                const unsigned draw = hash(static_cast<unsigned>(k + bits * 7919));
                places[k] = make_float2(static_cast<float>(draw & 1023) / 1024.0f, static_cast<float>(draw >> 10 & 1023) / 1024.0f);
                pay[k] = make_int2(2000 + static_cast<int>(draw >> 20), 4000 + static_cast<int>(draw >> 21));
                unsigned words[8];
                for (unsigned w = 0; w < 8; w++) {
                    words[w] = hash(draw + w);
                    if (bits) words[w] &= hash(draw + w + 50) & hash(draw + w + 90);
                }
                skills[k] = {make_uint4(words[0], words[1], words[2], words[3]), make_uint4(words[4], words[5], words[6], words[7])};
            }
            return Market{b.copy(places), b.copy(skills), b.copy(pay)};
        };
        const Market people = side(PEOPLE, 0), vacancies = side(VACANCIES, 1);
        std::vector<int2> chosen(n);
        for (long i = 0; i < n; i++) chosen[i] = make_int2(static_cast<int>(hash(static_cast<unsigned>(2 * i)) % PEOPLE), static_cast<int>(hash(static_cast<unsigned>(2 * i + 1)) % VACANCIES));
        const int2 *pairs = b.copy(chosen);
        unsigned char *out = b.output<unsigned char>(n);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(suit, blocks(n, 256), 256, 0, pairs, people, vacancies, out, count)}, {"in_turn", launch(suit_in_turn, blocks(n, 256), 256, 0, pairs, people, vacancies, out, count)}};
    });

// --- how a voice differs from itself eight delays later ---

constexpr int FRAME = 4096, DELAYS = 8, SHORTEST = 32;

__device__ __forceinline__ void add_up(int sum, int *result, int *warps) {
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) *result = warps[0] + warps[1] + warps[2] + warps[3];
}
// A block a frame; what follows a frame is there.
__global__ void __launch_bounds__(128) delayed(const short *__restrict__ voice, int *__restrict__ sums) {
    __shared__ int warps[DELAYS][4];
    const short *frame = voice + static_cast<size_t>(blockIdx.x) * FRAME;
    for (int d = 0; d < DELAYS; ++d) {
        const short *later = frame + SHORTEST + d;
        int sum = 0;
        for (int i = threadIdx.x; i < FRAME; i += 128) sum += abs(frame[i] - later[i]);
        add_up(sum, sums + blockIdx.x * DELAYS + d, warps[d]);
    }
}
__global__ void __launch_bounds__(128) delayed_at_once(const short *__restrict__ voice, int *__restrict__ sums) {
    __shared__ int warps[DELAYS][4];
    const short *frame = voice + static_cast<size_t>(blockIdx.x) * FRAME;
    int sum[DELAYS] = {};
    for (int i = threadIdx.x; i < FRAME; i += 128) {
        const int now = frame[i];
#pragma unroll
        for (int d = 0; d < DELAYS; ++d) sum[d] += abs(now - frame[i + SHORTEST + d]);
    }
#pragma unroll
    for (int d = 0; d < DELAYS; ++d) add_up(sum[d], sums + blockIdx.x * DELAYS + d, warps[d]);
}
// Eight samples a thread, and the sixteen that come later.
union EightSamples {
    uint4 word;
    short sample[8];
};
__global__ void __launch_bounds__(128) delayed_eights(const uint4 *__restrict__ voice, int *__restrict__ sums) {
    __shared__ int warps[DELAYS][4];
    const uint4 *frame = voice + static_cast<size_t>(blockIdx.x) * (FRAME / 8);
    int sum[DELAYS] = {};
    for (int i = threadIdx.x; i < FRAME / 8; i += 128) {
        EightSamples now, later[2];
        now.word = frame[i], later[0].word = frame[i + SHORTEST / 8], later[1].word = frame[i + SHORTEST / 8 + 1];
#pragma unroll
        for (int d = 0; d < DELAYS; ++d)
#pragma unroll
            for (int s = 0; s < 8; ++s) sum[d] += abs(now.sample[s] - later[(s + d) / 8].sample[(s + d) % 8]);
    }
#pragma unroll
    for (int d = 0; d < DELAYS; ++d) add_up(sum[d], sums + blockIdx.x * DELAYS + d, warps[d]);
}

Study pitch("pitch_delays_tried_in_turn", "speech", 8192, "sums of the differences of a voice to itself at eight delays, for 8192 frames of 4096 samples",
    "two samples are read for each difference, through the whole frame for each delay",
    {{"at_once", "all eight delays of a sample at once", {"redundant_loads"}}, {"eights", "eight samples at once, from vectors", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words((n * FRAME + 64) / 2);
        for (size_t i = 0; i < words.size(); i++) words[i] = hash(static_cast<unsigned>(i)) & 0x8fff8fffu;
        const unsigned *voice = b.copy(words);
        int *sums = b.output<int>(n * DELAYS);
        b.tolerance = 0.0;
        const auto *samples = reinterpret_cast<const short *>(voice);
        return {{"flawed", launch(delayed, n, 128, 0, samples, sums)}, {"at_once", launch(delayed_at_once, n, 128, 0, samples, sums)},
            {"eights", launch(delayed_eights, n, 128, 0, reinterpret_cast<const uint4 *>(voice), sums)}};
    });

// --- how long ships' routes are ---

constexpr int LEG = 512;  // points of a piece

struct Fleet {
    const float2 *points;  // latitude and longitude
    const int *first;      // point of each route, and the number of all points
    int routes;
};
__device__ __forceinline__ float way(float2 a, float2 b) {
    const float north = __sinf(0.5f * (b.x - a.x)), east = __sinf(0.5f * (b.y - a.y));
    return 2.0f * asinf(sqrtf(fminf(north * north + __cosf(a.x) * __cosf(b.x) * east * east, 1.0f)));
}
// A warp a route.
__global__ void __launch_bounds__(256) route_lengths(Fleet fleet, float *__restrict__ lengths) {
    const int route = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (route >= fleet.routes) return;
    float sum = 0.0f;
    for (int i = fleet.first[route] + lane; i < fleet.first[route + 1] - 1; i += 32) sum += way(fleet.points[i], fleet.points[i + 1]);
    sum = warp_sum(sum);
    if (lane == 0) lengths[route] = sum;
}
// A block a route.
__global__ void __launch_bounds__(256) route_lengths_blocks(Fleet fleet, float *__restrict__ lengths) {
    __shared__ float warps[8];
    const int route = blockIdx.x;
    float sum = 0.0f;
    for (int i = fleet.first[route] + threadIdx.x; i < fleet.first[route + 1] - 1; i += 256) sum += way(fleet.points[i], fleet.points[i + 1]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) lengths[route] = ((warps[0] + warps[1]) + (warps[2] + warps[3])) + ((warps[4] + warps[5]) + (warps[6] + warps[7]));
}
// A warp 512 points of a route; x the route, y the first of them.
__global__ void __launch_bounds__(256) route_lengths_legs(Fleet fleet, const int2 *__restrict__ legs, float *lengths, int count) {
    const int at = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (at >= count) return;
    const int2 leg = legs[at];
    const int end = min(leg.y + LEG, fleet.first[leg.x + 1] - 1);
    float sum = 0.0f;
    for (int i = leg.y + lane; i < end; i += 32) sum += way(fleet.points[i], fleet.points[i + 1]);
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(lengths + leg.x, sum);
}

Study ships("ship_routes_a_warp_each", "navigation", 1 << 23, "lengths of the routes of 8192 ships, 8388608 points in all, 240 to 16000 points each",
    "a warp goes through all points of its route: the longest has sixteen times the mean",
    {{"legs", "a warp for each 512 points, from a table", {"workload_imbalance"}}, {"blocks", "a block a route", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int routes = 8192;
        auto share = [](int r) { return 1.0 / (r * 1237 % 8192 + 120); };  // in no order
        double all = 0.0, before = 0.0;
        for (int r = 0; r < routes; r++) all += share(r);
        std::vector<int> first(routes + 1, 0);
        std::vector<int2> table;
        for (int r = 0; r < routes; r++) {
            before += share(r);
            first[r + 1] = r + 1 == routes ? static_cast<int>(n) : static_cast<int>(static_cast<double>(n) * before / all);
            for (int point = first[r]; point < first[r + 1] - 1; point += LEG) table.push_back(make_int2(r, point));
        }
        const Fleet fleet{reinterpret_cast<const float2 *>(b.random<float>(2 * n, -1.2, 1.2)), b.copy(first), routes};
        const int2 *legs = b.copy(table);
        float *lengths = b.output<float>(routes, true);
        const int count = static_cast<int>(table.size());
        return {{"flawed", launch(route_lengths, routes / 8, 256, 0, fleet, lengths)}, {"legs", launch(route_lengths_legs, blocks(count, 8), 256, 0, fleet, legs, lengths, count)},
            {"blocks", launch(route_lengths_blocks, routes, 256, 0, fleet, lengths)}};
    });

}  // namespace
