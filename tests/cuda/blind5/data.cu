// Pieces of databases, graphs, codes and ciphers. Each kernel has one weakness and one or two ways out of it.
#include "../pairs/pair.cuh"

namespace {

// --- integers of variable length ---

__global__ void varints(const unsigned char *bytes, const int *offsets, unsigned *out, int count) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= count) return;
    const unsigned char *p = bytes + offsets[b];
    for (int v = 0; v < 64; ++v) {
        unsigned x = 0, c;
        int shift = 0;
        do {
            c = *p++;
            x |= (c & 127u) << shift;
            shift += 7;
        } while (c & 128u);
        out[b * 64 + v] = x;
    }
}
__global__ void __launch_bounds__(64) varints_staged(const unsigned char *bytes, const int *offsets, unsigned *out) {
    __shared__ unsigned values[64][65];
    const unsigned char *p = bytes + offsets[blockIdx.x * 64 + threadIdx.x];
    for (int v = 0; v < 64; ++v) {
        unsigned x = 0, c;
        int shift = 0;
        do {
            c = *p++;
            x |= (c & 127u) << shift;
            shift += 7;
        } while (c & 128u);
        values[threadIdx.x][v] = x;
    }
    __syncthreads();
    for (int r = 0; r < 64; ++r) out[(blockIdx.x * 64 + r) * 64 + threadIdx.x] = values[r][threadIdx.x];
}
// A warp a block of 64 values: a lane a byte, ends found by a vote.
__global__ void varints_warp(const unsigned char *bytes, const int *offsets, unsigned *out, int count) {
    int b = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (b >= count) return;
    int at = offsets[b], end = offsets[b + 1];
    unsigned *to = out + b * 64;
    while (at < end) {
        unsigned c = at + lane < end ? bytes[at + lane] : 128u;
        unsigned ends = __ballot_sync(~0u, !(c & 128u)), before = ends & ((1u << lane) - 1);
        int first = 32 - __clz(before);
        unsigned x = 0;
#pragma unroll
        for (int k = 0; k < 5; ++k) {
            unsigned other = __shfl_sync(~0u, c, (first + k) & 31);
            if (first + k <= lane) x |= (other & 127u) << (7 * k);
        }
        if (!(c & 128u)) to[__popc(before)] = x;
        to += __popc(ends);
        at += 32 - __clz(ends);
    }
}

Study varint_blocks("varints_byte_at_a_time", "data", 1 << 17, "131072 blocks of 64 integers in bytes of seven bits",
    "a thread walks its block's bytes and writes its 64 values: lanes are hundreds of bytes apart",
    {{"staged", "values through shared memory, written side by side", {"uncoalesced_access"}},
        {"warp", "a warp a block, a lane a byte, the ends by a vote", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long count) -> Sides {
        std::vector<unsigned char> bytes;
        std::vector<int> offsets;
        bytes.reserve(count * 64 * 3);
        for (long i = 0; i < count * 64; ++i) {
            if (i % 64 == 0) offsets.push_back(bytes.size());
            unsigned h = hash(i), x = hash(h) & ((2u << h % 28) - 1);
            for (; x >= 128; x >>= 7) bytes.push_back(x | 128);
            bytes.push_back(x);
        }
        offsets.push_back(bytes.size());
        unsigned char *data = b.copy(bytes);
        int *o = b.copy(offsets);
        unsigned *out = b.output<unsigned>(count * 64);
        b.tolerance = 1e-9;
        return {{"flawed", launch(varints, count / 128, 128, 0, data, o, out, count)},
            {"staged", launch(varints_staged, count / 64, 64, 0, data, o, out)},
            {"warp", launch(varints_warp, count / 4, 128, 0, data, o, out, count)}};
    });

// --- revenue of the rows that four conditions let through ---

__device__ void add_of_block(float v, float *sum) {
    __shared__ float part[8];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) v += part[w];
        atomicAdd(sum, v);
    }
}
__global__ void __launch_bounds__(256) revenue(const int *date, const float *discount, const float *quantity, const float *price, float *sum, int rows) {
    float mine = 0.f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x)
        if (date[i] >= 365 && date[i] < 730 && discount[i] >= 0.05f && discount[i] <= 0.07f && quantity[i] < 24.f) mine += price[i] * discount[i];
    add_of_block(mine, sum);
}
__global__ void __launch_bounds__(256) revenue_all(const int4 *__restrict__ date, const float4 *__restrict__ discount,
    const float4 *__restrict__ quantity, const float4 *__restrict__ price, float *sum, int quads) {
    float mine = 0.f;
    auto one = [](int d, float c, float q, float p) { return (d >= 365) & (d < 730) & (c >= 0.05f) & (c <= 0.07f) & (q < 24.f) ? p * c : 0.f; };
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += gridDim.x * blockDim.x) {
        int4 d = date[i];
        float4 c = discount[i], q = quantity[i], p = price[i];
        mine += one(d.x, c.x, q.x, p.x) + one(d.y, c.y, q.y, p.y) + one(d.z, c.z, q.z, p.z) + one(d.w, c.w, q.w, p.w);
    }
    add_of_block(mine, sum);
}
__global__ void __launch_bounds__(256) revenue_ahead(const int *__restrict__ date, const float *__restrict__ discount,
    const float *__restrict__ quantity, const float *__restrict__ price, float *sum, int rows) {
    float mine = 0.f;
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += 4 * stride) {
        int d[4];
        float c[4];
        bool in[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) d[k] = i + k * stride < rows ? date[i + k * stride] : 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) in[k] = d[k] >= 365 && d[k] < 730, c[k] = in[k] ? discount[i + k * stride] : 0.f;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (c[k] >= 0.05f && c[k] <= 0.07f && quantity[i + k * stride] < 24.f) mine += price[i + k * stride] * c[k];
    }
    add_of_block(mine, sum);
}

Study revenues("revenue_conditions_one_by_one", "data", 1 << 25, "sum of price times discount of the rows within limits of date, discount and quantity",
    "each condition waits for the one before: one load under way a thread, four bytes each",
    {{"all", "four rows a thread, all columns read at once by 16 bytes", {"memory_latency", "narrow_access"}},
        {"ahead", "four rows a thread at a time, column after column", {"memory_latency"}}},
    [](Buffers &b, long rows) -> Sides {
        int *date = b.random<int>(rows, 0, 2557);
        float *discount = b.random<float>(rows, 0, 0.11), *quantity = b.random<float>(rows, 1, 51), *price = b.random<float>(rows, 1, 100);
        float *sum = b.output<float>(1, true);
        b.tolerance = 1e-3;
        int grid = 8 * multiprocessors();
        return {{"flawed", launch(revenue, grid, 256, 0, date, discount, quantity, price, sum, rows)},
            {"all", launch(revenue_all, grid, 256, 0, (int4 *)date, (float4 *)discount, (float4 *)quantity, (float4 *)price, sum, rows / 4)},
            {"ahead", launch(revenue_ahead, grid, 256, 0, date, discount, quantity, price, sum, rows)}};
    });

// --- rows whose key is in a list ---

__constant__ int LIST[48];

__global__ void in_list(const int *keys, unsigned *bitmap, int listed, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool found = false;
    if (i < rows) {
        int key = keys[i];
        for (int k = 0; k < listed; ++k)
            if (LIST[k] == key) {
                found = true;
                break;
            }
    }
    unsigned bits = __ballot_sync(~0u, found);
    if (threadIdx.x % 32 == 0) bitmap[i / 32] = bits;
}
__global__ void __launch_bounds__(1024) in_list_bits(const int *__restrict__ keys, unsigned *__restrict__ bitmap, int listed, int rows) {
    __shared__ unsigned members[2048];  // keys are less than 65536
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) members[i] = 0;
    __syncthreads();
    if (threadIdx.x < listed) atomicOr(&members[LIST[threadIdx.x] / 32], 1u << LIST[threadIdx.x] % 32);
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) {
        int key = keys[i];
        unsigned bits = __ballot_sync(~0u, members[key / 32] >> key % 32 & 1);
        if (threadIdx.x % 32 == 0) bitmap[i / 32] = bits;
    }
}
__global__ void in_list_four(const int *__restrict__ keys, unsigned *__restrict__ bitmap, int listed) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, key[4];
    bool found[4] = {};
#pragma unroll
    for (int r = 0; r < 4; ++r) key[r] = keys[warp * 128 + 32 * r + lane];
#pragma unroll 8
    for (int k = 0; k < listed; ++k) {
        int wanted = LIST[k];
#pragma unroll
        for (int r = 0; r < 4; ++r) found[r] |= key[r] == wanted;
    }
    uint4 bits{__ballot_sync(~0u, found[0]), __ballot_sync(~0u, found[1]), __ballot_sync(~0u, found[2]), __ballot_sync(~0u, found[3])};
    if (lane == 0) reinterpret_cast<uint4 *>(bitmap)[warp] = bits;
}

Study in_lists("in_list_compared_one_by_one", "data", 1 << 25, "bitmap of 33554432 rows whose key is one of 48",
    "every key is compared with the list's members in turn, with a way out after each",
    {{"bits", "membership of all possible keys as bits in shared memory", {"branch_divergence", "integer_arithmetic"}},
        {"four", "four keys a thread compared with each member, no way out", {"branch_divergence", "integer_arithmetic"}}},
    [](Buffers &b, long rows) -> Sides {
        int *keys = b.random<int>(rows, 0, 65536), list[48];
        for (int i = 0; i < 48; ++i) list[i] = hash(i) % 65536;
        CHECK(cudaMemcpyToSymbol(LIST, list, sizeof list));
        unsigned *bitmap = b.output<unsigned>(rows / 32);
        b.tolerance = 1e-12;
        return {{"flawed", launch(in_list, rows / 256, 256, 0, keys, bitmap, 48, rows)},
            {"bits", launch(in_list_bits, 2 * multiprocessors(), 1024, 0, keys, bitmap, 48, rows)},
            {"four", launch(in_list_four, rows / 1024, 256, 0, keys, bitmap, 48)}};
    });

// --- a sketch of how many values differ ---

__device__ __forceinline__ void sketched(unsigned value, unsigned &at, int &rank) {
    unsigned h = hash(value);
    at = h >> 20, rank = __clz(h << 12 | 0x800) + 1;
}
__global__ void sketch(const unsigned *values, int *registers, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned at;
    int rank;
    sketched(values[i], at, rank);
    atomicMax(&registers[at], rank);
}
__global__ void sketch_looks_first(const unsigned *__restrict__ values, int *registers, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned at;
    int rank;
    sketched(values[i], at, rank);
    if (*reinterpret_cast<volatile int *>(registers + at) < rank) atomicMax(&registers[at], rank);
}
__global__ void __launch_bounds__(512) sketch_shared(const uint4 *__restrict__ values, int *registers, int quads) {
    __shared__ int mine[4096];
    for (int i = threadIdx.x; i < 4096; i += 512) mine[i] = 0;
    __syncthreads();
    auto add = [&](unsigned value) {
        unsigned at;
        int rank;
        sketched(value, at, rank);
        if (mine[at] < rank) atomicMax(&mine[at], rank);
    };
    for (int i = blockIdx.x * 512 + threadIdx.x; i < quads; i += gridDim.x * 512) {
        uint4 v = values[i];
        add(v.x), add(v.y), add(v.z), add(v.w);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += 512) atomicMax(&registers[i], mine[i]);
}

Study sketches("sketch_registers_global_max", "data", 1 << 24, "HyperLogLog sketch of 16777216 values in 4096 registers",
    "an atomic maximum in global memory for each value, though few change anything",
    {{"looks_first", "the register is read, and raised where it is less", {"global_atomics"}},
        {"shared", "registers of each block in shared memory, joined at the end", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *values = b.random<unsigned>(n, 0, 4e9);
        int *registers = b.output<int>(4096, true);
        b.tolerance = 1e-9;
        return {{"flawed", launch(sketch, n / 256, 256, 0, values, registers, n)},
            {"looks_first", launch(sketch_looks_first, n / 256, 256, 0, values, registers, n)},
            {"shared", launch(sketch_shared, 4 * multiprocessors(), 512, 0, (uint4 *)values, registers, n / 4)}};
    });

// --- attention of a graph's edges ---

constexpr int HEADS = 8;
__device__ float leaky(float x) { return x > 0.f ? x : 0.2f * x; }

__global__ void edge_softmax(const int *offsets, const int *columns, const float *source, const float *target, float *alpha, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    int begin = offsets[node], end = offsets[node + 1];
    for (int h = 0; h < HEADS; ++h) {
        float own = target[node * HEADS + h], top = -1e30f, sum = 0.f;
        for (int e = begin; e < end; ++e) top = fmaxf(top, leaky(source[columns[e] * HEADS + h] + own));
        for (int e = begin; e < end; ++e) sum += __expf(leaky(source[columns[e] * HEADS + h] + own) - top);
        for (int e = begin; e < end; ++e) alpha[e * HEADS + h] = __expf(leaky(source[columns[e] * HEADS + h] + own) - top) / sum;
    }
}
__global__ void edge_softmax_heads(const int *offsets, const int *columns, const float *source, const float *target, float *alpha, int nodes) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, node = at / HEADS, h = at % HEADS;
    if (node >= nodes) return;
    int begin = offsets[node], end = offsets[node + 1];
    float own = target[at], top = -1e30f, sum = 0.f;
    for (int e = begin; e < end; ++e) top = fmaxf(top, leaky(source[columns[e] * HEADS + h] + own));
    for (int e = begin; e < end; ++e) sum += __expf(leaky(source[columns[e] * HEADS + h] + own) - top);
    for (int e = begin; e < end; ++e) alpha[e * HEADS + h] = __expf(leaky(source[columns[e] * HEADS + h] + own) - top) / sum;
}
// A warp a node: four edges at a time, eight heads.
__global__ void edge_softmax_warp(const int *__restrict__ offsets, const int *__restrict__ columns, const float *__restrict__ source,
    const float *__restrict__ target, float *__restrict__ alpha, int nodes) {
    int node = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, h = lane % HEADS;
    if (node >= nodes) return;
    int begin = offsets[node], end = offsets[node + 1];
    float own = target[node * HEADS + h], top = -1e30f, sum = 0.f;
    for (int e = begin + lane / HEADS; e < end; e += 4) {
        float s = leaky(source[columns[e] * HEADS + h] + own), higher = fmaxf(top, s);
        sum = sum * __expf(top - higher) + __expf(s - higher);
        top = higher;
    }
    for (int o = HEADS; o < 32; o *= 2) {
        float other = __shfl_xor_sync(~0u, top, o), more = __shfl_xor_sync(~0u, sum, o), higher = fmaxf(top, other);
        sum = sum * __expf(top - higher) + more * __expf(other - higher);
        top = higher;
    }
    float inverse = 1.f / sum;
    for (int e = begin + lane / HEADS; e < end; e += 4)
        alpha[e * HEADS + h] = __expf(leaky(source[columns[e] * HEADS + h] + own) - top) * inverse;
}

Study edge_softmaxes("graph_attention_thread_per_node", "graphs", 1 << 17, "attention weights of the 2 million edges of 131072 nodes, eight heads",
    "a thread takes a node's eight heads in turn and walks its edges three times for each",
    {{"heads", "a lane a head", {"uncoalesced_access", "redundant_loads"}},
        {"warp", "a warp a node, four edges and eight heads at a time, maximum and sum in one walk", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long nodes) -> Sides {
        std::vector<int> offsets{0}, columns;
        for (int i = 0; i < nodes; ++i) {
            for (int k = 0, degree = 8 + hash(i) % 17; k < degree; ++k) columns.push_back(hash(i * 32 + k) % nodes);
            offsets.push_back(columns.size());
        }
        int *o = b.copy(offsets), *c = b.copy(columns);
        float *source = b.random<float>(nodes * HEADS, -2, 2), *target = b.random<float>(nodes * HEADS, -2, 2);
        float *alpha = b.output<float>(columns.size() * HEADS);
        b.tolerance = 1e-3;
        return {{"flawed", launch(edge_softmax, nodes / 128, 128, 0, o, c, source, target, alpha, nodes)},
            {"heads", launch(edge_softmax_heads, nodes / 16, 128, 0, o, c, source, target, alpha, nodes)},
            {"warp", launch(edge_softmax_warp, nodes / 4, 128, 0, o, c, source, target, alpha, nodes)}};
    });

// --- authentication codes: products in GF(2^128) ---

__device__ __forceinline__ uint4 halved(uint4 v) {
    unsigned carry = v.w & 1 ? 0xe1000000u : 0u;
    return {v.x >> 1 ^ carry, __funnelshift_r(v.y, v.x, 1), __funnelshift_r(v.z, v.y, 1), __funnelshift_r(v.w, v.z, 1)};
}
__global__ void ghash(const uint4 *data, uint4 *tags, uint4 key, int streams, int length) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 y{0, 0, 0, 0};
    for (int i = 0; i < length; ++i) {
        uint4 x = data[size_t(i) * streams + t], z{0, 0, 0, 0}, v = key;
        unsigned words[4] = {y.x ^ x.x, y.y ^ x.y, y.z ^ x.z, y.w ^ x.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
            for (int bit = 31; bit >= 0; --bit) {
                if (words[w] >> bit & 1) z.x ^= v.x, z.y ^= v.y, z.z ^= v.z, z.w ^= v.w;
                v = halved(v);
            }
        y = z;
    }
    tags[t] = y;
}
__device__ void multiples_of_key(uint4 *multiples, uint4 key) {
    if (threadIdx.x < 128) {
        for (int i = 0; i < threadIdx.x; ++i) key = halved(key);
        multiples[threadIdx.x] = key;
    }
    __syncthreads();
}
__global__ void __launch_bounds__(256) ghash_multiples(const uint4 *data, uint4 *tags, uint4 key, int streams, int length) {
    __shared__ uint4 multiples[128];
    multiples_of_key(multiples, key);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 y{0, 0, 0, 0};
    for (int i = 0; i < length; ++i) {
        uint4 x = data[size_t(i) * streams + t], z{0, 0, 0, 0};
        unsigned words[4] = {y.x ^ x.x, y.y ^ x.y, y.z ^ x.z, y.w ^ x.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
#pragma unroll 8
            for (int bit = 0; bit < 32; ++bit) {
                unsigned mask = int(words[w] << bit) >> 31;
                uint4 v = multiples[32 * w + bit];
                z.x ^= v.x & mask, z.y ^= v.y & mask, z.z ^= v.z & mask, z.w ^= v.w & mask;
            }
        y = z;
    }
    tags[t] = y;
}
__global__ void __launch_bounds__(256) ghash_nibbles(const uint4 *data, uint4 *tags, uint4 key, int streams, int length) {
    __shared__ uint4 multiples[128], table[32 * 16];
    multiples_of_key(multiples, key);
    for (int i = threadIdx.x; i < 512; i += blockDim.x) {
        uint4 sum{0, 0, 0, 0};
        for (int k = 0; k < 4; ++k)
            if (i & 8 >> k) {
                uint4 v = multiples[i / 16 * 4 + k];
                sum.x ^= v.x, sum.y ^= v.y, sum.z ^= v.z, sum.w ^= v.w;
            }
        table[i] = sum;
    }
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 y{0, 0, 0, 0};
    for (int i = 0; i < length; ++i) {
        uint4 x = data[size_t(i) * streams + t], z{0, 0, 0, 0};
        unsigned words[4] = {y.x ^ x.x, y.y ^ x.y, y.z ^ x.z, y.w ^ x.w};
#pragma unroll
        for (int p = 0; p < 32; ++p) {
            uint4 v = table[p * 16 + (words[p / 8] >> (28 - p % 8 * 4) & 15)];
            z.x ^= v.x, z.y ^= v.y, z.z ^= v.z, z.w ^= v.w;
        }
        y = z;
    }
    tags[t] = y;
}

Study ghashes("ghash_bit_by_bit", "crypto", 1 << 18, "authentication codes of 262144 streams of 8 blocks in GF(2^128)",
    "a product takes 128 turns, each with a condition and a shift of the key that is the same for all",
    {{"multiples", "the key's 128 shifts once a block, in shared memory", {"integer_arithmetic"}},
        {"nibbles", "tables of 16 products for each four bits in shared memory", {"integer_arithmetic"}}},
    [](Buffers &b, long streams) -> Sides {
        auto *data = (uint4 *)b.random<unsigned>(streams * 32, 0, 4294967295.0);
        auto *tags = (uint4 *)b.output<unsigned>(streams * 4);
        uint4 key{0x66e94bd4u, 0xef8a2c3bu, 0x884cfa59u, 0xca342b2eu};
        b.tolerance = 1e-12;
        return {{"flawed", launch(ghash, streams / 256, 256, 0, data, tags, key, streams, 8)},
            {"multiples", launch(ghash_multiples, streams / 256, 256, 0, data, tags, key, streams, 8)},
            {"nibbles", launch(ghash_nibbles, streams / 256, 256, 0, data, tags, key, streams, 8)}};
    });

}  // namespace
