// canny_thinning_atan2, side flawed: let neighbouring threads load neighbouring addresses: loads along rows, the neighbour chosen in shared memory or by shuffles.
#include "../tried.cuh"

__global__ void thin_edges(const float *gx, const float *gy, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    int at = y * width + x;
    float angle = atan2f(gy[at], gx[at]) * 180.f / 3.14159265f;
    if (angle < 0) angle += 180.f;
    int step = angle < 22.5f || angle >= 157.5f ? 1 : angle < 67.5f ? width + 1 : angle < 112.5f ? width : width - 1;
    float m = sqrtf(gx[at] * gx[at] + gy[at] * gy[at]);
    float a = sqrtf(gx[at + step] * gx[at + step] + gy[at + step] * gy[at + step]);
    float b = sqrtf(gx[at - step] * gx[at - step] + gy[at - step] * gy[at - step]);
    out[at] = m >= a && m >= b ? m : 0.f;
}
constexpr int WIDE = 64, HIGH = 4, PITCH = 96;  // a multiple of 32: a bank is asked for at most two words

// Both components, of the block's pixels and those around them, in shared memory.
__global__ void __launch_bounds__(256) thin_edges_tile(const float *gx, const float *gy, float *out, int width, int height) {
    __shared__ float tile_x[(HIGH + 2) * PITCH], tile_y[(HIGH + 2) * PITCH];
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    auto load = [&](int row, int column) {
        const int from = min(max(static_cast<int>(blockIdx.y) * HIGH + row - 1, 0), height - 1) * width + min(max(static_cast<int>(blockIdx.x) * WIDE + column - 1, 0), width - 1);
        tile_x[row * PITCH + column] = gx[from], tile_y[row * PITCH + column] = gy[from];
    };
    const int row = threadIdx.y, column = threadIdx.x, thread = row * WIDE + column;
    load(row + 1, column + 1);  // as the sectors lie
    if (row < 2) load(row * (HIGH + 1), column + 1);
    else if (thread >= 256 - 2 * (HIGH + 2)) load((255 - thread) / 2, thread % 2 * (WIDE + 1));
    __syncthreads();
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int at = (row + 1) * PITCH + column + 1;
    float angle = atan2f(tile_y[at], tile_x[at]) * 180.f / 3.14159265f;
    if (angle < 0) angle += 180.f;
    int step = angle < 22.5f || angle >= 157.5f ? 1 : angle < 67.5f ? PITCH + 1 : angle < 112.5f ? PITCH : PITCH - 1;
    float m = sqrtf(tile_x[at] * tile_x[at] + tile_y[at] * tile_y[at]);
    float a = sqrtf(tile_x[at + step] * tile_x[at + step] + tile_y[at + step] * tile_y[at + step]);
    float b = sqrtf(tile_x[at - step] * tile_x[at - step] + tile_y[at - step] * tile_y[at - step]);
    out[y * width + x] = m >= a && m >= b ? m : 0.f;
}
// The magnitudes in shared memory: a root a pixel.
__global__ void __launch_bounds__(256) thin_edges_magnitudes(const float *gx, const float *gy, float *out, int width, int height) {
    __shared__ float tile[(HIGH + 2) * PITCH];
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    float u, v;
    auto load = [&](int row, int column) {
        const int from = min(max(static_cast<int>(blockIdx.y) * HIGH + row - 1, 0), height - 1) * width + min(max(static_cast<int>(blockIdx.x) * WIDE + column - 1, 0), width - 1);
        u = gx[from], v = gy[from];
        tile[row * PITCH + column] = sqrtf(u * u + v * v);
    };
    const int row = threadIdx.y, column = threadIdx.x, thread = row * WIDE + column;
    if (row < 2) load(row * (HIGH + 1), column + 1);
    else if (thread >= 256 - 2 * (HIGH + 2)) load((255 - thread) / 2, thread % 2 * (WIDE + 1));
    load(row + 1, column + 1);  // last: the thread's own u and v
    __syncthreads();
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int at = (row + 1) * PITCH + column + 1;
    float angle = atan2f(v, u) * 180.f / 3.14159265f;
    if (angle < 0) angle += 180.f;
    int step = angle < 22.5f || angle >= 157.5f ? 1 : angle < 67.5f ? PITCH + 1 : angle < 112.5f ? PITCH : PITCH - 1;
    float m = tile[at], a = tile[at + step], b = tile[at - step];
    out[y * width + x] = m >= a && m >= b ? m : 0.f;
}
// Lanes load their own column of three rows and exchange magnitudes; only a warp's outer lanes load as before.
__global__ void __launch_bounds__(256) thin_edges_shuffles(const float *gx, const float *gy, float *out, int width, int height) {
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y, lane = threadIdx.x % 32;
    if (y < 1 || y >= height - 1) return;  // whole warps
    const int at = y * width + x;
    auto magnitude = [&](int i) { return sqrtf(gx[i] * gx[i] + gy[i] * gy[i]); };
    float m = magnitude(at), above = magnitude(at - width), below = magnitude(at + width);
    float angle = atan2f(gy[at], gx[at]) * 180.f / 3.14159265f;
    if (angle < 0) angle += 180.f;
    const bool level = angle < 22.5f || angle >= 157.5f;
    const int right = level || angle < 67.5f ? 1 : angle < 112.5f ? 0 : -1;
    const float a_level = __shfl_sync(~0u, m, lane + right), a_below = __shfl_sync(~0u, below, lane + right);
    const float b_level = __shfl_sync(~0u, m, lane - right), b_above = __shfl_sync(~0u, above, lane - right);
    if (x < 1 || x >= width - 1) return;
    const int step = level ? 1 : width + right;
    float a = level ? a_level : a_below, b = level ? b_level : b_above;
    if (lane + right < 0 || lane + right > 31) a = magnitude(at + step);
    if (lane - right < 0 || lane - right > 31) b = magnitude(at - step);
    out[at] = m >= a && m >= b ? m : 0.f;
}

int main() {
    const int n = 4096;
    const size_t count = static_cast<size_t>(n) * n;
    std::vector<float> u(count), v(count);  // as the study: exact squares, so ties and directions do not depend on rounding
    for (size_t i = 0; i < count; ++i) {
        const unsigned r = hashed(static_cast<unsigned>(i));
        u[i] = static_cast<int>(r % 255) * 0.125f - 15.9375f, v[i] = static_cast<int>(r / 256 % 253) * 0.125f - 15.8125f;
    }
    const float *gx = copied(u), *gy = copied(v);
    float *out = get<float>(count);
    auto launch = [=](auto kernel) { return [=] { kernel<<<dim3(n / WIDE, n / HIGH), dim3(WIDE, HIGH)>>>(gx, gy, out, n, n); }; };
    judge({
        {"as_it_is", launch(thin_edges)},
        {"tile", launch(thin_edges_tile)},
        {"tile_of_magnitudes", launch(thin_edges_magnitudes)},
        {"rows_and_shuffles", launch(thin_edges_shuffles)},
    }, {{out, count}}, [=] { check(cudaMemsetAsync(out, 0, count * sizeof(float))); });  // no kernel writes the edges
}
