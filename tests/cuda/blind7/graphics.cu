// Pieces of rendering, geometry, video and sound. Each kernel has one weakness and two ways out.
#include "../pairs/pair.cuh"

namespace {

// --- rays through a volume of bytes, front to back ---

constexpr int VOLUME = 256, BRICK = 8, BRICKS = VOLUME / BRICK;

struct Scene {
    const unsigned char *voxels, *bricks;  // bricks: the largest voxel that a sample in a brick can see
};
__global__ void fill_volume(unsigned char *voxels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % VOLUME, y = i / VOLUME % VOLUME, z = i / (VOLUME * VOLUME);
    float wave = sinf(x * 0.05f) + sinf(y * 0.041f + 1.f) + sinf(z * 0.047f + 2.f) + 0.2f * sinf(x * 0.3f + y * 0.2f);
    voxels[i] = static_cast<unsigned char>(fminf(fmaxf(wave * 80.f, 0.f), 255.f));
}
__global__ void fill_bricks(const unsigned char *voxels, unsigned char *bricks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, bx = i % BRICKS, by = i / BRICKS % BRICKS, bz = i / (BRICKS * BRICKS), most = 0;
    for (int z = bz * BRICK; z <= min(bz * BRICK + BRICK, VOLUME - 1); ++z)
        for (int y = by * BRICK; y <= min(by * BRICK + BRICK, VOLUME - 1); ++y)
            for (int x = bx * BRICK; x <= min(bx * BRICK + BRICK, VOLUME - 1); ++x) most = max(most, voxels[(z * VOLUME + y) * VOLUME + x]);
    bricks[i] = most;
}
__device__ __forceinline__ float density(const unsigned char *voxels, float x, float y, float z) {
    int i = static_cast<int>(x), j = static_cast<int>(y), k = static_cast<int>(z);
    float fx = x - i, fy = y - j, fz = z - k;
    const unsigned char *v = voxels + (k * VOLUME + j) * VOLUME + i;
    float a = v[0] + fx * (v[1] - v[0]), b = v[VOLUME] + fx * (v[VOLUME + 1] - v[VOLUME]);
    v += VOLUME * VOLUME;
    float c = v[0] + fx * (v[1] - v[0]), d = v[VOLUME] + fx * (v[VOLUME + 1] - v[VOLUME]);
    float front = a + fy * (b - a), back = c + fy * (d - c);
    return front + fz * (back - front);
}
constexpr float THRESHOLD = 60.f;

template <bool stops, bool skips>
__global__ void march(Scene scene, float *image, int width, float tilt_x, float tilt_y) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    float x = px * 199.f / width + 1.f, y = py * 199.f / width + 1.f, light = 0.f, through = 1.f;
    for (int s = 0; s < 500; ++s, x += tilt_x, y += tilt_y) {
        float z = s * 0.5f + 1.f;
        if (stops && through < 2e-3f) break;
        if (skips && scene.bricks[(static_cast<int>(z) / BRICK * BRICKS + static_cast<int>(y) / BRICK) * BRICKS + static_cast<int>(x) / BRICK] <= THRESHOLD) continue;
        float opacity = fminf(fmaxf(density(scene.voxels, x, y, z) - THRESHOLD, 0.f) * 4e-4f, 1.f);
        light += through * opacity * (1.f - z / VOLUME);
        through *= 1.f - opacity;
    }
    image[py * width + px] = light;
}

Study volume("volume_rays_to_the_far_end", "rendering", 1024, "1024 x 1024 rays of 500 steps through a volume of 256 x 256 x 256 bytes",
    "rays go on to the far end, through matter that lets nothing pass and through emptiness, eight loads a step",
    {{"stops", "a ray ends where less than 0.2 per cent passes", {"redundant_loads"}},
        {"skips", "one load of a coarse grid spares the eight in empty bricks", {"redundant_loads"}},
        {"both", "both", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned char *voxels = b.allocate<unsigned char>(VOLUME * VOLUME * VOLUME), *bricks = b.allocate<unsigned char>(BRICKS * BRICKS * BRICKS);
        launch(fill_volume, VOLUME * VOLUME * VOLUME / 256, 256, 0, voxels)();
        launch(fill_bricks, BRICKS * BRICKS * BRICKS / 256, 256, 0, voxels, bricks)();
        Scene scene{voxels, bricks};
        float *image = b.output<float>(n * n), tilt_x = 0.1f, tilt_y = 0.07f;
        b.tolerance = 1e-2;
        dim3 grid(n / 16, n / 16), block(16, 16);
        return {{"flawed", launch(march<false, false>, grid, block, 0, scene, image, n, tilt_x, tilt_y)},
            {"stops", launch(march<true, false>, grid, block, 0, scene, image, n, tilt_x, tilt_y)},
            {"skips", launch(march<false, true>, grid, block, 0, scene, image, n, tilt_x, tilt_y)},
            {"both", launch(march<true, true>, grid, block, 0, scene, image, n, tilt_x, tilt_y)}};
    });

// --- a texture of four octaves of Perlin's noise ---

__constant__ int PERMUTATION[512];

__device__ __forceinline__ float fade(float t) { return t * t * t * (t * (t * 6.f - 15.f) + 10.f); }
__device__ __forceinline__ float slope(int hash, float x, float y, float z) {
    int h = hash & 15;
    float u = h < 8 ? x : y, v = h < 4 ? y : h == 12 || h == 14 ? x : z;
    return ((h & 1) ? -u : u) + ((h & 2) ? -v : v);
}
__device__ __forceinline__ float mix(float a, float b, float t) { return a + t * (b - a); }
template <typename Table>
__device__ __forceinline__ float noise(float x, float y, float z, Table p) {
    float fx = floorf(x), fy = floorf(y), fz = floorf(z);
    int i = static_cast<int>(fx) & 255, j = static_cast<int>(fy) & 255, k = static_cast<int>(fz) & 255;
    x -= fx, y -= fy, z -= fz;
    float u = fade(x), v = fade(y), w = fade(z);
    int a = p(i) + j, aa = p(a) + k, ab = p(a + 1) + k, b = p(i + 1) + j, ba = p(b) + k, bb = p(b + 1) + k;
    return mix(mix(mix(slope(p(aa), x, y, z), slope(p(ba), x - 1, y, z), u), mix(slope(p(ab), x, y - 1, z), slope(p(bb), x - 1, y - 1, z), u), v),
        mix(mix(slope(p(aa + 1), x, y, z - 1), slope(p(ba + 1), x - 1, y, z - 1), u),
            mix(slope(p(ab + 1), x, y - 1, z - 1), slope(p(bb + 1), x - 1, y - 1, z - 1), u), v),
        w);
}
template <typename Table>
__device__ __forceinline__ void texture(float *out, int width, float time, Table p) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.f, scale = 1.f / 16.f, weight = 1.f;
    for (int octave = 0; octave < 4; ++octave, scale *= 2.f, weight *= 0.5f) sum += weight * noise(x * scale, y * scale, time * scale, p);
    out[y * width + x] = sum;
}
__global__ void perlin(float *out, int width, float time) {
    texture(out, width, time, [](int i) { return PERMUTATION[i]; });
}
__global__ void perlin_shared(float *__restrict__ out, const int *__restrict__ permutation, int width, float time) {
    __shared__ int near[512];
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < 512; i += blockDim.x * blockDim.y) near[i] = permutation[i];
    __syncthreads();
    texture(out, width, time, [](int i) { return near[i]; });
}
__global__ void perlin_global(float *__restrict__ out, const int *__restrict__ permutation, int width, float time) {
    texture(out, width, time, [=](int i) { return permutation[i]; });
}

Study perlin_noise("perlin_permutation_in_constants", "rendering", 2048, "four octaves of Perlin's noise for 2048 x 2048 pixels",
    "the permutation lies in constant memory, and lanes ask for different entries",
    {{"shared", "the permutation in shared memory", {"constant_divergence"}}, {"global", "the permutation through L1", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> order(512);
        for (int i = 0; i < 256; ++i) order[i] = i;
        for (int i = 255; i > 0; --i) std::swap(order[i], order[hash(i) % (i + 1)]);
        for (int i = 0; i < 256; ++i) order[i + 256] = order[i];
        CHECK(cudaMemcpyToSymbol(PERMUTATION, order.data(), 512 * sizeof(int)));
        float *out = b.output<float>(n * n), time = 3.7f;
        int *permutation = b.copy(order);
        dim3 grid(n / 32, n / 8), block(32, 8);
        return {{"flawed", launch(perlin, grid, block, 0, out, n, time)}, {"shared", launch(perlin_shared, grid, block, 0, out, permutation, n, time)},
            {"global", launch(perlin_global, grid, block, 0, out, permutation, n, time)}};
    });

// --- which points lie within a polygon ---

constexpr int CORNERS = 600, SLABS = 512;

__global__ void inside(const float2 *points, const float2 *polygon, int *found, int n, int corners) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = points[i];
    bool in = false;
    for (int e = 0, before = corners - 1; e < corners; before = e++) {
        float2 a = polygon[e], c = polygon[before];
        if ((a.y > p.y) != (c.y > p.y) && p.x < (c.x - a.x) * (p.y - a.y) / (c.y - a.y) + a.x) in = !in;
    }
    found[i] = in;
}
// An edge: its lower and upper end, its slope and where it would meet the axis.
__device__ __forceinline__ bool crosses(float4 edge, float2 p) { return p.y >= edge.x && p.y < edge.y && p.x < edge.z * p.y + edge.w; }
__global__ void inside_slopes(const float2 *__restrict__ points, const float4 *__restrict__ edges, int *__restrict__ found, int n) {
    __shared__ float4 near[CORNERS];
    for (int e = threadIdx.x; e < CORNERS; e += blockDim.x) near[e] = edges[e];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = points[i];
    int count = 0;
#pragma unroll 4
    for (int e = 0; e < CORNERS; ++e) count += crosses(near[e], p);
    found[i] = count & 1;
}
__global__ void inside_slabs(const float2 *__restrict__ points, const float4 *__restrict__ edges, const int *__restrict__ start, int *__restrict__ found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = points[i];
    int slab = min(max(static_cast<int>((p.y + 1.f) * (SLABS / 2)), 0), SLABS - 1), count = 0;
    for (int e = start[slab]; e < start[slab + 1]; ++e) count += crosses(edges[e], p);
    found[i] = count & 1;
}

Study polygon("points_in_polygon_all_edges", "geometry", 1 << 20, "which of 1048576 points lie within a polygon of 600 corners",
    "every point is held against every edge, with a branch and a precise quotient where it crosses",
    {{"slopes", "slopes worked out before, edges in shared memory, no branch", {"branch_divergence", "expensive_math"}},
        {"slabs", "only the edges of the point's slab", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> corners(2 * CORNERS), edges, sorted;
        for (int k = 0; k < CORNERS; ++k) {
            double angle = 2.0 * 3.14159265358979 * k / CORNERS, radius = 0.6 + 0.35 * std::sin(9 * angle) * std::cos(31 * angle);
            corners[2 * k] = static_cast<float>(radius * std::cos(angle)), corners[2 * k + 1] = static_cast<float>(radius * std::sin(angle));
        }
        for (int k = 0; k < CORNERS; ++k) {
            const float *a = &corners[2 * k], *c = &corners[2 * ((k + CORNERS - 1) % CORNERS)];
            double rise = (static_cast<double>(c[0]) - a[0]) / (a[1] == c[1] ? 1e-9 : static_cast<double>(c[1]) - a[1]);
            for (float value : {std::min(a[1], c[1]), std::max(a[1], c[1]), static_cast<float>(rise), static_cast<float>(a[0] - rise * a[1])}) edges.push_back(value);
        }
        std::vector<int> start{0};
        for (int slab = 0; slab < SLABS; ++slab) {
            double low = slab * 2.0 / SLABS - 1.0 - 1e-5, high = low + 2.0 / SLABS + 2e-5;
            for (int k = 0; k < CORNERS; ++k)
                if (edges[4 * k] <= high && edges[4 * k + 1] >= low) sorted.insert(sorted.end(), &edges[4 * k], &edges[4 * k] + 4);
            start.push_back(static_cast<int>(sorted.size() / 4));
        }
        // A point on an edge may fall to either side; these lie on a grid away from them.
        std::vector<float> points(2 * n);
        for (int i = 0; i < n; ++i)
            for (unsigned draw = 0, near = 1; near; ++draw) {
                unsigned h = hash(3 * i + 1000003 * draw);
                points[2 * i] = (h % 65536) / 32768.f - 1.f, points[2 * i + 1] = (h / 65536 + 0.37f) / 32768.f - 1.f;
                near = 0;
                int slab = static_cast<int>((points[2 * i + 1] + 1.f) * (SLABS / 2));
                for (int e = start[slab]; e < start[slab + 1]; ++e) {
                    double y = points[2 * i + 1], x = sorted[4 * e + 2] * y + sorted[4 * e + 3];
                    near |= std::abs(x - points[2 * i]) < 1e-4 && y > sorted[4 * e] - 1e-5 && y < sorted[4 * e + 1] + 1e-5;
                }
            }
        float *places = b.copy(points), *outline = b.copy(corners), *edge = b.copy(edges), *by_slab = b.copy(sorted);
        int *starts = b.copy(start), *found = b.output<int>(n), count = CORNERS;
        b.tolerance = 0.0;
        return {{"flawed", launch(inside, n / 256, 256, 0, (float2 *)places, (float2 *)outline, found, n, count)},
            {"slopes", launch(inside_slopes, n / 256, 256, 0, (float2 *)places, (float4 *)edge, found, n)},
            {"slabs", launch(inside_slabs, n / 256, 256, 0, (float2 *)places, (float4 *)by_slab, starts, found, n)}};
    });

// --- keys along Morton's curve ---

using Key = unsigned long long;

__device__ __forceinline__ unsigned quantised(float x) { return min(static_cast<unsigned>(fmaxf(x, 0.f) * 2097152.f), 2097151u); }
__global__ void morton(const float *x, const float *y, const float *z, Key *keys, int n, int bits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Key a = quantised(x[i]), b = quantised(y[i]), c = quantised(z[i]), key = 0;
    for (int k = 0; k < bits; ++k) key |= ((a >> k) & 1) << (3 * k) | ((b >> k) & 1) << (3 * k + 1) | ((c >> k) & 1) << (3 * k + 2);
    keys[i] = key;
}
__device__ __forceinline__ Key apart(Key v) {
    v = (v | v << 32) & 0x001f00000000ffffull;
    v = (v | v << 16) & 0x001f0000ff0000ffull;
    v = (v | v << 8) & 0x100f00f00f00f00full;
    v = (v | v << 4) & 0x10c30c30c30c30c3ull;
    return (v | v << 2) & 0x1249249249249249ull;
}
__global__ void morton_masks(const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, Key *__restrict__ keys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) keys[i] = apart(quantised(x[i])) | apart(quantised(y[i])) << 1 | apart(quantised(z[i])) << 2;
}
// Seven bits at once from a table in shared memory.
__global__ void __launch_bounds__(256) morton_table(const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, Key *__restrict__ keys, int n) {
    __shared__ unsigned table[128];
    if (threadIdx.x < 128) table[threadIdx.x] = static_cast<unsigned>(apart(threadIdx.x));
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        unsigned a = quantised(x[i]), b = quantised(y[i]), c = quantised(z[i]);
        Key key = 0;
#pragma unroll
        for (int part = 2; part >= 0; --part) {
            int shift = 7 * part;
            key = key << 21 | (table[a >> shift & 127] | table[b >> shift & 127] << 1 | table[c >> shift & 127] << 2);
        }
        keys[i] = key;
    }
}

Study morton_keys("morton_bits_one_by_one", "geometry", 1 << 24, "keys of 63 bits along Morton's curve for 16777216 points",
    "bits are placed one by one in 64-bit shifts by a count known at run time",
    {{"masks", "five shifts and masks a coordinate", {"integer_arithmetic"}}, {"table", "seven bits at once from a table in shared memory", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        float *at[3];
        for (float *&one : at) one = b.random<float>(n, 0, 1);
        Key *keys = (Key *)b.output<unsigned>(2 * n);
        int bits = 21;
        b.tolerance = 0.0;
        return {{"flawed", launch(morton, n / 256, 256, 0, at[0], at[1], at[2], keys, n, bits)}, {"masks", launch(morton_masks, n / 256, 256, 0, at[0], at[1], at[2], keys, n)},
            {"table", launch(morton_table, 8 * multiprocessors(), 256, 0, at[0], at[1], at[2], keys, n)}};
    });

// --- a phase vocoder's true frequencies of each bin ---

constexpr int BINS = 1024;
constexpr float PI = 3.14159265f;

// Each bin turns by up to two fifths of a turn more or less than its middle.
__global__ void fill_spectra(float2 *spectra) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
    float drift = (hash(k) % 1024) / 1024.f * 0.8f - 0.4f, turn = t * drift;
    float phase = 2.f * PI * (turn - rintf(turn) + t % 4 * (k % 4) % 4 * 0.25f), size = 0.1f + (hash(t * BINS + k) % 1024) / 1024.f;
    spectra[t * BINS + k] = {size * cosf(phase), size * sinf(phase)};
}
__global__ void true_frequencies(const float2 *spectra, float *frequencies, int frames) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y + 1;
    float2 now = spectra[t * BINS + k], before = spectra[(t - 1) * BINS + k];
    float expected = 2.f * PI * (k % 4) / 4.f;  // a hop is a quarter of a window
    float change = atan2f(now.y, now.x) - atan2f(before.y, before.x) - expected;
    change = fmodf(change + PI, 2.f * PI);
    if (change < 0.f) change += 2.f * PI;
    frequencies[t * BINS + k] = k + (change - PI) * (4.f / (2.f * PI));
}
__global__ void true_frequencies_rounded(const float2 *__restrict__ spectra, float *__restrict__ frequencies, int frames) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y + 1;
    float2 now = spectra[t * BINS + k], before = spectra[(t - 1) * BINS + k];
    float change = (atan2f(now.y, now.x) - atan2f(before.y, before.x)) * (0.5f / PI) - 0.25f * (k % 4);
    frequencies[t * BINS + k] = k + (change - rintf(change)) * 4.f;
}
// The angle of a product is the difference of the angles; a quarter turn swaps real and imaginary parts.
__global__ void true_frequencies_product(const float2 *__restrict__ spectra, float *__restrict__ frequencies, int frames) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y + 1;
    float2 now = spectra[t * BINS + k], before = spectra[(t - 1) * BINS + k];
    float re = now.x * before.x + now.y * before.y, im = now.y * before.x - now.x * before.y;
    if (k & 2) re = -re, im = -im;
    if (k & 1) {
        float old = re;
        re = im, im = -old;
    }
    frequencies[t * BINS + k] = k + atan2f(im, re) * (2.f / PI);
}

Study vocoder("true_frequencies_two_angles_and_fmod", "sound", 16384, "frequencies of 1024 bins from the turn of their phase, 16384 frames",
    "each phase is worked out for two frames, and their difference is wrapped by fmod",
    {{"rounded", "wrapped by rounding", {"expensive_math"}}, {"product", "one angle, of the product of both values", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *spectra = b.allocate<float>(2 * BINS * (n + 1)), *frequencies = b.changed<float>(b.random<float>(BINS * (n + 1)), BINS * (n + 1));
        launch(fill_spectra, dim3(BINS / 256, n + 1), 256, 0, (float2 *)spectra)();
        b.tolerance = 1e-5;
        dim3 grid(BINS / 256, n);
        return {{"flawed", launch(true_frequencies, grid, 256, 0, (float2 *)spectra, frequencies, n)},
            {"rounded", launch(true_frequencies_rounded, grid, 256, 0, (float2 *)spectra, frequencies, n)},
            {"product", launch(true_frequencies_product, grid, 256, 0, (float2 *)spectra, frequencies, n)}};
    });

// --- four frames of a film made one, as noise is taken away; nothing is wrong with it ---

__global__ void __launch_bounds__(256) four_frames(const uint4 *__restrict__ frames, uint4 *__restrict__ out, int words) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint4 f[4] = {frames[i], frames[i + words], frames[i + 2 * words], frames[i + 3 * words]}, mean;
    auto one = [](unsigned a, unsigned b) { return __vavgu4(a, b); };
    mean.x = one(one(f[0].x, f[1].x), one(f[2].x, f[3].x)), mean.y = one(one(f[0].y, f[1].y), one(f[2].y, f[3].y));
    mean.z = one(one(f[0].z, f[1].z), one(f[2].z, f[3].z)), mean.w = one(one(f[0].w, f[1].w), one(f[2].w, f[3].w));
    out[i] = mean;
}

Study sound_frames("sound_four_frames", "video", 1 << 22, "the mean of four frames of 67108864 bytes", "", {},
    [](Buffers &b, long n) -> Sides {
        unsigned char *frames = b.random<unsigned char>(64 * n, 0, 256), *out = b.output<unsigned char>(16 * n);
        return {{"sound", launch(four_frames, n / 256, 256, 0, (uint4 *)frames, (uint4 *)out, n)}};
    });

}  // namespace
