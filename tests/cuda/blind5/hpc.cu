// Pieces of simulations on grids and meshes. Each kernel has one weakness and one or two ways out of it.
#include "../pairs/pair.cuh"

namespace {

// --- fine cells of a refined patch from its coarse cells ---

__device__ float limited(float l, float c, float r) {
    float a = 2.f * (c - l), b = 2.f * (r - c), m = 0.5f * (r - l);
    if (a * b <= 0.f) return 0.f;
    return copysignf(fminf(fminf(fabsf(a), fabsf(b)), fabsf(m)), m);
}
__global__ void refine(const float *coarse, float *fine, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    int side = n + 2, plane = side * side;
    const float *c = coarse + (z / 2 + 1) * plane + (y / 2 + 1) * side + x / 2 + 1;
    float sx = limited(c[-1], c[0], c[1]), sy = limited(c[-side], c[0], c[side]), sz = limited(c[-plane], c[0], c[plane]);
    float dx = x % 2 ? 0.25f : -0.25f, dy = y % 2 ? 0.25f : -0.25f, dz = z % 2 ? 0.25f : -0.25f;
    fine[(size_t(z) * 2 * n + y) * 2 * n + x] = c[0] + dx * sx + dy * sy + dz * sz;
}
__device__ void write_children(float *fine, int n, int x, int y, int z, float c, float sx, float sy, float sz) {
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float base = c + (j - 0.5f) * 0.5f * sy + (k - 0.5f) * 0.5f * sz;
            float2 pair{base - 0.25f * sx, base + 0.25f * sx};
            reinterpret_cast<float2 *>(fine + (size_t(2 * z + k) * 2 * n + 2 * y + j) * 2 * n)[x] = pair;
        }
}
__global__ void refine_parent(const float *__restrict__ coarse, float *__restrict__ fine, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    int side = n + 2, plane = side * side;
    const float *c = coarse + (z + 1) * plane + (y + 1) * side + x + 1;
    write_children(fine, n, x, y, z, c[0], limited(c[-1], c[0], c[1]), limited(c[-side], c[0], c[side]), limited(c[-plane], c[0], c[plane]));
}
__global__ void refine_march(const float *__restrict__ coarse, float *__restrict__ fine, int n, int planes) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, first = blockIdx.z * planes;
    int side = n + 2, plane = side * side;
    const float *c = coarse + first * plane + (y + 1) * side + x + 1;
    float below = c[0], here = c[plane];
    for (int z = first; z < first + planes; ++z) {
        c += plane;
        float above = c[plane];
        write_children(fine, n, x, y, z, here, limited(c[-1], here, c[1]), limited(c[-side], here, c[side]), limited(below, here, above));
        below = here, here = above;
    }
}

Study refinements("amr_slopes_for_each_fine_cell", "hpc", 192, "384^3 fine cells of a patch from 192^3 coarse ones, linear with limited slopes",
    "each of the eight children of a cell reads seven values and limits three slopes again",
    {{"parent", "a thread a coarse cell writes its eight children", {"redundant_loads"}},
        {"march", "a thread a column of coarse cells, the cell below kept in a register", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *coarse = b.random<float>((n + 2) * (n + 2) * (n + 2)), *fine = b.output<float>(8 * n * n * n);
        return {{"flawed", launch(refine, dim3(2 * n / 32, 2 * n / 8, 2 * n), dim3(32, 8), 0, coarse, fine, n)},
            {"parent", launch(refine_parent, dim3(n / 32, n / 8, n), dim3(32, 8), 0, coarse, fine, n)},
            {"march", launch(refine_march, dim3(n / 32, n / 8, 8), dim3(32, 8), 0, coarse, fine, n, n / 8)}};
    });

// --- the Poisson equation in Fourier space ---

__global__ void solve_modes(const float2 *modes, float2 *out, int nx, int ny, int nz, float h, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int half = nx / 2 + 1, kx = i % half, ky = i / half % ny, kz = i / (half * ny);
    float sx = sinf(3.14159265f * kx / nx), sy = sinf(3.14159265f * ky / ny), sz = sinf(3.14159265f * kz / nz);
    float eigenvalue = -4.f * (sx * sx + sy * sy + sz * sz) / (h * h);
    float2 m = modes[i];
    if (i == 0) out[i] = {0.f, 0.f};
    else out[i] = {m.x / eigenvalue, m.y / eigenvalue};
}
__global__ void solve_modes_tables(const float2 *__restrict__ modes, float2 *__restrict__ out, const float *__restrict__ tx,
    const float *__restrict__ ty, const float *__restrict__ tz, int half, int ny) {
    int kx = blockIdx.x * blockDim.x + threadIdx.x, ky = blockIdx.y * blockDim.y + threadIdx.y, kz = blockIdx.z;
    if (kx >= half) return;
    size_t i = (size_t(kz) * ny + ky) * half + kx;
    float2 m = modes[i];
    float sum = tx[kx] + ty[ky] + tz[kz], scale = sum == 0.f ? 0.f : 1.f / sum;
    out[i] = {m.x * scale, m.y * scale};
}

Study mode_solvers("poisson_modes_sines", "hpc", 384, "Fourier modes of a box of 384 x 384 x 256 cells divided by the Laplacian's eigenvalues",
    "every mode finds its place by divisions, its eigenvalue by three sines, and divides twice",
    {{"tables", "eigenvalues of the three axes from tables, place from the grid, one reciprocal", {"expensive_math", "integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        int nx = n, ny = n, nz = 256, half = nx / 2 + 1, total = half * ny * nz;
        float *modes = b.random<float>(2l * total), *out = b.output<float>(2l * total), h = 0.01f;
        auto table = [&](int count) {
            std::vector<float> t(count);
            for (int k = 0; k < count; ++k) t[k] = -4.f * std::sin(3.14159265358979 * k / count) * std::sin(3.14159265358979 * k / count) / (h * h);
            return b.copy(t);
        };
        float *tx = table(nx), *ty = table(ny), *tz = table(nz);
        b.tolerance = 1e-3;
        return {{"flawed", launch(solve_modes, blocks(total, 256), 256, 0, (float2 *)modes, (float2 *)out, nx, ny, nz, h, total)},
            {"tables", launch(solve_modes_tables, dim3(blocks(half, 64), ny / 4, nz), dim3(64, 4), 0, (float2 *)modes, (float2 *)out, tx, ty, tz, half, ny)}};
    });

// --- order of a transform's results ---

__global__ void bit_reverse(const float2 *in, float2 *out, int bits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[__brev(i) >> (32 - bits)] = in[i];
}
__global__ void bit_reverse_gather(const float2 *__restrict__ in, float2 *__restrict__ out, int bits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[__brev(i) >> (32 - bits)];
}
__global__ void __launch_bounds__(256) bit_reverse_tiles(const float2 *__restrict__ in, float2 *__restrict__ out, int bits) {
    __shared__ float2 tile[32][33];
    unsigned middle = blockIdx.x, turned = __brev(middle) >> (32 - (bits - 10)), lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned r = threadIdx.x / 32; r < 32; r += 8) tile[r][lane] = in[r << (bits - 5) | middle << 5 | lane];
    __syncthreads();
#pragma unroll
    for (unsigned r = threadIdx.x / 32; r < 32; r += 8) out[r << (bits - 5) | turned << 5 | lane] = tile[__brev(lane) >> 27][__brev(r) >> 27];
}

Study bit_reversals("bit_reversal_scattered", "hpc", 23, "8388608 complex values of a transform put into bit-reversed order",
    "lanes write to places megabytes apart",
    {{"gather", "lanes read from far apart and write side by side", {"uncoalesced_access"}},
        {"tiles", "tiles of 32 x 32 turned in shared memory: both sides coalesced", {"uncoalesced_access"}}},
    [](Buffers &b, long bits) -> Sides {
        long n = 1l << bits;
        float *in = b.random<float>(2 * n), *out = b.output<float>(2 * n);
        return {{"flawed", launch(bit_reverse, n / 256, 256, 0, (float2 *)in, (float2 *)out, bits)},
            {"gather", launch(bit_reverse_gather, n / 256, 256, 0, (float2 *)in, (float2 *)out, bits)},
            {"tiles", launch(bit_reverse_tiles, n / 1024, 256, 0, (float2 *)in, (float2 *)out, bits)}};
    });

// --- derivatives within spectral elements of 8 x 8 x 8 points ---

__constant__ float D_CONSTANT[64];

__global__ void __launch_bounds__(512) element_divergence(const float *u, float *out) {
    __shared__ float s[512];
    int t = threadIdx.x, i = t % 8, j = t / 8 % 8, k = t / 64;
    s[t] = u[size_t(blockIdx.x) * 512 + t];
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int l = 0; l < 8; ++l)
        sum += D_CONSTANT[i * 8 + l] * s[k * 64 + j * 8 + l] + D_CONSTANT[j * 8 + l] * s[k * 64 + l * 8 + i] + D_CONSTANT[k * 8 + l] * s[l * 64 + j * 8 + i];
    out[size_t(blockIdx.x) * 512 + t] = sum;
}
__global__ void __launch_bounds__(512) element_divergence_shared(const float *u, float *out) {
    __shared__ float s[512], d[8][9];
    int t = threadIdx.x, i = t % 8, j = t / 8 % 8, k = t / 64;
    if (t < 64) d[t / 8][t % 8] = D_CONSTANT[t];
    s[t] = u[size_t(blockIdx.x) * 512 + t];
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int l = 0; l < 8; ++l) sum += d[i][l] * s[k * 64 + j * 8 + l] + d[j][l] * s[k * 64 + l * 8 + i] + d[k][l] * s[l * 64 + j * 8 + i];
    out[size_t(blockIdx.x) * 512 + t] = sum;
}
// A thread a column: rows of the matrix and the column's values in registers, a slab at a time in shared memory.
__global__ void __launch_bounds__(256) element_divergence_columns(const float *u, float *out, const float *matrix) {
    __shared__ float slab[4][2][64];
    int t = threadIdx.x % 64, e = threadIdx.x / 64, i = t % 8, j = t / 8;
    const float *from = u + (size_t(blockIdx.x) * 4 + e) * 512;
    float *to = out + (size_t(blockIdx.x) * 4 + e) * 512;
    float di[8], dj[8], column[8];
#pragma unroll
    for (int l = 0; l < 8; ++l) di[l] = matrix[i * 8 + l], dj[l] = matrix[j * 8 + l], column[l] = from[l * 64 + t];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        float *s = slab[e][k % 2];
        s[t] = column[k];
        __syncthreads();
        float sum = 0.f;
#pragma unroll
        for (int l = 0; l < 8; ++l) sum += di[l] * s[j * 8 + l] + dj[l] * s[l * 8 + i] + D_CONSTANT[k * 8 + l] * column[l];
        to[k * 64 + t] = sum;
    }
}

Study element_divergences("spectral_element_matrix_in_constants", "hpc", 40960, "sum of three derivatives of 40960 elements of 8 x 8 x 8 points",
    "the matrix of derivatives lies in constant memory, whose row each lane chooses",
    {{"shared", "the matrix in shared memory", {"constant_divergence"}},
        {"columns", "a thread a column of eight points, its rows of the matrix in registers", {"constant_divergence"}}},
    [](Buffers &b, long elements) -> Sides {
        std::vector<float> d(64);
        for (int i = 0; i < 64; ++i) d[i] = (hash(i) % 2000) / 1000.f - 1.f;
        CHECK(cudaMemcpyToSymbol(D_CONSTANT, d.data(), 256));
        float *matrix = b.copy(d), *u = b.random<float>(elements * 512), *out = b.output<float>(elements * 512);
        return {{"flawed", launch(element_divergence, elements, 512, 0, u, out)},
            {"shared", launch(element_divergence_shared, elements, 512, 0, u, out)},
            {"columns", launch(element_divergence_columns, elements / 4, 256, 0, u, out, matrix)}};
    });

// --- a sweep with coefficients that differ from cell to cell ---

__global__ void sweep_records(const float *u, const float *coefficients, float *out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
    int i = (z * n + y) * n + x;
    const float *c = coefficients + size_t(i) * 7;
    out[i] = c[0] * u[i] + c[1] * u[i - 1] + c[2] * u[i + 1] + c[3] * u[i - n] + c[4] * u[i + n] + c[5] * u[i - n * n] + c[6] * u[i + n * n];
}
__global__ void sweep_planes(const float *__restrict__ u, const float *__restrict__ c, float *__restrict__ out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
    int i = (z * n + y) * n + x, all = n * n * n;
    out[i] = c[i] * u[i] + c[all + i] * u[i - 1] + c[2 * all + i] * u[i + 1] + c[3 * all + i] * u[i - n] + c[4 * all + i] * u[i + n] +
             c[5 * all + i] * u[i - n * n] + c[6 * all + i] * u[i + n * n];
}
__global__ void __launch_bounds__(192) sweep_staged(const float *__restrict__ u, const float *__restrict__ coefficients, float *__restrict__ out, int n) {
    __shared__ float mine[192 * 7];
    int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y, i = (z * n + y) * n + x;
    if (y < 1 || z < 1 || y >= n - 1 || z >= n - 1) return;
#pragma unroll
    for (int k = 0; k < 7; ++k) mine[k * 192 + x] = coefficients[size_t(i - x) * 7 + k * 192 + x];
    __syncthreads();
    if (x < 1 || x >= n - 1) return;
    const float *c = mine + x * 7;
    out[i] = c[0] * u[i] + c[1] * u[i - 1] + c[2] * u[i + 1] + c[3] * u[i - n] + c[4] * u[i + n] + c[5] * u[i - n * n] + c[6] * u[i + n * n];
}
__global__ void planes_of_records(const float *records, float *planes, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 7; ++k) planes[size_t(k) * count + i] = records[size_t(i) * 7 + k];
}

Study sweeps("stencil_coefficients_by_cell", "hpc", 192, "7-point sweep over 192^3 cells, seven coefficients a cell",
    "a cell's seven coefficients lie side by side: lanes are 28 bytes apart",
    {{"planes", "a plane for each coefficient", {"uncoalesced_access"}},
        {"staged", "a row's coefficients through shared memory, layout as it was", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        long cells = n * n * n;
        float *u = b.random<float>(cells), *records = b.random<float>(cells * 7), *planes = b.allocate<float>(cells * 7), *out = b.output<float>(cells, true);
        planes_of_records<<<cells / 256, 256>>>(records, planes, cells);
        CHECK_LAUNCH();
        return {{"flawed", launch(sweep_records, dim3(n / 32, n / 8, n), dim3(32, 8), 0, u, records, out, n)},
            {"planes", launch(sweep_planes, dim3(n / 32, n / 8, n), dim3(32, 8), 0, u, planes, out, n)},
            {"staged", launch(sweep_staged, dim3(n, n), n, 0, u, records, out, n)}};
    });

// --- a wave's step with absorbing edges ---

__global__ void wave_sponge(const float *now, const float *before, float *next, int n, float c, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    int i = y * n + x;
    float dx = fmaxf(0.f, width - fminf(x, n - 1 - x)), dy = fmaxf(0.f, width - fminf(y, n - 1 - y));
    float damping = expf(-0.0002f * powf(dx, 2.f)) * expf(-0.0002f * powf(dy, 2.f));
    float l = now[i - 1] + now[i + 1] + now[i - n] + now[i + n] - 4.f * now[i];
    next[i] = damping * (2.f * now[i] - damping * before[i] + c * l);
}
__global__ void wave_sponge_tables(const float *__restrict__ now, const float *__restrict__ before, float *__restrict__ next,
    const float *__restrict__ damp, int n, float c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    int i = y * n + x;
    float damping = damp[x] * damp[y];
    float l = now[i - 1] + now[i + 1] + now[i - n] + now[i + n] - 4.f * now[i];
    next[i] = damping * (2.f * now[i] - damping * before[i] + c * l);
}

Study sponges("sponge_powers_each_cell", "hpc", 6144, "a step of the wave equation on 6144 x 6144 floats with sponges of 64 cells at the edges",
    "every cell computes the sponge's damping by two exponentials and two powers, most of them 1",
    {{"tables", "damping of columns and rows from a table", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> damp(n);
        for (int x = 0; x < n; ++x) {
            double d = std::max(0l, 64 - std::min<long>(x, n - 1 - x));
            damp[x] = std::exp(-0.0002 * d * d);
        }
        float *now = b.random<float>(n * n), *before = b.random<float>(n * n), *next = b.output<float>(n * n, true), *table = b.copy(damp);
        return {{"flawed", launch(wave_sponge, dim3(n / 32, n / 8), dim3(32, 8), 0, now, before, next, n, 0.3f, 64)},
            {"tables", launch(wave_sponge_tables, dim3(n / 32, n / 8), dim3(32, 8), 0, now, before, next, table, n, 0.3f)}};
    });

// --- coupled oscillators on a ring ---

__global__ void __launch_bounds__(128) couple(const float *phases, const float *weights, float *rates, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float mine = phases[i], sum = 0.f;
    for (int base = 0; base < n; base += 128) {
        __syncthreads();
        tile[threadIdx.x] = phases[base + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; ++j) sum += weights[abs(base + j - i)] * sinf(tile[j] - mine);
    }
    rates[i] = sum;
}
__global__ void __launch_bounds__(128) couple_fast(const float *phases, const float *weights, float *rates, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float mine = phases[i], sum = 0.f;
    for (int base = 0; base < n; base += 128) {
        __syncthreads();
        tile[threadIdx.x] = phases[base + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; ++j) sum += weights[abs(base + j - i)] * __sinf(tile[j] - mine);
    }
    rates[i] = sum;
}
__global__ void __launch_bounds__(128) couple_angles(const float *phases, const float *weights, float *rates, int n) {
    __shared__ float2 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float s, c, sines = 0.f, cosines = 0.f;
    for (int base = 0; base < n; base += 128) {
        __syncthreads();
        sincosf(phases[base + threadIdx.x], &s, &c);
        tile[threadIdx.x] = {s, c};
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; ++j) {
            float w = weights[abs(base + j - i)];
            float2 other = tile[j];
            sines += w * other.x, cosines += w * other.y;
        }
    }
    sincosf(phases[i], &s, &c);
    rates[i] = sines * c - cosines * s;
}

Study couplings("kuramoto_sine_each_pair", "physics", 16896, "rates of 16896 oscillators on a ring, all coupled by a weight of their distance",
    "a precise sine for each of 285 million pairs",
    {{"fast", "the hardware's sine", {"expensive_math"}},
        {"angles", "sine and cosine of each phase once a tile, the sine of a difference by two products", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *phases = b.random<float>(n, 0, 6.2), *rates = b.output<float>(n);
        std::vector<float> w(n);
        for (int d = 0; d < n; ++d) w[d] = 1.f / (1.f + std::min<int>(d, n - d));
        float *weights = b.copy(w);
        b.tolerance = 2e-3;
        return {{"flawed", launch(couple, n / 128, 128, 0, phases, weights, rates, n)},
            {"fast", launch(couple_fast, n / 128, 128, 0, phases, weights, rates, n)},
            {"angles", launch(couple_angles, n / 128, 128, 0, phases, weights, rates, n)}};
    });

}  // namespace
