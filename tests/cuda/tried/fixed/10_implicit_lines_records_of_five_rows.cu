// implicit_lines_records_of_five_rows, side planes: more loads in flight.
#include <cuda_pipeline.h>

#include "../tried.cuh"

constexpr int CELLS = 32, UNKNOWNS = 5, RECORD = 32, WORDS = 6 * UNKNOWNS, STAGES = 3;

// As it is, but for the pragma and what launch bounds say: four blocks a multiprocessor are all there are.
template <int CELLS_AT_ONCE, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS) planes_unrolled(const float *__restrict__ planes, float *__restrict__ out, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x;
    if (line >= lines) return;
    float next[UNKNOWNS] = {};
#pragma unroll CELLS_AT_ONCE
    for (int cell = CELLS - 1; cell >= 0; --cell) {
        const float *words = planes + static_cast<size_t>(cell) * 6 * UNKNOWNS * lines + line;
        float x[UNKNOWNS];
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) {
            x[i] = words[static_cast<size_t>(i * 6 + 5) * lines];
#pragma unroll
            for (int j = 0; j < UNKNOWNS; ++j) x[i] -= words[static_cast<size_t>(i * 6 + j) * lines] * next[j];
        }
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) next[i] = x[i], out[static_cast<size_t>(cell * UNKNOWNS + i) * lines + line] = x[i];
    }
}
// As it is in the study.
__global__ void __launch_bounds__(128) back_along_lines_planes(const float *__restrict__ planes, float *__restrict__ out, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x;
    if (line >= lines) return;
    float next[UNKNOWNS] = {};
    for (int cell = CELLS - 1; cell >= 0; --cell) {
        const float *words = planes + static_cast<size_t>(cell) * 6 * UNKNOWNS * lines + line;
        float x[UNKNOWNS];
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) {
            x[i] = words[static_cast<size_t>(i * 6 + 5) * lines];
#pragma unroll
            for (int j = 0; j < UNKNOWNS; ++j) x[i] -= words[static_cast<size_t>(i * 6 + j) * lines] * next[j];
        }
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) next[i] = x[i], out[static_cast<size_t>(cell * UNKNOWNS + i) * lines + line] = x[i];
    }
}
__device__ __forceinline__ void load(float (&w)[WORDS], const float *__restrict__ planes, int cell, int lines, int line) {
    const float *words = planes + static_cast<size_t>(cell) * WORDS * lines + line;
#pragma unroll
    for (int k = 0; k < WORDS; ++k) w[k] = __ldg(words + static_cast<size_t>(k) * lines);
}
// word(k): word k of the cell
template <class Word>
__device__ __forceinline__ void solve(float (&next)[UNKNOWNS], Word word, float *__restrict__ out, int cell, int lines, int line) {
    float x[UNKNOWNS];
#pragma unroll
    for (int i = 0; i < UNKNOWNS; ++i) {
        x[i] = word(i * 6 + 5);
#pragma unroll
        for (int j = 0; j < UNKNOWNS; ++j) x[i] -= word(i * 6 + j) * next[j];
    }
#pragma unroll
    for (int i = 0; i < UNKNOWNS; ++i) next[i] = x[i], out[static_cast<size_t>(cell * UNKNOWNS + i) * lines + line] = x[i];
}
// All 30 words of a cell are asked for before the first is used.
__global__ void __launch_bounds__(128, 4) planes_cell_first(const float *__restrict__ planes, float *__restrict__ out, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x;
    if (line >= lines) return;
    float next[UNKNOWNS] = {}, w[WORDS];
#pragma unroll 1
    for (int cell = CELLS - 1; cell >= 0; --cell) load(w, planes, cell, lines, line), solve(next, [&](int k) { return w[k]; }, out, cell, lines, line);
}
// The next cell's 30 words are on their way while a cell is solved.
__global__ void __launch_bounds__(128, 4) planes_prefetch(const float *__restrict__ planes, float *__restrict__ out, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x;
    if (line >= lines) return;
    float next[UNKNOWNS] = {}, u[WORDS], v[WORDS];
    load(u, planes, CELLS - 1, lines, line);
#pragma unroll 1
    for (int cell = CELLS - 1; cell > 0; cell -= 2) {
        load(v, planes, cell - 1, lines, line);
        solve(next, [&](int k) { return u[k]; }, out, cell, lines, line);
        load(u, planes, max(cell - 2, 0), lines, line);  // the last is loaded in vain
        solve(next, [&](int k) { return v[k]; }, out, cell - 1, lines, line);
    }
}
// A warp's ring of cells in shared memory, filled by asynchronous copies of BYTES each. Lines are a multiple of 32.
template <int BYTES>
__global__ void __launch_bounds__(128, 4) planes_async(const float *__restrict__ planes, float *__restrict__ out, int lines) {
    __shared__ __align__(16) float held[STAGES][4][WORDS][32];
    const int line = blockIdx.x * 128 + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (line >= lines) return;
    auto fetch = [&](int cell) {
        if (cell >= 0) {
            const float *from = planes + static_cast<size_t>(cell) * WORDS * lines + (line - lane);
            float (*to)[32] = held[cell % STAGES][warp];
            constexpr int EACH = BYTES / 4, LANES = 32 / EACH;  // lanes to a word of 32 lines
#pragma unroll
            for (int k = lane; k < WORDS * LANES; k += 32)
                __pipeline_memcpy_async(&to[k / LANES][k % LANES * EACH], from + static_cast<size_t>(k / LANES) * lines + k % LANES * EACH, BYTES);
        }
        __pipeline_commit();
    };
    float next[UNKNOWNS] = {};
    for (int s = 0; s < STAGES - 1; ++s) fetch(CELLS - 1 - s);
#pragma unroll 1
    for (int cell = CELLS - 1; cell >= 0; --cell) {
        fetch(cell - (STAGES - 1));
        __pipeline_wait_prior(STAGES - 1);
        __syncwarp();
        const float (*w)[32] = held[cell % STAGES][warp];
        solve(next, [&](int k) { return w[k][lane]; }, out, cell, lines, line);
        __syncwarp();
    }
}

// Right sides from 0 to 1, factors small enough for a stable recurrence.
__global__ void fill_planes(float *planes, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x, cell = blockIdx.y;
    for (int k = 0; k < WORDS; ++k) {
        const float unit = static_cast<float>(hashed(static_cast<unsigned>((line * CELLS + cell) * RECORD + k)) >> 8) / 16777216.f;
        planes[(static_cast<size_t>(cell) * WORDS + k) * lines + line] = k % 6 == 5 ? unit : 0.3f * (unit - 0.4f);
    }
}

int main() {
    const int lines = 256 * 256, grid = lines / 128;
    const size_t count = size_t(lines) * CELLS * UNKNOWNS;
    float *p = get<float>(size_t(lines) * CELLS * WORDS), *out = get<float>(count);
    fill_planes<<<dim3(grid, CELLS), 128>>>(p, lines);
    judge({{"as_it_is", [=] { back_along_lines_planes<<<grid, 128>>>(p, out, lines); }},
        {"as_it_is_more_registers", [=] { planes_unrolled<1, 4><<<grid, 128>>>(p, out, lines); }},
        {"unroll_2_few_registers", [=] { planes_unrolled<2, 0><<<grid, 128>>>(p, out, lines); }},
        {"unroll_2", [=] { planes_unrolled<2, 4><<<grid, 128>>>(p, out, lines); }},
        {"cell_first", [=] { planes_cell_first<<<grid, 128>>>(p, out, lines); }},
        {"prefetch_cell", [=] { planes_prefetch<<<grid, 128>>>(p, out, lines); }},
        {"async_4_bytes", [=] { planes_async<4><<<grid, 128>>>(p, out, lines); }},
        {"async_16_bytes", [=] { planes_async<16><<<grid, 128>>>(p, out, lines); }}}, {{out, count}});
}
