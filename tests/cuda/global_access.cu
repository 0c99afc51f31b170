// Flaw: global memory is read in patterns that fetch sectors of which only a part is used.
// coalesced_copy is the sound neighbour to compare with.
#include "common.cuh"

struct Particle {  // 32 bytes: one sector holds one particle
    float x, y, z, mass, vx, vy, vz, charge;
};

__global__ void coalesced_copy(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

// Neighbouring threads read elements 32 floats apart: 32 sectors a request, 4 of 32 bytes used.
__global__ void strided_load(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(static_cast<size_t>(i) * 32) % n + i / 32 % 32];
}

// Neighbouring threads write 8 floats apart: 32 sectors a request on the store side.
__global__ void strided_store(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 8) out[i * 8] = in[i];
}

// Array of structures: only `mass` is wanted, yet every particle's whole sector comes along.
__global__ void aos_mass(const Particle *particles, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = particles[i].mass * 2.0f;
}

// Off by one element: each warp's 128 bytes straddle five sectors instead of four.
__global__ void misaligned_copy(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) out[i] = in[i + 1];
}

int main() {
    const int n = 1 << 20;
    float *in = device_buffer<float>(n);
    float *out = device_buffer<float>(n);
    Particle *particles = reinterpret_cast<Particle *>(device_buffer<float>(size_t(n) * 8));
    coalesced_copy<<<n / 256, 256>>>(in, out, n);
    CHECK_LAUNCH();
    strided_load<<<n / 256, 256>>>(in, out, n);
    CHECK_LAUNCH();
    strided_store<<<n / 256, 256>>>(in, out, n);
    CHECK_LAUNCH();
    aos_mass<<<n / 256, 256>>>(particles, out, n);
    CHECK_LAUNCH();
    misaligned_copy<<<n / 256, 256>>>(in, out, n);
    CHECK_LAUNCH();
}
