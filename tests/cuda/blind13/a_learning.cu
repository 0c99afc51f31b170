// Learning: sparse probabilities, rounded weights, confusion matrices, quantiles. Each kernel but the sound one has one weakness and two ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- sparsemax: the threshold above which a row's logits sum to one, by halving ---

constexpr int CLASSES_A_ROW = 1024, HALVINGS = 20;

__device__ __forceinline__ float above(const float4 &z, float t) { return fmaxf(z.x - t, 0.f) + fmaxf(z.y - t, 0.f) + fmaxf(z.z - t, 0.f) + fmaxf(z.w - t, 0.f); }
__device__ __forceinline__ float4 less(const float4 &z, float t) { return make_float4(fmaxf(z.x - t, 0.f), fmaxf(z.y - t, 0.f), fmaxf(z.z - t, 0.f), fmaxf(z.w - t, 0.f)); }
__device__ __forceinline__ float largest(const float4 &z) { return fmaxf(fmaxf(z.x, z.y), fmaxf(z.z, z.w)); }

template <typename Join>
__device__ float joined_by_tree(float *room, float v, Join join) {
    room[threadIdx.x] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) room[threadIdx.x] = join(room[threadIdx.x], room[threadIdx.x + half]);
        __syncthreads();
    }
    const float all = room[0];
    __syncthreads();
    return all;
}

__global__ void __launch_bounds__(256) sparsemax(const float4 *__restrict__ logits, float4 *__restrict__ out) {
    __shared__ float room[256];
    const size_t at = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
    const float4 z = logits[at];
    float high = joined_by_tree(room, largest(z), [](float a, float b) { return fmaxf(a, b); }), low = high - 1.f;
    for (int step = 0; step < HALVINGS; step++) {
        const float middle = 0.5f * (low + high);
        const float sum = joined_by_tree(room, above(z, middle), [](float a, float b) { return a + b; });
        if (sum > 1.f) low = middle;
        else high = middle;
    }
    out[at] = less(z, 0.5f * (low + high));
}
// A warp keeps a row in its registers: no barriers.
__global__ void __launch_bounds__(256) sparsemax_warp(const float4 *__restrict__ logits, float4 *__restrict__ out) {
    const int lane = threadIdx.x % 32;
    const size_t first = static_cast<size_t>(blockIdx.x * 8 + threadIdx.x / 32) * (CLASSES_A_ROW / 4) + lane;
    float4 z[8];
    float high = -1e30f;
#pragma unroll
    for (int k = 0; k < 8; k++) z[k] = logits[first + k * 32];
#pragma unroll
    for (int k = 0; k < 8; k++) high = fmaxf(high, largest(z[k]));
    high = warp_max(high);
    float low = high - 1.f;
    for (int step = 0; step < HALVINGS; step++) {
        const float middle = 0.5f * (low + high);
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 8; k++) sum += above(z[k], middle);
        sum = warp_sum(sum);
        if (sum > 1.f) low = middle;
        else high = middle;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[first + k * 32] = less(z[k], 0.5f * (low + high));
}
// A block a row still, but sums by shuffles and one barrier a step: the warps' sums have two places in turns.
__global__ void __launch_bounds__(256) sparsemax_one_barrier(const float4 *__restrict__ logits, float4 *__restrict__ out) {
    __shared__ float4 of_warps[2][2];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t at = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
    const float4 z = logits[at];
    float high = warp_max(largest(z));
    if (lane == 0) reinterpret_cast<float *>(of_warps[1])[warp] = high;
    __syncthreads();
    high = fmaxf(largest(of_warps[1][0]), largest(of_warps[1][1]));
    float low = high - 1.f;
    for (int step = 0; step < HALVINGS; step++) {
        const float middle = 0.5f * (low + high), own = warp_sum(above(z, middle));
        if (lane == 0) reinterpret_cast<float *>(of_warps[step % 2])[warp] = own;
        __syncthreads();
        const float4 a = of_warps[step % 2][0], b = of_warps[step % 2][1];
        const float sum = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
        if (sum > 1.f) low = middle;
        else high = middle;
    }
    out[at] = less(z, 0.5f * (low + high));
}

Study sparse_probabilities("sparsemax_tree_each_halving", "models", 32768, "sparse probabilities of 32768 rows of 1024 logits, the threshold by 20 halvings",
    "each halving sums the row by a tree in shared memory with ten barriers",
    {{"warp", "a warp a row in registers", {"barriers"}}, {"one_barrier", "sums by shuffles, one barrier a halving", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const float *logits = b.random<float>(n * CLASSES_A_ROW, -4, 4);
        float *out = b.output<float>(n * CLASSES_A_ROW);
        auto in = reinterpret_cast<const float4 *>(logits);
        auto o = reinterpret_cast<float4 *>(out);
        return {{"flawed", launch(sparsemax, n, 256, 0, in, o)}, {"warp", launch(sparsemax_warp, n / 8, 256, 0, in, o)}, {"one_barrier", launch(sparsemax_one_barrier, n, 256, 0, in, o)}};
    });

// --- weights to bfloat16, rounded up or down by chance ---

__device__ __forceinline__ unsigned rounded(float weight, unsigned chance) { return (__float_as_uint(weight) + (chance & 0xffff)) >> 16; }
__device__ __forceinline__ unsigned two_rounded(float a, float b, unsigned i, unsigned seed) { return rounded(a, hash(i ^ seed)) | rounded(b, hash((i + 1) ^ seed)) << 16; }

__global__ void __launch_bounds__(256) round_weights(const float *__restrict__ master, unsigned short *__restrict__ out, unsigned seed, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = static_cast<unsigned short>(rounded(master[i], hash(i ^ seed)));
}
// Eight weights in a row for each thread.
__global__ void __launch_bounds__(256) round_weights_eight(const float4 *__restrict__ master, uint4 *__restrict__ out, unsigned seed, int eights) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= eights) return;
    const float4 a = master[2 * i], b = master[2 * i + 1];
    const unsigned first = 8 * i;
    out[i] = make_uint4(two_rounded(a.x, a.y, first, seed), two_rounded(a.z, a.w, first + 2, seed), two_rounded(b.x, b.y, first + 4, seed), two_rounded(b.z, b.w, first + 6, seed));
}
// Four pairs a thread, a block's width apart, all loaded at first.
__global__ void __launch_bounds__(256) round_weights_pairs(const float2 *__restrict__ master, unsigned *__restrict__ out, unsigned seed, int pairs) {
    const int first = blockIdx.x * 1024 + threadIdx.x;
    float2 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = first + k * 256 < pairs ? master[first + k * 256] : make_float2(0.f, 0.f);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int i = first + k * 256;
        if (i < pairs) out[i] = two_rounded(v[k].x, v[k].y, 2 * i, seed);
    }
}

Study chance_rounding("weights_rounded_by_chance_one_a_thread", "training", 1 << 26, "67108864 weights from floats to bfloat16, up or down by a hash of their number",
    "a weight a thread: four bytes read, two written",
    {{"eight", "eight weights a thread, 16 bytes an access", {"narrow_access"}}, {"pairs", "four pairs a thread, all loaded at once", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *master = b.random<float>(n, -0.1, 0.1);
        unsigned *out = b.output<unsigned>(n / 2);
        b.tolerance = 0.0;
        const unsigned seed = 0x5eed;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(round_weights, blocks(n, 256), 256, 0, master, reinterpret_cast<unsigned short *>(out), seed, count)},
            {"eight", launch(round_weights_eight, blocks(n, 2048), 256, 0, reinterpret_cast<const float4 *>(master), reinterpret_cast<uint4 *>(out), seed, count / 8)},
            {"pairs", launch(round_weights_pairs, blocks(n, 2048), 256, 0, reinterpret_cast<const float2 *>(master), out, seed, count / 2)}};
    });

// --- confusion matrix of a segmentation: how many pixels of each class were taken for which ---

constexpr int KINDS = 19;
constexpr unsigned IGNORED = 255;

__global__ void __launch_bounds__(256) confusion(const unsigned char *__restrict__ truth, const unsigned char *__restrict__ guess, int *matrix, int pixels) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pixels) return;
    const unsigned t = truth[i];
    if (t != IGNORED) atomicAdd(&matrix[t * KINDS + guess[i]], 1);
}
// A matrix for each block in shared memory, added to the one of all at the end.
__global__ void __launch_bounds__(256) confusion_shared(const unsigned char *__restrict__ truth, const unsigned char *__restrict__ guess, int *matrix, int pixels) {
    __shared__ int own[KINDS * KINDS];
    for (int k = threadIdx.x; k < KINDS * KINDS; k += 256) own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < pixels; i += gridDim.x * 256) {
        const unsigned t = truth[i];
        if (t != IGNORED) atomicAdd(&own[t * KINDS + guess[i]], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < KINDS * KINDS; k += 256)
        if (own[k]) atomicAdd(&matrix[k], own[k]);
}
// Sixteen pixels in a row for each thread, which adds where the pair of classes changes; lanes that end with the same pair add once.
__global__ void __launch_bounds__(256) confusion_runs(const uint4 *__restrict__ truth, const uint4 *__restrict__ guess, int *matrix, int sixteens) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    int open = -1, count = 0;
    if (i < sixteens) {
        const uint4 a = truth[i], b = guess[i];
        const unsigned of_truth[4] = {a.x, a.y, a.z, a.w}, of_guess[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const unsigned t = of_truth[k / 4] >> 8 * (k % 4) & 255, g = of_guess[k / 4] >> 8 * (k % 4) & 255;
            const int pair = t == IGNORED ? -1 : static_cast<int>(t * KINDS + g);
            if (pair != open) {
                if (open >= 0) atomicAdd(&matrix[open], count);
                open = pair;
                count = 0;
            }
            count++;
        }
    }
    const unsigned same = __match_any_sync(~0u, open);
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const int other = __shfl_sync(~0u, count, k);
        if (same >> k & 1) sum += other;
    }
    if (open >= 0 && lane == __ffs(same) - 1) atomicAdd(&matrix[open], sum);
}

Study confusions("confusion_matrix_atomic_each_pixel", "models", 1 << 22, "confusion matrix of 19 classes over 4194304 pixels, classes in patches, a twentieth taken for another",
    "each pixel adds one to a matrix in global memory, of whose places a few are hot",
    {{"shared", "a matrix for each block in shared memory", {"global_atomics"}}, {"runs", "sixteen pixels a thread, added where the pair changes", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> truth(n), guess(n);
        for (long i = 0; i < n; i++) {
            const unsigned patch = hash(static_cast<unsigned>(i % 2048 / 48 + i / 2048 / 48 * 64)), draw = hash(static_cast<unsigned>(i) + 17);
            const unsigned kind = patch % 64 < 20 ? 0 : patch % 64 < 34 ? 2 : patch % 64 < 44 ? 10 : patch / 64 % KINDS;
            truth[i] = patch % 97 == 0 ? IGNORED : kind;
            guess[i] = draw % 20 ? kind : draw / 20 % KINDS;
        }
        const unsigned char *t = b.copy(truth), *g = b.copy(guess);
        int *matrix = b.output<int>(KINDS * KINDS, true);
        b.tolerance = 0.0;
        const int pixels = static_cast<int>(n);
        return {{"flawed", launch(confusion, blocks(n, 256), 256, 0, t, g, matrix, pixels)}, {"shared", launch(confusion_shared, multiprocessors() * 4, 256, 0, t, g, matrix, pixels)},
            {"runs", launch(confusion_runs, blocks(n, 4096), 256, 0, reinterpret_cast<const uint4 *>(t), reinterpret_cast<const uint4 *>(g), matrix, pixels / 16)}};
    });

// --- loss of three predicted quantiles ---

__device__ __forceinline__ float pinball(float error, float quantile) { return fmaxf(quantile * error, (quantile - 1.f) * error); }
__device__ __forceinline__ float pinball_of_four(const float4 &y, const float4 &p, float quantile) { return pinball(y.x - p.x, quantile) + pinball(y.y - p.y, quantile) + pinball(y.z - p.z, quantile) + pinball(y.w - p.w, quantile); }

__global__ void __launch_bounds__(512) quantile_loss(const float4 *__restrict__ truth, const float4 *__restrict__ low, const float4 *__restrict__ middle, const float4 *__restrict__ high, float *out, int quads, float scale) {
    __shared__ float of_warps[16];
    float sum = 0.f;
#pragma unroll 2
    for (int i = blockIdx.x * 512 + threadIdx.x; i < quads; i += gridDim.x * 512) {
        const float4 y = truth[i], a = low[i], b = middle[i], c = high[i];
        sum += pinball_of_four(y, a, 0.1f) + pinball_of_four(y, b, 0.5f) + pinball_of_four(y, c, 0.9f);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < 16 ? of_warps[threadIdx.x] : 0.f);
        if (threadIdx.x == 0) atomicAdd(out, sum * scale);
    }
}

Study quantiles("sound_quantile_loss", "forecasting", 1 << 25, "mean loss of three predicted quantiles of 33554432 values", "", {}, [](Buffers &b, long n) -> Sides {
    const float *truth = b.random<float>(n), *low = b.random<float>(n, -1, 0), *middle = b.random<float>(n, -0.5, 0.5), *high = b.random<float>(n, 0, 1);
    float *out = b.output<float>(1, true);
    auto quads = [](const float *data) { return reinterpret_cast<const float4 *>(data); };
    return {{"sound", launch(quantile_loss, multiprocessors() * 4, 512, 0, quads(truth), quads(low), quads(middle), quads(high), out, n / 4, 1.f / static_cast<float>(n))}};
});

}  // namespace
