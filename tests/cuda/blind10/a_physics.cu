// Chains of atoms, robots, neurons, neutrons, qubits and mirrors. Each kernel has one weakness and two or three ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- forces along the bonds of polymers: chains of 64 beads ---

constexpr int BEADS = 64;

__device__ __forceinline__ float3 bond_force(float4 a, float4 b) {
    float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z, r2 = dx * dx + dy * dy + dz * dz;
    float stretch = 30.f * (1.f - 0.97f * rsqrtf(r2 + 1e-6f));
    return make_float3(stretch * dx, stretch * dy, stretch * dz);
}
__global__ void bond_forces(const int2 *bonds, const float4 *beads, float *forces, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int a = bonds[i].x, b = bonds[i].y;
    float3 f = bond_force(beads[a], beads[b]);
    atomicAdd(&forces[3 * a], f.x), atomicAdd(&forces[3 * a + 1], f.y), atomicAdd(&forces[3 * a + 2], f.z);
    atomicAdd(&forces[3 * b], -f.x), atomicAdd(&forces[3 * b + 1], -f.y), atomicAdd(&forces[3 * b + 2], -f.z);
}
// A thread a bead computes both of its bonds.
__global__ void bond_forces_by_bead(const float4 *__restrict__ beads, float *__restrict__ forces, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, place = i % BEADS;
    if (i >= count) return;
    float4 own = beads[i];
    float3 after = place < BEADS - 1 ? bond_force(own, beads[i + 1]) : make_float3(0.f, 0.f, 0.f);
    float3 before = place ? bond_force(beads[i - 1], own) : make_float3(0.f, 0.f, 0.f);
    forces[3 * i] = after.x - before.x, forces[3 * i + 1] = after.y - before.y, forces[3 * i + 2] = after.z - before.z;
}
// Four chains a block: each bond once, sums through shared memory, which also puts the results in order.
__global__ void __launch_bounds__(256) bond_forces_shared(const float4 *__restrict__ beads, float *__restrict__ forces) {
    __shared__ float sums[256 * 3];
    int i = blockIdx.x * 256 + threadIdx.x, place = threadIdx.x % BEADS, t = threadIdx.x;
    float4 own = beads[i];
    float3 f = place < BEADS - 1 ? bond_force(own, beads[i + 1]) : make_float3(0.f, 0.f, 0.f);
    sums[3 * t] = f.x, sums[3 * t + 1] = f.y, sums[3 * t + 2] = f.z;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 3; ++q) {
        int at = q * 256 + t;
        float before = at / 3 % BEADS ? sums[at - 3] : 0.f;
        forces[blockIdx.x * 768 + at] = sums[at] - before;
    }
}

Study bonds("bond_forces_six_atomics_each", "molecular dynamics", 1 << 22, "forces along the bonds of 65536 polymers of 64 beads",
    "a thread a bond adds to the forces of both beads by atomics",
    {{"by_bead", "a thread a bead computes both of its bonds", {"global_atomics"}}, {"shared", "each bond once, sums through shared memory", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int2> list;
        for (int i = 0; i < n; ++i)
            if (i % BEADS != BEADS - 1) list.push_back({i, i + 1});
        const int2 *pairs = b.copy(list);
        const float4 *beads = reinterpret_cast<const float4 *>(b.random<float>(4 * n, 0, 2));
        float *forces = b.output<float>(3 * n, true);
        int count = list.size();
        return {{"flawed", launch(bond_forces, blocks(count, 256), 256, 0, pairs, beads, forces, count)},
            {"by_bead", launch(bond_forces_by_bead, blocks(n, 256), 256, 0, beads, forces, n)}, {"shared", launch(bond_forces_shared, n / 256, 256, 0, beads, forces)}};
    });

// --- where the seven links of a robot's arm are, for many postures ---

constexpr int JOINTS = 7, ROBOTS = 128;
__constant__ float LINK_LENGTH[JOINTS] = {0.f, 0.f, 0.f, 0.0825f, -0.0825f, 0.f, 0.088f}, LINK_OFFSET[JOINTS] = {0.333f, 0.f, 0.316f, 0.f, 0.384f, 0.f, 0.107f};
__constant__ float TWIST_COSINE[JOINTS] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 1.f}, TWIST_SINE[JOINTS] = {-1.f, 1.f, 1.f, -1.f, 1.f, 1.f, 0.f};

// Posture of a chain: columns of the turn, and the place.
struct Frame {
    float x[3] = {1.f, 0.f, 0.f}, y[3] = {0.f, 1.f, 0.f}, z[3] = {0.f, 0.f, 1.f}, at[3] = {0.f, 0.f, 0.f};

    template <bool fast>
    __device__ __forceinline__ void joint(int j, float angle) {
        float s, c, a = LINK_LENGTH[j], d = LINK_OFFSET[j], cosine = TWIST_COSINE[j], sine = TWIST_SINE[j];
        if (fast) __sincosf(angle, &s, &c);
        else sincosf(angle, &s, &c);
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            float along = x[k] * c + y[k] * s, across = y[k] * c - x[k] * s, up = z[k];
            at[k] += a * along + d * up;
            x[k] = along, y[k] = across * cosine + up * sine, z[k] = up * cosine - across * sine;
        }
    }
};
__global__ void link_places(const float *angles, float *places, int robots) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= robots) return;
    Frame frame;
    for (int j = 0; j < JOINTS; ++j) {
        frame.joint<false>(j, angles[r * JOINTS + j]);
        for (int k = 0; k < 3; ++k) places[(r * JOINTS + j) * 3 + k] = frame.at[k];
    }
}
// Angles and places of 128 robots go through shared memory; both strides are odd.
template <bool fast>
__global__ void __launch_bounds__(ROBOTS) link_places_staged(const float *__restrict__ angles, float *__restrict__ places) {
    __shared__ float in[ROBOTS * JOINTS], out[ROBOTS * JOINTS * 3];
    int t = threadIdx.x;
    size_t first = static_cast<size_t>(blockIdx.x) * ROBOTS * JOINTS;
#pragma unroll
    for (int q = 0; q < JOINTS; ++q) in[q * ROBOTS + t] = angles[first + q * ROBOTS + t];
    __syncthreads();
    Frame frame;
#pragma unroll
    for (int j = 0; j < JOINTS; ++j) {
        frame.joint<fast>(j, in[t * JOINTS + j]);
#pragma unroll
        for (int k = 0; k < 3; ++k) out[(t * JOINTS + j) * 3 + k] = frame.at[k];
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 3 * JOINTS; ++q) places[first * 3 + q * ROBOTS + t] = out[q * ROBOTS + t];
}
// A plane for each angle and each coordinate.
__global__ void link_places_planes(const float *__restrict__ angles, float *__restrict__ places, int robots) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= robots) return;
    Frame frame;
#pragma unroll
    for (int j = 0; j < JOINTS; ++j) {
        frame.joint<false>(j, angles[j * robots + r]);
#pragma unroll
        for (int k = 0; k < 3; ++k) places[(j * 3 + k) * robots + r] = frame.at[k];
    }
}
// `rows` x `columns` values to `columns` x `rows`.
template <typename T>
__global__ void swap_axes(const T *from, T *to, int rows, int columns) {
    size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    if (i < static_cast<size_t>(rows) * columns) to[i % columns * rows + i / columns] = from[i];
}

Study arms("link_places_row_by_row", "robotics", 1 << 20, "places of the seven links of 1048576 arms from their joints' angles",
    "a thread reads an arm's seven angles and writes its 21 coordinates side by side",
    {{"staged", "angles and places through shared memory", {"uncoalesced_access"}}, {"planes", "a plane for each angle and coordinate", {"uncoalesced_access"}},
        {"staged_fast", "through shared memory, fast sines", {"uncoalesced_access", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float *angles = b.random<float>(n * JOINTS, -3, 3);
        float *places = b.output<float>(n * JOINTS * 3), *angle_planes = b.allocate<float>(n * JOINTS), *planes = b.allocate<float>(n * JOINTS * 3);
        launch(swap_axes<float>, blocks(n * JOINTS, 256), 256, 0, angles, angle_planes, n, JOINTS)();
        CHECK_LAUNCH();
        auto rows = launch(swap_axes<float>, blocks(n * JOINTS * 3, 256), 256, 0, planes, places, JOINTS * 3, n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(link_places, blocks(n, 256), 256, 0, angles, places, n)}, {"staged", launch(link_places_staged<false>, n / ROBOTS, ROBOTS, 0, angles, places)},
            {"planes", launch(link_places_planes, blocks(n, 256), 256, 0, angle_planes, planes, n), {}, 1, rows},
            {"staged_fast", launch(link_places_staged<true>, n / ROBOTS, ROBOTS, 0, angles, places)}};
    });

// --- the draw of a particle filter: parents of 1024 particles by their weights ---

constexpr int PARTICLES = 1024;

// Running sums of 1024 weights by 256 threads; returns the sum before the thread's four.
__device__ __forceinline__ unsigned running_sums(const unsigned *weights, unsigned *sums) {
    __shared__ unsigned warps[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    uint4 w = reinterpret_cast<const uint4 *>(weights)[t];
    unsigned own = w.x + w.y + w.z + w.w, sum = own;
    for (int d = 1; d < 32; d *= 2) {
        unsigned other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    unsigned before = sum - own;
    for (int k = 0; k < warp; ++k) before += warps[k];
    sums[4 * t] = before + w.x, sums[4 * t + 1] = before + w.x + w.y, sums[4 * t + 2] = before + w.x + w.y + w.z, sums[4 * t + 3] = before + own;
    __syncthreads();
    return before;
}
// What the sum must exceed at the place of particle m: places lie evenly from a drawn offset below `total` / 1024.
__device__ __forceinline__ unsigned drawn(int m, unsigned total, unsigned offset) { return (static_cast<unsigned long long>(m) * total + offset) / PARTICLES; }

__global__ void __launch_bounds__(256) resample(const unsigned *weights, int *parents) {
    __shared__ unsigned sums[PARTICLES];
    int filter = blockIdx.x;
    running_sums(weights + filter * PARTICLES, sums);
    unsigned total = sums[PARTICLES - 1], offset = hash(filter) % total;
    for (int m = threadIdx.x; m < PARTICLES; m += 256) {
        unsigned target = drawn(m, total, offset);
        int i = 0;
        while (sums[i] <= target) ++i;
        parents[filter * PARTICLES + m] = i;
    }
}
__global__ void __launch_bounds__(256) resample_halving(const unsigned *__restrict__ weights, int *__restrict__ parents) {
    __shared__ unsigned sums[PARTICLES];
    int filter = blockIdx.x;
    running_sums(weights + filter * PARTICLES, sums);
    unsigned total = sums[PARTICLES - 1], offset = hash(filter) % total;
#pragma unroll
    for (int q = 0; q < PARTICLES / 256; ++q) {
        int m = q * 256 + threadIdx.x, i = 0;
        unsigned target = drawn(m, total, offset);
#pragma unroll
        for (int step = PARTICLES / 2; step; step /= 2)
            if (sums[i + step - 1] <= target) i += step;
        parents[filter * PARTICLES + m] = i;
    }
}
// A particle finds the first place that draws it and leaves its number there; a running maximum fills up the others.
__global__ void __launch_bounds__(256) resample_marks(const unsigned *__restrict__ weights, int *__restrict__ parents) {
    __shared__ unsigned sums[PARTICLES];
    __shared__ int marks[PARTICLES], warps[8];
    int filter = blockIdx.x, t = threadIdx.x, lane = t % 32, warp = t / 32;
    reinterpret_cast<int4 *>(marks)[t] = make_int4(0, 0, 0, 0);
    unsigned before = running_sums(weights + filter * PARTICLES, sums), total = sums[PARTICLES - 1], offset = hash(filter) % total;
    float places = static_cast<float>(PARTICLES) / total;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        unsigned after = sums[4 * t + q];
        int m = max(static_cast<int>((before - static_cast<float>(offset) / PARTICLES) * places), 0);
        while (m > 0 && drawn(m - 1, total, offset) >= before) --m;
        while (m < PARTICLES && drawn(m, total, offset) < before) ++m;
        if (m < PARTICLES && drawn(m, total, offset) < after) marks[m] = 4 * t + q;
        before = after;
    }
    __syncthreads();
    int4 own = reinterpret_cast<int4 *>(marks)[t];
    own.y = max(own.x, own.y), own.z = max(own.y, own.z), own.w = max(own.z, own.w);
    int most = own.w;
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(~0u, most, d);
        if (lane >= d) most = max(most, other);
    }
    if (lane == 31) warps[warp] = most;
    __syncthreads();
    int left = __shfl_up_sync(~0u, most, 1);
    if (lane == 0) left = 0;
    for (int k = 0; k < warp; ++k) left = max(left, warps[k]);
    reinterpret_cast<int4 *>(parents + filter * PARTICLES)[t] = make_int4(max(own.x, left), max(own.y, left), max(own.z, left), max(own.w, left));
}

Study filters("particle_parents_walk_the_sums", "robotics", 4096, "parents of the 1024 particles of each of 4096 particle filters, by their weights",
    "each place walks along the running sums of the weights from the first",
    {{"halving", "search by halving", {"branch_divergence", "redundant_loads"}}, {"marks", "particles mark their first place, a running maximum fills the others", {"branch_divergence", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> drawn_weights(n * PARTICLES);
        for (size_t i = 0; i < drawn_weights.size(); ++i) {
            unsigned long long w = hash(static_cast<unsigned>(i)) >> 22;
            drawn_weights[i] = w * w * w >> 14;
        }
        const unsigned *weights = b.copy(drawn_weights);
        int *parents = b.output<int>(n * PARTICLES);
        b.tolerance = 0;
        return {{"flawed", launch(resample, n, 256, 0, weights, parents)}, {"halving", launch(resample_halving, n, 256, 0, weights, parents)},
            {"marks", launch(resample_marks, n, 256, 0, weights, parents)}};
    });

// --- expectation of products of Pauli's matrices in a state of 22 qubits ---

constexpr int QUBITS = 22, PRODUCTS = 8;

__device__ __forceinline__ void add_of_block(double sum, double *to) {
    __shared__ double sums[8];
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(to, sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7]);
}
__device__ __forceinline__ float real_product(float2 a, float2 b) { return fmaf(a.x, b.x, a.y * b.y); }

// Letters I, X and Z; grid y is the product.
__global__ void __launch_bounds__(256) expectations(const float2 *state, const char *letters, double *values, int qubits) {
    const char *mine = letters + blockIdx.y * qubits;
    float sum = 0.f;
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        unsigned partner = i;
        float sign = 1.f;
        for (int q = 0; q < qubits; ++q) {
            if (mine[q] == 'X') partner ^= 1u << q;
            else if (mine[q] == 'Z' && (i >> q & 1)) sign = -sign;
        }
        sum += sign * real_product(state[partner], state[i]);
    }
    add_of_block(sum, values + blockIdx.y);
}
// What the letters say, as two masks from the host.
__global__ void __launch_bounds__(256) expectations_masks(const float2 *__restrict__ state, const uint2 *__restrict__ masks, double *values, int qubits) {
    uint2 mask = masks[blockIdx.y];
    float sum = 0.f;
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        float product = real_product(state[i ^ mask.x], state[i]);
        sum += __popc(i & mask.y) & 1 ? -product : product;
    }
    add_of_block(sum, values + blockIdx.y);
}
// Masks from the letters once a block, by votes of a warp.
__global__ void __launch_bounds__(256) expectations_votes(const float2 *__restrict__ state, const char *__restrict__ letters, double *values, int qubits) {
    int lane = threadIdx.x % 32;
    char letter = lane < qubits ? letters[blockIdx.y * qubits + lane] : 'I';
    unsigned flips = __ballot_sync(~0u, letter == 'X'), signs = __ballot_sync(~0u, letter == 'Z');
    float sum = 0.f;
#pragma unroll 4
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        float product = real_product(state[i ^ flips], state[i]);
        sum += __popc(i & signs) & 1 ? -product : product;
    }
    add_of_block(sum, values + blockIdx.y);
}
// All eight products in one pass over the state.
__global__ void __launch_bounds__(256) expectations_together(const float2 *__restrict__ state, const uint2 *__restrict__ masks, double *values, int qubits) {
    uint2 mask[PRODUCTS];
    float sum[PRODUCTS] = {};
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p) mask[p] = masks[p];
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        float2 own = state[i];
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p) {
            float product = real_product(state[i ^ mask[p].x], own);
            sum[p] += __popc(i & mask[p].y) & 1 ? -product : product;
        }
    }
    for (int p = 0; p < PRODUCTS; ++p) {
        add_of_block(sum[p], values + p);
        __syncthreads();
    }
}

Study paulis("pauli_letters_read_for_each_amplitude", "quantum computing", 1L << QUBITS, "expectations of eight products of Pauli's matrices in a state of 22 qubits",
    "the letters of a product are read and told apart again for each amplitude",
    {{"masks", "two masks a product, signs by counting bits", {"integer_arithmetic", "redundant_loads"}}, {"votes", "masks from the letters once a block", {"integer_arithmetic", "redundant_loads"}},
        {"together", "masks, all products in one pass over the state", {"integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        // Amplitudes of about one size, and few signs, so that sums do not vanish.
        const float2 *state = reinterpret_cast<const float2 *>(b.random<float>(2 * n, 0.2, 1));
        std::vector<char> letters(PRODUCTS * QUBITS, 'I');
        std::vector<uint2> masks(PRODUCTS);
        for (int p = 0; p < PRODUCTS; ++p) {
            for (int q = 0; q < QUBITS; ++q)
                if (hash(p * QUBITS + q) % 3 == 0) letters[p * QUBITS + q] = 'X', masks[p].x |= 1u << q;
            if (p > 3) {
                int q = (5 * p + 3) % QUBITS;
                letters[p * QUBITS + q] = 'Z', masks[p].x &= ~(1u << q), masks[p].y |= 1u << q;
            }
        }
        const char *words = b.copy(letters);
        const uint2 *bits = b.copy(masks);
        double *values = b.output<double>(PRODUCTS, true);
        return {{"flawed", launch(expectations, dim3(512, PRODUCTS), 256, 0, state, words, values, QUBITS)}, {"masks", launch(expectations_masks, dim3(512, PRODUCTS), 256, 0, state, bits, values, QUBITS)},
            {"votes", launch(expectations_votes, dim3(512, PRODUCTS), 256, 0, state, words, values, QUBITS)}, {"together", launch(expectations_together, 1024, 256, 0, state, bits, values, QUBITS)}};
    });

// --- neutrons scattered between 64 groups, by the matrix of a cell's material ---

constexpr int GROUPS = 64, MATERIALS = 16, CELLS = 32;

__global__ void scatter(const float *matrices, const int *material, const float *flux, float *source, int cells) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, cell = at / GROUPS, to = at % GROUPS;
    if (cell >= cells) return;
    const float *matrix = matrices + material[cell] * GROUPS * GROUPS;
    float sum = 0.f;
    for (int from = 0; from < GROUPS; ++from) sum += matrix[to * GROUPS + from] * flux[cell * GROUPS + from];
    source[at] = sum;
}
// The same with matrices stored the other way.
__global__ void scatter_transposed(const float *__restrict__ matrices, const int *__restrict__ material, const float *__restrict__ flux, float *__restrict__ source, int cells) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, cell = at / GROUPS, to = at % GROUPS;
    if (cell >= cells) return;
    const float *matrix = matrices + material[cell] * GROUPS * GROUPS + to, *mine = flux + cell * GROUPS;
    float sum = 0.f;
#pragma unroll 8
    for (int from = 0; from < GROUPS; ++from) sum = fmaf(matrix[from * GROUPS], mine[from], sum);
    source[at] = sum;
}
// Four values of a row at a time.
__global__ void scatter_vectors(const float4 *__restrict__ matrices, const int *__restrict__ material, const float4 *__restrict__ flux, float *__restrict__ source, int cells) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, cell = at / GROUPS, to = at % GROUPS;
    if (cell >= cells) return;
    const float4 *row = matrices + (material[cell] * GROUPS + to) * (GROUPS / 4), *mine = flux + cell * (GROUPS / 4);
    float sum = 0.f;
#pragma unroll 4
    for (int from = 0; from < GROUPS / 4; ++from) {
        float4 m = row[from], f = mine[from];
        sum = fmaf(m.x, f.x, fmaf(m.y, f.y, fmaf(m.z, f.z, fmaf(m.w, f.w, sum))));
    }
    source[at] = sum;
}
// Cells in the order of their materials, 32 of one material a block (-1: none): its matrix in shared memory, eight cells a thread.
__global__ void __launch_bounds__(256) scatter_by_material(const float *__restrict__ matrices, const int *__restrict__ material, const int *__restrict__ order, const float *__restrict__ flux,
    float *__restrict__ source) {
    __shared__ float matrix[GROUPS][GROUPS + 1];
    __shared__ float4 held[CELLS][GROUPS / 4];
    const int *cells = order + blockIdx.x * CELLS;
    int to = threadIdx.x % GROUPS, quarter = threadIdx.x / GROUPS, kind = material[cells[0]];
    for (int i = threadIdx.x; i < GROUPS * GROUPS; i += 256) matrix[i / GROUPS][i % GROUPS] = matrices[kind * GROUPS * GROUPS + i];
    for (int i = threadIdx.x; i < CELLS * GROUPS; i += 256) {
        int cell = cells[i / GROUPS];
        reinterpret_cast<float *>(held)[i] = cell < 0 ? 0.f : flux[cell * GROUPS + i % GROUPS];
    }
    __syncthreads();
    float sum[8] = {};
#pragma unroll 2
    for (int from = 0; from < GROUPS; from += 4) {
        float a = matrix[to][from], b = matrix[to][from + 1], c = matrix[to][from + 2], d = matrix[to][from + 3];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float4 f = held[quarter * 8 + k][from / 4];
            sum[k] = fmaf(a, f.x, fmaf(b, f.y, fmaf(c, f.z, fmaf(d, f.w, sum[k]))));
        }
    }
#pragma unroll
    for (int k = 0; k < 8; ++k)
        if (int cell = cells[quarter * 8 + k]; cell >= 0) source[cell * GROUPS + to] = sum[k];
}

Study scattering("scattering_matrix_rows_across_the_lanes", "reactor physics", 1 << 16, "scattering between 64 groups in 65536 cells of 16 materials",
    "neighbouring lanes read neighbouring rows of a matrix, 256 bytes apart",
    {{"transposed", "matrices stored the other way", {"uncoalesced_access"}}, {"vectors", "four values of a row at a time", {"uncoalesced_access", "narrow_access"}},
        {"by_material", "32 cells of one material a block, its matrix in shared memory, eight cells a thread", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> kinds(n), order;
        for (int i = 0; i < n; ++i) kinds[i] = hash(i) % MATERIALS;
        for (int kind = 0; kind < MATERIALS; ++kind) {
            for (int i = 0; i < n; ++i)
                if (kinds[i] == kind) order.push_back(i);
            while (order.size() % CELLS) order.push_back(-1);
        }
        const int *material = b.copy(kinds), *sorted = b.copy(order);
        const float *matrices = b.random<float>(MATERIALS * GROUPS * GROUPS, 0, 1), *flux = b.random<float>(n * GROUPS, 0, 1);
        float *turned = b.allocate<float>(MATERIALS * GROUPS * GROUPS), *source = b.output<float>(n * GROUPS);
        for (int kind = 0; kind < MATERIALS; ++kind)
            launch(swap_axes<float>, blocks(GROUPS * GROUPS, 256), 256, 0, matrices + kind * GROUPS * GROUPS, turned + kind * GROUPS * GROUPS, GROUPS, GROUPS)();
        CHECK_LAUNCH();
        unsigned grid = blocks(n * GROUPS, 256);
        return {{"flawed", launch(scatter, grid, 256, 0, matrices, material, flux, source, n)}, {"transposed", launch(scatter_transposed, grid, 256, 0, turned, material, flux, source, n)},
            {"vectors", launch(scatter_vectors, grid, 256, 0, reinterpret_cast<const float4 *>(matrices), material, reinterpret_cast<const float4 *>(flux), source, n)},
            {"by_material", launch(scatter_by_material, order.size() / CELLS, 256, 0, matrices, material, sorted, flux, source)}};
    });

// --- neurons after Hodgkin and Huxley: four steps of the voltage and three gates ---

constexpr int NEURON_STEPS = 4;

// x / (1 - exp(-x)), which is 1 + x / 2 near 0.
__device__ __forceinline__ double ratio(double x) { return fabs(x) < 1e-3 ? 1.0 + 0.5 * x : x / (1.0 - exp(-x)); }
__global__ void neurons(float *voltage, float *m, float *h, float *n, const float *current, int count, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = voltage[i], mi = m[i], hi = h[i], ni = n[i], stimulus = current[i];
    for (int step = 0; step < NEURON_STEPS; ++step) {
        float am = ratio((v + 40.0) / 10.0), bm = 4.0 * exp(-(v + 65.0) / 18.0);
        float ah = 0.07 * exp(-(v + 65.0) / 20.0), bh = 1.0 / (1.0 + exp(-(v + 35.0) / 10.0));
        float an = 0.1 * ratio((v + 55.0) / 10.0), bn = 0.125 * exp(-(v + 65.0) / 80.0);
        float flow = 120.0 * mi * mi * mi * hi * (v - 50.0) + 36.0 * ni * ni * ni * ni * (v + 77.0) + 0.3 * (v + 54.387);
        v += dt * (stimulus - flow);
        mi += dt * (am * (1.0 - mi) - bm * mi), hi += dt * (ah * (1.0 - hi) - bh * hi), ni += dt * (an * (1.0 - ni) - bn * ni);
    }
    voltage[i] = v, m[i] = mi, h[i] = hi, n[i] = ni;
}
// The same in single precision, with library functions or fast ones.
template <bool fast>
__device__ __forceinline__ float exponential(float x) { return fast ? __expf(x) : expf(x); }
template <bool fast>
__device__ __forceinline__ float quotient(float a, float b) { return fast ? __fdividef(a, b) : a / b; }
template <bool fast>
__device__ __forceinline__ float ratio_single(float x) { return fabsf(x) < 1e-2f ? 1.f + x * (0.5f + x * (1.f / 12.f)) : quotient<fast>(x, 1.f - exponential<fast>(-x)); }
struct Rates {
    float am, bm, ah, bh, an, bn;
};
template <bool fast>
__device__ __forceinline__ Rates rates_at(float v) {
    return {ratio_single<fast>((v + 40.f) * 0.1f), 4.f * exponential<fast>((v + 65.f) * (-1.f / 18.f)), 0.07f * exponential<fast>((v + 65.f) * -0.05f),
        quotient<fast>(1.f, 1.f + exponential<fast>((v + 35.f) * -0.1f)), 0.1f * ratio_single<fast>((v + 55.f) * 0.1f), 0.125f * exponential<fast>((v + 65.f) * -0.0125f)};
}
__device__ __forceinline__ void advance(Rates r, float &v, float &m, float &h, float &n, float stimulus, float dt) {
    float flow = 120.f * m * m * m * h * (v - 50.f) + 36.f * n * n * n * n * (v + 77.f) + 0.3f * (v + 54.387f);
    v += dt * (stimulus - flow);
    m += dt * (r.am * (1.f - m) - r.bm * m), h += dt * (r.ah * (1.f - h) - r.bh * h), n += dt * (r.an * (1.f - n) - r.bn * n);
}
template <bool fast>
__global__ void neurons_single(float *__restrict__ voltage, float *__restrict__ m, float *__restrict__ h, float *__restrict__ n, const float *__restrict__ current, int count, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = voltage[i], mi = m[i], hi = h[i], ni = n[i], stimulus = current[i];
#pragma unroll
    for (int step = 0; step < NEURON_STEPS; ++step) advance(rates_at<fast>(v), v, mi, hi, ni, stimulus, dt);
    voltage[i] = v, m[i] = mi, h[i] = hi, n[i] = ni;
}
// Rates from a table of -128 to 128 millivolts, eight places a millivolt, interpolated.
constexpr int RATE_PLACES = 2048;
__global__ void neurons_table(float *__restrict__ voltage, float *__restrict__ m, float *__restrict__ h, float *__restrict__ n, const float *__restrict__ current,
    const float4 *__restrict__ table, int count, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = voltage[i], mi = m[i], hi = h[i], ni = n[i], stimulus = current[i];
    for (int step = 0; step < NEURON_STEPS; ++step) {
        float place = fminf(fmaxf((v + 128.f) * 8.f, 0.f), RATE_PLACES - 2.f);
        int at = static_cast<int>(place);
        float part = place - at;
        float4 a = table[2 * at], b = table[2 * at + 1], c = table[2 * at + 2], d = table[2 * at + 3];
        Rates r{a.x + part * (c.x - a.x), a.y + part * (c.y - a.y), a.z + part * (c.z - a.z), a.w + part * (c.w - a.w), b.x + part * (d.x - b.x), b.y + part * (d.y - b.y)};
        advance(r, v, mi, hi, ni, stimulus, dt);
    }
    voltage[i] = v, m[i] = mi, h[i] = hi, n[i] = ni;
}
__global__ void fill_rates(float4 *table) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Rates r = rates_at<false>(i / 8.f - 128.f);
    table[2 * i] = make_float4(r.am, r.bm, r.ah, r.bh), table[2 * i + 1] = make_float4(r.an, r.bn, 0.f, 0.f);
}

Study gates("neuron_rates_in_double", "neuroscience", 1 << 22, "four steps of 4194304 neurons after Hodgkin and Huxley",
    "literals without a suffix make the rates, and six exponentials a step, FP64",
    {{"single", "FP32", {"double_precision"}}, {"fast", "FP32, fast exponentials and quotients", {"double_precision", "expensive_math"}},
        {"table", "rates interpolated from a table", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *voltage = b.changed(b.random<float>(n, -75, -30), n), *m = b.changed(b.random<float>(n, 0, 0.3), n), *h = b.changed(b.random<float>(n, 0.3, 0.8), n), *k = b.changed(b.random<float>(n, 0.2, 0.6), n);
        const float *current = b.random<float>(n, 0, 15);
        float4 *table = b.allocate<float4>(2 * RATE_PLACES);
        launch(fill_rates, RATE_PLACES / 256, 256, 0, table)();
        CHECK_LAUNCH();
        float dt = 0.01f;
        b.tolerance = 2e-3;
        unsigned grid = blocks(n, 256);
        return {{"flawed", launch(neurons, grid, 256, 0, voltage, m, h, k, current, n, dt)}, {"single", launch(neurons_single<false>, grid, 256, 0, voltage, m, h, k, current, n, dt)},
            {"fast", launch(neurons_single<true>, grid, 256, 0, voltage, m, h, k, current, n, dt)}, {"table", launch(neurons_table, grid, 256, 0, voltage, m, h, k, current, table, n, dt)}};
    });

// --- shapes of a molecule against one of reference: sums over 128 atoms for each frame of a trajectory ---

constexpr int ATOMS = 128, SUMS = 10, LENGTH = 3 * ATOMS;

// Nine products of coordinates and the square of the place.
__device__ __forceinline__ void add_atom(float *sums, float x, float y, float z, float a, float b, float c) {
    sums[0] = fmaf(x, a, sums[0]), sums[1] = fmaf(x, b, sums[1]), sums[2] = fmaf(x, c, sums[2]);
    sums[3] = fmaf(y, a, sums[3]), sums[4] = fmaf(y, b, sums[4]), sums[5] = fmaf(y, c, sums[5]);
    sums[6] = fmaf(z, a, sums[6]), sums[7] = fmaf(z, b, sums[7]), sums[8] = fmaf(z, c, sums[8]);
    sums[9] = fmaf(x, x, fmaf(y, y, fmaf(z, z, sums[9])));
}
__global__ void overlaps(const float *frames, const float *reference, float *out, int count) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= count) return;
    float sums[SUMS] = {};
    for (int a = 0; a < ATOMS; ++a) {
        const float *at = frames + static_cast<size_t>(f) * LENGTH + 3 * a;
        add_atom(sums, at[0], at[1], at[2], reference[3 * a], reference[3 * a + 1], reference[3 * a + 2]);
    }
    for (int s = 0; s < SUMS; ++s) out[s * count + f] = sums[s];
}
// A warp a frame, four atoms a lane.
__global__ void __launch_bounds__(256) overlaps_warp(const float *__restrict__ frames, const float *__restrict__ reference, float *__restrict__ out, int count) {
    int f = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sums[SUMS] = {};
#pragma unroll
    for (int a = lane; a < ATOMS; a += 32) {
        const float *at = frames + static_cast<size_t>(f) * LENGTH + 3 * a;
        add_atom(sums, at[0], at[1], at[2], reference[3 * a], reference[3 * a + 1], reference[3 * a + 2]);
    }
#pragma unroll
    for (int s = 0; s < SUMS; ++s) {
        float sum = warp_sum(sums[s]);
        if (lane == s) out[s * count + f] = sum;
    }
}
// 128 frames a block, 16 atoms of them at a time through shared memory; 49 words a frame.
__global__ void __launch_bounds__(128) overlaps_staged(const float *__restrict__ frames, const float *__restrict__ reference, float *__restrict__ out, int count) {
    constexpr int piece = 48;
    __shared__ float held[128 * (piece + 1)];
    int first = blockIdx.x * 128, t = threadIdx.x;
    float sums[SUMS] = {};
    for (int from = 0; from < LENGTH; from += piece) {
        __syncthreads();
#pragma unroll 8
        for (int i = t; i < 128 * piece; i += 128) held[i / piece * (piece + 1) + i % piece] = frames[static_cast<size_t>(first + i / piece) * LENGTH + from + i % piece];
        __syncthreads();
        const float *mine = held + t * (piece + 1);
#pragma unroll 4
        for (int a = 0; a < piece; a += 3) add_atom(sums, mine[a], mine[a + 1], mine[a + 2], reference[from + a], reference[from + a + 1], reference[from + a + 2]);
    }
#pragma unroll
    for (int s = 0; s < SUMS; ++s) out[s * count + first + t] = sums[s];
}
// Coordinates of all frames side by side.
__global__ void overlaps_planes(const float *__restrict__ planes, const float *__restrict__ reference, float *__restrict__ out, int count) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= count) return;
    float sums[SUMS] = {};
#pragma unroll 4
    for (int a = 0; a < ATOMS; ++a) {
        const float *at = planes + static_cast<size_t>(3 * a) * count + f;
        add_atom(sums, at[0], at[count], at[2 * count], reference[3 * a], reference[3 * a + 1], reference[3 * a + 2]);
    }
#pragma unroll
    for (int s = 0; s < SUMS; ++s) out[s * count + f] = sums[s];
}

Study trajectory("shape_sums_thread_per_frame", "molecular dynamics", 1 << 17, "sums of products of 128 places with those of a reference, 131072 frames of a trajectory",
    "a thread a frame: neighbouring lanes read 1536 bytes apart",
    {{"warp", "a warp a frame, sums by shuffles", {"uncoalesced_access"}}, {"staged", "pieces of 128 frames through shared memory", {"uncoalesced_access"}},
        {"planes", "a coordinate of all frames side by side", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *frames = b.random<float>(n * LENGTH, -1, 1.5), *reference = b.random<float>(LENGTH, -1, 1.5);
        float *planes = b.allocate<float>(n * LENGTH), *out = b.output<float>(n * SUMS);
        launch(swap_axes<float>, blocks(n * LENGTH, 256), 256, 0, frames, planes, n, LENGTH)();
        CHECK_LAUNCH();
        return {{"flawed", launch(overlaps, blocks(n, 128), 128, 0, frames, reference, out, n)}, {"warp", launch(overlaps_warp, n / 8, 256, 0, frames, reference, out, n)},
            {"staged", launch(overlaps_staged, n / 128, 128, 0, frames, reference, out, n)}, {"planes", launch(overlaps_planes, blocks(n, 128), 128, 0, planes, reference, out, n)}};
    });

// --- the front of a wave from a telescope's mirror: Zernike's polynomials up to a degree ---

constexpr int MOST = 7, COEFFICIENTS = (MOST + 1) * (MOST + 2) / 2;

__device__ __forceinline__ float factorial(int n) {
    float product = 1.f;
    for (int i = 2; i <= n; ++i) product *= i;
    return product;
}
__global__ void wave_front(const float *coefficients, float *front, int side, int degree) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y;
    if (px >= side) return;
    float x = (2.f * px + 1.f) / side - 1.f, y = (2.f * py + 1.f) / side - 1.f, radius = sqrtf(x * x + y * y), angle = atan2f(y, x), sum = 0.f;
    if (radius < 1.f) {
        int which = 0;
        for (int n = 0; n <= degree; ++n)
            for (int m = -n; m <= n; m += 2) {
                float radial = 0.f;
                int a = abs(m);
                for (int k = 0; k <= (n - a) / 2; ++k)
                    radial += (k % 2 ? -1.f : 1.f) * factorial(n - k) / (factorial(k) * factorial((n + a) / 2 - k) * factorial((n - a) / 2 - k)) * powf(radius, n - 2 * k);
                sum += coefficients[which++] * radial * (m < 0 ? sinf(a * angle) : cosf(a * angle));
            }
    }
    front[py * side + px] = sum;
}
// Factors of the radial polynomials from the host; powers and multiples of the angle one after the other.
__global__ void wave_front_factors(const float *__restrict__ coefficients, const float *__restrict__ factors, float *__restrict__ front, int side) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y;
    if (px >= side) return;
    float x = (2.f * px + 1.f) / side - 1.f, y = (2.f * py + 1.f) / side - 1.f, r2 = x * x + y * y, sum = 0.f;
    if (r2 < 1.f) {
        float real = 1.f, imaginary = 0.f;  // of (x + iy)^a
#pragma unroll
        for (int a = 0; a <= MOST; ++a) {
#pragma unroll
            for (int n = a; n <= MOST; n += 2) {
                const float *factor = factors + (n * (MOST + 1) + a) * 4;
                float radial = factor[0];
#pragma unroll
                for (int k = 1; k <= (n - a) / 2; ++k) radial = fmaf(radial, r2, factor[k]);
                int first = n * (n + 1) / 2;
                float both = coefficients[first + (n + a) / 2] * real;
                if (a) both = fmaf(coefficients[first + (n - a) / 2], imaginary, both);
                sum = fmaf(radial, both, sum);
            }
            float next = real * x - imaginary * y;
            imaginary = real * y + imaginary * x, real = next;
        }
    }
    front[py * side + px] = sum;
}
// All polynomials together are one of x and y: 36 coefficients from the host.
__global__ void wave_front_plane(const float *__restrict__ powers, float *__restrict__ front, int side) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y;
    if (px >= side) return;
    float x = (2.f * px + 1.f) / side - 1.f, y = (2.f * py + 1.f) / side - 1.f, sum = 0.f;
    if (x * x + y * y < 1.f) {
#pragma unroll
        for (int i = MOST; i >= 0; --i) {
            float inner = 0.f;
#pragma unroll
            for (int j = MOST - i; j >= 0; --j) inner = fmaf(inner, y, powers[i * (MOST + 1) + j]);
            sum = fmaf(sum, x, inner);
        }
    }
    front[py * side + px] = sum;
}

Study mirror("wave_front_factorials_each_pixel", "optics", 1024, "36 polynomials of Zernike summed at 1024 x 1024 points",
    "factorials, powers and sines of each polynomial for each point",
    {{"factors", "factors from the host, powers and multiples of the angle by recurrence", {"expensive_math"}}, {"plane", "one polynomial of x and y, made on the host", {"expensive_math"}}},
    [](Buffers &b, long side) -> Sides {
        std::vector<float> weights(COEFFICIENTS), factors((MOST + 1) * (MOST + 1) * 4), powers((MOST + 1) * (MOST + 1));
        std::vector<double> exact((MOST + 1) * (MOST + 1));
        for (int i = 0; i < COEFFICIENTS; ++i) weights[i] = hash(i + 17) / 4294967296.f - 0.3f;
        auto product = [](int n) { return std::tgamma(n + 1.0); };
        auto choose = [&](int n, int k) { return product(n) / (product(k) * product(n - k)); };
        for (int n = 0; n <= MOST; ++n)
            for (int a = n % 2; a <= n; a += 2)
                for (int k = 0; k <= (n - a) / 2; ++k) {
                    double factor = (k % 2 ? -1.0 : 1.0) * product(n - k) / (product(k) * product((n + a) / 2 - k) * product((n - a) / 2 - k));
                    factors[(n * (MOST + 1) + a) * 4 + k] = static_cast<float>(factor);
                    // (x^2 + y^2)^e times the real and the imaginary part of (x + iy)^a
                    int e = (n - a) / 2 - k, first = n * (n + 1) / 2;
                    for (int u = 0; u <= e; ++u)
                        for (int v = 0; v <= a; ++v) {
                            double sign = v / 2 % 2 ? -1.0 : 1.0, weight = v % 2 ? weights[first + (n - a) / 2] : weights[first + (n + a) / 2];
                            exact[(2 * (e - u) + a - v) * (MOST + 1) + 2 * u + v] += factor * choose(e, u) * choose(a, v) * sign * weight;
                        }
                }
        for (size_t i = 0; i < powers.size(); ++i) powers[i] = static_cast<float>(exact[i]);
        const float *coefficients = b.copy(weights), *radial = b.copy(factors), *plane = b.copy(powers);
        float *front = b.output<float>(side * side);
        dim3 grid(side / 256, side);
        b.tolerance = 1e-3;
        return {{"flawed", launch(wave_front, grid, 256, 0, coefficients, front, side, MOST)}, {"factors", launch(wave_front_factors, grid, 256, 0, coefficients, radial, front, side)},
            {"plane", launch(wave_front_plane, grid, 256, 0, plane, front, side)}};
    });

}  // namespace
