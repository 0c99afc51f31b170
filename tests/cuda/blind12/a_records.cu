// Robots, molecules, membranes in a flow, genomes, tables of text. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- depth and direction of contacts between pairs of shapes ---

enum Shape { SPHERE, CAPSULE, BOX };

struct Solid {
    float x, y, z, radius;    // a box's half height is `radius`
    float ax, ay, az, other;  // a capsule's half axis; half sides of a box
};
struct Touch {
    float depth, x, y, z;
};

// Rounded off near zero, as gradients need it.
__device__ __forceinline__ Touch between_points(float dx, float dy, float dz, float reach) {
    const float far = sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), scale = 1.f / far;
    return {reach - far, dx * scale, dy * scale, dz * scale};
}
__device__ Touch sphere_sphere(const Solid &a, const Solid &b) { return between_points(b.x - a.x, b.y - a.y, b.z - a.z, a.radius + b.radius); }
__device__ Touch sphere_capsule(const Solid &a, const Solid &b) {
    const float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z, long2 = b.ax * b.ax + b.ay * b.ay + b.az * b.az + 1e-6f;
    const float t = fminf(fmaxf((dx * b.ax + dy * b.ay + dz * b.az) / long2, -1.f), 1.f);
    return between_points(t * b.ax - dx, t * b.ay - dy, t * b.az - dz, a.radius + b.radius);
}
__device__ Touch capsule_capsule(const Solid &a, const Solid &b) {
    float s = 0.f, t = 0.f;
    const float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
    const float aa = a.ax * a.ax + a.ay * a.ay + a.az * a.az + 1e-6f, bb = b.ax * b.ax + b.ay * b.ay + b.az * b.az + 1e-6f;
    const float ab = a.ax * b.ax + a.ay * b.ay + a.az * b.az, da = dx * a.ax + dy * a.ay + dz * a.az, db = dx * b.ax + dy * b.ay + dz * b.az;
    // Nearest points of both axes in turn.
    for (int turn = 0; turn < 6; turn++) {
        s = fminf(fmaxf((da + t * ab) / aa, -1.f), 1.f);
        t = fminf(fmaxf((s * ab - db) / bb, -1.f), 1.f);
    }
    return between_points(dx + t * b.ax - s * a.ax, dy + t * b.ay - s * a.ay, dz + t * b.az - s * a.az, a.radius + b.radius);
}
__device__ Touch capsule_box(const Solid &a, const Solid &b) {
    // The point of the axis that is nearest to the box, by halving.
    float low = -1.f, high = 1.f;
    const float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    for (int turn = 0; turn < 12; turn++) {
        const float t = 0.5f * (low + high), px = dx + t * a.ax, py = dy + t * a.ay, pz = dz + t * a.az;
        const float ox = px - fminf(fmaxf(px, -b.ax), b.ax), oy = py - fminf(fmaxf(py, -b.ay), b.ay), oz = pz - fminf(fmaxf(pz, -b.radius), b.radius);
        if (ox * a.ax + oy * a.ay + oz * a.az > 0.f) high = t;
        else low = t;
    }
    const float t = 0.5f * (low + high), px = dx + t * a.ax, py = dy + t * a.ay, pz = dz + t * a.az;
    const float ox = fminf(fmaxf(px, -b.ax), b.ax) - px, oy = fminf(fmaxf(py, -b.ay), b.ay) - py, oz = fminf(fmaxf(pz, -b.radius), b.radius) - pz;
    return between_points(ox, oy, oz, a.radius);
}
__device__ __forceinline__ Touch touch(int kind, const Solid &a, const Solid &b) {
    switch (kind) {
    case 0: return sphere_sphere(a, b);
    case 1: return sphere_capsule(a, b);
    case 2: return capsule_capsule(a, b);
    default: return capsule_box(a, b);
    }
}
__device__ __forceinline__ Solid solid(const float4 *solids, int i) {
    const float4 a = solids[2 * i], b = solids[2 * i + 1];
    return {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
}

// A pair: two shapes and which kind of meeting it is.
__global__ void __launch_bounds__(256) contacts(const float4 *__restrict__ solids, const int4 *__restrict__ pairs, float4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const int4 pair = pairs[i];
    const Touch t = touch(pair.z, solid(solids, pair.x), solid(solids, pair.y));
    out[i] = make_float4(t.depth, t.x, t.y, t.z);
}
// `order` lists the pairs kind by kind.
__global__ void __launch_bounds__(256) contacts_sorted(const float4 *__restrict__ solids, const int4 *__restrict__ pairs, const int *__restrict__ order, float4 *__restrict__ out) {
    const int i = order[blockIdx.x * 256 + threadIdx.x];
    const int4 pair = pairs[i];
    const Touch t = touch(pair.z, solid(solids, pair.x), solid(solids, pair.y));
    out[i] = make_float4(t.depth, t.x, t.y, t.z);
}
// Each block puts its own 1024 pairs in the order of their kinds.
__global__ void __launch_bounds__(256) contacts_regrouped(const float4 *__restrict__ solids, const int4 *__restrict__ pairs, float4 *__restrict__ out) {
    __shared__ int count[4], order[1024];
    const int first = blockIdx.x * 1024;
    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    int place[4], kind[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        kind[k] = pairs[first + k * 256 + threadIdx.x].z;
        place[k] = atomicAdd(&count[kind[k]], 1);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int before = 0;
        for (int other = 0; other < kind[k]; other++) before += count[other];
        order[before + place[k]] = k * 256 + threadIdx.x;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < 1024; k += 256) {
        const int i = first + order[k];
        const int4 pair = pairs[i];
        const Touch t = touch(pair.z, solid(solids, pair.x), solid(solids, pair.y));
        out[i] = make_float4(t.depth, t.x, t.y, t.z);
    }
}

Study contact("contact_pairs_of_mixed_shapes", "robotics", 1 << 21, "depth and direction of 2097152 contacts between spheres, capsules and boxes",
    "pairs come as they were found: the lanes of a warp go four ways",
    {{"sorted", "pairs listed kind by kind", {"branch_divergence"}}, {"regrouped", "each block puts 1024 pairs in the order of their kinds", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int solids = 65536;
        std::vector<int4> pairs(n);
        std::vector<int> order;
        for (long i = 0; i < n; i++) {
            const unsigned h = hash(static_cast<unsigned>(i)), near = hash(h) % 256;
            const int a = static_cast<int>(i * solids / n);
            pairs[i] = make_int4(a, std::min<int>(a + near, solids - 1), static_cast<int>(h >> 8 & 3), 0);
        }
        for (int kind = 0; kind < 4; kind++)
            for (long i = 0; i < n; i++)
                if (pairs[i].z == kind) order.push_back(static_cast<int>(i));
        const float *shapes = b.random<float>(8l * solids, 0.2, 1.5);
        const int4 *list = b.copy(pairs);
        const int *sorted = b.copy(order);
        float *out = b.output<float>(4 * n);
        b.tolerance = 2e-3;  // a halving may go the other way where the axis meets a side
        auto s = reinterpret_cast<const float4 *>(shapes);
        auto o = reinterpret_cast<float4 *>(out);
        return {{"flawed", launch(contacts, n / 256, 256, 0, s, list, o)}, {"sorted", launch(contacts_sorted, n / 256, 256, 0, s, list, sorted, o)},
            {"regrouped", launch(contacts_regrouped, n / 1024, 256, 0, s, list, o)}};
    });

// --- regulators of robots: a Riccati recursion of states of eight, inputs of four, for each of many robots ---

constexpr int STATE = 8, INPUT = 4, HORIZON = 32;

struct Regulator {
    const float *a, *b;  // [robot][step][8][8] and [robot][step][8][4]
};

// A wait for whoever works on one robot: the block, or the warp.
template <int THREADS>
__device__ __forceinline__ void wait() {
    if (THREADS > 32) __syncthreads();
    else __syncwarp();
}

// P = 1 + A'PA - (A'PB)(1 + B'PB)^-1(B'PA), backwards; THREADS threads share a robot.
template <int THREADS>
__device__ __forceinline__ void regulate(const Regulator &g, float *out, int robot, int i, float *p, float *a, float *b, float *pa, float *pb, float *m, float *h, float *k) {
    for (int e = i; e < 64; e += THREADS) p[e] = e % 9 == 0 ? 1.f : 0.f;
    for (int step = HORIZON - 1; step >= 0; step--) {
        const size_t at = static_cast<size_t>(robot) * HORIZON + step;
        for (int e = i; e < 64; e += THREADS) a[e] = g.a[at * 64 + e];
        for (int e = i; e < 32; e += THREADS) b[e] = g.b[at * 32 + e];
        wait<THREADS>();
        for (int e = i; e < 64; e += THREADS) {
            float sum = 0.f;
            for (int j = 0; j < STATE; j++) sum += p[e / 8 * 8 + j] * a[j * 8 + e % 8];
            pa[e] = sum;
        }
        wait<THREADS>();
        for (int e = i; e < 32; e += THREADS) {
            float sum = 0.f;
            for (int j = 0; j < STATE; j++) sum += p[e / 4 * 8 + j] * b[j * 4 + e % 4];
            pb[e] = sum;
        }
        wait<THREADS>();
        for (int e = i; e < 32; e += THREADS) {
            float sum = 0.f;
            for (int j = 0; j < STATE; j++) sum += b[j * 4 + e / 8] * pa[j * 8 + e % 8];
            h[e] = sum, k[e] = sum;
        }
        wait<THREADS>();
        for (int e = i; e < 16; e += THREADS) {
            float sum = e % 5 == 0 ? 1.f : 0.f;
            for (int j = 0; j < STATE; j++) sum += b[j * 4 + e / 4] * pb[j * 4 + e % 4];
            m[e] = sum;
        }
        wait<THREADS>();
        // Column i of k is solved by thread i, without pivots: the matrix is positive.
        if (i < 8) {
            float f[16], x[4];
#pragma unroll
            for (int e = 0; e < 16; e++) f[e] = m[e];
#pragma unroll
            for (int r = 0; r < 4; r++) x[r] = k[r * 8 + i];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float over = 1.f / f[c * 5];
#pragma unroll
                for (int r = c + 1; r < 4; r++) {
                    const float by = f[r * 4 + c] * over;
#pragma unroll
                    for (int e = c + 1; e < 4; e++) f[r * 4 + e] -= by * f[c * 4 + e];
                    x[r] -= by * x[c];
                }
            }
#pragma unroll
            for (int r = 3; r >= 0; r--) {
#pragma unroll
                for (int e = r + 1; e < 4; e++) x[r] -= f[r * 4 + e] * x[e];
                x[r] /= f[r * 5];
                k[r * 8 + i] = x[r];
            }
        }
        wait<THREADS>();
        for (int e = i; e < 64; e += THREADS) {
            float sum = e % 9 == 0 ? 1.f : 0.f;
            for (int j = 0; j < STATE; j++) sum += a[j * 8 + e / 8] * pa[j * 8 + e % 8];
            for (int j = 0; j < INPUT; j++) sum -= h[j * 8 + e / 8] * k[j * 8 + e % 8];
            p[e] = sum;
        }
        for (int e = i; e < 32; e += THREADS) out[at * 32 + e] = k[e];
        wait<THREADS>();
    }
}

constexpr int ROOM = 64 + 64 + 32 + 64 + 32 + 16 + 32 + 32;

// THREADS threads a robot, ROBOTS robots a block.
template <int THREADS, int ROBOTS>
__global__ void __launch_bounds__(THREADS *ROBOTS) riccati(Regulator g, float *__restrict__ out) {
    __shared__ float held[ROBOTS][ROOM];
    const int own = threadIdx.x / THREADS;
    float *at = held[own];
    regulate<THREADS>(g, out, blockIdx.x * ROBOTS + own, threadIdx.x % THREADS, at, at + 64, at + 128, at + 160, at + 224, at + 256, at + 272, at + 304);
}

Study regulators("riccati_block_waits_after_each_product", "robotics", 4096, "gains of 4096 regulators over 32 steps, states of eight, inputs of four",
    "a block of 256 threads for each robot, most of them idle, waits seven times a step",
    {{"warp", "a warp for each robot, four a block: no barriers of the block", {"barriers"}}, {"pair_of_warps", "blocks of 64 threads", {"barriers", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const Regulator g{b.random<float>(n * HORIZON * 64, -0.3, 0.3), b.random<float>(n * HORIZON * 32, -0.3, 0.3)};
        float *out = b.output<float>(n * HORIZON * 32);
        return {{"flawed", launch(riccati<256, 1>, n, 256, 0, g, out)}, {"warp", launch(riccati<32, 4>, n / 4, 128, 0, g, out)}, {"pair_of_warps", launch(riccati<64, 1>, n, 64, 0, g, out)}};
    });

// --- bonds of water held at their lengths, sweep by sweep ---

constexpr int SWEEPS = 12;
constexpr float BOND = 0.9572f, SPAN = 1.5139f, LIGHT = 1.008f, HEAVY = 15.999f;

// Moves two atoms along the bond that they had before.
__device__ __forceinline__ void hold(float4 &p, float4 &q, float4 before, float length, float one_p, float one_q) {
    const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
    const float by = (length * length - (dx * dx + dy * dy + dz * dz)) / (2.f * (one_p + one_q) * (dx * before.x + dy * before.y + dz * before.z));
    p.x += by * one_p * before.x, p.y += by * one_p * before.y, p.z += by * one_p * before.z;
    q.x -= by * one_q * before.x, q.y -= by * one_q * before.y, q.z -= by * one_q * before.z;
}
__device__ __forceinline__ float4 less(float4 a, float4 b) { return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, 0.f); }

// [atom][molecule]
__global__ void __launch_bounds__(128) hold_bonds(const float4 *old, float4 *now, int molecules) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const int first[3] = {0, 0, 1}, second[3] = {1, 2, 2};
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int bond = 0; bond < 3; bond++) {
            const int a = first[bond] * molecules + i, b = second[bond] * molecules + i;
            float4 p = now[a], q = now[b];
            hold(p, q, less(old[a], old[b]), bond == 2 ? SPAN : BOND, 1.f / (bond == 2 ? LIGHT : HEAVY), 1.f / LIGHT);
            now[a] = p;
            now[b] = q;
        }
}
template <int A, int B>
__device__ __forceinline__ void hold_kept(float4 (&p)[3], float4 before, float length, float one_a) { hold(p[A], p[B], before, length, one_a, 1.f / LIGHT); }
__global__ void __launch_bounds__(128) hold_bonds_kept(const float4 *__restrict__ old, float4 *__restrict__ now, int molecules) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    float4 p[3], o[3];
#pragma unroll
    for (int a = 0; a < 3; a++) p[a] = now[a * molecules + i], o[a] = old[a * molecules + i];
    const float4 left = less(o[0], o[1]), right = less(o[0], o[2]), across = less(o[1], o[2]);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        hold_kept<0, 1>(p, left, BOND, 1.f / HEAVY);
        hold_kept<0, 2>(p, right, BOND, 1.f / HEAVY);
        hold_kept<1, 2>(p, across, SPAN, 1.f / LIGHT);
    }
#pragma unroll
    for (int a = 0; a < 3; a++) now[a * molecules + i] = p[a];
}
// Old places from memory as before, the new ones in shared memory.
__global__ void __launch_bounds__(128) hold_bonds_shared(const float4 *__restrict__ old, float4 *__restrict__ now, int molecules) {
    __shared__ float4 p[3][128];
    const int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    for (int a = 0; a < 3; a++) p[a][t] = now[a * molecules + i];
    const float4 o[3] = {old[i], old[molecules + i], old[2 * molecules + i]};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        hold(p[0][t], p[1][t], less(o[0], o[1]), BOND, 1.f / HEAVY, 1.f / LIGHT);
        hold(p[0][t], p[2][t], less(o[0], o[2]), BOND, 1.f / HEAVY, 1.f / LIGHT);
        hold(p[1][t], p[2][t], less(o[1], o[2]), SPAN, 1.f / LIGHT, 1.f / LIGHT);
    }
    for (int a = 0; a < 3; a++) now[a * molecules + i] = p[a][t];
}

Study water("water_bonds_back_to_memory_each_bond", "molecular dynamics", 1 << 20, "the three lengths of 1048576 water molecules restored in twelve sweeps",
    "places are read from memory and written back for each bond of each sweep",
    {{"kept", "places in registers", {"redundant_loads", "memory_latency"}}, {"shared", "places in shared memory, old ones in registers", {"redundant_loads", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> old(3 * n), moved(3 * n);
        for (long i = 0; i < n; i++)
            for (int a = 0; a < 3; a++) {
                auto draw = [&](int k) { return 0.05f * (hash(static_cast<unsigned>(i * 16 + a * 4 + k)) / 4294967296.f - 0.5f); };
                const float x = a == 0 ? 0.f : a == 1 ? 0.7569f : -0.7569f, y = a == 0 ? 0.f : 0.5859f;
                old[a * n + i] = make_float4(x, y, 0.f, 0.f);
                moved[a * n + i] = make_float4(x + draw(0), y + draw(1), draw(2), 0.f);
            }
        const float4 *before = b.copy(old), *start = b.copy(moved);
        float *now = b.changed<float>(reinterpret_cast<const float *>(start), 12 * n);
        auto places = reinterpret_cast<float4 *>(now);
        const int molecules = static_cast<int>(n);
        return {{"flawed", launch(hold_bonds, n / 128, 128, 0, before, places, molecules)}, {"kept", launch(hold_bonds_kept, n / 128, 128, 0, before, places, molecules)},
            {"shared", launch(hold_bonds_shared, n / 128, 128, 0, before, places, molecules)}};
    });

// --- association of genetic variants with a trait: each variant's genotypes of two bits, 32 people in a long word ---

__constant__ float DOSAGE[4] = {2.f, 0.f, 1.f, 0.f};  // both copies, missing, one copy, none

__device__ __forceinline__ void sums_out(float copies, float product, float2 *out, int variant) {
    copies = warp_sum(copies);
    product = warp_sum(product);
    if (threadIdx.x % 32 == 0) out[variant] = make_float2(copies, product);
}

// A warp for each variant, sixteen people a lane and word.
__global__ void __launch_bounds__(256) associate(const unsigned *__restrict__ genotypes, const float *__restrict__ trait, float2 *__restrict__ out, int words) {
    const int variant = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float copies = 0.f, product = 0.f;
    for (int w = lane; w < words; w += 32) {
        const unsigned word = genotypes[static_cast<size_t>(variant) * words + w];
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const float dosage = DOSAGE[word >> 2 * k & 3];
            copies += dosage;
            product += dosage * trait[k * words + w];  // traits are turned as the words need them
        }
    }
    sums_out(copies, product, out, variant);
}
// The code is turned into a number by its bits.
__global__ void __launch_bounds__(256) associate_bits(const unsigned *__restrict__ genotypes, const float *__restrict__ trait, float2 *__restrict__ out, int words) {
    const int variant = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float product = 0.f;
    int copies = 0;
    for (int w = lane; w < words; w += 32) {
        const unsigned word = genotypes[static_cast<size_t>(variant) * words + w];
        const unsigned low = word & 0x55555555u, high = word >> 1 & 0x55555555u;
        const unsigned two = ~low & ~high & 0x55555555u, one = high & ~low, number = two << 1 | one;
        copies += 2 * __popc(two) + __popc(one);
#pragma unroll
        for (int k = 0; k < 16; k++) product += static_cast<float>(number >> 2 * k & 3) * trait[k * words + w];
    }
    sums_out(static_cast<float>(copies), product, out, variant);
}
// The table in shared memory, for two people at once: 16 pairs, once for each lane.
__global__ void __launch_bounds__(256) associate_table(const unsigned *__restrict__ genotypes, const float *__restrict__ trait, float2 *__restrict__ out, int words) {
    __shared__ float first[16][32], second[16][32];
    const int variant = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int e = threadIdx.x / 32; e < 16; e += 8) first[e][lane] = DOSAGE[e & 3], second[e][lane] = DOSAGE[e >> 2];
    __syncthreads();
    float copies = 0.f, product = 0.f;
    for (int w = lane; w < words; w += 32) {
        const unsigned word = genotypes[static_cast<size_t>(variant) * words + w];
#pragma unroll
        for (int k = 0; k < 16; k += 2) {
            const unsigned code = word >> 2 * k & 15;
            const float a = first[code][lane], b = second[code][lane];
            copies += a + b;
            product += a * trait[k * words + w] + b * trait[(k + 1) * words + w];
        }
    }
    sums_out(copies, product, out, variant);
}

Study association("genotypes_looked_up_in_constants", "bioinformatics", 32768, "association of 32768 variants with a trait of 16384 people, genotypes of two bits",
    "each genotype is looked up in constant memory, where the lanes want different words",
    {{"bits", "genotypes turned into numbers by their bits", {"constant_divergence"}}, {"table", "a table for two people in shared memory, once for each lane", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int words = 1024;
        const unsigned *genotypes = b.random<unsigned>(n * words, 0, 4294967296.0);
        const float *trait = b.random<float>(words * 16);
        float *out = b.output<float>(2 * n);
        auto o = reinterpret_cast<float2 *>(out);
        return {{"flawed", launch(associate, n / 8, 256, 0, genotypes, trait, o, words)}, {"bits", launch(associate_bits, n / 8, 256, 0, genotypes, trait, o, words)},
            {"table", launch(associate_table, n / 8, 256, 0, genotypes, trait, o, words)}};
    });

// --- moments in time read from text: lines of "2026-11-25 13:24:17" ---

constexpr int LINE = 20;

__device__ __forceinline__ int seconds(int year, int month, int day, int hour, int minute, int second) {
    // Days since 1970 by the calendar that begins in March.
    const int y = year - (month <= 2), era = y / 400, of_era = y - era * 400, of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const int days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return days * 86400 + hour * 3600 + minute * 60 + second;
}
template <typename Letter>
__device__ __forceinline__ int moment(Letter letter) {
    auto two = [&](int at) { return (letter(at) - '0') * 10 + letter(at + 1) - '0'; };
    return seconds(two(0) * 100 + two(2), two(5), two(8), two(11), two(14), two(17));
}

__global__ void __launch_bounds__(256) read_moments(const char *__restrict__ text, int *__restrict__ out) {
    const int line = blockIdx.x * 256 + threadIdx.x;
    const char *own = text + static_cast<size_t>(line) * LINE;
    out[line] = moment([&](int at) { return static_cast<int>(own[at]); });
}
// A line is five words.
__global__ void __launch_bounds__(256) read_moments_words(const unsigned *__restrict__ text, int *__restrict__ out) {
    const int line = blockIdx.x * 256 + threadIdx.x;
    unsigned word[5];
#pragma unroll
    for (int k = 0; k < 5; k++) word[k] = text[static_cast<size_t>(line) * 5 + k];
    out[line] = moment([&](int at) { return static_cast<int>(word[at / 4] >> at % 4 * 8 & 255); });
}
// A block's lines are fetched in pieces of sixteen bytes.
__global__ void __launch_bounds__(256) read_moments_held(const uint4 *__restrict__ text, int *__restrict__ out) {
    __shared__ uint4 held[256 * LINE / 16];
    for (int k = threadIdx.x; k < 256 * LINE / 16; k += 256) held[k] = text[static_cast<size_t>(blockIdx.x) * (256 * LINE / 16) + k];
    __syncthreads();
    const unsigned *own = reinterpret_cast<const unsigned *>(held) + threadIdx.x * 5;
    unsigned word[5];
#pragma unroll
    for (int k = 0; k < 5; k++) word[k] = own[k];
    out[blockIdx.x * 256 + threadIdx.x] = moment([&](int at) { return static_cast<int>(word[at / 4] >> at % 4 * 8 & 255); });
}

Study moments("moments_in_time_letter_by_letter", "databases", 1 << 23, "8388608 lines of 20 letters read as moments in time",
    "a line's letters are loaded one by one",
    {{"words", "five words a line", {"narrow_access"}}, {"held", "a block's lines fetched in pieces of sixteen bytes", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> text(n * LINE);
        for (long i = 0; i < n; i++) {
            const unsigned h = hash(static_cast<unsigned>(i)), g = hash(h);
            const unsigned field[6] = {1971 + h % 60, 1 + (h >> 8) % 12, 1 + (h >> 12) % 28, (h >> 17) % 24, g % 60, (g >> 8) % 60};
            unsigned char *own = &text[i * LINE];
            const char *pattern = "0000-00-00 00:00:00\n";
            std::copy(pattern, pattern + LINE, own);
            for (int k = 0; k < 4; k++) own[3 - k] = static_cast<unsigned char>('0' + field[0] / (k == 0 ? 1 : k == 1 ? 10 : k == 2 ? 100 : 1000) % 10);
            for (int f = 1; f < 6; f++) own[2 + 3 * f] = static_cast<unsigned char>('0' + field[f] / 10), own[3 + 3 * f] = static_cast<unsigned char>('0' + field[f] % 10);
        }
        const unsigned char *letters = b.copy(text);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(read_moments, n / 256, 256, 0, reinterpret_cast<const char *>(letters), out)},
            {"words", launch(read_moments_words, n / 256, 256, 0, reinterpret_cast<const unsigned *>(letters), out)},
            {"held", launch(read_moments_held, n / 256, 256, 0, reinterpret_cast<const uint4 *>(letters), out)}};
    });

// --- velocity of a flow at the markers of a membrane: 64 nodes each, weighted by smoothed delta functions ---

constexpr float QUARTER_TURN = 1.5707963f;

struct Flow {
    const float4 *velocity;  // [z][y][x]
    int size;
};

__device__ __forceinline__ float delta(float r) { return fabsf(r) < 2.f ? 0.25f * (1.f + cosf(QUARTER_TURN * r)) : 0.f; }
__device__ __forceinline__ float4 node(const Flow &f, int x, int y, int z) { return f.velocity[(static_cast<size_t>(z) * f.size + y) * f.size + x]; }

__global__ void __launch_bounds__(128) marker_velocities(Flow f, const float4 *__restrict__ markers, float4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 m = markers[i];
    const int x0 = static_cast<int>(floorf(m.x)) - 1, y0 = static_cast<int>(floorf(m.y)) - 1, z0 = static_cast<int>(floorf(m.z)) - 1;
    float u = 0.f, v = 0.f, w = 0.f;
    for (int x = x0; x < x0 + 4; x++)
        for (int y = y0; y < y0 + 4; y++)
            for (int z = z0; z < z0 + 4; z++) {
                const float weight = delta(m.x - x) * delta(m.y - y) * delta(m.z - z);
                const float4 at = node(f, x, y, z);
                u += weight * at.x;
                v += weight * at.y;
                w += weight * at.z;
            }
    out[i] = make_float4(u, v, w, 0.f);
}
// Four weights of an axis from one cosine and one sine: a quarter of a turn lies between them.
__device__ __forceinline__ void weights(float share, float (&w)[4]) {
    const float c = 0.25f * cosf(QUARTER_TURN * share), s = 0.25f * sinf(QUARTER_TURN * share);
    w[0] = 0.25f - s, w[1] = 0.25f + c, w[2] = 0.25f + s, w[3] = 0.25f - c;
}
__global__ void __launch_bounds__(128) marker_velocities_axes(Flow f, const float4 *__restrict__ markers, float4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 m = markers[i];
    const float fx = floorf(m.x), fy = floorf(m.y), fz = floorf(m.z);
    const int x0 = static_cast<int>(fx) - 1, y0 = static_cast<int>(fy) - 1, z0 = static_cast<int>(fz) - 1;
    float wx[4], wy[4], wz[4], u = 0.f, v = 0.f, w = 0.f;
    weights(m.x - fx, wx), weights(m.y - fy, wy), weights(m.z - fz, wz);
#pragma unroll
    for (int z = 0; z < 4; z++)
#pragma unroll
        for (int y = 0; y < 4; y++)
#pragma unroll
            for (int x = 0; x < 4; x++) {
                const float weight = wx[x] * (wy[y] * wz[z]);
                const float4 at = node(f, x0 + x, y0 + y, z0 + z);
                u += weight * at.x;
                v += weight * at.y;
                w += weight * at.z;
            }
    out[i] = make_float4(u, v, w, 0.f);
}
// As written first, with fast cosines, the outer ones before the inner loops.
__global__ void __launch_bounds__(128) marker_velocities_fast(Flow f, const float4 *__restrict__ markers, float4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 m = markers[i];
    const int x0 = static_cast<int>(floorf(m.x)) - 1, y0 = static_cast<int>(floorf(m.y)) - 1, z0 = static_cast<int>(floorf(m.z)) - 1;
    float u = 0.f, v = 0.f, w = 0.f;
    for (int z = z0; z < z0 + 4; z++) {
        const float of_z = 0.25f + 0.25f * __cosf(QUARTER_TURN * (m.z - z));
        for (int y = y0; y < y0 + 4; y++) {
            const float of_both = of_z * (0.25f + 0.25f * __cosf(QUARTER_TURN * (m.y - y)));
            for (int x = x0; x < x0 + 4; x++) {
                const float weight = of_both * (0.25f + 0.25f * __cosf(QUARTER_TURN * (m.x - x)));
                const float4 at = node(f, x, y, z);
                u += weight * at.x;
                v += weight * at.y;
                w += weight * at.z;
            }
        }
    }
    out[i] = make_float4(u, v, w, 0.f);
}

Study membrane("marker_velocities_cosines_at_each_node", "HPC", 1 << 20, "velocity of a flow at 1048576 markers of a membrane, 64 nodes each",
    "three precise cosines at each node",
    {{"axes", "four weights for each axis, from one cosine and one sine", {"expensive_math"}}, {"fast", "fast cosines, the outer ones outside the inner loops", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = 128;
        std::vector<float4> markers(n);
        const int around = 1024;
        for (long i = 0; i < n; i++) {
            const float turn = 6.2831853f * (i % around) / around, height = 2.f * (i / around + 0.5f) / (n / around) - 1.f, ring = sqrtf(1.f - height * height);
            markers[i] = make_float4(64.3f + 40.f * ring * cosf(turn), 63.8f + 40.f * ring * sinf(turn), 64.1f + 40.f * height, 0.f);
        }
        const float *velocity = b.random<float>(4l * size * size * size);
        const float4 *places = b.copy(markers);
        float *out = b.output<float>(4 * n);
        const Flow f{reinterpret_cast<const float4 *>(velocity), size};
        auto o = reinterpret_cast<float4 *>(out);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(marker_velocities, n / 128, 128, 0, f, places, o, count)}, {"axes", launch(marker_velocities_axes, n / 128, 128, 0, f, places, o, count)},
            {"fast", launch(marker_velocities_fast, n / 128, 128, 0, f, places, o, count)}};
    });

}  // namespace
