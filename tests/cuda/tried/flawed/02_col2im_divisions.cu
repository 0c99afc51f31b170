#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
__host__ __device__ __forceinline__ unsigned hashed(unsigned x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ (x >> 16); }
__global__ void fill(float *data, size_t count, float low, float high, unsigned seed) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) data[i] = low + (high - low) * (hashed((unsigned)i + hashed(seed)) >> 8) * 0x1p-24f;
}
// The largest difference and the largest value, as bits: NaN is larger than all.
__global__ void compare(const float *a, const float *b, size_t count, unsigned *result) {
    unsigned most = 0, largest = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        most = max(most, __float_as_uint(fabsf(a[i] - b[i]))), largest = max(largest, __float_as_uint(fabsf(a[i])));
    atomicMax(result, most), atomicMax(result + 1, largest);
}
void check(cudaError_t e) { if (e != cudaSuccess) { fprintf(stderr, "ERROR %s\n", cudaGetErrorString(e)); exit(1); } }
template <class T> T *get(size_t count) { T *p; check(cudaMalloc(&p, count * sizeof(T))); return p; }
struct Form { const char *name; std::function<void(float *)> run; float diff; };
// Runs all forms, the first of which is the original; out: count values, poisoned with `poison` before each run to compare.
void judge(int index, std::vector<Form> forms, size_t count, int poison) {
    float *truth = get<float>(count), *out = get<float>(count);
    unsigned *result = get<unsigned>(2), bits[2];
    void *flush = get<char>(128 << 20);
    cudaEvent_t a, b; check(cudaEventCreate(&a)), check(cudaEventCreate(&b));
    check(cudaMemset(truth, poison, count * 4)), forms[0].run(truth);
    for (Form &f : forms) {
        check(cudaMemset(out, poison, count * 4)), check(cudaMemset(result, 0, 8));
        f.run(out);
        check(cudaGetLastError());
        compare<<<1056, 256>>>(truth, out, count, result);
        check(cudaMemcpy(bits, result, 8, cudaMemcpyDeviceToHost));
        float v[2]; memcpy(v, bits, 8); f.diff = v[0] / v[1];
    }
    for (int turn = 0; turn < 2; ++turn)
        for (Form &f : forms) {
            std::vector<float> t;
            for (int i = 0; i < 60; ++i) {
                check(cudaMemsetAsync(flush, 0, 128 << 20));
                check(cudaEventRecord(a)); f.run(out); check(cudaEventRecord(b)); check(cudaEventSynchronize(b));
                float ms; check(cudaEventElapsedTime(&ms, a, b)); if (i > 9) t.push_back(ms * 1e3f);
            }
            check(cudaGetLastError());
            std::sort(t.begin(), t.end());
            printf("STMT %d %s %.2f %.3g\n", index, f.name, t[t.size() / 2], f.diff);
        }
}

// As in the study.
__global__ void col2im(const float *cols, float *image, int channels, int height, int width, int kernel, int stride, int pad, int out_h, int out_w, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int w = i % width, h = i / width % height, c = i / (width * height) % channels, n = i / (width * height * channels);
    float sum = 0.f;
    for (int kh = 0; kh < kernel; kh++)
        for (int kw = 0; kw < kernel; kw++) {
            int y = h + pad - kh, x = w + pad - kw;
            if (y >= 0 && x >= 0 && y % stride == 0 && x % stride == 0 && y / stride < out_h && x / stride < out_w)
                sum += cols[(((n * channels + c) * kernel + kh) * kernel + kw) * out_h * out_w + y / stride * out_w + x / stride];
        }
    image[i] = sum;
}

struct Shape { int channels, height, width, kernel, stride, pad, out_h, out_w, total; };
// The loop of the study.
__device__ __forceinline__ float taps(const float *cols, const Shape &s, int n, int c, int h, int w) {
    float sum = 0.f;
    for (int kh = 0; kh < s.kernel; kh++)
        for (int kw = 0; kw < s.kernel; kw++) {
            int y = h + s.pad - kh, x = w + s.pad - kw;
            if (y >= 0 && x >= 0 && y % s.stride == 0 && x % s.stride == 0 && y / s.stride < s.out_h && x / s.stride < s.out_w)
                sum += cols[(((n * s.channels + c) * s.kernel + kh) * s.kernel + kw) * s.out_h * s.out_w + y / s.stride * s.out_w + x / s.stride];
        }
    return sum;
}
// The pixels of a block in the order of their columns' remainders: first those of column 0, stride, 2 stride, ... of the block, then of 1, 1 + stride, ...
__global__ void col2im_block_order(const float *cols, float *image, const Shape s) {
    int each = blockDim.x / s.stride, t = threadIdx.x;
    if (t < each * s.stride) t = t % each * s.stride + t / each;
    int i = blockIdx.x * blockDim.x + t;
    if (i >= s.total) return;
    int w = i % s.width, h = i / s.width % s.height, c = i / (s.width * s.height) % s.channels, n = i / (s.width * s.height * s.channels);
    image[i] = taps(cols, s, n, c, h, w);
}
// The pixels of a plane in the order of their remainders of row and column. Height and width are multiples of the stride.
__global__ void col2im_plane_order(const float *cols, float *image, const Shape s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.total) return;
    int plane = s.width * s.height, p = i % plane, c = i / plane % s.channels, n = i / (plane * s.channels);
    int across = s.width / s.stride, of_a_kind = plane / (s.stride * s.stride), kind = p / of_a_kind, q = p % of_a_kind;
    int w = q % across * s.stride + kind % s.stride, h = q / across * s.stride + kind / s.stride;
    image[i - p + h * s.width + w] = taps(cols, s, n, c, h, w);
}
// A thread takes stride x stride pixels one after the other: all threads are at the same remainders. Height and width are multiples of the stride.
__global__ void col2im_patches(const float *cols, float *image, const Shape s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, across = s.width / s.stride, down = s.height / s.stride;
    if (i >= s.total / (s.stride * s.stride)) return;
    int w = i % across * s.stride, h = i / across % down * s.stride, nc = i / (across * down), c = nc % s.channels, n = nc / s.channels;
    for (int dh = 0; dh < s.stride; dh++)
        for (int dw = 0; dw < s.stride; dw++) image[(nc * s.height + h + dh) * s.width + w + dw] = taps(cols, s, n, c, h + dh, w + dw);
}
// One computation: every tap reads (the first value where it has none) and selects.
__global__ void col2im_selected(const float *cols, float *image, const Shape s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.total) return;
    int w = i % s.width, h = i / s.width % s.height, c = i / (s.width * s.height) % s.channels, n = i / (s.width * s.height * s.channels);
    float sum = 0.f;
    for (int kh = 0; kh < s.kernel; kh++)
        for (int kw = 0; kw < s.kernel; kw++) {
            int y = h + s.pad - kh, x = w + s.pad - kw, row = y / s.stride, column = x / s.stride;
            bool hit = (y >= 0) & (x >= 0) & (row * s.stride == y) & (column * s.stride == x) & (row < s.out_h) & (column < s.out_w);
            int at = (((n * s.channels + c) * s.kernel + kh) * s.kernel + kw) * s.out_h * s.out_w + row * s.out_w + column;
            float value = cols[hit ? at : 0];
            sum += hit ? value : 0.f;
        }
    image[i] = sum;
}
// One computation: the loops go over the taps of the pixel's remainders only, so nothing is asked but the bounds. Goes beyond: most divisions are gone, too.
__global__ void col2im_own_taps(const float *cols, float *image, const Shape s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.total) return;
    int w = i % s.width, h = i / s.width % s.height, c = i / (s.width * s.height) % s.channels, n = i / (s.width * s.height * s.channels);
    float sum = 0.f;
    for (int kh = (h + s.pad) % s.stride; kh < s.kernel; kh += s.stride)
        for (int kw = (w + s.pad) % s.stride; kw < s.kernel; kw += s.stride) {
            int y = h + s.pad - kh, x = w + s.pad - kw;
            if (y >= 0 && x >= 0 && y / s.stride < s.out_h && x / s.stride < s.out_w)
                sum += cols[(((n * s.channels + c) * s.kernel + kh) * s.kernel + kw) * s.out_h * s.out_w + y / s.stride * s.out_w + x / s.stride];
        }
    image[i] = sum;
}

int main() {
    const int batch = 8, c = 64, h = 112, o = 56, total = batch * c * h * h, grid = (total + 255) / 256;
    const size_t count = static_cast<size_t>(batch) * c * 9 * o * o;
    float *cols = get<float>(count);
    fill<<<1056, 256>>>(cols, count, -1.f, 1.f, 1);
    const Shape s{c, h, h, 3, 2, 1, o, o, total};
    judge(2, {
        {"as_it_is", [=](float *out) { col2im<<<grid, 256>>>(cols, out, c, h, h, 3, 2, 1, o, o, total); }},
        {"plane_in_order_of_branch", [=](float *out) { col2im_plane_order<<<grid, 256>>>(cols, out, s); }},
        {"block_in_order_of_branch", [=](float *out) { col2im_block_order<<<grid, 256>>>(cols, out, s); }},
        {"patch_a_thread", [=](float *out) { col2im_patches<<<(total / 4 + 255) / 256, 256>>>(cols, out, s); }},
        {"selected", [=](float *out) { col2im_selected<<<grid, 256>>>(cols, out, s); }},
        {"beyond_own_taps", [=](float *out) { col2im_own_taps<<<grid, 256>>>(cols, out, s); }},
    }, total, 0xff);
}
