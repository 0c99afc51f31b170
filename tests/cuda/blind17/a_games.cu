// Boards, programs that evolve, who shoots at whom, and options.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- hashes of boards of 19 x 19 points, for a table of positions ---

constexpr int POINTS = 361;

__global__ void __launch_bounds__(128) board_hashes(const unsigned char *__restrict__ boards, const unsigned long long *__restrict__ keys, unsigned long long *__restrict__ out, int count) {
    const int board = blockIdx.x * 128 + threadIdx.x;
    if (board >= count) return;
    unsigned long long sum = 0;
    for (int p = 0; p < POINTS; p++) sum ^= keys[p * 3 + boards[static_cast<size_t>(board) * POINTS + p]];
    out[board] = sum;
}
__global__ void __launch_bounds__(128) board_hashes_warps(const unsigned char *__restrict__ boards, const unsigned long long *__restrict__ keys, unsigned long long *__restrict__ out, int count) {
    const int board = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (board >= count) return;
    unsigned long long sum = 0;
#pragma unroll 4
    for (int p = lane; p < POINTS; p += 32) sum ^= keys[p * 3 + boards[static_cast<size_t>(board) * POINTS + p]];
#pragma unroll
    for (int d = 16; d; d /= 2) sum ^= __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) out[board] = sum;
}
// Points of all boards side by side.
__global__ void __launch_bounds__(128) board_hashes_planes(const unsigned char *__restrict__ planes, const unsigned long long *__restrict__ keys, unsigned long long *__restrict__ out, int count) {
    const int board = blockIdx.x * 128 + threadIdx.x;
    if (board >= count) return;
    unsigned long long sum = 0;
#pragma unroll 8
    for (int p = 0; p < POINTS; p++) sum ^= keys[p * 3 + planes[static_cast<size_t>(p) * count + board]];
    out[board] = sum;
}

Study boards("board_hashes_a_board_a_thread", "games", 1 << 18, "hashes of 262144 boards of 361 points",
    "a thread reads its board byte by byte: neighbouring lanes are 361 bytes apart",
    {{"warps", "a warp a board", {"uncoalesced_access"}}, {"planes", "a point of all boards beside one another", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> rows(n * POINTS), planes(n * POINTS);
        for (long i = 0; i < n; i++)
            for (int p = 0; p < POINTS; p++) rows[i * POINTS + p] = planes[p * n + i] = hash(static_cast<unsigned>(i * POINTS + p)) % 3;
        std::vector<unsigned long long> words(POINTS * 3);
        for (int k = 0; k < POINTS * 3; k++) words[k] = static_cast<unsigned long long>(hash(k + 1)) << 32 | hash(k + 90001);
        const unsigned char *by_board = b.copy(rows), *by_point = b.copy(planes);
        const unsigned long long *keys = b.copy(words);
        unsigned long long *out = b.output<unsigned long long>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(board_hashes, blocks(n, 128), 128, 0, by_board, keys, out, n)}, {"warps", launch(board_hashes_warps, blocks(n, 4), 128, 0, by_board, keys, out, n)},
            {"planes", launch(board_hashes_planes, blocks(n, 128), 128, 0, by_point, keys, out, n)}};
    });

// --- programs of a population, each of 32 instructions, tried on 64 points ---

constexpr int LENGTH = 32, TRIALS = 64, INPUTS = 4;

// Low three bits: what is done; the next two: with which input; the rest: a constant.
__device__ __forceinline__ float done(unsigned instruction, float value, const float *inputs) {
    const float with = inputs[instruction >> 3 & 3], constant = (instruction >> 5) * (1.0f / 65536.0f);
    switch (instruction & 7) {
    case 0: return value + with;
    case 1: return value - constant * with;
    case 2: return value * with + constant;
    case 3: return value / (1.0f + with * with);
    case 4: return __sinf(value + with);
    case 5: return sqrtf(fabsf(value) + constant);
    case 6: return fminf(value, with + constant);
    default: return expf(-fabsf(value)) + with;
    }
}
__global__ void __launch_bounds__(128) population_errors(const unsigned *__restrict__ programs, const float4 *__restrict__ points, const float *__restrict__ wanted, float *__restrict__ out, int count) {
    __shared__ float inputs[TRIALS][INPUTS];
    for (int k = threadIdx.x; k < TRIALS; k += 128) *reinterpret_cast<float4 *>(inputs[k]) = points[k];
    __syncthreads();
    const int program = blockIdx.x * 128 + threadIdx.x;
    if (program >= count) return;
    float error = 0.0f;
    for (int k = 0; k < TRIALS; k++) {
        float value = 0.0f;
        for (int i = 0; i < LENGTH; i++) value = done(programs[i * count + program], value, inputs[k]);
        error += fabsf(value - wanted[k]);
    }
    out[program] = error;
}
// A warp a program, a lane a point: all lanes do the same.
__global__ void __launch_bounds__(128) population_errors_warps(const unsigned *__restrict__ programs, const float4 *__restrict__ points, const float *__restrict__ wanted, float *__restrict__ out, int count) {
    __shared__ float inputs[INPUTS][TRIALS];
    for (int k = threadIdx.x; k < TRIALS; k += 128) {
        const float4 p = points[k];
        inputs[0][k] = p.x, inputs[1][k] = p.y, inputs[2][k] = p.z, inputs[3][k] = p.w;
    }
    __syncthreads();
    const int program = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (program >= count) return;
    float error = 0.0f;
    for (int k = lane; k < TRIALS; k += 32) {
        const float own[INPUTS] = {inputs[0][k], inputs[1][k], inputs[2][k], inputs[3][k]};
        float value = 0.0f;
        for (int i = 0; i < LENGTH; i++) {
            const unsigned instruction = programs[i * count + program];
            const float with = instruction & 16 ? instruction & 8 ? own[3] : own[2] : instruction & 8 ? own[1] : own[0];
            value = done(instruction & ~24u, value, &with);
        }
        error += fabsf(value - wanted[k]);
    }
    error = warp_sum(error);
    if (lane == 0) out[program] = error;
}
// A warp a program, two points a lane at once; the instructions of four programs in shared memory.
__global__ void __launch_bounds__(128) population_errors_staged(const unsigned *__restrict__ programs, const float4 *__restrict__ points, const float *__restrict__ wanted, float *__restrict__ out, int count) {
    __shared__ unsigned code[4][LENGTH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, program = blockIdx.x * 4 + warp;
    code[threadIdx.x % 4][threadIdx.x / 4] = programs[threadIdx.x / 4 * count + blockIdx.x * 4 + threadIdx.x % 4];
    const float4 p = points[lane], q = points[lane + 32];
    float a = 0.0f, z = 0.0f;
    __syncthreads();
    for (int i = 0; i < LENGTH; i++) {
        const unsigned instruction = code[warp][i], which = instruction >> 3 & 3;
        const float first = which == 0 ? p.x : which == 1 ? p.y : which == 2 ? p.z : p.w, second = which == 0 ? q.x : which == 1 ? q.y : which == 2 ? q.z : q.w;
        a = done(instruction & ~24u, a, &first), z = done(instruction & ~24u, z, &second);
    }
    const float error = warp_sum(fabsf(a - wanted[lane]) + fabsf(z - wanted[lane + 32]));
    if (lane == 0) out[program] = error;
}

Study population("population_of_programs_each_lane_another", "learning", 65536, "65536 programs of 32 instructions of eight kinds, tried on 64 points",
    "each lane of a warp runs another program: a warp goes through all kinds of instructions at each step",
    {{"warps", "a warp a program, a lane a point", {"branch_divergence"}}, {"staged", "two points a lane at once, instructions in shared memory", {"branch_divergence", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> code(n * LENGTH);
        for (size_t i = 0; i < code.size(); i++) code[i] = hash(static_cast<unsigned>(i)) & 0x1fffff;
        const unsigned *programs = b.copy(code);
        const float4 *points = reinterpret_cast<const float4 *>(b.random<float>(TRIALS * 4));
        const float *wanted = b.random<float>(TRIALS);
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(population_errors, blocks(n, 128), 128, 0, programs, points, wanted, out, n)}, {"warps", launch(population_errors_warps, blocks(n, 4), 128, 0, programs, points, wanted, out, n)},
            {"staged", launch(population_errors_staged, n / 4, 128, 0, programs, points, wanted, out, n)}};
    });

// --- turrets: the target in reach that a turret has to turn for least ---

struct Turret {
    float x, y, z, ahead_x, ahead_y, ahead_z;
};
constexpr float REACH = 120.0f;

struct ByAngle {
    float best = 3.2f;
    __device__ __forceinline__ void see(float dx, float dy, float dz, float along) {
        const float distance = sqrtf(dx * dx + dy * dy + dz * dz);
        if (distance < REACH) best = fminf(best, acosf(fminf(1.0f, fmaxf(-1.0f, along / distance))));
    }
    __device__ float angle() const { return best; }
};
// The least angle has the largest cosine.
struct ByCosine {
    float best = -2.0f;
    __device__ __forceinline__ void see(float dx, float dy, float dz, float along) {
        const float square = dx * dx + dy * dy + dz * dz;
        if (square < REACH * REACH) best = fmaxf(best, along * rsqrtf(square));
    }
    __device__ float angle() const { return best < -1.5f ? 3.2f : acosf(fminf(1.0f, fmaxf(-1.0f, best))); }
};
// Squares of cosines with their signs, compared crosswise: neither roots nor quotients.
struct BySquares {
    float best = -2.0f, over = 1.0f;
    __device__ __forceinline__ void see(float dx, float dy, float dz, float along) {
        const float square = dx * dx + dy * dy + dz * dz, signed_square = along * fabsf(along);
        if (square < REACH * REACH && signed_square * over > best * square) best = signed_square, over = square;
    }
    __device__ float angle() const {
        const float cosine = copysignf(sqrtf(fabsf(best) / over), best);
        return best < -1.5f * over ? 3.2f : acosf(fminf(1.0f, fmaxf(-1.0f, cosine)));
    }
};
template <typename Choice>
__global__ void __launch_bounds__(128) aim(const Turret *__restrict__ turrets, const float4 *__restrict__ targets, float *__restrict__ out, int count) {
    __shared__ float4 tile[128];
    const Turret own = turrets[blockIdx.x * 128 + threadIdx.x];
    Choice choice;
    for (int first = 0; first < count; first += 128) {
        tile[threadIdx.x] = targets[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 128; k++) {
            const float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
            choice.see(dx, dy, dz, dx * own.ahead_x + dy * own.ahead_y + dz * own.ahead_z);
        }
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = choice.angle();
}

Study turrets("turrets_an_arc_cosine_for_each_target", "games", 1 << 16, "the nearest in angle of 2048 targets for each of 65536 turrets",
    "a root, a quotient and an arc cosine for each target, of which the least alone is wanted",
    {{"cosine", "the largest cosine by an inverse root, one arc cosine at the end", {"expensive_math"}}, {"squares", "squares compared crosswise", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Turret> list(n);
        std::vector<float4> targets(2048);
        const auto unit = [](unsigned k) { return (hash(k) >> 8) / 16777216.0f; };
        for (unsigned i = 0; i < static_cast<unsigned>(n); i++) {
            const float up = unit(i * 5) * 2 - 1, turn = unit(i * 5 + 1) * 6.28f, flat = sqrtf(1 - up * up);
            list[i] = {unit(i * 5 + 2) * 400, unit(i * 5 + 3) * 400, unit(i * 5 + 4) * 20, flat * cosf(turn), flat * sinf(turn), up};
        }
        for (unsigned k = 0; k < 2048; k++) targets[k] = {unit(k * 3 + 5000001) * 400, unit(k * 3 + 5000002) * 400, unit(k * 3 + 5000003) * 60, 0.0f};
        const Turret *in = b.copy(list);
        const float4 *others = b.copy(targets);
        float *out = b.output<float>(n);
        b.tolerance = 2e-3;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 128), 128, 0, in, others, out, 2048); };
        return {{"flawed", side(aim<ByAngle>)}, {"cosine", side(aim<ByCosine>)}, {"squares", side(aim<BySquares>)}};
    });

// --- options on a lattice of three ways a step ---

constexpr int NODES = 512, LATTICE_STEPS = 255;

struct Option {
    float spot, strike, up, middle, down, growth;  // shares are discounted
};
__device__ __forceinline__ float worth(const Option &o, int node) { return fmaxf(0.0f, o.spot * expf(o.growth * (node - NODES / 2)) - o.strike); }

__global__ void __launch_bounds__(NODES) option_lattice(const Option *__restrict__ options, float *__restrict__ levels, float *__restrict__ out) {
    const Option o = options[blockIdx.x];
    const int t = threadIdx.x;
    float *now = levels + static_cast<size_t>(blockIdx.x) * 2 * NODES, *next = now + NODES;
    now[t] = worth(o, t);
    __syncthreads();
    for (int step = 0; step < LATTICE_STEPS; step++) {
        next[t] = t > 0 && t < NODES - 1 ? o.up * now[t + 1] + o.middle * now[t] + o.down * now[t - 1] : now[t];
        __syncthreads();
        float *other = now;
        now = next, next = other;
    }
    if (t == NODES / 2) out[blockIdx.x] = now[t];
}
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
// A warp an option, sixteen nodes a lane in registers.
__global__ void __launch_bounds__(128) option_lattice_warps(const Option *__restrict__ options, float *__restrict__ out, int count) {
    constexpr int EACH = NODES / 32;
    const int option = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (option >= count) return;
    const Option o = options[option];
    float v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) v[k] = worth(o, lane * EACH + k);
    for (int step = 0; step < LATTICE_STEPS; step++) {
        float below = __shfl_up_sync(~0u, v[EACH - 1], 1);
        const float above = __shfl_down_sync(~0u, v[0], 1);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float own = v[k], higher = k + 1 < EACH ? v[k + 1 < EACH ? k + 1 : 0] : above;
            const bool edge = (k == 0 && lane == 0) || (k == EACH - 1 && lane == 31);
            v[k] = edge ? own : o.up * higher + o.middle * own + o.down * below;
            below = own;
        }
    }
    if (lane == NODES / 2 / EACH) out[option] = v[NODES / 2 % EACH];
}

Study lattice("option_lattice_levels_in_global", "finance", 4096, "4096 options on lattices of 512 nodes, 255 steps of three ways",
    "a step reads three nodes of the last from global memory and waits for all threads of the block",
    {{"shared", "two levels in shared memory, the own node in a register", {"redundant_loads", "memory_latency"}}, {"warps", "a warp an option, sixteen nodes a lane, edges by shuffles", {"barriers", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Option> list(n);
        for (long i = 0; i < n; i++) {
            const unsigned u = static_cast<unsigned>(i);
            list[i] = {80.0f + hash(u) % 40, 80.0f + hash(u + 1) % 40, 0.24f, 0.4996f, 0.26f, 0.005f + (hash(u + 2) % 100) * 5e-5f};
        }
        const Option *options = b.copy(list);
        float *levels = b.allocate<float>(n * 2 * NODES), *out = b.output<float>(n);
        return {{"flawed", launch(option_lattice, n, NODES, 0, options, levels, out)}, {"shared", launch(option_lattice_shared, n, NODES, 0, options, out)}, {"warps", launch(option_lattice_warps, blocks(n, 4), 128, 0, options, out, n)}};
    });

// --- boards of a game as 64 bits each, turned by a quarter: without a flaw ---

__device__ __forceinline__ unsigned long long turned(unsigned long long board) {
    unsigned long long t = 0x0f0f0f0f00000000ull & (board ^ board << 28);
    board ^= t ^ t >> 28;
    t = 0x3333000033330000ull & (board ^ board << 14);
    board ^= t ^ t >> 14;
    t = 0x5500550055005500ull & (board ^ board << 7);
    board ^= t ^ t >> 7;  // across the diagonal; then rows from the last to the first
    const unsigned low = static_cast<unsigned>(board), high = static_cast<unsigned>(board >> 32);
    return static_cast<unsigned long long>(__byte_perm(low, 0, 0x0123)) << 32 | __byte_perm(high, 0, 0x0123);
}
__global__ void __launch_bounds__(256) turn_boards(const ulonglong2 *__restrict__ boards, ulonglong2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const ulonglong2 two = boards[i];
    out[i] = make_ulonglong2(turned(two.x), turned(two.y));
}

Study turns("sound_boards_turned", "games", 1 << 25, "33554432 boards of 64 bits turned by a quarter", "", {}, [](Buffers &b, long n) -> Sides {
    const unsigned *words = b.random<unsigned>(n * 2, 0, 4294967295.0);
    unsigned *out = b.output<unsigned>(n * 2);
    return {{"sound", launch(turn_boards, blocks(n / 2, 256), 256, 0, reinterpret_cast<const ulonglong2 *>(words), reinterpret_cast<ulonglong2 *>(out), n / 2)}};
});

}  // namespace
