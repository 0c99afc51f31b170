// Statement 5: in_degrees_hub_atomics, side matched: what a warp has combined already is combined in the block, too, before the global atomic.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
constexpr bool RELATIVE = false;
__host__ __device__ __forceinline__ unsigned hash_of(unsigned x) { x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu; return x ^ (x >> 16); }
template <class T> T *copy(const std::vector<T> &host) { T *data; cudaMalloc(&data, host.size() * sizeof(T)), cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice); return data; }
struct Form { const char *name; std::function<void()> run; };
// Each form against the first (as it is), then two turns of timing. `prepare` is run before each launch, not timed.
template <class T> void judge(int index, const std::vector<Form> &forms, T *out, size_t count, std::function<void()> prepare) {
    std::vector<double> differences;
    std::vector<T> right(count), got(count);
    for (const Form &f : forms) {
        prepare(), f.run(), cudaMemcpy(got.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost);
        if (cudaError_t e = cudaGetLastError()) printf("STMT %d %s failed: %s\n", index, f.name, cudaGetErrorString(e)), exit(1);
        if (&f == &forms[0]) right = got;
        double worst = 0, largest = 0;
        for (size_t i = 0; i < count; ++i) {
            const double d = std::abs(double(got[i]) - double(right[i]));
            if (!(d <= worst)) worst = d == d ? d : INFINITY;  // outputs are poisoned with NaN
            largest = std::max(largest, std::abs(double(right[i])));
        }
        differences.push_back(RELATIVE ? worst / largest : worst);
    }
    void *flush;
    cudaEvent_t a, b;
    cudaMalloc(&flush, 128 << 20), cudaEventCreate(&a), cudaEventCreate(&b);
    for (int turn = 0; turn < 2; ++turn)
        for (size_t f = 0; f < forms.size(); ++f) {
            std::vector<float> t;
            for (int i = 0; i < 60; ++i) {
                float ms;
                prepare(), cudaMemsetAsync(flush, 0, 128 << 20), cudaEventRecord(a), forms[f].run(), cudaEventRecord(b), cudaEventSynchronize(b);
                cudaEventElapsedTime(&ms, a, b);
                if (i > 9) t.push_back(ms * 1e3f);
            }
            std::sort(t.begin(), t.end());
            printf("STMT %d %s %.2f %g\n", index, forms[f].name, t[t.size() / 2], differences[f]);
        }
    if (cudaError_t e = cudaGetLastError()) printf("STMT %d failed: %s\n", index, cudaGetErrorString(e));
}
__global__ void in_degrees_matched(const int *__restrict__ target, unsigned *degree, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int v = target[e];
    unsigned same = __match_any_sync(__activemask(), v);
    if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&degree[v], unsigned(__popc(same)));
}
// A table of SLOTS nodes and their counts in shared memory, first come, first served; a node that finds no slot in two
// tries goes to global memory. Nothing need be known about which nodes are hubs.
template <int SLOTS>
__device__ __forceinline__ void count_in_table(int *key, unsigned *seen, unsigned *degree, int v, unsigned amount) {
    unsigned slot = (v * 2654435761u >> 12) % SLOTS;
    for (int attempt = 0; attempt < 2; ++attempt, slot = (slot + 1) % SLOTS) {
        int there = *static_cast<volatile int *>(key + slot);
        if (there == -1) {
            there = atomicCAS(key + slot, -1, v);
            if (there == -1) there = v;
        }
        if (there == v) {
            atomicAdd(seen + slot, amount);
            return;
        }
    }
    atomicAdd(degree + v, amount);
}
// EDGES (of type int or int4) a load; Matched combines the lanes of a warp that meet at a node first, as before.
template <int THREADS, int SLOTS, bool Matched, class EDGES>
__global__ void __launch_bounds__(THREADS) in_degrees_table(const EDGES *__restrict__ target, unsigned *degree, int loads) {
    constexpr int PER_LOAD = sizeof(EDGES) / sizeof(int);
    extern __shared__ int key[];
    unsigned *seen = reinterpret_cast<unsigned *>(key + SLOTS);
    for (int i = threadIdx.x; i < SLOTS; i += THREADS) key[i] = -1, seen[i] = 0;
    __syncthreads();
    for (int e = blockIdx.x * THREADS + threadIdx.x; e < loads; e += gridDim.x * THREADS) {
        union { EDGES all; int one[PER_LOAD]; } v = {target[e]};
#pragma unroll
        for (int k = 0; k < PER_LOAD; ++k)
            if (Matched) {
                const unsigned same = __match_any_sync(__activemask(), v.one[k]);
                if (threadIdx.x % 32 == __ffs(same) - 1) count_in_table<SLOTS>(key, seen, degree, v.one[k], __popc(same));
                __syncwarp();  // loads are multiples of 32: warps stay whole
            } else count_in_table<SLOTS>(key, seen, degree, v.one[k], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SLOTS; i += THREADS)
        if (seen[i]) atomicAdd(degree + key[i], seen[i]);
}
// Nodes are numbered by falling degree: the first HUBS are counted in shared memory, four edges a load.
template <int THREADS, int HUBS>
__global__ void __launch_bounds__(THREADS) in_degrees_first(const int4 *__restrict__ target, unsigned *degree, int fours) {
    extern __shared__ unsigned hub[];
    for (int i = threadIdx.x; i < HUBS; i += THREADS) hub[i] = 0;
    __syncthreads();
    for (int e = blockIdx.x * THREADS + threadIdx.x; e < fours; e += gridDim.x * THREADS) {
        const int4 four = target[e];
        const int v[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (v[k] < HUBS) atomicAdd(hub + v[k], 1u);
            else atomicAdd(degree + v[k], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HUBS; i += THREADS)
        if (hub[i]) atomicAdd(degree + i, hub[i]);
}
template <class... P, class... A> std::function<void()> launch(void (*kernel)(P...), int blocks, int threads, int shared, A... arguments) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    return [=] { kernel<<<blocks, threads, shared>>>(static_cast<P>(arguments)...); };
}
int main() {
    const int edges = 1 << 24, nodes = 1 << 20;
    std::vector<int> host(edges);
    for (int e = 0; e < edges; ++e) {
        const double u = (hash_of(e) >> 8) / 16777216.0;
        host[e] = static_cast<int>(nodes * u * u * u * u * u * u);
    }
    const int *target = copy(host);
    const int4 *fours = reinterpret_cast<const int4 *>(target);
    unsigned *degree;
    cudaMalloc(&degree, 4ul * nodes);
    judge(5, {{"as_it_is", launch(in_degrees_matched, edges / 256, 256, 0, target, degree, edges)},
        {"block_of_256_edges", launch(in_degrees_table<256, 512, true, int>, edges / 256, 256, 512 * 8, target, degree, edges)},  // one edge a thread, as it is
        {"block_of_8192_edges", launch(in_degrees_table<512, 4096, true, int4>, edges / 8192, 512, 4096 * 8, fours, degree, edges / 4)},
        {"table_4_blocks_matched", launch(in_degrees_table<512, 4096, true, int4>, 132 * 4, 512, 4096 * 8, fours, degree, edges / 4)},
        {"table_4_blocks", launch(in_degrees_table<512, 4096, false, int4>, 132 * 4, 512, 4096 * 8, fours, degree, edges / 4)},
        {"table_2_blocks", launch(in_degrees_table<1024, 8192, false, int4>, 132 * 2, 1024, 8192 * 8, fours, degree, edges / 4)},
        {"first_4096_nodes", launch(in_degrees_first<512, 4096>, 132 * 4, 512, 4096 * 4, fours, degree, edges / 4)},
        {"first_16384_nodes", launch(in_degrees_first<1024, 16384>, 132 * 2, 1024, 16384 * 4, fours, degree, edges / 4)},
        {"first_49152_nodes", launch(in_degrees_first<1024, 49152>, 132, 1024, 49152 * 4, fours, degree, edges / 4)}},
        degree, nodes, [&] { cudaMemsetAsync(degree, 0, 4ul * nodes); });
}
