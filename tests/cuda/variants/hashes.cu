// Cryptography, checksums, random numbers and big integers.
#include "../pairs/pair.cuh"

namespace {

// --- SHA-256 of messages of one block ---

__constant__ unsigned K256[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
    0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138,
    0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70,
    0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
    0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ __forceinline__ unsigned rotr(unsigned x, int n) { return (x >> n) | (x << (32 - n)); }

struct Sha {
    unsigned a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a, e = 0x510e527f, f = 0x9b05688c,
             g = 0x1f83d9ab, h = 0x5be0cd19;
    __device__ __forceinline__ void round(unsigned k, unsigned w) {
        unsigned t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k + w;
        unsigned t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
};
__device__ __forceinline__ unsigned expand(unsigned w16, unsigned w15, unsigned w7, unsigned w2) {
    return w16 + (rotr(w15, 7) ^ rotr(w15, 18) ^ (w15 >> 3)) + w7 + (rotr(w2, 17) ^ rotr(w2, 19) ^ (w2 >> 10));
}

__global__ void sha256(const unsigned *messages, unsigned *digests, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned w[64];
    for (int t = 0; t < 16; t++) w[t] = messages[t * n + i];
    for (int t = 16; t < rounds; t++) w[t] = expand(w[t - 16], w[t - 15], w[t - 7], w[t - 2]);
    Sha s;
    for (int t = 0; t < rounds; t++) s.round(K256[t], w[t]);
    digests[i] = s.a ^ s.e;
}
__global__ void sha256_unrolled(const unsigned *messages, unsigned *digests, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned w[16];
#pragma unroll
    for (int t = 0; t < 16; t++) w[t] = messages[t * n + i];
    Sha s;
#pragma unroll
    for (int t = 0; t < 64; t++) {
        if (t >= 16) w[t % 16] = expand(w[t % 16], w[(t + 1) % 16], w[(t + 9) % 16], w[(t + 14) % 16]);
        s.round(K256[t], w[t % 16]);
    }
    digests[i] = s.a ^ s.e;
}
__global__ void __launch_bounds__(128) sha256_shared(const unsigned *messages, unsigned *digests, int n, int rounds) {
    __shared__ unsigned w[16][128];
    int i = blockIdx.x * blockDim.x + threadIdx.x, me = threadIdx.x;
    if (i >= n) return;
    for (int t = 0; t < 16; t++) w[t][me] = messages[t * n + i];
    Sha s;
    for (int t = 0; t < rounds; t++) {
        unsigned now = w[t & 15][me];
        if (t >= 16) w[t & 15][me] = now = expand(now, w[(t + 1) & 15][me], w[(t + 9) & 15][me], w[(t + 14) & 15][me]);
        s.round(K256[t], now);
    }
    digests[i] = s.a ^ s.e;
}

Study sha("sha256_schedule_array", "crypto", 1 << 21, "SHA-256 compression of a message block a thread",
    "the 64 words of the message schedule are an array indexed at run time: local memory",
    {{"unrolled", "rounds unrolled over a window of 16 words in registers", {"local_memory"}},
        {"shared", "a window of 16 words a thread in shared memory", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *messages = b.random<unsigned>(n * 16, 0, 4294967295.0), *digests = b.output<unsigned>(n);
        b.tolerance = 0;
        return {{"flawed", launch(sha256, blocks(n, 128), 128, 0, messages, digests, n, 64)},
            {"unrolled", launch(sha256_unrolled, blocks(n, 128), 128, 0, messages, digests, n)},
            {"shared", launch(sha256_shared, blocks(n, 128), 128, 0, messages, digests, n, 64)}};
    });

// --- CRC-32 of records ---

__constant__ unsigned crc_constant[256];

__global__ void crc32_records(const uint4 *data, unsigned *crcs, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < 4; k++) {
        uint4 v = data[k * n + i];
        unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int b = 0; b < 16; b++)
            crc = crc >> 8 ^ crc_constant[(crc ^ words[b / 4] >> (b % 4 * 8)) & 255];
    }
    crcs[i] = ~crc;
}
__global__ void crc32_shared(const uint4 *data, unsigned *crcs, const unsigned *table, int n) {
    __shared__ unsigned local[256];
    for (int t = threadIdx.x; t < 256; t += blockDim.x) local[t] = table[t];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < 4; k++) {
        uint4 v = data[k * n + i];
        unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int b = 0; b < 16; b++) crc = crc >> 8 ^ local[(crc ^ words[b / 4] >> (b % 4 * 8)) & 255];
    }
    crcs[i] = ~crc;
}
// Four bytes at a time with four tables.
__global__ void crc32_slices(const uint4 *data, unsigned *crcs, const unsigned *tables, int n) {
    __shared__ unsigned local[4][256];
    for (int t = threadIdx.x; t < 1024; t += blockDim.x) local[t / 256][t % 256] = tables[t];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < 4; k++) {
        uint4 v = data[k * n + i];
        unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
            crc ^= words[w];
            crc = local[3][crc & 255] ^ local[2][crc >> 8 & 255] ^ local[1][crc >> 16 & 255] ^ local[0][crc >> 24];
        }
    }
    crcs[i] = ~crc;
}

Study crc("crc32_constant_table", "crypto", 1 << 20, "CRC-32 of a million records of 64 bytes, records interleaved",
    "the table lies in constant memory and every lane looks up another entry, byte after byte",
    {{"shared", "table in shared memory", {"constant_divergence"}},
        {"slices", "four tables in shared memory, four bytes a step", {"constant_divergence", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> tables(1024);
        for (unsigned t = 0; t < 256; ++t) {
            unsigned c = t;
            for (int k = 0; k < 8; ++k) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
            tables[t] = c;
        }
        for (int s = 1; s < 4; ++s)
            for (int t = 0; t < 256; ++t)
                tables[256 * s + t] = tables[256 * (s - 1) + t] >> 8 ^ tables[tables[256 * (s - 1) + t] & 255];
        unsigned *t = b.copy(tables), *data = b.random<unsigned>(n * 16, 0, 4294967295.0), *crcs = b.output<unsigned>(n);
        CHECK(cudaMemcpyToSymbol(crc_constant, tables.data(), 1024));
        b.tolerance = 0;
        return {{"flawed", launch(crc32_records, blocks(n, 256), 256, 0, (uint4 *)data, crcs, n)},
            {"shared", launch(crc32_shared, blocks(n, 256), 256, 0, (uint4 *)data, crcs, t, n)},
            {"slices", launch(crc32_slices, blocks(n, 256), 256, 0, (uint4 *)data, crcs, t, n)}};
    });

// --- ChaCha20 key stream ---

#define QUARTER(a, b, c, d)                                                                                            \
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 16), c += d, b = __funnelshift_l(b ^ c, b ^ c, 12), a += b,               \
        d = __funnelshift_l(d ^ a, d ^ a, 8), c += d, b = __funnelshift_l(b ^ c, b ^ c, 7)

__device__ __forceinline__ void chacha_block(unsigned counter, unsigned *out) {
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, 1, 2, 3, 4, 5, 6, 7, 8, counter, 9, 10, 11};
#pragma unroll
    for (int i = 0; i < 16; i++) out[i] = s[i];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        QUARTER(out[0], out[4], out[8], out[12]), QUARTER(out[1], out[5], out[9], out[13]);
        QUARTER(out[2], out[6], out[10], out[14]), QUARTER(out[3], out[7], out[11], out[15]);
        QUARTER(out[0], out[5], out[10], out[15]), QUARTER(out[1], out[6], out[11], out[12]);
        QUARTER(out[2], out[7], out[8], out[13]), QUARTER(out[3], out[4], out[9], out[14]);
    }
#pragma unroll
    for (int i = 0; i < 16; i++) out[i] += s[i];
}

__global__ void chacha_bytes(const unsigned char *in, unsigned char *out, int blocks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks) return;
    unsigned key[16];
    chacha_block(i, key);
#pragma unroll
    for (int k = 0; k < 64; k++) out[i * 64 + k] = in[i * 64 + k] ^ (key[k / 4] >> (k % 4 * 8));
}
__global__ void chacha_vectors(const uint4 *in, uint4 *out, int blocks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks) return;
    unsigned key[16];
    chacha_block(i, key);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint4 v = in[i * 4 + k];
        out[i * 4 + k] = {v.x ^ key[4 * k], v.y ^ key[4 * k + 1], v.z ^ key[4 * k + 2], v.w ^ key[4 * k + 3]};
    }
}
// Key stream through shared memory, so that a warp reads and writes whole lines.
__global__ void __launch_bounds__(128) chacha_staged(const unsigned *in, unsigned *out) {
    __shared__ unsigned stream[128][17];
    unsigned key[16];
    chacha_block(blockIdx.x * 128 + threadIdx.x, key);
#pragma unroll
    for (int k = 0; k < 16; k++) stream[threadIdx.x][k] = key[k];
    __syncthreads();
    size_t base = size_t(blockIdx.x) * 2048;
#pragma unroll
    for (int k = 0; k < 16; k++) {
        int at = threadIdx.x + 128 * k;
        out[base + at] = in[base + at] ^ stream[at / 16][at % 16];
    }
}

Study chacha("chacha20_bytewise", "crypto", 1 << 21, "ChaCha20 of 128 MiB, 64 bytes a thread",
    "text is read and written byte by byte, lanes 64 bytes apart",
    {{"vectors", "16-byte accesses, four a thread", {"narrow_access", "uncoalesced_access"}},
        {"staged", "key stream through shared memory, 4-byte accesses in the order of memory", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *in = b.random<unsigned char>(n * 64, 0, 256), *out = b.output<unsigned char>(n * 64);
        b.tolerance = 0;
        return {{"flawed", launch(chacha_bytes, blocks(n, 128), 128, 0, in, out, n)},
            {"vectors", launch(chacha_vectors, blocks(n, 128), 128, 0, (uint4 *)in, (uint4 *)out, n)},
            {"staged", launch(chacha_staged, n / 128, 128, 0, (unsigned *)in, (unsigned *)out)}};
    });

// --- a stage of a number-theoretic transform ---

__global__ void ntt_stage(unsigned *data, const unsigned *roots, int half, int n, unsigned long long p) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int k = t % half, i = t / half * 2 * half + k;
    unsigned long long a = data[i], b = (unsigned long long)data[i + half] * roots[k] % p;
    data[i] = (a + b) % p;
    data[i + half] = (a + p - b) % p;
}
__device__ unsigned reduce_once(unsigned v, unsigned p) { return v >= p ? v - p : v; }

// Barrett: the quotient by a product with 2^64 / p.
__global__ void ntt_stage_barrett(
    unsigned *data, const unsigned *roots, int log_half, int n, unsigned p, unsigned long long inverse) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int half = 1 << log_half, k = t & (half - 1), i = (t >> log_half << (log_half + 1)) + k;
    unsigned a = data[i];
    unsigned long long product = (unsigned long long)data[i + half] * roots[k];
    unsigned b = unsigned(product - __umul64hi(product, inverse) * p);
    b = reduce_once(b, p);
    data[i] = reduce_once(a + b, p);
    data[i + half] = reduce_once(a + p - b, p);
}
// Shoup: the quotient from a number made beforehand for each root, 32-bit products only.
__global__ void ntt_stage_shoup(unsigned *data, const uint2 *roots, int log_half, int n, unsigned p) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int half = 1 << log_half, k = t & (half - 1), i = (t >> log_half << (log_half + 1)) + k;
    uint2 w = roots[k];
    unsigned a = data[i], v = data[i + half];
    unsigned b = v * w.x - __umulhi(v, w.y) * p;
    b = reduce_once(b, p);
    data[i] = reduce_once(a + b, p);
    data[i + half] = reduce_once(a + p - b, p);
}

Study ntt("ntt_stage_remainder", "crypto", 1 << 25, "one stage of a number-theoretic transform modulo 998244353, in place",
    "remainders of 64 bits by a modulus that comes as an argument, and a division for the position",
    {{"barrett", "Barrett reduction and shifts for the position", {"integer_arithmetic"}},
        {"shoup", "products with quotients made beforehand for the roots, 32 bits only", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned p = 998244353;
        int half = 4096;
        unsigned *data = b.changed(b.random<unsigned>(n, 0, p), n);
        std::vector<unsigned> roots(half), both(2 * half);
        unsigned long long w = 1;
        for (int k = 0; k < half; ++k, w = w * 31 % p)
            roots[k] = both[2 * k] = unsigned(w), both[2 * k + 1] = unsigned((w << 32) / p);
        unsigned *r = b.copy(roots), *rs = b.copy(both);
        b.tolerance = 0;
        return {{"flawed", launch(ntt_stage, blocks(n / 2, 256), 256, 0, data, r, half, n, p)},
            {"barrett", launch(ntt_stage_barrett, blocks(n / 2, 256), 256, 0, data, r, 12, n, p, ~0ull / p)},
            {"shoup", launch(ntt_stage_shoup, blocks(n / 2, 256), 256, 0, data, (uint2 *)rs, 12, n, p)}};
    });

// --- products of 512-bit integers ---

constexpr int LIMBS = 16;

__global__ void big_multiply(const unsigned *a, const unsigned *b, unsigned *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned result[2 * LIMBS];
    for (int k = 0; k < 2 * LIMBS; k++) result[k] = 0;
#pragma unroll 1
    for (int x = 0; x < LIMBS; x++) {
        unsigned long long carry = 0;
#pragma unroll 1
        for (int y = 0; y < LIMBS; y++) {
            carry += (unsigned long long)a[x * n + i] * b[y * n + i] + result[x + y];
            result[x + y] = (unsigned)carry;
            carry >>= 32;
        }
        result[x + LIMBS] = carry;
    }
    for (int k = 0; k < 2 * LIMBS; k++) c[k * n + i] = result[k];
}
__global__ void big_multiply_unrolled(const unsigned *a, const unsigned *b, unsigned *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned result[2 * LIMBS], right[LIMBS];
#pragma unroll
    for (int y = 0; y < LIMBS; y++) right[y] = b[y * n + i], result[y] = 0;
#pragma unroll
    for (int x = 0; x < LIMBS; x++) {
        unsigned long long carry = 0, left = a[x * n + i];
#pragma unroll
        for (int y = 0; y < LIMBS; y++) {
            carry += left * right[y] + result[x + y];
            result[x + y] = (unsigned)carry;
            carry >>= 32;
        }
        result[x + LIMBS] = carry;
    }
#pragma unroll
    for (int k = 0; k < 2 * LIMBS; k++) c[k * n + i] = result[k];
}
// Column by column: three words of carry instead of an array of results.
__global__ void big_multiply_columns(const unsigned *a, const unsigned *b, unsigned *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned left[LIMBS], right[LIMBS];
#pragma unroll
    for (int y = 0; y < LIMBS; y++) left[y] = a[y * n + i], right[y] = b[y * n + i];
    unsigned long long low = 0, high = 0;
#pragma unroll
    for (int column = 0; column < 2 * LIMBS - 1; column++) {
#pragma unroll
        for (int x = 0; x < LIMBS; x++) {
            int y = column - x;
            if (y < 0 || y >= LIMBS) continue;
            unsigned long long product = (unsigned long long)left[x] * right[y];
            low += product & 0xffffffffu, high += product >> 32;
        }
        c[column * n + i] = (unsigned)low;
        low = (low >> 32) + (high & 0xffffffffu), high >>= 32;
    }
    c[(2 * LIMBS - 1) * n + i] = (unsigned)low;
}

Study big("big_multiply_local_array", "crypto", 1 << 19, "products of 512-bit integers, a thread each, limbs interleaved",
    "the result is an array indexed at run time, so it lies in local memory; limbs of b are loaded 16 times",
    {{"unrolled", "loops unrolled: result and one factor in registers", {"local_memory", "redundant_loads"}},
        {"columns", "column by column with a running sum: no array of results, both factors in registers", {"local_memory", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *x = b.random<unsigned>(n * LIMBS, 0, 4294967295.0), *y = b.random<unsigned>(n * LIMBS, 0, 4294967295.0),
                 *z = b.output<unsigned>(n * 2 * LIMBS);
        b.tolerance = 0;
        return {{"flawed", launch(big_multiply, blocks(n, 128), 128, 0, x, y, z, n)},
            {"unrolled", launch(big_multiply_unrolled, blocks(n, 128), 128, 0, x, y, z, n)},
            {"columns", launch(big_multiply_columns, blocks(n, 128), 128, 0, x, y, z, n)}};
    });

// --- a generator of normal numbers, consecutive numbers a thread ---

__device__ unsigned xorshift(unsigned &s) {
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    return s;
}
constexpr int DRAWS = 32;

__global__ void uniform_numbers(float *out, int threads) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    unsigned state = pairs::hash(t) | 1;
    for (int k = 0; k < DRAWS; k++) out[t * DRAWS + k] = (xorshift(state) >> 8) * (1.0f / 16777216);
}
__global__ void uniform_numbers_four(float4 *out, int threads) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    unsigned state = pairs::hash(t) | 1;
    for (int k = 0; k < DRAWS / 4; k++) {
        float v[4];
        for (int j = 0; j < 4; ++j) v[j] = (xorshift(state) >> 8) * (1.0f / 16777216);
        out[t * (DRAWS / 4) + k] = {v[0], v[1], v[2], v[3]};
    }
}
__global__ void __launch_bounds__(128) uniform_numbers_staged(float *out) {
    __shared__ float tile[128][DRAWS + 1];
    unsigned state = pairs::hash(blockIdx.x * 128 + threadIdx.x) | 1;
    for (int k = 0; k < DRAWS; k++) tile[threadIdx.x][k] = (xorshift(state) >> 8) * (1.0f / 16777216);
    __syncthreads();
    for (int i = threadIdx.x; i < 128 * DRAWS; i += 128)
        out[size_t(blockIdx.x) * 128 * DRAWS + i] = tile[i / DRAWS][i % DRAWS];
}

Study uniforms("rng_strided_stores", "crypto", 1 << 21, "32 uniform numbers of an own xorshift sequence a thread",
    "each thread writes its numbers one after the other: lanes are 128 bytes apart",
    {{"four", "four numbers a store of 16 bytes", {"uncoalesced_access", "narrow_access"}},
        {"staged", "numbers through padded shared memory, stores in the order of memory", {"uncoalesced_access"}}},
    [](Buffers &b, long threads) -> Sides {
        float *out = b.output<float>(threads * DRAWS);
        return {{"flawed", launch(uniform_numbers, blocks(threads, 128), 128, 0, out, threads)},
            {"four", launch(uniform_numbers_four, blocks(threads, 128), 128, 0, (float4 *)out, threads)},
            {"staged", launch(uniform_numbers_staged, threads / 128, 128, 0, out)}};
    });

}  // namespace
