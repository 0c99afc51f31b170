// The kernels of one template, by type and storage of 16-bit operands, and which of them a problem takes.
#pragma once

#include <type_traits>

#include "half.cuh"
#include "kernel_list.cuh"

namespace GEMMPROF_STAGE {

constexpr int kLayouts = 4;

inline int layout_of(const gemmprof::Gemm& gemm) { return gemm.a_transposed * 2 + gemm.b_transposed; }
inline int kernel_of(const gemmprof::Gemm& gemm) { return gemmprof::half_index(gemm) * kLayouts + layout_of(gemm); }

constexpr const char* labels[2][kLayouts] = {
    {"float16", "float16, B transposed", "float16, A transposed", "float16, both transposed"},
    {"bfloat16", "bfloat16, B transposed", "bfloat16, A transposed", "bfloat16, both transposed"},
};

// One of a template's kernels, if this part has it. OF: its threads, shared memory, and address by type and by whether
// A and B are transposed. The parts take turns, so that each has about as much to compile.
template <int PART, int PARTS, class OF, int FIRST, int NUMBER>
void list_kernel(gemmprof::KernelFacts* kernels) {
    constexpr int TYPE = NUMBER / kLayouts, LAYOUT = NUMBER % kLayouts;
    using T = std::conditional_t<TYPE == 0, __half, __nv_bfloat16>;
    if constexpr ((FIRST + NUMBER) % PARTS == PART)
        kernels[FIRST + NUMBER] = {labels[TYPE][LAYOUT], OF::template address<T, LAYOUT / 2 != 0, LAYOUT % 2 != 0>(),
                                   OF::threads, OF::shared_bytes};
}

template <int PART, int PARTS, class OF, int FIRST, int... NUMBER>
void list_kernels(gemmprof::KernelFacts* kernels, std::integer_sequence<int, NUMBER...>) {
    (list_kernel<PART, PARTS, OF, FIRST, NUMBER>(kernels), ...);
}

// All of a template's kernels that this part has, from place FIRST of the list on.
template <int PART, int PARTS, class OF, int FIRST = 0>
void list_kernels(gemmprof::KernelFacts* kernels) {
    list_kernels<PART, PARTS, OF, FIRST>(kernels, std::make_integer_sequence<int, 2 * kLayouts>());
}

// The list of a stage whose kernels are of one template.
#define GEMMPROF_KERNELS(KERNEL)                                           \
    struct Only {                                                          \
        static constexpr int threads = THREADS, shared_bytes = SHARED_BYTES; \
        template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>           \
        static const void* address() {                                     \
            return gemmprof::address(KERNEL<T, A_TRANSPOSED, B_TRANSPOSED>); \
        }                                                                  \
    };                                                                     \
    template <>                                                            \
    void list_part<GEMMPROF_PART>(gemmprof::KernelFacts * kernels) {       \
        list_kernels<GEMMPROF_PART, PARTS, Only>(kernels);                 \
    }                                                                      \
    GEMMPROF_LIST(2 * kLayouts)

}  // namespace GEMMPROF_STAGE
