// Rasters, checksums, backgrounds, ranks of pages, tracks and carriers.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- heights at half the resolution ---

struct Raster {
    const float *heights;
    float *coarse;
    long long bands, rows, columns;  // of the coarse raster
};
__device__ __forceinline__ float coarser(const float *heights, long long columns) {
    const float2 a = *reinterpret_cast<const float2 *>(heights), b = *reinterpret_cast<const float2 *>(heights + 2 * columns);
    return 0.25f * (a.x + a.y + b.x + b.y);
}
__global__ void coarsen(Raster r) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= r.bands * r.rows * r.columns) return;
    const long long band = i / (r.rows * r.columns), row = i / r.columns % r.rows, column = i % r.columns;
    r.coarse[i] = coarser(r.heights + ((band * r.rows + row) * 2 * r.columns + column) * 2, r.columns);
}
__global__ void coarsen_grid(Raster r) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, columns = static_cast<int>(r.columns);
    if (column >= columns) return;
    const long long line = blockIdx.z * r.rows + row;
    r.coarse[line * columns + column] = coarser(r.heights + (line * 2 * columns + column) * 2, columns);
}
__global__ void coarsen_words(Raster r) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, columns = static_cast<unsigned>(r.columns);
    if (i >= static_cast<unsigned>(r.bands * r.rows * r.columns)) return;
    const unsigned line = i / columns, column = i - line * columns;
    r.coarse[i] = coarser(r.heights + (static_cast<size_t>(line) * 2 * columns + column) * 2, columns);
}

Study terrain("terrain_overview_cells_by_long_divisions", "geo data", 2520, "means of two by two cells of twelve bands of a raster",
    "band, row and column of a cell by divisions of 64-bit numbers",
    {{"grid", "band and row from the grid", {"integer_arithmetic"}}, {"words", "one division of 32-bit numbers", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const long bands = 12, rows = 2048;
        const Raster r{b.random<float>(bands * rows * n * 4, 0, 3000), b.output<float>(bands * rows * n), bands, rows, n};
        return {{"flawed", launch(coarsen, blocks(bands * rows * n, 256), 256, 0, r)},
            {"grid", launch(coarsen_grid, dim3(blocks(n, 256), rows, bands), 256, 0, r)},
            {"words", launch(coarsen_words, blocks(bands * rows * n, 256), 256, 0, r)}};
    });

// --- checksums of packets ---

__constant__ unsigned crc_table[256];

struct Packets {
    const unsigned *words;  // word by word, a packet after the other
    unsigned *sums;
    const unsigned *table;
    int count, length;
};
__global__ void __launch_bounds__(256) checksums(Packets p) {
    const int packet = blockIdx.x * 256 + threadIdx.x;
    unsigned crc = ~0u;
    for (int k = 0; k < p.length; k++) {
        crc ^= p.words[static_cast<size_t>(k) * p.count + packet];
#pragma unroll
        for (int byte = 0; byte < 4; byte++) crc = crc >> 8 ^ crc_table[crc & 255];
    }
    p.sums[packet] = ~crc;
}
__global__ void __launch_bounds__(256) checksums_shared(Packets p) {
    __shared__ unsigned table[256];
    table[threadIdx.x] = p.table[threadIdx.x];
    __syncthreads();
    const int packet = blockIdx.x * 256 + threadIdx.x;
    unsigned crc = ~0u;
    for (int k = 0; k < p.length; k++) {
        crc ^= p.words[static_cast<size_t>(k) * p.count + packet];
#pragma unroll
        for (int byte = 0; byte < 4; byte++) crc = crc >> 8 ^ table[crc & 255];
    }
    p.sums[packet] = ~crc;
}
__global__ void __launch_bounds__(256) checksums_cached(Packets p) {
    const int packet = blockIdx.x * 256 + threadIdx.x;
    unsigned crc = ~0u;
    for (int k = 0; k < p.length; k++) {
        crc ^= p.words[static_cast<size_t>(k) * p.count + packet];
#pragma unroll
        for (int byte = 0; byte < 4; byte++) crc = crc >> 8 ^ __ldg(p.table + (crc & 255));
    }
    p.sums[packet] = ~crc;
}

Study packets("packets_checksum_table_in_constant_memory", "networking", 1 << 19, "CRC-32 of half a million packets of 256 bytes",
    "lanes look up different words of a table in constant memory",
    {{"shared", "the table in shared memory", {"constant_divergence"}}, {"cached", "the table in global memory, by the first-level cache", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> table(256);
        for (unsigned i = 0; i < 256; i++) {
            table[i] = i;
            for (int k = 0; k < 8; k++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0u);
        }
        std::vector<unsigned> words(n * 64);
        for (size_t i = 0; i < words.size(); i++) words[i] = hash(static_cast<unsigned>(i));
        CHECK(cudaMemcpyToSymbol(crc_table, table.data(), 1024));
        const Packets p{b.copy(words), b.output<unsigned>(n), b.copy(table), static_cast<int>(n), 64};
        return {{"flawed", launch(checksums, blocks(n, 256), 256, 0, p)}, {"shared", launch(checksums_shared, blocks(n, 256), 256, 0, p)},
            {"cached", launch(checksums_cached, blocks(n, 256), 256, 0, p)}};
    });

// --- what moves before a camera ---

__device__ __forceinline__ unsigned char moved(unsigned char now, unsigned char &before) {
    const int apart = static_cast<int>(now) - before;
    before = static_cast<unsigned char>(before + apart / 8);
    return abs(apart) > 24 ? 255 : 0;
}
__global__ void motion(const unsigned char *frame, const unsigned char *background, unsigned char *next, unsigned char *mask, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned char before = background[i];
    mask[i] = moved(frame[i], before);
    next[i] = before;
}
template <typename Word>
__global__ void motion_words(const unsigned char *frame, const unsigned char *background, unsigned char *next, unsigned char *mask, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count / static_cast<int>(sizeof(Word))) return;
    Word now = reinterpret_cast<const Word *>(frame)[i], before = reinterpret_cast<const Word *>(background)[i], seen;
#pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(Word)); k++)
        reinterpret_cast<unsigned char *>(&seen)[k] =
            moved(reinterpret_cast<unsigned char *>(&now)[k], reinterpret_cast<unsigned char *>(&before)[k]);
    reinterpret_cast<Word *>(mask)[i] = seen;
    reinterpret_cast<Word *>(next)[i] = before;
}

Study camera("camera_motion_mask_a_byte_a_thread", "video", 3840L * 2160 * 12, "pixels of twelve 4K frames that differ from a background, which follows them",
    "a byte of each picture a thread",
    {{"four", "four pixels a thread", {"narrow_access"}}, {"eight", "eight pixels a thread", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const auto *frame = b.random<unsigned char>(n, 0, 256), *background = b.random<unsigned char>(n, 0, 256);
        auto *next = b.output<unsigned char>(n), *mask = b.output<unsigned char>(n);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(motion, blocks(n, 256), 256, 0, frame, background, next, mask, count)},
            {"four", launch(motion_words<unsigned>, blocks(n / 4, 256), 256, 0, frame, background, next, mask, count)},
            {"eight", launch(motion_words<uint2>, blocks(n / 8, 256), 256, 0, frame, background, next, mask, count)}};
    });

// --- tracks of particles in a field ---

struct Track {
    float x, y, z, px, py, pz, charge, length;
};
__device__ __forceinline__ Track bent(Track t, float field, float step) {
    const float inverse = rsqrtf(t.px * t.px + t.py * t.py + t.pz * t.pz), turn = 0.3f * t.charge * field * step * inverse;
    const float px = t.px + turn * t.py, py = t.py - turn * t.px;
    t.x += step * inverse * px, t.y += step * inverse * py, t.z += step * inverse * t.pz;
    t.px = px, t.py = py, t.length += step;
    return t;
}
__global__ void steps(const Track *tracks, Track *out, float field, float step, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = bent(tracks[i], field, step);
}
__global__ void steps_halves(const float4 *tracks, float4 *out, float field, float step, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float4 a = tracks[2 * i], c = tracks[2 * i + 1];
    const Track t = bent({a.x, a.y, a.z, a.w, c.x, c.y, c.z, c.w}, field, step);
    out[2 * i] = make_float4(t.x, t.y, t.z, t.px), out[2 * i + 1] = make_float4(t.py, t.pz, t.charge, t.length);
}
__global__ void __launch_bounds__(128) steps_staged(const float4 *tracks, float4 *out, float field, float step, int count) {
    __shared__ float staged[128 * 9];
    const float4 *from = tracks + static_cast<size_t>(blockIdx.x) * 256;
    float4 *to = out + static_cast<size_t>(blockIdx.x) * 256;
    for (int k = threadIdx.x; k < 256; k += 128) {
        const float4 v = from[k];
        float *at = staged + k / 2 * 9 + k % 2 * 4;
        at[0] = v.x, at[1] = v.y, at[2] = v.z, at[3] = v.w;
    }
    __syncthreads();
    float *own = staged + threadIdx.x * 9;
    const Track t = bent({own[0], own[1], own[2], own[3], own[4], own[5], own[6], own[7]}, field, step);
    own[0] = t.x, own[1] = t.y, own[2] = t.z, own[3] = t.px, own[4] = t.py, own[5] = t.pz, own[6] = t.charge, own[7] = t.length;
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += 128) {
        const float *at = staged + k / 2 * 9 + k % 2 * 4;
        to[k] = make_float4(at[0], at[1], at[2], at[3]);
    }
}

Study detector("detector_tracks_step_of_structs", "particle physics", 1 << 23, "a step of eight million charged tracks in a magnetic field",
    "a structure of eight words a thread, word by word",
    {{"halves", "two 16-byte accesses a structure", {"uncoalesced_access", "narrow_access"}}, {"staged", "whole lines through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *tracks = b.random<float>(n * 8, 0.1, 1.0);
        float *out = b.output<float>(n * 8);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(steps, blocks(n, 128), 128, 0, reinterpret_cast<const Track *>(tracks), reinterpret_cast<Track *>(out), 2.0f, 0.01f, count)},
            {"halves", launch(steps_halves, blocks(n, 128), 128, 0, reinterpret_cast<const float4 *>(tracks), reinterpret_cast<float4 *>(out), 2.0f, 0.01f, count)},
            {"staged", launch(steps_staged, blocks(n, 128), 128, 0, reinterpret_cast<const float4 *>(tracks), reinterpret_cast<float4 *>(out), 2.0f, 0.01f, count)}};
    });

// --- power of a received carrier ---

__global__ void power(const float4 *samples, float2 *out, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float4 v = samples[i];
    out[i] = make_float2(v.x * v.x + v.y * v.y, v.z * v.z + v.w * v.w);
}

Study carrier("sound_carrier_power", "signal processing", 1 << 25, "power of 67 million complex samples", "", {},
    [](Buffers &b, long n) -> Sides {
        const float *samples = b.random<float>(n * 4);
        float *out = b.output<float>(n * 2);
        return {{"sound", launch(power, blocks(n, 256), 256, 0, reinterpret_cast<const float4 *>(samples), reinterpret_cast<float2 *>(out), static_cast<int>(n))}};
    });

}  // namespace
