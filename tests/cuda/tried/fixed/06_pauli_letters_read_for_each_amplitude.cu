// pauli_letters_read_for_each_amplitude, side together: sums in FP32 in place of double.
#include "../tried.cuh"

constexpr int QUBITS = 22, PRODUCTS = 8;

__device__ __forceinline__ void add_of_block(double sum, double *to) {
    __shared__ double sums[8];
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(to, sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7]);
}
__device__ __forceinline__ float real_product(float2 a, float2 b) { return fmaf(a.x, b.x, a.y * b.y); }
__global__ void __launch_bounds__(256) expectations_together(const float2 *__restrict__ state, const uint2 *__restrict__ masks, double *values, int qubits) {
    uint2 mask[PRODUCTS];
    float sum[PRODUCTS] = {};
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p) mask[p] = masks[p];
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        float2 own = state[i];
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p) {
            float product = real_product(state[i ^ mask[p].x], own);
            sum[p] += __popc(i & mask[p].y) & 1 ? -product : product;
        }
    }
    for (int p = 0; p < PRODUCTS; ++p) {
        add_of_block(sum[p], values + p);
        __syncthreads();
    }
}

// FP32 through warp and block; what the block adds is T (double: one conversion a block and product; float: none at all).
template <typename T> __device__ __forceinline__ void add_of_block_fp32(float sum, T *to) {
    __shared__ float sums[8];
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(to, static_cast<T>(sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7]));
}
// ONE_BARRIER: the sums of all products go through shared memory together; eight threads end them.
template <typename T, bool ONE_BARRIER>
__global__ void __launch_bounds__(256) together_fp32(const float2 *__restrict__ state, const uint2 *__restrict__ masks, T *values, int qubits) {
    uint2 mask[PRODUCTS];
    float sum[PRODUCTS] = {};
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p) mask[p] = masks[p];
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        float2 own = state[i];
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p) {
            float product = real_product(state[i ^ mask[p].x], own);
            sum[p] += __popc(i & mask[p].y) & 1 ? -product : product;
        }
    }
    if (!ONE_BARRIER) {
        for (int p = 0; p < PRODUCTS; ++p) {
            add_of_block_fp32(sum[p], values + p);
            __syncthreads();
        }
    } else {
        __shared__ float sums[PRODUCTS][8];
#pragma unroll
        for (int p = 0; p < PRODUCTS; ++p) {
            for (int offset = 16; offset; offset /= 2) sum[p] += __shfl_xor_sync(~0u, sum[p], offset);
            if (threadIdx.x % 32 == 0) sums[p][threadIdx.x / 32] = sum[p];
        }
        __syncthreads();
        if (threadIdx.x < PRODUCTS) {
            float all = 0.f;
#pragma unroll
            for (int w = 0; w < 8; ++w) all += sums[threadIdx.x][w];
            atomicAdd(values + threadIdx.x, static_cast<T>(all));
        }
    }
}
// For the comparison outside of the timing.
__global__ void widen(const float *from, double *to) { to[threadIdx.x] = from[threadIdx.x]; }

int main() {
    const size_t n = size_t(1) << QUBITS;
    std::vector<uint2> masks(PRODUCTS, make_uint2(0, 0));
    for (int p = 0; p < PRODUCTS; ++p) {
        for (int q = 0; q < QUBITS; ++q)
            if (hashed(p * QUBITS + q) % 3 == 0) masks[p].x |= 1u << q;
        if (p > 3) {
            int q = (5 * p + 3) % QUBITS;
            masks[p].x &= ~(1u << q), masks[p].y |= 1u << q;
        }
    }
    const float2 *state = reinterpret_cast<const float2 *>(drawn<float>(2 * n, 0.2, 1.0, 1));
    const uint2 *bits = copied(masks);
    double *values = get<double>(PRODUCTS);
    float *singles = get<float>(PRODUCTS);
    // The first run, which is compared, also brings the results into `values`.
    bool compared = false;
    auto float_atomic = [=]() mutable {
        together_fp32<float, false><<<1024, 256>>>(state, bits, singles, QUBITS);
        if (!compared) widen<<<1, PRODUCTS>>>(singles, values);
        compared = true;
    };
    judge({{"as_it_is", [=] { expectations_together<<<1024, 256>>>(state, bits, values, QUBITS); }},
        {"fp32_sums_double_atomic", [=] { together_fp32<double, false><<<1024, 256>>>(state, bits, values, QUBITS); }},
        {"fp32_sums_float_atomic", float_atomic},
        {"fp32_sums_one_barrier", [=] { together_fp32<double, true><<<1024, 256>>>(state, bits, values, QUBITS); }}},
        {{values, PRODUCTS}}, [=] { check(cudaMemsetAsync(values, 0, PRODUCTS * sizeof(double))), check(cudaMemsetAsync(singles, 0, PRODUCTS * sizeof(float))); });
}
