// Pictures, reads, sounds, tables and poses.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- pictures as coefficients of cosines ---

constexpr int TILES = 32;  // of 8 x 8 pixels, a block

struct Steps {
    float inverse[64];
};
__device__ __forceinline__ float four_of(float c0, float v0, float c1, float v1, float c2, float v2, float c3, float v3) { return fmaf(c0, v0, fmaf(c1, v1, fmaf(c2, v2, c3 * v3))); }
__device__ __forceinline__ void cosines(float (&v)[8]) {
    const float a0 = v[0] + v[7], a1 = v[1] + v[6], a2 = v[2] + v[5], a3 = v[3] + v[4];
    const float d0 = v[0] - v[7], d1 = v[1] - v[6], d2 = v[2] - v[5], d3 = v[3] - v[4];
    const float e0 = a0 + a3, e1 = a1 + a2, f0 = a0 - a3, f1 = a1 - a2;
    v[0] = 0.35355339f * (e0 + e1), v[4] = 0.35355339f * (e0 - e1);
    v[2] = fmaf(0.46193977f, f0, 0.19134172f * f1), v[6] = fmaf(0.19134172f, f0, -0.46193977f * f1);
    v[1] = four_of(0.49039264f, d0, 0.41573481f, d1, 0.27778512f, d2, 0.09754516f, d3);
    v[3] = four_of(0.41573481f, d0, -0.09754516f, d1, -0.49039264f, d2, -0.27778512f, d3);
    v[5] = four_of(0.27778512f, d0, -0.49039264f, d1, 0.09754516f, d2, 0.41573481f, d3);
    v[7] = four_of(0.09754516f, d0, -0.27778512f, d1, 0.41573481f, d2, -0.49039264f, d3);
}
__device__ __forceinline__ void pixels_of(uint2 word, float (&v)[8]) {
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = static_cast<float>(word.x >> 8 * k & 255) - 128.0f, v[4 + k] = static_cast<float>(word.y >> 8 * k & 255) - 128.0f;
}
__device__ __forceinline__ unsigned two(float low, float high) { return (__float2int_rn(low) & 0xffff) | static_cast<unsigned>(__float2int_rn(high)) << 16; }
__device__ __forceinline__ uint4 eight(const float (&v)[8]) { return make_uint4(two(v[0], v[1]), two(v[2], v[3]), two(v[4], v[5]), two(v[6], v[7])); }
// A thread a row of a tile, then a column, then a row again. PITCH: words from one row to the next.
template <int PITCH>
__global__ void __launch_bounds__(8 * TILES) cosine_tiles(const uint2 *__restrict__ picture, uint4 *__restrict__ out, Steps steps) {
    __shared__ float values[8 * TILES * PITCH];
    const int t = threadIdx.x, tile = t / 8, k = t % 8, across = gridDim.x * TILES;
    float v[8];
    pixels_of(picture[(blockIdx.y * 8 + k) * across + blockIdx.x * TILES + tile], v);
    cosines(v);
#pragma unroll
    for (int x = 0; x < 8; x++) values[t * PITCH + x] = v[x];
    __syncwarp();
#pragma unroll
    for (int y = 0; y < 8; y++) v[y] = values[(tile * 8 + y) * PITCH + k];
    cosines(v);
#pragma unroll
    for (int y = 0; y < 8; y++) values[(tile * 8 + y) * PITCH + k] = v[y] * steps.inverse[y * 8];
    __syncwarp();
#pragma unroll
    for (int x = 0; x < 8; x++) v[x] = values[t * PITCH + x];
    out[(blockIdx.y * across + blockIdx.x * TILES) * 8 + t] = eight(v);
}
// Rows and columns of eight lanes' eight values change places.
__device__ __forceinline__ void change_places(float (&v)[8], int k) {
#pragma unroll
    for (int stride = 1; stride < 8; stride *= 2)
#pragma unroll
        for (int low = 0; low < 8; low++) {
            if (low & stride) continue;
            const bool upper = k & stride;
            const float given = upper ? v[low] : v[low + stride];
            const float taken = __shfl_xor_sync(~0u, given, stride);
            if (upper) v[low] = taken;
            else v[low + stride] = taken;
        }
}
__global__ void __launch_bounds__(8 * TILES) cosine_tiles_lanes(const uint2 *__restrict__ picture, uint4 *__restrict__ out, Steps steps) {
    const int t = threadIdx.x, tile = t / 8, k = t % 8, across = gridDim.x * TILES;
    float v[8];
    pixels_of(picture[(blockIdx.y * 8 + k) * across + blockIdx.x * TILES + tile], v);
    cosines(v);
    change_places(v, k);
    cosines(v);
#pragma unroll
    for (int y = 0; y < 8; y++) v[y] *= steps.inverse[y * 8];
    change_places(v, k);
    out[(blockIdx.y * across + blockIdx.x * TILES) * 8 + t] = eight(v);
}

Study cosined("cosine_tiles_rows_of_eight_words", "compression", 8192, "a picture of 8192 x 4096 bytes as quantised coefficients of cosines of tiles of 8 x 8",
    "rows of eight words in shared memory: lanes of a warp meet in every eighth bank",
    {{"padded", "rows of nine words", {"shared_bank_conflicts"}}, {"lanes", "rows and columns change places by shuffles", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const long height = n / 2;
        const uint2 *picture = reinterpret_cast<const uint2 *>(b.random<unsigned char>(n * height, 0.0, 256.0));
        uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(n * height / 2));
        Steps steps;
        for (int k = 0; k < 64; k++) steps.inverse[k] = 1.0f / static_cast<float>(4 + k / 8);
        b.tolerance = 0.0;
        const dim3 grid(n / 8 / TILES, height / 8);
        return {{"flawed", launch(cosine_tiles<8>, grid, 8 * TILES, 0, picture, out, steps)}, {"padded", launch(cosine_tiles<9>, grid, 8 * TILES, 0, picture, out, steps)},
            {"lanes", launch(cosine_tiles_lanes, grid, 8 * TILES, 0, picture, out, steps)}};
    });

// --- least hashes of windows of reads ---

constexpr int READ_WORDS = 16, MOST_WINDOW = 16;  // sixteen bases a word

__device__ __forceinline__ unsigned mixed(unsigned x) {
    x *= 0x9e3779b1u;
    x ^= x >> 15;
    return x * 0x85ebca77u;
}
// What a read is known by: the sum of the least hashes where they change, and how often they do.
struct Sketch {
    unsigned last = 0, sum = 0, changes = 0;
    __device__ __forceinline__ void add(unsigned least) {
        if (least != last) sum += least, changes++, last = least;
    }
};
// A thread a read; words of reads are side by side.
__global__ void __launch_bounds__(256) sketches(const unsigned *__restrict__ bases, uint2 *__restrict__ out, int reads, int window) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= reads) return;
    unsigned recent[MOST_WINDOW], mer = 0;
    for (int k = 0; k < MOST_WINDOW; k++) recent[k] = ~0u;
    Sketch sketch;
    int slot = 0;
    for (int w = 0; w < READ_WORDS; w++) {
        unsigned word = bases[w * reads + i];
        for (int k = 0; k < 16; k++, word >>= 2) {
            mer = mer << 2 | (word & 3);
            recent[slot] = mixed(mer);
            slot = slot + 1 == window ? 0 : slot + 1;
            unsigned least = recent[0];
            for (int s = 1; s < window; s++) least = min(least, recent[s]);
            sketch.add(least);
        }
    }
    out[i] = make_uint2(sketch.sum, sketch.changes);
}
// For windows of sixteen.
__global__ void __launch_bounds__(256) sketches_sixteen(const unsigned *__restrict__ bases, uint2 *__restrict__ out, int reads) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= reads) return;
    unsigned recent[16], mer = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) recent[k] = ~0u;
    Sketch sketch;
    for (int w = 0; w < READ_WORDS; w++) {
        const unsigned word = bases[w * reads + i];
#pragma unroll
        for (int k = 0; k < 16; k++) {
            mer = mer << 2 | (word >> 2 * k & 3);
            recent[k] = mixed(mer);
            unsigned least = recent[0];
#pragma unroll
            for (int s = 1; s < 16; s++) least = min(least, recent[s]);
            sketch.add(least);
        }
    }
    out[i] = make_uint2(sketch.sum, sketch.changes);
}
// The least of 16 from two of 8, those from two of 4, and so on.
__global__ void __launch_bounds__(256) sketches_doubled(const unsigned *__restrict__ bases, uint2 *__restrict__ out, int reads) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= reads) return;
    unsigned of_one = ~0u, of_two[2], of_four[4], of_eight[8], mer = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) of_eight[k] = of_four[k % 4] = of_two[k % 2] = ~0u;
    Sketch sketch;
    for (int w = 0; w < READ_WORDS; w++) {
        const unsigned word = bases[w * reads + i];
#pragma unroll
        for (int k = 0; k < 16; k++) {
            mer = mer << 2 | (word >> 2 * k & 3);
            const unsigned one = mixed(mer), two = min(one, of_one), four = min(two, of_two[k % 2]), eight = min(four, of_four[k % 4]);
            sketch.add(min(eight, of_eight[k % 8]));
            of_one = one, of_two[k % 2] = two, of_four[k % 4] = four, of_eight[k % 8] = eight;
        }
    }
    out[i] = make_uint2(sketch.sum, sketch.changes);
}

Study sketched("read_sketches_window_in_local", "genomics", 1 << 20, "the least hashes of windows of sixteen for 1048576 reads of 256 bases",
    "the last hashes lie in local memory, indexed by what is known at run time only",
    {{"sixteen", "the window known when compiled, in registers", {"local_memory"}}, {"doubled", "the least of sixteen from leasts of eight, four and two in registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *bases = b.random<unsigned>(n * READ_WORDS, 0.0, 4294967295.0);
        uint2 *out = reinterpret_cast<uint2 *>(b.output<unsigned>(n * 2));
        b.tolerance = 0.0;
        return {{"flawed", launch(sketches, blocks(n, 256), 256, 0, bases, out, n, 16)}, {"sixteen", launch(sketches_sixteen, blocks(n, 256), 256, 0, bases, out, n)},
            {"doubled", launch(sketches_doubled, blocks(n, 256), 256, 0, bases, out, n)}};
    });

// --- sounds of four bits a sample ---

constexpr int STEP_COUNT = 89, SOUND_WORDS = 64;  // eight samples a word
__constant__ short STEP_SIZES[STEP_COUNT] = {7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544,
    598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};

struct InConstant {
    __device__ __forceinline__ int operator()(int index) const { return STEP_SIZES[index]; }
};
struct InTable {
    const short *sizes;
    __device__ __forceinline__ int operator()(int index) const { return sizes[index]; }
};
// A thread a channel; words of channels are side by side.
template <typename Sizes>
__device__ __forceinline__ void decode(const unsigned *__restrict__ in, uint4 *__restrict__ out, int channels, Sizes size_at) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= channels) return;
    int value = 0, index = 0;
    for (int w = 0; w < SOUND_WORDS; w++) {
        const unsigned word = in[w * channels + i];
        unsigned pairs[4];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int code = word >> 4 * k & 15, size = size_at(index);
            const int change = (2 * (code & 7) + 1) * size >> 3;
            value = min(max(code & 8 ? value - change : value + change, -32768), 32767);
            index = min(max(code & 4 ? index + 2 * (code & 3) + 2 : index - 1, 0), STEP_COUNT - 1);
            if (k % 2) pairs[k / 2] |= static_cast<unsigned>(value) << 16;
            else pairs[k / 2] = value & 0xffff;
        }
        out[w * channels + i] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}
__global__ void __launch_bounds__(128) sounds(const unsigned *__restrict__ in, uint4 *__restrict__ out, int channels) { decode(in, out, channels, InConstant()); }
__global__ void __launch_bounds__(128) sounds_shared(const unsigned *__restrict__ in, uint4 *__restrict__ out, int channels) {
    __shared__ short sizes[STEP_COUNT];
    if (threadIdx.x < STEP_COUNT) sizes[threadIdx.x] = STEP_SIZES[threadIdx.x];
    __syncthreads();
    decode(in, out, channels, InTable{sizes});
}
__global__ void __launch_bounds__(128) sounds_global(const unsigned *__restrict__ in, uint4 *__restrict__ out, const short *__restrict__ sizes, int channels) { decode(in, out, channels, InTable{sizes}); }

Study decoded("sounds_step_sizes_in_constant", "audio", 65536, "65536 channels of 512 samples from four bits a sample, whose steps grow and shrink",
    "each lane's step is at another place of a table in constant memory",
    {{"shared", "the table in shared memory", {"constant_divergence"}}, {"global", "the table in global memory, kept in L1", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char sizes_of[16] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5};
        std::vector<unsigned> list(n * SOUND_WORDS, 0);
        for (unsigned k = 0; k < list.size() * 8; k++) list[k / 8] |= (sizes_of[hash(k) & 15] | (hash(k) >> 4 & 1) << 3) << 4 * (k % 8);
        const unsigned *in = b.copy(list);
        uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(n * SOUND_WORDS * 4));
        short *sizes = b.allocate<short>(STEP_COUNT);
        CHECK(cudaMemcpyFromSymbol(sizes, STEP_SIZES, sizeof STEP_SIZES, 0, cudaMemcpyDeviceToDevice));
        b.tolerance = 0.0;
        return {{"flawed", launch(sounds, blocks(n, 128), 128, 0, in, out, n)}, {"shared", launch(sounds_shared, blocks(n, 128), 128, 0, in, out, n)},
            {"global", launch(sounds_global, blocks(n, 128), 128, 0, in, out, sizes, n)}};
    });

// --- sums by a column of few values ---

constexpr int MODES = 16, ROWS_EACH = 16;

// Rows as vectors of four; ADD takes a mode and an amount.
template <typename Add>
__device__ __forceinline__ void each_row(const unsigned *modes, const int4 *amounts, int quads, Add add) {
    for (int k = 0; k < ROWS_EACH; k++) {
        const int at = (blockIdx.x * ROWS_EACH + k) * 256 + threadIdx.x;
        if (at >= quads) return;
        const unsigned mode = modes[at];
        const int4 amount = amounts[at];
        add(mode & 15, amount.x), add(mode >> 8 & 15, amount.y), add(mode >> 16 & 15, amount.z), add(mode >> 24 & 15, amount.w);
    }
}
__global__ void __launch_bounds__(256) sums_by_mode(const unsigned *__restrict__ modes, const int4 *__restrict__ amounts, int *__restrict__ out, int quads) {
    __shared__ int sums[MODES];
    if (threadIdx.x < MODES) sums[threadIdx.x] = 0;
    __syncthreads();
    each_row(modes, amounts, quads, [&](int mode, int amount) { atomicAdd(&sums[mode], amount); });
    __syncthreads();
    if (threadIdx.x < MODES) atomicAdd(out + threadIdx.x, sums[threadIdx.x]);
}
// The sums of a row of NUMBER words each, added up by a warp for every two modes.
template <int NUMBER>
__device__ __forceinline__ void add_rows(int *out, const int *sums) {
    for (int mode = threadIdx.x / 32; mode < MODES; mode += 8) {
        int sum = 0;
        for (int k = threadIdx.x % 32; k < NUMBER; k += 32) sum += sums[mode * NUMBER + k];
        for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
        if (threadIdx.x % 32 == 0) atomicAdd(out + mode, sum);
    }
}
// Sums for each lane of a warp.
__global__ void __launch_bounds__(256) sums_by_mode_lanes(const unsigned *__restrict__ modes, const int4 *__restrict__ amounts, int *__restrict__ out, int quads) {
    __shared__ int sums[MODES * 32];
    for (int k = threadIdx.x; k < MODES * 32; k += 256) sums[k] = 0;
    __syncthreads();
    int *own = sums + threadIdx.x % 32;
    each_row(modes, amounts, quads, [&](int mode, int amount) { atomicAdd(&own[mode * 32], amount); });
    __syncthreads();
    add_rows<32>(out, sums);
}
// Sums for each thread.
__global__ void __launch_bounds__(256) sums_by_mode_threads(const unsigned *__restrict__ modes, const int4 *__restrict__ amounts, int *__restrict__ out, int quads) {
    __shared__ int sums[MODES * 256];
    int *own = sums + threadIdx.x;
#pragma unroll
    for (int mode = 0; mode < MODES; mode++) own[mode * 256] = 0;
    each_row(modes, amounts, quads, [&](int mode, int amount) { own[mode * 256] += amount; });
    __syncthreads();
    add_rows<256>(out, sums);
}

Study grouped("sums_by_mode_sixteen_counters_a_block", "databases", 1 << 25, "sums of 33554432 amounts by a column of sixteen values, of which one is in every second row",
    "all lanes of a block add to sixteen words of shared memory by atomics",
    {{"lanes", "sixteen words for each lane of a warp", {"shared_atomics"}}, {"threads", "sixteen words for each thread, without atomics", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> list(n);
        for (unsigned k = 0; k < list.size(); k++) list[k] = hash(k) & 16 ? 3 : hash(k) & 15;
        const unsigned *modes = reinterpret_cast<const unsigned *>(b.copy(list));
        const int4 *amounts = reinterpret_cast<const int4 *>(b.random<int>(n, 0.0, 100.0));
        int *out = b.output<int>(MODES, true);
        b.tolerance = 0.0;
        const unsigned grid = blocks(n / 4, 256 * ROWS_EACH);
        return {{"flawed", launch(sums_by_mode, grid, 256, 0, modes, amounts, out, n / 4)}, {"lanes", launch(sums_by_mode_lanes, grid, 256, 0, modes, amounts, out, n / 4)},
            {"threads", launch(sums_by_mode_threads, grid, 256, 0, modes, amounts, out, n / 4)}};
    });

// --- prices from a dictionary ---

constexpr int WORDS = 49152;

template <typename Word>
__device__ __forceinline__ void look_up(const uint2 *codes, const int *dictionary, float4 *out, int quads) {
    extern __shared__ char memory[];
    Word *words = reinterpret_cast<Word *>(memory);
    for (int k = 4 * threadIdx.x; k < WORDS; k += 4 * blockDim.x) {
        const int4 four = *reinterpret_cast<const int4 *>(dictionary + k);
        words[k] = static_cast<Word>(four.x), words[k + 1] = static_cast<Word>(four.y), words[k + 2] = static_cast<Word>(four.z), words[k + 3] = static_cast<Word>(four.w);
    }
    __syncthreads();
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < quads; at += gridDim.x * blockDim.x) {
        const uint2 code = codes[at];
        out[at] = make_float4(0.01f * words[code.x & 0xffff], 0.01f * words[code.x >> 16], 0.01f * words[code.y & 0xffff], 0.01f * words[code.y >> 16]);
    }
}
// Cents of a dictionary as prices; each block keeps the dictionary.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) prices(const uint2 *__restrict__ codes, const int *__restrict__ dictionary, float4 *__restrict__ out, int quads) { look_up<int>(codes, dictionary, out, quads); }
// The same; no price of the dictionary has more than sixteen bits.
__global__ void __launch_bounds__(256) prices_halves(const uint2 *__restrict__ codes, const int *__restrict__ dictionary, float4 *__restrict__ out, int quads) { look_up<unsigned short>(codes, dictionary, out, quads); }

Study priced("prices_dictionary_for_eight_warps", "databases", 1 << 25, "33554432 codes of sixteen bits as prices from a dictionary of 49152",
    "a block of 256 threads keeps 192 KiB in shared memory: eight warps a multiprocessor",
    {{"crew", "a block of 1024 threads", {"low_occupancy"}}, {"halves", "the dictionary as numbers of sixteen bits, twice as many blocks", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned short> list(n);
        for (unsigned k = 0; k < list.size(); k++) list[k] = hash(k) % WORDS;
        const uint2 *codes = reinterpret_cast<const uint2 *>(b.copy(list));
        const int *dictionary = b.random<int>(WORDS, 1.0, 65536.0), count = multiprocessors();
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n));
        return {{"flawed", launch(prices<256>, count, 256, WORDS * 4, codes, dictionary, out, n / 4)}, {"crew", launch(prices<1024>, count, 1024, WORDS * 4, codes, dictionary, out, n / 4)},
            {"halves", launch(prices_halves, 2 * count, 256, WORDS * 2, codes, dictionary, out, n / 4)}};
    });

// --- a rendered picture for a screen ---

template <typename Real>
__device__ __forceinline__ float filmic(float light, float exposure) {
    const Real x = light * exposure;
    return static_cast<float>((x * (Real(2.51) * x + Real(0.03))) / (x * (Real(2.43) * x + Real(0.59)) + Real(0.14)));
}
__device__ __forceinline__ unsigned shade(float x) { return __float2uint_rn(fminf(fmaxf(x, 0.0f), 1.0f) * 255.0f); }
__device__ __forceinline__ float4 light_of(uint2 pixel) {
    const float2 low = __half22float2(*reinterpret_cast<const __half2 *>(&pixel.x)), high = __half22float2(*reinterpret_cast<const __half2 *>(&pixel.y));
    return make_float4(low.x, low.y, high.x, high.y);
}
// A pixel of red, green, blue and how much it covers.
__global__ void __launch_bounds__(256) screen(const uint2 *__restrict__ lights, unsigned *__restrict__ out, int pixels, float exposure) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pixels) return;
    const float4 light = light_of(lights[i]);
    out[i] = shade(filmic<double>(light.x, exposure)) | shade(filmic<double>(light.y, exposure)) << 8 | shade(filmic<double>(light.z, exposure)) << 16 | shade(light.w) << 24;
}
__global__ void __launch_bounds__(256) screen_single(const uint2 *__restrict__ lights, unsigned *__restrict__ out, int pixels, float exposure) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pixels) return;
    const float4 light = light_of(lights[i]);
    out[i] = shade(filmic<float>(light.x, exposure)) | shade(filmic<float>(light.y, exposure)) << 8 | shade(filmic<float>(light.z, exposure)) << 16 | shade(light.w) << 24;
}
// The same curve as a constant less a fraction.
__device__ __forceinline__ float filmic_fraction(float light, float exposure) {
    const float x = light * exposure;
    return 1.0329218f - __fdividef(0.57942387f * x + 0.14460905f, x * (2.43f * x + 0.59f) + 0.14f);
}
__global__ void __launch_bounds__(256) screen_fraction(const uint2 *__restrict__ lights, unsigned *__restrict__ out, int pixels, float exposure) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pixels) return;
    const float4 light = light_of(lights[i]);
    out[i] = shade(filmic_fraction(light.x, exposure)) | shade(filmic_fraction(light.y, exposure)) << 8 | shade(filmic_fraction(light.z, exposure)) << 16 | shade(light.w) << 24;
}
// Compared as bytes.
__global__ void bytes_of(const unsigned *words, unsigned char *bytes, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        for (int k = 0; k < 4; k++) bytes[4 * i + k] = words[i] >> 8 * k & 255;
}

Study screened("screen_curve_in_double", "rendering", 1 << 24, "a curve of film for 16777216 pixels of four halves, as bytes",
    "the curve's constants are doubles, and so is what is done with them",
    {{"single", "constants in single precision", {"double_precision"}}, {"fraction", "a constant less a fraction, in single precision", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        const uint2 *lights = reinterpret_cast<const uint2 *>(b.random<__half>(n * 4, 0.0, 4.0));
        unsigned *out = b.allocate<unsigned>(n);
        unsigned char *bytes = b.output<unsigned char>(n * 4);
        b.tolerance = 5e-3;
        const unsigned grid = blocks(n, 256);
        const auto compared = launch(bytes_of, grid, 256, 0, out, bytes, n);
        return {Side{"flawed", launch(screen, grid, 256, 0, lights, out, n, 0.6f), {}, 1, compared}, Side{"single", launch(screen_single, grid, 256, 0, lights, out, n, 0.6f), {}, 1, compared},
            Side{"fraction", launch(screen_fraction, grid, 256, 0, lights, out, n, 0.6f), {}, 1, compared}};
    });

// --- a room's response ---

constexpr int TAPS = 256, HEARD = 128;

struct Response {
    float taps[TAPS];
};
template <int COUNT>
__device__ __forceinline__ void hear(float *own, const float *sound, int first) {
    for (int k = threadIdx.x; k < COUNT; k += HEARD) own[k] = sound[first + k];
    __syncthreads();
}
// A sample a thread.
__global__ void __launch_bounds__(HEARD) room(const float *__restrict__ sound, float *__restrict__ out, Response response) {
    __shared__ float own[HEARD + TAPS];
    const int first = blockIdx.x * HEARD;
    hear<HEARD + TAPS>(own, sound, first);
    float sum = 0.0f;
#pragma unroll 16
    for (int k = 0; k < TAPS; k++) sum += response.taps[k] * own[threadIdx.x + k];
    out[first + threadIdx.x] = sum;
}
// Four samples a thread, side by side.
__global__ void __launch_bounds__(HEARD) room_four(const float *__restrict__ sound, float4 *__restrict__ out, Response response) {
    __shared__ float4 own[HEARD + TAPS / 4];
    hear<4 * HEARD + TAPS>(reinterpret_cast<float *>(own), sound, blockIdx.x * 4 * HEARD);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), a = own[threadIdx.x];
#pragma unroll 4
    for (int k = 0; k < TAPS; k += 4) {
        const float4 z = own[threadIdx.x + k / 4 + 1];
        const float t0 = response.taps[k], t1 = response.taps[k + 1], t2 = response.taps[k + 2], t3 = response.taps[k + 3];
        sum.x += t0 * a.x + t1 * a.y + t2 * a.z + t3 * a.w;
        sum.y += t0 * a.y + t1 * a.z + t2 * a.w + t3 * z.x;
        sum.z += t0 * a.z + t1 * a.w + t2 * z.x + t3 * z.y;
        sum.w += t0 * a.w + t1 * z.x + t2 * z.y + t3 * z.z;
        a = z;
    }
    out[blockIdx.x * HEARD + threadIdx.x] = sum;
}
// Eight samples a thread, side by side, which slide along what a thread has of the sound.
__global__ void __launch_bounds__(HEARD) room_slid(const float *__restrict__ sound, float *__restrict__ out, Response response) {
    __shared__ float own[8 * HEARD + TAPS + (8 * HEARD + TAPS) / 8];
    const int first = blockIdx.x * 8 * HEARD;
    for (int k = threadIdx.x; k < 8 * HEARD + TAPS; k += HEARD) own[k + k / 8] = sound[first + k];
    __syncthreads();
    float sums[8] = {}, window[16];
    const float *at = own + threadIdx.x * 9;
#pragma unroll
    for (int k = 0; k < 8; k++) window[k] = at[k];
    for (int k = 0; k < TAPS; k += 8) {
        at += 9;
#pragma unroll
        for (int s = 0; s < 8; s++) window[8 + s] = at[s];
#pragma unroll
        for (int t = 0; t < 8; t++)
#pragma unroll
            for (int s = 0; s < 8; s++) sums[s] += response.taps[k + t] * window[t + s];
#pragma unroll
        for (int s = 0; s < 8; s++) window[s] = window[8 + s];
    }
    float4 *to = reinterpret_cast<float4 *>(out + first) + 2 * threadIdx.x;
    to[0] = make_float4(sums[0], sums[1], sums[2], sums[3]), to[1] = make_float4(sums[4], sums[5], sums[6], sums[7]);
}

Study heard("room_response_sample_a_thread", "audio", 1 << 23, "a response of 256 taps for 8388608 samples of sound",
    "each product of a sample and a tap loads the sample from shared memory",
    {{"four", "four samples a thread from vectors of four", {"shared_memory_bandwidth"}}, {"slid", "eight samples a thread from a window in registers", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *sound = b.random<float>(n + TAPS);
        float *out = b.output<float>(n);
        Response response;
        for (int k = 0; k < TAPS; k++) response.taps[k] = static_cast<float>(hash(k) % 2001) * 1e-5f - 0.01f;
        return {{"flawed", launch(room, n / HEARD, HEARD, 0, sound, out, response)}, {"four", launch(room_four, n / HEARD / 4, HEARD, 0, sound, reinterpret_cast<float4 *>(out), response)},
            {"slid", launch(room_slid, n / HEARD / 8, HEARD, 0, sound, out, response)}};
    });

// --- points of poses: without a flaw ---

// A pose a quaternion of length one.
__global__ void __launch_bounds__(256) turned_points(const float4 *__restrict__ poses, const float4 *__restrict__ points, float4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 q = poses[i], p = points[i];
    const float x = 2.0f * (q.y * p.z - q.z * p.y), y = 2.0f * (q.z * p.x - q.x * p.z), z = 2.0f * (q.x * p.y - q.y * p.x);
    out[i] = make_float4(p.x + q.w * x + q.y * z - q.z * y, p.y + q.w * y + q.z * x - q.x * z, p.z + q.w * z + q.x * y - q.y * x, p.w);
}

Study posed("sound_points_turned_by_poses", "robotics", 1 << 22, "4194304 points, each turned by a pose of its own", "", {}, [](Buffers &b, long n) -> Sides {
    const float4 *poses = reinterpret_cast<const float4 *>(b.random<float>(n * 4)), *points = reinterpret_cast<const float4 *>(b.random<float>(n * 4));
    return {{"sound", launch(turned_points, blocks(n, 256), 256, 0, poses, points, reinterpret_cast<float4 *>(b.output<float>(n * 4)), n)}};
});

}  // namespace
