// Plasma, molecules in water, neutrinos, reads of a genome and cells of a tissue.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- charge of particles on the corners of their cells; particles are sorted by cells ---

struct Plasma {
    const float4 *particles;  // place in units of a cell, charge
    int nx, ny, count;
    __device__ int cell(float4 p) const { return (static_cast<int>(p.z) * ny + static_cast<int>(p.y)) * nx + static_cast<int>(p.x); }
    __device__ int corner(int cell, int k) const { return cell + (k & 1) + (k >> 1 & 1) * nx + (k >> 2) * nx * ny; }
};
__device__ __forceinline__ void corner_shares(float4 p, float *shares) {
    const float x = p.x - floorf(p.x), y = p.y - floorf(p.y), z = p.z - floorf(p.z);
#pragma unroll
    for (int k = 0; k < 8; k++) shares[k] = p.w * (k & 1 ? x : 1.0f - x) * (k & 2 ? y : 1.0f - y) * (k & 4 ? z : 1.0f - z);
}

__global__ void __launch_bounds__(256) deposit_charge(Plasma plasma, float *__restrict__ density) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= plasma.count) return;
    const float4 p = plasma.particles[i];
    float shares[8];
    corner_shares(p, shares);
    const int cell = plasma.cell(p);
#pragma unroll
    for (int k = 0; k < 8; k++) atomicAdd(density + plasma.corner(cell, k), shares[k]);
}
// Neighbouring lanes of one cell are added up by shuffles; the first of them adds the sums.
__global__ void __launch_bounds__(256) deposit_charge_runs(Plasma plasma, float *__restrict__ density) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const bool there = i < plasma.count;
    const float4 p = there ? plasma.particles[i] : make_float4(0, 0, 0, 0);
    float shares[8];
    corner_shares(p, shares);
    const int cell = there ? plasma.cell(p) : -1;
    const int before = __shfl_up_sync(~0u, cell, 1);
    const unsigned heads = __ballot_sync(~0u, lane == 0 || before != cell);
    const unsigned later = lane == 31 ? 0 : heads & (~0u << (lane + 1));
    const int end = later ? __ffs(later) - 1 : 32;  // of this lane's run
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const float other = __shfl_down_sync(~0u, shares[k], d);
            if (lane + d < end) shares[k] += other;
        }
    }
    if (there && (heads >> lane & 1)) {
#pragma unroll
        for (int k = 0; k < 8; k++) atomicAdd(density + plasma.corner(cell, k), shares[k]);
    }
}
// Eight threads walk the particles of a cell, a corner each.
__global__ void __launch_bounds__(256) deposit_charge_cells(Plasma plasma, const int *__restrict__ starts, float *__restrict__ density, int cells) {
    const int cell = (blockIdx.x * 256 + threadIdx.x) / 8, k = threadIdx.x % 8;
    if (cell >= cells) return;
    float sum = 0.0f;
    const int end = starts[cell + 1];
#pragma unroll 4
    for (int i = starts[cell]; i < end; i++) {
        const float4 p = plasma.particles[i];
        const float x = p.x - floorf(p.x), y = p.y - floorf(p.y), z = p.z - floorf(p.z);
        sum += p.w * (k & 1 ? x : 1.0f - x) * (k & 2 ? y : 1.0f - y) * (k & 4 ? z : 1.0f - z);
    }
    if (sum != 0.0f) atomicAdd(density + plasma.corner(cell, k), sum);
}

Study charge_deposit("charge_eight_atomics_a_particle", "physics", 1 << 22, "charge of 4194304 particles, sorted by cells, on a grid of 128 x 64 x 65 corners",
    "each particle adds to eight corners by atomics, which its neighbours in the warp do, too",
    {{"runs", "lanes of one cell are added up by shuffles first", {"global_atomics"}}, {"cells", "eight threads walk the particles of a cell, a corner each", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int NX = 128, NY = 64;
        const int nz = std::max(1L, n / (NX * NY * 8)), rows = NX * NY, cells = nz * rows;
        std::vector<float4> particles(n);
        std::vector<int> starts(cells + 1);
        long i = 0;
        for (int cell = 0, used = 0; cell < cells; cell++) {
            starts[cell] = static_cast<int>(i);
            const int x = cell % NX, y = cell / NX % NY, z = cell / rows;
            if (x == NX - 1 || y == NY - 1) continue;  // the last corners belong to no cell
            const int many = 1 + hash(cell) % 16;
            for (int k = 0; k < many && i < n; k++, i++, used += 3)
                particles[i] = {x + (hash(used) >> 8) / 16777216.0f * 0.999f, y + (hash(used + 1) >> 8) / 16777216.0f * 0.999f, z + (hash(used + 2) >> 8) / 16777216.0f * 0.999f, hash(used + 7) % 2 ? 1.0f : 0.5f};
        }
        starts[cells] = static_cast<int>(i);
        const Plasma plasma{b.copy(particles), NX, NY, static_cast<int>(i)};
        const int *from = b.copy(starts);
        float *density = b.output<float>(static_cast<size_t>(rows) * (nz + 2), true);
        return {{"flawed", launch(deposit_charge, blocks(i, 256), 256, 0, plasma, density)}, {"runs", launch(deposit_charge_runs, blocks(i, 256), 256, 0, plasma, density)},
            {"cells", launch(deposit_charge_cells, blocks(cells * 8L, 256), 256, 0, plasma, from, density, cells)}};
    });

// --- energy of charges in water: pairs of atoms with a radius each ---

struct Precise {
    static __device__ __forceinline__ float term(float4 p, float a, float4 q, float b) {
        const float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z, square = x * x + y * y + z * z, product = a * b;
        return q.w / sqrtf(square + product * expf(-square / (4.0f * product)));
    }
    static __device__ __forceinline__ float form(float radius) { return radius; }
};
struct Fast {
    static __device__ __forceinline__ float term(float4 p, float a, float4 q, float b) {
        const float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z, square = x * x + y * y + z * z, product = a * b;
        return q.w * rsqrtf(square + product * __expf(__fdividef(-0.25f * square, product)));
    }
    static __device__ __forceinline__ float form(float radius) { return radius; }
};
// The inverse of a radius is taken once: products in the place of quotients.
struct Inverse {
    static __device__ __forceinline__ float term(float4 p, float2 a, float4 q, float2 b) {
        const float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z, square = x * x + y * y + z * z;
        return q.w * rsqrtf(square + a.x * b.x * expf(-0.25f * square * (a.y * b.y)));
    }
    static __device__ __forceinline__ float2 form(float radius) { return {radius, 1.0f / radius}; }
};

template <typename Math>
__global__ void __launch_bounds__(128) water_energy(const float4 *__restrict__ atoms, const float *__restrict__ radii, float *__restrict__ out, int count) {
    using Form = decltype(Math::form(0.0f));
    __shared__ float4 tile[128];
    __shared__ Form forms[128];
    const int i = blockIdx.x * 128 + threadIdx.x, share = count / gridDim.y;
    const float4 own = atoms[i];
    const Form form = Math::form(radii[i]);
    float sum = 0.0f;
    for (int first = blockIdx.y * share; first < static_cast<int>(blockIdx.y + 1) * share; first += 128) {
        tile[threadIdx.x] = atoms[first + threadIdx.x];
        forms[threadIdx.x] = Math::form(radii[first + threadIdx.x]);
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 128; j++) sum += Math::term(own, form, tile[j], forms[j]);
        __syncthreads();
    }
    out[static_cast<size_t>(blockIdx.y) * count + i] = own.w * sum;
}

Study water("solvent_pairs_quotients_and_roots", "molecules", 16384, "polarisation of water by all pairs of 16384 charges with radii",
    "two precise quotients, a root and an exponential for each pair",
    {{"fast", "the hardware's exponential, quotient and inverse root", {"expensive_math"}}, {"inverse", "inverse radii taken once, an inverse root, products", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *atoms = reinterpret_cast<const float4 *>(b.random<float>(n * 4, 0, 40));
        const float *radii = b.random<float>(n, 1.2, 3.5);
        float *out = b.output<float>(n * 8);
        b.tolerance = 1e-4;
        const dim3 grid(blocks(n, 128), 8);
        return {{"flawed", launch(water_energy<Precise>, grid, 128, 0, atoms, radii, out, n)}, {"fast", launch(water_energy<Fast>, grid, 128, 0, atoms, radii, out, n)}, {"inverse", launch(water_energy<Inverse>, grid, 128, 0, atoms, radii, out, n)}};
    });

// --- neutrinos: how likely a muon's is an electron's after some way, three kinds ---

struct Mixing {
    double real[3], imaginary[3], masses[3];  // of the pairs 21, 31, 32; differences of squared masses in eV^2
};
constexpr double PHASE = 1.26693268;  // of a kilometre and eV^2 by GeV

__global__ void __launch_bounds__(256) oscillate(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Mixing m, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];  // way, energy
    double likely = 0.0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double phase = PHASE * m.masses[k] * event.x / event.y, s = sin(phase);
        likely += -4.0 * m.real[k] * s * s + 2.0 * m.imaginary[k] * sin(2.0 * phase);
    }
    out[i] = static_cast<float>(likely);
}
__global__ void __launch_bounds__(256) oscillate_float(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Mixing m, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];
    const float way = static_cast<float>(PHASE) * event.x / event.y;
    float likely = 0.0f;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        float s, c;
        sincosf(static_cast<float>(m.masses[k]) * way, &s, &c);
        likely += 4.0f * s * (static_cast<float>(m.imaginary[k]) * c - static_cast<float>(m.real[k]) * s);
    }
    out[i] = likely;
}
// The phase in FP64, in half turns, of which only the part beyond whole ones goes on.
__global__ void __launch_bounds__(256) oscillate_reduced(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Mixing m, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];
    const double way = PHASE * 0.31830988618379067 * event.x / event.y;
    float likely = 0.0f;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double turns = m.masses[k] * way;
        float s, c;
        sincospif(static_cast<float>(turns - rint(turns)), &s, &c);
        likely += 4.0f * s * (static_cast<float>(m.imaginary[k]) * c - static_cast<float>(m.real[k]) * s);
    }
    out[i] = likely;
}

Study neutrinos("neutrino_mixing_six_sines_in_double", "physics", 1 << 23, "probability that a neutrino has changed its kind, 8388608 events of a way and an energy each",
    "phases and six sines in FP64 for a probability that is stored as a float",
    {{"float", "phases, sines and cosines in FP32", {"double_precision"}}, {"reduced", "the phase in FP64, its part of a turn in FP32", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> events(n);
        for (long i = 0; i < n; i++) events[i] = {295.0f + hash(static_cast<unsigned>(i)) % 1000, 0.3f + (hash(static_cast<unsigned>(i) + 9) % 10000) * 5e-4f};
        const float2 *in = reinterpret_cast<const float2 *>(b.copy(events));
        const Mixing m{{-0.055, -0.021, 0.019}, {0.0085, -0.0085, 0.0085}, {7.42e-5, 2.51e-3, 2.436e-3}};
        float *out = b.output<float>(n);
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, in, out, m, n); };
        b.tolerance = 1e-3;
        return {{"flawed", side(oscillate)}, {"float", side(oscillate_float)}, {"reduced", side(oscillate_reduced)}};
    });

// --- anchors of a read joined to chains: each looks at the 64 before it ---

constexpr int LOOK_BACK = 64, SEED = 15;

struct Anchors {
    const int2 *places;  // in the genome (ascending), in the read
    const int *starts;
    int reads;
};
// What an anchor's chain is worth when the other anchor comes before it.
__device__ __forceinline__ int joined(int2 later, int2 earlier, int worth) {
    const int x = later.x - earlier.x, y = later.y - earlier.y, skew = abs(x - y);
    return x > 0 && y > 0 && skew < 500 ? worth + min(min(x, y), SEED) - (skew >> 3) - (skew ? (31 - __clz(skew)) / 2 : 0) : SEED;
}

__global__ void __launch_bounds__(LOOK_BACK) chain(Anchors a, int *__restrict__ out) {
    __shared__ int worth[LOOK_BACK], best[LOOK_BACK];
    __shared__ int2 place[LOOK_BACK];
    const int first = a.starts[blockIdx.x], count = a.starts[blockIdx.x + 1] - first, t = threadIdx.x;
    for (int i = 0; i < count; i++) {
        const int2 own = a.places[first + i];
        const int slot = (i - 1 - t + LOOK_BACK) % LOOK_BACK;
        best[t] = t < i ? joined(own, place[slot], worth[slot]) : SEED;
        __syncthreads();
        for (int d = LOOK_BACK / 2; d; d /= 2) {
            if (t < d) best[t] = max(best[t], best[t + d]);
            __syncthreads();
        }
        if (t == 0) worth[i % LOOK_BACK] = best[0], place[i % LOOK_BACK] = own, out[first + i] = best[0];
        __syncthreads();
    }
}
// A warp a read, two of the earlier anchors a lane, the best by one instruction.
__global__ void __launch_bounds__(128) chain_warp(Anchors a, int *__restrict__ out) {
    const int read = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (read >= a.reads) return;
    const int first = a.starts[read], count = a.starts[read + 1] - first;
    int2 near = {}, far = {};  // anchors of a number that leaves the lane's when divided by 32: the last one and the one before it
    int near_worth = 0, far_worth = 0;
    int2 own = count ? a.places[first] : int2{};
    for (int i = 0; i < count; i++) {
        const int2 next = i + 1 < count ? a.places[first + i + 1] : int2{};
        const int last = i - 1 - (i - 1 - lane & 31);  // number of `near`
        int best = last >= 0 ? joined(own, near, near_worth) : SEED;
        if (last >= 32) best = max(best, joined(own, far, far_worth));
        best = __reduce_max_sync(~0u, best);
        if (lane == i % 32) far = near, far_worth = near_worth, near = own, near_worth = best, out[first + i] = best;
        own = next;
    }
}
// Lanes keep what the 64 anchors to come are worth by now: a finished one is sent to all of them.
__global__ void __launch_bounds__(128) chain_forward(Anchors a, int *__restrict__ out) {
    const int read = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (read >= a.reads) return;
    const int first = a.starts[read], count = a.starts[read + 1] - first;
    const auto place = [&](int i) { return i < count ? a.places[first + i] : int2{}; };
    int2 near = place(lane), far = place(lane + 32);
    int near_worth = SEED, far_worth = SEED;
    for (int i = 0; i < count; i++) {
        const int2 done = {__shfl_sync(~0u, near.x, i % 32), __shfl_sync(~0u, near.y, i % 32)};
        const int worth = __shfl_sync(~0u, near_worth, i % 32);
        if (lane == i % 32) {
            out[first + i] = worth;
            near = far, near_worth = far_worth, far = place(i + 64), far_worth = SEED;
        }
        near_worth = max(near_worth, joined(near, done, worth));
        far_worth = max(far_worth, joined(far, done, worth));
    }
}

Study chains("anchors_chained_by_a_tree_each", "bioinformatics", 8192, "chains of the anchors of 8192 reads, 200 to 1223 of them, each joined to the best of 64 before it",
    "a block of 64 threads finds each anchor's best by a tree in shared memory: eight barriers an anchor",
    {{"warp", "a warp a read, two earlier anchors a lane, the best by one instruction", {"barriers"}}, {"forward", "lanes keep what the next 64 anchors are worth, a finished one is sent to all", {"barriers", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1);
        std::vector<int2> places;
        for (long r = 0; r < n; r++) {
            const int count = 200 + hash(static_cast<unsigned>(r)) % 1024;
            int x = hash(static_cast<unsigned>(r) + 5) % 100000;
            for (int i = 0, y = 0; i < count; i++) {
                const unsigned drawn = hash(static_cast<unsigned>(places.size()) + 31);
                x += 1 + drawn % 20, y += 1 + drawn % 20 + (drawn >> 8) % 16 / 15 * ((drawn >> 12) % 9);
                places.push_back((drawn >> 20) % 4 ? int2{x, y} : int2{x, static_cast<int>(drawn >> 9) % 12000});  // a quarter is by chance
            }
            starts[r + 1] = static_cast<int>(places.size());
        }
        const Anchors a{b.copy(places), b.copy(starts), static_cast<int>(n)};
        int *out = b.output<int>(places.size());
        b.tolerance = 0.0;
        return {{"flawed", launch(chain, n, LOOK_BACK, 0, a, out)}, {"warp", launch(chain_warp, blocks(n, 4), 128, 0, a, out)}, {"forward", launch(chain_forward, blocks(n, 4), 128, 0, a, out)}};
    });

// --- counts of genes in cells: logarithm of the share of ten thousand ---

struct Cells {
    const float *counts;
    const int *starts;
    int cells;
};

__global__ void __launch_bounds__(128) normalise(Cells c, float *__restrict__ out) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= c.cells) return;
    const int first = c.starts[cell], end = c.starts[cell + 1];
    float total = 0.0f;
    for (int i = first; i < end; i++) total += c.counts[i];
    const float scale = 1e4f / total;
    for (int i = first; i < end; i++) out[i] = log1pf(c.counts[i] * scale);
}
__global__ void __launch_bounds__(128) normalise_warp(Cells c, float *__restrict__ out) {
    const int cell = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (cell >= c.cells) return;
    const int first = c.starts[cell], end = c.starts[cell + 1];
    float total = 0.0f;
    for (int i = first + lane; i < end; i += 32) total += c.counts[i];
    const float scale = 1e4f / warp_sum(total);
    for (int i = first + lane; i < end; i += 32) out[i] = log1pf(c.counts[i] * scale);
}
// A block a cell, whose counts stay in registers.
__global__ void __launch_bounds__(256) normalise_block(Cells c, float *__restrict__ out) {
    constexpr int EACH = 8;
    __shared__ float sums[8];
    const int first = c.starts[blockIdx.x], end = c.starts[blockIdx.x + 1];
    float own[EACH], total = 0.0f;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = first + k * 256 + threadIdx.x;
        total += own[k] = i < end ? c.counts[i] : 0.0f;
    }
    total = warp_sum(total);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = total;
    __syncthreads();
    total = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; w++) total += sums[w];
    const float scale = 1e4f / total;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = first + k * 256 + threadIdx.x;
        if (i < end) out[i] = log1pf(own[k] * scale);
    }
}

Study cell_counts("gene_shares_a_cell_a_thread", "bioinformatics", 1 << 15, "logarithms of the shares of genes in 32768 cells, 128 to 2047 genes each",
    "a thread walks a cell's counts, twice: lanes are a thousand words apart, and some have more to do",
    {{"warp", "a warp a cell", {"uncoalesced_access", "branch_divergence"}}, {"block", "a block a cell, counts kept in registers", {"uncoalesced_access", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1);
        for (long i = 0; i < n; i++) starts[i + 1] = starts[i] + 128 + hash(static_cast<unsigned>(i) + 1) % 1920;
        std::vector<float> counts(starts[n]);
        for (size_t i = 0; i < counts.size(); i++) counts[i] = 1.0f + static_cast<float>(hash(static_cast<unsigned>(i)) % 64 / 16 * (hash(static_cast<unsigned>(i) + 2) % 9));
        const Cells c{b.copy(counts), b.copy(starts), static_cast<int>(n)};
        float *out = b.output<float>(counts.size());
        return {{"flawed", launch(normalise, blocks(n, 128), 128, 0, c, out)}, {"warp", launch(normalise_warp, blocks(n, 4), 128, 0, c, out)}, {"block", launch(normalise_block, n, 256, 0, c, out)}};
    });

}  // namespace
