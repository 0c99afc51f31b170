// harmonics_coefficients_again_each_latitude, side flawed: more loads in flight.
#include "../tried.cuh"

struct Legendre {
    const float *up, *down;  // [degree above m][m]
    const float *start;      // [latitude][m]
    const float *sine;       // of the latitudes
    int orders, degrees, latitudes;
};
__global__ void __launch_bounds__(128) synthesise(Legendre t, const float2 *coefficients, float2 *waves) {
    int m = blockIdx.x * blockDim.x + threadIdx.x, latitude = blockIdx.y;
    if (m >= t.orders) return;
    float sine = t.sine[latitude], now = t.start[latitude * t.orders + m], last = 0.f;
    float2 sum = make_float2(0.f, 0.f);
    for (int k = 0; k < t.degrees; ++k) {
        float2 c = coefficients[k * t.orders + m];
        sum.x = fmaf(c.x, now, sum.x), sum.y = fmaf(c.y, now, sum.y);
        float next = fmaf(t.up[k * t.orders + m] * sine, now, -t.down[k * t.orders + m] * last);
        last = now, now = next;
    }
    waves[latitude * t.orders + m] = sum;
}
// AT_ONCE degrees are loaded before the first is used; AHEAD: while the last ones are.
template <int AT_ONCE, bool AHEAD>
__global__ void __launch_bounds__(128) synthesise_unrolled(Legendre t, const float2 *__restrict__ coefficients, float2 *__restrict__ waves) {
    const int m = blockIdx.x * blockDim.x + threadIdx.x, latitude = blockIdx.y;
    if (m >= t.orders) return;
    float sine = t.sine[latitude], now = t.start[latitude * t.orders + m], last = 0.f;
    float2 sum = make_float2(0.f, 0.f), c[AT_ONCE];
    float up[AT_ONCE], down[AT_ONCE];
    auto load = [&](int k) {
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) c[j] = coefficients[(k + j) * t.orders + m], up[j] = __ldg(t.up + (k + j) * t.orders + m), down[j] = __ldg(t.down + (k + j) * t.orders + m);
    };
    if (AHEAD) load(0);
    for (int k = 0; k < t.degrees; k += AT_ONCE) {
        if (!AHEAD) load(k);
        float2 own[AT_ONCE];
        float rise[AT_ONCE], fall[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) own[j] = c[j], rise[j] = up[j], fall[j] = down[j];
        if (AHEAD) load(k + AT_ONCE < t.degrees ? k + AT_ONCE : 0);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            sum.x = fmaf(own[j].x, now, sum.x), sum.y = fmaf(own[j].y, now, sum.y);
            const float next = fmaf(rise[j] * sine, now, -fall[j] * last);
            last = now, now = next;
        }
    }
    waves[latitude * t.orders + m] = sum;
}

int main() {
    const int orders = 384, degrees = 384, latitudes = 512;
    std::vector<float> up(degrees * orders), down(degrees * orders), start(latitudes * orders), sine(latitudes);
    auto epsilon = [](double l, double m) { return std::sqrt((l * l - m * m) / (4 * l * l - 1)); };
    for (int k = 0; k < degrees; ++k)
        for (int m = 0; m < orders; ++m) {
            double above = epsilon(m + k + 1, m);
            up[k * orders + m] = 1 / above, down[k * orders + m] = m + k ? epsilon(m + k, m) / above : 0;
        }
    for (int j = 0; j < latitudes; ++j) {
        double s = (2.0 * j + 1 - latitudes) / latitudes, p = std::sqrt(0.5);
        sine[j] = s;
        for (int m = 0; m < orders; ++m) start[j * orders + m] = p, p *= std::sqrt((2 * m + 3) / (2.0 * m + 2) * (1 - s * s));
    }
    const Legendre t{copied(up), copied(down), copied(start), copied(sine), orders, degrees, latitudes};
    const float2 *coefficients = reinterpret_cast<const float2 *>(drawn<float>(2 * degrees * orders, -1, 1, 1));
    float *out = get<float>(2 * latitudes * orders);
    auto waves = reinterpret_cast<float2 *>(out);
    const dim3 grid(orders / 128, latitudes);
    judge({{"as_it_is", [=] { synthesise<<<grid, 128>>>(t, coefficients, waves); }},
        {"unroll_4", [=] { synthesise_unrolled<4, false><<<grid, 128>>>(t, coefficients, waves); }},
        {"next_4_ahead", [=] { synthesise_unrolled<4, true><<<grid, 128>>>(t, coefficients, waves); }}}, {{out, 2 * latitudes * orders}});
}
