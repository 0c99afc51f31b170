// Pictures and video: seams, backgrounds, recursive filters. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- cheapest seams of a batch of pictures: cost of the best path from above, row by row ---

constexpr int SEAM_WIDTH = 1024, SEAM_ROWS = 768;

__global__ void __launch_bounds__(SEAM_WIDTH) seam_costs(const float *energy, float *cost, int rows) {
    __shared__ float last[SEAM_WIDTH + 2];
    int x = threadIdx.x;
    size_t at = static_cast<size_t>(blockIdx.x) * rows * SEAM_WIDTH + x;
    if (x == 0) last[0] = last[SEAM_WIDTH + 1] = INFINITY;
    last[x + 1] = cost[at] = energy[at];
    __syncthreads();
    for (int y = 1; y < rows; ++y) {
        at += SEAM_WIDTH;
        float best = energy[at] + fminf(last[x + 1], fminf(last[x], last[x + 2]));
        __syncthreads();
        last[x + 1] = cost[at] = best;
        __syncthreads();
    }
}
// Two rows in shared memory in turn, and the energy of the row after is under way during the barrier.
__global__ void __launch_bounds__(SEAM_WIDTH) seam_costs_ahead(const float *__restrict__ energy, float *__restrict__ cost, int rows) {
    __shared__ float kept[2][SEAM_WIDTH + 2];
    int x = threadIdx.x;
    size_t at = static_cast<size_t>(blockIdx.x) * rows * SEAM_WIDTH + x;
    if (x < 2) kept[x][0] = kept[x][SEAM_WIDTH + 1] = INFINITY;
    kept[0][x + 1] = cost[at] = energy[at];
    float next = energy[at + SEAM_WIDTH], after = energy[at + 2 * SEAM_WIDTH];
    __syncthreads();
    for (int y = 1; y < rows; ++y) {
        at += SEAM_WIDTH;
        float now = next;
        next = after;
        if (y + 2 < rows) after = energy[at + 2 * SEAM_WIDTH];
        const float *last = kept[(y - 1) % 2];
        kept[y % 2][x + 1] = cost[at] = now + fminf(last[x + 1], fminf(last[x], last[x + 2]));
        __syncthreads();
    }
}
// Eight rows between barriers: a warp holds 128 columns in registers, of which 112 in the middle stay right.
constexpr int SEAM_OWN = 112, SEAM_WARPS = 10;

__global__ void __launch_bounds__(32 * SEAM_WARPS) seam_costs_eight_rows(const float *__restrict__ energy, float *__restrict__ cost, int rows) {
    __shared__ float4 kept[2][(SEAM_OWN * SEAM_WARPS + 16) / 4];
    int lane = threadIdx.x % 32, column = threadIdx.x / 32 * SEAM_OWN - 8 + 4 * lane, place = (column + 8) / 4;
    bool inside = column >= 0 && column < SEAM_WIDTH, own = inside && lane >= 2 && lane < 30;
    size_t at = static_cast<size_t>(blockIdx.x) * rows * SEAM_WIDTH + min(max(column, 0), SEAM_WIDTH - 4);
    const float4 far = make_float4(INFINITY, INFINITY, INFINITY, INFINITY);
    float4 v = inside ? make_float4(0.f, 0.f, 0.f, 0.f) : far;
    for (int y = 0; y < rows; y += 8) {
        float4 e[8];
#pragma unroll
        for (int r = 0; r < 8; ++r) e[r] = *reinterpret_cast<const float4 *>(energy + at + r * SEAM_WIDTH);
        if (y && inside) v = kept[y / 8 % 2][place];
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            float left = __shfl_up_sync(~0u, v.w, 1), right = __shfl_down_sync(~0u, v.x, 1);
            float4 w = v;
            v.x = e[r].x + fminf(w.x, fminf(left, w.y)), v.y = e[r].y + fminf(w.y, fminf(w.x, w.z));
            v.z = e[r].z + fminf(w.z, fminf(w.y, w.w)), v.w = e[r].w + fminf(w.w, fminf(w.z, right));
            if (!inside) v = far;
            if (own) *reinterpret_cast<float4 *>(cost + at + r * SEAM_WIDTH) = v;
        }
        at += 8 * SEAM_WIDTH;
        if (own) kept[(y / 8 + 1) % 2][place] = v;
        __syncthreads();
    }
}

Study seams("seam_costs_two_barriers_a_row", "images", 128, "cost of the cheapest seam to every pixel of 128 pictures of 1024 x 768",
    "two barriers of 1024 threads a row, and each row's energy is asked for only after them",
    {{"ahead", "two rows in turn: one barrier, energies two rows ahead", {"barriers", "memory_latency"}},
        {"eight_rows", "warps redo eight columns at their sides: one barrier for eight rows", {"barriers", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *energy = b.random<float>(n * SEAM_WIDTH * SEAM_ROWS, 0, 1);
        float *cost = b.output<float>(n * SEAM_WIDTH * SEAM_ROWS);
        return {{"flawed", launch(seam_costs, n, SEAM_WIDTH, 0, energy, cost, SEAM_ROWS)},
            {"ahead", launch(seam_costs_ahead, n, SEAM_WIDTH, 0, energy, cost, SEAM_ROWS)},
            {"eight_rows", launch(seam_costs_eight_rows, n, 32 * SEAM_WARPS, 0, energy, cost, SEAM_ROWS)}};
    });

// --- background of a video: three Gaussians a pixel, moved towards what is seen ---

struct Gaussian {
    float weight, mean, variance;
};
struct Mixture {
    Gaussian of[3];
};
// Returns whether the pixel is foreground.
__device__ __forceinline__ bool learn(Gaussian *g, float x) {
    const float rate = 0.02f;
    bool found = false, known = false;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        float d = x - g[k].mean;
        bool match = !found && d * d < 6.25f * g[k].variance;
        known |= match && g[k].weight > 0.25f;
        found |= match;
        g[k].weight = fmaf(rate, (match ? 1.f : 0.f) - g[k].weight, g[k].weight);
        if (match) {
            g[k].mean = fmaf(rate, d, g[k].mean);
            g[k].variance = fmaxf(fmaf(rate, fmaf(d, d, -g[k].variance), g[k].variance), 4.f);
        }
    }
    if (!found) {  // the least likely one gives way
        bool second = g[1].weight < g[0].weight, third = g[2].weight < fminf(g[0].weight, g[1].weight);
#pragma unroll
        for (int k = 0; k < 3; ++k)
            if (third ? k == 2 : k == second) g[k].weight = 0.05f, g[k].mean = x, g[k].variance = 225.f;
    }
    return !known;
}
__global__ void background(const unsigned char *frame, const Mixture *before, Mixture *after, unsigned char *mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Mixture m = before[i];
    mask[i] = learn(m.of, frame[i]) ? 255 : 0;
    after[i] = m;
}
// The nine numbers of a pixel lie in planes.
__global__ void background_planes(const unsigned char *__restrict__ frame, const float *__restrict__ before, float *__restrict__ after,
    unsigned char *__restrict__ mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Gaussian g[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) g[k] = {before[(3 * k) * n + i], before[(3 * k + 1) * n + i], before[(3 * k + 2) * n + i]};
    mask[i] = learn(g, frame[i]) ? 255 : 0;
#pragma unroll
    for (int k = 0; k < 3; ++k) after[(3 * k) * n + i] = g[k].weight, after[(3 * k + 1) * n + i] = g[k].mean, after[(3 * k + 2) * n + i] = g[k].variance;
}
// Records stay, but pass through shared memory, 16 bytes a thread. n must be a multiple of 256.
__global__ void __launch_bounds__(256) background_staged(const unsigned char *__restrict__ frame, const float4 *__restrict__ before,
    float4 *__restrict__ after, unsigned char *__restrict__ mask) {
    __shared__ float4 staged[576];
    size_t first = static_cast<size_t>(blockIdx.x) * 576;
    for (int j = threadIdx.x; j < 576; j += 256) staged[j] = before[first + j];
    int i = blockIdx.x * 256 + threadIdx.x;
    float seen = frame[i];
    __syncthreads();
    Gaussian *mine = reinterpret_cast<Gaussian *>(staged) + 3 * threadIdx.x, g[3] = {mine[0], mine[1], mine[2]};
    mask[i] = learn(g, seen) ? 255 : 0;
    mine[0] = g[0], mine[1] = g[1], mine[2] = g[2];
    __syncthreads();
    for (int j = threadIdx.x; j < 576; j += 256) after[first + j] = staged[j];
}
// planes[k][i] of records[i][k] or the other way round, for the comparison.
__global__ void records_of_planes(const float *planes, float *records, int n, int fields) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n * fields; i += gridDim.x * blockDim.x) records[i] = planes[i % fields * n + i / fields];
}
__global__ void planes_of_records(const float *records, float *planes, int n, int fields) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n * fields; i += gridDim.x * blockDim.x) planes[i % fields * n + i / fields] = records[i];
}
// Plausible mixtures: weights of 0.1 to 0.6, means of 0 to 255, variances of 10 to 200.
__global__ void scale_mixtures(float *records, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 9 * n; i += gridDim.x * blockDim.x)
        records[i] = i % 3 == 0 ? 0.1f + 0.5f * records[i] : i % 3 == 1 ? 255.f * records[i] : 10.f + 190.f * records[i];
}

Study mixture("background_mixture_by_records", "video", 3840 * 2160, "background and foreground of a frame of 3840 x 2160, three Gaussians a pixel",
    "a thread reads and writes its pixel's record of 36 bytes word by word",
    {{"planes", "nine planes", {"uncoalesced_access"}}, {"staged", "records through shared memory, 16 bytes a thread", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned char *frame = b.random<unsigned char>(n, 0, 256), *mask = b.output<unsigned char>(n);
        float *before = b.random<float>(9 * n, 0, 1), *planes = b.allocate<float>(9 * n);
        float *after = b.output<float>(9 * n), *after_planes = b.allocate<float>(9 * n);
        launch(scale_mixtures, 1024, 256, 0, before, n)();
        launch(planes_of_records, 1024, 256, 0, before, planes, n, 9)();
        return {{"flawed", launch(background, blocks(n, 256), 256, 0, frame, reinterpret_cast<Mixture *>(before), reinterpret_cast<Mixture *>(after), mask, n)},
            {"planes", launch(background_planes, blocks(n, 256), 256, 0, frame, planes, after_planes, mask, n), {}, 1,
                launch(records_of_planes, 1024, 256, 0, after_planes, after, n, 9)},
            {"staged", launch(background_staged, n / 256, 256, 0, frame, reinterpret_cast<float4 *>(before), reinterpret_cast<float4 *>(after), mask)}};
    });

// --- a recursive Gaussian along rows: third order, tiles of 32 x 32 through shared memory ---

struct Recursive {
    float in, one, two, three;
};
__device__ __forceinline__ float recur(Recursive f, float x, float &y1, float &y2, float &y3) {
    float y = fmaf(f.one, y1, fmaf(f.two, y2, fmaf(f.three, y3, f.in * x)));
    y3 = y2, y2 = y1, y1 = y;
    return y;
}
// A warp takes 32 rows: tiles come and go side by side, in between each lane walks along its row.
template <int pitch, bool rotated>
__device__ __forceinline__ void recursive_rows(const float *in, float *out, int width, Recursive f) {
    __shared__ float tiles[4][32 * pitch];
    float *tile = tiles[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    size_t first = (static_cast<size_t>(blockIdx.x) * 4 + threadIdx.x / 32) * 32 * width;
    float y1 = 0.f, y2 = 0.f, y3 = 0.f;
    for (int x = 0; x < width; x += 32) {
#pragma unroll 8
        for (int r = 0; r < 32; ++r) tile[r * pitch + (rotated ? (lane + r) % 32 : lane)] = in[first + static_cast<size_t>(r) * width + x + lane];
        __syncwarp();
#pragma unroll 8
        for (int c = 0; c < 32; ++c) {
            float &here = tile[lane * pitch + (rotated ? (c + lane) % 32 : c)];
            here = recur(f, here, y1, y2, y3);
        }
        __syncwarp();
#pragma unroll 8
        for (int r = 0; r < 32; ++r) out[first + static_cast<size_t>(r) * width + x + lane] = tile[r * pitch + (rotated ? (lane + r) % 32 : lane)];
        __syncwarp();
    }
}
__global__ void __launch_bounds__(128) recursive_gaussian(const float *in, float *out, int width, Recursive f) { recursive_rows<32, false>(in, out, width, f); }
__global__ void __launch_bounds__(128) recursive_gaussian_padded(const float *in, float *out, int width, Recursive f) { recursive_rows<33, false>(in, out, width, f); }
__global__ void __launch_bounds__(128) recursive_gaussian_rotated(const float *in, float *out, int width, Recursive f) { recursive_rows<32, true>(in, out, width, f); }
// The next tile is under way in registers while the lanes walk.
__global__ void __launch_bounds__(128) recursive_gaussian_ahead(const float *__restrict__ in, float *__restrict__ out, int width, Recursive f) {
    __shared__ float tiles[4][32][33];
    float(*tile)[33] = tiles[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    size_t first = (static_cast<size_t>(blockIdx.x) * 4 + threadIdx.x / 32) * 32 * width + lane;
    float y1 = 0.f, y2 = 0.f, y3 = 0.f, next[32];
#pragma unroll
    for (int r = 0; r < 32; ++r) next[r] = in[first + static_cast<size_t>(r) * width];
    for (int x = 0; x < width; x += 32) {
#pragma unroll
        for (int r = 0; r < 32; ++r) tile[r][lane] = next[r];
        __syncwarp();
        if (x + 32 < width)
#pragma unroll
            for (int r = 0; r < 32; ++r) next[r] = in[first + static_cast<size_t>(r) * width + x + 32];
#pragma unroll 8
        for (int c = 0; c < 32; ++c) tile[lane][c] = recur(f, tile[lane][c], y1, y2, y3);
        __syncwarp();
#pragma unroll 8
        for (int r = 0; r < 32; ++r) out[first + static_cast<size_t>(r) * width + x] = tile[r][lane];
        __syncwarp();
    }
}

Study recursive("recursive_blur_tiles_without_padding", "images", 64, "a recursive filter of third order along the rows of 64 pictures of 1024 x 1024",
    "lanes walk along the rows of a tile of 32 x 32 in shared memory: all of them in one bank",
    {{"padded", "rows of 33 words", {"shared_bank_conflicts"}}, {"rotated", "each row turned by its number", {"shared_bank_conflicts"}},
        {"ahead", "rows of 33 words, the next tile loaded meanwhile", {"shared_bank_conflicts", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 1024;
        const float *in = b.random<float>(n * width * width, 0, 1);
        float *out = b.output<float>(n * width * width);
        Recursive f{0.04f, 1.9f, -1.2f, 0.26f};  // poles well inside of the unit circle, gain one
        unsigned grid = n * width / 128;
        return {{"flawed", launch(recursive_gaussian, grid, 128, 0, in, out, width, f)},
            {"padded", launch(recursive_gaussian_padded, grid, 128, 0, in, out, width, f)},
            {"rotated", launch(recursive_gaussian_rotated, grid, 128, 0, in, out, width, f)},
            {"ahead", launch(recursive_gaussian_ahead, grid, 128, 0, in, out, width, f)}};
    });

}  // namespace
