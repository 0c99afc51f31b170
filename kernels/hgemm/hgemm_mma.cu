// Stage 3, 16-bit mma.sync: the tensor cores' own instruction, fed by ldmatrix from swizzled tiles.
//
// One thing changed against stage 2: it is known which lane holds what (mma_tile.cuh). ldmatrix loads four 8 x 8
// matrices an instruction and transposes B on its way, one set of fragments while another is multiplied; swizzled rows
// need no padding, and sums go from registers straight to C.
#include "mma_tile.cuh"

static_assert(A_BYTES + B_BYTES <= 101376, "the tiles must fit 99 KiB of shared memory");

namespace GEMMPROF_STAGE {

template <class T>
__global__ void __launch_bounds__(THREADS, blocks_of_an_sm())
    hgemm_mma(int M, int N, int K, const T* __restrict__ A, std::int64_t lda, const T* __restrict__ B, std::int64_t ldb,
              gemmprof::Output out) {
    extern __shared__ __align__(128) unsigned char shared[];
    unsigned char* const As = shared;
    unsigned char* const Bs = shared + A_BYTES;

    const int tiles_n = gemmprof::ceil_div(N, BN);
    const int block_row = int(blockIdx.x / tiles_n) * BM, block_col = int(blockIdx.x % tiles_n) * BN;
    WarpSums sums = {};

    // The next tiles wait in registers while these are multiplied.
    uint4 next_a[A_BYTES / 16 / THREADS], next_b[B_BYTES / 16 / THREADS];
    const auto load_tiles = [&](int k) {
        int i = 0;
        for_each_chunk<BM, BK>([&](int row, int col, int) {
            const bool inside = block_row + row < M && k + col < K;
            next_a[i++] = inside ? *reinterpret_cast<const uint4*>(A + (block_row + row) * lda + k + col) : uint4{};
        });
        i = 0;
        for_each_chunk<BK, BN>([&](int row, int col, int) {
            const bool inside = k + row < K && block_col + col < N;
            next_b[i++] = inside ? *reinterpret_cast<const uint4*>(B + (k + row) * ldb + block_col + col) : uint4{};
        });
    };
    load_tiles(0);
    for (int k = 0; k < K; k += BK) {
        int i = 0;
        for_each_chunk<BM, BK>([&](int, int, int to) { *reinterpret_cast<uint4*>(As + to) = next_a[i++]; });
        i = 0;
        for_each_chunk<BK, BN>([&](int, int, int to) { *reinterpret_cast<uint4*>(Bs + to) = next_b[i++]; });
        __syncthreads();
        load_tiles(k + BK);
        const unsigned a_tile = gemmprof::ptx::shared_address(As), b_tile = gemmprof::ptx::shared_address(Bs);
        Fragments fragments[2];
        fragments[0].load(a_tile, b_tile, 0);
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            if (step + 1 < K_STEPS) fragments[(step + 1) % 2].load(a_tile, b_tile, step + 1);
            fragments[step % 2].multiply<T>(sums);
        }
        __syncthreads();
    }
    store_sums<T>(sums, block_row, block_col, out);
}

const gemmprof::KernelFacts kernels[] = {
    {"float16", gemmprof::address(hgemm_mma<__half>), THREADS, A_BYTES + B_BYTES},
    {"bfloat16", gemmprof::address(hgemm_mma<__nv_bfloat16>), THREADS, A_BYTES + B_BYTES},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {false, false}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        const unsigned blocks = unsigned(gemmprof::ceil_div(g.m, BM)) * gemmprof::ceil_div(g.n, BN);
        return gemmprof::launch_kernel(kernels[gemmprof::half_index(g)], blocks, 1, on, g.m, g.n, g.k, g.a, g.lda, g.b,
                                       g.ldb, gemmprof::output_of(g));
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
