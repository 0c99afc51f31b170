// Genomes: copied haplotypes, letters in windows, sketches of genomes, folds of RNA. Each kernel has one weakness and two ways out.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- a haplotype as a mosaic of others: likelihood of each target given 512 that are known ---

constexpr int KNOWN = 512;

struct Panel {
    const unsigned char *known;  // KNOWN alleles in a row for each site
    const unsigned char *targets;  // alleles of a target in a row
    const float *switching;  // of sites: how likely it is to change over to another haplotype
    float *likelihood, *last;
    int sites;
};

__device__ __forceinline__ float copied(float before, float total, float switching, bool same) {
    const float p = before * __fdividef(1.f - switching, total) + switching * (1.f / KNOWN);
    return p * (same ? 0.995f : 0.005f);
}

__global__ void __launch_bounds__(KNOWN) mosaic(Panel p) {
    __shared__ float sums[KNOWN];
    const int target = blockIdx.x, k = threadIdx.x;
    float own = 1.f / KNOWN, total = 1.f, likelihood = 0.f;
    for (int site = 0; site < p.sites; site++) {
        own = copied(own, total, p.switching[site], p.known[site * KNOWN + k] == p.targets[target * p.sites + site]);
        sums[k] = own;
        __syncthreads();
        for (int half = KNOWN / 2; half > 0; half /= 2) {
            if (k < half) sums[k] += sums[k + half];
            __syncthreads();
        }
        total = sums[0];
        __syncthreads();
        likelihood += __logf(total);
    }
    p.last[target * KNOWN + k] = __fdividef(own, total);
    if (k == 0) p.likelihood[target] = likelihood;
}
// Sums within warps by shuffles, those of the warps in one of two rows of shared memory: one barrier a site.
__global__ void __launch_bounds__(KNOWN) mosaic_shuffled(Panel p) {
    __shared__ float of_warps[2][KNOWN / 32];
    const int target = blockIdx.x, k = threadIdx.x, lane = k % 32;
    float own = 1.f / KNOWN, total = 1.f, likelihood = 0.f;
    for (int site = 0; site < p.sites; site++) {
        own = copied(own, total, p.switching[site], p.known[site * KNOWN + k] == p.targets[target * p.sites + site]);
        const float of_warp = warp_sum(own);
        if (lane == 0) of_warps[site % 2][k / 32] = of_warp;
        __syncthreads();
        total = of_warps[site % 2][lane % (KNOWN / 32)];
#pragma unroll
        for (int offset = KNOWN / 64; offset; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
        likelihood += __logf(total);
    }
    p.last[target * KNOWN + k] = __fdividef(own, total);
    if (k == 0) p.likelihood[target] = likelihood;
}
// A warp a target, 16 of the known haplotypes a lane.
__global__ void __launch_bounds__(128) mosaic_warp(Panel p, int targets) {
    constexpr int EACH = KNOWN / 32;
    const int target = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (target >= targets) return;
    float own[EACH], total = 1.f, likelihood = 0.f;
#pragma unroll
    for (int e = 0; e < EACH; e++) own[e] = 1.f / KNOWN;
    for (int site = 0; site < p.sites; site++) {
        const uint4 alleles = reinterpret_cast<const uint4 *>(p.known)[site * 32 + lane];
        const unsigned words[4] = {alleles.x, alleles.y, alleles.z, alleles.w}, wanted = p.targets[target * p.sites + site];
        const float switching = p.switching[site];
        float sum = 0.f;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            own[e] = copied(own[e], total, switching, (words[e / 4] >> 8 * (e % 4) & 255) == wanted);
            sum += own[e];
        }
        total = warp_sum(sum);
        likelihood += __logf(total);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) p.last[target * KNOWN + lane * EACH + e] = __fdividef(own[e], total);
    if (lane == 0) p.likelihood[target] = likelihood;
}

Study haplotypes("haplotype_mosaic_tree_each_site", "bioinformatics", 1536, "likelihood of 1536 haplotypes as mosaics of 512 known ones over 256 sites",
    "the sum over the known haplotypes is a tree in shared memory at every site, with eleven barriers",
    {{"shuffled", "sums by shuffles, one barrier a site", {"barriers"}}, {"warp", "a warp a haplotype, 16 of the known ones a lane, no barrier", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int sites = 256;
        std::vector<unsigned char> known(sites * KNOWN), targets(n * sites);
        for (size_t i = 0; i < known.size(); i++) known[i] = hash(static_cast<unsigned>(i)) % 1000 < 80 + hash(static_cast<unsigned>(i / KNOWN)) % 400;
        for (long t = 0; t < n; t++)
            for (int s = 0, from = 0; s < sites; s++) {
                const unsigned draw = hash(static_cast<unsigned>(t * sites + s) + 12345);
                if (s == 0 || draw % 50 == 0) from = draw / 64 % KNOWN;
                targets[t * sites + s] = known[s * KNOWN + from] ^ (draw / 50 % 300 == 0);
            }
        Panel p{};
        p.known = b.copy(known), p.targets = b.copy(targets), p.switching = b.random<float>(sites, 0.005, 0.05);
        p.likelihood = b.output<float>(n), p.last = b.output<float>(n * KNOWN), p.sites = sites;
        b.tolerance = 1e-3;
        return {{"flawed", launch(mosaic, n, KNOWN, 0, p)}, {"shuffled", launch(mosaic_shuffled, n, KNOWN, 0, p)}, {"warp", launch(mosaic_warp, blocks(n, 4), 128, 0, p, n)}};
    });

// --- share of G and C in windows of 256 letters, one window every 16 letters ---

constexpr int WINDOW = 256, STRIDE = 16;

__global__ void __launch_bounds__(256) gc_windows(const char *__restrict__ letters, float *__restrict__ out, int windows) {
    const int window = blockIdx.x * 256 + threadIdx.x;
    if (window >= windows) return;
    int count = 0;
    for (int i = 0; i < WINDOW; i++) {
        const char letter = letters[static_cast<size_t>(window) * STRIDE + i];
        if (letter == 'G' || letter == 'C') count++;
    }
    out[window] = count * (1.f / WINDOW);
}
__device__ __forceinline__ int gc_of_four(unsigned four) {
    const unsigned other = (four & 0xfbfbfbfbu) ^ 0x43434343u;  // a byte is 0 where the letter is C or G
    return __popc(~(((other & 0x7f7f7f7fu) + 0x7f7f7f7fu) | other) & 0x80808080u);
}
__device__ __forceinline__ int gc_of_piece(uint4 v) { return gc_of_four(v.x) + gc_of_four(v.y) + gc_of_four(v.z) + gc_of_four(v.w); }

// Sixteen letters a load.
__global__ void __launch_bounds__(256) gc_windows_vectors(const uint4 *__restrict__ pieces, float *__restrict__ out, int windows) {
    const int window = blockIdx.x * 256 + threadIdx.x;
    if (window >= windows) return;
    int count = 0;
#pragma unroll 8
    for (int i = 0; i < WINDOW / STRIDE; i++) count += gc_of_piece(pieces[window + i]);
    out[window] = count * (1.f / WINDOW);
}
// Each piece of 16 letters is counted once, in shared memory.
__global__ void __launch_bounds__(256) gc_windows_pieces(const char *__restrict__ letters, float *__restrict__ out, int windows) {
    constexpr int PIECES = WINDOW / STRIDE;
    __shared__ int counts[256 + PIECES];
    const int first = blockIdx.x * 256, window = first + threadIdx.x;
    const uint4 *pieces = reinterpret_cast<const uint4 *>(letters);
    for (int i = threadIdx.x; i < 256 + PIECES - 1; i += 256)
        if (first + i < windows + PIECES - 1) counts[i] = gc_of_piece(pieces[first + i]);
    __syncthreads();
    if (window >= windows) return;
    int count = 0;
#pragma unroll
    for (int i = 0; i < PIECES; i++) count += counts[threadIdx.x + i];
    out[window] = count * (1.f / WINDOW);
}

Study gc_content("gc_windows_256_letters_each", "bioinformatics", 1 << 22, "share of G and C in 4194304 windows of 256 letters, one every 16",
    "each window reads its 256 letters byte by byte, though it shares 240 of them with the next",
    {{"pieces", "each piece of 16 letters counted once, in shared memory", {"redundant_loads", "narrow_access"}}, {"vectors", "16 letters a load, counted four at a time", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> letters(n * STRIDE + WINDOW);
        const char kinds[] = "ACGTACGTGCTAGCAN";
        for (size_t i = 0; i < letters.size(); i++) letters[i] = kinds[hash(static_cast<unsigned>(i)) % (hash(static_cast<unsigned>(i / 5000)) % 2 ? 15 : 8)];
        const unsigned char *all = b.copy(letters);
        float *out = b.output<float>(n);
        b.tolerance = 1e-6;
        auto text = reinterpret_cast<const char *>(all);
        return {{"flawed", launch(gc_windows, blocks(n, 256), 256, 0, text, out, n)}, {"pieces", launch(gc_windows_pieces, blocks(n, 256), 256, 0, text, out, n)},
            {"vectors", launch(gc_windows_vectors, blocks(n, 256), 256, 0, reinterpret_cast<const uint4 *>(all), out, n)}};
    });

// --- sketches of genomes: in how many of 256 places two of them agree, for all pairs ---

constexpr int PLACES = 256;

__global__ void __launch_bounds__(256) sketch_pairs(const unsigned *__restrict__ sketches, unsigned *__restrict__ out, int genomes) {
    const int a = blockIdx.y * 8 + threadIdx.y, b = blockIdx.x * 32 + threadIdx.x;
    unsigned same = 0;
    for (int place = 0; place < PLACES; place++) same += sketches[place * genomes + a] == sketches[place * genomes + b];
    out[static_cast<size_t>(a) * genomes + b] = same;
}
// Tiles of 64 x 64 pairs, 16 places at a time in shared memory, four by four pairs a thread.
__global__ void __launch_bounds__(256) sketch_pairs_tiles(const unsigned *__restrict__ sketches, unsigned *__restrict__ out, int genomes) {
    __shared__ uint4 left[16][16], right[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    unsigned same[4][4] = {};
    for (int first = 0; first < PLACES; first += 16) {
        left[y][x] = *reinterpret_cast<const uint4 *>(&sketches[(first + y) * genomes + blockIdx.y * 64 + x * 4]);
        right[y][x] = *reinterpret_cast<const uint4 *>(&sketches[(first + y) * genomes + blockIdx.x * 64 + x * 4]);
        __syncthreads();
#pragma unroll
        for (int place = 0; place < 16; place++) {
            const uint4 l = left[place][y], r = right[place][x];
            const unsigned ls[4] = {l.x, l.y, l.z, l.w}, rs[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) same[i][j] += ls[i] == rs[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) *reinterpret_cast<uint4 *>(&out[static_cast<size_t>(blockIdx.y * 64 + y * 4 + i) * genomes + blockIdx.x * 64 + x * 4]) = make_uint4(same[i][0], same[i][1], same[i][2], same[i][3]);
}
// Eight genomes a thread against its own: what is read of the column serves eight pairs.
__global__ void __launch_bounds__(128) sketch_pairs_eight(const unsigned *__restrict__ sketches, unsigned *__restrict__ out, int genomes) {
    const int a = blockIdx.y * 8, b = blockIdx.x * 128 + threadIdx.x;
    unsigned same[8] = {};
#pragma unroll 2
    for (int place = 0; place < PLACES; place++) {
        const unsigned own = sketches[place * genomes + b];
        const uint4 *others = reinterpret_cast<const uint4 *>(&sketches[place * genomes + a]);
        const uint4 low = others[0], high = others[1];
        same[0] += own == low.x, same[1] += own == low.y, same[2] += own == low.z, same[3] += own == low.w;
        same[4] += own == high.x, same[5] += own == high.y, same[6] += own == high.z, same[7] += own == high.w;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) out[static_cast<size_t>(a + i) * genomes + b] = same[i];
}

Study genome_sketches("genome_sketches_both_read_for_each_pair", "bioinformatics", 2048, "places in which sketches of 256 hashes agree, for all pairs of 2048 genomes",
    "a thread a pair: two loads for each comparison",
    {{"tiles", "tiles in shared memory, four by four pairs a thread", {"redundant_loads"}}, {"eight", "eight pairs a thread", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> sketches(n * PLACES);
        for (long place = 0; place < PLACES; place++)
            for (long g = 0; g < n; g++) {
                const unsigned draw = hash(static_cast<unsigned>(place * n + g));
                sketches[place * n + g] = draw % 3 ? hash(static_cast<unsigned>(place * 64 + g / 40)) : draw;
            }
        const unsigned *all = b.copy(sketches);
        unsigned *out = b.output<unsigned>(n * n);
        b.tolerance = 0.0;
        const unsigned g = static_cast<unsigned>(n);
        return {{"flawed", launch(sketch_pairs, dim3(g / 32, g / 8), dim3(32, 8), 0, all, out, n)}, {"tiles", launch(sketch_pairs_tiles, dim3(g / 64, g / 64), dim3(16, 16), 0, all, out, n)},
            {"eight", launch(sketch_pairs_eight, dim3(g / 128, g / 8), 128, 0, all, out, n)}};
    });

// --- folds of RNA: the most pairs of bases that do not cross, for sequences of 128 bases ---

constexpr int BASES = 128, PITCH = BASES + 4, LOOP = 3;

// A 0, C 1, G 2, U 3: A with U, C with G, and G with U.
__device__ __forceinline__ int pairs_up(int a, int b) { return a + b == 3 || a + b == 5; }

// GROUP lanes share a cell of the table; cells of a diagonal do not depend on each other.
template <int GROUP>
__device__ __forceinline__ void fold_diagonal(unsigned char (*most)[PITCH], const unsigned char *bases, int length, int thread) {
    const int part = thread % GROUP;
    for (int first = 0; first < BASES - length; first += BASES / GROUP) {
        const int i = first + thread / GROUP, j = i + length;
        const bool there = j < BASES;
        int best = 0;
        if (there)
            for (int k = i + part; k < j; k += GROUP) best = max(best, most[i][k] + most[k + 1][j]);
#pragma unroll
        for (int offset = 1; offset < GROUP; offset *= 2) best = max(best, __shfl_xor_sync(~0u, best, offset));
        if (there && part == 0) {
            if (length > LOOP) best = max(best, most[i + 1][j - 1] + pairs_up(bases[i], bases[j]));
            most[i][j] = static_cast<unsigned char>(best);
        }
    }
}

struct Folds {
    const unsigned char *bases;
    int *out;
};
// What differs is how many lanes share a cell on a diagonal.
template <typename Diagonal>
__device__ __forceinline__ void fold(Folds f, Diagonal diagonal) {
    __shared__ unsigned char most[BASES][PITCH], bases[BASES];
    bases[threadIdx.x] = f.bases[blockIdx.x * BASES + threadIdx.x];
    for (int i = 0; i < BASES; i++) most[i][threadIdx.x] = 0;
    __syncthreads();
    for (int length = 1; length < BASES; length++) {
        diagonal(most, bases, length);
        __syncthreads();
    }
    if (threadIdx.x == 0) f.out[blockIdx.x] = most[0][BASES - 1];
}

__global__ void __launch_bounds__(BASES) fold_cell_each(Folds f) {
    fold(f, [](unsigned char (*most)[PITCH], const unsigned char *bases, int length) { fold_diagonal<1>(most, bases, length, threadIdx.x); });
}
__global__ void __launch_bounds__(BASES) fold_eight_lanes(Folds f) {
    fold(f, [](unsigned char (*most)[PITCH], const unsigned char *bases, int length) { fold_diagonal<8>(most, bases, length, threadIdx.x); });
}
// The shorter the diagonal, the more lanes a cell.
__global__ void __launch_bounds__(BASES) fold_growing(Folds f) {
    fold(f, [](unsigned char (*most)[PITCH], const unsigned char *bases, int length) {
        if (length < 64) fold_diagonal<1>(most, bases, length, threadIdx.x);
        else if (length < 96) fold_diagonal<2>(most, bases, length, threadIdx.x);
        else if (length < 112) fold_diagonal<4>(most, bases, length, threadIdx.x);
        else fold_diagonal<16>(most, bases, length, threadIdx.x);
    });
}

Study rna_folds("rna_folds_a_cell_a_thread", "bioinformatics", 2048, "most pairs of bases in folds of 2048 RNAs of 128 bases, by dynamic programming along diagonals",
    "a thread a cell of the diagonal: the longer the sums over places to split, the fewer threads have one",
    {{"growing", "the shorter the diagonal, the more lanes share a cell", {"idle_threads"}}, {"eight_lanes", "eight lanes a cell", {"idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        const Folds f{b.random<unsigned char>(n * BASES, 0, 4), b.output<int>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(fold_cell_each, n, BASES, 0, f)}, {"growing", launch(fold_growing, n, BASES, 0, f)}, {"eight_lanes", launch(fold_eight_lanes, n, BASES, 0, f)}};
    });

}  // namespace
