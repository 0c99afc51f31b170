// pauli_letters_read_for_each_amplitude, side masks: a thread computes four neighbouring results along y.
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
__global__ void __launch_bounds__(256) expectations_masks(const float2 *__restrict__ state, const uint2 *__restrict__ masks, double *values, int qubits) {
    uint2 mask = masks[blockIdx.y];
    float sum = 0.f;
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        float product = real_product(state[i ^ mask.x], state[i]);
        sum += __popc(i & mask.y) & 1 ? -product : product;
    }
    add_of_block(sum, values + blockIdx.y);
}
// ALONG products a block.
template <int ALONG>
__global__ void __launch_bounds__(256) expectations_along(const float2 *__restrict__ state, const uint2 *__restrict__ masks, double *values, int qubits) {
    uint2 mask[ALONG];
    float sum[ALONG] = {};
#pragma unroll
    for (int p = 0; p < ALONG; ++p) mask[p] = masks[blockIdx.y * ALONG + p];
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < 1u << qubits; i += gridDim.x * 256) {
        const float2 own = state[i];
#pragma unroll
        for (int p = 0; p < ALONG; ++p) {
            float product = real_product(state[i ^ mask[p].x], own);
            sum[p] += __popc(i & mask[p].y) & 1 ? -product : product;
        }
    }
#pragma unroll
    for (int p = 0; p < ALONG; ++p) {
        add_of_block(sum[p], values + blockIdx.y * ALONG + p);
        __syncthreads();
    }
}

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
    judge({{"as_it_is", [=] { expectations_masks<<<dim3(512, PRODUCTS), 256>>>(state, bits, values, QUBITS); }},
        {"four_along_y", [=] { expectations_along<4><<<dim3(512, PRODUCTS / 4), 256>>>(state, bits, values, QUBITS); }},
        {"four_along_y_as_many_blocks", [=] { expectations_along<4><<<dim3(2048, PRODUCTS / 4), 256>>>(state, bits, values, QUBITS); }}},
        {{values, PRODUCTS}}, [=] { check(cudaMemsetAsync(values, 0, PRODUCTS * sizeof(double))); });
}
