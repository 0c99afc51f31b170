// Lattices, insurance, robots, ratings, radio astronomy, bodies in motion; two kernels without a flaw.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- noise of a lattice cipher: the difference of two sums of three bits for each coefficient ---

__global__ void __launch_bounds__(256) lattice_noise(const unsigned char *__restrict__ bytes, short *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    int a = 0, c = 0;
    for (int k = 0; k < 3; k++) {
        const size_t first = static_cast<size_t>(i) * 6 + k, second = first + 3;
        a += bytes[first / 8] >> first % 8 & 1;
        c += bytes[second / 8] >> second % 8 & 1;
    }
    out[i] = static_cast<short>(a - c);
}
// The sums of three neighbouring bits, eight at once in 24.
__device__ __forceinline__ unsigned sums_of_three(unsigned bits) { return (bits & 0x249249) + (bits >> 1 & 0x249249) + (bits >> 2 & 0x249249); }
__device__ __forceinline__ unsigned two_differences(unsigned sums, int k) {
    const int low = static_cast<int>(sums >> 12 * k & 7) - static_cast<int>(sums >> (12 * k + 3) & 7), high = static_cast<int>(sums >> (12 * k + 6) & 7) - static_cast<int>(sums >> (12 * k + 9) & 7);
    return (low & 0xffff) | static_cast<unsigned>(high) << 16;
}
// Four coefficients a thread, of three bytes.
__global__ void __launch_bounds__(256) lattice_noise_fours(const unsigned char *__restrict__ bytes, uint2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count / 4) return;
    const unsigned char *own = bytes + static_cast<size_t>(i) * 3;
    const unsigned sums = sums_of_three(own[0] | own[1] << 8 | own[2] << 16);
    out[i] = {two_differences(sums, 0), two_differences(sums, 1)};
}
// Sixteen coefficients a thread, of three words.
__global__ void __launch_bounds__(256) lattice_noise_words(const unsigned *__restrict__ words, uint4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count / 16) return;
    const unsigned a = words[3 * i], b = words[3 * i + 1], c = words[3 * i + 2];
    const unsigned sums[4] = {sums_of_three(a & 0xffffff), sums_of_three(__funnelshift_r(a, b, 24) & 0xffffff), sums_of_three(__funnelshift_r(b, c, 16) & 0xffffff), sums_of_three(c >> 8)};
#pragma unroll
    for (int k = 0; k < 2; k++) out[2 * i + k] = {two_differences(sums[2 * k], 0), two_differences(sums[2 * k], 1), two_differences(sums[2 * k + 1], 0), two_differences(sums[2 * k + 1], 1)};
}

Study noise("lattice_noise_bit_by_bit", "crypto", 1 << 17, "131072 polynomials of 256 coefficients of small noise, each of six random bits",
    "a thread looks its six bits up one by one, each in a byte of its own place, and stores two bytes",
    {{"fours", "four coefficients of three bytes, three bits added at once", {"integer_arithmetic", "narrow_access"}}, {"words", "sixteen coefficients of three words", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const long count = n * 256;
        const unsigned *words = b.random<unsigned>(count * 6 / 32, 0, 4294967295.0);
        const unsigned char *bytes = reinterpret_cast<const unsigned char *>(words);
        unsigned char *out = b.output<unsigned char>(count * 2);
        b.tolerance = 0.0;
        return {{"flawed", launch(lattice_noise, blocks(count, 256), 256, 0, bytes, reinterpret_cast<short *>(out), count)}, {"fours", launch(lattice_noise_fours, blocks(count / 4, 256), 256, 0, bytes, reinterpret_cast<uint2 *>(out), count)},
            {"words", launch(lattice_noise_words, blocks(count / 16, 256), 256, 0, words, reinterpret_cast<uint4 *>(out), count)}};
    });

// --- life insurance: what policies cost by today's worth, month by month until they end ---

struct Policy {
    float sum, premium;
    int age, months;
};
struct Portfolio {
    const Policy *policies;
    const float *dying;  // within a month, by age in years
    const int *order;
    float discount;
    int count;
};
struct Projection {
    Policy policy;
    float alive = 1.0f, worth = 0.0f, factor = 1.0f;
    int month = 0;
    __device__ __forceinline__ bool going() const { return month < policy.months; }
    __device__ __forceinline__ void step(const Portfolio &p) {
        const float dying = p.dying[policy.age + month / 12];
        factor *= p.discount;
        worth += factor * alive * (dying * policy.sum - policy.premium);
        alive -= alive * dying;
        month++;
    }
};

template <bool Ordered>
__global__ void __launch_bounds__(128) project(Portfolio p, float *__restrict__ out) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= p.count) return;
    const int own = Ordered ? p.order[i] : i;
    Projection one{p.policies[own]};
    while (one.going()) one.step(p);
    out[own] = one.worth;
}
// A warp has 256 policies: a lane that is done takes the next of them.
__global__ void __launch_bounds__(128) project_refilled(Portfolio p, float *__restrict__ out) {
    constexpr int EACH = 256;
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 4 + threadIdx.x / 32) * EACH, end = min(p.count, first + EACH);
    int own = first + lane, next = first + 32;
    if (first >= p.count) return;
    Projection one{};
    if (own < end) one = Projection{p.policies[own]};
    for (;;) {
        for (int k = 0; k < 12; k++)
            if (one.going()) one.step(p);
        const bool done = own < end && !one.going();
        const unsigned taking = __ballot_sync(~0u, done);
        if (done) {
            out[own] = one.worth;
            own = next + __popc(taking & ((1u << lane) - 1));
            one = own < end ? Projection{p.policies[own]} : Projection{};
        }
        next += __popc(taking);
        if (!__any_sync(~0u, own < end)) return;
    }
}

Study insurance("policies_of_mixed_terms_in_a_warp", "finance", 1 << 20, "today's worth of 1048576 life insurances that end after 12 to 480 months",
    "a warp goes on until the last of its 32 policies has ended",
    {{"ordered", "policies in the order of their terms, by a list", {"branch_divergence"}}, {"refilled", "a lane that is done takes the next of its warp's 256 policies", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Policy> policies(n);
        std::vector<std::vector<int>> of_term(41);
        std::vector<int> order;
        for (long i = 0; i < n; i++) {
            const unsigned drawn = hash(static_cast<unsigned>(i));
            const int years = 1 + drawn % (drawn >> 20 & 1 ? 40 : 12);
            policies[i] = {10000.0f + drawn % 977 * 500.0f, 12.0f + (drawn >> 8) % 50, 20 + static_cast<int>((drawn >> 12) % 50), years * 12};
            of_term[years].push_back(static_cast<int>(i));
        }
        for (const auto &some : of_term) order.insert(order.end(), some.begin(), some.end());
        std::vector<float> dying(120);
        for (int age = 0; age < 120; age++) dying[age] = std::min(0.08f, 0.00002f * std::exp(0.085f * age));
        const Portfolio p{b.copy(policies), b.copy(dying), b.copy(order), 0.9983f, static_cast<int>(n)};
        float *out = b.output<float>(n);
        return {{"flawed", launch(project<false>, blocks(n, 128), 128, 0, p, out)}, {"ordered", launch(project<true>, blocks(n, 128), 128, 0, p, out)}, {"refilled", launch(project_refilled, blocks(n, 4 * 256), 128, 0, p, out)}};
    });

// --- where a robot is: particles weighed by how well the beams of a scanner end at walls ---

struct Scan {
    const float2 *beams;  // angle, range
    const float2 *ends;   // the same in x and y, as the robot sees it
    const float *field;   // how near a wall is
    int count, side;
    float cells;  // of a metre
};
__device__ __forceinline__ float nearness(const Scan &s, float x, float y) {
    const int column = min(max(static_cast<int>(x * s.cells), 0), s.side - 1), row = min(max(static_cast<int>(y * s.cells), 0), s.side - 1);
    return s.field[row * s.side + column];
}
__device__ __forceinline__ void weigh(float sum, float *out) {
    __shared__ float sums[4];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}
template <bool Fast>
__global__ void __launch_bounds__(128) weigh_particles(const float4 *__restrict__ particles, Scan s, float *__restrict__ out) {
    const float4 p = particles[blockIdx.x];  // place, angle
    float sum = 0.0f;
    for (int i = threadIdx.x; i < s.count; i += 128) {
        const float2 beam = s.beams[i];
        float sine, cosine;
        if (Fast) __sincosf(p.z + beam.x, &sine, &cosine);
        else sine = sinf(p.z + beam.x), cosine = cosf(p.z + beam.x);
        sum += nearness(s, p.x + beam.y * cosine, p.y + beam.y * sine);
    }
    weigh(sum, out);
}
// The beams' ends are turned by the particle's angle.
__global__ void __launch_bounds__(128) weigh_particles_turned(const float4 *__restrict__ particles, Scan s, float *__restrict__ out) {
    const float4 p = particles[blockIdx.x];
    float sine, cosine, sum = 0.0f;
    sincosf(p.z, &sine, &cosine);
    for (int i = threadIdx.x; i < s.count; i += 128) {
        const float2 end = s.ends[i];
        sum += nearness(s, p.x + end.x * cosine - end.y * sine, p.y + end.x * sine + end.y * cosine);
    }
    weigh(sum, out);
}

Study particle_scans("particle_scans_a_sine_for_each_beam", "robotics", 1 << 15, "32768 places of a robot weighed by 720 beams of a scanner in a field of 1024 x 1024 cells",
    "the precise sine and cosine of each beam's angle for each place",
    {{"turned", "the ends of beams, which do not change, are turned by the place's angle", {"expensive_math"}}, {"fast", "the hardware's sine and cosine", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int BEAMS = 720, SIDE = 1024;
        std::vector<float2> beams(BEAMS), ends(BEAMS);
        for (int i = 0; i < BEAMS; i++) {
            const float angle = (i - BEAMS / 2) * 0.00654f, range = 2.0f + 3.0f * std::fabs(std::sin(i * 0.05f)) + hash(i) % 100 * 0.002f;
            beams[i] = {angle, range}, ends[i] = {range * std::cos(angle), range * std::sin(angle)};
        }
        std::vector<float> field(SIDE * SIDE);
        for (int i = 0; i < SIDE * SIDE; i++) field[i] = 0.1f + std::exp(-0.5f * std::pow(std::sin(i % SIDE * 0.011f) + std::cos(i / SIDE * 0.013f), 2.0f));
        std::vector<float4> particles(n);
        for (long i = 0; i < n; i++) {
            const auto draw = [&](int k) { return (hash(static_cast<unsigned>(i * 3 + k)) >> 8) / 16777216.0f; };
            particles[i] = {11.0f + 4.0f * draw(0), 12.0f + 4.0f * draw(1), 6.283f * draw(2) - 3.1415f, 1.0f};
        }
        const Scan s{b.copy(beams), b.copy(ends), b.copy(field), BEAMS, SIDE, 40.0f};
        const float4 *of = b.copy(particles);
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;  // a beam may end in the next cell
        return {{"flawed", launch(weigh_particles<false>, n, 128, 0, of, s, out)}, {"turned", launch(weigh_particles_turned, n, 128, 0, of, s, out)}, {"fast", launch(weigh_particles<true>, n, 128, 0, of, s, out)}};
    });

// --- ratings factorised: a user's matrix of 64 x 64, a sum over the things rated ---

constexpr int FACTORS = 64, AT_ONCE = 16;

struct Ratings {
    const float *things;  // FACTORS of each
    const int *starts, *rated;
};
template <int THREADS>
__device__ __forceinline__ void fetch_things(const Ratings &r, int first, int end, float (*rows)[FACTORS]) {
    for (int i = threadIdx.x; i < AT_ONCE * FACTORS / 4; i += THREADS) {
        const int k = i / (FACTORS / 4), c = i % (FACTORS / 4) * 4;
        *reinterpret_cast<float4 *>(&rows[k][c]) = first + k < end ? *reinterpret_cast<const float4 *>(r.things + static_cast<size_t>(r.rated[first + k]) * FACTORS + c) : make_float4(0, 0, 0, 0);
    }
}

__global__ void __launch_bounds__(256) user_matrices(Ratings r, float *__restrict__ out, float weight) {
    __shared__ __align__(16) float rows[AT_ONCE][FACTORS];
    constexpr int EACH = FACTORS * FACTORS / 256;
    const int end = r.starts[blockIdx.x + 1], y = threadIdx.x / FACTORS, x = threadIdx.x % FACTORS;
    float sums[EACH] = {};
    for (int first = r.starts[blockIdx.x]; first < end; first += AT_ONCE) {
        fetch_things<256>(r, first, end, rows);
        __syncthreads();
        for (int k = 0; k < AT_ONCE; k++) {
#pragma unroll
            for (int e = 0; e < EACH; e++) sums[e] += rows[k][y + e * (256 / FACTORS)] * rows[k][x];
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int row = y + e * (256 / FACTORS);
        out[(static_cast<size_t>(blockIdx.x) * FACTORS + row) * FACTORS + x] = sums[e] + (row == x ? weight : 0.0f);
    }
}
// A thread has SIDE x SIDE of the matrix.
template <int SIDE>
__global__ void __launch_bounds__(FACTORS / SIDE * FACTORS / SIDE) user_matrices_tiled(Ratings r, float *__restrict__ out, float weight) {
    __shared__ __align__(16) float rows[AT_ONCE][FACTORS];
    constexpr int ACROSS = FACTORS / SIDE;
    const int end = r.starts[blockIdx.x + 1], y = threadIdx.x / ACROSS * SIDE, x = threadIdx.x % ACROSS * SIDE;
    float sums[SIDE][SIDE] = {};
    for (int first = r.starts[blockIdx.x]; first < end; first += AT_ONCE) {
        fetch_things<ACROSS * ACROSS>(r, first, end, rows);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < AT_ONCE; k++) {
            float left[SIDE], right[SIDE];
#pragma unroll
            for (int i = 0; i < SIDE; i += 4) {
                const float4 a = *reinterpret_cast<const float4 *>(&rows[k][y + i]), c = *reinterpret_cast<const float4 *>(&rows[k][x + i]);
                left[i] = a.x, left[i + 1] = a.y, left[i + 2] = a.z, left[i + 3] = a.w, right[i] = c.x, right[i + 1] = c.y, right[i + 2] = c.z, right[i + 3] = c.w;
            }
#pragma unroll
            for (int i = 0; i < SIDE; i++) {
#pragma unroll
                for (int j = 0; j < SIDE; j++) sums[i][j] += left[i] * right[j];
            }
        }
        __syncthreads();
    }
    if (x == y) {
#pragma unroll
        for (int i = 0; i < SIDE; i++) sums[i][i] += weight;
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
#pragma unroll
        for (int j = 0; j < SIDE; j += 4) *reinterpret_cast<float4 *>(&out[(static_cast<size_t>(blockIdx.x) * FACTORS + y + i) * FACTORS + x + j]) = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
}

Study rating_matrices("rating_matrices_a_word_of_shared_a_product", "recommenders", 6144, "matrices of 64 x 64 of 6144 users: sums of outer products over 16 to 255 things rated",
    "for each product a thread reads a word of shared memory: sixteen rows of the matrix with one column",
    {{"fours", "4 x 4 of the matrix a thread", {"shared_memory_bandwidth"}}, {"eights", "8 x 8 a thread, 64 threads a user", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const long things = 1 << 15;
        std::vector<int> starts(n + 1), rated;
        for (long i = 0; i < n; i++) {
            const int many = 16 + hash(static_cast<unsigned>(i) + 2) % 240;
            for (int k = 0; k < many; k++) rated.push_back(static_cast<int>(hash(static_cast<unsigned>(rated.size())) % things));
            starts[i + 1] = static_cast<int>(rated.size());
        }
        const Ratings r{b.random<float>(things * FACTORS), b.copy(starts), b.copy(rated)};
        float *out = b.output<float>(n * FACTORS * FACTORS);
        return {{"flawed", launch(user_matrices, n, 256, 0, r, out, 0.5f)}, {"fours", launch(user_matrices_tiled<4>, n, 256, 0, r, out, 0.5f)}, {"eights", launch(user_matrices_tiled<8>, n, 64, 0, r, out, 0.5f)}};
    });

// --- disturbances of a radio telescope: sums of power and of its square, a channel each ---

using Sum = unsigned long long;

__device__ __forceinline__ void add_power(int re, int im, Sum &power, Sum &squares) {
    const unsigned p = re * re + im * im;
    power += p, squares += p * p;  // below 2^32: 2 * 127^2, squared
}
template <int WARPS>
__device__ __forceinline__ bool block_sums(Sum &power, Sum &squares) {
    __shared__ Sum sums[2][WARPS];
    for (int d = 16; d; d /= 2) power += __shfl_xor_sync(~0u, power, d), squares += __shfl_xor_sync(~0u, squares, d);
    if (threadIdx.x % 32 == 0) sums[0][threadIdx.x / 32] = power, sums[1][threadIdx.x / 32] = squares;
    __syncthreads();
    if (threadIdx.x) return false;
    power = squares = 0;
    for (int w = 0; w < WARPS; w++) power += sums[0][w], squares += sums[1][w];
    return true;
}
__global__ void __launch_bounds__(512) channel_sums(const char2 *__restrict__ voltages, Sum *__restrict__ out, int samples) {
    const char2 *own = voltages + static_cast<size_t>(blockIdx.x) * samples;
    Sum power = 0, squares = 0;
    for (int i = threadIdx.x; i < samples; i += 512) add_power(own[i].x, own[i].y, power, squares);
    if (block_sums<16>(power, squares)) out[2 * blockIdx.x] = power, out[2 * blockIdx.x + 1] = squares;
}
// Sixteen blocks a channel.
__global__ void __launch_bounds__(512) channel_sums_parts(const char2 *__restrict__ voltages, Sum *__restrict__ out, int samples) {
    const char2 *own = voltages + static_cast<size_t>(blockIdx.y) * samples;
    const int share = samples / gridDim.x;
    Sum power = 0, squares = 0;
    for (int i = blockIdx.x * share + threadIdx.x; i < static_cast<int>(blockIdx.x + 1) * share; i += 512) add_power(own[i].x, own[i].y, power, squares);
    if (block_sums<16>(power, squares)) atomicAdd(out + 2 * blockIdx.y, power), atomicAdd(out + 2 * blockIdx.y + 1, squares);
}
// Eight samples a load, a block of 1024 threads a channel.
__global__ void __launch_bounds__(1024) channel_sums_wide(const uint4 *__restrict__ voltages, Sum *__restrict__ out, int samples) {
    const uint4 *own = voltages + static_cast<size_t>(blockIdx.x) * (samples / 8);
    Sum power = 0, squares = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < samples / 8; i += 1024) {
        const uint4 eight = own[i];
        const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int k = 0; k < 4; k++)
            for (int h = 0; h < 32; h += 16) add_power(static_cast<signed char>(words[k] >> h), static_cast<signed char>(words[k] >> (h + 8)), power, squares);
    }
    if (block_sums<32>(power, squares)) out[2 * blockIdx.x] = power, out[2 * blockIdx.x + 1] = squares;
}

Study kurtosis("radio_channels_a_block_for_each_of_96", "astronomy", 1 << 20, "sums of power and of its square of 96 channels of 1048576 samples of two bytes",
    "a block for each of 96 channels where there are 132 multiprocessors, two bytes a load",
    {{"parts", "sixteen blocks a channel, sums added by atomics", {"small_grid"}}, {"wide", "eight samples a load, 1024 threads a block", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int CHANNELS = 96;
        const char2 *voltages = reinterpret_cast<const char2 *>(b.random<signed char>(n * CHANNELS * 2, -40, 41));
        Sum *out = b.output<Sum>(2 * CHANNELS, true);
        b.tolerance = 0.0;
        return {{"flawed", launch(channel_sums, CHANNELS, 512, 0, voltages, out, n)}, {"parts", launch(channel_sums_parts, dim3(16, CHANNELS), 512, 0, voltages, out, n)}, {"wide", launch(channel_sums_wide, CHANNELS, 1024, 0, reinterpret_cast<const uint4 *>(voltages), out, n)}};
    });

// --- bodies in motion: from each joint's own turn to where all joints are ---

constexpr int JOINTS = 24, DEPTH = 8;  // DEPTH: steps from the hip to a hand

struct Skeleton {
    int parents[32], levels[32];
    float4 offsets[32];
};
struct Joint {
    float4 turn, place;
};
__device__ __forceinline__ float4 product(float4 a, float4 b) {
    return {a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}
__device__ __forceinline__ float4 turned(float4 q, float4 v) {
    const float x = 2.0f * (q.y * v.z - q.z * v.y), y = 2.0f * (q.z * v.x - q.x * v.z), z = 2.0f * (q.x * v.y - q.y * v.x);
    return {v.x + q.w * x + q.y * z - q.z * y, v.y + q.w * y + q.z * x - q.x * z, v.z + q.w * z + q.x * y - q.y * x, 0.0f};
}
// `b` as seen from where `a` is seen from.
__device__ __forceinline__ Joint joined(const Joint &a, const Joint &b) {
    const float4 v = turned(a.turn, b.place);
    return {product(a.turn, b.turn), {a.place.x + v.x, a.place.y + v.y, a.place.z + v.z, 0.0f}};
}
__device__ __forceinline__ float4 from_lane(float4 v, int lane) { return {__shfl_sync(~0u, v.x, lane), __shfl_sync(~0u, v.y, lane), __shfl_sync(~0u, v.z, lane), __shfl_sync(~0u, v.w, lane)}; }

__global__ void __launch_bounds__(256) pose_bodies(const float4 *__restrict__ turns, const Skeleton *__restrict__ skeleton, float4 *__restrict__ out, int bodies) {
    __shared__ Joint joints[8][32];
    const int slot = threadIdx.x / 32, joint = threadIdx.x % 32, body = blockIdx.x * 8 + slot;
    const bool there = joint < JOINTS && body < bodies;
    const int level = skeleton->levels[joint];
    if (there) joints[slot][joint] = {turns[static_cast<size_t>(body) * JOINTS + joint], skeleton->offsets[joint]};
    __syncthreads();
    for (int l = 1; l <= DEPTH; l++) {
        if (there && level == l) joints[slot][joint] = joined(joints[slot][skeleton->parents[joint]], joints[slot][joint]);
        __syncthreads();
    }
    if (there) {
        out[(static_cast<size_t>(body) * JOINTS + joint) * 2] = joints[slot][joint].turn;
        out[(static_cast<size_t>(body) * JOINTS + joint) * 2 + 1] = joints[slot][joint].place;
    }
}
// A body's joints stay in a warp: the parent's place by shuffles, without a barrier.
__global__ void __launch_bounds__(256) pose_bodies_warp(const float4 *__restrict__ turns, const Skeleton *__restrict__ skeleton, float4 *__restrict__ out, int bodies) {
    const int joint = threadIdx.x % 32, body = blockIdx.x * 8 + threadIdx.x / 32;
    if (body >= bodies) return;
    const bool there = joint < JOINTS;
    const int level = skeleton->levels[joint], parent = skeleton->parents[joint];
    Joint own{there ? turns[static_cast<size_t>(body) * JOINTS + joint] : float4{0, 0, 0, 1}, skeleton->offsets[joint]};
    for (int l = 1; l <= DEPTH; l++) {
        const Joint above{from_lane(own.turn, parent), from_lane(own.place, parent)};
        if (level == l) own = joined(above, own);
    }
    if (there) out[(static_cast<size_t>(body) * JOINTS + joint) * 2] = own.turn, out[(static_cast<size_t>(body) * JOINTS + joint) * 2 + 1] = own.place;
}
// Each joint is joined with an ancestor twice as far away each time: four rounds.
__global__ void __launch_bounds__(256) pose_bodies_doubled(const float4 *__restrict__ turns, const Skeleton *__restrict__ skeleton, float4 *__restrict__ out, int bodies) {
    const int joint = threadIdx.x % 32, body = blockIdx.x * 8 + threadIdx.x / 32;
    if (body >= bodies) return;
    const bool there = joint < JOINTS;
    int ancestor = skeleton->levels[joint] > 0 ? skeleton->parents[joint] : -1;
    Joint own{there ? turns[static_cast<size_t>(body) * JOINTS + joint] : float4{0, 0, 0, 1}, skeleton->offsets[joint]};
#pragma unroll
    for (int round = 0; round < 4; round++) {
        const int from = max(ancestor, 0), further = __shfl_sync(~0u, ancestor, from);
        const Joint above{from_lane(own.turn, from), from_lane(own.place, from)};
        if (ancestor >= 0) own = joined(above, own), ancestor = further;
    }
    if (there) out[(static_cast<size_t>(body) * JOINTS + joint) * 2] = own.turn, out[(static_cast<size_t>(body) * JOINTS + joint) * 2 + 1] = own.place;
}

Study body_poses("body_poses_a_barrier_for_each_level", "animation", 1 << 17, "places and turns of the 24 joints of 131072 bodies, each from its parent's",
    "a block of eight bodies goes down the levels of the skeleton with a barrier after each; a level has one to five joints",
    {{"warp", "joints stay in a warp, the parent's by shuffles", {"barriers", "idle_threads"}}, {"doubled", "each joint with an ancestor twice as far each round: four rounds", {"barriers", "idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        const int parents[JOINTS] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21};
        Skeleton s{};
        for (int j = 0; j < 32; j++) {
            s.parents[j] = j < JOINTS ? parents[j] : j;
            s.levels[j] = j && j < JOINTS ? s.levels[parents[j]] + 1 : 0;
            s.offsets[j] = {0.1f * (hash(j) % 7) - 0.3f, 0.1f * (hash(j + 40) % 5), 0.05f * (hash(j + 80) % 5), 0.0f};
        }
        std::vector<float4> turns(n * JOINTS);
        for (long i = 0; i < n * JOINTS; i++) {
            const auto draw = [&](int k) { return (hash(static_cast<unsigned>(i * 3 + k)) >> 8) / 16777216.0f - 0.5f; };
            const float x = draw(0), y = draw(1), z = draw(2), scale = 1.0f / std::sqrt(x * x + y * y + z * z + 1.0f);
            turns[i] = {x * scale, y * scale, z * scale, scale};
        }
        const Skeleton *skeleton = b.copy(std::vector<Skeleton>{s});
        const float4 *in = b.copy(turns);
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * JOINTS * 8));
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 8), 256, 0, in, skeleton, out, n); };
        return {{"flawed", side(pose_bodies)}, {"warp", side(pose_bodies_warp)}, {"doubled", side(pose_bodies_doubled)}};
    });

// --- a pulsar's light by its phase: each lane adds to bins of its own ---

constexpr int BINS = 64, FOLD_WARPS = 2;

// Where a lane's bin is.
struct RowsOfBins {
    static constexpr int WORDS = 32 * BINS;
    static __device__ __forceinline__ int at(int lane, int bin) { return lane * BINS + bin; }
};
struct PaddedRows {
    static constexpr int WORDS = 32 * (BINS + 1);
    static __device__ __forceinline__ int at(int lane, int bin) { return lane * (BINS + 1) + bin; }
};
struct RowsOfLanes {
    static constexpr int WORDS = 32 * BINS;
    static __device__ __forceinline__ int at(int lane, int bin) { return bin * 32 + lane; }
};
template <typename Bins>
__global__ void __launch_bounds__(FOLD_WARPS * 32) fold(const float *__restrict__ samples, float *__restrict__ out, int count, unsigned step, int share) {
    __shared__ float sums[FOLD_WARPS][Bins::WORDS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *own = sums[warp];
    for (int i = lane; i < Bins::WORDS; i += 32) own[i] = 0.0f;
    __syncwarp();
    const float *channel = samples + static_cast<size_t>(blockIdx.y) * count;
    const int first = (blockIdx.x * FOLD_WARPS + warp) * share;
#pragma unroll 4
    for (int t = first + lane; t < first + share; t += 32) own[Bins::at(lane, static_cast<unsigned>(t) * step >> 26)] += channel[t];
    __syncwarp();
    for (int bin = lane; bin < BINS; bin += 32) {
        float sum = 0.0f;
        for (int k = 0; k < 32; k++) sum += own[Bins::at((k + lane) % 32, bin)];
        atomicAdd(out + blockIdx.y * BINS + bin, sum);
    }
}

Study pulsar_folding("pulsar_bins_of_a_lane_in_a_row_of_64", "astronomy", 1 << 18, "128 channels of 262144 samples summed in 64 bins of a pulsar's phase",
    "neighbouring samples are of one phase, and a lane's row of bins is 64 words: lanes meet in one bank",
    {{"lanes", "the lanes' copies of a bin side by side", {"shared_bank_conflicts"}}, {"padded", "rows of 65 words", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int CHANNELS = 128;
        const int share = static_cast<int>(std::min(8192L, n / FOLD_WARPS));
        const float *samples = b.random<float>(n * CHANNELS, 0, 4);
        float *out = b.output<float>(CHANNELS * BINS, true);
        const unsigned step = 613000;  // of 2^32: a turn in some 7000 samples
        const dim3 grid(blocks(n, FOLD_WARPS * share), CHANNELS);
        const auto side = [=](auto kernel) { return launch(kernel, grid, FOLD_WARPS * 32, 0, samples, out, n, step, share); };
        return {{"flawed", side(fold<RowsOfBins>)}, {"lanes", side(fold<RowsOfLanes>)}, {"padded", side(fold<PaddedRows>)}};
    });

// --- without a flaw: polynomials, and half a step of particles ---

constexpr int DEGREE = 127;

struct Series {
    float coefficients[DEGREE + 1];
};
__global__ void __launch_bounds__(256) evaluate(const float4 *__restrict__ x, float4 *__restrict__ out, const __grid_constant__ Series s, int fours) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= fours) return;
    const float4 at = x[i];
    float4 sum = {s.coefficients[DEGREE], s.coefficients[DEGREE], s.coefficients[DEGREE], s.coefficients[DEGREE]};
#pragma unroll
    for (int k = DEGREE - 1; k >= 0; k--) {
        const float c = s.coefficients[k];
        sum = {fmaf(sum.x, at.x, c), fmaf(sum.y, at.y, c), fmaf(sum.z, at.z, c), fmaf(sum.w, at.w, c)};
    }
    out[i] = sum;
}

Study series("sound_polynomials_of_degree_127", "numerics", 1 << 24, "a polynomial of degree 127 at 16777216 places", "", {},
    [](Buffers &b, long n) -> Sides {
        Series s;
        for (int k = 0; k <= DEGREE; k++) s.coefficients[k] = (hash(k) % 2001 - 1000.0f) * 1e-3f;
        const float4 *x = reinterpret_cast<const float4 *>(b.random<float>(n));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n));
        return {{"sound", launch(evaluate, blocks(n / 4, 256), 256, 0, x, out, s, n / 4)}};
    });

__global__ void __launch_bounds__(256) half_step(const float4 *__restrict__ speeds, const float4 *__restrict__ forces, float4 *__restrict__ out, float step, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 v = speeds[i], f = forces[i];  // w: inverse mass
    const float s = step * v.w;
    out[i] = {fmaf(f.x, s, v.x), fmaf(f.y, s, v.y), fmaf(f.z, s, v.z), v.w};
}

Study half_steps("sound_half_step_of_speeds", "physics", 1 << 22, "speeds of 4194304 particles half a step later, by their forces", "", {},
    [](Buffers &b, long n) -> Sides {
        const float4 *speeds = reinterpret_cast<const float4 *>(b.random<float>(4 * n)), *forces = reinterpret_cast<const float4 *>(b.random<float>(4 * n));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(4 * n));
        return {{"sound", launch(half_step, blocks(n, 256), 256, 0, speeds, forces, out, 0.001f, n)}};
    });

}  // namespace
