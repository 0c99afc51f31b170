// linear_fp32_small_tile, side flawed: the next tile fetched while this one is used
#include "../tried.cuh"

__global__ void __launch_bounds__(256) linear16(const float *x, const float *w, const float *bias, float *y, int n, int depth) {
    __shared__ float xs[16][16], ws[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = bias[column];
    for (int k = 0; k < depth; k += 16) {
        xs[ty][tx] = x[row * depth + k + tx];
        ws[tx][ty] = w[(blockIdx.x * 16 + ty) * depth + k + tx];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += xs[ty][i] * ws[i][tx];
        __syncthreads();
    }
    y[row * n + column] = sum;
}

__device__ __forceinline__ void copy_async(float *to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_until() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

// TILES tiles in turn: TILES - 1 are under way or in use, and the one used last is filled after the only barrier.
template <int TILES> __global__ void __launch_bounds__(256) linear16_async(const float *x, const float *w, const float *bias, float *y, int n, int depth) {
    __shared__ __align__(16) float xs[TILES][16][16], ws[TILES][16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    const float *from_x = x + row * depth + tx, *from_w = w + (blockIdx.x * 16 + ty) * depth + tx;
    float sum = bias[column];
#pragma unroll
    for (int t = 0; t < TILES - 1; ++t) {
        if (t * 16 < depth) copy_async(&xs[t][ty][tx], from_x + t * 16), copy_async(&ws[t][tx][ty], from_w + t * 16);
        commit();
    }
    int use = 0, filled = TILES - 1;
    for (int k = 0; k < depth; k += 16) {
        wait_until<TILES - 2>();
        __syncthreads();
        const int next = k + (TILES - 1) * 16;
        if (next < depth) copy_async(&xs[filled][ty][tx], from_x + next), copy_async(&ws[filled][tx][ty], from_w + next);
        commit();
#pragma unroll
        for (int i = 0; i < 16; i++) sum += xs[use][ty][i] * ws[use][i][tx];
        use = use + 1 == TILES ? 0 : use + 1, filled = filled + 1 == TILES ? 0 : filled + 1;
    }
    y[row * n + column] = sum;
}

// As above, with the places of the tiles known to the compiler.
template <int TILES> __global__ void __launch_bounds__(256) linear16_async_unrolled(const float *x, const float *w, const float *bias, float *y, int n, int depth) {
    __shared__ __align__(16) float xs[TILES][16][16], ws[TILES][16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    const float *from_x = x + row * depth + tx, *from_w = w + (blockIdx.x * 16 + ty) * depth + tx;
    float sum = bias[column];
#pragma unroll
    for (int t = 0; t < TILES - 1; ++t) {
        if (t * 16 < depth) copy_async(&xs[t][ty][tx], from_x + t * 16), copy_async(&ws[t][tx][ty], from_w + t * 16);
        commit();
    }
    for (int first = 0; first < depth; first += TILES * 16) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            if (first + t * 16 >= depth) break;
            wait_until<TILES - 2>();
            __syncthreads();
            constexpr int AHEAD = TILES - 1;
            const int filled = (t + AHEAD) % TILES, next = first + (t + AHEAD) * 16;
            if (next < depth) copy_async(&xs[filled][ty][tx], from_x + next), copy_async(&ws[filled][tx][ty], from_w + next);
            commit();
#pragma unroll
            for (int i = 0; i < 16; i++) sum += xs[t][ty][i] * ws[t][i][tx];
        }
    }
    y[row * n + column] = sum;
}

// The next tile comes into registers during the arithmetic and goes to the other of two tiles after it: one barrier.
__global__ void __launch_bounds__(256) linear16_registers(const float *x, const float *w, const float *bias, float *y, int n, int depth) {
    __shared__ __align__(16) float xs[2][16][16], ws[2][16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    const float *from_x = x + row * depth + tx, *from_w = w + (blockIdx.x * 16 + ty) * depth + tx;
    float sum = bias[column];
    xs[0][ty][tx] = from_x[0], ws[0][tx][ty] = from_w[0];
    __syncthreads();
    for (int k = 0, use = 0; k < depth; k += 16, use ^= 1) {
        const bool more = k + 16 < depth;
        float next_x = 0.f, next_w = 0.f;
        if (more) next_x = from_x[k + 16], next_w = from_w[k + 16];
#pragma unroll
        for (int i = 0; i < 16; i++) sum += xs[use][ty][i] * ws[use][i][tx];
        if (more) xs[use ^ 1][ty][tx] = next_x, ws[use ^ 1][tx][ty] = next_w;
        __syncthreads();
    }
    y[row * n + column] = sum;
}

int main() {
    const int n = 1024;
    const float *x = drawn<float>(n * n, -1, 1, 1), *w = drawn<float>(n * n, -1, 1, 2), *bias = drawn<float>(n, -1, 1, 3);
    float *y = get<float>(n * n);
    const dim3 grid(n / 16, n / 16), block(16, 16);
    judge({{"as_it_is", [=] { linear16<<<grid, block>>>(x, w, bias, y, n, n); }},
        {"async_3_tiles", [=] { linear16_async<3><<<grid, block>>>(x, w, bias, y, n, n); }},
        {"async_3_tiles_unrolled", [=] { linear16_async_unrolled<3><<<grid, block>>>(x, w, bias, y, n, n); }},
        {"async_2_tiles_unrolled", [=] { linear16_async_unrolled<2><<<grid, block>>>(x, w, bias, y, n, n); }},
        {"async_4_tiles_unrolled", [=] { linear16_async_unrolled<4><<<grid, block>>>(x, w, bias, y, n, n); }},
        {"registers_2_tiles", [=] { linear16_registers<<<grid, block>>>(x, w, bias, y, n, n); }}}, {{y, size_t(n) * n}});
}
