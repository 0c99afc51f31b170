// The same bytes asked for again (redundant loads), and asked for in an order that the caches cannot serve.
#include <algorithm>
#include <numeric>

#include "pair.cuh"

namespace {

// Seven by seven convolution, every pixel loaded by each of the 49 outputs that need it, or once into a tile.
constexpr int R = 3, W = 2 * R + 1;
__constant__ float filter[W * W] = {.01f, .02f, .03f, .04f, .03f, .02f, .01f, .02f, .03f, .04f, .05f, .04f, .03f, .02f,
    .03f, .04f, .05f, .06f, .05f, .04f, .03f, .04f, .05f, .06f, .07f, .06f, .05f, .04f, .03f, .04f, .05f, .06f, .05f,
    .04f, .03f, .02f, .03f, .04f, .05f, .04f, .03f, .02f, .01f, .02f, .03f, .04f, .03f, .02f, .01f};

template <bool Direct>
__global__ void convolve(const float *__restrict__ in, float *__restrict__ out, int width, int height) {
    constexpr int TX = 32, TY = 8;
    __shared__ float tile[Direct ? 1 : TY * 4 + 2 * R][Direct ? 1 : TX + 2 * R];
    int x = blockIdx.x * TX + threadIdx.x, y0 = blockIdx.y * TY * 4;
    int pitch = width + 2 * R;
    if (!Direct) {
        for (int i = threadIdx.y * TX + threadIdx.x; i < (TY * 4 + 2 * R) * (TX + 2 * R); i += TX * TY) {
            int row = i / (TX + 2 * R), column = i % (TX + 2 * R);
            tile[row][column] = in[size_t(y0 + row) * pitch + blockIdx.x * TX + column];
        }
        __syncthreads();
    }
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
        int row = threadIdx.y + k * TY;
        float sum = 0.0f;
#pragma unroll
        for (int dy = 0; dy < W; ++dy)
#pragma unroll
            for (int dx = 0; dx < W; ++dx)
                sum += filter[dy * W + dx] *
                       (Direct ? in[size_t(y0 + row + dy) * pitch + x + dx] : tile[row + dy][threadIdx.x + dx]);
        out[size_t(y0 + row) * width + x] = sum;
    }
}
Family convolution_direct("convolution_direct", "convolution", {2048, 8192}, mend("redundant_loads", "real"),
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>((n + 2 * R) * (n + 2 * R)), *out = b.output<float>(n * n);
        dim3 grid(n / 32, n / 32), block(32, 8);
        return flawed_mended(launch(convolve<true>, grid, block, 0, in, out, n, n),
            launch(convolve<false>, grid, block, 0, in, out, n, n));
    });

// A long one-dimensional filter: 2 * 32 + 1 loads an output, or each value once into registers that eight outputs
// share.
template <bool Direct>
__global__ void smooth(const float *__restrict__ in, float *__restrict__ out, int n) {
    constexpr int TAPS = 33, PER = 8;
    int first = blockIdx.x * blockDim.x * PER + threadIdx.x;
    if (Direct) {
#pragma unroll 1
        for (int k = 0; k < PER; ++k) {
            int i = first + k * blockDim.x;
            float sum = 0.0f;
#pragma unroll
            for (int t = 0; t < TAPS; ++t) sum += in[i + t] * (1.0f / (t + 1));
            if (i < n) out[i] = sum;
        }
        return;
    }
    __shared__ float tile[256 * PER + TAPS];
    int base = blockIdx.x * blockDim.x * PER;
    for (int i = threadIdx.x; i < 256 * PER + TAPS - 1; i += 256) tile[i] = in[base + i];
    __syncthreads();
    float sum[PER] = {};
    // Thread t owns outputs t * 8 ...: a window of 40 values in registers, each read from shared memory once.
    float window[PER + TAPS - 1];
#pragma unroll
    for (int i = 0; i < PER + TAPS - 1; ++i) window[i] = tile[threadIdx.x * PER + i];
#pragma unroll
    for (int t = 0; t < TAPS; ++t)
#pragma unroll
        for (int k = 0; k < PER; ++k) sum[k] += window[k + t] * (1.0f / (t + 1));
    __syncthreads();
    for (int k = 0; k < PER; ++k) tile[threadIdx.x * PER + k] = sum[k];
    __syncthreads();
    for (int k = 0; k < PER; ++k)
        if (first + k * 256 < n) out[first + k * 256] = tile[threadIdx.x + k * 256];
}
Family smooth_direct(
    "smooth_direct", "smooth", {1 << 21, 1 << 25}, mend("redundant_loads"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n + 4096), *out = b.output<float>(n);
        return flawed_mended(launch(smooth<true>, blocks(n, 2048), 256, 0, in, out, n),
            launch(smooth<false>, blocks(n, 2048), 256, 0, in, out, n));
    });

// Products of small matrices, a thread an output: rows and columns come from L1 every time, or once from a tile.
template <bool Direct>
__global__ void gemm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    float sum = 0.0f;
    if (Direct) {
        for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
    } else {
        __shared__ float as[32][32], bs[32][32];
        for (int k0 = 0; k0 < n; k0 += 32) {
            as[threadIdx.y][threadIdx.x] = a[y * n + k0 + threadIdx.x];
            bs[threadIdx.y][threadIdx.x] = b[(k0 + threadIdx.y) * n + x];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 32; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
            __syncthreads();
        }
    }
    c[y * n + x] = sum;
}
Family gemm_direct("gemm_direct", "gemm_small", {512, 1024}, mend("redundant_loads"), [](Buffers &b, long n) -> Sides {
    float *x = b.random<float>(n * n), *y = b.random<float>(n * n), *out = b.output<float>(n * n);
    dim3 grid(n / 32, n / 32), block(32, 32);
    return flawed_mended(
        launch(gemm<true>, grid, block, 0, x, y, out, n), launch(gemm<false>, grid, block, 0, x, y, out, n));
});

// A seven-point stencil in three dimensions, marching along z: the column below and above read again, or kept.
template <bool Again>
__global__ void stencil(const float *__restrict__ in, float *__restrict__ out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
    size_t pitch = n + 2, plane = pitch * pitch, i = plane + y * pitch + x;
    int depth = n / 8;
    i += size_t(blockIdx.z) * depth * plane;
    float below = in[i - plane], here = in[i];
#pragma unroll 1
    for (int z = 0; z < depth; ++z, i += plane) {
        float above = in[i + plane];
        if (Again) {
            below = __ldcv(&in[i - plane]);  // volatile: the compiler would keep the last step's values itself
            here = __ldcv(&in[i]);
        }
        float sides = in[i - 1] + in[i + 1] + in[i - pitch] + in[i + pitch];
        out[i] = 0.4f * here + 0.1f * (sides + below + above);
        below = here;
        here = above;
    }
}
Family stencil_again(
    "stencil_again", "stencil", {256, 512}, mend("redundant_loads", "real"), [](Buffers &b, long n) -> Sides {
        size_t cells = size_t(n + 2) * (n + 2) * (n + 2);
        float *in = b.random<float>(cells), *out = b.output<float>(cells, true);
        dim3 grid(n / 32, n / 8, 8), block(32, 8);
        return flawed_mended(
            launch(stencil<true>, grid, block, 0, in, out, n), launch(stencil<false>, grid, block, 0, in, out, n));
    });

// Bodies attract each other: positions from memory for every pair, or a tile at a time.
template <bool Direct>
__global__ void attract(const float4 *__restrict__ bodies, float *__restrict__ out, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 me = bodies[i];
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int start = 0; start < n; start += 256) {
        if (!Direct) {
            __syncthreads();
            tile[threadIdx.x] = bodies[start + threadIdx.x];
            __syncthreads();
        }
#pragma unroll 8
        for (int j = 0; j < 256; ++j) {
            float4 other = Direct ? bodies[start + j] : tile[j];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float force = other.w * inverse * inverse * inverse;
            fx += dx * force, fy += dy * force, fz += dz * force;
        }
    }
    out[i] = fx, out[n + i] = fy, out[2 * n + i] = fz;
}
Family nbody_direct(
    "nbody_direct", "nbody", {8192, 32768}, mend("redundant_loads", "real"), [](Buffers &b, long n) -> Sides {
        auto *bodies = reinterpret_cast<float4 *>(b.random<float>(n * 4));
        float *out = b.output<float>(n * 3);
        b.tolerance = 1e-3;
        return flawed_mended(launch(attract<true>, n / 256, 256, 0, bodies, out, n),
            launch(attract<false>, n / 256, 256, 0, bodies, out, n));
    });

// Every panel against every panel. Panels together are larger than L2: rows of pairs sweep through all of them, squares
// of pairs stay within a few.
__global__ void panels(
    const float4 *__restrict__ left, const float4 *__restrict__ right, float *__restrict__ out, int count, int square) {
    constexpr int LENGTH = 8192;  // float4s a panel: 128 KiB
    int i, j;
    if (square) {
        int per_band = square * count, band = blockIdx.x / per_band, rest = blockIdx.x % per_band;
        i = band * square + rest % square;
        j = rest / square;
    } else {
        i = blockIdx.x / count;
        j = blockIdx.x % count;
    }
    const float4 *a = left + size_t(i) * LENGTH, *b = right + size_t(j) * LENGTH;
    float sum = 0.0f;
#pragma unroll 4
    for (int k = threadIdx.x; k < LENGTH; k += 256) {
        float4 x = a[k], y = b[k];
        sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
    }
    __shared__ float parts[8];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (float part : parts) sum += part;
        out[size_t(i) * count + j] = sum;
    }
}
Family panel_order("panel_order", "panels", {128, 512}, mend("cache_locality"), [](Buffers &b, long n) -> Sides {
    // The small one fits L2 whichever way it is swept.
    auto *x = reinterpret_cast<float4 *>(b.random<float>(n * 32768)),
         *y = reinterpret_cast<float4 *>(b.random<float>(n * 32768));
    float *out = b.output<float>(n * n);
    return flawed_mended(
        launch(panels, n * n, 256, 0, x, y, out, n, 0), launch(panels, n * n, 256, 0, x, y, out, n, 32));
});

// Rows of a table fetched in the order asked for, or with the same rows asked for in order.
__global__ void lookup(
    const float2 *__restrict__ table, const int *__restrict__ rows, float2 *__restrict__ out, int count) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= count) return;
    float2 value = table[size_t(rows[warp]) * 32 + lane];
    float2 sum = {value.x, value.y};
    for (int k = 1; k < 8; ++k) {
        value = table[size_t(rows[warp + k * count]) * 32 + lane];
        sum.x += value.x, sum.y += value.y;
    }
    out[size_t(warp) * 32 + lane] = sum;
}
Family embedding_order("embedding_order", "embedding", {1 << 15, 1 << 18}, mend("cache_locality", "real"),
    [](Buffers &b, long count) -> Sides {
        long table_rows = 1 << 20;  // 256 MiB
        std::vector<int> rows(count * 8);
        for (long i = 0; i < count * 8; ++i) {
            // Neighbouring bags want neighbouring rows, as sentences of one text do.
            rows[i] = int((i % count * table_rows / count / 64 + hash(unsigned(i)) % 64) % table_rows);
        }
        std::vector<int> order(count), shuffled(count * 8);
        std::iota(order.begin(), order.end(), 0);
        for (long i = count - 1; i > 0; --i) std::swap(order[i], order[hash(unsigned(i) * 7 + 1) % (i + 1)]);
        for (long k = 0; k < 8; ++k)
            for (long i = 0; i < count; ++i) shuffled[k * count + i] = rows[k * count + order[i]];
        float *table = b.random<float>(table_rows * 64);
        int *r = b.copy(rows), *s = b.copy(shuffled);
        // Bags come out in another order: what is compared is the sum of all of them.
        float *bags = b.allocate<float>(count * 64), *out = b.output<float>(64, true);
        b.tolerance = 1e-3;
        auto total = [=] {
            std::vector<float> host(count * 64);
            std::vector<float> sums(64);
            CHECK(cudaMemcpy(host.data(), bags, host.size() * 4, cudaMemcpyDeviceToHost));
            for (int c = 0; c < 64; ++c) {
                double sum = 0.0;
                for (long i = 0; i < count; ++i) sum += std::abs(host[i * 64 + c]);
                sums[c] = float(sum);
            }
            CHECK(cudaMemcpy(out, sums.data(), 256, cudaMemcpyHostToDevice));
        };
        auto run = [=](int *order_of_rows) {
            return launch(lookup, blocks(count, 8), 256, 0, reinterpret_cast<float2 *>(table), order_of_rows,
                reinterpret_cast<float2 *>(bags), count);
        };
        return {{"flawed", run(s), {}, 1, total}, {"mended", run(r), {}, 1, total}};
    });

// A five by five box over an image by strips one pixel high or by squares: the same loads, more of them found in L1.
template <int TX, int TY>
__global__ void box(const float *__restrict__ in, float *__restrict__ out, int width) {
    int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * TY + threadIdx.y, pitch = width + 16;
    float sum = 0.0f;
#pragma unroll
    for (int dy = 0; dy < 15; ++dy) sum += in[size_t(y + dy) * pitch + x];
    out[size_t(y) * width + x] = sum;
}
Family box_strips("box_strips", "box", {2048, 8192}, mend("cache_locality"), [](Buffers &b, long n) -> Sides {
    float *in = b.random<float>((n + 16) * (n + 16)), *out = b.output<float>(n * n);
    return flawed_mended(launch(box<1024, 1>, dim3(n / 1024, n), dim3(1024, 1), 0, in, out, n),
        launch(box<32, 32>, dim3(n / 32, n / 32), dim3(32, 32), 0, in, out, n));
});

}  // namespace
