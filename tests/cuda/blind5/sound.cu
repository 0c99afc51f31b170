// Kernels with next to nothing left to gain.
#include "../pairs/pair.cuh"

namespace {

__global__ void __launch_bounds__(256) column_maxima(const float4 *__restrict__ x, float4 *__restrict__ out, int quads, int tall) {
    int column = blockIdx.x * 256 + threadIdx.x;
    const float4 *p = x + size_t(blockIdx.y) * tall * quads + column;
    float4 top = p[0];
#pragma unroll 8
    for (int r = 1; r < tall; ++r) {
        float4 v = p[size_t(r) * quads];
        top = {fmaxf(top.x, v.x), fmaxf(top.y, v.y), fmaxf(top.z, v.z), fmaxf(top.w, v.w)};
    }
    out[blockIdx.y * quads + column] = top;
}
Study sound_maxima("sound_column_maxima", "hpc", 8192, "maxima down 65 rows of 8192 columns, 256 pieces, 16 bytes a load and eight under way", "", {}, [](Buffers &b, long columns) -> Sides {
    int tall = 65, pieces = 256;
    float *x = b.random<float>(columns * tall * pieces), *out = b.output<float>(columns * pieces);
    return {{"sound", launch(column_maxima, dim3(columns / 1024, pieces), 256, 0, (float4 *)x, (float4 *)out, columns / 4, tall)}};
});

struct Md5Tables {
    unsigned k[64];
    int r[64];
};
__constant__ Md5Tables MD5;

template <int ROUND>
__device__ __forceinline__ unsigned mixed(unsigned b, unsigned c, unsigned d) {
    return ROUND == 0 ? (b & c) | (~b & d) : ROUND == 1 ? (d & b) | (~d & c) : ROUND == 2 ? b ^ c ^ d : c ^ (b | ~d);
}
template <int ROUND>
__device__ __forceinline__ void sixteen(unsigned &a, unsigned &b, unsigned &c, unsigned &d, const unsigned *m) {
    constexpr int scale[4] = {1, 5, 3, 7}, shift[4] = {0, 1, 5, 0}, turns[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        unsigned f = mixed<ROUND>(b, c, d) + a + MD5.k[16 * ROUND + i] + m[(scale[ROUND] * i + shift[ROUND]) % 16];
        a = d, d = c, c = b, b += __funnelshift_l(f, f, turns[4 * ROUND + i % 4]);
    }
}
__global__ void __launch_bounds__(256) md5_words(const uint2 *__restrict__ words, uint4 *__restrict__ digests) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint2 w = words[i];
    unsigned m[16] = {w.x, w.y, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0};
    unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
    sixteen<0>(a, b, c, d, m), sixteen<1>(a, b, c, d, m), sixteen<2>(a, b, c, d, m), sixteen<3>(a, b, c, d, m);
    digests[i] = {a + 0x67452301, b + 0xefcdab89, c + 0x98badcfe, d + 0x10325476};
}
Study sound_md5("sound_md5_of_eight_letters", "crypto", 1 << 23, "MD5 of 8388608 words of eight letters, all in registers", "", {}, [](Buffers &b, long n) -> Sides {
    Md5Tables tables{};
    for (int i = 0; i < 64; ++i) tables.k[i] = unsigned(std::floor(std::fabs(std::sin(i + 1.)) * 4294967296.));
    CHECK(cudaMemcpyToSymbol(MD5, &tables, sizeof tables));
    auto *words = b.random<unsigned>(2 * n, 0, 4e9), *digests = b.output<unsigned>(4 * n);
    return {{"sound", launch(md5_words, n / 256, 256, 0, (uint2 *)words, (uint4 *)digests)}};
});

__global__ void __launch_bounds__(256) swap_quarters(const float4 *__restrict__ in, float4 *__restrict__ out, int quads, int mask) {
    int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    float4 a = in[size_t(y) * quads + x], b = in[size_t(y + gridDim.y) * quads + x];
    int other = x ^ mask;
    out[size_t(y + gridDim.y) * quads + other] = a, out[size_t(y) * quads + other] = b;
}
Study sound_shift("sound_spectrum_quarters", "signals", 8192, "quarters of a complex spectrum of 4096 x 8192 swapped, 16 bytes an access", "", {}, [](Buffers &b, long n) -> Sides {
    int rows = 4096, quads = n / 2;
    float *in = b.random<float>(2l * rows * n), *out = b.output<float>(2l * rows * n);
    return {{"sound", launch(swap_quarters, dim3(quads / 256, rows / 2), 256, 0, (float4 *)in, (float4 *)out, quads, quads / 2)}};
});

__global__ void residual(const double2 *__restrict__ b, const double2 *__restrict__ d, const double2 *__restrict__ x, double2 *__restrict__ r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double2 u = b[i], v = d[i], w = x[i];
    r[i] = {u.x - v.x * w.x, u.y - v.y * w.y};
}
Study sound_residual("sound_diagonal_residual", "hpc", 1 << 25, "right side less a diagonal times a vector, FP64, 16 bytes an access", "", {}, [](Buffers &b, long n) -> Sides {
    double *u = b.random<double>(n), *v = b.random<double>(n), *w = b.random<double>(n), *r = b.output<double>(n);
    return {{"sound", launch(residual, n / 512, 256, 0, (double2 *)u, (double2 *)v, (double2 *)w, (double2 *)r, int(n / 2))}};
});

}  // namespace
