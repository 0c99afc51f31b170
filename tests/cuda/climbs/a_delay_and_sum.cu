// An ultrasound picture out of the echoes of a plane wave: each pixel adds up what 128 elements heard of it.
#include "../tried/tried.cuh"

constexpr int ELEMENTS = 128, SAMPLES = 3072, ACROSS = 1024, DOWN = 1024;
struct Probe { const float *echoes, *weights; float pitch, spacing, samples_per_metre; };  // echoes: element, sample

__global__ void as_it_is(Probe probe, float *picture, int across, int down, int elements, int samples) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= across || row >= down) return;
    const float x = (column - 0.5f * across) * probe.spacing, z = row * probe.spacing;
    float sum = 0.f;
    for (int e = 0; e < elements; ++e) {
        const float away = x - (e - 0.5f * elements) * probe.pitch;
        const float at = (z + sqrtf(z * z + away * away)) * probe.samples_per_metre;
        const int i = static_cast<int>(at);
        if (i + 1 >= samples) continue;
        const float part = at - i;
        const float *heard = probe.echoes + e * samples;
        sum += probe.weights[e] * ((1.f - part) * heard[i] + part * heard[i + 1]);
    }
    picture[row * across + column] = sum;
}

// First step, expensive functions: a fast root; and what is the same for all pixels, or for a thread's, evaluated once.
__global__ void fast_root(Probe probe, float *picture, int across, int down, int elements, int samples) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= across || row >= down) return;
    const float x = (column - 0.5f * across) * probe.spacing, z = row * probe.spacing;
    float sum = 0.f;
    for (int e = 0; e < elements; ++e) {
        const float away = x - (e - 0.5f * elements) * probe.pitch, square = fmaxf(z * z + away * away, 1e-20f);
        const float at = (z + square * rsqrtf(square)) * probe.samples_per_metre;
        const int i = static_cast<int>(at);
        if (i + 1 >= samples) continue;
        const float part = at - i;
        const float *heard = probe.echoes + e * samples;
        sum += probe.weights[e] * ((1.f - part) * heard[i] + part * heard[i + 1]);
    }
    picture[row * across + column] = sum;
}
__global__ void fast_root_places_once(Probe probe, float *picture, int across, int down, int elements, int samples) {
    __shared__ float places[ELEMENTS];
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < elements; e += blockDim.x * blockDim.y) places[e] = (e - 0.5f * elements) * probe.pitch;
    __syncthreads();
    if (column >= across || row >= down) return;
    const float x = (column - 0.5f * across) * probe.spacing, z = row * probe.spacing, depth = fmaxf(z * z, 1e-20f);
    float sum = 0.f;
    for (int e = 0; e < elements; ++e) {
        const float away = x - places[e], square = depth + away * away;
        const float at = (z + square * rsqrtf(square)) * probe.samples_per_metre;
        const int i = static_cast<int>(at);
        if (i + 1 >= samples) continue;
        const float part = at - i;
        const float *heard = probe.echoes + e * samples;
        sum += probe.weights[e] * ((1.f - part) * heard[i] + part * heard[i + 1]);
    }
    picture[row * across + column] = sum;
}

// A thread makes four pixels below each other; lengths in samples, an approximate root, and no conversions.
constexpr int EACH = 4;
__global__ void __launch_bounds__(256) expert(Probe probe, float *__restrict__ picture) {
    __shared__ float2 of[ELEMENTS];  // place in samples, weight
    const int column = blockIdx.x * 32 + threadIdx.x, row = (blockIdx.y * 8 + threadIdx.y) * EACH, thread = threadIdx.y * 32 + threadIdx.x;
    const float scale = probe.samples_per_metre;
    if (thread < ELEMENTS) of[thread] = make_float2((thread - 0.5f * ELEMENTS) * probe.pitch * scale, probe.weights[thread]);
    __syncthreads();
    const float x = (column - 0.5f * ACROSS) * probe.spacing * scale;
    float z[EACH], sum[EACH] = {};
    for (int k = 0; k < EACH; ++k) z[k] = (row + k) * probe.spacing * scale;
    const float *heard = probe.echoes;
#pragma unroll 4
    for (int e = 0; e < ELEMENTS; ++e, heard += SAMPLES) {
        const float away = x - of[e].x, square = away * away + 1e-12f, weight = of[e].y;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const float far = z[k] * z[k] + square, at = far * rsqrtf(far) + z[k];
            const float whole = (at - 0.5f) + 12582912.f;
            const int i = __float_as_int(whole) - 0x4b400000;
            const float part = at - (whole - 12582912.f);
            if (i + 1 < SAMPLES) {
                const float low = heard[i], high = heard[i + 1];
                sum[k] += weight * (low + part * (high - low));
            }
        }
    }
    for (int k = 0; k < EACH; ++k) picture[(row + k) * ACROSS + column] = sum[k];
}

int main() {
    std::vector<float> weights(ELEMENTS);
    for (int e = 0; e < ELEMENTS; ++e) weights[e] = 0.5f - 0.5f * std::cos(6.2831853f * (e + 0.5f) / ELEMENTS);
    float *out = get<float>(ACROSS * DOWN);
    const Probe probe{drawn<float>(ELEMENTS * SAMPLES, -1, 1, 1), copied(weights), 3e-4f, 4e-5f, 25.974e3f};
    judge({
        {"as_it_is", [=] { as_it_is<<<dim3(ACROSS / 16, DOWN / 16), dim3(16, 16)>>>(probe, out, ACROSS, DOWN, ELEMENTS, SAMPLES); }},
        {"fast_root", [=] { fast_root<<<dim3(ACROSS / 16, DOWN / 16), dim3(16, 16)>>>(probe, out, ACROSS, DOWN, ELEMENTS, SAMPLES); }},
        {"fast_root_places_once", [=] { fast_root_places_once<<<dim3(ACROSS / 16, DOWN / 16), dim3(16, 16)>>>(probe, out, ACROSS, DOWN, ELEMENTS, SAMPLES); }},
        {"expert", [=] { expert<<<dim3(ACROSS / 32, DOWN / 8 / EACH), dim3(32, 8)>>>(probe, out); }},
    }, {{out, ACROSS * DOWN}});
}
