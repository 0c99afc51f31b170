// Spectrometers, molecules, neutrons, speech, sensors and ratings.
#include <cmath>

#include <cuda_bf16.h>
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- counts of a spectrometer as radiances ---

// Of a detector: its dark count, its gain, how far it bends.
template <typename Number>
struct Detectors {
    const Number *dark, *gain, *bend;
};

__global__ void radiances(const unsigned short *counts, const Detectors<double> detectors, __half *out, int wide, int total) {
    const int jump = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += jump) {
        const int d = i % wide;
        const double raw = (counts[i] - detectors.dark[d]) * detectors.gain[d];
        out[i] = __double2half(fmax(raw / (1.0 + detectors.bend[d] * raw), 0.0));
    }
}
__device__ __forceinline__ __half radiance(unsigned short count, float dark, float gain, float bend) {
    const float raw = (count - dark) * gain;
    return __float2half_rn(fmaxf(__fdividef(raw, 1.0f + bend * raw), 0.0f));
}
__global__ void radiances_single(const unsigned short *__restrict__ counts, const Detectors<float> detectors, __half *__restrict__ out, int wide) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= wide) return;
    const int i = blockIdx.y * wide + d;
    out[i] = radiance(counts[i], detectors.dark[d], detectors.gain[d], detectors.bend[d]);
}
struct alignas(8) Quad {
    __half of[4];
};
__global__ void radiances_quads(const ushort4 *__restrict__ counts, const Detectors<float4> detectors, Quad *__restrict__ out, int wide) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= wide) return;
    const float4 dark = detectors.dark[d], gain = detectors.gain[d], bend = detectors.bend[d];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const int i = (blockIdx.y * 3 + k) * wide + d;
        const ushort4 c = counts[i];
        out[i] = {radiance(c.x, dark.x, gain.x, bend.x), radiance(c.y, dark.y, gain.y, bend.y), radiance(c.z, dark.z, gain.z, bend.z), radiance(c.w, dark.w, gain.w, bend.w)};
    }
}

Study spectrometer("radiances_of_detectors_in_doubles", "spectroscopy", 12000, "12000 lines of 1480 counts of 16 bits as radiances in half precision, by three numbers of each detector",
    "all arithmetic in double precision",
    {{"single", "single precision, detectors from the grid", {"double_precision", "integer_arithmetic"}}, {"quads", "single precision, four detectors of three lines a thread", {"double_precision", "integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int wide = 1480, total = static_cast<int>(n) * wide;
        Detectors<double> doubles = {};
        Detectors<float> floats = {};
        for (int which = 0; which < 3; which++) {
            std::vector<double> numbers(wide);
            for (int d = 0; d < wide; d++) {
                const double any = hash(d + 4000 * which) / 4294967296.0;
                numbers[d] = which == 0 ? 40.0 + 20.0 * any : which == 1 ? 0.009 + 0.002 * any : 1e-4 * any;
            }
            const std::vector<float> rounded(numbers.begin(), numbers.end());
            (which == 0 ? doubles.dark : which == 1 ? doubles.gain : doubles.bend) = b.copy(numbers);
            (which == 0 ? floats.dark : which == 1 ? floats.gain : floats.bend) = b.copy(rounded);
        }
        std::vector<unsigned short> list(total);
        for (int i = 0; i < total; i++) list[i] = static_cast<unsigned short>(20 + hash(i) % 50000);
        const unsigned short *counts = b.copy(list);
        __half *out = b.output<__half>(total);
        const auto quads = [](const float *p) { return reinterpret_cast<const float4 *>(p); };
        const Detectors<float4> fours = {quads(floats.dark), quads(floats.gain), quads(floats.bend)};
        b.tolerance = 2e-3;
        return {{"flawed", launch(radiances, 8 * multiprocessors(), 256, 0, counts, doubles, out, wide, total)}, {"single", launch(radiances_single, dim3(blocks(wide, 256), n), 256, 0, counts, floats, out, wide)},
            {"quads", launch(radiances_quads, dim3(blocks(wide / 4, 128), n / 3), 128, 0, reinterpret_cast<const ushort4 *>(counts), fours, reinterpret_cast<Quad *>(out), wide / 4)}};
    });

// --- energies of atoms by a network of five layers of 52 neurons ---

constexpr int WIDE = 52, DEEP = 5, FEATURES = 8, CREW = 96;

// Weights as they were written down after training: of offsets, of layers, of the sum.
__host__ __device__ constexpr float weight(unsigned which) { return static_cast<float>(which * 2654435761u >> 21) * 0.0001953125f - 0.18f; }
constexpr int LAYERS_FROM = WIDE, SUM_FROM = WIDE + DEEP * WIDE * WIDE;
__constant__ float layers[DEEP][WIDE][WIDE];

__device__ __forceinline__ float leaked(float x) { return fmaxf(x, 0.05f * x); }
// Neurons begin with one feature each; the result is their weighted sum.
__device__ __forceinline__ void entered(const float *features, int atoms, int i, float *to) {
#pragma unroll
    for (int k = 0; k < WIDE; k++) to[k] = leaked(features[k % FEATURES * atoms + i] + weight(k));
}
__device__ __forceinline__ float summed(const float *from) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < WIDE; k++) sum += weight(SUM_FROM + k) * from[k];
    return sum;
}
template <int Layer>
__device__ __forceinline__ float through(const float (&from)[WIDE]) {
    if constexpr (Layer == DEEP) {
        return summed(from);
    } else {
        float to[WIDE];
#pragma unroll
        for (int o = WIDE - 1; o >= 0; o--) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < WIDE; k++) sum += weight(LAYERS_FROM + (Layer * WIDE + o) * WIDE + k) * from[k];
            to[o] = leaked(sum);
        }
        return through<Layer + 1>(to);
    }
}
__global__ void __launch_bounds__(CREW, 4) energies(const float *__restrict__ features, float *__restrict__ out, int atoms) {
    const int i = blockIdx.x * CREW + threadIdx.x;
    float first[WIDE];
    entered(features, atoms, i, first);
    out[i] = through<0>(first);
}
// A loop over layers and neurons; what neurons say goes by way of shared memory.
__global__ void __launch_bounds__(CREW) energies_looped(const float *__restrict__ features, float *__restrict__ out, int atoms) {
    __shared__ float said[WIDE][CREW];
    const int i = blockIdx.x * CREW + threadIdx.x, t = threadIdx.x;
    float own[WIDE];
    entered(features, atoms, i, own);
#pragma unroll 1
    for (int layer = 0; layer < DEEP; layer++) {
#pragma unroll 1
        for (int o = 0; o < WIDE; o += 4) {
            float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int k = 0; k < WIDE; k++)
#pragma unroll
                for (int r = 0; r < 4; r++) sums[r] += layers[layer][o + r][k] * own[k];
#pragma unroll
            for (int r = 0; r < 4; r++) said[o + r][t] = leaked(sums[r]);
        }
#pragma unroll
        for (int k = 0; k < WIDE; k++) own[k] = said[k][t];
    }
    out[i] = summed(own);
}

Study molecules("atom_energies_with_weights_in_the_code", "quantum chemistry", 480000, "energies of 480000 atoms by a network of five layers of 52 neurons",
    "all weights are numbers in the code: 13520 products, each an instruction of its own",
    {{"looped", "layers and neurons as loops, their weights in constant memory", {"instruction_cache"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> numbers(DEEP * WIDE * WIDE);
        for (unsigned k = 0; k < numbers.size(); k++) numbers[k] = weight(LAYERS_FROM + k);
        CHECK(cudaMemcpyToSymbol(layers, numbers.data(), sizeof layers));
        const float *features = b.random<float>(FEATURES * n);
        float *out = b.output<float>(n);
        const int atoms = static_cast<int>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(energies, atoms / CREW, CREW, 0, features, out, atoms)}, {"looped", launch(energies_looped, atoms / CREW, CREW, 0, features, out, atoms)}};
    });

// --- cross sections of neutrons from a table ---

constexpr int ENTRIES = 40000;

template <typename Entry, int Crew>
__global__ void __launch_bounds__(Crew) cross_sections(const float *energies, const float *table, float *out, int count) {
    extern __shared__ __align__(16) unsigned char room[];
    Entry *entries = reinterpret_cast<Entry *>(room);
    for (int k = threadIdx.x; k < ENTRIES; k += Crew) entries[k] = static_cast<Entry>(table[k]);
    __syncthreads();
    int i = blockIdx.x * Crew + threadIdx.x;
    while (i < count) {
        const float place = energies[i] * (ENTRIES - 1);
        const int low = min(static_cast<int>(place), ENTRIES - 2);
        const float here = static_cast<float>(entries[low]), next = static_cast<float>(entries[low + 1]);
        out[i] = here + (place - static_cast<float>(low)) * (next - here);
        i += gridDim.x * Crew;
    }
}

Study neutrons("cross_sections_table_for_six_warps", "nuclear engineering", 14000000, "cross sections of 14 million neutrons between entries of a table of 40000",
    "a block of 192 threads keeps 156 KiB in shared memory: six warps a multiprocessor",
    {{"crew", "a block of 960 threads", {"low_occupancy"}}, {"halves", "the table in half precision, two blocks of 384 threads", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> list(ENTRIES);
        for (int k = 0; k < ENTRIES; k++) list[k] = 2.0f + std::sin(0.01f * k) + 20.0f / (1.0f + 0.01f * k);
        const float *energies = b.random<float>(n, 0.0, 1.0), *table = b.copy(list);
        float *out = b.output<float>(n);
        const int count = static_cast<int>(n), all = multiprocessors();
        b.tolerance = 2e-3;
        return {{"flawed", launch(cross_sections<float, 192>, all, 192, ENTRIES * sizeof(float), energies, table, out, count)}, {"crew", launch(cross_sections<float, 960>, all, 960, ENTRIES * sizeof(float), energies, table, out, count)},
            {"halves", launch(cross_sections<__half, 384>, 2 * all, 384, ENTRIES * sizeof(__half), energies, table, out, count)}};
    });

// --- which entry of a codebook a frame of speech is nearest to ---

constexpr int COORDINATES = 20, BOOK = 96;

template <int Frames>
__global__ void __launch_bounds__(160) quantised(const float *speech, const float *book, const float *halved, int *nearest, int count) {
    __shared__ float codes[COORDINATES][BOOK], square[BOOK];
    for (int k = threadIdx.x; k < COORDINATES * BOOK; k += 160) codes[k / BOOK][k % BOOK] = book[k];
    if (threadIdx.x < BOOK) square[threadIdx.x] = halved[threadIdx.x];
    __syncthreads();
    const int first = blockIdx.x * 160 * Frames + threadIdx.x;
    float frame[Frames][COORDINATES], best[Frames];
    int which[Frames];
#pragma unroll
    for (int f = 0; f < Frames; f++) {
        best[f] = -1e30f, which[f] = 0;
#pragma unroll
        for (int c = 0; c < COORDINATES; c++) frame[f][c] = speech[static_cast<long long>(c) * count + min(first + 160 * f, count - 1)];
    }
    int code = BOOK;
#pragma unroll 1
    while (code-- > 0) {
        float near[Frames];
#pragma unroll
        for (int f = 0; f < Frames; f++) near[f] = -square[code];
#pragma unroll
        for (int c = 0; c < COORDINATES; c++) {
            const float value = codes[c][code];
#pragma unroll
            for (int f = 0; f < Frames; f++) near[f] = fmaf(value, frame[f][c], near[f]);
        }
#pragma unroll
        for (int f = 0; f < Frames; f++)
            if (near[f] > best[f]) best[f] = near[f], which[f] = code;
    }
#pragma unroll
    for (int f = 0; f < Frames; f++)
        if (first + 160 * f < count) nearest[first + 160 * f] = which[f];
}

Study speech("speech_frames_nearest_codes_a_frame_a_thread", "speech", 2000000, "the nearest of 96 codes for two million frames of 20 coordinates",
    "each coordinate of a code is read from shared memory for one product",
    {{"four", "four frames a thread", {"shared_memory_bandwidth"}}, {"two", "two frames a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> book(COORDINATES * BOOK), halved(BOOK, 0.0f);
        for (int k = 0; k < COORDINATES * BOOK; k++) {
            book[k] = hash(k + 31) / 2147483648.0f - 1.0f;
            halved[k % BOOK] += 0.5f * book[k] * book[k];
        }
        const float *frames = b.random<float>(COORDINATES * n), *codes = b.copy(book), *squares = b.copy(halved);
        int *nearest = b.output<int>(n);
        const int count = static_cast<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(quantised<1>, blocks(n, 160), 160, 0, frames, codes, squares, nearest, count)}, {"four", launch(quantised<4>, blocks(n, 640), 160, 0, frames, codes, squares, nearest, count)},
            {"two", launch(quantised<2>, blocks(n, 320), 160, 0, frames, codes, squares, nearest, count)}};
    });

// --- what sensors saw ---

using Whole = unsigned long long;

struct Seen {
    Whole sum, squares;
    unsigned most;
    __device__ __forceinline__ void take(unsigned pair) {
        const unsigned low = pair & 0xffffu, high = pair >> 16;
        sum += low + high;
        squares += static_cast<Whole>(low) * low;
        squares += static_cast<Whole>(high) * high;
        most = max(most, max(low, high));
    }
    __device__ __forceinline__ void merge(const Seen &other) {
        sum += other.sum, squares += other.squares;
        most = max(most, other.most);
    }
};
// What a block saw between `from` and `to`, for its first thread.
__device__ __forceinline__ Seen seen_between(const uint4 *from, const uint4 *to) {
    __shared__ Seen parts[512];
    Seen own = {0, 0, 0};
#pragma unroll 2
    for (const uint4 *at = from + threadIdx.x; at < to; at += 512) {
        const uint4 eight = *at;
        own.take(eight.x), own.take(eight.y), own.take(eight.z), own.take(eight.w);
    }
    parts[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = 256; half > 0; half >>= 1) {
        if (threadIdx.x < half) parts[threadIdx.x].merge(parts[threadIdx.x + half]);
        __syncthreads();
    }
    return parts[0];
}
__global__ void __launch_bounds__(512) sensors(const uint4 *samples, Whole *out, int each) {
    const uint4 *own = samples + static_cast<long long>(blockIdx.x) * each;
    const Seen seen = seen_between(own, own + each);
    if (threadIdx.x == 0) {
        Whole *to = out + 3 * blockIdx.x;
        to[0] = seen.sum, to[1] = seen.squares, to[2] = seen.most;
    }
}
__global__ void __launch_bounds__(512) sensors_slices(const uint4 *samples, Whole *out, int each) {
    const int slice = (each + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * slice;
    const uint4 *own = samples + static_cast<long long>(blockIdx.y) * each;
    const Seen seen = seen_between(own + begin, own + min(begin + slice, each));
    if (threadIdx.x == 0) {
        Whole *to = out + 3 * blockIdx.y;
        atomicAdd(to, seen.sum), atomicAdd(to + 1, seen.squares), atomicMax(to + 2, static_cast<Whole>(seen.most));
    }
}

Study watched("sensors_summed_a_block_each", "instruments", 28, "sum, squares and maximum of 2096640 samples of each of 28 sensors",
    "a block a sensor: 28 blocks on 132 multiprocessors",
    {{"slices", "36 blocks a sensor, joined by atomics", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const int each = 262080;  // of eight samples
        const uint4 *samples = reinterpret_cast<const uint4 *>(b.random<unsigned>(4 * n * each, 0.0, 4294967295.0));
        Whole *out = b.output<Whole>(3 * n, true);
        b.tolerance = 0.0;
        return {{"flawed", launch(sensors, n, 512, 0, samples, out, each)}, {"slices", launch(sensors_slices, dim3(36, n), 512, 0, samples, out, each)}};
    });

// --- what users would say of items ---

constexpr int TRAITS = 320, USERS = 128, ITEMS = 64;  // the latter two: of a block

using Short = __nv_bfloat16;

__global__ void __launch_bounds__(256) ratings(const Short *users, const Short *items, float *out, int all) {
    __shared__ float u[16][USERS + 4], v[16][ITEMS + 4];
    const int t = threadIdx.x, column = t & 15, row = t >> 4;
    const Short *from = users + static_cast<long long>(blockIdx.y * USERS + (t >> 1)) * TRAITS + (t & 1) * 8;
    const Short *other = items + static_cast<long long>(blockIdx.x * ITEMS + (t >> 2)) * TRAITS + (t & 3) * 4;
    float sums[8][4] = {};
    for (int k = 0; k < TRAITS; k += 16) {
        const uint4 eight = *reinterpret_cast<const uint4 *>(from + k);
        const uint2 four = *reinterpret_cast<const uint2 *>(other + k);
        const unsigned words[6] = {eight.x, eight.y, eight.z, eight.w, four.x, four.y};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u[(t & 1) * 8 + 2 * i][t >> 1] = __uint_as_float(words[i] << 16);
            u[(t & 1) * 8 + 2 * i + 1][t >> 1] = __uint_as_float(words[i] & 0xffff0000u);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            v[(t & 3) * 4 + 2 * i][t >> 2] = __uint_as_float(words[4 + i] << 16);
            v[(t & 3) * 4 + 2 * i + 1][t >> 2] = __uint_as_float(words[4 + i] & 0xffff0000u);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++) {
            float a[8], c[4];
#pragma unroll
            for (int i = 0; i < 8; i++) a[i] = u[j][row * 8 + i];
#pragma unroll
            for (int i = 0; i < 4; i++) c[i] = v[j][column * 4 + i];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int h = 0; h < 4; h++) sums[i][h] += a[i] * c[h];
        }
        __syncthreads();
    }
    const int quads = all / 4;
    float4 *corner = reinterpret_cast<float4 *>(out) + static_cast<long long>(blockIdx.y * USERS + row * 8) * quads + blockIdx.x * (ITEMS / 4) + column;
#pragma unroll
    for (int i = 0; i < 8; i++) corner[i * quads] = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}
__global__ void __launch_bounds__(256) ratings_fragments(const Short *users, const Short *items, float *out, int all) {
    using namespace nvcuda;
    constexpr int DEPTH = 32, PITCH = DEPTH + 8;
    __shared__ __align__(32) Short u[USERS * PITCH], v[ITEMS * PITCH];
    const int t = threadIdx.x, warp = t / 32, down = warp / 2 * 32, across = warp % 2 * 32;
    const Short *from = users + static_cast<long long>(blockIdx.y * USERS) * TRAITS, *other = items + static_cast<long long>(blockIdx.x * ITEMS) * TRAITS;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (int i = 0; i < 4; i++) wmma::fill_fragment(sums[i / 2][i % 2], 0.0f);
    for (int k = 0; k < TRAITS; k += DEPTH) {
        for (int i = t; i < USERS * 4; i += 256) *reinterpret_cast<uint4 *>(u + i / 4 * PITCH + i % 4 * 8) = *reinterpret_cast<const uint4 *>(from + i / 4 * TRAITS + k + i % 4 * 8);
        for (int i = t; i < ITEMS * 4; i += 256) *reinterpret_cast<uint4 *>(v + i / 4 * PITCH + i % 4 * 8) = *reinterpret_cast<const uint4 *>(other + i / 4 * TRAITS + k + i % 4 * 8);
        __syncthreads();
#pragma unroll
        for (int step = 0; step < DEPTH; step += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, Short, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, Short, wmma::col_major> c[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(a[i], u + (down + 16 * i) * PITCH + step, PITCH);
                wmma::load_matrix_sync(c[i], v + (across + 16 * i) * PITCH + step, PITCH);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) wmma::mma_sync(sums[i / 2][i % 2], a[i / 2], c[i % 2], sums[i / 2][i % 2]);
        }
        __syncthreads();
    }
    float *corner = out + static_cast<long long>(blockIdx.y * USERS + down) * all + blockIdx.x * ITEMS + across;
#pragma unroll
    for (int i = 0; i < 4; i++) wmma::store_matrix_sync(corner + static_cast<long long>(i / 2 * 16) * all + i % 2 * 16, sums[i / 2][i % 2], all, wmma::mem_row_major);
}

Study rated("user_item_scores_of_bfloats_as_floats", "recommenders", 3072, "scores of 4096 items for 3072 users from 320 traits in bfloat16",
    "traits are widened to floats in shared memory and multiplied on the FMA pipe",
    {{"fragments", "tensor cores with the same tiles of 128 x 64", {"tensor_cores_idle", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const int all = 4096;
        const auto traits = [&](long rows, unsigned seed) {
            std::vector<Short> list(rows * TRAITS);
            for (size_t i = 0; i < list.size(); i++) list[i] = __float2bfloat16(static_cast<float>(hash(static_cast<unsigned>(i) + seed) % 256) / 128.0f - 0.9f);
            return b.copy(list);
        };
        const Short *users = traits(n, 0), *items = traits(all, 1u << 30);
        float *out = b.output<float>(n * all);
        b.tolerance = 1e-3;
        return {{"flawed", launch(ratings, dim3(all / ITEMS, n / USERS), 256, 0, users, items, out, all)}, {"fragments", launch(ratings_fragments, dim3(all / ITEMS, n / USERS), 256, 0, users, items, out, all)}};
    });

}  // namespace
