// Pieces of simulations on grids, particles and spins. Each kernel has one weakness and two ways out.
#include "../pairs/pair.cuh"

namespace {

// --- collisions of a rarefied gas: pairs of neighbours in the order of the cells ---

struct Velocities {
    float *x, *y, *z;
};
__device__ __forceinline__ void collide(Velocities v, int i, unsigned seed) {
    float gx = v.x[i] - v.x[i + 1], gy = v.y[i] - v.y[i + 1], gz = v.z[i] - v.z[i + 1];
    float g = sqrtf(fmaf(gx, gx, fmaf(gy, gy, gz * gz)));
    unsigned draw = hash(i ^ seed), other = hash(draw + 1);
    if (g * 0.25f < (draw >> 8) * 0x1p-24f) return;
    float cosine = (other >> 16) * 0x1p-15f - 1.f, sine = sqrtf(fmaxf(1.f - cosine * cosine, 0.f)), phi = (other & 65535) * (6.2831853f / 65536.f);
    float mx = 0.5f * (v.x[i] + v.x[i + 1]), my = 0.5f * (v.y[i] + v.y[i + 1]), mz = 0.5f * (v.z[i] + v.z[i + 1]);
    float hx = 0.5f * g * sine * __cosf(phi), hy = 0.5f * g * sine * __sinf(phi), hz = 0.5f * g * cosine;
    v.x[i] = mx + hx, v.y[i] = my + hy, v.z[i] = mz + hz;
    v.x[i + 1] = mx - hx, v.y[i + 1] = my - hy, v.z[i + 1] = mz - hz;
}
__global__ void collisions(Velocities v, const int *start, int cells, unsigned seed) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    for (int i = start[c]; i + 1 < start[c + 1]; i += 2) collide(v, i, seed);
}
// `lanes` neighbouring lanes share a cell.
template <int lanes>
__global__ void collisions_shared(Velocities v, const int *__restrict__ start, int cells, unsigned seed) {
    int c = (blockIdx.x * blockDim.x + threadIdx.x) / lanes;
    if (c >= cells) return;
    for (int i = start[c] + threadIdx.x % lanes * 2, end = start[c + 1]; i + 1 < end; i += 2 * lanes) collide(v, i, seed);
}

Study gas("collisions_thread_per_cell", "simulation", 1 << 18, "collisions of pairs of particles in 262144 cells of 4 to 300 particles",
    "a thread walks the pairs of its cell: crowded cells keep their warps, and lanes read far apart",
    {{"warp", "a warp a cell", {"workload_imbalance", "uncoalesced_access"}}, {"eight", "eight lanes a cell", {"workload_imbalance", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> start(n + 1);
        for (int c = 0; c < n; ++c) {
            unsigned h = hash(c + 5);
            start[c + 1] = start[c] + (h % 32 ? 4 + (h >> 8) % 24 : 100 + (h >> 8) % 200);
        }
        int count = start[n], *offsets = b.copy(start);
        Velocities v;
        for (float **one : {&v.x, &v.y, &v.z}) *one = b.changed<float>(b.random<float>(count, -3, 3), count);
        unsigned seed = 12345;
        b.tolerance = 1e-3;
        return {{"flawed", launch(collisions, n / 128, 128, 0, v, offsets, n, seed)}, {"warp", launch(collisions_shared<32>, n / 8, 256, 0, v, offsets, n, seed)},
            {"eight", launch(collisions_shared<8>, n / 32, 256, 0, v, offsets, n, seed)}};
    });

// --- a sweep of transport: many rays through the cells of a slab ---

constexpr int DEPTH = 256;

__device__ __forceinline__ float through_cell(float &incoming, float source, float sigma, float slope) {
    float mean = __fdividef(source + slope * incoming, sigma + slope);
    incoming = fmaxf(2.f * mean - incoming, 0.f);
    return mean;
}
__global__ void sweep(const float *source, const float *sigma, const float *slopes, float *flux, int rays) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rays) return;
    float incoming = 1.f, slope = slopes[r];
    for (int c = 0; c < DEPTH; ++c) flux[r * DEPTH + c] = through_cell(incoming, source[r * DEPTH + c], sigma[c], slope);
}
__global__ void sweep_by_cell(const float *__restrict__ source, const float *__restrict__ sigma, const float *__restrict__ slopes, float *__restrict__ flux, int rays) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rays) return;
    float incoming = 1.f, slope = slopes[r];
#pragma unroll 8
    for (int c = 0; c < DEPTH; ++c) flux[c * rays + r] = through_cell(incoming, source[c * rays + r], sigma[c], slope);
}
// A warp takes 32 rays, 32 cells at a time: whole lines to and from shared memory.
__global__ void __launch_bounds__(128) sweep_tiles(const float *__restrict__ source, const float *__restrict__ sigma, const float *__restrict__ slopes, float *__restrict__ flux, int rays) {
    __shared__ float tiles[4][32][33];
    int lane = threadIdx.x % 32, first = blockIdx.x * 128 + threadIdx.x / 32 * 32;
    float(*tile)[33] = tiles[threadIdx.x / 32], incoming = 1.f, slope = slopes[first + lane];
    for (int c = 0; c < DEPTH; c += 32) {
#pragma unroll
        for (int r = 0; r < 32; ++r) tile[r][lane] = source[(first + r) * DEPTH + c + lane];
        __syncwarp();
#pragma unroll 8
        for (int k = 0; k < 32; ++k) tile[lane][k] = through_cell(incoming, tile[lane][k], sigma[c + k], slope);
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 32; ++r) flux[(first + r) * DEPTH + c + lane] = tile[r][lane];
        __syncwarp();
    }
}
__global__ void turn(const float *in, float *out, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) out[i % columns * rows + i / columns] = in[i];
}

Study transport("transport_sweep_stored_by_ray", "simulation", 1 << 17, "131072 rays through a slab of 256 cells",
    "lanes are rays, but the cells of a ray lie one after the other: every access in a sector of its own",
    {{"by_cell", "sources and fluxes stored by cell", {"uncoalesced_access"}}, {"tiles", "tiles of 32 rays and 32 cells in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *source = b.random<float>(n * DEPTH, 0, 1), *turned = b.allocate<float>(n * DEPTH), *sigma = b.random<float>(DEPTH, 0.5, 2), *slopes = b.random<float>(n, 0.1, 4);
        float *flux = b.output<float>(n * DEPTH), *by_cell = b.allocate<float>(n * DEPTH);
        launch(turn, n * DEPTH / 256, 256, 0, source, turned, n, DEPTH)();
        return {{"flawed", launch(sweep, n / 128, 128, 0, source, sigma, slopes, flux, n)},
            {"by_cell", launch(sweep_by_cell, n / 128, 128, 0, turned, sigma, slopes, by_cell, n), {}, 1, launch(turn, n * DEPTH / 256, 256, 0, by_cell, flux, DEPTH, n)},
            {"tiles", launch(sweep_tiles, n / 128, 128, 0, source, sigma, slopes, flux, n)}};
    });

// --- a step of WENO of fifth order for Burgers' equation ---

__device__ __forceinline__ float weno(float a, float b, float c, float d, float e) {
    float s0 = 13.f / 12.f * (a - 2 * b + c) * (a - 2 * b + c) + 0.25f * (a - 4 * b + 3 * c) * (a - 4 * b + 3 * c);
    float s1 = 13.f / 12.f * (b - 2 * c + d) * (b - 2 * c + d) + 0.25f * (b - d) * (b - d);
    float s2 = 13.f / 12.f * (c - 2 * d + e) * (c - 2 * d + e) + 0.25f * (3 * c - 4 * d + e) * (3 * c - 4 * d + e);
    float w0 = 0.1f / ((1e-3f + s0) * (1e-3f + s0)), w1 = 0.6f / ((1e-3f + s1) * (1e-3f + s1)), w2 = 0.3f / ((1e-3f + s2) * (1e-3f + s2));
    return (w0 * (2 * a - 7 * b + 11 * c) + w1 * (-b + 5 * c + 2 * d) + w2 * (2 * c + 5 * d - e)) / (6.f * (w0 + w1 + w2));
}
// One quotient in place of four: the weights share a denominator, which falls out.
__device__ __forceinline__ float weno_one_quotient(float a, float b, float c, float d, float e) {
    float s0 = 13.f / 12.f * (a - 2 * b + c) * (a - 2 * b + c) + 0.25f * (a - 4 * b + 3 * c) * (a - 4 * b + 3 * c);
    float s1 = 13.f / 12.f * (b - 2 * c + d) * (b - 2 * c + d) + 0.25f * (b - d) * (b - d);
    float s2 = 13.f / 12.f * (c - 2 * d + e) * (c - 2 * d + e) + 0.25f * (3 * c - 4 * d + e) * (3 * c - 4 * d + e);
    float p0 = (1e-3f + s0) * (1e-3f + s0), p1 = (1e-3f + s1) * (1e-3f + s1), p2 = (1e-3f + s2) * (1e-3f + s2);
    float w0 = 0.1f * p1 * p2, w1 = 0.6f * p0 * p2, w2 = 0.3f * p0 * p1;
    return __fdividef(w0 * (2 * a - 7 * b + 11 * c) + w1 * (-b + 5 * c + 2 * d) + w2 * (2 * c + 5 * d - e), 6.f * (w0 + w1 + w2));
}
// The flux between u[2] and u[3].
template <typename Weno>
__device__ __forceinline__ float face_flux(const float *u, Weno reconstruct) {
    float plus[5], minus[5];
#pragma unroll
    for (int i = 0; i < 5; ++i) plus[i] = 0.5f * (0.5f * u[i] * u[i] + 2.f * u[i]), minus[i] = 0.5f * (0.5f * u[i + 1] * u[i + 1] - 2.f * u[i + 1]);
    return reconstruct(plus[0], plus[1], plus[2], plus[3], plus[4]) + reconstruct(minus[4], minus[3], minus[2], minus[1], minus[0]);
}
__device__ __forceinline__ int wrapped(int x, int n) { return x < 0 ? x + n : x >= n ? x - n : x; }

template <typename Weno>
__device__ __forceinline__ void weno_both(const float *u, float *out, int n, float step, Weno reconstruct) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    const float *row = u + static_cast<size_t>(blockIdx.y) * n;
    float near[7];
#pragma unroll
    for (int i = 0; i < 7; ++i) near[i] = row[wrapped(x + i - 3, n)];
    out[static_cast<size_t>(blockIdx.y) * n + x] = near[3] - step * (face_flux(near + 1, reconstruct) - face_flux(near, reconstruct));
}
__global__ void weno_step(const float *u, float *out, int n, float step) {
    weno_both(u, out, n, step, [](float a, float b, float c, float d, float e) { return weno(a, b, c, d, e); });
}
__global__ void weno_step_quotients(const float *__restrict__ u, float *__restrict__ out, int n, float step) {
    weno_both(u, out, n, step, [](float a, float b, float c, float d, float e) { return weno_one_quotient(a, b, c, d, e); });
}
// Each thread makes the flux of one face; its neighbour's comes through shared memory.
__global__ void __launch_bounds__(256) weno_step_faces(const float *__restrict__ u, float *__restrict__ out, int n, float step) {
    __shared__ float flux[256];
    int x = blockIdx.x * 255 + threadIdx.x - 1;  // the cell left of this thread's face
    const float *row = u + static_cast<size_t>(blockIdx.y) * n;
    float near[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) near[i] = row[wrapped(min(x, n - 1) + i - 2, n)];
    flux[threadIdx.x] = face_flux(near, [](float a, float b, float c, float d, float e) { return weno(a, b, c, d, e); });
    __syncthreads();
    if (threadIdx.x && x < n) out[static_cast<size_t>(blockIdx.y) * n + x] = near[2] - step * (flux[threadIdx.x] - flux[threadIdx.x - 1]);
}

Study burgers("weno_fluxes_of_both_faces", "simulation", 8192, "a step of WENO of fifth order along 4096 rows of 8192 cells",
    "each cell works out the fluxes of both of its faces, four precise quotients a reconstruction",
    {{"faces", "each flux once, shared by its two cells", {"redundant_loads"}}, {"quotients", "one fast quotient a reconstruction", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int rows = 4096;
        float *u = b.random<float>(n * rows, 0, 1), *out = b.output<float>(n * rows);
        float step = 0.1f;
        b.tolerance = 1e-3;
        return {{"flawed", launch(weno_step, dim3(n / 256, rows), 256, 0, u, out, n, step)},
            {"faces", launch(weno_step_faces, dim3(blocks(n, 255), rows), 256, 0, u, out, n, step)},
            {"quotients", launch(weno_step_quotients, dim3(n / 256, rows), 256, 0, u, out, n, step)}};
    });

// --- the anisotropy of a growing crystal with four arms, from the slope of its phase ---

template <typename Anisotropy>
__device__ __forceinline__ void crystal(const float *phase, float *square, float *mixed, int n, Anisotropy anisotropy) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) {
        if (x < n && y < n) square[y * n + x] = mixed[y * n + x] = 0.f;
        return;
    }
    float gx = 0.5f * (phase[y * n + x + 1] - phase[y * n + x - 1]), gy = 0.5f * (phase[(y + 1) * n + x] - phase[(y - 1) * n + x]), cosine, sine;
    anisotropy(gx, gy, cosine, sine);
    float width = 0.01f * (1.f + 0.05f * cosine), slope = -0.01f * 0.05f * 4.f * sine;
    square[y * n + x] = width * width, mixed[y * n + x] = width * slope;
}
__global__ void crystal_angle(const float *phase, float *square, float *mixed, int n) {
    crystal(phase, square, mixed, n, [](float gx, float gy, float &cosine, float &sine) {
        float angle = atan2f(gy, gx);
        cosine = cosf(4.f * (angle - 0.2f)), sine = sinf(4.f * (angle - 0.2f));
    });
}
__global__ void crystal_fast(const float *__restrict__ phase, float *__restrict__ square, float *__restrict__ mixed, int n) {
    crystal(phase, square, mixed, n, [](float gx, float gy, float &cosine, float &sine) {
        float angle = atan2f(gy, gx);
        __sincosf(4.f * (angle - 0.2f), &sine, &cosine);
    });
}
// The angle four times as large comes from squaring the slope twice as a complex number.
__global__ void crystal_algebra(const float *__restrict__ phase, float *__restrict__ square, float *__restrict__ mixed, int n) {
    crystal(phase, square, mixed, n, [](float gx, float gy, float &cosine, float &sine) {
        float length = gx * gx + gy * gy, inverse = length > 0.f ? __fdividef(1.f, length) : 0.f;
        float c2 = length > 0.f ? (gx * gx - gy * gy) * inverse : 1.f, s2 = 2.f * gx * gy * inverse, c4 = c2 * c2 - s2 * s2, s4 = 2.f * c2 * s2;
        cosine = c4 * 0.69670671f + s4 * 0.71735609f, sine = s4 * 0.69670671f - c4 * 0.71735609f;
    });
}

Study dendrite("dendrite_slope_by_its_angle", "simulation", 8192, "width of the interface and its slope for a crystal with four arms, 8192 x 8192 cells",
    "the angle of the slope by atan2, then a precise cosine and a precise sine of four times the angle",
    {{"algebra", "cosine and sine of the fourfold angle by squaring", {"expensive_math"}}, {"fast", "atan2 stays, fast sine and cosine", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *phase = b.random<float>(n * n, 0, 1), *square = b.output<float>(n * n), *mixed = b.output<float>(n * n);
        dim3 grid(n / 32, n / 8), block(32, 8);
        b.tolerance = 1e-3;
        return {{"flawed", launch(crystal_angle, grid, block, 0, phase, square, mixed, n)}, {"algebra", launch(crystal_algebra, grid, block, 0, phase, square, mixed, n)},
            {"fast", launch(crystal_fast, grid, block, 0, phase, square, mixed, n)}};
    });

// --- Conway's game on a torus, a byte a cell ---

__global__ void life(const unsigned char *cells, unsigned char *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) alive += cells[(y + dy + height) % height * width + (x + dx + width) % width];
    out[y * width + x] = alive == 3 || (alive == 2 && cells[y * width + x]);
}
__global__ void life_compared(const unsigned char *__restrict__ cells, unsigned char *__restrict__ out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int columns[3] = {x ? x - 1 : width - 1, x, x + 1 < width ? x + 1 : 0}, rows[3] = {y ? y - 1 : height - 1, y, y + 1 < height ? y + 1 : 0};
    int alive = 0, self = 0;
#pragma unroll
    for (int j = 0; j < 3; ++j)
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            int cell = cells[rows[j] * width + columns[i]];
            if (i == 1 && j == 1) self = cell;
            else alive += cell;
        }
    out[y * width + x] = alive == 3 || (alive == 2 && self);
}
// Four cells a word, added byte by byte: no byte exceeds nine.
__global__ void life_words(const unsigned *__restrict__ cells, unsigned *__restrict__ out, int words, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= words || y >= height) return;
    int left = x ? x - 1 : words - 1, right = x + 1 < words ? x + 1 : 0, rows[3] = {y ? y - 1 : height - 1, y, y + 1 < height ? y + 1 : 0};
    unsigned sum = 0, self = 0;
#pragma unroll
    for (int j = 0; j < 3; ++j) {
        unsigned a = cells[rows[j] * words + left], m = cells[rows[j] * words + x], z = cells[rows[j] * words + right];
        if (j == 1) self = m;
        sum += __funnelshift_l(a, m, 8) + m + __funnelshift_r(m, z, 8);
    }
    // With the cell itself: three, or four of which one is the cell.
    out[y * words + x] = (__vcmpeq4(sum, 0x03030303u) | (__vcmpeq4(sum, 0x04040404u) & __vcmpeq4(self, 0x01010101u))) & 0x01010101u;
}

Study game("life_neighbours_by_remainders", "simulation", 16384, "a step of Conway's game on a torus of 16384 x 8192 cells of a byte",
    "remainders for each of eight neighbours, a byte a load",
    {{"compared", "the edge by comparison, once a row and a column", {"integer_arithmetic"}},
        {"words", "four cells a thread, added as bytes of a word", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int height = n / 2;
        unsigned char *cells = b.random<unsigned char>(n * height, 0, 2), *out = b.output<unsigned char>(n * height);
        return {{"flawed", launch(life, dim3(n / 32, height / 8), dim3(32, 8), 0, cells, out, n, height)},
            {"compared", launch(life_compared, dim3(n / 32, height / 8), dim3(32, 8), 0, cells, out, n, height)},
            {"words", launch(life_words, dim3(n / 128, height / 8), dim3(32, 8), 0, (unsigned *)cells, (unsigned *)out, n / 4, height)}};
    });

// --- energies of 32 replicas of a spin glass ---

constexpr int EDGE = 128;

template <typename Load>
__device__ __forceinline__ void glass(const int *couplings, int *energies, Load load) {
    int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32, energy = 0;
    for (int s = (blockIdx.x * blockDim.x + threadIdx.x) / 32; s < EDGE * EDGE * EDGE; s += warps) {
        int x = s % EDGE, y = s / EDGE % EDGE, z = s / (EDGE * EDGE);
        int ahead[3] = {s - x + (x + 1) % EDGE, s + ((y + 1) % EDGE - y) * EDGE, s + ((z + 1) % EDGE - z) * EDGE * EDGE}, own = load(s, lane);
#pragma unroll
        for (int d = 0; d < 3; ++d) energy -= couplings[s * 3 + d] * own * load(ahead[d], lane);
    }
    atomicAdd(&energies[lane], energy);
}
__global__ void glass_ints(const int *spins, const int *couplings, int *energies) {
    glass(couplings, energies, [=](int s, int lane) { return spins[s * 32 + lane]; });
}
__global__ void glass_bytes(const signed char *__restrict__ spins, const int *__restrict__ couplings, int *__restrict__ energies) {
    glass(couplings, energies, [=](int s, int lane) { return static_cast<int>(spins[s * 32 + lane]); });
}
__global__ void glass_bits(const unsigned *__restrict__ spins, const int *__restrict__ couplings, int *__restrict__ energies) {
    glass(couplings, energies, [=](int s, int lane) { return static_cast<int>(spins[s] >> lane & 1u) * 2 - 1; });
}
__global__ void spread_spins(const unsigned *bits, int *ints, signed char *bytes, int *couplings) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ints[i] = bytes[i] = static_cast<int>(bits[i / 32] >> i % 32 & 1u) * 2 - 1;
    if (i < EDGE * EDGE * EDGE * 3) couplings[i] = static_cast<int>(hash(i) & 1u) * 2 - 1;
}

Study spins("spin_replicas_as_ints", "simulation", 1 << 21, "energies of 32 replicas of a spin glass of 128 x 128 x 128 spins",
    "a spin of one bit takes an int",
    {{"bytes", "a byte a spin", {"narrow_access"}}, {"bits", "the 32 replicas of a spin in the bits of one word", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *bits = b.random<unsigned>(n, 0, 4294967295.0);
        int *ints = b.allocate<int>(n * 32), *couplings = b.allocate<int>(n * 3), *energies = b.output<int>(32, true), grid = 8 * multiprocessors();
        signed char *bytes = b.allocate<signed char>(n * 32);
        launch(spread_spins, n * 32 / 256, 256, 0, bits, ints, bytes, couplings)();
        b.tolerance = 0.0;
        return {{"flawed", launch(glass_ints, grid, 256, 0, ints, couplings, energies)}, {"bytes", launch(glass_bytes, grid, 256, 0, bytes, couplings, energies)},
            {"bits", launch(glass_bits, grid, 256, 0, bits, couplings, energies)}};
    });

// --- Boys' functions of order 0 to 4, which integrals over electrons need ---

constexpr int ORDERS = 5, KNOTS = 312, TERMS = 5;  // knots 0, 0.1, ... 31.1

// The highest order is known; the lower ones follow downward.
__device__ __forceinline__ void store_orders(float highest, float t, float *out, int i, int n) {
    float decay = expf(-t), f = highest;
    out[(ORDERS - 1) * n + i] = f;
#pragma unroll
    for (int m = ORDERS - 2; m >= 0; --m) out[m * n + i] = f = (2.f * t * f + decay) / (2 * m + 1);
}
__global__ void boys(const float *arguments, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = arguments[i], term = 1.f / (2 * ORDERS - 1), sum = term;
    for (int k = 1; k < 200 && term > 1e-7f * sum; ++k) term *= 2.f * t / (2 * (ORDERS + k) - 1), sum += term;
    store_orders(expf(-t) * sum, t, out, i, n);
}
// Far out, the error function is one: order 0 in closed form, the others upward.
__global__ void boys_far(const float *__restrict__ arguments, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = arguments[i];
    if (t > 12.f) {
        float inverse = __fdividef(0.5f, t), decay = __expf(-t), f = 0.88622693f * rsqrtf(t);
        out[i] = f;
#pragma unroll
        for (int m = 1; m < ORDERS; ++m) out[m * n + i] = f = ((2 * m - 1) * f - decay) * inverse;
        return;
    }
    float term = 1.f / (2 * ORDERS - 1), sum = term;
    for (int k = 1; k < 200 && term > 1e-7f * sum; ++k) term *= __fdividef(2.f * t, 2 * (ORDERS + k) - 1), sum += term;
    store_orders(__expf(-t) * sum, t, out, i, n);
}
// Taylor's series about the nearest knot: the derivatives are the next orders.
__global__ void boys_table(const float *__restrict__ arguments, const float *__restrict__ table, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = arguments[i];
    int knot = static_cast<int>(t * 10.f + 0.5f);
    float h = knot * 0.1f - t, f = 0.f;
#pragma unroll
    for (int k = TERMS - 1; k >= 0; --k) f = table[knot * TERMS + k] + f * h / (k + 1);
    store_orders(f, t, out, i, n);
}

Study electron_integrals("boys_series_until_it_ends", "chemistry", 1 << 23, "Boys' functions of five orders for 8388608 arguments of 0 to 31",
    "a series is summed until its terms are small: ten to a hundred quotients, other numbers in each lane",
    {{"table", "a table of derivatives at 312 knots, five terms", {"branch_divergence"}},
        {"far", "a closed form where arguments are large, fast quotients", {"branch_divergence", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> table(KNOTS * TERMS);
        for (int knot = 0; knot < KNOTS; ++knot)
            for (int k = 0; k < TERMS; ++k) {
                double t = 0.1 * knot, term = 1.0 / (2 * (ORDERS - 1 + k) + 1), sum = term;
                for (int j = 1; j < 400; ++j) term *= 2.0 * t / (2 * (ORDERS - 1 + k + j) + 1), sum += term;
                table[knot * TERMS + k] = static_cast<float>(std::exp(-t) * sum);
            }
        float *arguments = b.random<float>(n, 0, 31), *out = b.output<float>(n * ORDERS), *knots = b.copy(table);
        b.tolerance = 1e-3;
        return {{"flawed", launch(boys, n / 256, 256, 0, arguments, out, n)}, {"table", launch(boys_table, n / 256, 256, 0, arguments, knots, out, n)},
            {"far", launch(boys_far, n / 256, 256, 0, arguments, out, n)}};
    });

// --- many small Poisson problems: forty sweeps over patches of 32 x 32 ---

constexpr int SWEEPS = 40;

__global__ void __launch_bounds__(1024) patches(const float *right, float *out) {
    __shared__ float u[34][34];
    int x = threadIdx.x + 1, y = threadIdx.y + 1, at = blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 34 * 34; i += 1024) u[i / 34][i % 34] = 0.f;
    __syncthreads();
    for (int s = 0; s < SWEEPS; ++s) {
        float next = 0.25f * (u[y][x - 1] + u[y][x + 1] + u[y - 1][x] + u[y + 1][x] + right[at]);
        __syncthreads();
        u[y][x] = next;
        __syncthreads();
    }
    out[at] = u[y][x];
}
__global__ void __launch_bounds__(1024) patches_two_buffers(const float *__restrict__ right, float *__restrict__ out) {
    __shared__ float u[2][34][34];
    int x = threadIdx.x + 1, y = threadIdx.y + 1, at = blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 2 * 34 * 34; i += 1024) (&u[0][0][0])[i] = 0.f;
    float known = right[at], next = 0.f;
    __syncthreads();
    for (int s = 0; s < SWEEPS; ++s) {
        float(*from)[34] = u[s % 2];
        u[1 - s % 2][y][x] = next = 0.25f * (from[y][x - 1] + from[y][x + 1] + from[y - 1][x] + from[y + 1][x] + known);
        __syncthreads();
    }
    out[at] = next;
}
// A warp a patch: each lane keeps a column in registers, left and right come by shuffles.
__global__ void __launch_bounds__(128) patches_registers(const float *__restrict__ right, float *__restrict__ out, int count) {
    int lane = threadIdx.x % 32, patch = blockIdx.x * 4 + threadIdx.x / 32;
    if (patch >= count) return;
    float u[32], known[32];
#pragma unroll
    for (int y = 0; y < 32; ++y) u[y] = 0.f, known[y] = right[patch * 1024 + y * 32 + lane];
    for (int s = 0; s < SWEEPS; ++s) {
        float above = 0.f;
#pragma unroll
        for (int y = 0; y < 32; ++y) {
            float a = __shfl_up_sync(~0u, u[y], 1), c = __shfl_down_sync(~0u, u[y], 1), before = u[y];
            a = lane == 0 ? 0.f : a, c = lane == 31 ? 0.f : c;
            u[y] = 0.25f * (a + c + above + (y < 31 ? u[y + 1] : 0.f) + known[y]);
            above = before;
        }
    }
#pragma unroll
    for (int y = 0; y < 32; ++y) out[patch * 1024 + y * 32 + lane] = u[y];
}

Study poisson_patches("patch_sweeps_two_barriers_each", "simulation", 8192, "forty sweeps over each of 8192 patches of 32 x 32 cells",
    "two barriers of 1024 threads a sweep, the right side read again in each",
    {{"two_buffers", "two buffers: one barrier a sweep, the right side in a register", {"barriers", "redundant_loads"}},
        {"registers", "a warp a patch, columns in registers, shuffles", {"barriers", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        float *right = b.random<float>(n * 1024), *out = b.output<float>(n * 1024);
        return {{"flawed", launch(patches, n, dim3(32, 32), 0, right, out)}, {"two_buffers", launch(patches_two_buffers, n, dim3(32, 32), 0, right, out)},
            {"registers", launch(patches_registers, n / 4, 128, 0, right, out, n)}};
    });

// --- forces from tables of potentials, one for each pair of four kinds ---

constexpr int KINDS = 4, ENTRIES = 1024, NEIGHBOURS = 48;
constexpr size_t TABLES = KINDS * KINDS * ENTRIES * sizeof(float2);

template <typename Table>
__device__ __forceinline__ void tabulated(const float4 *atoms, const int *neighbours, float4 *forces, int n, Table table) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 own = atoms[i], total = {};
        int kind = static_cast<int>(own.w) * KINDS;
        for (int k = 0; k < NEIGHBOURS; ++k) {
            float4 other = atoms[neighbours[k * n + i]];
            float x = own.x - other.x, y = own.y - other.y, z = own.z - other.z, square = fmaf(x, x, fmaf(y, y, z * z));
            float place = fminf(square, 0.999f) * ENTRIES;
            float2 entry = table((kind + static_cast<int>(other.w)) * ENTRIES + static_cast<int>(place));
            total.x += entry.y * x, total.y += entry.y * y, total.z += entry.y * z, total.w += entry.x;
        }
        forces[i] = total;
    }
}
template <int threads>
__global__ void __launch_bounds__(threads) tabulated_shared(const float4 *atoms, const int *neighbours, const float2 *table, float4 *forces, int n) {
    extern __shared__ float2 whole[];
    for (int i = threadIdx.x; i < KINDS * KINDS * ENTRIES; i += threads) whole[i] = table[i];
    __syncthreads();
    tabulated(atoms, neighbours, forces, n, [](int i) { return whole[i]; });
}
__global__ void tabulated_cached(const float4 *__restrict__ atoms, const int *__restrict__ neighbours, const float2 *__restrict__ table, float4 *__restrict__ forces, int n) {
    tabulated(atoms, neighbours, forces, n, [=](int i) { return table[i]; });
}

Study tables("tabulated_forces_whole_table_in_shared", "simulation", 1 << 18, "forces from tabulated potentials between 262144 atoms of four kinds, 48 neighbours each",
    "each block keeps all tables, 128 KiB, in shared memory: four warps a multiprocessor",
    {{"cached", "tables through the cache, as many blocks as fit", {"low_occupancy"}}, {"wide", "a block of 1024 threads shares the tables", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> atoms(4 * n);
        std::vector<int> neighbours(n * NEIGHBOURS);
        for (int i = 0; i < 4 * n; ++i) atoms[i] = i % 4 == 3 ? hash(i) % KINDS : (hash(i) % 10000) * 0.7e-4f;
        for (int i = 0; i < n * NEIGHBOURS; ++i) neighbours[i] = (i % n + hash(i) % 2048 + n - 1024) % n;
        float4 *positions = (float4 *)b.copy(atoms);
        float2 *table = (float2 *)b.random<float>(2 * KINDS * KINDS * ENTRIES);
        float *forces = b.output<float>(4 * n);
        int *near = b.copy(neighbours), sms = multiprocessors();
        return {{"flawed", launch(tabulated_shared<128>, sms, 128, TABLES, positions, near, table, (float4 *)forces, n)},
            {"cached", launch(tabulated_cached, n / 256, 256, 0, positions, near, table, (float4 *)forces, n)},
            {"wide", launch(tabulated_shared<1024>, sms, 1024, TABLES, positions, near, table, (float4 *)forces, n)}};
    });

// --- three bit maps of a query meet; nothing is wrong with it ---

__global__ void __launch_bounds__(256) bitmaps(const uint4 *__restrict__ a, const uint4 *__restrict__ b, const uint4 *__restrict__ c, uint4 *__restrict__ out) {
    size_t i = static_cast<size_t>(blockIdx.x) * 512 + threadIdx.x;
    uint4 x[2] = {a[i], a[i + 256]}, y[2] = {b[i], b[i + 256]}, z[2] = {c[i], c[i + 256]};
#pragma unroll
    for (int k = 0; k < 2; ++k) out[i + 256 * k] = {x[k].x & y[k].x & ~z[k].x, x[k].y & y[k].y & ~z[k].y, x[k].z & y[k].z & ~z[k].z, x[k].w & y[k].w & ~z[k].w};
}

Study sound_bitmaps("sound_three_bitmaps", "databases", 1 << 22, "rows that are in two bit maps and not in a third, 536870912 rows", "", {},
    [](Buffers &b, long n) -> Sides {
        unsigned *maps[3];
        for (unsigned *&one : maps) one = b.random<unsigned>(4 * n, 0, 4294967295.0);
        unsigned *out = b.output<unsigned>(4 * n);
        return {{"sound", launch(bitmaps, n / 512, 256, 0, (uint4 *)maps[0], (uint4 *)maps[1], (uint4 *)maps[2], (uint4 *)out)}};
    });

}  // namespace
