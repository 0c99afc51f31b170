// Stage 13, the fastest FP32 kernel of the ladder on Hopper: the roof is one FFMA a cycle, so no cycle may be wasted.
//
// A block of four warps computes 128 x 128 of C, each warp 64 x 64, each thread 16 x 8 (its rows and columns
// interleaved with those of the warp's other lanes); two blocks share an SM. What this stage does over stage 12:
//
// 1. Register banks. Hopper's register file has two banks (even and odd registers), each read once a cycle, and an
//    FFMA reads three registers. It issues every cycle only if one of them comes from the reuse cache (what the FFMA
//    before it read in the same place) and the other two lie in different banks. `multiply` orders the FFMAs so that
//    this is always possible. The optimiser of ptxas shuffles that order to hide latencies that are hidden already, so
//    this stage is compiled with -Xptxas=-O1 (see the catalog): without it, an FFMA took 1.1 to 1.3 cycles.
// 2. Hand-placed shared loads. Every load stands where the registers it fills have just been used for the last time,
//    64 or more FFMAs before its value is needed, so that two warps a scheduler suffice.
// 3. A stays as it lies in memory (the k of a row side by side): no transposition on its way, and a thread reads four k
//    of a row at once. The 128-byte rows of the tile are XOR-swizzled, 16 bytes at a time, against bank conflicts. That
//    is a layout which the bulk tensor copy (TMA) writes, so one thread copies both tiles with two instructions.
// 4. Few tiles leave SMs idle. Up to 8 blocks then share a tile: each sums a part of K, and as a thread block cluster
//    they add their sums through distributed shared memory. No workspace, no atomics, the same result every time.
// 5. Clusters leave SMs without partners idle, and long K with few tiles asks for more of them than the GPU holds. Then
//    teams of warps within a block take parts of K, as many teams as an SM holds blocks otherwise, and up to 32 such
//    blocks share a tile by way of L2, each adding up a share of it. Also without atomics, and in a fixed order. Where
//    the tiles divide the SMs badly, blocks of one team share in the same way, two or three of them on an SM.
// 6. Where these tiles are too coarse, blocks of the same kernel compute 128 x 64, 64 x 128, 64 x 64 or 32 x 128.
//    `choose_schedule` expects the time of every tile and number of blocks that share it, and takes the shortest.
//
// TMA wants rows that begin at multiples of 16 bytes; an operand without them is copied first. GPUs before Hopper run
// the large tile with cp.async and without clusters.
//
// Its parts, each to be read alone:
//   fastest_tile.cuh      the sizes of the tiles
//   fastest_multiply.cuh  the order of the FFMAs (1)
//   fastest_kernel.cuh    the main loop (2, 3), and how a cluster adds up (4)
//   fastest_teams.cuh     how teams, and blocks that share a tile without a cluster, add up (5)
//   fastest_epilogue.cuh  from sums to C
//   fastest_few.cuh       few rows or columns, without tiles
//   fastest_schedule.cuh  the choice of tile and of who shares it, on the host (4, 5, 6)
//   fastest_operands.cuh  what the copy engine asks of A and B, on the host
#include <cuda.h>

#include <utility>

#include "fastest_few.cuh"
#include "fastest_kernel.cuh"
#include "fastest_operands.cuh"
#include "fastest_schedule.cuh"

namespace GEMMPROF_STAGE {

using Function = decltype(sgemm_fastest<Large, false, 4>);

// The ladder's list of kernels holds functions of one type; the launches below do without it or convert back.
template <class F>
gemmprof::KernelFunction* as_kernel(F* function) {
    return reinterpret_cast<gemmprof::KernelFunction*>(function);
}

template <class T, bool BY_THREADS, int WIDTH>
gemmprof::Kernel kernel_of(const char* label) {
    return {label, as_kernel(&sgemm_fastest<T, BY_THREADS, WIDTH>), T::threads, T::bm, T::bn, T::shared_bytes};
}

// In the order of `costs`, then those for GPUs before Hopper.
const gemmprof::Kernel kernels[] = {
    kernel_of<Large, false, 4>("tensor copies"),
    kernel_of<Medium, false, 4>("tensor copies, medium tile"),
    kernel_of<Small, false, 4>("tensor copies, small tile"),
    kernel_of<LargeTeams, false, 4>("tensor copies, teams"),
    kernel_of<MediumTeams, false, 4>("tensor copies, medium tile, teams"),
    kernel_of<WideTeams, false, 4>("tensor copies, wide tile, teams"),
    kernel_of<SmallTeams, false, 4>("tensor copies, small tile, teams"),
    kernel_of<SlimTeams, false, 4>("tensor copies, slim tile, teams"),
    kernel_of<LargeParts, false, 4>("tensor copies, parts"),
    kernel_of<MediumParts, false, 4>("tensor copies, medium tile, parts"),
    kernel_of<LargeSpans, false, 4>("tensor copies, spans"),
    kernel_of<Large, true, 4>("16-byte copies"),
    kernel_of<Large, true, 1>("4-byte copies"),
    {"alignment of an operand", as_kernel(&align_rows), ALIGN_THREADS, 8, 256, 0},
    {"one row", as_kernel(few::few_rows<1, 4, 32>), few::FEW_THREADS, 1, 128, 0},
};

// Launches the kernel of a schedule; without tensor maps, the large tile's for GPUs before Hopper.
cudaError_t launch_schedule(const gemmprof::Gemm& gemm, cudaStream_t stream, const Schedule& schedule, const Gpu& gpu,
                            const CUtensorMap* maps) {
    const bool wide = aligned(gemm.a, gemm.lda) && aligned(gemm.b, gemm.ldb);
    const gemmprof::Kernel& kernel = kernels[maps != nullptr ? schedule.tile : wide ? TILES : TILES + 1];
    if (cudaError_t error = gemmprof::allow_shared_memory(kernel)) return error;
    if (cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel.function),
                                                 cudaFuncAttributePreferredSharedMemoryCarveout, 100))
        return error;

    const int splits = schedule.splits;
    const int tiles = gemmprof::ceil_div(gemm.m, kernel.tile_m) * gemmprof::ceil_div(gemm.n, kernel.tile_n);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(schedule.tile == SPANS ? splits : tiles * splits));
    config.blockDim = dim3(kernel.threads);
    config.dynamicSmemBytes = kernel.dynamic_shared_memory;
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    config.attrs = &attribute;
    config.numAttrs = splits > 1 ? 1 : 0;
    Parts parts = {};

    // Blocks that share a tile form a cluster, or find each other's sums in memory. If all blocks are at work at once,
    // which a cooperative launch makes sure of, they share out the addition, too; otherwise the last block of a tile
    // adds up what those launched before it have left.
    const bool together = schedule.tile == SPANS ||
                          std::int64_t(tiles) * splits <= gpu.sms * costs[schedule.tile].blocks_per_sm;
    const int readers = together ? blocks_of_tile(gemm, schedule) : 1;
    const std::size_t sum_bytes = part_bytes(gemm, schedule);
    const std::size_t flags = sum_bytes > 0 ? std::size_t(parts_left(gemm, schedule)) * readers : 0;
    const gemmprof::Workspace workspace(gpu.device, sum_bytes + flags * sizeof(*parts.complete), stream);
    if (sum_bytes > 0) {
        if (workspace.data == nullptr) return cudaErrorMemoryAllocation;
        parts.sums = static_cast<float4*>(workspace.data);
        parts.complete = reinterpret_cast<unsigned long long*>(static_cast<char*>(workspace.data) + sum_bytes);
        parts.ticket = gemmprof::new_ticket(), parts.readers = readers;
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = together;
    } else {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = unsigned(splits), attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    }
    const CUtensorMap none[2] = {};
    if (maps == nullptr) maps = none;
    return cudaLaunchKernelEx(&config, reinterpret_cast<Function*>(kernel.function), maps[0], maps[1], gemm.m, gemm.n,
                              gemm.k, gemm.alpha, static_cast<const float*>(gemm.a), gemm.lda,
                              static_cast<const float*>(gemm.b), gemm.ldb, gemm.beta, static_cast<float*>(gemm.c),
                              gemm.ldc, splits, aligned(gemm.c, gemm.ldc), parts);
}

// The same with tensor copies, if the copy engine takes the operands.
cudaError_t launch_tensor_copies(const gemmprof::Gemm& gemm, cudaStream_t stream, const Schedule& schedule,
                                 const Gpu& gpu, bool& described) {
    const int box_m = kernels[schedule.tile].tile_m, box_n = kernels[schedule.tile].tile_n;
    CUtensorMap maps[2] = {};
    described = describe(&maps[0], gemm.a, gemm.m, gemm.k, gemm.lda, box_m, BK, CU_TENSOR_MAP_SWIZZLE_128B) &&
                describe(&maps[1], gemm.b, gemm.k, gemm.n, gemm.ldb, BK, box_n, CU_TENSOR_MAP_SWIZZLE_NONE);
    return described ? launch_schedule(gemm, stream, schedule, gpu, maps) : cudaSuccess;
}

cudaError_t launch_variant(const gemmprof::Gemm& gemm, cudaStream_t stream, const Gpu& gpu) {
    if (gpu.tensor_copies && aligned(gemm.a, gemm.lda) && aligned(gemm.b, gemm.ldb) && gemm.k > 0) {
        bool described = false;
        for (const int tiles : {TILES, FIRST_THROUGH_L2}) {
            const Schedule schedule = choose_schedule(gemm, tiles, gpu, kernels);
            const cudaError_t error = launch_tensor_copies(gemm, stream, schedule, gpu, described);
            if (!described) break;
            if (error != cudaErrorMemoryAllocation && error != cudaErrorCooperativeLaunchTooLarge) return error;
            cudaGetLastError();  // clusters need no memory, and no other blocks at work at the same time
        }
    }
    return launch_schedule(gemm, stream, choose_schedule(gemm, 1, gpu, kernels), gpu, nullptr);
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    if (gemm.m == 0 || gemm.n == 0) return cudaSuccess;
    Gpu gpu = {};
    int major = 0;
    if (cudaError_t error = cudaGetDevice(&gpu.device)) return error;
    for (const auto& [value, attribute] :
         {std::pair{&major, cudaDevAttrComputeCapabilityMajor}, std::pair{&gpu.sms, cudaDevAttrMultiProcessorCount},
          std::pair{&gpu.shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin}})
        if (cudaError_t error = cudaDeviceGetAttribute(value, attribute, gpu.device)) return error;
    gpu.tensor_copies = 100 * major >= TENSOR_COPIES_FROM;
    if (gpu.tensor_copies)
        if (const few::Division few = few::divide(gemm, gpu); few.variant != nullptr)
            return few::launch(gemm, few, stream);

    gemmprof::Gemm operands = gemm;
    float *a_copy = nullptr, *b_copy = nullptr;
    if (gpu.tensor_copies && gemm.k > 0) {
        a_copy = make_aligned(operands.a, operands.lda, gemm.m, gemm.k, gpu.sms, stream);
        b_copy = make_aligned(operands.b, operands.ldb, gemm.k, gemm.n, gpu.sms, stream);
    }
    cudaError_t error = launch_variant(operands, stream, gpu);
    for (float* copy : {a_copy, b_copy})
        if (copy != nullptr)
            if (cudaError_t free_error = cudaFreeAsync(copy, stream); error == cudaSuccess) error = free_error;
    return error;
}

// Of `kernels`, those for which a block finds enough shared memory on the current device.
int report_kernels(gemmprof::KernelReport* reports, int capacity) {
    int device = 0, limit = 0, found = 0;
    if (cudaError_t error = cudaGetDevice(&device)) return -int(error);
    if (cudaError_t error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device))
        return -int(error);
    for (const gemmprof::Kernel& kernel : kernels) {
        if (kernel.dynamic_shared_memory > limit) continue;
        if (found < capacity)
            if (int error = gemmprof::report_kernel(kernel, &reports[found])) return error;
        ++found;
    }
    return found;
}

}  // namespace GEMMPROF_STAGE

// As GEMMPROF_EXPORT_STAGE does it, but for the kernels that are reported.
extern "C" int GEMMPROF_PASTE(gemmprof_launch_, GEMMPROF_STAGE)(const gemmprof::Gemm* gemm, void* stream) {
    return int(GEMMPROF_STAGE::launch(*gemm, static_cast<cudaStream_t>(stream)));
}
extern "C" int GEMMPROF_PASTE(gemmprof_kernels_, GEMMPROF_STAGE)(gemmprof::KernelReport * reports, int capacity) {
    return GEMMPROF_STAGE::report_kernels(reports, capacity);
}
