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

// Second step, uncoalesced access: what a thread takes side by side moves as vectors, or through shared memory.
__device__ __forceinline__ void add_four(float2 (&sum)[4], const float2 (&x)[8], const float2 *taps, int k) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        const float2 h = taps[k + t];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            sum[j].x += x[3 - t + j].x * h.x - x[3 - t + j].y * h.y;
            sum[j].y += x[3 - t + j].x * h.y + x[3 - t + j].y * h.x;
        }
    }
}
__device__ __forceinline__ void take_four(float2 *x, const float2 *from) {
    const float4 low = reinterpret_cast<const float4 *>(from)[0], high = reinterpret_cast<const float4 *>(from)[1];
    x[0] = make_float2(low.x, low.y), x[1] = make_float2(low.z, low.w), x[2] = make_float2(high.x, high.y), x[3] = make_float2(high.z, high.w);
}
__global__ void four_by_vectors(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= count) return;
    float2 sum[4] = {}, x[8];
    take_four(x + 4, signal + i + length);
    for (int k = 0; k < length; k += 4) {
        take_four(x, signal + i + length - 4 - k);
        add_four(sum, x, taps, k);
        for (int j = 0; j < 4; ++j) x[j + 4] = x[j];
    }
    auto to = reinterpret_cast<float4 *>(out + i);
    to[0] = make_float4(sum[0].x, sum[0].y, sum[1].x, sum[1].y), to[1] = make_float4(sum[2].x, sum[2].y, sum[3].x, sum[3].y);
}
__global__ void four_through_shared(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    __shared__ __align__(16) float2 tile[4 * 256 + TAPS];
    const int first = blockIdx.x * blockDim.x * 4, i = threadIdx.x * 4;
    for (int k = threadIdx.x; k < 4 * blockDim.x + length; k += blockDim.x) tile[k] = signal[first + k];
    __syncthreads();
    float2 sum[4] = {}, x[8];
    take_four(x + 4, tile + i + length);
    for (int k = 0; k < length; k += 4) {
        take_four(x, tile + i + length - 4 - k);
        add_four(sum, x, taps, k);
        for (int j = 0; j < 4; ++j) x[j + 4] = x[j];
    }
    __syncthreads();
    for (int j = 0; j < 4; ++j) tile[i + j] = sum[j];
    __syncthreads();
    for (int k = threadIdx.x; k < 4 * blockDim.x; k += blockDim.x)
        if (first + k < count) out[first + k] = tile[k];
}

// Third step, redundant loads again: 16 results a thread, or signal and taps in shared memory.
__global__ void sixteen_by_vectors(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 16;
    if (i >= count) return;
    float2 sum[16] = {}, x[20];
    for (int j = 4; j < 20; j += 4) take_four(x + j, signal + i + length - 4 + j);
    for (int k = 0; k < length; k += 4) {
        take_four(x, signal + i + length - 4 - k);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            const float2 h = taps[k + t];
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                sum[j].x += x[3 - t + j].x * h.x - x[3 - t + j].y * h.y;
                sum[j].y += x[3 - t + j].x * h.y + x[3 - t + j].y * h.x;
            }
        }
#pragma unroll
        for (int j = 19; j > 3; --j) x[j] = x[j - 4];
    }
    auto to = reinterpret_cast<float4 *>(out + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = make_float4(sum[2 * j].x, sum[2 * j].y, sum[2 * j + 1].x, sum[2 * j + 1].y);
}
__global__ void four_and_taps_in_shared(const float2 *signal, const float2 *taps, float2 *out, int count, int length) {
    __shared__ __align__(16) float2 tile[4 * 256 + TAPS], held[TAPS];
    const int first = blockIdx.x * blockDim.x * 4, i = threadIdx.x * 4;
    for (int k = threadIdx.x; k < 4 * blockDim.x + length; k += blockDim.x) tile[k] = signal[first + k];
    if (threadIdx.x < length) held[threadIdx.x] = taps[threadIdx.x];
    __syncthreads();
    if (first + i >= count) return;
    float2 sum[4] = {}, x[8];
    take_four(x + 4, tile + i + length);
    for (int k = 0; k < length; k += 4) {
        take_four(x, tile + i + length - 4 - k);
        add_four(sum, x, held, k);
        for (int j = 0; j < 4; ++j) x[j + 4] = x[j];
    }
    auto to = reinterpret_cast<float4 *>(out + first + i);
    to[0] = make_float4(sum[0].x, sum[0].y, sum[1].x, sum[1].y), to[1] = make_float4(sum[2].x, sum[2].y, sum[3].x, sum[3].y);
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
    const float2 *signal = reinterpret_cast<float2 *>(drawn<float>(2 * (COUNT + TAPS + 16), -1, 1, 1));
    std::vector<float2> host(TAPS);
    Taps values;
    for (int k = 0; k < TAPS; ++k) values.of[k] = host[k] = make_float2(std::cos(0.3f * k) * (1.f + k % 5), std::sin(0.7f * k));
    const float2 *taps = copied(host);
    judge({
        {"as_it_is", [=] { as_it_is<<<COUNT / 256, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"four_in_registers", [=] { four_in_registers<<<COUNT / 256 / 4, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"tile_in_shared", [=] { tile_in_shared<<<COUNT / 256, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"four_by_vectors", [=] { four_by_vectors<<<COUNT / 256 / 4, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"four_through_shared", [=] { four_through_shared<<<COUNT / 256 / 4, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"sixteen_by_vectors", [=] { sixteen_by_vectors<<<COUNT / 256 / 16, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"four_and_taps_in_shared", [=] { four_and_taps_in_shared<<<COUNT / 256 / 4, 256>>>(signal, taps, out, COUNT, TAPS); }},
        {"expert", [=] { expert<<<COUNT / SPAN, THREADS>>>(signal, values, out); }},
    }, {{reinterpret_cast<float *>(out), size_t(2) * COUNT}});
}
