// A warp's sums on their way to C: through shared memory, from where the copy engine takes them.
//
// Of a TILE it needs: store_columns, that a warp hands over at a time, and part_words, what a lane has of them; Ring,
// the buffers; swapped, whether it is of C's transpose.
#pragma once

#include "../include/store_ring.cuh"
#include "wgmma_tile.cuh"

namespace GEMMPROF_STAGE {

// Sums as elements of C, two in a word.
template <class T, int COUNT>
__device__ __forceinline__ void pack_sums(unsigned (&words)[COUNT], const float* sums, float alpha = 1.0f) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) words[i] = gemmprof::pack<T>(alpha * sums[2 * i], alpha * sums[2 * i + 1]);
}

// A warp's 16 rows of packed sums, store_columns of them, into `buffer` in shared memory, as the copy engine swizzles
// 128, 64 or 32 bytes. Those of a swapped tile are 16 columns of C, of which a row has 32 bytes.
template <class TILE>
__device__ __forceinline__ void stage_part(const unsigned (&words)[TILE::part_words], unsigned buffer) {
    constexpr int COLUMNS = TILE::store_columns;
    const int lane = threadIdx.x % 32;
    const unsigned line = buffer + (TILE::swapped ? (lane / 16 * 8 + lane % 8) * 32 + (lane / 8 ^ lane / 4) % 2 * 16
                                                  : lane % 16 * COLUMNS * 2);
    const int key = COLUMNS == 64 ? lane % 8 : lane / 2 % 4;
#pragma unroll
    for (int i = 0; i < COLUMNS / 16; ++i) {
        const unsigned* const four = &words[i * 4];
        if constexpr (TILE::swapped)
            ptx::store_transposed(line + i * 16 * 32, four[0], four[1], four[2], four[3]);
        else
            ptx::store_matrices(line + ((2 * i + lane / 16) ^ key) * 16, four[0], four[1], four[2], four[3]);
    }
}

// Both, by way of the warp's own buffers.
template <class TILE>
__device__ __forceinline__ void stage_and_store(const unsigned (&words)[TILE::part_words], typename TILE::Ring& ring,
                                                const CUtensorMap* map_c, int row, int col) {
    const unsigned buffer = ring.next();
    stage_part<TILE>(words, buffer);
    ring.store(map_c, TILE::swapped ? row : col, TILE::swapped ? col : row, buffer);
}

// The same where the copy engine cannot store, because rows of C begin anywhere: elements, neighbours by neighbouring
// lanes. From registers a lane would write two in each of eight rows, and L2 merge sixteen writes of a sector.
template <class TILE>
__device__ __forceinline__ void stage_and_store_elements(const unsigned (&words)[TILE::part_words], unsigned buffer,
                                                         const gemmprof::Output& out, int row, int col) {
    constexpr int HIGH = TILE::swapped ? TILE::store_columns : 16, WIDE = TILE::swapped ? 16 : TILE::store_columns;
    const int first_row = TILE::swapped ? col : row, first_col = TILE::swapped ? row : col;
    __syncwarp();  // all have read what the buffer held
    stage_part<TILE>(words, buffer);
    __syncwarp();
    unsigned short* const c = static_cast<unsigned short*>(out.c);
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < HIGH * WIDE; i += 32) {
        const int r = i / WIDE, column = i % WIDE;
        const int key = WIDE == 64 ? r % 8 : WIDE == 32 ? r / 2 % 4 : r / 4 % 2;
        const unsigned short bits =
            ptx::load_shared_16_bits(buffer + r * WIDE * 2 + (column / 8 ^ key) * 16 + column % 8 * 2);
        if (first_row + r < out.m && first_col + column < out.n) c[(first_row + r) * out.ldc + first_col + column] = bits;
    }
}

// A warpgroup's 64 rows of sums from (row, col) on: packed ones through shared memory, by the copy engine where there is
// a map of C; sums for float32, or to be added to C, from registers.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void store_staged(const float (&sums)[COUNT], typename TILE::Ring& ring,
                                             const CUtensorMap* map_c, int row, int col, const gemmprof::Output& out) {
    if (out.is_float || out.beta != 0.0f) {
        store_sums<T>(sums, row, col, out);
        return;
    }
    row += threadIdx.x % 128 / 32 * 16;
#pragma unroll
    for (int first = 0; first < COUNT * 2; first += TILE::store_columns) {
        unsigned words[TILE::part_words];
        pack_sums<T>(words, sums + first / 2, out.alpha);
        if (map_c != nullptr)
            stage_and_store<TILE>(words, ring, map_c, row, col + first);
        else
            stage_and_store_elements<TILE>(words, ring.memory, out, row, col + first);
    }
}

// Packed sums leave by way of shared memory; others, and what is added to C, from registers.
inline bool stored_packed(const gemmprof::Gemm& g) { return g.c_dtype == g.dtype && g.beta == 0.0f; }

// The copy engine writes whole 16 bytes, past the end of a row if it ends within them.
inline bool stored_by_copies(const gemmprof::Gemm& g) {
    return stored_packed(g) && (g.ldc | g.n) % gemmprof::CHUNK == 0 &&
           reinterpret_cast<std::uintptr_t>(g.c) % 16 == 0;
}

}  // namespace GEMMPROF_STAGE
