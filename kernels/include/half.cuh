// What the stages of the 16-bit ladder share: elements, stores of C, and one launcher for the four pairs of types.
#pragma once

// Without the operators of 16-bit types, which nothing here uses, every file that includes this compiles in 0.2 s less.
#define __CUDA_NO_HALF_OPERATORS__
#define __CUDA_NO_HALF2_OPERATORS__
#define __CUDA_NO_HALF_CONVERSIONS__
#define __CUDA_NO_BFLOAT16_OPERATORS__
#define __CUDA_NO_BFLOAT162_OPERATORS__
#define __CUDA_NO_BFLOAT16_CONVERSIONS__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gemm.cuh"

namespace gemmprof {

constexpr int CHUNK = 8;  // elements in the 16 bytes that move together

// ------------------------------------------------------------------------------------------------------- elements

__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

// Rounds to nearest; what is too large for float16 becomes infinity, as torch has it.
template <class T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
    return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

// Lists of kernels hold those of float16 first, then those of bfloat16.
inline int half_index(const Gemm& gemm) { return gemm.dtype == Dtype::kFloat16 ? 0 : 1; }

// Two neighbouring elements as the 32 bits that hold them, the first in the lower half.
template <class T>
__device__ __forceinline__ unsigned pack(float first, float second);
template <>
__device__ __forceinline__ unsigned pack<__half>(float first, float second) {
    const __half2 both = __floats2half2_rn(first, second);
    return *reinterpret_cast<const unsigned*>(&both);
}
template <>
__device__ __forceinline__ unsigned pack<__nv_bfloat16>(float first, float second) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const unsigned*>(&both);
}

// ------------------------------------------------------------------------------------------------------ storing C

// Where and how sums become C.
struct Output {
    void* c;
    std::int64_t ldc;
    int m, n;
    float alpha, beta;
    bool is_float;  // C is float32, else of the type of A and B
    bool plain;     // beta = 0, and two neighbouring elements from an even column move as one access
    bool wide;      // plain, of 16 bits, and CHUNK elements from a column that is a multiple of CHUNK move as one, too
};

inline Output output_of(const Gemm& gemm) {
    const bool is_float = gemm.c_dtype == Dtype::kFloat32;
    const bool plain = gemm.beta == 0.0f && gemm.n % 2 == 0 && gemm.ldc % 2 == 0 &&
                       reinterpret_cast<std::uintptr_t>(gemm.c) % (is_float ? 8 : 4) == 0;
    const bool wide = plain && !is_float && rows_aligned(gemm.c, gemm.ldc, 2);
    return {gemm.c, gemm.ldc, gemm.m, gemm.n, gemm.alpha, gemm.beta, is_float, plain, wide};
}

// alpha * sum + beta * C, where beta = 0 means that C is not read: it may hold NaN.
template <class T>
__device__ __forceinline__ void store_one(const Output& out, int row, int col, float sum) {
    const std::int64_t at = row * out.ldc + col;
    float value = out.alpha * sum;
    if (out.is_float) {
        float* const c = static_cast<float*>(out.c) + at;
        *c = out.beta == 0.0f ? value : value + out.beta * *c;
    } else {
        T* const c = static_cast<T*>(out.c) + at;
        *c = from_float<T>(out.beta == 0.0f ? value : value + out.beta * to_float(*c));
    }
}

// The sums of (row, col) and (row, col + 1), those that lie in C; col is even.
template <class T>
__device__ __forceinline__ void store_pair(const Output& out, int row, int col, float first, float second) {
    if (row >= out.m || col >= out.n) return;
    if (out.plain) {
        const std::int64_t at = row * out.ldc + col;
        first *= out.alpha, second *= out.alpha;
        if (out.is_float)
            *reinterpret_cast<float2*>(static_cast<float*>(out.c) + at) = make_float2(first, second);
        else
            *reinterpret_cast<unsigned*>(static_cast<T*>(out.c) + at) = pack<T>(first, second);
    } else {
        store_one<T>(out, row, col, first);
        if (col + 1 < out.n) store_one<T>(out, row, col + 1, second);
    }
}

// What one thread holds of a 16 x 8 tile of sums that mma and wgmma leave: two pairs, eight rows apart.
template <class T>
__device__ __forceinline__ void store_fragment(const Output& out, int row, int col, const float* sums) {
    store_pair<T>(out, row, col, sums[0], sums[1]);
    store_pair<T>(out, row + 8, col, sums[2], sums[3]);
}

// A matrix as it lies in memory: rows x columns, neighbouring columns side by side.
struct Stored {
    const void* data;
    int rows, columns;
    std::int64_t ld;
};

inline Stored stored(const void* data, int rows, int columns, std::int64_t ld, bool transposed) {
    return transposed ? Stored{data, columns, rows, ld} : Stored{data, rows, columns, ld};
}

}  // namespace gemmprof
