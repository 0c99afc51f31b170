// viterbi_barrier_each_step, side flawed: up to 16 bytes an access.
#include "../tried.cuh"

__global__ void __launch_bounds__(64) viterbi(const signed char *soft, unsigned long long *decisions, int *best, int steps) {
    __shared__ int metric[2][64];
    int s = threadIdx.x;
    const signed char *in = soft + size_t(blockIdx.x) * steps * 2;
    metric[0][s] = s ? 1000 : 0;
    __syncthreads();
    int p0 = s >> 1, p1 = p0 + 32;
    int o0 = __popc(s & 0x2d) & 1, o1 = __popc(s & 0x33) & 1;
    for (int t = 0; t < steps; t++) {
        int a = in[2 * t], b = in[2 * t + 1], cost = (o0 ? a : -a) + (o1 ? b : -b);
        int m0 = metric[t & 1][p0] + cost, m1 = metric[t & 1][p1] - cost;
        metric[t + 1 & 1][s] = min(m0, m1);
        unsigned bits = __ballot_sync(~0u, m1 < m0);
        if (s % 32 == 0) reinterpret_cast<unsigned *>(decisions)[(size_t(blockIdx.x) * steps + t) * 2 + s / 32] = bits;
        __syncthreads();
    }
    best[blockIdx.x * 64 + s] = metric[steps & 1][s];
}
// Steps in groups of eight (`steps` is a multiple). STORES: the decisions of a group meet in shared memory, four threads
// store them, 16 bytes each. AHEAD: the next group's inputs are on their way while this one's are used.
template <bool STORES, bool AHEAD>
__global__ void __launch_bounds__(64) viterbi_wide(const signed char *__restrict__ soft, unsigned long long *__restrict__ decisions, int *__restrict__ best, int steps) {
    __shared__ int metric[2][64];
    __shared__ uint4 held[2][4];
    int s = threadIdx.x, groups = steps / 8;
    const uint4 *in = reinterpret_cast<const uint4 *>(soft + size_t(blockIdx.x) * steps * 2);
    metric[0][s] = s ? 1000 : 0;
    __syncthreads();
    int p0 = s >> 1, p1 = p0 + 32;
    int o0 = __popc(s & 0x2d) & 1, o1 = __popc(s & 0x33) & 1;
    uint4 next = in[0];
    for (int g = 0; g < groups; g++) {
        const uint4 now = AHEAD ? next : in[g];
        if (AHEAD) next = in[min(g + 1, groups - 1)];
        const unsigned words[4] = {now.x, now.y, now.z, now.w};
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const unsigned two = words[k / 2] >> k % 2 * 16;
            int a = static_cast<signed char>(two), b = static_cast<signed char>(two >> 8), cost = (o0 ? a : -a) + (o1 ? b : -b);
            int m0 = metric[k & 1][p0] + cost, m1 = metric[k & 1][p1] - cost;
            metric[k + 1 & 1][s] = min(m0, m1);
            unsigned bits = __ballot_sync(~0u, m1 < m0);
            if (s % 32 == 0) {
                if (STORES) reinterpret_cast<unsigned *>(held[g & 1])[k * 2 + s / 32] = bits;
                else reinterpret_cast<unsigned *>(decisions)[(size_t(blockIdx.x) * steps + g * 8 + k) * 2 + s / 32] = bits;
            }
            __syncthreads();
        }
        if (STORES && s < 4) reinterpret_cast<uint4 *>(decisions)[(size_t(blockIdx.x) * groups + g) * 4 + s] = held[g & 1][s];
    }
    best[blockIdx.x * 64 + s] = metric[0][s];
}

int main() {
    const int frames = 4096, steps = 512;
    const size_t words = size_t(frames) * steps * 2;
    const signed char *soft = drawn<signed char>(words, -15, 16, 1);
    unsigned *bits = get<unsigned>(words);  // compared as words: a double holds these exactly
    unsigned long long *decisions = reinterpret_cast<unsigned long long *>(bits);
    int *best = get<int>(frames * 64);
    judge({{"as_it_is", [=] { viterbi<<<frames, 64>>>(soft, decisions, best, steps); }},
        {"loads_16_bytes", [=] { viterbi_wide<false, false><<<frames, 64>>>(soft, decisions, best, steps); }},
        {"loads_and_stores_16_bytes", [=] { viterbi_wide<true, false><<<frames, 64>>>(soft, decisions, best, steps); }},
        {"loads_ahead_and_stores_16_bytes", [=] { viterbi_wide<true, true><<<frames, 64>>>(soft, decisions, best, steps); }}},
        {{bits, words}, {best, frames * 64}});
}
