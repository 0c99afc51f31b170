// Shared by the small programs of this folder: error checks and device buffers with non-trivial content.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t status_ = (call);                                                              \
        if (status_ != cudaSuccess) {                                                              \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));  \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

// Ends the program unless the launch before it, and the kernel itself, went well.
#define CHECK_LAUNCH()                                                                             \
    do {                                                                                           \
        CHECK(cudaGetLastError());                                                                 \
        CHECK(cudaDeviceSynchronize());                                                            \
    } while (0)

// A device buffer of `count` elements holding 0, 1, ..., 250, 0, 1, ... (never all zeros: zeros can run faster).
template <typename T>
T *device_buffer(size_t count) {
    std::vector<T> host(count);
    for (size_t i = 0; i < count; ++i) host[i] = static_cast<T>(static_cast<int>(i % 251));
    T *device = nullptr;
    CHECK(cudaMalloc(&device, count * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}
