// Tensor maps: how the copy engine is told of a matrix; the whole description for 16-bit and 8-bit ones. Host code.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace gemmprof {

using TensorMapEncode = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found at run time, so that nothing links against libcuda; null where the driver has none.
inline TensorMapEncode tensor_map_encode() {
    static const TensorMapEncode encode = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
#else
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
        return reinterpret_cast<TensorMapEncode>(function);
    }();
    return encode;
}

// A stored matrix of elements of so many bytes, 1 or 2, moved in boxes of box_rows x box_columns, rows that are so far
// `apart` in the matrix. Rows of a box are 128, 64 or 32 bytes, XOR-swizzled. What lies outside the matrix reads as zero; a store writes whole 16 bytes, so a
// row that ends within them must not be followed by anything else.
inline cudaError_t describe(CUtensorMap& map, const void* data, int rows, int columns, std::int64_t ld, int box_columns,
                            int box_rows, int element_bytes = 2, int apart = 1) {
    const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)};
    const cuuint64_t strides[] = {cuuint64_t(ld) * unsigned(element_bytes)};
    const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows * apart)};
    const cuuint32_t steps[] = {1, cuuint32_t(apart)};
    const TensorMapEncode encode = tensor_map_encode();
    if (encode == nullptr) return cudaErrorNotSupported;
    const CUtensorMapDataType type =
        element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
    const int row_bytes = box_columns * element_bytes;
    const CUtensorMapSwizzle swizzle = row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                       : row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                         : CU_TENSOR_MAP_SWIZZLE_32B;
    // Of rows that do not begin at multiples of 128 bytes a box's lie in two lines of L2 each, and what is fetched along with
    // them would be twice as much again.
    const CUtensorMapL2promotion fetched =
        strides[0] % 128 == 0 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    const CUresult result =
        encode(&map, type, 2, const_cast<void*>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               swizzle, fetched, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace gemmprof
