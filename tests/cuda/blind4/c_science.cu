// Simulation, linear algebra and finance: grids, particles, batched small matrices, Monte Carlo.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- electric field of a periodic box from its magnetic field ---

__global__ void yee(const float *h, float *e, const float *before, float c, int nx, int ny, int nz) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, n = nx * ny * nz;
    if (at >= n) return;
    int x = at % nx, y = at / nx % ny, z = at / (nx * ny);
    int left = (z * ny + y) * nx + (x + nx - 1) % nx, front = (z * ny + (y + ny - 1) % ny) * nx + x, below = ((z + nz - 1) % nz * ny + y) * nx + x;
    const float *hx = h, *hy = h + n, *hz = h + 2 * n;
    e[at] = before[at] + c * (hz[at] - hz[front] - hy[at] + hy[below]);
    e[n + at] = before[n + at] + c * (hx[at] - hx[below] - hz[at] + hz[left]);
    e[2 * n + at] = before[2 * n + at] + c * (hy[at] - hy[left] - hx[at] + hx[front]);
}
__global__ void yee_grid(const float *__restrict__ h, float *__restrict__ e, const float *__restrict__ before, float c, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z, n = nx * ny * nz, at = (z * ny + y) * nx + x;
    int left = x ? at - 1 : at + nx - 1, front = y ? at - nx : at + (ny - 1) * nx, below = z ? at - nx * ny : at + (nz - 1) * nx * ny;
    const float *hx = h, *hy = h + n, *hz = h + 2 * n;
    e[at] = before[at] + c * (hz[at] - hz[front] - hy[at] + hy[below]);
    e[n + at] = before[n + at] + c * (hx[at] - hx[below] - hz[at] + hz[left]);
    e[2 * n + at] = before[2 * n + at] + c * (hy[at] - hy[left] - hx[at] + hx[front]);
}
__global__ void __launch_bounds__(256) yee_four(const float4 *__restrict__ h, float4 *__restrict__ e, const float4 *__restrict__ before, float c, int nx, int ny, int nz) {
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, z = blockIdx.y, wide = nx / 4, n = wide * ny * nz, at = (z * ny + y) * wide + x;
    int front = y ? at - wide : at + (ny - 1) * wide, below = z ? at - wide * ny : at + (nz - 1) * wide * ny, left = x ? at - 1 : at + wide - 1;
    float4 hx = h[at], hy = h[n + at], hz = h[2 * n + at], fx = h[front], fz = h[2 * n + front], bx = h[below], by = h[n + below];
    float ly = reinterpret_cast<const float *>(h)[4 * (n + left) + 3], lz = reinterpret_cast<const float *>(h)[4 * (2 * n + left) + 3];
    float4 a = before[at], b = before[n + at], d = before[2 * n + at];
    e[at] = {a.x + c * (hz.x - fz.x - hy.x + by.x), a.y + c * (hz.y - fz.y - hy.y + by.y), a.z + c * (hz.z - fz.z - hy.z + by.z), a.w + c * (hz.w - fz.w - hy.w + by.w)};
    e[n + at] = {b.x + c * (hx.x - bx.x - hz.x + lz), b.y + c * (hx.y - bx.y - hz.y + hz.x), b.z + c * (hx.z - bx.z - hz.z + hz.y), b.w + c * (hx.w - bx.w - hz.w + hz.z)};
    e[2 * n + at] = {d.x + c * (hy.x - ly - hx.x + fx.x), d.y + c * (hy.y - hy.x - hx.y + fx.y), d.z + c * (hy.z - hy.y - hx.z + fx.z), d.w + c * (hy.w - hy.z - hx.w + fx.w)};
}

Study yees("yee_box_wrap_modulo", "hpc", 192, "electric field of a periodic box of 192 cells a side from its magnetic field",
    "six divisions by sizes known at run time a cell: to take the index apart and to wrap the neighbours",
    {{"grid", "coordinates from the grid, neighbours wrapped by selection", {"integer_arithmetic"}}, {"four", "the same, four cells a thread", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *h = b.random<float>(3 * n * n * n), *before = b.random<float>(3 * n * n * n), *e = b.output<float>(3 * n * n * n);
        int s = n;
        return {{"flawed", launch(yee, blocks(n * n * n, 256), 256, 0, h, e, before, 0.5f, s, s, s)}, {"grid", launch(yee_grid, dim3(n / 64, n / 4, n), dim3(64, 4), 0, h, e, before, 0.5f, s, s, s)},
            {"four", launch(yee_four, dim3(n / 4, n), dim3(48, 4), 0, (float4 *)h, (float4 *)e, (float4 *)before, 0.5f, s, s, s)}};
    });

// --- shallow water ---

struct Water {
    float h, u, v, speed;
};
__device__ Water state(float h, float hu, float hv) { return {h, hu / h, hv / h, sqrtf(9.81f * h)}; }
__device__ Water state_fast(float h, float hu, float hv) {
    float inverse = __fdividef(1.f, h);
    return {h, hu * inverse, hv * inverse, 9.81f * h * rsqrtf(9.81f * h)};
}
// Flux of height and both momenta across a face, whose normal is along u.
__device__ void face(Water a, Water b, float *f) {
    float most = fmaxf(fabsf(a.u) + a.speed, fabsf(b.u) + b.speed), qa = a.h * a.u, qb = b.h * b.u;
    f[0] = 0.5f * (qa + qb - most * (b.h - a.h));
    f[1] = 0.5f * (qa * a.u + qb * b.u + 4.905f * (a.h * a.h + b.h * b.h) - most * (qb - qa));
    f[2] = 0.5f * (qa * a.v + qb * b.v - most * (b.h * b.v - a.h * a.v));
}
__device__ Water turned(Water a) { return {a.h, a.v, a.u, a.speed}; }
__device__ void balance(Water c, Water w, Water e, Water s, Water n, float dt, float *next) {
    float west[3], east[3], south[3], north[3];
    face(w, c, west), face(c, e, east), face(turned(s), turned(c), south), face(turned(c), turned(n), north);
    next[0] = c.h - dt * (east[0] - west[0] + north[0] - south[0]);
    next[1] = c.h * c.u - dt * (east[1] - west[1] + north[2] - south[2]);
    next[2] = c.h * c.v - dt * (east[2] - west[2] + north[1] - south[1]);
}
__global__ void water_faces(const float *h, const float *hu, const float *hv, float *out, float dt, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, at = y * n + x;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) {
        if (x < n && y < n) out[at] = h[at], out[n * n + at] = hu[at], out[2 * n * n + at] = hv[at];
        return;
    }
    float f[4][3];
    auto cell = [&](int i) { return state(h[i], hu[i], hv[i]); };
    face(cell(at - 1), cell(at), f[0]);
    face(cell(at), cell(at + 1), f[1]);
    face(turned(cell(at - n)), turned(cell(at)), f[2]);
    face(turned(cell(at)), turned(cell(at + n)), f[3]);
    out[at] = h[at] - dt * (f[1][0] - f[0][0] + f[3][0] - f[2][0]);
    out[n * n + at] = hu[at] - dt * (f[1][1] - f[0][1] + f[3][2] - f[2][2]);
    out[2 * n * n + at] = hv[at] - dt * (f[1][2] - f[0][2] + f[3][1] - f[2][1]);
}
__global__ void water_once(const float *__restrict__ h, const float *__restrict__ hu, const float *__restrict__ hv, float *__restrict__ out, float dt, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, at = y * n + x;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) {
        if (x < n && y < n) out[at] = h[at], out[n * n + at] = hu[at], out[2 * n * n + at] = hv[at];
        return;
    }
    auto cell = [&](int i) { return state_fast(h[i], hu[i], hv[i]); };
    float next[3];
    balance(cell(at), cell(at - 1), cell(at + 1), cell(at - n), cell(at + n), dt, next);
    out[at] = next[0], out[n * n + at] = next[1], out[2 * n * n + at] = next[2];
}
__global__ void __launch_bounds__(256) water_tile(const float *__restrict__ h, const float *__restrict__ hu, const float *__restrict__ hv, float *__restrict__ out, float dt, int n) {
    __shared__ Water tile[10][34];
    int t = threadIdx.y * 32 + threadIdx.x, x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, at = y * n + x;
    for (int i = t; i < 340; i += 256) {
        int tx = min(max(int(blockIdx.x * 32 + i % 34) - 1, 0), n - 1), ty = min(max(int(blockIdx.y * 8 + i / 34) - 1, 0), n - 1);
        tile[i / 34][i % 34] = state_fast(h[ty * n + tx], hu[ty * n + tx], hv[ty * n + tx]);
    }
    __syncthreads();
    float next[3];
    const Water *c = &tile[threadIdx.y + 1][threadIdx.x + 1];
    balance(c[0], c[-1], c[1], c[-34], c[34], dt, next);
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) next[0] = h[at], next[1] = hu[at], next[2] = hv[at];
    out[at] = next[0], out[n * n + at] = next[1], out[2 * n * n + at] = next[2];
}

Study waters("shallow_water_precise_states", "hpc", 2048, "a step of shallow water on 2048 x 2048 cells, local Lax-Friedrichs fluxes",
    "velocities and wave speeds of five cells with two precise divisions and a root each",
    {{"once", "one fast reciprocal and root a cell", {"expensive_math"}}, {"tile", "the same, each cell once for the block, kept in shared memory", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *h = b.random<float>(n * n, 1, 2), *hu = b.random<float>(n * n), *hv = b.random<float>(n * n), *out = b.output<float>(3 * n * n);
        int s = n;
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, dim3(n / 32, n / 8), dim3(32, 8), 0, h, hu, hv, out, 0.01f, s); };
        return {{"flawed", run(water_faces)}, {"once", run(water_once)}, {"tile", run(water_tile)}};
    });

// --- red half of a red-black sweep ---

__global__ void red_sweep(float *u, const float *f, int nx, int ny, float omega) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
    if ((x + y) % 2 == 0) {
        int i = y * nx + x;
        u[i] += omega * 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - 4.f * u[i] - f[i]);
    }
}
__global__ void red_sweep_cells(float *u, const float *__restrict__ f, int nx, int ny, float omega) {
    int y = blockIdx.y * blockDim.y + threadIdx.y, x = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + y % 2;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
    int i = y * nx + x;
    u[i] += omega * 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - 4.f * u[i] - f[i]);
}
__global__ void __launch_bounds__(256) red_sweep_rows(float *u, const float *__restrict__ f, int nx, int ny, float omega) {
    int p = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * 8;  // a pair of cells in eight rows
    const float2 *pairs = reinterpret_cast<const float2 *>(u), *right = reinterpret_cast<const float2 *>(f);
    int wide = nx / 2;
    float2 below = first ? pairs[(first - 1) * wide + p] : float2{}, here = pairs[first * wide + p];
    for (int y = first; y < first + 8; ++y) {
        float2 above = y + 1 < ny ? pairs[(y + 1) * wide + p] : float2{}, g = right[y * wide + p];
        bool odd = y % 2;
        int x = 2 * p + odd, i = y * nx + x;
        if (x >= 1 && y >= 1 && x < nx - 1 && y < ny - 1) {
            float side = u[odd ? i + 1 : i - 1], other = odd ? here.x : here.y, mine = odd ? here.y : here.x;
            float sum = side + other + (odd ? below.y + above.y : below.x + above.x);
            u[i] = mine + omega * 0.25f * (sum - 4.f * mine - (odd ? g.y : g.x));
        }
        below = here, here = above;
    }
}

Study red_black("red_black_half_idle", "hpc", 8192, "the red half of a red-black sweep over 8192 x 4096 cells, in place",
    "a thread for each cell, and every second one does nothing",
    {{"cells", "a thread for each red cell", {"idle_threads"}}, {"rows", "a thread for a pair of cells in eight rows, which it keeps as it goes down", {"idle_threads", "redundant_loads"}}},
    [](Buffers &b, long nx) -> Sides {
        int n = nx, ny = nx / 2;
        float *before = b.random<float>(nx * ny), *f = b.random<float>(nx * ny), *u = b.changed(before, nx * ny);
        return {{"flawed", launch(red_sweep, dim3(nx / 32, ny / 8), dim3(32, 8), 0, u, f, n, ny, 1.5f)}, {"cells", launch(red_sweep_cells, dim3(nx / 64, ny / 8), dim3(32, 8), 0, u, f, n, ny, 1.5f)},
            {"rows", launch(red_sweep_rows, dim3(nx / 512, ny / 8), 256, 0, u, f, n, ny, 1.5f)}};
    });

// --- sparse rows of very different lengths ---

__global__ void power_rows(const int *ptr, const int *column, const float *value, const float *x, float *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.f;
    for (int i = ptr[row] + lane; i < ptr[row + 1]; i += 32) sum += value[i] * x[column[i]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
__global__ void __launch_bounds__(256) power_rows_pieces(const int2 *__restrict__ piece, const int *__restrict__ rows_of, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *y, int pieces) {
    int p = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (p >= pieces) return;
    int2 range = piece[p];
    float sum = 0.f;
#pragma unroll 4
    for (int i = range.x + lane; i < range.y; i += 32) sum += value[i] * x[column[i]];
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(&y[rows_of[p]], sum);
}
__global__ void __launch_bounds__(256) power_rows_sorted(const int *__restrict__ order, const int *__restrict__ ptr, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y, int rows, int whole) {
    __shared__ float part[8];
    int block = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.f;
    if (block < whole) {  // the longest rows come first, a block each
        int row = order[block];
#pragma unroll 4
        for (int i = ptr[row] + threadIdx.x; i < ptr[row + 1]; i += 256) sum += value[i] * x[column[i]];
        sum = warp_sum(sum);
        if (lane == 0) part[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < 8; ++w) sum += part[w];
            y[row] = sum;
        }
        return;
    }
    int at = whole + (block - whole) * 8 + warp;
    if (at >= rows) return;
    int row = order[at];
#pragma unroll 4
    for (int i = ptr[row] + lane; i < ptr[row + 1]; i += 32) sum += value[i] * x[column[i]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}

Study power_law("spmv_power_law_warp_per_row", "hpc", 1 << 17, "sparse matrix of 131072 rows of 8 to 24000 entries, times a vector",
    "a warp a row, and the longest rows are 600 times the mean",
    {{"pieces", "rows cut into pieces of at most 512 entries, summed by atomics", {"workload_imbalance"}}, {"sorted", "rows by falling length, a block for each long one", {"workload_imbalance"}}},
    [](Buffers &b, long rows) -> Sides {
        std::vector<int> ptr(rows + 1), column, order(rows), rows_of;
        std::vector<int2> piece;
        for (long r = 0; r < rows; ++r) {
            double u = ((pairs::hash(r) >> 8) + 1) / 16777217.0;
            int length = int(std::min(24000.0, 8.0 / std::pow(u, 0.75)));
            for (int k = 0; k < length; ++k) column.push_back(pairs::hash(column.size() + 5) % rows);
            ptr[r + 1] = int(column.size()), order[r] = int(r);
            for (int first = ptr[r]; first < ptr[r + 1]; first += 512) piece.push_back({first, std::min(first + 512, ptr[r + 1])}), rows_of.push_back(int(r));
        }
        auto length = [&](int r) { return ptr[r + 1] - ptr[r]; };
        std::sort(order.begin(), order.end(), [&](int r, int s) { return length(r) != length(s) ? length(r) > length(s) : r < s; });
        int whole = 0, n = rows, pieces = int(piece.size());
        while (length(order[whole]) > 1024) ++whole;
        int *p = b.copy(ptr), *c = b.copy(column), *o = b.copy(order), *of = b.copy(rows_of);
        int2 *cut = b.copy(piece);
        float *value = b.random<float>(column.size()), *x = b.random<float>(rows), *y = b.output<float>(rows, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(power_rows, rows / 8, 256, 0, p, c, value, x, y, n)}, {"pieces", launch(power_rows_pieces, blocks(pieces, 8), 256, 0, cut, of, c, value, x, y, pieces)},
            {"sorted", launch(power_rows_sorted, whole + blocks(rows - whole, 8), 256, 0, o, p, c, value, x, y, n, whole)}};
    });

// --- Cholesky factors of small matrices ---

__global__ void cholesky_thread(const float *a, float *l, int matrices) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= matrices) return;
    a += m * 256, l += m * 256;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            if (j > i) {
                l[i * 16 + j] = 0.f;
                continue;
            }
            float sum = a[i * 16 + j] + (i == j ? 16.f : 0.f);
            for (int k = 0; k < j; k++) sum -= l[i * 16 + k] * l[j * 16 + k];
            l[i * 16 + j] = i == j ? sqrtf(sum) : sum / l[j * 16 + j];
        }
}
__global__ void __launch_bounds__(128) cholesky_warp(const float4 *__restrict__ a, float *__restrict__ l, int matrices) {
    __shared__ float s[4][16][17];
    int lane = threadIdx.x % 32, m = blockIdx.x * 4 + threadIdx.x / 32, i = lane % 16;
    float(*mine)[17] = s[threadIdx.x / 32];
    for (int k = lane; k < 64; k += 32) {
        float4 v = a[m * 64 + k];
        int row = k / 4, column = k % 4 * 4;
        mine[row][column] = v.x, mine[row][column + 1] = v.y, mine[row][column + 2] = v.z, mine[row][column + 3] = v.w;
    }
    __syncwarp();
    if (lane < 16) mine[lane][lane] += 16.f;
    __syncwarp();
    for (int k = 0; k < 16; ++k) {
        float inverse = rsqrtf(mine[k][k]);
        __syncwarp();
        if (lane < 16 && i >= k) mine[i][k] *= inverse;
        __syncwarp();
        for (int j = k + 1 + lane / 16; j <= i; j += 2) mine[i][j] -= mine[i][k] * mine[j][k];
        __syncwarp();
    }
    for (int k = lane; k < 256; k += 32) l[m * 256 + k] = k % 16 <= k / 16 ? mine[k / 16][k % 16] : 0.f;
}
__global__ void __launch_bounds__(128) cholesky_registers(const float *__restrict__ a, float *__restrict__ l, int matrices) {
    __shared__ float s[8][16][17];
    int lane = threadIdx.x % 16, which = threadIdx.x / 16, first = blockIdx.x * 8;
    for (int k = threadIdx.x; k < 2048; k += 128) s[k / 256][k / 16 % 16][k % 16] = a[first * 256 + k];
    __syncthreads();
    float row[16];
#pragma unroll
    for (int j = 0; j < 16; ++j) row[j] = s[which][lane][j] + (j == lane ? 16.f : 0.f);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        row[k] *= rsqrtf(__shfl_sync(~0u, row[k], k, 16));
#pragma unroll
        for (int j = k + 1; j < 16; ++j) row[j] -= row[k] * __shfl_sync(~0u, row[k], j, 16);
    }
#pragma unroll
    for (int j = 0; j < 16; ++j) s[which][lane][j] = j <= lane ? row[j] : 0.f;
    __syncthreads();
    for (int k = threadIdx.x; k < 2048; k += 128) l[first * 256 + k] = s[k / 256][k / 16 % 16][k % 16];
}

Study choleskys("cholesky_16_thread_per_matrix", "hpc", 65536, "Cholesky factors of 65536 matrices of 16 x 16 floats",
    "a thread a matrix, all of it in global memory: lanes 1024 bytes apart, the factor read back",
    {{"warp", "a warp a matrix, in shared memory", {"uncoalesced_access", "redundant_loads"}}, {"registers", "16 lanes a matrix, a row in registers, columns by shuffles", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long matrices) -> Sides {
        float *a = b.random<float>(matrices * 256), *l = b.output<float>(matrices * 256);
        int n = matrices;
        b.tolerance = 1e-3;
        return {{"flawed", launch(cholesky_thread, matrices / 128, 128, 0, a, l, n)}, {"warp", launch(cholesky_warp, matrices / 4, 128, 0, (float4 *)a, l, n)}, {"registers", launch(cholesky_registers, matrices / 8, 128, 0, a, l, n)}};
    });

// --- lower triangular matrix times a vector ---

template <typename Rows>
__device__ void lower_rows(const float4 *a, const float4 *x, float *y, int n, Rows rows) {
    int lane = threadIdx.x % 32;
    rows([&](int row) {
        float sum = 0.f;
        int whole = (row + 1) / 4;
#pragma unroll 2
        for (int i = lane; i < whole; i += 32) {
            float4 u = a[row * (n / 4) + i], v = x[i];
            sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
        }
        int rest = whole * 4 + lane;
        if (rest <= row) sum += reinterpret_cast<const float *>(a)[row * n + rest] * reinterpret_cast<const float *>(x)[rest];
        sum = warp_sum(sum);
        if (lane == 0) y[row] = sum;
    });
}
__global__ void lower_chunks(const float4 *a, const float4 *x, float *y, int n) {
    lower_rows(a, x, y, n, [&](auto row) {
        int each = n / gridDim.x, warps = blockDim.x / 32;
        for (int r = threadIdx.x / 32; r < each; r += warps) row(blockIdx.x * each + r);
    });
}
__global__ void lower_cyclic(const float4 *a, const float4 *x, float *y, int n) {
    lower_rows(a, x, y, n, [&](auto row) {
        int warps = blockDim.x / 32;
        for (int r = threadIdx.x / 32 * gridDim.x + blockIdx.x; r < n; r += gridDim.x * warps) row(r);
    });
}
__global__ void lower_pairs(const float4 *a, const float4 *x, float *y, int n) {
    lower_rows(a, x, y, n, [&](auto row) {
        int each = n / 2 / gridDim.x, warps = blockDim.x / 32;
        for (int r = threadIdx.x / 32; r < each; r += warps) row(blockIdx.x * each + r), row(n - 1 - int(blockIdx.x * each + r));
    });
}

Study triangular_product("triangular_product_in_chunks", "hpc", 8192, "a lower triangular matrix of 8192 x 8192 floats, times a vector",
    "each of 256 blocks takes 32 neighbouring rows: the last ones have twice the mean to do",
    {{"cyclic", "each block takes every 256th row", {"workload_imbalance"}}, {"pairs", "a short row and the long one that makes up for it together", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        float *a = b.random<float>(n * n), *x = b.random<float>(n), *y = b.output<float>(n);
        int s = n;
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, 256, 256, 0, (float4 *)a, (float4 *)x, y, s); };
        return {{"flawed", run(lower_chunks)}, {"cyclic", run(lower_cyclic)}, {"pairs", run(lower_pairs)}};
    });

// --- covariances of tracks, predicted ---

__global__ void predict(const float *p, const float *f, const float *q, float *out, int n, int tracks) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tracks) return;
    float here[64], half[64];
    for (int i = 0; i < n * n; i++) here[i] = p[i * tracks + t];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0.f;
            for (int k = 0; k < n; k++) sum += f[i * n + k] * here[k * n + j];
            half[i * n + j] = sum;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = q[i * n + j];
            for (int k = 0; k < n; k++) sum += half[i * n + k] * f[j * n + k];
            out[(i * n + j) * tracks + t] = sum;
        }
}
template <int N>
__global__ void __launch_bounds__(128) predict_known(const float *__restrict__ p, const float *__restrict__ f, const float *__restrict__ q, float *__restrict__ out, int tracks) {
    int t = blockIdx.x * 128 + threadIdx.x;
    float here[N][N];
#pragma unroll
    for (int i = 0; i < N * N; ++i) here[i / N][i % N] = p[i * tracks + t];
#pragma unroll
    for (int i = 0; i < N; ++i) {  // row i of F P, then of F P F'
        float half[N] = {};
#pragma unroll
        for (int k = 0; k < N; ++k)
#pragma unroll
            for (int j = 0; j < N; ++j) half[j] += f[i * N + k] * here[k][j];
#pragma unroll
        for (int j = 0; j < N; ++j) {
            float sum = q[i * N + j];
#pragma unroll
            for (int k = 0; k < N; ++k) sum += half[k] * f[j * N + k];
            out[(i * N + j) * tracks + t] = sum;
        }
    }
}
__global__ void __launch_bounds__(64) predict_shared(const float *__restrict__ p, const float *__restrict__ f, const float *__restrict__ q, float *__restrict__ out, int n, int tracks) {
    __shared__ float here[36][64], half[6][64];
    int t = blockIdx.x * 64 + threadIdx.x, me = threadIdx.x;
    for (int i = 0; i < n * n; ++i) here[i][me] = p[i * tracks + t];
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            float sum = 0.f;
            for (int k = 0; k < n; ++k) sum += f[i * n + k] * here[k * n + j][me];
            half[j][me] = sum;
        }
        for (int j = 0; j < n; ++j) {
            float sum = q[i * n + j];
            for (int k = 0; k < n; ++k) sum += half[k][me] * f[j * n + k];
            out[(i * n + j) * tracks + t] = sum;
        }
    }
}

Study predictions("track_covariance_local_matrices", "signals", 1 << 18, "predicted covariances of 262144 tracks with six values of state",
    "two matrices a thread, indexed by loops whose ends are known at run time only",
    {{"known", "the number of values known to the compiler: all in registers", {"local_memory"}}, {"shared", "a strip of shared memory for each thread", {"local_memory"}}},
    [](Buffers &b, long tracks) -> Sides {
        float *p = b.random<float>(36 * tracks), *f = b.random<float>(36), *q = b.random<float>(36), *out = b.output<float>(36 * tracks);
        int n = tracks;
        b.tolerance = 1e-3;
        return {{"flawed", launch(predict, tracks / 128, 128, 0, p, f, q, out, 6, n)}, {"known", launch(predict_known<6>, tracks / 128, 128, 0, p, f, q, out, n)}, {"shared", launch(predict_shared, tracks / 64, 64, 0, p, f, q, out, 6, n)}};
    });

// --- forces by lists of neighbours ---

__device__ void attract(float4 a, float4 b, float3 &force) {
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z, r2 = dx * dx + dy * dy + dz * dz + 0.5f;
    float inverse = __fdividef(1.f, r2), six = inverse * inverse * inverse, scale = (six * six - 0.5f * six) * inverse;
    force.x += scale * dx, force.y += scale * dy, force.z += scale * dz;
}
__global__ void forces_rows(const float4 *position, const int *list, float4 *force, int n, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 me = position[i];
    float3 sum{};
    for (int k = 0; k < most; k++) attract(me, position[list[i * most + k]], sum);
    force[i] = {sum.x, sum.y, sum.z, 0.f};
}
__global__ void __launch_bounds__(128) forces_columns(const float4 *__restrict__ position, const int *__restrict__ list, float4 *__restrict__ force, int n, int most) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 me = position[i];
    float3 sum{};
#pragma unroll 4
    for (int k = 0; k < most; ++k) attract(me, position[list[k * n + i]], sum);
    force[i] = {sum.x, sum.y, sum.z, 0.f};
}
__global__ void __launch_bounds__(256) forces_lanes(const float4 *__restrict__ position, const int4 *__restrict__ list, float4 *__restrict__ force, int most) {
    int i = (blockIdx.x * 256 + threadIdx.x) / 8, lane = threadIdx.x % 8;
    float4 me = position[i];
    float3 sum{};
    for (int k = lane; k < most / 4; k += 8) {
        int4 other = list[i * (most / 4) + k];
        attract(me, position[other.x], sum), attract(me, position[other.y], sum), attract(me, position[other.z], sum), attract(me, position[other.w], sum);
    }
#pragma unroll
    for (int offset = 4; offset; offset /= 2) {
        sum.x += __shfl_xor_sync(~0u, sum.x, offset), sum.y += __shfl_xor_sync(~0u, sum.y, offset), sum.z += __shfl_xor_sync(~0u, sum.z, offset);
    }
    if (lane == 0) force[i] = {sum.x, sum.y, sum.z, 0.f};
}

Study neighbour_lists("neighbour_list_by_particle", "physics", 1 << 18, "forces on 262144 particles from 96 neighbours each",
    "a thread a particle walks along its own row of the list: lanes 384 bytes apart",
    {{"columns", "the list stored turned: lanes read neighbouring words", {"uncoalesced_access"}}, {"lanes", "eight lanes a particle share a row, four neighbours a load", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int most = 96, count = n;
        std::vector<int> rows(n * most), columns(n * most);
        for (long i = 0; i < n; ++i)
            for (int k = 0; k < most; ++k) columns[k * n + i] = rows[i * most + k] = int((i + n - 256 + pairs::hash(i * most + k) % 512) % n);
        int *row = b.copy(rows), *column = b.copy(columns);
        float *position = b.random<float>(4 * n, 0, 3), *force = b.output<float>(4 * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(forces_rows, n / 128, 128, 0, (float4 *)position, row, (float4 *)force, count, most)}, {"columns", launch(forces_columns, n / 128, 128, 0, (float4 *)position, column, (float4 *)force, count, most)},
            {"lanes", launch(forces_lanes, n / 32, 256, 0, (float4 *)position, (int4 *)row, (float4 *)force, most)}};
    });

// --- screened charges: the part of Ewald's sum in real space ---

template <typename Factor>
__device__ void screened(const float4 *charges, float4 *force, float4 *tile, Factor factor) {
    float4 me = charges[blockIdx.x * 256 + threadIdx.x], sum{};
    tile[threadIdx.x] = me;
    __syncthreads();
    for (int j = 0; j < 256; j++) {
        float4 other = tile[j];
        float dx = me.x - other.x, dy = me.y - other.y, dz = me.z - other.z, r2 = dx * dx + dy * dy + dz * dz + 1.f;
        float scale = other.w * factor(r2);
        sum.x += scale * dx, sum.y += scale * dy, sum.z += scale * dz;
    }
    force[blockIdx.x * 256 + threadIdx.x] = sum;
}
__device__ float screening(float r2, float alpha) {
    float r = sqrtf(r2);
    return (erfcf(alpha * r) / r + 2.f * alpha / 1.7724539f * expf(-alpha * alpha * r2)) / r2;
}
__global__ void ewald(const float4 *charges, float4 *force, float alpha) {
    __shared__ float4 tile[256];
    screened(charges, force, tile, [=](float r2) { return screening(r2, alpha); });
}
__global__ void __launch_bounds__(256) ewald_polynomial(const float4 *__restrict__ charges, float4 *__restrict__ force, float alpha) {
    __shared__ float4 tile[256];
    float c = 1.1283792f * alpha;
    screened(charges, force, tile, [=](float r2) {
        float inverse = rsqrtf(r2), x = alpha * r2 * inverse, e = __expf(-x * x), t = __fdividef(1.f, 1.f + 0.3275911f * x);
        float erfc = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) * e;
        return (erfc * inverse + c * e) * inverse * inverse;
    });
}
__global__ void __launch_bounds__(256) ewald_table(const float4 *__restrict__ charges, float4 *__restrict__ force, const float *__restrict__ factors) {
    __shared__ float4 tile[256];
    __shared__ float table[1664];
    for (int i = threadIdx.x; i < 1664; i += 256) table[i] = factors[i];
    screened(charges, force, tile, [=](float r2) {
        float at = (r2 - 1.f) * 32.f;
        int i = int(at);
        float low = table[i];
        return low + (at - i) * (table[i + 1] - low);
    });
}
__global__ void ewald_factors(float *factors, float alpha) {
    int i = blockIdx.x * 128 + threadIdx.x;
    factors[i] = screening(1.f + i / 32.f, alpha);
}

Study screened_charges("ewald_erfc_each_pair", "physics", 1 << 17, "forces between screened charges, 131072 of them in cells of 256",
    "the library's complementary error function, exponential and root and three divisions for each pair",
    {{"polynomial", "one fast exponential and a polynomial, reciprocal roots", {"expensive_math"}}, {"table", "a table of the factor in shared memory, interpolated", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *charges = b.random<float>(4 * n, 0, 4), *force = b.output<float>(4 * n), *factors = b.allocate<float>(1664);
        ewald_factors<<<13, 128>>>(factors, 0.6f);
        b.tolerance = 2e-3;
        return {{"flawed", launch(ewald, n / 256, 256, 0, (float4 *)charges, (float4 *)force, 0.6f)}, {"polynomial", launch(ewald_polynomial, n / 256, 256, 0, (float4 *)charges, (float4 *)force, 0.6f)},
            {"table", launch(ewald_table, n / 256, 256, 0, (float4 *)charges, (float4 *)force, factors)}};
    });

// --- walks of photons until they are absorbed ---

struct Photon {
    unsigned random;
    float depth, path;
};
__device__ Photon born(int i) { return {pairs::hash(i + 12345), 0.f, 0.f}; }
// One flight; true when the photon ends.
__device__ bool fly(Photon &p) {
    float u = ((p.random >> 8) + 1) * 5.9604645e-8f;
    p.random = pairs::hash(p.random + 0x9e3779b9u);
    float cosine = (p.random >> 8) * 1.1920929e-7f - 1.f, length = -__logf(u);
    p.random = pairs::hash(p.random + 0x9e3779b9u);
    p.depth = fmaf(cosine, length, p.depth), p.path += length;
    return p.random % 64 == 0 || fabsf(p.depth) > 40.f;
}
__global__ void photons(float2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Photon p = born(i);
    while (!fly(p)) {}
    out[i] = {p.depth, p.path};
}
__global__ void __launch_bounds__(128) photons_stride(float2 *__restrict__ out, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    Photon p = born(i);
    while (i < n)  // a lane that ends takes its next photon while the others go on
        if (fly(p)) {
            out[i] = {p.depth, p.path};
            i += gridDim.x * 128;
            p = born(i);
        }
}
__global__ void __launch_bounds__(128) photons_queue(float2 *__restrict__ out, int each) {
    __shared__ int next;
    int first = blockIdx.x * each, i = first + threadIdx.x;
    if (threadIdx.x == 0) next = first + 128;
    __syncthreads();
    Photon p = born(i);
    while (i < first + each)
        if (fly(p)) {
            out[i] = {p.depth, p.path};
            i = atomicAdd(&next, 1);
            p = born(i);
        }
}

Study photon_walks("photon_walks_of_unequal_length", "physics", 1 << 21, "walks of 2 million photons until absorbed, 64 flights on average",
    "a warp goes on until the last of its 32 photons has ended: four times the mean",
    {{"stride", "a lane whose photon ends takes another one, 16 in turn", {"branch_divergence"}}, {"queue", "lanes whose photons end take the block's next one", {"branch_divergence", "workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        float *out = b.output<float>(2 * n);
        int count = n;
        b.tolerance = 1e-3;
        return {{"flawed", launch(photons, n / 128, 128, 0, (float2 *)out, count)}, {"stride", launch(photons_stride, n / 2048, 128, 0, (float2 *)out, count)}, {"queue", launch(photons_queue, n / 2048, 128, 0, (float2 *)out, 2048)}};
    });

// --- implied volatilities ---

__global__ void implied(const float *price, const float *strike, const float *years, float *sigma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double low = 0.01, high = 1.5;
    for (int k = 0; k < 32; k++) {
        double middle = 0.5 * (low + high), spread = middle * sqrt(years[i]), d = -log(strike[i]) / spread + 0.5 * spread;
        double value = normcdf(d) - strike[i] * normcdf(d - spread);
        if (value < price[i]) low = middle;
        else high = middle;
    }
    sigma[i] = 0.5 * (low + high);
}
__global__ void __launch_bounds__(256) implied_float(const float *__restrict__ price, const float *__restrict__ strike, const float *__restrict__ years, float *__restrict__ sigma, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float low = 0.01f, high = 1.5f, root = sqrtf(years[i]), money = -logf(strike[i]), p = price[i], s = strike[i];
    for (int k = 0; k < 20; ++k) {
        float middle = 0.5f * (low + high), spread = middle * root, d = money / spread + 0.5f * spread;
        if (normcdff(d) - s * normcdff(d - spread) < p) low = middle;
        else high = middle;
    }
    sigma[i] = 0.5f * (low + high);
}
__global__ void __launch_bounds__(256) implied_newton(const float *__restrict__ price, const float *__restrict__ strike, const float *__restrict__ years, float *__restrict__ sigma, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float root = sqrtf(years[i]), money = -logf(strike[i]), p = price[i], s = strike[i], x = 0.4f;
#pragma unroll 1
    for (int k = 0; k < 6; ++k) {
        float spread = x * root, d = __fdividef(money, spread) + 0.5f * spread;
        float slope = 0.39894228f * __expf(-0.5f * d * d) * root;
        x = fminf(fmaxf(x - __fdividef(normcdff(d) - s * normcdff(d - spread) - p, slope), 0.02f), 1.5f);
    }
    sigma[i] = x;
}

Study implied_volatilities("implied_volatility_bisection_double", "finance", 1 << 20, "implied volatilities of a million options",
    "32 halvings in double precision, root and logarithm in the loop",
    {{"floats", "20 halvings in single precision, what does not change outside the loop", {"double_precision", "expensive_math"}}, {"newton", "six steps of Newton in single precision", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> price(n), strike(n), years(n);
        auto unit = [](unsigned i) { return (pairs::hash(i) >> 8) / 16777216.0; };
        auto normal = [](double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); };
        for (long i = 0; i < n; ++i) {
            strike[i] = float(0.8 + 0.4 * unit(3 * i)), years[i] = float(0.5 + 1.5 * unit(3 * i + 1));
            double spread = (0.15 + 0.4 * unit(3 * i + 2)) * std::sqrt(years[i]), d = -std::log(strike[i]) / spread + 0.5 * spread;
            price[i] = float(normal(d) - strike[i] * normal(d - spread));
        }
        float *p = b.copy(price), *s = b.copy(strike), *y = b.copy(years), *sigma = b.output<float>(n);
        int count = n;
        b.tolerance = 2e-3;
        auto run = [&](auto kernel) { return launch(kernel, n / 256, 256, 0, p, s, y, sigma, count); };
        return {{"flawed", run(implied)}, {"floats", run(implied_float)}, {"newton", run(implied_newton)}};
    });

// --- products of links of a lattice ---

struct Link {
    float2 m[3][3];
};
__device__ float2 madd(float2 a, float2 b, float2 c) { return {c.x + a.x * b.x - a.y * b.y, c.y + a.x * b.y + a.y * b.x}; }
__global__ void links(const Link *a, const Link *b, Link *c, int sites) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= sites) return;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            float2 sum = {0.f, 0.f};
            for (int k = 0; k < 3; k++) sum = madd(a[s].m[i][k], b[s].m[k][j], sum);
            c[s].m[i][j] = sum;
        }
}
__device__ void product(const float2 (&u)[9], const float2 (&v)[9], float2 (&w)[9]) {
#pragma unroll
    for (int i = 0; i < 9; ++i) {
        w[i] = {};
#pragma unroll
        for (int k = 0; k < 3; ++k) w[i] = madd(u[i / 3 * 3 + k], v[k * 3 + i % 3], w[i]);
    }
}
__global__ void __launch_bounds__(128) links_planes(const float2 *__restrict__ a, const float2 *__restrict__ b, float2 *__restrict__ c, int sites) {
    int s = blockIdx.x * 128 + threadIdx.x;
    float2 u[9], v[9], w[9];
#pragma unroll
    for (int i = 0; i < 9; ++i) u[i] = a[i * sites + s], v[i] = b[i * sites + s];
    product(u, v, w);
#pragma unroll
    for (int i = 0; i < 9; ++i) c[i * sites + s] = w[i];
}
__global__ void __launch_bounds__(128) links_staged(const float4 *__restrict__ a, const float4 *__restrict__ b, float4 *__restrict__ c) {
    __shared__ float4 stage[576];  // 128 links; lanes 72 bytes apart meet no conflict in words of eight bytes
    float2 u[9], v[9], w[9], *mine = reinterpret_cast<float2 *>(stage) + threadIdx.x * 9;
    for (int i = threadIdx.x; i < 576; i += 128) stage[i] = a[blockIdx.x * 576 + i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 9; ++i) u[i] = mine[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 576; i += 128) stage[i] = b[blockIdx.x * 576 + i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 9; ++i) v[i] = mine[i];
    product(u, v, w);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 9; ++i) mine[i] = w[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 576; i += 128) c[blockIdx.x * 576 + i] = stage[i];
}
__global__ void planes_of(const float2 *records, float2 *planes, int n, int fields, bool back) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n * fields; i += gridDim.x * blockDim.x) {
        float2 *turned = &planes[i % fields * n + i / fields], *straight = const_cast<float2 *>(&records[i]);
        if (back) *straight = *turned;
        else *turned = *straight;
    }
}

Study link_products("su3_links_as_records", "physics", 1 << 19, "products of 3 x 3 complex matrices, half a million links of a lattice",
    "a matrix a thread as a record: lanes 72 bytes apart, elements loaded again for each output",
    {{"planes", "an array for each element of the matrices", {"uncoalesced_access"}}, {"staged", "a block's records through shared memory, 16 bytes a lane", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *x = (float2 *)b.random<float>(18 * n), *y = (float2 *)b.random<float>(18 * n), *z = (float2 *)b.output<float>(18 * n);
        auto *px = b.allocate<float2>(9 * n), *py = b.allocate<float2>(9 * n), *pz = b.allocate<float2>(9 * n);
        int count = n;
        planes_of<<<1024, 256>>>(x, px, count, 9, false);
        planes_of<<<1024, 256>>>(y, py, count, 9, false);
        Sides sides = {{"flawed", launch(links, n / 128, 128, 0, (Link *)x, (Link *)y, (Link *)z, count)}, {"planes", launch(links_planes, n / 128, 128, 0, px, py, pz, count)},
            {"staged", launch(links_staged, n / 128, 128, 0, (float4 *)x, (float4 *)y, (float4 *)z)}};
        sides[1].check = launch(planes_of, 1024, 256, 0, z, pz, count, 9, true);
        return sides;
    });

// --- heights of pressure levels ---

__global__ void heights(const float *temperature, const float *humidity, const float *logs, float *height, int columns, int levels) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns) return;
    float z = 0.f;
    for (int l = levels - 1; l >= 0; l--) {
        z += 29.27f * temperature[c * levels + l] * (1.f + 0.61f * humidity[c * levels + l]) * logs[l];
        height[c * levels + l] = z;
    }
}
__global__ void __launch_bounds__(128) heights_turned(const float *__restrict__ temperature, const float *__restrict__ humidity, const float *__restrict__ logs, float *__restrict__ height, int columns, int levels) {
    int c = blockIdx.x * 128 + threadIdx.x;
    float z = 0.f;
#pragma unroll 8
    for (int l = levels - 1; l >= 0; --l) {
        z += 29.27f * temperature[l * columns + c] * (1.f + 0.61f * humidity[l * columns + c]) * logs[l];
        height[l * columns + c] = z;
    }
}
__global__ void __launch_bounds__(256) heights_warp(const float4 *__restrict__ temperature, const float4 *__restrict__ humidity, const float4 *__restrict__ logs, float4 *__restrict__ height) {
    int c = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;  // 128 levels, four a lane
    float4 t = temperature[c * 32 + lane], q = humidity[c * 32 + lane], k = logs[lane], z;
    z.w = 29.27f * t.w * (1.f + 0.61f * q.w) * k.w;
    z.z = z.w + 29.27f * t.z * (1.f + 0.61f * q.z) * k.z;
    z.y = z.z + 29.27f * t.y * (1.f + 0.61f * q.y) * k.y;
    z.x = z.y + 29.27f * t.x * (1.f + 0.61f * q.x) * k.x;
    float below = z.x;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        float other = __shfl_down_sync(~0u, below, offset);
        if (lane + offset < 32) below += other;
    }
    below -= z.x;
    height[c * 32 + lane] = {z.x + below, z.y + below, z.z + below, z.w + below};
}
__global__ void turn(const float *in, float *out, int rows, int columns) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.x * blockDim.x) out[i % columns * rows + i / columns] = in[i];
}

Study level_heights("level_heights_thread_per_column", "hpc", 1 << 17, "heights of 128 levels of the air over 131072 points",
    "a thread a column whose levels lie side by side: lanes 512 bytes apart",
    {{"turned", "levels stored as planes", {"uncoalesced_access"}}, {"warp", "a warp a column, four levels a lane, summed by shuffles", {"uncoalesced_access", "narrow_access", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        int columns = n, levels = 128;
        float *t = b.random<float>(n * levels, 200, 300), *q = b.random<float>(n * levels, 0, 0.02), *logs = b.random<float>(levels, 0.01, 0.05), *height = b.output<float>(n * levels);
        float *tt = b.allocate<float>(n * levels), *qt = b.allocate<float>(n * levels), *ht = b.allocate<float>(n * levels);
        turn<<<1024, 256>>>(t, tt, columns, levels);
        turn<<<1024, 256>>>(q, qt, columns, levels);
        Sides sides = {{"flawed", launch(heights, n / 128, 128, 0, t, q, logs, height, columns, levels)}, {"turned", launch(heights_turned, n / 128, 128, 0, tt, qt, logs, ht, columns, levels)},
            {"warp", launch(heights_warp, n / 8, 256, 0, (float4 *)t, (float4 *)q, (float4 *)logs, (float4 *)height)}};
        sides[1].check = launch(turn, 1024, 256, 0, ht, height, levels, columns);
        return sides;
    });

// --- principal stresses ---

__global__ void principal(const float *stress, float *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = stress[6 * i], b = stress[6 * i + 1], c = stress[6 * i + 2], d = stress[6 * i + 3], e = stress[6 * i + 4], f = stress[6 * i + 5];
    double q = (a + b + c) / 3.0, p = sqrt(((a - q) * (a - q) + (b - q) * (b - q) + (c - q) * (c - q) + 2 * (d * d + e * e + f * f)) / 6.0);
    a = (a - q) / p, b = (b - q) / p, c = (c - q) / p, d /= p, e /= p, f /= p;
    double r = (a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)) / 2.0;
    double angle = acos(fmin(fmax(r, -1.0), 1.0)) / 3.0;
    values[3 * i] = q + 2 * p * cos(angle);
    values[3 * i + 2] = q + 2 * p * cos(angle + 2.0943951023931953);
    values[3 * i + 1] = 3 * q - values[3 * i] - values[3 * i + 2];
}
template <bool FAST>
__device__ void principal_of(float a, float b, float c, float d, float e, float f, float &top, float &middle, float &bottom) {
    float q = (a + b + c) * 0.33333333f;
    a -= q, b -= q, c -= q;
    float p2 = (a * a + b * b + c * c + 2.f * (d * d + e * e + f * f)) * 0.16666667f, inverse = rsqrtf(p2), p = p2 * inverse;
    float r = 0.5f * inverse * inverse * inverse * (a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e));
    float angle = acosf(fminf(fmaxf(r, -1.f), 1.f)) * 0.33333333f;
    top = q + 2.f * p * (FAST ? __cosf(angle) : cosf(angle));
    bottom = q + 2.f * p * (FAST ? __cosf(angle + 2.0943951f) : cosf(angle + 2.0943951f));
    middle = 3.f * q - top - bottom;
}
__global__ void principal_float(const float *__restrict__ stress, float *__restrict__ values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float *s = stress + 6 * i;
    principal_of<false>(s[0], s[1], s[2], s[3], s[4], s[5], values[3 * i], values[3 * i + 1], values[3 * i + 2]);
}
__global__ void __launch_bounds__(256) principal_pairs(const float4 *__restrict__ stress, float2 *__restrict__ values, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;  // two tensors: twelve values in, six out
    float4 u = stress[3 * i], v = stress[3 * i + 1], w = stress[3 * i + 2];
    float2 x, y, z;
    principal_of<true>(u.x, u.y, u.z, u.w, v.x, v.y, x.x, x.y, y.x);
    principal_of<true>(v.z, v.w, w.x, w.y, w.z, w.w, y.y, z.x, z.y);
    values[3 * i] = x, values[3 * i + 1] = y, values[3 * i + 2] = z;
}

Study principal_stresses("principal_stresses_in_double", "hpc", 1 << 22, "principal values of 4 million symmetric 3 x 3 tensors of floats",
    "double precision throughout for values that come and go as floats",
    {{"floats", "single precision, reciprocal roots instead of divisions", {"double_precision", "expensive_math"}}, {"pairs", "single precision, fast cosines, two tensors a thread in 16-byte loads", {"double_precision", "expensive_math", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *stress = b.random<float>(6 * n), *values = b.output<float>(3 * n);
        int count = n;
        b.tolerance = 3e-3;
        return {{"flawed", launch(principal, n / 256, 256, 0, stress, values, count)}, {"floats", launch(principal_float, n / 256, 256, 0, stress, values, count)},
            {"pairs", launch(principal_pairs, n / 512, 256, 0, (float4 *)stress, (float2 *)values, count)}};
    });

// --- potentials of all sources ---

__global__ void potentials_all(const float4 *sources, const float4 *targets, float *out, int count) {
    extern __shared__ float4 all[];
    for (int i = threadIdx.x; i < count; i += blockDim.x) all[i] = sources[i];
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = targets[t];
    float sum = 0.f;
    for (int j = 0; j < count; j++) {
        float dx = me.x - all[j].x, dy = me.y - all[j].y, dz = me.z - all[j].z;
        sum += all[j].w * rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    }
    out[t] = sum;
}
template <int EACH, int THREADS>
__global__ void __launch_bounds__(THREADS) potentials_tiles(const float4 *__restrict__ sources, const float4 *__restrict__ targets, float *__restrict__ out, int count) {
    __shared__ float4 tile[256];
    int first = blockIdx.x * THREADS * EACH + threadIdx.x;
    float4 me[EACH];
    float sum[EACH] = {};
#pragma unroll
    for (int k = 0; k < EACH; ++k) me[k] = targets[first + k * THREADS];
    for (int base = 0; base < count; base += 256) {
        for (int i = threadIdx.x; i < 256; i += THREADS) tile[i] = sources[base + i];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 256; ++j) {
            float4 other = tile[j];
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                float dx = me[k].x - other.x, dy = me[k].y - other.y, dz = me[k].z - other.z;
                sum[k] += other.w * rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) out[first + k * THREADS] = sum[k];
}

Study potentials("potential_all_sources_in_shared", "physics", 132 * 512, "potential of 12288 charges at 67584 points",
    "all sources are kept in 192 KiB of shared memory: four warps on a multiprocessor",
    {{"tiles", "256 sources at a time: sixteen times the warps", {"low_occupancy"}}, {"two", "256 sources at a time, two points a thread", {"low_occupancy", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        int count = 12288;
        float *sources = b.random<float>(4 * count), *targets = b.random<float>(4 * n), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(potentials_all, n / 128, 128, count * sizeof(float4), (float4 *)sources, (float4 *)targets, out, count)}, {"tiles", launch(potentials_tiles<1, 128>, n / 128, 128, 0, (float4 *)sources, (float4 *)targets, out, count)},
            {"two", launch(potentials_tiles<2, 64>, n / 128, 64, 0, (float4 *)sources, (float4 *)targets, out, count)}};
    });

// --- Hadamard transforms of rows ---

__global__ void hadamard(const float *x, float *y) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 1024 + t], s[t + 512] = x[blockIdx.x * 1024 + t + 512];
    for (int h = 1; h < 1024; h *= 2) {
        __syncthreads();
        int i = t / h * 2 * h + t % h;
        float a = s[i], b = s[i + h];
        s[i] = a + b, s[i + h] = a - b;
    }
    __syncthreads();
    y[blockIdx.x * 1024 + t] = s[t] / 32.f, y[blockIdx.x * 1024 + t + 512] = s[t + 512] / 32.f;
}
template <int COUNT>
__device__ void butterflies(float (&v)[COUNT]) {
#pragma unroll
    for (int h = 1; h < COUNT; h *= 2)
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (!(i & h)) {
                float a = v[i], b = v[i | h];
                v[i] = a + b, v[i | h] = a - b;
            }
}
__global__ void __launch_bounds__(256) hadamard_four(const float4 *__restrict__ x, float *__restrict__ y) {
    __shared__ __align__(16) float s[1024];
    int t = threadIdx.x, lane = t % 32;
    float4 raw = x[blockIdx.x * 256 + t];
    float v[4] = {raw.x, raw.y, raw.z, raw.w};
    butterflies(v);
#pragma unroll
    for (int h = 1; h < 32; h *= 2)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float other = __shfl_xor_sync(~0u, v[i], h);
            v[i] = lane & h ? other - v[i] : v[i] + other;
        }
    reinterpret_cast<float4 *>(s)[t] = {v[0], v[1], v[2], v[3]};
    __syncthreads();
    if (t >= 128) return;
    float w[8];  // the last three steps: words 128 apart
#pragma unroll
    for (int i = 0; i < 8; ++i) w[i] = s[i * 128 + t];
    butterflies(w);
#pragma unroll
    for (int i = 0; i < 8; ++i) y[blockIdx.x * 1024 + i * 128 + t] = w[i] * 0.03125f;
}
__global__ void __launch_bounds__(128) hadamard_warp(const float4 *__restrict__ x, float4 *__restrict__ y) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float v[32];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float4 raw = x[row * 256 + i * 32 + lane];
        v[4 * i] = raw.x, v[4 * i + 1] = raw.y, v[4 * i + 2] = raw.z, v[4 * i + 3] = raw.w;
    }
    butterflies(v);
#pragma unroll
    for (int h = 1; h < 32; h *= 2)
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            float other = __shfl_xor_sync(~0u, v[i], h);
            v[i] = lane & h ? other - v[i] : v[i] + other;
        }
#pragma unroll
    for (int i = 0; i < 8; ++i) y[row * 256 + i * 32 + lane] = {v[4 * i] * 0.03125f, v[4 * i + 1] * 0.03125f, v[4 * i + 2] * 0.03125f, v[4 * i + 3] * 0.03125f};
}

Study hadamards("hadamard_barrier_each_step", "signals", 32768, "Hadamard transforms of 32768 rows of 1024 floats",
    "ten steps through shared memory with a barrier each, words of one bank in the first ones",
    {{"four", "four values a thread: steps in registers, by shuffles, and once through shared memory", {"barriers", "shared_bank_conflicts"}}, {"warp", "a warp a row, 32 values a lane: registers and shuffles only", {"barriers", "shared_bank_conflicts"}}},
    [](Buffers &b, long rows) -> Sides {
        float *x = b.random<float>(rows * 1024), *y = b.output<float>(rows * 1024);
        return {{"flawed", launch(hadamard, rows, 512, 0, x, y)}, {"four", launch(hadamard_four, rows, 256, 0, (float4 *)x, y)}, {"warp", launch(hadamard_warp, rows / 4, 128, 0, (float4 *)x, (float4 *)y)}};
    });

// --- neighbours within a distance, in a periodic box ---

__global__ void coordination(const float4 *points, int *count, int n, float box, float reach) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    float4 me = points[i];
    for (int base = 0; base < n; base += 128) {
        tile[threadIdx.x] = points[base + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) {
            float dx = me.x - tile[j].x, dy = me.y - tile[j].y, dz = me.z - tile[j].z;
            dx -= box * roundf(dx / box), dy -= box * roundf(dy / box), dz -= box * roundf(dz / box);
            if (sqrtf(dx * dx + dy * dy + dz * dz) < reach) found++;
        }
        __syncthreads();
    }
    count[i] = found;
}
template <bool WHOLE>
__global__ void __launch_bounds__(128) coordination_units(const float4 *__restrict__ points, int *__restrict__ count, int n, float inverse, float reach) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x, found = 0;
    const float scale = WHOLE ? inverse * 4294967296.f : inverse;
    // Fractions of the box; or all bits of an integer for the box, whose differences wrap by themselves.
    auto units = [&](float4 p) -> float4 {
        p = {p.x * scale, p.y * scale, p.z * scale, 0.f};
        if constexpr (WHOLE) p = {__uint_as_float(__float2uint_rz(p.x)), __uint_as_float(__float2uint_rz(p.y)), __uint_as_float(__float2uint_rz(p.z)), 0.f};
        return p;
    };
    auto apart = [](float a, float b) {
        if constexpr (WHOLE) return float(int(__float_as_uint(a) - __float_as_uint(b)));
        else return a - b - rintf(a - b);
    };
    float4 me = units(points[i]);
    float most = reach * scale * reach * scale;
    for (int base = 0; base < n; base += 128) {
        tile[threadIdx.x] = units(points[base + threadIdx.x]);
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; ++j) {
            float4 other = tile[j];
            float dx = apart(me.x, other.x), dy = apart(me.y, other.y), dz = apart(me.z, other.z);
            found += dx * dx + dy * dy + dz * dz < most;
        }
        __syncthreads();
    }
    count[i] = found;
}

Study coordinations("minimum_image_divisions", "physics", 132 * 128, "neighbours within a distance of 16896 particles in a periodic box, all pairs",
    "three divisions by the side of the box, three roundings away from zero and a root for each pair",
    {{"fractions", "fractions of the box, rounded to nearest even, squares compared", {"expensive_math"}}, {"integers", "positions as integers whose differences wrap by themselves", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *points = b.random<float>(4 * n, 0, 9.99);
        int *count = b.output<int>(n), all = n;
        b.tolerance = 0.02;
        return {{"flawed", launch(coordination, n / 128, 128, 0, (float4 *)points, count, all, 10.f, 3.f)}, {"fractions", launch(coordination_units<false>, n / 128, 128, 0, (float4 *)points, count, all, 0.1f, 3.f)},
            {"integers", launch(coordination_units<true>, n / 128, 128, 0, (float4 *)points, count, all, 0.1f, 3.f)}};
    });

// --- barrier options ---

__device__ float normal_at(unsigned path, unsigned step) {
    unsigned r = pairs::hash(path * 256 + step), s = pairs::hash(r ^ 0x9e3779b9u);
    return sqrtf(-2.f * __logf(((r >> 8) + 1) * 5.9604645e-8f)) * __cosf((s >> 8) * 3.7450704e-7f);
}
__global__ void barrier_paths(float *payoff, int paths, int steps, float drift, float spread, float barrier, float strike) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= paths) return;
    float path[256];
    float x = 0.f;
    for (int k = 0; k < steps; k++) {
        x += drift + spread * normal_at(p, k);
        path[k] = __expf(x);
    }
    float top = 0.f;
    for (int k = 0; k < steps; k++) top = fmaxf(top, path[k]);
    float mean = 0.f;
    for (int k = steps - 32; k < steps; k++) mean += path[k];
    payoff[p] = __saturatef((barrier - top) * 10.f) * fmaxf(mean / 32 - strike, 0.f);
}
template <int EACH>
__global__ void __launch_bounds__(128) barrier_paths_running(float *__restrict__ payoff, int steps, float drift, float spread, float barrier, float strike) {
    int p = blockIdx.x * 128 * EACH + threadIdx.x;
    float x[EACH] = {}, top[EACH] = {}, mean[EACH] = {};
    for (int k = 0; k < steps; ++k)
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            x[e] += drift + spread * normal_at(p + 128 * e, k);
            float value = __expf(x[e]);
            top[e] = fmaxf(top[e], value);
            if (k >= steps - 32) mean[e] += value;
        }
#pragma unroll
    for (int e = 0; e < EACH; ++e) payoff[p + 128 * e] = __saturatef((barrier - top[e]) * 10.f) * fmaxf(mean[e] * 0.03125f - strike, 0.f);
}

Study barrier_options("barrier_paths_kept_in_local", "finance", 1 << 19, "options that fade out below a barrier, on the mean of the last 32 of 252 days, half a million paths",
    "each thread keeps its whole path in an array and goes through it again afterwards",
    {{"running", "largest value and mean are kept as the path goes", {"local_memory"}}, {"two", "the same, two paths a thread", {"local_memory", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        float *payoff = b.output<float>(n);
        int paths = n;
        b.tolerance = 1e-3;
        return {{"flawed", launch(barrier_paths, n / 128, 128, 0, payoff, paths, 252, 1e-4f, 0.012f, 1.6f, 1.f)}, {"running", launch(barrier_paths_running<1>, n / 128, 128, 0, payoff, 252, 1e-4f, 0.012f, 1.6f, 1.f)},
            {"two", launch(barrier_paths_running<2>, n / 256, 128, 0, payoff, 252, 1e-4f, 0.012f, 1.6f, 1.f)}};
    });

// --- sound: one time step of independent oscillators, in planes ---

__global__ void __launch_bounds__(256) oscillators(const float4 *__restrict__ position, const float4 *__restrict__ speed, float4 *__restrict__ next, float4 *__restrict__ faster, float dt, float k) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 x = position[i], v = speed[i];
    v.x -= dt * k * x.x, v.y -= dt * k * x.y, v.z -= dt * k * x.z, v.w -= dt * k * x.w;
    x.x += dt * v.x, x.y += dt * v.y, x.z += dt * v.z, x.w += dt * v.w;
    next[i] = x, faster[i] = v;
}

Study oscillator_steps("sound_oscillators_in_planes", "physics", 1 << 25, "a step of 32 million oscillators", "", {},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n), *v = b.random<float>(n), *next = b.output<float>(n), *faster = b.output<float>(n);
        return {{"sound", launch(oscillators, n / 1024, 256, 0, (float4 *)x, (float4 *)v, (float4 *)next, (float4 *)faster, 0.01f, 4.f)}};
    });

// --- sound: sums of Gaussians, many points a thread ---

__global__ void __launch_bounds__(128) gaussians(const float4 *__restrict__ centres, const float *__restrict__ x, float *__restrict__ y, int count) {
    __shared__ float4 tile[512];
    float at[8], sum[8] = {};
    int first = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 8; ++k) at[k] = x[first + 128 * k];
    for (int base = 0; base < count; base += 512) {
        for (int i = threadIdx.x; i < 512; i += 128) tile[i] = centres[base + i];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 512; ++j) {
            float4 c = tile[j];
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                float d = (at[k] - c.x) * c.y;
                float e;
                asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-d * d));
                sum[k] = fmaf(c.z, e, sum[k]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) y[first + 128 * k] = sum[k];
}

Study gaussian_sums("sound_sums_of_gaussians", "physics", 132 * 8 * 1024, "sums of 512 Gaussians at a million points", "", {},
    [](Buffers &b, long n) -> Sides {
        float *centres = b.random<float>(4 * 512, 0.1, 1), *x = b.random<float>(n), *y = b.output<float>(n);
        return {{"sound", launch(gaussians, n / 1024, 128, 0, (float4 *)centres, x, y, 512)}};
    });

}  // namespace
