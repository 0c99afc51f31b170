// The kernels of a stage that is compiled in parts: each part is compiled alone, and lists its own. The first also has
// the host's code; a stage that is compiled as a whole is its own first part.
#pragma once

#include <utility>

#include "gemm.cuh"

#ifndef GEMMPROF_PART
#define GEMMPROF_PART 0
constexpr int PARTS = 1;
#endif

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

// The list of all, where the host's code is.
#if GEMMPROF_PART == 0
#define GEMMPROF_LIST(COUNT)               \
    const KernelList<COUNT, PARTS> list; \
    const gemmprof::KernelFacts (&kernels)[COUNT] = list.all;
#else
#define GEMMPROF_LIST(COUNT)
#endif
