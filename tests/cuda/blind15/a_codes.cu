// Compression, permutations over a prime field, error-correcting codes. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <numeric>

#include "../pairs/pair.cuh"

namespace {

// --- Burrows-Wheeler transform undone: the order of letters is a chain, which an index lets one enter every so many letters ---

struct Chain {
    const unsigned *next;  // where the letter after this one is
    const unsigned char *letters;
    const unsigned *packed;  // both: the letter in the lowest eight bits
    const unsigned *starts;
};

__device__ __forceinline__ void follow(const Chain &c, unsigned char *out, int segment, int length) {
    unsigned at = c.starts[segment];
    unsigned char *own = out + static_cast<size_t>(segment) * length;
    for (int i = 0; i < length; i++) {
        own[i] = c.letters[at];
        at = c.next[at];
    }
}
__global__ void __launch_bounds__(128) undo_transform(Chain c, unsigned char *__restrict__ out, int segments, int length) {
    const int segment = blockIdx.x * 128 + threadIdx.x;
    if (segment < segments) follow(c, out, segment, length);
}
// The letter and where to go next in one word; four letters a store.
__global__ void __launch_bounds__(128) undo_transform_packed(Chain c, unsigned *__restrict__ out, int segments, int length) {
    const int segment = blockIdx.x * 128 + threadIdx.x;
    if (segment >= segments) return;
    unsigned at = c.starts[segment];
    unsigned *own = out + static_cast<size_t>(segment) * (length / 4);
    for (int i = 0; i < length / 4; i++) {
        unsigned four = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned both = c.packed[at];
            four |= (both & 255) << 8 * k;
            at = both >> 8;
        }
        own[i] = four;
    }
}

Study inverse_transform("inverse_transform_entered_every_512_letters", "compression", 1 << 24, "inverse of the Burrows-Wheeler transform for 16777216 letters, by a chain that can be entered at many places",
    "each of 32768 threads follows 512 links of the chain, one random load after the other, and looks the letter up elsewhere",
    {{"denser", "an entry every 64 letters: eight times as many threads", {"memory_latency"}}, {"packed", "letter and link in one word, four letters a store", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> order(n), next(n), packed(n), far, near;
        std::vector<unsigned char> letters(n);
        std::iota(order.begin(), order.end(), 0u);
        for (long i = n - 1; i > 0; i--) std::swap(order[i], order[hash(static_cast<unsigned>(i)) % (i + 1)]);
        for (long i = 0; i < n; i++) {
            const unsigned at = order[i], to = order[i + 1 == n ? 0 : i + 1];
            letters[at] = static_cast<unsigned char>(97 + hash(static_cast<unsigned>(i) + 5) % 26);
            next[at] = to, packed[at] = to << 8 | letters[at];
            if (i % 512 == 0) far.push_back(at);
            if (i % 64 == 0) near.push_back(at);
        }
        Chain sparse{b.copy(next), b.copy(letters), b.copy(packed), b.copy(far)}, dense = sparse;
        dense.starts = b.copy(near);
        unsigned char *out = b.output<unsigned char>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(undo_transform, blocks(n / 512, 128), 128, 0, sparse, out, n / 512, 512)}, {"denser", launch(undo_transform, blocks(n / 64, 128), 128, 0, dense, out, n / 64, 64)},
            {"packed", launch(undo_transform_packed, blocks(n / 512, 128), 128, 0, sparse, reinterpret_cast<unsigned *>(out), n / 512, 512)}};
    });

// --- a permutation over a field of 31 bits, as hashes inside of proofs use it ---

constexpr unsigned PRIME = 2013265921;  // 15 * 2^27 + 1
constexpr int ELEMENTS = 12, FULL_ROUNDS = 8, PARTIAL_ROUNDS = 14;

struct Permutation {
    unsigned constants[(FULL_ROUNDS + PARTIAL_ROUNDS) * ELEMENTS], matrix[ELEMENTS * ELEMENTS];
};

// Remainders as the compiler makes them.
struct Plain {
    static __device__ __forceinline__ unsigned enter(unsigned a) { return a; }
    static __device__ __forceinline__ unsigned leave(unsigned a) { return a; }
    static __device__ __forceinline__ unsigned product(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b % PRIME); }
    static __device__ __forceinline__ unsigned dot(const unsigned *row, const unsigned *x) {
        unsigned sum = 0;
#pragma unroll
        for (int j = 0; j < ELEMENTS; j++) sum = (sum + product(row[j], x[j])) % PRIME;
        return sum;
    }
};
// Four products, of 62 bits each, are summed before they are reduced.
struct Lazy : Plain {
    static __device__ __forceinline__ unsigned dot(const unsigned *row, const unsigned *x) {
        unsigned long long sum = 0;
#pragma unroll
        for (int j = 0; j < ELEMENTS; j += 4) {
            unsigned long long four = 0;
#pragma unroll
            for (int k = j; k < j + 4; k++) four += static_cast<unsigned long long>(row[k]) * x[k];
            sum += four % PRIME;
        }
        return static_cast<unsigned>(sum % PRIME);
    }
};
// Montgomery's form: a is held as a * 2^32.
struct Montgomery {
    static __device__ __forceinline__ unsigned reduced(unsigned long long x) {
        const unsigned q = static_cast<unsigned>(x) * 0x88000001u, high = static_cast<unsigned>(x >> 32), less = __umulhi(q, PRIME);
        return high >= less ? high - less : high - less + PRIME;
    }
    static __device__ __forceinline__ unsigned enter(unsigned a) { return product(a, 1172168163u); }  // 2^64 mod PRIME
    static __device__ __forceinline__ unsigned leave(unsigned a) { return reduced(a); }
    static __device__ __forceinline__ unsigned product(unsigned a, unsigned b) { return reduced(static_cast<unsigned long long>(a) * b); }
    static __device__ __forceinline__ unsigned dot(const unsigned *row, const unsigned *x) {
        unsigned sum = 0;
#pragma unroll
        for (int j = 0; j < ELEMENTS; j++) {
            sum += product(row[j], x[j]);
            sum = min(sum, sum - PRIME);
        }
        return sum;
    }
};

template <typename Field>
__global__ void __launch_bounds__(128) permute(const unsigned *__restrict__ in, unsigned *__restrict__ out, const __grid_constant__ Permutation p, int count) {
    const int own = blockIdx.x * 128 + threadIdx.x;
    if (own >= count) return;
    unsigned state[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) state[i] = Field::enter(in[static_cast<size_t>(i) * count + own]);
    auto seventh = [](unsigned a) {
        const unsigned square = Field::product(a, a), cube = Field::product(square, a);
        return Field::product(Field::product(square, square), cube);
    };
#pragma unroll 1
    for (int round = 0; round < FULL_ROUNDS + PARTIAL_ROUNDS; round++) {
        const bool full = round < FULL_ROUNDS / 2 || round >= FULL_ROUNDS / 2 + PARTIAL_ROUNDS;
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) {
            const unsigned sum = state[i] + p.constants[round * ELEMENTS + i];
            state[i] = min(sum, sum - PRIME);
        }
        state[0] = seventh(state[0]);
        if (full) {
#pragma unroll
            for (int i = 1; i < ELEMENTS; i++) state[i] = seventh(state[i]);
        }
        unsigned mixed[ELEMENTS];
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) mixed[i] = Field::dot(p.matrix + i * ELEMENTS, state);
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) state[i] = mixed[i];
    }
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) out[static_cast<size_t>(i) * count + own] = Field::leave(state[i]);
}

Study field_permutation("field_permutation_reduced_after_each_product", "crypto", 1 << 17, "131072 permutations of 12 elements of a field of 31 bits, 22 rounds with a matrix each",
    "every product of the matrix is brought below the prime by a remainder, and so is every sum",
    {{"lazy", "four products are summed before they are reduced", {"integer_arithmetic"}}, {"montgomery", "products in Montgomery's form", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *in = b.random<unsigned>(n * ELEMENTS, 0, PRIME);
        Permutation p, held;  // held: in Montgomery's form
        const auto form = [](unsigned a) { return static_cast<unsigned>((static_cast<unsigned long long>(a) << 32) % PRIME); };
        for (int i = 0; i < (FULL_ROUNDS + PARTIAL_ROUNDS) * ELEMENTS; i++) p.constants[i] = hash(i) % PRIME, held.constants[i] = form(p.constants[i]);
        for (int i = 0; i < ELEMENTS * ELEMENTS; i++) p.matrix[i] = hash(i + 7777) % PRIME, held.matrix[i] = form(p.matrix[i]);
        unsigned *out = b.output<unsigned>(n * ELEMENTS);
        b.tolerance = 0.0;
        return {{"flawed", launch(permute<Plain>, blocks(n, 128), 128, 0, in, out, p, n)}, {"lazy", launch(permute<Lazy>, blocks(n, 128), 128, 0, in, out, p, n)}, {"montgomery", launch(permute<Montgomery>, blocks(n, 128), 128, 0, in, out, held, n)}};
    });

// --- Reed-Solomon: the 32 syndromes of words of 255 bytes, a lane each ---

constexpr int SYNDROMES = 32, WORD_BYTES = 256, POLYNOMIAL = 0x11d;  // the first of 256 bytes is 0 and not part of the word

__device__ __forceinline__ unsigned doubled(unsigned a) { return a << 1 ^ (a & 128 ? POLYNOMIAL : 0); }
__device__ __forceinline__ unsigned power_of_two(int exponent) {
    unsigned value = 1;
    for (int i = 0; i < exponent; i++) value = doubled(value);
    return value;
}

struct Words {
    const unsigned *bytes;  // WORD_BYTES of a word, four in one
    int count;
};

__global__ void __launch_bounds__(256) syndromes(Words w, unsigned char *__restrict__ out) {
    __shared__ unsigned char logarithm[256], power[512];
    if (threadIdx.x < 255) {
        const unsigned value = power_of_two(threadIdx.x);
        power[threadIdx.x] = power[threadIdx.x + 255] = static_cast<unsigned char>(value);
        logarithm[value] = static_cast<unsigned char>(threadIdx.x);
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int word = (blockIdx.x * 256 + threadIdx.x) / 32; word < w.count; word += gridDim.x * 8) {
        unsigned sum = 0;
        for (int i = 0; i < WORD_BYTES / 4; i++) {
            const unsigned four = w.bytes[static_cast<size_t>(word) * (WORD_BYTES / 4) + i];
#pragma unroll
            for (int k = 0; k < 4; k++) sum = (sum ? power[logarithm[sum] + lane] : 0) ^ (four >> 8 * k & 255);
        }
        out[static_cast<size_t>(word) * SYNDROMES + lane] = static_cast<unsigned char>(sum);
    }
}
// A table of products with each lane's power, its column in the lane's own bank.
__global__ void __launch_bounds__(256) syndromes_products(Words w, unsigned char *__restrict__ out) {
    __shared__ unsigned products[256][SYNDROMES];
    const int lane = threadIdx.x % 32;
    const unsigned factor = power_of_two(lane);
    for (int value = threadIdx.x / 32; value < 256; value += 8) {
        unsigned product = 0;
        for (int bit = 7; bit >= 0; bit--) product = doubled(product) ^ (value >> bit & 1 ? factor : 0);
        products[value][lane] = product;
    }
    __syncthreads();
    for (int word = (blockIdx.x * 256 + threadIdx.x) / 32; word < w.count; word += gridDim.x * 8) {
        unsigned sum = 0;
        for (int i = 0; i < WORD_BYTES / 4; i++) {
            const unsigned four = w.bytes[static_cast<size_t>(word) * (WORD_BYTES / 4) + i];
#pragma unroll
            for (int k = 0; k < 4; k++) sum = products[sum][lane] ^ (four >> 8 * k & 255);
        }
        out[static_cast<size_t>(word) * SYNDROMES + lane] = static_cast<unsigned char>(sum);
    }
}
// Four words at once in the bytes of a register, multiplied bit by bit without a table.
__global__ void __launch_bounds__(256) syndromes_packed(Words w, unsigned char *__restrict__ out) {
    const int lane = threadIdx.x % 32;
    unsigned factor[8];
    factor[0] = power_of_two(lane);
#pragma unroll
    for (int bit = 1; bit < 8; bit++) factor[bit] = doubled(factor[bit - 1]);
    for (int four = (blockIdx.x * 256 + threadIdx.x) / 32; four < w.count / 4; four += gridDim.x * 8) {
        unsigned sum = 0;
        for (int i = 0; i < WORD_BYTES / 4; i++) {
            unsigned in[4];
#pragma unroll
            for (int k = 0; k < 4; k++) in[k] = w.bytes[(static_cast<size_t>(four) * 4 + k) * (WORD_BYTES / 4) + i];
            const unsigned a = __byte_perm(in[0], in[1], 0x5140), b = __byte_perm(in[2], in[3], 0x5140), c = __byte_perm(in[0], in[1], 0x7362), d = __byte_perm(in[2], in[3], 0x7362);
            const unsigned turned[4] = {__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632), __byte_perm(c, d, 0x5410), __byte_perm(c, d, 0x7632)};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                unsigned product = turned[k];
#pragma unroll
                for (int bit = 0; bit < 8; bit++) product ^= (sum >> bit & 0x01010101u) * factor[bit];
                sum = product;
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++) out[(static_cast<size_t>(four) * 4 + k) * SYNDROMES + lane] = static_cast<unsigned char>(sum >> 8 * k);
    }
}

Study reed_solomon("syndromes_by_logarithms_in_shared", "communications", 1 << 17, "32 syndromes of 131072 Reed-Solomon words of 255 bytes, a lane each",
    "each step looks up a logarithm and a power, bytes at random in shared memory, one after the other",
    {{"products", "one table of products, the column of a lane in its bank", {"shared_bank_conflicts"}}, {"packed", "four words at once in a register, without a table", {"shared_bank_conflicts", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> bytes(n * WORD_BYTES / 4);
        for (size_t i = 0; i < bytes.size(); i++) bytes[i] = hash(static_cast<unsigned>(i)) & (i % (WORD_BYTES / 4) ? ~0u : ~255u);
        const Words w{b.copy(bytes), static_cast<int>(n)};
        unsigned char *out = b.output<unsigned char>(n * SYNDROMES);
        b.tolerance = 0.0;
        const int grid = multiprocessors() * 7;
        return {{"flawed", launch(syndromes, grid, 256, 0, w, out)}, {"products", launch(syndromes_products, grid, 256, 0, w, out)}, {"packed", launch(syndromes_packed, grid, 256, 0, w, out)}};
    });

}  // namespace
