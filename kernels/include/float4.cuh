// Four floats at once, with the fall-backs that make every shape correct.
#pragma once

#include "gemm.cuh"

namespace gemmprof {

// Columns [column, column + 4) of a row; 0 past the matrix. ALIGNED: the row's start and length are multiples of four
// floats, so the four lie inside or outside together and move as one 16-byte access.
template <bool GUARDED, bool ALIGNED>
__device__ __forceinline__ float4 load4(const float* pointer, bool row_inside, int column, int columns) {
    if constexpr (!GUARDED) {
        return *reinterpret_cast<const float4*>(pointer);
    } else if constexpr (ALIGNED) {
        return row_inside && column < columns ? *reinterpret_cast<const float4*>(pointer) : float4{};
    } else {
        float4 value{};
        if (row_inside) {
            if (column < columns) value.x = pointer[0];
            if (column + 1 < columns) value.y = pointer[1];
            if (column + 2 < columns) value.z = pointer[2];
            if (column + 3 < columns) value.w = pointer[3];
        }
        return value;
    }
}

// Stores alpha * sum + beta * C to four neighbouring columns, under the same rules; beta = 0 does not read C.
template <bool GUARDED, bool ALIGNED>
__device__ __forceinline__ void store4(float* c, float4 sum, float alpha, float beta, bool row_inside, int column,
                                       int columns) {
    if constexpr (GUARDED && !ALIGNED) {
        if (!row_inside) return;
        if (column < columns) store(c, sum.x, alpha, beta);
        if (column + 1 < columns) store(c + 1, sum.y, alpha, beta);
        if (column + 2 < columns) store(c + 2, sum.z, alpha, beta);
        if (column + 3 < columns) store(c + 3, sum.w, alpha, beta);
    } else {
        if (GUARDED && !(row_inside && column < columns)) return;
        float4 value = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
        if (beta != 0.0f) {
            const float4 old = *reinterpret_cast<const float4*>(c);
            value.x += beta * old.x;
            value.y += beta * old.y;
            value.z += beta * old.z;
            value.w += beta * old.w;
        }
        *reinterpret_cast<float4*>(c) = value;
    }
}

}  // namespace gemmprof
