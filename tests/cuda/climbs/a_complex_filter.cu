// A received signal passes a filter of 64 complex taps.
#include "../tried/tried.cuh"

constexpr int COUNT = 1 << 23, TAPS = 64;

__global__ void as_it_is(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float2 sum = make_float2(0.f, 0.f);
    for (int k = 0; k < length; ++k) {
        const float2 x = signal[i + length - 1 - k], h = taps[k];
        sum.x += x.x * h.x - x.y * h.y;
        sum.y += x.x * h.y + x.y * h.x;
    }
    out[i] = sum;
}

// First step, redundant loads: four neighbouring results a thread, or a tile in shared memory.
__global__ void four_in_registers(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= count) return;
    float2 sum[4] = {}, x[4];
    for (int j = 1; j < 4; ++j) x[j] = signal[i + length - 1 + j];
    for (int k = 0; k < length; ++k) {
        const float2 h = taps[k];
        x[0] = signal[i + length - 1 - k];
        for (int j = 0; j < 4; ++j) {
            sum[j].x += x[j].x * h.x - x[j].y * h.y;
            sum[j].y += x[j].x * h.y + x[j].y * h.x;
        }
        for (int j = 3; j > 0; --j) x[j] = x[j - 1];
    }
    for (int j = 0; j < 4; ++j) out[i + j] = sum[j];
}
__global__ void tile_in_shared(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    __shared__ float2 tile[256 + TAPS], held[TAPS];
    const int first = blockIdx.x * blockDim.x, i = first + threadIdx.x;
    for (int k = threadIdx.x; k < blockDim.x + length - 1; k += blockDim.x) tile[k] = signal[first + k];
    if (threadIdx.x < length) held[threadIdx.x] = taps[threadIdx.x];
    __syncthreads();
    if (i >= count) return;
    float2 sum = make_float2(0.f, 0.f);
    for (int k = 0; k < length; ++k) {
        const float2 x = tile[threadIdx.x + length - 1 - k], h = held[k];
        sum.x += x.x * h.x - x.y * h.y;
        sum.y += x.x * h.y + x.y * h.x;
    }
    out[i] = sum;
}

// A thread makes eight samples in a row out of a window in registers; taps are operands in constants.
struct Taps { float2 of[TAPS]; };
constexpr int EACH = 8, THREADS = 128, SPAN = EACH * THREADS;
__device__ __forceinline__ int padded(int at) { return at + at / EACH; }
__global__ void __launch_bounds__(THREADS) expert(const float2 *__restrict__ signal, const __grid_constant__ Taps taps, float2 *__restrict__ out) {
    __shared__ float2 held[(SPAN + TAPS) / EACH * (EACH + 1)];
    const int first = blockIdx.x * SPAN;
    for (int i = threadIdx.x; i < SPAN + TAPS; i += THREADS) held[padded(i)] = signal[first + i];
    __syncthreads();
    float2 sum[EACH] = {}, window[EACH];
    const float2 *own = held + threadIdx.x * (EACH + 1);
#pragma unroll
    for (int k = 0; k < EACH; ++k) window[k] = own[k];
#pragma unroll
    for (int s = 0; s < TAPS; ++s) {
        const float2 h = taps.of[TAPS - 1 - s];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const float2 x = window[(s + k) % EACH];
            sum[k].x += x.x * h.x, sum[k].x -= x.y * h.y;
            sum[k].y += x.x * h.y, sum[k].y += x.y * h.x;
        }
        window[s % EACH] = own[padded(s + EACH)];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; ++k) held[threadIdx.x * (EACH + 1) + k] = sum[k];
    __syncthreads();
    for (int i = threadIdx.x; i < SPAN; i += THREADS) out[first + i] = held[padded(i)];
}

int main() {
    float2 *out = get<float2>(COUNT);
    const float2 *signal = reinterpret_cast<float2 *>(drawn<float>(2 * (COUNT + TAPS), -1, 1, 1));
    std::vector<float2> host(TAPS);
    Taps values;
    for (int k = 0; k < TAPS; ++k) values.of[k] = host[k] = make_float2(std::cos(0.3f * k) * (1.f + k % 5), std::sin(0.7f * k));
    const float2 *taps = copied(host);
    judge({
        {"as_it_is", [=] { as_it_is<<<COUNT / 256, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"four_in_registers", [=] { four_in_registers<<<COUNT / 256 / 4, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"tile_in_shared", [=] { tile_in_shared<<<COUNT / 256, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"expert", [=] { expert<<<COUNT / SPAN, THREADS>>>(signal, values, out); }},
    }, {{reinterpret_cast<float *>(out), size_t(2) * COUNT}});
}
