// Proteins: seeds of alignments extended without gaps. The kernel has one weakness and two ways out.
#include "../pairs/pair.cuh"

namespace {

constexpr int RESIDUES = 24, WORDS_A_WINDOW = 16, DROP = 24;

struct Scores {
    signed char of[RESIDUES * RESIDUES];
};
struct Windows {
    const unsigned *query, *subject;  // four residues a word; those of all seeds side by side
    int count;
};

// The best score from the seed on, until it has fallen too far below the best.
template <typename Table>
__device__ __forceinline__ int best_extension(Windows w, int seed, const Table &score) {
    int sum = 0, best = 0;
    for (int k = 0; k < WORDS_A_WINDOW; k++) {
        const unsigned q = w.query[static_cast<size_t>(k) * w.count + seed], s = w.subject[static_cast<size_t>(k) * w.count + seed];
#pragma unroll
        for (int r = 0; r < 32; r += 8) {
            sum += score((q >> r & 255) * RESIDUES + (s >> r & 255));
            best = max(best, sum);
        }
        if (sum < best - DROP) break;
    }
    return best;
}

__global__ void __launch_bounds__(256) extend(Windows w, Scores scores, int *__restrict__ out) {
    const int seed = blockIdx.x * 256 + threadIdx.x;
    if (seed < w.count) out[seed] = best_extension(w, seed, [&](unsigned pair) { return static_cast<int>(scores.of[pair]); });
}
__global__ void __launch_bounds__(256) extend_shared(Windows w, const signed char *__restrict__ scores, int *__restrict__ out) {
    __shared__ int table[RESIDUES * RESIDUES];
    for (int i = threadIdx.x; i < RESIDUES * RESIDUES; i += 256) table[i] = scores[i];
    __syncthreads();
    const int seed = blockIdx.x * 256 + threadIdx.x;
    if (seed < w.count) out[seed] = best_extension(w, seed, [&](unsigned pair) { return table[pair]; });
}
__global__ void __launch_bounds__(256) extend_cached(Windows w, const signed char *__restrict__ scores, int *__restrict__ out) {
    const int seed = blockIdx.x * 256 + threadIdx.x;
    if (seed < w.count) out[seed] = best_extension(w, seed, [&](unsigned pair) { return static_cast<int>(__ldg(&scores[pair])); });
}

Study extensions("seed_extensions_scores_in_constants", "bioinformatics", 1 << 22, "best scores of 4194304 seeds of protein alignments extended without gaps over up to 64 residues",
    "the scores of pairs of residues are a parameter of the kernel, so that each lane asks for another constant",
    {{"shared", "the scores in shared memory", {"constant_divergence"}}, {"cached", "the scores in global memory, by way of L1", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        Scores scores;
        for (int q = 0; q < RESIDUES; q++)
            for (int s = 0; s < RESIDUES; s++) {
                const unsigned draw = hash(static_cast<unsigned>(q < s ? q * 100 + s : s * 100 + q));
                scores.of[q * RESIDUES + s] = static_cast<signed char>(q == s ? 4 + draw % 6 : static_cast<int>(draw % 7) - 4);
            }
        std::vector<unsigned char> query(n * WORDS_A_WINDOW * 4), subject(query.size());
        for (size_t i = 0; i < query.size(); i++) {
            const unsigned draw = hash(static_cast<unsigned>(i)), related = hash(static_cast<unsigned>(i / 4 % n)) % 4;
            query[i] = static_cast<unsigned char>(draw % 20);
            subject[i] = static_cast<unsigned char>(draw / 32 % 16 < 4 * related ? draw % 20 : draw / 512 % 20);
        }
        const Windows w{reinterpret_cast<const unsigned *>(b.copy(query)), reinterpret_cast<const unsigned *>(b.copy(subject)), static_cast<int>(n)};
        auto table = reinterpret_cast<const signed char *>(b.copy(std::vector<unsigned char>(scores.of, scores.of + RESIDUES * RESIDUES)));
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(extend, blocks(n, 256), 256, 0, w, scores, out)}, {"shared", launch(extend_shared, blocks(n, 256), 256, 0, w, table, out)}, {"cached", launch(extend_cached, blocks(n, 256), 256, 0, w, table, out)}};
    });

}  // namespace
