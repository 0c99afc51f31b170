// Registration of two scans: the displacement of each voxel out of the 64 control points around it, by cubic B-splines.
#include "../tried/tried.cuh"

constexpr int WIDTH = 256, HEIGHT = 256, DEPTH = 160, SPACING = 5;
constexpr int ACROSS = (WIDTH + SPACING - 1) / SPACING + 3, DOWN = (HEIGHT + SPACING - 1) / SPACING + 3, DEEP = (DEPTH + SPACING - 1) / SPACING + 3;
constexpr size_t VOXELS = size_t(WIDTH) * HEIGHT * DEPTH;
struct Field { const float3 *control; float *displacement; int width, height, depth, across, down; float spacing; };

__host__ __device__ constexpr float weight(int which, float f) {
    return which == 0   ? (1.f - f) * (1.f - f) * (1.f - f) / 6.f
           : which == 1 ? (3.f * f * f * f - 6.f * f * f + 4.f) / 6.f
           : which == 2 ? (-3.f * f * f * f + 3.f * f * f + 3.f * f + 1.f) / 6.f
                        : f * f * f / 6.f;
}

__global__ void as_it_is(Field field) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= field.width || y >= field.height || z >= field.depth) return;
    const float u = x / field.spacing, v = y / field.spacing, w = z / field.spacing;
    const int i = int(floorf(u)), j = int(floorf(v)), k = int(floorf(w));
    float in_x[4], in_y[4], in_z[4];
    for (int n = 0; n < 4; ++n) in_x[n] = weight(n, u - i), in_y[n] = weight(n, v - j), in_z[n] = weight(n, w - k);
    float3 sum = make_float3(0.f, 0.f, 0.f);
    for (int c = 0; c < 4; ++c)
        for (int b = 0; b < 4; ++b)
            for (int a = 0; a < 4; ++a) {
                const float3 point = field.control[((k + c) * field.down + j + b) * field.across + i + a];
                const float by = in_x[a] * in_y[b] * in_z[c];
                sum.x += by * point.x, sum.y += by * point.y, sum.z += by * point.z;
            }
    const size_t voxels = size_t(field.width) * field.height * field.depth, at = (size_t(z) * field.height + y) * field.width + x;
    field.displacement[at] = sum.x, field.displacement[voxels + at] = sum.y, field.displacement[2 * voxels + at] = sum.z;
}

// First step, expensive functions: products with reciprocals, that of the spacing from the host; and weights evaluated once
// a block, in a table.
__device__ __forceinline__ float weight_by_products(int which, float f) {
    constexpr float SIXTH = 1.f / 6.f;
    return which == 0   ? (1.f - f) * (1.f - f) * (1.f - f) * SIXTH
           : which == 1 ? (3.f * f * f * f - 6.f * f * f + 4.f) * SIXTH
           : which == 2 ? (-3.f * f * f * f + 3.f * f * f + 3.f * f + 1.f) * SIXTH
                        : f * f * f * SIXTH;
}
__device__ __forceinline__ void blended(Field field, int x, int y, int z, int i, int j, int k, const float *in_x, const float *in_y, const float *in_z) {
    float3 sum = make_float3(0.f, 0.f, 0.f);
    for (int c = 0; c < 4; ++c)
        for (int b = 0; b < 4; ++b)
            for (int a = 0; a < 4; ++a) {
                const float3 point = field.control[((k + c) * field.down + j + b) * field.across + i + a];
                const float by = in_x[a] * in_y[b] * in_z[c];
                sum.x += by * point.x, sum.y += by * point.y, sum.z += by * point.z;
            }
    const size_t voxels = size_t(field.width) * field.height * field.depth, at = (size_t(z) * field.height + y) * field.width + x;
    field.displacement[at] = sum.x, field.displacement[voxels + at] = sum.y, field.displacement[2 * voxels + at] = sum.z;
}
__global__ void products_with_reciprocals(Field field, float per_spacing) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= field.width || y >= field.height || z >= field.depth) return;
    const float u = x * per_spacing, v = y * per_spacing, w = z * per_spacing;
    const int i = int(floorf(u)), j = int(floorf(v)), k = int(floorf(w));
    float in_x[4], in_y[4], in_z[4];
    for (int n = 0; n < 4; ++n) in_x[n] = weight_by_products(n, u - i), in_y[n] = weight_by_products(n, v - j), in_z[n] = weight_by_products(n, w - k);
    blended(field, x, y, z, i, j, k, in_x, in_y, in_z);
}
__global__ void weights_in_a_table(Field field, float per_spacing) {
    __shared__ float4 table[3][8];  // of a dimension, a voxel's place in the block
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    const int thread = (threadIdx.z * 8 + threadIdx.y) * 8 + threadIdx.x, dimension = thread / 8;
    if (dimension < 3) {
        const float at = ((dimension == 0 ? blockIdx.x : dimension == 1 ? blockIdx.y : blockIdx.z) * 8 + thread % 8) * per_spacing, f = at - floorf(at);
        table[dimension][thread % 8] = make_float4(weight_by_products(0, f), weight_by_products(1, f), weight_by_products(2, f), weight_by_products(3, f));
    }
    __syncthreads();
    if (x >= field.width || y >= field.height || z >= field.depth) return;
    const int i = int(floorf(x * per_spacing)), j = int(floorf(y * per_spacing)), k = int(floorf(z * per_spacing));
    const float4 of_x = table[0][threadIdx.x], of_y = table[1][threadIdx.y], of_z = table[2][threadIdx.z];
    const float in_x[4] = {of_x.x, of_x.y, of_x.z, of_x.w}, in_y[4] = {of_y.x, of_y.y, of_y.z, of_y.w}, in_z[4] = {of_z.x, of_z.y, of_z.z, of_z.w};
    blended(field, x, y, z, i, j, k, in_x, in_y, in_z);
}

// A block makes all 25 rows between two rows of control points; a thread, the 25 voxels of one x: first along x, then y, then
// z, whose weights are constants.
__global__ void __launch_bounds__(WIDTH) expert(Field field) {
    __shared__ float4 held[16][ACROSS];
    const int x = threadIdx.x, j = blockIdx.x, k = blockIdx.y;
    for (int i = x; i < 16 * ACROSS; i += WIDTH) {
        const int row = i / ACROSS, column = i % ACROSS;
        const float3 point = field.control[((k + row / 4) * DOWN + j + row % 4) * ACROSS + column];
        held[row][column] = make_float4(point.x, point.y, point.z, 0.f);
    }
    __syncthreads();
    const float f = x % SPACING / float(SPACING);
    float in_x[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) in_x[n] = weight(n, f);
    float row[4][4][3];
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        float sum[3] = {};
#pragma unroll
        for (int a = 0; a < 4; ++a) {
            const float4 point = held[r][x / SPACING + a];
            sum[0] = fmaf(in_x[a], point.x, sum[0]), sum[1] = fmaf(in_x[a], point.y, sum[1]), sum[2] = fmaf(in_x[a], point.z, sum[2]);
        }
#pragma unroll
        for (int c = 0; c < 3; ++c) row[r / 4][r % 4][c] = sum[c];
    }
#pragma unroll
    for (int dy = 0; dy < SPACING; ++dy) {
        const int y = j * SPACING + dy;
        if (y >= HEIGHT) return;
        float plane[4][3];
#pragma unroll
        for (int n = 0; n < 12; ++n) {
            plane[n / 3][n % 3] = 0.f;
#pragma unroll
            for (int b = 0; b < 4; ++b) plane[n / 3][n % 3] = fmaf(weight(b, dy / float(SPACING)), row[n / 3][b][n % 3], plane[n / 3][n % 3]);
        }
#pragma unroll
        for (int dz = 0; dz < SPACING; ++dz) {
            float *to = field.displacement + (size_t(k * SPACING + dz) * HEIGHT + y) * WIDTH + x;
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                float sum = 0.f;
#pragma unroll
                for (int n = 0; n < 4; ++n) sum = fmaf(weight(n, dz / float(SPACING)), plane[n][c], sum);
                __stcs(to + c * VOXELS, sum);
            }
        }
    }
}
static_assert(DEPTH % SPACING == 0, "a block of the expert's makes whole layers");

int main(int, char **arguments) {
    float *out = get<float>(VOXELS * 3);
    const auto control = reinterpret_cast<const float3 *>(drawn<float>(size_t(ACROSS) * DOWN * DEEP * 3, -4, 4, 1));
    const Field field{control, out, WIDTH, HEIGHT, DEPTH, ACROSS, DOWN, float(SPACING)};
    judge({
        {"as_it_is", [=] { as_it_is<<<dim3(WIDTH / 8, HEIGHT / 8, DEPTH / 8), dim3(8, 8, 8)>>>(field); }},
        {"products_with_reciprocals", [=] { products_with_reciprocals<<<dim3(WIDTH / 8, HEIGHT / 8, DEPTH / 8), dim3(8, 8, 8)>>>(field, 1.f / SPACING); }},
        {"weights_in_a_table", [=] { weights_in_a_table<<<dim3(WIDTH / 8, HEIGHT / 8, DEPTH / 8), dim3(8, 8, 8)>>>(field, 1.f / SPACING); }},
        {"expert", [=] { expert<<<dim3(DOWN - 3, DEEP - 3), WIDTH>>>(field); }},
    }, {{out, VOXELS * 3}}, [] {}, arguments[1]);
}
