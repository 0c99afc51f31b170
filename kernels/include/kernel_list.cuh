// The kernels of a stage that is compiled in parts: each part is compiled alone, and lists its own.
#pragma once

#include <utility>

#include "gemm.cuh"

namespace GEMMPROF_STAGE {

// Every part of a stage defines its own: puts its kernels where they belong in the list of all.
template <int PART>
void list_part(gemmprof::KernelFacts* kernels);

template <int COUNT, int PARTS>
struct KernelList {
    gemmprof::KernelFacts all[COUNT];

    KernelList() { list(std::make_integer_sequence<int, PARTS>()); }

  private:
    template <int... EVERY_PART>
    void list(std::integer_sequence<int, EVERY_PART...>) {
        (list_part<EVERY_PART>(all), ...);
    }
};

}  // namespace GEMMPROF_STAGE
