// The first three steps of a matrix-multiplication ladder in one program: C = A B, square, row-major FP32.
#include "common.cuh"

// Neighbouring threads walk down a column of C: loads of A and stores of C are not coalesced.
__global__ void gemm_naive(int n, const float *a, const float *b, float *c) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// Neighbouring threads walk along a row of C.
__global__ void gemm_coalesced(int n, const float *a, const float *b, float *c) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// Tiles of 32x32 pass through shared memory: each element of A and B is loaded n/32 times.
__global__ void gemm_shared(int n, const float *a, const float *b, float *c) {
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
    float sum = 0.0f;
    for (int tile = 0; tile < n; tile += 32) {
        tile_a[y][x] = a[row * n + tile + x];
        tile_b[y][x] = b[(tile + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

int main() {
    const int n = 1024;
    float *a = device_buffer<float>(n * n), *b = device_buffer<float>(n * n), *c = device_buffer<float>(n * n);
    dim3 grid(n / 32, n / 32), block(32, 32);
    gemm_naive<<<grid, block>>>(n, a, b, c);
    CHECK_LAUNCH();
    gemm_coalesced<<<grid, block>>>(n, a, b, c);
    CHECK_LAUNCH();
    gemm_shared<<<grid, block>>>(n, a, b, c);
    CHECK_LAUNCH();
}
