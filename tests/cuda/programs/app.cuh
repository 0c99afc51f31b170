// What the C++ programs share: NVTX ranges, checks, and steps timed or profiled.
//
//   program measure            a JSON line for each variant: wall and kernel time of a step, launches
//   ncu --profile-from-start off --nvtx … program profile VARIANT
#pragma once
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                                             \
  do {                                                                                          \
    const cudaError_t status = (call);                                                          \
    if (status != cudaSuccess) {                                                                \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));      \
      std::exit(1);                                                                             \
    }                                                                                           \
  } while (0)

struct Range {
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
};

// A launch that can be repeated by itself, so that its time needs no profiler; only what is idempotent in time.
struct Launch {
  std::function<void(cudaStream_t)> run;
};

struct Variant {
  std::string name;
  std::function<void()> step;                // as the program runs it
  std::vector<Launch> launches;              // the same kernels, each for itself
};

template <typename T>
T* device_array(const std::vector<T>& values) {
  T* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return pointer;
}

template <typename T>
T* device_array(size_t count) {
  return device_array(std::vector<T>(count));
}

inline float median(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Milliseconds of `times` calls, the median of several turns, over `times`.
inline float milliseconds(const std::function<void()>& call, int times) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> found;
  for (int turn = 0; turn < 7; ++turn) {
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(begin, cudaStreamLegacy));
    for (int i = 0; i < times; ++i) call();
    CHECK(cudaEventRecord(end, cudaStreamLegacy));
    CHECK(cudaEventSynchronize(end));
    float elapsed = 0;
    CHECK(cudaEventElapsedTime(&elapsed, begin, end));
    found.push_back(elapsed / times);
  }
  return median(found);
}

inline int run_program(const char* program, std::vector<Variant>& variants, int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "measure") {
    for (auto& variant : variants) {
      for (int i = 0; i < 3; ++i) variant.step();
      const float wall = milliseconds(variant.step, 10);
      float kernels = 0;
      for (auto& launch : variant.launches)
        kernels += milliseconds([&] { launch.run(cudaStreamLegacy); }, 20);
      std::printf("{\"program\": \"%s\", \"variant\": \"%s\", \"wall_ns\": %.0f, \"kernels_ns\": %.0f, \"launches\": %zu}\n",
                  program, variant.name.c_str(), wall * 1e6, kernels * 1e6, variant.launches.size());
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
  }
  const std::string wanted = argc > 2 ? argv[2] : "base";
  for (auto& variant : variants) {
    if (what != "profile" || variant.name != wanted) continue;
    for (int i = 0; i < 2; ++i) variant.step();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    {
      const Range range("step");
      variant.step();
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
    return 0;
  }
  std::fprintf(stderr, "usage: %s measure | profile VARIANT\n", argv[0]);
  return 2;
}
