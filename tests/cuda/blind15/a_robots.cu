// Robotics: sampled controls, alignment of depth pictures, checked motions, joints, attitudes. Each kernel but the last has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- model predictive control by samples: what each of many noisy sequences of steering and speed would cost ---

constexpr int HORIZON = 80, OBSTACLES = 6;

struct Rollouts {
    const float *steering, *speed;  // noise of all rollouts side by side for each step
    const float2 *plan;  // steering and speed of each step before the noise
    float3 obstacles[OBSTACLES];  // place and radius
    float step, wheelbase, lane_period;
    int count;
};

__device__ __forceinline__ float cost_at(const Rollouts &r, float x, float y, float lane) {
    float cost = (y - lane) * (y - lane);
#pragma unroll
    for (int o = 0; o < OBSTACLES; o++) {
        const float dx = x - r.obstacles[o].x, dy = y - r.obstacles[o].y, inside = r.obstacles[o].z * r.obstacles[o].z - dx * dx - dy * dy;
        cost += fmaxf(inside, 0.f) * 40.f;
    }
    return cost;
}

struct Precise {
    static __device__ __forceinline__ void heading(float angle, float *s, float *c) { sincosf(angle, s, c); }
    static __device__ __forceinline__ float slope(float angle) { return tanf(angle); }
};
struct Fast {
    static __device__ __forceinline__ void heading(float angle, float *s, float *c) { __sincosf(angle, s, c); }
    static __device__ __forceinline__ float slope(float angle) {
        float s, c;
        __sincosf(angle, &s, &c);
        return __fdividef(s, c);
    }
};

template <typename Functions>
__global__ void __launch_bounds__(128) rollouts(Rollouts r, float *__restrict__ out) {
    const int own = blockIdx.x * 128 + threadIdx.x;
    if (own >= r.count) return;
    float x = 0.f, y = 0.f, angle = 0.f, cost = 0.f;
    for (int t = 0; t < HORIZON; t++) {
        const float2 plan = r.plan[t];
        const float steering = fminf(fmaxf(plan.x + r.steering[static_cast<size_t>(t) * r.count + own], -0.4f), 0.4f), speed = plan.y + r.speed[static_cast<size_t>(t) * r.count + own];
        float s, c, lane, unused;
        Functions::heading(angle, &s, &c);
        x += speed * c * r.step;
        y += speed * s * r.step;
        angle += speed * r.step / r.wheelbase * Functions::slope(steering);
        Functions::heading(x * r.lane_period, &lane, &unused);
        cost += cost_at(r, x, y, 1.5f * lane) + 0.1f * steering * steering;
    }
    out[own] = cost;
}
// The heading as a unit vector, turned by series of the small angle of a step; the tangent by a series, too.
__global__ void __launch_bounds__(128) rollouts_turned(Rollouts r, float *__restrict__ out) {
    const int own = blockIdx.x * 128 + threadIdx.x;
    if (own >= r.count) return;
    const float per_step = r.step / r.wheelbase;
    float x = 0.f, y = 0.f, c = 1.f, s = 0.f, cost = 0.f;
    for (int t = 0; t < HORIZON; t++) {
        const float2 plan = r.plan[t];
        const float steering = fminf(fmaxf(plan.x + r.steering[static_cast<size_t>(t) * r.count + own], -0.4f), 0.4f), speed = plan.y + r.speed[static_cast<size_t>(t) * r.count + own];
        x += speed * c * r.step;
        y += speed * s * r.step;
        const float q = steering * steering, slope = steering * (1.f + q * (0.33333333f + q * (0.13333333f + q * (0.053968254f + q * (0.021869489f + q * 0.0088632355f)))));
        const float turn = speed * per_step * slope, w = turn * turn;
        const float sine = turn * (1.f - w * (0.16666667f - w * 0.0083333333f)), cosine = 1.f - w * (0.5f - w * (0.041666667f - w * 0.0013888889f)), before = c;
        c = before * cosine - s * sine;
        s = s * cosine + before * sine;
        cost += cost_at(r, x, y, 1.5f * __sinf(x * r.lane_period)) + 0.1f * steering * steering;
    }
    out[own] = cost;
}

Study sampled_controls("sampled_controls_precise_sines", "robotics", 1 << 18, "costs of 262144 noisy plans of 80 steps for a car that follows a lane among six obstacles",
    "sines, cosines and tangents of each step by the precise functions",
    {{"fast", "fast sines and cosines, the tangent as their quotient", {"expensive_math"}}, {"turned", "the heading as a vector turned by short series", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        Rollouts r{};
        r.steering = b.random<float>(n * HORIZON, -0.12, 0.12), r.speed = b.random<float>(n * HORIZON, -2, 2);
        std::vector<float> plan(2 * HORIZON);
        for (int t = 0; t < HORIZON; t++) plan[2 * t] = 0.06f * std::sin(0.2f * t), plan[2 * t + 1] = 9.f + 0.02f * t;
        r.plan = reinterpret_cast<const float2 *>(b.copy(plan));
        for (int o = 0; o < OBSTACLES; o++) r.obstacles[o] = make_float3(5.f + 6.f * o, o % 2 ? 1.2f : -1.6f, 1.f + 0.1f * o);
        r.step = 0.05f, r.wheelbase = 2.7f, r.lane_period = 0.11f, r.count = static_cast<int>(n);
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(rollouts<Precise>, blocks(n, 128), 128, 0, r, out)}, {"fast", launch(rollouts<Fast>, blocks(n, 128), 128, 0, r, out)}, {"turned", launch(rollouts_turned, blocks(n, 128), 128, 0, r, out)}};
    });

// --- alignment of two depth pictures: the normal equations of point to plane, 21 + 6 + 1 sums over all points ---

constexpr int SUMS = 28;

struct Alignment {
    const float4 *points, *targets, *normals;  // the fourth number of a normal: weight, 0 where there is no partner
    int count;
};

template <typename Take>
__device__ __forceinline__ void equation(const Alignment &a, int i, Take take) {
    const float4 p = a.points[i], q = a.targets[i], n = a.normals[i];
    const float row[6] = {p.y * n.z - p.z * n.y, p.z * n.x - p.x * n.z, p.x * n.y - p.y * n.x, n.x, n.y, n.z};
    const float rest = (q.x - p.x) * n.x + (q.y - p.y) * n.y + (q.z - p.z) * n.z;
    int at = 0;
#pragma unroll
    for (int r = 0; r < 6; r++) {
        const float weighted = n.w * row[r];
#pragma unroll
        for (int c = r; c < 6; c++) take(at++, weighted * row[c]);
        take(at++, weighted * rest);
    }
    take(at, n.w * rest * rest);
}

__global__ void __launch_bounds__(256) normal_equations(Alignment a, float *out) {
    __shared__ float sums[SUMS];
    if (threadIdx.x < SUMS) sums[threadIdx.x] = 0.f;
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < a.count && a.normals[i].w > 0.f) equation(a, i, [&](int at, float value) { atomicAdd(&sums[at], value); });
    __syncthreads();
    if (threadIdx.x < SUMS) atomicAdd(&out[threadIdx.x], sums[threadIdx.x]);
}
// A warp's sums by shuffles, one addition a warp.
__global__ void __launch_bounds__(256) normal_equations_shuffled(Alignment a, float *out) {
    __shared__ float sums[SUMS];
    if (threadIdx.x < SUMS) sums[threadIdx.x] = 0.f;
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    float own[SUMS] = {};
    if (i < a.count && a.normals[i].w > 0.f) equation(a, i, [&](int at, float value) { own[at] = value; });
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        const float sum = warp_sum(own[s]);
        if (threadIdx.x % 32 == 0) atomicAdd(&sums[s], sum);
    }
    __syncthreads();
    if (threadIdx.x < SUMS) atomicAdd(&out[threadIdx.x], sums[threadIdx.x]);
}
// Sums over many points in registers, then of the block.
__global__ void __launch_bounds__(256) normal_equations_registers(Alignment a, float *out) {
    __shared__ float of_warps[8][SUMS];
    float own[SUMS] = {};
    for (int i = blockIdx.x * 256 + threadIdx.x; i < a.count; i += gridDim.x * 256) equation(a, i, [&](int at, float value) { own[at] += value; });
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        const float sum = warp_sum(own[s]);
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][s] = sum;
    }
    __syncthreads();
    if (threadIdx.x >= SUMS) return;
    float sum = 0.f;
    for (int w = 0; w < 8; w++) sum += of_warps[w][threadIdx.x];
    atomicAdd(&out[threadIdx.x], sum);
}

Study alignment("depth_alignment_28_shared_atomics_a_point", "robotics", 480 * 640, "normal equations of the alignment of 307200 points to planes: 28 sums",
    "28 floating-point atomics in shared memory for each point, all threads of a block on the same words",
    {{"shuffled", "sums of a warp by shuffles first", {"shared_atomics"}}, {"registers", "sums over several points in registers", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> normals(4 * n);
        for (long i = 0; i < n; i++) {
            const unsigned draw = hash(static_cast<unsigned>(i));
            const float x = (draw & 1023) / 1024.f - 0.3f, y = (draw >> 10 & 1023) / 1024.f - 0.6f, z = 1.f, length = std::sqrt(x * x + y * y + z * z);
            normals[4 * i] = x / length, normals[4 * i + 1] = y / length, normals[4 * i + 2] = z / length;
            normals[4 * i + 3] = hash(static_cast<unsigned>(i / 61)) % 10 < 2 ? 0.f : 0.5f + (draw >> 20) / 8192.f;
        }
        const Alignment a{reinterpret_cast<const float4 *>(b.random<float>(4 * n, 0.5, 1.5)), reinterpret_cast<const float4 *>(b.random<float>(4 * n, 0.55, 1.55)), reinterpret_cast<const float4 *>(b.copy(normals)), static_cast<int>(n)};
        float *out = b.output<float>(SUMS, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(normal_equations, blocks(n, 256), 256, 0, a, out)}, {"shuffled", launch(normal_equations_shuffled, blocks(n, 256), 256, 0, a, out)},
            {"registers", launch(normal_equations_registers, multiprocessors() * 2, 256, 0, a, out)}};
    });

// --- motions of a flying robot between sampled places: the first point at which it would touch something ---

constexpr int CELLS = 160;

struct Motions {
    const float4 *from, *to;  // places in cells
    const unsigned char *clearance;  // of each cell: distance to the nearest thing, in half cells
    const int *order;  // of the motions, longest first
    int count;
    float radius;  // of the robot, in half cells
};

__device__ __forceinline__ bool touches(const Motions &m, float4 a, float4 d, float share) {
    const int x = static_cast<int>(fmaf(d.x, share, a.x)), y = static_cast<int>(fmaf(d.y, share, a.y)), z = static_cast<int>(fmaf(d.z, share, a.z));
    return m.clearance[(z * CELLS + y) * CELLS + x] < m.radius;
}
__device__ __forceinline__ float4 difference(float4 a, float4 b) { return make_float4(b.x - a.x, b.y - a.y, b.z - a.z, 0.f); }
__device__ __forceinline__ int steps_of(float4 d) { return 2 + static_cast<int>(2.f * sqrtf(fmaf(d.x, d.x, fmaf(d.y, d.y, d.z * d.z)))); }

__device__ __forceinline__ int first_touch(const Motions &m, int motion) {
    const float4 a = m.from[motion], d = difference(a, m.to[motion]);
    const int steps = steps_of(d);
    const float each = 1.f / steps;
    for (int s = 0; s <= steps; s++)
        if (touches(m, a, d, s * each)) return s;
    return -1;
}
__global__ void __launch_bounds__(128) check_motions(Motions m, int *__restrict__ out) {
    const int motion = blockIdx.x * 128 + threadIdx.x;
    if (motion < m.count) out[motion] = first_touch(m, motion);
}
__global__ void __launch_bounds__(128) check_motions_ordered(Motions m, int *__restrict__ out) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= m.count) return;
    const int motion = m.order[i];
    out[motion] = first_touch(m, motion);
}
// Eight lanes a motion take eight steps at a time.
__global__ void __launch_bounds__(128) check_motions_lanes(Motions m, int *__restrict__ out) {
    const int motion = (blockIdx.x * 128 + threadIdx.x) / 8, part = threadIdx.x % 8, shift = threadIdx.x % 32 / 8 * 8;
    const bool there = motion < m.count;
    const float4 a = m.from[there ? motion : 0], d = difference(a, m.to[there ? motion : 0]);
    const int steps = steps_of(d);
    const float each = 1.f / steps;
    int found = -1;
    bool open = there;
    for (int first = 0; __any_sync(~0u, open); first += 8) {
        const int s = first + part;
        const unsigned hits = __ballot_sync(~0u, open && s <= steps && touches(m, a, d, s * each)) >> shift & 255;
        if (open && hits) found = first + __ffs(static_cast<int>(hits)) - 1, open = false;
        if (first + 8 > steps) open = false;
    }
    if (there && part == 0) out[motion] = found;
}

Study motions("motions_checked_step_by_step_by_a_thread", "robotics", 1 << 20, "first step at which each of 1048576 straight motions of 2 to 300 steps touches something, from a map of clearances",
    "a thread a motion: lanes of a warp have motions of different lengths, which end early where they touch something",
    {{"lanes", "eight lanes a motion, eight steps at a time", {"branch_divergence"}}, {"ordered", "motions in the order of their lengths", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> clearance(static_cast<size_t>(CELLS) * CELLS * CELLS);
        float pillars[24][3];
        for (unsigned p = 0; p < 24; p++) pillars[p][0] = hash(p) % CELLS, pillars[p][1] = hash(p + 100) % CELLS, pillars[p][2] = 2.f + hash(p + 200) % 5;
        for (int y = 0; y < CELLS; y++)
            for (int x = 0; x < CELLS; x++) {
                float nearest = 120.f;
                for (auto &pillar : pillars) nearest = std::min(nearest, std::hypot(x - pillar[0], y - pillar[1]) - pillar[2]);
                for (int z = 0; z < CELLS; z++) clearance[(static_cast<size_t>(z) * CELLS + y) * CELLS + x] = static_cast<unsigned char>(2.f * std::max(0.f, std::min(nearest, z + 4.f)));
            }
        std::vector<float> from(4 * n), to(4 * n);
        std::vector<float> length(n);
        for (long i = 0; i < n; i++) {
            const unsigned draw = static_cast<unsigned>(i) * 8;
            const float reach = 1.f + 55.f * std::pow(hash(draw + 7) / 4294967296.f, 2.f);
            for (unsigned k = 0; k < 3; k++) {
                const float a = hash(draw + k) % 15900 / 100.f, change = (hash(draw + 3 + k) / 2147483648.f - 1.f) * reach;
                from[4 * i + k] = a, to[4 * i + k] = std::min(std::max(a + change, 0.f), CELLS - 1.f);
                length[i] += (to[4 * i + k] - a) * (to[4 * i + k] - a);
            }
        }
        std::vector<int> order(n);
        for (long i = 0; i < n; i++) order[i] = static_cast<int>(i);
        std::sort(order.begin(), order.end(), [&](int a, int b) { return length[a] > length[b]; });
        const Motions m{reinterpret_cast<const float4 *>(b.copy(from)), reinterpret_cast<const float4 *>(b.copy(to)), b.copy(clearance), b.copy(order), static_cast<int>(n), 3.f};
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(check_motions, blocks(n, 128), 128, 0, m, out)}, {"lanes", launch(check_motions_lanes, blocks(n, 16), 128, 0, m, out)}, {"ordered", launch(check_motions_ordered, blocks(n, 128), 128, 0, m, out)}};
    });

// --- joints of many simulated robots: torques that lead each joint to where it should be, with friction and limits ---

constexpr int JOINTS = 28;

struct Gains {
    float stiffness[JOINTS], damping[JOINTS], friction[JOINTS], slip[JOINTS], most[JOINTS];
};
struct Joints {
    const float *wanted, *angle, *velocity;  // JOINTS of a robot in a row
    float *torque;
    int count;  // of all robots' joints
};

__device__ __forceinline__ float torque(float wanted, float angle, float velocity, float stiffness, float damping, float friction, float slip, float most) {
    const float rub = friction * __fdividef(velocity, slip + fabsf(velocity));
    return fminf(fmaxf(stiffness * (wanted - angle) - damping * velocity - rub, -most), most);
}

__global__ void __launch_bounds__(256) torques(Joints j, const __grid_constant__ Gains g) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= j.count) return;
    const int joint = i % JOINTS;
    j.torque[i] = torque(j.wanted[i], j.angle[i], j.velocity[i], g.stiffness[joint], g.damping[joint], g.friction[joint], g.slip[joint], g.most[joint]);
}
__global__ void __launch_bounds__(256) torques_shared(Joints j, const __grid_constant__ Gains g) {
    __shared__ Gains own;
    if (threadIdx.x < JOINTS) {
        const int joint = threadIdx.x;
        own.stiffness[joint] = g.stiffness[joint], own.damping[joint] = g.damping[joint], own.friction[joint] = g.friction[joint], own.slip[joint] = g.slip[joint], own.most[joint] = g.most[joint];
    }
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        const int i = blockIdx.x * 1024 + k * 256 + threadIdx.x, joint = i % JOINTS;
        if (i < j.count) j.torque[i] = torque(j.wanted[i], j.angle[i], j.velocity[i], own.stiffness[joint], own.damping[joint], own.friction[joint], own.slip[joint], own.most[joint]);
    }
}
// Blocks of eight robots at a time: a thread always has the same joint, whose gains stay in registers.
__global__ void __launch_bounds__(8 * JOINTS) torques_same_joint(Joints j, const __grid_constant__ Gains g) {
    const int joint = threadIdx.x % JOINTS;
    const float stiffness = g.stiffness[joint], damping = g.damping[joint], friction = g.friction[joint], slip = g.slip[joint], most = g.most[joint];
#pragma unroll 4
    for (int i = blockIdx.x * 8 * JOINTS + threadIdx.x; i < j.count; i += gridDim.x * 8 * JOINTS) j.torque[i] = torque(j.wanted[i], j.angle[i], j.velocity[i], stiffness, damping, friction, slip, most);
}

Study joint_torques("joint_gains_looked_up_in_constants", "robotics", 1 << 18, "torques of 28 joints of each of 262144 simulated robots, from gains, friction and limits of each joint",
    "the gains are a parameter of the kernel, indexed by a joint that is another for each lane",
    {{"shared", "gains in shared memory, four joints a thread", {"constant_divergence"}}, {"same_joint", "a thread keeps to one joint, its gains in registers", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        Gains g;
        for (int i = 0; i < JOINTS; i++) g.stiffness[i] = 20.f + 5.f * (i % 9), g.damping[i] = 0.5f + 0.1f * (i % 5), g.friction[i] = 0.2f + 0.05f * (i % 4), g.slip[i] = 0.01f * (1 + i % 3), g.most[i] = 8.f + 2.f * (i % 6);
        const long all = n * JOINTS;
        const Joints j{b.random<float>(all, -1, 1), b.random<float>(all, -1, 1), b.random<float>(all, -4, 4), b.output<float>(all), static_cast<int>(all)};
        return {{"flawed", launch(torques, blocks(all, 256), 256, 0, j, g)}, {"shared", launch(torques_shared, blocks(all, 1024), 256, 0, j, g)}, {"same_joint", launch(torques_same_joint, multiprocessors() * 8, 8 * JOINTS, 0, j, g)}};
    });

// --- attitudes of many bodies turned by their angular velocities ---

__global__ void __launch_bounds__(256) turn_bodies(const float4 *__restrict__ attitude, const float4 *__restrict__ velocity, float4 *__restrict__ out, int count, float half_step) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 q = attitude[i], w = velocity[i];  // q.w is the real part
    const float x = w.x * half_step, y = w.y * half_step, z = w.z * half_step;
    const float4 r = make_float4(q.x + x * q.w + y * q.z - z * q.y, q.y + y * q.w + z * q.x - x * q.z, q.z + z * q.w + x * q.y - y * q.x, q.w - x * q.x - y * q.y - z * q.z);
    const float inverse = rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + r.w * r.w);
    out[i] = make_float4(r.x * inverse, r.y * inverse, r.z * inverse, r.w * inverse);
}

Study attitudes("sound_attitudes_of_bodies", "robotics", 1 << 22, "attitudes of 4194304 bodies as quaternions, turned by a time step", "", {},
    [](Buffers &b, long n) -> Sides {
        auto attitude = reinterpret_cast<const float4 *>(b.random<float>(4 * n, 0.2, 1)), velocity = reinterpret_cast<const float4 *>(b.random<float>(4 * n, -2, 2));
        auto out = reinterpret_cast<float4 *>(b.output<float>(4 * n));
        return {{"sound", launch(turn_bodies, blocks(n, 256), 256, 0, attitude, velocity, out, n, 0.005f)}};
    });

}  // namespace
