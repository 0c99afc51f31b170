// Thread-block clusters with distributed shared memory (needs compute capability 9.0).
#include <cooperative_groups.h>

#include "common.cuh"

namespace cg = cooperative_groups;

// Each block reads its neighbour's shared memory within a cluster of two.
__global__ void __cluster_dims__(2, 1, 1) neighbour_sum(const float *in, float *out) {
    __shared__ float mine[256];
    cg::cluster_group cluster = cg::this_cluster();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    mine[threadIdx.x] = in[i];
    cluster.sync();
    const float *theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
    float sum = 0.0f;
    for (int j = 0; j < 32; ++j) sum += theirs[(threadIdx.x + j) % 256];
    cluster.sync();
    out[i] = sum;
}

int main() {
    const int blocks = 264, threads = 256;
    neighbour_sum<<<blocks, threads>>>(device_buffer<float>(blocks * threads), device_buffer<float>(blocks * threads));
    CHECK_LAUNCH();
}
