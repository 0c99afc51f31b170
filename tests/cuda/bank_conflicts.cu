// Flaw: threads of a warp want different words of the same shared-memory bank.
#include "common.cuh"

constexpr int WORDS = 32 * 32;

// Lane l reads word l*Stride (mod 1024): a Stride of 1, 2, 8, 32 makes loads 1-, 2-, 8-, 32-way.
template <int Stride>
__global__ void conflict_load(const float *in, float *out) {
    __shared__ float tile[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) tile[i] = in[i];
    __syncthreads();
    float sum = 0.0f;
    int lane = threadIdx.x % 32;
    for (int round = 0; round < 64; ++round) {
        int word = (lane * Stride + round + threadIdx.x / 32) % WORDS;
        sum += tile[word];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A transpose without padding: rows are read soundly, columns are stored 32-way.
__global__ void conflict_store(const float *in, float *out) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    for (int row = y; row < 32; row += 8) tile[x][row] = in[blockIdx.x * WORDS + row * 32 + x];
    __syncthreads();
    for (int row = y; row < 32; row += 8) out[blockIdx.x * WORDS + row * 32 + x] = tile[row][x];
}

// The same transpose with one word of padding a row: no conflicts.
__global__ void padded_store(const float *in, float *out) {
    __shared__ float tile[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    for (int row = y; row < 32; row += 8) tile[x][row] = in[blockIdx.x * WORDS + row * 32 + x];
    __syncthreads();
    for (int row = y; row < 32; row += 8) out[blockIdx.x * WORDS + row * 32 + x] = tile[row][x];
}

// 16-byte loads need four wavefronts even when sound; a stride of two vectors doubles that.
__global__ void conflict_wide(const float4 *in, float4 *out) {
    __shared__ float4 tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float4 value = tile[(threadIdx.x * 2) % 256];
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int main() {
    const int blocks = 264;
    float *in = device_buffer<float>(blocks * WORDS);
    float *out = device_buffer<float>(blocks * WORDS);
    conflict_load<1><<<blocks, 256>>>(in, out);
    CHECK_LAUNCH();
    conflict_load<2><<<blocks, 256>>>(in, out);
    CHECK_LAUNCH();
    conflict_load<8><<<blocks, 256>>>(in, out);
    CHECK_LAUNCH();
    conflict_load<32><<<blocks, 256>>>(in, out);
    CHECK_LAUNCH();
    conflict_store<<<blocks, dim3(32, 8)>>>(in, out);
    CHECK_LAUNCH();
    padded_store<<<blocks, dim3(32, 8)>>>(in, out);
    CHECK_LAUNCH();
    conflict_wide<<<blocks, 256>>>(reinterpret_cast<float4 *>(in), reinterpret_cast<float4 *>(out));
    CHECK_LAUNCH();
}
