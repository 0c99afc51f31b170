// periodogram_thread_per_frequency, side warp: a lane takes four samples at once, 16 bytes an access.
#include "../tried.cuh"

__device__ __forceinline__ float warp_sum(float x) {
    for (int offset = 16; offset; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    return x;
}
struct Wave {
    float frequency, with_cosine = 0.f, with_sine = 0.f;
    __device__ __forceinline__ void add(float time, float value) {
        const float turns = __fmul_rn(frequency, time), cycles = turns - rintf(turns);
        float sine, cosine;
        sincospif(2.f * cycles, &sine, &cosine);
        with_cosine = fmaf(value, cosine, with_cosine), with_sine = fmaf(value, sine, with_sine);
    }
    __device__ __forceinline__ void store(float *to, int samples) {
        with_cosine = warp_sum(with_cosine), with_sine = warp_sum(with_sine);
        if (threadIdx.x % 32 == 0) *to = (with_cosine * with_cosine + with_sine * with_sine) / samples;
    }
};
__global__ void periodogram_warp(const float *__restrict__ time, const float *__restrict__ value, float *__restrict__ power, int samples, int frequencies, float step) {
    int j = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (j >= frequencies) return;
    Wave wave{(j + 1) * step};
    for (int i = threadIdx.x % 32; i < samples; i += 32) wave.add(time[i], value[i]);
    wave.store(power + j, samples);
}
__global__ void periodogram_four(const float4 *__restrict__ time, const float4 *__restrict__ value, float *__restrict__ power, int samples, int frequencies, float step) {
    int j = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (j >= frequencies) return;
    Wave wave{(j + 1) * step};
    for (int i = threadIdx.x % 32; i < samples / 4; i += 32) {
        const float4 t = time[i], v = value[i];
        wave.add(t.x, v.x), wave.add(t.y, v.y), wave.add(t.z, v.z), wave.add(t.w, v.w);
    }
    wave.store(power + j, samples);
}
__global__ void periodogram_two(const float2 *__restrict__ time, const float2 *__restrict__ value, float *__restrict__ power, int samples, int frequencies, float step) {
    int j = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (j >= frequencies) return;
    Wave wave{(j + 1) * step};
    for (int i = threadIdx.x % 32; i < samples / 2; i += 32) {
        const float2 t = time[i], v = value[i];
        wave.add(t.x, v.x), wave.add(t.y, v.y);
    }
    wave.store(power + j, samples);
}

int main() {
    const int frequencies = 4096, n = 8192;
    const float *time = drawn<float>(n, 0, 1000, 1), *value = drawn<float>(n, -1, 1, 2), step = 0.0005f;
    float *power = get<float>(frequencies);
    judge({{"as_it_is", [=] { periodogram_warp<<<frequencies / 8, 256>>>(time, value, power, n, frequencies, step); }},
        {"four_samples", [=] { periodogram_four<<<frequencies / 8, 256>>>((const float4 *)time, (const float4 *)value, power, n, frequencies, step); }},
        {"two_samples", [=] { periodogram_two<<<frequencies / 8, 256>>>((const float2 *)time, (const float2 *)value, power, n, frequencies, step); }}}, {{power, frequencies}});
}
