// code_words_one_chain_of_4096_products, side four: more loads in flight.
#include <cuda_pipeline.h>

#include "../tried.cuh"

constexpr unsigned PRIME = 0x7fffffff;
constexpr int SYMBOLS = 4096, FOURS = SYMBOLS / 4;

__device__ __forceinline__ unsigned folded(unsigned long long v) {
    const unsigned sum = static_cast<unsigned>(v & PRIME) + static_cast<unsigned>(v >> 31);
    return ::min(sum, sum - PRIME);
}
__device__ __forceinline__ unsigned horner(unsigned value, unsigned x, unsigned symbol) { return folded(static_cast<unsigned long long>(value) * x + symbol); }
__device__ __forceinline__ unsigned place_of(int i) { return 3 + 7919u * i; }

// As it is: AHEAD = 2, BLOCKS = 0 (not said). Two blocks a multiprocessor are all there are: the others say so, for more registers.
template <int AHEAD, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS) code_words_four(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    const uint4 *message = reinterpret_cast<const uint4 *>(messages + blockIdx.y * SYMBOLS);
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= places) return;
    const unsigned x = place_of(i), square = horner(x, x, 0), fourth = horner(square, square, 0);
    unsigned a = 0, b = 0, c = 0, d = 0;
#pragma unroll AHEAD
    for (int k = 0; k < FOURS; k++) {
        const uint4 four = message[k];
        a = horner(a, fourth, four.x), b = horner(b, fourth, four.y), c = horner(c, fourth, four.z), d = horner(d, fourth, four.w);
    }
    out[blockIdx.y * places + i] = horner(horner(horner(a, x, b), x, c), x, d);
}
// The next AHEAD loads are on their way while the last ones are used.
template <int AHEAD>
__global__ void __launch_bounds__(128, 2) code_words_prefetch(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    const uint4 *message = reinterpret_cast<const uint4 *>(messages + blockIdx.y * SYMBOLS);
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= places) return;
    const unsigned x = place_of(i), square = horner(x, x, 0), fourth = horner(square, square, 0);
    unsigned a = 0, b = 0, c = 0, d = 0;
    uint4 now[AHEAD], next[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; ++u) now[u] = message[u];
#pragma unroll 2
    for (int k = 0; k < FOURS; k += AHEAD) {
        const uint4 *later = message + (k + AHEAD < FOURS ? k + AHEAD : 0);
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) next[u] = later[u];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) a = horner(a, fourth, now[u].x), b = horner(b, fourth, now[u].y), c = horner(c, fourth, now[u].z), d = horner(d, fourth, now[u].w);
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) now[u] = next[u];
    }
    out[blockIdx.y * places + i] = horner(horner(horner(a, x, b), x, c), x, d);
}
// The block copies the message (16 KB) to shared memory, asynchronously, in four pieces.
__global__ void __launch_bounds__(128, 2) code_words_async(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    constexpr int PIECES = 4, PIECE = FOURS / PIECES;
    __shared__ uint4 held[FOURS];
    const uint4 *message = reinterpret_cast<const uint4 *>(messages + blockIdx.y * SYMBOLS);
#pragma unroll
    for (int p = 0; p < PIECES; ++p) {
        for (int k = threadIdx.x; k < PIECE; k += 128) __pipeline_memcpy_async(&held[p * PIECE + k], &message[p * PIECE + k], 16);
        __pipeline_commit();
    }
    const int i = blockIdx.x * 128 + threadIdx.x;
    const unsigned x = place_of(i), square = horner(x, x, 0), fourth = horner(square, square, 0);
    unsigned a = 0, b = 0, c = 0, d = 0;
#pragma unroll
    for (int p = 0; p < PIECES; ++p) {
        __pipeline_wait_prior(PIECES - 1 - p);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < PIECE; k++) {
            const uint4 four = held[p * PIECE + k];
            a = horner(a, fourth, four.x), b = horner(b, fourth, four.y), c = horner(c, fourth, four.z), d = horner(d, fourth, four.w);
        }
    }
    if (i < places) out[blockIdx.y * places + i] = horner(horner(horner(a, x, b), x, c), x, d);
}

int main() {
    const int places = 4096;
    const unsigned *m = drawn<unsigned>(8 * SYMBOLS, 0, PRIME, 1);
    unsigned *out = get<unsigned>(8 * places);
    const dim3 grid(places / 128, 8);
    judge({{"as_it_is", [=] { code_words_four<2, 0><<<grid, 128>>>(m, out, places); }},
        {"as_it_is_more_registers", [=] { code_words_four<2, 2><<<grid, 128>>>(m, out, places); }},
        {"unroll_8_few_registers", [=] { code_words_four<8, 0><<<grid, 128>>>(m, out, places); }},
        {"unroll_8", [=] { code_words_four<8, 2><<<grid, 128>>>(m, out, places); }},
        {"unroll_16", [=] { code_words_four<16, 2><<<grid, 128>>>(m, out, places); }},
        {"prefetch_8", [=] { code_words_prefetch<8><<<grid, 128>>>(m, out, places); }},
        {"async_copy", [=] { code_words_async<<<grid, 128>>>(m, out, places); }}}, {{out, 8 * places}});
}
