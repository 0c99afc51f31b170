// Simulation and its linear algebra: material points, spherical harmonics, Krylov spaces, coarse grids. Each kernel has
// one weakness and two or three ways out; the last one is as it should be.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- material points: mass and momentum of particles onto the 27 grid nodes around each ---

struct Points {
    const float *x[3], *v[3], *c[9];  // positions in cells, velocities, affine velocities
    const float *mass;
};
struct Grid {
    float4 *nodes;  // momentum and mass
    int size;
    __device__ __forceinline__ int index(int x, int y, int z) const { return (z * size + y) * size + x; }
};
struct Spread {
    int base[3];
    float at[3], weight[3][3];
};
// Quadratic splines: the first node of three an axis, how far the particle is from it, and the weights.
__device__ __forceinline__ Spread spread_of(const Points &p, int i) {
    Spread s;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
        float x = p.x[a][i];
        s.base[a] = static_cast<int>(x - 0.5f);
        float f = x - s.base[a];
        s.at[a] = f;
        s.weight[a][0] = 0.5f * (1.5f - f) * (1.5f - f), s.weight[a][1] = 0.75f - (f - 1.f) * (f - 1.f), s.weight[a][2] = 0.5f * (f - 0.5f) * (f - 0.5f);
    }
    return s;
}
// What a particle gives to the node (dx, dy, dz) from its base.
struct Moving {
    float v[3], c[9], mass;
};
__device__ __forceinline__ Moving moving(const Points &p, int i) {
    Moving m;
#pragma unroll
    for (int a = 0; a < 3; ++a) m.v[a] = p.v[a][i];
#pragma unroll
    for (int a = 0; a < 9; ++a) m.c[a] = p.c[a][i];
    m.mass = p.mass[i];
    return m;
}
__device__ __forceinline__ float4 given(const Spread &s, const Moving &m, int dx, int dy, int dz) {
    float w = s.weight[0][dx] * s.weight[1][dy] * s.weight[2][dz] * m.mass, x = dx - s.at[0], y = dy - s.at[1], z = dz - s.at[2];
    return make_float4(w * fmaf(m.c[0], x, fmaf(m.c[1], y, fmaf(m.c[2], z, m.v[0]))), w * fmaf(m.c[3], x, fmaf(m.c[4], y, fmaf(m.c[5], z, m.v[1]))),
        w * fmaf(m.c[6], x, fmaf(m.c[7], y, fmaf(m.c[8], z, m.v[2]))), w);
}

__global__ void __launch_bounds__(128) scatter_points(Points points, Grid grid, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Spread s = spread_of(points, i);
    Moving m = moving(points, i);
#pragma unroll
    for (int dz = 0; dz < 3; ++dz)
#pragma unroll
        for (int dy = 0; dy < 3; ++dy)
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
                float4 g = given(s, m, dx, dy, dz);
                float *node = reinterpret_cast<float *>(grid.nodes + grid.index(s.base[0] + dx, s.base[1] + dy, s.base[2] + dz));
                atomicAdd(node, g.x);
                atomicAdd(node + 1, g.y);
                atomicAdd(node + 2, g.z);
                atomicAdd(node + 3, g.w);
            }
}
// One atomic of four floats a node.
__global__ void __launch_bounds__(128) scatter_points_in_fours(Points points, Grid grid, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Spread s = spread_of(points, i);
    Moving m = moving(points, i);
#pragma unroll
    for (int dz = 0; dz < 3; ++dz)
#pragma unroll
        for (int dy = 0; dy < 3; ++dy)
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) atomicAdd(grid.nodes + grid.index(s.base[0] + dx, s.base[1] + dy, s.base[2] + dz), given(s, m, dx, dy, dz));
}
// Particles come sorted by cell: lanes of one cell add up first, and the first of them alone goes to the grid.
__global__ void __launch_bounds__(128) scatter_points_by_cells(Points points, Grid grid, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool there = i < count;
    Spread s = spread_of(points, there ? i : count - 1);
    Moving m = moving(points, there ? i : count - 1);
    if (!there) m.mass = 0.f;
    int base = grid.index(s.base[0], s.base[1], s.base[2]), before = __shfl_up_sync(~0u, base, 1);
    bool first = lane == 0 || base != before;
    unsigned firsts = __ballot_sync(~0u, first), after = lane == 31 ? 0 : firsts >> (lane + 1);
    int left = after ? __ffs(after) - 1 : 31 - lane;  // how many lanes of this cell follow
    int most = __reduce_max_sync(~0u, left);
#pragma unroll
    for (int dz = 0; dz < 3; ++dz)
#pragma unroll
        for (int dy = 0; dy < 3; ++dy)
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
                float4 g = given(s, m, dx, dy, dz);
                for (int offset = 1; offset <= most; offset *= 2) {
                    float4 o = make_float4(__shfl_down_sync(~0u, g.x, offset), __shfl_down_sync(~0u, g.y, offset), __shfl_down_sync(~0u, g.z, offset), __shfl_down_sync(~0u, g.w, offset));
                    if (offset <= left) g.x += o.x, g.y += o.y, g.z += o.z, g.w += o.w;
                }
                if (first) atomicAdd(grid.nodes + base + grid.index(dx, dy, dz), g);
            }
}

Study points("material_points_four_atomics_a_node", "simulation", 1 << 19, "mass and momentum of 524288 material points onto the 27 nodes around each",
    "108 atomics a particle, and the eight or so particles of a cell all meet at the same nodes",
    {{"in_fours", "one atomic of four floats a node", {"global_atomics"}},
        {"by_cells", "sums over the lanes of a cell by shuffles, then one atomic of four floats a node", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = 48, filled = 40;  // cells 3 ... 42 of each axis hold particles
        auto draw = [](unsigned i) { return static_cast<float>(pairs::hash(i) * 0x1p-32); };
        std::vector<std::pair<int, unsigned>> order(n);
        std::vector<float> x[3];
        auto place = [&](unsigned i, int a) { return 3.f + std::min(draw(3 * i + a) * filled, filled - 0.01f); };
        for (unsigned i = 0; i < n; ++i) {
            int cell = 0;
            for (int a = 2; a >= 0; --a) cell = cell * size + static_cast<int>(place(i, a) - 0.5f);
            order[i] = {cell, i};
        }
        std::sort(order.begin(), order.end());
        Points p;
        for (int a = 0; a < 3; ++a) {
            for (auto &entry : order) x[a].push_back(place(entry.second, a));
            p.x[a] = b.copy(x[a]), p.v[a] = b.random<float>(n);
        }
        for (int a = 0; a < 9; ++a) p.c[a] = b.random<float>(n);
        p.mass = b.random<float>(n, 0.5, 1.5);
        Grid grid{reinterpret_cast<float4 *>(b.output<float>(4 * size * size * size, true)), size};
        return {{"flawed", launch(scatter_points, blocks(n, 128), 128, 0, p, grid, n)},
            {"in_fours", launch(scatter_points_in_fours, blocks(n, 128), 128, 0, p, grid, n)},
            {"by_cells", launch(scatter_points_by_cells, blocks(n, 128), 128, 0, p, grid, n)}};
    });

// --- spherical harmonics: from coefficients to Fourier waves along each latitude ---

// Of the Legendre functions of order m: P of the next degree is up * sine * P - down * P of the last.
struct Legendre {
    const float *up, *down;  // [degree above m][m]
    const float *start;      // [latitude][m]
    const float *sine;       // of the latitudes, from pole to pole
    int orders, degrees, latitudes;
};
__global__ void __launch_bounds__(128) synthesise(Legendre t, const float2 *coefficients, float2 *waves) {
    int m = blockIdx.x * blockDim.x + threadIdx.x, latitude = blockIdx.y;
    if (m >= t.orders) return;
    float sine = t.sine[latitude], now = t.start[latitude * t.orders + m], last = 0.f;
    float2 sum = make_float2(0.f, 0.f);
    for (int k = 0; k < t.degrees; ++k) {
        float2 c = coefficients[k * t.orders + m];
        sum.x = fmaf(c.x, now, sum.x), sum.y = fmaf(c.y, now, sum.y);
        float next = fmaf(t.up[k * t.orders + m] * sine, now, -t.down[k * t.orders + m] * last);
        last = now, now = next;
    }
    waves[latitude * t.orders + m] = sum;
}
// Four latitudes a thread.
__global__ void __launch_bounds__(128) synthesise_four(Legendre t, const float2 *__restrict__ coefficients, float2 *__restrict__ waves) {
    int m = blockIdx.x * blockDim.x + threadIdx.x, latitude = 4 * blockIdx.y;
    if (m >= t.orders) return;
    float sine[4], now[4], last[4] = {};
    float2 sum[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) sine[j] = __ldg(t.sine + latitude + j), now[j] = __ldg(t.start + (latitude + j) * t.orders + m);
#pragma unroll 4
    for (int k = 0; k < t.degrees; ++k) {
        float2 c = coefficients[k * t.orders + m];
        float up = __ldg(t.up + k * t.orders + m), down = __ldg(t.down + k * t.orders + m);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            sum[j].x = fmaf(c.x, now[j], sum[j].x), sum[j].y = fmaf(c.y, now[j], sum[j].y);
            float next = fmaf(up * sine[j], now[j], -down * last[j]);
            last[j] = now[j], now[j] = next;
        }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) waves[(latitude + j) * t.orders + m] = sum[j];
}
// North and south together: even degrees above m are alike, odd ones opposite.
__global__ void __launch_bounds__(128) synthesise_mirrored(Legendre t, const float2 *__restrict__ coefficients, float2 *__restrict__ waves) {
    int m = blockIdx.x * blockDim.x + threadIdx.x, latitude = blockIdx.y, mirrored = t.latitudes - 1 - latitude;
    if (m >= t.orders) return;
    float sine = __ldg(t.sine + latitude), now = __ldg(t.start + latitude * t.orders + m), last = 0.f;
    float2 even = make_float2(0.f, 0.f), odd = even;
#pragma unroll 2
    for (int k = 0; k < t.degrees; k += 2) {
        int at = k * t.orders + m;
        float2 c = coefficients[at], d = coefficients[at + t.orders];
        even.x = fmaf(c.x, now, even.x), even.y = fmaf(c.y, now, even.y);
        float next = fmaf(__ldg(t.up + at) * sine, now, -__ldg(t.down + at) * last);
        odd.x = fmaf(d.x, next, odd.x), odd.y = fmaf(d.y, next, odd.y);
        last = next, now = fmaf(__ldg(t.up + at + t.orders) * sine, next, -__ldg(t.down + at + t.orders) * now);
    }
    waves[latitude * t.orders + m] = make_float2(even.x + odd.x, even.y + odd.y);
    waves[mirrored * t.orders + m] = make_float2(even.x - odd.x, even.y - odd.y);
}

Study harmonics("harmonics_coefficients_again_each_latitude", "simulation", 512, "spherical harmonics of 384 orders and 384 degrees each summed at 512 latitudes",
    "a thread an order and latitude: recurrence and coefficients are loaded anew for each of 512 latitudes",
    {{"four", "four latitudes a thread", {"redundant_loads", "instruction_latency"}},
        {"mirrored", "each northern latitude with its southern one: half of the recurrences", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int orders = 384, degrees = 384, latitudes = n;
        std::vector<float> up(degrees * orders), down(degrees * orders), start(latitudes * orders), sine(latitudes);
        auto epsilon = [](double l, double m) { return std::sqrt((l * l - m * m) / (4 * l * l - 1)); };
        for (int k = 0; k < degrees; ++k)
            for (int m = 0; m < orders; ++m) {
                double above = epsilon(m + k + 1, m);
                up[k * orders + m] = 1 / above, down[k * orders + m] = m + k ? epsilon(m + k, m) / above : 0;
            }
        for (int j = 0; j < latitudes; ++j) {
            double s = (2.0 * j + 1 - latitudes) / latitudes, p = std::sqrt(0.5);
            sine[j] = s;
            for (int m = 0; m < orders; ++m) start[j * orders + m] = p, p *= std::sqrt((2 * m + 3) / (2.0 * m + 2) * (1 - s * s));
        }
        Legendre t{b.copy(up), b.copy(down), b.copy(start), b.copy(sine), orders, degrees, latitudes};
        float2 *coefficients = reinterpret_cast<float2 *>(b.random<float>(2 * degrees * orders));
        float2 *waves = reinterpret_cast<float2 *>(b.output<float>(2 * latitudes * orders));
        b.tolerance = 1e-3;
        return {{"flawed", launch(synthesise, dim3(orders / 128, latitudes), 128, 0, t, coefficients, waves)},
            {"four", launch(synthesise_four, dim3(orders / 128, latitudes / 4), 128, 0, t, coefficients, waves)},
            {"mirrored", launch(synthesise_mirrored, dim3(orders / 128, latitudes / 2), 128, 0, t, coefficients, waves)}};
    });

// --- the solution of a Krylov method from its basis: x += V y ---

struct Basis {
    const float *data;
    size_t pitch;
    int vectors;
    __device__ __forceinline__ const float *operator[](int k) const { return data + k * pitch; }
};

__global__ void __launch_bounds__(256) update_solution(Basis basis, const float *y, float *x, int n) {
    for (int k = 0; k < basis.vectors; ++k) {
        const float *v = basis[k];
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += y[k] * v[i];
    }
}
// All vectors of an element at once.
__global__ void __launch_bounds__(256) update_solution_at_once(Basis basis, const float *__restrict__ y, float *__restrict__ x, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float sum = x[i];
#pragma unroll 5
    for (int k = 0; k < basis.vectors; ++k) sum = fmaf(__ldg(y + k), __ldg(basis[k] + i), sum);
    x[i] = sum;
}
// Four elements a thread.
__global__ void __launch_bounds__(256) update_solution_by_fours(Basis basis, const float *__restrict__ y, float4 *__restrict__ x, int fours) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= fours) return;
    float4 sum = x[i];
#pragma unroll 5
    for (int k = 0; k < basis.vectors; ++k) {
        float4 v = __ldg(reinterpret_cast<const float4 *>(basis[k]) + i);
        float c = __ldg(y + k);
        sum.x = fmaf(c, v.x, sum.x), sum.y = fmaf(c, v.y, sum.y), sum.z = fmaf(c, v.z, sum.z), sum.w = fmaf(c, v.w, sum.w);
    }
    x[i] = sum;
}

Study krylov("krylov_update_vector_by_vector", "linear_algebra", 1 << 20, "a solution of 1048576 unknowns from 20 basis vectors",
    "one pass over the solution for each basis vector: it is read and written 20 times",
    {{"at_once", "a thread an element, all vectors in one sum", {"redundant_loads", "memory_latency"}},
        {"by_fours", "the same with four elements a thread", {"redundant_loads", "memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        Basis basis{b.random<float>(20 * n), static_cast<size_t>(n), 20};
        const float *y = b.random<float>(20), *initial = b.random<float>(n);
        float *x = b.changed(initial, n);
        return {{"flawed", launch(update_solution, 4 * multiprocessors(), 256, 0, basis, y, x, n)},
            {"at_once", launch(update_solution_at_once, blocks(n, 256), 256, 0, basis, y, x, n)},
            {"by_fours", launch(update_solution_by_fours, blocks(n / 4, 256), 256, 0, basis, y, reinterpret_cast<float4 *>(x), n / 4)}};
    });

// --- the coarsest grid of a multigrid method: many weighted Jacobi sweeps over 64 x 64 points ---

constexpr int COARSE = 64, SWEEPS = 48;

__global__ void sweep_coarse(const float *u, const float *f, float *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, i = y * COARSE + x;
    if (x >= COARSE || y >= COARSE) return;
    float sum = f[i];
    if (x > 0) sum += u[i - 1];
    if (x < COARSE - 1) sum += u[i + 1];
    if (y > 0) sum += u[i - COARSE];
    if (y < COARSE - 1) sum += u[i + COARSE];
    out[i] = 0.2f * u[i] + 0.2f * sum;
}
// One block does all sweeps: four points a thread, the grid in shared memory with zeros around it.
__global__ void __launch_bounds__(1024) sweep_coarse_in_one_block(const float *__restrict__ u, const float *__restrict__ f, float *__restrict__ out) {
    __shared__ float grids[2][COARSE + 2][COARSE + 2];
    int x = threadIdx.x % COARSE, first = threadIdx.x / COARSE * 4;
    for (int i = threadIdx.x; i < 2 * (COARSE + 2) * (COARSE + 2); i += 1024) (&grids[0][0][0])[i] = 0.f;
    __syncthreads();
    float own[4], right[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) grids[0][first + k + 1][x + 1] = own[k] = u[(first + k) * COARSE + x], right[k] = f[(first + k) * COARSE + x];
    __syncthreads();
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        float(*from)[COARSE + 2] = grids[sweep % 2], (*to)[COARSE + 2] = grids[(sweep + 1) % 2];
        float above = from[first][x + 1], below = from[first + 5][x + 1], old[4] = {own[0], own[1], own[2], own[3]};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float sum = right[k] + from[first + k + 1][x] + from[first + k + 1][x + 2] + (k ? old[k - 1] : above) + (k < 3 ? old[k + 1] : below);
            to[first + k + 1][x + 1] = own[k] = 0.2f * old[k] + 0.2f * sum;
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[(first + k) * COARSE + x] = own[k];
}
// Eight sweeps a launch: blocks of 16 x 16 points with eight more at each side, which they compute themselves.
constexpr int AHEAD = 8, OWN = 16, WIDE = OWN + 2 * AHEAD;

__global__ void __launch_bounds__(WIDE *WIDE) sweep_coarse_eight(const float *__restrict__ u, const float *__restrict__ f, float *__restrict__ out) {
    __shared__ float grids[2][WIDE + 2][WIDE + 2];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * OWN + tx - AHEAD, y = blockIdx.y * OWN + ty - AHEAD;
    for (int i = ty * WIDE + tx; i < 2 * (WIDE + 2) * (WIDE + 2); i += WIDE * WIDE) (&grids[0][0][0])[i] = 0.f;
    bool inside = x >= 0 && x < COARSE && y >= 0 && y < COARSE;
    float own = inside ? u[y * COARSE + x] : 0.f, right = inside ? f[y * COARSE + x] : 0.f;
    __syncthreads();
    grids[0][ty + 1][tx + 1] = own;
    __syncthreads();
#pragma unroll
    for (int sweep = 0; sweep < AHEAD; ++sweep) {
        float(*from)[WIDE + 2] = grids[sweep % 2], (*to)[WIDE + 2] = grids[(sweep + 1) % 2];
        if (inside) own = 0.2f * own + 0.2f * (right + from[ty + 1][tx] + from[ty + 1][tx + 2] + from[ty][tx + 1] + from[ty + 2][tx + 1]);
        to[ty + 1][tx + 1] = own;
        __syncthreads();
    }
    if (tx >= AHEAD && tx < AHEAD + OWN && ty >= AHEAD && ty < AHEAD + OWN) out[y * COARSE + x] = own;
}

Study coarsest("coarsest_grid_a_launch_each_sweep", "simulation", SWEEPS, "48 weighted Jacobi sweeps over 64 x 64 points",
    "a launch a sweep, of 16 blocks that have a thousand instructions to do",
    {{"in_one_block", "all sweeps in one block, the grid in shared memory", {"launch_overhead"}},
        {"eight", "eight sweeps a launch on overlapping tiles", {"launch_overhead"}}},
    [](Buffers &b, long) -> Sides {
        const int count = COARSE * COARSE;
        const float *u = b.random<float>(count), *f = b.random<float>(count);
        float *out = b.output<float>(count), *other = b.allocate<float>(count);
        dim3 grid(COARSE / 16, COARSE / 16), block(16, 16), wide(WIDE, WIDE);
        auto sweeps = [=] {
            for (int s = 0; s < SWEEPS; ++s) sweep_coarse<<<grid, block>>>(s == 0 ? u : s % 2 ? other : out, f, s % 2 ? out : other);
        };
        auto eights = [=] {
            for (int s = 0; s < SWEEPS / AHEAD; ++s) sweep_coarse_eight<<<grid, wide>>>(s == 0 ? u : s % 2 ? other : out, f, s % 2 ? out : other);
        };
        return {{"flawed", sweeps, launch(sweep_coarse, grid, block, 0, u, f, out), SWEEPS}, {"in_one_block", launch(sweep_coarse_in_one_block, 1, 1024, 0, u, f, out)},
            {"eight", eights, launch(sweep_coarse_eight, grid, wide, 0, u, f, out), SWEEPS / AHEAD}};
    });

// --- as it should be: the scattering of a molecule by Debye's sum over all pairs of atoms ---

constexpr int WAVES = 64, TOGETHER = 32;

// A thread an atom and 32 of the wave numbers, whose sines follow from three; atoms of a tile pass through shared memory.
__global__ void __launch_bounds__(128) debye_sums(const float4 *__restrict__ atoms, float *__restrict__ sums, float step, int count) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 own = atoms[i];
    float q = step * static_cast<float>(TOGETHER * blockIdx.y + 1), sum[TOGETHER] = {};
    for (int first = 0; first < count; first += 128) {
        tile[threadIdx.x] = atoms[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 128; ++j) {
            float4 other = tile[j];
            float x = own.x - other.x, y = own.y - other.y, z = own.z - other.z, squared = fmaf(x, x, fmaf(y, y, fmaf(z, z, 1e-8f)));
            float inverse = rsqrtf(squared), r = squared * inverse, small = step * r, c = 2.f * __cosf(small);
            float before = other.w * inverse * __sinf(fmaf(q, r, -small)), at = other.w * inverse * __sinf(q * r);
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                sum[k] += at;
                float next = fmaf(c, at, -before);
                before = at, at = next;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) sums[(TOGETHER * blockIdx.y + k) * count + i] = own.w * sum[k] / fmaf(k, step, q);
}

Study debye("sound_debye_sums", "simulation", 16896, "scattering of each of 16896 atoms at 64 wave numbers, all pairs", "", {},
    [](Buffers &b, long n) -> Sides {
        const float4 *atoms = reinterpret_cast<const float4 *>(b.random<float>(4 * n, 0.2, 20));
        float *sums = b.output<float>(WAVES * n);
        return {{"sound", launch(debye_sums, dim3(n / 128, WAVES / TOGETHER), 128, 0, atoms, sums, 0.05f, n)}};
    });

}  // namespace
