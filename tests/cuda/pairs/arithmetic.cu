// Arithmetic that costs more than it has to: double precision, integer division, precise functions, products and sums
// that are not fused.
#include "pair.cuh"

namespace {

// A recurrence whose constants are written 0.97 or 0.97f: the former makes every operation a double one.
template <typename Constant>
__global__ void decay(const float *__restrict__ in, float *__restrict__ out, int n, int rounds) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float x = in[i];
        for (int r = 0; r < rounds; ++r) x = float(x * Constant(0.97) + Constant(0.01));
        out[i] = x;
    }
}
Sides decay_sides(Buffers &b, long n, int rounds) {
    float *in = b.random<float>(n), *out = b.output<float>(n);
    int grid = multiprocessors() * 8;
    return flawed_mended(launch(decay<double>, grid, 256, 0, in, out, n, rounds),
        launch(decay<float>, grid, 256, 0, in, out, n, rounds));
}
Family decay_double("decay_double", "decay", {1 << 20, 1 << 24}, mend("double_precision"),
    [](Buffers &b, long n) { return decay_sides(b, n, 32); });
Family decay_double_stream("decay_double_stream", "decay", {1 << 24, 1 << 27}, mend("double_precision", "behind_limit"),
    [](Buffers &b, long n) { return decay_sides(b, n, 1); });

// Bodies that attract each other, with the softening and the accumulators in one precision or the other.
template <typename Real>
__global__ void attract(const float4 *__restrict__ bodies, float *__restrict__ out, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 me = bodies[i];
    Real fx = 0, fy = 0, fz = 0;
    for (int start = 0; start < n; start += 256) {
        __syncthreads();
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 256; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float force = tile[j].w * inverse * inverse * inverse;
            fx += Real(dx * force), fy += Real(dy * force), fz += Real(dz * force);
        }
    }
    out[i] = float(fx), out[n + i] = float(fy), out[2 * n + i] = float(fz);
}
Family nbody_double_sums(
    "nbody_double_sums", "nbody", {8192, 32768}, mend("double_precision", "real"), [](Buffers &b, long n) -> Sides {
        auto *bodies = reinterpret_cast<float4 *>(b.random<float>(n * 4));
        float *out = b.output<float>(n * 3);
        b.tolerance = 1e-3;
        return flawed_mended(launch(attract<double>, n / 256, 256, 0, bodies, out, n),
            launch(attract<float>, n / 256, 256, 0, bodies, out, n));
    });

// Patches of images to columns: places worked out by 64-bit divisions, or counted along.
template <bool Divided>
__global__ void patches(const float *__restrict__ in, float *__restrict__ out, long long count, long long width,
    long long height, int per_thread) {
    long long stride = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (Divided) {
        for (int k = 0; k < per_thread; ++k, i += stride) {
            long long x = i % width, y = i / width % height, image = i / (width * height);
            out[i] = in[(image * height + y) * width + (x + 1 < width ? x + 1 : 0)];
        }
    } else {
        // The step from one element to the next is the same for all: whole images, rows and a rest.
        int w = int(width), h = int(height), step = int(stride % (width * height)), step_y = step / w,
            step_x = step % w;
        long long step_image = stride / (width * height) * width * height;
        unsigned rest = unsigned(i % (width * height));
        long long image = i - rest;
        int x = int(rest % w), y = int(rest / w);
        for (int k = 0; k < per_thread; ++k, i += stride) {
            out[i] = in[image + y * w + (x + 1 < w ? x + 1 : 0)];
            x += step_x, y += step_y, image += step_image;
            if (x >= w) x -= w, ++y;
            if (y >= h) y -= h, image += width * height;
        }
    }
}
Family patches_divided("patches_divided", "patches", {8, 64}, mend("integer_arithmetic", "real"),
    [](Buffers &b, long per_thread) -> Sides {
        int grid = multiprocessors() * 8;
        long count = long(grid) * 256 * per_thread, width = 333, height = 217;
        float *in = b.random<float>(count + width * height + width), *out = b.output<float>(count);
        return flawed_mended(launch(patches<true>, grid, 256, 0, in, out, count, width, height, per_thread),
            launch(patches<false>, grid, 256, 0, in, out, count, width, height, per_thread));
    });

// Keys to buckets by a modulus known at run time, or by the high half of a product with its reciprocal.
template <typename Word, bool Divided>
__global__ void buckets(const unsigned *__restrict__ keys, int *__restrict__ out, int n, Word modulus,
    unsigned long long reciprocal, int rounds) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i] >> 1, sum = 0;
        for (int r = 0; r < rounds; ++r) {
            unsigned bucket;
            if (Divided) bucket = unsigned(Word(key) % modulus);
            else {
                unsigned quotient = unsigned(__umul64hi((unsigned long long)key, reciprocal));
                bucket = key - quotient * unsigned(modulus);
            }
            sum += bucket;
            key = (key * 1664525u + bucket) >> 1;
        }
        out[i] = int(sum & 0xffffff);
    }
}
template <typename Word>
Sides bucket_sides(Buffers &b, long n, int rounds) {
    auto *keys = reinterpret_cast<unsigned *>(b.random<int>(n, 0.0, 2147483647.0));
    int *out = b.output<int>(n), grid = multiprocessors() * 8;
    Word modulus = 10007;
    unsigned long long reciprocal = ~0ull / 10007 + 1;
    return flawed_mended(launch(buckets<Word, true>, grid, 256, 0, keys, out, n, modulus, reciprocal, rounds),
        launch(buckets<Word, false>, grid, 256, 0, keys, out, n, modulus, reciprocal, rounds));
}
Family buckets_64_bit("buckets_64_bit", "buckets", {1 << 20, 1 << 23}, mend("integer_arithmetic"),
    [](Buffers &b, long n) { return bucket_sides<unsigned long long>(b, n, 16); });
Family buckets_32_bit("buckets_32_bit", "buckets", {1 << 20, 1 << 23}, mend("integer_arithmetic"),
    [](Buffers &b, long n) { return bucket_sides<unsigned>(b, n, 16); });
Family buckets_stream("buckets_stream", "buckets", {1 << 24, 1 << 27}, mend("integer_arithmetic", "behind_limit"),
    [](Buffers &b, long n) { return bucket_sides<unsigned>(b, n, 1); });

// GELU by the precise hyperbolic tangent, or by the fast exponential.
template <bool Precise>
__device__ float gelu(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    float t = Precise ? tanhf(u) : 1.0f - 2.0f * __fdividef(1.0f, __expf(2.0f * u) + 1.0f);
    return 0.5f * x * (1.0f + t);
}
template <bool Precise>
__global__ void activations(const float4 *__restrict__ in, float4 *__restrict__ out, int n, int rounds) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        for (int r = 0; r < rounds; ++r)
            v = {gelu<Precise>(v.x) + 0.1f, gelu<Precise>(v.y) + 0.1f, gelu<Precise>(v.z) + 0.1f,
                gelu<Precise>(v.w) + 0.1f};
        out[i] = v;
    }
}
Sides gelu_sides(Buffers &b, long n, int rounds) {
    auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4, -3.0, 3.0)),
         *out = reinterpret_cast<float4 *>(b.output<float>(n * 4));
    int grid = multiprocessors() * 8;
    b.tolerance = 1e-3;
    return flawed_mended(launch(activations<true>, grid, 256, 0, in, out, n, rounds),
        launch(activations<false>, grid, 256, 0, in, out, n, rounds));
}
Family gelu_rounds("gelu_rounds", "gelu", {1 << 18, 1 << 22}, mend("expensive_math"),
    [](Buffers &b, long n) { return gelu_sides(b, n, 16); });
Family gelu_stream("gelu_stream", "gelu", {1 << 22, 1 << 25}, mend("expensive_math", "behind_limit"),
    [](Buffers &b, long n) { return gelu_sides(b, n, 1); });

// Normal deviates by Box and Muller's method: precise or fast functions.
template <bool Precise>
__global__ void options(float *__restrict__ out, int paths) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int p = 0; p < paths; ++p) {
        float u = (hash(i * 2654435761u + p) + 1.0f) * 2.3283e-10f, w = hash(i ^ (p * 40503u)) * 2.3283e-10f;
        float radius = Precise ? sqrtf(-2.0f * logf(u)) : __fsqrt_rn(-2.0f * __logf(u));
        float angle = 6.2831853f * w;
        float normal = radius * (Precise ? cosf(angle) : __cosf(angle));
        float price = 100.0f * (Precise ? expf(0.2f * normal - 0.02f) : __expf(0.2f * normal - 0.02f));
        sum += fmaxf(price - 105.0f, 0.0f);
    }
    out[i] = sum / paths;
}
Family options_precise(
    "options_precise", "monte_carlo", {64, 512}, mend("expensive_math", "real"), [](Buffers &b, long paths) -> Sides {
        int grid = multiprocessors() * 8;
        float *out = b.output<float>(grid * 256);
        b.tolerance = 1e-3;
        return flawed_mended(
            launch(options<true>, grid, 256, 0, out, paths), launch(options<false>, grid, 256, 0, out, paths));
    });

// powf for a small whole exponent, or the product.
template <bool Power>
__global__ void lighting(const float *__restrict__ in, float *__restrict__ out, int n, int lights) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float x = in[i], sum = 0.0f;
        for (int l = 0; l < lights; ++l) {
            float cosine = fabsf(x * 0.9f - l * 0.01f), square = cosine * cosine;
            sum += Power ? powf(cosine, 5.0f) : square * square * cosine;
        }
        out[i] = sum;
    }
}
Family lighting_powf(
    "lighting_powf", "lighting", {1 << 20, 1 << 23}, mend("expensive_math"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n, 0.2, 1.0), *out = b.output<float>(n);
        int grid = multiprocessors() * 8;
        return flawed_mended(launch(lighting<true>, grid, 256, 0, in, out, n, 16),
            launch(lighting<false>, grid, 256, 0, in, out, n, 16));
    });

// A polynomial by separate products and sums, or fused.
template <bool Separate>
__device__ float step(float y, float x, float c) {
    return Separate ? __fadd_rn(__fmul_rn(y, x), c) : fmaf(y, x, c);
}
template <bool Separate>
__global__ void horner(const float4 *__restrict__ in, float4 *__restrict__ out, int n, int rounds) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 x = in[i], y = {1.0f, 1.0f, 1.0f, 1.0f};
        for (int r = 0; r < rounds; ++r)
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                y.x = step<Separate>(y.x, x.x, 0.1f * k);
                y.y = step<Separate>(y.y, x.y, 0.1f * k);
                y.z = step<Separate>(y.z, x.z, 0.1f * k);
                y.w = step<Separate>(y.w, x.w, 0.1f * k);
            }
        out[i] = y;
    }
}
Sides horner_sides(Buffers &b, long n, int rounds) {
    auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4, -0.9, 0.9)),
         *out = reinterpret_cast<float4 *>(b.output<float>(n * 4));
    int grid = multiprocessors() * 8;
    return flawed_mended(launch(horner<true>, grid, 256, 0, in, out, n, rounds),
        launch(horner<false>, grid, 256, 0, in, out, n, rounds));
}
Family horner_separate("horner_separate", "horner", {1 << 18, 1 << 21}, mend("non_fused_arithmetic"),
    [](Buffers &b, long n) { return horner_sides(b, n, 32); });
Family horner_stream("horner_stream", "horner", {1 << 22, 1 << 25}, mend("non_fused_arithmetic", "behind_limit"),
    [](Buffers &b, long n) { return horner_sides(b, n, 1); });

// A matrix product out of shared tiles, eight by eight outputs a thread, its products and sums separate or fused.
template <bool Separate>
__global__ void __launch_bounds__(64)
    gemm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    constexpr int B = 64, K = 16, T = 8;
    __shared__ float as[K][B], bs[K][B];
    int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    float sum[T][T] = {};
    for (int k0 = 0; k0 < n; k0 += K) {
        for (int i = threadIdx.x; i < B * K; i += 64) {
            as[i / B][i % B] = a[size_t(k0 + i / B) * n + blockIdx.y * B + i % B];
            bs[i / B][i % B] = b[size_t(k0 + i / B) * n + blockIdx.x * B + i % B];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K; ++k) {
            float x[T], y[T];
            for (int i = 0; i < T; ++i) x[i] = as[k][ty + 8 * i];
            for (int j = 0; j < T; ++j) y[j] = bs[k][tx + 8 * j];
            for (int i = 0; i < T; ++i)
                for (int j = 0; j < T; ++j) sum[i][j] = step<Separate>(x[i], y[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < T; ++i)
        for (int j = 0; j < T; ++j)
            c[size_t(blockIdx.y * B + ty + 8 * i) * n + blockIdx.x * B + tx + 8 * j] = sum[i][j];
}
Family gemm_separate(
    "gemm_separate", "gemm", {1024, 2048}, mend("non_fused_arithmetic"), [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * n), *y = b.random<float>(n * n), *out = b.output<float>(n * n);
        dim3 grid(n / 64, n / 64);
        b.tolerance = 1e-3;
        return flawed_mended(
            launch(gemm<true>, grid, 64, 0, x, y, out, n), launch(gemm<false>, grid, 64, 0, x, y, out, n));
    });

}  // namespace
