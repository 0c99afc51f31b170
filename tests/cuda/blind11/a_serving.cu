// Serving language models: what stands between the large products. Each kernel has one weakness and two or three ways out.
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- which keys of the cache are kept: the mean attention that each of them got from many queries ---

constexpr int KEYS = 8192;

__global__ void kept_keys(const __half *probs, float *score, int queries) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x;
    float got = 0.f;
    for (int q = 0; q < queries; q++) got += __half2float(probs[static_cast<size_t>(q) * KEYS + key]);
    score[key] = got / queries;
}

// blockIdx.y takes a share of the queries and adds what it found.
__global__ void kept_keys_shares(const __half *__restrict__ probs, float *score, int queries) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x;
    const int share = queries / gridDim.y;
    const __half *from = probs + static_cast<size_t>(blockIdx.y) * share * KEYS + key;
    float got = 0.f;
#pragma unroll 8
    for (int q = 0; q < share; q++) got += __half2float(from[static_cast<size_t>(q) * KEYS]);
    atomicAdd(&score[key], got / queries);
}

// Eight keys a thread as well.
__global__ void __launch_bounds__(128) kept_keys_octets(const uint4 *__restrict__ probs, float *score, int queries) {
    const int octet = blockIdx.x * blockDim.x + threadIdx.x;
    const int share = queries / gridDim.y;
    const uint4 *from = probs + static_cast<size_t>(blockIdx.y) * share * (KEYS / 8) + octet;
    float got[8] = {};
#pragma unroll 4
    for (int q = 0; q < share; q++) {
        const uint4 eight = from[static_cast<size_t>(q) * (KEYS / 8)];
        const __half2 *two = reinterpret_cast<const __half2 *>(&eight);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 f = __half22float2(two[i]);
            got[2 * i] += f.x;
            got[2 * i + 1] += f.y;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) atomicAdd(&score[octet * 8 + i], got[i] / queries);
}

// 64 keys a block; its 32 warps share the queries, and meet in shared memory.
__global__ void __launch_bounds__(1024) kept_keys_warps(const __half2 *__restrict__ probs, float *__restrict__ score, int queries) {
    __shared__ float2 found[32][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pair = blockIdx.x * 32 + lane;
    float2 got = make_float2(0.f, 0.f);
#pragma unroll 8
    for (int q = warp; q < queries; q += 32) {
        const float2 f = __half22float2(probs[static_cast<size_t>(q) * (KEYS / 2) + pair]);
        got.x += f.x;
        got.y += f.y;
    }
    found[warp][lane] = got;
    __syncthreads();
    if (warp == 0) {
        for (int w = 1; w < 32; w++) {
            got.x += found[w][lane].x;
            got.y += found[w][lane].y;
        }
        reinterpret_cast<float2 *>(score)[pair] = make_float2(got.x / queries, got.y / queries);
    }
}

Study keys_kept("kept_keys_scored_by_32_blocks", "models", 8192, "the mean attention of 8192 queries and heads to each of 8192 keys, half, for a cache that drops keys",
    "a thread a key adds all queries: 32 blocks for the whole GPU",
    {{"shares", "64 shares of the queries, added with atomics", {"small_grid"}}, {"octets", "64 shares, eight keys a thread", {"small_grid", "narrow_access"}},
        {"warps", "64 keys a block of 32 warps, which share the queries", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *probs = b.random<__half>(n * KEYS, 0, 1);
        float *score = b.output<float>(KEYS, true);
        const int queries = static_cast<int>(n);
        return {{"flawed", launch(kept_keys, KEYS / 256, 256, 0, probs, score, queries)},
            {"shares", launch(kept_keys_shares, dim3(KEYS / 256, 64), 256, 0, probs, score, queries)},
            {"octets", launch(kept_keys_octets, dim3(KEYS / 8 / 128, 64), 128, 0, reinterpret_cast<const uint4 *>(probs), score, queries)},
            {"warps", launch(kept_keys_warps, KEYS / 64, 1024, 0, reinterpret_cast<const __half2 *>(probs), score, queries)}};
    });

// --- logits of a router: each token's product with 64 experts' vectors ---

constexpr int HIDDEN = 2048, EXPERTS = 64;

__device__ __forceinline__ float dot_piece(float sum, __half2 a, __half2 b) {
    const float2 x = __half22float2(a), y = __half22float2(b);
    return fmaf(x.x, y.x, fmaf(x.y, y.y, sum));
}

// One block per token; its eight warps take eight experts each.
__global__ void __launch_bounds__(256) router_logits(const __half2 *__restrict__ tokens, const __half2 *__restrict__ experts, float *__restrict__ logits) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const __half2 *token = tokens + static_cast<size_t>(blockIdx.x) * (HIDDEN / 2);
    for (int e = warp; e < EXPERTS; e += 8) {
        float sum = 0.f;
        for (int i = lane; i < HIDDEN / 2; i += 32) sum = dot_piece(sum, token[i], experts[e * (HIDDEN / 2) + i]);
        sum = warp_sum(sum);
        if (lane == 0) logits[static_cast<size_t>(blockIdx.x) * EXPERTS + e] = sum;
    }
}

// Eight tokens a block lie in shared memory; what is read of an expert serves all of them.
__global__ void __launch_bounds__(256) router_logits_eight(const __half2 *__restrict__ tokens, const __half2 *__restrict__ experts, float *__restrict__ logits) {
    __shared__ alignas(16) __half2 held[8][HIDDEN / 2];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint4 *from = reinterpret_cast<const uint4 *>(tokens + static_cast<size_t>(blockIdx.x) * 8 * (HIDDEN / 2));
    for (int i = threadIdx.x; i < 8 * HIDDEN / 8; i += 256) reinterpret_cast<uint4 *>(&held[0][0])[i] = from[i];
    __syncthreads();
    for (int e = warp; e < EXPERTS; e += 8) {
        float sum[8] = {};
#pragma unroll 2
        for (int i = lane; i < HIDDEN / 2; i += 32) {
            const __half2 w = experts[e * (HIDDEN / 2) + i];
#pragma unroll
            for (int t = 0; t < 8; t++) sum[t] = dot_piece(sum[t], held[t][i], w);
        }
#pragma unroll
        for (int t = 0; t < 8; t++) {
            const float all = warp_sum(sum[t]);
            if (lane == 0) logits[(static_cast<size_t>(blockIdx.x) * 8 + t) * EXPERTS + e] = all;
        }
    }
}

// 32 tokens a block: each of the eight warps has a tile of 16 tokens and 16 experts.
__global__ void __launch_bounds__(256) router_logits_tensor(const __half *__restrict__ tokens, const __half *__restrict__ experts, float *__restrict__ logits) {
    using namespace nvcuda;
    const int warp = threadIdx.x / 32, e = warp % 4 * 16;
    const size_t t = static_cast<size_t>(blockIdx.x) * 32 + warp / 4 * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.f);
#pragma unroll 4
    for (int k = 0; k < HIDDEN; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> w;
        wmma::load_matrix_sync(a, tokens + t * HIDDEN + k, HIDDEN);
        wmma::load_matrix_sync(w, experts + e * HIDDEN + k, HIDDEN);
        wmma::mma_sync(sum, a, w, sum);
    }
    wmma::store_matrix_sync(logits + t * EXPERTS + e, sum, EXPERTS, wmma::mem_row_major);
}

Study routing("router_logits_experts_again_for_each_token", "models", 8192, "a router's logits: 8192 tokens of 2048 half values times 64 experts",
    "a block a token: all experts' vectors are read for each token",
    {{"eight", "eight tokens a block, held in shared memory", {"redundant_loads"}}, {"tensor", "tiles of 16 tokens and experts on the tensor cores", {"redundant_loads", "tensor_cores_idle"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *tokens = b.random<__half>(n * HIDDEN), *experts = b.random<__half>(EXPERTS * HIDDEN);
        float *logits = b.output<float>(n * EXPERTS);
        b.tolerance = 1e-3;
        auto tokens2 = reinterpret_cast<const __half2 *>(tokens), experts2 = reinterpret_cast<const __half2 *>(experts);
        return {{"flawed", launch(router_logits, n, 256, 0, tokens2, experts2, logits)}, {"eight", launch(router_logits_eight, n / 8, 256, 0, tokens2, experts2, logits)},
            {"tensor", launch(router_logits_tensor, n / 32, 256, 0, tokens, experts, logits)}};
    });

// --- rotary positions of a picture's patches: half of the pairs turn by the row, half by the column ---

constexpr int SIDE = 64, HEADS = 16, PAIRS = 32, AXIS_PAIRS = PAIRS / 2;

__constant__ float2 turns[SIDE * AXIS_PAIRS];  // cosine and sine of a position times a frequency

struct Patches {
    const __half *in;
    __half *out;
};

__device__ __forceinline__ int turn_of(int patch, int pair) {
    const int position = pair < AXIS_PAIRS ? patch / SIDE % SIDE : patch % SIDE;
    return position * AXIS_PAIRS + pair % AXIS_PAIRS;
}
__device__ __forceinline__ void turn(Patches p, size_t head, int pair, float2 by) {
    const size_t at = head * 2 * PAIRS + pair;
    const float a = __half2float(p.in[at]), b = __half2float(p.in[at + PAIRS]);
    p.out[at] = __float2half(a * by.x - b * by.y);
    p.out[at + PAIRS] = __float2half(b * by.x + a * by.y);
}

__global__ void __launch_bounds__(256) turn_patches(Patches p) {
    const int pair = threadIdx.x % PAIRS;
    const size_t head = static_cast<size_t>(blockIdx.x) * 8 + threadIdx.x / PAIRS;
    turn(p, head, pair, turns[turn_of(static_cast<int>(head / HEADS), pair)]);
}
__global__ void __launch_bounds__(256) turn_patches_global(Patches p, const float2 *__restrict__ table) {
    const int pair = threadIdx.x % PAIRS;
    const size_t head = static_cast<size_t>(blockIdx.x) * 8 + threadIdx.x / PAIRS;
    turn(p, head, pair, __ldg(table + turn_of(static_cast<int>(head / HEADS), pair)));
}
// A thread keeps its pair's turn for all heads of the patch.
__global__ void __launch_bounds__(256) turn_patches_heads(Patches p) {
    const int pair = threadIdx.x % PAIRS, patch = blockIdx.x * 8 + threadIdx.x / PAIRS;
    const float2 by = turns[turn_of(patch, pair)];
#pragma unroll 8
    for (int h = 0; h < HEADS; h++) turn(p, static_cast<size_t>(patch) * HEADS + h, pair, by);
}
// Blocks stay, and hold the table in shared memory; two neighbouring pairs a thread.
__global__ void __launch_bounds__(512) turn_patches_shared(Patches p, const float2 *__restrict__ table, int heads) {
    __shared__ alignas(16) float2 held[SIDE * AXIS_PAIRS];
    for (int i = threadIdx.x; i < SIDE * AXIS_PAIRS; i += 512) held[i] = table[i];
    __syncthreads();
    const int pair = threadIdx.x % (PAIRS / 2) * 2;
    for (int head = blockIdx.x * 32 + threadIdx.x / (PAIRS / 2); head < heads; head += gridDim.x * 32) {
        const float4 by = *reinterpret_cast<const float4 *>(&held[turn_of(head / HEADS, pair)]);
        const size_t at = static_cast<size_t>(head) * 2 * PAIRS + pair;
        const float2 a = __half22float2(*reinterpret_cast<const __half2 *>(p.in + at)), b = __half22float2(*reinterpret_cast<const __half2 *>(p.in + at + PAIRS));
        *reinterpret_cast<__half2 *>(p.out + at) = __floats2half2_rn(a.x * by.x - b.x * by.y, a.y * by.z - b.y * by.w);
        *reinterpret_cast<__half2 *>(p.out + at + PAIRS) = __floats2half2_rn(b.x * by.x + a.x * by.y, b.y * by.z + a.y * by.w);
    }
}

Study patches("patch_rotary_turns_in_constants", "models", 131072, "rotary positions of 131072 patches of pictures, 16 heads of 64 half values, rows and columns",
    "the table of turns lies in constant memory, and each lane wants another entry",
    {{"global", "the table in global memory", {"constant_divergence"}}, {"heads", "a thread keeps its turn for 16 heads", {"constant_divergence"}},
        {"shared", "the table in shared memory of blocks that stay, two pairs a thread", {"constant_divergence", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> table(SIDE * AXIS_PAIRS);
        for (int i = 0; i < SIDE * AXIS_PAIRS; i++) {
            const double angle = i / AXIS_PAIRS * pow(100.0, -(i % AXIS_PAIRS) / static_cast<double>(AXIS_PAIRS));
            table[i] = make_float2(static_cast<float>(cos(angle)), static_cast<float>(sin(angle)));
        }
        float2 *in_global = b.allocate<float2>(table.size());
        CHECK(cudaMemcpy(in_global, table.data(), table.size() * sizeof(float2), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpyToSymbol(turns, table.data(), table.size() * sizeof(float2)));
        const long heads = n * HEADS;
        const Patches p{b.random<__half>(heads * 2 * PAIRS), b.output<__half>(heads * 2 * PAIRS)};
        b.tolerance = 2e-3;
        return {{"flawed", launch(turn_patches, heads / 8, 256, 0, p)}, {"global", launch(turn_patches_global, heads / 8, 256, 0, p, in_global)},
            {"heads", launch(turn_patches_heads, n / 8, 256, 0, p)}, {"shared", launch(turn_patches_shared, 4 * multiprocessors(), 512, 0, p, in_global, static_cast<int>(heads))}};
    });

// --- sound: pages of a cache copied to where a sequence lies in one piece ---

constexpr int PAGE = 16 * 8 * 128 / 8;  // 16 tokens of 8 heads of 128 half values, in pieces of 16 bytes

__global__ void __launch_bounds__(256) gather_pages(const uint4 *__restrict__ pool, const int *__restrict__ page_of, uint4 *__restrict__ out) {
    const uint4 *from = pool + static_cast<size_t>(page_of[blockIdx.x]) * PAGE + threadIdx.x;
    uint4 *to = out + static_cast<size_t>(blockIdx.x) * PAGE + threadIdx.x;
    uint4 piece[PAGE / 256];
#pragma unroll
    for (int i = 0; i < PAGE / 256; i++) piece[i] = from[i * 256];
#pragma unroll
    for (int i = 0; i < PAGE / 256; i++) to[i * 256] = piece[i];
}

Study pages("sound_pages_gathered", "models", 16384, "16384 pages of 32 KB of a cache gathered into one piece", "", {}, [](Buffers &b, long n) -> Sides {
    std::vector<int> page_of(n);
    for (long i = 0; i < n; i++) page_of[i] = static_cast<int>((i * 4099 + 17) % n);
    const unsigned *pool = b.random<unsigned>(n * PAGE * 4, 0, 4294967295.0);
    const int *table = b.copy(page_of);
    unsigned *out = b.output<unsigned>(n * PAGE * 4);
    b.tolerance = 0;
    return {{"sound", launch(gather_pages, n, 256, 0, reinterpret_cast<const uint4 *>(pool), table, reinterpret_cast<uint4 *>(out))}};
});

}  // namespace
