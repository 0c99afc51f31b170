// Kernels as they are written in models and simulations, each with one flaw that such kernels are found with.
#include "pair.cuh"

namespace {

// --- layer norm over rows of 1024 ---

// A block of 256 threads a row, four values a thread. Statistics by shuffles or by halving in shared memory; sums in
// `Real`; values four at a time or one by one.
template <typename Real, bool Tree, bool Wide>
__global__ void __launch_bounds__(256) layer_norm(const float *__restrict__ in, const float *__restrict__ weight, float *__restrict__ out) {
    constexpr int C = 1024;
    __shared__ Real parts[2][Tree ? 256 : 8];
    const float *row = in + size_t(blockIdx.x) * C;
    float x[4];
    if (Wide) *reinterpret_cast<float4 *>(x) = reinterpret_cast<const float4 *>(row)[threadIdx.x];
    else
        for (int k = 0; k < 4; ++k) x[k] = row[threadIdx.x + 256 * k];
    Real sum = 0, square = 0;
    for (int k = 0; k < 4; ++k) sum += Real(x[k]), square += Real(x[k]) * Real(x[k]);
    if (Tree) {
        parts[0][threadIdx.x] = sum, parts[1][threadIdx.x] = square;
        __syncthreads();
        for (int half = 128; half; half /= 2) {
            if (threadIdx.x < half) {
                parts[0][threadIdx.x] += parts[0][threadIdx.x + half];
                parts[1][threadIdx.x] += parts[1][threadIdx.x + half];
            }
            __syncthreads();
        }
        sum = parts[0][0], square = parts[1][0];
    } else {
        for (int offset = 16; offset; offset /= 2) {
            sum += __shfl_xor_sync(~0u, sum, offset);
            square += __shfl_xor_sync(~0u, square, offset);
        }
        if (threadIdx.x % 32 == 0) parts[0][threadIdx.x / 32] = sum, parts[1][threadIdx.x / 32] = square;
        __syncthreads();
        sum = square = 0;
        for (int w = 0; w < 8; ++w) sum += parts[0][w], square += parts[1][w];
    }
    float mean = float(sum / C), scale = rsqrtf(float(square / C) - mean * mean + 1e-5f);
    float *to = out + size_t(blockIdx.x) * C;
    if (Wide) {
        float4 w = reinterpret_cast<const float4 *>(weight)[threadIdx.x];
        float4 y = {(x[0] - mean) * scale * w.x, (x[1] - mean) * scale * w.y, (x[2] - mean) * scale * w.z, (x[3] - mean) * scale * w.w};
        reinterpret_cast<float4 *>(to)[threadIdx.x] = y;
    } else {
        for (int k = 0; k < 4; ++k) to[threadIdx.x + 256 * k] = (x[k] - mean) * scale * weight[threadIdx.x + 256 * k];
    }
}
Family layer_norms("layer_norm", "layer_norm", {4096, 65536},
    {flaw("doubles", "double_precision", "real"), flaw("tree", "barriers", "real"), flaw("floats", "narrow_access", "behind_limit")}, [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 1024), *weight = b.random<float>(1024), *out = b.output<float>(rows * 1024);
        b.tolerance = 1e-3;
        return {{"doubles", launch(layer_norm<double, false, true>, rows, 256, 0, in, weight, out)},
                {"tree", launch(layer_norm<float, true, true>, rows, 256, 0, in, weight, out)},
                {"floats", launch(layer_norm<float, false, false>, rows, 256, 0, in, weight, out)},
                {"mended", launch(layer_norm<float, false, true>, rows, 256, 0, in, weight, out)}};
    });

// A thread a row against a warp a row: rows of 256, the thread's loads lie a row apart.
template <bool ThreadPerRow>
__global__ void __launch_bounds__(128) short_norm(const float *__restrict__ in, float *__restrict__ out, int rows) {
    constexpr int C = 256;
    if (ThreadPerRow) {
        int row = blockIdx.x * 128 + threadIdx.x;
        if (row >= rows) return;
        float sum = 0.0f;
        for (int c = 0; c < C; ++c) sum += in[size_t(row) * C + c] * in[size_t(row) * C + c];
        float scale = rsqrtf(sum / C + 1e-5f);
        for (int c = 0; c < C; ++c) out[size_t(row) * C + c] = in[size_t(row) * C + c] * scale;
        return;
    }
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float x[8], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = in[size_t(row) * C + lane + 32 * k], sum += x[k] * x[k];
    float scale = rsqrtf(warp_sum(sum) / C + 1e-5f);
#pragma unroll
    for (int k = 0; k < 8; ++k) out[size_t(row) * C + lane + 32 * k] = x[k] * scale;
}
Family rms_norm_thread("rms_norm_thread", "rms_norm", {16384, 262144}, mend("uncoalesced_access", "real"), [](Buffers &b, long rows) -> Sides {
    float *in = b.random<float>(rows * 256), *out = b.output<float>(rows * 256);
    return flawed_mended(launch(short_norm<true>, blocks(rows, 128), 128, 0, in, out, rows), launch(short_norm<false>, blocks(rows, 4), 128, 0, in, out, rows));
});

// --- softmax over rows of 2048 ---

// Precise or fast exponentials; rows read again for each pass, or kept in registers.
template <bool Precise, bool Again>
__global__ void __launch_bounds__(256) softmax(const float *__restrict__ in, float *__restrict__ out, float temperature) {
    constexpr int C = 2048, PER = C / 256;
    __shared__ float parts[8];
    const float *row = in + size_t(blockIdx.x) * C;
    auto power = [](float v) { return Precise ? expf(v) : __expf(v); };
    float x[PER], top = -1e30f, sum = 0.0f;
    if (!Again)
#pragma unroll
        for (int k = 0; k < PER; ++k) x[k] = row[threadIdx.x + 256 * k] * temperature;
#pragma unroll
    for (int k = 0; k < PER; ++k) top = fmaxf(top, Again ? __ldcv(&row[threadIdx.x + 256 * k]) * temperature : x[k]);
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = top;
    __syncthreads();
    for (float part : parts) top = fmaxf(top, part);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < PER; ++k) {
        float e = power((Again ? __ldcv(&row[threadIdx.x + 256 * k]) * temperature : x[k]) - top);
        if (!Again) x[k] = e;
        sum += e;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (float part : parts) sum += part;
    float scale = 1.0f / sum;
#pragma unroll
    for (int k = 0; k < PER; ++k)
        out[size_t(blockIdx.x) * C + threadIdx.x + 256 * k] = scale * (Again ? power(__ldcv(&row[threadIdx.x + 256 * k]) * temperature - top) : x[k]);
}
Family softmaxes("softmax_rows", "softmax", {2048, 32768},
    {flaw("again", "redundant_loads", "real"), flaw("precise", "expensive_math", "behind_limit")}, [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 2048), *out = b.output<float>(rows * 2048);
        return {{"again", launch(softmax<false, true>, rows, 256, 0, in, out, 2.0f)},
                {"precise", launch(softmax<true, false>, rows, 256, 0, in, out, 2.0f)},
                {"mended", launch(softmax<false, false>, rows, 256, 0, in, out, 2.0f)}};
    });
// A few long rows, a block each, on a GPU of many multiprocessors, or many blocks a row that add
// up their partial sums.
template <bool Whole>
__global__ void __launch_bounds__(256) log_sums(const float *__restrict__ in, float *__restrict__ out, int columns, int pieces) {
    __shared__ float parts[8];
    int row = blockIdx.x / pieces, piece = blockIdx.x % pieces, length = columns / pieces;
    const float *from = in + size_t(row) * columns + size_t(piece) * length;
    float sum = 0.0f;
#pragma unroll 8
    for (int c = threadIdx.x; c < length; c += 256) sum += __expf(from[c]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (float part : parts) sum += part;
        if (Whole) out[row] = sum;
        else atomicAdd(&out[row], sum);
    }
}
Family vocabulary_sums("vocabulary_sums", "softmax", {16, 64}, mend("small_grid", "real"), [](Buffers &b, long rows) -> Sides {
    int columns = 1 << 17;
    float *in = b.random<float>(rows * columns), *out = b.output<float>(rows, true);
    return flawed_mended(launch(log_sums<true>, rows, 256, 0, in, out, columns, 1), launch(log_sums<false>, rows * 32, 256, 0, in, out, columns, 32));
});

// --- attention, a query a thread, heads of 64 ---

// Keys and values come from memory for each query, or a tile at a time through shared memory; the running output is an
// array that stays in registers.
template <bool Direct>
__global__ void __launch_bounds__(128) attention(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ out, int length) {
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
            const float *key = Direct ? k + head + size_t(start + j) * D : ks[j], *value = Direct ? v + head + size_t(start + j) * D : vs[j];
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
Family attention_direct("attention_direct", "attention", {512, 2048}, mend("redundant_loads", "real"), [](Buffers &b, long length) -> Sides {
    long heads = 64, n = heads * length * 32;
    float *q = b.random<float>(n), *k = b.random<float>(n), *v = b.random<float>(n), *out = b.output<float>(n);
    b.tolerance = 1e-3;
    dim3 grid(length / 128, heads);
    return flawed_mended(launch(attention<true>, grid, 128, 0, q, k, v, out, length), launch(attention<false>, grid, 128, 0, q, k, v, out, length));
});

// --- causal attention scores' sums: the triangle that a causal mask leaves, in order or balanced ---

template <bool InOrder>
__global__ void __launch_bounds__(128) causal(const float *__restrict__ q, const float *__restrict__ k, float *__restrict__ out, int length) {
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
Family causal_order("causal_order", "attention", {1024, 3072}, mend("workload_imbalance", "real"), [](Buffers &b, long length) -> Sides {
    long heads = 8, n = heads * length * 32;
    float *q = b.random<float>(n), *k = b.random<float>(n), *out = b.output<float>(heads * length);
    dim3 grid(length / 256, heads);
    return flawed_mended(launch(causal<true>, grid, 128, 0, q, k, out, length), launch(causal<false>, grid, 128, 0, q, k, out, length));
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
Family sort_barriers("sort_barriers", "sort", {1 << 18, 1 << 23}, mend("barriers", "real"), [](Buffers &b, long n) -> Sides {
    int *in = b.random<int>(n, -1e9, 1e9), *out = b.output<int>(n);
    return flawed_mended(launch(sort_blocks<false>, n / 512, 512, 0, in, out), launch(sort_blocks<true>, n / 512, 512, 0, in, out));
});
// One step of a bitonic sort in memory: partners found by division and remainder of 64 bits, or by bits.
template <bool Divided>
__global__ void sort_step(const float *__restrict__ in, float *__restrict__ out, long long stride, long long size, int shift) {
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
Family sort_step_divided("sort_step_divided", "sort", {1 << 22, 1 << 26}, mend("integer_arithmetic", "real"), [](Buffers &b, long n) -> Sides {
    float *in = b.random<float>(n), *out = b.output<float>(n);
    int shift = 14;
    return flawed_mended(launch(sort_step<true>, n / 512, 256, 0, in, out, 1ll << shift, 4ll << shift, shift),
                         launch(sort_step<false>, n / 512, 256, 0, in, out, 1ll << shift, 4ll << shift, shift));
});

// --- sparse matrix by vector, compressed rows: a thread a row, or a warp a row ---

template <bool ThreadPerRow>
__global__ void spmv(const int *__restrict__ start, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y, int rows) {
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
Family spmv_scalar("spmv_scalar", "spmv", {1 << 14, 1 << 18}, mend("uncoalesced_access", "real"), [](Buffers &b, long rows) -> Sides {
    std::vector<int> start(1, 0), column;
    for (long r = 0; r < rows; ++r) {
        for (int k = 0; k < 64; ++k) column.push_back(int((r + k * 3 + hash(unsigned(r * 64 + k)) % 64) % rows));
        start.push_back(int(column.size()));
    }
    float *value = b.random<float>(long(column.size())), *x = b.random<float>(rows), *y = b.output<float>(rows);
    int *s = b.copy(start), *c = b.copy(column);
    return flawed_mended(launch(spmv<true>, blocks(rows, 128), 128, 0, s, c, value, x, y, rows), launch(spmv<false>, blocks(rows, 4), 128, 0, s, c, value, x, y, rows));
});

// --- a wave equation on a grid, two-dimensional blocks that lie across or along memory ---

template <bool Across>
__global__ void wave(const float *__restrict__ now, const float *__restrict__ before, float *__restrict__ next, int n) {
    int a = blockIdx.x * 32 + threadIdx.x + 1, c = blockIdx.y * 8 + threadIdx.y + 1, pitch = n + 2;
    size_t i = Across ? size_t(a) * pitch + c : size_t(c) * pitch + a;
    next[i] = 1.6f * now[i] - before[i] + 0.1f * (now[i - 1] + now[i + 1] + now[i - pitch] + now[i + pitch]);
}
Family wave_across("wave_across", "wave", {2048, 8192}, mend("uncoalesced_access", "real"), [](Buffers &b, long n) -> Sides {
    size_t cells = size_t(n + 2) * (n + 2);
    float *now = b.random<float>(cells), *before = b.random<float>(cells), *next = b.output<float>(cells, true);
    dim3 grid(n / 32, n / 8), block(32, 8);
    return flawed_mended(launch(wave<true>, grid, block, 0, now, before, next, n), launch(wave<false>, grid, block, 0, now, before, next, n));
});

// --- charge of particles deposited on a mesh: particles as they come, or sorted by cell and summed in the warp ---

template <bool Each>
__global__ void deposit(const int *__restrict__ cell, const float *__restrict__ charge, float *__restrict__ mesh, int n) {
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
Family deposit_each("deposit_each", "particles", {1 << 20, 1 << 23}, mend("global_atomics", "real"), [](Buffers &b, long n) -> Sides {
    std::vector<int> cell(n);
    for (long i = 0; i < n; ++i) cell[i] = int(i / 48);  // 48 particles a cell, sorted
    int *c = b.copy(cell);
    float *charge = b.random<float>(n, 0.0, 1.0), *mesh = b.output<float>(n / 48 + 2, true);
    return flawed_mended(launch(deposit<true>, n / 256, 256, 0, c, charge, mesh, n), launch(deposit<false>, n / 256, 256, 0, c, charge, mesh, n));
});

// --- cross entropy's targets: rows of probabilities gathered by label, FP64 logarithms or FP32 ones ---

template <typename Real>
__global__ void cross_entropy(const float *__restrict__ p, float *__restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = float(-Real(0.9) * log(Real(p[i])) - Real(0.1) * log(Real(1.0) - Real(0.9) * Real(p[i])));
}
Family cross_entropy_double("cross_entropy_double", "cross_entropy", {1 << 20, 1 << 24}, mend("double_precision", "real"), [](Buffers &b, long n) -> Sides {
    float *p = b.random<float>(n, 0.01, 0.99), *out = b.output<float>(n);
    return flawed_mended(launch(cross_entropy<double>, n / 256, 256, 0, p, out, n), launch(cross_entropy<float>, n / 256, 256, 0, p, out, n));
});

}  // namespace
