// wgmma: sums[64 x N] += A[64 x K] @ B[K x N], by a warpgroup, both operands in shared memory; K is 32 bytes of a row.
//
// One overload for each N: the instruction names every register of its sums. A lane holds, of every eight columns, two
// neighbours in row lane / 4 of its warp's 16 rows and two in the row eight below.
#pragma once

#include "ptx.cuh"

namespace gemmprof::ptx {

// The descriptor of an operand that begins at `start`, in rows of 128 swizzled bytes. Addresses and strides count 16
// bytes: the first stride means something to operands with K across their rows, the second leads from 8 rows to the
// next 8.
__device__ __forceinline__ std::uint64_t matrix_descriptor(unsigned start, std::uint64_t first_stride = 16) {
    constexpr std::uint64_t SWIZZLE_128 = std::uint64_t(1) << 62, eight = SWIZZLE_ATOM / 16;
    return SWIZZLE_128 | eight << 32 | first_stride / 16 << 16 | (start & 0x3FFFF) >> 4;
}

// clang-format off

// X(0) to X(COUNT - 1), but for X(0), which nothing separates from what stands before it.
#define GEMMPROF_TEN(X, T) GEMMPROF_EIGHT(X, T) X(T##8) X(T##9)
#define GEMMPROF_EIGHT(X, T) GEMMPROF_SIX(X, T) X(T##6) X(T##7)
#define GEMMPROF_SIX(X, T) GEMMPROF_FOUR(X, T) X(T##4) X(T##5)
#define GEMMPROF_FOUR(X, T) GEMMPROF_TWO(X, T) X(T##2) X(T##3)
#define GEMMPROF_TWO(X, T) X(T##0) X(T##1)
#define GEMMPROF_TO_8(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define GEMMPROF_TO_10(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define GEMMPROF_TO_30(X) GEMMPROF_TO_10(X) GEMMPROF_TEN(X, 1) GEMMPROF_TEN(X, 2)
#define GEMMPROF_TO_60(X) GEMMPROF_TO_30(X) GEMMPROF_TEN(X, 3) GEMMPROF_TEN(X, 4) GEMMPROF_TEN(X, 5)
#define GEMMPROF_TO_16(X) GEMMPROF_TO_10(X) GEMMPROF_SIX(X, 1)
#define GEMMPROF_TO_32(X) GEMMPROF_TO_30(X) GEMMPROF_TWO(X, 3)
#define GEMMPROF_TO_40(X) GEMMPROF_TO_30(X) GEMMPROF_TEN(X, 3)
#define GEMMPROF_TO_48(X) GEMMPROF_TO_30(X) GEMMPROF_TEN(X, 3) GEMMPROF_EIGHT(X, 4)
#define GEMMPROF_TO_56(X) GEMMPROF_TO_30(X) GEMMPROF_TEN(X, 3) GEMMPROF_TEN(X, 4) GEMMPROF_SIX(X, 5)
#define GEMMPROF_TO_64(X) GEMMPROF_TO_60(X) GEMMPROF_FOUR(X, 6)
#define GEMMPROF_TO_80(X) GEMMPROF_TO_60(X) GEMMPROF_TEN(X, 6) GEMMPROF_TEN(X, 7)
#define GEMMPROF_TO_88(X) GEMMPROF_TO_80(X) GEMMPROF_EIGHT(X, 8)
#define GEMMPROF_TO_96(X) GEMMPROF_TO_80(X) GEMMPROF_TEN(X, 8) GEMMPROF_SIX(X, 9)
#define GEMMPROF_TO_128(X) \
    GEMMPROF_TO_80(X) GEMMPROF_TEN(X, 8) GEMMPROF_TEN(X, 9) GEMMPROF_TEN(X, 10) GEMMPROF_TEN(X, 11) GEMMPROF_EIGHT(X, 12)

#define GEMMPROF_NAME(I) ", %" #I
#define GEMMPROF_SUM(I) , "+f"(d[I])

// The operands behind the sums: %A, %B, %ADD, then what else there is, as ORDERS names it.
#define GEMMPROF_WGMMA(COUNT, SHAPE_AND_TYPES, A, B, ADD, ORDERS, ...) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ADD ", 0;\nwgmma.mma_async.sync.aligned." SHAPE_AND_TYPES \
                 " {%0" GEMMPROF_TO_##COUNT(GEMMPROF_NAME) "}, %" #A ", %" #B ", p, 1, 1" ORDERS ";\n}" \
                 : "+f"(d[0]) GEMMPROF_TO_##COUNT(GEMMPROF_SUM) : "l"(a), "l"(b), "r"(add)__VA_ARGS__)

// For COUNT sums a thread, 64 x N of a warpgroup; A to AT_B number the operands behind them.
//
// sums = A @ B where `add` is 0. A_TRANSPOSED: neighbours along M, not along K, lie side by side; B_TRANSPOSED: along
// N. Of 8-bit operands K lies along the rows, so nothing is said of that.
#define GEMMPROF_WGMMA_OF(COUNT, N, A, B, ADD, AT_A, AT_B) \
    template <bool BFLOAT16, int A_TRANSPOSED, int B_TRANSPOSED> \
    __device__ __forceinline__ void wgmma(float (&d)[COUNT], std::uint64_t a, std::uint64_t b, int add) { \
        if constexpr (BFLOAT16) \
            GEMMPROF_WGMMA(COUNT, "m64n" #N "k16.f32.bf16.bf16", A, B, ADD, ", %" #AT_A ", %" #AT_B, \
                           , "n"(A_TRANSPOSED), "n"(B_TRANSPOSED)); \
        else \
            GEMMPROF_WGMMA(COUNT, "m64n" #N "k16.f32.f16.f16", A, B, ADD, ", %" #AT_A ", %" #AT_B, \
                           , "n"(A_TRANSPOSED), "n"(B_TRANSPOSED)); \
    } \
    __device__ __forceinline__ void wgmma_e4m3(float (&d)[COUNT], std::uint64_t a, std::uint64_t b, int add) { \
        GEMMPROF_WGMMA(COUNT, "m64n" #N "k32.f32.e4m3.e4m3", A, B, ADD, "", ); \
    }

GEMMPROF_WGMMA_OF(8, 16, 8, 9, 10, 11, 12)
GEMMPROF_WGMMA_OF(16, 32, 16, 17, 18, 19, 20)
GEMMPROF_WGMMA_OF(32, 64, 32, 33, 34, 35, 36)
GEMMPROF_WGMMA_OF(40, 80, 40, 41, 42, 43, 44)
GEMMPROF_WGMMA_OF(48, 96, 48, 49, 50, 51, 52)
GEMMPROF_WGMMA_OF(56, 112, 56, 57, 58, 59, 60)
GEMMPROF_WGMMA_OF(64, 128, 64, 65, 66, 67, 68)
GEMMPROF_WGMMA_OF(80, 160, 80, 81, 82, 83, 84)
GEMMPROF_WGMMA_OF(88, 176, 88, 89, 90, 91, 92)
GEMMPROF_WGMMA_OF(96, 192, 96, 97, 98, 99, 100)
GEMMPROF_WGMMA_OF(128, 256, 128, 129, 130, 131, 132)

#undef GEMMPROF_WGMMA_OF
#undef GEMMPROF_WGMMA
#undef GEMMPROF_SUM
#undef GEMMPROF_NAME

// clang-format on

}  // namespace gemmprof::ptx
