// Flaw: many threads update few words, in shared and in global memory.
#include "common.cuh"

// Atomic whose result is unused: compiled to a reduction (RED).
__global__ void global_histogram(const int *in, unsigned *bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i] % 8], 1u);
}

// Atomic whose result is used (ATOM): every thread draws a slot from one counter.
__global__ void global_tickets(unsigned *counter, unsigned *slots) {
    unsigned mine = atomicAdd(counter + threadIdx.x % 2, 1u);
    slots[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}

// Shared atomics on 8 bins: warps serialize on them.
__global__ void shared_histogram(const int *in, unsigned *bins, int n) {
    __shared__ unsigned local[8];
    if (threadIdx.x < 8) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i] % 8], 1u);
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// Compare-and-swap loop on shared memory: a maximum of floats.
__global__ void shared_cas_max(const float *in, float *out, int n) {
    __shared__ int best;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? in[i] : 0.0f;
    int seen = best;
    while (value > __int_as_float(seen)) {
        int before = atomicCAS(&best, seen, __float_as_int(value));
        if (before == seen) break;
        seen = before;
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = __int_as_float(best);
}

int main() {
    const int n = 1 << 18;
    int *in = device_buffer<int>(n);
    float *values = device_buffer<float>(n);
    float *maxima = device_buffer<float>(n / 256);
    unsigned *bins = device_buffer<unsigned>(8);
    unsigned *slots = device_buffer<unsigned>(n);
    global_histogram<<<132, 256>>>(in, bins, n);
    CHECK_LAUNCH();
    global_tickets<<<64, 256>>>(bins, slots);
    CHECK_LAUNCH();
    shared_histogram<<<132, 256>>>(in, bins, n);
    CHECK_LAUNCH();
    shared_cas_max<<<n / 256, 256>>>(values, maxima, n);
    CHECK_LAUNCH();
}
