// Kernels with two flaws each: every one is built with both, with either and with none.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "pair.cuh"

namespace {

// The four sides, from a kernel template with one flag a flaw.
#define FOUR(KERNEL, FIRST_GRID, MENDED_GRID, BLOCK, SHARED, ...)                                                      \
    {                                                                                                                  \
        {"both", launch(KERNEL<true, true>, FIRST_GRID, BLOCK, SHARED, __VA_ARGS__)},                                  \
        {"first_mended", launch(KERNEL<false, true>, MENDED_GRID, BLOCK, SHARED, __VA_ARGS__)},                        \
        {"second_mended", launch(KERNEL<true, false>, FIRST_GRID, BLOCK, SHARED, __VA_ARGS__)},                        \
        {"mended", launch(KERNEL<false, false>, MENDED_GRID, BLOCK, SHARED, __VA_ARGS__)},                             \
    }

template <bool Separate>
__device__ float add_product(float x, float y, float z) {
    return Separate ? __fadd_rn(__fmul_rn(x, y), z) : fmaf(x, y, z);
}

// Bodies: products and sums not fused, and a precise square root and division.
template <bool Separate, bool Precise>
__global__ void bodies(const float4 *__restrict__ all, float *__restrict__ out, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 me = all[i];
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int start = 0; start < n; start += 256) {
        __syncthreads();
        tile[threadIdx.x] = all[start + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 256; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float r =
                add_product<Separate>(dx, dx, add_product<Separate>(dy, dy, add_product<Separate>(dz, dz, 0.01f)));
            float inverse = Precise ? 1.0f / sqrtf(r) : rsqrtf(r);
            float force = tile[j].w * inverse * inverse * inverse;
            fx = add_product<Separate>(dx, force, fx);
            fy = add_product<Separate>(dy, force, fy);
            fz = add_product<Separate>(dz, force, fz);
        }
    }
    out[i] = fx, out[n + i] = fy, out[2 * n + i] = fz;
}
Family two_nbody("two_nbody", "nbody", {8192, 32768}, mend_two("non_fused_arithmetic", "expensive_math"),
    [](Buffers &b, long n) -> Sides {
        auto *all = reinterpret_cast<float4 *>(b.random<float>(n * 4));
        float *out = b.output<float>(n * 3);
        b.tolerance = 1e-3;
        return FOUR(bodies, n / 256, n / 256, 256, 0, all, out, n);
    });

// A histogram: bytes one a thread, and counted in global memory.
template <bool Narrow, bool Global>
__global__ void count_bytes(const uint8_t *__restrict__ in, int *__restrict__ counts, int bytes) {
    __shared__ int mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    int step = gridDim.x * 256, thread = blockIdx.x * 256 + threadIdx.x;
    int *to = Global ? counts : mine;
    if (Narrow) {
        for (int i = thread; i < bytes; i += step) atomicAdd(&to[in[i]], 1);
    } else {
        for (int i = thread; i < bytes / 16; i += step) {
            uint4 v = reinterpret_cast<const uint4 *>(in)[i];
            const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int k = 0; k < 16; ++k) atomicAdd(&to[words[k / 4] >> (8 * (k % 4)) & 255], 1);
        }
    }
    __syncthreads();
    if (!Global) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
Family two_histogram("two_histogram", "histogram", {1 << 22, 1 << 24}, mend_two("narrow_access", "global_atomics"),
    [](Buffers &b, long bytes) -> Sides {
        auto *in = reinterpret_cast<uint8_t *>(b.random<int>(bytes / 4, -2147483648.0, 2147483647.0));
        int *counts = b.output<int>(256, true), grid = multiprocessors() * 8;
        return FOUR(count_bytes, grid, grid, 256, 0, in, counts, bytes);
    });

// Softmax of rows of 128: a thread a row, and precise exponentials and divisions.
template <bool ThreadPerRow, bool Precise>
__global__ void __launch_bounds__(128) short_softmax(const float *__restrict__ in, float *__restrict__ out, int rows) {
    constexpr int C = 128;
    auto power = [](float v) { return Precise ? expf(v) : __expf(v); };
    auto divide = [](float a, float c) { return Precise ? a / c : __fdividef(a, c); };
    if (ThreadPerRow) {
        int row = blockIdx.x * 128 + threadIdx.x;
        const float *from = in + size_t(row) * C;
        float top = -1e30f, sum = 0.0f;
        for (int c = 0; c < C; ++c) top = fmaxf(top, from[c]);
        for (int c = 0; c < C; ++c) sum += power(from[c] - top);
        for (int c = 0; c < C; ++c) out[size_t(row) * C + c] = divide(power(from[c] - top), sum);
        return;
    }
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float x[4], top = -1e30f, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) top = fmaxf(top, x[k] = in[size_t(row) * C + lane + 32 * k]);
    top = warp_max(top);
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += x[k] = power(x[k] - top);
    sum = warp_sum(sum);
#pragma unroll
    for (int k = 0; k < 4; ++k) out[size_t(row) * C + lane + 32 * k] = divide(x[k], sum);
}
Family two_softmax("two_softmax", "softmax", {1 << 15, 1 << 19}, mend_two("uncoalesced_access", "expensive_math"),
    [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 128), *out = b.output<float>(rows * 128);
        return FOUR(short_softmax, rows / 128, rows / 4, 128, 0, in, out, rows);
    });

// A matrix by a vector: neighbouring threads a row apart, and a factor in double precision.
template <bool RowMajor, bool Double>
__global__ void weighted_rows(const float *__restrict__ a, const float *__restrict__ flipped,
    const float *__restrict__ x, float *__restrict__ y, int rows, int columns) {
    int row = blockIdx.x * 128 + threadIdx.x;
    float sum = 0.0f;
#pragma unroll 8
    for (int c = 0; c < columns; ++c) {
        float v = RowMajor ? a[size_t(row) * columns + c] : flipped[size_t(c) * rows + row];
        if (Double) sum = float(sum * 0.999 + v * x[c]);
        else sum = sum * 0.999f + v * x[c];
    }
    y[row] = sum;
}
__global__ void flip(const float *in, float *out, int rows, int columns) {
    size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    if (i < size_t(rows) * columns) out[(i % columns) * rows + i / columns] = in[i];
}
Family two_matvec("two_matvec", "matvec", {16384, 131072}, mend_two("uncoalesced_access", "double_precision"),
    [](Buffers &b, long rows) -> Sides {
        int columns = 512;
        float *a = b.random<float>(rows * columns), *t = b.allocate<float>(rows * columns),
              *x = b.random<float>(columns), *y = b.output<float>(rows);
        flip<<<blocks(rows * columns, 256), 256>>>(a, t, rows, columns);
        CHECK_LAUNCH();
        return FOUR(weighted_rows, rows / 128, rows / 128, 128, 0, a, t, x, y, rows, columns);
    });

// Sparse rows: a thread a row, and sums in double precision.
template <bool ThreadPerRow, bool Double>
__global__ void sparse(const int *__restrict__ start, const int *__restrict__ column, const float *__restrict__ value,
    const float *__restrict__ x, float *__restrict__ y, int rows) {
    using Real = std::conditional_t<Double, double, float>;
    int thread = blockIdx.x * 128 + threadIdx.x, row = ThreadPerRow ? thread : thread / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    Real sum = 0;
    for (int k = start[row] + (ThreadPerRow ? 0 : lane); k < start[row + 1]; k += ThreadPerRow ? 1 : 32)
        sum += Real(value[k]) * Real(x[column[k]]);
    if (!ThreadPerRow)
        for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (ThreadPerRow || lane == 0) y[row] = float(sum);
}
Family two_spmv("two_spmv", "spmv", {1 << 17}, mend_two("uncoalesced_access", "double_precision"),
    [](Buffers &b, long rows) -> Sides {
        std::vector<int> start(1, 0), column;
        for (long r = 0; r < rows; ++r) {
            for (int k = 0; k < 96; ++k) column.push_back(int((r + k * 2 + hash(unsigned(r * 96 + k)) % 32) % rows));
            start.push_back(int(column.size()));
        }
        float *value = b.random<float>(long(column.size())), *x = b.random<float>(rows), *y = b.output<float>(rows);
        int *s = b.copy(start), *c = b.copy(column);
        return FOUR(sparse, blocks(rows, 128), blocks(rows, 4), 128, 0, s, c, value, x, y, rows);
    });

// Prices by Monte Carlo: precise functions, and every sample added to a shared total by an atomic.
template <bool Precise, bool Atomic>
__global__ void prices(float *__restrict__ out, int paths) {
    __shared__ int totals[256];
    totals[threadIdx.x] = 0;
    __syncthreads();
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    int sum = 0;
    for (int p = 0; p < paths; ++p) {
        float u = (hash(i * 2654435761u + p) + 1.0f) * 2.3283e-10f, w = hash(i ^ (p * 40503u)) * 2.3283e-10f;
        float normal = Precise ? sqrtf(-2.0f * logf(u)) * sinf(6.2831853f * w)
                               : __fsqrt_rn(-2.0f * __logf(u)) * __sinf(6.2831853f * w);
        int gain = int(fmaxf(normal * 1000.0f, 0.0f));
        if (Atomic) atomicAdd(&totals[threadIdx.x / 32 * 32 + gain % 8], gain);
        else sum += gain;
    }
    if (!Atomic) {
        for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
        if (threadIdx.x % 32 == 0) totals[threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int t = 0; t < 256; ++t) total += totals[t];
        out[blockIdx.x] = total / paths;
    }
}
Family two_monte_carlo("two_monte_carlo", "monte_carlo", {128, 512}, mend_two("expensive_math", "shared_atomics"),
    [](Buffers &b, long paths) -> Sides {
        int grid = multiprocessors() * 8;
        float *out = b.output<float>(grid);
        b.tolerance = 1e-2;
        return FOUR(prices, grid, grid, 256, 0, out, paths);
    });

// A matrix product out of shared tiles: columns of A in few banks, and shared memory that is only held.
template <bool Conflicts, bool Held>
__global__ void __launch_bounds__(256)
    tiles(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    constexpr int B = 64, K = 32, PITCH = Conflicts ? K + 8 : K + 4;
    extern __shared__ float dynamic[];
    float(*as)[PITCH] = reinterpret_cast<float(*)[PITCH]>(dynamic);
    float(*bs)[B] = reinterpret_cast<float(*)[B]>(dynamic + B * (K + 8));
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < n; k0 += K) {
        for (int i = threadIdx.x; i < B * K; i += 256) {
            as[i / K][i % K] = a[size_t(blockIdx.y * B + i / K) * n + k0 + i % K];
            bs[i / B][i % B] = b[size_t(k0 + i / B) * n + blockIdx.x * B + i % B];
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < K; ++k) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) x[i] = as[tx + 16 * i][k];
            for (int j = 0; j < 4; ++j) y[j] = bs[k][ty + 16 * j];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            c[size_t(blockIdx.y * B + tx + 16 * i) * n + blockIdx.x * B + ty + 16 * j] = sum[i][j];
}
Family two_gemm("two_gemm", "gemm", {512, 2048}, mend_two("shared_bank_conflicts", "low_occupancy"),
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * n), *y = b.random<float>(n * n), *out = b.output<float>(n * n);
        dim3 grid(n / 64, n / 64);
        size_t needed = (64 * 40 + 32 * 64) * 4, held = 200 * 1024;
        return {{"both", launch(tiles<true, true>, grid, 256, held, x, y, out, n)},
            {"first_mended", launch(tiles<false, true>, grid, 256, held, x, y, out, n)},
            {"second_mended", launch(tiles<true, false>, grid, 256, needed, x, y, out, n)},
            {"mended", launch(tiles<false, false>, grid, 256, needed, x, y, out, n)}};
    });

// A sum by few threads: four bytes at a time, and one load in flight.
template <bool Narrow, bool Waiting>
__global__ void few_threads(const float *__restrict__ in, float *__restrict__ out, int n) {
    constexpr int IN_FLIGHT = Waiting ? 1 : 8, WIDTH = Narrow ? 1 : 4;
    int i = blockIdx.x * 256 + threadIdx.x, step = gridDim.x * 256;
    float sum = 0.0f;
#pragma unroll 1
    for (int at = i; at < n / WIDTH; at += step * IN_FLIGHT) {
        float4 v[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) {
            if (Narrow) v[k] = {in[at + k * step], 0.0f, 0.0f, 0.0f};
            else v[k] = reinterpret_cast<const float4 *>(in)[at + k * step];
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) sum += Narrow ? v[k].x : v[k].x + v[k].y + v[k].z + v[k].w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
Family two_stream("two_stream", "stream_sum", {32, 256}, mend_two("narrow_access", "memory_latency"),
    [](Buffers &b, long megabytes) -> Sides {
        int grid = multiprocessors() * 2;
        long unit = long(grid) * 256 * 32, n = megabytes * 262144 / unit * unit;
        float *in = b.random<float>(n, 0.0, 1.0), *out = b.output<float>(1, true);
        b.tolerance = 1e-2;
        return FOUR(few_threads, grid, grid, 256, 0, in, out, n);
    });

// Particles: structures, and a time step in double precision.
template <bool Structures, bool Double>
__global__ void move(const float *__restrict__ structures, const float *__restrict__ arrays, float *__restrict__ out,
    int count, float dt, int steps) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    auto field = [&](int f) { return Structures ? structures[size_t(i) * 8 + f] : arrays[size_t(f) * count + i]; };
    float x = field(0), vx = field(4), q = field(7) / field(3);
    for (int s = 0; s < steps; ++s) {
        if (Double) {
            vx = float(vx + dt * q * (0.5 - x));
            x = float(x + 0.99 * dt * vx);
        } else {
            vx = vx + dt * q * (0.5f - x);
            x = x + 0.99f * dt * vx;
        }
    }
    out[i] = x;
}
Family two_particles("two_particles", "particles", {1 << 20, 1 << 23},
    mend_two("uncoalesced_access", "double_precision"), [](Buffers &b, long n) -> Sides {
        std::vector<float> structures(n * 8), arrays(n * 8);
        for (long i = 0; i < n; ++i)
            for (int f = 0; f < 8; ++f)
                structures[i * 8 + f] = arrays[f * n + i] = 0.25f + hash(unsigned(i * 8 + f)) / 4294967296.0f;
        float *s = b.copy(structures), *a = b.copy(arrays), *out = b.output<float>(n);
        return FOUR(move, blocks(n, 256), blocks(n, 256), 256, 0, s, a, out, n, 0.01f, 4);
    });

// Rows of 512 normalised: statistics with a barrier a step, and precise functions for every element.
template <bool Tree, bool Precise>
__global__ void __launch_bounds__(512) gated_norm(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    __shared__ float parts[512];
    for (int r = 0; r < rounds; ++r) {
        size_t at = (size_t(blockIdx.x) * rounds + r) * 512 + threadIdx.x;
        float v = in[at], sum = v * v;
        if (Tree) {
            parts[threadIdx.x] = sum;
            __syncthreads();
            for (int half = 256; half; half /= 2) {
                if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
                __syncthreads();
            }
            sum = parts[0];
        } else {
            sum = warp_sum(sum);
            if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
            __syncthreads();
            sum = warp_sum(threadIdx.x % 32 < 16 ? parts[threadIdx.x % 32] : 0.0f);
        }
        float y = v * rsqrtf(sum / 512 + 1e-6f);
        out[at] = Precise ? y * powf(1.0f + expf(-y), -1.0f) : __fdividef(y, 1.0f + __expf(-y));
        __syncthreads();
    }
}
Family two_norm(
    "two_norm", "norm", {16, 128}, mend_two("barriers", "expensive_math"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 4;
        float *in = b.random<float>(size_t(grid) * rounds * 512), *out = b.output<float>(size_t(grid) * rounds * 512);
        b.tolerance = 1e-3;
        return FOUR(gated_norm, grid, grid, 512, 0, in, out, rounds);
    });

// Walks through a table of moves: of mixed lengths within a warp, and with a history that is indexed at run time.
template <bool Mixed, bool Local>
__global__ void __launch_bounds__(128) history_walks(const int *__restrict__ mixed, const int *__restrict__ mixed_order,
    const int *__restrict__ sorted, const int *__restrict__ sorted_order, float *__restrict__ out) {
    __shared__ float strip[Local ? 1 : 16][Local ? 1 : 128];
    float own[16];
    int i = blockIdx.x * 128 + threadIdx.x, walk = Mixed ? mixed_order[i] : sorted_order[i],
        steps = Mixed ? mixed[i] : sorted[i];
    for (int k = 0; k < 16; ++k) (Local ? own[k] : strip[k][threadIdx.x]) = k * 0.1f;
    unsigned state = walk + 1;
    float sum = 0.0f;
    for (int s = 0; s < steps; ++s) {
        state = state * 1664525u + 1013904223u;
        float &slot = Local ? own[state >> 28] : strip[state >> 28][threadIdx.x];
        sum += slot;
        slot = slot * 0.9f + 0.05f;
    }
    out[walk] = sum;
}
Family two_walks("two_walks", "monte_carlo", {64, 512}, mend_two("branch_divergence", "local_memory"),
    [](Buffers &b, long longest) -> Sides {
        int grid = multiprocessors() * 24, n = grid * 128;
        std::vector<int> lengths(n), sorted(n), order(n);
        for (int i = 0; i < n; ++i) lengths[i] = 1 + int(longest * (hash(unsigned(i)) / 4294967296.0f));
        std::iota(order.begin(), order.end(), 0);
        int *as_is = b.copy(order);
        for (int block = 0; block < grid; ++block)
            std::stable_sort(order.begin() + block * 128, order.begin() + block * 128 + 128,
                [&](int a, int c) { return lengths[a] > lengths[c]; });
        for (int i = 0; i < n; ++i) sorted[i] = lengths[order[i]];
        float *out = b.output<float>(n);
        return FOUR(history_walks, grid, grid, 128, 0, b.copy(lengths), as_is, b.copy(sorted), b.copy(order), out);
    });

// A texture's mipmap level: pixels found by 64-bit divisions, and stored a byte at a time.
template <bool Divided, bool Narrow>
__global__ void halve(
    const uint8_t *__restrict__ in, uint8_t *__restrict__ out, long long width, long long height, int shift) {
    constexpr int PER = Narrow ? 1 : 4;
    long long first = (blockIdx.x * 256ll + threadIdx.x) * PER;
    if (first >= width * height) return;
    long long x = Divided ? first % width : first & (width - 1), y = Divided ? first / width : first >> shift;
    const uint8_t *above = in + (y * 2 * width + x) * 2, *below = above + 2 * width;
    if (Narrow) {
        out[first] = (above[0] + above[1] + below[0] + below[1]) / 4;
        return;
    }
    uint2 a = *reinterpret_cast<const uint2 *>(above), c = *reinterpret_cast<const uint2 *>(below);
    unsigned packed = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        unsigned p = k < 2 ? a.x >> (16 * k) : a.y >> (16 * (k - 2)),
                 q = k < 2 ? c.x >> (16 * k) : c.y >> (16 * (k - 2));
        packed |= ((p & 255) + (p >> 8 & 255) + (q & 255) + (q >> 8 & 255)) / 4 << (8 * k);
    }
    *reinterpret_cast<unsigned *>(out + first) = packed;
}
Family two_mipmap("two_mipmap", "image", {2048, 8192}, mend_two("integer_arithmetic", "narrow_access"),
    [](Buffers &b, long width) -> Sides {
        auto *in = reinterpret_cast<uint8_t *>(b.random<int>(width * width, -2147483648.0, 2147483647.0));
        auto *out = reinterpret_cast<uint8_t *>(b.output<int>(width * width / 4));
        int shift = 31 - __builtin_clz(unsigned(width));
        return {{"both", launch(halve<true, true>, blocks(width * width, 256), 256, 0, in, out, width, width, shift)},
            {"first_mended",
                launch(halve<false, true>, blocks(width * width, 256), 256, 0, in, out, width, width, shift)},
            {"second_mended",
                launch(halve<true, false>, blocks(width * width, 1024), 256, 0, in, out, width, width, shift)},
            {"mended", launch(halve<false, false>, blocks(width * width, 1024), 256, 0, in, out, width, width, shift)}};
    });

}  // namespace
