// advantages_walk_back_in_16_blocks, side warps: more loads in flight.
#include "../tried.cuh"

constexpr float DISCOUNT = 0.99f, TRACE = 0.95f;
struct Rollout {
    const float *reward, *value;
    const unsigned char *ended;
    int steps, environments;
};
__device__ __forceinline__ float2 step_of(const Rollout &r, size_t at) {
    const float goes_on = r.ended[at] ? 0.f : 1.f;
    return make_float2(DISCOUNT * TRACE * goes_on, r.reward[at] + DISCOUNT * r.value[at + r.environments] * goes_on - r.value[at]);
}
// As it is: 16 steps at once.
template <int AT_ONCE>
__global__ void __launch_bounds__(32) advantages_warps(Rollout r, float *__restrict__ advantage, float *__restrict__ target) {
    const int e = blockIdx.x * 32 + threadIdx.x;
    float later = 0.f;
    for (int end = r.steps; end > 0; end -= AT_ONCE) {
        float2 own[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) own[k] = step_of(r, static_cast<size_t>(end - 1 - k) * r.environments + e);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const size_t at = static_cast<size_t>(end - 1 - k) * r.environments + e;
            later = own[k].y + own[k].x * later;
            advantage[at] = later;
            target[at] = later + r.value[at];
        }
    }
}
// What 16 steps load, all of it once.
struct Batch {
    float reward[16], value[17];
    unsigned char ended[16];
    __device__ __forceinline__ void load(const Rollout &r, int end, int e) {
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const size_t at = static_cast<size_t>(end - 1 - k) * r.environments + e;
            reward[k] = r.reward[at], value[k] = r.value[at], ended[k] = r.ended[at];
        }
        value[16] = r.value[static_cast<size_t>(end) * r.environments + e];
    }
};
// The next 16 steps are loaded before these are used.
__global__ void __launch_bounds__(32) advantages_ahead(Rollout r, float *__restrict__ advantage, float *__restrict__ target) {
    const int e = blockIdx.x * 32 + threadIdx.x;
    float later = 0.f;
    Batch now, next;
    now.load(r, r.steps, e);
#pragma unroll 2
    for (int end = r.steps; end > 0; end -= 16) {
        next.load(r, end > 16 ? end - 16 : end, e);
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const size_t at = static_cast<size_t>(end - 1 - k) * r.environments + e;
            const float goes_on = now.ended[k] ? 0.f : 1.f, after = k ? now.value[k - 1] : now.value[16];
            later = now.reward[k] + DISCOUNT * after * goes_on - now.value[k] + DISCOUNT * TRACE * goes_on * later;
            advantage[at] = later;
            target[at] = later + now.value[k];
        }
        now = next;
    }
}

int main() {
    const int steps = 1024, n = 4096;
    std::vector<unsigned char> over(size_t(steps) * n);
    for (size_t i = 0; i < over.size(); i++) over[i] = hashed(unsigned(i)) % 200 == 0;
    const size_t all = size_t(steps) * n;
    const Rollout r{drawn<float>(all, -1, 1, 1), drawn<float>(all + n, -1, 1, 2), copied(over), steps, n};
    float *advantage = get<float>(all), *target = get<float>(all);
    judge({{"as_it_is", [=] { advantages_warps<16><<<n / 32, 32>>>(r, advantage, target); }},
        {"next_16_ahead", [=] { advantages_ahead<<<n / 32, 32>>>(r, advantage, target); }},
        {"32_at_once", [=] { advantages_warps<32><<<n / 32, 32>>>(r, advantage, target); }}}, {{advantage, all}, {target, all}});
}
