// Matrices, bodies and fields.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- a sweep of one-sided rotations of 32 x 32 matrices ---

constexpr int ORDER = 32, SWEPT = 2, SEATS = ORDER - 1;

// Who meets whom: columns whose numbers add up to the round's modulo 31; the one left over meets the last.
__device__ __forceinline__ int resting(int round) { return round * 16 % SEATS; }
__device__ __forceinline__ int2 meeting(int round, int pair) {
    const int rest = resting(round), a = (rest + pair) % SEATS, z = (rest + SEATS - pair) % SEATS;
    return pair ? make_int2(min(a, z), max(a, z)) : make_int2(rest, SEATS);
}
// Cosine and sine that make two columns orthogonal, from their squares and their product.
__device__ __forceinline__ float2 turn(float first, float second, float product) {
    const float ratio = (second - first) / (2.0f * product), size = 1.0f / (fabsf(ratio) + sqrtf(1.0f + ratio * ratio));
    const float tangent = product == 0.0f ? 0.0f : copysignf(size, ratio), cosine = rsqrtf(1.0f + tangent * tangent);
    return make_float2(cosine, cosine * tangent);
}
// A warp a matrix, columns PITCH words apart; a pair of columns has two lanes, each with half of the rows.
template <int PITCH>
__global__ void __launch_bounds__(32 * SWEPT) orthogonal_sweep(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float columns[SWEPT][ORDER * PITCH];
    const int lane = threadIdx.x % 32, pair = lane % 16, top = lane / 16 * 16;
    const size_t matrix = (static_cast<size_t>(blockIdx.x) * SWEPT + threadIdx.x / 32) * ORDER * ORDER;
    float *own = columns[threadIdx.x / 32];
    for (int k = 0; k < ORDER; k++) own[k * PITCH + lane] = in[matrix + k * ORDER + lane];
    __syncwarp();
    for (int round = 0; round < SEATS; round++) {
        const int2 met = meeting(round, pair);
        float *left = own + met.x * PITCH + top, *right = own + met.y * PITCH + top;
        float a[16], z[16], first = 0.0f, second = 0.0f, product = 0.0f;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            a[k] = left[k], z[k] = right[k];
            first += a[k] * a[k], second += z[k] * z[k], product += a[k] * z[k];
        }
        first += __shfl_xor_sync(~0u, first, 16), second += __shfl_xor_sync(~0u, second, 16), product += __shfl_xor_sync(~0u, product, 16);
        const float2 by = turn(first, second, product);
#pragma unroll
        for (int k = 0; k < 16; k++) left[k] = fmaf(by.x, a[k], -by.y * z[k]), right[k] = fmaf(by.x, z[k], by.y * a[k]);
        __syncwarp();
    }
    for (int k = 0; k < ORDER; k++) out[matrix + k * ORDER + lane] = own[k * PITCH + lane];
}
// A column a lane, in registers; the other of its pair comes by shuffles.
__global__ void __launch_bounds__(32 * SWEPT) orthogonal_sweep_shuffled(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float columns[SWEPT][ORDER * (ORDER + 1)];
    const int lane = threadIdx.x % 32;
    const size_t matrix = (static_cast<size_t>(blockIdx.x) * SWEPT + threadIdx.x / 32) * ORDER * ORDER;
    float *staged = columns[threadIdx.x / 32];
    for (int k = 0; k < ORDER; k++) staged[k * (ORDER + 1) + lane] = in[matrix + k * ORDER + lane];
    __syncwarp();
    float own[ORDER];
#pragma unroll
    for (int k = 0; k < ORDER; k++) own[k] = staged[lane * (ORDER + 1) + k];
    for (int round = 0; round < SEATS; round++) {
        const int rest = resting(round), other = lane == SEATS ? rest : lane == rest ? SEATS : (round + SEATS - lane) % SEATS;
        float met[ORDER], squares[2] = {}, products[2] = {};  // of the upper and the lower rows
#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            met[k] = __shfl_sync(~0u, own[k], other);
            squares[k / 16] += own[k] * own[k], products[k / 16] += own[k] * met[k];
        }
        const float square = squares[0] + squares[1], theirs = __shfl_sync(~0u, square, other);
        const bool before = lane < other;
        const float2 by = turn(before ? square : theirs, before ? theirs : square, products[0] + products[1]);
        const float sine = before ? -by.y : by.y;
#pragma unroll
        for (int k = 0; k < ORDER; k++) own[k] = fmaf(by.x, own[k], sine * met[k]);
    }
#pragma unroll
    for (int k = 0; k < ORDER; k++) staged[lane * (ORDER + 1) + k] = own[k];
    __syncwarp();
    for (int k = 0; k < ORDER; k++) out[matrix + k * ORDER + lane] = staged[k * (ORDER + 1) + lane];
}

Study sweeping("orthogonal_sweep_columns_32_words_apart", "linear algebra", 1024, "a sweep of one-sided Jacobi rotations of 1024 matrices of 32 x 32",
    "lanes turn different columns, which lie 32 words of shared memory apart",
    {{"padded", "an empty word after each column", {"shared_bank_conflicts"}}, {"shuffled", "a column a lane in registers, exchanged by shuffles", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *in = b.random<float>(n * ORDER * ORDER);
        float *out = b.output<float>(n * ORDER * ORDER);
        b.tolerance = 2e-3;
        return {{"flawed", launch(orthogonal_sweep<ORDER>, n / SWEPT, 32 * SWEPT, 0, in, out)}, {"padded", launch(orthogonal_sweep<ORDER + 1>, n / SWEPT, 32 * SWEPT, 0, in, out)},
            {"shuffled", launch(orthogonal_sweep_shuffled, n / SWEPT, 32 * SWEPT, 0, in, out)}};
    });

// --- where comets and planets are in the planes of their orbits ---

constexpr int STEPS = 6, LOT = 1024;

// Distance at perihelion, eccentricity, time since perihelion; units in which the attraction is one.
__device__ float2 on_ellipse(float nearest, float e, float time) {
    const float axis = nearest / (1.0f - e), turns = time * rsqrtf(axis * axis * axis), mean = turns - 6.2831853f * rintf(turns * 0.15915494f);
    float angle = mean + e * sinf(mean), sine, cosine;
    for (int k = 0; k < STEPS; k++) {
        sincosf(angle, &sine, &cosine);
        angle -= (angle - e * sine - mean) / (1.0f - e * cosine);
    }
    sincosf(angle, &sine, &cosine);
    return make_float2(axis * (cosine - e), axis * sqrtf(1.0f - e * e) * sine);
}
__device__ float2 on_hyperbola(float nearest, float e, float time) {
    const float axis = nearest / (e - 1.0f), mean = time * rsqrtf(axis * axis * axis);
    float angle = asinhf(mean / e);
    for (int k = 0; k < STEPS; k++) angle -= (e * sinhf(angle) - angle - mean) / (e * coshf(angle) - 1.0f);
    return make_float2(axis * (e - coshf(angle)), axis * sqrtf(e * e - 1.0f) * sinhf(angle));
}
__device__ float2 on_parabola(float nearest, float time) {
    const float third = 1.5f * time * rsqrtf(2.0f * nearest * nearest * nearest), root = cbrtf(third + sqrtf(third * third + 1.0f)), half = root - 1.0f / root;
    return make_float2(nearest * (1.0f - half * half), 2.0f * nearest * half);
}
__device__ __forceinline__ float2 position(float nearest, float e, float time) { return e < 1.0f ? on_ellipse(nearest, e, time) : e > 1.0f ? on_hyperbola(nearest, e, time) : on_parabola(nearest, time); }
__global__ void __launch_bounds__(256) orbit_positions(const float *__restrict__ nearest, const float *__restrict__ e, const float *__restrict__ times, float2 *__restrict__ out, int bodies) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < bodies) out[i] = position(nearest[i], e[i], times[i]);
}
// ORDER_OF: ellipses first, then hyperbolas, then parabolas.
__global__ void __launch_bounds__(256) orbit_positions_listed(const int *__restrict__ order_of, const float *__restrict__ nearest, const float *__restrict__ e, const float *__restrict__ times, float2 *__restrict__ out, int bodies) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= bodies) return;
    const int i = order_of[k];
    out[i] = position(nearest[i], e[i], times[i]);
}
// A block tells its 1024 bodies apart first.
__global__ void __launch_bounds__(256) orbit_positions_by_lot(const float *__restrict__ nearest, const float *__restrict__ e, const float *__restrict__ times, float2 *__restrict__ out, int bodies) {
    __shared__ unsigned short of_kind[3][LOT];
    __shared__ int counts[3];
    const int first = blockIdx.x * LOT;
    if (threadIdx.x < 3) counts[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < LOT && first + k < bodies; k += 256) {
        const float own = e[first + k];
        const int kind = own < 1.0f ? 0 : own > 1.0f ? 1 : 2;
        of_kind[kind][atomicAdd(counts + kind, 1)] = k;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < counts[0]; k += 256) {
        const int i = first + of_kind[0][k];
        out[i] = on_ellipse(nearest[i], e[i], times[i]);
    }
    for (int k = threadIdx.x; k < counts[1]; k += 256) {
        const int i = first + of_kind[1][k];
        out[i] = on_hyperbola(nearest[i], e[i], times[i]);
    }
    for (int k = threadIdx.x; k < counts[2]; k += 256) {
        const int i = first + of_kind[2][k];
        out[i] = on_parabola(nearest[i], times[i]);
    }
}

Study orbiting("orbit_positions_three_kinds_in_a_warp", "astronomy", 1 << 22, "where 4194304 bodies are on ellipses, hyperbolas and parabolas",
    "lanes of a warp have orbits of all three kinds, whose equations are solved one after the other",
    {{"listed", "bodies taken from a list in the order of their kinds", {"branch_divergence"}}, {"by_lot", "a block tells its 1024 bodies apart first", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> eccentric(n);
        std::vector<int> list[3];
        for (long i = 0; i < n; i++) {
            const unsigned kind = hash(i) % 16;
            const float part = hash(i + 77) / 4294967296.0f;
            eccentric[i] = kind < 9 ? 0.1f + 0.6f * part : kind < 13 ? 1.2f + 1.8f * part : 1.0f;
            list[kind < 9 ? 0 : kind < 13 ? 1 : 2].push_back(i);
        }
        for (int kind = 1; kind < 3; kind++) list[0].insert(list[0].end(), list[kind].begin(), list[kind].end());
        const float *nearest = b.random<float>(n, 0.5, 2.0), *e = b.copy(eccentric), *times = b.random<float>(n, 0.1, 20.0);
        const int *order = b.copy(list[0]);
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(n * 2));
        return {{"flawed", launch(orbit_positions, blocks(n, 256), 256, 0, nearest, e, times, out, n)}, {"listed", launch(orbit_positions_listed, blocks(n, 256), 256, 0, order, nearest, e, times, out, n)},
            {"by_lot", launch(orbit_positions_by_lot, blocks(n, LOT), 256, 0, nearest, e, times, out, n)}};
    });

// --- how deep each particle sits in its halo ---

constexpr int CREW = 128, HALO_SHARES = 8;

// The potential at up to CREW particles from FIRST on, of all between BEGIN and END.
__device__ __forceinline__ void potentials_of(float4 (&tile)[CREW], const float4 *particles, float *out, int first, int begin, int end, float soft) {
    const int i = first + threadIdx.x;
    const float4 own = particles[min(i, end - 1)];
    float sum = 0.0f;
    for (int from = begin; from < end; from += CREW) {
        __syncthreads();
        if (from + static_cast<int>(threadIdx.x) < end) tile[threadIdx.x] = particles[from + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < min(CREW, end - from); k++) {
            const float4 other = tile[k];
            const float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
            sum -= other.w * rsqrtf(x * x + y * y + z * z + soft);
        }
    }
    if (i < end) out[i] = sum;
}
__global__ void __launch_bounds__(CREW) halo_potentials(const float4 *__restrict__ particles, const int *__restrict__ starts, float *__restrict__ out, float soft) {
    __shared__ float4 tile[CREW];
    const int begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    for (int first = begin; first < end; first += CREW) potentials_of(tile, particles, out, first, begin, end, soft);
}
// Eight blocks a halo, of which each takes every eighth 128 particles.
__global__ void __launch_bounds__(CREW) halo_potentials_shares(const float4 *__restrict__ particles, const int *__restrict__ starts, float *__restrict__ out, float soft) {
    __shared__ float4 tile[CREW];
    const int begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    for (int first = begin + blockIdx.y * CREW; first < end; first += HALO_SHARES * CREW) potentials_of(tile, particles, out, first, begin, end, soft);
}
// A tile: its first particle, and where its halo begins and ends.
__global__ void __launch_bounds__(CREW) halo_potentials_tiles(const float4 *__restrict__ particles, const int4 *__restrict__ tiles, float *__restrict__ out, float soft) {
    __shared__ float4 tile[CREW];
    const int4 own = tiles[blockIdx.x];
    potentials_of(tile, particles, out, own.x, own.y, own.z, soft);
}

Study haloes("halo_potentials_a_block_a_halo", "astronomy", 4096, "the potential at each particle of 4096 halos, of which the largest has 1500",
    "a block a halo: work grows with the square of how many particles it has",
    {{"tiles", "a list of pieces of 128 particles, a block a piece", {"workload_imbalance"}}, {"shares", "eight blocks for each halo", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(1, 0);
        std::vector<int4> tiles;
        for (int h = 0; h < n; h++) {
            const int place = (h * 389 + 17) % n, start = starts.back(), end = start + static_cast<int>(1500.0 * std::pow(place + 1.0, -0.45));
            for (int from = start; from < end; from += CREW) tiles.push_back(make_int4(from, start, end, 0));
            starts.push_back(end);
        }
        std::vector<float4> list(starts.back());
        for (unsigned k = 0; k < list.size(); k++) {
            const auto part = [&](unsigned which) { return hash(4 * k + which) / 4294967296.0f; };
            list[k] = make_float4(part(0), part(1), part(2), 0.5f + part(3));
        }
        const int *begin = b.copy(starts);
        const int4 *pieces = b.copy(tiles);
        const float4 *particles = b.copy(list);
        float *out = b.output<float>(list.size());
        return {{"flawed", launch(halo_potentials, n, CREW, 0, particles, begin, out, 1e-3f)}, {"tiles", launch(halo_potentials_tiles, tiles.size(), CREW, 0, particles, pieces, out, 1e-3f)},
            {"shares", launch(halo_potentials_shares, dim3(n, HALO_SHARES), CREW, 0, particles, begin, out, 1e-3f)}};
    });

// --- lines along which a flow goes ---

constexpr int CUBE = 96, POINTS = 64, LINES = 128, LINE_PITCH = LINES + 1;

__device__ __forceinline__ float3 between(float4 a, float4 z, float part) { return make_float3(a.x + (z.x - a.x) * part, a.y + (z.y - a.y) * part, a.z + (z.z - a.z) * part); }
__device__ __forceinline__ float3 between(float3 a, float3 z, float part) { return make_float3(a.x + (z.x - a.x) * part, a.y + (z.y - a.y) * part, a.z + (z.z - a.z) * part); }
__device__ __forceinline__ float within(float x) { return fminf(fmaxf(x, 0.0f), CUBE - 1.01f); }
__device__ __forceinline__ float3 flow_at(const float4 *flow, float3 at) {
    const int x = static_cast<int>(at.x), y = static_cast<int>(at.y), z = static_cast<int>(at.z);
    const float4 *own = flow + (z * CUBE + y) * CUBE + x, *behind = own + CUBE * CUBE;
    const float right = at.x - x, low = at.y - y, far = at.z - z;
    const float3 front = between(between(own[0], own[1], right), between(own[CUBE], own[CUBE + 1], right), low);
    return between(front, between(between(behind[0], behind[1], right), between(behind[CUBE], behind[CUBE + 1], right), low), far);
}
__device__ __forceinline__ float3 further(const float4 *flow, float3 at, float step) {
    const float3 speed = flow_at(flow, at);
    return make_float3(within(at.x + step * speed.x), within(at.y + step * speed.y), within(at.z + step * speed.z));
}
__device__ __forceinline__ float3 seed_of(int line) { return make_float3(2.0f + line % 512 * 0.175f, 2.0f + line / 512 % 256 * 0.35f, 8.0f); }
// KEPT points of each line in shared memory until all are written together.
template <int KEPT>
__global__ void __launch_bounds__(LINES) flow_lines(const float4 *__restrict__ flow, float *__restrict__ out, float step) {
    extern __shared__ float path[];
    const int first = blockIdx.x * LINES;
    float3 at = seed_of(first + threadIdx.x);
    for (int point = 0; point < POINTS; point += KEPT) {
        for (int k = 0; k < KEPT; k++) {
            float *own = path + 3 * k * LINE_PITCH + threadIdx.x;
            own[0] = at.x, own[LINE_PITCH] = at.y, own[2 * LINE_PITCH] = at.z;
            at = further(flow, at, step);
        }
        __syncthreads();
        for (int k = threadIdx.x; k < LINES * 3 * KEPT; k += LINES) {
            const int line = k / (3 * KEPT), value = k % (3 * KEPT);
            out[(static_cast<size_t>(first + line) * POINTS + point) * 3 + value] = path[value * LINE_PITCH + line];
        }
        __syncthreads();
    }
}
// Each point goes where it belongs at once.
__global__ void __launch_bounds__(LINES) flow_lines_direct(const float4 *__restrict__ flow, float *__restrict__ out, float step) {
    const int line = blockIdx.x * LINES + threadIdx.x;
    float3 at = seed_of(line);
    float *own = out + static_cast<size_t>(line) * POINTS * 3;
    for (int k = 0; k < POINTS; k++) {
        own[3 * k] = at.x, own[3 * k + 1] = at.y, own[3 * k + 2] = at.z;
        at = further(flow, at, step);
    }
}

Study lines("flow_lines_whole_in_shared", "visualisation", 131072, "131072 lines of 64 points along a flow on a grid of 96^3",
    "all 64 points of a block's lines stay in shared memory until the end, so that eight warps fill a multiprocessor",
    {{"pieces", "eight points at a time in shared memory", {"low_occupancy"}}, {"direct", "each point stored at once", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> flow(CUBE * CUBE * CUBE);
        for (int k = 0; k < CUBE * CUBE * CUBE; k++) {
            const float x = k % CUBE * 0.13f, y = k / CUBE % CUBE * 0.11f, z = k / CUBE / CUBE * 0.07f;
            flow[k] = make_float4(std::sin(y) + 0.3f * std::cos(z), std::cos(x) - 0.3f * std::sin(z), 1.0f + 0.5f * std::sin(x + y), 0.0f);
        }
        const float4 *grid = b.copy(flow);
        float *out = b.output<float>(n * POINTS * 3);
        b.tolerance = 1e-3;
        const auto bytes = [](int kept) { return kept * 3 * LINE_PITCH * sizeof(float); };
        return {{"flawed", launch(flow_lines<POINTS>, n / LINES, LINES, bytes(POINTS), grid, out, 0.6f)}, {"pieces", launch(flow_lines<8>, n / LINES, LINES, bytes(8), grid, out, 0.6f)},
            {"direct", launch(flow_lines_direct, n / LINES, LINES, 0, grid, out, 0.6f)}};
    });

// --- a banded matrix times a vector ---

constexpr int REACH = 15, DIAGONALS = 2 * REACH + 1, LEADING = 32, BAND_ROWS = 256, BAND_COLUMNS = BAND_ROWS + 2 * REACH;

// BAND: a column's entries one after the other, the one on the diagonal in the middle.
__global__ void __launch_bounds__(BAND_ROWS) banded_product(const float *__restrict__ band, const float *__restrict__ x, float *__restrict__ out, int rows) {
    const int i = blockIdx.x * BAND_ROWS + threadIdx.x;
    if (i >= rows) return;
    float sum = 0.0f;
#pragma unroll
    for (int d = -REACH; d <= REACH; d++)
        if (i + d >= 0 && i + d < rows) sum += band[static_cast<size_t>(i + d) * LEADING + REACH - d] * x[i + d];
    out[i] = sum;
}
// Kept diagonal by diagonal.
__global__ void __launch_bounds__(BAND_ROWS) banded_product_diagonals(const float *__restrict__ diagonals, const float *__restrict__ x, float *__restrict__ out, int rows) {
    const int i = blockIdx.x * BAND_ROWS + threadIdx.x;
    if (i >= rows) return;
    float sum = 0.0f;
#pragma unroll
    for (int d = -REACH; d <= REACH; d++)
        if (i + d >= 0 && i + d < rows) sum += diagonals[static_cast<size_t>(d + REACH) * rows + i] * x[i + d];
    out[i] = sum;
}
// A block's columns come through shared memory.
__global__ void __launch_bounds__(BAND_ROWS) banded_product_staged(const float *__restrict__ band, const float *__restrict__ x, float *__restrict__ out, int rows) {
    __shared__ float columns[BAND_COLUMNS * (LEADING + 1)];
    const int first = blockIdx.x * BAND_ROWS - REACH, i = blockIdx.x * BAND_ROWS + threadIdx.x;
    for (int k = threadIdx.x; k < BAND_COLUMNS * LEADING; k += BAND_ROWS) {
        const int column = first + k / LEADING;
        columns[k / LEADING * (LEADING + 1) + k % LEADING] = column >= 0 && column < rows ? band[static_cast<size_t>(column) * LEADING + k % LEADING] : 0.0f;
    }
    __syncthreads();
    if (i >= rows) return;
    float sum = 0.0f;
#pragma unroll
    for (int d = -REACH; d <= REACH; d++)
        if (i + d >= 0 && i + d < rows) sum += columns[(threadIdx.x + REACH + d) * (LEADING + 1) + REACH - d] * x[i + d];
    out[i] = sum;
}
__global__ void diagonals_of(const float *band, float *diagonals, int rows) {
    const int i = blockIdx.x * BAND_ROWS + threadIdx.x, d = static_cast<int>(blockIdx.y) - REACH;
    if (i < rows) diagonals[static_cast<size_t>(blockIdx.y) * rows + i] = i + d >= 0 && i + d < rows ? band[static_cast<size_t>(i + d) * LEADING + REACH - d] : 0.0f;
}

Study banded("banded_product_a_row_a_thread", "linear algebra", 1 << 20, "a matrix of 1048576 rows and 31 diagonals, kept by columns, times a vector",
    "a row's entries lie in 31 columns: lanes ask for words 128 bytes apart",
    {{"diagonals", "kept diagonal by diagonal", {"uncoalesced_access"}}, {"staged", "a block's columns come through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *band = b.random<float>(n * LEADING), *x = b.random<float>(n);
        float *diagonals = b.allocate<float>(n * DIAGONALS), *out = b.output<float>(n);
        launch(diagonals_of, dim3(blocks(n, BAND_ROWS), DIAGONALS), BAND_ROWS, 0, band, diagonals, n)();
        return {{"flawed", launch(banded_product, blocks(n, BAND_ROWS), BAND_ROWS, 0, band, x, out, n)}, {"diagonals", launch(banded_product_diagonals, blocks(n, BAND_ROWS), BAND_ROWS, 0, diagonals, x, out, n)},
            {"staged", launch(banded_product_staged, blocks(n, BAND_ROWS), BAND_ROWS, 0, band, x, out, n)}};
    });

// --- what each carrier sent, from what came and its channel: without a flaw ---

__device__ __forceinline__ float2 sent(float2 came, float2 channel, float noise) {
    const float by = 1.0f / (channel.x * channel.x + channel.y * channel.y + noise);
    return make_float2((came.x * channel.x + came.y * channel.y) * by, (came.y * channel.x - came.x * channel.y) * by);
}
__global__ void __launch_bounds__(256) carriers_sent(const float4 *__restrict__ came, const float4 *__restrict__ channels, float4 *__restrict__ out, int pairs, float noise) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= pairs) return;
    const float4 own = came[k], channel = channels[k];
    const float2 a = sent(make_float2(own.x, own.y), make_float2(channel.x, channel.y), noise), z = sent(make_float2(own.z, own.w), make_float2(channel.z, channel.w), noise);
    out[k] = make_float4(a.x, a.y, z.x, z.y);
}

Study equalised("sound_carriers_equalised", "communications", 1 << 22, "what 8388608 carriers sent, from what came and their channels", "", {}, [](Buffers &b, long n) -> Sides {
    const float4 *came = reinterpret_cast<const float4 *>(b.random<float>(n * 4)), *channels = reinterpret_cast<const float4 *>(b.random<float>(n * 4));
    return {{"sound", launch(carriers_sent, blocks(n, 256), 256, 0, came, channels, reinterpret_cast<float4 *>(b.output<float>(n * 4)), n, 0.01f)}};
});

}  // namespace
