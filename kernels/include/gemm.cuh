// Launcher plumbing that every stage shares, so that a stage's file holds its kernel and little else.
#pragma once

#include <cuda_runtime.h>

#include "gemm.h"

#ifndef GEMMPROF_STAGE
#error "GEMMPROF_STAGE is not defined: the build names the stage with -DGEMMPROF_STAGE=<name>"
#endif

namespace gemmprof {

// A kernel has BLAS's parameter list: operands of type In, C of type Out, scalars and sums in float.
template <class In, class Out>
using KernelFunctionOf = void(int M, int N, int K, float alpha, const In* __restrict__ A, std::int64_t lda,
                              const In* __restrict__ B, std::int64_t ldb, float beta, Out* __restrict__ C,
                              std::int64_t ldc);
using KernelFunction = KernelFunctionOf<float, float>;

// Which way consecutive blocks walk over C.
enum class Raster {
    kAlongRows,    // blockIdx.x counts tile columns, blockIdx.y tile rows
    kDownColumns,  // blockIdx.x counts tile rows, blockIdx.y tile columns
};

// One compiled kernel and how to launch it: a block computes tile_m x tile_n of C.
template <class In, class Out>
struct KernelOf {
    const char* label;
    KernelFunctionOf<In, Out>* function;
    int threads;
    int tile_m;
    int tile_n;
    int dynamic_shared_memory = 0;
    Raster raster = Raster::kAlongRows;
};
using Kernel = KernelOf<float, float>;

// What the CUDA runtime is asked about a kernel, whatever its parameters are.
struct KernelFacts {
    const char* label;
    const void* function;
    int threads;
    int dynamic_shared_memory;

    KernelFacts() = default;
    KernelFacts(const char* label, const void* function, int threads, int dynamic_shared_memory = 0)
        : label(label), function(function), threads(threads), dynamic_shared_memory(dynamic_shared_memory) {}
    template <class In, class Out>
    KernelFacts(const KernelOf<In, Out>& kernel)
        : KernelFacts(kernel.label, reinterpret_cast<const void*>(kernel.function), kernel.threads,
                      kernel.dynamic_shared_memory) {}
};

template <class... P>
const void* address(void (*kernel)(P...)) {
    return reinterpret_cast<const void*>(kernel);
}

__host__ __device__ constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }

// Dynamic shared memory beyond 48 KiB has to be asked for.
inline cudaError_t allow_shared_memory(const KernelFacts& kernel) {
    if (kernel.dynamic_shared_memory <= 48 * 1024) return cudaSuccess;
    return cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                kernel.dynamic_shared_memory);
}

template <class In, class Out>
cudaError_t launch_kernel(const KernelOf<In, Out>& kernel, const Gemm& gemm, cudaStream_t stream) {
    if (gemm.m == 0 || gemm.n == 0) return cudaSuccess;
    const auto a = static_cast<const In*>(gemm.a), b = static_cast<const In*>(gemm.b);
    const auto c = static_cast<Out*>(gemm.c);
    if (cudaError_t error = allow_shared_memory(kernel)) return error;
    // A grid has at most 65,535 blocks along y: a C with more tiles that way is computed in bands.
    constexpr int kMaxGridY = 65535;
    const bool down = kernel.raster == Raster::kDownColumns;
    const std::int64_t length = down ? gemm.n : gemm.m;
    const std::int64_t band = std::int64_t(kMaxGridY) * (down ? kernel.tile_n : kernel.tile_m);
    for (std::int64_t start = 0; start < length; start += band) {
        const int part = int(length - start < band ? length - start : band);
        const std::int64_t row = down ? 0 : start, col = down ? start : 0;
        const int rows = down ? gemm.m : part, columns = down ? part : gemm.n;
        const int row_tiles = ceil_div(rows, kernel.tile_m), column_tiles = ceil_div(columns, kernel.tile_n);
        const dim3 grid = down ? dim3(row_tiles, column_tiles) : dim3(column_tiles, row_tiles);
        kernel.function<<<grid, kernel.threads, kernel.dynamic_shared_memory, stream>>>(
            rows, columns, gemm.k, gemm.alpha, a + row * gemm.lda, gemm.lda, b + col, gemm.ldb, gemm.beta,
            c + row * gemm.ldc + col, gemm.ldc);
        if (cudaError_t error = cudaGetLastError()) return error;
    }
    return cudaSuccess;
}

// Every tile lies wholly inside its matrix, so no load and no store needs a bounds check.
inline bool fits_tiles(const Gemm& gemm, int bm, int bn, int bk) {
    return gemm.m % bm == 0 && gemm.n % bn == 0 && gemm.k % bk == 0;
}

// A 32-bit index reaches every element of A and B.
inline bool fits_int(const Gemm& gemm) {
    constexpr std::int64_t kMaxInt = 2147483647;
    return gemm.m * gemm.lda <= kMaxInt && gemm.k * gemm.ldb <= kMaxInt;
}

// A pointer, and the rows that lie ld elements of so many bytes apart, begin at multiples of 16 bytes.
inline bool rows_aligned(const void* pointer, std::int64_t ld, int bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld * bytes % 16 == 0;
}

// Every operand can move as aligned 16-byte accesses (four floats, eight elements of 16 bits) that end with its rows.
inline bool fits_16_bytes(const Gemm& gemm) {
    const auto aligned = [](const void* pointer, std::int64_t ld, int columns, int bytes) {
        return rows_aligned(pointer, ld, bytes) && std::int64_t(columns) * bytes % 16 == 0;
    };
    const int in = element_bytes(gemm.dtype), out = element_bytes(gemm.c_dtype);
    return aligned(gemm.a, gemm.lda, gemm.k, in) && aligned(gemm.b, gemm.ldb, gemm.n, in) &&
           aligned(gemm.c, gemm.ldc, gemm.n, out);
}

inline int report_kernel(const KernelFacts& kernel, KernelReport* report) {
    cudaFuncAttributes attributes;
    int blocks = 0;
    if (cudaError_t error = allow_shared_memory(kernel)) return -int(error);
    if (cudaError_t error = cudaFuncGetAttributes(&attributes, kernel.function)) return -int(error);
    if (cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, kernel.threads,
                                                                          kernel.dynamic_shared_memory))
        return -int(error);
    *report = {kernel.label,
               kernel.threads,
               attributes.numRegs,
               std::int64_t(attributes.sharedSizeBytes),
               kernel.dynamic_shared_memory,
               std::int64_t(attributes.localSizeBytes),
               blocks};
    return 0;
}

// `kernels` is an array of KernelOf<In, Out> or of KernelFacts; the first is the one that large, whole problems run.
template <class K>
int report_kernels(const K* kernels, int count, KernelReport* reports, int capacity) {
    for (int i = 0; i < count && i < capacity; ++i)
        if (int error = report_kernel(kernels[i], &reports[i])) return error;
    return count;
}

// alpha * sum + beta * C, where beta = 0 means that C is not read: it may hold NaN.
__device__ __forceinline__ void store(float* c, float sum, float alpha, float beta) {
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}

// An element of a tile, 0 where a guarded tile reaches past its matrix.
template <bool GUARDED>
__device__ __forceinline__ float load(const float* pointer, bool inside) {
    return GUARDED && !inside ? 0.0f : *pointer;
}

}  // namespace gemmprof

#define GEMMPROF_PASTE_(a, b) a##b
#define GEMMPROF_PASTE(a, b) GEMMPROF_PASTE_(a, b)

// Exports the stage's launcher and the list of its kernels under the stage's name. ``launch`` is
// cudaError_t(const gemmprof::Gemm&, cudaStream_t), ``kernels`` an array of gemmprof::KernelOf<In, Out> or of
// gemmprof::KernelFacts, both in the stage's namespace. Of several parts (kernel_list.cuh) the first exports them.
#if GEMMPROF_PART == 0
#define GEMMPROF_EXPORT_STAGE(launch, kernels)                                                                         \
    extern "C" int GEMMPROF_PASTE(gemmprof_launch_, GEMMPROF_STAGE)(const gemmprof::Gemm* gemm, void* stream) {        \
        return int(GEMMPROF_STAGE::launch(*gemm, static_cast<cudaStream_t>(stream)));                                  \
    }                                                                                                                  \
    extern "C" int GEMMPROF_PASTE(gemmprof_kernels_, GEMMPROF_STAGE)(gemmprof::KernelReport * reports, int capacity) { \
        constexpr int count = sizeof(GEMMPROF_STAGE::kernels) / sizeof(GEMMPROF_STAGE::kernels[0]);                    \
        return gemmprof::report_kernels(GEMMPROF_STAGE::kernels, count, reports, capacity);                            \
    }
#else
#define GEMMPROF_EXPORT_STAGE(launch, kernels)
#endif
