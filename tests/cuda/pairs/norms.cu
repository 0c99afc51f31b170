// Layer norm, RMS norm and softmax as models have them, each with one flaw that such kernels are found with.
#include "pair.cuh"

namespace {

// --- layer norm over rows of 1024 ---

// A block of 256 threads a row, four values a thread. Statistics by shuffles or by halving in shared memory; sums in
// `Real`; values four at a time or one by one.
template <typename Real, bool Tree, bool Wide>
__global__ void __launch_bounds__(256)
    layer_norm(const float *__restrict__ in, const float *__restrict__ weight, float *__restrict__ out) {
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
        float4 y = {(x[0] - mean) * scale * w.x, (x[1] - mean) * scale * w.y, (x[2] - mean) * scale * w.z,
            (x[3] - mean) * scale * w.w};
        reinterpret_cast<float4 *>(to)[threadIdx.x] = y;
    } else {
        for (int k = 0; k < 4; ++k) to[threadIdx.x + 256 * k] = (x[k] - mean) * scale * weight[threadIdx.x + 256 * k];
    }
}
Family layer_norms("layer_norm", "layer_norm", {4096, 65536},
    {flaw("doubles", "double_precision", "real"), flaw("tree", "barriers", "real"),
        flaw("floats", "narrow_access", "behind_limit")},
    [](Buffers &b, long rows) -> Sides {
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
Family rms_norm_thread("rms_norm_thread", "rms_norm", {16384, 262144}, mend("uncoalesced_access", "real"),
    [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 256), *out = b.output<float>(rows * 256);
        return flawed_mended(launch(short_norm<true>, blocks(rows, 128), 128, 0, in, out, rows),
            launch(short_norm<false>, blocks(rows, 4), 128, 0, in, out, rows));
    });

// --- softmax over rows of 2048 ---

// Precise or fast exponentials; rows read again for each pass, or kept in registers.
template <bool Precise, bool Again>
__global__ void __launch_bounds__(256)
    softmax(const float *__restrict__ in, float *__restrict__ out, float temperature) {
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
        out[size_t(blockIdx.x) * C + threadIdx.x + 256 * k] =
            scale * (Again ? power(__ldcv(&row[threadIdx.x + 256 * k]) * temperature - top) : x[k]);
}
Family softmaxes("softmax_rows", "softmax", {2048, 32768},
    {flaw("again", "redundant_loads", "real"), flaw("precise", "expensive_math", "behind_limit")},
    [](Buffers &b, long rows) -> Sides {
        float *in = b.random<float>(rows * 2048), *out = b.output<float>(rows * 2048);
        return {{"again", launch(softmax<false, true>, rows, 256, 0, in, out, 2.0f)},
            {"precise", launch(softmax<true, false>, rows, 256, 0, in, out, 2.0f)},
            {"mended", launch(softmax<false, false>, rows, 256, 0, in, out, 2.0f)}};
    });
// A few long rows, a block each, on a GPU of many multiprocessors, or many blocks a row that add
// up their partial sums.
template <bool Whole>
__global__ void __launch_bounds__(256)
    log_sums(const float *__restrict__ in, float *__restrict__ out, int columns, int pieces) {
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
Family vocabulary_sums(
    "vocabulary_sums", "softmax", {16, 64}, mend("small_grid", "real"), [](Buffers &b, long rows) -> Sides {
        int columns = 1 << 17;
        float *in = b.random<float>(rows * columns), *out = b.output<float>(rows, true);
        return flawed_mended(launch(log_sums<true>, rows, 256, 0, in, out, columns, 1),
            launch(log_sums<false>, rows * 32, 256, 0, in, out, columns, 32));
    });

}  // namespace
