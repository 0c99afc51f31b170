// Pieces of image and video processing. Each kernel has one weakness and one or two ways out of it.
#include "../pairs/pair.cuh"

namespace {

// --- Gaussian splats blended by tiles ---

constexpr int SPLATS = 256;  // of a tile of 16 x 16 pixels, front to back

struct Pixel {
    float light = 1.f, r = 0.f, g = 0.f, b = 0.f;
    // Returns whether the pixel is opaque by now.
    __device__ bool blend(float2 at, float4 shape, float4 colour, float x, float y) {
        float dx = at.x - x, dy = at.y - y, power = -0.5f * (shape.x * dx * dx + shape.z * dy * dy) - shape.y * dx * dy;
        if (power > 0.f) return false;
        float alpha = fminf(0.99f, shape.w * expf(power));
        if (alpha < 1.f / 255.f) return false;
        float next = light * (1.f - alpha);
        if (next < 1e-4f) return true;
        r += colour.x * alpha * light, g += colour.y * alpha * light, b += colour.z * alpha * light;
        light = next;
        return false;
    }
};
__global__ void splat(const int *lists, const float2 *centres, const float4 *shapes, const float *colours, float *image, int tiles_x) {
    int tile = blockIdx.y * tiles_x + blockIdx.x, x = threadIdx.x + 16 * blockIdx.x, y = threadIdx.y + 16 * blockIdx.y, pixels = tiles_x * gridDim.y * 256;
    Pixel p;
    for (int i = 0; i < SPLATS; ++i) {
        int id = lists[tile * SPLATS + i];
        float4 colour{colours[3 * id], colours[3 * id + 1], colours[3 * id + 2], 0.f};
        if (p.blend(centres[id], shapes[id], colour, x, y)) break;
    }
    int at = y * tiles_x * 16 + x;
    image[at] = p.r, image[pixels + at] = p.g, image[2 * pixels + at] = p.b;
}
__global__ void __launch_bounds__(256) splat_shared(
    const int *lists, const float2 *centres, const float4 *shapes, const float *colours, float *image, int tiles_x) {
    __shared__ float2 centre[SPLATS];
    __shared__ float4 shape[SPLATS], colour[SPLATS];
    int tile = blockIdx.y * tiles_x + blockIdx.x, x = threadIdx.x + 16 * blockIdx.x, y = threadIdx.y + 16 * blockIdx.y, pixels = tiles_x * gridDim.y * 256;
    int t = threadIdx.y * 16 + threadIdx.x, id = lists[tile * SPLATS + t];
    centre[t] = centres[id], shape[t] = shapes[id], colour[t] = {colours[3 * id], colours[3 * id + 1], colours[3 * id + 2], 0.f};
    __syncthreads();
    Pixel p;
    for (int i = 0; i < SPLATS; ++i)
        if (p.blend(centre[i], shape[i], colour[i], x, y)) break;
    int at = y * tiles_x * 16 + x;
    image[at] = p.r, image[pixels + at] = p.g, image[2 * pixels + at] = p.b;
}
__global__ void __launch_bounds__(128) splat_two_pixels(
    const int *lists, const float2 *centres, const float4 *shapes, const float *colours, float *image, int tiles_x) {
    __shared__ float2 centre[SPLATS];
    __shared__ float4 shape[SPLATS], colour[SPLATS];
    int tile = blockIdx.y * tiles_x + blockIdx.x, x = threadIdx.x + 16 * blockIdx.x, y = threadIdx.y + 16 * blockIdx.y, pixels = tiles_x * gridDim.y * 256;
    for (int t = threadIdx.y * 16 + threadIdx.x; t < SPLATS; t += 128) {
        int id = lists[tile * SPLATS + t];
        centre[t] = centres[id], shape[t] = shapes[id], colour[t] = {colours[3 * id], colours[3 * id + 1], colours[3 * id + 2], 0.f};
    }
    __syncthreads();
    Pixel p, q;
    bool p_done = false, q_done = false;
    for (int i = 0; i < SPLATS && !(p_done && q_done); ++i) {
        float2 c = centre[i];
        float4 s = shape[i], k = colour[i];
        if (!p_done) p_done = p.blend(c, s, k, x, y);
        if (!q_done) q_done = q.blend(c, s, k, x, y + 8);
    }
    int at = y * tiles_x * 16 + x, below = at + 8 * tiles_x * 16;
    image[at] = p.r, image[pixels + at] = p.g, image[2 * pixels + at] = p.b;
    image[below] = q.r, image[pixels + below] = q.g, image[2 * pixels + below] = q.b;
}

Study splats("splats_read_by_each_pixel", "images", 80, "an image of 1280 x 960 blended of 256 Gaussian splats for each tile of 16 x 16 pixels",
    "every pixel's thread reads list and splats from global memory, one after the other",
    {{"shared", "a tile's splats in shared memory", {"memory_latency", "redundant_loads"}},
        {"two_pixels", "splats in shared memory, two pixels a thread", {"memory_latency", "redundant_loads"}}},
    [](Buffers &b, long tiles_x) -> Sides {
        int tiles = tiles_x * 60, count = tiles * SPLATS;
        std::vector<int> lists(count);
        std::vector<float> centres(2 * count), shapes(4 * count);
        auto unit = [](unsigned i) { return hash(i) / 4294967296.f; };
        for (int i = 0; i < count; ++i) {
            int tile = i / SPLATS, id = tile * SPLATS + (i * 77 + 5) % SPLATS;
            lists[i] = id;
            centres[2 * i] = tile % tiles_x * 16 + 28.f * unit(8 * i) - 6.f;
            centres[2 * i + 1] = tile / tiles_x * 16 + 28.f * unit(8 * i + 1) - 6.f;
            shapes[4 * i] = 0.02f + 0.2f * unit(8 * i + 2), shapes[4 * i + 2] = 0.02f + 0.2f * unit(8 * i + 3);
            shapes[4 * i + 1] = 0.015f * unit(8 * i + 4), shapes[4 * i + 3] = 0.02f + 0.2f * unit(8 * i + 5);
        }
        int *l = b.copy(lists);
        float *c = b.copy(centres), *s = b.copy(shapes), *colours = b.random<float>(3l * count, 0, 1), *image = b.output<float>(tiles * 768l);
        b.tolerance = 1e-3;
        dim3 grid(tiles_x, 60);
        return {{"flawed", launch(splat, grid, dim3(16, 16), 0, l, (float2 *)c, (float4 *)s, colours, image, tiles_x)},
            {"shared", launch(splat_shared, grid, dim3(16, 16), 0, l, (float2 *)c, (float4 *)s, colours, image, tiles_x)},
            {"two_pixels", launch(splat_two_pixels, grid, dim3(16, 8), 0, l, (float2 *)c, (float4 *)s, colours, image, tiles_x)}};
    });

// --- samples between pixels for motion compensation ---

__device__ __forceinline__ int six(int a, int b, int c, int d, int e, int f) { return a + f - 5 * (b + e) + 20 * (c + d); }
__device__ __forceinline__ int six_of(const unsigned char *p) { return six(p[-2], p[-1], p[0], p[1], p[2], p[3]); }
__device__ __forceinline__ unsigned char rounded(int v) { return min(255, max(0, (v + 512) >> 10)); }

__global__ void half_pel(const unsigned char *image, unsigned char *out, int width, int pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned char *p = image + (y + 2) * pitch + x + 4;
    int rows[6];
#pragma unroll
    for (int r = 0; r < 6; ++r) rows[r] = six_of(p + (r - 2) * pitch);
    out[y * width + x] = rounded(six(rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]));
}
__global__ void __launch_bounds__(256) half_pel_shared(const unsigned char *image, unsigned char *out, int width, int pitch) {
    __shared__ short sums[37][32];
    int x = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 37; r += 8) sums[r][threadIdx.x] = six_of(image + (first + r) * pitch + x + 4);
    __syncthreads();
#pragma unroll
    for (int r = threadIdx.y; r < 32; r += 8) {
        int c = threadIdx.x;
        out[(first + r) * width + x] = rounded(six(sums[r][c], sums[r + 1][c], sums[r + 2][c], sums[r + 3][c], sums[r + 4][c], sums[r + 5][c]));
    }
}
// A thread four columns: words of four bytes, sums of five rows kept in registers while it walks down.
__global__ void half_pel_columns(const unsigned *image, uchar4 *out, int quads, int pitch_words, int tall) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * tall;
    int sums[6][4];
    auto row = [&](int y, int *to) {
        const unsigned *p = image + y * pitch_words + x;
        unsigned w[3] = {p[0], p[1], p[2]};
        int v[12];
#pragma unroll
        for (int i = 0; i < 12; ++i) v[i] = w[i / 4] >> (i % 4 * 8) & 0xff;
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = six(v[i + 2], v[i + 3], v[i + 4], v[i + 5], v[i + 6], v[i + 7]);
    };
#pragma unroll
    for (int r = 0; r < 5; ++r) row(first + r, sums[r]);
    for (int y = first; y < first + tall; ++y) {
        row(y + 5, sums[5]);
        unsigned char v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = rounded(six(sums[0][i], sums[1][i], sums[2][i], sums[3][i], sums[4][i], sums[5][i]));
        out[y * quads + x] = {v[0], v[1], v[2], v[3]};
#pragma unroll
        for (int r = 0; r < 5; ++r)
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[r][i] = sums[r + 1][i];
    }
}

Study half_pels("half_pel_36_bytes_each", "images", 4096, "samples between the pixels of a 4096 x 4096 picture by six taps across and down",
    "each sample reads 36 bytes and makes six sums across of which its neighbours make five again",
    {{"shared", "sums across once a tile, in shared memory", {"redundant_loads"}},
        {"columns", "four columns a thread by words, sums across kept while it walks down", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int pitch = n + 16;
        auto *image = b.random<unsigned char>((n + 8) * pitch, 0, 256), *out = b.output<unsigned char>(n * n);
        b.tolerance = 1e-9;
        return {{"flawed", launch(half_pel, dim3(n / 32, n / 8), dim3(32, 8), 0, image, out, n, pitch)},
            {"shared", launch(half_pel_shared, dim3(n / 32, n / 32), dim3(32, 8), 0, image, out, n, pitch)},
            {"columns", launch(half_pel_columns, dim3(n / 512, n / 32), 128, 0, (unsigned *)image, (uchar4 *)out, n / 4, pitch / 4, 32)}};
    });

// --- semi-global matching: costs along the rows ---

constexpr int DISPARITIES = 128, P1 = 7, P2 = 60;

__global__ void __launch_bounds__(128) match_rows(const unsigned char *costs, unsigned char *paths, int width) {
    __shared__ int last[DISPARITIES + 2], least[DISPARITIES];
    int d = threadIdx.x;
    size_t at = size_t(blockIdx.x) * width * DISPARITIES + d;
    if (d == 0) last[0] = last[DISPARITIES + 1] = 1 << 20;
    int value = costs[at];
    paths[at] = value;
    for (int x = 1; x < width; ++x) {
        last[d + 1] = least[d] = value;
        __syncthreads();
        for (int s = 64; s > 0; s >>= 1) {
            if (d < s) least[d] = min(least[d], least[d + s]);
            __syncthreads();
        }
        int lowest = least[0];
        at += DISPARITIES;
        value = costs[at] + min(min(last[d + 1], lowest + P2), min(last[d], last[d + 2]) + P1) - lowest;
        paths[at] = value;
        __syncthreads();
    }
}
__global__ void __launch_bounds__(128) match_rows_one_barrier(const unsigned char *costs, unsigned char *paths, int width) {
    __shared__ int last[2][DISPARITIES + 2], least[2][4];
    int d = threadIdx.x;
    size_t at = size_t(blockIdx.x) * width * DISPARITIES + d;
    if (d < 2) last[d][0] = last[d][DISPARITIES + 1] = 1 << 20;
    int value = costs[at];
    paths[at] = value;
    for (int x = 1; x < width; ++x) {
        int *row = last[x % 2], *low = least[x % 2], cost = costs[at + DISPARITIES];
        row[d + 1] = value;
        int lowest = __reduce_min_sync(~0u, value);
        if (d % 32 == 0) low[d / 32] = lowest;
        __syncthreads();
        lowest = min(min(low[0], low[1]), min(low[2], low[3]));
        at += DISPARITIES;
        value = cost + min(min(value, lowest + P2), min(row[d], row[d + 2]) + P1) - lowest;
        paths[at] = value;
    }
}
// A warp a row, four disparities a lane: neighbours by shuffles, no barrier.
__global__ void __launch_bounds__(32) match_rows_warp(const uchar4 *costs, uchar4 *paths, int width) {
    int lane = threadIdx.x;
    size_t at = size_t(blockIdx.x) * width * 32 + lane;
    uchar4 c = costs[at];
    int v[4] = {c.x, c.y, c.z, c.w};
    paths[at] = c;
    c = costs[at + 32];
    for (int x = 1; x < width; ++x) {
        int lowest = __reduce_min_sync(~0u, min(min(v[0], v[1]), min(v[2], v[3])));
        int before = __shfl_up_sync(~0u, v[3], 1), after = __shfl_down_sync(~0u, v[0], 1);
        if (lane == 0) before = 1 << 20;
        if (lane == 31) after = 1 << 20;
        at += 32;
        uchar4 ahead = x + 1 < width ? costs[at + 32] : c;
        int a = c.x + min(min(v[0], lowest + P2), min(before, v[1]) + P1) - lowest;
        int b = c.y + min(min(v[1], lowest + P2), min(v[0], v[2]) + P1) - lowest;
        int e = c.z + min(min(v[2], lowest + P2), min(v[1], v[3]) + P1) - lowest;
        int f = c.w + min(min(v[3], lowest + P2), min(v[2], after) + P1) - lowest;
        v[0] = a, v[1] = b, v[2] = e, v[3] = f;
        paths[at] = {(unsigned char)a, (unsigned char)b, (unsigned char)e, (unsigned char)f};
        c = ahead;
    }
}

Study matchings("stereo_path_minimum_by_tree", "images", 768, "matching costs of 128 disparities summed along 768 rows of 512 pixels",
    "the least cost of a pixel by a tree in shared memory: nine barriers a pixel",
    {{"one_barrier", "the least of a warp by one instruction, one barrier a pixel", {"barriers"}},
        {"warp", "a warp a row, four disparities a lane, the next costs fetched ahead", {"barriers", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        long n = rows * 512 * DISPARITIES;
        auto *costs = b.random<unsigned char>(n, 0, 64), *paths = b.output<unsigned char>(n);
        b.tolerance = 1e-9;
        return {{"flawed", launch(match_rows, rows, 128, 0, costs, paths, 512)},
            {"one_barrier", launch(match_rows_one_barrier, rows, 128, 0, costs, paths, 512)},
            {"warp", launch(match_rows_warp, rows, 32, 0, (uchar4 *)costs, (uchar4 *)paths, 512)}};
    });

// --- smoothing of the edges between blocks ---

__device__ __forceinline__ void smooth_edge(int p2, int &p1, int &p0, int &q0, int &q1, int q2, int alpha, int beta) {
    if (abs(p0 - q0) >= alpha || abs(p1 - p0) >= beta || abs(q1 - q0) >= beta) return;
    int a = p1, b = p0, c = q0, d = q1;
    p0 = (p2 + 2 * a + 2 * b + 2 * c + d + 4) >> 3, q0 = (a + 2 * b + 2 * c + 2 * d + q2 + 4) >> 3;
    if (abs(p2 - b) < beta) p1 = (p2 + a + b + c + 2) >> 2;
    if (abs(q2 - c) < beta) q1 = (b + c + d + q2 + 2) >> 2;
}
__global__ void deblock(unsigned char *image, int width, int height, int alpha, int beta) {
    int edge = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (edge >= width / 8 || y >= height) return;
    unsigned char *q = image + size_t(y) * width + edge * 8;
    int p2 = q[-3], p1 = q[-2], p0 = q[-1], q0 = q[0], q1 = q[1], q2 = q[2];
    smooth_edge(p2, p1, p0, q0, q1, q2, alpha, beta);
    q[-2] = p1, q[-1] = p0, q[0] = q0, q[1] = q1;
}
__global__ void deblock_words(unsigned *image, int words, int height, int alpha, int beta) {
    int edge = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (edge >= words / 2 || y >= height) return;
    unsigned *q = image + size_t(y) * words + edge * 2, left = q[-1], right = q[0];
    int p2 = left >> 8 & 255, p1 = left >> 16 & 255, p0 = left >> 24, q0 = right & 255, q1 = right >> 8 & 255, q2 = right >> 16 & 255;
    smooth_edge(p2, p1, p0, q0, q1, q2, alpha, beta);
    q[-1] = (left & 0xffff) | p1 << 16 | unsigned(p0) << 24;
    q[0] = (right & 0xffff0000) | q0 | q1 << 8;
}

Study deblocks("deblock_edges_by_byte", "images", 8192, "edges between blocks of eight pixels smoothed in a picture of 8192 x 8192 bytes, in place",
    "six bytes read and four written one by one, lanes eight bytes apart",
    {{"words", "a word on either side of the edge", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *initial = b.random<unsigned char>(n * n, 100, 112), *image = b.changed(initial, n * n);
        b.tolerance = 1e-9;
        return {{"flawed", launch(deblock, dim3(n / 8 / 64, n / 4), dim3(64, 4), 0, image, n, n, 16, 8)},
            {"words", launch(deblock_words, dim3(n / 8 / 64, n / 4), dim3(64, 4), 0, (unsigned *)image, n / 4, n, 16, 8)}};
    });

}  // namespace
