// What each part of a GPU reaches when nothing else is asked of it: one kernel a ceiling, run, timed and profiled as
// the pairs are. The amount is what a launch does in the unit that the comment names; the size is what is varied.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

Sides one(std::function<void()> run) { return {{"ceiling", std::move(run)}}; }
int sms() { return multiprocessors(); }

// --- device memory, L2 and L1: bytes ---

enum Way { READ, READ_L2, WRITE, COPY };

// Every block streams through `n` words of four floats, `rounds` times; eight are in flight a thread.
template <Way way, int InFlight>
__global__ void __launch_bounds__(512) stream(const float4 *in, float4 *out, int n, int rounds) {
    int step = gridDim.x * blockDim.x;
    float4 sum = {};
    for (int r = 0; r < rounds; ++r)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step * InFlight) {
            float4 v[InFlight];
#pragma unroll
            for (int k = 0; k < InFlight; ++k)
                v[k] = way == WRITE     ? float4{1.0f, 2.0f, 3.0f, float(i)}
                       : way == READ_L2 ? __ldcg(&in[i + k * step])
                                        : __ldcs(&in[i + k * step]);
#pragma unroll
            for (int k = 0; k < InFlight; ++k) {
                if (way == READ || way == READ_L2) sum.x += v[k].x, sum.y += v[k].y, sum.z += v[k].z, sum.w += v[k].w;
                else out[i + k * step] = v[k];
            }
        }
    if (way == READ || way == READ_L2) out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// `blocks` of `threads`; `megabytes` in all, read `rounds` times.
template <Way way, int InFlight = 8>
Sides streaming(Buffers &b, long megabytes, int blocks, int threads, int rounds) {
    long unit = long(blocks) * threads * InFlight, n = megabytes * 65536 / unit * unit;
    bool writes = way == WRITE || way == COPY;
    auto *in = reinterpret_cast<float4 *>(b.random<float>(n * 4));
    auto *out = reinterpret_cast<float4 *>(b.output<float>((writes ? n : long(blocks) * threads) * 4));
    b.amount = double(n) * 16 * rounds * (way == COPY ? 2 : 1);
    return one(launch(stream<way, InFlight>, blocks, threads, 0, in, out, n, rounds));
}
Family dram_read("dram_read", "bytes", {256, 1024}, {},
    [](Buffers &b, long mb) { return streaming<READ>(b, mb, sms() * 4, 512, 1); });
Family dram_write("dram_write", "bytes", {256, 1024}, {},
    [](Buffers &b, long mb) { return streaming<WRITE>(b, mb, sms() * 4, 512, 1); });
Family dram_copy("dram_copy", "bytes", {256, 1024}, {},
    [](Buffers &b, long mb) { return streaming<COPY>(b, mb, sms() * 4, 512, 1); });
// By how many multiprocessors take part, a block of 1024 threads each.
Family dram_read_sms("dram_read_sms", "bytes", {1, 8, 33, 66, 99, 132}, {},
    [](Buffers &b, long blocks) { return streaming<READ>(b, 4 * blocks, blocks, 512, 1); });
// By the bytes in flight a multiprocessor: `kilobytes`, one access of 16 bytes a thread.
Family dram_in_flight("dram_in_flight", "bytes", {2, 4, 8, 16, 32}, {}, [](Buffers &b, long kilobytes) {
    return streaming<READ, 1>(
        b, 256, sms() * (kilobytes > 8 ? kilobytes / 8 : 1), kilobytes > 8 ? 512 : kilobytes * 64, 1);
});
Family l2_in_flight("l2_in_flight", "bytes", {2, 4, 8, 16, 32}, {}, [](Buffers &b, long kilobytes) {
    return streaming<READ_L2, 1>(
        b, 16, sms() * (kilobytes > 8 ? kilobytes / 8 : 1), kilobytes > 8 ? 512 : kilobytes * 64, 32);
});
Family l2_read("l2_read", "bytes", {9, 27}, {},
    [](Buffers &b, long mb) { return streaming<READ_L2, 2>(b, mb, sms() * 4, 512, 1024 / mb); });
Family l2_write("l2_write", "bytes", {18}, {},
    [](Buffers &b, long mb) { return streaming<WRITE, 2>(b, mb, sms() * 4, 512, 1024 / mb); });

// Every thread reads words of four bytes from anywhere, a sector of 32 bytes each; eight are in flight.
__global__ void __launch_bounds__(512) anywhere(const float *in, float *out, unsigned mask, int rounds) {
    unsigned at = hash(blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0.0f;
    for (int r = 0; r < rounds; ++r) {
        float v[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] = __ldcg(&in[(at = at * 1664525u + 1013904223u) >> 3 & mask]);
#pragma unroll
        for (int k = 0; k < 8; ++k) sum += v[k];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
Sides sectors_anywhere(Buffers &b, long megabytes) {
    int grid = sms() * 4, rounds = 16;
    float *in = b.random<float>(megabytes << 18), *out = b.output<float>(grid * 512);
    b.amount = double(grid) * 512 * rounds * 8 * 32;
    return one(launch(anywhere, grid, 512, 0, in, out, unsigned(megabytes << 18) - 1, rounds));
}
Family random_sectors("random_sectors", "bytes", {8, 2048}, {}, sectors_anywhere);

// A block reads 32 KiB of its own again and again: hits in L1, words of `Word`, lanes `Stride` words apart.
template <typename Word, int Stride>
__global__ void __launch_bounds__(1024) l1_hits(const Word *in, float *out, int rounds, int zero) {
    constexpr int WORDS = 32768 / sizeof(Word);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Word *mine = in + blockIdx.x * WORDS + (lane * Stride + warp * (Stride > 1 ? 1 : 32)) % (WORDS / 8);
    float sum = 0.0f;
    for (int r = 0; r < rounds; ++r, mine += zero)  // a step of none, or the loads of all rounds are one
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            Word v;
            const Word *from = mine + k * (WORDS / 8);
            if constexpr (sizeof(Word) == 16) {
                asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                             : "l"(from));
                sum += v.x + v.y + v.z + v.w;
            } else {
                asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v) : "l"(from));
                sum += v;
            }
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
template <typename Word, int Stride>
Sides hits(Buffers &b, long rounds) {
    int grid = sms() * 2;
    auto *in = reinterpret_cast<Word *>(b.random<float>(grid * 8192));
    float *out = b.output<float>(grid * 1024);
    b.amount = double(grid) * 1024 * rounds * 8 * sizeof(Word);
    return one(launch(l1_hits<Word, Stride>, grid, 1024, 0, in, out, rounds, 0));
}
Family l1_float("l1_float", "bytes", {256}, {}, hits<float, 1>);
Family l1_float4("l1_float4", "bytes", {128}, {}, hits<float4, 1>);
Family l1_stride_2("l1_stride_2", "bytes", {256}, {}, hits<float, 2>);
Family l1_stride_8("l1_stride_8", "bytes", {128}, {}, hits<float, 8>);
Family l1_stride_32("l1_stride_32", "bytes", {64}, {}, hits<float, 32>);

// --- shared memory: bytes ---

template <typename Word, bool Store, int Stride>
__global__ void __launch_bounds__(1024) shared_words(float *out, int rounds, int zero) {
    __shared__ Word data[2048];
    for (int i = threadIdx.x; i < 2048; i += 1024) {
        if constexpr (sizeof(Word) == 16) data[i] = Word{1.0f, 2.0f, 3.0f, 4.0f};
        else data[i] = float(i);
    }
    __syncthreads();
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&data[threadIdx.x * Stride % 1024]));
    float sum = threadIdx.x;
    for (int r = 0; r < rounds; ++r, at += zero)
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            unsigned from = at + k * 32 * sizeof(Word);
            if constexpr (Store) {
                if constexpr (sizeof(Word) == 16)
                    asm volatile("st.shared.v4.f32 [%0], {%1, %1, %1, %1};" ::"r"(from), "f"(sum));
                else asm volatile("st.shared.f32 [%0], %1;" ::"r"(from), "f"(sum));
            } else {
                Word v;
                if constexpr (sizeof(Word) == 16) {
                    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                                 : "r"(from));
                    sum += v.x + v.y + v.z + v.w;
                } else {
                    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from));
                    sum += v;
                }
            }
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
template <typename Word, bool Store, int Stride = 1>
Sides shared_rate(Buffers &b, long rounds) {
    int grid = sms() * 2;
    float *out = b.output<float>(grid * 1024);
    b.amount = double(grid) * 1024 * rounds * 16 * sizeof(Word);
    return one(launch(shared_words<Word, Store, Stride>, grid, 1024, 0, out, rounds, 0));
}
Family shared_load_4("shared_load_4", "bytes", {256}, {}, shared_rate<float, false>);
Family shared_load_16("shared_load_16", "bytes", {64}, {}, shared_rate<float4, false>);
Family shared_store_4("shared_store_4", "bytes", {256}, {}, shared_rate<float, true>);
Family shared_store_16("shared_store_16", "bytes", {64}, {}, shared_rate<float4, true>);
Family shared_load_8_way("shared_load_8_way", "bytes", {32}, {}, shared_rate<float, false, 8>);

// --- pipes: thread operations ---

// Eight chains a thread of one instruction each; sixteen warps a scheduler hide every latency.
#define PIPE(NAME, T, START, ASM, OUT)                                                                                 \
    __global__ void __launch_bounds__(1024) NAME(float *out, int rounds, T c) {                                        \
        T x[8];                                                                                                        \
        for (int k = 0; k < 8; ++k) x[k] = START;                                                                      \
        for (int r = 0; r < rounds; ++r) {                                                                             \
            _Pragma("unroll") for (int u = 0; u < 4; ++u) { _Pragma("unroll") for (int k = 0; k < 8; ++k) ASM; }       \
        }                                                                                                              \
        float sum = 0.0f;                                                                                              \
        for (int k = 0; k < 8; ++k) sum += OUT;                                                                        \
        out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                                                              \
    }
PIPE(ffma, float, threadIdx.x + k, asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x[k]) : "f"(c)), x[k])
PIPE(fadd, float, threadIdx.x + k, asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x[k]) : "f"(c)), x[k])
PIPE(imad, int, threadIdx.x + k, asm volatile("mad.lo.s32 %0, %0, %1, %1;" : "+r"(x[k]) : "r"(c)), float(x[k]))
PIPE(lop3, int, threadIdx.x + k,
    asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;"
                 : "+r"(x[k])
                 : "r"(c), "r"(x[(k + 1) % 8])),
    float(x[k]))
PIPE(iadd3, int, threadIdx.x + k, asm volatile("add.s32 %0, %0, %1;" : "+r"(x[k]) : "r"(x[(k + 1) % 8])), float(x[k]))
PIPE(mufu, float, threadIdx.x + k, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[k])), fminf(x[k], 1.0f) + c)
PIPE(dfma, double, threadIdx.x + k, asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+d"(x[k]) : "d"(c)), float(x[k]))
PIPE(hfma2, int, 0x3c003c00 + k, asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(x[k]) : "r"(c)), float(x[k]))
PIPE(
    f2f, float, threadIdx.x + k,
    {
        double d;
        asm volatile("cvt.f64.f32 %0, %1;" : "=d"(d) : "f"(x[k]));
        asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(x[k]) : "d"(d));
    },
    x[k] + c)
PIPE(shuffle, float, threadIdx.x + k, asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(x[k])), x[k] + c)
PIPE(popc, int, threadIdx.x + k, asm volatile("popc.b32 %0, %0;" : "+r"(x[k])), float(x[k] + c))
// Multiply-adds and logic in turn: two pipes, so that issue slots are the limit.
PIPE(
    issue_mix, float, threadIdx.x + k,
    {
        if (k % 2) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x[k]) : "f"(c));
        else {
            int i = __float_as_int(x[k]);
            asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;"
                         : "+r"(i)
                         : "r"(__float_as_int(c)), "r"(__float_as_int(x[(k + 1) % 8])));
            x[k] = __int_as_float(i);
        }
    },
    x[k])

template <typename T>
Sides pipe(Buffers &b, void (*kernel)(float *, int, T), long rounds, int blocks = 0, int threads = 1024) {
    int grid = blocks ? blocks : sms() * 2;
    float *out = b.output<float>(grid * threads);
    b.amount = double(grid) * threads * rounds * 32;
    return one(launch(kernel, grid, threads, 0, out, rounds, T(1)));
}
Family pipe_fma("pipe_fma", "operations", {256}, {}, [](Buffers &b, long r) { return pipe(b, ffma, r); });
Family pipe_fadd("pipe_fadd", "operations", {256}, {}, [](Buffers &b, long r) { return pipe(b, fadd, r); });
Family pipe_imad("pipe_imad", "operations", {128}, {}, [](Buffers &b, long r) { return pipe(b, imad, r); });
Family pipe_alu("pipe_alu", "operations", {128}, {}, [](Buffers &b, long r) { return pipe(b, lop3, r); });
Family pipe_iadd("pipe_iadd", "operations", {128}, {}, [](Buffers &b, long r) { return pipe(b, iadd3, r); });
Family pipe_xu("pipe_xu", "operations", {64}, {}, [](Buffers &b, long r) { return pipe(b, mufu, r); });
Family pipe_fp64("pipe_fp64", "operations", {128}, {}, [](Buffers &b, long r) { return pipe(b, dfma, r); });
Family pipe_fp16("pipe_fp16", "operations", {256}, {}, [](Buffers &b, long r) { return pipe(b, hfma2, r); });
Family pipe_convert("pipe_convert", "operations", {32}, {}, [](Buffers &b, long r) { return pipe(b, f2f, r); });
Family pipe_shuffle("pipe_shuffle", "operations", {64}, {}, [](Buffers &b, long r) { return pipe(b, shuffle, r); });
Family pipe_popc("pipe_popc", "operations", {64}, {}, [](Buffers &b, long r) { return pipe(b, popc, r); });
Family pipe_issue("pipe_issue", "operations", {256}, {}, [](Buffers &b, long r) { return pipe(b, issue_mix, r); });
// By how many multiprocessors take part, and by the warps of a scheduler.
Family grid_fma("grid_fma", "operations", {1, 33, 66, 132, 133, 264}, {},
    [](Buffers &b, long blocks) { return pipe(b, ffma, 512, int(blocks)); });

// --- tensor cores: multiply-adds ---

__global__ void __launch_bounds__(512) hmma(float *out, int rounds) {
    float c[4][4] = {};
    unsigned a[4] = {0x3c003c00u, threadIdx.x, 0x3c003c00u, 1u}, b[2] = {0x3c003c00u, threadIdx.x};
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < 16; ++k)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
                         "%9}, {%0, %1, %2, %3};"
                         : "+f"(c[k % 4][0]), "+f"(c[k % 4][1]), "+f"(c[k % 4][2]), "+f"(c[k % 4][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) sum += c[k][0] + c[k][1] + c[k][2] + c[k][3];
    out[blockIdx.x * blockDim.x + threadIdx.x] = fminf(sum, 1.0f);
}
Family pipe_hmma("pipe_hmma", "multiply_adds", {512}, {}, [](Buffers &b, long rounds) -> Sides {
    int grid = sms() * 2;
    float *out = b.output<float>(grid * 512);
    b.amount = double(grid) * 16 * rounds * 16 * 16 * 8 * 16;
    return one(launch(hmma, grid, 512, 0, out, rounds));
});

// --- atomics: thread operations ---

// Lanes `stride` words apart over a power of two of words (0: all at one).
template <typename T>
__global__ void global_adds(T *to, unsigned mask, int rounds, int stride, int turn) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; ++r) {
        unsigned at =
            (unsigned(thread) * stride + unsigned(r) * turn) & mask;  // the compiler cannot know that all meet
        atomicAdd(&to[at], T(1));
    }
}
template <typename T>
Sides adds(Buffers &b, int words, int rounds, int stride) {
    T *to = b.output<T>(words, true);
    b.amount = double(sms()) * 8 * 256 * rounds;
    return one(launch(global_adds<T>, sms() * 8, 256, 0, to, words - 1, rounds, stride, stride ? 7919 * 32 : 0));
}
// How far apart the words of neighbouring lanes are; 0: all threads at one word.
Family global_atomics_int("global_atomics_int", "operations", {0, 1, 8, 33}, {},
    [](Buffers &b, long s) { return adds<int>(b, 1 << 20, s ? 16 : 4, s); });
Family global_atomics_float("global_atomics_float", "operations", {0, 1, 8, 33}, {},
    [](Buffers &b, long s) { return adds<float>(b, 1 << 20, s ? 16 : 4, s); });

template <typename T>
__global__ void shared_adds(T *out, int stride, int rounds) {
    __shared__ T data[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) data[i] = T(0);
    __syncthreads();
    for (int r = 0; r < rounds; ++r) atomicAdd(&data[(threadIdx.x * stride + r * stride) % 1024], T(1));
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = data[threadIdx.x] + data[0];
}
template <typename T>
Sides shared_add(Buffers &b, long stride) {
    T *out = b.output<T>(sms() * 8 * 256);
    int rounds = stride ? 64 : 16;
    b.amount = double(sms()) * 8 * 256 * rounds;
    return one(launch(shared_adds<T>, sms() * 8, 256, 0, out, stride, rounds));
}
Family shared_atomics_int("shared_atomics_int", "operations", {0, 1, 8, 32}, {}, shared_add<int>);
Family shared_atomics_float("shared_atomics_float", "operations", {0, 1, 32}, {}, shared_add<float>);

// All threads of the GPU add to so many words, neighbouring lanes to neighbouring words.
Family hot_atomics_int("hot_atomics_int", "operations", {1, 32, 1024, 32768}, {},
    [](Buffers &b, long words) { return adds<int>(b, int(words), 4, 1); });
Family hot_atomics_float("hot_atomics_float", "operations", {1, 32, 1024, 32768}, {},
    [](Buffers &b, long words) { return adds<float>(b, int(words), 4, 1); });

// --- barriers: barriers of a block ---

__global__ void barriers(float *out, int rounds) {
    float x = threadIdx.x;
    for (int r = 0; r < rounds; ++r) {
        __syncthreads();
        x += 1.0f;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
// By the threads of a block, as many blocks as fit.
Family barrier("barrier", "barriers", {64, 256, 1024}, {}, [](Buffers &b, long threads) -> Sides {
    int grid = sms() * int(2048 / threads);
    float *out = b.output<float>(grid * threads);
    b.amount = double(grid) * 1000;
    return one(launch(barriers, grid, threads, 0, out, 1000));
});
Family barrier_alone("barrier_alone", "barriers", {32, 256, 1024}, {}, [](Buffers &b, long threads) -> Sides {
    float *out = b.output<float>(threads);
    b.amount = 1000;
    return one(launch(barriers, 1, threads, 0, out, 1000));
});

// --- latencies: dependent operations of one warp (the time of one is the latency) ---

__global__ void global_chain(const int *next, int *out, int steps) {
    int at = threadIdx.x;
    for (int s = 0; s < steps; ++s) asm volatile("ld.global.ca.s32 %0, [%1];" : "=r"(at) : "l"(next + at));
    out[threadIdx.x] = at;
}
// By the kilobytes of the ring: within L1, within L2, beyond it. Lanes walk side by side, a line a step.
Family latency_global("latency_global", "dependent", {16, 8192, 1 << 20}, {}, [](Buffers &b, long kilobytes) -> Sides {
    long lines = kilobytes * 8;
    std::vector<int> next(lines * 32), order(lines);
    for (long i = 0; i < lines; ++i) order[i] = int(i);
    for (long i = lines - 1; i > 0; --i) std::swap(order[i], order[hash(unsigned(i)) % (i + 1)]);
    for (long i = 0; i < lines; ++i)
        for (int lane = 0; lane < 32; ++lane) next[order[i] * 32 + lane] = order[(i + 1) % lines] * 32 + lane;
    int *ring = b.copy(next), *out = b.output<int>(32),
        steps = kilobytes < 100     ? 8192
                : kilobytes < 10000 ? 4096
                                    : 2048;
    b.amount = steps;
    // A ring within L2 has to be there: L2 is cold when the launch begins, so the chain goes round it first.
    if (kilobytes == 8192) steps = int(lines) + 4096, b.amount = steps;
    return one(launch(global_chain, 1, 32, 0, ring, out, steps));
});
__global__ void shared_chain(int *out, int steps) {
    __shared__ int next[1024];
    for (int i = threadIdx.x; i < 1024; i += 32) next[i] = (i + 32) % 1024 * 4;
    __syncwarp();
    unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(next));
    int at = threadIdx.x * 4;
    for (int s = 0; s < steps; ++s) asm volatile("ld.shared.s32 %0, [%1];" : "=r"(at) : "r"(base + at));
    out[threadIdx.x] = at;
}
Family latency_shared("latency_shared", "dependent", {8192}, {}, [](Buffers &b, long steps) -> Sides {
    int *out = b.output<int>(32);
    b.amount = double(steps);
    return one(launch(shared_chain, 1, 32, 0, out, steps));
});
#define CHAIN(NAME, T, ASM)                                                                                            \
    __global__ void NAME(float *out, int rounds, T c) {                                                                \
        T x = T(threadIdx.x + 1);                                                                                      \
        for (int r = 0; r < rounds; ++r) {                                                                             \
            _Pragma("unroll") for (int u = 0; u < 32; ++u) ASM;                                                        \
        }                                                                                                              \
        out[threadIdx.x] = fminf(float(x), 1.0f) + float(c);                                                           \
    }
CHAIN(chain_ffma, float, asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(c)))
CHAIN(chain_imad, int, asm volatile("mad.lo.s32 %0, %0, %1, %1;" : "+r"(x) : "r"(c)))
CHAIN(chain_lop3, int, asm volatile("lop3.b32 %0, %0, %1, %1, 0x96;" : "+r"(x) : "r"(c)))
CHAIN(chain_mufu, float, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)))
CHAIN(chain_dfma, double, asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+d"(x) : "d"(c)))
CHAIN(chain_shuffle, float, asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(x)))
template <typename T>
Sides chain(Buffers &b, void (*kernel)(float *, int, T), long rounds) {
    float *out = b.output<float>(32);
    b.amount = rounds * 32.0;
    return one(launch(kernel, 1, 32, 0, out, rounds, T(1)));
}
Family latency_ffma(
    "latency_ffma", "dependent", {1024}, {}, [](Buffers &b, long r) { return chain(b, chain_ffma, r); });
Family latency_imad(
    "latency_imad", "dependent", {1024}, {}, [](Buffers &b, long r) { return chain(b, chain_imad, r); });
Family latency_lop3(
    "latency_lop3", "dependent", {1024}, {}, [](Buffers &b, long r) { return chain(b, chain_lop3, r); });
Family latency_mufu("latency_mufu", "dependent", {512}, {}, [](Buffers &b, long r) { return chain(b, chain_mufu, r); });
Family latency_dfma("latency_dfma", "dependent", {512}, {}, [](Buffers &b, long r) { return chain(b, chain_dfma, r); });
Family latency_shuffle(
    "latency_shuffle", "dependent", {512}, {}, [](Buffers &b, long r) { return chain(b, chain_shuffle, r); });
// A look-up in constant memory by one address a warp, and by 32.
__constant__ int constants[1024];
__global__ void constant_words(float *out, int rounds, int stride) {
    int at = threadIdx.x * stride % 32, sum = 0;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            int v;
            asm volatile("ld.const.s32 %0, [%1];"
                         : "=r"(v)
                         : "l"(__cvta_generic_to_constant(&constants[(at + r * 8 + k) % 1024])));
            sum += v;
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum + 1.0f;
}
Family constant_addresses("constant_addresses", "operations", {0, 1}, {}, [](Buffers &b, long stride) -> Sides {
    int grid = sms() * 2, rounds = stride ? 16 : 256;
    float *out = b.output<float>(grid * 1024);
    b.amount = double(grid) * 1024 * rounds * 8;
    return one(launch(constant_words, grid, 1024, 0, out, rounds, stride));
});

// --- launches: one after another, each of an empty kernel ---

__global__ void nothing(int *out) {
    if (out && threadIdx.x == 0 && blockIdx.x == 0) *out = 1;
}
Family launches("launches", "launches", {1, 100}, {}, [](Buffers &b, long count) -> Sides {
    int *out = b.output<int>(1);
    b.amount = double(count);
    return {{"ceiling",
        [=] {
            for (long k = 0; k < count; ++k) nothing<<<sms(), 128>>>(out);
        },
        launch(nothing, sms(), 128, 0, out), int(count)}};
});

}  // namespace
