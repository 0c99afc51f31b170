// Minimizers of a genome: for each window of ten k-mers of 15 letters the place and strand of the one with the smallest
// hash, of a k-mer and its reverse complement the smaller, the first of equals.
#include "../tried/tried.cuh"

typedef unsigned long long Key;
constexpr int LETTERS = 16 << 20, K = 15, W = 10, WINDOWS = LETTERS - (K + W - 1) + 1;
constexpr Key MASK = (1ull << 2 * K) - 1;

__device__ __forceinline__ Key hash_of(Key key) {
    key = (~key + (key << 21)) & MASK;
    key ^= key >> 24;
    key = (key + (key << 3) + (key << 8)) & MASK;
    key ^= key >> 14;
    key = (key + (key << 2) + (key << 4)) & MASK;
    key ^= key >> 28;
    return (key + (key << 31)) & MASK;
}

// The letters' codes are bits 1 and 2 of them: A 0, C 1, T 2, G 3; a complement is 2 further.
__global__ void as_it_is(const char *genome, int windows, unsigned *minimizers) {
    const int window = blockIdx.x * blockDim.x + threadIdx.x;
    if (window >= windows) return;
    Key forward = 0, backward = 0, least = ~0ull;
    unsigned found = 0;
    for (int i = 0; i < K + W - 1; ++i) {
        const Key code = genome[window + i] >> 1 & 3;
        forward = (forward << 2 | code) & MASK;
        backward = backward >> 2 | (code ^ 2) << 2 * (K - 1);
        if (i < K - 1) continue;
        const Key hash = hash_of(forward < backward ? forward : backward);
        if (hash < least) {
            least = hash;
            found = (window + i - (K - 1)) << 1 | (backward < forward);
        }
    }
    minimizers[window] = found;
}

// First step, redundant loads: four neighbouring results a thread. The last thread's four begin earlier, where there
// are not four more.
__global__ void four_in_registers(const char *genome, int windows, unsigned *minimizers) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= (windows + 3) / 4) return;
    const int window = min(4 * thread, windows - 4);
    Key forward = 0, backward = 0, least[4];
    unsigned found[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) least[j] = ~0ull, found[j] = 0;
#pragma unroll
    for (int i = 0; i < K + W - 1 + 3; ++i) {
        const Key code = genome[window + i] >> 1 & 3;
        forward = (forward << 2 | code) & MASK;
        backward = backward >> 2 | (code ^ 2) << 2 * (K - 1);
        if (i < K - 1) continue;
        const Key hash = hash_of(forward < backward ? forward : backward);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (i - (K - 1) >= j && i - (K - 1) < j + W && hash < least[j]) {
                least[j] = hash;
                found[j] = (window + i - (K - 1)) << 1 | (backward < forward);
            }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) minimizers[window + j] = found[j];
}

// A thread hashes eight k-mers, cut out of packed letters, once, and passes them on; minima of 2, 4, 8 and 10 follow.
constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH, PACKED = TILE / 16 + 2;
// Four letters as eight bits, the first uppermost.
__device__ __forceinline__ unsigned four_packed(unsigned letters) { return (letters >> 1 & 0x03030303u) * 0x40100401u >> 24; }
// Of 30 bits the hash above needs no more than 32; bit 0 is the strand.
__device__ __forceinline__ unsigned hash_and_strand(unsigned first, unsigned second, int shift) {
    const unsigned forward = __funnelshift_l(second, first, 2 * shift) >> 2, turned = __brev(forward) >> 2;
    const unsigned backward = ((turned & 0x15555555u) << 1 | (turned >> 1 & 0x15555555u)) ^ 0x2aaaaaaau;
    constexpr unsigned LOW = unsigned(MASK);
    unsigned key = min(forward, backward);
    key = (~key + (key << 21)) & LOW;
    key ^= key >> 24;
    key = (key * 265u) & LOW;
    key ^= key >> 14;
    key = (key * 21u) & LOW;
    key ^= key >> 28;
    return key << 1 | (backward < forward);
}
__device__ __forceinline__ int padded(int i) { return i + i / EACH; }

__global__ void __launch_bounds__(THREADS) expert(const char *genome, int letters, int windows, unsigned *minimizers) {
    __shared__ unsigned packed[PACKED], hashes[TILE + 2 * EACH + TILE / EACH + 2];
    const int thread = threadIdx.x, base = blockIdx.x * TILE;
    if (thread < PACKED) {
        uint4 own{};
        if (base + thread * 16 < letters) own = __ldcs(reinterpret_cast<const uint4 *>(genome + base) + thread);
        packed[thread] = four_packed(own.x) << 24 | four_packed(own.y) << 16 | four_packed(own.z) << 8 | four_packed(own.w);
    }
    __syncthreads();
    unsigned value[EACH + W - 1];
    const unsigned first = packed[thread / 2], second = packed[thread / 2 + 1];
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        value[j] = hash_and_strand(first, second, thread % 2 * EACH + j);
        hashes[padded(thread * EACH + j)] = value[j];
    }
    if (thread < W - 1) {
        const int at = TILE + thread;
        hashes[padded(at)] = hash_and_strand(packed[at / 16], packed[at / 16 + 1], at % 16);
    }
    __syncthreads();
    unsigned hash[EACH + W - 1], found[EACH + W - 1];
#pragma unroll
    for (int j = 0; j < EACH + W - 1; ++j) {
        if (j >= EACH) value[j] = hashes[padded(thread * EACH + j)];
        hash[j] = value[j] >> 1, found[j] = unsigned(base + thread * EACH + j) << 1 | (value[j] & 1);
    }
    auto lesser = [&](int j, int further) {
        const bool less = hash[further] < hash[j];
        hash[j] = less ? hash[further] : hash[j], found[j] = less ? found[further] : found[j];
    };
#pragma unroll
    for (int span = 1; span < 8; span *= 2)
#pragma unroll
        for (int j = 0; j + span < EACH + W - 1; ++j) lesser(j, j + span);
#pragma unroll
    for (int j = 0; j < EACH; ++j) lesser(j, j + W - 8);
    const int window = base + thread * EACH;
    if (window + EACH <= windows) {
        auto to = reinterpret_cast<uint4 *>(minimizers + window);
        __stcs(to, make_uint4(found[0], found[1], found[2], found[3]));
        __stcs(to + 1, make_uint4(found[4], found[5], found[6], found[7]));
    } else {
#pragma unroll
        for (int j = 0; j < EACH; ++j)
            if (window + j < windows) minimizers[window + j] = found[j];
    }
}

int main(int, char **argv) {
    std::vector<char> read(LETTERS);
    for (unsigned i = 0; i < LETTERS; ++i) read[i] = "AACCGTGTAT"[hashed(i) % 10];  // A and T are more frequent
    for (unsigned copy = 0; copy < 2000; ++copy)                                     // and pieces occur again
        std::copy_n(read.begin() + hashed(2 * copy) % (LETTERS - 600), 300, read.begin() + hashed(2 * copy + 1) % (LETTERS - 600));
    const char *genome = copied(read);
    unsigned *minimizers = get<unsigned>(WINDOWS);
    judge({{"as_it_is", [=] { as_it_is<<<(WINDOWS + 255) / 256, 256>>>(genome, WINDOWS, minimizers); }},
           {"four_in_registers", [=] { four_in_registers<<<((WINDOWS + 3) / 4 + 255) / 256, 256>>>(genome, WINDOWS, minimizers); }},
           {"expert", [=] { expert<<<(WINDOWS + TILE - 1) / TILE, THREADS>>>(genome, LETTERS, WINDOWS, minimizers); }}},
          {{minimizers, WINDOWS}}, [] {}, argv[1]);
}
