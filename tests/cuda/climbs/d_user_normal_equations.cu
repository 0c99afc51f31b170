// Alternating least squares of a recommender: for each user the sum of the outer products of the factors of what was
// rated, with a diagonal that grows with the ratings' count, and the sum of the factors times the ratings.
#include <numeric>

#include "../tried/tried.cuh"

constexpr int USERS = 8192, ITEMS = 65536, F = 64, MOST = 512;
constexpr float WEIGHT = 0.05f;

struct Ratings { const int *first, *items; const float *values, *factors; };

__global__ void as_it_is(Ratings ratings, float *products, float *sums) {
    const int user = blockIdx.x, column = threadIdx.x, row = threadIdx.y;
    const int begin = ratings.first[user], end = ratings.first[user + 1];
    float product[F / 4] = {}, sum = 0.f;
    for (int r = begin; r < end; ++r) {
        const float *factors = ratings.factors + size_t(ratings.items[r]) * F;
        const float own = factors[column];
#pragma unroll
        for (int q = 0; q < F / 4; ++q) product[q] += factors[row + q * 4] * own;
        if (row == 0) sum += ratings.values[r] * own;
    }
#pragma unroll
    for (int q = 0; q < F / 4; ++q) {
        const int i = row + q * 4;
        if (i == column) product[q] += WEIGHT * (end - begin);
        products[(size_t(user) * F + i) * F + column] = product[q];
    }
    if (row == 0) sums[user * F + column] = sum;
}

// First step, redundant loads: four neighbouring columns a thread, or the factors of 64 items in shared memory.
__device__ __forceinline__ void four_columns(Ratings ratings, float *products, float *sums, int user) {
    const int column = threadIdx.x * 4, row = threadIdx.y;
    const int begin = ratings.first[user], end = ratings.first[user + 1];
    float product[F / 4][4] = {}, sum[4] = {};
    for (int r = begin; r < end; ++r) {
        const float *factors = ratings.factors + size_t(ratings.items[r]) * F;
        float own[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) own[j] = factors[column + j];
#pragma unroll
        for (int q = 0; q < F / 4; ++q) {
            const float other = factors[row + q * 4];
#pragma unroll
            for (int j = 0; j < 4; ++j) product[q][j] += other * own[j];
        }
        if (row == 0) {
            const float value = ratings.values[r];
#pragma unroll
            for (int j = 0; j < 4; ++j) sum[j] += value * own[j];
        }
    }
#pragma unroll
    for (int q = 0; q < F / 4; ++q)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = row + q * 4;
            if (i == column + j) product[q][j] += WEIGHT * (end - begin);
            products[(size_t(user) * F + i) * F + column + j] = product[q][j];
        }
    if (row == 0)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[user * F + column + j] = sum[j];
}
__global__ void four_in_registers(Ratings ratings, float *products, float *sums) { four_columns(ratings, products, sums, blockIdx.x); }
__global__ void tile_in_shared(Ratings ratings, float *products, float *sums) {
    constexpr int HELD = 64;
    __shared__ float tile[HELD][F], values[HELD];
    const int user = blockIdx.x, column = threadIdx.x, row = threadIdx.y;
    const int begin = ratings.first[user], end = ratings.first[user + 1];
    float product[F / 4] = {}, sum = 0.f;
    for (int first = begin; first < end; first += HELD) {
        const int held = min(HELD, end - first);
        __syncthreads();
        for (int r = row; r < held; r += blockDim.y) tile[r][column] = ratings.factors[size_t(ratings.items[first + r]) * F + column];
        if (row == 0 && column < held) values[column] = ratings.values[first + column];
        __syncthreads();
        for (int r = 0; r < held; ++r) {
            const float own = tile[r][column];
#pragma unroll
            for (int q = 0; q < F / 4; ++q) product[q] += tile[r][row + q * 4] * own;
            if (row == 0) sum += values[r] * own;
        }
    }
#pragma unroll
    for (int q = 0; q < F / 4; ++q) {
        const int i = row + q * 4;
        if (i == column) product[q] += WEIGHT * (end - begin);
        products[(size_t(user) * F + i) * F + column] = product[q];
    }
    if (row == 0) sums[user * F + column] = sum;
}

// Second step, workload imbalance: users sorted by their ratings' count, the longest first.
__global__ void longest_first(Ratings ratings, const int *order, float *products, float *sums) {
    four_columns(ratings, products, sums, order[blockIdx.x]);
}

// Third step, uncoalesced access: the four columns of a thread as one vector, or the factors of 16 items through shared memory.
template <bool SHARED> __device__ __forceinline__ void columns_by_vectors(Ratings ratings, float *products, float *sums, int user) {
    constexpr int HELD = 16;
    __shared__ float4 tile[SHARED ? HELD : 1][F / 4];
    const int column = threadIdx.x, row = threadIdx.y;
    const int begin = ratings.first[user], end = ratings.first[user + 1];
    float product[F / 4][4] = {}, sum[4] = {};
    auto add = [&](const float *factors, int r) {
        const float4 loaded = reinterpret_cast<const float4 *>(factors)[column];
        const float own[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
        for (int q = 0; q < F / 4; ++q) {
            const float other = factors[row + q * 4];
#pragma unroll
            for (int j = 0; j < 4; ++j) product[q][j] += other * own[j];
        }
        if (row == 0) {
            const float value = ratings.values[r];
#pragma unroll
            for (int j = 0; j < 4; ++j) sum[j] += value * own[j];
        }
    };
    if (SHARED)
        for (int first = begin; first < end; first += HELD) {
            const int held = min(HELD, end - first);
            __syncthreads();
            for (int r = row; r < held; r += blockDim.y)
                tile[r][column] = reinterpret_cast<const float4 *>(ratings.factors + size_t(ratings.items[first + r]) * F)[column];
            __syncthreads();
            for (int r = 0; r < held; ++r) add(reinterpret_cast<const float *>(tile[r]), first + r);
        }
    else
        for (int r = begin; r < end; ++r) add(ratings.factors + size_t(ratings.items[r]) * F, r);
#pragma unroll
    for (int q = 0; q < F / 4; ++q) {
        const int i = row + q * 4;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (i == column * 4 + j) product[q][j] += WEIGHT * (end - begin);
        reinterpret_cast<float4 *>(products + (size_t(user) * F + i) * F)[column] =
            make_float4(product[q][0], product[q][1], product[q][2], product[q][3]);
    }
    if (row == 0) reinterpret_cast<float4 *>(sums + user * F)[column] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
__global__ void four_by_vectors(Ratings ratings, const int *order, float *products, float *sums) {
    columns_by_vectors<false>(ratings, products, sums, order[blockIdx.x]);
}
__global__ void four_through_shared(Ratings ratings, const int *order, float *products, float *sums) {
    columns_by_vectors<true>(ratings, products, sums, order[blockIdx.x]);
}

// Sixteen items at a time are gathered into shared memory while the last sixteen are multiplied; a thread holds 8 by 8
// products, four rows and columns of each half.
constexpr int ROWS = 16, THREADS = 64;
__device__ __forceinline__ void copy_16(float *to, const float *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0));
}
__global__ void __launch_bounds__(THREADS, 9) expert(Ratings ratings, float *products, float *sums) {
    __shared__ __align__(16) float tile[2][ROWS][F];
    __shared__ float value[2][ROWS];
    const int user = blockIdx.x, thread = threadIdx.x, across = thread % 8 * 4, down = thread / 8 * 4;
    const int begin = ratings.first[user], end = ratings.first[user + 1];
    float product[8][8] = {}, sum = 0.f;
    int item[4];
    float next = 0.f;
    auto look_up = [&](int r) {  // which items and ratings come from r on
#pragma unroll
        for (int q = 0; q < 4; ++q) item[q] = r + q * 4 + thread / 16 < end ? ratings.items[r + q * 4 + thread / 16] : -1;
        next = thread < ROWS && r + thread < end ? ratings.values[r + thread] : 0.f;
    };
    auto gather = [&](int stage) {
#pragma unroll
        for (int q = 0; q < 4; ++q)
            copy_16(&tile[stage][q * 4 + thread / 16][thread % 16 * 4], ratings.factors + size_t(max(item[q], 0)) * F + thread % 16 * 4, item[q] >= 0);
        if (thread < ROWS) value[stage][thread] = next;
        asm volatile("cp.async.commit_group;");
    };
    look_up(begin);
    gather(0);
    look_up(begin + ROWS);
    for (int r = begin, stage = 0; r < end; r += ROWS, stage ^= 1) {
        gather(stage ^ 1);
        look_up(r + 2 * ROWS);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < ROWS; ++k) {
            float a[8], b[8];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4 *>(&a[half * 4]) = *reinterpret_cast<const float4 *>(&tile[stage][k][half * (F / 2) + down]);
                *reinterpret_cast<float4 *>(&b[half * 4]) = *reinterpret_cast<const float4 *>(&tile[stage][k][half * (F / 2) + across]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) product[i][j] = fmaf(a[i], b[j], product[i][j]);
            sum = fmaf(value[stage][k], tile[stage][k][thread], sum);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = i / 4 * (F / 2) + down + i % 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float out[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int column = half * (F / 2) + across + j;
                out[j] = product[i][half * 4 + j] + (row == column ? WEIGHT * (end - begin) : 0.f);
            }
            __stcs(reinterpret_cast<float4 *>(products + (size_t(user) * F + row) * F + half * (F / 2) + across), make_float4(out[0], out[1], out[2], out[3]));
        }
    }
    sums[user * F + thread] = sum;
}

int main(int, char **argv) {
    auto uniform = [](unsigned seed) { return (hashed(seed) + 0.5) / 4294967296.0; };
    std::vector<int> starts(USERS + 1), rated;
    std::vector<float> stars;
    for (unsigned user = 0; user < USERS; ++user) {  // few users rate much, few items are rated much
        const int count = std::min(MOST, int(30.0 / std::pow(uniform(user), 0.7)));
        for (int r = 0; r < count; ++r) {
            rated.push_back(hashed(unsigned(std::pow(double(ITEMS), uniform(1000003u + rated.size())))) % ITEMS);
            stars.push_back(0.5f + 0.5f * (hashed(77777u + rated.size()) % 10));
        }
        starts[user + 1] = rated.size();
    }
    const Ratings ratings{copied(starts), copied(rated), copied(stars), drawn<float>(size_t(ITEMS) * F, -0.5, 0.5, 1)};
    std::vector<int> by_length(USERS);
    std::iota(by_length.begin(), by_length.end(), 0);
    std::stable_sort(by_length.begin(), by_length.end(), [&](int a, int b) { return starts[a + 1] - starts[a] > starts[b + 1] - starts[b]; });
    const int *order = copied(by_length);
    float *products = get<float>(size_t(USERS) * F * F), *sums = get<float>(USERS * F);
    judge({{"as_it_is", [=] { as_it_is<<<USERS, dim3(F, 4)>>>(ratings, products, sums); }},
           {"four_in_registers", [=] { four_in_registers<<<USERS, dim3(F / 4, 4)>>>(ratings, products, sums); }},
           {"tile_in_shared", [=] { tile_in_shared<<<USERS, dim3(F, 4)>>>(ratings, products, sums); }},
           {"longest_first", [=] { longest_first<<<USERS, dim3(F / 4, 4)>>>(ratings, order, products, sums); }},
           {"four_by_vectors", [=] { four_by_vectors<<<USERS, dim3(F / 4, 4)>>>(ratings, order, products, sums); }},
           {"four_through_shared", [=] { four_through_shared<<<USERS, dim3(F / 4, 4)>>>(ratings, order, products, sums); }},
           {"expert", [=] { expert<<<USERS, THREADS>>>(ratings, products, sums); }}},
          {{products, size_t(USERS) * F * F}, {sums, USERS * F}}, [] {}, argv[1]);
}
