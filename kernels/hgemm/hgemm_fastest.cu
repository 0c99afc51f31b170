// Stage 13, the fastest with 16 bits: storing costs the tensor cores no time, and no shape leaves SMs without work.
//
// What this stage does over stage 7:
// 1. Sums leave by way of shared memory: stmatrix writes them as rows of 16-bit elements, the copy engine stores those,
//    and the warps go on meanwhile (staged_store.cuh).
// 2. Consumers in turn: each of the two warpgroups computes tiles of its own, and one multiplies while the other
//    stores. A tile of 128 rows is two wgmma side by side for each step, and the producer fills the stages for one tile
//    after the other. Or sums that are kept: of the largest tile, which both warpgroups compute together, the packed
//    sums stay in registers, and leave a part at a time during the next tile, while one's turn to store is not the
//    other's. That moves fewest operands for a product.
// 3. Few tiles leave SMs idle. Up to 8 blocks then share a tile: each sums a part of K, and as a cluster they send
//    their sums through distributed shared memory to the one that adds them. The same result every time.
// 4. Or tiles are cut (stream-K): of the largest tiles those of the last round, which rarely fills the GPU. As one long
//    row of steps along K they are cut into equal pieces, one for each cluster. A cluster leaves the sums of steps that
//    are not a tile's first in memory; the one that computes the first takes them from there. The order of additions is
//    fixed.
// 5. Tiles of several sizes, of 16 to 192 rows. `choose_schedule` expects the time of each, whole, shared or cut
//    (fastest_choice.cuh). Those of 16, 32, 96, 160 and 192 rows have A and B in each other's place: wgmma's N, which
//    need not be a multiple of 64, is then along C's rows. stmatrix transposes such sums on their way to C.
//    Some tiles may have every second row of C, where that keeps rows of A, or of C, from beginning within a sector.
// 6. Weights that are read once do not drive out what L2 holds of others: few rows of A, and each element of B passes
//    L2 with the lowest priority. So do operands that all blocks of one round read at the same time, and a large C where
//    K is short.
// 7. Problems of one round, of 96 to 320 rows above all, have tiles of their own, which share K: 64 and 128 columns, and
//    160 or 192 rows with A and B in each other's place. Where few rows read a large operand once, blocks that compute
//    tiles alone are launched as clusters of four, which stay side by side in it.
// 8. The first stages are on their way while the other warps and blocks still prepare. A launch begins with
//    instructions that no cache holds, so few come before the first copy, and none divides. Of small tiles two or four
//    warps copy, every second or fourth stage each; other warps make the barriers and fetch the maps.
//
// A pair of blocks below each other shares its tile of B as in stage 7, where B is read once; else a block alone is as
// fast. So do four where rows begin within a sector and come slowly; "pair" below means those, too. In a cluster whose
// blocks also share K, block r computes row r % PAIR of the pair, and part r / PAIR of K.
//
// Its parts, each to be read alone:
//   staged_store.cuh    sums on their way to C (1)
//   consumers.cuh       what a block computes, and a consumer in a step (2)
//   exchanged_sums.cuh  blocks that share a tile (3)
//   fastest_shared.cuh  the same by the copy engine; where a tile lies (3, 5)
//   pieces.cuh          how a problem is divided among clusters, tiles that are cut (4)
//   fastest_tiles.cuh   the list of tiles (5, 7)
//   fastest_choice.cuh  the choice of tile and of who shares it, on the host (5)
//   fastest_dots.cuh    small products, straight from memory
//   fastest_odd.cuh     rows that the copy engine does not take, without copying them first
#include "fastest_shared.cuh"
#include "fastest_tiles.cuh"
#include "pieces.cuh"
#include "staged_store.cuh"

#if GEMMPROF_PART == 0
#include <algorithm>
#include <climits>

#include "../include/hgemm.cuh"
#include "../include/remembered.cuh"
#include "fastest_choice.cuh"
#include "fastest_odd.cuh"
#endif

// The build compiles the kernels in so many parts side by side: one compiler call takes over a minute.
constexpr int PARTS = 14;

static_assert(BM == 128, "BM must be 128: two consumer warpgroups multiply 64 rows each");
static_assert(BN == 128 || BN == 256, "BN must be 128 or 256: what wgmma multiplies");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tile pairs that are walked together");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");
static_assert(STAGES * 2 * BK * (BM + BN) + 16384 + 1032 + 16 * STAGES <= SHARED_LIMIT,
              "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

template <class T, class TILE, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_fastest(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Places schedule, gemmprof::Output out) {
    using A = OperandTile<TILE::bm, !A_TRANSPOSED>;
    using B = OperandTile<TILE::bn, B_TRANSPOSED, TILE::pair>;
    constexpr int ST = TILE::stages, PAIR = TILE::pair, STAGE_BYTES = A::bytes + B::bytes;
    constexpr unsigned SHARERS = (1u << PAIR) - 1;
    // Who releases a stage: in each block of the pair, both consumers or the one whose tile it is.
    constexpr int RELEASES = PAIR * (TILE::in_turn ? 1 : CONSUMERS);
    // To issue the copies of a stage takes longer than a small tile's step: then two warps do, every other stage each;
    // of the smallest all four.
    constexpr int COPIERS = PAIR > 1 || STAGE_BYTES > 24 << 10 ? 1 : smallest<TILE> ? 4 : 2;
    constexpr bool SMALLEST = smallest<TILE>;
    // Sums that blocks send each other take the memory of tiles, or, where they fit, that of what is being stored:
    // then a block sends as soon as it has them, because the other has begun long ago. They fit if all have as many.
    constexpr int QUADS = TILE::wn / 8;  // times four sums that a consumer's thread has
    constexpr bool APART = SMALLEST && (QUADS & (QUADS - 1)) == 0 &&
                           TILE::bm * TILE::bn * 4 <= CONSUMERS * 4 * TILE::warp_staging;
    const bool apart = APART && schedule.splits > 1 && schedule.splits <= QUADS &&
                       (schedule.splits & (schedule.splits - 1)) == 0;
    const bool near = schedule.splits > 1;
    const int spread = spreads<TILE> ? schedule.second : 0, k_earlier = spread & schedule.k_earlier;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + ST * TILE::stage_bytes;
    const unsigned full = staging + CONSUMERS * 4 * TILE::warp_staging, empty = full + 8 * ST, summed = empty + 8 * ST;

    const int rank = int(ptx::cluster_rank()), pair_rank = rank % PAIR, first_rank = rank - pair_rank;
    const int index = schedule.splits == 1 ? int(blockIdx.x) / PAIR : schedule.by_cluster.divide(int(blockIdx.x));
    const int part = rank / PAIR;
    Pieces<TILE::kept> pieces(schedule, index, part);
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), group = warp / 4;
    const bool copies = group == CONSUMERS && warp < CONSUMERS * 4 + COPIERS;  // one lane of it does

    // A step's copies to a stage. A policy also for what is read more than once would cost up to a third of the speed:
    // only a copy that needs one has one.
    const auto copy_a = [&](int stage, int row, int step) {
        const unsigned tile = tiles + stage * STAGE_BYTES, barrier = full + 8 * stage;
        const int k = step * BK - (row & k_earlier) * gemmprof::CHUNK;
        ptx::barrier_expect(barrier, STAGE_BYTES);
        if (schedule.a_once)
            A::copy(tile, &map_a, row, k, barrier, 0, 1, ptx::read_once_policy());
        else
            A::copy(tile, &map_a, row, k, barrier);
    };
    const auto copy_b = [&](int stage, int row, int col, int step) {
        const unsigned tile = tiles + stage * STAGE_BYTES + A::bytes, barrier = full + 8 * stage;
        const int k = step * BK - (row & k_earlier) * gemmprof::CHUNK;
        if (schedule.b_once)
            B::copy(tile, &map_b, col, k, barrier, pair_rank, SHARERS << first_rank, ptx::read_once_policy());
        else
            B::copy(tile, &map_b, col, k, barrier, pair_rank, SHARERS << first_rank);
    };
    // The first stages are on their way before the blocks have met; of a pair that is A, one stage, because B has to
    // wait for the partner. What is not the way to the first copy is done by warps that wait for it.
    constexpr int MADE = 5, MAKERS = (COPIERS + 1) * 32;
    int ahead = warp - CONSUMERS * 4;  // of a warp that copies: its next step
    if (warp == CONSUMERS * 4 + 1 && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
    }
    if (copies) {
        auto start = pieces;
        const int begun = start.next(schedule) ? min(PAIR == 1 ? ST : 1, start.steps) : 0;
        int row, col;
        schedule.begin<TILE>(start.tile, pair_rank, row, col);
        ptx::named_barrier_sync(MADE, MAKERS);
        if (ptx::elect_one()) {
#pragma unroll 1
            for (; ahead < begun; ahead += COPIERS) {
                const int step = start.first + ahead * schedule.splits;
                copy_a(ahead, row, step);
                if constexpr (PAIR == 1) copy_b(ahead, row, col, step);
            }
        }
    } else if (warp == 0) {
        if (ptx::elect_one()) {
            for (int stage = 0; stage < ST; ++stage) {
                ptx::barrier_init(full + 8 * stage, 1);
                ptx::barrier_init(empty + 8 * stage, RELEASES);
            }
            ptx::barrier_init(summed, 1);
            ptx::barrier_init_fence();
            if (schedule.bulk) ptx::prefetch_map(&map_c);
        }
        __syncwarp();
        ptx::named_barrier_arrive(MADE, MAKERS);
    }
    __syncwarp();
    if (apart) ptx::cluster_arrive();
    if constexpr (PAIR > 1)
        ptx::cluster_meet();
    else
        __syncthreads();

    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (copies && ptx::elect_one()) {
            int before = 0;  // steps of earlier pieces
            int stage = ahead < ST ? ahead : ahead - ST, parity = ahead >= ST;
            while (pieces.next(schedule)) {
                int row, col;
                schedule.begin<TILE>(pieces.tile, pair_rank, row, col);
                if (PAIR > 1 && before == 0) copy_b(0, row, col, pieces.first);
                const int end = before + pieces.steps;
                // Not unrolled: where there are few steps, instructions that no cache holds take longest.
#pragma unroll 1
                for (; ahead < end; ahead += COPIERS) {
                    const int step = pieces.first + (ahead - before) * schedule.splits;
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    copy_a(stage, row, step), copy_b(stage, row, col, step);
                    if ((stage += COPIERS) >= ST) stage -= ST, parity ^= 1;
                }
                before = end;
            }
        }
        __syncwarp();
        if (near) {
            if (!apart) ptx::cluster_arrive();
            ptx::cluster_wait();
            if constexpr (copies_sums<TILE>) ptx::cluster_arrive();
        }
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        const int group_row = TILE::bm == 128 && !TILE::in_turn ? group * 64 : 0;
        const int group_col = TILE::wn < TILE::bn ? group * TILE::wn : 0;
        typename TILE::Ring ring = {staging + threadIdx.x / 32 * TILE::warp_staging};
        const auto release = [&](int s) {
            if constexpr (PAIR == 1) {
                if (thread == 0) ptx::barrier_arrive(empty + 8 * s);
            } else {
                if (thread < PAIR) ptx::barrier_arrive_at(empty + 8 * s, unsigned(first_rank + thread));
            }
        };
        if constexpr (TILE::in_turn)
            if (group == 1) ptx::named_barrier_arrive(1, CONSUMERS * 128);  // the first turn is the other's
        int position = 0;                                                   // steps that lie before this piece
        // Packed sums that wait for the next piece's first steps.
        unsigned kept[TILE::kept ? TILE::store_parts : 1][TILE::part_words];
        int kept_row = -1, kept_col = 0;  // row -1: there are none
        const auto put = [&](const unsigned(&words)[TILE::part_words], int row, int col) {
            if (schedule.bulk)
                stage_and_store<TILE>(words, ring, &map_c, row, col, !SMALLEST && schedule.c_passes);
            else
                stage_and_store_elements<TILE>(words, ring.memory, out, row, col);
        };
        const auto store_kept = [&](int part) {
            put(kept[part], kept_row, kept_col + part * TILE::store_columns);
        };
        constexpr int KEPT_STEPS = CONSUMERS * TILE::store_parts + 1;  // until all are stored, the consumers in turn
        int stage = 0, parity = 0;
        bool some = pieces.next(schedule);
        // Shuffled, so that the compiler sees that it is the same for all lanes: the loop is counted, and wgmma's
        // descriptors are made, in uniform registers.
        int next_steps = __shfl_sync(~0u, pieces.steps, 0);
        for (int turn = 0; some; ++turn) {
            const int steps = next_steps;
            if constexpr (TILE::in_turn) {
                stage = __shfl_sync(~0u, position % ST, 0), parity = __shfl_sync(~0u, position / ST & 1, 0);
                position += steps;
                if (turn % CONSUMERS != group) {
                    some = pieces.next(schedule);
                    next_steps = __shfl_sync(~0u, pieces.steps, 0);
                    continue;
                }
            }
            float sums[TILE::halves][TILE::wn / 2];
            if constexpr (TILE::in_turn) ptx::named_barrier_sync(1 + group, CONSUMERS * 128);
            int step = 0;
            do {  // a piece has at least one step
                ptx::barrier_wait(full + 8 * stage, parity);
                const unsigned a_tile = tiles + stage * STAGE_BYTES, b_tile = a_tile + A::bytes;
                issue_step<T, TILE, A, B>(sums, a_tile, b_tile, group_row, group_col, step > 0);
                if constexpr (TILE::kept) {
                    if (kept_row >= 0) {
#pragma unroll
                        for (int part = 0; part < TILE::store_parts; ++part)
                            if (step == CONSUMERS * part + group + 1) store_kept(part);
                        if (step == KEPT_STEPS - 1) kept_row = -1;
                    }
                }
                ptx::wgmma_wait<1>();
#pragma unroll
                for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
                if (step > 0) release(stage == 0 ? ST - 1 : stage - 1);
                if (++stage == ST) stage = 0, parity ^= 1;
            } while (++step < steps);
            // All is issued, so it is the other's turn, if there is another piece.
            if constexpr (TILE::in_turn)
                if (pieces.more(schedule)) ptx::named_barrier_arrive(2 - group, CONSUMERS * 128);
            // While the last steps are multiplied: where the sums go, and what comes next.
            const auto piece = pieces;
            int row, col;
            schedule.begin<TILE>(piece.tile, pair_rank, row, col);
            row += group_row << spread, col += group_col;
            some = pieces.next(schedule);
            next_steps = __shfl_sync(~0u, pieces.steps, 0);
            if (TILE::kept && some) ptx::barrier_wait(full + 8 * stage, parity);
            ptx::wgmma_wait<0>();
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
            release(stage == 0 ? ST - 1 : stage - 1);

            if constexpr (TILE::kept)
                if (!complete_sums<TILE>(sums, schedule, piece, index, group)) continue;
            if constexpr (copies_sums<TILE>) {
                if (near) {
                    copy_and_store<T, TILE>(sums[0], tiles, summed, part, schedule.splits, pair_rank, row, col, out);
                    break;
                }
            } else if (SMALLEST && near) {
                exchange_and_store<T, TILE>(sums[0], apart ? staging : tiles, summed, part, schedule.splits, pair_rank,
                                            row, col, out, apart);
                break;
            }
            if constexpr (stores_any<TILE>) {
                if (out.is_float || out.beta != 0.0f) {
                    if constexpr (TILE::swapped) {
                        const int lane = thread % 32;
#pragma unroll
                        for (int i = 0; i < TILE::wn / 8; ++i)
                            store_four<T, TILE>(out, row + thread / 32 * 16 + lane / 4, col + lane % 4 * 2 + 8 * i,
                                                {sums[0][4 * i], sums[0][4 * i + 1], sums[0][4 * i + 2], sums[0][4 * i + 3]});
                    } else {
#pragma unroll
                        for (int half = 0; half < TILE::halves; ++half)
                            store_any<T, TILE>(sums[half], ring.memory, row + 64 * half, col, out);
                    }
                    if constexpr (TILE::kept) {
#pragma unroll
                        for (int part = 0; part < TILE::store_parts; ++part)
                            for (unsigned& word : kept[part]) word = 0;  // or they would take registers from these stores
                    }
                    continue;
                }
            }
            const int warp_row = row + (thread / 32 * 16 << spread);
            if constexpr (TILE::kept) {
                // The other consumer may be here, too, and nothing multiplied: every instruction counts.
                if (out.alpha != 1.0f)
#pragma unroll
                    for (float& sum : sums[0]) sum *= out.alpha;
#pragma unroll
                for (int part = 0; part < TILE::store_parts; ++part)
                    pack_sums<T>(kept[part], sums[0] + part * TILE::store_columns / 2);
                kept_row = warp_row, kept_col = col;
                if (!some || next_steps < KEPT_STEPS) {
#pragma unroll
                    for (int part = 0; part < TILE::store_parts; ++part) store_kept(part);
                    kept_row = -1;
                }
            } else {
#pragma unroll
                for (int half = 0; half < TILE::halves; ++half) {
#pragma unroll
                    for (int part = 0; part < TILE::store_parts; ++part) {
                        unsigned words[TILE::part_words];
                        pack_sums<T>(words, sums[half] + part * TILE::store_columns / 2, out.alpha);
                        put(words, warp_row + (64 * half << spread), col + part * TILE::store_columns);
                    }
                }
            }
        }
        ring.drain();
    }
    // A block that left would take its shared memory from under the copies and arrivals of its neighbour.
    __syncwarp();
    if (copies_sums<TILE> && near)
        ptx::cluster_wait();
    else if constexpr (PAIR > 1)
        ptx::cluster_meet();
}

// ------------------------------------------------------------------------------------------------ kernels by tile

// A row of four kernels, by type of the operands and storage of B, for each tile; then for those that take a transposed
// A; then those that compute odd rows, and small products. The first that is listed for bfloat16 and row-major operands
// is what large problems run.
inline constexpr int kOdd = 4 * kRows, kDots = kOdd + 2 * kLayouts, kKernels = kDots + 4;

// Each part of the stage is compiled alone, and lists some kernels, of many rows, because those of large tiles take
// longest; the first is busy with the host's code. A swapped tile's A is a row-major or transposed B, its B the other
// operand. A transposed A has K across its rows: then the tile is of whole blocks of 64 columns, and each consumer reads
// all of them.
template <int INDEX, class T, class TILE, bool A_TRANSPOSED, bool B_TRANSPOSED>
void list_kernel(gemmprof::KernelFacts* kernels) {
    constexpr bool A = TILE::swapped ? !B_TRANSPOSED : A_TRANSPOSED, B = TILE::swapped ? !A_TRANSPOSED : B_TRANSPOSED;
    if constexpr (INDEX % (PARTS - 1) + 1 == GEMMPROF_PART)
        kernels[INDEX] = {labels[__is_same(T, __nv_bfloat16)][2 * A_TRANSPOSED + B_TRANSPOSED],
                          gemmprof::address(hgemm_fastest<T, TILE, A, B>), THREADS, TILE::shared_bytes};
}

template <int ROW, class TILE, bool A_TRANSPOSED = false>
void list_row(gemmprof::KernelFacts* kernels) {
    list_kernel<4 * ROW, __half, TILE, A_TRANSPOSED, false>(kernels);
    list_kernel<4 * ROW + 1, __half, TILE, A_TRANSPOSED, true>(kernels);
    list_kernel<4 * ROW + 2, __nv_bfloat16, TILE, A_TRANSPOSED, false>(kernels);
    list_kernel<4 * ROW + 3, __nv_bfloat16, TILE, A_TRANSPOSED, true>(kernels);
}

template <>
void list_part<GEMMPROF_PART>(gemmprof::KernelFacts* kernels) {
#define GEMMPROF_TILE(NAME, ...) list_row<k##NAME, NAME>(kernels);
    GEMMPROF_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE
#define GEMMPROF_TILE(NAME) list_row<kTiles + transposed_row(k##NAME), NAME, true>(kernels);
    GEMMPROF_TRANSPOSED_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE
#if GEMMPROF_PART == 0
    list_kernels<0, 1, odd::Kernels, kOdd>(kernels);
    dots::list<__half>(kernels + kDots, labels[0][0]);
    dots::list<__nv_bfloat16>(kernels + kDots + 2, labels[1][0]);
#endif
}

}  // namespace GEMMPROF_STAGE

// ------------------------------------------------------------------------------------------------------ host code

#if GEMMPROF_PART == 0
namespace GEMMPROF_STAGE {

GEMMPROF_LIST(kKernels)

const gemmprof::KernelFacts& kernel_for(const gemmprof::Gemm& g, int tile) {
    const int four = g.a_transposed ? kTiles + transposed_row(tile) : tile;
    return kernels[four * 4 + gemmprof::half_index(g) * 2 + g.b_transposed];
}

using Describe = cudaError_t(CUtensorMap (&)[3], bool, const gemmprof::Gemm& seen, const gemmprof::Gemm& g, int apart);

// The tensor maps of A and B, as the tile sees them, and, where the copy engine stores it, C. `apart`: a tile's rows.
template <class TILE>
cudaError_t describe(CUtensorMap (&maps)[3], bool bulk, const gemmprof::Gemm& seen, const gemmprof::Gemm& g, int apart) {
    if (cudaError_t error = describe_operands<TILE::bm, TILE::bn, TILE::pair>(maps[0], maps[1], seen, apart)) return error;
    if (!bulk) return cudaSuccess;
    constexpr int rows = TILE::swapped ? TILE::store_columns : 16, columns = TILE::swapped ? 16 : TILE::store_columns;
    return gemmprof::describe(maps[2], g.c, g.m, g.n, g.ldc, columns, rows, 2, apart);
}

#define GEMMPROF_TILE(NAME, ...) describe<NAME>,
Describe* const describe_tile[kTiles] = {GEMMPROF_TILES(GEMMPROF_TILE)};
#undef GEMMPROF_TILE

// Where the last tile of so many elements begins so that it is full. Where rows of the operand, `ld` long, lie across the
// tile, it begins where they do within a line of L2.
int last_begin(int extent, int of_tile, std::int64_t ld) {
    const int apart = int((ld | 64) & -(ld | 64));
    return std::max(0, gemmprof::ceil_div(extent - of_tile, apart) * apart);
}

cudaError_t launch_choice(const gemmprof::Gemm& g, const Choice& choice, int device, int sms, cudaStream_t stream) {
    const TileFacts& tile = tile_facts[choice.tile];
    const int sharers = tile.pair * choice.splits, places = cluster_places(device, sms, sharers, kernel_for(g, kSmall));
    const Cover cover = cover_of(g, choice, places);
    const gemmprof::Gemm& seen = cover.seen;
    const int rows = cover.rows, columns = cover.columns, count = int(cover.count), steps = cover.steps;
    const bool bulk = choice.splits == 1 && stored_by_copies(g);
    CUtensorMap maps[3] = {};
    if (cudaError_t error = describe_tile[choice.tile](maps, bulk, seen, g, 1 + choice.second)) return error;

    // As few clusters as need no more rounds: the SMs that would idle in the last one leave the others a higher clock.
    const int rounds = gemmprof::ceil_div(count, places);
    int clusters = choice.splits > 1 ? count : choice.cut ? places : gemmprof::ceil_div(count, rounds);
    const bool fours = in_fours(cover);
    if (fours) clusters = gemmprof::ceil_div(clusters, FOUR) * FOUR;
    const int cluster = fours ? FOUR : sharers;
    Places schedule = {};
    schedule.rows = rows, schedule.columns = columns, schedule.splits = choice.splits, schedule.clusters = clusters;
    schedule.whole = count, schedule.steps = steps, schedule.part = Shares::of(steps, choice.splits);
    schedule.by_band = Divisor::of(GROUP * columns);
    schedule.by_height = Divisor::of(rows % GROUP == 0 ? GROUP : rows % GROUP);
    schedule.second = choice.second, schedule.k_earlier = odd_within(g.a, g.lda);
    schedule.col_earlier = choice.second && odd_within_c(g);
    schedule.by_cluster = Divisor::of(sharers), schedule.by_steps = Divisor::of(steps);
    const Passing pass = passing(cover, gemmprof::memory_speed(device));
    schedule.bulk = bulk, schedule.a_once = pass.a, schedule.b_once = pass.b, schedule.c_passes = pass.c;

    schedule.last_row = schedule.last_col = INT_MAX;
    if (begins_inward(g, choice)) {  // C's columns in eights
        schedule.last_row = last_begin(cover.side, tile.bm, seen.a_transposed ? seen.lda : tile.swapped ? 8 : 1);
        const std::int64_t apart = !seen.b_transposed ? seen.ldb : tile.swapped ? 1 : 8;
        schedule.last_col = last_begin(seen.n, tile.bn, apart << schedule.col_earlier);
    }
    const gemmprof::Parts parts(device, choice.cut ? clusters * sharers * CONSUMERS : 0, tile.part_bytes, stream);
    if (parts.complete != nullptr) {
        schedule.whole = count / places * places;
        schedule.piece = Shares::of((count - schedule.whole) * steps, clusters);
        schedule.parts = parts.parts, schedule.complete = parts.complete, schedule.ticket = gemmprof::new_ticket();
    }
    const gemmprof::KernelFacts& kernel = kernel_for(g, choice.tile);
    if (cudaError_t error = gemmprof::allow_cluster(kernel, cluster)) return error;
    return gemmprof::launch_kernel(kernel, unsigned(clusters * sharers), unsigned(cluster), stream,
                                   maps[0], maps[1], maps[2], schedule, gemmprof::output_of(g));
}

// The way that is expected to take least is the shortest of three times.
struct Plan {
    dots::Way dots;
    odd::Way odd;
    Choice tiles;
};

Plan planned(const gemmprof::Gemm& g, int device, int sms) {
    const double memory = gemmprof::memory_speed(device);
    const Card card = card_of(memory);
    const auto places_of = [&](int cluster) { return cluster_places(device, sms, cluster, kernel_for(g, kSmall)); };
    Plan plan = {dots::best_way(g, sms, card.small), {1, 1e300}, choose_schedule(g, places_of, card)};
    if (odd::suits(g)) {
        plan.tiles.time += packing_time(g, memory);
        plan.odd = odd::best_way(g, sms);
    }
    return plan;
}

cudaError_t launch(const gemmprof::Gemm& given, cudaStream_t stream) {
    if (given.m == 0 || given.n == 0) return cudaSuccess;
    int device = 0, sms = 0;
    if (cudaError_t error = gemmprof::current_device(device, sms)) return error;
    gemmprof::Gemm gemm = given;
    // A column of B whose elements are neighbours is a row of its transpose, which is no short rows to be copied.
    if (gemm.n == 1 && gemm.ldb == 1 && !gemm.b_transposed)
        gemm.b_transposed = 1, gemm.ldb = gemmprof::round_up(gemm.k, BK);
    const int stored = odd_within_c(gemm) << 2 | stored_by_copies(gemm) << 1 | stored_packed(gemm);
    const int kind = stored << 2 | gemm.a_transposed << 1 | gemm.b_transposed;
    const Plan plan = gemmprof::remembered(gemmprof::question(gemm, device, kind),
                                           [&] { return planned(gemm, device, sms); });
    if (plan.dots.time < std::min(plan.odd.time, plan.tiles.time))
        return dots::launch(kernels + kDots + 2 * gemmprof::half_index(gemm), gemm, plan.dots, stream);
    if (plan.odd.time < plan.tiles.time)
        return odd::launch(kernels[kOdd + kernel_of(gemm)], gemm, plan.odd.parts, stream);
    return gemmprof::run_half(gemm, stream, {true, true}, [&](const gemmprof::Gemm& g, cudaStream_t on) {
        return launch_choice(g, plan.tiles, device, sms, on);
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
#endif
