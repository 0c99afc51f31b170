// A step of breadth-first searches from 256 sources at a time: a vertex is reached by what its neighbours were reached
// by in the last step and it was not yet; a bit a source.
#include <numeric>

#include "../tried/tried.cuh"

constexpr int VERTICES = 1 << 19, WORDS = 8, MOST = 2048, LONG = 128;

struct Set {
    unsigned word[WORDS];
};

__global__ void as_it_is(const int *starts, const int *neighbours, const Set *frontier, Set *seen, Set *next, int *reached) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= VERTICES) return;
    Set found = {};
    for (int e = starts[v]; e < starts[v + 1]; ++e)
        for (int w = 0; w < WORDS; ++w) found.word[w] |= frontier[neighbours[e]].word[w];
    int count = 0;
    for (int w = 0; w < WORDS; ++w) {
        found.word[w] &= ~seen[v].word[w];
        seen[v].word[w] |= found.word[w];
        count += __popc(found.word[w]);
    }
    next[v] = found;
    if (count) atomicAdd(reached, count);
}

__global__ void sorted_by_degree(const int *order, const int *starts, const int *neighbours, const Set *frontier, Set *seen, Set *next, int *reached) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= VERTICES) return;
    const int v = order[i];
    Set found = {};
    for (int e = starts[v]; e < starts[v + 1]; ++e)
        for (int w = 0; w < WORDS; ++w) found.word[w] |= frontier[neighbours[e]].word[w];
    int count = 0;
    for (int w = 0; w < WORDS; ++w) {
        found.word[w] &= ~seen[v].word[w];
        seen[v].word[w] |= found.word[w];
        count += __popc(found.word[w]);
    }
    next[v] = found;
    if (count) atomicAdd(reached, count);
}
__global__ void eight_lanes(const int *starts, const int *neighbours, const Set *frontier, Set *seen, Set *next, int *reached) {
    const int v = (blockIdx.x * blockDim.x + threadIdx.x) / WORDS, w = threadIdx.x % WORDS;
    if (v >= VERTICES) return;
    unsigned found = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) found |= frontier[neighbours[e]].word[w];
    found &= ~seen[v].word[w];
    seen[v].word[w] |= found;
    next[v].word[w] = found;
    if (found) atomicAdd(reached, __popc(found));
}

__global__ void eight_lanes_sorted(const int *order, const int *starts, const int *neighbours, const Set *frontier, Set *seen, Set *next, int *reached) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / WORDS, w = threadIdx.x % WORDS;
    if (i >= VERTICES) return;
    const int v = order[i];
    unsigned found = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) found |= frontier[neighbours[e]].word[w];
    found &= ~seen[v].word[w];
    seen[v].word[w] |= found;
    next[v].word[w] = found;
    if (found) atomicAdd(reached, __popc(found));
}
// The first blocks take a long list each, the others the rest as before.
__global__ void __launch_bounds__(256) long_by_blocks(const int *long_ones, int long_count, const int *starts, const int *neighbours, const Set *frontier, Set *seen, Set *next, int *reached) {
    const int w = threadIdx.x % WORDS;
    const bool whole = blockIdx.x < long_count;
    const int v = whole ? long_ones[blockIdx.x] : ((blockIdx.x - long_count) * blockDim.x + threadIdx.x) / WORDS;
    const int begin = starts[v], end = starts[v + 1];
    unsigned found = 0;
    if (whole) {
        __shared__ unsigned joined[WORDS];
        if (threadIdx.x < WORDS) joined[threadIdx.x] = 0;
        __syncthreads();
        for (int e = begin + threadIdx.x / WORDS; e < end; e += blockDim.x / WORDS) found |= frontier[neighbours[e]].word[w];
        atomicOr(&joined[w], found);
        __syncthreads();
        if (threadIdx.x >= WORDS) return;
        found = joined[w];
    } else {
        if (end - begin > LONG) return;
        for (int e = begin; e < end; ++e) found |= frontier[neighbours[e]].word[w];
    }
    found &= ~seen[v].word[w];
    seen[v].word[w] |= found;
    next[v].word[w] = found;
    if (found) atomicAdd(reached, __popc(found));
}

__global__ void __launch_bounds__(256) counted_by_block(const int *long_ones, int long_count, const int *starts, const int *neighbours, const Set *frontier, Set *seen, Set *next, int *reached) {
    const int w = threadIdx.x % WORDS;
    const bool whole = blockIdx.x < long_count;
    const int v = whole ? long_ones[blockIdx.x] : ((blockIdx.x - long_count) * blockDim.x + threadIdx.x) / WORDS;
    const int begin = starts[v], end = starts[v + 1];
    unsigned found = 0;
    if (whole) {
        __shared__ unsigned joined[WORDS];
        if (threadIdx.x < WORDS) joined[threadIdx.x] = 0;
        __syncthreads();
        for (int e = begin + threadIdx.x / WORDS; e < end; e += blockDim.x / WORDS) found |= frontier[neighbours[e]].word[w];
        atomicOr(&joined[w], found);
        __syncthreads();
        found = threadIdx.x < WORDS ? joined[w] : 0;
    } else if (end - begin <= LONG) {
        for (int e = begin; e < end; ++e) found |= frontier[neighbours[e]].word[w];
    }
    if (whole ? threadIdx.x < WORDS : end - begin <= LONG) {
        found &= ~seen[v].word[w];
        seen[v].word[w] |= found;
        next[v].word[w] = found;
    }
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const int of_warp = __reduce_add_sync(~0u, __popc(found));
    if (threadIdx.x % 32 == 0) atomicAdd(&count, of_warp);
    __syncthreads();
    if (threadIdx.x == 0 && count) atomicAdd(reached, count);
}

// Eight lanes a vertex, a pair of them a neighbour's set: four neighbours at a time, long lists by the whole warp.
__device__ __forceinline__ void join(uint4 &a, uint4 b) { a.x |= b.x, a.y |= b.y, a.z |= b.z, a.w |= b.w; }
__device__ __forceinline__ void join_over(uint4 &a, int lanes) {
    a.x |= __shfl_xor_sync(~0u, a.x, lanes), a.y |= __shfl_xor_sync(~0u, a.y, lanes);
    a.z |= __shfl_xor_sync(~0u, a.z, lanes), a.w |= __shfl_xor_sync(~0u, a.w, lanes);
}
__device__ __forceinline__ void walk(uint4 &found, int from, int to, int by, const int *neighbours, const uint4 *frontier, int half) {
    for (; from + 3 * by < to; from += 4 * by) {
        int u[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) u[k] = neighbours[from + k * by];
        uint4 sets[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) sets[k] = frontier[2 * u[k] + half];
#pragma unroll
        for (int k = 0; k < 4; ++k) join(found, sets[k]);
    }
    for (; from < to; from += by) join(found, frontier[2 * neighbours[from] + half]);
}
__global__ void __launch_bounds__(256, 5) expert(const int *__restrict__ starts, const int *__restrict__ neighbours, const uint4 *__restrict__ frontier, uint4 *__restrict__ seen, uint4 *__restrict__ next, int *__restrict__ reached) {
    const int lane = threadIdx.x % 32, v = (blockIdx.x * 256 + threadIdx.x) / 8, half = lane & 1;
    const int begin = starts[v], end = starts[v + 1];
    uint4 found = {};
    if (end - begin <= LONG) walk(found, begin + lane % 8 / 2, end, 4, neighbours, frontier, half);
    for (unsigned left = __ballot_sync(~0u, lane % 8 == 0 && end - begin > LONG); left; left &= left - 1) {
        const int owner = __ffs(left) - 1;
        uint4 part = {};
        walk(part, __shfl_sync(~0u, begin, owner) + lane / 2, __shfl_sync(~0u, end, owner), 16, neighbours, frontier, half);
        join_over(part, 8), join_over(part, 16);
        if (lane / 8 == owner / 8) found = part;
    }
    join_over(found, 2), join_over(found, 4);
    int count = 0;
    if (lane % 8 < 2) {
        uint4 old = seen[2 * v + half];
        found.x &= ~old.x, found.y &= ~old.y, found.z &= ~old.z, found.w &= ~old.w;
        join(old, found);
        seen[2 * v + half] = old, next[2 * v + half] = found;
        count = __popc(found.x) + __popc(found.y) + __popc(found.z) + __popc(found.w);
    }
    __shared__ int counts[8];
    count = __reduce_add_sync(~0u, count);
    if (lane == 0) counts[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int w = 0; w < 8; ++w) sum += counts[w];
        if (sum) atomicAdd(reached, sum);
    }
}

int main() {
    // Degrees from a power law, four at least; neighbours anywhere.
    std::vector<int> starts(VERTICES + 1);
    for (int v = 0; v < VERTICES; ++v)
        starts[v + 1] = starts[v] + std::min(MOST, int(4.0 / std::pow((hashed(v) + 1.0) / 4294967296.0, 0.6)));
    const int *first = copied(starts), *neighbours = drawn<int>(starts[VERTICES], 0, VERTICES, 1);
    std::vector<unsigned> some(size_t(VERTICES) * WORDS), known(some.size());
    for (size_t i = 0; i < some.size(); ++i) {
        some[i] = hashed(3 * i) & hashed(3 * i + 1) & hashed(3 * i + 2) & hashed(i + 77) & hashed(i + 99);
        known[i] = some[i] | (hashed(i + 11) & hashed(i + 13));
    }
    const unsigned *frontier = copied(some), *before = copied(known);
    unsigned *seen = get<unsigned>(some.size()), *next = get<unsigned>(some.size());
    int *reached = get<int>(1);
    std::vector<int> sorted(VERTICES);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return starts[a + 1] - starts[a] > starts[b + 1] - starts[b]; });
    const int *order = copied(sorted);
    int long_count = 0;
    while (starts[sorted[long_count] + 1] - starts[sorted[long_count]] > LONG) ++long_count;
    judge({{"as_it_is", [=] { as_it_is<<<VERTICES / 256, 256>>>(first, neighbours, reinterpret_cast<const Set *>(frontier), reinterpret_cast<Set *>(seen), reinterpret_cast<Set *>(next), reached); }},
           {"sorted_by_degree", [=] { sorted_by_degree<<<VERTICES / 256, 256>>>(order, first, neighbours, reinterpret_cast<const Set *>(frontier), reinterpret_cast<Set *>(seen), reinterpret_cast<Set *>(next), reached); }},
           {"eight_lanes", [=] { eight_lanes<<<VERTICES * WORDS / 256, 256>>>(first, neighbours, reinterpret_cast<const Set *>(frontier), reinterpret_cast<Set *>(seen), reinterpret_cast<Set *>(next), reached); }},
           {"eight_lanes_sorted", [=] { eight_lanes_sorted<<<VERTICES * WORDS / 256, 256>>>(order, first, neighbours, reinterpret_cast<const Set *>(frontier), reinterpret_cast<Set *>(seen), reinterpret_cast<Set *>(next), reached); }},
           {"long_by_blocks", [=] { long_by_blocks<<<long_count + VERTICES * WORDS / 256, 256>>>(order, long_count, first, neighbours, reinterpret_cast<const Set *>(frontier), reinterpret_cast<Set *>(seen), reinterpret_cast<Set *>(next), reached); }},
           {"counted_by_block", [=] { counted_by_block<<<long_count + VERTICES * WORDS / 256, 256>>>(order, long_count, first, neighbours, reinterpret_cast<const Set *>(frontier), reinterpret_cast<Set *>(seen), reinterpret_cast<Set *>(next), reached); }},
           {"expert", [=] { expert<<<VERTICES / 32, 256>>>(first, neighbours, reinterpret_cast<const uint4 *>(frontier), reinterpret_cast<uint4 *>(seen), reinterpret_cast<uint4 *>(next), reached); }}},
          {{seen, some.size()}, {next, some.size()}, {reached, 1}},
          [=] {
              check(cudaMemcpyAsync(seen, before, known.size() * sizeof(unsigned), cudaMemcpyDeviceToDevice));
              check(cudaMemsetAsync(reached, 0, sizeof(int)));
          });
}
