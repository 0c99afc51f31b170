// Pieces of simulation codes: stencils, lattice Boltzmann, sparse products, solvers, n-body, molecules.
#include "../pairs/pair.cuh"

namespace {

// --- 7-point stencil ---

struct Grid {
    int nx, ny, nz;
    __host__ __device__ int at(int i, int j, int k) const { return (i * ny + j) * nz + k; }  // k is contiguous
};

__global__ void heat_step(const double *u, double *v, Grid g, double c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || j < 1 || k < 1 || i >= g.nx - 1 || j >= g.ny - 1 || k >= g.nz - 1) return;
    double m = u[g.at(i, j, k)];
    v[g.at(i, j, k)] = m + c * (u[g.at(i - 1, j, k)] + u[g.at(i + 1, j, k)] + u[g.at(i, j - 1, k)] +
                               u[g.at(i, j + 1, k)] + u[g.at(i, j, k - 1)] + u[g.at(i, j, k + 1)] - 6 * m);
}
__global__ void heat_step_swapped(const double *u, double *v, Grid g, double c) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int i = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || j < 1 || k < 1 || i >= g.nx - 1 || j >= g.ny - 1 || k >= g.nz - 1) return;
    double m = u[g.at(i, j, k)];
    v[g.at(i, j, k)] = m + c * (u[g.at(i - 1, j, k)] + u[g.at(i + 1, j, k)] + u[g.at(i, j - 1, k)] +
                               u[g.at(i, j + 1, k)] + u[g.at(i, j, k - 1)] + u[g.at(i, j, k + 1)] - 6 * m);
}
// Lanes along k; each thread goes along i and keeps the planes before and behind in registers.
__global__ void heat_step_march(const double *u, double *v, Grid g, double c, int depth) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j < 1 || k < 1 || j >= g.ny - 1 || k >= g.nz - 1) return;
    int first = max(1, int(blockIdx.z) * depth), last = min(g.nx - 1, (int(blockIdx.z) + 1) * depth);
    double before = u[g.at(first - 1, j, k)], m = u[g.at(first, j, k)];
    for (int i = first; i < last; ++i) {
        double behind = u[g.at(i + 1, j, k)];
        v[g.at(i, j, k)] = m + c * (before + behind + u[g.at(i, j - 1, k)] + u[g.at(i, j + 1, k)] +
                                   u[g.at(i, j, k - 1)] + u[g.at(i, j, k + 1)] - 6 * m);
        before = m, m = behind;
    }
}

Study stencil7("stencil_7_point_axes", "hpc", 256, "7-point heat equation step in FP64, 256 cells a side",
    "threadIdx.x runs along the slowest axis of the array",
    {{"swapped", "axes swapped: lanes along the contiguous axis", {"uncoalesced_access"}},
        {"marching", "lanes along the contiguous axis, each thread marches along the slowest with planes in registers",
            {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        double *u = b.random<double>(n * n * n), *v = b.output<double>(n * n * n, true);
        Grid g = {int(n), int(n), int(n)};
        return {{"flawed", launch(heat_step, dim3(n / 8, n / 8, n / 4), dim3(8, 8, 4), 0, u, v, g, 0.1)},
            {"swapped", launch(heat_step_swapped, dim3(n / 32, n / 8, n), dim3(32, 8, 1), 0, u, v, g, 0.1)},
            {"marching", launch(heat_step_march, dim3(n / 32, n / 8, 8), dim3(32, 8), 0, u, v, g, 0.1, n / 8)}};
    });

// --- 27-point stencil ---

__global__ void stencil27(const float *u, float *v, const float *w, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
    float sum = 0.f;
    for (int dz = -1; dz <= 1; ++dz)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                sum += w[((dz + 1) * 3 + dy + 1) * 3 + dx + 1] * u[((z + dz) * n + y + dy) * n + x + dx];
    v[(z * n + y) * n + x] = sum;
}
// A thread marches along z and adds each plane's nine values to the three outputs that need them.
__global__ void stencil27_march(
    const float *__restrict__ u, float *__restrict__ v, const float *__restrict__ weights, int n, int depth) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    float w[27];
#pragma unroll
    for (int i = 0; i < 27; ++i) w[i] = weights[i];
    int first = max(1, int(blockIdx.z) * depth), last = min(n - 1, (int(blockIdx.z) + 1) * depth);
    float lower = 0.f, middle = 0.f;
    for (int z = first - 1; z <= last; ++z) {
        float upper = 0.f;
#pragma unroll
        for (int i = 0; i < 9; ++i) {
            float value = u[(z * n + y + i / 3 - 1) * n + x + i % 3 - 1];
            lower += w[18 + i] * value, middle += w[9 + i] * value, upper += w[i] * value;
        }
        if (z - 1 >= first) v[((z - 1) * n + y) * n + x] = lower;
        lower = middle, middle = upper;
    }
}
__global__ void __launch_bounds__(256) stencil27_tile(const float *u, float *v, const float *w, int n) {
    __shared__ float tile[3][10][34], weights[27];
    int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, z = blockIdx.z + 1, tid = threadIdx.y * 32 + threadIdx.x;
    for (int i = tid; i < 1020; i += 256) {
        int xx = x0 + i % 34 - 1, yy = y0 + i / 34 % 10 - 1, zz = z + i / 340 - 1;
        tile[i / 340][i / 34 % 10][i % 34] =
            xx >= 0 && xx < n && yy >= 0 && yy < n ? u[(zz * n + yy) * n + xx] : 0.f;
    }
    if (tid < 27) weights[tid] = w[tid];
    __syncthreads();
    int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < 27; ++i)
        sum += weights[i] * tile[i / 9][threadIdx.y + i / 3 % 3][threadIdx.x + i % 3];
    v[(z * n + y) * n + x] = sum;
}

Study stencil27s("stencil_27_point", "hpc", 384, "27-point stencil of floats, 384 cells a side",
    "each output loads all its 27 neighbours and 27 weights",
    {{"marching", "a thread marches along z: nine loads an output, weights in registers", {"redundant_loads"}},
        {"tile", "three planes of a 32 x 8 tile and the weights in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *u = b.random<float>(n * n * n), *v = b.output<float>(n * n * n, true), *w = b.random<float>(27);
        dim3 block(32, 8);
        return {{"flawed", launch(stencil27, dim3(n / 32, n / 8, n), block, 0, u, v, w, n)},
            {"marching", launch(stencil27_march, dim3(n / 32, n / 8, 8), block, 0, u, v, w, n, n / 8)},
            {"tile", launch(stencil27_tile, dim3(n / 32, n / 8, n - 2), block, 0, u, v, w, n)}};
    });

// --- lattice Boltzmann, nine directions, an array of structures ---

__constant__ float lattice_weight[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

__device__ __forceinline__ void collide(float *f, float omega) {
    const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    float rho = 0, ux = 0, uy = 0;
#pragma unroll
    for (int q = 0; q < 9; q++) rho += f[q], ux += cx[q] * f[q], uy += cy[q] * f[q];
    ux /= rho, uy /= rho;
    float uu = 1.5f * (ux * ux + uy * uy);
#pragma unroll
    for (int q = 0; q < 9; q++) {
        float cu = 3.f * (cx[q] * ux + cy[q] * uy);
        f[q] += omega * (lattice_weight[q] * rho * (1.f + cu + 0.5f * cu * cu - uu) - f[q]);
    }
}

struct Cell {
    float f[9];
};

__global__ void lbm_collide(Cell *cells, float omega, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Cell c = cells[i];
    collide(c.f, omega);
    cells[i] = c;
}
__global__ void lbm_collide_soa(float *f, float omega, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float local[9];
#pragma unroll
    for (int q = 0; q < 9; q++) local[q] = f[size_t(q) * n + i];
    collide(local, omega);
#pragma unroll
    for (int q = 0; q < 9; q++) f[size_t(q) * n + i] = local[q];
}
__global__ void __launch_bounds__(256) lbm_collide_staged(float *cells, float omega) {
    __shared__ float tile[256 * 9];
    float *mine = cells + size_t(blockIdx.x) * 256 * 9;
#pragma unroll
    for (int q = 0; q < 9; q++) tile[threadIdx.x + 256 * q] = mine[threadIdx.x + 256 * q];
    __syncthreads();
    float local[9];
#pragma unroll
    for (int q = 0; q < 9; q++) local[q] = tile[threadIdx.x * 9 + q];  // 9 is odd: no bank conflicts
    collide(local, omega);
#pragma unroll
    for (int q = 0; q < 9; q++) tile[threadIdx.x * 9 + q] = local[q];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 9; q++) mine[threadIdx.x + 256 * q] = tile[threadIdx.x + 256 * q];
}
__global__ void to_structures(const float *soa, float *aos, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (int q = 0; q < 9; ++q) aos[size_t(i) * 9 + q] = soa[size_t(q) * n + i];
}
__global__ void to_arrays(const float *aos, float *soa, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (int q = 0; q < 9; ++q) soa[size_t(q) * n + i] = aos[size_t(i) * 9 + q];
}

Study lbm("lbm_d2q9_structures", "hpc", 1 << 23, "collision step of a D2Q9 lattice Boltzmann code, in place",
    "nine floats a cell in an array of structures: lanes are 36 bytes apart",
    {{"arrays", "a structure of arrays: an array for each direction", {"uncoalesced_access"}},
        {"staged", "structures kept, brought through shared memory in the order of memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *start = b.random<float>(n * 9, 0.5, 1.0), *cells = b.changed(start, n * 9), *soa = b.allocate<float>(n * 9);
        // The arrays are brought up to date by the check, outside of what is timed; their content there is of no matter.
        to_arrays<<<1056, 256>>>(start, soa, n);
        auto compare = [=] { to_structures<<<1056, 256>>>(soa, cells, n); };
        return {{"flawed", launch(lbm_collide, blocks(n, 256), 256, 0, (Cell *)cells, 1.2f, n)},
            {"arrays", launch(lbm_collide_soa, blocks(n, 256), 256, 0, soa, 1.2f, n), {}, 1, compare},
            {"staged", launch(lbm_collide_staged, n / 256, 256, 0, cells, 1.2f)}};
    });

// --- n-body forces with precise roots and divisions ---

__global__ void nbody(const float4 *pos, float4 *acc, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = pos[i];
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < n; j++) {
        float4 o = pos[j];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float r = sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        float f = o.w / (r * r * r);
        ax += f * dx, ay += f * dy, az += f * dz;
    }
    acc[i] = make_float4(ax, ay, az, 0);
}
__global__ void nbody_rsqrt(const float4 *pos, float4 *acc, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = pos[i];
    float ax = 0, ay = 0, az = 0;
#pragma unroll 4
    for (int j = 0; j < n; j++) {
        float4 o = pos[j];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        float f = o.w * r * r * r;
        ax += f * dx, ay += f * dy, az += f * dz;
    }
    acc[i] = make_float4(ax, ay, az, 0);
}
__global__ void nbody_fast_division(const float4 *pos, float4 *acc, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = pos[i];
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < n; j++) {
        float4 o = pos[j];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float r = sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        float f = __fdividef(o.w, r * r * r);
        ax += f * dx, ay += f * dy, az += f * dz;
    }
    acc[i] = make_float4(ax, ay, az, 0);
}

Study bodies("nbody_precise_root", "hpc", 33792, "forces of 8192 bodies on 33792",
    "an exact square root and an exact division for every pair",
    {{"rsqrt", "reciprocal root and products", {"expensive_math"}},
        {"fast_division", "fast division, the root kept exact", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *pos = b.random<float>(n * 4, 0, 1), *acc = b.output<float>(n * 4);
        b.tolerance = 1e-3;
        return {{"flawed", launch(nbody, n / 128, 128, 0, (float4 *)pos, (float4 *)acc, 8192)},
            {"rsqrt", launch(nbody_rsqrt, n / 128, 128, 0, (float4 *)pos, (float4 *)acc, 8192)},
            {"fast_division", launch(nbody_fast_division, n / 128, 128, 0, (float4 *)pos, (float4 *)acc, 8192)}};
    });

// --- Jacobi sweep with double literals ---

__global__ void jacobi(const float *u, const float *f, float *v, int n, float h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= n - 1 || y >= n - 1) return;
    int i = y * n + x;
    v[i] = 0.2 * u[i] + 0.8 * 0.25 * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - 1.0 * h * h * f[i]);
}
__global__ void jacobi_float(const float *u, const float *f, float *v, int n, float h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= n - 1 || y >= n - 1) return;
    int i = y * n + x;
    v[i] = 0.2f * u[i] + 0.2f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - h * h * f[i]);
}
__global__ void jacobi_column(const float *u, const float *f, float *v, int n, float h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, first = blockIdx.y * 16 + 1;
    if (x >= n - 1) return;
    float above = u[(first - 1) * n + x], here = u[first * n + x], hh = h * h;
#pragma unroll 4
    for (int y = first; y < min(first + 16, n - 1); ++y) {
        int i = y * n + x;
        float below = u[i + n];
        v[i] = 0.2f * here + 0.2f * (u[i - 1] + u[i + 1] + above + below - hh * f[i]);
        above = here, here = below;
    }
}

Study jacobis("jacobi_double_literals", "hpc", 8192, "weighted Jacobi sweep on 8192 x 8192 floats",
    "literals without f: conversions and FP64 arithmetic for float data",
    {{"floats", "float literals", {"double_precision"}},
        {"column", "float literals, 16 cells below each other a thread with a sliding window",
            {"double_precision", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *u = b.random<float>(n * n), *f = b.random<float>(n * n), *v = b.output<float>(n * n, true);
        dim3 grid(blocks(n, 32), blocks(n, 8)), block(32, 8);
        return {{"flawed", launch(jacobi, grid, block, 0, u, f, v, n, 0.01f)},
            {"floats", launch(jacobi_float, grid, block, 0, u, f, v, n, 0.01f)},
            {"column", launch(jacobi_column, dim3(blocks(n, 256), blocks(n, 16)), 256, 0, u, f, v, n, 0.01f)}};
    });

// --- dot product of a conjugate-gradient solver ---

__global__ void dot(const double *x, const double *y, double *result, int n) {
    __shared__ double cache[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cache[threadIdx.x] = i < n ? x[i] * y[i] : 0.0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(result, cache[0]);
}
__device__ double warp_sum_double(double v) {
    for (int offset = 16; offset; offset /= 2) v += __shfl_xor_sync(~0u, v, offset);
    return v;
}
__global__ void dot_grid_stride(const double *x, const double *y, double *result, int n) {
    __shared__ double cache[8];
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i] * y[i];
    sum = warp_sum_double(sum);
    if (threadIdx.x % 32 == 0) cache[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += cache[w];
        atomicAdd(result, sum);
    }
}
__global__ void __launch_bounds__(256) dot_eight(const double2 *x, const double2 *y, double *result) {
    __shared__ double cache[8];
    double sum = 0.0;
    size_t base = size_t(blockIdx.x) * 1024 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        double2 a = x[base + 256 * k], b = y[base + 256 * k];
        sum += a.x * b.x + a.y * b.y;
    }
    sum = warp_sum_double(sum);
    if (threadIdx.x % 32 == 0) cache[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += cache[w];
        atomicAdd(result, sum);
    }
}

Study dots("cg_dot_small_blocks", "hpc", 1 << 24, "dot product of two FP64 vectors",
    "one element a thread, blocks of 64: most of the time goes into starting blocks, halving with barriers and an atomic",
    {{"grid_stride", "eight blocks a multiprocessor in a grid-stride loop, shuffles", {"barriers", "global_atomics"}},
        {"eight", "eight elements a thread in 16-byte loads, shuffles, blocks of 256",
            {"barriers", "global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        double *x = b.random<double>(n, 0, 1), *y = b.random<double>(n, 0, 1), *result = b.output<double>(1, true);
        return {{"flawed", launch(dot, n / 64, 64, 0, x, y, result, n)},
            {"grid_stride", launch(dot_grid_stride, 132 * 8, 256, 0, x, y, result, n)},
            {"eight", launch(dot_eight, n / 2048, 256, 0, (double2 *)x, (double2 *)y, result)}};
    });

// --- a radix-2 stage of an FFT, twiddles in double ---

__global__ void fft_stage(float2 *data, int half, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int k = t & (half - 1), i = ((t - k) << 1) + k;
    double angle = -M_PI * k / half;
    float wr = cos(angle), wi = sin(angle);
    float2 a = data[i], b = data[i + half];
    float2 w = {b.x * wr - b.y * wi, b.x * wi + b.y * wr};
    data[i] = {a.x + w.x, a.y + w.y};
    data[i + half] = {a.x - w.x, a.y - w.y};
}
__global__ void fft_stage_sincospif(float2 *data, int half, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int k = t & (half - 1), i = ((t - k) << 1) + k;
    float wr, wi;
    sincospif(-float(k) / half, &wi, &wr);
    float2 a = data[i], b = data[i + half];
    float2 w = {b.x * wr - b.y * wi, b.x * wi + b.y * wr};
    data[i] = {a.x + w.x, a.y + w.y};
    data[i + half] = {a.x - w.x, a.y - w.y};
}
__global__ void fft_stage_table(float2 *data, const float2 *__restrict__ twiddles, int half, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int k = t & (half - 1), i = ((t - k) << 1) + k;
    float2 tw = twiddles[k];
    float2 a = data[i], b = data[i + half];
    float2 w = {b.x * tw.x - b.y * tw.y, b.x * tw.y + b.y * tw.x};
    data[i] = {a.x + w.x, a.y + w.y};
    data[i + half] = {a.x - w.x, a.y - w.y};
}

Study fft("fft_stage_double_twiddles", "hpc", 1 << 25, "one radix-2 stage of an FFT of floats, in place",
    "each butterfly computes its twiddle by double-precision sine and cosine",
    {{"sincospif", "single-precision sincospif", {"double_precision", "expensive_math"}},
        {"table", "twiddles from a table of 4096 values", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        int half = 4096;
        float *data = b.changed(b.random<float>(2 * n), 2 * n);
        std::vector<float> table(2 * half);
        for (int k = 0; k < half; ++k) table[2 * k] = cos(-M_PI * k / half), table[2 * k + 1] = sin(-M_PI * k / half);
        float *twiddles = b.copy(table);
        return {{"flawed", launch(fft_stage, blocks(n / 2, 256), 256, 0, (float2 *)data, half, n)},
            {"sincospif", launch(fft_stage_sincospif, blocks(n / 2, 256), 256, 0, (float2 *)data, half, n)},
            {"table", launch(fft_stage_table, blocks(n / 2, 256), 256, 0, (float2 *)data, (float2 *)twiddles, half, n)}};
    });

// --- batches of tridiagonal systems ---

__global__ void thomas(const float *a, const float *b, const float *c, const float *d, float *x, float *work, int n, int systems) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    size_t o = (size_t)s * n;
    float cp = c[o] / b[o], dp = d[o] / b[o];
    work[o] = cp;
    x[o] = dp;
    for (int i = 1; i < n; i++) {
        float m = 1.0f / (b[o + i] - a[o + i] * cp);
        cp = c[o + i] * m;
        dp = (d[o + i] - a[o + i] * dp) * m;
        work[o + i] = cp;
        x[o + i] = dp;
    }
    for (int i = n - 2; i >= 0; i--) x[o + i] = dp = x[o + i] - work[o + i] * dp;
}
__global__ void thomas_interleaved(
    const float *a, const float *b, const float *c, const float *d, float *x, float *work, int n, int systems) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    float cp = c[s] / b[s], dp = d[s] / b[s];
    work[s] = cp, x[s] = dp;
    for (int i = 1; i < n; i++) {
        int at = i * systems + s;
        float m = 1.0f / (b[at] - a[at] * cp);
        cp = c[at] * m;
        dp = (d[at] - a[at] * dp) * m;
        work[at] = cp, x[at] = dp;
    }
    for (int i = n - 2; i >= 0; i--) x[i * systems + s] = dp = x[i * systems + s] - work[i * systems + s] * dp;
}
// Parallel cyclic reduction, a block a system, an equation a thread.
template <int N>
__global__ void __launch_bounds__(N)
    cyclic_reduction(const float *a, const float *b, const float *c, const float *d, float *x) {
    __shared__ float sa[N], sb[N], sc[N], sd[N];
    int i = threadIdx.x;
    size_t o = size_t(blockIdx.x) * N + i;
    float ai = i ? a[o] : 0.f, bi = b[o], ci = i < N - 1 ? c[o] : 0.f, di = d[o];
#pragma unroll
    for (int step = 1; step < N; step *= 2) {
        sa[i] = ai, sb[i] = bi, sc[i] = ci, sd[i] = di;
        __syncthreads();
        float na = 0.f, nc = 0.f;
        if (i >= step) {
            float k = ai / sb[i - step];
            bi -= k * sc[i - step], di -= k * sd[i - step], na = -k * sa[i - step];
        }
        if (i + step < N) {
            float k = ci / sb[i + step];
            bi -= k * sa[i + step], di -= k * sd[i + step], nc = -k * sc[i + step];
        }
        ai = na, ci = nc;
        __syncthreads();
    }
    x[o] = di / bi;
}
__global__ void transpose_any(const float *from, float *to, int rows, int columns) {  // to[column][row]
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size_t(rows) * columns; i += size_t(gridDim.x) * blockDim.x)
        to[i % columns * rows + i / columns] = from[i];
}

Study tridiagonal("tridiagonal_thomas", "hpc", 131072, "131072 tridiagonal systems of 128 equations",
    "a thread a system over contiguous systems: lanes are 512 bytes apart",
    {{"interleaved", "systems stored interleaved: equation i of all systems lies together", {"uncoalesced_access"}},
        {"cyclic_reduction", "a block a system: parallel cyclic reduction in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long systems) -> Sides {
        int n = 128;
        long m = systems * n;
        float *l = b.random<float>(m, -0.5, 0.5), *diag = b.random<float>(m, 2, 3), *u = b.random<float>(m, -0.5, 0.5),
              *rhs = b.random<float>(m), *x = b.output<float>(m), *work = b.allocate<float>(m);
        float *t[5];
        for (auto &p : t) p = b.allocate<float>(m);
        const float *from[4] = {l, diag, u, rhs};
        for (int k = 0; k < 4; ++k) transpose_any<<<1056, 256>>>(from[k], t[k], systems, n);
        float *tx = t[4];
        auto back = [=] { transpose_any<<<1056, 256>>>(tx, x, n, systems); };
        return {{"flawed", launch(thomas, blocks(systems, 128), 128, 0, l, diag, u, rhs, x, work, n, systems)},
            {"interleaved", launch(thomas_interleaved, blocks(systems, 128), 128, 0, t[0], t[1], t[2], t[3], tx, work, n, systems), {}, 1, back},
            {"cyclic_reduction", launch(cyclic_reduction<128>, systems, 128, 0, l, diag, u, rhs, x)}};
    });

// --- option paths by Monte Carlo ---

__device__ unsigned next_random(unsigned &s) {
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    return s;
}
__device__ float uniform(unsigned &s) { return (next_random(s) >> 8) * (1.f / 16777216) + 1e-7f; }

__global__ void asian_option(float *payoff, int paths, int steps, float drift, float vol) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= paths) return;
    unsigned state = pairs::hash(p) | 1;
    float price = 100.f, sum = 0.f;
    for (int t = 0; t < steps; t++) {
        float u1 = uniform(state), u2 = uniform(state);
        float z = sqrtf(-2.0f * logf(u1)) * cosf(6.2831853f * u2);
        price *= expf(drift + vol * z);
        sum += price;
    }
    payoff[p] = fmaxf(sum / steps - 100.f, 0.f);
}
__global__ void asian_option_fast(float *payoff, int paths, int steps, float drift, float vol) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= paths) return;
    unsigned state = pairs::hash(p) | 1;
    float price = 100.f, sum = 0.f;
    for (int t = 0; t < steps; t++) {
        float u1 = uniform(state), u2 = uniform(state);
        float z = sqrtf(-2.0f * __logf(u1)) * __cosf(6.2831853f * u2);
        price *= __expf(drift + vol * z);
        sum += price;
    }
    payoff[p] = fmaxf(sum / steps - 100.f, 0.f);
}
// Constants folded into base-2 logarithm and exponential, cosine in half turns.
__global__ void asian_option_folded(float *payoff, int paths, int steps, float drift2, float vol2) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= paths) return;
    unsigned state = pairs::hash(p) | 1;
    float price = 100.f, sum = 0.f;
    for (int t = 0; t < steps; t++) {
        float u1 = uniform(state), u2 = uniform(state);
        float z = sqrtf(-1.3862944f * log2f(u1)) * cospif(2.f * u2);
        price *= exp2f(drift2 + vol2 * z);
        sum += price;
    }
    payoff[p] = fmaxf(sum / steps - 100.f, 0.f);
}

Study asian("asian_option_precise", "hpc", 1 << 20, "Asian option by Monte Carlo, 64 steps a path, own generator",
    "logarithm, root, cosine and exponential in their precise versions for every step",
    {{"intrinsics", "fast logarithm, cosine and exponential", {"expensive_math"}},
        {"base_2", "base-2 logarithm and exponential and cospif, constants folded in", {"expensive_math"}}},
    [](Buffers &b, long paths) -> Sides {
        float *payoff = b.output<float>(paths);
        b.tolerance = 1e-2;
        float log2e = 1.44269504f;
        return {{"flawed", launch(asian_option, blocks(paths, 256), 256, 0, payoff, paths, 64, 1e-4f, 0.02f)},
            {"intrinsics", launch(asian_option_fast, blocks(paths, 256), 256, 0, payoff, paths, 64, 1e-4f, 0.02f)},
            {"base_2", launch(asian_option_folded, blocks(paths, 256), 256, 0, payoff, paths, 64, 1e-4f * log2e, 0.02f * log2e)}};
    });

// --- Lennard-Jones forces over neighbour lists ---

enum class Power { Pow, FastPow, Products };

template <Power power>
__global__ void lennard_jones(const float4 *__restrict__ pos, const int *__restrict__ neighbours, float4 *force, int n, int per, float sigma) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 me = pos[i];
    float fx = 0, fy = 0, fz = 0, energy = 0;
    for (int k = 0; k < per; k++) {
        float4 o = pos[neighbours[k * n + i]];
        float dx = me.x - o.x, dy = me.y - o.y, dz = me.z - o.z;
        float r2 = dx * dx + dy * dy + dz * dz + 0.5f, s6, s12;
        if (power == Power::Products) {
            float q = __fdividef(sigma * sigma, r2);
            s6 = q * q * q, s12 = s6 * s6;
        } else {
            float s = sigma / sqrtf(r2);
            s6 = power == Power::FastPow ? __powf(s, 6.f) : powf(s, 6.f);
            s12 = power == Power::FastPow ? __powf(s, 12.f) : powf(s, 12.f);
        }
        float f = power == Power::Products ? __fdividef(24.f * (2.f * s12 - s6), r2) : 24.f * (2.f * s12 - s6) / r2;
        fx += f * dx, fy += f * dy, fz += f * dz;
        energy += 4.f * (s12 - s6);
    }
    force[i] = {fx, fy, fz, energy};
}

Study lj("lennard_jones_pow", "hpc", 1 << 18, "Lennard-Jones forces over 48 listed neighbours of 262144 atoms",
    "sixth and twelfth power by powf",
    {{"fast_powf", "the fast power function", {"expensive_math"}},
        {"products", "powers by products of the squared ratio, no root, fast division", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        int per = 48;
        float *pos = b.random<float>(n * 4, 0, 2), *force = b.output<float>(n * 4);
        std::vector<int> list(n * per);
        for (long k = 0; k < per; ++k)
            for (long i = 0; i < n; ++i) list[k * n + i] = (i + long(pairs::hash(k * n + i) % 4096) - 2048 + n) % n;
        int *neighbours = b.copy(list);
        b.tolerance = 1e-3;
        auto side = [&](auto kernel) { return launch(kernel, blocks(n, 128), 128, 0, (float4 *)pos, neighbours, (float4 *)force, n, per, 0.9f); };
        return {{"flawed", side(lennard_jones<Power::Pow>)}, {"fast_powf", side(lennard_jones<Power::FastPow>)},
            {"products", side(lennard_jones<Power::Products>)}};
    });

// --- an equation of state in FP64 ---

__global__ void stiffened_gas(const double *rho, double *p, double *cs, double *e, double K, double gamma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double r = rho[i];
    p[i] = K * pow(r, gamma);
    cs[i] = sqrt(K * gamma * pow(r, gamma - 1.0));
    e[i] = K * pow(r, gamma - 1.0) / (gamma - 1.0) + 0.5 * K * pow(r, gamma + 1.0);
}
__global__ void stiffened_gas_one_pow(const double *rho, double *p, double *cs, double *e, double K, double gamma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double r = rho[i], below = pow(r, gamma - 1.0), at = below * r;
    p[i] = K * at;
    cs[i] = sqrt(K * gamma * below);
    e[i] = K * below / (gamma - 1.0) + 0.5 * K * at * r;
}
__global__ void stiffened_gas_logarithm(const double *rho, double *p, double *cs, double *e, double K, double gamma, double inverse, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double r = rho[i], below = exp((gamma - 1.0) * log(r)), at = below * r;
    p[i] = K * at;
    cs[i] = sqrt(K * gamma * below);
    e[i] = K * below * inverse + 0.5 * K * at * r;
}

Study gas("eos_powers", "hpc", 1 << 23, "pressure, speed of sound and energy of a gas in FP64, which the code needs",
    "three powers of one density that differ only by whole exponents, each by pow",
    {{"one_pow", "one pow, the others by a product", {"expensive_math"}},
        {"log_exp", "one logarithm and one exponential, division hoisted", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        double *rho = b.random<double>(n, 0.1, 4), *p = b.output<double>(n), *cs = b.output<double>(n), *e = b.output<double>(n);
        return {{"flawed", launch(stiffened_gas, blocks(n, 256), 256, 0, rho, p, cs, e, 0.7, 1.4, n)},
            {"one_pow", launch(stiffened_gas_one_pow, blocks(n, 256), 256, 0, rho, p, cs, e, 0.7, 1.4, n)},
            {"log_exp", launch(stiffened_gas_logarithm, blocks(n, 256), 256, 0, rho, p, cs, e, 0.7, 1.4, 1 / 0.4, n)}};
    });

}  // namespace
