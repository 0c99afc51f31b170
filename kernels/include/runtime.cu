// What stages and the binding need of the CUDA runtime, compiled once: workspace.cuh, and an error's words for the
// binding, which compiles without CUDA's headers.
#include <cuda_runtime.h>

#include <atomic>
#include <mutex>

#include "gemm.h"
#include "workspace.cuh"

namespace gemmprof {

// The device's pool; null if it cannot be made.
static cudaMemPool_t pool(int device) {
    static std::mutex mutex;
    static cudaMemPool_t pools[MAX_DEVICES] = {};
    if (device >= MAX_DEVICES) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex);
    if (pools[device] == nullptr) {
        cudaMemPoolProps properties = {};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        unsigned long long keep = 64 << 20;
        // The first launch may be one that is being captured in a graph, and making a pool is no part of it.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        cudaThreadExchangeStreamCaptureMode(&mode);
        const cudaError_t made = cudaMemPoolCreate(&pools[device], &properties);
        cudaThreadExchangeStreamCaptureMode(&mode);
        if (made != cudaSuccess)
            pools[device] = nullptr;
        else
            cudaMemPoolSetAttribute(pools[device], cudaMemPoolAttrReleaseThreshold, &keep);
    }
    return pools[device];
}

Workspace::Workspace(int device, std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes == 0) return;
    const cudaMemPool_t from = pool(device);
    if (from == nullptr || cudaMallocFromPoolAsync(&data, bytes, from, stream) != cudaSuccess) {
        cudaGetLastError();
        data = nullptr;
    }
}

Workspace::~Workspace() {
    if (data != nullptr) cudaFreeAsync(data, stream_);
}

unsigned long long new_ticket() {
    static std::atomic<unsigned long long> launches{1};
    return launches.fetch_add(1) * 0x9E3779B97F4A7C15ull;
}

}  // namespace gemmprof

extern "C" const char* gemmprof_error_string(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
