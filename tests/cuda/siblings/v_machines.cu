// Radio links, draws of chance, smaller models, robots, features and meshes.
#include <cmath>
#include <utility>

#include "../pairs/pair.cuh"

namespace {

// --- a stream of bits in two, each bit the parity of some of the last seven ---

constexpr unsigned FIRST_TAPS = 0x4f, SECOND_TAPS = 0x6d;  // bit k: the bit k moments ago

__global__ void __launch_bounds__(256) encode(const unsigned *__restrict__ stream, unsigned *__restrict__ first, unsigned *__restrict__ second, int words) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= words) return;
    const unsigned word = stream[i], before = i ? stream[i - 1] : 0;
    unsigned state = 0, one = 0, two = 0;
    for (int k = 26; k < 32; k++) state = state << 1 | (before >> k & 1);
    for (int k = 0; k < 32; k++) {
        state = (state << 1 | (word >> k & 1)) & 0x7f;
        one |= (__popc(state & FIRST_TAPS) & 1u) << k;
        two |= (__popc(state & SECOND_TAPS) & 1u) << k;
    }
    first[i] = one;
    second[i] = two;
}
template <unsigned TAPS>
__device__ __forceinline__ unsigned encoded(unsigned before, unsigned word) {
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 7; ++k)
        if (TAPS >> k & 1) sum ^= __funnelshift_l(before, word, k);
    return sum;
}
// The word and the words that lie up to six moments back.
__global__ void __launch_bounds__(256) encode_words(const unsigned *__restrict__ stream, unsigned *__restrict__ first, unsigned *__restrict__ second, int words) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= words) return;
    const unsigned word = stream[i], before = i ? stream[i - 1] : 0;
    first[i] = encoded<FIRST_TAPS>(before, word);
    second[i] = encoded<SECOND_TAPS>(before, word);
}
template <unsigned TAPS>
__device__ __forceinline__ uint4 encoded(unsigned before, uint4 word) {
    return make_uint4(encoded<TAPS>(before, word.x), encoded<TAPS>(word.x, word.y), encoded<TAPS>(word.y, word.z), encoded<TAPS>(word.z, word.w));
}
__global__ void __launch_bounds__(256) encode_fours(const uint4 *__restrict__ stream, uint4 *__restrict__ first, uint4 *__restrict__ second, int fours) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= fours) return;
    const uint4 word = stream[i];
    const unsigned before = i ? stream[i - 1].w : 0;
    first[i] = encoded<FIRST_TAPS>(before, word);
    second[i] = encoded<SECOND_TAPS>(before, word);
}

Study encoder("radio_code_parity_bit_by_bit", "communication", 1 << 23, "a stream of 268435456 bits in two streams for a radio link, each bit the parity of five of the last seven",
    "a thread goes bit by bit through its word, with two parities for each",
    {{"words", "words moved by up to six bits, combined as a whole", {"integer_arithmetic"}}, {"fours", "the same, four words a thread", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *stream = b.random<unsigned>(n, 0, 4294967295.0);
        unsigned *first = b.output<unsigned>(n), *second = b.output<unsigned>(n);
        b.tolerance = 0.0;
        const int words = static_cast<int>(n);
        return {{"flawed", launch(encode, blocks(n, 256), 256, 0, stream, first, second, words)}, {"words", launch(encode_words, blocks(n, 256), 256, 0, stream, first, second, words)},
            {"fours", launch(encode_fours, blocks(n / 4, 256), 256, 0, reinterpret_cast<const uint4 *>(stream), reinterpret_cast<uint4 *>(first), reinterpret_cast<uint4 *>(second), words / 4)}};
    });

// --- draws from two million outcomes by their cumulative chances ---

constexpr int GUIDES = 65536, PIVOTS = 2048;

__device__ __forceinline__ int first_not_below(const double *chances, double draw, int low, int high) {
    while (low < high) {
        const int middle = (low + high) / 2;
        if (chances[middle] < draw) low = middle + 1;
        else high = middle;
    }
    return low;
}
__global__ void __launch_bounds__(192) draw_outcomes(const double *__restrict__ chances, const double *__restrict__ draws, int *__restrict__ outcomes, int count, int possible) {
    const int i = blockIdx.x * 192 + threadIdx.x;
    if (i < count) outcomes[i] = first_not_below(chances, draws[i], 0, possible - 1);
}
// A table tells where each 65536th begins.
__global__ void __launch_bounds__(192) draw_outcomes_guided(const double *__restrict__ chances, const int *__restrict__ guides, const double *__restrict__ draws, int *__restrict__ outcomes, int count) {
    const int i = blockIdx.x * 192 + threadIdx.x;
    if (i >= count) return;
    const double draw = draws[i];
    const int guide = static_cast<int>(draw * GUIDES);
    outcomes[i] = first_not_below(chances, draw, guides[guide], guides[guide + 1]);
}
// The first eleven halvings in shared memory.
__global__ void __launch_bounds__(1024) draw_outcomes_pivots(const double *__restrict__ chances, const double *__restrict__ draws, int *__restrict__ outcomes, int count, int stride) {
    __shared__ double last[PIVOTS];  // of each of 2048 parts
    for (int p = threadIdx.x; p < PIVOTS; p += 1024) last[p] = chances[p * stride + stride - 1];
    __syncthreads();
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < count; i += gridDim.x * 1024) {
        const double draw = draws[i];
        const int part = first_not_below(last, draw, 0, PIVOTS - 1);
        outcomes[i] = first_not_below(chances, draw, part * stride, part * stride + stride - 1);
    }
}

Study outcomes("outcomes_drawn_by_halving_the_whole_table", "statistics", 1 << 21, "2097152 draws among 2097152 outcomes by their cumulative chances",
    "21 loads a draw, each of which waits for the one before",
    {{"guided", "a table of 65536 starts, then what is left", {"memory_latency"}}, {"pivots", "the first eleven halvings in shared memory", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int possible = 1 << 21;
        std::vector<double> chances(possible);
        double sum = 0.0;
        for (int k = 0; k < possible; k++) chances[k] = sum += 1.0 + hash(static_cast<unsigned>(k)) % 1000 * (hash(static_cast<unsigned>(k / 512) + 5) % 8);
        for (double &chance : chances) chance /= sum;
        std::vector<int> guides(GUIDES + 1, possible - 1);
        for (int g = 0, k = 0; g < GUIDES; g++) {
            while (chances[k] < static_cast<double>(g) / GUIDES) k++;
            guides[g] = k;
        }
        const double *table = b.copy(chances), *draws = b.random<double>(n, 0.0, 1.0);
        const int *starts = b.copy(guides), count = static_cast<int>(n);
        int *found = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(draw_outcomes, blocks(n, 192), 192, 0, table, draws, found, count, possible)}, {"guided", launch(draw_outcomes_guided, blocks(n, 192), 192, 0, table, starts, draws, found, count)},
            {"pivots", launch(draw_outcomes_pivots, 2 * multiprocessors(), 1024, 0, table, draws, found, count, possible / PIVOTS)}};
    });

// --- what each of eight widths of step would cost a row of weights that is to be held in four bits ---

constexpr int WIDTHS = 8;

struct Steps {
    float wide[WIDTHS], inverse[WIDTHS];
};
__device__ __forceinline__ float cost(float weight, float wide, float inverse) {
    const float nearest = (fminf(fmaxf(weight * inverse, -8.0f), 7.0f) + 12582912.0f) - 12582912.0f;
    const float off = fmaf(-nearest, wide, weight);
    return off * off;
}
// A warp a row.
__global__ void __launch_bounds__(128) step_costs(const __half *__restrict__ weights, float *__restrict__ costs, Steps steps, int length) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    const __half *own = weights + static_cast<size_t>(row) * length;
    for (int s = 0; s < WIDTHS; ++s) {
        const float wide = steps.wide[s], inverse = steps.inverse[s];
        float sum = 0.0f;
        for (int i = lane; i < length; i += 32) sum += cost(__half2float(own[i]), wide, inverse);
        sum = warp_sum(sum);
        if (lane == 0) costs[row * WIDTHS + s] = sum;
    }
}
__device__ __forceinline__ void store_costs(float (&sum)[WIDTHS], float *costs, int lane) {
#pragma unroll
    for (int s = 0; s < WIDTHS; ++s) {
        sum[s] = warp_sum(sum[s]);
        if (lane == 0) costs[s] = sum[s];
    }
}
__global__ void __launch_bounds__(128) step_costs_at_once(const __half *__restrict__ weights, float *__restrict__ costs, Steps steps, int length) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    const __half *own = weights + static_cast<size_t>(row) * length;
    float sum[WIDTHS] = {};
    for (int i = lane; i < length; i += 32) {
        const float weight = __half2float(own[i]);
#pragma unroll
        for (int s = 0; s < WIDTHS; ++s) sum[s] += cost(weight, steps.wide[s], steps.inverse[s]);
    }
    store_costs(sum, costs + row * WIDTHS, lane);
}
// Eight weights a load.
__global__ void __launch_bounds__(128) step_costs_eights(const uint4 *__restrict__ weights, float *__restrict__ costs, Steps steps, int eights) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    const uint4 *own = weights + static_cast<size_t>(row) * eights;
    float sum[WIDTHS] = {};
    for (int i = lane; i < eights; i += 32) {
        const uint4 read = own[i];
        const __half2 *pairs = reinterpret_cast<const __half2 *>(&read);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float2 two = __half22float2(pairs[k]);
#pragma unroll
            for (int s = 0; s < WIDTHS; ++s) sum[s] += cost(two.x, steps.wide[s], steps.inverse[s]) + cost(two.y, steps.wide[s], steps.inverse[s]);
        }
    }
    store_costs(sum, costs + row * WIDTHS, lane);
}

Study widths("step_widths_tried_in_turn", "models", 8192, "what eight widths of step would cost each of 8192 rows of 4096 weights in four bits",
    "a warp reads its row weight by weight, and again for each width",
    {{"at_once", "all eight widths for a weight at once", {"redundant_loads"}}, {"eights", "the same, eight weights a load", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int length = 4096;
        const __half *weights = b.random<__half>(n * length);
        float *costs = b.output<float>(n * WIDTHS);
        Steps steps;
        for (int s = 0; s < WIDTHS; s++) steps.wide[s] = 0.17f * std::exp2f(-0.2f * static_cast<float>(s)), steps.inverse[s] = 1.0f / steps.wide[s];
        b.tolerance = 1e-3;
        const dim3 block(32, 4);
        return {{"flawed", launch(step_costs, n / 4, block, 0, weights, costs, steps, length)}, {"at_once", launch(step_costs_at_once, n / 4, block, 0, weights, costs, steps, length)},
            {"eights", launch(step_costs_eights, n / 4, block, 0, reinterpret_cast<const uint4 *>(weights), costs, steps, length / 8)}};
    });

// --- how many cells around each of a robot's map are occupied, in a cube of 5 x 5 x 5 ---

constexpr int WIDE = 256, DEEP = 256, ACROSS = WIDE + 8, PLANE = ACROSS * (DEEP + 4);  // with four cells beside each row, two rows and planes around

__global__ void __launch_bounds__(256) occupied(const unsigned char *__restrict__ map, unsigned char *__restrict__ out) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    const unsigned char *corner = map + static_cast<size_t>(z) * PLANE + y * ACROSS + x + 2;
    int count = 0;
    for (int k = 0; k < 5; ++k)
        for (int j = 0; j < 5; ++j)
            for (int i = 0; i < 5; ++i) count += corner[k * PLANE + j * ACROSS + i];
    out[(static_cast<size_t>(z) * DEEP + y) * WIDE + x] = static_cast<unsigned char>(count);
}
// Along x, then y, then z.
__global__ void __launch_bounds__(256) occupied_axes(const unsigned char *__restrict__ map, unsigned char *__restrict__ out) {
    __shared__ unsigned char cells[12][12][36], rows[12][12][32], squares[12][8][32];
    const int x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * 32, front = blockIdx.y * 8, bottom = blockIdx.z * 8;
    const unsigned char *corner = map + static_cast<size_t>(bottom) * PLANE + front * ACROSS + left + 2;
    for (int row = y; row < 144; row += 8)
        for (int i = x; i < 36; i += 32) cells[row / 12][row % 12][i] = corner[row / 12 * PLANE + row % 12 * ACROSS + i];
    __syncthreads();
    for (int row = y; row < 144; row += 8) {
        const unsigned char *own = &cells[row / 12][row % 12][x];
        rows[row / 12][row % 12][x] = static_cast<unsigned char>(own[0] + own[1] + own[2] + own[3] + own[4]);
    }
    __syncthreads();
#pragma unroll
    for (int z = 0; z < 12; ++z) squares[z][y][x] = static_cast<unsigned char>(rows[z][y][x] + rows[z][y + 1][x] + rows[z][y + 2][x] + rows[z][y + 3][x] + rows[z][y + 4][x]);
    __syncthreads();
#pragma unroll
    for (int z = 0; z < 8; ++z)
        out[(static_cast<size_t>(bottom + z) * DEEP + front + y) * WIDE + left + x] = static_cast<unsigned char>(squares[z][y][x] + squares[z + 1][y][x] + squares[z + 2][y][x] + squares[z + 3][y][x] + squares[z + 4][y][x]);
}
// Up through sixteen planes with the squares of five in registers.
__device__ __forceinline__ int square_of(const unsigned char *corner) {
    int sum = 0;
#pragma unroll
    for (int j = 0; j < 5; ++j)
#pragma unroll
        for (int i = 0; i < 5; ++i) sum += corner[j * ACROSS + i];
    return sum;
}
__global__ void __launch_bounds__(128) occupied_ascent(const unsigned char *__restrict__ map, unsigned char *__restrict__ out) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, bottom = blockIdx.z * 16;
    const unsigned char *corner = map + static_cast<size_t>(bottom) * PLANE + y * ACROSS + x + 2;
    int squares[5] = {0, square_of(corner), square_of(corner + PLANE), square_of(corner + 2 * PLANE), square_of(corner + 3 * PLANE)};
#pragma unroll 4
    for (int z = 0; z < 16; ++z) {
#pragma unroll
        for (int k = 0; k < 4; ++k) squares[k] = squares[k + 1];
        squares[4] = square_of(corner + (z + 4) * PLANE);
        out[(static_cast<size_t>(bottom + z) * DEEP + y) * WIDE + x] = static_cast<unsigned char>(squares[0] + squares[1] + squares[2] + squares[3] + squares[4]);
    }
}

Study robots("occupied_cells_125_reads", "robotics", 192, "occupied cells in cubes of 5 x 5 x 5 around each of 256 x 256 x 192 cells",
    "125 byte loads a cell",
    {{"axes", "a tile in shared memory, added along one axis after the other", {"redundant_loads"}}, {"ascent", "a thread goes up through sixteen planes, squares added once", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> cells(static_cast<size_t>(n + 4) * PLANE);
        for (size_t i = 0; i < cells.size(); i++) cells[i] = hash(static_cast<unsigned>(i)) % 100 < 30 + hash(static_cast<unsigned>(i / 8)) % 40;
        const unsigned char *map = b.copy(cells);
        unsigned char *out = b.output<unsigned char>(n * DEEP * WIDE);
        b.tolerance = 0.0;
        const unsigned planes = static_cast<unsigned>(n);
        return {{"flawed", launch(occupied, dim3(WIDE / 32, DEEP / 4, planes / 2), dim3(32, 4, 2), 0, map, out)}, {"axes", launch(occupied_axes, dim3(WIDE / 32, DEEP / 8, planes / 8), dim3(32, 8), 0, map, out)},
            {"ascent", launch(occupied_ascent, dim3(WIDE / 32, DEEP / 4, planes / 16), dim3(32, 4), 0, map, out)}};
    });

// --- the largest difference in any of 64 features between all of two sets ---

constexpr int FEATURES = 64;

__global__ void __launch_bounds__(256) largest_differences(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ out, int columns) {
    __shared__ float own[16][17], other[16][17];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16;
    float largest = 0.0f;
    for (int first = 0; first < FEATURES; first += 16) {
        own[y][x] = left[static_cast<size_t>(row) * FEATURES + first + x];
        other[y][x] = right[static_cast<size_t>(column + y) * FEATURES + first + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) largest = fmaxf(largest, fabsf(own[y][k] - other[x][k]));
        __syncthreads();
    }
    out[static_cast<size_t>(row) * columns + column + x] = largest;
}
// Eight rows a thread: a feature of its column serves eight times.
__global__ void __launch_bounds__(256) largest_differences_rows(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ out, int columns) {
    __shared__ float own[64][16], other[16][33];
    const int lane = threadIdx.x, group = threadIdx.y, top = blockIdx.y * 64, column = blockIdx.x * 32;
    const int x = lane % 16, y = group * 2 + lane / 16;
    float largest[8] = {};
    for (int first = 0; first < FEATURES; first += 16) {
#pragma unroll
        for (int r = 0; r < 64; r += 16) own[y + r][x] = left[static_cast<size_t>(top + y + r) * FEATURES + first + x];
#pragma unroll
        for (int r = 0; r < 32; r += 16) other[x][y + r] = right[static_cast<size_t>(column + y + r) * FEATURES + first + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            const float value = other[k][lane];
#pragma unroll
            for (int r = 0; r < 8; ++r) largest[r] = fmaxf(largest[r], fabsf(own[group * 8 + r][k] - value));
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) out[static_cast<size_t>(top + group * 8 + r) * columns + column + lane] = largest[r];
}
// Four rows and four columns a thread.
__global__ void __launch_bounds__(256) largest_differences_squares(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ out, int columns) {
    __shared__ __align__(16) float own[16][68], other[16][68];
    const int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 64, column = blockIdx.x * 64;
    float largest[4][4] = {};
    for (int first = 0; first < FEATURES; first += 16) {
#pragma unroll
        for (int r = 0; r < 64; r += 16) {
            own[x][y + r] = left[static_cast<size_t>(top + y + r) * FEATURES + first + x];
            other[x][y + r] = right[static_cast<size_t>(column + y + r) * FEATURES + first + x];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            const float4 a = *reinterpret_cast<const float4 *>(&own[k][4 * y]), c = *reinterpret_cast<const float4 *>(&other[k][4 * x]);
            const float down[4] = {a.x, a.y, a.z, a.w}, along[4] = {c.x, c.y, c.z, c.w};
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
                for (int s = 0; s < 4; ++s) largest[r][s] = fmaxf(largest[r][s], fabsf(down[r] - along[s]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
        *reinterpret_cast<float4 *>(out + static_cast<size_t>(top + 4 * y + r) * columns + column + 4 * x) = make_float4(largest[r][0], largest[r][1], largest[r][2], largest[r][3]);
}

Study features("feature_differences_two_shared_reads_each", "vision", 4096, "the largest difference in 64 features of each of 4096 descriptors to each of 4096 others",
    "each difference reads both of its sides from shared memory",
    {{"rows", "eight rows a thread: a value of its column serves eight times", {"shared_memory_bandwidth"}}, {"squares", "four rows and four columns a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *left = b.random<float>(n * FEATURES), *right = b.random<float>(n * FEATURES);
        float *out = b.output<float>(n * n);
        b.tolerance = 0.0;
        const int columns = static_cast<int>(n);
        const unsigned count = static_cast<unsigned>(n);
        return {{"flawed", launch(largest_differences, dim3(count / 16, count / 16), dim3(16, 16), 0, left, right, out, columns)},
            {"rows", launch(largest_differences_rows, dim3(count / 32, count / 64), dim3(32, 8), 0, left, right, out, columns)},
            {"squares", launch(largest_differences_squares, dim3(count / 64, count / 64), dim3(16, 16), 0, left, right, out, columns)}};
    });

// --- areas of the triangles of a scanned surface ---

struct Surface {
    const float *x, *y, *z;
};
struct Corners {
    const int *a, *b, *c;
    int count;
};
__device__ __forceinline__ float area_between(float ux, float uy, float uz, float vx, float vy, float vz) {
    const float nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
    return 0.5f * sqrtf(nx * nx + ny * ny + nz * nz);
}
__global__ void __launch_bounds__(256) triangle_areas(Surface s, Corners corners, float *__restrict__ areas) {
    const int t = blockIdx.x * 256 + threadIdx.x;
    if (t >= corners.count) return;
    const int a = corners.a[t], b = corners.b[t], c = corners.c[t];
    areas[t] = area_between(s.x[b] - s.x[a], s.y[b] - s.y[a], s.z[b] - s.z[a], s.x[c] - s.x[a], s.y[c] - s.y[a], s.z[c] - s.z[a]);
}
__global__ void __launch_bounds__(256) triangle_areas_points(const float4 *__restrict__ points, Corners corners, float *__restrict__ areas) {
    const int t = blockIdx.x * 256 + threadIdx.x;
    if (t >= corners.count) return;
    const float4 a = points[corners.a[t]], b = points[corners.b[t]], c = points[corners.c[t]];
    areas[t] = area_between(b.x - a.x, b.y - a.y, b.z - a.z, c.x - a.x, c.y - a.y, c.z - a.z);
}

Study surface("triangle_areas_corners_in_three_planes", "geometry", 1408, "areas of 3959298 triangles between 1982464 points of a scanned surface",
    "points bear the numbers of the scan, x, y and z in planes of their own: nine sectors a triangle",
    {{"points", "x, y and z of a point together", {"uncoalesced_access"}}, {"renumbered", "points numbered along the surface", {"cache_locality", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int points = static_cast<int>(n * n), triangles = static_cast<int>((n - 1) * (n - 1) * 2);
        std::vector<int> number(points), scanned(3 * triangles), along(3 * triangles);
        for (int p = 0; p < points; p++) number[p] = p;
        for (int p = points - 1; p > 0; p--) std::swap(number[p], number[hash(static_cast<unsigned>(p)) % static_cast<unsigned>(p + 1)]);
        std::vector<float> planes(3 * points), in_order(3 * points);
        std::vector<float4> together(points);
        for (int p = 0; p < points; p++) {
            const float place[3] = {static_cast<float>(p % n), static_cast<float>(p / n), static_cast<float>(hash(static_cast<unsigned>(p)) % 1000) / 500.0f};
            for (int k = 0; k < 3; k++) planes[k * points + number[p]] = in_order[k * points + p] = place[k];
            together[number[p]] = make_float4(place[0], place[1], place[2], 0.0f);
        }
        for (int t = 0; t < triangles; t++) {
            const int p = static_cast<int>(t / 2 / (n - 1) * n + t / 2 % (n - 1)), below = p + static_cast<int>(n);
            const int corner[3] = {t % 2 ? below + 1 : p, t % 2 ? below : p + 1, t % 2 ? p + 1 : below};
            for (int k = 0; k < 3; k++) along[k * triangles + t] = corner[k], scanned[k * triangles + t] = number[corner[k]];
        }
        auto surface_of = [&](const std::vector<float> &host) {
            const float *at = b.copy(host);
            return Surface{at, at + points, at + 2 * points};
        };
        auto corners_of = [&](const std::vector<int> &host) {
            const int *at = b.copy(host);
            return Corners{at, at + triangles, at + 2 * triangles, triangles};
        };
        const Surface as_scanned = surface_of(planes), sorted = surface_of(in_order);
        const Corners corners = corners_of(scanned), corners_sorted = corners_of(along);
        const float4 *records = b.copy(together);
        float *areas = b.output<float>(triangles);
        const unsigned grid = blocks(triangles, 256);
        return {{"flawed", launch(triangle_areas, grid, 256, 0, as_scanned, corners, areas)}, {"points", launch(triangle_areas_points, grid, 256, 0, records, corners, areas)},
            {"renumbered", launch(triangle_areas, grid, 256, 0, sorted, corners_sorted, areas)}};
    });

}  // namespace
