// Device memory that one launch needs for itself. Host code.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace gemmprof {

constexpr int MAX_DEVICES = 64;  // whose facts and memory are remembered

// Memory for one launch on a stream, given back when that launch is over. It comes from a pool that keeps its memory
// from launch to launch, so nothing is known of its contents.
class Workspace {
  public:
    void* data = nullptr;  // null where none was asked for or none is left

    Workspace(int device, std::size_t bytes, cudaStream_t stream) : stream_(stream) {
        if (bytes == 0) return;
        const cudaMemPool_t from = pool(device);
        if (from == nullptr || cudaMallocFromPoolAsync(&data, bytes, from, stream) != cudaSuccess) {
            cudaGetLastError();
            data = nullptr;
        }
    }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    ~Workspace() {
        if (data != nullptr) cudaFreeAsync(data, stream_);
    }

  private:
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

    cudaStream_t stream_;
};

// A word that differs from launch to launch: memory that was never written may hold anything, but hardly this.
inline unsigned long long new_ticket() {
    static std::atomic<unsigned long long> launches{1};
    return launches.fetch_add(1) * 0x9E3779B97F4A7C15ull;
}

}  // namespace gemmprof
