// Pictures, boards, codes, densities and molecules.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- the box around each region of a picture ---

constexpr int STRIP = 32;

// A box: least x and y, most x and y. Pixels of no region have a label below zero.
__global__ void __launch_bounds__(256) region_boxes(const int *__restrict__ labels, int *__restrict__ boxes, int width, int height) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    const int label = labels[y * width + x];
    if (label < 0) return;
    int *box = boxes + 4 * label;
    atomicMin(box, x), atomicMin(box + 1, y), atomicMax(box + 2, x), atomicMax(box + 3, y);
}
// One lane for all of its warp's that lie in the same region.
__global__ void __launch_bounds__(256) region_boxes_warps(const int *__restrict__ labels, int *__restrict__ boxes, int width, int height) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int label = x < width && y < height ? labels[y * width + x] : -1;
    const unsigned alike = __match_any_sync(~0u, label);
    if (label < 0 || __ffs(alike) - 1 != static_cast<int>(threadIdx.x)) return;
    int *box = boxes + 4 * label;
    atomicMin(box, x), atomicMin(box + 1, y), atomicMax(box + 2, x - static_cast<int>(threadIdx.x) + 31 - __clz(alike)), atomicMax(box + 3, y);
}
// A thread goes down 32 pixels and tells where a region ends.
__global__ void __launch_bounds__(128) region_boxes_strips(const int *__restrict__ labels, int *__restrict__ boxes, int width, int height) {
    const int x = blockIdx.x * 128 + threadIdx.x, top = blockIdx.y * STRIP, low = min(top + STRIP, height);
    if (x >= width) return;
    int inside = -1, since = top;
#pragma unroll 8
    for (int y = top; y <= low; y++) {
        const int label = y < low ? labels[y * width + x] : -1;
        if (label == inside) continue;
        if (inside >= 0) {
            int *box = boxes + 4 * inside;
            atomicMin(box, x), atomicMin(box + 1, since), atomicMax(box + 2, x), atomicMax(box + 3, y - 1);
        }
        inside = label, since = y;
    }
}
// Only what makes the box wider.
__global__ void __launch_bounds__(256) region_boxes_asked(const int *__restrict__ labels, int *boxes, int width, int height) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    const int label = labels[y * width + x];
    if (label < 0) return;
    int *box = boxes + 4 * label;
    const int4 known = *reinterpret_cast<const int4 *>(box);
    if (x < known.x) atomicMin(box, x);
    if (y < known.y) atomicMin(box + 1, y);
    if (x > known.z) atomicMax(box + 2, x);
    if (y > known.w) atomicMax(box + 3, y);
}

Study boxed("region_boxes_four_atomics_a_pixel", "images", 2048, "the boxes around some 3000 round regions of a picture of 2048 x 2048",
    "each pixel asks for the least and the most of its region by four atomics",
    {{"warps", "one lane for all of a warp's that lie in the same region", {"global_atomics"}}, {"strips", "a thread goes down 32 pixels and tells where a region ends", {"global_atomics"}},
        {"asked", "an atomic only where it makes the box wider", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int across = n / 37 + 1;
        std::vector<int> list(n * n), none(4 * across * across);
        for (int k = 0; k < n * n; k++) {
            const int x = k % n, y = k / n, right = x % 37 - 18, low = y % 37 - 18;
            list[k] = right * right + low * low < 330 ? y / 37 * across + x / 37 : -1;
        }
        for (unsigned k = 0; k < none.size(); k++) none[k] = k % 4 < 2 ? 1 << 20 : -1;
        const int *labels = b.copy(list), *initial = b.copy(none);
        int *boxes = b.changed(initial, none.size());
        b.tolerance = 0.0;
        const dim3 tiles(blocks(n, 32), blocks(n, 8)), threads(32, 8);
        return {{"flawed", launch(region_boxes, tiles, threads, 0, labels, boxes, n, n)}, {"warps", launch(region_boxes_warps, tiles, threads, 0, labels, boxes, n, n)},
            {"strips", launch(region_boxes_strips, dim3(blocks(n, 128), blocks(n, STRIP)), 128, 0, labels, boxes, n, n)}, {"asked", launch(region_boxes_asked, tiles, threads, 0, labels, boxes, n, n)}};
    });

// --- in how many ways queens can be added to a board ---

constexpr int PLACED = 5, DEPTH = 12, PLAYERS = 128;

// Where a thread's four words of a depth are.
struct Apart {
    unsigned words[4][DEPTH];
    __device__ __forceinline__ unsigned &at(int field, int depth) { return words[field][depth]; }
};
struct Column {
    unsigned (*words)[DEPTH][PLAYERS];
    __device__ __forceinline__ unsigned &at(int field, int depth) { return words[field][depth][threadIdx.x]; }
};
// START: columns and both diagonals that the first five queens take, as seen from the sixth row.
template <typename Stack>
__device__ __forceinline__ int ways(Stack stack, uint4 start, unsigned board, int rows) {
    stack.at(0, 0) = start.x, stack.at(1, 0) = start.y, stack.at(2, 0) = start.z, stack.at(3, 0) = board & ~(start.x | start.y | start.z);
    int depth = 0, found = 0;
    while (depth >= 0) {
        const unsigned open = stack.at(3, depth), queen = open & -open;
        if (!open) {
            depth--;
            continue;
        }
        stack.at(3, depth) = open ^ queen;
        if (depth == rows - 1) {
            found++;
            continue;
        }
        const unsigned columns = stack.at(0, depth) | queen, left = (stack.at(1, depth) | queen) << 1, right = (stack.at(2, depth) | queen) >> 1;
        depth++;
        stack.at(0, depth) = columns, stack.at(1, depth) = left, stack.at(2, depth) = right, stack.at(3, depth) = board & ~(columns | left | right);
    }
    return found;
}
__global__ void __launch_bounds__(PLAYERS) queen_ways(const uint4 *__restrict__ starts, int *__restrict__ out, int count, unsigned board, int rows) {
    const int k = blockIdx.x * PLAYERS + threadIdx.x;
    if (k < count) out[k] = ways(Apart(), starts[k], board, rows);
}
__global__ void __launch_bounds__(PLAYERS) queen_ways_shared(const uint4 *__restrict__ starts, int *__restrict__ out, int count, unsigned board, int rows) {
    __shared__ unsigned words[4][DEPTH][PLAYERS];
    const int k = blockIdx.x * PLAYERS + threadIdx.x;
    if (k < count) out[k] = ways(Column{words}, starts[k], board, rows);
}
// What is taken is kept for the whole board, so that a queen can be taken back; where they stand is four bits each.
__global__ void __launch_bounds__(PLAYERS) queen_ways_taken_back(const uint4 *__restrict__ starts, int *__restrict__ out, int count, unsigned board, int rows) {
    const int k = blockIdx.x * PLAYERS + threadIdx.x, last = PLACED + rows - 1;
    if (k >= count) return;
    const uint4 start = starts[k];
    unsigned columns = start.x, falling = start.y << rows - 1, rising = start.z << PLACED, untried = board;
    unsigned long long stand = 0;
    int row = PLACED, found = 0;
    for (;;) {
        const unsigned open = untried & ~(columns | falling >> last - row | rising >> row);
        if (open && row < last) {
            const unsigned queen = open & -open;
            columns ^= queen, falling ^= queen << last - row, rising ^= queen << row;
            stand = stand << 4 | __ffs(queen) - 1;
            row++, untried = board;
            continue;
        }
        if (open) found += __popc(open);
        if (row == PLACED) break;
        row--;
        const unsigned queen = 1u << (stand & 15);
        stand >>= 4;
        columns ^= queen, falling ^= queen << last - row, rising ^= queen << row;
        untried = board & ~(2 * queen - 1);
    }
    out[k] = found;
}

Study queens("queen_ways_stack_in_local", "games", 14, "in how many ways the last nine of 14 queens can be added to each start",
    "a stack of four words a row, indexed by the row that a thread is in, lies in local memory",
    {{"shared", "the stacks in shared memory", {"local_memory"}}, {"taken_back", "no stack: a queen is taken back from what it took", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned board = (1u << n) - 1;
        std::vector<uint4> list(1, make_uint4(0, 0, 0, 0));
        for (int row = 0; row < PLACED; row++) {
            std::vector<uint4> next;
            for (const uint4 &start : list)
                for (int column = 0; column < n; column++) {
                    const unsigned queen = 1u << column;
                    if (!(queen & (start.x | start.y | start.z))) next.push_back(make_uint4(start.x | queen, (start.y | queen) << 1, (start.z | queen) >> 1, 0));
                }
            list = next;
        }
        const uint4 *starts = b.copy(list);
        const int count = list.size(), rows = n - PLACED;
        int *out = b.output<int>(count);
        b.tolerance = 0.0;
        return {{"flawed", launch(queen_ways, blocks(count, PLAYERS), PLAYERS, 0, starts, out, count, board, rows)}, {"shared", launch(queen_ways_shared, blocks(count, PLAYERS), PLAYERS, 0, starts, out, count, board, rows)},
            {"taken_back", launch(queen_ways_taken_back, blocks(count, PLAYERS), PLAYERS, 0, starts, out, count, board, rows)}};
    });

// --- polar codes ---

constexpr int CODE = 1024, TURNED = 36, CODERS = 4;

// A bit a byte. In each stage the first of two bits a stride apart becomes their sum.
__global__ void __launch_bounds__(CODE) polar_codes(const unsigned char *__restrict__ in, unsigned char *__restrict__ out) {
    __shared__ unsigned char bits[CODE];
    const int t = threadIdx.x;
    bits[t] = in[blockIdx.x * CODE + t];
    for (int stride = 1; stride < CODE; stride *= 2) {
        __syncthreads();
        const unsigned char other = t & stride ? 0 : bits[t + stride];
        __syncthreads();
        bits[t] ^= other;
    }
    out[blockIdx.x * CODE + t] = bits[t];
}
__device__ __forceinline__ unsigned five_stages(unsigned bit) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int stride = 1; stride < 32; stride *= 2) {
        const unsigned other = __shfl_down_sync(~0u, bit, stride);
        if (!(lane & stride)) bit ^= other;
    }
    return bit;
}
// Five stages within warps, then rows and columns change places and five more.
__global__ void __launch_bounds__(CODE) polar_codes_turned(const unsigned char *__restrict__ in, unsigned char *__restrict__ out) {
    __shared__ unsigned char bits[32 * TURNED];
    const int t = threadIdx.x, there = t / 32 * TURNED + t % 32, turned = t % 32 * TURNED + t / 32;
    bits[there] = five_stages(in[blockIdx.x * CODE + t]);
    __syncthreads();
    bits[turned] = five_stages(bits[turned]);
    __syncthreads();
    out[blockIdx.x * CODE + t] = bits[there];
}
// A warp a code word, 32 bits a lane.
__global__ void __launch_bounds__(32 * CODERS) polar_codes_warps(const uint4 *__restrict__ in, uint4 *__restrict__ out, int codes) {
    const int lane = threadIdx.x % 32, code = blockIdx.x * CODERS + threadIdx.x / 32;
    if (code >= codes) return;
    const size_t at = (static_cast<size_t>(code) * 32 + lane) * 2;
    const uint4 a = in[at], z = in[at + 1];
    unsigned words[8] = {a.x, a.y, a.z, a.w, z.x, z.y, z.z, z.w};
#pragma unroll
    for (int k = 0; k < 8; k++) words[k] ^= words[k] >> 8 & 0x00ff00ffu, words[k] ^= words[k] >> 16;
#pragma unroll
    for (int stride = 1; stride < 8; stride *= 2)
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (!(k & stride)) words[k] ^= words[k + stride];
#pragma unroll
    for (int k = 0; k < 8; k++) words[k] = five_stages(words[k]);
    out[at] = make_uint4(words[0], words[1], words[2], words[3]), out[at + 1] = make_uint4(words[4], words[5], words[6], words[7]);
}

Study polar("polar_codes_two_barriers_a_stage", "communications", 32768, "32768 code words of 1024 bits of a polar code, a bit a byte",
    "a block of 1024 threads waits twice in each of ten stages",
    {{"turned", "five stages by shuffles, twice, with rows and columns changed in between", {"barriers"}}, {"warps", "a warp a code word, 32 bits a lane", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *in = b.random<unsigned char>(n * CODE, 0.0, 2.0);
        unsigned char *out = b.output<unsigned char>(n * CODE);
        b.tolerance = 0.0;
        return {{"flawed", launch(polar_codes, n, CODE, 0, in, out)}, {"turned", launch(polar_codes_turned, n, CODE, 0, in, out)},
            {"warps", launch(polar_codes_warps, blocks(n, CODERS), 32 * CODERS, 0, reinterpret_cast<const uint4 *>(in), reinterpret_cast<uint4 *>(out), n)}};
    });

// --- logarithms of a density, estimated from samples ---

constexpr int SAMPLES = 2048, GROUP = 16, PARTS = 8;
constexpr float LEAST = -1e30f;

__device__ __forceinline__ float log_sum(float a, float z) { return fmaxf(a, z) + log1pf(expf(-fabsf(a - z))); }
__device__ __forceinline__ float log_kernel(float2 point, float2 sample, float width) {
    const float x = point.x - sample.x, y = point.y - sample.y;
    return width * (x * x + y * y);
}
// All samples in shared memory.
template <int THREADS>
__device__ __forceinline__ void fetch(float2 (&own)[SAMPLES], const float2 *samples) {
    for (int k = threadIdx.x; k < SAMPLES; k += THREADS) own[k] = samples[k];
    __syncthreads();
}
// CHAINS sums, which are joined at the end.
template <int CHAINS>
__global__ void __launch_bounds__(128) log_densities(const float2 *__restrict__ points, const float2 *__restrict__ samples, float *__restrict__ out, float width) {
    __shared__ float2 own[SAMPLES];
    fetch<128>(own, samples);
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float2 point = points[i];
    float sums[CHAINS];
    for (int c = 0; c < CHAINS; c++) sums[c] = LEAST;
    for (int k = 0; k < SAMPLES; k += CHAINS)
#pragma unroll
        for (int c = 0; c < CHAINS; c++) sums[c] = log_sum(sums[c], log_kernel(point, own[k + c], width));
#pragma unroll
    for (int c = 1; c < CHAINS; c++) sums[0] = log_sum(sums[0], sums[c]);
    out[i] = sums[0];
}
// The largest of sixteen first, then a plain sum of what they are relative to it.
__global__ void __launch_bounds__(128) log_densities_groups(const float2 *__restrict__ points, const float2 *__restrict__ samples, float *__restrict__ out, float width) {
    __shared__ float2 own[SAMPLES];
    fetch<128>(own, samples);
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float2 point = points[i];
    float most = LEAST, sum = 0.0f;
    for (int first = 0; first < SAMPLES; first += GROUP) {
        float each[GROUP], before = most;
#pragma unroll
        for (int k = 0; k < GROUP; k++) each[k] = log_kernel(point, own[first + k], width), most = fmaxf(most, each[k]);
        float added = 0.0f;
#pragma unroll
        for (int k = 0; k < GROUP; k++) added += expf(each[k] - most);
        sum = sum * expf(before - most) + added;
    }
    out[i] = most + logf(sum);
}
// Eight lanes a point, each with every eighth sample.
__global__ void __launch_bounds__(256) log_densities_lanes(const float2 *__restrict__ points, const float2 *__restrict__ samples, float *__restrict__ out, float width) {
    __shared__ float2 own[SAMPLES];
    fetch<256>(own, samples);
    const int i = (blockIdx.x * 256 + threadIdx.x) / PARTS, part = threadIdx.x % PARTS;
    const float2 point = points[i];
    float sum = LEAST;
    for (int k = part; k < SAMPLES; k += PARTS) sum = log_sum(sum, log_kernel(point, own[k], width));
    for (int offset = 1; offset < PARTS; offset *= 2) sum = log_sum(sum, __shfl_xor_sync(~0u, sum, offset));
    if (part == 0) out[i] = sum;
}

Study densities("log_densities_one_chain_a_point", "statistics", 16384, "logarithms of a density at 16384 points, estimated from 2048 samples",
    "a logarithm of a sum waits for the one before, 2048 times in a row, in one warp a scheduler",
    {{"four", "four sums a thread", {"instruction_latency"}}, {"groups", "the largest of sixteen first, then a plain sum", {"instruction_latency", "expensive_math"}}, {"lanes", "eight lanes a point", {"instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float2 *points = reinterpret_cast<const float2 *>(b.random<float>(n * 2)), *samples = reinterpret_cast<const float2 *>(b.random<float>(SAMPLES * 2));
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(log_densities<1>, n / 128, 128, 0, points, samples, out, -8.0f)}, {"four", launch(log_densities<4>, n / 128, 128, 0, points, samples, out, -8.0f)},
            {"groups", launch(log_densities_groups, n / 128, 128, 0, points, samples, out, -8.0f)}, {"lanes", launch(log_densities_lanes, n * PARTS / 256, 256, 0, points, samples, out, -8.0f)}};
    });

// --- how alike molecules are to those asked for ---

constexpr int ASKED = 8, PRINT = 8;  // sixteen bytes of a fingerprint: eight of them

__device__ __forceinline__ int bits_of(uint4 a) { return __popc(a.x) + __popc(a.y) + __popc(a.z) + __popc(a.w); }
__device__ __forceinline__ uint4 both_of(uint4 a, uint4 z) { return make_uint4(a.x & z.x, a.y & z.y, a.z & z.z, a.w & z.w); }
__device__ __forceinline__ void alike(const uint4 *prints, const int *sizes, const uint4 *asked, float *out, int molecules, int block, int query) {
    const int i = block * 256 + threadIdx.x;
    if (i >= molecules) return;
    int common = 0, size = 0;
#pragma unroll
    for (int k = 0; k < PRINT; k++) {
        const uint4 wanted = asked[query * PRINT + k];
        common += bits_of(both_of(prints[static_cast<size_t>(k) * molecules + i], wanted)), size += bits_of(wanted);
    }
    out[static_cast<size_t>(query) * molecules + i] = static_cast<float>(common) / static_cast<float>(sizes[i] + size - common);
}
// One molecule asked for after the other.
__global__ void __launch_bounds__(256) alike_molecules(const uint4 *__restrict__ prints, const int *__restrict__ sizes, const uint4 *__restrict__ asked, float *__restrict__ out, int molecules) { alike(prints, sizes, asked, out, molecules, blockIdx.x, blockIdx.y); }
// All that are asked for, for the same 256 molecules, side by side.
__global__ void __launch_bounds__(256) alike_molecules_abreast(const uint4 *__restrict__ prints, const int *__restrict__ sizes, const uint4 *__restrict__ asked, float *__restrict__ out, int molecules) { alike(prints, sizes, asked, out, molecules, blockIdx.y, blockIdx.x); }
// A thread compares its molecule with all that are asked for.
__global__ void __launch_bounds__(256) alike_molecules_kept(const uint4 *__restrict__ prints, const int *__restrict__ sizes, const uint4 *__restrict__ asked, float *__restrict__ out, int molecules) {
    __shared__ uint4 wanted[ASKED * PRINT];
    __shared__ int bits[ASKED];
    if (threadIdx.x < ASKED * PRINT) wanted[threadIdx.x] = asked[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < ASKED) {
        int size = 0;
        for (int k = 0; k < PRINT; k++) size += bits_of(wanted[threadIdx.x * PRINT + k]);
        bits[threadIdx.x] = size;
    }
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= molecules) return;
    uint4 own[PRINT];
#pragma unroll
    for (int k = 0; k < PRINT; k++) own[k] = prints[static_cast<size_t>(k) * molecules + i];
    const int size = sizes[i];
    for (int query = 0; query < ASKED; query++) {
        int common = 0;
#pragma unroll
        for (int k = 0; k < PRINT; k++) common += bits_of(both_of(own[k], wanted[query * PRINT + k]));
        out[static_cast<size_t>(query) * molecules + i] = static_cast<float>(common) / static_cast<float>(size + bits[query] - common);
    }
}
__global__ void sizes_of(const uint4 *prints, int *sizes, int molecules) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= molecules) return;
    int size = 0;
    for (int k = 0; k < PRINT; k++) size += bits_of(prints[static_cast<size_t>(k) * molecules + i]);
    sizes[i] = size;
}

Study likeness("alike_molecules_one_asked_for_after_the_other", "chemistry", 3 << 18, "how alike 786432 fingerprints of 1024 bits are to each of eight",
    "all molecules are compared with the first of the eight, then all with the second: a hundred megabytes eight times",
    {{"abreast", "blocks of the same molecules side by side in the grid", {"cache_locality"}}, {"kept", "a thread compares its molecule with all eight", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const uint4 *prints = reinterpret_cast<const uint4 *>(b.random<unsigned>(n * PRINT * 4, 0.0, 4294967295.0)), *asked = reinterpret_cast<const uint4 *>(b.random<unsigned>(ASKED * PRINT * 4, 0.0, 4294967295.0));
        int *sizes = b.allocate<int>(n);
        launch(sizes_of, blocks(n, 256), 256, 0, prints, sizes, n)();
        float *out = b.output<float>(n * ASKED);
        return {{"flawed", launch(alike_molecules, dim3(blocks(n, 256), ASKED), 256, 0, prints, sizes, asked, out, n)}, {"abreast", launch(alike_molecules_abreast, dim3(ASKED, blocks(n, 256)), 256, 0, prints, sizes, asked, out, n)},
            {"kept", launch(alike_molecules_kept, blocks(n, 256), 256, 0, prints, sizes, asked, out, n)}};
    });

// --- the key stream of a light cipher: without a flaw ---

constexpr int SIMON_ROUNDS = 44;

struct RoundKeys {
    unsigned words[SIMON_ROUNDS];
};
__device__ __forceinline__ unsigned turned_left(unsigned x, int by) { return __funnelshift_l(x, x, by); }
__device__ __forceinline__ uint2 enciphered(unsigned x, unsigned y, const RoundKeys &keys) {
#pragma unroll
    for (int k = 0; k < SIMON_ROUNDS; k++) {
        const unsigned next = y ^ (turned_left(x, 1) & turned_left(x, 8)) ^ turned_left(x, 2) ^ keys.words[k];
        y = x, x = next;
    }
    return make_uint2(x, y);
}
// Two counters a thread.
__global__ void __launch_bounds__(256) simon_stream(uint4 *__restrict__ out, int pairs, unsigned nonce, RoundKeys keys) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= pairs) return;
    const uint2 a = enciphered(nonce, 2 * k, keys), z = enciphered(nonce, 2 * k + 1, keys);
    out[k] = make_uint4(a.x, a.y, z.x, z.y);
}

Study stream("sound_simon_key_stream", "cryptography", 1 << 21, "4194304 blocks of the key stream of a cipher of 44 rounds", "", {}, [](Buffers &b, long n) -> Sides {
    RoundKeys keys;
    for (int k = 0; k < SIMON_ROUNDS; k++) keys.words[k] = hash(k + 1);
    return {{"sound", launch(simon_stream, blocks(n, 256), 256, 0, reinterpret_cast<uint4 *>(b.output<unsigned>(n * 4)), n, 0x9747b28cu, keys)}};
});

}  // namespace
