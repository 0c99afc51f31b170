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
                                                const CUtensorMap* map_c, int row, int col, bool passing = false) {
    const unsigned buffer = ring.next();
    stage_part<TILE>(words, buffer);
    ring.store(map_c, TILE::swapped ? row : col, TILE::swapped ? col : row, buffer, passing);
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

// A warpgroup's 64 rows of sums from (row, col) on for float32, or to be added to C: rare, so a loop, over what each lane
// keeps of some columns in the warp's buffer, and not a copy of the code for each column.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void store_any(const float (&sums)[COUNT], unsigned buffer, int row, int col,
                                          const gemmprof::Output& out) {
    constexpr int LANES = 32 * 16, FOURS = TILE::store_columns / 16;  // of each lane that the buffer holds
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const unsigned mine = buffer + lane * 16;
    const bool whole = out.is_float && out.plain && row + 64 <= out.m && col + COUNT * 2 <= out.n;
    row += warp * 16 + lane / 4, col += lane % 4 * 2;
#pragma unroll 1
    for (int first = 0; first < COUNT / 4; first += FOURS, col += 8 * FOURS) {
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i)
            if (i / FOURS * FOURS == first)
                ptx::store_shared(mine + i % FOURS * LANES,
                                  make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
        if (whole) {
            float* const above = static_cast<float*>(out.c) + row * out.ldc + col;
#pragma unroll
            for (int i = 0; i < FOURS; ++i) {
                const float4 v = ptx::load_shared(mine + i * LANES);
                *reinterpret_cast<float2*>(above + 8 * i) = make_float2(out.alpha * v.x, out.alpha * v.y);
                *reinterpret_cast<float2*>(above + 8 * out.ldc + 8 * i) = make_float2(out.alpha * v.z, out.alpha * v.w);
            }
            continue;
        }
#pragma unroll 1
        for (int i = 0; i < FOURS; ++i) {
            const float4 v = ptx::load_shared(mine + i * LANES);
            const float four[4] = {v.x, v.y, v.z, v.w};
            gemmprof::store_fragment<T>(out, row, col + 8 * i, four);
        }
    }
}

// A warpgroup's 64 rows of sums from (row, col) on by way of shared memory: packed ones by the copy engine, where there
// is a map of C.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void store_staged(const float (&sums)[COUNT], typename TILE::Ring& ring,
                                             const CUtensorMap* map_c, int row, int col, const gemmprof::Output& out) {
    if (out.is_float || out.beta != 0.0f) return store_any<T, TILE>(sums, ring.memory, row, col, out);
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
