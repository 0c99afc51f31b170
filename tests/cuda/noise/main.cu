// Launches every kernel of this folder: noise [--work PER_THOUSAND] [--launches N] [--interleave] [--time SECONDS] [--only NAME[,NAME...]]
//   --interleave   all kernels once, then all again, instead of all launches of one kernel in a row
//   --time S       no profiler: prints kernel, repetition and milliseconds by CUDA events, for S seconds a kernel and at least 12 times
#include <cstring>

#include <cuda_profiler_api.h>

#include "harness.cuh"

__global__ void prepare(float *x, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * size_t(blockDim.x))
        x[i] = float(scramble(unsigned(i)) % 251);
}

static void time_kernels(const std::vector<Case> &chosen, const Buffers &buffers, int work, double seconds) {
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (const Case &one : chosen) {
        double spent = 0;
        for (int repetition = -2; repetition < 50 && (repetition < 12 || spent < seconds); ++repetition) {
            CHECK(cudaMemset(buffers.y + kElements / 2, 0, 256 << 20));  // throws the last repetition out of L2
            CHECK(cudaEventRecord(start));
            one.launch(buffers, work);
            CHECK(cudaEventRecord(stop));
            CHECK_LAUNCH();
            float milliseconds = 0;
            CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
            spent += 1e-3 * milliseconds;
            if (repetition >= 0) std::printf("%s,%d,%.6f\n", one.name.c_str(), repetition, milliseconds);
        }
    }
}

int main(int argc, char **argv) {
    int work = 1000, launches = 12;
    bool interleave = false;
    double seconds = 0;
    std::string only;
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "--interleave")) interleave = true;
        else if (i + 1 == argc) return std::fprintf(stderr, "%s: unknown, or without a value\n", argv[i]), 2;
        else if (!std::strcmp(argv[i], "--work")) work = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "--launches")) launches = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "--time")) seconds = std::atof(argv[++i]);
        else if (!std::strcmp(argv[i], "--only")) only = "," + std::string(argv[++i]) + ",";
        else return std::fprintf(stderr, "%s: unknown\n", argv[i]), 2;
    }
    std::vector<Case> chosen;
    for (const Case &one : cases())
        if (only.empty() || only.find("," + one.name + ",") != std::string::npos) chosen.push_back(one);
    Buffers buffers;
    CHECK(cudaMalloc(&buffers.x, kElements * sizeof(float)));
    CHECK(cudaMalloc(&buffers.y, kElements * sizeof(float)));
    CHECK(cudaMalloc(&buffers.counters, kCounters * sizeof(unsigned)));
    CHECK(cudaMemset(buffers.counters, 0, kCounters * sizeof(unsigned)));
    prepare<<<1056, 256>>>(buffers.x, kElements);
    prepare<<<1056, 256>>>(buffers.y, kElements);
    CHECK_LAUNCH();
    if (seconds > 0) return time_kernels(chosen, buffers, work, seconds), 0;
    CHECK(cudaProfilerStart());
    const int outer = interleave ? launches : 1, inner = interleave ? 1 : launches;
    for (int round = 0; round < outer; ++round)
        for (const Case &one : chosen)
            for (int again = 0; again < inner; ++again) {
                one.launch(buffers, work);
                CHECK_LAUNCH();
            }
    CHECK(cudaProfilerStop());
}
