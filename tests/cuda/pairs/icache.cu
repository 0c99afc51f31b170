// Code that does not fit the instruction cache. A file of its own: a report carries the whole module of each launch.
#include "pair.cuh"

namespace {

// A polynomial of thousands of terms, written out, or as a loop. Every warp starts elsewhere, so that they share
// little.
template <int Terms, bool Written>
__global__ void __launch_bounds__(256) polynomial(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float x = in[i] * 0.5f, y = x, z = x * 0.5f;
    for (int r = 0; r < rounds; ++r) {
        if (Written) {
#pragma unroll
            for (int t = 0; t < Terms; ++t) {
                y = fmaf(y, x, 0.25f);
                z = fmaf(z, x, 0.125f);
            }
        } else {
#pragma unroll 16
            for (int t = 0; t < Terms; ++t) {
                y = fmaf(y, x, 0.25f);
                z = fmaf(z, x, 0.125f);
            }
        }
    }
    out[i] = y + z;
}
template <int Terms>
Sides polynomial_sides(Buffers &b, long rounds) {
    int grid = multiprocessors() * 2;
    float *in = b.random<float>(grid * 256), *out = b.output<float>(grid * 256);
    return flawed_mended(launch(polynomial<Terms, true>, grid, 256, 0, in, out, rounds),
        launch(polynomial<Terms, false>, grid, 256, 0, in, out, rounds));
}
Family unrolled_4096("unrolled_4096", "polynomial", {2, 16}, mend("instruction_cache"), polynomial_sides<4096>);
Family unrolled_8192("unrolled_8192", "polynomial", {1, 8}, mend("instruction_cache"), polynomial_sides<8192>);

}  // namespace
