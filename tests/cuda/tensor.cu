// Tensor cores of three types, fed straight from global memory (the flaw: no reuse, so they starve).
#include <cuda_fp16.h>
#include <mma.h>

#include "common.cuh"

using namespace nvcuda;

// One warp a 16x16 tile, FP16 in and FP32 out.
__global__ void wmma_half(const __half *a, const __half *b, float *c, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int step = 0; step < k; step += 16) {
        wmma::load_matrix_sync(fa, a + warp % 16 * 16 * k + step, k);
        wmma::load_matrix_sync(fb, b + warp / 16 % 16 * 16 * k + step, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + warp * 256, fc, 16, wmma::mem_row_major);
}

// One warp an 8x8 tile in double precision (DMMA).
__global__ void wmma_double(const double *a, const double *b, double *c, int k) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> fc;
    wmma::fill_fragment(fc, 0.0);
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int step = 0; step < k; step += 4) {
        wmma::load_matrix_sync(fa, a + warp % 16 * 8 * k + step, k);
        wmma::load_matrix_sync(fb, b + warp / 16 % 16 * 8 * k + step, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + warp * 64, fc, 8, wmma::mem_row_major);
}

// mma.sync m16n8k8 with TF32 operands.
__global__ void mma_tf32(const float *in, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a[4], b[2];
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int j = 0; j < 4; ++j) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[j]) : "f"(in[i + j]));
    for (int j = 0; j < 2; ++j) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b[j]) : "f"(in[i + 4 + j]));
    for (int round = 0; round < rounds; ++round)
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    out[i] = c[0] + c[1] + c[2] + c[3];
}

int main() {
    const int k = 256, blocks = 264, threads = 128, warps = blocks * threads / 32;
    std::vector<__half> host(256 * k);
    for (size_t i = 0; i < host.size(); ++i) host[i] = __float2half(float(i % 7));
    __half *halves;
    CHECK(cudaMalloc(&halves, host.size() * sizeof(__half)));
    CHECK(cudaMemcpy(halves, host.data(), host.size() * sizeof(__half), cudaMemcpyHostToDevice));
    float *out = device_buffer<float>(warps * 256);
    double *doubles = device_buffer<double>(128 * k);
    wmma_half<<<blocks, threads>>>(halves, halves, out, k);
    CHECK_LAUNCH();
    wmma_double<<<blocks, threads>>>(doubles, doubles, device_buffer<double>(warps * 64), k);
    CHECK_LAUNCH();
    mma_tf32<<<blocks, threads>>>(device_buffer<float>(blocks * threads + 8), out, 128);
    CHECK_LAUNCH();
}
