// What stages from 5 on share: operand tiles as the copy engine writes and wgmma reads them. The stages differ in who
// copies, who multiplies, and when.
//
// BK is 64: 64 elements of 16 bits fill the 128 bytes that the widest swizzle spans. A tile lies in shared memory as it
// lies in memory: with K along its rows (row-major A, transposed B), or with M or N along its rows (transposed A,
// row-major B) in blocks of 64 columns. wgmma reads both, so no operand is transposed on its way.
#pragma once

#include "../include/half.cuh"
#include "../include/layouts.cuh"
#include "../include/quad_store.cuh"
#include "../include/tensor_map.cuh"
#include "../include/wgmma.cuh"

static_assert(BK == 64, "BK must be 64: a row of 16-bit elements is one 128-byte swizzle span");

namespace GEMMPROF_STAGE {

namespace ptx = gemmprof::ptx;

// EXTENT rows of A (or columns of B) x BK of K. ALONG_K: neighbours along K lie side by side; otherwise the tile is
// made of blocks of 64 columns, each BK rows of 128 bytes. SHARERS: blocks of a cluster that each copy an equal part of
// the tile into all of them.
template <int EXTENT, bool ALONG_K, int SHARERS = 1>
struct OperandTile {
    static constexpr int boxes = ALONG_K ? 1 : (EXTENT + 63) / 64;
    static constexpr int bytes = (ALONG_K ? EXTENT : boxes * 64) * BK * 2;
    static constexpr int box_rows = (ALONG_K ? EXTENT : BK) / SHARERS;  // a multiple of 8: there the swizzle repeats
    static constexpr int transposed = ALONG_K ? 0 : 1;                  // as wgmma counts it

    // Starts copying this sharer's part of the tile at (start, k). The barrier of every sharer at this place counts
    // what arrives in its own memory; `sharers` has a bit for each of them. A `policy` for L2 may follow.
    template <class... Policy>
    static __device__ __forceinline__ void copy(unsigned tile, const CUtensorMap* map, int start, int k,
                                                unsigned barrier, int sharer = 0, unsigned sharers = 1,
                                                Policy... policy) {
#pragma unroll
        for (int box = 0; box < boxes; ++box) {
            const int x = ALONG_K ? k : start + box * 64;
            const int y = (ALONG_K ? start : k) + sharer * box_rows;
            const unsigned to = tile + (box * BK + sharer * box_rows) * 128;
            if constexpr (SHARERS == 1)
                ptx::copy_box(to, map, x, y, barrier, policy...);
            else
                ptx::copy_box_to(to, map, x, y, barrier, static_cast<unsigned short>(sharers), policy...);
        }
    }

    // wgmma's matrix descriptor of the tile's part from row (or column) `first` on, at k = 0; along K, a multiple of 8.
    // Across, the first stride leads from 64 columns to the next 64, the second from 8 k to the next 8.
    static __device__ __forceinline__ std::uint64_t descriptor(unsigned tile, int first) {
        const unsigned start = tile + (ALONG_K ? first * 128 : first / 64 * BK * 128 + first % 64 * 2);
        return ptx::matrix_descriptor(start, BK * 128);
    }
    // What 16 steps along K add to a descriptor: 32 bytes of a row, or 16 rows of 128 bytes.
    static constexpr std::uint64_t k16 = ALONG_K ? 32 / 16 : 16 * 128 / 16;

    // The tensor map of a stored matrix, of which a tile has rows so far `apart`.
    static cudaError_t describe(CUtensorMap& map, const gemmprof::Stored& matrix, int apart = 1) {
        return gemmprof::describe(map, matrix.data, matrix.rows, matrix.columns, matrix.ld, 64, box_rows, 2, apart);
    }
};

// sums += (or = where `add` is 0) 64 rows of A @ N columns of B over BK, issued and not awaited.
template <class T, class A, class B, int COUNT>
__device__ __forceinline__ void multiply_step(float (&sums)[COUNT], std::uint64_t a, std::uint64_t b, int add) {
    constexpr bool BFLOAT16 = __is_same(T, __nv_bfloat16);
#pragma unroll
    for (int k = 0; k < BK / 16; ++k)
        ptx::wgmma<BFLOAT16, A::transposed, B::transposed>(sums, a + k * A::k16, b + k * B::k16, k == 0 ? add : 1);
}

// A warpgroup's 64 x (COUNT / 4 * 8) sums from (row, col) on, from registers straight to C.
template <class T, int COUNT>
__device__ __forceinline__ void store_sums(const float (&sums)[COUNT], int row, int col, const gemmprof::Output& out) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool inside = row + 64 <= out.m && col + COUNT * 2 <= out.n;
    row += warp * 16 + lane / 4, col += lane % 4 * 2;
    if (out.plain && !out.is_float && inside) {
        // What large problems run: one test for all.
        T* const above = static_cast<T*>(out.c) + row * out.ldc + col;
        T* const below = above + 8 * out.ldc;
#pragma unroll
        for (int j = 0; j < COUNT / 4; ++j) {
            const float* const s = &sums[4 * j];
            *reinterpret_cast<unsigned*>(above + 8 * j) = gemmprof::pack<T>(out.alpha * s[0], out.alpha * s[1]);
            *reinterpret_cast<unsigned*>(below + 8 * j) = gemmprof::pack<T>(out.alpha * s[2], out.alpha * s[3]);
        }
    } else {
        // Any C: a loop over sums in local memory instead of COUNT copies of the code.
        float kept[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) kept[i] = sums[i];
#pragma unroll 1
        for (int j = 0; j < COUNT / 4; ++j) gemmprof::store_fragment<T>(out, row, col + 8 * j, &kept[4 * j]);
    }
}

// The same; what large problems run stores 16 bytes a lane.
template <class T, int COUNT>
__device__ __forceinline__ void store_tile(const float (&sums)[COUNT], int row, int col, const gemmprof::Output& out) {
    if (out.wide && row + 64 <= out.m && col + COUNT * 2 <= out.n) {
        T* const c = static_cast<T*>(out.c) + (row + threadIdx.x / 32 % 4 * 16) * out.ldc + col;
#pragma unroll
        for (int j = 0; j < COUNT / 4; j += 4) gemmprof::store_four_tiles(c + 8 * j, out.ldc, &sums[4 * j], out.alpha);
    } else {
        store_sums<T>(sums, row, col, out);
    }
}

// The tensor maps of A and B for tiles of TILE_M x TILE_N, whose B is copied by SHARERS blocks.
template <int TILE_M, int TILE_N, int SHARERS = 1>
cudaError_t describe_operands(CUtensorMap& map_a, CUtensorMap& map_b, const gemmprof::Gemm& g, int apart = 1) {
    const gemmprof::Stored a = gemmprof::stored(g.a, g.m, g.k, g.lda, g.a_transposed);
    const gemmprof::Stored b = gemmprof::stored(g.b, g.k, g.n, g.ldb, g.b_transposed);
    if (cudaError_t error = g.a_transposed ? OperandTile<TILE_M, false>::describe(map_a, a)
                                           : OperandTile<TILE_M, true>::describe(map_a, a, apart))
        return error;
    return g.b_transposed ? OperandTile<TILE_N, true, SHARERS>::describe(map_b, b)
                          : OperandTile<TILE_N, false, SHARERS>::describe(map_b, b);
}

}  // namespace GEMMPROF_STAGE
