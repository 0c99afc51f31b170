// Mini-apps: grids, sparse matrices, transforms, small systems.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- upwind advection of a field stored with z fastest ---

__global__ void advect(const float *q, float *out, float cx, float cy, float cz, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= nx || j >= ny) return;
    for (int k = 1; k < nz; k++) {
        int at = (i * ny + j) * nz + k;
        out[at] = q[at] - cx * (q[at] - q[at - ny * nz]) - cy * (q[at] - q[at - nz]) - cz * (q[at] - q[at - 1]);
    }
}
__global__ void advect_z(const float *__restrict__ q, float *__restrict__ out, float cx, float cy, float cz, int nx, int ny, int nz) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, i = blockIdx.z;
    if (i < 1 || j < 1 || k < 1 || k >= nz || j >= ny) return;
    int at = (i * ny + j) * nz + k;
    out[at] = q[at] - cx * (q[at] - q[at - ny * nz]) - cy * (q[at] - q[at - nz]) - cz * (q[at] - q[at - 1]);
}
__global__ void advect_march(const float *__restrict__ q, float *__restrict__ out, float cx, float cy, float cz, int nx, int ny, int nz) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j < 1 || k < 1 || k >= nz || j >= ny) return;
    float before = q[j * nz + k];
    for (int i = 1; i < nx; i++) {
        int at = (i * ny + j) * nz + k;
        float here = q[at];
        out[at] = here - cx * (here - before) - cy * (here - q[at - nz]) - cz * (here - q[at - 1]);
        before = here;
    }
}

Study advections("advect_wrong_axis", "hpc", 256, "upwind advection of a field of 256 cells a side, z fastest",
    "lanes run along x, the slowest axis: neighbours are 256 KiB apart",
    {{"lanes_z", "a thread a cell, lanes along z", {"uncoalesced_access"}},
        {"march", "lanes along z, threads march in x and keep the cell before", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *q = b.random<float>(n * n * n), *out = b.output<float>(n * n * n, true);
        int m = n;
        return {{"flawed", launch(advect, dim3(n / 32, n / 4), dim3(32, 4), 0, q, out, 0.1f, 0.2f, 0.3f, m, m, m)},
            {"lanes_z", launch(advect_z, dim3(n / 32, n / 8, n), dim3(32, 8), 0, q, out, 0.1f, 0.2f, 0.3f, m, m, m)},
            {"march", launch(advect_march, dim3(n / 32, n / 4), dim3(32, 4), 0, q, out, 0.1f, 0.2f, 0.3f, m, m, m)}};
    });

// --- Rusanov fluxes of the Euler equations ---

struct Cell {
    float rho, mx, my, mz, energy;
};
__device__ Cell rusanov(const Cell &l, const Cell &r) {
    auto side = [](const Cell &c, Cell &f, float &speed) {
        float u = c.mx / c.rho, p = 0.4f * (c.energy - 0.5f * (c.mx * c.mx + c.my * c.my + c.mz * c.mz) / c.rho);
        f = {c.mx, c.mx * u + p, c.my * u, c.mz * u, (c.energy + p) * u};
        speed = fabsf(u) + sqrtf(1.4f * p / c.rho);
    };
    Cell a, c;
    float s, t;
    side(l, a, s), side(r, c, t);
    s = 0.5f * fmaxf(s, t);
    return {0.5f * (a.rho + c.rho) - s * (r.rho - l.rho), 0.5f * (a.mx + c.mx) - s * (r.mx - l.mx),
        0.5f * (a.my + c.my) - s * (r.my - l.my), 0.5f * (a.mz + c.mz) - s * (r.mz - l.mz),
        0.5f * (a.energy + c.energy) - s * (r.energy - l.energy)};
}
__global__ void euler_fluxes(const Cell *u, Cell *flux, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) flux[i] = rusanov(u[i], u[i + 1]);
}
__global__ void euler_fluxes_planes(const float *__restrict__ u, float *__restrict__ flux, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 >= n) return;
    Cell l{u[i], u[n + i], u[2 * n + i], u[3 * n + i], u[4 * n + i]};
    Cell r{u[i + 1], u[n + i + 1], u[2 * n + i + 1], u[3 * n + i + 1], u[4 * n + i + 1]};
    Cell f = rusanov(l, r);
    flux[i] = f.rho, flux[n + i] = f.mx, flux[2 * n + i] = f.my, flux[3 * n + i] = f.mz, flux[4 * n + i] = f.energy;
}
__global__ void __launch_bounds__(128) euler_fluxes_staged(const float *__restrict__ u, float *__restrict__ flux, int n) {
    __shared__ float tile[129 * 5], result[128 * 5];
    size_t first = size_t(blockIdx.x) * 128 * 5;
    for (int i = threadIdx.x; i < 129 * 5; i += 128)
        if (first + i < size_t(n) * 5) tile[i] = u[first + i];
    __syncthreads();
    const float *l = tile + 5 * threadIdx.x, *r = l + 5;
    if (blockIdx.x * 128 + threadIdx.x + 1 < n) {
        Cell f = rusanov({l[0], l[1], l[2], l[3], l[4]}, {r[0], r[1], r[2], r[3], r[4]});
        float *to = result + 5 * threadIdx.x;
        to[0] = f.rho, to[1] = f.mx, to[2] = f.my, to[3] = f.mz, to[4] = f.energy;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 128 * 5; i += 128)
        if (first + i < size_t(n - 1) * 5) flux[first + i] = result[i];
}
__global__ void planes_to_cells(const float *planes, float *cells, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 5 * (n - 1); i += gridDim.x * blockDim.x)
        cells[i] = planes[i % 5 * n + i / 5];
}
__global__ void cells_to_planes(const float *cells, float *planes, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 5 * n; i += gridDim.x * blockDim.x)
        planes[i % 5 * n + i / 5] = cells[i];
}

Study eulers("euler_flux_structures", "hpc", 1 << 22, "Rusanov fluxes between 4 million cells of five conserved values",
    "cells and fluxes are structures of 20 bytes: each of ten accesses spreads over 640 bytes",
    {{"planes", "an array a value", {"uncoalesced_access"}},
        {"staged", "structures kept, brought and taken through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> host(5 * n);
        for (long i = 0; i < n; ++i) {
            auto r = [&](int k) { return pairs::hash(i * 5 + k) / 4294967296.f; };
            host[5 * i] = 1.f + r(0), host[5 * i + 1] = r(1) - 0.5f, host[5 * i + 2] = r(2) - 0.5f, host[5 * i + 3] = r(3) - 0.5f;
            host[5 * i + 4] = 4.f + r(4);
        }
        float *u = b.copy(host), *planes = b.allocate<float>(5 * n), *scratch = b.allocate<float>(5 * n);
        float *flux = b.output<float>(5 * (n - 1));
        cells_to_planes<<<1024, 256>>>(u, planes, n);
        CHECK_LAUNCH();
        b.tolerance = 1e-3;
        return {{"flawed", launch(euler_fluxes, blocks(n, 128), 128, 0, (Cell *)u, (Cell *)flux, n)},
            {"planes", launch(euler_fluxes_planes, blocks(n, 128), 128, 0, planes, scratch, n), {}, 1,
                launch(planes_to_cells, 1024, 256, 0, scratch, flux, n)},
            {"staged", launch(euler_fluxes_staged, blocks(n, 128), 128, 0, u, flux, n)}};
    });

// --- full weighting of a multigrid cycle ---

__global__ void restrict27(const float *fine, float *coarse, int n) {  // n: coarse cells a side, fine has 2n + 1
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= n || y >= n) return;
    int m = 2 * n + 1;
    float sum = 0.f;
    for (int dz = 0; dz < 3; dz++)
        for (int dy = 0; dy < 3; dy++)
            for (int dx = 0; dx < 3; dx++)
                sum += (dx == 1 ? 2.f : 1.f) * (dy == 1 ? 2.f : 1.f) * (dz == 1 ? 2.f : 1.f) * fine[((2 * z + dz) * m + 2 * y + dy) * m + 2 * x + dx];
    coarse[(z * n + y) * n + x] = sum * (1.f / 64.f);
}
__global__ void __launch_bounds__(256) restrict27_shared(const float *__restrict__ fine, float *__restrict__ coarse, int n) {
    __shared__ float even[17][33], odd[17][33];  // fine columns by parity, summed over z
    int x = threadIdx.x % 32, y = threadIdx.x / 32, m = 2 * n + 1, x0 = blockIdx.x * 64, y0 = blockIdx.y * 16, z = 2 * blockIdx.z;
    for (int i = threadIdx.x; i < 17 * 65; i += 256) {
        int c = i % 65, r = i / 65;
        const float *at = fine + (size_t(z) * m + y0 + r) * m + x0 + c;
        (c % 2 ? odd : even)[r][c / 2] = at[0] + 2.f * at[m * m] + at[2 * m * m];
    }
    __syncthreads();
    auto row = [&](int r) { return even[r][x] + 2.f * odd[r][x] + even[r][x + 1]; };
    coarse[(size_t(blockIdx.z) * n + blockIdx.y * 8 + y) * n + blockIdx.x * 32 + x] = (row(2 * y) + 2.f * row(2 * y + 1) + row(2 * y + 2)) * (1.f / 64.f);
}
__global__ void restrict27_march(const float *__restrict__ fine, float *__restrict__ coarse, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, m = 2 * n + 1, z0 = blockIdx.z * 16;
    auto plane = [&](int z) {
        float sum = 0.f;
#pragma unroll
        for (int dy = 0; dy < 3; ++dy) {
            const float *at = fine + (size_t(z) * m + 2 * y + dy) * m + 2 * x;
            sum += (dy == 1 ? 2.f : 1.f) * (at[0] + 2.f * at[1] + at[2]);
        }
        return sum;
    };
    float below = plane(2 * z0);
    for (int z = z0; z < z0 + 16; ++z) {
        float middle = plane(2 * z + 1), above = plane(2 * z + 2);
        coarse[(size_t(z) * n + y) * n + x] = (below + 2.f * middle + above) * (1.f / 64.f);
        below = above;
    }
}

Study restrictions("multigrid_restrict_27", "hpc", 192, "full weighting from 385 fine to 192 coarse points a side",
    "27 loads a point, every second value of a row a time; neighbours load the same again",
    {{"shared", "fine rows summed along z once, kept in shared memory by parity", {"redundant_loads", "uncoalesced_access"}},
        {"march", "threads march in z and keep the plane that two points share", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        long m = 2 * n + 1;
        float *fine = b.random<float>(m * m * m), *coarse = b.output<float>(n * n * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(restrict27, dim3(n / 32, n / 8, n), dim3(32, 8), 0, fine, coarse, n)},
            {"shared", launch(restrict27_shared, dim3(n / 32, n / 8, n), 256, 0, fine, coarse, n)},
            {"march", launch(restrict27_march, dim3(n / 32, n / 8, n / 16), dim3(32, 8), 0, fine, coarse, n)}};
    });

// --- sparse product with 4 x 4 blocks ---

__global__ void spmv_blocks4(const int *ptr, const int *col, const float *val, const float *x, float *y, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / 4, r = i % 4;
    if (row >= rows) return;
    float sum = 0.f;
    for (int e = ptr[row]; e < ptr[row + 1]; e++)
        for (int c = 0; c < 4; c++) sum += val[e * 16 + r * 4 + c] * x[col[e] * 4 + c];
    y[i] = sum;
}
__global__ void spmv_blocks4_vector(const int *__restrict__ ptr, const int *__restrict__ col, const float4 *__restrict__ val, const float4 *__restrict__ x, float *__restrict__ y, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / 4, r = i % 4;
    if (row >= rows) return;
    float sum = 0.f;
    for (int e = ptr[row]; e < ptr[row + 1]; e++) {
        float4 a = val[e * 4 + r], v = x[col[e]];
        sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
    }
    y[i] = sum;
}
__global__ void spmv_blocks4_lanes(const int *__restrict__ ptr, const int *__restrict__ col, const float *__restrict__ val, const float *__restrict__ x, float *__restrict__ y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.f;
    for (int e = ptr[row] + lane / 16; e < ptr[row + 1]; e += 2) sum += val[e * 16 + lane % 16] * x[col[e] * 4 + lane % 4];
    sum += __shfl_xor_sync(~0u, sum, 16);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (lane < 16 && lane % 4 == 0) y[row * 4 + lane / 4] = sum;
}

Study blocks4("spmv_block_rows_scalar", "hpc", 1 << 16, "sparse product with blocks of 4 x 4, 16 blocks a row",
    "four lanes a row of blocks: a block's row is fetched value by value, rows are 1 KiB apart",
    {{"vector", "a block's row as one 16-byte access", {"uncoalesced_access", "narrow_access"}},
        {"lanes", "a warp a row of blocks, a lane a value of a block", {"uncoalesced_access"}}},
    [](Buffers &b, long rows) -> Sides {
        std::vector<int> ptr(rows + 1), col(rows * 16);
        for (long r = 0; r < rows; ++r) {
            ptr[r + 1] = 16 * (r + 1);
            for (int e = 0; e < 16; ++e) col[r * 16 + e] = (r + pairs::hash(r * 16 + e) % 2048) % rows;
        }
        int *p = b.copy(ptr), *c = b.copy(col), n = rows;
        float *val = b.random<float>(rows * 256), *x = b.random<float>(rows * 4), *y = b.output<float>(rows * 4);
        b.tolerance = 1e-3;
        return {{"flawed", launch(spmv_blocks4, rows / 64, 256, 0, p, c, val, x, y, n)},
            {"vector", launch(spmv_blocks4_vector, rows / 64, 256, 0, p, c, (float4 *)val, (float4 *)x, y, n)},
            {"lanes", launch(spmv_blocks4_lanes, rows / 8, 256, 0, p, c, val, x, y, n)}};
    });

// --- sparse product of coordinates ---

__global__ void spmv_coo(const int *row, const int *col, const float *val, const float *x, float *y, int entries) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < entries) atomicAdd(&y[row[e]], val[e] * x[col[e]]);
}
__global__ void spmv_coo_segments(const int *__restrict__ row, const int *__restrict__ col, const float *__restrict__ val, const float *__restrict__ x, float *__restrict__ y, int entries) {
    int e = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int r = e < entries ? row[e] : -1;
    float v = e < entries ? val[e] * x[col[e]] : 0.f;
    for (int d = 1; d < 32; d *= 2) {
        float other = __shfl_up_sync(~0u, v, d);
        int before = __shfl_up_sync(~0u, r, d);
        if (lane >= d && before == r) v += other;
    }
    int next = __shfl_down_sync(~0u, r, 1);
    if (r >= 0 && (lane == 31 || next != r)) atomicAdd(&y[r], v);
}
__global__ void spmv_coo_runs(const int4 *__restrict__ row, const int4 *__restrict__ col, const float4 *__restrict__ val, const float *__restrict__ x, float *__restrict__ y, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    int4 r = row[i], c = col[i];
    float4 v = val[i];
    int rows[4] = {r.x, r.y, r.z, r.w};
    float products[4] = {v.x * x[c.x], v.y * x[c.y], v.z * x[c.z], v.w * x[c.w]}, sum = products[0];
#pragma unroll
    for (int k = 1; k < 4; ++k) {
        if (rows[k] != rows[k - 1]) atomicAdd(&y[rows[k - 1]], sum), sum = 0.f;
        sum += products[k];
    }
    atomicAdd(&y[rows[3]], sum);
}

Study coordinates("spmv_coordinates_atomics", "hpc", 1 << 18, "sparse product of sorted coordinates, 24 entries a row, band of 4096",
    "an atomic an entry, most lanes of a warp on one row",
    {{"segments", "a segmented sum over the warp, an atomic a row", {"global_atomics"}},
        {"runs", "four entries a thread, an atomic where the row changes", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        std::vector<int> row(rows * 24), col(rows * 24);
        for (long e = 0; e < rows * 24; ++e) row[e] = e / 24, col[e] = (e / 24 + pairs::hash(e) % 4096) % rows;
        int *r = b.copy(row), *c = b.copy(col), n = rows * 24;
        float *val = b.random<float>(n), *x = b.random<float>(rows), *y = b.output<float>(rows, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(spmv_coo, n / 256, 256, 0, r, c, val, x, y, n)},
            {"segments", launch(spmv_coo_segments, n / 256, 256, 0, r, c, val, x, y, n)},
            {"runs", launch(spmv_coo_runs, n / 1024, 256, 0, (int4 *)r, (int4 *)c, (float4 *)val, x, y, n / 4)}};
    });

// --- FFTs of 1024 points in shared memory ---

__device__ float2 times(float2 a, float2 w) { return {a.x * w.x - a.y * w.y, a.x * w.y + a.y * w.x}; }
__device__ float2 plus(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 minus(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }

template <bool TABLE>
__global__ void __launch_bounds__(512) fft1024(const float2 *in, float2 *out, const float2 *table) {
    __shared__ float2 a[1024], b[1024];
    int t = threadIdx.x;
    a[t] = in[blockIdx.x * 1024 + t], a[t + 512] = in[blockIdx.x * 1024 + t + 512];
    __syncthreads();
    float2 *from = a, *to = b;
    for (int half = 1; half < 1024; half *= 2) {  // Stockham, radix 2
        int k = t & (half - 1);
        float2 w;
        if (TABLE) w = table[k * (512 / half)];
        else sincosf(-3.14159265358979f * k / half, &w.y, &w.x);
        float2 u = from[t], v = times(from[t + 512], w);
        int at = (t - k) * 2 + k;
        to[at] = plus(u, v), to[at + half] = minus(u, v);
        __syncthreads();
        float2 *swap = from;
        from = to, to = swap;
    }
    out[blockIdx.x * 1024 + t] = from[t], out[blockIdx.x * 1024 + t + 512] = from[t + 512];
}
__global__ void __launch_bounds__(256) fft1024_radix4(const float2 *__restrict__ in, float2 *__restrict__ out, const float2 *__restrict__ table) {
    __shared__ float2 s[1024];
    int t = threadIdx.x;
    float2 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = in[blockIdx.x * 1024 + t + 256 * k];
#pragma unroll
    for (int quarter = 1; quarter < 1024; quarter *= 4) {  // Stockham, radix 4
        int k = t & (quarter - 1), step = k * (256 / quarter);
        float2 w = table[step], w2 = times(w, w);
        float2 b1 = times(v[1], w), b2 = times(v[2], w2), b3 = times(v[3], times(w, w2));
        float2 e = plus(v[0], b2), f = minus(v[0], b2), g = plus(b1, b3), h = minus(b1, b3);
        h = {h.y, -h.x};
        int at = (t - k) * 4 + k;
        __syncthreads();
        s[at] = plus(e, g), s[at + quarter] = plus(f, h), s[at + 2 * quarter] = minus(e, g), s[at + 3 * quarter] = minus(f, h);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = s[t + 256 * i];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[blockIdx.x * 1024 + t + 256 * k] = v[k];
}

Study ffts("fft_1024_sincos", "hpc", 8192, "8192 complex transforms of 1024 points, a block each, in shared memory",
    "every butterfly of ten stages computes its sine and cosine",
    {{"table", "twiddle factors from a table", {"expensive_math"}},
        {"radix_4", "five stages of radix 4 on registers, twiddle factors from a table", {"expensive_math", "barriers"}}},
    [](Buffers &b, long count) -> Sides {
        float *in = b.random<float>(count * 2048), *out = b.output<float>(count * 2048);
        std::vector<float> w(2048);
        for (int k = 0; k < 1024; ++k) w[2 * k] = std::cos(-M_PI * k / 512), w[2 * k + 1] = std::sin(-M_PI * k / 512);
        float2 *table = (float2 *)b.copy(w);
        b.tolerance = 1e-3;
        return {{"flawed", launch(fft1024<false>, count, 512, 0, (float2 *)in, (float2 *)out, table)},
            {"table", launch(fft1024<true>, count, 512, 0, (float2 *)in, (float2 *)out, table)},
            {"radix_4", launch(fft1024_radix4, count, 256, 0, (float2 *)in, (float2 *)out, table)}};
    });

// --- lattice Boltzmann D3Q19, periodic ---

__constant__ int EX[19] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
__constant__ int EY[19] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
__constant__ int EZ[19] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};

__device__ void collide(float (&f)[19], float omega) {
    constexpr int ex[19] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
    constexpr int ey[19] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
    constexpr int ez[19] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
    float rho = 0.f, u = 0.f, v = 0.f, w = 0.f;
#pragma unroll
    for (int q = 0; q < 19; ++q) rho += f[q], u += ex[q] * f[q], v += ey[q] * f[q], w += ez[q] * f[q];
    float inv = 1.f / rho;
    u *= inv, v *= inv, w *= inv;
    float square = 1.5f * (u * u + v * v + w * w);
#pragma unroll
    for (int q = 0; q < 19; ++q) {
        float weight = q == 0 ? 1.f / 3 : q < 7 ? 1.f / 18 : 1.f / 36, e = 3.f * (ex[q] * u + ey[q] * v + ez[q] * w);
        f[q] += omega * (weight * rho * (1.f + e + 0.5f * e * e - square) - f[q]);
    }
}
__global__ void lbm_pull(const float *from, float *to, float omega, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z, cells = nx * ny * nz;
    float f[19];
#pragma unroll
    for (int q = 0; q < 19; q++) {
        int sx = (x - EX[q] + nx) % nx, sy = (y - EY[q] + ny) % ny, sz = (z - EZ[q] + nz) % nz;
        f[q] = from[q * cells + (sz * ny + sy) * nx + sx];
    }
    collide(f, omega);
#pragma unroll
    for (int q = 0; q < 19; q++) to[q * cells + (z * ny + y) * nx + x] = f[q];
}
template <bool POWERS>  // of two: wraps by masks, else by comparison, once an axis
__global__ void lbm_pull_wrapped(const float *__restrict__ from, float *__restrict__ to, float omega, int nx, int ny, int nz) {
    constexpr int ex[19] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
    constexpr int ey[19] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
    constexpr int ez[19] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z, cells = nx * ny * nz;
    auto wrap = [](int i, int n) { return POWERS ? i & (n - 1) : i < 0 ? i + n : i >= n ? i - n : i; };
    int xs[3] = {wrap(x - 1, nx), x, wrap(x + 1, nx)}, ys[3] = {wrap(y - 1, ny), y, wrap(y + 1, ny)}, zs[3] = {wrap(z - 1, nz), z, wrap(z + 1, nz)};
    float f[19];
#pragma unroll
    for (int q = 0; q < 19; q++) f[q] = from[q * cells + (zs[1 - ez[q]] * ny + ys[1 - ey[q]]) * nx + xs[1 - ex[q]]];
    collide(f, omega);
#pragma unroll
    for (int q = 0; q < 19; q++) to[q * cells + (z * ny + y) * nx + x] = f[q];
}

Study lattices("lbm_d3q19_remainders", "hpc", 128, "D3Q19 lattice Boltzmann step, pulled, 128 cells a side, periodic",
    "57 remainders by sizes known at run time only",
    {{"compared", "wrapped by comparison, once an axis", {"integer_arithmetic"}},
        {"masked", "wrapped by masks, once an axis", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        float *from = b.random<float>(19 * n * n * n, 0.04, 0.06), *to = b.output<float>(19 * n * n * n);
        int m = n;
        auto run = [&](auto kernel) { return launch(kernel, dim3(n / 128, n, n), 128, 0, from, to, 1.2f, m, m, m); };
        return {{"flawed", run(lbm_pull)}, {"compared", run(lbm_pull_wrapped<false>)}, {"masked", run(lbm_pull_wrapped<true>)}};
    });

// --- Coulomb potential on a plane of grid points ---

__global__ void coulomb(const float4 *atoms, int count, float *out, int width, float spacing) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float px = x * spacing, py = y * spacing, energy = 0.f;
    for (int i = 0; i < count; i++) {
        float dx = px - atoms[i].x, dy = py - atoms[i].y, dz = atoms[i].z;
        energy += atoms[i].w / sqrtf(dx * dx + dy * dy + dz * dz);
    }
    out[y * width + x] = energy;
}
__global__ void coulomb_rsqrt(const float4 *__restrict__ atoms, int count, float *__restrict__ out, int width, float spacing) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float px = x * spacing, py = y * spacing, energy = 0.f;
    for (int i = 0; i < count; i++) {
        float4 a = atoms[i];
        float dx = px - a.x, dy = py - a.y;
        energy += a.w * rsqrtf(dx * dx + dy * dy + a.z * a.z);
    }
    out[y * width + x] = energy;
}
__global__ void coulomb_four(const float4 *__restrict__ atoms, int count, float *__restrict__ out, int width, float spacing) {
    int x = blockIdx.x * blockDim.x * 4 + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, step = blockDim.x;
    float px = x * spacing, py = y * spacing, shift = step * spacing, e0 = 0.f, e1 = 0.f, e2 = 0.f, e3 = 0.f;
    for (int i = 0; i < count; i++) {
        float4 a = atoms[i];
        float dy = py - a.y, rest = dy * dy + a.z * a.z, dx = px - a.x, d1 = dx + shift, d2 = d1 + shift, d3 = d2 + shift;
        e0 += a.w * rsqrtf(dx * dx + rest), e1 += a.w * rsqrtf(d1 * d1 + rest);
        e2 += a.w * rsqrtf(d2 * d2 + rest), e3 += a.w * rsqrtf(d3 * d3 + rest);
    }
    float *to = out + y * width + x;
    to[0] = e0, to[step] = e1, to[2 * step] = e2, to[3 * step] = e3;
}

Study coulombs("coulomb_precise_division", "hpc", 1024, "Coulomb potential of 600 atoms on a plane of 1024 x 1024 points",
    "a precise root and a precise division for each atom and point",
    {{"rsqrt", "the reciprocal root", {"expensive_math"}},
        {"four_points", "reciprocal root, and four points of a row a thread share what does not depend on x", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        int count = 600, width = n;
        std::vector<float> atoms(count * 4);
        for (int i = 0; i < count; ++i) {
            auto r = [&](int k) { return pairs::hash(i * 4 + k) / 4294967296.f; };
            atoms[4 * i] = 50 * r(0), atoms[4 * i + 1] = 50 * r(1), atoms[4 * i + 2] = 1 + r(2), atoms[4 * i + 3] = r(3);
        }
        float *a = b.copy(atoms), *out = b.output<float>(n * n);
        return {{"flawed", launch(coulomb, dim3(n / 32, n / 4), dim3(32, 4), 0, (float4 *)a, count, out, width, 0.05f)},
            {"rsqrt", launch(coulomb_rsqrt, dim3(n / 32, n / 4), dim3(32, 4), 0, (float4 *)a, count, out, width, 0.05f)},
            {"four_points", launch(coulomb_four, dim3(n / 128, n / 4), dim3(32, 4), 0, (float4 *)a, count, out, width, 0.05f)}};
    });

// --- many tridiagonal systems of 32 equations, cyclic reduction ---

__global__ void reduce_parallel(const float *a, const float *d, const float *c, const float *r, float *x) {
    __shared__ float as[32], ds[32], cs[32], rs[32];
    int i = threadIdx.x, at = blockIdx.x * 32 + i;
    as[i] = i > 0 ? a[at] : 0.f, ds[i] = d[at], cs[i] = i < 31 ? c[at] : 0.f, rs[i] = r[at];
    __syncthreads();
    for (int s = 1; s < 32; s *= 2) {
        float k1 = 0.f, k2 = 0.f, an = 0.f, cn = 0.f, dn = ds[i], rn = rs[i];
        if (i - s >= 0) {
            k1 = as[i] / ds[i - s];
            an = -as[i - s] * k1, dn -= cs[i - s] * k1, rn -= rs[i - s] * k1;
        }
        if (i + s < 32) {
            k2 = cs[i] / ds[i + s];
            cn = -cs[i + s] * k2, dn -= as[i + s] * k2, rn -= rs[i + s] * k2;
        }
        __syncthreads();
        as[i] = an, ds[i] = dn, cs[i] = cn, rs[i] = rn;
        __syncthreads();
    }
    x[at] = rs[i] / ds[i];
}
__global__ void __launch_bounds__(256) reduce_shuffles(const float *__restrict__ a_, const float *__restrict__ d_, const float *__restrict__ c_, const float *__restrict__ r_, float *__restrict__ x) {
    int at = blockIdx.x * 256 + threadIdx.x, i = threadIdx.x % 32;
    float a = i > 0 ? a_[at] : 0.f, d = d_[at], c = i < 31 ? c_[at] : 0.f, r = r_[at];
#pragma unroll
    for (int s = 1; s < 32; s *= 2) {
        float inv = __fdividef(1.f, d);
        float am = __shfl_up_sync(~0u, a, s), cm = __shfl_up_sync(~0u, c, s), rm = __shfl_up_sync(~0u, r, s), im = __shfl_up_sync(~0u, inv, s);
        float ap = __shfl_down_sync(~0u, a, s), cp = __shfl_down_sync(~0u, c, s), rp = __shfl_down_sync(~0u, r, s), ip = __shfl_down_sync(~0u, inv, s);
        float k1 = i >= s ? a * im : 0.f, k2 = i + s < 32 ? c * ip : 0.f;
        d -= cm * k1 + ap * k2, r -= rm * k1 + rp * k2;
        a = -am * k1, c = -cp * k2;
    }
    x[at] = __fdividef(r, d);
}
__global__ void __launch_bounds__(256) reduce_packed(const float *__restrict__ a, const float *__restrict__ d, const float *__restrict__ c, const float *__restrict__ r, float *__restrict__ x) {
    __shared__ float4 rows[256];  // warp by warp: no barrier of the block is needed
    int i = threadIdx.x % 32, me = threadIdx.x, at = blockIdx.x * 256 + me;
    float4 v{i > 0 ? a[at] : 0.f, d[at], i < 31 ? c[at] : 0.f, r[at]};
    for (int s = 1; s < 32; s *= 2) {
        rows[me] = v;
        __syncwarp();
        float4 n{0.f, v.y, 0.f, v.w};
        if (i >= s) {
            float4 o = rows[me - s];
            float k = v.x / o.y;
            n.x = -o.x * k, n.y -= o.z * k, n.w -= o.w * k;
        }
        if (i + s < 32) {
            float4 o = rows[me + s];
            float k = v.z / o.y;
            n.z = -o.z * k, n.y -= o.x * k, n.w -= o.w * k;
        }
        v = n;
        __syncwarp();
    }
    x[at] = v.w / v.y;
}

Study cyclic("tridiagonal_pcr_tiny_blocks", "hpc", 1 << 17, "131072 tridiagonal systems of 32 equations by parallel cyclic reduction",
    "a block of one warp a system, four shared arrays, two barriers a step",
    {{"shuffles", "eight systems a block, shuffles, reciprocals", {"barriers", "low_occupancy", "expensive_math"}},
        {"packed", "eight systems a block, an equation as one float4 in shared memory, warps alone", {"barriers", "low_occupancy"}}},
    [](Buffers &b, long systems) -> Sides {
        long n = systems * 32;
        float *a = b.random<float>(n), *d = b.random<float>(n, 3, 4), *c = b.random<float>(n), *r = b.random<float>(n), *x = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(reduce_parallel, systems, 32, 0, a, d, c, r, x)},
            {"shuffles", launch(reduce_shuffles, systems / 8, 256, 0, a, d, c, r, x)},
            {"packed", launch(reduce_packed, systems / 8, 256, 0, a, d, c, r, x)}};
    });

// --- Cholesky factors of small matrices ---

template <bool UNROLL>
__global__ void __launch_bounds__(128) cholesky7(const float *in, float *out, int count) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count) return;
    float l[7][7];
    if (UNROLL) {
#pragma unroll
        for (int i = 0; i < 7; ++i)
#pragma unroll
            for (int j = 0; j <= i; ++j) l[i][j] = in[(i * 7 + j) * count + m];
#pragma unroll
        for (int j = 0; j < 7; ++j) {
#pragma unroll
            for (int k = 0; k < j; ++k) l[j][j] -= l[j][k] * l[j][k];
            l[j][j] = sqrtf(l[j][j]);
            float inv = 1.f / l[j][j];
#pragma unroll
            for (int i = j + 1; i < 7; ++i) {
#pragma unroll
                for (int k = 0; k < j; ++k) l[i][j] -= l[i][k] * l[j][k];
                l[i][j] *= inv;
            }
        }
#pragma unroll
        for (int i = 0; i < 7; ++i)
#pragma unroll
            for (int j = 0; j <= i; ++j) out[(i * 7 + j) * count + m] = l[i][j];
    } else {
#pragma unroll 1
        for (int i = 0; i < 7; ++i)
#pragma unroll 1
            for (int j = 0; j <= i; ++j) l[i][j] = in[(i * 7 + j) * count + m];
#pragma unroll 1
        for (int j = 0; j < 7; ++j) {
#pragma unroll 1
            for (int k = 0; k < j; ++k) l[j][j] -= l[j][k] * l[j][k];
            l[j][j] = sqrtf(l[j][j]);
            float inv = 1.f / l[j][j];
#pragma unroll 1
            for (int i = j + 1; i < 7; ++i) {
#pragma unroll 1
                for (int k = 0; k < j; ++k) l[i][j] -= l[i][k] * l[j][k];
                l[i][j] *= inv;
            }
        }
#pragma unroll 1
        for (int i = 0; i < 7; ++i)
#pragma unroll 1
            for (int j = 0; j <= i; ++j) out[(i * 7 + j) * count + m] = l[i][j];
    }
}
__global__ void __launch_bounds__(128) cholesky7_shared(const float *in, float *out, int count) {
    __shared__ float s[28][128];
    int m = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    auto at = [](int i, int j) { return i * (i + 1) / 2 + j; };
    for (int i = 0; i < 7; ++i)
        for (int j = 0; j <= i; ++j) s[at(i, j)][t] = in[(i * 7 + j) * count + m];
#pragma unroll 1
    for (int j = 0; j < 7; ++j) {
        float d = s[at(j, j)][t];
#pragma unroll 1
        for (int k = 0; k < j; ++k) d -= s[at(j, k)][t] * s[at(j, k)][t];
        d = sqrtf(d), s[at(j, j)][t] = d, d = 1.f / d;
#pragma unroll 1
        for (int i = j + 1; i < 7; ++i) {
            float v = s[at(i, j)][t];
#pragma unroll 1
            for (int k = 0; k < j; ++k) v -= s[at(i, k)][t] * s[at(j, k)][t];
            s[at(i, j)][t] = v * d;
        }
    }
    for (int i = 0; i < 7; ++i)
        for (int j = 0; j <= i; ++j) out[(i * 7 + j) * count + m] = s[at(i, j)][t];
}

Study choleskys("cholesky_7_local_array", "hpc", 1 << 19, "Cholesky factors of half a million 7 x 7 matrices, interleaved, a thread each",
    "loops that are not unrolled keep the matrix in local memory",
    {{"unrolled", "unrolled: the matrix in registers", {"local_memory"}},
        {"shared", "the matrix in shared memory, a column a thread", {"local_memory"}}},
    [](Buffers &b, long count) -> Sides {
        std::vector<float> host(49 * count, 0.f);
        for (int i = 0; i < 7; ++i)
            for (int j = 0; j <= i; ++j)
                for (long m = 0; m < count; ++m)
                    host[(i * 7 + j) * count + m] = (i == j ? 4.f : 0.f) + (unsigned(m * 31 + i * 7 + j) * 2654435761u >> 8) / 16777216.f;
        float *in = b.copy(host), *out = b.output<float>(49 * count, true);
        int n = count;
        return {{"flawed", launch(cholesky7<false>, count / 128, 128, 0, in, out, n)}, {"unrolled", launch(cholesky7<true>, count / 128, 128, 0, in, out, n)},
            {"shared", launch(cholesky7_shared, count / 128, 128, 0, in, out, n)}};
    });

// --- residuals of an unstructured mesh ---

__device__ float4 face_flux(float4 l, float4 r, float2 n) {
    float ul = (l.y * n.x + l.z * n.y) / l.x, ur = (r.y * n.x + r.z * n.y) / r.x, s = fmaxf(fabsf(ul), fabsf(ur));
    return {0.5f * (l.x * ul + r.x * ur - s * (r.x - l.x)), 0.5f * (l.y * ul + r.y * ur - s * (r.y - l.y)),
        0.5f * (l.z * ul + r.z * ur - s * (r.z - l.z)), 0.5f * (l.w * ul + r.w * ur - s * (r.w - l.w))};
}
__global__ void residual_scatter(const int2 *face, const float2 *normal, const float4 *u, float *res, int faces) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= faces) return;
    int2 c = face[f];
    float4 flux = face_flux(u[c.x], u[c.y], normal[f]);
    atomicAdd(&res[c.x * 4], flux.x), atomicAdd(&res[c.x * 4 + 1], flux.y);
    atomicAdd(&res[c.x * 4 + 2], flux.z), atomicAdd(&res[c.x * 4 + 3], flux.w);
    atomicAdd(&res[c.y * 4], -flux.x), atomicAdd(&res[c.y * 4 + 1], -flux.y);
    atomicAdd(&res[c.y * 4 + 2], -flux.z), atomicAdd(&res[c.y * 4 + 3], -flux.w);
}
__global__ void residual_gather(const int *cell_faces, const int2 *__restrict__ face, const float2 *__restrict__ normal, const float4 *__restrict__ u, float4 *res, int cells) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= cells) return;
    float4 sum{};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int f = cell_faces[k * cells + i];
        int2 c = face[f];
        float4 flux = face_flux(u[c.x], u[c.y], normal[f]);
        float sign = c.x == i ? 1.f : -1.f;
        sum.x += sign * flux.x, sum.y += sign * flux.y, sum.z += sign * flux.z, sum.w += sign * flux.w;
    }
    res[i] = sum;
}
__global__ void residual_vector(const int2 *__restrict__ face, const float2 *__restrict__ normal, const float4 *__restrict__ u, float4 *res, int faces) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= faces) return;
    int2 c = face[f];
    float4 flux = face_flux(u[c.x], u[c.y], normal[f]);
    atomicAdd(&res[c.x], flux);
    atomicAdd(&res[c.y], make_float4(-flux.x, -flux.y, -flux.z, -flux.w));
}

Study residuals("residual_face_atomics", "hpc", 1 << 20, "residuals of a million cells of four faces, fluxes added to both cells of a face",
    "eight atomics a face",
    {{"gather", "a thread a cell, each flux computed twice and stored once", {"global_atomics"}},
        {"vector", "two atomics of four floats a face", {"global_atomics"}}},
    [](Buffers &b, long cells) -> Sides {
        int side = 1024;  // a periodic square, its cells numbered along it
        std::vector<int> face(4 * cells), of(4 * cells);
        for (int y = 0; y < side; ++y)
            for (int x = 0; x < side; ++x) {
                int i = y * side + x, right = y * side + (x + 1) % side, up = (y + 1) % side * side + x;
                face[4 * i] = i, face[4 * i + 1] = right, face[4 * i + 2] = i, face[4 * i + 3] = up;
                of[i] = 2 * i, of[cells + i] = 2 * i + 1, of[2 * cells + right] = 2 * i, of[3 * cells + up] = 2 * i + 1;
            }
        int *f = b.copy(face), *c = b.copy(of), faces = 2 * cells, n = cells;
        float *normal = b.random<float>(2 * faces), *u = b.random<float>(4 * cells, 1, 2), *res = b.output<float>(4 * cells, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(residual_scatter, faces / 256, 256, 0, (int2 *)f, (float2 *)normal, (float4 *)u, res, faces)},
            {"gather", launch(residual_gather, cells / 256, 256, 0, c, (int2 *)f, (float2 *)normal, (float4 *)u, (float4 *)res, n)},
            {"vector", launch(residual_vector, faces / 256, 256, 0, (int2 *)f, (float2 *)normal, (float4 *)u, (float4 *)res, faces)}};
    });

// --- semi-Lagrangian transport ---

__global__ void transport(const float *q, const float *u, const float *v, float *out, int n, float dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, at = y * n + x;
    float px = x - dt * u[at] / 0.01, py = y - dt * v[at] / 0.01;
    px = fmin(fmax((double)px, 0.0), n - 1.001), py = fmin(fmax((double)py, 0.0), n - 1.001);
    int i = px, j = py;
    float a = px - i, b = py - j;
    out[at] = (1.0 - b) * ((1.0 - a) * q[j * n + i] + a * q[j * n + i + 1]) + b * ((1.0 - a) * q[j * n + n + i] + a * q[j * n + n + i + 1]);
}
template <bool LERP>
__global__ void transport_float(const float *__restrict__ q, const float *__restrict__ u, const float *__restrict__ v, float *__restrict__ out, int n, float dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, at = y * n + x;
    float px = LERP ? x - dt * 100.f * u[at] : x - dt * u[at] / 0.01f, py = LERP ? y - dt * 100.f * v[at] : y - dt * v[at] / 0.01f;
    px = fminf(fmaxf(px, 0.f), n - 1.001f), py = fminf(fmaxf(py, 0.f), n - 1.001f);
    int i = px, j = py;
    float a = px - i, b = py - j;
    const float *c = q + j * n + i;
    if (LERP) {
        float low = c[0] + a * (c[1] - c[0]), high = c[n] + a * (c[n + 1] - c[n]);
        out[at] = low + b * (high - low);
    } else out[at] = (1.f - b) * ((1.f - a) * c[0] + a * c[1]) + b * ((1.f - a) * c[n] + a * c[n + 1]);
}
Study transports("semi_lagrangian_double_literals", "hpc", 4096, "semi-Lagrangian transport of a float field of 4096 x 4096, bilinear",
    "literals without an f: divisions and interpolation in double precision",
    {{"float", "float literals", {"double_precision"}}, {"product", "float literals, a product for the division, fewer operations", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> field(n * n);
        for (long y = 0; y < n; ++y)  // smooth: the place is rounded differently
            for (long x = 0; x < n; ++x) field[y * n + x] = 0.001f * x + 0.0007f * y + (x * y % 7) * 1e-5f;
        float *q = b.copy(field), *u = b.random<float>(n * n), *v = b.random<float>(n * n), *out = b.output<float>(n * n);
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, dim3(n / 32, n / 8), dim3(32, 8), 0, q, u, v, out, int(n), 0.02f); };
        return {{"flawed", run(transport)}, {"float", run(transport_float<false>)}, {"product", run(transport_float<true>)}};
    });

}  // namespace
