// in_degrees_hub_atomics, side matched: combine in the warp or in shared memory before updating global memory.
#include "../tried.cuh"

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
        const double u = (hashed(e) >> 8) / 16777216.0;
        host[e] = static_cast<int>(nodes * u * u * u * u * u * u);
    }
    const int *target = copied(host);
    const int4 *fours = reinterpret_cast<const int4 *>(target);
    unsigned *degree = get<unsigned>(nodes);
    judge({
        {"as_it_is", launch(in_degrees_matched, edges / 256, 256, 0, target, degree, edges)},
        {"block_of_256_edges", launch(in_degrees_table<256, 512, true, int>, edges / 256, 256, 512 * 8, target, degree, edges)},  // one edge a thread, as it is
        {"block_of_8192_edges", launch(in_degrees_table<512, 4096, true, int4>, edges / 8192, 512, 4096 * 8, fours, degree, edges / 4)},
        {"table_4_blocks_matched", launch(in_degrees_table<512, 4096, true, int4>, 132 * 4, 512, 4096 * 8, fours, degree, edges / 4)},
        {"table_4_blocks", launch(in_degrees_table<512, 4096, false, int4>, 132 * 4, 512, 4096 * 8, fours, degree, edges / 4)},
        {"table_2_blocks", launch(in_degrees_table<1024, 8192, false, int4>, 132 * 2, 1024, 8192 * 8, fours, degree, edges / 4)},
        {"first_4096_nodes", launch(in_degrees_first<512, 4096>, 132 * 4, 512, 4096 * 4, fours, degree, edges / 4)},
        {"first_16384_nodes", launch(in_degrees_first<1024, 16384>, 132 * 2, 1024, 16384 * 4, fours, degree, edges / 4)},
        {"first_49152_nodes", launch(in_degrees_first<1024, 49152>, 132, 1024, 49152 * 4, fours, degree, edges / 4)},
    }, {{degree, nodes}}, [=] { check(cudaMemsetAsync(degree, 0, nodes * sizeof(unsigned))); });
}
