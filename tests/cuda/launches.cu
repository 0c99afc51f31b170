// Several launches of one kernel with different sizes: each must stay a result of its own.
//   launches         five launches
//   launches range   the launches between cudaProfilerStart and cudaProfilerStop (for range replay)
//   launches graph   three of them as one CUDA graph
#include <cstring>

#include <cuda_profiler_api.h>

#include "common.cuh"

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main(int argc, char **argv) {
    const int n = 1 << 20;
    const char *mode = argc > 1 ? argv[1] : "";
    float *x = device_buffer<float>(n), *y = device_buffer<float>(n);
    if (std::strcmp(mode, "graph") == 0) {
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamCreate(&stream));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        saxpy<<<n / 256, 256, 0, stream>>>(n, 2.0f, x, y);
        saxpy<<<n / 512, 256, 0, stream>>>(n / 2, 3.0f, x, y);
        saxpy<<<n / 1024, 256, 0, stream>>>(n / 4, 4.0f, x, y);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        return 0;
    }
    CHECK(cudaProfilerStart());
    saxpy<<<4, 256>>>(1000, 2.0f, x, y);
    saxpy<<<256, 256>>>(65536, 2.0f, x, y);
    saxpy<<<4096, 256>>>(n, 2.0f, x, y);
    saxpy<<<4096, 256>>>(n, 2.0f, x, y);  // the same size again: still two results
    saxpy<<<dim3(1024, 1, 1), dim3(1024, 1, 1)>>>(n, 2.0f, x, y);
    CHECK_LAUNCH();
    CHECK(cudaProfilerStop());
}
