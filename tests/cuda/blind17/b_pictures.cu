// Landscapes, textures, spectra of pixels, volumes and descriptors.
#include <cmath>

#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- a landscape lit by the sun ---

struct Heights {
    const float *cells;  // a frame of four cells to the sides, and of one row above and below
    int width, rows;
    __device__ int pitch() const { return width + 8; }
    __device__ const float *at(int x, int row) const { return cells + static_cast<size_t>(row + 1) * pitch() + x + 4; }
};
__device__ __forceinline__ float lit(float dx, float dy) { return fmaxf(0.0f, (0.7071f - 0.5f * dx + 0.5f * dy) * rsqrtf(1.0f + dx * dx + dy * dy)); }

__global__ void __launch_bounds__(256) hill_shade(const Heights h, float *__restrict__ out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= h.width || row >= h.rows) return;
    const float *m = h.at(x, row), *u = m - h.pitch(), *d = m + h.pitch();
    const float dx = (u[1] + 2.0f * m[1] + d[1] - u[-1] - 2.0f * m[-1] - d[-1]) * 0.125f, dy = (d[-1] + 2.0f * d[0] + d[1] - u[-1] - 2.0f * u[0] - u[1]) * 0.125f;
    out[static_cast<size_t>(row) * h.width + x] = lit(dx, dy);
}
// Four cells a thread: a vector and its two neighbours of each of three rows.
__global__ void __launch_bounds__(256) hill_shade_four(const Heights h, float *__restrict__ out) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= h.width || row >= h.rows) return;
    float v[3][6];
#pragma unroll
    for (int r = 0; r < 3; r++) {
        const float *m = h.at(x, row + r - 1);
        const float4 four = *reinterpret_cast<const float4 *>(m);
        v[r][0] = m[-1], v[r][1] = four.x, v[r][2] = four.y, v[r][3] = four.z, v[r][4] = four.w, v[r][5] = m[4];
    }
    float shades[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float dx = (v[0][k + 2] + 2.0f * v[1][k + 2] + v[2][k + 2] - v[0][k] - 2.0f * v[1][k] - v[2][k]) * 0.125f;
        const float dy = (v[2][k] + 2.0f * v[2][k + 1] + v[2][k + 2] - v[0][k] - 2.0f * v[0][k + 1] - v[0][k + 2]) * 0.125f;
        shades[k] = lit(dx, dy);
    }
    *reinterpret_cast<float4 *>(out + static_cast<size_t>(row) * h.width + x) = make_float4(shades[0], shades[1], shades[2], shades[3]);
}

Study shades("hillshade_blocks_four_cells_wide", "geography", 8192, "light on a landscape of 8192 x 8192 cells from their slopes",
    "blocks of 4 x 64 threads: a warp reads eight short pieces of rows",
    {{"wide", "blocks of 64 x 4 threads", {"uncoalesced_access"}}, {"four", "four cells a thread, blocks of 32 x 8", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = static_cast<int>(n);
        const Heights h{b.random<float>(static_cast<size_t>(size + 8) * (size + 2), 0, 3), size, size};
        float *out = b.output<float>(n * n);
        return {{"flawed", launch(hill_shade, dim3(blocks(n, 4), blocks(n, 64)), dim3(4, 64), 0, h, out)}, {"wide", launch(hill_shade, dim3(blocks(n, 64), blocks(n, 4)), dim3(64, 4), 0, h, out)},
            {"four", launch(hill_shade_four, dim3(blocks(n, 128), blocks(n, 8)), dim3(32, 8), 0, h, out)}};
    });

// --- codes of textures: which of eight neighbours are as bright as a pixel ---

struct Picture {
    const unsigned char *pixels;  // a frame of four pixels to the sides, and of one row above and below
    int width, rows;
    __device__ const unsigned char *at(int x, int row) const { return pixels + static_cast<size_t>(row + 1) * (width + 8) + x + 4; }
};
__global__ void __launch_bounds__(256) texture_codes(const Picture p, unsigned char *__restrict__ out) {
    const int x = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (x >= p.width) return;
    const unsigned char *u = p.at(x, row - 1), *m = p.at(x, row), *d = p.at(x, row + 1), middle = *m;
    const unsigned code = (u[-1] >= middle) | (u[0] >= middle) << 1 | (u[1] >= middle) << 2 | (m[1] >= middle) << 3 | (d[1] >= middle) << 4 | (d[0] >= middle) << 5 | (d[-1] >= middle) << 6 | (m[-1] >= middle) << 7;
    out[static_cast<size_t>(row) * p.width + x] = static_cast<unsigned char>(code);
}
struct Row {  // four pixels, those one to the left and one to the right
    unsigned left, middle, right;
    __device__ explicit Row(const unsigned char *pixels) {
        const unsigned *words = reinterpret_cast<const unsigned *>(pixels);
        const unsigned before = words[-1], after = words[1];
        middle = words[0], left = __funnelshift_l(before, middle, 8), right = __funnelshift_r(middle, after, 8);
    }
};
__device__ __forceinline__ unsigned bit_if(unsigned pixels, unsigned middle, int bit) { return __vcmpgeu4(pixels, middle) & 0x01010101u << bit; }
__device__ __forceinline__ unsigned four_texture_codes(const Row &u, const Row &m, const Row &d) {
    return bit_if(u.left, m.middle, 0) | bit_if(u.middle, m.middle, 1) | bit_if(u.right, m.middle, 2) | bit_if(m.right, m.middle, 3) | bit_if(d.right, m.middle, 4) | bit_if(d.middle, m.middle, 5) |
           bit_if(d.left, m.middle, 6) | bit_if(m.left, m.middle, 7);
}
__global__ void __launch_bounds__(256) texture_codes_words(const Picture p, unsigned *__restrict__ out) {
    const int x = (blockIdx.x * 256 + threadIdx.x) * 4, row = blockIdx.y;
    if (x >= p.width) return;
    out[(static_cast<size_t>(row) * p.width + x) / 4] = four_texture_codes(Row(p.at(x, row - 1)), Row(p.at(x, row)), Row(p.at(x, row + 1)));
}
// The same, down sixteen rows: each is loaded once.
__global__ void __launch_bounds__(128) texture_codes_down(const Picture p, unsigned *__restrict__ out) {
    const int x = (blockIdx.x * 128 + threadIdx.x) * 4, first = blockIdx.y * 16;
    if (x >= p.width) return;
    Row u(p.at(x, first - 1)), m(p.at(x, first));
#pragma unroll 4
    for (int row = first; row < first + 16; row++) {
        const Row d(p.at(x, row + 1));
        out[(static_cast<size_t>(row) * p.width + x) / 4] = four_texture_codes(u, m, d);
        u = m, m = d;
    }
}

Study textures("texture_codes_nine_bytes_a_pixel", "vision", 8192, "codes of the textures of a picture of 8192 x 8192 pixels",
    "nine loads of a byte and a store of one for each pixel",
    {{"words", "four pixels a thread as bytes of a word", {"narrow_access"}}, {"down", "four columns of sixteen rows a thread, each row loaded once", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = static_cast<int>(n);
        const Picture p{b.random<unsigned char>(static_cast<size_t>(size + 8) * (size + 2), 0, 256), size, size};
        unsigned char *out = b.output<unsigned char>(n * n);
        unsigned *words = reinterpret_cast<unsigned *>(out);
        b.tolerance = 0.0;
        return {{"flawed", launch(texture_codes, dim3(blocks(n, 256), n), 256, 0, p, out)}, {"words", launch(texture_codes_words, dim3(blocks(n, 1024), n), 256, 0, p, words)},
            {"down", launch(texture_codes_down, dim3(blocks(n, 512), n / 16), 128, 0, p, words)}};
    });

// --- angles between the spectra of pixels and those of eight minerals ---

constexpr int BANDS = 224, MINERALS = 8;

struct Sums {
    float with[MINERALS] = {}, own = 0.0f;
    __device__ void add(float value, const float *minerals) {
#pragma unroll
        for (int k = 0; k < MINERALS; k++) with[k] += value * minerals[k];
        own += value * value;
    }
};
__device__ __forceinline__ float angle(float product, float square) { return acosf(fminf(1.0f, product * rsqrtf(square))); }

template <int PIECE>
__global__ void __launch_bounds__(64) spectral_angles(const float *__restrict__ spectra, const float *__restrict__ minerals, float *__restrict__ out, int pixels) {
    extern __shared__ float room[];
    float *library = room, *tile = room + PIECE * MINERALS;
    const int t = threadIdx.x, first = blockIdx.x * 64;
    Sums sums;
    for (int start = 0; start < BANDS; start += PIECE) {
        for (int i = t; i < PIECE * MINERALS; i += 64) library[i] = minerals[start * MINERALS + i];
        for (int i = t; i < PIECE * 64; i += 64) tile[i / PIECE * (PIECE + 1) + i % PIECE] = spectra[static_cast<size_t>(first + i / PIECE) * BANDS + start + i % PIECE];
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < PIECE; i++) sums.add(tile[t * (PIECE + 1) + i], library + i * MINERALS);
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < MINERALS; k++) out[static_cast<size_t>(k) * pixels + first + t] = angle(sums.with[k], sums.own);
}
// A warp for a pixel, lanes side by side in its spectrum; seven bands of the minerals stay in a lane's registers.
__global__ void __launch_bounds__(128, 4) spectral_angles_warps(const float *__restrict__ spectra, const float *__restrict__ minerals, float *__restrict__ out, int pixels) {
    constexpr int EACH = BANDS / 32;
    const int lane = threadIdx.x % 32, warps = gridDim.x * 4;
    float library[EACH][MINERALS];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < MINERALS; k++) library[i][k] = minerals[(i * 32 + lane) * MINERALS + k];
    for (int pixel = (blockIdx.x * 128 + threadIdx.x) / 32; pixel < pixels; pixel += warps) {
        Sums sums;
#pragma unroll
        for (int i = 0; i < EACH; i++) sums.add(spectra[static_cast<size_t>(pixel) * BANDS + i * 32 + lane], library[i]);
        const float square = warp_sum(sums.own);
        float own = 0.0f;
#pragma unroll
        for (int k = 0; k < MINERALS; k++) {
            const float product = warp_sum(sums.with[k]);
            if (lane == k) own = product;
        }
        if (lane < MINERALS) out[static_cast<size_t>(lane) * pixels + pixel] = angle(own, square);
    }
}

Study spectra("spectral_angles_whole_spectra_in_shared", "geology", 1 << 18, "angles between spectra of 224 bands at 262144 pixels and those of eight minerals",
    "64 whole spectra in 64 KiB of shared memory leave room for six warps a multiprocessor",
    {{"pieces", "32 bands of them at a time", {"low_occupancy"}}, {"warps", "a warp a pixel: no shared memory", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> library(BANDS * MINERALS);
        for (int k = 0; k < MINERALS; k++) {
            float square = 0.0f;
            for (int i = 0; i < BANDS; i++) square += powf(library[i * MINERALS + k] = 0.1f + (hash(k * 1000 + i / 8) % 1000) * 1e-3f, 2.0f);
            for (int i = 0; i < BANDS; i++) library[i * MINERALS + k] /= sqrtf(square);
        }
        const float *cube = b.random<float>(n * BANDS, 0.05, 1.0), *minerals = b.copy(library);
        float *out = b.output<float>(n * MINERALS);
        b.tolerance = 1e-3;
        const auto room = [](int bands) { return (bands * MINERALS + 64 * (bands + 1)) * sizeof(float); };
        return {{"flawed", launch(spectral_angles<BANDS>, blocks(n, 64), 64, room(BANDS), cube, minerals, out, n)}, {"pieces", launch(spectral_angles<32>, blocks(n, 64), 64, room(32), cube, minerals, out, n)},
            {"warps", launch(spectral_angles_warps, multiprocessors() * 4, 128, 0, cube, minerals, out, n)}};
    });

// --- noise of a volume smoothed away where there is no edge ---

struct Volume {
    const float *cells;
    int width, rows, depth;  // without the first and last of each
    __device__ int row() const { return width + 2; }
    __device__ int plane() const { return row() * (rows + 2); }
};
__device__ __forceinline__ float flow(float own, float other) {
    const float d = other - own;
    return __fdividef(d, 1.0f + 25.0f * d * d);
}
__device__ __forceinline__ float smoothed(const float *c, int row, float above, float own, float below) {
    return own + 0.15f * (flow(own, above) + flow(own, below) + flow(own, c[-row]) + flow(own, c[row]) + flow(own, c[-1]) + flow(own, c[1]));
}
__device__ __forceinline__ void smooth_cell(const Volume &v, float *out, int x, int y, int z) {
    if (x > v.width || y > v.rows) return;
    const size_t at = static_cast<size_t>(z) * v.plane() + y * v.row() + x;
    const float *c = v.cells + at;
    out[at] = smoothed(c, v.row(), c[-v.plane()], c[0], c[v.plane()]);
}
__global__ void __launch_bounds__(256) smooth_planes(const Volume v, float *__restrict__ out) {
    smooth_cell(v, out, blockIdx.x * 64 + threadIdx.x + 1, blockIdx.y * 4 + threadIdx.y + 1, blockIdx.z + 1);
}
// Blocks that follow one another lie behind one another in depth.
__global__ void __launch_bounds__(256) smooth_columns(const Volume v, float *__restrict__ out) {
    smooth_cell(v, out, blockIdx.y * 64 + threadIdx.x + 1, blockIdx.z * 4 + threadIdx.y + 1, blockIdx.x + 1);
}
// A thread walks down a column with three cells in registers.
__global__ void __launch_bounds__(256) smooth_walk(const Volume v, float *__restrict__ out) {
    const int x = blockIdx.x * 64 + threadIdx.x + 1, y = blockIdx.y * 4 + threadIdx.y + 1;
    if (x > v.width || y > v.rows) return;
    size_t at = static_cast<size_t>(v.plane()) + y * v.row() + x;
    float above = v.cells[at - v.plane()], own = v.cells[at];
    for (int z = 0; z < v.depth; z++, at += v.plane()) {
        const float *c = v.cells + at, below = c[v.plane()];
        out[at] = smoothed(c, v.row(), above, own, below);
        above = own, own = below;
    }
}

Study smoothing("volume_smoothed_plane_after_plane", "medicine", 4096, "a volume of 4096 x 2048 x 14 cells smoothed but for its edges",
    "blocks go through a plane of 33 MB before they come to the next: what the next needs of it has left the cache",
    {{"columns", "blocks behind one another in depth follow one another", {"cache_locality"}}, {"walk", "a thread walks down a column", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int depth = 14;
        Volume v{nullptr, static_cast<int>(n), static_cast<int>(n / 2), depth};
        const size_t cells = static_cast<size_t>(n + 2) * (n / 2 + 2) * (depth + 2);
        v.cells = b.random<float>(cells, 0, 1);
        float *out = b.output<float>(cells, true);
        const unsigned wide = blocks(n, 64), tall = blocks(n / 2, 4);
        return {{"flawed", launch(smooth_planes, dim3(wide, tall, depth), dim3(64, 4), 0, v, out)}, {"columns", launch(smooth_columns, dim3(depth, wide, tall), dim3(64, 4), 0, v, out)},
            {"walk", launch(smooth_walk, dim3(wide, tall), dim3(64, 4), 0, v, out)}};
    });

// --- descriptors of 128 numbers turned and shortened to 64 ---

constexpr int LONG = 128, SHORT = 64;
using namespace nvcuda::wmma;

__global__ void __launch_bounds__(256) shorten(const __half *__restrict__ descriptors, const __half *__restrict__ turn, float *__restrict__ out) {
    __shared__ __half tile[32][LONG];
    const int t = threadIdx.x, column = t % SHORT, group = t / SHORT;
    const size_t first = static_cast<size_t>(blockIdx.x) * 32;
    for (int i = t; i < 32 * LONG / 8; i += 256) reinterpret_cast<uint4 *>(tile)[i] = reinterpret_cast<const uint4 *>(descriptors + first * LONG)[i];
    __syncthreads();
    float sums[8] = {};
#pragma unroll 8
    for (int k = 0; k < LONG; k++) {
        const float weight = __half2float(turn[k * SHORT + column]);
#pragma unroll
        for (int r = 0; r < 8; r++) sums[r] += __half2float(tile[group * 8 + r][k]) * weight;
    }
#pragma unroll
    for (int r = 0; r < 8; r++) out[(first + group * 8 + r) * SHORT + column] = sums[r];
}
// A warp for sixteen descriptors; both operands straight from global memory.
__global__ void __launch_bounds__(128) shorten_tensor(const __half *__restrict__ descriptors, const __half *__restrict__ turn, float *__restrict__ out) {
    const size_t first = (static_cast<size_t>(blockIdx.x) * 4 + threadIdx.x / 32) * 16;
    fragment<accumulator, 16, 16, 16, float> sums[4];
#pragma unroll
    for (int c = 0; c < 4; c++) fill_fragment(sums[c], 0.0f);
#pragma unroll 2
    for (int k = 0; k < LONG; k += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> a;
        load_matrix_sync(a, descriptors + first * LONG + k, LONG);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            fragment<matrix_b, 16, 16, 16, __half, row_major> w;
            load_matrix_sync(w, turn + k * SHORT + c * 16, SHORT);
            mma_sync(sums[c], a, w, sums[c]);
        }
    }
#pragma unroll
    for (int c = 0; c < 4; c++) store_matrix_sync(out + first * SHORT + c * 16, sums[c], SHORT, mem_row_major);
}
// A warp keeps sixteen columns of the turn in registers and goes through sixteen groups of descriptors.
__global__ void __launch_bounds__(128) shorten_kept(const __half *__restrict__ descriptors, const __half *__restrict__ turn, float *__restrict__ out, int groups) {
    const int column = threadIdx.x / 32 * 16;
    fragment<matrix_b, 16, 16, 16, __half, row_major> w[LONG / 16];
#pragma unroll
    for (int k = 0; k < LONG / 16; k++) load_matrix_sync(w[k], turn + k * 16 * SHORT + column, SHORT);
    for (int g = 0; g < 16; g++) {
        const size_t first = (static_cast<size_t>(blockIdx.x) * 16 + g) * 16;
        if (static_cast<int>(first / 16) >= groups) return;
        fragment<accumulator, 16, 16, 16, float> sum;
        fill_fragment(sum, 0.0f);
#pragma unroll
        for (int k = 0; k < LONG / 16; k++) {
            fragment<matrix_a, 16, 16, 16, __half, row_major> a;
            load_matrix_sync(a, descriptors + first * LONG + k * 16, LONG);
            mma_sync(sum, a, w[k], sum);
        }
        store_matrix_sync(out + first * SHORT + column, sum, SHORT, mem_row_major);
    }
}

Study descriptors("descriptors_shortened_by_half_sums", "vision", 1 << 18, "262144 descriptors of 128 half values turned and shortened to 64",
    "products of half matrices as sums of a thread, a conversion for each operand",
    {{"tensor", "tensor cores, operands from global memory", {"tensor_cores_idle"}}, {"kept", "tensor cores, the turn in registers", {"tensor_cores_idle", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *in = b.random<__half>(n * LONG), *turn = b.random<__half>(LONG * SHORT);
        float *out = b.output<float>(n * SHORT);
        b.tolerance = 1e-3;
        return {{"flawed", launch(shorten, blocks(n, 32), 256, 0, in, turn, out)}, {"tensor", launch(shorten_tensor, blocks(n, 64), 128, 0, in, turn, out)},
            {"kept", launch(shorten_kept, blocks(n, 256), 128, 0, in, turn, out, n / 16)}};
    });

}  // namespace
