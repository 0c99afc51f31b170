// A template of 32 by 32 is sought in a picture: the sum of squared differences at each place.
#include "../tried/tried.cuh"

constexpr int SIDE = 1024, PART = 32, PLACES = SIDE - PART + 1;
struct Search { const float *picture, *part; float *score; int side, size; };

__global__ void as_it_is(Search search) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, places = search.side - search.size + 1;
    if (x >= places || y >= places) return;
    float sum = 0.f;
    for (int row = 0; row < search.size; ++row)
        for (int column = 0; column < search.size; ++column) {
            const float off = search.picture[(y + row) * search.side + x + column] - search.part[row * search.size + column];
            sum += off * off;
        }
    search.score[y * places + x] = sum;
}

// First step, redundant loads: four neighbouring places a thread, or a tile in shared memory.
__global__ void four_in_registers(Search search) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, y = blockIdx.y * blockDim.y + threadIdx.y, places = search.side - search.size + 1;
    if (x >= places || y >= places) return;
    float sum[4] = {};
    for (int row = 0; row < search.size; ++row) {
        const float *line = search.picture + (y + row) * search.side;
        float seen[4];
        for (int k = 0; k < 3; ++k) seen[k + 1] = line[x + k];
        for (int column = 0; column < search.size; ++column) {
            for (int k = 0; k < 3; ++k) seen[k] = seen[k + 1];
            seen[3] = line[min(x + column + 3, search.side - 1)];
            const float wanted = search.part[row * search.size + column];
            for (int k = 0; k < 4; ++k) {
                const float off = seen[k] - wanted;
                sum[k] += off * off;
            }
        }
    }
    for (int k = 0; k < 4; ++k)
        if (x + k < places) search.score[y * places + x + k] = sum[k];
}
__global__ void tile_in_shared(Search search) {
    __shared__ float tile[15 + PART][16 + PART], part[PART][PART];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, places = search.side - search.size + 1;
    for (int row = threadIdx.y; row < 15 + PART; row += 16)
        for (int column = threadIdx.x; column < 15 + PART; column += 16)
            tile[row][column] = search.picture[min(int(blockIdx.y) * 16 + row, search.side - 1) * search.side + min(int(blockIdx.x) * 16 + column, search.side - 1)];
    for (int row = threadIdx.y; row < PART; row += 16)
        for (int column = threadIdx.x; column < PART; column += 16) part[row][column] = search.part[row * search.size + column];
    __syncthreads();
    if (x >= places || y >= places) return;
    float sum = 0.f;
    for (int row = 0; row < PART; ++row)
        for (int column = 0; column < PART; ++column) {
            const float off = tile[threadIdx.y + row][threadIdx.x + column] - part[row][column];
            sum += off * off;
        }
    search.score[y * places + x] = sum;
}

// Second step, shared-memory bandwidth: four places a thread out of the tile, beside or below each other.
__global__ void tile_four_beside(Search search) {
    __shared__ float tile[15 + PART][64 + PART], part[PART][PART];
    const int left = blockIdx.x * 64, top = blockIdx.y * 16, x = left + threadIdx.x * 4, y = top + threadIdx.y, places = search.side - search.size + 1;
    for (int row = threadIdx.y; row < 15 + PART; row += 16)
        for (int column = threadIdx.x; column < 64 + PART; column += 16)
            tile[row][column] = search.picture[min(top + row, search.side - 1) * search.side + min(left + column, search.side - 1)];
    for (int row = threadIdx.y; row < PART; row += 16)
        for (int column = threadIdx.x; column < PART; column += 16) part[row][column] = search.part[row * search.size + column];
    __syncthreads();
    float sum[4] = {};
    for (int row = 0; row < PART; ++row) {
        const float *line = tile[threadIdx.y + row] + threadIdx.x * 4;
        float seen[4];
        for (int k = 0; k < 3; ++k) seen[k + 1] = line[k];
#pragma unroll
        for (int column = 0; column < PART; ++column) {
            for (int k = 0; k < 3; ++k) seen[k] = seen[k + 1];
            seen[3] = line[column + 3];
            const float wanted = part[row][column];
            for (int k = 0; k < 4; ++k) {
                const float off = seen[k] - wanted;
                sum[k] += off * off;
            }
        }
    }
    for (int k = 0; k < 4; ++k)
        if (x + k < places && y < places) search.score[y * places + x + k] = sum[k];
}
template <int PITCH_OF> __device__ __forceinline__ void four_below(Search search) {
    __shared__ float tile[63 + PART][PITCH_OF], part[PART][PART];
    const int left = blockIdx.x * 16, top = blockIdx.y * 64, x = left + threadIdx.x, y = top + threadIdx.y * 4, places = search.side - search.size + 1;
    for (int row = threadIdx.y; row < 63 + PART; row += 16)
        for (int column = threadIdx.x; column < 16 + PART; column += 16)
            tile[row][column] = search.picture[min(top + row, search.side - 1) * search.side + min(left + column, search.side - 1)];
    for (int row = threadIdx.y; row < PART; row += 16)
        for (int column = threadIdx.x; column < PART; column += 16) part[row][column] = search.part[row * search.size + column];
    __syncthreads();
    float sum[4] = {};
    for (int column = 0; column < PART; ++column) {
        const float *line = tile[threadIdx.y * 4] + threadIdx.x + column;
        float seen[4];
        for (int k = 0; k < 3; ++k) seen[k + 1] = line[k * PITCH_OF];
#pragma unroll
        for (int row = 0; row < PART; ++row) {
            for (int k = 0; k < 3; ++k) seen[k] = seen[k + 1];
            seen[3] = line[(row + 3) * PITCH_OF];
            const float wanted = part[row][column];
            for (int k = 0; k < 4; ++k) {
                const float off = seen[k] - wanted;
                sum[k] += off * off;
            }
        }
    }
    for (int k = 0; k < 4; ++k)
        if (x < places && y + k < places) search.score[(y + k) * places + x] = sum[k];
}
__global__ void tile_four_below(Search search) { four_below<16 + PART>(search); }
// Third step, bank conflicts: rows padded, so that both halves of a warp meet different banks.
__global__ void four_below_padded(Search search) { four_below<16 + PART + 4>(search); }

// A thread scores four by four places; the picture's tile and the template lie in shared memory.
constexpr int WIDE = 128, HIGH = 32, PITCH = WIDE + PART, TILE_ROWS = HIGH + PART - 1;
constexpr int BYTES = (PITCH * TILE_ROWS + PART * PART) * sizeof(float);
template <int FROM, int TO> __device__ __forceinline__ void row_of(int row, const float4 *line, const float4 *part, float (&sum)[4][4]) {
    float window[8];
    *reinterpret_cast<float4 *>(window) = line[0];
#pragma unroll
    for (int column = 0; column < PART / 4; ++column) {
        *reinterpret_cast<float4 *>(window + 4) = line[column + 1];
#pragma unroll
        for (int y = FROM; y < TO; ++y) {
            const float4 wanted = part[(row - y) * (PART / 4) + column];
            const float w[4] = {wanted.x, wanted.y, wanted.z, wanted.w};
#pragma unroll
            for (int k = 0; k < 4; ++k)
#pragma unroll
                for (int x = 0; x < 4; ++x) {
                    const float off = window[x + k] - w[k];
                    sum[y][x] += off * off;
                }
        }
#pragma unroll
        for (int x = 0; x < 4; ++x) window[x] = window[x + 4];
    }
}
__global__ void __launch_bounds__(256, 2) expert(Search search) {
    extern __shared__ float4 held[];
    float4 *part = held + PITCH * TILE_ROWS / 4;
    const int left = blockIdx.x * WIDE, top = blockIdx.y * HIGH, thread = threadIdx.y * 32 + threadIdx.x;
    for (int i = thread; i < PITCH * TILE_ROWS / 4; i += 256) {
        const int row = min(top + i / (PITCH / 4), SIDE - 1), column = min(left / 4 + i % (PITCH / 4), SIDE / 4 - 1);
        held[i] = reinterpret_cast<const float4 *>(search.picture)[row * (SIDE / 4) + column];
    }
    part[thread] = reinterpret_cast<const float4 *>(search.part)[thread];
    __syncthreads();
    float sum[4][4] = {};
    const int own = threadIdx.y * 4;
    auto line = [&](int row) { return held + (own + row) * (PITCH / 4) + threadIdx.x; };
    row_of<0, 1>(0, line(0), part, sum);
    row_of<0, 2>(1, line(1), part, sum);
    row_of<0, 3>(2, line(2), part, sum);
#pragma unroll 1
    for (int row = 3; row < PART; ++row) row_of<0, 4>(row, line(row), part, sum);
    row_of<1, 4>(PART, line(PART), part, sum);
    row_of<2, 4>(PART + 1, line(PART + 1), part, sum);
    row_of<3, 4>(PART + 2, line(PART + 2), part, sum);
    for (int k = 0; k < 16; ++k) {
        const int x = left + threadIdx.x * 4 + k % 4, y = top + own + k / 4;
        if (x < PLACES && y < PLACES) search.score[y * PLACES + x] = sum[k / 4][k % 4];
    }
}

int main() {
    float *out = get<float>(PLACES * PLACES);
    const Search search{drawn<float>(SIDE * SIDE, 0, 1, 1), drawn<float>(PART * PART, 0, 1, 2), out, SIDE, PART};
    const dim3 grid((PLACES + 15) / 16, (PLACES + 15) / 16), tiles((PLACES + WIDE - 1) / WIDE, (PLACES + HIGH - 1) / HIGH);
    judge({
        {"as_it_is", [=] { as_it_is<<<grid, dim3(16, 16)>>>(search); }},
        {"four_in_registers", [=] { four_in_registers<<<dim3((PLACES + 63) / 64, (PLACES + 15) / 16), dim3(16, 16)>>>(search); }},
        {"tile_in_shared", [=] { tile_in_shared<<<grid, dim3(16, 16)>>>(search); }},
        {"tile_four_beside", [=] { tile_four_beside<<<dim3((PLACES + 63) / 64, (PLACES + 15) / 16), dim3(16, 16)>>>(search); }},
        {"tile_four_below", [=] { tile_four_below<<<dim3((PLACES + 15) / 16, (PLACES + 63) / 64), dim3(16, 16)>>>(search); }},
        {"four_below_padded", [=] { four_below_padded<<<dim3((PLACES + 15) / 16, (PLACES + 63) / 64), dim3(16, 16)>>>(search); }},
        {"expert", [=] { expert<<<tiles, dim3(32, 8), BYTES>>>(search); }},
    }, {{out, PLACES * PLACES}});
}
