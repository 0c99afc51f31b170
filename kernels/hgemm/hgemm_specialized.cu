// Stage 6, 16-bit warp specialisation: one warpgroup copies, the others multiply, and none waits for all.
//
// What changed against stage 5: copying and multiplying are different warps' work, so there is no barrier of the whole
// block in the loop. Each stage has two barriers: `full` (its tiles have arrived) and `empty` (all consumers are done
// with it). A consumer keeps one step of wgmma in flight while it issues the next, and setmaxnreg gives it the
// registers that the producer does not need, so a warpgroup can keep 64 x 256 sums.
#include "../include/hgemm.cuh"
#include "wgmma_tile.cuh"

constexpr int CONSUMERS = BM / 64;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + SWIZZLE_ATOM + 16 * STAGES;

static_assert(BM == 64 || BM == 128,
              "BM must be 64 or 128: a consumer warpgroup multiplies 64 rows, and there are 1 or 2");
static_assert(BN == 64 || BN == 128 || BN == 192 || BN == 256, "BN must be 64, 128, 192 or 256: what wgmma multiplies");
static_assert(STAGES >= 2, "STAGES must be at least 2: one tile is computed while another is copied");
static_assert(SHARED_BYTES <= SHARED_LIMIT, "STAGES tiles must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_specialized(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int tiles_n,
                      int K, gemmprof::Output out) {
    using A = OperandTile<BM, !A_TRANSPOSED>;
    using B = OperandTile<BN, B_TRANSPOSED>;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned full = tiles + STAGES * STAGE_BYTES, empty = full + 8 * STAGES;

    const int block_row = int(blockIdx.x / tiles_n) * BM, block_col = int(blockIdx.x % tiles_n) * BN;
    const int steps = gemmprof::ceil_div(K, BK);
    const int group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            ptx::barrier_init(full + 8 * stage, 1);
            ptx::barrier_init(empty + 8 * stage, CONSUMERS);
        }
        ptx::barrier_init_fence();
    }
    __syncthreads();

    int stage = 0, parity = 0;
    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (threadIdx.x == CONSUMERS * 128) {
            for (int step = 0; step < steps; ++step) {
                // A fresh barrier counts the phase before its first as complete: the first round does not wait.
                ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                const unsigned tile = tiles + stage * STAGE_BYTES, barrier = full + 8 * stage;
                ptx::barrier_expect(barrier, STAGE_BYTES);
                A::copy(tile, &map_a, block_row, step * BK, barrier);
                B::copy(tile + A::bytes, &map_b, block_col, step * BK, barrier);
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
        }
    } else {
        ptx::take_registers<232>();
        float sums[BN / 2];
        for (int step = 0; step < steps; ++step) {
            ptx::barrier_wait(full + 8 * stage, parity);
            const unsigned tile = tiles + stage * STAGE_BYTES;
            ptx::pin(sums);
            ptx::wgmma_fence();
            multiply_step<T, A, B>(sums, A::descriptor(tile, group * 64), B::descriptor(tile + A::bytes, 0), step > 0);
            ptx::wgmma_commit();
            // All but the step just issued are complete, so the stage before this one is free.
            ptx::wgmma_wait<1>();
            ptx::pin(sums);
            if (step > 0 && threadIdx.x % 128 == 0)
                ptx::barrier_arrive(empty + 8 * (stage == 0 ? STAGES - 1 : stage - 1));
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        ptx::wgmma_wait<0>();
        ptx::pin(sums);
        store_tile<T>(sums, block_row + group * 64, block_col, out);
    }
}

GEMMPROF_KERNELS(hgemm_specialized)

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
