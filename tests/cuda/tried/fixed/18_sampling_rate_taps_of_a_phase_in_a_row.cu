// sampling_rate_taps_of_a_phase_in_a_row, side registers: neighbouring threads load neighbouring taps.
#include "../tried.cuh"

constexpr int UP = 160, OLD = 147, FILTER = 32, CHANNELS = 64, A_CHANNEL = 32;
enum { IN_ROWS, TURNED, SHARED };

// TURNED: taps as [tap][thread]. SHARED: copied side by side to shared memory, and taken from there.
template <int FORM>
__global__ void __launch_bounds__(320) resample(const float *__restrict__ in, const float *__restrict__ taps, float *__restrict__ out, int groups) {
    in += static_cast<size_t>(blockIdx.y) * (2 * OLD * groups + FILTER);
    out += static_cast<size_t>(blockIdx.y) * 2 * UP * groups;
    const int phase = threadIdx.x * OLD % UP, offset = threadIdx.x * OLD / UP;
    float own[FILTER];
    if (FORM == SHARED) {
        __shared__ float held[UP * (FILTER + 1)];
        for (int i = threadIdx.x; i < UP * FILTER; i += 320) held[i / FILTER * (FILTER + 1) + i % FILTER] = taps[i];
        __syncthreads();
#pragma unroll
        for (int t = 0; t < FILTER; t++) own[t] = held[phase * (FILTER + 1) + t];
    } else {
#pragma unroll
        for (int t = 0; t < FILTER; t++) own[t] = FORM == TURNED ? taps[t * UP + threadIdx.x % UP] : taps[phase * FILTER + t];
    }
    for (int g = blockIdx.x; g < groups; g += gridDim.x) {
        const float *from = in + g * 2 * OLD + offset;
        float sum = 0.f;
#pragma unroll
        for (int t = 0; t < FILTER; t++) sum = fmaf(own[t], from[t], sum);
        out[g * 2 * UP + threadIdx.x] = sum;
    }
}

int main() {
    const int groups = 1024;
    std::vector<float> rows(UP * FILTER), turned(UP * FILTER);
    for (int i = 0; i < UP * FILTER; i++) rows[i] = 2.f * hashed(i) / 4294967296.f - 1.f;
    for (int thread = 0; thread < UP; thread++)
        for (int t = 0; t < FILTER; t++) turned[t * UP + thread] = rows[thread * OLD % UP * FILTER + t];
    const float *in = drawn<float>(size_t(CHANNELS) * (groups * 2 * OLD + FILTER), -1, 1, 1), *taps = copied(rows), *across = copied(turned);
    const size_t count = size_t(CHANNELS) * groups * 2 * UP;
    float *out = get<float>(count);
    const dim3 grid(A_CHANNEL, CHANNELS);
    judge({{"as_it_is", [=] { resample<IN_ROWS><<<grid, 320>>>(in, taps, out, groups); }},
        {"taps_in_the_threads_order", [=] { resample<TURNED><<<grid, 320>>>(in, across, out, groups); }},
        {"through_shared", [=] { resample<SHARED><<<grid, 320>>>(in, taps, out, groups); }}}, {{out, count}});
}
