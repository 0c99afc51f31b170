// Pictures: contrast, registration, smoothing. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- contrast by tiles: each pixel through the curves of the four tiles around it, blended ---

constexpr int ACROSS = 4096, DOWN = 2048, GRID = 8, TILE_X = ACROSS / GRID, TILE_Y = DOWN / GRID;

struct Between {  // two neighbouring tiles and how far the place is towards the second
    int first, second;
    float share;
};
__device__ __forceinline__ Between between(int place, int tile) {
    const float at = (place + 0.5f) * (1.f / tile) - 0.5f;
    const float low = floorf(at);
    const int first = static_cast<int>(low);
    return {max(first, 0), min(first + 1, GRID - 1), at - low};
}
__device__ __forceinline__ unsigned char blended(float a, float b, float c, float d, float x, float y) {
    const float top = a + (b - a) * x, bottom = c + (d - c) * x;
    return static_cast<unsigned char>(top + (bottom - top) * y + 0.5f);
}

// Curves: [picture][tile row][tile column][value].
__global__ void __launch_bounds__(256) apply_curves(const unsigned char *__restrict__ in, const unsigned char *__restrict__ curves, unsigned char *__restrict__ out) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    const size_t at = (static_cast<size_t>(blockIdx.z) * DOWN + y) * ACROSS + x;
    const unsigned char *own = curves + blockIdx.z * GRID * GRID * 256;
    const Between tx = between(x, TILE_X), ty = between(y, TILE_Y);
    const int v = in[at];
    out[at] = blended(own[(ty.first * GRID + tx.first) * 256 + v], own[(ty.first * GRID + tx.second) * 256 + v], own[(ty.second * GRID + tx.first) * 256 + v],
        own[(ty.second * GRID + tx.second) * 256 + v], tx.share, ty.share);
}

// Four pixels a thread; tiles change at multiples of four only.
__global__ void __launch_bounds__(256) apply_curves_four(const uchar4 *__restrict__ in, const unsigned char *__restrict__ curves, uchar4 *__restrict__ out) {
    const int x = (blockIdx.x * 256 + threadIdx.x) * 4, y = blockIdx.y;
    const size_t at = ((static_cast<size_t>(blockIdx.z) * DOWN + y) * ACROSS + x) / 4;
    const Between tx = between(x, TILE_X), ty = between(y, TILE_Y);
    const unsigned char *own = curves + blockIdx.z * GRID * GRID * 256;
    const unsigned char *a = own + (ty.first * GRID + tx.first) * 256, *b = own + (ty.first * GRID + tx.second) * 256;
    const unsigned char *c = own + (ty.second * GRID + tx.first) * 256, *d = own + (ty.second * GRID + tx.second) * 256;
    const uchar4 v = in[at];
    const float step = 1.f / TILE_X;
    out[at] = make_uchar4(blended(a[v.x], b[v.x], c[v.x], d[v.x], tx.share, ty.share), blended(a[v.y], b[v.y], c[v.y], d[v.y], tx.share + step, ty.share),
        blended(a[v.z], b[v.z], c[v.z], d[v.z], tx.share + 2 * step, ty.share), blended(a[v.w], b[v.w], c[v.w], d[v.w], tx.share + 3 * step, ty.share));
}

// A block stays between the same four tiles, whose curves it holds side by side: one read of four bytes a pixel.
__global__ void __launch_bounds__(256) apply_curves_cell(const uchar4 *__restrict__ in, const unsigned char *__restrict__ curves, uchar4 *__restrict__ out) {
    __shared__ uchar4 held[256];
    const int x = blockIdx.x * (TILE_X / 2) + threadIdx.x % 64 * 4, first_y = blockIdx.y * 32 + threadIdx.x / 64;
    const Between tx = between(x, TILE_X), tile_y = between(first_y, TILE_Y);
    const unsigned char *own = curves + blockIdx.z * GRID * GRID * 256 + threadIdx.x;
    held[threadIdx.x] = make_uchar4(own[(tile_y.first * GRID + tx.first) * 256], own[(tile_y.first * GRID + tx.second) * 256], own[(tile_y.second * GRID + tx.first) * 256],
        own[(tile_y.second * GRID + tx.second) * 256]);
    __syncthreads();
    auto one = [&](unsigned char v, float right, float down) {
        const uchar4 c = held[v];
        return blended(c.x, c.y, c.z, c.w, right, down);
    };
    const float step = 1.f / TILE_X;
#pragma unroll 4
    for (int k = 0; k < 8; k++) {
        const int y = first_y + k * 4;
        const size_t at = ((static_cast<size_t>(blockIdx.z) * DOWN + y) * ACROSS + x) / 4;
        const float down = between(y, TILE_Y).share;
        const uchar4 v = in[at];
        out[at] = make_uchar4(one(v.x, tx.share, down), one(v.y, tx.share + step, down), one(v.z, tx.share + 2 * step, down), one(v.w, tx.share + 3 * step, down));
    }
}

Study curves("tile_curves_applied_byte_by_byte", "images", 16, "contrast curves of 8 x 8 tiles, blended, applied to 16 pictures of 4096 x 2048 bytes",
    "a pixel a thread: loads and stores of a byte",
    {{"four", "four pixels a thread", {"narrow_access"}}, {"cell", "four pixels a thread, the four curves side by side in shared memory", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *in = b.random<unsigned char>(n * ACROSS * DOWN, 0, 256), *curves = b.random<unsigned char>(n * GRID * GRID * 256, 0, 256);
        unsigned char *out = b.output<unsigned char>(n * ACROSS * DOWN);
        b.tolerance = 1.5 / 255;  // one step, where rounding differs
        auto four = reinterpret_cast<const uchar4 *>(in);
        auto out_four = reinterpret_cast<uchar4 *>(out);
        return {{"flawed", launch(apply_curves, dim3(ACROSS / 256, DOWN, n), 256, 0, in, curves, out)},
            {"four", launch(apply_curves_four, dim3(ACROSS / 1024, DOWN, n), 256, 0, four, curves, out_four)},
            {"cell", launch(apply_curves_cell, dim3(2 * GRID, DOWN / 32, n), 256, 0, four, curves, out_four)}};
    });

// --- joint histogram of two scans, each pixel with the weight of a mask: 64 x 64 classes ---

constexpr int CLASSES = 64, CELLS = CLASSES * CLASSES;

__device__ __forceinline__ int cell(unsigned char fixed, unsigned char moving) { return (fixed >> 2) * CLASSES + (moving >> 2); }

struct Scans {
    const uchar4 *fixed, *moving, *mask;
};

template <typename T>
__device__ __forceinline__ void clear(T *cells) {
    for (int i = threadIdx.x; i < CELLS; i += blockDim.x) cells[i] = T(0);
    __syncthreads();
}
template <typename T>
__device__ __forceinline__ void hand_over(const T *cells, float *out) {
    __syncthreads();
    for (int i = threadIdx.x; i < CELLS; i += blockDim.x)
        if (cells[i] != T(0)) atomicAdd(&out[i], static_cast<float>(cells[i]));
}

__global__ void __launch_bounds__(512) joint_histogram(Scans s, float *out, int quads) {
    __shared__ float cells[CELLS];
    clear(cells);
    for (int i = blockIdx.x * 512 + threadIdx.x; i < quads; i += gridDim.x * 512) {
        const uchar4 f = s.fixed[i], m = s.moving[i], w = s.mask[i];
        atomicAdd(&cells[cell(f.x, m.x)], static_cast<float>(w.x));
        atomicAdd(&cells[cell(f.y, m.y)], static_cast<float>(w.y));
        atomicAdd(&cells[cell(f.z, m.z)], static_cast<float>(w.z));
        atomicAdd(&cells[cell(f.w, m.w)], static_cast<float>(w.w));
    }
    hand_over(cells, out);
}
// Weights are bytes: their sums are integers, for which shared memory has atomics of its own.
__global__ void __launch_bounds__(512) joint_histogram_integers(Scans s, float *out, int quads) {
    __shared__ unsigned cells[CELLS];
    clear(cells);
    for (int i = blockIdx.x * 512 + threadIdx.x; i < quads; i += gridDim.x * 512) {
        const uchar4 f = s.fixed[i], m = s.moving[i], w = s.mask[i];
        atomicAdd(&cells[cell(f.x, m.x)], static_cast<unsigned>(w.x));
        atomicAdd(&cells[cell(f.y, m.y)], static_cast<unsigned>(w.y));
        atomicAdd(&cells[cell(f.z, m.z)], static_cast<unsigned>(w.z));
        atomicAdd(&cells[cell(f.w, m.w)], static_cast<unsigned>(w.w));
    }
    hand_over(cells, out);
}
// Neighbours often share a cell: a thread goes along 16 of them and adds where the cell changes.
__global__ void __launch_bounds__(512) joint_histogram_runs(Scans s, float *out, int quads) {
    __shared__ float cells[CELLS];
    clear(cells);
    for (int i = blockIdx.x * 512 + threadIdx.x; i < quads / 4; i += gridDim.x * 512) {
        const uint4 f4 = reinterpret_cast<const uint4 *>(s.fixed)[i], m4 = reinterpret_cast<const uint4 *>(s.moving)[i], w4 = reinterpret_cast<const uint4 *>(s.mask)[i];
        const unsigned f[4] = {f4.x, f4.y, f4.z, f4.w}, m[4] = {m4.x, m4.y, m4.z, m4.w}, w[4] = {w4.x, w4.y, w4.z, w4.w};
        int open = cell(f[0] & 255, m[0] & 255);
        float weight = 0.f;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const int shift = k % 4 * 8, now = cell(f[k / 4] >> shift & 255, m[k / 4] >> shift & 255);
            if (now != open) {
                atomicAdd(&cells[open], weight);
                open = now;
                weight = 0.f;
            }
            weight += static_cast<float>(w[k / 4] >> shift & 255);
        }
        atomicAdd(&cells[open], weight);
    }
    hand_over(cells, out);
}

Study joint("joint_histogram_floats_in_shared", "images", 1 << 25, "joint histogram of two smooth scans of 33 million bytes, weighted by a mask, 64 x 64 classes",
    "an atomic of a float in shared memory for each pixel, where neighbours meet in few cells",
    {{"integers", "the weights added as integers", {"shared_atomics"}}, {"runs", "16 neighbours a thread, added where the cell changes", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> fixed(n), moving(n);
        std::vector<float> wave(8192);
        for (int i = 0; i < 8192; i++) wave[i] = sinf(i * 0.0061f);
        for (long i = 0; i < n; i++) {
            const int x = static_cast<int>(i % 4096), y = static_cast<int>(i / 4096 % 4096);
            const float smooth = 60.f * wave[x] * wave[y + 500];
            const unsigned rough = hash(static_cast<unsigned>(i));
            fixed[i] = static_cast<unsigned char>(128.f + smooth + (rough & 3));
            moving[i] = static_cast<unsigned char>(110.f - 1.3f * smooth + (rough >> 8 & 3));
        }
        auto quads = [](const unsigned char *data) { return reinterpret_cast<const uchar4 *>(data); };
        const Scans s{quads(b.copy(fixed)), quads(b.copy(moving)), quads(b.random<unsigned char>(n, 0, 256))};
        float *out = b.output<float>(CELLS, true);
        const int count = static_cast<int>(n / 4);
        const unsigned grid = 4 * multiprocessors();
        return {{"flawed", launch(joint_histogram, grid, 512, 0, s, out, count)}, {"integers", launch(joint_histogram_integers, grid, 512, 0, s, out, count)},
            {"runs", launch(joint_histogram_runs, grid, 512, 0, s, out, count)}};
    });

// --- a step of smoothing that stops at edges: flows to the eight neighbours ---

#define AT(X, Y) in[static_cast<size_t>(min(max(Y, 0), height - 1)) * width + min(max(X, 0), width - 1)]

__device__ __forceinline__ float flow(float difference, float contrast) { return expf(-(difference / contrast) * (difference / contrast)) * difference; }
__device__ __forceinline__ float quick_flow(float difference, float sharpness) { return exp2f(difference * difference * sharpness) * difference; }

__global__ void __launch_bounds__(256) diffuse(const float *__restrict__ in, float *__restrict__ out, int width, int height, float contrast, float rate) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const float own = AT(x, y);
    float straight = 0.f, oblique = 0.f;
    straight += flow(AT(x - 1, y) - own, contrast);
    straight += flow(AT(x + 1, y) - own, contrast);
    straight += flow(AT(x, y - 1) - own, contrast);
    straight += flow(AT(x, y + 1) - own, contrast);
    oblique += flow(AT(x - 1, y - 1) - own, contrast);
    oblique += flow(AT(x + 1, y - 1) - own, contrast);
    oblique += flow(AT(x - 1, y + 1) - own, contrast);
    oblique += flow(AT(x + 1, y + 1) - own, contrast);
    out[static_cast<size_t>(y) * width + x] = own + rate * (straight + 0.5f * oblique);
}
// The contrast as a factor, which the host has computed, and a power of two.
__global__ void __launch_bounds__(256) diffuse_quick(const float *__restrict__ in, float *__restrict__ out, int width, int height, float sharpness, float rate) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const float own = AT(x, y);
    const float straight = quick_flow(AT(x - 1, y) - own, sharpness) + quick_flow(AT(x + 1, y) - own, sharpness) + quick_flow(AT(x, y - 1) - own, sharpness) + quick_flow(AT(x, y + 1) - own, sharpness);
    const float oblique = quick_flow(AT(x - 1, y - 1) - own, sharpness) + quick_flow(AT(x + 1, y - 1) - own, sharpness) + quick_flow(AT(x - 1, y + 1) - own, sharpness) + quick_flow(AT(x + 1, y + 1) - own, sharpness);
    out[static_cast<size_t>(y) * width + x] = own + rate * (straight + 0.5f * oblique);
}
// A warp goes down 64 rows of 30 pixels (its outer lanes only help) and computes each flow once, for both of its pixels.
__global__ void __launch_bounds__(128) diffuse_once(const float *__restrict__ in, float *__restrict__ out, int width, int height, float contrast, float rate) {
    const int lane = threadIdx.x, x = blockIdx.x * 30 + lane - 1, first = (blockIdx.y * 4 + threadIdx.y) * 64;
    if (first >= height) return;
    const bool writes = lane >= 1 && lane <= 30 && x < width;
    float own = AT(x, first - 1), from_above = 0.f;
    for (int y = first - 1; y < first + 64; y++) {
        const float below = AT(x, y + 1);
        const float right = __shfl_down_sync(~0u, own, 1), below_right = __shfl_down_sync(~0u, below, 1), below_left = __shfl_up_sync(~0u, below, 1);
        const float east = flow(right - own, contrast), south = flow(below - own, contrast);
        const float south_east = flow(below_right - own, contrast), south_west = flow(below_left - own, contrast);
        const float west = -__shfl_up_sync(~0u, east, 1);
        if (writes && y >= first) out[static_cast<size_t>(y) * width + x] = own + rate * (from_above + east + west + south + 0.5f * (south_east + south_west));
        from_above = -south - 0.5f * (__shfl_up_sync(~0u, south_east, 1) + __shfl_down_sync(~0u, south_west, 1));
        own = below;
    }
}

Study smoothing("edges_kept_by_precise_exponentials", "images", 8192, "a step of diffusion that stops at edges, 8192 x 8192 pixels, eight neighbours",
    "eight precise exponentials of quotients for each pixel",
    {{"quick", "powers of two, the contrast as a factor", {"expensive_math"}}, {"once", "each flow once for its two pixels, handed on by shuffles", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = static_cast<int>(n);
        const float *in = b.random<float>(n * n, 0, 1);
        float *out = b.output<float>(n * n);
        const float contrast = 0.4f, sharpness = -1.442695041f / (contrast * contrast);
        const dim3 tile(32, 8);
        return {{"flawed", launch(diffuse, dim3(size / 32, size / 8), tile, 0, in, out, size, size, contrast, 0.1f)},
            {"quick", launch(diffuse_quick, dim3(size / 32, size / 8), tile, 0, in, out, size, size, sharpness, 0.1f)},
            {"once", launch(diffuse_once, dim3(blocks(size, 30), blocks(size, 256)), dim3(32, 4), 0, in, out, size, size, contrast, 0.1f)}};
    });

#undef AT

}  // namespace
