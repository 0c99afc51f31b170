// Layers and point clouds of networks. Each kernel has one weakness and two or three ways out.
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- a layer whose weights are functions: Chebyshev polynomials of every input ---

constexpr int LAYER_IN = 128, LAYER_OUT = 256, DEGREES = 8, TERMS = LAYER_IN * DEGREES;

__global__ void chebyshev(const float *x, const float *coefficients, float *y) {
    int row = blockIdx.x, o = threadIdx.x;
    float sum = 0.f;
    for (int i = 0; i < LAYER_IN; ++i) {
        float angle = acosf(tanhf(x[row * LAYER_IN + i]));
        for (int k = 0; k < DEGREES; ++k) sum += coefficients[(i * DEGREES + k) * LAYER_OUT + o] * cosf(k * angle);
    }
    y[row * LAYER_OUT + o] = sum;
}
// T_{k+1} = 2 t T_k - T_{k-1}
__global__ void chebyshev_recurrence(const float *__restrict__ x, const float *__restrict__ coefficients, float *__restrict__ y) {
    int row = blockIdx.x, o = threadIdx.x;
    float sum = 0.f;
    for (int i = 0; i < LAYER_IN; ++i) {
        float t = tanhf(x[row * LAYER_IN + i]), before = 1.f, now = t;
        const float *c = coefficients + i * DEGREES * LAYER_OUT + o;
        sum += c[0];
#pragma unroll
        for (int k = 1; k < DEGREES; ++k) {
            sum = fmaf(c[k * LAYER_OUT], now, sum);
            float next = fmaf(2.f * t, now, -before);
            before = now, now = next;
        }
    }
    y[row * LAYER_OUT + o] = sum;
}
// The block first puts all polynomials of its row into shared memory.
__global__ void chebyshev_shared(const float *__restrict__ x, const float *__restrict__ coefficients, float *__restrict__ y) {
    __shared__ float terms[TERMS];
    int row = blockIdx.x, o = threadIdx.x;
    for (int j = threadIdx.x; j < TERMS; j += blockDim.x) terms[j] = cosf((j % DEGREES) * acosf(tanhf(x[row * LAYER_IN + j / DEGREES])));
    __syncthreads();
    float sum = 0.f;
#pragma unroll 8
    for (int j = 0; j < TERMS; ++j) sum = fmaf(coefficients[j * LAYER_OUT + o], terms[j], sum);
    y[row * LAYER_OUT + o] = sum;
}
// Eight rows a block: each coefficient is read once for all of them.
__global__ void __launch_bounds__(LAYER_OUT) chebyshev_rows(const float *__restrict__ x, const float *__restrict__ coefficients, float *__restrict__ y) {
    __shared__ float4 terms[TERMS][2];
    int first = blockIdx.x * 8, o = threadIdx.x;
    for (int j = threadIdx.x; j < 8 * LAYER_IN; j += LAYER_OUT) {
        int r = j % 8, i = j / 8;
        float t = tanhf(x[(first + r) * LAYER_IN + i]), before = 1.f, now = t;
        float *to = reinterpret_cast<float *>(terms) + i * DEGREES * 8 + r;
        to[0] = 1.f;
#pragma unroll
        for (int k = 1; k < DEGREES; ++k) {
            to[k * 8] = now;
            float next = fmaf(2.f * t, now, -before);
            before = now, now = next;
        }
    }
    __syncthreads();
    float sum[8] = {};
#pragma unroll 4
    for (int j = 0; j < TERMS; ++j) {
        float c = coefficients[j * LAYER_OUT + o];
        float4 a = terms[j][0], b = terms[j][1];
        sum[0] = fmaf(c, a.x, sum[0]), sum[1] = fmaf(c, a.y, sum[1]), sum[2] = fmaf(c, a.z, sum[2]), sum[3] = fmaf(c, a.w, sum[3]);
        sum[4] = fmaf(c, b.x, sum[4]), sum[5] = fmaf(c, b.y, sum[5]), sum[6] = fmaf(c, b.z, sum[6]), sum[7] = fmaf(c, b.w, sum[7]);
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) y[(first + r) * LAYER_OUT + o] = sum[r];
}

Study functions("chebyshev_layer_cosines_each_output", "models", 2048, "2048 rows of 128 inputs in Chebyshev polynomials of eight degrees, summed for 256 outputs",
    "every output computes the polynomials of every input again, as cosines of multiples of an arc cosine",
    {{"recurrence", "polynomials by their recurrence", {"expensive_math"}}, {"shared", "the row's polynomials once a block, in shared memory", {"expensive_math"}},
        {"rows", "eight rows a block, polynomials by recurrence in shared memory", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *x = b.random<float>(n * LAYER_IN, -2, 2), *coefficients = b.random<float>(TERMS * LAYER_OUT);
        float *y = b.output<float>(n * LAYER_OUT);
        b.tolerance = 1e-3;
        return {{"flawed", launch(chebyshev, n, LAYER_OUT, 0, x, coefficients, y)}, {"recurrence", launch(chebyshev_recurrence, n, LAYER_OUT, 0, x, coefficients, y)},
            {"shared", launch(chebyshev_shared, n, LAYER_OUT, 0, x, coefficients, y)}, {"rows", launch(chebyshev_rows, n / 8, LAYER_OUT, 0, x, coefficients, y)}};
    });

// --- a recommender's interactions: products of all pairs of a sample's 32 embeddings ---

constexpr int FIELDS = 32, WIDTH = 64, PAIRS = FIELDS * (FIELDS - 1) / 2;

__device__ __forceinline__ int pair_of(int i, int j) { return i * (i - 1) / 2 + j; }

__global__ void interactions(const __half *embeddings, float *out) {
    const __half *mine = embeddings + static_cast<size_t>(blockIdx.x) * FIELDS * WIDTH;
    int i = threadIdx.y, j = threadIdx.x;
    if (j >= i) return;
    float sum = 0.f;
    for (int k = 0; k < WIDTH; ++k) sum += __half2float(mine[i * WIDTH + k]) * __half2float(mine[j * WIDTH + k]);
    out[static_cast<size_t>(blockIdx.x) * PAIRS + pair_of(i, j)] = sum;
}
// The sample's rows in shared memory as floats, one pair of padding a row.
__global__ void __launch_bounds__(256) interactions_shared(const __half2 *__restrict__ embeddings, float *__restrict__ out) {
    __shared__ float2 rows[FIELDS][WIDTH / 2 + 1];
    const __half2 *mine = embeddings + static_cast<size_t>(blockIdx.x) * FIELDS * WIDTH / 2;
    for (int t = threadIdx.x; t < FIELDS * WIDTH / 2; t += 256) rows[t / (WIDTH / 2)][t % (WIDTH / 2)] = __half22float2(mine[t]);
    __syncthreads();
    int j = threadIdx.x % 32, first = threadIdx.x / 32;
    float sum[4] = {};
#pragma unroll 8
    for (int k = 0; k < WIDTH / 2; ++k) {
        float2 b = rows[j][k];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            float2 a = rows[first + 8 * q][k];
            sum[q] = fmaf(a.x, b.x, fmaf(a.y, b.y, sum[q]));
        }
    }
#pragma unroll
    for (int q = 0; q < 4; ++q)
        if (int i = first + 8 * q; j < i) out[static_cast<size_t>(blockIdx.x) * PAIRS + pair_of(i, j)] = sum[q];
}
// A warp a sample: three of the four tiles of 16 x 16 on the tensor cores.
__global__ void __launch_bounds__(128) interactions_mma(const __half *__restrict__ embeddings, float *__restrict__ out, int samples) {
    using namespace nvcuda;
    __shared__ __align__(32) float tiles[4][FIELDS][FIELDS];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sample = blockIdx.x * 4 + warp;
    if (sample >= samples) return;
    const __half *mine = embeddings + static_cast<size_t>(sample) * FIELDS * WIDTH;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> low, cross, high;
    wmma::fill_fragment(low, 0.f), wmma::fill_fragment(cross, 0.f), wmma::fill_fragment(high, 0.f);
#pragma unroll
    for (int k = 0; k < WIDTH; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a0, a1;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b0, b1;
        wmma::load_matrix_sync(a0, mine + k, WIDTH), wmma::load_matrix_sync(a1, mine + 16 * WIDTH + k, WIDTH);
        wmma::load_matrix_sync(b0, mine + k, WIDTH), wmma::load_matrix_sync(b1, mine + 16 * WIDTH + k, WIDTH);
        wmma::mma_sync(low, a0, b0, low), wmma::mma_sync(cross, a1, b0, cross), wmma::mma_sync(high, a1, b1, high);
    }
    wmma::store_matrix_sync(&tiles[warp][0][0], low, FIELDS, wmma::mem_row_major);
    wmma::store_matrix_sync(&tiles[warp][16][0], cross, FIELDS, wmma::mem_row_major);
    wmma::store_matrix_sync(&tiles[warp][16][16], high, FIELDS, wmma::mem_row_major);
    __syncwarp();
    for (int i = 1; i < FIELDS; ++i)
        if (lane < i) out[static_cast<size_t>(sample) * PAIRS + pair_of(i, lane)] = tiles[warp][i][lane];
}

Study embeddings_pairs("field_pairs_thread_each", "recommenders", 12288, "products of all pairs of 32 embeddings of 64 half values, 12288 samples",
    "a thread a pair walks along two rows, half by half",
    {{"shared", "rows in shared memory as floats, four pairs a thread", {"uncoalesced_access", "redundant_loads", "narrow_access"}},
        {"mma", "a warp a sample, on the tensor cores", {"tensor_cores_idle", "uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *embeddings = b.random<__half>(n * FIELDS * WIDTH);
        float *out = b.output<float>(n * PAIRS);
        b.tolerance = 1e-3;
        return {{"flawed", launch(interactions, n, dim3(FIELDS, FIELDS), 0, embeddings, out)},
            {"shared", launch(interactions_shared, n, 256, 0, reinterpret_cast<const __half2 *>(embeddings), out)},
            {"mma", launch(interactions_mma, blocks(n, 4), 128, 0, embeddings, out, n)}};
    });

// --- farthest points: each pick is the point farthest from all picks before ---

constexpr int CLOUD = 4096, PICKS = 128, PICKERS = 512;

__device__ __forceinline__ float squared(float dx, float dy, float dz) { return fmaf(dx, dx, fmaf(dy, dy, __fmul_rn(dz, dz))); }
__device__ __forceinline__ bool farther(float a, int i, float b, int j) { return a > b || (a == b && i < j); }

__global__ void farthest(const float *points, float *distances, int *picks) {
    __shared__ float best[PICKERS];
    __shared__ int where[PICKERS];
    const float *mine = points + blockIdx.x * CLOUD * 3;
    float *distance = distances + blockIdx.x * CLOUD;
    int *out = picks + blockIdx.x * PICKS, tid = threadIdx.x, old = 0;
    for (int i = tid; i < CLOUD; i += PICKERS) distance[i] = 1e10f;
    if (tid == 0) out[0] = 0;
    for (int p = 1; p < PICKS; ++p) {
        float x = mine[old * 3], y = mine[old * 3 + 1], z = mine[old * 3 + 2], most = -1.f;
        int at = 0;
        for (int i = tid; i < CLOUD; i += PICKERS) {
            float d = fminf(squared(mine[i * 3] - x, mine[i * 3 + 1] - y, mine[i * 3 + 2] - z), distance[i]);
            distance[i] = d;
            if (d > most) most = d, at = i;
        }
        best[tid] = most, where[tid] = at;
        __syncthreads();
        for (int s = PICKERS / 2; s > 0; s >>= 1) {
            if (tid < s && farther(best[tid + s], where[tid + s], best[tid], where[tid])) best[tid] = best[tid + s], where[tid] = where[tid + s];
            __syncthreads();
        }
        old = where[0];
        if (tid == 0) out[p] = old;
        __syncthreads();
    }
}
// The block's farthest, by shuffles: one barrier; two sets of places in turn make a second one needless.
__device__ __forceinline__ int farthest_of_block(float most, int at, int turn) {
    __shared__ float best[2][PICKERS / 32];
    __shared__ int where[2][PICKERS / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int offset = 16; offset; offset /= 2) {
        float other = __shfl_xor_sync(~0u, most, offset);
        int there = __shfl_xor_sync(~0u, at, offset);
        if (farther(other, there, most, at)) most = other, at = there;
    }
    if (lane == 0) best[turn][warp] = most, where[turn][warp] = at;
    __syncthreads();
    most = best[turn][lane % (PICKERS / 32)], at = where[turn][lane % (PICKERS / 32)];
    for (int offset = PICKERS / 64; offset; offset /= 2) {
        float other = __shfl_xor_sync(~0u, most, offset);
        int there = __shfl_xor_sync(~0u, at, offset);
        if (farther(other, there, most, at)) most = other, at = there;
    }
    return at;
}
__global__ void farthest_shuffles(const float *__restrict__ points, float *__restrict__ distances, int *__restrict__ picks) {
    const float *mine = points + blockIdx.x * CLOUD * 3;
    float *distance = distances + blockIdx.x * CLOUD;
    int *out = picks + blockIdx.x * PICKS, tid = threadIdx.x, old = 0;
    for (int i = tid; i < CLOUD; i += PICKERS) distance[i] = 1e10f;
    if (tid == 0) out[0] = 0;
    for (int p = 1; p < PICKS; ++p) {
        float x = mine[old * 3], y = mine[old * 3 + 1], z = mine[old * 3 + 2], most = -1.f;
        int at = 0;
        for (int i = tid; i < CLOUD; i += PICKERS) {
            float d = fminf(squared(mine[i * 3] - x, mine[i * 3 + 1] - y, mine[i * 3 + 2] - z), distance[i]);
            distance[i] = d;
            if (d > most) most = d, at = i;
        }
        old = farthest_of_block(most, at, p % 2);
        if (tid == 0) out[p] = old;
    }
}
// A thread keeps its eight points and their distances in registers.
__global__ void __launch_bounds__(PICKERS) farthest_registers(const float *__restrict__ points, int *__restrict__ picks) {
    constexpr int each = CLOUD / PICKERS;
    const float *mine = points + blockIdx.x * CLOUD * 3;
    int *out = picks + blockIdx.x * PICKS, tid = threadIdx.x, old = 0;
    float px[each], py[each], pz[each], distance[each];
#pragma unroll
    for (int q = 0; q < each; ++q) {
        const float *from = mine + (q * PICKERS + tid) * 3;
        px[q] = from[0], py[q] = from[1], pz[q] = from[2], distance[q] = 1e10f;
    }
    if (tid == 0) out[0] = 0;
    for (int p = 1; p < PICKS; ++p) {
        float x = mine[old * 3], y = mine[old * 3 + 1], z = mine[old * 3 + 2], most = -1.f;
        int at = 0;
#pragma unroll
        for (int q = 0; q < each; ++q) {
            distance[q] = fminf(squared(px[q] - x, py[q] - y, pz[q] - z), distance[q]);
            if (distance[q] > most) most = distance[q], at = q * PICKERS + tid;
        }
        old = farthest_of_block(most, at, p % 2);
        if (tid == 0) out[p] = old;
    }
}

Study farthest_points("farthest_points_tree_each_pick", "point clouds", 256, "128 farthest points of each of 256 clouds of 4096 points",
    "the farthest point of a pick is found by a tree in shared memory, eleven barriers a pick",
    {{"shuffles", "shuffles, one barrier a pick", {"barriers"}}, {"registers", "shuffles, points and distances in registers", {"barriers", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *points = b.random<float>(n * CLOUD * 3);
        float *distances = b.allocate<float>(n * CLOUD);
        int *picks = b.output<int>(n * PICKS);
        b.tolerance = 0;
        return {{"flawed", launch(farthest, n, PICKERS, 0, points, distances, picks)}, {"shuffles", launch(farthest_shuffles, n, PICKERS, 0, points, distances, picks)},
            {"registers", launch(farthest_registers, n, PICKERS, 0, points, picks)}};
    });

// --- ball query: the first 32 points within a radius of each centre ---

constexpr int BALL_POINTS = 8192, CENTRES = 1024, WANTED = 32;

__device__ __forceinline__ void query_one(const float *points, const float *centre, int *out, float radius2) {
    float x = centre[0], y = centre[1], z = centre[2];
    int found = 0;
    for (int i = 0; i < BALL_POINTS && found < WANTED; ++i) {
        if (squared(points[3 * i] - x, points[3 * i + 1] - y, points[3 * i + 2] - z) < radius2) {
            if (found == 0)
                for (int k = 0; k < WANTED; ++k) out[k] = i;
            out[found++] = i;
        }
    }
}
__global__ void ball_query(const float *points, const float *centres, int *out, float radius2) {
    int cloud = blockIdx.x;
    for (int c = threadIdx.x; c < CENTRES; c += blockDim.x)
        query_one(points + cloud * BALL_POINTS * 3, centres + (cloud * CENTRES + c) * 3, out + (cloud * CENTRES + c) * WANTED, radius2);
}
__global__ void ball_query_grid(const float *__restrict__ points, const float *__restrict__ centres, int *__restrict__ out, float radius2) {
    int cloud = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    query_one(points + cloud * BALL_POINTS * 3, centres + (cloud * CENTRES + c) * 3, out + (cloud * CENTRES + c) * WANTED, radius2);
}
// Tiles of points in shared memory, four words a point.
__global__ void __launch_bounds__(128) ball_query_tiles(const float *__restrict__ points, const float *__restrict__ centres, int *__restrict__ out, float radius2) {
    constexpr int tile = 1024;
    __shared__ float4 held[tile];
    int cloud = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x, found = 0;
    const float *mine = points + cloud * BALL_POINTS * 3, *centre = centres + (cloud * CENTRES + c) * 3;
    int *to = out + (cloud * CENTRES + c) * WANTED;
    float x = centre[0], y = centre[1], z = centre[2];
    for (int first = 0; first < BALL_POINTS; first += tile) {
        for (int i = threadIdx.x; i < tile; i += 128) held[i] = make_float4(mine[3 * (first + i)], mine[3 * (first + i) + 1], mine[3 * (first + i) + 2], 0.f);
        __syncthreads();
        for (int i = 0; i < tile && found < WANTED; ++i) {
            float4 p = held[i];
            if (squared(p.x - x, p.y - y, p.z - z) < radius2) {
                if (found == 0)
                    for (int k = 0; k < WANTED; ++k) to[k] = first + i;
                to[found++] = first + i;
            }
        }
        if (__syncthreads_and(found >= WANTED)) break;
    }
}
// A warp a centre: 32 points at a time, places by votes.
__global__ void __launch_bounds__(256) ball_query_warp(const float *__restrict__ points, const float *__restrict__ centres, int *__restrict__ out, float radius2) {
    int cloud = blockIdx.y, c = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, found = 0, lowest = 0;
    const float *mine = points + cloud * BALL_POINTS * 3, *centre = centres + (cloud * CENTRES + c) * 3;
    int *to = out + (cloud * CENTRES + c) * WANTED;
    float x = centre[0], y = centre[1], z = centre[2];
#pragma unroll 4
    for (int i = lane; i < BALL_POINTS; i += 32) {
        bool near = squared(mine[3 * i] - x, mine[3 * i + 1] - y, mine[3 * i + 2] - z) < radius2;
        unsigned votes = __ballot_sync(~0u, near);
        if (found == 0 && votes) lowest = i - lane + __ffs(votes) - 1;
        int at = found + __popc(votes & ((1u << lane) - 1));
        if (near && at < WANTED) to[at] = i;
        found += __popc(votes);
        if (found >= WANTED) break;
    }
    if (lane >= found) to[lane] = lowest;
}
__global__ void first_points(const float *points, float *centres, int clouds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < clouds * CENTRES * 3) centres[i] = points[i / (CENTRES * 3) * BALL_POINTS * 3 + i % (CENTRES * 3)];
}

Study ball_queries("ball_query_block_per_cloud", "point clouds", 32, "the first 32 points within a radius of each of 1024 centres, 32 clouds of 8192 points",
    "a block a cloud: 32 blocks for the whole GPU, a thread searches for four centres one after the other",
    {{"grid", "eight blocks a cloud, a thread a centre", {"small_grid"}}, {"tiles", "eight blocks a cloud, points through shared memory", {"small_grid", "memory_latency"}},
        {"warp", "a warp a centre, places by votes", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *points = b.random<float>(n * BALL_POINTS * 3, 0, 1);
        float *centres = b.allocate<float>(n * CENTRES * 3), radius2 = 0.01f;
        launch(first_points, blocks(n * CENTRES * 3, 256), 256, 0, points, centres, n)();
        CHECK_LAUNCH();
        int *out = b.output<int>(n * CENTRES * WANTED);
        b.tolerance = 0;
        return {{"flawed", launch(ball_query, n, 256, 0, points, centres, out, radius2)}, {"grid", launch(ball_query_grid, dim3(CENTRES / 128, n), 128, 0, points, centres, out, radius2)},
            {"tiles", launch(ball_query_tiles, dim3(CENTRES / 128, n), 128, 0, points, centres, out, radius2)},
            {"warp", launch(ball_query_warp, dim3(CENTRES / 8, n), 256, 0, points, centres, out, radius2)}};
    });

// --- modulated convolution weights: scaled by a style, then to unit norm for every output ---

constexpr int STYLE = 256, KERNEL = 9, FILTER = STYLE * KERNEL;

__global__ void modulate(const float *weights, const float *styles, float *out, int filters) {
    __shared__ float sums[256];
    int o = blockIdx.x, sample = blockIdx.y, t = threadIdx.x;
    float *mine = out + (static_cast<size_t>(sample) * filters + o) * FILTER;
    for (int j = t; j < FILTER; j += 256) mine[j] = weights[o * FILTER + j] * styles[sample * STYLE + j / KERNEL];
    __syncthreads();
    float sum = 0.f;
    for (int j = t; j < FILTER; j += 256) sum += mine[j] * mine[j];
    sums[t] = sum;
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
        if (t < s) sums[t] += sums[t + s];
        __syncthreads();
    }
    for (int j = t; j < FILTER; j += 256) mine[j] *= rsqrtf(sums[0] + 1e-8f);
}
__device__ __forceinline__ float sum_of_256(float sum) {
    __shared__ float sums[8];
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}
// The thread's nine products stay in registers.
__global__ void __launch_bounds__(256) modulate_registers(const float *__restrict__ weights, const float *__restrict__ styles, float *__restrict__ out, int filters) {
    int o = blockIdx.x, sample = blockIdx.y, t = threadIdx.x;
    float *mine = out + (static_cast<size_t>(sample) * filters + o) * FILTER, value[KERNEL], sum = 0.f;
#pragma unroll
    for (int q = 0; q < KERNEL; ++q) {
        int j = q * 256 + t;
        value[q] = weights[o * FILTER + j] * styles[sample * STYLE + j / KERNEL];
        sum = fmaf(value[q], value[q], sum);
    }
    float scale = rsqrtf(sum_of_256(sum) + 1e-8f);
#pragma unroll
    for (int q = 0; q < KERNEL; ++q) mine[q * 256 + t] = value[q] * scale;
}
// The norm first, from weights and styles; products are computed a second time and written once.
__global__ void __launch_bounds__(256) modulate_norm_first(const float *__restrict__ weights, const float *__restrict__ styles, float *__restrict__ out, int filters) {
    int o = blockIdx.x, sample = blockIdx.y, t = threadIdx.x;
    float *mine = out + (static_cast<size_t>(sample) * filters + o) * FILTER, sum = 0.f;
    for (int j = t; j < FILTER; j += 256) {
        float value = weights[o * FILTER + j] * styles[sample * STYLE + j / KERNEL];
        sum = fmaf(value, value, sum);
    }
    float scale = rsqrtf(sum_of_256(sum) + 1e-8f);
    for (int j = t; j < FILTER; j += 256) mine[j] = weights[o * FILTER + j] * styles[sample * STYLE + j / KERNEL] * scale;
}
// A filter's weights stay in registers for four samples.
__global__ void __launch_bounds__(256) modulate_samples(const float *__restrict__ weights, const float *__restrict__ styles, float *__restrict__ out, int filters) {
    int o = blockIdx.x, t = threadIdx.x;
    float weight[KERNEL];
#pragma unroll
    for (int q = 0; q < KERNEL; ++q) weight[q] = weights[o * FILTER + q * 256 + t];
    for (int sample = blockIdx.y * 4; sample < static_cast<int>(blockIdx.y) * 4 + 4; ++sample) {
        float *mine = out + (static_cast<size_t>(sample) * filters + o) * FILTER, value[KERNEL], sum = 0.f;
#pragma unroll
        for (int q = 0; q < KERNEL; ++q) {
            value[q] = weight[q] * styles[sample * STYLE + (q * 256 + t) / KERNEL];
            sum = fmaf(value[q], value[q], sum);
        }
        float scale = rsqrtf(sum_of_256(sum) + 1e-8f);
#pragma unroll
        for (int q = 0; q < KERNEL; ++q) mine[q * 256 + t] = value[q] * scale;
    }
}

Study modulated("modulated_weights_written_twice", "models", 64, "weights of 256 filters of 256 x 3 x 3 scaled by the styles of 64 samples and to unit norm",
    "products are written, read for their norm, read again and written again",
    {{"registers", "a thread's products stay in registers", {"redundant_loads"}}, {"norm_first", "the norm first, products computed twice", {"redundant_loads"}},
        {"samples", "products in registers, a filter's weights kept for four samples", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int filters = 256;
        const float *weights = b.random<float>(filters * FILTER), *styles = b.random<float>(n * STYLE, 0.5, 1.5);
        float *out = b.output<float>(n * filters * FILTER);
        return {{"flawed", launch(modulate, dim3(filters, n), 256, 0, weights, styles, out, filters)},
            {"registers", launch(modulate_registers, dim3(filters, n), 256, 0, weights, styles, out, filters)},
            {"norm_first", launch(modulate_norm_first, dim3(filters, n), 256, 0, weights, styles, out, filters)},
            {"samples", launch(modulate_samples, dim3(filters, n / 4), 256, 0, weights, styles, out, filters)}};
    });

}  // namespace
