// col2im_divisions, side flawed: let the threads of a warp take the same way: regroup the work by its branch, or make both sides one computation.
#include "../tried.cuh"

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
    const float *cols = drawn<float>(count, -1.0, 1.0, 1);
    float *image = get<float>(total);
    const Shape s{c, h, h, 3, 2, 1, o, o, total};
    judge({
        {"as_it_is", [=] { col2im<<<grid, 256>>>(cols, image, c, h, h, 3, 2, 1, o, o, total); }},
        {"plane_in_order_of_branch", [=] { col2im_plane_order<<<grid, 256>>>(cols, image, s); }},
        {"block_in_order_of_branch", [=] { col2im_block_order<<<grid, 256>>>(cols, image, s); }},
        {"patch_a_thread", [=] { col2im_patches<<<(total / 4 + 255) / 256, 256>>>(cols, image, s); }},
        {"selected", [=] { col2im_selected<<<grid, 256>>>(cols, image, s); }},
        {"beyond_own_taps", [=] { col2im_own_taps<<<grid, 256>>>(cols, image, s); }},
    }, {{image, total}});
}
