// The less common roads to memory: constant memory with divergent addresses, textures,
// and host memory mapped into the device's address space.
#include "common.cuh"

__constant__ float table[1024];

// Constant memory serves one address at a time: 32 different ones take 32 turns.
__global__ void divergent_constants(float *out) {
    float sum = 0.0f;
    for (int i = 0; i < 32; ++i) sum += table[(threadIdx.x * 17 + i * 5) % 1024];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void texture_fetch(cudaTextureObject_t texture, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<float>(texture, (i * 3) % n);
}

// Reads host memory over the bus.
__global__ void host_memory(const float *host, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = host[i] * 2.0f;
}

int main() {
    const int blocks = 264, threads = 256, n = blocks * threads;
    float *in = device_buffer<float>(n), *out = device_buffer<float>(n);
    CHECK(cudaMemcpyToSymbol(table, in, sizeof(table), 0, cudaMemcpyDeviceToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = in;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = n * sizeof(float);
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    float *host, *mapped;
    CHECK(cudaHostAlloc(&host, n * sizeof(float), cudaHostAllocMapped));
    for (int i = 0; i < n; ++i) host[i] = float(i % 97);
    CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
    divergent_constants<<<blocks, threads>>>(out);
    CHECK_LAUNCH();
    texture_fetch<<<blocks, threads>>>(texture, out, n);
    CHECK_LAUNCH();
    host_memory<<<blocks, threads>>>(mapped, out);
    CHECK_LAUNCH();
}
