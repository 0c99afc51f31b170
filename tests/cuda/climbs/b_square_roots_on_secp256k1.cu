// Points of the curve secp256k1 from their compressed form: y, a square root of x^3 + 7 modulo p = 2^256 - 2^32 - 977, which
// is that to the power of (p + 1) / 4; words of 32 bits, the least first.
#include "../tried/tried.cuh"

constexpr int LIMBS = 8, POINTS = 1 << 17;

struct alignas(16) Number {
    unsigned limb[LIMBS];
};

__constant__ Number prime = {{0xfffffc2f, 0xfffffffe, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}};
__constant__ Number quarter = {{0xbfffff0c, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x3fffffff}};  // (p + 1) / 4
__constant__ Number radix = {{0x000003d1, 1}};                                         // 2^256 modulo p
__constant__ Number radix_squared = {{0x000e90a1, 0x7a2, 1}};                          // 2^512 modulo p
constexpr unsigned INVERSE = 0xd2253531;                                               // -1 / p modulo 2^32

__device__ void subtract_once(unsigned (&t)[LIMBS + 1]) {
    unsigned less[LIMBS];
    long long borrow = 0;
    for (int i = 0; i < LIMBS; ++i) {
        borrow += static_cast<long long>(t[i]) - prime.limb[i];
        less[i] = static_cast<unsigned>(borrow), borrow >>= 32;
    }
    if (t[LIMBS] + borrow >= 0)
        for (int i = 0; i < LIMBS; ++i) t[i] = less[i];
}

// Montgomery's product: a * b / 2^256 modulo p.
__device__ Number product(const Number &a, const Number &b) {
    unsigned t[LIMBS + 2] = {};
    for (int i = 0; i < LIMBS; ++i) {
        unsigned long long carry = 0;
        for (int j = 0; j < LIMBS; ++j) {
            carry += static_cast<unsigned long long>(a.limb[j]) * b.limb[i] + t[j];
            t[j] = static_cast<unsigned>(carry), carry >>= 32;
        }
        carry += t[LIMBS];
        t[LIMBS] = static_cast<unsigned>(carry), t[LIMBS + 1] = static_cast<unsigned>(carry >> 32);
        const unsigned m = t[0] * INVERSE;
        carry = (static_cast<unsigned long long>(m) * prime.limb[0] + t[0]) >> 32;
        for (int j = 1; j < LIMBS; ++j) {
            carry += static_cast<unsigned long long>(m) * prime.limb[j] + t[j];
            t[j - 1] = static_cast<unsigned>(carry), carry >>= 32;
        }
        carry += t[LIMBS];
        t[LIMBS - 1] = static_cast<unsigned>(carry), t[LIMBS] = t[LIMBS + 1] + static_cast<unsigned>(carry >> 32);
    }
    unsigned sum[LIMBS + 1];
    for (int i = 0; i <= LIMBS; ++i) sum[i] = t[i];
    subtract_once(sum);
    Number out;
    for (int i = 0; i < LIMBS; ++i) out.limb[i] = sum[i];
    return out;
}

__global__ void as_it_is(const Number *xs, Number *ys) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const Number x = product(xs[i], radix_squared);
    const Number seven = product(Number{{7}}, radix_squared), cube = product(product(x, x), x);
    unsigned sum[LIMBS + 1];
    unsigned long long carry = 0;
    for (int k = 0; k < LIMBS; ++k) carry += static_cast<unsigned long long>(cube.limb[k]) + seven.limb[k], sum[k] = static_cast<unsigned>(carry), carry >>= 32;
    sum[LIMBS] = static_cast<unsigned>(carry);
    subtract_once(sum);
    Number base, y = radix;
    for (int k = 0; k < LIMBS; ++k) base.limb[k] = sum[k];
    for (int bit = 32 * LIMBS - 1; bit >= 0; --bit) {
        y = product(y, y);
        if (quarter.limb[bit / 32] >> bit % 32 & 1) y = product(y, base);
    }
    ys[i] = product(y, Number{{1}});
}

// Products of 8 by 8 words in a chain of carries for words of even places and one for those of odd places a row; p's form
// makes a multiple of 2^256 one of 2^32 + 977; a chain of powers whose exponents are runs of ones takes 13 products.
#define WITH_TWO(NAME, CODE)                                                       \
    __device__ __forceinline__ unsigned NAME(unsigned a, unsigned b) {             \
        unsigned out;                                                              \
        asm volatile(CODE " %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));            \
        return out;                                                                \
    }
#define WITH_THREE(NAME, CODE)                                                     \
    __device__ __forceinline__ unsigned NAME(unsigned a, unsigned b, unsigned c) { \
        unsigned out;                                                              \
        asm volatile(CODE " %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c)); \
        return out;                                                                \
    }
WITH_THREE(low_first, "mad.lo.cc.u32")
WITH_THREE(low_next, "madc.lo.cc.u32")
WITH_THREE(high_next, "madc.hi.cc.u32")
WITH_TWO(add_first, "add.cc.u32")
WITH_TWO(add_next, "addc.cc.u32")
WITH_TWO(add_last, "addc.u32")

// t += a[from], a[from + 2] … times b, at the places from, from + 2 … behind `shift`.
template <int FROM, int SHIFT, int COUNT> __device__ __forceinline__ void add_row(unsigned (&t)[COUNT], const unsigned (&a)[LIMBS], unsigned b) {
    if constexpr (FROM < LIMBS) {
        t[SHIFT + FROM] = low_first(a[FROM], b, t[SHIFT + FROM]);
        t[SHIFT + FROM + 1] = high_next(a[FROM], b, t[SHIFT + FROM + 1]);
#pragma unroll
        for (int j = FROM + 2; j < LIMBS; j += 2) {
            t[SHIFT + j] = low_next(a[j], b, t[SHIFT + j]);
            t[SHIFT + j + 1] = high_next(a[j], b, t[SHIFT + j + 1]);
        }
        constexpr int BEHIND = SHIFT + LIMBS + FROM % 2;
        if constexpr (BEHIND < COUNT) t[BEHIND] = add_last(t[BEHIND], 0);
    }
}
__device__ __forceinline__ Number reduced(const unsigned (&wide)[2 * LIMBS]) {
    unsigned t[LIMBS + 2] = {}, high[LIMBS];
#pragma unroll
    for (int i = 0; i < LIMBS; ++i) t[i] = wide[i], high[i] = wide[LIMBS + i];
    add_row<0, 0>(t, high, 977), add_row<1, 0>(t, high, 977);
    t[1] = add_first(t[1], high[0]);
#pragma unroll
    for (int i = 1; i < LIMBS; ++i) t[i + 1] = add_next(t[i + 1], high[i]);
    t[LIMBS + 1] = add_last(t[LIMBS + 1], 0);
    const unsigned long long first = t[LIMBS] * 977ull + (static_cast<unsigned long long>(t[LIMBS + 1] * 977) << 32), second = (first >> 32) + t[LIMBS];
    t[0] = add_first(t[0], static_cast<unsigned>(first));
    t[1] = add_next(t[1], static_cast<unsigned>(second));
    t[2] = add_next(t[2], static_cast<unsigned>(second >> 32) + t[LIMBS + 1]);
#pragma unroll
    for (int i = 3; i < LIMBS; ++i) t[i] = add_next(t[i], 0);
    const unsigned over = add_last(0, 0);
    Number out;
    out.limb[0] = add_first(t[0], over * 977), out.limb[1] = add_next(t[1], over), out.limb[2] = add_last(t[2], 0);
#pragma unroll
    for (int i = 3; i < LIMBS; ++i) out.limb[i] = t[i];
    return out;
}
template <int ROW> __device__ __forceinline__ void add_rows(unsigned (&even)[2 * LIMBS], unsigned (&odd)[2 * LIMBS], const Number &a, const Number &b) {
    if constexpr (ROW < LIMBS) {
        add_row<ROW % 2, ROW>(even, a.limb, b.limb[ROW]), add_row<1 - ROW % 2, ROW>(odd, a.limb, b.limb[ROW]);
        add_rows<ROW + 1>(even, odd, a, b);
    }
}
__device__ __forceinline__ Number times(const Number &a, const Number &b) {
    unsigned even[2 * LIMBS] = {}, odd[2 * LIMBS] = {};
    add_rows<0>(even, odd, a, b);
    even[1] = add_first(even[1], odd[1]);
#pragma unroll
    for (int i = 2; i < 2 * LIMBS - 1; ++i) even[i] = add_next(even[i], odd[i]);
    even[2 * LIMBS - 1] = add_last(even[2 * LIMBS - 1], odd[2 * LIMBS - 1]);
    return reduced(even);
}
template <int ROW> __device__ __forceinline__ void add_half_rows(unsigned (&even)[2 * LIMBS], unsigned (&odd)[2 * LIMBS], const Number &a) {
    if constexpr (ROW < LIMBS) {
        add_row<ROW + 2, ROW>(even, a.limb, a.limb[ROW]), add_row<ROW + 1, ROW>(odd, a.limb, a.limb[ROW]);
        add_half_rows<ROW + 1>(even, odd, a);
    }
}
__device__ __forceinline__ Number square(const Number &a) {
    unsigned even[2 * LIMBS] = {}, odd[2 * LIMBS] = {};
    add_half_rows<0>(even, odd, a);
    even[1] = add_first(even[1], odd[1]);
#pragma unroll
    for (int i = 2; i < 2 * LIMBS - 1; ++i) even[i] = add_next(even[i], odd[i]);
    even[2 * LIMBS - 1] = add_last(even[2 * LIMBS - 1], odd[2 * LIMBS - 1]);
#pragma unroll
    for (int i = 2 * LIMBS - 1; i; --i) even[i] = __funnelshift_l(even[i - 1], even[i], 1);
    even[0] = low_first(a.limb[0], a.limb[0], 0);
    even[1] = high_next(a.limb[0], a.limb[0], even[1]);
#pragma unroll
    for (int i = 1; i < LIMBS; ++i) {
        even[2 * i] = low_next(a.limb[i], a.limb[i], even[2 * i]);
        even[2 * i + 1] = high_next(a.limb[i], a.limb[i], even[2 * i + 1]);
    }
    return reduced(even);
}
__device__ __noinline__ Number squares(Number a, int count) {
#pragma unroll 1
    for (int i = 0; i < count; ++i) a = square(a);
    return a;
}
__device__ __noinline__ Number joined(Number a, int count, Number b) { return times(squares(a, count), b); }

__global__ void __launch_bounds__(128) expert(const Number *__restrict__ xs, Number *__restrict__ ys) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const Number x = xs[i];
    Number one = times(square(x), x);  // x^3 + 7
    one.limb[0] = add_first(one.limb[0], 7);
#pragma unroll
    for (int k = 1; k < LIMBS; ++k) one.limb[k] = add_next(one.limb[k], 0);
    const unsigned over = add_last(0, 0);
    one.limb[0] += over * 977, one.limb[1] += over;
    // runs_of[n]: to the power of 2^n - 1
    const Number two = joined(one, 1, one), three = joined(two, 1, one), six = joined(three, 3, three), nine = joined(six, 3, three);
    const Number eleven = joined(nine, 2, two), run22 = joined(eleven, 11, eleven), run44 = joined(run22, 22, run22), run88 = joined(run44, 44, run44);
    const Number run220 = joined(joined(run88, 88, run88), 44, run44), run223 = joined(run220, 3, three);
    Number y = squares(joined(joined(run223, 23, run22), 6, two), 2);
    unsigned less[LIMBS];
    less[0] = add_first(y.limb[0], 977), less[1] = add_next(y.limb[1], 1);
#pragma unroll
    for (int k = 2; k < LIMBS; ++k) less[k] = add_next(y.limb[k], 0);
    if (add_last(0, 0))
#pragma unroll
        for (int k = 0; k < LIMBS; ++k) y.limb[k] = less[k];
    ys[i] = y;
}

int main() {
    const Number *xs = reinterpret_cast<const Number *>(drawn<unsigned>(size_t(POINTS) * LIMBS, 0, 4294967296.0, 1));
    Number *ys = get<Number>(POINTS);
    judge({{"as_it_is", [=] { as_it_is<<<POINTS / 128, 128>>>(xs, ys); }}, {"expert", [=] { expert<<<POINTS / 128, 128>>>(xs, ys); }}},
          {{reinterpret_cast<unsigned *>(ys), size_t(POINTS) * LIMBS}});
}
