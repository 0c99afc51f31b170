// Maps, meshes, exposures, lights, skeletons and films.
#include <cmath>

#include <cooperative_groups.h>

#include "../pairs/pair.cuh"

namespace cg = cooperative_groups;

namespace {

// --- what a satellite saw at places of a survey ---

struct Place {
    double east, north;
};
// Where pixels lie, and how many there are to a metre.
struct Frame {
    double west, top, per_metre;
    int columns;
    __device__ long long pixel(const Place &place) const {
        return static_cast<long long>((top - place.north) * per_metre) * columns + static_cast<long long>((place.east - west) * per_metre);
    }
};
struct Bands {
    const unsigned short *red, *infrared, *far, *blue;
};

__device__ __forceinline__ float2 plants(float red, float infrared, float far, float blue) {
    return make_float2(2.5f * (infrared - red) / (infrared + 6.0f * red + 1.0f + 0.01f * blue), (infrared - far) / (infrared + far + 1.0f));
}
__global__ void survey(const Place *places, Frame frame, Bands bands, float2 *found, int count) {
    const int k = blockDim.x * blockIdx.x + threadIdx.x;
    if (k < count) {
        const long long at = frame.pixel(places[k]);
        found[k] = plants(__ldg(bands.red + at), __ldg(bands.infrared + at), __ldg(bands.far + at), __ldg(bands.blue + at));
    }
}
__global__ void survey_interleaved(const Place *places, Frame frame, const ushort4 *bands, float2 *found, int count) {
    const int k = blockDim.x * blockIdx.x + threadIdx.x;
    if (k < count) {
        const ushort4 seen = __ldg(bands + frame.pixel(places[k]));
        found[k] = plants(seen.x, seen.y, seen.z, seen.w);
    }
}

Study satellite("plants_at_survey_places_from_four_bands", "remote sensing", 3000000, "two indices of plants at three million places, from four bands of 6000 x 5000 pixels",
    "each band is a picture of its own: four far look-ups for a place",
    {{"interleaved", "the four bands of a pixel beside each other", {"cache_locality", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int columns = 6000, rows = 5000;
        const size_t pixels = static_cast<size_t>(columns) * rows;
        std::vector<unsigned short> planes[4];
        std::vector<ushort4> together(pixels);
        for (unsigned band = 0; band < 4; band++) {
            planes[band].resize(pixels);
            for (size_t i = 0; i < pixels; i++) planes[band][i] = static_cast<unsigned short>((static_cast<unsigned>(i) * (2654435761u + 81006u * band)) >> 19);
        }
        for (size_t i = 0; i < pixels; i++) together[i] = make_ushort4(planes[0][i], planes[1][i], planes[2][i], planes[3][i]);
        std::vector<Place> places(n);
        for (long i = 0; i < n; i++) {
            const unsigned x = hash(static_cast<unsigned>(2 * i)) % columns, y = hash(static_cast<unsigned>(2 * i + 1)) % rows;
            places[i] = {500000.0 + 30.0 * (x + 0.5), 4900000.0 - 30.0 * (y + 0.5)};
        }
        const Frame frame = {500000.0, 4900000.0, 1.0 / 30.0, columns};
        const Bands bands = {b.copy(planes[0]), b.copy(planes[1]), b.copy(planes[2]), b.copy(planes[3])};
        const ushort4 *mixed = b.copy(together);
        const Place *where = b.copy(places);
        float2 *found = reinterpret_cast<float2 *>(b.output<float>(2 * n));
        const int count = static_cast<int>(n);
        return {{"flawed", launch(survey, blocks(n, 192), 192, 0, where, frame, bands, found, count)}, {"interleaved", launch(survey_interleaved, blocks(n, 192), 192, 0, where, frame, mixed, found, count)}};
    });

// --- a mesh made smoother ---

struct Mesh {
    const long long *rings;  // where each vertex' neighbours begin
    const int *neighbours;
    const float3 *places;
    int vertices;
};

__device__ __forceinline__ float3 nearer(float3 own, float3 sum, float share) {
    return {0.5f * own.x + share * sum.x, 0.5f * own.y + share * sum.y, 0.5f * own.z + share * sum.z};
}
template <int Width>
__global__ void smoothed(const Mesh mesh, float3 *out) {
    const auto tile = cg::tiled_partition<Width>(cg::this_thread_block());
    const int groups = gridDim.x * (blockDim.x / Width);
    for (int vertex = blockIdx.x * (blockDim.x / Width) + threadIdx.x / Width; vertex < mesh.vertices; vertex += groups) {
        const long long begin = mesh.rings[vertex], end = mesh.rings[vertex + 1];
        float3 sum = {0.f, 0.f, 0.f};
        for (long long at = begin + tile.thread_rank(); at < end; at += Width) {
            const float3 p = mesh.places[mesh.neighbours[at]];
            sum.x += p.x, sum.y += p.y, sum.z += p.z;
        }
        for (int hop = Width / 2; hop > 0; hop /= 2) {
            sum.x += tile.shfl_down(sum.x, hop);
            sum.y += tile.shfl_down(sum.y, hop);
            sum.z += tile.shfl_down(sum.z, hop);
        }
        if (tile.thread_rank() == 0) out[vertex] = nearer(mesh.places[vertex], sum, 0.5f / static_cast<float>(end - begin));
    }
}
__global__ void smoothed_alone(const Mesh mesh, float3 *out) {
    const int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= mesh.vertices) return;
    const int *next = mesh.neighbours + mesh.rings[vertex], *const last = mesh.neighbours + mesh.rings[vertex + 1];
    const float share = 0.5f / static_cast<float>(last - next);
    float3 sum = {0.f, 0.f, 0.f};
    while (next != last) {
        const float3 p = mesh.places[*next++];
        sum.x += p.x, sum.y += p.y, sum.z += p.z;
    }
    out[vertex] = nearer(mesh.places[vertex], sum, share);
}

Study mesh("mesh_smoothed_a_warp_a_vertex", "geometry", 1500000, "each of 1500000 vertices of a mesh half way to the middle of its four to eight neighbours",
    "a warp for a vertex of six neighbours: most of its lanes have none",
    {{"alone", "a thread for a vertex", {"branch_divergence"}}, {"eight", "eight lanes for a vertex", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int wide = 1200, count = static_cast<int>(n);
        const int steps[8] = {-1, 1, -wide, wide, wide + 1, -wide - 1, wide - 1, 1 - wide};
        std::vector<long long> rings(n + 1);
        std::vector<int> neighbours;
        for (int v = 0; v < count; v++) {
            const int of = 4 + static_cast<int>(hash(v) % 5);
            for (int k = 0; k < of; k++) neighbours.push_back((v + steps[k] + count) % count);
            rings[v + 1] = static_cast<long long>(neighbours.size());
        }
        const Mesh mesh = {b.copy(rings), b.copy(neighbours), reinterpret_cast<const float3 *>(b.random<float>(3 * n)), count};
        float3 *out = reinterpret_cast<float3 *>(b.output<float>(3 * n));
        return {{"flawed", launch(smoothed<32>, 16 * multiprocessors(), 128, 0, mesh, out)}, {"alone", launch(smoothed_alone, blocks(n, 128), 128, 0, mesh, out)},
            {"eight", launch(smoothed<8>, 16 * multiprocessors(), 128, 0, mesh, out)}};
    });

// --- exposures of the same sky ---

constexpr int EXPOSURES = 15, MIDDLE = 5;

// The mean of the middle five of fifteen.
__global__ void stacked(const unsigned short *exposures, float *sky, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const int size = width * height, pixel = y * width + x;
    unsigned short seen[EXPOSURES];
    for (int k = 0; k < EXPOSURES; k++) seen[k] = exposures[k * size + pixel];
    int sum = 0;
    for (int k = 0; k < 2 * MIDDLE; k++) {
        int least = k;
        for (int other = k + 1; other < EXPOSURES; other++)
            if (seen[other] < seen[least]) least = other;
        const unsigned short value = seen[least];
        seen[least] = seen[k];
        seen[k] = value;
        if (k >= MIDDLE) sum += value;
    }
    sky[pixel] = 0.2f * static_cast<float>(sum);
}
__device__ __forceinline__ void in_order(int &a, int &b) {
    const int lower = min(a, b);
    b = max(a, b);
    a = lower;
}
__global__ void stacked_network(const unsigned short *exposures, float *sky, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const int size = width * height, pixel = y * width + x;
    int seen[EXPOSURES];
#pragma unroll
    for (int k = 0; k < EXPOSURES; k++) seen[k] = exposures[k * size + pixel];
#pragma unroll
    for (int round = 0; round < EXPOSURES; round++)
#pragma unroll
        for (int k = round & 1; k + 1 < EXPOSURES; k += 2) in_order(seen[k], seen[k + 1]);
    int sum = 0;
#pragma unroll
    for (int k = MIDDLE; k < 2 * MIDDLE; k++) sum += seen[k];
    sky[pixel] = 0.2f * static_cast<float>(sum);
}

Study exposures("exposures_stacked_by_selection", "astronomy", 1500, "the mean of the middle five of fifteen exposures of 2000 x 1500 pixels",
    "values are exchanged at places known only at run time: the list lies in local memory",
    {{"network", "a network of minima and maxima in registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 2000, height = static_cast<int>(n);
        std::vector<unsigned short> list(static_cast<size_t>(EXPOSURES) * width * height);
        for (size_t i = 0; i < list.size(); i++) list[i] = static_cast<unsigned short>(1000 + hash(static_cast<unsigned>(i)) % 3000);
        const unsigned short *frames = b.copy(list);
        float *sky = b.output<float>(static_cast<size_t>(width) * height);
        const dim3 block(64, 4), grid(blocks(width, 64), blocks(height, 4));
        return {{"flawed", launch(stacked, grid, block, 0, frames, sky, width, height)}, {"network", launch(stacked_network, grid, block, 0, frames, sky, width, height)}};
    });

// --- lights of a scene: three mantissas and a common exponent ---

__device__ __forceinline__ __half light(int mantissa, int exponent) { return __float2half_rn(static_cast<float>(mantissa) * __int_as_float((exponent - 9) << 23)); }

__global__ void lights(const unsigned char *file, __half *texels, long long values) {
    const long long jump = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    while (i < values) {
        texels[i] = (i & 3) == 3 ? __float2half_rn(1.0f) : light(file[i], file[i | 3]);
        i += jump;
    }
}
struct alignas(8) Texel {
    __half red, green, blue, alpha;
};
__global__ void lights_whole(const uchar4 *file, Texel *texels, long long count) {
    const long long jump = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    while (i < count) {
        const uchar4 own = file[i];
        texels[i] = Texel{light(own.x, own.w), light(own.y, own.w), light(own.z, own.w), __float2half_rn(1.0f)};
        i += jump;
    }
}

Study scene("texels_of_light_a_thread_a_colour", "rendering", 18000000, "18 million texels of three mantissas and an exponent as four halves",
    "a thread makes one colour: a byte in, two out, and the exponent once more",
    {{"whole", "a thread a texel: four bytes in, eight out", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> list(4 * n);
        for (long i = 0; i < n; i++) {
            const unsigned any = hash(static_cast<unsigned>(i));
            for (int k = 0; k < 3; k++) list[4 * i + k] = static_cast<unsigned char>(any >> (8 * k));
            list[4 * i + 3] = static_cast<unsigned char>(118 + (any >> 24) % 20);
        }
        const unsigned char *file = b.copy(list);
        __half *texels = b.output<__half>(4 * n);
        const int grid = 8 * multiprocessors();
        b.tolerance = 0.0;
        return {{"flawed", launch(lights, grid, 256, 0, file, texels, 4LL * n)}, {"whole", launch(lights_whole, grid, 256, 0, reinterpret_cast<const uchar4 *>(file), reinterpret_cast<Texel *>(texels), static_cast<long long>(n))}};
    });

// --- hair that follows bones ---

constexpr int BONES = 96;

struct Bone {
    float to[3][4];  // rotated, scaled and moved
    float length, twist, bend, stiffness;
};
struct BoneApart : Bone {
    float apart;
};

template <class Stored>
__global__ void __launch_bounds__(320) skinned(const Bone *skeleton, const float3 *rest, const uchar4 *bones, const uchar4 *weights, float3 *moved, int vertices) {
    __shared__ Stored posed[BONES];
    if (threadIdx.x < BONES) static_cast<Bone &>(posed[threadIdx.x]) = skeleton[threadIdx.x];
    __syncthreads();
    for (int v = blockIdx.x * 320 + threadIdx.x; v < vertices; v += gridDim.x * 320) {
        const float3 p = rest[v];
        const uchar4 bone = bones[v], weight = weights[v];
        const int which[4] = {bone.x, bone.y, bone.z, bone.w};
        const float shares[4] = {weight.x * (1.f / 255.f), weight.y * (1.f / 255.f), weight.z * (1.f / 255.f), weight.w * (1.f / 255.f)};
        float sum[3] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const Bone &own = posed[which[k]];
#pragma unroll
            for (int axis = 0; axis < 3; axis++) sum[axis] += shares[k] * (own.to[axis][0] * p.x + own.to[axis][1] * p.y + own.to[axis][2] * p.z + own.to[axis][3]);
        }
        moved[v] = make_float3(sum[0], sum[1], sum[2]);
    }
}
__global__ void __launch_bounds__(320) skinned_planes(const Bone *skeleton, const float3 *rest, const uchar4 *bones, const uchar4 *weights, float3 *moved, int vertices) {
    __shared__ float to[3][4][BONES];
    for (int i = threadIdx.x; i < 12 * BONES; i += 320) to[i / BONES / 4][i / BONES % 4][i % BONES] = skeleton[i % BONES].to[i / BONES / 4][i / BONES % 4];
    __syncthreads();
    for (int v = blockIdx.x * 320 + threadIdx.x; v < vertices; v += gridDim.x * 320) {
        const float3 p = rest[v];
        const uchar4 bone = bones[v], weight = weights[v];
        const int which[4] = {bone.x, bone.y, bone.z, bone.w};
        const float shares[4] = {weight.x * (1.f / 255.f), weight.y * (1.f / 255.f), weight.z * (1.f / 255.f), weight.w * (1.f / 255.f)};
        float sum[3] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int own = which[k];
#pragma unroll
            for (int axis = 0; axis < 3; axis++) sum[axis] += shares[k] * (to[axis][0][own] * p.x + to[axis][1][own] * p.y + to[axis][2][own] * p.z + to[axis][3][own]);
        }
        moved[v] = make_float3(sum[0], sum[1], sum[2]);
    }
}

Study skin("hair_moved_by_bones_in_shared", "games", 4000000, "four million vertices of hair moved by four of 96 bones each",
    "bones are structures of sixteen words in shared memory, and each lane wants another",
    {{"planes", "a plane in shared memory for each number of a bone", {"shared_bank_conflicts"}}, {"apart", "bones seventeen words apart", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Bone> skeleton(BONES);
        for (int k = 0; k < BONES; k++)
            for (int i = 0; i < 16; i++) (i < 12 ? skeleton[k].to[i / 4][i % 4] : skeleton[k].length) = hash(16 * k + i) / 4294967296.0f - 0.5f;
        const Bone *poses = b.copy(skeleton);
        const float3 *rest = reinterpret_cast<const float3 *>(b.random<float>(3 * n));
        std::vector<uchar4> near(n);
        for (long v = 0; v < n; v++) {
            const auto bone = [v](int k) { return static_cast<unsigned char>((v + k) % BONES); };  // a strand of hair after the other, each with bones of its own
            near[v] = make_uchar4(bone(0), bone(1), bone(32), bone(95));
        }
        const uchar4 *bones = b.copy(near), *weights = reinterpret_cast<const uchar4 *>(b.random<unsigned char>(4 * n, 0.0, 256.0));
        float3 *moved = reinterpret_cast<float3 *>(b.output<float>(3 * n));
        const int grid = 6 * multiprocessors(), count = static_cast<int>(n);
        return {{"flawed", launch(skinned<Bone>, grid, 320, 0, poses, rest, bones, weights, moved, count)}, {"planes", launch(skinned_planes, grid, 320, 0, poses, rest, bones, weights, moved, count)},
            {"apart", launch(skinned<BoneApart>, grid, 320, 0, poses, rest, bones, weights, moved, count)}};
    });

// --- a frame from its neighbours in time ---

constexpr int FRAMES = 11;

struct Taps {
    float weight[FRAMES];
};

__global__ void calmed(const __half *film, __half *frame, Taps taps, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    frame[i] = __float2half(0.0f);
    const __half *seen = film + i;
    int k = 0;
    do {
        frame[i] = __float2half(__half2float(frame[i]) + taps.weight[k] * __half2float(*seen));
        seen += pixels;
    } while (++k < FRAMES);
}
__global__ void calmed_once(const __half *__restrict__ film, __half *__restrict__ frame, Taps taps, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < FRAMES; k++) sum += taps.weight[k] * __half2float(film[k * pixels + i]);
    frame[i] = __float2half(sum);
}
__global__ void calmed_pairs(const __half2 *__restrict__ film, __half2 *__restrict__ frame, Taps taps, int couples) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= couples) return;
    float2 sum = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < FRAMES; k++) {
        const float2 seen = __half22float2(film[k * couples + i]);
        sum.x += taps.weight[k] * seen.x, sum.y += taps.weight[k] * seen.y;
    }
    frame[i] = __float22half2_rn(sum);
}

Study film("film_calmed_in_its_own_frame", "video", 2160, "a frame of 3840 x 2160 as a weighted sum of eleven, in half precision",
    "the sum lies in the frame itself: read and written again for each of eleven",
    {{"once", "the sum in a register", {"memory_latency", "redundant_loads"}}, {"pairs", "two pixels a thread, sums in registers", {"memory_latency", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const long pixels = n * 3840;
        const __half *film = b.random<__half>(FRAMES * pixels, 0.0, 1.0);
        __half *frame = b.output<__half>(pixels);
        Taps taps = {};
        for (int k = 0; k < FRAMES; k++) taps.weight[k] = (6 - std::abs(k - 5)) / 36.0f;
        const int all = static_cast<int>(pixels);
        b.tolerance = 5e-3;
        return {{"flawed", launch(calmed, blocks(pixels, 384), 384, 0, film, frame, taps, all)}, {"once", launch(calmed_once, blocks(pixels, 384), 384, 0, film, frame, taps, all)},
            {"pairs", launch(calmed_pairs, blocks(pixels / 2, 384), 384, 0, reinterpret_cast<const __half2 *>(film), reinterpret_cast<__half2 *>(frame), taps, all / 2)}};
    });

}  // namespace
