// Atomics on global and on shared memory, against combining in the warp or the block first.
#include "pair.cuh"

namespace {

// Kernels here take a `zero` where the compiler, seeing one address for all threads, would combine a warp's atomics.

// A sum of many values: an atomic a thread, or one a block.
template <bool Each>
__global__ void sum(const float *__restrict__ in, float *__restrict__ total, int n) {
    float value = 0.0f;
    int i = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (i + k * 256 < n) value += in[i + k * 256];
    if (Each) {
        atomicAdd(total, value);
        return;
    }
    __shared__ float parts[8];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 8) {
        value = parts[threadIdx.x];
        for (int offset = 4; offset; offset /= 2) value += __shfl_xor_sync(0xff, value, offset);
        if (threadIdx.x == 0) atomicAdd(total, value);
    }
}
Family sum_atomic(
    "sum_atomic", "reduction", {1 << 18, 1 << 22}, mend("global_atomics"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n, 0.0, 1.0), *out = b.output<float>(1, true);
        b.tolerance = 1e-2;  // one float sums millions, in any order
        return flawed_mended(launch(sum<true>, blocks(n, 1024), 256, 0, in, out, n),
            launch(sum<false>, blocks(n, 1024), 256, 0, in, out, n));
    });

// A histogram of 256 bins straight in global memory, or a block's own first.
template <bool Global, int Bins>
__global__ void histogram(const unsigned *__restrict__ in, int *__restrict__ counts, int words) {
    __shared__ int mine[Global ? 1 : Bins];
    if (!Global) {
        for (int i = threadIdx.x; i < Bins; i += blockDim.x) mine[i] = 0;
        __syncthreads();
    }
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned v = in[i];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int bin = ((v >> (8 * k)) & 255) * (Bins / 256);
            atomicAdd(Global ? &counts[bin] : &mine[bin], 1);
        }
    }
    if (!Global) {
        __syncthreads();
        for (int i = threadIdx.x; i < Bins; i += blockDim.x)
            if (mine[i]) atomicAdd(&counts[i], mine[i]);
    }
}
unsigned *pixels(Buffers &b, long words) {
    return reinterpret_cast<unsigned *>(b.random<int>(words, -2147483648.0, 2147483647.0));
}
Family histogram_global("histogram_global", "histogram", {1 << 18, 1 << 22}, mend("global_atomics", "real"),
    [](Buffers &b, long words) -> Sides {
        unsigned *in = pixels(b, words);
        int *out = b.output<int>(256, true);
        int grid = multiprocessors() * 8;
        return flawed_mended(launch(histogram<true, 256>, grid, 256, 0, in, out, words),
            launch(histogram<false, 256>, grid, 256, 0, in, out, words));
    });

// Sorted segments: a thread adds each of its products, or the warp adds up runs of one key first.
template <bool Each>
__global__ void segments(
    const int *__restrict__ keys, const float *__restrict__ values, float *__restrict__ sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (i >= n) return;
    int key = keys[i];
    float value = values[i] * 0.5f;
    if (Each) {
        atomicAdd(&sums[key], value);
        return;
    }
    for (int offset = 1; offset < 32; offset *= 2) {
        float other = __shfl_up_sync(~0u, value, offset);
        int its = __shfl_up_sync(~0u, key, offset);
        if (lane >= offset && its == key) value += other;
    }
    int next = __shfl_down_sync(~0u, key, 1);
    if (lane == 31 || next != key) atomicAdd(&sums[key], value);
}
Family coo_spmv(
    "coo_spmv", "spmv", {1 << 20, 1 << 24}, mend("global_atomics", "real"), [](Buffers &b, long n) -> Sides {
        std::vector<int> keys(n);
        int key = 0;
        for (long i = 0; i < n; ++i) keys[i] = key += hash(unsigned(i)) % 24 == 0;
        int *k = b.copy(keys);
        float *values = b.random<float>(n, 0.0, 1.0), *out = b.output<float>(key + 1, true);
        return flawed_mended(launch(segments<true>, blocks(n, 256), 256, 0, k, values, out, n),
            launch(segments<false>, blocks(n, 256), 256, 0, k, values, out, n));
    });

// A scatter in which no two threads meet: atomics that could be plain stores, behind the same memory traffic.
template <bool Atomic>
__global__ void scatter(
    const int *__restrict__ where, const float *__restrict__ values, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (Atomic) atomicAdd(&out[where[i]], values[i]);
    else out[where[i]] = values[i];
}
Family scatter_atomic(
    "scatter_atomic", "scatter", {1 << 22, 1 << 25}, mend("global_atomics"), [](Buffers &b, long n) -> Sides {
        std::vector<int> where(n);
        // An odd multiplier visits every address once, blocks of 64 neighbours at a time.
        for (long i = 0; i < n; ++i) where[i] = int(((i / 64 * 40503) % (n / 64)) * 64 + i % 64);
        int *w = b.copy(where);
        float *values = b.random<float>(n), *out = b.output<float>(n, true);
        return flawed_mended(launch(scatter<true>, blocks(n, 256), 256, 0, w, values, out, n),
            launch(scatter<false>, blocks(n, 256), 256, 0, w, values, out, n));
    });

// Keeping what passes a test: every thread asks for its place, or the block asks once for all of its threads.
template <bool Each>
__global__ void compact(
    const float *__restrict__ in, float *__restrict__ out, int *__restrict__ count, int n, int zero) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? in[i] : -1.0f;
    bool keep = value > 0.0f;
    if (Each) {
        if (keep) out[atomicAdd(count + threadIdx.x * zero, 1)] = value;
        return;
    }
    __shared__ int warps[8], base;
    unsigned vote = __ballot_sync(~0u, keep);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = __popc(vote);
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int &w : warps) {
            int mine = w;
            w = total;
            total += mine;
        }
        base = atomicAdd(count, total);
    }
    __syncthreads();
    if (keep) out[base + warps[threadIdx.x / 32] + __popc(vote & ((1u << threadIdx.x % 32) - 1))] = value;
}
Family compact_each(
    "compact_each", "compact", {1 << 20, 1 << 23}, mend("global_atomics", "real"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n), *out = b.allocate<float>(n);
        int *count = b.output<int>(1, true);
        return flawed_mended(launch(compact<true>, blocks(n, 256), 256, 0, in, out, count, n, 0),
            launch(compact<false>, blocks(n, 256), 256, 0, in, out, count, n, 0));
    });

// A histogram in shared memory of an image that is nearly of one grey: all threads meet, or each lane has a copy of its
// own. Counting by one is merged in hardware; adding a weight is not.
template <int Copies, bool Weighted>
__global__ void grey_histogram(const unsigned *__restrict__ in, int *__restrict__ counts, int words) {
    __shared__ int mine[256 * Copies];
    for (int i = threadIdx.x; i < 256 * Copies; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    int *copy = mine + threadIdx.x % Copies;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned v = in[i];
#pragma unroll
        for (int k = 0; k < 4; ++k) atomicAdd(&copy[((v >> (8 * k)) & 255) * Copies], Weighted ? i & 7 : 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        int total = 0;
        for (int c = 0; c < Copies; ++c) total += mine[i * Copies + c];
        if (total) atomicAdd(&counts[i], total);
    }
}
// `spread` grey levels about the middle.
template <bool Weighted>
Sides grey_sides(Buffers &b, long words, unsigned spread) {
    std::vector<int> host(words);
    for (long i = 0; i < words; ++i) {
        unsigned v = 0;
        for (int k = 0; k < 4; ++k) v |= (120 + hash(unsigned(i * 4 + k)) % spread) << (8 * k);
        host[i] = int(v);
    }
    auto *in = reinterpret_cast<unsigned *>(b.copy(host));
    int *out = b.output<int>(256, true);
    int grid = multiprocessors() * 6;
    return flawed_mended(launch(grey_histogram<1, Weighted>, grid, 256, 0, in, out, words),
        launch(grey_histogram < Weighted ? 32 : 8, Weighted >, grid, 256, 0, in, out, words));
}
Family counted_grey("histogram_counted", "histogram", {1 << 22, 1 << 24}, mend("shared_atomics", "behind_limit"),
    [](Buffers &b, long n) { return grey_sides<false>(b, n, 1); });
Family weighted_grey("histogram_weighted_grey", "histogram", {1 << 20, 1 << 23}, mend("shared_atomics", "real"),
    [](Buffers &b, long n) { return grey_sides<true>(b, n, 1); });
Family weighted_greys("histogram_weighted_greys", "histogram", {1 << 20, 1 << 24},
    mend("shared_atomics", "behind_limit"), [](Buffers &b, long n) { return grey_sides<true>(b, n, 24); });

// A block's sum by an atomic a thread on shared memory, or by shuffles.
template <bool Atomic>
__global__ void block_sums(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    __shared__ float total, parts[8];
    for (int r = 0; r < rounds; ++r) {
        int row = blockIdx.x * rounds + r;
        float value = in[row * 256 + threadIdx.x];
        if (Atomic) {
            if (threadIdx.x == 0) total = 0.0f;
            __syncthreads();
            atomicAdd(&total, value);
            __syncthreads();
            if (threadIdx.x == 0) out[row] = total;
        } else {
            value = warp_sum(value);
            if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
            __syncthreads();
            if (threadIdx.x == 0) {
                value = 0.0f;
                for (float part : parts) value += part;
                out[row] = value;
            }
            __syncthreads();
        }
    }
}
Family block_sum_atomic(
    "block_sum_atomic", "reduction", {4, 32}, mend("shared_atomics"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 8;
        float *in = b.random<float>(grid * rounds * 256, 0.0, 1.0), *out = b.output<float>(grid * rounds);
        return flawed_mended(launch(block_sums<true>, grid, 256, 0, in, out, rounds),
            launch(block_sums<false>, grid, 256, 0, in, out, rounds));
    });

// A shared atomic for each access of 16 bytes in a stream, or one a warp at the end.
template <bool Atomic>
__global__ void count_large(const float4 *__restrict__ in, int *__restrict__ out, int n, int zero) {
    __shared__ int totals[1];
    int &total = totals[0];
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        int large = (v.x > 0.5f) + (v.y > 0.5f) + (v.z > 0.5f) + (v.w > 0.5f);
        if (Atomic) atomicAdd(&totals[threadIdx.x * zero], large);
        else mine += large;
    }
    if (!Atomic) {
        for (int offset = 16; offset; offset /= 2) mine += __shfl_xor_sync(~0u, mine, offset);
        if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(out, total);
}
Family count_shared(
    "count_shared", "count", {1 << 22, 1 << 24}, mend("shared_atomics"), [](Buffers &b, long n) -> Sides {
        auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4, 0.0, 1.0));
        int *out = b.output<int>(1, true);
        int grid = multiprocessors() * 8;
        return flawed_mended(launch(count_large<true>, grid, 256, 0, in, out, n, 0),
            launch(count_large<false>, grid, 256, 0, in, out, n, 0));
    });

}  // namespace
