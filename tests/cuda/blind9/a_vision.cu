// Computer vision: descriptors of corners, depth fused into a volume, distances to marks, surfaces from samples, slices
// from projections. Each kernel has one weakness and two or three ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- binary descriptors of corners: 256 comparisons of two pixels each, turned by the corner's angle ---

struct Corner {
    float x, y, angle, response;
};
struct Grey {
    const unsigned char *data;
    int width, height, pitch;
    __device__ __forceinline__ unsigned char operator()(int x, int y) const {
        return data[min(max(y, 0), height - 1) * pitch + min(max(x, 0), width - 1)];
    }
};
// Where a point of the pattern lies in the picture. Fused by hand, so that all kernels compare the very same pixels.
__device__ __forceinline__ int2 turned(Corner c, float cosine, float sine, float x, float y) {
    return make_int2(__float2int_rn(fmaf(cosine, x, fmaf(-sine, y, c.x))), __float2int_rn(fmaf(sine, x, fmaf(cosine, y, c.y))));
}

__global__ void describe_corners(Grey image, const Corner *corners, const char4 *pattern, unsigned *descriptors, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Corner c = corners[i];
    float sine, cosine;
    sincosf(c.angle, &sine, &cosine);
    for (int word = 0; word < 8; ++word) {
        unsigned bits = 0;
        for (int k = 0; k < 32; ++k) {
            char4 test = pattern[32 * word + k];
            int2 a = turned(c, cosine, sine, test.x, test.y), b = turned(c, cosine, sine, test.z, test.w);
            bits |= static_cast<unsigned>(image(a.x, a.y) < image(b.x, b.y)) << k;
        }
        descriptors[8 * i + word] = bits;
    }
}
// A warp takes a corner: a lane one comparison of each word.
__global__ void __launch_bounds__(128) describe_corners_by_warps(Grey image, const Corner *__restrict__ corners, const char4 *__restrict__ pattern,
    unsigned *__restrict__ descriptors, int count) {
    int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    Corner c = corners[i];
    float sine, cosine;
    sincosf(c.angle, &sine, &cosine);
    unsigned own = 0;
#pragma unroll
    for (int word = 0; word < 8; ++word) {
        char4 test = pattern[32 * word + lane];
        int2 a = turned(c, cosine, sine, test.x, test.y), b = turned(c, cosine, sine, test.z, test.w);
        unsigned bits = __ballot_sync(~0u, image(a.x, a.y) < image(b.x, b.y));
        if (lane == word) own = bits;
    }
    if (lane < 8) descriptors[8 * i + lane] = own;
}
// A block takes a corner: the 40 x 40 pixels around it into shared memory, a thread a comparison.
constexpr int AROUND = 40;

__global__ void __launch_bounds__(256) describe_corners_from_patch(Grey image, const Corner *__restrict__ corners, const char4 *__restrict__ pattern,
    unsigned *__restrict__ descriptors) {
    __shared__ unsigned char patch[AROUND * AROUND];
    Corner c = corners[blockIdx.x];
    int left = static_cast<int>(floorf(c.x)) - AROUND / 2 + 1, top = static_cast<int>(floorf(c.y)) - AROUND / 2 + 1;
    for (int j = threadIdx.x; j < AROUND * AROUND; j += 256) patch[j] = image(left + j % AROUND, top + j / AROUND);
    float sine, cosine;
    sincosf(c.angle, &sine, &cosine);
    char4 test = pattern[threadIdx.x];
    int2 a = turned(c, cosine, sine, test.x, test.y), b = turned(c, cosine, sine, test.z, test.w);
    __syncthreads();
    unsigned bits = __ballot_sync(~0u, patch[(a.y - top) * AROUND + a.x - left] < patch[(b.y - top) * AROUND + b.x - left]);
    if (threadIdx.x % 32 == 0) descriptors[8 * blockIdx.x + threadIdx.x / 32] = bits;
}

Study descriptors("corner_descriptors_thread_each", "vision", 16384, "turned binary descriptors of 256 bits at 16384 corners of a picture of 4096 x 3072",
    "a thread takes all 256 comparisons of its corner: 64 blocks, and each lane in a part of the picture of its own",
    {{"by_warps", "a warp a corner, a comparison a lane, bits by a vote", {"small_grid", "memory_latency", "uncoalesced_access"}},
        {"from_patch", "a block a corner, its surroundings in shared memory first", {"small_grid", "memory_latency", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 4096, height = 3072;
        std::vector<Corner> list(n);
        std::vector<char4> tests(256);
        auto draw = [](unsigned i) { return static_cast<float>(pairs::hash(i) * 0x1p-32); };
        for (unsigned i = 0; i < n; ++i) list[i] = {20.f + draw(4 * i) * (width - 41), 20.f + draw(4 * i + 1) * (height - 41), 6.28f * draw(4 * i + 2), draw(4 * i + 3)};
        std::sort(list.begin(), list.end(), [](Corner p, Corner q) { return p.response > q.response; });
        auto place = [&](unsigned i) { return static_cast<signed char>(static_cast<int>(pairs::hash(i + 99) % 27) - 13); };
        for (unsigned i = 0; i < 256; ++i) tests[i] = make_char4(place(4 * i), place(4 * i + 1), place(4 * i + 2), place(4 * i + 3));
        Grey image{b.random<unsigned char>(width * height, 0, 256), width, height, width};
        const Corner *corners = b.copy(list);
        const char4 *pattern = b.copy(tests);
        unsigned *out = b.output<unsigned>(8 * n);
        return {{"flawed", launch(describe_corners, blocks(n, 256), 256, 0, image, corners, pattern, out, n)},
            {"by_warps", launch(describe_corners_by_warps, blocks(n, 4), 128, 0, image, corners, pattern, out, n)},
            {"from_patch", launch(describe_corners_from_patch, n, 256, 0, image, corners, pattern, out)}};
    });

// --- a depth map fused into a volume of truncated distances ---

struct Camera {
    float fx, fy, cx, cy;
    int width, height;
    float pose[12];  // world to camera, row by row
};
struct Volume {
    float origin[3], side, truncation;
    int size;
};
// One voxel (distance and weight) seen by the camera. Fused by hand, so that all kernels look at the same pixel.
__device__ __forceinline__ bool fuse(Volume volume, const Camera &camera, const float *depth, int x, int y, int z, __half2 &voxel) {
    float px = fmaf(x + 0.5f, volume.side, volume.origin[0]), py = fmaf(y + 0.5f, volume.side, volume.origin[1]), pz = fmaf(z + 0.5f, volume.side, volume.origin[2]);
    const float *p = camera.pose;
    float cx = fmaf(p[0], px, fmaf(p[1], py, fmaf(p[2], pz, p[3]))), cy = fmaf(p[4], px, fmaf(p[5], py, fmaf(p[6], pz, p[7])));
    float cz = fmaf(p[8], px, fmaf(p[9], py, fmaf(p[10], pz, p[11])));
    if (cz < 0.1f) return false;
    int u = __float2int_rn(fmaf(camera.fx, __fdiv_rn(cx, cz), camera.cx)), v = __float2int_rn(fmaf(camera.fy, __fdiv_rn(cy, cz), camera.cy));
    if (u < 0 || v < 0 || u >= camera.width || v >= camera.height) return false;
    float seen = depth[v * camera.width + u];
    if (seen <= 0.f || seen - cz < -volume.truncation) return false;
    float distance = fminf(1.f, __fdiv_rn(seen - cz, volume.truncation));
    float2 old = __half22float2(voxel);
    voxel = __floats2half2_rn(__fdiv_rn(fmaf(old.x, old.y, distance), old.y + 1.f), fminf(old.y + 1.f, 64.f));
    return true;
}
// A thread walks through its column of voxels, which lie one behind the other in memory.
__global__ void fuse_columns(Volume volume, Camera camera, const float *depth, __half2 *voxels) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, n = volume.size;
    if (x >= n || y >= n) return;
    __half2 *column = voxels + (static_cast<size_t>(x) * n + y) * n;
    for (int z = 0; z < n; ++z) {
        __half2 voxel = column[z];
        if (fuse(volume, camera, depth, x, y, z, voxel)) column[z] = voxel;
    }
}
// Lanes along the column.
__global__ void fuse_voxels(Volume volume, Camera camera, const float *__restrict__ depth, __half2 *voxels) {
    int z = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.z, n = volume.size;
    if (z >= n || y >= n) return;
    size_t at = (static_cast<size_t>(x) * n + y) * n + z;
    __half2 voxel = voxels[at];
    if (fuse(volume, camera, depth, x, y, z, voxel)) voxels[at] = voxel;
}
// x runs fastest in memory: the columns of a warp lie side by side.
__global__ void fuse_columns_side_by_side(Volume volume, Camera camera, const float *__restrict__ depth, __half2 *voxels) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, n = volume.size;
    if (x >= n || y >= n) return;
    size_t at = static_cast<size_t>(y) * n + x, step = static_cast<size_t>(n) * n;
    for (int z = 0; z < n; z += 4) {
        __half2 voxel[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) voxel[k] = voxels[at + (z + k) * step];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (fuse(volume, camera, depth, x, y, z + k, voxel[k])) voxels[at + (z + k) * step] = voxel[k];
    }
}
// to[x][y][z] of from[z][y][x], and back by the same kernel.
__global__ void turn_volume(const __half2 *from, __half2 *to, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n * n * n; i += gridDim.x * blockDim.x) to[i] = from[(i % n * n + i / n % n) * n + i / (n * n)];
}
__global__ void half_weights(const float *distances, __half2 *voxels, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        voxels[i] = __floats2half2_rn(distances[i], static_cast<float>(pairs::hash(i) % 16));
}

Study fusion("depth_fusion_columns_one_behind_the_other", "vision", 192, "a depth map of 640 x 480 fused into a volume of 192 x 192 x 192 voxels",
    "each thread walks along memory, so that neighbouring lanes are 147 kilobytes apart",
    {{"voxels", "a thread a voxel, lanes along memory", {"uncoalesced_access", "memory_latency"}},
        {"side_by_side", "x fastest in memory, columns of a warp side by side, four voxels under way", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = n * n * n;
        Camera camera{525.f, 525.f, 319.5f, 239.5f, 640, 480, {0.98f, 0.02f, -0.198f, 0.1f, -0.03f, 0.998f, -0.05f, 0.02f, 0.197f, 0.055f, 0.979f, 0.1f}};
        Volume volume{{-1.5f, -1.5f, 0.5f}, 3.f / n, 0.1f, static_cast<int>(n)};
        std::vector<float> map(camera.width * camera.height);
        for (int v = 0; v < camera.height; ++v)
            for (int u = 0; u < camera.width; ++u)
                map[v * camera.width + u] = pairs::hash(v * camera.width + u) % 50 == 0 ? 0.f : 2.f + 0.8f * std::sin(0.02f * u) * std::cos(0.015f * v);
        const float *depth = b.copy(map);
        float *distances = b.random<float>(count);
        __half2 *initial = b.allocate<__half2>(count), *turned = b.allocate<__half2>(count);
        launch(half_weights, 1024, 256, 0, distances, initial, count)();
        launch(turn_volume, 1024, 256, 0, initial, turned, n)();
        __half *voxels = b.changed<__half>(reinterpret_cast<__half *>(initial), 2 * static_cast<size_t>(count));
        __half2 *pairs_of_halves = reinterpret_cast<__half2 *>(voxels);
        b.tolerance = 2e-3;
        return {{"flawed", launch(fuse_columns, dim3(n / 32, n / 4), dim3(32, 4), 0, volume, camera, depth, pairs_of_halves)},
            {"voxels", launch(fuse_voxels, dim3(n / 64, n / 4, n), dim3(64, 4), 0, volume, camera, depth, pairs_of_halves)},
            {"side_by_side", launch(fuse_columns_side_by_side, dim3(n / 32, n / 4), dim3(32, 4), 0, volume, camera, depth, turned), {}, 1,
                launch(turn_volume, 1024, 256, 0, turned, pairs_of_halves, n)}};
    });

// --- exact squared distances to the nearest mark: down the columns, from squared distances along the rows ---

constexpr int DISTANCE_SIDE = 512;

// The lower envelope of the parabolas of a column: which of them are part of it, and where each begins.
__global__ void __launch_bounds__(64) distances_by_envelope(const float *along, float *out) {
    size_t column = static_cast<size_t>(blockIdx.y) * DISTANCE_SIDE * DISTANCE_SIDE + blockIdx.x * 64 + threadIdx.x;
    short vertex[DISTANCE_SIDE];
    float begins[DISTANCE_SIDE + 1];
    int k = 0;
    vertex[0] = 0, begins[0] = -INFINITY, begins[1] = INFINITY;
    for (int q = 1; q < DISTANCE_SIDE; ++q) {
        float height = along[column + q * DISTANCE_SIDE] + static_cast<float>(q * q), meet;
        while (true) {
            int p = vertex[k];
            meet = (height - (along[column + p * DISTANCE_SIDE] + static_cast<float>(p * p))) / static_cast<float>(2 * (q - p));
            if (meet > begins[k]) break;
            --k;
        }
        ++k;
        vertex[k] = q, begins[k] = meet, begins[k + 1] = INFINITY;
    }
    k = 0;
    for (int y = 0; y < DISTANCE_SIDE; ++y) {
        while (begins[k + 1] < static_cast<float>(y)) ++k;
        int p = vertex[k];
        out[column + y * DISTANCE_SIDE] = along[column + p * DISTANCE_SIDE] + static_cast<float>((y - p) * (y - p));
    }
}
// A thread a pixel: up and down the column, as long as anything nearer can still come.
__global__ void __launch_bounds__(256) distances_by_search(const float *__restrict__ along, float *__restrict__ out) {
    int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
    const float *column = along + static_cast<size_t>(blockIdx.z) * DISTANCE_SIDE * DISTANCE_SIDE + x;
    float best = column[y * DISTANCE_SIDE];
    for (int d = 1; d < DISTANCE_SIDE; ++d) {
        float square = static_cast<float>(d * d);
        if (square >= best) break;
        if (y >= d) best = fminf(best, column[(y - d) * DISTANCE_SIDE] + square);
        if (y + d < DISTANCE_SIDE) best = fminf(best, column[(y + d) * DISTANCE_SIDE] + square);
    }
    out[static_cast<size_t>(blockIdx.z) * DISTANCE_SIDE * DISTANCE_SIDE + y * DISTANCE_SIDE + x] = best;
}
// The same search through 32 whole columns in shared memory.
__global__ void __launch_bounds__(512) distances_in_strips(const float *__restrict__ along, float *__restrict__ out) {
    extern __shared__ float strip[];
    size_t first = static_cast<size_t>(blockIdx.y) * DISTANCE_SIDE * DISTANCE_SIDE + blockIdx.x * 32 + threadIdx.x % 32;
    for (int y = threadIdx.x / 32; y < DISTANCE_SIDE; y += 16) strip[y * 32 + threadIdx.x % 32] = along[first + y * DISTANCE_SIDE];
    __syncthreads();
    for (int y = threadIdx.x / 32; y < DISTANCE_SIDE; y += 16) {
        const float *here = strip + y * 32 + threadIdx.x % 32;
        float best = *here;
        for (int d = 1; d < DISTANCE_SIDE; ++d) {
            float square = static_cast<float>(d * d);
            if (square >= best) break;
            if (y >= d) best = fminf(best, here[-32 * d] + square);
            if (y + d < DISTANCE_SIDE) best = fminf(best, here[32 * d] + square);
        }
        out[first + y * DISTANCE_SIDE] = best;
    }
}

Study distances("distance_map_envelope_in_local", "vision", 24, "squared distances to the nearest mark in 24 pictures of 512 x 512, the pass down the columns",
    "each thread keeps the envelope of its column in two arrays of 512 entries in local memory",
    {{"by_search", "a thread a pixel looks up and down until nothing nearer can come", {"local_memory", "small_grid", "memory_latency"}},
        {"in_strips", "the same search in strips of 32 columns in shared memory", {"local_memory", "small_grid", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int side = DISTANCE_SIDE;
        std::vector<float> rows(n * side * side);
        for (int r = 0; r < n * side; ++r) {
            float *row = rows.data() + static_cast<size_t>(r) * side;
            int since = side;
            for (int x = 0; x < side; ++x) since = pairs::hash(r * side + x) % 400 == 0 ? 0 : std::min(since + 1, side), row[x] = since;
            since = side;
            for (int x = side - 1; x >= 0; --x) since = row[x] == 0.f ? 0 : std::min(since + 1, side), row[x] = std::min(row[x], static_cast<float>(since)) * std::min(row[x], static_cast<float>(since));
        }
        const float *along = b.copy(rows);
        float *out = b.output<float>(n * side * side);
        return {{"flawed", launch(distances_by_envelope, dim3(side / 64, n), 64, 0, along, out)},
            {"by_search", launch(distances_by_search, dim3(side / 32, side / 8, n), 256, 0, along, out)},
            {"in_strips", launch(distances_in_strips, dim3(side / 32, n), 512, 32 * side * sizeof(float), along, out)}};
    });

// --- dual contouring: a vertex in each cell that the surface cuts, where its tangent planes meet best ---

struct Samples {
    const float *data;
    int size;
    __device__ __forceinline__ float operator()(int x, int y, int z) const {
        x = min(max(x, 0), size - 1), y = min(max(y, 0), size - 1), z = min(max(z, 0), size - 1);
        return data[(z * size + y) * size + x];
    }
    __device__ __forceinline__ float3 slope(int x, int y, int z) const {
        const Samples &f = *this;
        return make_float3(0.5f * (f(x + 1, y, z) - f(x - 1, y, z)), 0.5f * (f(x, y + 1, z) - f(x, y - 1, z)), 0.5f * (f(x, y, z + 1) - f(x, y, z - 1)));
    }
};
// The vertex of a cell, within the cell, and how many of its edges are cut.
__device__ __forceinline__ float4 cell_vertex(Samples f, int x, int y, int z) {
    float xx = 0.f, xy = 0.f, xz = 0.f, yy = 0.f, yz = 0.f, zz = 0.f, rx = 0.f, ry = 0.f, rz = 0.f, mx = 0.f, my = 0.f, mz = 0.f, cuts = 0.f;
    for (int edge = 0; edge < 12; ++edge) {
        int axis = edge / 4, one = edge & 1, two = edge >> 1 & 1;
        int ax = axis == 0 ? 0 : one, ay = axis == 1 ? 0 : axis == 0 ? one : two, az = axis == 2 ? 0 : two;
        int bx = ax + (axis == 0), by = ay + (axis == 1), bz = az + (axis == 2);
        float a = f(x + ax, y + ay, z + az), b = f(x + bx, y + by, z + bz);
        if ((a < 0.f) == (b < 0.f)) continue;
        float t = a / (a - b);
        float3 p = f.slope(x + ax, y + ay, z + az), q = f.slope(x + bx, y + by, z + bz);
        float nx = fmaf(t, q.x - p.x, p.x), ny = fmaf(t, q.y - p.y, p.y), nz = fmaf(t, q.z - p.z, p.z);
        float scale = rsqrtf(fmaf(nx, nx, fmaf(ny, ny, fmaf(nz, nz, 1e-12f))));
        nx *= scale, ny *= scale, nz *= scale;
        float cx = fmaf(t, bx - ax, ax), cy = fmaf(t, by - ay, ay), cz = fmaf(t, bz - az, az), d = fmaf(nx, cx, fmaf(ny, cy, nz * cz));
        xx = fmaf(nx, nx, xx), xy = fmaf(nx, ny, xy), xz = fmaf(nx, nz, xz), yy = fmaf(ny, ny, yy), yz = fmaf(ny, nz, yz), zz = fmaf(nz, nz, zz);
        rx = fmaf(nx, d, rx), ry = fmaf(ny, d, ry), rz = fmaf(nz, d, rz);
        mx += cx, my += cy, mz += cz, cuts += 1.f;
    }
    float vx = mx / cuts, vy = my / cuts, vz = mz / cuts, step = 0.7f / (xx + yy + zz);
    for (int k = 0; k < 12; ++k) {
        float ex = rx - fmaf(xx, vx, fmaf(xy, vy, xz * vz)), ey = ry - fmaf(xy, vx, fmaf(yy, vy, yz * vz)), ez = rz - fmaf(xz, vx, fmaf(yz, vy, zz * vz));
        vx = fmaf(step, ex, vx), vy = fmaf(step, ey, vy), vz = fmaf(step, ez, vz);
    }
    return make_float4(fminf(fmaxf(vx, 0.f), 1.f), fminf(fmaxf(vy, 0.f), 1.f), fminf(fmaxf(vz, 0.f), 1.f), cuts);
}
// slots: the number of the cell's vertex, below zero where the surface does not cut it.
__global__ void __launch_bounds__(256) contour_vertices(Samples f, const int *slots, float4 *vertices, int cells) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= cells * cells * cells) return;
    int slot = slots[i];
    if (slot < 0) return;
    vertices[slot] = cell_vertex(f, i % cells, i / cells % cells, i / (cells * cells));
}
// 2048 cells a block: those that are cut are listed in shared memory, and then dealt out to all threads.
__global__ void __launch_bounds__(256) contour_vertices_listed(Samples f, const int *__restrict__ slots, float4 *__restrict__ vertices, int cells) {
    __shared__ int list[2048], listed;
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        int i = blockIdx.x * 2048 + k * 256 + threadIdx.x;
        bool cut = i < cells * cells * cells && slots[i] >= 0;
        unsigned vote = __ballot_sync(~0u, cut);
        int base = 0;
        if (threadIdx.x % 32 == 0 && vote) base = atomicAdd(&listed, __popc(vote));
        base = __shfl_sync(~0u, base, 0);
        if (cut) list[base + __popc(vote & ((1u << threadIdx.x % 32) - 1))] = i;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < listed; j += 256) {
        int i = list[j];
        vertices[slots[i]] = cell_vertex(f, i % cells, i / cells % cells, i / (cells * cells));
    }
}
// The pass that numbers the vertices also writes down their cells.
__global__ void __launch_bounds__(128) contour_vertices_of_cells(Samples f, const int *__restrict__ cut, float4 *__restrict__ vertices, int cells, int count) {
    int slot = blockIdx.x * 128 + threadIdx.x;
    if (slot >= count) return;
    int i = cut[slot];
    vertices[slot] = cell_vertex(f, i % cells, i / cells % cells, i / (cells * cells));
}

Study contouring("dual_contour_few_cells_are_cut", "vision", 160, "a vertex in each cell of 160 x 160 x 160 that a surface cuts, from the planes at its cut edges",
    "a thread a cell: one cell in ten has all of the work, and its warp waits for it",
    {{"listed", "2048 cells a block, the cut ones listed in shared memory and dealt out", {"branch_divergence", "idle_threads"}},
        {"of_cells", "a thread a vertex, from a list of cut cells that the pass before writes", {"branch_divergence", "idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        const int cells = n, size = n + 1;
        std::vector<float> field(static_cast<size_t>(size) * size * size);
        std::vector<int> slots(static_cast<size_t>(cells) * cells * cells, -1), cut;
        const float turn = 6.2831853f / 37.f;
        std::vector<float> s(size), c(size);
        for (int i = 0; i < size; ++i) s[i] = std::sin(turn * i + 0.1f), c[i] = std::cos(turn * i + 0.1f);
        auto at = [&](int x, int y, int z) -> float & { return field[(static_cast<size_t>(z) * size + y) * size + x]; };
        for (int z = 0; z < size; ++z)
            for (int y = 0; y < size; ++y)
                for (int x = 0; x < size; ++x) at(x, y, z) = s[x] * c[y] + s[y] * c[z] + s[z] * c[x] + 0.05f;
        for (int i = 0; i < cells * cells * cells; ++i) {
            int x = i % cells, y = i / cells % cells, z = i / (cells * cells), below = 0;
            for (int k = 0; k < 8; ++k) below += at(x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)) < 0.f;
            if (below && below < 8) slots[i] = cut.size(), cut.push_back(i);
        }
        int count = cut.size();
        Samples f{b.copy(field), size};
        const int *numbers = b.copy(slots), *list = b.copy(cut);
        float4 *vertices = reinterpret_cast<float4 *>(b.output<float>(4 * static_cast<size_t>(count)));
        b.tolerance = 1e-3;
        return {{"flawed", launch(contour_vertices, blocks(cells * cells * cells, 256), 256, 0, f, numbers, vertices, cells)},
            {"listed", launch(contour_vertices_listed, blocks(cells * cells * cells, 2048), 256, 0, f, numbers, vertices, cells)},
            {"of_cells", launch(contour_vertices_of_cells, blocks(count, 128), 128, 0, f, list, vertices, cells, count)}};
    });

// --- a slice of a body from its projections at many angles: sums along the rays through each pixel ---

struct Projections {
    const float *data;  // [angle][detector]
    int angles, detectors;
    __device__ __forceinline__ float between(int angle, float at) const {
        int low = static_cast<int>(floorf(at));
        if (low < 0 || low + 1 >= detectors) return 0.f;
        const float *row = data + angle * detectors + low;
        return fmaf(at - low, row[1] - row[0], row[0]);
    }
};
__global__ void project_back(Projections p, float *slice, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side) return;
    float dx = x - 0.5f * (side - 1), dy = y - 0.5f * (side - 1), sum = 0.f;
    for (int a = 0; a < p.angles; ++a) {
        float sine, cosine;
        sincosf(a * 3.14159265f / p.angles, &sine, &cosine);
        sum += p.between(a, dx * cosine + dy * sine + 0.5f * (p.detectors - 1));
    }
    slice[y * side + x] = sum * (3.14159265f / p.angles);
}
// Cosines and sines come from a table.
__global__ void __launch_bounds__(256) project_back_by_table(Projections p, const float2 *__restrict__ directions, float *__restrict__ slice, int side) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= side || y >= side) return;
    float dx = x - 0.5f * (side - 1), dy = y - 0.5f * (side - 1), sum = 0.f, middle = 0.5f * (p.detectors - 1);
#pragma unroll 4
    for (int a = 0; a < p.angles; ++a) {
        float2 d = directions[a];
        sum += p.between(a, fmaf(dx, d.x, fmaf(dy, d.y, middle)));
    }
    slice[y * side + x] = sum * (3.14159265f / p.angles);
}
// The block computes them once, into shared memory; four rows a thread.
__global__ void __launch_bounds__(128) project_back_four_rows(Projections p, float *__restrict__ slice, int side) {
    extern __shared__ float2 direction[];
    for (int a = threadIdx.y * 32 + threadIdx.x; a < p.angles; a += 128) sincospif(static_cast<float>(a) / p.angles, &direction[a].y, &direction[a].x);
    __syncthreads();
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y * 4;
    if (x >= side || y >= side) return;
    float dx = x - 0.5f * (side - 1), dy = y - 0.5f * (side - 1), sum[4] = {}, middle = 0.5f * (p.detectors - 1);
    for (int a = 0; a < p.angles; ++a) {
        float2 d = direction[a];
        float at = fmaf(dx, d.x, fmaf(dy, d.y, middle));
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] += p.between(a, fmaf(static_cast<float>(j), d.y, at));
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
        if (y + j < side) slice[(y + j) * side + x] = sum[j] * (3.14159265f / p.angles);
}

Study tomography("back_projection_sine_of_each_angle", "vision", 512, "a slice of 512 x 512 from 360 projections of 768 detectors",
    "each pixel computes sine and cosine of each of the 360 angles by the precise functions",
    {{"by_table", "a table of cosines and sines", {"expensive_math"}},
        {"four_rows", "a table in shared memory that each block computes, four rows a thread", {"expensive_math", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int angles = 360, detectors = 768;
        std::vector<float2> table(angles);
        for (int a = 0; a < angles; ++a) table[a] = make_float2(std::cos(a * 3.14159265358979 / angles), std::sin(a * 3.14159265358979 / angles));
        Projections p{b.random<float>(angles * detectors, 0, 1), angles, detectors};
        const float2 *directions = b.copy(table);
        float *slice = b.output<float>(n * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(project_back, dim3(n / 32, n / 8), dim3(32, 8), 0, p, slice, n)},
            {"by_table", launch(project_back_by_table, dim3(n / 32, n / 8), dim3(32, 8), 0, p, directions, slice, n)},
            {"four_rows", launch(project_back_four_rows, dim3(n / 32, n / 16), dim3(32, 4), angles * sizeof(float2), p, slice, n)}};
    });

}  // namespace
