// code_words_one_chain_of_4096_products, side flawed: what a thread reads side by side comes with one vector.
#include "../tried.cuh"

constexpr unsigned PRIME = 0x7fffffff;
constexpr int SYMBOLS = 4096, FOURS = SYMBOLS / 4;

__device__ __forceinline__ unsigned folded(unsigned long long v) {
    const unsigned sum = static_cast<unsigned>(v & PRIME) + static_cast<unsigned>(v >> 31);
    return ::min(sum, sum - PRIME);
}
__device__ __forceinline__ unsigned horner(unsigned value, unsigned x, unsigned symbol) { return folded(static_cast<unsigned long long>(value) * x + symbol); }
__device__ __forceinline__ unsigned place_of(int i) { return 3 + 7919u * i; }

__global__ void __launch_bounds__(128) code_words(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    const unsigned *message = messages + blockIdx.y * SYMBOLS;
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= places) return;
    const unsigned x = place_of(i);
    unsigned value = 0;
    for (int k = 0; k < SYMBOLS; k++) value = horner(value, x, message[k]);
    out[blockIdx.y * places + i] = value;
}
template <int UNROLLED>
__global__ void __launch_bounds__(128) code_words_vectors(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    const uint4 *message = reinterpret_cast<const uint4 *>(messages + blockIdx.y * SYMBOLS);
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= places) return;
    const unsigned x = place_of(i);
    unsigned value = 0;
#pragma unroll UNROLLED
    for (int k = 0; k < FOURS; k++) {
        const uint4 four = message[k];
        value = horner(horner(horner(horner(value, x, four.x), x, four.y), x, four.z), x, four.w);
    }
    out[blockIdx.y * places + i] = value;
}

int main() {
    const int places = 4096;
    const unsigned *m = drawn<unsigned>(8 * SYMBOLS, 0, PRIME, 1);
    unsigned *out = get<unsigned>(8 * places);
    const dim3 grid(places / 128, 8);
    judge({{"as_it_is", [=] { code_words<<<grid, 128>>>(m, out, places); }},
        {"vectors", [=] { code_words_vectors<1><<<grid, 128>>>(m, out, places); }},
        {"vectors_unrolled_4", [=] { code_words_vectors<4><<<grid, 128>>>(m, out, places); }}}, {{out, 8 * places}});
}
