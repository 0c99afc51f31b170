// Element-wise kernels of models, embeddings, quantisation and the optimiser.
#include "../pairs/pair.cuh"

namespace {

// --- bias and GELU: the column by a 64-bit remainder ---

__device__ float quick_gelu(float x) { return x / (1.f + __expf(-1.702f * x)); }

template <typename Index>
__global__ void bias_gelu(const float *x, const float *bias, float *y, Index total, Index cols) {
    Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < total) {
        Index row = i / cols, col = i % cols;
        y[row * cols + col] = quick_gelu(x[row * cols + col] + bias[col]);
    }
}

__global__ void bias_gelu_2d(const float *x, const float *bias, float *y, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    size_t i = size_t(blockIdx.y) * cols + col;
    y[i] = quick_gelu(x[i] + bias[col]);
}

__global__ void bias_gelu_4(const float4 *x, const float4 *bias, float4 *y, unsigned total4, unsigned cols4) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total4) return;
    float4 v = x[i], b = bias[i % cols4];
    y[i] = {quick_gelu(v.x + b.x), quick_gelu(v.y + b.y), quick_gelu(v.z + b.z), quick_gelu(v.w + b.w)};
}

Study bias_gelus("bias_gelu_index64", "models", 16384, "adds a bias a column and applies GELU, 3072 columns",
    "row and column are found by 64-bit division and remainder by a runtime number of columns",
    {{"index32", "32-bit indices", {"integer_arithmetic"}},
        {"grid_2d", "a two-dimensional grid: no division", {"integer_arithmetic"}},
        {"four", "four columns a thread in 16-byte accesses, one 32-bit remainder for the four",
            {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        long cols = 3072, n = rows * cols;
        float *x = b.random<float>(n, -3, 3), *bias = b.random<float>(cols), *y = b.output<float>(n);
        return {{"flawed", launch(bias_gelu<long long>, blocks(n, 256), 256, 0, x, bias, y, n, cols)},
            {"index32", launch(bias_gelu<unsigned>, blocks(n, 256), 256, 0, x, bias, y, n, cols)},
            {"grid_2d", launch(bias_gelu_2d, dim3(blocks(cols, 256), rows), 256, 0, x, bias, y, cols)},
            {"four", launch(bias_gelu_4, blocks(n / 4, 256), 256, 0, (float4 *)x, (float4 *)bias, (float4 *)y, n / 4,
                         cols / 4)}};
    });

// --- SwiGLU with double literals ---

__global__ void swiglu_kernel(const __half *gate, const __half *up, __half *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float g = __half2float(gate[i]);
        float silu = g / (1.0 + exp(-1.0 * g));
        out[i] = __float2half(silu * __half2float(up[i]));
    }
}
__global__ void swiglu_float(const __half *gate, const __half *up, __half *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float g = __half2float(gate[i]);
        float silu = g / (1.0f + expf(-g));
        out[i] = __float2half(silu * __half2float(up[i]));
    }
}
__global__ void swiglu_fast(const __half2 *gate, const __half2 *up, __half2 *out, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) {
        float2 g = __half22float2(gate[i]), u = __half22float2(up[i]);
        out[i] = __floats2half2_rn(
            __fdividef(g.x, 1.0f + __expf(-g.x)) * u.x, __fdividef(g.y, 1.0f + __expf(-g.y)) * u.y);
    }
}

Study swiglu("swiglu_double_literals", "models", 1 << 26, "SwiGLU of half values",
    "literals without f make exponential and division double precision",
    {{"floats", "float literals and expf", {"double_precision"}},
        {"fast_pairs", "float, fast exponential and division, two values a thread", {"double_precision", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *gate = b.random<__half>(n, -4, 4), *up = b.random<__half>(n), *out = b.output<__half>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(swiglu_kernel, blocks(n, 256), 256, 0, gate, up, out, n)},
            {"floats", launch(swiglu_float, blocks(n, 256), 256, 0, gate, up, out, n)},
            {"fast_pairs", launch(swiglu_fast, blocks(n / 2, 256), 256, 0, (__half2 *)gate, (__half2 *)up,
                               (__half2 *)out, n / 2)}};
    });

// --- embedding look-up, a thread a token ---

__global__ void embedding_forward(const int *ids, const float *table, float *out, int tokens, int dim) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tokens) return;
    const float *row = table + (size_t)ids[t] * dim;
    for (int d = 0; d < dim; ++d) out[(size_t)t * dim + d] = row[d];
}
__global__ void embedding_block(const int *ids, const float4 *table, float4 *out, int dim4) {
    const float4 *row = table + (size_t)ids[blockIdx.x] * dim4;
    for (int d = threadIdx.x; d < dim4; d += blockDim.x) out[(size_t)blockIdx.x * dim4 + d] = row[d];
}
__global__ void embedding_warp(const int *ids, const float *table, float *out, int tokens, int dim) {
    int t = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (t >= tokens) return;
    const float *row = table + (size_t)ids[t] * dim;
    for (int d = threadIdx.x % 32; d < dim; d += 32) out[(size_t)t * dim + d] = row[d];
}

Study embedding("embedding_thread_per_token", "models", 131072, "embedding look-up, rows of 512 floats, 50257 words",
    "a thread copies a whole row, lanes are rows apart",
    {{"block_per_token", "a block of 128 threads a token, 16 bytes a thread", {"uncoalesced_access", "narrow_access"}},
        {"warp_per_token", "a warp a token, neighbouring lanes on neighbouring floats", {"uncoalesced_access"}}},
    [](Buffers &b, long tokens) -> Sides {
        int dim = 512, words = 50257;
        int *ids = b.random<int>(tokens, 0, words);
        float *table = b.random<float>(size_t(words) * dim), *out = b.output<float>(tokens * dim);
        return {{"flawed", launch(embedding_forward, blocks(tokens, 128), 128, 0, ids, table, out, tokens, dim)},
            {"block_per_token", launch(embedding_block, tokens, 128, 0, ids, (float4 *)table, (float4 *)out, dim / 4)},
            {"warp_per_token", launch(embedding_warp, blocks(tokens, 8), 256, 0, ids, table, out, tokens, dim)}};
    });

// --- embedding gradient: ids come sorted, most words are frequent ---

__global__ void embedding_backward(const int *ids, const float *grad, float *table_grad, int dim) {
    int t = blockIdx.x;
    for (int d = threadIdx.x; d < dim; d += blockDim.x)
        atomicAdd(&table_grad[(size_t)ids[t] * dim + d], grad[(size_t)t * dim + d]);
}
__global__ void embedding_backward_runs(const int *ids, const float *grad, float *table_grad, int tokens, int dim) {
    constexpr int RUN = 32;
    int first = blockIdx.x * RUN, last = min(tokens, first + RUN);
    for (int d = threadIdx.x; d < dim; d += blockDim.x) {
        float sum = 0.f;
        int current = ids[first];
        for (int t = first; t < last; ++t) {
            int id = ids[t];
            if (id != current) {
                atomicAdd(&table_grad[(size_t)current * dim + d], sum);
                sum = 0.f, current = id;
            }
            sum += grad[(size_t)t * dim + d];
        }
        atomicAdd(&table_grad[(size_t)current * dim + d], sum);
    }
}
__global__ void embedding_backward_wide(const int *ids, const float4 *grad, float4 *table_grad, int dim4) {
    int t = blockIdx.x;
    for (int d = threadIdx.x; d < dim4; d += blockDim.x)
        atomicAdd(&table_grad[(size_t)ids[t] * dim4 + d], grad[(size_t)t * dim4 + d]);
}

Study embedding_grad("embedding_backward_atomics", "models", 131072,
    "gradient of an embedding: rows of 256 floats added to the rows of their words, words sorted",
    "an atomic a value, though the same word comes many times in a row",
    {{"runs", "32 tokens a block, equal words added up in a register before the atomic",
         {"global_atomics"}},
        {"vector_atomics", "atomics of four floats", {"global_atomics"}}},
    [](Buffers &b, long tokens) -> Sides {
        int dim = 256, words = 4096;
        std::vector<int> ids(tokens);
        for (long t = 0; t < tokens; ++t) {
            double u = double(t) / tokens;
            ids[t] = int(u * u * u * words);  // few words often, most rarely
        }
        int *sorted = b.copy(ids);
        float *grad = b.random<float>(tokens * dim), *sums = b.output<float>(size_t(words) * dim, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(embedding_backward, tokens, 256, 0, sorted, grad, sums, dim)},
            {"runs", launch(embedding_backward_runs, blocks(tokens, 32), 256, 0, sorted, grad, sums, tokens, dim)},
            {"vector_atomics",
                launch(embedding_backward_wide, tokens, 64, 0, sorted, (float4 *)grad, (float4 *)sums, dim / 4)}};
    });

// --- Adam with the bias correction in every thread ---

struct AdamState {
    float lr, beta1, beta2, eps;
    int step;
};

__global__ void adam_step(float *p, float *m, float *v, const float *g, AdamState s, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float grad = g[i];
    float mi = m[i] = s.beta1 * m[i] + (1 - s.beta1) * grad;
    float vi = v[i] = s.beta2 * v[i] + (1 - s.beta2) * grad * grad;
    float mhat = mi / (1 - pow((double)s.beta1, s.step));
    float vhat = vi / (1 - pow((double)s.beta2, s.step));
    p[i] -= s.lr * mhat / (sqrtf(vhat) + s.eps);
}
__global__ void adam_step_block(float *p, float *m, float *v, const float *g, AdamState s, long n) {
    __shared__ float correct1, correct2;
    if (threadIdx.x == 0) {
        correct1 = 1 / (1 - pow((double)s.beta1, s.step));
        correct2 = 1 / (1 - pow((double)s.beta2, s.step));
    }
    __syncthreads();
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float grad = g[i];
    float mi = m[i] = s.beta1 * m[i] + (1 - s.beta1) * grad;
    float vi = v[i] = s.beta2 * v[i] + (1 - s.beta2) * grad * grad;
    p[i] -= s.lr * (mi * correct1) / (sqrtf(vi * correct2) + s.eps);
}
__global__ void adam_step_host(
    float *p, float *m, float *v, const float *g, AdamState s, float correct1, float correct2, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float grad = g[i];
    float mi = m[i] = s.beta1 * m[i] + (1 - s.beta1) * grad;
    float vi = v[i] = s.beta2 * v[i] + (1 - s.beta2) * grad * grad;
    p[i] -= s.lr * (mi * correct1) / (sqrtf(vi * correct2) + s.eps);
}
__global__ void adam_step_powf(float *p, float *m, float *v, const float *g, AdamState s, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float grad = g[i];
    float mi = m[i] = s.beta1 * m[i] + (1 - s.beta1) * grad;
    float vi = v[i] = s.beta2 * v[i] + (1 - s.beta2) * grad * grad;
    float mhat = mi / (1 - powf(s.beta1, s.step));
    float vhat = vi / (1 - powf(s.beta2, s.step));
    p[i] -= s.lr * mhat / (sqrtf(vhat) + s.eps);
}

Study adam("adam_pow_per_thread", "models", 1 << 24, "a step of Adam on float parameters",
    "every thread computes the two bias corrections by double-precision powers, though they depend on the step alone",
    {{"host", "corrections computed before the launch and passed as arguments", {"double_precision", "expensive_math"}},
        {"once_a_block", "one thread a block computes them and shares them", {"double_precision", "expensive_math"}},
        {"powf", "powers in float, still in every thread", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        float *p = b.changed(b.random<float>(n), n), *m = b.changed(b.random<float>(n), n),
              *v = b.changed(b.random<float>(n, 0, 1), n), *g = b.random<float>(n);
        AdamState s = {1e-3f, 0.9f, 0.999f, 1e-8f, 100};
        float c1 = 1 / (1 - pow(0.9f, 100)), c2 = 1 / (1 - pow(0.999f, 100));
        b.tolerance = 1e-3;
        return {{"flawed", launch(adam_step, blocks(n, 256), 256, 0, p, m, v, g, s, n)},
            {"host", launch(adam_step_host, blocks(n, 256), 256, 0, p, m, v, g, s, c1, c2, n)},
            {"once_a_block", launch(adam_step_block, blocks(n, 256), 256, 0, p, m, v, g, s, n)},
            {"powf", launch(adam_step_powf, blocks(n, 256), 256, 0, p, m, v, g, s, n)}};
    });

// --- dropout with a byte mask ---

__global__ void dropout(const __half *in, __half *out, unsigned char *mask, unsigned seed, float keep, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool kept = pairs::hash(seed ^ i) < keep * 4294967040.f;
    mask[i] = kept;
    out[i] = kept ? __float2half(__half2float(in[i]) / keep) : __half(0.f);
}

template <int N>
struct alignas(N * 2) Halves {
    __half h[N];
};
template <int N>
struct alignas(N) Bytes {
    unsigned char b[N];
};

template <int N>
__global__ void dropout_wide(
    const Halves<N> *in, Halves<N> *out, Bytes<N> *mask, unsigned seed, float keep, float scale, int groups) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    Halves<N> v = in[g];
    Bytes<N> m;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        m.b[k] = pairs::hash(seed ^ (g * N + k)) < keep * 4294967040.f;
        v.h[k] = m.b[k] ? __float2half(__half2float(v.h[k]) * scale) : __half(0.f);
    }
    out[g] = v;
    mask[g] = m;
}

Study dropouts("dropout_byte_mask", "models", 1 << 26, "dropout of half values with a byte mask",
    "one value a thread: accesses of two bytes and of one",
    {{"four", "four values a thread: 8-byte and 4-byte accesses", {"narrow_access"}},
        {"eight", "eight values a thread: 16-byte and 8-byte accesses", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *in = b.random<__half>(n), *out = b.output<__half>(n);
        auto *mask = b.output<unsigned char>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(dropout, blocks(n, 256), 256, 0, in, out, mask, 7u, 0.9f, n)},
            {"four", launch(dropout_wide<4>, blocks(n / 4, 256), 256, 0, (Halves<4> *)in, (Halves<4> *)out,
                         (Bytes<4> *)mask, 7u, 0.9f, 1 / 0.9f, n / 4)},
            {"eight", launch(dropout_wide<8>, blocks(n / 8, 256), 256, 0, (Halves<8> *)in, (Halves<8> *)out,
                          (Bytes<8> *)mask, 7u, 0.9f, 1 / 0.9f, n / 8)}};
    });

// --- group norm, the element-wise half of it ---

__global__ void group_norm_apply(const float *x, const float *mean, const float *rstd, const float *gamma,
    const float *beta, float *y, int n, int C, int HW, int groups) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int b = i / (C * HW);
        int c = (i / HW) % C;
        int g = c / (C / groups);
        y[i] = (x[i] - mean[b * groups + g]) * rstd[b * groups + g] * gamma[c] + beta[c];
    }
}
__global__ void group_norm_planes(const float *__restrict__ x, const float *__restrict__ mean,
    const float *__restrict__ rstd, const float *__restrict__ gamma, const float *__restrict__ beta,
    float *__restrict__ y, int C, int HW, int per_group, int groups) {
    int c = blockIdx.y, b = blockIdx.z, g = c / per_group;
    float scale = rstd[b * groups + g] * gamma[c], shift = beta[c] - mean[b * groups + g] * scale;
    size_t plane = (size_t(b) * C + c) * HW;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < HW; i += gridDim.x * blockDim.x)
        y[plane + i] = x[plane + i] * scale + shift;
}
__global__ void group_norm_four(const float4 *x, const float *mean, const float *rstd, const float *gamma,
    const float *beta, float4 *y, int n4, int C, int HW4, int groups) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        int b = i / (C * HW4);
        int c = (i / HW4) % C;
        int g = c / (C / groups);
        float scale = rstd[b * groups + g] * gamma[c], shift = beta[c] - mean[b * groups + g] * scale;
        float4 v = x[i];
        y[i] = {v.x * scale + shift, v.y * scale + shift, v.z * scale + shift, v.w * scale + shift};
    }
}

Study group_norm("group_norm_divisions", "models", 32, "the normalising half of group norm, 320 channels of 64 x 64",
    "sample, channel and group of an element by divisions with runtime numbers, for every element",
    {{"planes", "grid of channels and samples: coordinates from the block, scale and shift once a block",
         {"integer_arithmetic"}},
        {"four", "four values a thread: one set of divisions for the four", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long batch) -> Sides {
        int C = 320, HW = 4096, groups = 32;
        long n = batch * C * HW;
        float *x = b.random<float>(n), *mean = b.random<float>(batch * groups), *rstd = b.random<float>(batch * groups),
              *gamma = b.random<float>(C), *beta = b.random<float>(C), *y = b.output<float>(n);
        return {{"flawed", launch(group_norm_apply, 132 * 8, 256, 0, x, mean, rstd, gamma, beta, y, n, C, HW, groups)},
            {"planes", launch(group_norm_planes, dim3(4, C, batch), 256, 0, x, mean, rstd, gamma, beta, y, C, HW,
                           C / groups, groups)},
            {"four", launch(group_norm_four, 132 * 8, 256, 0, (float4 *)x, mean, rstd, gamma, beta, (float4 *)y, n / 4,
                         C, HW / 4, groups)}};
    });

// --- quantising activations to int8, a scale a row ---

__global__ void quantise_rows(const float *x, signed char *q, float *scales, int cols) {
    __shared__ float part[32];
    const float *row = x + (size_t)blockIdx.x * cols;
    float top = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) top = fmaxf(top, fabsf(row[c]));
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; w++) top = fmaxf(top, part[w]);
    float scale = top / 127.f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        q[(size_t)blockIdx.x * cols + c] = (signed char)rintf(row[c] / scale);
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}
template <bool Kept>
__global__ void __launch_bounds__(256) quantise_rows_4(const float4 *x, char4 *q, float *scales) {
    constexpr int PER = 4;  // 256 threads, rows of 4096
    __shared__ float part[8];
    const float4 *row = x + (size_t)blockIdx.x * 1024;
    float4 v[PER];
    float top = 0;
#pragma unroll
    for (int k = 0; k < PER; k++) {
        v[k] = row[threadIdx.x + 256 * k];
        top = fmaxf(fmaxf(fmaxf(top, fabsf(v[k].x)), fabsf(v[k].y)), fmaxf(fabsf(v[k].z), fabsf(v[k].w)));
    }
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < 8; w++) top = fmaxf(top, part[w]);
    float scale = top / 127.f, inverse = 127.f / top;
#pragma unroll
    for (int k = 0; k < PER; k++) {
        float4 f = Kept ? v[k] : __ldcg(&row[threadIdx.x + 256 * k]);
        q[(size_t)blockIdx.x * 1024 + threadIdx.x + 256 * k] = make_char4(
            rintf(f.x * inverse), rintf(f.y * inverse), rintf(f.z * inverse), rintf(f.w * inverse));
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}

Study quantise("quantise_int8_bytes", "models", 32768, "int8 quantisation of rows of 4096 floats, a scale a row",
    "one value an access: four-byte loads and one-byte stores, a division a value, the row read twice",
    {{"four", "four values an access and a product with the reciprocal, the row still read twice",
         {"narrow_access", "expensive_math"}},
        {"four_kept", "the same, and the row kept in registers between the passes",
            {"narrow_access", "redundant_loads", "expensive_math"}}},
    [](Buffers &b, long rows) -> Sides {
        float *x = b.random<float>(rows * 4096), *scales = b.output<float>(rows);
        auto *q = b.output<signed char>(rows * 4096);
        b.tolerance = 0.01;  // one step of 127, where a quotient lies between two
        return {{"flawed", launch(quantise_rows, rows, 256, 0, x, q, scales, 4096)},
            {"four", launch(quantise_rows_4<false>, rows, 256, 0, (float4 *)x, (char4 *)q, scales)},
            {"four_kept", launch(quantise_rows_4<true>, rows, 256, 0, (float4 *)x, (char4 *)q, scales)}};
    });

// --- 4-bit weights to half ---

__global__ void dequantise_4bit(const unsigned char *packed, const float *scale, const float *zero, __half *out,
    int rows, int cols, int group) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    int nibble = (packed[i / 2] >> (i % 2 * 4)) & 15;
    int g = i / group;
    out[i] = __float2half((nibble - zero[g]) * scale[g]);
}
__global__ void dequantise_pairs(
    const unsigned char *packed, const float *scale, const float *zero, __half2 *out, int n2, int group2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n2) return;
    unsigned byte = packed[i];
    float s = scale[i / group2], z = zero[i / group2];
    out[i] = __floats2half2_rn((float(byte & 15) - z) * s, (float(byte >> 4) - z) * s);
}
__global__ void dequantise_words(
    const unsigned *packed, const float *scale, const float *zero, uint4 *out, int n8, int group8) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n8) return;
    unsigned word = packed[i];
    float s = scale[i / group8], z = zero[i / group8];
    union {
        __half2 h[4];
        uint4 u;
    } o;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        o.h[k] = __floats2half2_rn((float(word & 15) - z) * s, (float(word >> 4 & 15) - z) * s);
        word >>= 8;
    }
    out[i] = o.u;
}

Study dequantise("dequantise_4bit_nibbles", "models", 16384, "4-bit weights to half, a scale and zero for 128 weights",
    "a thread a weight: one-byte loads of which half is used, two-byte stores",
    {{"pairs", "a thread a byte: two weights, a 4-byte store", {"narrow_access"}},
        {"words", "a thread a 32-bit word: eight weights, a 16-byte store", {"narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        long cols = 4096, n = rows * cols;
        auto *packed = b.random<unsigned char>(n / 2, 0, 256);
        float *scale = b.random<float>(n / 128), *zero = b.random<float>(n / 128, 0, 15);
        auto *out = b.output<__half>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(dequantise_4bit, blocks(n, 256), 256, 0, packed, scale, zero, out, rows, cols, 128)},
            {"pairs", launch(dequantise_pairs, blocks(n / 2, 256), 256, 0, packed, scale, zero, (__half2 *)out, n / 2, 64)},
            {"words", launch(dequantise_words, blocks(n / 8, 256), 256, 0, (unsigned *)packed, scale, zero,
                          (uint4 *)out, n / 8, 16)}};
    });

// --- tokens an expert gets ---

__global__ void count_experts(const int *expert, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&count[expert[i]], 1);
}
__global__ void count_experts_shared(const int *expert, int *count, int n) {
    __shared__ int local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[expert[i]], 1);
    __syncthreads();
    if (threadIdx.x < 64 && local[threadIdx.x]) atomicAdd(&count[threadIdx.x], local[threadIdx.x]);
}
__global__ void count_experts_match(const int *expert, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int e = expert[i];
    unsigned same = __match_any_sync(__activemask(), e);
    if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&count[e], __popc(same));
}

Study experts("moe_expert_counts", "models", 1 << 22, "how many tokens are routed to each of 64 experts, few of them popular",
    "an atomic on one of 64 counters in global memory for every token",
    {{"shared", "counters in shared memory, added to the global ones once a block", {"global_atomics"}},
        {"warp", "lanes with the same expert combined (match) before the atomic", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> chosen(n);
        for (long i = 0; i < n; ++i) {
            double u = pairs::hash(i) / 4294967296.0;
            chosen[i] = int(u * u * 64);
        }
        int *expert = b.copy(chosen), *count = b.output<int>(64, true);
        b.tolerance = 0;
        return {{"flawed", launch(count_experts, blocks(n, 256), 256, 0, expert, count, n)},
            {"shared", launch(count_experts_shared, 132 * 4, 256, 0, expert, count, n)},
            {"warp", launch(count_experts_match, blocks(n, 256), 256, 0, expert, count, n)}};
    });

}  // namespace
