// Reads, packets, tables, texts, ciphers, graphs, prices, frames and sensors.
#include <algorithm>
#include <cmath>
#include <queue>

#include "../pairs/pair.cuh"

namespace {

// --- check sums of blocks of bytes ---

constexpr int BLOCK_BYTES = 4096;
constexpr unsigned ADLER = 65521;

// Of a warp: its sums of bytes, and of bytes times how many bytes there are from them on.
__device__ __forceinline__ void write_adler(unsigned plain, unsigned weighed, unsigned *out, int block, int lane) {
    plain = __reduce_add_sync(~0u, plain), weighed = __reduce_add_sync(~0u, weighed);
    if (lane == 0) out[block] = (BLOCK_BYTES + weighed) % ADLER << 16 | (1 + plain) % ADLER;
}
// A block of bytes a warp.
__global__ void __launch_bounds__(256) adler(const unsigned char *__restrict__ data, unsigned *__restrict__ out) {
    const int lane = threadIdx.x % 32, block = blockIdx.x * 8 + threadIdx.x / 32;
    const unsigned char *own = data + static_cast<size_t>(block) * BLOCK_BYTES;
    unsigned plain = 0, weighed = 0;
#pragma unroll 4
    for (int k = lane; k < BLOCK_BYTES; k += 32) {
        const unsigned byte = own[k];
        plain += byte, weighed += (BLOCK_BYTES - k) * byte;
    }
    write_adler(plain, weighed, out, block, lane);
}
// Of four bytes, of which the first is `left` bytes from the end.
__device__ __forceinline__ void add_four(unsigned four, unsigned left, unsigned &plain, unsigned &weighed) {
    const unsigned sum = __dp4a(four, 0x01010101u, 0u);
    plain += sum, weighed += left * sum - __dp4a(four, 0x03020100u, 0u);
}
__global__ void __launch_bounds__(256) adler_words(const unsigned *__restrict__ data, unsigned *__restrict__ out) {
    const int lane = threadIdx.x % 32, block = blockIdx.x * 8 + threadIdx.x / 32;
    const unsigned *own = data + static_cast<size_t>(block) * (BLOCK_BYTES / 4);
    unsigned plain = 0, weighed = 0;
#pragma unroll 4
    for (int k = lane; k < BLOCK_BYTES / 4; k += 32) add_four(own[k], BLOCK_BYTES - 4 * k, plain, weighed);
    write_adler(plain, weighed, out, block, lane);
}
__global__ void __launch_bounds__(256) adler_quads(const uint4 *__restrict__ data, unsigned *__restrict__ out) {
    const int lane = threadIdx.x % 32, block = blockIdx.x * 8 + threadIdx.x / 32;
    const uint4 *own = data + static_cast<size_t>(block) * (BLOCK_BYTES / 16);
    unsigned plain = 0, weighed = 0;
#pragma unroll 4
    for (int k = lane; k < BLOCK_BYTES / 16; k += 32) {
        const uint4 four = own[k];
        const unsigned left = BLOCK_BYTES - 16 * k;
        add_four(four.x, left, plain, weighed), add_four(four.y, left - 4, plain, weighed);
        add_four(four.z, left - 8, plain, weighed), add_four(four.w, left - 12, plain, weighed);
    }
    write_adler(plain, weighed, out, block, lane);
}

Study checked("adler_sums_a_byte_a_lane", "compression", 32768, "Adler's check sums of 32768 blocks of 4096 bytes",
    "a lane loads a byte at a time",
    {{"words", "four bytes a lane and load", {"narrow_access"}}, {"quads", "sixteen bytes a lane and load", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *data = b.random<unsigned char>(n * BLOCK_BYTES, 0.0, 256.0);
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(adler, n / 8, 256, 0, data, out)}, {"words", launch(adler_words, n / 8, 256, 0, reinterpret_cast<const unsigned *>(data), out)},
            {"quads", launch(adler_quads, n / 8, 256, 0, reinterpret_cast<const uint4 *>(data), out)}};
    });

// --- soft bits of code blocks, interleaved ---

constexpr int COLUMNS = 32, ROWS = 192, CODED = COLUMNS * ROWS;

struct Plain {
    static constexpr int WORDS = CODED;
    static __device__ __forceinline__ int at(int row, int column) { return row * COLUMNS + column; }
};
struct Padded {
    static constexpr int WORDS = ROWS * (COLUMNS + 1);
    static __device__ __forceinline__ int at(int row, int column) { return row * (COLUMNS + 1) + column; }
};
struct Rotated {
    static constexpr int WORDS = CODED;
    static __device__ __forceinline__ int at(int row, int column) { return row * COLUMNS + (column + row) % COLUMNS; }
};
// Written row by row, read column by column, the columns in the order of their numbers' bits turned round.
template <typename Places>
__global__ void __launch_bounds__(256) interleaved(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float tile[Places::WORDS];
    const size_t first = static_cast<size_t>(blockIdx.x) * CODED;
#pragma unroll 8
    for (int i = threadIdx.x; i < CODED; i += 256) tile[Places::at(i / COLUMNS, i % COLUMNS)] = in[first + i];
    __syncthreads();
#pragma unroll 8
    for (int i = threadIdx.x; i < CODED; i += 256) {
        const int column = __brev(i / ROWS) >> 27, row = i % ROWS;
        out[first + i] = tile[Places::at(row, column)];
    }
}

Study woven("soft_bits_interleaved_columns_of_32_words", "networks", 4096, "4096 code blocks of 6144 soft bits, interleaved over 32 columns",
    "lanes read a column of a tile whose rows are 32 words",
    {{"padded", "rows of 33 words", {"shared_bank_conflicts"}}, {"rotated", "each row rotated by its number", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *in = b.random<float>(n * CODED);
        float *out = b.output<float>(n * CODED);
        b.tolerance = 0.0;
        return {{"flawed", launch(interleaved<Plain>, n, 256, 0, in, out)}, {"padded", launch(interleaved<Padded>, n, 256, 0, in, out)}, {"rotated", launch(interleaved<Rotated>, n, 256, 0, in, out)}};
    });

// --- seeds of alignments, extended ---

constexpr int LONGEST = 48, DROP = 12;  // words of sixteen letters; points

struct Seeds {
    const unsigned *reads, *genome;  // letters of two bits
    const int *places;               // in the genome, of each read's first word
    int *out;
};
// Sixteen letters on; whether to go on.
__device__ __forceinline__ bool extended(unsigned a, unsigned b, int &score, int &best) {
    const unsigned differ = (a ^ b) | (a ^ b) >> 1;
#pragma unroll
    for (int k = 0; k < 32; k += 2) {
        score += differ >> k & 1 ? -3 : 1;
        best = max(best, score);
        if (best - score > DROP) return false;
    }
    return true;
}
// A seed a thread.
__global__ void __launch_bounds__(256) extensions(Seeds seeds) {
    const int i = blockIdx.x * 256 + threadIdx.x, place = seeds.places[i];
    int score = 0, best = 0;
    for (int k = 0; k < LONGEST; k++)
        if (!extended(seeds.reads[i * LONGEST + k], seeds.genome[place + k], score, best)) break;
    seeds.out[i] = best;
}
// 2048 seeds a block; a lane takes the next one when it is done.
__global__ void __launch_bounds__(256) extensions_next(Seeds seeds) {
    __shared__ int taken;
    if (threadIdx.x == 0) taken = 256;
    __syncthreads();
    const int first = blockIdx.x * 2048, end = first + 2048;
    int i = first + threadIdx.x, place = seeds.places[i], k = 0, score = 0, best = 0;
    while (i < end) {
        const bool on = extended(seeds.reads[i * LONGEST + k], seeds.genome[place + k], score, best);
        if (!on || ++k == LONGEST) {
            seeds.out[i] = best;
            i = first + atomicAdd(&taken, 1);
            place = i < end ? seeds.places[i] : 0;
            k = 0, score = 0, best = 0;
        }
    }
}
// 1024 seeds a block: two words of all, then the rest of those that go on, side by side.
__global__ void __launch_bounds__(256) extensions_later(Seeds seeds) {
    __shared__ int4 left[1024];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < (blockIdx.x + 1) * 1024; i += 256) {
        const int place = seeds.places[i];
        int score = 0, best = 0;
        if (extended(seeds.reads[i * LONGEST], seeds.genome[place], score, best) && extended(seeds.reads[i * LONGEST + 1], seeds.genome[place + 1], score, best))
            left[atomicAdd(&count, 1)] = make_int4(i, place, score, best);
        else seeds.out[i] = best;
    }
    __syncthreads();
    for (int item = threadIdx.x; item < count; item += 256) {
        const int i = left[item].x, place = left[item].y;
        int score = left[item].z, best = left[item].w;
        for (int k = 2; k < LONGEST; k++)
            if (!extended(seeds.reads[i * LONGEST + k], seeds.genome[place + k], score, best)) break;
        seeds.out[i] = best;
    }
}

Study seeded("seeds_extended_one_a_lane", "bioinformatics", 1 << 20, "1048576 seeds of alignments extended over up to 768 letters, until the score drops",
    "one seed in five goes on for hundreds of letters while the other lanes of its warp are done",
    {{"next", "lanes take the next seed when they are done", {"branch_divergence"}}, {"later", "seeds that go on after 32 letters gathered in full warps", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int words = 1 << 20;
        std::vector<unsigned> genome(words + LONGEST), reads(n * LONGEST);
        std::vector<int> places(n);
        for (int i = 0; i < words + LONGEST; i++) genome[i] = hash(i + 1);
        for (long i = 0; i < n; i++) {
            const unsigned chance = hash(i ^ 0x5bd1e995u);
            const int alike = chance % 5 ? 1 : 4 + static_cast<int>((chance >> 8) % 40);
            places[i] = static_cast<int>(hash(chance) % words);
            for (int k = 0; k < std::min(alike + 4, LONGEST); k++) {
                const unsigned other = hash(chance + 77 * k + 5);
                reads[i * LONGEST + k] = k < alike ? genome[places[i] + k] ^ (other & 1 ? 1u << (other >> 1) % 32 : 0) : other;
            }
        }
        const Seeds seeds = {b.copy(reads), b.copy(genome), b.copy(places), b.output<int>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(extensions, n / 256, 256, 0, seeds)}, {"next", launch(extensions_next, n / 2048, 256, 0, seeds)}, {"later", launch(extensions_later, n / 1024, 256, 0, seeds)}};
    });

// --- what each flow of packets brought ---

struct Traffic {
    const unsigned *flows, *lengths;  // of packets; those of a flow often come one after another
    unsigned *packets, *bytes;        // of each flow
};
__device__ __forceinline__ void account(const Traffic &traffic, unsigned flow, unsigned packets, unsigned bytes) {
    atomicAdd(traffic.packets + flow, packets), atomicAdd(traffic.bytes + flow, bytes);
}
__global__ void __launch_bounds__(256) accounted(const Traffic traffic) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    account(traffic, traffic.flows[i], 1, traffic.lengths[i]);
}
// The packets of a flow that follow each other in a warp are added by the first one's lane.
__global__ void __launch_bounds__(256) accounted_lanes(const Traffic traffic) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const unsigned flow = traffic.flows[i], before = __shfl_up_sync(~0u, flow, 1);
    unsigned bytes = traffic.lengths[i];
    const bool first = lane == 0 || before != flow;
    const unsigned later = __ballot_sync(~0u, first) & 0xfffffffeu << lane;
    const int end = later ? __ffs(later) - 1 : 32;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const unsigned other = __shfl_down_sync(~0u, bytes, offset);
        if (lane + offset < end) bytes += other;
    }
    if (first) account(traffic, flow, end - lane, bytes);
}
// Eight packets a thread, added where the flow changes.
__global__ void __launch_bounds__(256) accounted_eight(const Traffic traffic) {
    const size_t at = 2 * (static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x);
    const uint4 *from = reinterpret_cast<const uint4 *>(traffic.flows) + at, *sizes = reinterpret_cast<const uint4 *>(traffic.lengths) + at;
    const uint4 low = from[0], high = from[1], low_sizes = sizes[0], high_sizes = sizes[1];
    const unsigned flows[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const unsigned lengths[8] = {low_sizes.x, low_sizes.y, low_sizes.z, low_sizes.w, high_sizes.x, high_sizes.y, high_sizes.z, high_sizes.w};
    unsigned packets = 1, bytes = lengths[0];
#pragma unroll
    for (int k = 1; k < 8; k++) {
        if (flows[k] != flows[k - 1]) account(traffic, flows[k - 1], packets, bytes), packets = 0, bytes = 0;
        packets++, bytes += lengths[k];
    }
    account(traffic, flows[7], packets, bytes);
}

Study counted("flow_traffic_two_atomics_a_packet", "networks", 1 << 23, "packets and bytes of 65536 flows, from 8388608 packets that come in trains of about eight",
    "each packet adds to its flow's two counters in global memory, as those before and after it do",
    {{"lanes", "trains summed among lanes first", {"global_atomics"}}, {"eight", "eight packets a thread, trains summed first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> flows(n);
        unsigned flow = 0;
        for (long i = 0; i < n; i++) {
            if (hash(i + 5) % 8 == 0) flow = hash(i) % 65536;
            flows[i] = flow;
        }
        const Traffic traffic = {b.copy(flows), b.random<unsigned>(n, 64.0, 1500.0), b.output<unsigned>(65536, true), b.output<unsigned>(65536, true)};
        b.tolerance = 0.0;
        return {{"flawed", launch(accounted, n / 256, 256, 0, traffic)}, {"lanes", launch(accounted_lanes, n / 256, 256, 0, traffic)}, {"eight", launch(accounted_eight, n / 2048, 256, 0, traffic)}};
    });

// --- polynomials of a lattice's signatures, transformed ---

constexpr int TERMS = 256, LATTICE = 8380417, LATTICE_INVERSE = 58728449;

// A product by Montgomery.
__device__ __forceinline__ int reduced(int a, int b) {
    const long long product = static_cast<long long>(a) * b;
    const int part = static_cast<int>(static_cast<unsigned>(product) * static_cast<unsigned>(LATTICE_INVERSE));
    return static_cast<int>((product - static_cast<long long>(part) * LATTICE) >> 32);
}
__device__ __forceinline__ void butterfly(int &low, int &high, int root) {
    const int product = reduced(root, high);
    high = low - product, low = low + product;
}
// A polynomial a block, a pair of terms a thread.
__global__ void __launch_bounds__(128) transformed(const int *__restrict__ in, int *__restrict__ out, const int *__restrict__ roots) {
    __shared__ int terms[TERMS];
    const int t = threadIdx.x, first = blockIdx.x * TERMS;
    terms[t] = in[first + t], terms[t + 128] = in[first + t + 128];
#pragma unroll
    for (int level = 0; level < 8; level++) {
        const int span = 128 >> level, group = t / span, at = group * 2 * span + t % span;
        const int root = roots[(1 << level) + group];
        __syncthreads();
        butterfly(terms[at], terms[at + span], root);
    }
    __syncthreads();
    out[first + t] = terms[t], out[first + t + 128] = terms[t + 128];
}
// Three levels of eight terms, of which neighbours are `apart` from each other; `place`: of the first.
template <int LEVEL, int LEVELS>
__device__ __forceinline__ void levels(int (&terms)[8], const int *__restrict__ roots, int place, int apart) {
#pragma unroll
    for (int level = LEVEL; level < LEVEL + LEVELS; level++) {
        const int span = (128 >> level) / apart;
#pragma unroll
        for (int k = 0; k < 8; k++)
            if ((k & span) == 0) butterfly(terms[k], terms[k + span], roots[(1 << level) + ((place + k * apart) >> (8 - level))]);
    }
}
// A polynomial a warp; the last five levels among its lanes.
__global__ void __launch_bounds__(128) transformed_lanes(const int *__restrict__ in, int *__restrict__ out, const int *__restrict__ roots) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 4 + threadIdx.x / 32) * TERMS;
    int terms[8];
#pragma unroll
    for (int k = 0; k < 8; k++) terms[k] = in[first + k * 32 + lane];
    levels<0, 3>(terms, roots, lane, 32);
#pragma unroll
    for (int level = 3; level < 8; level++) {
        const int span = 128 >> level;
        const bool high = lane & span;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int root = roots[(1 << level) + ((k * 32 + lane) >> (8 - level))];
            const int mine = high ? reduced(root, terms[k]) : terms[k], other = __shfl_xor_sync(~0u, mine, span);
            terms[k] = high ? other - mine : mine + other;
        }
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[first + k * 32 + lane] = terms[k];
}
// A polynomial a warp; all levels in registers, whose terms change places twice.
__global__ void __launch_bounds__(128) transformed_places(const int *__restrict__ in, int4 *__restrict__ out, const int *__restrict__ roots) {
    __shared__ __align__(16) int all[4][8 * 36];
    const int lane = threadIdx.x % 32, polynomial = blockIdx.x * 4 + threadIdx.x / 32;
    int *own = all[threadIdx.x / 32];
    int terms[8];
#pragma unroll
    for (int k = 0; k < 8; k++) terms[k] = in[polynomial * TERMS + k * 32 + lane];
    levels<0, 3>(terms, roots, lane, 32);
#pragma unroll
    for (int k = 0; k < 8; k++) own[k * 36 + lane] = terms[k];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 8; k++) terms[k] = own[lane / 4 * 36 + k * 4 + lane % 4];
    levels<3, 3>(terms, roots, lane / 4 * 32 + lane % 4, 4);
#pragma unroll
    for (int k = 0; k < 8; k++) own[lane / 4 * 36 + k * 4 + lane % 4] = terms[k];
    __syncwarp();
    const int4 *mine = reinterpret_cast<const int4 *>(own + lane / 4 * 36 + lane % 4 * 8);
    const int4 low = mine[0], high = mine[1];
    terms[0] = low.x, terms[1] = low.y, terms[2] = low.z, terms[3] = low.w;
    terms[4] = high.x, terms[5] = high.y, terms[6] = high.z, terms[7] = high.w;
    levels<6, 2>(terms, roots, lane * 8, 1);
    out[polynomial * 64 + lane * 2] = make_int4(terms[0], terms[1], terms[2], terms[3]);
    out[polynomial * 64 + lane * 2 + 1] = make_int4(terms[4], terms[5], terms[6], terms[7]);
}

Study signatures("lattice_polynomials_a_barrier_a_level", "cryptography", 65536, "number-theoretic transforms of 65536 polynomials of 256 terms, modulo 8380417",
    "four warps wait for each other before each of eight levels of a pair a thread",
    {{"lanes", "a polynomial a warp, the last levels among lanes", {"barriers"}}, {"places", "a polynomial a warp, levels in registers", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> roots(TERMS, 1);
        long long power = (1ll << 32) % LATTICE;
        std::vector<int> powers(TERMS);
        for (int k = 0; k < TERMS; k++, power = power * 1753 % LATTICE) powers[k] = static_cast<int>(power);
        for (int k = 1; k < TERMS; k++) {
            int turned = 0;
            for (int bit = 0; bit < 8; bit++) turned |= (k >> bit & 1) << (7 - bit);
            roots[k] = powers[turned] > LATTICE / 2 ? powers[turned] - LATTICE : powers[turned];
        }
        const int *in = b.random<int>(n * TERMS, 0.0, LATTICE), *table = b.copy(roots);
        int *out = b.output<int>(n * TERMS);
        b.tolerance = 0.0;
        return {{"flawed", launch(transformed, n, 128, 0, in, out, table)}, {"lanes", launch(transformed_lanes, n / 4, 128, 0, in, out, table)},
            {"places", launch(transformed_places, n / 4, 128, 0, in, reinterpret_cast<int4 *>(out), table)}};
    });

// --- patterns in packets ---

constexpr int LETTERS = 128, STREAM_WORDS = 1024;

struct Scan {
    const unsigned short *next;  // of each state and letter; the highest bit: a pattern ends here
    const unsigned *text;        // four letters; those of all streams side by side
    int *out;
    int streams;
};
struct Walk {
    unsigned state = 0;
    int found = 0;
    __device__ __forceinline__ void step(const unsigned short *__restrict__ next, unsigned four) {
#pragma unroll
        for (int k = 0; k < 32; k += 8) {
            const unsigned entry = next[state * LETTERS + (four >> k & 127)];
            state = entry & 0x7fff, found += entry >> 15;
        }
    }
};
// A stream a thread.
__global__ void __launch_bounds__(128) scanned(const Scan scan) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    Walk walk;
#pragma unroll 4
    for (int k = 0; k < STREAM_WORDS; k++) walk.step(scan.next, scan.text[k * scan.streams + i]);
    scan.out[i] = walk.found;
}
// A part of a stream a thread, each from eight letters before it on: no pattern is longer.
__global__ void __launch_bounds__(128) scanned_parts(const Scan scan) {
    __shared__ int counts[4][32];
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32, i = blockIdx.x * 32 + lane, first = part * (STREAM_WORDS / 4);
    Walk walk;
    if (part > 0)
        for (int k = first - 2; k < first; k++) walk.step(scan.next, scan.text[k * scan.streams + i]);
    walk.found = 0;
#pragma unroll 4
    for (int k = first; k < first + STREAM_WORDS / 4; k++) walk.step(scan.next, scan.text[k * scan.streams + i]);
    counts[part][lane] = walk.found;
    __syncthreads();
    if (part == 0) scan.out[i] = counts[0][lane] + counts[1][lane] + counts[2][lane] + counts[3][lane];
}
// Four parts of a stream a thread, in step.
__global__ void __launch_bounds__(128) scanned_in_step(const Scan scan) {
    const int i = blockIdx.x * 128 + threadIdx.x, part = STREAM_WORDS / 4;
    Walk walks[4];
#pragma unroll
    for (int p = 1; p < 4; p++) {
        for (int k = p * part - 2; k < p * part; k++) walks[p].step(scan.next, scan.text[k * scan.streams + i]);
        walks[p].found = 0;
    }
    for (int k = 0; k < part; k++) {
        unsigned four[4];
#pragma unroll
        for (int p = 0; p < 4; p++) four[p] = scan.text[(p * part + k) * scan.streams + i];
#pragma unroll
        for (int letter = 0; letter < 32; letter += 8)
#pragma unroll
            for (int p = 0; p < 4; p++) {
                const unsigned entry = scan.next[walks[p].state * LETTERS + (four[p] >> letter & 127)];
                walks[p].state = entry & 0x7fff, walks[p].found += entry >> 15;
            }
    }
    scan.out[i] = walks[0].found + walks[1].found + walks[2].found + walks[3].found;
}

Study intrusions("stream_patterns_one_walk_a_stream", "networks", 16384, "forty patterns of up to eight letters looked for in 16384 streams of 4096 letters",
    "each letter's look-up waits for the state that the last one gave, with a warp a scheduler",
    {{"parts", "four parts of a stream in four threads", {"memory_latency"}}, {"in_step", "four parts of a stream in step in a thread", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const auto letter = [](unsigned chance) { return 'a' + static_cast<int>(chance % 26 * (chance >> 8 & 255) / 256); };
        std::vector<std::vector<int>> next(1, std::vector<int>(LETTERS, -1));
        std::vector<int> ends(1, 0);
        for (int pattern = 0; pattern < 40; pattern++) {
            int state = 0;
            for (int k = 0; k < 3 + pattern % 6; k++) {
                const int found = letter(hash(pattern * 8 + k + 1000));
                if (next[state][found] < 0) {
                    next[state][found] = static_cast<int>(next.size());
                    next.emplace_back(LETTERS, -1), ends.push_back(0);
                }
                state = next[state][found];
            }
            ends[state] = 1;
        }
        std::vector<int> shorter(next.size(), 0);
        std::queue<int> states;
        for (int l = 0; l < LETTERS; l++) {
            if (next[0][l] < 0) next[0][l] = 0;
            else states.push(next[0][l]);
        }
        for (; !states.empty(); states.pop()) {
            const int state = states.front();
            ends[state] |= ends[shorter[state]];
            for (int l = 0; l < LETTERS; l++) {
                const int other = next[shorter[state]][l];
                if (next[state][l] < 0) next[state][l] = other;
                else shorter[next[state][l]] = other, states.push(next[state][l]);
            }
        }
        std::vector<unsigned short> table(next.size() * LETTERS);
        for (size_t k = 0; k < table.size(); k++) {
            const int to = next[k / LETTERS][k % LETTERS];
            table[k] = static_cast<unsigned short>(to | ends[to] << 15);
        }
        std::vector<unsigned> text(n * STREAM_WORDS);
        for (size_t k = 0; k < text.size(); k++) {
            const unsigned chance = hash(k), more = hash(chance);
            text[k] = letter(chance) | letter(chance >> 16) << 8 | (chance % 7 ? letter(more) : ' ') << 16 | letter(more >> 16) << 24;
        }
        const Scan scan = {b.copy(table), b.copy(text), b.output<int>(n), static_cast<int>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(scanned, n / 128, 128, 0, scan)}, {"parts", launch(scanned_parts, n / 32, 128, 0, scan)}, {"in_step", launch(scanned_in_step, n / 128, 128, 0, scan)}};
    });

// --- check sums of frames ---

constexpr int FRAME_WORDS = 128;
constexpr unsigned CRC = 0xedb88320u;

// A frame a thread; their words lie side by side.
template <typename Step>
__device__ __forceinline__ void frame_sum(const unsigned *__restrict__ words, unsigned *__restrict__ out, int frames, Step step) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    unsigned sum = ~0u;
#pragma unroll 4
    for (int k = 0; k < FRAME_WORDS; k++) sum = step(sum ^ words[static_cast<size_t>(k) * frames + i]);
    out[i] = ~sum;
}
__global__ void __launch_bounds__(256) frame_sums(const unsigned *__restrict__ words, unsigned *__restrict__ out, int frames) {
    frame_sum(words, out, frames, [](unsigned sum) {
#pragma unroll
        for (int bit = 0; bit < 32; bit++) sum = sum & 1 ? sum >> 1 ^ CRC : sum >> 1;
        return sum;
    });
}
__global__ void __launch_bounds__(256) frame_sums_bytes(const unsigned *__restrict__ words, const unsigned *__restrict__ tables, unsigned *__restrict__ out, int frames) {
    __shared__ unsigned own[4][256];
#pragma unroll
    for (int k = 0; k < 4; k++) own[k][threadIdx.x] = tables[k * 256 + threadIdx.x];
    __syncthreads();
    frame_sum(words, out, frames, [](unsigned sum) { return own[3][sum & 255] ^ own[2][sum >> 8 & 255] ^ own[1][sum >> 16 & 255] ^ own[0][sum >> 24]; });
}
// Of four bits, alone: the sixteen words of the first table's low places.
__global__ void __launch_bounds__(256) frame_sums_halves(const unsigned *__restrict__ words, const unsigned *__restrict__ halves, unsigned *__restrict__ out, int frames) {
    __shared__ unsigned own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = halves[threadIdx.x];
    __syncthreads();
    frame_sum(words, out, frames, [](unsigned sum) {
#pragma unroll
        for (int k = 0; k < 8; k++) sum = sum >> 4 ^ own[sum & 15];
        return sum;
    });
}

Study framed("frame_check_sums_bit_by_bit", "networks", 262144, "check sums (CRC-32) of 262144 frames of 512 bytes",
    "each bit of a frame shifts its sum by one place",
    {{"bytes", "tables of four bytes in shared memory", {"integer_arithmetic"}}, {"halves", "a table of four bits in shared memory", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> tables(1024), halves(16);
        const auto shifted = [](unsigned sum, int bits) {
            for (int bit = 0; bit < bits; bit++) sum = sum & 1 ? sum >> 1 ^ CRC : sum >> 1;
            return sum;
        };
        for (unsigned k = 0; k < 1024; k++) tables[k] = shifted(k % 256, 8 * (k / 256 + 1));
        for (unsigned k = 0; k < 16; k++) halves[k] = shifted(k, 4);
        const unsigned *words = b.random<unsigned>(n * FRAME_WORDS, 0.0, 4294967296.0), *bytes = b.copy(tables), *four = b.copy(halves);
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(frame_sums, n / 256, 256, 0, words, out, n)}, {"bytes", launch(frame_sums_bytes, n / 256, 256, 0, words, bytes, out, n)},
            {"halves", launch(frame_sums_halves, n / 256, 256, 0, words, four, out, n)}};
    });

// --- how shares move with the market ---

constexpr int WINDOW = 20;

struct Moves {
    float market = 0.0f, own = 0.0f, market_square = 0.0f, product = 0.0f;
    __device__ __forceinline__ void add(float m, float x) { market += m, own += x, market_square += m * m, product += m * x; }
    __device__ __forceinline__ void take(float m, float x) { market -= m, own -= x, market_square -= m * m, product -= m * x; }
    __device__ __forceinline__ void add(const Moves &other) { market += other.market, own += other.own, market_square += other.market_square, product += other.product; }
    __device__ __forceinline__ float beta() const {
        return (product - market * own * (1.0f / WINDOW)) / (market_square - market * market * (1.0f / WINDOW));
    }
};
// A day of a share a thread, eight days of 32 shares a block; those of all shares lie side by side.
__global__ void __launch_bounds__(256) betas(const float *__restrict__ market, const float *__restrict__ returns, float *__restrict__ out, int shares) {
    const int share = blockIdx.x * 32 + threadIdx.x % 32, day = blockIdx.y * 8 + threadIdx.x / 32;
    const float *own = returns + static_cast<size_t>(day) * shares + share;
    Moves moves;
#pragma unroll 10
    for (int k = 0; k < WINDOW; k++) moves.add(market[day + k], own[static_cast<size_t>(k) * shares]);
    out[static_cast<size_t>(day) * shares + share] = moves.beta();
}
// 32 days a thread, one after another.
__global__ void __launch_bounds__(256) betas_running(const float *__restrict__ market, const float *__restrict__ returns, float *__restrict__ out, int shares) {
    const int share = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * 32;
    const float *own = returns + static_cast<size_t>(first) * shares + share;
    float *to = out + static_cast<size_t>(first) * shares + share;
    Moves moves;
#pragma unroll 10
    for (int k = 0; k < WINDOW; k++) moves.add(market[first + k], own[static_cast<size_t>(k) * shares]);
    to[0] = moves.beta();
#pragma unroll 8
    for (int day = 1; day < 32; day++) {
        moves.take(market[first + day - 1], own[static_cast<size_t>(day - 1) * shares]);
        moves.add(market[first + day + WINDOW - 1], own[static_cast<size_t>(day + WINDOW - 1) * shares]);
        to[static_cast<size_t>(day) * shares] = moves.beta();
    }
}
// Eight days a thread: the thirteen days that all their windows hold are summed once.
__global__ void __launch_bounds__(256) betas_common(const float *__restrict__ market, const float *__restrict__ returns, float *__restrict__ out, int shares) {
    const int share = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * 8;
    const float *own = returns + static_cast<size_t>(first) * shares + share;
    float *to = out + static_cast<size_t>(first) * shares + share;
    Moves sides[8], common;
#pragma unroll
    for (int day = 6; day >= 0; day--) {
        sides[day] = sides[day + 1];
        sides[day].add(market[first + day], own[static_cast<size_t>(day) * shares]);
    }
#pragma unroll 8
    for (int k = 7; k < WINDOW; k++) common.add(market[first + k], own[static_cast<size_t>(k) * shares]);
#pragma unroll
    for (int day = 0; day < 8; day++) {
        if (day > 0) common.add(market[first + day + WINDOW - 1], own[static_cast<size_t>(day + WINDOW - 1) * shares]);
        sides[day].add(common);
        to[static_cast<size_t>(day) * shares] = sides[day].beta();
    }
}

Study moved("share_betas_twenty_days_again_each_day", "finance", 4096, "betas of 4096 shares over the last 20 days, for 2048 days",
    "each day's window is summed from all of its 20 days, 19 of which the day before summed",
    {{"running", "sums carried from day to day, over 32 days", {"redundant_loads"}}, {"common", "eight days a thread, what all their windows hold summed once", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int days = 2048;
        const float *market = b.random<float>(days + WINDOW, -1.0, 1.1), *returns = b.random<float>(n * (days + WINDOW), -1.0, 1.05);
        float *out = b.output<float>(n * days);
        return {{"flawed", launch(betas, dim3(n / 32, days / 8), 256, 0, market, returns, out, n)}, {"running", launch(betas_running, dim3(n / 256, days / 32), 256, 0, market, returns, out, n)},
            {"common", launch(betas_common, dim3(n / 256, days / 8), 256, 0, market, returns, out, n)}};
    });

// --- communities, a round of votes ---

constexpr int NEIGHBOURS = 16;

struct Votes {
    const int *neighbours;  // the first of all nodes, then the second
    const int *labels;      // below 2^24
    int *out;
    int nodes;
};
__device__ __forceinline__ void ask(const Votes &votes, int node, int (&labels)[NEIGHBOURS]) {
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) labels[k] = votes.labels[votes.neighbours[k * votes.nodes + node]];
}
// What most neighbours say; of what as many say, the least. A node a thread.
__global__ void __launch_bounds__(256) voted(const Votes votes) {
    const int node = blockIdx.x * 256 + threadIdx.x;
    int said[NEIGHBOURS], labels[NEIGHBOURS], counts[NEIGHBOURS], found = 0;
    ask(votes, node, said);
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
        int at = 0;
        while (at < found && labels[at] != said[k]) at++;
        if (at == found) labels[found] = said[k], counts[found] = 0, found++;
        counts[at]++;
    }
    int best = labels[0], most = counts[0];
    for (int at = 1; at < found; at++)
        if (counts[at] > most || (counts[at] == most && labels[at] < best)) best = labels[at], most = counts[at];
    votes.out[node] = best;
}
// Larger for more votes, and for a lesser label.
__device__ __forceinline__ int weight_of(int count, int label) { return count << 24 | (0xffffff - label); }
// The first of those who say the same counts all of them.
__global__ void __launch_bounds__(256) voted_pairs(const Votes votes) {
    const int node = blockIdx.x * 256 + threadIdx.x;
    int labels[NEIGHBOURS], most = 0;
    ask(votes, node, labels);
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
        int count = 1;
#pragma unroll
        for (int j = k + 1; j < NEIGHBOURS; j++) count += labels[j] == labels[k];
        most = max(most, weight_of(count, labels[k]));
    }
    votes.out[node] = 0xffffff - (most & 0xffffff);
}
// Sorted by a network, then counted along.
__global__ void __launch_bounds__(256) voted_sorted(const Votes votes) {
    const int node = blockIdx.x * 256 + threadIdx.x;
    int labels[NEIGHBOURS];
    ask(votes, node, labels);
#pragma unroll
    for (int size = 2; size <= NEIGHBOURS; size *= 2)
#pragma unroll
        for (int apart = size / 2; apart; apart /= 2)
#pragma unroll
            for (int k = 0; k < NEIGHBOURS; k++) {
                const int other = k ^ apart;
                if (other < k) continue;
                const int low = min(labels[k], labels[other]), high = max(labels[k], labels[other]);
                labels[k] = k & size ? high : low, labels[other] = k & size ? low : high;
            }
    int count = 1, most = weight_of(1, labels[0]);
#pragma unroll
    for (int k = 1; k < NEIGHBOURS; k++) {
        count = labels[k] == labels[k - 1] ? count + 1 : 1;
        most = max(most, weight_of(count, labels[k]));
    }
    votes.out[node] = 0xffffff - (most & 0xffffff);
}

Study communities("community_votes_counted_by_index", "graphs", 1 << 21, "a round of label propagation over 2097152 nodes of 16 neighbours",
    "labels and their counts are looked through and kept in arrays that are indexed by a variable",
    {{"pairs", "each label compared with those that follow, in registers", {"local_memory"}}, {"sorted", "labels sorted by a network in registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> neighbours(n * NEIGHBOURS), labels(n);
        for (long k = 0; k < NEIGHBOURS; k++)
            for (long node = 0; node < n; node++) neighbours[k * n + node] = static_cast<int>((node + n - 64 + hash(node * NEIGHBOURS + k) % 128) % n);
        for (long node = 0; node < n; node++) labels[node] = static_cast<int>(node / 128 * 8 + hash(node) % 8);
        const Votes votes = {b.copy(neighbours), b.copy(labels), b.output<int>(n), static_cast<int>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(voted, n / 256, 256, 0, votes)}, {"pairs", launch(voted_pairs, n / 256, 256, 0, votes)}, {"sorted", launch(voted_sorted, n / 256, 256, 0, votes)}};
    });

// --- errors to be expected in reads ---

constexpr int READ_QUALITIES = 256;

__constant__ float error_shares[64];

// Half a warp a read.
template <typename Share>
__device__ __forceinline__ void expect(const uint4 *__restrict__ qualities, float *__restrict__ out, Share share) {
    const int lane = threadIdx.x % 16, read = (blockIdx.x * 256 + threadIdx.x) / 16;
    const uint4 four = qualities[static_cast<size_t>(read) * (READ_QUALITIES / 16) + lane];
    const unsigned words[4] = {four.x, four.y, four.z, four.w};
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int shift = 0; shift < 32; shift += 8) sum += share(words[k] >> shift & 63);
#pragma unroll
    for (int offset = 8; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0) out[read] = sum;
}
__global__ void __launch_bounds__(256) expected(const uint4 *__restrict__ qualities, float *__restrict__ out) {
    expect(qualities, out, [](unsigned quality) { return error_shares[quality]; });
}
__global__ void __launch_bounds__(256) expected_shared(const uint4 *__restrict__ qualities, float *__restrict__ out) {
    __shared__ float shares[64];
    if (threadIdx.x < 64) shares[threadIdx.x] = error_shares[threadIdx.x];
    __syncthreads();
    expect(qualities, out, [](unsigned quality) { return shares[quality]; });
}
__global__ void __launch_bounds__(256) expected_powers(const uint4 *__restrict__ qualities, float *__restrict__ out) {
    expect(qualities, out, [](unsigned quality) { return exp2f(-0.33219281f * static_cast<float>(quality)); });
}

Study erring("read_errors_shares_in_constant", "bioinformatics", 524288, "errors to be expected in 524288 reads of 256 qualities",
    "lanes look different qualities up in constant memory",
    {{"shared", "the table in shared memory", {"constant_divergence"}}, {"powers", "the share as a power of two", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        float table[64];
        for (int k = 0; k < 64; k++) table[k] = static_cast<float>(std::pow(10.0, -0.1 * k));
        CHECK(cudaMemcpyToSymbol(error_shares, table, sizeof table));
        static const unsigned char kinds[16] = {2, 12, 23, 23, 23, 37, 37, 37, 37, 37, 37, 37, 37, 37, 37, 37};
        std::vector<unsigned> words(n * (READ_QUALITIES / 4));
        for (size_t k = 0; k < words.size(); k++) {
            const unsigned chance = hash(k);
            words[k] = kinds[chance & 15] | kinds[chance >> 4 & 15] << 8 | kinds[chance >> 8 & 15] << 16 | kinds[chance >> 12 & 15] << 24;
        }
        const uint4 *qualities = reinterpret_cast<const uint4 *>(b.copy(words));
        float *out = b.output<float>(n);
        return {{"flawed", launch(expected, n / 16, 256, 0, qualities, out)}, {"shared", launch(expected_shared, n / 16, 256, 0, qualities, out)}, {"powers", launch(expected_powers, n / 16, 256, 0, qualities, out)}};
    });

// --- ranks of pages, from those that lead to them ---

struct Pages {
    const int *starts, *from;  // of each page: where its links start; from which pages
    const float *ranks;        // divided by how many links a page has
    float *out;
    int count;
};
// By eight lanes.
__device__ __forceinline__ void rank_page(const Pages &pages, int page) {
    const int lane = threadIdx.x % 8;
    const unsigned eight = 0xffu << (threadIdx.x & 24);
    float sum = 0.0f;
    const int end = pages.starts[page + 1];
#pragma unroll 4
    for (int k = pages.starts[page] + lane; k < end; k += 8) sum += pages.ranks[pages.from[k]];
#pragma unroll
    for (int offset = 4; offset; offset /= 2) sum += __shfl_xor_sync(eight, sum, offset);
    if (lane == 0) pages.out[page] = 0.15f + 0.85f * sum;
}
// As many pages for each block.
__global__ void __launch_bounds__(256) ranked(const Pages pages, int each) {
    const int first = blockIdx.x * each, end = min(pages.count, first + each);
    for (int page = first + threadIdx.x / 8; page < end; page += 32) rank_page(pages, page);
}
// Pages dealt to all blocks in turn.
__global__ void __launch_bounds__(256) ranked_dealt(const Pages pages) {
    for (int page = (threadIdx.x / 8) * gridDim.x + blockIdx.x; page < pages.count; page += 32 * gridDim.x) rank_page(pages, page);
}
// About as many links for each block.
__global__ void __launch_bounds__(256) ranked_bounds(const Pages pages, const int *__restrict__ bounds) {
    for (int page = bounds[blockIdx.x] + threadIdx.x / 8; page < bounds[blockIdx.x + 1]; page += 32) rank_page(pages, page);
}

Study linked("page_ranks_as_many_pages_a_block", "graphs", 1 << 20, "ranks of 1048576 pages from 14.7 million links, the pages with most links first",
    "each block takes as many pages as the others; the first ones have many times the links of the last ones",
    {{"dealt", "pages dealt to all blocks in turn", {"workload_imbalance"}}, {"bounds", "as many links a block", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned grid = 8 * multiprocessors();
        std::vector<int> starts(n + 1);
        for (long page = 0; page < n; page++) starts[page + 1] = starts[page] + 8 + static_cast<int>(1000.0 * std::pow(page + 1.0, -0.4));
        const long links = starts[n];
        std::vector<int> from(links), bounds(grid + 1);
        for (long k = 0; k < links; k++) from[k] = static_cast<int>(hash(k + 17) % n);
        for (unsigned k = 0; k <= grid; k++) bounds[k] = static_cast<int>(std::lower_bound(starts.begin(), starts.end(), links * k / grid) - starts.begin());
        const Pages pages = {b.copy(starts), b.copy(from), b.random<float>(n, 0.01, 0.2), b.output<float>(n), static_cast<int>(n)};
        const int *own = b.copy(bounds);
        return {{"flawed", launch(ranked, grid, 256, 0, pages, blocks(n, grid))}, {"dealt", launch(ranked_dealt, grid, 256, 0, pages)}, {"bounds", launch(ranked_bounds, grid, 256, 0, pages, own)}};
    });

// --- temperatures of thermistors ---

struct Thermistor {
    float resistor, constant, linear, cubic;  // ohms; by Steinhart and Hart
};
// Codes of twelve bits, two a word; four a thread.
template <typename Celsius>
__device__ __forceinline__ void measure(const uint2 *__restrict__ codes, float4 *__restrict__ out, Celsius celsius) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const uint2 four = codes[i];
    out[i] = make_float4(celsius(four.x & 4095), celsius(four.x >> 16), celsius(four.y & 4095), celsius(four.y >> 16));
}
__global__ void __launch_bounds__(256) temperatures(const uint2 *__restrict__ codes, float4 *__restrict__ out, const Thermistor t) {
    measure(codes, out, [&](unsigned code) {
        const float level = static_cast<float>(code) / 4096.0f, resistance = t.resistor * level / (1.0f - level), logarithm = logf(resistance);
        return 1.0f / (t.constant + t.linear * logarithm + t.cubic * powf(logarithm, 3.0f)) - 273.15f;
    });
}
__global__ void __launch_bounds__(256) temperatures_fast(const uint2 *__restrict__ codes, float4 *__restrict__ out, const Thermistor t) {
    measure(codes, out, [&](unsigned code) {
        const float level = static_cast<float>(code), logarithm = __logf(__fdividef(t.resistor * level, 4096.0f - level));
        return __fdividef(1.0f, t.constant + logarithm * (t.linear + t.cubic * logarithm * logarithm)) - 273.15f;
    });
}
// The logarithm of a quotient as a difference of two.
__global__ void __launch_bounds__(256) temperatures_logs(const uint2 *__restrict__ codes, float4 *__restrict__ out, const Thermistor t) {
    const float of_resistor = __logf(t.resistor);
    measure(codes, out, [&](unsigned code) {
        const float level = static_cast<float>(code), logarithm = of_resistor + __logf(level) - __logf(4096.0f - level);
        return __fdividef(1.0f, t.constant + logarithm * (t.linear + t.cubic * logarithm * logarithm)) - 273.15f;
    });
}

Study measured("thermistor_powers_and_quotients", "sensors", 1 << 25, "temperatures of 33554432 codes of thermistors by Steinhart and Hart",
    "each code takes three precise quotients, a logarithm and a power of three",
    {{"fast", "products and fast functions", {"expensive_math"}}, {"logs", "a difference of fast logarithms, and products", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> codes(n / 2);
        for (size_t k = 0; k < codes.size(); k++) {
            const unsigned chance = hash(k);
            codes[k] = (200 + chance % 3600) | (200 + (chance >> 12) % 3600) << 16;
        }
        const uint2 *in = reinterpret_cast<const uint2 *>(b.copy(codes));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n));
        const Thermistor thermistor = {10000.0f, 1.129148e-3f, 2.34125e-4f, 8.76741e-8f};
        const unsigned grid = blocks(n, 1024);
        return {{"flawed", launch(temperatures, grid, 256, 0, in, out, thermistor)}, {"fast", launch(temperatures_fast, grid, 256, 0, in, out, thermistor)}, {"logs", launch(temperatures_logs, grid, 256, 0, in, out, thermistor)}};
    });

// --- a column of numbers of ten bits ---

// Sixteen numbers a lane, of five words that lie 32 words apart; lane by lane in the order of the column.
__global__ void __launch_bounds__(256) unpacked(const unsigned *__restrict__ packed, const int *__restrict__ bases, int *__restrict__ out) {
    const int lane = threadIdx.x % 32, group = blockIdx.x * 8 + threadIdx.x / 32, base = bases[group];
    const unsigned *from = packed + static_cast<size_t>(group) * 160 + lane;
    int *to = out + static_cast<size_t>(group) * 512 + lane;
    unsigned words[6] = {};
#pragma unroll
    for (int k = 0; k < 5; k++) words[k] = from[k * 32];
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const int bit = 10 * k;
        to[k * 32] = base + static_cast<int>(__funnelshift_r(words[bit / 32], words[bit / 32 + 1], bit % 32) & 1023);
    }
}

Study unpacking("sound_numbers_of_ten_bits", "databases", 1 << 25, "33554432 numbers of ten bits and a base for each 512 as whole words", "", {},
    [](Buffers &b, long n) -> Sides {
        const unsigned *packed = b.random<unsigned>(n / 512 * 160, 0.0, 4294967296.0);
        const int *bases = b.random<int>(n / 512, -100000.0, 100000.0);
        int *out = b.output<int>(n);
        return {{"sound", launch(unpacked, n / 4096, 256, 0, packed, bases, out)}};
    });

// --- frames and their neighbours in time ---

__device__ __forceinline__ unsigned mixed(unsigned before, unsigned now, unsigned after) { return __vavgu4(now, __vavgu4(before, after)); }
__global__ void __launch_bounds__(256) calmed(const uint4 *__restrict__ before, const uint4 *__restrict__ now, const uint4 *__restrict__ after, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const uint4 a = before[i], b = now[i], c = after[i];
    out[i] = make_uint4(mixed(a.x, b.x, c.x), mixed(a.y, b.y, c.y), mixed(a.z, b.z, c.z), mixed(a.w, b.w, c.w));
}

Study calming("sound_frames_calmed", "video", 3840 * 2160 * 3, "a frame of 3840 x 2160 pixels of three bytes, mixed with the ones before and after it", "", {},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *frames[3];
        for (const unsigned char *&frame : frames) frame = b.random<unsigned char>(n, 0.0, 256.0);
        unsigned char *out = b.output<unsigned char>(n);
        return {{"sound", launch(calmed, n / 4096, 256, 0, reinterpret_cast<const uint4 *>(frames[0]), reinterpret_cast<const uint4 *>(frames[1]), reinterpret_cast<const uint4 *>(frames[2]), reinterpret_cast<uint4 *>(out))}};
    });

}  // namespace
