// One kernel per arithmetic pipe: FP32, FP64, packed half, integer, special functions.
#include <cuda_fp16.h>

#include "common.cuh"

constexpr int ROUNDS = 256;

__global__ void fp32_fma(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = in[i], b = a * 0.5f, c = 1.0f, d = 2.0f;
    for (int round = 0; round < ROUNDS; ++round) {
        c = a * c + b;
        d = b * d + a;
    }
    out[i] = c + d;
}

__global__ void fp64_fma(const double *in, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double a = in[i], b = a * 0.5, c = 1.0, d = 2.0;
    for (int round = 0; round < ROUNDS; ++round) {
        c = a * c + b;
        d = (d + a) * b;  // an add and a multiply beside the fused pair
    }
    out[i] = c + d;
}

__global__ void half2_fma(const __half2 *in, __half2 *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 a = in[i], b = __hmul2(a, __float2half2_rn(0.5f)), c = a, d = b;
    for (int round = 0; round < ROUNDS; ++round) {
        c = __hfma2(a, c, b);
        d = __hmul2(__hadd2(d, a), b);
    }
    out[i] = __hadd2(c, d);
}

__global__ void integer_mix(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int a = in[i], b = a ^ 0x5bd1e995;
    for (int round = 0; round < ROUNDS; ++round) {
        a = a * 1664525 + b;
        b ^= a >> 7;
        b += __popc(a);
    }
    out[i] = a + b;
}

__global__ void special_functions(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = in[i];
    for (int round = 0; round < ROUNDS / 4; ++round) a = __sinf(a) + rsqrtf(a + 2.0f) + __expf(-a);
    out[i] = a;
}

int main() {
    const int blocks = 264, threads = 256, n = blocks * threads;
    float *in = device_buffer<float>(2 * n);
    float *out = device_buffer<float>(2 * n);
    fp32_fma<<<blocks, threads>>>(in, out);
    CHECK_LAUNCH();
    fp64_fma<<<blocks, threads>>>(device_buffer<double>(n), reinterpret_cast<double *>(out));
    CHECK_LAUNCH();
    half2_fma<<<blocks, threads>>>(reinterpret_cast<__half2 *>(in), reinterpret_cast<__half2 *>(out));
    CHECK_LAUNCH();
    integer_mix<<<blocks, threads>>>(device_buffer<int>(n), reinterpret_cast<int *>(out));
    CHECK_LAUNCH();
    special_functions<<<blocks, threads>>>(in, out);
    CHECK_LAUNCH();
}
