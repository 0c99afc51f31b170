// polynomial_hash_one_chain_a_lane, side four_warps: several independent chains a thread
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
template <class F> float median_us(F run) {
    cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
    void *flush; cudaMalloc(&flush, 128 << 20);
    std::vector<float> t;
    for (int i = 0; i < 60; ++i) {
        cudaMemsetAsync(flush, 0, 128 << 20);
        cudaEventRecord(a), run(), cudaEventRecord(b), cudaEventSynchronize(b);
        float ms; cudaEventElapsedTime(&ms, a, b);
        if (i > 9) t.push_back(ms * 1e3f);
    }
    cudaFree(flush), cudaEventDestroy(a), cudaEventDestroy(b), std::sort(t.begin(), t.end());
    return t[t.size() / 2];
}
// Runs every form, compares with the first (the largest difference as a share of the largest value), and times two turns.
struct Form { const char *name; std::function<void()> run; };
template <class T> int measure(int index, T *out, size_t count, const std::vector<Form> &forms) {
    std::vector<T> expected(count), got(count);
    std::vector<double> diffs;
    for (size_t f = 0; f < forms.size(); ++f) {
        cudaMemset(out, 0xff, count * sizeof(T));
        forms[f].run();
        cudaMemcpy(got.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost);
        if (f == 0) expected = got;
        double most = 0, largest = 0;
        for (size_t i = 0; i < count; ++i) {
            const double u = double(expected[i]), v = double(got[i]);
            largest = std::max(largest, std::fabs(u));
            if (got[i] != expected[i]) most = std::isnan(v) ? INFINITY : std::max(most, std::max(std::fabs(u - v), 1e-30));
        }
        diffs.push_back(largest > 0 ? most / largest : most);
        if (cudaError_t e = cudaGetLastError()) return printf("%s: %s\n", forms[f].name, cudaGetErrorString(e)), 1;
    }
    for (int turn = 0; turn < 2; ++turn)
        for (size_t f = 0; f < forms.size(); ++f) printf("STMT %d %s %.3f %g\n", index, forms[f].name, median_us(forms[f].run), diffs[f]);
    if (cudaError_t e = cudaDeviceSynchronize()) return printf("%s\n", cudaGetErrorString(e)), 1;
    return 0;
}

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

__global__ void fill(unsigned *words, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) words[i] = hash(i + 1);
}
int main() {
    const int n = 512;
    std::vector<Wide> powers(POWERS, 1);
    for (int k = 1; k < POWERS; ++k) powers[k] = static_cast<Wide>(static_cast<unsigned __int128>(powers[k - 1]) * 0x1234567890abcdeull % PRIME);
    uint4 *m; Wide *keys, *out;
    cudaMalloc(&m, size_t(n) * MESSAGE * 4), cudaMalloc(&keys, POWERS * 8), cudaMalloc(&out, n * 8);
    cudaMemcpy(keys, powers.data(), POWERS * 8, cudaMemcpyHostToDevice);
    fill<<<n * MESSAGE / 256, 256>>>(reinterpret_cast<unsigned *>(m), n * MESSAGE);
    return measure(11, out, n, {
        {"as_it_is", [=] { polynomial<128, 0><<<n, 128>>>(m, keys, out); }},
        {"as_it_is_more_registers", [=] { polynomial<128, 4><<<n, 128>>>(m, keys, out); }},
        {"four_chains_few_registers", [=] { polynomial_four<128, 0><<<n, 128>>>(m, keys, out); }},
        {"four_chains", [=] { polynomial_four<128, 4><<<n, 128>>>(m, keys, out); }},
        {"two_chains", [=] { polynomial_two<128><<<n, 128>>>(m, keys, out); }},
        {"four_vectors", [=] { polynomial_items<128><<<n, 128>>>(m, keys, out); }}});
}
