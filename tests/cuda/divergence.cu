// Flaw: the lanes of a warp take different branches, or most of them idle.
#include "common.cuh"

// Lane-dependent trip counts and a lane-dependent choice of code.
__global__ void divergent_branches(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    switch (threadIdx.x % 4) {
        case 0:
            for (int r = 0; r < 64; ++r) value = sinf(value) + 1.0f;
            break;
        case 1:
            for (int r = 0; r < 32; ++r) value = value * value + in[(i + r) % 1024];
            break;
        case 2:
            for (int r = 0; r < static_cast<int>(threadIdx.x); ++r) value = value * 0.5f + 3.0f;
            break;
        default:
            value = sqrtf(fabsf(value));
    }
    out[i] = value;
}

// One lane of 32 does the work.
__global__ void single_lane(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 == 0) {
        float sum = 0.0f;
        for (int r = 0; r < 32; ++r) sum += in[i + r];
        out[i] = sum;
    }
}

// The same kinds of branches, but alike for a whole warp: no divergence.
__global__ void uniform_branches(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    if (threadIdx.x / 32 % 2 == 0)
        for (int r = 0; r < 64; ++r) value = value * 0.5f + in[(i + r) % 1024];
    else
        for (int r = 0; r < 32; ++r) value = value * value + in[(i + r) % 1024];
    out[i] = value;
}

int main() {
    const int blocks = 264, threads = 256;
    float *in = device_buffer<float>(blocks * threads + 1024);
    float *out = device_buffer<float>(blocks * threads);
    divergent_branches<<<blocks, threads>>>(in, out);
    CHECK_LAUNCH();
    single_lane<<<blocks, threads>>>(in, out);
    CHECK_LAUNCH();
    uniform_branches<<<blocks, threads>>>(in, out);
    CHECK_LAUNCH();
}
