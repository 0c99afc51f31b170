// Stage 13: what the copy engine asks of A and B. Aligned rows (else a copy with such), and a description of the
// matrix.
#pragma once

#include <algorithm>

#include "gemm.cuh"
#include "tensor_map.cuh"

namespace GEMMPROF_STAGE {

bool aligned(const void* pointer, std::int64_t ld) { return gemmprof::rows_aligned(pointer, ld, sizeof(float)); }

// Copies a matrix whose rows are not 16-byte aligned to one whose rows are: a warp a row.
constexpr int ALIGN_THREADS = 256;

__global__ void __launch_bounds__(ALIGN_THREADS) align_rows(const float* __restrict__ from, std::int64_t ld, int rows,
                                                            int columns, float* __restrict__ to, std::int64_t ld_to) {
    constexpr int BATCH = 8;  // loads on their way at once
    for (std::int64_t row = blockIdx.x * 8 + threadIdx.x / 32; row < rows; row += gridDim.x * 8)
        for (int first = blockIdx.y * 32 * BATCH + threadIdx.x % 32; first < columns; first += gridDim.y * 32 * BATCH) {
            float v[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                v[i] = first + 32 * i < columns ? __ldcs(from + row * ld + first + 32 * i) : 0.0f;
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                if (first + 32 * i < columns) to[row * ld_to + first + 32 * i] = v[i];
        }
}

// Replaces an operand whose rows are not aligned by a copy, which the caller frees. Leaves it if there is no memory.
float* make_aligned(const void*& matrix, std::int64_t& ld, int rows, int columns, int sms, cudaStream_t stream) {
    if (aligned(matrix, ld)) return nullptr;
    const std::int64_t ld_to = (std::int64_t(columns) + 3) / 4 * 4;
    void* copy = nullptr;
    if (cudaMallocAsync(&copy, std::size_t(ld_to) * rows * 4, stream) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    const dim3 grid(unsigned(std::min(gemmprof::ceil_div(rows, 8), 8 * sms)),
                    unsigned(std::min(gemmprof::ceil_div(columns, 256), rows < 64 * sms ? 64 : 1)));
    align_rows<<<grid, ALIGN_THREADS, 0, stream>>>(static_cast<const float*>(matrix), ld, rows, columns,
                                                   static_cast<float*>(copy), ld_to);
    matrix = copy, ld = ld_to;
    return static_cast<float*>(copy);
}

// A row-major matrix, copied in boxes of box_rows x box_columns; what lies outside reads as zero.
bool describe(CUtensorMap* map, const void* matrix, int rows, int columns, std::int64_t ld, int box_rows,
              int box_columns, CUtensorMapSwizzle swizzle) {
    const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)};
    const cuuint64_t strides[] = {cuuint64_t(ld) * 4};
    const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)};
    const cuuint32_t steps[] = {1, 1};
    const auto encode = gemmprof::tensor_map_encode();
    return encode != nullptr &&
           encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<void*>(matrix), sizes, strides, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace GEMMPROF_STAGE
