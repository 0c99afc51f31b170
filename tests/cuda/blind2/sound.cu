// Kernels with next to nothing left to gain.
#include "../pairs/pair.cuh"

namespace {

__global__ void __launch_bounds__(256) row_sums(const float4 *__restrict__ x, float *__restrict__ sums) {
    __shared__ float part[8];
    const float4 *row = x + size_t(blockIdx.x) * 1024;
    float4 v[4];
    float s = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = row[threadIdx.x + 256 * k];
#pragma unroll
    for (int k = 0; k < 4; ++k) s += v[k].x + v[k].y + v[k].z + v[k].w;
    s = warp_sum(s);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) s += part[w];
        sums[blockIdx.x] = s;
    }
}
Study sound_rows("sound_row_sums", "hpc", 16384, "sums of rows of 4096 floats, four 16-byte loads in flight a thread", "", {}, [](Buffers &b, long rows) -> Sides {
    float *x = b.random<float>(rows * 4096, 0, 1), *sums = b.output<float>(rows);
    return {{"sound", launch(row_sums, rows, 256, 0, (float4 *)x, sums)}};
});

__global__ void gather_rows(const int *__restrict__ index, const uint4 *__restrict__ table, uint4 *__restrict__ out, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const uint4 *from = table + size_t(index[row]) * 64;
    uint4 a = from[lane], b = from[lane + 32];
    out[size_t(row) * 64 + lane] = a, out[size_t(row) * 64 + lane + 32] = b;
}
Study sound_gathers("sound_gather_rows", "models", 1 << 17, "rows of 512 half values gathered by index, a warp a row, 16 bytes an access", "", {}, [](Buffers &b, long rows) -> Sides {
    int *index = b.random<int>(rows, 0, 50000), n = rows;
    auto *table = b.random<__half>(50000l * 512), *out = b.output<__half>(rows * 512);
    return {{"sound", launch(gather_rows, rows / 8, 256, 0, index, (uint4 *)table, (uint4 *)out, n)}};
});

__global__ void to_float(const uint4 *__restrict__ in, float4 *__restrict__ out, float scale, int n) {
    __shared__ uint4 words[256];  // read 16 bytes a thread, written 16 bytes a thread
    int t = threadIdx.x;
    words[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    const char4 *c = reinterpret_cast<const char4 *>(words);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        char4 v = c[t + 256 * k];
        out[blockIdx.x * 1024 + t + 256 * k] = {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
    }
}
Study sound_conversions("sound_int8_to_float", "models", 1 << 25, "int8 to float with a scale, 16 bytes an access on both sides", "", {}, [](Buffers &b, long n) -> Sides {
    auto *in = b.random<signed char>(n, -127, 127);
    float *out = b.output<float>(n);
    return {{"sound", launch(to_float, n / 4096, 256, 0, (uint4 *)in, (float4 *)out, 0.01f, int(n))}};
});

__global__ void polynomials(const float4 *__restrict__ x, float4 *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = x[i], s{0.1f, 0.2f, 0.3f, 0.4f};
#pragma unroll 16
    for (int k = 0; k < 256; ++k) s.x = s.x * v.x + 0.5f, s.y = s.y * v.y + 0.5f, s.z = s.z * v.z + 0.5f, s.w = s.w * v.w + 0.5f;
    y[i] = s;
}
Study sound_polynomials("sound_polynomial", "hpc", 1 << 24, "polynomials of degree 256, four independent chains a thread", "", {}, [](Buffers &b, long n) -> Sides {
    float *x = b.random<float>(n, -0.9, 0.9), *y = b.output<float>(n);
    return {{"sound", launch(polynomials, n / 1024, 256, 0, (float4 *)x, (float4 *)y)}};
});

__global__ void __launch_bounds__(256) transpose_complex(const float2 *__restrict__ in, float2 *__restrict__ out, int n) {
    __shared__ float2 tile[32][33];
    int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < 32; r += 8) tile[r + ty][tx] = in[(blockIdx.y * 32 + r + ty) * n + blockIdx.x * 32 + tx];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 32; r += 8) out[(blockIdx.x * 32 + r + ty) * n + blockIdx.y * 32 + tx] = tile[tx][r + ty];
}
Study sound_transposes("sound_transpose_complex", "signals", 4096, "transpose of 4096 x 4096 complex values by padded tiles of 32 x 32", "", {}, [](Buffers &b, long n) -> Sides {
    float *in = b.random<float>(2 * n * n), *out = b.output<float>(2 * n * n);
    return {{"sound", launch(transpose_complex, dim3(n / 32, n / 32), 256, 0, (float2 *)in, (float2 *)out, n)}};
});

__global__ void differences(const uint4 *__restrict__ a, const uint4 *__restrict__ b, int *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 u = a[i], v = b[i];
    out[i] = __popc(u.x ^ v.x) + __popc(u.y ^ v.y) + __popc(u.z ^ v.z) + __popc(u.w ^ v.w);
}
Study sound_differences("sound_fingerprint_bits", "bioinformatics", 1 << 23, "differing bits of pairs of 128-bit fingerprints", "", {}, [](Buffers &b, long n) -> Sides {
    auto *x = b.random<unsigned>(4 * n, 0, 4e9), *y = b.random<unsigned>(4 * n, 0, 4e9);
    int *out = b.output<int>(n);
    return {{"sound", launch(differences, n / 256, 256, 0, (uint4 *)x, (uint4 *)y, out, int(n))}};
});

__global__ void interleave(const float2 *__restrict__ re, const float2 *__restrict__ im, float4 *__restrict__ out, int twos) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= twos) return;
    float2 a = re[i], b = im[i];
    out[i] = {a.x, b.x, a.y, b.y};
}
Study sound_complex("sound_interleave_complex", "signals", 1 << 24, "real and imaginary parts brought together, 8 bytes a load, 16 a store", "", {}, [](Buffers &b, long n) -> Sides {
    float *re = b.random<float>(n), *im = b.random<float>(n), *out = b.output<float>(2 * n);
    return {{"sound", launch(interleave, n / 512, 256, 0, (float2 *)re, (float2 *)im, (float4 *)out, int(n / 2))}};
});

}  // namespace
