// Stage 13: instructions that CUDA C++ has no words for, beyond those of ptx.cuh, in the forms that the order of its
// FFMAs asks for. Loads and stores are volatile, like the FFMAs, so that they stay where they were put among them.
#pragma once

#include <cuda.h>

#include "fastest_tile.cuh"
#include "ptx.cuh"

namespace GEMMPROF_STAGE {

using gemmprof::ptx::barrier_expect;
using gemmprof::ptx::barrier_init;
using gemmprof::ptx::copy_box;
using gemmprof::ptx::shared_address;
using gemmprof::ptx::store_shared;

// Volatile, like the FFMAs, so that it stays where it was put among them.
__device__ __forceinline__ float4 load_shared(unsigned address) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address));
    return v;
}

// Copies `bytes` (the rest of SIZE is filled with zeros) without passing through registers.
template <int SIZE>
__device__ __forceinline__ void copy_async(unsigned to, const float* from, int bytes) {
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nTRY: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra TRY;\n}" ::"r"(
            barrier),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ float4 load_cluster(unsigned address, int rank) {
    float4 v;
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(remote)
                 : "memory");
    return v;
}
#endif

}  // namespace GEMMPROF_STAGE
