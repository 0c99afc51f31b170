// Tables in constant memory that each lane, each warp or the code itself has other places of.
#include "../pairs/pair.cuh"

namespace {

std::vector<float> drawn(size_t count, unsigned seed, float low, float high) {
    std::vector<float> found(count);
    unsigned state = seed;
    for (float &one : found) state = state * 1664525u + 1013904223u, one = low + (high - low) * (state >> 8) * 5.9604645e-8f;
    return found;
}

// --- tones of a picture ---

constexpr int STEPS = 4096;
__constant__ float TONE[STEPS];

__device__ __forceinline__ int step_of(unsigned short raw) { return raw & (STEPS - 1); }
__global__ void __launch_bounds__(256) toned(const ushort4 *__restrict__ raw, float4 *__restrict__ out) {
    const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
    const ushort4 v = raw[i];
    out[i] = make_float4(TONE[step_of(v.x)], TONE[step_of(v.y)], TONE[step_of(v.z)], TONE[step_of(v.w)]);
}
__global__ void __launch_bounds__(256) toned_loaded(const ushort4 *__restrict__ raw, float4 *__restrict__ out, const float *__restrict__ tone) {
    const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
    const ushort4 v = raw[i];
    out[i] = make_float4(__ldg(tone + step_of(v.x)), __ldg(tone + step_of(v.y)), __ldg(tone + step_of(v.z)), __ldg(tone + step_of(v.w)));
}
__global__ void __launch_bounds__(1024) toned_shared(const ushort4 *__restrict__ raw, float4 *__restrict__ out, const float4 *__restrict__ tone, int rounds) {
    __shared__ float4 four[STEPS / 4];
    four[threadIdx.x] = tone[threadIdx.x];
    __syncthreads();
    const float *own = reinterpret_cast<const float *>(four);
    for (int round = 0; round < rounds; ++round) {
        const size_t i = (static_cast<size_t>(blockIdx.x) * rounds + round) * 1024 + threadIdx.x;
        const ushort4 v = raw[i];
        out[i] = make_float4(own[step_of(v.x)], own[step_of(v.y)], own[step_of(v.z)], own[step_of(v.w)]);
    }
}

Study toning("raw_pictures_toned_by_4096_constants", "photography", 1 << 24, "tones of 16777216 raw values of twelve bits by a table",
    "each lane looks up its own of 4096 constants, 16 KiB",
    {{"loaded", "the table through L1", {"constant_divergence"}}, {"shared", "the table in shared memory", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        // A picture: neighbours differ by noise.
        std::vector<ushort4> raw(n / 4);
        unsigned state = 77;
        for (long i = 0; i < n / 4; ++i) {
            unsigned short of[4];
            for (int k = 0; k < 4; ++k) {
                state = state * 1664525u + 1013904223u;
                of[k] = static_cast<unsigned short>((i / 37 + (i >> 12) * 11 + (state >> 26)) & (STEPS - 1));
            }
            raw[i] = make_ushort4(of[0], of[1], of[2], of[3]);
        }
        const std::vector<float> own = drawn(STEPS, 33, 0.0f, 1.0f);
        CHECK(cudaMemcpyToSymbol(TONE, own.data(), sizeof(TONE)));
        const float *tone = b.copy(own);
        const ushort4 *in = b.copy(raw);
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n));
        const int rounds = 4;
        return {{"flawed", launch(toned, n / 1024, 256, 0, in, out)}, {"loaded", launch(toned_loaded, n / 1024, 256, 0, in, out, tone)},
            {"shared", launch(toned_shared, n / 4096 / rounds, 1024, 0, in, out, reinterpret_cast<const float4 *>(tone), rounds)}};
    });

// --- channels of a picture mixed ---

constexpr int CHANNELS = 64, MINE = 8;
__constant__ float MIX[CHANNELS * CHANNELS];

template <typename Weights>
__device__ __forceinline__ void mix(const float2 *in, float2 *out, const Weights &weights, int pairs) {
    const int at = blockIdx.x * 32 + threadIdx.x, first = threadIdx.y * MINE;
    float2 sums[MINE] = {};
#pragma unroll 4
    for (int c = 0; c < CHANNELS; ++c) {
        const float2 v = in[static_cast<size_t>(c) * pairs + at];
#pragma unroll
        for (int j = 0; j < MINE; ++j) {
            const float w = weights[(first + j) * CHANNELS + c];
            sums[j].x = fmaf(w, v.x, sums[j].x), sums[j].y = fmaf(w, v.y, sums[j].y);
        }
    }
#pragma unroll
    for (int j = 0; j < MINE; ++j) out[static_cast<size_t>(first + j) * pairs + at] = sums[j];
}
__global__ void __launch_bounds__(256) mixed(const float2 *__restrict__ in, float2 *__restrict__ out, int pairs) { mix(in, out, MIX, pairs); }
__global__ void __launch_bounds__(256) mixed_shared(const float2 *__restrict__ in, float2 *__restrict__ out, const float4 *__restrict__ weights, int pairs) {
    __shared__ float4 own[CHANNELS * CHANNELS / 4];
    for (int k = threadIdx.y * 32 + threadIdx.x; k < CHANNELS * CHANNELS / 4; k += 256) own[k] = weights[k];
    __syncthreads();
    mix(in, out, reinterpret_cast<const float *>(own), pairs);
}
__global__ void __launch_bounds__(256) mixed_loaded(const float2 *__restrict__ in, float2 *__restrict__ out, const float *__restrict__ weights, int pairs) { mix(in, out, weights, pairs); }

Study mixing("channels_mixed_by_a_row_of_constants_each_warp", "vision", 1 << 17, "64 channels of 262144 pixels mixed into 64 others",
    "each warp walks eight other rows of 16 KiB of constant memory, which its caches do not hold",
    {{"shared", "weights in shared memory", {"constant_cache"}}, {"loaded", "weights through L1", {"constant_cache"}}},
    [](Buffers &b, long n) -> Sides {
        const float2 *in = reinterpret_cast<const float2 *>(b.random<float>(2 * n * CHANNELS));
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2 * n * CHANNELS));
        const std::vector<float> own = drawn(CHANNELS * CHANNELS, 3, -0.2f, 0.2f);
        CHECK(cudaMemcpyToSymbol(MIX, own.data(), sizeof(MIX)));
        const float *weights = b.copy(own);
        const dim3 block(32, 8);
        const int pairs = static_cast<int>(n);
        return {{"flawed", launch(mixed, n / 32, block, 0, in, out, pairs)}, {"shared", launch(mixed_shared, n / 32, block, 0, in, out, reinterpret_cast<const float4 *>(weights), pairs)},
            {"loaded", launch(mixed_loaded, n / 32, block, 0, in, out, weights, pairs)}};
    });

// --- a small network for each collision ---

constexpr int INPUTS = 8, HIDDEN = 32;
struct Network {
    float first[HIDDEN][INPUTS], second[HIDDEN][HIDDEN], last[HIDDEN];
};
__constant__ Network NETWORK;

template <int EACH>
__device__ __forceinline__ void judge(const float4 *__restrict__ events, float *__restrict__ scores, const Network &net, int first, int apart) {
    float in[EACH][INPUTS], hidden[EACH][HIDDEN], score[EACH] = {};
#pragma unroll
    for (int e = 0; e < EACH; ++e)
#pragma unroll
        for (int k = 0; k < INPUTS / 4; ++k) *reinterpret_cast<float4 *>(in[e] + 4 * k) = events[static_cast<size_t>(first + e * apart) * (INPUTS / 4) + k];
#pragma unroll
    for (int h = 0; h < HIDDEN; ++h)
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < INPUTS; ++k) sum = fmaf(net.first[h][k], in[e][k], sum);
            hidden[e][h] = fmaxf(sum, 0.0f);
        }
#pragma unroll
    for (int h = 0; h < HIDDEN; ++h)
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < HIDDEN; ++k) sum = fmaf(net.second[h][k], hidden[e][k], sum);
            score[e] = fmaf(net.last[h], fmaxf(sum, 0.0f), score[e]);
        }
#pragma unroll
    for (int e = 0; e < EACH; ++e) scores[first + e * apart] = score[e];
}
__global__ void __launch_bounds__(128) judged(const float4 *__restrict__ events, float *__restrict__ scores) { judge<1>(events, scores, NETWORK, blockIdx.x * 128 + threadIdx.x, 128); }
__global__ void __launch_bounds__(128) judged_four(const float4 *__restrict__ events, float *__restrict__ scores) { judge<4>(events, scores, NETWORK, blockIdx.x * 512 + threadIdx.x, 128); }
__global__ void __launch_bounds__(128) judged_shared(const float4 *__restrict__ events, float *__restrict__ scores, const float4 *__restrict__ weights) {
    __shared__ __align__(16) Network net;
    for (int k = threadIdx.x; k < static_cast<int>(sizeof(Network) / 16); k += 128) reinterpret_cast<float4 *>(&net)[k] = weights[k];
    __syncthreads();
    judge<1>(events, scores, net, blockIdx.x * 128 + threadIdx.x, 128);
}

Study judging("collisions_network_of_1312_weights_in_constants", "particle physics", 1 << 21, "a network of 8, 32 and 32 neurons for each of 2097152 collisions",
    "every warp names 5 KiB of constant memory, which its caches do not hold",
    {{"shared", "weights in shared memory", {"constant_cache"}}, {"four", "four collisions a thread", {"constant_cache"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *events = reinterpret_cast<const float4 *>(b.random<float>(n * INPUTS));
        float *scores = b.output<float>(n);
        const std::vector<float> own = drawn(sizeof(Network) / 4, 13, -0.3f, 0.3f);
        CHECK(cudaMemcpyToSymbol(NETWORK, own.data(), sizeof(Network)));
        const float4 *weights = reinterpret_cast<const float4 *>(b.copy(own));
        return {{"flawed", launch(judged, n / 128, 128, 0, events, scores)}, {"shared", launch(judged_shared, n / 128, 128, 0, events, scores, weights)},
            {"four", launch(judged_four, n / 512, 128, 0, events, scores)}};
    });

}  // namespace
