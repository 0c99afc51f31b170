#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
constexpr bool RELATIVE = false;
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
__global__ void noise(unsigned *data, size_t count) {
    size_t i = blockIdx.x * size_t{256} + threadIdx.x;
    if (i < count) data[i] = hash(static_cast<unsigned>(i) + 12345u);
}

struct Form { const char *name; std::function<void()> run; double diff; };
std::vector<float> times_of(const std::function<void()> &prepare, const std::function<void()> &run) {
    static void *flush = nullptr;
    if (!flush) cudaMalloc(&flush, 128 << 20);
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    std::vector<float> times;
    for (int i = 0; i < 60; ++i) {
        prepare();
        cudaMemsetAsync(flush, 0, 128 << 20);
        cudaEventRecord(a), run(), cudaEventRecord(b), cudaEventSynchronize(b);
        float ms = 0.f;
        cudaEventElapsedTime(&ms, a, b);
        if (i > 9) times.push_back(ms * 1e3f);
    }
    cudaEventDestroy(a), cudaEventDestroy(b);
    std::sort(times.begin(), times.end());
    return times;
}
template <typename T> std::vector<T> fetch(const T *data, size_t count) {
    std::vector<T> host(count);
    cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost);
    return host;
}
// Runs each form once and compares, then times all in two turns.
template <typename T> void report(int index, std::vector<Form> forms, const T *out, size_t count, const std::function<void()> &prepare) {
    std::vector<T> first;
    for (Form &f : forms) {
        prepare(), f.run();
        std::vector<T> now = fetch(out, count);
        if (first.empty()) first = now;
        for (size_t i = 0; i < count; ++i) {
            double d = std::fabs(double(now[i]) - double(first[i]));
            if (std::isnan(d)) d = 1e99;
            f.diff = std::max(f.diff, RELATIVE && d > 0 ? d / std::max(std::fabs(double(first[i])), 1e-30) : d);
        }
    }
    for (int turn = 0; turn < 2; ++turn)
        for (Form &f : forms) {
            auto t = times_of(prepare, f.run);
            printf("STMT %d %s %.3f %.3g\n", index, f.name, t[t.size() / 2], f.diff);
        }
    cudaError_t status = cudaDeviceSynchronize();
    if (status != cudaSuccess) printf("error: %s\n", cudaGetErrorString(status));
}

int main() {
    const long n = 1 << 16;
    const size_t words = n * STREAM / 4, numbers = n * COEFFICIENTS;
    unsigned char *streams;
    unsigned short *out;
    cudaMalloc(&streams, words * 4), cudaMalloc(&out, numbers * 2);
    noise<<<(words + 255) / 256, 256>>>(reinterpret_cast<unsigned *>(streams), words);
    const int grid = 32 * n / 256;
    report<unsigned short>(7, {{"as_it_is", [=] { draw_warp<<<grid, 256>>>(streams, out, n); }, 0},
        {"candidates_in_order", [=] { draw_in_order<<<grid, 256>>>(streams, out, n); }, 0},
        {"shared_vector_stores", [=] { draw_shared<false><<<grid, 256>>>(streams, out, n); }, 0},
        {"shared_vector_stores_word_loads", [=] { draw_shared<true><<<grid, 256>>>(streams, out, n); }, 0}}, out, numbers,
        [=] { cudaMemsetAsync(out, 0xff, numbers * 2); });
}
