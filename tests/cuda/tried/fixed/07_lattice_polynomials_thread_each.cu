// lattice_polynomials_thread_each, side warp: neighbouring threads store neighbouring addresses.
#include "../tried.cuh"

constexpr int STREAM = 672, COEFFICIENTS = 256;
constexpr unsigned MODULUS = 3329;

__global__ void draw_warp(const unsigned char *__restrict__ streams, unsigned short *__restrict__ out, int n) {
    size_t p = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (p >= n) return;
    unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1;
    const unsigned char *bytes = streams + p * STREAM + 3 * lane;
    unsigned short *polynomial = out + p * COEFFICIENTS;
    int count = 0;
    for (int i = 0; i < STREAM && count < COEFFICIENTS; i += 96) {
        unsigned a = bytes[i], b = bytes[i + 1], c = bytes[i + 2], first = a | (b & 15) << 8, second = b >> 4 | c << 4;
        unsigned firsts = __ballot_sync(~0u, first < MODULUS), seconds = __ballot_sync(~0u, second < MODULUS);
        int at = count + __popc(firsts & lower) + __popc(seconds & lower);
        if (first < MODULUS && at < COEFFICIENTS) polynomial[at] = first;
        at += first < MODULUS;
        if (second < MODULUS && at < COEFFICIENTS) polynomial[at] = second;
        count += __popc(firsts) + __popc(seconds);
    }
}

// A lane takes candidates `lane` and `lane + 32` of the 64 of a round: neighbouring lanes store neighbouring numbers.
__global__ void draw_in_order(const unsigned char *__restrict__ streams, unsigned short *__restrict__ out, int n) {
    size_t p = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (p >= n) return;
    unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1, shift = lane % 2 * 4;
    const unsigned char *bytes = streams + p * STREAM + 3 * lane / 2;
    unsigned short *polynomial = out + p * COEFFICIENTS;
    int count = 0;
    for (int i = 0; i < STREAM && count < COEFFICIENTS; i += 96) {
        unsigned first = (bytes[i] | bytes[i + 1] << 8) >> shift & 4095, second = (bytes[i + 48] | bytes[i + 49] << 8) >> shift & 4095;
        unsigned firsts = __ballot_sync(~0u, first < MODULUS), seconds = __ballot_sync(~0u, second < MODULUS);
        int at = count + __popc(firsts & lower), next = count + __popc(firsts) + __popc(seconds & lower);
        if (first < MODULUS && at < COEFFICIENTS) polynomial[at] = first;
        if (second < MODULUS && next < COEFFICIENTS) polynomial[next] = second;
        count += __popc(firsts) + __popc(seconds);
    }
}
// A warp puts its polynomial together in shared memory; each lane stores 16 bytes of it.
// WORDS: the 96 bytes of a round come as 24 words, a lane each, and are handed on by shuffles.
template <bool WORDS> __global__ void __launch_bounds__(256) draw_shared(const unsigned char *__restrict__ streams, unsigned short *__restrict__ out, int n) {
    __shared__ __align__(16) unsigned short rows[8][COEFFICIENTS];
    size_t p = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (p >= n) return;
    unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1;
    const unsigned char *bytes = streams + p * STREAM + 3 * lane;
    const unsigned *words = reinterpret_cast<const unsigned *>(streams + p * STREAM) + min(lane, 23u);
    unsigned short *polynomial = out + p * COEFFICIENTS, *row = rows[threadIdx.x / 32];
    int count = 0;
    for (int i = 0; i < STREAM && count < COEFFICIENTS; i += 96) {
        unsigned first, second;
        if (WORDS) {
            unsigned word = words[i / 4], low = __shfl_sync(~0u, word, 3 * lane / 4), high = __shfl_sync(~0u, word, (3 * lane + 2) / 4);
            unsigned three = __funnelshift_r(low, high, 3 * lane % 4 * 8);
            first = three & 4095, second = three >> 12 & 4095;
        } else {
            unsigned a = bytes[i], b = bytes[i + 1], c = bytes[i + 2];
            first = a | (b & 15) << 8, second = b >> 4 | c << 4;
        }
        unsigned firsts = __ballot_sync(~0u, first < MODULUS), seconds = __ballot_sync(~0u, second < MODULUS);
        int at = count + __popc(firsts & lower) + __popc(seconds & lower);
        if (first < MODULUS && at < COEFFICIENTS) row[at] = first;
        at += first < MODULUS;
        if (second < MODULUS && at < COEFFICIENTS) row[at] = second;
        count += __popc(firsts) + __popc(seconds);
    }
    __syncwarp();
    if (count >= COEFFICIENTS) reinterpret_cast<uint4 *>(polynomial)[lane] = reinterpret_cast<const uint4 *>(row)[lane];
    else for (int k = lane; k < count; k += 32) polynomial[k] = row[k];
}

int main() {
    const int n = 1 << 16, grid = 32 * n / 256;
    const size_t numbers = size_t(n) * COEFFICIENTS;
    const unsigned char *streams = drawn<unsigned char>(size_t(n) * STREAM, 0, 256, 1);
    unsigned short *out = get<unsigned short>(numbers);
    judge({{"as_it_is", [=] { draw_warp<<<grid, 256>>>(streams, out, n); }},
        {"candidates_in_order", [=] { draw_in_order<<<grid, 256>>>(streams, out, n); }},
        {"shared_vector_stores", [=] { draw_shared<false><<<grid, 256>>>(streams, out, n); }},
        {"shared_vector_stores_word_loads", [=] { draw_shared<true><<<grid, 256>>>(streams, out, n); }}}, {{out, numbers}});
}
