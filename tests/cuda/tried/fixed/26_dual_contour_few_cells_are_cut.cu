// dual_contour_few_cells_are_cut, side listed: smaller blocks, or one wave of blocks that loop over the work.
#include "../tried.cuh"

struct Samples {
    const float *data;
    int size;
    __device__ __forceinline__ float operator()(int x, int y, int z) const {
        x = min(max(x, 0), size - 1), y = min(max(y, 0), size - 1), z = min(max(z, 0), size - 1);
        return data[(z * size + y) * size + x];
    }
    __device__ __forceinline__ float3 slope(int x, int y, int z) const {
        const Samples &f = *this;
        return make_float3(0.5f * (f(x + 1, y, z) - f(x - 1, y, z)), 0.5f * (f(x, y + 1, z) - f(x, y - 1, z)), 0.5f * (f(x, y, z + 1) - f(x, y, z - 1)));
    }
};
__device__ __forceinline__ float4 cell_vertex(Samples f, int x, int y, int z) {
    float xx = 0.f, xy = 0.f, xz = 0.f, yy = 0.f, yz = 0.f, zz = 0.f, rx = 0.f, ry = 0.f, rz = 0.f, mx = 0.f, my = 0.f, mz = 0.f, cuts = 0.f;
    for (int edge = 0; edge < 12; ++edge) {
        int axis = edge / 4, one = edge & 1, two = edge >> 1 & 1;
        int ax = axis == 0 ? 0 : one, ay = axis == 1 ? 0 : axis == 0 ? one : two, az = axis == 2 ? 0 : two;
        int bx = ax + (axis == 0), by = ay + (axis == 1), bz = az + (axis == 2);
        float a = f(x + ax, y + ay, z + az), b = f(x + bx, y + by, z + bz);
        if ((a < 0.f) == (b < 0.f)) continue;
        float t = a / (a - b);
        float3 p = f.slope(x + ax, y + ay, z + az), q = f.slope(x + bx, y + by, z + bz);
        float nx = fmaf(t, q.x - p.x, p.x), ny = fmaf(t, q.y - p.y, p.y), nz = fmaf(t, q.z - p.z, p.z);
        float scale = rsqrtf(fmaf(nx, nx, fmaf(ny, ny, fmaf(nz, nz, 1e-12f))));
        nx *= scale, ny *= scale, nz *= scale;
        float cx = fmaf(t, bx - ax, ax), cy = fmaf(t, by - ay, ay), cz = fmaf(t, bz - az, az), d = fmaf(nx, cx, fmaf(ny, cy, nz * cz));
        xx = fmaf(nx, nx, xx), xy = fmaf(nx, ny, xy), xz = fmaf(nx, nz, xz), yy = fmaf(ny, ny, yy), yz = fmaf(ny, nz, yz), zz = fmaf(nz, nz, zz);
        rx = fmaf(nx, d, rx), ry = fmaf(ny, d, ry), rz = fmaf(nz, d, rz);
        mx += cx, my += cy, mz += cz, cuts += 1.f;
    }
    float vx = mx / cuts, vy = my / cuts, vz = mz / cuts, step = 0.7f / (xx + yy + zz);
    for (int k = 0; k < 12; ++k) {
        float ex = rx - fmaf(xx, vx, fmaf(xy, vy, xz * vz)), ey = ry - fmaf(xy, vx, fmaf(yy, vy, yz * vz)), ez = rz - fmaf(xz, vx, fmaf(yz, vy, zz * vz));
        vx = fmaf(step, ex, vx), vy = fmaf(step, ey, vy), vz = fmaf(step, ez, vz);
    }
    return make_float4(fminf(fmaxf(vx, 0.f), 1.f), fminf(fmaxf(vy, 0.f), 1.f), fminf(fmaxf(vz, 0.f), 1.f), cuts);
}
// As it is: 2048 cells a block of 256. WAVE: blocks take pieces as often as there are any.
template <int THREADS, bool WAVE>
__global__ void __launch_bounds__(THREADS) contour_vertices_listed(Samples f, const int *__restrict__ slots, float4 *__restrict__ vertices, int cells) {
    constexpr int PIECE = 8 * THREADS;
    __shared__ int list[PIECE], listed;
    for (int piece = blockIdx.x; piece * PIECE < cells * cells * cells; piece += gridDim.x) {
        if (threadIdx.x == 0) listed = 0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            int i = piece * PIECE + k * THREADS + threadIdx.x;
            bool cut = i < cells * cells * cells && slots[i] >= 0;
            unsigned vote = __ballot_sync(~0u, cut);
            int base = 0;
            if (threadIdx.x % 32 == 0 && vote) base = atomicAdd(&listed, __popc(vote));
            base = __shfl_sync(~0u, base, 0);
            if (cut) list[base + __popc(vote & ((1u << threadIdx.x % 32) - 1))] = i;
        }
        __syncthreads();
        for (int j = threadIdx.x; j < listed; j += THREADS) {
            int i = list[j];
            vertices[slots[i]] = cell_vertex(f, i % cells, i / cells % cells, i / (cells * cells));
        }
        if (!WAVE) break;
        __syncthreads();
    }
}

int main() {
    const int cells = 160, size = cells + 1, all = cells * cells * cells;
    std::vector<float> field(size_t(size) * size * size);
    std::vector<int> slots(all, -1);
    const float turn = 6.2831853f / 37.f;
    std::vector<float> s(size), c(size);
    for (int i = 0; i < size; ++i) s[i] = std::sin(turn * i + 0.1f), c[i] = std::cos(turn * i + 0.1f);
    auto at = [&](int x, int y, int z) -> float & { return field[(size_t(z) * size + y) * size + x]; };
    for (int z = 0; z < size; ++z)
        for (int y = 0; y < size; ++y)
            for (int x = 0; x < size; ++x) at(x, y, z) = s[x] * c[y] + s[y] * c[z] + s[z] * c[x] + 0.05f;
    int count = 0;
    for (int i = 0; i < all; ++i) {
        int x = i % cells, y = i / cells % cells, z = i / (cells * cells), below = 0;
        for (int k = 0; k < 8; ++k) below += at(x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)) < 0.f;
        if (below && below < 8) slots[i] = count++;
    }
    const Samples f{copied(field), size};
    const int *numbers = copied(slots);
    float *out = get<float>(4 * size_t(count));
    auto vertices = reinterpret_cast<float4 *>(out);
    judge({{"as_it_is", [=] { contour_vertices_listed<256, false><<<all / 2048, 256>>>(f, numbers, vertices, cells); }},
        {"blocks_of_128", [=] { contour_vertices_listed<128, false><<<all / 1024, 128>>>(f, numbers, vertices, cells); }},
        {"one_wave", [=] { contour_vertices_listed<256, true><<<528, 256>>>(f, numbers, vertices, cells); }}}, {{out, 4 * size_t(count)}});
}
