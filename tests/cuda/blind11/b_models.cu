// Pieces of finance, computer vision, path tracing and statistics. Each kernel has one weakness and two ways out.
#include <cmath>
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- a portfolio of swaptions in the LIBOR market model ---

constexpr int RATES = 32, STEPS = 12;
constexpr float ACCRUAL = 0.25f;

struct Market {
    const float *volatility, *start;  // [RATES]
    const float *normals;             // [STEPS][paths]
    int paths, rates, steps;
};

// One step of a rate; `drift` is what the rates before it have brought.
__device__ __forceinline__ float evolve(float rate, float volatility, float shock, float &drift) {
    float step = ACCRUAL * volatility;
    drift += __fdividef(step * rate, 1.f + ACCRUAL * rate);
    return rate * __expf(step * drift + volatility * (shock - 0.5f * step));
}
// One accrual of the swap; `bond` discounts to its end.
__device__ __forceinline__ void accrue(float rate, float &bond, float &annuity, float &value) {
    bond = __fdividef(bond, 1.f + ACCRUAL * rate);
    annuity += ACCRUAL * bond;
    value += fmaxf(1.f - bond - 0.05f * annuity, 0.f);
}
__global__ void __launch_bounds__(64) swaptions(Market market, float *values) {
    int path = blockIdx.x * 64 + threadIdx.x;
    if (path >= market.paths) return;
    float rates[RATES];
    for (int i = 0; i < market.rates; ++i) rates[i] = market.start[i];
    for (int n = 0; n < market.steps; ++n) {
        float shock = 0.5f * market.normals[static_cast<size_t>(n) * market.paths + path], drift = 0.f;
        for (int i = n + 1; i < market.rates; ++i) rates[i] = evolve(rates[i], market.volatility[i - n - 1], shock, drift);
    }
    float bond = 1.f, annuity = 0.f, value = 0.f;
    for (int i = market.steps; i < market.rates; ++i) accrue(rates[i], bond, annuity, value);
    values[path] = value;
}
// The numbers of rates and steps are known to the compiler.
__global__ void __launch_bounds__(64) swaptions_in_registers(Market market, float *__restrict__ values) {
    int path = blockIdx.x * 64 + threadIdx.x;
    if (path >= market.paths) return;
    float rates[RATES];
#pragma unroll
    for (int i = 0; i < RATES; ++i) rates[i] = market.start[i];
#pragma unroll 1
    for (int n = 0; n < STEPS; ++n) {
        float shock = 0.5f * market.normals[static_cast<size_t>(n) * market.paths + path], drift = 0.f;
#pragma unroll
        for (int i = 1; i < RATES; ++i)
            if (i > n) rates[i] = evolve(rates[i], market.volatility[i - n - 1], shock, drift);
    }
    float bond = 1.f, annuity = 0.f, value = 0.f;
#pragma unroll
    for (int i = STEPS; i < RATES; ++i) accrue(rates[i], bond, annuity, value);
    values[path] = value;
}
__global__ void __launch_bounds__(64) swaptions_in_shared(Market market, float *__restrict__ values) {
    __shared__ float rates[RATES][64];
    int path = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    if (path >= market.paths) return;
    for (int i = 0; i < market.rates; ++i) rates[i][t] = market.start[i];
    for (int n = 0; n < market.steps; ++n) {
        float shock = 0.5f * market.normals[static_cast<size_t>(n) * market.paths + path], drift = 0.f;
        for (int i = n + 1; i < market.rates; ++i) rates[i][t] = evolve(rates[i][t], market.volatility[i - n - 1], shock, drift);
    }
    float bond = 1.f, annuity = 0.f, value = 0.f;
    for (int i = market.steps; i < market.rates; ++i) accrue(rates[i][t], bond, annuity, value);
    values[path] = value;
}

Study market_model("swaption_rates_by_run_time_index", "finance", 1 << 19, "swaptions on 524288 paths of 32 forward rates through twelve steps",
    "a path's rates are an array with an index that is only known at run time, in local memory",
    {{"registers", "loops over all rates unrolled, those of the past left out by a condition", {"local_memory"}}, {"shared", "a column of shared memory for each path", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        Market market{b.random<float>(RATES, 0.15, 0.3), b.random<float>(RATES, 0.03, 0.07), b.random<float>(STEPS * n, -1.7, 1.7), static_cast<int>(n), RATES, STEPS};
        float *values = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(swaptions, blocks(n, 64), 64, 0, market, values)}, {"registers", launch(swaptions_in_registers, blocks(n, 64), 64, 0, market, values)},
            {"shared", launch(swaptions_in_shared, blocks(n, 64), 64, 0, market, values)}};
    });

// --- how many matches between two pictures agree with a homography ---

constexpr int MATCHES = 8192, MATCHES_A_BLOCK = 512;

struct Divided {
    static __device__ bool inlier(float x, float y, float w, float4 match, float limit) {
        float dx = x / w - match.z, dy = y / w - match.w;
        return sqrtf(dx * dx + dy * dy) < limit;
    }
};
struct MultipliedOut {
    static __device__ bool inlier(float x, float y, float w, float4 match, float limit) {
        float dx = x - w * match.z, dy = y - w * match.w, far = limit * w;
        return dx * dx + dy * dy < far * far;
    }
};
struct FastReciprocal {
    static __device__ bool inlier(float x, float y, float w, float4 match, float limit) {
        float turned = __fdividef(1.f, w), dx = x * turned - match.z, dy = y * turned - match.w;
        return dx * dx + dy * dy < limit * limit;
    }
};
// A thread a model, [9][models]; a match is a point in one picture and one in the other.
template <typename Test>
__global__ void __launch_bounds__(128) homography_inliers(const float *models, const float4 *matches, int *counts, int n, float limit) {
    __shared__ float4 tile[MATCHES_A_BLOCK];
    for (int i = threadIdx.x; i < MATCHES_A_BLOCK; i += 128) tile[i] = matches[blockIdx.y * MATCHES_A_BLOCK + i];
    __syncthreads();
    int model = blockIdx.x * 128 + threadIdx.x, count = 0;
    if (model >= n) return;
    float h[9];
#pragma unroll
    for (int k = 0; k < 9; ++k) h[k] = models[k * n + model];
#pragma unroll 4
    for (int i = 0; i < MATCHES_A_BLOCK; ++i) {
        float4 match = tile[i];
        float x = h[0] * match.x + h[1] * match.y + h[2], y = h[3] * match.x + h[4] * match.y + h[5], w = h[6] * match.x + h[7] * match.y + h[8];
        count += Test::inlier(x, y, w, match, limit);
    }
    atomicAdd(counts + model, count);
}

Study homographies("homography_inliers_by_division", "computer vision", 1 << 14, "which of 8192 matches agree with each of 16384 homographies",
    "two precise divisions and a root for each match and model, only to be compared with a limit",
    {{"multiplied_out", "squares compared, the denominator on the other side", {"expensive_math"}}, {"reciprocal", "one fast reciprocal, squares compared", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(43);
        auto noise = [&](float size) { return size * (static_cast<float>(random() % 65536) / 32768.f - 1.f); };
        std::vector<float4> matches(MATCHES);
        for (float4 &m : matches) {
            float x = noise(1.f), y = noise(1.f);
            m = make_float4(x, y, x + noise(0.3f), y + noise(0.3f));
        }
        std::vector<float> models(9 * n);
        for (long i = 0; i < n; ++i)
            for (int k = 0; k < 9; ++k) models[k * n + i] = (k % 4 == 0 ? 1.f : 0.f) + noise(k < 6 ? 0.1f : 0.05f);
        float *all = b.copy(models);
        float4 *pairs_of_points = b.copy(matches);
        int *counts = b.output<int>(n, true);
        b.tolerance = 5e-3;
        dim3 grid(blocks(n, 128), MATCHES / MATCHES_A_BLOCK);
        return {{"flawed", launch(homography_inliers<Divided>, grid, 128, 0, all, pairs_of_points, counts, n, 0.1f)},
            {"multiplied_out", launch(homography_inliers<MultipliedOut>, grid, 128, 0, all, pairs_of_points, counts, n, 0.1f)},
            {"reciprocal", launch(homography_inliers<FastReciprocal>, grid, 128, 0, all, pairs_of_points, counts, n, 0.1f)}};
    });

// --- light at the hits of a path tracer ---

constexpr int LIGHTS = 8;

struct Hits {
    const float4 *normal;     // and roughness
    const float4 *direction;  // of the ray; and a number for the wavelength
    const unsigned char *material;
    int count;
};
struct Direction {
    float x, y, z;
};
__device__ __forceinline__ float dot(Direction a, Direction b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ __forceinline__ Direction unit(float x, float y, float z) {
    float s = rsqrtf(x * x + y * y + z * z + 1e-6f);
    return {x * s, y * s, z * s};
}
__device__ float rough_diffuse(Direction n, Direction v, Direction l, float rough) {
    float nl = fmaxf(dot(n, l), 0.f), nv = fabsf(dot(n, v)), a = acosf(fminf(nl, 1.f)), c = acosf(fminf(nv, 1.f));
    float s = rough * rough, first = 1.f - 0.5f * s / (s + 0.33f), second = 0.45f * s / (s + 0.09f);
    return nl * (first + second * fmaxf(dot(v, l), 0.f) * sinf(fmaxf(a, c)) * tanf(fminf(fminf(a, c), 1.4f))) * 0.3183099f;
}
__device__ float metal(Direction n, Direction v, Direction l, float rough) {
    Direction h = unit(v.x + l.x, v.y + l.y, v.z + l.z);
    float nl = fmaxf(dot(n, l), 0.f), nv = fabsf(dot(n, v)) + 0.01f, nh = dot(n, h), a = rough * rough + 0.01f;
    float under = nh * nh * (a * a - 1.f) + 1.f, spread = a * a / (3.14159265f * under * under);
    float shadow = 2.f * nl / (nl + sqrtf(a * a + (1.f - a * a) * nl * nl) + 1e-3f) * 2.f * nv / (nv + sqrtf(a * a + (1.f - a * a) * nv * nv));
    return spread * shadow * (0.9f + 0.1f * powf(1.f - fabsf(dot(v, h)), 5.f)) / (4.f * nv);
}
__device__ float glass(Direction n, Direction v, Direction l, float rough) {
    float in = fabsf(dot(n, v)), bent = sqrtf(fmaxf(1.f - (1.f - in * in) / 2.25f, 0.01f));
    float along = (1.5f * in - bent) / (1.5f * in + bent), across = (in - 1.5f * bent) / (in + 1.5f * bent);
    float back = 0.5f * (along * along + across * across), lobe = expf(-40.f * rough * (1.f - fabsf(dot(v, l)) * bent));
    return back * lobe + (1.f - back) * expf(-0.7f / bent) * powf(fabsf(dot(n, l)) + 1e-3f, 1.f + 20.f * rough);
}
__device__ float film(Direction n, Direction v, Direction l, float thick) {
    float in = fabsf(dot(n, v)), path = (400.f + 600.f * thick) * sqrtf(1.f - (1.f - in * in) / 1.77f), sum = 0.f;
    for (int k = 0; k < 4; ++k) sum += cosf(12.566371f * path / (420.f + 70.f * k));
    return fmaxf(dot(n, l), 0.f) * (0.5f + 0.125f * sum);
}
__device__ __forceinline__ float light_at(const Hits &hits, int i) {
    float4 n4 = hits.normal[i], d4 = hits.direction[i];
    Direction n = unit(n4.x, n4.y, n4.z), v = unit(-d4.x, -d4.y, -d4.z);
    float rough = fabsf(n4.w), sum = 0.f;
    int material = hits.material[i];
    for (int k = 0; k < LIGHTS; ++k) {
        Direction l = unit(0.5f * k - 1.7f, 1.f, 0.3f * (k & 3) - 0.4f);
        switch (material) {
            case 0: sum += rough_diffuse(n, v, l, rough); break;
            case 1: sum += metal(n, v, l, rough); break;
            case 2: sum += glass(n, v, l, rough); break;
            default: sum += film(n, v, l, rough);
        }
    }
    return sum;
}
__global__ void __launch_bounds__(256) shade(Hits hits, float *light) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < hits.count) light[i] = light_at(hits, i);
}
// In the order of queues, one for each material.
__global__ void __launch_bounds__(256) shade_queues(Hits hits, const int *__restrict__ queued, float *__restrict__ light) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < hits.count) light[queued[i]] = light_at(hits, queued[i]);
}
// A block puts its hits in the order of materials.
__global__ void __launch_bounds__(256) shade_sorted(Hits hits, float *__restrict__ light) {
    __shared__ int counts[4], order[256];
    int i = blockIdx.x * 256 + threadIdx.x, kind = i < hits.count ? hits.material[i] : 3;
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    int rank = atomicAdd(counts + kind, 1);
    __syncthreads();
    for (int k = 0; k < kind; ++k) rank += counts[k];
    order[rank] = i;
    __syncthreads();
    i = order[threadIdx.x];
    if (i < hits.count) light[i] = light_at(hits, i);
}

Study shading("hits_shaded_in_the_order_of_pixels", "path tracing", 1 << 21, "light from eight lamps at 2097152 hits on four kinds of material",
    "neighbouring hits are of different materials: a warp goes through all four",
    {{"queues", "in the order of lists of the hits of each material", {"branch_divergence"}}, {"sorted_in_block", "each block sorts its 256 hits by material", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(47);
        std::vector<unsigned char> materials(n);
        std::vector<int> queued;
        for (auto &kind : materials) kind = static_cast<unsigned char>(random() % 4);
        for (int kind = 0; kind < 4; ++kind)
            for (long i = 0; i < n; ++i)
                if (materials[i] == kind) queued.push_back(static_cast<int>(i));
        Hits hits{(float4 *)b.random<float>(4 * n), (float4 *)b.random<float>(4 * n), b.copy(materials), static_cast<int>(n)};
        int *order = b.copy(queued);
        float *light = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(shade, blocks(n, 256), 256, 0, hits, light)}, {"queues", launch(shade_queues, blocks(n, 256), 256, 0, hits, order, light)},
            {"sorted_in_block", launch(shade_sorted, blocks(n, 256), 256, 0, hits, light)}};
    });

// --- how likely points are under a mixture of Gaussians ---

constexpr int AXES = 16, COMPONENTS = 16, TRIANGLE = AXES * (AXES + 1) / 2, ROWS_OF_FOUR = 40;

// A running sum of exponentials and the largest exponent so far.
struct LogSum {
    float top = -1e30f, sum = 0.f;
    __device__ void add(float x) {
        float higher = fmaxf(top, x);
        sum = sum * __expf(top - higher) + __expf(x - higher);
        top = higher;
    }
    __device__ float value() const { return top + __logf(sum); }
};
// Factors [row, column][component] and means [axis][component]; POINTS a thread.
template <int POINTS>
__global__ void __launch_bounds__(128) mixture(const float4 *points, const float *factors, const float *means, const float *weights, float *out, int n) {
    __shared__ float factor[TRIANGLE * COMPONENTS], mean[AXES * COMPONENTS];
    for (int i = threadIdx.x; i < TRIANGLE * COMPONENTS; i += 128) factor[i] = factors[i];
    for (int i = threadIdx.x; i < AXES * COMPONENTS; i += 128) mean[i] = means[i];
    __syncthreads();
    int first = blockIdx.x * 128 * POINTS + threadIdx.x;
    float x[POINTS][AXES];
    LogSum total[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p)
#pragma unroll
        for (int a = 0; a < AXES / 4; ++a) {
            float4 four = points[static_cast<size_t>(a) * n + min(first + 128 * p, n - 1)];
            x[p][4 * a] = four.x, x[p][4 * a + 1] = four.y, x[p][4 * a + 2] = four.z, x[p][4 * a + 3] = four.w;
        }
#pragma unroll 1
    for (int k = 0; k < COMPONENTS; ++k) {
        float far[POINTS], off[POINTS][AXES];
#pragma unroll
        for (int p = 0; p < POINTS; ++p) far[p] = 0.f;
#pragma unroll
        for (int i = 0; i < AXES; ++i) {
            float sum[POINTS];
#pragma unroll
            for (int p = 0; p < POINTS; ++p) off[p][i] = x[p][i] - mean[i * COMPONENTS + k], sum[p] = 0.f;
#pragma unroll
            for (int j = 0; j <= i; ++j) {
                float f = factor[(i * (i + 1) / 2 + j) * COMPONENTS + k];
#pragma unroll
                for (int p = 0; p < POINTS; ++p) sum[p] += f * off[p][j];
            }
#pragma unroll
            for (int p = 0; p < POINTS; ++p) far[p] += sum[p] * sum[p];
        }
#pragma unroll
        for (int p = 0; p < POINTS; ++p) total[p].add(weights[k] - 0.5f * far[p]);
    }
#pragma unroll
    for (int p = 0; p < POINTS; ++p)
        if (first + 128 * p < n) out[first + 128 * p] = total[p].value();
}
// Rows of a factor filled up with zeros to vectors of four, component after component.
__global__ void __launch_bounds__(128) mixture_vectors(const float4 *__restrict__ points, const float4 *__restrict__ factors, const float4 *__restrict__ means, const float *__restrict__ weights, float *__restrict__ out, int n) {
    __shared__ float4 factor[COMPONENTS * ROWS_OF_FOUR], mean[COMPONENTS * AXES / 4];
    for (int i = threadIdx.x; i < COMPONENTS * ROWS_OF_FOUR; i += 128) factor[i] = factors[i];
    for (int i = threadIdx.x; i < COMPONENTS * AXES / 4; i += 128) mean[i] = means[i];
    __syncthreads();
    int point = blockIdx.x * 128 + threadIdx.x;
    if (point >= n) return;
    float4 x[AXES / 4];
    LogSum total;
#pragma unroll
    for (int a = 0; a < AXES / 4; ++a) x[a] = points[static_cast<size_t>(a) * n + point];
#pragma unroll 1
    for (int k = 0; k < COMPONENTS; ++k) {
        const float4 *row = factor + k * ROWS_OF_FOUR;
        float4 off[AXES / 4];
        float far = 0.f;
#pragma unroll
        for (int a = 0; a < AXES / 4; ++a) {
            float4 m = mean[k * (AXES / 4) + a];
            off[a] = make_float4(x[a].x - m.x, x[a].y - m.y, x[a].z - m.z, x[a].w - m.w);
        }
        int at = 0;
#pragma unroll
        for (int i = 0; i < AXES; ++i) {
            float sum = 0.f;
#pragma unroll
            for (int a = 0; a <= i / 4; ++a, ++at) sum += row[at].x * off[a].x + row[at].y * off[a].y + row[at].z * off[a].z + row[at].w * off[a].w;
            far += sum * sum;
        }
        total.add(weights[k] - 0.5f * far);
    }
    out[point] = total.value();
}

Study mixtures("mixture_factor_from_shared_for_each_product", "machine learning", 1 << 20, "log likelihood of 1048576 points of 16 coordinates under 16 Gaussians with full covariances",
    "each element of a factor is read from shared memory for one multiplication",
    {{"two_points", "two points a thread for each element", {"shared_memory_bandwidth"}}, {"four_points", "four points a thread", {"shared_memory_bandwidth"}},
        {"vectors", "rows filled up to vectors of four, one read for four products", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(53);
        auto noise = [&](float size) { return size * (static_cast<float>(random() % 65536) / 32768.f - 1.f); };
        std::vector<float> factors(TRIANGLE * COMPONENTS), means(AXES * COMPONENTS), weights(COMPONENTS);
        std::vector<float4> rows(COMPONENTS * ROWS_OF_FOUR), places(COMPONENTS * AXES / 4);
        for (int k = 0; k < COMPONENTS; ++k) {
            float padded[4 * ROWS_OF_FOUR] = {};
            weights[k] = noise(1.f) - 3.f;
            for (int i = 0, at = 0; i < AXES; ++i) {
                means[i * COMPONENTS + k] = noise(1.f);
                (&places[k * (AXES / 4) + i / 4].x)[i % 4] = means[i * COMPONENTS + k];
                for (int j = 0; j <= i; ++j) padded[at + j] = factors[(i * (i + 1) / 2 + j) * COMPONENTS + k] = i == j ? 1.f + noise(0.3f) : noise(0.2f);
                at += 4 * (i / 4 + 1);
            }
            for (int v = 0; v < ROWS_OF_FOUR; ++v) rows[k * ROWS_OF_FOUR + v] = make_float4(padded[4 * v], padded[4 * v + 1], padded[4 * v + 2], padded[4 * v + 3]);
        }
        auto *points = (float4 *)b.random<float>(AXES * n, -1.5, 1.5);
        float *all = b.copy(factors), *centres = b.copy(means), *shares = b.copy(weights), *out = b.output<float>(n);
        float4 *by_row = b.copy(rows), *by_four = b.copy(places);
        return {{"flawed", launch(mixture<1>, blocks(n, 128), 128, 0, points, all, centres, shares, out, n)}, {"two_points", launch(mixture<2>, blocks(n, 256), 128, 0, points, all, centres, shares, out, n)},
            {"four_points", launch(mixture<4>, blocks(n, 512), 128, 0, points, all, centres, shares, out, n)},
            {"vectors", launch(mixture_vectors, blocks(n, 128), 128, 0, points, by_row, by_four, shares, out, n)}};
    });

// --- points of a laser scanner in the frame of the map ---

struct Pose {
    float rotation[9], shift[3];
};

// Two points a thread, half a grid apart; the fourth value is how bright a point is.
__global__ void __launch_bounds__(256) to_map(Pose pose, const float4 *__restrict__ points, float4 *__restrict__ out, int half) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= half) return;
    float4 two[2] = {points[i], points[i + half]};
    const float *r = pose.rotation, *s = pose.shift;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        float4 p = two[k];
        out[i + k * half] = make_float4(r[0] * p.x + r[1] * p.y + r[2] * p.z + s[0], r[3] * p.x + r[4] * p.y + r[5] * p.z + s[1], r[6] * p.x + r[7] * p.y + r[8] * p.z + s[2], p.w);
    }
}

Study scanner("sound_scanner_points_in_the_map", "computer vision", 1 << 24, "16777216 points of a laser scanner turned and shifted into the frame of a map", "", {},
    [](Buffers &b, long n) -> Sides {
        Pose pose{{0.36f, 0.48f, -0.8f, -0.8f, 0.6f, 0.f, 0.48f, 0.64f, 0.6f}, {3.f, -2.f, 0.5f}};
        float *points = b.random<float>(4 * n), *out = b.output<float>(4 * n);
        return {{"sound", launch(to_map, blocks(n / 2, 256), 256, 0, pose, (float4 *)points, (float4 *)out, n / 2)}};
    });

}  // namespace
