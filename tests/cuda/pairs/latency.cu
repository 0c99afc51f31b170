// Waiting: too few warps to hide it (occupancy), too little that is independent within a warp (instructions, memory),
// and barriers.
#include "pair.cuh"

namespace {

// Chains of look-ups, each at the place the last one found; dynamic shared memory alone decides how many warps do it.
__global__ void chase(const int *__restrict__ next, int *__restrict__ out, int steps) {
    extern __shared__ int unused[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
    for (int s = 0; s < steps; ++s) at = next[at];
    if (at < 0) unused[threadIdx.x] = at;
    out[i] = at;
}
int *ring(Buffers &b, long length) {
    std::vector<int> next(length);
    for (long i = 0; i < length; ++i) next[i] = int((i + 1 + hash(unsigned(i / 64)) % (length / 64) * 64) % length);
    return b.copy(next);
}
// `length` of the ring: in L2, or mostly in memory.
Family chase_shared_limit(
    "chase_shared_limit", "chase", {1 << 20, 1 << 26}, mend("low_occupancy"), [](Buffers &b, long length) -> Sides {
        int grid = multiprocessors() * 16;
        int *next = ring(b, length), *out = b.output<int>(grid * 128);
        return flawed_mended(
            launch(chase, grid, 128, 100 * 1024, next, out, 64), launch(chase, grid, 128, 0, next, out, 64));
    });
Family chase_block_limit(
    "chase_block_limit", "chase", {1 << 20, 1 << 26}, mend("low_occupancy"), [](Buffers &b, long length) -> Sides {
        int grid = multiprocessors() * 64;
        int *next = ring(b, length), *out = b.output<int>(grid * 32);
        // 32 blocks of one warp are half of the warps a multiprocessor has room for.
        return flawed_mended(launch(chase, grid, 32, 0, next, out, 64), launch(chase, grid / 4, 128, 0, next, out, 64));
    });

// Registers as the limit: values that stay in registers for the whole kernel, or that wait in shared memory.
template <bool Registers>
__global__ void __launch_bounds__(128)
    keep(const float *__restrict__ in, const int *__restrict__ next, float *__restrict__ out, int n, int steps) {
    constexpr int KEPT = 100;
    int i = blockIdx.x * 128 + threadIdx.x, at = i;
    float kept[Registers ? KEPT : 1];
    if (Registers) {
#pragma unroll
        for (int k = 0; k < KEPT; ++k) {
            kept[k] = in[(i & 31) + k * 32];
            asm volatile("" : "+f"(kept[k]));
        }
    }
    for (int s = 0; s < steps; ++s) at = next[at];
    float sum = at;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) sum += Registers ? kept[k] : in[(i & 31) + k * 32];
    out[i] = sum;
}
Family chase_register_limit(
    "chase_register_limit", "chase", {1 << 20, 1 << 26}, mend("low_occupancy"), [](Buffers &b, long length) -> Sides {
        int grid = multiprocessors() * 16;
        int *next = ring(b, length);
        float *in = b.random<float>(3200), *out = b.output<float>(grid * 128);
        return flawed_mended(launch(keep<true>, grid, 128, 0, in, next, out, 0, 100),
            launch(keep<false>, grid, 128, 0, in, next, out, 0, 100));
    });

// Look-ups with some arithmetic, and shared memory that is only held: it leaves room for six, four or two blocks
// instead of eight, and takes away from L1, which has a line for every miss in flight.
__global__ void gather_math(
    const int *__restrict__ where, const float *__restrict__ in, float *__restrict__ out, int n) {
    extern __shared__ float scratch[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float v = in[where[i + k * n]];
        for (int r = 0; r < 4; ++r) v = fmaf(v, v, 0.25f) * 0.5f;
        sum += v;
    }
    if (sum == 12345.0f) scratch[threadIdx.x] = sum;
    out[i] = sum;
}
Family gather_held("gather_held", "gather", {1 << 20, 1 << 23},
    {flaw("held_36k", "low_occupancy"), flaw("held_52k", "low_occupancy"), flaw("held_100k", "low_occupancy")},
    [](Buffers &b, long n) -> Sides {
        int *where = b.random<int>(n * 4, 0, double(n));
        float *in = b.random<float>(n), *out = b.output<float>(n);
        auto held = [=](int kilobytes) {
            return launch(gather_math, blocks(n, 256), 256, kilobytes * 1024, where, in, out, n);
        };
        return {{"held_36k", held(36)}, {"held_52k", held(52)}, {"held_100k", held(100)}, {"mended", held(0)}};
    });

// A copy that keeps enough in flight with a fourth of the warps: more occupancy brings nothing.
__global__ void __launch_bounds__(512) stream(const float4 *__restrict__ in, float4 *__restrict__ out) {
    extern __shared__ float4 none[];
    size_t i = size_t(blockIdx.x) * 512 * 8 + threadIdx.x;
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = in[i + k * 512];
#pragma unroll
    for (int k = 0; k < 8; ++k) out[i + k * 512] = v[k];
}
Family stream_half_occupied("stream_half_occupied", "copy", {1 << 22, 1 << 24}, mend("low_occupancy", "behind_limit"),
    [](Buffers &b, long n) -> Sides {
        auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4)),
             *out = reinterpret_cast<float4 *>(b.output<float>(n * 4));
        return flawed_mended(
            launch(stream, n / 4096, 512, 100 * 1024, in, out), launch(stream, n / 4096, 512, 0, in, out));
    });
// Arithmetic with four chains a thread fills the FMA pipe with an eighth of the warps.
template <int Chains>
__global__ void chains(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    extern __shared__ float scratch[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    float x[4];
    for (int c = 0; c < 4; ++c) x[c] = in[i + c * n];
    if (Chains == 4) {
        for (int r = 0; r < rounds; ++r)
#pragma unroll
            for (int c = 0; c < 4; ++c) x[c] = fmaf(x[c], 0.999f, 0.001f);
    } else {
#pragma unroll 1
        for (int c = 0; c < 4; ++c) {
            float y = x[0];
            for (int r = 0; r < rounds; ++r) y = fmaf(y, 0.999f, 0.001f);
            x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = y;
        }
    }
    for (int c = 0; c < 4; ++c) out[i + c * n] = x[c];
}
Family chains_half_occupied("chains_half_occupied", "chains", {256, 4096}, mend("low_occupancy", "behind_limit"),
    [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 8;
        float *in = b.random<float>(grid * 256 * 4), *out = b.output<float>(grid * 256 * 4);
        return flawed_mended(launch(chains<4>, grid, 256, 100 * 1024, in, out, rounds),
            launch(chains<4>, grid, 256, 0, in, out, rounds));
    });

// One chain at a time or four at once, with a warp or two a scheduler, and with sixteen (where it hardly matters).
template <int Warps>
Sides chain_sides(Buffers &b, long rounds) {
    int grid = multiprocessors(), threads = Warps * 4 * 32;
    if (threads > 1024) grid *= threads / 1024, threads = 1024;
    float *in = b.random<float>(grid * threads * 4), *out = b.output<float>(grid * threads * 4);
    return flawed_mended(
        launch(chains<1>, grid, threads, 0, in, out, rounds), launch(chains<4>, grid, threads, 0, in, out, rounds));
}
Family chain_one_warp("chain_one_warp", "chains", {2048, 16384}, mend("instruction_latency"), chain_sides<1>);
Family chain_two_warps("chain_two_warps", "chains", {2048, 16384}, mend("instruction_latency"), chain_sides<2>);
Family chain_sixteen_warps("chain_sixteen_warps", "chains", {512, 4096}, mend("instruction_latency"), chain_sides<16>);

// A norm of values held in shared memory: one running sum, or four.
template <int Sums>
__global__ void norms(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    __shared__ float data[64 * 65];
    for (int i = threadIdx.x; i < 64 * 64; i += 64) data[i / 64 * 65 + i % 64] = in[blockIdx.x * 4096 + i];
    __syncthreads();
    float total = 0.0f;
    for (int r = 0; r < rounds; ++r) {
        float sum[Sums] = {};
#pragma unroll
        for (int k = 0; k < 64; ++k) {
            float v = data[threadIdx.x * 65 + k] - total;
            sum[k % Sums] = __fadd_rn(__fmul_rn(v, v), sum[k % Sums]);
        }
        float all = sum[0];
        for (int s = 1; s < Sums; ++s) all += sum[s];
        total = total * 0.5f + sqrtf(all) * 0.01f;
    }
    out[blockIdx.x * 64 + threadIdx.x] = total;
}
Family norms_one_sum("norms_one_sum", "norm", {64, 512}, mend("instruction_latency", "behind_limit"),
    [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 4;
        float *in = b.random<float>(grid * 4096), *out = b.output<float>(grid * 64);
        return flawed_mended(
            launch(norms<1>, grid, 64, 0, in, out, rounds), launch(norms<4>, grid, 64, 0, in, out, rounds));
    });

// A sum by few threads: one load at a time, or eight before the first is used.
template <int InFlight, int Unused = 0>
__global__ void stream_sum(const float4 *__restrict__ in, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    float sum = 0.0f;
    if (InFlight == 1) {
#pragma unroll 1
        for (int at = i; at < n; at += step) {
            float4 v = in[at];
            sum += v.x + v.y + v.z + v.w;
        }
    } else {
#pragma unroll 1
        for (int at = i; at < n; at += step * InFlight) {
            float4 v[InFlight];
#pragma unroll
            for (int k = 0; k < InFlight; ++k) v[k] = in[at + k * step];
#pragma unroll
            for (int k = 0; k < InFlight; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
        }
    }
    out[i] = sum;
}
template <int BlocksPerSm>
Sides stream_sum_sides(Buffers &b, long megabytes) {
    int grid = multiprocessors() * BlocksPerSm, threads = grid * 256,
        n = int(megabytes * 65536 / (threads * 8) * (threads * 8));
    auto *in = reinterpret_cast<float4 *>(b.random<float>(size_t(n) * 4, 0.0, 1.0));
    float *out = b.output<float>(threads);
    return flawed_mended(
        launch(stream_sum<1>, grid, 256, 0, in, out, n), launch(stream_sum<8>, grid, 256, 0, in, out, n));
}
Family stream_sum_1_block("stream_sum_1_block", "stream_sum", {128, 1024}, mend("memory_latency"), stream_sum_sides<1>);
Family stream_sum_2_blocks(
    "stream_sum_2_blocks", "stream_sum", {128, 1024}, mend("memory_latency"), stream_sum_sides<2>);
Family stream_sum_8_blocks(
    "stream_sum_8_blocks", "stream_sum", {128, 1024}, mend("memory_latency", "behind_limit"), stream_sum_sides<8>);

// Look-ups through an index: the next index is asked for after the value has come, or ahead of it.
template <bool Ahead>
__global__ void indirect(
    const int *__restrict__ where, const float *__restrict__ in, float *__restrict__ out, int per_thread) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    float sum = 0.0f;
    if (Ahead) {
        int ahead[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) ahead[k] = where[i + k * step];
#pragma unroll 1
        for (int r = 0; r < per_thread; r += 4) {
            float v[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) v[k] = in[ahead[k]];
#pragma unroll
            for (int k = 0; k < 4; ++k) ahead[k] = r + 4 < per_thread ? where[i + (r + 4 + k) * step] : 0;
#pragma unroll
            for (int k = 0; k < 4; ++k) sum = sum * 0.5f + v[k];
        }
    } else {
#pragma unroll 1
        for (int r = 0; r < per_thread; ++r) sum = sum * 0.5f + in[where[i + r * step]];
    }
    out[i] = sum;
}
Family indirect_waiting(
    "indirect_waiting", "gather", {64, 256}, mend("memory_latency", "real"), [](Buffers &b, long per_thread) -> Sides {
        int grid = multiprocessors() * 2, threads = grid * 256;
        int *where = b.random<int>(threads * per_thread, 0, 1 << 24);
        float *in = b.random<float>(1 << 24), *out = b.output<float>(threads);
        return flawed_mended(launch(indirect<false>, grid, 256, 0, where, in, out, per_thread),
            launch(indirect<true>, grid, 256, 0, where, in, out, per_thread));
    });

// A block's sum by halving in shared memory with a barrier a step, or by shuffles.
template <bool Tree, int Threads>
__global__ void row_norms(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    __shared__ float parts[Tree ? Threads : 32];
    for (int r = 0; r < rounds; ++r) {
        size_t row = size_t(blockIdx.x) * rounds + r;
        float v = in[row * Threads + threadIdx.x], sum = v * v;
        if (Tree) {
            parts[threadIdx.x] = sum;
            __syncthreads();
            for (int half = Threads / 2; half; half /= 2) {
                if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
                __syncthreads();
            }
            sum = parts[0];
        } else {
            sum = warp_sum(sum);
            if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
            __syncthreads();
            sum = warp_sum(threadIdx.x % 32 < Threads / 32 ? parts[threadIdx.x % 32] : 0.0f);
        }
        out[row * Threads + threadIdx.x] = v * rsqrtf(sum + 1e-6f);
        __syncthreads();
    }
}
template <int Threads>
Sides row_norm_sides(Buffers &b, long rounds) {
    int grid = multiprocessors() * (2048 / Threads);
    float *in = b.random<float>(size_t(grid) * rounds * Threads),
          *out = b.output<float>(size_t(grid) * rounds * Threads);
    return flawed_mended(launch(row_norms<true, Threads>, grid, Threads, 0, in, out, rounds),
        launch(row_norms<false, Threads>, grid, Threads, 0, in, out, rounds));
}
Family row_norms_256("row_norms_256", "norm", {16, 128}, mend("barriers", "real"), row_norm_sides<256>);
Family row_norms_1024("row_norms_1024", "norm", {16, 128}, mend("barriers", "real"), row_norm_sides<1024>);

// An inclusive scan of a block's values by doubling strides with two barriers a step, or by shuffles within warps.
template <bool Doubling>
__global__ void __launch_bounds__(1024) scan(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float data[1024];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    size_t i = size_t(blockIdx.x) * 1024 + t;
    float x = in[i];
    if (Doubling) {
        data[t] = x;
        __syncthreads();
        for (int offset = 1; offset < 1024; offset *= 2) {
            float before = t >= offset ? data[t - offset] : 0.0f;
            __syncthreads();
            data[t] += before;
            __syncthreads();
        }
        out[i] = data[t];
        return;
    }
    for (int offset = 1; offset < 32; offset *= 2) {
        float before = __shfl_up_sync(~0u, x, offset);
        if (lane >= offset) x += before;
    }
    if (lane == 31) data[warp] = x;
    __syncthreads();
    if (warp == 0) {
        float sum = data[lane];
        for (int offset = 1; offset < 32; offset *= 2) {
            float before = __shfl_up_sync(~0u, sum, offset);
            if (lane >= offset) sum += before;
        }
        data[lane] = sum;
    }
    __syncthreads();
    out[i] = x + (warp ? data[warp - 1] : 0.0f);
}
Family scan_doubling(
    "scan_doubling", "scan", {1 << 20, 1 << 24}, mend("barriers", "real"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n, 0.0, 1.0), *out = b.output<float>(n);
        return flawed_mended(
            launch(scan<true>, n / 1024, 1024, 0, in, out), launch(scan<false>, n / 1024, 1024, 0, in, out));
    });

// Barriers that nothing needs, in a stream that memory limits.
template <bool Needless>
__global__ void stream_barriers(const float4 *__restrict__ in, float4 *__restrict__ out, int n) {
    int step = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step * 2) {
        float4 a = in[i], c = in[i + step];
        if (Needless) __syncthreads();
        a.x += 1.0f, c.x += 1.0f;
        out[i] = a, out[i + step] = c;
    }
}
Family stream_with_barriers("stream_with_barriers", "copy", {1 << 22, 1 << 24}, mend("barriers", "behind_limit"),
    [](Buffers &b, long n) -> Sides {
        int grid = multiprocessors() * 8;
        n = n / (grid * 512) * (grid * 512);
        auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4)),
             *out = reinterpret_cast<float4 *>(b.output<float>(n * 4));
        return flawed_mended(launch(stream_barriers<true>, grid, 256, 0, in, out, n),
            launch(stream_barriers<false>, grid, 256, 0, in, out, n));
    });

}  // namespace
