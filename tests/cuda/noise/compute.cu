// Kernels that wait for arithmetic: FP32, FP64, integers, special functions, tensor cores, shared memory.
#include <mma.h>

#include "harness.cuh"

namespace {

__global__ void multiply_add(float *y, int steps) {
    float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
    for (int step = 0; step < steps; ++step) {
        a = a * 0.999f + 0.5f;
        b = b * 0.999f + 0.5f;
        c = c * 0.999f + 0.5f;
        d = d * 0.999f + 0.5f;
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

__global__ void multiply_add_double(float *y, int steps) {
    double a = threadIdx.x, b = a + 1;
    for (int step = 0; step < steps; ++step) {
        a = a * 0.999 + 0.5;
        b = b * 0.999 + 0.5;
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = float(a + b);
}

__global__ void sine(float *y, int steps) {
    float a = threadIdx.x;
    for (int step = 0; step < steps; ++step) a = __sinf(a) + 1.5f;
    y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

__global__ void remainders(float *y, unsigned divisor, int steps) {
    unsigned a = threadIdx.x + blockIdx.x;
    for (int step = 0; step < steps; ++step) a = (a * 1664525u + 1013904223u) % (divisor + step);
    y[blockIdx.x * blockDim.x + threadIdx.x] = float(a);
}

__global__ void tensor(float *y, int steps) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(a, __float2half(0.01f * (threadIdx.x % 7)));
    wmma::fill_fragment(b, __float2half(0.02f));
    wmma::fill_fragment(c, 0.0f);
    for (int step = 0; step < steps; ++step) wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(y + size_t(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 256, c, 16, wmma::mem_row_major);
}

__global__ void product_plain(const float *a, const float *b, float *c, int n, int k) {
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    float total = 0;
    for (int i = 0; i < k; ++i) total += a[size_t(row) * 4096 + i] * b[size_t(i) * n + column];
    c[size_t(row) * n + column] = total;
}

__global__ void product_tiled(const float *a, const float *b, float *c, int n, int k) {
    constexpr int depth = 20;
    __shared__ float left[32][depth + 1], right[depth][32];
    int thread = threadIdx.y * 32 + threadIdx.x;
    float total = 0;
    for (int start = 0; start < k; start += depth) {
        if (thread < 32 * depth) {
            left[thread / depth][thread % depth] = a[size_t(blockIdx.y * 32 + thread / depth) * 4096 + start + thread % depth];
            right[thread / 32][thread % 32] = b[size_t(start + thread / 32) * n + blockIdx.x * 32 + thread % 32];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < depth; ++i) total += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[size_t(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x] = total;
}

__global__ void conflicts(float *y, int steps) {
    __shared__ float words[4096];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) words[i] = float(i);
    __syncthreads();
    int at = threadIdx.x * 8 % 4096;
    float total = 0;
    for (int step = 0; step < steps; ++step) {
        total += words[at];
        at = (at + 8 + int(total > 1e30f)) % 4096;
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

__global__ void barriers(float *y, int steps) {
    __shared__ float words[512];
    words[threadIdx.x] = float(threadIdx.x);
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        float next = words[(threadIdx.x + 1) % 512] * 0.5f + 1.0f;
        __syncthreads();
        words[threadIdx.x] = next;
        __syncthreads();
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x];
}

__global__ void local_array(float *y, int steps) {
    float values[64];
    for (int i = 0; i < 64; ++i) values[i] = float(i + threadIdx.x);
    unsigned at = threadIdx.x;
    for (int step = 0; step < steps; ++step) {
        at = at * 1664525u + 1013904223u;
        values[at >> 26] += values[(at >> 20) & 63] * 0.5f;
    }
    float total = 0;
    for (int i = 0; i < 64; ++i) total += values[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

Register fma_short("multiply_add", [](const Buffers &b, int w) { multiply_add<<<528, 256>>>(b.y, int(scaled(800, w))); });
Register fma_long("multiply_add_long", [](const Buffers &b, int w) {
    multiply_add<<<1056, 256>>>(b.y, int(scaled(1400000, w)));
});
Register doubles("multiply_add_double", [](const Buffers &b, int w) {
    multiply_add_double<<<528, 256>>>(b.y, int(scaled(40000, w)));
});
Register sines("sine", [](const Buffers &b, int w) { sine<<<528, 256>>>(b.y, int(scaled(8000, w))); });
Register modulo("remainders", [](const Buffers &b, int w) { remainders<<<264, 256>>>(b.y, 1000003, int(scaled(1000, w))); });
Register mma("tensor", [](const Buffers &b, int w) { tensor<<<264, 256>>>(b.y, int(scaled(20000, w))); });
Register gemm_plain("product_plain", [](const Buffers &b, int w) {
    product_plain<<<dim3(32, 128), dim3(32, 8)>>>(b.x, b.x + (1 << 26), b.y, 1024, int(scaled(1000, w)));
});
Register gemm_tiled("product_tiled", [](const Buffers &b, int w) {
    product_tiled<<<dim3(64, 64), dim3(32, 32)>>>(b.x, b.x + (1 << 26), b.y, 2048, int(scaled(2000, w)));
});
Register banks("conflicts", [](const Buffers &b, int w) { conflicts<<<264, 256>>>(b.y, int(scaled(1000, w))); });
Register syncs("barriers", [](const Buffers &b, int w) { barriers<<<264, 512>>>(b.y, int(scaled(300, w))); });
Register spilled("local_array", [](const Buffers &b, int w) { local_array<<<528, 256>>>(b.y, int(scaled(2000, w))); });

}  // namespace
