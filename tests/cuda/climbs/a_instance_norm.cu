// Instance normalisation of feature maps: each plane of 64 by 64 values gets mean 0 and variance 1, then scale and shift.
#include "../tried/tried.cuh"

constexpr int PIXELS = 64 * 64, CHANNELS = 256, PICTURES = 32, THREADS = 256;
struct Maps { const float *x, *scale, *shift; float *y; int channels, pixels; float epsilon; };

__device__ float block_sum(float value, float *partial) {
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    const float sum = partial[0];
    __syncthreads();
    return sum;
}
__global__ void as_it_is(Maps maps) {
    __shared__ float partial[THREADS];
    const float *x = maps.x + size_t(blockIdx.x) * maps.pixels;
    float *y = maps.y + size_t(blockIdx.x) * maps.pixels;
    const int channel = blockIdx.x % maps.channels;
    float sum = 0.f;
    for (int i = threadIdx.x; i < maps.pixels; i += blockDim.x) sum += x[i];
    const float mean = block_sum(sum, partial) / maps.pixels;
    float squares = 0.f;
    for (int i = threadIdx.x; i < maps.pixels; i += blockDim.x) {
        const float off = x[i] - mean;
        squares += off * off;
    }
    const float inverse = rsqrtf(block_sum(squares, partial) / maps.pixels + maps.epsilon);
    for (int i = threadIdx.x; i < maps.pixels; i += blockDim.x) y[i] = (x[i] - mean) * inverse * maps.scale[channel] + maps.shift[channel];
}

// First step, redundant loads: a plane is loaded once, and kept in registers or in shared memory between the passes.
__global__ void kept_in_registers(Maps maps) {
    __shared__ float partial[THREADS];
    const float *x = maps.x + size_t(blockIdx.x) * PIXELS;
    float *y = maps.y + size_t(blockIdx.x) * PIXELS;
    const int channel = blockIdx.x % maps.channels;
    float kept[PIXELS / THREADS], sum = 0.f, squares = 0.f;
    for (int k = 0; k < PIXELS / THREADS; ++k) {
        kept[k] = x[k * THREADS + threadIdx.x];
        sum += kept[k];
    }
    const float mean = block_sum(sum, partial) / PIXELS;
    for (int k = 0; k < PIXELS / THREADS; ++k) {
        const float off = kept[k] - mean;
        squares += off * off;
    }
    const float inverse = rsqrtf(block_sum(squares, partial) / PIXELS + maps.epsilon);
    for (int k = 0; k < PIXELS / THREADS; ++k) y[k * THREADS + threadIdx.x] = (kept[k] - mean) * inverse * maps.scale[channel] + maps.shift[channel];
}
__global__ void kept_in_shared(Maps maps) {
    __shared__ float partial[THREADS], kept[PIXELS];
    const float *x = maps.x + size_t(blockIdx.x) * maps.pixels;
    float *y = maps.y + size_t(blockIdx.x) * maps.pixels;
    const int channel = blockIdx.x % maps.channels;
    float sum = 0.f, squares = 0.f;
    for (int i = threadIdx.x; i < maps.pixels; i += blockDim.x) {
        kept[i] = x[i];
        sum += kept[i];
    }
    const float mean = block_sum(sum, partial) / maps.pixels;
    for (int i = threadIdx.x; i < maps.pixels; i += blockDim.x) {
        const float off = kept[i] - mean;
        squares += off * off;
    }
    const float inverse = rsqrtf(block_sum(squares, partial) / maps.pixels + maps.epsilon);
    for (int i = threadIdx.x; i < maps.pixels; i += blockDim.x) y[i] = (kept[i] - mean) * inverse * maps.scale[channel] + maps.shift[channel];
}

__device__ __forceinline__ float sum_of_all(float value, float *partial) {
    for (int lane = 16; lane; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.f;
    for (int warp = 0; warp < THREADS / 32; ++warp) sum += partial[warp];
    return sum;
}
// One read: a thread keeps its 16 values.
__global__ void __launch_bounds__(THREADS) expert(Maps maps) {
    __shared__ float sums[THREADS / 32], squares[THREADS / 32];
    constexpr int EACH = PIXELS / 4 / THREADS;
    auto x = reinterpret_cast<const float4 *>(maps.x) + size_t(blockIdx.x) * (PIXELS / 4) + threadIdx.x;
    auto y = reinterpret_cast<float4 *>(maps.y) + size_t(blockIdx.x) * (PIXELS / 4) + threadIdx.x;
    const int channel = blockIdx.x % maps.channels;
    const float scale = maps.scale[channel], shift = maps.shift[channel];
    float4 kept[EACH];
    float sum = 0.f, square = 0.f;
    for (int i = 0; i < EACH; ++i) kept[i] = __ldcs(x + i * THREADS);
    for (int i = 0; i < EACH; ++i) sum += (kept[i].x + kept[i].y) + (kept[i].z + kept[i].w);
    const float mean = sum_of_all(sum, sums) * (1.f / PIXELS);
    for (int i = 0; i < EACH; ++i) {
        kept[i] = make_float4(kept[i].x - mean, kept[i].y - mean, kept[i].z - mean, kept[i].w - mean);
        square += kept[i].x * kept[i].x + kept[i].y * kept[i].y + kept[i].z * kept[i].z + kept[i].w * kept[i].w;
    }
    const float factor = rsqrtf(sum_of_all(square, squares) * (1.f / PIXELS) + maps.epsilon) * scale;
    for (int i = 0; i < EACH; ++i) {
        const float4 k = kept[i];
        __stcs(y + i * THREADS, make_float4(k.x * factor + shift, k.y * factor + shift, k.z * factor + shift, k.w * factor + shift));
    }
}

int main() {
    const int planes = PICTURES * CHANNELS;
    float *out = get<float>(size_t(planes) * PIXELS);
    const Maps maps{drawn<float>(size_t(planes) * PIXELS, -1, 3, 1), drawn<float>(CHANNELS, 0.5, 1.5, 2), drawn<float>(CHANNELS, -1, 1, 3), out, CHANNELS, PIXELS, 1e-5f};
    judge({
        {"as_it_is", [=] { as_it_is<<<planes, THREADS>>>(maps); }},
        {"kept_in_registers", [=] { kept_in_registers<<<planes, THREADS>>>(maps); }},
        {"kept_in_shared", [=] { kept_in_shared<<<planes, THREADS>>>(maps); }},
        {"expert", [=] { expert<<<planes, THREADS>>>(maps); }},
    }, {{out, size_t(planes) * PIXELS}});
}
