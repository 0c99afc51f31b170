// Telephones, words that are spoken, clouds and the reads of a sequencer.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- telephone sound ---

__constant__ short MU_LAW[256];

__host__ __device__ __forceinline__ int expanded(unsigned code) {
    code = ~code & 0xff;
    const int size = ((static_cast<int>(code & 15) << 3) + 132) << (code >> 4 & 7);
    return code & 128 ? 132 - size : size - 132;
}
__device__ __forceinline__ unsigned joined(int low, int high) { return (low & 0xffff) | static_cast<unsigned>(high) << 16; }
template <typename Decode>
__device__ __forceinline__ void decode(const uint2 *in, uint4 *out, int k, Decode value) {
    const uint2 codes = in[k];
    out[k] = make_uint4(joined(value(codes.x & 255), value(codes.x >> 8 & 255)), joined(value(codes.x >> 16 & 255), value(codes.x >> 24)),
        joined(value(codes.y & 255), value(codes.y >> 8 & 255)), joined(value(codes.y >> 16 & 255), value(codes.y >> 24)));
}
__global__ void __launch_bounds__(256) telephone(const uint2 *__restrict__ in, uint4 *__restrict__ out, int count) {
    for (int k = blockIdx.x * 256 + threadIdx.x; k < count; k += gridDim.x * 256)
        decode(in, out, k, [](unsigned code) { return static_cast<int>(MU_LAW[code]); });
}
__global__ void __launch_bounds__(256) telephone_shared(const uint2 *__restrict__ in, uint4 *__restrict__ out, int count) {
    __shared__ int values[256];
    values[threadIdx.x] = MU_LAW[threadIdx.x];
    __syncthreads();
    for (int k = blockIdx.x * 256 + threadIdx.x; k < count; k += gridDim.x * 256)
        decode(in, out, k, [](unsigned code) { return values[code]; });
}
__global__ void __launch_bounds__(256) telephone_shifts(const uint2 *__restrict__ in, uint4 *__restrict__ out, int count) {
    for (int k = blockIdx.x * 256 + threadIdx.x; k < count; k += gridDim.x * 256)
        decode(in, out, k, [](unsigned code) { return expanded(code); });
}
// Values from the read-only cache.
__global__ void __launch_bounds__(256) telephone_cached(const uint2 *__restrict__ in, const short *__restrict__ values, uint4 *__restrict__ out, int count) {
    for (int k = blockIdx.x * 256 + threadIdx.x; k < count; k += gridDim.x * 256)
        decode(in, out, k, [=](unsigned code) { return static_cast<int>(__ldg(values + code)); });
}

Study calls("telephone_sound_values_in_constant", "sound", 1 << 26, "67108864 bytes of quiet telephone sound as values of 16 bits, by the mu-law",
    "each lane looks for another value of a table in constant memory",
    {{"shared", "the table in shared memory", {"constant_divergence"}}, {"shifts", "a value from the code's bits", {"constant_divergence"}}, {"cached", "the table in global memory", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> list(256);
        for (int k = 0; k < 256; k++) list[k] = static_cast<short>(expanded(k));
        CHECK(cudaMemcpyToSymbol(MU_LAW, list.data(), 512));
        const short *values = reinterpret_cast<const short *>(b.copy(std::vector<int>(reinterpret_cast<int *>(list.data()), reinterpret_cast<int *>(list.data()) + 128)));
        const uint2 *in = reinterpret_cast<const uint2 *>(b.random<unsigned char>(n, 224.0, 256.0));
        uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(n / 2));
        b.tolerance = 0.0;
        const int count = n / 8, grid = multiprocessors() * 16;
        return {{"flawed", launch(telephone, grid, 256, 0, in, out, count)}, {"shared", launch(telephone_shared, grid, 256, 0, in, out, count)},
            {"shifts", launch(telephone_shifts, grid, 256, 0, in, out, count)}, {"cached", launch(telephone_cached, grid, 256, 0, in, values, out, count)}};
    });

// --- how far spoken words are from one that is looked for ---

constexpr int FRAMES = 24, WARPED = 128;

__device__ __forceinline__ float apart(float4 a, float4 z) { return fabsf(a.x - z.x) + fabsf(a.y - z.y) + fabsf(a.z - z.z) + fabsf(a.w - z.w); }
// A recording a thread. ROW: how far a thread's costs lie from those of the next; STEP: how far its own lie apart.
template <int ROW, int STEP>
__global__ void __launch_bounds__(WARPED) spoken(const float4 *__restrict__ sounds, const float4 *__restrict__ word, float *__restrict__ out, int count, int length) {
    __shared__ float costs[FRAMES * WARPED + WARPED];
    __shared__ float4 wanted[FRAMES];
    const int t = threadIdx.x, k = blockIdx.x * WARPED + t;
    float *own = costs + t * ROW;
    if (t < FRAMES) wanted[t] = word[t];
    for (int j = 0; j < FRAMES; j++) own[j * STEP] = 1e30f;
    __syncthreads();
    if (k >= count) return;
    float corner = 0.0f;
    for (int i = 0; i < length; i++) {
        const float4 frame = sounds[static_cast<size_t>(i) * count + k];
        float left = 1e30f;
#pragma unroll 8
        for (int j = 0; j < FRAMES; j++) {
            const float above = own[j * STEP];
            left = apart(frame, wanted[j]) + fminf(fminf(left, above), corner);
            own[j * STEP] = left, corner = above;
        }
        corner = 1e30f;
    }
    out[k] = own[(FRAMES - 1) * STEP];
}
struct Word {
    float4 frames[FRAMES];
};
__global__ void __launch_bounds__(WARPED) spoken_registers(const float4 *__restrict__ sounds, float *__restrict__ out, int count, int length, const Word word) {
    const int k = blockIdx.x * WARPED + threadIdx.x;
    if (k >= count) return;
    float own[FRAMES], corner = 0.0f;
#pragma unroll
    for (int j = 0; j < FRAMES; j++) own[j] = 1e30f;
    for (int i = 0; i < length; i++) {
        const float4 frame = sounds[static_cast<size_t>(i) * count + k];
        float left = 1e30f;
#pragma unroll
        for (int j = 0; j < FRAMES; j++) {
            const float above = own[j];
            own[j] = left = apart(frame, word.frames[j]) + fminf(fminf(left, above), corner);
            corner = above;
        }
        corner = 1e30f;
    }
    out[k] = own[FRAMES - 1];
}

Study words("spoken_words_costs_24_words_apart", "sound", 65536, "how far 65536 recordings of 64 frames are from a word of 24, one stretched to fit the other",
    "a thread's 24 costs lie next to each other in shared memory",
    {{"turned", "costs of all threads side by side", {"shared_bank_conflicts"}}, {"odd", "25 words from a thread's costs to the next one's", {"shared_bank_conflicts"}},
        {"registers", "costs in registers, the word as a parameter", {"shared_bank_conflicts", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const int length = 64;
        const float4 *sounds = reinterpret_cast<const float4 *>(b.random<float>(n * length * 4)), *word;
        Word all;
        for (int j = 0; j < FRAMES; j++) all.frames[j] = make_float4(sinf(j * 0.7f), cosf(j * 0.9f), sinf(j * 1.3f), cosf(j * 0.4f));
        word = b.copy(std::vector<float4>(all.frames, all.frames + FRAMES));
        float *out = b.output<float>(n);
        const dim3 grid(blocks(n, WARPED));
        return {{"flawed", launch(spoken<FRAMES, 1>, grid, WARPED, 0, sounds, word, out, n, length)}, {"turned", launch(spoken<1, WARPED>, grid, WARPED, 0, sounds, word, out, n, length)},
            {"odd", launch(spoken<FRAMES + 1, 1>, grid, WARPED, 0, sounds, word, out, n, length)}, {"registers", launch(spoken_registers, grid, WARPED, 0, sounds, out, n, length, all)}};
    });

// --- where clouds are ---

constexpr int PATCH = 1024;
constexpr float RATIO = 2491.0f;  // of the latent heat and the heat capacity, in kelvin

// How much vapour air can hold, as a share of its mass.
__device__ __forceinline__ float holds(float warmth, float pressure) {
    const float most = 611.2f * expf(17.67f * (warmth - 273.15f) / (warmth - 29.65f));
    return 0.622f * most / (pressure - 0.378f * most);
}
// What is too much becomes water, which warms the air, which then holds more.
__device__ __forceinline__ float3 condensed(float warmth, float vapour, float pressure) {
    float now = warmth;
    for (int step = 0; step < 8; step++) {
        const float most = holds(now, pressure), slope = most * 4302.645f / ((now - 29.65f) * (now - 29.65f));
        now += (RATIO * (vapour - most) - (now - warmth)) / (1.0f + RATIO * slope);
    }
    const float water = (now - warmth) / RATIO;
    return make_float3(now, vapour - water, water);
}
struct Air {
    const float *warmth, *vapour, *pressure;
    float *out;
    int count;
    __device__ __forceinline__ void keep(int k, float3 found) const { out[k] = found.x, out[count + k] = found.y, out[2 * count + k] = found.z; }
};
__global__ void __launch_bounds__(256) clouds(const Air air) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= air.count) return;
    const float warmth = air.warmth[k], vapour = air.vapour[k], pressure = air.pressure[k];
    if (vapour > holds(warmth, pressure)) air.keep(k, condensed(warmth, vapour, pressure));
    else air.keep(k, make_float3(warmth, vapour, 0.0f));
}
// A block lists the cells of its 1024 that are too wet, then all threads take from the list.
__global__ void __launch_bounds__(256) clouds_block(const Air air) {
    __shared__ float3 wet[PATCH];
    __shared__ short where[PATCH];
    __shared__ int listed;
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
    const int first = blockIdx.x * PATCH;
#pragma unroll
    for (int part = 0; part < PATCH; part += 256) {
        const int k = first + part + threadIdx.x;
        if (k >= air.count) continue;
        const float warmth = air.warmth[k], vapour = air.vapour[k], pressure = air.pressure[k];
        if (vapour > holds(warmth, pressure)) {
            const int place = atomicAdd(&listed, 1);
            wet[place] = make_float3(warmth, vapour, pressure), where[place] = part + threadIdx.x;
        } else air.keep(k, make_float3(warmth, vapour, 0.0f));
    }
    __syncthreads();
    for (int place = threadIdx.x; place < listed; place += 256) air.keep(first + where[place], condensed(wet[place].x, wet[place].y, wet[place].z));
}
// A warp goes on until it has 32 of them.
__global__ void __launch_bounds__(256) clouds_warps(const Air air) {
    __shared__ float3 waiting[8][64];
    __shared__ int places[8][64];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = (blockIdx.x * 8 + warp) * PATCH;
    float3 *wet = waiting[warp];
    int *where = places[warp], listed = 0;
    for (int part = 0; part < PATCH; part += 32) {
        const int k = first + part + lane;
        float warmth = 300.0f, vapour = 0.0f, pressure = 1e5f;
        if (k < air.count) warmth = air.warmth[k], vapour = air.vapour[k], pressure = air.pressure[k];
        const bool much = vapour > holds(warmth, pressure);
        if (k < air.count && !much) air.keep(k, make_float3(warmth, vapour, 0.0f));
        const unsigned all = __ballot_sync(~0u, much);
        if (much) {
            const int place = listed + __popc(all & ((1u << lane) - 1));
            wet[place] = make_float3(warmth, vapour, pressure), where[place] = k;
        }
        listed += __popc(all);
        __syncwarp();
        if (listed < 32) continue;
        listed -= 32;
        const float3 cell = wet[listed + lane];
        air.keep(where[listed + lane], condensed(cell.x, cell.y, cell.z));
        __syncwarp();
    }
    if (lane < listed) air.keep(where[lane], condensed(wet[lane].x, wet[lane].y, wet[lane].z));
}

Study clouded("cloud_cells_among_dry_ones", "weather", 1 << 22, "warmth, vapour and water of 4194304 cells of air after what is too much has become water",
    "one cell in seven is iterated while the other lanes of its warp wait",
    {{"block", "a block lists such cells of 1024 first", {"branch_divergence"}}, {"warps", "a warp goes on until it has 32 such cells", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const Air air = {b.random<float>(n, 276.0, 284.0), b.random<float>(n, 0.0002, 0.0082), b.random<float>(n, 85000.0, 90000.0), b.output<float>(3 * n), static_cast<int>(n)};
        return {{"flawed", launch(clouds, blocks(n, 256), 256, 0, air)}, {"block", launch(clouds_block, blocks(n, PATCH), 256, 0, air)}, {"warps", launch(clouds_warps, blocks(n, 8 * PATCH), 256, 0, air)}};
    });

// --- how sure a sequencer is of each base in each cycle ---

constexpr int READERS = 128, TURNS = 16, CHUNK = READERS * TURNS * 16;

template <typename Take>
__device__ __forceinline__ void for_each_byte(uint4 words, Take take) {
    const unsigned list[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int k = 0; k < 4; k++) take(list[k] & 255), take(list[k] >> 8 & 255), take(list[k] >> 16 & 255), take(list[k] >> 24);
}
__device__ __forceinline__ const uint4 *chunk_of(const uint4 *calls, int chunks) { return calls + (static_cast<size_t>(blockIdx.y) * chunks + blockIdx.x) * (CHUNK / 16) + threadIdx.x; }
// A byte: two bits of base, six of quality. Rows of the grid are cycles.
__global__ void __launch_bounds__(READERS) base_qualities(const uint4 *__restrict__ calls, unsigned *__restrict__ out, int chunks) {
    __shared__ unsigned sums[4];
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    __syncthreads();
    const uint4 *own = chunk_of(calls, chunks);
#pragma unroll 2
    for (int turn = 0; turn < TURNS; turn++) for_each_byte(own[turn * READERS], [](unsigned call) { atomicAdd(sums + (call & 3), call >> 2); });
    __syncthreads();
    if (threadIdx.x < 4) atomicAdd(out + blockIdx.y * 4 + threadIdx.x, sums[threadIdx.x]);
}
// Sums for each lane of a warp.
__global__ void __launch_bounds__(READERS) base_qualities_lanes(const uint4 *__restrict__ calls, unsigned *__restrict__ out, int chunks) {
    __shared__ unsigned sums[READERS];
    sums[threadIdx.x] = 0;
    __syncthreads();
    const uint4 *own = chunk_of(calls, chunks);
    unsigned *lane = sums + threadIdx.x % 32;
#pragma unroll 2
    for (int turn = 0; turn < TURNS; turn++) for_each_byte(own[turn * READERS], [=](unsigned call) { atomicAdd(lane + (call & 3) * 32, call >> 2); });
    __syncthreads();
    unsigned total = sums[threadIdx.x];
    for (int offset = 16; offset; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out + blockIdx.y * 4 + threadIdx.x / 32, total);
}
// Ones in the bytes that are zero; none has more than two bits.
__host__ __device__ __forceinline__ unsigned zeros(unsigned bases) { return ~(bases | bases >> 1) & 0x01010101u; }
// Four sums a thread.
__global__ void __launch_bounds__(READERS) base_qualities_registers(const uint4 *__restrict__ calls, unsigned *__restrict__ out, int chunks) {
    __shared__ unsigned sums[4];
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    __syncthreads();
    const uint4 *own = chunk_of(calls, chunks);
    unsigned found[4] = {};
#pragma unroll 2
    for (int turn = 0; turn < TURNS; turn++) {
        const uint4 words = own[turn * READERS];
        const unsigned list[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned bases = list[k] & 0x03030303u, qualities = list[k] >> 2 & 0x3f3f3f3fu;
#pragma unroll
            for (int base = 0; base < 4; base++) found[base] = __dp4a(qualities, zeros(bases ^ base * 0x01010101u), found[base]);
        }
    }
#pragma unroll
    for (int base = 0; base < 4; base++) {
        for (int offset = 16; offset; offset /= 2) found[base] += __shfl_xor_sync(~0u, found[base], offset);
        if (threadIdx.x % 32 == 0) atomicAdd(sums + base, found[base]);
    }
    __syncthreads();
    if (threadIdx.x < 4) atomicAdd(out + blockIdx.y * 4 + threadIdx.x, sums[threadIdx.x]);
}

Study called("base_qualities_summed_in_four_words", "biology", 64, "sums of the qualities of each base in 64 cycles of 1048576 clusters",
    "all lanes of a block add to four words of shared memory",
    {{"lanes", "sums for each lane of a warp", {"shared_atomics"}}, {"registers", "four sums a thread", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int chunks = 32, qualities[8] = {37, 37, 37, 37, 37, 23, 12, 2};
        std::vector<unsigned> list(static_cast<size_t>(n) * chunks * CHUNK / 4);
        unsigned state = 1;
        for (unsigned &word : list) {
            word = 0;
            for (int k = 0; k < 4; k++) state = state * 1664525u + 1013904223u, word = word << 8 | qualities[state >> 29] << 2 | (state >> 20 & 3);
        }
        const uint4 *calls = reinterpret_cast<const uint4 *>(b.copy(list));
        unsigned *out = b.output<unsigned>(n * 4, true);
        b.tolerance = 0.0;
        const dim3 grid(chunks, n);
        return {{"flawed", launch(base_qualities, grid, READERS, 0, calls, out, chunks)}, {"lanes", launch(base_qualities_lanes, grid, READERS, 0, calls, out, chunks)},
            {"registers", launch(base_qualities_registers, grid, READERS, 0, calls, out, chunks)}};
    });

}  // namespace
