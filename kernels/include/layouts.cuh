// The kernels of one template, by type and storage of 16-bit operands, and which of them a problem takes.
#pragma once

#include "half.cuh"

namespace GEMMPROF_STAGE {

constexpr int kLayouts = 4;

inline int layout_of(const gemmprof::Gemm& gemm) { return gemm.a_transposed * 2 + gemm.b_transposed; }
inline int kernel_of(const gemmprof::Gemm& gemm) { return gemmprof::half_index(gemm) * kLayouts + layout_of(gemm); }

constexpr const char* labels[2][kLayouts] = {
    {"float16", "float16, B transposed", "float16, A transposed", "float16, both transposed"},
    {"bfloat16", "bfloat16, B transposed", "bfloat16, A transposed", "bfloat16, both transposed"},
};

// The list of a stage's kernels, of one template by type and by storage of A and B; `, , X` is a further argument of it.
#define GEMMPROF_KERNELS_OF(KERNEL, T, row, ...)                                                                       \
    {labels[row][0], gemmprof::address(KERNEL<T, false, false __VA_ARGS__>), THREADS, SHARED_BYTES},                   \
        {labels[row][1], gemmprof::address(KERNEL<T, false, true __VA_ARGS__>), THREADS, SHARED_BYTES},                \
        {labels[row][2], gemmprof::address(KERNEL<T, true, false __VA_ARGS__>), THREADS, SHARED_BYTES}, {              \
        labels[row][3], gemmprof::address(KERNEL<T, true, true __VA_ARGS__>), THREADS, SHARED_BYTES                    \
    }
#define GEMMPROF_KERNELS(KERNEL, ...) \
    {GEMMPROF_KERNELS_OF(KERNEL, __half, 0, __VA_ARGS__), GEMMPROF_KERNELS_OF(KERNEL, __nv_bfloat16, 1, __VA_ARGS__)}

}  // namespace GEMMPROF_STAGE
