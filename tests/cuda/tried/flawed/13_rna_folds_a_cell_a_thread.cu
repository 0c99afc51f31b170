// rna_folds_a_cell_a_thread, side flawed: pad or swizzle the shared array, whose worst load takes 1.5 times the passes it needs.
#include "../tried.cuh"

constexpr int BASES = 128, LOOP = 3;

// A 0, C 1, G 2, U 3: A with U, C with G, and G with U.
__device__ __forceinline__ int pairs_up(int a, int b) { return a + b == 3 || a + b == 5; }

// GROUP lanes share a cell of the table; cells of a diagonal do not depend on each other.
template <int GROUP, int PITCH>
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
template <int PITCH, typename Diagonal>
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
// PITCH is BASES + 4 as it is. Lanes read at most[i][i + s] and most[i + s + 1][i + length], PITCH + 1 bytes apart: with BASES + 3
// these are 33 words, and no two lanes meet in a bank.
template <int PITCH>
__global__ void __launch_bounds__(BASES) fold_cell_each(Folds f) {
    fold<PITCH>(f, [](unsigned char (*most)[PITCH], const unsigned char *bases, int length) { fold_diagonal<1, PITCH>(most, bases, length, threadIdx.x); });
}

// Another layout: the cell of i and j is most[j - i][i], so that a diagonal lies in a row.
__global__ void __launch_bounds__(BASES) fold_diagonal_rows(Folds f) {
    __shared__ unsigned char most[BASES][BASES], bases[BASES];
    const int i = threadIdx.x;
    bases[i] = f.bases[blockIdx.x * BASES + i];
    for (int d = 0; d < BASES; d++) most[d][i] = 0;
    __syncthreads();
    for (int length = 1; length < BASES; length++) {
        const int j = i + length;
        if (j < BASES) {
            int best = 0;
            for (int s = 0; s < length; s++) best = max(best, most[s][i] + most[length - 1 - s][i + s + 1]);
            if (length > LOOP) best = max(best, most[length - 2][i + 1] + pairs_up(bases[i], bases[j]));
            most[length][i] = static_cast<unsigned char>(best);
        }
        __syncthreads();
    }
    if (i == 0) f.out[blockIdx.x] = most[BASES - 1][0];
}

int main() {
    const int n = 2048;
    const Folds f{drawn<unsigned char>(n * BASES, 0, 4, 1), get<int>(n)};
    judge({{"as_it_is", [=] { fold_cell_each<BASES + 4><<<n, BASES>>>(f); }},
        {"pitch_131", [=] { fold_cell_each<BASES + 3><<<n, BASES>>>(f); }},
        {"pitch_131_as_many_blocks", [=] { fold_cell_each<BASES + 3><<<n, BASES, 128>>>(f); }},  // 12 an SM, as with 132
        {"diagonals_in_rows", [=] { fold_diagonal_rows<<<n, BASES>>>(f); }}}, {{f.out, n}});
}
