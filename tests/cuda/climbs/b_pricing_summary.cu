// A pricing summary report (as in decision-support benchmarks): of all items shipped by a date the sums of quantity, price,
// discounted price, charge and discount, and their count, by return flag and line status; in whole cents and percent.
#include "../tried/tried.cuh"

typedef unsigned long long Sum;  // 64 bits of a whole number
constexpr int ROWS = 6 << 20, FLAGS = 3, GROUPS = 2 * FLAGS, SUMS = 6, LAST = 2400;

struct Items {
    const int *quantity, *price, *discount, *tax, *shipped;
    const char *flag, *status;
};

__global__ void as_it_is(Items items, Sum *out) {
    __shared__ Sum sums[GROUPS][SUMS];
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) sums[i / SUMS][i % SUMS] = 0;
    __syncthreads();
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < ROWS; row += gridDim.x * blockDim.x) {
        if (items.shipped[row] > LAST) continue;
        const int flag = items.flag[row] == 'A' ? 0 : items.flag[row] == 'N' ? 1 : 2;
        const int group = 2 * flag + (items.status[row] == 'O');
        const Sum discounted = Sum(items.price[row]) * (100 - items.discount[row]);
        atomicAdd(&sums[group][0], Sum(items.quantity[row]));
        atomicAdd(&sums[group][1], Sum(items.price[row]));
        atomicAdd(&sums[group][2], discounted);
        atomicAdd(&sums[group][3], discounted * (100 + items.tax[row]));
        atomicAdd(&sums[group][4], Sum(items.discount[row]));
        atomicAdd(&sums[group][5], Sum(1));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) atomicAdd(&out[i], sums[i / SUMS][i % SUMS]);
}

// The warp's reduction takes 32 bits: the two large sums go by it in two parts of 24 bits.
__device__ Sum sum_of(unsigned lanes, Sum value) {
    return __reduce_add_sync(lanes, unsigned(value & 0xffffff)) + (Sum(__reduce_add_sync(lanes, unsigned(value >> 24))) << 24);
}
__global__ void summed_in_the_warp(Items items, Sum *out) {
    __shared__ Sum sums[GROUPS][SUMS];
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) sums[i / SUMS][i % SUMS] = 0;
    __syncthreads();
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < ROWS; row += gridDim.x * blockDim.x) {
        const int flag = items.flag[row] == 'A' ? 0 : items.flag[row] == 'N' ? 1 : 2;
        const int group = items.shipped[row] > LAST ? -1 : 2 * flag + (items.status[row] == 'O');
        const Sum discounted = Sum(items.price[row]) * (100 - items.discount[row]), charge = discounted * (100 + items.tax[row]);
        const unsigned lanes = __match_any_sync(~0u, group);  // those of the same group
        const Sum all[SUMS] = {__reduce_add_sync(lanes, unsigned(items.quantity[row])), __reduce_add_sync(lanes, unsigned(items.price[row])), sum_of(lanes, discounted),
                               sum_of(lanes, charge), __reduce_add_sync(lanes, unsigned(items.discount[row])), Sum(__popc(lanes))};
        if (group >= 0 && threadIdx.x % 32 == __ffs(lanes) - 1)
            for (int k = 0; k < SUMS; ++k) atomicAdd(&sums[group][k], all[k]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) atomicAdd(&out[i], sums[i / SUMS][i % SUMS]);
}
__global__ void four_rows(Items items, Sum *out) {
    __shared__ Sum sums[GROUPS][SUMS];
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) sums[i / SUMS][i % SUMS] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < ROWS / 4; i += gridDim.x * blockDim.x) {
        const int4 q = reinterpret_cast<const int4 *>(items.quantity)[i], p = reinterpret_cast<const int4 *>(items.price)[i], d = reinterpret_cast<const int4 *>(items.discount)[i],
                   t = reinterpret_cast<const int4 *>(items.tax)[i], s = reinterpret_cast<const int4 *>(items.shipped)[i];
        const char4 f = reinterpret_cast<const char4 *>(items.flag)[i], o = reinterpret_cast<const char4 *>(items.status)[i];
        const int quantity[4] = {q.x, q.y, q.z, q.w}, price[4] = {p.x, p.y, p.z, p.w}, discount[4] = {d.x, d.y, d.z, d.w}, tax[4] = {t.x, t.y, t.z, t.w}, shipped[4] = {s.x, s.y, s.z, s.w};
        const char flags[4] = {f.x, f.y, f.z, f.w}, status[4] = {o.x, o.y, o.z, o.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int flag = flags[k] == 'A' ? 0 : flags[k] == 'N' ? 1 : 2;
            const int group = shipped[k] > LAST ? -1 : 2 * flag + (status[k] == 'O');
            const Sum discounted = Sum(price[k]) * (100 - discount[k]), charge = discounted * (100 + tax[k]);
            const unsigned lanes = __match_any_sync(~0u, group);
            const Sum all[SUMS] = {__reduce_add_sync(lanes, unsigned(quantity[k])), __reduce_add_sync(lanes, unsigned(price[k])), sum_of(lanes, discounted),
                                   sum_of(lanes, charge), __reduce_add_sync(lanes, unsigned(discount[k])), Sum(__popc(lanes))};
            if (group >= 0 && threadIdx.x % 32 == __ffs(lanes) - 1)
                for (int k = 0; k < SUMS; ++k) atomicAdd(&sums[group][k], all[k]);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) atomicAdd(&out[i], sums[i / SUMS][i % SUMS]);
}
__global__ void a_group_after_another(Items items, Sum *out) {
    __shared__ Sum sums[GROUPS][SUMS];
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) sums[i / SUMS][i % SUMS] = 0;
    __syncthreads();
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < ROWS; row += gridDim.x * blockDim.x) {
        const int flag = items.flag[row] == 'A' ? 0 : items.flag[row] == 'N' ? 1 : 2;
        const int group = items.shipped[row] > LAST ? -1 : 2 * flag + (items.status[row] == 'O');
        const Sum discounted = Sum(items.price[row]) * (100 - items.discount[row]), charge = discounted * (100 + items.tax[row]);
        for (int g = 0; g < GROUPS; ++g) {
            const unsigned lanes = __ballot_sync(~0u, group == g);
            if (!lanes) continue;
            const bool own = group == g;
            const Sum all[SUMS] = {__reduce_add_sync(~0u, own ? unsigned(items.quantity[row]) : 0u), __reduce_add_sync(~0u, own ? unsigned(items.price[row]) : 0u), sum_of(~0u, own ? discounted : 0),
                                   sum_of(~0u, own ? charge : 0), __reduce_add_sync(~0u, own ? unsigned(items.discount[row]) : 0u), Sum(__popc(lanes))};
            if (threadIdx.x % 32 == 0)
                for (int k = 0; k < SUMS; ++k) atomicAdd(&sums[g][k], all[k]);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) atomicAdd(&out[i], sums[i / SUMS][i % SUMS]);
}

// Each row is added to the sums of every group, as nothing to those of the others; a warp's are added up at the end.
__global__ void all_groups_one_computation(Items items, Sum *out) {
    __shared__ Sum sums[GROUPS][SUMS];
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) sums[i / SUMS][i % SUMS] = 0;
    __syncthreads();
    Sum own[GROUPS][SUMS] = {};
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < ROWS; row += gridDim.x * blockDim.x) {
        const int flag = items.flag[row] == 'A' ? 0 : items.flag[row] == 'N' ? 1 : 2;
        const int group = items.shipped[row] > LAST ? -1 : 2 * flag + (items.status[row] == 'O');
        const Sum discounted = Sum(items.price[row]) * (100 - items.discount[row]);
        const Sum all[SUMS] = {Sum(items.quantity[row]), Sum(items.price[row]), discounted, discounted * (100 + items.tax[row]), Sum(items.discount[row]), 1};
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
            for (int k = 0; k < SUMS; ++k) own[g][k] += g == group ? all[k] : 0;
    }
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
        for (int k = 0; k < SUMS; ++k) {
            Sum sum = own[g][k];
            for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
            if (threadIdx.x % 32 == 0) atomicAdd(&sums[g][k], sum);
        }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUPS * SUMS; i += blockDim.x) atomicAdd(&out[i], sums[i / SUMS][i % SUMS]);
}

// A thread keeps the sums of all groups in registers, the small ones in 32 bits, of four rows at a time.
__global__ void __launch_bounds__(256, 2) expert(Items items, Sum *__restrict__ out) {
    Sum price[GROUPS] = {}, discounted[GROUPS] = {}, charge[GROUPS] = {};
    unsigned quantity[GROUPS] = {}, discount[GROUPS] = {}, count[GROUPS] = {};
    const auto four = [](const int *of, int i) { return __ldcs(reinterpret_cast<const int4 *>(of) + i); };
    const auto letters = [](const char *of, int i) { return __ldcs(reinterpret_cast<const char4 *>(of) + i); };
#pragma unroll 2
    for (int i = blockIdx.x * 256 + threadIdx.x; i < ROWS / 4; i += gridDim.x * 256) {
        const int4 q = four(items.quantity, i), p = four(items.price, i), d = four(items.discount, i), t = four(items.tax, i), s = four(items.shipped, i);
        const char4 f = letters(items.flag, i), o = letters(items.status, i);
        const int qs[4] = {q.x, q.y, q.z, q.w}, ps[4] = {p.x, p.y, p.z, p.w}, ds[4] = {d.x, d.y, d.z, d.w}, ts[4] = {t.x, t.y, t.z, t.w}, ss[4] = {s.x, s.y, s.z, s.w};
        const char fs[4] = {f.x, f.y, f.z, f.w}, os[4] = {o.x, o.y, o.z, o.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int group = ss[k] > LAST ? -1 : 2 * (fs[k] == 'A' ? 0 : fs[k] == 'N' ? 1 : 2) + (os[k] == 'O');
            const Sum less = Sum(unsigned(ps[k])) * unsigned(100 - ds[k]), more = less * unsigned(100 + ts[k]);
#pragma unroll
            for (int g = 0; g < GROUPS; ++g)
                if (g == group) price[g] += unsigned(ps[k]), discounted[g] += less, charge[g] += more, quantity[g] += qs[k], discount[g] += ds[k], ++count[g];
        }
    }
    __shared__ Sum sums[GROUPS * SUMS][8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const auto kept = [&](int place, Sum value) {
#pragma unroll
        for (int d = 16; d; d /= 2) value += __shfl_xor_sync(~0u, value, d);
        if (lane == 0) sums[place][warp] = value;
    };
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        kept(g * SUMS, quantity[g]), kept(g * SUMS + 1, price[g]), kept(g * SUMS + 2, discounted[g]), kept(g * SUMS + 3, charge[g]);
        kept(g * SUMS + 4, discount[g]), kept(g * SUMS + 5, count[g]);
    }
    __syncthreads();
    if (threadIdx.x < GROUPS * SUMS) {
        Sum sum = 0;
        for (int w = 0; w < 8; ++w) sum += sums[threadIdx.x][w];
        atomicAdd(&out[threadIdx.x], sum);
    }
}

int main() {
    std::vector<char> flag(ROWS), status(ROWS);
    std::vector<int> shipped(ROWS);
    for (int i = 0; i < ROWS; ++i) {  // what was shipped lately is still open, and not returned
        shipped[i] = hashed(i) % 2526;
        flag[i] = shipped[i] > 1260 ? 'N' : hashed(i + 7) % 2 ? 'A' : 'R';
        status[i] = shipped[i] > 1250 ? 'O' : 'F';
    }
    const Items items = {drawn<int>(ROWS, 1, 51, 1), drawn<int>(ROWS, 90000, 10500000, 2), drawn<int>(ROWS, 0, 11, 3), drawn<int>(ROWS, 0, 9, 4), copied(shipped), copied(flag), copied(status)};
    Sum *out = get<Sum>(GROUPS * SUMS);
    judge({{"as_it_is", [=] { as_it_is<<<1056, 256>>>(items, out); }}, {"summed_in_the_warp", [=] { summed_in_the_warp<<<1056, 256>>>(items, out); }},
           {"a_group_after_another", [=] { a_group_after_another<<<1056, 256>>>(items, out); }}, {"four_rows", [=] { four_rows<<<1056, 256>>>(items, out); }},
           {"all_groups_one_computation", [=] { all_groups_one_computation<<<1056, 256>>>(items, out); }},
           {"expert", [=] { expert<<<264, 256>>>(items, out); }}},
          {{out, GROUPS * SUMS}}, [=] { check(cudaMemsetAsync(out, 0, GROUPS * SUMS * sizeof(Sum))); });
}
