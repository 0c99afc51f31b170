// What the programs beside this share: their data, the comparison of every form with the kernel as it is, and the times.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>

inline void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
}

__host__ __device__ __forceinline__ unsigned hashed(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

template <class T> T *get(size_t count) {
    T *data;
    check(cudaMalloc(&data, count * sizeof(T)));
    return data;
}

template <class T> T *copied(const std::vector<T> &host) {
    T *data = get<T>(host.size());
    check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

template <class T> __global__ void fill(T *data, size_t count, double low, double high, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        const double value = low + (high - low) * hashed(unsigned(i) ^ hashed(seed)) / 4294967296.0;
        data[i] = T(std::is_integral<T>::value ? floor(value) : value);
    }
}

// Values from low up to high, the same in every run.
template <class T> T *drawn(size_t count, double low, double high, unsigned seed) {
    T *data = get<T>(count);
    fill<<<1056, 256>>>(data, count, low, high, seed);
    check(cudaDeviceSynchronize());
    return data;
}

struct Form {
    const char *name;
    std::function<void()> run;
};

// Results of a form; what they differ by from the first form's at most: as a share of the largest value, unless whole
// numbers have to be the same.
class Output {
  public:
    template <class T> Output(T *data, size_t count, bool exact = std::is_integral<T>::value) {
        auto right = std::make_shared<std::vector<T>>();
        poison = [=] { check(cudaMemset(data, 0xff, count * sizeof(T))); };
        difference = [=] {
            std::vector<T> own(count);
            check(cudaMemcpy(own.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
            if (right->empty()) *right = own;
            double most = 0.0, largest = 0.0;
            for (size_t i = 0; i < count; ++i) {
                const double off = std::abs(double(own[i]) - double((*right)[i]));
                most = std::max(most, std::isnan(off) ? double(INFINITY) : off);
                largest = std::max(largest, std::abs(double((*right)[i])));
            }
            return exact || !largest ? most : most / largest;
        };
    }
    std::function<void()> poison;
    std::function<double()> difference;
};

// Compares all forms with the first, the kernel as it is, then times each in two turns: the median of 50 launches behind
// ten, each with a cold L2. `prepare` runs before each launch and is not timed. With TRIED_ONCE each form only runs once,
// for ncu; so does the form whose name is `only`, where that is given.
inline void judge(const std::vector<Form> &forms, const std::vector<Output> &outputs, const std::function<void()> &prepare = [] {}, const char *only = nullptr) {
    if (std::getenv("TRIED_ONCE") || only) {
        int runs = 0;
        for (const Form &form : forms)
            if (!only || !std::strcmp(only, form.name)) prepare(), form.run(), check(cudaDeviceSynchronize()), ++runs;
        if (runs) return;
        std::fprintf(stderr, "no form is named %s; there are:", only);
        for (const Form &form : forms) std::fprintf(stderr, " %s", form.name);
        std::fprintf(stderr, "\n");
        std::exit(2);
    }
    std::vector<double> differences;
    for (const Form &form : forms) {
        for (const Output &one : outputs) one.poison();
        prepare(), form.run();
        check(cudaDeviceSynchronize());
        double most = 0.0;
        for (const Output &one : outputs) most = std::max(most, one.difference());
        differences.push_back(most);
    }
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin)), check(cudaEventCreate(&end));
    void *flush = get<char>(128 << 20);
    for (int turn = 0; turn < 2; ++turn)
        for (size_t f = 0; f < forms.size(); ++f) {
            std::vector<float> times;
            for (int i = 0; i < 60; ++i) {
                prepare();
                check(cudaMemsetAsync(flush, 0, 128 << 20));
                check(cudaEventRecord(begin)), forms[f].run(), check(cudaEventRecord(end)), check(cudaEventSynchronize(end));
                float ms = 0.f;
                check(cudaEventElapsedTime(&ms, begin, end));
                if (i > 9) times.push_back(ms * 1e3f);
            }
            std::sort(times.begin(), times.end());
            std::printf("STMT %s %.3f %.3g\n", forms[f].name, times[times.size() / 2], differences[f]);
        }
    check(cudaGetLastError());
}
