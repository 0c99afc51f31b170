// A GEMM of one's own in CUDA, for my_gemm_cuda.py: a 32 x 32 tile of C a block, operands through shared memory.
constexpr int TILE = 32;

__global__ void tiles(int M, int N, int K, const float* A, int lda, const float* B, int ldb, float* C, int ldc) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; k += TILE) {
        const int a_col = k + threadIdx.x, b_row = k + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < M && a_col < K ? A[long(row) * lda + a_col] : 0.0f;
        Bs[threadIdx.y][threadIdx.x] = b_row < K && col < N ? B[long(b_row) * ldb + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += As[threadIdx.y][i] * Bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) C[long(row) * ldc + col] = sum;
}

extern "C" int launch(int m, int n, int k, const float* a, int lda, const float* b, int ldb, float* c, int ldc,
                      cudaStream_t stream) {
    if (m == 0 || n == 0) return 0;
    const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    tiles<<<grid, dim3(TILE, TILE), 0, stream>>>(m, n, k, a, lda, b, ldb, c, ldc);
    return int(cudaGetLastError());
}
