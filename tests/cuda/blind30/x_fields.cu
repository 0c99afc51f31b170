// Video, photos and traces; words, digests and sequences; sorted pieces, filters and triangles.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "../pairs/pair.cuh"

namespace {

float unit(unsigned x) { return (hash(x) >> 8) * (1.0f / 16777216.0f); }

// --- decoded video to packed RGB ---

struct Nv12 {
    const unsigned char *luma, *chroma;  // chroma: u and v of 2 x 2 pixels side by side
    unsigned char *rgb;
    int width, height, frames;
};

__device__ __forceinline__ int clamp255(int x) { return min(max(x, 0), 255); }

// BT.601, video range. Red in the lowest byte.
__device__ __forceinline__ uchar3 yuv_to_rgb(int y, int u, int v) {
    y = 298 * (y - 16) + 128;
    u -= 128, v -= 128;
    return make_uchar3(clamp255((y + 409 * v) >> 8), clamp255((y - 100 * u - 208 * v) >> 8), clamp255((y + 516 * u) >> 8));
}

__global__ void nv12_to_rgb(Nv12 video) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= video.width || y >= video.height) return;
    const size_t pixels = static_cast<size_t>(video.width) * video.height;
    const unsigned char *luma = video.luma + blockIdx.z * pixels, *chroma = video.chroma + blockIdx.z * (pixels / 2);
    const size_t uv = static_cast<size_t>(y / 2) * video.width + (x & ~1);
    const uchar3 color = yuv_to_rgb(luma[static_cast<size_t>(y) * video.width + x], chroma[uv], chroma[uv + 1]);
    unsigned char *out = video.rgb + (blockIdx.z * pixels + static_cast<size_t>(y) * video.width + x) * 3;
    out[0] = color.x;
    out[1] = color.y;
    out[2] = color.z;
}

// Twelve bytes of four pixels as three words.
__device__ __forceinline__ uint3 pack(const uchar3 (&p)[4]) {
    return make_uint3(p[0].x | p[0].y << 8 | p[0].z << 16 | static_cast<unsigned>(p[1].x) << 24,
        p[1].y | p[1].z << 8 | p[2].x << 16 | static_cast<unsigned>(p[2].y) << 24,
        p[2].z | p[3].x << 8 | p[3].y << 16 | static_cast<unsigned>(p[3].z) << 24);
}

__global__ void nv12_to_rgb_quads(Nv12 video) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= video.width || y >= video.height) return;
    const size_t pixels = static_cast<size_t>(video.width) * video.height;
    const size_t at = blockIdx.z * pixels + static_cast<size_t>(y) * video.width + x;
    const uchar4 luma = *reinterpret_cast<const uchar4 *>(video.luma + at);
    const uchar4 uv = *reinterpret_cast<const uchar4 *>(video.chroma + blockIdx.z * (pixels / 2) + static_cast<size_t>(y / 2) * video.width + x);
    const uchar3 colors[4] = {yuv_to_rgb(luma.x, uv.x, uv.y), yuv_to_rgb(luma.y, uv.x, uv.y), yuv_to_rgb(luma.z, uv.z, uv.w), yuv_to_rgb(luma.w, uv.z, uv.w)};
    const uint3 words = pack(colors);
    unsigned *out = reinterpret_cast<unsigned *>(video.rgb + at * 3);
    out[0] = words.x, out[1] = words.y, out[2] = words.z;
}

// Two rows of eight pixels a thread, which share their chroma.
__global__ void nv12_to_rgb_tiles(Nv12 video) {
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    const int y = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
    if (x >= video.width || y >= video.height) return;
    const size_t pixels = static_cast<size_t>(video.width) * video.height;
    const size_t at = blockIdx.z * pixels + static_cast<size_t>(y) * video.width + x;
    const uint2 uv = *reinterpret_cast<const uint2 *>(video.chroma + blockIdx.z * (pixels / 2) + static_cast<size_t>(y / 2) * video.width + x);
    const uint2 lumas[2] = {*reinterpret_cast<const uint2 *>(video.luma + at), *reinterpret_cast<const uint2 *>(video.luma + at + video.width)};
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const uint2 luma = lumas[row];
        uint3 words[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const unsigned l = half ? luma.y : luma.x, c = half ? uv.y : uv.x;
            uchar3 colors[4];
#pragma unroll
            for (int k = 0; k < 4; k++) colors[k] = yuv_to_rgb(l >> (8 * k) & 255, c >> (k / 2 * 16) & 255, c >> (k / 2 * 16 + 8) & 255);
            words[half] = pack(colors);
        }
        uint2 *out = reinterpret_cast<uint2 *>(video.rgb + (at + row * video.width) * 3);
        out[0] = make_uint2(words[0].x, words[0].y);
        out[1] = make_uint2(words[0].z, words[1].x);
        out[2] = make_uint2(words[1].y, words[1].z);
    }
}

Study decoded("nv12_to_rgb_a_byte_at_a_time", "video", 12, "twelve frames of 3840 x 2160 pixels, 4:2:0, to packed RGB",
    "a pixel a thread: three loads of a byte and three stores of a byte, three bytes from the neighbour's",
    {{"quads", "four pixels a thread, in words of four bytes", {"narrow_access"}}, {"tiles", "two rows of eight pixels a thread, in words of eight bytes, chroma loaded once", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        Nv12 v{nullptr, nullptr, nullptr, 3840, 2160, static_cast<int>(n)};
        const size_t pixels = static_cast<size_t>(v.width) * v.height * n;
        v.luma = b.random<unsigned char>(pixels, 16, 236), v.chroma = b.random<unsigned char>(pixels / 2, 70, 186), v.rgb = b.output<unsigned char>(pixels * 3);
        const dim3 block(64, 4);
        return {{"flawed", launch(nv12_to_rgb, dim3(blocks(v.width, 64), blocks(v.height, 4), n), block, 0, v)},
            {"quads", launch(nv12_to_rgb_quads, dim3(blocks(v.width, 256), blocks(v.height, 4), n), block, 0, v)},
            {"tiles", launch(nv12_to_rgb_tiles, dim3(blocks(v.width, 8 * 32), blocks(v.height, 2 * 4), n), dim3(32, 4), 0, v)}};
    });

// --- many words looked for in one text ---

constexpr int CHUNK = 64, LONGEST = 16, LETTERS = 32, MOST_STATES = 384;

struct Automaton {
    const unsigned short *next;  // [state][letter]; the highest bit: a word ends here
    int states;
};

__device__ __forceinline__ void load_automaton(unsigned *table, const Automaton &a) {
    const unsigned *from = reinterpret_cast<const unsigned *>(a.next);
    for (int i = threadIdx.x; i < a.states * LETTERS / 2; i += blockDim.x) table[i] = from[i];
}

// One letter on; how many words end with it.
__device__ __forceinline__ unsigned step(unsigned &state, unsigned letter, const unsigned short *table) {
    const unsigned found = table[state * LETTERS + (letter & (LETTERS - 1))];
    state = found & 0x7fff;
    return found >> 15;
}

// Each thread reads its own piece, from a word's length before it on.
__global__ void __launch_bounds__(256) count_words(const unsigned char *__restrict__ text, Automaton a, int pieces, unsigned *matches) {
    __shared__ unsigned table[MOST_STATES * LETTERS / 2];
    load_automaton(table, a);
    __syncthreads();
    const unsigned short *next = reinterpret_cast<const unsigned short *>(table);
    for (int piece = blockIdx.x * 256 + threadIdx.x; piece < pieces; piece += gridDim.x * 256) {
        const unsigned char *own = text + static_cast<size_t>(piece) * CHUNK;
        unsigned state = 0, count = 0;
        if (piece > 0)
            for (int i = -LONGEST; i < 0; i++) step(state, own[i], next);
        for (int i = 0; i < CHUNK; i++) count += step(state, own[i], next);
        matches[piece] = count;
    }
}

__device__ __forceinline__ unsigned sixteen_steps(unsigned &state, uint4 letters, const unsigned short *next) {
    const unsigned words[4] = {letters.x, letters.y, letters.z, letters.w};
    unsigned count = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) count += step(state, words[k / 4] >> (k % 4 * 8), next);
    return count;
}

__global__ void __launch_bounds__(256) count_words_vectors(const unsigned char *__restrict__ text, Automaton a, int pieces, unsigned *matches) {
    __shared__ unsigned table[MOST_STATES * LETTERS / 2];
    load_automaton(table, a);
    __syncthreads();
    const unsigned short *next = reinterpret_cast<const unsigned short *>(table);
    for (int piece = blockIdx.x * 256 + threadIdx.x; piece < pieces; piece += gridDim.x * 256) {
        const uint4 *own = reinterpret_cast<const uint4 *>(text + static_cast<size_t>(piece) * CHUNK);
        unsigned state = 0, count = 0;
        if (piece > 0) sixteen_steps(state, own[-1], next);
        for (int i = 0; i < CHUNK / 16; i++) count += sixteen_steps(state, own[i], next);
        matches[piece] = count;
    }
}

// A warp's pieces pass through shared memory, 32 letters of each at a time.
constexpr int STAGE = 32, PITCH = STAGE / 4 + 1;
__global__ void __launch_bounds__(256) count_words_staged(const unsigned char *__restrict__ text, Automaton a, int pieces, unsigned *matches) {
    extern __shared__ unsigned all[];
    unsigned *table = all, *stage = all + MOST_STATES * LETTERS / 2 + threadIdx.x / 32 * 32 * PITCH;
    load_automaton(table, a);
    __syncthreads();
    const unsigned short *next = reinterpret_cast<const unsigned short *>(table);
    const int lane = threadIdx.x % 32;
    for (int piece = blockIdx.x * 256 + threadIdx.x; piece < pieces; piece += gridDim.x * 256) {
        const unsigned *own = reinterpret_cast<const unsigned *>(text + static_cast<size_t>(piece - lane) * CHUNK);
        unsigned state = 0, count = 0;
        if (piece > 0)
            for (int i = 0; i < LONGEST / 4; i++) {
                const unsigned four = own[lane * (CHUNK / 4) - LONGEST / 4 + i];
#pragma unroll
                for (int k = 0; k < 4; k++) step(state, four >> (8 * k), next);
            }
        for (int first = 0; first < CHUNK / 4; first += STAGE / 4) {
            __syncwarp();
#pragma unroll
            for (int row = lane / 8; row < 32; row += 4) stage[row * PITCH + lane % 8] = own[row * (CHUNK / 4) + first + lane % 8];
            __syncwarp();
#pragma unroll 2
            for (int i = 0; i < STAGE / 4; i++) {
                const unsigned four = stage[lane * PITCH + i];
#pragma unroll
                for (int k = 0; k < 4; k++) count += step(state, four >> (8 * k), next);
            }
        }
        matches[piece] = count;
    }
}

// The automaton of some words: a tree, completed with where to go on after a mismatch.
std::vector<unsigned short> automaton_of(const std::vector<std::string> &words) {
    std::vector<std::vector<int>> next(1, std::vector<int>(LETTERS, -1));
    std::vector<bool> ends(1, false);
    for (const std::string &word : words) {
        int state = 0;
        for (char c : word) {
            if (next[state][c & 31] < 0) {
                next[state][c & 31] = static_cast<int>(next.size());
                next.emplace_back(LETTERS, -1), ends.push_back(false);
            }
            state = next[state][c & 31];
        }
        ends[state] = true;
    }
    std::vector<int> queue{0}, fail(next.size(), 0);
    for (size_t i = 0; i < queue.size(); i++) {
        const int state = queue[i];
        if (ends[fail[state]]) ends[state] = true;
        for (int c = 0; c < LETTERS; c++) {
            const int there = next[state][c], otherwise = state ? next[fail[state]][c] : 0;
            if (there < 0) next[state][c] = otherwise;
            else fail[there] = otherwise, queue.push_back(there);
        }
    }
    std::vector<unsigned short> table;
    for (const std::vector<int> &row : next)
        for (int to : row) table.push_back(static_cast<unsigned short>(to | (ends[to] ? 0x8000 : 0)));
    return table;
}

Study keywords("keyword_scan_a_piece_of_text_per_thread", "text search", 1 << 26, "how often sixty words occur in each 64 bytes of a log of 64 MiB, by an Aho-Corasick automaton",
    "each thread reads its 64 bytes one by one: 32 lanes ask for 32 sectors with every load",
    {{"vectors", "sixteen bytes of its piece with one load", {"uncoalesced_access", "narrow_access"}}, {"staged", "pieces through shared memory, loaded by the whole warp, 32 bytes of each at a time", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<std::string> words, found;
        const auto word_of = [](unsigned seed, int length) {
            std::string word;
            for (int i = 0; i < length; i++) word += "etaoinshrdlucmfwypvbgkjqxz"[static_cast<int>(26 * unit(seed * 16 + i) * unit(seed * 16 + i + 77777))];
            return word;
        };
        for (unsigned i = 0; i < 60; i++) words.push_back(word_of(i + 1, 4 + hash(i) % 7));
        for (unsigned i = 0; i < 4000; i++) found.push_back(word_of(1000 + i, 2 + hash(i + 99) % 8));
        std::vector<unsigned char> text(n);
        const long written = n / 8;  // then again, from another place on
        for (long at = 0; at < written;) {
            const unsigned draw = hash(static_cast<unsigned>(at));
            const std::string &word = draw % 40 == 0 ? words[draw / 64 % words.size()] : found[draw / 64 % found.size()];
            const size_t length = std::min<size_t>(word.size(), written - at);
            std::memcpy(text.data() + at, word.data(), length);
            at += static_cast<long>(length);
            if (at < written) text[at++] = ' ';
        }
        for (long k = 1, shift = 1001; k < 8; k++, shift += 1001) {
            unsigned char *to = text.data() + k * written;
            std::memcpy(to, text.data() + shift, written - shift);
            std::memcpy(to + written - shift, text.data(), shift);
        }
        const std::vector<unsigned short> table = automaton_of(words);
        const Automaton a{b.copy(table), static_cast<int>(table.size() / LETTERS)};
        if (a.states > MOST_STATES) std::exit(2);
        const unsigned char *data = b.copy(text);
        unsigned *matches = b.output<unsigned>(n / CHUNK);
        const int pieces = static_cast<int>(n / CHUNK), many = multiprocessors();
        return {{"flawed", launch(count_words, 8 * many, 256, 0, data, a, pieces, matches)}, {"vectors", launch(count_words_vectors, 8 * many, 256, 0, data, a, pieces, matches)},
            {"staged", launch(count_words_staged, 6 * many, 256, (MOST_STATES * LETTERS / 2 + 256 * PITCH) * 4, data, a, pieces, matches)}};
    });

// --- what of a scene is drawn ---

struct Instance {
    float transform[12];
    float3 centre;
    float radius;
    unsigned mesh, material, flags, layer;
};
struct CullRecord {  // what culling needs of an instance
    float4 sphere;
    unsigned flags;
};
struct Camera {
    float4 planes[6];
    float3 eye;
    float pixels;  // of a sphere of radius one at distance one
};

// 0: not drawn; otherwise one more than the level of detail.
__device__ __forceinline__ unsigned char detail_of(float4 sphere, unsigned flags, const Camera &camera) {
    bool inside = flags & 1;
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const float4 p = camera.planes[k];
        inside &= fmaf(p.x, sphere.x, fmaf(p.y, sphere.y, fmaf(p.z, sphere.z, p.w))) > -sphere.w;
    }
    const float dx = sphere.x - camera.eye.x, dy = sphere.y - camera.eye.y, dz = sphere.z - camera.eye.z;
    const float size = sphere.w * camera.pixels * rsqrtf(fmaf(dx, dx, fmaf(dy, dy, dz * dz)));
    if (!inside || size < 1.0f) return 0;
    return size > 64.0f ? 1 : size > 16.0f ? 2 : size > 4.0f ? 3 : 4;
}

__global__ void __launch_bounds__(256) cull_instances(const Instance *instances, int count, Camera camera, unsigned char *details) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Instance &instance = instances[i];
    const float3 c = instance.centre;
    details[i] = detail_of(make_float4(c.x, c.y, c.z, instance.radius), instance.flags, camera);
}
__global__ void __launch_bounds__(256) cull_arrays(const float4 *spheres, const unsigned char *visible, int count, Camera camera, unsigned char *details) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) details[i] = detail_of(spheres[i], visible[i], camera);
}
__global__ void __launch_bounds__(256) cull_records(const CullRecord *records, int count, Camera camera, unsigned char *details) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) details[i] = detail_of(records[i].sphere, records[i].flags, camera);
}
__global__ void place_instances(Instance *instances, CullRecord *records, float4 *spheres, unsigned char *visible, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const auto draw = [i](unsigned k) { return (hash(hash(i) + k) >> 8) * (1.0f / 16777216.0f); };
    const float4 sphere = make_float4(400.0f * draw(1) - 200.0f, 400.0f * draw(2) - 200.0f, 400.0f * draw(3) - 200.0f, 0.05f + 2.0f * draw(4) * draw(5) * draw(6));
    const unsigned flags = (draw(7) < 0.9f) | hash(i) << 8;
    Instance &to = instances[i];
    for (int k = 0; k < 12; k++) to.transform[k] = k % 5 == 0;
    to.centre = make_float3(sphere.x, sphere.y, sphere.z), to.radius = sphere.w;
    to.mesh = i % 97, to.material = i % 31, to.flags = flags, to.layer = 0;
    records[i].sphere = spheres[i] = sphere;
    records[i].flags = flags, visible[i] = flags & 1;
}

Study culling("cull_spheres_inside_of_whole_instances", "rendering", 8 << 20, "which level of detail of 8388608 instances is drawn, by six planes and the size on the screen",
    "spheres and flags lie in records of 80 bytes, of which culling wants 20",
    {{"arrays", "spheres in an array of four floats, a byte for the flag", {"uncoalesced_access"}}, {"records", "records of 32 bytes with only what culling wants", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        Instance *instances = b.allocate<Instance>(n);
        CullRecord *records = b.allocate<CullRecord>(n);
        float4 *spheres = b.allocate<float4>(n);
        unsigned char *visible = b.allocate<unsigned char>(n), *details = b.output<unsigned char>(n);
        launch(place_instances, blocks(n, 256), 256, 0, instances, records, spheres, visible, n)();
        Camera camera{{}, make_float3(-150.0f, 10.0f, 0.0f), 900.0f};
        const float planes[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0.7f, 0.714f, 0}, {0.7f, -0.714f, 0}, {0.5f, 0, 0.866f}, {0.5f, 0, -0.866f}};
        for (int k = 0; k < 6; k++) camera.planes[k] = make_float4(planes[k][0], planes[k][1], planes[k][2], k == 1 ? 120.0f : planes[k][0] * 150.0f - planes[k][1] * 10.0f);
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(cull_instances, grid, 256, 0, instances, n, camera, details)}, {"arrays", launch(cull_arrays, grid, 256, 0, spheres, visible, n, camera, details)},
            {"records", launch(cull_records, grid, 256, 0, records, n, camera, details)}};
    });

// --- pseudonyms of people ---

constexpr int HASH_BLOCK = 256;

__constant__ unsigned SHA_K[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct Salt {
    unsigned words[6];
};
struct Digest {
    unsigned h[8];
};

__device__ __forceinline__ unsigned rotr(unsigned x, int by) { return __funnelshift_r(x, x, by); }
__device__ __forceinline__ unsigned small0(unsigned x) { return rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3); }
__device__ __forceinline__ unsigned small1(unsigned x) { return rotr(x, 17) ^ rotr(x, 19) ^ (x >> 10); }
__device__ __forceinline__ void sha_round(Digest &s, unsigned w, unsigned k) {
    const unsigned t1 = s.h[7] + (rotr(s.h[4], 6) ^ rotr(s.h[4], 11) ^ rotr(s.h[4], 25)) + ((s.h[4] & s.h[5]) ^ (~s.h[4] & s.h[6])) + k + w;
    const unsigned t2 = (rotr(s.h[0], 2) ^ rotr(s.h[0], 13) ^ rotr(s.h[0], 22)) + ((s.h[0] & s.h[1]) ^ (s.h[0] & s.h[2]) ^ (s.h[1] & s.h[2]));
    s.h[7] = s.h[6], s.h[6] = s.h[5], s.h[5] = s.h[4], s.h[4] = s.h[3] + t1;
    s.h[3] = s.h[2], s.h[2] = s.h[1], s.h[1] = s.h[0], s.h[0] = t1 + t2;
}
__device__ __forceinline__ Digest sha_start() {
    return {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}
// Word i of the one block that holds salt, number and padding.
__device__ __forceinline__ unsigned message_word(int i, const Salt &salt, unsigned long long id) {
    return i < 6 ? salt.words[i] : i == 6 ? static_cast<unsigned>(id >> 32) : i == 7 ? static_cast<unsigned>(id) : i == 8 ? 0x80000000u : i == 15 ? 256u : 0u;
}
__device__ __forceinline__ unsigned long long short_digest(const Digest &s) {
    return static_cast<unsigned long long>(s.h[0] + 0x6a09e667) << 32 | (s.h[1] + 0xbb67ae85);
}

__device__ void sha256_transform(Digest &s, const unsigned *data) {
    unsigned m[64];
    int i;
    for (i = 0; i < 16; ++i) m[i] = data[i];
#pragma unroll 4
    for (; i < 64; ++i) m[i] = small1(m[i - 2]) + m[i - 7] + small0(m[i - 15]) + m[i - 16];
#pragma unroll 4
    for (i = 0; i < 64; ++i) sha_round(s, m[i], SHA_K[i]);
}
__global__ void __launch_bounds__(HASH_BLOCK) pseudonyms(const unsigned long long *ids, Salt salt, unsigned long long *digests, int count) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const unsigned long long id = ids[at];
    unsigned data[16];
#pragma unroll
    for (int i = 0; i < 16; i++) data[i] = message_word(i, salt, id);
    Digest s = sha_start();
    sha256_transform(s, data);
    digests[at] = short_digest(s);
}

// The sixteen last words in registers, which the next sixteen replace.
__global__ void __launch_bounds__(HASH_BLOCK) pseudonyms_window(const unsigned long long *ids, Salt salt, unsigned long long *digests, int count) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const unsigned long long id = ids[at];
    unsigned w[16];
#pragma unroll
    for (int i = 0; i < 16; i++) w[i] = message_word(i, salt, id);
    Digest s = sha_start();
#pragma unroll 1
    for (int base = 0;; base += 16) {
#pragma unroll
        for (int i = 0; i < 16; i++) sha_round(s, w[i], SHA_K[base + i]);
        if (base == 48) break;
#pragma unroll
        for (int i = 0; i < 16; i++) w[i] += small1(w[(i + 14) & 15]) + w[(i + 9) & 15] + small0(w[(i + 1) & 15]);
    }
    digests[at] = short_digest(s);
}

// The sixteen last words in shared memory, a column a thread.
__global__ void __launch_bounds__(HASH_BLOCK) pseudonyms_ring(const unsigned long long *ids, Salt salt, unsigned long long *digests, int count) {
    __shared__ unsigned ring[16][HASH_BLOCK];
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const unsigned long long id = ids[at];
    unsigned (*const w)[HASH_BLOCK] = reinterpret_cast<unsigned (*)[HASH_BLOCK]>(&ring[0][threadIdx.x]);
#pragma unroll
    for (int i = 0; i < 16; i++) w[i][0] = message_word(i, salt, id);
    Digest s = sha_start();
#pragma unroll 4
    for (int i = 0; i < 16; i++) sha_round(s, w[i][0], SHA_K[i]);
#pragma unroll 4
    for (int i = 16; i < 64; i++) {
        const unsigned next = w[i & 15][0] + small1(w[(i - 2) & 15][0]) + w[(i - 7) & 15][0] + small0(w[(i - 15) & 15][0]);
        w[i & 15][0] = next;
        sha_round(s, next, SHA_K[i]);
    }
    digests[at] = short_digest(s);
}

Study sha("sha256_schedule_of_64_words_a_thread", "cryptography", 1 << 21, "the first 64 bits of SHA-256 over a salt and each of 2097152 numbers",
    "the message schedule is an array of 64 words that a loop indexes",
    {{"window", "sixteen words in registers, sixteen rounds at a time", {"local_memory"}}, {"ring", "the sixteen last words in shared memory, a column a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned long long> ids(n);
        for (long i = 0; i < n; i++) ids[i] = static_cast<unsigned long long>(hash(i)) << 20 ^ hash(i + 12345);
        const unsigned long long *data = b.copy(ids);
        unsigned long long *digests = b.output<unsigned long long>(n);
        const Salt salt{{0x5eed1234, 0x89abcdef, 0x00c0ffee, 0x31415926, 0x27182818, 0x16180339}};
        const unsigned grid = blocks(n, HASH_BLOCK);
        return {{"flawed", launch(pseudonyms, grid, HASH_BLOCK, 0, data, salt, digests, n)}, {"window", launch(pseudonyms_window, grid, HASH_BLOCK, 0, data, salt, digests, n)},
            {"ring", launch(pseudonyms_ring, grid, HASH_BLOCK, 0, data, salt, digests, n)}};
    });

// --- sorted pieces, for a merge sort ---

constexpr int PIECE = 2048;

__device__ __forceinline__ void order(unsigned &a, unsigned &b, bool up) {
    if ((a > b) == up) {
        const unsigned t = a;
        a = b, b = t;
    }
}

// A bitonic network: two keys a thread and step.
__global__ void __launch_bounds__(PIECE / 2) sort_pieces(const unsigned *keys, unsigned *sorted) {
    __shared__ unsigned piece[PIECE];
    const size_t first = blockIdx.x * size_t{PIECE};
    piece[threadIdx.x] = keys[first + threadIdx.x];
    piece[threadIdx.x + PIECE / 2] = keys[first + threadIdx.x + PIECE / 2];
    for (unsigned size = 2; size <= PIECE; size *= 2)
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const unsigned low = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            order(piece[low], piece[low + stride], (low & size) == 0);
        }
    __syncthreads();
    sorted[first + threadIdx.x] = piece[threadIdx.x];
    sorted[first + threadIdx.x + PIECE / 2] = piece[threadIdx.x + PIECE / 2];
}

// With strides of up to 32 a warp's 64 keys are nobody else's.
__global__ void __launch_bounds__(PIECE / 2) sort_pieces_warps(const unsigned *keys, unsigned *sorted) {
    __shared__ unsigned piece[PIECE];
    const size_t first = blockIdx.x * size_t{PIECE};
    piece[threadIdx.x] = keys[first + threadIdx.x];
    piece[threadIdx.x + PIECE / 2] = keys[first + threadIdx.x + PIECE / 2];
    __syncthreads();
    for (unsigned size = 2; size <= PIECE; size *= 2) {
        unsigned stride = size / 2;
        for (; stride > 32; stride /= 2) {
            __syncthreads();
            const unsigned low = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            order(piece[low], piece[low + stride], (low & size) == 0);
        }
        if (size > 64) __syncthreads();
        for (; stride > 0; stride /= 2) {
            __syncwarp();
            const unsigned low = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            order(piece[low], piece[low + stride], (low & size) == 0);
        }
    }
    __syncthreads();
    sorted[first + threadIdx.x] = piece[threadIdx.x];
    sorted[first + threadIdx.x + PIECE / 2] = piece[threadIdx.x + PIECE / 2];
}

// Four keys a thread: strides of one and two in registers, up to 64 by shuffles, the rest through shared memory.
constexpr int OWN = 4;
__global__ void __launch_bounds__(PIECE / OWN) sort_pieces_registers(const unsigned *keys, unsigned *sorted) {
    __shared__ uint4 piece[PIECE / OWN];
    const int t = threadIdx.x;
    const size_t first = blockIdx.x * size_t{PIECE / OWN} + t;
    const uint4 loaded = reinterpret_cast<const uint4 *>(keys)[first];
    unsigned key[OWN] = {loaded.x, loaded.y, loaded.z, loaded.w};
    for (int size = 2; size <= PIECE; size *= 2) {
        const bool up = (t * OWN & size) == 0;
        int stride = size / 2;
        for (; stride > 16 * OWN; stride /= 2) {
            __syncthreads();
            piece[t] = make_uint4(key[0], key[1], key[2], key[3]);
            __syncthreads();
            const uint4 partner = piece[t ^ (stride / OWN)];
            const bool least = up == ((t & (stride / OWN)) == 0);
            key[0] = least ? min(key[0], partner.x) : max(key[0], partner.x);
            key[1] = least ? min(key[1], partner.y) : max(key[1], partner.y);
            key[2] = least ? min(key[2], partner.z) : max(key[2], partner.z);
            key[3] = least ? min(key[3], partner.w) : max(key[3], partner.w);
        }
        for (; stride >= OWN; stride /= 2) {
            const bool least = up == ((t & (stride / OWN)) == 0);
#pragma unroll
            for (int k = 0; k < OWN; k++) {
                const unsigned partner = __shfl_xor_sync(~0u, key[k], stride / OWN);
                key[k] = least ? min(key[k], partner) : max(key[k], partner);
            }
        }
        if (size == 2) {
            order(key[0], key[1], true), order(key[2], key[3], false);
        } else {
            order(key[0], key[2], up), order(key[1], key[3], up);
            order(key[0], key[1], up), order(key[2], key[3], up);
        }
    }
    reinterpret_cast<uint4 *>(sorted)[first] = make_uint4(key[0], key[1], key[2], key[3]);
}

Study bitonic("sort_pieces_a_barrier_each_of_66_steps", "sorting", 4096, "each of 4096 pieces of 2048 keys sorted by a bitonic network, a block a piece",
    "all of a block's 32 warps wait for each other after each of 66 steps",
    {{"warps", "a barrier among the block only where a stride leaves the warp's 64 keys", {"barriers"}}, {"registers", "four keys a thread, short strides by registers and shuffles", {"barriers", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *keys = b.random<unsigned>(n * PIECE, 0.0, 4294967295.0);
        unsigned *sorted = b.output<unsigned>(n * PIECE);
        return {{"flawed", launch(sort_pieces, n, PIECE / 2, 0, keys, sorted)}, {"warps", launch(sort_pieces_warps, n, PIECE / 2, 0, keys, sorted)},
            {"registers", launch(sort_pieces_registers, n, PIECE / OWN, 0, keys, sorted)}};
    });

// --- sums over all that lies left and above ---

struct Images {
    const unsigned *rows;  // sums along the rows
    unsigned *integral;
    int width, height;
};
__device__ __forceinline__ size_t image_start(const Images &im) { return static_cast<size_t>(blockIdx.y) * im.width * im.height; }

// Down the columns, a column a thread.
__global__ void __launch_bounds__(256) sum_columns(Images im) {
    const unsigned *__restrict__ from = im.rows + image_start(im) + blockIdx.x * 256 + threadIdx.x;
    unsigned *__restrict__ to = im.integral + (from - im.rows);
    unsigned sum = 0;
#pragma unroll 4
    for (int y = 0; y < im.height; y++) {
        sum += from[static_cast<size_t>(y) * im.width];
        to[static_cast<size_t>(y) * im.width] = sum;
    }
}

template <int AHEAD>
__global__ void __launch_bounds__(256) sum_columns_ahead(Images im) {
    const unsigned *__restrict__ from = im.rows + image_start(im) + blockIdx.x * 256 + threadIdx.x;
    unsigned *__restrict__ to = im.integral + (from - im.rows);
    unsigned sum = 0, values[AHEAD], next[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; k++) values[k] = from[k * im.width];
    for (int y = 0; y < im.height; y += AHEAD) {
        if (y + AHEAD < im.height) {
#pragma unroll
            for (int k = 0; k < AHEAD; k++) next[k] = from[static_cast<size_t>(y + AHEAD + k) * im.width];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            sum += values[k];
            to[static_cast<size_t>(y + k) * im.width] = sum;
            values[k] = next[k];
        }
    }
}

// 32 columns a block; sixteen warps with eight rows each sum them first, then know what is above.
__global__ void __launch_bounds__(512) sum_columns_strips(Images im) {
    __shared__ unsigned sums[2][16][32];
    const int strip = threadIdx.y, lane = threadIdx.x;
    const unsigned *__restrict__ from = im.rows + image_start(im) + static_cast<size_t>(strip) * 8 * im.width + blockIdx.x * 32 + lane;
    unsigned *__restrict__ to = im.integral + (from - im.rows);
    unsigned above = 0;
    for (int y = 0, turn = 0; y < im.height; y += 128, turn ^= 1) {
        unsigned values[8], sum = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) values[k] = from[static_cast<size_t>(y + k) * im.width];
#pragma unroll
        for (int k = 0; k < 8; k++) values[k] = sum += values[k];
        sums[turn][strip][lane] = sum;
        __syncthreads();
        unsigned before = above;
#pragma unroll
        for (int s = 0; s < 16; s++) {
            const unsigned one = sums[turn][s][lane];
            before += s < strip ? one : 0;
            above += one;
        }
#pragma unroll
        for (int k = 0; k < 8; k++) to[static_cast<size_t>(y + k) * im.width] = before + values[k];
    }
}

Study integral("integral_image_columns_one_walker_each", "images", 16, "sums down the columns of sixteen images of 2048 x 2048 whose rows are summed already",
    "a thread walks down each column, four rows at a time: 128 blocks with little in flight",
    {{"ahead", "sixteen rows loaded ahead of those that are added", {"memory_latency"}}, {"strips", "sixteen warps for 32 columns, with eight rows each", {"memory_latency", "small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        Images im{nullptr, nullptr, 2048, 2048};
        const size_t pixels = static_cast<size_t>(n) * im.width * im.height;
        im.rows = b.random<unsigned>(pixels, 0, 2048 * 200), im.integral = b.output<unsigned>(pixels);
        return {{"flawed", launch(sum_columns, dim3(im.width / 256, n), 256, 0, im)}, {"ahead", launch(sum_columns_ahead<16>, dim3(im.width / 256, n), 256, 0, im)},
            {"strips", launch(sum_columns_strips, dim3(im.width / 32, n), dim3(32, 16), 0, im)}};
    });

// --- where edges point ---

constexpr int BINS = 9, CELL = 8;

struct Hog {
    const float *image;
    float *cells;  // [row of cells][cell][bin]
    int width, height;
};

// Of nine directions over half a turn: how many of the eight borders between them lie before this gradient.
__device__ __forceinline__ int direction_bin(float gx, float gy) {
    const float side[8][2] = {{0.93969262f, 0.34202014f}, {0.76604444f, 0.64278761f}, {0.5f, 0.86602540f}, {0.17364818f, 0.98480775f},
        {-0.17364818f, 0.98480775f}, {-0.5f, 0.86602540f}, {-0.76604444f, 0.64278761f}, {-0.93969262f, 0.34202014f}};
    if (gy < 0.0f || (gy == 0.0f && gx < 0.0f)) gx = -gx, gy = -gy;
    int bin = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) bin += fmaf(side[k][0], gy, -(side[k][1] * gx)) >= 0.0f;
    return bin;
}
__device__ __forceinline__ float strength(float gx, float gy) {
    const float square = fmaf(gx, gx, gy * gy);
    return square * rsqrtf(square + 1e-12f);
}

// A pixel a thread, four cells a block.
__global__ void __launch_bounds__(256) orientation_cells(Hog h) {
    __shared__ float sums[4][BINS];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * CELL + threadIdx.y, t = threadIdx.y * 32 + threadIdx.x;
    if (t < 4 * BINS) (&sums[0][0])[t] = 0.0f;
    __syncthreads();
    const float *row = h.image + static_cast<size_t>(y) * h.width;
    const float gx = row[min(x + 1, h.width - 1)] - row[max(x - 1, 0)];
    const float gy = h.image[static_cast<size_t>(min(y + 1, h.height - 1)) * h.width + x] - h.image[static_cast<size_t>(max(y - 1, 0)) * h.width + x];
    atomicAdd(&sums[threadIdx.x / CELL][direction_bin(gx, gy)], strength(gx, gy));
    __syncthreads();
    if (t < 4 * BINS) h.cells[(static_cast<size_t>(blockIdx.y) * (h.width / CELL) + blockIdx.x * 4) * BINS + t] = (&sums[0][0])[t];
}

// Calls add(bin, strength) for the eight pixels of a column of a cell.
template <typename Add>
__device__ __forceinline__ void down_a_column(const Hog &h, int x, int first, Add add) {
    const int left = max(x - 1, 0), right = min(x + 1, h.width - 1);
    const float *row = h.image + static_cast<size_t>(first) * h.width;
    float above = first ? row[x - h.width] : row[x], here = row[x];
#pragma unroll
    for (int k = 0; k < CELL; k++, row += h.width) {
        const float below = first + k + 1 < h.height ? row[h.width + x] : here;
        const float gx = row[right] - row[left], gy = below - above;
        add(direction_bin(gx, gy), strength(gx, gy));
        above = here, here = below;
    }
}

// A column of a cell a thread, with its sums in registers.
__global__ void __launch_bounds__(256) orientation_cells_registers(Hog h) {
    const int x = blockIdx.x * 256 + threadIdx.x;
    float sums[BINS] = {};
    down_a_column(h, x, blockIdx.y * CELL, [&](int bin, float value) {
#pragma unroll
        for (int k = 0; k < BINS; k++) sums[k] += k == bin ? value : 0.0f;
    });
    float *to = h.cells + (static_cast<size_t>(blockIdx.y) * (h.width / CELL) + x / CELL) * BINS;
#pragma unroll
    for (int k = 0; k < BINS; k++) {
        float sum = sums[k];
        for (int offset = CELL / 2; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
        if (k % CELL == threadIdx.x % CELL) to[k] = sum;
    }
}

// A column of a cell a thread, with its own sums in shared memory.
__global__ void __launch_bounds__(256) orientation_cells_private(Hog h) {
    __shared__ __align__(16) float sums[BINS][256];
    const int t = threadIdx.x;
#pragma unroll
    for (int k = 0; k < BINS; k++) sums[k][t] = 0.0f;
    down_a_column(h, blockIdx.x * 256 + t, blockIdx.y * CELL, [&](int bin, float value) { sums[bin][t] += value; });
    __syncthreads();
    float *to = h.cells + (static_cast<size_t>(blockIdx.y) * (h.width / CELL) + blockIdx.x * 32) * BINS;
    for (int i = t; i < 32 * BINS; i += 256) {
        const float4 *parts = reinterpret_cast<const float4 *>(&sums[i % BINS][i / BINS * CELL]);
        const float4 a = parts[0], b = parts[1];
        to[i] = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
    }
}

__global__ void paint_edges(float *image, int width, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int x = i % width, y = i / width, patch = hash((y / 96) * 977 + x / 96);
    const float angle = (patch & 1023) * (6.2831853f / 1024.0f), wave = (0.1f + 0.3f * (patch >> 10 & 255) / 255.0f) * (x * cosf(angle) + y * sinf(angle));
    image[i] = 128.0f + 90.0f * sinf(wave) + 0.1f * (hash(i) >> 24);
}

Study hog("hog_cells_floats_added_in_shared_memory", "computer vision", 4096, "strength of edges in nine directions, for each cell of 8 x 8 pixels of an image of 8192 x 4096",
    "every pixel adds a float to one of its cell's nine sums in shared memory",
    {{"registers", "a column of a cell a thread, nine sums in registers, shuffles at the end", {"shared_atomics"}}, {"private", "a column of a cell a thread, nine sums of its own in shared memory", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        Hog h{nullptr, nullptr, static_cast<int>(2 * n), static_cast<int>(n)};
        const long pixels = 2 * n * n;
        float *image = b.allocate<float>(pixels);
        launch(paint_edges, blocks(pixels, 256), 256, 0, image, h.width, pixels)();
        h.image = image, h.cells = b.output<float>(pixels / (CELL * CELL) * BINS);
        return {{"flawed", launch(orientation_cells, dim3(h.width / 32, n / CELL), dim3(32, CELL), 0, h)},
            {"registers", launch(orientation_cells_registers, dim3(h.width / 256, n / CELL), 256, 0, h)},
            {"private", launch(orientation_cells_private, dim3(h.width / 256, n / CELL), 256, 0, h)}};
    });

// --- where people have been ---

constexpr int MAP = 2048;

__device__ __forceinline__ int map_cell(float2 p) {
    const int x = min(max(static_cast<int>(p.x), 0), MAP - 1), y = min(max(static_cast<int>(p.y), 0), MAP - 1);
    return y * MAP + x;
}

__global__ void __launch_bounds__(256) heat_map(const float2 *__restrict__ fixes, int count, unsigned *visits) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) atomicAdd(&visits[map_cell(fixes[i])], 1u);
}

// Neighbours in one cell are counted by the first of them.
__global__ void __launch_bounds__(256) heat_map_heads(const float2 *__restrict__ fixes, int count, unsigned *visits) {
    const int lane = threadIdx.x % 32;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i - lane < count; i += gridDim.x * blockDim.x) {
        const int cell = i < count ? map_cell(fixes[i]) : -1;
        const int before = __shfl_up_sync(~0u, cell, 1);
        const bool head = lane == 0 || cell != before;
        const unsigned heads = __ballot_sync(~0u, head);
        const unsigned later = lane == 31 ? 0 : heads >> (lane + 1);
        const unsigned run = later ? __ffs(later) : 32 - lane;
        if (head && cell >= 0) atomicAdd(&visits[cell], run);
    }
}

// Eight fixes in a row a thread.
__global__ void __launch_bounds__(256) heat_map_runs(const float2 *__restrict__ fixes, int count, unsigned *visits) {
    const float4 *pairs_of = reinterpret_cast<const float4 *>(fixes);
    for (int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8; first < count; first += gridDim.x * blockDim.x * 8) {
        float4 p[4];
#pragma unroll
        for (int k = 0; k < 4; k++) p[k] = pairs_of[first / 2 + k];
        int cell = map_cell(make_float2(p[0].x, p[0].y));
        unsigned run = 1;
#pragma unroll
        for (int k = 1; k < 8; k++) {
            const int next = map_cell(k % 2 ? make_float2(p[k / 2].z, p[k / 2].w) : make_float2(p[k / 2].x, p[k / 2].y));
            if (next != cell) {
                atomicAdd(&visits[cell], run);
                cell = next, run = 0;
            }
            run++;
        }
        atomicAdd(&visits[cell], run);
    }
}

Study heat("gps_heat_map_an_atomic_a_fix", "geography", 16 << 20, "how many of 16777216 positions, trip after trip, lie in each of 2048 x 2048 cells",
    "an atomic in global memory for each position, although a trip stays in a cell for several",
    {{"heads", "neighbouring lanes in one cell counted by the first of them", {"global_atomics"}}, {"runs", "eight positions in a row a thread, an atomic where the cell changes", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> fixes(n);
        unsigned noise = 30;
        constexpr long trip = 4096;
        for (long first = 0; first < n; first += trip) {
            const unsigned seed = hash(static_cast<unsigned>(first / trip) + 5);
            const float far = 900.0f * unit(seed) * unit(seed + 1), turn = 6.2831853f * unit(seed + 2);
            float x = 1024 + far * std::cos(turn), y = 1024 + far * std::sin(turn), dx = 0, dy = 0, speed = 0.2f;
            for (long i = first; i < std::min(n, first + trip); i++) {
                if (i % 64 == 0) {
                    const unsigned draw = hash(seed + static_cast<unsigned>(i));
                    speed = draw % 4 ? 0.02f + 0.3f * unit(draw) * unit(draw + 1) : 0.0f;  // now and then a stop
                    dx = draw & 64 ? 0.0f : draw & 128 ? speed : -speed, dy = draw & 64 ? (draw & 128 ? speed : -speed) : 0.0f;
                }
                noise = noise * 1664525u + 1013904223u;
                x += dx, y += dy;
                fixes[i] = make_float2(x + 1.2e-4f * (noise >> 24), y + 1.2e-4f * (noise >> 16 & 255));
            }
        }
        const float2 *data = b.copy(fixes);
        unsigned *visits = b.output<unsigned>(MAP * MAP, true);
        const unsigned grid = multiprocessors() * 8;
        return {{"flawed", launch(heat_map, grid, 256, 0, data, n, visits)}, {"heads", launch(heat_map_heads, grid, 256, 0, data, n, visits)}, {"runs", launch(heat_map_runs, grid, 256, 0, data, n, visits)}};
    });

// --- rows that may find a partner ---

constexpr int PROBES = 4;
using u64 = unsigned long long;

struct Bloom {
    const unsigned *words;
    u64 bits;     // a prime
    u64 inverse;  // 2^64 divided by it
};

__host__ __device__ __forceinline__ u64 mix(u64 x) {
    x ^= x >> 33, x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}
__device__ __forceinline__ unsigned bit_at(const unsigned *__restrict__ words, unsigned at) { return words[at / 32] >> (at % 32) & 1; }

// The i-th bit of a key: the first half of its hash, and i times the second.
__global__ void __launch_bounds__(256) may_match(const u64 *__restrict__ keys, int count, Bloom filter, unsigned char *__restrict__ may) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    const u64 h = mix(keys[row]);
    const u64 h1 = h & 0xffffffff, h2 = h >> 32;
    unsigned all = 1;
#pragma unroll
    for (int i = 0; i < PROBES; i++) all &= bit_at(filter.words, (h1 + i * h2) % filter.bits);
    may[row] = all;
}
__global__ void __launch_bounds__(256) may_match_steps(const u64 *__restrict__ keys, int count, Bloom filter, unsigned char *__restrict__ may) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    const u64 h = mix(keys[row]);
    const unsigned bits = static_cast<unsigned>(filter.bits), by = static_cast<unsigned>(h >> 32) % bits;
    unsigned at = static_cast<unsigned>(h) % bits, all = 1;
#pragma unroll
    for (int i = 0; i < PROBES; i++) {
        all &= bit_at(filter.words, at);
        at += by;
        if (at >= bits) at -= bits;
    }
    may[row] = all;
}
__global__ void __launch_bounds__(256) may_match_reciprocal(const u64 *__restrict__ keys, int count, Bloom filter, unsigned char *__restrict__ may) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    const u64 h = mix(keys[row]);
    const u64 h1 = h & 0xffffffff, h2 = h >> 32;
    const unsigned bits = static_cast<unsigned>(filter.bits);
    unsigned all = 1;
#pragma unroll
    for (int i = 0; i < PROBES; i++) {
        const u64 x = h1 + i * h2;
        unsigned rest = static_cast<unsigned>(x) - static_cast<unsigned>(__umul64hi(x, filter.inverse)) * bits;
        if (rest >= bits) rest -= bits;
        all &= bit_at(filter.words, rest);
    }
    may[row] = all;
}

Study bloom("bloom_probe_four_remainders_of_64_bits", "databases", 8 << 20, "which of 8388608 rows may find a partner, by four bits each of a filter of 1048573 bits",
    "the place of each bit is the remainder of a division of 64 bits",
    {{"steps", "two remainders of 32 bits, then sums that wrap around", {"integer_arithmetic"}}, {"reciprocal", "products with the reciprocal", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const u64 bits = 1048573;
        std::vector<unsigned> words(bits / 32 + 1, 0);
        const auto key_of = [](unsigned i) { return static_cast<u64>(hash(i)) * 1000003 + 17; };
        for (unsigned i = 0; i < 110000; i++) {
            const u64 h = mix(key_of(i));
            for (u64 k = 0; k < PROBES; k++) {
                const u64 at = ((h & 0xffffffff) + k * (h >> 32)) % bits;
                words[at / 32] |= 1u << (at % 32);
            }
        }
        std::vector<u64> keys(n);
        for (long i = 0; i < n; i++) {
            const unsigned draw = hash(static_cast<unsigned>(i) + 1);
            keys[i] = key_of(draw % 10 < 3 ? draw / 16 % 110000 : draw | 1u << 20);
        }
        const Bloom filter{b.copy(words), bits, ~u64{0} / bits};
        const u64 *data = b.copy(keys);
        unsigned char *may = b.output<unsigned char>(n);
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(may_match, grid, 256, 0, data, n, filter, may)}, {"steps", launch(may_match_steps, grid, 256, 0, data, n, filter, may)},
            {"reciprocal", launch(may_match_reciprocal, grid, 256, 0, data, n, filter, may)}};
    });

// --- depth of small triangles ---

constexpr int SCREEN = 2048, SUB = 16;  // pixels of a side, steps of a pixel

struct Triangle {
    int4 ab;  // two corners, in steps
    int2 c;
    unsigned depth, material;
};
struct Box {
    int left, top, width, height;
};

__device__ __forceinline__ Box box_of(const Triangle &t) {
    const int left = max((min(min(t.ab.x, t.ab.z), t.c.x) + SUB / 2 - 1) / SUB, 0), right = min((max(max(t.ab.x, t.ab.z), t.c.x) - SUB / 2) / SUB, SCREEN - 1);
    const int top = max((min(min(t.ab.y, t.ab.w), t.c.y) + SUB / 2 - 1) / SUB, 0), bottom = min((max(max(t.ab.y, t.ab.w), t.c.y) - SUB / 2) / SUB, SCREEN - 1);
    return {left, top, right - left + 1, bottom - top + 1};
}
// Whether a pixel's centre lies on the inner side of all edges (corners run counterclockwise).
__device__ __forceinline__ bool covers(const Triangle &t, int x, int y) {
    const int px = x * SUB + SUB / 2, py = y * SUB + SUB / 2;
    const int e0 = (t.ab.z - t.ab.x) * (py - t.ab.y) - (t.ab.w - t.ab.y) * (px - t.ab.x);
    const int e1 = (t.c.x - t.ab.z) * (py - t.ab.w) - (t.c.y - t.ab.w) * (px - t.ab.z);
    const int e2 = (t.ab.x - t.c.x) * (py - t.c.y) - (t.ab.y - t.c.y) * (px - t.c.x);
    return (e0 | e1 | e2) >= 0;
}
__device__ __forceinline__ void draw(const Triangle &t, int x, int y, unsigned *depth) {
    if (covers(t, x, y)) atomicMin(depth + y * SCREEN + x, t.depth);
}
__device__ __forceinline__ Triangle load_triangle(const Triangle *triangles, int i) {
    const int4 ab = triangles[i].ab, rest = *reinterpret_cast<const int4 *>(&triangles[i].c);
    return {ab, make_int2(rest.x, rest.y), static_cast<unsigned>(rest.z), static_cast<unsigned>(rest.w)};
}

__global__ void __launch_bounds__(256) depth_pass(const Triangle *triangles, int count, unsigned *depth) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Triangle t = load_triangle(triangles, i);
    const Box box = box_of(t);
    for (int y = box.top; y < box.top + box.height; y++)
        for (int x = box.left; x < box.left + box.width; x++) draw(t, x, y, depth);
}

// Eight lanes a triangle, four pixels by two at a time.
__global__ void __launch_bounds__(256) depth_pass_lanes(const Triangle *triangles, int count, unsigned *depth) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    if (i >= count) return;
    const Triangle t = load_triangle(triangles, i);
    const Box box = box_of(t);
    for (int y = lane / 4; y < box.height; y += 2)
        for (int x = lane % 4; x < box.width; x += 4) draw(t, box.left + x, box.top + y, depth);
}

// Small ones a thread each; the block's others wait for its warps.
constexpr int SMALL = 20;
__global__ void __launch_bounds__(256) depth_pass_queue(const Triangle *triangles, int count, unsigned *depth) {
    __shared__ int waiting[256], many;
    if (threadIdx.x == 0) many = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        const Triangle t = load_triangle(triangles, i);
        const Box box = box_of(t);
        if (box.width * box.height > SMALL) waiting[atomicAdd(&many, 1)] = i;
        else
            for (int y = box.top; y < box.top + box.height; y++)
                for (int x = box.left; x < box.left + box.width; x++) draw(t, x, y, depth);
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int w = threadIdx.x / 32; w < many; w += 8) {
        const Triangle t = load_triangle(triangles, waiting[w]);
        const Box box = box_of(t);
        for (int y = lane / 8; y < box.height; y += 4)
            for (int x = lane % 8; x < box.width; x += 8) draw(t, box.left + x, box.top + y, depth);
    }
}

Study depths("depth_pass_a_triangle_per_thread", "rendering", 1 << 20, "depths of 2048 x 2048 pixels under 1048576 triangles, most of them of a few pixels",
    "a thread walks over all pixels of its triangle's box, and a warp waits for the largest of 32",
    {{"lanes", "eight lanes a triangle", {"branch_divergence"}}, {"queue", "large ones left to whole warps", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Triangle> triangles(n);
        constexpr long object = 512;
        for (long i = 0; i < n; i++) {
            const unsigned whole = hash(static_cast<unsigned>(i / object) + 31), own = hash(static_cast<unsigned>(i) * 3 + 1);
            const auto bell = [](unsigned seed) { return 3.4f * (unit(seed) + unit(seed + 1) + unit(seed + 2) - 1.5f) * 0.588f; };
            const float radius = std::min(2.2f * std::exp(0.3f * bell(whole) + 0.5f * bell(own)), 40.0f);
            const float spread = 40.0f + 160.0f * unit(whole + 9), x = 100 + 1848 * unit(whole + 7) + spread * (unit(own + 5) - 0.5f), y = 100 + 1848 * unit(whole + 8) + spread * (unit(own + 6) - 0.5f);
            float turn = 6.2831853f * unit(own + 7);
            int corner[3][2];
            for (auto &at : corner) {
                at[0] = static_cast<int>(SUB * (x + radius * std::cos(turn))), at[1] = static_cast<int>(SUB * (y + radius * std::sin(turn)));
                turn += 1.4f + 1.2f * unit(own + at[0]);
            }
            triangles[i] = {make_int4(corner[0][0], corner[0][1], corner[1][0], corner[1][1]), make_int2(corner[2][0], corner[2][1]), (whole >> 12 << 8) + (own & 0xffff), 0};
        }
        const Triangle *data = b.copy(triangles);
        unsigned *depth = b.output<unsigned>(SCREEN * SCREEN);  // as far as can be, before each launch
        return {{"flawed", launch(depth_pass, blocks(n, 256), 256, 0, data, n, depth)}, {"lanes", launch(depth_pass_lanes, blocks(n, 32), 256, 0, data, n, depth)},
            {"queue", launch(depth_pass_queue, blocks(n, 256), 256, 0, data, n, depth)}};
    });

// --- thumbnails of photos, averaged in light ---

struct Photos {
    const uchar4 *pixels;
    float *thumbnails;  // [photo][channel][row][column]
    int width, height;  // of a photo
};

__device__ __forceinline__ float to_light(float c) { return c <= 0.04045f ? c * (1.0f / 12.92f) : powf((c + 0.055f) * (1.0f / 1.055f), 2.4f); }
__device__ __forceinline__ float from_light(float l) { return l <= 0.0031308f ? l * 12.92f : 1.055f * powf(l, 1.0f / 2.4f) - 0.055f; }
__device__ __forceinline__ float to_light_fast(float c) { return c <= 0.04045f ? c * (1.0f / 12.92f) : __powf((c + 0.055f) * (1.0f / 1.055f), 2.4f); }
__device__ __forceinline__ float from_light_fast(float l) { return l <= 0.0031308f ? l * 12.92f : 1.055f * __powf(l, 1.0f / 2.4f) - 0.055f; }

// Light of 4 x 4 pixels; `light` tells that of a byte.
template <typename Light>
__device__ __forceinline__ float3 box_of_light(const Photos &p, int x, int y, Light light) {
    const uchar4 *from = p.pixels + (static_cast<size_t>(blockIdx.z) * p.height + y * 4) * p.width + x * 4;
    uint4 rows[4];
#pragma unroll
    for (int r = 0; r < 4; r++) rows[r] = *reinterpret_cast<const uint4 *>(from + r * p.width);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const unsigned four[4] = {rows[r].x, rows[r].y, rows[r].z, rows[r].w};
#pragma unroll
        for (int k = 0; k < 4; k++) sum.x += light(four[k] & 255), sum.y += light(four[k] >> 8 & 255), sum.z += light(four[k] >> 16 & 255);
    }
    return make_float3(sum.x / 16, sum.y / 16, sum.z / 16);
}
__device__ __forceinline__ void store_thumbnail(const Photos &p, int x, int y, float3 color) {
    const int width = p.width / 4, height = p.height / 4;
    float *to = p.thumbnails + (static_cast<size_t>(blockIdx.z) * 3 * height + y) * width + x;
    to[0] = color.x, to[static_cast<size_t>(width) * height] = color.y, to[2 * static_cast<size_t>(width) * height] = color.z;
}

__global__ void __launch_bounds__(256) thumbnails(Photos p) {
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    const uchar4 *from = p.pixels + (static_cast<size_t>(blockIdx.z) * p.height + y * 4) * p.width + x * 4;
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int r = 0; r < 4; r++) {
        const uint4 row = *reinterpret_cast<const uint4 *>(from + r * p.width);
        const unsigned four[4] = {row.x, row.y, row.z, row.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            sum.x += to_light((four[k] & 255) * (1.0f / 255.0f));
            sum.y += to_light((four[k] >> 8 & 255) * (1.0f / 255.0f));
            sum.z += to_light((four[k] >> 16 & 255) * (1.0f / 255.0f));
        }
    }
    store_thumbnail(p, x, y, make_float3(from_light(sum.x / 16), from_light(sum.y / 16), from_light(sum.z / 16)));
}
__global__ void __launch_bounds__(256) thumbnails_table(Photos p) {
    __shared__ float table[256];
    const int t = threadIdx.y * 64 + threadIdx.x;
    table[t] = to_light(t * (1.0f / 255.0f));
    __syncthreads();
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    const float3 light = box_of_light(p, x, y, [&](unsigned c) { return table[c]; });
    store_thumbnail(p, x, y, make_float3(from_light(light.x), from_light(light.y), from_light(light.z)));
}
__global__ void __launch_bounds__(256) thumbnails_fast(Photos p) {
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    const float3 light = box_of_light(p, x, y, [](unsigned c) { return to_light_fast(c * (1.0f / 255.0f)); });
    store_thumbnail(p, x, y, make_float3(from_light_fast(light.x), from_light_fast(light.y), from_light_fast(light.z)));
}
__global__ void paint_photos(uchar4 *pixels, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, photo = blockIdx.z;
    const float waves = sinf(x * 0.011f + photo) * cosf(y * 0.017f - photo), glow = 0.5f + 0.5f * sinf((x + y) * 0.004f + photo);
    const unsigned noise = hash((photo * height + y) * width + x);
    const auto level = [](float v) { return static_cast<unsigned char>(min(max(static_cast<int>(v), 0), 255)); };
    pixels[(static_cast<size_t>(photo) * height + y) * width + x] = make_uchar4(level(120 + 80 * waves + (noise & 15)), level(200 * glow + (noise >> 4 & 15)), level(60 + 90 * glow * waves + (noise >> 8 & 31)), 255);
}

Study photos("srgb_thumbnails_a_power_for_every_byte", "photography", 16, "thumbnails of sixteen photos of 2048 x 2048 pixels, a quarter as wide, averaged in linear light",
    "powf for each of the 48 bytes below a pixel",
    {{"table", "a table of the 256 values in shared memory", {"expensive_math"}}, {"fast", "powers by the hardware's logarithms and exponentials", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        Photos p{nullptr, nullptr, 2048, 2048};
        uchar4 *pixels = b.allocate<uchar4>(static_cast<size_t>(n) * p.width * p.height);
        launch(paint_photos, dim3(p.width / 256, p.height, n), 256, 0, pixels, p.width, p.height)();
        p.pixels = pixels, p.thumbnails = b.output<float>(static_cast<size_t>(n) * 3 * (p.width / 4) * (p.height / 4));
        const dim3 grid(p.width / 4 / 64, p.height / 4 / 4, n), block(64, 4);
        return {{"flawed", launch(thumbnails, grid, block, 0, p)}, {"table", launch(thumbnails_table, grid, block, 0, p)}, {"fast", launch(thumbnails_fast, grid, block, 0, p)}};
    });

// --- hashes of a genome's k-mers ---

constexpr int KMER = 15, KMER_TILE = 1024;
constexpr unsigned KMER_MASK = (1u << 2 * KMER) - 1, NOT_A_KMER = 0xffffffffu;

// A: 0, C: 1, T: 2, G: 3; the complement differs by two.
__device__ __forceinline__ unsigned base_code(unsigned letter) { return letter >> 1 & 3; }
__device__ __forceinline__ unsigned kmer_hash(unsigned forward, unsigned reverse) {
    unsigned x = min(forward, reverse);
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

__global__ void __launch_bounds__(256) kmer_hashes(const char *__restrict__ genome, int count, unsigned *__restrict__ hashes) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned forward = 0, reverse = 0;
    bool unknown = false;
#pragma unroll
    for (int k = 0; k < KMER; k++) {
        const char letter = genome[i + k];
        const unsigned code = base_code(letter);
        unknown |= letter == 'N';
        forward = forward << 2 | code;
        reverse |= (code ^ 2) << (2 * k);
    }
    hashes[i] = unknown ? NOT_A_KMER : kmer_hash(forward, reverse);
}

// Eight in a row a thread, each from the one before.
__global__ void __launch_bounds__(256) kmer_hashes_rolling(const char *__restrict__ genome, int count, unsigned *__restrict__ hashes) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    if (first >= count) return;
    const uint2 *from = reinterpret_cast<const uint2 *>(genome + first);
    uint2 words[3];
#pragma unroll
    for (int k = 0; k < 3; k++) words[k] = from[k];
    unsigned forward = 0, reverse = 0, found[8];
    int unknown_until = -1;  // the k-mers that hold the last unknown base begin up to here
#pragma unroll
    for (int k = 0; k < KMER + 7; k++) {
        const unsigned word = k / 4 % 2 ? words[k / 8].y : words[k / 8].x, letter = word >> (k % 4 * 8) & 255, code = base_code(letter);
        if (letter == 'N') unknown_until = k;
        forward = (forward << 2 | code) & KMER_MASK;
        reverse = reverse >> 2 | (code ^ 2) << (2 * KMER - 2);
        if (k >= KMER - 1) found[k - KMER + 1] = unknown_until >= k - KMER + 1 ? NOT_A_KMER : kmer_hash(forward, reverse);
    }
    uint4 *to = reinterpret_cast<uint4 *>(hashes + first);
    to[0] = make_uint4(found[0], found[1], found[2], found[3]), to[1] = make_uint4(found[4], found[5], found[6], found[7]);
}

// Two bits a base in shared memory, from the highest down; a k-mer is cut out of two words.
__global__ void __launch_bounds__(256) kmer_hashes_packed(const char *__restrict__ genome, int count, unsigned *__restrict__ hashes) {
    __shared__ unsigned codes[KMER_TILE / 16 + 2], unknown[KMER_TILE / 16 + 2];
    const int start = blockIdx.x * KMER_TILE;
    if (threadIdx.x < KMER_TILE / 16 + 1) {
        const uint4 letters = *reinterpret_cast<const uint4 *>(genome + start + threadIdx.x * 16);
        const unsigned words[4] = {letters.x, letters.y, letters.z, letters.w};
        unsigned code = 0, not_known = 0;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const unsigned letter = words[k / 4] >> (k % 4 * 8) & 255;
            code = code << 2 | base_code(letter), not_known = not_known << 2 | (letter == 'N');
        }
        codes[threadIdx.x] = code, unknown[threadIdx.x] = not_known;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KMER_TILE / 256; k++) {
        const int at = k * 256 + threadIdx.x, word = at / 16, shift = at % 16 * 2;
        const unsigned forward = __funnelshift_l(codes[word + 1], codes[word], shift) >> (32 - 2 * KMER);
        const bool gap = __funnelshift_l(unknown[word + 1], unknown[word], shift) >> (32 - 2 * KMER);
        const unsigned turned = __brev(forward ^ 0xaaaaaaaau) >> (32 - 2 * KMER);
        const unsigned reverse = (turned >> 1 & 0x55555555u) | (turned << 1 & 0xaaaaaaaau);
        if (start + at < count) hashes[start + at] = gap ? NOT_A_KMER : kmer_hash(forward, reverse);
    }
}

Study kmers("kmer_hashes_fifteen_letters_each_time", "genomics", 1 << 25, "a hash of the lesser of a 15-mer and its reverse complement at each of 33554432 places",
    "each thread reads and packs all fifteen letters, of which fourteen are its neighbour's too",
    {{"rolling", "eight places a thread, each k-mer from the one before", {"redundant_loads", "narrow_access"}}, {"packed", "letters packed once a block into shared memory, k-mers cut out of them", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> genome(n + 64);
        unsigned draw = 15;
        for (long i = 0; i < n + 64; i++) {
            draw = draw * 1664525u + 1013904223u;
            genome[i] = "ACGTATAC"[draw >> 29];
        }
        for (long first = 0; first < n; first += 4096)  // gaps
            if (hash(static_cast<unsigned>(first / 4096)) % 40 == 0) std::memset(genome.data() + first, 'N', 4096);
        const char *data = reinterpret_cast<const char *>(b.copy(genome));
        unsigned *hashes = b.output<unsigned>(n);
        return {{"flawed", launch(kmer_hashes, blocks(n, 256), 256, 0, data, n, hashes)}, {"rolling", launch(kmer_hashes_rolling, blocks(n, 2048), 256, 0, data, n, hashes)},
            {"packed", launch(kmer_hashes_packed, blocks(n, KMER_TILE), 256, 0, data, n, hashes)}};
    });

// --- a stream cipher ---

struct Key {
    unsigned words[8], nonce[3];
};

constexpr int CIPHER_WARPS = 8, CIPHER_PITCH = 20;

__device__ __forceinline__ unsigned rotl(unsigned x, int by) { return __funnelshift_l(x, x, by); }
__device__ __forceinline__ void quarter_round(unsigned &a, unsigned &b, unsigned &c, unsigned &d) {
    a += b, d = __byte_perm(d ^ a, 0, 0x1032);
    c += d, b = rotl(b ^ c, 12);
    a += b, d = __byte_perm(d ^ a, 0, 0x2103);
    c += d, b = rotl(b ^ c, 7);
}

// ChaCha20: a block of 64 bytes a thread; a warp's blocks turn in shared memory, so that all of it is read and written in lines.
__global__ void __launch_bounds__(CIPHER_WARPS * 32) chacha20(const uint4 *__restrict__ plain, uint4 *__restrict__ cipher, Key key) {
    __shared__ __align__(16) unsigned streams[CIPHER_WARPS][32 * CIPHER_PITCH];
    const int lane = threadIdx.x % 32;
    unsigned *stream = streams[threadIdx.x / 32];
    const unsigned counter = blockIdx.x * CIPHER_WARPS * 32 + threadIdx.x;
    const size_t first = (static_cast<size_t>(counter) - lane) * 4 + lane;
    uint4 text[4];
#pragma unroll
    for (int k = 0; k < 4; k++) text[k] = plain[first + k * 32];
    const unsigned start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key.words[0], key.words[1], key.words[2], key.words[3],
        key.words[4], key.words[5], key.words[6], key.words[7], counter, key.nonce[0], key.nonce[1], key.nonce[2]};
    unsigned s[16];
#pragma unroll
    for (int k = 0; k < 16; k++) s[k] = start[k];
#pragma unroll 2
    for (int round = 0; round < 10; round++) {
        quarter_round(s[0], s[4], s[8], s[12]), quarter_round(s[1], s[5], s[9], s[13]);
        quarter_round(s[2], s[6], s[10], s[14]), quarter_round(s[3], s[7], s[11], s[15]);
        quarter_round(s[0], s[5], s[10], s[15]), quarter_round(s[1], s[6], s[11], s[12]);
        quarter_round(s[2], s[7], s[8], s[13]), quarter_round(s[3], s[4], s[9], s[14]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        *reinterpret_cast<uint4 *>(stream + lane * CIPHER_PITCH + k * 4) =
            make_uint4(s[4 * k] + start[4 * k], s[4 * k + 1] + start[4 * k + 1], s[4 * k + 2] + start[4 * k + 2], s[4 * k + 3] + start[4 * k + 3]);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const uint4 by = *reinterpret_cast<const uint4 *>(stream + (k * 8 + lane / 4) * CIPHER_PITCH + lane % 4 * 4);
        cipher[first + k * 32] = make_uint4(text[k].x ^ by.x, text[k].y ^ by.y, text[k].z ^ by.z, text[k].w ^ by.w);
    }
}

Study cipher("sound_chacha20_blocks", "cryptography", 1 << 27, "128 MiB encrypted by ChaCha20", "", {},
    [](Buffers &b, long n) -> Sides {
        const uint4 *plain = reinterpret_cast<const uint4 *>(b.random<unsigned>(n / 4, 0.0, 4294967295.0));
        uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(n / 4));
        Key key{};
        for (unsigned i = 0; i < 8; i++) key.words[i] = hash(i + 1);
        for (unsigned i = 0; i < 3; i++) key.nonce[i] = hash(i + 100);
        return {{"sound", launch(chacha20, blocks(n, CIPHER_WARPS * 32 * 64), CIPHER_WARPS * 32, 0, plain, out, key)}};
    });

// --- whether pages are still what they were ---

constexpr int PAGE = 4096;

// Fletcher's two sums over a page's words, a warp a page.
__global__ void __launch_bounds__(256) page_checksums(const uint4 *__restrict__ pages, u64 *__restrict__ sums) {
    const int lane = threadIdx.x % 32;
    const size_t page = blockIdx.x * size_t{8} + threadIdx.x / 32;
    const uint4 *from = pages + page * (PAGE / 16) + lane;
    uint4 words[PAGE / 512];
#pragma unroll
    for (int k = 0; k < PAGE / 512; k++) words[k] = __ldcs(from + k * 32);
    unsigned plain = 0, weighted = 0;
#pragma unroll
    for (int k = 0; k < PAGE / 512; k++) {
        const unsigned weight = PAGE / 4 - (k * 32 + lane) * 4;
        plain += words[k].x + words[k].y + words[k].z + words[k].w;
        weighted += words[k].x * weight + words[k].y * (weight - 1) + words[k].z * (weight - 2) + words[k].w * (weight - 3);
    }
#pragma unroll
    for (int offset = 16; offset; offset /= 2) {
        plain += __shfl_xor_sync(~0u, plain, offset);
        weighted += __shfl_xor_sync(~0u, weighted, offset);
    }
    if (lane == 0) sums[page] = static_cast<u64>(weighted) << 32 | plain;
}

Study checksums("sound_page_checksums", "databases", 1 << 17, "a Fletcher checksum for each of 131072 pages of 4 KiB", "", {},
    [](Buffers &b, long n) -> Sides {
        const uint4 *pages = reinterpret_cast<const uint4 *>(b.random<unsigned>(n * (PAGE / 4), 0.0, 4294967295.0));
        u64 *sums = b.output<u64>(n);
        return {{"sound", launch(page_checksums, n / 8, 256, 0, pages, sums)}};
    });

}  // namespace
