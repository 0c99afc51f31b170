// Ballots, frames, winds, seeds, molecules and riders.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- who is preferred to whom ---

constexpr int CANDIDATES = 16, ORDERED = CANDIDATES * CANDIDATES, PAIRS = CANDIDATES * (CANDIDATES - 1) / 2;

struct Votes {
    const unsigned long long *ballots;  // candidates from the best to the worst, four bits each
    unsigned *wins;                     // ballots that put the row before the column
    int count;
};
__device__ __forceinline__ unsigned place(unsigned long long ballot, int k) { return static_cast<unsigned>(ballot >> (4 * k)) & 15; }
__device__ __forceinline__ void add_wins(const Votes &v, const unsigned *wins) {
    __syncthreads();
    const unsigned found = wins[threadIdx.x];
    if (found) atomicAdd(v.wins + threadIdx.x, found);
}
// A ballot a thread.
__global__ void __launch_bounds__(ORDERED) preferred(Votes v) {
    __shared__ unsigned wins[ORDERED];
    wins[threadIdx.x] = 0;
    __syncthreads();
    for (int first = blockIdx.x * ORDERED; first < v.count; first += gridDim.x * ORDERED) {
        const unsigned long long ballot = v.ballots[first + threadIdx.x];
#pragma unroll
        for (int k = 0; k < CANDIDATES; k++) {
            const unsigned better = place(ballot, k) * CANDIDATES;
#pragma unroll
            for (int j = k + 1; j < CANDIDATES; j++) atomicAdd(&wins[better + place(ballot, j)], 1u);
        }
    }
    add_wins(v, wins);
}
// Where each candidate stands, four bits each.
__device__ __forceinline__ unsigned long long ranked(unsigned long long ballot) {
    unsigned long long ranks = 0;
#pragma unroll
    for (int k = 1; k < CANDIDATES; k++) ranks |= static_cast<unsigned long long>(k) << (4 * place(ballot, k));
    return ranks;
}
// 32 ballots a warp: a vote among its lanes for each pair, kept by one of them.
__global__ void __launch_bounds__(ORDERED, 4) preferred_votes(Votes v) {
    __shared__ unsigned wins[ORDERED];
    wins[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    unsigned counts[4] = {}, all = 0;
    for (int first = blockIdx.x * ORDERED; first < v.count; first += gridDim.x * ORDERED) {
        const unsigned long long packed = ranked(v.ballots[first + threadIdx.x]);
        unsigned ranks[CANDIDATES], kept[4] = {};
#pragma unroll
        for (int k = 0; k < CANDIDATES; k++) ranks[k] = place(packed, k);
#pragma unroll
        for (int a = 0; a < CANDIDATES; a++)
#pragma unroll
            for (int b = a + 1; b < CANDIDATES; b++) {
                const int pair = a * (2 * CANDIDATES - 1 - a) / 2 + b - a - 1;
                const unsigned before = __ballot_sync(~0u, ranks[a] < ranks[b]);
                kept[pair / 32] = lane == pair % 32 ? before : kept[pair / 32];
            }
#pragma unroll
        for (int k = 0; k < 4; k++) counts[k] += __popc(kept[k]);
        all += 32;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int a = 0, rest = 32 * k + lane;
        if (rest >= PAIRS) continue;
        for (; rest >= CANDIDATES - 1 - a; a++) rest -= CANDIDATES - 1 - a;
        const int b = a + 1 + rest;
        atomicAdd(&wins[a * CANDIDATES + b], counts[k]);
        atomicAdd(&wins[b * CANDIDATES + a], all - counts[k]);
    }
    add_wins(v, wins);
}
// A candidate a lane, against four others at a time, a byte each.
__global__ void __launch_bounds__(ORDERED) preferred_rows(Votes v) {
    __shared__ unsigned wins[ORDERED];
    __shared__ uint4 standings[ORDERED / 32][32];  // even and odd candidates below eight, even and odd ones from eight on
    wins[threadIdx.x] = 0;
    __syncthreads();
    const int lane = threadIdx.x % 32, own = lane % CANDIDATES, half = lane / CANDIDATES, byte = (own / 8 * 2 + own % 2) * 4 + own % 8 / 2;
    uint4 *standing = standings[threadIdx.x / 32];
    unsigned counts[CANDIDATES] = {};
    for (int first = blockIdx.x * ORDERED; first < v.count; first += gridDim.x * ORDERED) {
        const unsigned long long packed = ranked(v.ballots[first + threadIdx.x]);
        const unsigned low = static_cast<unsigned>(packed), high = static_cast<unsigned>(packed >> 32), mask = 0x0f0f0f0fu;
        standing[lane] = make_uint4(low & mask, low >> 4 & mask, high & mask, high >> 4 & mask);
        __syncwarp();
        unsigned behind[4] = {};
#pragma unroll 4
        for (int k = half; k < 32; k += 2) {
            const uint4 all = standing[k];
            const unsigned less = 0x7f7f7f7fu - reinterpret_cast<const unsigned char *>(standing + k)[byte] * 0x01010101u;
            behind[0] += (all.x + less) >> 7 & 0x01010101u;
            behind[1] += (all.y + less) >> 7 & 0x01010101u;
            behind[2] += (all.z + less) >> 7 & 0x01010101u;
            behind[3] += (all.w + less) >> 7 & 0x01010101u;
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < CANDIDATES; k++) counts[k] += behind[k / 8 * 2 + k % 2] >> (k % 8 / 2 * 8) & 255;
    }
#pragma unroll
    for (int k = 0; k < CANDIDATES; k++) atomicAdd(&wins[own * CANDIDATES + k], counts[k]);
    add_wins(v, wins);
}

Study elections("ballots_preferences_120_shared_atomics_each", "elections", 528 * ORDERED * 8, "how many of 1081344 ballots put each of sixteen candidates before each other",
    "each ballot adds to a block's counter in shared memory for each of its 120 pairs",
    {{"votes", "a vote among a warp's lanes for each pair, counted by one lane", {"shared_atomics"}}, {"rows", "a candidate a lane, compared with four others at a time, counted in registers", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned long long> ballots(n);
        for (long i = 0; i < n; i++) {
            int order[CANDIDATES];
            for (int k = 0; k < CANDIDATES; k++) {
                const int to = static_cast<int>(hash(static_cast<unsigned>(i * CANDIDATES + k)) % (k + 1));
                order[k] = order[to], order[to] = k;
            }
            for (int k = 0; k < CANDIDATES; k++) ballots[i] |= static_cast<unsigned long long>(order[k]) << (4 * k);
        }
        const Votes v = {b.copy(ballots), b.output<unsigned>(ORDERED, true), static_cast<int>(n)};
        const unsigned grid = static_cast<unsigned>(std::min(n / ORDERED, 528L));
        b.tolerance = 0.0;
        return {{"flawed", launch(preferred, grid, ORDERED, 0, v)}, {"votes", launch(preferred_votes, grid, ORDERED, 0, v)}, {"rows", launch(preferred_rows, grid, ORDERED, 0, v)}};
    });

// --- frames of a broadcast, whitened ---

constexpr int WORDS = 64;  // of a frame

struct Frames {
    const unsigned *words;          // word by word of all frames
    const unsigned short *starts;   // fifteen bits
    unsigned *out;
    int count;
};
// Each bit is the sum of those fourteen and fifteen before it.
__global__ void __launch_bounds__(256) whitened(Frames f) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    unsigned state = f.starts[i];
#pragma unroll 2
    for (int word = 0; word < WORDS; word++) {
        unsigned noise = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const unsigned bit = (state >> 13 ^ state >> 14) & 1;
            state = (state << 1 | bit) & 0x7fff;
            noise = noise << 1 | bit;
        }
        f.out[word * f.count + i] = f.words[word * f.count + i] ^ noise;
    }
}
// The next word, eight bits at a time; `last`: the bits before it.
__device__ __forceinline__ unsigned next_word(unsigned last) {
#pragma unroll
    for (int k = 0; k < 4; k++) last = last << 8 | ((last ^ last >> 1) >> 6 & 255);
    return last;
}
__global__ void __launch_bounds__(256) whitened_bytes(Frames f) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    unsigned noise = f.starts[i];
#pragma unroll 4
    for (int word = 0; word < WORDS; word++) {
        noise = next_word(noise);
        f.out[word * f.count + i] = f.words[word * f.count + i] ^ noise;
    }
}
// From the third word on each bit is also the sum of those 56 and 60 before it.
__global__ void __launch_bounds__(256) whitened_words(Frames f) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    unsigned before = next_word(f.starts[i]), noise = next_word(before);
    f.out[i] = f.words[i] ^ before;
    f.out[f.count + i] = f.words[f.count + i] ^ noise;
#pragma unroll 4
    for (int word = 2; word < WORDS; word++) {
        const unsigned next = __funnelshift_r(noise, before, 24) ^ __funnelshift_r(noise, before, 28);
        before = noise, noise = next;
        f.out[word * f.count + i] = f.words[word * f.count + i] ^ noise;
    }
}

Study broadcast("broadcast_frames_whitened_bit_by_bit", "communications", 262144, "262144 frames of 2048 bits added to the noise of a shift register of fifteen bits each",
    "the register is shifted for each bit of a frame",
    {{"bytes", "eight bits of the register at a time", {"integer_arithmetic"}}, {"words", "32 bits at a time, by the fourth power of the register's polynomial", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned short> starts(n);
        for (long i = 0; i < n; i++) starts[i] = static_cast<unsigned short>(1 + hash(static_cast<unsigned>(i)) % 32767);
        const Frames f = {b.random<unsigned>(WORDS * n, 0.0, 4294967296.0), b.copy(starts), b.output<unsigned>(WORDS * n), static_cast<int>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(whitened, n / 256, 256, 0, f)}, {"bytes", launch(whitened_bytes, n / 256, 256, 0, f)}, {"words", launch(whitened_words, n / 256, 256, 0, f)}};
    });

// --- winds of a model's grid, turned to the north ---

constexpr int LEVELS = 24;

struct Winds {
    const uint2 *along;   // level by level, two places each: along the grid's rows and columns
    const float2 *turns;  // of two places
    const float4 *known;  // their cosines and sines
    uint2 *out;
    int places;  // of two each
};
__device__ __forceinline__ float2 parts(unsigned both) { return __half22float2(*reinterpret_cast<const __half2 *>(&both)); }
__device__ __forceinline__ unsigned joined(float2 wind) {
    const __half2 both = __floats2half2_rn(wind.x, wind.y);
    return *reinterpret_cast<const unsigned *>(&both);
}
template <typename Turn>
__device__ __forceinline__ void levels(const Winds &w, int i, Turn turn) {
#pragma unroll 4
    for (int level = 0; level < LEVELS; level++) {
        const uint2 two = w.along[level * w.places + i];
        w.out[level * w.places + i] = make_uint2(joined(turn(parts(two.x), 0)), joined(turn(parts(two.y), 1)));
    }
}
__global__ void __launch_bounds__(256) winds(Winds w) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float2 turns = w.turns[i];
    levels(w, i, [turns](float2 wind, int which) {
        const float speed = sqrtf(wind.x * wind.x + wind.y * wind.y), direction = atan2f(wind.y, wind.x) + (which ? turns.y : turns.x);
        float sine, cosine;
        sincosf(direction, &sine, &cosine);
        return make_float2(speed * cosine, speed * sine);
    });
}
__device__ __forceinline__ float2 turned(float2 wind, float cosine, float sine) { return make_float2(wind.x * cosine - wind.y * sine, wind.x * sine + wind.y * cosine); }
__global__ void __launch_bounds__(256) winds_rotated(Winds w) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float2 turns = w.turns[i];
    float2 first, second;
    sincosf(turns.x, &first.y, &first.x);
    sincosf(turns.y, &second.y, &second.x);
    levels(w, i, [first, second](float2 wind, int which) { return which ? turned(wind, second.x, second.y) : turned(wind, first.x, first.y); });
}
__global__ void __launch_bounds__(256) winds_known(Winds w) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 known = w.known[i];
    levels(w, i, [known](float2 wind, int which) { return which ? turned(wind, known.z, known.w) : turned(wind, known.x, known.y); });
}

Study forecast("grid_winds_turned_through_their_direction", "weather", 524288, "winds of 24 levels at 524288 places, half values, from a grid's own axes to east and north",
    "speed and direction of each wind by root and arc tangent, then back by precise sine and cosine",
    {{"rotated", "each place's turn as a rotation, its sine and cosine once for all levels", {"expensive_math"}}, {"known", "rotations with sines and cosines of the grid, made beforehand", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> turns(n);
        std::vector<float4> known(n / 2);
        for (long i = 0; i < n; i++) turns[i] = static_cast<float>(0.6 * std::sin(0.00013 * i) + 0.4 * std::cos(0.017 * i));
        for (long i = 0; i < n / 2; i++)
            known[i] = {static_cast<float>(std::cos(turns[2 * i])), static_cast<float>(std::sin(turns[2 * i])), static_cast<float>(std::cos(turns[2 * i + 1])), static_cast<float>(std::sin(turns[2 * i + 1]))};
        const Winds w = {reinterpret_cast<const uint2 *>(b.random<__half>(2 * LEVELS * n, -30.0, 30.0)), reinterpret_cast<const float2 *>(b.copy(turns)), b.copy(known),
            reinterpret_cast<uint2 *>(b.output<__half>(2 * LEVELS * n)), static_cast<int>(n / 2)};
        b.tolerance = 1e-3;
        return {{"flawed", launch(winds, n / 512, 256, 0, w)}, {"rotated", launch(winds_rotated, n / 512, 256, 0, w)}, {"known", launch(winds_known, n / 512, 256, 0, w)}};
    });

// --- where a forest's seeds fall ---

constexpr int REACH = 5, SPAN = 2 * REACH + 1, ACROSS = 32, DOWN = 64, PITCH = ACROSS + 12;  // cells; of a block

struct Fall {
    float shares[SPAN][SPAN];  // of a tree's seeds, by the wind
};
struct Forest {
    const float *seeds;  // with a margin
    float *fallen;
    int side, pitch;
};
__device__ __forceinline__ void stage(const Forest &f, float (&tile)[DOWN + 2 * REACH][PITCH]) {
    const float *from = f.seeds + blockIdx.y * DOWN * f.pitch + blockIdx.x * ACROSS;
    for (int i = threadIdx.x; i < (DOWN + 2 * REACH) * (PITCH / 4); i += 256) {
        const int row = i / (PITCH / 4), four = i % (PITCH / 4) * 4;
        *reinterpret_cast<float4 *>(&tile[row][four]) = *reinterpret_cast<const float4 *>(from + row * f.pitch + four);
    }
    __syncthreads();
}
// A column of cells for 32 threads; eight cells each, one after another.
__global__ void __launch_bounds__(256) seeded(Forest f, Fall fall) {
    __shared__ __align__(16) float tile[DOWN + 2 * REACH][PITCH];
    stage(f, tile);
    const int x = threadIdx.x % ACROSS;
    float *to = f.fallen + blockIdx.y * DOWN * f.side + blockIdx.x * ACROSS + x;
#pragma unroll 1
    for (int y = threadIdx.x / ACROSS; y < DOWN; y += 8) {
        float total = 0.0f;
#pragma unroll
        for (int row = 0; row < SPAN; row++)
#pragma unroll
            for (int column = 0; column < SPAN; column++) total += fall.shares[row][column] * tile[y + row][x + column];
        to[y * f.side] = total;
    }
}
// Eight cells below each other a thread.
__global__ void __launch_bounds__(256) seeded_below(Forest f, Fall fall) {
    __shared__ __align__(16) float tile[DOWN + 2 * REACH][PITCH];
    stage(f, tile);
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS * 8;
    float totals[8] = {};
#pragma unroll
    for (int column = 0; column < SPAN; column++)
#pragma unroll
        for (int row = 0; row < SPAN + 7; row++) {
            const float seeds = tile[y + row][x + column];
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (row >= k && row - k < SPAN) totals[k] += fall.shares[row - k][column] * seeds;
        }
    float *to = f.fallen + (blockIdx.y * DOWN + y) * f.side + blockIdx.x * ACROSS + x;
#pragma unroll
    for (int k = 0; k < 8; k++) to[k * f.side] = totals[k];
}
// Four cells of two rows a thread.
__global__ void __launch_bounds__(256) seeded_fours(Forest f, Fall fall) {
    __shared__ __align__(16) float tile[DOWN + 2 * REACH][PITCH];
    stage(f, tile);
    const int x = threadIdx.x % (ACROSS / 4) * 4, y = threadIdx.x / (ACROSS / 4) * 2;
    float totals[2][4] = {};
#pragma unroll
    for (int row = 0; row < SPAN + 1; row++) {
        float seeds[16];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float4 four = *reinterpret_cast<const float4 *>(&tile[y + row][x + 4 * k]);
            seeds[4 * k] = four.x, seeds[4 * k + 1] = four.y, seeds[4 * k + 2] = four.z, seeds[4 * k + 3] = four.w;
        }
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (row >= k && row - k < SPAN)
#pragma unroll
                for (int column = 0; column < SPAN; column++)
#pragma unroll
                    for (int cell = 0; cell < 4; cell++) totals[k][cell] += fall.shares[row - k][column] * seeds[cell + column];
    }
    float *to = f.fallen + (blockIdx.y * DOWN + y) * f.side + blockIdx.x * ACROSS + x;
#pragma unroll
    for (int k = 0; k < 2; k++) *reinterpret_cast<float4 *>(to + k * f.side) = make_float4(totals[k][0], totals[k][1], totals[k][2], totals[k][3]);
}

Study ecology("seed_rain_a_shared_word_for_each_product", "ecology", 4096, "seeds that fall on each of 4096 x 4096 cells from 121 cells around, by the wind",
    "the cells around are in shared memory, and a word is read there for each product",
    {{"below", "eight cells below each other a thread: a word for up to eight products", {"shared_memory_bandwidth"}}, {"fours", "four cells of two rows a thread, four words a read", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const int side = static_cast<int>(n), pitch = side + 16;
        Fall fall;
        double total = 0.0;
        const auto share = [](int row, int column) { return std::exp(-0.5 * std::hypot(row - 4.2, column - 6.1)) * (1.0 + 0.05 * column); };
        for (int i = 0; i < SPAN * SPAN; i++) total += share(i / SPAN, i % SPAN);
        for (int i = 0; i < SPAN * SPAN; i++) fall.shares[i / SPAN][i % SPAN] = static_cast<float>(share(i / SPAN, i % SPAN) / total);
        const Forest f = {b.random<float>(static_cast<size_t>(side + 2 * REACH) * pitch, 0.0, 100.0), b.output<float>(static_cast<size_t>(side) * side), side, pitch};
        const dim3 grid(side / ACROSS, side / DOWN);
        return {{"flawed", launch(seeded, grid, 256, 0, f, fall)}, {"below", launch(seeded_below, grid, 256, 0, f, fall)}, {"fours", launch(seeded_fours, grid, 256, 0, f, fall)}};
    });

// --- energies of a molecule's shapes ---

constexpr int ATOMS = 32;

struct Shapes {
    const float4 *atoms;  // of each shape; place and charge
    const float2 *kinds;  // of the atoms: half a diameter, root of a depth
    float *energies;
};
__device__ __forceinline__ float pair_energy(float4 a, float2 kind, float4 b, float2 other) {
    const float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
    const float inverse = rsqrtf(x * x + y * y + z * z), near = (kind.x + other.x) * inverse, square = near * near, sixth = square * square * square;
    return a.w * b.w * inverse + kind.y * other.y * (sixth * sixth - sixth);
}
// A shape a warp, an atom a lane.
__global__ void __launch_bounds__(256) shapes(Shapes s) {
    __shared__ float4 places[8][ATOMS];
    __shared__ float2 kinds[ATOMS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, shape = blockIdx.x * 8 + warp;
    const float4 own = s.atoms[shape * ATOMS + lane];
    const float2 kind = s.kinds[lane];
    places[warp][lane] = own;
    if (warp == 0) kinds[lane] = kind;
    __syncthreads();
    float total = 0.0f;
    for (int other = lane + 1; other < ATOMS; other++) total += pair_energy(own, kind, places[warp][other], kinds[other]);
    total = warp_sum(total);
    if (lane == 0) s.energies[shape] = total;
}
// Each atom and the half of the others that follow it around a ring.
__global__ void __launch_bounds__(256) shapes_ring(Shapes s) {
    __shared__ float4 places[8][ATOMS];
    __shared__ float2 kinds[ATOMS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, shape = blockIdx.x * 8 + warp;
    const float4 own = s.atoms[shape * ATOMS + lane];
    const float2 kind = s.kinds[lane];
    places[warp][lane] = own;
    if (warp == 0) kinds[lane] = kind;
    __syncthreads();
    float total = 0.0f;
#pragma unroll 5
    for (int step = 1; step < ATOMS / 2; step++) {
        const int other = (lane + step) % ATOMS;
        total += pair_energy(own, kind, places[warp][other], kinds[other]);
    }
    if (lane < ATOMS / 2) total += pair_energy(own, kind, places[warp][lane + ATOMS / 2], kinds[lane + ATOMS / 2]);
    total = warp_sum(total);
    if (lane == 0) s.energies[shape] = total;
}
// Two shapes a warp, two atoms a lane.
__global__ void __launch_bounds__(256) shapes_two(Shapes s) {
    constexpr int HALF = ATOMS / 2;
    __shared__ float4 places[16][ATOMS];
    __shared__ float2 kinds[ATOMS];
    const int lane = threadIdx.x % HALF, which = threadIdx.x / HALF, shape = blockIdx.x * 16 + which;
    const float4 first = s.atoms[shape * ATOMS + lane], second = s.atoms[shape * ATOMS + HALF + lane];
    const float2 kind = s.kinds[lane], second_kind = s.kinds[HALF + lane];
    places[which][lane] = first, places[which][HALF + lane] = second;
    if (which == 0) kinds[lane] = kind, kinds[HALF + lane] = second_kind;
    __syncthreads();
    float total = pair_energy(first, kind, second, second_kind);
    const auto four = [&](int step) {
        const int other = (lane + step) % HALF;
        const float4 near = places[which][other], far = places[which][HALF + other];
        const float2 near_kind = kinds[other], far_kind = kinds[HALF + other];
        total += pair_energy(first, kind, near, near_kind) + pair_energy(first, kind, far, far_kind);
        total += pair_energy(second, second_kind, near, near_kind) + pair_energy(second, second_kind, far, far_kind);
    };
#pragma unroll
    for (int step = 1; step < HALF / 2; step++) four(step);
    if (lane < HALF / 2) four(HALF / 2);
#pragma unroll
    for (int offset = HALF / 2; offset; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
    if (lane == 0) s.energies[shape] = total;
}

Study chemistry("conformer_energies_atoms_after_a_lanes_own", "chemistry", 262144, "energies of 262144 shapes of a molecule of 32 atoms, pair by pair",
    "a lane goes through the atoms behind its own: the first lane through 31, the last through none",
    {{"ring", "each lane the sixteen atoms that follow its own around a ring", {"idle_threads"}}, {"two", "two shapes a warp, two atoms a lane: four pairs a step around a ring", {"idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> atoms(n * ATOMS);
        std::vector<float2> kinds(ATOMS);
        const auto chance = [](long i) { return (hash(static_cast<unsigned>(i)) >> 8) * (1.0f / 16777216.0f) - 0.5f; };
        for (int k = 0; k < ATOMS; k++) kinds[k] = {0.55f + 0.05f * (k % 4), 0.3f + 0.1f * (k % 3)};
        for (long i = 0; i < n * ATOMS; i++) {
            const int k = static_cast<int>(i % ATOMS);
            atoms[i] = {1.5f * (k % 4) + 0.5f * chance(3 * i), 1.5f * (k / 4 % 4) + 0.5f * chance(3 * i + 1), 1.5f * (k / 16) + 0.5f * chance(3 * i + 2), 0.4f - 0.27f * (k % 4)};
        }
        const Shapes s = {b.copy(atoms), b.copy(kinds), b.output<float>(n)};
        return {{"flawed", launch(shapes, n / 8, 256, 0, s)}, {"ring", launch(shapes_ring, n / 8, 256, 0, s)}, {"two", launch(shapes_two, n / 16, 256, 0, s)}};
    });

// --- what riders' legs do ---

struct Rides {
    const float4 *speed, *grade, *wind;
    float4 *power;
    float weight, rolling, drag;
};
__device__ __forceinline__ float ridden(const Rides &r, float speed, float grade, float wind) {
    const float air = speed + wind;
    return speed * (r.weight * (grade + r.rolling) * rsqrtf(1.0f + grade * grade) + r.drag * air * fabsf(air));
}
// Power by speed, grade and wind.
__global__ void __launch_bounds__(256) rides(Rides r) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 speed = r.speed[i], grade = r.grade[i], wind = r.wind[i];
    r.power[i] = make_float4(ridden(r, speed.x, grade.x, wind.x), ridden(r, speed.y, grade.y, wind.y), ridden(r, speed.z, grade.z, wind.z), ridden(r, speed.w, grade.w, wind.w));
}

Study sport("sound_riders_power", "sport", 1 << 23, "power of riders by speed, grade and wind for 33554432 moments", "", {}, [](Buffers &b, long n) -> Sides {
    const auto four = [&b, n](double low, double high) { return reinterpret_cast<const float4 *>(b.random<float>(4 * n, low, high)); };
    const Rides r = {four(2.0, 15.0), four(-0.1, 0.15), four(-5.0, 5.0), reinterpret_cast<float4 *>(b.output<float>(4 * n)), 784.8f, 0.004f, 0.19f};
    return {{"sound", launch(rides, n / 256, 256, 0, r)}};
});

}  // namespace
