// Tests of random bits, codes and arrays of microphones.
#include "../pairs/pair.cuh"

namespace {

// --- ranks of binary matrices, one of the tests that generators of random bits must pass ---

constexpr int ROWS = 128, ROW_WARPS = ROWS / 32;

__device__ __forceinline__ bool bit(const ulonglong2 &row, int column) { return (column < 64 ? row.x : row.y) >> (column & 63) & 1; }
__device__ __forceinline__ void add(ulonglong2 &row, const ulonglong2 &pivot) { row.x ^= pivot.x, row.y ^= pivot.y; }
// A row a thread. Its rank is how many columns find a pivot among the rows that were none before.
__global__ void __launch_bounds__(ROWS) binary_ranks(const ulonglong2 *__restrict__ rows, int *__restrict__ ranks) {
    __shared__ int first;
    __shared__ ulonglong2 pivot;
    const int row = threadIdx.x;
    ulonglong2 own = rows[blockIdx.x * ROWS + row];
    bool used = false;
    int rank = 0;
    for (int column = 0; column < ROWS; column++) {
        if (row == 0) first = ROWS;
        __syncthreads();
        const bool set = !used && bit(own, column);
        if (set) atomicMin(&first, row);
        __syncthreads();
        const int chosen = first;
        if (chosen == row) pivot = own, used = true;
        __syncthreads();
        if (chosen == ROWS) continue;
        if (set && !used) add(own, pivot);
        rank++;
    }
    if (row == 0) ranks[blockIdx.x] = rank;
}
// Each warp offers its first row; offers of even and odd columns lie apart, so that one barrier a column does.
__global__ void __launch_bounds__(ROWS) binary_ranks_offers(const ulonglong2 *__restrict__ rows, int *__restrict__ ranks) {
    __shared__ unsigned found[2][ROW_WARPS];
    __shared__ ulonglong2 offers[2][ROW_WARPS];
    const int row = threadIdx.x, lane = row % 32, warp = row / 32;
    ulonglong2 own = rows[blockIdx.x * ROWS + row];
    bool used = false;
    int rank = 0;
    for (int column = 0; column < ROWS; column++) {
        const int side = column & 1;
        const bool set = !used && bit(own, column);
        const unsigned who = __ballot_sync(~0u, set);
        const bool leads = who && lane == __ffs(who) - 1;
        if (lane == 0) found[side][warp] = who;
        if (leads) offers[side][warp] = own;
        __syncthreads();
        int from = 0;
        while (from < ROW_WARPS && !found[side][from]) from++;
        if (from == ROW_WARPS) continue;
        if (leads && from == warp) used = true;
        if (set && !used) add(own, offers[side][from]);
        rank++;
    }
    if (row == 0) ranks[blockIdx.x] = rank;
}
// A matrix a warp, four rows a lane.
__global__ void __launch_bounds__(128) binary_ranks_warp(const ulonglong2 *__restrict__ rows, int *__restrict__ ranks, int count) {
    const int lane = threadIdx.x % 32, matrix = blockIdx.x * 4 + threadIdx.x / 32;
    if (matrix >= count) return;
    ulonglong2 own[ROW_WARPS];
#pragma unroll
    for (int k = 0; k < ROW_WARPS; k++) own[k] = rows[matrix * ROWS + 32 * k + lane];
    unsigned used = 0;
    int rank = 0;
    for (int column = 0; column < ROWS; column++) {
        unsigned set = 0;
#pragma unroll
        for (int k = 0; k < ROW_WARPS; k++) set |= static_cast<unsigned>(bit(own[k], column)) << k;
        set &= ~used;
        const unsigned who = __ballot_sync(~0u, set);
        if (!who) continue;
        const ulonglong2 offer = set & 1 ? own[0] : set & 2 ? own[1] : set & 4 ? own[2] : own[3];
        const int from = __ffs(who) - 1;
        const ulonglong2 pivot = {__shfl_sync(~0u, offer.x, from), __shfl_sync(~0u, offer.y, from)};
        if (lane == from) used |= set & (0u - set), set &= set - 1;
#pragma unroll
        for (int k = 0; k < ROW_WARPS; k++)
            if (set >> k & 1) add(own[k], pivot);
        rank++;
    }
    if (lane == 0) ranks[matrix] = rank;
}

Study ranks("binary_ranks_three_barriers_a_column", "statistics", 8192, "ranks of 8192 binary matrices of 128 x 128, a test of random bits",
    "a column finds its pivot between three barriers of the block",
    {{"offers", "a warp offers its first row by a vote, one barrier a column", {"barriers"}}, {"warp", "a matrix a warp, four rows a lane", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 0.0;
        std::vector<ulonglong2> host(n * ROWS);
        for (unsigned k = 0; k < n; k++) {
            ulonglong2 *own = &host[k * ROWS];
            const unsigned rank = 96 + hash(k + 55555555) % 33;
            for (unsigned row = 0; row < ROWS; row++) {
                const unsigned seed = (k * ROWS + row) * 4;
                own[row] = row < rank ? make_ulonglong2(static_cast<unsigned long long>(hash(seed)) << 32 | hash(seed + 1), static_cast<unsigned long long>(hash(seed + 2)) << 32 | hash(seed + 3))
                                      : make_ulonglong2(own[row - rank].x ^ own[row - rank + 1].x, own[row - rank].y ^ own[row - rank + 1].y);
            }
        }
        const ulonglong2 *rows = b.copy(host);
        int *found = b.output<int>(n);
        return {{"flawed", launch(binary_ranks, n, ROWS, 0, rows, found)}, {"offers", launch(binary_ranks_offers, n, ROWS, 0, rows, found)},
            {"warp", launch(binary_ranks_warp, blocks(n, 4), 128, 0, rows, found, n)}};
    });

// --- symbols of four bits replaced by how long ago they were last seen (move to front) ---

constexpr int LETTERS = 16, CODED_WORDS = 32;

struct InArray {
    unsigned char letters[LETTERS];
    __device__ __forceinline__ InArray() {
        for (int k = 0; k < LETTERS; k++) letters[k] = k;
    }
    __device__ __forceinline__ unsigned code(unsigned letter) {
        int place = 0;
        while (letters[place] != letter) place++;
        for (int k = place; k > 0; k--) letters[k] = letters[k - 1];
        letters[0] = letter;
        return place;
    }
};
// Sixteen letters of four bits are one word.
struct InWord {
    unsigned long long letters = 0xfedcba9876543210ull;
    __device__ __forceinline__ unsigned code(unsigned letter) {
        const unsigned long long differ = letters ^ letter * 0x1111111111111111ull, equal = (differ - 0x1111111111111111ull) & ~differ & 0x8888888888888888ull;
        const int shift = (__ffsll(equal) - 1) & ~3;
        const unsigned long long before = (1ull << shift) - 1;
        letters = (letters & ~(before | 15ull << shift)) | (letters & before) << 4 | letter;
        return shift >> 2;
    }
};
// A column of shared memory a thread.
struct InShared {
    unsigned *letters;
    __device__ __forceinline__ InShared() {
        __shared__ unsigned all[LETTERS][128];
        letters = &all[0][threadIdx.x];
        for (int k = 0; k < LETTERS; k++) letters[k * 128] = k;
    }
    __device__ __forceinline__ unsigned code(unsigned letter) {
        unsigned place = 0, moved = letter;
        for (;; place++) {
            const unsigned there = letters[place * 128];
            letters[place * 128] = moved;
            if (there == letter) return place;
            moved = there;
        }
    }
};
// Words of a stream lie as far apart as there are streams.
template <typename List>
__global__ void __launch_bounds__(128) move_to_front(const unsigned *__restrict__ in, unsigned *__restrict__ out, int streams) {
    const int stream = blockIdx.x * 128 + threadIdx.x;
    if (stream >= streams) return;
    List list;
    for (int word = 0; word < CODED_WORDS; word++) {
        const unsigned letters = in[word * streams + stream];
        unsigned codes = 0;
#pragma unroll 1
        for (int shift = 0; shift < 32; shift += 4) codes |= list.code(letters >> shift & 15) << shift;
        out[word * streams + stream] = codes;
    }
}

Study front("move_to_front_list_in_local", "codecs", 65536, "65536 streams of 256 symbols of four bits, each replaced by how many others were seen since",
    "the list of symbols is an array of each thread's, searched and moved at run time",
    {{"word", "sixteen symbols in one word of 64 bits", {"local_memory"}}, {"shared", "a column of shared memory a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 0.0;
        std::vector<unsigned> host(n * CODED_WORDS);
        for (unsigned k = 0; k < host.size(); k++) host[k] = hash(2 * k) & hash(2 * k + 1);
        const unsigned *in = b.copy(host);
        unsigned *out = b.output<unsigned>(n * CODED_WORDS);
        const unsigned grid = blocks(n, 128);
        return {{"flawed", launch(move_to_front<InArray>, grid, 128, 0, in, out, n)}, {"word", launch(move_to_front<InWord>, grid, 128, 0, in, out, n)},
            {"shared", launch(move_to_front<InShared>, grid, 128, 0, in, out, n)}};
    });

// --- how the microphones of an array go together, window by window ---

constexpr int MICROPHONES = 32, SAMPLES = 64;

struct InRows {
    static constexpr int SIZE = MICROPHONES * SAMPLES;
    static __device__ constexpr int at(int microphone, int sample) { return microphone * SAMPLES + sample; }
};
struct Padded {
    static constexpr int PITCH = SAMPLES + 4, SIZE = MICROPHONES * PITCH;
    static __device__ constexpr int at(int microphone, int sample) { return microphone * PITCH + sample; }
};
struct Turned {
    static constexpr int PITCH = MICROPHONES + 1, SIZE = SAMPLES * PITCH;
    static __device__ constexpr int at(int microphone, int sample) { return sample * PITCH + microphone; }
};
// A window a block; a thread has four microphones with that of its lane.
template <typename Place>
__global__ void __launch_bounds__(256) covariances(const float *__restrict__ windows, float *__restrict__ out) {
    __shared__ __align__(16) float tile[Place::SIZE];
    const int lane = threadIdx.x, group = threadIdx.y;
    const float *own = windows + blockIdx.x * MICROPHONES * SAMPLES;
    for (int k = group * 32 + lane; k < MICROPHONES * SAMPLES; k += 256) tile[Place::at(k / SAMPLES, k % SAMPLES)] = own[k];
    __syncthreads();
    float sums[4] = {};
#pragma unroll 8
    for (int sample = 0; sample < SAMPLES; sample++) {
        const float value = tile[Place::at(lane, sample)];
#pragma unroll
        for (int k = 0; k < 4; k++) sums[k] = fmaf(tile[Place::at(group + 8 * k, sample)], value, sums[k]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) out[(blockIdx.x * MICROPHONES + group + 8 * k) * MICROPHONES + lane] = sums[k] * (1.0f / SAMPLES);
}

Study array("array_covariances_rows_of_64_words", "sound", 8192, "how 32 microphones go together in 8192 windows of 64 samples",
    "lanes read rows of shared memory that lie 64 words apart",
    {{"padded", "rows four words longer", {"shared_bank_conflicts"}}, {"turned", "samples outermost in shared memory", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *windows = b.random<float>(n * MICROPHONES * SAMPLES);
        float *out = b.output<float>(n * MICROPHONES * MICROPHONES);
        const dim3 block(32, 8);
        return {{"flawed", launch(covariances<InRows>, n, block, 0, windows, out)}, {"padded", launch(covariances<Padded>, n, block, 0, windows, out)},
            {"turned", launch(covariances<Turned>, n, block, 0, windows, out)}};
    });

}  // namespace
