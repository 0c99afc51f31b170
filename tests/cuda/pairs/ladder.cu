// The ladder's own steps that mend one cause: built from kernels/sgemm with the parameters of the catalog.
#include "gemm.h"
#include "pair.cuh"

#define STAGE(NAME) extern "C" GemmprofLaunch gemmprof_launch_##NAME;
STAGE(naive)
STAGE(coalesced)
STAGE(shared)
STAGE(block1d)
STAGE(block2d)
STAGE(vectorized)
STAGE(linearized)
STAGE(padded)
#undef STAGE

namespace {

Sides stages(Buffers &b, long n, const std::vector<std::pair<std::string, GemmprofLaunch *>> &chosen) {
    float *x = b.random<float>(n * n), *y = b.random<float>(n * n), *c = b.output<float>(n * n);
    constexpr auto F32 = gemmprof::Dtype::kFloat32;
    gemmprof::Gemm gemm{int(n), int(n), int(n), 1.0f, 0.0f, F32, F32, x, n, y, n, c, n};
    Sides sides;
    for (const auto &[name, stage] : chosen)
        sides.push_back({name, [gemm, run = stage] { CHECK(static_cast<cudaError_t>(run(&gemm, nullptr))); }});
    return sides;
}
#define STAGE(NAME)                                                                                                    \
    { #NAME, gemmprof_launch_##NAME }

Family ladder("ladder", "ladder", {1024, 2048},
    {{"naive", "coalesced", {"uncoalesced_access"}, "ladder"}, {"coalesced", "shared", {"redundant_loads"}, "ladder"},
        {"shared", "block1d", {"shared_memory_bandwidth"}, "ladder"},
        {"block1d", "block2d", {"shared_memory_bandwidth"}, "ladder"}},
    [](Buffers &b, long n) {
        return stages(b, n, {STAGE(naive), STAGE(coalesced), STAGE(shared), STAGE(block1d), STAGE(block2d)});
    });
Family ladder_tiles("ladder_tiles", "ladder", {1024, 4096},
    {{"block1d", "block2d", {"shared_memory_bandwidth"}, "ladder"},
        {"block2d", "vectorized", {"narrow_access"}, "ladder"},
        {"vectorized", "linearized", {"shared_bank_conflicts"}, "ladder"},
        {"vectorized", "padded", {"shared_bank_conflicts"}, "ladder"}},
    [](Buffers &b, long n) {
        return stages(b, n, {STAGE(block1d), STAGE(block2d), STAGE(vectorized), STAGE(linearized), STAGE(padded)});
    });
#undef STAGE

}  // namespace
