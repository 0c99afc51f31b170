// Sums that a block leaves in memory to another one, which adds them to its own.
#pragma once

#include "ptx.cuh"
#include "workspace.cuh"

namespace gemmprof {

// Leaves the sums of steps of a tile that are not its first to the block that computes those.
template <int HALVES, int COUNT>
__device__ __forceinline__ void leave_part(const float (&sums)[HALVES][COUNT], float4* part,
                                           unsigned long long* complete, unsigned long long ticket, int barrier) {
    const int thread = threadIdx.x % 128;
    part += thread;
    asm volatile("" : "+l"(part));  // or all its addresses are computed ahead of the loop over tiles, and spilled
#pragma unroll
    for (int i = 0; i < HALVES * COUNT / 4; ++i) {
        const float* const s = &sums[i * 4 / COUNT][i * 4 % COUNT];
        __stcg(part + i * 128, make_float4(s[0], s[1], s[2], s[3]));
    }
    __threadfence();
    ptx::named_barrier_sync(barrier, 128);
    if (thread == 0) ptx::store_release(complete, ticket);
}

// Adds the sums that another block has left.
template <int HALVES, int COUNT>
__device__ __forceinline__ void take_part(float (&sums)[HALVES][COUNT], const float4* part,
                                          unsigned long long* complete, unsigned long long ticket, int barrier) {
    const int thread = threadIdx.x % 128;
    part += thread;
    asm volatile("" : "+l"(part));
    while (ptx::load_acquire(complete) != ticket) {
    }
    // A few loads at a time: all at once would need registers for as many sums again.
    constexpr int BATCH = 4;
#pragma unroll
    for (int i = 0; i < HALVES * COUNT / 4; i += BATCH) {
        float4 theirs[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) theirs[j] = ptx::load_l2(part + (i + j) * 128);
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            float* const s = &sums[(i + j) * 4 / COUNT][(i + j) * 4 % COUNT];
            s[0] += theirs[j].x, s[1] += theirs[j].y, s[2] += theirs[j].z, s[3] += theirs[j].w;
            asm volatile("" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]));
        }
    }
    ptx::named_barrier_sync(barrier, 128);
    if (thread == 0) *complete = 0;
}

// Room for the sums that blocks leave each other, and a word for each that says they are complete. Without room (null),
// tiles are not cut.
class Parts {
  public:
    float4* parts = nullptr;
    unsigned long long* complete = nullptr;

    Parts(int device, int blocks, std::size_t part_bytes, cudaStream_t stream)
        : memory_(device, blocks == 0 ? 0 : flag_bytes(blocks) + blocks * part_bytes, stream) {
        if (memory_.data == nullptr) return;
        complete = static_cast<unsigned long long*>(memory_.data);
        parts = reinterpret_cast<float4*>(static_cast<char*>(memory_.data) + flag_bytes(blocks));
    }

  private:
    static std::size_t flag_bytes(int blocks) { return (std::size_t(blocks) * 8 + 255) / 256 * 256; }

    Workspace memory_;
};

}  // namespace gemmprof
