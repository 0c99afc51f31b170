// A warp's part of C on its way through shared memory: the warp writes a buffer, the copy engine stores it.
#pragma once

#include "ptx.cuh"

namespace gemmprof {

// BUFFERS of BYTES each, taken in turn. The turn goes on from tile to tile, because the wait does: it counts groups of
// copies, of whatever tile. A turn that began anew with each tile would hand out memory that is still being read where
// a tile has fewer parts than there are buffers.
template <int BUFFERS, int BYTES>
struct StoreRing {
    unsigned memory;
    int taken = 0;

    // The next buffer, when the copy engine has read what it held. By the whole warp, like `store`.
    __device__ __forceinline__ unsigned next() {
        const unsigned buffer = memory + unsigned(taken++ % BUFFERS * BYTES);
        if (ptx::elect_one()) ptx::store_box_wait<BUFFERS - 1>();
        __syncwarp();
        return buffer;
    }
    // Starts copying what the warp has written there to (x, y), x along the rows. `passing`: L2 keeps it least.
    __device__ __forceinline__ void store(const CUtensorMap* map, int x, int y, unsigned buffer,
                                          bool passing = false) const {
        ptx::fence_async_proxy();
        __syncwarp();
        if (ptx::elect_one()) {
            if (passing)
                ptx::store_box(map, x, y, buffer, ptx::read_once_policy());
            else
                ptx::store_box(map, x, y, buffer);
            ptx::store_box_commit();
        }
    }
    // Before the block ends, and its shared memory with it.
    __device__ __forceinline__ void drain() const {
        if (ptx::elect_one()) ptx::store_box_wait<0>();
    }
};

}  // namespace gemmprof
