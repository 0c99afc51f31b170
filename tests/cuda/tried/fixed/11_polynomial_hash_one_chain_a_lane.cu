// polynomial_hash_one_chain_a_lane, side four_warps: several independent chains a thread.
#include "../tried.cuh"

using Wide = unsigned long long;
constexpr Wide PRIME = (1ull << 61) - 1;
constexpr int MESSAGE = 32768;  // words
constexpr int POWERS = 513;     // of the key, from 0 on

__device__ __forceinline__ Wide horner(Wide h, Wide m, Wide w) {
    Wide low, high;
    asm("mul.lo.u64 %0, %1, %2;" : "=l"(low) : "l"(h), "l"(m));
    asm("mul.hi.u64 %0, %1, %2;" : "=l"(high) : "l"(h), "l"(m));
    Wide sum = (low & PRIME) + (high << 3 | low >> 61) + w;
    return (sum & PRIME) + (sum >> 61);
}
__device__ __forceinline__ Wide lowest_residue(Wide h) {
    h = (h & PRIME) + (h >> 61);
    return h >= PRIME ? h - PRIME : h;
}
template <int THREADS>
__device__ __forceinline__ Wide block_sum(Wide h) {
    __shared__ Wide parts[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) h = lowest_residue(h + __shfl_xor_sync(~0u, h, step));
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = h;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int k = 1; k < THREADS / 32; ++k) h = lowest_residue(h + parts[k]);
    }
    return h;
}
// As it is: BLOCKS = 0 (not said). Four blocks a multiprocessor are all there are: saying so allows more registers.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) polynomial(const uint4 *messages, const Wide *powers, Wide *out) {
    const uint4 *message = messages + static_cast<size_t>(blockIdx.x) * (MESSAGE / 4) + threadIdx.x;
    Wide key = powers[1], jump = powers[4 * THREADS - 3], h = 0;
#pragma unroll 8
    for (int i = 0; i < MESSAGE / 4; i += THREADS) {
        uint4 words = message[i];
        h = horner(h, jump, words.x), h = horner(h, key, words.y), h = horner(h, key, words.z), h = horner(h, key, words.w);
    }
    h = block_sum<THREADS>(horner(h, powers[4 * THREADS - 4 - 4 * threadIdx.x], 0));
    if (threadIdx.x == 0) out[blockIdx.x] = h;
}
// Every word of a vector is a polynomial of its own, in the power of a step.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) polynomial_four(const uint4 *__restrict__ messages, const Wide *__restrict__ powers, Wide *__restrict__ out) {
    const uint4 *message = messages + static_cast<size_t>(blockIdx.x) * (MESSAGE / 4) + threadIdx.x;
    Wide key = powers[1], jump = powers[4 * THREADS], a = 0, b = 0, c = 0, d = 0;
#pragma unroll 8
    for (int i = 0; i < MESSAGE / 4; i += THREADS) {
        uint4 words = message[i];
        a = horner(a, jump, words.x), b = horner(b, jump, words.y), c = horner(c, jump, words.z), d = horner(d, jump, words.w);
    }
    Wide h = horner(horner(horner(a, key, b), key, c), key, d);
    h = block_sum<THREADS>(horner(h, powers[4 * THREADS - 4 - 4 * threadIdx.x], 0));
    if (threadIdx.x == 0) out[blockIdx.x] = h;
}
// Even and odd words, in the key's square.
template <int THREADS>
__global__ void __launch_bounds__(THREADS, 4) polynomial_two(const uint4 *__restrict__ messages, const Wide *__restrict__ powers, Wide *__restrict__ out) {
    const uint4 *message = messages + static_cast<size_t>(blockIdx.x) * (MESSAGE / 4) + threadIdx.x;
    Wide square = powers[2], jump = powers[4 * THREADS - 2], a = 0, b = 0;
#pragma unroll 8
    for (int i = 0; i < MESSAGE / 4; i += THREADS) {
        uint4 words = message[i];
        a = horner(a, jump, words.x), b = horner(b, jump, words.y), a = horner(a, square, words.z), b = horner(b, square, words.w);
    }
    Wide h = horner(a, powers[1], b);
    h = block_sum<THREADS>(horner(h, powers[4 * THREADS - 4 - 4 * threadIdx.x], 0));
    if (threadIdx.x == 0) out[blockIdx.x] = h;
}
// Four vectors at once, a chain for each.
template <int THREADS>
__global__ void __launch_bounds__(THREADS, 4) polynomial_items(const uint4 *__restrict__ messages, const Wide *__restrict__ powers, Wide *__restrict__ out) {
    const uint4 *message = messages + static_cast<size_t>(blockIdx.x) * (MESSAGE / 4) + threadIdx.x;
    const Wide key = powers[1], step = powers[4 * THREADS], jump = horner(horner(horner(powers[4 * THREADS - 3], step, 0), step, 0), step, 0);
    Wide h[4] = {};
#pragma unroll 2
    for (int i = 0; i < MESSAGE / 4; i += 4 * THREADS) {
        uint4 words[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) words[k] = message[i + k * THREADS];
#pragma unroll
        for (int k = 0; k < 4; ++k) h[k] = horner(h[k], jump, words[k].x);
#pragma unroll
        for (int k = 0; k < 4; ++k) h[k] = horner(h[k], key, words[k].y);
#pragma unroll
        for (int k = 0; k < 4; ++k) h[k] = horner(h[k], key, words[k].z);
#pragma unroll
        for (int k = 0; k < 4; ++k) h[k] = horner(h[k], key, words[k].w);
    }
    Wide all = horner(horner(horner(h[0], step, h[1]), step, h[2]), step, h[3]);
    all = block_sum<THREADS>(horner(all, powers[4 * THREADS - 4 - 4 * threadIdx.x], 0));
    if (threadIdx.x == 0) out[blockIdx.x] = all;
}

int main() {
    const int n = 512;
    std::vector<Wide> powers(POWERS, 1);
    for (int k = 1; k < POWERS; ++k) powers[k] = static_cast<Wide>(static_cast<unsigned __int128>(powers[k - 1]) * 0x1234567890abcdeull % PRIME);
    const uint4 *m = reinterpret_cast<const uint4 *>(drawn<unsigned>(size_t(n) * MESSAGE, 0, 4294967296.0, 1));
    const Wide *keys = copied(powers);
    Wide *out = get<Wide>(n);
    // Compared in halves: a double holds no 61 bits.
    judge({{"as_it_is", [=] { polynomial<128, 0><<<n, 128>>>(m, keys, out); }},
        {"as_it_is_more_registers", [=] { polynomial<128, 4><<<n, 128>>>(m, keys, out); }},
        {"four_chains_few_registers", [=] { polynomial_four<128, 0><<<n, 128>>>(m, keys, out); }},
        {"four_chains", [=] { polynomial_four<128, 4><<<n, 128>>>(m, keys, out); }},
        {"two_chains", [=] { polynomial_two<128><<<n, 128>>>(m, keys, out); }},
        {"four_vectors", [=] { polynomial_items<128><<<n, 128>>>(m, keys, out); }}}, {{reinterpret_cast<unsigned *>(out), 2 * n}});
}
