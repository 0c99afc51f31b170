// focal_loss_pow, side flawed: four elements a thread, 16 bytes an access
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>
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

// As the studies fill their buffers.
template <class T> __global__ void fill_kernel(T *data, size_t count, double low, double high, unsigned seed) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
        data[i] = static_cast<T>(low + hash(static_cast<unsigned>(i) ^ hash(seed)) / 4294967296.0 * (high - low));
}
template <class T> T *filled(size_t count, double low, double high, unsigned seed) {
    T *data;
    cudaMalloc(&data, count * sizeof(T));
    fill_kernel<<<1056, 256>>>(data, count, low, high, seed);
    return data;
}

// As it is in the study.
__global__ void focal_loss(const float *logit, const unsigned char *label, float *loss, float alpha, float gamma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p = 1.f / (1.f + expf(-logit[i]));
    float pt = label[i] ? p : 1.f - p;
    float a = label[i] ? alpha : 1.f - alpha;
    loss[i] = -a * powf(1.f - pt, gamma) * logf(fmaxf(pt, 1e-7f));
}
// The same arithmetic, of values that are in registers.
__device__ __forceinline__ float focal(float logit, unsigned char label, float alpha, float gamma) {
    float p = 1.f / (1.f + expf(-logit));
    float pt = label ? p : 1.f - p;
    float a = label ? alpha : 1.f - alpha;
    return -a * powf(1.f - pt, gamma) * logf(fmaxf(pt, 1e-7f));
}
__global__ void focal_loss_quads(const float *__restrict__ logit, const unsigned char *__restrict__ label, float *__restrict__ loss, float alpha, float gamma, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        const float4 x = *reinterpret_cast<const float4 *>(logit + i);
        const uchar4 l = *reinterpret_cast<const uchar4 *>(label + i);
        *reinterpret_cast<float4 *>(loss + i) = make_float4(focal(x.x, l.x, alpha, gamma), focal(x.y, l.y, alpha, gamma), focal(x.z, l.z, alpha, gamma), focal(x.w, l.w, alpha, gamma));
    } else {
        for (; i < n; i++) loss[i] = focal(logit[i], label[i], alpha, gamma);
    }
}
// The same without __restrict__ and without the remainder, which four divides here.
__global__ void focal_loss_quads_plain(const float4 *logit, const uchar4 *label, float4 *loss, float alpha, float gamma, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 x = logit[i];
    const uchar4 l = label[i];
    loss[i] = make_float4(focal(x.x, l.x, alpha, gamma), focal(x.y, l.y, alpha, gamma), focal(x.z, l.z, alpha, gamma), focal(x.w, l.w, alpha, gamma));
}
__global__ void focal_loss_pairs(const float2 *logit, const uchar2 *label, float2 *loss, float alpha, float gamma, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const float2 x = logit[i];
    const uchar2 l = label[i];
    loss[i] = make_float2(focal(x.x, l.x, alpha, gamma), focal(x.y, l.y, alpha, gamma));
}
// Four elements a thread, the arithmetic in a loop that is not unrolled: the code of one element.
__global__ void focal_loss_quads_rolled(const float4 *logit, const uchar4 *label, float4 *loss, float alpha, float gamma, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 x = logit[i];
    uchar4 l = label[i];
#pragma unroll 1
    for (int k = 0; k < 4; k++) {  // around the ring
        x = make_float4(x.y, x.z, x.w, focal(x.x, l.x, alpha, gamma));
        l = make_uchar4(l.y, l.z, l.w, l.x);
    }
    loss[i] = x;
}

int main() {
    const int n = 1 << 24;
    const float *x = filled<float>(n, -6, 6, 1);
    const unsigned char *label = filled<unsigned char>(n, 0, 2, 2);
    float *loss;
    cudaMalloc(&loss, size_t(n) * 4);
    auto x4 = reinterpret_cast<const float4 *>(x);
    auto l4 = reinterpret_cast<const uchar4 *>(label);
    auto out4 = reinterpret_cast<float4 *>(loss);
    return measure(9, loss, n, {
        {"as_it_is", [=] { focal_loss<<<n / 256, 256>>>(x, label, loss, 0.25f, 2.f, n); }},
        {"quads", [=] { focal_loss_quads<<<n / 1024, 256>>>(x, label, loss, 0.25f, 2.f, n); }},
        {"quads_plain", [=] { focal_loss_quads_plain<<<n / 1024, 256>>>(x4, l4, out4, 0.25f, 2.f, n / 4); }},
        {"quads_rolled", [=] { focal_loss_quads_rolled<<<n / 1024, 256>>>(x4, l4, out4, 0.25f, 2.f, n / 4); }},
        {"pairs", [=] { focal_loss_pairs<<<n / 512, 256>>>(reinterpret_cast<const float2 *>(x), reinterpret_cast<const uchar2 *>(label), reinterpret_cast<float2 *>(loss), 0.25f, 2.f, n / 2); }}});
}
