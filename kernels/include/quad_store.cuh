// Sums of the tensor cores on their way to C in 16-bit types, whole rows of sectors at a time.
//
// mma and wgmma leave a lane two neighbours of a row in each tile of eight columns: 4 bytes, so that the four lanes of
// a quad write half a sector of 32 bytes, and L2 has to merge it with the other half. After two exchanges within the
// quad a lane has all eight columns of one of four tiles: it stores 16 bytes, the quad 64 in one piece.
#pragma once

#include "half.cuh"

namespace gemmprof {

// Of two words that both lanes hold, the lower lane gets the two first ones, the upper lane the two second ones.
__device__ __forceinline__ void exchange(unsigned& first, unsigned& second, int distance) {
    const bool upper = threadIdx.x & distance;
    const unsigned other = __shfl_xor_sync(~0u, upper ? first : second, distance);
    (upper ? first : second) = other;
}

// Four words of each lane of a quad, as a 4 x 4 matrix with a lane's words along a row, transposed.
__device__ __forceinline__ uint4 transposed_in_quad(unsigned w0, unsigned w1, unsigned w2, unsigned w3) {
    exchange(w0, w1, 1), exchange(w2, w3, 1);
    exchange(w0, w2, 2), exchange(w1, w3, 2);
    return make_uint4(w0, w1, w2, w3);
}

// alpha * sums of four tiles of 16 x 8 side by side, all inside a C whose output is `wide`: 16 of this lane's sums,
// those of a tile one after the other. `c` points to the first tile's row and column 0, as seen by any lane of the
// warp.
template <class T>
__device__ __forceinline__ void store_four_tiles(T* c, std::int64_t ldc, const float* sums, float alpha) {
    const int lane = threadIdx.x % 32;
    T* const mine = c + lane / 4 * ldc + lane % 4 * 8;
#pragma unroll
    for (int below = 0; below < 2; ++below) {
        const auto word = [&](int tile) {
            const float* const s = &sums[4 * tile + 2 * below];
            return pack<T>(alpha * s[0], alpha * s[1]);
        };
        *reinterpret_cast<uint4*>(mine + 8 * below * ldc) = transposed_in_quad(word(0), word(1), word(2), word(3));
    }
}

}  // namespace gemmprof
