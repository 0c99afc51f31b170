// Kernels as they are written in models and simulations, each with one flaw that such kernels are found with.
#include "pair.cuh"

namespace {

// --- attention, a query a thread, heads of 64 ---

// Keys and values come from memory for each query, or a tile at a time through shared memory; the running output is an
// array that stays in registers.
template <bool Direct>
__global__ void __launch_bounds__(128) attention(const float *__restrict__ q, const float *__restrict__ k,
    const float *__restrict__ v, float *__restrict__ out, int length) {
    constexpr int D = 32, TILE = 32;
    __shared__ float ks[Direct ? 1 : TILE][D], vs[Direct ? 1 : TILE][D];
    size_t head = size_t(blockIdx.y) * length * D;
    int row = blockIdx.x * 128 + threadIdx.x;
    float query[D], sum[D] = {}, top = -1e30f, total = 0.0f;
#pragma unroll
    for (int d = 0; d < D; ++d) query[d] = q[head + size_t(row) * D + d] * 0.17677669f;
    for (int start = 0; start < length; start += TILE) {
        if (!Direct) {
            __syncthreads();
            for (int i = threadIdx.x; i < TILE * D; i += 128) {
                ks[i / D][i % D] = k[head + size_t(start) * D + i];
                vs[i / D][i % D] = v[head + size_t(start) * D + i];
            }
            __syncthreads();
        }
        for (int j = 0; j < TILE; ++j) {
            const float *key = Direct ? k + head + size_t(start + j) * D : ks[j],
                        *value = Direct ? v + head + size_t(start + j) * D : vs[j];
            float score = 0.0f;
#pragma unroll
            for (int d = 0; d < D; ++d) score += query[d] * key[d];
            float higher = fmaxf(top, score), old = __expf(top - higher), now = __expf(score - higher);
            top = higher;
            total = total * old + now;
#pragma unroll
            for (int d = 0; d < D; ++d) sum[d] = sum[d] * old + now * value[d];
        }
    }
#pragma unroll
    for (int d = 0; d < D; ++d) out[head + size_t(row) * D + d] = sum[d] / total;
}
Family attention_direct("attention_direct", "attention", {512, 2048}, mend("redundant_loads", "real"),
    [](Buffers &b, long length) -> Sides {
        long heads = 64, n = heads * length * 32;
        float *q = b.random<float>(n), *k = b.random<float>(n), *v = b.random<float>(n), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        dim3 grid(length / 128, heads);
        return flawed_mended(launch(attention<true>, grid, 128, 0, q, k, v, out, length),
            launch(attention<false>, grid, 128, 0, q, k, v, out, length));
    });

// --- causal attention scores' sums: the triangle that a causal mask leaves, in order or balanced ---

template <bool InOrder>
__global__ void __launch_bounds__(128)
    causal(const float *__restrict__ q, const float *__restrict__ k, float *__restrict__ out, int length) {
    constexpr int D = 32;
    int tiles = length / 128, turn = blockIdx.x;
    size_t head = size_t(blockIdx.y) * length * D;
    // Balanced: a block takes a tile from the top and its mirror from the bottom; in order, two neighbours.
    for (int half = 0; half < 2; ++half) {
        int tile = InOrder ? turn * 2 + half : half ? tiles - 1 - turn : turn;
        int row = tile * 128 + threadIdx.x;
        float query[D], total = 0.0f;
#pragma unroll
        for (int d = 0; d < D; ++d) query[d] = q[head + size_t(row) * D + d] * 0.17677669f;
        for (int j = 0; j < (tile + 1) * 128; ++j) {
            float score = 0.0f;
#pragma unroll
            for (int d = 0; d < D; ++d) score += query[d] * k[head + size_t(j) * D + d];
            total += j <= row ? __expf(score) : 0.0f;
        }
        out[blockIdx.y * length + row] = total;
    }
}
Family causal_order("causal_order", "attention", {1024, 3072}, mend("workload_imbalance", "real"),
    [](Buffers &b, long length) -> Sides {
        long heads = 8, n = heads * length * 32;
        float *q = b.random<float>(n), *k = b.random<float>(n), *out = b.output<float>(heads * length);
        dim3 grid(length / 256, heads);
        return flawed_mended(launch(causal<true>, grid, 128, 0, q, k, out, length),
            launch(causal<false>, grid, 128, 0, q, k, out, length));
    });

// --- a bitonic sort of blocks: the larger half of the strides in shared memory with barriers, or by shuffles ---

template <bool Shuffles>
__global__ void __launch_bounds__(512) sort_blocks(const int *__restrict__ in, int *__restrict__ out) {
    __shared__ int data[512];
    int t = threadIdx.x, value = in[blockIdx.x * 512 + t];
    for (int size = 2; size <= 512; size *= 2)
        for (int stride = size / 2; stride; stride /= 2) {
            bool lower = (t & stride) == 0, rising = (t & size) == 0;
            int other;
            if (Shuffles && stride < 32) other = __shfl_xor_sync(~0u, value, stride);
            else {
                __syncthreads();
                data[t] = value;
                __syncthreads();
                other = data[t ^ stride];
            }
            value = lower == rising ? min(value, other) : max(value, other);
        }
    out[blockIdx.x * 512 + t] = value;
}
Family sort_barriers(
    "sort_barriers", "sort", {1 << 18, 1 << 23}, mend("barriers", "real"), [](Buffers &b, long n) -> Sides {
        int *in = b.random<int>(n, -1e9, 1e9), *out = b.output<int>(n);
        return flawed_mended(
            launch(sort_blocks<false>, n / 512, 512, 0, in, out), launch(sort_blocks<true>, n / 512, 512, 0, in, out));
    });
// One step of a bitonic sort in memory: partners found by division and remainder of 64 bits, or by bits.
template <bool Divided>
__global__ void sort_step(
    const float *__restrict__ in, float *__restrict__ out, long long stride, long long size, int shift) {
    long long i = blockIdx.x * 256ll + threadIdx.x, low, rising;
    if (Divided) {
        low = i / stride * stride * 2 + i % stride;
        rising = low / size % 2;
    } else {
        low = ((i >> shift) << (shift + 1)) + (i & (stride - 1));
        rising = (low & size) != 0;
    }
    float a = in[low], c = in[low + stride];
    bool swap = rising ? a < c : a > c;
    out[low] = swap ? c : a;
    out[low + stride] = swap ? a : c;
}
Family sort_step_divided("sort_step_divided", "sort", {1 << 22, 1 << 26}, mend("integer_arithmetic", "real"),
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n), *out = b.output<float>(n);
        int shift = 14;
        return flawed_mended(launch(sort_step<true>, n / 512, 256, 0, in, out, 1ll << shift, 4ll << shift, shift),
            launch(sort_step<false>, n / 512, 256, 0, in, out, 1ll << shift, 4ll << shift, shift));
    });

// --- sparse matrix by vector, compressed rows: a thread a row, or a warp a row ---

template <bool ThreadPerRow>
__global__ void spmv(const int *__restrict__ start, const int *__restrict__ column, const float *__restrict__ value,
    const float *__restrict__ x, float *__restrict__ y, int rows) {
    int thread = blockIdx.x * 128 + threadIdx.x;
    if (ThreadPerRow) {
        if (thread >= rows) return;
        float sum = 0.0f;
        for (int k = start[thread]; k < start[thread + 1]; ++k) sum += value[k] * x[column[k]];
        y[thread] = sum;
        return;
    }
    int row = thread / 32, lane = thread % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = start[row] + lane; k < start[row + 1]; k += 32) sum += value[k] * x[column[k]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
Family spmv_scalar(
    "spmv_scalar", "spmv", {1 << 14, 1 << 18}, mend("uncoalesced_access", "real"), [](Buffers &b, long rows) -> Sides {
        std::vector<int> start(1, 0), column;
        for (long r = 0; r < rows; ++r) {
            for (int k = 0; k < 64; ++k) column.push_back(int((r + k * 3 + hash(unsigned(r * 64 + k)) % 64) % rows));
            start.push_back(int(column.size()));
        }
        float *value = b.random<float>(long(column.size())), *x = b.random<float>(rows), *y = b.output<float>(rows);
        int *s = b.copy(start), *c = b.copy(column);
        return flawed_mended(launch(spmv<true>, blocks(rows, 128), 128, 0, s, c, value, x, y, rows),
            launch(spmv<false>, blocks(rows, 4), 128, 0, s, c, value, x, y, rows));
    });

// --- a wave equation on a grid, two-dimensional blocks that lie across or along memory ---

template <bool Across>
__global__ void wave(const float *__restrict__ now, const float *__restrict__ before, float *__restrict__ next, int n) {
    int a = blockIdx.x * 32 + threadIdx.x + 1, c = blockIdx.y * 8 + threadIdx.y + 1, pitch = n + 2;
    size_t i = Across ? size_t(a) * pitch + c : size_t(c) * pitch + a;
    next[i] = 1.6f * now[i] - before[i] + 0.1f * (now[i - 1] + now[i + 1] + now[i - pitch] + now[i + pitch]);
}
Family wave_across(
    "wave_across", "wave", {2048, 8192}, mend("uncoalesced_access", "real"), [](Buffers &b, long n) -> Sides {
        size_t cells = size_t(n + 2) * (n + 2);
        float *now = b.random<float>(cells), *before = b.random<float>(cells), *next = b.output<float>(cells, true);
        dim3 grid(n / 32, n / 8), block(32, 8);
        return flawed_mended(launch(wave<true>, grid, block, 0, now, before, next, n),
            launch(wave<false>, grid, block, 0, now, before, next, n));
    });

// --- charge of particles deposited on a mesh: particles as they come, or sorted by cell and summed in the warp ---

template <bool Each>
__global__ void deposit(
    const int *__restrict__ cell, const float *__restrict__ charge, float *__restrict__ mesh, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    int at = cell[i], lane = threadIdx.x % 32;
    float q = charge[i];
    if (Each) {
        atomicAdd(&mesh[at], q * 0.75f);
        atomicAdd(&mesh[at + 1], q * 0.25f);
        return;
    }
    unsigned same = __match_any_sync(~0u, at);
    for (int offset = 1; offset < 32; offset *= 2) {
        float other = __shfl_down_sync(~0u, q, offset);
        if (lane + offset < 32 && same >> (lane + offset) & 1) q += other;
    }
    if (__ffs(same) - 1 == lane) {
        atomicAdd(&mesh[at], q * 0.75f);
        atomicAdd(&mesh[at + 1], q * 0.25f);
    }
}
Family deposit_each(
    "deposit_each", "particles", {1 << 20, 1 << 23}, mend("global_atomics", "real"), [](Buffers &b, long n) -> Sides {
        std::vector<int> cell(n);
        for (long i = 0; i < n; ++i) cell[i] = int(i / 48);  // 48 particles a cell, sorted
        int *c = b.copy(cell);
        float *charge = b.random<float>(n, 0.0, 1.0), *mesh = b.output<float>(n / 48 + 2, true);
        return flawed_mended(launch(deposit<true>, n / 256, 256, 0, c, charge, mesh, n),
            launch(deposit<false>, n / 256, 256, 0, c, charge, mesh, n));
    });

// --- cross entropy's targets: rows of probabilities gathered by label, FP64 logarithms or FP32 ones ---

template <typename Real>
__global__ void cross_entropy(const float *__restrict__ p, float *__restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = float(-Real(0.9) * log(Real(p[i])) - Real(0.1) * log(Real(1.0) - Real(0.9) * Real(p[i])));
}
Family cross_entropy_double("cross_entropy_double", "cross_entropy", {1 << 20, 1 << 24},
    mend("double_precision", "real"), [](Buffers &b, long n) -> Sides {
        float *p = b.random<float>(n, 0.01, 0.99), *out = b.output<float>(n);
        return flawed_mended(launch(cross_entropy<double>, n / 256, 256, 0, p, out, n),
            launch(cross_entropy<float>, n / 256, 256, 0, p, out, n));
    });

}  // namespace
