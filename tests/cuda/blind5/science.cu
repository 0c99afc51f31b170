// Pieces of physics, bioinformatics and of what is done with signals. Each kernel has one weakness and one or two ways out of it.
#include "../pairs/pair.cuh"

namespace {

// --- a gate on four qubits of a simulated quantum computer ---

__constant__ float2 GATE[256];

__device__ __forceinline__ void apply_gate(const float2 *a, float2 *out) {
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        float2 s{0.f, 0.f};
#pragma unroll
        for (int c = 0; c < 16; ++c) {
            float2 m = GATE[r * 16 + c];
            s.x += m.x * a[c].x - m.y * a[c].y, s.y += m.x * a[c].y + m.y * a[c].x;
        }
        out[r] = s;
    }
}
__global__ void gate_of_lowest(const float2 *state, float2 *out) {
    size_t first = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) * 16;
    float2 a[16], r[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) a[i] = state[first + i];
    apply_gate(a, r);
#pragma unroll
    for (int i = 0; i < 16; ++i) out[first + i] = r[i];
}
__global__ void __launch_bounds__(128) gate_of_lowest_wide(const float4 *state, float4 *out) {
    size_t first = (size_t(blockIdx.x) * 128 + threadIdx.x) * 8;
    float2 a[16], r[16];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float4 v = state[first + i];
        a[2 * i] = {v.x, v.y}, a[2 * i + 1] = {v.z, v.w};
    }
    apply_gate(a, r);
#pragma unroll
    for (int i = 0; i < 8; ++i) out[first + i] = {r[2 * i].x, r[2 * i].y, r[2 * i + 1].x, r[2 * i + 1].y};
}
__global__ void __launch_bounds__(128) gate_of_lowest_staged(const float2 *state, float2 *out) {
    __shared__ float2 tile[128 * 17];
    size_t first = size_t(blockIdx.x) * 2048;
    int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < 16; ++i) tile[(i * 128 + t) / 16 * 17 + t % 16] = state[first + i * 128 + t];
    __syncthreads();
    float2 a[16], r[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) a[i] = tile[t * 17 + i];
    apply_gate(a, r);
#pragma unroll
    for (int i = 0; i < 16; ++i) tile[t * 17 + i] = r[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) out[first + i * 128 + t] = tile[(i * 128 + t) / 16 * 17 + t % 16];
}

Study gates("gate_on_low_qubits_by_thread", "physics", 24, "a gate on the lowest four of 24 qubits",
    "a thread takes sixteen neighbouring amplitudes: lanes are 128 bytes apart",
    {{"wide", "two amplitudes an access", {"uncoalesced_access", "narrow_access"}},
        {"staged", "amplitudes through shared memory, read and written side by side", {"uncoalesced_access"}}},
    [](Buffers &b, long qubits) -> Sides {
        long n = 1l << qubits;
        std::vector<float2> gate(256);
        for (int i = 0; i < 256; ++i) gate[i] = {hash(i) % 1000 / 4000.f - 0.125f, hash(i + 999) % 1000 / 4000.f - 0.125f};
        CHECK(cudaMemcpyToSymbol(GATE, gate.data(), sizeof(float2) * 256));
        float *state = b.random<float>(2 * n), *out = b.output<float>(2 * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gate_of_lowest, n / 2048, 128, 0, (float2 *)state, (float2 *)out)},
            {"wide", launch(gate_of_lowest_wide, n / 2048, 128, 0, (float4 *)state, (float4 *)out)},
            {"staged", launch(gate_of_lowest_staged, n / 2048, 128, 0, (float2 *)state, (float2 *)out)}};
    });

// --- contacts of grains sorted by cells ---

constexpr int CELLS = 56;

__device__ __forceinline__ void touch(float x, float y, float z, float ox, float oy, float oz, float3 &f) {
    float dx = x - ox, dy = y - oy, dz = z - oz, d2 = dx * dx + dy * dy + dz * dz;
    if (d2 < 1.f && d2 > 1e-8f) {
        float d = sqrtf(d2), push = (1.f - d) / d;
        f.x += push * dx, f.y += push * dy, f.z += push * dz;
    }
}
__global__ void contacts(const float *x, const float *y, const float *z, const int *starts, float *fx, float *fy, float *fz, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 f{0.f, 0.f, 0.f};
    int cx = x[i], cy = y[i], cz = z[i];
    for (int k = -1; k <= 1; ++k)
        for (int j = -1; j <= 1; ++j)
            for (int l = -1; l <= 1; ++l) {
                int u = cx + l, v = cy + j, w = cz + k;
                if (u < 0 || v < 0 || w < 0 || u >= CELLS || v >= CELLS || w >= CELLS) continue;
                int cell = (w * CELLS + v) * CELLS + u;
                for (int o = starts[cell]; o < starts[cell + 1]; ++o) touch(x[i], y[i], z[i], x[o], y[o], z[o], f);
            }
    fx[i] = f.x, fy[i] = f.y, fz[i] = f.z;
}
__global__ void contacts_runs(const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, const int *__restrict__ starts,
    float *__restrict__ fx, float *__restrict__ fy, float *__restrict__ fz, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 f{0.f, 0.f, 0.f};
    float mx = x[i], my = y[i], mz = z[i];
    int cx = mx, cy = my, cz = mz, left = max(cx - 1, 0), right = min(cx + 1, CELLS - 1);
    for (int w = max(cz - 1, 0); w <= min(cz + 1, CELLS - 1); ++w)
        for (int v = max(cy - 1, 0); v <= min(cy + 1, CELLS - 1); ++v) {
            int row = (w * CELLS + v) * CELLS, end = starts[row + right + 1];
            for (int o = starts[row + left]; o < end; ++o) touch(mx, my, mz, x[o], y[o], z[o], f);
        }
    fx[i] = f.x, fy[i] = f.y, fz[i] = f.z;
}
__global__ void contacts_records(const float4 *__restrict__ grains, const int *__restrict__ starts, float *__restrict__ fx, float *__restrict__ fy,
    float *__restrict__ fz, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 f{0.f, 0.f, 0.f};
    float4 m = grains[i];
    int cx = m.x, cy = m.y, cz = m.z, left = max(cx - 1, 0), right = min(cx + 1, CELLS - 1);
    for (int w = max(cz - 1, 0); w <= min(cz + 1, CELLS - 1); ++w)
        for (int v = max(cy - 1, 0); v <= min(cy + 1, CELLS - 1); ++v) {
            int row = (w * CELLS + v) * CELLS, end = starts[row + right + 1];
#pragma unroll 4
            for (int o = starts[row + left]; o < end; ++o) {
                float4 other = grains[o];
                touch(m.x, m.y, m.z, other.x, other.y, other.z, f);
            }
        }
    fx[i] = f.x, fy[i] = f.y, fz[i] = f.z;
}

Study contact_forces("contacts_27_cells_each", "physics", CELLS, "forces between touching grains in a box of 56^3 cells, three a cell, sorted by cells",
    "27 cells of a few grains each are looked up and walked one by one",
    {{"runs", "three cells of a row are one run: nine walks", {"memory_latency", "branch_divergence"}},
        {"records", "nine runs, positions as records of 16 bytes", {"memory_latency", "branch_divergence", "narrow_access"}}},
    [](Buffers &b, long cells) -> Sides {
        std::vector<int> starts;
        std::vector<float> x, y, z, all;
        auto unit = [](unsigned i) { return hash(i) / 4294967296.f * 0.99f; };
        for (int c = 0; c < cells * cells * cells; ++c) {
            starts.push_back(x.size());
            for (int k = 0, count = hash(c) % 7; k < count; ++k) {
                x.push_back(c % cells + unit(32 * c + 4 * k)), y.push_back(c / cells % cells + unit(32 * c + 4 * k + 1));
                z.push_back(c / (cells * cells) + unit(32 * c + 4 * k + 2));
            }
        }
        starts.push_back(x.size());
        int n = x.size();
        for (int i = 0; i < n; ++i) all.insert(all.end(), {x[i], y[i], z[i], 0.f});
        float *px = b.copy(x), *py = b.copy(y), *pz = b.copy(z), *grains = b.copy(all);
        int *s = b.copy(starts);
        float *fx = b.output<float>(n), *fy = b.output<float>(n), *fz = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(contacts, blocks(n, 128), 128, 0, px, py, pz, s, fx, fy, fz, n)},
            {"runs", launch(contacts_runs, blocks(n, 128), 128, 0, px, py, pz, s, fx, fy, fz, n)},
            {"records", launch(contacts_records, blocks(n, 128), 128, 0, (float4 *)grains, s, fx, fy, fz, n)}};
    });

// --- backward search in an FM index ---

__global__ void fm_search(const unsigned char *text, const unsigned *counts, const unsigned char *patterns, const unsigned *smaller,
    unsigned *low, unsigned *high, int queries, int length, unsigned total) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    unsigned lo = 0, hi = total - 1;
    for (int i = length - 1; i >= 0 && lo < hi; --i) {
        int c = patterns[i * queries + q];
        unsigned bound[2] = {lo, hi};
        for (int side = 0; side < 2; ++side) {
            unsigned block = bound[side] / 64, n = counts[block * 4 + c];
            for (unsigned p = block * 64; p < bound[side]; ++p)
                if (text[p] == c) ++n;
            bound[side] = smaller[c] + n;
        }
        lo = bound[0], hi = bound[1];
    }
    low[q] = lo, high[q] = hi;
}
__device__ __forceinline__ unsigned equal_before(const unsigned *words, unsigned letters, int c) {
    unsigned n = 0, wanted = c * 0x01010101u;
#pragma unroll
    for (int w = 0; w < 16; ++w) {
        int valid = min(4, max(0, int(letters) - 4 * w));
        unsigned mask = valid == 4 ? ~0u : (1u << 8 * valid) - 1;
        n += __popc(__vcmpeq4(words[w], wanted) & mask) / 8;
    }
    return n;
}
__global__ void fm_search_words(const uint4 *__restrict__ text, const unsigned *__restrict__ counts, const unsigned char *__restrict__ patterns,
    const unsigned *__restrict__ smaller, unsigned *__restrict__ low, unsigned *__restrict__ high, int queries, int length, unsigned total) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    unsigned lo = 0, hi = total - 1;
    for (int i = length - 1; i >= 0 && lo < hi; --i) {
        int c = patterns[i * queries + q];
        unsigned bound[2] = {lo, hi};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            unsigned block = bound[side] / 64, n = counts[block * 4 + c];
            uint4 raw[4] = {text[block * 4], text[block * 4 + 1], text[block * 4 + 2], text[block * 4 + 3]};
            bound[side] = smaller[c] + n + equal_before(reinterpret_cast<unsigned *>(raw), bound[side] % 64, c);
        }
        lo = bound[0], hi = bound[1];
    }
    low[q] = lo, high[q] = hi;
}
// A block of 64 letters: its four counts, then the letters as two planes of 64 bits: 32 bytes.
struct __align__(16) FmBlock {
    unsigned counts[4];
    unsigned long long first, second;
};
__global__ void fm_search_bits(const FmBlock *__restrict__ index, const unsigned char *__restrict__ patterns, const unsigned *__restrict__ smaller,
    unsigned *__restrict__ low, unsigned *__restrict__ high, int queries, int length, unsigned total) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    unsigned lo = 0, hi = total - 1;
    for (int i = length - 1; i >= 0 && lo < hi; --i) {
        int c = patterns[i * queries + q];
        unsigned bound[2] = {lo, hi};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const FmBlock &block = index[bound[side] / 64];
            ulonglong2 planes = *reinterpret_cast<const ulonglong2 *>(&block.first);
            unsigned long long same = (c & 1 ? planes.x : ~planes.x) & (c & 2 ? planes.y : ~planes.y) & ((1ull << bound[side] % 64) - 1);
            bound[side] = smaller[c] + block.counts[c] + __popcll(same);
        }
        lo = bound[0], hi = bound[1];
    }
    low[q] = lo, high[q] = hi;
}

Study fm_searches("occurrences_counted_letter_by_letter", "bioinformatics", 1 << 24, "262144 patterns of 20 letters sought backwards in an index of 16777216",
    "occurrences after the last checkpoint are counted letter by letter, 32 a step on average",
    {{"words", "64 letters by four 16-byte loads, four compared at a time", {"narrow_access", "branch_divergence", "memory_latency"}},
        {"bits", "counts and letters as bits in one record of 32 bytes", {"narrow_access", "branch_divergence", "memory_latency"}}},
    [](Buffers &b, long total) -> Sides {
        int queries = 1 << 18, length = 20;
        // A block more than there are letters: a bound may be their number.
        std::vector<unsigned char> text(total + 64), patterns(queries * length);
        std::vector<unsigned> counts(total / 16 + 4), smaller(4);
        std::vector<FmBlock> index(total / 64 + 1);
        unsigned seen[4] = {};
        for (long i = 0; i <= total; ++i) {
            if (i % 64 == 0)
                for (int c = 0; c < 4; ++c) counts[i / 16 + c] = index[i / 64].counts[c] = seen[c];
            if (i == total) break;
            unsigned c = hash(i) >> 30;
            text[i] = c, ++seen[c];
            index[i / 64].first |= (unsigned long long)(c & 1) << i % 64, index[i / 64].second |= (unsigned long long)(c >> 1) << i % 64;
        }
        for (int c = 1; c < 4; ++c) smaller[c] = smaller[c - 1] + seen[c - 1];
        for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = hash(i + 12345) >> 30;
        auto *t = b.copy(text), *p = b.copy(patterns);
        unsigned *n = b.copy(counts), *s = b.copy(smaller), *low = b.output<unsigned>(queries), *high = b.output<unsigned>(queries);
        FmBlock *packed = b.copy(index);
        b.tolerance = 1e-9;
        return {{"flawed", launch(fm_search, queries / 128, 128, 0, t, n, p, s, low, high, queries, length, total)},
            {"words", launch(fm_search_words, queries / 128, 128, 0, (uint4 *)t, n, p, s, low, high, queries, length, total)},
            {"bits", launch(fm_search_bits, queries / 128, 128, 0, packed, p, s, low, high, queries, length, total)}};
    });

// --- minimisers of a sequence ---

constexpr int LETTERS = 15, SPAN = 16;  // letters of a word, words of a window

__global__ void minimisers(const unsigned char *bases, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned word = 0, least = ~0u;
    for (int k = 0; k < LETTERS - 1; ++k) word = word << 2 | bases[i + k];
    for (int w = 0; w < SPAN; ++w) {
        word = (word << 2 | bases[i + LETTERS - 1 + w]) & 0x3fffffffu;
        least = min(least, hash(word));
    }
    out[i] = least;
}
__global__ void __launch_bounds__(256) minimisers_shared(const unsigned char *bases, unsigned *out) {
    __shared__ unsigned char letters[256 + LETTERS + SPAN];
    __shared__ unsigned hashes[256 + SPAN];
    int first = blockIdx.x * 256, t = threadIdx.x;
    for (int i = t; i < 256 + LETTERS + SPAN - 2; i += 256) letters[i] = bases[first + i];
    __syncthreads();
    for (int i = t; i < 256 + SPAN - 1; i += 256) {
        unsigned word = 0;
#pragma unroll
        for (int k = 0; k < LETTERS; ++k) word = word << 2 | letters[i + k];
        hashes[i] = hash(word);
    }
    __syncthreads();
    unsigned least = hashes[t];
#pragma unroll
    for (int w = 1; w < SPAN; ++w) least = min(least, hashes[t + w]);
    out[first + t] = least;
}
// A thread four neighbouring windows: 15 hashes are common to all of them.
__global__ void minimisers_four(const unsigned char *__restrict__ bases, uint4 *__restrict__ out, int quads) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= quads) return;
    const uchar4 *p = reinterpret_cast<const uchar4 *>(bases) + at;
    unsigned word = 0, hashes[SPAN + 3];
#pragma unroll
    for (int q = 0; q < 9; ++q) {
        uchar4 v = p[q];
        unsigned letters[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            word = (word << 2 | letters[k]) & 0x3fffffffu;
            int w = 4 * q + k - (LETTERS - 1);
            if (w >= 0 && w < SPAN + 3) hashes[w] = hash(word);
        }
    }
    unsigned common = hashes[3];
#pragma unroll
    for (int w = 4; w < SPAN; ++w) common = min(common, hashes[w]);
    out[at] = {min(common, min(hashes[0], min(hashes[1], hashes[2]))), min(common, min(hashes[1], min(hashes[2], hashes[16]))),
        min(common, min(hashes[2], min(hashes[16], hashes[17]))), min(common, min(hashes[16], min(hashes[17], hashes[18])))};
}

Study minimiser_windows("minimisers_window_hashed_again", "bioinformatics", 1 << 23, "the least hash of 16 words of 15 letters at each of 8388608 places",
    "every place hashes its window's 16 words and reads their 30 letters anew",
    {{"shared", "each word hashed once a block, windows from shared memory", {"redundant_loads", "integer_arithmetic"}},
        {"four", "four windows a thread share 13 of their words, letters by four", {"redundant_loads", "integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *bases = b.random<unsigned char>(n + 64, 0, 4);
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 1e-12;
        return {{"flawed", launch(minimisers, n / 256, 256, 0, bases, out, n)},
            {"shared", launch(minimisers_shared, n / 256, 256, 0, bases, out)},
            {"four", launch(minimisers_four, n / 1024, 256, 0, bases, (uint4 *)out, n / 4)}};
    });

// --- likelihoods of a tree's node, site by site ---

__constant__ float LEFT[64], RIGHT[64];  // four rate categories, 4 x 4

__global__ void partials(const float *left, const float *right, float *out, int sites) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= sites) return;
    for (int c = 0; c < 4; ++c)
        for (int i = 0; i < 4; ++i) {
            float a = 0.f, d = 0.f;
            for (int j = 0; j < 4; ++j) {
                a += LEFT[c * 16 + i * 4 + j] * left[s * 16 + c * 4 + j];
                d += RIGHT[c * 16 + i * 4 + j] * right[s * 16 + c * 4 + j];
            }
            out[s * 16 + c * 4 + i] = a * d;
        }
}
__global__ void partials_category(const float4 *__restrict__ left, const float4 *__restrict__ right, float4 *__restrict__ out, const float4 *__restrict__ lm,
    const float4 *__restrict__ rm, int quads) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= quads) return;
    float4 l = left[at], r = right[at], result;
    const float4 *a = lm + at % 4 * 4, *d = rm + at % 4 * 4;
    auto dot = [](float4 u, float4 v) { return u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w; };
    result.x = dot(a[0], l) * dot(d[0], r), result.y = dot(a[1], l) * dot(d[1], r);
    result.z = dot(a[2], l) * dot(d[2], r), result.w = dot(a[3], l) * dot(d[3], r);
    out[at] = result;
}
__global__ void partials_states(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ out, const float4 *__restrict__ lm,
    const float4 *__restrict__ rm, int values) {
    float4 a = lm[threadIdx.x % 16], d = rm[threadIdx.x % 16];
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < values; at += gridDim.x * blockDim.x) {
        float l = left[at], r = right[at];
        float u = a.x * __shfl_sync(~0u, l, 0, 4) + a.y * __shfl_sync(~0u, l, 1, 4) + a.z * __shfl_sync(~0u, l, 2, 4) + a.w * __shfl_sync(~0u, l, 3, 4);
        float v = d.x * __shfl_sync(~0u, r, 0, 4) + d.y * __shfl_sync(~0u, r, 1, 4) + d.z * __shfl_sync(~0u, r, 2, 4) + d.w * __shfl_sync(~0u, r, 3, 4);
        out[at] = u * v;
    }
}

Study partial_likelihoods("partials_site_by_thread", "bioinformatics", 1 << 20, "likelihoods of 1048576 sites, four states in four rate categories, from two children",
    "a thread takes a site's sixteen values: lanes are 64 bytes apart, a value an access",
    {{"category", "a thread a category of a site: four values an access", {"uncoalesced_access", "narrow_access"}},
        {"states", "a lane a value, its row of the matrices in registers, the others' by shuffles", {"uncoalesced_access"}}},
    [](Buffers &b, long sites) -> Sides {
        std::vector<float> l(64), r(64);
        for (int i = 0; i < 64; ++i) l[i] = hash(i) % 1000 / 1000.f, r[i] = hash(i + 500) % 1000 / 1000.f;
        CHECK(cudaMemcpyToSymbol(LEFT, l.data(), 256));
        CHECK(cudaMemcpyToSymbol(RIGHT, r.data(), 256));
        float *lm = b.copy(l), *rm = b.copy(r);
        float *left = b.random<float>(sites * 16, 0, 1), *right = b.random<float>(sites * 16, 0, 1), *out = b.output<float>(sites * 16);
        return {{"flawed", launch(partials, sites / 128, 128, 0, left, right, out, sites)},
            {"category", launch(partials_category, sites / 64, 256, 0, (float4 *)left, (float4 *)right, (float4 *)out, (float4 *)lm, (float4 *)rm, sites * 4)},
            {"states", launch(partials_states, 8 * multiprocessors(), 256, 0, left, right, out, (float4 *)lm, (float4 *)rm, sites * 16)}};
    });

// --- linear prediction of audio frames ---

__global__ void levinson(const float *correlations, float *coefficients, float *errors, int frames, int order) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= frames) return;
    float a[33], next[33], error = correlations[f] + 20.f;
    for (int i = 0; i <= order; ++i) a[i] = 0.f;
    a[0] = 1.f;
    for (int i = 1; i <= order; ++i) {
        float sum = 0.f;
        for (int j = 0; j < i; ++j) sum += a[j] * correlations[(i - j) * frames + f];
        float k = -sum / error;
        for (int j = 0; j <= i; ++j) next[j] = a[j] + k * a[i - j];
        for (int j = 0; j <= i; ++j) a[j] = next[j];
        error *= 1.f - k * k;
    }
    for (int i = 1; i <= order; ++i) coefficients[(i - 1) * frames + f] = a[i];
    errors[f] = error;
}
template <int ORDER>
__global__ void __launch_bounds__(128) levinson_unrolled(const float *__restrict__ correlations, float *__restrict__ coefficients, float *__restrict__ errors, int frames) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= frames) return;
    float a[ORDER + 1], r[ORDER + 1];
#pragma unroll
    for (int i = 0; i <= ORDER; ++i) r[i] = correlations[i * frames + f], a[i] = 0.f;
    a[0] = 1.f;
    float error = r[0] + 20.f;
#pragma unroll
    for (int i = 1; i <= ORDER; ++i) {
        float sum = 0.f;
#pragma unroll
        for (int j = 0; j < i; ++j) sum += a[j] * r[i - j];
        float k = -sum / error;
#pragma unroll
        for (int j = 0; j <= i / 2; ++j) {
            float u = a[j], w = a[i - j];
            a[j] = u + k * w, a[i - j] = w + k * u;
        }
        error *= 1.f - k * k;
    }
#pragma unroll
    for (int i = 1; i <= ORDER; ++i) coefficients[(i - 1) * frames + f] = a[i];
    errors[f] = error;
}
__global__ void __launch_bounds__(128) levinson_shared(const float *__restrict__ correlations, float *__restrict__ coefficients, float *__restrict__ errors, int frames, int order) {
    extern __shared__ float pool[];
    int f = blockIdx.x * 128 + threadIdx.x;
    float *a = pool + threadIdx.x, *r = pool + (order + 1) * 128 + threadIdx.x;
    for (int i = 0; i <= order; ++i) r[i * 128] = correlations[i * frames + f], a[i * 128] = 0.f;
    a[0] = 1.f;
    float error = r[0] + 20.f;
    for (int i = 1; i <= order; ++i) {
        float sum = 0.f;
        for (int j = 0; j < i; ++j) sum += a[j * 128] * r[(i - j) * 128];
        float k = -sum / error;
        for (int j = 0; j <= i / 2; ++j) {
            float u = a[j * 128], w = a[(i - j) * 128];
            a[j * 128] = u + k * w, a[(i - j) * 128] = w + k * u;
        }
        error *= 1.f - k * k;
    }
    for (int i = 1; i <= order; ++i) coefficients[(i - 1) * frames + f] = a[i * 128];
    errors[f] = error;
}

Study levinsons("levinson_arrays_in_local", "signals", 1 << 18, "linear prediction of order 16 for 262144 frames by Levinson's recursion",
    "coefficients in two arrays that a loop of unknown length indexes: local memory",
    {{"unrolled", "order known when compiled, coefficients in registers, changed in place", {"local_memory"}},
        {"shared", "coefficients in shared memory, a bank a lane, changed in place", {"local_memory"}}},
    [](Buffers &b, long frames) -> Sides {
        float *r = b.random<float>(17 * frames), *a = b.output<float>(16 * frames), *errors = b.output<float>(frames);
        b.tolerance = 1e-3;
        return {{"flawed", launch(levinson, frames / 128, 128, 0, r, a, errors, frames, 16)},
            {"unrolled", launch(levinson_unrolled<16>, frames / 128, 128, 0, r, a, errors, frames)},
            {"shared", launch(levinson_shared, frames / 128, 128, 2 * 17 * 128 * 4, r, a, errors, frames, 16)}};
    });

// --- ADPCM audio ---

__constant__ int STEPS[89];
__constant__ int CHANGES[8];

struct Decoder {
    int predicted = 0, index = 20;
    __device__ float next(int nibble, const int *steps, const int *changes) {
        int step = steps[index], difference = step >> 3;
        if (nibble & 4) difference += step;
        if (nibble & 2) difference += step >> 1;
        if (nibble & 1) difference += step >> 2;
        predicted += nibble & 8 ? -difference : difference;
        predicted = min(32767, max(-32768, predicted));
        index = min(88, max(0, index + changes[nibble & 7]));
        return predicted * (1.f / 32768.f);
    }
};
__global__ void adpcm(const unsigned char *bytes, float *samples, int count) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= count) return;
    Decoder d;
    for (int i = 0; i < 128; ++i) {
        int c = bytes[b * 128 + i];
        samples[b * 256 + 2 * i] = d.next(c & 15, STEPS, CHANGES);
        samples[b * 256 + 2 * i + 1] = d.next(c >> 4, STEPS, CHANGES);
    }
}
__global__ void adpcm_shared_table(const unsigned char *bytes, float *samples, int count) {
    __shared__ int steps[89], changes[8];
    if (threadIdx.x < 89) steps[threadIdx.x] = STEPS[threadIdx.x];
    if (threadIdx.x < 8) changes[threadIdx.x] = CHANGES[threadIdx.x];
    __syncthreads();
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= count) return;
    Decoder d;
    for (int i = 0; i < 128; ++i) {
        int c = bytes[b * 128 + i];
        samples[b * 256 + 2 * i] = d.next(c & 15, steps, changes);
        samples[b * 256 + 2 * i + 1] = d.next(c >> 4, steps, changes);
    }
}
__global__ void __launch_bounds__(128) adpcm_staged(const unsigned *__restrict__ words, float *__restrict__ samples) {
    __shared__ int steps[89], changes[8];
    __shared__ float tile[4][32][33];
    if (threadIdx.x < 89) steps[threadIdx.x] = STEPS[threadIdx.x];
    if (threadIdx.x < 8) changes[threadIdx.x] = CHANGES[threadIdx.x];
    __syncthreads();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * 128 + warp * 32;
    const uint4 *mine = reinterpret_cast<const uint4 *>(words) + (first + lane) * 8;
    Decoder d;
    for (int i = 0; i < 8; ++i) {
        uint4 raw = mine[i];
        unsigned w[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int k = 0; k < 32; ++k) tile[warp][lane][k] = d.next(w[k / 8] >> (k % 8 * 4) & 15, steps, changes);
        __syncwarp();
        for (int r = 0; r < 32; ++r) samples[(first + r) * 256 + i * 32 + lane] = tile[warp][r][lane];
        __syncwarp();
    }
}

Study adpcms("adpcm_steps_in_constants", "signals", 1 << 17, "131072 blocks of 256 samples of four-bit ADPCM decoded",
    "the table of steps lies in constant memory; a thread decodes a block: lanes are 1 KiB apart",
    {{"shared_table", "tables in shared memory", {"constant_divergence"}},
        {"staged", "tables in shared memory, bytes by 16, samples written side by side through shared memory",
            {"constant_divergence", "uncoalesced_access"}}},
    [](Buffers &b, long count) -> Sides {
        int steps[89], changes[8] = {-1, -1, -1, -1, 2, 4, 6, 8};
        double step = 7.;
        for (int &s : steps) s = int(step), step = step * 1.1 + 0.5;
        CHECK(cudaMemcpyToSymbol(STEPS, steps, sizeof steps));
        CHECK(cudaMemcpyToSymbol(CHANGES, changes, sizeof changes));
        auto *bytes = b.random<unsigned char>(count * 128, 0, 256);
        float *samples = b.output<float>(count * 256);
        b.tolerance = 1e-9;
        return {{"flawed", launch(adpcm, count / 128, 128, 0, bytes, samples, count)},
            {"shared_table", launch(adpcm_shared_table, count / 128, 128, 0, bytes, samples, count)},
            {"staged", launch(adpcm_staged, count / 128, 128, 0, (unsigned *)bytes, samples)}};
    });

// --- visibilities of a radio telescope ---

constexpr int ANTENNAS = 64, TIMES = 256;

__global__ void correlate(const float2 *voltages, float2 *visibilities) {
    int a = blockIdx.y * 16 + threadIdx.y, b = blockIdx.x * 16 + threadIdx.x;
    const float2 *v = voltages + size_t(blockIdx.z) * TIMES * ANTENNAS;
    float2 sum{0.f, 0.f};
    for (int t = 0; t < TIMES; ++t) {
        float2 x = v[t * ANTENNAS + a], y = v[t * ANTENNAS + b];
        sum.x += x.x * y.x + x.y * y.y, sum.y += x.y * y.x - x.x * y.y;
    }
    visibilities[(size_t(blockIdx.z) * ANTENNAS + a) * ANTENNAS + b] = sum;
}
template <int TALL, int WIDE>
__global__ void correlate_registers(const float2 *__restrict__ voltages, float2 *__restrict__ visibilities) {
    const float2 *v = voltages + size_t(blockIdx.z) * TIMES * ANTENNAS;
    int a = (blockIdx.y * 16 + threadIdx.y) * TALL, b = blockIdx.x * 16 * WIDE + threadIdx.x;
    float2 sum[TALL][WIDE] = {};
    for (int t = 0; t < TIMES; ++t) {
        float2 x[TALL], y[WIDE];
#pragma unroll
        for (int i = 0; i < TALL; ++i) x[i] = v[t * ANTENNAS + a + i];
#pragma unroll
        for (int j = 0; j < WIDE; ++j) y[j] = v[t * ANTENNAS + b + 16 * j];
#pragma unroll
        for (int i = 0; i < TALL; ++i)
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                sum[i][j].x += x[i].x * y[j].x + x[i].y * y[j].y;
                sum[i][j].y += x[i].y * y[j].x - x[i].x * y[j].y;
            }
    }
#pragma unroll
    for (int i = 0; i < TALL; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j) visibilities[(size_t(blockIdx.z) * ANTENNAS + a + i) * ANTENNAS + b + 16 * j] = sum[i][j];
}
// The whole matrix of a channel by one block: 4 x 4 baselines a thread, 16 times a stage in shared memory.
__global__ void __launch_bounds__(256) correlate_shared(const float2 *__restrict__ voltages, float2 *__restrict__ visibilities) {
    __shared__ float2 stage[16][ANTENNAS];
    const float2 *v = voltages + size_t(blockIdx.x) * TIMES * ANTENNAS;
    int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    float2 sum[4][4] = {};
    for (int base = 0; base < TIMES; base += 16) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) stage[0][threadIdx.x + 256 * i] = v[base * ANTENNAS + threadIdx.x + 256 * i];
        __syncthreads();
#pragma unroll 4
        for (int t = 0; t < 16; ++t) {
            float2 x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) x[i] = stage[t][ty * 4 + i], y[i] = stage[t][tx + 16 * i];
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    sum[i][j].x += x[i].x * y[j].x + x[i].y * y[j].y;
                    sum[i][j].y += x[i].y * y[j].x - x[i].x * y[j].y;
                }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) visibilities[(size_t(blockIdx.x) * ANTENNAS + ty * 4 + i) * ANTENNAS + tx + 16 * j] = sum[i][j];
}

Study correlations("baselines_one_pair_a_thread", "signals", 528, "visibilities of 64 antennas over 256 times in 528 channels",
    "a thread a pair: two loads for four products",
    {{"registers", "2 x 2 pairs a thread", {"redundant_loads"}},
        {"shared", "4 x 4 pairs a thread, voltages in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long channels) -> Sides {
        float *v = b.random<float>(channels * TIMES * ANTENNAS * 2), *out = b.output<float>(channels * ANTENNAS * ANTENNAS * 2);
        b.tolerance = 1e-3;
        return {{"flawed", launch(correlate, dim3(4, 4, channels), dim3(16, 16), 0, (float2 *)v, (float2 *)out)},
            {"registers", launch(correlate_registers<2, 2>, dim3(2, 2, channels), dim3(16, 16), 0, (float2 *)v, (float2 *)out)},
            {"shared", launch(correlate_shared, channels, 256, 0, (float2 *)v, (float2 *)out)}};
    });

// --- dispersion of pulsars' signals taken back ---

__device__ __forceinline__ int delay_of(float measure, int channel) {
    float frequency = 1.2f + 0.0015f * channel;
    return int(0.8f * measure * (powf(frequency, -2.f) - 0.3f));
}
__global__ void dedisperse(const float *power, float *out, int channels, int pitch, int times, float step) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    for (int c = 0; c < channels; ++c) sum += power[size_t(c) * pitch + t + delay_of(blockIdx.y * step, c)];
    out[size_t(blockIdx.y) * times + t] = sum;
}
__global__ void dedisperse_table(const float *__restrict__ power, float *__restrict__ out, int channels, int pitch, int times, float step) {
    __shared__ int delays[256];
    if (threadIdx.x < channels) delays[threadIdx.x] = delay_of(blockIdx.y * step, threadIdx.x);
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    for (int c = 0; c < channels; ++c) sum += power[size_t(c) * pitch + t + delays[c]];
    out[size_t(blockIdx.y) * times + t] = sum;
}
__global__ void dedisperse_four(const float *__restrict__ power, float *__restrict__ out, int channels, int pitch, int times, float step) {
    __shared__ int delays[256];
    if (threadIdx.x < channels) delays[threadIdx.x] = threadIdx.x * pitch + delay_of(blockIdx.y * step, threadIdx.x);
    __syncthreads();
    int t = blockIdx.x * blockDim.x * 4 + threadIdx.x;
    float sum[4] = {};
#pragma unroll 4
    for (int c = 0; c < channels; ++c) {
        const float *row = power + delays[c] + t;
#pragma unroll
        for (int k = 0; k < 4; ++k) sum[k] += row[k * blockDim.x];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[size_t(blockIdx.y) * times + t + k * blockDim.x] = sum[k];
}

Study dedispersions("dispersion_delays_by_power", "signals", 8192, "8192 times of 256 channels summed along the delays of 96 dispersions",
    "every thread computes each channel's delay by a power",
    {{"table", "delays once a block, in shared memory", {"expensive_math"}},
        {"four", "delays once a block, four times a thread", {"expensive_math", "integer_arithmetic"}}},
    [](Buffers &b, long times) -> Sides {
        int channels = 256, pitch = times + 4096;
        float *power = b.random<float>(channels * pitch, 0, 1), *out = b.output<float>(96 * times);
        b.tolerance = 2e-2;
        return {{"flawed", launch(dedisperse, dim3(times / 256, 96), 256, 0, power, out, channels, pitch, times, 60.f)},
            {"table", launch(dedisperse_table, dim3(times / 256, 96), 256, 0, power, out, channels, pitch, times, 60.f)},
            {"four", launch(dedisperse_four, dim3(times / 1024, 96), 256, 0, power, out, channels, pitch, times, 60.f)}};
    });

}  // namespace
