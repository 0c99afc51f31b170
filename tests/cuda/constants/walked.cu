// Tables in constant memory that all warps walk, larger than its caches or small enough for them.
#include "../pairs/pair.cuh"

namespace {

std::vector<float> drawn(size_t count, unsigned seed, float low, float high) {
    std::vector<float> found(count);
    unsigned state = seed;
    for (float &one : found) state = state * 1664525u + 1013904223u, one = low + (high - low) * (state >> 8) * 5.9604645e-8f;
    return found;
}

// --- the sound of many loudspeakers ---

constexpr int SPEAKERS = 1536, HALL = 256, HEIGHTS = 4, TOGETHER = 256;
__constant__ float4 SPEAKER[SPEAKERS];

__device__ __forceinline__ void add_speaker(float *sums, float4 one, float x, float y) {
    const float dx = x - one.x, dy = y - one.y, flat = fmaf(dx, dx, dy * dy);
#pragma unroll
    for (int h = 0; h < HEIGHTS; ++h) {
        const float dz = 0.5f * h - one.z;
        sums[h] = fmaf(one.w, rsqrtf(fmaf(dz, dz, flat)), sums[h]);
    }
}
__device__ __forceinline__ void store_heights(float *loud, const float *sums, int x, int y, int depth) {
#pragma unroll
    for (int h = 0; h < HEIGHTS; ++h) loud[(static_cast<size_t>(h) * depth + y) * HALL + x] = sums[h];
}
__global__ void __launch_bounds__(256) loudness(float *loud, int depth) {
    const int x = threadIdx.x, y = blockIdx.x;
    float sums[HEIGHTS] = {};
    for (int s = 0; s < SPEAKERS; ++s) add_speaker(sums, SPEAKER[s], 0.25f * x, 0.25f * y);
    store_heights(loud, sums, x, y, depth);
}
__global__ void __launch_bounds__(256) loudness_shared(float *loud, const float4 *speakers, int depth) {
    __shared__ float4 some[TOGETHER];
    const int x = threadIdx.x, y = blockIdx.x;
    float sums[HEIGHTS] = {};
    for (int first = 0; first < SPEAKERS; first += TOGETHER) {
        __syncthreads();
        some[threadIdx.x] = speakers[first + threadIdx.x];
        __syncthreads();
        for (int s = 0; s < TOGETHER; ++s) add_speaker(sums, some[s], 0.25f * x, 0.25f * y);
    }
    store_heights(loud, sums, x, y, depth);
}
__global__ void __launch_bounds__(256) loudness_loaded(float *loud, const float4 *__restrict__ speakers, int depth) {
    const int x = threadIdx.x, y = blockIdx.x;
    float sums[HEIGHTS] = {};
    for (int s = 0; s < SPEAKERS; ++s) add_speaker(sums, __ldg(speakers + s), 0.25f * x, 0.25f * y);
    store_heights(loud, sums, x, y, depth);
}

Study hall("loudspeakers_walked_in_constants", "acoustics", 1024, "loudness of 1536 loudspeakers at 256 x 1024 places of a hall in four heights",
    "every warp walks 24 KiB of constant memory, which its caches do not hold",
    {{"shared", "256 loudspeakers at a time in shared memory", {"constant_cache"}}, {"loaded", "loudspeakers loaded through L1", {"constant_cache"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> speakers(SPEAKERS);
        const std::vector<float> own = drawn(4 * SPEAKERS, 5, 0.0f, 1.0f);
        for (int s = 0; s < SPEAKERS; ++s) speakers[s] = make_float4(64.0f * own[4 * s], 512.0f * own[4 * s + 1], 4.0f + own[4 * s + 2], own[4 * s + 3]);
        CHECK(cudaMemcpyToSymbol(SPEAKER, speakers.data(), sizeof(SPEAKER)));
        const float4 *copied = b.copy(speakers);
        float *loud = b.output<float>(HEIGHTS * HALL * n);
        const int depth = static_cast<int>(n);
        return {{"flawed", launch(loudness, depth, 256, 0, loud, depth)}, {"shared", launch(loudness_shared, depth, 256, 0, loud, copied, depth)},
            {"loaded", launch(loudness_loaded, depth, 256, 0, loud, copied, depth)}};
    });

// --- a long filter that came as a parameter ---

constexpr int TAPS = 768, FOUR = 4;
struct Filter {
    float taps[TAPS];
};

template <int EACH>
__device__ __forceinline__ void fetch(float *own, const float *signal) {
    for (int k = threadIdx.x; k < static_cast<int>(blockDim.x) * EACH + TAPS; k += blockDim.x) own[k] = signal[static_cast<size_t>(blockIdx.x) * blockDim.x * EACH + k];
    __syncthreads();
}
// EACH outputs a thread, side by side; the window slides by four samples.
template <int EACH, typename Taps>
__device__ __forceinline__ void convolve(float *out, const float *own, const Taps &taps) {
    const float4 *at = reinterpret_cast<const float4 *>(own) + threadIdx.x * (EACH / 4);
    float sums[EACH] = {}, window[EACH + 4];
#pragma unroll
    for (int k = 0; k < EACH / 4; ++k) *reinterpret_cast<float4 *>(window + 4 * k) = at[k];
#pragma unroll 2
    for (int t = 0; t < TAPS; t += 4) {
        *reinterpret_cast<float4 *>(window + EACH) = at[EACH / 4 + t / 4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float tap = taps[t + j];
#pragma unroll
            for (int i = 0; i < EACH; ++i) sums[i] = fmaf(tap, window[i + j], sums[i]);
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) window[k] = window[k + 4];
    }
    float4 *to = reinterpret_cast<float4 *>(out + (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * EACH);
#pragma unroll
    for (int k = 0; k < EACH / 4; ++k) to[k] = *reinterpret_cast<float4 *>(sums + 4 * k);
}
template <int EACH>
__global__ void __launch_bounds__(128) filtered(const float *__restrict__ signal, float *__restrict__ out, const Filter filter) {
    __shared__ __align__(16) float own[128 * EACH + TAPS];
    fetch<EACH>(own, signal);
    convolve<EACH>(out, own, filter.taps);
}
__global__ void __launch_bounds__(128) filtered_shared(const float *__restrict__ signal, float *__restrict__ out, const float *__restrict__ filter) {
    __shared__ __align__(16) float own[128 * FOUR + TAPS], taps[TAPS];
    for (int k = threadIdx.x; k < TAPS; k += 128) taps[k] = filter[k];
    fetch<FOUR>(own, signal);
    convolve<FOUR>(out, own, taps);
}

Study tapped("echoes_filter_of_768_taps_as_parameter", "audio", 4193280, "a filter of 768 taps for 4193280 samples",
    "every warp walks 3 KiB of parameters, which the constant caches do not hold",
    {{"shared", "taps in shared memory", {"constant_cache"}}, {"twelve", "twelve outputs a thread", {"constant_cache", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *signal = b.random<float>(n + TAPS);
        float *out = b.output<float>(n);
        const std::vector<float> own = drawn(TAPS, 9, -0.02f, 0.02f);
        Filter filter;
        for (int k = 0; k < TAPS; ++k) filter.taps[k] = own[k];
        const float *copied = b.copy(own);
        return {{"flawed", launch(filtered<FOUR>, n / 128 / FOUR, 128, 0, signal, out, filter)}, {"shared", launch(filtered_shared, n / 128 / FOUR, 128, 0, signal, out, copied)},
            {"twelve", launch(filtered<12>, n / 128 / 12, 128, 0, signal, out, filter)}};
    });

// --- vectors and the nearest of 256 centres ---

constexpr int CENTRES = 256, LONG = 16;
__constant__ float CENTRE[CENTRES][LONG];

template <int EACH>
struct Nearest {
    float vector[EACH][LONG], best[EACH];
    int which[EACH];

    __device__ Nearest(const float4 *vectors, int first, int apart) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            best[i] = 3e38f, which[i] = 0;
#pragma unroll
            for (int k = 0; k < LONG / 4; ++k) *reinterpret_cast<float4 *>(vector[i] + 4 * k) = vectors[static_cast<size_t>(first + i * apart) * (LONG / 4) + k];
        }
    }
    template <typename Row>
    __device__ void compare(const Row &centre, int c) {
        float away[EACH] = {};
#pragma unroll
        for (int k = 0; k < LONG; ++k) {
            const float there = centre[k];
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const float d = vector[i][k] - there;
                away[i] = fmaf(d, d, away[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (away[i] < best[i]) best[i] = away[i], which[i] = c;
    }
    __device__ void store(int *nearest, int first, int apart) const {
#pragma unroll
        for (int i = 0; i < EACH; ++i) nearest[first + i * apart] = which[i];
    }
};
template <int EACH>
__global__ void __launch_bounds__(256) assign(const float4 *__restrict__ vectors, int *__restrict__ nearest) {
    const int first = blockIdx.x * 256 * EACH + threadIdx.x;
    Nearest<EACH> mine(vectors, first, 256);
#pragma unroll 1
    for (int c = 0; c < CENTRES; ++c) mine.compare(CENTRE[c], c);
    mine.store(nearest, first, 256);
}
__global__ void __launch_bounds__(256) assign_shared(const float4 *__restrict__ vectors, int *__restrict__ nearest, const float4 *__restrict__ centres) {
    __shared__ float4 there[CENTRES * LONG / 4];
    for (int k = threadIdx.x; k < CENTRES * LONG / 4; k += 256) there[k] = centres[k];
    const int first = blockIdx.x * 256 + threadIdx.x;
    Nearest<1> mine(vectors, first, 256);
    __syncthreads();
#pragma unroll 1
    for (int c = 0; c < CENTRES; ++c) mine.compare(reinterpret_cast<const float *>(there) + c * LONG, c);
    mine.store(nearest, first, 256);
}

Study coded("vectors_coded_by_centres_in_constants", "search", 1 << 20, "the nearest of 256 centres for 1048576 vectors of 16 floats",
    "every warp walks 16 KiB of constant memory, which its caches do not hold",
    {{"shared", "centres in shared memory", {"constant_cache"}}, {"four", "four vectors a thread", {"constant_cache"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *vectors = reinterpret_cast<const float4 *>(b.random<float>(n * LONG));
        int *nearest = b.output<int>(n);
        const std::vector<float> own = drawn(CENTRES * LONG, 21, -1.0f, 1.0f);
        CHECK(cudaMemcpyToSymbol(CENTRE, own.data(), sizeof(CENTRE)));
        const float4 *centres = reinterpret_cast<const float4 *>(b.copy(own));
        return {{"flawed", launch(assign<1>, n / 256, 256, 0, vectors, nearest)}, {"shared", launch(assign_shared, n / 256, 256, 0, vectors, nearest, centres)},
            {"four", launch(assign<4>, n / 1024, 256, 0, vectors, nearest)}};
    });

// --- without a flaw: few constants, the same for all lanes ---

constexpr int TERMS = 20;
__constant__ float SERIES[TERMS];

// Clenshaw's recurrence for four values a thread.
__global__ void __launch_bounds__(256) chebyshev(const float4 *__restrict__ at, float4 *__restrict__ out, int terms) {
    const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
    const float4 v = at[i];
    const float x[4] = {2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w};
    float one[4] = {}, two[4] = {};
    for (int k = terms - 1; k > 0; --k) {
        const float c = SERIES[k];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float next = fmaf(x[j], one[j], c - two[j]);
            two[j] = one[j], one[j] = next;
        }
    }
    const float c = SERIES[0];
    out[i] = make_float4(fmaf(v.x, one[0], c - two[0]), fmaf(v.y, one[1], c - two[1]), fmaf(v.z, one[2], c - two[2]), fmaf(v.w, one[3], c - two[3]));
}

Study series("sound_series_of_20_constants", "numerics", 1 << 25, "a Chebyshev series of 20 terms at 33554432 places", "", {}, [](Buffers &b, long n) -> Sides {
    const float4 *at = reinterpret_cast<const float4 *>(b.random<float>(n));
    const std::vector<float> own = drawn(TERMS, 41, -1.0f, 1.0f);
    CHECK(cudaMemcpyToSymbol(SERIES, own.data(), sizeof(SERIES)));
    return {{"sound", launch(chebyshev, n / 1024, 256, 0, at, reinterpret_cast<float4 *>(b.output<float>(n)), TERMS)}};
});

constexpr int WIDE = 8192, ROWS_EACH = 8;
__constant__ float SHARPER[25];

// Four pixels of a row a thread, down eight rows, five rows of it in registers.
__global__ void __launch_bounds__(128) sharpened(const float *__restrict__ in, float *__restrict__ out, int pitch) {
    const int x = (blockIdx.x * 128 + threadIdx.x) * 4, y = blockIdx.y * ROWS_EACH;
    float rows[5][8];
    const float *from = in + static_cast<size_t>(y) * pitch + x;
    const auto load = [&](float *row, int r) {
        const float4 left = *reinterpret_cast<const float4 *>(from + static_cast<size_t>(r) * pitch), right = *reinterpret_cast<const float4 *>(from + static_cast<size_t>(r) * pitch + 4);
        row[0] = left.x, row[1] = left.y, row[2] = left.z, row[3] = left.w, row[4] = right.x, row[5] = right.y, row[6] = right.z, row[7] = right.w;
    };
#pragma unroll
    for (int r = 0; r < 4; ++r) load(rows[r], r);
#pragma unroll
    for (int r = 0; r < ROWS_EACH; ++r) {
        load(rows[(r + 4) % 5], r + 4);
        float sums[4] = {};
#pragma unroll
        for (int dy = 0; dy < 5; ++dy)
#pragma unroll
            for (int dx = 0; dx < 5; ++dx)
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[j] = fmaf(SHARPER[dy * 5 + dx], rows[(r + dy) % 5][j + dx], sums[j]);
        *reinterpret_cast<float4 *>(out + static_cast<size_t>(y + r) * WIDE + x) = make_float4(sums[0], sums[1], sums[2], sums[3]);
    }
}

Study sharper("sound_pictures_sharpened_by_25_constants", "images", 8192, "a picture of 8192 x 8192 floats sharpened by 5 x 5 weights", "", {}, [](Buffers &b, long n) -> Sides {
    const int pitch = WIDE + 8;
    const float *in = b.random<float>(static_cast<size_t>(pitch) * (n + 4) + 8);
    const std::vector<float> own = drawn(25, 51, -0.1f, 0.1f);
    CHECK(cudaMemcpyToSymbol(SHARPER, own.data(), sizeof(SHARPER)));
    return {{"sound", launch(sharpened, dim3(WIDE / 512, static_cast<unsigned>(n) / ROWS_EACH), 128, 0, in, b.output<float>(WIDE * n), pitch)}};
});

}  // namespace
