// Radio, strings, recordings and speech.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- receivers: a loop for each channel follows the phase of its carrier ---

struct Loop {
    float phase = 0.0f, pace = 0.0f, level = 0.0f;
    __device__ __forceinline__ void take(float2 sample) {
        float s, c;
        __sincosf(phase, &s, &c);
        const float in = sample.x * c + sample.y * s, across = sample.y * c - sample.x * s, error = in > 0.0f ? across : -across;
        pace += 0.002f * error, phase += pace + 0.05f * error, level += fabsf(in);
        phase -= phase > 3.1415927f ? 6.2831853f : 0.0f;
    }
};
__global__ void __launch_bounds__(128) follow_rows(const float2 *__restrict__ samples, float4 *__restrict__ out, int channels, int count) {
    const int channel = blockIdx.x * 128 + threadIdx.x;
    if (channel >= channels) return;
    Loop loop;
    for (int i = 0; i < count; i++) loop.take(samples[static_cast<size_t>(channel) * count + i]);
    out[channel] = make_float4(loop.phase, loop.pace, loop.level, 0.0f);
}
__global__ void __launch_bounds__(128) follow_columns(const float2 *__restrict__ samples, float4 *__restrict__ out, int channels, int count) {
    const int channel = blockIdx.x * 128 + threadIdx.x;
    if (channel >= channels) return;
    Loop loop;
#pragma unroll 4
    for (int i = 0; i < count; i++) loop.take(samples[static_cast<size_t>(i) * channels + channel]);
    out[channel] = make_float4(loop.phase, loop.pace, loop.level, 0.0f);
}
// Sixteen samples of 32 channels at a time: two rows a request into shared memory.
__global__ void __launch_bounds__(128) follow_tiles(const float2 *__restrict__ samples, float4 *__restrict__ out, int channels, int count) {
    __shared__ float2 tiles[4][32][17];
    const int lane = threadIdx.x % 32, first = blockIdx.x * 128 + threadIdx.x - lane;
    float2(*tile)[17] = tiles[threadIdx.x / 32];
    if (first >= channels) return;
    Loop loop;
    for (int start = 0; start < count; start += 16) {
        float2 next[16];
#pragma unroll
        for (int r = 0; r < 16; r++) next[r] = samples[static_cast<size_t>(first + 2 * r + lane / 16) * count + start + lane % 16];
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 16; r++) tile[2 * r + lane / 16][lane % 16] = next[r];
        __syncwarp();
#pragma unroll 4
        for (int i = 0; i < 16; i++) loop.take(tile[lane][i]);
    }
    out[first + lane] = make_float4(loop.phase, loop.pace, loop.level, 0.0f);
}

Study carriers("carrier_loops_a_channel_a_thread", "radio", 1 << 16, "loops that follow the carriers of 65536 channels along 512 samples",
    "a thread walks along the row of its channel: neighbouring lanes are 4 KiB apart",
    {{"columns", "samples of all channels side by side", {"uncoalesced_access"}}, {"tiles", "sixteen samples of 32 channels by way of shared memory", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 512;
        std::vector<float2> rows(n * count), columns(n * count);
        for (long channel = 0; channel < n; channel++) {
            const float pace = (hash(static_cast<unsigned>(channel)) % 1000) * 1e-5f;
            for (long i = 0; i < count; i++) {
                const float noise = (hash(static_cast<unsigned>(channel * count + i)) >> 8) / 16777216.0f * 0.2f, angle = 0.3f + pace * i + noise;
                const float2 sample = {cosf(angle), sinf(angle)};
                rows[channel * count + i] = columns[i * n + channel] = sample;
            }
        }
        const float2 *by_row = b.copy(rows), *by_column = b.copy(columns);
        float *out = b.output<float>(n * 4);
        float4 *loops = reinterpret_cast<float4 *>(out);
        b.tolerance = 1e-3;
        return {{"flawed", launch(follow_rows, blocks(n, 128), 128, 0, by_row, loops, n, count)}, {"columns", launch(follow_columns, blocks(n, 128), 128, 0, by_column, loops, n, count)},
            {"tiles", launch(follow_tiles, blocks(n, 128), 128, 0, by_row, loops, n, count)}};
    });

// --- plucked strings: what has gone along a string comes back softened ---

constexpr int LONGEST = 128;

__device__ __forceinline__ float plucked(int string, int k) { return (hash(string * 128u + k) >> 8) / 8388608.0f - 1.0f; }

__global__ void __launch_bounds__(64) pluck(const int *__restrict__ lengths, float *__restrict__ energies, int strings, int steps) {
    const int string = blockIdx.x * 64 + threadIdx.x;
    if (string >= strings) return;
    const int length = lengths[string];
    float line[LONGEST], energy = 0.0f;
    for (int k = 0; k < length; k++) line[k] = plucked(string, k);
    for (int i = 0, place = 0; i < steps; i++) {
        const int next = place + 1 == length ? 0 : place + 1;
        const float value = 0.498f * (line[place] + line[next]);
        line[place] = value, energy += value * value, place = next;
    }
    energies[string] = energy;
}
__global__ void __launch_bounds__(64) pluck_shared(const int *__restrict__ lengths, float *__restrict__ energies, int strings, int steps) {
    __shared__ float lines[LONGEST][64];
    const int string = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    if (string >= strings) return;
    const int length = lengths[string];
    float energy = 0.0f;
    for (int k = 0; k < length; k++) lines[k][t] = plucked(string, k);
    float here = lines[0][t];
    for (int i = 0, place = 0; i < steps; i++) {
        const int next = place + 1 == length ? 0 : place + 1;
        const float ahead = lines[next][t], value = 0.498f * (here + ahead);
        lines[place][t] = value, energy += value * value, place = next, here = ahead;
    }
    energies[string] = energy;
}
// A warp for a string: no string is shorter than 33, so that 32 samples never need one another.
__global__ void __launch_bounds__(128) pluck_warps(const int *__restrict__ lengths, float *__restrict__ energies, int strings, int steps) {
    __shared__ float lines[4][LONGEST];
    const int string = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (string >= strings) return;
    float *line = lines[threadIdx.x / 32];
    const int length = lengths[string];
    for (int k = lane; k < length; k += 32) line[k] = plucked(string, k);
    __syncwarp();
    float energy = 0.0f;
    int place = lane;
    for (int i = 0; i < steps; i += 32) {
        const int next = place + 1 >= length ? place + 1 - length : place + 1;
        const float value = 0.498f * (line[place] + line[next]);
        __syncwarp();
        line[place] = value, energy += value * value;
        place += 32;
        place -= place >= length ? length : 0;
        __syncwarp();
    }
    energy = warp_sum(energy);
    if (lane == 0) energies[string] = energy;
}

Study strings("plucked_strings_kept_in_local", "sound", 1 << 16, "energy of 65536 plucked strings of 40 to 127 samples, 512 steps",
    "a thread keeps its string as an array that is indexed by where the wave is",
    {{"shared", "64 strings in shared memory, one beside the other", {"local_memory"}}, {"warps", "a warp a string, 32 samples at once", {"local_memory", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> lengths(n);
        for (long i = 0; i < n; i++) lengths[i] = 40 + static_cast<int>(hash(static_cast<unsigned>(i)) % 88);
        const int *in = b.copy(lengths);
        float *out = b.output<float>(n);
        return {{"flawed", launch(pluck, blocks(n, 64), 64, 0, in, out, n, 512)}, {"shared", launch(pluck_shared, blocks(n, 64), 64, 0, in, out, n, 512)}, {"warps", launch(pluck_warps, blocks(n, 4), 128, 0, in, out, n, 512)}};
    });

// --- how loud recordings of any length are ---

struct Clips {
    const float *samples;
    const int *starts, *order;
    int count;
};
__device__ __forceinline__ float sharpened(const float *x, int i, int start) { return x[i] - (i > start ? 0.95f * x[i - 1] : 0.0f); }

template <int THREADS>
__device__ __forceinline__ float clip_energy(const float *__restrict__ samples, int start, int from, int to) {
    __shared__ float parts[32];
    float sum = 0.0f;
#pragma unroll 4
    for (int i = from + threadIdx.x; i < to; i += THREADS) {
        const float v = sharpened(samples, i, start);
        sum += v * v;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < THREADS / 32 ? parts[threadIdx.x % 32] : 0.0f);
}
__global__ void __launch_bounds__(256) loudness(const Clips clips, float *__restrict__ out) {
    const int start = clips.starts[blockIdx.x], end = clips.starts[blockIdx.x + 1];
    const float energy = clip_energy<256>(clips.samples, start, start, end);
    if (threadIdx.x == 0) out[blockIdx.x] = energy / (end - start);
}
// The longest first, by blocks of 1024 threads.
__global__ void __launch_bounds__(1024) loudness_longest(const Clips clips, float *__restrict__ out) {
    const int clip = clips.order[blockIdx.x], start = clips.starts[clip], end = clips.starts[clip + 1];
    const float energy = clip_energy<1024>(clips.samples, start, start, end);
    if (threadIdx.x == 0) out[clip] = energy / (end - start);
}
// A block for each 32768 samples at most; pieces say of which clip and from where on.
__global__ void __launch_bounds__(256) loudness_pieces(const Clips clips, const int2 *__restrict__ pieces, float *__restrict__ out) {
    const int2 piece = pieces[blockIdx.x];
    const int start = clips.starts[piece.x], end = clips.starts[piece.x + 1];
    const float energy = clip_energy<256>(clips.samples, start, piece.y, ::min(piece.y + 32768, end));
    if (threadIdx.x == 0) atomicAdd(out + piece.x, energy / (end - start));
}

Study clips("loudness_a_block_for_a_clip_of_any_length", "sound", 500, "loudness of 500 recordings of 8000 to 1500000 samples",
    "a block for each recording: the longest keep a few multiprocessors busy when the others are done",
    {{"longest", "the longest first, by blocks of 1024 threads", {"workload_imbalance"}}, {"pieces", "a block for each 32768 samples, joined by atomics", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1, 0), order(n);
        std::vector<int2> pieces;
        for (long i = 0; i < n; i++) {
            const float u = (hash(static_cast<unsigned>(i) + 40) >> 8) / 16777216.0f;
            const int length = static_cast<int>(std::min(1.5e6f, 8000.0f / powf(1.0f - u, 1.1f)));
            starts[i + 1] = starts[i] + length, order[i] = static_cast<int>(i);
            for (int from = starts[i]; from < starts[i + 1]; from += 32768) pieces.push_back({static_cast<int>(i), from});
        }
        std::stable_sort(order.begin(), order.end(), [&](int a, int z) { return starts[a + 1] - starts[a] > starts[z + 1] - starts[z]; });
        const Clips clips{b.random<float>(starts[n]), b.copy(starts), b.copy(order), static_cast<int>(n)};
        const int2 *list = b.copy(pieces);
        float *out = b.output<float>(n, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(loudness, n, 256, 0, clips, out)}, {"longest", launch(loudness_longest, n, 1024, 0, clips, out)}, {"pieces", launch(loudness_pieces, static_cast<unsigned>(pieces.size()), 256, 0, clips, list, out)}};
    });

// --- speech: the letter of each frame becomes text, without blanks and repetitions ---

constexpr int FRAMES = 2048;

__global__ void __launch_bounds__(128) write_out(const unsigned char *__restrict__ frames, unsigned char *__restrict__ text, int *__restrict__ lengths, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const unsigned char *own = frames + static_cast<size_t>(i) * FRAMES;
    unsigned char before = 0, *to = text + static_cast<size_t>(i) * FRAMES;
    int length = 0;
    for (int k = 0; k < FRAMES; k++) {
        const unsigned char letter = own[k];
        if (letter && letter != before) to[length++] = letter;
        before = letter;
    }
    lengths[i] = length;
}
__global__ void __launch_bounds__(128) write_out_warps(const unsigned char *__restrict__ frames, unsigned char *__restrict__ text, int *__restrict__ lengths, int count) {
    const int i = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    const unsigned char *own = frames + static_cast<size_t>(i) * FRAMES;
    unsigned char *to = text + static_cast<size_t>(i) * FRAMES;
    int length = 0;
#pragma unroll 4
    for (int k = lane; k < FRAMES; k += 32) {
        const unsigned char letter = own[k], before = k ? own[k - 1] : 0;
        const unsigned kept = __ballot_sync(~0u, letter && letter != before);
        if (kept >> lane & 1) to[length + __popc(kept & ((1u << lane) - 1))] = letter;
        length += __popc(kept);
    }
    if (lane == 0) lengths[i] = length;
}
// A block for each utterance, sixteen frames a thread; where a thread's letters go is added up over the block.
__global__ void __launch_bounds__(128) write_out_blocks(const uint4 *__restrict__ frames, unsigned char *__restrict__ text, int *__restrict__ lengths) {
    __shared__ int sums[4];
    __shared__ unsigned char last[129];
    const int t = threadIdx.x, lane = t % 32;
    const uint4 words = frames[static_cast<size_t>(blockIdx.x) * 128 + t];
    const unsigned own[4] = {words.x, words.y, words.z, words.w};
    last[t + 1] = static_cast<unsigned char>(words.w >> 24);
    if (t == 0) last[0] = 0;
    __syncthreads();
    unsigned before = last[t], kept = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const unsigned letter = own[k / 4] >> (k % 4 * 8) & 255;
        kept |= (letter && letter != before) << k;
        before = letter;
    }
    int place = __popc(kept);
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(~0u, place, d);
        if (lane >= d) place += other;
    }
    if (lane == 31) sums[t / 32] = place;
    __syncthreads();
    for (int w = 0; w < t / 32; w++) place += sums[w];
    if (t == 127) lengths[blockIdx.x] = place;
    unsigned char *to = text + static_cast<size_t>(blockIdx.x) * FRAMES + place - __popc(kept);
#pragma unroll
    for (int k = 0; k < 16; k++)
        if (kept >> k & 1) *to++ = static_cast<unsigned char>(own[k / 4] >> (k % 4 * 8));
}

Study speech("letters_of_frames_written_out_by_a_thread", "speech", 8192, "letters of 2048 frames of 8192 utterances written out without blanks and repetitions",
    "a thread for each utterance: two warps a multiprocessor, lanes 2048 bytes apart",
    {{"warps", "a warp an utterance, places by votes", {"small_grid", "uncoalesced_access"}}, {"blocks", "a block an utterance, sixteen frames a thread, places by sums", {"small_grid", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> letters(n * FRAMES);
        for (long i = 0; i < n * FRAMES; i++) {
            const unsigned run = hash(static_cast<unsigned>((i + hash(static_cast<unsigned>(i / 64)) % 3) / 3));
            letters[i] = run % 5 < 3 ? 0 : static_cast<unsigned char>(97 + run / 5 % 26);
        }
        const unsigned char *frames = b.copy(letters);
        unsigned char *text = b.output<unsigned char>(n * FRAMES);
        int *lengths = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(write_out, blocks(n, 128), 128, 0, frames, text, lengths, n)}, {"warps", launch(write_out_warps, blocks(n, 4), 128, 0, frames, text, lengths, n)},
            {"blocks", launch(write_out_blocks, n, 128, 0, reinterpret_cast<const uint4 *>(frames), text, lengths)}};
    });

}  // namespace
