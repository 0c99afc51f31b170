// min_plus_no_tile, side flawed: 16 bytes an access, four elements a thread.
#include "../tried.cuh"

__global__ void min_plus(const int *a, const int *b, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int best = 1 << 29;
    for (int k = 0; k < n; k++) best = min(best, a[y * n + k] + b[k * n + x]);
    c[y * n + x] = best;
}

// Rewrites. n is a multiple of 4.
__device__ __forceinline__ void lower(int4 &best, int a, int4 b) {
    best.x = min(best.x, a + b.x), best.y = min(best.y, a + b.y), best.z = min(best.z, a + b.z), best.w = min(best.w, a + b.w);
}
// Four results in a row a thread; four of a row of a in a load, too.
template <int BLOCKS>
__global__ void __launch_bounds__(256, BLOCKS) min_plus_four(const int4 *a, const int4 *b, int4 *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, pitch = n / 4;
    int4 best = make_int4(1 << 29, 1 << 29, 1 << 29, 1 << 29);
    const int4 *row = a + y * pitch;
    b += x;
#pragma unroll(BLOCKS == 8 ? 1 : 2)
    for (int k = 0; k < n; k += 4, b += 4 * pitch) {
        int4 u = *row++, v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = b[i * pitch];
        lower(best, u.x, v[0]), lower(best, u.y, v[1]), lower(best, u.z, v[2]), lower(best, u.w, v[3]);
    }
    c[y * pitch + x] = best;
}
// Four results in a row a thread, a read as before.
__global__ void min_plus_four_of_b(const int *a, const int4 *b, int4 *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, pitch = n / 4;
    int4 best = make_int4(1 << 29, 1 << 29, 1 << 29, 1 << 29);
    for (int k = 0; k < n; k++) lower(best, a[y * n + k], b[k * pitch + x]);
    c[y * pitch + x] = best;
}
// A result a thread as before, four of a row of a in a load.
__global__ void min_plus_four_of_a(const int4 *a, const int *b, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int best = 1 << 29;
#pragma unroll 2
    for (int k = 0; k < n; k += 4) {
        int4 u = a[(y * n + k) / 4];
        const int *from = b + k * n + x;
        int v0 = from[0], v1 = from[n], v2 = from[2 * n], v3 = from[3 * n];
        best = min(min(best, u.x + v0), u.y + v1), best = min(min(best, u.z + v2), u.w + v3);
    }
    c[y * n + x] = best;
}

int main() {
    const int n = 1024;
    const size_t cells = size_t(n) * n;
    const int *a = drawn<int>(cells, 0, 1000000, 1), *b = drawn<int>(cells, 0, 1000000, 2);
    int *c = get<int>(cells);
    const int4 *a4 = (const int4 *)a, *b4 = (const int4 *)b;
    int4 *c4 = (int4 *)c;
    judge({{"as_it_is", [=] { min_plus<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, c, n); }},
        {"16_bytes_a_thread", [=] { min_plus_four<1><<<dim3(n / 128, n / 8), dim3(32, 8)>>>(a4, b4, c4, n); }},
        {"16_bytes_32_registers", [=] { min_plus_four<8><<<dim3(n / 128, n / 8), dim3(32, 8)>>>(a4, b4, c4, n); }},
        {"16_bytes_block_8x32", [=] { min_plus_four<1><<<dim3(n / 32, n / 32), dim3(8, 32)>>>(a4, b4, c4, n); }},
        {"16_bytes_of_b_and_c", [=] { min_plus_four_of_b<<<dim3(n / 128, n / 8), dim3(32, 8)>>>(a, b4, c4, n); }},
        {"16_bytes_of_a_only", [=] { min_plus_four_of_a<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a4, b, c, n); }}}, {{c, cells}});
}
