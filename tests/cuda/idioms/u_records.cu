// Batteries, calls, rays, genomes, cameras, detectors, markets and barcodes.
#include <algorithm>

#include <cooperative_groups.h>

#include "../pairs/pair.cuh"

namespace {

namespace cg = cooperative_groups;

// --- charge that batteries hold, from the currents into them ---

constexpr int READINGS = 768;

__global__ void charge_counts(const short *current, int *charge) {
    __shared__ int total[READINGS];
    const int t = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * READINGS + t;
    total[t] = current[at];
    int reach = 1;
    while (reach < READINGS) {
        __syncthreads();
        const int earlier = t >= reach ? total[t - reach] : 0;
        __syncthreads();
        total[t] += earlier;
        reach <<= 1;
    }
    charge[at] = total[t];
}
__device__ __forceinline__ int running_total(const cg::thread_block_tile<32> &warp, int own) {
#pragma unroll
    for (unsigned reach = 1; reach < 32; reach <<= 1) {
        const int earlier = warp.shfl_up(own, reach);
        if (warp.thread_rank() >= reach) own += earlier;
    }
    return own;
}
// Totals of warps, then those of what warps hold.
__global__ void __launch_bounds__(READINGS) charge_counts_warps(const short *__restrict__ current, int *__restrict__ charge) {
    __shared__ int held[READINGS / 32];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const unsigned lane = warp.thread_rank(), which = threadIdx.x / 32;
    const size_t at = static_cast<size_t>(blockIdx.x) * READINGS + threadIdx.x;
    int total = running_total(warp, current[at]);
    if (lane == 31) held[which] = total;
    block.sync();
    if (which == 0) {
        const int sum = running_total(warp, lane < READINGS / 32 ? held[lane] : 0);
        if (lane < READINGS / 32) held[lane] = sum;
    }
    block.sync();
    if (which > 0) total += held[which - 1];
    charge[at] = total;
}
// Four readings a thread.
__global__ void __launch_bounds__(READINGS / 4) charge_counts_fours(const short4 *__restrict__ current, int4 *__restrict__ charge) {
    constexpr unsigned WARPS = READINGS / 128;
    __shared__ int held[WARPS];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const unsigned which = threadIdx.x / 32;
    const size_t at = static_cast<size_t>(blockIdx.x) * (READINGS / 4) + threadIdx.x;
    const short4 four = current[at];
    int4 sum = make_int4(four.x, four.x + four.y, four.x + four.y + four.z, four.x + four.y + four.z + four.w);
    const int total = running_total(warp, sum.w);
    if (warp.thread_rank() == 31) held[which] = total;
    block.sync();
    int before = total - sum.w;
#pragma unroll
    for (unsigned w = 0; w < WARPS - 1; ++w)
        if (w < which) before += held[w];
    sum.x += before, sum.y += before, sum.z += before, sum.w += before;
    charge[at] = sum;
}

Study batteries("charge_counts_two_barriers_a_doubling", "energy", 24000, "charge of 24000 batteries after each of 768 readings of the current",
    "ten doublings in shared memory with two barriers each",
    {{"warps", "totals of warps by shuffles, two barriers in all", {"barriers"}}, {"fours", "four readings a thread, totals by shuffles, one barrier", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words(n * READINGS / 2);
        for (size_t i = 0; i < words.size(); i++) words[i] = hash(static_cast<unsigned>(i));
        const unsigned *current = b.copy(words);
        int *charge = b.output<int>(n * READINGS);
        b.tolerance = 0.0;
        return {{"flawed", launch(charge_counts, n, READINGS, 0, reinterpret_cast<const short *>(current), charge)}, {"warps", launch(charge_counts_warps, n, READINGS, 0, reinterpret_cast<const short *>(current), charge)},
            {"fours", launch(charge_counts_fours, n, READINGS / 4, 0, reinterpret_cast<const short4 *>(current), reinterpret_cast<int4 *>(charge))}};
    });

// --- calls, four bits a sample, back to sound ---

constexpr int STEPS = 89, CALL_WORDS = 32;  // eight samples a word

#define STEP_SIZES                                                                                                                                                                  \
    {                                                                                                                                                                               \
        7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307,    \
            337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, \
            5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767                                           \
    }
__constant__ unsigned short step_sizes[STEPS] = STEP_SIZES;

struct Calls {
    const unsigned *codes;       // word by word of all calls
    const unsigned char *first;  // step of each call
    uint4 *sound;                // eight samples
    int count;
};
struct Decoder {
    int value, step;
    template <typename Size>
    __device__ __forceinline__ unsigned next(unsigned code, const Size &size) {
        const int now = size(step);
        int change = now >> 3;
        if (code & 1) change += now >> 2;
        if (code & 2) change += now >> 1;
        if (code & 4) change += now;
        value += code & 8 ? -change : change;
        value = max(-32768, min(value, 32767));
        step += code & 4 ? 2 * static_cast<int>(code & 3) + 2 : -1;
        step = max(0, min(step, STEPS - 1));
        return static_cast<unsigned>(value) & 0xffff;
    }
    template <typename Size>
    __device__ __forceinline__ unsigned two(unsigned codes, const Size &size) {
        const unsigned low = next(codes, size);
        return low | next(codes >> 4, size) << 16;
    }
};
template <typename Size>
__device__ __forceinline__ void decode(const Calls &calls, const Size &size) {
    const int call = blockIdx.x * blockDim.x + threadIdx.x;
    if (call >= calls.count) return;
    Decoder decoder = {0, calls.first[call]};
    const unsigned *code = calls.codes + call;
    uint4 *sound = calls.sound + call;
    int left = CALL_WORDS;
    do {
        const unsigned eight = *code;
        uint4 samples;
        samples.x = decoder.two(eight, size);
        samples.y = decoder.two(eight >> 8, size);
        samples.z = decoder.two(eight >> 16, size);
        samples.w = decoder.two(eight >> 24, size);
        *sound = samples;
        code += calls.count, sound += calls.count;
    } while (--left > 0);
}
__global__ void decoded(Calls calls) {
    decode(calls, [](int step) { return static_cast<int>(step_sizes[step]); });
}
__global__ void decoded_shared(Calls calls) {
    __shared__ int sizes[STEPS];
    if (threadIdx.x < STEPS) sizes[threadIdx.x] = step_sizes[threadIdx.x];
    __syncthreads();
    decode(calls, [](int step) { return sizes[step]; });
}
__global__ void decoded_cached(Calls calls, const int *__restrict__ sizes) {
    decode(calls, [sizes](int step) { return __ldg(sizes + step); });
}

Study calls("calls_decoded_with_steps_in_constants", "telephony", 250000, "250000 calls of 256 samples from codes of four bits, with steps from a table of 89",
    "the sizes of steps are in constant memory, where the lanes of a warp ask for many different ones",
    {{"shared", "the sizes in shared memory", {"constant_divergence"}}, {"cached", "the sizes in global memory, by way of L1", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> codes(n * CALL_WORDS);
        for (unsigned i = 0; i < codes.size(); i++)
            for (unsigned k = 0; k < 8; k++) {
                const unsigned chance = hash(8 * i + k);
                codes[i] |= ((chance & 11) | (chance >> 8) % 6 / 5 * 4) << 4 * k;  // as many steps down as up
            }
        const std::vector<int> sizes = STEP_SIZES;
        const Calls all = {b.copy(codes), b.random<unsigned char>(n, 0.0, STEPS), reinterpret_cast<uint4 *>(b.output<unsigned>(4 * n * CALL_WORDS)), static_cast<int>(n)};
        const int *table = b.copy(sizes);
        b.tolerance = 0.0;
        const unsigned grid = blocks(n, 160);
        return {{"flawed", launch(decoded, grid, 160, 0, all)}, {"shared", launch(decoded_shared, grid, 160, 0, all)}, {"cached", launch(decoded_cached, grid, 160, 0, all, table)}};
    });

// --- rays queued for the materials that they hit ---

constexpr int MATERIALS = 40, A_BLOCK = 384, EACH = 6;

struct Queues {
    uint2 *rays;
    unsigned *lengths;
    unsigned room;  // in the queue of a material
};
__global__ void enqueue_rays(const uint2 *rays, const unsigned char *materials, Queues queues, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned material = materials[i];
        const unsigned place = atomicAdd(queues.lengths + material, 1u);
        queues.rays[static_cast<size_t>(material) * queues.room + place] = rays[i];
    }
}
// A block counts its rays and takes room for all of them at once.
__global__ void __launch_bounds__(A_BLOCK) enqueue_rays_blocks(const uint2 *__restrict__ rays, const unsigned char *__restrict__ materials, Queues queues, int count) {
    __shared__ unsigned counts[MATERIALS];
    if (threadIdx.x < MATERIALS) counts[threadIdx.x] = 0;
    __syncthreads();
    const int first = blockIdx.x * (A_BLOCK * EACH) + threadIdx.x;
    int material[EACH];
    unsigned place[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = first + k * A_BLOCK;
        material[k] = i < count ? materials[i] : -1;
        if (material[k] >= 0) place[k] = atomicAdd(&counts[material[k]], 1u);
    }
    __syncthreads();
    if (threadIdx.x < MATERIALS) counts[threadIdx.x] = atomicAdd(queues.lengths + threadIdx.x, counts[threadIdx.x]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; ++k)
        if (material[k] >= 0) queues.rays[static_cast<size_t>(material[k]) * queues.room + counts[material[k]] + place[k]] = rays[first + k * A_BLOCK];
}
__global__ void queued_rays(Queues queues, unsigned *sums) {
    __shared__ unsigned sum, mixed;
    if (threadIdx.x == 0) sum = mixed = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < queues.lengths[blockIdx.x]; i += blockDim.x) {
        const uint2 ray = queues.rays[static_cast<size_t>(blockIdx.x) * queues.room + i];
        atomicAdd(&sum, ray.x + ray.y);
        atomicAdd(&mixed, pairs::hash(ray.x ^ pairs::hash(ray.y)));
    }
    __syncthreads();
    if (threadIdx.x == 0) sums[2 * blockIdx.x] = sum, sums[2 * blockIdx.x + 1] = mixed;
}

Study rays("rays_queued_an_atomic_each", "rendering", 3600000, "3600000 rays into queues of the 40 materials that they hit, in any order",
    "each ray draws its place by an atomic on the length of one of 40 queues",
    {{"blocks", "a block counts in shared memory and takes room once a material", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> hit(n);
        std::vector<unsigned> size(MATERIALS);
        for (unsigned i = 0; i < hit.size(); i++) {
            const unsigned chance = hash(i + 5), which = std::min(chance % MATERIALS, (chance >> 16) % MATERIALS);
            hit[i] = static_cast<unsigned char>(which), size[which]++;
        }
        unsigned room = 0;
        for (unsigned s : size) room = std::max(room, s);
        const auto *in = reinterpret_cast<const uint2 *>(b.random<unsigned>(2 * n, 0.0, 4294967296.0));
        const unsigned char *materials = b.copy(hit);
        const Queues queues = {reinterpret_cast<uint2 *>(b.allocate<unsigned>(size_t{2} * room * MATERIALS)), b.output<unsigned>(MATERIALS, true), room};
        unsigned *sums = b.output<unsigned>(2 * MATERIALS);
        const int count = static_cast<int>(n);
        b.tolerance = 0.0;
        Sides sides = {{"flawed", launch(enqueue_rays, blocks(n, 192 * 4), 192, 0, in, materials, queues, count)}, {"blocks", launch(enqueue_rays_blocks, blocks(n, A_BLOCK * EACH), A_BLOCK, 0, in, materials, queues, count)}};
        for (Side &side : sides) side.check = launch(queued_rays, MATERIALS, 256, 0, queues, sums);
        return sides;
    });

// --- where two genomes agree in the places of a spaced seed ---

constexpr int SHAPES = 6, SPAN = 16;

typedef unsigned long long Bases;  // 32 of them; those that often turn into each other differ in the lower bit

__device__ __forceinline__ Bases window(const Bases *genome, unsigned at) {
    const unsigned shift = at % 32 * 2;
    const Bases low = genome[at / 32] >> shift;
    return shift ? low | genome[at / 32 + 1] << (64 - shift) : low;
}
__device__ __forceinline__ void tally(int found, int *to) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) found += __shfl_down_sync(0xffffffffu, found, offset);
    if ((threadIdx.x & 31) == 0 && found) atomicAdd(to, found);
}
// Letters of a shape: # must agree, @ but for what often changes, - is left out.
__global__ void __launch_bounds__(192) seed_hits(const Bases *one, const Bases *other, const char *shapes, int span, int *hits, unsigned windows) {
    const char *shape = shapes + blockIdx.y * span;
    int found = 0;
    for (unsigned at = blockIdx.x * 192 + threadIdx.x; at < windows; at += gridDim.x * 192) {
        const Bases differing = window(one, at) ^ window(other, at);
        Bases wrong = 0;
        for (int k = 0; k < span; k++) {
            const Bases here = differing >> 2 * k;
            const char letter = shape[k];
            if (letter == '#')
                wrong |= here & 3;
            else if (letter == '@')
                wrong |= here & 2;
        }
        found += wrong == 0;
    }
    tally(found, hits + blockIdx.y);
}
__device__ __forceinline__ int agreeing(const Bases *__restrict__ one, const Bases *__restrict__ other, Bases mask, unsigned windows) {
    int found = 0;
    for (unsigned at = blockIdx.x * 192 + threadIdx.x; at < windows; at += gridDim.x * 192) found += ((window(one, at) ^ window(other, at)) & mask) == 0;
    return found;
}
// Masks that the host has made of the letters.
__global__ void __launch_bounds__(192) seed_hits_masks(const Bases *__restrict__ one, const Bases *__restrict__ other, const Bases *__restrict__ masks, int *hits, unsigned windows) {
    tally(agreeing(one, other, masks[blockIdx.y], windows), hits + blockIdx.y);
}
// A warp makes the mask of its lanes' letters.
__global__ void __launch_bounds__(192) seed_hits_warp(const Bases *__restrict__ one, const Bases *__restrict__ other, const char *__restrict__ shapes, int span, int *hits, unsigned windows) {
    const unsigned lane = threadIdx.x & 31;
    const char letter = static_cast<int>(lane / 2) < span ? shapes[blockIdx.y * span + lane / 2] : '-';
    const Bases mask = __ballot_sync(0xffffffffu, letter == '#' || (letter == '@' && (lane & 1)));
    tally(agreeing(one, other, mask, windows), hits + blockIdx.y);
}

Study genomes("seed_shapes_read_for_each_window", "genomics", 1 << 23, "windows of two genomes of 8388608 bases that agree in the places of six spaced seeds",
    "the letters of a seed are read and told apart again for each window",
    {{"masks", "a mask a seed from the host", {"integer_arithmetic", "redundant_loads"}}, {"warp", "a mask from the letters once a warp", {"integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Bases> one(n / 32 + 1), other(n / 32 + 1);
        for (unsigned i = 0; i < one.size(); i++) {
            const auto draw = [i](unsigned k) { return static_cast<Bases>(hash(8 * i + k)) << 32 | hash(8 * i + k + 100000001u); };
            one[i] = draw(0), other[i] = one[i] ^ (draw(1) & draw(2) & draw(3) & draw(4));
        }
        const char letters[SHAPES][SPAN + 1] = {"##@#-##@-#-##-##", "#@##--#-##@#-###", "###-#@-#--##@-##", "#-##-@##-##-@#-#", "##-@#-###-#@--##", "#@-#-##-##-#@###"};
        std::vector<char> text;
        std::vector<Bases> bits(SHAPES);
        for (int s = 0; s < SHAPES; s++)
            for (int k = 0; k < SPAN; k++) {
                text.push_back(letters[s][k]);
                bits[s] |= static_cast<Bases>(letters[s][k] == '#' ? 3 : letters[s][k] == '@' ? 2 : 0) << 2 * k;
            }
        const Bases *first = b.copy(one), *second = b.copy(other), *masks = b.copy(bits);
        const char *shapes = b.copy(text);
        int *hits = b.output<int>(SHAPES, true), span = SPAN;
        const unsigned windows = static_cast<unsigned>(n);
        const dim3 grid(704, SHAPES);
        b.tolerance = 0.0;
        return {{"flawed", launch(seed_hits, grid, 192, 0, first, second, shapes, span, hits, windows)}, {"masks", launch(seed_hits_masks, grid, 192, 0, first, second, masks, hits, windows)},
            {"warp", launch(seed_hits_warp, grid, 192, 0, first, second, shapes, span, hits, windows)}};
    });

// --- pictures of a camera without its dark picture and broken pixels ---

constexpr int FRAME = 1280 * 1024;

struct Camera {
    const unsigned char *raw, *dark;
    const unsigned *broken;  // a bit a pixel
    const float *gains;      // of the frames
    unsigned char *out;
};
__device__ __forceinline__ unsigned corrected(unsigned raw, unsigned dark, float gain, bool broken) {
    const float light = gain * (static_cast<float>(raw) - static_cast<float>(dark));
    return broken ? 0u : __float2uint_rn(fminf(fmaxf(light, 0.0f), 255.0f));
}
__global__ void __launch_bounds__(256) corrected_frames(Camera camera) {
    const int pixel = blockIdx.x * 256 + threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.y) * FRAME + pixel;
    camera.out[at] = static_cast<unsigned char>(corrected(camera.raw[at], camera.dark[pixel], camera.gains[blockIdx.y], camera.broken[pixel >> 5] >> (pixel & 31) & 1));
}
__device__ __forceinline__ unsigned corrected_four(unsigned raw, unsigned dark, float gain, unsigned broken) {
    unsigned four = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) four |= corrected(raw >> 8 * k & 255, dark >> 8 * k & 255, gain, broken >> k & 1) << 8 * k;
    return four;
}
// Sixteen pixels a thread.
__global__ void __launch_bounds__(256) corrected_frames_sixteen(Camera camera) {
    const int group = blockIdx.x * 256 + threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.y) * (FRAME / 16) + group;
    const uint4 raw = reinterpret_cast<const uint4 *>(camera.raw)[at], dark = __ldg(reinterpret_cast<const uint4 *>(camera.dark) + group);
    const unsigned broken = __ldg(reinterpret_cast<const unsigned short *>(camera.broken) + group);
    const float gain = __ldg(camera.gains + blockIdx.y);
    reinterpret_cast<uint4 *>(camera.out)[at] = make_uint4(corrected_four(raw.x, dark.x, gain, broken), corrected_four(raw.y, dark.y, gain, broken >> 4), corrected_four(raw.z, dark.z, gain, broken >> 8), corrected_four(raw.w, dark.w, gain, broken >> 12));
}
// Four words of four pixels a thread, loaded before any is stored.
__global__ void __launch_bounds__(256) corrected_frames_words(Camera camera) {
    const int first = blockIdx.x * 1024 + threadIdx.x;
    const unsigned *raw = reinterpret_cast<const unsigned *>(camera.raw) + static_cast<size_t>(blockIdx.y) * (FRAME / 4) + first, *dark = reinterpret_cast<const unsigned *>(camera.dark) + first;
    unsigned *out = reinterpret_cast<unsigned *>(camera.out) + static_cast<size_t>(blockIdx.y) * (FRAME / 4) + first;
    const float gain = __ldg(camera.gains + blockIdx.y);
    unsigned seen[4], black[4], broken[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int word = first + k * 256;
        seen[k] = __ldg(raw + k * 256), black[k] = __ldg(dark + k * 256), broken[k] = __ldg(camera.broken + word / 8) >> word % 8 * 4;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k * 256] = corrected_four(seen[k], black[k], gain, broken[k]);
}

Study camera("dark_frames_a_pixel_a_thread", "imaging", 64, "64 frames of 1280 x 1024 bytes without the dark picture, scaled, broken pixels black",
    "a pixel a thread: loads and stores of one byte",
    {{"sixteen", "sixteen pixels a thread", {"narrow_access"}}, {"words", "four words of four pixels a thread, loaded before any is stored", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned frames = static_cast<unsigned>(n);
        std::vector<unsigned> broken(FRAME / 32);
        for (unsigned i = 0; i < broken.size(); i++) broken[i] = hash(i) & hash(i + 9) & hash(i + 17) & hash(i + 33) & hash(i + 65);
        const Camera camera = {b.random<unsigned char>(n * FRAME, 0.0, 256.0), b.random<unsigned char>(FRAME, 0.0, 24.0), b.copy(broken), b.random<float>(n, 0.8, 1.3), b.output<unsigned char>(n * FRAME)};
        b.tolerance = 0.0;
        return {{"flawed", launch(corrected_frames, dim3(FRAME / 256, frames), 256, 0, camera)}, {"sixteen", launch(corrected_frames_sixteen, dim3(FRAME / 4096, frames), 256, 0, camera)},
            {"words", launch(corrected_frames_words, dim3(FRAME / 4096, frames), 256, 0, camera)}};
    });

// --- charge on the strips of a detector ---

constexpr int STRIPS = 384, COPIES = 16, APART = STRIPS + 1;

// A hit: which strip, in the lower half, and how much, in the upper.
struct __align__(16) Hits {
    unsigned each[4];
};
__global__ void __launch_bounds__(256) strip_charges(const Hits *hits, const Hits *end, unsigned *charges) {
    __shared__ unsigned own[STRIPS];
    for (int s = threadIdx.x; s < STRIPS; s += 256) own[s] = 0;
    __syncthreads();
    for (const Hits *at = hits + blockIdx.x * 256 + threadIdx.x; at < end; at += gridDim.x * 256) {
        const Hits four = *at;
#pragma unroll
        for (int k = 0; k < 4; ++k) atomicAdd(&own[four.each[k] & 0xffff], four.each[k] >> 16);
    }
    __syncthreads();
    for (int s = threadIdx.x; s < STRIPS; s += 256)
        if (own[s] != 0) atomicAdd(&charges[s], own[s]);
}
// A copy for every sixteenth lane.
__global__ void __launch_bounds__(256) strip_charges_copies(const Hits *hits, const Hits *end, unsigned *charges) {
    __shared__ unsigned copies[COPIES][APART];
    for (int s = threadIdx.x; s < COPIES * APART; s += 256) (&copies[0][0])[s] = 0;
    __syncthreads();
    unsigned *own = copies[threadIdx.x % COPIES];
    for (const Hits *at = hits + blockIdx.x * 256 + threadIdx.x; at < end; at += gridDim.x * 256) {
        const Hits four = *at;
#pragma unroll
        for (int k = 0; k < 4; ++k) atomicAdd(&own[four.each[k] & 0xffff], four.each[k] >> 16);
    }
    __syncthreads();
    for (int s = threadIdx.x; s < STRIPS; s += 256) {
        unsigned sum = 0;
#pragma unroll
        for (int c = 0; c < COPIES; ++c) sum += copies[c][s];
        if (sum != 0) atomicAdd(&charges[s], sum);
    }
}
// Lanes that hit the same strip add once.
__global__ void __launch_bounds__(256) strip_charges_leaders(const Hits *hits, const Hits *end, unsigned *charges) {
    __shared__ unsigned own[STRIPS];
    for (int s = threadIdx.x; s < STRIPS; s += 256) own[s] = 0;
    __syncthreads();
    for (const Hits *at = hits + blockIdx.x * 256 + threadIdx.x; at < end; at += gridDim.x * 256) {  // whole warps, as hits come in multiples of 128
        const Hits four = *at;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const unsigned strip = four.each[k] & 0xffff, alike = __match_any_sync(0xffffffffu, strip), sum = __reduce_add_sync(alike, four.each[k] >> 16);
            if (threadIdx.x % 32 == static_cast<unsigned>(__ffs(alike)) - 1) atomicAdd(&own[strip], sum);
        }
    }
    __syncthreads();
    for (int s = threadIdx.x; s < STRIPS; s += 256)
        if (own[s] != 0) atomicAdd(&charges[s], own[s]);
}

Study strips("strip_charges_few_hot_strips", "particle physics", 24000000, "charge of 24000000 hits on 384 strips of a detector, most of them in the beam",
    "nearly all hits are on six strips: the lanes of a warp add to the same few sums in shared memory",
    {{"copies", "sixteen copies of the sums, for every sixteenth lane one", {"shared_atomics"}}, {"leaders", "lanes of a warp with the same strip add once", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words(n);
        for (unsigned i = 0; i < words.size(); i++) {
            const unsigned chance = hash(i), where = chance % 16 == 0 ? (chance >> 4) % STRIPS : 190 + (chance >> 4 & 3) + (chance >> 6 & 3) % 3;
            words[i] = where | (1 + (chance >> 20) % 120) << 16;
        }
        const auto *hits = reinterpret_cast<const Hits *>(b.copy(words)), *end = hits + n / 4;
        unsigned *charges = b.output<unsigned>(STRIPS, true);
        const unsigned grid = static_cast<unsigned>(multiprocessors()) * 6;
        b.tolerance = 0.0;
        return {{"flawed", launch(strip_charges, grid, 256, 0, hits, end, charges)}, {"copies", launch(strip_charges_copies, grid, 256, 0, hits, end, charges)},
            {"leaders", launch(strip_charges_leaders, grid, 256, 0, hits, end, charges)}};
    });

// --- how far prices fall from their highest, on simulated paths ---

constexpr int MONTHS = 80, PATHS_A_BLOCK = 64;

struct Path {
    float logarithms[MONTHS];
};
struct Fall {
    float highest, deepest;
    __device__ __forceinline__ void see(float value) {
        highest = fmaxf(highest, value);
        deepest = fmaxf(deepest, highest - value);
    }
};
__global__ void drawdowns(const Path *paths, float *out, int count) {
    const int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= count) return;
    Fall fall = {-1e30f, 0.0f};
    for (const float &value : paths[path].logarithms) fall.see(value);
    out[path] = fall.deepest;
}
// Four months a load.
__global__ void drawdowns_vectors(const Path *__restrict__ paths, float *__restrict__ out, int count) {
    const int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= count) return;
    const float4 *at = reinterpret_cast<const float4 *>(paths + path);
    Fall fall = {-1e30f, 0.0f};
#pragma unroll 5
    for (int k = 0; k < MONTHS / 4; ++k) {
        const float4 four = at[k];
        fall.see(four.x), fall.see(four.y), fall.see(four.z), fall.see(four.w);
    }
    out[path] = fall.deepest;
}
// The block's paths in shared memory first.
__global__ void __launch_bounds__(PATHS_A_BLOCK) drawdowns_staged(const float *__restrict__ values, float *__restrict__ out) {
    __shared__ float own[PATHS_A_BLOCK][MONTHS + 1];
    const float *from = values + static_cast<size_t>(blockIdx.x) * (PATHS_A_BLOCK * MONTHS);
#pragma unroll 16
    for (int k = threadIdx.x; k < PATHS_A_BLOCK * MONTHS; k += PATHS_A_BLOCK) own[k / MONTHS][k % MONTHS] = from[k];
    __syncthreads();
    Fall fall = {-1e30f, 0.0f};
#pragma unroll 8
    for (int month = 0; month < MONTHS; ++month) fall.see(own[threadIdx.x][month]);
    out[blockIdx.x * PATHS_A_BLOCK + threadIdx.x] = fall.deepest;
}

Study falls("drawdowns_a_path_a_thread", "finance", 400000, "deepest fall on each of 400000 paths of 80 monthly prices",
    "a thread walks along its path month by month, lanes 320 bytes apart",
    {{"staged", "paths of a block in shared memory first", {"uncoalesced_access"}}, {"vectors", "four months a load", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *values = b.random<float>(n * MONTHS, 3.0, 5.0);
        float *out = b.output<float>(n);
        const auto *paths = reinterpret_cast<const Path *>(values);
        const int count = static_cast<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(drawdowns, blocks(n, 128), 128, 0, paths, out, count)}, {"staged", launch(drawdowns_staged, n / PATHS_A_BLOCK, PATHS_A_BLOCK, 0, values, out)},
            {"vectors", launch(drawdowns_vectors, blocks(n, 128), 128, 0, paths, out, count)}};
    });

// --- barcodes that could be taken for others ---

constexpr int CODE_BLOCKS = 264, CODE_WARPS = 8;

// A warp counts the later codes that differ from one in at most 52 bits.
__device__ __forceinline__ void count_neighbours(const ulonglong2 *codes, int *neighbours, int code, int count) {
    const ulonglong2 own = codes[code];
    int found = 0;
    for (int other = code + 1 + threadIdx.x; other < count; other += 32) {
        const ulonglong2 against = codes[other];
        found += __popcll(own.x ^ against.x) + __popcll(own.y ^ against.y) <= 52;
    }
    for (int offset = 16; offset; offset /= 2) found += __shfl_xor_sync(~0u, found, offset);
    if (threadIdx.x == 0) neighbours[code] = found;
}
__global__ void __launch_bounds__(32 * CODE_WARPS) close_codes(const ulonglong2 *codes, int *neighbours, int count, int rows) {
    const int first = blockIdx.x * rows, last = first + rows;
    for (int code = first + threadIdx.y; code < last; code += CODE_WARPS) count_neighbours(codes, neighbours, code, count);
}
// Every 264th code.
__global__ void __launch_bounds__(32 * CODE_WARPS) close_codes_strided(const ulonglong2 *codes, int *neighbours, int count, int rows) {
    for (int row = threadIdx.y; row < rows; row += CODE_WARPS) count_neighbours(codes, neighbours, row * gridDim.x + blockIdx.x, count);
}
// Codes from the front, and as many from the back.
__global__ void __launch_bounds__(32 * CODE_WARPS) close_codes_folded(const ulonglong2 *codes, int *neighbours, int count, int rows) {
    for (int row = threadIdx.y; row < rows / 2; row += CODE_WARPS) {
        const int code = blockIdx.x * (rows / 2) + row;
        count_neighbours(codes, neighbours, code, count);
        count_neighbours(codes, neighbours, count - 1 - code, count);
    }
}

Study barcodes("close_codes_contiguous_rows", "sequencing", 16896, "how many later ones of 16896 barcodes of 128 bits are close to each",
    "each of 264 blocks has 64 neighbouring codes: those of the first blocks have all others to look at, the last ones' few",
    {{"strided", "codes dealt out in turn", {"workload_imbalance"}}, {"folded", "as many codes from the front as from the back", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const auto *codes = reinterpret_cast<const ulonglong2 *>(b.random<unsigned>(4 * n, 0.0, 4294967296.0));
        int *neighbours = b.output<int>(n);
        const int count = static_cast<int>(n), rows = count / CODE_BLOCKS;
        const dim3 block(32, CODE_WARPS);
        b.tolerance = 0.0;
        return {{"flawed", launch(close_codes, CODE_BLOCKS, block, 0, codes, neighbours, count, rows)}, {"strided", launch(close_codes_strided, CODE_BLOCKS, block, 0, codes, neighbours, count, rows)},
            {"folded", launch(close_codes_folded, CODE_BLOCKS, block, 0, codes, neighbours, count, rows)}};
    });

}  // namespace
