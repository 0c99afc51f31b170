// GELU over an array, fixed: float literals and tanhf keep the arithmetic in FP32.
#include <cstdio>
#include <cstdlib>

__global__ void gelu(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

int main() {
    const int n = 1 << 26;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    float *host = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; ++i) host[i] = (i % 2001 - 1000) * 0.004f;
    cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
    for (int step = 0; step < 5; ++step) gelu<<<(n + 255) / 256, 256>>>(n, x, y);
    cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("gelu(%g) = %g, %s\n", 4.0, host[2000], cudaGetErrorString(cudaGetLastError()));
    return 0;
}
