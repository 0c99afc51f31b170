// credit_spreads_exponentials_in_double, side flawed: each hazard loaded once and kept
#include "../tried.cuh"

constexpr int PILLARS = 5;

struct Swaps {
    const float *hazard;  // PILLARS rows, contracts side by side
    const float *rate;
    const int *quarters;
    float *spread;
    int count;
};

__device__ __forceinline__ int pillar_of(int quarter) { return (quarter >= 4) + (quarter >= 12) + (quarter >= 20) + (quarter >= 28); }

struct Exponential {
    static __device__ __forceinline__ double of(double x) { return exp(x); }
    static __device__ __forceinline__ float of(float x) { return __expf(x); }
};

// As it is in the study.
template <typename Real>
__global__ void __launch_bounds__(128) credit_spreads(Swaps s) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const Real quarter = Real(0.25), rate = s.rate[i];
    const int quarters = s.quarters[i];
    Real hazards = 0, alive = 1, premium = 0, protection = 0;
    for (int q = 0; q < quarters; q++) {
        hazards += Real(s.hazard[static_cast<size_t>(pillar_of(q)) * s.count + i]) * quarter;
        const Real time = quarter * (q + 1), still = Exponential::of(-hazards), paid = Exponential::of(-rate * time), middle = Exponential::of(-rate * (time - quarter * Real(0.5)));
        premium += quarter * paid * still;
        protection += middle * (alive - still);
        alive = still;
    }
    s.spread[i] = static_cast<float>(Real(0.6) * protection / premium);
}
__device__ __forceinline__ int first_of(int pillar) { return pillar == 0 ? 0 : 8 * pillar - 4; }  // its first quarter

// BLOCKS, here and below: 10 are the blocks a multiprocessor that the study's 48 registers allow, 9 allow 56, 0 leaves it to the compiler.
// All hazards that are needed are loaded at the start; a quarter selects its own among the registers.
template <typename Real, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS) credit_spreads_selected(Swaps s) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const Real quarter = Real(0.25), rate = s.rate[i];
    const int quarters = s.quarters[i];
    float kept[PILLARS];
#pragma unroll
    for (int p = 0; p < PILLARS; p++) kept[p] = first_of(p) < quarters ? s.hazard[static_cast<size_t>(p) * s.count + i] : 0.0f;
    Real hazards = 0, alive = 1, premium = 0, protection = 0;
    for (int q = 0; q < quarters; q++) {
        const float now = q < 4 ? kept[0] : q < 12 ? kept[1] : q < 20 ? kept[2] : q < 28 ? kept[3] : kept[4];
        hazards += Real(now) * quarter;
        const Real time = quarter * (q + 1), still = Exponential::of(-hazards), paid = Exponential::of(-rate * time), middle = Exponential::of(-rate * (time - quarter * Real(0.5)));
        premium += quarter * paid * still;
        protection += middle * (alive - still);
        alive = still;
    }
    s.spread[i] = static_cast<float>(Real(0.6) * protection / premium);
}
// The same, without a condition: all five, of which the last is needed by one in six.
template <typename Real>
__global__ void __launch_bounds__(128) credit_spreads_selected_all(Swaps s) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const Real quarter = Real(0.25), rate = s.rate[i];
    const int quarters = s.quarters[i];
    float kept[PILLARS];
#pragma unroll
    for (int p = 0; p < PILLARS; p++) kept[p] = s.hazard[static_cast<size_t>(p) * s.count + i];
    Real hazards = 0, alive = 1, premium = 0, protection = 0;
    for (int q = 0; q < quarters; q++) {
        const float now = q < 4 ? kept[0] : q < 12 ? kept[1] : q < 20 ? kept[2] : q < 28 ? kept[3] : kept[4];
        hazards += Real(now) * quarter;
        const Real time = quarter * (q + 1), still = Exponential::of(-hazards), paid = Exponential::of(-rate * time), middle = Exponential::of(-rate * (time - quarter * Real(0.5)));
        premium += quarter * paid * still;
        protection += middle * (alive - still);
        alive = still;
    }
    s.spread[i] = static_cast<float>(Real(0.6) * protection / premium);
}
// The hazard stays in a register until its pillar ends; AHEAD: the next pillar's is on its way meanwhile.
template <typename Real, bool AHEAD, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS) credit_spreads_by_pillar(Swaps s) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const Real quarter = Real(0.25), rate = s.rate[i];
    const int quarters = s.quarters[i];
    Real hazards = 0, alive = 1, premium = 0, protection = 0;
    float next = AHEAD ? s.hazard[i] : 0.0f;
#pragma unroll 1
    for (int pillar = 0, q = 0; q < quarters; pillar++) {
        const int end = pillar + 1 < PILLARS ? min(quarters, first_of(pillar + 1)) : quarters;
        const Real now = Real(AHEAD ? next : s.hazard[static_cast<size_t>(pillar) * s.count + i]);
        if (AHEAD && end < quarters) next = s.hazard[static_cast<size_t>(pillar + 1) * s.count + i];
#pragma unroll 1
        for (; q < end; q++) {
            hazards += now * quarter;
            const Real time = quarter * (q + 1), still = Exponential::of(-hazards), paid = Exponential::of(-rate * time), middle = Exponential::of(-rate * (time - quarter * Real(0.5)));
            premium += quarter * paid * still;
            protection += middle * (alive - still);
            alive = still;
        }
    }
    s.spread[i] = static_cast<float>(Real(0.6) * protection / premium);
}
// Kept in shared memory, each thread's in its own column: no barrier is needed.
template <typename Real, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS) credit_spreads_shared(Swaps s) {
    __shared__ float kept[PILLARS][128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= s.count) return;
    const Real quarter = Real(0.25), rate = s.rate[i];
    const int quarters = s.quarters[i];
#pragma unroll
    for (int p = 0; p < PILLARS; p++)
        if (first_of(p) < quarters) kept[p][threadIdx.x] = s.hazard[static_cast<size_t>(p) * s.count + i];
    Real hazards = 0, alive = 1, premium = 0, protection = 0;
    for (int q = 0; q < quarters; q++) {
        hazards += Real(kept[pillar_of(q)][threadIdx.x]) * quarter;
        const Real time = quarter * (q + 1), still = Exponential::of(-hazards), paid = Exponential::of(-rate * time), middle = Exponential::of(-rate * (time - quarter * Real(0.5)));
        premium += quarter * paid * still;
        protection += middle * (alive - still);
        alive = still;
    }
    s.spread[i] = static_cast<float>(Real(0.6) * protection / premium);
}

int main() {
    const int n = 1 << 19, grid = n / 128, usual[] = {12, 20, 20, 20, 28, 40};
    std::vector<int> host(n);
    for (int i = 0; i < n; i++) host[i] = usual[hashed(static_cast<unsigned>(i / 96)) % 6];
    const int *quarters = copied(host);
    float *spread = get<float>(n);
    const Swaps s{drawn<float>(size_t(PILLARS) * n, 0.002, 0.08, 1), drawn<float>(n, 0.005, 0.05, 2), quarters, spread, n};
    judge({
        {"as_it_is", [=] { credit_spreads<double><<<grid, 128>>>(s); }},
        {"registers_selected", [=] { credit_spreads_selected<double, 0><<<grid, 128>>>(s); }},
        {"registers_selected_9_blocks", [=] { credit_spreads_selected<double, 9><<<grid, 128>>>(s); }},
        {"registers_selected_10_blocks", [=] { credit_spreads_selected<double, 10><<<grid, 128>>>(s); }},
        {"registers_selected_all_5", [=] { credit_spreads_selected_all<double><<<grid, 128>>>(s); }},
        {"registers_by_pillar", [=] { credit_spreads_by_pillar<double, false, 0><<<grid, 128>>>(s); }},
        {"registers_by_pillar_9_blocks", [=] { credit_spreads_by_pillar<double, false, 9><<<grid, 128>>>(s); }},
        {"registers_by_pillar_10_blocks", [=] { credit_spreads_by_pillar<double, false, 10><<<grid, 128>>>(s); }},
        {"registers_by_pillar_ahead_9_blocks", [=] { credit_spreads_by_pillar<double, true, 9><<<grid, 128>>>(s); }},
        {"registers_by_pillar_ahead_10_blocks", [=] { credit_spreads_by_pillar<double, true, 10><<<grid, 128>>>(s); }},
        {"shared_memory", [=] { credit_spreads_shared<double, 0><<<grid, 128>>>(s); }},
        {"shared_memory_10_blocks", [=] { credit_spreads_shared<double, 10><<<grid, 128>>>(s); }}}, {{spread, size_t(n)}});
}
