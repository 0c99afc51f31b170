// Four shards of parity for ten shards of data, as stores of objects keep them: products in GF(256) with a Cauchy matrix.
#include "../tried/tried.cuh"

typedef unsigned char Byte;
constexpr int DATA = 10, PARITY = 4, SHARD = 8 << 20;
constexpr unsigned POLYNOMIAL = 0x11d;

__host__ __device__ constexpr unsigned product(unsigned a, unsigned b) {
    unsigned sum = 0;
    for (; b; b >>= 1, a = a << 1 ^ (a & 0x80 ? POLYNOMIAL : 0))
        if (b & 1) sum ^= a;
    return sum;
}
__host__ __device__ constexpr unsigned inverse(unsigned a) {
    unsigned found = 1;
    while (product(a, found) != 1) ++found;
    return found;
}
struct Matrix { Byte of[PARITY][DATA]; };
__host__ __device__ constexpr Matrix cauchy() {
    Matrix matrix{};
    for (int p = 0; p < PARITY; ++p)
        for (int d = 0; d < DATA; ++d) matrix.of[p][d] = Byte(inverse(unsigned(DATA + p) ^ unsigned(d)));
    return matrix;
}

__global__ void as_it_is(const Byte *data, Byte *parity, const Byte *matrix, const Byte *logs, const Byte *powers, int shard) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= shard) return;
    for (int p = 0; p < PARITY; ++p) {
        Byte sum = 0;
        for (int d = 0; d < DATA; ++d) {
            const Byte value = data[size_t(d) * shard + i];
            if (value) sum ^= powers[logs[value] + logs[matrix[p * DATA + d]]];
        }
        parity[size_t(p) * shard + i] = sum;
    }
}

// First step, redundant loads: four neighbouring results a thread share coefficients, or a byte's value and logarithm are
// loaded before the loop over the parities.
__global__ void four_in_registers(const Byte *data, Byte *parity, const Byte *matrix, const Byte *logs, const Byte *powers, int shard) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= shard) return;
    for (int p = 0; p < PARITY; ++p) {
        Byte sum[4] = {};
        for (int d = 0; d < DATA; ++d) {
            const int coefficient = logs[matrix[p * DATA + d]];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const Byte value = data[size_t(d) * shard + i + j];
                if (value) sum[j] ^= powers[logs[value] + coefficient];
            }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) parity[size_t(p) * shard + i + j] = sum[j];
    }
}
__global__ void loaded_before_the_loop(const Byte *data, Byte *parity, const Byte *matrix, const Byte *logs, const Byte *powers, int shard) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= shard) return;
    Byte value[DATA], log[DATA];
#pragma unroll
    for (int d = 0; d < DATA; ++d) value[d] = data[size_t(d) * shard + i], log[d] = logs[value[d]];
    for (int p = 0; p < PARITY; ++p) {
        Byte sum = 0;
#pragma unroll
        for (int d = 0; d < DATA; ++d)
            if (value[d]) sum ^= powers[log[d] + logs[matrix[p * DATA + d]]];
        parity[size_t(p) * shard + i] = sum;
    }
}

// Second step, narrow access: sixteen neighbouring bytes a thread, values and logarithms kept as they came, four to a word.
__device__ __forceinline__ unsigned byte_of(unsigned word, int place) { return word >> 8 * place & 0xff; }
__global__ void sixteen_by_vectors(const Byte *data, Byte *parity, const Byte *matrix, const Byte *logs, const Byte *powers, int shard) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= shard / 16) return;
    unsigned value[DATA][4], log[DATA][4] = {};
#pragma unroll
    for (int d = 0; d < DATA; ++d) {
        const uint4 own = reinterpret_cast<const uint4 *>(data + size_t(d) * shard)[i];
        value[d][0] = own.x, value[d][1] = own.y, value[d][2] = own.z, value[d][3] = own.w;
#pragma unroll
        for (int j = 0; j < 16; ++j) log[d][j / 4] |= unsigned(logs[byte_of(value[d][j / 4], j % 4)]) << 8 * (j % 4);
    }
    for (int p = 0; p < PARITY; ++p) {
        unsigned sum[4] = {};
#pragma unroll
        for (int d = 0; d < DATA; ++d) {
            const unsigned coefficient = logs[matrix[p * DATA + d]];
#pragma unroll
            for (int j = 0; j < 16; ++j)
                if (byte_of(value[d][j / 4], j % 4))
                    sum[j / 4] ^= unsigned(powers[byte_of(log[d][j / 4], j % 4) + coefficient]) << 8 * (j % 4);
        }
        reinterpret_cast<uint4 *>(parity + size_t(p) * shard)[i] = make_uint4(sum[0], sum[1], sum[2], sum[3]);
    }
}

// Third step, redundant loads: a block takes four of its old ones' bytes along x, which share the
// coefficients: a sum for each, or one after the other.
__global__ void four_along_x_a_block(const Byte *data, Byte *parity, const Byte *matrix, const Byte *logs, const Byte *powers, int shard) {
    const int i = blockIdx.x * blockDim.x * 4 + threadIdx.x;
    Byte value[DATA][4], log[DATA][4];
#pragma unroll
    for (int d = 0; d < DATA; ++d)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int own = i + j * blockDim.x;
            value[d][j] = own < shard ? data[size_t(d) * shard + own] : 0, log[d][j] = logs[value[d][j]];
        }
    for (int p = 0; p < PARITY; ++p) {
        Byte sum[4] = {};
#pragma unroll
        for (int d = 0; d < DATA; ++d) {
            const int coefficient = logs[matrix[p * DATA + d]];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (value[d][j]) sum[j] ^= powers[log[d][j] + coefficient];
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (const int own = i + j * blockDim.x; own < shard) parity[size_t(p) * shard + own] = sum[j];
    }
}
__global__ void four_in_turn(const Byte *data, Byte *parity, const Byte *matrix, const Byte *logs, const Byte *powers, int shard) {
    Byte coefficient[PARITY][DATA];
#pragma unroll
    for (int p = 0; p < PARITY; ++p)
#pragma unroll
        for (int d = 0; d < DATA; ++d) coefficient[p][d] = logs[matrix[p * DATA + d]];
#pragma unroll 1
    for (int j = 0; j < 4; ++j) {
        const int i = (blockIdx.x * 4 + j) * blockDim.x + threadIdx.x;
        if (i >= shard) return;
        Byte value[DATA], log[DATA];
#pragma unroll
        for (int d = 0; d < DATA; ++d) value[d] = data[size_t(d) * shard + i], log[d] = logs[value[d]];
#pragma unroll
        for (int p = 0; p < PARITY; ++p) {
            Byte sum = 0;
#pragma unroll
            for (int d = 0; d < DATA; ++d)
                if (value[d]) sum ^= powers[log[d] + coefficient[p][d]];
            parity[size_t(p) * shard + i] = sum;
        }
    }
}

// Sixteen bytes a thread and shard. A product is a sum over the bits of its coefficient: of all shards' data with bit 7
// first, doubled, with bit 6, and so on; four bytes of a word at once.
struct Masks { unsigned of[PARITY][8][DATA]; };  // all ones where the coefficient has that bit
__device__ __forceinline__ unsigned doubled(unsigned bytes) {
    return (bytes << 1 & 0xfefefefeu) ^ (bytes >> 7 & 0x01010101u) * (POLYNOMIAL & 0xff);
}
template <class Mask> __device__ __forceinline__ void parity_of(const Byte *data, Byte *parity, int shard, Mask mask) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= shard / 16) return;
    uint4 own[DATA];
#pragma unroll
    for (int d = 0; d < DATA; ++d) own[d] = __ldcs(reinterpret_cast<const uint4 *>(data + size_t(d) * shard) + i);
#pragma unroll
    for (int p = 0; p < PARITY; ++p) {
        uint4 sum{};
#pragma unroll
        for (int bit = 7; bit >= 0; --bit) {
            if (bit < 7) sum = make_uint4(doubled(sum.x), doubled(sum.y), doubled(sum.z), doubled(sum.w));
#pragma unroll
            for (int d = 0; d < DATA; ++d) {
                const unsigned with = mask(p, bit, d);
                sum.x ^= own[d].x & with, sum.y ^= own[d].y & with, sum.z ^= own[d].z & with, sum.w ^= own[d].w & with;
            }
        }
        __stcs(reinterpret_cast<uint4 *>(parity + size_t(p) * shard) + i, sum);
    }
}
__global__ void __launch_bounds__(256) expert(const Byte *data, Byte *parity, const __grid_constant__ Masks masks, int shard) {
    parity_of(data, parity, shard, [&](int p, int bit, int d) { return masks.of[p][bit][d]; });
}
// The matrix known to the compiler: what a coefficient has no bit for falls away.
__global__ void __launch_bounds__(256) expert_2(const Byte *data, Byte *parity, int shard) {
    constexpr Matrix MATRIX = cauchy();
    parity_of(data, parity, shard, [&](int p, int bit, int d) { return MATRIX.of[p][d] >> bit & 1 ? ~0u : 0u; });
}

int main(int, char **argv) {
    const Matrix matrix = cauchy();
    std::vector<Byte> logs(256), powers(512), coefficients;
    for (unsigned i = 0, power = 1; i < 510; ++i, power = product(power, 2)) {
        powers[i] = Byte(power);
        if (i < 255) logs[power] = Byte(i);
    }
    Masks masks;
    for (int p = 0; p < PARITY; ++p)
        for (int d = 0; d < DATA; ++d) {
            coefficients.push_back(matrix.of[p][d]);
            for (int bit = 0; bit < 8; ++bit) masks.of[p][bit][d] = matrix.of[p][d] >> bit & 1 ? ~0u : 0u;
        }
    const Byte *data = drawn<Byte>(size_t(SHARD) * DATA, 0, 256, 1), *own = copied(coefficients), *log = copied(logs), *power = copied(powers);
    Byte *parity = get<Byte>(size_t(SHARD) * PARITY);
    judge({{"as_it_is", [=] { as_it_is<<<SHARD / 256, 256>>>(data, parity, own, log, power, SHARD); }},
           {"four_in_registers", [=] { four_in_registers<<<SHARD / 4 / 256, 256>>>(data, parity, own, log, power, SHARD); }},
           {"loaded_before_the_loop", [=] { loaded_before_the_loop<<<SHARD / 256, 256>>>(data, parity, own, log, power, SHARD); }},
           {"sixteen_by_vectors", [=] { sixteen_by_vectors<<<SHARD / 16 / 256, 256>>>(data, parity, own, log, power, SHARD); }},
           {"four_along_x_a_block", [=] { four_along_x_a_block<<<SHARD / 4 / 256, 256>>>(data, parity, own, log, power, SHARD); }},
           {"four_in_turn", [=] { four_in_turn<<<SHARD / 4 / 256, 256>>>(data, parity, own, log, power, SHARD); }},
           {"expert", [=] { expert<<<SHARD / 16 / 256, 256>>>(data, parity, masks, SHARD); }},
           {"expert_2", [=] { expert_2<<<SHARD / 16 / 256, 256>>>(data, parity, SHARD); }}},
          {{parity, size_t(SHARD) * PARITY}}, [] {}, argv[1]);
}
