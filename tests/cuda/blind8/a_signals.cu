// Signals: filter banks, mixing, spectra. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- the windows of a polyphase filter bank: 1024 channels, eight taps each ---

constexpr int CHANNELS = 1024, TAPS = 8, FRAMES = 32;

// A block puts all that 32 frames need into shared memory: 39 x 1024 samples.
template <int threads>
__global__ void __launch_bounds__(threads) filter_bank(const float *samples, const float *window, float *out) {
    extern __shared__ float4 bank[];
    const float *held = reinterpret_cast<const float *>(bank);
    const float4 *from = reinterpret_cast<const float4 *>(samples + static_cast<size_t>(blockIdx.x) * FRAMES * CHANNELS);
    for (int i = threadIdx.x; i < (FRAMES + TAPS - 1) * CHANNELS / 4; i += threads) bank[i] = from[i];
    __syncthreads();
    for (int c = threadIdx.x; c < CHANNELS; c += threads) {
        float w[TAPS];
#pragma unroll
        for (int t = 0; t < TAPS; ++t) w[t] = window[t * CHANNELS + c];
        for (int f = 0; f < FRAMES; ++f) {
            float sum = 0.f;
#pragma unroll
            for (int t = 0; t < TAPS; ++t) sum = fmaf(w[t], held[(f + t) * CHANNELS + c], sum);
            out[(static_cast<size_t>(blockIdx.x) * FRAMES + f) * CHANNELS + c] = sum;
        }
    }
}
// A block takes 128 of the channels: 20 KB.
__global__ void __launch_bounds__(128) filter_bank_slices(const float *__restrict__ samples, const float *__restrict__ window, float *__restrict__ out) {
    __shared__ float held[FRAMES + TAPS - 1][128];
    int c = blockIdx.y * 128 + threadIdx.x;
    size_t first = static_cast<size_t>(blockIdx.x) * FRAMES * CHANNELS + c;
#pragma unroll
    for (int f = 0; f < FRAMES + TAPS - 1; ++f) held[f][threadIdx.x] = samples[first + f * CHANNELS];
    float w[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) w[t] = window[t * CHANNELS + c];
    __syncthreads();
    for (int f = 0; f < FRAMES; ++f) {
        float sum = 0.f;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) sum = fmaf(w[t], held[f + t][threadIdx.x], sum);
        out[first + f * CHANNELS] = sum;
    }
}
// The eight samples that a channel needs move through registers.
__global__ void __launch_bounds__(256) filter_bank_registers(const float *__restrict__ samples, const float *__restrict__ window, float *__restrict__ out) {
    int c = blockIdx.y * 256 + threadIdx.x;
    size_t first = static_cast<size_t>(blockIdx.x) * FRAMES * CHANNELS + c;
    float w[TAPS], held[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) w[t] = window[t * CHANNELS + c], held[t] = t ? samples[first + (t - 1) * CHANNELS] : 0.f;
#pragma unroll
    for (int f = 0; f < FRAMES; ++f) {
        float sum = 0.f;
#pragma unroll
        for (int t = 0; t < TAPS - 1; ++t) held[t] = held[t + 1];
        held[TAPS - 1] = samples[first + (f + TAPS - 1) * CHANNELS];
#pragma unroll
        for (int t = 0; t < TAPS; ++t) sum = fmaf(w[t], held[t], sum);
        out[first + f * CHANNELS] = sum;
    }
}

Study bank_window("filter_bank_all_channels_in_shared", "signals", 1 << 16, "windowed sums of a polyphase filter bank, 1024 channels, 65536 frames",
    "a block of 256 threads fills 156 KB of shared memory: one a multiprocessor, which loads or computes",
    {{"slices", "128 channels a block", {"low_occupancy"}}, {"registers", "a channel's eight samples move through registers", {"low_occupancy"}},
        {"threads", "1024 threads a block", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const float *samples = b.random<float>((n + TAPS) * CHANNELS), *window = b.random<float>(TAPS * CHANNELS);
        float *out = b.output<float>(n * CHANNELS);
        size_t shared = (FRAMES + TAPS - 1) * CHANNELS * sizeof(float);
        return {{"flawed", launch(filter_bank<256>, n / FRAMES, 256, shared, samples, window, out)},
            {"slices", launch(filter_bank_slices, dim3(n / FRAMES, CHANNELS / 128), 128, 0, samples, window, out)},
            {"registers", launch(filter_bank_registers, dim3(n / FRAMES, CHANNELS / 256), 256, 0, samples, window, out)},
            {"threads", launch(filter_bank<1024>, n / FRAMES, 1024, shared, samples, window, out)}};
    });

// --- a chirp mixed down: samples times a carrier whose frequency rises ---

__device__ __forceinline__ float2 turned(float2 v, float sine, float cosine) {
    return make_float2(fmaf(v.x, cosine, v.y * sine), fmaf(v.y, cosine, -v.x * sine));
}
__global__ void mix_down(const float2 *in, float2 *out, int n, double frequency, double rise) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double cycles = frequency * i + rise * i * i, sine, cosine;
    cycles -= floor(cycles);
    sincos(6.283185307179586 * cycles, &sine, &cosine);
    out[i] = turned(in[i], static_cast<float>(sine), static_cast<float>(cosine));
}
// The phase needs double, its sine does not.
__global__ void mix_down_float_sine(const float2 *__restrict__ in, float2 *__restrict__ out, int n, double frequency, double rise) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double cycles = frequency * i + rise * i * i;
    float sine, cosine;
    sincospif(2.f * static_cast<float>(cycles - rint(cycles)), &sine, &cosine);
    out[i] = turned(in[i], sine, cosine);
}
// Phases as shares of 2^64, which wrap by themselves.
__global__ void mix_down_integers(const float2 *__restrict__ in, float2 *__restrict__ out, int n, unsigned long long frequency, unsigned long long rise) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long at = i, phase = frequency * at + rise * (at * at);
    float angle = static_cast<int>(phase >> 32) * (3.14159265f / 2147483648.f), sine, cosine;
    __sincosf(angle, &sine, &cosine);
    out[i] = turned(in[i], sine, cosine);
}

Study mixer("chirp_mixed_in_double", "signals", 1 << 25, "33554432 complex samples times a rising carrier",
    "phase, sine and cosine of each sample in FP64",
    {{"float_sine", "FP64 for the phase alone", {"double_precision"}},
        {"integers", "phases as 64-bit integers, fast sine", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float2 *in = reinterpret_cast<float2 *>(b.random<float>(2 * n));
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2 * n));
        // Both are whole multiples of 2^-64.
        double frequency = 112407.0 / 1048576.0, rise = 0x1.999ap-29;
        auto frequency64 = static_cast<unsigned long long>(frequency * 0x1p64), rise64 = static_cast<unsigned long long>(rise * 0x1p64);
        b.tolerance = 1e-3;
        return {{"flawed", launch(mix_down, blocks(n, 256), 256, 0, in, out, n, frequency, rise)},
            {"float_sine", launch(mix_down_float_sine, blocks(n, 256), 256, 0, in, out, n, frequency, rise)},
            {"integers", launch(mix_down_integers, blocks(n, 256), 256, 0, in, out, n, frequency64, rise64)}};
    });

// --- periodogram of samples taken at uneven times ---

__device__ __forceinline__ float wrapped_cycles(float frequency, float time) {
    float cycles = __fmul_rn(frequency, time);
    return cycles - rintf(cycles);
}
__global__ void periodogram(const float *time, const float *value, float *power, int samples, int frequencies, float step) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= frequencies) return;
    float frequency = (j + 1) * step, with_cosine = 0.f, with_sine = 0.f;
    for (int i = 0; i < samples; ++i) {
        float sine, cosine;
        sincospif(2.f * wrapped_cycles(frequency, time[i]), &sine, &cosine);
        with_cosine = fmaf(value[i], cosine, with_cosine), with_sine = fmaf(value[i], sine, with_sine);
    }
    power[j] = (with_cosine * with_cosine + with_sine * with_sine) / samples;
}
template <bool fast>
__global__ void periodogram_warp(const float *__restrict__ time, const float *__restrict__ value, float *__restrict__ power, int samples, int frequencies, float step) {
    int j = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (j >= frequencies) return;
    float frequency = (j + 1) * step, with_cosine = 0.f, with_sine = 0.f;
    for (int i = threadIdx.x % 32; i < samples; i += 32) {
        float sine, cosine, cycles = wrapped_cycles(frequency, time[i]);
        if (fast) __sincosf(6.2831853f * cycles, &sine, &cosine);
        else sincospif(2.f * cycles, &sine, &cosine);
        with_cosine = fmaf(value[i], cosine, with_cosine), with_sine = fmaf(value[i], sine, with_sine);
    }
    with_cosine = warp_sum(with_cosine), with_sine = warp_sum(with_sine);
    if (threadIdx.x % 32 == 0) power[j] = (with_cosine * with_cosine + with_sine * with_sine) / samples;
}
// A block of 128 threads for four frequencies: each sample is read once for the four.
__global__ void __launch_bounds__(128) periodogram_block(const float *__restrict__ time, const float *__restrict__ value, float *__restrict__ power, int samples, float step) {
    __shared__ float sums[4][8];
    float sum[8] = {};
    for (int i = threadIdx.x; i < samples; i += 128) {
        float t = time[i], v = value[i];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float sine, cosine;
            sincospif(2.f * wrapped_cycles((blockIdx.x * 4 + k + 1) * step, t), &sine, &cosine);
            sum[2 * k] = fmaf(v, cosine, sum[2 * k]), sum[2 * k + 1] = fmaf(v, sine, sum[2 * k + 1]);
        }
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        float all = warp_sum(sum[k]);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32][k] = all;
    }
    __syncthreads();
    if (threadIdx.x < 4) {
        int k = 2 * threadIdx.x;
        float c = sums[0][k] + sums[1][k] + sums[2][k] + sums[3][k], s = sums[0][k + 1] + sums[1][k + 1] + sums[2][k + 1] + sums[3][k + 1];
        power[blockIdx.x * 4 + threadIdx.x] = (c * c + s * s) / samples;
    }
}

Study uneven("periodogram_thread_per_frequency", "signals", 8192, "power at 4096 frequencies of 8192 samples at uneven times",
    "a thread a frequency: 16 blocks for the whole GPU",
    {{"warp", "a warp a frequency", {"small_grid"}}, {"block", "a block for four frequencies, samples dealt out", {"small_grid"}},
        {"warp_fast", "a warp a frequency, fast sine", {"small_grid", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int frequencies = 4096;
        const float *time = b.random<float>(n, 0, 1000), *value = b.random<float>(n);
        float *power = b.output<float>(frequencies), step = 0.0005f;
        b.tolerance = 1e-3;
        return {{"flawed", launch(periodogram, frequencies / 256, 256, 0, time, value, power, n, frequencies, step)},
            {"warp", launch(periodogram_warp<false>, frequencies / 8, 256, 0, time, value, power, n, frequencies, step)},
            {"block", launch(periodogram_block, frequencies / 4, 128, 0, time, value, power, n, step)},
            {"warp_fast", launch(periodogram_warp<true>, frequencies / 8, 256, 0, time, value, power, n, frequencies, step)}};
    });

// --- peaks of spectra, listed in the order of their frequencies ---

constexpr int BINS = 8192, MOST_PEAKS = 512;

__device__ __forceinline__ bool is_peak(const float *power, int i, float threshold) {
    float here = power[i];
    return here > threshold && (i == 0 || power[i - 1] < here) && (i == BINS - 1 || power[i + 1] <= here);
}
__global__ void __launch_bounds__(256) peaks(const float *power, int *places, int *count, float threshold) {
    __shared__ bool flags[BINS];
    const float *mine = power + static_cast<size_t>(blockIdx.x) * BINS;
    for (int i = threadIdx.x; i < BINS; i += 256) flags[i] = is_peak(mine, i, threshold);
    __syncthreads();
    if (threadIdx.x == 0) {
        int found = 0;
        for (int i = 0; i < BINS; ++i)
            if (flags[i] && found < MOST_PEAKS) places[blockIdx.x * MOST_PEAKS + found++] = i;
        count[blockIdx.x] = found;
    }
}
// Flags as bits, a word a thread; where a word's peaks go is a sum over the words before it.
__global__ void __launch_bounds__(256) peaks_words(const float *__restrict__ power, int *__restrict__ places, int *__restrict__ count, float threshold) {
    __shared__ unsigned words[BINS / 32];
    __shared__ int before[8];
    const float *mine = power + static_cast<size_t>(blockIdx.x) * BINS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 4
    for (int i = threadIdx.x; i < BINS; i += 256) {
        unsigned votes = __ballot_sync(~0u, is_peak(mine, i, threshold));
        if (lane == 0) words[i / 32] = votes;
    }
    __syncthreads();
    unsigned word = words[threadIdx.x];
    int own = __popc(word), sum = own;
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) before[warp] = sum;
    __syncthreads();
    int at = sum - own;
    for (int w = 0; w < warp; ++w) at += before[w];
    if (threadIdx.x == 255) count[blockIdx.x] = min(at + own, MOST_PEAKS);
    for (; word && at < MOST_PEAKS; word &= word - 1) places[blockIdx.x * MOST_PEAKS + at++] = threadIdx.x * 32 + __ffs(word) - 1;
}
// A warp a spectrum: 32 bins at a time, a lane's place is the number of votes below it.
__global__ void __launch_bounds__(128) peaks_warp(const float *__restrict__ power, int *__restrict__ places, int *__restrict__ count, int spectra, float threshold) {
    int lane = threadIdx.x % 32, s = blockIdx.x * 4 + threadIdx.x / 32, found = 0;
    if (s >= spectra) return;
    const float *mine = power + static_cast<size_t>(s) * BINS;
#pragma unroll 8
    for (int i = lane; i < BINS; i += 32) {
        bool peak = is_peak(mine, i, threshold);
        unsigned votes = __ballot_sync(~0u, peak);
        int at = found + __popc(votes & ((1u << lane) - 1));
        if (peak && at < MOST_PEAKS) places[s * MOST_PEAKS + at] = i;
        found += __popc(votes);
    }
    if (lane == 0) count[s] = min(found, MOST_PEAKS);
}

Study peak_lists("peaks_listed_by_one_thread", "signals", 2048, "the peaks of 2048 spectra of 8192 bins, in order",
    "one thread walks over the flags of 8192 bins while 255 wait",
    {{"words", "flags as bits, places by a sum over the block", {"branch_divergence", "workload_imbalance", "instruction_latency"}},
        {"warp", "a warp a spectrum, places by votes", {"branch_divergence", "workload_imbalance", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *power = b.random<float>(n * BINS, 0, 1);
        int *places = b.output<int>(n * MOST_PEAKS), *count = b.output<int>(n);
        float threshold = 0.98f;
        b.tolerance = 0;
        return {{"flawed", launch(peaks, n, 256, 0, power, places, count, threshold)}, {"words", launch(peaks_words, n, 256, 0, power, places, count, threshold)},
            {"warp", launch(peaks_warp, blocks(n, 4), 128, 0, power, places, count, n, threshold)}};
    });

}  // namespace
