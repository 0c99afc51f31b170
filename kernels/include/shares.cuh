// Whole numbers divided fast and fairly.
#pragma once

#include <cuda_runtime.h>

namespace gemmprof {

// Division of 0 <= n < 2^31 by a number that the host knows: a multiplication, where the division proper would take a
// hundred cycles.
struct Divisor {
    unsigned divisor, multiplier, shift;

    static Divisor of(int divisor) {
        unsigned bits = 0;
        while ((1u << bits) < unsigned(divisor)) ++bits;
        if (bits == 0) return {1, 0, 0};
        return {unsigned(divisor), unsigned(((1ull << (31 + bits)) + unsigned(divisor) - 1) / unsigned(divisor)),
                bits - 1};
    }
    __device__ __forceinline__ int divide(int n) const {
        return divisor == 1 ? n : int(__umulhi(unsigned(n), multiplier) >> shift);
    }
};

// `total` in `shares` parts that differ by one at most.
struct Shares {
    int each, rest;  // the first `rest` shares have one more

    static Shares of(int total, int shares) { return {total / shares, total % shares}; }
    // Where the index-th begins, in 32 bits throughout.
    __device__ __forceinline__ int begin(int index) const { return each * index + min(index, rest); }
};

}  // namespace gemmprof
