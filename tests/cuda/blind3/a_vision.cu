// Convolution, pooling, detection, video. One flaw a kernel, two fixes or more.
#include "../pairs/pair.cuh"

namespace {

// --- transposed convolution, 4 x 4, stride 2 ---

constexpr int CIN = 16, COUT = 8;

__global__ void deconvolve_scatter(const float *x, const float *w, float *y, int size) {
    int px = blockIdx.x * 32 + threadIdx.x, py = blockIdx.y * 8 + threadIdx.y, co = blockIdx.z % COUT, image = blockIdx.z / COUT;
    for (int ky = 0; ky < 4; ky++)
        for (int kx = 0; kx < 4; kx++) {
            int oy = py * 2 + ky - 1, ox = px * 2 + kx - 1;
            if (oy < 0 || ox < 0 || oy >= 2 * size || ox >= 2 * size) continue;
            float sum = 0.f;
            for (int c = 0; c < CIN; c++) sum += x[((image * CIN + c) * size + py) * size + px] * w[((c * COUT + co) * 4 + ky) * 4 + kx];
            atomicAdd(&y[((image * COUT + co) * 2 * size + oy) * 2 * size + ox], sum);
        }
}
__global__ void deconvolve_gather(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int size) {
    int ox = blockIdx.x * 32 + threadIdx.x, oy = blockIdx.y * 8 + threadIdx.y, co = blockIdx.z % COUT, image = blockIdx.z / COUT;
    float sum = 0.f;
    for (int a = 0; a < 2; ++a)
        for (int c2 = 0; c2 < 2; ++c2) {
            int ky = ((oy + 1) & 1) + 2 * a, kx = ((ox + 1) & 1) + 2 * c2, py = (oy + 1 - ky) / 2, px = (ox + 1 - kx) / 2;
            if (oy + 1 < ky || ox + 1 < kx || py >= size || px >= size) continue;
#pragma unroll
            for (int c = 0; c < CIN; ++c) sum += x[((image * CIN + c) * size + py) * size + px] * w[((c * COUT + co) * 4 + ky) * 4 + kx];
        }
    y[((image * COUT + co) * 2 * size + oy) * 2 * size + ox] = sum;
}
__global__ void __launch_bounds__(256) deconvolve_quads(const float *__restrict__ x, const float *__restrict__ w, float2 *__restrict__ y, int size) {
    __shared__ float ws[CIN][16];
    int t = threadIdx.y * 32 + threadIdx.x, co = blockIdx.z % COUT, image = blockIdx.z / COUT;
    ws[t / 16][t % 16] = w[(t / 16 * COUT + co) * 16 + t % 16];
    __syncthreads();
    int qx = blockIdx.x * 32 + threadIdx.x, qy = blockIdx.y * 8 + threadIdx.y;  // outputs 2 q and 2 q + 1 in both directions
    float o[2][2] = {};
    for (int c = 0; c < CIN; ++c) {
        const float *plane = x + (image * CIN + c) * size * size;
        float v[3][3];
#pragma unroll
        for (int a = 0; a < 3; ++a)
#pragma unroll
            for (int e = 0; e < 3; ++e) {
                int py = qy + a - 1, px = qx + e - 1;
                v[a][e] = py >= 0 && px >= 0 && py < size && px < size ? plane[py * size + px] : 0.f;
            }
#pragma unroll
        for (int a = 0; a < 2; ++a)
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j) {  // output 2 q + a takes inputs q + a - 1 + i; k = 2 q + a + 1 - 2 p
                        int ky = a + 1 - 2 * (a - 1 + i), kx = e + 1 - 2 * (e - 1 + j);
                        o[a][e] += v[a + i][e + j] * ws[c][ky * 4 + kx];
                    }
    }
#pragma unroll
    for (int a = 0; a < 2; ++a) y[((image * COUT + co) * 2 * size + 2 * qy + a) * size + qx] = {o[a][0], o[a][1]};
}

Study deconvolutions("transposed_conv_scatter_atomics", "models", 8, "transposed convolution 4 x 4 of stride 2, 16 to 8 channels, 8 images of 128 x 128",
    "each input pixel adds to 16 outputs by atomics",
    {{"gather", "a thread an output, which gathers its four inputs", {"global_atomics"}}, {"quads", "a thread four outputs, weights in shared memory, nine inputs in registers", {"global_atomics", "redundant_loads"}}},
    [](Buffers &b, long images) -> Sides {
        int size = 128;
        float *x = b.random<float>(images * CIN * size * size), *w = b.random<float>(CIN * COUT * 16), *y = b.output<float>(images * COUT * size * size * 4, true);
        dim3 in(size / 32, size / 8, images * COUT), out(size / 16, size / 4, images * COUT), block(32, 8);
        b.tolerance = 1e-3;
        return {{"flawed", launch(deconvolve_scatter, in, block, 0, x, w, y, size)}, {"gather", launch(deconvolve_gather, out, block, 0, x, w, y, size)},
            {"quads", launch(deconvolve_quads, in, block, 0, x, w, (float2 *)y, size)}};
    });

// --- response normalisation across channels ---

__global__ void response_norm(const float *x, float *y, int channels, int hw) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y;
    if (i >= hw) return;
    size_t base = size_t(blockIdx.z) * channels * hw;
    float sum = 0.f;
    for (int k = max(0, c - 4); k <= min(channels - 1, c + 4); k++) sum += powf(x[base + k * hw + i], 2.f);
    y[base + c * hw + i] = x[base + c * hw + i] / powf(2.f + 0.0001f * sum, 0.75f);
}
__global__ void response_norm_roots(const float *__restrict__ x, float *__restrict__ y, int channels, int hw) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y;
    if (i >= hw) return;
    size_t base = size_t(blockIdx.z) * channels * hw;
    float sum = 0.f, mine = x[base + c * hw + i];
#pragma unroll
    for (int d = -4; d <= 4; ++d) {
        int k = c + d;
        float v = k >= 0 && k < channels ? x[base + k * hw + i] : 0.f;
        sum += v * v;
    }
    float r = rsqrtf(2.f + 0.0001f * sum);  // to the power of 3/2: r * sqrt(r)
    y[base + c * hw + i] = mine * r * sqrtf(r);
}
__global__ void response_norm_window(const float *__restrict__ x, float *__restrict__ y, int channels, int hw) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 16;
    if (i >= hw) return;
    size_t base = size_t(blockIdx.z) * channels * hw + i;
    float v[24];
#pragma unroll
    for (int k = 0; k < 24; ++k) {
        int c = first + k - 4;
        v[k] = c >= 0 && c < channels ? x[base + size_t(c) * hw] : 0.f;
    }
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[k] * v[k];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        sum += v[k + 8] * v[k + 8];
        float r = rsqrtf(2.f + 0.0001f * sum);
        y[base + size_t(first + k) * hw] = v[k + 4] * r * sqrtf(r);
        sum -= v[k] * v[k];
    }
}

Study response_norms("response_norm_powers", "models", 32, "response normalisation over nine neighbouring channels, 32 images of 96 channels of 56 x 56 floats",
    "squares and the power of 3/4 by powf, ten times an element",
    {{"roots", "products and square roots", {"expensive_math"}}, {"window", "16 channels a thread, a running sum of products, square roots", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long images) -> Sides {
        int channels = 96, hw = 56 * 56;
        float *x = b.random<float>(images * channels * hw, -20, 20), *y = b.output<float>(images * channels * hw);
        b.tolerance = 1e-3;
        return {{"flawed", launch(response_norm, dim3(blocks(hw, 128), channels, images), 128, 0, x, y, channels, hw)},
            {"roots", launch(response_norm_roots, dim3(blocks(hw, 128), channels, images), 128, 0, x, y, channels, hw)},
            {"window", launch(response_norm_window, dim3(blocks(hw, 128), channels / 16, images), 128, 0, x, y, channels, hw)}};
    });

// --- regions of interest ---

struct Sample {
    int at[4];
    float w[4];
};
__device__ Sample sample_at(float y, float x, int height, int width) {
    y = fminf(fmaxf(y, 0.f), height - 1.f), x = fminf(fmaxf(x, 0.f), width - 1.f);
    int top = min(int(y), height - 2), left = min(int(x), width - 2);
    float fy = y - top, fx = x - left;
    return {{top * width + left, top * width + left + 1, (top + 1) * width + left, (top + 1) * width + left + 1}, {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx}};
}
__global__ void roi_align(const float *features, const float4 *boxes, float *out, int channels, int height, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int px = i % 7, py = i / 7 % 7, c = i / 49 % channels, roi = i / (49 * channels);
    float4 box = boxes[roi];
    float bin_h = (box.w - box.y) / 7, bin_w = (box.z - box.x) / 7, sum = 0.f;
    for (int a = 0; a < 2; a++)
        for (int e = 0; e < 2; e++) {
            float y = box.y + py * bin_h + (a + 0.5f) * bin_h / 2, x = box.x + px * bin_w + (e + 0.5f) * bin_w / 2;
            Sample s = sample_at(y, x, height, width);
            for (int k = 0; k < 4; k++) sum += s.w[k] * features[c * height * width + s.at[k]];
        }
    out[i] = sum / 4;
}
__global__ void __launch_bounds__(64) roi_align_bins(const float *__restrict__ features, const float4 *__restrict__ boxes, float *__restrict__ out, int channels, int height, int width) {
    int bin = threadIdx.x, roi = blockIdx.x, first = blockIdx.y * 16;
    if (bin >= 49) return;
    float4 box = boxes[roi];
    float bin_h = (box.w - box.y) / 7, bin_w = (box.z - box.x) / 7;
    Sample s[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
        s[k] = sample_at(box.y + bin / 7 * bin_h + (k / 2 + 0.5f) * bin_h / 2, box.x + bin % 7 * bin_w + (k % 2 + 0.5f) * bin_w / 2, height, width);
    for (int c = first; c < first + 16; ++c) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j) sum += s[k].w[j] * features[c * height * width + s[k].at[j]];
        out[(roi * channels + c) * 49 + bin] = sum / 4;
    }
}
__global__ void __launch_bounds__(256) roi_align_last(const float *__restrict__ features, const float4 *__restrict__ boxes, float *__restrict__ out, int height, int width) {
    constexpr int channels = 256;  // features with channels last: a lane a channel
    int c = threadIdx.x, roi = blockIdx.x, py = blockIdx.y;
    float4 box = boxes[roi];
    float bin_h = (box.w - box.y) / 7, bin_w = (box.z - box.x) / 7, row[7];
#pragma unroll
    for (int px = 0; px < 7; ++px) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            Sample s = sample_at(box.y + py * bin_h + (k / 2 + 0.5f) * bin_h / 2, box.x + px * bin_w + (k % 2 + 0.5f) * bin_w / 2, height, width);
#pragma unroll
            for (int j = 0; j < 4; ++j) sum += s.w[j] * features[s.at[j] * channels + c];
        }
        row[px] = sum / 4;
    }
    __shared__ float staged[channels * 7];
#pragma unroll
    for (int px = 0; px < 7; ++px) staged[c * 7 + px] = row[px];
    __syncthreads();
    for (int i = threadIdx.x; i < channels * 7; i += 256) out[(roi * channels + i / 7) * 49 + py * 7 + i % 7] = staged[i];
}
__global__ void channels_last(const float *in, float *out, int channels, int hw) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < channels * hw; i += gridDim.x * blockDim.x) out[i % hw * channels + i / hw] = in[i];
}

Study roi_aligns("roi_align_weights_each_channel", "models", 1000, "1000 regions of 256 channels sampled to 7 x 7 bins, four bilinear samples a bin",
    "positions and weights, the same for all channels, are computed for each channel; neighbouring lanes gather from rows of one plane",
    {{"bins", "a thread a bin: positions once, then 16 channels", {"integer_arithmetic", "expensive_math"}}, {"last", "channels last in memory, a lane a channel", {"uncoalesced_access", "integer_arithmetic"}}},
    [](Buffers &b, long rois) -> Sides {
        int channels = 256, height = 64, width = 96, n = rois * channels * 49;
        float *features = b.random<float>(channels * height * width, 0, 1), *out = b.output<float>(n), *last = b.allocate<float>(channels * height * width);
        channels_last<<<512, 256>>>(features, last, channels, height * width);
        CHECK_LAUNCH();
        std::vector<float> boxes;
        for (long r = 0; r < rois; ++r) {
            float x = hash(r) % 6000 / 100.f, y = hash(r + 5000) % 3500 / 100.f;
            boxes.insert(boxes.end(), {x, y, x + 4 + hash(r + 9000) % 3000 / 100.f, y + 4 + hash(r + 12000) % 2400 / 100.f});
        }
        float4 *box = (float4 *)b.copy(boxes);
        b.tolerance = 1e-3;
        return {{"flawed", launch(roi_align, blocks(n, 256), 256, 0, features, box, out, channels, height, width, n)},
            {"bins", launch(roi_align_bins, dim3(rois, channels / 16), 64, 0, features, box, out, channels, height, width)},
            {"last", launch(roi_align_last, dim3(rois, 7), 256, 0, last, box, out, height, width)}};
    });

// --- depthwise convolution, channels last ---

__global__ void depthwise_last(const float *x, const float *w, float *y, int size, int channels) {
    int c = threadIdx.x, px = blockIdx.x, py = blockIdx.y;
    float sum = 0.f;
    for (int ky = 0; ky < 5; ky++)
        for (int kx = 0; kx < 5; kx++) {
            int iy = py + ky - 2, ix = px + kx - 2;
            if (iy >= 0 && ix >= 0 && iy < size && ix < size) sum += x[((blockIdx.z * size + iy) * size + ix) * channels + c] * w[c * 25 + ky * 5 + kx];
        }
    y[((blockIdx.z * size + py) * size + px) * channels + c] = sum;
}
__global__ void depthwise_last_turned(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int size, int channels) {
    int c = threadIdx.x, px = blockIdx.x, py = blockIdx.y;
    float sum = 0.f;
    for (int ky = 0; ky < 5; ++ky)
        for (int kx = 0; kx < 5; ++kx) {
            int iy = py + ky - 2, ix = px + kx - 2;
            if (iy >= 0 && ix >= 0 && iy < size && ix < size) sum += x[((blockIdx.z * size + iy) * size + ix) * channels + c] * w[(ky * 5 + kx) * channels + c];
        }
    y[((blockIdx.z * size + py) * size + px) * channels + c] = sum;
}
__global__ void depthwise_last_row(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int size, int channels) {
    int c = threadIdx.x, first = blockIdx.x * 8, py = blockIdx.y;
    float f[25], sum[8] = {};
#pragma unroll
    for (int k = 0; k < 25; ++k) f[k] = w[c * 25 + k];
#pragma unroll
    for (int ky = 0; ky < 5; ++ky) {
        int iy = py + ky - 2;
        if (iy < 0 || iy >= size) continue;
#pragma unroll
        for (int k = 0; k < 12; ++k) {
            int ix = first + k - 2;
            float v = ix >= 0 && ix < size ? x[((blockIdx.z * size + iy) * size + ix) * channels + c] : 0.f;
#pragma unroll
            for (int o = 0; o < 8; ++o)
                if (k - o >= 0 && k - o < 5) sum[o] += v * f[ky * 5 + k - o];
        }
    }
#pragma unroll
    for (int o = 0; o < 8; ++o) y[((blockIdx.z * size + py) * size + first + o) * channels + c] = sum[o];
}

Study depthwise_lasts("depthwise_5x5_weights_by_channel", "models", 16, "depthwise convolution 5 x 5 with channels last, 16 images of 56 x 56 pixels of 192 channels",
    "lanes are channels, yet the weights of a channel lie together: 100 bytes between lanes",
    {{"turned", "weights with channels last", {"uncoalesced_access"}}, {"row", "eight outputs a thread, the 25 weights in registers", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long images) -> Sides {
        int size = 56, channels = 192;
        std::vector<float> by_channel(channels * 25), last(channels * 25);
        for (int c = 0; c < channels; ++c)
            for (int k = 0; k < 25; ++k) last[k * channels + c] = by_channel[c * 25 + k] = int(hash(c * 25 + k) % 2001) / 1000.f - 1.f;
        float *w = b.copy(by_channel), *turned = b.copy(last), *x = b.random<float>(images * size * size * channels), *y = b.output<float>(images * size * size * channels);
        return {{"flawed", launch(depthwise_last, dim3(size, size, images), channels, 0, x, w, y, size, channels)},
            {"turned", launch(depthwise_last_turned, dim3(size, size, images), channels, 0, x, turned, y, size, channels)},
            {"row", launch(depthwise_last_row, dim3(size / 8, size, images), channels, 0, x, w, y, size, channels)}};
    });

// --- the way back from max pooling ---

__global__ void unpool(const float *x, const unsigned char *which, float *y, int width) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y;
    size_t at = size_t(blockIdx.z) * gridDim.y + py, to = at * 2 * 2 * width + 2 * px;
    for (int k = 0; k < 4; k++) y[to + k / 2 * 2 * width + k % 2] = 0.f;
    int k = which[at * width + px];
    y[to + k / 2 * 2 * width + k % 2] = x[at * width + px];
}
__global__ void unpool_select(const float *__restrict__ x, const unsigned char *__restrict__ which, float2 *__restrict__ y, int width) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y;
    size_t at = size_t(blockIdx.z) * gridDim.y + py;
    int k = which[at * width + px];
    float v = x[at * width + px];
    y[at * 2 * width + px] = {k == 0 ? v : 0.f, k == 1 ? v : 0.f};
    y[at * 2 * width + width + px] = {k == 2 ? v : 0.f, k == 3 ? v : 0.f};
}
__global__ void unpool_two(const float2 *__restrict__ x, const uchar2 *__restrict__ which, float4 *__restrict__ y, int pairs_wide) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    size_t at = size_t(blockIdx.z) * gridDim.y + blockIdx.y;
    uchar2 k = which[at * pairs_wide + px];
    float2 v = x[at * pairs_wide + px];
    y[at * 2 * pairs_wide + px] = {k.x == 0 ? v.x : 0.f, k.x == 1 ? v.x : 0.f, k.y == 0 ? v.y : 0.f, k.y == 1 ? v.y : 0.f};
    y[(at * 2 + 1) * pairs_wide + px] = {k.x == 2 ? v.x : 0.f, k.x == 3 ? v.x : 0.f, k.y == 2 ? v.y : 0.f, k.y == 3 ? v.y : 0.f};
}

Study unpools("unpool_zeros_first", "models", 256, "values put back to where max pooling 2 x 2 had found them, 256 planes of 256 x 256",
    "four zeros are stored 8 bytes apart, then one of them is overwritten",
    {{"select", "each word stored once, 8 bytes a store", {"uncoalesced_access", "narrow_access"}}, {"two", "two windows a thread, 16 bytes a store", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long planes) -> Sides {
        int width = 256, height = 256;
        float *x = b.random<float>(planes * width * height), *y = b.output<float>(planes * width * height * 4);
        auto *which = b.random<unsigned char>(planes * width * height, 0, 4);
        return {{"flawed", launch(unpool, dim3(1, height, planes), 256, 0, x, which, y, width)}, {"select", launch(unpool_select, dim3(1, height, planes), 256, 0, x, which, (float2 *)y, width)},
            {"two", launch(unpool_two, dim3(1, height, planes), 128, 0, (float2 *)x, (uchar2 *)which, (float4 *)y, width / 2)}};
    });

// --- overlapping boxes counted ---

__global__ void overlaps(const float4 *boxes, int *count, int n, float threshold) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 256, found = 0;
    float4 a = boxes[i];
    for (int j = first; j < first + 256; j++) {
        float4 c = boxes[j];
        float w = fmaxf(0.f, fminf(a.z, c.z) - fmaxf(a.x, c.x)), h = fmaxf(0.f, fminf(a.w, c.w) - fmaxf(a.y, c.y));
        float area_a = (a.z - a.x) * (a.w - a.y), area_c = (c.z - c.x) * (c.w - c.y);
        if (w * h / (area_a + area_c - w * h) > threshold) found++;
    }
    atomicAdd(&count[i], found);
}
__global__ void overlaps_product(const float4 *__restrict__ boxes, int *count, int n, float threshold) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 256, found = 0;
    float4 a = boxes[i];
    float area = (a.z - a.x) * (a.w - a.y);
#pragma unroll 4
    for (int j = first; j < first + 256; ++j) {
        float4 c = boxes[j];
        float w = fmaxf(0.f, fminf(a.z, c.z) - fmaxf(a.x, c.x)), h = fmaxf(0.f, fminf(a.w, c.w) - fmaxf(a.y, c.y));
        found += w * h > threshold * (area + (c.z - c.x) * (c.w - c.y) - w * h);
    }
    atomicAdd(&count[i], found);
}
__global__ void __launch_bounds__(256) overlaps_shared(const float4 *__restrict__ boxes, int *count, int n, float threshold) {
    __shared__ float4 others[256];
    __shared__ float areas[256];
    int i = blockIdx.x * 256 + threadIdx.x, found = 0;
    float4 a = boxes[i], o = boxes[blockIdx.y * 256 + threadIdx.x];
    float ratio = threshold / (1.f + threshold), area = ratio * (a.z - a.x) * (a.w - a.y);  // overlap / (areas - overlap) > threshold
    others[threadIdx.x] = o, areas[threadIdx.x] = ratio * (o.z - o.x) * (o.w - o.y);
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < 256; ++j) {
        float4 c = others[j];
        float w = fmaxf(0.f, fminf(a.z, c.z) - fmaxf(a.x, c.x)), h = fminf(a.w, c.w) - fmaxf(a.y, c.y);
        found += w * h > area + areas[j];
    }
    atomicAdd(&count[i], found);
}

Study overlap_counts("box_overlaps_divided", "models", 32768, "how many of 32768 boxes overlap each box by more than 0.3 of their union, for non-maximum suppression",
    "a precise division for each pair, and both areas again",
    {{"product", "overlap compared with the product; the own area once", {"expensive_math"}}, {"shared", "areas times a constant beside the boxes in shared memory", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> boxes;
        for (long i = 0; i < n; ++i) {
            float x = hash(i) % 4000 / 10.f, y = hash(i + n) % 4000 / 10.f;
            boxes.insert(boxes.end(), {x, y, x + 5 + hash(i + 2 * n) % 600 / 10.f, y + 5 + hash(i + 3 * n) % 600 / 10.f});
        }
        float4 *box = (float4 *)b.copy(boxes);
        int *count = b.output<int>(n, true);
        dim3 grid(n / 256, n / 256);
        b.tolerance = 2e-2;  // a pair on the threshold may fall to either side
        return {{"flawed", launch(overlaps, grid, 256, 0, box, count, n, 0.3f)}, {"product", launch(overlaps_product, grid, 256, 0, box, count, n, 0.3f)},
            {"shared", launch(overlaps_shared, grid, 256, 0, box, count, n, 0.3f)}};
    });

// --- optical flow ---

__global__ void flow(const float *a, const float *c, float2 *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 4 || y < 4 || x >= width - 4 || y >= height - 4) {
        if (x < width && y < height) out[y * width + x] = {0.f, 0.f};
        return;
    }
    float xx = 0.f, xy = 0.f, yy = 0.f, xt = 0.f, yt = 0.f;
    for (int v = -3; v <= 3; v++)
        for (int u = -3; u <= 3; u++) {
            int i = (y + v) * width + x + u;
            float ix = (a[i + 1] - a[i - 1]) * 0.5f, iy = (a[i + width] - a[i - width]) * 0.5f, it = c[i] - a[i];
            xx += ix * ix, xy += ix * iy, yy += iy * iy, xt += ix * it, yt += iy * it;
        }
    float inv = 1.f / (xx * yy - xy * xy + 1.f);
    out[y * width + x] = {(xy * yt - yy * xt) * inv, (xy * xt - xx * yt) * inv};
}
__global__ void __launch_bounds__(256) flow_tile(const float *__restrict__ a, const float *__restrict__ c, float2 *__restrict__ out, int width, int height) {
    __shared__ float gx[14][39], gy[14][39], gt[14][39];
    int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 14 * 38; i += 256) {
        int px = min(max(x0 + i % 38 - 3, 1), width - 2), py = min(max(y0 + i / 38 - 3, 1), height - 2), at = py * width + px;
        gx[i / 38][i % 38] = (a[at + 1] - a[at - 1]) * 0.5f, gy[i / 38][i % 38] = (a[at + width] - a[at - width]) * 0.5f, gt[i / 38][i % 38] = c[at] - a[at];
    }
    __syncthreads();
    float xx = 0.f, xy = 0.f, yy = 0.f, xt = 0.f, yt = 0.f;
#pragma unroll
    for (int v = 0; v < 7; ++v)
#pragma unroll
        for (int u = 0; u < 7; ++u) {
            float ix = gx[threadIdx.y + v][threadIdx.x + u], iy = gy[threadIdx.y + v][threadIdx.x + u], it = gt[threadIdx.y + v][threadIdx.x + u];
            xx += ix * ix, xy += ix * iy, yy += iy * iy, xt += ix * it, yt += iy * it;
        }
    bool edge = x < 4 || y < 4 || x >= width - 4 || y >= height - 4;
    float inv = edge ? 0.f : 1.f / (xx * yy - xy * xy + 1.f);
    out[y * width + x] = {(xy * yt - yy * xt) * inv, (xy * xt - xx * yt) * inv};
}
__global__ void __launch_bounds__(256) flow_sums(const float *__restrict__ a, const float *__restrict__ c, float2 *__restrict__ out, int width, int height) {
    __shared__ float sums[5][14][33];  // products added along rows first, then along columns
    int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    for (int row = threadIdx.y; row < 14; row += 8) {
        int py = min(max(y0 + row - 3, 1), height - 2);
        float s[5] = {};
#pragma unroll
        for (int u = -3; u <= 3; ++u) {
            int at = py * width + min(max(x + u, 1), width - 2);
            float ix = (a[at + 1] - a[at - 1]) * 0.5f, iy = (a[at + width] - a[at - width]) * 0.5f, it = c[at] - a[at];
            s[0] += ix * ix, s[1] += ix * iy, s[2] += iy * iy, s[3] += ix * it, s[4] += iy * it;
        }
#pragma unroll
        for (int k = 0; k < 5; ++k) sums[k][row][threadIdx.x] = s[k];
    }
    __syncthreads();
    float s[5] = {};
#pragma unroll
    for (int v = 0; v < 7; ++v)
#pragma unroll
        for (int k = 0; k < 5; ++k) s[k] += sums[k][threadIdx.y + v][threadIdx.x];
    bool edge = x < 4 || y < 4 || x >= width - 4 || y >= height - 4;
    float inv = edge ? 0.f : 1.f / (s[0] * s[2] - s[1] * s[1] + 1.f);
    out[y * width + x] = {(s[1] * s[4] - s[2] * s[3]) * inv, (s[1] * s[3] - s[0] * s[4]) * inv};
}

Study flows("optical_flow_gradients_again", "images", 2048, "optical flow by least squares over windows of 7 x 7, frames of 4096 x 2048",
    "each pixel computes the gradients of all 49 pixels of its window: 294 loads",
    {{"tile", "gradients once, kept in a tile of shared memory", {"redundant_loads"}}, {"sums", "products summed along rows, then along columns", {"redundant_loads"}}},
    [](Buffers &b, long height) -> Sides {
        int width = 4096;
        float *a = b.random<float>(width * height, 0, 4), *c = b.random<float>(width * height, 0, 4), *out = b.output<float>(2 * width * height);
        dim3 grid(width / 32, height / 8), block(32, 8);
        b.tolerance = 1e-3;
        return {{"flawed", launch(flow, grid, block, 0, a, c, (float2 *)out, width, height)}, {"tile", launch(flow_tile, grid, block, 0, a, c, (float2 *)out, width, height)},
            {"sums", launch(flow_sums, grid, block, 0, a, c, (float2 *)out, width, height)}};
    });

// --- motion vectors of video ---

__global__ void motion(const unsigned char *now, const unsigned char *before, unsigned *best, int width) {
    __shared__ unsigned least;
    int x = blockIdx.x * 16, y = blockIdx.y * 16, dx = threadIdx.x % 16, dy = threadIdx.x / 16;  // the frame before has a rim of 8
    if (threadIdx.x == 0) least = ~0u;
    __syncthreads();
    int sum = 0;
    for (int v = 0; v < 16; v++)
        for (int u = 0; u < 16; u++) sum += abs(now[(y + v) * width + x + u] - before[(y + v + dy) * (width + 16) + x + u + dx]);
    atomicMin(&least, unsigned(sum) << 8 | threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) best[blockIdx.y * gridDim.x + blockIdx.x] = least;
}
__global__ void __launch_bounds__(256) motion_words(const unsigned *__restrict__ now, const unsigned *__restrict__ before, unsigned *__restrict__ best, int words) {
    __shared__ unsigned least;
    int dx = threadIdx.x % 16, dy = threadIdx.x / 16;
    if (threadIdx.x == 0) least = ~0u;
    __syncthreads();
    unsigned sum = 0;
    for (int v = 0; v < 16; ++v) {
        const unsigned *a = now + (blockIdx.y * 16 + v) * words + blockIdx.x * 4, *c = before + (blockIdx.y * 16 + v + dy) * (words + 4) + blockIdx.x * 4 + dx / 4;
        unsigned last = c[0];
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            unsigned next = c[u + 1];  // a rim on the right keeps this inside
            sum += __vsadu4(a[u], __funnelshift_r(last, next, dx % 4 * 8));
            last = next;
        }
    }
    atomicMin(&least, sum << 8 | threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) best[blockIdx.y * gridDim.x + blockIdx.x] = least;
}
__global__ void __launch_bounds__(256) motion_shared(const unsigned *__restrict__ now, const unsigned *__restrict__ before, unsigned *__restrict__ best, int words) {
    __shared__ unsigned least, block[64], window[32][9];
    int t = threadIdx.x, dx = t % 16, dy = t / 16;
    if (t == 0) least = ~0u;
    if (t < 64) block[t] = now[(blockIdx.y * 16 + t / 4) * words + blockIdx.x * 4 + t % 4];
    for (int i = t; i < 31 * 8; i += 256) window[i / 8][i % 8] = before[(blockIdx.y * 16 + i / 8) * (words + 4) + blockIdx.x * 4 + i % 8];
    __syncthreads();
    unsigned sum = 0;
#pragma unroll
    for (int v = 0; v < 16; ++v) {
        const unsigned *c = &window[v + dy][dx / 4];
#pragma unroll
        for (int u = 0; u < 4; ++u) sum += __vsadu4(block[4 * v + u], __funnelshift_r(c[u], c[u + 1], dx % 4 * 8));
    }
    atomicMin(&least, sum << 8 | t);
    __syncthreads();
    if (t == 0) best[blockIdx.y * gridDim.x + blockIdx.x] = least;
}

Study motions("motion_search_bytes", "video", 1088, "best of 256 motion vectors for each block of 16 x 16 pixels of a frame of 1920 x 1088",
    "both frames are fetched byte by byte for each of the 256 differences",
    {{"words", "four pixels a load and operation, words put together by funnel shifts", {"narrow_access", "redundant_loads"}},
        {"shared", "block and window in shared memory, four pixels an operation", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long height) -> Sides {
        int width = 1920;
        auto *now = b.random<unsigned char>(width * height, 0, 256), *before = b.random<unsigned char>((width + 16) * (height + 17), 0, 256);
        unsigned *best = b.output<unsigned>(width * height / 256);
        dim3 grid(width / 16, height / 16);
        b.tolerance = 1e-9;
        return {{"flawed", launch(motion, grid, 256, 0, now, before, best, width)}, {"words", launch(motion_words, grid, 256, 0, (unsigned *)now, (unsigned *)before, best, width / 4)},
            {"shared", launch(motion_shared, grid, 256, 0, (unsigned *)now, (unsigned *)before, best, width / 4)}};
    });

// --- NV12 to RGB ---

__device__ uchar3 nv12(int y, int u, int v) {
    float l = 1.164f * (y - 16), cb = u - 128.f, cr = v - 128.f;
    auto byte = [](float f) { return (unsigned char)fminf(fmaxf(f, 0.f), 255.f); };
    return {byte(l + 1.596f * cr), byte(l - 0.813f * cr - 0.391f * cb), byte(l + 2.018f * cb)};
}
__global__ void nv12_rgb(const unsigned char *luma, const unsigned char *chroma, unsigned char *rgb, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    int c = y / 2 * width + x / 2 * 2;
    uchar3 p = nv12(luma[y * width + x], chroma[c], chroma[c + 1]);
    rgb[(y * width + x) * 3] = p.x;
    rgb[(y * width + x) * 3 + 1] = p.y;
    rgb[(y * width + x) * 3 + 2] = p.z;
}
__global__ void nv12_rgb_words(const uchar4 *__restrict__ luma, const uchar4 *__restrict__ chroma, unsigned *__restrict__ rgb, int words) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    uchar4 l = luma[y * words + x], c = chroma[y / 2 * words + x];
    uchar3 p = nv12(l.x, c.x, c.y), q = nv12(l.y, c.x, c.y), r = nv12(l.z, c.z, c.w), s = nv12(l.w, c.z, c.w);
    unsigned *to = rgb + (y * words + x) * 3;
    to[0] = p.x | p.y << 8 | p.z << 16 | unsigned(q.x) << 24;
    to[1] = q.y | q.z << 8 | r.x << 16 | unsigned(r.y) << 24;
    to[2] = r.z | s.x << 8 | s.y << 16 | unsigned(s.z) << 24;
}
__global__ void __launch_bounds__(256) nv12_rgb_staged(const uchar4 *__restrict__ luma, const uchar4 *__restrict__ chroma, uint4 *__restrict__ rgb, int words) {
    __shared__ __align__(16) unsigned staged[2][768];
    int t = threadIdx.x, x = blockIdx.x * 256 + t, y = blockIdx.y * 2;  // two rows share their colours
    uchar4 c = chroma[blockIdx.y * words + x];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        uchar4 l = luma[(y + r) * words + x];
        uchar3 p = nv12(l.x, c.x, c.y), q = nv12(l.y, c.x, c.y), u = nv12(l.z, c.z, c.w), s = nv12(l.w, c.z, c.w);
        staged[r][3 * t] = p.x | p.y << 8 | p.z << 16 | unsigned(q.x) << 24;
        staged[r][3 * t + 1] = q.y | q.z << 8 | u.x << 16 | unsigned(u.y) << 24;
        staged[r][3 * t + 2] = u.z | s.x << 8 | s.y << 16 | unsigned(s.z) << 24;
    }
    __syncthreads();
    for (int i = t; i < 2 * 192; i += 256) rgb[((y + i / 192) * words * 3 + blockIdx.x * 768) / 4 + i % 192] = reinterpret_cast<uint4 *>(staged[i / 192])[i % 192];
}

Study nv12s("nv12_to_rgb_bytes", "video", 4320, "a frame of 8192 x 4320 pixels from NV12 to RGB",
    "three byte loads and three byte stores a pixel",
    {{"words", "four pixels a thread, words of four bytes", {"narrow_access"}}, {"staged", "eight pixels a thread, stores of 16 bytes by way of shared memory", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long height) -> Sides {
        int width = 8192;
        auto *luma = b.random<unsigned char>(width * height, 16, 236), *chroma = b.random<unsigned char>(width * height / 2, 16, 240), *rgb = b.output<unsigned char>(width * height * 3);
        b.tolerance = 5e-3;
        return {{"flawed", launch(nv12_rgb, dim3(width / 256, height), 256, 0, luma, chroma, rgb, width)},
            {"words", launch(nv12_rgb_words, dim3(width / 1024, height), 256, 0, (uchar4 *)luma, (uchar4 *)chroma, (unsigned *)rgb, width / 4)},
            {"staged", launch(nv12_rgb_staged, dim3(width / 1024, height / 2), 256, 0, (uchar4 *)luma, (uchar4 *)chroma, (uint4 *)rgb, width / 4)}};
    });

}  // namespace
