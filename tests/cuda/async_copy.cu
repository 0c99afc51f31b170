// Asynchronous copies to shared memory (LDGSTS) and matrix loads and stores of shared memory (LDSM, STSM),
// each once soundly and once with rows that fall into the same banks.
#include <cuda_pipeline.h>

#include "common.cuh"

// Double-buffered cp.async of 16 bytes a thread.
__global__ void async_copy(const float4 *in, float4 *out, int tiles) {
    __shared__ float4 buffer[2][256];
    int t = threadIdx.x;
    const float4 *source = in + blockIdx.x % 8 * tiles * 256;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __pipeline_memcpy_async(&buffer[0][t], &source[t], 16);
    __pipeline_commit();
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) __pipeline_memcpy_async(&buffer[(tile + 1) % 2][t], &source[(tile + 1) * 256 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 value = buffer[tile % 2][255 - t];
        sum.x += value.x;
        sum.y += value.y;
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = sum;
}

// cp.async of 4 bytes a thread, written 32 words apart: conflicts on the shared side.
__global__ void async_copy_conflicts(const float *in, float *out) {
    __shared__ float buffer[32 * 32];
    int t = threadIdx.x;
    for (int row = t / 32; row < 32; row += 8)
        __pipeline_memcpy_async(&buffer[t % 32 * 32 + row], &in[row * 32 + t % 32], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[blockIdx.x * 256 + t] = buffer[t] + buffer[t + 256] + buffer[t + 512] + buffer[t + 768];
}

// ldmatrix.x4 from rows Pitch bytes apart: 16 is sound, 128 puts the eight rows of a matrix into the same banks.
// stmatrix.x4 writes them back the same way.
template <int Pitch>
__global__ void matrix_load(const int *in, int *out, int rounds) {
    __shared__ __align__(128) char tile[32 * Pitch];
    int lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < 32 * Pitch / 4; i += blockDim.x) reinterpret_cast<int *>(tile)[i] = in[i];
    __syncthreads();
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile + lane * Pitch));
    unsigned sum = 0;
    for (int round = 0; round < rounds; ++round) {
        unsigned r0, r1, r2, r3;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                     : "r"(address));
        sum += r0 ^ r1 ^ r2 ^ r3;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r0), "r"(r1),
                     "r"(r2), "r"(r3));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(sum);
}

int main() {
    const int blocks = 264, tiles = 16;
    float *in = device_buffer<float>(8 * tiles * 256 * 4);
    float *out = device_buffer<float>(blocks * 256 * 4);
    async_copy<<<blocks, 256>>>(reinterpret_cast<float4 *>(in), reinterpret_cast<float4 *>(out), tiles);
    CHECK_LAUNCH();
    async_copy_conflicts<<<blocks, 256>>>(in, out);
    CHECK_LAUNCH();
    matrix_load<16><<<blocks, 128>>>(reinterpret_cast<int *>(in), reinterpret_cast<int *>(out), 64);
    CHECK_LAUNCH();
    matrix_load<128><<<blocks, 128>>>(reinterpret_cast<int *>(in), reinterpret_cast<int *>(out), 64);
    CHECK_LAUNCH();
}
