// Reads over the host's link: pinned memory in place of the GPU's own. Compiled a second time as a debug build (-G).
#include "../common.cuh"

// y += a * x, x in the host's pinned memory.
__global__ void saxpy_from_host(int count, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += a * x[i];
}

// The same from the GPU's memory.
__global__ void saxpy(int count, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += a * x[i];
}

int main() {
    const int count = 1 << 22, blocks = count / 256;
    float *host, *x = device_buffer<float>(count), *y = device_buffer<float>(count);
    CHECK(cudaHostAlloc(&host, count * sizeof(float), cudaHostAllocMapped));
    for (int i = 0; i < count; ++i) host[i] = float(i % 251);
    saxpy_from_host<<<blocks, 256>>>(count, 2.0f, host, y);
    CHECK_LAUNCH();
    saxpy<<<blocks, 256>>>(count, 2.0f, x, y);
    CHECK_LAUNCH();
}
