// gravity_survey_of_140_blocks_of_1024, side flawed: fast functions or algebra for logf, atan2f and sqrtf.
#include "../tried.cuh"

struct Prism {
    float low[3], high[3], density;
};
__device__ __forceinline__ float prism_gravity(const Prism &p, float x, float y) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float dx = (k & 1 ? p.high[0] : p.low[0]) - x, dy = (k & 2 ? p.high[1] : p.low[1]) - y, dz = k & 4 ? p.high[2] : p.low[2];
        const float r = sqrtf(dx * dx + dy * dy + dz * dz);
        const float term = dx * logf(dy + r) + dy * logf(dx + r) - dz * atan2f(dx * dy, dz * r);
        sum += (k & 1) ^ (k >> 1 & 1) ^ (k >> 2 & 1) ? term : -term;
    }
    return sum * p.density;
}
__device__ __forceinline__ float fast_root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// The angle of (x, y) for x > 0. Polynomials of Abramowitz and Stegun, 4.4.49 (off by 2e-8), and, SHORT, 4.4.47 (1e-5).
template <bool SHORT>
__device__ __forceinline__ float fast_angle(float y, float x) {
    const float a = fabsf(y), t = __fdividef(fminf(a, x), fmaxf(a, x)), u = t * t;
    float p;
    if (SHORT) p = fmaf(u, fmaf(u, fmaf(u, fmaf(u, 0.0208351f, -0.0851330f), 0.1801410f), -0.3302995f), 0.9998660f);
    else {
        p = fmaf(u, fmaf(u, 0.0028662257f, -0.0161657367f), 0.0429096138f);
        p = fmaf(u, fmaf(u, fmaf(u, p, -0.0752896400f), 0.1065626393f), -0.1420889944f);
        p = fmaf(u, fmaf(u, fmaf(u, p, 0.1999355085f), -0.3333314528f), 1.0f);
    }
    p *= t;
    return copysignf(a > x ? 1.5707963f - p : p, y);
}
// PRODUCTS: the four logarithms with the same factor become one, of a quotient of products.
template <bool SHORT, bool PRODUCTS>
__device__ __forceinline__ float prism_gravity_fast(const Prism &p, float x, float y) {
    float sum = 0.0f, of_x[2][2] = {{1.0f, 1.0f}, {1.0f, 1.0f}}, of_y[2][2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const int i = k & 1, j = k >> 1 & 1, plus = i ^ j ^ (k >> 2 & 1);
        const float dx = (i ? p.high[0] : p.low[0]) - x, dy = (j ? p.high[1] : p.low[1]) - y, dz = k & 4 ? p.high[2] : p.low[2];
        const float r = fast_root(dx * dx + dy * dy + dz * dz), angle = dz * fast_angle<SHORT>(dx * dy, dz * r);
        if (PRODUCTS) of_x[i][plus] *= dy + r, of_y[j][plus] *= dx + r;
        const float term = PRODUCTS ? -angle : dx * __logf(dy + r) + dy * __logf(dx + r) - angle;
        sum += plus ? term : -term;
    }
    if (PRODUCTS) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            sum += ((i ? p.high[0] : p.low[0]) - x) * __logf(__fdividef(of_x[i][1], of_x[i][0]));
            sum += ((i ? p.high[1] : p.low[1]) - y) * __logf(__fdividef(of_y[i][1], of_y[i][0]));
        }
    }
    return sum * p.density;
}
enum How { AS_IT_IS, FAST, FAST_SHORT, FAST_PRODUCTS, FAST_SHORT_PRODUCTS };
template <int THREADS, How HOW>
__global__ void __launch_bounds__(THREADS) survey(const Prism *__restrict__ prisms, const float2 *__restrict__ stations, float *__restrict__ out, int count, int share) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float2 s = stations[i];
    float sum = 0.0f;
    for (int k = blockIdx.y * share; k < static_cast<int>(blockIdx.y + 1) * share; k++) {
        if (HOW == AS_IT_IS) sum += prism_gravity(prisms[k], s.x, s.y);
        else sum += prism_gravity_fast<HOW == FAST_SHORT || HOW == FAST_SHORT_PRODUCTS, HOW == FAST_PRODUCTS || HOW == FAST_SHORT_PRODUCTS>(prisms[k], s.x, s.y);
    }
    if (gridDim.y > 1) atomicAdd(out + i, sum);
    else out[i] = sum;
}

int main() {
    const int count = 140 * 1024;
    std::vector<Prism> rocks(64);
    for (unsigned k = 0; k < 64; k++) {
        const float x = hashed(k) % 1000 * 1.0f, y = hashed(k + 100) % 1000 * 1.0f, z = 20.0f + hashed(k + 200) % 100;
        rocks[k] = {{x, y, z}, {x + 30 + hashed(k + 300) % 50, y + 30 + hashed(k + 400) % 50, z + 20 + hashed(k + 500) % 40}, 0.2f + (hashed(k + 600) % 100) * 0.01f};
    }
    const Prism *in = copied(rocks);
    const float2 *stations = reinterpret_cast<const float2 *>(drawn<float>(count * 2, 0, 1000, 1));
    float *out = get<float>(count);
    judge({{"as_it_is", [=] { survey<1024, AS_IT_IS><<<140, 1024>>>(in, stations, out, count, 64); }},
        {"fast", [=] { survey<1024, FAST><<<140, 1024>>>(in, stations, out, count, 64); }},
        {"fast_short_angle", [=] { survey<1024, FAST_SHORT><<<140, 1024>>>(in, stations, out, count, 64); }},
        {"fast_logs_of_products", [=] { survey<1024, FAST_PRODUCTS><<<140, 1024>>>(in, stations, out, count, 64); }},
        {"fast_short_angle_logs_of_products", [=] { survey<1024, FAST_SHORT_PRODUCTS><<<140, 1024>>>(in, stations, out, count, 64); }}}, {{out, count}});
}
