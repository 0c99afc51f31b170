// Pieces of databases, cryptography, bioinformatics, finance, graphs and signals. Each kernel has one weakness and two ways out.
#include "../pairs/pair.cuh"

namespace {

// --- columns stored as blocks of 128 differences ---

constexpr int BLOCK = 128;

__global__ void undelta(const unsigned short *deltas, const int *first, int *values, int count) {
    int block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= count) return;
    int value = first[block];
    for (int i = 0; i < BLOCK; ++i) {
        value += deltas[block * BLOCK + i];
        values[block * BLOCK + i] = value;
    }
}
__global__ void undelta_warp(const ushort4 *__restrict__ deltas, const int *__restrict__ first, int4 *__restrict__ values, int count) {
    int block = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (block >= count) return;
    ushort4 d = deltas[block * 32 + lane];
    int4 sum = {d.x, d.x + d.y, d.x + d.y + d.z, d.x + d.y + d.z + d.w};
    int before = sum.w;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(~0u, before, offset);
        if (lane >= offset) before += other;
    }
    before += first[block] - sum.w;
    values[block * 32 + lane] = {before + sum.x, before + sum.y, before + sum.z, before + sum.w};
}
// Thread by block as before, but through shared memory: 32 values of 64 blocks at a time.
__global__ void __launch_bounds__(64) undelta_staged(const unsigned short *__restrict__ deltas, const int *__restrict__ first, int *__restrict__ values, int count) {
    __shared__ int tile[64][33];
    int base = blockIdx.x * 64, value = first[base + threadIdx.x], lane = threadIdx.x % 32;
    for (int part = 0; part < BLOCK; part += 32) {
        for (int r = threadIdx.x / 32; r < 64; r += 2) tile[r][lane] = deltas[(base + r) * BLOCK + part + lane];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) tile[threadIdx.x][i] = value += tile[threadIdx.x][i];
        __syncthreads();
        for (int r = threadIdx.x / 32; r < 64; r += 2) values[(base + r) * BLOCK + part + lane] = tile[r][lane];
        __syncthreads();
    }
}

Study deltas("delta_blocks_thread_each", "databases", 1 << 18, "262144 blocks of 128 differences of 16 bits become sums",
    "a thread adds up its block: lanes read and store far apart",
    {{"warp", "a warp a block, four values a lane, a scan by shuffles", {"uncoalesced_access", "narrow_access"}},
        {"staged", "a thread a block, tiles in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> packed(n * BLOCK / 2);
        for (size_t i = 0; i < packed.size(); ++i) packed[i] = hash(i);
        unsigned *deltas = b.copy(packed);
        int *first = b.random<int>(n, 0, 1 << 20), *values = b.output<int>(n * BLOCK);
        b.tolerance = 0.0;
        return {{"flawed", launch(undelta, n / 128, 128, 0, (unsigned short *)deltas, first, values, n)},
            {"warp", launch(undelta_warp, n / 8, 256, 0, (ushort4 *)deltas, first, (int4 *)values, n)},
            {"staged", launch(undelta_staged, n / 64, 64, 0, (unsigned short *)deltas, first, values, n)}};
    });

// --- edit distance of barcodes of up to 32 letters ---

constexpr int LETTERS = 32;

__global__ void edits(const char *a, const char *c, const int *lengths, int *out, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    int length = lengths[p], row[LETTERS + 1];
    for (int j = 0; j <= length; ++j) row[j] = j;
    for (int i = 1; i <= LETTERS; ++i) {
        int diagonal = row[0];
        char letter = c[(i - 1) * n + p];
        row[0] = i;
        for (int j = 1; j <= length; ++j) {
            int best = min(min(row[j], row[j - 1]) + 1, diagonal + (a[(j - 1) * n + p] != letter));
            diagonal = row[j], row[j] = best;
        }
    }
    out[p] = row[length];
}
// All indices known: the row and the letters stay in registers.
__global__ void edits_registers(const char *__restrict__ a, const char *__restrict__ c, const int *__restrict__ lengths, int *__restrict__ out, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    int length = lengths[p], row[LETTERS + 1], result = 0;
    unsigned letters[LETTERS / 4] = {};
#pragma unroll
    for (int j = 0; j <= LETTERS; ++j) row[j] = j;
#pragma unroll
    for (int j = 0; j < LETTERS; ++j) letters[j / 4] |= static_cast<unsigned>(static_cast<unsigned char>(a[j * n + p])) << (j % 4 * 8);
    for (int i = 1; i <= LETTERS; ++i) {
        int diagonal = row[0];
        unsigned letter = static_cast<unsigned char>(c[(i - 1) * n + p]);
        row[0] = i;
#pragma unroll
        for (int j = 1; j <= LETTERS; ++j) {
            int best = min(min(row[j], row[j - 1]) + 1, diagonal + ((letters[(j - 1) / 4] >> ((j - 1) % 4 * 8) & 255u) != letter));
            diagonal = row[j], row[j] = best;
        }
    }
#pragma unroll
    for (int j = 0; j <= LETTERS; ++j) result = j == length ? row[j] : result;
    out[p] = result;
}
// A column of the matrix in the bits of two words (Myers).
__global__ void edits_bits(const char *__restrict__ a, const char *__restrict__ c, const int *__restrict__ lengths, int *__restrict__ out, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    int length = lengths[p], score = length;
    unsigned high = 0, low = 0, up = ~0u, down = 0, last = 1u << (length - 1);
#pragma unroll
    for (int j = 0; j < LETTERS; ++j) {
        unsigned letter = a[j * n + p];
        high |= (letter >> 1 & 1) << j, low |= (letter & 1) << j;
    }
#pragma unroll 8
    for (int i = 0; i < LETTERS; ++i) {
        unsigned letter = c[i * n + p], same = ~((high ^ (0u - (letter >> 1 & 1))) | (low ^ (0u - (letter & 1))));
        unsigned vertical = same | down, across = (((same & up) + up) ^ up) | same;
        unsigned plus = down | ~(across | up), minus = up & across;
        score += (plus & last) != 0, score -= (minus & last) != 0;
        plus = plus << 1 | 1, minus <<= 1;
        up = minus | ~(vertical | plus), down = plus & vertical;
    }
    out[p] = score;
}

Study barcodes("edit_distance_row_in_local", "bioinformatics", 1 << 19, "edit distances of 524288 pairs of barcodes, 16 to 32 letters against 32",
    "a row of the matrix is an array indexed by a length known at run time",
    {{"registers", "32 columns always, so that row and letters stay in registers", {"local_memory"}},
        {"bits", "a column in the bits of two words", {"local_memory", "integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned char *a = b.random<unsigned char>(n * LETTERS, 0, 4), *c = b.random<unsigned char>(n * LETTERS, 0, 4);
        int *lengths = b.random<int>(n, 16, 33), *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(edits, n / 128, 128, 0, (char *)a, (char *)c, lengths, out, n)},
            {"registers", launch(edits_registers, n / 128, 128, 0, (char *)a, (char *)c, lengths, out, n)},
            {"bits", launch(edits_bits, n / 128, 128, 0, (char *)a, (char *)c, lengths, out, n)}};
    });

// --- key streams of RC4 for many keys ---

constexpr int STREAM = 512;  // bytes a key

template <typename State>
__device__ __forceinline__ void rc4(uint4 key, unsigned *out, int thread, int n, State state) {
    const unsigned words[4] = {key.x, key.y, key.z, key.w};
    for (int i = 0; i < 256; ++i) state(i) = i;
    int j = 0;
    for (int block = 0; block < 256; block += 16)
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            unsigned char si = state(block + i);
            j = (j + si + (words[i / 4] >> (i % 4 * 8))) & 255;
            state(block + i) = state(j), state(j) = si;
        }
    j = 0;
    for (int word = 0; word < STREAM / 4; ++word) {
        unsigned packed = 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int i = (word * 4 + k + 1) & 255;
            unsigned char si = state(i);
            j = (j + si) & 255;
            unsigned char sj = state(j);
            state(i) = sj, state(j) = si;
            packed |= static_cast<unsigned>(state((si + sj) & 255)) << (8 * k);
        }
        out[word * n + thread] = packed;
    }
}
__global__ void __launch_bounds__(128) streams(const uint4 *keys, unsigned *out, int n) {
    int t = blockIdx.x * 128 + threadIdx.x;
    unsigned char state[256];
    rc4(keys[t], out, t, n, [&state](int i) -> unsigned char & { return state[i]; });
}
__global__ void __launch_bounds__(64) streams_shared(const uint4 *__restrict__ keys, unsigned *__restrict__ out, int n) {
    __shared__ unsigned char states[64][260];
    int t = blockIdx.x * 64 + threadIdx.x;
    unsigned char *state = states[threadIdx.x];
    rc4(keys[t], out, t, n, [state](int i) -> unsigned char & { return state[i]; });
}
// Word by word across the threads: every lane has a bank of its own.
__global__ void __launch_bounds__(64) streams_banks(const uint4 *__restrict__ keys, unsigned *__restrict__ out, int n) {
    __shared__ unsigned char states[64 * 256];
    int t = blockIdx.x * 64 + threadIdx.x;
    unsigned char *state = states + threadIdx.x * 4;
    rc4(keys[t], out, t, n, [state](int i) -> unsigned char & { return state[i / 4 * 256 + i % 4]; });
}

Study key_streams("rc4_state_in_local", "cryptography", 1 << 16, "512 bytes of RC4 for each of 65536 keys",
    "the state of 256 bytes is an array indexed at run time: it lies in local memory",
    {{"shared", "the state in shared memory, a row a thread", {"local_memory"}}, {"banks", "the state in shared memory, a bank a thread", {"local_memory", "shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *keys = b.random<unsigned>(4 * n, 0, 4294967295.0), *out = b.output<unsigned>(n * STREAM / 4);
        b.tolerance = 0.0;
        return {{"flawed", launch(streams, n / 128, 128, 0, (uint4 *)keys, out, n)}, {"shared", launch(streams_shared, n / 64, 64, 0, (uint4 *)keys, out, n)},
            {"banks", launch(streams_banks, n / 64, 64, 0, (uint4 *)keys, out, n)}};
    });

// --- inverses modulo 2^31 - 1 ---

constexpr unsigned PRIME = 2147483647u;

__device__ __forceinline__ unsigned times(unsigned a, unsigned b) {
    unsigned long long product = static_cast<unsigned long long>(a) * b;
    unsigned sum = static_cast<unsigned>(product & PRIME) + static_cast<unsigned>(product >> 31);
    return sum >= PRIME ? sum - PRIME : sum;
}
__device__ __forceinline__ unsigned inverse_by_power(unsigned a) {
    unsigned result = a, power = a;  // a to the power of 2^31 - 3: all bits but the second
#pragma unroll 2
    for (int bit = 1; bit < 31; ++bit) {
        power = times(power, power);
        if (bit != 1) result = times(result, power);
    }
    return result;
}
__global__ void inverses(const unsigned *values, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long t = 0, next_t = 1, r = PRIME, next_r = values[i];
    while (next_r) {
        long long q = r / next_r, old = t;
        t = next_t, next_t = old - q * next_t;
        old = r, r = next_r, next_r = old - q * next_r;
    }
    out[i] = static_cast<unsigned>(t < 0 ? t + PRIME : t);
}
__global__ void inverses_power(const unsigned *__restrict__ values, unsigned *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = inverse_by_power(values[i]);
}
// One inverse for the product of eight, from which each of them follows.
__global__ void inverses_together(const unsigned *__restrict__ values, unsigned *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, stride = n / 8;
    if (i >= stride) return;
    unsigned value[8], before[8], product = 1;
#pragma unroll
    for (int k = 0; k < 8; ++k) value[k] = values[k * stride + i], before[k] = product, product = times(product, value[k]);
    unsigned inverse = inverse_by_power(product);
#pragma unroll
    for (int k = 7; k >= 0; --k) out[k * stride + i] = times(inverse, before[k]), inverse = times(inverse, value[k]);
}

Study modular("modular_inverse_by_euclid", "cryptography", 1 << 23, "inverses of 8388608 numbers modulo 2147483647",
    "Euclid's quotients in 64 bits, other numbers of steps in each lane",
    {{"power", "a power by 29 squares and products, the same for all", {"integer_arithmetic", "branch_divergence"}},
        {"together", "one power for the product of eight numbers", {"integer_arithmetic", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *values = b.random<unsigned>(n, 1, 2147483646.0), *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(inverses, n / 256, 256, 0, values, out, n)}, {"power", launch(inverses_power, n / 256, 256, 0, values, out, n)},
            {"together", launch(inverses_together, n / 8 / 256, 256, 0, values, out, n)}};
    });

// --- how genotypes go together: sums of products of 0, 1 and 2, in two bits each ---

constexpr int WORDS = 256;  // of 16 people

__global__ void linkage(const unsigned *codes, int *sums, int markers) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int w = 0; w < WORDS; ++w) {
        unsigned a = codes[w * markers + i], c = codes[w * markers + j];
        for (int k = 0; k < 32; k += 2) sum += (a >> k & 3) * (c >> k & 3);
    }
    sums[i * markers + j] = sum;
}
__device__ __forceinline__ int together(unsigned a, unsigned c) {
    const unsigned ones = 0x55555555u;
    unsigned a0 = a & ones, a1 = a >> 1 & ones, c0 = c & ones, c1 = c >> 1 & ones;
    // Both products of unlike bits fit one word: one in its even bits, one in its odd ones.
    return __popc(a0 & c0) + 2 * __popc((a0 & c1) | (a1 & c0) << 1) + 4 * __popc(a1 & c1);
}
__global__ void linkage_counted(const unsigned *__restrict__ codes, int *__restrict__ sums, int markers) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
#pragma unroll 4
    for (int w = 0; w < WORDS; ++w) sum += together(codes[w * markers + i], codes[w * markers + j]);
    sums[i * markers + j] = sum;
}
// The same, the codes as bytes for the product of four bytes with four bytes.
__global__ void linkage_bytes(const unsigned *__restrict__ codes, int *__restrict__ sums, int markers) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
#pragma unroll 2
    for (int w = 0; w < WORDS; ++w) {
        unsigned a = codes[w * markers + i], c = codes[w * markers + j];
#pragma unroll
        for (int k = 0; k < 8; k += 2) sum = __dp4a(static_cast<int>(a >> k & 0x03030303u), static_cast<int>(c >> k & 0x03030303u), sum);
    }
    sums[i * markers + j] = sum;
}

Study genotypes("linkage_codes_unpacked_each_pair", "bioinformatics", 1024, "sums of products of the genotypes of 4096 people for all pairs of 1024 markers",
    "sixteen codes of two bits are taken out of each word and multiplied one by one, for every pair",
    {{"counted", "bits counted: three counts a word", {"integer_arithmetic"}}, {"bytes", "products of four bytes at once", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> codes(n * WORDS);
        for (size_t i = 0; i < codes.size(); ++i) {
            unsigned h = hash(i), ones = h & 0x55555555u;
            codes[i] = ones | (hash(h) & 0x55555555u & ~ones) << 1;
        }
        unsigned *packed = b.copy(codes);
        int *sums = b.output<int>(n * n);
        dim3 grid(n / 32, n / 8), block(32, 8);
        b.tolerance = 0.0;
        return {{"flawed", launch(linkage, grid, block, 0, packed, sums, n)}, {"counted", launch(linkage_counted, grid, block, 0, packed, sums, n)},
            {"bytes", launch(linkage_bytes, grid, block, 0, packed, sums, n)}};
    });

// --- Heston's model: paths of a price and its variance ---

constexpr int DAYS = 64;

__device__ __forceinline__ float2 uniform_pair(unsigned path, unsigned pair) {
    unsigned a = hash(path * 2654435761u ^ pair), c = hash(a ^ 0x9e3779b9u);
    return {((a >> 8) + 1) * 0x1p-24f, (c >> 8) * 0x1p-24f};
}
// The normal numbers of a path by their index: of each pair by Box and Muller, one is kept.
__device__ __noinline__ float normal_number(unsigned path, unsigned index) {
    float2 u = uniform_pair(path, index / 2);
    float radius = sqrtf(-2.f * logf(u.x)), angle = 6.2831853f * u.y;
    return index % 2 ? radius * sinf(angle) : radius * cosf(angle);
}
template <typename Normals>
__device__ __forceinline__ void heston(float *payoffs, int n, float strike, Normals normals) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    float price = 0.f, variance = 0.04f;
    for (int d = 0; d < DAYS; ++d) {
        float2 z = normals(p, d);
        float positive = fmaxf(variance, 0.f), root = sqrtf(positive * (1.f / 256.f));
        price += -0.5f * positive * (1.f / 256.f) + root * z.x;
        variance += 1.5f * (0.04f - positive) * (1.f / 256.f) + 0.3f * root * (-0.7f * z.x + 0.71414284f * z.y);
    }
    payoffs[p] = fmaxf(__expf(price) * 100.f - strike, 0.f);
}
__global__ void heston_each(float *payoffs, int n, float strike) {
    heston(payoffs, n, strike, [](unsigned p, unsigned d) {
        float first = normal_number(p, 2 * d), second = normal_number(p, 2 * d + 1);
        return float2{first, second};
    });
}
__global__ void heston_pairs(float *payoffs, int n, float strike) {
    heston(payoffs, n, strike, [](unsigned p, unsigned d) {
        float2 u = uniform_pair(p, d), z;
        float radius = sqrtf(-2.f * logf(u.x));
        sincosf(6.2831853f * u.y, &z.y, &z.x);
        return float2{radius * z.x, radius * z.y};
    });
}
__global__ void heston_fast(float *payoffs, int n, float strike) {
    heston(payoffs, n, strike, [](unsigned p, unsigned d) {
        float2 u = uniform_pair(p, d), z;
        float radius = sqrtf(fmaxf(-2.f * __logf(u.x), 0.f));
        __sincosf(6.2831853f * (u.y - 0.5f), &z.y, &z.x);
        return float2{-radius * z.x, -radius * z.y};
    });
}

Study stochastic_variance("heston_half_of_each_pair_thrown_away", "finance", 1 << 20, "1048576 paths of 64 days in Heston's model",
    "a function makes a pair of normal numbers and keeps one: the other is made again by the next call",
    {{"pairs", "both numbers of a pair are used", {"expensive_math"}}, {"fast", "both, by fast functions", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *payoffs = b.output<float>(n), strike = 95.f;
        b.tolerance = 1e-2;
        return {{"flawed", launch(heston_each, n / 256, 256, 0, payoffs, n, strike)}, {"pairs", launch(heston_pairs, n / 256, 256, 0, payoffs, n, strike)},
            {"fast", launch(heston_fast, n / 256, 256, 0, payoffs, n, strike)}};
    });

// --- ranks in linked lists by pointer jumping: one round ---

__global__ void jump(const int *next, const int *rank, int *next_out, int *rank_out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int follower = next[i];
    rank_out[i] = rank[i] + rank[follower];
    next_out[i] = next[follower];
}
__global__ void jump_pairs(const int2 *__restrict__ nodes, int2 *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int2 own = nodes[i], other = nodes[own.x];
    out[i] = {other.x, own.y + other.y};
}
__global__ void jump_four(const int4 *__restrict__ next, const int4 *__restrict__ rank, int4 *__restrict__ next_out, int4 *__restrict__ rank_out, int fours) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= fours) return;
    int4 n = next[i], r = rank[i];
    const int *one_rank = reinterpret_cast<const int *>(rank), *one_next = reinterpret_cast<const int *>(next);
    rank_out[i] = {r.x + one_rank[n.x], r.y + one_rank[n.y], r.z + one_rank[n.z], r.w + one_rank[n.w]};
    next_out[i] = {one_next[n.x], one_next[n.y], one_next[n.z], one_next[n.w]};
}
__global__ void join(const int *first, const int *second, int2 *both, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) both[i] = {first[i], second[i]};
}
__global__ void split(const int2 *both, int *first, int *second, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) first[i] = both[i].x, second[i] = both[i].y;
}

Study lists("list_ranks_in_two_arrays", "graphs", 1 << 24, "a round of pointer jumping over 16777216 nodes",
    "a node's follower and its rank lie in two arrays: two sectors anywhere for eight bytes",
    {{"pairs", "both in one word of eight bytes", {"uncoalesced_access"}}, {"four", "four nodes a thread", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        int *next = b.random<int>(n, 0, n), *rank = b.random<int>(n, 0, 1000), *next_out = b.output<int>(n), *rank_out = b.output<int>(n);
        int2 *nodes = (int2 *)b.allocate<int>(2 * n), *nodes_out = (int2 *)b.allocate<int>(2 * n);
        launch(join, n / 256, 256, 0, next, rank, nodes, n)();
        b.tolerance = 0.0;
        return {{"flawed", launch(jump, n / 256, 256, 0, next, rank, next_out, rank_out, n)},
            {"pairs", launch(jump_pairs, n / 256, 256, 0, nodes, nodes_out, n), {}, 1, launch(split, n / 256, 256, 0, nodes_out, next_out, rank_out, n)},
            {"four", launch(jump_four, n / 1024, 256, 0, (int4 *)next, (int4 *)rank, (int4 *)next_out, (int4 *)rank_out, n / 4)}};
    });

// --- a detector's signal against templates, weighted by the noise of each frequency ---

constexpr int FREQUENCIES = 1 << 18;

__device__ __forceinline__ float weighted(float2 h, float2 d, float noise) { return __fdividef(h.x * d.x + h.y * d.y, noise); }
__global__ void __launch_bounds__(256) filters(const float2 *templates, const float2 *data, const float *noise, float *out) {
    __shared__ float partial[8];
    float sum = 0.f;
    for (int f = threadIdx.x; f < FREQUENCIES; f += 256) sum += weighted(templates[static_cast<size_t>(blockIdx.x) * FREQUENCIES + f], data[f], noise[f]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += partial[w];
        out[blockIdx.x] = sum;
    }
}
__global__ void __launch_bounds__(256) filters_parts(const float2 *__restrict__ templates, const float2 *__restrict__ data, const float *__restrict__ noise, float *__restrict__ out) {
    __shared__ float partial[8];
    float sum = 0.f;
    int each = FREQUENCIES / gridDim.y;
#pragma unroll 4
    for (int f = blockIdx.y * each + threadIdx.x; f < (blockIdx.y + 1) * each; f += 256)
        sum += weighted(templates[static_cast<size_t>(blockIdx.x) * FREQUENCIES + f], data[f], noise[f]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += partial[w];
        atomicAdd(&out[blockIdx.x], sum);
    }
}
__global__ void __launch_bounds__(1024) filters_wide(const float4 *__restrict__ templates, const float4 *__restrict__ data, const float2 *__restrict__ noise, float *__restrict__ out) {
    __shared__ float partial[32];
    float sum = 0.f;
#pragma unroll 4
    for (int f = threadIdx.x; f < FREQUENCIES / 2; f += 1024) {
        float4 h = templates[static_cast<size_t>(blockIdx.x) * (FREQUENCIES / 2) + f], d = data[f];
        float2 s = noise[f];
        sum += weighted({h.x, h.y}, {d.x, d.y}, s.x) + weighted({h.z, h.w}, {d.z, d.w}, s.y);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(partial[threadIdx.x]);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

Study matched_filters("matched_filter_block_per_template", "physics", 150, "150 templates of 262144 complex frequencies against one signal",
    "a block of 256 threads a template: 150 blocks, eight warps on most multiprocessors",
    {{"parts", "each template in 16 parts, added by atomics", {"small_grid", "memory_latency"}},
        {"wide", "blocks of 1024 threads, 16-byte loads", {"memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *templates = b.random<float>(2 * n * FREQUENCIES), *data = b.random<float>(2 * FREQUENCIES), *noise = b.random<float>(FREQUENCIES, 0.5, 2), *out = b.output<float>(n, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(filters, n, 256, 0, (float2 *)templates, (float2 *)data, noise, out)},
            {"parts", launch(filters_parts, dim3(n, 16), 256, 0, (float2 *)templates, (float2 *)data, noise, out)},
            {"wide", launch(filters_wide, n, 1024, 0, (float4 *)templates, (float4 *)data, (float2 *)noise, out)}};
    });

// --- Speck's cipher, two blocks of 64 bits a thread; nothing is wrong with it ---

struct RoundKeys {
    unsigned key[27];
};
__global__ void __launch_bounds__(256) speck(const uint4 *__restrict__ in, uint4 *__restrict__ out, RoundKeys keys) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint4 v = in[i];
#pragma unroll
    for (int r = 0; r < 27; ++r) {
        v.x = (__funnelshift_r(v.x, v.x, 8) + v.y) ^ keys.key[r], v.z = (__funnelshift_r(v.z, v.z, 8) + v.w) ^ keys.key[r];
        v.y = __funnelshift_l(v.y, v.y, 3) ^ v.x, v.w = __funnelshift_l(v.w, v.w, 3) ^ v.z;
    }
    out[i] = v;
}

Study sound_speck("sound_speck_blocks", "cryptography", 1 << 23, "16777216 blocks of 64 bits by Speck's 27 rounds", "", {},
    [](Buffers &b, long n) -> Sides {
        unsigned *in = b.random<unsigned>(4 * n, 0, 4294967295.0), *out = b.output<unsigned>(4 * n);
        RoundKeys keys;
        for (int r = 0; r < 27; ++r) keys.key[r] = hash(r + 1);
        return {{"sound", launch(speck, n / 256, 256, 0, (uint4 *)in, (uint4 *)out, keys)}};
    });

}  // namespace
