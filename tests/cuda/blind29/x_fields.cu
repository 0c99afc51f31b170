// Agents, scans, docking, postings, deltas, frames of speech, days, raids, registrations, fingerprints, reads and genotypes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../pairs/pair.cuh"

namespace {

float chance(unsigned seed) { return hash(seed) / 4294967296.0f; }

// --- what of a crowd is drawn ---

struct Agent {
    float3 position, velocity, goal;
    float health;
    int team, state;
    float cooldown, radius, stamina;
    int path;
};
struct Motion {
    float4 place;  // w: radius
    float4 velocity;
};
// Where an agent is a moment later, and how large it is drawn.
__device__ __forceinline__ float4 instance(float3 p, float3 v, float radius, float dt) {
    const float stretch = 1.0f + 0.1f * sqrtf(v.x * v.x + v.y * v.y + v.z * v.z);
    return make_float4(p.x + v.x * dt, p.y + v.y * dt, p.z + v.z * dt, radius * stretch);
}
__global__ void draw_agents(const Agent *__restrict__ agents, float4 *__restrict__ instances, int count, float dt) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    instances[i] = instance(agents[i].position, agents[i].velocity, agents[i].radius, dt);
}
__global__ void draw_planes(const float *__restrict__ planes, float4 *__restrict__ instances, int count, float dt) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float *p = planes + i;
    const size_t n = count;
    instances[i] = instance(make_float3(p[0], p[n], p[2 * n]), make_float3(p[3 * n], p[4 * n], p[5 * n]), p[6 * n], dt);
}
__global__ void draw_motions(const Motion *__restrict__ motions, float4 *__restrict__ instances, int count, float dt) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float4 p = motions[i].place, v = motions[i].velocity;
    instances[i] = instance(make_float3(p.x, p.y, p.z), make_float3(v.x, v.y, v.z), p.w, dt);
}

Study crowd("crowd_draws_from_whole_agents", "games", 2 << 20, "where 2097152 agents of a game are drawn, from their positions, velocities and radii",
    "agents are structures of 64 bytes, of which 28 are wanted",
    {{"planes", "an array for each number", {"uncoalesced_access"}}, {"motions", "what moves apart from the rest, in two words of 16 bytes", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Agent> agents(n);
        std::vector<Motion> motions(n);
        std::vector<float> planes(7 * n);
        for (long i = 0; i < n; i++) {
            const unsigned a = hash(i), c = hash(a);
            const float v[] = {(a & 1023) * 0.5f, (a >> 10 & 1023) * 0.5f, (a >> 20 & 255) * 0.1f, (c & 255) * 0.02f - 2.5f, (c >> 8 & 255) * 0.02f - 2.5f, (c >> 16 & 15) * 0.01f, 0.3f + (c >> 24 & 7) * 0.05f};
            Agent &agent = agents[i];
            agent.position = make_float3(v[0], v[1], v[2]), agent.velocity = make_float3(v[3], v[4], v[5]), agent.goal = make_float3(0, 0, 0);
            agent.health = 100, agent.team = a & 1, agent.state = 0, agent.cooldown = 0, agent.radius = v[6], agent.stamina = 1, agent.path = -1;
            motions[i] = {make_float4(v[0], v[1], v[2], v[6]), make_float4(v[3], v[4], v[5], 0)};
            for (int k = 0; k < 7; k++) planes[k * n + i] = v[k];
        }
        float *out = b.output<float>(4 * n);
        float4 *to = reinterpret_cast<float4 *>(out);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(draw_agents, blocks(n, 256), 256, 0, b.copy(agents), to, count, 0.016f)},
            {"planes", launch(draw_planes, blocks(n, 256), 256, 0, b.copy(planes), to, count, 0.016f)},
            {"motions", launch(draw_motions, blocks(n, 256), 256, 0, b.copy(motions), to, count, 0.016f)}};
    });

// --- how well poses explain a scan ---

constexpr int BEAMS = 60, FIELD = 1024;  // beams of a scan; cells of a row of the map, 5 cm each

struct Scan {
    const float *x, *y, *heading;  // of a pose, in metres and radians
    const float2 *beams;           // where they end, as the robot sees it
    const float *field;            // distance of a cell to the nearest obstacle; or what that means for a beam
    float *weights;
    int count;
};
__device__ __forceinline__ int cell_of(float x, float y, float c, float s, float2 beam) {
    const float ex = fmaf(c, beam.x, fmaf(-s, beam.y, x)), ey = fmaf(s, beam.x, fmaf(c, beam.y, y));
    const int column = min(max(static_cast<int>(ex * 20.0f), 0), FIELD - 1), row = min(max(static_cast<int>(ey * 20.0f), 0), FIELD - 1);
    return row * FIELD + column;
}
template <typename Score>
__device__ __forceinline__ void weigh(const Scan &scan, Score score) {
    __shared__ float2 beams[BEAMS];
    if (threadIdx.x < BEAMS) beams[threadIdx.x] = scan.beams[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= scan.count) return;
    const float x = scan.x[i], y = scan.y[i];
    float s, c;
    __sincosf(scan.heading[i], &s, &c);
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < BEAMS; k++) sum += score(scan.field[cell_of(x, y, c, s, beams[k])]);
    scan.weights[i] = sum;
}
__global__ void __launch_bounds__(256) weigh_poses(Scan scan) {
    weigh(scan, [](float d) { return logf(0.9 * expf(-0.5 * d * d / (0.2 * 0.2)) + 0.1 / 30.0); });
}
__global__ void __launch_bounds__(256) weigh_poses_floats(Scan scan) {
    weigh(scan, [](float d) { return logf(0.9f * expf(-12.5f * d * d) + 0.1f / 30.0f); });
}
__global__ void __launch_bounds__(256) weigh_poses_table(Scan scan) {
    weigh(scan, [](float value) { return value; });
}

Study localisation("robot_poses_weighed_with_double_constants", "robotics", 1 << 19, "how likely 524288 poses of a robot are by the 60 beams of a laser scan in a map of distances",
    "the constants of the sensor's model are doubles, so what is between a beam's exponential and logarithm is, too",
    {{"floats", "constants as floats, the division a product", {"double_precision"}}, {"table", "a map of logarithms made before instead of one of distances", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> x(n), y(n), heading(n), field(FIELD * FIELD), table(FIELD * FIELD);
        for (long i = 0; i < n; i++) x[i] = 24 + 2 * chance(3 * i), y[i] = 25 + 2 * chance(3 * i + 1), heading[i] = 0.4f * chance(3 * i + 2);
        for (int row = 0; row < FIELD; row++)
            for (int column = 0; column < FIELD; column++) {
                const int dx = std::min(column % 160, 160 - column % 160), dy = std::min(row % 224, 224 - row % 224);
                const float d = 0.05f * std::min(dx, dy) + 0.01f;
                field[row * FIELD + column] = d;
                table[row * FIELD + column] = static_cast<float>(std::log(0.9 * std::exp(-0.5 * d * d / (0.2 * 0.2)) + 0.1 / 30.0));
            }
        std::vector<float2> beams(BEAMS);
        for (int k = 0; k < BEAMS; k++) {
            const float range = 2 + 10 * chance(77 + k), angle = 0.08f * (k - BEAMS / 2);
            beams[k] = make_float2(range * std::cos(angle), range * std::sin(angle));
        }
        const Scan distances{b.copy(x), b.copy(y), b.copy(heading), b.copy(beams), b.copy(field), b.output<float>(n), static_cast<int>(n)};
        Scan logarithms = distances;
        logarithms.field = b.copy(table);
        return {{"flawed", launch(weigh_poses, blocks(n, 256), 256, 0, distances)}, {"floats", launch(weigh_poses_floats, blocks(n, 256), 256, 0, distances)},
            {"table", launch(weigh_poses_table, blocks(n, 256), 256, 0, logarithms)}};
    });

// --- what a probe feels around a protein ---

struct Power {
    __device__ static float energy(float sigma2, float r2, float depth) {
        const float sixth = powf(sqrtf(sigma2) / sqrtf(r2), 6.0f);
        return depth * (sixth * sixth - 2.0f * sixth);
    }
};
struct Products {
    __device__ static float energy(float sigma2, float r2, float depth) {
        const float square = __fdividef(sigma2, r2), sixth = square * square * square;
        return depth * (sixth * sixth - 2.0f * sixth);
    }
};
struct FastPower {
    __device__ static float energy(float sigma2, float r2, float depth) {
        const float sixth = __powf(__fdividef(sigma2, r2), 3.0f);
        return depth * (sixth * sixth - 2.0f * sixth);
    }
};
constexpr int PROBE_TILE = 128;

// A point of the grid a thread; atoms: x, y, z, squared diameter; depths: of their wells.
template <typename Potential>
__global__ void __launch_bounds__(256) probe(const float4 *__restrict__ atoms, const float *__restrict__ depths, float *__restrict__ energies, int count, int edge) {
    __shared__ float4 tile[PROBE_TILE];
    __shared__ float wells[PROBE_TILE];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = i % edge * 0.5f, y = i / edge % edge * 0.5f, z = i / edge / edge * 0.5f;
    float energy = 0;
    for (int first = 0; first < count; first += PROBE_TILE) {
        __syncthreads();
        if (threadIdx.x < PROBE_TILE) tile[threadIdx.x] = atoms[first + threadIdx.x], wells[threadIdx.x] = depths[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < PROBE_TILE; k++) {
            const float dx = x - tile[k].x, dy = y - tile[k].y, dz = z - tile[k].z;
            const float r2 = fmaxf(dx * dx + dy * dy + dz * dz, 4.0f);
            energy += Potential::energy(tile[k].w, r2, wells[k]);
        }
    }
    energies[i] = energy;
}

Study docking("docking_grid_powers_of_distances", "chemistry", 64, "energy of a probe at 64 x 64 x 64 points around 512 atoms",
    "the sixth power of a ratio of distances by roots and the library's power",
    {{"products", "powers of the squared ratio by products, without a root", {"expensive_math"}}, {"fast", "the third power of the squared ratio by the fast power", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 512;
        std::vector<float4> atoms(count);
        std::vector<float> depths(count);
        for (int i = 0; i < count; i++) {
            const float sigma = 3.0f + 0.25f * (hash(i) % 4);
            atoms[i] = make_float4(n * 0.5f * chance(900 + 3 * i), n * 0.5f * chance(901 + 3 * i), n * 0.5f * chance(902 + 3 * i), sigma * sigma);
            depths[i] = 0.05f + 0.05f * (hash(i + 7) % 3);
        }
        const float4 *from = b.copy(atoms);
        const float *wells = b.copy(depths);
        const long points = n * n * n;
        float *out = b.output<float>(points);
        const auto side = [&](auto kernel) { return launch(kernel, blocks(points, 256), 256, 0, from, wells, out, count, static_cast<int>(n)); };
        return {{"flawed", side(probe<Power>)}, {"products", side(probe<Products>)}, {"fast", side(probe<FastPower>)}};
    });

// --- what each posting of an index is worth ---

struct Index {
    const int *starts;             // of a term's postings, and the end
    const float *idf;              // of a term
    const int *documents;          // of a posting
    const unsigned char *counts;   // how often the term occurs there
    const float *lengths;          // of a document, as a share of the mean
    float *impacts;
    int terms;
};
__device__ __forceinline__ void score_posting(const Index &index, int p, float idf) {
    const float count = index.counts[p], length = index.lengths[index.documents[p]];
    index.impacts[p] = idf * count * 2.2f / (count + 1.2f * (0.25f + 0.75f * length));
}
// A term a block.
__global__ void __launch_bounds__(256) score_terms(Index index) {
    const int term = blockIdx.x, end = index.starts[term + 1];
    const float idf = index.idf[term];
    for (int p = index.starts[term] + threadIdx.x; p < end; p += blockDim.x) score_posting(index, p, idf);
}
// At most 1024 postings of a term a block.
__global__ void __launch_bounds__(256) score_pieces(Index index, const int2 *__restrict__ pieces) {
    const int2 piece = pieces[blockIdx.x];
    const int end = min(piece.y + 1024, index.starts[piece.x + 1]);
    const float idf = index.idf[piece.x];
    for (int p = piece.y + threadIdx.x; p < end; p += blockDim.x) score_posting(index, p, idf);
}
// A posting a thread, which looks for its term.
__global__ void __launch_bounds__(256) score_postings(Index index, int count) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= count) return;
    int low = 0, high = index.terms;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (index.starts[middle] <= p) low = middle;
        else high = middle;
    }
    score_posting(index, p, index.idf[low]);
}

Study bm25("index_impacts_a_term_a_block", "search engines", 1 << 20, "what the postings of 8192 terms are worth, by their counts and their documents' lengths",
    "a block works for each term, and few terms have most of the postings",
    {{"pieces", "a block for 1024 postings of a term at most", {"workload_imbalance"}}, {"flat", "a thread for each posting, its term by bisection", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int terms = 8192, documents = 1 << 20;
        std::vector<int> ranks(terms), starts(terms + 1);
        std::iota(ranks.begin(), ranks.end(), 0);
        std::sort(ranks.begin(), ranks.end(), [](int a, int c) { return hash(a) < hash(c); });  // terms by name
        std::vector<float> idf(terms);
        for (int t = 0; t < terms; t++) {
            const long length = std::max(1L, n / (ranks[t] + 30));
            starts[t + 1] = starts[t] + static_cast<int>(length);
            idf[t] = std::log(1.0f + static_cast<float>(n) / length);
        }
        const int count = starts[terms];
        std::vector<int> of(count);
        std::vector<unsigned char> counts(count);
        std::vector<int2> pieces;
        for (int t = 0; t < terms; t++) {
            const int length = starts[t + 1] - starts[t];
            const float step = static_cast<float>(documents) / length;
            for (int k = 0; k < length; k++) {
                const unsigned noise = hash(starts[t] + k);
                of[starts[t] + k] = std::min(static_cast<int>((k + (noise & 1023) / 1024.0f) * step), documents - 1);
                counts[starts[t] + k] = 1 + (noise >> 10 & 1) * (noise >> 11 & 3) + (noise >> 20) / 2048 * 4;
                if (k % 1024 == 0) pieces.push_back(make_int2(t, starts[t] + k));
            }
        }
        const Index index{b.copy(starts), b.copy(idf), b.copy(of), b.copy(counts), b.random<float>(documents, 0.2, 3.0), b.output<float>(count), terms};
        return {{"flawed", launch(score_terms, terms, 256, 0, index)}, {"pieces", launch(score_pieces, static_cast<unsigned>(pieces.size()), 256, 0, index, b.copy(pieces))},
            {"flat", launch(score_postings, blocks(count, 256), 256, 0, index, count)}};
    });

// --- numbers from their differences ---

constexpr int CHUNK = 1024;  // values between two that are stored whole

__device__ __forceinline__ int zigzag(unsigned code) { return static_cast<int>(code >> 1) ^ -static_cast<int>(code & 1); }

__global__ void __launch_bounds__(CHUNK) undelta(const unsigned short *__restrict__ codes, const int *__restrict__ bases, int *__restrict__ values) {
    __shared__ int sums[CHUNK];
    const int t = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * CHUNK + t;
    sums[t] = zigzag(codes[at]);
    __syncthreads();
    for (int reach = 1; reach < CHUNK; reach *= 2) {
        const int before = t >= reach ? sums[t - reach] : 0;
        __syncthreads();
        sums[t] += before;
        __syncthreads();
    }
    values[at] = bases[blockIdx.x] + sums[t];
}
__device__ __forceinline__ int warp_scan(int sum) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int reach = 1; reach < 32; reach *= 2) {
        const int before = __shfl_up_sync(~0u, sum, reach);
        if (lane >= reach) sum += before;
    }
    return sum;
}
// Each warp by shuffles, then all warps' sums by each warp.
__global__ void __launch_bounds__(CHUNK) undelta_warps(const unsigned short *__restrict__ codes, const int *__restrict__ bases, int *__restrict__ values) {
    __shared__ int totals[32];
    const int t = threadIdx.x, warp = t / 32;
    const size_t at = static_cast<size_t>(blockIdx.x) * CHUNK + t;
    const int sum = warp_scan(zigzag(codes[at]));
    if (t % 32 == 31) totals[warp] = sum;
    __syncthreads();
    const int through = warp_scan(totals[t % 32]);
    const int before = warp ? __shfl_sync(~0u, through, warp - 1) : 0;
    values[at] = bases[blockIdx.x] + before + sum;
}
// A chunk a warp, 128 values at a time.
__global__ void __launch_bounds__(256) undelta_rows(const ushort4 *__restrict__ codes, const int *__restrict__ bases, int4 *__restrict__ values) {
    const int chunk = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const ushort4 *from = codes + static_cast<size_t>(chunk) * (CHUNK / 4) + lane;
    int4 *to = values + static_cast<size_t>(chunk) * (CHUNK / 4) + lane;
    int carry = bases[chunk];
    ushort4 all[CHUNK / 128];
#pragma unroll
    for (int k = 0; k < CHUNK / 128; k++) all[k] = from[k * 32];
#pragma unroll
    for (int k = 0; k < CHUNK / 128; k++) {
        const int a = zigzag(all[k].x), b = a + zigzag(all[k].y), c = b + zigzag(all[k].z), d = c + zigzag(all[k].w);
        const int sum = warp_scan(d), before = carry + sum - d;
        to[k * 32] = make_int4(before + a, before + b, before + c, before + d);
        carry += __shfl_sync(~0u, sum, 31);
    }
}

Study deltas("deltas_added_step_by_step", "compression", 48 << 20, "50331648 numbers from their differences, in chunks of 1024",
    "a chunk is summed in ten steps through shared memory, with two barriers each",
    {{"warps", "each warp by shuffles, one barrier for their sums", {"barriers"}}, {"rows", "a chunk a warp, four values a lane", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned short> codes(n);
        for (long i = 0; i < n; i++) codes[i] = hash(i) % (i % 16 ? 40 : 900);
        const unsigned short *from = b.copy(codes);
        const int *bases = b.random<int>(n / CHUNK, 0, 1000000);
        int *out = b.output<int>(n);
        return {{"flawed", launch(undelta, n / CHUNK, CHUNK, 0, from, bases, out)}, {"warps", launch(undelta_warps, n / CHUNK, CHUNK, 0, from, bases, out)},
            {"rows", launch(undelta_rows, n / CHUNK / 8, 256, 0, reinterpret_cast<const ushort4 *>(from), bases, reinterpret_cast<int4 *>(out))}};
    });

// --- frames of speech ---

struct Frames {
    const short *samples;  // utterance by utterance
    const float *window;
    float *frames;
    long long total, utterance, count, width, hop;  // values in all; samples, frames of an utterance; samples of a frame, between frames
};
__device__ __forceinline__ float emphasised(const short *samples, int at) { return samples[at] - 0.97f * (at ? samples[at - 1] : 0); }

__global__ void cut_frames(Frames f) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= f.total) return;
    const long long frame = i / f.width, k = i % f.width;
    const long long utterance = frame / f.count, start = frame % f.count * f.hop;
    f.frames[i] = f.window[k] * emphasised(f.samples + utterance * f.utterance, static_cast<int>(start + k));
}
// A frame a block.
__global__ void cut_frames_grid(Frames f) {
    const int width = static_cast<int>(f.width), start = blockIdx.x * static_cast<int>(f.hop);
    const short *__restrict__ samples = f.samples + blockIdx.y * f.utterance;
    const float *__restrict__ window = f.window;
    float *__restrict__ to = f.frames + (static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x) * width;
#pragma unroll 4
    for (int k = threadIdx.x; k < width; k += blockDim.x) to[k] = window[k] * emphasised(samples, start + k);
}
struct Divisor {
    unsigned by, factor, shift;
    explicit Divisor(unsigned by) : by(by), shift(0) {
        while ((1u << shift) < by) shift++;
        factor = static_cast<unsigned>(((1ull << (31 + shift)) + by - 1) / by);
        shift -= 1;
    }
    __device__ unsigned of(unsigned x) const { return __umulhi(x, factor) >> shift; }
};
__global__ void cut_frames_factors(Frames f, Divisor width, Divisor count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= static_cast<unsigned>(f.total)) return;
    const unsigned frame = width.of(i), k = i - frame * width.by;
    const unsigned utterance = count.of(frame), start = (frame - utterance * count.by) * static_cast<unsigned>(f.hop);
    f.frames[i] = f.window[k] * emphasised(f.samples + utterance * static_cast<unsigned>(f.utterance), start + k);
}

Study speech("speech_frames_long_divisions", "speech", 128, "frames of 400 samples, 160 apart, of 128 utterances of ten seconds, emphasised and windowed",
    "each value finds its frame and utterance by divisions of 64 bits",
    {{"grid", "a block for each frame", {"integer_arithmetic"}}, {"factors", "32 bits, and products with factors made before", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const long long samples = 160000, width = 400, hop = 160, count = (samples - width) / hop + 1;
        std::vector<short> signal(n * samples);
        for (size_t i = 0; i < signal.size(); i++) signal[i] = static_cast<short>(hash(i) % 6000) - 3000;
        std::vector<float> window(width);
        for (int k = 0; k < width; k++) window[k] = 0.5f - 0.5f * std::cos(6.2831853f * k / width);
        const long long total = n * count * width;
        const Frames f{b.copy(signal), b.copy(window), b.output<float>(total), total, samples, count, width, hop};
        return {{"flawed", launch(cut_frames, blocks(total, 256), 256, 0, f)}, {"grid", launch(cut_frames_grid, dim3(count, n), 128, 0, f)},
            {"factors", launch(cut_frames_factors, blocks(total, 256), 256, 0, f, Divisor(width), Divisor(count))}};
    });

// --- the day's course of temperature ---

constexpr int HOURS = 24, MERIDIANS = 1440;

struct Climate {
    const float *temperatures;  // hour by hour, a map each
    float *means, *highs;       // a map for each hour of the sun
    int points, days;
};
// Hours by which the sun is ahead at a point.
__device__ __forceinline__ int ahead(int point) { return point % MERIDIANS * HOURS / MERIDIANS; }

__global__ void __launch_bounds__(128) day_course(Climate c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sums[HOURS], highs[HOURS];
    for (int h = 0; h < HOURS; h++) sums[h] = 0, highs[h] = -1e30f;
    int hour = ahead(i);
    for (int t = 0; t < c.days * HOURS; t++) {
        const float value = c.temperatures[static_cast<size_t>(t) * c.points + i];
        sums[hour] += value;
        highs[hour] = fmaxf(highs[hour], value);
        hour = hour == HOURS - 1 ? 0 : hour + 1;
    }
    for (int h = 0; h < HOURS; h++) {
        c.means[h * c.points + i] = sums[h] / c.days;
        c.highs[h * c.points + i] = highs[h];
    }
}
// An hour of all days after the other.
__global__ void __launch_bounds__(128) day_course_hours(Climate c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int hour = ahead(i);
    for (int t = 0; t < HOURS; t++) {
        const float *from = c.temperatures + static_cast<size_t>(t) * c.points + i;
        float sum = 0, high = -1e30f;
#pragma unroll 5
        for (int day = 0; day < c.days; day++) {
            const float value = from[static_cast<size_t>(day) * HOURS * c.points];
            sum += value, high = fmaxf(high, value);
        }
        c.means[hour * c.points + i] = sum / c.days;
        c.highs[hour * c.points + i] = high;
        hour = hour == HOURS - 1 ? 0 : hour + 1;
    }
}
// By the hours of the clock, which are the same for all, in registers.
__global__ void __launch_bounds__(128) day_course_clock(Climate c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, offset = ahead(i);
    float sums[HOURS] = {}, highs[HOURS];
#pragma unroll
    for (int h = 0; h < HOURS; h++) highs[h] = -1e30f;
    const float *from = c.temperatures + i;
    for (int day = 0; day < c.days; day++)
#pragma unroll
        for (int h = 0; h < HOURS; h++, from += c.points) sums[h] += *from, highs[h] = fmaxf(highs[h], *from);
#pragma unroll
    for (int h = 0; h < HOURS; h++) {
        const int hour = h + offset < HOURS ? h + offset : h + offset - HOURS;
        c.means[hour * c.points + i] = sums[h] / c.days;
        c.highs[hour * c.points + i] = highs[h];
    }
}

Study days("climate_sums_by_the_sun_s_hour", "climate", 180, "mean and highest temperature of each hour of the sun at 180 x 1440 points in ten days",
    "a thread's sums are an array with an index known at run time only",
    {{"hours", "one hour of all days after the other, with one sum", {"local_memory"}}, {"clock", "sums by the hours of the clock in registers, ordered by the sun at the end", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int points = static_cast<int>(n) * MERIDIANS, days = 10;
        const Climate c{b.random<float>(static_cast<size_t>(points) * HOURS * days, -20, 35), b.output<float>(points * HOURS), b.output<float>(points * HOURS), points, days};
        return {{"flawed", launch(day_course, points / 128, 128, 0, c)}, {"hours", launch(day_course_hours, points / 128, 128, 0, c)},
            {"clock", launch(day_course_clock, points / 128, 128, 0, c)}};
    });

// --- damage of a raid ---

constexpr int UNITS = 4096, BOSSES = 8;  // the bosses are the first units

struct Hit {
    int unit, damage;
};
__global__ void add_damage(const Hit *__restrict__ hits, int *__restrict__ damage, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const Hit hit = hits[i];
        atomicAdd(&damage[hit.unit], hit.damage);
    }
}
__global__ void __launch_bounds__(1024) add_damage_blocks(const Hit *__restrict__ hits, int *__restrict__ damage, int count) {
    __shared__ int own[UNITS];
    for (int u = threadIdx.x; u < UNITS; u += blockDim.x) own[u] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const Hit hit = hits[i];
        atomicAdd(&own[hit.unit], hit.damage);
    }
    __syncthreads();
    for (int u = threadIdx.x; u < UNITS; u += blockDim.x)
        if (own[u]) atomicAdd(&damage[u], own[u]);
}
// What the bosses take is summed in registers.
__global__ void add_damage_bosses(const Hit *__restrict__ hits, int *__restrict__ damage, int count) {
    int bosses[BOSSES] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const Hit hit = hits[i];
#pragma unroll
        for (int k = 0; k < BOSSES; k++) bosses[k] += hit.unit == k ? hit.damage : 0;
        if (hit.unit >= BOSSES) atomicAdd(&damage[hit.unit], hit.damage);
    }
#pragma unroll
    for (int k = 0; k < BOSSES; k++) {
        const int sum = __reduce_add_sync(~0u, bosses[k]);
        if (threadIdx.x % 32 == 0 && sum) atomicAdd(&damage[k], sum);
    }
}

Study raid("raid_damage_all_at_the_bosses", "games", 8 << 20, "damage that 4096 units take by 8388608 hits, of which most hit eight bosses",
    "each hit is added to its unit in global memory",
    {{"blocks", "each block's units in shared memory first", {"global_atomics"}}, {"bosses", "bosses summed in registers and warps, the few others as before", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Hit> hits(n);
        for (long i = 0; i < n; i++) {
            const unsigned h = hash(i);
            hits[i] = {static_cast<int>(h % 100 < 60 ? (h >> 8) % BOSSES : (h >> 8) % UNITS), static_cast<int>(1 + (h >> 24))};
        }
        const Hit *from = b.copy(hits);
        int *out = b.output<int>(UNITS, true);
        const int count = static_cast<int>(n), wide = multiprocessors();
        return {{"flawed", launch(add_damage, 8 * wide, 256, 0, from, out, count)}, {"blocks", launch(add_damage_blocks, 2 * wide, 1024, 0, from, out, count)},
            {"bosses", launch(add_damage_bosses, 8 * wide, 256, 0, from, out, count)}};
    });

// --- which point of a model is nearest ---

constexpr int CLOUD = 256;  // points of the model at a time

struct Nearest {
    float distance = 3e38f;
    int index = 0;
    __device__ __forceinline__ void see(float3 p, float4 q, int i) {
        const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
        const float d = fmaf(dx, dx, fmaf(dy, dy, dz * dz));
        if (d < distance) distance = d, index = i;
    }
    __device__ __forceinline__ void join(float d, int i) {
        if (d < distance || (d == distance && i < index)) distance = d, index = i;
    }
};
struct Pairing {
    const float *x, *y, *z;  // of what the sensor sees
    const float4 *model;
    float *distances;
    int *indices;
    int seen, count;
    __device__ float3 point(int i) const { return make_float3(x[i], y[i], z[i]); }
    __device__ void write(int i, const Nearest &n) const { distances[i] = n.distance, indices[i] = n.index; }
};
__global__ void __launch_bounds__(CLOUD) pair_points(Pairing p) {
    __shared__ float4 tile[CLOUD];
    const int i = blockIdx.x * CLOUD + threadIdx.x;
    const float3 own = p.point(i);
    Nearest nearest;
    for (int first = 0; first < p.count; first += CLOUD) {
        __syncthreads();
        tile[threadIdx.x] = p.model[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < CLOUD; k++) nearest.see(own, tile[k], first + k);
    }
    p.write(i, nearest);
}
// 32 points a block; each warp compares them with its eighth of the model.
__global__ void __launch_bounds__(CLOUD) pair_points_warps(Pairing p) {
    __shared__ float4 tile[CLOUD];
    __shared__ float distances[8][32];
    __shared__ int indices[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * 32 + lane;
    const float3 own = p.point(i);
    Nearest nearest;
    for (int first = 0; first < p.count; first += CLOUD) {
        __syncthreads();
        tile[threadIdx.x] = p.model[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 32; k++) nearest.see(own, tile[warp * 32 + k], first + warp * 32 + k);
    }
    distances[warp][lane] = nearest.distance, indices[warp][lane] = nearest.index;
    __syncthreads();
    if (warp) return;
    for (int w = 1; w < 8; w++) nearest.join(distances[w][lane], indices[w][lane]);
    p.write(i, nearest);
}
// Eight lanes a point.
__global__ void __launch_bounds__(CLOUD) pair_points_lanes(Pairing p) {
    __shared__ float4 tile[CLOUD];
    const int part = threadIdx.x % 8, i = (blockIdx.x * CLOUD + threadIdx.x) / 8;
    const float3 own = p.point(i);
    Nearest nearest;
    for (int first = 0; first < p.count; first += CLOUD) {
        __syncthreads();
        tile[threadIdx.x] = p.model[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = part; k < CLOUD; k += 8) nearest.see(own, tile[k], first + k);
    }
#pragma unroll
    for (int reach = 4; reach; reach /= 2) {
        const float d = __shfl_xor_sync(~0u, nearest.distance, reach);
        const int at = __shfl_xor_sync(~0u, nearest.index, reach);
        nearest.join(d, at);
    }
    if (part == 0) p.write(i, nearest);
}

Study registration("registration_32_blocks_of_points", "robotics", 8192, "which of a model's 16384 points is nearest to each of 8192 that a sensor sees",
    "a thread for each point, in blocks for a quarter of the multiprocessors only",
    {{"warps", "each warp of a block takes an eighth of the model", {"small_grid"}}, {"lanes", "eight lanes for each point", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = static_cast<int>(2 * n);
        std::vector<float4> model(count);
        for (int i = 0; i < count; i++) model[i] = make_float4(8 * chance(5 * i), 8 * chance(5 * i + 1), 0.5f * chance(5 * i + 2), 0);
        const float *x = b.random<float>(n, 0, 8), *y = b.random<float>(n, 0, 8), *z = b.random<float>(n, 0, 0.6);
        const Pairing p{x, y, z, b.copy(model), b.output<float>(n), b.output<int>(n), static_cast<int>(n), count};
        return {{"flawed", launch(pair_points, n / CLOUD, CLOUD, 0, p)}, {"warps", launch(pair_points_warps, n / 32, CLOUD, 0, p)},
            {"lanes", launch(pair_points_lanes, n / 32, CLOUD, 0, p)}};
    });

// --- how alike molecules are ---

constexpr int WORDS = 32, MOLECULES = 128;  // words of a fingerprint; molecules of a block

__device__ __forceinline__ float alike(int common, int bits, int query) { return __fdividef(common, bits + query - common); }

// queries: a word of each of the four; bits: set in each of them.
template <int WIDTH, bool TURNED>
__global__ void __launch_bounds__(MOLECULES) screen(const unsigned *__restrict__ prints, const uint4 *__restrict__ queries, int4 bits, float *__restrict__ best) {
    __shared__ unsigned tile[WORDS][WIDTH];
    __shared__ uint4 wanted[WORDS];
    const int t = threadIdx.x;
    const unsigned *from = prints + static_cast<size_t>(blockIdx.x) * MOLECULES * WORDS;
#pragma unroll 8
    for (int k = t; k < MOLECULES * WORDS; k += MOLECULES) {
        const int row = k / WORDS, word = k % WORDS;
        tile[word][TURNED ? row ^ word : row] = from[k];
    }
    if (t < WORDS) wanted[t] = queries[t];
    __syncthreads();
    int own = 0, common[4] = {};
#pragma unroll 8
    for (int k = 0; k < WORDS; k++) {
        const unsigned word = tile[k][TURNED ? t ^ k : t];
        const uint4 query = wanted[k];
        own += __popc(word);
        common[0] += __popc(word & query.x), common[1] += __popc(word & query.y);
        common[2] += __popc(word & query.z), common[3] += __popc(word & query.w);
    }
    const float a = fmaxf(alike(common[0], own, bits.x), alike(common[1], own, bits.y));
    const float b = fmaxf(alike(common[2], own, bits.z), alike(common[3], own, bits.w));
    best[blockIdx.x * MOLECULES + t] = fmaxf(a, b);
}

Study screening("screening_fingerprints_turned_in_a_tile", "chemistry", 2 << 20, "the best likeness of 2097152 molecules to four others, by fingerprints of 1024 bits",
    "a warp writes the words of a fingerprint to a column of a tile whose rows are 128 words long",
    {{"padded", "rows of 129 words", {"shared_bank_conflicts"}}, {"turned", "molecules of a row in an order that changes from row to row", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> prints(n * WORDS);
        for (size_t i = 0; i < prints.size(); i++) {
            const unsigned h = hash(i);
            prints[i] = h & h << 7 & h >> 9;
        }
        std::vector<uint4> queries(WORDS);
        int bits[4] = {};
        for (int k = 0; k < WORDS; k++) {
            unsigned words[4];
            for (int q = 0; q < 4; q++) words[q] = prints[(q + 1) * n / 5 * WORDS + k] | prints[(q + 2) * WORDS + k], bits[q] += __builtin_popcount(words[q]);
            queries[k] = make_uint4(words[0], words[1], words[2], words[3]);
        }
        const unsigned *from = b.copy(prints);
        const uint4 *wanted = b.copy(queries);
        float *out = b.output<float>(n);
        const auto side = [&](auto kernel) { return launch(kernel, n / MOLECULES, MOLECULES, 0, from, wanted, make_int4(bits[0], bits[1], bits[2], bits[3]), out); };
        return {{"flawed", side(screen<MOLECULES, false>)}, {"padded", side(screen<MOLECULES + 1, false>)}, {"turned", side(screen<MOLECULES, true>)}};
    });

// --- qualities of bases, calibrated ---

constexpr int QUALITIES = 64, CYCLES = 128, CALIBRATION = 2 * QUALITIES * CYCLES;

// A read a warp, four bases a lane. table: by strand, quality, and the base's place in its lane and lane.
template <typename Entry>
__global__ void recalibrate(const uchar4 *__restrict__ reads, const unsigned char *__restrict__ strands, const Entry *__restrict__ table, uchar4 *__restrict__ out, int count) {
    extern __shared__ __align__(16) float memory[];
    Entry *own = reinterpret_cast<Entry *>(memory);
    const float4 *from = reinterpret_cast<const float4 *>(table);
    for (int k = threadIdx.x; k < CALIBRATION * static_cast<int>(sizeof(Entry)) / 16; k += blockDim.x) reinterpret_cast<float4 *>(memory)[k] = from[k];
    __syncthreads();
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int read = blockIdx.x * warps + threadIdx.x / 32; read < count; read += gridDim.x * warps) {
        const uchar4 old = reads[static_cast<size_t>(read) * 32 + lane];
        const Entry *row = own + strands[read] * QUALITIES * CYCLES + lane;
        const float a = row[old.x * CYCLES], b = row[old.y * CYCLES + 32], c = row[old.z * CYCLES + 64], d = row[old.w * CYCLES + 96];
        out[static_cast<size_t>(read) * 32 + lane] = make_uchar4(static_cast<int>(a), static_cast<int>(b), static_cast<int>(c), static_cast<int>(d));
    }
}

Study sequencer("reads_recalibrated_few_warps_a_table", "bioinformatics", 1 << 20, "new qualities of the 128 bases of 1048576 reads, from a table by strand, quality and cycle",
    "blocks of 128 threads, each with a table of 64 KiB in shared memory",
    {{"large", "blocks of 1024 threads, which share a table", {"low_occupancy"}}, {"bytes", "a table of bytes, 16 KiB", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> table(CALIBRATION);
        std::vector<unsigned char> bytes(CALIBRATION), strands(n), reads(n * CYCLES);
        for (int i = 0; i < CALIBRATION; i++) {
            const int quality = i / CYCLES % QUALITIES;
            bytes[i] = static_cast<unsigned char>(std::max(2, quality - static_cast<int>(hash(i) % 5)));
            table[i] = bytes[i];
        }
        const unsigned char binned[] = {37, 37, 37, 37, 37, 23, 12, 2};
        for (long i = 0; i < n; i++) strands[i] = hash(i) & 1;
        for (size_t i = 0; i < reads.size(); i++) reads[i] = binned[hash(i) >> 29];
        const uchar4 *from = reinterpret_cast<const uchar4 *>(b.copy(reads));
        const unsigned char *sides = b.copy(strands), *small = b.copy(bytes);
        const float *whole = b.copy(table);
        uchar4 *out = reinterpret_cast<uchar4 *>(b.output<unsigned char>(n * CYCLES));
        const int count = static_cast<int>(n), wide = multiprocessors();
        return {{"flawed", launch(recalibrate<float>, 3 * wide, 128, CALIBRATION * 4, from, sides, whole, out, count)},
            {"large", launch(recalibrate<float>, 2 * wide, 1024, CALIBRATION * 4, from, sides, whole, out, count)},
            {"bytes", launch(recalibrate<unsigned char>, 12 * wide, 128, CALIBRATION, from, sides, small, out, count)}};
    });

// --- genotypes counted ---

constexpr unsigned EVEN = 0x55555555u;

// Two bits a person: how many copies, 3: unknown. A variant a block.
template <int ROUNDS>
__global__ void __launch_bounds__(256) count_genotypes(const uint4 *__restrict__ genotypes, int *__restrict__ counts) {
    __shared__ int sums[3];
    if (threadIdx.x < 3) sums[threadIdx.x] = 0;
    __syncthreads();
    const uint4 *row = genotypes + static_cast<size_t>(blockIdx.x) * ROUNDS * 256 + threadIdx.x;
    uint4 all[ROUNDS];
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) all[k] = row[k * 256];
    int low = 0, high = 0, both = 0;
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) {
        const unsigned words[] = {all[k].x, all[k].y, all[k].z, all[k].w};
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            const unsigned lows = (words[j] & EVEN) | (words[j + 1] & EVEN) << 1, highs = (words[j] >> 1 & EVEN) | (words[j + 1] & ~EVEN);
            low += __popc(lows), high += __popc(highs), both += __popc(lows & highs);
        }
    }
    low = __reduce_add_sync(~0u, low), high = __reduce_add_sync(~0u, high), both = __reduce_add_sync(~0u, both);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], low - both), atomicAdd(&sums[1], high - both), atomicAdd(&sums[2], both);
    __syncthreads();
    if (threadIdx.x < 3) counts[blockIdx.x * 3 + threadIdx.x] = sums[threadIdx.x];
}

Study genotypes("sound_genotypes_counted", "bioinformatics", 16384, "how many of 65536 people have one copy, two, or an unknown number of each of 16384 variants", "", {}, [](Buffers &b, long n) -> Sides {
    const unsigned *from = b.random<unsigned>(n * 4096, 0, 4294967295.0);
    return {{"sound", launch(count_genotypes<4>, n, 256, 0, reinterpret_cast<const uint4 *>(from), b.output<int>(3 * n))}};
});

// --- potential temperature ---

__device__ __forceinline__ float potential(float temperature, float pressure) { return temperature * exp2f(0.2857f * (9.9657843f - __log2f(pressure))); }

__global__ void __launch_bounds__(256) potentials(const float4 *__restrict__ temperatures, const float4 *__restrict__ pressures, float4 *__restrict__ out) {
    const int first = blockIdx.x * 512 + threadIdx.x;
    const float4 t[] = {temperatures[first], temperatures[first + 256]}, p[] = {pressures[first], pressures[first + 256]};
#pragma unroll
    for (int k = 0; k < 2; k++)
        out[first + 256 * k] = make_float4(potential(t[k].x, p[k].x), potential(t[k].y, p[k].y), potential(t[k].z, p[k].z), potential(t[k].w, p[k].w));
}

Study air("sound_potential_temperatures", "climate", 32 << 20, "potential temperature of 33554432 parcels of air, from temperature in kelvin and pressure in hectopascals", "", {}, [](Buffers &b, long n) -> Sides {
    const float *t = b.random<float>(n, 190, 310), *p = b.random<float>(n, 50, 1050);
    return {{"sound", launch(potentials, n / 2048, 256, 0, reinterpret_cast<const float4 *>(t), reinterpret_cast<const float4 *>(p), reinterpret_cast<float4 *>(b.output<float>(n)))}};
});

}  // namespace
