// Kernels that wait for memory: streams through it, jumps about in it, depends on it.
#include "harness.cuh"

namespace {

__global__ void fill(float *y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        y[i] = float(i);
}

__global__ void copy(const float4 *x, float4 *y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        y[i] = x[i];
}

__global__ void triad(const float4 *x, float4 *y, float a, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
        float4 u = x[i], v = y[i];
        y[i] = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
    }
}

__global__ void sum(const float4 *x, float *out, long long n) {
    __shared__ float parts[32];
    float total = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
        float4 v = x[i];
        total += v.x + v.y + v.z + v.w;
    }
    for (int step = 16; step; step /= 2) total += __shfl_down_sync(~0u, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) total += parts[warp];
        out[blockIdx.x] = total;
    }
}

__global__ void gather(const float *x, float *y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        y[i] = x[scramble(unsigned(i)) % kElements];
}

__global__ void strided(const float *x, float *y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        y[i] = x[(i * 32) % kElements];
}

__global__ void chase(const float *x, float *y, int steps) {
    unsigned at = threadIdx.x;
    for (int step = 0; step < steps; ++step) at = scramble(at + unsigned(x[at % kElements]));
    y[threadIdx.x] = float(at);
}

__global__ void transpose_plain(const float *x, float *y, int rows) {
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int row = blockIdx.y; row < rows; row += gridDim.y) y[size_t(column) * 8192 + row] = x[size_t(row) * 4096 + column];
}

__global__ void transpose_tiled(const float *x, float *y, int tiles) {
    __shared__ float tile[16][17];
    for (int band = blockIdx.y; band < tiles; band += gridDim.y) {
        tile[threadIdx.y][threadIdx.x] = x[size_t(band * 16 + threadIdx.y) * 4096 + blockIdx.x * 16 + threadIdx.x];
        __syncthreads();
        y[size_t(blockIdx.x * 16 + threadIdx.y) * 32768 + band * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
        __syncthreads();
    }
}

__global__ void stencil(const float *x, float *y, int rows) {
    int column = blockIdx.x * blockDim.x + threadIdx.x + 1;
    for (int row = blockIdx.y + 1; row <= rows; row += gridDim.y) {
        const float *at = x + size_t(row) * 8192 + column;
        y[size_t(row) * 8192 + column] = 0.2f * (at[0] + at[-1] + at[1] + at[-8192] + at[8192]);
    }
}

Register tiny("fill", [](const Buffers &b, int w) { fill<<<132, 256>>>(b.y, scaled(200000, w)); });
Register copies("copy", [](const Buffers &b, int w) {
    copy<<<264, 256>>>((float4 *)b.x, (float4 *)b.y, scaled(1000000, w));
});
Register copies_large("copy_large", [](const Buffers &b, int w) {
    copy<<<1056, 512>>>((float4 *)b.x, (float4 *)b.y, scaled(60000000, w));
});
Register triads("triad", [](const Buffers &b, int w) {
    triad<<<528, 256>>>((float4 *)b.x, (float4 *)b.y, 0.5f, scaled(4000000, w));
});
Register sums("sum", [](const Buffers &b, int w) { sum<<<528, 256>>>((float4 *)b.x, b.y, scaled(16000000, w)); });
Register gathers("gather", [](const Buffers &b, int w) { gather<<<1056, 256>>>(b.x, b.y, scaled(8000000, w)); });
Register gathers_large("gather_large", [](const Buffers &b, int w) {
    gather<<<2112, 256>>>(b.x, b.y, scaled(200000000, w));
});
Register strides("strided", [](const Buffers &b, int w) { strided<<<528, 256>>>(b.x, b.y, scaled(4000000, w)); });
Register chases("chase", [](const Buffers &b, int w) { chase<<<1, 32>>>(b.x, b.y, int(scaled(2000, w))); });
Register plain("transpose_plain", [](const Buffers &b, int w) {
    transpose_plain<<<dim3(128, 500), 32>>>(b.x, b.y, int(scaled(4000, w)));
});
Register tiled("transpose_tiled", [](const Buffers &b, int w) {
    transpose_tiled<<<dim3(256, 100), dim3(16, 16)>>>(b.x, b.y, int(scaled(500, w)));
});
Register stencils("stencil", [](const Buffers &b, int w) {
    stencil<<<dim3(31, 200), 256>>>(b.x, b.y, int(scaled(4000, w)));
});

}  // namespace
