// Grids, elements and transforms of HPC mini-apps.
#include "../pairs/pair.cuh"

namespace {

// --- a high-order stencil in three dimensions ---

__device__ __forceinline__ float weight(int r) {
    return r == 0 ? -2.8472222f : r == 1 ? 1.6f : r == 2 ? -0.2f : r == 3 ? 0.025396825f : -0.0017857143f;
}
__global__ void fd_25(const float *u, float *out, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 4, y = blockIdx.y * blockDim.y + threadIdx.y + 4, z = blockIdx.z + 4;
    int plane = nx * ny, i = z * plane + y * nx + x;
    float s = 3.f * weight(0) * u[i];
#pragma unroll
    for (int r = 1; r <= 4; r++)
        s += weight(r) * (u[i - r] + u[i + r] + u[i - r * nx] + u[i + r * nx] + u[i - r * plane] + u[i + r * plane]);
    out[i] = s;
}
__global__ void __launch_bounds__(256) fd_25_march(const float *__restrict__ u, float *__restrict__ out, int nx, int ny) {
    __shared__ float tile[16][40];
    int tx = threadIdx.x, ty = threadIdx.y, plane = nx * ny;
    int i = (blockIdx.z * 64 + 4) * plane + (blockIdx.y * 8 + ty + 4) * nx + blockIdx.x * 32 + tx + 4;
    float q[9];
#pragma unroll
    for (int k = 0; k < 8; ++k) q[k + 1] = u[i + (k - 4) * plane];
    for (int z = 0; z < 64; ++z, i += plane) {
#pragma unroll
        for (int k = 0; k < 8; ++k) q[k] = q[k + 1];
        q[8] = u[i + 4 * plane];
        tile[ty + 4][tx + 4] = q[4];
        if (tx < 4) tile[ty + 4][tx] = u[i - 4], tile[ty + 4][tx + 36] = u[i + 32];
        if (ty < 4) tile[ty][tx + 4] = u[i - 4 * nx], tile[ty + 12][tx + 4] = u[i + 8 * nx];
        __syncthreads();
        float s = 3.f * weight(0) * q[4];
#pragma unroll
        for (int r = 1; r <= 4; ++r)
            s += weight(r) * (tile[ty + 4][tx + 4 - r] + tile[ty + 4][tx + 4 + r] + tile[ty + 4 - r][tx + 4] + tile[ty + 4 + r][tx + 4] + q[4 - r] + q[4 + r]);
        out[i] = s;
        __syncthreads();
    }
}
__global__ void __launch_bounds__(256) fd_25_four(const float *__restrict__ u, float *__restrict__ out, int nx, int ny) {
    int x = 4 * threadIdx.x + 4, y = blockIdx.y * blockDim.y + threadIdx.y + 4, z = blockIdx.z + 4;
    int plane = nx * ny, i = z * plane + y * nx + x;
    float row[12], s[4];
    auto four = [&](int at) { return *reinterpret_cast<const float4 *>(u + at); };
    *reinterpret_cast<float4 *>(row) = four(i - 4), *reinterpret_cast<float4 *>(row + 4) = four(i), *reinterpret_cast<float4 *>(row + 8) = four(i + 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        s[k] = 3.f * weight(0) * row[4 + k];
#pragma unroll
        for (int r = 1; r <= 4; ++r) s[k] += weight(r) * (row[4 + k - r] + row[4 + k + r]);
    }
#pragma unroll
    for (int r = 1; r <= 4; ++r) {
        float4 a = four(i - r * nx), b = four(i + r * nx), c = four(i - r * plane), d = four(i + r * plane);
        s[0] += weight(r) * (a.x + b.x + c.x + d.x), s[1] += weight(r) * (a.y + b.y + c.y + d.y);
        s[2] += weight(r) * (a.z + b.z + c.z + d.z), s[3] += weight(r) * (a.w + b.w + c.w + d.w);
    }
    *reinterpret_cast<float4 *>(out + i) = {s[0], s[1], s[2], s[3]};
}
Study fd_25s("fd_25_point_direct", "hpc", 264, "an eighth-order Laplacian in three dimensions, 25 points, 264 x 264 x 264",
    "25 loads a point; every value is asked for 25 times",
    {{"march", "planes marched through: a queue of registers along z, a tile in shared memory", {"redundant_loads"}}, {"four", "four neighbouring points a thread, 16 bytes a load", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *u = b.random<float>(n * n * n), *out = b.output<float>(n * n * n, true);
        int m = n;
        return {{"flawed", launch(fd_25, dim3(8, 32, 256), dim3(32, 8), 0, u, out, m, m)}, {"march", launch(fd_25_march, dim3(8, 32, 4), dim3(32, 8), 0, u, out, m, m)},
            {"four", launch(fd_25_four, dim3(1, 64, 256), dim3(64, 4), 0, u, out, m, m)}};
    });

// --- prolongation of a multigrid cycle ---

__global__ void prolong_scatter(const float *coarse, float *fine, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float c = coarse[y * n + x];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int fx = 2 * x + dx, fy = 2 * y + dy;
            if (fx < 0 || fy < 0) continue;
            atomicAdd(&fine[fy * 2 * n + fx], c * (dx ? 0.5f : 1.f) * (dy ? 0.5f : 1.f));
        }
}
__global__ void prolong_gather(const float *__restrict__ coarse, float *__restrict__ fine, int n) {
    int fx = blockIdx.x * blockDim.x + threadIdx.x, fy = blockIdx.y * blockDim.y + threadIdx.y;
    int x = fx / 2, y = fy / 2, x1 = x + (fx & 1), y1 = y + (fy & 1);
    auto at = [&](int yy, int xx) { return xx < n && yy < n ? coarse[yy * n + xx] : 0.f; };
    fine[fy * 2 * n + fx] = 0.25f * (at(y, x) + at(y, x1) + at(y1, x) + at(y1, x1));
}
__global__ void prolong_cell(const float *__restrict__ coarse, float *__restrict__ fine, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    auto at = [&](int yy, int xx) { return xx < n && yy < n ? coarse[yy * n + xx] : 0.f; };
    float a = at(y, x), b = at(y, x + 1), c = at(y + 1, x), d = at(y + 1, x + 1);
    auto *row = reinterpret_cast<float2 *>(fine + size_t(2 * y) * 2 * n) + x;
    row[0] = {a, 0.5f * (a + b)};
    row[n] = {0.5f * (a + c), 0.25f * (a + b + c + d)};
}
Study prolongations("prolong_scatter_atomics", "hpc", 2048, "bilinear prolongation of a 2048 x 2048 grid to 4096 x 4096",
    "each coarse point adds to nine fine points with atomics",
    {{"gather", "a thread a fine point gathers from up to four coarse ones", {"global_atomics"}}, {"cell", "a thread a coarse cell writes its four fine points, two a store", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        float *coarse = b.random<float>(n * n, 0, 1), *fine = b.output<float>(4 * n * n, true);
        int m = n;
        return {{"flawed", launch(prolong_scatter, dim3(n / 32, n / 8), dim3(32, 8), 0, coarse, fine, m)}, {"gather", launch(prolong_gather, dim3(n / 16, n / 4), dim3(32, 8), 0, coarse, fine, m)},
            {"cell", launch(prolong_cell, dim3(n / 32, n / 8), dim3(32, 8), 0, coarse, fine, m)}};
    });

// --- transport in phase space ---

__device__ __forceinline__ float upwind(const float *f, int i, int x, int y, int vx, int vy, int n) {
    float a = 0.02f * (vx - n / 2), b = 0.02f * (vy - n / 2), here = f[i];
    int before = a > 0.f ? (x ? i - 1 : i + n - 1) : (x < n - 1 ? i + 1 : i - n + 1);
    int below = b > 0.f ? (y ? i - n : i + n * (n - 1)) : (y < n - 1 ? i + n : i - n * (n - 1));
    return here - fabsf(a) * (here - f[before]) - fabsf(b) * (here - f[below]);
}
__global__ void vlasov(const float *f, float *out, long nx, long ny, long nvx, long nvy) {
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx * ny * nvx * nvy) return;
    long x = i % nx, y = i / nx % ny, vx = i / (nx * ny) % nvx, vy = i / (nx * ny * nvx);
    out[i] = upwind(f, i, x, y, vx, vy, nx);
}
__global__ void vlasov_grid(const float *__restrict__ f, float *__restrict__ out, int n) {
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, vx = blockIdx.y, vy = blockIdx.z;
    int i = ((vy * n + vx) * n + y) * n + x;
    out[i] = upwind(f, i, x, y, vx, vy, n);
}
__global__ void vlasov_reciprocal(const float *__restrict__ f, float *__restrict__ out, int n, unsigned magic, unsigned total) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    unsigned row = __umulhi(i, magic), page = __umulhi(row, magic), vy = __umulhi(page, magic);
    out[i] = upwind(f, i, i - row * n, row - page * n, page - vy * n, vy, n);
}
Study vlasovs("vlasov_long_divisions", "hpc", 60, "an upwind step of a distribution over two places and two speeds, 60 to the fourth",
    "the flat index is taken apart with six 64-bit divisions",
    {{"grid", "indices from a grid of blocks of 60 x 4 threads", {"integer_arithmetic"}}, {"reciprocal", "32-bit products with a reciprocal", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        long total = n * n * n * n;
        float *f = b.random<float>(total, 0, 1), *out = b.output<float>(total);
        unsigned magic = unsigned(((1ull << 32) + n - 1) / n);
        return {{"flawed", launch(vlasov, blocks(total, 256), 256, 0, f, out, n, n, n, n)}, {"grid", launch(vlasov_grid, dim3(n / 4, n, n), dim3(n, 4), 0, f, out, int(n))},
            {"reciprocal", launch(vlasov_reciprocal, blocks(total, 256), 256, 0, f, out, int(n), magic, unsigned(total))}};
    });

// --- forces between the phases of a lattice Boltzmann fluid ---

__global__ void shan_chen(const float *rho, float2 *force, float g, float rho0, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float fx = 0.f, fy = 0.f;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            if (dx == 0 && dy == 0) continue;
            int xx = (x + dx + n) % n, yy = (y + dy + n) % n;
            float w = dx && dy ? 1.f / 36.f : 1.f / 9.f;
            float psi = rho0 * (1.f - expf(-rho[yy * n + xx] / rho0));
            fx += w * psi * dx, fy += w * psi * dy;
        }
    float psi = rho0 * (1.f - expf(-rho[y * n + x] / rho0));
    force[y * n + x] = make_float2(-g * psi * fx, -g * psi * fy);
}
__global__ void __launch_bounds__(256) shan_chen_tile(const float *__restrict__ rho, float2 *__restrict__ force, float g, float rho0, int n) {
    __shared__ float psi[10][34];
    int first_x = blockIdx.x * 32, first_y = blockIdx.y * 8, tx = threadIdx.x, ty = threadIdx.y;
    for (int i = ty * 32 + tx; i < 340; i += 256) {
        int xx = first_x + i % 34 - 1, yy = first_y + i / 34 - 1;
        xx = xx < 0 ? n - 1 : xx == n ? 0 : xx, yy = yy < 0 ? n - 1 : yy == n ? 0 : yy;
        psi[i / 34][i % 34] = rho0 * (1.f - expf(-rho[yy * n + xx] / rho0));
    }
    __syncthreads();
    float fx = 0.f, fy = 0.f;
#pragma unroll
    for (int dy = 0; dy < 3; ++dy)
#pragma unroll
        for (int dx = 0; dx < 3; ++dx) {
            float w = dx != 1 && dy != 1 ? 1.f / 36.f : 1.f / 9.f, p = psi[ty + dy][tx + dx];
            fx += w * p * (dx - 1), fy += w * p * (dy - 1);
        }
    float p = psi[ty + 1][tx + 1];
    force[(first_y + ty) * n + first_x + tx] = {-g * p * fx, -g * p * fy};
}
__global__ void shan_chen_fast(const float *__restrict__ rho, float2 *__restrict__ force, float g, float rho0, float minus_reciprocal, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int xs[3] = {x ? x - 1 : n - 1, x, x < n - 1 ? x + 1 : 0}, ys[3] = {y ? y - 1 : n - 1, y, y < n - 1 ? y + 1 : 0};
    float fx = 0.f, fy = 0.f, here = 0.f;
#pragma unroll
    for (int dy = 0; dy < 3; ++dy)
#pragma unroll
        for (int dx = 0; dx < 3; ++dx) {
            float w = dx != 1 && dy != 1 ? 1.f / 36.f : 1.f / 9.f, p = rho0 * (1.f - __expf(rho[ys[dy] * n + xs[dx]] * minus_reciprocal));
            if (dx == 1 && dy == 1) here = p;
            fx += w * p * (dx - 1), fy += w * p * (dy - 1);
        }
    force[y * n + x] = {-g * here * fx, -g * here * fy};
}
Study shan_chens("shan_chen_nine_exponentials", "hpc", 4096, "forces of a two-phase lattice Boltzmann fluid, 4096 x 4096",
    "an exponential and a division for each of nine neighbours, the same ones again in every neighbour's thread",
    {{"tile", "the potential once a point into a tile in shared memory", {"expensive_math"}}, {"fast", "the fast exponential, a product with the reciprocal, no remainders", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *rho = b.random<float>(n * n, 0.1, 2), *force = b.output<float>(2 * n * n);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(shan_chen, dim3(n / 32, n / 8), dim3(32, 8), 0, rho, (float2 *)force, 1.5f, 1.1f, m)},
            {"tile", launch(shan_chen_tile, dim3(n / 32, n / 8), dim3(32, 8), 0, rho, (float2 *)force, 1.5f, 1.1f, m)},
            {"fast", launch(shan_chen_fast, dim3(n / 32, n / 8), dim3(32, 8), 0, rho, (float2 *)force, 1.5f, 1.1f, -1.f / 1.1f, m)}};
    });

// --- many small Fourier transforms ---

__device__ __forceinline__ void butterfly(float2 &a, float2 &b, float2 w) {
    float2 t = {w.x * b.x - w.y * b.y, w.x * b.y + w.y * b.x};
    b = {a.x - t.x, a.y - t.y}, a = {a.x + t.x, a.y + t.y};
}
__global__ void fft_16(const float2 *in, const float2 *twiddle, float2 *out, int log2n, int batch) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, n = 1 << log2n;
    if (t >= batch) return;
    float2 a[16];
    for (int i = 0; i < n; i++) a[__brev(i) >> (32 - log2n)] = in[i * batch + t];
    for (int s = 1; s <= log2n; s++) {
        int m = 1 << s;
        for (int k = 0; k < n; k += m)
            for (int j = 0; j < m / 2; j++) butterfly(a[k + j], a[k + j + m / 2], twiddle[j * (n / m)]);
    }
    for (int i = 0; i < n; i++) out[i * batch + t] = a[i];
}
__global__ void __launch_bounds__(128) fft_16_unrolled(const float2 *__restrict__ in, const float2 *__restrict__ twiddle, float2 *__restrict__ out, int batch) {
    int t = blockIdx.x * 128 + threadIdx.x;
    float2 a[16], w[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) w[i] = twiddle[i];
#pragma unroll
    for (int i = 0; i < 16; ++i) a[(i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | i >> 3] = in[i * batch + t];
#pragma unroll
    for (int s = 1; s <= 4; ++s)
#pragma unroll
        for (int p = 0; p < 8; ++p) {
            int half = 1 << (s - 1), j = p & (half - 1), k = (p - j) * 2;
            butterfly(a[k + j], a[k + j + half], w[j << (4 - s)]);
        }
#pragma unroll
    for (int i = 0; i < 16; ++i) out[i * batch + t] = a[i];
}
__global__ void __launch_bounds__(64) fft_16_shared(const float2 *__restrict__ in, const float2 *__restrict__ twiddle, float2 *__restrict__ out, int log2n, int batch) {
    __shared__ float2 a[16][64];
    int l = threadIdx.x, t = blockIdx.x * 64 + l, n = 1 << log2n;
    for (int i = 0; i < n; i++) a[__brev(i) >> (32 - log2n)][l] = in[i * batch + t];
    for (int s = 1; s <= log2n; s++) {
        int m = 1 << s;
        for (int k = 0; k < n; k += m)
            for (int j = 0; j < m / 2; j++) butterfly(a[k + j][l], a[k + j + m / 2][l], twiddle[j * (n / m)]);
    }
    for (int i = 0; i < n; i++) out[i * batch + t] = a[i][l];
}
Study fft_16s("fft_16_indexed_array", "hpc", 1 << 20, "a million Fourier transforms of 16 points, a thread each",
    "the points lie in an array indexed at run time, in local memory",
    {{"unrolled", "length and indices known to the compiler: registers", {"local_memory"}}, {"shared", "the points in a strip of shared memory", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> w;
        for (int k = 0; k < 8; ++k) w.push_back({float(cos(-2 * 3.14159265358979 * k / 16)), float(sin(-2 * 3.14159265358979 * k / 16))});
        float2 *in = (float2 *)b.random<float>(32 * n), *out = (float2 *)b.output<float>(32 * n), *twiddle = b.copy(w);
        int batch = n;
        return {{"flawed", launch(fft_16, n / 128, 128, 0, in, twiddle, out, 4, batch)}, {"unrolled", launch(fft_16_unrolled, n / 128, 128, 0, in, twiddle, out, batch)},
            {"shared", launch(fft_16_shared, n / 64, 64, 0, in, twiddle, out, 4, batch)}};
    });

// --- stiffness of quadrilateral elements ---

struct Corners {
    float x[4], y[4];
};
__device__ __forceinline__ Corners corners(const float *x, const float *y, int e, int n) {
    Corners c;
#pragma unroll
    for (int k = 0; k < 4; ++k) c.x[k] = x[k * n + e], c.y[k] = y[k * n + e];
    return c;
}
// Gradients of the four shape functions at a point, and the determinant.
__device__ __forceinline__ float gradients(const Corners &c, float u, float v, float *gx, float *gy) {
    float du[4] = {-0.25f * (1 - v), 0.25f * (1 - v), 0.25f * (1 + v), -0.25f * (1 + v)};
    float dv[4] = {-0.25f * (1 - u), -0.25f * (1 + u), 0.25f * (1 + u), 0.25f * (1 - u)};
    float xu = 0, xv = 0, yu = 0, yv = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) xu += du[k] * c.x[k], xv += dv[k] * c.x[k], yu += du[k] * c.y[k], yv += dv[k] * c.y[k];
    float det = xu * yv - xv * yu;
#pragma unroll
    for (int k = 0; k < 4; ++k) gx[k] = (yv * du[k] - yu * dv[k]) / det, gy[k] = (xu * dv[k] - xv * du[k]) / det;
    return det;
}
__device__ __forceinline__ float pick(const float *g, int k) { return k == 0 ? g[0] : k == 1 ? g[1] : k == 2 ? g[2] : g[3]; }
__global__ void stiffness_entry(const float *x, const float *y, float *matrix, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, e = t / 16, i = t / 4 % 4, j = t % 4;
    if (e >= n) return;
    Corners c = corners(x, y, e, n);
    float sum = 0.f;
    for (int q = 0; q < 4; q++) {
        float gx[4], gy[4];
        float det = gradients(c, q & 1 ? 0.57735027f : -0.57735027f, q & 2 ? 0.57735027f : -0.57735027f, gx, gy);
        sum += det * (pick(gx, i) * pick(gx, j) + pick(gy, i) * pick(gy, j));
    }
    matrix[t] = sum;
}
__global__ void __launch_bounds__(128) stiffness_element(const float *__restrict__ x, const float *__restrict__ y, float4 *__restrict__ matrix, int n) {
    int e = blockIdx.x * 128 + threadIdx.x;
    Corners c = corners(x, y, e, n);
    float k[4][4] = {};
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        float gx[4], gy[4];
        float det = gradients(c, q & 1 ? 0.57735027f : -0.57735027f, q & 2 ? 0.57735027f : -0.57735027f, gx, gy);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) k[i][j] += det * (gx[i] * gx[j] + gy[i] * gy[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) matrix[size_t(e) * 4 + i] = {k[i][0], k[i][1], k[i][2], k[i][3]};
}
__global__ void __launch_bounds__(256) stiffness_row(const float *__restrict__ x, const float *__restrict__ y, float4 *__restrict__ matrix, int n) {
    int t = blockIdx.x * 256 + threadIdx.x, e = t / 4, i = t % 4;
    Corners c = corners(x, y, e, n);
    float k[4] = {};
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        float gx[4], gy[4];
        float det = gradients(c, q & 1 ? 0.57735027f : -0.57735027f, q & 2 ? 0.57735027f : -0.57735027f, gx, gy);
        float a = det * pick(gx, i), b = det * pick(gy, i);
#pragma unroll
        for (int j = 0; j < 4; ++j) k[j] += a * gx[j] + b * gy[j];
    }
    matrix[t] = {k[0], k[1], k[2], k[3]};
}
Study stiffnesses("stiffness_thread_per_entry", "hpc", 1 << 19, "stiffness matrices of 524288 quadrilateral elements, four quadrature points",
    "a thread an entry: geometry and gradients of an element, with their divisions, are worked out by 16 threads",
    {{"element", "a thread an element keeps all 16 entries in registers", {"expensive_math"}}, {"row", "a thread a row of four entries, 16 bytes a store", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> x(4 * n), y(4 * n);
        for (long e = 0; e < n; ++e)
            for (int k = 0; k < 4; ++k) {
                x[k * n + e] = (k == 1 || k == 2) + 0.2f * (pairs::hash(8 * e + k) % 1000) / 1000.f;
                y[k * n + e] = (k >= 2) + 0.2f * (pairs::hash(8 * e + 4 + k) % 1000) / 1000.f;
            }
        float *dx = b.copy(x), *dy = b.copy(y), *matrix = b.output<float>(16 * n);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(stiffness_entry, n / 16, 256, 0, dx, dy, matrix, m)}, {"element", launch(stiffness_element, n / 128, 128, 0, dx, dy, (float4 *)matrix, m)},
            {"row", launch(stiffness_row, n / 64, 256, 0, dx, dy, (float4 *)matrix, m)}};
    });

// --- the vectors of a conjugate gradient step ---

__global__ void cg_sweeps(float *x, float *r, float *z, const float *p, const float *q, const float *d, float *sums, float alpha, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += stride) x[i] += alpha * p[i];
    for (int i = first; i < n; i += stride) r[i] -= alpha * q[i];
    for (int i = first; i < n; i += stride) z[i] = r[i] * d[i];
    float rz = 0.f, rr = 0.f;
    for (int i = first; i < n; i += stride) rz += r[i] * z[i];
    for (int i = first; i < n; i += stride) rr += r[i] * r[i];
    rz = warp_sum(rz), rr = warp_sum(rr);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], rz), atomicAdd(&sums[1], rr);
}
__global__ void cg_fused(float *__restrict__ x, float *__restrict__ r, float *__restrict__ z, const float *__restrict__ p, const float *__restrict__ q, const float *__restrict__ d, float *__restrict__ sums, float alpha, int n) {
    float rz = 0.f, rr = 0.f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float a = r[i] - alpha * q[i], c = a * d[i];
        x[i] += alpha * p[i], r[i] = a, z[i] = c, rz += a * c, rr += a * a;
    }
    rz = warp_sum(rz), rr = warp_sum(rr);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], rz), atomicAdd(&sums[1], rr);
}
__global__ void cg_fused_four(float4 *__restrict__ x, float4 *__restrict__ r, float4 *__restrict__ z, const float4 *__restrict__ p, const float4 *__restrict__ q, const float4 *__restrict__ d, float *__restrict__ sums, float alpha, int n) {
    float rz = 0.f, rr = 0.f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        float4 a = r[i], b = q[i], e = d[i], s = x[i], t = p[i], c;
        a = {a.x - alpha * b.x, a.y - alpha * b.y, a.z - alpha * b.z, a.w - alpha * b.w};
        c = {a.x * e.x, a.y * e.y, a.z * e.z, a.w * e.w};
        x[i] = {s.x + alpha * t.x, s.y + alpha * t.y, s.z + alpha * t.z, s.w + alpha * t.w};
        r[i] = a, z[i] = c;
        rz += a.x * c.x + a.y * c.y + a.z * c.z + a.w * c.w, rr += a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w;
    }
    rz = warp_sum(rz), rr = warp_sum(rr);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], rz), atomicAdd(&sums[1], rr);
}
Study cg_steps("cg_step_five_sweeps", "hpc", 1 << 24, "the vector updates and dot products of a preconditioned conjugate gradient step, 16 million unknowns",
    "five sweeps: what one wrote, the next one fetches from memory again",
    {{"fused", "all in one sweep", {"redundant_loads", "cache_locality"}}, {"fused_four", "one sweep of four values a load", {"redundant_loads", "cache_locality", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *x0 = b.random<float>(n), *r0 = b.random<float>(n), *p = b.random<float>(n), *q = b.random<float>(n), *d = b.random<float>(n, 0.5, 1);
        float *x = b.changed(x0, n), *r = b.changed(r0, n), *z = b.output<float>(n), *sums = b.output<float>(2, true);
        b.tolerance = 2e-3;
        int m = n;
        return {{"flawed", launch(cg_sweeps, 1056, 256, 0, x, r, z, p, q, d, sums, 0.3f, m)}, {"fused", launch(cg_fused, 1056, 256, 0, x, r, z, p, q, d, sums, 0.3f, m)},
            {"fused_four", launch(cg_fused_four, 1056, 256, 0, (float4 *)x, (float4 *)r, (float4 *)z, (float4 *)p, (float4 *)q, (float4 *)d, sums, 0.3f, m)}};
    });

// --- the biharmonic operator ---

__device__ __forceinline__ float plate(const float *u, int i, int w) {
    return 20.f * u[i] - 8.f * (u[i - 1] + u[i + 1] + u[i - w] + u[i + w]) + 2.f * (u[i - w - 1] + u[i - w + 1] + u[i + w - 1] + u[i + w + 1]) +
           u[i - 2] + u[i + 2] + u[i - 2 * w] + u[i + 2 * w];
}
template <int TILE>
__global__ void __launch_bounds__(256) biharmonic(const float *__restrict__ u, float *__restrict__ out, int n) {
    extern __shared__ float tile[];
    constexpr int W = TILE + 4;
    int first = blockIdx.y * TILE * n + blockIdx.x * TILE;
    for (int i = threadIdx.x; i < W * W; i += 256) tile[i] = u[first + i / W * n + i % W];
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += 256) {
        int y = i / TILE + 2, x = i % TILE + 2;
        out[first + y * n + x] = plate(tile, y * W + x, W);
    }
}
__global__ void __launch_bounds__(256) biharmonic_direct(const float *__restrict__ u, float *__restrict__ out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x + 2, y = blockIdx.y * 8 + threadIdx.y + 2;
    out[y * n + x] = plate(u, y * n + x, n);
}
Study biharmonics("biharmonic_big_tile", "hpc", 3844, "the biharmonic operator (13 points) on 3840 x 3840 points",
    "tiles of 160 x 160 points: 105 KiB of shared memory a block of 256 threads, 16 warps a multiprocessor that load together and compute together",
    {{"small_tile", "tiles of 32 x 32 points", {"low_occupancy"}}, {"direct", "no tile: neighbours from the cache", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        float *u = b.random<float>(n * n), *out = b.output<float>(n * n, true);
        int m = n;
        return {{"flawed", launch(biharmonic<160>, dim3(24, 24), 256, 164 * 164 * 4, u, out, m)}, {"small_tile", launch(biharmonic<32>, dim3(120, 120), 256, 36 * 36 * 4, u, out, m)},
            {"direct", launch(biharmonic_direct, dim3(120, 480), dim3(32, 8), 0, u, out, m)}};
    });

// --- faces packed for the neighbours ---

__global__ void pack_cells(const float *u, float *faces, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= n) return;
    size_t i = ((size_t)z * n + y) * n + x, face = (size_t)2 * n * n;
    if (x < 2) faces[(z * n + y) * 2 + x] = u[i];
    if (x >= n - 2) faces[face + (z * n + y) * 2 + x - (n - 2)] = u[i];
    if (y < 2) faces[2 * face + (y * n + z) * n + x] = u[i];
    if (y >= n - 2) faces[3 * face + ((y - (n - 2)) * n + z) * n + x] = u[i];
    if (z < 2) faces[4 * face + (z * n + y) * n + x] = u[i];
    if (z >= n - 2) faces[5 * face + ((z - (n - 2)) * n + y) * n + x] = u[i];
}
template <bool PAIRS>
__global__ void pack_faces(const float *__restrict__ u, float *__restrict__ faces, int n) {
    int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y, which = blockIdx.z / 2, layer = blockIdx.z % 2;
    if (a >= n) return;
    size_t face = (size_t)2 * n * n;
    int deep = which % 2 ? n - 2 + layer : layer;
    if (which < 2) {
        if (PAIRS) {
            size_t row = (size_t)b * n + a;
            if (layer == 0) reinterpret_cast<float2 *>(faces + which * face)[row] = *reinterpret_cast<const float2 *>(u + row * n + deep);
        } else {
            size_t row = (size_t)b * n + (layer ? n / 2 : 0) + a / 2;  // two lanes a row
            faces[which * face + row * 2 + a % 2] = u[row * n + (which ? n - 2 : 0) + a % 2];
        }
    } else if (which < 4) faces[which * face + ((size_t)layer * n + b) * n + a] = u[((size_t)b * n + deep) * n + a];
    else faces[which * face + ((size_t)layer * n + b) * n + a] = u[((size_t)deep * n + b) * n + a];
}
Study packs("halo_pack_all_cells", "hpc", 640, "six faces, two cells deep, of a box of 640 x 640 x 640 cells packed for its neighbours",
    "a thread for every cell of the box, of which one in 50 lies at a face",
    {{"faces", "threads for the cells of the faces alone", {"idle_threads"}}, {"faces_pairs", "the same, two cells a load at the ends of rows", {"idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        float *u = b.random<float>(n * n * n), *faces = b.output<float>(12 * n * n);
        int m = n;
        return {{"flawed", launch(pack_cells, dim3(n / 128, n, n), 128, 0, u, faces, m)}, {"faces", launch(pack_faces<false>, dim3(n / 128, n, 12), 128, 0, u, faces, m)},
            {"faces_pairs", launch(pack_faces<true>, dim3(n / 128, n, 12), 128, 0, u, faces, m)}};
    });

}  // namespace
