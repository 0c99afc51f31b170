// Image processing, rendering and signal processing.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- vertical Gaussian blur of 25 taps ---

__constant__ float TAPS[25];

__device__ constexpr int R = 12;
__global__ void blur_columns(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.f;
    for (int k = -R; k <= R; k++) sum += TAPS[k + R] * in[min(max(y + k, 0), height - 1) * width + x];
    out[y * width + x] = sum;
}
__global__ void __launch_bounds__(256) blur_columns_tile(const float *__restrict__ in, float *__restrict__ out, int width, int height) {
    __shared__ float tile[64 + 2 * R][32];
    int x = blockIdx.x * 32 + threadIdx.x, y0 = blockIdx.y * 64;
    for (int r = threadIdx.y; r < 64 + 2 * R; r += 8) tile[r][threadIdx.x] = in[min(max(y0 + r - R, 0), height - 1) * width + x];
    __syncthreads();
    for (int r = threadIdx.y; r < 64; r += 8) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k <= 2 * R; ++k) sum += TAPS[k] * tile[r + k][threadIdx.x];
        out[(y0 + r) * width + x] = sum;
    }
}
__global__ void __launch_bounds__(128) blur_columns_registers(const float *__restrict__ in, float *__restrict__ out, int width, int height) {
    int x = blockIdx.x * 32 + threadIdx.x, y0 = (blockIdx.y * 4 + threadIdx.y) * 8;
    float sum[8] = {};
#pragma unroll
    for (int r = 0; r < 8 + 2 * R; ++r) {
        float v = in[min(max(y0 + r - R, 0), height - 1) * width + x];
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (r - k >= 0 && r - k <= 2 * R) sum[k] += TAPS[r - k] * v;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) out[(y0 + k) * width + x] = sum[k];
}
Study column_blurs("blur_columns_25_taps", "images", 4096, "vertical blur of 25 taps of a float image of 4096 x 4096",
    "25 loads a pixel: every value is loaded again for each row that needs it",
    {{"tile", "64 rows and their borders in shared memory", {"redundant_loads"}},
        {"registers", "eight rows a thread: 32 loads for eight pixels", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float taps[25], total = 0.f;
        for (int k = 0; k < 25; ++k) total += taps[k] = std::exp(-(k - 12) * (k - 12) / 32.f);
        for (float &tap : taps) tap /= total;
        CHECK(cudaMemcpyToSymbol(TAPS, taps, sizeof taps));
        float *in = b.random<float>(n * n, 0, 1), *out = b.output<float>(n * n);
        return {{"flawed", launch(blur_columns, dim3(n / 32, n / 8), dim3(32, 8), 0, in, out, n, n)},
            {"tile", launch(blur_columns_tile, dim3(n / 32, n / 64), dim3(32, 8), 0, in, out, n, n)},
            {"registers", launch(blur_columns_registers, dim3(n / 32, n / 32), dim3(32, 4), 0, in, out, n, n)}};
    });

// --- one image over another ---

__global__ void blend(const unsigned char *top, const unsigned char *below, unsigned char *out, int bytes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= bytes) return;
    int a = top[i | 3];
    out[i] = (top[i] * a + below[i] * (255 - a) + 127) / 255;
}
__device__ uchar4 over(uchar4 t, uchar4 u) {
    int a = t.w;
    auto mix = [a](int p, int q) { return (unsigned char)((p * a + q * (255 - a) + 127) / 255); };
    return {mix(t.x, u.x), mix(t.y, u.y), mix(t.z, u.z), mix(t.w, u.w)};
}
__global__ void blend_pixel(const uchar4 *__restrict__ top, const uchar4 *__restrict__ below, uchar4 *__restrict__ out, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pixels) out[i] = over(top[i], below[i]);
}
__global__ void blend_four(const uint4 *__restrict__ top, const uint4 *__restrict__ below, uint4 *__restrict__ out, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    uint4 t = top[i], u = below[i], result;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        reinterpret_cast<uchar4 *>(&result)[k] = over(reinterpret_cast<uchar4 *>(&t)[k], reinterpret_cast<uchar4 *>(&u)[k]);
    out[i] = result;
}
Study blends("alpha_blend_bytes", "images", 1 << 24, "one image of 16 million RGBA pixels over another",
    "a thread a byte; the alpha is fetched again for each of its four bytes",
    {{"pixel", "a thread a pixel, four bytes an access", {"narrow_access", "redundant_loads"}},
        {"four", "a thread four pixels, 16 bytes an access", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        auto *top = b.random<unsigned char>(4 * n, 0, 256), *below = b.random<unsigned char>(4 * n, 0, 256), *out = b.output<unsigned char>(4 * n);
        b.tolerance = 0;
        return {{"flawed", launch(blend, blocks(4 * n, 256), 256, 0, top, below, out, 4 * n)},
            {"pixel", launch(blend_pixel, blocks(n, 256), 256, 0, (uchar4 *)top, (uchar4 *)below, (uchar4 *)out, n)},
            {"four", launch(blend_four, blocks(n / 4, 256), 256, 0, (uint4 *)top, (uint4 *)below, (uint4 *)out, n / 4)}};
    });

// --- non-local means ---

__global__ void __launch_bounds__(256) nlmeans(const float *in, float *out, int width, int height, float h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 5 || y < 5 || x >= width - 5 || y >= height - 5) return;
    float sum = 0.f, total = 0.f;
    for (int dy = -3; dy <= 3; dy++)
        for (int dx = -3; dx <= 3; dx++) {
            float distance = 0.f;
            for (int py = -2; py <= 2; py++)
                for (int px = -2; px <= 2; px++) {
                    float d = in[(y + py) * width + x + px] - in[(y + dy + py) * width + x + dx + px];
                    distance += d * d;
                }
            float weight = __expf(-distance * h);
            total += weight;
            sum += weight * in[(y + dy) * width + x + dx];
        }
    out[y * width + x] = sum / total;
}
__global__ void __launch_bounds__(256) nlmeans_tile(const float *__restrict__ in, float *__restrict__ out, int width, int height, float h) {
    __shared__ float tile[18][43];
    int x0 = blockIdx.x * 32 - 5, y0 = blockIdx.y * 8 - 5, tx = threadIdx.x, ty = threadIdx.y;
    for (int i = ty * 32 + tx; i < 18 * 42; i += 256) {
        int r = min(max(y0 + i / 42, 0), height - 1), c = min(max(x0 + i % 42, 0), width - 1);
        tile[i / 42][i % 42] = in[r * width + c];
    }
    __syncthreads();
    int x = x0 + 5 + tx, y = y0 + 5 + ty;
    if (x < 5 || y < 5 || x >= width - 5 || y >= height - 5) return;
    float own[25], sum = 0.f, total = 0.f;
#pragma unroll
    for (int i = 0; i < 25; ++i) own[i] = tile[ty + 3 + i / 5][tx + 3 + i % 5];
#pragma unroll 1
    for (int dy = 0; dy < 7; ++dy)
#pragma unroll 1
        for (int dx = 0; dx < 7; ++dx) {
            float distance = 0.f;
#pragma unroll
            for (int i = 0; i < 25; ++i) {
                float d = own[i] - tile[ty + dy + i / 5][tx + dx + i % 5];
                distance += d * d;
            }
            float weight = __expf(-distance * h);
            total += weight;
            sum += weight * tile[ty + dy + 2][tx + dx + 2];
        }
    out[y * width + x] = sum / total;
}
__global__ void __launch_bounds__(256) nlmeans_boxes(const float *__restrict__ in, float *__restrict__ out, int width, int height, float h) {
    __shared__ float tile[18][43], squares[12][37], rows[12][33];
    int x0 = blockIdx.x * 32 - 5, y0 = blockIdx.y * 8 - 5, tx = threadIdx.x, ty = threadIdx.y, t = ty * 32 + tx;
    for (int i = t; i < 18 * 42; i += 256) {
        int r = min(max(y0 + i / 42, 0), height - 1), c = min(max(x0 + i % 42, 0), width - 1);
        tile[i / 42][i % 42] = in[r * width + c];
    }
    __syncthreads();
    float sum = 0.f, total = 0.f;
    for (int dy = 0; dy < 7; ++dy)
        for (int dx = 0; dx < 7; ++dx) {
            for (int i = t; i < 12 * 36; i += 256) {
                float d = tile[i / 36 + 3][i % 36 + 3] - tile[i / 36 + dy][i % 36 + dx];
                squares[i / 36][i % 36] = d * d;
            }
            __syncthreads();
            for (int i = t; i < 12 * 32; i += 256) {
                const float *s = &squares[i / 32][i % 32];
                rows[i / 32][i % 32] = s[0] + s[1] + s[2] + s[3] + s[4];
            }
            __syncthreads();
            float distance = rows[ty][tx] + rows[ty + 1][tx] + rows[ty + 2][tx] + rows[ty + 3][tx] + rows[ty + 4][tx];
            float weight = __expf(-distance * h);
            total += weight;
            sum += weight * tile[ty + dy + 2][tx + dx + 2];
        }
    int x = x0 + 5 + tx, y = y0 + 5 + ty;
    if (x >= 5 && y >= 5 && x < width - 5 && y < height - 5) out[y * width + x] = sum / total;
}
Study means("nlmeans_global_patches", "images", 1024, "non-local means: patches of 5 x 5 compared within 7 x 7, 1024 x 1024 floats",
    "patches are read from global memory again for each of 49 places",
    {{"tile", "a tile and its borders in shared memory, the pixel's own patch in registers", {"redundant_loads"}},
        {"boxes", "squared differences once for the tile, summed along rows, then columns", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * n, 0, 1), *out = b.output<float>(n * n, true);
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, dim3(n / 32, n / 8), dim3(32, 8), 0, in, out, n, n, 0.3f); };
        return {{"flawed", run(nlmeans)}, {"tile", run(nlmeans_tile)}, {"boxes", run(nlmeans_boxes)}};
    });

// --- erosion by a square of 9 x 9 ---

__global__ void erode(const unsigned char *in, unsigned char *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned char least = 255;
    for (int dy = -4; dy <= 4; dy++)
        for (int dx = -4; dx <= 4; dx++) least = min(least, in[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)]);
    out[y * width + x] = least;
}
__global__ void __launch_bounds__(256) erode_separable(const unsigned char *__restrict__ in, unsigned char *__restrict__ out, int width, int height) {
    __shared__ unsigned char tile[24][72], rows[24][64];
    int x0 = blockIdx.x * 64 - 4, y0 = blockIdx.y * 16 - 4, t = threadIdx.x;
    for (int i = t; i < 24 * 72; i += 256)
        tile[i / 72][i % 72] = in[min(max(y0 + i / 72, 0), height - 1) * width + min(max(x0 + i % 72, 0), width - 1)];
    __syncthreads();
    for (int i = t; i < 24 * 64; i += 256) {
        int least = 255;
        for (int k = 0; k < 9; ++k) least = min(least, int(tile[i / 64][i % 64 + k]));
        rows[i / 64][i % 64] = least;
    }
    __syncthreads();
    for (int i = t; i < 16 * 64; i += 256) {
        int least = 255;
        for (int k = 0; k < 9; ++k) least = min(least, int(rows[i / 64 + k][i % 64]));
        out[(y0 + 4 + i / 64) * width + x0 + 4 + i % 64] = least;
    }
}
__global__ void __launch_bounds__(128) erode_words(const unsigned char *__restrict__ in, unsigned *__restrict__ out, int width, int height) {
    int q = blockIdx.x * 32 + threadIdx.x, y0 = (blockIdx.y * 4 + threadIdx.y) * 8;  // four pixels a word, eight rows a thread
    const unsigned *words = reinterpret_cast<const unsigned *>(in);
    int pitch = width / 4, left = max(q - 1, 0), right = min(q + 1, pitch - 1);
    unsigned rows[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        int at = min(max(y0 + r - 4, 0), height - 1) * pitch;
        unsigned a = words[at + left], c = words[at + q], e = words[at + right];
        if (q == 0) a = (c & 255) * 0x01010101u;
        if (q == pitch - 1) e = (c >> 24) * 0x01010101u;
        // The least of each pixel's nine: pairs of neighbours first, then of pairs, then of fours.
        unsigned least = __vminu4(__vminu4(a, c), e);
#pragma unroll
        for (int k = 1; k < 4; ++k) least = __vminu4(least, __vminu4(__funnelshift_r(a, c, 8 * k), __funnelshift_r(c, e, 8 * k)));
        rows[r] = least;
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        unsigned least = rows[r];
#pragma unroll
        for (int k = 1; k < 9; ++k) least = __vminu4(least, rows[r + k]);
        out[(y0 + r) * pitch + q] = least;
    }
}
Study erosions("erode_9x9_direct", "images", 4096, "erosion of bytes by a square of 9 x 9, 4096 x 4096",
    "81 byte loads a pixel",
    {{"separable", "tile in shared memory, rows first, then columns", {"redundant_loads"}},
        {"words", "four pixels a word and eight rows a thread, rows first", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *in = b.random<unsigned char>(n * n, 0, 256), *out = b.output<unsigned char>(n * n);
        b.tolerance = 0;
        return {{"flawed", launch(erode, dim3(n / 32, n / 8), dim3(32, 8), 0, in, out, n, n)},
            {"separable", launch(erode_separable, dim3(n / 64, n / 16), 256, 0, in, out, n, n)},
            {"words", launch(erode_words, dim3(n / 128, n / 32), dim3(32, 4), 0, in, (unsigned *)out, n, n)}};
    });

// --- an image turned ---

__device__ float turned(const float *in, int n, float c, float s, int x, int y) {
    float dx = x - n / 2, dy = y - n / 2;  // rounded the same way in every kernel: a border pixel lies inside or outside
    float u = __fmaf_rn(dx, c, __fmaf_rn(dy, s, n / 2)), v = __fmaf_rn(dy, c, __fmaf_rn(-dx, s, n / 2));
    int i = floorf(u), j = floorf(v);
    if (i < 0 || j < 0 || i >= n - 1 || j >= n - 1) return 0.f;
    float a = u - i, b = v - j;
    const float *at = in + j * n + i;
    return (at[0] * (1 - a) + at[1] * a) * (1 - b) + (at[n] * (1 - a) + at[n + 1] * a) * b;
}
__global__ void rotate(const float *in, float *out, int n, float c, float s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * n + x] = turned(in, n, c, s, x, y);
}
__global__ void rotate_tiles(const float *__restrict__ in, float *__restrict__ out, int n, float c, float s) {
    __shared__ float tile[32][33];  // computed with lanes along the source's rows, written along the result's
    for (int r = threadIdx.y; r < 32; r += 8)
        tile[threadIdx.x][r] = turned(in, n, c, s, blockIdx.x * 32 + r, blockIdx.y * 32 + threadIdx.x);
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8) out[(blockIdx.y * 32 + r) * n + blockIdx.x * 32 + threadIdx.x] = tile[r][threadIdx.x];
}
Study rotations("rotate_image_rows", "images", 6144, "a float image of 6144 x 6144 turned by 88 degrees, bilinear",
    "a warp writes a row of the result and so walks down a column of the source",
    {{"square", "blocks of 8 x 32 whose warps cover 8 x 4 pixels", {"uncoalesced_access"}},
        {"turned_tiles", "lanes along the source's rows, the result turned in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * n, 0, 1), *out = b.output<float>(n * n), c = 0.0348994967f, s = 0.999390827f;
        return {{"flawed", launch(rotate, dim3(n / 256, n), 256, 0, in, out, n, c, s)},
            {"square", launch(rotate, dim3(n / 8, n / 32), dim3(8, 32), 0, in, out, n, c, s)},
            {"turned_tiles", launch(rotate_tiles, dim3(n / 32, n / 32), dim3(32, 8), 0, in, out, n, c, s)}};
    });

// --- thinning of edges ---

__global__ void thin_edges(const float *gx, const float *gy, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    int at = y * width + x;
    float angle = atan2f(gy[at], gx[at]) * 180.f / 3.14159265f;
    if (angle < 0) angle += 180.f;
    int step = angle < 22.5f || angle >= 157.5f ? 1 : angle < 67.5f ? width + 1 : angle < 112.5f ? width : width - 1;
    float m = sqrtf(gx[at] * gx[at] + gy[at] * gy[at]);
    float a = sqrtf(gx[at + step] * gx[at + step] + gy[at + step] * gy[at + step]);
    float b = sqrtf(gx[at - step] * gx[at - step] + gy[at - step] * gy[at - step]);
    out[at] = m >= a && m >= b ? m : 0.f;
}
template <bool SQUARES>  // compares squares: one root instead of three
__global__ void thin_edges_slopes(const float *__restrict__ gx, const float *__restrict__ gy, float *__restrict__ out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    int at = y * width + x;
    float u = gx[at], v = gy[at], au = fabsf(u), av = fabsf(v);
    int step = av < 0.41421356f * au ? 1 : av > 2.41421356f * au ? width : (u > 0) == (v > 0) ? width + 1 : width - 1;
    float p = gx[at + step], q = gy[at + step], r = gx[at - step], s = gy[at - step];
    float m = u * u + v * v, a = p * p + q * q, b = r * r + s * s;
    if (!SQUARES) m = sqrtf(m), a = sqrtf(a), b = sqrtf(b);
    out[at] = m >= a && m >= b ? (SQUARES ? sqrtf(m) : m) : 0.f;
}
Study thinnings("canny_thinning_atan2", "images", 4096, "thinning of edges: non-maximum suppression along the gradient, 4096 x 4096",
    "the direction, one of four, is found by atan2f",
    {{"slopes", "components compared, no angle", {"expensive_math"}},
        {"squares", "components compared, and squares of the magnitudes", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        // Multiples of 1/8 keep ties and bounds of directions the same in every order of operations.
        std::vector<float> u(n * n), v(n * n);
        for (long i = 0; i < n * n; ++i) {
            unsigned r = pairs::hash(i);
            u[i] = int(r % 255) * 0.125f - 15.9375f, v[i] = int(r / 256 % 253) * 0.125f - 15.8125f;
        }
        float *gx = b.copy(u), *gy = b.copy(v), *out = b.output<float>(n * n, true);
        auto run = [&](auto kernel) { return launch(kernel, dim3(n / 64, n / 4), dim3(64, 4), 0, gx, gy, out, n, n); };
        return {{"flawed", run(thin_edges)}, {"slopes", run(thin_edges_slopes<false>)}, {"squares", run(thin_edges_slopes<true>)}};
    });

// --- Hough transform for lines ---

constexpr int ANGLES = 180, OFFSETS = 2048;
__global__ void hough(const short2 *points, int count, unsigned *votes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = points[i].x, y = points[i].y;
    for (int a = 0; a < ANGLES; a++) {
        float s, c;
        __sincosf(a * 0.0174532925f, &s, &c);
        atomicAdd(&votes[a * OFFSETS + __float2int_rn((x * c + y * s) * 0.5f) + OFFSETS / 2], 1u);
    }
}
__global__ void __launch_bounds__(256) hough_shared(const short2 *__restrict__ points, int count, unsigned *votes) {
    __shared__ unsigned mine[OFFSETS];
    for (int i = threadIdx.x; i < OFFSETS; i += 256) mine[i] = 0;
    __syncthreads();
    float s, c;
    __sincosf(blockIdx.x * 0.0174532925f, &s, &c);
    for (int i = blockIdx.y * 256 + threadIdx.x; i < count; i += gridDim.y * 256)
        atomicAdd(&mine[__float2int_rn((points[i].x * c + points[i].y * s) * 0.5f) + OFFSETS / 2], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < OFFSETS; i += 256)
        if (gridDim.y == 1) votes[blockIdx.x * OFFSETS + i] = mine[i];
        else if (mine[i]) atomicAdd(&votes[blockIdx.x * OFFSETS + i], mine[i]);
}
Study houghs("hough_global_votes", "images", 1 << 17, "131072 edge points vote for lines: 180 angles, 2048 offsets",
    "a thread a point: an atomic on global memory for each angle, and its sine and cosine again",
    {{"angle_each", "a block an angle that counts in shared memory", {"global_atomics", "expensive_math"}},
        {"split", "eight blocks an angle, counted in shared memory, then added", {"global_atomics", "expensive_math"}}},
    [](Buffers &b, long count) -> Sides {
        std::vector<int> host(count);
        for (long i = 0; i < count; ++i) {
            unsigned r = pairs::hash(i);
            int x = r % 1024, y = i % 3 ? (x * 3 / 4 + 100) % 1024 : r / 1024 % 1024;  // most lie on lines
            host[i] = y << 16 | x;
        }
        int *points = b.copy(host), n = count;
        auto *votes = b.output<unsigned>(ANGLES * OFFSETS, true);
        b.tolerance = 1e-2;  // points between two offsets go to either
        return {{"flawed", launch(hough, blocks(count, 256), 256, 0, (short2 *)points, n, votes)},
            {"angle_each", launch(hough_shared, ANGLES, 256, 0, (short2 *)points, n, votes)},
            {"split", launch(hough_shared, dim3(ANGLES, 8), 256, 0, (short2 *)points, n, votes)}};
    });

// --- cosine transform of 8 x 8 pixels ---

__global__ void dct8(const float *in, float *out, int width) {
    __shared__ float tile[8][8], half[8][8];
    int u = threadIdx.x, v = threadIdx.y, at = (blockIdx.y * 8 + v) * width + blockIdx.x * 8 + u;
    tile[v][u] = in[at];
    __syncthreads();
    float sum = 0.f;
    for (int i = 0; i < 8; i++) sum += tile[v][i] * cosf((2 * i + 1) * u * 3.14159265f / 16);
    half[v][u] = sum * (u ? 0.5f : 0.35355339f);
    __syncthreads();
    sum = 0.f;
    for (int i = 0; i < 8; i++) sum += half[i][u] * cosf((2 * i + 1) * v * 3.14159265f / 16);
    out[at] = sum * (v ? 0.5f : 0.35355339f);
}
__global__ void __launch_bounds__(64) dct8_table(const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ table, int width) {
    __shared__ float tile[8][8], half[8][8], cosine[8][9];
    int u = threadIdx.x, v = threadIdx.y, at = (blockIdx.y * 8 + v) * width + blockIdx.x * 8 + u;
    tile[v][u] = in[at];
    cosine[v][u] = table[v * 8 + u];
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += tile[v][i] * cosine[u][i];
    half[v][u] = sum;
    __syncthreads();
    sum = 0.f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += half[i][u] * cosine[v][i];
    out[at] = sum;
}
__device__ void dct_row(float (&x)[8]) {
    constexpr float c[8] = {0.35355339f, 0.49039264f, 0.46193977f, 0.41573481f, 0.35355339f, 0.27778512f, 0.19134172f, 0.09754516f};
    float s[4], d[4], y[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) s[i] = x[i] + x[7 - i], d[i] = x[i] - x[7 - i];
    y[0] = c[0] * (s[0] + s[1] + s[2] + s[3]), y[4] = c[4] * (s[0] - s[1] - s[2] + s[3]);
    y[2] = c[2] * (s[0] - s[3]) + c[6] * (s[1] - s[2]), y[6] = c[6] * (s[0] - s[3]) - c[2] * (s[1] - s[2]);
    y[1] = c[1] * d[0] + c[3] * d[1] + c[5] * d[2] + c[7] * d[3], y[3] = c[3] * d[0] - c[7] * d[1] - c[1] * d[2] - c[5] * d[3];
    y[5] = c[5] * d[0] - c[1] * d[1] + c[7] * d[2] + c[3] * d[3], y[7] = c[7] * d[0] - c[5] * d[1] + c[3] * d[2] - c[1] * d[3];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = y[i];
}
__global__ void __launch_bounds__(128) dct8_registers(const float *__restrict__ in, float *__restrict__ out, int width) {
    __shared__ float strip[8][129];  // 16 tiles side by side; a thread takes a column, then a row of one
    int t = threadIdx.x, x0 = blockIdx.x * 128, y0 = blockIdx.y * 8;
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = in[(y0 + i) * width + x0 + t];
    dct_row(v);
#pragma unroll
    for (int i = 0; i < 8; ++i) strip[i][t] = v[i];
    __syncthreads();
    int row = t % 8, tile = t / 8 * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = strip[row][tile + i];
    dct_row(v);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) strip[row][tile + i] = v[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) out[(y0 + i) * width + x0 + t] = strip[i][t];
}
Study dcts("dct_8x8_cosines", "images", 4096, "cosine transform of the 8 x 8 tiles of a float image of 4096 x 4096",
    "each thread computes sixteen cosines for its coefficient",
    {{"table", "cosines from a table in shared memory", {"expensive_math"}},
        {"registers", "a thread a column, then a row of eight, constants in the code", {"expensive_math", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> table(64);
        for (int u = 0; u < 8; ++u)
            for (int i = 0; i < 8; ++i) table[u * 8 + i] = (u ? 0.5 : 0.353553390593) * std::cos((2 * i + 1) * u * M_PI / 16);
        float *in = b.random<float>(n * n), *out = b.output<float>(n * n), *cosines = b.copy(table);
        return {{"flawed", launch(dct8, dim3(n / 8, n / 8), dim3(8, 8), 0, in, out, n)},
            {"table", launch(dct8_table, dim3(n / 8, n / 8), dim3(8, 8), 0, in, out, cosines, n)},
            {"registers", launch(dct8_registers, dim3(n / 128, n / 8), 128, 0, in, out, n)}};
    });

// --- maximum intensity projection along the axis that is stored fastest ---

__global__ void project(const __half *volume, float *image, int depth, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    float top = 0.f;
    for (int k = 0; k < depth; k++) top = fmaxf(top, __half2float(volume[(size_t)i * depth + k]));
    image[i] = top;
}
__global__ void project_warp(const __half2 *__restrict__ volume, float *__restrict__ image, int depth2, int pixels) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= pixels) return;
    __half2 top = __float2half2_rn(0.f);
    for (int k = lane; k < depth2; k += 32) top = __hmax2(top, volume[(size_t)i * depth2 + k]);
    float one = warp_max(fmaxf(__low2float(top), __high2float(top)));
    if (lane == 0) image[i] = one;
}
__global__ void project_wide(const uint4 *__restrict__ volume, float *__restrict__ image, int depth8, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    __half2 top = __float2half2_rn(0.f);
    for (int k = 0; k < depth8; k++) {
        uint4 v = volume[(size_t)i * depth8 + k];
        const __half2 *h = reinterpret_cast<const __half2 *>(&v);
        top = __hmax2(top, __hmax2(__hmax2(h[0], h[1]), __hmax2(h[2], h[3])));
    }
    image[i] = fmaxf(__low2float(top), __high2float(top));
}
Study projections("mip_along_rows", "rendering", 1 << 18, "maximum along 320 half values for 512 x 512 pixels, stored along the ray",
    "a thread a ray: two bytes a load, lanes 640 bytes apart",
    {{"warp", "a warp a ray, two values a lane", {"uncoalesced_access", "narrow_access"}},
        {"wide", "still a thread a ray, eight values a load", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long pixels) -> Sides {
        int depth = 320, n = pixels;
        auto *volume = b.random<__half>(pixels * depth, 0, 1);
        float *image = b.output<float>(pixels);
        return {{"flawed", launch(project, pixels / 128, 128, 0, volume, image, depth, n)},
            {"warp", launch(project_warp, pixels / 4, 128, 0, (__half2 *)volume, image, depth / 2, n)},
            {"wide", launch(project_wide, pixels / 128, 128, 0, (uint4 *)volume, image, depth / 8, n)}};
    });

// --- triangles to a depth buffer ---

struct Triangle {
    float2 a, b, c;
    float depth;
    int box;  // x0, y0 in 12 bits each, size in 8
};
__device__ bool covers(const Triangle &t, float x, float y) {
    float e0 = (t.b.x - t.a.x) * (y - t.a.y) - (t.b.y - t.a.y) * (x - t.a.x);
    float e1 = (t.c.x - t.b.x) * (y - t.b.y) - (t.c.y - t.b.y) * (x - t.b.x);
    float e2 = (t.a.x - t.c.x) * (y - t.c.y) - (t.a.y - t.c.y) * (x - t.c.x);
    return e0 >= 0.f && e1 >= 0.f && e2 >= 0.f;
}
__global__ void raster(const Triangle *triangles, int count, unsigned *depth, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Triangle t = triangles[i];
    int x0 = t.box & 4095, y0 = t.box >> 12 & 4095, size = t.box >> 24 & 255;
    for (int y = y0; y < y0 + size; y++)
        for (int x = x0; x < x0 + size; x++)
            if (covers(t, x + 0.5f, y + 0.5f)) atomicMax(&depth[y * width + x], __float_as_uint(t.depth));
}
template <int LANES>
__global__ void raster_lanes(const Triangle *__restrict__ triangles, int count, unsigned *depth, int width) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (i >= count) return;
    Triangle t = triangles[i];
    int x0 = t.box & 4095, y0 = t.box >> 12 & 4095, size = t.box >> 24 & 255;
    for (int y = y0 + lane / 8; y < y0 + size; y += LANES / 8)
        for (int x = x0 + lane % 8; x < x0 + size; x += 8)
            if (covers(t, x + 0.5f, y + 0.5f)) atomicMax(&depth[y * width + x], __float_as_uint(t.depth));
}
Study rasters("raster_thread_per_triangle", "rendering", 1 << 17, "131072 triangles of 2 to 96 pixels a side drawn into a depth buffer of 2048 x 2048",
    "a thread a triangle: few are large, and their lanes keep the warp busy",
    {{"warp", "a warp a triangle", {"branch_divergence", "workload_imbalance"}},
        {"eight", "eight lanes a triangle", {"branch_divergence", "workload_imbalance"}}},
    [](Buffers &b, long count) -> Sides {
        std::vector<Triangle> host(count);
        for (long i = 0; i < count; ++i) {
            unsigned r = pairs::hash(i), s = pairs::hash(r);
            int size = r % 64 == 0 ? 64 + r / 64 % 33 : 2 + r / 64 % 9, x = s % (2048 - size), y = s / 2048 % (2048 - size);
            float f = size;
            host[i] = {{x + 0.f, y + 0.f}, {x + f, y + 0.25f * f}, {x + 0.375f * f, y + f}, 0.1f + (s >> 8) / 33554432.f, x | y << 12 | size << 24};
        }
        void *t = b.copy(std::vector<float>((float *)host.data(), (float *)(host.data() + count)));
        auto *depth = b.output<unsigned>(2048 * 2048, true);
        int n = count;
        b.tolerance = 0;
        return {{"flawed", launch(raster, blocks(count, 128), 128, 0, (Triangle *)t, n, depth, 2048)},
            {"warp", launch(raster_lanes<32>, blocks(count, 4), 128, 0, (Triangle *)t, n, depth, 2048)},
            {"eight", launch(raster_lanes<8>, blocks(count, 16), 128, 0, (Triangle *)t, n, depth, 2048)}};
    });

// --- tone mapping ---

__device__ float film(float x) { return x * (2.51f * x + 0.03f) / (x * (2.43f * x + 0.59f) + 0.14f); }
__global__ void tone_map(const float *hdr, unsigned char *ldr, float exposure, int values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= values) return;
    float v = film(hdr[i] * powf(2.f, exposure));
    ldr[i] = (unsigned char)(powf(fminf(fmaxf(v, 0.f), 1.f), 1.f / 2.2f) * 255.f + 0.5f);
}
template <bool FAST>
__global__ void tone_map_four(const float4 *__restrict__ hdr, uchar4 *__restrict__ ldr, float gain, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 h = hdr[i];
    auto one = [&](float x) {
        x *= gain;
        float v = FAST ? __fdividef(x * (2.51f * x + 0.03f), x * (2.43f * x + 0.59f) + 0.14f) : film(x);
        v = fminf(fmaxf(v, 0.f), 1.f);
        return (unsigned char)((FAST ? exp2f(__log2f(v) * (1.f / 2.2f)) : powf(v, 1.f / 2.2f)) * 255.f + 0.5f);
    };
    ldr[i] = {one(h.x), one(h.y), one(h.z), one(h.w)};
}
__global__ void tone_map_fast(const float *__restrict__ hdr, unsigned char *__restrict__ ldr, float gain, int values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= values) return;
    float x = hdr[i] * gain, v = __fdividef(x * (2.51f * x + 0.03f), x * (2.43f * x + 0.59f) + 0.14f);
    v = fminf(fmaxf(v, 0.f), 1.f);
    ldr[i] = (unsigned char)(exp2f(__log2f(v) * (1.f / 2.2f)) * 255.f + 0.5f);
}
Study tones("tone_map_pow", "rendering", 3 << 23, "film curve and gamma from floats to bytes, 25 million values",
    "two powf and a precise division a value; the exposure's is the same for all",
    {{"fast", "gain from the host, fast division and power", {"expensive_math"}},
        {"fast_four", "the same, four values a thread", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *hdr = b.random<float>(n, 0.01, 4);
        auto *ldr = b.output<unsigned char>(n);
        b.tolerance = 0.01;  // one of 255
        return {{"flawed", launch(tone_map, blocks(n, 256), 256, 0, hdr, ldr, 0.5f, n)},
            {"fast", launch(tone_map_fast, blocks(n, 256), 256, 0, hdr, ldr, 1.41421356f, n)},
            {"fast_four", launch(tone_map_four<true>, blocks(n / 4, 256), 256, 0, (float4 *)hdr, (uchar4 *)ldr, 1.41421356f, n / 4)}};
    });

// --- walks down a tree of boxes ---

// A complete binary tree of intervals: node i has children 2i + 1 and 2i + 2; leaves are from `leaves - 1` on.
template <bool SHARED>
__global__ void __launch_bounds__(128) tree_hits(const float2 *__restrict__ box, const float *__restrict__ query, int *__restrict__ hits, float radius, int leaves, int count) {
    __shared__ int shared_stack[SHARED ? 24 : 1][128];
    int local_stack[SHARED ? 1 : 24], top = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float low = query[i] - radius, high = query[i] + radius;
    int found = 0;
    auto push = [&](int node) {
        if (SHARED) shared_stack[top++][threadIdx.x] = node;
        else local_stack[top++] = node;
    };
    push(0);
    while (top > 0) {
        int node = SHARED ? shared_stack[--top][threadIdx.x] : local_stack[--top];
        float2 b = box[node];
        if (b.x > high || b.y < low) continue;
        if (node >= leaves - 1) found += node & 7;
        else push(2 * node + 1), push(2 * node + 2);
    }
    hits[i] = found;
}
__global__ void __launch_bounds__(128) tree_hits_skip(const float2 *__restrict__ box, const float *__restrict__ query, int *__restrict__ hits, float radius, int leaves, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= count) return;
    float low = query[i] - radius, high = query[i] + radius;
    unsigned node = 1;  // counted from 1: parent is half of it, left children are even
    do {
        float2 b = box[node - 1];
        bool hit = b.x <= high && b.y >= low;
        if (hit && int(node) < leaves) {
            node *= 2;
            continue;
        }
        if (hit) found += node - 1 & 7;
        node += 1;
        node >>= __ffs(node) - 1;  // up while it was a right child
    } while (node > 1);
    hits[i] = found;
}
Study trees("tree_walk_local_stack", "rendering", 1 << 18, "262144 queries walk a binary tree of 65536 boxes",
    "each thread's stack lies in local memory",
    {{"shared_stack", "stacks in shared memory", {"local_memory"}}, {"no_stack", "the next node follows from the number of the last", {"local_memory"}}},
    [](Buffers &b, long count) -> Sides {
        int leaves = 1 << 16, n = count;
        std::vector<float> box(2 * (2 * leaves - 1));
        for (int node = 2 * leaves - 2; node >= 0; --node) {
            float *at = &box[2 * node];
            if (node >= leaves - 1) {
                int leaf = node - (leaves - 1);
                at[0] = leaf / float(leaves), at[1] = at[0] + (1 + pairs::hash(leaf) % 3) / float(leaves);
            } else {
                const float *l = &box[2 * (2 * node + 1)], *r = &box[2 * (2 * node + 2)];
                at[0] = std::fmin(l[0], r[0]), at[1] = std::fmax(l[1], r[1]);
            }
        }
        float2 *boxes = (float2 *)b.copy(box);
        float *query = b.random<float>(count, 0, 1);
        int *hits = b.output<int>(count);
        b.tolerance = 0;
        float radius = 6.f / leaves;
        return {{"flawed", launch(tree_hits<false>, blocks(count, 128), 128, 0, boxes, query, hits, radius, leaves, n)},
            {"shared_stack", launch(tree_hits<true>, blocks(count, 128), 128, 0, boxes, query, hits, radius, leaves, n)},
            {"no_stack", launch(tree_hits_skip, blocks(count, 128), 128, 0, boxes, query, hits, radius, leaves, n)}};
    });

// --- decimation by four ---

__global__ void decimate(const float *x, const float *h, float *y, int taps, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0.f;
    for (int k = 0; k < taps; k++) sum += h[k] * x[4 * i + k];
    y[i] = sum;
}
__global__ void __launch_bounds__(256) decimate_shared(const float *__restrict__ x, const float *__restrict__ h, float *__restrict__ y, int count) {
    __shared__ float phase[4][256 + 16], taps[64];
    int t = threadIdx.x;
    for (int i = t; i < 4 * 272; i += 256) phase[i % 4][i / 4] = x[size_t(blockIdx.x) * 1024 + i];
    if (t < 64) taps[t] = h[t];
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 64; ++k) sum += taps[k] * phase[k % 4][t + k / 4];
    y[blockIdx.x * 256 + t] = sum;
}
__global__ void decimate_vector(const float4 *__restrict__ x, const float4 *__restrict__ h, float *__restrict__ y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        float4 a = h[k], v = x[i + k];
        sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
    }
    y[i] = sum;
}
Study decimations("fir_decimate_by_four", "signals", 1 << 22, "low pass of 64 taps, every fourth of 16 million samples",
    "lanes are four samples apart and each of 64 loads fetches again what its neighbours have",
    {{"shared", "samples in shared memory, by phase", {"redundant_loads", "uncoalesced_access"}},
        {"vector", "four samples and four taps a load", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(4 * n + 64), *h = b.random<float>(64), *y = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(decimate, n / 256, 256, 0, x, h, y, 64, n)}, {"shared", launch(decimate_shared, n / 256, 256, 0, x, h, y, n)},
            {"vector", launch(decimate_vector, n / 256, 256, 0, (float4 *)x, (float4 *)h, y, n)}};
    });

// --- frames of a spectrogram, windowed ---

__global__ void frames(const float *x, float *out, int hop, int length, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int frame = i / length, k = i % length;
    float a = cosf(2.f * 3.14159265f * k / (length - 1)), b = cosf(4.f * 3.14159265f * k / (length - 1));
    out[i] = x[frame * hop + k] * (0.42f - 0.5f * a + 0.08f * b);
}
__global__ void frames_table(const float *__restrict__ x, const float *__restrict__ window, float *__restrict__ out, int hop, int length) {
    for (int k = threadIdx.x; k < length; k += blockDim.x) out[blockIdx.x * length + k] = x[blockIdx.x * hop + k] * window[k];
}
__global__ void frames_column(const float *__restrict__ x, float *__restrict__ out, int hop, int length, int each) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * each;
    float a = cosf(2.f * 3.14159265f * k / (length - 1)), b = cosf(4.f * 3.14159265f * k / (length - 1)), w = 0.42f - 0.5f * a + 0.08f * b;
#pragma unroll 4
    for (int f = first; f < first + each; ++f) out[f * length + k] = x[f * hop + k] * w;
}
Study windows("spectrogram_window_cosines", "signals", 16384, "16384 frames of 1024 samples, hop of 256, under a Blackman window",
    "two cosines and an index division a sample; neither depends on the frame",
    {{"table", "window from a table, a block a frame", {"expensive_math", "integer_arithmetic"}},
        {"column", "a thread keeps its window value for 16 frames", {"expensive_math", "integer_arithmetic"}}},
    [](Buffers &b, long count) -> Sides {
        int length = 1024, hop = 256, total = count * length;
        std::vector<float> window(length);
        for (int k = 0; k < length; ++k) window[k] = 0.42 - 0.5 * std::cos(2 * M_PI * k / (length - 1)) + 0.08 * std::cos(4 * M_PI * k / (length - 1));
        float *x = b.random<float>(count * hop + length), *w = b.copy(window), *out = b.output<float>(total);
        return {{"flawed", launch(frames, total / 256, 256, 0, x, out, hop, length, total)},
            {"table", launch(frames_table, count, 256, 0, x, w, out, hop, length)},
            {"column", launch(frames_column, dim3(length / 256, count / 16), 256, 0, x, out, hop, length, 16)}};
    });

// --- Goertzel filters ---

__global__ void __launch_bounds__(128) goertzel(const float *__restrict__ x, float *__restrict__ power, int samples) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    float c = 2.f * cosf(0.05f + f * 1.7e-4f), s1 = 0.f, s2 = 0.f;
    for (int i = 0; i < samples; i++) {
        float s = x[i] + c * s1 - s2;
        s2 = s1, s1 = s;
    }
    power[f] = s1 * s1 + s2 * s2 - c * s1 * s2;
}
// Four quarters of the signal at once; their results turned by the phase that lies between and added.
__global__ void __launch_bounds__(128) goertzel_four(const float *__restrict__ x, float *__restrict__ power, int samples) {
    int f = blockIdx.x * blockDim.x + threadIdx.x, quarter = samples / 4;
    float w = 0.05f + f * 1.7e-4f, c = 2.f * cosf(w), s1[4] = {}, s2[4] = {}, re = 0.f, im = 0.f;
    for (int i = 0; i < quarter; i++)
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            float s = x[q * quarter + i] + c * s1[q] - s2[q];
            s2[q] = s1[q], s1[q] = s;
        }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        float a = s1[q] - s2[q] * cosf(w), b = s2[q] * sinf(w), p = fmodf(-w * quarter * q, 6.2831853f), u = cosf(p), v = sinf(p);
        re += a * u - b * v, im += a * v + b * u;
    }
    power[f] = re * re + im * im;
}
// A warp serves eight frequencies, four lanes each with a quarter of the signal.
__global__ void __launch_bounds__(128) goertzel_lanes(const float *__restrict__ x, float *__restrict__ power, int samples) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, f = t / 4, q = t % 4, quarter = samples / 4;
    float w = 0.05f + f * 1.7e-4f, c = 2.f * cosf(w), s1 = 0.f, s2 = 0.f;
    for (int i = 0; i < quarter; i++) {
        float s = x[q * quarter + i] + c * s1 - s2;
        s2 = s1, s1 = s;
    }
    float a = s1 - s2 * cosf(w), b = s2 * sinf(w), p = fmodf(-w * quarter * q, 6.2831853f), u = cosf(p), v = sinf(p);
    float re = a * u - b * v, im = a * v + b * u;
    for (int d = 1; d < 4; d *= 2) re += __shfl_xor_sync(~0u, re, d), im += __shfl_xor_sync(~0u, im, d);
    if (q == 0) power[f] = re * re + im * im;
}
Study goertzels("goertzel_one_chain", "signals", 16896, "16896 Goertzel filters over 4096 samples",
    "a chain of two dependent operations a sample, and four warps a multiprocessor",
    {{"four_chains", "four quarters of the signal at once in a thread", {"instruction_latency"}},
        {"four_lanes", "four lanes a filter, a quarter of the signal each", {"instruction_latency", "low_occupancy"}}},
    [](Buffers &b, long count) -> Sides {
        float *x = b.random<float>(4096), *power = b.output<float>(count);
        b.tolerance = 2e-2;
        return {{"flawed", launch(goertzel, count / 128, 128, 0, x, power, 4096)}, {"four_chains", launch(goertzel_four, count / 128, 128, 0, x, power, 4096)},
            {"four_lanes", launch(goertzel_lanes, count / 32, 128, 0, x, power, 4096)}};
    });

// --- ultrasound: delay and sum ---

__global__ void delay_sum(const float *echo, const float *probe, float *image, int width, int samples, float speed, float rate) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float px = (x - width / 2) * 1e-4f, pz = (y + 20) * 1e-4f, sum = 0.f;
    for (int c = 0; c < 64; c++) {
        float dx = px - probe[c];
        float t = (pz + sqrtf(dx * dx + pz * pz)) / speed / (1.f / rate);
        int i = (int)t;
        if (i < samples - 1) {
            float a = t - i;
            sum += (1.f - a) * echo[c * samples + i] + a * echo[c * samples + i + 1];
        }
    }
    image[y * width + x] = sum;
}
__device__ __forceinline__ float fast_root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
template <int ROWS>
__global__ void delay_sum_fast(const float *__restrict__ echo, const float *__restrict__ probe, float *__restrict__ image, int width, int samples, float scale) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y0 = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
    float px = (x - width / 2) * 1e-4f, sum[ROWS] = {};
    for (int c = 0; c < 64; c++) {
        float dx = px - probe[c], square = dx * dx;
        const float *mine = echo + c * samples;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float pz = (y0 + r + 20) * 1e-4f, t = (pz + fast_root(square + pz * pz)) * scale;
            int i = (int)t;
            if (i < samples - 1) {
                float a = t - i, u = mine[i];
                sum[r] += u + a * (mine[i + 1] - u);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) image[(y0 + r) * width + x] = sum[r];
}
Study beams("ultrasound_delay_divisions", "signals", 512, "delay and sum of 64 ultrasound channels for 512 x 512 points",
    "a precise root and two precise divisions by what never changes, a channel and point",
    {{"fast", "a product with the sample rate over speed, a fast root", {"expensive_math"}},
        {"rows", "the same, and four rows a thread share what depends on the column", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        int samples = 4096;
        std::vector<float> probe(64), echo(64 * samples);
        for (int c = 0; c < 64; ++c) {
            probe[c] = (c - 31.5f) * 3e-4f;
            for (int i = 0; i < samples; ++i) echo[c * samples + i] = std::sin(0.02f * i + c);  // smooth, as echoes are
        }
        float *p = b.copy(probe), *e = b.copy(echo), *image = b.output<float>(n * n);
        b.tolerance = 5e-3;
        return {{"flawed", launch(delay_sum, dim3(n / 32, n / 4), dim3(32, 4), 0, e, p, image, n, samples, 1540.f, 4e7f)},
            {"fast", launch(delay_sum_fast<1>, dim3(n / 32, n / 4), dim3(32, 4), 0, e, p, image, n, samples, 4e7f / 1540.f)},
            {"rows", launch(delay_sum_fast<4>, dim3(n / 32, n / 16), dim3(32, 4), 0, e, p, image, n, samples, 4e7f / 1540.f)}};
    });

// --- Viterbi decoding of a code with 64 states ---

__global__ void __launch_bounds__(64) viterbi(const signed char *soft, unsigned long long *decisions, int *best, int steps) {
    __shared__ int metric[2][64];
    int s = threadIdx.x;
    const signed char *in = soft + size_t(blockIdx.x) * steps * 2;
    metric[0][s] = s ? 1000 : 0;
    __syncthreads();
    int p0 = s >> 1, p1 = p0 + 32;
    int o0 = __popc(s & 0x2d) & 1, o1 = __popc(s & 0x33) & 1;
    for (int t = 0; t < steps; t++) {
        int a = in[2 * t], b = in[2 * t + 1], cost = (o0 ? a : -a) + (o1 ? b : -b);
        int m0 = metric[t & 1][p0] + cost, m1 = metric[t & 1][p1] - cost;
        metric[t + 1 & 1][s] = min(m0, m1);
        unsigned bits = __ballot_sync(~0u, m1 < m0);
        if (s % 32 == 0) reinterpret_cast<unsigned *>(decisions)[(size_t(blockIdx.x) * steps + t) * 2 + s / 32] = bits;
        __syncthreads();
    }
    best[blockIdx.x * 64 + s] = metric[steps & 1][s];
}
template <int FRAMES>  // a warp a frame, states `lane` and `lane + 32` a lane
__global__ void viterbi_warp(const signed char *__restrict__ soft, uint2 *__restrict__ decisions, int *__restrict__ best, int steps) {
    int lane = threadIdx.x % 32, frame = blockIdx.x * FRAMES + threadIdx.x / 32;
    const char2 *in = reinterpret_cast<const char2 *>(soft) + size_t(frame) * steps;
    int low = lane ? 1000 : 0, high = 1000, p = lane >> 1;
    int o0 = __popc(lane & 0x2d) & 1, o1 = __popc(lane & 0x33) & 1, h0 = __popc(lane + 32 & 0x2d) & 1, h1 = __popc(lane + 32 & 0x33) & 1;
    for (int t = 0; t < steps; t++) {
        char2 v = in[t];
        int cl = (o0 ? v.x : -v.x) + (o1 ? v.y : -v.y), ch = (h0 ? v.x : -v.x) + (h1 ? v.y : -v.y);
        // State s comes from s / 2 and s / 2 + 32: for the low states from lanes 0 to 15, for the high ones from 16 on.
        int a = __shfl_sync(~0u, low, p), b = __shfl_sync(~0u, high, p), c = __shfl_sync(~0u, low, p + 16), d = __shfl_sync(~0u, high, p + 16);
        int l0 = a + cl, l1 = b - cl, g0 = c + ch, g1 = d - ch;
        unsigned bl = __ballot_sync(~0u, l1 < l0), bh = __ballot_sync(~0u, g1 < g0);
        low = min(l0, l1), high = min(g0, g1);
        if (lane == 0) decisions[size_t(frame) * steps + t] = {bl, bh};
    }
    best[frame * 64 + lane] = low, best[frame * 64 + lane + 32] = high;
}
Study viterbis("viterbi_barrier_each_step", "signals", 4096, "Viterbi decoding of 4096 frames of 512 steps, 64 states",
    "a block of 64 threads a frame meets at a barrier in every step",
    {{"warp", "a warp a frame, two states a lane, shuffles; four frames a block", {"barriers"}},
        {"warp_alone", "the same, a frame a block", {"barriers"}}},
    [](Buffers &b, long count) -> Sides {
        int steps = 512;
        auto *soft = b.random<signed char>(count * steps * 2, -15, 16);
        auto *decisions = (unsigned long long *)b.output<unsigned>(count * steps * 2);
        int *best = b.output<int>(count * 64);
        b.tolerance = 0;
        return {{"flawed", launch(viterbi, count, 64, 0, soft, decisions, best, steps)},
            {"warp", launch(viterbi_warp<4>, count / 4, 128, 0, soft, (uint2 *)decisions, best, steps)},
            {"warp_alone", launch(viterbi_warp<1>, count, 32, 0, soft, (uint2 *)decisions, best, steps)}};
    });

// --- mean of five frames of a film ---

__global__ void frame_means(const float *film, float *out, int pixels, int frames) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
    float sum = 0.f;
    for (int k = -2; k <= 2; k++) sum += film[size_t(min(max(t + k, 0), frames - 1)) * pixels + i];
    out[size_t(t) * pixels + i] = sum * 0.2f;
}
__global__ void frame_means_order(const float *film, float *out, int pixels, int frames) {
    int i = blockIdx.y * blockDim.x + threadIdx.x, t = blockIdx.x;  // blocks of the same pixels follow each other
    float sum = 0.f;
    for (int k = -2; k <= 2; k++) sum += film[size_t(min(max(t + k, 0), frames - 1)) * pixels + i];
    out[size_t(t) * pixels + i] = sum * 0.2f;
}
__global__ void frame_means_window(const float *__restrict__ film, float *__restrict__ out, int pixels, int frames) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = film[i], b = a, c = a, d = film[pixels + i], e = film[2 * size_t(pixels) + i];
    for (int t = 0; t < frames; ++t) {
        out[size_t(t) * pixels + i] = (a + b + c + d + e) * 0.2f;
        a = b, b = c, c = d, d = e;
        e = film[size_t(min(t + 3, frames - 1)) * pixels + i];
    }
}
Study films("film_mean_frame_by_frame", "images", 10, "mean of five neighbouring frames, ten frames of 2048 x 4096 floats",
    "frame after frame: what a frame shares with the next has left the cache by then",
    {{"order", "blocks of the same pixels in all frames one after the other", {"cache_locality"}}, {"window", "a thread goes through the frames with five values in registers", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long frames) -> Sides {
        int pixels = 2048 * 4096, n = frames;
        float *film = b.random<float>(frames * pixels, 0, 1), *out = b.output<float>(frames * pixels);
        return {{"flawed", launch(frame_means, dim3(pixels / 256, n), 256, 0, film, out, pixels, n)},
            {"order", launch(frame_means_order, dim3(n, pixels / 256), 256, 0, film, out, pixels, n)}, {"window", launch(frame_means_window, pixels / 256, 256, 0, film, out, pixels, n)}};
    });

}  // namespace
