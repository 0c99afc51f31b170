// Stage 13: the sizes of its tiles, and what must hold of them.
#pragma once

#include "gemm.cuh"
#include "ptx.cuh"

// The first architecture with tensor copies and thread block clusters, as __CUDA_ARCH__ counts: Hopper.
#define TENSOR_COPIES_FROM 900

constexpr int GROUP_ROWS = 16;      // tile rows walked together, so that blocks at work share operands in L2
constexpr int MAX_SPLITS = 8;       // the largest cluster that every Hopper GPU accepts
constexpr int MAX_PARTS = 128;      // the most blocks that share a tile without a cluster: a thread waits for each
constexpr std::size_t MOST_PART_BYTES = 64 << 20;  // of sums that they leave for each other

static_assert(BK == 32, "BK must be 32: a row of the A tile is one 128-byte swizzle span");
static_assert(BM % WM == 0 && BN % WN == 0, "whole warp tiles must make up the block tile");
static_assert(WM / TM * (WN / TN) == 32 && WN % TN == 0, "the thread tiles of 32 lanes must make up the warp tile");
static_assert(MEDIUM_BM % MEDIUM_WM == 0 && MEDIUM_BN % MEDIUM_WN == 0,
              "whole warp tiles must make up the medium tile");
static_assert(MEDIUM_BN % MEDIUM_WM == 0 && MEDIUM_BM % MEDIUM_WN == 0, "whole warp tiles must make up the wide tile");
static_assert(SMALL_BM % SMALL_WM == 0 && SMALL_BN % SMALL_WN == 0, "whole warp tiles must make up the small tile");
static_assert(SMALL_BM / 2 % SMALL_WM == 0 && SMALL_BN <= 128, "half the small tile's rows must be whole warp tiles");
static_assert(MEDIUM_WM / MEDIUM_TM * (MEDIUM_WN / TN) == 32, "32 lanes must make up the medium tile's warp tile");
static_assert(SMALL_WM / SMALL_TM * (SMALL_WN / TN) == 32, "32 lanes must make up the small tile's warp tile");
static_assert(MEDIUM_TM % 4 == 0 && SMALL_TM % 4 == 0, "rows of the smaller tiles are multiplied in four groups");
static_assert(TN == 8, "TN must be 8: the order of the FFMAs is made for two float4 of B");
static_assert(TM % 8 == 0, "TM must be a multiple of 8: rows are multiplied in four groups, in pairs forth and back");
static_assert(WM / TM == 4 || WM / TM == 8, "4 or 8 lanes must lie below each other: the swizzle counts rows modulo 8");
static_assert(STAGES == 3, "STAGES must be 3: one tile is computed, one is complete, one is being copied");
static_assert(BM <= 256 && BN <= 256, "a bulk tensor copy moves at most 256 rows or columns");
static_assert(BM * BN <= STAGES * (BM + BN) * BK, "the sums of a block must fit the tiles' shared memory");
static_assert(STAGES * (BM + BN) * BK * 4 + SWIZZLE_ATOM + 8 * STAGES <= 101376,
              "STAGES tiles must fit 99 KiB of shared memory");

namespace GEMMPROF_STAGE {

namespace ptx = gemmprof::ptx;

// A block computes bm x bn of C, each of its warps wm x wn, each thread tm x TN; an SM holds blocks_per_sm such blocks.
// A block has one or more teams of warps; each computes the whole tile, from a part of K of its own.
template <int BM_, int BN_, int WM_, int WN_, int TM_, int BLOCKS_PER_SM_, int TEAMS_ = 1>
struct Tile {
    static constexpr int bm = BM_, bn = BN_, wm = WM_, wn = WN_, tm = TM_, blocks_per_sm = BLOCKS_PER_SM_;
    static constexpr int teams = TEAMS_;
    static constexpr bool through_l2 = teams > 1;  // how blocks that share a tile add up; otherwise as a cluster
    static constexpr bool spans = false;           // a block has parts of two tiles (fastest_spans.cuh)
    static constexpr int team_threads = (bm / wm) * (bn / wn) * 32, threads = teams * team_threads;
    static constexpr int lanes_n = wn / TN;       // lanes side by side along a row of C
    static constexpr int lanes_m = 32 / lanes_n;  // and below each other
    static constexpr int held = tm / 4;           // a thread's rows are multiplied in four groups
    static constexpr int a_bytes = bm * BK * 4, b_bytes = BK * bn * 4, stage_bytes = a_bytes + b_bytes;
    static constexpr int shared_bytes = teams * STAGES * stage_bytes + SWIZZLE_ATOM + teams * 8 * STAGES;
    static constexpr int quads = bm * bn / 4;  // float4 of C
};

// The catalog's parameters give the large tile. Where it is too coarse, a smaller one computes the problem: more blocks
// and warps, but more loads an FFMA.
struct Large : Tile<BM, BN, WM, WN, TM, 2> {};
struct Medium : Tile<MEDIUM_BM, MEDIUM_BN, MEDIUM_WM, MEDIUM_WN, MEDIUM_TM, 3> {};
struct Small : Tile<SMALL_BM, SMALL_BN, SMALL_WM, SMALL_WN, SMALL_TM, 4> {};

// As many teams in one block as blocks of the tile that an SM holds: for few tiles and long K.
struct LargeTeams : Tile<BM, BN, WM, WN, TM, 1, Large::blocks_per_sm> {};
struct MediumTeams : Tile<MEDIUM_BM, MEDIUM_BN, MEDIUM_WM, MEDIUM_WN, MEDIUM_TM, 1, Medium::blocks_per_sm> {};
struct WideTeams : Tile<MEDIUM_BN, MEDIUM_BM, MEDIUM_WM, MEDIUM_WN, MEDIUM_TM, 1, Medium::blocks_per_sm> {};
struct SmallTeams : Tile<SMALL_BM, SMALL_BN, SMALL_WM, SMALL_WN, SMALL_TM, 1, Small::blocks_per_sm> {};

// For up to 32 rows.
struct SlimTeams : Tile<SMALL_BM / 2, SMALL_BN * 2, SMALL_WM, SMALL_WN, SMALL_TM, 1, 3> {};

// One team a block, but adding up through L2: an SM holds several such blocks, also of different tiles, so they fill
// the GPU where the number of tiles divides its SMs badly.
struct LargeParts : Large {
    static constexpr bool through_l2 = true;
};
struct MediumParts : Medium {
    static constexpr bool through_l2 = true;
};
struct LargeSpans : LargeParts {
    static constexpr bool spans = true;
};

// Where the blocks that share a tile, but no cluster, leave their sums for each other.
struct Parts {
    float4* sums;                  // of each block, a tile
    unsigned long long* complete;  // for each block and reader: `ticket` when the sums are there, reset by the reader
    unsigned long long ticket;     // differs from launch to launch
    int readers;                   // how many of a tile's blocks, its last ones, add up shares of it
};

constexpr int QUADS = TN / 4;  // a thread's columns are QUADS float4, lanes_n float4 apart

}  // namespace GEMMPROF_STAGE
