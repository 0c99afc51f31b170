// Boxes, involutions, gates of channels, frames of sound and an optimiser.
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- boxes that a detector proposes, with a score for each class ---

constexpr int CLASSES = 80, RECORD = CLASSES + 5, BOXES = 128;

__device__ __forceinline__ float4 corners(float x, float y, float wide, float high) {
    return make_float4(x - 0.5f * wide, y - 0.5f * high, x + 0.5f * wide, y + 0.5f * high);
}
__global__ void __launch_bounds__(BOXES) best_class(const float *__restrict__ boxes, float4 *__restrict__ places, float *__restrict__ scores, int *__restrict__ classes, int count) {
    const int i = blockIdx.x * BOXES + threadIdx.x;
    if (i >= count) return;
    const float *own = boxes + static_cast<long>(i) * RECORD;
    float best = own[5];
    int which = 0;
    for (int k = 1; k < CLASSES; k++)
        if (own[5 + k] > best) best = own[5 + k], which = k;
    places[i] = corners(own[0], own[1], own[2], own[3]);
    scores[i] = own[4] * best;
    classes[i] = which;
}
// A warp a box; the lower class wins where two have the same score.
__global__ void __launch_bounds__(BOXES) best_class_warp(const float *__restrict__ boxes, float4 *__restrict__ places, float *__restrict__ scores, int *__restrict__ classes, int count) {
    const int i = blockIdx.x * (BOXES / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    const float *own = boxes + static_cast<long>(i) * RECORD;
    float best = -1.0f;
    int which = 0;
    const float head = lane < 5 ? own[lane] : 0.0f;
#pragma unroll
    for (int k = lane; k < CLASSES; k += 32) {
        const float score = own[5 + k];
        if (score > best) best = score, which = k;
    }
    for (int offset = 16; offset; offset /= 2) {
        const float score = __shfl_xor_sync(~0u, best, offset);
        const int other = __shfl_xor_sync(~0u, which, offset);
        if (score > best || (score == best && other < which)) best = score, which = other;
    }
    const float x = __shfl_sync(~0u, head, 0), y = __shfl_sync(~0u, head, 1), wide = __shfl_sync(~0u, head, 2), high = __shfl_sync(~0u, head, 3), sure = __shfl_sync(~0u, head, 4);
    if (lane) return;
    places[i] = corners(x, y, wide, high);
    scores[i] = sure * best;
    classes[i] = which;
}
// The records of a block come in one piece; their pitch of 85 words keeps the lanes' banks apart.
__global__ void __launch_bounds__(BOXES) best_class_tile(const float *__restrict__ boxes, float4 *__restrict__ places, float *__restrict__ scores, int *__restrict__ classes) {
    __shared__ float4 tile[BOXES * RECORD / 4];
    const float4 *piece = reinterpret_cast<const float4 *>(boxes) + static_cast<long>(blockIdx.x) * (BOXES * RECORD / 4);
    for (int k = threadIdx.x; k < BOXES * RECORD / 4; k += BOXES) tile[k] = piece[k];
    __syncthreads();
    const float *own = reinterpret_cast<const float *>(tile) + threadIdx.x * RECORD;
    float best = own[5];
    int which = 0;
    for (int k = 1; k < CLASSES; k++)
        if (own[5 + k] > best) best = own[5 + k], which = k;
    const int i = blockIdx.x * BOXES + threadIdx.x;
    places[i] = corners(own[0], own[1], own[2], own[3]);
    scores[i] = own[4] * best;
    classes[i] = which;
}

Study detections("detections_class_scores_box_by_thread", "detection", 25200 * 16, "the best of 80 classes for 403200 boxes that a detector proposes",
    "a thread walks the 85 floats of its box, whose neighbours' lie 340 bytes on",
    {{"warp", "a warp a box", {"uncoalesced_access"}}, {"tile", "the boxes of a block through shared memory in one piece", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *boxes = b.random<float>(n * RECORD, 0.0, 1.0);
        float4 *places = reinterpret_cast<float4 *>(b.output<float>(n * 4));
        float *scores = b.output<float>(n);
        int *classes = b.output<int>(n);
        return {{"flawed", launch(best_class, blocks(n, BOXES), BOXES, 0, boxes, places, scores, classes, n)},
            {"warp", launch(best_class_warp, blocks(n, BOXES / 32), BOXES, 0, boxes, places, scores, classes, n)},
            {"tile", launch(best_class_tile, n / BOXES, BOXES, 0, boxes, places, scores, classes)}};
    });

// --- involution: a filter of its own for each pixel, which sixteen channels share ---

constexpr int TAPS = 7, TAPS2 = TAPS * TAPS, MARGIN = TAPS / 2, SIDE = 64, CHANNELS = 64, SHARE = 16, TALL = 8;

__global__ void __launch_bounds__(256) involution(const float *__restrict__ in, const float *__restrict__ filters, float *__restrict__ out) {
    const int x = blockIdx.x % 2 * 32 + threadIdx.x, y = blockIdx.x / 2 * TALL + threadIdx.y, channel = blockIdx.y, picture = blockIdx.z;
    const float *plane = in + (picture * CHANNELS + channel) * SIDE * SIDE;
    const float *own = filters + (picture * (CHANNELS / SHARE) + channel / SHARE) * TAPS2 * SIDE * SIDE + y * SIDE + x;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS2; k++) {
        const int row = y + k / TAPS - MARGIN, column = x + k % TAPS - MARGIN;
        if (row >= 0 && row < SIDE && column >= 0 && column < SIDE) sum += own[k * SIDE * SIDE] * plane[row * SIDE + column];
    }
    out[(picture * CHANNELS + channel) * SIDE * SIDE + y * SIDE + x] = sum;
}
// Eight channels a thread: a weight is loaded once for all of them.
__global__ void __launch_bounds__(256) involution_channels(const float *__restrict__ in, const float *__restrict__ filters, float *__restrict__ out) {
    const int x = blockIdx.x % 2 * 32 + threadIdx.x, y = blockIdx.x / 2 * TALL + threadIdx.y, channel = blockIdx.y * 8, picture = blockIdx.z;
    const float *plane = in + (picture * CHANNELS + channel) * SIDE * SIDE;
    const float *own = filters + (picture * (CHANNELS / SHARE) + channel / SHARE) * TAPS2 * SIDE * SIDE + y * SIDE + x;
    float sums[8] = {};
    for (int down = 0; down < TAPS; down++)
#pragma unroll
        for (int along = 0; along < TAPS; along++) {
            const int row = y + down - MARGIN, column = x + along - MARGIN;
            if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) continue;
            const float weight = own[(down * TAPS + along) * SIDE * SIDE];
#pragma unroll
            for (int c = 0; c < 8; c++) sums[c] += weight * plane[c * SIDE * SIDE + row * SIDE + column];
        }
#pragma unroll
    for (int c = 0; c < 8; c++) out[(picture * CHANNELS + channel + c) * SIDE * SIDE + y * SIDE + x] = sums[c];
}
// A pixel's filter stays in registers while its sixteen channels go by in shared memory.
__global__ void __launch_bounds__(256) involution_tile(const float *__restrict__ in, const float *__restrict__ filters, float *__restrict__ out) {
    constexpr int WIDE = 32 + 2 * MARGIN, HIGH = TALL + 2 * MARGIN;
    __shared__ float tile[2][HIGH][WIDE];
    const int left = blockIdx.x % 2 * 32, top = blockIdx.x / 2 * TALL, group = blockIdx.y, picture = blockIdx.z, at = (top + threadIdx.y) * SIDE + left + threadIdx.x;
    const float *own = filters + (picture * (CHANNELS / SHARE) + group) * TAPS2 * SIDE * SIDE + at;
    float weights[TAPS2];
#pragma unroll
    for (int k = 0; k < TAPS2; k++) weights[k] = own[k * SIDE * SIDE];
    for (int c = 0; c < SHARE; c++) {
        const int channel = picture * CHANNELS + group * SHARE + c;
        for (int k = threadIdx.y * 32 + threadIdx.x; k < HIGH * WIDE; k += 256) {
            const int row = top + k / WIDE - MARGIN, column = left + k % WIDE - MARGIN;
            const bool inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
            tile[c % 2][k / WIDE][k % WIDE] = inside ? in[(channel * SIDE + row) * SIDE + column] : 0.0f;
        }
        __syncthreads();
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < TAPS2; k++) sum += weights[k] * tile[c % 2][threadIdx.y + k / TAPS][threadIdx.x + k % TAPS];
        out[channel * SIDE * SIDE + at] = sum;
    }
}

Study involutions("involution_filters_again_for_each_channel", "models", 32, "involution by 7 x 7 filters of 64 channels of 32 pictures of 64 x 64, a filter for each pixel and 16 channels",
    "a thread a channel and pixel loads the pixel's 49 weights, as do those of the fifteen other channels that share them",
    {{"channels", "eight channels a thread", {"redundant_loads"}}, {"tile", "the filter in registers, the channels in turn through a tile in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *in = b.random<float>(n * CHANNELS * SIDE * SIDE), *filters = b.random<float>(n * (CHANNELS / SHARE) * TAPS2 * SIDE * SIDE);
        float *out = b.output<float>(n * CHANNELS * SIDE * SIDE);
        const int parts = 2 * SIDE / TALL;
        const dim3 block(32, TALL);
        return {{"flawed", launch(involution, dim3(parts, CHANNELS, n), block, 0, in, filters, out)}, {"channels", launch(involution_channels, dim3(parts, CHANNELS / 8, n), block, 0, in, filters, out)},
            {"tile", launch(involution_tile, dim3(parts, CHANNELS / SHARE, n), block, 0, in, filters, out)}};
    });

// --- gates of channels by a narrow layer and back (squeeze and excitation) ---

constexpr int WIDTH = 512, NARROW = 32;

__device__ __forceinline__ float gate(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
// The way back: 32 narrow values are broadcast, weights lie a channel beside the other.
__device__ __forceinline__ void widen(const float *narrow, const float *__restrict__ back, float *out) {
    for (int channel = threadIdx.x; channel < WIDTH; channel += 256) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < NARROW; k++) sum += narrow[k] * back[k * WIDTH + channel];
        out[channel] = gate(sum);
    }
}
__global__ void __launch_bounds__(256) channel_gates(const float *__restrict__ means, const float *__restrict__ there, const float *__restrict__ back, float *__restrict__ out) {
    __shared__ float own[WIDTH], sums[256], narrow[NARROW];
    const int t = threadIdx.x;
    own[t] = means[blockIdx.x * WIDTH + t], own[t + 256] = means[blockIdx.x * WIDTH + t + 256];
    for (int k = 0; k < NARROW; k++) {
        sums[t] = own[t] * there[k * WIDTH + t] + own[t + 256] * there[k * WIDTH + t + 256];
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (t < half) sums[t] += sums[t + half];
            __syncthreads();
        }
        if (t == 0) narrow[k] = fmaxf(sums[0], 0.0f);
        __syncthreads();
    }
    widen(narrow, back, out + blockIdx.x * WIDTH);
}
// Each of eight warps has four of the narrow values.
__global__ void __launch_bounds__(256) channel_gates_warps(const float *__restrict__ means, const float *__restrict__ there, const float *__restrict__ back, float *__restrict__ out) {
    __shared__ float narrow[NARROW];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float own[WIDTH / 32];
#pragma unroll
    for (int k = 0; k < WIDTH / 32; k++) own[k] = means[blockIdx.x * WIDTH + k * 32 + lane];
#pragma unroll
    for (int which = 0; which < NARROW / 8; which++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < WIDTH / 32; k++) sum += own[k] * there[(warp * (NARROW / 8) + which) * WIDTH + k * 32 + lane];
        sum = warp_sum(sum);
        if (lane == 0) narrow[warp * (NARROW / 8) + which] = fmaxf(sum, 0.0f);
    }
    __syncthreads();
    widen(narrow, back, out + blockIdx.x * WIDTH);
}
// Eight samples a block: a lane a narrow value, a warp a sample; weights lie a narrow value beside the other.
__global__ void __launch_bounds__(256) channel_gates_samples(const float *__restrict__ means, const float *__restrict__ there, const float *__restrict__ back, float *__restrict__ out) {
    __shared__ float own[8][WIDTH], narrow[8][NARROW];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    for (int k = t; k < 8 * WIDTH; k += 256) own[k / WIDTH][k % WIDTH] = means[blockIdx.x * 8 * WIDTH + k];
    __syncthreads();
    float sums[4] = {};
    for (int k = 0; k < WIDTH; k += 4)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[j] += own[warp][k + j] * there[(k + j) * NARROW + lane];
    narrow[warp][lane] = fmaxf(sums[0] + sums[1] + (sums[2] + sums[3]), 0.0f);
    __syncthreads();
    for (int channel = t; channel < WIDTH; channel += 256) {
        float values[8] = {};
        for (int k = 0; k < NARROW; k++) {
            const float weight = back[k * WIDTH + channel];
#pragma unroll
            for (int sample = 0; sample < 8; sample++) values[sample] += narrow[sample][k] * weight;
        }
#pragma unroll
        for (int sample = 0; sample < 8; sample++) out[(blockIdx.x * 8 + sample) * WIDTH + channel] = gate(values[sample]);
    }
}
__global__ void turn_weights(const float *there, float *turned) { turned[threadIdx.x * NARROW + blockIdx.x] = there[blockIdx.x * WIDTH + threadIdx.x]; }

Study gates("channel_gates_tree_for_each_narrow_value", "models", 8192, "gates of 512 channels of 8192 pictures by way of 32 narrow values",
    "the block adds up each of the 32 narrow values in a tree, ten barriers for each",
    {{"warps", "a warp a narrow value, added up by shuffles", {"barriers"}}, {"samples", "eight pictures a block, a lane a narrow value: nothing is added across lanes", {"barriers", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *means = b.random<float>(n * WIDTH), *there = b.random<float>(NARROW * WIDTH, -0.1, 0.1), *back = b.random<float>(NARROW * WIDTH);
        float *turned = b.allocate<float>(NARROW * WIDTH), *out = b.output<float>(n * WIDTH);
        launch(turn_weights, NARROW, WIDTH, 0, there, turned)();
        return {{"flawed", launch(channel_gates, n, 256, 0, means, there, back, out)}, {"warps", launch(channel_gates_warps, n, 256, 0, means, there, back, out)},
            {"samples", launch(channel_gates_samples, n / 8, 256, 0, means, turned, back, out)}};
    });

// --- overlapping frames of sound to coefficients of a codec ---

constexpr int HOP = 256, FRAME = 512, LINES = 256;

__global__ void __launch_bounds__(256) frame_lines(const __half *__restrict__ signal, const __half *__restrict__ basis, float *__restrict__ out) {
    constexpr int TILE = 64, DEEP = 16;
    __shared__ float frames[DEEP][TILE + 4], waves[DEEP][TILE];
    const int t = threadIdx.x, x = t % 16 * 4, y = t / 16 * 4, line = blockIdx.x * TILE, frame = blockIdx.y * TILE;
    float sums[4][4] = {};
    for (int start = 0; start < FRAME; start += DEEP) {
        for (int k = t; k < TILE * DEEP; k += 256) {
            frames[k % DEEP][k / DEEP] = __half2float(signal[(frame + k / DEEP) * HOP + start + k % DEEP]);
            waves[k / TILE][k % TILE] = __half2float(basis[(start + k / TILE) * LINES + line + k % TILE]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const float4 a = *reinterpret_cast<const float4 *>(&frames[k][y]), w = *reinterpret_cast<const float4 *>(&waves[k][x]);
            const float left[4] = {a.x, a.y, a.z, a.w}, right[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sums[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) *reinterpret_cast<float4 *>(out + (frame + y + i) * LINES + line + x) = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}
// Four warps across, the others down: each has ROWS x COLUMNS tiles of 16 x 16; both operands come through shared memory.
template <int TALL_TILE, int WIDE_TILE, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(TALL_TILE / (16 * ROWS) * (WIDE_TILE / (16 * COLUMNS)) * 32) frame_lines_tensor(const __half *__restrict__ signal, const __half *__restrict__ basis, float *__restrict__ out) {
    using namespace nvcuda::wmma;
    constexpr int DEEP = 32, ACROSS = WIDE_TILE / (16 * COLUMNS), THREADS = TALL_TILE / (16 * ROWS) * ACROSS * 32, PITCH_A = DEEP + 8, PITCH_B = WIDE_TILE + 8;
    __shared__ __align__(16) __half frames[TALL_TILE * PITCH_A];
    __shared__ __align__(16) __half waves[DEEP * PITCH_B];
    const int t = threadIdx.x, warp = t / 32, y = warp / ACROSS * 16 * ROWS, x = warp % ACROSS * 16 * COLUMNS, line = blockIdx.x * WIDE_TILE, frame = blockIdx.y * TALL_TILE;
    fragment<accumulator, 16, 16, 16, float> sums[ROWS][COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) fill_fragment(sums[i][j], 0.0f);
    for (int start = 0; start < FRAME; start += DEEP) {
        for (int k = t; k < TALL_TILE * DEEP / 8; k += THREADS)
            *reinterpret_cast<uint4 *>(frames + k / 4 * PITCH_A + k % 4 * 8) = *reinterpret_cast<const uint4 *>(signal + (frame + k / 4) * HOP + start + k % 4 * 8);
        for (int k = t; k < WIDE_TILE * DEEP / 8; k += THREADS)
            *reinterpret_cast<uint4 *>(waves + k / (WIDE_TILE / 8) * PITCH_B + k % (WIDE_TILE / 8) * 8) = *reinterpret_cast<const uint4 *>(basis + (start + k / (WIDE_TILE / 8)) * LINES + line + k % (WIDE_TILE / 8) * 8);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEEP; k += 16) {
            fragment<matrix_a, 16, 16, 16, __half, row_major> left[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) load_matrix_sync(left[i], frames + (y + 16 * i) * PITCH_A + k, PITCH_A);
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                fragment<matrix_b, 16, 16, 16, __half, row_major> right;
                load_matrix_sync(right, waves + k * PITCH_B + x + 16 * j, PITCH_B);
#pragma unroll
                for (int i = 0; i < ROWS; i++) mma_sync(sums[i][j], left[i], right, sums[i][j]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) store_matrix_sync(out + (frame + y + 16 * i) * LINES + line + x + 16 * j, sums[i][j], LINES, mem_row_major);
}

Study frames("codec_frames_times_waves_on_the_fma_pipe", "sound", 32768, "256 coefficients of 32768 half overlapping frames of 512 half samples, as a product with a matrix of waves",
    "half samples and half waves are made floats and multiplied on the FMA pipe",
    {{"tensor", "tensor cores, the same tiles of 64 x 64", {"tensor_cores_idle"}}, {"wide", "tensor cores, tiles of 128 x 128", {"tensor_cores_idle"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        const __half *signal = b.random<__half>((n + 1) * HOP), *basis = b.random<__half>(FRAME * LINES, -0.1, 0.1);
        float *out = b.output<float>(n * LINES);
        return {{"flawed", launch(frame_lines, dim3(LINES / 64, n / 64), 256, 0, signal, basis, out)}, {"tensor", launch(frame_lines_tensor<64, 64, 2, 1>, dim3(LINES / 64, n / 64), 256, 0, signal, basis, out)},
            {"wide", launch(frame_lines_tensor<128, 128, 4, 2>, dim3(LINES / 128, n / 128), 256, 0, signal, basis, out)}};
    });

// --- a step of an optimiser that divides by the spread of gradients: without a flaw ---

__device__ __forceinline__ float spread_step(float weight, float slope, float &square, float &mean, float rate) {
    square = 0.99f * square + 0.01f * slope * slope;
    mean = 0.99f * mean + 0.01f * slope;
    return weight - rate * slope * rsqrtf(square - mean * mean + 1e-4f);
}
__global__ void __launch_bounds__(256) centred_step(const float4 *__restrict__ weights, const float4 *__restrict__ slopes, float4 *__restrict__ squares, float4 *__restrict__ means, float4 *__restrict__ out, int count, float rate) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 w = weights[i], g = slopes[i];
    float4 s = squares[i], m = means[i], next;
    next.x = spread_step(w.x, g.x, s.x, m.x, rate), next.y = spread_step(w.y, g.y, s.y, m.y, rate);
    next.z = spread_step(w.z, g.z, s.z, m.z, rate), next.w = spread_step(w.w, g.w, s.w, m.w, rate);
    squares[i] = s, means[i] = m, out[i] = next;
}

Study centred("sound_centred_step", "training", 1 << 22, "a step for 16777216 weights by gradients over the spread that they have had", "", {}, [](Buffers &b, long n) -> Sides {
    const float4 *weights = reinterpret_cast<const float4 *>(b.random<float>(n * 4)), *slopes = reinterpret_cast<const float4 *>(b.random<float>(n * 4));
    float *squares = b.changed(b.random<float>(n * 4, 0.3, 1.0), n * 4), *means = b.changed(b.random<float>(n * 4, -0.5, 0.5), n * 4);
    return {{"sound", launch(centred_step, blocks(n, 256), 256, 0, weights, slopes, reinterpret_cast<float4 *>(squares), reinterpret_cast<float4 *>(means), reinterpret_cast<float4 *>(b.output<float>(n * 4)), n, 1e-3f)}};
});

}  // namespace
