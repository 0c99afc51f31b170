// Video, games, hair and stars: grain of a film, predicted blocks, light of tiles, strands, frames of a telescope.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- grain added to a film: how much, depends on the light of a pixel ---

constexpr int GRAIN_SIDE = 128, CURVE_POINTS = 6;

struct GrainCurve {
    unsigned char strength[256];
    int from[CURVE_POINTS], base[CURVE_POINTS], slope[CURVE_POINTS];  // slopes in 1/65536
};
struct Film {
    const unsigned *pixels;  // four in a word
    const signed char *grain;
    int words, height;  // of a row; of a picture
};

__device__ __forceinline__ const unsigned *grain_of(const Film &f, int word, int row) {
    const unsigned block = hash(static_cast<unsigned>(row / 32 * 4099 + word / 8));  // each block of 32 x 32 begins elsewhere
    const int x = (block & 15) * 4 + word % 8 * 4, y = (block >> 8 & 63) + row % 32;
    return reinterpret_cast<const unsigned *>(f.grain + y * GRAIN_SIDE + x);
}
template <typename Strength>
__device__ __forceinline__ unsigned grained(unsigned four, unsigned grain, Strength strength) {
    unsigned out = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int light = four >> 8 * k & 255, g = static_cast<signed char>(grain >> 8 * k);
        out |= static_cast<unsigned>(min(max(light + (g * strength(light) + 32 >> 6), 16), 235)) << 8 * k;
    }
    return out;
}

__global__ void __launch_bounds__(256) add_grain(Film f, unsigned *__restrict__ out, const __grid_constant__ GrainCurve curve) {
    const int word = blockIdx.x * 64 + threadIdx.x % 64, row = blockIdx.y * 4 + threadIdx.x / 64;
    if (word >= f.words || row >= f.height) return;
    const size_t at = static_cast<size_t>(row) * f.words + word;
    out[at] = grained(f.pixels[at], *grain_of(f, word, row), [&](int light) { return static_cast<int>(curve.strength[light]); });
}
// A copy of the table in shared memory, for eight rows of each thread.
__global__ void __launch_bounds__(256) add_grain_shared(Film f, unsigned *__restrict__ out, const __grid_constant__ GrainCurve curve) {
    __shared__ unsigned char strength[256];
    strength[threadIdx.x] = curve.strength[threadIdx.x];
    __syncthreads();
    const int word = blockIdx.x * 64 + threadIdx.x % 64;
    if (word >= f.words) return;
#pragma unroll 4
    for (int k = 0; k < 8; k++) {
        const int row = blockIdx.y * 32 + k * 4 + threadIdx.x / 64;
        if (row >= f.height) return;
        const size_t at = static_cast<size_t>(row) * f.words + word;
        out[at] = grained(f.pixels[at], *grain_of(f, word, row), [&](int light) { return static_cast<int>(strength[light]); });
    }
}
// The curve's pieces are chosen by comparisons: constants that all lanes ask for together.
__global__ void __launch_bounds__(256) add_grain_pieces(Film f, unsigned *__restrict__ out, const __grid_constant__ GrainCurve curve) {
    const int word = blockIdx.x * 64 + threadIdx.x % 64, row = blockIdx.y * 4 + threadIdx.x / 64;
    if (word >= f.words || row >= f.height) return;
    const size_t at = static_cast<size_t>(row) * f.words + word;
    out[at] = grained(f.pixels[at], *grain_of(f, word, row), [&](int light) {
        int from = curve.from[0], base = curve.base[0], slope = curve.slope[0];
#pragma unroll
        for (int k = 1; k < CURVE_POINTS; k++)
            if (light >= curve.from[k]) from = curve.from[k], base = curve.base[k], slope = curve.slope[k];
        return base + ((light - from) * slope + 32768 >> 16);
    });
}

Study film_grain("film_grain_strength_from_constants", "video", 2160, "grain on 8 pictures of 3840 x 2160 bytes, by a curve of 256 strengths",
    "lanes look their pixels' strengths up in a table of constants, each at another place",
    {{"shared", "the table in shared memory, eight rows a thread", {"constant_divergence"}}, {"pieces", "six pieces of a curve, chosen by comparisons", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int words = static_cast<int>(n * 16 / 9 / 4), height = static_cast<int>(n * 8);
        GrainCurve curve{{}, {0, 24, 60, 110, 170, 220}, {20, 34, 70, 80, 66, 40}, {}};
        const int ends[CURVE_POINTS] = {34, 70, 80, 66, 40, 24};
        for (int k = 0; k < CURVE_POINTS; k++) curve.slope[k] = (ends[k] - curve.base[k]) * 65536 / ((k + 1 < CURVE_POINTS ? curve.from[k + 1] : 256) - curve.from[k]);
        for (int i = 0; i < 256; i++) {
            int k = CURVE_POINTS - 1;
            while (i < curve.from[k]) k--;
            curve.strength[i] = static_cast<unsigned char>(curve.base[k] + ((i - curve.from[k]) * curve.slope[k] + 32768 >> 16));
        }
        std::vector<unsigned> pixels(static_cast<size_t>(words) * height);  // slopes of light with noise
        for (size_t i = 0; i < pixels.size(); i++)
            for (int k = 0; k < 4; k++) pixels[i] |= (16 + (i % words / 7 + i / words / 9 + hash(static_cast<unsigned>(i * 4 + k)) % 40) % 220) << 8 * k;
        const Film f{b.copy(pixels), b.random<signed char>(GRAIN_SIDE * GRAIN_SIDE, -60, 60), words, height};
        unsigned *out = reinterpret_cast<unsigned *>(b.output<unsigned char>(pixels.size() * 4));
        b.tolerance = 0.0;
        const dim3 grid(blocks(words, 64), blocks(height, 4)), low(blocks(words, 64), blocks(height, 32));
        return {{"flawed", launch(add_grain, grid, 256, 0, f, out, curve)}, {"shared", launch(add_grain_shared, low, 256, 0, f, out, curve)}, {"pieces", launch(add_grain_pieces, grid, 256, 0, f, out, curve)}};
    });

// --- blocks of 4 x 4 pixels predicted from their edges, nine ways to do so ---

constexpr int WAYS = 9, MEAN = 14;  // edges: left from below (0 to 3), corner (4), above (5 to 12)

struct Taps {
    int at[4];
};
__host__ __device__ constexpr Taps three(int a, int b, int c) { return {{4 + a, 4 + b, 4 + b, 4 + c}}; }
__host__ __device__ constexpr Taps two(int a, int b) { return {{4 + a, 4 + a, 4 + b, 4 + b}}; }
// The four edges whose mean a pixel is; edges above have positive numbers, those at the left negative ones.
__host__ __device__ constexpr Taps taps_of(int way, int x, int y) {
    if (way == 0) return three(x + 1, x + 1, x + 1);
    if (way == 1) return three(-y - 1, -y - 1, -y - 1);
    if (way == 2) return {{MEAN, MEAN, MEAN, MEAN}};
    if (way == 3) return x + y == 6 ? three(7, 8, 8) : three(x + y + 1, x + y + 2, x + y + 3);
    if (way == 4) return three(x - y - 1, x - y, x - y + 1);
    if (way == 5 || way == 6) {
        const int sign = way == 5 ? 1 : -1, u = way == 5 ? x : y, v = way == 5 ? y : x, z = 2 * u - v, k = u - v / 2;
        if (z < -1) return three(-sign * v, -sign * (v - 1), -sign * (v - 2));
        if (z == -1) return three(-sign, 0, sign);
        return z % 2 ? three(sign * (k - 1), sign * k, sign * (k + 1)) : two(sign * k, sign * (k + 1));
    }
    if (way == 7) return y % 2 ? three(x + y / 2 + 1, x + y / 2 + 2, x + y / 2 + 3) : two(x + y / 2 + 1, x + y / 2 + 2);
    const int z = x + 2 * y, k = y + x / 2;
    if (z > 5) return three(-4, -4, -4);
    if (z == 5) return three(-3, -4, -4);
    return z % 2 ? three(-k - 1, -k - 2, -k - 3) : two(-k - 1, -k - 2);
}

struct Predicted {
    const uint4 *edges;  // thirteen bytes and the way
    const uint4 *residuals;
    const int *order;
    int count;
};
template <int WAY>
__device__ __forceinline__ void predict(const int (&edges)[16], int (&out)[16]) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const Taps t = taps_of(WAY, i % 4, i / 4);
        out[i] = edges[t.at[0]] + edges[t.at[1]] + edges[t.at[2]] + edges[t.at[3]] + 2 >> 2;
    }
}
template <bool Ordered>
__global__ void __launch_bounds__(128) predict_blocks(Predicted p, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= p.count) return;
    const int own = Ordered ? p.order[i] : i;
    const uint4 packed = p.edges[own];
    const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
    int edges[16], pixels[16];
#pragma unroll
    for (int k = 0; k < 16; k++) edges[k] = words[k / 4] >> k % 4 * 8 & 255;
    edges[MEAN] = edges[0] + edges[1] + edges[2] + edges[3] + edges[5] + edges[6] + edges[7] + edges[8] + 4 >> 3;
    switch (edges[13]) {
    case 0: predict<0>(edges, pixels); break;
    case 1: predict<1>(edges, pixels); break;
    case 2: predict<2>(edges, pixels); break;
    case 3: predict<3>(edges, pixels); break;
    case 4: predict<4>(edges, pixels); break;
    case 5: predict<5>(edges, pixels); break;
    case 6: predict<6>(edges, pixels); break;
    case 7: predict<7>(edges, pixels); break;
    default: predict<8>(edges, pixels);
    }
    const uint4 first = p.residuals[2 * static_cast<size_t>(own)], second = p.residuals[2 * static_cast<size_t>(own) + 1];
    const unsigned rest[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
    unsigned rows[4] = {};
#pragma unroll
    for (int k = 0; k < 16; k++) rows[k / 4] |= static_cast<unsigned>(min(max(pixels[k] + static_cast<short>(rest[k / 2] >> k % 2 * 16), 0), 255)) << k % 4 * 8;
    out[own] = {rows[0], rows[1], rows[2], rows[3]};
}
// A lane has a row of a block, whose edges it takes from shared memory where a table says: all ways are one.
__global__ void __launch_bounds__(128) predict_rows(Predicted p, const uint2 *__restrict__ table, unsigned *__restrict__ out) {
    __shared__ uint2 taps[WAYS * 4];  // of a row: sixteen numbers of four bits
    __shared__ unsigned char edges[32][20];
    if (threadIdx.x < WAYS * 4) taps[threadIdx.x] = table[threadIdx.x];
    const int slot = threadIdx.x / 4, row = threadIdx.x % 4, own = blockIdx.x * 32 + slot;
    const bool there = own < p.count;
    if (there) reinterpret_cast<unsigned *>(edges[slot])[row] = reinterpret_cast<const unsigned *>(p.edges)[static_cast<size_t>(own) * 4 + row];
    __syncthreads();
    if (there && row == 0) {
        const unsigned char *e = edges[slot];
        edges[slot][MEAN] = static_cast<unsigned char>(e[0] + e[1] + e[2] + e[3] + e[5] + e[6] + e[7] + e[8] + 4 >> 3);
    }
    __syncwarp();
    if (!there) return;
    const uint2 of_row = taps[edges[slot][13] * 4 + row], rest = reinterpret_cast<const uint2 *>(p.residuals)[static_cast<size_t>(own) * 4 + row];
    unsigned four = 0;
#pragma unroll
    for (int x = 0; x < 4; x++) {
        const unsigned at = (x < 2 ? of_row.x : of_row.y) >> x % 2 * 16;
        const int pixel = edges[slot][at & 15] + edges[slot][at >> 4 & 15] + edges[slot][at >> 8 & 15] + edges[slot][at >> 12 & 15] + 2 >> 2;
        four |= static_cast<unsigned>(min(max(pixel + static_cast<short>((x < 2 ? rest.x : rest.y) >> x % 2 * 16), 0), 255)) << x * 8;
    }
    out[static_cast<size_t>(own) * 4 + row] = four;
}

Study predicted_blocks("predicted_blocks_nine_ways_in_a_warp", "video", 1 << 21, "2097152 blocks of 4 x 4 pixels predicted from their edges in nine ways, residuals added",
    "a thread has a block, and goes another way than its neighbours in the warp",
    {{"ordered", "blocks in the order of their ways, by a list", {"branch_divergence"}}, {"table", "a row of a block a lane; a table says which edges are averaged", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<uint4> edges(n);
        std::vector<int> order;
        std::vector<std::vector<int>> of_way(WAYS);
        for (long i = 0; i < n; i++) {
            const unsigned s = static_cast<unsigned>(i) * 4;
            const unsigned drawn = hash(s + 3), way = drawn % 3 == 0 ? drawn / 3 % 3 : drawn / 3 % WAYS;  // the first three are commoner
            edges[i] = {hash(s), hash(s + 1), hash(s + 2), drawn >> 24 | way << 8};
            of_way[way].push_back(static_cast<int>(i));
        }
        for (const auto &some : of_way) order.insert(order.end(), some.begin(), some.end());
        std::vector<uint4> residuals(2 * n);
        for (long i = 0; i < 2 * n; i++) {
            const auto two_of = [&](int k) { const unsigned h = hash(static_cast<unsigned>(i * 4 + k)); return (static_cast<unsigned>(static_cast<int>(h % 41) - 20) & 0xffff) | static_cast<unsigned>(static_cast<int>(h / 64 % 41) - 20) << 16; };
            residuals[i] = {two_of(0), two_of(1), two_of(2), two_of(3)};
        }
        std::vector<uint2> table(WAYS * 4);
        for (int i = 0; i < WAYS * 16; i++) {
            const Taps t = taps_of(i / 16, i % 4, i / 4 % 4);
            unsigned &word = i % 4 < 2 ? table[i / 4].x : table[i / 4].y;
            for (int k = 0; k < 4; k++) word |= static_cast<unsigned>(t.at[k]) << (i % 2 * 16 + k * 4);
        }
        const Predicted p{b.copy(edges), b.copy(residuals), b.copy(order), static_cast<int>(n)};
        const uint2 *taps = b.copy(table);
        unsigned char *out = b.output<unsigned char>(n * 16);
        b.tolerance = 0.0;
        return {{"flawed", launch(predict_blocks<false>, blocks(n, 128), 128, 0, p, reinterpret_cast<uint4 *>(out))}, {"ordered", launch(predict_blocks<true>, blocks(n, 128), 128, 0, p, reinterpret_cast<uint4 *>(out))},
            {"table", launch(predict_rows, blocks(n, 32), 128, 0, p, taps, reinterpret_cast<unsigned *>(out))}};
    });

// --- light of a picture's tiles of 16 x 16 in sixteen slices of depth, for fog and blur ---

constexpr int SLICES = 16;

struct View {
    const float *depth;
    const uchar4 *colours;
    int width, tiles;  // of a row
};
struct Pixel {
    int slice;
    float light;
};
__device__ __forceinline__ Pixel pixel_of(const View &v) {
    const size_t at = static_cast<size_t>(blockIdx.y * 16 + threadIdx.x / 16) * v.width + blockIdx.x * 16 + threadIdx.x % 16;
    const uchar4 c = v.colours[at];
    return {min(max(static_cast<int>(__log2f(v.depth[at]) * 2.0f), 0), SLICES - 1), (0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z) * (1.0f / 255.0f)};
}
__device__ __forceinline__ void store_slice(const View &v, float2 *out, float sum, int count) {
    out[(static_cast<size_t>(blockIdx.y) * v.tiles + blockIdx.x) * SLICES + threadIdx.x] = {count ? sum / count : 0.0f, count / 256.0f};
}
__global__ void __launch_bounds__(256) slice_lights(View v, float2 *__restrict__ out) {
    __shared__ float sums[SLICES];
    __shared__ int counts[SLICES];
    if (threadIdx.x < SLICES) sums[threadIdx.x] = 0.0f, counts[threadIdx.x] = 0;
    __syncthreads();
    const Pixel p = pixel_of(v);
    atomicAdd(&sums[p.slice], p.light);
    atomicAdd(&counts[p.slice], 1);
    __syncthreads();
    if (threadIdx.x < SLICES) store_slice(v, out, sums[threadIdx.x], counts[threadIdx.x]);
}
// Light in whole numbers of 1/65536, for which shared memory has atomics of its own.
__global__ void __launch_bounds__(256) slice_lights_fixed(View v, float2 *__restrict__ out) {
    __shared__ unsigned sums[SLICES], counts[SLICES];
    if (threadIdx.x < SLICES) sums[threadIdx.x] = 0, counts[threadIdx.x] = 0;
    __syncthreads();
    const Pixel p = pixel_of(v);
    atomicAdd(&sums[p.slice], static_cast<unsigned>(__float2int_rn(p.light * 65536.0f)));
    atomicAdd(&counts[p.slice], 1u);
    __syncthreads();
    if (threadIdx.x < SLICES) store_slice(v, out, sums[threadIdx.x] * (1.0f / 65536.0f), static_cast<int>(counts[threadIdx.x]));
}
// A warp adds up the few slices that it has, one after the other, by shuffles.
__global__ void __launch_bounds__(256) slice_lights_warps(View v, float2 *__restrict__ out) {
    __shared__ float sums[SLICES];
    __shared__ int counts[SLICES];
    if (threadIdx.x < SLICES) sums[threadIdx.x] = 0.0f, counts[threadIdx.x] = 0;
    __syncthreads();
    const Pixel p = pixel_of(v);
    for (unsigned left = ~0u; left;) {
        const int slice = __shfl_sync(~0u, p.slice, __ffs(left) - 1);
        const unsigned same = __ballot_sync(~0u, p.slice == slice);
        const float sum = warp_sum(p.slice == slice ? p.light : 0.0f);
        if (threadIdx.x % 32 == 0) atomicAdd(&sums[slice], sum), atomicAdd(&counts[slice], __popc(same));
        left &= ~same;
    }
    __syncthreads();
    if (threadIdx.x < SLICES) store_slice(v, out, sums[threadIdx.x], counts[threadIdx.x]);
}

Study tile_slices("tile_lights_by_depth_two_shared_atomics_a_pixel", "rendering", 2160, "mean light of 16 slices of depth in each tile of 16 x 16 of a picture of 3840 x 2160",
    "pixels of a warp are mostly of one slice: they add their light to the same float of shared memory",
    {{"fixed", "light in whole numbers, which shared memory adds by itself", {"shared_atomics"}}, {"warps", "a warp adds up its few slices by shuffles", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = static_cast<int>(n * 16 / 9), tiles = width / 16, rows = static_cast<int>(n / 16);
        std::vector<float> depth(static_cast<size_t>(width) * n);
        std::vector<uchar4> colours(depth.size());
        for (size_t i = 0; i < depth.size(); i++) {
            const unsigned x = static_cast<unsigned>(i % width), y = static_cast<unsigned>(i / width), thing = hash(x / 45 * 733 + y / 38), noise = hash(static_cast<unsigned>(i));
            depth[i] = (thing % 3 ? 4.0f + y * 0.02f : 2.0f + thing / 3 % 60) * (1.0f + (noise & 255) * 0.0002f);
            colours[i] = {static_cast<unsigned char>(noise >> 8), static_cast<unsigned char>(noise >> 16), static_cast<unsigned char>(noise >> 24), 255};
        }
        const View v{b.copy(depth), b.copy(colours), width, tiles};
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2L * SLICES * tiles * rows));
        const dim3 grid(tiles, rows);
        return {{"flawed", launch(slice_lights, grid, 256, 0, v, out)}, {"fixed", launch(slice_lights_fixed, grid, 256, 0, v, out)}, {"warps", launch(slice_lights_warps, grid, 256, 0, v, out)}};
    });

// --- strands of hair: each point falls, and is drawn back to its distance from the one before it ---

constexpr int POINTS = 32;

__device__ __forceinline__ float4 moved(float4 now, float4 before, float4 parent) {
    float x = now.x + 0.98f * (now.x - before.x) - parent.x, y = now.y + 0.98f * (now.y - before.y) - 0.0027f - parent.y, z = now.z + 0.98f * (now.z - before.z) - parent.z;
    const float scale = now.w * rsqrtf(x * x + y * y + z * z + 1e-12f);  // w: the distance at rest
    return {parent.x + x * scale, parent.y + y * scale, parent.z + z * scale, now.w};
}
// Points of a strand behind one another (`across` = 1), or those of all strands side by side.
__global__ void __launch_bounds__(128) move_strands(const float4 *__restrict__ now, const float4 *__restrict__ before, float4 *__restrict__ out, int strands, int along, int across) {
    const int strand = blockIdx.x * 128 + threadIdx.x;
    if (strand >= strands) return;
    const size_t root = static_cast<size_t>(strand) * along;
    float4 parent = now[root];
    out[root] = parent;
    for (int i = 1; i < POINTS; i++) {
        const size_t at = root + static_cast<size_t>(i) * across;
        parent = moved(now[at], before[at], parent);
        out[at] = parent;
    }
}
// Eight points of 32 strands at a time by way of shared memory.
__global__ void __launch_bounds__(64) move_strands_staged(const float4 *__restrict__ now, const float4 *__restrict__ before, float4 *__restrict__ out) {
    constexpr int PIECE = 8;
    __shared__ float4 rooms[2][2][32][PIECE + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float4(*a)[PIECE + 1] = rooms[warp][0], (*c)[PIECE + 1] = rooms[warp][1];
    const size_t first = static_cast<size_t>(blockIdx.x * 64 + warp * 32) * POINTS;
    float4 parent{};
    for (int piece = 0; piece < POINTS; piece += PIECE) {
#pragma unroll
        for (int k = 0; k < PIECE; k++) {
            const int strand = k * 4 + lane / PIECE, point = lane % PIECE;
            const size_t at = first + strand * POINTS + piece + point;
            a[strand][point] = now[at], c[strand][point] = before[at];
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < PIECE; k++) {
            parent = piece + k ? moved(a[lane][k], c[lane][k], parent) : a[lane][0];
            a[lane][k] = parent;
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < PIECE; k++) {
            const int strand = k * 4 + lane / PIECE, point = lane % PIECE;
            out[first + strand * POINTS + piece + point] = a[strand][point];
        }
        __syncwarp();
    }
}
__global__ void by_point(const float4 *in, float4 *out, int strands, bool back) {
    const int i = blockIdx.x * 256 + threadIdx.x, strand = i / POINTS, point = i % POINTS;
    if (strand < strands) (back ? out[i] : out[point * strands + strand]) = back ? in[point * strands + strand] : in[i];
}

Study hair("hair_points_of_a_strand_behind_each_other", "animation", 1 << 17, "131072 strands of hair of 32 points: falling, and kept at their distances",
    "a thread walks a strand: lanes are 512 bytes apart in three arrays",
    {{"planes", "points of the same number side by side", {"uncoalesced_access"}}, {"staged", "eight points of 32 strands at a time through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> points(n * POINTS), earlier(n * POINTS);
        for (long i = 0; i < n * POINTS; i++) {
            const auto draw = [&](int k) { return (hash(static_cast<unsigned>(i * 8 + k)) >> 8) / 16777216.0f * 0.02f; };
            const float x = (i / POINTS % 512) * 0.1f, z = (i / POINTS / 512) * 0.1f, y = -0.05f * (i % POINTS);
            points[i] = {x + draw(0), y + draw(1), z + draw(2), 0.04f + draw(3)}, earlier[i] = {x + draw(4), y + draw(5), z + draw(6), 0.0f};
        }
        const float4 *now = b.copy(points), *before = b.copy(earlier);
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * POINTS * 4)), *turned_now = b.allocate<float4>(n * POINTS), *turned_before = b.allocate<float4>(n * POINTS), *turned_out = b.allocate<float4>(n * POINTS);
        launch(by_point, blocks(n * POINTS, 256), 256, 0, now, turned_now, n, false)();
        launch(by_point, blocks(n * POINTS, 256), 256, 0, before, turned_before, n, false)();
        return {{"flawed", launch(move_strands, blocks(n, 128), 128, 0, now, before, out, n, POINTS, 1)},
            {"planes", launch(move_strands, blocks(n, 128), 128, 0, turned_now, turned_before, turned_out, n, 1, n), {}, 1, launch(by_point, blocks(n * POINTS, 256), 256, 0, turned_out, out, n, true)},
            {"staged", launch(move_strands_staged, blocks(n, 64), 64, 0, now, before, out)}};
    });

// --- frames of a telescope joined: the mean of what is not far off the mean ---

constexpr int FRAMES = 32;

template <int BLOCKS>
__global__ void __launch_bounds__(256, BLOCKS) join_frames(const unsigned short *__restrict__ frames, float *__restrict__ out, int pixels, float limit) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pixels) return;
    float own[FRAMES], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int f = 0; f < FRAMES; f++) own[f] = frames[static_cast<size_t>(f) * pixels + i];
#pragma unroll
    for (int f = 0; f < FRAMES; f++) sum += own[f];
    const float mean = sum / FRAMES;
#pragma unroll
    for (int f = 0; f < FRAMES; f++) squares += (own[f] - mean) * (own[f] - mean);
    const float most = limit * limit * squares / FRAMES;
    float kept = 0.0f;
    int count = 0;
#pragma unroll
    for (int f = 0; f < FRAMES; f++) {
        const float off = own[f] - mean;
        if (off * off <= most) kept += own[f], count++;
    }
    out[i] = count ? kept / count : mean;
}
// Nothing is kept: the values are read again where they are wanted, from the cache.
__global__ void __launch_bounds__(256, 8) join_frames_again(const unsigned short *__restrict__ frames, float *__restrict__ out, int pixels, float limit) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pixels) return;
    float sum = 0.0f, squares = 0.0f, kept = 0.0f;
#pragma unroll 8
    for (int f = 0; f < FRAMES; f++) sum += frames[static_cast<size_t>(f) * pixels + i];
    const float mean = sum / FRAMES;
#pragma unroll 8
    for (int f = 0; f < FRAMES; f++) {
        const float off = frames[static_cast<size_t>(f) * pixels + i] - mean;
        squares += off * off;
    }
    const float most = limit * limit * squares / FRAMES;
    int count = 0;
#pragma unroll 8
    for (int f = 0; f < FRAMES; f++) {
        const float value = frames[static_cast<size_t>(f) * pixels + i], off = value - mean;
        if (off * off <= most) kept += value, count++;
    }
    out[i] = count ? kept / count : mean;
}

Study telescope_frames("telescope_frames_kept_in_32_registers", "astronomy", 2048, "32 frames of 2048 x 2048 values of 16 bits joined: the mean without what is far off",
    "eight blocks of 256 threads a multiprocessor are asked for: the 32 values of a pixel do not fit and are spilled",
    {{"three_blocks", "three blocks a multiprocessor are asked for", {"local_memory"}}, {"again", "nothing is kept: values are read again where they are wanted", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const long pixels = n * n;
        std::vector<unsigned short> frames(pixels * FRAMES);
        for (size_t i = 0; i < frames.size(); i++) {
            const unsigned drawn = hash(static_cast<unsigned>(i));
            frames[i] = static_cast<unsigned short>(1200 + i % pixels % 700 + drawn % 64 + (drawn >> 8) % 64 + (drawn >> 24 ? 0 : 9000));  // a cosmic ray now and then
        }
        const unsigned short *in = b.copy(frames);
        float *out = b.output<float>(pixels);
        b.tolerance = 1e-2;  // a value at the limit may be counted or not
        return {{"flawed", launch(join_frames<8>, blocks(pixels, 256), 256, 0, in, out, pixels, 2.5f)}, {"three_blocks", launch(join_frames<3>, blocks(pixels, 256), 256, 0, in, out, pixels, 2.5f)},
            {"again", launch(join_frames_again, blocks(pixels, 256), 256, 0, in, out, pixels, 2.5f)}};
    });

}  // namespace
