// Kernels whose threads differ: atomics, uneven rows, divergent branches, few blocks.
#include "harness.cuh"

namespace {

__global__ void histogram(const float *x, unsigned *bins, long long n) {
    __shared__ unsigned counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        atomicAdd(&counts[unsigned(x[i]) & 255], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

__global__ void scatter_add(unsigned *bins, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        atomicAdd(&bins[scramble(unsigned(i)) % kCounters], 1u);
}

__global__ void hot_counter(unsigned *bins, float *y, int steps) {
    unsigned last = 0;
    for (int step = 0; step < steps; ++step) last += atomicAdd(&bins[last & 1], 1u + (threadIdx.x & last));
    y[blockIdx.x * blockDim.x + threadIdx.x] = float(last);
}

__global__ void compare_and_swap(unsigned *bins, int steps) {
    for (int step = 0; step < steps; ++step) {
        unsigned *word = &bins[scramble(threadIdx.x + blockIdx.x * 1024 + step * 77777) % 4096];
        unsigned seen = *word, old;
        do {
            old = seen;
            seen = atomicCAS(word, old, old * 3 + 1);
        } while (seen != old);
    }
}

__global__ void mandelbrot(float *y, int limit) {
    float cx = -2.0f + 3.0f * (blockIdx.x * blockDim.x + threadIdx.x) / (gridDim.x * blockDim.x);
    float cy = -1.0f + 2.0f * blockIdx.y / gridDim.y, zx = 0, zy = 0;
    int step = 0;
    while (step < limit && zx * zx + zy * zy < 4) {
        float next = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = next;
        ++step;
    }
    y[size_t(blockIdx.y) * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x] = float(step);
}

__global__ void uneven_rows(const float *x, float *y, int rows) {
    for (int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; row < rows; row += gridDim.x * (blockDim.x / 32)) {
        unsigned length = 8 + scramble(row) % 512;
        float total = 0;
        for (unsigned i = threadIdx.x % 32; i < length; i += 32) total += x[scramble(row * 131 + i / 4) % kElements];
        for (int step = 16; step; step /= 2) total += __shfl_down_sync(~0u, total, step);
        if (threadIdx.x % 32 == 0) y[row] = total;
    }
}

__global__ void softmax(const float *x, float *y, int rows) {
    __shared__ float shared[256];
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float total = 0;
        for (int i = threadIdx.x; i < 4096; i += blockDim.x) total += __expf(x[size_t(row) * 4096 + i] * 0.01f);
        shared[threadIdx.x] = total;
        for (int half = 128; half; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        }
        __syncthreads();
        float scale = 1 / shared[0];
        for (int i = threadIdx.x; i < 4096; i += blockDim.x)
            y[size_t(row) * 4096 + i] = __expf(x[size_t(row) * 4096 + i] * 0.01f) * scale;
        __syncthreads();
    }
}

// Two kernels that share a function name: only the template argument tells them apart.
template <int Width>
__global__ void normalise(const float *x, float *y, int rows) {
    int lane = threadIdx.x % 32;
    for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32; row < rows; row += gridDim.x * blockDim.x / 32) {
        float values[Width / 32], squares = 0;
        for (int i = 0; i < Width / 32; ++i) {
            values[i] = x[size_t(row) * Width + i * 32 + lane];
            squares += values[i] * values[i];
        }
        for (int step = 16; step; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
        float scale = rsqrtf(squares / Width + 1e-5f);
        for (int i = 0; i < Width / 32; ++i) y[size_t(row) * Width + i * 32 + lane] = values[i] * scale;
    }
}

__global__ void sort_blocks(float *y, int rounds) {
    __shared__ float keys[512];
    for (int round = 0; round < rounds; ++round) {
        keys[threadIdx.x] = float(scramble(threadIdx.x + blockIdx.x * 512 + round));
        for (unsigned size = 2; size <= 512; size *= 2)
            for (unsigned step = size / 2; step; step /= 2) {
                __syncthreads();
                unsigned other = threadIdx.x ^ step;
                if (other > threadIdx.x) {
                    bool up = (threadIdx.x & size) == 0;
                    float a = keys[threadIdx.x], b = keys[other];
                    if ((a > b) == up) keys[threadIdx.x] = b, keys[other] = a;
                }
            }
        __syncthreads();
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = keys[threadIdx.x];
}

__global__ void one_block(const float *x, float *y, int steps) {
    __shared__ float parts[256];
    float total = 0;
    for (int step = 0; step < steps; ++step) {
        parts[threadIdx.x] = x[step * 256 + threadIdx.x] + total;
        __syncthreads();
        total = parts[(threadIdx.x * 7 + 1) % 256];
        __syncthreads();
    }
    y[threadIdx.x] = total;
}

Register bins("histogram", [](const Buffers &b, int w) { histogram<<<528, 256>>>(b.x, b.counters, scaled(16000000, w)); });
Register scattered("scatter_add", [](const Buffers &b, int w) { scatter_add<<<528, 256>>>(b.counters, scaled(8000000, w)); });
Register hot("hot_counter", [](const Buffers &b, int w) { hot_counter<<<132, 128>>>(b.counters, b.y, int(scaled(200, w))); });
Register swaps("compare_and_swap", [](const Buffers &b, int w) { compare_and_swap<<<264, 128>>>(b.counters, int(scaled(100, w))); });
Register fractal("mandelbrot", [](const Buffers &b, int w) { mandelbrot<<<dim3(16, 2048), 128>>>(b.y, int(scaled(500, w))); });
Register rows("uneven_rows", [](const Buffers &b, int w) { uneven_rows<<<1056, 128>>>(b.x, b.y, int(scaled(100000, w))); });
Register maxima("softmax", [](const Buffers &b, int w) { softmax<<<1056, 256>>>(b.x, b.y, int(scaled(40000, w))); });
Register narrow("normalise<256>", [](const Buffers &b, int w) { normalise<256><<<528, 256>>>(b.x, b.y, int(scaled(40000, w))); });
Register wide("normalise<1024>", [](const Buffers &b, int w) { normalise<1024><<<528, 256>>>(b.x, b.y, int(scaled(40000, w))); });
Register sorts("sort_blocks", [](const Buffers &b, int w) { sort_blocks<<<264, 512>>>(b.y, int(scaled(100, w))); });
Register alone("one_block", [](const Buffers &b, int w) { one_block<<<1, 256>>>(b.x, b.y, int(scaled(500, w))); });
Register few("few_blocks", [](const Buffers &b, int w) { one_block<<<8, 256>>>(b.x, b.y, int(scaled(4000, w))); });

}  // namespace
