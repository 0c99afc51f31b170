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
// 5. Where these tiles are too coarse, blocks of the same kernel compute 128 x 64 or 64 x 64. `choose_schedule` expects
//    the time of every tile and number of blocks that share it, and takes the shortest.
//
// TMA wants rows that begin at multiples of 16 bytes; an operand without them is copied first. GPUs before Hopper run
// the large tile with cp.async and without clusters.
#include <cuda.h>

#include <algorithm>
#include <initializer_list>

#include "gemm.cuh"

constexpr int SWIZZLE_ATOM = 1024;  // the 128-byte swizzle repeats every 8 rows, counted from an aligned address
constexpr int GROUP_ROWS = 16;      // tile rows walked together, so that blocks at work share operands in L2
constexpr int MAX_SPLITS = 8;       // the largest cluster that every Hopper GPU accepts

static_assert(BK == 32, "BK must be 32: a row of the A tile is one 128-byte swizzle span");
static_assert(BM % WM == 0 && BN % WN == 0, "whole warp tiles must make up the block tile");
static_assert(WM / TM * (WN / TN) == 32 && WN % TN == 0, "the thread tiles of 32 lanes must make up the warp tile");
static_assert(TN == 8, "TN must be 8: the order of the FFMAs is made for two float4 of B");
static_assert(TM % 8 == 0, "TM must be a multiple of 8: rows are multiplied in four groups, in pairs forth and back");
static_assert(WM / TM == 4 || WM / TM == 8, "4 or 8 lanes must lie below each other: the swizzle counts rows modulo 8");
static_assert(STAGES == 3, "STAGES must be 3: one tile is computed, one is complete, one is being copied");
static_assert(BM <= 256 && BN <= 256, "a bulk tensor copy moves at most 256 rows or columns");
static_assert(BM * BN <= STAGES * (BM + BN) * BK, "the sums of a block must fit the tiles' shared memory");
static_assert(STAGES * (BM + BN) * BK * 4 + SWIZZLE_ATOM + 8 * STAGES <= 101376,
              "STAGES tiles must fit 99 KiB of shared memory");

namespace GEMMPROF_STAGE {

// A block computes bm x bn of C, each of its warps wm x wn, each thread tm x TN; an SM holds blocks_per_sm such blocks.
template <int BM_, int BN_, int WM_, int WN_, int TM_, int BLOCKS_PER_SM_>
struct Tile {
    static constexpr int bm = BM_, bn = BN_, wm = WM_, wn = WN_, tm = TM_, blocks_per_sm = BLOCKS_PER_SM_;
    static constexpr int threads = (bm / wm) * (bn / wn) * 32;
    static constexpr int lanes_n = wn / TN;       // lanes side by side along a row of C
    static constexpr int lanes_m = 32 / lanes_n;  // and below each other
    static constexpr int held = tm / 4;           // a thread's rows are multiplied in four groups
    static constexpr int a_bytes = bm * BK * 4, b_bytes = BK * bn * 4, stage_bytes = a_bytes + b_bytes;
    static constexpr int shared_bytes = STAGES * stage_bytes + SWIZZLE_ATOM + 8 * STAGES;
};

// The catalog's parameters give the large tile. Where it is too coarse, a smaller one computes the problem: more blocks
// and warps, but more loads an FFMA.
struct Large : Tile<BM, BN, WM, WN, TM, 2> {};
struct Medium : Tile<128, 64, 64, 32, 8, 3> {};
struct Small : Tile<64, 64, 16, 64, 4, 4> {};

constexpr int QUADS = TN / 4;  // a thread's columns are QUADS float4, lanes_n float4 apart

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
template <int ROWS, int HELD>
__device__ __forceinline__ void multiply(float (&sums)[ROWS][TN], const float4 (&a)[HELD], const float4 (&b)[QUADS],
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

// One kernel for every tile T. BY_THREADS: every thread copies its part of the operands' tiles with cp.async, WIDTH
// floats at a time; otherwise TMA does.
template <class T, bool BY_THREADS, int WIDTH>
__global__ void __launch_bounds__(T::threads, T::blocks_per_sm)
    sgemm_fastest(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int M, int N,
                  int K, float alpha, const float* __restrict__ A, std::int64_t lda, const float* __restrict__ B,
                  std::int64_t ldb, float beta, float* __restrict__ C, std::int64_t ldc, int splits, bool aligned_c) {
#if __CUDA_ARCH__ < 900
    if constexpr (!BY_THREADS) return;  // never launched there
#endif
    extern __shared__ char shared[];
    const unsigned tiles = (shared_address(shared) + SWIZZLE_ATOM - 1) & ~(SWIZZLE_ATOM - 1u);
    [[maybe_unused]] const unsigned barriers = tiles + STAGES * T::stage_bytes;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;

    // The tile of C: GROUP_ROWS tile rows at a time, down their columns.
    const int tile = blockIdx.x / splits, split = blockIdx.x % splits;
    const int tile_rows = (M - 1) / T::bm + 1, tile_columns = (N - 1) / T::bn + 1;
    const int group = tile / (GROUP_ROWS * tile_columns), in_group = tile % (GROUP_ROWS * tile_columns);
    const int group_rows = min(GROUP_ROWS, tile_rows - group * GROUP_ROWS);
    const int block_row = (group * GROUP_ROWS + in_group % group_rows) * T::bm;
    const int block_col = in_group / group_rows * T::bn;

    // The part of K: steps [first, last) of BK.
    const int steps = K / BK + (K % BK != 0);
    const int first = int(std::int64_t(steps) * split / splits), last = int(std::int64_t(steps) * (split + 1) / splits);

    const auto stage_address = [&](int step) { return tiles + (step - first) % STAGES * T::stage_bytes; };

    // Starts copying the tiles of a step. What lies outside the matrices is filled with zeros.
    const auto copy_tiles = [&](int step) {
        const unsigned to = stage_address(step);
        const int k = step * BK;
        if constexpr (!BY_THREADS) {
#if __CUDA_ARCH__ >= 900
            if (thread == 0 && step < last) {
                const unsigned barrier = barriers + (step - first) % STAGES * 8;
                barrier_expect(barrier, T::stage_bytes);
                copy_tensor(to, &map_a, k, block_row, barrier);
                copy_tensor(to + T::a_bytes, &map_b, block_col, k, barrier);
            }
#endif
        } else {
            // Bytes to copy of `WIDTH` floats of which `left` lie inside.
            const auto bytes = [](bool row_inside, int left) { return row_inside ? 4 * max(0, min(WIDTH, left)) : 0; };
            if (step < last) {
                const int a_col = thread % (BK / WIDTH) * WIDTH, a_row = thread / (BK / WIDTH);
#pragma unroll 4
                for (int row = a_row; row < T::bm; row += T::threads / (BK / WIDTH)) {
                    const int size = bytes(block_row + row < M, K - k - a_col);
                    const float* from = size > 0 ? A + (block_row + row) * lda + k + a_col : A;
                    copy_async<4 * WIDTH>(to + row * BK * 4 + ((a_col / 4 ^ row % 8) * 4 + a_col % 4) * 4, from, size);
                }
                const int b_col = thread % (T::bn / WIDTH) * WIDTH, b_row = thread / (T::bn / WIDTH);
#pragma unroll 4
                for (int row = b_row; row < BK; row += T::threads / (T::bn / WIDTH)) {
                    const int size = bytes(k + row < K, N - block_col - b_col);
                    const float* from = size > 0 ? B + (k + row) * ldb + block_col + b_col : B;
                    copy_async<4 * WIDTH>(to + T::a_bytes + (row * T::bn + b_col) * 4, from, size);
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

    const int warp_row = warp / (T::bn / T::wn) * T::wm, warp_col = warp % (T::bn / T::wn) * T::wn;
    const int lane_row = lane / T::lanes_n, lane_col = lane % T::lanes_n * 4;
    const unsigned a_offset = (warp_row + lane_row) * BK * 4 + lane_row * 16;
    const unsigned b_offset = T::a_bytes + (warp_col + lane_col) * 4;

    float sums[T::tm][TN] = {};

    // Four k of one of this thread's rows; `column` is where its first row holds them.
    const auto load_a = [&](unsigned column, int row) {
        // Rows 4 further swap the halves of the 128 bytes, rows 8 further lie alike.
        const unsigned from = T::lanes_m == 4 && row % 2 != 0 ? column ^ 64 : column;
        return load_shared(from + row * T::lanes_m * BK * 4);
    };
    const auto load_b = [&](unsigned rows, int k, int quad) {
        return load_shared(rows + (k * T::bn + quad * T::lanes_n * 4) * 4);
    };

    if (first < last) {
        copy_tiles(first);
        copy_tiles(first + 1);
        wait_for(first);
        unsigned a_now = stage_address(first) + a_offset, b_now = stage_address(first) + b_offset;
        // Groups of `held` rows: a0 takes the first one, a1 and a2 the others in turn. b holds all columns.
        float4 a0[T::held], a1[T::held], a2[T::held], b[4][QUADS];
        const auto load_group = [&](float4(&a)[T::held], unsigned column, int group) {
#pragma unroll
            for (int row = 0; row < T::held; ++row) a[row] = load_a(column, group * T::held + row);
        };
        const auto load_two_k = [&](unsigned rows, int k) {
#pragma unroll
            for (int i = k * QUADS; i < (k + 2) * QUADS; ++i)
                b[i / QUADS][i % QUADS] = load_b(rows, i / QUADS, i % QUADS);
        };
        const auto multiply_two_k = [&](const float4(&a)[T::held], int group, int k) {
            multiply(sums, a, b[k], group * T::held, k);
            multiply(sums, a, b[k + 1], group * T::held, k + 1);
        };
        load_group(a0, a_now, 0);
        load_two_k(b_now, 0);

        for (int step = first; step < last; ++step) {
            wait_for(step + 1);
            copy_tiles(step + 2);
            const unsigned a_here = a_now;
            const unsigned a_there = stage_address(step + 1) + a_offset, b_there = stage_address(step + 1) + b_offset;
            // Four k a round: the four groups of rows in turn. Each load stands where its registers have just been used
            // and is needed 64 or more FFMAs later (smaller tiles: half or a quarter of that, with more warps to switch
            // to); the next round's first operands are on their way before this one ends. The rounds must remain one
            // basic block, or ptxas reorders them. __syncwarp() compiles to a NOP that no load crosses: otherwise they
            // would gather at the end, just before they are waited for.
#pragma unroll 1
            for (int next = 16; next <= BK * 4; next += 16) {
                const unsigned a_next = next < BK * 4 ? a_here ^ next : a_there;
                const unsigned b_next = next < BK * 4 ? b_now + 4 * T::bn * 4 : b_there;
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
        for (int i = 0; i < T::tm; ++i)
#pragma unroll
            for (int quad = 0; quad < QUADS; ++quad) {
                const float* s = &sums[i][quad * 4];
                store_quad(C, ldc, block_row + row + i * T::lanes_m, block_col + col + quad * T::lanes_n * 4, M, N,
                           aligned_c, make_float4(s[0], s[1], s[2], s[3]), alpha, beta);
            }
        return;
    }
#if __CUDA_ARCH__ >= 900
    // Every block of the cluster lays its sums open, then adds up its shares of the tile, always in the same order.
    __syncthreads();
#pragma unroll
    for (int i = 0; i < T::tm; ++i)
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            const float* s = &sums[i][quad * 4];
            store_shared(tiles + ((row + i * T::lanes_m) * T::bn + col + quad * T::lanes_n * 4) * 4,
                         scaled(make_float4(s[0], s[1], s[2], s[3]), alpha));
        }
    cluster_sync();
    constexpr int AT_ONCE = T::tm * TN / 4 / MAX_SPLITS;  // float4 a thread, so that MAX_SPLITS shares make up the tile
    constexpr int SHARE = AT_ONCE * T::threads;
    const int stride = splits * SHARE;
    for (int first_quad = split * SHARE + thread; first_quad < T::bm * T::bn / 4; first_quad += stride) {
        float4 sum[AT_ONCE] = {};
        for (int rank = 0; rank < splits; ++rank) {
            float4 part[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
                part[i] = load_cluster(tiles + (first_quad + i * T::threads) * 16, rank);
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
                sum[i].x += part[i].x, sum[i].y += part[i].y, sum[i].z += part[i].z, sum[i].w += part[i].w;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int quad = first_quad + i * T::threads;
            const int r = block_row + quad / (T::bn / 4), c = block_col + quad % (T::bn / 4) * 4;
            store_quad(C, ldc, r, c, M, N, aligned_c, sum[i], 1.0f, beta);
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

using Function = decltype(sgemm_fastest<Large, false, 4>);

// The ladder's list of kernels holds functions of one type; the launches below do without it or convert back.
template <class F>
gemmprof::KernelFunction* as_kernel(F* function) {
    return reinterpret_cast<gemmprof::KernelFunction*>(function);
}

template <class T, bool BY_THREADS, int WIDTH>
gemmprof::Kernel kernel_of(const char* label) {
    return {label, as_kernel(&sgemm_fastest<T, BY_THREADS, WIDTH>), T::threads, T::bm, T::bn, T::shared_bytes};
}

constexpr int TILES = 3;  // for tensor copies; the other kernels, for GPUs before Hopper, have the large one only

const gemmprof::Kernel kernels[] = {
    kernel_of<Large, false, 4>("tensor copies"),
    kernel_of<Medium, false, 4>("tensor copies, medium tile"),
    kernel_of<Small, false, 4>("tensor copies, small tile"),
    kernel_of<Large, true, 4>("16-byte copies"),
    kernel_of<Large, true, 1>("4-byte copies"),
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
bool describe(CUtensorMap* map, const void* matrix, int rows, int columns, std::int64_t ld, int box_rows,
              int box_columns, CUtensorMapSwizzle swizzle) {
    const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)};
    const cuuint64_t strides[] = {cuuint64_t(ld) * 4};
    const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)};
    const cuuint32_t steps[] = {1, 1};
    const Encode encode = tensor_map_encoder();
    return encode != nullptr &&
           encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<void*>(matrix), sizes, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// What the blocks of a tile cost: microseconds, fitted to the times of 38 shapes on an H100 SXM.
struct Cost {
    int blocks_per_sm;
    double step[4];   // BK along K, if 1, 2, .. blocks share an SM; together they fill more of its issue slots
    double block;     // start and end
    double addition;  // of the sums of a cluster, besides ADDITION_PER_BLOCK
};

constexpr double SCALE = BM * BN / (128.0 * 128.0);
const Cost costs[TILES] = {
    {Large::blocks_per_sm, {2.73 * SCALE, 5.01 * SCALE}, 2.9, 1.5},
    {Medium::blocks_per_sm, {1.57, 2.76, 3.90}, 1.9, 0.6},
    {Small::blocks_per_sm, {1.02, 1.75, 2.55, 3.15}, 0.5, 1.3},
};
constexpr double ADDITION_PER_BLOCK = 0.3;
constexpr double LAUNCH = 6.0;

// The part of the SMs that clusters of 1, 2, .. blocks can use: the others find no partners near enough.
constexpr double USABLE[MAX_SPLITS] = {1.0, 1.0, 0.90, 0.93, 0.88, 0.88, 0.84, 0.90};

// The time of rounds in which every SM is full, and of a last one in which the remaining blocks spread over all SMs.
double expected_time(const gemmprof::Gemm& gemm, int tile, int splits, int sms) {
    const Cost& cost = costs[tile];
    const std::int64_t blocks = std::int64_t(gemmprof::ceil_div(gemm.m, kernels[tile].tile_m)) *
                                gemmprof::ceil_div(gemm.n, kernels[tile].tile_n) * splits;
    const int usable = std::max(1, int(sms * USABLE[splits - 1])), full = usable * cost.blocks_per_sm;
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(gemm.k, BK), splits);
    const double once = cost.block + (splits > 1 ? cost.addition + ADDITION_PER_BLOCK * splits : 0.0);
    const auto round = [&](int blocks_on_sm) {
        return blocks_on_sm == 0 ? 0.0 : steps * cost.step[blocks_on_sm - 1] + once;
    };
    return LAUNCH + double(blocks / full) * round(cost.blocks_per_sm) +
           round(gemmprof::ceil_div(int(blocks % full), usable));
}

// Which tile, and how many blocks share one.
struct Schedule {
    int tile, splits;
};

// The fastest of the first `tiles` kernels by expectation; a smaller tile has to promise 1 % more than the one before.
Schedule choose_schedule(const gemmprof::Gemm& gemm, int tiles, int max_splits, int sms) {
    Schedule best{0, 1};
    double best_time = expected_time(gemm, 0, 1, sms);
    for (int tile = 0; tile < tiles; ++tile)
        for (int splits = 1; splits <= max_splits && (splits == 1 || (splits - 1) * BK < gemm.k); ++splits) {
            const double time = expected_time(gemm, tile, splits, sms) * (1.0 + 0.01 * tile);
            if (time < best_time) best = {tile, splits}, best_time = time;
        }
    return best;
}

bool aligned(const void* pointer, std::int64_t ld) { return gemmprof::rows_aligned(pointer, ld, sizeof(float)); }

cudaError_t launch_variant(const gemmprof::Gemm& gemm, cudaStream_t stream, bool hopper, int sms) {
    const int max_splits = hopper ? MAX_SPLITS : 1;
    const bool wide = aligned(gemm.a, gemm.lda) && aligned(gemm.b, gemm.ldb);
    Schedule schedule = choose_schedule(gemm, TILES, max_splits, sms);
    const int box_m = kernels[schedule.tile].tile_m, box_n = kernels[schedule.tile].tile_n;
    CUtensorMap map_a{}, map_b{};
    const bool tensor = hopper && wide && gemm.k > 0 &&
                        describe(&map_a, gemm.a, gemm.m, gemm.k, gemm.lda, box_m, BK, CU_TENSOR_MAP_SWIZZLE_128B) &&
                        describe(&map_b, gemm.b, gemm.k, gemm.n, gemm.ldb, BK, box_n, CU_TENSOR_MAP_SWIZZLE_NONE);
    if (!tensor) schedule = choose_schedule(gemm, 1, max_splits, sms);
    const gemmprof::Kernel& kernel = kernels[tensor ? schedule.tile : wide ? TILES : TILES + 1];
    if (cudaError_t error = gemmprof::allow_shared_memory(kernel)) return error;
    if (cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel.function),
                                                 cudaFuncAttributePreferredSharedMemoryCarveout, 100))
        return error;

    const int splits = schedule.splits;
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = unsigned(splits), cluster.val.clusterDim.y = 1, cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(gemmprof::ceil_div(gemm.m, kernel.tile_m)) *
                          gemmprof::ceil_div(gemm.n, kernel.tile_n) * splits);
    config.blockDim = dim3(kernel.threads);
    config.dynamicSmemBytes = kernel.dynamic_shared_memory;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = splits > 1 ? 1 : 0;
    return cudaLaunchKernelEx(&config, reinterpret_cast<Function*>(kernel.function), map_a, map_b, gemm.m, gemm.n,
                              gemm.k, gemm.alpha, static_cast<const float*>(gemm.a), gemm.lda,
                              static_cast<const float*>(gemm.b), gemm.ldb, gemm.beta, static_cast<float*>(gemm.c),
                              gemm.ldc, splits, aligned(gemm.c, gemm.ldc));
}

// Replaces an operand whose rows are not aligned by a copy, which the caller frees. Leaves it if there is no memory.
float* make_aligned(const void*& matrix, std::int64_t& ld, int rows, int columns, int sms, cudaStream_t stream) {
    if (aligned(matrix, ld)) return nullptr;
    const std::int64_t ld_to = (std::int64_t(columns) + 3) / 4 * 4;
    void* copy = nullptr;
    if (cudaMallocAsync(&copy, std::size_t(ld_to) * rows * 4, stream) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    const dim3 grid(unsigned(std::min(gemmprof::ceil_div(rows, 8), 8 * sms)),
                    unsigned(std::min(gemmprof::ceil_div(columns, 256), rows < 64 * sms ? 64 : 1)));
    align_rows<<<grid, ALIGN_THREADS, 0, stream>>>(static_cast<const float*>(matrix), ld, rows, columns,
                                                   static_cast<float*>(copy), ld_to);
    matrix = copy, ld = ld_to;
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
