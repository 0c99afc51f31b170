// Stage 12, 16-bit split-K: blocks of a cluster share a tile where tiles are too few.
//
// What changed against stage 11: up to 8 blocks share a tile of the two that both consumers compute together. Each sums
// a part of K, and as a cluster they send their sums through distributed shared memory to the one that adds and stores
// them, each block a share of the tile (exchanged_sums.cuh). No workspace, the same result every time, and ended sooner
// than what is cut (stage 10), whose sums go by way of memory.
// What a block does with a tile is in compute_pieces.cuh, the tiles and the choice in tiles_by_shape.cuh.
#include "compute_pieces.cuh"

// The build compiles the kernels in so many parts side by side.
#ifdef GEMMPROF_PART
constexpr int PARTS = 5;
#else
constexpr int PARTS = 1;
#define GEMMPROF_PART 0
#endif

namespace GEMMPROF_STAGE {

constexpr bool SHARE_K = true;

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED, class TILE>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_split_k(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Schedule schedule, gemmprof::Output out) {
    compute_pieces<T, TILE, A_TRANSPOSED, B_TRANSPOSED, SHARE_K>(map_a, map_b, map_c, schedule, out);
}

}  // namespace GEMMPROF_STAGE

#include "tiles_by_shape.cuh"
