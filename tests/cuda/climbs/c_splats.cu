// A scene of 3-D Gaussians is drawn: each pixel blends, front to back, those that its tile of 16 by 16 pixels lists.
#include "../tried/tried.cuh"

constexpr int WIDTH = 1280, HEIGHT = 720, TILE = 16, ACROSS = WIDTH / TILE, DOWN = HEIGHT / TILE, SPLATS = 160000;
constexpr float LEAST = 1.f / 255.f, DONE = 1e-4f;
// conic: of xx, xy and yy, then the opacity.
struct Scene { const float2 *mean; const float4 *conic; const float *colour; const int *listed, *begin; float *picture; int width, height; };

// The same rounding in all forms, as what is too faint is left out.
__device__ __forceinline__ float power_of(float dx, float dy, float4 conic) {
    return fmaf(-0.5f, fmaf(conic.x * dx, dx, conic.z * dy * dy), -conic.y * dx * dy);
}

__global__ void as_it_is(Scene scene) {
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y, tile = blockIdx.y * gridDim.x + blockIdx.x;
    if (x >= scene.width || y >= scene.height) return;
    float through = 1.f, red = 0.f, green = 0.f, blue = 0.f;
    for (int i = scene.begin[tile]; i < scene.begin[tile + 1]; ++i) {
        const int splat = scene.listed[i];
        const float4 conic = scene.conic[splat];
        const float power = power_of(scene.mean[splat].x - x, scene.mean[splat].y - y, conic);
        if (power > 0.f) continue;
        const float alpha = fminf(0.99f, conic.w * expf(power));
        if (alpha < LEAST) continue;
        const float behind = through * (1.f - alpha);
        if (behind < DONE) break;
        red += scene.colour[splat * 3] * alpha * through;
        green += scene.colour[splat * 3 + 1] * alpha * through;
        blue += scene.colour[splat * 3 + 2] * alpha * through;
        through = behind;
    }
    const int at = y * scene.width + x, pixels = scene.width * scene.height;
    scene.picture[at] = red, scene.picture[pixels + at] = green, scene.picture[2 * pixels + at] = blue;
}

// First step, redundant loads: a thread blends four pixels beside each other, which share a splat's values in registers.
constexpr int BESIDE = 4;
__global__ void four_along_x(Scene scene) {
    const int x = blockIdx.x * TILE + threadIdx.x * BESIDE, y = blockIdx.y * TILE + threadIdx.y, tile = blockIdx.y * gridDim.x + blockIdx.x;
    if (y >= scene.height) return;
    float through[BESIDE], red[BESIDE] = {}, green[BESIDE] = {}, blue[BESIDE] = {};
    bool done[BESIDE];
#pragma unroll
    for (int n = 0; n < BESIDE; ++n) through[n] = 1.f, done[n] = x + n >= scene.width;
    for (int i = scene.begin[tile]; i < scene.begin[tile + 1]; ++i) {
        if (done[0] && done[1] && done[2] && done[3]) break;
        const int splat = scene.listed[i];
        const float4 conic = scene.conic[splat];
        const float2 mean = scene.mean[splat];
        const float r = scene.colour[splat * 3], g = scene.colour[splat * 3 + 1], b = scene.colour[splat * 3 + 2];
#pragma unroll
        for (int n = 0; n < BESIDE; ++n) {
            if (done[n]) continue;
            const float power = power_of(mean.x - (x + n), mean.y - y, conic);
            if (power > 0.f) continue;
            const float alpha = fminf(0.99f, conic.w * expf(power));
            if (alpha < LEAST) continue;
            const float behind = through[n] * (1.f - alpha);
            if (behind < DONE) {
                done[n] = true;
                continue;
            }
            red[n] += r * alpha * through[n], green[n] += g * alpha * through[n], blue[n] += b * alpha * through[n];
            through[n] = behind;
        }
    }
    const int at = y * scene.width + x, pixels = scene.width * scene.height;
#pragma unroll
    for (int n = 0; n < BESIDE; ++n)
        if (x + n < scene.width) scene.picture[at + n] = red[n], scene.picture[pixels + at + n] = green[n], scene.picture[2 * pixels + at + n] = blue[n];
}

// Second step, expensive functions: the fast exponential; what is too faint by a rounding may be left out or not.
__global__ void fast_exponential(Scene scene) {
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y, tile = blockIdx.y * gridDim.x + blockIdx.x;
    if (x >= scene.width || y >= scene.height) return;
    float through = 1.f, red = 0.f, green = 0.f, blue = 0.f;
    for (int i = scene.begin[tile]; i < scene.begin[tile + 1]; ++i) {
        const int splat = scene.listed[i];
        const float4 conic = scene.conic[splat];
        const float power = power_of(scene.mean[splat].x - x, scene.mean[splat].y - y, conic);
        if (power > 0.f) continue;
        const float alpha = fminf(0.99f, conic.w * __expf(power));
        if (alpha < LEAST) continue;
        const float behind = through * (1.f - alpha);
        if (behind < DONE) break;
        red += scene.colour[splat * 3] * alpha * through;
        green += scene.colour[splat * 3 + 1] * alpha * through;
        blue += scene.colour[splat * 3 + 2] * alpha * through;
        through = behind;
    }
    const int at = y * scene.width + x, pixels = scene.width * scene.height;
    scene.picture[at] = red, scene.picture[pixels + at] = green, scene.picture[2 * pixels + at] = blue;
}

// Lists pass through shared memory, colours and the power below which a splat is surely too faint beside them; a thread
// blends pixels below each other.
template <int PIXELS> __device__ __forceinline__ void staged(Scene scene) {
    constexpr int THREADS = TILE * TILE / PIXELS, BATCH = 128;
    __shared__ float4 conics[BATCH], colours[BATCH];
    __shared__ float2 means[BATCH];
    const int thread = threadIdx.y * TILE + threadIdx.x, tile = blockIdx.y * ACROSS + blockIdx.x;
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y * PIXELS;
    float through[PIXELS], sum[PIXELS][3] = {};
    bool done[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) through[p] = 1.f, done[p] = false;
    const int end = scene.begin[tile + 1];
    for (int first = scene.begin[tile]; first < end; first += BATCH) {
        bool ready = true;
#pragma unroll
        for (int p = 0; p < PIXELS; ++p) ready = ready && done[p];
        if (__syncthreads_and(ready)) break;
        const int many = min(BATCH, end - first);
        for (int i = thread; i < many; i += THREADS) {
            const int splat = scene.listed[first + i];
            const float4 conic = scene.conic[splat];
            const float *colour = scene.colour + splat * 3;
            conics[i] = conic, means[i] = scene.mean[splat];
            colours[i] = make_float4(colour[0], colour[1], colour[2], -__logf(conic.w * (1.f / LEAST)) - 0.01f);
        }
        __syncthreads();
        for (int i = 0; i < many; ++i) {
            const float4 conic = conics[i], colour = colours[i];
            const float2 mean = means[i];
            const float dx = mean.x - x;
#pragma unroll
            for (int p = 0; p < PIXELS; ++p) {
                const float power = power_of(dx, mean.y - (y + p), conic);
                if (power > 0.f || power < colour.w || done[p]) continue;
                const float alpha = fminf(0.99f, conic.w * expf(power));
                if (alpha < LEAST) continue;
                const float behind = through[p] * (1.f - alpha);
                if (behind < DONE) {
                    done[p] = true;
                    continue;
                }
                const float share = alpha * through[p];
                sum[p][0] = fmaf(colour.x, share, sum[p][0]), sum[p][1] = fmaf(colour.y, share, sum[p][1]), sum[p][2] = fmaf(colour.z, share, sum[p][2]);
                through[p] = behind;
            }
        }
    }
#pragma unroll
    for (int p = 0; p < PIXELS; ++p)
#pragma unroll
        for (int c = 0; c < 3; ++c) scene.picture[c * WIDTH * HEIGHT + (y + p) * WIDTH + x] = sum[p][c];
}
__global__ void __launch_bounds__(128) expert(Scene scene) { staged<2>(scene); }
__global__ void __launch_bounds__(64) expert_four_pixels(Scene scene) { staged<4>(scene); }
__global__ void __launch_bounds__(256) expert_one_pixel(Scene scene) { staged<1>(scene); }

int main(int, char **arguments) {
    // More of them towards the middle, from half a pixel to some ten across; nearest first.
    std::vector<float2> mean(SPLATS);
    std::vector<float4> conic(SPLATS);
    std::vector<std::vector<int>> lists(ACROSS * DOWN);
    unsigned drawn_so_far = 0;
    auto next = [&] { return hashed(++drawn_so_far) / 4294967296.f; };
    for (int i = 0; i < SPLATS; ++i) {
        mean[i].x = (next() + next()) / 2.f * WIDTH, mean[i].y = (next() + next()) / 2.f * HEIGHT;
        const float large = std::exp(2.f * next()), small = large * (0.3f + 0.7f * next()), angle = 3.14159f * next();
        const float c = std::cos(angle), s = std::sin(angle), a = 0.3f + large * large, b = 0.3f + small * small;
        conic[i] = make_float4(c * c / a + s * s / b, c * s * (1.f / a - 1.f / b), s * s / a + c * c / b, 0.05f + 0.9f * next());
        const float reach = std::ceil(3.f * std::sqrt(a));
        const int left = std::max(0, int((mean[i].x - reach) / TILE)), right = std::min(ACROSS - 1, int((mean[i].x + reach) / TILE));
        const int top = std::max(0, int((mean[i].y - reach) / TILE)), bottom = std::min(DOWN - 1, int((mean[i].y + reach) / TILE));
        for (int v = top; v <= bottom; ++v)
            for (int u = left; u <= right; ++u) lists[v * ACROSS + u].push_back(i);
    }
    std::vector<int> listed, begin{0};
    for (const std::vector<int> &list : lists) listed.insert(listed.end(), list.begin(), list.end()), begin.push_back(int(listed.size()));
    float *out = get<float>(WIDTH * HEIGHT * 3);
    const Scene scene{copied(mean), copied(conic), drawn<float>(SPLATS * 3, 0, 1, 3), copied(listed), copied(begin), out, WIDTH, HEIGHT};
    const dim3 grid(ACROSS, DOWN);
    judge({
        {"as_it_is", [=] { as_it_is<<<grid, dim3(TILE, TILE)>>>(scene); }},
        {"four_along_x", [=] { four_along_x<<<grid, dim3(TILE / BESIDE, TILE)>>>(scene); }},
        {"fast_exponential", [=] { fast_exponential<<<grid, dim3(TILE, TILE)>>>(scene); }},
        {"expert", [=] { expert<<<grid, dim3(TILE, TILE / 2)>>>(scene); }},
        {"expert_four_pixels", [=] { expert_four_pixels<<<grid, dim3(TILE, TILE / 4)>>>(scene); }},
        {"expert_one_pixel", [=] { expert_one_pixel<<<grid, dim3(TILE, TILE)>>>(scene); }},
    }, {{out, WIDTH * HEIGHT * 3}}, [] {}, arguments[1]);
}
