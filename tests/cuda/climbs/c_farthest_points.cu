// Clouds of 4096 points are thinned to 512: the next one chosen is always the farthest from all that were chosen before.
#include "../tried/tried.cuh"

constexpr int CLOUDS = 128, POINTS = 4096, WANTED = 512;
struct Clouds { const float *points; float *nearest; int *chosen; int count, wanted; };

// The same rounding in all forms, as one other choice changes all that follow.
__device__ __forceinline__ float squared(float x, float y, float z) { return fmaf(z, z, fmaf(y, y, x * x)); }

// A block a cloud; each point's distance to the nearest chosen one lies in memory.
__global__ void as_it_is(Clouds clouds) {
    __shared__ float far[512];
    __shared__ int place[512];
    const int thread = threadIdx.x;
    const float *points = clouds.points + blockIdx.x * clouds.count * 3;
    float *nearest = clouds.nearest + blockIdx.x * clouds.count;
    int *chosen = clouds.chosen + blockIdx.x * clouds.wanted;
    for (int i = thread; i < clouds.count; i += blockDim.x) nearest[i] = 1e10f;
    int last = 0;
    if (thread == 0) chosen[0] = last;
    for (int step = 1; step < clouds.wanted; ++step) {
        const float x = points[last * 3], y = points[last * 3 + 1], z = points[last * 3 + 2];
        float best = -1.f;
        int at = 0;
        for (int i = thread; i < clouds.count; i += blockDim.x) {
            const float distance = squared(points[i * 3] - x, points[i * 3 + 1] - y, points[i * 3 + 2] - z);
            const float now = fminf(distance, nearest[i]);
            nearest[i] = now;
            if (now > best) best = now, at = i;
        }
        far[thread] = best, place[thread] = at;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (thread < half) {
                const float other = far[thread + half];
                const int its = place[thread + half];
                if (other > far[thread] || (other == far[thread] && its < place[thread])) far[thread] = other, place[thread] = its;
            }
            __syncthreads();
        }
        last = place[0];
        if (thread == 0) chosen[step] = last;
        __syncthreads();
    }
}

// First step (fewer passes: cannot be had), barriers: lanes reduce through shuffles. The first warp reduces what the warps
// found, and the block meets twice; or each warp does, and it meets once.
__device__ __forceinline__ void farthest(float &best, int &at) {
    for (int half = 16; half > 0; half /= 2) {
        const float other = __shfl_xor_sync(~0u, best, half);
        const int its = __shfl_xor_sync(~0u, at, half);
        if (other > best || (other == best && its < at)) best = other, at = its;
    }
}
template <bool ONCE> __device__ __forceinline__ void through_shuffles(Clouds clouds) {
    __shared__ float far[2][32];
    __shared__ int place[2][32], next;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, warps = blockDim.x / 32;
    const float *points = clouds.points + blockIdx.x * clouds.count * 3;
    float *nearest = clouds.nearest + blockIdx.x * clouds.count;
    int *chosen = clouds.chosen + blockIdx.x * clouds.wanted;
    for (int i = thread; i < clouds.count; i += blockDim.x) nearest[i] = 1e10f;
    int last = 0;
    if (thread == 0) chosen[0] = last;
    for (int step = 1; step < clouds.wanted; ++step) {
        const float x = points[last * 3], y = points[last * 3 + 1], z = points[last * 3 + 2];
        const int turn = ONCE ? step % 2 : 0;  // who is late still reads what was found before
        float best = -1.f;
        int at = 0;
        for (int i = thread; i < clouds.count; i += blockDim.x) {
            const float distance = squared(points[i * 3] - x, points[i * 3 + 1] - y, points[i * 3 + 2] - z);
            const float now = fminf(distance, nearest[i]);
            nearest[i] = now;
            if (now > best) best = now, at = i;
        }
        farthest(best, at);
        if (lane == 0) far[turn][warp] = best, place[turn][warp] = at;
        __syncthreads();
        if (ONCE || warp == 0) {
            best = lane < warps ? far[turn][lane] : -1.f, at = lane < warps ? place[turn][lane] : 0;
            farthest(best, at);
        }
        if (ONCE) last = at;
        else {
            if (thread == 0) next = at;
            __syncthreads();
            last = next;
        }
        if (thread == 0) chosen[step] = last;
    }
}
__global__ void meets_twice(Clouds clouds) { through_shuffles<false>(clouds); }
__global__ void meets_once(Clouds clouds) { through_shuffles<true>(clouds); }

// Second step (fewer passes: cannot be had), redundant loads: what a thread reads in each pass stays in its registers, or in
// shared memory.
constexpr int KEPT = POINTS / 512;
__global__ void __launch_bounds__(512) kept_in_registers(Clouds clouds) {
    __shared__ float far[2][32];
    __shared__ int place[2][32];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, warps = blockDim.x / 32;
    const float *points = clouds.points + blockIdx.x * clouds.count * 3;
    int *chosen = clouds.chosen + blockIdx.x * clouds.wanted;
    float own[KEPT][3], nearest[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int i = thread + k * 512;
        for (int c = 0; c < 3; ++c) own[k][c] = points[i * 3 + c];
        nearest[k] = 1e10f;
    }
    int last = 0;
    if (thread == 0) chosen[0] = last;
    for (int step = 1; step < clouds.wanted; ++step) {
        const float x = points[last * 3], y = points[last * 3 + 1], z = points[last * 3 + 2];
        float best = -1.f;
        int at = 0;
#pragma unroll
        for (int k = 0; k < KEPT; ++k) {
            nearest[k] = fminf(squared(own[k][0] - x, own[k][1] - y, own[k][2] - z), nearest[k]);
            if (nearest[k] > best) best = nearest[k], at = thread + k * 512;
        }
        farthest(best, at);
        if (lane == 0) far[step % 2][warp] = best, place[step % 2][warp] = at;
        __syncthreads();
        best = lane < warps ? far[step % 2][lane] : -1.f, at = lane < warps ? place[step % 2][lane] : 0;
        farthest(best, at);
        last = at;
        if (thread == 0) chosen[step] = last;
    }
}
__global__ void kept_in_shared(Clouds clouds) {
    extern __shared__ float kept[];
    __shared__ float far[2][32];
    __shared__ int place[2][32];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, warps = blockDim.x / 32;
    float *points = kept, *nearest = kept + clouds.count * 3;
    int *chosen = clouds.chosen + blockIdx.x * clouds.wanted;
    for (int i = thread; i < clouds.count * 3; i += blockDim.x) points[i] = clouds.points[blockIdx.x * clouds.count * 3 + i];
    for (int i = thread; i < clouds.count; i += blockDim.x) nearest[i] = 1e10f;
    __syncthreads();
    int last = 0;
    if (thread == 0) chosen[0] = last;
    for (int step = 1; step < clouds.wanted; ++step) {
        const float x = points[last * 3], y = points[last * 3 + 1], z = points[last * 3 + 2];
        float best = -1.f;
        int at = 0;
        for (int i = thread; i < clouds.count; i += blockDim.x) {
            const float now = fminf(squared(points[i * 3] - x, points[i * 3 + 1] - y, points[i * 3 + 2] - z), nearest[i]);
            nearest[i] = now;
            if (now > best) best = now, at = i;
        }
        farthest(best, at);
        if (lane == 0) far[step % 2][warp] = best, place[step % 2][warp] = at;
        __syncthreads();
        best = lane < warps ? far[step % 2][lane] : -1.f, at = lane < warps ? place[step % 2][lane] : 0;
        farthest(best, at);
        last = at;
        if (thread == 0) chosen[step] = last;
    }
}

// Points and distances stay in registers; bits of positive numbers are ordered as they are, so that the warp's own
// maximum finds the farthest; warps meet once a step.
template <int THREADS> __device__ __forceinline__ void in_registers(Clouds clouds) {
    constexpr int EACH = POINTS / THREADS, WARPS = THREADS / 32;
    extern __shared__ float4 spots[];
    __shared__ uint2 found[2][WARPS];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const float *points = clouds.points + blockIdx.x * POINTS * 3;
    int *chosen = clouds.chosen + blockIdx.x * WANTED;
    float x[EACH], y[EACH], z[EACH], nearest[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int at = k * THREADS + thread;
        x[k] = points[at * 3], y[k] = points[at * 3 + 1], z[k] = points[at * 3 + 2], nearest[k] = 1e10f;
        spots[at] = make_float4(x[k], y[k], z[k], 0.f);
    }
    __syncthreads();
    unsigned last = 0;
    if (thread == 0) chosen[0] = 0;
    for (int step = 1; step < WANTED; ++step) {
        const float4 from = spots[last];
        float best = 0.f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            nearest[k] = fminf(squared(x[k] - from.x, y[k] - from.y, z[k] - from.z), nearest[k]);
            best = fmaxf(best, nearest[k]);
        }
        unsigned most = __reduce_max_sync(~0u, __float_as_uint(best)), at = ~0u;
        if (__float_as_uint(best) == most) {
#pragma unroll
            for (int k = EACH - 1; k >= 0; --k)
                if (nearest[k] == best) at = k * THREADS + thread;
        }
        at = __reduce_min_sync(~0u, at);
        if (lane == 0) found[step % 2][warp] = make_uint2(most, at);
        __syncthreads();
        const uint2 one = lane < WARPS ? found[step % 2][lane] : make_uint2(0u, ~0u);
        most = __reduce_max_sync(~0u, one.x);
        last = __reduce_min_sync(~0u, one.x == most ? one.y : ~0u);
        if (thread == 0) chosen[step] = last;
    }
}
__global__ void __launch_bounds__(512) expert(Clouds clouds) { in_registers<512>(clouds); }
__global__ void __launch_bounds__(256) expert_256(Clouds clouds) { in_registers<256>(clouds); }

int main(int, char **arguments) {
    // Scanned bodies: points on a bumpy sphere.
    std::vector<float> points(size_t(CLOUDS) * POINTS * 3);
    for (size_t i = 0; i < points.size(); i += 3) {
        float part[3], length = 0.f;
        for (int c = 0; c < 3; ++c) part[c] = hashed(unsigned(i) + c) / 2147483648.f - 1.f, length += part[c] * part[c];
        length = std::sqrt(length) + 1e-3f;
        const float radius = 1.f + 0.2f * std::sin(7.f * part[0] / length) * std::cos(5.f * part[1] / length);
        for (int c = 0; c < 3; ++c) points[i + c] = part[c] / length * radius;
    }
    int *out = get<int>(CLOUDS * WANTED);
    const Clouds clouds{copied(points), get<float>(CLOUDS * POINTS), out, POINTS, WANTED};
    constexpr int BYTES = POINTS * sizeof(float4);
    check(cudaFuncSetAttribute(expert, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    check(cudaFuncSetAttribute(expert_256, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    check(cudaFuncSetAttribute(kept_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    judge({
        {"as_it_is", [=] { as_it_is<<<CLOUDS, 512>>>(clouds); }},
        {"meets_twice", [=] { meets_twice<<<CLOUDS, 512>>>(clouds); }},
        {"meets_once", [=] { meets_once<<<CLOUDS, 512>>>(clouds); }},
        {"kept_in_registers", [=] { kept_in_registers<<<CLOUDS, 512>>>(clouds); }},
        {"kept_in_shared", [=] { kept_in_shared<<<CLOUDS, 512, BYTES>>>(clouds); }},
        {"expert", [=] { expert<<<CLOUDS, 512, BYTES>>>(clouds); }},
        {"expert_256", [=] { expert_256<<<CLOUDS, 256, BYTES>>>(clouds); }},
    }, {{out, CLOUDS * WANTED}}, [] {}, arguments[1]);
}
