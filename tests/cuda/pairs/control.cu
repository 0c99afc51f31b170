// Where threads, warps, blocks or multiprocessors are left without work: divergence, imbalance, tails, small grids,
// many small launches.
#include <algorithm>
#include <numeric>

#include "pair.cuh"

namespace {

__device__ float heavy(float x, int rounds) {
    for (int r = 0; r < rounds; ++r) x = fmaf(x, 0.999f, 0.001f) + 1e-6f * x * x;
    return x;
}

// Every second element takes another path. Neighbours differ, or whole warps do: element and thread are matched anew.
template <bool Mixed>
__global__ void two_ways(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    int base = blockIdx.x * 256, t = threadIdx.x;
    int element = base + (Mixed ? t : (t % 128) * 2 + t / 128);
    float x = in[element];
    if (element & 1) {
        for (int r = 0; r < rounds; ++r) x = fmaf(x, 0.998f, 0.002f);
    } else {
        for (int r = 0; r < rounds; ++r) x = fmaf(x, x * -0.01f, 0.5f);
    }
    out[element] = x;
}
Family two_ways_mixed(
    "two_ways_mixed", "two_ways", {32, 1024}, mend("branch_divergence"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 32;
        float *in = b.random<float>(grid * 256), *out = b.output<float>(grid * 256);
        return flawed_mended(launch(two_ways<true>, grid, 256, 0, in, out, rounds),
            launch(two_ways<false>, grid, 256, 0, in, out, rounds));
    });

// Eight ways, chosen by the element's kind: as they come, or sorted by kind.
__global__ void eight_ways(const float *__restrict__ in, const int *__restrict__ kinds, const int *__restrict__ where,
    float *__restrict__ out, int rounds) {
    int i = blockIdx.x * 256 + threadIdx.x, element = where[i];
    float x = in[element];
    switch (kinds[i]) {
    case 0:
        for (int r = 0; r < rounds; ++r) x = fmaf(x, 0.99f, 0.01f);
        break;
    case 1:
        for (int r = 0; r < rounds; ++r) x = fmaf(x, x * -0.01f, 0.5f);
        break;
    case 2:
        for (int r = 0; r < rounds; ++r) x = fminf(x * 1.01f, 0.9f);
        break;
    case 3:
        for (int r = 0; r < rounds; ++r) x = x * 0.7f - 0.1f;
        break;
    case 4:
        for (int r = 0; r < rounds; ++r) x = fmaxf(x * 0.9f, 0.1f);
        break;
    case 5:
        for (int r = 0; r < rounds; ++r) x = fabsf(x - 0.3f) * 0.9f;
        break;
    case 6:
        for (int r = 0; r < rounds; ++r) x = x * x * 0.5f + 0.1f;
        break;
    default:
        for (int r = 0; r < rounds; ++r) x = 0.2f - x * 0.8f;
        break;
    }
    out[element] = x;
}
Family eight_ways_mixed(
    "eight_ways_mixed", "eight_ways", {16, 256}, mend("branch_divergence"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 16, n = grid * 256;
        std::vector<int> kinds(n), sorted(n), order(n), as_is(n);
        for (int i = 0; i < n; ++i) kinds[i] = hash(unsigned(i)) % 8;
        std::iota(order.begin(), order.end(), 0);
        as_is = order;
        // Sorted within blocks, so that a block's memory accesses stay where they were.
        for (int block = 0; block < grid; ++block)
            std::stable_sort(order.begin() + block * 256, order.begin() + block * 256 + 256,
                [&](int a, int c) { return kinds[a] < kinds[c]; });
        for (int i = 0; i < n; ++i) sorted[i] = kinds[order[i]];
        float *in = b.random<float>(n), *out = b.output<float>(n);
        return flawed_mended(launch(eight_ways, grid, 256, 0, in, b.copy(kinds), b.copy(as_is), out, rounds),
            launch(eight_ways, grid, 256, 0, in, b.copy(sorted), b.copy(order), out, rounds));
    });

// Random walks that end after different numbers of steps: as drawn, or grouped by length.
__global__ void walks(const int *__restrict__ lengths, const int *__restrict__ where, float *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x, walk = where[i];
    unsigned state = walk + 1;
    float position = 0.0f;
    for (int step = lengths[i]; step > 0; --step) {
        state = state * 1664525u + 1013904223u;
        position += (state >> 8) * (1.0f / 16777216.0f) - 0.5f;
    }
    out[walk] = position;
}
Family walks_unsorted("walks_unsorted", "monte_carlo", {64, 1024}, mend("branch_divergence", "real"),
    [](Buffers &b, long longest) -> Sides {
        int grid = multiprocessors() * 16, n = grid * 256;
        std::vector<int> lengths(n), sorted(n), order(n);
        for (int i = 0; i < n; ++i) {
            float u = (hash(unsigned(i)) + 1.0f) / 4294967808.0f;
            lengths[i] = 1 + int(longest * u * u);
        }
        std::iota(order.begin(), order.end(), 0);
        std::vector<int> as_is = order;
        for (int block = 0; block < grid; ++block)
            std::stable_sort(order.begin() + block * 256, order.begin() + block * 256 + 256,
                [&](int a, int c) { return lengths[a] > lengths[c]; });
        for (int i = 0; i < n; ++i) sorted[i] = lengths[order[i]];
        float *out = b.output<float>(n);
        return flawed_mended(launch(walks, grid, 256, 0, b.copy(lengths), b.copy(as_is), out),
            launch(walks, grid, 256, 0, b.copy(sorted), b.copy(order), out));
    });

// A branch that splits every warp, over data streamed from memory: memory is the limit either way.
template <bool Mixed>
__global__ void clip(const float *__restrict__ in, float *__restrict__ out, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float x = in[i];
        if (Mixed ? i & 1 : (i >> 5) & 1) x = heavy(x, 6);
        else x = heavy(-x, 5) * 0.5f;
        out[i] = x;
    }
}
// The two sides take the ways for different elements: they agree in what they do to one value, not in the value.
Family clip_mixed("clip_mixed", "clip", {1 << 24, 1 << 27}, mend("branch_divergence"), [](Buffers &b, long n) -> Sides {
    float *same = b.allocate<float>(n), *out = b.output<float>(n);
    std::vector<float> host(n, 0.0f);  // heavy(0) and heavy(-0) * 0.5 differ by the way alone; see the check below
    CHECK(cudaMemcpy(same, host.data(), n * 4, cudaMemcpyHostToDevice));
    int grid = multiprocessors() * 8;
    auto sorted = [=] {  // half of the elements went either way: bring them into one order
        std::vector<float> values(n);
        CHECK(cudaMemcpy(values.data(), out, n * 4, cudaMemcpyDeviceToHost));
        std::nth_element(values.begin(), values.begin() + n / 2, values.end());
        CHECK(cudaMemcpy(out, values.data(), n * 4, cudaMemcpyHostToDevice));
    };
    return {{"flawed", launch(clip<true>, grid, 256, 0, same, out, n), {}, 1, sorted},
        {"mended", launch(clip<false>, grid, 256, 0, same, out, n), {}, 1, sorted}};
});

// Row i of a triangle has i elements. Blocks take bands of rows, or rows from both ends so that every block has as
// many.
template <bool Bands>
__global__ void triangle(const float *__restrict__ x, float *__restrict__ out, int rows) {
    int per_block = rows / gridDim.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = warp; k < per_block; k += 8) {
        int turn = blockIdx.x * per_block + k;
        int row = Bands ? turn : k & 1 ? rows - 1 - (k / 2 * gridDim.x + blockIdx.x) : k / 2 * gridDim.x + blockIdx.x;
        float sum = 0.0f;
#pragma unroll 4
        for (int c = lane; c <= row; c += 32) sum = fmaf(x[c], x[row - c], sum);
        sum = warp_sum(sum);
        if (lane == 0) out[row] = sum;
    }
}
Family triangle_bands(
    "triangle_bands", "triangle", {4224, 33792}, mend("workload_imbalance"), [](Buffers &b, long rows) -> Sides {
        int grid = multiprocessors() * (rows > 10000 ? 4 : 2);
        rows = rows / grid / 16 * 16 * grid;
        float *x = b.random<float>(rows), *out = b.output<float>(rows);
        return flawed_mended(
            launch(triangle<true>, grid, 256, 0, x, out, rows), launch(triangle<false>, grid, 256, 0, x, out, rows));
    });

// Sparse rows of very different lengths, a warp a row (long rows last), or a warp for every 256 values of a row.
__global__ void spmv_rows(const int *__restrict__ start, const int *__restrict__ column,
    const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = start[row] + lane; k < start[row + 1]; k += 32) sum += value[k] * x[column[k]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
__global__ void spmv_pieces(const int *__restrict__ piece, const int *__restrict__ piece_row,
    const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y,
    int pieces) {
    int p = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (p >= pieces) return;
    float sum = 0.0f;
    for (int k = piece[p] + lane; k < piece[p + 1]; k += 32) sum += value[k] * x[column[k]];
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(&y[piece_row[p]], sum);
}
Family spmv_long_rows("spmv_long_rows", "spmv", {1 << 14, 1 << 17}, mend("workload_imbalance", "real"),
    [](Buffers &b, long rows) -> Sides {
        std::vector<int> start(1, 0), piece, piece_row;
        for (long r = 0; r < rows; ++r) {
            int length = 8 + hash(unsigned(r)) % 48;
            if (hash(unsigned(r) + 77) % 2048 == 0) length = 12000;
            for (int k = 0; k < length; k += 256) {
                piece.push_back(start.back() + k);
                piece_row.push_back(int(r));
            }
            start.push_back(start.back() + length);
        }
        piece.push_back(start.back());
        long count = start.back();
        float *value = b.random<float>(count), *x = b.random<float>(rows, 0.0, 1.0), *y = b.output<float>(rows, true);
        int *column = b.random<int>(count, 0, double(rows)), pieces = int(piece_row.size());
        return flawed_mended(launch(spmv_rows, blocks(rows, 8), 256, 0, b.copy(start), column, value, x, y, rows),
            launch(
                spmv_pieces, blocks(pieces, 8), 256, 0, b.copy(piece), b.copy(piece_row), column, value, x, y, pieces));
    });

// Some threads of a block do all the work and the others wait for them, or all do as much.
template <bool Few>
__global__ void uneven_warps(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    __shared__ float data[256];
    int warp = threadIdx.x / 32;
    data[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    // 16 rounds to share out in each of the steps: warp 0 has nine of them and the others one, or each has two.
    float x = data[threadIdx.x];
    for (int step = 0; step < 8; ++step) {
        int mine = Few ? (warp == 0 ? 9 : 1) : 2;
        for (int r = 0; r < mine * rounds; ++r) x = fmaf(x, 0.5f, 0.25f);
        __syncthreads();
    }
    out[blockIdx.x * 256 + threadIdx.x] = x;
}
Family uneven_warps_block(
    "uneven_warps", "uneven", {8, 128}, mend("workload_imbalance"), [](Buffers &b, long rounds) -> Sides {
        int grid = multiprocessors() * 8;
        float *in = b.random<float>(grid * 256), *out = b.output<float>(grid * 256);
        b.tolerance = 1e-2;  // x converges to the same half whoever does the rounds
        return flawed_mended(launch(uneven_warps<true>, grid, 256, 0, in, out, rounds),
            launch(uneven_warps<false>, grid, 256, 0, in, out, rounds));
    });

// As many equal blocks as a wave holds and some more, or the same work dealt out over the blocks of exactly one wave.
__global__ void __launch_bounds__(1024)
    waves(const float *__restrict__ in, float *__restrict__ out, int units, int rounds) {
    size_t first = size_t(blockIdx.x) * units * 1024 + threadIdx.x;
    for (int u = 0; u < units; ++u) out[first + u * 1024] = heavy(in[first + u * 1024], rounds);
}
// `percent` of a wave of two blocks of 1024 threads a multiprocessor, 24 units of work a block.
Sides wave_sides(Buffers &b, long percent) {
    int wave = multiprocessors() * 2, units = 24, step = wave / std::gcd(wave, units);
    int grid = int(wave * percent / 100) / step * step,
        n = grid * units * 1024;  // whole units for every block of a wave
    float *in = b.random<float>(n), *out = b.output<float>(n);
    int share = grid * units / wave;
    return flawed_mended(
        launch(waves, grid, 1024, 0, in, out, units, 60), launch(waves, wave, 1024, 0, in, out, share, 60));
}
Family tail_percent("tail_percent", "waves", {105, 125, 150, 210, 405}, mend("tail_effect"), wave_sides);

// A grid of a few blocks, or of many smaller ones.
template <int PerThread>
__global__ void few_blocks(const float *__restrict__ in, float *__restrict__ out, int rounds) {
    int first = blockIdx.x * blockDim.x * PerThread + threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < PerThread; ++k) out[first + k * blockDim.x] = heavy(in[first + k * blockDim.x], rounds);
}
Family small_grid_compute(
    "small_grid_compute", "small_grid", {16, 64, 120}, mend("small_grid"), [](Buffers &b, long grid) -> Sides {
        float *in = b.random<float>(grid * 256 * 16), *out = b.output<float>(grid * 256 * 16);
        return flawed_mended(
            launch(few_blocks<16>, grid, 256, 0, in, out, 100), launch(few_blocks<1>, grid * 16, 256, 0, in, out, 100));
    });
// Sums of long rows: a block a row, or many blocks a row.
__global__ void row_sums(const float4 *__restrict__ in, float *__restrict__ out, int columns, int pieces) {
    int row = blockIdx.x / pieces, piece = blockIdx.x % pieces, length = columns / pieces;
    const float4 *from = in + size_t(row) * columns + size_t(piece) * length;
    float sum = 0.0f;
#pragma unroll 4
    for (int k = threadIdx.x; k < length; k += 256) sum += from[k].x + from[k].y + from[k].z + from[k].w;
    __shared__ float parts[8];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (float part : parts) sum += part;
        atomicAdd(&out[row], sum);
    }
}
Family small_grid_rows(
    "small_grid_rows", "reduction", {8, 32, 96}, mend("small_grid", "real"), [](Buffers &b, long rows) -> Sides {
        int columns = 1 << 17;
        auto *in = reinterpret_cast<float4 *>(b.random<float>(rows * columns * 4, 0.0, 1.0));
        float *out = b.output<float>(rows, true);
        return flawed_mended(launch(row_sums, rows, 256, 0, in, out, columns, 1),
            launch(row_sums, rows * 64, 256, 0, in, out, columns, 64));
    });

// A vector in many small launches, or in one.
__global__ void scale(float *__restrict__ out, const float *__restrict__ in, int first, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[first + i] = in[first + i] * 1.5f + 0.5f;
}
Family many_launches(
    "many_launches", "scale", {16, 128}, mend("launch_overhead"), [](Buffers &b, long launches) -> Sides {
        int each = 1 << 16, n = int(each * launches);
        float *in = b.random<float>(n), *out = b.output<float>(n);
        auto many = [=] {
            for (int k = 0; k < launches; ++k) scale<<<each / 256, 256>>>(out, in, k * each, each);
        };
        return {{"flawed", many, launch(scale, each / 256, 256, 0, out, in, 0, each), int(launches)},
            {"mended", launch(scale, n / 256, 256, 0, out, in, 0, n)}};
    });
Family many_steps("many_steps", "oscillate", {32, 256}, mend("launch_overhead"), [](Buffers &b, long steps) -> Sides {
    int n = multiprocessors() * 256;
    float *in = b.random<float>(n), *out = b.output<float>(n);
    // Each step reads what the step before wrote, for a block's own elements alone: one launch can do them all.
    auto many = [=] {
        few_blocks<1><<<n / 256, 256>>>(in, out, 20);
        for (int k = 1; k < steps; ++k) few_blocks<1><<<n / 256, 256>>>(out, out, 20);
    };
    return {{"flawed", many, launch(few_blocks<1>, n / 256, 256, 0, in, out, 20), int(steps)},
        {"mended", launch(few_blocks<1>, n / 256, 256, 0, in, out, 20 * steps)}};
});

}  // namespace
