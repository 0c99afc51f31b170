// Images, geometry, rendering and sound waves.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- Gaussian filter of 11 x 11 ---

__global__ void gaussian(const float *in, float *out, int width, int height, float sigma) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.f, weights = 0.f;
    for (int dy = -5; dy <= 5; dy++)
        for (int dx = -5; dx <= 5; dx++) {
            float weight = expf(-(dx * dx + dy * dy) / (2.f * sigma * sigma));
            sum += weight * in[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];
            weights += weight;
        }
    out[y * width + x] = sum / weights;
}
struct Taps {
    float w[11];
};
__global__ void gaussian_taps(const float *__restrict__ in, float *__restrict__ out, int width, int height, Taps taps) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.f;
    int columns[11];
#pragma unroll
    for (int k = 0; k < 11; ++k) columns[k] = min(max(x + k - 5, 0), width - 1);
    for (int dy = 0; dy < 11; ++dy) {
        const float *row = in + min(max(y + dy - 5, 0), height - 1) * width;
        float along = 0.f;
#pragma unroll
        for (int dx = 0; dx < 11; ++dx) along += taps.w[dx] * row[columns[dx]];
        sum += taps.w[dy] * along;
    }
    out[y * width + x] = sum;
}
__global__ void __launch_bounds__(256) gaussian_tile(const float *__restrict__ in, float *__restrict__ out, int width, int height, Taps taps) {
    __shared__ float tile[42][44], along[42][32];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, t = threadIdx.y * 32 + threadIdx.x;
    for (int i = t; i < 42 * 42; i += 256) tile[i / 42][i % 42] = in[min(max(top + i / 42 - 5, 0), height - 1) * width + min(max(left + i % 42 - 5, 0), width - 1)];
    __syncthreads();
    for (int r = threadIdx.y; r < 42; r += 8) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 11; ++k) sum += taps.w[k] * tile[r][threadIdx.x + k];
        along[r][threadIdx.x] = sum;
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 11; ++k) sum += taps.w[k] * along[r + k][threadIdx.x];
        out[(top + r) * width + left + threadIdx.x] = sum;
    }
}

Study gaussian_filters("gaussian_exponentials_each_tap", "images", 2048, "Gaussian filter of 11 x 11 over 2048 x 2048 floats",
    "the 121 weights are computed by each pixel anew, by the library's exponential and a division",
    {{"taps", "weights from the host, one a row and column", {"expensive_math"}}, {"tile", "weights from the host, rows and then columns out of shared memory", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * n), *out = b.output<float>(n * n), sum = 0.f;
        int s = n;
        Taps taps;
        for (int k = 0; k < 11; ++k) sum += taps.w[k] = std::exp(-(k - 5) * (k - 5) / (2.f * 1.7f * 1.7f));
        for (float &w : taps.w) w /= sum;
        b.tolerance = 1e-3;
        return {{"flawed", launch(gaussian, dim3(n / 16, n / 16), dim3(16, 16), 0, in, out, s, s, 1.7f)}, {"taps", launch(gaussian_taps, dim3(n / 32, n / 8), dim3(32, 8), 0, in, out, s, s, taps)},
            {"tile", launch(gaussian_tile, dim3(n / 32, n / 32), dim3(32, 8), 0, in, out, s, s, taps)}};
    });

// --- colours through a cube of 33 x 33 x 33 ---

template <typename Colour>
__device__ uchar4 graded(uchar4 pixel, Colour colour) {
    float r = pixel.x * (32.f / 255.f), g = pixel.y * (32.f / 255.f), b = pixel.z * (32.f / 255.f);
    int i = min(int(r), 31), j = min(int(g), 31), k = min(int(b), 31);
    r -= i, g -= j, b -= k;
    float sum[3] = {};
#pragma unroll
    for (int corner = 0; corner < 8; ++corner) {
        float weight = (corner & 1 ? r : 1.f - r) * (corner & 2 ? g : 1.f - g) * (corner & 4 ? b : 1.f - b);
        float3 c = colour(((k + (corner >> 2)) * 33 + j + (corner >> 1 & 1)) * 33 + i + (corner & 1));
        sum[0] += weight * c.x, sum[1] += weight * c.y, sum[2] += weight * c.z;
    }
    return make_uchar4(int(sum[0] * 255.f + 0.5f), int(sum[1] * 255.f + 0.5f), int(sum[2] * 255.f + 0.5f), pixel.w);
}
__global__ void grade(const uchar4 *in, const float *cube, uchar4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = graded(in[i], [=](int at) { return float3{cube[3 * at], cube[3 * at + 1], cube[3 * at + 2]}; });
}
__global__ void __launch_bounds__(256) grade_padded(const uchar4 *__restrict__ in, const float4 *__restrict__ cube, uchar4 *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = graded(in[i], [=](int at) {
        float4 c = cube[at];
        return float3{c.x, c.y, c.z};
    });
}
__global__ void __launch_bounds__(256) grade_halfs(const uchar4 *__restrict__ in, const uint2 *__restrict__ cube, uchar4 *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = graded(in[i], [=](int at) {
        uint2 raw = cube[at];
        float2 a = __half22float2(*reinterpret_cast<const __half2 *>(&raw.x));
        return float3{a.x, a.y, __low2float(*reinterpret_cast<const __half2 *>(&raw.y))};
    });
}

Study gradings("colour_cube_three_floats", "images", 1 << 23, "colours of 8 million pixels through a cube of 33 entries a side, interpolated",
    "an entry is three floats, 12 bytes apart: 24 loads a pixel at places far from each other",
    {{"padded", "entries of 16 bytes: one load each", {"uncoalesced_access", "narrow_access"}}, {"halfs", "entries of four halfs: one load of 8 bytes each", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int entries = 33 * 33 * 33;
        std::vector<float> three(entries * 3);
        std::vector<float4> four(entries);
        std::vector<__half> halfs(entries * 4);
        for (int i = 0; i < entries; ++i) {
            for (int c = 0; c < 3; ++c) halfs[4 * i + c] = __float2half(three[3 * i + c] = (pairs::hash(3 * i + c) >> 8) / 16777216.f);
            four[i] = {three[3 * i], three[3 * i + 1], three[3 * i + 2], 0.f};
        }
        // A photograph: neighbours are alike.
        std::vector<unsigned char> image(n * 4);
        for (long i = 0; i < n * 4; ++i) image[i] = (unsigned char)(pairs::hash(i / 256 * 4 + i % 4) % 200 + pairs::hash(i) % 50);
        auto *in = (uchar4 *)b.copy(image), *out = (uchar4 *)b.output<unsigned char>(n * 4);
        float *t = b.copy(three);
        float4 *f = b.copy(four);
        __half *h = b.copy(halfs);
        b.tolerance = 0.01;
        return {{"flawed", launch(grade, n / 256, 256, 0, in, t, out, int(n))}, {"padded", launch(grade_padded, n / 256, 256, 0, in, f, out)}, {"halfs", launch(grade_halfs, n / 256, 256, 0, in, (uint2 *)h, out)}};
    });

// --- lines through edge points ---

constexpr int ANGLES = 180, OFFSETS = 2048;
__device__ int offset_of(short2 p, float2 angle) { return __float2int_rn(__fmaf_rn(float(p.x), angle.x, __fmul_rn(float(p.y), angle.y)) * 0.5f) + OFFSETS / 2; }
__global__ void votes(const short2 *point, const float2 *angle, unsigned *vote, int points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
    for (int a = 0; a < ANGLES; a++) atomicAdd(&vote[a * OFFSETS + offset_of(point[i], angle[a])], 1u);
}
template <bool WHOLE>
__global__ void __launch_bounds__(512) votes_shared(const short2 *__restrict__ point, const float2 *__restrict__ angle, unsigned *vote, int points) {
    __shared__ unsigned count[OFFSETS];
    for (int i = threadIdx.x; i < OFFSETS; i += 512) count[i] = 0;
    __syncthreads();
    float2 mine = angle[blockIdx.x];
    for (int i = blockIdx.y * 512 + threadIdx.x; i < points; i += gridDim.y * 512) atomicAdd(&count[offset_of(point[i], mine)], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < OFFSETS; i += 512)
        if (WHOLE) vote[blockIdx.x * OFFSETS + i] = count[i];
        else if (count[i]) atomicAdd(&vote[blockIdx.x * OFFSETS + i], count[i]);
}

Study line_votes("hough_votes_global_atomics", "images", 1 << 17, "votes of 131072 edge points for lines of 180 angles and 2048 offsets",
    "each point adds 180 votes in global memory",
    {{"angles", "a block an angle counts in shared memory", {"global_atomics"}}, {"pieces", "six blocks an angle, their counts added up", {"global_atomics", "small_grid"}}},
    [](Buffers &b, long points) -> Sides {
        std::vector<short2> host(points);
        std::vector<float2> angles(ANGLES);
        for (long i = 0; i < points; ++i) {
            int along = pairs::hash(i) % 1400, line = pairs::hash(i + 7) % 6;  // half of the points on six lines
            host[i] = i % 2 ? short2{short(along), short(100 + 150 * line + along / (line + 3))} : short2{short(along), short(pairs::hash(i + 99) % 1400)};
        }
        for (int a = 0; a < ANGLES; ++a) angles[a] = {std::cos(a * 0.0174533f), std::sin(a * 0.0174533f)};
        short2 *point = b.copy(host);
        float2 *angle = b.copy(angles);
        auto *vote = b.output<unsigned>(ANGLES * OFFSETS, true);
        b.tolerance = 1e-3;
        int n = points;
        return {{"flawed", launch(votes, points / 128, 128, 0, point, angle, vote, n)}, {"angles", launch(votes_shared<true>, ANGLES, 512, 0, point, angle, vote, n)}, {"pieces", launch(votes_shared<false>, dim3(ANGLES, 6), 512, 0, point, angle, vote, n)}};
    });

// --- distance to the nearest marked pixel of the row ---

__global__ void nearest_marked(const unsigned char *marked, int *distance, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * width;
    int d = 0;
    while (d < width) {
        if (x - d >= 0 && marked[row + x - d]) break;
        if (x + d < width && marked[row + x + d]) break;
        d++;
    }
    distance[row + x] = d;
}
__global__ void __launch_bounds__(256) nearest_marked_bits(const unsigned char *__restrict__ marked, int *__restrict__ distance, int width) {
    __shared__ unsigned bits[128];
    int row = blockIdx.x * width, words = width / 32;
    for (int x = threadIdx.x; x < width; x += 256) {
        unsigned vote = __ballot_sync(~0u, marked[row + x] != 0);
        if (threadIdx.x % 32 == 0) bits[x / 32] = vote;
    }
    __syncthreads();
    for (int x = threadIdx.x; x < width; x += 256) {
        int lane = x % 32, w = x / 32, best = width;
        unsigned before = bits[w] << (31 - lane), after = bits[w] >> lane;
        int left = w, right = w;
        while (!before && left > 0) before = bits[--left];
        if (before) best = left == w ? __clz(before) : x - (left * 32 + 31 - __clz(before));
        while (!after && right < words - 1) after = bits[++right];
        if (after) best = min(best, right == w ? __ffs(after) - 1 : right * 32 + __ffs(after) - 1 - x);
        distance[row + x] = best;
    }
}
__global__ void __launch_bounds__(256) nearest_marked_scans(const unsigned char *__restrict__ marked, int *__restrict__ distance, int width) {
    __shared__ int last[8], first[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, base = t * 16, row = blockIdx.x * width;  // rows of 4096, 16 pixels a thread
    uint4 raw = *reinterpret_cast<const uint4 *>(&marked[row + base]);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
    int highest = -100000, lowest = 100000, left[16];
#pragma unroll
    for (int k = 0; k < 16; ++k)
        if (words[k / 4] >> k % 4 * 8 & 255) highest = base + k, lowest = min(lowest, base + k);
    int up = highest, down = lowest;  // the last one up to this thread, the first one from it on
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        int a = __shfl_up_sync(~0u, up, d), b = __shfl_down_sync(~0u, down, d);
        if (lane >= d) up = max(up, a);
        if (lane + d < 32) down = min(down, b);
    }
    if (lane == 31) last[warp] = up;
    if (lane == 0) first[warp] = down;
    __syncthreads();
    int before = __shfl_up_sync(~0u, up, 1), after = __shfl_down_sync(~0u, down, 1);
    if (lane == 0) before = -100000;
    if (lane == 31) after = 100000;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
        if (w < warp) before = max(before, last[w]);
        if (w > warp) after = min(after, first[w]);
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        if (words[k / 4] >> k % 4 * 8 & 255) before = base + k;
        left[k] = base + k - before;
    }
    int result[16];
#pragma unroll
    for (int k = 15; k >= 0; --k) {
        if (words[k / 4] >> k % 4 * 8 & 255) after = base + k;
        result[k] = min(width, min(left[k], after - base - k));
    }
#pragma unroll
    for (int k = 0; k < 16; k += 4) *reinterpret_cast<int4 *>(&distance[row + base + k]) = {result[k], result[k + 1], result[k + 2], result[k + 3]};
}

Study nearest_pixels("nearest_marked_walks_the_row", "images", 2048, "distance of each of 2048 x 4096 pixels to the nearest marked one of its row",
    "each thread walks to both sides until it meets a marked pixel, a byte at a time",
    {{"bits", "a row's marks as bits in shared memory, 32 looked at together", {"redundant_loads", "narrow_access", "branch_divergence"}}, {"scans", "the last mark before and the first after, by scans over 16 pixels a thread", {"redundant_loads", "narrow_access", "branch_divergence"}}},
    [](Buffers &b, long rows) -> Sides {
        int width = 4096;
        std::vector<unsigned char> host(rows * width);
        for (size_t i = 0; i < host.size(); ++i) host[i] = pairs::hash(i) % 48 == 0;
        auto *marked = b.copy(host);
        int *distance = b.output<int>(rows * width);
        b.tolerance = 0;
        return {{"flawed", launch(nearest_marked, dim3(width / 128, rows), 128, 0, marked, distance, width)}, {"bits", launch(nearest_marked_bits, rows, 256, 0, marked, distance, width)}, {"scans", launch(nearest_marked_scans, rows, 256, 0, marked, distance, width)}};
    });

// --- a lens' distortion taken out ---

__global__ void undistort(const float *in, float *out, int size, float k1, float k2, float k3) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, plane = blockIdx.z * size * size;
    float u = (x - size / 2) / (size / 2.f), v = (y - size / 2) / (size / 2.f), r = sqrtf(u * u + v * v);
    float stretch = 1.f + k1 * powf(r, 2.f) + k2 * powf(r, 4.f) + k3 * powf(r, 6.f);
    float sx = fminf(fmaxf(u * stretch * size / 2 + size / 2, 0.f), size - 1.01f), sy = fminf(fmaxf(v * stretch * size / 2 + size / 2, 0.f), size - 1.01f);
    int ix = int(sx), iy = int(sy);
    float fx = sx - ix, fy = sy - iy;
    const float *p = in + plane + iy * size + ix;
    out[plane + y * size + x] = (p[0] * (1 - fx) + p[1] * fx) * (1 - fy) + (p[size] * (1 - fx) + p[size + 1] * fx) * fy;
}
template <int PLANES>
__global__ void undistort_horner(const float *__restrict__ in, float *__restrict__ out, int size, float k1, float k2, float k3) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, first = PLANES == 1 ? blockIdx.z : 0, half = size / 2;
    float inverse = __fdividef(1.f, float(half)), u = (x - half) * inverse, v = (y - half) * inverse, r2 = u * u + v * v;
    float stretch = (1.f + r2 * (k1 + r2 * (k2 + r2 * k3))) * half;
    float sx = fminf(fmaxf(u * stretch + half, 0.f), size - 1.01f), sy = fminf(fmaxf(v * stretch + half, 0.f), size - 1.01f);
    int ix = int(sx), iy = int(sy);
    float fx = sx - ix, fy = sy - iy;
#pragma unroll
    for (int c = first; c < first + PLANES; ++c) {
        const float *p = in + c * size * size + iy * size + ix;
        out[c * size * size + y * size + x] = (p[0] * (1 - fx) + p[1] * fx) * (1 - fy) + (p[size] * (1 - fx) + p[size + 1] * fx) * fy;
    }
}

Study undistortion("undistort_powers_each_channel", "images", 2048, "a lens' distortion taken out of three planes of 2048 x 2048 floats",
    "powers by the library's function, divisions and a root, for each of the channels anew",
    {{"horner", "a polynomial in the square of the radius", {"expensive_math"}}, {"once", "the polynomial, once for the three channels of a pixel", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *coarse = b.random<float>(3 * n * n), *out = b.output<float>(3 * n * n);
        int s = n;
        b.tolerance = 5e-3;  // noise is steep: a coordinate's rounding counts
        dim3 block(32, 8);
        return {{"flawed", launch(undistort, dim3(n / 32, n / 8, 3), block, 0, coarse, out, s, -0.1f, 0.05f, -0.02f)}, {"horner", launch(undistort_horner<1>, dim3(n / 32, n / 8, 3), block, 0, coarse, out, s, -0.1f, 0.05f, -0.02f)},
            {"once", launch(undistort_horner<3>, dim3(n / 32, n / 8), block, 0, coarse, out, s, -0.1f, 0.05f, -0.02f)}};
    });

// --- vertices that follow four bones each ---

__constant__ float4 bone_rows[128 * 3];
__device__ float3 placed(float4 p, float4 a, float4 b, float4 c) {
    return {a.x * p.x + a.y * p.y + a.z * p.z + a.w, b.x * p.x + b.y * p.y + b.z * p.z + b.w, c.x * p.x + c.y * p.y + c.z * p.z + c.w};
}
template <typename Row>
__device__ float4 skinned(float4 p, uchar4 bone, float4 weight, Row row) {
    const int index[4] = {bone.x, bone.y, bone.z, bone.w};
    const float share[4] = {weight.x, weight.y, weight.z, weight.w};
    float4 result{};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float3 q = placed(p, row(3 * index[k]), row(3 * index[k] + 1), row(3 * index[k] + 2));
        result.x += share[k] * q.x, result.y += share[k] * q.y, result.z += share[k] * q.z;
    }
    return result;
}
__global__ void skin(const float4 *position, const uchar4 *bone, const float4 *weight, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = skinned(position[i], bone[i], weight[i], [](int r) { return bone_rows[r]; });
}
__global__ void __launch_bounds__(256) skin_shared(const float4 *__restrict__ position, const uchar4 *__restrict__ bone, const float4 *__restrict__ weight, const float4 *__restrict__ rows, float4 *__restrict__ out, int n) {
    __shared__ float4 mine[384];
    for (int i = threadIdx.x; i < 384; i += 256) mine[i] = rows[i];
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) out[i] = skinned(position[i], bone[i], weight[i], [](int r) { return mine[r]; });
}
__global__ void __launch_bounds__(256) skin_cached(const float4 *__restrict__ position, const uchar4 *__restrict__ bone, const float4 *__restrict__ weight, const float4 *__restrict__ rows, float4 *__restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = skinned(position[i], bone[i], weight[i], [=](int r) { return __ldg(&rows[r]); });
}

Study skins("skinning_bones_in_constants", "rendering", 1 << 21, "2 million vertices moved by four of 128 bones each",
    "lanes read different bones' matrices out of the constant bank",
    {{"shared", "matrices in shared memory", {"constant_divergence"}}, {"cached", "matrices in global memory, 16 bytes a load", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> bones(4 * n);
        for (long i = 0; i < 4 * n; ++i) bones[i] = (i / 256 + pairs::hash(i) % 12) % 128;  // neighbours hang on neighbouring bones
        auto *bone = (uchar4 *)b.copy(bones);
        auto *position = (float4 *)b.random<float>(4 * n), *weight = (float4 *)b.random<float>(4 * n, 0, 0.5), *rows = (float4 *)b.random<float>(128 * 12), *out = (float4 *)b.output<float>(4 * n);
        CHECK(cudaMemcpyToSymbol(bone_rows, rows, sizeof bone_rows, 0, cudaMemcpyDeviceToDevice));
        int count = n;
        return {{"flawed", launch(skin, n / 256, 256, 0, position, bone, weight, out, count)}, {"shared", launch(skin_shared, 132 * 8, 256, 0, position, bone, weight, rows, out, count)},
            {"cached", launch(skin_cached, n / 256, 256, 0, position, bone, weight, rows, out, count)}};
    });

// --- distance of glyphs' texels to an outline ---

__global__ void outline_distance(const float2 *corner, float *distance, int corners, int size) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float best = 1e30f;
    for (int k = 0; k < corners; k++) {
        float2 a = corner[k], b = corner[(k + 1) % corners];
        float length = sqrtf((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y));
        float ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;
        float along = fminf(fmaxf((x - a.x) * ux + (y - a.y) * uy, 0.f), length);
        float dx = x - a.x - along * ux, dy = y - a.y - along * uy;
        best = fminf(best, sqrtf(dx * dx + dy * dy));
    }
    distance[y * size + x] = best;
}
template <bool SHARED>
__global__ void __launch_bounds__(256) outline_squares(const float2 *__restrict__ corner, float *__restrict__ distance, int corners, int size) {
    __shared__ float4 edge[256];  // start and direction, scaled so that along runs from 0 to 1
    __shared__ float inverse[256];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, t = threadIdx.y * blockDim.x + threadIdx.x;
    float best = 1e30f;
    if constexpr (SHARED) {
        if (t < corners) {
            float2 a = corner[t], b = corner[t + 1 < corners ? t + 1 : 0];
            edge[t] = {a.x, a.y, b.x - a.x, b.y - a.y};
            inverse[t] = 1.f / ((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y));
        }
        __syncthreads();
    }
    float2 a = corner[corners - 1];
#pragma unroll 4
    for (int k = 0; k < corners; ++k) {
        float4 e;
        float scale;
        if constexpr (SHARED) e = edge[k], scale = inverse[k];
        else {
            float2 b = corner[k];
            e = {a.x, a.y, b.x - a.x, b.y - a.y};
            scale = __fdividef(1.f, e.z * e.z + e.w * e.w);
            a = b;
        }
        float px = x - e.x, py = y - e.y, along = __saturatef((px * e.z + py * e.w) * scale), dx = px - along * e.z, dy = py - along * e.w;
        best = fminf(best, dx * dx + dy * dy);
    }
    distance[y * size + x] = sqrtf(best);
}

Study outlines("outline_distance_root_each_edge", "rendering", 1024, "distances of 1024 x 1024 texels to an outline of 200 edges",
    "two roots, two divisions and a remainder for each edge, whose length is the same for all texels",
    {{"squares", "squares compared, one fast reciprocal an edge", {"expensive_math", "integer_arithmetic"}}, {"edges", "squares compared, edges prepared once a block in shared memory", {"expensive_math", "integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> host(200);
        for (int k = 0; k < 200; ++k) host[k] = {512 + (300 + 80 * std::sin(k * 0.7f)) * std::cos(k * 0.0314159f), 512 + (300 + 80 * std::sin(k * 0.7f)) * std::sin(k * 0.0314159f)};
        float2 *corner = b.copy(host);
        float *distance = b.output<float>(n * n);
        int s = n;
        b.tolerance = 1e-3;
        return {{"flawed", launch(outline_distance, dim3(n / 16, n / 16), dim3(16, 16), 0, corner, distance, 200, s)}, {"squares", launch(outline_squares<false>, dim3(n / 32, n / 8), dim3(32, 8), 0, corner, distance, 200, s)},
            {"edges", launch(outline_squares<true>, dim3(n / 32, n / 8), dim3(32, 8), 0, corner, distance, 200, s)}};
    });

// --- normals of a mesh's vertices ---

__device__ float3 face_normal(const float4 *position, int3 f) {
    float4 a = position[f.x], b = position[f.y], c = position[f.z];
    float ux = b.x - a.x, uy = b.y - a.y, uz = b.z - a.z, vx = c.x - a.x, vy = c.y - a.y, vz = c.z - a.z;
    return {uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx};
}
__global__ void vertex_normals(const float4 *position, const int3 *face, float *normal, int faces) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= faces) return;
    int3 f = face[i];
    float3 n = face_normal(position, f);
    int corner[3] = {f.x, f.y, f.z};
    for (int k = 0; k < 3; k++) {
        atomicAdd(&normal[4 * corner[k]], n.x);
        atomicAdd(&normal[4 * corner[k] + 1], n.y);
        atomicAdd(&normal[4 * corner[k] + 2], n.z);
    }
}
__global__ void vertex_normals_vectors(const float4 *__restrict__ position, const int3 *__restrict__ face, float4 *normal, int faces) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= faces) return;
    int3 f = face[i];
    float3 n = face_normal(position, f);
    float4 four = {n.x, n.y, n.z, 0.f};
    atomicAdd(&normal[f.x], four), atomicAdd(&normal[f.y], four), atomicAdd(&normal[f.z], four);
}
__global__ void __launch_bounds__(256) vertex_normals_gather(const float4 *__restrict__ position, const int3 *__restrict__ face, const int *__restrict__ first, const int *__restrict__ around, float4 *__restrict__ normal, int vertices) {
    int v = blockIdx.x * 256 + threadIdx.x;
    if (v >= vertices) return;
    float4 sum{};
    int end = first[v + 1];
    for (int k = first[v]; k < end; ++k) {
        float3 n = face_normal(position, face[around[k]]);
        sum.x += n.x, sum.y += n.y, sum.z += n.z;
    }
    normal[v] = sum;
}

Study mesh_normals("vertex_normals_nine_atomics", "rendering", 1024, "normals of a million vertices of a grid of 2 million triangles",
    "nine atomics a triangle",
    {{"vectors", "an atomic of 16 bytes a corner", {"global_atomics"}}, {"gather", "a thread a vertex computes the normals of its triangles", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int3> face;
        for (long y = 0; y + 1 < n; ++y)
            for (long x = 0; x + 1 < n; ++x) {
                int v = int(y * n + x), s = int(n);
                face.push_back({v, v + 1, v + s}), face.push_back({v + 1, v + s + 1, v + s});
            }
        std::vector<int> first(n * n + 1), around(face.size() * 3);
        for (int3 f : face) ++first[f.x + 1], ++first[f.y + 1], ++first[f.z + 1];
        for (long v = 0; v < n * n; ++v) first[v + 1] += first[v];
        std::vector<int> place(first);
        for (size_t i = 0; i < face.size(); ++i)
            for (int v : {face[i].x, face[i].y, face[i].z}) around[place[v]++] = int(i);
        int3 *f = b.copy(face);
        int *at = b.copy(first), *list = b.copy(around), faces = int(face.size());
        auto *position = (float4 *)b.random<float>(4 * n * n);
        float *normal = b.output<float>(4 * n * n, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(vertex_normals, blocks(faces, 256), 256, 0, position, f, normal, faces)}, {"vectors", launch(vertex_normals_vectors, blocks(faces, 256), 256, 0, position, f, (float4 *)normal, faces)},
            {"gather", launch(vertex_normals_gather, blocks(n * n, 256), 256, 0, position, f, at, list, (float4 *)normal, int(n * n))}};
    });

// --- frames of a signal put together again ---

__global__ void overlap_add(const float *frame, const float *window, float *signal, int frames, int length, int hop) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= frames * length) return;
    int f = i / length, k = i % length;
    atomicAdd(&signal[f * hop + k], frame[i] * window[k]);
}
__global__ void overlap_gather(const float *__restrict__ frame, const float *__restrict__ window, float *__restrict__ signal, int frames) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = i / 256, k = i % 256;  // frames of 1024, a hop of 256
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        int f = last - j;
        if (f >= 0 && f < frames) sum += frame[f * 1024 + k + 256 * j] * window[k + 256 * j];
    }
    signal[i] = sum;
}
__global__ void __launch_bounds__(64) overlap_carried(const float4 *__restrict__ frame, const float4 *__restrict__ window, float4 *__restrict__ signal, int frames, int each) {
    float4 w[4], open[4] = {};  // what the last four frames add to this thread's place of the next four hops
#pragma unroll
    for (int j = 0; j < 4; ++j) w[j] = window[threadIdx.x + 64 * j];
    int first = blockIdx.x * each;
    for (int f = first - 3; f < first + each; ++f) {
        if (f >= 0 && f < frames) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float4 v = frame[f * 256 + threadIdx.x + 64 * j];
                open[j].x += v.x * w[j].x, open[j].y += v.y * w[j].y, open[j].z += v.z * w[j].z, open[j].w += v.w * w[j].w;
            }
        }
        if (f >= first) signal[f * 64 + threadIdx.x] = open[0];
        open[0] = open[1], open[1] = open[2], open[2] = open[3], open[3] = {};
    }
}

Study overlaps("overlap_add_atomics", "audio", 32768, "32768 windowed frames of 1024 samples added up, 256 samples apart",
    "an atomic for each sample of each frame",
    {{"gather", "a thread a sample of the signal reads its four frames", {"global_atomics"}}, {"carried", "four samples a thread, which goes along 16 frames and carries open sums", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long frames) -> Sides {
        float *frame = b.random<float>(frames * 1024), *window = b.random<float>(1024, 0, 1), *signal = b.output<float>((frames + 16) * 256, true);
        int n = frames;
        b.tolerance = 1e-3;
        return {{"flawed", launch(overlap_add, frames * 4, 256, 0, frame, window, signal, n, 1024, 256)}, {"gather", launch(overlap_gather, frames + 16, 256, 0, frame, window, signal, n)},
            {"carried", launch(overlap_carried, (frames + 16) / 16, 64, 0, (float4 *)frame, (float4 *)window, (float4 *)signal, n, 16)}};
    });

// --- autocorrelations of frames ---

__global__ void autocorrelation(const float *signal, float *out, int length, int lags) {
    int lag = threadIdx.x;
    const float *x = signal + blockIdx.x * length;
    float sum = 0.f;
    for (int i = 0; i + lag < length; i++) sum += x[i] * x[i + lag];
    out[blockIdx.x * lags + lag] = sum / length;
}
__global__ void __launch_bounds__(256) autocorrelation_shared(const float *__restrict__ signal, float *__restrict__ out, int length, int lags) {
    __shared__ __align__(16) float x[1024 + 256];
    int lag = threadIdx.x;
    for (int i = threadIdx.x; i < 1280; i += 256) x[i] = i < length ? signal[blockIdx.x * length + i] : 0.f;
    __syncthreads();
    float sum[4] = {};
#pragma unroll 2
    for (int i = 0; i < 1024; i += 4) {
        float4 v = *reinterpret_cast<const float4 *>(&x[i]);
        sum[0] += v.x * x[i + lag], sum[1] += v.y * x[i + lag + 1], sum[2] += v.z * x[i + lag + 2], sum[3] += v.w * x[i + lag + 3];
    }
    out[blockIdx.x * lags + lag] = (sum[0] + sum[1] + sum[2] + sum[3]) / length;
}
__global__ void __launch_bounds__(256) autocorrelation_blocked(const float *__restrict__ signal, float *__restrict__ out, int length, int lags) {
    __shared__ __align__(16) float x[1024 + 264], part[4][256];
    int group = threadIdx.x % 64, quarter = threadIdx.x / 64, lag = group * 4;  // four lags a thread, a quarter of the frame
    for (int i = threadIdx.x; i < 1288; i += 256) x[i] = i < length ? signal[blockIdx.x * length + i] : 0.f;
    __syncthreads();
    float sum[4] = {};
    float4 next = *reinterpret_cast<const float4 *>(&x[quarter * 256 + lag]);
#pragma unroll 4
    for (int i = quarter * 256; i < quarter * 256 + 256; i += 4) {
        float4 v = *reinterpret_cast<const float4 *>(&x[i]), low = next;
        next = *reinterpret_cast<const float4 *>(&x[i + lag + 4]);
        sum[0] += v.x * low.x + v.y * low.y + v.z * low.z + v.w * low.w;
        sum[1] += v.x * low.y + v.y * low.z + v.z * low.w + v.w * next.x;
        sum[2] += v.x * low.z + v.y * low.w + v.z * next.x + v.w * next.y;
        sum[3] += v.x * low.w + v.y * next.x + v.z * next.y + v.w * next.z;
    }
    *reinterpret_cast<float4 *>(&part[quarter][lag]) = {sum[0], sum[1], sum[2], sum[3]};
    __syncthreads();
    int t = threadIdx.x;
    out[blockIdx.x * lags + t] = (part[0][t] + part[1][t] + part[2][t] + part[3][t]) / length;
}

Study autocorrelations("autocorrelation_lag_per_thread", "audio", 8192, "autocorrelations for 256 lags of 8192 frames of 1024 samples",
    "two loads of a float from global memory for each product, sums in one chain, lanes that end at different samples",
    {{"shared", "the frame in shared memory, four sums", {"redundant_loads", "instruction_latency"}}, {"blocked", "four lags a thread, 16 products for two loads", {"redundant_loads", "instruction_latency"}}},
    [](Buffers &b, long frames) -> Sides {
        float *signal = b.random<float>(frames * 1024), *out = b.output<float>(frames * 256);
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, frames, 256, 0, signal, out, 1024, 256); };
        return {{"flawed", run(autocorrelation)}, {"shared", run(autocorrelation_shared)}, {"blocked", run(autocorrelation_blocked)}};
    });

}  // namespace
