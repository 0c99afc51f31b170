// Flaw: values that should live in registers go to local memory.
#include "common.cuh"

constexpr int VALUES = 96;

// 96 live values with 32 registers a thread (1024 threads, two blocks an SM): the compiler spills.
__global__ void __launch_bounds__(1024, 2) spilled_registers(const float *in, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[VALUES];
#pragma unroll
    for (int j = 0; j < VALUES; ++j) values[j] = in[(i + j * 37) % 65536];
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < VALUES; ++j) values[j] = values[j] * values[(j + 17) % VALUES] + 0.5f;
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < VALUES; ++j) sum += values[j];
    out[i] = sum;
}

// An array indexed with a value known only at run time cannot live in registers.
__global__ void local_array(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int counts[16];
    for (int j = 0; j < 16; ++j) counts[j] = j;
    for (int j = 0; j < 32; ++j) counts[in[(i + j) % 65536] & 15] += j;
    int sum = 0;
    for (int j = 0; j < 16; ++j) sum = sum * 31 + counts[j];
    out[i] = sum;
}

int main() {
    float *in = device_buffer<float>(65536);
    float *out = device_buffer<float>(264 * 1024);
    spilled_registers<<<264, 1024>>>(in, out, 4);
    CHECK_LAUNCH();
    local_array<<<264, 256>>>(device_buffer<int>(65536), reinterpret_cast<int *>(out));
    CHECK_LAUNCH();
}
