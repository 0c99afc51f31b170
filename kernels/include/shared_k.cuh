// What kernels for few rows or columns share: warps of a block, and blocks of a cluster, each take a part of K.
#pragma once

#include "ptx.cuh"

namespace gemmprof {

// Walks this warp's steps, of WARPS in each of `parts` blocks, and `load`s two ahead of `multiply`.
template <int WARPS, class Fragments, class Load, class Multiply>
__device__ __forceinline__ void walk_steps(int steps, int parts, int part, const Load& load, const Multiply& multiply) {
    const int stride = parts * WARPS;
    int step = part * WARPS + int(threadIdx.x) / 32;
    Fragments ahead[2];
    if (step < steps) load(ahead[0], step);
    if (step + stride < steps) load(ahead[1], step + stride);
    while (step < steps) {
#pragma unroll
        for (int i = 0; i < 2; ++i, step += stride) {
            if (step >= steps) break;
            multiply(ahead[i], step);
            if (step + 2 * stride < steps) load(ahead[i], step + 2 * stride);
        }
    }
}

// Adds up the `count` sums that each of the cluster's `parts` blocks has, those of i at place(i) of `partial` in shared
// memory, in the order of the blocks; `store(i, sum)` is called once for each.
template <int THREADS, class Place, class Store>
__device__ __forceinline__ void add_up_blocks(float* partial, int count, int parts, int part, const Place& place,
                                              const Store& store) {
    if (parts > 1) ptx::cluster_sync();
    for (int i = part * THREADS + int(threadIdx.x); i < count; i += parts * THREADS) {
        float sum = parts > 1 ? 0.0f : partial[place(i)];
        for (int other = 0; parts > 1 && other < parts; ++other)
            sum += ptx::load_float_of(ptx::address_at(ptx::shared_address(partial + place(i)), unsigned(other)));
        store(i, sum);
    }
    if (parts > 1) ptx::cluster_sync();  // no block leaves while another reads its sums
}

// How many blocks, up to `most`, share K: as many as `time(parts)` is least for.
template <class Time>
int fewest_time(int most, const Time& time) {
    int best = 1;
    for (int parts = 2; parts <= most; ++parts)
        if (time(parts) < time(best)) best = parts;
    return best;
}

}  // namespace gemmprof
