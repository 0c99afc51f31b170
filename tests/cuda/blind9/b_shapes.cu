// Curves, transparent surfaces and proteins. Each kernel has one weakness and two or three ways out.
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- points on rational B-splines ---

constexpr int CONTROLS = 64, HIGHEST = 7, AT_ONCE = 256;  // of a curve; degree; points of a curve

struct Curve {
    const float4 *controls;
    const float *knots;
    int degree;

    __device__ __forceinline__ Curve(const float4 *controls, const float *knots, int degree, int number)
        : controls(controls + number * CONTROLS), knots(knots + number * (CONTROLS + degree + 1)), degree(degree) {}
    // The last knot that is not beyond u.
    __device__ __forceinline__ int span(float u) const {
        int low = degree, high = CONTROLS;
        while (high - low > 1) {
            int middle = (low + high) / 2;
            if (knots[middle] <= u) low = middle;
            else high = middle;
        }
        return low;
    }
};
__device__ __forceinline__ float parameter() { return (threadIdx.x + 0.5f) / AT_ONCE; }
__device__ __forceinline__ float4 weighted(float w, float4 point, float4 sum) {
    return {fmaf(w, point.x, sum.x), fmaf(w, point.y, sum.y), fmaf(w, point.z, sum.z), fmaf(w, point.w, sum.w)};
}
__device__ __forceinline__ float4 projected(float4 p) { return {p.x / p.w, p.y / p.w, p.z / p.w, p.w}; }

__global__ void spline_points(const float4 *controls, const float *knots, float4 *out, int degree) {
    Curve curve(controls, knots, degree, blockIdx.x);
    float u = parameter(), left[HIGHEST + 1], right[HIGHEST + 1], basis[HIGHEST + 1];
    int span = curve.span(u);
    basis[0] = 1.f;
    for (int j = 1; j <= degree; ++j) {
        left[j] = u - curve.knots[span + 1 - j], right[j] = curve.knots[span + j] - u;
        float saved = 0.f;
        for (int r = 0; r < j; ++r) {
            float part = basis[r] / (right[r + 1] + left[j - r]);
            basis[r] = saved + right[r + 1] * part;
            saved = left[j - r] * part;
        }
        basis[j] = saved;
    }
    float4 sum = {};
    for (int j = 0; j <= degree; ++j) sum = weighted(basis[j], curve.controls[span - degree + j], sum);
    out[blockIdx.x * AT_ONCE + threadIdx.x] = projected(sum);
}
template <int DEGREE>
__global__ void __launch_bounds__(AT_ONCE) spline_points_fixed(const float4 *__restrict__ controls, const float *__restrict__ knots, float4 *__restrict__ out) {
    Curve curve(controls, knots, DEGREE, blockIdx.x);
    float u = parameter(), left[DEGREE + 1], right[DEGREE + 1], basis[DEGREE + 1] = {1.f};
    int span = curve.span(u);
#pragma unroll
    for (int j = 1; j <= DEGREE; ++j) {
        left[j] = u - curve.knots[span + 1 - j], right[j] = curve.knots[span + j] - u;
        float saved = 0.f;
#pragma unroll
        for (int r = 0; r < j; ++r) {
            float part = basis[r] / (right[r + 1] + left[j - r]);
            basis[r] = saved + right[r + 1] * part;
            saved = left[j - r] * part;
        }
        basis[j] = saved;
    }
    float4 sum = {};
#pragma unroll
    for (int j = 0; j <= DEGREE; ++j) sum = weighted(basis[j], curve.controls[span - DEGREE + j], sum);
    out[blockIdx.x * AT_ONCE + threadIdx.x] = projected(sum);
}
// By corner cutting: the control points around are drawn together, knot by knot.
template <int DEGREE>
__global__ void __launch_bounds__(AT_ONCE) spline_points_cut(const float4 *__restrict__ controls, const float *__restrict__ knots, float4 *__restrict__ out) {
    Curve curve(controls, knots, DEGREE, blockIdx.x);
    float u = parameter();
    int span = curve.span(u);
    float4 points[DEGREE + 1];
#pragma unroll
    for (int j = 0; j <= DEGREE; ++j) points[j] = curve.controls[span - DEGREE + j];
#pragma unroll
    for (int round = 1; round <= DEGREE; ++round)
#pragma unroll
        for (int j = DEGREE; j >= round; --j) {
            float low = curve.knots[span - DEGREE + j], share = (u - low) / (curve.knots[span + 1 + j - round] - low), rest = 1.f - share;
            float4 a = points[j - 1], c = points[j];
            points[j] = {rest * a.x + share * c.x, rest * a.y + share * c.y, rest * a.z + share * c.z, rest * a.w + share * c.w};
        }
    out[blockIdx.x * AT_ONCE + threadIdx.x] = projected(points[DEGREE]);
}
// Strips of shared memory, for any degree.
__global__ void __launch_bounds__(AT_ONCE) spline_points_shared(const float4 *__restrict__ controls, const float *__restrict__ knots, float4 *__restrict__ out, int degree) {
    extern __shared__ float strips[];
    Curve curve(controls, knots, degree, blockIdx.x);
    float u = parameter(), *left = strips + threadIdx.x, *right = left + (degree + 1) * AT_ONCE, *basis = right + (degree + 1) * AT_ONCE;
    int span = curve.span(u);
    basis[0] = 1.f;
    for (int j = 1; j <= degree; ++j) {
        left[j * AT_ONCE] = u - curve.knots[span + 1 - j], right[j * AT_ONCE] = curve.knots[span + j] - u;
        float saved = 0.f;
        for (int r = 0; r < j; ++r) {
            float part = basis[r * AT_ONCE] / (right[(r + 1) * AT_ONCE] + left[(j - r) * AT_ONCE]);
            basis[r * AT_ONCE] = saved + right[(r + 1) * AT_ONCE] * part;
            saved = left[(j - r) * AT_ONCE] * part;
        }
        basis[j * AT_ONCE] = saved;
    }
    float4 sum = {};
    for (int j = 0; j <= degree; ++j) sum = weighted(basis[j * AT_ONCE], curve.controls[span - degree + j], sum);
    out[blockIdx.x * AT_ONCE + threadIdx.x] = projected(sum);
}

Study splines("spline_basis_degree_at_run_time", "geometry", 1 << 14, "256 points on each of 16384 rational B-splines of degree three and 64 control points",
    "the basis is built up in arrays for any degree, which lie in local memory",
    {{"fixed", "the degree as a template's argument, arrays in registers", {"local_memory"}},
        {"cut", "the control points drawn together in registers, no basis", {"local_memory"}},
        {"shared", "strips of shared memory, a word a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int DEGREE = 3, INNER = CONTROLS - DEGREE;
        std::mt19937 random(31);
        std::uniform_real_distribution<float> noise(-1.f, 1.f);
        std::vector<float> knots, controls;
        for (long c = 0; c < n; ++c) {
            for (int k = 0; k < CONTROLS + DEGREE + 1; ++k) {
                int inner = std::min(std::max(k - DEGREE, 0), INNER);
                knots.push_back((inner + (inner > 0 && inner < INNER ? 0.3f * noise(random) : 0.f)) / INNER);
            }
            for (int k = 0; k < CONTROLS; ++k) {
                float weight = 1.5f + 0.5f * noise(random);
                controls.insert(controls.end(), {weight * noise(random), weight * noise(random), weight * noise(random), weight});
            }
        }
        auto *points = (float4 *)b.copy(controls), *out = (float4 *)b.output<float>(4 * n * AT_ONCE);
        float *at = b.copy(knots);
        return {{"flawed", launch(spline_points, n, AT_ONCE, 0, points, at, out, DEGREE)}, {"fixed", launch(spline_points_fixed<DEGREE>, n, AT_ONCE, 0, points, at, out)},
            {"cut", launch(spline_points_cut<DEGREE>, n, AT_ONCE, 0, points, at, out)},
            {"shared", launch(spline_points_shared, n, AT_ONCE, 3 * (DEGREE + 1) * AT_ONCE * sizeof(float), points, at, out, DEGREE)}};
    });

// --- transparent surfaces behind each other, sorted and blended ---

constexpr int LAYERS = 16, ROOM = 64, PIXELS = 128;  // at most behind a pixel; what a list has room for; of a block

struct Fragments {
    const float *depths;  // a plane for each layer
    const unsigned *colours;
    const int *counts;
    int pixels;
};
// Colours from near to far, and the light that is let through.
struct Blend {
    float red = 0.f, green = 0.f, blue = 0.f, through = 1.f;

    __device__ __forceinline__ void add(unsigned colour) {
        float part = through * (colour >> 24) * (1.f / 255.f);
        red = fmaf(part, colour & 255, red), green = fmaf(part, colour >> 8 & 255, green), blue = fmaf(part, colour >> 16 & 255, blue);
        through -= part;
    }
    __device__ __forceinline__ float4 result() const { return {red, green, blue, through}; }
};
__global__ void __launch_bounds__(PIXELS) resolve(Fragments fragments, float4 *out, int room) {
    extern __shared__ float lists[];
    float *depths = lists + threadIdx.x;
    auto *colours = reinterpret_cast<unsigned *>(depths + room * PIXELS);
    int pixel = blockIdx.x * PIXELS + threadIdx.x;
    if (pixel >= fragments.pixels) return;
    int count = fragments.counts[pixel];
    for (int i = 0; i < count; ++i) {
        float depth = fragments.depths[i * fragments.pixels + pixel];
        unsigned colour = fragments.colours[i * fragments.pixels + pixel];
        int k = i;
        for (; k > 0 && depths[(k - 1) * PIXELS] > depth; --k)
            depths[k * PIXELS] = depths[(k - 1) * PIXELS], colours[k * PIXELS] = colours[(k - 1) * PIXELS];
        depths[k * PIXELS] = depth, colours[k * PIXELS] = colour;
    }
    Blend blend;
    for (int i = 0; i < count; ++i) blend.add(colours[i * PIXELS]);
    out[pixel] = blend.result();
}
// All layers in registers, neighbours exchanged in 16 rounds.
__global__ void __launch_bounds__(PIXELS) resolve_registers(Fragments fragments, float4 *__restrict__ out) {
    int pixel = blockIdx.x * PIXELS + threadIdx.x;
    if (pixel >= fragments.pixels) return;
    int count = fragments.counts[pixel];
    float depths[LAYERS];
    unsigned colours[LAYERS];
#pragma unroll
    for (int i = 0; i < LAYERS; ++i) {
        depths[i] = i < count ? fragments.depths[i * fragments.pixels + pixel] : 2.f;
        colours[i] = i < count ? fragments.colours[i * fragments.pixels + pixel] : 0;
    }
#pragma unroll
    for (int round = 0; round < LAYERS; ++round)
#pragma unroll
        for (int i = round % 2; i + 1 < LAYERS; i += 2) {
            bool turned = depths[i] > depths[i + 1];
            float near = fminf(depths[i], depths[i + 1]);
            unsigned colour = turned ? colours[i + 1] : colours[i];
            depths[i + 1] = fmaxf(depths[i], depths[i + 1]), colours[i + 1] = turned ? colours[i] : colours[i + 1];
            depths[i] = near, colours[i] = colour;
        }
    Blend blend;
#pragma unroll
    for (int i = 0; i < LAYERS; ++i) blend.add(colours[i]);
    out[pixel] = blend.result();
}

Study transparency("fragments_sorted_with_room_for_64", "rendering", 1 << 19, "up to 16 transparent surfaces behind each of 524288 pixels, sorted by depth and blended",
    "a thread has room for 64 surfaces in shared memory: three blocks of 128 threads a multiprocessor",
    {{"room_for_16", "room for as many as there are", {"low_occupancy"}}, {"registers", "16 surfaces in registers, sorted by exchanges of neighbours", {"low_occupancy", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        Fragments fragments{b.random<float>(LAYERS * n, 0.0, 1.0), b.random<unsigned>(LAYERS * n, 0, 4294967295.0), b.random<int>(n, 2, LAYERS + 1), static_cast<int>(n)};
        auto *out = (float4 *)b.output<float>(4 * n);
        size_t layer = PIXELS * (sizeof(float) + sizeof(unsigned));
        return {{"flawed", launch(resolve, blocks(n, PIXELS), PIXELS, ROOM * layer, fragments, out, ROOM)},
            {"room_for_16", launch(resolve, blocks(n, PIXELS), PIXELS, LAYERS * layer, fragments, out, LAYERS)},
            {"registers", launch(resolve_registers, blocks(n, PIXELS), PIXELS, 0, fragments, out)}};
    });

// --- from the letters of genes to those of proteins ---

// The two bits that tell A, C, T and G apart.
__device__ __forceinline__ unsigned bits_of(unsigned letter) { return letter >> 1 & 3; }
// Of the three lowest bytes.
__device__ __forceinline__ unsigned codon(unsigned letters) { return bits_of(letters & 255) << 4 | bits_of(letters >> 8 & 255) << 2 | bits_of(letters >> 16 & 255); }

__global__ void translate(const unsigned char *letters, const unsigned char *code, unsigned char *proteins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned char *three = letters + 3 * i;
    proteins[i] = code[bits_of(three[0]) << 4 | bits_of(three[1]) << 2 | bits_of(three[2])];
}
// Four letters of a protein, from three words.
template <typename Code>
__device__ __forceinline__ unsigned four_letters(unsigned a, unsigned b, unsigned c, Code code) {
    return code[codon(a)] | code[codon(__funnelshift_r(a, b, 24))] << 8 | code[codon(__funnelshift_r(b, c, 16))] << 16 | static_cast<unsigned>(code[codon(c >> 8)]) << 24;
}
__global__ void translate_words(const unsigned *__restrict__ letters, const unsigned char *__restrict__ code, unsigned *__restrict__ proteins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    proteins[i] = four_letters(letters[3 * i], letters[3 * i + 1], letters[3 * i + 2], code);
}
// 16 letters a thread, the code in shared memory.
__global__ void __launch_bounds__(128) translate_vectors(const uint4 *__restrict__ letters, const unsigned char *__restrict__ code, uint4 *__restrict__ proteins, int n) {
    __shared__ unsigned char table[64];
    if (threadIdx.x < 64) table[threadIdx.x] = code[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    uint4 a = letters[3 * i], b = letters[3 * i + 1], c = letters[3 * i + 2];
    proteins[i] = {four_letters(a.x, a.y, a.z, table), four_letters(a.w, b.x, b.y, table), four_letters(b.z, b.w, c.x, table), four_letters(c.y, c.z, c.w, table)};
}
// A block's letters come through shared memory in words, four letters of a protein a thread.
__global__ void __launch_bounds__(256) translate_staged(const unsigned *__restrict__ letters, const unsigned char *__restrict__ code, unsigned *__restrict__ proteins) {
    __shared__ unsigned words[768];
    __shared__ unsigned char table[64];
    if (threadIdx.x < 64) table[threadIdx.x] = code[threadIdx.x];
#pragma unroll
    for (int k = 0; k < 3; ++k) words[k * 256 + threadIdx.x] = letters[blockIdx.x * 768 + k * 256 + threadIdx.x];
    __syncthreads();
    const unsigned *mine = words + 3 * threadIdx.x;
    proteins[blockIdx.x * 256 + threadIdx.x] = four_letters(mine[0], mine[1], mine[2], table);
}
__global__ void draw_letters(unsigned char *letters, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) letters[i] = "ACGT"[hash(i) & 3];
}

Study translation("codons_translated_by_byte", "bioinformatics", 1 << 24, "16777216 letters of proteins from 50331648 letters of genes and a table of 64 letters",
    "a thread loads three single bytes and stores one",
    {{"words", "three words for four letters of a protein", {"narrow_access"}}, {"vectors", "three vectors for 16 letters, the table in shared memory", {"narrow_access"}},
        {"staged", "words through shared memory, four letters a thread", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const std::string amino = "KNNKTTTTIIIMRSSRQHHQPPPPLLLLRRRRXYYXSSSSLFFLXCCWEDDEAAAAVVVVGGGG";
        auto *letters = b.allocate<unsigned char>(3 * n);
        launch(draw_letters, blocks(3 * n, 256), 256, 0, letters, 3 * n)();
        CHECK_LAUNCH();
        unsigned char *code = b.copy(std::vector<unsigned char>(amino.begin(), amino.end()));
        unsigned *out = b.output<unsigned>(n / 4);
        b.tolerance = 0.0;
        return {{"flawed", launch(translate, blocks(n, 256), 256, 0, letters, code, (unsigned char *)out, n)},
            {"words", launch(translate_words, blocks(n / 4, 256), 256, 0, (unsigned *)letters, code, out, n / 4)},
            {"vectors", launch(translate_vectors, blocks(n / 16, 128), 128, 0, (uint4 *)letters, code, (uint4 *)out, n / 16)},
            {"staged", launch(translate_staged, n / 1024, 256, 0, (unsigned *)letters, code, out)}};
    });

}  // namespace
