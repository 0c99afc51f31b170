// Linear algebra of small and of narrow matrices. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- systems of eight equations, solved with pivoting: element (i, j) of system s at [(i * 8 + j) * count + s] ---

constexpr int ORDER = 8;

__global__ void __launch_bounds__(128) solve_pivoted(const float *matrices, const float *right, float *solutions, int count) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= count) return;
    float a[ORDER][ORDER + 1];
    for (int i = 0; i < ORDER; ++i) {
        for (int j = 0; j < ORDER; ++j) a[i][j] = matrices[(i * ORDER + j) * count + s];
        a[i][ORDER] = right[i * count + s];
    }
    for (int k = 0; k < ORDER; ++k) {
        int pivot = k;
        for (int i = k + 1; i < ORDER; ++i)
            if (fabsf(a[i][k]) > fabsf(a[pivot][k])) pivot = i;
        for (int j = k; j <= ORDER; ++j) {
            float kept = a[k][j];
            a[k][j] = a[pivot][j], a[pivot][j] = kept;
        }
        float inverse = 1.f / a[k][k];
        for (int i = k + 1; i < ORDER; ++i) {
            float factor = a[i][k] * inverse;
            for (int j = k + 1; j <= ORDER; ++j) a[i][j] = fmaf(-factor, a[k][j], a[i][j]);
        }
    }
    for (int k = ORDER - 1; k >= 0; --k) {
        float x = a[k][ORDER];
        for (int j = k + 1; j < ORDER; ++j) x = fmaf(-a[k][j], a[j][ORDER], x);
        a[k][ORDER] = x / a[k][k];
        solutions[k * count + s] = a[k][ORDER];
    }
}
// Each row below changes places with row k where it is the pivot: all indices are known to the compiler.
__global__ void __launch_bounds__(128) solve_selected(const float *__restrict__ matrices, const float *__restrict__ right, float *__restrict__ solutions, int count) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= count) return;
    float a[ORDER][ORDER + 1];
#pragma unroll
    for (int i = 0; i < ORDER; ++i) {
#pragma unroll
        for (int j = 0; j < ORDER; ++j) a[i][j] = matrices[(i * ORDER + j) * count + s];
        a[i][ORDER] = right[i * count + s];
    }
#pragma unroll
    for (int k = 0; k < ORDER; ++k) {
        int pivot = k;
        float most = fabsf(a[k][k]);
#pragma unroll
        for (int i = k + 1; i < ORDER; ++i)
            if (fabsf(a[i][k]) > most) pivot = i, most = fabsf(a[i][k]);
#pragma unroll
        for (int i = k + 1; i < ORDER; ++i) {
            bool change = i == pivot;
#pragma unroll
            for (int j = k; j <= ORDER; ++j) {
                float upper = a[k][j], lower = a[i][j];
                a[k][j] = change ? lower : upper, a[i][j] = change ? upper : lower;
            }
        }
        float inverse = 1.f / a[k][k];
#pragma unroll
        for (int i = k + 1; i < ORDER; ++i) {
            float factor = a[i][k] * inverse;
#pragma unroll
            for (int j = k + 1; j <= ORDER; ++j) a[i][j] = fmaf(-factor, a[k][j], a[i][j]);
        }
    }
#pragma unroll
    for (int k = ORDER - 1; k >= 0; --k) {
        float x = a[k][ORDER];
#pragma unroll
        for (int j = k + 1; j < ORDER; ++j) x = fmaf(-a[k][j], a[j][ORDER], x);
        a[k][ORDER] = x / a[k][k];
        solutions[k * count + s] = a[k][ORDER];
    }
}
// The same with the matrices in shared memory, a column of it a thread.
__global__ void __launch_bounds__(64) solve_shared(const float *__restrict__ matrices, const float *__restrict__ right, float *__restrict__ solutions, int count) {
    __shared__ float held[ORDER][ORDER + 1][64];
    int s = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    if (s >= count) return;
#pragma unroll
    for (int i = 0; i < ORDER; ++i) {
#pragma unroll
        for (int j = 0; j < ORDER; ++j) held[i][j][t] = matrices[(i * ORDER + j) * count + s];
        held[i][ORDER][t] = right[i * count + s];
    }
#pragma unroll
    for (int k = 0; k < ORDER; ++k) {
        int pivot = k;
        float most = fabsf(held[k][k][t]), row[ORDER + 1];
#pragma unroll
        for (int i = k + 1; i < ORDER; ++i)
            if (fabsf(held[i][k][t]) > most) pivot = i, most = fabsf(held[i][k][t]);
#pragma unroll
        for (int j = k; j <= ORDER; ++j) {
            row[j] = held[pivot][j][t];
            held[pivot][j][t] = held[k][j][t], held[k][j][t] = row[j];
        }
        float inverse = 1.f / row[k];
#pragma unroll
        for (int i = k + 1; i < ORDER; ++i) {
            float factor = held[i][k][t] * inverse;
#pragma unroll
            for (int j = k + 1; j <= ORDER; ++j) held[i][j][t] = fmaf(-factor, row[j], held[i][j][t]);
        }
    }
    float x[ORDER];
#pragma unroll
    for (int k = ORDER - 1; k >= 0; --k) {
        x[k] = held[k][ORDER][t];
#pragma unroll
        for (int j = k + 1; j < ORDER; ++j) x[k] = fmaf(-held[k][j][t], x[j], x[k]);
        x[k] /= held[k][k][t];
        solutions[k * count + s] = x[k];
    }
}

// Random matrices with large elements in places that change from system to system, so that rows must change places.
__global__ void add_permutations(float *matrices, int count) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= count) return;
    unsigned draw = hash(s), by = draw % ORDER, odd = 2 * (draw / ORDER % 4) + 1;
    for (unsigned i = 0; i < ORDER; ++i) matrices[(i * ORDER + (odd * i + by) % ORDER) * count + s] += draw >> (8 + i) & 1 ? 6.f : -6.f;
}

Study systems("solve_pivot_rows_in_local", "linear algebra", 1 << 20, "1048576 systems of eight equations, solved with pivoting",
    "rows change places by a number found at run time, so that the matrix of each thread lies in local memory",
    {{"selected", "places change by selection, the matrix in registers", {"local_memory"}}, {"shared", "the matrices in shared memory, a bank a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        float *matrices = b.random<float>(n * ORDER * ORDER), *right = b.random<float>(n * ORDER), *solutions = b.output<float>(n * ORDER);
        launch(add_permutations, blocks(n, 256), 256, 0, matrices, n)();
        b.tolerance = 1e-3;
        return {{"flawed", launch(solve_pivoted, blocks(n, 128), 128, 0, matrices, right, solutions, n)},
            {"selected", launch(solve_selected, blocks(n, 128), 128, 0, matrices, right, solutions, n)},
            {"shared", launch(solve_shared, blocks(n, 64), 64, 0, matrices, right, solutions, n)}};
    });

// --- how many eigenvalues of a tridiagonal matrix lie below each of 16384 numbers: signs of a recurrence ---

__global__ void eigenvalues_below(const float *diagonal, const float *squared, int *counts, int order, int numbers, float least, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= numbers) return;
    float x = fmaf(i, step, least), q = 1.f;
    for (int k = 0; k < order; ++k) {
        q = diagonal[k] - x - squared[k] / q;
        if (fabsf(q) < 1e-20f) q = -1e-20f;
        found += q < 0.f;
    }
    counts[i] = found;
}
__global__ void eigenvalues_below_fast(const float *__restrict__ diagonal, const float *__restrict__ squared, int *__restrict__ counts, int order, int numbers, float least, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= numbers) return;
    float x = fmaf(i, step, least), q = 1.f;
#pragma unroll 8
    for (int k = 0; k < order; ++k) {
        q = diagonal[k] - x - __fdividef(squared[k], q);
        if (fabsf(q) < 1e-20f) q = -1e-20f;
        found += q < 0.f;
    }
    counts[i] = found;
}
// The determinants themselves, which need no quotient; scaled every eight rows. A change of sign is an eigenvalue.
__global__ void eigenvalues_below_products(const float *__restrict__ diagonal, const float *__restrict__ squared, int *__restrict__ counts, int order, int numbers, float least, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= numbers) return;
    float x = fmaf(i, step, least), before = 1.f, last = 1.f;
    for (int k = 0; k < order; k += 8) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            float next = fmaf(diagonal[k + j] - x, last, -squared[k + j] * before);
            found += (__float_as_uint(next) ^ __float_as_uint(last)) >> 31;
            before = last, last = next;
        }
        float scale = __fdividef(1.f, fmaxf(fabsf(before), fabsf(last)));
        before *= scale, last *= scale;
    }
    counts[i] = found;
}

Study sturm("eigenvalue_counts_chain_of_quotients", "linear algebra", 4096, "eigenvalues of a tridiagonal matrix of order 4096 below each of 16384 numbers",
    "each row waits for the precise quotient of the row before it, and few warps run",
    {{"fast", "fast quotients, rows unrolled", {"instruction_latency", "expensive_math"}},
        {"products", "a recurrence without quotients", {"instruction_latency", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int numbers = 16384;
        const float *diagonal = b.random<float>(n, -2, 2), *squared = b.random<float>(n, 0.25, 1);
        int *counts = b.output<int>(numbers);
        float least = -4.f, step = 8.f / numbers;
        b.tolerance = 1e-3;  // four of 4096: rounding moves eigenvalues across the number
        return {{"flawed", launch(eigenvalues_below, numbers / 128, 128, 0, diagonal, squared, counts, n, numbers, least, step)},
            {"fast", launch(eigenvalues_below_fast, numbers / 128, 128, 0, diagonal, squared, counts, n, numbers, least, step)},
            {"products", launch(eigenvalues_below_products, numbers / 128, 128, 0, diagonal, squared, counts, n, numbers, least, step)}};
    });

// --- sound: 3 x 3 matrices in planes, inverted ---

__global__ void __launch_bounds__(256) invert_planes(const float4 *__restrict__ in, float4 *__restrict__ out, int quads) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    float4 m[9];
#pragma unroll
    for (int k = 0; k < 9; ++k) m[k] = in[static_cast<size_t>(k) * quads + i];
    auto inverted = [&](float4 &a, float4 &b, float4 &c, float4 &d, float4 &e, float4 &f, float4 &g, float4 &h, float4 &j, float float4::*v) {
        float x = e.*v * j.*v - f.*v * h.*v, y = f.*v * g.*v - d.*v * j.*v, z = d.*v * h.*v - e.*v * g.*v;
        float r = __fdividef(1.f, a.*v * x + b.*v * y + c.*v * z);
        float p = c.*v * h.*v - b.*v * j.*v, q = b.*v * f.*v - c.*v * e.*v, s = a.*v * j.*v - c.*v * g.*v;
        float t = c.*v * d.*v - a.*v * f.*v, u = b.*v * g.*v - a.*v * h.*v, w = a.*v * e.*v - b.*v * d.*v;
        a.*v = x * r, b.*v = p * r, c.*v = q * r, d.*v = y * r, e.*v = s * r, f.*v = t * r, g.*v = z * r, h.*v = u * r, j.*v = w * r;
    };
    inverted(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], &float4::x);
    inverted(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], &float4::y);
    inverted(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], &float4::z);
    inverted(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], &float4::w);
#pragma unroll
    for (int k = 0; k < 9; ++k) out[static_cast<size_t>(k) * quads + i] = m[k];
}
// Keeps determinants away from zero.
__global__ void add_to_diagonals(float *planes, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        for (int k = 0; k < 9; k += 4) planes[static_cast<size_t>(k) * count + i] += 3.f;
}

Study inverses("sound_inverses_of_three", "linear algebra", 1 << 22, "inverses of 4194304 matrices of 3 x 3, in planes", "", {},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(9 * n), *out = b.output<float>(9 * n);
        launch(add_to_diagonals, 1024, 256, 0, in, n)();
        return {{"sound", launch(invert_planes, blocks(n / 4, 256), 256, 0, reinterpret_cast<float4 *>(in), reinterpret_cast<float4 *>(out), n / 4)}};
    });

}  // namespace
