// Training: optimisers, norms, losses, gradients of embeddings. One flaw a kernel, two fixes or more.
#include "../pairs/pair.cuh"

namespace {

// --- squared norms of parameters and updates, as LAMB wants them ---

__global__ void __launch_bounds__(256) lamb_norms(const float *p, const float *u, float *norms, int each) {
    __shared__ float sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0.f;
    __syncthreads();
    for (int i = threadIdx.x; i < each; i += 256) {
        float a = p[size_t(blockIdx.x) * each + i], c = u[size_t(blockIdx.x) * each + i];
        atomicAdd(&sums[0], a * a);
        atomicAdd(&sums[1], c * c);
    }
    __syncthreads();
    if (threadIdx.x < 2) norms[2 * blockIdx.x + threadIdx.x] = sums[threadIdx.x];
}
__global__ void __launch_bounds__(256) lamb_norms_private(const float *p, const float *u, float *norms, int each) {
    __shared__ float sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0.f;
    __syncthreads();
    float s = 0.f, q = 0.f;
    for (int i = threadIdx.x; i < each; i += 256) {
        float a = p[size_t(blockIdx.x) * each + i], c = u[size_t(blockIdx.x) * each + i];
        s += a * a, q += c * c;
    }
    atomicAdd(&sums[0], s);
    atomicAdd(&sums[1], q);
    __syncthreads();
    if (threadIdx.x < 2) norms[2 * blockIdx.x + threadIdx.x] = sums[threadIdx.x];
}
__global__ void __launch_bounds__(256) lamb_norms_shuffles(const float4 *__restrict__ p, const float4 *__restrict__ u, float *__restrict__ norms, int quads) {
    __shared__ float part[2][8];
    float s = 0.f, q = 0.f;
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += 256) {
        float4 a = p[size_t(blockIdx.x) * quads + i], c = u[size_t(blockIdx.x) * quads + i];
        s += a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w, q += c.x * c.x + c.y * c.y + c.z * c.z + c.w * c.w;
    }
    s = warp_sum(s), q = warp_sum(q);
    if (threadIdx.x % 32 == 0) part[0][threadIdx.x / 32] = s, part[1][threadIdx.x / 32] = q;
    __syncthreads();
    if (threadIdx.x < 2) {
        float sum = 0.f;
        for (int w = 0; w < 8; ++w) sum += part[threadIdx.x][w];
        norms[2 * blockIdx.x + threadIdx.x] = sum;
    }
}

Study lambs("lamb_norms_shared_atomics", "models", 4096, "squared norms of 4096 chunks of 4096 parameters and of their updates",
    "every square is added to one of two words of shared memory by an atomic",
    {{"private", "sums in registers, one atomic a thread and word", {"shared_atomics"}}, {"shuffles", "sums in registers and by shuffles, 16 bytes a load", {"shared_atomics", "narrow_access"}}},
    [](Buffers &b, long chunks) -> Sides {
        int each = 4096;
        float *p = b.random<float>(chunks * each), *u = b.random<float>(chunks * each), *norms = b.output<float>(2 * chunks);
        b.tolerance = 1e-3;
        return {{"flawed", launch(lamb_norms, chunks, 256, 0, p, u, norms, each)}, {"private", launch(lamb_norms_private, chunks, 256, 0, p, u, norms, each)},
            {"shuffles", launch(lamb_norms_shuffles, chunks, 256, 0, (float4 *)p, (float4 *)u, norms, each / 4)}};
    });

// --- one step of SGD over many tensors lying one after the other ---

__global__ void sgd_tensors(float *p, const float *g, const int *starts, const float *rates, int tensors, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int t = 0;
    while (t + 1 < tensors && starts[t + 1] <= i) t++;
    p[i] -= rates[t] * g[i];
}
__global__ void sgd_tensors_bisect(float *p, const float *g, const int *starts, const float *rates, int tensors, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int low = 0, high = tensors;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (starts[middle] <= i) low = middle;
        else high = middle;
    }
    p[i] -= rates[low] * g[i];
}
__global__ void sgd_tensors_chunks(float *p, const float *g, const int *tensor_of_chunk, const float *rates, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] -= rates[tensor_of_chunk[blockIdx.x]] * g[i];
}

Study sgds("sgd_tensor_list_searched", "models", 1 << 24, "a step of SGD over 16 million parameters of 160 tensors, each with its own rate",
    "every parameter looks its tensor up from the start of the list",
    {{"bisect", "the list is bisected", {"redundant_loads", "memory_latency"}}, {"chunks", "chunks of 256 with a table of their tensors", {"redundant_loads", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        int tensors = 160;
        std::vector<int> starts(tensors), of(n / 256);
        for (int t = 0; t < tensors; ++t) starts[t] = int(double(n / 256) * t * t / (tensors * tensors)) * 256;
        for (long c = 0, t = 0; c < n / 256; ++c) {
            while (t + 1 < tensors && starts[t + 1] <= c * 256) ++t;
            of[c] = t;
        }
        int *s = b.copy(starts), *chunk = b.copy(of);
        float *initial = b.random<float>(n), *p = b.changed(initial, n), *g = b.random<float>(n), *rates = b.random<float>(tensors, 0.01, 0.1);
        return {{"flawed", launch(sgd_tensors, n / 256, 256, 0, p, g, s, rates, tensors, n)}, {"bisect", launch(sgd_tensors_bisect, n / 256, 256, 0, p, g, s, rates, tensors, n)},
            {"chunks", launch(sgd_tensors_chunks, n / 256, 256, 0, p, g, chunk, rates, n)}};
    });

// --- gradient of layer norm with respect to its input ---

__global__ void __launch_bounds__(256) norm_grad(const float *x, const float *dy, const float *w, float *dx) {
    __shared__ float a[256], c[256], s[256], q[256];
    constexpr int n = 768;
    int t = threadIdx.x;
    size_t row = size_t(blockIdx.x) * n;
    float sum = 0.f, square = 0.f;
    for (int i = t; i < n; i += 256) sum += x[row + i], square += x[row + i] * x[row + i];
    s[t] = sum, q[t] = square;
    __syncthreads();
    for (int o = 128; o > 0; o /= 2) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
        if (t < o) q[t] += q[t + o];
        __syncthreads();
    }
    float mean = s[0] / n, inv = rsqrtf(q[0] / n - mean * mean + 1e-5f), u = 0.f, v = 0.f;
    for (int i = t; i < n; i += 256) {
        float d = dy[row + i] * w[i];
        u += d, v += d * (x[row + i] - mean) * inv;
    }
    a[t] = u, c[t] = v;
    __syncthreads();
    for (int o = 128; o > 0; o /= 2) {
        if (t < o) a[t] += a[t + o];
        __syncthreads();
        if (t < o) c[t] += c[t + o];
        __syncthreads();
    }
    for (int i = t; i < n; i += 256) dx[row + i] = inv * (dy[row + i] * w[i] - (a[0] + (x[row + i] - mean) * inv * c[0]) / n);
}
__global__ void __launch_bounds__(256) norm_grad_shuffles(const float *x, const float *dy, const float *w, float *dx) {
    __shared__ float part[4][8];
    constexpr int n = 768;
    int t = threadIdx.x, warp = t / 32;
    size_t row = size_t(blockIdx.x) * n;
    float sum = 0.f, square = 0.f;
    for (int i = t; i < n; i += 256) sum += x[row + i], square += x[row + i] * x[row + i];
    sum = warp_sum(sum), square = warp_sum(square);
    if (t % 32 == 0) part[0][warp] = sum, part[1][warp] = square;
    __syncthreads();
    sum = square = 0.f;
    for (int k = 0; k < 8; ++k) sum += part[0][k], square += part[1][k];
    float mean = sum / n, inv = rsqrtf(square / n - mean * mean + 1e-5f), u = 0.f, v = 0.f;
    for (int i = t; i < n; i += 256) {
        float d = dy[row + i] * w[i];
        u += d, v += d * (x[row + i] - mean) * inv;
    }
    u = warp_sum(u), v = warp_sum(v);
    if (t % 32 == 0) part[2][warp] = u, part[3][warp] = v;
    __syncthreads();
    u = v = 0.f;
    for (int k = 0; k < 8; ++k) u += part[2][k], v += part[3][k];
    for (int i = t; i < n; i += 256) dx[row + i] = inv * (dy[row + i] * w[i] - (u + (x[row + i] - mean) * inv * v) / n);
}
__global__ void __launch_bounds__(256) norm_grad_warp(const float4 *__restrict__ x, const float4 *__restrict__ dy, const float4 *__restrict__ w, float4 *__restrict__ dx) {
    int lane = threadIdx.x % 32;
    size_t row = size_t(blockIdx.x * 8 + threadIdx.x / 32) * 192;
    float4 a[6], d[6];
    float sum = 0.f, square = 0.f, u = 0.f, v = 0.f;
#pragma unroll
    for (int k = 0; k < 6; ++k) {
        a[k] = x[row + lane + 32 * k];
        float4 g = dy[row + lane + 32 * k], f = w[lane + 32 * k];
        d[k] = {g.x * f.x, g.y * f.y, g.z * f.z, g.w * f.w};
        sum += a[k].x + a[k].y + a[k].z + a[k].w;
        square += a[k].x * a[k].x + a[k].y * a[k].y + a[k].z * a[k].z + a[k].w * a[k].w;
        u += d[k].x + d[k].y + d[k].z + d[k].w;
    }
    float mean = warp_sum(sum) / 768, inv = rsqrtf(warp_sum(square) / 768 - mean * mean + 1e-5f);
#pragma unroll
    for (int k = 0; k < 6; ++k) {
        a[k] = {(a[k].x - mean) * inv, (a[k].y - mean) * inv, (a[k].z - mean) * inv, (a[k].w - mean) * inv};
        v += d[k].x * a[k].x + d[k].y * a[k].y + d[k].z * a[k].z + d[k].w * a[k].w;
    }
    u = warp_sum(u) / 768, v = warp_sum(v) / 768;
#pragma unroll
    for (int k = 0; k < 6; ++k)
        dx[row + lane + 32 * k] = {inv * (d[k].x - u - a[k].x * v), inv * (d[k].y - u - a[k].y * v), inv * (d[k].z - u - a[k].z * v), inv * (d[k].w - u - a[k].w * v)};
}

Study norm_grads("layer_norm_input_grad_trees", "models", 65536, "gradient of layer norm with respect to its input, 65536 rows of 768 floats",
    "four sums by trees in shared memory with 34 barriers",
    {{"shuffles", "sums by shuffles, two barriers", {"barriers"}}, {"warp", "a warp a row kept in registers, no barrier", {"barriers", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        float *x = b.random<float>(rows * 768), *dy = b.random<float>(rows * 768), *w = b.random<float>(768), *dx = b.output<float>(rows * 768);
        b.tolerance = 1e-3;
        return {{"flawed", launch(norm_grad, rows, 256, 0, x, dy, w, dx)}, {"shuffles", launch(norm_grad_shuffles, rows, 256, 0, x, dy, w, dx)},
            {"warp", launch(norm_grad_warp, rows / 8, 256, 0, (float4 *)x, (float4 *)dy, (float4 *)w, (float4 *)dx)}};
    });

// --- batch norm while predicting ---

__global__ void batch_norm(const float *x, const float *mean, const float *variance, const float *g, const float *beta, float *y, int channels, int hw, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = (i / hw) % channels;
    y[i] = fmaxf((x[i] - mean[c]) / sqrtf(variance[c] + 1e-5f) * g[c] + beta[c], 0.f);
}
__global__ void batch_norm_planes(const float *__restrict__ x, const float *mean, const float *variance, const float *g, const float *beta, float *__restrict__ y, int channels, int hw) {
    int c = blockIdx.x % channels;
    float scale = g[c] / sqrtf(variance[c] + 1e-5f), shift = beta[c] - mean[c] * scale;
    size_t at = size_t(blockIdx.x) * hw;
    for (int i = threadIdx.x; i < hw; i += blockDim.x) y[at + i] = fmaxf(x[at + i] * scale + shift, 0.f);
}
__global__ void batch_norm_folded(const float4 *__restrict__ x, const float2 *__restrict__ folded, float4 *__restrict__ y, int quads) {
    float2 f = folded[blockIdx.y];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    size_t at = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * quads + i;
    float4 v = x[at];
    y[at] = {fmaxf(v.x * f.x + f.y, 0.f), fmaxf(v.y * f.x + f.y, 0.f), fmaxf(v.z * f.x + f.y, 0.f), fmaxf(v.w * f.x + f.y, 0.f)};
}

Study batch_norms("batch_norm_root_each_element", "models", 32, "batch norm with known statistics and a rectifier, 32 images of 256 channels of 56 x 56 floats",
    "each element divides its index twice, loads four values of its channel and takes a root and a quotient",
    {{"planes", "a block a plane: scale and shift once a block", {"expensive_math", "integer_arithmetic", "redundant_loads"}},
        {"folded", "scale and shift from a table, channel from the grid, 16 bytes a thread", {"expensive_math", "integer_arithmetic", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long images) -> Sides {
        int channels = 256, hw = 56 * 56, n = images * channels * hw;
        std::vector<float> mean(channels), variance(channels), g(channels), beta(channels), folded(2 * channels);
        for (int c = 0; c < channels; ++c) {
            mean[c] = c % 7 * 0.1f - 0.3f, variance[c] = 0.2f + c % 5 * 0.1f, g[c] = 0.5f + c % 3 * 0.25f, beta[c] = c % 11 * 0.05f;
            folded[2 * c] = g[c] / std::sqrt(variance[c] + 1e-5f), folded[2 * c + 1] = beta[c] - mean[c] * folded[2 * c];
        }
        float *m = b.copy(mean), *v = b.copy(variance), *gain = b.copy(g), *offset = b.copy(beta), *table = b.copy(folded);
        float *x = b.random<float>(n), *y = b.output<float>(n);
        return {{"flawed", launch(batch_norm, blocks(n, 256), 256, 0, x, m, v, gain, offset, y, channels, hw, n)},
            {"planes", launch(batch_norm_planes, images * channels, 256, 0, x, m, v, gain, offset, y, channels, hw)},
            {"folded", launch(batch_norm_folded, dim3(blocks(hw / 4, 256), channels, images), 256, 0, (float4 *)x, (float2 *)table, (float4 *)y, hw / 4)}};
    });

// --- cosine similarity of all pairs ---

__global__ void cosines(const float *x, const float *y, float *out, int n, int dim) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    float dot = 0.f, a = 0.f, c = 0.f;
    for (int d = 0; d < dim; d++) {
        dot += x[d * n + i] * y[d * n + j];
        a += x[d * n + i] * x[d * n + i];
        c += y[d * n + j] * y[d * n + j];
    }
    out[i * n + j] = dot / sqrtf(a * c);
}
template <int EACH>
__global__ void __launch_bounds__(256) cosines_block(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n, int dim) {
    int tx = threadIdx.x, ty = threadIdx.y, i = blockIdx.y * 8 * EACH + ty * EACH, j = blockIdx.x * 32 * EACH + tx * EACH;
    float dot[EACH][EACH] = {}, a[EACH] = {}, c[EACH] = {};
    for (int d = 0; d < dim; ++d) {
        float u[EACH], v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) u[k] = x[d * n + i + k], v[k] = y[d * n + j + k];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            a[k] += u[k] * u[k], c[k] += v[k] * v[k];
#pragma unroll
            for (int m = 0; m < EACH; ++m) dot[k][m] += u[k] * v[m];
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k)
#pragma unroll
        for (int m = 0; m < EACH; ++m) out[size_t(i + k) * n + j + m] = dot[k][m] * rsqrtf(a[k] * c[m]);
}
__global__ void __launch_bounds__(256) cosines_shared(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n, int dim) {
    __shared__ float4 xs[16][16], ys[16][16];
    int t = threadIdx.y * 32 + threadIdx.x, tx = t % 16, ty = t / 16;
    float dot[4][4] = {}, a[4] = {}, c[4] = {};
    for (int first = 0; first < dim; first += 16) {
        xs[ty][tx] = *reinterpret_cast<const float4 *>(x + size_t(first + ty) * n + blockIdx.y * 64 + 4 * tx);
        ys[ty][tx] = *reinterpret_cast<const float4 *>(y + size_t(first + ty) * n + blockIdx.x * 64 + 4 * tx);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; ++d) {
            float4 p = xs[d][ty], q = ys[d][tx];
            float u[4] = {p.x, p.y, p.z, p.w}, v[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                a[k] += u[k] * u[k], c[k] += v[k] * v[k];
#pragma unroll
                for (int m = 0; m < 4; ++m) dot[k][m] += u[k] * v[m];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float4 r = {dot[k][0] * rsqrtf(a[k] * c[0]), dot[k][1] * rsqrtf(a[k] * c[1]), dot[k][2] * rsqrtf(a[k] * c[2]), dot[k][3] * rsqrtf(a[k] * c[3])};
        *reinterpret_cast<float4 *>(out + size_t(blockIdx.y * 64 + ty * 4 + k) * n + blockIdx.x * 64 + 4 * tx) = r;
    }
}

Study cosine_pairs("cosine_norms_each_pair", "models", 2048, "cosines between all pairs of two sets of 2048 vectors of 256 floats, as contrastive losses want them",
    "a thread a pair: both norms anew for each pair, two loads for three products",
    {{"registers", "two by two pairs a thread, norms shared among them", {"redundant_loads"}}, {"shared", "four by four pairs a thread from tiles in shared memory", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int dim = 256;
        float *x = b.random<float>(n * dim), *y = b.random<float>(n * dim), *out = b.output<float>(n * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(cosines, dim3(n / 32, n / 8), dim3(32, 8), 0, x, y, out, n, dim)},
            {"registers", launch(cosines_block<2>, dim3(n / 64, n / 16), dim3(32, 8), 0, x, y, out, n, dim)},
            {"shared", launch(cosines_shared, dim3(n / 64, n / 64), dim3(32, 8), 0, x, y, out, n, dim)}};
    });

// --- gradient of an embedding, occurrences sorted by token ---

template <bool PIECES>
__global__ void __launch_bounds__(128) embedding_segments(const int2 *__restrict__ segments, const int *__restrict__ token, const int *__restrict__ order, const float *__restrict__ dy, float *grad) {
    constexpr int dim = 128;
    int2 s = segments[blockIdx.x];
    float sum = 0.f;
    for (int i = s.x; i < s.y; ++i) sum += dy[size_t(order[i]) * dim + threadIdx.x];
    float *to = grad + size_t(token[blockIdx.x]) * dim + threadIdx.x;
    if (PIECES) atomicAdd(to, sum);
    else *to = sum;
}
__global__ void __launch_bounds__(1024) embedding_segments_eight(const int2 *__restrict__ segments, const int *__restrict__ token, const int *__restrict__ order, const float *__restrict__ dy, float *grad) {
    __shared__ float part[8][128];
    constexpr int dim = 128;
    int c = threadIdx.x % 128, w = threadIdx.x / 128;
    int2 s = segments[blockIdx.x];
    float sum = 0.f;
#pragma unroll 4
    for (int i = s.x + w; i < s.y; i += 8) sum += dy[size_t(order[i]) * dim + c];
    part[w][c] = sum;
    __syncthreads();
    if (w) return;
    for (int k = 1; k < 8; ++k) sum += part[k][c];
    grad[size_t(token[blockIdx.x]) * dim + c] = sum;
}

Study embedding_grads("embedding_grad_hot_segment", "models", 1 << 18, "gradient of an embedding of 128 floats, 262144 occurrences of 4096 tokens, sorted by token, the first tokens much more often",
    "a block a token: the commonest token's block works long after all others are done",
    {{"pieces", "segments cut into pieces of 64, added by atomics", {"workload_imbalance"}}, {"eight", "eight times the threads a token, four rows in flight each", {"workload_imbalance", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        int tokens = 4096;
        std::vector<double> share(tokens);
        double sum = 0.0;
        for (int t = 0; t < tokens; ++t) sum += share[t] = 1.0 / (t + 20);
        std::vector<int> segments, pieces, whose, whole, order(n);
        long at = 0;
        for (int t = 0; t < tokens; ++t) {
            long end = t + 1 == tokens ? n : std::min(n, at + 1 + long(share[t] / sum * (n - tokens)));
            segments.push_back(at), segments.push_back(end), whole.push_back(t);
            for (; at < end; at += 64) pieces.push_back(at), pieces.push_back(std::min(at + 64, end)), whose.push_back(t);
            at = end;
        }
        for (long i = 0; i < n; ++i) order[i] = (i * 40503 + 7) % n;
        int *s = b.copy(segments), *p = b.copy(pieces), *w = b.copy(whose), *all = b.copy(whole), *o = b.copy(order);
        float *dy = b.random<float>(n * 128, 0, 1), *grad = b.output<float>(tokens * 128, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(embedding_segments<false>, tokens, 128, 0, (int2 *)s, all, o, dy, grad)},
            {"pieces", launch(embedding_segments<true>, whose.size(), 128, 0, (int2 *)p, w, o, dy, grad)},
            {"eight", launch(embedding_segments_eight, tokens, 1024, 0, (int2 *)s, all, o, dy, grad)}};
    });

// --- dropout's mask drawn again while the gradient is computed ---

__device__ uint4 philox(uint2 key, unsigned counter) {
    uint4 c{counter, 0u, 0x1234567u, 0u};
#pragma unroll
    for (int r = 0; r < 10; ++r) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = {h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0};
        key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
    }
    return c;
}
__global__ void dropout_grad(const __half *dy, __half *dx, unsigned threshold, float scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 r = philox({42u, 7u}, i / 4);
    unsigned mine = i % 4 == 0 ? r.x : i % 4 == 1 ? r.y : i % 4 == 2 ? r.z : r.w;
    dx[i] = mine < threshold ? __float2half(__half2float(dy[i]) * scale) : __half(0.f);
}
__global__ void dropout_grad_four(const uint2 *__restrict__ dy, uint2 *__restrict__ dx, unsigned threshold, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 r = philox({42u, 7u}, i);
    uint2 raw = dy[i];
    __half2 *h = reinterpret_cast<__half2 *>(&raw);
    float2 a = __half22float2(h[0]), c = __half22float2(h[1]);
    h[0] = __floats2half2_rn(r.x < threshold ? a.x * scale : 0.f, r.y < threshold ? a.y * scale : 0.f);
    h[1] = __floats2half2_rn(r.z < threshold ? c.x * scale : 0.f, r.w < threshold ? c.y * scale : 0.f);
    dx[i] = raw;
}
__global__ void dropout_grad_exchange(const __half *__restrict__ dy, __half *__restrict__ dx, unsigned threshold, float scale) {
    int lane = threadIdx.x % 32, first = (blockIdx.x * blockDim.x + threadIdx.x - lane) * 4;
    uint4 r = philox({42u, 7u}, first / 4 + lane);
    unsigned keep = (r.x < threshold) | (r.y < threshold) << 1 | (r.z < threshold) << 2 | (r.w < threshold) << 3;
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // element first + 32 k + lane has the number of lane 8 k + lane / 4
        unsigned bits = __shfl_sync(~0u, keep, 8 * k + lane / 4);
        int i = first + 32 * k + lane;
        dx[i] = bits >> lane % 4 & 1 ? __float2half(__half2float(dy[i]) * scale) : __half(0.f);
    }
}

Study dropouts("dropout_grad_one_of_four_numbers", "models", 1 << 26, "gradient of dropout over 64 million half values, the mask drawn again by Philox",
    "each element runs ten rounds for four numbers and uses one",
    {{"four", "four neighbouring elements a thread", {"integer_arithmetic", "narrow_access"}}, {"exchange", "numbers drawn once a warp and handed to their lanes by shuffles", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        auto *dy = b.random<__half>(n), *dx = b.output<__half>(n);
        return {{"flawed", launch(dropout_grad, n / 256, 256, 0, dy, dx, 3865470566u, 1.1111f, n)},
            {"four", launch(dropout_grad_four, n / 1024, 256, 0, (uint2 *)dy, (uint2 *)dx, 3865470566u, 1.1111f)},
            {"exchange", launch(dropout_grad_exchange, n / 1024, 256, 0, dy, dx, 3865470566u, 1.1111f)}};
    });

// --- gradient of GELU ---

__global__ void gelu_grad(const float *x, const float *dy, float *dx, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    float inner = 0.79788456f * (v + 0.044715f * powf(v, 3.f));
    float left = 0.5f * (1.f + tanhf(inner));
    float right = 0.5f * v * (1.f - powf(tanhf(inner), 2.f)) * 0.79788456f * (1.f + 3.f * 0.044715f * powf(v, 2.f));
    dx[i] = dy[i] * (left + right);
}
__global__ void gelu_grad_products(const float *__restrict__ x, const float *__restrict__ dy, float *__restrict__ dx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i], t = tanhf(0.79788456f * v * (1.f + 0.044715f * v * v));
    dx[i] = dy[i] * (0.5f * (1.f + t) + 0.39894228f * v * (1.f - t * t) * (1.f + 0.134145f * v * v));
}
__global__ void gelu_grad_sigmoid(const float4 *__restrict__ x, const float4 *__restrict__ dy, float4 *__restrict__ dx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto one = [](float v, float g) {  // (1 + tanh(u)) / 2 is the logistic function of 2 u
        float s = __fdividef(1.f, 1.f + __expf(-1.59576912f * v * (1.f + 0.044715f * v * v)));
        return g * (s + 1.59576912f * v * s * (1.f - s) * (1.f + 0.134145f * v * v));
    };
    float4 a = x[i], g = dy[i];
    dx[i] = {one(a.x, g.x), one(a.y, g.y), one(a.z, g.z), one(a.w, g.w)};
}

Study gelu_grads("gelu_grad_powers", "models", 1 << 25, "gradient of GELU in its tanh form over 32 million floats",
    "squares and cubes by powf",
    {{"products", "products instead of powf", {"expensive_math"}}, {"sigmoid", "the logistic function by fast exponentials, 16 bytes an access", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n, -3, 3), *dy = b.random<float>(n), *dx = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gelu_grad, n / 256, 256, 0, x, dy, dx, n)}, {"products", launch(gelu_grad_products, n / 256, 256, 0, x, dy, dx)},
            {"sigmoid", launch(gelu_grad_sigmoid, n / 1024, 256, 0, (float4 *)x, (float4 *)dy, (float4 *)dx)}};
    });

// --- CTC: probabilities of prefixes ---

__device__ float log_add(float a, float b, float c) {
    float top = fmaxf(fmaxf(a, b), c);
    return top + __logf(__expf(a - top) + __expf(b - top) + __expf(c - top));
}
__global__ void __launch_bounds__(128) ctc(const float *logp, const int *labels, float *alpha, int steps, int states, int symbols) {
    int s = threadIdx.x, bat = blockIdx.x;
    const int *l = labels + bat * states;
    float *a = alpha + size_t(bat) * steps * states;
    const float *p = logp + size_t(bat) * steps * symbols;
    bool skip = s >= 2 && l[s] != 0 && l[s] != l[s - 2];
    a[s] = s < 2 ? p[l[s]] : -1e4f;
    __syncthreads();
    for (int t = 1; t < steps; t++) {
        float *now = a + t * states, *last = now - states;
        float one = s >= 1 ? last[s - 1] : -1e4f, two = skip ? last[s - 2] : -1e4f;
        now[s] = log_add(last[s], one, two) + p[t * symbols + l[s]];
        __syncthreads();
    }
}
__global__ void __launch_bounds__(128) ctc_shared(const float *__restrict__ logp, const int *__restrict__ labels, float *__restrict__ alpha, int steps, int states, int symbols) {
    __shared__ float row[2][132];
    int s = threadIdx.x, bat = blockIdx.x;
    const int *l = labels + bat * states;
    int label = l[s];
    float *a = alpha + size_t(bat) * steps * states;
    const float *p = logp + size_t(bat) * steps * symbols;
    bool skip = s >= 2 && label != 0 && label != l[s - 2];
    float mine = s < 2 ? p[label] : -1e4f, next = p[symbols + label];
    if (s < 2) row[0][s] = row[1][s] = -1e4f;
    a[s] = row[0][s + 2] = mine;
    __syncthreads();
    for (int t = 1; t < steps; ++t) {
        float here = next;
        if (t + 1 < steps) next = p[(t + 1) * symbols + label];
        mine = log_add(mine, row[t - 1 & 1][s + 1], skip ? row[t - 1 & 1][s] : -1e4f) + here;
        a[t * states + s] = row[t & 1][s + 2] = mine;
        __syncthreads();
    }
}
__global__ void __launch_bounds__(32) ctc_warp(const float *__restrict__ logp, const int *__restrict__ labels, float *__restrict__ alpha, int steps, int states, int symbols) {
    int lane = threadIdx.x, bat = blockIdx.x;  // a lane has four states
    const int *l = labels + bat * states + 4 * lane;
    float4 *a = reinterpret_cast<float4 *>(alpha + size_t(bat) * steps * states) + lane;
    const float *p = logp + size_t(bat) * steps * symbols;
    int label[4];
    bool skip[4];
    float v[4], next[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) label[k] = l[k];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int s = 4 * lane + k;
        skip[k] = s >= 2 && label[k] != 0 && label[k] != l[k - 2];
        v[k] = s < 2 ? p[label[k]] : -1e4f;
        next[k] = p[symbols + label[k]];
    }
    a[0] = {v[0], v[1], v[2], v[3]};
    for (int t = 1; t < steps; ++t) {
        float here[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            here[k] = next[k];
            if (t + 1 < steps) next[k] = p[(t + 1) * symbols + label[k]];
        }
        float one = __shfl_up_sync(~0u, v[3], 1), two = __shfl_up_sync(~0u, v[2], 1);
        if (lane == 0) one = two = -1e4f;
        float w[4] = {log_add(v[0], one, skip[0] ? two : -1e4f), log_add(v[1], v[0], skip[1] ? one : -1e4f), log_add(v[2], v[1], skip[2] ? v[0] : -1e4f), log_add(v[3], v[2], skip[3] ? v[1] : -1e4f)};
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = w[k] + here[k];
        a[t * (states / 4)] = {v[0], v[1], v[2], v[3]};
    }
}

Study ctcs("ctc_alpha_through_global", "audio", 512, "prefix probabilities of CTC, 264 sequences of 512 steps, 128 states, 64 symbols",
    "each step stores its row, meets a barrier and loads the row again from global memory",
    {{"shared", "the row in shared memory, the next step's symbols loaded ahead", {"memory_latency"}}, {"warp", "a warp a sequence, four states a lane, neighbours by shuffles", {"memory_latency", "barriers"}}},
    [](Buffers &b, long steps) -> Sides {
        int batch = 264, states = 128, symbols = 64;
        std::vector<int> labels(batch * states);
        for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2 ? 1 + hash(i) % (symbols - 1) : 0;
        int *l = b.copy(labels);
        float *p = b.random<float>(batch * steps * symbols, -6, -2), *alpha = b.output<float>(batch * steps * states);
        return {{"flawed", launch(ctc, batch, 128, 0, p, l, alpha, steps, states, symbols)}, {"shared", launch(ctc_shared, batch, 128, 0, p, l, alpha, steps, states, symbols)},
            {"warp", launch(ctc_warp, batch, 32, 0, p, l, alpha, steps, states, symbols)}};
    });

// --- gradients unscaled, infinities noticed ---

__global__ void unscale(float *g, int *found, float scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = g[i];
    atomicOr(found, isfinite(v) ? 1 : 2);
    g[i] = v * scale;
}
__global__ void unscale_rare(float *g, int *found, float scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = g[i];
    int mark = isfinite(v) ? 1 : 2;
    if ((*(volatile int *)found & mark) == 0) atomicOr(found, mark);
    g[i] = v * scale;
}
__global__ void unscale_block(float4 *g, int *found, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = g[i];
    bool fine = isfinite(v.x) && isfinite(v.y) && isfinite(v.z) && isfinite(v.w);
    g[i] = {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
    int marks = __syncthreads_or(!fine) ? 3 : 1;
    if (threadIdx.x == 0) atomicOr(found, marks);
}

Study unscales("unscale_flag_each_element", "models", 1 << 24, "16 million gradients scaled in place, a flag says whether all are finite",
    "every element sets its mark in the one flag by an atomic",
    {{"rare", "the flag is read first and set only where the mark is missing", {"global_atomics"}}, {"block", "a vote of the block, one atomic for it; 16 bytes a thread", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *initial = b.random<float>(n), *g = b.changed(initial, n);
        int *found = b.output<int>(1, true);
        return {{"flawed", launch(unscale, n / 256, 256, 0, g, found, 0.125f, n)}, {"rare", launch(unscale_rare, n / 256, 256, 0, g, found, 0.125f, n)},
            {"block", launch(unscale_block, n / 1024, 256, 0, (float4 *)g, found, 0.125f)}};
    });

// --- a low-rank update added to a layer's output ---

__global__ void low_rank(const float *xa, const float *w, float *y, int dim, int rank) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    for (int r = 0; r < rank; r++) y[row * dim + c] += xa[row * rank + r] * w[r * dim + c];
}
__global__ void low_rank_register(const float *__restrict__ xa, const float *__restrict__ w, float *__restrict__ y, int dim, int rank) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    float sum = y[row * dim + c];
#pragma unroll 8
    for (int r = 0; r < rank; ++r) sum += xa[row * rank + r] * w[r * dim + c];
    y[row * dim + c] = sum;
}
__global__ void low_rank_rows(const float *__restrict__ xa, const float *__restrict__ w, float *__restrict__ y, int dim, int rank) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * 8;
    float sum[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) sum[k] = y[(row + k) * dim + c];
#pragma unroll 4
    for (int r = 0; r < rank; ++r) {
        float v = w[r * dim + c];
#pragma unroll
        for (int k = 0; k < 8; ++k) sum[k] += xa[(row + k) * rank + r] * v;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) y[(row + k) * dim + c] = sum[k];
}

Study low_ranks("low_rank_adds_in_global", "models", 4096, "product of 4096 x 32 and 32 x 4096 floats added to a layer's output",
    "every partial sum is loaded from and stored to global memory",
    {{"register", "the sum in a register, one load and one store", {"redundant_loads"}}, {"rows", "eight rows' sums a thread, each weight loaded once for them", {"redundant_loads"}}},
    [](Buffers &b, long rows) -> Sides {
        int dim = 4096, rank = 32;
        float *xa = b.random<float>(rows * rank), *w = b.random<float>(rank * dim), *initial = b.random<float>(rows * dim), *y = b.changed(initial, rows * dim);
        b.tolerance = 1e-3;
        return {{"flawed", launch(low_rank, dim3(dim / 256, rows), 256, 0, xa, w, y, dim, rank)}, {"register", launch(low_rank_register, dim3(dim / 256, rows), 256, 0, xa, w, y, dim, rank)},
            {"rows", launch(low_rank_rows, dim3(dim / 256, rows / 8), 256, 0, xa, w, y, dim, rank)}};
    });

// --- logarithms of softmax over a vocabulary ---

template <int THREADS>
__device__ float together(float v, bool maximum, float *scratch) {
    v = maximum ? warp_max(v) : warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = scratch[0];
    for (int w = 1; w < THREADS / 32; ++w) v = maximum ? fmaxf(v, scratch[w]) : v + scratch[w];
    return v;
}
template <int THREADS>
__global__ void __launch_bounds__(THREADS) log_softmax_staged(const float *__restrict__ x, float *__restrict__ y, int n) {
    extern __shared__ float row[];
    __shared__ float scratch[THREADS / 32];
    const float *from = x + size_t(blockIdx.x) * n;
    float top = -1e30f, sum = 0.f;
    for (int i = threadIdx.x; i < n; i += THREADS) top = fmaxf(top, row[i] = from[i]);
    top = together<THREADS>(top, true, scratch);
    for (int i = threadIdx.x; i < n; i += THREADS) sum += __expf(row[i] - top);
    float all = top + __logf(together<THREADS>(sum, false, scratch));
    for (int i = threadIdx.x; i < n; i += THREADS) y[size_t(blockIdx.x) * n + i] = row[i] - all;
}
__global__ void __launch_bounds__(1024) log_softmax_registers(const float4 *__restrict__ x, float4 *__restrict__ y) {
    __shared__ float scratch[32];
    size_t at = size_t(blockIdx.x) * 4096 + threadIdx.x;
    float4 v[4];
    float top = -1e30f, sum = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = x[at + 1024 * k];
#pragma unroll
    for (int k = 0; k < 4; ++k) top = fmaxf(fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)), top);
    top = together<1024>(top, true, scratch);
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += __expf(v[k].x - top) + __expf(v[k].y - top) + __expf(v[k].z - top) + __expf(v[k].w - top);
    float all = top + __logf(together<1024>(sum, false, scratch));
#pragma unroll
    for (int k = 0; k < 4; ++k) y[at + 1024 * k] = {v[k].x - all, v[k].y - all, v[k].z - all, v[k].w - all};
}

Study log_softmaxes("log_softmax_row_in_shared", "models", 4096, "logarithms of softmax over 4096 rows of 16384 floats",
    "a row fills 64 KiB of shared memory for 128 threads: twelve warps a multiprocessor",
    {{"threads", "512 threads for the same shared memory", {"low_occupancy"}}, {"registers", "1024 threads keep the row in registers", {"low_occupancy", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int n = 16384;
        float *x = b.random<float>(rows * n, -4, 4), *y = b.output<float>(rows * n);
        return {{"flawed", launch(log_softmax_staged<128>, rows, 128, n * sizeof(float), x, y, n)}, {"threads", launch(log_softmax_staged<512>, rows, 512, n * sizeof(float), x, y, n)},
            {"registers", launch(log_softmax_registers, rows, 1024, 0, (float4 *)x, (float4 *)y)}};
    });

}  // namespace
