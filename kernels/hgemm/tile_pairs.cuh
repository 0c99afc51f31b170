// Pairs of blocks that stay and walk the tile pairs of C (stages 7 to 9), in an order made for L2.
#pragma once

#include "../include/clusters.cuh"
#include "../include/hgemm.cuh"
#include "wgmma_tile.cuh"

namespace GEMMPROF_STAGE {

// Tile pairs of C: `rows` below each other, `columns` side by side.
struct TilePairs {
    int rows, columns;

    // The place of the index-th pair: down a band of GROUP rows of pairs, then the next column of the band.
    __device__ __forceinline__ void place(int index, int& row, int& column) const {
        const int band = index / (GROUP * columns), first = band * GROUP;
        const int height = min(GROUP, rows - first), within = index - first * columns;
        row = first + within % height;
        column = within / height;
    }
};

// Launches as many pairs as the GPU holds, or as there are to do. `maps`: those that the kernels take.
template <class TILES, class... Maps>
cudaError_t launch_pairs(const gemmprof::Gemm& g, const gemmprof::KernelFacts* kernels, const TILES& places,
                         cudaStream_t stream, const Maps&... maps) {
    int device = 0, sms = 0;
    if (cudaError_t error = gemmprof::current_device(device, sms)) return error;
    const std::int64_t count = std::int64_t(places.rows) * places.columns;
    const unsigned pairs = unsigned(count < sms / 2 ? count : sms / 2);
    return gemmprof::launch_kernel(kernels[kernel_of(g)], pairs * 2, 2, stream, maps..., places, g.k,
                                   gemmprof::output_of(g));
}

}  // namespace GEMMPROF_STAGE
