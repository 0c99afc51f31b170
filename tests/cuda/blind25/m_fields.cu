// Films, charges, ratings, keys, pictures, waves, letters, codons and stars.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- the next level of a film's pyramid ---

constexpr int WIDE = 3840, HIGH = 2160, HALF_WIDE = WIDE / 2, HALF_HIGH = HIGH / 2;

// A pixel of the smaller frame a thread; weights 1, 4, 6, 4, 1 both ways.
__global__ void __launch_bounds__(256) shrunk(const unsigned char *__restrict__ frames, unsigned char *__restrict__ out) {
    constexpr int weights[5] = {1, 4, 6, 4, 1};
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const unsigned char *frame = frames + static_cast<size_t>(blockIdx.z) * WIDE * HIGH;
    int total = 128;
#pragma unroll
    for (int j = 0; j < 5; j++) {
        const unsigned char *row = frame + min(max(2 * y + j - 2, 0), HIGH - 1) * WIDE;
        int across = 0;
#pragma unroll
        for (int i = 0; i < 5; i++) across += weights[i] * row[min(max(2 * x + i - 2, 0), WIDE - 1)];
        total += weights[j] * across;
    }
    out[(static_cast<size_t>(blockIdx.z) * HALF_HIGH + y) * HALF_WIDE + x] = total >> 8;
}
__device__ __forceinline__ unsigned letter(unsigned word, int k) { return word >> 8 * k & 255; }
// Four pixels along a row from eight and those beside them (`left`: its upper two bytes); two of 16 bits a word.
__device__ __forceinline__ uint2 along(unsigned left, uint2 own, unsigned right) {
    const unsigned a = letter(left, 2), b = letter(left, 3), c = letter(own.x, 0), d = letter(own.x, 1), e = letter(own.x, 2), f = letter(own.x, 3);
    const unsigned g = letter(own.y, 0), h = letter(own.y, 1), i = letter(own.y, 2), j = letter(own.y, 3), k = right & 255;
    return {(a + e + 4 * (b + d) + 6 * c) | (c + g + 4 * (d + f) + 6 * e) << 16, (e + i + 4 * (f + h) + 6 * g) | (g + k + 4 * (h + j) + 6 * i) << 16};
}
__device__ __forceinline__ unsigned down(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e) { return a + e + 4 * (b + d) + 6 * c + 0x00800080u; }
__device__ __forceinline__ unsigned down(uint2 a, uint2 b, uint2 c, uint2 d, uint2 e) {
    return __byte_perm(down(a.x, b.x, c.x, d.x, e.x), down(a.y, b.y, c.y, d.y, e.y), 0x7531);
}
// 64 x 12 pixels a block: its part of the frame in shared memory, then the rows' sums.
__global__ void __launch_bounds__(192) shrunk_tile(const unsigned char *__restrict__ frames, unsigned *__restrict__ out) {
    constexpr int ROWS = 27, WORDS = 34;
    __shared__ unsigned tile[ROWS][WORDS];
    __shared__ uint2 sums[ROWS][16];
    const unsigned char *frame = frames + static_cast<size_t>(blockIdx.z) * WIDE * HIGH;
    const int first = blockIdx.x * 32 - 1, top = blockIdx.y * 24 - 2;
    for (int item = threadIdx.x; item < ROWS * WORDS; item += 192) {
        const int row = item / WORDS, word = first + item % WORDS;
        const unsigned *from = reinterpret_cast<const unsigned *>(frame + min(max(top + row, 0), HIGH - 1) * WIDE);
        const unsigned four = from[min(max(word, 0), WIDE / 4 - 1)];
        tile[row][item % WORDS] = word < 0 ? (four & 255) * 0x01010101u : word < WIDE / 4 ? four : four >> 24;
    }
    __syncthreads();
    for (int item = threadIdx.x; item < ROWS * 16; item += 192) {
        const unsigned *from = tile[item / 16] + item % 16 * 2;
        sums[item / 16][item % 16] = along(from[0], {from[1], from[2]}, from[3]);
    }
    __syncthreads();
    const int group = threadIdx.x % 16, row = threadIdx.x / 16;
    const size_t line = static_cast<size_t>(blockIdx.z) * HALF_HIGH + blockIdx.y * 12 + row;
    out[line * (HALF_WIDE / 4) + blockIdx.x * 16 + group] =
        down(sums[2 * row][group], sums[2 * row + 1][group], sums[2 * row + 2][group], sums[2 * row + 3][group], sums[2 * row + 4][group]);
}
__device__ __forceinline__ uint2 row_sums(const unsigned char *frame, int row, int group) {
    const unsigned char *own = frame + min(max(row, 0), HIGH - 1) * WIDE + group * 8;
    const uint2 eight = *reinterpret_cast<const uint2 *>(own);
    const unsigned left = group ? static_cast<unsigned>(*reinterpret_cast<const unsigned short *>(own - 2)) << 16 : (eight.x & 255) * 0x01010101u;
    const unsigned right = group < WIDE / 8 - 1 ? own[8] : eight.y >> 24;
    return along(left, eight, right);
}
// Four pixels of six rows a thread, from row to row.
__global__ void __launch_bounds__(128) shrunk_walk(const unsigned char *__restrict__ frames, unsigned *__restrict__ out) {
    const int group = blockIdx.x * 32 + threadIdx.x, y = (blockIdx.y * 4 + threadIdx.y) * 6;
    const unsigned char *frame = frames + static_cast<size_t>(blockIdx.z) * WIDE * HIGH;
    unsigned *to = out + (static_cast<size_t>(blockIdx.z) * HALF_HIGH + y) * (HALF_WIDE / 4) + group;
    uint2 a = row_sums(frame, 2 * y - 2, group), b = row_sums(frame, 2 * y - 1, group), c = row_sums(frame, 2 * y, group);
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const uint2 d = row_sums(frame, 2 * (y + k) + 1, group), e = row_sums(frame, 2 * (y + k) + 2, group);
        to[k * (HALF_WIDE / 4)] = down(a, b, c, d, e);
        a = c, b = d, c = e;
    }
}

Study pyramid("pyramid_level_pixels_from_25_each", "video", 16, "16 frames of 3840 x 2160 bytes halved both ways with five weights each way",
    "each thread loads the 25 pixels around its own again, byte by byte, and sums the rows that those below it sum too",
    {{"tile", "the block's pixels in shared memory, rows first, then columns", {"redundant_loads"}}, {"walk", "four pixels a thread, sums of rows kept while it walks down six rows", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *frames = b.random<unsigned char>(n * WIDE * HIGH, 0.0, 256.0);
        unsigned char *out = b.output<unsigned char>(n * HALF_WIDE * HALF_HIGH);
        unsigned *words = reinterpret_cast<unsigned *>(out);
        b.tolerance = 0.0;
        return {{"flawed", launch(shrunk, dim3(HALF_WIDE / 32, HALF_HIGH / 8, n), dim3(32, 8), 0, frames, out)}, {"tile", launch(shrunk_tile, dim3(HALF_WIDE / 64, HALF_HIGH / 12, n), 192, 0, frames, words)},
            {"walk", launch(shrunk_walk, dim3(WIDE / 8 / 32, HALF_HIGH / 24, n), dim3(32, 4), 0, frames, words)}};
    });

// --- charges of a plasma's particles on a grid ---

constexpr int CELLS = 1024;

struct Plasma {
    const float *x, *y;  // in cells; sorted by cell
    const int *starts;   // of each cell's particles
    float *charge;       // at the cells' corners
    int count;
};
__device__ __forceinline__ float *corner(const Plasma &plasma, int column, int row) { return plasma.charge + (row % CELLS) * CELLS + column % CELLS; }
__global__ void __launch_bounds__(256) deposited(Plasma plasma) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= plasma.count) return;
    const float x = plasma.x[i], y = plasma.y[i];
    const int column = static_cast<int>(x), row = static_cast<int>(y);
    const float right = x - column, up = y - row;
    atomicAdd(corner(plasma, column, row), (1.0f - right) * (1.0f - up));
    atomicAdd(corner(plasma, column + 1, row), right * (1.0f - up));
    atomicAdd(corner(plasma, column, row + 1), (1.0f - right) * up);
    atomicAdd(corner(plasma, column + 1, row + 1), right * up);
}
// The shares of particles of one cell are summed among a warp's lanes first.
__global__ void __launch_bounds__(256) deposited_runs(Plasma plasma) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const bool there = i < plasma.count;
    const float x = there ? plasma.x[i] : 0.0f, y = there ? plasma.y[i] : 0.0f;
    const int column = static_cast<int>(x), row = static_cast<int>(y), cell = there ? row * CELLS + column : -1;
    const float right = x - column, up = y - row;
    float shares[4] = {(1.0f - right) * (1.0f - up), right * (1.0f - up), (1.0f - right) * up, right * up};
    const int before = __shfl_up_sync(~0u, cell, 1);
    const bool first = lane == 0 || before != cell;
    const unsigned later = __ballot_sync(~0u, first) & 0xfffffffeu << lane;
    const int end = later ? __ffs(later) - 1 : 32;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2)
#pragma unroll
        for (float &share : shares) {
            const float other = __shfl_down_sync(~0u, share, offset);
            if (lane + offset < end) share += other;
        }
    if (first && there)
#pragma unroll
        for (int k = 0; k < 4; k++) atomicAdd(corner(plasma, column + k % 2, row + k / 2), shares[k]);
}
// A cell for four lanes; in the end a corner each.
__global__ void __launch_bounds__(256) deposited_cells(Plasma plasma) {
    const int cell = blockIdx.x * 64 + threadIdx.x / 4, part = threadIdx.x % 4, column = cell % CELLS, row = cell / CELLS;
    const int end = plasma.starts[cell + 1];
    float shares[4] = {};
    for (int i = plasma.starts[cell] + part; i < end; i += 4) {
        const float right = plasma.x[i] - column, up = plasma.y[i] - row;
        shares[0] += (1.0f - right) * (1.0f - up), shares[1] += right * (1.0f - up);
        shares[2] += (1.0f - right) * up, shares[3] += right * up;
    }
#pragma unroll
    for (float &share : shares) {
        share += __shfl_xor_sync(~0u, share, 1);
        share += __shfl_xor_sync(~0u, share, 2);
    }
    const float low = part % 2 ? shares[1] : shares[0], high = part % 2 ? shares[3] : shares[2];
    atomicAdd(corner(plasma, column + part % 2, row + part / 2), part / 2 ? high : low);
}

Study plasma("plasma_charges_four_atomics_a_particle", "plasma physics", CELLS * CELLS, "charges of 16.8 million particles, sorted by cell, shared among the corners of 1024 x 1024 cells",
    "each particle adds to four corners in global memory, as the sixteen or so others of its cell do",
    {{"runs", "particles of one cell summed among a warp's lanes first", {"global_atomics"}}, {"cells", "four lanes sum a cell's particles in registers", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> x, y;
        std::vector<int> starts(n + 1);
        for (int cell = 0; cell < n; cell++) {
            starts[cell] = static_cast<int>(x.size());
            for (unsigned k = 8 + hash(cell + 9) % 17; k > 0; k--) {
                const unsigned chance = hash(32 * cell + k);
                x.push_back(cell % CELLS + (chance % 4096 + 0.5f) / 4096), y.push_back(cell / CELLS + ((chance >> 16) % 4096 + 0.5f) / 4096);
            }
        }
        const int count = starts[n] = static_cast<int>(x.size());
        const Plasma plasma = {b.copy(x), b.copy(y), b.copy(starts), b.output<float>(n, true), count};
        return {{"flawed", launch(deposited, blocks(count, 256), 256, 0, plasma)}, {"runs", launch(deposited_runs, blocks(count, 256), 256, 0, plasma)}, {"cells", launch(deposited_cells, n / 64, 256, 0, plasma)}};
    });

// --- what a factor model says of given ratings ---

constexpr int FACTORS = 64;

struct Ratings {
    const int *users, *items;   // of each rating; sorted by user
    const int *starts;          // of each user's ratings
    const float *rating;
    const float *user, *item;   // their factors
    float *error;
};
// A rating a thread.
__global__ void __launch_bounds__(256) rated(Ratings r) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float *user = r.user + r.users[i] * FACTORS, *item = r.item + r.items[i] * FACTORS;
    float total = 0.0f;
#pragma unroll 8
    for (int k = 0; k < FACTORS; k++) total += user[k] * item[k];
    r.error[i] = r.rating[i] - total;
}
__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
__device__ __forceinline__ float eight_lanes(float total) {
#pragma unroll
    for (int offset = 1; offset < 8; offset *= 2) total += __shfl_xor_sync(~0u, total, offset);
    return total;
}
// A rating for eight lanes; two at a time.
__global__ void __launch_bounds__(256) rated_lanes(Ratings r) {
    const int i = blockIdx.x * 64 + threadIdx.x / 8, part = threadIdx.x % 8;
    const float4 *user = reinterpret_cast<const float4 *>(r.user) + part, *item = reinterpret_cast<const float4 *>(r.item) + part;
    float totals[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const float4 *own = user + r.users[i + 32 * k] * (FACTORS / 4), *other = item + r.items[i + 32 * k] * (FACTORS / 4);
        totals[k] = dot(own[0], other[0]) + dot(own[8], other[8]);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const float total = eight_lanes(totals[k]);
        if (part == 0) r.error[i + 32 * k] = r.rating[i + 32 * k] - total;
    }
}
// A user a warp, whose factors stay in registers; eight lanes a rating.
__global__ void __launch_bounds__(256) rated_users(Ratings r) {
    const int user = blockIdx.x * 8 + threadIdx.x / 32, part = threadIdx.x % 8;
    const int end = r.starts[user + 1];
    const float4 *own = reinterpret_cast<const float4 *>(r.user) + user * (FACTORS / 4) + part, *items = reinterpret_cast<const float4 *>(r.item) + part;
    const float4 low = own[0], high = own[8];
    for (int first = r.starts[user]; first < end; first += 4) {
        const int i = first + threadIdx.x % 32 / 8;
        float total = 0.0f;
        if (i < end) {
            const float4 *other = items + r.items[i] * (FACTORS / 4);
            total = dot(low, other[0]) + dot(high, other[8]);
        }
        total = eight_lanes(total);
        if (i < end && part == 0) r.error[i] = r.rating[i] - total;
    }
}

Study factors("ratings_by_factors_a_rating_a_lane", "sparse algebra", 131072, "errors of 2.1 million ratings of 32768 items by 131072 users from products of 64 factors",
    "each lane walks along the rows of its own user and item, 256 bytes from the next lane's",
    {{"lanes", "eight lanes a rating, four factors a load", {"uncoalesced_access"}}, {"users", "a user a warp, eight lanes a rating", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> users, items, starts(n + 1);
        for (int user = 0; user < n; user++) {
            starts[user] = static_cast<int>(users.size());
            for (unsigned k = user + 1 < n ? 4 + hash(user + 3) % 25 : 256 - users.size() % 256; k > 0; k--) users.push_back(user), items.push_back(hash(users.size()) % 32768);
        }
        const int count = starts[n] = static_cast<int>(users.size());
        const Ratings r = {b.copy(users), b.copy(items), b.copy(starts), b.random<float>(count, 1.0, 5.0), b.random<float>(n * FACTORS), b.random<float>(32768 * FACTORS), b.output<float>(count)};
        return {{"flawed", launch(rated, count / 256, 256, 0, r)}, {"lanes", launch(rated_lanes, count / 64, 256, 0, r)}, {"users", launch(rated_users, n / 8, 256, 0, r)}};
    });

// --- keys that a join may have partners for ---

constexpr int PROBES = 7;

struct Filter {
    const unsigned long long *keys;
    const unsigned *words;
    unsigned *found;  // a bit a key
    unsigned bits;
};
__device__ __forceinline__ unsigned long long mixed(unsigned long long key) {
    key ^= key >> 33, key *= 0xff51afd7ed558ccdull;
    key ^= key >> 33, key *= 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}
__device__ __forceinline__ unsigned probed(const Filter &filter, unsigned place) { return __ldg(filter.words + place / 32) >> place % 32; }
__device__ __forceinline__ void write_found(const Filter &filter, int i, unsigned set) {
    const unsigned bits = __ballot_sync(~0u, set & 1);
    if (threadIdx.x % 32 == 0) filter.found[i / 32] = bits;
}
__global__ void __launch_bounds__(256) sifted(Filter filter) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long code = mixed(filter.keys[i]), first = code & 0xffffffffull, step = code >> 32 | 1;
    unsigned set = 1;
#pragma unroll
    for (int k = 0; k < PROBES; k++) set &= probed(filter, static_cast<unsigned>((first + k * step) % filter.bits));
    write_found(filter, i, set);
}
// From probe to probe by a sum that stays below the number of bits.
__global__ void __launch_bounds__(256) sifted_steps(Filter filter) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long code = mixed(filter.keys[i]);
    unsigned place = static_cast<unsigned>(code) % filter.bits, set = 1;
    const unsigned step = (static_cast<unsigned>(code >> 32) | 1) % filter.bits;
#pragma unroll
    for (int k = 0; k < PROBES; k++) {
        set &= probed(filter, place);
        place += step;
        place = min(place, place - filter.bits);
    }
    write_found(filter, i, set);
}
// `inverse`: 2 to the 64th by the number of bits.
__global__ void __launch_bounds__(256) sifted_inverse(Filter filter, unsigned long long inverse) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long code = mixed(filter.keys[i]), first = code & 0xffffffffull, step = code >> 32 | 1;
    unsigned set = 1;
#pragma unroll
    for (int k = 0; k < PROBES; k++) {
        const unsigned long long value = first + k * step;
        const unsigned rest = static_cast<unsigned>(value) - static_cast<unsigned>(__umul64hi(value, inverse)) * filter.bits;
        set &= probed(filter, min(rest, rest - filter.bits));
    }
    write_found(filter, i, set);
}

Study joined("bloom_probes_by_long_remainders", "databases", 1 << 23, "8388608 keys looked up in a Bloom filter of 1048573 bits with seven probes",
    "a remainder of 64 bits for each of seven probes",
    {{"steps", "two remainders of 32 bits, then sums", {"integer_arithmetic"}}, {"inverse", "products with the inverse of the number of bits", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned bits = 1048573;
        std::vector<unsigned> words(32768);
        for (int i = 0; i < 32768; i++) words[i] = hash(i + 1) | (hash(i + 77777) & hash(i + 99999));
        std::vector<unsigned long long> keys(n);
        for (long i = 0; i < n; i++) keys[i] = static_cast<unsigned long long>(hash(i)) << 20 ^ hash(i + 12345);
        const Filter filter = {b.copy(keys), b.copy(words), b.output<unsigned>(n / 32), bits};
        b.tolerance = 0.0;
        return {{"flawed", launch(sifted, n / 256, 256, 0, filter)}, {"steps", launch(sifted_steps, n / 256, 256, 0, filter)}, {"inverse", launch(sifted_inverse, n / 256, 256, 0, filter, ~0ull / bits)}};
    });

// --- pictures from their cosines ---

constexpr int PICTURE = 4096;  // pixels in a row

__constant__ unsigned char zigzag[64] = {0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
__constant__ unsigned char places[64] = {0, 1, 5, 6, 14, 15, 27, 28, 2, 4, 7, 13, 16, 26, 29, 42, 3, 8, 12, 17, 25, 30, 41, 43, 9, 11, 18, 24, 31, 40, 44, 53,
    10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38, 46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};
__constant__ unsigned char steps[64] = {16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
    56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99};

// Eight values from their cosines, each `apart` from the next.
__device__ __forceinline__ void from_cosines(float *at, int apart) {
    const float a = at[0] * 0.35355339f, b = at[4 * apart] * 0.35355339f, c = at[2 * apart], d = at[6 * apart];
    const float sum = a + b, difference = a - b, wide = 0.46193977f * c + 0.19134172f * d, narrow = 0.19134172f * c - 0.46193977f * d;
    const float even[4] = {sum + wide, difference + narrow, difference - narrow, sum - wide};
    const float e = at[apart], f = at[3 * apart], g = at[5 * apart], h = at[7 * apart];
    const float odd[4] = {0.49039264f * e + 0.41573481f * f + 0.27778512f * g + 0.09754516f * h, 0.41573481f * e - 0.09754516f * f - 0.49039264f * g - 0.27778512f * h,
        0.27778512f * e - 0.49039264f * f + 0.09754516f * g + 0.41573481f * h, 0.09754516f * e - 0.27778512f * f + 0.41573481f * g - 0.49039264f * h};
#pragma unroll
    for (int k = 0; k < 4; k++) at[k * apart] = even[k] + odd[k], at[(7 - k) * apart] = even[k] - odd[k];
}
__device__ __forceinline__ unsigned pixel(float value) { return min(max(__float2int_rn(value + 128.0f), 0), 255); }
__device__ __forceinline__ void write_square(float (&square)[64], unsigned char *out, int i) {
#pragma unroll
    for (int k = 0; k < 8; k++) from_cosines(square + k, 8);
    unsigned char *to = out + static_cast<size_t>(i / (PICTURE / 8)) * 8 * PICTURE + i % (PICTURE / 8) * 8;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float *row = square + 8 * k;
        from_cosines(row, 1);
        *reinterpret_cast<uint2 *>(to + k * PICTURE) = make_uint2(pixel(row[0]) | pixel(row[1]) << 8 | pixel(row[2]) << 16 | pixel(row[3]) << 24,
            pixel(row[4]) | pixel(row[5]) << 8 | pixel(row[6]) << 16 | pixel(row[7]) << 24);
    }
}
// A square of 8 x 8 pixels a thread; all squares' first coefficients, then all second ones, and so on.
__global__ void __launch_bounds__(128) decoded(const short *__restrict__ coefficients, unsigned char *__restrict__ out, int squares) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    float square[64];
#pragma unroll 16
    for (int k = 0; k < 64; k++) square[zigzag[k]] = static_cast<float>(coefficients[k * squares + i] * steps[k]);
    write_square(square, out, i);
}
__global__ void __launch_bounds__(128) decoded_known(const short *__restrict__ coefficients, unsigned char *__restrict__ out, int squares) {
    constexpr int order[64] = {0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
        35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    const int i = blockIdx.x * 128 + threadIdx.x;
    float square[64];
#pragma unroll
    for (int k = 0; k < 64; k++) square[order[k]] = static_cast<float>(coefficients[k * squares + i] * steps[k]);
    write_square(square, out, i);
}
// Pixel by pixel; where its coefficient lies is looked up.
__global__ void __launch_bounds__(128) decoded_places(const short *__restrict__ coefficients, unsigned char *__restrict__ out, int squares) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    float square[64];
#pragma unroll
    for (int k = 0; k < 64; k++) square[k] = static_cast<float>(coefficients[places[k] * squares + i] * steps[places[k]]);
    write_square(square, out, i);
}

Study decoding("picture_squares_filled_by_zigzag_table", "compression", 1 << 20, "1048576 squares of 8 x 8 pixels from quantised cosines in zigzag order",
    "the table of the zigzag is indexed at run time, so that a thread's square lies in local memory",
    {{"known", "the zigzag known to the compiler, the square in registers", {"local_memory"}}, {"places", "the square in order, the coefficients' places looked up", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> coefficients(64 * n);
        for (long i = 0; i < 64 * n; i++) {
            const int k = static_cast<int>(i / n), range = k ? 24 / k + 1 : 50;
            coefficients[i] = static_cast<short>(static_cast<int>(hash(i) % (2 * range + 1)) - range);
        }
        const short *in = b.copy(coefficients);
        unsigned char *out = b.output<unsigned char>(64 * n);
        b.tolerance = 0.005;
        return {{"flawed", launch(decoded, n / 128, 128, 0, in, out, n)}, {"known", launch(decoded_known, n / 128, 128, 0, in, out, n)}, {"places", launch(decoded_places, n / 128, 128, 0, in, out, n)}};
    });

// --- waves in rock ---

constexpr int ROCK = 256, PITCH = ROCK + 32, LINES = ROCK + 4, PLANE = PITCH * LINES;  // two cells beside it on all sides, sixteen in a row

struct Rock {
    const float *now, *before, *speed;
    float *next;
};
__device__ __forceinline__ size_t cell_of(int x, int y, int z) { return static_cast<size_t>(z + 2) * PLANE + (y + 2) * PITCH + x + 16; }
__device__ __forceinline__ float moved(const Rock &rock, size_t at, float own, float near, float far) {
    return 2.0f * own - rock.before[at] + rock.speed[at] * (1.3333333f * near - 0.083333333f * far - 7.5f * own);
}
// 32 x 16 cells a block, from plane to plane through `planes` of them.
__global__ void __launch_bounds__(512) waves(Rock rock, int planes) {
    __shared__ float tile[20][36];
    const int tx = threadIdx.x, ty = threadIdx.y, z = blockIdx.z * planes;
    size_t at = cell_of(blockIdx.x * 32 + tx, blockIdx.y * 16 + ty, z);
    float back2 = rock.now[at - 2 * PLANE], back = rock.now[at - PLANE], own = rock.now[at], front = rock.now[at + PLANE];
    for (int k = 0; k < planes; k++, at += PLANE) {
        const float front2 = rock.now[at + 2 * PLANE];
        __syncthreads();
        tile[ty + 2][tx + 2] = own;
        if (ty < 2) tile[ty][tx + 2] = rock.now[at - 2 * PITCH], tile[ty + 18][tx + 2] = rock.now[at + 16 * PITCH];
        if (tx < 2) tile[ty + 2][tx] = rock.now[at - 2], tile[ty + 2][tx + 34] = rock.now[at + 32];
        __syncthreads();
        const float near = tile[ty + 2][tx + 1] + tile[ty + 2][tx + 3] + (tile[ty + 1][tx + 2] + tile[ty + 3][tx + 2]) + (back + front);
        const float far = tile[ty + 2][tx] + tile[ty + 2][tx + 4] + (tile[ty][tx + 2] + tile[ty + 4][tx + 2]) + (back2 + front2);
        rock.next[at] = moved(rock, at, own, near, far);
        back2 = back, back = own, own = front, front = front2;
    }
}
// A cell a thread.
__global__ void __launch_bounds__(256) waves_cells(Rock rock) {
    const size_t at = cell_of(blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y, blockIdx.z);
    const float *now = rock.now + at;
    const float near = now[-1] + now[1] + (now[-PITCH] + now[PITCH]) + (now[-PLANE] + now[PLANE]);
    const float far = now[-2] + now[2] + (now[-2 * PITCH] + now[2 * PITCH]) + (now[-2 * PLANE] + now[2 * PLANE]);
    rock.next[at] = moved(rock, at, now[0], near, far);
}

Study seismic("seismic_waves_all_planes_a_block", "physics", ROCK, "a step of waves through 256 x 256 x 256 cells of rock, four neighbours each way",
    "128 blocks of 512 threads walk through all 256 planes: fewer than there are multiprocessors",
    {{"slabs", "sixteen planes a block: sixteen times as many", {"small_grid"}}, {"cells", "a cell a thread, no walk", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const size_t count = static_cast<size_t>(PLANE) * (n + 4);
        const Rock rock = {b.random<float>(count), b.random<float>(count), b.random<float>(count, 0.05, 0.2), b.output<float>(count, true)};
        const auto side = [=](int planes) { return launch(waves, dim3(n / 32, n / 16, n / planes), dim3(32, 16), 0, rock, planes); };
        return {{"flawed", side(n)}, {"slabs", side(16)}, {"cells", launch(waves_cells, dim3(n / 32, n / 8, n), dim3(32, 8), 0, rock)}};
    });

// --- how far the outline of a letter is ---

constexpr int STROKES = 192, FIELD = 1024;

struct Stroke {
    float x, y, along, up, inverse;  // of its length's square
    float bend;                      // how far its middle is from the straight line, as a share of its length
};
struct Written {
    static __device__ __forceinline__ void bend(const Stroke &s, float t, float &dx, float &dy) {
        dx += 4.0 * s.bend * t * (1.0 - t) * s.up;
        dy -= 4.0 * s.bend * t * (1.0 - t) * s.along;
    }
};
struct ByFloats {
    static __device__ __forceinline__ void bend(const Stroke &s, float t, float &dx, float &dy) {
        dx += 4.0f * s.bend * t * (1.0f - t) * s.up;
        dy -= 4.0f * s.bend * t * (1.0f - t) * s.along;
    }
};
struct ByTerms {
    static __device__ __forceinline__ void bend(const Stroke &s, float t, float &dx, float &dy) {
        const float bent = 4.0f * s.bend * fmaf(-t, t, t);
        dx += bent * s.up, dy -= bent * s.along;
    }
};
// A texel a thread; negative inside.
template <typename Bends>
__global__ void __launch_bounds__(256) outlined(const Stroke *__restrict__ outline, float *__restrict__ out) {
    __shared__ Stroke strokes[STROKES];
    if (threadIdx.x < STROKES) strokes[threadIdx.x] = outline[blockIdx.z * STROKES + threadIdx.x];
    __syncthreads();
    const int column = blockIdx.x * 32 + threadIdx.x % 32, row = blockIdx.y * 8 + threadIdx.x / 32;
    const float x = column * (1.0f / FIELD), y = row * (1.0f / FIELD);
    float nearest = 1e9f;
    bool inside = false;
#pragma unroll 4
    for (int k = 0; k < STROKES; k++) {
        const Stroke s = strokes[k];
        const float right = x - s.x, above = y - s.y;
        const float t = __saturatef((right * s.along + above * s.up) * s.inverse);
        float dx = right - t * s.along, dy = above - t * s.up;
        Bends::bend(s, t, dx, dy);
        nearest = fminf(nearest, dx * dx + dy * dy);
        if ((above < 0.0f) != (above < s.up) && (right * s.up < above * s.along) == (s.up > 0.0f)) inside = !inside;
    }
    const float distance = sqrtf(nearest);
    out[(static_cast<size_t>(blockIdx.z) * FIELD + row) * FIELD + column] = inside ? -distance : distance;
}

Study letters("letter_outlines_bent_in_double", "geometry", 2, "distances of 1024 x 1024 texels from the 192 strokes of each of two letters",
    "the factors 4.0 and 1.0 are of double precision, so that how far a stroke is bent is computed in double and turned back",
    {{"floats", "factors of single precision", {"double_precision"}}, {"terms", "four times the bend, one product and sum in single precision", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Stroke> outline;
        for (int letter = 0; letter < n; letter++) {
            const auto corner = [=](int k) {
                const double angle = 6.283185307179586 * (k % STROKES) / STROKES, radius = 0.3 + 0.1 * std::sin((3 + letter) * angle) + 0.02 * (hash(k % STROKES + 5) % 1000) / 1000.0;
                return std::pair(0.5 + radius * std::cos(angle), 0.5 + radius * std::sin(angle));
            };
            for (int k = 0; k < STROKES; k++) {
                const auto [x, y] = corner(k);
                const auto [to_x, to_y] = corner(k + 1);
                const double along = to_x - x, up = to_y - y;
                outline.push_back({static_cast<float>(x), static_cast<float>(y), static_cast<float>(along), static_cast<float>(up), static_cast<float>(1.0 / (along * along + up * up)), 0.05f * (k % 3 - 1)});
            }
        }
        const Stroke *strokes = b.copy(outline);
        float *out = b.output<float>(n * FIELD * FIELD);
        const dim3 grid(FIELD / 32, FIELD / 8, n);
        return {{"flawed", launch(outlined<Written>, grid, 256, 0, strokes, out)}, {"floats", launch(outlined<ByFloats>, grid, 256, 0, strokes, out)}, {"terms", launch(outlined<ByTerms>, grid, 256, 0, strokes, out)}};
    });

// --- likelihoods of codons at a fork of a tree ---

constexpr int CODONS = 64, SITES = 32;  // 61 of them mean something; sites a block

struct Fork {
    const float *left, *right;              // what a codon turns into, a row for each later codon
    const float *left_below, *right_below;  // likelihoods, a row a site
    float *likelihood;
};
__device__ __forceinline__ void load_all(float4 *to, const float *from, int count) {
    for (int i = threadIdx.x; i < count; i += 256) to[i] = reinterpret_cast<const float4 *>(from)[i];
}
struct Tables {
    float left[CODONS][CODONS], right[CODONS][CODONS];
    float left_below[SITES][CODONS], right_below[SITES][CODONS];
};
__device__ __forceinline__ void load_tables(Tables &tables, const Fork &fork) {
    const size_t first = static_cast<size_t>(blockIdx.x) * SITES * CODONS;
    load_all(reinterpret_cast<float4 *>(tables.left), fork.left, CODONS * CODONS / 4);
    load_all(reinterpret_cast<float4 *>(tables.right), fork.right, CODONS * CODONS / 4);
    load_all(reinterpret_cast<float4 *>(tables.left_below), fork.left_below + first, SITES * CODONS / 4);
    load_all(reinterpret_cast<float4 *>(tables.right_below), fork.right_below + first, SITES * CODONS / 4);
    __syncthreads();
}
// A codon a thread, of one site after another.
__global__ void __launch_bounds__(256) forked(Fork fork) {
    __shared__ __align__(16) Tables tables;
    load_tables(tables, fork);
    const int codon = threadIdx.x % CODONS;
    for (int site = threadIdx.x / CODONS; site < SITES; site += 4) {
        float left = 0.0f, right = 0.0f;
#pragma unroll 8
        for (int k = 0; k < CODONS; k++) {
            left += tables.left[k][codon] * tables.left_below[site][k];
            right += tables.right[k][codon] * tables.right_below[site][k];
        }
        fork.likelihood[(static_cast<size_t>(blockIdx.x) * SITES + site) * CODONS + codon] = left * right;
    }
}
// A codon of eight sites a thread.
__global__ void __launch_bounds__(256) forked_sites(Fork fork) {
    __shared__ __align__(16) Tables tables;
    load_tables(tables, fork);
    const int codon = threadIdx.x % CODONS, first = threadIdx.x / CODONS * 8;
    float left[8] = {}, right[8] = {};
#pragma unroll 2
    for (int k = 0; k < CODONS; k += 4) {
        const float l[4] = {tables.left[k][codon], tables.left[k + 1][codon], tables.left[k + 2][codon], tables.left[k + 3][codon]};
        const float r[4] = {tables.right[k][codon], tables.right[k + 1][codon], tables.right[k + 2][codon], tables.right[k + 3][codon]};
#pragma unroll
        for (int site = 0; site < 8; site++) {
            const float4 a = *reinterpret_cast<const float4 *>(&tables.left_below[first + site][k]), b = *reinterpret_cast<const float4 *>(&tables.right_below[first + site][k]);
            left[site] += l[0] * a.x, left[site] += l[1] * a.y, left[site] += l[2] * a.z, left[site] += l[3] * a.w;
            right[site] += r[0] * b.x, right[site] += r[1] * b.y, right[site] += r[2] * b.z, right[site] += r[3] * b.w;
        }
    }
#pragma unroll
    for (int site = 0; site < 8; site++) fork.likelihood[(static_cast<size_t>(blockIdx.x) * SITES + first + site) * CODONS + codon] = left[site] * right[site];
}
// Four codons of two sites a thread.
__global__ void __launch_bounds__(256) forked_codons(Fork fork) {
    __shared__ __align__(16) Tables tables;
    load_tables(tables, fork);
    const int codon = threadIdx.x % 16 * 4, first = threadIdx.x / 16 * 2;
    float left[2][4] = {}, right[2][4] = {};
    const auto add = [](float (&totals)[4], float below, const float4 &row) { totals[0] += row.x * below, totals[1] += row.y * below, totals[2] += row.z * below, totals[3] += row.w * below; };
#pragma unroll 2
    for (int k = 0; k < CODONS; k += 4) {
        float l[2][4], r[2][4];
#pragma unroll
        for (int site = 0; site < 2; site++) {
            *reinterpret_cast<float4 *>(l[site]) = *reinterpret_cast<const float4 *>(&tables.left_below[first + site][k]);
            *reinterpret_cast<float4 *>(r[site]) = *reinterpret_cast<const float4 *>(&tables.right_below[first + site][k]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float4 a = *reinterpret_cast<const float4 *>(&tables.left[k + j][codon]), b = *reinterpret_cast<const float4 *>(&tables.right[k + j][codon]);
#pragma unroll
            for (int site = 0; site < 2; site++) add(left[site], l[site][j], a), add(right[site], r[site][j], b);
        }
    }
#pragma unroll
    for (int site = 0; site < 2; site++)
        *reinterpret_cast<float4 *>(fork.likelihood + (static_cast<size_t>(blockIdx.x) * SITES + first + site) * CODONS + codon) =
            make_float4(left[site][0] * right[site][0], left[site][1] * right[site][1], left[site][2] * right[site][2], left[site][3] * right[site][3]);
}

Study tree("codon_likelihoods_a_codon_a_thread", "biology", 131072, "likelihoods of 64 codons at 131072 sites at a fork of a tree, from those below it",
    "two values from shared memory for each product",
    {{"sites", "eight sites a thread: a row's value used eight times", {"shared_memory_bandwidth"}}, {"codons", "four codons of two sites a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const Fork fork = {b.random<float>(CODONS * CODONS, 0.0, 1.0), b.random<float>(CODONS * CODONS, 0.0, 1.0), b.random<float>(n * CODONS, 0.0, 1.0), b.random<float>(n * CODONS, 0.0, 1.0), b.output<float>(n * CODONS)};
        return {{"flawed", launch(forked, n / SITES, 256, 0, fork)}, {"sites", launch(forked_sites, n / SITES, 256, 0, fork)}, {"codons", launch(forked_codons, n / SITES, 256, 0, fork)}};
    });

// --- stars, a step on ---

struct Stars {
    const float4 *place, *speed, *pull;  // place.w: mass
    float4 *next_place, *next_speed;
};
__global__ void __launch_bounds__(256) drifted(Stars stars, float step) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 place = stars.place[i], speed = stars.speed[i], pull = stars.pull[i];
    const float4 faster = make_float4(speed.x + step * pull.x, speed.y + step * pull.y, speed.z + step * pull.z, speed.w);
    stars.next_speed[i] = faster;
    stars.next_place[i] = make_float4(place.x + step * faster.x, place.y + step * faster.y, place.z + step * faster.z, place.w);
}

Study cluster("sound_stars_kicked_and_drifted", "astronomy", 1 << 22, "4194304 stars moved on by a step from their speeds and pulls", "", {},
    [](Buffers &b, long n) -> Sides {
        const auto four = [&b, n](double low) { return reinterpret_cast<const float4 *>(b.random<float>(4 * n, low, 1.0)); };
        const float4 *place = four(-1.0), *speed = four(-0.5), *pull = four(-1.0);
        float *next_place = b.output<float>(4 * n), *next_speed = b.output<float>(4 * n);
        const Stars stars = {place, speed, pull, reinterpret_cast<float4 *>(next_place), reinterpret_cast<float4 *>(next_speed)};
        return {{"sound", launch(drifted, n / 256, 256, 0, stars, 0.01f)}};
    });

}  // namespace
