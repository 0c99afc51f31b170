// Sound, and sparse matrices. Each kernel has one weakness and two or three ways out.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- another sampling rate: 160 outputs for 147 inputs, by a filter of 32 taps for each of 160 phases ---

constexpr int UP = 160, OLD = 147, FILTER = 32;

// Grid: (groups of 320 outputs, channels). Taps: [phase][tap], in shared memory with rows of PITCH values.
template <int PITCH>
__global__ void __launch_bounds__(320) resample(const float *__restrict__ in, const float *__restrict__ taps, float *__restrict__ out, int groups) {
    __shared__ float held[UP * PITCH];
    for (int i = threadIdx.x; i < UP * FILTER; i += 320) held[i / FILTER * PITCH + i % FILTER] = taps[i];
    __syncthreads();
    in += static_cast<size_t>(blockIdx.y) * (2 * OLD * groups + FILTER);
    out += static_cast<size_t>(blockIdx.y) * 2 * UP * groups;
    const int phase = threadIdx.x * OLD % UP, offset = threadIdx.x * OLD / UP;
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        const float *from = in + g * 2 * OLD + offset;
        float sum = 0.f;
#pragma unroll
        for (int t = 0; t < FILTER; t++) sum = fmaf(held[phase * PITCH + t], from[t], sum);
        out[g * 2 * UP + threadIdx.x] = sum;
    }
}
// Taps: [tap][phase].
__global__ void __launch_bounds__(320) resample_turned(const float *__restrict__ in, const float *__restrict__ taps, float *__restrict__ out, int groups) {
    __shared__ float held[FILTER * UP];
    for (int i = threadIdx.x; i < UP * FILTER; i += 320) held[i] = taps[i % UP * FILTER + i / UP];
    __syncthreads();
    in += static_cast<size_t>(blockIdx.y) * (2 * OLD * groups + FILTER);
    out += static_cast<size_t>(blockIdx.y) * 2 * UP * groups;
    const int phase = threadIdx.x * OLD % UP, offset = threadIdx.x * OLD / UP;
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        const float *from = in + g * 2 * OLD + offset;
        float sum = 0.f;
#pragma unroll
        for (int t = 0; t < FILTER; t++) sum = fmaf(held[t * UP + phase], from[t], sum);
        out[g * 2 * UP + threadIdx.x] = sum;
    }
}
// A thread has the same phase in all groups: its taps stay in registers.
__global__ void __launch_bounds__(320) resample_registers(const float *__restrict__ in, const float *__restrict__ taps, float *__restrict__ out, int groups) {
    in += static_cast<size_t>(blockIdx.y) * (2 * OLD * groups + FILTER);
    out += static_cast<size_t>(blockIdx.y) * 2 * UP * groups;
    const int phase = threadIdx.x * OLD % UP, offset = threadIdx.x * OLD / UP;
    float own[FILTER];
#pragma unroll
    for (int t = 0; t < FILTER; t++) own[t] = taps[phase * FILTER + t];
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        const float *from = in + g * 2 * OLD + offset;
        float sum = 0.f;
#pragma unroll
        for (int t = 0; t < FILTER; t++) sum = fmaf(own[t], from[t], sum);
        out[g * 2 * UP + threadIdx.x] = sum;
    }
}

Study rate("sampling_rate_taps_of_a_phase_in_a_row", "signals", 1024, "64 channels from 44.1 to 48 kHz: 160 phases of 32 taps, 21 million outputs",
    "lanes read the taps of different phases, 32 words apart in shared memory",
    {{"padded", "rows of 33 words", {"shared_bank_conflicts"}}, {"turned", "the phases of a tap side by side", {"shared_bank_conflicts"}},
        {"registers", "a thread keeps the taps of its phase in registers", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int CHANNELS = 64, A_CHANNEL = 32;  // how many blocks each channel has
        const float *in = b.random<float>(CHANNELS * (n * 2 * OLD + FILTER)), *taps = b.random<float>(UP * FILTER);
        float *out = b.output<float>(CHANNELS * n * 2 * UP);
        const dim3 grid(A_CHANNEL, CHANNELS);
        const int groups = static_cast<int>(n);
        return {{"flawed", launch(resample<FILTER>, grid, 320, 0, in, taps, out, groups)}, {"padded", launch(resample<FILTER + 1>, grid, 320, 0, in, taps, out, groups)},
            {"turned", launch(resample_turned, grid, 320, 0, in, taps, out, groups)}, {"registers", launch(resample_registers, grid, 320, 0, in, taps, out, groups)}};
    });

// --- a sound field of 16 channels for 24 loudspeakers ---

constexpr int FIELD = 16, SPEAKERS = 24;

// A block has 32 samples: a warp for each loudspeaker.
__global__ void __launch_bounds__(32 * SPEAKERS) decode_field(const float *__restrict__ field, const float *__restrict__ matrix, float *__restrict__ out, int samples) {
    __shared__ float gain[SPEAKERS][FIELD], held[FIELD][32];
    const int lane = threadIdx.x, speaker = threadIdx.y, first = blockIdx.x * 32;
    if (speaker < FIELD) {
        held[speaker][lane] = field[static_cast<size_t>(speaker) * samples + first + lane];
    }
    if (lane < FIELD) gain[speaker][lane] = matrix[speaker * FIELD + lane];
    __syncthreads();
    float sum = 0.f;
    for (int c = 0; c < FIELD; c++) sum += gain[speaker][c] * held[c][lane];
    out[static_cast<size_t>(speaker) * samples + first + lane] = sum;
}
// A thread has a sample's 16 values in registers and goes through the loudspeakers.
__global__ void __launch_bounds__(256) decode_field_sample(const float *__restrict__ field, const float4 *__restrict__ matrix, float *__restrict__ out, int samples) {
    __shared__ float4 gain[SPEAKERS][FIELD / 4];
    if (threadIdx.x < SPEAKERS * FIELD / 4) gain[threadIdx.x / 4][threadIdx.x % 4] = matrix[threadIdx.x];
    __syncthreads();
    const int at = blockIdx.x * 256 + threadIdx.x;
    float own[FIELD];
#pragma unroll
    for (int c = 0; c < FIELD; c++) own[c] = field[static_cast<size_t>(c) * samples + at];
#pragma unroll 4
    for (int s = 0; s < SPEAKERS; s++) {
        float sum = 0.f;
#pragma unroll
        for (int c = 0; c < FIELD / 4; c++) {
            const float4 g = gain[s][c];
            sum = fmaf(g.x, own[4 * c], fmaf(g.y, own[4 * c + 1], fmaf(g.z, own[4 * c + 2], fmaf(g.w, own[4 * c + 3], sum))));
        }
        out[static_cast<size_t>(s) * samples + at] = sum;
    }
}
// Two neighbouring samples and a third of the loudspeakers a thread: sums in registers, one channel after the other.
__global__ void __launch_bounds__(128) decode_field_sums(const float2 *__restrict__ field, const float *__restrict__ matrix, float2 *__restrict__ out, int pairs) {
    constexpr int OWN = SPEAKERS / 3;
    __shared__ float gain[FIELD][OWN];
    const int first = blockIdx.y * OWN, at = blockIdx.x * 128 + threadIdx.x;
    gain[threadIdx.x / OWN][threadIdx.x % OWN] = matrix[(first + threadIdx.x % OWN) * FIELD + threadIdx.x / OWN];
    __syncthreads();
    float2 sum[OWN] = {};
#pragma unroll 8
    for (int c = 0; c < FIELD; c++) {
        const float2 v = field[static_cast<size_t>(c) * pairs + at];
#pragma unroll
        for (int s = 0; s < OWN; s++) {
            sum[s].x = fmaf(gain[c][s], v.x, sum[s].x);
            sum[s].y = fmaf(gain[c][s], v.y, sum[s].y);
        }
    }
#pragma unroll
    for (int s = 0; s < OWN; s++) out[static_cast<size_t>(first + s) * pairs + at] = sum[s];
}

Study speakers("loudspeaker_field_two_shared_reads_a_product", "signals", 1 << 21, "a sound field of 16 channels decoded for 24 loudspeakers, 2 million samples",
    "each product reads both of its factors from shared memory",
    {{"sample", "a thread keeps a sample's 16 values for all loudspeakers", {"shared_memory_bandwidth"}}, {"sums", "two samples and eight loudspeakers a thread, sums in registers", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *field = b.random<float>(FIELD * n), *matrix = b.random<float>(SPEAKERS * FIELD);
        float *out = b.output<float>(SPEAKERS * n);
        const int samples = static_cast<int>(n);
        return {{"flawed", launch(decode_field, n / 32, dim3(32, SPEAKERS), 0, field, matrix, out, samples)},
            {"sample", launch(decode_field_sample, n / 256, 256, 0, field, reinterpret_cast<const float4 *>(matrix), out, samples)},
            {"sums", launch(decode_field_sums, dim3(n / 256, 3), 128, 0, reinterpret_cast<const float2 *>(field), matrix, reinterpret_cast<float2 *>(out), samples / 2)}};
    });

// --- a sparse matrix in slices of 32 rows, entries side by side; short rows end with column -1 ---

constexpr int ENTRIES = 48;

__device__ __forceinline__ size_t slice_start(int row) { return static_cast<size_t>(row / 32) * 32 * ENTRIES + row % 32; }

__global__ void __launch_bounds__(256) slices_sentinel(const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    const size_t start = slice_start(row);
    float sum = 0.f;
    for (int k = 0; k < ENTRIES; k++) {
        const int c = column[start + k * 32];
        if (c < 0) break;
        sum += value[start + k * 32] * x[c];
    }
    y[row] = sum;
}
__global__ void __launch_bounds__(256) slices_lengths(const int *__restrict__ column, const float *__restrict__ value, const int *__restrict__ length, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 256 + threadIdx.x, count = length[row];
    const size_t start = slice_start(row);
    float sum = 0.f;
#pragma unroll 4
    for (int k = 0; k < count; k++) sum = fmaf(value[start + k * 32], x[column[start + k * 32]], sum);
    y[row] = sum;
}
// The next entry is on its way while this one is used.
__global__ void __launch_bounds__(256) slices_ahead(const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    const size_t start = slice_start(row);
    float sum = 0.f;
    int c[4];
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) c[i] = column[start + i * 32], v[i] = value[start + i * 32];
    for (int k = 0; k < ENTRIES && c[0] >= 0; k += 4) {
        int next_c[4] = {-1, -1, -1, -1};
        float next_v[4] = {};
        if (k + 4 < ENTRIES) {
#pragma unroll
            for (int i = 0; i < 4; i++) next_c[i] = column[start + (k + 4 + i) * 32], next_v[i] = value[start + (k + 4 + i) * 32];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) sum += c[i] >= 0 ? v[i] * x[c[i]] : 0.f;
#pragma unroll
        for (int i = 0; i < 4; i++) c[i] = next_c[i], v[i] = next_v[i];
    }
    y[row] = sum;
}
// Short rows are filled with zeros at their own column; a warp ends with its slice's longest row.
__global__ void __launch_bounds__(256) slices_filled(const int *__restrict__ column, const float *__restrict__ value, const int *__restrict__ longest, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 256 + threadIdx.x, count = longest[row / 32];
    const size_t start = slice_start(row);
    float sum = 0.f;
#pragma unroll 4
    for (int k = 0; k < count; k++) sum = fmaf(value[start + k * 32], x[column[start + k * 32]], sum);
    y[row] = sum;
}

Study slices("sparse_slices_end_at_a_sentinel", "solvers", 1 << 20, "a sparse matrix of a million rows of 28 to 48 entries in slices, times a vector",
    "each step waits for a column that may say the row has ended",
    {{"lengths", "the rows' lengths kept apart, four entries at a time", {"memory_latency"}}, {"ahead", "four entries read ahead", {"memory_latency"}},
        {"filled", "short rows filled with zeros, a length for each slice", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> column(n * ENTRIES), filled(n * ENTRIES), length(n), longest(n / 32, 0);
        std::vector<float> value(n * ENTRIES);
        for (long row = 0; row < n; row++) {
            length[row] = 28 + static_cast<int>(hash(static_cast<unsigned>(row)) % 21);
            longest[row / 32] = std::max(longest[row / 32], length[row]);
            for (int k = 0; k < ENTRIES; k++) {
                const size_t at = row / 32 * 32 * ENTRIES + row % 32 + k * 32;
                const unsigned noise = hash(static_cast<unsigned>(at) + 77u);
                const bool there = k < length[row];
                const long c = (row + static_cast<long>(noise % 4096) - 2048 + n) % n;
                column[at] = there ? static_cast<int>(c) : -1;
                filled[at] = there ? static_cast<int>(c) : static_cast<int>(row);
                value[at] = there ? (noise >> 12) * (1.f / 1048576.f) - 0.5f : 0.f;
            }
        }
        const int *columns = b.copy(column), *columns_filled = b.copy(filled), *lengths = b.copy(length), *of_slice = b.copy(longest);
        const float *values = b.copy(value), *x = b.random<float>(n);
        float *y = b.output<float>(n);
        return {{"flawed", launch(slices_sentinel, n / 256, 256, 0, columns, values, x, y)}, {"lengths", launch(slices_lengths, n / 256, 256, 0, columns, values, lengths, x, y)},
            {"ahead", launch(slices_ahead, n / 256, 256, 0, columns, values, x, y)}, {"filled", launch(slices_filled, n / 256, 256, 0, columns_filled, values, of_slice, x, y)}};
    });

// --- sound: the inverses of a matrix's diagonal blocks of 4 x 4 times a vector ---

__global__ void __launch_bounds__(256) block_jacobi(const float4 *__restrict__ inverse, const float4 *__restrict__ x, float *__restrict__ y) {
    const int first = blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = first + i * 256;
        const float4 a = inverse[row], v = x[row / 4];
        y[row] = fmaf(a.x, v.x, fmaf(a.y, v.y, fmaf(a.z, v.z, a.w * v.w)));
    }
}

Study jacobi("sound_block_jacobi_of_four", "solvers", 1 << 24, "the inverses of 4 million diagonal blocks of 4 x 4 times a vector", "", {}, [](Buffers &b, long n) -> Sides {
    const float *inverse = b.random<float>(n * 4), *x = b.random<float>(n);
    float *y = b.output<float>(n);
    return {{"sound", launch(block_jacobi, n / 1024, 256, 0, reinterpret_cast<const float4 *>(inverse), reinterpret_cast<const float4 *>(x), y)}};
});

}  // namespace
