// calmest_of_four_squares_from_memory, side box_sums: a thread computes four neighbouring results along x.
#include "../tried.cuh"

constexpr int REACH = 4, EDGE = REACH + 1;
struct Calmest {
    float variance = 1e30f, mean = 0.f;
    __device__ __forceinline__ void offer(float sum, float squares) {
        constexpr float share = 1.f / (EDGE * EDGE);
        const float m = sum * share, v = squares * share - m * m;
        if (v < variance) variance = v, mean = m;
    }
};
// A block has 8 rows of 32 x PER pixels, a thread PER of them. FOUR: a thread adds up four neighbouring runs of five at once.
template <int PER, bool FOUR>
__global__ void __launch_bounds__(256) calmest_square_sums(const float *__restrict__ picture, float *__restrict__ out, int width, int height, int pitch) {
    constexpr int ROWS = 8 + 2 * REACH, ACROSS = 32 * PER + REACH;
    __shared__ float2 in_row[ROWS][ACROSS], boxes[8 + REACH][ACROSS];
    const int x0 = blockIdx.x * 32 * PER, y0 = blockIdx.y * 8, y = y0 + threadIdx.y, thread = threadIdx.y * 32 + threadIdx.x;
    if (FOUR) {
        for (int k = thread; k < ROWS * ACROSS / 4; k += 256) {
            const int i = k / (ACROSS / 4), j = k % (ACROSS / 4) * 4;
            float value[4 + REACH];
            const float *at = picture + (y0 + i) * pitch + x0 + j;
#pragma unroll
            for (int d = 0; d < 4 + REACH; ++d) value[d] = y0 + i < height + 2 * REACH && x0 + j + d < pitch ? at[d] : 0.f;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                float2 sum = make_float2(0.f, 0.f);
#pragma unroll
                for (int d = 0; d < EDGE; ++d) sum.x += value[r + d], sum.y += value[r + d] * value[r + d];
                in_row[i][j + r] = sum;
            }
        }
    } else {
        for (int k = thread; k < ROWS * ACROSS; k += 256) {
            const int i = k / ACROSS, j = k % ACROSS;
            float2 sum = make_float2(0.f, 0.f);
            if (y0 + i < height + 2 * REACH && x0 + j + REACH < width + 2 * REACH) {
                const float *at = picture + (y0 + i) * pitch + x0 + j;
#pragma unroll
                for (int d = 0; d < EDGE; ++d) sum.x += at[d], sum.y += at[d] * at[d];
            }
            in_row[i][j] = sum;
        }
    }
    __syncthreads();
    for (int k = thread; k < (8 + REACH) * ACROSS; k += 256) {
        const int i = k / ACROSS, j = k % ACROSS;
        float2 sum = in_row[i][j];
#pragma unroll
        for (int d = 1; d < EDGE; ++d) sum.x += in_row[i + d][j].x, sum.y += in_row[i + d][j].y;
        boxes[i][j] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PER; ++p) {
        const int x = x0 + threadIdx.x + 32 * p;
        if (x >= width || y >= height) return;
        Calmest calmest;
#pragma unroll
        for (int corner = 0; corner < 4; ++corner) {
            const float2 box = boxes[threadIdx.y + (corner >> 1) * REACH][threadIdx.x + 32 * p + (corner & 1) * REACH];
            calmest.offer(box.x, box.y);
        }
        out[y * width + x] = calmest.mean;
    }
}

int main() {
    const int height = 2400, width = 3600, pitch = width + 2 * REACH;
    std::vector<float> picture(size_t(height + 2 * REACH) * pitch);
    for (int y = 0; y < height + 2 * REACH; ++y)
        for (int x = 0; x < pitch; ++x) picture[size_t(y) * pitch + x] = ((x / 37 + y / 29) % 3) * 0.3f + 0.2f * (hashed(y * pitch + x) >> 8) / 16777216.f;
    const float *in = copied(picture);
    const size_t pixels = size_t(width) * height;
    float *out = get<float>(pixels);
    const dim3 block(32, 8), one((width + 31) / 32, height / 8), four((width + 127) / 128, height / 8);
    judge({{"as_it_is", [=] { calmest_square_sums<1, false><<<one, block>>>(in, out, width, height, pitch); }},
        {"four_runs_a_thread", [=] { calmest_square_sums<1, true><<<one, block>>>(in, out, width, height, pitch); }},
        {"four_runs_and_pixels_a_thread", [=] { calmest_square_sums<4, true><<<four, block>>>(in, out, width, height, pitch); }}}, {{out, pixels}});
}
