// Code words, telemetry, spectra, chunks, texts and packets.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- syndromes of Reed-Solomon code words ---

constexpr int CODE_WORDS = 15;  // of four bytes

__constant__ unsigned char power_of[516];    // of the root, over and over; zeros from 511 on
__constant__ unsigned short exponent_of[256];  // of 0: 511

// Rows of `codes` are the words of all codes in turn.
template <class Times>
__device__ __forceinline__ unsigned syndromes(const unsigned *codes, int code, int count, Times times) {
    unsigned s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int w = 0; w < CODE_WORDS; w++) {
        unsigned word = codes[w * count + code];
#pragma unroll
        for (int left = 4; left > 0; left--) {
            const unsigned symbol = word & 0xffu;
            s0 ^= symbol;
            s1 = times(s1, 1) ^ symbol;
            s2 = times(s2, 2) ^ symbol;
            s3 = times(s3, 3) ^ symbol;
            word >>= 8;
        }
    }
    return s0 | s1 << 8 | s2 << 16 | s3 << 24;
}
__global__ void checked(const unsigned *codes, unsigned *out, int count) {
    const int code = blockIdx.x * blockDim.x + threadIdx.x;
    if (code >= count) return;
    out[code] = syndromes(codes, code, count, [](unsigned s, int j) -> unsigned { return power_of[exponent_of[s] + j]; });
}
__global__ void checked_shared(const unsigned *codes, unsigned *out, int count) {
    __shared__ unsigned char powers[516];
    __shared__ unsigned short exponents[256];
    for (int i = threadIdx.x; i < 516; i += blockDim.x) powers[i] = power_of[i];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) exponents[i] = exponent_of[i];
    __syncthreads();
    const int code = blockIdx.x * blockDim.x + threadIdx.x;
    if (code >= count) return;
    out[code] = syndromes(codes, code, count, [&](unsigned s, int j) -> unsigned { return powers[exponents[s] + j]; });
}
// Products with the three factors by one look-up each.
__global__ void checked_products(const unsigned *codes, const unsigned char *products, unsigned *out, int count) {
    __shared__ unsigned char product[3][256];
    for (int i = threadIdx.x; i < 3 * 256; i += blockDim.x) product[i / 256][i % 256] = products[i];
    __syncthreads();
    const int code = blockIdx.x * blockDim.x + threadIdx.x;
    if (code >= count) return;
    out[code] = syndromes(codes, code, count, [&](unsigned s, int j) -> unsigned { return product[j - 1][s]; });
}

Study reed_solomon("syndromes_by_exponents_in_constants", "coding", 250000, "four syndromes of each of 250000 code words of 60 bytes, interleaved",
    "powers and exponents lie in constant memory, and each lane wants others",
    {{"shared", "both tables in shared memory", {"constant_divergence"}}, {"products", "tables of products in shared memory, one look-up for two", {"constant_divergence", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> powers(516, 0), products(3 * 256, 0);
        std::vector<unsigned short> exponents(256, 511);
        unsigned power = 1;
        for (int i = 0; i < 510; i++) {
            powers[i] = static_cast<unsigned char>(power);
            if (i < 255) exponents[power] = static_cast<unsigned short>(i);
            power = power << 1 ^ (power & 0x80 ? 0x11d : 0);
        }
        for (int j = 1; j < 4; j++)
            for (int s = 1; s < 256; s++) products[(j - 1) * 256 + s] = powers[exponents[s] + j];
        CHECK(cudaMemcpyToSymbol(power_of, powers.data(), 516));
        CHECK(cudaMemcpyToSymbol(exponent_of, exponents.data(), 512));
        const unsigned *codes = b.random<unsigned>(CODE_WORDS * n, 0.0, 4294967295.0);
        const unsigned char *table = b.copy(products);
        unsigned *out = b.output<unsigned>(n);
        const int count = static_cast<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(checked, blocks(n, 192), 192, 0, codes, out, count)}, {"shared", launch(checked_shared, blocks(n, 192), 192, 0, codes, out, count)},
            {"products", launch(checked_products, blocks(n, 192), 192, 0, codes, table, out, count)}};
    });

// --- telemetry in Rice codes ---

constexpr int REST_BITS = 4, MOST_BITS = 20, RUN = 1280;

struct Coded {
    unsigned long long bits;
    __device__ explicit Coded(short value, unsigned place) {
        const unsigned quotient = static_cast<unsigned>(value) >> REST_BITS, rest = value & ((1 << REST_BITS) - 1);
        bits = static_cast<unsigned long long>((2u * rest + 1u) << quotient) << (place & 31);
    }
    // Nobody else sets these bits.
    __device__ void add_to(unsigned *words) const {
        atomicAdd(words, static_cast<unsigned>(bits));
        if (const unsigned next = static_cast<unsigned>(bits >> 32)) atomicAdd(words + 1, next);
    }
};
__global__ void rice(const short *values, const unsigned *places, unsigned *stream, long long count) {
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count; i += static_cast<long long>(gridDim.x) * blockDim.x)
        Coded(values[i], places[i]).add_to(stream + places[i] / 32);
}
__global__ void __launch_bounds__(160) rice_staged(const short *values, const unsigned *places, unsigned *stream, long long count) {
    __shared__ unsigned staged[RUN * MOST_BITS / 32 + 2];
    const long long begin = static_cast<long long>(blockIdx.x) * RUN, end = min(begin + RUN, count);
    const unsigned bottom = places[begin] / 32, words = places[end] / 32 - bottom + 1;
    for (unsigned w = threadIdx.x; w < words; w += 160) staged[w] = 0;
    __syncthreads();
#pragma unroll 4
    for (long long i = begin + threadIdx.x; i < end; i += 160) {
        const unsigned place = places[i];
        Coded(values[i], place).add_to(staged + (place / 32 - bottom));
    }
    __syncthreads();
    for (unsigned w = threadIdx.x; w < words; w += 160) {
        if (w == 0 || w == words - 1) atomicAdd(stream + bottom + w, staged[w]);
        else stream[bottom + w] = staged[w];
    }
}

Study telemetry("telemetry_added_bit_by_bit_to_its_stream", "space flight", 14000000, "14 million differences of telemetry in Rice codes of 5 to 18 bits, at places known before",
    "the bits of each value are added to a word in global memory",
    {{"staged", "a block puts its words together in shared memory", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> values(n);
        std::vector<unsigned> places(n + 1);
        for (long i = 0; i < n; i++) {
            const unsigned any = hash(static_cast<unsigned>(i));
            values[i] = static_cast<short>((any % 160) * (any >> 8 & 255) / 256 + (any >> 16) % 64);
            places[i + 1] = places[i] + static_cast<unsigned>(values[i] >> REST_BITS) + 1 + REST_BITS;
        }
        const short *data = b.copy(values);
        const unsigned *at = b.copy(places);
        unsigned *stream = b.output<unsigned>(places[n] / 32 + 2, true);
        b.tolerance = 0.0;
        return {{"flawed", launch(rice, 12 * multiprocessors(), 160, 0, data, at, stream, static_cast<long long>(n))},
            {"staged", launch(rice_staged, blocks(n, RUN), 160, 0, data, at, stream, static_cast<long long>(n))}};
    });

// --- centres of mass spectra ---

struct Centre {
    double moment = 0.0, total = 0.0;
    float peak = 0.0f;
    __device__ __forceinline__ void take(float2 line) {
        moment += static_cast<double>(line.x) * line.y;
        total += line.y;
        peak = fmaxf(peak, line.y);
    }
    __device__ __forceinline__ void across(int lanes) {
        for (int mask = lanes >> 1; mask > 0; mask >>= 1) {
            moment += __shfl_xor_sync(0xffffffffu, moment, mask);
            total += __shfl_xor_sync(0xffffffffu, total, mask);
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, mask));
        }
    }
    __device__ __forceinline__ float2 found() const { return make_float2(static_cast<float>(moment / total), peak); }
};
template <int Block>
__global__ void __launch_bounds__(Block) centres(const float2 *lines, const int *begins, float2 *out) {
    __shared__ Centre of_warps[Block / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Centre own;
    for (int i = begins[blockIdx.x] + threadIdx.x; i < begins[blockIdx.x + 1]; i += Block) own.take(lines[i]);
    own.across(32);
    if (lane == 0) of_warps[warp] = own;
    __syncthreads();
    if (warp == 0) {
        own = lane < Block / 32 ? of_warps[lane] : Centre();
        own.across(Block / 32);
        if (lane == 0) out[blockIdx.x] = own.found();
    }
}
template <int Lanes>
__global__ void __launch_bounds__(128) centres_of_lanes(const float2 *lines, const int *begins, float2 *out) {
    const int spectrum = (blockIdx.x * 128 + threadIdx.x) / Lanes, lane = threadIdx.x % Lanes;
    Centre own;
    for (int i = begins[spectrum] + lane; i < begins[spectrum + 1]; i += Lanes) own.take(lines[i]);
    own.across(Lanes);
    if (lane == 0) out[spectrum] = own.found();
}

Study spectra("spectra_of_few_lines_a_block_each", "chemistry", 180000, "centres and peaks of 180000 spectra of 6 to 53 lines",
    "a block of 128 threads a spectrum: most of its four warps have no line, and wait",
    {{"warp", "a warp a spectrum", {"idle_threads", "barriers"}}, {"eight", "eight lanes a spectrum", {"idle_threads", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> begins(n + 1);
        for (long k = 0; k < n; k++) begins[k + 1] = begins[k] + 6 + static_cast<int>(hash(static_cast<unsigned>(k)) % 48);
        const int *starts = b.copy(begins);
        const float2 *lines = reinterpret_cast<const float2 *>(b.random<float>(2 * static_cast<size_t>(begins[n]), 0.5, 1000.0));
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2 * n));
        return {{"flawed", launch(centres<128>, n, 128, 0, lines, starts, out)}, {"warp", launch(centres_of_lanes<32>, n / 4, 128, 0, lines, starts, out)},
            {"eight", launch(centres_of_lanes<8>, n / 16, 128, 0, lines, starts, out)}};
    });

// --- fingerprints of chunks ---

constexpr unsigned PRIME = 0x7fffffffu;

// h * factor + byte modulo the prime, or the prime itself, or one more.
__device__ __forceinline__ unsigned on(unsigned h, unsigned factor, unsigned byte) {
    const unsigned long long wide = static_cast<unsigned long long>(h) * factor + byte;
    const unsigned sum = (static_cast<unsigned>(wide) & PRIME) + static_cast<unsigned>(wide >> 31);
    return (sum & PRIME) + (sum >> 31);
}
__device__ __forceinline__ unsigned onwards(unsigned h, unsigned word, unsigned first, unsigned key) {
    h = on(h, first, word & 255u);
    h = on(h, key, word >> 8 & 255u);
    h = on(h, key, word >> 16 & 255u);
    return on(h, key, word >> 24);
}
__device__ __forceinline__ unsigned joined(unsigned h, const unsigned *powers) {
    h = on(h, powers[16 * (31 - threadIdx.x % 32)], 0u);
    for (int lanes = 1; lanes < 32; lanes += lanes) h = on(h + __shfl_xor_sync(0xffffffffu, h, lanes) % PRIME, 1u, 0u);
    return h % PRIME;
}
__global__ void __launch_bounds__(128) fingerprints(const uint4 *chunks, const unsigned *powers, unsigned *out, int vectors) {
    const int chunk = blockIdx.x * 4 + threadIdx.x / 32;
    const uint4 *from = chunks + static_cast<long long>(chunk) * vectors, *const end = from + vectors;
    const unsigned key = powers[1], far = powers[16 * 31 + 1];
    unsigned h = 0;
    from += threadIdx.x % 32;
#pragma unroll 2
    do {
        const uint4 v = *from;
        h = onwards(h, v.x, far, key);
        h = onwards(h, v.y, key, key);
        h = onwards(h, v.z, key, key);
        h = onwards(h, v.w, key, key);
        from += 32;
    } while (from < end);
    h = joined(h, powers);
    if (threadIdx.x % 32 == 0) out[chunk] = h;
}
__global__ void __launch_bounds__(128) fingerprints_apart(const uint4 *chunks, const unsigned *powers, unsigned *out, int vectors) {
    const int chunk = blockIdx.x * 4 + threadIdx.x / 32;
    const uint4 *from = chunks + static_cast<long long>(chunk) * vectors, *const end = from + vectors;
    const unsigned key = powers[1], far = powers[16 * 32 - 3], four = powers[4];
    uint4 h = {0, 0, 0, 0};
    from += threadIdx.x % 32;
#pragma unroll 2
    do {
        const uint4 v = *from;
        h.x = onwards(h.x, v.x, far, key);
        h.y = onwards(h.y, v.y, far, key);
        h.z = onwards(h.z, v.z, far, key);
        h.w = onwards(h.w, v.w, far, key);
        from += 32;
    } while (from < end);
    unsigned all = on(h.x, four, h.y % PRIME);
    all = on(all, four, h.z % PRIME);
    all = on(all, four, h.w % PRIME);
    all = joined(all, powers);
    if (threadIdx.x % 32 == 0) out[chunk] = all;
}

Study chunks("chunk_fingerprints_a_warp_each", "storage", 528, "fingerprints of 528 chunks of 131072 bytes as polynomials modulo 2^31 - 1",
    "each lane multiplies in one chain, byte after byte",
    {{"apart", "a chain for each word of sixteen bytes, joined at the end", {"instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int vectors = 8192;
        std::vector<unsigned> list(16 * 32, 1);
        for (size_t k = 1; k < list.size(); k++) list[k] = static_cast<unsigned>(list[k - 1] * 1103515245ull % PRIME);
        const unsigned *powers = b.copy(list);
        const uint4 *data = reinterpret_cast<const uint4 *>(b.random<unsigned>(4 * n * vectors, 0.0, 4294967295.0));
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(fingerprints, n / 4, 128, 0, data, powers, out, vectors)}, {"apart", launch(fingerprints_apart, n / 4, 128, 0, data, powers, out, vectors)}};
    });

// --- which passages of texts are the same ---

constexpr int PASSAGE = 12, WINNOWERS = 320;  // hashes of eight letters each

struct Text {
    const unsigned *words;  // four letters each
    // The mixed eight letters from `place` on.
    __device__ unsigned long long hashed(int place) const {
        const unsigned *w = words + (place >> 2);
        const int shift = (place & 3) * 8;
        unsigned long long x = static_cast<unsigned long long>(__funnelshift_r(w[1], w[2], shift)) << 32 | __funnelshift_r(w[0], w[1], shift);
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
    }
};
__global__ void winnowed(const Text text, unsigned long long *marks, int places) {
    for (int place = blockIdx.x * blockDim.x + threadIdx.x; place < places; place += gridDim.x * blockDim.x) {
        unsigned long long least = text.hashed(place + PASSAGE - 1);
        for (int back = PASSAGE - 2; back >= 0; --back) least = min(least, text.hashed(place + back));
        marks[place] = least;
    }
}
__global__ void __launch_bounds__(WINNOWERS) winnowed_once(const Text text, unsigned long long *marks, int places) {
    __shared__ unsigned long long hashes[WINNOWERS + PASSAGE];
    for (int base = blockIdx.x * WINNOWERS; base < places; base += gridDim.x * WINNOWERS) {
        hashes[threadIdx.x] = text.hashed(base + threadIdx.x);
        if (threadIdx.x < PASSAGE) hashes[WINNOWERS + threadIdx.x] = text.hashed(base + WINNOWERS + threadIdx.x);
        __syncthreads();
        unsigned long long least = hashes[threadIdx.x];
#pragma unroll
        for (int k = 1; k < PASSAGE; k++) least = min(least, hashes[threadIdx.x + k]);
        if (base + static_cast<int>(threadIdx.x) < places) marks[base + threadIdx.x] = least;
        __syncthreads();
    }
}

Study texts("passages_marked_by_their_least_hash", "text search", 7000000, "the least of twelve neighbouring 64-bit hashes of eight letters at seven million places of a text",
    "each thread hashes all twelve, as eleven neighbours do",
    {{"once", "each place hashed once by its block, into shared memory", {"integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const Text text = {b.random<unsigned>(n / 4 + 512, 0.0, 4294967295.0)};
        unsigned long long *marks = b.output<unsigned long long>(n);
        const int places = static_cast<int>(n), grid = 6 * multiprocessors();
        b.tolerance = 0.0;
        return {{"flawed", launch(winnowed, grid, WINNOWERS, 0, text, marks, places)}, {"once", launch(winnowed_once, grid, WINNOWERS, 0, text, marks, places)}};
    });

// --- how many bytes each service sends ---

constexpr int SERVICES = 2560;

struct alignas(4) Packet {
    unsigned short service, bytes;
};
template <class Sum>
__global__ void __launch_bounds__(384) traffic(const Packet *packets, float *sent, int count) {
    __shared__ Sum sums[SERVICES];
    for (int s = threadIdx.x; s < SERVICES; s += blockDim.x) sums[s] = 0;
    __syncthreads();
    const int jump = gridDim.x * blockDim.x;
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
        const Packet packet = packets[i];
        atomicAdd(sums + packet.service, static_cast<Sum>(packet.bytes));
    }
    __syncthreads();
    for (int s = threadIdx.x; s < SERVICES; s += blockDim.x)
        if (sums[s] > 0) atomicAdd(sent + s, static_cast<float>(sums[s]));
}

Study packets("bytes_of_services_in_floats", "networks", 40000000, "bytes sent by each of 2560 services, 40 million packets",
    "sums in shared memory are floats, to which few services add at a time",
    {{"whole", "sums are whole numbers", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Packet> list(n);
        for (long i = 0; i < n; i++) {
            const unsigned burst = hash(static_cast<unsigned>(i / 64)), any = hash(static_cast<unsigned>(i) + 77u);
            list[i] = {static_cast<unsigned short>((burst + any % 8 * 319) % SERVICES), static_cast<unsigned short>(40 + (any >> 8) % 1460)};
        }
        const Packet *packets = b.copy(list);
        float *sent = b.output<float>(SERVICES, true);
        const int count = static_cast<int>(n), grid = 5 * multiprocessors();
        b.tolerance = 1e-3;
        return {{"flawed", launch(traffic<float>, grid, 384, 0, packets, sent, count)}, {"whole", launch(traffic<unsigned>, grid, 384, 0, packets, sent, count)}};
    });

}  // namespace
