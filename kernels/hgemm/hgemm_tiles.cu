// Stage 11, 16-bit tiles by shape: four kernels, and a model of time that chooses between them.
//
// What changed against stage 10: the kernel is a template of its tile. Smaller tiles leave fewer SMs idle where C is
// small, and are computed by both consumers together where no next tile would hide a store. The host expects the time
// of each, cut or not, from two numbers a tile: what a step along K takes, and what its start and end take.
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

constexpr bool SHARE_K = false;

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED, class TILE>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_tiles(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Schedule schedule, gemmprof::Output out) {
    compute_pieces<T, TILE, A_TRANSPOSED, B_TRANSPOSED, SHARE_K>(map_a, map_b, map_c, schedule, out);
}

}  // namespace GEMMPROF_STAGE

#include "tiles_by_shape.cuh"
