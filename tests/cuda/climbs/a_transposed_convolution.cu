// Transposed convolution, 4 by 4 with stride 2 and a margin of 1, which doubles maps of 32 by 32 (a decoder's layer).
#include "../tried/tried.cuh"

constexpr int PICTURES = 32, IN = 64, OUT = 64, SIDE = 32, BIG = 2 * SIDE;
struct Layer { const float *x, *weights, *bias; float *y; };  // x: picture, in, row, column; weights: in, out, 4, 4

__global__ void as_it_is(Layer layer, int pictures, int in, int out, int side) {
    const int big = 2 * side, index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= pictures * out * big * big) return;
    const int column = index % big, row = index / big % big, o = index / (big * big) % out, picture = index / (big * big * out);
    float sum = layer.bias[o];
    for (int i = 0; i < in; ++i)
        for (int ky = 0; ky < 4; ++ky) {
            const int above = row + 1 - ky;
            if (above < 0 || above % 2 != 0 || above / 2 >= side) continue;
            for (int kx = 0; kx < 4; ++kx) {
                const int left = column + 1 - kx;
                if (left < 0 || left % 2 != 0 || left / 2 >= side) continue;
                sum += layer.x[((picture * in + i) * side + above / 2) * side + left / 2] * layer.weights[((i * out + o) * 4 + ky) * 4 + kx];
            }
        }
    layer.y[index] = sum;
}

// First step, redundant loads: four neighbouring pixels of a row a thread, which share inputs and weights.
__global__ void four_in_registers(Layer layer, int pictures, int in, int out, int side) {
    const int big = 2 * side, index = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (index >= pictures * out * big * big) return;
    const int column = index % big, row = index / big % big, o = index / (big * big) % out, picture = index / (big * big * out);
    float sum[4];
    for (int k = 0; k < 4; ++k) sum[k] = layer.bias[o];
    for (int i = 0; i < in; ++i)
        for (int ky = 0; ky < 4; ++ky) {
            const int above = row + 1 - ky;
            if (above < 0 || above % 2 != 0 || above / 2 >= side) continue;
            const float *line = layer.x + ((picture * in + i) * side + above / 2) * side, *weights = layer.weights + ((i * out + o) * 4 + ky) * 4;
            float x[4], w[4];
            for (int k = 0; k < 4; ++k) {
                const int left = column / 2 - 1 + k;
                x[k] = left >= 0 && left < side ? line[left] : 0.f;
                w[k] = weights[k];
            }
            sum[0] += x[1] * w[1] + x[0] * w[3];
            sum[1] += x[2] * w[0] + x[1] * w[2];
            sum[2] += x[2] * w[1] + x[1] * w[3];
            sum[3] += x[3] * w[0] + x[2] * w[2];
        }
    for (int k = 0; k < 4; ++k) layer.y[index + k] = sum[k];
}

// Second step, redundant loads again: 16 neighbouring pixels a thread.
template <int EACH> __device__ __forceinline__ void row_of_pixels(Layer layer, int pictures, int in, int out, int side) {
    const int big = 2 * side, index = (blockIdx.x * blockDim.x + threadIdx.x) * EACH;
    if (index >= pictures * out * big * big) return;
    const int column = index % big, row = index / big % big, o = index / (big * big) % out, picture = index / (big * big * out);
    float sum[EACH];
    for (int k = 0; k < EACH; ++k) sum[k] = layer.bias[o];
    for (int i = 0; i < in; ++i)
        for (int ky = 0; ky < 4; ++ky) {
            const int above = row + 1 - ky;
            if (above < 0 || above % 2 != 0 || above / 2 >= side) continue;
            const float *line = layer.x + ((picture * in + i) * side + above / 2) * side, *weights = layer.weights + ((i * out + o) * 4 + ky) * 4;
            float x[EACH / 2 + 2], w[4];
            for (int k = 0; k < 4; ++k) w[k] = weights[k];
            for (int k = 0; k < EACH / 2 + 2; ++k) {
                const int left = column / 2 - 1 + k;
                x[k] = left >= 0 && left < side ? line[left] : 0.f;
            }
            for (int k = 0; k < EACH / 2; ++k) {
                sum[2 * k] += x[k + 1] * w[1] + x[k] * w[3];
                sum[2 * k + 1] += x[k + 2] * w[0] + x[k + 1] * w[2];
            }
        }
    for (int k = 0; k < EACH; ++k) layer.y[index + k] = sum[k];
}
__global__ void sixteen_in_registers(Layer layer, int pictures, int in, int out, int side) { row_of_pixels<16>(layer, pictures, in, out, side); }

// Third step, branch divergence: both parities of rows go through the same two rows of weights.
__global__ void four_one_way(Layer layer, int pictures, int in, int out, int side) {
    const int big = 2 * side, index = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (index >= pictures * out * big * big) return;
    const int column = index % big, row = index / big % big, o = index / (big * big) % out, picture = index / (big * big * out);
    float sum[4];
    for (int k = 0; k < 4; ++k) sum[k] = layer.bias[o];
    for (int i = 0; i < in; ++i)
        for (int half = 0; half < 2; ++half) {
            const int ky = (row + 1) % 2 + 2 * half, above = (row + 1 - ky) / 2;
            const bool inside = row + 1 >= ky && above < side;
            const float *line = layer.x + ((picture * in + i) * side + above) * side, *weights = layer.weights + ((i * out + o) * 4 + ky) * 4;
            float x[4], w[4];
            for (int k = 0; k < 4; ++k) {
                const int left = column / 2 - 1 + k;
                x[k] = inside && left >= 0 && left < side ? line[left] : 0.f;
                w[k] = weights[k];
            }
            sum[0] += x[1] * w[1] + x[0] * w[3];
            sum[1] += x[2] * w[0] + x[1] * w[2];
            sum[2] += x[2] * w[1] + x[1] * w[3];
            sum[3] += x[3] * w[0] + x[2] * w[2];
        }
    for (int k = 0; k < 4; ++k) layer.y[index + k] = sum[k];
}

// A thread makes two by four pixels of eight maps: all four parities at two places, out of four rows of three inputs.
constexpr int MAPS = 8, ROWS = 16, PIECE = 8;
__global__ void __launch_bounds__(256, 2) expert(Layer layer) {
    __shared__ float held[PIECE][ROWS + 2][SIDE + 2];
    __shared__ float4 weights[PIECE][MAPS][4];
    const int x = threadIdx.x, y = threadIdx.y, thread = y * 32 + x;
    const int o = blockIdx.x * MAPS, top = blockIdx.y * ROWS, picture = blockIdx.z;
    float sum[MAPS][2][2][2];
    for (int m = 0; m < MAPS; ++m)
        for (int k = 0; k < 8; ++k) sum[m][k / 4][k / 2 % 2][k % 2] = layer.bias[o + m];
    for (int i = 0; i < IN; i += PIECE) {
        __syncthreads();
        for (int k = y; k < PIECE * (ROWS + 2); k += 8) {
            const int in = k / (ROWS + 2), row = k % (ROWS + 2), from = top + row - 1;
            const float *line = layer.x + ((picture * IN + i + in) * SIDE + from) * SIDE;
            const bool inside = from >= 0 && from < SIDE;
            held[in][row][x + 1] = inside ? line[x] : 0.f;
            if (x < 2) held[in][row][x * (SIDE + 1)] = 0.f;
        }
        (&weights[0][0][0])[thread] = reinterpret_cast<const float4 *>(layer.weights)[((i + thread / 32) * OUT + o) * 4 + thread % 32];
        __syncthreads();
        for (int in = 0; in < PIECE; ++in) {
            float v[4][3];
            for (int r = 0; r < 4; ++r)
                for (int c = 0; c < 3; ++c) v[r][c] = held[in][2 * y + r][x + c];
#pragma unroll
            for (int m = 0; m < MAPS; ++m) {
                const float4 w0 = weights[in][m][0], w1 = weights[in][m][1], w2 = weights[in][m][2], w3 = weights[in][m][3];
                for (int p = 0; p < 2; ++p) {
                    sum[m][p][0][0] += v[p + 1][1] * w1.y + v[p + 1][0] * w1.w + v[p][1] * w3.y + v[p][0] * w3.w;
                    sum[m][p][0][1] += v[p + 1][2] * w1.x + v[p + 1][1] * w1.z + v[p][2] * w3.x + v[p][1] * w3.z;
                    sum[m][p][1][0] += v[p + 2][1] * w0.y + v[p + 2][0] * w0.w + v[p + 1][1] * w2.y + v[p + 1][0] * w2.w;
                    sum[m][p][1][1] += v[p + 2][2] * w0.x + v[p + 2][1] * w0.z + v[p + 1][2] * w2.x + v[p + 1][1] * w2.z;
                }
            }
        }
    }
    for (int m = 0; m < MAPS; ++m)
        for (int r = 0; r < 4; ++r) {
            const int row = 2 * (top + 2 * y) + r;
            auto to = reinterpret_cast<float2 *>(layer.y + ((picture * OUT + o + m) * BIG + row) * BIG);
            to[x] = make_float2(sum[m][r / 2][r % 2][0], sum[m][r / 2][r % 2][1]);
        }
}

int main() {
    const size_t count = size_t(PICTURES) * OUT * BIG * BIG;
    float *out = get<float>(count);
    const Layer layer{drawn<float>(PICTURES * IN * SIDE * SIDE, -1, 1, 1), drawn<float>(IN * OUT * 16, -0.1, 0.1, 2), drawn<float>(OUT, -1, 1, 3), out};
    judge({
        {"as_it_is", [=] { as_it_is<<<count / 256, 256>>>(layer, PICTURES, IN, OUT, SIDE); }},
        {"four_in_registers", [=] { four_in_registers<<<count / 4 / 256, 256>>>(layer, PICTURES, IN, OUT, SIDE); }},
        {"sixteen_in_registers", [=] { sixteen_in_registers<<<count / 16 / 256, 256>>>(layer, PICTURES, IN, OUT, SIDE); }},
        {"four_one_way", [=] { four_one_way<<<count / 4 / 256, 256>>>(layer, PICTURES, IN, OUT, SIDE); }},
        {"expert", [=] { expert<<<dim3(OUT / MAPS, SIDE / ROWS, PICTURES), dim3(32, 8)>>>(layer); }},
    }, {{out, count}});
}
