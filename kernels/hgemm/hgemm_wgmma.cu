// Stage 5, 16-bit wgmma: four warps multiply 64 rows by BN columns straight from shared memory.
//
// What changed against stage 4: a warpgroup issues wgmma, which reads both operands from shared memory (no ldmatrix, no
// registers for them), and one thread has the copy engine (TMA) bring whole tiles. A barrier a stage counts the bytes
// that have arrived; what lies outside a matrix arrives as zeros, so no copy is guarded. Hopper (sm_90a) only.
#include "../include/hgemm.cuh"
#include "wgmma_tile.cuh"

constexpr int THREADS = BM / 64 * 128;
constexpr int STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + SWIZZLE_ATOM + 8 * STAGES;

static_assert(BM == 64 || BM == 128 || BM == 192, "BM must be 64, 128 or 192: a warpgroup multiplies 64 rows");
static_assert(BN == 64 || BN == 128 || BN == 192 || BN == 256, "BN must be 64, 128, 192 or 256: what wgmma multiplies");
static_assert(STAGES >= 2, "STAGES must be at least 2: one tile is computed while another is copied");
static_assert(SHARED_BYTES <= SHARED_LIMIT, "STAGES tiles must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_wgmma(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int tiles_n,
                int K, gemmprof::Output out) {
    using A = OperandTile<BM, !A_TRANSPOSED>;
    using B = OperandTile<BN, B_TRANSPOSED>;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned barriers = tiles + STAGES * STAGE_BYTES;

    const int block_row = int(blockIdx.x / tiles_n) * BM, block_col = int(blockIdx.x % tiles_n) * BN;
    const int steps = gemmprof::ceil_div(K, BK);
    const int group_row = threadIdx.x / 128 * 64;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) ptx::barrier_init(barriers + 8 * stage, 1);
        ptx::barrier_init_fence();
    }
    __syncthreads();

    const auto copy_tiles = [&](int stage, int step) {
        const unsigned tile = tiles + stage * STAGE_BYTES, barrier = barriers + 8 * stage;
        ptx::barrier_expect(barrier, STAGE_BYTES);
        A::copy(tile, &map_a, block_row, step * BK, barrier);
        B::copy(tile + A::bytes, &map_b, block_col, step * BK, barrier);
    };
    if (threadIdx.x == 0)
        for (int step = 0; step < STAGES - 1 && step < steps; ++step) copy_tiles(step, step);

    float sums[BN / 2] = {};
    int stage = 0, parity = 0;
    for (int step = 0; step < steps; ++step) {
        ptx::barrier_wait(barriers + 8 * stage, parity);
        const unsigned tile = tiles + stage * STAGE_BYTES;
        ptx::pin(sums);
        ptx::wgmma_fence();
        multiply_step<T, A, B>(sums, A::descriptor(tile, group_row), B::descriptor(tile + A::bytes, 0), 1);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        ptx::pin(sums);
        // Everyone has finished with this stage: its memory takes the tiles STAGES - 1 steps after the next.
        __syncthreads();
        if (threadIdx.x == 0 && step + STAGES - 1 < steps)
            copy_tiles(stage == 0 ? STAGES - 1 : stage - 1, step + STAGES - 1);
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    store_tile<T>(sums, block_row + group_row, block_col, out);
}

GEMMPROF_KERNELS(hgemm_wgmma)

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {true, true}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        CUtensorMap map_a, map_b;
        if (cudaError_t error = describe_operands<BM, BN>(map_a, map_b, g)) return error;
        const int tiles_m = gemmprof::ceil_div(g.m, BM), tiles_n = gemmprof::ceil_div(g.n, BN);
        return gemmprof::launch_kernel(kernels[kernel_of(g)], unsigned(tiles_m) * tiles_n, 1, on, map_a, map_b, tiles_n,
                                       g.k, gemmprof::output_of(g));
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
