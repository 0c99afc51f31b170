// How a warp's requests lie in memory: uncoalesced accesses and narrow ones.
#include <cstdint>

#include "pair.cuh"

namespace {

// Transpose straight between rows and columns, or through a padded tile so that both sides are rows.
template <bool Direct>
__global__ void transpose(const float *in, float *out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (Direct) {
        for (int row = 0; row < 32; row += 8) out[size_t(x) * n + y + row] = in[size_t(y + row) * n + x];
        return;
    }
    __shared__ float tile[32][33];
    for (int row = 0; row < 32; row += 8) tile[threadIdx.y + row][threadIdx.x] = in[size_t(y + row) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) out[size_t(y + row) * n + x] = tile[threadIdx.x][threadIdx.y + row];
}
Family transpose_direct(
    "transpose_direct", "transpose", {2048, 8192}, mend("uncoalesced_access"), [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * n), *out = b.output<float>(n * n);
        dim3 grid(n / 32, n / 32), block(32, 8);
        return flawed_mended(
            launch(transpose<true>, grid, block, 0, in, out, n), launch(transpose<false>, grid, block, 0, in, out, n));
    });

// Particles as structures of eight floats, or as eight arrays. Field 3 is the mass, 4 to 6 the speed, 7 the charge.
constexpr int FIELDS = 8;

template <bool Structures>
__device__ size_t at(int particle, int field, int count) {
    return Structures ? size_t(particle) * FIELDS + field : size_t(field) * count + particle;
}

template <bool Structures>
__global__ void energy(const float *__restrict__ from, float *__restrict__ out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float vx = from[at<Structures>(i, 4, count)], vz = from[at<Structures>(i, 6, count)];
    out[i] = from[at<Structures>(i, 3, count)] * (vx * vx + vz * vz);
}

template <bool Structures>
__global__ void push(const float *__restrict__ from, float *__restrict__ to, int count, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float force = from[at<Structures>(i, 7, count)] / from[at<Structures>(i, 3, count)];
    for (int d = 0; d < 3; ++d) {
        float position = from[at<Structures>(i, d, count)], speed = from[at<Structures>(i, 4 + d, count)];
        speed += dt * force * (0.5f - position);
        to[at<Structures>(i, d, count)] = position + dt * speed;
        to[at<Structures>(i, 4 + d, count)] = speed;
    }
}

__global__ void sum_fields(const float *from, float *out, int count, bool structures) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f;
    for (int f = 0; f < 7; ++f)
        if (f != 3) sum += (f + 1) * from[structures ? at<true>(i, f, count) : at<false>(i, f, count)];
    out[i] = sum;
}

std::pair<float *, float *> particle_layouts(Buffers &b, long count) {
    std::vector<float> structures(count * FIELDS), arrays(count * FIELDS);
    for (long i = 0; i < count; ++i)
        for (int f = 0; f < FIELDS; ++f)
            structures[i * FIELDS + f] = arrays[f * count + i] = 0.25f + hash(unsigned(i * FIELDS + f)) / 4294967296.0f;
    return {b.copy(structures), b.copy(arrays)};
}

Family particle_energy("particle_energy", "particles", {1 << 20, 1 << 23}, mend("uncoalesced_access", "real"),
    [](Buffers &b, long n) -> Sides {
        auto [structures, arrays] = particle_layouts(b, n);
        float *out = b.output<float>(n);
        return flawed_mended(launch(energy<true>, blocks(n, 256), 256, 0, structures, out, n),
            launch(energy<false>, blocks(n, 256), 256, 0, arrays, out, n));
    });
// The push uses every byte that its strided requests bring; what L1 keeps between them decides how bad they are.
Family particle_push("particle_push", "particles", {1 << 20, 1 << 23}, mend("uncoalesced_access", "real"),
    [](Buffers &b, long n) -> Sides {
        auto [structures, arrays] = particle_layouts(b, n);
        float *moved = b.allocate<float>(n * FIELDS), *out = b.output<float>(n);
        dim3 grid = blocks(n, 256);
        return {{"flawed", launch(push<true>, grid, 256, 0, structures, moved, n, 0.01f), {}, 1,
                    launch(sum_fields, grid, 256, 0, moved, out, n, true)},
            {"mended", launch(push<false>, grid, 256, 0, arrays, moved, n, 0.01f), {}, 1,
                launch(sum_fields, grid, 256, 0, moved, out, n, false)}};
    });

// A thread a row: neighbours read one matrix a row apart, or, stored the other way round, side by side.
template <bool RowMajor>
__global__ void matvec(
    const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
#pragma unroll 8
    for (int c = 0; c < columns; ++c) sum += a[RowMajor ? size_t(row) * columns + c : size_t(c) * rows + row] * x[c];
    y[row] = sum;
}
__global__ void flip(const float *in, float *out, int rows, int columns) {
    size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    if (i < size_t(rows) * columns) out[(i % columns) * rows + i / columns] = in[i];
}
Family matvec_rows(
    "matvec_rows", "matvec", {16384, 131072}, mend("uncoalesced_access"), [](Buffers &b, long rows) -> Sides {
        constexpr int columns = 512;
        float *a = b.random<float>(rows * columns), *t = b.allocate<float>(rows * columns),
              *x = b.random<float>(columns);
        float *y = b.output<float>(rows);
        flip<<<blocks(rows * columns, 256), 256>>>(a, t, rows, columns);
        CHECK_LAUNCH();
        return flawed_mended(launch(matvec<true>, blocks(rows, 128), 128, 0, a, x, y, rows, columns),
            launch(matvec<false>, blocks(rows, 128), 128, 0, t, x, y, rows, columns));
    });

// A thread works on a stretch of its own, or the warp on neighbours.
template <int Stretch, bool Own>
__global__ void axpy(
    const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, float alpha, int n) {
    int first =
        Own ? (blockIdx.x * blockDim.x + threadIdx.x) * Stretch : blockIdx.x * blockDim.x * Stretch + threadIdx.x;
    int step = Own ? 1 : blockDim.x;
#pragma unroll 1
    for (int k = 0; k < Stretch; ++k) {
        int i = first + k * step;
        if (i < n) out[i] = alpha * x[i] + y[i];
    }
}
template <int Stretch>
Sides axpy_sides(Buffers &b, long n) {
    float *x = b.random<float>(n), *y = b.random<float>(n), *out = b.output<float>(n);
    dim3 grid = blocks(n, 256 * Stretch);
    return flawed_mended(launch(axpy<Stretch, true>, grid, 256, 0, x, y, out, 1.5f, n),
        launch(axpy<Stretch, false>, grid, 256, 0, x, y, out, 1.5f, n));
}
Family axpy_stretch_4("axpy_stretch_4", "axpy", {1 << 22, 1 << 25}, mend("uncoalesced_access"), axpy_sides<4>);
Family axpy_stretch_32("axpy_stretch_32", "axpy", {1 << 22, 1 << 25}, mend("uncoalesced_access"), axpy_sides<32>);

// Rows of 12 floats that a block holds in L1 altogether: strided requests, and hardly a byte from below for them.
template <bool Strided>
__global__ void iterate(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    const float *mine = in + blockIdx.x * 256 * 4;
    float sum = 0.0f;
    for (int r = 0; r < rounds; ++r) {
        int column = r & 3;
        float v = mine[Strided ? threadIdx.x * 4 + column : column * 256 + threadIdx.x];
#pragma unroll
        for (int k = 0; k < 24; ++k) v = fmaf(v, 0.9f, sum * 0.05f);
        sum = v;
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
Family strided_in_l1("strided_in_l1", "iterate", {512, 4096}, mend("uncoalesced_access", "behind_limit"),
    [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 8;
        std::vector<float> rows(grid * 1024), columns(grid * 1024);
        for (size_t i = 0; i < rows.size(); ++i) {
            rows[i] = hash(unsigned(i)) / 4294967296.0f;
            columns[i / 1024 * 1024 + i % 4 * 256 + i % 1024 / 4] = rows[i];
        }
        float *r = b.copy(rows), *c = b.copy(columns), *out = b.output<float>(grid * 256);
        return flawed_mended(
            launch(iterate<true>, grid, 256, 0, r, out, rounds), launch(iterate<false>, grid, 256, 0, c, out, rounds));
    });

// Rows that start one element off a sector's border: not uncoalesced, though every request touches a sector more.
__global__ void scale_from(const float *__restrict__ in, float *__restrict__ out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * factor;
}
Family misaligned_scale("misaligned_scale", "scale", {1 << 22, 1 << 26}, mend("uncoalesced_access", "behind_limit"),
    [](Buffers &b, long n) -> Sides {
        float *in = b.allocate<float>(n + 32), *values = b.random<float>(n), *odd = b.allocate<float>(n + 32);
        CHECK(cudaMemcpy(in, values, n * 4, cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(odd + 1, values, n * 4, cudaMemcpyDeviceToDevice));
        float *out = b.output<float>(n);
        return flawed_mended(launch(scale_from, blocks(n, 256), 256, 0, odd + 1, out, n, 1.5f),
            launch(scale_from, blocks(n, 256), 256, 0, in, out, n, 1.5f));
    });

// The same bytes a thread at a time, in accesses of sizeof(Word).
template <typename Word>
__global__ void copy_words(const Word *__restrict__ in, Word *__restrict__ out, long count) {
    long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = in[i];
}
Family copy("copy_words", "copy", {1 << 24, 1 << 28},
    {flaw("bytes", "narrow_access"), flaw("shorts", "narrow_access"), flaw("floats", "narrow_access"),
        flaw("pairs", "narrow_access")},
    [](Buffers &b, long bytes) -> Sides {
        int *in = b.random<int>(bytes / 4, -1e9, 1e9), *out = b.output<int>(bytes / 4);
        auto run = [=](auto word) {
            using Word = decltype(word);
            long count = bytes / long(sizeof(Word));
            return launch(copy_words<Word>, blocks(count, 256), 256, 0, reinterpret_cast<Word *>(in),
                reinterpret_cast<Word *>(out), count);
        };
        return {{"bytes", run(int8_t{})}, {"shorts", run(int16_t{})}, {"floats", run(0.0f)}, {"pairs", run(float2{})},
            {"mended", run(int4{})}};
    });

// An image's bytes, one a thread or sixteen: a brightness filter and a threshold.
__device__ int brighten(int pixel, int gain) { return min(255, (pixel * gain) >> 7); }
template <bool Narrow>
__global__ void brightness(const uint8_t *__restrict__ in, uint8_t *__restrict__ out, int gain, long pixels) {
    long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
    if (Narrow) {
        if (i < pixels) out[i] = brighten(in[i], gain);
        return;
    }
    if (i * 16 >= pixels) return;
    uint4 packed = reinterpret_cast<const uint4 *>(in)[i];
    auto *bytes = reinterpret_cast<uint8_t *>(&packed);
#pragma unroll
    for (int k = 0; k < 16; ++k) bytes[k] = brighten(bytes[k], gain);
    reinterpret_cast<uint4 *>(out)[i] = packed;
}
Family image_brightness(
    "image_brightness", "image", {1 << 24, 1 << 27}, mend("narrow_access", "real"), [](Buffers &b, long n) -> Sides {
        auto *in = reinterpret_cast<uint8_t *>(b.random<int>(n / 4, -2e9, 2e9));
        auto *out = reinterpret_cast<uint8_t *>(b.output<int>(n / 4));
        return flawed_mended(launch(brightness<true>, blocks(n, 256), 256, 0, in, out, 150, n),
            launch(brightness<false>, blocks(n / 16, 256), 256, 0, in, out, 150, n));
    });

// Half precision, one a thread or eight.
template <bool Narrow>
__global__ void relu(const __half *__restrict__ in, __half *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (Narrow) {
        if (i < n) out[i] = __hmax(in[i], __float2half(0.0f));
        return;
    }
    if (i * 8 >= n) return;
    uint4 packed = reinterpret_cast<const uint4 *>(in)[i];
    auto *two = reinterpret_cast<__half2 *>(&packed);
#pragma unroll
    for (int k = 0; k < 4; ++k) two[k] = __hmax2(two[k], __float2half2_rn(0.0f));
    reinterpret_cast<uint4 *>(out)[i] = packed;
}
Family relu_half("relu_half", "relu", {1 << 23, 1 << 27}, mend("narrow_access"), [](Buffers &b, long n) -> Sides {
    __half *in = b.random<__half>(n), *out = b.output<__half>(n);
    return flawed_mended(launch(relu<true>, blocks(n, 256), 256, 0, in, out, n),
        launch(relu<false>, blocks(n / 8, 256), 256, 0, in, out, n));
});

}  // namespace
