// Films, voices, lenses, panoramas, contrast, the bands of a sensor and clouds.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- what has changed since the background of a film, and the background brought up to date ---

__device__ __forceinline__ unsigned char changed(int frame, int ground, int threshold) { return abs(frame - ground) > threshold ? 255 : 0; }
__device__ __forceinline__ unsigned char nearer(int frame, int ground) { return static_cast<unsigned char>((7 * ground + frame + 4) >> 3); }
__global__ void __launch_bounds__(256) film_change(const unsigned char *__restrict__ frame, const unsigned char *__restrict__ ground, unsigned char *__restrict__ mask, unsigned char *__restrict__ next, int count, int threshold) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    mask[i] = changed(frame[i], ground[i], threshold);
    next[i] = nearer(frame[i], ground[i]);
}
__device__ __forceinline__ void change_word(unsigned frame, unsigned ground, unsigned &mask, unsigned &next, int threshold) {
    mask = next = 0;
#pragma unroll
    for (int k = 0; k < 32; k += 8) {
        const int own = frame >> k & 255, old = ground >> k & 255;
        mask |= static_cast<unsigned>(changed(own, old, threshold)) << k, next |= static_cast<unsigned>(nearer(own, old)) << k;
    }
}
__global__ void __launch_bounds__(256) film_change_words(const unsigned *__restrict__ frame, const unsigned *__restrict__ ground, unsigned *__restrict__ mask, unsigned *__restrict__ next, int count, int threshold) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) change_word(frame[i], ground[i], mask[i], next[i], threshold);
}
__global__ void __launch_bounds__(256) film_change_sixteen(const uint4 *__restrict__ frame, const uint4 *__restrict__ ground, uint4 *__restrict__ mask, uint4 *__restrict__ next, int count, int threshold) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint4 own = frame[i], old = ground[i];
    uint4 m, g;
    change_word(own.x, old.x, m.x, g.x, threshold), change_word(own.y, old.y, m.y, g.y, threshold);
    change_word(own.z, old.z, m.z, g.z, threshold), change_word(own.w, old.w, m.w, g.w, threshold);
    mask[i] = m, next[i] = g;
}

Study film("film_changes_a_byte_a_thread", "video", 3840L * 2160 * 4, "where four frames of 3840 x 2160 differ from their background, and the background brought nearer to them",
    "a byte a thread from both and to both",
    {{"words", "four bytes a thread", {"narrow_access"}}, {"sixteen", "sixteen bytes a thread", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *frame = b.random<unsigned char>(n, 0, 256), *ground = b.random<unsigned char>(n, 0, 256);
        unsigned char *mask = b.output<unsigned char>(n), *next = b.output<unsigned char>(n);
        return {{"flawed", launch(film_change, blocks(n, 256), 256, 0, frame, ground, mask, next, n, 30)},
            {"words", launch(film_change_words, blocks(n / 4, 256), 256, 0, reinterpret_cast<const unsigned *>(frame), reinterpret_cast<const unsigned *>(ground), reinterpret_cast<unsigned *>(mask), reinterpret_cast<unsigned *>(next), n / 4, 30)},
            {"sixteen", launch(film_change_sixteen, blocks(n / 16, 256), 256, 0, reinterpret_cast<const uint4 *>(frame), reinterpret_cast<const uint4 *>(ground), reinterpret_cast<uint4 *>(mask), reinterpret_cast<uint4 *>(next), n / 16, 30)}};
    });

// --- voices of a synthesiser, each with one of four waves ---

enum Wave { BELL, SAW, PULSE, BREATH, WAVES };
constexpr int SAMPLES = 64;

struct Voices {
    const float *pitches, *phases;
    const int *waves;
};
__device__ __noinline__ float bell(float turn) {
    float sum = 0.0f, loud = 0.5f;
    for (int k = 1; k <= 6; k++, loud *= 0.7f) {
        const float inner = sinpif(7.0f * k * turn);
        sum += loud * sinpif(2.0f * k * turn + 0.4f * inner);
    }
    return sum;
}
__device__ __noinline__ float saw(float turn) {
    float sine, cosine, before = 0.0f, sum = 0.0f;
    sincospif(2.0f * turn, &sine, &cosine);
    for (int k = 1; k <= 24; k++) {
        sum += sine / k;
        const float next = 2.0f * cosine * sine - before;
        before = sine, sine = next;
    }
    return 0.6f * sum;
}
__device__ __noinline__ float pulse(float turn) {
    float sum = 0.0f;
    for (int k = 0; k < 5; k++) sum += tanhf(6.0f * sinpif(2.0f * turn + 0.11f * k));
    return 0.2f * sum;
}
__device__ __noinline__ float breath(float turn, unsigned voice) {
    float sum = 0.0f, loud = 0.5f;
    for (int octave = 0; octave < 8; octave++, loud *= 0.6f) {
        const float place = turn * (4 << octave), low = floorf(place), part = place - low;
        const unsigned cell = static_cast<unsigned>(low) + voice * 4096u;
        const float left = (hash(cell) >> 8) * (1.0f / 16777216.0f), right = (hash(cell + 1) >> 8) * (1.0f / 16777216.0f);
        sum += loud * (left + (right - left) * part * part * (3.0f - 2.0f * part));
    }
    return sum - 0.7f;
}
__device__ __forceinline__ float voice_sample(int wave, float turns, unsigned seed) {
    const float turn = turns - floorf(turns);
    switch (wave) {
        case BELL: return bell(turn);
        case SAW: return saw(turn);
        case PULSE: return pulse(turn);
        default: return breath(turn, seed);
    }
}
__device__ __forceinline__ float turns_at(float pitch, float phase, int sample) { return fmaf(pitch, static_cast<float>(sample), phase); }
// Lanes are voices, which lie side by side in the output; what a voice's noise is drawn from follows from its phase.
__global__ void __launch_bounds__(128) voices(Voices v, float *__restrict__ out, int count) {
    const int voice = blockIdx.x * 128 + threadIdx.x;
    if (voice >= count) return;
    const float pitch = v.pitches[voice], phase = v.phases[voice];
    const int wave = v.waves[voice];
    for (int sample = blockIdx.y * 16; sample < blockIdx.y * 16 + 16; sample++) out[sample * count + voice] = voice_sample(wave, turns_at(pitch, phase, sample), __float_as_uint(phase));
}
// Lanes are 32 samples of a voice; 32 voices are turned in shared memory.
__global__ void __launch_bounds__(256) voices_samples(Voices v, float *__restrict__ out, int count) {
    __shared__ float tile[32][33];
    const int first = blockIdx.x * 32, lane = threadIdx.x, sample = blockIdx.y * 32;
    for (int k = threadIdx.y; k < 32; k += 8) tile[k][lane] = voice_sample(v.waves[first + k], turns_at(v.pitches[first + k], v.phases[first + k], sample + lane), __float_as_uint(v.phases[first + k]));
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) out[(sample + k) * count + first + lane] = tile[lane][k];
}
__global__ void __launch_bounds__(256) voices_back(const float *sorted, const int *order, float *out, int count) {
    const int voice = blockIdx.x * 256 + threadIdx.x;
    if (voice < count) out[blockIdx.y * count + order[voice]] = sorted[blockIdx.y * count + voice];
}

Study synthesiser("voices_of_four_waves_in_a_warp", "sound", 65536, "64 samples of 65536 voices, each of which has one of four waves",
    "lanes are voices: a warp goes through all four waves, one after the other",
    {{"sorted", "voices in the order of their waves", {"branch_divergence"}}, {"samples", "lanes are samples of one voice, turned in shared memory", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> pitches(n), phases(n), sorted_pitches, sorted_phases;
        std::vector<int> waves(n), order, sorted_waves;
        for (unsigned k = 0; k < n; k++) pitches[k] = 0.001f + (hash(k) >> 8) / 16777216.0f * 0.05f, phases[k] = (hash(k + 7777777) >> 8) / 16777216.0f, waves[k] = hash(k + 99999999) % WAVES;
        for (int wave = 0; wave < WAVES; wave++)
            for (int k = 0; k < n; k++)
                if (waves[k] == wave) order.push_back(k), sorted_pitches.push_back(pitches[k]), sorted_phases.push_back(phases[k]), sorted_waves.push_back(wave);
        const Voices mixed = {b.copy(pitches), b.copy(phases), b.copy(waves)}, ordered = {b.copy(sorted_pitches), b.copy(sorted_phases), b.copy(sorted_waves)};
        float *out = b.output<float>(n * SAMPLES), *sorted = b.allocate<float>(n * SAMPLES);
        const dim3 grid(blocks(n, 128), SAMPLES / 16);
        return {{"flawed", launch(voices, grid, 128, 0, mixed, out, n)},
            Side{"sorted", launch(voices, grid, 128, 0, ordered, sorted, n), {}, 1, launch(voices_back, dim3(blocks(n, 256), SAMPLES), 256, 0, sorted, b.copy(order), out, n)},
            {"samples", launch(voices_samples, dim3(n / 32, SAMPLES / 32), dim3(32, 8), 0, mixed, out, n)}};
    });

// --- what a lens darkens towards the corners, made good for each colour ---

constexpr int RADII = 1024;

struct Lens {
    float middle, red, green, blue;  // the middle in pixels, one over the focal length of each colour
};
__device__ __forceinline__ unsigned char lifted(unsigned char value, float gain) { return static_cast<unsigned char>(fminf(value * gain + 0.5f, 255.0f)); }
struct ByAngles {
    static __device__ float gain(float radius, float inverse) { return 1.0f / powf(cosf(atanf(radius * inverse)), 4.0f); }
};
// The cosine of an arc tangent is one over the root of one plus its square.
struct ByAlgebra {
    static __device__ float gain(float radius, float inverse) {
        const float tangent = radius * inverse, rest = 1.0f + tangent * tangent;
        return rest * rest;
    }
};
template <typename Gain>
__global__ void __launch_bounds__(256) even_light(const uchar4 *__restrict__ in, uchar4 *__restrict__ out, int size, Lens lens) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    const float dx = x - lens.middle, dy = y - lens.middle, radius = sqrtf(dx * dx + dy * dy);
    const uchar4 pixel = in[y * size + x];
    out[y * size + x] = make_uchar4(lifted(pixel.x, Gain::gain(radius, lens.red)), lifted(pixel.y, Gain::gain(radius, lens.green)), lifted(pixel.z, Gain::gain(radius, lens.blue)), pixel.w);
}
// Gains of 1024 squares of radii, worked out when the lens was measured; what lies between is interpolated.
__global__ void __launch_bounds__(256) even_light_table(const uchar4 *__restrict__ in, const float4 *__restrict__ gains, uchar4 *__restrict__ out, int size, Lens lens, float scale) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    const float dx = x - lens.middle, dy = y - lens.middle, place = (dx * dx + dy * dy) * scale, low = floorf(place), part = place - low;
    const float4 a = gains[static_cast<int>(low)], c = gains[static_cast<int>(low) + 1];
    const uchar4 pixel = in[y * size + x];
    out[y * size + x] = make_uchar4(lifted(pixel.x, a.x + (c.x - a.x) * part), lifted(pixel.y, a.y + (c.y - a.y) * part), lifted(pixel.z, a.z + (c.z - a.z) * part), pixel.w);
}

Study lens("lens_shading_cosine_of_arc_tangent_each_colour", "images", 4096, "a picture of 4096 x 4096 pixels of four bytes made as light in the corners as in the middle",
    "each colour of each pixel takes an arc tangent, its cosine and a general power of that",
    {{"algebra", "the fourth power of the cosine by two products", {"expensive_math"}}, {"table", "a table by the square of the radius", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 0.005;
        const Lens lens = {0.5f * n - 0.5f, 0.66f / n, 0.70f / n, 0.74f / n};
        const float step = 0.5f * n * n / (RADII - 2);
        std::vector<float4> gains(RADII);
        const auto gain = [=](float square, float inverse) { return (1.0f + square * inverse * inverse) * (1.0f + square * inverse * inverse); };
        for (int k = 0; k < RADII; k++) gains[k] = make_float4(gain(k * step, lens.red), gain(k * step, lens.green), gain(k * step, lens.blue), 0.0f);
        const uchar4 *in = reinterpret_cast<const uchar4 *>(b.random<unsigned char>(n * n * 4, 0, 256));
        uchar4 *out = reinterpret_cast<uchar4 *>(b.output<unsigned char>(n * n * 4));
        const dim3 grid(n / 256, n);
        return {{"flawed", launch(even_light<ByAngles>, grid, 256, 0, in, out, n, lens)}, {"algebra", launch(even_light<ByAlgebra>, grid, 256, 0, in, out, n, lens)},
            {"table", launch(even_light_table, grid, 256, 0, in, b.copy(gains), out, n, lens, 1.0f / step)}};
    });

// --- light from all directions, drawn as a panorama from nine harmonics a colour ---

constexpr int STRIP = 32;

struct Harmonics {
    float4 of[9];
};
__device__ __forceinline__ uint2 light_from(const Harmonics &h, float x, float y, float z) {
    const float terms[9] = {1.0f, y, z, x, x * y, y * z, 3.0f * z * z - 1.0f, x * z, x * x - y * y};
    float red = 0.0f, green = 0.0f, blue = 0.0f;
#pragma unroll
    for (int k = 0; k < 9; k++) red += h.of[k].x * terms[k], green += h.of[k].y * terms[k], blue += h.of[k].z * terms[k];
    const __half2 low = __floats2half2_rn(red, green), high = __floats2half2_rn(blue, 1.0f);
    return make_uint2(*reinterpret_cast<const unsigned *>(&low), *reinterpret_cast<const unsigned *>(&high));
}
__global__ void __launch_bounds__(256) panorama(Harmonics h, uint2 *__restrict__ out, int width, int height) {
    const int column = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    const double azimuth = 2.0 * M_PI * (column + 0.5) / width - M_PI, polar = M_PI * (row + 0.5) / height, ring = sin(polar);
    const float x = ring * cos(azimuth), y = ring * sin(azimuth), z = cos(polar);
    out[row * width + column] = light_from(h, x, y, z);
}
__global__ void __launch_bounds__(256) panorama_single(Harmonics h, uint2 *__restrict__ out, int width, int height) {
    const int column = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    float ring, z, sine, cosine;
    sincospif(2.0f * (column + 0.5f) / width - 1.0f, &sine, &cosine);
    sincospif((row + 0.5f) / height, &ring, &z);
    out[row * width + column] = light_from(h, ring * cosine, ring * sine, z);
}
// A thread walks 32 rows of its column; their angles were taken once for the block.
__global__ void __launch_bounds__(256) panorama_columns(Harmonics h, uint2 *__restrict__ out, int width, int height) {
    __shared__ float2 rings[STRIP];
    const int column = blockIdx.x * 256 + threadIdx.x, top = blockIdx.y * STRIP;
    float sine, cosine;
    sincospif(2.0f * (column + 0.5f) / width - 1.0f, &sine, &cosine);
    if (threadIdx.x < STRIP) sincospif((top + threadIdx.x + 0.5f) / height, &rings[threadIdx.x].x, &rings[threadIdx.x].y);
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < STRIP; k++) out[(top + k) * width + column] = light_from(h, rings[k].x * cosine, rings[k].x * sine, rings[k].y);
}

Study around("panorama_directions_in_double", "rendering", 8192, "a panorama of 8192 x 4096 half pixels of light that nine harmonics a colour describe",
    "the constant for pi and the sines of both angles are doubles",
    {{"single", "sines of half turns in single precision", {"double_precision"}}, {"columns", "the same, those of a column and of a row once", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 2e-3;
        Harmonics h;
        for (unsigned k = 0; k < 9; k++) h.of[k] = make_float4(0.5f / (1 + k), 0.4f * std::cos(1.0f * k), 0.3f * std::cos(2.0f * k), 0.0f);
        uint2 *out = reinterpret_cast<uint2 *>(b.output<__half>(n * n / 2 * 4));
        return {{"flawed", launch(panorama, dim3(n / 256, n / 2), 256, 0, h, out, n, n / 2)}, {"single", launch(panorama_single, dim3(n / 256, n / 2), 256, 0, h, out, n, n / 2)},
            {"columns", launch(panorama_columns, dim3(n / 256, n / 2 / STRIP), 256, 0, h, out, n, n / 2)}};
    });

// --- counts of grey levels in tiles of a picture whose contrast is to be evened out ---

constexpr int TILE = 128, COUNTERS = 128, LEVELS = 256;

// Where a thread's counter of a level lies: a byte, since a thread counts 128 pixels.
struct ThreadByThread {
    static constexpr int bytes = COUNTERS * LEVELS;
    static __device__ int at(int thread, int level) { return thread * LEVELS + level; }
};
struct LevelByLevel {
    static constexpr int bytes = COUNTERS * LEVELS;
    static __device__ int at(int thread, int level) { return level * COUNTERS + thread; }
};
struct WithAGap {
    static constexpr int bytes = COUNTERS * (LEVELS + 4);
    static __device__ int at(int thread, int level) { return thread * (LEVELS + 4) + level; }
};
template <typename Place>
__global__ void __launch_bounds__(COUNTERS) tile_levels(const unsigned *__restrict__ picture, int *__restrict__ out, int size) {
    __shared__ __align__(16) unsigned char counters[Place::bytes];
    const int t = threadIdx.x, words = size / 4;
    unsigned *cleared = reinterpret_cast<unsigned *>(counters);
    for (int k = t; k < Place::bytes / 4; k += COUNTERS) cleared[k] = 0;
    __syncthreads();
    const unsigned *own = picture + static_cast<long>(blockIdx.y * TILE + t / 32) * words + blockIdx.x * (TILE / 4) + t % 32;
#pragma unroll 8
    for (int row = 0; row < TILE; row += COUNTERS / 32) {
        const unsigned four = own[row * words];
#pragma unroll
        for (int k = 0; k < 32; k += 8) counters[Place::at(t, four >> k & 255)]++;
    }
    __syncthreads();
    // Each thread begins with another's counters, so that lanes stay apart in any layout.
    for (int level = t; level < LEVELS; level += COUNTERS) {
        int sum = 0;
        for (int k = 0; k < COUNTERS; k++) sum += counters[Place::at(k + 4 * t & COUNTERS - 1, level)];
        out[(blockIdx.y * gridDim.x + blockIdx.x) * LEVELS + level] = sum;
    }
}
// A lamp's light on a wall with a little noise.
__global__ void smooth_picture(unsigned char *picture, int size) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    const float light = 128.0f + 100.0f * __sinf(x * 0.0011f + 0.3f) * __cosf(y * 0.0017f);
    picture[static_cast<long>(y) * size + x] = static_cast<unsigned char>(light) + hash(y * size + x) % 2;
}

Study contrast("tile_levels_counters_of_lanes_256_bytes_apart", "images", 8192, "counts of 256 grey levels in the tiles of 128 x 128 of a picture of 8192 x 8192",
    "each thread counts in a row of its own, 64 words from its neighbour's: the same level of all lanes lies in one bank",
    {{"levels", "the counters of a level side by side", {"shared_bank_conflicts"}}, {"gap", "a word between two threads' rows", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned char *picture = b.allocate<unsigned char>(n * n);
        launch(smooth_picture, dim3(n / 256, n), 256, 0, picture, n)();
        const unsigned *words = reinterpret_cast<const unsigned *>(picture);
        const dim3 grid(n / TILE, n / TILE);
        int *out = b.output<int>(n / TILE * (n / TILE) * LEVELS);
        return {{"flawed", launch(tile_levels<ThreadByThread>, grid, COUNTERS, 0, words, out, n)}, {"levels", launch(tile_levels<LevelByLevel>, grid, COUNTERS, 0, words, out, n)},
            {"gap", launch(tile_levels<WithAGap>, grid, COUNTERS, 0, words, out, n)}};
    });

// --- bands of a sensor with a mosaic of sixteen filters ---

constexpr int PATTERN = 4, BANDS = PATTERN * PATTERN, REACH = 2, WINDOW = 2 * REACH + 1, WIDE = 32 + 2 * REACH, HIGH = 8 + 2 * REACH;

__host__ __device__ constexpr float nearness(int dx, int dy) { return 1.0f / (1.0f + dx * dx + dy * dy); }
__device__ __forceinline__ void load_raw(float (*tile)[WIDE], const float *__restrict__ raw, int left, int top, int size) {
    for (int k = threadIdx.y * 32 + threadIdx.x; k < HIGH * WIDE; k += 256) {
        const int row = top + k / WIDE - REACH, column = left + k % WIDE - REACH;
        tile[k / WIDE][k % WIDE] = raw[min(max(row, 0), size - 1) * size + min(max(column, 0), size - 1)];
    }
}
__global__ void __launch_bounds__(256) mosaic_bands(const int *__restrict__ pattern, const float *__restrict__ raw, __half *__restrict__ out, int size) {
    __shared__ float tile[HIGH][WIDE];
    __shared__ int bands[BANDS];
    const int left = blockIdx.x * 32, top = blockIdx.y * 8, x = left + threadIdx.x, y = top + threadIdx.y;
    load_raw(tile, raw, left, top, size);
    if (threadIdx.y == 0 && threadIdx.x < BANDS) bands[threadIdx.x] = pattern[threadIdx.x];
    __syncthreads();
    float sums[BANDS] = {}, weights[BANDS] = {};
#pragma unroll
    for (int dy = 0; dy < WINDOW; dy++)
#pragma unroll
        for (int dx = 0; dx < WINDOW; dx++) {
            const int band = bands[(y + dy - REACH & PATTERN - 1) * PATTERN + (x + dx - REACH & PATTERN - 1)];
            const float weight = nearness(dx - REACH, dy - REACH);
            sums[band] += weight * tile[threadIdx.y + dy][threadIdx.x + dx];
            weights[band] += weight;
        }
    for (int band = 0; band < BANDS; band++) out[(band * size + y) * size + x] = __float2half(__fdividef(sums[band], weights[band]));
}
// Sums belong to places relative to the pixel; which band each is matters only when they are stored.
__global__ void __launch_bounds__(256) mosaic_bands_places(const int *__restrict__ pattern, const float *__restrict__ raw, __half *__restrict__ out, int size) {
    __shared__ float tile[HIGH][WIDE];
    __shared__ int bands[BANDS];
    __shared__ float found[BANDS][256];
    const int left = blockIdx.x * 32, top = blockIdx.y * 8, x = left + threadIdx.x, y = top + threadIdx.y, t = threadIdx.y * 32 + threadIdx.x;
    load_raw(tile, raw, left, top, size);
    if (t < BANDS) bands[t] = pattern[t];
    __syncthreads();
#pragma unroll
    for (int down = 0; down < PATTERN; down++)
#pragma unroll
        for (int along = 0; along < PATTERN; along++) {
            float sum = 0.0f, weight = 0.0f;
#pragma unroll
            for (int dy = down; dy < WINDOW; dy += PATTERN)
#pragma unroll
                for (int dx = along; dx < WINDOW; dx += PATTERN) {
                    const float own = nearness(dx - REACH, dy - REACH);
                    sum += own * tile[threadIdx.y + dy][threadIdx.x + dx];
                    weight += own;
                }
            found[bands[(y + down - REACH & PATTERN - 1) * PATTERN + (x + along - REACH & PATTERN - 1)]][t] = sum * (1.0f / weight);
        }
    for (int band = 0; band < BANDS; band++) out[(band * size + y) * size + x] = __float2half(found[band][t]);
}
// Band after band: where its pixels lie follows from its filter's place in the pattern.
__global__ void __launch_bounds__(256) mosaic_bands_turns(const int *__restrict__ filters, const float *__restrict__ raw, __half *__restrict__ out, int size) {
    __shared__ float tile[HIGH][WIDE];
    __shared__ int places[BANDS];
    const int left = blockIdx.x * 32, top = blockIdx.y * 8, x = left + threadIdx.x, y = top + threadIdx.y;
    load_raw(tile, raw, left, top, size);
    if (threadIdx.y == 0 && threadIdx.x < BANDS) places[threadIdx.x] = filters[threadIdx.x];
    __syncthreads();
    for (int band = 0; band < BANDS; band++) {
        const int along = places[band] % PATTERN - x + REACH & PATTERN - 1, down = places[band] / PATTERN - y + REACH & PATTERN - 1;
        const float *own = &tile[threadIdx.y + down][threadIdx.x + along];
        float sum = own[0], count = 1.0f;  // all of a band's pixels are as far
        if (along == 0) sum += own[PATTERN], count += 1.0f;
        if (down == 0) {
            sum += own[PATTERN * WIDE], count += 1.0f;
            if (along == 0) sum += own[PATTERN * WIDE + PATTERN], count += 1.0f;
        }
        out[(band * size + y) * size + x] = __float2half(__fdividef(sum, count));
    }
}

Study mosaic("mosaic_of_16_bands_summed_by_index", "images", 2048, "sixteen half bands for each of 2048 x 2048 pixels of a sensor with a mosaic of 4 x 4 filters",
    "sums and weights of the bands are arrays indexed by the mosaic, 25 times a pixel",
    {{"places", "sums for places relative to the pixel, brought into the order of bands in shared memory", {"local_memory"}}, {"turns", "band after band, whose pixels' places are worked out", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 2e-3;
        std::vector<int> pattern(BANDS), filters(BANDS);
        for (int k = 0; k < BANDS; k++) pattern[k] = (k * 7 + 3) % BANDS, filters[pattern[k]] = k;
        const int *bands = b.copy(pattern), *places = b.copy(filters);
        const float *raw = b.random<float>(n * n, 0.0, 1.0);
        __half *out = b.output<__half>(n * n * BANDS);
        const dim3 grid(n / 32, n / 8), block(32, 8);
        return {{"flawed", launch(mosaic_bands, grid, block, 0, bands, raw, out, n)}, {"places", launch(mosaic_bands_places, grid, block, 0, bands, raw, out, n)},
            {"turns", launch(mosaic_bands_turns, grid, block, 0, places, raw, out, n)}};
    });

// --- clouds of five octaves of noise: without a flaw ---

__device__ __forceinline__ float cloud(float x, float y) {
    float sum = 0.0f, loud = 0.5f;
#pragma unroll
    for (int octave = 0; octave < 5; octave++, loud *= 0.5f, x *= 2.0f, y *= 2.0f) {
        const float left = floorf(x), top = floorf(y), u = x - left, v = y - top;
        const unsigned cell = static_cast<unsigned>(left) + static_cast<unsigned>(top) * 40503u + octave * 7919u;
        const float a = hash(cell) >> 8, b = hash(cell + 1) >> 8, c = hash(cell + 40503u) >> 8, d = hash(cell + 40504u) >> 8;
        const float s = u * u * (3.0f - 2.0f * u), t = v * v * (3.0f - 2.0f * v), upper = a + (b - a) * s, lower = c + (d - c) * s;
        sum += loud * (upper + (lower - upper) * t);
    }
    return sum * (1.0f / 16777216.0f);
}
__global__ void __launch_bounds__(256) clouds(float4 *__restrict__ out, int width, float scale) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    const float row = y * scale, first = 4 * x * scale;
    out[y * width / 4 + x] = make_float4(cloud(first, row), cloud(first + scale, row), cloud(first + 2.0f * scale, row), cloud(first + 3.0f * scale, row));
}

Study sky("sound_clouds_of_five_octaves", "rendering", 4096, "clouds of five octaves of noise, 4096 x 4096 floats", "", {}, [](Buffers &b, long n) -> Sides {
    return {{"sound", launch(clouds, dim3(n / 4 / 256, n), 256, 0, reinterpret_cast<float4 *>(b.output<float>(n * n)), n, 1.0f / 64.0f)}};
});

}  // namespace
