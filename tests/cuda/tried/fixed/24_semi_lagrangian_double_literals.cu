// semi_lagrangian_double_literals, side float: a thread takes several elements and loads them all before it uses the first.
#include "../tried.cuh"

// As it is: SEVERAL = 1. Else as many rows, a block's height apart.
template <int SEVERAL>
__global__ void transport_float(const float *__restrict__ q, const float *__restrict__ u, const float *__restrict__ v, float *__restrict__ out, int n, float dt) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * blockDim.y * SEVERAL + threadIdx.y;
    float across[SEVERAL], down[SEVERAL], low[SEVERAL][2], high[SEVERAL][2];
#pragma unroll
    for (int k = 0; k < SEVERAL; k++) across[k] = u[(first + k * 8) * n + x], down[k] = v[(first + k * 8) * n + x];
#pragma unroll
    for (int k = 0; k < SEVERAL; k++) {
        float px = x - dt * across[k] / 0.01f, py = first + k * 8 - dt * down[k] / 0.01f;
        px = fminf(fmaxf(px, 0.f), n - 1.001f), py = fminf(fmaxf(py, 0.f), n - 1.001f);
        const int i = px, j = py;
        across[k] = px - i, down[k] = py - j;
        const float *c = q + j * n + i;
        low[k][0] = c[0], low[k][1] = c[1], high[k][0] = c[n], high[k][1] = c[n + 1];
    }
#pragma unroll
    for (int k = 0; k < SEVERAL; k++) {
        const float a = across[k], b = down[k];
        out[(first + k * 8) * n + x] = (1.f - b) * ((1.f - a) * low[k][0] + a * low[k][1]) + b * ((1.f - a) * high[k][0] + a * high[k][1]);
    }
}

int main() {
    const int n = 4096;
    std::vector<float> field(size_t(n) * n);
    for (long y = 0; y < n; ++y)
        for (long x = 0; x < n; ++x) field[y * n + x] = 0.001f * x + 0.0007f * y + (x * y % 7) * 1e-5f;
    const float *q = copied(field), *u = drawn<float>(size_t(n) * n, -1, 1, 1), *v = drawn<float>(size_t(n) * n, -1, 1, 2);
    float *out = get<float>(size_t(n) * n);
    judge({{"as_it_is", [=] { transport_float<1><<<dim3(n / 32, n / 8), dim3(32, 8)>>>(q, u, v, out, n, 0.02f); }},
        {"four_rows", [=] { transport_float<4><<<dim3(n / 32, n / 32), dim3(32, 8)>>>(q, u, v, out, n, 0.02f); }},
        {"two_rows", [=] { transport_float<2><<<dim3(n / 32, n / 16), dim3(32, 8)>>>(q, u, v, out, n, 0.02f); }}}, {{out, size_t(n) * n}});
}
