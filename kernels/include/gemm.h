// What the binding and the stages agree on: plain C++, no CUDA and no torch header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmprof {

// The type of an element; the numbers are those of gemmprof/dtypes.py.
enum class Dtype : int { kFloat32 = 0, kFloat16 = 1, kBFloat16 = 2, kFloat8E4M3 = 3 };

constexpr int element_bytes(Dtype type) { return type == Dtype::kFloat32 ? 4 : type == Dtype::kFloat8E4M3 ? 1 : 2; }

// C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C, all row-major; ld* is the distance between rows in elements.
// To stages of 16-bit and 8-bit types, A or B may also come stored transposed: then element (i, j) lies at [j * ld +
// i]. A and B are of one type; C is of the same (8-bit operands: of a 16-bit one) or float32. Sums are float32 whatever
// the operands are. Dimensions are 32-bit (the binding refuses larger ones); offsets are 64-bit, so an operand may
// exceed 8 GiB.
struct Gemm {
    int m, n, k;
    float alpha, beta;
    Dtype dtype, c_dtype;
    const void* a;
    std::int64_t lda;
    const void* b;
    std::int64_t ldb;
    void* c;
    std::int64_t ldc;
    int a_transposed, b_transposed;  // 0 or 1
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

// The CUDA runtime's words for an error that a launcher returned.
const char* gemmprof_error_string(int error);
}
