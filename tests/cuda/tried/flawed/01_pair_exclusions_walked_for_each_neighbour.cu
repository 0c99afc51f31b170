#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
__host__ __device__ __forceinline__ unsigned hashed(unsigned x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ (x >> 16); }
__global__ void fill(float *data, size_t count, float low, float high, unsigned seed) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) data[i] = low + (high - low) * (hashed((unsigned)i + hashed(seed)) >> 8) * 0x1p-24f;
}
// The largest difference and the largest value, as bits: NaN is larger than all.
__global__ void compare(const float *a, const float *b, size_t count, unsigned *result) {
    unsigned most = 0, largest = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        most = max(most, __float_as_uint(fabsf(a[i] - b[i]))), largest = max(largest, __float_as_uint(fabsf(a[i])));
    atomicMax(result, most), atomicMax(result + 1, largest);
}
void check(cudaError_t e) { if (e != cudaSuccess) { fprintf(stderr, "ERROR %s\n", cudaGetErrorString(e)); exit(1); } }
template <class T> T *get(size_t count) { T *p; check(cudaMalloc(&p, count * sizeof(T))); return p; }
struct Form { const char *name; std::function<void(float *)> run; float diff; };
// Runs all forms, the first of which is the original; out: count values, poisoned with `poison` before each run to compare.
void judge(int index, std::vector<Form> forms, size_t count, int poison) {
    float *truth = get<float>(count), *out = get<float>(count);
    unsigned *result = get<unsigned>(2), bits[2];
    void *flush = get<char>(128 << 20);
    cudaEvent_t a, b; check(cudaEventCreate(&a)), check(cudaEventCreate(&b));
    check(cudaMemset(truth, poison, count * 4)), forms[0].run(truth);
    for (Form &f : forms) {
        check(cudaMemset(out, poison, count * 4)), check(cudaMemset(result, 0, 8));
        f.run(out);
        check(cudaGetLastError());
        compare<<<1056, 256>>>(truth, out, count, result);
        check(cudaMemcpy(bits, result, 8, cudaMemcpyDeviceToHost));
        float v[2]; memcpy(v, bits, 8); f.diff = v[0] / v[1];
    }
    for (int turn = 0; turn < 2; ++turn)
        for (Form &f : forms) {
            std::vector<float> t;
            for (int i = 0; i < 60; ++i) {
                check(cudaMemsetAsync(flush, 0, 128 << 20));
                check(cudaEventRecord(a)); f.run(out); check(cudaEventRecord(b)); check(cudaEventSynchronize(b));
                float ms; check(cudaEventElapsedTime(&ms, a, b)); if (i > 9) t.push_back(ms * 1e3f);
            }
            check(cudaGetLastError());
            std::sort(t.begin(), t.end());
            printf("STMT %d %s %.2f %.3g\n", index, f.name, t[t.size() / 2], f.diff);
        }
}

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

template <class T> T *copied(const std::vector<T> &host) {
    T *p = get<T>(host.size());
    check(cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
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
    auto to = [](float *o) { return reinterpret_cast<float4 *>(o); };
    judge(1, {
        {"as_it_is", [=](float *o) { pair_forces<<<n / 128, 128>>>(atoms, neighbours, excluded, counts, to(o), n); }},
        {"split_2", [=](float *o) { pair_forces_split<2><<<n / 64, 128>>>(l, to(o)); }},
        {"split_4", [=](float *o) { pair_forces_split<4><<<n / 32, 128>>>(l, to(o)); }},
        {"split_4_queue", [=](float *o) { pair_forces_split_queue<<<all_split, 128>>>(l, to(o), queue); }},
        {"queue_of_warps", [=](float *o) { pair_forces_queue<<<all, 128>>>(l, to(o), queue); }},
        {"queue_of_warps_half_resident", [=](float *o) { pair_forces_queue<<<SMS * 8, 128>>>(l, to(o), queue); }},
        {"sorted", [=](float *o) { pair_forces_sorted<<<n / 128, 128>>>(in_order, order, to(o)); }},
        {"sorted_split_4", [=](float *o) { pair_forces_sorted_split<4><<<n / 32, 128>>>(in_order, order, to(o)); }},
        {"blocks_of_64", [=](float *o) { pair_forces_blocks<64><<<n / 64, 64>>>(l, to(o)); }},
    }, 4 * n, 0xff);
}
