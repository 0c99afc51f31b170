// Radar echoes, wavelets, textures, reflections, scans, windows, heights, and maps of games.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- radar echoes against the mean of sixteen cells to each side, four next to them left out ---

constexpr int GUARD = 4, TRAINING = 16, MARGIN = 32, REACH = GUARD + TRAINING;

__global__ void __launch_bounds__(256) echoes(const float *__restrict__ power, float *__restrict__ out, int cells) {
    const int x = blockIdx.x * 256 + threadIdx.x;
    const float *line = power + static_cast<size_t>(blockIdx.y) * (cells + 2 * MARGIN) + MARGIN;
    float sum = 0.0f;
#pragma unroll
    for (int k = GUARD + 1; k <= REACH; k++) sum += line[x - k] + line[x + k];
    out[static_cast<size_t>(blockIdx.y) * cells + x] = line[x] * (2 * TRAINING) / sum;
}
__global__ void __launch_bounds__(256) echoes_tile(const float *__restrict__ power, float *__restrict__ out, int cells) {
    __shared__ float tile[256 + 2 * REACH];
    const int first = blockIdx.x * 256, t = threadIdx.x;
    const float *line = power + static_cast<size_t>(blockIdx.y) * (cells + 2 * MARGIN) + MARGIN;
    for (int k = t; k < 256 + 2 * REACH; k += 256) tile[k] = line[first + k - REACH];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int k = GUARD + 1; k <= REACH; k++) sum += tile[t + REACH - k] + tile[t + REACH + k];
    out[static_cast<size_t>(blockIdx.y) * cells + first + t] = tile[t + REACH] * (2 * TRAINING) / sum;
}
// Four neighbours a thread from eleven vectors: the sum moves on by two cells in and two out.
__global__ void __launch_bounds__(256) echoes_moving(const float *__restrict__ power, float *__restrict__ out, int cells) {
    const int x = (blockIdx.x * 256 + threadIdx.x) * 4;
    const float4 *line = reinterpret_cast<const float4 *>(power + static_cast<size_t>(blockIdx.y) * (cells + 2 * MARGIN) + MARGIN + x - REACH);
    float v[2 * REACH + 4];
#pragma unroll
    for (int k = 0; k < (2 * REACH + 4) / 4; k++) {
        const float4 four = line[k];
        v[4 * k] = four.x, v[4 * k + 1] = four.y, v[4 * k + 2] = four.z, v[4 * k + 3] = four.w;
    }
    float sum = 0.0f, result[4];
#pragma unroll
    for (int k = 0; k < TRAINING; k++) sum += v[k] + v[k + REACH + GUARD + 1];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        result[k] = v[k + REACH] * (2 * TRAINING) / sum;
        if (k < 3) sum += v[k + TRAINING] - v[k] + v[k + 2 * REACH + 1] - v[k + REACH + GUARD + 1];
    }
    *reinterpret_cast<float4 *>(out + static_cast<size_t>(blockIdx.y) * cells + x) = make_float4(result[0], result[1], result[2], result[3]);
}

Study radar("radar_echoes_32_cells_read_for_each", "radar", 4096, "echoes of 4096 lines of 4096 cells against the mean of 32 cells around",
    "each thread loads the 32 cells that it adds up: each cell is asked for 33 times",
    {{"tile", "cells of the block in shared memory", {"redundant_loads"}}, {"moving", "four cells a thread, whose sum moves on", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *power = b.random<float>(n * (n + 2 * MARGIN), 0.5, 2.0);
        float *out = b.output<float>(n * n);
        return {{"flawed", launch(echoes, dim3(n / 256, n), 256, 0, power, out, n)}, {"tile", launch(echoes_tile, dim3(n / 256, n), 256, 0, power, out, n)},
            {"moving", launch(echoes_moving, dim3(n / 1024, n), 256, 0, power, out, n)}};
    });

// --- wavelets of blocks of 32 x 32 pixels, a warp a block ---

__device__ __forceinline__ void wavelet(float (&v)[32]) {
#pragma unroll
    for (int length = 32; length > 1; length /= 2) {
        float sums[16], differences[16];
#pragma unroll
        for (int k = 0; k < 16; k++)
            if (k < length / 2) sums[k] = (v[2 * k] + v[2 * k + 1]) * 0.70710678f, differences[k] = (v[2 * k] - v[2 * k + 1]) * 0.70710678f;
#pragma unroll
        for (int k = 0; k < 16; k++)
            if (k < length / 2) v[k] = sums[k], v[k + length / 2] = differences[k];
    }
}
struct Plain {
    static constexpr int PITCH = 32;
    __device__ static int at(int y, int x) { return y * 32 + x; }
};
struct Padded {
    static constexpr int PITCH = 33;
    __device__ static int at(int y, int x) { return y * 33 + x; }
};
struct Crossed {
    static constexpr int PITCH = 32;
    __device__ static int at(int y, int x) { return y * 32 + (x ^ y); }
};
template <typename Layout>
__global__ void __launch_bounds__(128) wavelets(const float *__restrict__ picture, float *__restrict__ out, int width) {
    __shared__ float tiles[4][32 * Layout::PITCH];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t corner = static_cast<size_t>(blockIdx.y) * 32 * width + (blockIdx.x * 4 + warp) * 32;
    float *tile = tiles[warp], v[32];
#pragma unroll
    for (int y = 0; y < 32; y++) v[y] = picture[corner + static_cast<size_t>(y) * width + lane];
    wavelet(v);
#pragma unroll
    for (int y = 0; y < 32; y++) tile[Layout::at(y, lane)] = v[y];
    __syncwarp();
#pragma unroll
    for (int x = 0; x < 32; x++) v[x] = tile[Layout::at(lane, x)];
    wavelet(v);
    __syncwarp();
#pragma unroll
    for (int x = 0; x < 32; x++) tile[Layout::at(lane, x)] = v[x];
    __syncwarp();
#pragma unroll
    for (int y = 0; y < 32; y++) out[corner + static_cast<size_t>(y) * width + lane] = tile[Layout::at(y, lane)];
}

Study blocks_of_32("wavelet_blocks_rows_32_words_apart", "compression", 4096, "wavelets of 16384 blocks of 32 x 32 pixels",
    "for rows, all lanes of a warp take words of one bank",
    {{"padded", "a row of 33 words", {"shared_bank_conflicts"}}, {"crossed", "columns exchanged by the bits of the row", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *picture = b.random<float>(n * n, 0.0, 1.0);
        float *out = b.output<float>(n * n);
        const auto side = [=](auto kernel) { return launch(kernel, dim3(n / 128, n / 32), 128, 0, picture, out, n); };
        return {{"flawed", side(wavelets<Plain>)}, {"padded", side(wavelets<Padded>)}, {"crossed", side(wavelets<Crossed>)}};
    });

// --- patterns of eight neighbours, weighted by contrast, counted for tiles ---

constexpr int TILE = 64;

__device__ __forceinline__ void pattern(const unsigned char *__restrict__ at, int pitch, int &code, int &contrast) {
    const int own = at[0];
    const int around[8] = {at[-pitch - 1], at[-pitch], at[-pitch + 1], at[1], at[pitch + 1], at[pitch], at[pitch - 1], at[-1]};
    code = 0, contrast = 1;
#pragma unroll
    for (int k = 0; k < 8; k++) code |= (around[k] >= own) << k, contrast += abs(around[k] - own);
}
__global__ void __launch_bounds__(256) patterns(const unsigned char *__restrict__ picture, int *__restrict__ out, int pitch) {
    __shared__ int bins[256];
    const int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    const unsigned char *tile = picture + static_cast<size_t>(blockIdx.y * TILE + 1) * pitch + blockIdx.x * TILE + 4;
#pragma unroll 2
    for (int k = t; k < TILE * TILE; k += 256) {
        int code, contrast;
        pattern(tile + k / TILE * pitch + k % TILE, pitch, code, contrast);
        atomicAdd(&bins[code], contrast);
    }
    __syncthreads();
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + t] = bins[t];
}
// Sixteen copies side by side: lanes with the same pattern seldom meet.
__global__ void __launch_bounds__(256) patterns_copies(const unsigned char *__restrict__ picture, int *__restrict__ out, int pitch) {
    __shared__ int bins[256][17];
    const int t = threadIdx.x;
    for (int k = 0; k < 17; k++) bins[t][k] = 0;
    __syncthreads();
    const unsigned char *tile = picture + static_cast<size_t>(blockIdx.y * TILE + 1) * pitch + blockIdx.x * TILE + 4;
#pragma unroll 2
    for (int k = t; k < TILE * TILE; k += 256) {
        int code, contrast;
        pattern(tile + k / TILE * pitch + k % TILE, pitch, code, contrast);
        atomicAdd(&bins[code][t % 16], contrast);
    }
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 16; k++) sum += bins[t][k];
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + t] = sum;
}
// The pattern of the first lane, most often a flat piece, is added up by the warp; the others add as before.
__global__ void __launch_bounds__(256) patterns_warps(const unsigned char *__restrict__ picture, int *__restrict__ out, int pitch) {
    __shared__ int bins[256];
    const int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    const unsigned char *tile = picture + static_cast<size_t>(blockIdx.y * TILE + 1) * pitch + blockIdx.x * TILE + 4;
#pragma unroll 2
    for (int k = t; k < TILE * TILE; k += 256) {
        int code, contrast;
        pattern(tile + k / TILE * pitch + k % TILE, pitch, code, contrast);
        const int flat = __reduce_add_sync(~0u, code == 255 ? contrast : 0);
        if (t % 32 == 0 && flat) atomicAdd(&bins[255], flat);
        if (code != 255) atomicAdd(&bins[code], contrast);
    }
    __syncthreads();
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + t] = bins[t];
}

Study textures("local_patterns_lanes_meet_on_flat_places", "vision", 4096, "patterns of eight neighbours weighted by contrast, counted for tiles of 64 x 64 pixels of a picture of 4096 x 4096",
    "flat places have one pattern: most lanes of a warp add to the same word of shared memory",
    {{"copies", "sixteen copies of the counts", {"shared_atomics"}}, {"warps", "the flat pattern added up by the warp", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const long pitch = n + 8;
        std::vector<unsigned char> pixels(pitch * (n + 2));
        for (long y = 0; y < n + 2; y++)
            for (long x = 0; x < pitch; x++) {
                const unsigned place = static_cast<unsigned>(y / 24 * 4096 + x / 24), noise = hash(static_cast<unsigned>(y * pitch + x));
                pixels[y * pitch + x] = static_cast<unsigned char>(hash(place) % 200 + (noise % 24 == 0 ? noise >> 8 & 31 : 0));
            }
        const unsigned char *picture = b.copy(pixels);
        int *out = b.output<int>(n / TILE * (n / TILE) * 256);
        b.tolerance = 0.0;
        const auto side = [=](auto kernel) { return launch(kernel, dim3(n / TILE, n / TILE), 256, 0, picture, out, pitch); };
        return {{"flawed", side(patterns)}, {"copies", side(patterns_copies)}, {"warps", side(patterns_warps)}};
    });

// --- reflections looked up in the six faces of a cube ---

constexpr int FACE = 256;

__device__ __forceinline__ float3 decoded(unsigned texel) {
    return make_float3(powf((texel & 255) / 255.0f, 2.2f), powf((texel >> 8 & 255) / 255.0f, 2.2f), powf((texel >> 16 & 255) / 255.0f, 2.2f));
}
__device__ __forceinline__ float4 sampled(const unsigned *__restrict__ faces, int face, float u, float v) {
    const float x = fminf(fmaxf((u * 0.5f + 0.5f) * FACE - 0.5f, 0.0f), FACE - 1.001f), y = fminf(fmaxf((v * 0.5f + 0.5f) * FACE - 0.5f, 0.0f), FACE - 1.001f);
    const int column = static_cast<int>(x), row = static_cast<int>(y);
    const float fx = x - column, fy = y - row;
    const unsigned *at = faces + (face * FACE + row) * FACE + column;
    const float3 a = decoded(at[0]), c = decoded(at[1]), d = decoded(at[FACE]), e = decoded(at[FACE + 1]);
    const float wa = (1 - fx) * (1 - fy), wc = fx * (1 - fy), wd = (1 - fx) * fy, we = fx * fy;
    return make_float4(a.x * wa + c.x * wc + d.x * wd + e.x * we, a.y * wa + c.y * wc + d.y * wd + e.y * we, a.z * wa + c.z * wc + d.z * wd + e.z * we, 1.0f);
}
__global__ void __launch_bounds__(256) reflections(const float4 *__restrict__ directions, const unsigned *__restrict__ faces, float4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 d = directions[i];
    const float ax = fabsf(d.x), ay = fabsf(d.y), az = fabsf(d.z);
    if (ax >= ay && ax >= az) {
        if (d.x > 0) out[i] = sampled(faces, 0, -d.z / ax, -d.y / ax);
        else out[i] = sampled(faces, 1, d.z / ax, -d.y / ax);
    } else if (ay >= az) {
        if (d.y > 0) out[i] = sampled(faces, 2, d.x / ay, d.z / ay);
        else out[i] = sampled(faces, 3, d.x / ay, -d.z / ay);
    } else {
        if (d.z > 0) out[i] = sampled(faces, 4, d.x / az, -d.y / az);
        else out[i] = sampled(faces, 5, -d.x / az, -d.y / az);
    }
}
// Only which face and where on it is chosen by branches.
__global__ void __launch_bounds__(256) reflections_behind(const float4 *__restrict__ directions, const unsigned *__restrict__ faces, float4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 d = directions[i];
    const float ax = fabsf(d.x), ay = fabsf(d.y), az = fabsf(d.z);
    int face;
    float u, v, longest;
    if (ax >= ay && ax >= az) face = d.x > 0 ? 0 : 1, longest = ax, u = d.x > 0 ? -d.z : d.z, v = -d.y;
    else if (ay >= az) face = d.y > 0 ? 2 : 3, longest = ay, u = d.x, v = d.y > 0 ? d.z : -d.z;
    else face = d.z > 0 ? 4 : 5, longest = az, u = d.z > 0 ? d.x : -d.x, v = -d.y;
    out[i] = sampled(faces, face, u / longest, v / longest);
}
// Directions sorted by their face beforehand, results put back: warps go one way.
__global__ void __launch_bounds__(256) reflections_sorted(const float4 *__restrict__ directions, const int *__restrict__ order, const unsigned *__restrict__ faces, float4 *__restrict__ out, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = order[k];
    const float4 d = directions[i];
    const float ax = fabsf(d.x), ay = fabsf(d.y), az = fabsf(d.z);
    if (ax >= ay && ax >= az) {
        if (d.x > 0) out[i] = sampled(faces, 0, -d.z / ax, -d.y / ax);
        else out[i] = sampled(faces, 1, d.z / ax, -d.y / ax);
    } else if (ay >= az) {
        if (d.y > 0) out[i] = sampled(faces, 2, d.x / ay, d.z / ay);
        else out[i] = sampled(faces, 3, d.x / ay, -d.z / ay);
    } else {
        if (d.z > 0) out[i] = sampled(faces, 4, d.x / az, -d.y / az);
        else out[i] = sampled(faces, 5, -d.x / az, -d.y / az);
    }
}

Study cube("reflections_sampled_in_six_branches", "rendering", 1 << 21, "2097152 reflections looked up in the faces of a cube of 256 x 256 texels",
    "each face has a branch of its own with the whole look-up in it, and lanes of a warp look in all directions",
    {{"behind", "branches choose face and place, one look-up behind them", {"branch_divergence"}}, {"sorted", "directions taken in the order of their faces", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(n);
        std::vector<int> keys(n), order(n);
        const auto part = [](unsigned k) { return (hash(k) >> 8) / 8388608.0f - 1.0f; };
        for (unsigned i = 0; i < static_cast<unsigned>(n); i++) {
            const float x = part(i * 3), y = part(i * 3 + 1), z = part(i * 3 + 2), ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
            list[i] = {x, y, z, 0.0f}, order[i] = static_cast<int>(i);
            keys[i] = ax >= ay && ax >= az ? (x > 0 ? 0 : 1) : ay >= az ? (y > 0 ? 2 : 3) : z > 0 ? 4 : 5;
        }
        std::stable_sort(order.begin(), order.end(), [&](int a, int z) { return keys[a] < keys[z]; });
        const float4 *directions = b.copy(list);
        const int *by_face = b.copy(order);
        const unsigned *faces = b.random<unsigned>(6 * FACE * FACE, 0, 4294967295.0);
        float *out = b.output<float>(n * 4);
        float4 *colours = reinterpret_cast<float4 *>(out);
        b.tolerance = 1e-3;
        return {{"flawed", launch(reflections, blocks(n, 256), 256, 0, directions, faces, colours, n)}, {"behind", launch(reflections_behind, blocks(n, 256), 256, 0, directions, faces, colours, n)},
            {"sorted", launch(reflections_sorted, blocks(n, 256), 256, 0, directions, by_face, faces, colours, n)}};
    });

// --- densities of a scan counted, 16384 values a block ---

constexpr int BINS = 128, WORDS = 64;

__global__ void __launch_bounds__(128) densities(const unsigned *__restrict__ values, unsigned *__restrict__ out) {
    extern __shared__ unsigned counts[];
    const int t = threadIdx.x;
    for (int bin = 0; bin < BINS; bin++) counts[bin * 128 + t] = 0;
    const unsigned *own = values + static_cast<size_t>(blockIdx.x) * 128 * WORDS;
#pragma unroll 4
    for (int k = 0; k < WORDS; k++) {
        const unsigned two = own[k * 128 + t];
        counts[(two >> 5 & 127) * 128 + t]++;
        counts[(two >> 21 & 127) * 128 + t]++;
    }
    __syncthreads();
    unsigned sum = 0;
    for (int k = 0; k < 128; k++) sum += counts[t * 128 + (t + k) % 128];
    out[blockIdx.x * BINS + t] = sum;
}
__global__ void __launch_bounds__(128) densities_bytes(const unsigned *__restrict__ values, unsigned *__restrict__ out) {
    __shared__ unsigned counts[BINS][33];
    const int t = threadIdx.x;
    for (int bin = t; bin < BINS * 33; bin += 128) counts[bin / 33][bin % 33] = 0;
    __syncthreads();
    const unsigned *own = values + static_cast<size_t>(blockIdx.x) * 128 * WORDS;
#pragma unroll 4
    for (int k = 0; k < WORDS; k++) {
        const unsigned two = own[k * 128 + t];
        reinterpret_cast<unsigned char *>(counts[two >> 5 & 127])[t]++;
        reinterpret_cast<unsigned char *>(counts[two >> 21 & 127])[t]++;
    }
    __syncthreads();
    unsigned even = 0, odd = 0;
    for (int k = 0; k < 32; k++) even += counts[t][k] & 0x00ff00ff, odd += counts[t][k] >> 8 & 0x00ff00ff;
    out[blockIdx.x * BINS + t] = (even & 65535) + (even >> 16) + (odd & 65535) + (odd >> 16);
}
__global__ void __launch_bounds__(128) densities_warps(const unsigned *__restrict__ values, unsigned *__restrict__ out) {
    __shared__ unsigned counts[4][BINS];
    const int t = threadIdx.x, warp = t / 32;
    for (int k = 0; k < 4; k++) counts[k][t] = 0;
    __syncthreads();
    const unsigned *own = values + static_cast<size_t>(blockIdx.x) * 128 * WORDS;
#pragma unroll 4
    for (int k = 0; k < WORDS; k++) {
        const unsigned two = own[k * 128 + t];
        atomicAdd(&counts[warp][two >> 5 & 127], 1u);
        atomicAdd(&counts[warp][two >> 21 & 127], 1u);
    }
    __syncthreads();
    out[blockIdx.x * BINS + t] = counts[0][t] + counts[1][t] + counts[2][t] + counts[3][t];
}

Study scans("scan_densities_counted_in_words_of_each_thread", "medical imaging", 4096, "densities of 67108864 values counted in 128 classes for each 16384",
    "each thread has counts of its own of 32 bits each: 64 KiB of shared memory leave room for twelve warps",
    {{"bytes", "counts of a byte each", {"low_occupancy"}}, {"warps", "counts for a warp, added to by atomics", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *values = b.random<unsigned>(n * 128 * WORDS, 0, 4294967295.0);
        unsigned *out = b.output<unsigned>(n * BINS);
        b.tolerance = 0.0;
        return {{"flawed", launch(densities, n, 128, BINS * 128 * sizeof(unsigned), values, out)}, {"bytes", launch(densities_bytes, n, 128, 0, values, out)}, {"warps", launch(densities_warps, n, 128, 0, values, out)}};
    });

// --- variances of windows of 9 x 9 pixels ---

constexpr int HALF = 4;

// The picture has a margin of HALF pixels around; SIDE threads a side load SIDE pixels, and those inside have a window.
template <int SIDE>
__global__ void __launch_bounds__(SIDE *SIDE) variances(const float *__restrict__ picture, float *__restrict__ out, int width) {
    __shared__ float tile[SIDE][SIDE + 1];
    constexpr int INSIDE = SIDE - 2 * HALF;
    const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * INSIDE + tx, y = blockIdx.y * INSIDE + ty;
    tile[ty][tx] = picture[y * (width + 2 * HALF) + x];
    __syncthreads();
    if (tx < HALF || tx >= SIDE - HALF || ty < HALF || ty >= SIDE - HALF) return;
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int dy = -HALF; dy <= HALF; dy++)
#pragma unroll
        for (int dx = -HALF; dx <= HALF; dx++) {
            const float v = tile[ty + dy][tx + dx];
            sum += v, squares += v * v;
        }
    const float mean = sum / 81.0f;
    out[(y - HALF) * width + x - HALF] = squares / 81.0f - mean * mean;
}
// All threads have a window; they load the margin besides.
__global__ void __launch_bounds__(256) variances_all(const float *__restrict__ picture, float *__restrict__ out, int width) {
    __shared__ float tile[24][25];
    const int tx = threadIdx.x, ty = threadIdx.y;
    for (int k = ty * 16 + tx; k < 24 * 24; k += 256) tile[k / 24][k % 24] = picture[(blockIdx.y * 16 + k / 24) * (width + 2 * HALF) + blockIdx.x * 16 + k % 24];
    __syncthreads();
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int dy = 0; dy <= 2 * HALF; dy++)
#pragma unroll
        for (int dx = 0; dx <= 2 * HALF; dx++) {
            const float v = tile[ty + dy][tx + dx];
            sum += v, squares += v * v;
        }
    const float mean = sum / 81.0f;
    out[(blockIdx.y * 16 + ty) * width + blockIdx.x * 16 + tx] = squares / 81.0f - mean * mean;
}

Study windows("window_variances_threads_of_the_margin_leave", "photography", 2400, "variances of windows of 9 x 9 pixels of a picture of 2400 x 2400",
    "a thread loads a pixel: those of the margin leave after that, three of four in a block of 16 x 16",
    {{"larger", "blocks of 32 x 32 threads", {"idle_threads"}}, {"all", "all threads have a window and load the margin besides", {"idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *picture = b.random<float>((n + 2 * HALF) * (n + 2 * HALF), 0.0, 1.0);
        float *out = b.output<float>(n * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(variances<16>, dim3(n / 8, n / 8), dim3(16, 16), 0, picture, out, n)}, {"larger", launch(variances<32>, dim3(n / 24, n / 24), dim3(32, 32), 0, picture, out, n)},
            {"all", launch(variances_all, dim3(n / 16, n / 16), dim3(16, 16), 0, picture, out, n)}};
    });

// --- the highest of a laser's points in each cell of the ground ---

constexpr int GROUND = 1024;

__device__ __forceinline__ int cell_of(float4 point) { return static_cast<int>(point.y) * GROUND + static_cast<int>(point.x); }

__global__ void __launch_bounds__(256) heights(const float4 *__restrict__ points, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 point = points[i];
    atomicMax(out + cell_of(point), __float_as_int(point.z));  // heights are positive: their bits have their order
}
__global__ void __launch_bounds__(256) heights_look(const float4 *__restrict__ points, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 point = points[i];
    int *cell = out + cell_of(point);
    const int height = __float_as_int(point.z);
    if (*static_cast<volatile int *>(cell) < height) atomicMax(cell, height);
}
// Points of a sweep follow one another: runs of lanes in a cell have one atomic.
__global__ void __launch_bounds__(256) heights_runs(const float4 *__restrict__ points, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const float4 point = points[min(i, count - 1)];
    const int cell = cell_of(point);
    int height = __float_as_int(point.z);
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_down_sync(~0u, height, offset), where = __shfl_down_sync(~0u, cell, offset);
        if (lane + offset < 32 && where == cell) height = max(height, other);
    }
    const int before = __shfl_up_sync(~0u, cell, 1);
    if (lane == 0 || before != cell) atomicMax(out + cell, height);
}

Study ground("ground_heights_an_atomic_each_point", "geography", 1 << 23, "the highest of 8388608 points of a laser in each of 1024 x 1024 cells",
    "an atomic maximum for each point, though points of a sweep follow one another in a cell",
    {{"look", "a look at the cell first", {"global_atomics"}}, {"runs", "runs of lanes in a cell have one atomic", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(n);
        const long each = std::max(1L, n / GROUND);
        for (long i = 0; i < n; i++) {
            const unsigned r = hash(static_cast<unsigned>(i));
            const float x = static_cast<float>(i % each) * (static_cast<float>(GROUND) - 1.0f) / static_cast<float>(each), y = static_cast<float>(i / each % GROUND);
            list[i] = {x, y, 1.0f + (r >> 8) * (30.0f / 16777216.0f), 0.0f};
        }
        const float4 *points = b.copy(list);
        int *out = b.output<int>(GROUND * GROUND, true);
        b.tolerance = 0.0;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, points, out, n); };
        return {{"flawed", side(heights)}, {"look", side(heights_look)}, {"runs", side(heights_runs)}};
    });

// --- how far the units of a game have influence ---

constexpr int RADIUS = 12, BIN = 16;

__device__ __forceinline__ float influence(float4 unit, int x, int y) {
    const float dx = x - unit.x, dy = y - unit.y;
    return unit.z * fmaxf(0.0f, 1.0f - sqrtf(dx * dx + dy * dy) * (1.0f / RADIUS));
}
__global__ void __launch_bounds__(128) influences(const float4 *__restrict__ units, float *__restrict__ out, int width) {
    const float4 unit = units[blockIdx.x];
    const int left = static_cast<int>(unit.x) - RADIUS, top = static_cast<int>(unit.y) - RADIUS;
    for (int y = top + threadIdx.x / 32; y <= top + 2 * RADIUS + 1; y += 4) {
        const int x = left + threadIdx.x % 32;
        if (x < 0 || x >= width || y < 0 || y >= width || x > left + 2 * RADIUS + 1) continue;
        const float more = influence(unit, x, y);
        if (more > 0.0f) atomicAdd(out + y * width + x, more);
    }
}
// Units sorted by bins of 16 x 16 cells: a cell asks those of nine bins.
__global__ void __launch_bounds__(256) influences_gathered(const float4 *__restrict__ units, const int *__restrict__ starts, float *__restrict__ out, int width) {
    const int x = blockIdx.x * BIN + threadIdx.x, y = blockIdx.y * BIN + threadIdx.y, bins = width / BIN;
    float sum = 0.0f;
    for (int by = max(0, static_cast<int>(blockIdx.y) - 1); by <= min(bins - 1, static_cast<int>(blockIdx.y) + 1); by++) {
        const int first = starts[by * bins + max(0, static_cast<int>(blockIdx.x) - 1)], end = starts[by * bins + min(bins - 1, static_cast<int>(blockIdx.x) + 1) + 1];
        for (int k = first; k < end; k++) sum += influence(units[k], x, y);
    }
    out[y * width + x] = sum;
}
// The same with units in shared memory and two cells a thread.
__global__ void __launch_bounds__(128) influences_staged(const float4 *__restrict__ units, const int *__restrict__ starts, float *__restrict__ out, int width) {
    __shared__ float4 near[128];
    const int x = blockIdx.x * BIN + threadIdx.x, y = blockIdx.y * BIN + threadIdx.y, bins = width / BIN, t = threadIdx.y * 16 + threadIdx.x;
    float upper = 0.0f, lower = 0.0f;
    for (int by = max(0, static_cast<int>(blockIdx.y) - 1); by <= min(bins - 1, static_cast<int>(blockIdx.y) + 1); by++) {
        const int first = starts[by * bins + max(0, static_cast<int>(blockIdx.x) - 1)], end = starts[by * bins + min(bins - 1, static_cast<int>(blockIdx.x) + 1) + 1];
        for (int piece = first; piece < end; piece += 128) {
            const int here = min(128, end - piece);
            if (t < here) near[t] = units[piece + t];
            __syncthreads();
            for (int k = 0; k < here; k++) upper += influence(near[k], x, y), lower += influence(near[k], x, y + 8);
            __syncthreads();
        }
    }
    out[y * width + x] = upper, out[(y + 8) * width + x] = lower;
}

Study game_map("influence_of_units_added_by_atomics", "games", 65536, "influence of 65536 units on the cells of a map of 2048 x 2048 up to twelve cells around",
    "an atomic addition for each unit and cell that it reaches",
    {{"gathered", "a cell adds up the units of nine bins around it", {"global_atomics"}}, {"staged", "the same with units in shared memory, two cells a thread", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = n > 4096 ? 2048 : 64, bins = width / BIN;
        std::vector<float4> list(n);
        const auto unit = [](unsigned k) { return (hash(k) >> 8) / 16777216.0f; };
        for (unsigned i = 0; i < static_cast<unsigned>(n); i++) list[i] = {unit(i * 3) * (width - 1), unit(i * 3 + 1) * (width - 1), 0.5f + unit(i * 3 + 2), 0.0f};
        const auto bin = [=](float4 u) { return static_cast<int>(u.y) / BIN * bins + static_cast<int>(u.x) / BIN; };
        std::sort(list.begin(), list.end(), [&](float4 a, float4 z) { return bin(a) < bin(z); });
        std::vector<int> starts(bins * bins + 1);
        for (float4 u : list) starts[bin(u) + 1]++;
        for (int k = 0; k < bins * bins; k++) starts[k + 1] += starts[k];
        const float4 *units = b.copy(list);
        const int *from = b.copy(starts);
        float *out = b.output<float>(static_cast<size_t>(width) * width, true);
        b.tolerance = 1e-3;
        const dim3 grid(bins, bins);
        return {{"flawed", launch(influences, n, 128, 0, units, out, width)}, {"gathered", launch(influences_gathered, grid, dim3(16, 16), 0, units, from, out, width)},
            {"staged", launch(influences_staged, grid, dim3(16, 8), 0, units, from, out, width)}};
    });

// --- how steep a picture is: without a flaw ---

__global__ void __launch_bounds__(256) steepness(const float *__restrict__ picture, float *__restrict__ out, int width, int pitch) {
    const int x = (blockIdx.x * 32 + threadIdx.x) * 4, y = blockIdx.y * 8 + threadIdx.y;
    const float *at = picture + static_cast<size_t>(y) * pitch + x;
    const float4 own = *reinterpret_cast<const float4 *>(at), below = *reinterpret_cast<const float4 *>(at + pitch);
    const float after = at[4];
    const auto steep = [](float here, float right, float down) { return fabsf(right - here) + fabsf(down - here); };
    *reinterpret_cast<float4 *>(out + static_cast<size_t>(y) * width + x) = make_float4(steep(own.x, own.y, below.x), steep(own.y, own.z, below.y), steep(own.z, own.w, below.z), steep(own.w, after, below.w));
}

Study steep("sound_steepness_of_a_picture", "vision", 8192, "how steep each of 8192 x 8192 pixels is", "", {}, [](Buffers &b, long n) -> Sides {
    const float *picture = b.random<float>((n + 4) * (n + 1));
    return {{"sound", launch(steepness, dim3(n / 128, n / 8), dim3(32, 8), 0, picture, b.output<float>(n * n), n, n + 4)}};
});

}  // namespace
