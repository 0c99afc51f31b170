// edge_scores_in_the_order_of_arrival, side ordered: let a thread take several elements and load them all before it uses the first.
#include <numeric>

#include <cuda_fp16.h>

#include "../tried.cuh"

constexpr int FEATURES = 128;  // half values: eight a lane of sixteen

struct Edges {
    const uint4 *features;
    const int2 *ends;
    const int *order, *starts;  // by the first node
    int count, nodes;
};
__device__ __forceinline__ float product(uint4 a, uint4 b) {
    const unsigned left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&left[k])), y = __half22float2(*reinterpret_cast<const __half2 *>(&right[k]));
        sum += x.x * y.x + x.y * y.y;
    }
    return sum;
}
__device__ __forceinline__ float sum_of_sixteen(float x) {
    for (int d = 8; d; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    return x;
}
template <bool Ordered>
__global__ void __launch_bounds__(256) edge_scores(Edges e, float *__restrict__ out) {
    const int i = (blockIdx.x * 256 + threadIdx.x) / 16, lane = threadIdx.x % 16, own = Ordered ? e.order[i] : i;
    const int2 ends = e.ends[own];
    const float score = sum_of_sixteen(product(e.features[static_cast<size_t>(ends.x) * 16 + lane], e.features[static_cast<size_t>(ends.y) * 16 + lane]));
    if (lane == 0) out[own] = score;
}
// The least blocks in the bounds let the compiler have registers for all loads; without them it spreads the loads out.
// SEVERAL edges of sixteen lanes: next to each other, or 16 apart so that each pass of a block is as it was.
template <int SEVERAL, bool Apart>
__global__ void __launch_bounds__(256, SEVERAL > 2 ? 4 : 6) edge_scores_several(Edges e, float *__restrict__ out) {
    const int group = threadIdx.x / 16, lane = threadIdx.x % 16, first = blockIdx.x * 16 * SEVERAL + (Apart ? group : group * SEVERAL);
    int own[SEVERAL];
    int2 ends[SEVERAL];
    uint4 left[SEVERAL], right[SEVERAL];
#pragma unroll
    for (int k = 0; k < SEVERAL; ++k) own[k] = e.order[first + (Apart ? 16 * k : k)];
#pragma unroll
    for (int k = 0; k < SEVERAL; ++k) ends[k] = e.ends[own[k]];
#pragma unroll
    for (int k = 0; k < SEVERAL; ++k) left[k] = e.features[static_cast<size_t>(ends[k].x) * 16 + lane], right[k] = e.features[static_cast<size_t>(ends[k].y) * 16 + lane];
    __syncwarp();  // keeps the compiler from moving loads down to their uses
#pragma unroll
    for (int k = 0; k < SEVERAL; ++k) {
        const float score = sum_of_sixteen(product(left[k], right[k]));
        if (lane == 0) out[own[k]] = score;
    }
}
// Sixteen edges of sixteen lanes: each lane fetches the ends of one, then all take SEVERAL edges at a time.
template <int SEVERAL>
__global__ void __launch_bounds__(256, SEVERAL > 2 ? 4 : 8) edge_scores_lanes(Edges e, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 16, own = e.order[i];
    const int2 ends = e.ends[own];
    float kept = 0.0f;
#pragma unroll 1
    for (int first = 0; first < 16; first += SEVERAL) {
        uint4 left[SEVERAL], right[SEVERAL];
#pragma unroll
        for (int k = 0; k < SEVERAL; ++k) {
            const int x = __shfl_sync(~0u, ends.x, first + k, 16), y = __shfl_sync(~0u, ends.y, first + k, 16);
            left[k] = e.features[static_cast<size_t>(x) * 16 + lane], right[k] = e.features[static_cast<size_t>(y) * 16 + lane];
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < SEVERAL; ++k) {
            const float score = sum_of_sixteen(product(left[k], right[k]));
            if (lane == first + k) kept = score;
        }
    }
    out[own] = kept;
}

int main() {
    const int n = 1 << 21, nodes = n / 4;
    std::vector<int2> ends(n);
    for (int i = 0; i < n; i++) {
        const unsigned a = hashed(i) % nodes, other = hashed(i + 5u);
        ends[i] = {static_cast<int>(a), static_cast<int>((other % 4 ? a + other / 4 % 5000 : other / 4) % nodes)};  // three of four are near
    }
    std::vector<int> order(n), starts(nodes + 1);
    for (const int2 &end : ends) starts[end.x + 1]++;
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int> next = starts;
    for (int i = 0; i < n; i++) order[next[ends[i].x]++] = i;  // as the study's sort by (first node, number)
    const __half *features = drawn<__half>(static_cast<size_t>(nodes) * FEATURES, -1.0, 1.0, 1);
    float *out = get<float>(n);
    const Edges e{reinterpret_cast<const uint4 *>(features), copied(ends), copied(order), copied(starts), n, nodes};
    const int blocks = n / 16;
    judge({
        {"as_it_is", [=] { edge_scores<true><<<blocks, 256>>>(e, out); }},
        {"two_edges", [=] { edge_scores_several<2, false><<<blocks / 2, 256>>>(e, out); }},
        {"two_edges_apart", [=] { edge_scores_several<2, true><<<blocks / 2, 256>>>(e, out); }},
        {"four_edges", [=] { edge_scores_several<4, false><<<blocks / 4, 256>>>(e, out); }},
        {"sixteen_two_at_a_time", [=] { edge_scores_lanes<2><<<blocks / 16, 256>>>(e, out); }},
        {"sixteen_four_at_a_time", [=] { edge_scores_lanes<4><<<blocks / 16, 256>>>(e, out); }},
    }, {{out, n}});
}
