// Decoded video frames in NV12 (brightness, then pairs of colour differences for 2 by 2 pixels) become RGB bytes.
#include "../tried/tried.cuh"

constexpr int WIDTH = 3840, HEIGHT = 2160, FRAMES = 8;
constexpr size_t PIXELS = size_t(WIDTH) * HEIGHT;
struct Video { const unsigned char *frames; unsigned char *rgb; int width, height; };

__device__ __forceinline__ unsigned char clamped(float value) { return static_cast<unsigned char>(fminf(fmaxf(value, 0.f), 255.f)); }

__global__ void as_it_is(Video video) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= video.width || y >= video.height) return;
    const size_t pixels = size_t(video.width) * video.height;
    const unsigned char *frame = video.frames + blockIdx.z * (pixels * 3 / 2);
    const unsigned char *colour = frame + pixels + (y / 2) * video.width + x / 2 * 2;
    const float luma = 1.164f * (frame[size_t(y) * video.width + x] - 16.f), u = colour[0] - 128.f, v = colour[1] - 128.f;
    unsigned char *to = video.rgb + (blockIdx.z * pixels + size_t(y) * video.width + x) * 3;
    to[0] = clamped(fmaf(1.596f, v, luma));
    to[1] = clamped(fmaf(-0.392f, u, fmaf(-0.813f, v, luma)));
    to[2] = clamped(fmaf(2.017f, u, luma));
}

// First step, narrow access: 16 pixels a thread, 16 bytes an access; or four pixels, four bytes.
__device__ __forceinline__ void to_rgb(unsigned char brightness, unsigned char first, unsigned char second, unsigned char *to) {
    const float luma = 1.164f * (brightness - 16.f), u = first - 128.f, v = second - 128.f;
    to[0] = clamped(fmaf(1.596f, v, luma));
    to[1] = clamped(fmaf(-0.392f, u, fmaf(-0.813f, v, luma)));
    to[2] = clamped(fmaf(2.017f, u, luma));
}
template <class Word> __device__ __forceinline__ void wide(Video video) {
    constexpr int MANY = sizeof(Word);
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * MANY, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= video.width || y >= video.height) return;
    const size_t pixels = size_t(video.width) * video.height;
    const unsigned char *frame = video.frames + blockIdx.z * (pixels * 3 / 2);
    union Bytes { Word word; unsigned char byte[MANY]; };
    Bytes luma, colour, rgb[3];
    luma.word = *reinterpret_cast<const Word *>(frame + size_t(y) * video.width + x);
    colour.word = *reinterpret_cast<const Word *>(frame + pixels + (y / 2) * video.width + x);
#pragma unroll
    for (int k = 0; k < MANY; ++k) {
        unsigned char three[3];
        to_rgb(luma.byte[k], colour.byte[k / 2 * 2], colour.byte[k / 2 * 2 + 1], three);
        for (int c = 0; c < 3; ++c) rgb[(k * 3 + c) / MANY].byte[(k * 3 + c) % MANY] = three[c];
    }
    auto to = reinterpret_cast<Word *>(video.rgb + (blockIdx.z * pixels + size_t(y) * video.width + x) * 3);
    for (int k = 0; k < 3; ++k) to[k] = rgb[k].word;
}
__global__ void sixteen_pixels(Video video) { wide<uint4>(video); }
__global__ void four_pixels(Video video) { wide<unsigned>(video); }

// A lane makes eight pixels of two rows, which share their colours; bytes leave through shared memory, 16 at a time.
__device__ __forceinline__ float byte_of(unsigned word, int k) { return static_cast<float>(word >> 8 * k & 255u); }
__global__ void __launch_bounds__(128) expert(Video video) {
    __shared__ __align__(16) uint2 staged[4][2][96];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, strips = WIDTH / 256;
    const int strip = blockIdx.x * 4 + warp, x = strip % strips * 256, y = strip / strips * 2;
    if (y >= HEIGHT) return;
    const unsigned char *frame = video.frames + blockIdx.z * (PIXELS * 3 / 2);
    uint2 brightness[2];
    for (int row = 0; row < 2; ++row) brightness[row] = __ldcs(reinterpret_cast<const uint2 *>(frame + size_t(y + row) * WIDTH + x) + lane);
    const uint2 pairs = __ldcs(reinterpret_cast<const uint2 *>(frame + PIXELS + size_t(y / 2) * WIDTH + x) + lane);
    float u[4], v[4];
    for (int k = 0; k < 4; ++k) {
        const unsigned word = k < 2 ? pairs.x : pairs.y;
        u[k] = byte_of(word, k % 2 * 2) - 128.f, v[k] = byte_of(word, k % 2 * 2 + 1) - 128.f;
    }
    for (int row = 0; row < 2; ++row) {
        unsigned word[6] = {};
        for (int k = 0; k < 8; ++k) {
            const float luma = 1.164f * (byte_of(k < 4 ? brightness[row].x : brightness[row].y, k % 4) - 16.f);
            const float colours[3] = {fmaf(1.596f, v[k / 2], luma), fmaf(-0.392f, u[k / 2], fmaf(-0.813f, v[k / 2], luma)), fmaf(2.017f, u[k / 2], luma)};
            for (int c = 0; c < 3; ++c) {
                const int at = k * 3 + c;
                word[at / 4] |= static_cast<unsigned>(clamped(colours[c])) << at % 4 * 8;
            }
        }
        for (int k = 0; k < 3; ++k) staged[warp][row][lane * 3 + k] = make_uint2(word[2 * k], word[2 * k + 1]);
    }
    __syncwarp();
    auto from = reinterpret_cast<const uint4 *>(&staged[warp][0][0]);
    for (int k = lane; k < 96; k += 32) {
        unsigned char *line = video.rgb + (blockIdx.z * PIXELS + size_t(y + k / 48) * WIDTH + x) * 3;
        __stcs(reinterpret_cast<uint4 *>(line) + k % 48, from[k]);
    }
}

int main() {
    unsigned char *out = get<unsigned char>(PIXELS * FRAMES * 3);
    const Video video{drawn<unsigned char>(PIXELS * FRAMES * 3 / 2, 0, 256, 1), out, WIDTH, HEIGHT};
    judge({
        {"as_it_is", [=] { as_it_is<<<dim3(WIDTH / 16, HEIGHT / 16, FRAMES), dim3(16, 16)>>>(video); }},
        {"sixteen_pixels", [=] { sixteen_pixels<<<dim3(WIDTH / 256, HEIGHT / 16, FRAMES), dim3(16, 16)>>>(video); }},
        {"four_pixels", [=] { four_pixels<<<dim3(WIDTH / 64, HEIGHT / 16, FRAMES), dim3(16, 16)>>>(video); }},
        {"expert", [=] { expert<<<dim3(WIDTH / 256 * HEIGHT / 2 / 4, 1, FRAMES), 128>>>(video); }},
    }, {{out, PIXELS * FRAMES * 3, false}});
}
