// Pieces of linear algebra: small and large, dense and sparse.
#include "../pairs/pair.cuh"

namespace {

std::vector<float> noise(long n, float low, float high, unsigned seed) {
    std::vector<float> v(n);
    for (long i = 0; i < n; ++i) v[i] = low + (high - low) * float(pairs::hash(unsigned(i) ^ seed * 0x9e3779b9u) / 4294967296.0);
    return v;
}

// --- many triangular solves ---

__global__ void solve_lower(const float *l, const float *b, float *x, int n) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= n) return;
    for (int i = 0; i < 32; i++) {
        float sum = b[s * 32 + i];
        for (int j = 0; j < i; j++) sum -= l[s * 1024 + i * 32 + j] * x[s * 32 + j];
        x[s * 32 + i] = sum;
    }
}
__global__ void __launch_bounds__(128) solve_lower_tile(const float *__restrict__ l, const float *__restrict__ b, float *__restrict__ x) {
    __shared__ float tile[4][32][33];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32, s = blockIdx.x * 4 + w;
#pragma unroll
    for (int i = 0; i < 32; ++i) tile[w][i][lane] = l[s * 1024 + i * 32 + lane];
    __syncwarp();
    float v = b[s * 32 + lane];
#pragma unroll
    for (int j = 0; j < 31; ++j) {
        float xj = __shfl_sync(~0u, v, j);
        if (lane > j) v -= tile[w][lane][j] * xj;
    }
    x[s * 32 + lane] = v;
}
__global__ void __launch_bounds__(128) solve_lower_rows(const float *__restrict__ l, const float *__restrict__ b, float *__restrict__ x) {
    int lane = threadIdx.x % 32, s = blockIdx.x * 4 + threadIdx.x / 32;
    float row[32], v = 0.f, mine = b[s * 32 + lane];
#pragma unroll
    for (int i = 0; i < 32; ++i) row[i] = l[s * 1024 + i * 32 + lane];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        float sum = warp_sum(lane < i ? row[i] * v : 0.f);
        if (lane == i) v = mine - sum;
    }
    x[s * 32 + lane] = v;
}
Study lower_solves("solve_lower_thread_per_system", "hpc", 1 << 15, "32768 solves with unit lower triangular 32 x 32 matrices",
    "a thread a system: lanes read 4 KiB apart",
    {{"tile", "a warp a system, the matrix through a tile in shared memory, a row a lane", {"uncoalesced_access"}}, {"rows", "a warp a system, a column a lane, each row's product summed by shuffles", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *l = b.random<float>(n * 1024, -0.2, 0.2), *right = b.random<float>(n * 32), *x = b.output<float>(n * 32);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(solve_lower, n / 128, 128, 0, l, right, x, m)}, {"tile", launch(solve_lower_tile, n / 4, 128, 0, l, right, x)},
            {"rows", launch(solve_lower_rows, n / 4, 128, 0, l, right, x)}};
    });

// --- orthogonal columns ---

__device__ __noinline__ float tree_sum(float v) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = v;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) part[t] += part[t + d];
        __syncthreads();
    }
    v = part[0];
    __syncthreads();
    return v;
}
__device__ __noinline__ float shuffle_sum(float v) {
    __shared__ float part[8];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.f;
#pragma unroll
    for (int w = 0; w < 8; ++w) v += part[w];
    __syncthreads();
    return v;
}
template <bool SHUFFLES>
__global__ void __launch_bounds__(256) gram_schmidt(const float *a, float *q) {
    size_t first = size_t(blockIdx.x) * 4096 + threadIdx.x;
    float v[16];
#pragma unroll
    for (int c = 0; c < 16; ++c) v[c] = a[first + c * 256];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        v[k] *= rsqrtf(SHUFFLES ? shuffle_sum(v[k] * v[k]) : tree_sum(v[k] * v[k]));
#pragma unroll
        for (int j = k + 1; j < 16; ++j) v[j] -= v[k] * (SHUFFLES ? shuffle_sum(v[k] * v[j]) : tree_sum(v[k] * v[j]));
    }
#pragma unroll
    for (int c = 0; c < 16; ++c) q[first + c * 256] = v[c];
}
__global__ void __launch_bounds__(128) gram_schmidt_warp(const float *__restrict__ a, float *__restrict__ q) {
    size_t first = (size_t(blockIdx.x) * 4 + threadIdx.x / 32) * 4096 + threadIdx.x % 32;
    float v[16][8];
#pragma unroll
    for (int c = 0; c < 16; ++c)
#pragma unroll
        for (int r = 0; r < 8; ++r) v[c][r] = a[first + c * 256 + r * 32];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        float s = 0.f;
#pragma unroll
        for (int r = 0; r < 8; ++r) s += v[k][r] * v[k][r];
        s = rsqrtf(warp_sum(s));
#pragma unroll
        for (int r = 0; r < 8; ++r) v[k][r] *= s;
#pragma unroll
        for (int j = k + 1; j < 16; ++j) {
            float d = 0.f;
#pragma unroll
            for (int r = 0; r < 8; ++r) d += v[k][r] * v[j][r];
            d = warp_sum(d);
#pragma unroll
            for (int r = 0; r < 8; ++r) v[j][r] -= d * v[k][r];
        }
    }
#pragma unroll
    for (int c = 0; c < 16; ++c)
#pragma unroll
        for (int r = 0; r < 8; ++r) q[first + c * 256 + r * 32] = v[c][r];
}
Study gram_schmidts("gram_schmidt_tree_sums", "hpc", 4096, "Gram-Schmidt on 4096 matrices of 256 x 16, a block each",
    "136 scalar products a matrix, each added up in a tree of nine barriers",
    {{"shuffles", "shuffles in warps, two barriers a product", {"barriers"}}, {"warp", "a warp a matrix, eight rows a lane: no barrier", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        float *a = b.random<float>(n * 4096), *q = b.output<float>(n * 4096);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gram_schmidt<false>, n, 256, 0, a, q)}, {"shuffles", launch(gram_schmidt<true>, n, 256, 0, a, q)}, {"warp", launch(gram_schmidt_warp, n / 4, 128, 0, a, q)}};
    });

// --- reflections of a panel ---

constexpr int REFLECTORS = 8;
__global__ void reflect(const float *in, const float *v, const float *beta, float *a) {
    int c = threadIdx.x;
    in += size_t(blockIdx.x) * 128 * 64, a += size_t(blockIdx.x) * 128 * 64, v += blockIdx.x * REFLECTORS * 128;
    for (int r = 0; r < 128; r++) a[r * 64 + c] = in[r * 64 + c];
    for (int k = 0; k < REFLECTORS; k++) {
        float w = 0.f;
        for (int r = 0; r < 128; r++) w += v[k * 128 + r] * a[r * 64 + c];
        w *= beta[k];
        for (int r = 0; r < 128; r++) a[r * 64 + c] -= w * v[k * 128 + r];
    }
}
__global__ void __launch_bounds__(256) reflect_registers(const float *__restrict__ in, const float *__restrict__ v, const float *__restrict__ beta, float *__restrict__ a) {
    __shared__ float part[2][4][64], reflector[REFLECTORS * 128];
    int c = threadIdx.x % 64, g = threadIdx.x / 64;
    in += size_t(blockIdx.x) * 128 * 64, a += size_t(blockIdx.x) * 128 * 64, v += blockIdx.x * REFLECTORS * 128;
    for (int i = threadIdx.x; i < REFLECTORS * 128; i += 256) reflector[i] = v[i];
    float x[32];
#pragma unroll
    for (int r = 0; r < 32; ++r) x[r] = in[(g * 32 + r) * 64 + c];
    __syncthreads();
    for (int k = 0; k < REFLECTORS; ++k) {
        const float *u = reflector + k * 128 + g * 32;
        float w = 0.f;
#pragma unroll
        for (int r = 0; r < 32; ++r) w += u[r] * x[r];
        part[k % 2][g][c] = w;
        __syncthreads();
        w = beta[k] * (part[k % 2][0][c] + part[k % 2][1][c] + part[k % 2][2][c] + part[k % 2][3][c]);
#pragma unroll
        for (int r = 0; r < 32; ++r) x[r] -= w * u[r];
    }
#pragma unroll
    for (int r = 0; r < 32; ++r) a[(g * 32 + r) * 64 + c] = x[r];
}
__global__ void __launch_bounds__(64) reflect_shared(const float *__restrict__ in, const float *__restrict__ v, const float *__restrict__ beta, float *__restrict__ a) {
    __shared__ float m[128][64];
    int c = threadIdx.x;
    in += size_t(blockIdx.x) * 128 * 64, a += size_t(blockIdx.x) * 128 * 64, v += blockIdx.x * REFLECTORS * 128;
#pragma unroll 8
    for (int r = 0; r < 128; ++r) m[r][c] = in[r * 64 + c];
    for (int k = 0; k < REFLECTORS; ++k) {
        float w = 0.f;
#pragma unroll 8
        for (int r = 0; r < 128; ++r) w += v[k * 128 + r] * m[r][c];
        w *= beta[k];
#pragma unroll 8
        for (int r = 0; r < 128; ++r) m[r][c] -= w * v[k * 128 + r];
    }
#pragma unroll 8
    for (int r = 0; r < 128; ++r) a[r * 64 + c] = m[r][c];
}
Study reflections("householder_panel_in_global", "hpc", 2048, "eight Householder reflections of 2048 matrices of 128 x 64",
    "each reflection reads the matrix twice from global memory and writes it back",
    {{"registers", "32 rows of a column a thread in registers, four threads a column", {"redundant_loads"}}, {"shared", "the matrix in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * 8192), *v = b.random<float>(n * REFLECTORS * 128), *beta = b.random<float>(REFLECTORS, 0.01, 0.02), *a = b.output<float>(n * 8192);
        b.tolerance = 1e-3;
        return {{"flawed", launch(reflect, n, 64, 0, in, v, beta, a)}, {"registers", launch(reflect_registers, n, 256, 0, in, v, beta, a)}, {"shared", launch(reflect_shared, n, 64, 0, in, v, beta, a)}};
    });

// --- inverses of 4 x 4 matrices ---

__device__ __forceinline__ void invert(const float *m, float *o) {
    float s0 = m[0] * m[5] - m[4] * m[1], s1 = m[0] * m[6] - m[4] * m[2], s2 = m[0] * m[7] - m[4] * m[3];
    float s3 = m[1] * m[6] - m[5] * m[2], s4 = m[1] * m[7] - m[5] * m[3], s5 = m[2] * m[7] - m[6] * m[3];
    float c5 = m[10] * m[15] - m[14] * m[11], c4 = m[9] * m[15] - m[13] * m[11], c3 = m[9] * m[14] - m[13] * m[10];
    float c2 = m[8] * m[15] - m[12] * m[11], c1 = m[8] * m[14] - m[12] * m[10], c0 = m[8] * m[13] - m[12] * m[9];
    float d = 1.f / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
    o[0] = (m[5] * c5 - m[6] * c4 + m[7] * c3) * d, o[1] = (-m[1] * c5 + m[2] * c4 - m[3] * c3) * d;
    o[2] = (m[13] * s5 - m[14] * s4 + m[15] * s3) * d, o[3] = (-m[9] * s5 + m[10] * s4 - m[11] * s3) * d;
    o[4] = (-m[4] * c5 + m[6] * c2 - m[7] * c1) * d, o[5] = (m[0] * c5 - m[2] * c2 + m[3] * c1) * d;
    o[6] = (-m[12] * s5 + m[14] * s2 - m[15] * s1) * d, o[7] = (m[8] * s5 - m[10] * s2 + m[11] * s1) * d;
    o[8] = (m[4] * c4 - m[5] * c2 + m[7] * c0) * d, o[9] = (-m[0] * c4 + m[1] * c2 - m[3] * c0) * d;
    o[10] = (m[12] * s4 - m[13] * s2 + m[15] * s0) * d, o[11] = (-m[8] * s4 + m[9] * s2 - m[11] * s0) * d;
    o[12] = (-m[4] * c3 + m[5] * c1 - m[6] * c0) * d, o[13] = (m[0] * c3 - m[1] * c1 + m[2] * c0) * d;
    o[14] = (-m[12] * s3 + m[13] * s1 - m[14] * s0) * d, o[15] = (m[8] * s3 - m[9] * s1 + m[10] * s0) * d;
}
__global__ void invert_4x4(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[16], o[16];
    for (int k = 0; k < 16; k++) m[k] = in[i * 16 + k];
    invert(m, o);
    for (int k = 0; k < 16; k++) out[i * 16 + k] = o[k];
}
__global__ void invert_4x4_vectors(const float4 *__restrict__ in, float4 *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[16], o[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float4 v = in[i * 4 + k];
        m[4 * k] = v.x, m[4 * k + 1] = v.y, m[4 * k + 2] = v.z, m[4 * k + 3] = v.w;
    }
    invert(m, o);
#pragma unroll
    for (int k = 0; k < 4; ++k) out[i * 4 + k] = {o[4 * k], o[4 * k + 1], o[4 * k + 2], o[4 * k + 3]};
}
__global__ void __launch_bounds__(128) invert_4x4_staged(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float s[128 * 17];
    int t = threadIdx.x, first = blockIdx.x * 2048;
    float m[16], o[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) s[(t + 128 * k) / 16 * 17 + t % 16] = in[first + t + 128 * k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) m[k] = s[t * 17 + k];
    invert(m, o);
#pragma unroll
    for (int k = 0; k < 16; ++k) s[t * 17 + k] = o[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) out[first + t + 128 * k] = s[(t + 128 * k) / 16 * 17 + t % 16];
}
Study inverses("invert_4x4_scalar_loads", "physics", 1 << 20, "inverses of a million 4 x 4 matrices, a thread each",
    "single floats are read and written 64 bytes apart",
    {{"vectors", "four 16-byte loads and stores a matrix", {"narrow_access", "uncoalesced_access"}}, {"staged", "matrices pass through shared memory, consecutive words a warp", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> host = noise(n * 16, -1, 1, 1);
        for (long i = 0; i < n; ++i)
            for (int k = 0; k < 4; ++k) host[i * 16 + 5 * k] += 4.f;
        float *in = b.copy(host), *out = b.output<float>(n * 16);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(invert_4x4, n / 128, 128, 0, in, out, m)}, {"vectors", launch(invert_4x4_vectors, n / 128, 128, 0, (float4 *)in, (float4 *)out, m)},
            {"staged", launch(invert_4x4_staged, n / 128, 128, 0, in, out)}};
    });

// --- bit matrices transposed ---

__global__ void bits_transposed(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int tile = i / 32 * 32, bit = i % 32;
    unsigned word = 0;
    for (int k = 0; k < 32; k++) word |= ((in[tile + k] >> bit) & 1u) << k;
    out[i] = word;
}
__global__ void bits_transposed_votes(const unsigned *__restrict__ in, unsigned *__restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i % 32;
    unsigned mine = in[i], word = 0;
#pragma unroll
    for (int k = 0; k < 32; ++k) {
        unsigned vote = __ballot_sync(~0u, mine >> k & 1u);
        if (lane == k) word = vote;
    }
    out[i] = word;
}
__global__ void bits_transposed_swaps(const unsigned *__restrict__ in, unsigned *__restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i], mask = 0x0000ffffu;
#pragma unroll
    for (int j = 16; j; j >>= 1, mask ^= mask << j) {
        unsigned y = __shfl_xor_sync(~0u, x, j);
        x = i & j ? (x & ~mask) | ((y & ~mask) >> j) : (x & mask) | ((y & mask) << j);
    }
    out[i] = x;
}
Study bit_transposes("bit_transpose_32_loads", "crypto", 1 << 25, "a million 32 x 32 bit matrices transposed",
    "each thread loads all 32 words of its matrix to collect one bit of each",
    {{"votes", "a word a lane, 32 votes of the warp", {"redundant_loads"}}, {"swaps", "a word a lane, five exchanges with shuffles", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *in = b.random<unsigned>(n, 0, 4294967296.0), *out = b.output<unsigned>(n);
        b.tolerance = 0;
        int m = n;
        return {{"flawed", launch(bits_transposed, n / 256, 256, 0, in, out, m)}, {"votes", launch(bits_transposed_votes, n / 256, 256, 0, in, out)}, {"swaps", launch(bits_transposed_swaps, n / 256, 256, 0, in, out)}};
    });

// --- Gram matrices ---

__global__ void __launch_bounds__(1024) gram(const float *x, float *g, int rows) {
    __shared__ float left[32][32], right[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, i = blockIdx.y * 32, j = blockIdx.x * 32;
    x += size_t(blockIdx.z) * rows * 64;
    float sum = 0.f;
    for (int k0 = 0; k0 < rows; k0 += 32) {
        left[ty][tx] = x[(k0 + ty) * 64 + i + tx], right[ty][tx] = x[(k0 + ty) * 64 + j + tx];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum += left[k][ty] * right[k][tx];
        __syncthreads();
    }
    g[blockIdx.z * 4096 + (i + ty) * 64 + j + tx] = sum;
}
__global__ void __launch_bounds__(256) gram_sixteen(const float *__restrict__ x, float *__restrict__ g, int rows) {
    __shared__ float4 part[32][16];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(blockIdx.x) * rows * 64);
    float sum[4][4] = {};
    for (int k0 = 0; k0 < rows; k0 += 32) {
#pragma unroll
        for (int l = 0; l < 2; ++l) part[t / 16 + 16 * l][t % 16] = from[k0 * 16 + t + 256 * l];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 32; ++k) {
            float4 a = part[k][ty], b = part[k][tx];
            float u[4] = {a.x, a.y, a.z, a.w}, v[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int q = 0; q < 4; ++q) sum[p][q] += u[p] * v[q];
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) reinterpret_cast<float4 *>(g + blockIdx.x * 4096 + (4 * ty + p) * 64)[tx] = {sum[p][0], sum[p][1], sum[p][2], sum[p][3]};
}
__global__ void __launch_bounds__(256) gram_column(const float *__restrict__ x, float *__restrict__ g, int rows) {
    __shared__ __align__(16) float left[32][32], right[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, i = blockIdx.y * 32, j = blockIdx.x * 32;
    x += size_t(blockIdx.z) * rows * 64;
    float sum[4] = {};
    for (int k0 = 0; k0 < rows; k0 += 32) {
#pragma unroll
        for (int l = 0; l < 32; l += 8) left[ty + l][tx] = x[(k0 + ty + l) * 64 + i + tx], right[ty + l][tx] = x[(k0 + ty + l) * 64 + j + tx];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; ++k) {
            float4 a = reinterpret_cast<const float4 *>(left[k])[ty];
            float b = right[k][tx];
            sum[0] += a.x * b, sum[1] += a.y * b, sum[2] += a.z * b, sum[3] += a.w * b;
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) g[blockIdx.z * 4096 + (i + 4 * ty + p) * 64 + j + tx] = sum[p];
}
Study grams("gram_one_output", "hpc", 1024, "Gram matrices of 1024 blocks of 256 vectors of 64 features",
    "two words from shared memory for each product",
    {{"sixteen", "4 x 4 outputs a thread", {"shared_memory_bandwidth"}}, {"column", "four outputs of a column a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * 256 * 64), *g = b.output<float>(n * 4096);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gram, dim3(2, 2, n), dim3(32, 32), 0, x, g, 256)}, {"sixteen", launch(gram_sixteen, n, dim3(16, 16), 0, x, g, 256)}, {"column", launch(gram_column, dim3(2, 2, n), dim3(32, 8), 0, x, g, 256)}};
    });

// --- a transposed matrix times a vector ---

__global__ void transposed_product(const float *a, const float *x, float *y, int rows, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns) return;
    float sum = 0.f;
    for (int r = 0; r < rows; r++) sum += a[(size_t)r * columns + c] * x[r];
    y[c] = sum;
}
__global__ void transposed_product_pieces(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int rows, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, each = rows / gridDim.y, first = blockIdx.y * each;
    float sum = 0.f;
    for (int r = first; r < first + each; ++r) sum += a[(size_t)r * columns + c] * x[r];
    atomicAdd(&y[c], sum);
}
__global__ void __launch_bounds__(256) transposed_product_warps(const float4 *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int rows, int columns) {
    __shared__ float4 part[8][32];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, each = rows / gridDim.y;
    a += blockIdx.x * 32 + lane;
    float4 s = {};
#pragma unroll 4
    for (int r = blockIdx.y * each + w; r < int(blockIdx.y + 1) * each; r += 8) {
        float4 v = a[(size_t)r * (columns / 4)];
        float m = x[r];
        s.x += v.x * m, s.y += v.y * m, s.z += v.z * m, s.w += v.w * m;
    }
    part[w][lane] = s;
    __syncthreads();
    if (threadIdx.x >= 128) return;
    float sum = 0.f;
    for (int k = 0; k < 8; ++k) sum += reinterpret_cast<const float *>(part[k])[threadIdx.x];
    atomicAdd(&y[blockIdx.x * 128 + threadIdx.x], sum);
}
Study transposed_products("transposed_gemv_few_blocks", "hpc", 4096, "the product of a transposed 8192 x 4096 matrix and a vector",
    "a thread a column goes down all rows: 16 blocks for the whole GPU",
    {{"pieces", "rows dealt out over 64 pieces, an atomic a thread", {"small_grid"}}, {"warps", "eight warps of a block and 16 pieces share the rows, 16 bytes a load", {"small_grid"}}},
    [](Buffers &b, long columns) -> Sides {
        int rows = 8192, n = columns;
        float *a = b.random<float>(rows * columns), *x = b.random<float>(rows), *y = b.output<float>(columns, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(transposed_product, n / 256, 256, 0, a, x, y, rows, n)}, {"pieces", launch(transposed_product_pieces, dim3(n / 256, 64), 256, 0, a, x, y, rows, n)},
            {"warps", launch(transposed_product_warps, dim3(n / 128, 16), 256, 0, (float4 *)a, x, y, rows, n)}};
    });

// --- LU factors of small matrices ---

template <int STRIDE>
__global__ void __launch_bounds__(128) lu(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float tile[4][32 * STRIDE];
    int lane = threadIdx.x % 32;
    float *a = tile[threadIdx.x / 32];
    size_t first = (size_t(blockIdx.x) * 4 + threadIdx.x / 32) * 1024 + lane;
    for (int i = 0; i < 32; i++) a[i * STRIDE + lane] = in[first + i * 32];
    __syncwarp();
    for (int k = 0; k < 31; k++) {
        if (lane > k) {
            float f = a[lane * STRIDE + k] / a[k * STRIDE + k];
            a[lane * STRIDE + k] = f;
            for (int j = k + 1; j < 32; j++) a[lane * STRIDE + j] -= f * a[k * STRIDE + j];
        }
        __syncwarp();
    }
    for (int i = 0; i < 32; i++) out[first + i * 32] = a[i * STRIDE + lane];
}
// A column a lane: the pivot's column is read by all lanes at once.
__global__ void __launch_bounds__(128) lu_columns(const float *__restrict__ in, float *__restrict__ out) {
    int lane = threadIdx.x % 32;
    size_t first = (size_t(blockIdx.x) * 4 + threadIdx.x / 32) * 1024 + lane;
    float a[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) a[i] = in[first + i * 32];
#pragma unroll
    for (int k = 0; k < 31; ++k) {
        float r = 1.f / __shfl_sync(~0u, a[k], k);
#pragma unroll
        for (int i = k + 1; i < 32; ++i) {
            float f = __shfl_sync(~0u, a[i], k) * r;
            a[i] = lane > k ? a[i] - f * a[k] : lane == k ? f : a[i];
        }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) out[first + i * 32] = a[i];
}
Study lus("lu_32_row_per_lane", "hpc", 8192, "LU factors, without pivoting, of 8192 matrices of 32 x 32, a warp each",
    "a row a lane in shared memory, rows 32 words long: all lanes hit one bank",
    {{"padded", "rows of 33 words", {"shared_bank_conflicts"}}, {"columns", "a column a lane in registers, pivots by shuffles", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> host = noise(n * 1024, -1, 1, 2);
        for (long i = 0; i < n; ++i)
            for (int k = 0; k < 32; ++k) host[i * 1024 + 33 * k] += 16.f;
        float *in = b.copy(host), *out = b.output<float>(n * 1024);
        b.tolerance = 1e-3;
        return {{"flawed", launch(lu<32>, n / 4, 128, 0, in, out)}, {"padded", launch(lu<33>, n / 4, 128, 0, in, out)}, {"columns", launch(lu_columns, n / 4, 128, 0, in, out)}};
    });

// --- a sparse matrix times several vectors ---

__global__ void spmm(const int *start, const int *column, const float *value, const float *x, float *y, int rows, int width) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    for (int c = 0; c < width; c++) {
        float sum = 0.f;
        for (int j = start[r]; j < start[r + 1]; j++) sum += value[j] * x[column[j] * width + c];
        y[r * width + c] = sum;
    }
}
__global__ void spmm_warp(const int *__restrict__ start, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y, int rows) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
    for (int j = start[r]; j < start[r + 1]; ++j) sum += value[j] * x[column[j] * 32 + lane];
    y[r * 32 + lane] = sum;
}
__global__ void spmm_eight(const int *__restrict__ start, const int *__restrict__ column, const float *__restrict__ value, const float4 *__restrict__ x, float4 *__restrict__ y, int rows) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    float4 s = {};
    for (int j = start[r]; j < start[r + 1]; ++j) {
        float m = value[j];
        float4 v = x[column[j] * 8 + lane];
        s.x += m * v.x, s.y += m * v.y, s.z += m * v.z, s.w += m * v.w;
    }
    y[r * 8 + lane] = s;
}
Study spmms("spmm_columns_outermost", "hpc", 1 << 17, "a sparse matrix of 131072 rows of 8 to 23 entries times 32 vectors, vectors interleaved",
    "a thread a row goes over the row anew for each vector; lanes read far apart",
    {{"warp", "a warp a row, a lane a vector", {"uncoalesced_access", "redundant_loads"}}, {"eight", "eight lanes a row, four vectors a lane", {"uncoalesced_access", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> start(n + 1), column;
        for (long r = 0; r < n; ++r) {
            for (int k = 8 + pairs::hash(r) % 16; k; --k) column.push_back(pairs::hash(unsigned(column.size()) * 3 + 1) % n);
            start[r + 1] = column.size();
        }
        int *ds = b.copy(start), *dc = b.copy(column), rows = n;
        float *v = b.random<float>(column.size()), *x = b.random<float>(n * 32), *y = b.output<float>(n * 32);
        b.tolerance = 1e-3;
        return {{"flawed", launch(spmm, n / 128, 128, 0, ds, dc, v, x, y, rows, 32)}, {"warp", launch(spmm_warp, n / 8, 256, 0, ds, dc, v, x, y, rows)},
            {"eight", launch(spmm_eight, n / 32, 256, 0, ds, dc, v, (float4 *)x, (float4 *)y, rows)}};
    });

// --- products sampled at the entries of a sparse matrix ---

__global__ void sddmm(const int *row, const int *column, const float *u, const float *v, float *out, int width, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n) return;
    float sum = 0.f;
    for (int k = 0; k < width; k++) sum += u[row[e] * width + k] * v[column[e] * width + k];
    out[e] = sum;
}
__global__ void sddmm_vectors(const int *__restrict__ row, const int *__restrict__ column, const float4 *__restrict__ u, const float4 *__restrict__ v, float *__restrict__ out, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n) return;
    const float4 *p = u + row[e] * 16, *q = v + column[e] * 16;
    float sum = 0.f;
#pragma unroll 4
    for (int k = 0; k < 16; ++k) {
        float4 a = p[k], b = q[k];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    out[e] = sum;
}
__global__ void sddmm_eight(const int *__restrict__ row, const int *__restrict__ column, const float4 *__restrict__ u, const float4 *__restrict__ v, float *__restrict__ out, int n) {
    int e = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    const float4 *p = u + row[e] * 16, *q = v + column[e] * 16;
    float4 a = p[lane], b = q[lane], c = p[lane + 8], d = q[lane + 8];
    float sum = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w + c.x * d.x + c.y * d.y + c.z * d.z + c.w * d.w;
    for (int s = 4; s; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
    if (lane == 0) out[e] = sum;
}
Study sddmms("sddmm_thread_per_entry", "graphs", 1 << 20, "scalar products of 64 features at a million entries of a sparse matrix",
    "a thread an entry goes along two rows of features one float at a time",
    {{"vectors", "four floats a load", {"narrow_access", "uncoalesced_access"}}, {"eight", "eight lanes an entry, 16 bytes a load, sums by shuffles", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int nodes = 1 << 17, *row = b.random<int>(n, 0, nodes), *column = b.random<int>(n, 0, nodes), count = n;
        float *u = b.random<float>(nodes * 64l), *v = b.random<float>(nodes * 64l), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(sddmm, n / 256, 256, 0, row, column, u, v, out, 64, count)}, {"vectors", launch(sddmm_vectors, n / 256, 256, 0, row, column, (float4 *)u, (float4 *)v, out, count)},
            {"eight", launch(sddmm_eight, n / 32, 256, 0, row, column, (float4 *)u, (float4 *)v, out, count)}};
    });

// --- a banded matrix stored by diagonals ---

struct Offsets {
    int at[9];
};
__global__ void banded(const float *diagonal, const float *x, float *y, Offsets offsets, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = 0.f;
    for (int d = 0; d < 9; d++) {
        int j = i + offsets.at[d];
        if (j >= 0 && j < n) y[i] += diagonal[d * n + i] * x[j];
    }
}
__global__ void banded_register(const float *__restrict__ diagonal, const float *__restrict__ x, float *__restrict__ y, Offsets offsets, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.f;
#pragma unroll
    for (int d = 0; d < 9; ++d) {
        int j = i + offsets.at[d];
        if (j >= 0 && j < n) sum += diagonal[d * n + i] * x[j];
    }
    y[i] = sum;
}
__global__ void banded_four(const float4 *__restrict__ diagonal, const float *__restrict__ x, float4 *__restrict__ y, Offsets offsets, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;
    float4 s = {};
    auto at = [&](int j) { return j >= 0 && j < n ? x[j] : 0.f; };
#pragma unroll
    for (int d = 0; d < 9; ++d) {
        float4 v = diagonal[d * (n / 4) + i];
        int j = 4 * i + offsets.at[d];
        s.x += v.x * at(j), s.y += v.y * at(j + 1), s.z += v.z * at(j + 2), s.w += v.w * at(j + 3);
    }
    y[i] = s;
}
Study bandeds("banded_sums_in_global", "hpc", 1 << 22, "a matrix of nine diagonals and four million rows times a vector",
    "the sum lies in global memory: zeroed, then read and written for each diagonal",
    {{"register", "the sum in a register", {"memory_latency", "redundant_loads"}}, {"four", "four rows a thread, sums in registers, 16 bytes a load", {"memory_latency", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        Offsets offsets = {{-2048, -64, -2, -1, 0, 1, 2, 64, 2048}};
        float *diagonal = b.random<float>(9 * n), *x = b.random<float>(n), *y = b.output<float>(n);
        int m = n;
        return {{"flawed", launch(banded, n / 256, 256, 0, diagonal, x, y, offsets, m)}, {"register", launch(banded_register, n / 256, 256, 0, diagonal, x, y, offsets, m)},
            {"four", launch(banded_four, n / 1024, 256, 0, (float4 *)diagonal, x, (float4 *)y, offsets, m)}};
    });

}  // namespace
