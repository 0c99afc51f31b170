// A drawn landscape, circles of friends and tides. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- rays through a field of balls and rods, by steps as long as nothing is near ---

constexpr int MOST_STEPS = 160;
constexpr float FAR = 60.f;

struct View {
    int width, height;
};
// How far the next surface is: a ground in waves, balls on it every four units. Written with fmaf so that every ray takes the same steps in each kernel.
__device__ __forceinline__ float to_surface(float x, float y, float z) {
    const float waves = __sinf(0.9f * x) * __cosf(0.8f * z), ground = 0.6f * fmaf(-0.25f, waves, y);
    const float cx = fmaf(-4.f, rintf(0.25f * x), x), cz = fmaf(-4.f, rintf(0.25f * z), z), cy = y - 0.8f, across = fmaf(cx, cx, cz * cz);
    const float ball = sqrtf(fmaf(cy, cy, across)) - 0.7f, rod = fmaxf(sqrtf(across) - 0.1f, y - 3.5f);
    return fminf(ground, fminf(ball, rod));
}
struct Ray {
    float x, y, z, dx, dy, dz, gone;
    int steps;

    __device__ __forceinline__ void begin(View view, int px, int py) {
        const float u = (2.f * static_cast<float>(px) - static_cast<float>(view.width)) / static_cast<float>(view.height);
        const float v = (static_cast<float>(view.height) - 2.f * static_cast<float>(py)) / static_cast<float>(view.height) - 0.35f;
        const float inverse = rsqrtf(fmaf(u, u, fmaf(v, v, 2.25f)));
        x = 0.7f, y = 3.f, z = -6.f, dx = u * inverse, dy = v * inverse, dz = 1.5f * inverse, gone = 0.f, steps = 0;
    }
    // One step; says whether there is to be another.
    __device__ __forceinline__ bool go() {
        const float distance = to_surface(fmaf(gone, dx, x), fmaf(gone, dy, y), fmaf(gone, dz, z));
        gone += distance;
        return ++steps < MOST_STEPS && distance > 1e-3f * (1.f + gone) && gone < FAR;
    }
};
__device__ __forceinline__ void trace(View view, float *__restrict__ depths, int px, int py) {
    Ray ray;
    ray.begin(view, px, py);
    while (ray.go()) {
    }
    depths[py * view.width + px] = fminf(ray.gone, FAR);
}
__global__ void __launch_bounds__(256) trace_rows(View view, float *__restrict__ depths) {
    const int px = blockIdx.x * 256 + threadIdx.x, py = blockIdx.y;
    if (px < view.width) trace(view, depths, px, py);
}
// A warp 8 x 4 pixels.
__global__ void __launch_bounds__(256) trace_tiles(View view, float *__restrict__ depths) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int px = blockIdx.x * 32 + warp % 4 * 8 + lane % 8, py = blockIdx.y * 8 + warp / 4 * 4 + lane / 8;
    if (px < view.width && py < view.height) trace(view, depths, px, py);
}
// A warp has 256 pixels of a row; a lane whose ray has ended takes the next of them.
__global__ void __launch_bounds__(128) trace_in_turn(View view, float *__restrict__ depths) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 4 + threadIdx.x / 32) * 256, end = min(first + 256, view.width), py = blockIdx.y;
    if (first >= end) return;
    int px = first + lane, next = first + 32;
    Ray ray;
    ray.begin(view, px, py);
    bool busy = px < end;
    while (__any_sync(~0u, busy)) {
#pragma unroll 1
        for (int k = 0; k < 4; ++k)
            if (busy && !ray.go()) {
                depths[py * view.width + px] = fminf(ray.gone, FAR);
                busy = false;
            }
        const unsigned idle = __ballot_sync(~0u, !busy);
        if (!busy) {
            px = next + __popc(idle & ((1u << lane) - 1u));
            busy = px < end;
            if (busy) ray.begin(view, px, py);
        }
        next += __popc(idle);
    }
}

Study traced("traced_landscape_rows_of_pixels", "rendering", 1440, "depths of 2560 x 1440 pixels of a landscape of balls, rods and waves, by steps as long as nothing is near",
    "a warp is 32 pixels of a row, whose rays take from a few to 160 steps: it goes on for the longest",
    {{"tiles", "a warp 8 x 4 pixels, whose rays are more alike", {"branch_divergence"}}, {"in_turn", "lanes whose rays have ended take the warp's next pixels", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const View view{static_cast<int>(n) * 16 / 9, static_cast<int>(n)};
        float *depths = b.output<float>(static_cast<size_t>(view.width) * view.height);
        return {{"flawed", launch(trace_rows, dim3(blocks(view.width, 256), view.height), 256, 0, view, depths)},
            {"tiles", launch(trace_tiles, dim3(blocks(view.width, 32), blocks(view.height, 8)), 256, 0, view, depths)},
            {"in_turn", launch(trace_in_turn, dim3(blocks(view.width, 1024), view.height), 128, 0, view, depths)}};
    });

// --- circles of friends: how many of a node's neighbours' neighbours are its own, too ---

constexpr int MOST_NEIGHBOURS = 64, SLOTS = 256;

struct Graph {
    const int *__restrict__ starts, *__restrict__ neighbours;  // those of a node in ascending order
    int nodes;
};
// Asks of each neighbour's neighbours whether `own` knows them; the block's warps take neighbours in turn.
template <typename Own>
__device__ __forceinline__ int known(const Graph &graph, int first, int end, Own &&own) {
    int count = 0;
    for (int k = first + threadIdx.x / 32; k < end; k += 4) {
        const int other = graph.neighbours[k], last = graph.starts[other + 1];
        for (int j = graph.starts[other] + threadIdx.x % 32; j < last; j += 32) count += own(graph.neighbours[j]);
    }
    return count;
}
__device__ __forceinline__ void count_up(int count, int *out, int node, int *warps) {
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) out[node] = warps[0] + warps[1] + warps[2] + warps[3];
}
// A bit for every node of the graph.
__global__ void __launch_bounds__(128) circles(Graph graph, int *__restrict__ out) {
    extern __shared__ unsigned marks[];
    __shared__ int warps[4];
    for (int k = threadIdx.x; k < (graph.nodes + 31) / 32; k += 128) marks[k] = 0u;
    __syncthreads();
    for (int node = blockIdx.x; node < graph.nodes; node += gridDim.x) {
        const int first = graph.starts[node], end = graph.starts[node + 1];
        for (int k = first + threadIdx.x; k < end; k += 128) atomicOr(&marks[graph.neighbours[k] / 32], 1u << graph.neighbours[k] % 32);
        __syncthreads();
        const int count = known(graph, first, end, [&](int who) { return static_cast<int>(marks[who / 32] >> who % 32 & 1u); });
        count_up(count, out, node, warps);
        for (int k = first + threadIdx.x; k < end; k += 128) marks[graph.neighbours[k] / 32] = 0u;
        __syncthreads();
    }
}
// The node's neighbours in a small table.
__global__ void __launch_bounds__(128) circles_hashed(Graph graph, int *__restrict__ out) {
    __shared__ int table[SLOTS];
    __shared__ int warps[4];
    for (int node = blockIdx.x; node < graph.nodes; node += gridDim.x) {
        const int first = graph.starts[node], end = graph.starts[node + 1];
        for (int k = threadIdx.x; k < SLOTS; k += 128) table[k] = -1;
        __syncthreads();
        for (int k = first + threadIdx.x; k < end; k += 128) {
            const int who = graph.neighbours[k];
            for (int slot = who * 40503u >> 3; atomicCAS(&table[slot % SLOTS], -1, who) != -1; ++slot) {
            }
        }
        __syncthreads();
        const int count = known(graph, first, end, [&](int who) {
            int slot = who * 40503u >> 3, there = table[slot % SLOTS];
            while (there != -1 && there != who) there = table[++slot % SLOTS];
            return static_cast<int>(there == who);
        });
        count_up(count, out, node, warps);
        __syncthreads();
    }
}
// The node's neighbours as they are, searched by halving.
__global__ void __launch_bounds__(128) circles_searched(Graph graph, int *__restrict__ out) {
    __shared__ int held[MOST_NEIGHBOURS];
    __shared__ int warps[4];
    for (int node = blockIdx.x; node < graph.nodes; node += gridDim.x) {
        const int first = graph.starts[node], end = graph.starts[node + 1];
        if (threadIdx.x < MOST_NEIGHBOURS) held[threadIdx.x] = first + threadIdx.x < end ? graph.neighbours[first + threadIdx.x] : 0x7fffffff;
        __syncthreads();
        const int count = known(graph, first, end, [&](int who) {
            int at = 0;
#pragma unroll
            for (int half = MOST_NEIGHBOURS / 2; half; half /= 2)
                if (held[at + half] <= who) at += half;
            return static_cast<int>(held[at] == who);
        });
        count_up(count, out, node, warps);
        __syncthreads();
    }
}

Study friends("circles_of_friends_a_bit_for_every_node", "graphs", 400000, "how many of the neighbours of a node's neighbours are its own, too, for 400000 nodes of 4 to 54 neighbours",
    "a block keeps a bit for every node of the graph, 49 KB of shared memory: sixteen warps fit a multiprocessor",
    {{"hashed", "a table of 256 neighbours", {"low_occupancy"}}, {"searched", "the neighbours in order, searched by halving", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1), neighbours;
        std::vector<int> own;
        for (long i = 0; i < n; ++i) {
            const unsigned drawn = hash(static_cast<unsigned>(i) + 5u);
            const int degree = 4 + static_cast<int>(drawn % 10) + (drawn % 11 == 0 ? static_cast<int>((drawn >> 8) % 42) : 0);
            own.clear();
            long off = 0;
            for (int k = 0; k < degree; ++k) {
                off += 1 + static_cast<long>(hash(static_cast<unsigned>(i * 64 + k)) % 5) * (k % 3 == 2 ? 40 : 1);
                own.push_back(static_cast<int>((i + off) % n));
            }
            std::sort(own.begin(), own.end());
            own.erase(std::unique(own.begin(), own.end()), own.end());
            neighbours.insert(neighbours.end(), own.begin(), own.end());
            starts[i + 1] = static_cast<int>(neighbours.size());
        }
        const Graph graph{b.copy(starts), b.copy(neighbours), static_cast<int>(n)};
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(circles, multiprocessors() * 4, 128, (n + 31) / 32 * sizeof(unsigned), graph, out)}, {"hashed", launch(circles_hashed, multiprocessors() * 16, 128, 0, graph, out)},
            {"searched", launch(circles_searched, multiprocessors() * 16, 128, 0, graph, out)}};
    });

// --- heights of tides at ports, from the waves of sun and moon ---

constexpr int TIDES = 37, EVERY = 16;

struct Tide {
    double speed, phase;  // radians a minute; radians
    float height;
};
// A thread a minute of a port.
__global__ void __launch_bounds__(128) tide_heights(const Tide *__restrict__ tides, float *__restrict__ out, double start, int minutes) {
    const int minute = blockIdx.x * 128 + threadIdx.x;
    if (minute >= minutes) return;
    const Tide *own = tides + blockIdx.y * TIDES;
    double sum = 0.0;
    for (int k = 0; k < TIDES; ++k) sum += own[k].height * cos(own[k].speed * (start + minute) + own[k].phase);
    out[static_cast<size_t>(blockIdx.y) * minutes + minute] = static_cast<float>(sum);
}
// Whole turns taken off in double, the cosine in float.
__global__ void __launch_bounds__(128) tide_heights_turns(const Tide *__restrict__ tides, float *__restrict__ out, double start, int minutes) {
    const int minute = blockIdx.x * 128 + threadIdx.x;
    if (minute >= minutes) return;
    const Tide *own = tides + blockIdx.y * TIDES;
    float sum = 0.f;
    for (int k = 0; k < TIDES; ++k) {
        const double turns = (own[k].speed * (start + minute) + own[k].phase) * 0.15915494309189535;
        sum += own[k].height * cospif(2.f * static_cast<float>(turns - rint(turns)));
    }
    out[static_cast<size_t>(blockIdx.y) * minutes + minute] = sum;
}
// A thread sixteen minutes, 128 apart: the first angle as above, the others by turning on.
__global__ void __launch_bounds__(128) tide_heights_turned_on(const Tide *__restrict__ tides, float *__restrict__ out, double start, int minutes) {
    const int minute = blockIdx.x * 128 * EVERY + threadIdx.x;
    const Tide *own = tides + blockIdx.y * TIDES;
    float sum[EVERY] = {};
    for (int k = 0; k < TIDES; ++k) {
        const double turns = (own[k].speed * (start + minute) + own[k].phase) * 0.15915494309189535, on = own[k].speed * (128.0 * 0.15915494309189535);
        float s, c, turn_s, turn_c;
        sincospif(2.f * static_cast<float>(turns - rint(turns)), &s, &c);
        sincospif(2.f * static_cast<float>(on - rint(on)), &turn_s, &turn_c);
        c *= own[k].height, s *= own[k].height;
#pragma unroll
        for (int m = 0; m < EVERY; ++m) {
            sum[m] += c;
            const float next = c * turn_c - s * turn_s;
            s = s * turn_c + c * turn_s;
            c = next;
        }
    }
#pragma unroll
    for (int m = 0; m < EVERY; ++m)
        if (minute + 128 * m < minutes) out[static_cast<size_t>(blockIdx.y) * minutes + minute + 128 * m] = sum[m];
}

Study tides("tide_heights_cosines_in_double", "climate", 30 * 1440, "height of the sea at 48 ports in each minute of 30 days, from 37 waves each", "angles, cosines and sums in double",
    {{"turns", "whole turns off in double, cosines in float", {"double_precision", "expensive_math"}}, {"turned_on", "one angle for sixteen minutes, then turned on in float", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int ports = 48, minutes = static_cast<int>(n);
        std::vector<Tide> tides(ports * TIDES);
        for (int i = 0; i < ports * TIDES; ++i) {
            const double unit = hash(i) / 4294967296.0;
            tides[i].speed = (i % TIDES < 12 ? 0.0012 : 0.0042) * (1.0 + i % TIDES % 12 + 0.01 * (i % TIDES));
            tides[i].phase = 6.28 * unit;
            tides[i].height = 1.5f / static_cast<float>(1 + i % TIDES);
        }
        const Tide *of = b.copy(tides);
        float *out = b.output<float>(static_cast<size_t>(ports) * n);
        b.tolerance = 1e-3;
        const double start = 2.4e7;  // minutes since the angles were those given
        return {{"flawed", launch(tide_heights, dim3(blocks(n, 128), ports), 128, 0, of, out, start, minutes)}, {"turns", launch(tide_heights_turns, dim3(blocks(n, 128), ports), 128, 0, of, out, start, minutes)},
            {"turned_on", launch(tide_heights_turned_on, dim3(blocks(n, 128 * EVERY), ports), 128, 0, of, out, start, minutes)}};
    });

}  // namespace
