// volume_smoothed_plane_after_plane, side columns: let a thread compute four neighbouring results along x, what they share in registers.
#include "../tried.cuh"

struct Volume {
    const float *cells;
    int width, rows, depth;  // without the first and last of each
    __device__ int row() const { return width + 2; }
    __device__ int plane() const { return row() * (rows + 2); }
};
__device__ __forceinline__ float flow(float own, float other) {
    const float d = other - own;
    return __fdividef(d, 1.0f + 25.0f * d * d);
}
__device__ __forceinline__ float smoothed(const float *c, int row, float above, float own, float below) {
    return own + 0.15f * (flow(own, above) + flow(own, below) + flow(own, c[-row]) + flow(own, c[row]) + flow(own, c[-1]) + flow(own, c[1]));
}
__device__ __forceinline__ void smooth_cell(const Volume &v, float *out, int x, int y, int z) {
    if (x > v.width || y > v.rows) return;
    const size_t at = static_cast<size_t>(z) * v.plane() + y * v.row() + x;
    const float *c = v.cells + at;
    out[at] = smoothed(c, v.row(), c[-v.plane()], c[0], c[v.plane()]);
}
// As in the study.
__global__ void __launch_bounds__(256) smooth_columns(const Volume v, float *__restrict__ out) {
    smooth_cell(v, out, blockIdx.y * 64 + threadIdx.x + 1, blockIdx.z * 4 + threadIdx.y + 1, blockIdx.x + 1);
}

__device__ __forceinline__ float of_seven(float own, float above, float below, float before, float after, float left, float right) {
    return own + 0.15f * (flow(own, above) + flow(own, below) + flow(own, before) + flow(own, after) + flow(own, left) + flow(own, right));
}
// Four neighbours along x a thread, x = 4 q + 1 and on, WIDE threads across: 22 words are loaded for them, one by one.
template <int WIDE>
__global__ void __launch_bounds__(256) smooth_four(const Volume v, float *__restrict__ out) {
    const int x = (blockIdx.y * WIDE + threadIdx.x) * 4 + 1, y = blockIdx.z * (256 / WIDE) + threadIdx.y + 1;
    if (x > v.width || y > v.rows) return;  // the width is a multiple of 4
    const int row = v.row(), plane = v.plane();
    const size_t at = static_cast<size_t>(blockIdx.x + 1) * plane + y * row + x;
    const float *c = v.cells + at;
    float line[6];
#pragma unroll
    for (int k = 0; k < 6; k++) line[k] = c[k - 1];
#pragma unroll
    for (int k = 0; k < 4; k++) out[at + k] = of_seven(line[k + 1], c[k - plane], c[k + plane], c[k - row], c[k + row], line[k], line[k + 2]);
}
// Four neighbours that lie in 16 aligned bytes: x = 4 q, or 4 q - 2 in odd rows (a row is 2 words longer than a multiple of 4, a plane is a multiple).
// Rows before and after come in halves; the edges of the own row come one by one or, SHUFFLED, from the lanes beside.
template <int WIDE, bool SHUFFLED>
__global__ void __launch_bounds__(256) smooth_four_aligned(const Volume v, float *__restrict__ out) {
    const int y = blockIdx.z * (256 / WIDE) + threadIdx.y + 1, x = (blockIdx.y * WIDE + threadIdx.x) * 4 - (y & 1) * 2, lane = threadIdx.x % 32;
    const bool works = x <= v.width && y <= v.rows;
    if (!SHUFFLED && !works) return;
    const int row = v.row(), plane = v.plane();
    const size_t at = works ? static_cast<size_t>(blockIdx.x + 1) * plane + y * row + x : plane;
    const float *c = v.cells + at;  // what is loaded beyond the ends of a row is in the volume and not used
    const float4 own = *(const float4 *)c, above = *(const float4 *)(c - plane), below = *(const float4 *)(c + plane);
    const float2 before = *(const float2 *)(c - row), before2 = *(const float2 *)(c - row + 2), after = *(const float2 *)(c + row), after2 = *(const float2 *)(c + row + 2);
    float left, right;
    if (SHUFFLED) {
        left = __shfl_up_sync(~0u, own.w, 1), right = __shfl_down_sync(~0u, own.x, 1);
        if (lane % WIDE == 0) left = c[-1];
        if (lane % WIDE == (WIDE < 32 ? WIDE : 32) - 1) right = c[4];
        if (!works) return;
        if (x + 4 > v.width) right = c[4];  // the lane beside does not work
    } else left = c[-1], right = c[4];
    float4 r;
    r.x = of_seven(own.x, above.x, below.x, before.x, after.x, left, own.y);
    r.y = of_seven(own.y, above.y, below.y, before.y, after.y, own.x, own.z);
    r.z = of_seven(own.z, above.z, below.z, before2.x, after2.x, own.y, own.w);
    r.w = of_seven(own.w, above.w, below.w, before2.y, after2.y, own.z, right);
    if (x > 0 && x + 3 <= v.width) *(float4 *)(out + at) = r;
    else
#pragma unroll
        for (int k = 0; k < 4; k++) if (x + k > 0 && x + k <= v.width) out[at + k] = (&r.x)[k];
}

int main() {
    const int n = 4096, depth = 14;
    const size_t count = size_t(n + 2) * (n / 2 + 2) * (depth + 2);
    const Volume v{drawn<float>(count, 0.0, 1.0, 1), n, n / 2, depth};
    float *out = get<float>(count);
    judge({
        {"as_it_is", [=] { smooth_columns<<<dim3(depth, 64, 512), dim3(64, 4)>>>(v, out); }},
        {"four_along_x_64x4", [=] { smooth_four<64><<<dim3(depth, 16, 512), dim3(64, 4)>>>(v, out); }},
        {"four_along_x_16x16", [=] { smooth_four<16><<<dim3(depth, 64, 128), dim3(16, 16)>>>(v, out); }},
        {"four_aligned_64x4", [=] { smooth_four_aligned<64, false><<<dim3(depth, 17, 512), dim3(64, 4)>>>(v, out); }},
        {"four_aligned_32x8", [=] { smooth_four_aligned<32, false><<<dim3(depth, 33, 256), dim3(32, 8)>>>(v, out); }},
        {"four_aligned_16x16", [=] { smooth_four_aligned<16, false><<<dim3(depth, 65, 128), dim3(16, 16)>>>(v, out); }},
        {"four_aligned_32x8_shuffled", [=] { smooth_four_aligned<32, true><<<dim3(depth, 33, 256), dim3(32, 8)>>>(v, out); }},
    }, {{out, count}}, [=] { check(cudaMemsetAsync(out, 0, count * sizeof(float))); });  // no form writes the outermost cells
}
