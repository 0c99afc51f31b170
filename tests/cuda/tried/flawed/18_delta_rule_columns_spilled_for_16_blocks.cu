// delta_rule_columns_spilled_for_16_blocks, side flawed: equal shares, or work from a queue.
#include "../tried.cuh"

constexpr int WIDTH = 64, CHUNK = 8;
struct DeltaRule {
    const float *q, *k, *v, *gate, *rate;  // [head][token][WIDTH]; gate and rate [head][token]
    float *out;
    int tokens;
};
// COLUMNS of the state by as many threads.
template <int COLUMNS>
__device__ __forceinline__ void delta_rule(const DeltaRule &d, int number) {
    constexpr int PARTS = WIDTH / COLUMNS;
    __shared__ __align__(16) float keys[CHUNK][WIDTH], queries[CHUNK][WIDTH];
    const int column = number % PARTS * COLUMNS + threadIdx.x;
    const size_t head = static_cast<size_t>(number / PARTS) * d.tokens;
    float state[WIDTH] = {};
    for (int first = 0; first < d.tokens; first += CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK * WIDTH; i += COLUMNS) {
            keys[i / WIDTH][i % WIDTH] = d.k[(head + first) * WIDTH + i];
            queries[i / WIDTH][i % WIDTH] = d.q[(head + first) * WIDTH + i];
        }
        __syncthreads();
#pragma unroll 1
        for (int t = 0; t < CHUNK; t++) {
            const size_t token = head + first + t;
            const float gate = d.gate[token], rate = d.rate[token], value = d.v[token * WIDTH + column];
            const float4 *key = reinterpret_cast<const float4 *>(keys[t]), *query = reinterpret_cast<const float4 *>(queries[t]);
            float seen = 0.f, result = 0.f;
#pragma unroll
            for (int r = 0; r < WIDTH; r += 4) {
                const float4 k = key[r / 4];
                seen += state[r] * k.x + state[r + 1] * k.y + state[r + 2] * k.z + state[r + 3] * k.w;
            }
            const float change = rate * (value - gate * seen);
#pragma unroll
            for (int r = 0; r < WIDTH; r += 4) {
                const float4 k = key[r / 4], q = query[r / 4];
                state[r] = gate * state[r] + k.x * change;
                state[r + 1] = gate * state[r + 1] + k.y * change;
                state[r + 2] = gate * state[r + 2] + k.z * change;
                state[r + 3] = gate * state[r + 3] + k.w * change;
                result += state[r] * q.x + state[r + 1] * q.y + state[r + 2] * q.z + state[r + 3] * q.w;
            }
            d.out[token * WIDTH + column] = result;
        }
    }
}
__global__ void __launch_bounds__(64, 16) delta_rule_sixteen_blocks(DeltaRule d) { delta_rule<64>(d, blockIdx.x); }
__global__ void __launch_bounds__(32, 32) delta_rule_halves(DeltaRule d) { delta_rule<32>(d, blockIdx.x); }
__global__ void __launch_bounds__(32, 32) delta_rule_queue(DeltaRule d, int *next, int all) {
    __shared__ int taken;
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        __syncthreads();
        const int number = taken;
        __syncthreads();
        if (number >= all) return;
        delta_rule<32>(d, number);
    }
}

int main() {
    const int tokens = 192, heads = 640;
    const size_t all = size_t(heads) * tokens;
    DeltaRule d{drawn<float>(all * WIDTH, -0.2, 0.2, 1), drawn<float>(all * WIDTH, -0.2, 0.2, 2), drawn<float>(all * WIDTH, -1, 1, 3), drawn<float>(all, 0.9, 1.0, 4),
        drawn<float>(all, 0.1, 0.9, 5), get<float>(all * WIDTH), tokens};
    int *next = get<int>(1);
    judge({{"as_it_is", [=] { delta_rule_sixteen_blocks<<<heads, 64>>>(d); }},
        {"half_a_head_a_block", [=] { delta_rule_halves<<<2 * heads, 32>>>(d); }},
        {"halves_from_a_queue", [=] { delta_rule_queue<<<132 * 8, 32>>>(d, next, 2 * heads); }}},
        {{d.out, all * WIDTH}}, [=] { check(cudaMemsetAsync(next, 0, sizeof(int))); });
}
