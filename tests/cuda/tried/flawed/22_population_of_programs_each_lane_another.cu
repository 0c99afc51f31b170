// population_of_programs_each_lane_another, side flawed: what does not change once, and fast functions for the rest.
#include "../tried.cuh"

constexpr int LENGTH = 32, TRIALS = 64, INPUTS = 4;
enum { PRECISE, FAST, ONCE };

__device__ __forceinline__ float root(float x) {
    float found;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(found) : "f"(x));
    return found;
}
// ONCE: the inputs' reciprocals of one and their squares stand behind them.
template <int FORM>
__device__ __forceinline__ float done(unsigned instruction, float value, const float *inputs) {
    const float with = inputs[instruction >> 3 & 3], constant = (instruction >> 5) * (1.0f / 65536.0f);
    switch (instruction & 7) {
    case 0: return value + with;
    case 1: return value - constant * with;
    case 2: return value * with + constant;
    case 3: return FORM == ONCE ? value * inputs[INPUTS + (instruction >> 3 & 3)] : FORM == FAST ? __fdividef(value, 1.0f + with * with) : value / (1.0f + with * with);
    case 4: return __sinf(value + with);
    case 5: return FORM == PRECISE ? sqrtf(fabsf(value) + constant) : root(fabsf(value) + constant);
    case 6: return fminf(value, with + constant);
    default: return (FORM == PRECISE ? expf(-fabsf(value)) : __expf(-fabsf(value))) + with;
    }
}
template <int FORM>
__global__ void __launch_bounds__(128) population_errors(const unsigned *__restrict__ programs, const float4 *__restrict__ points, const float *__restrict__ wanted, float *__restrict__ out, int count) {
    constexpr int HELD = FORM == ONCE ? 2 * INPUTS : INPUTS;
    __shared__ float inputs[TRIALS][HELD];
    for (int k = threadIdx.x; k < TRIALS; k += 128) {
        const float4 p = points[k];
        *reinterpret_cast<float4 *>(inputs[k]) = p;
        if (FORM == ONCE) *reinterpret_cast<float4 *>(inputs[k] + HELD - INPUTS) = make_float4(1.0f / (1.0f + p.x * p.x), 1.0f / (1.0f + p.y * p.y), 1.0f / (1.0f + p.z * p.z), 1.0f / (1.0f + p.w * p.w));
    }
    __syncthreads();
    const int program = blockIdx.x * 128 + threadIdx.x;
    if (program >= count) return;
    float error = 0.0f;
    for (int k = 0; k < TRIALS; k++) {
        float value = 0.0f;
        for (int i = 0; i < LENGTH; i++) value = done<FORM>(programs[i * count + program], value, inputs[k]);
        error += fabsf(value - wanted[k]);
    }
    out[program] = error;
}

int main() {
    const int n = 65536;
    std::vector<unsigned> code(size_t(n) * LENGTH);
    for (size_t i = 0; i < code.size(); i++) code[i] = hashed(static_cast<unsigned>(i)) & 0x1fffff;
    const unsigned *programs = copied(code);
    const float4 *points = reinterpret_cast<const float4 *>(drawn<float>(TRIALS * 4, -1, 1, 1));
    const float *wanted = drawn<float>(TRIALS, -1, 1, 2);
    float *out = get<float>(n);
    judge({{"as_it_is", [=] { population_errors<PRECISE><<<n / 128, 128>>>(programs, points, wanted, out, n); }},
        {"reciprocals_once_and_fast", [=] { population_errors<ONCE><<<n / 128, 128>>>(programs, points, wanted, out, n); }},
        {"fast", [=] { population_errors<FAST><<<n / 128, 128>>>(programs, points, wanted, out, n); }}}, {{out, size_t(n)}});
}
