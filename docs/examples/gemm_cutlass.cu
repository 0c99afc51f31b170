// A bfloat16 GEMM from CUTLASS's collective builder for Hopper: TMA loads, warp-specialised wgmma.
// nvcc -std=c++17 -O3 -lineinfo -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -I cutlass/include
//      -I cutlass/tools/util/include gemm_cutlass.cu -lcuda -o gemm_cutlass
#include <cstdio>

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

using namespace cute;
using Element = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using TileShape = Shape<_128, _128, _64>;
using ClusterShape = Shape<_2, _1, _1>;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, Element, Row, 8, Element, Row, 8,
    cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, Row, 8, Element, Column, 8, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

__global__ void fill(Element *values, int n, unsigned seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = Element(((i * 2654435761u + seed) >> 16) % 17 * 0.125f - 1.0f);
}

int main() {
    const int m = 8192, n = 8192, k = 8192;
    Element *a, *b, *c;
    cudaMalloc(&a, sizeof(Element) * m * k);
    cudaMalloc(&b, sizeof(Element) * n * k);
    cudaMalloc(&c, sizeof(Element) * m * n);
    fill<<<m * (k / 256), 256>>>(a, m * k, 1);
    fill<<<n * (k / 256), 256>>>(b, n * k, 2);
    auto stride_a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, cute::make_shape(m, k, 1));
    auto stride_b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, cute::make_shape(n, k, 1));
    auto stride_c = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, cute::make_shape(m, n, 1));
    typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                       {m, n, k, 1},
                                       {a, stride_a, b, stride_b},
                                       {{1.0f, 0.0f}, c, stride_c, c, stride_c}};
    Gemm gemm;
    void *workspace = nullptr;
    cudaMalloc(&workspace, Gemm::get_workspace_size(arguments) + 1);
    cutlass::Status status = gemm.initialize(arguments, workspace);
    for (int i = 0; i < 3 && status == cutlass::Status::kSuccess; ++i) status = gemm.run();
    Element first;
    cudaMemcpy(&first, c, sizeof(Element), cudaMemcpyDeviceToHost);
    printf("%s, %s, C[0, 0] = %g\n", cutlass::cutlassGetStatusString(status),
           cudaGetErrorString(cudaGetLastError()), static_cast<float>(first));
    return 0;
}
