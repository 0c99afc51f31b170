// Stage 10, 16-bit stream-K: the last tiles are cut along K, so that all SMs end at the same time.
//
// What changed against stage 9: the tiles of the last two rounds, which rarely fill the GPU, or all where they are
// fewer than the pairs of blocks, are one long row of steps along K. It is cut into equal pieces, one for each cluster
// (pieces.cuh), which its block computes one after the other (compute_pieces.cuh). A cluster leaves the sums of steps that are not a tile's first in memory; the one that computes the
// first takes them from there. The order of additions is fixed, so the result is the same every time.
#include <algorithm>
#include <cmath>

#include "compute_pieces.cuh"
#include "launch_pieces.cuh"

namespace GEMMPROF_STAGE {

using TILE = Tile<BM, BN, STAGES, 2, Consumers::kInTurn, false>;
inline constexpr int SHARED_BYTES = TILE::shared_bytes;

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_stream_k(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Schedule schedule, gemmprof::Output out) {
    compute_pieces<T, TILE, A_TRANSPOSED, B_TRANSPOSED, false>(map_a, map_b, map_c, schedule, out);
}

const gemmprof::KernelFacts kernels[] = GEMMPROF_KERNELS(hgemm_stream_k);

// Whether tiles are cut: microseconds of a step, and what cutting costs on an H200. Clusters at different places of K
// share less of L2, a part of their time more, and the sums that they leave are fetched, those of a tile one by one.
bool cut_pays(int count, int places, int steps) {
    constexpr double STEP = 0.45, APART = 0.33, FETCH = 1.7, FETCH_PER_PART = 2.2;
    const double rounds = double(count) / places, cut = rounds - std::max(0, count / places - 1);
    return double(count) * steps >= 4.0 * places && 2.0 * places * steps < 2147483647.0 &&
           (std::ceil(rounds) - rounds - APART * cut) * steps * STEP > FETCH + FETCH_PER_PART * std::ceil(1.0 / rounds);
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {true, true}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        int device = 0, sms = 0;
        if (cudaError_t error = cudaGetDevice(&device)) return error;
        if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
        const int count = gemmprof::ceil_div(g.m, BM * TILE::pair) * gemmprof::ceil_div(g.n, BN);
        const bool cut = cut_pays(count, sms / TILE::pair, gemmprof::ceil_div(g.k, BK));
        return launch_pieces(g, kernels, facts<TILE>(), 1, cut, device, sms, on);
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
