// bessel_recurrence_a_value_at_a_time, side flawed: more loads in flight
#include "../tried.cuh"

#include <cuda_pipeline.h>

constexpr int HIGHEST = 48;

// J0 and J1 of several values at once.
template <int VALUES>
__device__ __forceinline__ void bessel(const float (&x)[VALUES], float2 (&out)[VALUES]) {
    float twice[VALUES], above[VALUES], now[VALUES], sum[VALUES];
#pragma unroll
    for (int v = 0; v < VALUES; v++) twice[v] = 2.0f / x[v], above[v] = 0.0f, now[v] = 1e-30f, sum[v] = 0.0f;
#pragma unroll 4
    for (int k = HIGHEST; k > 0; k -= 2) {
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
            const float odd = k * twice[v] * now[v] - above[v];  // order k - 1
            sum[v] += now[v];
            above[v] = odd, now[v] = (k - 1) * twice[v] * odd - now[v];
        }
    }
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
        const float scale = 1.0f / (now[v] + 2.0f * sum[v]);
        out[v] = {now[v] * scale, above[v] * scale};
    }
}
// As it is in the study.
__global__ void __launch_bounds__(128) bessel_functions(const float *__restrict__ x, float2 *__restrict__ out, int count) {
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
        const float one[1] = {x[i]};
        float2 result[1];
        bessel(one, result);
        out[i] = result[0];
    }
}
// Stays where it is written: the compiler would be free to move a plain load down to its use, beyond a recurrence.
__device__ __forceinline__ float load_now(const float *x) {
    float value;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(x));
    return value;
}
// DEEP values are loaded before the first of them is used; their recurrences come one after the other, as before.
template <int DEEP>
__global__ void __launch_bounds__(128) bessel_loads_first(const float *__restrict__ x, float2 *__restrict__ out, int count) {
    const int step = gridDim.x * 128;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += DEEP * step) {
        float held[DEEP];
#pragma unroll
        for (int d = 0; d < DEEP; d++) held[d] = load_now(x + min(i + d * step, count - 1));
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
            if (i + d * step >= count) break;
            const float one[1] = {held[d]};
            float2 result[1];
            bessel(one, result);
            out[i + d * step] = result[0];
        }
    }
}
// DEEP values are loaded, and their recurrences run side by side, as an unrolled loop's might.
template <int DEEP>
__global__ void __launch_bounds__(128) bessel_side_by_side(const float *__restrict__ x, float2 *__restrict__ out, int count) {
    const int step = gridDim.x * 128;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += DEEP * step) {
        float held[DEEP];
        float2 result[DEEP];
#pragma unroll
        for (int d = 0; d < DEEP; d++) held[d] = load_now(x + min(i + d * step, count - 1));
        bessel(held, result);
#pragma unroll
        for (int d = 0; d < DEEP; d++)
            if (i + d * step < count) out[i + d * step] = result[d];
    }
}
// The values of the next DEEP turns are on their way while one is worked on. What lies beyond the end is loaded in vain.
template <int DEEP>
__global__ void __launch_bounds__(128) bessel_prefetch(const float *__restrict__ x, float2 *__restrict__ out, int count) {
    const int step = gridDim.x * 128;
    int i = blockIdx.x * 128 + threadIdx.x;
    float coming[DEEP];
#pragma unroll
    for (int d = 0; d < DEEP; d++) coming[d] = load_now(x + min(i + d * step, count - 1));
#pragma unroll 1
    for (; i < count; i += DEEP * step) {
#pragma unroll
        for (int d = 0; d < DEEP; d++) {  // a ring in registers: unrolled, it needs no moves that would wait for the loads
            if (i + d * step >= count) break;
            const float one[1] = {coming[d]};
            coming[d] = load_now(x + min(i + (d + DEEP) * step, count - 1));
            float2 result[1];
            bessel(one, result);
            out[i + d * step] = result[0];
        }
    }
}
// A ring of STAGES values a thread in shared memory, filled by asynchronous copies; each thread reads only its own.
template <int STAGES>
__global__ void __launch_bounds__(128) bessel_async(const float *__restrict__ x, float2 *__restrict__ out, int count) {
    __shared__ float held[STAGES][128];
    const int step = gridDim.x * 128;
    auto fetch = [&](int stage, int i) {
        if (i < count) __pipeline_memcpy_async(&held[stage][threadIdx.x], x + i, 4);
        __pipeline_commit();
    };
    int i = blockIdx.x * 128 + threadIdx.x;
    for (int s = 0; s < STAGES - 1; s++) fetch(s, i + s * step);
#pragma unroll 1
    for (int stage = 0; i < count; i += step, stage = stage + 1 == STAGES ? 0 : stage + 1) {
        fetch(stage == 0 ? STAGES - 1 : stage - 1, i + (STAGES - 1) * step);
        __pipeline_wait_prior(STAGES - 1);
        const float one[1] = {held[stage][threadIdx.x]};
        float2 result[1];
        bessel(one, result);
        out[i] = result[0];
    }
}

int main() {
    const int n = 1 << 23, grid = 264;
    const float *x = drawn<float>(n, 8, 24, 1);
    float *values = get<float>(size_t(n) * 2);
    float2 *out = reinterpret_cast<float2 *>(values);
    judge({
        {"as_it_is", [=] { bessel_functions<<<grid, 128>>>(x, out, n); }},
        {"loads_2_first", [=] { bessel_loads_first<2><<<grid, 128>>>(x, out, n); }},
        {"loads_4_first", [=] { bessel_loads_first<4><<<grid, 128>>>(x, out, n); }},
        {"side_by_side_2", [=] { bessel_side_by_side<2><<<grid, 128>>>(x, out, n); }},
        {"side_by_side_4", [=] { bessel_side_by_side<4><<<grid, 128>>>(x, out, n); }},
        {"prefetch_1", [=] { bessel_prefetch<1><<<grid, 128>>>(x, out, n); }},
        {"prefetch_2", [=] { bessel_prefetch<2><<<grid, 128>>>(x, out, n); }},
        {"prefetch_4", [=] { bessel_prefetch<4><<<grid, 128>>>(x, out, n); }},
        {"async_2_stages", [=] { bessel_async<2><<<grid, 128>>>(x, out, n); }},
        {"async_4_stages", [=] { bessel_async<4><<<grid, 128>>>(x, out, n); }}}, {{values, size_t(n) * 2}});
}
