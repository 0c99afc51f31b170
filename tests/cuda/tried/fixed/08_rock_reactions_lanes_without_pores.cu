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
constexpr bool RELATIVE = true;
constexpr int SUBSTEPS = 12;

struct Rock {
    const unsigned char *pore;
    const float *acid, *mineral, *heat;
};

__device__ __forceinline__ float2 react(float acid, float mineral, float heat) {
    const float rate = 0.2f * __expf(-1.5f / heat);
    for (int step = 0; step < SUBSTEPS; step++) {
        const float dissolved = rate * acid * sqrtf(mineral) / (0.3f + acid);
        acid = fmaxf(acid - 0.5f * dissolved, 0.f) + 0.01f * __expf(-acid);
        mineral = fmaxf(mineral - 0.4f * dissolved, 0.f);
    }
    return make_float2(acid, mineral);
}
__global__ void __launch_bounds__(256) dissolve_listed(Rock rock, float2 *__restrict__ out, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    out[i] = react(rock.acid[i], rock.mineral[i], rock.heat[i]);
}

// acid, mineral, heat, (nothing): one load of 16 bytes
__global__ void __launch_bounds__(256) dissolve_records(const float4 *__restrict__ rock, float2 *__restrict__ out, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    const float4 cell = rock[i];
    out[i] = react(cell.x, cell.y, cell.z);
}
__global__ void __launch_bounds__(256) pack(Rock rock, float4 *__restrict__ records, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) records[i] = make_float4(rock.acid[i], rock.mineral[i], rock.heat[i], 0.f);
}
// More than was said: records of pores only, in the order of the list, with the place as fourth value.
__global__ void __launch_bounds__(256) dissolve_pore_records(const float4 *__restrict__ rock, float2 *__restrict__ out, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const float4 cell = rock[k];
    out[__float_as_int(cell.w)] = react(cell.x, cell.y, cell.z);
}
__global__ void __launch_bounds__(256) pack_pores(Rock rock, float4 *__restrict__ records, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    records[k] = make_float4(rock.acid[i], rock.mineral[i], rock.heat[i], __int_as_float(i));
}
__global__ void noise(float *data, int count, float low, float high, unsigned seed) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) data[i] = low + (high - low) * (hash(i + seed * 0x9e3779b9u) >> 8) / 16777216.f;
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
    const long n = 192, cells = n * n * n;
    std::vector<unsigned char> pore(cells);
    std::vector<int> pores;
    for (long i = 0; i < cells; i++) {
        const unsigned grain = hash(static_cast<unsigned>(i / 3 % n + i / n / 4 % n * 1000 + i / n / n / 4 * 1000000));
        pore[i] = grain % 5 == 0 ? hash(static_cast<unsigned>(i)) % 8 != 0 : hash(static_cast<unsigned>(i)) % 40 == 0;
        if (pore[i]) pores.push_back(static_cast<int>(i));
    }
    const int count = static_cast<int>(cells), listed = static_cast<int>(pores.size()), grid = (listed + 255) / 256, all = (count + 255) / 256;
    if (grid != 5380) printf("grid is %d, not 5380\n", grid);
    unsigned char *is_pore;
    float *values[3];
    float2 *out;
    float4 *records, *pore_records;
    int *list;
    cudaMalloc(&is_pore, cells), cudaMalloc(&out, cells * sizeof(float2)), cudaMalloc(&records, cells * sizeof(float4));
    cudaMalloc(&pore_records, listed * sizeof(float4)), cudaMalloc(&list, listed * sizeof(int));
    cudaMemcpy(is_pore, pore.data(), cells, cudaMemcpyHostToDevice), cudaMemcpy(list, pores.data(), listed * sizeof(int), cudaMemcpyHostToDevice);
    const float low[3] = {0.1f, 0.2f, 0.8f}, high[3] = {1.f, 2.f, 1.3f};
    for (int q = 0; q < 3; ++q) {
        cudaMalloc(&values[q], cells * sizeof(float));
        noise<<<all, 256>>>(values[q], count, low[q], high[q], q + 1);
    }
    const Rock rock{is_pore, values[0], values[1], values[2]};
    pack<<<all, 256>>>(rock, records, count);
    pack_pores<<<grid, 256>>>(rock, pore_records, list, listed);
    report<float>(8, {{"as_it_is", [=] { dissolve_listed<<<grid, 256>>>(rock, out, list, listed); }, 0},
        {"records_of_16_bytes", [=] { dissolve_records<<<grid, 256>>>(records, out, list, listed); }, 0},
        {"records_with_packing_timed", [=] { pack<<<all, 256>>>(rock, records, count); dissolve_records<<<grid, 256>>>(records, out, list, listed); }, 0},
        {"pore_records_in_list_order", [=] { dissolve_pore_records<<<grid, 256>>>(pore_records, out, listed); }, 0}},
        reinterpret_cast<float *>(out), 2 * cells, [=] { cudaMemsetAsync(out, 0, cells * sizeof(float2)); });
}
