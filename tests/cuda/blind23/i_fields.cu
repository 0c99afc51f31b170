// Flames, speech, spins, charges, stars, forecasts, ciphers and prices.
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

// --- a sheet of spins ---

struct Sheet {
    signed char *spins;
    int mask, pitch;  // one less than a row's spins, and how many they are
    float coldness;
    unsigned sweep;
    __device__ __forceinline__ signed char next(int y, int x, int own, int around) const {
        const unsigned drawn = hash(hash(static_cast<unsigned>(y * pitch + x)) ^ sweep);
        return static_cast<signed char>(static_cast<float>(drawn) * 2.3283064e-10f < __expf(-2.0f * coldness * static_cast<float>(own * around)) ? -own : own);
    }
    __device__ __forceinline__ void turn(int y, int x) const {
        const signed char *row = spins + y * pitch;
        const int around = row[(x - 1) & mask] + row[(x + 1) & mask] + spins[((y - 1) & mask) * pitch + x] + spins[((y + 1) & mask) * pitch + x];
        spins[y * pitch + x] = next(y, x, row[x], around);
    }
};
__global__ void __launch_bounds__(256) spins_turned(const Sheet sheet, int color) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (((x + y) & 1) == color) sheet.turn(y, x);
}
__global__ void __launch_bounds__(256) spins_turned_color(const Sheet sheet, int color) {
    const int y = blockIdx.y * 8 + threadIdx.y, x = 2 * (blockIdx.x * 32 + threadIdx.x) + ((y + color) & 1);
    sheet.turn(y, x);
}
__device__ __forceinline__ int byte_of(uint2 word, int k) { return static_cast<signed char>((k < 4 ? word.x : word.y) >> 8 * (k & 3)); }
// Eight spins a thread, four of which are turned.
__global__ void __launch_bounds__(256) spins_turned_words(const Sheet sheet, int color) {
    const int x = 8 * (blockIdx.x * 32 + threadIdx.x), y = blockIdx.y * 8 + threadIdx.y, odd = (y + color) & 1;
    const auto at = [&](int row) { return reinterpret_cast<uint2 *>(sheet.spins + (row & sheet.mask) * sheet.pitch + x); };
    const uint2 above = *at(y - 1), own = *at(y), below = *at(y + 1);
    const int before = sheet.spins[y * sheet.pitch + ((x - 1) & sheet.mask)], after = sheet.spins[y * sheet.pitch + ((x + 8) & sheet.mask)];
    unsigned found[2] = {};
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        const int left = pair ? byte_of(own, 2 * pair - 1) : before, even = byte_of(own, 2 * pair), second = byte_of(own, 2 * pair + 1), right = pair < 3 ? byte_of(own, 2 * pair + 2) : after;
        const int around = (odd ? even + right + byte_of(above, 2 * pair + 1) + byte_of(below, 2 * pair + 1) : left + second + byte_of(above, 2 * pair) + byte_of(below, 2 * pair));
        const int turned = sheet.next(y, x + 2 * pair + odd, odd ? second : even, around);
        const unsigned low = (odd ? even : turned) & 255, high = (odd ? turned : second) & 255;
        found[pair / 2] |= (low | high << 8) << 16 * (pair % 2);
    }
    *at(y) = make_uint2(found[0], found[1]);
}

Study turned("spins_of_one_color_in_a_warp_of_two", "lattice models", 8192, "half the spins of a sheet of 8192 x 8192, those of one colour of a chequerboard",
    "neighbouring lanes have spins of both colours, and only one is turned",
    {{"color", "a thread a spin of the colour", {"branch_divergence"}}, {"words", "a thread has eight spins as two words and turns four", {"branch_divergence", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<signed char> list(n * n);
        for (unsigned k = 0; k < list.size(); k++) list[k] = hash(k) & 1 ? 1 : -1;
        const Sheet sheet = {b.changed(b.copy(list), list.size()), static_cast<int>(n - 1), static_cast<int>(n), 0.44f, 977u};
        b.tolerance = 0.0;
        const dim3 block(32, 8);
        return {{"flawed", launch(spins_turned, dim3(n / 32, n / 8), block, 0, sheet, 1)}, {"color", launch(spins_turned_color, dim3(n / 64, n / 8), block, 0, sheet, 1)},
            {"words", launch(spins_turned_words, dim3(n / 256, n / 8), block, 0, sheet, 1)}};
    });

// --- charges of a plasma on the nodes of a grid ---

constexpr int CELLS = 16, NODES_EACH = CELLS + 1, IN_TILE = 1024;

struct Plasma {
    const float2 *places;  // within the tile, in cells; tile by tile
    const int *charges;
    int *nodes;
    int pitch;
};
// ADD takes a node of the tile and an amount. A block a tile of cells.
template <typename Add>
__device__ __forceinline__ void deposit(const Plasma &plasma, Add add) {
    const size_t first = static_cast<size_t>(blockIdx.y * gridDim.x + blockIdx.x) * IN_TILE;
    for (int k = threadIdx.x; k < IN_TILE; k += 256) {
        const float2 place = plasma.places[first + k];
        const int charge = plasma.charges[first + k];
        const int x = static_cast<int>(place.x), y = static_cast<int>(place.y);
        const int right = static_cast<int>((place.x - x) * 64.0f), upper = static_cast<int>((place.y - y) * 64.0f);
        add(y, x, charge * (64 - right) * (64 - upper)), add(y, x + 1, charge * right * (64 - upper));
        add(y + 1, x, charge * (64 - right) * upper), add(y + 1, x + 1, charge * right * upper);
    }
}
__global__ void __launch_bounds__(256) charges(const Plasma plasma) {
    int *corner = plasma.nodes + blockIdx.y * CELLS * plasma.pitch + blockIdx.x * CELLS;
    deposit(plasma, [&](int y, int x, int amount) { atomicAdd(corner + y * plasma.pitch + x, amount); });
}
template <typename Keep>
__device__ __forceinline__ void deposit_in_tile(const Plasma &plasma, Keep keep) {
    __shared__ int tile[NODES_EACH * NODES_EACH];
    for (int k = threadIdx.x; k < NODES_EACH * NODES_EACH; k += 256) tile[k] = 0;
    __syncthreads();
    deposit(plasma, [&](int y, int x, int amount) { atomicAdd(tile + y * NODES_EACH + x, amount); });
    __syncthreads();
    int *corner = plasma.nodes + blockIdx.y * CELLS * plasma.pitch + blockIdx.x * CELLS;
    for (int k = threadIdx.x; k < NODES_EACH * NODES_EACH; k += 256) keep(corner + k / NODES_EACH * plasma.pitch + k % NODES_EACH, k / NODES_EACH, k % NODES_EACH, tile[k]);
}
__global__ void __launch_bounds__(256) charges_tile(const Plasma plasma) {
    deposit_in_tile(plasma, [](int *node, int, int, int amount) { atomicAdd(node, amount); });
}
// Only nodes of the tile's border belong to other tiles, too.
__global__ void __launch_bounds__(256) charges_inner(const Plasma plasma) {
    deposit_in_tile(plasma, [](int *node, int y, int x, int amount) {
        if (y % CELLS && x % CELLS) *node = amount;
        else atomicAdd(node, amount);
    });
}

Study deposited("plasma_charges_four_additions_each", "plasma physics", 64, "4194304 charges, sorted by tiles of 16 x 16 cells, on the nodes of 1024 x 1024 cells",
    "each charge adds to four nodes in global memory",
    {{"tile", "a tile's nodes in shared memory, added at the end", {"global_atomics"}}, {"inner", "the same, and nodes inside of the tile stored", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int pitch = static_cast<int>(n) * CELLS + 32;
        const long count = n * n * IN_TILE;
        const Plasma plasma = {reinterpret_cast<const float2 *>(b.random<float>(count * 2, 0.0, 15.999)), b.random<int>(count, -3.0, 9.0), b.output<int>(pitch * (n * CELLS + 1), true), pitch};
        b.tolerance = 0.0;
        const dim3 grid(n, n);
        return {{"flawed", launch(charges, grid, 256, 0, plasma)}, {"tile", launch(charges_tile, grid, 256, 0, plasma)}, {"inner", launch(charges_inner, grid, 256, 0, plasma)}};
    });

// --- small systems along the diagonal of a large one ---

constexpr int UNKNOWNS = 6, SOLVERS = 128;

struct Diagonal {
    const float *blocks, *sides;  // entries of all blocks side by side
    float *out;
    int count;
    template <typename Put>
    __device__ __forceinline__ void load(int i, Put put) const {
#pragma unroll
        for (int r = 0; r < UNKNOWNS; r++) {
#pragma unroll
            for (int c = 0; c < UNKNOWNS; c++) put(r, c, blocks[static_cast<size_t>(r * UNKNOWNS + c) * count + i] + (r == c ? 2.5f : 0.0f));
            put(r, UNKNOWNS, sides[static_cast<size_t>(r) * count + i]);
        }
    }
};
// Gauss with a pivot; M is indexed by row and column.
template <typename Matrix, typename Swap>
__device__ __forceinline__ void solve(const Diagonal &all, int i, Matrix m, Swap swap) {
#pragma unroll
    for (int c = 0; c < UNKNOWNS; c++) {
        int best = c;
        float most = fabsf(m(c, c));
#pragma unroll
        for (int r = c + 1; r < UNKNOWNS; r++)
            if (fabsf(m(r, c)) > most) most = fabsf(m(r, c)), best = r;
        swap(c, best);
        const float inverse = 1.0f / m(c, c);
#pragma unroll
        for (int r = c + 1; r < UNKNOWNS; r++) {
            const float factor = m(r, c) * inverse;
#pragma unroll
            for (int k = c + 1; k <= UNKNOWNS; k++) m(r, k) -= factor * m(c, k);
        }
    }
#pragma unroll
    for (int r = UNKNOWNS - 1; r >= 0; r--) {
        float x = m(r, UNKNOWNS);
#pragma unroll
        for (int k = r + 1; k < UNKNOWNS; k++) x -= m(r, k) * m(k, UNKNOWNS);
        x /= m(r, r);
        m(r, UNKNOWNS) = x;
        all.out[static_cast<size_t>(r) * all.count + i] = x;
    }
}
__global__ void __launch_bounds__(SOLVERS) diagonal_blocks(const Diagonal all) {
    const int i = blockIdx.x * SOLVERS + threadIdx.x;
    if (i >= all.count) return;
    float m[UNKNOWNS][UNKNOWNS + 1];
    all.load(i, [&](int r, int c, float value) { m[r][c] = value; });
    int order[UNKNOWNS];
#pragma unroll
    for (int r = 0; r < UNKNOWNS; r++) order[r] = r;
    const auto at = [&](int r, int c) -> float & { return m[order[r]][c]; };
    solve(all, i, at, [&](int c, int best) {
        const int kept = order[c];
        order[c] = order[best], order[best] = kept;
    });
}
__global__ void __launch_bounds__(SOLVERS) diagonal_blocks_registers(const Diagonal all) {
    const int i = blockIdx.x * SOLVERS + threadIdx.x;
    if (i >= all.count) return;
    float m[UNKNOWNS][UNKNOWNS + 1];
    all.load(i, [&](int r, int c, float value) { m[r][c] = value; });
    const auto at = [&](int r, int c) -> float & { return m[r][c]; };
    solve(all, i, at, [&](int c, int best) {
#pragma unroll
        for (int r = 0; r < UNKNOWNS; r++) {
            if (r <= c) continue;
#pragma unroll
            for (int k = 0; k <= UNKNOWNS; k++) {
                const float kept = m[c][k], other = m[r][k];
                m[c][k] = best == r ? other : kept, m[r][k] = best == r ? kept : other;
            }
        }
    });
}
__global__ void __launch_bounds__(SOLVERS) diagonal_blocks_shared(const Diagonal all) {
    __shared__ float own[UNKNOWNS * (UNKNOWNS + 1)][SOLVERS];
    const int i = blockIdx.x * SOLVERS + threadIdx.x;
    if (i >= all.count) return;
    const auto at = [&](int r, int c) -> float & { return own[r * (UNKNOWNS + 1) + c][threadIdx.x]; };
    all.load(i, [&](int r, int c, float value) { at(r, c) = value; });
    solve(all, i, at, [&](int c, int best) {
        if (best == c) return;
        for (int k = c; k <= UNKNOWNS; k++) {
            const float kept = at(c, k);
            at(c, k) = at(best, k), at(best, k) = kept;
        }
    });
}

Study diagonals("diagonal_blocks_pivot_by_index", "sparse solvers", 1 << 20, "1048576 systems of six unknowns, by elimination with a pivot",
    "the row of the pivot is known at run time only: the matrix of a thread lies in local memory",
    {{"registers", "rows change places by selection, all in registers", {"local_memory"}}, {"shared", "matrices in shared memory, entries of threads side by side", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const Diagonal all = {b.random<float>(n * UNKNOWNS * UNKNOWNS), b.random<float>(n * UNKNOWNS), b.output<float>(n * UNKNOWNS), static_cast<int>(n)};
        b.tolerance = 1e-3;
        const unsigned grid = blocks(n, SOLVERS);
        return {{"flawed", launch(diagonal_blocks, grid, SOLVERS, 0, all)}, {"registers", launch(diagonal_blocks_registers, grid, SOLVERS, 0, all)}, {"shared", launch(diagonal_blocks_shared, grid, SOLVERS, 0, all)}};
    });

// --- how alike the traces of a gather are ---

constexpr int SAMPLES = 1024, TRACES = 480;

struct Alike {
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f}, squares = {0.0f, 0.0f, 0.0f, 0.0f};
    __device__ __forceinline__ void add(float4 v) {
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        squares.x += v.x * v.x, squares.y += v.y * v.y, squares.z += v.z * v.z, squares.w += v.w * v.w;
    }
    __device__ __forceinline__ void add(const Alike &other) {
        sum.x += other.sum.x, sum.y += other.sum.y, sum.z += other.sum.z, sum.w += other.sum.w;
        squares.x += other.squares.x, squares.y += other.squares.y, squares.z += other.squares.z, squares.w += other.squares.w;
    }
    __device__ __forceinline__ float4 share() const {
        return make_float4(sum.x * sum.x / (TRACES * squares.x), sum.y * sum.y / (TRACES * squares.y), sum.z * sum.z / (TRACES * squares.z), sum.w * sum.w / (TRACES * squares.w));
    }
};
// A block a gather, four samples a thread.
__global__ void __launch_bounds__(SAMPLES / 4) semblances(const float4 *__restrict__ traces, float4 *__restrict__ out) {
    const float4 *own = traces + static_cast<size_t>(blockIdx.x) * TRACES * (SAMPLES / 4) + threadIdx.x;
    Alike alike;
#pragma unroll 4
    for (int trace = 0; trace < TRACES; trace++) alike.add(own[trace * (SAMPLES / 4)]);
    out[blockIdx.x * (SAMPLES / 4) + threadIdx.x] = alike.share();
}
// LANES threads have neighbouring samples; WARPS of them share the traces. Rows of the grid are gathers.
template <int LANES, int WARPS>
__global__ void __launch_bounds__(LANES *WARPS) semblances_shared_out(const float4 *__restrict__ traces, float4 *__restrict__ out) {
    __shared__ Alike parts[WARPS][LANES];
    const int at = blockIdx.x * LANES + threadIdx.x;
    const float4 *own = traces + static_cast<size_t>(blockIdx.y) * TRACES * (SAMPLES / 4) + at;
    Alike alike;
#pragma unroll 4
    for (int trace = threadIdx.y; trace < TRACES; trace += WARPS) alike.add(own[trace * (SAMPLES / 4)]);
    parts[threadIdx.y][threadIdx.x] = alike;
    __syncthreads();
    if (threadIdx.y) return;
    for (int warp = 1; warp < WARPS; warp++) alike.add(parts[warp][threadIdx.x]);
    out[blockIdx.y * (SAMPLES / 4) + at] = alike.share();
}

Study gathered("semblance_block_a_gather", "seismics", 32, "how alike 480 traces of 1024 samples are in each of 32 gathers",
    "a block a gather: 32 blocks on 132 multiprocessors",
    {{"sixteen", "eight blocks a gather, whose sixteen warps share the traces", {"small_grid"}}, {"narrow", "32 blocks a gather of 32 samples, traces shared by 24 rows of threads", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *traces = reinterpret_cast<const float4 *>(b.random<float>(n * TRACES * SAMPLES, -0.6, 1.0));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * SAMPLES));
        return {{"flawed", launch(semblances, n, SAMPLES / 4, 0, traces, out)}, {"sixteen", launch(semblances_shared_out<32, 16>, dim3(SAMPLES / 128, n), dim3(32, 16), 0, traces, out)},
            {"narrow", launch(semblances_shared_out<8, 24>, dim3(SAMPLES / 32, n), dim3(8, 24), 0, traces, out)}};
    });

// --- the energy of all pairs of charges ---

constexpr int PARTNERS = 256;

// The energy of the particle OWN with those of a tile, from the one numbered FROM on.
__device__ __forceinline__ float energy_with(float4 own, const float4 *tile, int from) {
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k < PARTNERS; k++) {
        const float4 other = tile[k];
        const float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
        const float inverse = rsqrtf(x * x + y * y + z * z + 1e-4f);
        const float energy = other.w * inverse * (1.0f + 0.01f * inverse * inverse);
        sum += k < from ? 0.0f : energy;
    }
    return sum * own.w;
}
__device__ __forceinline__ void add_of_block(float sum, float *out) {
    __shared__ float sums[PARTNERS / 32];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < PARTNERS / 32 ? sums[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}
// Each pair once: a block has its own particles and those that come after.
__global__ void __launch_bounds__(PARTNERS) pair_energy(const float4 *__restrict__ particles, float *__restrict__ out) {
    __shared__ float4 tile[PARTNERS];
    const float4 own = particles[blockIdx.x * PARTNERS + threadIdx.x];
    float sum = 0.0f;
    for (int other = blockIdx.x; other < gridDim.x; other++) {
        __syncthreads();
        tile[threadIdx.x] = particles[other * PARTNERS + threadIdx.x];
        __syncthreads();
        sum += energy_with(own, tile, other == blockIdx.x ? threadIdx.x + 1 : 0);
    }
    add_of_block(sum, out);
}
// Tiles in a ring: a block has the half of the ring that follows. Their number is even.
__global__ void __launch_bounds__(PARTNERS) pair_energy_ring(const float4 *__restrict__ particles, float *__restrict__ out) {
    __shared__ float4 tile[PARTNERS];
    const float4 own = particles[blockIdx.x * PARTNERS + threadIdx.x];
    const int count = gridDim.x, half = count / 2, last = blockIdx.x < half ? half : half - 1;
    float sum = 0.0f;
    for (int away = 0; away <= last; away++) {
        const int other = blockIdx.x + away < count ? blockIdx.x + away : blockIdx.x + away - count;
        __syncthreads();
        tile[threadIdx.x] = particles[other * PARTNERS + threadIdx.x];
        __syncthreads();
        sum += energy_with(own, tile, away == 0 ? threadIdx.x + 1 : 0);
    }
    add_of_block(sum, out);
}
// Pairs of tiles are numbered, row by row of a triangle, and dealt out.
__global__ void __launch_bounds__(PARTNERS) pair_energy_dealt(const float4 *__restrict__ particles, float *__restrict__ out, int tiles) {
    __shared__ float4 tile[PARTNERS];
    float sum = 0.0f;
    for (int pair = blockIdx.x; pair < tiles * (tiles + 1) / 2; pair += gridDim.x) {
        int row = static_cast<int>((sqrtf(8.0f * static_cast<float>(pair) + 1.0f) - 1.0f) * 0.5f);
        while (row * (row + 1) / 2 > pair) row--;
        while ((row + 1) * (row + 2) / 2 <= pair) row++;
        const int other = pair - row * (row + 1) / 2;
        const float4 own = particles[row * PARTNERS + threadIdx.x];
        __syncthreads();
        tile[threadIdx.x] = particles[other * PARTNERS + threadIdx.x];
        __syncthreads();
        sum += energy_with(own, tile, other == row ? threadIdx.x + 1 : 0);
    }
    add_of_block(sum, out);
}

Study paired("pair_energy_those_that_come_after", "molecular dynamics", 132 * PARTNERS, "the energy of all pairs of 33792 charges, each pair once",
    "a block goes through all later particles: the first has 132 tiles, the last one",
    {{"ring", "each block goes through the half of a ring of tiles that follows its own", {"workload_imbalance"}}, {"dealt", "pairs of tiles dealt out to blocks in turn", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(n);
        for (unsigned k = 0; k < list.size(); k++) {
            const auto unit = [&](unsigned axis) { return static_cast<float>(hash(k * 4 + axis) >> 8) * (1.0f / 16777216.0f); };
            list[k] = make_float4(unit(0), unit(1), unit(2), 0.5f + unit(3));
        }
        const float4 *particles = b.copy(list);
        float *out = b.output<float>(1, true);
        b.tolerance = 1e-3;
        const int tiles = static_cast<int>(n / PARTNERS);
        return {{"flawed", launch(pair_energy, tiles, PARTNERS, 0, particles, out)}, {"ring", launch(pair_energy_ring, tiles, PARTNERS, 0, particles, out)},
            {"dealt", launch(pair_energy_dealt, 264, PARTNERS, 0, particles, out, tiles)}};
    });

// --- elements of a wave's field, smoothed by a matrix from both sides ---

constexpr int EDGE = 32, EACH_BLOCK = 8;

// A thread an entry.
__global__ void __launch_bounds__(EDGE *EDGE) smoothed(const float *__restrict__ elements, const float *__restrict__ filter, float *__restrict__ out) {
    __shared__ float f[EDGE][EDGE + 1], u[EDGE][EDGE], half[EDGE][EDGE];
    const int x = threadIdx.x, y = threadIdx.y;
    f[y][x] = filter[y * EDGE + x];
    for (int k = 0; k < EACH_BLOCK; k++) {
        const size_t at = (static_cast<size_t>(blockIdx.x) * EACH_BLOCK + k) * EDGE * EDGE + y * EDGE + x;
        u[y][x] = elements[at];
        __syncthreads();
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < EDGE; j++) sum += f[y][j] * u[j][x];
        half[y][x] = sum;
        __syncthreads();
        sum = 0.0f;
#pragma unroll
        for (int j = 0; j < EDGE; j++) sum += half[y][j] * f[x][j];
        out[at] = sum;
    }
}
constexpr int PITCH = EDGE + 4;

// Eight entries of a column a thread; F and what is between the products lie turned.
__global__ void __launch_bounds__(4 * EDGE) smoothed_columns(const float *__restrict__ elements, const float *__restrict__ filter, float *__restrict__ out) {
    __shared__ __align__(16) float f[EDGE][PITCH], u[EDGE][PITCH], half[EDGE][PITCH];
    const int x = threadIdx.x, rows = 8 * threadIdx.y;
    for (int r = 0; r < 8; r++) f[x][rows + r] = filter[(rows + r) * EDGE + x];
    const auto product = [&](const float (*left)[PITCH], const float (*right)[PITCH], float (&sums)[8]) {
#pragma unroll 8
        for (int j = 0; j < EDGE; j++) {
            const float other = right[j][x];
            const float4 low = *reinterpret_cast<const float4 *>(&left[j][rows]), high = *reinterpret_cast<const float4 *>(&left[j][rows + 4]);
            sums[0] += low.x * other, sums[1] += low.y * other, sums[2] += low.z * other, sums[3] += low.w * other;
            sums[4] += high.x * other, sums[5] += high.y * other, sums[6] += high.z * other, sums[7] += high.w * other;
        }
    };
    for (int k = 0; k < EACH_BLOCK; k++) {
        const size_t at = (static_cast<size_t>(blockIdx.x) * EACH_BLOCK + k) * EDGE * EDGE + rows * EDGE + x;
#pragma unroll
        for (int r = 0; r < 8; r++) u[rows + r][x] = elements[at + r * EDGE];
        __syncthreads();
        float sums[8] = {}, found[8] = {};
        product(f, u, sums);
        *reinterpret_cast<float4 *>(&half[x][rows]) = make_float4(sums[0], sums[1], sums[2], sums[3]);
        *reinterpret_cast<float4 *>(&half[x][rows + 4]) = make_float4(sums[4], sums[5], sums[6], sums[7]);
        __syncthreads();
        product(half, f, found);
#pragma unroll
        for (int r = 0; r < 8; r++) out[at + r * EDGE] = found[r];
    }
}
// Tiles of 4 x 4 entries a thread, an element for each pair of warps.
__global__ void __launch_bounds__(256) smoothed_tiles(const float *__restrict__ elements, const float *__restrict__ filter, float *__restrict__ out) {
    __shared__ __align__(16) float f[EDGE][PITCH], fields[4][2][EDGE][PITCH];
    const int t = threadIdx.x, x = 4 * (t % 8), y = 4 * (t / 8 % 8);
    float(*u)[PITCH] = fields[t / 64][0], (*half)[PITCH] = fields[t / 64][1];
    for (int k = t; k < EDGE * EDGE; k += 256) f[k % EDGE][k / EDGE] = filter[k];
    const auto product = [&](const float (*left)[PITCH], const float (*right)[PITCH], float (&sums)[4][4]) {
#pragma unroll 8
        for (int j = 0; j < EDGE; j++) {
            const float4 a = *reinterpret_cast<const float4 *>(&left[j][y]), z = *reinterpret_cast<const float4 *>(&right[j][x]);
            const float rows[4] = {a.x, a.y, a.z, a.w}, columns[4] = {z.x, z.y, z.z, z.w};
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++) sums[r][c] += rows[r] * columns[c];
        }
    };
    for (int k = 0; k < EACH_BLOCK; k += 4) {
        const size_t at = (static_cast<size_t>(blockIdx.x) * EACH_BLOCK + k + t / 64) * EDGE * EDGE + y * EDGE + x;
#pragma unroll
        for (int r = 0; r < 4; r++) *reinterpret_cast<float4 *>(&u[y + r][x]) = *reinterpret_cast<const float4 *>(elements + at + r * EDGE);
        __syncthreads();
        float sums[4][4] = {}, found[4][4] = {};
        product(f, u, sums);
#pragma unroll
        for (int c = 0; c < 4; c++) *reinterpret_cast<float4 *>(&half[x + c][y]) = make_float4(sums[0][c], sums[1][c], sums[2][c], sums[3][c]);
        __syncthreads();
        product(half, f, found);
#pragma unroll
        for (int r = 0; r < 4; r++) *reinterpret_cast<float4 *>(out + at + r * EDGE) = make_float4(found[r][0], found[r][1], found[r][2], found[r][3]);
    }
}

Study smooth("elements_smoothed_entry_a_thread", "fluid dynamics", 16384, "16384 elements of 32 x 32 points, each between a filter's matrix and its transpose",
    "each multiplication loads both of its factors from shared memory",
    {{"columns", "eight entries of a column a thread", {"shared_memory_bandwidth"}}, {"tiles", "tiles of 4 x 4 entries a thread from vectors of four", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *elements = b.random<float>(n * EDGE * EDGE), *filter = b.random<float>(EDGE * EDGE, -0.2, 0.3);
        float *out = b.output<float>(n * EDGE * EDGE);
        const unsigned grid = blocks(n, EACH_BLOCK);
        return {{"flawed", launch(smoothed, grid, dim3(EDGE, EDGE), 0, elements, filter, out)}, {"columns", launch(smoothed_columns, grid, dim3(EDGE, 4), 0, elements, filter, out)},
            {"tiles", launch(smoothed_tiles, grid, 256, 0, elements, filter, out)}};
    });

// --- an ensemble's distance from what is usual ---

constexpr int MEMBERS = 8;

struct Ensemble {
    const float4 *members, *usual, *inverse_spread;
    float4 *out;
    int quads;
    __device__ __forceinline__ void one(size_t at, float4 mean, float4 inverse) const {
        const float4 now = members[at];
        out[at] = make_float4((now.x - mean.x) * inverse.x, (now.y - mean.y) * inverse.y, (now.z - mean.z) * inverse.z, (now.w - mean.w) * inverse.w);
    }
};
__global__ void __launch_bounds__(256) anomalies(const Ensemble all) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    all.one(static_cast<size_t>(blockIdx.y) * all.quads + k, all.usual[k], all.inverse_spread[k]);
}
// Members first.
__global__ void __launch_bounds__(256) anomalies_members(const Ensemble all) {
    const int k = blockIdx.y * 256 + threadIdx.x;
    all.one(static_cast<size_t>(blockIdx.x) * all.quads + k, all.usual[k], all.inverse_spread[k]);
}
// All members of a point.
__global__ void __launch_bounds__(256) anomalies_kept(const Ensemble all) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    const float4 mean = all.usual[k], inverse = all.inverse_spread[k];
#pragma unroll
    for (int member = 0; member < MEMBERS; member++) all.one(static_cast<size_t>(member) * all.quads + k, mean, inverse);
}

Study unusual("ensemble_anomalies_member_by_member", "numerical weather", 1 << 23, "how far eight members of a forecast are from what is usual at 8388608 points",
    "64 MiB of what is usual pass through the caches once a member",
    {{"members", "members along the grid's first axis", {"cache_locality"}}, {"kept", "a thread has a point's eight members", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const auto field = [&](long count, double low, double high) { return reinterpret_cast<const float4 *>(b.random<float>(count, low, high)); };
        const float4 *members = field(n * MEMBERS, 250.0, 310.0), *usual = field(n, 260.0, 300.0), *inverse = field(n, 0.1, 1.0);
        const Ensemble all = {members, usual, inverse, reinterpret_cast<float4 *>(b.output<float>(n * MEMBERS)), static_cast<int>(n / 4)};
        const unsigned pieces = blocks(n / 4, 256);
        return {{"flawed", launch(anomalies, dim3(pieces, MEMBERS), 256, 0, all)}, {"members", launch(anomalies_members, dim3(MEMBERS, pieces), 256, 0, all)},
            {"kept", launch(anomalies_kept, pieces, 256, 0, all)}};
    });

// --- options on a price that jumps ---

constexpr int ABSCISSAE = 20;

struct Options {
    const float4 *terms;  // logarithm of price over strike, years, volatility, jumps a year
    const float2 *jumps;  // their mean and deviation
    const float2 *nodes;  // abscissa and weight
    float *out;
    int count;
};
// The integrand at an abscissa.
__device__ __forceinline__ float jumping(float4 terms, float2 jumps, float2 node) {
    const float u = node.x, square = u * u + 0.25f, spread = jumps.y * jumps.y;
    const float size = __expf(0.5f * jumps.x - 0.5f * spread * (square - 0.25f) + 0.125f * spread);
    float sine, cosine;
    __sincosf(u * (jumps.x + 0.5f * spread), &sine, &cosine);
    const float real = terms.y * (-0.5f * terms.z * terms.z * square + terms.w * (size * cosine - 1.0f)), imaginary = terms.y * terms.w * size * sine + u * terms.x;
    return node.y * __expf(real) * __cosf(imaginary) / square;
}
__device__ __forceinline__ float price(float4 terms, float integral) { return 1.0f - __expf(-0.5f * terms.x) * integral * 0.31830989f; }
// A warp an option.
__global__ void __launch_bounds__(256) options_priced(const Options options) {
    const int option = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (option >= options.count) return;
    const float4 terms = options.terms[option];
    float part = 0.0f;
    if (lane < ABSCISSAE) part = jumping(terms, options.jumps[option], options.nodes[lane]);
    part = warp_sum(part);
    if (lane == 0) options.out[option] = price(terms, part);
}
// A warp an abscissa of 32 options.
__global__ void __launch_bounds__(32 * ABSCISSAE) options_priced_turned(const Options options) {
    __shared__ float parts[ABSCISSAE][32];
    const int lane = threadIdx.x, option = blockIdx.x * 32 + lane;
    const float4 terms = options.terms[option];
    parts[threadIdx.y][lane] = jumping(terms, options.jumps[option], options.nodes[threadIdx.y]);
    __syncthreads();
    if (threadIdx.y) return;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ABSCISSAE; k++) sum += parts[k][lane];
    options.out[option] = price(terms, sum);
}
// A thread an option.
__global__ void __launch_bounds__(256) options_priced_alone(const Options options) {
    const int option = blockIdx.x * 256 + threadIdx.x;
    if (option >= options.count) return;
    const float4 terms = options.terms[option];
    const float2 jumps = options.jumps[option];
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < ABSCISSAE; k++) sum += jumping(terms, jumps, options.nodes[k]);
    options.out[option] = price(terms, sum);
}

Study optional("jump_options_twenty_lanes_of_a_warp", "finance", 1 << 19, "524288 options on a price that jumps, by an integral with twenty abscissae",
    "a warp an option: twenty lanes have an abscissa each, twelve have none",
    {{"turned", "a warp has one abscissa of 32 options", {"idle_threads"}}, {"alone", "a thread has all abscissae of an option", {"idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> terms(n);
        std::vector<float2> jumps(n), nodes(ABSCISSAE);
        const auto between = [](unsigned k, float low, float high) { return low + (high - low) * (static_cast<float>(hash(k) >> 8) * (1.0f / 16777216.0f)); };
        for (unsigned k = 0; k < terms.size(); k++) {
            terms[k] = make_float4(between(6 * k, -0.3f, 0.3f), between(6 * k + 1, 0.2f, 2.0f), between(6 * k + 2, 0.15f, 0.45f), between(6 * k + 3, 0.1f, 1.0f));
            jumps[k] = make_float2(between(6 * k + 4, -0.2f, 0.1f), between(6 * k + 5, 0.05f, 0.25f));
        }
        for (int k = 0; k < ABSCISSAE; k++) nodes[k] = make_float2(0.05f + 0.03f * static_cast<float>(k * (k + 1)), 0.1f + 0.06f * static_cast<float>(k));
        const Options options = {b.copy(terms), b.copy(jumps), b.copy(nodes), b.output<float>(n), static_cast<int>(n)};
        return {{"flawed", launch(options_priced, blocks(n, 8), 256, 0, options)}, {"turned", launch(options_priced_turned, n / 32, dim3(32, ABSCISSAE), 0, options)},
            {"alone", launch(options_priced_alone, blocks(n, 256), 256, 0, options)}};
    });

// --- stars that move on ---

struct Star {
    float x, y, z, u, v, w, mass;
};
constexpr int STAR_WORDS = 7;

__device__ __forceinline__ Star moved(Star star, float step) {
    const float pull = -step / (0.3f + star.x * star.x + star.y * star.y + 1.5f * star.z * star.z);
    star.u += pull * star.x, star.v += pull * star.y, star.w += 1.5f * pull * star.z;
    star.x += step * star.u, star.y += step * star.v, star.z += step * star.w;
    return star;
}
__global__ void __launch_bounds__(256) stars_moved(const Star *__restrict__ stars, Star *__restrict__ out, int count, float step) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) out[i] = moved(stars[i], step);
}
// A block's stars pass through shared memory. Their number is a multiple of 256.
__global__ void __launch_bounds__(256) stars_moved_block(const float4 *__restrict__ stars, float4 *__restrict__ out, float step) {
    __shared__ float4 words[256 * STAR_WORDS / 4];
    const size_t first = static_cast<size_t>(blockIdx.x) * (256 * STAR_WORDS / 4);
    for (int k = threadIdx.x; k < 256 * STAR_WORDS / 4; k += 256) words[k] = stars[first + k];
    __syncthreads();
    Star &own = reinterpret_cast<Star *>(words)[threadIdx.x];
    own = moved(own, step);
    __syncthreads();
    for (int k = threadIdx.x; k < 256 * STAR_WORDS / 4; k += 256) out[first + k] = words[k];
}
// Each of the seven numbers in an array of its own.
__global__ void __launch_bounds__(256) stars_moved_arrays(const float *__restrict__ stars, float *__restrict__ out, int count, float step) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float words[STAR_WORDS];
#pragma unroll
    for (int k = 0; k < STAR_WORDS; k++) words[k] = stars[static_cast<size_t>(k) * count + i];
    const Star star = moved({words[0], words[1], words[2], words[3], words[4], words[5], words[6]}, step);
    const float found[STAR_WORDS] = {star.x, star.y, star.z, star.u, star.v, star.w, star.mass};
#pragma unroll
    for (int k = 0; k < STAR_WORDS; k++) out[static_cast<size_t>(k) * count + i] = found[k];
}
__global__ void records_of(const float *arrays, float *out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        for (int k = 0; k < STAR_WORDS; k++) out[static_cast<size_t>(i) * STAR_WORDS + k] = arrays[static_cast<size_t>(k) * count + i];
}

Study starred("stars_as_records_of_seven_words", "astronomy", 1 << 22, "a step of 4194304 stars in the pull of a galaxy",
    "lanes read and write words that are 28 bytes apart",
    {{"block", "a block's records pass through shared memory as vectors of four", {"uncoalesced_access"}}, {"arrays", "an array for each of the seven words", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> records(n * STAR_WORDS), arrays(n * STAR_WORDS);
        for (long i = 0; i < n; i++)
            for (long k = 0; k < STAR_WORDS; k++) records[i * STAR_WORDS + k] = arrays[k * n + i] = static_cast<float>(hash(i * 8 + k) >> 8) * (1.0f / 8388608.0f) - 1.0f;
        const float *in = b.copy(records), *in_arrays = b.copy(arrays);
        float *out = b.output<float>(n * STAR_WORDS), *out_arrays = b.allocate<float>(n * STAR_WORDS);
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(stars_moved, grid, 256, 0, reinterpret_cast<const Star *>(in), reinterpret_cast<Star *>(out), n, 0.01f)},
            {"block", launch(stars_moved_block, grid, 256, 0, reinterpret_cast<const float4 *>(in), reinterpret_cast<float4 *>(out), 0.01f)},
            Side{"arrays", launch(stars_moved_arrays, grid, 256, 0, in_arrays, out_arrays, n, 0.01f), {}, 1, launch(records_of, grid, 256, 0, out_arrays, out, n)}};
    });

// --- candidates in order of their keys ---

constexpr int SORTED = 1024;

__device__ __forceinline__ void exchange(unsigned *keys, int span, int stride) {
    const int t = threadIdx.x, low = 2 * t - (t & (stride - 1));
    const unsigned a = keys[low], z = keys[low + stride];
    if ((a > z) == ((low & span) == 0)) keys[low] = z, keys[low + stride] = a;
}
__device__ __forceinline__ void fetch_keys(unsigned *keys, const uint2 *in) {
    reinterpret_cast<uint2 *>(keys)[threadIdx.x] = in[blockIdx.x * (SORTED / 2) + threadIdx.x];
    __syncthreads();
}
__device__ __forceinline__ void give_keys(const unsigned *keys, uint2 *out) {
    __syncthreads();
    out[blockIdx.x * (SORTED / 2) + threadIdx.x] = reinterpret_cast<const uint2 *>(keys)[threadIdx.x];
}
// A block sorts 1024 keys, two a thread.
__global__ void __launch_bounds__(SORTED / 2) candidates(const uint2 *__restrict__ in, uint2 *__restrict__ out) {
    __shared__ __align__(8) unsigned keys[SORTED];
    fetch_keys(keys, in);
#pragma unroll
    for (int span = 2; span <= SORTED; span *= 2)
#pragma unroll
        for (int stride = span / 2; stride; stride /= 2) {
            exchange(keys, span, stride);
            __syncthreads();
        }
    give_keys(keys, out);
}
// Up to a stride of 32 a warp has 64 keys of its own.
__global__ void __launch_bounds__(SORTED / 2) candidates_warps(const uint2 *__restrict__ in, uint2 *__restrict__ out) {
    __shared__ __align__(8) unsigned keys[SORTED];
    fetch_keys(keys, in);
#pragma unroll
    for (int span = 2; span <= SORTED; span *= 2) {
#pragma unroll
        for (int stride = span / 2; stride; stride /= 2) {
            exchange(keys, span, stride);
            if (stride > 32) __syncthreads();
            else __syncwarp();
        }
        if (span >= 64) __syncthreads();
    }
    give_keys(keys, out);
}
// These 64 keys in registers.
__global__ void __launch_bounds__(SORTED / 2) candidates_lanes(const uint2 *__restrict__ in, uint2 *__restrict__ out) {
    __shared__ __align__(8) unsigned keys[SORTED];
    fetch_keys(keys, in);
    const int first = threadIdx.x / 32 * 64 + threadIdx.x % 32;
    unsigned low = keys[first], high = keys[first + 32];
    const auto lanes = [&](int span, int stride) {
#pragma unroll
        for (; stride; stride /= 2) {
            const bool lower = (first & stride) == 0;
            const unsigned other = __shfl_xor_sync(~0u, low, stride), another = __shfl_xor_sync(~0u, high, stride);
            low = lower == ((first & span) == 0) ? min(low, other) : max(low, other);
            high = lower == ((first + 32 & span) == 0) ? min(high, another) : max(high, another);
        }
    };
#pragma unroll
    for (int span = 2; span <= 32; span *= 2) lanes(span, span / 2);
#pragma unroll
    for (int span = 64; span <= SORTED; span *= 2) {
        if (span > 64) {
            keys[first] = low, keys[first + 32] = high;
            __syncthreads();
            for (int stride = span / 2; stride > 32; stride /= 2) {
                exchange(keys, span, stride);
                __syncthreads();
            }
            low = keys[first], high = keys[first + 32];
        }
        if ((low > high) == ((first & span) == 0)) {
            const unsigned kept = low;
            low = high, high = kept;
        }
        lanes(span, 16);
    }
    keys[first] = low, keys[first + 32] = high;
    give_keys(keys, out);
}

Study candid("candidates_sorted_by_blocks_in_step", "recommenders", 4096, "1024 candidates of each of 4096 users, sorted by their keys",
    "all warps of a block wait for each other after each of 55 steps",
    {{"warps", "warps wait for others only where keys are more than 32 apart", {"barriers"}}, {"lanes", "a warp's 64 keys in registers, exchanged by shuffles", {"barriers", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const uint2 *in = reinterpret_cast<const uint2 *>(b.random<unsigned>(n * SORTED, 0.0, 4294967295.0));
        uint2 *out = reinterpret_cast<uint2 *>(b.output<unsigned>(n * SORTED));
        b.tolerance = 0.0;
        return {{"flawed", launch(candidates, n, SORTED / 2, 0, in, out)}, {"warps", launch(candidates_warps, n, SORTED / 2, 0, in, out)}, {"lanes", launch(candidates_lanes, n, SORTED / 2, 0, in, out)}};
    });

// --- a flow on a lattice: without a flaw ---

struct Lattice {
    const float *in;
    float *out;
    int width, height;
    float rate;
};
// Nine directions, each a plane; a thread a site.
__global__ void __launch_bounds__(256) lattice_flow(const Lattice lattice) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y, width = lattice.width, height = lattice.height;
    const int left = x ? x - 1 : width - 1, right = x + 1 < width ? x + 1 : 0, below = y ? y - 1 : height - 1, above = y + 1 < height ? y + 1 : 0;
    const int plane = width * height, at = y * width + x;
    const float f0 = lattice.in[at], f1 = lattice.in[plane + y * width + left], f2 = lattice.in[2 * plane + below * width + x], f3 = lattice.in[3 * plane + y * width + right];
    const float f4 = lattice.in[4 * plane + above * width + x], f5 = lattice.in[5 * plane + below * width + left], f6 = lattice.in[6 * plane + below * width + right];
    const float f7 = lattice.in[7 * plane + above * width + right], f8 = lattice.in[8 * plane + above * width + left];
    const float density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8, inverse = __fdividef(1.0f, density);
    const float u = (f1 + f5 + f8 - f3 - f6 - f7) * inverse, v = (f2 + f5 + f6 - f4 - f7 - f8) * inverse, rest = 1.0f - 1.5f * (u * u + v * v);
    const auto give = [&](int direction, float f, float weight, float along) {
        lattice.out[direction * plane + at] = f + lattice.rate * (weight * density * (rest + along * (3.0f + 4.5f * along)) - f);
    };
    give(0, f0, 4.0f / 9.0f, 0.0f);
    give(1, f1, 1.0f / 9.0f, u), give(2, f2, 1.0f / 9.0f, v), give(3, f3, 1.0f / 9.0f, -u), give(4, f4, 1.0f / 9.0f, -v);
    give(5, f5, 1.0f / 36.0f, u + v), give(6, f6, 1.0f / 36.0f, v - u), give(7, f7, 1.0f / 36.0f, -u - v), give(8, f8, 1.0f / 36.0f, u - v);
}

Study flowing("sound_lattice_flow_of_nine_directions", "fluid dynamics", 4096, "a step of a flow on a lattice of 4096 x 2048 sites with nine directions", "", {}, [](Buffers &b, long n) -> Sides {
    const int height = static_cast<int>(n / 2);
    const Lattice lattice = {b.random<float>(9 * n * height, 0.9, 1.1), b.output<float>(9 * n * height), static_cast<int>(n), height, 1.2f};
    return {{"sound", launch(lattice_flow, dim3(n / 256, height), 256, 0, lattice)}};
});

// --- what is kept to recover lost disks: without a flaw ---

constexpr int DISKS = 6;

// Four bytes, each times two in the field of 256 elements.
__device__ __forceinline__ unsigned doubled(unsigned word) { return (word << 1 & 0xfefefefeu) ^ ((word >> 7 & 0x01010101u) * 0x1du); }
__global__ void __launch_bounds__(256) recovery(const uint4 *__restrict__ disks, uint4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    uint4 words[DISKS], sum = make_uint4(0, 0, 0, 0), weighted = sum;
#pragma unroll
    for (int d = 0; d < DISKS; d++) words[d] = disks[static_cast<size_t>(d) * count + i];
#pragma unroll
    for (int d = DISKS - 1; d >= 0; d--) {
        const uint4 word = words[d];
        sum.x ^= word.x, sum.y ^= word.y, sum.z ^= word.z, sum.w ^= word.w;
        weighted = make_uint4(doubled(weighted.x) ^ word.x, doubled(weighted.y) ^ word.y, doubled(weighted.z) ^ word.z, doubled(weighted.w) ^ word.w);
    }
    out[i] = sum, out[count + i] = weighted;
}

Study recovered("sound_recovery_words_of_six_disks", "storage", 1 << 22, "two words that recover any two of six, for 4194304 vectors of six disks", "", {}, [](Buffers &b, long n) -> Sides {
    const uint4 *disks = reinterpret_cast<const uint4 *>(b.random<unsigned>(n * 4 * DISKS, 0.0, 4294967295.0));
    b.tolerance = 0.0;
    return {{"sound", launch(recovery, blocks(n, 256), 256, 0, disks, reinterpret_cast<uint4 *>(b.output<unsigned>(n * 8)), n)}};
});

}  // namespace
