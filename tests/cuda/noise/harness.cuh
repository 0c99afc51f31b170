// What the programs of this folder share: each file adds its kernels to one list, main.cu launches them.
//
// Every kernel does work that grows with `per_thousand`: 1000 is the kernel as it is, 1020 the same kernel with 2 % more to do. Grid, block
// and machine code stay what they are, so that two collections differ in the work alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../common.cuh"

struct Buffers {
    float *x, *y;            // kElements floats each
    unsigned *counters;      // kCounters zeros
};

constexpr size_t kElements = size_t(1) << 28;
constexpr size_t kCounters = size_t(1) << 22;

using Launch = std::function<void(const Buffers &, int per_thousand)>;

struct Case {
    std::string name;
    Launch launch;
};

// The kernels of all files, in the order of linking.
inline std::vector<Case> &cases() {
    static std::vector<Case> all;
    return all;
}

struct Register {
    Register(const char *name, Launch launch) { cases().push_back({name, launch}); }
};

// `amount` of work at 1000, in proportion at other values.
inline long long scaled(long long amount, int per_thousand) { return amount * per_thousand / 1000; }

__device__ inline unsigned scramble(unsigned value) {
    value ^= value >> 16;
    value *= 0x7feb352dU;
    value ^= value >> 15;
    value *= 0x846ca68bU;
    return value ^ (value >> 16);
}
