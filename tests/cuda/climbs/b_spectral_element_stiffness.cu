// Stiffness of spectral elements of eight nodes an edge, applied to a field: derivatives along three axes, six metric
// terms a node, and the transposed derivatives.
#include "../tried/tried.cuh"

constexpr int N = 8, NODES = N * N * N, ELEMENTS = 6144;

struct Metric {
    double rr, rs, rt, ss, st, tt;
};

__global__ void __launch_bounds__(NODES) as_it_is(const double *u, const Metric *metric, const double *d, double *out) {
    __shared__ double in_r[N][N][N], in_s[N][N][N], in_t[N][N][N];
    const int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    const size_t first = size_t(blockIdx.x) * NODES, node = first + (k * N + j) * N + i;
    double ur = 0.0, us = 0.0, ut = 0.0;
    for (int l = 0; l < N; ++l) {
        ur += d[i * N + l] * u[first + (k * N + j) * N + l];
        us += d[j * N + l] * u[first + (k * N + l) * N + i];
        ut += d[k * N + l] * u[first + (l * N + j) * N + i];
    }
    const Metric m = metric[node];
    in_r[k][j][i] = m.rr * ur + m.rs * us + m.rt * ut;
    in_s[k][j][i] = m.rs * ur + m.ss * us + m.st * ut;
    in_t[k][j][i] = m.rt * ur + m.st * us + m.tt * ut;
    __syncthreads();
    double sum = 0.0;
    for (int l = 0; l < N; ++l)
        sum += d[l * N + i] * in_r[k][j][l] + d[l * N + j] * in_s[k][l][i] + d[l * N + k] * in_t[l][j][i];
    out[node] = sum;
}

// Four neighbours along r a thread.
constexpr int FOUR = 4;
__global__ void __launch_bounds__(NODES / FOUR) four_along_x(const double *u, const Metric *metric, const double *d, double *out) {
    __shared__ double in_r[N][N][N], in_s[N][N][N], in_t[N][N][N];
    const int i = FOUR * threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    const size_t first = size_t(blockIdx.x) * NODES, node = first + (k * N + j) * N + i;
    double ur[FOUR] = {}, us[FOUR] = {}, ut[FOUR] = {};
    for (int l = 0; l < N; ++l) {
        const double along = u[first + (k * N + j) * N + l], for_s = d[j * N + l], for_t = d[k * N + l];
        for (int n = 0; n < FOUR; ++n) {
            ur[n] += d[(i + n) * N + l] * along;
            us[n] += for_s * u[first + (k * N + l) * N + i + n];
            ut[n] += for_t * u[first + (l * N + j) * N + i + n];
        }
    }
    for (int n = 0; n < FOUR; ++n) {
        const Metric m = metric[node + n];
        in_r[k][j][i + n] = m.rr * ur[n] + m.rs * us[n] + m.rt * ut[n];
        in_s[k][j][i + n] = m.rs * ur[n] + m.ss * us[n] + m.st * ut[n];
        in_t[k][j][i + n] = m.rt * ur[n] + m.st * us[n] + m.tt * ut[n];
    }
    __syncthreads();
    double sum[FOUR] = {};
    for (int l = 0; l < N; ++l) {
        const double along = in_r[k][j][l], for_s = d[l * N + j], for_t = d[l * N + k];
        for (int n = 0; n < FOUR; ++n)
            sum[n] += d[l * N + i + n] * along + for_s * in_s[k][l][i + n] + for_t * in_t[l][j][i + n];
    }
    for (int n = 0; n < FOUR; ++n) out[node + n] = sum[n];
}
__global__ void __launch_bounds__(NODES) field_in_shared(const double *u, const Metric *metric, const double *d, double *out) {
    __shared__ double field[N][N][N], derivative[N][N], in_r[N][N][N], in_s[N][N][N], in_t[N][N][N];
    const int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    const size_t node = size_t(blockIdx.x) * NODES + (k * N + j) * N + i;
    field[k][j][i] = u[node];
    if (k == 0) derivative[j][i] = d[j * N + i];
    __syncthreads();
    double ur = 0.0, us = 0.0, ut = 0.0;
    for (int l = 0; l < N; ++l) {
        ur += derivative[i][l] * field[k][j][l];
        us += derivative[j][l] * field[k][l][i];
        ut += derivative[k][l] * field[l][j][i];
    }
    const Metric m = metric[node];
    in_r[k][j][i] = m.rr * ur + m.rs * us + m.rt * ut;
    in_s[k][j][i] = m.rs * ur + m.ss * us + m.st * ut;
    in_t[k][j][i] = m.rt * ur + m.st * us + m.tt * ut;
    __syncthreads();
    double sum = 0.0;
    for (int l = 0; l < N; ++l)
        sum += derivative[l][i] * in_r[k][j][l] + derivative[l][j] * in_s[k][l][i] + derivative[l][k] * in_t[l][j][i];
    out[node] = sum;
}
__global__ void __launch_bounds__(NODES) metric_by_vectors(const double *u, const Metric *metric, const double *d, double *out) {
    __shared__ double field[N][N][N], derivative[N][N], in_r[N][N][N], in_s[N][N][N], in_t[N][N][N];
    const int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    const size_t node = size_t(blockIdx.x) * NODES + (k * N + j) * N + i;
    field[k][j][i] = u[node];
    if (k == 0) derivative[j][i] = d[j * N + i];
    __syncthreads();
    double ur = 0.0, us = 0.0, ut = 0.0;
    for (int l = 0; l < N; ++l) {
        ur += derivative[i][l] * field[k][j][l];
        us += derivative[j][l] * field[k][l][i];
        ut += derivative[k][l] * field[l][j][i];
    }
    const double2 *three = reinterpret_cast<const double2 *>(metric + node);
    const double2 first = three[0], second = three[1], third = three[2];
    const Metric m = {first.x, first.y, second.x, second.y, third.x, third.y};
    in_r[k][j][i] = m.rr * ur + m.rs * us + m.rt * ut;
    in_s[k][j][i] = m.rs * ur + m.ss * us + m.st * ut;
    in_t[k][j][i] = m.rt * ur + m.st * us + m.tt * ut;
    __syncthreads();
    double sum = 0.0;
    for (int l = 0; l < N; ++l)
        sum += derivative[l][i] * in_r[k][j][l] + derivative[l][j] * in_s[k][l][i] + derivative[l][k] * in_t[l][j][i];
    out[node] = sum;
}
__global__ void __launch_bounds__(NODES) metric_as_arrays(const double *u, const double *metric, const double *d, double *out) {
    __shared__ double field[N][N][N], derivative[N][N], in_r[N][N][N], in_s[N][N][N], in_t[N][N][N];
    const int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    const size_t node = size_t(blockIdx.x) * NODES + (k * N + j) * N + i;
    field[k][j][i] = u[node];
    if (k == 0) derivative[j][i] = d[j * N + i];
    __syncthreads();
    double ur = 0.0, us = 0.0, ut = 0.0;
    for (int l = 0; l < N; ++l) {
        ur += derivative[i][l] * field[k][j][l];
        us += derivative[j][l] * field[k][l][i];
        ut += derivative[k][l] * field[l][j][i];
    }
    const size_t count = size_t(ELEMENTS) * NODES;  // metric[term][node]
    const Metric m = {metric[node], metric[count + node], metric[2 * count + node], metric[3 * count + node], metric[4 * count + node], metric[5 * count + node]};
    in_r[k][j][i] = m.rr * ur + m.rs * us + m.rt * ut;
    in_s[k][j][i] = m.rs * ur + m.ss * us + m.st * ut;
    in_t[k][j][i] = m.rt * ur + m.st * us + m.tt * ut;
    __syncthreads();
    double sum = 0.0;
    for (int l = 0; l < N; ++l)
        sum += derivative[l][i] * in_r[k][j][l] + derivative[l][j] * in_s[k][l][i] + derivative[l][k] * in_t[l][j][i];
    out[node] = sum;
}

// SEVERAL neighbours along t a thread.
template <int SEVERAL> __device__ __forceinline__ void along_t(const double *u, const Metric *metric, const double *d, double *out) {
    __shared__ double field[N][N][N], derivative[N][N], in_r[N][N][N], in_s[N][N][N], in_t[N][N][N];
    const int i = threadIdx.x, j = threadIdx.y, k = SEVERAL * threadIdx.z;
    const size_t node = size_t(blockIdx.x) * NODES + (k * N + j) * N + i;
#pragma unroll
    for (int n = 0; n < SEVERAL; ++n) field[k + n][j][i] = u[node + n * N * N];
    if (k == 0) derivative[j][i] = d[j * N + i];
    __syncthreads();
    double ur[SEVERAL] = {}, us[SEVERAL] = {}, ut[SEVERAL] = {};
#pragma unroll
    for (int l = 0; l < N; ++l) {
        const double for_r = derivative[i][l], for_s = derivative[j][l], along = field[l][j][i];
#pragma unroll
        for (int n = 0; n < SEVERAL; ++n) {
            ur[n] += for_r * field[k + n][j][l];
            us[n] += for_s * field[k + n][l][i];
            ut[n] += derivative[k + n][l] * along;
        }
    }
#pragma unroll
    for (int n = 0; n < SEVERAL; ++n) {
        const double2 *three = reinterpret_cast<const double2 *>(metric + node + n * N * N);
        const double2 first = three[0], second = three[1], third = three[2];
        const Metric m = {first.x, first.y, second.x, second.y, third.x, third.y};
        in_r[k + n][j][i] = m.rr * ur[n] + m.rs * us[n] + m.rt * ut[n];
        in_s[k + n][j][i] = m.rs * ur[n] + m.ss * us[n] + m.st * ut[n];
        in_t[k + n][j][i] = m.rt * ur[n] + m.st * us[n] + m.tt * ut[n];
    }
    __syncthreads();
    double sum[SEVERAL] = {};
#pragma unroll
    for (int l = 0; l < N; ++l) {
        const double for_r = derivative[l][i], for_s = derivative[l][j], along = in_t[l][j][i];
#pragma unroll
        for (int n = 0; n < SEVERAL; ++n) sum[n] += for_r * in_r[k + n][j][l] + for_s * in_s[k + n][l][i] + derivative[l][k + n] * along;
    }
#pragma unroll
    for (int n = 0; n < SEVERAL; ++n) out[node + n * N * N] = sum[n];
}
__global__ void __launch_bounds__(NODES / 4) four_along_t(const double *u, const Metric *metric, const double *d, double *out) { along_t<4>(u, metric, d, out); }
__global__ void __launch_bounds__(NODES / 8) eight_along_t(const double *u, const Metric *metric, const double *d, double *out) { along_t<8>(u, metric, d, out); }

// A thread a column of the element: what runs along t stays in registers, what runs along r and s goes by shared memory.
__global__ void __launch_bounds__(N * N, 8) expert(const double *__restrict__ u, const Metric *__restrict__ metric, const double *__restrict__ d, double *__restrict__ out) {
    __shared__ double field[N][N][N], in_r[N][N][N], in_s[N][N][N], derivative[N][N];
    const int i = threadIdx.x, j = threadIdx.y;
    const size_t first = size_t(blockIdx.x) * NODES + j * N + i;
    double column[N], along_t[N] = {};
    derivative[j][i] = d[j * N + i];
#pragma unroll
    for (int k = 0; k < N; ++k) column[k] = u[first + k * N * N];
#pragma unroll
    for (int k = 0; k < N; ++k) field[k][j][i] = column[k];
    __syncthreads();
    double own_r[N], own_s[N];
#pragma unroll
    for (int l = 0; l < N; ++l) own_r[l] = derivative[i][l], own_s[l] = derivative[j][l];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const double2 *m = reinterpret_cast<const double2 *>(metric + first + k * N * N);
        const double2 a = __ldcs(m), b = __ldcs(m + 1), c = __ldcs(m + 2);
        double ur = 0.0, us = 0.0, ut = 0.0;
#pragma unroll
        for (int l = 0; l < N; ++l) {
            ur += own_r[l] * field[k][j][l];
            us += own_s[l] * field[k][l][i];
            ut += derivative[k][l] * column[l];
        }
        in_r[k][j][i] = a.x * ur + a.y * us + b.x * ut;
        in_s[k][j][i] = a.y * ur + b.y * us + c.x * ut;
        const double in_t = b.x * ur + c.x * us + c.y * ut;
#pragma unroll
        for (int l = 0; l < N; ++l) along_t[l] += derivative[k][l] * in_t;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < N; ++l) own_r[l] = derivative[l][i], own_s[l] = derivative[l][j];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        double sum = along_t[k];
#pragma unroll
        for (int l = 0; l < N; ++l) sum += own_r[l] * in_r[k][j][l] + own_s[l] * in_s[k][l][i];
        out[first + k * N * N] = sum;
    }
}

__global__ void turned(const double *from, double *to, size_t count) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < 6 * count) to[i % 6 * count + i / 6] = from[i];
}

int main() {
    const size_t count = size_t(ELEMENTS) * NODES;
    const double *u = drawn<double>(count, -1, 1, 1), *d = drawn<double>(N * N, -2, 2, 2);
    const Metric *metric = reinterpret_cast<const Metric *>(drawn<double>(6 * count, 0.1, 1, 3));
    double *out = get<double>(count), *terms = get<double>(6 * count);
    turned<<<6 * count / 256, 256>>>(reinterpret_cast<const double *>(metric), terms, count);
    judge({{"as_it_is", [=] { as_it_is<<<ELEMENTS, dim3(N, N, N)>>>(u, metric, d, out); }},
           {"four_along_x", [=] { four_along_x<<<ELEMENTS, dim3(N / FOUR, N, N)>>>(u, metric, d, out); }},
           {"field_in_shared", [=] { field_in_shared<<<ELEMENTS, dim3(N, N, N)>>>(u, metric, d, out); }},
           {"metric_by_vectors", [=] { metric_by_vectors<<<ELEMENTS, dim3(N, N, N)>>>(u, metric, d, out); }},
           {"metric_as_arrays", [=] { metric_as_arrays<<<ELEMENTS, dim3(N, N, N)>>>(u, terms, d, out); }},
           {"four_along_t", [=] { four_along_t<<<ELEMENTS, dim3(N, N, N / 4)>>>(u, metric, d, out); }},
           {"eight_along_t", [=] { eight_along_t<<<ELEMENTS, dim3(N, N, N / 8)>>>(u, metric, d, out); }},
           {"expert", [=] { expert<<<ELEMENTS, dim3(N, N)>>>(u, metric, d, out); }}},
          {{out, count}});
}
