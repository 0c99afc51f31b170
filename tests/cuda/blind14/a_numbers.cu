// Numbers: voxels, tensors of three ways, long sums, permutations of words. Each kernel but the sound one has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- a mask of voxels grows by one voxel to all six sides ---

using Voxel = unsigned char;

__global__ void __launch_bounds__(256) grow(const Voxel *__restrict__ in, Voxel *__restrict__ out, int w, int h, int d) {
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z;
    const size_t plane = static_cast<size_t>(w) * h, at = z * plane + static_cast<size_t>(y) * w + x;
    Voxel v = in[at];
    if (x > 0) v |= in[at - 1];
    if (x + 1 < w) v |= in[at + 1];
    if (y > 0) v |= in[at - w];
    if (y + 1 < h) v |= in[at + w];
    if (z > 0) v |= in[at - plane];
    if (z + 1 < d) v |= in[at + plane];
    out[at] = v;
}
// Four voxels a word; those beside them come from the next words.
__global__ void __launch_bounds__(256) grow_words(const unsigned *__restrict__ in, unsigned *__restrict__ out, int w, int h, int d) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;  // w: in words
    if (x >= w) return;
    const size_t plane = static_cast<size_t>(w) * h, at = z * plane + static_cast<size_t>(y) * w + x;
    const unsigned own = in[at], before = x > 0 ? in[at - 1] : 0, after = x + 1 < w ? in[at + 1] : 0;
    unsigned v = own | own << 8 | own >> 8 | before >> 24 | after << 24;
    if (y > 0) v |= in[at - w];
    if (y + 1 < h) v |= in[at + w];
    if (z > 0) v |= in[at - plane];
    if (z + 1 < d) v |= in[at + plane];
    out[at] = v;
}
// Sixteen voxels an access; a thread goes through eight planes and keeps three of them.
__device__ __forceinline__ uint4 join(uint4 a, uint4 b) { return make_uint4(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w); }
__global__ void __launch_bounds__(128) grow_sixteen(const uint4 *__restrict__ in, uint4 *__restrict__ out, int w, int h, int d) {
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, first = blockIdx.z * 8;  // w: in uint4
    if (x >= w) return;
    const size_t plane = static_cast<size_t>(w) * h, column = static_cast<size_t>(y) * w + x;
    const unsigned *words = reinterpret_cast<const unsigned *>(in);
    const uint4 none = make_uint4(0, 0, 0, 0);
    uint4 below = first > 0 ? in[(first - 1) * plane + column] : none, own = in[first * plane + column];
#pragma unroll 4
    for (int z = first; z < min(first + 8, d); z++) {
        const size_t at = z * plane + column;
        const uint4 above = z + 1 < d ? in[at + plane] : none;
        const unsigned before = x > 0 ? words[at * 4 - 1] : 0, after = x + 1 < w ? words[at * 4 + 4] : 0;
        uint4 v = join(join(own, below), above);
        v.x |= own.x << 8 | own.x >> 8 | before >> 24 | own.y << 24, v.y |= own.y << 8 | own.y >> 8 | own.x >> 24 | own.z << 24;
        v.z |= own.z << 8 | own.z >> 8 | own.y >> 24 | own.w << 24, v.w |= own.w << 8 | own.w >> 8 | own.z >> 24 | after << 24;
        if (y > 0) v = join(v, in[at - w]);
        if (y + 1 < h) v = join(v, in[at + w]);
        out[at] = v;
        below = own, own = above;
    }
}

Study growing("voxel_mask_grown_a_byte_a_thread", "medicine", 512, "a mask of 512 x 512 x 512 voxels grown by one voxel to six sides",
    "a voxel a thread: seven loads of a byte and a store of one",
    {{"words", "four voxels a thread as a word", {"narrow_access"}}, {"sixteen", "sixteen voxels an access, three planes kept in registers", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int s = static_cast<int>(n);
        std::vector<Voxel> mask(n * n * n);
        for (size_t i = 0; i < mask.size(); i++) mask[i] = hash(static_cast<unsigned>(i)) % 24 == 0;
        const Voxel *in = b.copy(mask);
        Voxel *out = b.output<Voxel>(n * n * n);
        b.tolerance = 0.0;
        return {{"flawed", launch(grow, dim3(s / 64, s / 4, s), dim3(64, 4), 0, in, out, s, s, s)},
            {"words", launch(grow_words, dim3(blocks(s, 128), s / 8, s), dim3(32, 8), 0, reinterpret_cast<const unsigned *>(in), reinterpret_cast<unsigned *>(out), s / 4, s, s)},
            {"sixteen", launch(grow_sixteen, dim3(blocks(s, 256), s / 8, s / 8), dim3(16, 8), 0, reinterpret_cast<const uint4 *>(in), reinterpret_cast<uint4 *>(out), s / 16, s, s)}};
    });

// --- a sparse tensor of three ways times the factors of two of them ---

constexpr int RANK = 32;

struct Tensor {
    const int *i, *j, *k;  // in the order of i
    const float *value;
    int count;
};

__global__ void __launch_bounds__(256) factor_product(Tensor t, const float *__restrict__ second, const float *__restrict__ third, float *out) {
    const int e = blockIdx.x * 256 + threadIdx.x;
    if (e >= t.count) return;
    const float value = t.value[e];
    const float *b = second + static_cast<size_t>(t.j[e]) * RANK, *c = third + static_cast<size_t>(t.k[e]) * RANK;
    float *row = out + static_cast<size_t>(t.i[e]) * RANK;
    for (int r = 0; r < RANK; r++) atomicAdd(&row[r], value * b[r] * c[r]);
}
// A lane for each column, a warp for each entry.
__global__ void __launch_bounds__(256) factor_product_lanes(Tensor t, const float *__restrict__ second, const float *__restrict__ third, float *out) {
    const int e = (blockIdx.x * 256 + threadIdx.x) / RANK, r = threadIdx.x % RANK;
    if (e >= t.count) return;
    atomicAdd(&out[static_cast<size_t>(t.i[e]) * RANK + r], t.value[e] * second[static_cast<size_t>(t.j[e]) * RANK + r] * third[static_cast<size_t>(t.k[e]) * RANK + r]);
}
// A warp takes 32 entries in a row and adds where the row of the result changes.
__global__ void __launch_bounds__(256) factor_product_runs(Tensor t, const float *__restrict__ second, const float *__restrict__ third, float *out) {
    const int r = threadIdx.x % RANK, first = (blockIdx.x * 256 + threadIdx.x) / 32 * 32, own = min(first + r, t.count - 1);
    if (first >= t.count) return;
    const int i = t.i[own], j = t.j[own], k = t.k[own];
    const float value = first + r < t.count ? t.value[own] : 0.f;
    int open = __shfl_sync(~0u, i, 0);
    float sum = 0.f;
#pragma unroll 8
    for (int e = 0; e < 32; e++) {
        const int row = __shfl_sync(~0u, i, e), of_second = __shfl_sync(~0u, j, e), of_third = __shfl_sync(~0u, k, e);
        const float v = __shfl_sync(~0u, value, e) * second[static_cast<size_t>(of_second) * RANK + r] * third[static_cast<size_t>(of_third) * RANK + r];
        if (row != open) {
            atomicAdd(&out[static_cast<size_t>(open) * RANK + r], sum);
            open = row, sum = 0.f;
        }
        sum += v;
    }
    atomicAdd(&out[static_cast<size_t>(open) * RANK + r], sum);
}

Study tensor_factors("tensor_entries_a_thread_each", "data analysis", 1 << 20, "1048576 entries of a sparse tensor of 50000 x 20000 x 8000 times two factors of rank 32",
    "a thread for each entry walks along the rows of three factors: lanes are rows apart",
    {{"lanes", "a lane for each column, a warp an entry", {"uncoalesced_access"}}, {"runs", "a lane for each column, 32 entries a warp, added where the row changes", {"uncoalesced_access", "global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int rows = static_cast<int>(n / 21) + 1, second = 20000, third = 8000;
        std::vector<int> i(n);
        for (long e = 0; e < n; e++) i[e] = static_cast<int>((e + hash(static_cast<unsigned>(e)) % 13) / 21);
        std::sort(i.begin(), i.end());
        for (int &row : i) row = std::min(row, rows - 1);
        const Tensor t{b.copy(i), b.random<int>(n, 0, second), b.random<int>(n, 0, third), b.random<float>(n), static_cast<int>(n)};
        const float *of_second = b.random<float>(static_cast<size_t>(second) * RANK), *of_third = b.random<float>(static_cast<size_t>(third) * RANK);
        float *out = b.output<float>(static_cast<size_t>(rows) * RANK, true);
        return {{"flawed", launch(factor_product, blocks(n, 256), 256, 0, t, of_second, of_third, out)}, {"lanes", launch(factor_product_lanes, blocks(n, 8), 256, 0, t, of_second, of_third, out)},
            {"runs", launch(factor_product_runs, blocks(n, 256), 256, 0, t, of_second, of_third, out)}};
    });

// --- a product of two long vectors, with what rounding loses kept beside the sum ---

struct Kept {
    float sum, lost;
    __device__ __forceinline__ void add(float a, float b) {
        const float product = __fmul_rn(a, b), rest = __fmaf_rn(a, b, -product), total = __fadd_rn(sum, product), part = __fsub_rn(total, sum);
        lost += __fadd_rn(__fsub_rn(sum, __fsub_rn(total, part)), __fsub_rn(product, part)) + rest;
        sum = total;
    }
    __device__ __forceinline__ double all() const { return static_cast<double>(sum) + lost; }
};

template <int CHAINS>
__global__ void __launch_bounds__(256) careful_dot(const float *__restrict__ a, const float *__restrict__ b, double *out, int n) {
    const int threads = gridDim.x * 256;
    Kept kept[CHAINS] = {};
    int i = blockIdx.x * 256 + threadIdx.x;
    for (; i + (CHAINS - 1) * threads < n; i += CHAINS * threads) {
        float x[CHAINS], y[CHAINS];
#pragma unroll
        for (int k = 0; k < CHAINS; k++) x[k] = a[i + k * threads], y[k] = b[i + k * threads];
#pragma unroll
        for (int k = 0; k < CHAINS; k++) kept[k].add(x[k], y[k]);
    }
    for (; i < n; i += threads) kept[0].add(a[i], b[i]);
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < CHAINS; k++) sum += kept[k].all();
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

Study long_dot("careful_dot_one_chain_a_thread", "linear algebra", 1 << 25, "product of two vectors of 33554432, with the parts that rounding loses",
    "one sum for each of few threads, a block of 256 a multiprocessor: few loads in flight, and additions that wait for each other",
    {{"four_chains", "four sums a thread", {"memory_latency", "instruction_latency"}}, {"more_blocks", "eight blocks a multiprocessor instead of one", {"memory_latency", "low_occupancy", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *x = b.random<float>(n, -1, 2), *y = b.random<float>(n, -1, 2);
        double *out = b.output<double>(1, true);
        b.tolerance = 1e-9;
        const int sms = multiprocessors(), count = static_cast<int>(n);
        return {{"flawed", launch(careful_dot<1>, sms, 256, 0, x, y, out, count)}, {"four_chains", launch(careful_dot<4>, sms, 256, 0, x, y, out, count)}, {"more_blocks", launch(careful_dot<1>, sms * 8, 256, 0, x, y, out, count)}};
    });

// --- a permutation of five words of 64 bits, twelve rounds for each of many states ---

__device__ __forceinline__ unsigned long long turned_right(unsigned long long v, int by) { return v >> by | v << (64 - by); }

__global__ void __launch_bounds__(256) permute_states(const unsigned long long *__restrict__ in, unsigned long long *__restrict__ out, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    unsigned long long x[5];
#pragma unroll
    for (int k = 0; k < 5; k++) x[k] = in[static_cast<size_t>(k) * n + i];
#pragma unroll
    for (int round = 0; round < 12; round++) {
        x[2] ^= static_cast<unsigned long long>((15 - round) << 4 | round);
        x[0] ^= x[4], x[4] ^= x[3], x[2] ^= x[1];
        const unsigned long long a = x[0] ^ (~x[1] & x[2]), b = x[1] ^ (~x[2] & x[3]), c = x[2] ^ (~x[3] & x[4]), d = x[3] ^ (~x[4] & x[0]), e = x[4] ^ (~x[0] & x[1]);
        x[0] = a ^ e, x[1] = b ^ a, x[2] = ~c, x[3] = d ^ c, x[4] = e;
        x[0] ^= turned_right(x[0], 19) ^ turned_right(x[0], 28), x[1] ^= turned_right(x[1], 61) ^ turned_right(x[1], 39), x[2] ^= turned_right(x[2], 1) ^ turned_right(x[2], 6);
        x[3] ^= turned_right(x[3], 10) ^ turned_right(x[3], 17), x[4] ^= turned_right(x[4], 7) ^ turned_right(x[4], 41);
    }
#pragma unroll
    for (int k = 0; k < 5; k++) out[static_cast<size_t>(k) * n + i] = x[k];
}

Study permutations("sound_ascon_states", "cryptography", 1 << 22, "twelve rounds of a permutation of 320 bits on 4194304 states, words of a kind side by side", "", {}, [](Buffers &b, long n) -> Sides {
    const unsigned long long *in = b.random<unsigned long long>(5 * n, 0, 1.8e19);
    unsigned long long *out = b.output<unsigned long long>(5 * n);
    return {{"sound", launch(permute_states, blocks(n, 256), 256, 0, in, out, static_cast<int>(n))}};
});

}  // namespace
