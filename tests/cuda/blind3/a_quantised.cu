// Quantised weights and kernels with next to nothing to gain.
#include "../pairs/pair.cuh"

namespace {

// --- 4-bit weights in groups, times a vector ---

__global__ void gemv_groups(const unsigned char *w, const float *scale, const float *zero, const float *x, float *y, int columns, int group) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
    for (int c = lane; c < columns; c += 32) {
        int g = row * (columns / group) + c / group, q = w[(row * columns + c) / 2] >> c % 2 * 4 & 15;
        sum += (q - zero[g]) * scale[g] * x[c];
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
__global__ void __launch_bounds__(256) gemv_groups_words(const unsigned *__restrict__ w, const float *__restrict__ scale, const float *__restrict__ zero, const float4 *__restrict__ x, float *__restrict__ y, int columns) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
    for (int c = lane; c < columns / 8; c += 32) {  // eight weights of one group of 128
        unsigned q = w[row * (columns / 8) + c];
        float4 a = x[2 * c], b = x[2 * c + 1];
        int g = row * (columns / 128) + c / 16;
        float part = (q & 15) * a.x + (q >> 4 & 15) * a.y + (q >> 8 & 15) * a.z + (q >> 12 & 15) * a.w + (q >> 16 & 15) * b.x + (q >> 20 & 15) * b.y + (q >> 24 & 15) * b.z + (q >> 28) * b.w;
        sum += scale[g] * (part - zero[g] * (a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w));
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
__global__ void __launch_bounds__(256) gemv_groups_wide(const uint4 *__restrict__ w, const float *__restrict__ scale, const float *__restrict__ zero, const float *__restrict__ x, float *__restrict__ y, int columns) {
    extern __shared__ float4 xs[];  // the vector, each 32 values apart in eight strips
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, pieces = columns / 32;
    for (int i = threadIdx.x; i < columns / 4; i += 256) xs[i % 8 * pieces + i / 8] = reinterpret_cast<const float4 *>(x)[i];
    __syncthreads();
    float sum = 0.f;
    for (int c = lane; c < pieces; c += 32) {
        uint4 raw = w[row * pieces + c];
        unsigned q[4] = {raw.x, raw.y, raw.z, raw.w};
        int g = row * (columns / 128) + c / 4;
        float z = zero[g], part = 0.f;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float4 v = xs[k * pieces + c];
            unsigned h = q[k / 2] >> k % 2 * 16;
            part += ((h & 15) - z) * v.x + ((h >> 4 & 15) - z) * v.y + ((h >> 8 & 15) - z) * v.z + ((h >> 12 & 15) - z) * v.w;
        }
        sum += scale[g] * part;
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}

Study gemv_4bits("gemv_4bit_scale_each_weight", "models", 28672, "4-bit weights of 28672 x 8192 in groups of 128, times a vector of floats, a warp a row",
    "a byte load, two loads of the group's scale and zero and index arithmetic for each weight",
    {{"words", "eight weights a load, scale and zero once for them", {"redundant_loads", "narrow_access", "integer_arithmetic"}}, {"wide", "32 weights a load, the vector in shared memory", {"redundant_loads", "narrow_access", "integer_arithmetic"}}},
    [](Buffers &b, long rows) -> Sides {
        int columns = 8192;
        auto *w = b.random<unsigned>(rows * columns / 8, 0, 4294967295.0);
        float *scale = b.random<float>(rows * columns / 128, 0.01, 0.02), *zero = b.random<float>(rows * columns / 128, 7, 9), *x = b.random<float>(columns), *y = b.output<float>(rows);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gemv_groups, rows / 8, 256, 0, (unsigned char *)w, scale, zero, x, y, columns, 128)},
            {"words", launch(gemv_groups_words, rows / 8, 256, 0, w, scale, zero, (float4 *)x, y, columns)},
            {"wide", launch(gemv_groups_wide, rows / 8, 256, columns * sizeof(float), (uint4 *)w, scale, zero, x, y, columns)}};
    });

// --- FP8 to float ---

__global__ void fp8_loops(const unsigned char *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bits = x[i], e = bits >> 3 & 15, m = bits & 7;
    float v = e == 0 ? m / 8.f : 1.f + m / 8.f;
    if (e == 0) e = 1;
    for (; e > 7; e--) v *= 2.f;
    for (; e < 7; e++) v /= 2.f;
    y[i] = bits & 128 ? -v : v;
}
__global__ void fp8_bits(const unsigned char *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned bits = x[i];  // exponents differ by 120: a product also serves the small ones
    y[i] = __uint_as_float((bits & 128) << 24 | (bits & 127) << 20) * 1.329228e36f;
}
__global__ void __launch_bounds__(256) fp8_table(const unsigned *__restrict__ x, float4 *__restrict__ y) {
    __shared__ float values[256];
    unsigned t = threadIdx.x;
    values[t] = __uint_as_float((t & 128) << 24 | (t & 127) << 20) * 1.329228e36f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int i = blockIdx.x * 1024 + t + 256 * k;
        unsigned w = x[i];
        y[i] = {values[w & 255], values[w >> 8 & 255], values[w >> 16 & 255], values[w >> 24]};
    }
}

Study fp8s("fp8_exponent_by_loops", "models", 1 << 26, "64 million FP8 values to float",
    "the exponent is counted off by loops of up to eight turns, different ones in each lane; a byte a thread",
    {{"bits", "the bits are shifted into place and scaled", {"branch_divergence"}}, {"table", "a table in shared memory, four values a load and store", {"branch_divergence", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *x = b.random<unsigned char>(n, 0, 256);
        float *y = b.output<float>(n);
        return {{"flawed", launch(fp8_loops, n / 256, 256, 0, x, y, n)}, {"bits", launch(fp8_bits, n / 256, 256, 0, x, y)}, {"table", launch(fp8_table, n / 4096, 256, 0, (unsigned *)x, (float4 *)y)}};
    });

// --- NormalFloat 4 ---

__constant__ float codebook[16] = {-1.f, -0.6961928f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105003f, 0.f, 0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f, 0.44070983f, 0.562617f, 0.72295684f, 1.f};

__global__ void nf4_constant(const unsigned *packed, const float *scale, float4 *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned q = packed[i];
    float s = scale[i / 8];
    y[2 * i] = {codebook[q & 15] * s, codebook[q >> 4 & 15] * s, codebook[q >> 8 & 15] * s, codebook[q >> 12 & 15] * s};
    y[2 * i + 1] = {codebook[q >> 16 & 15] * s, codebook[q >> 20 & 15] * s, codebook[q >> 24 & 15] * s, codebook[q >> 28] * s};
}
__global__ void __launch_bounds__(256) nf4_copies(const unsigned *__restrict__ packed, const float *__restrict__ scale, float4 *__restrict__ y) {
    __shared__ float book[16][32];  // a copy for each lane
    for (int k = threadIdx.x; k < 512; k += 256) book[k / 32][k % 32] = codebook[k / 32];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned q = packed[i];
    float s = scale[i / 8];
    auto at = [&](int k) { return book[q >> 4 * k & 15][lane] * s; };
    y[2 * i] = {at(0), at(1), at(2), at(3)};
    y[2 * i + 1] = {at(4), at(5), at(6), at(7)};
}
__global__ void __launch_bounds__(256) nf4_shuffles(const unsigned *__restrict__ packed, const float *__restrict__ scale, float4 *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float mine = codebook[lane % 16];
    unsigned q = packed[i];
    float s = scale[i / 8];
    auto at = [&](int k) { return __shfl_sync(~0u, mine, q >> 4 * k & 15) * s; };
    y[2 * i] = {at(0), at(1), at(2), at(3)};
    y[2 * i + 1] = {at(4), at(5), at(6), at(7)};
}

Study nf4s("nf4_codebook_in_constants", "models", 1 << 23, "64 million weights of NormalFloat 4 to float, groups of 64 with a scale",
    "lanes look up different words of the constant bank, eight times a thread",
    {{"copies", "the codebook in shared memory, a copy for each lane", {"constant_divergence"}}, {"shuffles", "the codebook in the registers of 16 lanes, looked up by shuffles", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        auto *packed = b.random<unsigned>(n, 0, 4294967295.0);
        float *scale = b.random<float>(n / 8, 0.5, 1), *y = b.output<float>(n * 8);
        auto run = [&](auto kernel) { return launch(kernel, n / 256, 256, 0, packed, scale, (float4 *)y); };
        return {{"flawed", run(nf4_constant)}, {"copies", run(nf4_copies)}, {"shuffles", run(nf4_shuffles)}};
    });

// --- product of int8 matrices ---

__global__ void __launch_bounds__(256) int8_tiles(const signed char *a, const signed char *bt, int *c, int n) {
    __shared__ signed char as[16][16], bs[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx, sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[ty][tx] = a[row * n + k + tx];
        bs[ty][tx] = bt[(blockIdx.x * 16 + ty) * n + k + tx];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += as[ty][i] * bs[tx][i];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void __launch_bounds__(256) int8_dots(const int *__restrict__ a, const int *__restrict__ bt, int *__restrict__ c, int words) {
    __shared__ int as[16][16], bs[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx, sum = 0;
    for (int k = 0; k < words; k += 16) {
        as[ty][tx] = a[row * words + k + tx];
        bs[ty][tx] = bt[(blockIdx.x * 16 + ty) * words + k + tx];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) sum = __dp4a(as[ty][i], bs[tx][i], sum);
        __syncthreads();
    }
    c[row * words * 4 + column] = sum;
}
__global__ void __launch_bounds__(256) int8_dots_block(const int *__restrict__ a, const int *__restrict__ bt, int *__restrict__ c, int words) {
    __shared__ int as[16][68], bs[16][68];
    int t = threadIdx.y * 16 + threadIdx.x, tx = threadIdx.x, ty = threadIdx.y, sum[4][4] = {};
    for (int k = 0; k < words; k += 16) {
        for (int i = t; i < 64 * 16; i += 256) {
            as[i % 16][i / 16] = a[(blockIdx.y * 64 + i / 16) * words + k + i % 16];
            bs[i % 16][i / 16] = bt[(blockIdx.x * 64 + i / 16) * words + k + i % 16];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            int u[4], v[4];
#pragma unroll
            for (int m = 0; m < 4; ++m) u[m] = as[i][ty * 4 + m], v[m] = bs[i][tx + 16 * m];
#pragma unroll
            for (int m = 0; m < 4; ++m)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[m][j] = __dp4a(u[m], v[j], sum[m][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
        for (int j = 0; j < 4; ++j) c[(blockIdx.y * 64 + ty * 4 + m) * words * 4 + blockIdx.x * 64 + tx + 16 * j] = sum[m][j];
}

Study int8_products("int8_matmul_bytes_in_shared", "models", 1024, "product of int8 matrices of 1024 x 1024, the second stored transposed",
    "two bytes of shared memory for each product, one product an operation",
    {{"dots", "words of four bytes, four products an operation", {"shared_memory_bandwidth", "narrow_access"}}, {"block", "the same, four by four outputs a thread", {"shared_memory_bandwidth", "narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        auto *a = b.random<signed char>(n * n, -127, 127), *bt = b.random<signed char>(n * n, -127, 127);
        int *c = b.output<int>(n * n);
        dim3 block(16, 16), grid(n / 16, n / 16);
        b.tolerance = 1e-9;
        return {{"flawed", launch(int8_tiles, grid, block, 0, a, bt, c, n)}, {"dots", launch(int8_dots, grid, block, 0, (int *)a, (int *)bt, c, n / 4)},
            {"block", launch(int8_dots_block, dim3(n / 64, n / 64), block, 0, (int *)a, (int *)bt, c, n / 4)}};
    });

// --- largest magnitude of each column ---

__global__ void column_peaks(const __half *w, float *peak, int rows, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float top = 0.f;
    for (int r = 0; r < rows; r++) top = fmaxf(top, fabsf(__half2float(w[size_t(r) * columns + c])));
    peak[c] = top;
}
__global__ void column_peaks_pieces(const __half *__restrict__ w, float *peak, int rows, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * rows;
    float top = 0.f;
#pragma unroll 8
    for (int r = first; r < first + rows; ++r) top = fmaxf(top, fabsf(__half2float(w[size_t(r) * columns + c])));
    atomicMax(reinterpret_cast<int *>(peak + c), __float_as_int(top));  // not negative: ordered as integers
}
__global__ void __launch_bounds__(1024) column_peaks_tall(const __half2 *__restrict__ w, float2 *__restrict__ peak, int rows, int pairs) {
    __shared__ float2 part[32][33];
    int lane = threadIdx.x % 32, y = threadIdx.x / 32, c = blockIdx.x * 32 + lane;
    float2 top{0.f, 0.f};
#pragma unroll 8
    for (int r = y; r < rows; r += 32) {
        float2 v = __half22float2(w[size_t(r) * pairs + c]);
        top = {fmaxf(top.x, fabsf(v.x)), fmaxf(top.y, fabsf(v.y))};
    }
    part[y][lane] = top;
    __syncthreads();
    if (y) return;
    for (int k = 1; k < 32; ++k) top = {fmaxf(top.x, part[k][lane].x), fmaxf(top.y, part[k][lane].y)};
    peak[c] = top;
}

Study peaks("column_peaks_32_blocks", "models", 8192, "largest magnitude of each of 8192 columns of 8192 half weights",
    "a thread a column: 32 blocks for the whole device",
    {{"pieces", "the rows dealt out to 64 pieces, joined by atomic maxima", {"small_grid", "memory_latency"}}, {"tall", "blocks of 32 warps for 64 columns, joined in shared memory", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long rows) -> Sides {
        int columns = 8192;
        auto *w = b.random<__half>(rows * columns);
        float *peak = b.output<float>(columns, true);
        return {{"flawed", launch(column_peaks, columns / 256, 256, 0, w, peak, rows, columns)}, {"pieces", launch(column_peaks_pieces, dim3(columns / 256, 64), 256, 0, w, peak, rows / 64, columns)},
            {"tall", launch(column_peaks_tall, columns / 64, 1024, 0, (__half2 *)w, (float2 *)peak, rows, columns / 2)}};
    });

// --- next to nothing to gain ---

__global__ void __launch_bounds__(256) gated(const uint4 *__restrict__ gate, const uint4 *__restrict__ up, uint4 *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint4 g = gate[i], u = up[i];
    __half2 *a = reinterpret_cast<__half2 *>(&g);
    const __half2 *c = reinterpret_cast<const __half2 *>(&u);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float2 x = __half22float2(a[k]), y = __half22float2(c[k]);
        a[k] = __floats2half2_rn(x.x * y.x * __fdividef(1.f, 1.f + __expf(-x.x)), x.y * y.y * __fdividef(1.f, 1.f + __expf(-x.y)));
    }
    out[i] = g;
}
Study sound_gates("sound_gated_unit", "models", 1 << 26, "gated linear unit of half values, 16 bytes an access, fast exponentials", "", {}, [](Buffers &b, long n) -> Sides {
    auto *gate = b.random<__half>(n), *up = b.random<__half>(n), *out = b.output<__half>(n);
    return {{"sound", launch(gated, n / 2048, 256, 0, (uint4 *)gate, (uint4 *)up, (uint4 *)out)}};
});

__global__ void __launch_bounds__(256) momentum(float4 *__restrict__ p, float4 *__restrict__ m, const float4 *__restrict__ g, float rate) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 a = p[i], v = m[i], d = g[i];
    v = {0.9f * v.x + d.x, 0.9f * v.y + d.y, 0.9f * v.z + d.z, 0.9f * v.w + d.w};
    p[i] = {a.x - rate * v.x, a.y - rate * v.y, a.z - rate * v.z, a.w - rate * v.w};
    m[i] = v;
}
Study sound_momenta("sound_momentum_step", "models", 1 << 25, "a step with momentum over 32 million parameters, 16 bytes an access", "", {}, [](Buffers &b, long n) -> Sides {
    float *p0 = b.random<float>(n), *m0 = b.random<float>(n), *g = b.random<float>(n), *p = b.changed(p0, n), *m = b.changed(m0, n);
    return {{"sound", launch(momentum, n / 1024, 256, 0, (float4 *)p, (float4 *)m, (float4 *)g, 0.01f)}};
});

__global__ void __launch_bounds__(256) luma(const float4 *__restrict__ r, const float4 *__restrict__ g, const float4 *__restrict__ b, float4 *__restrict__ y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 u = r[i], v = g[i], w = b[i];
    auto one = [](float p, float q, float s) { return 0.2126f * p + 0.7152f * q + 0.0722f * s; };
    y[i] = {one(u.x, v.x, w.x), one(u.y, v.y, w.y), one(u.z, v.z, w.z), one(u.w, v.w, w.w)};
}
Study sound_lumas("sound_luma_planes", "images", 1 << 25, "luma of three planes of floats, 16 bytes an access", "", {}, [](Buffers &b, long n) -> Sides {
    float *red = b.random<float>(n, 0, 1), *green = b.random<float>(n, 0, 1), *blue = b.random<float>(n, 0, 1), *y = b.output<float>(n);
    return {{"sound", launch(luma, n / 1024, 256, 0, (float4 *)red, (float4 *)green, (float4 *)blue, (float4 *)y)}};
});

__global__ void __launch_bounds__(256) gemv_half(const uint4 *__restrict__ w, const uint4 *__restrict__ x, float *__restrict__ y) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
#pragma unroll 8
    for (int c = lane; c < 1024; c += 32) {
        uint4 a = w[size_t(row) * 1024 + c], b = x[c];
        const __half2 *p = reinterpret_cast<const __half2 *>(&a), *q = reinterpret_cast<const __half2 *>(&b);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float2 u = __half22float2(p[k]), v = __half22float2(q[k]);
            sum += u.x * v.x + u.y * v.y;
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
Study sound_gemvs("sound_gemv_half", "models", 32768, "half matrix of 32768 x 8192 times a vector, a warp a row, eight 16-byte loads ahead", "", {}, [](Buffers &b, long rows) -> Sides {
    auto *w = b.random<__half>(rows * 8192), *x = b.random<__half>(8192);
    float *y = b.output<float>(rows);
    return {{"sound", launch(gemv_half, rows / 8, 256, 0, (uint4 *)w, (uint4 *)x, y)}};
});

}  // namespace
