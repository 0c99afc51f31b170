// Flow of blood, poses of a robot and echoes of a radar.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- blood that flows, of the echoes of many pulses ---

constexpr int PULSES = 128;

struct Wall {  // a high-pass filter of second order
    float b0, b1, b2, a1, a2;
};
struct Echo {  // what a pixel's filter and sums have come to
    float2 first, one, two, last;
    float power, real, imaginary;
};

__device__ __forceinline__ float filtered(const Wall &w, float x, float &one, float &two) {
    const float y = w.b0 * x + one;
    one = w.b1 * x - w.a1 * y + two;
    two = w.b2 * x - w.a2 * y;
    return y;
}
__device__ __forceinline__ void next_echo(const Wall &w, Echo &e, float2 x) {
    const float2 y = make_float2(filtered(w, x.x - e.first.x, e.one.x, e.two.x), filtered(w, x.y - e.first.y, e.one.y, e.two.y));
    e.power += y.x * y.x + y.y * y.y;
    e.real += y.x * e.last.x + y.y * e.last.y;
    e.imaginary += y.y * e.last.x - y.x * e.last.y;
    e.last = y;
}
__device__ __forceinline__ void write_flow(const Echo &e, float *power, float *turn, int pixel) {
    power[pixel] = logf(e.power + 1e-9f);
    turn[pixel] = atan2f(e.imaginary, e.real + 1e-9f);
}

// A pixel a thread; echoes of its pulses stand one after another.
__global__ void __launch_bounds__(128) flow(const float2 *__restrict__ echoes, Wall wall, float *power, float *turn) {
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    const float2 *row = echoes + static_cast<size_t>(pixel) * PULSES;
    Echo e{};
    e.first = row[0];
#pragma unroll 4
    for (int i = 0; i < PULSES; i++) next_echo(wall, e, row[i]);
    write_flow(e, power, turn, pixel);
}
// 16 pulses of a warp's pixels at a time by way of shared memory.
__global__ void __launch_bounds__(128) flow_tiles(const float2 *__restrict__ echoes, Wall wall, float *power, float *turn) {
    __shared__ float2 tile[4][32][17];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float2 *rows = echoes + (static_cast<size_t>(blockIdx.x) * 128 + warp * 32) * PULSES;
    Echo e{};
    for (int start = 0; start < PULSES; start += 16) {
#pragma unroll
        for (int k = 0; k < 16; k++) tile[warp][2 * k + lane / 16][lane % 16] = rows[(2 * k + lane / 16) * PULSES + start + lane % 16];
        __syncwarp();
        if (start == 0) e.first = tile[warp][lane][0];
#pragma unroll
        for (int k = 0; k < 16; k++) next_echo(wall, e, tile[warp][lane][k]);
        __syncwarp();
    }
    write_flow(e, power, turn, blockIdx.x * 128 + threadIdx.x);
}
// Echoes of a pulse stand one after another.
__global__ void __launch_bounds__(128) flow_by_pulse(const float2 *__restrict__ echoes, Wall wall, float *power, float *turn, int pixels) {
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    Echo e{};
    e.first = echoes[pixel];
#pragma unroll 4
    for (int i = 0; i < PULSES; i++) next_echo(wall, e, echoes[static_cast<size_t>(i) * pixels + pixel]);
    write_flow(e, power, turn, pixel);
}

// Tissue that hardly moves, blood in some places, noise.
__global__ void make_echoes(float2 *by_pixel, float2 *by_pulse, int pixels) {
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    const float phase = hash(pixel) / 683565275.0f, speed = 0.3f + (hash(pixel / 64 + 7) % 1000) * 0.001f;
    const float strength = 0.5f + (hash(pixel + 99) % 100) * 0.01f;
    for (int i = 0; i < PULSES; i++) {
        const unsigned r = hash(pixel * PULSES + i);
        float2 x = make_float2(8.0f * cosf(phase + 0.002f * i), 8.0f * sinf(phase + 0.002f * i));
        x.x += strength * cosf(speed * i + phase * 3.0f) + ((r & 0xffff) / 65536.0f - 0.5f) * 0.2f;
        x.y += strength * sinf(speed * i + phase * 3.0f) + ((r >> 16) / 65536.0f - 0.5f) * 0.2f;
        by_pixel[static_cast<size_t>(pixel) * PULSES + i] = x;
        by_pulse[static_cast<size_t>(i) * pixels + pixel] = x;
    }
}

Study blood("blood_flow_pixels_own_rows", "ultrasound", 262144, "power and turn of the filtered echoes of 128 pulses, 262144 pixels",
    "each thread walks its own row of complex values, so neighbouring lanes read 1 KiB apart",
    {{"tiles", "16 pulses of 32 pixels at a time through shared memory", {"uncoalesced_access"}},
        {"by_pulse", "echoes stored pulse by pulse", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int pixels = static_cast<int>(n);
        auto *by_pixel = b.allocate<float2>(n * PULSES), *by_pulse = b.allocate<float2>(n * PULSES);
        launch(make_echoes, blocks(n, 128), 128, 0, by_pixel, by_pulse, pixels)();
        auto *power = b.output<float>(n), *turn = b.output<float>(n);
        const Wall wall{0.8484f, -1.6968f, 0.8484f, -1.6736f, 0.7200f};
        b.tolerance = 2e-3;
        return {{"flawed", launch(flow, blocks(n, 128), 128, 0, by_pixel, wall, power, turn)},
            {"tiles", launch(flow_tiles, blocks(n, 128), 128, 0, by_pixel, wall, power, turn)},
            {"by_pulse", launch(flow_by_pulse, blocks(n, 128), 128, 0, by_pulse, wall, power, turn, pixels)}};
    });

// --- where the hands and feet of a robot are ---

constexpr int LINKS = 24, TIPS = 5, CHEST = 12;

__host__ __device__ constexpr int parent_of(int link) {
    constexpr int parents[LINKS] = {-1, 0, 1, 2, 3, 4, 0, 6, 7, 8, 9, 0, 11, 12, 13, 14, 15, 12, 17, 18, 19, 12, 21, 22};
    return parents[link];
}

struct Link {
    float3 axis, offset, middle;  // of the joint; from the parent's origin; of the link's mass
    float mass;
    int parent, tip;  // tip: which of the points that are written, or -1
};
struct Robot {
    Link links[LINKS];
};
struct Frame {
    float x, y, z, w;  // a quaternion
    float3 at;
};

__device__ __forceinline__ float3 turned(const Frame &f, float3 v) {
    const float tx = 2.0f * (f.y * v.z - f.z * v.y), ty = 2.0f * (f.z * v.x - f.x * v.z), tz = 2.0f * (f.x * v.y - f.y * v.x);
    return make_float3(v.x + f.w * tx + f.y * tz - f.z * ty, v.y + f.w * ty + f.z * tx - f.x * tz, v.z + f.w * tz + f.x * ty - f.y * tx);
}
__device__ __forceinline__ Frame joined(const Frame &p, const Link &link, float angle) {
    float s, c;
    __sincosf(0.5f * angle, &s, &c);
    const float x = link.axis.x * s, y = link.axis.y * s, z = link.axis.z * s;
    const float3 shift = turned(p, link.offset);
    return {p.w * x + p.x * c + p.y * z - p.z * y, p.w * y - p.x * z + p.y * c + p.z * x, p.w * z + p.x * y - p.y * x + p.z * c,
        p.w * c - p.x * x - p.y * y - p.z * z, make_float3(p.at.x + shift.x, p.at.y + shift.y, p.at.z + shift.z)};
}
struct Poses {
    const float *angles;  // joint by joint
    float *points;        // of each tip x, y, z, and the centre of mass
    int count;
};
__device__ __forceinline__ void write_point(const Poses &p, int which, int pose, float3 at) {
    p.points[(3 * which) * p.count + pose] = at.x;
    p.points[(3 * which + 1) * p.count + pose] = at.y;
    p.points[(3 * which + 2) * p.count + pose] = at.z;
}
__device__ __forceinline__ void place(const Poses &p, const Link &link, int pose, const Frame &f, float3 &centre) {
    const float3 shift = turned(f, link.middle);
    const float3 at = make_float3(f.at.x + shift.x, f.at.y + shift.y, f.at.z + shift.z);
    centre.x += link.mass * at.x, centre.y += link.mass * at.y, centre.z += link.mass * at.z;
    if (link.tip >= 0) write_point(p, link.tip, pose, at);
}
__device__ __forceinline__ Frame ground() { return {0.0f, 0.0f, 0.0f, 1.0f, make_float3(0.0f, 0.0f, 0.0f)}; }

// A pose a thread; every link's frame is kept for its children.
__global__ void __launch_bounds__(128) poses(Robot robot, int links, Poses p) {
    const int pose = blockIdx.x * 128 + threadIdx.x;
    if (pose >= p.count) return;
    Frame frames[LINKS];
    float3 centre = make_float3(0.0f, 0.0f, 0.0f);
    for (int i = 0; i < links; i++) {
        const Link &link = robot.links[i];
        const Frame from = link.parent < 0 ? ground() : frames[link.parent];
        frames[i] = joined(from, link, p.angles[i * p.count + pose]);
        place(p, link, pose, frames[i], centre);
    }
    write_point(p, TIPS, pose, centre);
}
// The tree is known when this is compiled.
__global__ void __launch_bounds__(128) poses_unrolled(Robot robot, Poses p) {
    const int pose = blockIdx.x * 128 + threadIdx.x;
    if (pose >= p.count) return;
    Frame frames[LINKS];
    float3 centre = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < LINKS; i++) {
        frames[i] = joined(i == 0 ? ground() : frames[i == 0 ? 0 : parent_of(i)], robot.links[i], p.angles[i * p.count + pose]);
        place(p, robot.links[i], pose, frames[i], centre);
    }
    write_point(p, TIPS, pose, centre);
}
// Links stand limb by limb: only the hips, the chest and the last frame are kept.
__global__ void __launch_bounds__(128) poses_by_limb(Robot robot, int links, Poses p) {
    const int pose = blockIdx.x * 128 + threadIdx.x;
    if (pose >= p.count) return;
    Frame hips, chest, last;
    float3 centre = make_float3(0.0f, 0.0f, 0.0f);
    last = hips = chest = joined(ground(), robot.links[0], p.angles[pose]);
    place(p, robot.links[0], pose, last, centre);
    for (int i = 1; i < links; i++) {
        const Link &link = robot.links[i];
        if (link.parent == 0) last = hips;
        else if (link.parent == CHEST && i != CHEST + 1) last = chest;
        last = joined(last, link, p.angles[i * p.count + pose]);
        if (i == CHEST) chest = last;
        place(p, link, pose, last, centre);
    }
    write_point(p, TIPS, pose, centre);
}

Study robot("robot_frames_found_by_parent", "robotics", 1 << 20, "middles of hands, feet and head and the centre of mass of 1048576 poses of a robot of 24 links",
    "frames of all links in an array that the tree of links indexes at run time",
    {{"unrolled", "loop unrolled, parents known to the compiler", {"local_memory"}},
        {"by_limb", "limb by limb, only frames that limbs begin at are kept", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        Robot robot;
        const int tips[LINKS] = {-1, -1, -1, -1, -1, 0, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, 4};
        for (int i = 0; i < LINKS; i++) {
            const float3 axis = i % 3 == 0 ? make_float3(1, 0, 0) : i % 3 == 1 ? make_float3(0, 1, 0) : make_float3(0, 0.6f, 0.8f);
            const float length = 0.05f + (hash(i) % 100) * 0.003f;
            robot.links[i] = {axis, make_float3(i % 2 ? 0.04f : -0.03f, 0.01f * (i % 5), length), make_float3(0.01f, 0.02f, 0.5f * length),
                (1.0f + i % 4) / 58.0f, parent_of(i), tips[i]};
        }
        const Poses p{b.random<float>(n * LINKS, -1.5, 1.5), b.output<float>(n * 3 * (TIPS + 1)), static_cast<int>(n)};
        const int links = LINKS;
        return {{"flawed", launch(poses, blocks(n, 128), 128, 0, robot, links, p)},
            {"unrolled", launch(poses_unrolled, blocks(n, 128), 128, 0, robot, p)},
            {"by_limb", launch(poses_by_limb, blocks(n, 128), 128, 0, robot, links, p)}};
    });

// --- how far echoes stand out of what is around them ---

constexpr int GATES = 8192, GUARD = 4, TRAIN = 24, REACH = GUARD + TRAIN, PITCH = GATES + 2 * REACH + 8;

__device__ __forceinline__ float stands_out(float cell, float around) { return cell * (2.0f * TRAIN) / (around + 1e-6f); }

// A range gate a thread, 48 around it read.
__global__ void __launch_bounds__(256) detect(const float *__restrict__ echoes, float *__restrict__ out) {
    const int gate = blockIdx.x * 256 + threadIdx.x;
    const float *cell = echoes + static_cast<size_t>(blockIdx.y) * PITCH + REACH + gate;
    float around = 0.0f;
#pragma unroll
    for (int k = GUARD + 1; k <= REACH; k++) around += cell[-k] + cell[k];
    out[static_cast<size_t>(blockIdx.y) * GATES + gate] = stands_out(cell[0], around);
}
// Eight neighbouring gates a thread: what leaves the windows is taken off, what enters added.
__global__ void __launch_bounds__(256) detect_running(const float *__restrict__ echoes, float *__restrict__ out) {
    constexpr int MINE = 8, COUNT = 256 * MINE + 2 * REACH;
    __shared__ float tile[COUNT + COUNT / 8 + 1];
    const float *row = echoes + static_cast<size_t>(blockIdx.y) * PITCH + blockIdx.x * 256 * MINE;
    for (int i = threadIdx.x; i < COUNT; i += 256) tile[i + i / 8] = row[i];
    __syncthreads();
    const int first = threadIdx.x * MINE + REACH;
    const auto at = [&](int i) { return tile[i + i / 8]; };
    float around = 0.0f;
#pragma unroll
    for (int k = GUARD + 1; k <= REACH; k++) around += at(first - k) + at(first + k);
    float found[MINE];
#pragma unroll
    for (int j = 0; j < MINE; j++) {
        const int i = first + j;
        found[j] = stands_out(at(i), around);
        around += at(i - GUARD) - at(i - REACH) + at(i + REACH + 1) - at(i + GUARD + 1);
    }
    float4 *to = reinterpret_cast<float4 *>(out + static_cast<size_t>(blockIdx.y) * GATES + (blockIdx.x * 256 + threadIdx.x) * MINE);
    to[0] = make_float4(found[0], found[1], found[2], found[3]);
    to[1] = make_float4(found[4], found[5], found[6], found[7]);
}
// Sums of two, four and eight neighbours are made first; a window is three of the last.
__global__ void __launch_bounds__(256) detect_doubled(const float *__restrict__ echoes, float *__restrict__ out) {
    constexpr int MINE = 4, COUNT = 256 * MINE + 2 * REACH;
    __shared__ float tile[COUNT], sums[2][COUNT];
    const float *row = echoes + static_cast<size_t>(blockIdx.y) * PITCH + blockIdx.x * 256 * MINE;
    for (int i = threadIdx.x; i < COUNT; i += 256) tile[i] = row[i];
    __syncthreads();
    for (int i = threadIdx.x; i < COUNT - 1; i += 256) sums[0][i] = tile[i] + tile[i + 1];
    __syncthreads();
    for (int i = threadIdx.x; i < COUNT - 3; i += 256) sums[1][i] = sums[0][i] + sums[0][i + 2];
    __syncthreads();
    for (int i = threadIdx.x; i < COUNT - 7; i += 256) sums[0][i] = sums[1][i] + sums[1][i + 4];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < MINE; j++) {
        const int gate = j * 256 + threadIdx.x;
        const float *before = sums[0] + gate, *after = sums[0] + gate + REACH + GUARD + 1;
        const float around = before[0] + before[8] + before[16] + after[0] + after[8] + after[16];
        out[static_cast<size_t>(blockIdx.y) * GATES + blockIdx.x * 256 * MINE + gate] = stands_out(tile[gate + REACH], around);
    }
}

// Powers of noise are exponential; now and then a target.
__global__ void make_gates(float *echoes, long count) {
    const long i = blockIdx.x * 256L + threadIdx.x;
    if (i < count) echoes[i] = -logf((hash(static_cast<unsigned>(i)) + 1.0f) / 4294967296.0f) * (hash(static_cast<unsigned>(i) + 5u) % 997 ? 1.0f : 20.0f);
}

Study radar("radar_windows_added_anew_each_gate", "radar", 4096, "how far each of 8192 range gates of 4096 pulses stands out of 48 gates around it",
    "each gate reads and adds its whole window",
    {{"running", "eight gates a thread, windows moved on by what enters and leaves", {"redundant_loads"}},
        {"doubled", "sums of two, four and eight neighbours in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const long count = n * PITCH;
        auto *echoes = b.allocate<float>(count);
        launch(make_gates, blocks(count, 256), 256, 0, echoes, count)();
        auto *out = b.output<float>(n * GATES);
        const auto pulses = static_cast<unsigned>(n);
        return {{"flawed", launch(detect, dim3(GATES / 256, pulses), 256, 0, echoes, out)},
            {"running", launch(detect_running, dim3(GATES / 2048, pulses), 256, 0, echoes, out)},
            {"doubled", launch(detect_doubled, dim3(GATES / 1024, pulses), 256, 0, echoes, out)}};
    });

}  // namespace
