// What the binding and the stages agree on: plain C++, no CUDA and no torch header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmprof {

// C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C, all row-major; ld* is the distance between rows in elements.
// Dimensions are 32-bit (the binding refuses larger ones); offsets are 64-bit, so an operand may exceed 8 GiB.
struct Gemm {
    int m, n, k;
    float alpha, beta;
    const float* a;
    std::int64_t lda;
    const float* b;
    std::int64_t ldb;
    float* c;
    std::int64_t ldc;
};

// The largest dimension a stage accepts: a tile that starts inside the matrix may reach 1023 elements past it
// without overflowing a 32-bit coordinate.
constexpr std::int64_t kMaxDimension = 2147483647 - 1023;

// What the CUDA runtime says of one compiled kernel on the current device.
struct KernelReport {
    const char* label;
    int threads_per_block;
    int registers_per_thread;
    std::int64_t static_shared_memory;
    std::int64_t dynamic_shared_memory;
    std::int64_t local_memory;
    int blocks_per_sm;
};

}  // namespace gemmprof

extern "C" {
// Every stage NAME exports
//   int gemmprof_launch_NAME(const gemmprof::Gemm*, void* stream)          a cudaError_t
//   int gemmprof_kernels_NAME(gemmprof::KernelReport*, int capacity)       how many kernels it has, or -cudaError_t
typedef int GemmprofLaunch(const gemmprof::Gemm* gemm, void* stream);
typedef int GemmprofKernels(gemmprof::KernelReport* reports, int capacity);

// The CUDA runtime's words for an error that a launcher returned.
const char* gemmprof_error_string(int error);
}
