// option_lattice_levels_in_global, side shared: let a warp do what a block does, its values in registers, exchanged through shuffles, no barrier.
#include "../tried.cuh"

constexpr int NODES = 512, LATTICE_STEPS = 255;
struct Option { float spot, strike, up, middle, down, growth; };
__device__ __forceinline__ float worth(const Option &o, int node) { return fmaxf(0.0f, o.spot * expf(o.growth * (node - NODES / 2)) - o.strike); }

// As in the study.
__global__ void __launch_bounds__(NODES) option_lattice_shared(const Option *__restrict__ options, float *__restrict__ out) {
    __shared__ float levels[2][NODES];
    const Option o = options[blockIdx.x];
    const int t = threadIdx.x;
    float own = levels[0][t] = worth(o, t);
    __syncthreads();
    for (int step = 0; step < LATTICE_STEPS; step++) {
        const float *now = levels[step & 1];
        if (t > 0 && t < NODES - 1) own = o.up * now[t + 1] + o.middle * own + o.down * now[t - 1];
        levels[(step + 1) & 1][t] = own;
        __syncthreads();
    }
    if (t == NODES / 2) out[blockIdx.x] = own;
}
// LANES lanes an option, NODES / LANES neighbouring nodes a lane in registers, edges by shuffles, no barrier.
template <int LANES, int THREADS>
__global__ void __launch_bounds__(THREADS) option_lattice_lanes(const Option *__restrict__ options, float *__restrict__ out, int count) {
    constexpr int EACH = NODES / LANES;
    const int option = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (option >= count) return;  // count is a multiple of what a block does
    const Option o = options[option];
    float v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) v[k] = worth(o, lane * EACH + k);
    for (int step = 0; step < LATTICE_STEPS; step++) {
        float below = __shfl_up_sync(~0u, v[EACH - 1], 1, LANES);
        const float above = __shfl_down_sync(~0u, v[0], 1, LANES);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float own = v[k], higher = k + 1 < EACH ? v[(k + 1) % EACH] : above;
            const bool edge = (k == 0 && lane == 0) || (k == EACH - 1 && lane == LANES - 1);
            v[k] = edge ? own : o.up * higher + o.middle * own + o.down * below;
            below = own;
        }
    }
    if (lane == NODES / 2 / EACH) out[option] = v[NODES / 2 % EACH];
}
// The same; five steps a turn of the loop, up and down by turns, so that few values need to be moved.
template <int LANES, int THREADS>
__global__ void __launch_bounds__(THREADS) option_lattice_unrolled(const Option *__restrict__ options, float *__restrict__ out, int count) {
    constexpr int EACH = NODES / LANES;
    const int option = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (option >= count) return;
    const Option o = options[option];
    const bool first = lane == 0, last = lane == LANES - 1;
    float v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) v[k] = worth(o, lane * EACH + k);
    for (int step = 0; step < LATTICE_STEPS; step += 5)
#pragma unroll
        for (int s = 0; s < 5; s++) {
            const float under = __shfl_up_sync(~0u, v[EACH - 1], 1, LANES), over = __shfl_down_sync(~0u, v[0], 1, LANES);
            float left = s % 2 ? over : under;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int k = s % 2 ? EACH - 1 - i : i;
                const float own = v[k], higher = s % 2 ? left : k + 1 < EACH ? v[(k + 1) % EACH] : over;
                const float below = s % 2 ? (k > 0 ? v[(k + EACH - 1) % EACH] : under) : left;
                v[k] = (k == 0 && first) || (k == EACH - 1 && last) ? own : o.up * higher + o.middle * own + o.down * below;
                left = own;
            }
        }
    if (lane == NODES / 2 / EACH) out[option] = v[NODES / 2 % EACH];
}

int main() {
    const int n = 4096;
    std::vector<Option> list(n);
    for (unsigned u = 0; u < n; u++) list[u] = {80.0f + hashed(u) % 40, 80.0f + hashed(u + 1) % 40, 0.24f, 0.4996f, 0.26f, 0.005f + (hashed(u + 2) % 100) * 5e-5f};
    const Option *options = copied(list);
    float *out = get<float>(n);
    judge({
        {"as_it_is", [=] { option_lattice_shared<<<n, NODES>>>(options, out); }},
        {"warp_16_a_lane_4_warps", [=] { option_lattice_lanes<32, 128><<<n / 4, 128>>>(options, out, n); }},
        {"warp_16_a_lane_8_warps", [=] { option_lattice_lanes<32, 256><<<n / 8, 256>>>(options, out, n); }},
        {"warp_16_a_lane_2_warps", [=] { option_lattice_lanes<32, 64><<<n / 2, 64>>>(options, out, n); }},
        {"warp_16_a_lane_unrolled", [=] { option_lattice_unrolled<32, 128><<<n / 4, 128>>>(options, out, n); }},
        {"half_warp_32_a_lane", [=] { option_lattice_lanes<16, 64><<<n / 4, 64>>>(options, out, n); }},
        {"half_warp_32_a_lane_unrolled", [=] { option_lattice_unrolled<16, 64><<<n / 4, 64>>>(options, out, n); }},
    }, {{out, n}});
}
