// Pictures, film and meshes. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- smoothing that keeps edges: the mean of the calmest of four squares around a pixel ---

constexpr int REACH = 4, EDGE = REACH + 1;  // a square is EDGE pixels wide and has the pixel in one corner

struct Calmest {
    float variance = 1e30f, mean = 0.f;

    __device__ __forceinline__ void offer(float sum, float squares) {
        constexpr float share = 1.f / (EDGE * EDGE);
        const float m = sum * share, v = squares * share - m * m;
        if (v < variance) variance = v, mean = m;
    }
};
// The picture has REACH pixels more on every side; `pitch` floats are a row of it.
__global__ void __launch_bounds__(256) calmest_square(const float *__restrict__ picture, float *__restrict__ out, int width, int height, int pitch) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    Calmest calmest;
    for (int corner = 0; corner < 4; ++corner) {
        const float *square = picture + (y + (corner >> 1) * REACH) * pitch + x + (corner & 1) * REACH;
        float sum = 0.f, squares = 0.f;
        for (int i = 0; i < EDGE; ++i)
            for (int j = 0; j < EDGE; ++j) {
                const float value = square[i * pitch + j];
                sum += value;
                squares += value * value;
            }
        calmest.offer(sum, squares);
    }
    out[y * width + x] = calmest.mean;
}
__global__ void __launch_bounds__(256) calmest_square_tile(const float *__restrict__ picture, float *__restrict__ out, int width, int height, int pitch) {
    __shared__ float tile[8 + 2 * REACH][32 + 2 * REACH];
    const int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    for (int i = threadIdx.y; i < 8 + 2 * REACH; i += 8)
        for (int j = threadIdx.x; j < 32 + 2 * REACH; j += 32)
            tile[i][j] = y0 + i < height + 2 * REACH && x0 + j < width + 2 * REACH ? picture[(y0 + i) * pitch + x0 + j] : 0.f;
    __syncthreads();
    if (x >= width || y >= height) return;
    Calmest calmest;
#pragma unroll
    for (int corner = 0; corner < 4; ++corner) {
        const int top = threadIdx.y + (corner >> 1) * REACH, left = threadIdx.x + (corner & 1) * REACH;
        float sum = 0.f, squares = 0.f;
#pragma unroll
        for (int i = 0; i < EDGE; ++i)
#pragma unroll
            for (int j = 0; j < EDGE; ++j) {
                const float value = tile[top + i][left + j];
                sum += value;
                squares += value * value;
            }
        calmest.offer(sum, squares);
    }
    out[y * width + x] = calmest.mean;
}
// Sums of five in a row, then of five rows: each square of the tile once, for the four pixels in whose corners it lies.
__global__ void __launch_bounds__(256) calmest_square_sums(const float *__restrict__ picture, float *__restrict__ out, int width, int height, int pitch) {
    constexpr int ROWS = 8 + 2 * REACH, ACROSS = 32 + REACH;
    __shared__ float2 in_row[ROWS][ACROSS], boxes[8 + REACH][ACROSS];
    const int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, x = x0 + threadIdx.x, y = y0 + threadIdx.y, thread = threadIdx.y * 32 + threadIdx.x;
    for (int k = thread; k < ROWS * ACROSS; k += 256) {
        const int i = k / ACROSS, j = k % ACROSS;
        float2 sum = make_float2(0.f, 0.f);
        if (y0 + i < height + 2 * REACH && x0 + j + REACH < width + 2 * REACH) {
            const float *at = picture + (y0 + i) * pitch + x0 + j;
#pragma unroll
            for (int d = 0; d < EDGE; ++d) sum.x += at[d], sum.y += at[d] * at[d];
        }
        in_row[i][j] = sum;
    }
    __syncthreads();
    for (int k = thread; k < (8 + REACH) * ACROSS; k += 256) {
        const int i = k / ACROSS, j = k % ACROSS;
        float2 sum = in_row[i][j];
#pragma unroll
        for (int d = 1; d < EDGE; ++d) sum.x += in_row[i + d][j].x, sum.y += in_row[i + d][j].y;
        boxes[i][j] = sum;
    }
    __syncthreads();
    if (x >= width || y >= height) return;
    Calmest calmest;
#pragma unroll
    for (int corner = 0; corner < 4; ++corner) {
        const float2 box = boxes[threadIdx.y + (corner >> 1) * REACH][threadIdx.x + (corner & 1) * REACH];
        calmest.offer(box.x, box.y);
    }
    out[y * width + x] = calmest.mean;
}

Study calm("calmest_of_four_squares_from_memory", "images", 2400, "each pixel of a picture of 3600 x 2400 becomes the mean of the calmest of four squares of 5 x 5 around it",
    "every thread reads its 81 pixels itself, neighbours nearly the same ones",
    {{"tile", "a block's pixels in shared memory", {"redundant_loads"}},
        {"box_sums", "sums of rows, then of squares, in shared memory; four looked up a pixel", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int height = static_cast<int>(n), width = height * 3 / 2, pitch = width + 2 * REACH;
        std::vector<float> picture(static_cast<size_t>(height + 2 * REACH) * pitch);
        for (int y = 0; y < height + 2 * REACH; ++y)
            for (int x = 0; x < pitch; ++x)
                picture[static_cast<size_t>(y) * pitch + x] = ((x / 37 + y / 29) % 3) * 0.3f + 0.2f * static_cast<float>(hash(y * pitch + x) >> 8) / 16777216.f;
        const float *in = b.copy(picture);
        float *out = b.output<float>(static_cast<size_t>(width) * height);
        b.tolerance = 2e-1;  // where two squares are as calm, rounding decides
        const dim3 grid(blocks(width, 32), blocks(height, 8)), block(32, 8);
        return {{"flawed", launch(calmest_square, grid, block, 0, in, out, width, height, pitch)}, {"tile", launch(calmest_square_tile, grid, block, 0, in, out, width, height, pitch)},
            {"box_sums", launch(calmest_square_sums, grid, block, 0, in, out, width, height, pitch)}};
    });

// --- denoising of patches: Hadamard transform of 8 x 8, small values dropped, transformed back ---

__device__ __forceinline__ void hadamard(float (&v)[8]) {
#pragma unroll
    for (int half = 1; half < 8; half *= 2)
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (!(i & half)) {
                const float a = v[i], c = v[i + half];
                v[i] = a + c, v[i + half] = a - c;
            }
}
template <int PITCH>
__device__ __forceinline__ void transform(float *patch) {
#pragma unroll 1
    for (int axis = 0; axis < 2; ++axis)
#pragma unroll 2
        for (int line = 0; line < 8; ++line) {
            float *at = patch + line * (axis ? 1 : 8);
            const int step = axis ? 8 : 1;
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) v[i] = at[i * step];
            hadamard(v);
#pragma unroll
            for (int i = 0; i < 8; ++i) at[i * step] = v[i];
        }
}
// A thread a patch; patches lie PITCH words apart in shared memory.
template <int PITCH>
__global__ void __launch_bounds__(64) shrink_patches(const float4 *__restrict__ patches, float4 *__restrict__ out, float *__restrict__ weights, float limit) {
    __shared__ float held[64 * PITCH];
    const int thread = threadIdx.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * 64 * 16;
    for (int k = thread; k < 64 * 16; k += 64) {
        const float4 v = patches[first + k];
        float *at = held + k / 16 * PITCH + k % 16 * 4;
        at[0] = v.x, at[1] = v.y, at[2] = v.z, at[3] = v.w;
    }
    __syncthreads();
    float *own = held + thread * PITCH;
    transform<PITCH>(own);
    int kept = 0;
#pragma unroll 8
    for (int i = 0; i < 64; ++i) {
        const bool keep = fabsf(own[i]) > limit;
        kept += keep;
        if (!keep) own[i] = 0.f;
    }
    transform<PITCH>(own);
    weights[blockIdx.x * 64 + thread] = 1.f / fmaxf(static_cast<float>(kept), 1.f);
    __syncthreads();
    for (int k = thread; k < 64 * 16; k += 64) {
        const float *at = held + k / 16 * PITCH + k % 16 * 4;
        out[first + k] = make_float4(at[0] * 0.015625f, at[1] * 0.015625f, at[2] * 0.015625f, at[3] * 0.015625f);
    }
}
// Eight lanes a patch, a row in each lane's registers; across rows by shuffles.
__device__ __forceinline__ void across_lanes(float (&v)[8], int lane) {
#pragma unroll
    for (int half = 1; half < 8; half *= 2)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float other = __shfl_xor_sync(~0u, v[i], half);
            v[i] = lane & half ? other - v[i] : v[i] + other;
        }
}
__global__ void __launch_bounds__(256) shrink_patches_in_lanes(const float4 *__restrict__ patches, float4 *__restrict__ out, float *__restrict__ weights, float limit) {
    const int row = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 8;
    const float4 low = patches[row * 2], high = patches[row * 2 + 1];
    float v[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    hadamard(v);
    across_lanes(v, lane);
    int kept = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const bool keep = fabsf(v[i]) > limit;
        kept += keep;
        v[i] = keep ? v[i] * 0.015625f : 0.f;
    }
    for (int offset = 4; offset; offset /= 2) kept += __shfl_xor_sync(~0u, kept, offset);
    across_lanes(v, lane);
    hadamard(v);
    if (lane == 0) weights[row / 8] = 1.f / fmaxf(static_cast<float>(kept), 1.f);
    out[row * 2] = make_float4(v[0], v[1], v[2], v[3]);
    out[row * 2 + 1] = make_float4(v[4], v[5], v[6], v[7]);
}

Study shrink("patches_shrunk_a_patch_a_lane_in_shared", "images", 1 << 18, "262144 patches of 8 x 8: Hadamard transform, small values dropped, transformed back, and a weight each",
    "a lane transforms a patch in shared memory, 64 words from the next lane's: all 32 want the same bank",
    {{"padded", "patches 65 words apart", {"shared_bank_conflicts"}}, {"row_a_lane", "rows in registers, eight lanes a patch, shuffles across", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *in = reinterpret_cast<const float4 *>(b.random<float>(n * 64, 0.0, 1.0));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * 64));
        float *weights = b.output<float>(n);
        return {{"flawed", launch(shrink_patches<64>, n / 64, 64, 0, in, out, weights, 2.2f)}, {"padded", launch(shrink_patches<65>, n / 64, 64, 0, in, out, weights, 2.2f)},
            {"row_a_lane", launch(shrink_patches_in_lanes, n * 8 / 256, 256, 0, in, out, weights, 2.2f)}};
    });

// --- how far a place is shut in by what is drawn around it, from depths ---

constexpr int DIRECTIONS = 64, TAKEN = 12;

__constant__ float4 directions[DIRECTIONS];  // x, y: where to look, z: how far above, w: weight

// Interleaved gradient noise: which of the directions a pixel starts with.
__device__ __forceinline__ int first_direction(int x, int y) {
    const float f = fmaf(0.06711056f, static_cast<float>(x), 0.00583715f * static_cast<float>(y)), g = __fmul_rn(52.9829189f, f - floorf(f));
    return static_cast<int>((g - floorf(g)) * DIRECTIONS) % DIRECTIONS;
}
template <typename Table>
__device__ __forceinline__ float shut_in(const float *__restrict__ depths, int x, int y, int width, int height, float radius, Table &&table) {
    const float depth = depths[y * width + x], scale = radius * 600.f / depth;
    const int first = first_direction(x, y);
    float sum = 0.f, weights = 0.f;
#pragma unroll 4
    for (int k = 0; k < TAKEN; ++k) {
        const float4 d = table((first + k * 5) % DIRECTIONS);
        const int sx = min(max(x + __float2int_rn(d.x * scale), 0), width - 1), sy = min(max(y + __float2int_rn(d.y * scale), 0), height - 1);
        const float nearer = fmaf(-d.z, radius, depth) - depths[sy * width + sx], range = fminf(1.f, radius / fmaxf(fabsf(nearer), 1e-3f));
        sum += nearer > 0.02f ? d.w * range : 0.f;
        weights += d.w;
    }
    return 1.f - sum / weights;
}
__global__ void __launch_bounds__(256) occlusion(const float *__restrict__ depths, float *__restrict__ out, int width, int height, float radius) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    out[y * width + x] = shut_in(depths, x, y, width, height, radius, [](int k) { return directions[k]; });
}
__global__ void __launch_bounds__(256) occlusion_shared(const float *__restrict__ depths, float *__restrict__ out, int width, int height, float radius) {
    __shared__ float4 held[DIRECTIONS];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, thread = threadIdx.y * 32 + threadIdx.x;
    if (thread < DIRECTIONS) held[thread] = directions[thread];
    __syncthreads();
    if (x >= width || y >= height) return;
    const float4 *table = held;
    out[y * width + x] = shut_in(depths, x, y, width, height, radius, [table](int k) { return table[k]; });
}
__global__ void __launch_bounds__(256) occlusion_loaded(const float *__restrict__ depths, const float4 *__restrict__ table, float *__restrict__ out, int width, int height, float radius) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    out[y * width + x] = shut_in(depths, x, y, width, height, radius, [table](int k) { return table[k]; });
}

Study ambient("ambient_occlusion_directions_in_constants", "rendering", 1440, "how far each of 2560 x 1440 pixels is shut in, from twelve depths around it",
    "a pixel starts at its own place in a table of 64 directions in constant memory: a lane after the other is served",
    {{"in_shared", "the table in shared memory", {"constant_divergence"}}, {"loaded", "the table in global memory, where the first cache holds it", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int height = static_cast<int>(n), width = height * 16 / 9;
        std::vector<float4> table(DIRECTIONS);
        for (int k = 0; k < DIRECTIONS; ++k) {
            const float angle = 2.399963f * static_cast<float>(k), length = 0.1f + 0.9f * static_cast<float>(k * k) / (DIRECTIONS * DIRECTIONS);
            table[k] = make_float4(length * std::cos(angle), length * std::sin(angle), 0.3f * length, 1.2f - length);
        }
        std::vector<float> depths(static_cast<size_t>(width) * height);
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x)
                depths[static_cast<size_t>(y) * width + x] = 12.f + 4.f * std::sin(0.011f * static_cast<float>(x)) * std::cos(0.017f * static_cast<float>(y)) + ((x / 83 + y / 61) % 4 ? 0.f : 1.5f);
        const float *in = b.copy(depths);
        const float4 *loaded = b.copy(table);
        CHECK(cudaMemcpyToSymbol(directions, table.data(), sizeof(directions)));
        float *out = b.output<float>(depths.size());
        const dim3 grid(blocks(width, 32), blocks(height, 8)), block(32, 8);
        return {{"flawed", launch(occlusion, grid, block, 0, in, out, width, height, 0.8f)}, {"in_shared", launch(occlusion_shared, grid, block, 0, in, out, width, height, 0.8f)},
            {"loaded", launch(occlusion_loaded, grid, block, 0, in, loaded, out, width, height, 0.8f)}};
    });

// --- boxes around meshes ---

// Order of floats as that of unsigned numbers.
__device__ __forceinline__ unsigned ordered(float f) {
    const unsigned u = __float_as_uint(f);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}
struct Box {
    float low[3], high[3];

    __device__ __forceinline__ void hold(float x, float y, float z) {
        low[0] = fminf(low[0], x), low[1] = fminf(low[1], y), low[2] = fminf(low[2], z);
        high[0] = fmaxf(high[0], x), high[1] = fmaxf(high[1], y), high[2] = fmaxf(high[2], z);
    }
    __device__ __forceinline__ void over_warp() {
#pragma unroll
        for (int axis = 0; axis < 3; ++axis)
            for (int offset = 16; offset; offset /= 2) {
                low[axis] = fminf(low[axis], __shfl_xor_sync(~0u, low[axis], offset));
                high[axis] = fmaxf(high[axis], __shfl_xor_sync(~0u, high[axis], offset));
            }
    }
};
constexpr Box NOWHERE = {{1e30f, 1e30f, 1e30f}, {-1e30f, -1e30f, -1e30f}};

// The block's box ends in its first thread.
template <int WARPS>
__device__ __forceinline__ void over_block(Box &box) {
    __shared__ Box boxes[WARPS];
    box.over_warp();
    if (threadIdx.x % 32 == 0) boxes[threadIdx.x / 32] = box;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int warp = 1; warp < WARPS; ++warp)
            for (int axis = 0; axis < 3; ++axis) {
                box.low[axis] = fminf(box.low[axis], boxes[warp].low[axis]);
                box.high[axis] = fmaxf(box.high[axis], boxes[warp].high[axis]);
            }
}
struct Vertex {
    float x, y, z;
};
__global__ void __launch_bounds__(256) mesh_boxes(const Vertex *__restrict__ vertices, const int *__restrict__ starts, unsigned *__restrict__ boxes) {
    Box box = NOWHERE;
    for (int i = starts[blockIdx.x] + threadIdx.x; i < starts[blockIdx.x + 1]; i += 256) {
        const Vertex v = vertices[i];
        box.hold(v.x, v.y, v.z);
    }
    over_block<8>(box);
    if (threadIdx.x == 0)
        for (int axis = 0; axis < 3; ++axis) boxes[blockIdx.x * 6 + axis] = ordered(box.low[axis]), boxes[blockIdx.x * 6 + 3 + axis] = ordered(box.high[axis]);
}
// Several blocks a mesh, which meet in atomics.
__global__ void __launch_bounds__(256) mesh_boxes_split(const Vertex *__restrict__ vertices, const int *__restrict__ starts, unsigned *__restrict__ boxes) {
    Box box = NOWHERE;
    for (int i = starts[blockIdx.y] + blockIdx.x * 256 + threadIdx.x; i < starts[blockIdx.y + 1]; i += 256 * gridDim.x) {
        const Vertex v = vertices[i];
        box.hold(v.x, v.y, v.z);
    }
    over_block<8>(box);
    if (threadIdx.x == 0)
        for (int axis = 0; axis < 3; ++axis) {
            atomicMin(boxes + blockIdx.y * 6 + axis, ordered(box.low[axis]));
            atomicMax(boxes + blockIdx.y * 6 + 3 + axis, ordered(box.high[axis]));
        }
}
// A block of 1024 a mesh; four vertices from three words of sixteen bytes. Meshes start at multiples of four vertices.
__global__ void __launch_bounds__(1024) mesh_boxes_wide(const float4 *__restrict__ words, const int *__restrict__ starts, unsigned *__restrict__ boxes) {
    Box box = NOWHERE;
    const int end = starts[blockIdx.x + 1] / 4;
#pragma unroll 2
    for (int i = starts[blockIdx.x] / 4 + threadIdx.x; i < end; i += 1024) {
        const float4 a = words[3 * i], c = words[3 * i + 1], e = words[3 * i + 2];
        box.hold(a.x, a.y, a.z), box.hold(a.w, c.x, c.y), box.hold(c.z, c.w, e.x), box.hold(e.y, e.z, e.w);
    }
    over_block<32>(box);
    if (threadIdx.x == 0)
        for (int axis = 0; axis < 3; ++axis) boxes[blockIdx.x * 6 + axis] = ordered(box.low[axis]), boxes[blockIdx.x * 6 + 3 + axis] = ordered(box.high[axis]);
}

Study mesh("mesh_boxes_a_block_a_mesh", "geometry", 1 << 18, "boxes around 56 meshes of some 262144 vertices each", "56 blocks of 256 threads for all meshes",
    {{"split", "32 blocks a mesh, which meet in atomics", {"small_grid"}}, {"wide", "blocks of 1024, four vertices from three words of sixteen bytes", {"memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int meshes = 56;
        std::vector<int> starts(meshes + 1);
        std::vector<unsigned> none(meshes * 6);
        for (int m = 0; m < meshes; ++m) {
            starts[m + 1] = starts[m] + static_cast<int>((n * 7 / 8 + hash(m) % (n / 4)) / 4 * 4);
            for (int k = 0; k < 6; ++k) none[m * 6 + k] = k < 3 ? ~0u : 0u;
        }
        const int *from = b.copy(starts);
        const Vertex *vertices = reinterpret_cast<const Vertex *>(b.random<float>(static_cast<size_t>(starts[meshes]) * 3, -20.0, 20.0));
        unsigned *boxes = b.changed(b.copy(none), none.size());
        b.tolerance = 0.0;
        return {{"flawed", launch(mesh_boxes, meshes, 256, 0, vertices, from, boxes)}, {"split", launch(mesh_boxes_split, dim3(32, meshes), 256, 0, vertices, from, boxes)},
            {"wide", launch(mesh_boxes_wide, meshes, 1024, 0, reinterpret_cast<const float4 *>(vertices), from, boxes)}};
    });

// --- film: ten bits a sample, three in a word, to planes of sixteen bits ---

// Six pixels are four words: blue, light, red, light, blue, ...; a row has `pitch` words.
__device__ __forceinline__ unsigned sample(const unsigned *group, int k) { return group[k / 3] >> (k % 3 * 10) & 1023u; }

__global__ void __launch_bounds__(256) unpack_film(
    const unsigned *__restrict__ film, unsigned short *__restrict__ light, unsigned short *__restrict__ blue, unsigned short *__restrict__ red, int width, int pitch) {
    const int x = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (x >= width) return;
    const unsigned *group = film + static_cast<size_t>(row) * pitch + x / 6 * 4;
    const int k = x % 6 * 2;
    light[static_cast<size_t>(row) * width + x] = static_cast<unsigned short>(sample(group, k + 1));
    if (x % 2 == 0) {
        const size_t at = (static_cast<size_t>(row) * width + x) / 2;
        blue[at] = static_cast<unsigned short>(sample(group, k));
        red[at] = static_cast<unsigned short>(sample(group, k + 2));
    }
}
// A thread six pixels.
__global__ void __launch_bounds__(256) unpack_film_groups(const uint4 *__restrict__ film, unsigned *__restrict__ light, unsigned short *__restrict__ blue, unsigned short *__restrict__ red, int groups, int pitch) {
    const int g = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (g >= groups) return;
    const uint4 w = film[static_cast<size_t>(row) * pitch + g];
    const size_t at = (static_cast<size_t>(row) * groups + g) * 3;
    light[at] = (w.x >> 10 & 1023u) | (w.y & 1023u) << 16;
    light[at + 1] = (w.y >> 20 & 1023u) | (w.z >> 10 & 1023u) << 16;
    light[at + 2] = (w.w & 1023u) | (w.w >> 20 & 1023u) << 16;
    blue[at] = static_cast<unsigned short>(w.x & 1023u), blue[at + 1] = static_cast<unsigned short>(w.y >> 10 & 1023u), blue[at + 2] = static_cast<unsigned short>(w.z >> 20 & 1023u);
    red[at] = static_cast<unsigned short>(w.x >> 20 & 1023u), red[at + 1] = static_cast<unsigned short>(w.z & 1023u), red[at + 2] = static_cast<unsigned short>(w.w >> 10 & 1023u);
}
// A thread two pixels of light and their colour, as words: neighbouring words to neighbouring lanes.
__global__ void __launch_bounds__(320) unpack_film_by_words(const uint4 *__restrict__ film, unsigned *__restrict__ light, unsigned *__restrict__ blue, unsigned *__restrict__ red, int groups, int pitch) {
    __shared__ uint4 held[320];
    const int first = blockIdx.x * 320, row = blockIdx.y, count = min(320, groups - first);
    if (threadIdx.x < count) held[threadIdx.x] = film[static_cast<size_t>(row) * pitch + first + threadIdx.x];
    __syncthreads();
    const unsigned *words = reinterpret_cast<const unsigned *>(held);
    const size_t from = (static_cast<size_t>(row) * groups + first) * 3;
    for (int i = threadIdx.x; i < count * 3; i += 320) {
        const unsigned *group = words + i / 3 * 4;
        const int k = i % 3 * 4;
        light[from + i] = sample(group, k + 1) | sample(group, k + 3) << 16;
    }
    for (int i = threadIdx.x; i < count * 3 / 2; i += 320) {
        const int a = 2 * i, c = 2 * i + 1;
        const unsigned *left = words + a / 3 * 4, *right = words + c / 3 * 4;
        blue[from / 2 + i] = sample(left, a % 3 * 4) | sample(right, c % 3 * 4) << 16;
        red[from / 2 + i] = sample(left, a % 3 * 4 + 2) | sample(right, c % 3 * 4 + 2) << 16;
    }
}

Study film("film_of_ten_bits_unpacked_a_pixel_a_thread", "video", 24 * 1080, "24 frames of 1920 x 1080 from three samples of ten bits a word to planes of sixteen bits",
    "a pixel a thread: words are read again for each sample, stores are of two bytes, every second lane has the colours to do",
    {{"groups", "six pixels a thread from sixteen bytes", {"narrow_access", "integer_arithmetic"}}, {"by_words", "words in shared memory, two samples a store", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 1920, groups = width / 6, pitch = groups * 4;
        std::vector<unsigned> words(static_cast<size_t>(n) * pitch);
        for (size_t i = 0; i < words.size(); ++i) words[i] = hash(static_cast<unsigned>(i)) & 0x3fffffffu;
        const unsigned *in = b.copy(words);
        unsigned *light = b.output<unsigned>(n * width / 2), *blue = b.output<unsigned>(n * width / 4), *red = b.output<unsigned>(n * width / 4);
        b.tolerance = 0.0;
        unsigned short *l = reinterpret_cast<unsigned short *>(light), *u = reinterpret_cast<unsigned short *>(blue), *v = reinterpret_cast<unsigned short *>(red);
        const uint4 *wide = reinterpret_cast<const uint4 *>(in);
        return {{"flawed", launch(unpack_film, dim3(blocks(width, 256), n), 256, 0, in, l, u, v, width, pitch)},
            {"groups", launch(unpack_film_groups, dim3(blocks(groups, 256), n), 256, 0, wide, light, u, v, groups, pitch / 4)},
            {"by_words", launch(unpack_film_by_words, dim3(blocks(groups, 320), n), 320, 0, wide, light, blue, red, groups, pitch / 4)}};
    });

}  // namespace
