// 15: Viterbi, a barrier each step, side "flawed"; inputs of eight steps in one load of 16 bytes, decisions in stores of 16 bytes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s: line %d\n", cudaGetErrorString(e), __LINE__); return 1; } } while (0)

__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
template <typename T> __global__ void fill(T *data, size_t count, double low, double high, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        const double value = low + hash(unsigned(i) ^ hash(seed)) / 4294967296.0 * (high - low);
        data[i] = T(sizeof(T) == 1 ? floor(value) : value);
    }
}
// Largest difference; of integers, so 0 is wanted.
template <typename T> double difference(const std::vector<T> &right, const std::vector<T> &other) {
    double most = 0.0;
    for (size_t i = 0; i < right.size(); ++i) {
        const double d = std::abs(double(right[i]) - double(other[i]));
        if (!(d <= most)) most = d;  // NaN, too
        if (std::isnan(most)) return most;
    }
    return most;
}
// Median of 50 launches after 10, each behind a flush of the L2 cache.
static float median_time(const std::function<void()> &run, void *flush) {
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    std::vector<float> times;
    for (int i = 0; i < 60; ++i) {
        cudaMemsetAsync(flush, 0, 128 << 20);
        cudaEventRecord(a), run(), cudaEventRecord(b), cudaEventSynchronize(b);
        float ms = 0.f;
        cudaEventElapsedTime(&ms, a, b);
        if (i > 9) times.push_back(ms * 1e3f);
    }
    cudaEventDestroy(a), cudaEventDestroy(b);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}
struct Form { const char *name; std::function<void()> run; double diff; };


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
    signed char *soft;
    unsigned long long *decisions;
    int *best;
    void *flush;
    CHECK(cudaMalloc(&soft, words)); CHECK(cudaMalloc(&decisions, words * 4)); CHECK(cudaMalloc(&best, frames * 64 * 4)); CHECK(cudaMalloc(&flush, 128 << 20));
    fill<<<1056, 256>>>(soft, words, -15, 16, 1);
    CHECK(cudaDeviceSynchronize());
    std::vector<Form> forms = {
        {"as_it_is", [&] { viterbi<<<frames, 64>>>(soft, decisions, best, steps); }, 0},
        {"loads_16_bytes", [&] { viterbi_wide<false, false><<<frames, 64>>>(soft, decisions, best, steps); }, 0},
        {"loads_and_stores_16_bytes", [&] { viterbi_wide<true, false><<<frames, 64>>>(soft, decisions, best, steps); }, 0},
        {"loads_ahead_and_stores_16_bytes", [&] { viterbi_wide<true, true><<<frames, 64>>>(soft, decisions, best, steps); }, 0},
    };
    std::vector<int> right_best(frames * 64), other_best(frames * 64);
    std::vector<unsigned> right(words), other(words);
    for (Form &form : forms) {
        CHECK(cudaMemset(decisions, 0xff, words * 4)); CHECK(cudaMemset(best, 0xff, frames * 64 * 4));
        form.run();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(other.data(), decisions, words * 4, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(other_best.data(), best, frames * 64 * 4, cudaMemcpyDeviceToHost));
        if (&form == &forms[0]) right = other, right_best = other_best;
        form.diff = std::max(difference(right, other), difference(right_best, other_best));
    }
    for (int turn = 0; turn < 2; ++turn)
        for (const Form &form : forms) printf("STMT 15 %s %.3f %.3g\n", form.name, median_time(form.run, flush), form.diff);
    CHECK(cudaDeviceSynchronize());
}
