// Kernels with nothing much left to gain: near the memory's rate, or that of the arithmetic they need.
#include "../pairs/pair.cuh"

namespace {


__global__ void axpy(const float4 *__restrict__ x, float4 *__restrict__ y, float a, int n4) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        float4 u = x[i], v = y[i];
        y[i] = {a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w};
    }
}
Study axpys("sound_axpy", "hpc", 1 << 26, "y += a x with 16-byte accesses", "", {}, [](Buffers &b, long n) -> Sides {
    float *x = b.random<float>(n), *y = b.changed(b.random<float>(n), n);
    return {{"sound", launch(axpy, 132 * 16, 512, 0, (float4 *)x, (float4 *)y, 2.f, n / 4)}};
});

__global__ void __launch_bounds__(512) sum_all(const float4 *__restrict__ x, float *sum, int n4) {
    __shared__ float parts[16];
    float s = 0.f;
    int stride = gridDim.x * 512, i = blockIdx.x * 512 + threadIdx.x;
    for (; i + 3 * stride < n4; i += 4 * stride) {
        float4 a = x[i], b = x[i + stride], c = x[i + 2 * stride], d = x[i + 3 * stride];
        s += (a.x + a.y + a.z + a.w) + (b.x + b.y + b.z + b.w) + (c.x + c.y + c.z + c.w) + (d.x + d.y + d.z + d.w);
    }
    for (; i < n4; i += stride) s += x[i].x + x[i].y + x[i].z + x[i].w;
    s = warp_sum(s);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        s = warp_sum(threadIdx.x < 16 ? parts[threadIdx.x] : 0.f);
        if (threadIdx.x == 0) atomicAdd(sum, s);
    }
}
Study sums("sound_sum", "hpc", 1 << 27, "sum of all values, four 16-byte loads in flight a thread", "", {},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n, 0, 1), *sum = b.output<float>(1, true);
        return {{"sound", launch(sum_all, 132 * 4, 512, 0, (float4 *)x, sum, n / 4)}};
    });

__global__ void __launch_bounds__(256) transpose_tile(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int k = 0; k < 32; k += 8) out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}
Study transposes("sound_transpose", "hpc", 8192, "transpose by padded tiles of 32 x 32", "", {}, [](Buffers &b, long n) -> Sides {
    float *in = b.random<float>(n * n), *out = b.output<float>(n * n);
    return {{"sound", launch(transpose_tile, dim3(n / 32, n / 32), dim3(32, 8), 0, in, out, n)}};
});

__global__ void __launch_bounds__(256) softmax_sound(const float4 *__restrict__ in, float4 *__restrict__ out, int rows) {
    int row = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float4 v[4];
    float top = -INFINITY, sum = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = in[row * 128 + lane + 32 * k], top = fmaxf(fmaxf(fmaxf(top, v[k].x), fmaxf(v[k].y, v[k].z)), v[k].w);
    top = warp_max(top);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        v[k] = {__expf(v[k].x - top), __expf(v[k].y - top), __expf(v[k].z - top), __expf(v[k].w - top)};
        sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
    float scale = __fdividef(1.f, warp_sum(sum));
#pragma unroll
    for (int k = 0; k < 4; ++k) out[row * 128 + lane + 32 * k] = {v[k].x * scale, v[k].y * scale, v[k].z * scale, v[k].w * scale};
}
Study softmaxes("sound_softmax", "models", 131072, "softmax of rows of 512, a warp a row in registers", "", {}, [](Buffers &b, long rows) -> Sides {
    float *in = b.random<float>(rows * 512), *out = b.output<float>(rows * 512);
    return {{"sound", launch(softmax_sound, rows / 8, 256, 0, (float4 *)in, (float4 *)out, rows)}};
});

// Four bodies a thread: a source loaded from shared memory serves four sums.
__global__ void __launch_bounds__(128) nbody_sound(const float4 *__restrict__ pos, float4 *__restrict__ acc, int sources) {
    __shared__ float4 tile[128];
    float4 me[4], a[4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) me[k] = pos[blockIdx.x * 512 + threadIdx.x + 128 * k];
    for (int first = 0; first < sources; first += 128) {
        tile[threadIdx.x] = pos[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 128; ++j) {
            float4 o = tile[j];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float dx = o.x - me[k].x, dy = o.y - me[k].y, dz = o.z - me[k].z;
                float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), f = o.w * r * r * r;
                a[k].x += f * dx, a[k].y += f * dy, a[k].z += f * dz;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) acc[blockIdx.x * 512 + threadIdx.x + 128 * k] = a[k];
}
Study bodies("sound_nbody", "hpc", 512 * 132 * 4, "forces of 4096 bodies, four bodies a thread, sources in shared memory", "", {},
    [](Buffers &b, long n) -> Sides {
        float *pos = b.random<float>(n * 4, 0, 1), *acc = b.output<float>(n * 4);
        return {{"sound", launch(nbody_sound, n / 512, 128, 0, (float4 *)pos, (float4 *)acc, 4096)}};
    });

__global__ void black_scholes(const float4 *__restrict__ price, const float4 *__restrict__ strike, const float4 *__restrict__ years,
    float4 *__restrict__ call, float rate, float vol, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    auto one = [&](float s, float k, float t) {
        float root = vol * sqrtf(t), d1 = __fdividef(__logf(__fdividef(s, k)) + (rate + 0.5f * vol * vol) * t, root), d2 = d1 - root;
        return s * normcdff(d1) - k * __expf(-rate * t) * normcdff(d2);
    };
    float4 s = price[i], k = strike[i], t = years[i];
    call[i] = {one(s.x, k.x, t.x), one(s.y, k.y, t.y), one(s.z, k.z, t.z), one(s.w, k.w, t.w)};
}
Study options("sound_black_scholes", "hpc", 1 << 25, "Black-Scholes prices, four options a thread, fast functions", "", {}, [](Buffers &b, long n) -> Sides {
    float *s = b.random<float>(n, 5, 30), *k = b.random<float>(n, 1, 100), *t = b.random<float>(n, 0.25, 10), *c = b.output<float>(n);
    return {{"sound", launch(black_scholes, blocks(n / 4, 256), 256, 0, (float4 *)s, (float4 *)k, (float4 *)t, (float4 *)c, 0.02f, 0.3f, n / 4)}};
});

__global__ void __launch_bounds__(256) histogram_sound(const uint4 *image, unsigned *bins, int n16) {
    __shared__ unsigned local[8][257];
    for (int w = 0; w < 8; ++w) local[w][threadIdx.x] = 0;
    __syncthreads();
    unsigned *mine = local[threadIdx.x % 8];
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n16; i += gridDim.x * 256) {
        uint4 v = image[i];
        unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < 16; ++k) atomicAdd(&mine[words[k / 4] >> (k % 4 * 8) & 255], 1u);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int w = 0; w < 8; ++w) sum += local[w][threadIdx.x];
    atomicAdd(&bins[threadIdx.x], sum);
}
Study histograms("sound_histogram", "images", 1 << 28, "256-bin histogram of even bytes, eight copies in shared memory, 16 bytes a load", "", {},
    [](Buffers &b, long n) -> Sides {
        auto *image = b.random<unsigned char>(n, 0, 256);
        unsigned *bins = b.output<unsigned>(256, true);
        return {{"sound", launch(histogram_sound, 132 * 8, 256, 0, (uint4 *)image, bins, n / 16)}};
    });

__global__ void gather(const int4 *__restrict__ index, const float *__restrict__ table, float4 *__restrict__ out, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    int4 k = index[i];
    out[i] = {table[k.x], table[k.y], table[k.z], table[k.w]};
}
Study gathers("sound_random_gather", "databases", 1 << 24, "values at random places of a table of 1 GiB: the look-ups are the task", "", {},
    [](Buffers &b, long n) -> Sides {
        long entries = 1 << 28;
        int *index = b.random<int>(n, 0, entries);
        float *table = b.random<float>(entries), *out = b.output<float>(n);
        return {{"sound", launch(gather, blocks(n / 4, 256), 256, 0, (int4 *)index, table, (float4 *)out, n / 4)}};
    });

__global__ void __launch_bounds__(128) stencil_sound(const float *__restrict__ u, float *__restrict__ v, int n, int depth, float c) {
    int x = (blockIdx.x * 32 + threadIdx.x) * 4, y = blockIdx.y * 4 + threadIdx.y + 1;
    if (y >= n - 1) return;
    int first = 1 + blockIdx.z * depth, last = min(n - 1, first + depth);
    auto at = [&](int z, int yy) { return *reinterpret_cast<const float4 *>(u + (size_t(z) * n + yy) * n + x); };
    float4 below = at(first - 1, y), here = at(first, y);
    for (int z = first; z < last; ++z) {
        float4 above = at(z + 1, y), north = at(z, y - 1), south = at(z, y + 1);
        const float *row = u + (size_t(z) * n + y) * n;
        float left = x ? row[x - 1] : 0.f, right = x + 4 < n ? row[x + 4] : 0.f;
        float4 r = {here.x + c * (below.x + above.x + north.x + south.x + left + here.y - 6 * here.x),
            here.y + c * (below.y + above.y + north.y + south.y + here.x + here.z - 6 * here.y),
            here.z + c * (below.z + above.z + north.z + south.z + here.y + here.w - 6 * here.z),
            here.w + c * (below.w + above.w + north.w + south.w + here.z + right - 6 * here.w)};
        *reinterpret_cast<float4 *>(v + (size_t(z) * n + y) * n + x) = r;
        below = here, here = above;
    }
}
Study stencils("sound_stencil_7_point", "hpc", 512, "7-point stencil, four cells a thread, planes in registers", "", {}, [](Buffers &b, long n) -> Sides {
    float *u = b.random<float>(n * n * n), *v = b.output<float>(n * n * n, true);
    return {{"sound", launch(stencil_sound, dim3(n / 128, n / 4, 8), dim3(32, 4), 0, u, v, n, n / 8, 0.1f)}};
});

__global__ void mix_hash(const uint4 *__restrict__ in, uint4 *__restrict__ out, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    uint4 v = in[i];
    unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll 8
    for (int round = 0; round < 64; ++round)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            w[k] ^= w[k] >> 16, w[k] *= 0x7feb352du + round, w[k] ^= w[k] >> 15;
        }
    out[i] = {w[0], w[1], w[2], w[3]};
}
Study hashes("sound_iterated_hash", "crypto", 1 << 26, "64 rounds of an integer hash, four independent chains a thread", "", {}, [](Buffers &b, long n) -> Sides {
    unsigned *in = b.random<unsigned>(n, 0, 4294967295.0), *out = b.output<unsigned>(n);
    return {{"sound", launch(mix_hash, blocks(n / 4, 256), 256, 0, (uint4 *)in, (uint4 *)out, n / 4)}};
});

__global__ void __launch_bounds__(256) spmv_sound(const int *__restrict__ ptr, const int *__restrict__ col, const float *__restrict__ val,
    const float *__restrict__ x, float *__restrict__ y, int rows) {
    int row = (blockIdx.x * 256 + threadIdx.x) / 16, lane = threadIdx.x % 16;
    if (row >= rows) return;
    int end = ptr[row + 1];
    float sum = 0.f;
    for (int j = ptr[row] + lane; j < end; j += 64) {
        bool b1 = j + 16 < end, b2 = j + 32 < end, b3 = j + 48 < end;
        int c0 = col[j], c1 = b1 ? col[j + 16] : 0, c2 = b2 ? col[j + 32] : 0, c3 = b3 ? col[j + 48] : 0;
        float v0 = val[j], v1 = b1 ? val[j + 16] : 0.f, v2 = b2 ? val[j + 32] : 0.f, v3 = b3 ? val[j + 48] : 0.f;
        sum += v0 * x[c0] + v1 * x[c1] + v2 * x[c2] + v3 * x[c3];
    }
#pragma unroll
    for (int d = 8; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
}
Study spmvs("sound_spmv", "hpc", 1 << 19, "sparse product, 64 entries a row, 16 lanes a row with four loads in flight", "", {}, [](Buffers &b, long rows) -> Sides {
    std::vector<int> offsets(rows + 1), columns(rows * 64);
    for (long r = 0; r < rows; ++r) {
        offsets[r + 1] = (r + 1) * 64;
        for (int k = 0; k < 64; ++k) columns[r * 64 + k] = (r + k * 8 + pairs::hash(r * 64 + k) % 8) % rows;
    }
    int *p = b.copy(offsets), *c = b.copy(columns), n = rows;
    float *val = b.random<float>(rows * 64), *x = b.random<float>(rows), *y = b.output<float>(rows);
    return {{"sound", launch(spmv_sound, rows / 16, 256, 0, p, c, val, x, y, n)}};
});

}  // namespace
