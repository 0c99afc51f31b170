// Flames, speech, spins, charges, traces, ciphers and advertisements.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- a sparse matrix and several right sides ---

constexpr int SIDES = 4, ENTRIES = 16;

struct Sparse {
    const float *values;
    const int *columns;
    int rows;
};
// A thread a row; the entries of rows are side by side.
__global__ void __launch_bounds__(256) several_sides(const Sparse matrix, const float *__restrict__ x, float *__restrict__ y, int sides) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= matrix.rows) return;
    for (int side = 0; side < sides; side++) {
        const float *own = x + static_cast<size_t>(side) * matrix.rows;
        float sum = 0.0f;
#pragma unroll 8
        for (int k = 0; k < ENTRIES; k++) {
            const size_t at = static_cast<size_t>(k) * matrix.rows + row;
            sum += matrix.values[at] * own[matrix.columns[at]];
        }
        y[static_cast<size_t>(side) * matrix.rows + row] = sum;
    }
}
__global__ void __launch_bounds__(256) several_sides_sums(const Sparse matrix, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= matrix.rows) return;
    float sums[SIDES] = {};
#pragma unroll 8
    for (int k = 0; k < ENTRIES; k++) {
        const size_t at = static_cast<size_t>(k) * matrix.rows + row;
        const float value = matrix.values[at];
        const int column = matrix.columns[at];
#pragma unroll
        for (int side = 0; side < SIDES; side++) sums[side] += value * x[static_cast<size_t>(side) * matrix.rows + column];
    }
#pragma unroll
    for (int side = 0; side < SIDES; side++) y[static_cast<size_t>(side) * matrix.rows + row] = sums[side];
}
// The four sides of an unknown lie together.
__global__ void __launch_bounds__(256) several_sides_together(const Sparse matrix, const float4 *__restrict__ x, float4 *__restrict__ y) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= matrix.rows) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
    for (int k = 0; k < ENTRIES; k++) {
        const size_t at = static_cast<size_t>(k) * matrix.rows + row;
        const float value = matrix.values[at];
        const float4 other = x[matrix.columns[at]];
        sum.x += value * other.x, sum.y += value * other.y, sum.z += value * other.z, sum.w += value * other.w;
    }
    y[row] = sum;
}
__global__ void apart_again(const float4 *together, float *out, int rows) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    const float4 four = together[row];
    out[row] = four.x, out[rows + row] = four.y, out[2 * rows + row] = four.z, out[3 * rows + row] = four.w;
}

Study sided("sparse_rows_once_a_right_side", "sparse solvers", 1 << 20, "a matrix of 1048576 rows of 16 entries times four vectors",
    "a thread reads its row's values and columns again for each of four vectors",
    {{"sums", "a sum for each vector while the row is read once", {"redundant_loads"}}, {"together", "the same, the four numbers of an unknown side by side", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> columns(n * ENTRIES);
        for (long k = 0; k < ENTRIES; k++)
            for (long row = 0; row < n; row++) {
                const long column = row + (k - 8) * 128 + static_cast<long>(hash(k * 64 + row / 64) % 64);
                columns[k * n + row] = static_cast<int>(column < 0 ? column + n : column >= n ? column - n : column);
            }
        const Sparse matrix = {b.random<float>(n * ENTRIES), b.copy(columns), static_cast<int>(n)};
        std::vector<float> apart(n * SIDES);
        std::vector<float4> together(n);
        for (long k = 0; k < n * SIDES; k++) apart[k] = static_cast<float>(hash(k) % 2001) * 1e-3f - 1.0f;
        for (long k = 0; k < n; k++) together[k] = make_float4(apart[k], apart[n + k], apart[2 * n + k], apart[3 * n + k]);
        const float *x = b.copy(apart);
        const float4 *x4 = b.copy(together);
        float *y = b.output<float>(n * SIDES);
        float4 *y4 = b.allocate<float4>(n);
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(several_sides, grid, 256, 0, matrix, x, y, SIDES)}, {"sums", launch(several_sides_sums, grid, 256, 0, matrix, x, y)},
            Side{"together", launch(several_sides_together, grid, 256, 0, matrix, x4, y4), {}, 1, launch(apart_again, grid, 256, 0, y4, y, n)}};
    });

// --- how fast a flame burns ---

constexpr int REACTIONS = 16, SPECIES = 4;

struct Reactions {
    float factor[REACTIONS], exponent[REACTIONS], barrier[REACTIONS], heat[REACTIONS], log_factor[REACTIONS];
};
struct Flame {
    const float *warmth, *shares;
    float *out;
    int cells;
};
template <typename Rate>
__device__ __forceinline__ void burn(const Flame &flame, int i, Rate rate) {
    float shares[SPECIES], sum = 0.0f;
#pragma unroll
    for (int s = 0; s < SPECIES; s++) shares[s] = flame.shares[static_cast<size_t>(s) * flame.cells + i];
#pragma unroll
    for (int r = 0; r < REACTIONS; r++) sum += rate(r) * shares[r % SPECIES];
    flame.out[i] = sum;
}
__global__ void __launch_bounds__(256) flames(const Flame flame, const __grid_constant__ Reactions reactions) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= flame.cells) return;
    const float warmth = flame.warmth[i];
    burn(flame, i, [&](int r) { return reactions.heat[r] * reactions.factor[r] * powf(warmth, reactions.exponent[r]) * expf(-reactions.barrier[r] / warmth); });
}
__global__ void __launch_bounds__(256) flames_exponent(const Flame flame, const __grid_constant__ Reactions reactions) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= flame.cells) return;
    const float warmth = flame.warmth[i], logarithm = logf(warmth), inverse = 1.0f / warmth;
    burn(flame, i, [&](int r) { return reactions.heat[r] * __expf(reactions.log_factor[r] + reactions.exponent[r] * logarithm - reactions.barrier[r] * inverse); });
}
__global__ void __launch_bounds__(256) flames_fast(const Flame flame, const __grid_constant__ Reactions reactions) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= flame.cells) return;
    const float warmth = flame.warmth[i];
    burn(flame, i, [&](int r) { return reactions.heat[r] * reactions.factor[r] * __powf(warmth, reactions.exponent[r]) * __expf(__fdividef(-reactions.barrier[r], warmth)); });
}

Study burnt("flame_rates_by_powers", "combustion", 1 << 22, "the heat of sixteen reactions in 4194304 cells of a flame",
    "each rate takes a power of the temperature, an exponential and a division at full precision",
    {{"exponent", "one exponential a rate, the temperature's logarithm and inverse once a cell", {"expensive_math"}}, {"fast", "fast powers, exponentials and divisions", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const Flame flame = {b.random<float>(n, 900.0, 2400.0), b.random<float>(n * SPECIES, 0.01, 0.25), b.output<float>(n), static_cast<int>(n)};
        Reactions reactions;
        for (int r = 0; r < REACTIONS; r++) {
            reactions.exponent[r] = 0.3f + 0.13f * static_cast<float>(r), reactions.barrier[r] = 1500.0f + 700.0f * static_cast<float>(r % 7);
            reactions.heat[r] = 1.0f + 0.1f * static_cast<float>(r);
            reactions.log_factor[r] = -reactions.exponent[r] * logf(1500.0f) + reactions.barrier[r] / 1500.0f, reactions.factor[r] = expf(reactions.log_factor[r]);
        }
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(flames, grid, 256, 0, flame, reactions)}, {"exponent", launch(flames_exponent, grid, 256, 0, flame, reactions)},
            {"fast", launch(flames_fast, grid, 256, 0, flame, reactions)}};
    });

// --- how likely sentences are ---

constexpr int STATES = 256, DEEP = 8;

struct Sentences {
    const float *emissions;  // sentence, frame, state
    const float *stay;
    float *out;
    int frames;
};
// One of two rows holds the states of the frame before.
struct Forward {
    float (*rows)[STATES + 1];
    float own, stay, move;
    __device__ __forceinline__ void step(int frame, float emission) {
        own = (own * stay + rows[frame & 1][threadIdx.x] * move) * emission;
        rows[~frame & 1][threadIdx.x + 1] = own;
        __syncthreads();
    }
};
__device__ __forceinline__ Forward begun(const Sentences &all, float (*rows)[STATES + 1]) {
    const int s = threadIdx.x;
    const float stay = all.stay[s], own = s == 0 ? 1.0f : 0.01f;
    rows[0][s + 1] = own;
    if (s < 2) rows[s][0] = 0.0f;
    __syncthreads();
    return {rows, own, stay, 1.0f - stay};
}
__global__ void __launch_bounds__(STATES) sentences(const Sentences all) {
    __shared__ float rows[2][STATES + 1];
    Forward forward = begun(all, rows);
    const float *emission = all.emissions + static_cast<size_t>(blockIdx.x) * all.frames * STATES + threadIdx.x;
    for (int frame = 0; frame < all.frames; frame++) forward.step(frame, emission[static_cast<size_t>(frame) * STATES]);
    all.out[blockIdx.x * STATES + threadIdx.x] = forward.own;
}
__global__ void __launch_bounds__(STATES) sentences_eight(const Sentences all) {
    __shared__ float rows[2][STATES + 1];
    Forward forward = begun(all, rows);
    const float *emission = all.emissions + static_cast<size_t>(blockIdx.x) * all.frames * STATES + threadIdx.x;
    for (int frame = 0; frame < all.frames; frame += DEEP, emission += DEEP * STATES) {
        float next[DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; k++) next[k] = emission[k * STATES];
#pragma unroll
        for (int k = 0; k < DEEP; k++) forward.step(k, next[k]);
    }
    all.out[blockIdx.x * STATES + threadIdx.x] = forward.own;
}
__global__ void __launch_bounds__(STATES) sentences_ahead(const Sentences all) {
    __shared__ float rows[2][STATES + 1];
    Forward forward = begun(all, rows);
    const float *emission = all.emissions + static_cast<size_t>(blockIdx.x) * all.frames * STATES + threadIdx.x;
    float next[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++) next[k] = emission[k * STATES];
    for (int frame = 0; frame < all.frames - DEEP; frame += DEEP) {
        emission += DEEP * STATES;
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const float now = next[k];
            next[k] = emission[k * STATES];
            forward.step(k, now);
        }
    }
#pragma unroll
    for (int k = 0; k < DEEP; k++) forward.step(k, next[k]);
    all.out[blockIdx.x * STATES + threadIdx.x] = forward.own;
}

Study said("sentences_frame_by_frame", "speech", 528, "how likely each of 256 states is at the end of 528 sentences of 512 frames",
    "each frame is asked for when the frame before it is done",
    {{"eight", "eight frames asked for at once", {"memory_latency"}}, {"ahead", "each frame asked for eight frames before", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int frames = 512;
        const Sentences all = {b.random<float>(n * frames * STATES, 0.6, 1.5), b.random<float>(STATES, 0.3, 0.9), b.output<float>(n * STATES), frames};
        return {{"flawed", launch(sentences, n, STATES, 0, all)}, {"eight", launch(sentences_eight, n, STATES, 0, all)}, {"ahead", launch(sentences_ahead, n, STATES, 0, all)}};
    });

// --- products of ciphers ---

constexpr int PRIMES = 16, DIGITS = 4, CIPHERS = 8;

struct Modulus {
    unsigned prime;
    unsigned long long inverse;  // 2^64 over the prime
};
struct Cipher {
    const unsigned *digits;  // cipher, digit, prime, coefficient
    const unsigned *key;     // digit, prime, coefficient
    unsigned *out;           // cipher, prime, coefficient
    Modulus moduli[PRIMES];
    int coefficients;
};
// Rows of the grid are primes, layers ciphers.
template <typename Sum>
__device__ __forceinline__ void switch_key(const Cipher &cipher, Sum sum) {
    const int k = blockIdx.x * 256 + threadIdx.x, plane = PRIMES * cipher.coefficients, at = blockIdx.y * cipher.coefficients + k;
    unsigned long long products[DIGITS];
    const unsigned *digits = cipher.digits + static_cast<size_t>(blockIdx.z) * DIGITS * plane;
#pragma unroll
    for (int d = 0; d < DIGITS; d++) products[d] = static_cast<unsigned long long>(digits[d * plane + at]) * cipher.key[d * plane + at];
    cipher.out[static_cast<size_t>(blockIdx.z) * plane + at] = sum(products, cipher.moduli[blockIdx.y]);
}
__device__ __forceinline__ unsigned reduced(unsigned long long x, Modulus modulus) {
    const unsigned rest = static_cast<unsigned>(x - __umul64hi(x, modulus.inverse) * modulus.prime);
    return rest >= modulus.prime ? rest - modulus.prime : rest;
}
__global__ void __launch_bounds__(256) key_switched(const __grid_constant__ Cipher cipher) {
    switch_key(cipher, [](const unsigned long long (&products)[DIGITS], Modulus modulus) {
        const unsigned long long prime = modulus.prime;
        unsigned long long sum = 0;
#pragma unroll
        for (int d = 0; d < DIGITS; d++) sum = (sum + products[d]) % prime;
        return static_cast<unsigned>(sum);
    });
}
__global__ void __launch_bounds__(256) key_switched_once(const __grid_constant__ Cipher cipher) {
    switch_key(cipher, [](const unsigned long long (&products)[DIGITS], Modulus modulus) {
        return static_cast<unsigned>((products[0] + products[1] + products[2] + products[3]) % modulus.prime);
    });
}
__global__ void __launch_bounds__(256) key_switched_barrett(const __grid_constant__ Cipher cipher) {
    switch_key(cipher, [](const unsigned long long (&products)[DIGITS], Modulus modulus) {
        unsigned sum = 0;
#pragma unroll
        for (int d = 0; d < DIGITS; d++) sum = reduced(sum + products[d], modulus);
        return sum;
    });
}

Study switched("cipher_keys_remainder_each_digit", "cryptography", 1 << 16, "four digits of eight ciphers of 65536 coefficients times a key, modulo sixteen primes",
    "a remainder of 64 bits after each product",
    {{"once", "one remainder of the sum of four products", {"integer_arithmetic"}}, {"barrett", "each remainder by a product with the prime's inverse", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        Cipher cipher;
        const long plane = PRIMES * n;
        cipher.digits = b.random<unsigned>(CIPHERS * DIGITS * plane, 0.0, 1000000000.0), cipher.key = b.random<unsigned>(DIGITS * plane, 0.0, 1000000000.0);
        cipher.out = b.output<unsigned>(CIPHERS * plane), cipher.coefficients = static_cast<int>(n);
        unsigned prime = 1 << 30;
        for (Modulus &modulus : cipher.moduli) {
            for (bool divided = true; divided;) {
                prime--, divided = prime % 2 == 0;
                for (unsigned k = 3; k * k <= prime && !divided; k += 2) divided = prime % k == 0;
            }
            modulus = {prime, ~0ull / prime};
        }
        b.tolerance = 0.0;
        const dim3 grid(n / 256, PRIMES, CIPHERS);
        return {{"flawed", launch(key_switched, grid, 256, 0, cipher)}, {"once", launch(key_switched_once, grid, 256, 0, cipher)}, {"barrett", launch(key_switched_barrett, grid, 256, 0, cipher)}};
    });

}  // namespace
