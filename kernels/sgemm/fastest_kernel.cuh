// Stage 13: the kernel. Who computes which tile, how tiles arrive, and the main loop.
#pragma once

#include "fastest_epilogue.cuh"
#include "fastest_multiply.cuh"
#include "fastest_spans.cuh"
#include "fastest_teams.cuh"
#include "fastest_tile.cuh"

namespace GEMMPROF_STAGE {

// One kernel for every tile T. BY_THREADS: every thread copies its part of the operands' tiles with cp.async, WIDTH
// floats at a time; otherwise TMA does.
template <class T, bool BY_THREADS, int WIDTH>
__global__ void __launch_bounds__(T::threads, T::blocks_per_sm)
    sgemm_fastest(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int M, int N,
                  int K, float alpha, const float* __restrict__ A, std::int64_t lda, const float* __restrict__ B,
                  std::int64_t ldb, float beta, float* __restrict__ C, std::int64_t ldc, int splits, bool aligned_c,
                  Parts parts) {
#if __CUDA_ARCH__ < TENSOR_COPIES_FROM
    if constexpr (!BY_THREADS) return;  // never launched there
#endif
    extern __shared__ char shared[];
    // From lane 0, so that the compiler knows it to be the same in a warp.
    const int team = T::teams > 1 ? __shfl_sync(~0u, int(threadIdx.x) / T::team_threads, 0) : 0;
    const int thread = threadIdx.x - team * T::team_threads, lane = thread % 32, warp = thread / 32;
    const unsigned all_tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) & ~(SWIZZLE_ATOM - 1u);
    const unsigned tiles = all_tiles + team * STAGES * T::stage_bytes;
    [[maybe_unused]] const unsigned barriers = all_tiles + T::teams * STAGES * T::stage_bytes + team * STAGES * 8;

    // The tile of C: GROUP_ROWS tile rows at a time, down their columns.
    const int tile = blockIdx.x / splits, split = blockIdx.x % splits;
    const int tile_rows = (M - 1) / T::bm + 1, tile_columns = (N - 1) / T::bn + 1;
    const auto place = [&](int tile, int& row, int& col) {
        const int group = tile / (GROUP_ROWS * tile_columns), in_group = tile % (GROUP_ROWS * tile_columns);
        const int group_rows = min(GROUP_ROWS, tile_rows - group * GROUP_ROWS);
        row = (group * GROUP_ROWS + in_group % group_rows) * T::bm;
        col = in_group / group_rows * T::bn;
    };
    int block_row, block_col;
    place(tile, block_row, block_col);

    // The part of K: steps [first, last) of BK.
    const int steps = K / BK + (K % BK != 0);
    int first = int(std::int64_t(steps) * split / splits), last = int(std::int64_t(steps) * (split + 1) / splits);
    // Spans count the steps of all tiles, one tile after the other.
    [[maybe_unused]] const int all_steps = tile_rows * tile_columns * steps;
    if constexpr (T::spans) {
        first = __shfl_sync(~0u, span_first(all_steps, blockIdx.x), 0);
        last = __shfl_sync(~0u, span_first(all_steps, blockIdx.x + 1), 0);
        place(first / steps, block_row, block_col);
    }
    [[maybe_unused]] int next_k = first % steps * BK;  // of spans: of the step that is copied next
    // Teams take equal parts of it and count from 0, all to the same number, so that no branch depends on the team.
    [[maybe_unused]] const int block_last = last, team_steps = gemmprof::ceil_div(last - first, T::teams);
    [[maybe_unused]] const int team_first = first + team * team_steps;
    if constexpr (T::teams > 1) first = 0, last = team_steps;

    const auto stage_address = [&](int step) { return tiles + (step - first) % STAGES * T::stage_bytes; };

    // Starts copying the tiles of a step. What lies outside the matrices is filled with zeros.
    const auto copy_tiles = [&](int step) {
        const unsigned to = stage_address(step);
        int k = step * BK;
        if constexpr (T::teams > 1) k = (team_first + step < block_last ? team_first + step : steps) * BK;
        if constexpr (!BY_THREADS) {
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM
            if constexpr (T::spans) {
                // What is copied leaves the tile before its last steps are multiplied.
                if (next_k >= K) next_k = 0, place(step / steps, block_row, block_col);
                k = next_k, next_k += BK;
            }
            if (thread == 0 && step < last) {
                const unsigned barrier = barriers + (step - first) % STAGES * 8;
                ptx::barrier_expect(barrier, T::stage_bytes);
                ptx::copy_box(to, &map_a, k, block_row, barrier);
                ptx::copy_box(to + T::a_bytes, &map_b, block_col, k, barrier);
            }
#endif
        } else {
            // Bytes to copy of `WIDTH` floats of which `left` lie inside.
            const auto bytes = [](bool row_inside, int left) { return row_inside ? 4 * max(0, min(WIDTH, left)) : 0; };
            if (step < last) {
                const int a_col = thread % (BK / WIDTH) * WIDTH, a_row = thread / (BK / WIDTH);
#pragma unroll 4
                for (int row = a_row; row < T::bm; row += T::team_threads / (BK / WIDTH)) {
                    const int size = bytes(block_row + row < M, K - k - a_col);
                    const float* from = size > 0 ? A + (block_row + row) * lda + k + a_col : A;
                    ptx::copy_async_part<4 * WIDTH>(to + row * BK * 4 + ((a_col / 4 ^ row % 8) * 4 + a_col % 4) * 4, from,
                                                    size);
                }
                const int b_col = thread % (T::bn / WIDTH) * WIDTH, b_row = thread / (T::bn / WIDTH);
#pragma unroll 4
                for (int row = b_row; row < BK; row += T::team_threads / (T::bn / WIDTH)) {
                    const int size = bytes(k + row < K, N - block_col - b_col);
                    const float* from = size > 0 ? B + (k + row) * ldb + block_col + b_col : B;
                    ptx::copy_async_part<4 * WIDTH>(to + T::a_bytes + (row * T::bn + b_col) * 4, from, size);
                }
            }
        }
    };

    // Returns when the tiles of a step have arrived and every warp has finished with the stage that step + 1 takes.
    const auto wait_for = [&](int step) {
        if constexpr (!BY_THREADS) {
            if constexpr (T::teams == 1)
                __syncthreads();
            else
                gemmprof::ptx::named_barrier_sync(1 + team, T::team_threads);
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM
            if (step < last) ptx::barrier_wait(barriers + (step - first) % STAGES * 8, (step - first) / STAGES % 2);
#endif
        } else {
            asm volatile("cp.async.wait_all;" ::: "memory");
            __syncthreads();
        }
    };

    if constexpr (!BY_THREADS) {
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM
        if (thread == 0) {
            for (int stage = 0; stage < STAGES; ++stage) ptx::barrier_init(barriers + 8 * stage, 1);
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
        return ptx::load_shared(from + row * T::lanes_m * BK * 4);
    };
    const auto load_b = [&](unsigned rows, int k, int quad) {
        return ptx::load_shared(rows + (k * T::bn + quad * T::lanes_n * 4) * 4);
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
        int step = first;
        do {
            int until = last;  // of a tile
            if constexpr (T::spans) until = __shfl_sync(~0u, min(last, (step / steps + 1) * steps), 0);
            load_group(a0, a_now, 0);
            load_two_k(b_now, 0);

            for (; step < until; ++step) {
                wait_for(step + 1);
                copy_tiles(step + 2);
                const unsigned a_here = a_now;
                const unsigned a_there = stage_address(step + 1) + a_offset;
                const unsigned b_there = stage_address(step + 1) + b_offset;
                // Four k a round: the four groups of rows in turn. Each load stands where its registers have just been
                // used and is needed 64 or more FFMAs later (smaller tiles: half or a quarter of that, with more warps
                // to switch to); the next round's first operands are on their way before this one ends. The rounds
                // must remain one basic block, or ptxas reorders them. __syncwarp() compiles to a NOP that no load
                // crosses: otherwise they would gather at the end, just before they are waited for.
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
            if constexpr (T::spans) leave_sums<T>(sums, step, steps, all_steps, alpha, parts);
        } while (T::spans && step < last);
    }

    const int row = warp_row + lane_row, col = warp_col + lane_col;
    if constexpr (T::spans) {
        for (int tile = first / steps; tile <= (last - 1) / steps; ++tile) {
            place(tile, block_row, block_col);
            add_spans<T>(tile, steps, all_steps, parts, [&](int i, int quad, float4 sum) {
                store_quad(C, ldc, block_row + row + i * T::lanes_m, block_col + col + quad * T::lanes_n * 4, M, N,
                           aligned_c, sum, 1.0f, beta);
            });
        }
        return;
    }
    if constexpr (T::through_l2) {
        const TileOfC c = {C, ldc, M, N, block_row, block_col, aligned_c, beta};
        add_teams<T>(sums, tiles, all_tiles, row, col, team, alpha, splits, parts, c);
        return;
    }
    if (splits == 1) {
        store_tile<T>(sums, C, ldc, block_row + row, block_col + col, M, N, aligned_c, alpha, beta);
        return;
    }
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM
    // Every block of the cluster lays its sums open, then adds up its shares of the tile, always in the same order. (It
    // stands here because a function of its own, though inlined, gives the main loop other registers.)
    __syncthreads();
#pragma unroll
    for (int i = 0; i < T::tm; ++i)
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            const float* s = &sums[i][quad * 4];
            ptx::store_shared(tiles + ((row + i * T::lanes_m) * T::bn + col + quad * T::lanes_n * 4) * 4,
                         scaled(make_float4(s[0], s[1], s[2], s[3]), alpha));
        }
    ptx::cluster_sync();
    constexpr int AT_ONCE = T::tm * TN / 4 / MAX_SPLITS;  // float4 a thread, so that MAX_SPLITS shares make up the tile
    constexpr int SHARE = AT_ONCE * T::threads;
    const int stride = splits * SHARE;
    for (int first_quad = split * SHARE + thread; first_quad < T::bm * T::bn / 4; first_quad += stride) {
        float4 sum[AT_ONCE] = {};
        for (int rank = 0; rank < splits; ++rank) {
            float4 part[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const unsigned at = tiles + (first_quad + i * T::threads) * 16;
                part[i] = ptx::load_shared_of(ptx::address_at(at, unsigned(rank)));
            }
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
    ptx::cluster_sync();  // no block may end while another reads its shared memory
#endif
}

}  // namespace GEMMPROF_STAGE
