// An ocean model's step: what currents carry of a tracer into each cell of each layer, by fluxes of fifth order (WENO)
// through its four faces; periodic.
#include "../tried/tried.cuh"

constexpr int WIDTH = 512, HEIGHT = 512, LAYERS = 32, STRIP = 32;
constexpr size_t CELLS = size_t(WIDTH) * HEIGHT * LAYERS;
// u and v stand at a cell's left and lower face.
struct Ocean { const float *tracer, *u, *v; float *change; int width, height; float per_dx, per_dy; };

__device__ __forceinline__ float weno(float a, float b, float c, float d, float e) {
    const float first = a - 2.f * b + c, second = b - 2.f * c + d, third = c - 2.f * d + e;
    const float b0 = 13.f / 12.f * first * first + 0.25f * (a - 4.f * b + 3.f * c) * (a - 4.f * b + 3.f * c);
    const float b1 = 13.f / 12.f * second * second + 0.25f * (b - d) * (b - d);
    const float b2 = 13.f / 12.f * third * third + 0.25f * (3.f * c - 4.f * d + e) * (3.f * c - 4.f * d + e);
    const float w0 = 0.1f / ((1e-6f + b0) * (1e-6f + b0)), w1 = 0.6f / ((1e-6f + b1) * (1e-6f + b1)), w2 = 0.3f / ((1e-6f + b2) * (1e-6f + b2));
    const float q0 = (2.f * a - 7.f * b + 11.f * c) / 6.f, q1 = (-b + 5.f * c + 2.f * d) / 6.f, q2 = (2.f * c + 5.f * d - e) / 6.f;
    return (w0 * q0 + w1 * q1 + w2 * q2) / (w0 + w1 + w2);
}

__device__ __forceinline__ int wrapped(int at, int count) { return (at + count) % count; }

__device__ float flux_x(Ocean ocean, const float *tracer, const float *u, int x, int y) {
    x = wrapped(x, ocean.width);
    auto at = [&](int off) { return tracer[y * ocean.width + wrapped(x + off, ocean.width)]; };
    const float speed = u[y * ocean.width + x];
    if (speed > 0.f) return speed * weno(at(-3), at(-2), at(-1), at(0), at(1));
    return speed * weno(at(2), at(1), at(0), at(-1), at(-2));
}

__device__ float flux_y(Ocean ocean, const float *tracer, const float *v, int x, int y) {
    y = wrapped(y, ocean.height);
    auto at = [&](int off) { return tracer[wrapped(y + off, ocean.height) * ocean.width + x]; };
    const float speed = v[y * ocean.width + x];
    if (speed > 0.f) return speed * weno(at(-3), at(-2), at(-1), at(0), at(1));
    return speed * weno(at(2), at(1), at(0), at(-1), at(-2));
}

__global__ void as_it_is(Ocean ocean) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= ocean.width || y >= ocean.height) return;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *tracer = ocean.tracer + layer, *u = ocean.u + layer, *v = ocean.v + layer;
    const float along = flux_x(ocean, tracer, u, x + 1, y) - flux_x(ocean, tracer, u, x, y);
    const float across = flux_y(ocean, tracer, v, x, y + 1) - flux_y(ocean, tracer, v, x, y);
    ocean.change[layer + y * ocean.width + x] = -along * ocean.per_dx - across * ocean.per_dy;
}

// First step, redundant loads: four cells along x share their row, and the faces between them, in registers; or a block's
// cells share a tile in shared memory.
template <class At> __device__ __forceinline__ float flux(float speed, At at) {
    if (speed > 0.f) return speed * weno(at(-3), at(-2), at(-1), at(0), at(1));
    return speed * weno(at(2), at(1), at(0), at(-1), at(-2));
}
constexpr int BESIDE = 4;
__global__ void four_along_x(Ocean ocean) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * BESIDE, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= ocean.width || y >= ocean.height) return;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *tracer = ocean.tracer + layer, *u = ocean.u + layer, *v = ocean.v + layer;
    float row[BESIDE + 6], face[BESIDE + 1];
#pragma unroll
    for (int n = 0; n < BESIDE + 6; ++n) row[n] = tracer[y * ocean.width + wrapped(x + n - 3, ocean.width)];
#pragma unroll
    for (int n = 0; n <= BESIDE; ++n)
        face[n] = flux(u[y * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return row[n + off + 3]; });
#pragma unroll
    for (int n = 0; n < BESIDE; ++n) {
        if (x + n >= ocean.width) break;
        const float across = flux_y(ocean, tracer, v, x + n, y + 1) - flux_y(ocean, tracer, v, x + n, y);
        ocean.change[layer + y * ocean.width + x + n] = -(face[n + 1] - face[n]) * ocean.per_dx - across * ocean.per_dy;
    }
}
__global__ void tile_in_shared(Ocean ocean) {
    __shared__ float tile[8 + 6][32 + 6];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *tracer = ocean.tracer + layer, *u = ocean.u + layer, *v = ocean.v + layer;
    for (int n = threadIdx.y * 32 + threadIdx.x; n < (8 + 6) * (32 + 6); n += 256) {
        const int from_x = wrapped(blockIdx.x * 32 + n % (32 + 6) - 3, ocean.width), from_y = wrapped(blockIdx.y * 8 + n / (32 + 6) - 3, ocean.height);
        tile[n / (32 + 6)][n % (32 + 6)] = tracer[from_y * ocean.width + from_x];
    }
    __syncthreads();
    if (x >= ocean.width || y >= ocean.height) return;
    // From a thread's own place on: given indices into the tile, ptxas 13.0 overwrites threadIdx.x along the row and uses it down the column.
    const float *own = &tile[threadIdx.y + 3][threadIdx.x + 3];
    auto in_x = [&](int right) {
        return flux(u[y * ocean.width + wrapped(x + right, ocean.width)], [&](int off) { return own[right + off]; });
    };
    auto in_y = [&](int up) {
        return flux(v[wrapped(y + up, ocean.height) * ocean.width + x], [&](int off) { return own[(up + off) * (32 + 6)]; });
    };
    ocean.change[layer + y * ocean.width + x] = -(in_x(1) - in_x(0)) * ocean.per_dx - (in_y(1) - in_y(0)) * ocean.per_dy;
}

// Second step, redundant loads: four cells along y, too, share their columns and the faces between them, in registers; or
// threads of four along x read a tile in shared memory.
__global__ void four_by_four(Ocean ocean) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * BESIDE, y = (blockIdx.y * blockDim.y + threadIdx.y) * BESIDE;
    if (x >= ocean.width || y >= ocean.height) return;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *tracer = ocean.tracer + layer, *u = ocean.u + layer, *v = ocean.v + layer;
    float patch[BESIDE + 6][BESIDE + 6], across[BESIDE][BESIDE], face[BESIDE + 1];
#pragma unroll
    for (int m = 0; m < BESIDE + 6; ++m)
#pragma unroll
        for (int n = 0; n < BESIDE + 6; ++n)
            if ((m >= 3 && m < BESIDE + 3) || (n >= 3 && n < BESIDE + 3))
                patch[m][n] = tracer[wrapped(y + m - 3, ocean.height) * ocean.width + wrapped(x + n - 3, ocean.width)];
#pragma unroll
    for (int n = 0; n < BESIDE; ++n) {
#pragma unroll
        for (int m = 0; m <= BESIDE; ++m)
            face[m] = flux(v[wrapped(y + m, ocean.height) * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return patch[m + off + 3][n + 3]; });
#pragma unroll
        for (int m = 0; m < BESIDE; ++m) across[m][n] = face[m + 1] - face[m];
    }
#pragma unroll
    for (int m = 0; m < BESIDE; ++m) {
        if (y + m >= ocean.height) break;
#pragma unroll
        for (int n = 0; n <= BESIDE; ++n)
            face[n] = flux(u[(y + m) * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return patch[m + 3][n + off + 3]; });
#pragma unroll
        for (int n = 0; n < BESIDE; ++n)
            if (x + n < ocean.width) ocean.change[layer + (y + m) * ocean.width + x + n] = -(face[n + 1] - face[n]) * ocean.per_dx - across[m][n] * ocean.per_dy;
    }
}
__global__ void four_along_x_of_a_tile(Ocean ocean) {
    constexpr int ROW = 32 * BESIDE + 6;
    __shared__ float tile[8 + 6][ROW];
    const int x = (blockIdx.x * 32 + threadIdx.x) * BESIDE, y = blockIdx.y * 8 + threadIdx.y;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *tracer = ocean.tracer + layer, *u = ocean.u + layer, *v = ocean.v + layer;
    for (int n = threadIdx.y * 32 + threadIdx.x; n < (8 + 6) * ROW; n += 256) {
        const int from_x = wrapped(blockIdx.x * 32 * BESIDE + n % ROW - 3, ocean.width), from_y = wrapped(blockIdx.y * 8 + n / ROW - 3, ocean.height);
        tile[n / ROW][n % ROW] = tracer[from_y * ocean.width + from_x];
    }
    __syncthreads();
    if (x >= ocean.width || y >= ocean.height) return;
    const float *own = &tile[threadIdx.y + 3][threadIdx.x * BESIDE + 3];
    float face[BESIDE + 1];
#pragma unroll
    for (int n = 0; n <= BESIDE; ++n)
        face[n] = flux(u[y * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return own[n + off]; });
#pragma unroll
    for (int n = 0; n < BESIDE; ++n) {
        if (x + n >= ocean.width) break;
        auto in_y = [&](int up) {
            return flux(v[wrapped(y + up, ocean.height) * ocean.width + x + n], [&](int off) { return own[n + (up + off) * ROW]; });
        };
        ocean.change[layer + y * ocean.width + x + n] = -(face[n + 1] - face[n]) * ocean.per_dx - (in_y(1) - in_y(0)) * ocean.per_dy;
    }
}

// Third step, redundant loads: four cells along y of the tile, too, share their columns and the faces between them, in
// registers; or only the faces, row by row.
constexpr int ROW_OF_TILE = 32 * BESIDE + 6;
using TileOfFours = float[8 * BESIDE + 6][ROW_OF_TILE];
__device__ __forceinline__ void fill(Ocean ocean, const float *tracer, TileOfFours &tile) {
    for (int n = threadIdx.y * 32 + threadIdx.x; n < (8 * BESIDE + 6) * ROW_OF_TILE; n += 256) {
        const int from_x = wrapped(blockIdx.x * 32 * BESIDE + n % ROW_OF_TILE - 3, ocean.width), from_y = wrapped(blockIdx.y * 8 * BESIDE + n / ROW_OF_TILE - 3, ocean.height);
        tile[n / ROW_OF_TILE][n % ROW_OF_TILE] = tracer[from_y * ocean.width + from_x];
    }
    __syncthreads();
}
__global__ void four_by_four_of_a_tile(Ocean ocean) {
    __shared__ TileOfFours tile;
    const int x = (blockIdx.x * 32 + threadIdx.x) * BESIDE, y = (blockIdx.y * 8 + threadIdx.y) * BESIDE;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *u = ocean.u + layer, *v = ocean.v + layer;
    fill(ocean, ocean.tracer + layer, tile);
    if (x >= ocean.width || y >= ocean.height) return;
    const float *own = &tile[threadIdx.y * BESIDE + 3][threadIdx.x * BESIDE + 3];
    float line[BESIDE + 6], face[BESIDE + 1], across[BESIDE][BESIDE];
#pragma unroll
    for (int n = 0; n < BESIDE; ++n) {
#pragma unroll
        for (int m = 0; m < BESIDE + 6; ++m) line[m] = own[(m - 3) * ROW_OF_TILE + n];
#pragma unroll
        for (int m = 0; m <= BESIDE; ++m)
            face[m] = flux(v[wrapped(y + m, ocean.height) * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return line[m + off + 3]; });
#pragma unroll
        for (int m = 0; m < BESIDE; ++m) across[m][n] = face[m + 1] - face[m];
    }
#pragma unroll
    for (int m = 0; m < BESIDE; ++m) {
        if (y + m >= ocean.height) break;
#pragma unroll
        for (int n = 0; n < BESIDE + 6; ++n) line[n] = own[m * ROW_OF_TILE + n - 3];
#pragma unroll
        for (int n = 0; n <= BESIDE; ++n)
            face[n] = flux(u[(y + m) * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return line[n + off + 3]; });
#pragma unroll
        for (int n = 0; n < BESIDE; ++n)
            if (x + n < ocean.width) ocean.change[layer + (y + m) * ocean.width + x + n] = -(face[n + 1] - face[n]) * ocean.per_dx - across[m][n] * ocean.per_dy;
    }
}
__global__ void faces_of_rows_kept(Ocean ocean) {
    __shared__ TileOfFours tile;
    const int x = (blockIdx.x * 32 + threadIdx.x) * BESIDE, y = (blockIdx.y * 8 + threadIdx.y) * BESIDE;
    const size_t layer = size_t(blockIdx.z) * ocean.width * ocean.height;
    const float *u = ocean.u + layer, *v = ocean.v + layer;
    fill(ocean, ocean.tracer + layer, tile);
    if (x >= ocean.width || y >= ocean.height) return;
    const float *own = &tile[threadIdx.y * BESIDE + 3][threadIdx.x * BESIDE + 3];
    float lower[BESIDE], face[BESIDE + 1];
    auto in_y = [&](int up, int n, const float *here) {
        return flux(v[wrapped(y + up, ocean.height) * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return here[n + off * ROW_OF_TILE]; });
    };
#pragma unroll
    for (int n = 0; n < BESIDE; ++n) lower[n] = in_y(0, n, own);
#pragma unroll 1
    for (int m = 0; m < BESIDE && y + m < ocean.height; ++m, own += ROW_OF_TILE) {
#pragma unroll
        for (int n = 0; n <= BESIDE; ++n)
            face[n] = flux(u[(y + m) * ocean.width + wrapped(x + n, ocean.width)], [&](int off) { return own[n + off]; });
#pragma unroll
        for (int n = 0; n < BESIDE; ++n) {
            const float upper = in_y(m + 1, n, own + ROW_OF_TILE);
            if (x + n < ocean.width) ocean.change[layer + (y + m) * ocean.width + x + n] = -(face[n + 1] - face[n]) * ocean.per_dx - (upper - lower[n]) * ocean.per_dy;
            lower[n] = upper;
        }
    }
}

// Lanes choose what stands upwind, then compute together, with differences of neighbours; the weights' divisions become one.
__device__ __forceinline__ float carried(float speed, float m3, float m2, float m1, float p0, float p1, float p2) {
    const bool up = speed > 0.f;
    const float a = up ? m3 : p2, b = up ? m2 : p1, c = up ? m1 : p0, d = up ? p0 : m1, e = up ? p1 : m2;
    const float ab = b - a, bc = c - b, cd = d - c, de = e - d;
    const float first = bc - ab, second = cd - bc, third = de - cd, left = 3.f * bc - ab, middle = bc + cd, right = de - 3.f * cd;
    // Four times each, which their ratios do not notice.
    const float b0 = fmaf(13.f / 3.f * first, first, fmaf(left, left, 4e-6f));
    const float b1 = fmaf(13.f / 3.f * second, second, fmaf(middle, middle, 4e-6f));
    const float b2 = fmaf(13.f / 3.f * third, third, fmaf(right, right, 4e-6f));
    const float s01 = b0 * b1, s02 = b0 * b2, s12 = b1 * b2;
    const float w0 = s12 * s12, w1 = 6.f * s02 * s02, w2 = 3.f * s01 * s01;
    const float sum = w0 * (5.f * bc - 2.f * ab) + w1 * (bc + 2.f * cd) + w2 * (4.f * cd - de);
    return speed * (c + __fdividef(sum, 6.f * (w0 + w1 + w2)));
}

// A block has a whole row, four cells a thread, and walks up a strip: each face is computed once.
__global__ void __launch_bounds__(WIDTH / 4) expert(Ocean ocean) {
    constexpr int VECTORS = WIDTH / 4;
    __shared__ float firsts[2][VECTORS / 32];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, bottom = blockIdx.x * STRIP;
    const size_t layer = size_t(blockIdx.y) * HEIGHT * VECTORS;
    const float4 *tracer = reinterpret_cast<const float4 *>(ocean.tracer) + layer, *u = reinterpret_cast<const float4 *>(ocean.u) + layer;
    const float4 *v = reinterpret_cast<const float4 *>(ocean.v) + layer;
    auto row_of = [](int y) { return (y + HEIGHT) % HEIGHT * VECTORS; };
    float rows[6][4], below[4];
    auto take = [](float (&to)[4], float4 from) { to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w; };
    auto faces = [&](float (&to)[4], int y) {
        float speed[4];
        take(speed, __ldcs(v + row_of(y) + thread));
#pragma unroll
        for (int k = 0; k < 4; ++k) to[k] = carried(speed[k], rows[0][k], rows[1][k], rows[2][k], rows[3][k], rows[4][k], rows[5][k]);
    };
#pragma unroll
    for (int r = 0; r < 6; ++r) take(rows[r], tracer[row_of(bottom - 3 + r) + thread]);
    faces(below, bottom);
    for (int y = bottom; y < bottom + STRIP; ++y) {
        // rows[3] is this one.
        float line[12], speed[4], along[5], above[4];
        const float4 *own = tracer + y * VECTORS;
        take(*reinterpret_cast<float (*)[4]>(line), own[(thread + VECTORS - 1) % VECTORS]);
        take(*reinterpret_cast<float (*)[4]>(line + 8), own[(thread + 1) % VECTORS]);
        take(speed, __ldcs(u + y * VECTORS + thread));
        const float4 next = tracer[row_of(y + 3) + thread];
#pragma unroll
        for (int k = 0; k < 4; ++k) line[4 + k] = rows[3][k];
#pragma unroll
        for (int k = 0; k < 4; ++k) along[k] = carried(speed[k], line[k + 1], line[k + 2], line[k + 3], line[k + 4], line[k + 5], line[k + 6]);
        along[4] = __shfl_down_sync(~0u, along[0], 1);
        if (lane == 0) firsts[y % 2][warp] = along[0];
        __syncthreads();
        if (lane == 31) along[4] = firsts[y % 2][(warp + 1) % (VECTORS / 32)];
#pragma unroll
        for (int r = 0; r < 5; ++r)
#pragma unroll
            for (int k = 0; k < 4; ++k) rows[r][k] = rows[r + 1][k];
        take(rows[5], next);
        faces(above, y + 1);
        float result[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            result[k] = (along[k] - along[k + 1]) * ocean.per_dx + (below[k] - above[k]) * ocean.per_dy;
            below[k] = above[k];
        }
        __stcs(reinterpret_cast<float4 *>(ocean.change) + layer + y * VECTORS + thread, make_float4(result[0], result[1], result[2], result[3]));
    }
}

int main(int, char **arguments) {
    // Eddies of many sizes, weaker and displaced with depth; a front with ripples.
    std::vector<float> tracer(CELLS), u(CELLS), v(CELLS);
    std::vector<float> sine(4096);
    for (int i = 0; i < 4096; ++i) sine[i] = std::sin(6.2831853f * i / 4096);
    auto wave = [&](int phase) { return sine[phase & 4095]; };
    for (size_t i = 0; i < CELLS; ++i) {
        const int x = int(i % WIDTH), y = int(i / WIDTH % HEIGHT), z = int(i / WIDTH / HEIGHT);
        const float weaker = 1.f / (1 + z);
        u[i] = weaker * (0.5f * wave(y * 24 + z * 64) + 0.3f * wave(x * 40 + y * 72) + 0.05f * wave(x * 320 - y * 160));
        v[i] = weaker * (0.5f * wave(x * 32 + z * 96) - 0.3f * wave(x * 56 - y * 40) + 0.05f * wave(x * 240 + y * 400));
        tracer[i] = 12.f + 6.f * wave(y * 8 + int(400 * wave(x * 16))) + wave(x * 96 + z * 32) + 0.2f * (hashed(unsigned(i)) / 4294967296.f);
    }
    float *out = get<float>(CELLS);
    const Ocean ocean{copied(tracer), copied(u), copied(v), out, WIDTH, HEIGHT, 1.f / 1000.f, 1.f / 1200.f};
    judge({
        {"as_it_is", [=] { as_it_is<<<dim3(WIDTH / 32, HEIGHT / 8, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"four_along_x", [=] { four_along_x<<<dim3(WIDTH / 32 / BESIDE, HEIGHT / 8, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"tile_in_shared", [=] { tile_in_shared<<<dim3(WIDTH / 32, HEIGHT / 8, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"four_by_four", [=] { four_by_four<<<dim3(WIDTH / 32 / BESIDE, HEIGHT / 8 / BESIDE, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"four_along_x_of_a_tile", [=] { four_along_x_of_a_tile<<<dim3(WIDTH / 32 / BESIDE, HEIGHT / 8, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"four_by_four_of_a_tile", [=] { four_by_four_of_a_tile<<<dim3(WIDTH / 32 / BESIDE, HEIGHT / 8 / BESIDE, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"faces_of_rows_kept", [=] { faces_of_rows_kept<<<dim3(WIDTH / 32 / BESIDE, HEIGHT / 8 / BESIDE, LAYERS), dim3(32, 8)>>>(ocean); }},
        {"expert", [=] { expert<<<dim3(HEIGHT / STRIP, LAYERS), WIDTH / 4>>>(ocean); }},
    }, {{out, CELLS}}, [] {}, arguments[1]);
}
