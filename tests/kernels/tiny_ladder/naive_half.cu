// Stage 1, naive: one thread computes one element of C, from operands of 16 bits. The smallest ladder that tests build.
#include <type_traits>

#include "half.cuh"

static_assert(BLOCK * BLOCK <= 1024, "a block has BLOCK x BLOCK threads, and at most 1024");

namespace GEMMPROF_STAGE {

// alpha * sum + beta * C in float, rounded once; beta = 0 means that C is not read.
template <class Out>
__device__ __forceinline__ void store_as(Out* c, float sum, float alpha, float beta) {
    const float value = alpha * sum;
    if constexpr (std::is_same_v<Out, float>)
        *c = beta == 0.0f ? value : value + beta * *c;
    else
        *c = gemmprof::from_float<Out>(beta == 0.0f ? value : value + beta * gemmprof::to_float(*c));
}

template <class In, class Out>
__global__ void hgemm_naive(int M, int N, int K, float alpha, const In* __restrict__ A, std::int64_t lda,
                            const In* __restrict__ B, std::int64_t ldb, float beta, Out* __restrict__ C,
                            std::int64_t ldc) {
    const int row = blockIdx.y * BLOCK + threadIdx.x / BLOCK;
    const int col = blockIdx.x * BLOCK + threadIdx.x % BLOCK;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int i = 0; i < K; ++i) sum += gemmprof::to_float(A[row * lda + i]) * gemmprof::to_float(B[i * ldb + col]);
    store_as(C + row * ldc + col, sum, alpha, beta);
}

template <class In, class Out>
gemmprof::KernelOf<In, Out> kernel_of(const char* label) {
    return {label, hgemm_naive<In, Out>, BLOCK * BLOCK, BLOCK, BLOCK};
}

// A GPU of another kind than the stage is written for would not hold these kernels, so the build leaves it out there.
const gemmprof::KernelFacts kernels[] = {
    kernel_of<__half, __half>("float16"),
    kernel_of<__nv_bfloat16, __nv_bfloat16>("bfloat16"),
    kernel_of<__half, float>("float16 to float32"),
    kernel_of<__nv_bfloat16, float>("bfloat16 to float32"),
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const bool wide = gemm.c_dtype == gemmprof::Dtype::kFloat32;
    if (gemm.dtype == gemmprof::Dtype::kFloat16)
        return wide ? gemmprof::launch_kernel(kernel_of<__half, float>(""), gemm, stream)
                    : gemmprof::launch_kernel(kernel_of<__half, __half>(""), gemm, stream);
    return wide ? gemmprof::launch_kernel(kernel_of<__nv_bfloat16, float>(""), gemm, stream)
                : gemmprof::launch_kernel(kernel_of<__nv_bfloat16, __nv_bfloat16>(""), gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
