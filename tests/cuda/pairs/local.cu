// Local memory (registers spilled, arrays indexed at run time) and constants of which a warp wants several at once.
#include "pair.cuh"

namespace {

// Forty states a thread, advanced together: with few registers to hold them the compiler spills.
template <int MinBlocks>
__global__ void __launch_bounds__(256, MinBlocks)
    oscillators(const float *__restrict__ in, float *__restrict__ out, int n, int steps) {
    constexpr int STATES = 44;
    int i = blockIdx.x * 256 + threadIdx.x;
    float state[STATES];
#pragma unroll
    for (int s = 0; s < STATES; ++s) state[s] = in[(i + s * 37) % n];
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        float first = state[0];
#pragma unroll
        for (int s = 0; s < STATES; ++s)
            state[s] = fmaf(0.9f, state[s], 0.1f * (s + 1 < STATES ? state[s + 1] : first));
    }
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < STATES; ++s) sum += state[s] * (s + 1);
    out[i] = sum;
}
Family spills("spills", "oscillators", {16, 128}, {flaw("hard", "local_memory"), flaw("some", "local_memory")},
    [](Buffers &b, long steps) -> Sides {
        int grid = multiprocessors() * 16, n = grid * 256;
        float *in = b.random<float>(n), *out = b.output<float>(n);
        return {{"hard", launch(oscillators<8>, grid, 256, 0, in, out, n, steps)},
            {"some", launch(oscillators<6>, grid, 256, 0, in, out, n, steps)},
            {"mended", launch(oscillators<2>, grid, 256, 0, in, out, n, steps)}};
    });

// A memory-bound stream whose weights do not all fit into registers: many spilled, or a few.
template <int WEIGHTS, int MinBlocks>
__global__ void __launch_bounds__(256, MinBlocks)
    weighted(const float4 *__restrict__ in, float *__restrict__ out, int n) {
    float weight[WEIGHTS];
    int thread = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256;
#pragma unroll
    for (int w = 0; w < WEIGHTS; ++w) weight[w] = __int2float_rn(thread % (w + 3)) * 0.125f;
    float sum = 0.0f;
    for (int i = thread; i < n; i += threads) {
        float4 v = in[i];
        float x = v.x + v.y + v.z + v.w;
        float y = x;
#pragma unroll
        for (int w = 0; w < WEIGHTS; ++w) y = fmaf(y, 0.5f, weight[w]);
        sum += y;
    }
    out[thread] = sum;
}
template <int Weights>
Sides weighted_sides(Buffers &b, long n) {
    auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4));
    int grid = multiprocessors() * 8;
    float *out = b.output<float>(grid * 256);
    return flawed_mended(
        launch(weighted<Weights, 8>, grid, 256, 0, in, out, n), launch(weighted<Weights, 4>, grid, 256, 0, in, out, n));
}
Family spills_in_stream("spills_in_stream", "weighted", {1 << 22, 1 << 25}, mend("local_memory"), weighted_sides<28>);
Family spills_behind_stream(
    "spills_behind_stream", "weighted", {1 << 22, 1 << 25}, mend("local_memory"), weighted_sides<18>);

// The eight nearest of many candidates: insertion at a position known at run time, or by exchanges at fixed positions.
template <bool Indexed>
__global__ void nearest_eight(
    const float *__restrict__ candidates, const float *__restrict__ queries, float *__restrict__ out, int count) {
    constexpr int K = 8;
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    float query = queries[q], best[K];
#pragma unroll
    for (int k = 0; k < K; ++k) best[k] = 1e30f;
    for (int c = 0; c < count; ++c) {
        float d = fabsf(candidates[c] - query);
        if (d >= best[K - 1]) continue;
        if (Indexed) {
            int k = K - 1;
            while (k > 0 && best[k - 1] > d) {
                best[k] = best[k - 1];
                --k;
            }
            best[k] = d;
        } else {
#pragma unroll
            for (int k = 0; k < K; ++k) {
                float low = fminf(best[k], d);
                d = fmaxf(best[k], d);
                best[k] = low;
            }
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < K; ++k) sum += best[k] * (k + 1);
    out[q] = sum;
}
Family nearest_indexed(
    "nearest_indexed", "nearest", {128, 2048}, mend("local_memory", "real"), [](Buffers &b, long count) -> Sides {
        int grid = multiprocessors() * 8;
        float *c = b.random<float>(count), *q = b.random<float>(grid * 256), *out = b.output<float>(grid * 256);
        return flawed_mended(launch(nearest_eight<true>, grid, 256, 0, c, q, out, count),
            launch(nearest_eight<false>, grid, 256, 0, c, q, out, count));
    });

// A thread's own histogram of 16 bins in an array (local memory), or in a strip of shared memory.
template <bool Local>
__global__ void nibbles(const unsigned *__restrict__ in, int *__restrict__ out, int rounds) {
    __shared__ int strip[Local ? 1 : 16][Local ? 1 : 128];
    int own[16];
    for (int b = 0; b < 16; ++b) (Local ? own[b] : strip[b][threadIdx.x]) = 0;
    for (int r = 0; r < rounds; ++r) {
        unsigned v = in[(size_t(blockIdx.x) * rounds + r) * 128 + threadIdx.x];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            int bin = (v >> (4 * k)) & 15;
            if (Local) ++own[bin];
            else ++strip[bin][threadIdx.x];
        }
    }
    for (int b = 0; b < 16; ++b)
        out[(size_t(blockIdx.x) * 16 + b) * 128 + threadIdx.x] = Local ? own[b] : strip[b][threadIdx.x];
}
Family histogram_local(
    "histogram_local", "histogram", {32, 256}, mend("local_memory"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 12;
        auto *in =
            reinterpret_cast<unsigned *>(b.random<int>(size_t(grid) * rounds * 128, -2147483648.0, 2147483647.0));
        int *out = b.output<int>(grid * 16 * 128);
        return flawed_mended(launch(nibbles<true>, grid, 128, 0, in, out, rounds),
            launch(nibbles<false>, grid, 128, 0, in, out, rounds));
    });

// Sums of powers picked at run time out of 32: from an array of the thread's own, or from a strip of shared memory.
template <bool Local>
__global__ void pick(const float *__restrict__ in, const int *__restrict__ which, float *__restrict__ out, int n) {
    constexpr int POWERS = 32;
    __shared__ float strip[Local ? 1 : POWERS][Local ? 1 : 128];
    float own[POWERS];
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    float x = in[i], power = 1.0f;
#pragma unroll
    for (int k = 0; k < POWERS; ++k, power *= x) (Local ? own[k] : strip[k][threadIdx.x]) = power;
    int w = which[i];
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < 24; ++t) {
        int index = (w >> t) & 31;
        sum += Local ? own[index] : strip[index][threadIdx.x];
    }
    out[i] = sum;
}
Family powers_indexed(
    "powers_indexed", "powers", {1 << 20, 1 << 23}, mend("local_memory"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n), *out = b.output<float>(n);
        int *which = b.random<int>(n, 0, 1 << 28);
        return flawed_mended(launch(pick<true>, blocks(n, 128), 128, 0, in, which, out, n),
            launch(pick<false>, blocks(n, 128), 128, 0, in, which, out, n));
    });

constexpr int TABLE = 256;
__constant__ float coefficients[TABLE];
void set_coefficients() {
    std::vector<float> host(TABLE);
    for (int i = 0; i < TABLE; ++i) host[i] = hash(unsigned(i)) / 4294967296.0f;
    CHECK(cudaMemcpyToSymbol(coefficients, host.data(), TABLE * 4));
}

// A sum over all coefficients in which every lane starts at its own, or all lanes at the same.
template <bool Rotated>
__global__ void correlate(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], sum = 0.0f;
    for (int r = 0; r < rounds; ++r)
#pragma unroll 8
        for (int k = 0; k < TABLE; ++k) {
            float c = coefficients[Rotated ? (k + threadIdx.x) % TABLE : k];
            sum += c * fabsf(x - c);
        }
    out[i] = sum / rounds;
}
Family constant_rotated(
    "constant_rotated", "correlate", {1, 8}, mend("constant_divergence"), [](Buffers &b, long rounds) -> Sides {
        set_coefficients();
        int grid = multiprocessors() * 8;
        float *in = b.random<float>(grid * 256), *out = b.output<float>(grid * 256);
        return flawed_mended(launch(correlate<true>, grid, 256, 0, in, out, rounds),
            launch(correlate<false>, grid, 256, 0, in, out, rounds));
    });

// A palette of 256 tones looked up by the pixel, in constant memory or in shared memory.
template <bool Constant, int Extra>
__global__ void palette(const unsigned *__restrict__ in, float *__restrict__ out, int words) {
    __shared__ float tones[TABLE];
    if (!Constant) {
        for (int i = threadIdx.x; i < TABLE; i += blockDim.x) tones[i] = coefficients[i];
        __syncthreads();
    }
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned v = in[i];
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int tone = (v >> (8 * k)) & 255;
            sum += (Constant ? coefficients[tone] : tones[tone]) * (k + 1);
        }
        out[i] = sum;
    }
}
// `levels` different tones in any 32 neighbours.
Sides palette_sides(Buffers &b, long words, unsigned levels) {
    set_coefficients();
    std::vector<int> host(words);
    for (long i = 0; i < words; ++i) {
        unsigned v = 0;
        for (int k = 0; k < 4; ++k)
            v |= ((hash(unsigned(i / 32) * 4 + k) + hash(unsigned(i * 4 + k)) % levels) & 255) << (8 * k);
        host[i] = int(v);
    }
    auto *in = reinterpret_cast<unsigned *>(b.copy(host));
    float *out = b.output<float>(words);
    int grid = multiprocessors() * 8;
    return flawed_mended(launch(palette<true, 0>, grid, 256, 0, in, out, words),
        launch(palette<false, 0>, grid, 256, 0, in, out, words));
}
Family palette_many("palette_many", "palette", {1 << 20, 1 << 24}, mend("constant_divergence", "real"),
    [](Buffers &b, long n) { return palette_sides(b, n, 256); });
Family palette_two("palette_two", "palette", {1 << 20, 1 << 24}, mend("constant_divergence", "behind_limit"),
    [](Buffers &b, long n) { return palette_sides(b, n, 2); });

}  // namespace
