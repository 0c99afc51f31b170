// group_by_16_shared_atomics, side flawed: a thread takes several elements at once, up to 16 bytes an access.
#include "../tried.cuh"

__global__ void __launch_bounds__(256) group_sums(const unsigned char *group, const float *amount, float *total, int n) {
    __shared__ float sum[16];
    if (threadIdx.x < 16) sum[threadIdx.x] = 0.f;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&sum[group[i]], amount[i]);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&total[threadIdx.x], sum[threadIdx.x]);
}
// FOURS: runs of four elements that a thread takes at once.
template <int FOURS>
__global__ void __launch_bounds__(256) group_sums_vectors(const unsigned char *group, const float4 *amount, float *total, int n) {
    __shared__ float sum[16];
    if (threadIdx.x < 16) sum[threadIdx.x] = 0.f;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n / (4 * FOURS); i += gridDim.x * 256) {
        unsigned groups[FOURS];
        if (FOURS == 4) *reinterpret_cast<uint4 *>(groups) = reinterpret_cast<const uint4 *>(group)[i];
        else groups[0] = reinterpret_cast<const unsigned *>(group)[i];
        float4 v[FOURS];
#pragma unroll
        for (int k = 0; k < FOURS; k++) v[k] = amount[i * FOURS + k];
#pragma unroll
        for (int k = 0; k < FOURS; k++) {
            atomicAdd(&sum[groups[k] & 255], v[k].x), atomicAdd(&sum[groups[k] >> 8 & 255], v[k].y);
            atomicAdd(&sum[groups[k] >> 16 & 255], v[k].z), atomicAdd(&sum[groups[k] >> 24], v[k].w);
        }
    }
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&total[threadIdx.x], sum[threadIdx.x]);
}

int main() {
    const int n = 1 << 24;
    const unsigned char *group = drawn<unsigned char>(n, 0, 16, 1);
    const float *amount = drawn<float>(n, 0, 1, 2);
    const auto fours = reinterpret_cast<const float4 *>(amount);
    float *total = get<float>(16);
    judge({{"as_it_is", [=] { group_sums<<<132 * 4, 256>>>(group, amount, total, n); }},
        {"four_elements", [=] { group_sums_vectors<1><<<132 * 4, 256>>>(group, fours, total, n); }},
        {"sixteen_elements", [=] { group_sums_vectors<4><<<132 * 4, 256>>>(group, fours, total, n); }}},
        {{total, 16}}, [=] { check(cudaMemsetAsync(total, 0, 16 * sizeof(float))); });
}
