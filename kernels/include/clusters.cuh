// How many thread block clusters a GPU holds, asked of its driver: cards of one architecture differ, because the SMs
// that a chip was sold without are not the same in every group of SMs. Host code.
#pragma once

#include <atomic>

#include "gemm.cuh"
#include "workspace.cuh"

namespace gemmprof {

constexpr int MAX_CLUSTER = 8;  // blocks: the most that every Hopper GPU accepts

// The current device, and how many SMs it has.
inline cudaError_t current_device(int& device, int& sms) {
    if (cudaError_t error = cudaGetDevice(&device)) return error;
    return cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
}

// A kernel's clusters of more blocks than every GPU accepts have to be allowed.
inline cudaError_t allow_cluster(const KernelFacts& kernel, int cluster) {
    if (cluster <= MAX_CLUSTER) return cudaSuccess;
    return cudaFuncSetAttribute(kernel.function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

// How many clusters of so many blocks the current device holds at a time: an SM that finds no partners near enough
// stays idle. None where it accepts only smaller ones.
inline int cluster_places(const KernelFacts& kernel, int cluster, int sms) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(sms / cluster * cluster));
    config.blockDim = dim3(unsigned(kernel.threads));
    config.dynamicSmemBytes = std::size_t(kernel.dynamic_shared_memory);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = unsigned(cluster);
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int places = 0;
    if (allow_shared_memory(kernel) == cudaSuccess && allow_cluster(kernel, cluster) == cudaSuccess &&
        cudaOccupancyMaxActiveClusters(&places, kernel.function, &config) == cudaSuccess && places > 0)
        return places;
    cudaGetLastError();
    return cluster > MAX_CLUSTER ? 0 : sms / cluster > 1 ? sms / cluster : 1;
}

// The same, asked once for each device and size of cluster up to MOST; a block alone finds room on every SM. A static one
// for each kernel.
template <int MOST>
class KnownPlaces {
  public:
    int operator()(const KernelFacts& kernel, int device, int sms, int cluster) {
        if (cluster == 1) return sms;
        if (device >= MAX_DEVICES) return cluster_places(kernel, cluster, sms);
        std::atomic<int>& places = known_[device][cluster];
        if (places == 0) places = cluster_places(kernel, cluster, sms);
        return places;
    }

  private:
    std::atomic<int> known_[MAX_DEVICES][MOST + 1] = {};
};

// How fast the memory of a card is, compared with an H200's, from which the models of time have their constants; 1 if it
// is that to a fifth, so that what a driver reports of such a card moves no choice.
inline double memory_speed(int device) {
    static std::atomic<double> known[MAX_DEVICES];
    constexpr double H200 = 3.201e6 * 6144;  // kHz and bits
    double speed = device < MAX_DEVICES ? known[device].load() : 0.0;
    if (speed == 0.0) {
        int clock = 0, width = 0;
        cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, device);
        cudaDeviceGetAttribute(&width, cudaDevAttrGlobalMemoryBusWidth, device);
        speed = clock > 0 && width > 0 ? double(clock) * width / H200 : 1.0;
        if (speed > 0.8) speed = 1.0;
        if (device < MAX_DEVICES) known[device] = speed;
    }
    return speed;
}

}  // namespace gemmprof
