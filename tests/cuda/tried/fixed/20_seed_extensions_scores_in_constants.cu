// seed_extensions_scores_in_constants, side shared: a thread takes four seeds at once, 16 bytes an access.
#include "../tried.cuh"

constexpr int RESIDUES = 24, WORDS_A_WINDOW = 16, DROP = 24;
struct Windows {
    const unsigned *query, *subject;  // four residues a word; those of all seeds side by side
    int count;
};
template <int SEEDS> struct Words;
template <> struct Words<1> { using Type = unsigned; };
template <> struct Words<2> { using Type = uint2; };
template <> struct Words<4> { using Type = uint4; };

__device__ __forceinline__ void extend_by(unsigned q, unsigned s, const int *table, int &sum, int &best) {
#pragma unroll
    for (int r = 0; r < 32; r += 8) {
        sum += table[(q >> r & 255) * RESIDUES + (s >> r & 255)];
        best = max(best, sum);
    }
}
// As it is: one seed.
__global__ void __launch_bounds__(256) extend_shared(Windows w, const signed char *__restrict__ scores, int *__restrict__ out) {
    __shared__ int table[RESIDUES * RESIDUES];
    for (int i = threadIdx.x; i < RESIDUES * RESIDUES; i += 256) table[i] = scores[i];
    __syncthreads();
    const int seed = blockIdx.x * 256 + threadIdx.x;
    if (seed >= w.count) return;
    int sum = 0, best = 0;
    for (int k = 0; k < WORDS_A_WINDOW; k++) {
        const unsigned q = w.query[static_cast<size_t>(k) * w.count + seed], s = w.subject[static_cast<size_t>(k) * w.count + seed];
        extend_by(q, s, table, sum, best);
        if (sum < best - DROP) break;
    }
    out[seed] = best;
}
// A thread goes on until the last of its seeds has fallen too far.
template <int SEEDS>
__global__ void __launch_bounds__(256) extend_several(Windows w, const signed char *__restrict__ scores, int *__restrict__ out) {
    using Type = typename Words<SEEDS>::Type;
    __shared__ int table[RESIDUES * RESIDUES];
    for (int i = threadIdx.x; i < RESIDUES * RESIDUES; i += 256) table[i] = scores[i];
    __syncthreads();
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= w.count / SEEDS) return;
    int sum[SEEDS] = {}, best[SEEDS] = {};
    bool on[SEEDS], any = true;
    for (int j = 0; j < SEEDS; j++) on[j] = true;
    for (int k = 0; k < WORDS_A_WINDOW && any; k++) {
        const Type q = reinterpret_cast<const Type *>(w.query + static_cast<size_t>(k) * w.count)[at], s = reinterpret_cast<const Type *>(w.subject + static_cast<size_t>(k) * w.count)[at];
        const unsigned *of_query = reinterpret_cast<const unsigned *>(&q), *of_subject = reinterpret_cast<const unsigned *>(&s);
        any = false;
#pragma unroll
        for (int j = 0; j < SEEDS; j++) {
            if (on[j]) extend_by(of_query[j], of_subject[j], table, sum[j], best[j]);
            on[j] = on[j] && sum[j] >= best[j] - DROP;
            any |= on[j];
        }
    }
    Type found;
#pragma unroll
    for (int j = 0; j < SEEDS; j++) reinterpret_cast<unsigned *>(&found)[j] = best[j];
    reinterpret_cast<Type *>(out)[at] = found;
}

int main() {
    const int n = 1 << 22;
    std::vector<signed char> scores(RESIDUES * RESIDUES);
    for (int q = 0; q < RESIDUES; q++)
        for (int s = 0; s < RESIDUES; s++) {
            const unsigned draw = hashed(static_cast<unsigned>(q < s ? q * 100 + s : s * 100 + q));
            scores[q * RESIDUES + s] = static_cast<signed char>(q == s ? 4 + draw % 6 : static_cast<int>(draw % 7) - 4);
        }
    std::vector<unsigned char> query(size_t(n) * WORDS_A_WINDOW * 4), subject(query.size());
    for (size_t i = 0; i < query.size(); i++) {
        const unsigned draw = hashed(static_cast<unsigned>(i)), related = hashed(static_cast<unsigned>(i / 4 % n)) % 4;
        query[i] = static_cast<unsigned char>(draw % 20);
        subject[i] = static_cast<unsigned char>(draw / 32 % 16 < 4 * related ? draw % 20 : draw / 512 % 20);
    }
    const Windows w{reinterpret_cast<const unsigned *>(copied(query)), reinterpret_cast<const unsigned *>(copied(subject)), n};
    const signed char *table = copied(scores);
    int *out = get<int>(n);
    judge({{"as_it_is", [=] { extend_shared<<<n / 256, 256>>>(w, table, out); }},
        {"four_seeds", [=] { extend_several<4><<<n / 1024, 256>>>(w, table, out); }},
        {"two_seeds", [=] { extend_several<2><<<n / 512, 256>>>(w, table, out); }}}, {{out, size_t(n)}});
}
