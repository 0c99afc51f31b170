// Row-wise kernels of language models: norms, softmax, losses, positions. Each has one flaw and several fixes.
#include "../pairs/pair.cuh"

namespace {

// --- RMS norm of half rows, one element at a time ---

__global__ void rms_norm_half(const __half *x, const __half *gamma, __half *y, int dim, float eps) {
    __shared__ float shared_sum[32];
    const __half *row = x + blockIdx.x * dim;
    float sum = 0.f;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) {
        float v = __half2float(row[i]);
        sum += v * v;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) shared_sum[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? shared_sum[threadIdx.x % 32] : 0.f);
    float scale = rsqrtf(sum / dim + eps);
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        y[blockIdx.x * dim + i] = __float2half(__half2float(row[i]) * scale * __half2float(gamma[i]));
}

__global__ void rms_norm_half2(const __half2 *x, const __half2 *gamma, __half2 *y, int pairs, float eps) {
    __shared__ float shared_sum[32];
    const __half2 *row = x + blockIdx.x * pairs;
    float sum = 0.f;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float2 v = __half22float2(row[i]);
        sum += v.x * v.x + v.y * v.y;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) shared_sum[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? shared_sum[threadIdx.x % 32] : 0.f);
    float scale = rsqrtf(sum / (2 * pairs) + eps);
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float2 v = __half22float2(row[i]), g = __half22float2(gamma[i]);
        y[blockIdx.x * pairs + i] = __floats2half2_rn(v.x * scale * g.x, v.y * scale * g.y);
    }
}

struct alignas(16) Half8 {
    __half2 v[4];
};

__global__ void __launch_bounds__(256) rms_norm_half8(const Half8 *x, const Half8 *gamma, Half8 *y, float eps) {
    constexpr int PER_THREAD = 2;  // 256 threads, rows of 4096
    __shared__ float shared_sum[8];
    const Half8 *row = x + blockIdx.x * 512;
    Half8 kept[PER_THREAD];
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
        kept[k] = row[threadIdx.x + 256 * k];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 v = __half22float2(kept[k].v[j]);
            sum += v.x * v.x + v.y * v.y;
        }
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) shared_sum[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.f;
    for (float part : shared_sum) sum += part;
    float scale = rsqrtf(sum / 4096 + eps);
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
        Half8 g = gamma[threadIdx.x + 256 * k], out;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 v = __half22float2(kept[k].v[j]), w = __half22float2(g.v[j]);
            out.v[j] = __floats2half2_rn(v.x * scale * w.x, v.y * scale * w.y);
        }
        y[blockIdx.x * 512 + threadIdx.x + 256 * k] = out;
    }
}

Study rms_norm("rms_norm_fp16", "models", 32768, "RMS norm of rows of 4096 half values, a block of 256 threads a row",
    "values are read and written one half at a time, and the row is read twice",
    {{"half2", "two values an access (half2)", {"narrow_access"}},
        {"eight", "eight values an access (16 bytes), the row kept in registers between the two passes",
            {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long rows) -> Sides {
        auto *x = b.random<__half>(rows * 4096), *gamma = b.random<__half>(4096), *y = b.output<__half>(rows * 4096);
        b.tolerance = 2e-3;
        return {{"flawed", launch(rms_norm_half, rows, 256, 0, x, gamma, y, 4096, 1e-6f)},
            {"half2", launch(rms_norm_half2, rows, 256, 0, (__half2 *)x, (__half2 *)gamma, (__half2 *)y, 2048, 1e-6f)},
            {"eight", launch(rms_norm_half8, rows, 256, 0, (Half8 *)x, (Half8 *)gamma, (Half8 *)y, 1e-6f)}};
    });

// --- layer norm in three passes ---

__device__ float block_sum(float v, float *scratch) {
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? scratch[threadIdx.x % 32] : 0.f);
    return v;
}

enum class Passes { Three, Two, Shared };

template <Passes passes>
__global__ void layer_norm(const float *__restrict__ in, const float *__restrict__ gamma,
    const float *__restrict__ beta, float *__restrict__ out, int n) {
    __shared__ float scratch[32];
    extern __shared__ float kept[];
    const float *row = in + size_t(blockIdx.x) * n;
    float mean, variance;
    if (passes == Passes::Two) {
        float sum = 0.f, square = 0.f;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            float v = row[i];
            sum += v, square += v * v;
        }
        mean = block_sum(sum, scratch) / n;
        variance = block_sum(square, scratch) / n - mean * mean;
    } else {
        float sum = 0.f, square = 0.f;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            float v = row[i];
            if (passes == Passes::Shared) kept[i] = v;
            sum += v;
        }
        mean = block_sum(sum, scratch) / n;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            float d = (passes == Passes::Shared ? kept[i] : row[i]) - mean;
            square += d * d;
        }
        variance = block_sum(square, scratch) / n;
    }
    float scale = rsqrtf(variance + 1e-5f);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[size_t(blockIdx.x) * n + i] =
            ((passes == Passes::Shared ? kept[i] : row[i]) - mean) * scale * gamma[i] + beta[i];
}

template <int PER>
__global__ void __launch_bounds__(512) layer_norm_registers(const float *__restrict__ in,
    const float *__restrict__ gamma, const float *__restrict__ beta, float *__restrict__ out) {
    __shared__ float scratch[32];
    constexpr int n = PER * 512;
    const float *row = in + size_t(blockIdx.x) * n;
    float v[PER], sum = 0.f, square = 0.f;
#pragma unroll
    for (int k = 0; k < PER; ++k) sum += v[k] = row[threadIdx.x + 512 * k];
    float mean = block_sum(sum, scratch) / n;
#pragma unroll
    for (int k = 0; k < PER; ++k) square += (v[k] - mean) * (v[k] - mean);
    float scale = rsqrtf(block_sum(square, scratch) / n + 1e-5f);
#pragma unroll
    for (int k = 0; k < PER; ++k) {
        int i = threadIdx.x + 512 * k;
        out[size_t(blockIdx.x) * n + i] = (v[k] - mean) * scale * gamma[i] + beta[i];
    }
}

Study layer_norm_passes("layer_norm_three_passes", "models", 4096,
    "layer norm of rows of 16384 floats, a block of 512 threads a row",
    "the row is read from memory three times: for the mean, for the variance and to normalise",
    {{"two_passes", "sum and sum of squares in one pass: two reads instead of three", {"redundant_loads"}},
        {"shared", "the row kept in shared memory after the first read", {"redundant_loads"}},
        {"registers", "the row kept in registers, 32 values a thread", {"redundant_loads"}}},
    [](Buffers &b, long rows) -> Sides {
        int n = 16384;
        float *in = b.random<float>(rows * n), *gamma = b.random<float>(n), *beta = b.random<float>(n),
              *out = b.output<float>(rows * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(layer_norm<Passes::Three>, rows, 512, 0, in, gamma, beta, out, n)},
            {"two_passes", launch(layer_norm<Passes::Two>, rows, 512, 0, in, gamma, beta, out, n)},
            {"shared", launch(layer_norm<Passes::Shared>, rows, 512, n * 4, in, gamma, beta, out, n)},
            {"registers", launch(layer_norm_registers<32>, rows, 512, 0, in, gamma, beta, out)}};
    });

// --- softmax, a thread a row ---

__global__ void softmax_rows(const float *in, float *out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float top = -INFINITY, sum = 0.f;
        for (int c = 0; c < cols; c++) top = fmaxf(top, in[r * cols + c]);
        for (int c = 0; c < cols; c++) sum += __expf(in[r * cols + c] - top);
        for (int c = 0; c < cols; c++) out[r * cols + c] = __expf(in[r * cols + c] - top) / sum;
    }
}

__global__ void softmax_warp(const float *in, float *out, int rows) {
    constexpr int COLS = 96;
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;
    float v[3], top = -INFINITY, sum = 0.f;
    for (int k = 0; k < 3; ++k) v[k] = in[r * COLS + lane + 32 * k], top = fmaxf(top, v[k]);
    top = warp_max(top);
    for (int k = 0; k < 3; ++k) sum += v[k] = __expf(v[k] - top);
    sum = warp_sum(sum);
    for (int k = 0; k < 3; ++k) out[r * COLS + lane + 32 * k] = v[k] / sum;
}

__global__ void __launch_bounds__(128) softmax_staged(const float *in, float *out) {
    constexpr int COLS = 96, PITCH = COLS + 1;
    extern __shared__ float tile[];  // 128 rows
    const float *from = in + size_t(blockIdx.x) * 128 * COLS;
    for (int i = threadIdx.x; i < 128 * COLS; i += 128) tile[i / COLS * PITCH + i % COLS] = from[i];
    __syncthreads();
    float *row = tile + threadIdx.x * PITCH, top = -INFINITY, sum = 0.f;
    for (int c = 0; c < COLS; c++) top = fmaxf(top, row[c]);
    for (int c = 0; c < COLS; c++) sum += row[c] = __expf(row[c] - top);
    float scale = 1.f / sum;
    for (int c = 0; c < COLS; c++) row[c] *= scale;
    __syncthreads();
    for (int i = threadIdx.x; i < 128 * COLS; i += 128)
        out[size_t(blockIdx.x) * 128 * COLS + i] = tile[i / COLS * PITCH + i % COLS];
}

Study softmax_thread("softmax_thread_per_row", "models", 524288, "softmax of rows of 96 floats",
    "a thread walks a row, so neighbouring lanes read addresses 384 bytes apart",
    {{"warp_per_row", "a warp a row, three values a lane, reduced by shuffles", {"uncoalesced_access"}},
        {"shared_tile", "still a thread a row, but 128 rows are brought through padded shared memory",
            {"uncoalesced_access"}}},
    [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 96, -4, 4), *out = b.output<float>(rows * 96);
        return {{"flawed", launch(softmax_rows, blocks(rows, 128), 128, 0, in, out, rows, 96)},
            {"warp_per_row", launch(softmax_warp, blocks(rows, 8), 256, 0, in, out, rows)},
            {"shared_tile", launch(softmax_staged, rows / 128, 128, 128 * 97 * 4, in, out)}};
    });

// --- cross entropy of short rows, a barrier for every halving ---

__global__ void cross_entropy_tree(const float *logits, const int *target, float *loss, int classes) {
    extern __shared__ float s[];
    int tid = threadIdx.x;
    float x = logits[blockIdx.x * classes + tid];
    s[tid] = x;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) s[tid] = fmaxf(s[tid], s[tid + stride]);
        __syncthreads();
    }
    float top = s[0];
    __syncthreads();
    s[tid] = __expf(x - top);
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) s[tid] += s[tid + stride];
        __syncthreads();
    }
    if (tid == target[blockIdx.x]) loss[blockIdx.x] = __logf(s[0]) - (x - top);
}

__global__ void cross_entropy_shuffles(const float *logits, const int *target, float *loss, int classes) {
    __shared__ float tops[32], sums[32];
    int tid = threadIdx.x, warps = blockDim.x / 32;
    float x = logits[blockIdx.x * classes + tid];
    float top = warp_max(x);
    if (tid % 32 == 0) tops[tid / 32] = top;
    __syncthreads();
    top = warp_max(tops[min(tid % 32, warps - 1)]);
    float sum = warp_sum(__expf(x - top));
    if (tid % 32 == 0) sums[tid / 32] = sum;
    __syncthreads();
    if (tid == target[blockIdx.x]) {
        sum = 0.f;
        for (int w = 0; w < warps; ++w) sum += sums[w];
        loss[blockIdx.x] = __logf(sum) - (x - top);
    }
}

__global__ void cross_entropy_warp(const float4 *logits, const int *target, float *loss, int rows) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float4 v[4];
    float top = -INFINITY, sum = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        v[k] = logits[row * 128 + lane + 32 * k];
        top = fmaxf(top, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
    }
    top = warp_max(top);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        sum += __expf(v[k].x - top) + __expf(v[k].y - top) + __expf(v[k].z - top) + __expf(v[k].w - top);
    sum = warp_sum(sum);
    if (lane == 0) loss[row] = __logf(sum) - (((const float *)logits)[size_t(row) * 512 + target[row]] - top);
}

Study cross_entropy("cross_entropy_tree", "models", 131072,
    "cross entropy over 512 classes, a block of 512 threads a row",
    "both reductions halve through shared memory with a barrier a step, 20 barriers for one value a thread",
    {{"shuffles", "reductions by shuffles, one barrier each", {"barriers"}},
        {"warp_per_row", "a warp a row with 16 values a lane: no barrier at all, 16-byte loads",
            {"barriers", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        float *logits = b.random<float>(rows * 512, -5, 5), *loss = b.output<float>(rows);
        int *target = b.random<int>(rows, 0, 512);
        return {{"flawed", launch(cross_entropy_tree, rows, 512, 2048, logits, target, loss, 512)},
            {"shuffles", launch(cross_entropy_shuffles, rows, 512, 0, logits, target, loss, 512)},
            {"warp_per_row", launch(cross_entropy_warp, blocks(rows, 8), 256, 0, (float4 *)logits, target, loss, rows)}};
    });

// --- rotary embedding: angles computed for every head ---

__global__ void rotary(float2 *x, int heads, int half_dim, float base) {
    int token = blockIdx.x;
    for (int i = threadIdx.x; i < heads * half_dim; i += blockDim.x) {
        int d = i % half_dim;
        float angle = token * powf(base, -2.0f * d / (2 * half_dim));
        float c = cosf(angle), s = sinf(angle);
        float2 v = x[size_t(token) * heads * half_dim + i];
        x[size_t(token) * heads * half_dim + i] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
    }
}

__global__ void rotary_once(float2 *x, int heads, int half_dim, float base) {
    int token = blockIdx.x, d = threadIdx.x;
    float angle = token * powf(base, -2.0f * d / (2 * half_dim)), c, s;
    sincosf(angle, &s, &c);
    float2 *at = x + size_t(token) * heads * half_dim + d;
#pragma unroll 4
    for (int h = threadIdx.y; h < heads; h += blockDim.y) {
        float2 v = at[h * half_dim];
        at[h * half_dim] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
    }
}

__global__ void rotary_table(float2 *x, const float2 *__restrict__ table, int heads, int half_dim) {
    int token = blockIdx.x;
    for (int i = threadIdx.x; i < heads * half_dim; i += blockDim.x) {
        float2 cs = table[token * half_dim + i % half_dim];
        float2 v = x[size_t(token) * heads * half_dim + i];
        x[size_t(token) * heads * half_dim + i] = make_float2(v.x * cs.x - v.y * cs.y, v.x * cs.y + v.y * cs.x);
    }
}

Study rotary_angles("rotary_angles", "models", 8192, "rotary position embedding of 32 heads of 64 pairs, in place",
    "power, sine and cosine of the angle are computed anew for each of the 32 heads",
    {{"once_a_pair", "a thread takes one pair of all heads: angle computed once, used for several heads",
         {"expensive_math"}},
        {"table", "cosines and sines read from a table made beforehand", {"expensive_math"}}},
    [](Buffers &b, long tokens) -> Sides {
        int heads = 32, half = 64;
        size_t count = tokens * heads * half * 2;
        float *x = b.changed(b.random<float>(count), count);
        std::vector<float> table(tokens * half * 2);
        for (long t = 0; t < tokens; ++t)
            for (int d = 0; d < half; ++d) {
                float angle = t * powf(10000.f, -2.0f * d / (2 * half));
                table[(t * half + d) * 2] = cosf(angle), table[(t * half + d) * 2 + 1] = sinf(angle);
            }
        float *stored = b.copy(table);
        b.tolerance = 5e-3;  // of angles in the thousands
        return {{"flawed", launch(rotary, tokens, 256, 0, (float2 *)x, heads, half, 10000.f)},
            {"once_a_pair", launch(rotary_once, tokens, dim3(64, 4), 0, (float2 *)x, heads, half, 10000.f)},
            {"table", launch(rotary_table, tokens, 256, 0, (float2 *)x, (float2 *)stored, heads, half)}};
    });

// --- top-k of rows ---

struct Best {
    float value;
    int index;
};
__device__ Best better(Best a, Best b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}
__device__ Best block_best(Best best, Best *scratch) {
    for (int offset = 16; offset; offset /= 2)
        best = better(best,
            {__shfl_xor_sync(~0u, best.value, offset), __shfl_xor_sync(~0u, best.index, offset)});
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = best;
    __syncthreads();
    best = scratch[0];
    for (int w = 1; w < blockDim.x / 32; ++w) best = better(best, scratch[w]);
    __syncthreads();
    return best;
}

// Finds the k largest one after the other; what was found before is passed over.
template <bool Shared>
__global__ void top_k(const float *__restrict__ scores, float *values, int *indices, int n, int k) {
    __shared__ Best scratch[32];
    extern __shared__ float row_copy[];
    const float *row = scores + size_t(blockIdx.x) * n;
    if (Shared) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) row_copy[i] = row[i];
        __syncthreads();
    }
    Best last = {INFINITY, -1};
    for (int j = 0; j < k; ++j) {
        Best best = {-INFINITY, n};
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            float v = Shared ? row_copy[i] : row[i];
            bool before = v > last.value || (v == last.value && i <= last.index);
            if (!before) best = better(best, {v, i});
        }
        last = block_best(best, scratch);
        if (threadIdx.x == 0) values[blockIdx.x * k + j] = last.value, indices[blockIdx.x * k + j] = last.index;
    }
}

__global__ void __launch_bounds__(256)
    top_k_registers(const float *__restrict__ scores, float *values, int *indices, int k) {
    constexpr int PER = 32;  // rows of 8192
    __shared__ Best scratch[8];
    const float *row = scores + size_t(blockIdx.x) * PER * 256;
    float v[PER];
#pragma unroll
    for (int p = 0; p < PER; ++p) v[p] = row[threadIdx.x + 256 * p];
    for (int j = 0; j < k; ++j) {
        Best best = {-INFINITY, PER * 256};
#pragma unroll
        for (int p = 0; p < PER; ++p) best = better(best, {v[p], int(threadIdx.x) + 256 * p});
        best = block_best(best, scratch);
#pragma unroll
        for (int p = 0; p < PER; ++p)
            if (best.index == threadIdx.x + 256 * p) v[p] = -INFINITY;
        if (threadIdx.x == 0) values[blockIdx.x * k + j] = best.value, indices[blockIdx.x * k + j] = best.index;
    }
}

Study top_k_rows("top_k_rescans", "models", 8192, "the 8 largest of rows of 8192 scores, one after the other",
    "the whole row is read again from memory for each of the eight",
    {{"shared", "the row copied to shared memory once", {"redundant_loads"}},
        {"registers", "the row kept in registers, found values overwritten", {"redundant_loads"}}},
    [](Buffers &b, long rows) -> Sides {
        int n = 8192, k = 8;
        float *scores = b.random<float>(rows * n), *values = b.output<float>(rows * k);
        int *indices = b.output<int>(rows * k);
        return {{"flawed", launch(top_k<false>, rows, 256, 0, scores, values, indices, n, k)},
            {"shared", launch(top_k<true>, rows, 256, n * 4, scores, values, indices, n, k)},
            {"registers", launch(top_k_registers, rows, 256, 0, scores, values, indices, k)}};
    });

// --- scores of one query a head against its cached keys ---

__global__ void decode_scores(const float *q, const float *keys, float *scores, int length, int per_block) {
    constexpr int D = 128;
    __shared__ float query[D];
    int head = blockIdx.y, lane = threadIdx.x % 32;
    if (threadIdx.x < D) query[threadIdx.x] = q[head * D + threadIdx.x];
    __syncthreads();
    int first = blockIdx.x * per_block, last = min(length, first + per_block);
    for (int s = first + threadIdx.x / 32; s < last; s += blockDim.x / 32) {
        float4 k = reinterpret_cast<const float4 *>(keys + (size_t(head) * length + s) * D)[lane];
        float4 v = reinterpret_cast<const float4 *>(query)[lane];
        float dot = warp_sum(k.x * v.x + k.y * v.y + k.z * v.z + k.w * v.w);
        if (lane == 0) scores[head * length + s] = dot * 0.08838834764f;
    }
}

Study decode("decode_scores_few_blocks", "models", 8192,
    "scores of one query against 8192 cached keys of 128 floats, 32 heads (decoding, batch 1)",
    "a block a head: 32 blocks on a GPU of 132 multiprocessors",
    {{"bigger_blocks", "the same grid with 1024 threads a block instead of 128", {"small_grid", "low_occupancy"}},
        {"split_keys", "keys split over 64 blocks a head", {"small_grid"}}},
    [](Buffers &b, long length) -> Sides {
        int heads = 32;
        float *q = b.random<float>(heads * 128), *keys = b.random<float>(heads * length * 128),
              *scores = b.output<float>(heads * length);
        return {{"flawed", launch(decode_scores, dim3(1, heads), 128, 0, q, keys, scores, length, length)},
            {"bigger_blocks", launch(decode_scores, dim3(1, heads), 1024, 0, q, keys, scores, length, length)},
            {"split_keys", launch(decode_scores, dim3(64, heads), 128, 0, q, keys, scores, length, length / 64)}};
    });

}  // namespace
