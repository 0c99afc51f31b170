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

// As the study's data: words of random bits.
template <class T> __global__ void fill(T *data, size_t count, double low, double high, unsigned seed) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) data[i] = T(floor(low + hash(unsigned(i) ^ hash(seed)) / 4294967296.0 * (high - low)));
}
template <class T> T *random_numbers(size_t count, double low, double high, unsigned seed) {
    T *data; cudaMalloc(&data, count * sizeof(T));
    fill<<<unsigned((count + 255) / 256), 256>>>(data, count, low, high, seed);
    return data;
}

// A plane of blocks of 64 coefficients; luma has a table of its own.
__global__ void quantise(const short *coefficients, const unsigned short *tables, short *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    int step = tables[(plane > 0) * 64 + i % 64], value = coefficients[at];
    out[at] = value < 0 ? -((-value + step / 2) / step) : (value + step / 2) / step;
}

// Rewrites: one division for both signs.
enum Form14 { OF_AMOUNT, OF_SIGNED, OF_UNSIGNED };
template <Form14 FORM>
__global__ void quantise_once(const short *coefficients, const unsigned short *tables, short *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    int step = tables[(plane > 0) * 64 + i % 64], value = coefficients[at];
    if (FORM == OF_SIGNED) {  // half a step away from zero, then towards it
        out[at] = (value + (value < 0 ? -(step / 2) : step / 2)) / step;
    } else {
        int amount = abs(value) + step / 2;
        amount = FORM == OF_UNSIGNED ? static_cast<int>(static_cast<unsigned>(amount) / static_cast<unsigned>(step)) : amount / step;
        out[at] = value < 0 ? -amount : amount;
    }
}

int main() {
    const int n = 1 << 23;
    std::vector<unsigned short> steps(128);
    for (int k = 0; k < 128; ++k) steps[k] = static_cast<unsigned short>(3 + k % 64 + hash(k + 23) % 40);
    unsigned short *tables; cudaMalloc(&tables, 256), cudaMemcpy(tables, steps.data(), 256, cudaMemcpyHostToDevice);
    short *in = (short *)random_numbers<unsigned>(size_t(3) * n / 2, 0, 4294967295.0, 1), *out;
    cudaMalloc(&out, size_t(3) * n * sizeof(short));
    const dim3 grid(n / 256, 3);
    const auto nothing = [] {};
    study(14, {{"as_it_is", nothing, [=] { quantise<<<grid, 256>>>(in, tables, out, n); }},
        {"one_division", nothing, [=] { quantise_once<OF_AMOUNT><<<grid, 256>>>(in, tables, out, n); }},
        {"one_signed_division", nothing, [=] { quantise_once<OF_SIGNED><<<grid, 256>>>(in, tables, out, n); }},
        {"one_unsigned_division", nothing, [=] { quantise_once<OF_UNSIGNED><<<grid, 256>>>(in, tables, out, n); }}}, out, size_t(3) * n);
}
