// Stage 13, the fastest FP32 kernel of the ladder on Hopper: the roof is one FFMA a cycle, so no cycle may be wasted.
//
// A block of four warps computes 128 x 128 of C, each warp 64 x 64, each thread 16 x 8 (its rows and columns
// interleaved with those of the warp's other lanes); two blocks share an SM. What this stage does over stage 12:
//
// 1. Register banks. Hopper's register file has two banks (even and odd registers), each read once a cycle, and an
//    FFMA reads three registers. It issues every cycle only if one of them comes from the reuse cache (what the FFMA
//    before it read in the same place) and the other two lie in different banks. `multiply` orders the FFMAs so that
//    this is always possible. The optimiser of ptxas shuffles that order to hide latencies that are hidden already, so
//    this stage is compiled with -Xptxas=-O1 (see the catalog): without it, an FFMA took 1.1 to 1.3 cycles.
// 2. Hand-placed shared loads. Every load stands where the registers it fills have just been used for the last time,
//    64 or more FFMAs before its value is needed, so that two warps a scheduler suffice.
// 3. A stays as it lies in memory (the k of a row side by side): no transposition on its way, and a thread reads four k
//    of a row at once. The 128-byte rows of the tile are XOR-swizzled, 16 bytes at a time, against bank conflicts. That
//    is a layout which the bulk tensor copy (TMA) writes, so one thread copies both tiles with two instructions.
// 4. Few tiles leave SMs idle. Up to 8 blocks then share a tile: each sums a part of K, and as a thread block cluster
//    they add their sums through distributed shared memory. No workspace, no atomics, the same result every time.
//
// TMA wants rows that begin at multiples of 16 bytes; an operand without them is copied first. GPUs before Hopper run
// the same kernel with cp.async and without clusters.
#include <cuda.h>

#include <algorithm>
#include <initializer_list>

#include "gemm.cuh"

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int LANES_N = WN / TN;        // lanes side by side along a row of C
constexpr int LANES_M = 32 / LANES_N;   // and below each other
constexpr int QUADS = TN / 4;           // a thread's columns are QUADS float4, LANES_N float4 apart
constexpr int HELD = TM / 4;            // a thread's rows are multiplied in four groups
constexpr int A_BYTES = BM * BK * 4;
constexpr int B_BYTES = BK * BN * 4;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int SWIZZLE_ATOM = 1024;      // the 128-byte swizzle repeats every 8 rows, counted from an aligned address
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + SWIZZLE_ATOM + 8 * STAGES;
constexpr int GROUP_ROWS = 16;          // tile rows walked together, so that blocks at work share operands in L2
constexpr int MAX_SPLITS = 8;           // the largest cluster that every Hopper GPU accepts

static_assert(BK == 32, "BK must be 32: a row of the A tile is one 128-byte swizzle span");
static_assert(WM / TM * LANES_N == 32 && WN % TN == 0, "the thread tiles of 32 lanes must make up the warp tile");
static_assert(TN == 8, "TN must be 8: the order of the FFMAs is made for two float4 of B");
static_assert(TM % 8 == 0, "TM must be a multiple of 8: rows are multiplied in four groups, in pairs forth and back");
static_assert(LANES_M == 4 || LANES_M == 8, "4 or 8 lanes must lie below each other: the swizzle counts rows modulo 8");
static_assert(STAGES == 3, "STAGES must be 3: one tile is computed, one is complete, one is being copied");
static_assert(BM <= 256 && BN <= 256, "a bulk tensor copy moves at most 256 rows or columns");
static_assert(BM * BN * 4 <= STAGES * STAGE_BYTES, "the sums of a block must fit the tiles' shared memory");
static_assert(SHARED_BYTES <= 101376, "STAGES tiles must fit 99 KiB of shared memory");

namespace GEMMPROF_STAGE {

// ---------------------------------------------------------------------------------------------------- PTX, named

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Volatile, like the FFMAs, so that it stays where it was put among them.
__device__ __forceinline__ float4 load_shared(unsigned address) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address));
    return v;
}

__device__ __forceinline__ void store_shared(unsigned address, float4 v) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}

// Copies `bytes` (the rest of SIZE is filled with zeros) without passing through registers.
template <int SIZE>
__device__ __forceinline__ void copy_async(unsigned to, const float* from, int bytes) {
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void barrier_init(unsigned barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nTRY: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra TRY;\n}" ::"r"(
            barrier),
        "r"(parity)
        : "memory");
}

// Starts copying the box at (x, y) of the matrix; the barrier counts the bytes that have arrived.
__device__ __forceinline__ void copy_tensor(unsigned to, const CUtensorMap* map, int x, int y, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ float4 load_cluster(unsigned address, int rank) {
    float4 v;
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(remote)
                 : "memory");
    return v;
}
#endif

// --------------------------------------------------------------------------------------------------- arithmetic

__device__ __forceinline__ float component(const float4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// sums[first_row + row][..] += a[row][k] * b[..] for HELD rows and one k of four.
//
// Along a row, a[row][k] stays in the reuse cache, and each FFMA reads one b and one sum, whose banks differ if a sum's
// column is odd where its register is even (b's registers are aligned quadruples, so column and register agree there;
// ptxas chooses the sums' registers accordingly as long as no vector store ties them together).
// From one row to the next, the row is walked back, so that b stays in the reuse cache, and a new a is read with a sum:
// their banks differ if the row ends in an even column where k is even, and in an odd one where k is odd, because a's
// quadruple runs along k. Hence the columns 0 1 3 5 7 6 4 2 and back, or the same with each pair swapped.
__device__ __forceinline__ void multiply(float (&sums)[TM][TN], const float4 (&a)[HELD], const float4 (&b)[QUADS],
                                         int first_row, int k) {
#pragma unroll
    for (int row = 0; row < HELD; ++row)
#pragma unroll
        for (int step = 0; step < TN; ++step) {
            const int p = row % 2 == 0 ? step : TN - 1 - step;
            const int column = (p == 0 ? 0 : p <= TN / 2 ? 2 * p - 1 : 2 * (TN - p)) ^ (k & 1);
            float& sum = sums[first_row + row][column];
            asm volatile("fma.rn.f32 %0, %1, %2, %0;"
                         : "+f"(sum)
                         : "f"(component(a[row], k)), "f"(component(b[column / 4], column % 4)));
        }
}

__device__ __forceinline__ float4 scaled(float4 sum, float alpha) {
    return make_float4(alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w);
}

// alpha * sum + beta * C for four neighbouring columns of C, those that exist.
__device__ __forceinline__ void store_quad(float* __restrict__ C, std::int64_t ldc, int row, int col, int M, int N,
                                           bool aligned, float4 sum, float alpha, float beta) {
    if (row >= M || col >= N) return;
    float* const c = C + row * ldc + col;
    float4 v = scaled(sum, alpha);
    if (aligned && col + 4 <= N) {
        if (beta != 0.0f) {
            const float4 old = *reinterpret_cast<const float4*>(c);
            v.x += beta * old.x, v.y += beta * old.y, v.z += beta * old.z, v.w += beta * old.w;
        }
        *reinterpret_cast<float4*>(c) = v;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (col + i < N) gemmprof::store(c + i, component(sum, i), alpha, beta);
    }
}

// ------------------------------------------------------------------------------------------------------- kernel

// BY_THREADS: every thread copies its part of the tiles with cp.async, WIDTH floats at a time; otherwise TMA does.
template <bool BY_THREADS, int WIDTH>
__global__ void __launch_bounds__(THREADS, 2)
    sgemm_fastest(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int M, int N,
                  int K, float alpha, const float* __restrict__ A, std::int64_t lda, const float* __restrict__ B,
                  std::int64_t ldb, float beta, float* __restrict__ C, std::int64_t ldc, int splits, bool aligned_c) {
#if __CUDA_ARCH__ < 900
    if constexpr (!BY_THREADS) return;  // never launched there
#endif
    extern __shared__ char shared[];
    const unsigned tiles = (shared_address(shared) + SWIZZLE_ATOM - 1) & ~(SWIZZLE_ATOM - 1u);
    [[maybe_unused]] const unsigned barriers = tiles + STAGES * STAGE_BYTES;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;

    // The tile of C: GROUP_ROWS tile rows at a time, down their columns.
    const int tile = blockIdx.x / splits, split = blockIdx.x % splits;
    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    const int group = tile / (GROUP_ROWS * tile_columns), in_group = tile % (GROUP_ROWS * tile_columns);
    const int group_rows = min(GROUP_ROWS, tile_rows - group * GROUP_ROWS);
    const int block_row = (group * GROUP_ROWS + in_group % group_rows) * BM;
    const int block_col = in_group / group_rows * BN;

    // The part of K: steps [first, last) of BK.
    const int steps = K / BK + (K % BK != 0);
    const int first = int(std::int64_t(steps) * split / splits), last = int(std::int64_t(steps) * (split + 1) / splits);

    const auto stage_address = [&](int step) { return tiles + (step - first) % STAGES * STAGE_BYTES; };

    // Starts copying the tiles of a step. What lies outside the matrices is filled with zeros.
    const auto copy_tiles = [&](int step) {
        const unsigned to = stage_address(step);
        const int k = step * BK;
        if constexpr (!BY_THREADS) {
#if __CUDA_ARCH__ >= 900
            if (thread == 0 && step < last) {
                const unsigned barrier = barriers + (step - first) % STAGES * 8;
                barrier_expect(barrier, STAGE_BYTES);
                copy_tensor(to, &map_a, k, block_row, barrier);
                copy_tensor(to + A_BYTES, &map_b, block_col, k, barrier);
            }
#endif
        } else {
            // Bytes to copy of `WIDTH` floats of which `left` lie inside.
            const auto bytes = [](bool row_inside, int left) { return row_inside ? 4 * max(0, min(WIDTH, left)) : 0; };
            if (step < last) {
                const int a_col = thread % (BK / WIDTH) * WIDTH, a_row = thread / (BK / WIDTH);
#pragma unroll 4
                for (int row = a_row; row < BM; row += THREADS / (BK / WIDTH)) {
                    const int size = bytes(block_row + row < M, K - k - a_col);
                    const float* from = size > 0 ? A + (block_row + row) * lda + k + a_col : A;
                    copy_async<4 * WIDTH>(to + row * BK * 4 + ((a_col / 4 ^ row % 8) * 4 + a_col % 4) * 4, from, size);
                }
                const int b_col = thread % (BN / WIDTH) * WIDTH, b_row = thread / (BN / WIDTH);
#pragma unroll 4
                for (int row = b_row; row < BK; row += THREADS / (BN / WIDTH)) {
                    const int size = bytes(k + row < K, N - block_col - b_col);
                    const float* from = size > 0 ? B + (k + row) * ldb + block_col + b_col : B;
                    copy_async<4 * WIDTH>(to + A_BYTES + (row * BN + b_col) * 4, from, size);
                }
            }
        }
    };

    // Returns when the tiles of a step have arrived and every warp has finished with the stage that step + 1 takes.
    const auto wait_for = [&](int step) {
        if constexpr (!BY_THREADS) {
            __syncthreads();
#if __CUDA_ARCH__ >= 900
            if (step < last) barrier_wait(barriers + (step - first) % STAGES * 8, (step - first) / STAGES % 2);
#endif
        } else {
            asm volatile("cp.async.wait_all;" ::: "memory");
            __syncthreads();
        }
    };

    if constexpr (!BY_THREADS) {
#if __CUDA_ARCH__ >= 900
        if (thread == 0) {
            for (int stage = 0; stage < STAGES; ++stage) barrier_init(barriers + 8 * stage);
            asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
        }
#endif
    }

    const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
    const int lane_row = lane / LANES_N, lane_col = lane % LANES_N * 4;
    const unsigned a_offset = (warp_row + lane_row) * BK * 4 + lane_row * 16;
    const unsigned b_offset = A_BYTES + (warp_col + lane_col) * 4;

    float sums[TM][TN] = {};

    // Four k of one of this thread's rows; `column` is where its first row holds them.
    const auto load_a = [&](unsigned column, int row) {
        // Rows 4 further swap the halves of the 128 bytes, rows 8 further lie alike.
        const unsigned from = LANES_M == 4 && row % 2 != 0 ? column ^ 64 : column;
        return load_shared(from + row * LANES_M * BK * 4);
    };
    const auto load_b = [&](unsigned rows, int k, int quad) {
        return load_shared(rows + (k * BN + quad * LANES_N * 4) * 4);
    };

    if (first < last) {
        copy_tiles(first);
        copy_tiles(first + 1);
        wait_for(first);
        unsigned a_now = stage_address(first) + a_offset, b_now = stage_address(first) + b_offset;
        // Groups of HELD rows: a0 takes the first one, a1 and a2 the others in turn. b holds all columns.
        float4 a0[HELD], a1[HELD], a2[HELD], b[4][QUADS];
        const auto load_group = [&](float4(&a)[HELD], unsigned column, int group) {
#pragma unroll
            for (int row = 0; row < HELD; ++row) a[row] = load_a(column, group * HELD + row);
        };
        const auto load_two_k = [&](unsigned rows, int k) {
#pragma unroll
            for (int i = k * QUADS; i < (k + 2) * QUADS; ++i)
                b[i / QUADS][i % QUADS] = load_b(rows, i / QUADS, i % QUADS);
        };
        const auto multiply_two_k = [&](const float4(&a)[HELD], int group, int k) {
            multiply(sums, a, b[k], group * HELD, k);
            multiply(sums, a, b[k + 1], group * HELD, k + 1);
        };
        load_group(a0, a_now, 0);
        load_two_k(b_now, 0);

        for (int step = first; step < last; ++step) {
            wait_for(step + 1);
            copy_tiles(step + 2);
            const unsigned a_here = a_now;
            const unsigned a_there = stage_address(step + 1) + a_offset, b_there = stage_address(step + 1) + b_offset;
            // Four k a round: the four groups of rows in turn. Each load stands where its registers have just been used
            // and is needed 64 or more FFMAs later; the next round's first operands are on their way before this one
            // ends. The rounds must remain one basic block, or ptxas reorders them. __syncwarp() compiles to a NOP that
            // no load crosses: otherwise they would gather at the end, just before they are waited for.
#pragma unroll 1
            for (int next = 16; next <= BK * 4; next += 16) {
                const unsigned a_next = next < BK * 4 ? a_here ^ next : a_there;
                const unsigned b_next = next < BK * 4 ? b_now + 4 * BN * 4 : b_there;
                load_group(a1, a_now, 1);
                load_two_k(b_now, 2);
                multiply_two_k(a0, 0, 0);
                multiply_two_k(a0, 0, 2);
                load_group(a2, a_now, 2);
                multiply_two_k(a1, 1, 0);
                multiply_two_k(a1, 1, 2);
                __syncwarp();
                load_group(a1, a_now, 3);
                load_group(a0, a_next, 0);
                multiply_two_k(a2, 2, 0);
                multiply_two_k(a2, 2, 2);
                __syncwarp();
                multiply_two_k(a1, 3, 0);
                load_two_k(b_next, 0);
                multiply_two_k(a1, 3, 2);
                a_now = a_next, b_now = b_next;
            }
        }
    }

    const int row = warp_row + lane_row, col = warp_col + lane_col;
    if (splits == 1) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int quad = 0; quad < QUADS; ++quad) {
                const float* s = &sums[i][quad * 4];
                store_quad(C, ldc, block_row + row + i * LANES_M, block_col + col + quad * LANES_N * 4, M, N, aligned_c,
                           make_float4(s[0], s[1], s[2], s[3]), alpha, beta);
            }
        return;
    }
#if __CUDA_ARCH__ >= 900
    // Every block of the cluster lays its sums open, then adds up its share of the rows, always in the same order.
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            const float* s = &sums[i][quad * 4];
            store_shared(tiles + ((row + i * LANES_M) * BN + col + quad * LANES_N * 4) * 4,
                         scaled(make_float4(s[0], s[1], s[2], s[3]), alpha));
        }
    cluster_sync();
    const int share = BM / splits;
    for (int i = thread; i < share * (BN / 4); i += 4 * THREADS) {
        float4 sum[4] = {};
        for (int rank = 0; rank < splits; ++rank) {
            float4 part[4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                part[u] = load_cluster(tiles + split * share * BN * 4 + (i + u * THREADS) * 16, rank);
#pragma unroll
            for (int u = 0; u < 4; ++u)
                sum[u].x += part[u].x, sum[u].y += part[u].y, sum[u].z += part[u].z, sum[u].w += part[u].w;
        }
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int at = i + u * THREADS;
            const int r = block_row + split * share + at / (BN / 4), c = block_col + at % (BN / 4) * 4;
            store_quad(C, ldc, r, c, M, N, aligned_c, sum[u], 1.0f, beta);
        }
    }
    cluster_sync();  // no block may end while another reads its shared memory
#endif
}

// Copies a matrix whose rows are not 16-byte aligned to one whose rows are: a warp a row.
constexpr int ALIGN_THREADS = 256;

__global__ void __launch_bounds__(ALIGN_THREADS) align_rows(const float* __restrict__ from, std::int64_t ld, int rows,
                                                  int columns, float* __restrict__ to, std::int64_t ld_to) {
    constexpr int BATCH = 8;  // loads on their way at once
    for (std::int64_t row = blockIdx.x * 8 + threadIdx.x / 32; row < rows; row += gridDim.x * 8)
        for (int first = blockIdx.y * 32 * BATCH + threadIdx.x % 32; first < columns; first += gridDim.y * 32 * BATCH) {
            float v[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                v[i] = first + 32 * i < columns ? __ldcs(from + row * ld + first + 32 * i) : 0.0f;
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                if (first + 32 * i < columns) to[row * ld_to + first + 32 * i] = v[i];
        }
}

// --------------------------------------------------------------------------------------------------------- host

using Function = decltype(sgemm_fastest<false, 4>);

// The ladder's list of kernels holds functions of one type; the launches below do without it or convert back.
template <class F>
gemmprof::KernelFunction* as_kernel(F* function) {
    return reinterpret_cast<gemmprof::KernelFunction*>(function);
}

const gemmprof::Kernel kernels[] = {
    {"tensor copies", as_kernel(&sgemm_fastest<false, 4>), THREADS, BM, BN, SHARED_BYTES},
    {"16-byte copies", as_kernel(&sgemm_fastest<true, 4>), THREADS, BM, BN, SHARED_BYTES},
    {"4-byte copies", as_kernel(&sgemm_fastest<true, 1>), THREADS, BM, BN, SHARED_BYTES},
    {"alignment of an operand", as_kernel(&align_rows), ALIGN_THREADS, 8, 256, 0},
};

// The driver's function that describes a matrix to the copy engine, found at run time: no need to link the driver.
using Encode = decltype(&cuTensorMapEncodeTiled);

Encode tensor_map_encoder() {
    static const Encode encode = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
#else
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
        return reinterpret_cast<Encode>(function);
    }();
    return encode;
}

// A row-major matrix, copied in boxes of box_rows x box_columns; what lies outside reads as zero.
bool describe(CUtensorMap* map, const float* matrix, int rows, int columns, std::int64_t ld, int box_rows,
              int box_columns, CUtensorMapSwizzle swizzle) {
    const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)};
    const cuuint64_t strides[] = {cuuint64_t(ld) * 4};
    const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)};
    const cuuint32_t steps[] = {1, 1};
    const Encode encode = tensor_map_encoder();
    return encode != nullptr &&
           encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), sizes, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// How many blocks should share a tile so that all SMs finish together. A round of the GPU takes as long as its blocks
// have steps; a last round that puts one block on an SM instead of two takes two thirds of that. A block's start and
// end cost about a step, the addition of the sums about another.
int choose_splits(const gemmprof::Gemm& gemm, int sms) {
    const std::int64_t tiles = std::int64_t(gemmprof::ceil_div(gemm.m, BM)) * gemmprof::ceil_div(gemm.n, BN);
    const int steps = gemmprof::ceil_div(gemm.k, BK), capacity = 2 * sms;
    int best = 1;
    double best_time = 0;
    for (int splits = 1; splits <= MAX_SPLITS && splits <= (steps > 1 ? steps : 1); splits *= 2) {
        // SMs that do not make up a cluster within their part of the GPU stay idle.
        const int slots = splits <= 2 ? capacity : capacity * 9 / 10;
        const std::int64_t blocks = tiles * splits, rest = blocks % slots;
        const double rounds = double(blocks / slots) + (rest == 0 ? 0.0 : rest <= sms ? 0.65 : 1.0);
        const double time = rounds * (double(steps) / splits + (splits == 1 ? 1.0 : 2.0));
        if (splits == 1 || time < best_time) best = splits, best_time = time;
    }
    return best;
}

bool aligned(const float* pointer, std::int64_t ld) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld % 4 == 0;
}

cudaError_t launch_variant(const gemmprof::Gemm& gemm, cudaStream_t stream, bool hopper, int sms) {
    const bool wide = aligned(gemm.a, gemm.lda) && aligned(gemm.b, gemm.ldb);
    CUtensorMap map_a{}, map_b{};
    const bool tensor = hopper && wide && gemm.k > 0 &&
                        describe(&map_a, gemm.a, gemm.m, gemm.k, gemm.lda, BM, BK, CU_TENSOR_MAP_SWIZZLE_128B) &&
                        describe(&map_b, gemm.b, gemm.k, gemm.n, gemm.ldb, BK, BN, CU_TENSOR_MAP_SWIZZLE_NONE);
    const gemmprof::Kernel& kernel = kernels[tensor ? 0 : wide ? 1 : 2];
    if (cudaError_t error = gemmprof::allow_shared_memory(kernel)) return error;
    if (cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel.function),
                                                 cudaFuncAttributePreferredSharedMemoryCarveout, 100))
        return error;

    int splits = hopper ? choose_splits(gemm, sms) : 1;
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = unsigned(splits), cluster.val.clusterDim.y = 1, cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(gemmprof::ceil_div(gemm.m, BM)) * gemmprof::ceil_div(gemm.n, BN) * splits);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = SHARED_BYTES;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = splits > 1 ? 1 : 0;
    return cudaLaunchKernelEx(&config, reinterpret_cast<Function*>(kernel.function), map_a, map_b, gemm.m, gemm.n,
                              gemm.k, gemm.alpha, gemm.a, gemm.lda, gemm.b, gemm.ldb, gemm.beta, gemm.c, gemm.ldc,
                              splits, aligned(gemm.c, gemm.ldc));
}

// Replaces an operand whose rows are not aligned by a copy, which the caller frees. Leaves it if there is no memory.
float* make_aligned(const float*& matrix, std::int64_t& ld, int rows, int columns, int sms, cudaStream_t stream) {
    if (aligned(matrix, ld)) return nullptr;
    const std::int64_t ld_to = (std::int64_t(columns) + 3) / 4 * 4;
    void* copy = nullptr;
    if (cudaMallocAsync(&copy, std::size_t(ld_to) * rows * 4, stream) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    const dim3 grid(unsigned(std::min(gemmprof::ceil_div(rows, 8), 8 * sms)),
                    unsigned(std::min(gemmprof::ceil_div(columns, 256), rows < 64 * sms ? 64 : 1)));
    align_rows<<<grid, ALIGN_THREADS, 0, stream>>>(matrix, ld, rows, columns, static_cast<float*>(copy), ld_to);
    matrix = static_cast<float*>(copy), ld = ld_to;
    return static_cast<float*>(copy);
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    if (gemm.m == 0 || gemm.n == 0) return cudaSuccess;
    int device = 0, major = 0, sms = 0;
    if (cudaError_t error = cudaGetDevice(&device)) return error;
    if (cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) return error;
    if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
    const bool hopper = major >= 9;

    gemmprof::Gemm operands = gemm;
    float *a_copy = nullptr, *b_copy = nullptr;
    if (hopper && gemm.k > 0) {
        a_copy = make_aligned(operands.a, operands.lda, gemm.m, gemm.k, sms, stream);
        b_copy = make_aligned(operands.b, operands.ldb, gemm.k, gemm.n, sms, stream);
    }
    cudaError_t error = launch_variant(operands, stream, hopper, sms);
    for (float* copy : {a_copy, b_copy})
        if (copy != nullptr)
            if (cudaError_t free_error = cudaFreeAsync(copy, stream); error == cudaSuccess) error = free_error;
    return error;
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
