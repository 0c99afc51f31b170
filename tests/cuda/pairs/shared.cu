// Shared memory: bank conflicts, and too many bytes asked of it for the arithmetic done.
#include "pair.cuh"

namespace {

// Transpose through a tile whose columns lie in one bank, or are shifted by one word a row.
template <int Padding>
__global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[32][32 + Padding];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) tile[threadIdx.y + row][threadIdx.x] = in[size_t(y + row) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) out[size_t(y + row) * n + x] = tile[threadIdx.x][threadIdx.y + row];
}
// Two words of padding leave two-way conflicts, which memory hides.
Family transpose_padding("transpose_padding", "transpose", {2048, 8192},
    {flaw("unpadded", "shared_bank_conflicts"), flaw("two_way", "shared_bank_conflicts", "behind_limit")},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * n), *out = b.output<float>(n * n);
        dim3 grid(n / 32, n / 32), block(32, 8);
        return {{"unpadded", launch(transpose<0>, grid, block, 0, in, out, n)},
            {"two_way", launch(transpose<2>, grid, block, 0, in, out, n)},
            {"mended", launch(transpose<1>, grid, block, 0, in, out, n)}};
    });

// A thread sorts out a short row of its own in shared memory: rows of 32 words lie in one bank, rows of 33 in all.
template <int Padding>
__global__ void row_softmax(const float *__restrict__ in, float *__restrict__ out, int rows) {
    __shared__ float tile[128][32 + Padding];
    int first = blockIdx.x * 128;
    for (int i = threadIdx.x; i < 128 * 32; i += 128) tile[i / 32][i % 32] = in[size_t(first) * 32 + i];
    __syncthreads();
    float *mine = tile[threadIdx.x];
    float top = mine[0], sum = 0.0f;
    for (int k = 1; k < 32; ++k) top = fmaxf(top, mine[k]);
    for (int k = 0; k < 32; ++k) sum += mine[k] = __expf(mine[k] - top);
    for (int k = 0; k < 32; ++k) mine[k] /= sum;
    __syncthreads();
    for (int i = threadIdx.x; i < 128 * 32; i += 128) out[size_t(first) * 32 + i] = tile[i / 32][i % 32];
}
Family softmax_short_rows("softmax_short_rows", "softmax", {1 << 17, 1 << 20}, mend("shared_bank_conflicts", "real"),
    [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 32), *out = b.output<float>(rows * 32);
        return flawed_mended(launch(row_softmax<0>, rows / 128, 128, 0, in, out, rows),
            launch(row_softmax<1>, rows / 128, 128, 0, in, out, rows));
    });

// Histograms of its own for every thread: bins of a thread side by side (conflicts by bin), or a bin's threads.
template <bool ByThread>
__global__ void thread_histograms(const unsigned *__restrict__ in, int *__restrict__ out, int words, int rounds) {
    constexpr int BINS = 64, THREADS = 128;
    extern __shared__ int counts[];
    for (int i = threadIdx.x; i < BINS * THREADS; i += THREADS) counts[i] = 0;
    __syncthreads();
    auto slot = [&](int bin) -> int & {
        return counts[ByThread ? threadIdx.x * BINS + bin : bin * THREADS + threadIdx.x];
    };
    for (int r = 0; r < rounds; ++r) {
        unsigned v = in[(size_t(blockIdx.x) * rounds + r) * THREADS + threadIdx.x];
#pragma unroll
        for (int k = 0; k < 5; ++k) ++slot((v >> (6 * k)) & 63);
    }
    __syncthreads();
    if (threadIdx.x < BINS) {
        int sum = 0;
        for (int t = 0; t < THREADS; ++t) {
            int turn = (t + threadIdx.x) % THREADS;
            sum += counts[ByThread ? turn * BINS + threadIdx.x : threadIdx.x * THREADS + turn];
        }
        out[blockIdx.x * BINS + threadIdx.x] = sum;
    }
}
Family histogram_by_thread(
    "histogram_by_thread", "histogram", {64, 512}, mend("shared_bank_conflicts"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 6;
        // Values of an image are alike: neighbours fall into few bins, so threads of a warp meet in one bank.
        std::vector<int> pixels(size_t(grid) * rounds * 128);
        for (size_t i = 0; i < pixels.size(); ++i) {
            unsigned level = hash(unsigned(i / 1024)) % 56, v = 0;
            for (int k = 0; k < 5; ++k) v |= ((level + hash(unsigned(i * 5 + k)) % 8) & 63) << (6 * k);
            pixels[i] = int(v);
        }
        auto *in = reinterpret_cast<unsigned *>(b.copy(pixels));
        int *out = b.output<int>(grid * 64);
        size_t shared = 64 * 128 * 4;
        return flawed_mended(launch(thread_histograms<true>, grid, 128, shared, in, out, 0, rounds),
            launch(thread_histograms<false>, grid, 128, shared, in, out, 0, rounds));
    });

// Fast Fourier-like butterflies: strides of 8 to 64 words, in place, against an index skewed by a word in 32.
template <bool Skewed>
__device__ int place(int i) {
    return Skewed ? i + i / 32 : i;
}
template <bool Skewed>
__global__ void butterflies(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    __shared__ float data[1024 + 32];
    for (int k = threadIdx.x; k < 1024; k += 256) data[place<Skewed>(k)] = in[blockIdx.x * 1024 + k];
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int bits = 2; bits < 6; ++bits) {
            __syncthreads();
            // Neighbours are 2 << bits words apart: 8, 16, 32, 64.
            for (int t = threadIdx.x; t < 512; t += 256) {
                int groups_bits = 9 - bits, low = ((t & ((1 << groups_bits) - 1)) << (bits + 1)) + (t >> groups_bits);
                int high = low + (1 << bits);
                float x = data[place<Skewed>(low)], y = data[place<Skewed>(high)];
                data[place<Skewed>(low)] = 0.5f * (x + y);
                data[place<Skewed>(high)] = 0.5f * (x - y) + 0.5f;
            }
        }
    __syncthreads();
    for (int k = threadIdx.x; k < 1024; k += 256) out[blockIdx.x * 1024 + k] = data[place<Skewed>(k)];
}
Family butterflies_skew(
    "butterflies_skew", "fft", {4, 32}, mend("shared_bank_conflicts"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 16;
        float *in = b.random<float>(grid * 1024), *out = b.output<float>(grid * 1024);
        return flawed_mended(launch(butterflies<false>, grid, 256, 0, in, out, rounds),
            launch(butterflies<true>, grid, 256, 0, in, out, rounds));
    });

// A matrix product with four by four outputs a thread; the tile of A is stored so that its columns meet in few banks.
template <int Padding>
__global__ void gemm_tile(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    constexpr int B = 64, K = 32;
    __shared__ float as[B][K + Padding], bs[K][B];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < n; k0 += K) {
        for (int i = threadIdx.x; i < B * K; i += 256) {
            as[i / K][i % K] = a[size_t(blockIdx.y * B + i / K) * n + k0 + i % K];
            bs[i / B][i % B] = b[size_t(k0 + i / B) * n + blockIdx.x * B + i % B];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K; ++k) {
            float x[4], y[4];
            // Threads of a warp differ in their column of A here: 16 rows, K + Padding words apart.
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
// Loads of four words: pitches of 32, 40 and 36 words put eight rows into one, four and eight groups of banks.
Family gemm_tile_conflicts("gemm_tile_conflicts", "gemm", {512, 2048},
    {flaw("eight_way", "shared_bank_conflicts"), flaw("two_way", "shared_bank_conflicts")},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * n), *y = b.random<float>(n * n), *out = b.output<float>(n * n);
        dim3 grid(n / 64, n / 64);
        return {{"eight_way", launch(gemm_tile<0>, grid, 256, 0, x, y, out, n)},
            {"two_way", launch(gemm_tile<8>, grid, 256, 0, x, y, out, n)},
            {"mended", launch(gemm_tile<4>, grid, 256, 0, x, y, out, n)}};
    });

// One output a thread out of shared tiles, or four by four: the same products for a fourth of the shared bytes.
template <int T>
__global__ void gemm_per_thread(
    const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    constexpr int B = 64, K = 16, SIDE = B / T;
    __shared__ float as[K][B], bs[K][B];
    int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;
    float sum[T][T] = {};
    for (int k0 = 0; k0 < n; k0 += K) {
        for (int i = threadIdx.x; i < B * K; i += SIDE * SIDE) {
            as[i / B][i % B] = a[size_t(k0 + i / B) * n + blockIdx.y * B + i % B];  // A is stored by columns
            bs[i / B][i % B] = b[size_t(k0 + i / B) * n + blockIdx.x * B + i % B];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K; ++k) {
            float x[T], y[T];
            for (int i = 0; i < T; ++i) x[i] = as[k][ty + SIDE * i];
            for (int j = 0; j < T; ++j) y[j] = bs[k][tx + SIDE * j];
            for (int i = 0; i < T; ++i)
                for (int j = 0; j < T; ++j) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < T; ++i)
        for (int j = 0; j < T; ++j)
            c[size_t(blockIdx.y * B + ty + SIDE * i) * n + blockIdx.x * B + tx + SIDE * j] = sum[i][j];
}
Family gemm_two_by_two(
    "gemm_two_by_two", "gemm", {512, 2048}, mend("shared_memory_bandwidth"), [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * n), *y = b.random<float>(n * n), *out = b.output<float>(n * n);
        dim3 grid(n / 64, n / 64);
        return flawed_mended(launch(gemm_per_thread<2>, grid, 1024, 0, x, y, out, n),
            launch(gemm_per_thread<8>, grid, 64, 0, x, y, out, n));
    });

// A filter of 33 taps out of shared memory, one output a thread at a time, or eight out of a window in registers.
template <bool Window>
__global__ void filter_tile(const float *__restrict__ in, float *__restrict__ out, int n) {
    constexpr int TAPS = 33, PER = 8, THREADS = 128;
    __shared__ float tile[THREADS * (PER + 1) + TAPS + 8];
    int base = blockIdx.x * THREADS * PER;
    // One word of padding in eight: a thread's stretch of eight then starts in a bank of its own.
    auto at = [](int i) { return i + i / 8; };
    for (int i = threadIdx.x; i < THREADS * PER + TAPS - 1; i += THREADS) tile[at(i)] = in[base + i];
    __syncthreads();
    float sum[PER] = {};
    if (Window) {
        float window[PER + TAPS - 1];
#pragma unroll
        for (int i = 0; i < PER + TAPS - 1; ++i) window[i] = tile[threadIdx.x * 9 + i + i / 8];
#pragma unroll
        for (int t = 0; t < TAPS; ++t)
#pragma unroll
            for (int k = 0; k < PER; ++k) sum[k] += window[k + t] * (1.0f / (t + 2));
    } else {
#pragma unroll 1
        for (int k = 0; k < PER; ++k) {
            float one = 0.0f;
#pragma unroll
            for (int t = 0; t < TAPS; ++t) one += tile[at(threadIdx.x * PER + k + t)] * (1.0f / (t + 2));
            out[base + threadIdx.x * PER + k] = one;
        }
        return;
    }
    for (int k = 0; k < PER; ++k) out[base + threadIdx.x * PER + k] = sum[k];
}
Family filter_window(
    "filter_window", "smooth", {1 << 21, 1 << 24}, mend("shared_memory_bandwidth"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n + 4096), *out = b.output<float>(n);
        return flawed_mended(launch(filter_tile<false>, n / 1024, 128, 0, in, out, n),
            launch(filter_tile<true>, n / 1024, 128, 0, in, out, n));
    });

// Pairwise distances out of a shared tile: a query a thread, or eight queries a thread for each value read.
template <int Q>
__global__ void nearest(
    const float2 *__restrict__ points, const float2 *__restrict__ queries, float *__restrict__ out, int count) {
    constexpr int THREADS = 1024 / Q;
    __shared__ float2 tile[1024];
    float2 mine[Q];
    float best[Q];
    for (int q = 0; q < Q; ++q) {
        mine[q] = queries[blockIdx.x * 1024 + q * THREADS + threadIdx.x];
        best[q] = 1e30f;
    }
    for (int start = 0; start < count; start += 1024) {
        __syncthreads();
        for (int i = threadIdx.x; i < 1024; i += THREADS) tile[i] = points[start + i];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 1024; ++j) {
            float2 p = tile[j];
            for (int q = 0; q < Q; ++q) {
                float dx = p.x - mine[q].x, dy = p.y - mine[q].y;
                best[q] = fminf(best[q], dx * dx + dy * dy);
            }
        }
    }
    for (int q = 0; q < Q; ++q) out[blockIdx.x * 1024 + q * THREADS + threadIdx.x] = best[q];
}
Family nearest_queries(
    "nearest_queries", "nearest", {4096, 32768}, mend("shared_memory_bandwidth"), [](Buffers &b, long count) -> Sides {
        int grid = multiprocessors() * 4;
        auto *points = reinterpret_cast<float2 *>(b.random<float>(count * 2)),
             *queries = reinterpret_cast<float2 *>(b.random<float>(grid * 2048));
        float *out = b.output<float>(grid * 1024);
        return flawed_mended(launch(nearest<1>, grid, 1024, 0, points, queries, out, count),
            launch(nearest<4>, grid, 256, 0, points, queries, out, count));
    });

}  // namespace
