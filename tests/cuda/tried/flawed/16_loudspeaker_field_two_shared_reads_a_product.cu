// loudspeaker_field_two_shared_reads_a_product, side flawed: more loads in flight, several elements a thread, all loaded before the first is used.
#include "../tried.cuh"

constexpr int FIELD = 16, SPEAKERS = 24;

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
// A block has 32 * N samples, a thread N of them, 32 apart, all loaded before the first is stored.
// KEPT: a gain, once read, serves all samples of a thread; else each product still reads both factors.
template <int N, bool KEPT>
__global__ void __launch_bounds__(32 * SPEAKERS, 2) decode_several(const float *__restrict__ field, const float *__restrict__ matrix, float *__restrict__ out, int samples) {
    constexpr bool WHOLE = N != 3;  // the samples fill all blocks
    __shared__ float gain[SPEAKERS][FIELD], held[FIELD][32 * N];
    const int lane = threadIdx.x, speaker = threadIdx.y, first = blockIdx.x * 32 * N;
    float own[N], weight = 0.f;
    if (speaker < FIELD) {
#pragma unroll
        for (int i = 0; i < N; i++) own[i] = WHOLE || first + i * 32 < samples ? field[static_cast<size_t>(speaker) * samples + first + i * 32 + lane] : 0.f;
    }
    if (lane < FIELD) weight = matrix[speaker * FIELD + lane];
    if (speaker < FIELD) {
#pragma unroll
        for (int i = 0; i < N; i++) held[speaker][i * 32 + lane] = own[i];
    }
    if (lane < FIELD) gain[speaker][lane] = weight;
    __syncthreads();
    float *to = out + static_cast<size_t>(speaker) * samples + first + lane;
    if (KEPT) {
        float sum[N] = {};
#pragma unroll
        for (int c = 0; c < FIELD; c++) {
            const float g = gain[speaker][c];
#pragma unroll
            for (int i = 0; i < N; i++) sum[i] += g * held[c][i * 32 + lane];
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            if (WHOLE || first + i * 32 < samples) to[i * 32] = sum[i];
    } else {
#pragma unroll 1
        for (int i = 0; i < N; i++) {
            float sum = 0.f;
            for (int c = 0; c < FIELD; c++) sum += gain[speaker][c] * held[c][i * 32 + lane];
            if (WHOLE || first + i * 32 < samples) to[i * 32] = sum;
        }
    }
}
// As many blocks as fit, each goes through groups of 32 samples; the next three groups' values are on their way
// (three steps in a row, so that no value is moved to another register, which would wait for it).
__global__ void __launch_bounds__(32 * SPEAKERS, 2) decode_ahead(const float *__restrict__ field, const float *__restrict__ matrix, float *__restrict__ out, int samples) {
    constexpr int AHEAD = 3;
    __shared__ float gain[SPEAKERS][FIELD], held[AHEAD][FIELD][32];
    const int lane = threadIdx.x, speaker = threadIdx.y, groups = samples / 32, step = gridDim.x;
    const float *from = field + static_cast<size_t>(speaker) * samples + lane;
    float own[AHEAD], *to = out + static_cast<size_t>(speaker) * samples + lane;
    const auto value = [&](int group) { return speaker < FIELD && group < groups ? from[group * 32] : 0.f; };
#pragma unroll
    for (int i = 0; i < AHEAD; i++) own[i] = value(blockIdx.x + i * step);
    if (lane < FIELD) gain[speaker][lane] = matrix[speaker * FIELD + lane];
#pragma unroll 1
    for (int first = blockIdx.x; first < groups; first += AHEAD * step) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int group = first + i * step;
            if (group >= groups) break;  // the whole block
            if (speaker < FIELD) held[i][speaker][lane] = own[i];
            own[i] = value(group + AHEAD * step);
            __syncthreads();
            float sum = 0.f;
            for (int c = 0; c < FIELD; c++) sum += gain[speaker][c] * held[i][c][lane];
            to[group * 32] = sum;
        }
    }
}

int main() {
    const int samples = 1 << 21;
    const size_t results = size_t(SPEAKERS) * samples;
    const float *field = drawn<float>(size_t(FIELD) * samples, -1, 1, 1), *matrix = drawn<float>(SPEAKERS * FIELD, -1, 1, 2);
    float *out = get<float>(results);
    int processors = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    const dim3 block(32, SPEAKERS);
    const auto blocks = [](int each) { return (samples + each - 1) / each; };
    judge({{"as_it_is", [=] { decode_field<<<samples / 32, block>>>(field, matrix, out, samples); }},
        {"two_loads", [=] { decode_several<2, false><<<blocks(64), block>>>(field, matrix, out, samples); }},
        {"three_loads", [=] { decode_several<3, false><<<blocks(96), block>>>(field, matrix, out, samples); }},
        {"four_loads", [=] { decode_several<4, false><<<blocks(128), block>>>(field, matrix, out, samples); }},
        {"three_loads_gain_kept", [=] { decode_several<3, true><<<blocks(96), block>>>(field, matrix, out, samples); }},
        {"four_loads_gain_kept", [=] { decode_several<4, true><<<blocks(128), block>>>(field, matrix, out, samples); }},
        {"three_loads_ahead", [=] { decode_ahead<<<processors * 2, block>>>(field, matrix, out, samples); }}}, {{out, results}});
}
