// The tiles of the fastest stage.
#pragma once

#include "consumers.cuh"

namespace GEMMPROF_STAGE {

// The tiles, their one list: name, rows, columns, stages, blocks that copy one operand for each other (a pair, or the
// four of a Quad), how consumers divide the work, swapped, buffers for what a warp stores if not two. The catalog's
// parameters give the large one. The others are for problems that it would leave SMs idle in, or store too much in. In
// turn: in pairs (Turn) or alone (Lone); of swapped ones, rows and columns of C have changed places. Flat ones are for C
// of no more than their 16 or 32 rows, the thin one for no more than its columns. Those from Narrow on are for problems
// of one round, whose blocks may share K: narrow, a pair that reads B once, of 96 rows of C, and of 192 as a pair that
// reads its rows' operand once; of 32 rows where there are few tiles. Quads are for rows that begin within a sector, the
// last for a short K: what is stored waits for memory, not for the copy engine. A tile's number is its place in the list;
// fastest_choice.cuh knows what each costs, and that blocks may share it unless it is in turn or kept.
#define GEMMPROF_TILES(X)                                     \
    X(Large, BM, BN, STAGES, 1, Consumers::kTogether, false)  \
    X(LargePair, BM, BN, STAGES, 2, Consumers::kTogether, false) \
    X(Turn160, 128, 160, 5, 2, Consumers::kInTurn, false)     \
    X(Turn192, 128, 192, 5, 2, Consumers::kInTurn, false)     \
    X(Medium, 128, 128, 6, 1, Consumers::kTogether, false)    \
    X(Small, 64, 128, 8, 1, Consumers::kTogether, false)      \
    X(Tiny, 64, 64, 12, 1, Consumers::kTogether, false)       \
    X(Lone128, 128, 128, 6, 1, Consumers::kInTurn, false)     \
    X(Lone64, 64, 128, 8, 1, Consumers::kInTurn, false)       \
    X(Flat16, 128, 16, 11, 1, Consumers::kTogether, true)     \
    X(Flat32, 128, 32, 9, 1, Consumers::kTogether, true)      \
    X(Thin32, 128, 32, 8, 1, Consumers::kTogether, false)     \
    X(Narrow, 128, 64, 8, 1, Consumers::kTogether, false)     \
    X(MediumPair, 128, 128, 6, 2, Consumers::kTogether, false) \
    X(Tall96, 128, 96, 7, 1, Consumers::kTogether, true)      \
    X(Slim32, 64, 32, 16, 1, Consumers::kTogether, true)      \
    X(TallPair192, 128, 192, 5, 2, Consumers::kTogether, true) \
    X(SmallQuad, 64, 128, 8, 4, Consumers::kTogether, false)  \
    X(MediumQuad, 128, 128, 6, 4, Consumers::kTogether, false) \
    X(TallQuad160, 128, 160, 5, 4, Consumers::kTogether, true) \
    X(SlimQuad160, 64, 160, 7, 4, Consumers::kTogether, true) \
    X(Lone192, 128, 192, 4, 1, Consumers::kInTurn, false, 4)

#define GEMMPROF_TILE(NAME, ...) \
    struct NAME : Tile<__VA_ARGS__> {};
GEMMPROF_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE

#define GEMMPROF_TILE(NAME, ...) k##NAME,
enum TileName { GEMMPROF_TILES(GEMMPROF_TILE) kTiles };
#undef GEMMPROF_TILE

// Those that also take a transposed A; of five several blocks read one operand once, because rows that begin within a
// sector come slowly (docs/fastest_hgemm.md).
#define GEMMPROF_TRANSPOSED_TILES(X) \
    X(LargePair) X(Turn192) X(Medium) X(Small) X(Tiny) X(Thin32) X(TallPair192) X(SmallQuad) X(MediumQuad)

#define GEMMPROF_TILE(NAME) k##NAME,
constexpr int transposed_tiles[] = {GEMMPROF_TRANSPOSED_TILES(GEMMPROF_TILE)};
#undef GEMMPROF_TILE
inline constexpr int kRows = kTiles + int(sizeof(transposed_tiles) / sizeof(int));  // of four kernels each

// The place of a tile in that list; -1 if it is not there.
constexpr int transposed_row(int tile) {
    for (int row = 0; row < kRows - kTiles; ++row)
        if (transposed_tiles[row] == tile) return row;
    return -1;
}

}  // namespace GEMMPROF_STAGE
