// The staggered Dirac operator of lattice QCD: for each site the sum, over four directions, of the link to the next site
// times that site's colour vector, less the previous link's adjoint times the previous site's vector.
#include "../tried/tried.cuh"

constexpr int NX = 32, NY = 32, NZ = 32, NT = 16, SITES = NX * NY * NZ * NT;

struct Vector {
    float2 c[3];
};
struct Matrix {
    float2 e[3][3];
};

__device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ float2 operator*(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ float2 operator*(float a, float2 b) { return {a * b.x, a * b.y}; }
__device__ float2 conjugate(float2 a) { return {a.x, -a.y}; }

__device__ Vector product(const Matrix &m, const Vector &v) {
    Vector out;
    for (int r = 0; r < 3; ++r) out.c[r] = m.e[r][0] * v.c[0] + m.e[r][1] * v.c[1] + m.e[r][2] * v.c[2];
    return out;
}
__device__ Vector adjoint_product(const Matrix &m, const Vector &v) {
    Vector out;
    for (int r = 0; r < 3; ++r)
        out.c[r] = conjugate(m.e[0][r]) * v.c[0] + conjugate(m.e[1][r]) * v.c[1] + conjugate(m.e[2][r]) * v.c[2];
    return out;
}
__device__ int site_at(const int x[4]) { return ((x[3] * NZ + x[2]) * NY + x[1]) * NX + x[0]; }

// links[4 * site + direction]
__global__ void as_it_is(const Vector *in, const Matrix *links, Vector *out) {
    const int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= SITES) return;
    const int sizes[4] = {NX, NY, NZ, NT};
    int x[4] = {site % NX, site / NX % NY, site / (NX * NY) % NZ, site / (NX * NY * NZ)};
    Vector sum = {};
    int before = 0;  // the coordinates that set the direction's sign
    for (int direction = 0; direction < 4; ++direction) {
        const float sign = before % 2 ? -0.5f : 0.5f;
        const int own = x[direction];
        x[direction] = (own + 1) % sizes[direction];
        const int next = site_at(x);
        x[direction] = (own + sizes[direction] - 1) % sizes[direction];
        const int previous = site_at(x);
        x[direction] = own;
        const Vector forward = product(links[4 * site + direction], in[next]);
        const Vector backward = adjoint_product(links[4 * previous + direction], in[previous]);
        for (int c = 0; c < 3; ++c) sum.c[c] = sum.c[c] + sign * (forward.c[c] - backward.c[c]);
        before += own;
    }
    out[site] = sum;
}

// in[component][site], links[9 * direction + 3 * row + column][site]
__device__ Vector vector_of(const float2 *in, int site) { return {{in[site], in[SITES + site], in[2 * SITES + site]}}; }
__device__ Matrix link_of(const float2 *links, int direction, int site) {
    Matrix m;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) m.e[r][c] = links[(9 * direction + 3 * r + c) * SITES + site];
    return m;
}
__global__ void stored_as_arrays(const float2 *in, const float2 *links, float2 *out) {
    const int site = blockIdx.x * blockDim.x + threadIdx.x;
    if (site >= SITES) return;
    const int sizes[4] = {NX, NY, NZ, NT};
    int x[4] = {site % NX, site / NX % NY, site / (NX * NY) % NZ, site / (NX * NY * NZ)};
    Vector sum = {};
    int before = 0;
    for (int direction = 0; direction < 4; ++direction) {
        const float sign = before % 2 ? -0.5f : 0.5f;
        const int own = x[direction];
        x[direction] = (own + 1) % sizes[direction];
        const int next = site_at(x);
        x[direction] = (own + sizes[direction] - 1) % sizes[direction];
        const int previous = site_at(x);
        x[direction] = own;
        const Vector forward = product(link_of(links, direction, site), vector_of(in, next));
        const Vector backward = adjoint_product(link_of(links, direction, previous), vector_of(in, previous));
        for (int c = 0; c < 3; ++c) sum.c[c] = sum.c[c] + sign * (forward.c[c] - backward.c[c]);
        before += own;
    }
    for (int c = 0; c < 3; ++c) out[c * SITES + site] = sum.c[c];
}

// Each component of all sites in a row: lanes of neighbouring sites read neighbouring words. links[9 * direction + 3 * row + column][site].
constexpr int TILE_Y = 4, TILE_Z = 2;
__global__ void __launch_bounds__(NX * TILE_Y * TILE_Z) expert(const float2 *__restrict__ in, const float2 *__restrict__ links, float2 *__restrict__ out) {
    const int x = threadIdx.x, y = blockIdx.x * TILE_Y + threadIdx.y, z = blockIdx.y * TILE_Z + threadIdx.z, t = blockIdx.z;
    const int site = ((t * NZ + z) * NY + y) * NX + x;
    const int next[4] = {site + (x == NX - 1 ? 1 - NX : 1), site + (y == NY - 1 ? 1 - NY : 1) * NX, site + (z == NZ - 1 ? 1 - NZ : 1) * NX * NY, site + (t == NT - 1 ? 1 - NT : 1) * NX * NY * NZ};
    const int previous[4] = {site - (x ? 1 : 1 - NX), site - (y ? 1 : 1 - NY) * NX, site - (z ? 1 : 1 - NZ) * NX * NY, site - (t ? 1 : 1 - NT) * NX * NY * NZ};
    const int before[4] = {0, x, x + y, x + y + z};
    float2 sum[3] = {};
#pragma unroll
    for (int direction = 0; direction < 4; ++direction) {
        const float sign = before[direction] & 1 ? -0.5f : 0.5f;
        float2 ahead[3], behind[3], forward[9], backward[9];
#pragma unroll
        for (int c = 0; c < 3; ++c) ahead[c] = in[c * SITES + next[direction]], behind[c] = in[c * SITES + previous[direction]];
#pragma unroll
        for (int e = 0; e < 9; ++e) forward[e] = links[(9 * direction + e) * SITES + site], backward[e] = links[(9 * direction + e) * SITES + previous[direction]];
#pragma unroll
        for (int r = 0; r < 3; ++r) {
            float2 part = {};
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                const float2 f = forward[3 * r + c], b = backward[3 * c + r];
                part.x += f.x * ahead[c].x, part.x -= f.y * ahead[c].y, part.x -= b.x * behind[c].x, part.x -= b.y * behind[c].y;
                part.y += f.x * ahead[c].y, part.y += f.y * ahead[c].x, part.y -= b.x * behind[c].y, part.y += b.y * behind[c].x;
            }
            sum[r].x += sign * part.x, sum[r].y += sign * part.y;
        }
    }
#pragma unroll
    for (int r = 0; r < 3; ++r) out[r * SITES + site] = sum[r];
}

// values[component][site] of values[site][component], or back
__global__ void turned(const float2 *from, float2 *to, int rows, int columns) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < size_t(rows) * columns) to[i % columns * rows + i / columns] = from[i];
}
void turn(const float2 *from, float2 *to, int rows, int columns) {
    turned<<<(size_t(rows) * columns + 255) / 256, 256>>>(from, to, rows, columns);
}

int main() {
    const Vector *in = reinterpret_cast<const Vector *>(drawn<float>(6 * SITES, -1, 1, 1));
    const Matrix *links = reinterpret_cast<const Matrix *>(drawn<float>(72 * size_t(SITES), -1, 1, 2));
    Vector *out = get<Vector>(SITES);
    float2 *in_rows = get<float2>(3 * SITES), *link_rows = get<float2>(36 * size_t(SITES)), *out_rows = get<float2>(3 * SITES);
    turn(reinterpret_cast<const float2 *>(in), in_rows, SITES, 3), turn(reinterpret_cast<const float2 *>(links), link_rows, SITES, 36);
    Output result(reinterpret_cast<float *>(out), 6 * SITES);
    const auto compare = result.difference;
    bool rows = false;
    result.difference = [&] {
        if (rows) turn(out_rows, reinterpret_cast<float2 *>(out), 3, SITES);
        return compare();
    };
    judge({{"as_it_is", [=] { as_it_is<<<SITES / 256, 256>>>(in, links, out); }},
           {"stored_as_arrays", [&rows, in_rows, link_rows, out_rows] { rows = true, stored_as_arrays<<<SITES / 256, 256>>>(in_rows, link_rows, out_rows); }},
           {"expert", [&rows, in_rows, link_rows, out_rows] {
                rows = true;
                expert<<<dim3(NY / TILE_Y, NZ / TILE_Z, NT), dim3(NX, TILE_Y, TILE_Z)>>>(in_rows, link_rows, out_rows);
            }}},
          {result});
}
