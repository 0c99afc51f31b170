// A plasma's step: each particle's charge goes to the eight nodes of its cell (cloud in cell); sorted by cell, periodic.
#include "../tried/tried.cuh"

constexpr int SIDE = 64, CELLS = SIDE * SIDE * SIDE;
// Particles of cell c: from begin[c] up to begin[c + 1].
struct Plasma { const float *x, *y, *z, *charge; const int *begin; float *density; int particles, side; };

__global__ void as_it_is(Plasma plasma) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= plasma.particles) return;
    const float x = plasma.x[p], y = plasma.y[p], z = plasma.z[p], charge = plasma.charge[p];
    const int side = plasma.side, i = int(floorf(x)), j = int(floorf(y)), k = int(floorf(z));
    const float fx = x - i, fy = y - j, fz = z - k;
    for (int corner = 0; corner < 8; ++corner) {
        const int a = corner & 1, b = corner >> 1 & 1, c = corner >> 2;
        const float weight = (a ? fx : 1.f - fx) * (b ? fy : 1.f - fy) * (c ? fz : 1.f - fz);
        const int node = ((k + c) % side * side + (j + b) % side) * side + (i + a) % side;
        atomicAdd(&plasma.density[node], charge * weight);
    }
}

// First step, global atomics: a cell's particles lie beside each other, so that lanes sum those of theirs by shuffles, and
// the first of a cell adds; or the block sums in shared memory by cell and corner.
struct Part { int i, j, k, cell; float x, y, z, charge; };  // a particle's cell, and where in it
__device__ __forceinline__ Part read(Plasma plasma, int p) {
    if (p >= plasma.particles) return {0, 0, 0, -1, 0.f, 0.f, 0.f, 0.f};
    const float x = plasma.x[p], y = plasma.y[p], z = plasma.z[p];
    const int i = int(floorf(x)), j = int(floorf(y)), k = int(floorf(z));
    return {i, j, k, (k * plasma.side + j) * plasma.side + i, x - i, y - j, z - k, plasma.charge[p]};
}
__global__ void summed_in_the_warp(Plasma plasma) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, side = plasma.side;
    const Part part = read(plasma, p);
    const int cell = part.cell;
    unsigned same = 0;  // bit n: the lane 2^n further on has the same cell
    for (int n = 0; n < 5; ++n) {
        const int other = __shfl_down_sync(~0u, cell, 1 << n);
        if (lane + (1 << n) < 32 && other == cell) same |= 1u << n;
    }
    const int left = __shfl_up_sync(~0u, cell, 1);
    const bool adds = cell >= 0 && (lane == 0 || left != cell);
    for (int corner = 0; corner < 8; ++corner) {
        const int a = corner & 1, b = corner >> 1 & 1, c = corner >> 2;
        float sum = part.charge * ((a ? part.x : 1.f - part.x) * (b ? part.y : 1.f - part.y) * (c ? part.z : 1.f - part.z));
        for (int n = 0; n < 5; ++n) {
            const float other = __shfl_down_sync(~0u, sum, 1 << n);
            if (same >> n & 1) sum += other;
        }
        const int node = ((part.k + c) % side * side + (part.j + b) % side) * side + (part.i + a) % side;
        if (adds) atomicAdd(&plasma.density[node], sum);
    }
}
constexpr int HELD = 256;  // cells from a block's first on; what lies further goes to memory
__global__ void summed_in_shared(Plasma plasma) {
    __shared__ float sums[HELD * 8];
    __shared__ int begin;
    const int p = blockIdx.x * blockDim.x + threadIdx.x, side = plasma.side;
    const Part part = read(plasma, p);
    for (int at = threadIdx.x; at < HELD * 8; at += blockDim.x) sums[at] = 0.f;
    if (threadIdx.x == 0) begin = part.cell;
    __syncthreads();
    if (p < plasma.particles)
        for (int corner = 0; corner < 8; ++corner) {
            const int a = corner & 1, b = corner >> 1 & 1, c = corner >> 2;
            const float own = part.charge * ((a ? part.x : 1.f - part.x) * (b ? part.y : 1.f - part.y) * (c ? part.z : 1.f - part.z));
            const int node = ((part.k + c) % side * side + (part.j + b) % side) * side + (part.i + a) % side, at = part.cell - begin;
            if (at < HELD) atomicAdd(&sums[at * 8 + corner], own);
            else atomicAdd(&plasma.density[node], own);
        }
    __syncthreads();
    for (int at = threadIdx.x; at < HELD * 8; at += blockDim.x) {
        if (sums[at] == 0.f) continue;
        const int of = begin + at / 8, a = at & 1, b = at >> 1 & 1, c = at >> 2 & 1;
        const int node = ((of / side / side + c) % side * side + (of / side % side + b) % side) * side + (of % side + a) % side;
        atomicAdd(&plasma.density[node], sums[at]);
    }
}

// Second step, threads without work: eight lanes take 32 particles, four by one vector each, and sum those of a cell in
// registers first; four such rows a warp.
constexpr int OWN = 4, SHARERS = 8;
__device__ __forceinline__ float4 vector(const float *of, int p, int count) {
    if (p + OWN <= count) return *reinterpret_cast<const float4 *>(of + p);
    return make_float4(p < count ? of[p] : 0.f, p + 1 < count ? of[p + 1] : 0.f, p + 2 < count ? of[p + 2] : 0.f, 0.f);
}
__global__ void eight_lanes_a_row(Plasma plasma) {
    const int p = (blockIdx.x * blockDim.x + threadIdx.x) * OWN, lane = threadIdx.x % SHARERS, side = plasma.side;
    const float4 xs = vector(plasma.x, p, plasma.particles), ys = vector(plasma.y, p, plasma.particles);
    const float4 zs = vector(plasma.z, p, plasma.particles), charges = vector(plasma.charge, p, plasma.particles);
    const float x[] = {xs.x, xs.y, xs.z, xs.w}, y[] = {ys.x, ys.y, ys.z, ys.w}, z[] = {zs.x, zs.y, zs.z, zs.w};
    const float charge[] = {charges.x, charges.y, charges.z, charges.w};
    Part part[OWN];
#pragma unroll
    for (int m = 0; m < OWN; ++m) {
        const int i = int(floorf(x[m])), j = int(floorf(y[m])), k = int(floorf(z[m]));
        part[m] = {i, j, k, p + m < plasma.particles ? (k * side + j) * side + i : -1, x[m] - i, y[m] - j, z[m] - k, charge[m]};
    }
    const int first = part[0].cell, last = part[OWN - 1].cell;
    unsigned same = 0;  // bit n: the lane 2^n further on begins with the cell that this one begins with
    for (int n = 0; n < 3; ++n) {
        const int other = __shfl_down_sync(~0u, first, 1 << n, SHARERS);
        if (lane + (1 << n) < SHARERS && other == first) same |= 1u << n;
    }
    const int left = __shfl_up_sync(~0u, last, 1, SHARERS), right = __shfl_down_sync(~0u, first, 1, SHARERS);
    const bool begins = lane == 0 || left != first, goes_on = lane + 1 < SHARERS && right == last;
    for (int corner = 0; corner < 8; ++corner) {
        const int a = corner & 1, b = corner >> 1 & 1, c = corner >> 2;
        float own[OWN], sum = 0.f;
#pragma unroll
        for (int m = 0; m < OWN; ++m) {
            own[m] = part[m].charge * ((a ? part[m].x : 1.f - part[m].x) * (b ? part[m].y : 1.f - part[m].y) * (c ? part[m].z : 1.f - part[m].z));
            if (part[m].cell == first) sum += own[m];
        }
        for (int n = 0; n < 3; ++n) {
            const float other = __shfl_down_sync(~0u, sum, 1 << n, SHARERS);
            if (same >> n & 1) sum += other;
        }
        const float further = __shfl_down_sync(~0u, sum, 1, SHARERS);
        float run = 0.f;
#pragma unroll
        for (int m = 0; m < OWN; ++m) {
            const Part &of = part[m];
            run += own[m];
            if (m + 1 < OWN && part[m + 1 < OWN ? m + 1 : m].cell == of.cell) continue;
            const int node = ((of.k + c) % side * side + (of.j + b) % side) * side + (of.i + a) % side;
            const float all = of.cell == first ? sum : m + 1 == OWN && goes_on ? run + further : run;
            if (of.cell >= 0 && (of.cell != first || begins)) atomicAdd(&plasma.density[node], all);
            run = 0.f;
        }
    }
}

// Eight lanes sum a cell's corners in registers, then each adds one of them; two cells beside each other share nodes.
__global__ void __launch_bounds__(256) expert(Plasma plasma) {
    const int cell = (blockIdx.x * 256 + threadIdx.x) / 8, lane = threadIdx.x % 8, in_warp = threadIdx.x % 32;
    const int i = cell % SIDE, j = cell / SIDE % SIDE, k = cell / SIDE / SIDE;
    const int end = plasma.begin[cell + 1];
    float sum[8] = {};
    for (int p = plasma.begin[cell] + lane; p < end; p += 8) {
        const float charge = __ldcs(plasma.charge + p), fx = __ldcs(plasma.x + p) - i, fy = __ldcs(plasma.y + p) - j, fz = __ldcs(plasma.z + p) - k;
        const float far = charge * fz, near = charge - far, far_up = far * fy, near_up = near * fy, far_low = far - far_up, near_low = near - near_up;
        const float quarter[4] = {near_low, near_up, far_low, far_up};
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const float right = quarter[q] * fx;
            sum[2 * q] += quarter[q] - right, sum[2 * q + 1] += right;
        }
    }
    // Half of the sums go to a lane's partner, three times: what is left is corner `lane`.
    float four[4], two[2];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const float mine = lane & 4 ? sum[4 + q] : sum[q], other = lane & 4 ? sum[q] : sum[4 + q];
        four[q] = mine + __shfl_xor_sync(~0u, other, 4);
    }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
        const float mine = lane & 2 ? four[2 + q] : four[q], other = lane & 2 ? four[q] : four[2 + q];
        two[q] = mine + __shfl_xor_sync(~0u, other, 2);
    }
    float own = (lane & 1 ? two[1] : two[0]) + __shfl_xor_sync(~0u, lane & 1 ? two[0] : two[1], 1);
    const int right = lane & 1, b = lane >> 1 & 1, c = lane >> 2;
    const float before = __shfl_up_sync(~0u, own, 7);
    if (right && in_warp < 24) return;
    if (!right && in_warp >= 8) own += before;
    atomicAdd(&plasma.density[((k + c) % SIDE * SIDE + (j + b) % SIDE) * SIDE + (i + right) % SIDE], own);
}

int main(int, char **arguments) {
    // Some sixteen a cell, twice as many where the plasma is dense.
    std::vector<float> x, y, z;
    std::vector<int> begin{0};
    for (int cell = 0; cell < CELLS; ++cell) {
        const int i = cell % SIDE, j = cell / SIDE % SIDE, k = cell / SIDE / SIDE;
        const int usual = 13 + int(8.f * std::sin(6.2831853f * (i + j) / SIDE)), here = std::max(0, usual + int(hashed(cell) % 13) - 4);
        for (int n = 0; n < here; ++n) {
            const unsigned one = hashed(cell * 64u + n);
            x.push_back(i + 0.999f * (one / 4294967296.f)), y.push_back(j + 0.999f * (hashed(one + 1) / 4294967296.f));
            z.push_back(k + 0.999f * (hashed(one + 2) / 4294967296.f));
        }
        begin.push_back(int(x.size()));
    }
    const int particles = int(x.size());
    float *out = get<float>(CELLS);
    const Plasma plasma{copied(x), copied(y), copied(z), drawn<float>(particles, 0.5, 1.5, 4), copied(begin), out, particles, SIDE};
    judge({
        {"as_it_is", [=] { as_it_is<<<(particles + 255) / 256, 256>>>(plasma); }},
        {"summed_in_the_warp", [=] { summed_in_the_warp<<<(particles + 255) / 256, 256>>>(plasma); }},
        {"summed_in_shared", [=] { summed_in_shared<<<(particles + 255) / 256, 256>>>(plasma); }},
        {"eight_lanes_a_row", [=] { eight_lanes_a_row<<<(particles + 256 * OWN - 1) / (256 * OWN), 256>>>(plasma); }},
        {"expert", [=] { expert<<<CELLS / 32, 256>>>(plasma); }},
    }, {{out, CELLS}}, [=] { check(cudaMemset(out, 0, CELLS * sizeof(float))); }, arguments[1]);
}
