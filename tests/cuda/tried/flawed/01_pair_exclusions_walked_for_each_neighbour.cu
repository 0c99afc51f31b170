// pair_exclusions_walked_for_each_neighbour, side flawed: let the warps of an SM end together: equal shares for warps and blocks, or a queue of work.
#include "../tried.cuh"

constexpr int EDGE = 64, NEIGHBOURS = 64, EXCLUDED = 10, SMS = 132;

// Adds force and energy of a pair: charges and a wall of the twelfth power.
__device__ __forceinline__ void add_pair(float4 &sum, const float4 &own, const float4 &other) {
    const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z, inverse = rsqrtf(dx * dx + dy * dy + dz * dz);
    const float square = inverse * inverse, six = square * square * square, charges = own.w * other.w * inverse, wall = 0.01f * six * six;
    const float force = (charges + 12.f * wall) * square;
    sum.x += force * dx, sum.y += force * dy, sum.z += force * dz, sum.w += charges + wall;
}
// As in the study.
__global__ void __launch_bounds__(128) pair_forces(const float4 *__restrict__ atoms, const int *__restrict__ neighbours, const int *__restrict__ excluded, const int *__restrict__ counts,
    float4 *__restrict__ forces, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 own = atoms[i];
    const int without = counts[i];
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int k = 0; k < NEIGHBOURS; ++k) {
        const int j = neighbours[k * count + i];
        bool bonded = false;
        for (int m = 0; m < without; ++m)
            if (excluded[i * EXCLUDED + m] == j) {
                bonded = true;
                break;
            }
        if (!bonded) add_pair(sum, own, atoms[j]);
    }
    forces[i] = sum;
}

struct Lists {
    const float4 *atoms;
    const int *neighbours, *excluded, *counts;
    int count;
};
// What a thread does for atom i, whose list is at `column`: neighbours first, first + step, ...
__device__ __forceinline__ float4 force_of(const Lists &l, int i, int column, int first, int step) {
    const float4 own = l.atoms[i];
    const int without = l.counts[i];
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int k = first; k < NEIGHBOURS; k += step) {
        const int j = l.neighbours[k * l.count + column];
        bool bonded = false;
        for (int m = 0; m < without; ++m)
            if (l.excluded[i * EXCLUDED + m] == j) {
                bonded = true;
                break;
            }
        if (!bonded) add_pair(sum, own, l.atoms[j]);
    }
    return sum;
}
// Smaller blocks give their places back sooner.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) pair_forces_blocks(const Lists l, float4 *__restrict__ forces) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < l.count) forces[i] = force_of(l, i, i, 0, 1);
}
// The first of the parts of an atom adds their sums.
template <int PARTS>
__device__ __forceinline__ void add_parts(float4 *sums, float4 sum, float4 *force, bool there) {
    constexpr int ATOMS = 128 / PARTS;
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= ATOMS || !there) return;
#pragma unroll
    for (int p = 1; p < PARTS; ++p) {
        const float4 other = sums[p * ATOMS + threadIdx.x];
        sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
    }
    *force = sum;
}
// The neighbours of an atom are shared out to PARTS warps: shares of that part, PARTS times as many blocks, which follow one another.
template <int PARTS>
__global__ void __launch_bounds__(128) pair_forces_split(const Lists l, float4 *__restrict__ forces) {
    __shared__ float4 sums[128];
    constexpr int ATOMS = 128 / PARTS;
    const int i = blockIdx.x * ATOMS + threadIdx.x % ATOMS;
    const bool there = i < l.count;
    const float4 sum = there ? force_of(l, i, i, threadIdx.x / ATOMS, PARTS) : make_float4(0.f, 0.f, 0.f, 0.f);
    add_parts<PARTS>(sums, sum, forces + i, there);
}
// The next unit of the queue. Each of `takers` gets one number that is too high, and stops; the last of these sets the queue back.
__device__ __forceinline__ int next_unit(int *queue, int units, int takers) {
    const int unit = atomicAdd(queue, 1);
    if (unit == units + takers - 1) *queue = 0;
    return unit;
}
// As many blocks as are resident; warps fetch 32 atoms at a time.
__global__ void __launch_bounds__(128) pair_forces_queue(const Lists l, float4 *__restrict__ forces, int *queue) {
    const int lane = threadIdx.x % 32, units = (l.count + 31) / 32;
    for (int round = 0; round <= units; ++round) {
        int unit = 0;
        if (lane == 0) unit = next_unit(queue, units, gridDim.x * 4);
        unit = __shfl_sync(~0u, unit, 0);
        if (unit >= units) return;
        const int i = unit * 32 + lane;
        if (i < l.count) forces[i] = force_of(l, i, i, 0, 1);
        __syncwarp();
    }
}
// As many blocks as are resident fetch 32 atoms at a time, whose neighbours are shared out to the four warps.
__global__ void __launch_bounds__(128) pair_forces_split_queue(const Lists l, float4 *__restrict__ forces, int *queue) {
    __shared__ float4 sums[128];
    __shared__ int fetched;
    const int units = (l.count + 31) / 32;
    for (int round = 0; round <= units; ++round) {
        if (threadIdx.x == 0) fetched = next_unit(queue, units, gridDim.x);
        __syncthreads();
        const int unit = fetched;
        if (unit >= units) return;
        const int i = unit * 32 + threadIdx.x % 32;
        const bool there = i < l.count;
        const float4 sum = there ? force_of(l, i, i, threadIdx.x / 32, 4) : make_float4(0.f, 0.f, 0.f, 0.f);
        add_parts<4>(sums, sum, forces + i, there);
        __syncthreads();
    }
}
// Atoms sorted by the number of excluded ones, most first; lists of neighbours (l.neighbours) are in that order, too.
__global__ void __launch_bounds__(128) pair_forces_sorted(const Lists l, const int *__restrict__ order, float4 *__restrict__ forces) {
    const int at = blockIdx.x * 128 + threadIdx.x;
    if (at >= l.count) return;
    const int i = order[at];
    forces[i] = force_of(l, i, at, 0, 1);
}
// Sorted, and neighbours shared out to PARTS warps.
template <int PARTS>
__global__ void __launch_bounds__(128) pair_forces_sorted_split(const Lists l, const int *__restrict__ order, float4 *__restrict__ forces) {
    __shared__ float4 sums[128];
    constexpr int ATOMS = 128 / PARTS;
    const int at = blockIdx.x * ATOMS + threadIdx.x % ATOMS;
    const bool there = at < l.count;
    const int i = there ? order[at] : 0;
    const float4 sum = there ? force_of(l, i, at, threadIdx.x / ATOMS, PARTS) : make_float4(0.f, 0.f, 0.f, 0.f);
    add_parts<PARTS>(sums, sum, forces + i, there);
}

template <class K> int resident(K kernel) { int blocks = 1; check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0)); return blocks; }

int main() {
    const int n = EDGE * EDGE * EDGE;
    std::vector<float4> atom(n);
    std::vector<int> list(n * NEIGHBOURS), sorted(n * NEIGHBOURS), bonds(n * EXCLUDED, -1), number(n), ranks(n);
    struct Step { int x, y, z; };
    std::vector<Step> steps;
    for (int z = -2; z <= 2; ++z)
        for (int y = -2; y <= 2; ++y)
            for (int x = -2; x <= 2; ++x)
                if (x || y || z) steps.push_back({x, y, z});
    std::stable_sort(steps.begin(), steps.end(), [](const Step &a, const Step &c) { return a.x * a.x + a.y * a.y + a.z * a.z < c.x * c.x + c.y * c.y + c.z * c.z; });
    auto inside = [](int at, int step) { return at + step < 0 || at + step >= EDGE ? at - step : at + step; };
    for (int i = 0; i < n; ++i) {
        const unsigned h = hashed(static_cast<unsigned>(i));
        const int x = i % EDGE, y = i / EDGE % EDGE, z = i / (EDGE * EDGE);
        auto jitter = [&](int shift) { return static_cast<float>(h >> shift & 255) / 1280.f - 0.1f; };
        atom[i] = make_float4(x + jitter(0), y + jitter(8), z + jitter(16), static_cast<float>(h >> 24) / 255.f - 0.5f);
        number[i] = 6 + static_cast<int>(h % 5), ranks[i] = i;
        for (int m = 0; m < number[i]; ++m) bonds[i * EXCLUDED + m] = i + (m % 2 ? m / 2 + 1 : -(m / 2 + 1));  // along the chain
        for (int k = 0; k < NEIGHBOURS; ++k) list[k * n + i] = (inside(z, steps[k].z) * EDGE + inside(y, steps[k].y)) * EDGE + inside(x, steps[k].x);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return number[a] > number[b]; });
    for (int k = 0; k < NEIGHBOURS; ++k)
        for (int at = 0; at < n; ++at) sorted[k * n + at] = list[k * n + ranks[at]];
    const float4 *atoms = copied(atom);
    const int *neighbours = copied(list), *excluded = copied(bonds), *counts = copied(number), *order = copied(ranks);
    const Lists l{atoms, neighbours, excluded, counts, n}, in_order{atoms, copied(sorted), excluded, counts, n};
    int *queue = get<int>(1);
    check(cudaMemset(queue, 0, 4));
    const int all = SMS * resident(pair_forces_queue), all_split = SMS * resident(pair_forces_split_queue);
    float *out = get<float>(4 * n);
    float4 *forces = reinterpret_cast<float4 *>(out);
    judge({
        {"as_it_is", [=] { pair_forces<<<n / 128, 128>>>(atoms, neighbours, excluded, counts, forces, n); }},
        {"split_2", [=] { pair_forces_split<2><<<n / 64, 128>>>(l, forces); }},
        {"split_4", [=] { pair_forces_split<4><<<n / 32, 128>>>(l, forces); }},
        {"split_4_queue", [=] { pair_forces_split_queue<<<all_split, 128>>>(l, forces, queue); }},
        {"queue_of_warps", [=] { pair_forces_queue<<<all, 128>>>(l, forces, queue); }},
        {"queue_of_warps_half_resident", [=] { pair_forces_queue<<<SMS * 8, 128>>>(l, forces, queue); }},
        {"sorted", [=] { pair_forces_sorted<<<n / 128, 128>>>(in_order, order, forces); }},
        {"sorted_split_4", [=] { pair_forces_sorted_split<4><<<n / 32, 128>>>(in_order, order, forces); }},
        {"blocks_of_64", [=] { pair_forces_blocks<64><<<n / 64, 64>>>(l, forces); }},
    }, {{out, 4 * n}});
}
