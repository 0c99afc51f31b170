// pair_distances_binned_in_double, side copies: a fast root (rsqrtf, or as -prec-sqrt=false makes it).
#include "../tried.cuh"

constexpr int BINS = 256, TILE = 256;  // particles at a time
constexpr float WIDTH = 0.02f, BOX = 10.24f;
struct SingleBin {
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(sqrtf(square) * (1.f / WIDTH)); }
};
// Rewrites: only the root differs.
struct RsqrtBin {  // as rsqrtf is without options
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(square * rsqrtf(square) * (1.f / WIDTH)); }
};
struct ApproxBin {  // what -prec-sqrt=false makes of sqrtf
    __device__ __forceinline__ int operator()(float square) const { float root; asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(square)); return static_cast<int>(root * (1.f / WIDTH)); }
};
struct ApproxFtzBin {  // and with -ftz=true: no scaling of denormal numbers
    __device__ __forceinline__ int operator()(float square) const { float root; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square)); return static_cast<int>(root * (1.f / WIDTH)); }
};
struct RsqrtFtzBin {
    __device__ __forceinline__ int operator()(float square) const { float inverse; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square)); return static_cast<int>(square * inverse * (1.f / WIDTH)); }
};
__device__ __forceinline__ float nearest_image(float d) { return d - BOX * rintf(d * (1.f / BOX)); }

template <typename Bin, int COPIES>
__global__ void __launch_bounds__(TILE) pair_distances(const float *x, const float *y, const float *z, int *counts, int part) {
    __shared__ float4 tile[TILE];
    __shared__ int found[COPIES][BINS];
    Bin bin;
    for (int c = 0; c < COPIES; ++c) found[c][threadIdx.x] = 0;
    int i = blockIdx.x * TILE + threadIdx.x;
    float px = x[i], py = y[i], pz = z[i];
    int *mine = found[threadIdx.x / 32 % COPIES];
    for (int first = blockIdx.y * part; first < (static_cast<int>(blockIdx.y) + 1) * part; first += TILE) {
        __syncthreads();
        tile[threadIdx.x] = {x[first + threadIdx.x], y[first + threadIdx.x], z[first + threadIdx.x], 0.f};
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < TILE; ++k) {
            float dx = nearest_image(px - tile[k].x), dy = nearest_image(py - tile[k].y), dz = nearest_image(pz - tile[k].z);
            float square = dx * dx + dy * dy + dz * dz;
            if (square > 0.f && square < BOX * BOX / 4) atomicAdd(&mine[min(bin(square), BINS - 1)], 1);
        }
    }
    __syncthreads();
    int sum = 0;
    for (int c = 0; c < COPIES; ++c) sum += found[c][threadIdx.x];
    if (sum) atomicAdd(&counts[threadIdx.x], sum);
}

int main() {
    const int n = 1 << 14, part = n / 16;
    const float *x = drawn<float>(n, 0, BOX, 1), *y = drawn<float>(n, 0, BOX, 2), *z = drawn<float>(n, 0, BOX, 3);
    int *counts = get<int>(BINS);
    const dim3 grid(n / TILE, 16);
    judge({{"as_it_is", [=] { pair_distances<SingleBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"rsqrtf", [=] { pair_distances<RsqrtBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"sqrt_approx_as_prec_sqrt_false", [=] { pair_distances<ApproxBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"sqrt_approx_ftz", [=] { pair_distances<ApproxFtzBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }},
        {"rsqrt_approx_ftz", [=] { pair_distances<RsqrtFtzBin, 8><<<grid, TILE>>>(x, y, z, counts, part); }}}, {{counts, BINS, false}},
        [=] { cudaMemsetAsync(counts, 0, BINS * sizeof(int)); });
}
