// Image processing: filters, resampling, histograms, colour.
#include "../pairs/pair.cuh"

namespace {

typedef unsigned char uchar;

__host__ __device__ inline int clamp_to(int v, int top) { return v < 0 ? 0 : v > top ? top : v; }

// --- horizontal Gaussian blur of bytes ---

constexpr int RADIUS = 8;
__constant__ float gauss[2 * RADIUS + 1] = {.0044f, .0115f, .0257f, .0488f, .0799f, .1124f, .1365f, .1432f, .0752f, .1432f,
    .1365f, .1124f, .0799f, .0488f, .0257f, .0115f, .0044f};

__global__ void blur_rows(const uchar *src, uchar *dst, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; k++) sum += gauss[k + RADIUS] * src[y * width + clamp_to(x + k, width - 1)];
    dst[y * width + x] = sum * 0.7f;
}
__global__ void __launch_bounds__(256) blur_rows_shared(const uchar *src, uchar *dst, int width, int height) {
    __shared__ float line[256 + 2 * RADIUS];
    int x0 = blockIdx.x * 256, y = blockIdx.y;
    for (int i = threadIdx.x; i < 256 + 2 * RADIUS; i += 256)
        line[i] = src[y * width + clamp_to(x0 + i - RADIUS, width - 1)];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k <= 2 * RADIUS; k++) sum += gauss[k] * line[threadIdx.x + k];
    dst[y * width + x0 + threadIdx.x] = sum * 0.7f;
}
// Four pixels a thread from words of four; edges are read pixel by pixel.
__global__ void blur_rows_four(const uchar *src, uchar4 *dst, int width, int height) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float v[4 + 2 * RADIUS];
    const uchar *row = src + y * width;
    if (x >= RADIUS && x + 4 + RADIUS <= width) {
#pragma unroll
        for (int w = 0; w < 1 + RADIUS / 2; ++w) {
            uchar4 p = *reinterpret_cast<const uchar4 *>(row + x - RADIUS + 4 * w);
            v[4 * w] = p.x, v[4 * w + 1] = p.y, v[4 * w + 2] = p.z, v[4 * w + 3] = p.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4 + 2 * RADIUS; ++i) v[i] = row[clamp_to(x + i - RADIUS, width - 1)];
    }
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k <= 2 * RADIUS; k++)
#pragma unroll
        for (int o = 0; o < 4; ++o) sum[o] += gauss[k] * v[k + o];
    dst[(y * width + x) / 4] = make_uchar4(sum[0] * 0.7f, sum[1] * 0.7f, sum[2] * 0.7f, sum[3] * 0.7f);
}

Study blur("blur_rows_bytes", "images", 8192, "horizontal 17-tap blur of a grey image of bytes, 8192 x 8192",
    "17 loads of one byte for each output, every byte loaded 17 times",
    {{"shared", "a line with its halo in shared memory", {"redundant_loads"}},
        {"four_pixels", "four pixels a thread from five 4-byte words in registers", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *src = b.random<uchar>(n * n, 0, 256), *dst = b.output<uchar>(n * n);
        b.tolerance = 0.01;
        return {{"flawed", launch(blur_rows, dim3(n / 32, n / 8), dim3(32, 8), 0, src, dst, n, n)},
            {"shared", launch(blur_rows_shared, dim3(n / 256, n), 256, 0, src, dst, n, n)},
            {"four_pixels", launch(blur_rows_four, dim3(n / 128, n / 8), dim3(32, 8), 0, src, (uchar4 *)dst, n, n)}};
    });

// --- bilateral filter ---

__global__ void bilateral(const float *src, float *dst, int w, int h, float sigma_space, float sigma_range) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= w || y >= h) return;
    float centre = src[y * w + x], sum = 0.f, norm = 0.f;
    for (int dy = -3; dy <= 3; dy++)
        for (int dx = -3; dx <= 3; dx++) {
            float v = src[clamp_to(y + dy, h - 1) * w + clamp_to(x + dx, w - 1)];
            float space = expf(-(dx * dx + dy * dy) / (2 * sigma_space * sigma_space));
            float range = expf(-(v - centre) * (v - centre) / (2 * sigma_range * sigma_range));
            sum += v * space * range;
            norm += space * range;
        }
    dst[y * w + x] = sum / norm;
}
__global__ void bilateral_one_exp(const float *src, float *dst, int w, int h, float space2, float range2) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= w || y >= h) return;
    float centre = src[y * w + x], sum = 0.f, norm = 0.f;
    for (int dy = -3; dy <= 3; dy++)
        for (int dx = -3; dx <= 3; dx++) {
            float v = src[clamp_to(y + dy, h - 1) * w + clamp_to(x + dx, w - 1)];
            float weight = __expf((dx * dx + dy * dy) * space2 + (v - centre) * (v - centre) * range2);
            sum += v * weight;
            norm += weight;
        }
    dst[y * w + x] = sum / norm;
}
__global__ void bilateral_table(const float *src, float *dst, int w, int h, float sigma_space, float range2) {
    __shared__ float space[49];
    int tid = threadIdx.y * 16 + threadIdx.x;
    if (tid < 49) {
        int dx = tid % 7 - 3, dy = tid / 7 - 3;
        space[tid] = expf(-(dx * dx + dy * dy) / (2 * sigma_space * sigma_space));
    }
    __syncthreads();
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= w || y >= h) return;
    float centre = src[y * w + x], sum = 0.f, norm = 0.f;
#pragma unroll
    for (int dy = -3; dy <= 3; dy++)
#pragma unroll
        for (int dx = -3; dx <= 3; dx++) {
            float v = src[clamp_to(y + dy, h - 1) * w + clamp_to(x + dx, w - 1)];
            float weight = space[(dy + 3) * 7 + dx + 3] * __expf((v - centre) * (v - centre) * range2);
            sum += v * weight;
            norm += weight;
        }
    dst[y * w + x] = sum / norm;
}

Study bilaterals("bilateral_two_exponentials", "images", 4096, "bilateral filter of 7 x 7 on a float image of 4096 x 4096",
    "two precise exponentials and two divisions for each of the 49 taps, the spatial one the same for every pixel",
    {{"one_exponential", "exponents added: one fast exponential, reciprocals as arguments", {"expensive_math"}},
        {"table", "spatial weights from a table in shared memory, fast exponential, loops unrolled", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *src = b.random<float>(n * n, 0, 1), *dst = b.output<float>(n * n);
        b.tolerance = 1e-3;
        dim3 grid(n / 16, n / 16), block(16, 16);
        float ss = 2.f, sr = 0.2f;
        return {{"flawed", launch(bilateral, grid, block, 0, src, dst, n, n, ss, sr)},
            {"one_exponential", launch(bilateral_one_exp, grid, block, 0, src, dst, n, n, -1 / (2 * ss * ss), -1 / (2 * sr * sr))},
            {"table", launch(bilateral_table, grid, block, 0, src, dst, n, n, ss, -1 / (2 * sr * sr))}};
    });

// --- median of 5 x 5 ---

__global__ void median_5x5(const uchar *src, uchar *dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    uchar v[25];
    int n = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            uchar p = src[clamp_to(y + dy, h - 1) * w + clamp_to(x + dx, w - 1)];
            int i = n++;
            while (i > 0 && v[i - 1] > p) {  // insertion sort
                v[i] = v[i - 1];
                i--;
            }
            v[i] = p;
        }
    dst[y * w + x] = v[12];
}
// Every value's rank by comparing it with all others; no array is indexed at run time.
__global__ void median_5x5_rank(const uchar *src, uchar *dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int v[25];
#pragma unroll
    for (int k = 0; k < 25; ++k) v[k] = src[clamp_to(y + k / 5 - 2, h - 1) * w + clamp_to(x + k % 5 - 2, w - 1)];
    int median = 0;
#pragma unroll
    for (int i = 0; i < 25; ++i) {
        int rank = 0;
#pragma unroll
        for (int j = 0; j < 25; ++j)
            if (j != i) rank += j < i ? v[j] <= v[i] : v[j] < v[i];
        if (rank == 12) median = v[i];
    }
    dst[y * w + x] = median;
}
// Keeps the values that can still be the median: drops least and greatest, then takes in the next one.
template <int N>
__device__ __forceinline__ void ends(int *v) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
        int a = v[i], b = v[N - 1 - i];
        v[i] = min(a, b), v[N - 1 - i] = max(a, b);
    }
#pragma unroll
    for (int i = 1; i < (N + 1) / 2; ++i) {
        int a = v[0], b = v[i];
        v[0] = min(a, b), v[i] = max(a, b);
    }
#pragma unroll
    for (int i = N / 2; i < N - 1; ++i) {
        int a = v[i], b = v[N - 1];
        v[i] = min(a, b), v[N - 1] = max(a, b);
    }
}
template <int N>
__device__ __forceinline__ int forgetful(int *v, const int *all) {
    ends<N>(v);
    if constexpr (N == 3) return v[1];
    else {
        v[0] = all[28 - N];  // in the place of the least; the greatest is left out of the next round
        return forgetful<N - 1>(v, all);
    }
}
__global__ void median_5x5_network(const uchar *src, uchar *dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int all[25], v[14];
#pragma unroll
    for (int k = 0; k < 25; ++k) all[k] = src[clamp_to(y + k / 5 - 2, h - 1) * w + clamp_to(x + k % 5 - 2, w - 1)];
#pragma unroll
    for (int k = 0; k < 14; ++k) v[k] = all[k];
    dst[y * w + x] = forgetful<14>(v, all);
}

Study median("median_5x5_insertion", "images", 3072, "5 x 5 median of bytes, 3072 x 3072",
    "insertion sort of an array of 25 values indexed at run time: local memory, and lanes that shift differently far",
    {{"rank", "rank of every value by 600 comparisons in registers", {"local_memory", "branch_divergence"}},
        {"network", "least and greatest dropped by minima and maxima in registers", {"local_memory", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        auto *src = b.random<uchar>(n * n, 0, 256), *dst = b.output<uchar>(n * n);
        b.tolerance = 0;
        dim3 grid(n / 32, n / 8), block(32, 8);
        return {{"flawed", launch(median_5x5, grid, block, 0, src, dst, n, n)},
            {"rank", launch(median_5x5_rank, grid, block, 0, src, dst, n, n)},
            {"network", launch(median_5x5_network, grid, block, 0, src, dst, n, n)}};
    });

// --- bilinear resize ---

template <typename Real>
__global__ void resize_bilinear(const uchar *src, uchar *dst, int sw, int sh, int dw, int dh) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= dw || y >= dh) return;
    Real fx = (x + Real(0.5)) * sw / dw - Real(0.5), fy = (y + Real(0.5)) * sh / dh - Real(0.5);
    fx = fx < 0 ? Real(0) : fx, fy = fy < 0 ? Real(0) : fy;
    int x0 = fx, y0 = fy, x1 = min(x0 + 1, sw - 1), y1 = min(y0 + 1, sh - 1);
    Real ax = fx - x0, ay = fy - y0;
    for (int c = 0; c < 3; c++) {
        Real top = src[(y0 * sw + x0) * 3 + c] * (1 - ax) + src[(y0 * sw + x1) * 3 + c] * ax;
        Real bottom = src[(y1 * sw + x0) * 3 + c] * (1 - ax) + src[(y1 * sw + x1) * 3 + c] * ax;
        dst[(y * dw + x) * 3 + c] = uchar(top * (1 - ay) + bottom * ay + Real(0.5));
    }
}
// Positions and weights of columns and rows made beforehand, as 8-bit fractions would be in a CPU library.
__global__ void resize_tables(const uchar *src, uchar *dst, const float2 *columns, const float2 *rows, int sw, int sh, int dw, int dh) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= dw || y >= dh) return;
    float2 cx = columns[x], cy = rows[y];
    int x0 = cx.x, y0 = cy.x, x1 = min(x0 + 1, sw - 1), y1 = min(y0 + 1, sh - 1);
    float ax = cx.y, ay = cy.y;
    for (int c = 0; c < 3; c++) {
        float top = src[(y0 * sw + x0) * 3 + c] * (1 - ax) + src[(y0 * sw + x1) * 3 + c] * ax;
        float bottom = src[(y1 * sw + x0) * 3 + c] * (1 - ax) + src[(y1 * sw + x1) * 3 + c] * ax;
        dst[(y * dw + x) * 3 + c] = uchar(top * (1 - ay) + bottom * ay + 0.5f);
    }
}

Study resize("resize_bilinear_double", "images", 4096, "bilinear resize of an RGB image of bytes, 6000 x 6000 to 4096 x 4096",
    "coordinates and blending in double precision",
    {{"floats", "the same in float", {"double_precision"}},
        {"tables", "float, positions and weights of columns and rows from tables", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        int s = 6000;
        auto *src = b.random<uchar>(size_t(s) * s * 3, 0, 256), *dst = b.output<uchar>(n * n * 3);
        std::vector<float> table(2 * n);
        for (long i = 0; i < n; ++i) {
            double f = (i + 0.5) * s / n - 0.5;
            f = f < 0 ? 0 : f;
            table[2 * i] = int(f), table[2 * i + 1] = f - int(f);
        }
        float *at = b.copy(table);
        b.tolerance = 0.01;
        dim3 grid(n / 32, n / 8), block(32, 8);
        return {{"flawed", launch(resize_bilinear<double>, grid, block, 0, src, dst, s, s, n, n)},
            {"floats", launch(resize_bilinear<float>, grid, block, 0, src, dst, s, s, n, n)},
            {"tables", launch(resize_tables, grid, block, 0, src, dst, (float2 *)at, (float2 *)at, s, s, n, n)}};
    });

// --- histogram of a photograph ---

__global__ void histogram(const uchar *image, unsigned *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[image[i]], 1u);
}
__global__ void histogram_shared(const uchar *image, unsigned *bins, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&local[image[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void histogram_warps(const uint4 *image, unsigned *bins, int n16) {
    __shared__ unsigned local[8][257];
    for (int w = 0; w < 8; ++w) local[w][threadIdx.x] = 0;
    __syncthreads();
    unsigned *mine = local[threadIdx.x / 32];
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n16; i += gridDim.x * 256) {
        uint4 v = image[i];
        unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < 16; ++k) atomicAdd(&mine[words[k / 4] >> (k % 4 * 8) & 255], 1u);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int w = 0; w < 8; ++w) sum += local[w][threadIdx.x];
    atomicAdd(&bins[threadIdx.x], sum);
}

Study histograms("histogram_global", "images", 1 << 23, "256-bin histogram of bytes, few grey levels frequent",
    "an atomic in global memory for every pixel",
    {{"shared", "a histogram in shared memory a block, grid-stride", {"global_atomics"}},
        {"warps", "a histogram in shared memory a warp, 16 pixels a load", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<uchar> pixels(n);
        for (long i = 0; i < n; ++i) {
            unsigned r = pairs::hash(i);
            pixels[i] = ((r & 63) + (r >> 8 & 63) + (r >> 16 & 63) + (r >> 24 & 63));
        }
        uchar *image = b.copy(pixels);
        unsigned *bins = b.output<unsigned>(256, true);
        b.tolerance = 0;
        return {{"flawed", launch(histogram, blocks(n, 256), 256, 0, image, bins, n)},
            {"shared", launch(histogram_shared, 132 * 4, 256, 0, image, bins, n)},
            {"warps", launch(histogram_warps, 132 * 2, 256, 0, (uint4 *)image, bins, n / 16)}};
    });

// --- running sums along the rows of an image (half of an integral image) ---

__global__ void row_sums(const float *in, float *out, int w, int h) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= h) return;
    float sum = 0;
    for (int x = 0; x < w; x++) {
        sum += in[y * w + x];
        out[y * w + x] = sum;
    }
}
__global__ void row_sums_warp(const float *in, float *out, int w, int h) {
    int y = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (y >= h) return;
    float carry = 0;
    for (int x = lane; x < w; x += 32) {
        float v = in[y * w + x];
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            float left = __shfl_up_sync(~0u, v, d);
            if (lane >= d) v += left;
        }
        v += carry;
        out[y * w + x] = v;
        carry = __shfl_sync(~0u, v, 31);
    }
}
// A block a row, 16 values a thread: sums of threads are scanned, then added.
__global__ void __launch_bounds__(256) row_sums_block(const float4 *in, float4 *out) {
    __shared__ float totals[8];
    const float4 *row = in + size_t(blockIdx.x) * 1024 + threadIdx.x * 4;
    float v[16], sum = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float4 f = row[k];
        v[4 * k] = f.x, v[4 * k + 1] = f.y, v[4 * k + 2] = f.z, v[4 * k + 3] = f.w;
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) v[k] = sum += v[k];
    float scan = sum;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        float left = __shfl_up_sync(~0u, scan, d);
        if (threadIdx.x % 32 >= d) scan += left;
    }
    if (threadIdx.x % 32 == 31) totals[threadIdx.x / 32] = scan;
    __syncthreads();
    float before = scan - sum;
    for (int w = 0; w < threadIdx.x / 32; ++w) before += totals[w];
    float4 *to = out + size_t(blockIdx.x) * 1024 + threadIdx.x * 4;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        to[k] = {v[4 * k] + before, v[4 * k + 1] + before, v[4 * k + 2] + before, v[4 * k + 3] + before};
}

Study integral("integral_rows_thread", "images", 16384, "running sums along the rows of a float image of 16384 x 4096",
    "a thread a row: lanes are 16 KiB apart, and 16384 threads are few",
    {{"warp_per_row", "a warp a row, 32 values scanned by shuffles at a time", {"uncoalesced_access", "small_grid"}},
        {"block_per_row", "a block a row, 16 values a thread in 16-byte accesses", {"uncoalesced_access", "small_grid"}}},
    [](Buffers &b, long h) -> Sides {
        int w = 4096;
        float *in = b.random<float>(h * w, 0, 1), *out = b.output<float>(h * w);
        b.tolerance = 1e-3;
        return {{"flawed", launch(row_sums, h / 128, 128, 0, in, out, w, h)},
            {"warp_per_row", launch(row_sums_warp, h / 8, 256, 0, in, out, w, h)},
            {"block_per_row", launch(row_sums_block, h, 256, 0, (float4 *)in, (float4 *)out)}};
    });

// --- colour to grey ---

__global__ void rgb_to_grey(const uchar *rgb, uchar *grey, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) grey[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}
__device__ unsigned grey_of(unsigned r, unsigned g, unsigned b) { return (77 * r + 150 * g + 29 * b) >> 8; }
__global__ void rgb_to_grey_words(const unsigned *rgb, unsigned *grey, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    unsigned a = rgb[3 * i], b = rgb[3 * i + 1], c = rgb[3 * i + 2];
    grey[i] = grey_of(a & 255, a >> 8 & 255, a >> 16 & 255) | grey_of(a >> 24, b & 255, b >> 8 & 255) << 8 |
              grey_of(b >> 16 & 255, b >> 24, c & 255) << 16 | grey_of(c >> 8 & 255, c >> 16 & 255, c >> 24) << 24;
}
__global__ void __launch_bounds__(256) rgb_to_grey_staged(const uint4 *rgb, unsigned *grey) {
    __shared__ uint4 tile[192];  // 1024 pixels
    if (threadIdx.x < 192) tile[threadIdx.x] = rgb[size_t(blockIdx.x) * 192 + threadIdx.x];
    __syncthreads();
    const unsigned *words = reinterpret_cast<const unsigned *>(tile) + 3 * threadIdx.x;
    unsigned a = words[0], b = words[1], c = words[2];
    grey[size_t(blockIdx.x) * 256 + threadIdx.x] =
        grey_of(a & 255, a >> 8 & 255, a >> 16 & 255) | grey_of(a >> 24, b & 255, b >> 8 & 255) << 8 |
        grey_of(b >> 16 & 255, b >> 24, c & 255) << 16 | grey_of(c >> 8 & 255, c >> 16 & 255, c >> 24) << 24;
}

Study grey("rgb_to_grey_bytes", "images", 1 << 26, "interleaved RGB bytes to grey bytes",
    "three loads of one byte at a stride of three and a store of one byte a pixel",
    {{"words", "four pixels a thread from three 4-byte words", {"narrow_access"}},
        {"staged", "16-byte loads into shared memory, four pixels a thread from there", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *rgb = b.random<uchar>(n * 3, 0, 256), *out = b.output<uchar>(n);
        b.tolerance = 0;
        return {{"flawed", launch(rgb_to_grey, blocks(n, 256), 256, 0, rgb, out, n)},
            {"words", launch(rgb_to_grey_words, blocks(n / 4, 256), 256, 0, (unsigned *)rgb, (unsigned *)out, n / 4)},
            {"staged", launch(rgb_to_grey_staged, n / 1024, 256, 0, (uint4 *)rgb, (unsigned *)out)}};
    });

// --- Sobel with a tall block ---

__global__ void sobel(const float *src, float *dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    const float *p = src + y * w + x;
    float gx = p[-w + 1] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
    float gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
    dst[y * w + x] = fabsf(gx) + fabsf(gy);
}
__global__ void sobel_column(const float *__restrict__ src, float *__restrict__ dst, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 8;
    if (x < 1 || x >= w - 1) return;
    float a[3], b[3], c[3];
    auto load = [&](int y, float *to) {
        for (int d = 0; d < 3; ++d) to[d] = y >= 0 && y < h ? src[y * w + x + d - 1] : 0.f;
    };
    load(first - 1, a), load(first, b);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        int y = first + k;
        load(y + 1, c);
        float gx = a[2] + 2 * b[2] + c[2] - a[0] - 2 * b[0] - c[0], gy = c[0] + 2 * c[1] + c[2] - a[0] - 2 * a[1] - a[2];
        if (y >= 1 && y < h - 1) dst[y * w + x] = fabsf(gx) + fabsf(gy);
#pragma unroll
        for (int d = 0; d < 3; ++d) a[d] = b[d], b[d] = c[d];
    }
}

Study sobels("sobel_narrow_block", "images", 8192, "Sobel edges of a float image of 8192 x 8192",
    "blocks of 2 x 128 threads: a warp touches 16 rows of the image, two pixels of each",
    {{"wide_block", "blocks of 32 x 8", {"uncoalesced_access"}},
        {"column", "lanes along the row, eight pixels below each other a thread with a sliding window",
            {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *src = b.random<float>(n * n), *dst = b.output<float>(n * n, true);
        return {{"flawed", launch(sobel, dim3(n / 2, n / 128), dim3(2, 128), 0, src, dst, n, n)},
            {"wide_block", launch(sobel, dim3(n / 32, n / 8), dim3(32, 8), 0, src, dst, n, n)},
            {"column", launch(sobel_column, dim3(n / 256, n / 8), 256, 0, src, dst, n, n)}};
    });

// --- demosaicing: four kinds of pixels ---

__global__ void demosaic(const uchar *raw, uchar4 *rgb, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= w - 1 || y >= h - 1) return;
    const uchar *p = raw + y * w + x;
    int c = p[0], cross, r, g, b;
    if ((x & 1) == 0 && (y & 1) == 0) {  // red
        r = c, g = (p[-1] + p[1] + p[-w] + p[w]) / 4, b = (p[-w - 1] + p[-w + 1] + p[w - 1] + p[w + 1]) / 4;
    } else if ((x & 1) == 1 && (y & 1) == 1) {  // blue
        b = c, g = (p[-1] + p[1] + p[-w] + p[w]) / 4, r = (p[-w - 1] + p[-w + 1] + p[w - 1] + p[w + 1]) / 4;
    } else if ((y & 1) == 0) {  // green in a red row
        g = c, r = (p[-1] + p[1]) / 2, b = (p[-w] + p[w]) / 2;
    } else {
        g = c, b = (p[-1] + p[1]) / 2, r = (p[-w] + p[w]) / 2;
    }
    cross = (r * r + b * b + g * g) >> 8;  // brightness in the fourth channel
    rgb[y * w + x] = make_uchar4(r, g, b, min(cross, 255));
}
// Both candidates of a pixel, then selects: no branches.
__global__ void demosaic_selects(const uchar *raw, uchar4 *rgb, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= w - 1 || y >= h - 1) return;
    const uchar *p = raw + y * w + x;
    int c = p[0], sides = p[-1] + p[1], ends = p[-w] + p[w], corners = p[-w - 1] + p[-w + 1] + p[w - 1] + p[w + 1];
    bool green = (x ^ y) & 1, red_row = !(y & 1);
    int plus = (sides + ends) / 4, g = green ? c : plus;
    int here = green ? sides / 2 : c, there = green ? ends / 2 : corners / 4;
    int r = red_row ? here : there, b = red_row ? there : here;
    rgb[y * w + x] = make_uchar4(r, g, b, min((r * r + b * b + g * g) >> 8, 255));
}
// A thread a quad of two by two pixels, each at a fixed place in it: 16 loads for four pixels.
__global__ void demosaic_quads(const uchar *raw, uchar4 *rgb, int w, int h) {
    int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + 1, y = 2 * (blockIdx.y * blockDim.y + threadIdx.y) + 1;
    if (x >= w - 1 || y >= h - 1) return;
    int v[4][4];
#pragma unroll
    for (int i = 0; i < 16; ++i) v[i / 4][i % 4] = raw[(y + i / 4 - 1) * w + x + i % 4 - 1];
    auto put = [&](int dx, int dy, int r, int g, int b) {
        if (x + dx < w - 1 && y + dy < h - 1)
            rgb[(y + dy) * w + x + dx] = make_uchar4(r, g, b, min((r * r + b * b + g * g) >> 8, 255));
    };
    // (x, y) is odd, odd: blue.
    put(0, 0, (v[0][0] + v[0][2] + v[2][0] + v[2][2]) / 4, (v[1][0] + v[1][2] + v[0][1] + v[2][1]) / 4, v[1][1]);
    put(1, 0, (v[0][2] + v[2][2]) / 2, v[1][2], (v[1][1] + v[1][3]) / 2);
    put(0, 1, (v[2][0] + v[2][2]) / 2, v[2][1], (v[1][1] + v[3][1]) / 2);
    put(1, 1, v[2][2], (v[2][1] + v[2][3] + v[1][2] + v[3][2]) / 4, (v[1][1] + v[1][3] + v[3][1] + v[3][3]) / 4);
}

Study demosaics("demosaic_branches", "images", 8192, "bilinear demosaicing of a Bayer image of 8192 x 8192 bytes",
    "a branch for each of the four kinds of pixels: neighbouring lanes take different ones",
    {{"selects", "all candidates computed, the right one selected", {"branch_divergence"}},
        {"quads", "a thread takes two by two pixels, each kind at a fixed place", {"branch_divergence", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        auto *raw = b.random<uchar>(n * n, 0, 256), *rgb = b.output<uchar>(n * n * 4, true);
        b.tolerance = 0;
        return {{"flawed", launch(demosaic, dim3(n / 32, n / 8), dim3(32, 8), 0, raw, (uchar4 *)rgb, n, n)},
            {"selects", launch(demosaic_selects, dim3(n / 32, n / 8), dim3(32, 8), 0, raw, (uchar4 *)rgb, n, n)},
            {"quads", launch(demosaic_quads, dim3(n / 64, n / 16), dim3(32, 8), 0, raw, (uchar4 *)rgb, n, n)}};
    });

}  // namespace
