// Audio, compression, quantised weights. One flaw a kernel, two fixes or more.
#include "../pairs/pair.cuh"

namespace {

// --- mel spectrum ---

__global__ void mel_dense(const float *power, const float *filters, float *mel, int bins, int bands) {
    int band = threadIdx.x, frame = blockIdx.x;
    float sum = 0.f;
    for (int k = 0; k < bins; k++) sum += power[frame * bins + k] * filters[k * bands + band];
    mel[frame * bands + band] = logf(sum + 1e-6f);
}
__global__ void mel_ranges(const float *__restrict__ power, const float *__restrict__ filters, const int2 *__restrict__ ranges, float *__restrict__ mel, int bins, int bands) {
    int band = threadIdx.x, frame = blockIdx.x;
    int2 r = ranges[band];
    float sum = 0.f;
    for (int k = r.x; k < r.y; ++k) sum += power[frame * bins + k] * filters[k * bands + band];
    mel[frame * bands + band] = logf(sum + 1e-6f);
}
template <int FRAMES>
__global__ void __launch_bounds__(128) mel_frames(const float *__restrict__ power, const float *__restrict__ filters, float *__restrict__ mel, int bins, int bands) {
    __shared__ float rows[FRAMES][516];
    for (int i = threadIdx.x; i < FRAMES * bins; i += 128) rows[i / bins][i % bins] = power[size_t(blockIdx.x) * FRAMES * bins + i];
    __syncthreads();
    float sum[FRAMES] = {};
    for (int k = 0; k < bins; ++k) {
        float f = filters[k * bands + threadIdx.x];
#pragma unroll
        for (int j = 0; j < FRAMES; ++j) sum[j] += rows[j][k] * f;
    }
#pragma unroll
    for (int j = 0; j < FRAMES; ++j) mel[(size_t(blockIdx.x) * FRAMES + j) * bands + threadIdx.x] = logf(sum[j] + 1e-6f);
}

Study mels("mel_filters_dense", "audio", 16384, "128 mel bands of 16384 frames of 513 bins of power",
    "every band goes through all bins, though its filter is zero in most of them; a load of power and filter for each product",
    {{"ranges", "each band goes through the bins of its own range", {"redundant_loads"}}, {"frames", "eight frames a block: a filter's word serves eight products", {"redundant_loads"}}},
    [](Buffers &b, long frames) -> Sides {
        int bins = 513, bands = 128;
        std::vector<float> filters(bins * bands, 0.f);
        std::vector<int> ranges;
        for (int m = 0; m < bands; ++m) {
            auto edge = [](int i) { return 4.0 + 500.0 * (std::exp(i / 45.0) - 1.0) / (std::exp(130 / 45.0) - 1.0); };
            double low = edge(m) - 1.0, middle = edge(m + 1), high = edge(m + 2) + 1.0;
            int first = std::max(0, int(low)), last = std::min(bins, int(high) + 1);
            ranges.push_back(first), ranges.push_back(last);
            for (int k = first; k < last; ++k) filters[k * bands + m] = std::max(0.0, std::min((k - low) / (middle - low), (high - k) / (high - middle)));
        }
        float *f = b.copy(filters), *power = b.random<float>(frames * bins, 0, 2), *mel = b.output<float>(frames * bands);
        int2 *r = (int2 *)b.copy(ranges);
        b.tolerance = 1e-3;
        return {{"flawed", launch(mel_dense, frames, bands, 0, power, f, mel, bins, bands)}, {"ranges", launch(mel_ranges, frames, bands, 0, power, f, r, mel, bins, bands)},
            {"frames", launch(mel_frames<8>, frames / 8, bands, 0, power, f, mel, bins, bands)}};
    });

// --- a bank of recursive filters ---

__global__ void biquads(const float *x, const float *coefficients, float *y, int samples) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float b0 = coefficients[5 * c], b1 = coefficients[5 * c + 1], b2 = coefficients[5 * c + 2], a1 = coefficients[5 * c + 3], a2 = coefficients[5 * c + 4], z1 = 0.f, z2 = 0.f;
    for (int i = 0; i < samples; i++) {
        float in = x[c * samples + i], out = b0 * in + z1;
        z1 = b1 * in - a1 * out + z2;
        z2 = b2 * in - a2 * out;
        y[c * samples + i] = out;
    }
}
__global__ void __launch_bounds__(64) biquads_tiles(const float *__restrict__ x, const float *__restrict__ coefficients, float *__restrict__ y, int samples) {
    __shared__ float tile[64][33];
    int t = threadIdx.x, c = blockIdx.x * 64 + t, lane = t % 32, warp = t / 32;
    float b0 = coefficients[5 * c], b1 = coefficients[5 * c + 1], b2 = coefficients[5 * c + 2], a1 = coefficients[5 * c + 3], a2 = coefficients[5 * c + 4], z1 = 0.f, z2 = 0.f;
    size_t base = size_t(blockIdx.x) * 64 * samples;
    for (int first = 0; first < samples; first += 32) {
#pragma unroll 16
        for (int r = warp; r < 64; r += 2) tile[r][lane] = x[base + r * samples + first + lane];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            float in = tile[t][i], out = b0 * in + z1;
            z1 = b1 * in - a1 * out + z2;
            z2 = b2 * in - a2 * out;
            tile[t][i] = out;
        }
        __syncthreads();
#pragma unroll 16
        for (int r = warp; r < 64; r += 2) y[base + r * samples + first + lane] = tile[r][lane];
        __syncthreads();
    }
}
__global__ void biquads_wide(const float4 *__restrict__ x, const float *__restrict__ coefficients, float4 *__restrict__ y, int quads) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float b0 = coefficients[5 * c], b1 = coefficients[5 * c + 1], b2 = coefficients[5 * c + 2], a1 = coefficients[5 * c + 3], a2 = coefficients[5 * c + 4], z1 = 0.f, z2 = 0.f;
    auto step = [&](float in) {
        float out = b0 * in + z1;
        z1 = b1 * in - a1 * out + z2;
        z2 = b2 * in - a2 * out;
        return out;
    };
    for (int i = 0; i < quads; i += 4) {
        float4 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = x[c * quads + i + k];
#pragma unroll
        for (int k = 0; k < 4; ++k) y[c * quads + i + k] = {step(v[k].x), step(v[k].y), step(v[k].z), step(v[k].w)};
    }
}

Study biquad_banks("biquads_channel_by_thread", "audio", 32768, "recursive filters of second order over 32768 channels of 1024 samples, each channel's samples together",
    "a thread walks a channel: lanes are 4 KiB apart, one sample in flight",
    {{"tiles", "64 channels x 32 samples through padded shared memory", {"uncoalesced_access", "memory_latency"}}, {"wide", "16 samples in four loads ahead of the recursion", {"uncoalesced_access", "memory_latency", "narrow_access"}}},
    [](Buffers &b, long channels) -> Sides {
        int samples = 1024;
        std::vector<float> coefficients;
        for (long c = 0; c < channels; ++c) coefficients.insert(coefficients.end(), {0.2f, 0.1f, 0.05f, -0.5f + c % 10 * 0.05f, 0.2f});
        float *k = b.copy(coefficients), *x = b.random<float>(channels * samples), *y = b.output<float>(channels * samples);
        return {{"flawed", launch(biquads, channels / 64, 64, 0, x, k, y, samples)}, {"tiles", launch(biquads_tiles, channels / 64, 64, 0, x, k, y, samples)},
            {"wide", launch(biquads_wide, channels / 64, 64, 0, (float4 *)x, k, (float4 *)y, samples / 4)}};
    });

// --- reverberation ---

template <int EACH>
__global__ void __launch_bounds__(256) reverberate(const float *__restrict__ x, const float *__restrict__ taps, float *__restrict__ y) {
    constexpr int TAPS = 512;
    __shared__ float window[256 * EACH + TAPS], h[TAPS];
    size_t first = size_t(blockIdx.x) * 256 * EACH;
    for (int i = threadIdx.x; i < 256 * EACH + TAPS - 1; i += 256) window[i] = x[first + i];
    for (int i = threadIdx.x; i < TAPS; i += 256) h[i] = taps[i];
    __syncthreads();
    float sum[EACH] = {};
#pragma unroll 8
    for (int k = 0; k < TAPS; ++k) {
        float f = h[k];
#pragma unroll
        for (int e = 0; e < EACH; ++e) sum[e] += f * window[threadIdx.x + 256 * e + k];
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) y[first + threadIdx.x + 256 * e] = sum[e];
}
__global__ void __launch_bounds__(256) reverberate_sliding(const float *__restrict__ x, const float *__restrict__ taps, float *__restrict__ y) {
    constexpr int TAPS = 512, EACH = 9;  // an odd number of neighbours: no two lanes in one bank
    __shared__ float window[256 * EACH + TAPS];
    __shared__ float4 h[TAPS / 4];
    size_t first = size_t(blockIdx.x) * 256 * EACH;
    for (int i = threadIdx.x; i < 256 * EACH + TAPS - 1; i += 256) window[i] = x[first + i];
    if (threadIdx.x < TAPS / 4) h[threadIdx.x] = reinterpret_cast<const float4 *>(taps)[threadIdx.x];
    __syncthreads();
    const float *mine = window + threadIdx.x * EACH;
    float sum[EACH] = {}, v[EACH + 3];
#pragma unroll
    for (int e = 0; e < EACH - 1; ++e) v[e] = mine[e];
#pragma unroll 4
    for (int k = 0; k < TAPS; k += 4) {
#pragma unroll
        for (int e = 0; e < 4; ++e) v[EACH - 1 + e] = mine[k + EACH - 1 + e];
        float4 f = h[k / 4];
#pragma unroll
        for (int e = 0; e < EACH; ++e) sum[e] += f.x * v[e] + f.y * v[e + 1] + f.z * v[e + 2] + f.w * v[e + 3];
#pragma unroll
        for (int e = 0; e < EACH - 1; ++e) v[e] = v[e + 4];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) window[threadIdx.x * EACH + e] = sum[e];
    __syncthreads();
    for (int i = threadIdx.x; i < 256 * EACH; i += 256) y[first + i] = window[i];
}

Study reverberations("reverb_512_taps_one_output", "audio", 256 * 36 * 512, "4.7 million samples filtered by 512 taps, samples and taps in shared memory",
    "two words of shared memory for each product",
    {{"four", "four outputs a thread: a tap serves four products", {"shared_memory_bandwidth"}}, {"sliding", "nine neighbouring outputs a thread, samples slide through registers", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n + 1024), *taps = b.random<float>(512), *y = b.output<float>(n);
        return {{"flawed", launch(reverberate<1>, n / 256, 256, 0, x, taps, y)}, {"four", launch(reverberate<4>, n / 1024, 256, 0, x, taps, y)},
            {"sliding", launch(reverberate_sliding, n / 2304, 256, 0, x, taps, y)}};
    });

// --- sample rate conversion ---

__device__ float kernel_at(float t) {  // sinc under a Hann window of 32 samples to both sides
    if (fabsf(t) >= 32.f) return 0.f;
    float s = t == 0.f ? 1.f : sinf(3.14159265f * t) / (3.14159265f * t);
    return s * (0.5f + 0.5f * cosf(3.14159265f * t / 32.f));
}
__global__ void resample(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int first = (i / 160) * 147 + (i % 160) * 147 / 160;
    float phase = (i % 160) * 147 % 160 / 160.f, sum = 0.f;
    for (int k = 0; k < 64; k++) sum += x[first + k] * kernel_at(k - 31 - phase);
    y[i] = sum;
}
__global__ void resample_table(const float *__restrict__ x, const float *__restrict__ table, float *__restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int first = (i / 160) * 147 + (i % 160) * 147 / 160, phase = (i % 160) * 147 % 160;
    float sum = 0.f;
#pragma unroll 8
    for (int k = 0; k < 64; ++k) sum += x[first + k] * table[k * 160 + phase];
    y[i] = sum;
}
__global__ void __launch_bounds__(160) resample_phases(const float *__restrict__ x, const float *__restrict__ table, float *__restrict__ y) {
    __shared__ float window[147 * 16 + 64];  // a thread a phase, its taps in registers, 16 outputs
    int phase = threadIdx.x * 147 % 160, first = threadIdx.x * 147 / 160;
    size_t block = size_t(blockIdx.x) * 16;
    float h[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) h[k] = table[k * 160 + phase];
    for (int i = threadIdx.x; i < 147 * 16 + 64; i += 160) window[i] = x[block * 147 + i];
    __syncthreads();
    for (int r = 0; r < 16; ++r) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 64; ++k) sum += window[r * 147 + first + k] * h[k];
        y[(block + r) * 160 + threadIdx.x] = sum;
    }
}

Study resamplings("resample_sinc_each_tap", "audio", 160 * 16 * 2048, "sound from 44.1 to 48 kHz by a windowed sinc of 64 taps, 5.2 million samples",
    "each tap of each sample takes a sine, a cosine and a division, though there are only 160 phases",
    {{"table", "a table of the 160 phases", {"expensive_math"}}, {"phases", "a thread a phase with its 64 taps in registers, samples in shared memory", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> host(64 * 160);
        for (int k = 0; k < 64; ++k)
            for (int p = 0; p < 160; ++p) {
                double t = k - 31 - p / 160.0, pi = 3.141592653589793;
                host[k * 160 + p] = std::fabs(t) >= 32 ? 0.0 : (t == 0 ? 1.0 : std::sin(pi * t) / (pi * t)) * (0.5 + 0.5 * std::cos(pi * t / 32));
            }
        float *table = b.copy(host), *x = b.random<float>(n + 4096), *y = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(resample, n / 256, 256, 0, x, y, n)}, {"table", launch(resample_table, n / 256, 256, 0, x, table, y, n)},
            {"phases", launch(resample_phases, n / 2560, 160, 0, x, table, y)}};
    });

// --- Rice codes: which parameter costs least ---

__global__ void __launch_bounds__(128) rice(const int *x, int *best, int each) {
    __shared__ int bits[16];
    if (threadIdx.x < 16) bits[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) {
        int sum = 0;
        for (int i = threadIdx.x; i < each; i += 128) {
            int v = x[blockIdx.x * each + i];
            unsigned u = v << 1 ^ v >> 31;
            sum += 1 + k + (u >> k);
        }
        atomicAdd(&bits[k], sum);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int least = 0;
        for (int k = 1; k < 16; k++)
            if (bits[k] < bits[least]) least = k;
        best[blockIdx.x] = bits[least] * 16 + least;
    }
}
template <bool WIDE>
__global__ void __launch_bounds__(128) rice_once(const int *__restrict__ x, int *__restrict__ best, int each) {
    __shared__ int bits[16];
    if (threadIdx.x < 16) bits[threadIdx.x] = 0;
    __syncthreads();
    int sum[16] = {};
    auto count = [&](int v) {
        unsigned u = v << 1 ^ v >> 31;
#pragma unroll
        for (int k = 0; k < 16; ++k) sum[k] += 1 + k + (u >> k);
    };
    if (WIDE) {
        const int4 *from = reinterpret_cast<const int4 *>(x + size_t(blockIdx.x) * each);
#pragma unroll 2
        for (int i = threadIdx.x; i < each / 4; i += 128) {
            int4 v = from[i];
            count(v.x), count(v.y), count(v.z), count(v.w);
        }
    } else
        for (int i = threadIdx.x; i < each; i += 128) count(x[size_t(blockIdx.x) * each + i]);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        int s = __reduce_add_sync(~0u, sum[k]);
        if (threadIdx.x % 32 == 0) atomicAdd(&bits[k], s);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int least = 0;
        for (int k = 1; k < 16; ++k)
            if (bits[k] < bits[least]) least = k;
        best[blockIdx.x] = bits[least] * 16 + least;
    }
}

Study rices("rice_parameter_16_sweeps", "compression", 8192, "cheapest of 16 Rice parameters for 8192 blocks of 4096 residues",
    "the block is read again for each parameter",
    {{"once", "one sweep with 16 sums", {"redundant_loads"}}, {"wide", "one sweep with 16 sums, four residues a load", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long blocks) -> Sides {
        int each = 4096;
        int *x = b.random<int>(blocks * each, -900, 900), *best = b.output<int>(blocks);
        b.tolerance = 1e-9;
        return {{"flawed", launch(rice, blocks, 128, 0, x, best, each)}, {"once", launch(rice_once<false>, blocks, 128, 0, x, best, each)}, {"wide", launch(rice_once<true>, blocks, 128, 0, x, best, each)}};
    });

// --- Huffman codes ---

__global__ void huffman(const unsigned *bits, const int *tree, unsigned char *out, int chunks, int symbols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, at = 0;  // tree: two children a node; below zero: a symbol
    for (int i = 0; i < symbols; i++) {
        int node = 0;
        while (node >= 0) {
            node = tree[2 * node + (bits[at / 32 * chunks + c] >> at % 32 & 1)];
            at++;
        }
        out[i * chunks + c] = ~node;
    }
}
__global__ void __launch_bounds__(128) huffman_shared(const unsigned *__restrict__ bits, const int *__restrict__ tree, unsigned char *__restrict__ out, int chunks, int symbols) {
    __shared__ int nodes[512];
    for (int i = threadIdx.x; i < 510; i += 128) nodes[i] = tree[i];
    __syncthreads();
    int c = blockIdx.x * 128 + threadIdx.x, word = 0, left = 0;
    unsigned buffer = 0;
    for (int i = 0; i < symbols; ++i) {
        int node = 0;
        while (node >= 0) {
            if (left == 0) buffer = bits[word++ * chunks + c], left = 32;
            node = nodes[2 * node + (buffer & 1)];
            buffer >>= 1, --left;
        }
        out[i * chunks + c] = ~node;
    }
}
__global__ void __launch_bounds__(128) huffman_table(const unsigned *__restrict__ bits, const unsigned short *__restrict__ table, unsigned char *__restrict__ out, int chunks, int symbols) {
    __shared__ unsigned short codes[4096];  // symbol and length by the next twelve bits
    for (int i = threadIdx.x; i < 4096; i += 128) codes[i] = table[i];
    __syncthreads();
    int c = blockIdx.x * 128 + threadIdx.x, word = 2, at = 0;
    unsigned low = bits[c], high = bits[chunks + c];
    for (int i = 0; i < symbols; ++i) {
        unsigned code = codes[__funnelshift_r(low, high, at) & 4095];
        out[i * chunks + c] = code & 255;
        at += code >> 8;
        if (at >= 32) at -= 32, low = high, high = bits[word++ * chunks + c];
    }
}

Study huffmans("huffman_bit_by_bit", "compression", 1 << 18, "262144 streams of 64 symbols of a Huffman code of 256 symbols",
    "each bit waits for its word and for the node before it, both from global memory",
    {{"shared", "the tree in shared memory, the word in a register", {"memory_latency"}}, {"table", "a symbol a step by a table of twelve bits", {"memory_latency", "branch_divergence"}}},
    [](Buffers &b, long chunks) -> Sides {
        int symbols = 64, words = 28, leaves = 1;  // a random full tree of 256 leaves, at most 12 deep
        std::vector<int> tree{~0, ~0};
        std::vector<std::pair<int, int>> open{{0, 1}, {1, 1}};  // places of leaves and their depth
        unsigned draw = 1;
        for (leaves = 2; leaves < 256; ++leaves) {
            size_t k;
            do k = (draw = hash(draw)) % open.size();
            while (open[k].second >= 12);
            int node = tree.size() / 2, depth = open[k].second + 1;
            tree[open[k].first] = node;
            tree.push_back(~0), tree.push_back(~0);
            open[k] = {2 * node, depth}, open.push_back({2 * node + 1, depth});
        }
        for (size_t k = 0; k < open.size(); ++k) tree[open[k].first] = ~int(k);
        std::vector<unsigned> table(2048);
        auto *half = reinterpret_cast<unsigned short *>(table.data());
        for (int bits = 0; bits < 4096; ++bits) {
            int node = 0, length = 0;
            while (node >= 0) node = tree[2 * node + (bits >> length++ & 1)];
            half[bits] = static_cast<unsigned short>(~node | length << 8);
        }
        auto *t = (unsigned short *)b.copy(table);
        int *nodes = b.copy(tree);
        auto *bits = b.random<unsigned>(chunks * words, 0, 4294967295.0);
        auto *out = b.output<unsigned char>(chunks * symbols);
        b.tolerance = 1e-9;
        return {{"flawed", launch(huffman, chunks / 128, 128, 0, bits, nodes, out, chunks, symbols)}, {"shared", launch(huffman_shared, chunks / 128, 128, 0, bits, nodes, out, chunks, symbols)},
            {"table", launch(huffman_table, chunks / 128, 128, 0, bits, t, out, chunks, symbols)}};
    });

// --- JPEG: dequantised in zigzag order, then lifted rows and columns ---

__constant__ unsigned char zigzag[64] = {0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57,
    50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
__device__ constexpr unsigned char zigzag_known[64] = {0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57,
    50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

template <typename Get, typename Set>
__device__ __forceinline__ void hadamard(Get get, Set set) {  // of eight values
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = get(k);
#pragma unroll
    for (int d = 1; d < 8; d *= 2)
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (!(k & d)) {
                float a = v[k], c = v[k | d];
                v[k] = a + c, v[k | d] = a - c;
            }
#pragma unroll
    for (int k = 0; k < 8; ++k) set(k, v[k]);
}
__global__ void __launch_bounds__(128) dezigzag(const short *x, const float *steps, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[64];
#pragma unroll 1
    for (int k = 0; k < 64; k++) v[zigzag[k]] = x[k * n + i] * steps[k];
#pragma unroll 1
    for (int r = 0; r < 8; r++) hadamard([&](int k) { return v[8 * r + k]; }, [&](int k, float f) { v[8 * r + k] = f; });
#pragma unroll 1
    for (int c = 0; c < 8; c++) hadamard([&](int k) { return v[8 * k + c]; }, [&](int k, float f) { y[(8 * k + c) * n + i] = f; });
}
__global__ void __launch_bounds__(128) dezigzag_registers(const short *__restrict__ x, const float *__restrict__ steps, float *__restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) v[zigzag_known[k]] = x[k * n + i] * steps[k];
#pragma unroll
    for (int r = 0; r < 8; ++r) hadamard([&](int k) { return v[8 * r + k]; }, [&](int k, float f) { v[8 * r + k] = f; });
#pragma unroll
    for (int c = 0; c < 8; ++c) hadamard([&](int k) { return v[8 * k + c]; }, [&](int k, float f) { y[(8 * k + c) * n + i] = f; });
}
__global__ void __launch_bounds__(128) dezigzag_shared(const short *__restrict__ x, const float *__restrict__ steps, float *__restrict__ y, int n) {
    extern __shared__ float all[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *v = all + threadIdx.x;
#pragma unroll 8
    for (int k = 0; k < 64; ++k) v[zigzag[k] * 128] = x[k * n + i] * steps[k];
#pragma unroll 1
    for (int r = 0; r < 8; ++r) hadamard([&](int k) { return v[(8 * r + k) * 128]; }, [&](int k, float f) { v[(8 * r + k) * 128] = f; });
#pragma unroll 1
    for (int c = 0; c < 8; ++c) hadamard([&](int k) { return v[(8 * k + c) * 128]; }, [&](int k, float f) { y[(8 * k + c) * n + i] = f; });
}

Study dezigzags("zigzag_local_block", "compression", 1 << 19, "half a million blocks of 8 x 8 coefficients out of zigzag order, dequantised and transformed",
    "a thread's block is an array indexed by a table: local memory",
    {{"registers", "all loops unrolled, indices known: registers", {"local_memory"}}, {"shared", "a column of shared memory a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> host(n * 32);
        for (size_t i = 0; i < host.size(); ++i) host[i] = hash(i) & 0x007f007f;
        auto *x = (short *)b.copy(host);
        float *steps = b.random<float>(64, 1, 20), *y = b.output<float>(n * 64);
        return {{"flawed", launch(dezigzag, n / 128, 128, 0, x, steps, y, n)}, {"registers", launch(dezigzag_registers, n / 128, 128, 0, x, steps, y, n)},
            {"shared", launch(dezigzag_shared, n / 128, 128, 64 * 128 * 4, x, steps, y, n)}};
    });

// --- lifting wavelet of rows ---

__global__ void __launch_bounds__(256) lift(float *x) {
    constexpr int n = 2048;
    float *row = x + size_t(blockIdx.x) * n;
    for (int level = 1; level < n / 4; level *= 2) {
        for (int i = threadIdx.x; i < n / 2 / level; i += 256) {
            int odd = (2 * i + 1) * level, right = odd + level < n ? odd + level : odd - level;
            row[odd] -= 0.5f * (row[odd - level] + row[right]);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n / 2 / level; i += 256) {
            int even = 2 * i * level, left = i ? even - level : even + level;
            row[even] += 0.25f * (row[left] + row[even + level]);
        }
        __syncthreads();
    }
}
template <bool SKEWED>
__global__ void __launch_bounds__(256) lift_shared(float *x) {
    constexpr int n = 2048;
    __shared__ float row[n + n / 32];
    auto at = [](int i) { return SKEWED ? i + i / 32 : i; };
    float *mine = x + size_t(blockIdx.x) * n;
    for (int i = threadIdx.x; i < n; i += 256) row[at(i)] = mine[i];
    __syncthreads();
    for (int level = 1; level < n / 4; level *= 2) {
        for (int i = threadIdx.x; i < n / 2 / level; i += 256) {
            int odd = (2 * i + 1) * level, right = odd + level < n ? odd + level : odd - level;
            row[at(odd)] -= 0.5f * (row[at(odd - level)] + row[at(right)]);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n / 2 / level; i += 256) {
            int even = 2 * i * level, left = i ? even - level : even + level;
            row[at(even)] += 0.25f * (row[at(left)] + row[at(even + level)]);
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += 256) mine[i] = row[at(i)];
}

Study lifts("wavelet_lifting_in_global", "compression", 16384, "nine levels of a 5/3 wavelet by lifting, 16384 rows of 2048 floats in place",
    "each of the 18 passes reads and writes the row in global memory, lanes ever farther apart",
    {{"shared", "the row in shared memory for all levels", {"uncoalesced_access", "redundant_loads"}}, {"skewed", "the same with a skew against bank conflicts", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long rows) -> Sides {
        float *initial = b.random<float>(rows * 2048), *x = b.changed(initial, rows * 2048);
        return {{"flawed", launch(lift, rows, 256, 0, x)}, {"shared", launch(lift_shared<false>, rows, 256, 0, x)}, {"skewed", launch(lift_shared<true>, rows, 256, 0, x)}};
    });

}  // namespace
