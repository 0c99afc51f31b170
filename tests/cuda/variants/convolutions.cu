// Convolutions and pooling of models.
#include "../pairs/pair.cuh"

namespace {

// --- depthwise 3 x 3 ---

__global__ void depthwise_3x3(const float *in, const float *weight, float *out, int C, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z;
    if (x >= W || y >= H) return;
    const float *plane = in + (size_t)c * H * W;
    float acc = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int yy = y + dy, xx = x + dx;
            if (yy >= 0 && yy < H && xx >= 0 && xx < W)
                acc += plane[yy * W + xx] * weight[(c % 256) * 9 + (dy + 1) * 3 + dx + 1];
        }
    out[(size_t)c * H * W + y * W + x] = acc;
}

__global__ void __launch_bounds__(256)
    depthwise_tile(const float *in, const float *weight, float *out, int C, int H, int W) {
    __shared__ float tile[10][34];
    int c = blockIdx.z, left = blockIdx.x * 32 - 1, top = blockIdx.y * 8 - 1;
    const float *plane = in + (size_t)c * H * W;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        int yy = top + i / 34, xx = left + i % 34;
        tile[i / 34][i % 34] = yy >= 0 && yy < H && xx >= 0 && xx < W ? plane[yy * W + xx] : 0.f;
    }
    float w[9];
#pragma unroll
    for (int k = 0; k < 9; ++k) w[k] = weight[(c % 256) * 9 + k];
    __syncthreads();
    float acc = 0;
#pragma unroll
    for (int k = 0; k < 9; ++k) acc += tile[threadIdx.y + k / 3][threadIdx.x + k % 3] * w[k];
    out[(size_t)c * H * W + (blockIdx.y * 8 + threadIdx.y) * W + blockIdx.x * 32 + threadIdx.x] = acc;
}

// A thread goes down 8 rows and keeps three rows of three values.
__global__ void __launch_bounds__(128)
    depthwise_column(const float *in, const float *weight, float *out, int C, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.z, first = blockIdx.y * 8;
    if (x >= W) return;
    const float *plane = in + (size_t)c * H * W;
    float w[9], r[3][3];
#pragma unroll
    for (int k = 0; k < 9; ++k) w[k] = weight[(c % 256) * 9 + k];
    auto load = [&](int y, float *to) {
#pragma unroll
        for (int d = 0; d < 3; ++d) {
            int xx = x + d - 1;
            to[d] = y >= 0 && y < H && xx >= 0 && xx < W ? plane[y * W + xx] : 0.f;
        }
    };
    load(first - 1, r[0]), load(first, r[1]);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        load(first + k + 1, r[(k + 2) % 3]);
        float acc = 0;
#pragma unroll
        for (int j = 0; j < 9; ++j) acc += r[(k + j / 3) % 3][j % 3] * w[j];
        out[(size_t)c * H * W + (first + k) * W + x] = acc;
    }
}

Study depthwise("depthwise_conv_3x3", "models", 2048, "depthwise 3 x 3 convolution of planes of 128 x 128 floats",
    "each output asks for its nine inputs and nine weights anew, with a border test each",
    {{"tile", "a 32 x 8 tile with halo in shared memory, weights in registers", {"redundant_loads"}},
        {"column", "eight outputs below each other a thread, a window of rows in registers", {"redundant_loads"}}},
    [](Buffers &b, long planes) -> Sides {
        int H = 128, W = 128;
        float *in = b.random<float>(planes * H * W), *weight = b.random<float>(256 * 9),
              *out = b.output<float>(planes * H * W);
        return {{"flawed", launch(depthwise_3x3, dim3(4, 16, planes), dim3(32, 8), 0, in, weight, out, planes, H, W)},
            {"tile", launch(depthwise_tile, dim3(4, 16, planes), dim3(32, 8), 0, in, weight, out, planes, H, W)},
            {"column", launch(depthwise_column, dim3(1, 16, planes), 128, 0, in, weight, out, planes, H, W)}};
    });

// --- causal 1-D convolution with a long filter ---

constexpr int TAPS = 64;
__constant__ float filter_taps[TAPS];

__global__ void conv1d(const float *__restrict__ x, const float *__restrict__ h, float *__restrict__ y, int n, int taps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float acc = 0.f;
    for (int t = 0; t < taps; t++)
        if (i - t >= 0) acc += h[t] * x[i - t];
    y[i] = acc;
}
__global__ void conv1d_tile(const float *__restrict__ x, const float *__restrict__ h, float *__restrict__ y, int n) {
    __shared__ float window[256 + TAPS], taps[TAPS];
    int first = blockIdx.x * 256 - TAPS;
    for (int j = threadIdx.x; j < 256 + TAPS; j += 256) {
        int at = first + j;
        window[j] = at >= 0 && at < n ? x[at] : 0.f;
    }
    if (threadIdx.x < TAPS) taps[threadIdx.x] = h[threadIdx.x];
    __syncthreads();
    float acc = 0.f;
#pragma unroll
    for (int t = 0; t < TAPS; t++) acc += taps[t] * window[threadIdx.x + TAPS - t];
    y[blockIdx.x * 256 + threadIdx.x] = acc;
}
// Eight outputs a thread; a value loaded serves all of them.
__global__ void __launch_bounds__(128) conv1d_eight(const float *__restrict__ x, float *__restrict__ y, int n) {
    __shared__ float window[1024 + TAPS];
    int first = blockIdx.x * 1024 - TAPS;
    for (int j = threadIdx.x; j < 1024 + TAPS; j += 128) window[j] = first + j >= 0 && first + j < n ? x[first + j] : 0.f;
    __syncthreads();
    float acc[8] = {}, kept[8];
    int base = threadIdx.x * 8 + TAPS;
#pragma unroll
    for (int k = 0; k < 8; ++k) kept[k] = window[base + k];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) {
#pragma unroll
        for (int k = 0; k < 8; ++k) acc[k] += filter_taps[t] * kept[k];
#pragma unroll
        for (int k = 7; k > 0; --k) kept[k] = kept[k - 1];
        kept[0] = window[base - t - 1];
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) y[blockIdx.x * 1024 + threadIdx.x * 8 + k] = acc[k];
}

Study conv1ds("conv1d_causal", "models", 1 << 24, "causal convolution of a signal with 64 taps",
    "every output loads its 64 inputs and 64 taps from global memory, with a border test each",
    {{"tile", "window and taps in shared memory, loop unrolled", {"redundant_loads"}},
        {"eight_outputs", "eight outputs a thread over a window in registers, taps in constant memory",
            {"redundant_loads", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n), *h = b.random<float>(TAPS), *y = b.output<float>(n);
        CHECK(cudaMemcpyToSymbol(filter_taps, h, TAPS * 4, 0, cudaMemcpyDeviceToDevice));
        return {{"flawed", launch(conv1d, blocks(n, 256), 256, 0, x, h, y, n, TAPS)},
            {"tile", launch(conv1d_tile, n / 256, 256, 0, x, h, y, n)},
            {"eight_outputs", launch(conv1d_eight, n / 1024, 128, 0, x, y, n)}};
    });

// --- direct 3 x 3 convolution over 64 channels ---

// in[C][H][W], weight[K][C][3][3], out[K][H][W]; borders are padded by the caller.
__global__ void conv2d_direct(const float *in, const float *weight, float *out, int C, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z;
    int OW = W - 2, OH = H - 2;
    if (x >= OW || y >= OH) return;
    float acc = 0.f;
    for (int c = 0; c < C; c++)
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                acc += in[(c * H + y + r) * W + x + s] * weight[((k * C + c) * 3 + r) * 3 + s];
    out[(k * OH + y) * OW + x] = acc;
}
// KS output channels a thread, so that nine inputs serve KS outputs.
template <int KS>
__global__ void conv2d_channels(const float *__restrict__ in, const float *__restrict__ weight,
    float *__restrict__ out, int C, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z * KS;
    int OW = W - 2, OH = H - 2;
    if (x >= OW || y >= OH) return;
    float acc[KS] = {};
    for (int c = 0; c < C; c++) {
        float v[9];
#pragma unroll
        for (int j = 0; j < 9; ++j) v[j] = in[(c * H + y + j / 3) * W + x + j % 3];
#pragma unroll
        for (int o = 0; o < KS; ++o)
#pragma unroll
            for (int j = 0; j < 9; ++j) acc[o] += v[j] * weight[((k + o) * C + c) * 9 + j];
    }
#pragma unroll
    for (int o = 0; o < KS; ++o) out[((k + o) * OH + y) * OW + x] = acc[o];
}
__global__ void __launch_bounds__(256)
    conv2d_shared(const float *in, const float *weight, float *out, int C, int H, int W) {
    __shared__ float tile[10][36], taps[9];
    int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, k = blockIdx.z, OW = W - 2, OH = H - 2;
    int tid = threadIdx.y * 32 + threadIdx.x;
    float acc = 0.f;
    for (int c = 0; c < C; c++) {
        for (int i = tid; i < 340; i += 256) {
            int yy = y0 + i / 34, xx = x0 + i % 34;
            tile[i / 34][i % 34] = yy < H && xx < W ? in[(c * H + yy) * W + xx] : 0.f;
        }
        if (tid < 9) taps[tid] = weight[(k * C + c) * 9 + tid];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 9; ++j) acc += tile[threadIdx.y + j / 3][threadIdx.x + j % 3] * taps[j];
        __syncthreads();
    }
    if (x0 + threadIdx.x < OW && y0 + threadIdx.y < OH) out[(k * OH + y0 + threadIdx.y) * OW + x0 + threadIdx.x] = acc;
}

Study conv2d("conv2d_direct", "models", 258, "direct 3 x 3 convolution, 64 channels in and out, FP32",
    "two loads for every multiply-add: neither inputs nor weights are used twice",
    {{"four_channels", "four output channels a thread: an input serves four sums", {"redundant_loads"}},
        {"sixteen_channels", "sixteen output channels a thread", {"redundant_loads"}},
        {"shared", "tile of the input and the nine weights in shared memory, a channel at a time", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        int C = 64, K = 64, O = n - 2;
        float *in = b.random<float>(C * n * n), *weight = b.random<float>(K * C * 9), *out = b.output<float>(K * O * O);
        dim3 block(32, 8);
        auto grid = [&](int ks) { return dim3(blocks(O, 32), blocks(O, 8), K / ks); };
        return {{"flawed", launch(conv2d_direct, grid(1), block, 0, in, weight, out, C, n, n)},
            {"four_channels", launch(conv2d_channels<4>, grid(4), block, 0, in, weight, out, C, n, n)},
            {"sixteen_channels", launch(conv2d_channels<16>, grid(16), block, 0, in, weight, out, C, n, n)},
            {"shared", launch(conv2d_shared, grid(1), block, 0, in, weight, out, C, n, n)}};
    });

// --- max pooling of channels-last images, threads numbered as for channels-first ---

__global__ void max_pool_nhwc(const float *in, float *out, int N, int H, int W, int C) {
    int OH = H / 2, OW = W / 2;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * OH * OW) return;
    int x = i % OW, y = i / OW % OH, c = i / (OW * OH) % C, n = i / (OW * OH * C);
    float top = -INFINITY;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++)
            top = fmaxf(top, in[((size_t)(n * H + 2 * y + dy) * W + 2 * x + dx) * C + c]);
    out[((size_t)(n * OH + y) * OW + x) * C + c] = top;
}
__global__ void max_pool_channels_fast(const float *in, float *out, int N, int H, int W, int C) {
    int OH = H / 2, OW = W / 2;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * OH * OW) return;
    int c = i % C, x = i / C % OW, y = i / (C * OW) % OH, n = i / (C * OW * OH);
    float top = -INFINITY;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++)
            top = fmaxf(top, in[((size_t)(n * H + 2 * y + dy) * W + 2 * x + dx) * C + c]);
    out[((size_t)(n * OH + y) * OW + x) * C + c] = top;
}
__global__ void max_pool_four(const float4 *in, float4 *out, int H, int W, int C4) {
    int c = threadIdx.x, x = blockIdx.x * blockDim.y + threadIdx.y, y = blockIdx.y, n = blockIdx.z;
    const float4 *at = in + ((size_t)(n * H + 2 * y) * W + 2 * x) * C4 + c;
    float4 a = at[0], b = at[C4], d = at[W * C4], e = at[(W + 1) * C4];
    out[((size_t)(n * (H / 2) + y) * (W / 2) + x) * C4 + c] = {fmaxf(fmaxf(a.x, b.x), fmaxf(d.x, e.x)),
        fmaxf(fmaxf(a.y, b.y), fmaxf(d.y, e.y)), fmaxf(fmaxf(a.z, b.z), fmaxf(d.z, e.z)),
        fmaxf(fmaxf(a.w, b.w), fmaxf(d.w, e.w))};
}

Study max_pool("max_pool_wrong_order", "models", 32, "2 x 2 max pooling of channels-last images, 128 x 128 of 128 channels",
    "threads run along the image's rows while memory runs along the channels",
    {{"channels_fast", "threads numbered with the channel fastest", {"uncoalesced_access"}},
        {"four_channels", "channel fastest and four channels a thread, coordinates from the block",
            {"uncoalesced_access", "narrow_access", "integer_arithmetic"}}},
    [](Buffers &b, long N) -> Sides {
        int H = 128, W = 128, C = 128;
        size_t n = N * H * W * C;
        float *in = b.random<float>(n), *out = b.output<float>(n / 4);
        return {{"flawed", launch(max_pool_nhwc, blocks(n / 4, 256), 256, 0, in, out, N, H, W, C)},
            {"channels_fast", launch(max_pool_channels_fast, blocks(n / 4, 256), 256, 0, in, out, N, H, W, C)},
            {"four_channels", launch(max_pool_four, dim3(8, 64, N), dim3(32, 8), 0, (float4 *)in, (float4 *)out, H, W, C / 4)}};
    });

}  // namespace
