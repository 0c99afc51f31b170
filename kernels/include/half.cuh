// What the stages of 16-bit ladders share: conversions, and one launcher for the four pairs of types.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gemm.cuh"

namespace gemmprof {

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

// Rounds to nearest; what is too large for float16 becomes infinity, as torch has it.
template <class T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
    return value;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
    return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

// alpha * sum + beta * C in float, rounded once; beta = 0 means that C is not read.
template <class Out>
__device__ __forceinline__ void store_as(Out* c, float sum, float alpha, float beta) {
    *c = from_float<Out>(beta == 0.0f ? alpha * sum : alpha * sum + beta * to_float(*c));
}

// Calls `run.template operator()<In, Out>()` with the types of the problem.
template <class Run>
cudaError_t with_half_types(const Gemm& gemm, const Run& run) {
    const bool wide = gemm.c_dtype == Dtype::kFloat32;
    if (gemm.dtype == Dtype::kFloat16)
        return wide ? run.template operator()<__half, float>() : run.template operator()<__half, __half>();
    if (gemm.dtype == Dtype::kBFloat16)
        return wide ? run.template operator()<__nv_bfloat16, float>()
                    : run.template operator()<__nv_bfloat16, __nv_bfloat16>();
    return cudaErrorInvalidValue;
}

}  // namespace gemmprof
