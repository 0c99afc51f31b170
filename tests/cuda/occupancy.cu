// Flaw: too few warps: blocks with too much shared memory, grids too small for the GPU, a bad tail.
#include "common.cuh"

// Far more than the 48 KB that need no opt-in: one or two blocks fit an SM.
__global__ void big_dynamic_shared(const float *in, float *out, int words) {
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) tile[i] = in[i];
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < words; i += blockDim.x) sum += tile[words - 1 - i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// One block of one warp on a GPU of 132 SMs, each load waiting for the one before it.
__global__ void tiny_grid(const int *next, int *out, int steps) {
    int at = threadIdx.x;
    for (int i = 0; i < steps; ++i) at = next[at];
    out[threadIdx.x] = at;
}

// Registers limit it: 255 a thread would be allowed, the launch bounds ask for a block of 512.
__global__ void __launch_bounds__(512, 1) many_registers(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[80];
#pragma unroll
    for (int j = 0; j < 80; ++j) values[j] = in[(i + j * 41) % 65536];
    for (int round = 0; round < 4; ++round)
#pragma unroll
        for (int j = 0; j < 80; ++j) values[j] = values[j] * values[(j + 29) % 80] + 1.0f;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 80; ++j) sum += values[j];
    out[i] = sum;
}

// A block size that is no multiple of 32 and a grid that leaves the last wave nearly empty.
__global__ void odd_block(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 3.0f;
}

int main() {
    float *in = device_buffer<float>(65536);
    float *out = device_buffer<float>(1 << 20);
    const int words = 100 * 1024 / 4;
    CHECK(cudaFuncSetAttribute(big_dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, words * 4));
    big_dynamic_shared<<<300, 256, words * 4>>>(in, out, words);
    CHECK_LAUNCH();
    tiny_grid<<<1, 32>>>(device_buffer<int>(256), reinterpret_cast<int *>(out), 512);
    CHECK_LAUNCH();
    many_registers<<<133, 512>>>(in, out);
    CHECK_LAUNCH();
    odd_block<<<600, 100>>>(in, out, 59999);
    CHECK_LAUNCH();
}
