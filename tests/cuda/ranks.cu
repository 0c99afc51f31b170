// Two processes that launch the same kernels a different number of times, as the ranks of a distributed program may.
//   ranks 0    step of 1, 4, 2 units of work, then other of 1, 1, 8; on the first GPU
//   ranks 1    step of 1, 2, 4, 8 units; on the second GPU, where there is one
//   ranks 0 N  N launches of step with 1 unit, for timing the profiler itself
#include "common.cuh"

__device__ float worked(float value, int units) {
    for (int i = 0; i < units * 4096; ++i) value = value * 0.999f + 1.0f;
    return value;
}

__global__ void step(float *x, int units) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = worked(x[i], units);
}

__global__ void other(float *x, int units) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = worked(x[i] + 1.0f, units);
}

int main(int argc, char **argv) {
    const int rank = argc > 1 ? std::atoi(argv[1]) : 0;
    const int launches = argc > 2 ? std::atoi(argv[2]) : 0;
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    CHECK(cudaSetDevice(rank % gpus));
    float *x = device_buffer<float>(264 * 256);
    for (int launch = 0; launch < launches; ++launch) step<<<264, 256>>>(x, 1);
    if (!launches && rank == 0) {
        for (int units : {1, 4, 2}) step<<<264, 256>>>(x, units);
        for (int units : {1, 1, 8}) other<<<132, 256>>>(x, units);
    }
    if (!launches && rank == 1)
        for (int units : {1, 2, 4, 8}) step<<<264, 256>>>(x, units);
    CHECK_LAUNCH();
}
