#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <type_traits>
#include <vector>
#include <cuda_runtime.h>
struct Form { const char *name; std::function<void()> prepare, run; };
// Compares every form with the first, then times all in two turns, with a cold L2.
template <class T> void study(int index, const std::vector<Form> &forms, T *out, size_t count) {
    std::vector<T> reference(count), own(count); std::vector<double> diff;
    for (const Form &f : forms) {
        std::vector<T> &to = diff.empty() ? reference : own;
        cudaMemset(out, 0xff, count * sizeof(T)), f.prepare(), f.run();
        cudaMemcpy(to.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost);
        double most = 0, largest = 0;
        for (size_t i = 0; i < count; ++i) {
            double d = std::abs(double(to[i]) - double(reference[i]));
            most = std::max(most, std::isnan(d) ? double(INFINITY) : d), largest = std::max(largest, std::abs(double(reference[i])));
        }
        diff.push_back(std::is_floating_point<T>::value ? most / largest : most);
        if (cudaError_t e = cudaGetLastError()) fprintf(stderr, "%s: %s\n", f.name, cudaGetErrorString(e)), exit(1);
    }
    cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
    void *flush; cudaMalloc(&flush, 128 << 20);
    for (int turn = 0; turn < 2; ++turn)
        for (size_t f = 0; f < forms.size(); ++f) {
            std::vector<float> t;
            for (int i = 0; i < 60; ++i) {
                forms[f].prepare(), cudaMemsetAsync(flush, i, 128 << 20);
                cudaEventRecord(a), forms[f].run(), cudaEventRecord(b), cudaEventSynchronize(b);
                float ms; cudaEventElapsedTime(&ms, a, b); if (i > 9) t.push_back(ms * 1e3f);
            }
            std::sort(t.begin(), t.end());
            printf("STMT %d %s %.3f %g\n", index, forms[f].name, t[t.size() / 2], diff[f]);
        }
    if (cudaError_t e = cudaGetLastError()) fprintf(stderr, "%s\n", cudaGetErrorString(e)), exit(1);
}
__host__ __device__ __forceinline__ unsigned hash(unsigned x) { x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu; return x ^ (x >> 16); }
// As the studies' data: whole numbers of low ... high - 1.
template <class T> __global__ void fill(T *data, size_t count, double low, double high, unsigned seed) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) data[i] = T(floor(low + hash(unsigned(i) ^ hash(seed)) / 4294967296.0 * (high - low)));
}
template <class T> T *random_numbers(size_t count, double low, double high, unsigned seed) {
    T *data; cudaMalloc(&data, count * sizeof(T));
    fill<<<unsigned((count + 255) / 256), 256>>>(data, count, low, high, seed);
    return data;
}

__global__ void min_plus(const int *a, const int *b, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int best = 1 << 29;
    for (int k = 0; k < n; k++) best = min(best, a[y * n + k] + b[k * n + x]);
    c[y * n + x] = best;
}

// Rewrites. n is a multiple of 4.
__device__ __forceinline__ void lower(int4 &best, int a, int4 b) {
    best.x = min(best.x, a + b.x), best.y = min(best.y, a + b.y), best.z = min(best.z, a + b.z), best.w = min(best.w, a + b.w);
}
// Four results in a row a thread; four of a row of a in a load, too.
template <int BLOCKS>
__global__ void __launch_bounds__(256, BLOCKS) min_plus_four(const int4 *a, const int4 *b, int4 *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, pitch = n / 4;
    int4 best = make_int4(1 << 29, 1 << 29, 1 << 29, 1 << 29);
    const int4 *row = a + y * pitch;
    b += x;
#pragma unroll(BLOCKS == 8 ? 1 : 2)
    for (int k = 0; k < n; k += 4, b += 4 * pitch) {
        int4 u = *row++, v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = b[i * pitch];
        lower(best, u.x, v[0]), lower(best, u.y, v[1]), lower(best, u.z, v[2]), lower(best, u.w, v[3]);
    }
    c[y * pitch + x] = best;
}
// Four results in a row a thread, a read as before.
__global__ void min_plus_four_of_b(const int *a, const int4 *b, int4 *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, pitch = n / 4;
    int4 best = make_int4(1 << 29, 1 << 29, 1 << 29, 1 << 29);
    for (int k = 0; k < n; k++) lower(best, a[y * n + k], b[k * pitch + x]);
    c[y * pitch + x] = best;
}
// A result a thread as before, four of a row of a in a load.
__global__ void min_plus_four_of_a(const int4 *a, const int *b, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int best = 1 << 29;
#pragma unroll 2
    for (int k = 0; k < n; k += 4) {
        int4 u = a[(y * n + k) / 4];
        const int *from = b + k * n + x;
        int v0 = from[0], v1 = from[n], v2 = from[2 * n], v3 = from[3 * n];
        best = min(min(best, u.x + v0), u.y + v1), best = min(min(best, u.z + v2), u.w + v3);
    }
    c[y * n + x] = best;
}

int main() {
    const int n = 1024;
    int *a = random_numbers<int>(n * n, 0, 1000000, 1), *b = random_numbers<int>(n * n, 0, 1000000, 2), *c;
    cudaMalloc(&c, n * n * sizeof(int));
    const int4 *a4 = (const int4 *)a, *b4 = (const int4 *)b;
    int4 *c4 = (int4 *)c;
    const auto nothing = [] {};
    study(12, {{"as_it_is", nothing, [=] { min_plus<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, c, n); }},
        {"16_bytes_a_thread", nothing, [=] { min_plus_four<1><<<dim3(n / 128, n / 8), dim3(32, 8)>>>(a4, b4, c4, n); }},
        {"16_bytes_32_registers", nothing, [=] { min_plus_four<8><<<dim3(n / 128, n / 8), dim3(32, 8)>>>(a4, b4, c4, n); }},
        {"16_bytes_block_8x32", nothing, [=] { min_plus_four<1><<<dim3(n / 32, n / 32), dim3(8, 32)>>>(a4, b4, c4, n); }},
        {"16_bytes_of_b_and_c", nothing, [=] { min_plus_four_of_b<<<dim3(n / 128, n / 8), dim3(32, 8)>>>(a, b4, c4, n); }},
        {"16_bytes_of_a_only", nothing, [=] { min_plus_four_of_a<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a4, b, c, n); }}}, c, size_t(n) * n);
}
