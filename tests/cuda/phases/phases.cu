// Kernels whose shape in time is known from how they are written: each part lasts so many cycles by the SM's own clock,
// with real work in it. expected.json says what the launch over time has to show of each; it was written before the
// kernels ran. Usage: phases [KERNEL ...]; phases graph
#include <cooperative_groups.h>

#include <cstdint>
#include <cstring>

#include "../common.cuh"
#include "wgmma.cuh"

namespace cg = cooperative_groups;

constexpr long long MICROSECOND = 1800;   // cycles, at about the clock of an H100 or H200
constexpr int ALONE = 120 * 1024;         // bytes of shared memory of which an SM has no room for two
constexpr size_t STREAMED = 256u << 20;   // bytes: many times the L2 cache

extern __shared__ __align__(128) unsigned char scratch[];

__device__ unsigned long long marks[4];  // nanoseconds: first block, first block that works, last end
__device__ float sink[1 << 20];

__device__ __forceinline__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

__device__ __forceinline__ void keep(float value) {
    if (value == 12345.678f) sink[threadIdx.x] = value;
}

// FMAs in registers: issue slots and the FMA pipe are busy, no memory is.
__device__ float multiply_for(float x, long long cycles) {
    float a = x, b = x + 1.0f, c = x + 2.0f, d = x + 3.0f;
    for (long long end = clock64() + cycles; clock64() < end;) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            a = fmaf(a, 0.999f, 0.5f);
            b = fmaf(b, 0.999f, 0.5f);
            c = fmaf(c, 0.999f, 0.5f);
            d = fmaf(d, 0.999f, 0.5f);
        }
    }
    return a + b + c + d;
}

// Reads that no cache has: DRAM is busy.
__device__ float stream_for(const float4 *data, long long cycles, unsigned from) {
    const size_t count = STREAMED / sizeof(float4), step = size_t(gridDim.x) * blockDim.x;
    size_t at = (size_t(from) * step * 4 + blockIdx.x * blockDim.x + threadIdx.x) % count;
    float sum = 0.0f;
    for (long long end = clock64() + cycles; clock64() < end;) {
        float4 read[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            read[i] = __ldcs(data + at);
            at += step;
            at = at < count ? at : at - count;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += read[i].x + read[i].y + read[i].z + read[i].w;
    }
    return sum;
}

// Shared memory until the SM's clock has come so far: L1's data stage is busy, the FMA pipe hardly.
__device__ float exchange_for(long long end) {
    auto *words = reinterpret_cast<volatile float *>(scratch);
    float sum = 0.0f;
    while (clock64() < end)
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += words[(threadIdx.x + 32 * i) % 8192];
    return sum;
}

__device__ void fill_scratch() {
    auto *words = reinterpret_cast<unsigned *>(scratch);
    for (unsigned i = threadIdx.x; i < ALONE / 4; i += blockDim.x) {
        unsigned hash = (i + 1) * 2654435761u;
        hash ^= hash >> 15;
        hash *= 2246822519u;
        // Two bfloat16 between 1 and 2 in size, of either sign: numbers whose bits change all the time.
        words[i] = (hash & 0x807f807fu) | 0x3f803f80u;
    }
    __syncthreads();
}

// wgmma of shared memory with itself, by two warpgroups: the tensor cores are as busy as they can be. `by_timer`: the
// length is in nanoseconds of the GPU's timer, which does not slow down with the clock.
__device__ __forceinline__ void multiply_tiles_for(float (&sums)[128], long long length, bool by_timer = false) {
    using namespace gemmprof::ptx;
    const auto at = static_cast<std::uint64_t>(__cvta_generic_to_shared(scratch));
    const std::uint64_t layout = (std::uint64_t(128 >> 4) << 16) | (std::uint64_t(256 >> 4) << 32);
    const std::uint64_t a = layout | ((at + 65536 + threadIdx.x / 128 * 2048) >> 4), b = layout | (at >> 4);
    const long long end = (by_timer ? static_cast<long long>(now()) : clock64()) + length;
    // The four warps of a warpgroup multiply together: all must leave in the same round.
    do {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 8; ++i) wgmma<true, 0, 0>(sums, a + i * 256, b + i * 512, 1);
        wgmma_commit();
        wgmma_wait<0>();
    } while (__syncthreads_or((by_timer ? static_cast<long long>(now()) : clock64()) < end));
}

__device__ __forceinline__ void store_tile(const float (&sums)[128], float *out) {
    for (int i = 0; i < 128; ++i) __stcs(out + (size_t(blockIdx.x) * 128 + i) * blockDim.x + threadIdx.x, sums[i]);
}

// --------------------------------------------------------------------------------------------------------- one thing

__global__ void __launch_bounds__(1024) tail_quarter_wave() { keep(multiply_for(threadIdx.x, 50 * MICROSECOND)); }

__global__ void __launch_bounds__(1024) tail_short() { keep(multiply_for(threadIdx.x, 10 * MICROSECOND)); }

// Block b of 132 works (b + 1) / 132 of the time.
__global__ void __launch_bounds__(1024) uneven_blocks() {
    keep(multiply_for(threadIdx.x, 200 * MICROSECOND * (blockIdx.x + 1) / gridDim.x));
}

// The first block takes ten times as long as each other.
__global__ void __launch_bounds__(1024) one_long_block() {
    keep(multiply_for(threadIdx.x, (blockIdx.x ? 20 : 200) * MICROSECOND));
}

__global__ void __launch_bounds__(1024) sound_products() { keep(multiply_for(threadIdx.x, 50 * MICROSECOND)); }

__global__ void __launch_bounds__(256) sound_copy(const float4 *in, float4 *out, size_t count) {
    for (size_t i = size_t(blockIdx.x) * 1024 + threadIdx.x, n = 0; n < 4; ++n, i += 256)
        if (i < count) out[i] = in[i];
}

// --------------------------------------------------------------------------------------------------- several in turn

__global__ void __launch_bounds__(1024) three_phases(const float4 *data) {
    const long long begin = clock64();
    keep(multiply_for(threadIdx.x, 80 * MICROSECOND));
    keep(stream_for(data, begin + 140 * MICROSECOND - clock64(), 0));
    // By one schedule: warps that wait for the shared-memory pipe would begin their part when others end theirs.
    __syncthreads();
    keep(exchange_for(begin + 200 * MICROSECOND));
}

// All blocks of a wave read, then compute, in step with each other.
__global__ void __launch_bounds__(1024) waves_in_step(const float4 *data) {
    keep(stream_for(data, 15 * MICROSECOND, blockIdx.x / 132));
    keep(multiply_for(threadIdx.x, 35 * MICROSECOND));
}

// One block does what all others wait for.
__global__ void __launch_bounds__(1024) serial_middle(const float4 *data) {
    cg::grid_group grid = cg::this_grid();
    keep(stream_for(data, 70 * MICROSECOND, 0));
    grid.sync();
    if (blockIdx.x == 0) keep(multiply_for(threadIdx.x, 60 * MICROSECOND));
    grid.sync();
    keep(multiply_for(threadIdx.x, 70 * MICROSECOND));
}

// Blocks that find nothing to do, before those that do.
__global__ void __launch_bounds__(1024) early_exit(int idle) {
    if (threadIdx.x == 0) atomicMin(&marks[0], now());
    if (blockIdx.x < idle) return;
    if (threadIdx.x == 0) atomicMin(&marks[1], now());
    keep(multiply_for(threadIdx.x, 100 * MICROSECOND));
    if (threadIdx.x == 0) atomicMax(&marks[2], now());
}

// ------------------------------------------------------------------------------------------------- with tensor cores

__global__ void __launch_bounds__(256) prologue_and_epilogue(const float4 *data, float *out) {
    fill_scratch();
    float sums[128] = {};
    keep(stream_for(data, 40 * MICROSECOND, 0));
    multiply_tiles_for(sums, 120 * MICROSECOND);
    store_tile(sums, out);
    keep(multiply_for(sums[0], 40 * MICROSECOND));
}

// Six tiles a block, each with an epilogue.
__global__ void __launch_bounds__(256) tiles_with_epilogues(float *out) {
    fill_scratch();
    for (int tile = 0; tile < 6; ++tile) {
        float sums[128] = {};
        multiply_tiles_for(sums, 30 * MICROSECOND);
        long long end = clock64() + 6 * MICROSECOND;
        store_tile(sums, out);
        __syncthreads();
        keep(multiply_for(sums[1], end - clock64()));
    }
}

// As causal attention: the work of a block grows with its row; products and exponentials in turn.
__device__ __forceinline__ void causal_row(int row, int rows, float *out) {
    fill_scratch();
    float sums[128] = {};
    const long long end = clock64() + 100 * MICROSECOND * (row + 1) / rows;
    while (__syncthreads_or(clock64() < end)) {
        multiply_tiles_for(sums, 0);
#pragma unroll
        for (int i = 0; i < 128; ++i) sums[i] = exp2f(-fabsf(sums[i]));
    }
    store_tile(sums, out);
}

__global__ void __launch_bounds__(256) causal_light_first(float *out) { causal_row(blockIdx.x, gridDim.x, out); }

__global__ void __launch_bounds__(256) causal_heavy_first(float *out) {
    causal_row(gridDim.x - 1 - blockIdx.x, gridDim.x, out);
}

// A quiet first quarter, then as much power as the chip can draw.
__global__ void __launch_bounds__(256) clock_drop(float *out) {
    fill_scratch();
    float sums[128] = {};
    for (unsigned long long end = now() + 1000000; now() < end;) keep(multiply_for(1.0f, 100)), __nanosleep(500);
    multiply_tiles_for(sums, 3000000, true);
    store_tile(sums, out);
}

int main(int count, char **words) {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    const int sms = device.multiProcessorCount;
    float4 *data = reinterpret_cast<float4 *>(device_buffer<float>(STREAMED / sizeof(float)));
    float *out;
    CHECK(cudaMalloc(&out, size_t(4 * sms) * 128 * 256 * sizeof(float)));
    float4 *copied;
    CHECK(cudaMalloc(&copied, STREAMED / 2));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    bool cooperative = false;

    auto launch = [&](const char *name, auto kernel, int blocks, int threads, size_t shared, auto... arguments) {
        bool chosen = count == 1;
        for (int i = 1; i < count; ++i) chosen |= std::strcmp(words[i], name) == 0;
        if (!chosen) return;
        const unsigned long long first[4] = {~0ull, ~0ull, 0, 0};
        unsigned long long seen[4];
        CHECK(cudaMemcpyToSymbol(marks, first, sizeof first));
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
        cudaLaunchConfig_t how{};
        how.gridDim = blocks;
        how.blockDim = threads;
        how.dynamicSmemBytes = shared;
        how.stream = stream;
        how.attrs = &attribute;
        how.numAttrs = cooperative ? 1 : 0;
        CHECK(cudaEventRecord(begin, stream));
        CHECK(cudaLaunchKernelEx(&how, kernel, arguments...));
        CHECK(cudaEventRecord(end, stream));
        CHECK_LAUNCH();
        float milliseconds = 0.0f;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        CHECK(cudaMemcpyFromSymbol(seen, marks, sizeof seen));
        double works = seen[2] > seen[0] ? double(seen[1] - seen[0]) / double(seen[2] - seen[0]) : 0.0;
        std::printf("{\"kernel\": \"%s\", \"blocks\": %d, \"us\": %.1f, \"works_from\": %.4f}\n", name, blocks,
                    1e3 * milliseconds, works);
        std::fflush(stdout);
    };

    if (count > 1 && std::strcmp(words[1], "graph") == 0) {
        // A quarter of the SMs for 50 µs, then all for 200: one workload where ncu profiles the graph as a whole.
        CHECK(cudaFuncSetAttribute(tail_quarter_wave, cudaFuncAttributeMaxDynamicSharedMemorySize, ALONE));
        cudaGraph_t graph;
        cudaGraphExec_t ready;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        tail_quarter_wave<<<sms / 4, 1024, ALONE, stream>>>();
        tail_quarter_wave<<<sms * 4, 1024, ALONE, stream>>>();
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&ready, graph, 0));
        CHECK(cudaGraphLaunch(ready, stream));
        CHECK_LAUNCH();
        return 0;
    }
    launch("tail_quarter_wave", tail_quarter_wave, 4 * sms + sms / 4, 1024, ALONE);
    launch("tail_short", tail_short, 20 * sms + 20, 1024, ALONE);
    launch("uneven_blocks", uneven_blocks, sms, 1024, ALONE);
    launch("one_long_block", one_long_block, 1 + 4 * (sms - 1), 1024, ALONE);
    launch("three_phases", three_phases, sms, 1024, ALONE, data);
    launch("waves_in_step", waves_in_step, 5 * sms, 1024, ALONE, data);
    launch("early_exit", early_exit, 61 * sms, 1024, ALONE, 60 * sms);
    launch("prologue_and_epilogue", prologue_and_epilogue, sms, 256, ALONE, data, out);
    launch("tiles_with_epilogues", tiles_with_epilogues, sms, 256, ALONE, out);
    launch("causal_light_first", causal_light_first, 3 * sms, 256, ALONE, out);
    launch("causal_heavy_first", causal_heavy_first, 3 * sms, 256, ALONE, out);
    launch("clock_drop", clock_drop, sms, 256, ALONE, out);
    launch("sound_products", sound_products, 4 * sms, 1024, ALONE);
    launch("sound_copy", sound_copy, int(STREAMED / 2 / sizeof(float4) / 1024), 256, 0, data, copied,
           STREAMED / 2 / sizeof(float4));
    cooperative = true;
    launch("serial_middle", serial_middle, sms, 1024, ALONE, data);
    return 0;
}
