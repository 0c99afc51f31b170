// Device memory that one launch needs for itself. Host code, compiled once (runtime.cu): the headers that it needs would
// take each part of each stage a second.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace gemmprof {

constexpr int MAX_DEVICES = 64;  // whose facts and memory are remembered

// Memory for one launch on a stream, given back when that launch is over. It comes from a pool that keeps its memory
// from launch to launch, so nothing is known of its contents.
class Workspace {
  public:
    void* data = nullptr;  // null where none was asked for or none is left

    Workspace(int device, std::size_t bytes, cudaStream_t stream);
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    ~Workspace();

  private:
    cudaStream_t stream_;
};

// A word that differs from launch to launch: memory that was never written may hold anything, but hardly this.
unsigned long long new_ticket();

}  // namespace gemmprof
