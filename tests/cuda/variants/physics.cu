// Particles, fields, rays and waves.
#include "../pairs/pair.cuh"

namespace {

// --- smoothed particles: density from neighbours in cells ---

struct Particle {
    float x, y, z, mass;
    float vx, vy, vz, rho;
    float fx, fy, fz, pressure;
    int id, cell, flags, pad;
};

constexpr float H2 = 0.04f;

__global__ void sph_density(const Particle *p, const int *neighbours, float *rho, int n, int per) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle me = p[i];
    float sum = 0;
    for (int k = 0; k < per; k++) {
        int j = neighbours[k * n + i];
        float dx = p[j].x - me.x, dy = p[j].y - me.y, dz = p[j].z - me.z;
        float d = H2 - (dx * dx + dy * dy + dz * dz);
        if (d > 0) sum += p[j].mass * d * d * d;
    }
    rho[i] = sum * 315.f / (64.f * 3.14159265f);
}
__global__ void sph_density_packed(const float4 *__restrict__ position, const int *__restrict__ neighbours, float *rho, int n, int per) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 me = position[i];
    float sum = 0;
    for (int k = 0; k < per; k++) {
        float4 o = position[neighbours[k * n + i]];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float d = H2 - (dx * dx + dy * dy + dz * dz);
        if (d > 0) sum += o.w * d * d * d;
    }
    rho[i] = sum * 315.f / (64.f * 3.14159265f);
}
// Structure kept, its first 16 bytes read as one vector.
__global__ void sph_density_vector(const Particle *p, const int *__restrict__ neighbours, float *rho, int n, int per) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 *at = reinterpret_cast<const float4 *>(p);
    float4 me = at[i * 4];
    float sum = 0;
    for (int k = 0; k < per; k++) {
        float4 o = at[neighbours[k * n + i] * 4];
        float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
        float d = H2 - (dx * dx + dy * dy + dz * dz);
        if (d > 0) sum += o.w * d * d * d;
    }
    rho[i] = sum * 315.f / (64.f * 3.14159265f);
}

Study sph("sph_density_structures", "physics", 1 << 20, "density of a million smoothed particles over 40 listed neighbours",
    "particles are structures of 64 bytes of which four floats are used, read one by one",
    {{"packed", "position and mass in an array of their own, 16 bytes a particle", {"uncoalesced_access", "cache_locality", "narrow_access"}},
        {"vector", "structure kept, position and mass read as one 16-byte vector", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int per = 40;
        std::vector<Particle> particles(n);
        std::vector<float> packed(4 * n);
        for (long i = 0; i < n; ++i) {
            auto unit = [&](int k) { return pairs::hash(i * 4 + k) / 4294967296.f * 0.3f; };
            particles[i] = {unit(0), unit(1), unit(2), 1.f + unit(3)};
            for (int k = 0; k < 4; ++k) packed[4 * i + k] = (&particles[i].x)[k];
        }
        std::vector<int> list(n * per);
        for (long k = 0; k < per; ++k)
            for (long i = 0; i < n; ++i) list[k * n + i] = (i + long(pairs::hash(k * n + i) % 8192) - 4096 + n) % n;
        Particle *p = b.copy(particles);
        float *at = b.copy(packed), *rho = b.output<float>(n);
        int *neighbours = b.copy(list);
        return {{"flawed", launch(sph_density, blocks(n, 128), 128, 0, p, neighbours, rho, n, per)},
            {"packed", launch(sph_density_packed, blocks(n, 128), 128, 0, (float4 *)at, neighbours, rho, n, per)},
            {"vector", launch(sph_density_vector, blocks(n, 128), 128, 0, p, neighbours, rho, n, per)}};
    });

// --- rays and spheres ---

struct Sphere {
    float cx, cy, cz, r2;
    float colour[3];
    int material;
};
struct Ray {
    float ox, oy, oz, dx, dy, dz;
};

__device__ float hit_at(const Ray &r, float cx, float cy, float cz, float r2) {
    float x = cx - r.ox, y = cy - r.oy, z = cz - r.oz;
    float b = x * r.dx + y * r.dy + z * r.dz, c = x * x + y * y + z * z - r2, disc = b * b - c;
    return disc < 0.f ? 1e30f : b - sqrtf(disc);
}
__device__ Ray ray_of(int i, int width) {
    float u = (i % width) * 2.f / width - 1.f, v = (i / width) * 2.f / width - 1.f, s = rsqrtf(u * u + v * v + 1.f);
    return {0, 0, 0, u * s, v * s, s};
}

__global__ void trace(const Sphere *spheres, int count, float *depth, int width, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    Ray r = ray_of(i, width);
    float nearest = 1e30f;
    for (int s = 0; s < count; s++) {
        float oc[3] = {spheres[s].cx - r.ox, spheres[s].cy - r.oy, spheres[s].cz - r.oz};
        float len = sqrtf(r.dx * r.dx + r.dy * r.dy + r.dz * r.dz);
        float b = (oc[0] * r.dx + oc[1] * r.dy + oc[2] * r.dz) / len;
        float c = oc[0] * oc[0] + oc[1] * oc[1] + oc[2] * oc[2] - spheres[s].r2;
        float root = sqrtf(fmaxf(b * b - c, 0.f));
        float t = (2 * b - 2 * root) / (2.0f * len);
        if (b * b - c >= 0.f && t < nearest) nearest = t;
    }
    depth[i] = nearest;
}
__global__ void trace_late_root(const Sphere *spheres, int count, float *depth, int width, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    Ray r = ray_of(i, width);
    float nearest = 1e30f;
    for (int s = 0; s < count; s++)
        nearest = fminf(nearest, hit_at(r, spheres[s].cx, spheres[s].cy, spheres[s].cz, spheres[s].r2));
    depth[i] = nearest;
}
// No division, roots only where a ray hits, spheres in shared memory, two rays a thread.
__global__ void __launch_bounds__(128) trace_shared(const float4 *spheres, int count, float *depth, int width, int pixels) {
    extern __shared__ float4 local[];
    for (int s = threadIdx.x; s < count; s += 128) local[s] = spheres[s * 2];
    __syncthreads();
    int i = blockIdx.x * 256 + threadIdx.x;
    Ray a = ray_of(i, width), b = ray_of(i + 128, width);
    float near_a = 1e30f, near_b = 1e30f;
    for (int s = 0; s < count; s++) {
        float4 o = local[s];
        near_a = fminf(near_a, hit_at(a, o.x, o.y, o.z, o.w));
        near_b = fminf(near_b, hit_at(b, o.x, o.y, o.z, o.w));
    }
    depth[i] = near_a;
    depth[i + 128] = near_b;
}

__global__ void sum_depths(float *depth, float *sums, int width) {  // and clears what it has read
    __shared__ float part[8];
    float sum = 0.f;
    for (int x = threadIdx.x; x < width; x += 256) {
        sum += fminf(depth[blockIdx.x * width + x], 100.f);
        depth[blockIdx.x * width + x] = NAN;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += part[w];
        sums[blockIdx.x] = sum;
    }
}

Study rays("rays_spheres_division", "physics", 2048, "the nearest of 512 spheres for every pixel of 2048 x 2048",
    "a root and a division for every sphere, though few are hit and the direction is normalised",
    {{"late_root", "division left out, the root only where the ray hits", {"expensive_math"}},
        {"shared", "the same, spheres in shared memory and two rays a thread", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long width) -> Sides {
        int count = 512, pixels = width * width;
        std::vector<Sphere> spheres(count);
        for (int s = 0; s < count; ++s) {
            auto unit = [&](int k) { return pairs::hash(s * 4 + k) / 4294967296.f; };
            float radius = 0.2f + 0.5f * unit(3);
            spheres[s] = {20 * unit(0) - 10, 20 * unit(1) - 10, 5 + 20 * unit(2), radius * radius};
        }
        Sphere *s = b.copy(spheres);
        float *depth = b.allocate<float>(pixels);
        // A ray that grazes a sphere may hit it in one version only, so sums of rows of pixels are compared.
        float *sums = b.output<float>(width);
        int w = width;
        auto compare = [=] { sum_depths<<<w, 256>>>(depth, sums, w); };
        b.tolerance = 5e-3;
        return {{"flawed", launch(trace, blocks(pixels, 128), 128, 0, s, count, depth, w, pixels), {}, 1, compare},
            {"late_root", launch(trace_late_root, blocks(pixels, 128), 128, 0, s, count, depth, w, pixels), {}, 1, compare},
            {"shared", launch(trace_shared, pixels / 256, 128, count * 16, (float4 *)s, count, depth, w, pixels), {}, 1, compare}};
    });

// --- particle in cell: charge to the grid ---

__global__ void deposit(const float *x, const float *charge, float *grid, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int cell = (int)x[i];
    float f = x[i] - cell;
    atomicAdd(&grid[cell], charge[i] * (1.f - f));
    atomicAdd(&grid[cell + 1], charge[i] * f);
}
// Particles are sorted by cell: a block's cells lie together and are added up in shared memory first.
__global__ void __launch_bounds__(256) deposit_shared(const float *x, const float *charge, float *grid, int n) {
    constexpr int PER = 8, WINDOW = 64;
    __shared__ float window[WINDOW + 1];
    __shared__ int first;
    long begin = long(blockIdx.x) * 256 * PER;
    if (threadIdx.x == 0) first = (int)x[begin];
    for (int c = threadIdx.x; c <= WINDOW; c += 256) window[c] = 0.f;
    __syncthreads();
    for (int k = 0; k < PER; ++k) {
        long i = begin + k * 256 + threadIdx.x;
        if (i >= n) break;
        int cell = (int)x[i], at = cell - first;
        float f = x[i] - cell, q = charge[i];
        if (at >= 0 && at < WINDOW) {
            atomicAdd(&window[at], q * (1.f - f));
            atomicAdd(&window[at + 1], q * f);
        } else {
            atomicAdd(&grid[cell], q * (1.f - f));
            atomicAdd(&grid[cell + 1], q * f);
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c <= WINDOW; c += 256)
        if (window[c] != 0.f) atomicAdd(&grid[first + c], window[c]);
}
// Lanes of one cell add up by shuffles; the first of them does the atomics.
__global__ void deposit_segments(const float *x, const float *charge, float *grid, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool there = i < n;
    int cell = there ? (int)x[i] : -1;
    float f = there ? x[i] - cell : 0.f, q = there ? charge[i] : 0.f, left = q * (1.f - f), right = q * f;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_down_sync(~0u, cell, d);
        float l = __shfl_down_sync(~0u, left, d), r = __shfl_down_sync(~0u, right, d);
        if (lane + d < 32 && other == cell) left += l, right += r;
    }
    int before = __shfl_up_sync(~0u, cell, 1);
    if (there && (lane == 0 || before != cell)) {
        atomicAdd(&grid[cell], left);
        atomicAdd(&grid[cell + 1], right);
    }
}

Study deposits("deposit_atomics", "physics", 1 << 24, "charge of 16 million particles, sorted by cell, to a grid of 131072 cells",
    "two atomics in global memory a particle, neighbouring lanes on the same cell",
    {{"shared", "a block's cells added up in shared memory first", {"global_atomics"}},
        {"segments", "lanes of one cell added up by shuffles, one atomic a run", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> x(n);
        for (long i = 0; i < n; ++i) x[i] = float(i / 128) + pairs::hash(i) / 4294967296.f * 0.98f;  // rounded, it stays in its cell
        for (float &v : x) v = fminf(v, 131071.9f);
        float *at = b.copy(x), *charge = b.random<float>(n, 0, 1), *grid = b.output<float>(131072 + 1024, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(deposit, blocks(n, 256), 256, 0, at, charge, grid, n)},
            {"shared", launch(deposit_shared, n / 2048, 256, 0, at, charge, grid, n)},
            {"segments", launch(deposit_segments, blocks(n, 256), 256, 0, at, charge, grid, n)}};
    });

// --- particle in cell: field at the particles ---

__global__ void gather_field(const float *px, const float *py, const float *ex, const float *ey, const float *bz, float *out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int cx = px[i], cy = py[i];
    float fx = px[i] - cx, fy = py[i] - cy;
    float sum[3] = {};
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            int c = (cy + dy) * w + cx + dx;
            float weight = (dx ? fx : 1 - fx) * (dy ? fy : 1 - fy);
            sum[0] += weight * ex[c], sum[1] += weight * ey[c], sum[2] += weight * bz[c];
        }
    out[i] = sum[0] + 0.5f * sum[1] - 0.25f * sum[2];
}
__global__ void gather_packed(const float *px, const float *py, const float4 *field, float *out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int cx = px[i], cy = py[i];
    float fx = px[i] - cx, fy = py[i] - cy;
    float sum[3] = {};
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            float4 v = field[(cy + dy) * w + cx + dx];
            float weight = (dx ? fx : 1 - fx) * (dy ? fy : 1 - fy);
            sum[0] += weight * v.x, sum[1] += weight * v.y, sum[2] += weight * v.z;
        }
    out[i] = sum[0] + 0.5f * sum[1] - 0.25f * sum[2];
}
__global__ void gather_sorted(const int *order, const float *px, const float *py, const float *ex, const float *ey, const float *bz, float *out, int n, int w) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    int cx = px[k], cy = py[k];  // stored in the order of cells; `order` is where each belongs
    float fx = px[k] - cx, fy = py[k] - cy;
    float sum[3] = {};
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            int c = (cy + dy) * w + cx + dx;
            float weight = (dx ? fx : 1 - fx) * (dy ? fy : 1 - fy);
            sum[0] += weight * ex[c], sum[1] += weight * ey[c], sum[2] += weight * bz[c];
        }
    out[order[k]] = sum[0] + 0.5f * sum[1] - 0.25f * sum[2];
}

__global__ void pack_field(const float *ex, const float *ey, const float *bz, float4 *field, int cells) {
    for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < cells; c += gridDim.x * blockDim.x)
        field[c] = {ex[c], ey[c], bz[c], 0.f};
}

Study gathers("gather_field_scattered", "physics", 1 << 22, "field at 4 million particles in random order, 2 x 2 cells of three arrays of 4096 x 4096",
    "particles lie in no order and the field in three arrays: twelve random look-ups a particle",
    {{"packed", "the field in one array of 16 bytes a cell: four look-ups", {"cache_locality", "uncoalesced_access"}},
        {"sorted", "particles stored in the order of cells, results written to their places", {"cache_locality", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int w = 4096;
        std::vector<float> px(n), py(n), sx(n), sy(n);
        std::vector<int> order(n);
        // Sorted: particle k in cells along rows; its place in the unsorted list is a bit-mixed k.
        for (long k = 0; k < n; ++k) {
            unsigned cell = k * 4 % (4095u * 4095u);
            sx[k] = cell % 4095 + (pairs::hash(k) & 1023) / 1024.f, sy[k] = cell / 4095 + (pairs::hash(k) >> 22) / 1024.f;
            order[k] = int((k * 2654435761ul) & (n - 1));
            px[order[k]] = sx[k], py[order[k]] = sy[k];
        }
        float *x = b.copy(px), *y = b.copy(py), *xs = b.copy(sx), *ys = b.copy(sy), *field = b.allocate<float>(w * w * 4),
              *ex = b.random<float>(w * w), *ey = b.random<float>(w * w), *bz = b.random<float>(w * w),
              *out = b.output<float>(n);
        pack_field<<<1056, 256>>>(ex, ey, bz, (float4 *)field, w * w);
        int *o = b.copy(order);
        return {{"flawed", launch(gather_field, blocks(n, 256), 256, 0, x, y, ex, ey, bz, out, n, w)},
            {"packed", launch(gather_packed, blocks(n, 256), 256, 0, x, y, (float4 *)field, out, n, w)},
            {"sorted", launch(gather_sorted, blocks(n, 256), 256, 0, o, xs, ys, ex, ey, bz, out, n, w)}};
    });

// --- wave equation, eighth order in space ---

constexpr int R = 4;
__constant__ float wave_c[R + 1] = {-2.8472222f, 1.6f, -0.2f, 0.025396825f, -0.0017857143f};

__global__ void wave(const float *now, const float *before, float *next, int w, int h, float k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + R, y = blockIdx.y * blockDim.y + threadIdx.y + R;
    if (x >= w - R || y >= h - R) return;
    int i = y * w + x;
    float lap = 2 * wave_c[0] * now[i];
    for (int r = 1; r <= R; r++) lap += wave_c[r] * (now[i - r] + now[i + r] + now[i - r * w] + now[i + r * w]);
    next[i] = 2 * now[i] - before[i] + k * lap;
}
__global__ void __launch_bounds__(512) wave_tile(const float *now, const float *before, float *next, int w, int h, float k) {
    __shared__ float t[16 + 2 * R][32 + 2 * R];
    int x0 = blockIdx.x * 32, y0 = blockIdx.y * 16, tid = threadIdx.y * 32 + threadIdx.x;
    for (int i = tid; i < (16 + 2 * R) * (32 + 2 * R); i += 512) {
        int yy = y0 + i / (32 + 2 * R), xx = x0 + i % (32 + 2 * R);
        t[i / (32 + 2 * R)][i % (32 + 2 * R)] = xx < w && yy < h ? now[yy * w + xx] : 0.f;
    }
    __syncthreads();
    int x = x0 + threadIdx.x + R, y = y0 + threadIdx.y + R, tx = threadIdx.x + R, ty = threadIdx.y + R;
    if (x >= w - R || y >= h - R) return;
    float here = t[ty][tx], lap = 2 * wave_c[0] * here;
#pragma unroll
    for (int r = 1; r <= R; r++) lap += wave_c[r] * (t[ty][tx - r] + t[ty][tx + r] + t[ty - r][tx] + t[ty + r][tx]);
    next[y * w + x] = 2 * here - before[y * w + x] + k * lap;
}
// A thread goes down 32 rows with the nine values of its column in registers.
__global__ void __launch_bounds__(128) wave_column(const float *__restrict__ now, const float *__restrict__ before, float *__restrict__ next, int w, int h, float k) {
    int x = blockIdx.x * 128 + threadIdx.x + R, first = blockIdx.y * 36 + R;
    if (x >= w - R) return;
    float c[9];
#pragma unroll
    for (int j = 0; j < 8; ++j) c[j] = now[min(first - R + j, h - 1) * w + x];
    for (int base = first; base < first + 36; base += 9)
#pragma unroll
        for (int s = 0; s < 9; ++s) {  // unrolled by the window's length, so that no value moves
            int y = base + s;
            if (y >= h - R) return;
            c[(8 + s) % 9] = now[(y + R) * w + x];
            float here = c[(4 + s) % 9], lap = 2 * wave_c[0] * here;
#pragma unroll
            for (int r = 1; r <= R; ++r)
                lap += wave_c[r] * (now[y * w + x - r] + now[y * w + x + r] + c[(4 + s - r) % 9] + c[(4 + s + r) % 9]);
            next[y * w + x] = 2 * here - before[y * w + x] + k * lap;
        }
}

Study waves("wave_2d_order_8", "physics", 8192, "a step of the wave equation, eighth order, 8192 x 8192 floats",
    "17 loads from global memory for each point",
    {{"tile", "a 32 x 16 tile with its halo in shared memory", {"redundant_loads"}},
        {"column", "threads go down columns with nine values in registers", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float *now = b.random<float>(n * n), *before = b.random<float>(n * n), *next = b.output<float>(n * n, true);
        return {{"flawed", launch(wave, dim3(n / 32, n / 8), dim3(32, 8), 0, now, before, next, n, n, 0.1f)},
            {"tile", launch(wave_tile, dim3(n / 32, n / 16), dim3(32, 16), 0, now, before, next, n, n, 0.1f)},
            {"column", launch(wave_column, dim3(n / 128, blocks(n, 36)), 128, 0, now, before, next, n, n, 0.1f)}};
    });

// --- Ising model, one colour of the chess board ---

__device__ __forceinline__ float ising_random(int i, unsigned seed) { return (pairs::hash(i ^ seed) >> 8) * (1.f / 16777216); }

__global__ void ising(const signed char *from, signed char *to, int n, int colour, float beta, unsigned seed) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if ((x + y) % 2 != colour) return;
    int sum = from[y * n + (x + 1) % n] + from[y * n + (x + n - 1) % n] + from[(y + 1) % n * n + x] + from[(y + n - 1) % n * n + x];
    int s = from[y * n + x];
    if (ising_random(y * n + x, seed) < expf(-2 * beta * s * sum)) s = -s;
    to[y * n + x] = s;
}
// Threads for the sites of one colour only.
__global__ void ising_half(const signed char *from, signed char *to, int n, int colour, float beta, unsigned seed) {
    int y = blockIdx.y * blockDim.y + threadIdx.y, x = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + (y + colour) % 2;
    int right = x + 1 < n ? x + 1 : 0, left = x ? x - 1 : n - 1, below = y + 1 < n ? y + 1 : 0, above = y ? y - 1 : n - 1;
    int sum = from[y * n + right] + from[y * n + left] + from[below * n + x] + from[above * n + x];
    int s = from[y * n + x];
    if (ising_random(y * n + x, seed) < __expf(-2 * beta * s * sum)) s = -s;
    to[y * n + x] = s;
}
// Four neighbouring sites a thread as one word; the two of the colour change, and the five acceptances come from a table.
__global__ void ising_words(const unsigned *from, unsigned *to, int n, int colour, float beta, unsigned seed) {
    __shared__ float accept[9];
    if (threadIdx.y == 0 && threadIdx.x < 9) accept[threadIdx.x] = __expf(-2 * beta * (int(threadIdx.x) - 4));
    __syncthreads();
    int w = n / 4, wx = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int below = y + 1 < n ? y + 1 : 0, above = y ? y - 1 : n - 1;
    unsigned word = from[y * w + wx], up = from[above * w + wx], down = from[below * w + wx];
    unsigned left = from[y * w + (wx ? wx - 1 : w - 1)], right = from[y * w + (wx + 1 < w ? wx + 1 : 0)];
    auto site = [](unsigned v, int k) { return int(static_cast<signed char>(v >> 8 * k)); };
    unsigned result = word;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if ((k + y) % 2 != colour) continue;
        int s = site(word, k);
        int sum = site(up, k) + site(down, k) + (k ? site(word, k - 1) : site(left, 3)) + (k < 3 ? site(word, k + 1) : site(right, 0));
        if (ising_random(y * n + 4 * wx + k, seed) < accept[s * sum + 4]) s = -s;
        result = (result & ~(255u << 8 * k)) | (unsigned(s) & 255) << 8 * k;
    }
    to[y * w + wx] = result;
}

__global__ void sum_spins(const signed char *spins, int *sums, int n) {
    int sum = 0;
    for (int x = threadIdx.x; x < n; x += 32) sum += (spins[blockIdx.x * n + x] + 2) * (1 + x % 7);
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

Study spins("ising_idle_lanes", "physics", 8192, "a sweep over one colour of a chess-board Ising model, 8192 x 8192 spins of a byte",
    "half of the threads have the wrong colour and leave at once; neighbours by remainders, precise exponential, bytes",
    {{"half", "threads for one colour only, no remainders, fast exponential", {"branch_divergence", "integer_arithmetic", "expensive_math"}},
        {"words", "four spins a thread as a word, acceptances from a table", {"narrow_access", "expensive_math", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<signed char> start(n * n);
        for (long i = 0; i < n * n; ++i) start[i] = pairs::hash(i) & 1 ? 1 : -1;
        signed char *from = b.copy(start), *to = b.changed(from, n * n);
        // An acceptance within rounding of the random number may fall either way, so sums of rows are compared.
        b.outputs.back().count = 0;
        int *sums = b.output<int>(n), width = n;
        auto compare = [=] { sum_spins<<<width, 32>>>(to, sums, width); };
        b.tolerance = 1e-3;
        return {{"flawed", launch(ising, dim3(n / 32, n / 8), dim3(32, 8), 0, from, to, n, 0, 0.4f, 9u), {}, 1, compare},
            {"half", launch(ising_half, dim3(n / 64, n / 8), dim3(32, 8), 0, from, to, n, 0, 0.4f, 9u), {}, 1, compare},
            {"words", launch(ising_words, dim3(n / 128, n / 8), dim3(32, 8), 0, (unsigned *)from, (unsigned *)to, n, 0, 0.4f, 9u), {}, 1, compare}};
    });

}  // namespace
