// Crystals, galaxies, weather, polymers, multipoles, antennas, species and winds.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- plastic work of crystal grains on twelve slip systems ---

constexpr int SLIPS = 12;

// The twentieth power of a stress over its resistance, times the stress.
__device__ __forceinline__ float slip_work(float stress, float inverse_resistance) {
    const float size = fabsf(stress), r = size * inverse_resistance, r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    return size * r8 * r8 * r4;
}
__global__ void __launch_bounds__(256) slip_rates(const float *__restrict__ stresses, const float *__restrict__ resistances, float *__restrict__ out, int grains) {
    const int grain = blockIdx.x * 256 + threadIdx.x;
    if (grain >= grains) return;
    const float inverse = 1.0f / resistances[grain];
    float work = 0.0f;
    for (int s = 0; s < SLIPS; s++) work += slip_work(stresses[static_cast<size_t>(grain) * SLIPS + s], inverse);
    out[grain] = work;
}
__global__ void __launch_bounds__(256) slip_rates_vectors(const float4 *__restrict__ stresses, const float *__restrict__ resistances, float *__restrict__ out, int grains) {
    const int grain = blockIdx.x * 256 + threadIdx.x;
    if (grain >= grains) return;
    const float inverse = 1.0f / resistances[grain];
    float work = 0.0f;
#pragma unroll
    for (int s = 0; s < SLIPS / 4; s++) {
        const float4 four = stresses[static_cast<size_t>(grain) * (SLIPS / 4) + s];
        work += slip_work(four.x, inverse) + slip_work(four.y, inverse) + slip_work(four.z, inverse) + slip_work(four.w, inverse);
    }
    out[grain] = work;
}
// The block's records come through shared memory as one piece.
__global__ void __launch_bounds__(256) slip_rates_staged(const float4 *__restrict__ stresses, const float *__restrict__ resistances, float *__restrict__ out, int grains) {
    __shared__ float4 staged[256 * SLIPS / 4];
    const int grain = blockIdx.x * 256 + threadIdx.x, t = threadIdx.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * 256 * (SLIPS / 4), end = static_cast<size_t>(grains) * (SLIPS / 4);
#pragma unroll
    for (int k = 0; k < SLIPS / 4; k++)
        if (first + k * 256 + t < end) staged[k * 256 + t] = stresses[first + k * 256 + t];
    __syncthreads();
    if (grain >= grains) return;
    const float inverse = 1.0f / resistances[grain];
    float work = 0.0f;
#pragma unroll
    for (int s = 0; s < SLIPS / 4; s++) {
        const float4 four = staged[t * (SLIPS / 4) + s];
        work += slip_work(four.x, inverse) + slip_work(four.y, inverse) + slip_work(four.z, inverse) + slip_work(four.w, inverse);
    }
    out[grain] = work;
}

Study slips("slip_work_of_a_grain_in_twelve_loads", "materials", 1 << 21, "plastic work on twelve slip systems of 2097152 grains",
    "a thread walks along its grain's record: lanes are 48 bytes apart in each of twelve loads",
    {{"vectors", "three vectors of four a record", {"narrow_access", "uncoalesced_access"}}, {"staged", "records of the block in one piece through shared memory", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *stresses = b.random<float>(n * SLIPS), *resistances = b.random<float>(n, 0.8, 1.4);
        const float4 *fours = reinterpret_cast<const float4 *>(stresses);
        float *out = b.output<float>(n);
        return {{"flawed", launch(slip_rates, blocks(n, 256), 256, 0, stresses, resistances, out, n)}, {"vectors", launch(slip_rates_vectors, blocks(n, 256), 256, 0, fours, resistances, out, n)},
            {"staged", launch(slip_rates_staged, blocks(n, 256), 256, 0, fours, resistances, out, n)}};
    });

// --- a picture of galaxies, whose light falls with the fourth root of the distance ---

constexpr int GALAXIES = 24;

struct Galaxy {
    float x, y, cosine, sine, flat, inverse_radius, light;
};
struct ByPower {
    __device__ static float light(float r2, float inverse_radius) { return expf(-7.669f * (powf(sqrtf(r2) * inverse_radius, 0.25f) - 1.0f)); }
};
struct ByRoots {
    __device__ static float light(float r2, float inverse_radius) { return expf(-7.669f * (sqrtf(sqrtf(sqrtf(r2) * inverse_radius)) - 1.0f)); }
};
// With powers of two that the special function unit has.
struct ByTwos {
    __device__ static float light(float r2, float inverse_radius) {
        const float root = exp2f(0.125f * __log2f(r2 * inverse_radius * inverse_radius));
        return __expf(-7.669f * (root - 1.0f));
    }
};
template <typename Profile>
__global__ void __launch_bounds__(256) galaxy_picture(const Galaxy *__restrict__ galaxies, float *__restrict__ out, int width) {
    __shared__ Galaxy own[GALAXIES];
    const int tile = blockIdx.y * gridDim.x + blockIdx.x, t = threadIdx.y * 16 + threadIdx.x;
    if (t < GALAXIES) own[t] = galaxies[tile * GALAXIES + t];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < GALAXIES; k++) {
        const float dx = threadIdx.x - own[k].x, dy = threadIdx.y - own[k].y;
        const float along = dx * own[k].cosine + dy * own[k].sine, across = (dy * own[k].cosine - dx * own[k].sine) * own[k].flat;
        sum += own[k].light * Profile::light(along * along + across * across, own[k].inverse_radius);
    }
    out[(blockIdx.y * 16 + threadIdx.y) * width + blockIdx.x * 16 + threadIdx.x] = sum;
}

Study galaxies("galaxy_light_a_power_for_each_pixel", "astronomy", 2048, "a picture of 2048 x 2048 pixels, 24 galaxies for each tile of 16 x 16",
    "a general power and a precise exponential for each pixel and galaxy, where a fourth root is wanted",
    {{"roots", "the fourth root by square roots", {"expensive_math"}}, {"twos", "powers of two and the fast exponential", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const long tiles = n / 16 * (n / 16);
        std::vector<Galaxy> list(tiles * GALAXIES);
        const auto unit = [](unsigned k) { return (hash(k) >> 8) / 16777216.0f; };
        for (unsigned i = 0; i < list.size(); i++) {
            const float turn = unit(i * 5) * 3.1f;
            list[i] = {unit(i * 5 + 1) * 40 - 12, unit(i * 5 + 2) * 40 - 12, cosf(turn), sinf(turn), 1.0f + unit(i * 5 + 3), 0.1f + 0.3f * unit(i * 5 + 4), 1.0f};
        }
        const Galaxy *in = b.copy(list);
        float *out = b.output<float>(n * n);
        b.tolerance = 1e-3;
        const dim3 grid(n / 16, n / 16), block(16, 16);
        return {{"flawed", launch(galaxy_picture<ByPower>, grid, block, 0, in, out, n)}, {"roots", launch(galaxy_picture<ByRoots>, grid, block, 0, in, out, n)}, {"twos", launch(galaxy_picture<ByTwos>, grid, block, 0, in, out, n)}};
    });

// --- how cold a wind feels ---

__global__ void __launch_bounds__(256) wind_chill(const float *__restrict__ degrees, const float *__restrict__ winds, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    out[i] = 13.12 + 0.6215 * degrees[i] - 11.37 * pow(winds[i], 0.16) + 0.3965 * degrees[i] * pow(winds[i], 0.16);
}
__global__ void __launch_bounds__(256) wind_chill_floats(const float *__restrict__ degrees, const float *__restrict__ winds, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float power = powf(winds[i], 0.16f);
    out[i] = 13.12f + 0.6215f * degrees[i] - 11.37f * power + 0.3965f * degrees[i] * power;
}
__global__ void __launch_bounds__(256) wind_chill_fours(const float4 *__restrict__ degrees, const float4 *__restrict__ winds, float4 *__restrict__ out, int fours) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= fours) return;
    const float4 degree = degrees[i], wind = winds[i];
    const auto chill = [](float d, float w) {
        const float power = exp2f(0.16f * __log2f(w));
        return 13.12f + 0.6215f * d - power * (11.37f - 0.3965f * d);
    };
    out[i] = make_float4(chill(degree.x, wind.x), chill(degree.y, wind.y), chill(degree.z, wind.z), chill(degree.w, wind.w));
}

Study chill("wind_chill_with_literals_in_double", "weather", 1 << 24, "how cold the wind feels in 16777216 cells",
    "literals without a suffix: the whole formula, its power above all, is worked out in double precision",
    {{"floats", "literals and power in single precision", {"double_precision"}}, {"fours", "four cells a thread, the power by the fast logarithm", {"double_precision", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *degrees = b.random<float>(n, -30.0, 10.0), *winds = b.random<float>(n, 5.0, 90.0);
        float *out = b.output<float>(n);
        const auto four = [](const float *p) { return reinterpret_cast<const float4 *>(p); };
        return {{"flawed", launch(wind_chill, blocks(n, 256), 256, 0, degrees, winds, out, n)}, {"floats", launch(wind_chill_floats, blocks(n, 256), 256, 0, degrees, winds, out, n)},
            {"fours", launch(wind_chill_fours, blocks(n / 4, 256), 256, 0, four(degrees), four(winds), reinterpret_cast<float4 *>(out), n / 4)}};
    });

// --- centres of polymer chains ---

__global__ void __launch_bounds__(256) chain_sums(const float4 *__restrict__ beads, const int *__restrict__ chains, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 bead = beads[i];
    float *own = out + chains[i] * 4;
    atomicAdd(own, bead.x * bead.w);
    atomicAdd(own + 1, bead.y * bead.w);
    atomicAdd(own + 2, bead.z * bead.w);
    atomicAdd(own + 3, bead.w);
}
// Beads of a chain follow one another: runs of lanes are added up first.
__global__ void __launch_bounds__(256) chain_sums_runs(const float4 *__restrict__ beads, const int *__restrict__ chains, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const float4 bead = i < count ? beads[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int chain = i < count ? chains[i] : -1;
    float x = bead.x * bead.w, y = bead.y * bead.w, z = bead.z * bead.w, mass = bead.w;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const float ox = __shfl_down_sync(~0u, x, offset), oy = __shfl_down_sync(~0u, y, offset), oz = __shfl_down_sync(~0u, z, offset), om = __shfl_down_sync(~0u, mass, offset);
        const int other = __shfl_down_sync(~0u, chain, offset);
        if (lane + offset < 32 && other == chain) x += ox, y += oy, z += oz, mass += om;
    }
    const int before = __shfl_up_sync(~0u, chain, 1);
    if (chain >= 0 && (lane == 0 || before != chain)) {
        atomicAdd(out + chain * 4, x);
        atomicAdd(out + chain * 4 + 1, y);
        atomicAdd(out + chain * 4 + 2, z);
        atomicAdd(out + chain * 4 + 3, mass);
    }
}
__global__ void __launch_bounds__(256) chain_sums_warps(const float4 *__restrict__ beads, const int *__restrict__ starts, float4 *__restrict__ out, int chains) {
    const int chain = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (chain >= chains) return;
    float x = 0.0f, y = 0.0f, z = 0.0f, mass = 0.0f;
    for (int i = starts[chain] + lane; i < starts[chain + 1]; i += 32) {
        const float4 bead = beads[i];
        x += bead.x * bead.w, y += bead.y * bead.w, z += bead.z * bead.w, mass += bead.w;
    }
    x = warp_sum(x), y = warp_sum(y), z = warp_sum(z), mass = warp_sum(mass);
    if (lane == 0) out[chain] = make_float4(x, y, z, mass);
}

Study polymers("chain_centres_four_atomics_a_bead", "molecules", 65536, "sums of mass and place of 65536 chains of 40 to 87 beads each",
    "four atomic additions for each bead, though the beads of a chain follow one another",
    {{"runs", "runs of lanes added up by shuffles first", {"global_atomics"}}, {"warps", "a warp a chain, which stores its sums", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(1, 0), chains;
        for (int chain = 0; chain < n; chain++) {
            chains.insert(chains.end(), 40 + hash(chain) % 48, chain);
            starts.push_back(static_cast<int>(chains.size()));
        }
        const long count = static_cast<long>(chains.size());
        const int *of = b.copy(chains), *from = b.copy(starts);
        const float4 *beads = reinterpret_cast<const float4 *>(b.random<float>(count * 4, 0.1, 1.0));
        float *out = b.output<float>(n * 4, true);
        return {{"flawed", launch(chain_sums, blocks(count, 256), 256, 0, beads, of, out, count)}, {"runs", launch(chain_sums_runs, blocks(count, 256), 256, 0, beads, of, out, count)},
            {"warps", launch(chain_sums_warps, blocks(n, 8), 256, 0, beads, from, reinterpret_cast<float4 *>(out), n)}};
    });

// --- potentials of charges, dipoles and quadrupoles within cells ---

constexpr int SITES = 64;

struct Multipole {
    float x, y, z, charge, dx, dy, dz, xx, yy, zz, xy, xz, yz, spare[3];
};
__device__ __forceinline__ float potential(float rx, float ry, float rz, float charge, float dx, float dy, float dz, float xx, float yy, float zz, float xy, float xz, float yz) {
    const float r2 = rx * rx + ry * ry + rz * rz + 1e-3f, inverse = rsqrtf(r2), inverse2 = inverse * inverse;
    const float dipole = dx * rx + dy * ry + dz * rz;
    const float quadrupole = xx * rx * rx + yy * ry * ry + zz * rz * rz + 2.0f * (xy * rx * ry + xz * rx * rz + yz * ry * rz);
    return inverse * (charge + inverse2 * (dipole + inverse2 * quadrupole));
}
__global__ void __launch_bounds__(SITES) cell_potentials(const Multipole *__restrict__ sites, float *__restrict__ out) {
    __shared__ Multipole cell[SITES];
    const int t = threadIdx.x, own = blockIdx.x * SITES + t;
    cell[t] = sites[own];
    __syncthreads();
    const float x = cell[t].x, y = cell[t].y, z = cell[t].z;
    float sum = 0.0f;
    for (int j = 1; j < SITES; j++) {
        const Multipole &m = cell[(t + j) % SITES];
        sum += potential(x - m.x, y - m.y, z - m.z, m.charge, m.dx, m.dy, m.dz, m.xx, m.yy, m.zz, m.xy, m.xz, m.yz);
    }
    out[own] = sum;
}
// Each component in a plane of its own: neighbouring lanes take neighbouring words.
__global__ void __launch_bounds__(SITES) cell_potentials_planes(const float *__restrict__ sites, float *__restrict__ out) {
    __shared__ float cell[16][SITES + 1];
    const int t = threadIdx.x;
    for (int k = t; k < SITES * 16; k += SITES) cell[k % 16][k / 16] = sites[blockIdx.x * SITES * 16 + k];
    __syncthreads();
    const float x = cell[0][t], y = cell[1][t], z = cell[2][t];
    float sum = 0.0f;
    for (int j = 1; j < SITES; j++) {
        const int k = (t + j) % SITES;
        sum += potential(x - cell[0][k], y - cell[1][k], z - cell[2][k], cell[3][k], cell[4][k], cell[5][k], cell[6][k], cell[7][k], cell[8][k], cell[9][k], cell[10][k], cell[11][k], cell[12][k]);
    }
    out[blockIdx.x * SITES + t] = sum;
}
// All lanes take the same record.
__global__ void __launch_bounds__(SITES) cell_potentials_together(const Multipole *__restrict__ sites, float *__restrict__ out) {
    __shared__ Multipole cell[SITES];
    const int t = threadIdx.x, own = blockIdx.x * SITES + t;
    cell[t] = sites[own];
    __syncthreads();
    const float x = cell[t].x, y = cell[t].y, z = cell[t].z;
    float sum = 0.0f;
    for (int j = 0; j < SITES; j++) {
        const Multipole &m = cell[j];
        const float one = potential(x - m.x, y - m.y, z - m.z, m.charge, m.dx, m.dy, m.dz, m.xx, m.yy, m.zz, m.xy, m.xz, m.yz);
        sum += j == t ? 0.0f : one;
    }
    out[own] = sum;
}

Study multipoles("multipoles_of_a_cell_sixteen_words_apart", "molecular dynamics", 16384, "potentials of 64 charges, dipoles and quadrupoles on one another in 16384 cells",
    "each lane takes another record of sixteen words from shared memory: their words lie in two banks",
    {{"planes", "a plane for each component", {"shared_bank_conflicts"}}, {"together", "all lanes take the same record", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *words = b.random<float>(n * SITES * 16);
        const Multipole *sites = reinterpret_cast<const Multipole *>(words);
        float *out = b.output<float>(n * SITES);
        b.tolerance = 1e-3;
        return {{"flawed", launch(cell_potentials, n, SITES, 0, sites, out)}, {"planes", launch(cell_potentials_planes, n, SITES, 0, words, out)}, {"together", launch(cell_potentials_together, n, SITES, 0, sites, out)}};
    });

// --- the field of an antenna's elements in many directions ---

constexpr int ELEMENTS = 512;

__device__ __forceinline__ void element_field(float4 element, float2 direction, float &re, float &im) {
    float sine, cosine;
    __sincosf(element.x * direction.x + element.y * direction.y + element.z, &sine, &cosine);
    re += element.w * cosine, im += element.w * sine;
}
template <int THREADS>
__global__ void __launch_bounds__(THREADS) antenna_pattern(const float4 *__restrict__ elements, const float2 *__restrict__ directions, float *__restrict__ out, int count) {
    __shared__ float4 own[ELEMENTS];
    for (int k = threadIdx.x; k < ELEMENTS; k += THREADS) own[k] = elements[k];
    __syncthreads();
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float2 direction = directions[i];
    float re = 0.0f, im = 0.0f;
#pragma unroll 4
    for (int k = 0; k < ELEMENTS; k++) element_field(own[k], direction, re, im);
    out[i] = re * re + im * im;
}
// Blocks for all multiprocessors at once, two directions a thread.
__global__ void __launch_bounds__(544) antenna_pattern_even(const float4 *__restrict__ elements, const float2 *__restrict__ directions, float *__restrict__ out, int count) {
    __shared__ float4 own[ELEMENTS];
    if (threadIdx.x < ELEMENTS) own[threadIdx.x] = elements[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * 1088 + threadIdx.x, j = i + 544;
    const float2 first = directions[min(i, count - 1)], second = directions[min(j, count - 1)];
    float re = 0.0f, im = 0.0f, re2 = 0.0f, im2 = 0.0f;
#pragma unroll 4
    for (int k = 0; k < ELEMENTS; k++) {
        const float4 element = own[k];
        element_field(element, first, re, im), element_field(element, second, re2, im2);
    }
    if (i < count) out[i] = re * re + im * im;
    if (j < count) out[j] = re2 * re2 + im2 * im2;
}

Study antenna("antenna_pattern_280_blocks_of_1024", "radio", 280 * 1024, "the field of 512 elements in 286720 directions",
    "280 blocks of 1024 threads where 264 are there at once: sixteen blocks run alone at the end",
    {{"small", "blocks of 128 threads", {"tail_effect"}}, {"even", "264 blocks of 544 threads, two directions a thread", {"tail_effect", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *elements = reinterpret_cast<const float4 *>(b.random<float>(ELEMENTS * 4));
        const float2 *directions = reinterpret_cast<const float2 *>(b.random<float>(n * 2, -30.0, 30.0));
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(antenna_pattern<1024>, blocks(n, 1024), 1024, 0, elements, directions, out, n)}, {"small", launch(antenna_pattern<128>, blocks(n, 128), 128, 0, elements, directions, out, n)},
            {"even", launch(antenna_pattern_even, blocks(n, 1088), 544, 0, elements, directions, out, n)}};
    });

// --- how unlike communities of species are ---

constexpr int SPECIES = 512, STEP = 32;

__global__ void __launch_bounds__(256) unlike(const float *__restrict__ counts, const float *__restrict__ sums, float *__restrict__ out, int samples) {
    __shared__ float left[16][STEP + 1], right[16][STEP + 1];
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    float sum = 0.0f;
    for (int first = 0; first < SPECIES; first += STEP) {
        for (int k = t; k < 16 * STEP; k += 256) {
            left[k / STEP][k % STEP] = counts[(row + k / STEP) * SPECIES + first + k % STEP];
            right[k / STEP][k % STEP] = counts[(column + k / STEP) * SPECIES + first + k % STEP];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < STEP; k++) sum += fabsf(left[ty][k] - right[tx][k]);
        __syncthreads();
    }
    out[static_cast<size_t>(row + ty) * samples + column + tx] = sum / (sums[row + ty] + sums[column + tx]);
}
// A thread makes TALL x WIDE outputs, sixteen apart.
template <int TALL, int WIDE>
__global__ void __launch_bounds__(256) unlike_tiles(const float *__restrict__ counts, const float *__restrict__ sums, float *__restrict__ out, int samples) {
    __shared__ float left[16 * TALL][STEP + 1], right[16 * WIDE][STEP + 1];
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    const int row = blockIdx.y * 16 * TALL, column = blockIdx.x * 16 * WIDE;
    float sum[TALL][WIDE] = {};
    for (int first = 0; first < SPECIES; first += STEP) {
        for (int k = t; k < 16 * TALL * STEP; k += 256) left[k / STEP][k % STEP] = counts[(row + k / STEP) * SPECIES + first + k % STEP];
        for (int k = t; k < 16 * WIDE * STEP; k += 256) right[k / STEP][k % STEP] = counts[(column + k / STEP) * SPECIES + first + k % STEP];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < STEP; k++) {
            float a[TALL], z[WIDE];
#pragma unroll
            for (int i = 0; i < TALL; i++) a[i] = left[ty + 16 * i][k];
#pragma unroll
            for (int j = 0; j < WIDE; j++) z[j] = right[tx + 16 * j][k];
#pragma unroll
            for (int i = 0; i < TALL; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++) sum[i][j] += fabsf(a[i] - z[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const int y = row + ty + 16 * i, x = column + tx + 16 * j;
            out[static_cast<size_t>(y) * samples + x] = sum[i][j] / (sums[y] + sums[x]);
        }
}

Study communities("unlike_communities_two_shared_words_a_difference", "ecology", 2048, "how unlike 2048 samples of 512 species are, each from each",
    "a thread makes one output: two words from shared memory for each difference",
    {{"squares", "four by four outputs a thread", {"shared_memory_bandwidth"}}, {"strips", "one by eight outputs a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *counts = b.random<float>(n * SPECIES, 0.0, 9.0), *sums = b.random<float>(n, 2000.0, 2600.0);
        float *out = b.output<float>(n * n);
        const dim3 block(16, 16);
        return {{"flawed", launch(unlike, dim3(n / 16, n / 16), block, 0, counts, sums, out, n)}, {"squares", launch(unlike_tiles<4, 4>, dim3(n / 64, n / 64), block, 0, counts, sums, out, n)},
            {"strips", launch(unlike_tiles<1, 8>, dim3(n / 128, n / 16), block, 0, counts, sums, out, n)}};
    });

// --- how a wind turns ---

__global__ void __launch_bounds__(256) vorticity(const float *__restrict__ u, const float *__restrict__ v, float *__restrict__ out, int n, float scale) {
    const int y = blockIdx.x * 32 + threadIdx.x, x = blockIdx.y * 8 + threadIdx.y, mask = n - 1;
    out[y * n + x] = scale * ((v[y * n + (x + 1 & mask)] - v[y * n + (x - 1 & mask)]) - (u[(y + 1 & mask) * n + x] - u[(y - 1 & mask) * n + x]));
}
__global__ void __launch_bounds__(256) vorticity_across(const float *__restrict__ u, const float *__restrict__ v, float *__restrict__ out, int n, float scale) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, mask = n - 1;
    out[y * n + x] = scale * ((v[y * n + (x + 1 & mask)] - v[y * n + (x - 1 & mask)]) - (u[(y + 1 & mask) * n + x] - u[(y - 1 & mask) * n + x]));
}
__global__ void __launch_bounds__(256) vorticity_fours(const float *__restrict__ u, const float *__restrict__ v, float *__restrict__ out, int n, float scale) {
    const int x = (blockIdx.x * 32 + threadIdx.x) * 4, y = blockIdx.y * 8 + threadIdx.y, mask = n - 1;
    const float4 own = *reinterpret_cast<const float4 *>(v + y * n + x);
    const float4 below = *reinterpret_cast<const float4 *>(u + (y + 1 & mask) * n + x), above = *reinterpret_cast<const float4 *>(u + (y - 1 & mask) * n + x);
    const float before = v[y * n + (x - 1 & mask)], after = v[y * n + (x + 4 & mask)];
    *reinterpret_cast<float4 *>(out + y * n + x) = make_float4(scale * (own.y - before - (below.x - above.x)), scale * (own.z - own.x - (below.y - above.y)),
        scale * (own.w - own.y - (below.z - above.z)), scale * (after - own.z - (below.w - above.w)));
}

Study winds("vorticity_lanes_run_down_the_columns", "climate", 4096, "how the wind turns in 4096 x 4096 cells",
    "neighbouring lanes take neighbouring rows: each access touches 32 lines",
    {{"across", "neighbouring lanes in a row", {"uncoalesced_access"}}, {"fours", "four cells of a row a thread", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *u = b.random<float>(n * n), *v = b.random<float>(n * n);
        float *out = b.output<float>(n * n);
        const dim3 block(32, 8);
        return {{"flawed", launch(vorticity, dim3(n / 32, n / 8), block, 0, u, v, out, n, 0.5f)}, {"across", launch(vorticity_across, dim3(n / 32, n / 8), block, 0, u, v, out, n, 0.5f)},
            {"fours", launch(vorticity_fours, dim3(n / 128, n / 8), block, 0, u, v, out, n, 0.5f)}};
    });

// --- water in the soil after a day: without a flaw ---

__global__ void __launch_bounds__(256) soil_step(const float4 *__restrict__ water, const float4 *__restrict__ rain, const float4 *__restrict__ evaporation, float4 *__restrict__ out, int fours) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= fours) return;
    const float4 w = water[i], r = rain[i], e = evaporation[i];
    const auto next = [](float water, float rain, float loss) { return fminf(1.0f, fmaxf(0.0f, water + rain - loss * water * water)); };
    out[i] = make_float4(next(w.x, r.x, e.x), next(w.y, r.y, e.y), next(w.z, r.z, e.z), next(w.w, r.w, e.w));
}

Study soil("sound_soil_water_step", "hydrology", 1 << 25, "a day's step of the water in 33554432 cells of soil", "", {}, [](Buffers &b, long n) -> Sides {
    const float *water = b.random<float>(n, 0.0, 1.0), *rain = b.random<float>(n, 0.0, 0.3), *loss = b.random<float>(n, 0.0, 0.2);
    const auto four = [](const float *p) { return reinterpret_cast<const float4 *>(p); };
    return {{"sound", launch(soil_step, blocks(n / 4, 256), 256, 0, four(water), four(rain), four(loss), reinterpret_cast<float4 *>(b.output<float>(n)), n / 4)}};
});

}  // namespace
