// neutrino_mixing_six_sines_in_double, side flawed: evaluate once what does not change with the event, multiply by a reciprocal instead of dividing in FP64.
#include "../tried.cuh"

struct Mixing {
    double real[3], imaginary[3], masses[3];  // of the pairs 21, 31, 32; differences of squared masses in eV^2
};
constexpr double PHASE = 1.26693268;  // of a kilometre and eV^2 by GeV

// As in the study.
__global__ void __launch_bounds__(256) oscillate(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Mixing m, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];  // way, energy
    double likely = 0.0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double phase = PHASE * m.masses[k] * event.x / event.y, s = sin(phase);
        likely += -4.0 * m.real[k] * s * s + 2.0 * m.imaginary[k] * sin(2.0 * phase);
    }
    out[i] = static_cast<float>(likely);
}
// What does not change with the event, made on the host.
struct Factors {
    double phase[3], squares[3], doubles[3];  // PHASE * masses, -4 * real, 2 * imaginary
};
// The divisions stay, all products of parameters are gone.
__global__ void __launch_bounds__(256) oscillate_factors(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Factors f, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];
    double likely = 0.0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double phase = f.phase[k] * event.x / event.y, s = sin(phase);
        likely += f.squares[k] * s * s + f.doubles[k] * sin(2.0 * phase);
    }
    out[i] = static_cast<float>(likely);
}
enum Inverse { DIVIDED, SEEDED };  // SEEDED: a reciprocal in FP32 and one step of Newton in FP64 (2^-46), without a slow way
template <Inverse INVERSE>
__device__ __forceinline__ double inverse_of(float energy) {
    if (INVERSE == DIVIDED) return 1.0 / energy;
    const double r = __frcp_rn(energy);
    return fma(r, fma(-static_cast<double>(energy), r, 1.0), r);
}
// One reciprocal an event, made before the loop; the products of parameters stay.
__global__ void __launch_bounds__(256) oscillate_reciprocal(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Mixing m, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];
    const double way = event.x * inverse_of<DIVIDED>(event.y);
    double likely = 0.0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double phase = PHASE * m.masses[k] * way, s = sin(phase);
        likely += -4.0 * m.real[k] * s * s + 2.0 * m.imaginary[k] * sin(2.0 * phase);
    }
    out[i] = static_cast<float>(likely);
}
// Both: what the statement says. SINCOS goes beyond it: sine and cosine of a phase instead of two sines.
template <Inverse INVERSE, bool SINCOS>
__global__ void __launch_bounds__(256) oscillate_once(const float2 *__restrict__ events, float *__restrict__ out, const __grid_constant__ Factors f, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 event = events[i];
    const double way = event.x * inverse_of<INVERSE>(event.y);
    double likely = 0.0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const double phase = f.phase[k] * way;
        if (SINCOS) {
            double s, c;
            sincos(phase, &s, &c);
            likely += s * (f.squares[k] * s + 2.0 * f.doubles[k] * c);
        } else {
            const double s = sin(phase);
            likely += f.squares[k] * s * s + f.doubles[k] * sin(2.0 * phase);
        }
    }
    out[i] = static_cast<float>(likely);
}

int main() {
    const int n = 1 << 23, grid = n / 256;
    std::vector<float2> host(n);
    for (int i = 0; i < n; i++) host[i] = {295.0f + hashed(static_cast<unsigned>(i)) % 1000, 0.3f + (hashed(static_cast<unsigned>(i) + 9) % 10000) * 5e-4f};
    const float2 *events = copied(host);
    float *out = get<float>(n);
    const Mixing m{{-0.055, -0.021, 0.019}, {0.0085, -0.0085, 0.0085}, {7.42e-5, 2.51e-3, 2.436e-3}};
    Factors f;
    for (int k = 0; k < 3; k++) f.phase[k] = PHASE * m.masses[k], f.squares[k] = -4.0 * m.real[k], f.doubles[k] = 2.0 * m.imaginary[k];
    judge({
        {"as_it_is", [=] { oscillate<<<grid, 256>>>(events, out, m, n); }},
        {"once_and_reciprocal", [=] { oscillate_once<DIVIDED, false><<<grid, 256>>>(events, out, f, n); }},
        {"host_factors_only", [=] { oscillate_factors<<<grid, 256>>>(events, out, f, n); }},
        {"reciprocal_only", [=] { oscillate_reciprocal<<<grid, 256>>>(events, out, m, n); }},
        {"once_and_seeded_reciprocal", [=] { oscillate_once<SEEDED, false><<<grid, 256>>>(events, out, f, n); }},
        {"beyond_sincos", [=] { oscillate_once<DIVIDED, true><<<grid, 256>>>(events, out, f, n); }},
    }, {{out, n}});
}
