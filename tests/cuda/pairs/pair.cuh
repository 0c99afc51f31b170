// What every file of this folder shares: how a family of kernels says what it runs and which of its kernels differ by
// which flaw. main.cu lists, verifies, times and launches what is registered here; tools/record_pairs.py drives it.
//
//     static Family padding("transpose_padding", "transpose", {1024, 8192}, mend("shared_bank_conflicts"),
//         [](Buffers &b, long n) -> Sides { ... return {{"flawed", launch(...)}, {"mended", launch(...)}}; });
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_fp16.h>

#include "../common.cuh"

namespace pairs {

enum class Type { F32, F64, F16, I32, U32, I8, U8, U64 };

template <typename T>
struct TypeOf;
template <>
struct TypeOf<float> {
    static constexpr Type value = Type::F32;
};
template <>
struct TypeOf<double> {
    static constexpr Type value = Type::F64;
};
template <>
struct TypeOf<__half> {
    static constexpr Type value = Type::F16;
};
template <>
struct TypeOf<int> {
    static constexpr Type value = Type::I32;
};

template <>
struct TypeOf<unsigned> {
    static constexpr Type value = Type::U32;
};
template <>
struct TypeOf<signed char> {
    static constexpr Type value = Type::I8;
};
template <>
struct TypeOf<unsigned char> {
    static constexpr Type value = Type::U8;
};
template <>
struct TypeOf<unsigned long long> {
    static constexpr Type value = Type::U64;
};

// Fills `count` elements with reproducible noise between low and high (integers: low ... high - 1).
void fill(void *data, Type type, size_t count, double low, double high, unsigned seed);

// The device memory of one size of one family. Outputs are what two sides must agree in; they are poisoned (or zeroed,
// where kernels add to them) before every launch, outside of what is timed.
class Buffers {
public:
    struct Output {
        void *data;
        Type type;
        size_t count, bytes;  // count: how many values are compared
        bool zeroed;
        const void *initial = nullptr;  // what it holds before every launch, where kernels change it in place
    };

    template <typename T>
    T *random(size_t count, double low = -1.0, double high = 1.0) {
        T *data = allocate<T>(count);
        fill(data, TypeOf<T>::value, count, low, high, ++seed_);
        return data;
    }
    template <typename T>
    T *copy(const std::vector<T> &host) {
        T *data = allocate<T>(host.size());
        CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
        return data;
    }
    template <typename T>
    T *output(size_t count, bool zeroed = false) {
        T *data = allocate<T>(count);
        outputs.push_back({data, TypeOf<T>::value, count, count * sizeof(T), zeroed});
        return data;
    }
    template <typename T>
    T *changed(const T *initial, size_t count) {
        T *data = output<T>(count);
        outputs.back().initial = initial;
        return data;
    }
    template <typename T>
    T *allocate(size_t count) {
        T *data = nullptr;
        CHECK(cudaMalloc(&data, count * sizeof(T)));
        owned_.push_back(data);
        return data;
    }
    void prepare() const {
        for (const Output &o : outputs)
            if (o.initial) CHECK(cudaMemcpyAsync(o.data, o.initial, o.bytes, cudaMemcpyDeviceToDevice));
            else CHECK(cudaMemsetAsync(o.data, o.zeroed ? 0 : 0xff, o.bytes));
    }
    ~Buffers() {
        for (void *data : owned_) cudaFree(data);
    }

    std::vector<Output> outputs;
    double tolerance = 1e-4;  // largest difference between two sides, as a share of the largest value
    double amount = 0.0;      // of what a launch does (bytes, operations), where a rate is wanted

private:
    std::vector<void *> owned_;
    unsigned seed_ = 0;
};

// One version of the kernel. `launches` is how many launches do the work (more than one only for launch overhead).
struct Side {
    std::string name;
    std::function<void()> run;
    std::function<void()> profiled = {};  // what is profiled, where that is not all of it
    int launches = 1;
    std::function<void()> check = {};  // brings the results into the form that is compared
};
using Sides = std::vector<Side>;

inline Sides flawed_mended(std::function<void()> flawed, std::function<void()> mended) {
    return {{"flawed", std::move(flawed)}, {"mended", std::move(mended)}};
}

// Side `to` is side `from` with the flaws `causes` gone and nothing else changed.
struct Row {
    std::string from, to;
    std::vector<std::string> causes;
    std::string kind;
    std::string transformation = "";  // what was written instead, in words
};
using Rows = std::vector<Row>;

// The usual case: one flaw, two sides. `kind` says what the pair is for: "toy", "real", "behind_limit", "ladder".
inline Rows mend(std::string cause, std::string kind = "toy") {
    return {{"flawed", "mended", {std::move(cause)}, std::move(kind)}};
}

// Several flaws of one kernel, each on a side of its own, against the same sound side "mended".
inline Row flaw(std::string side, std::string cause, std::string kind = "toy") {
    return {std::move(side), "mended", {std::move(cause)}, std::move(kind)};
}

// Two flaws in one kernel: sides "both", "first_mended", "second_mended" and "mended".
inline Rows mend_two(const std::string &first, const std::string &second) {
    return {{"both", "first_mended", {first}, "two_flaws"}, {"both", "second_mended", {second}, "two_flaws"},
        {"both", "mended", {first, second}, "two_flaws"}, {"second_mended", "mended", {first}, "two_flaws"},
        {"first_mended", "mended", {second}, "two_flaws"}};
}

using Make = std::function<Sides(Buffers &, long)>;

struct Family {
    // `kernel` names what is computed: families of one kernel are left out together when predictions are judged.
    Family(std::string name, std::string kernel, std::vector<long> sizes, Rows rows, Make make,
        const char *file = __builtin_FILE())
        : name(std::move(name)), kernel(std::move(kernel)), file(file), sizes(std::move(sizes)), rows(std::move(rows)),
          make(std::move(make)) {
        all().push_back(this);
    }
    static std::vector<Family *> &all() {
        static std::vector<Family *> families;
        return families;
    }

    std::string name, kernel, file;
    std::vector<long> sizes;
    Rows rows;
    Make make;
    std::string domain, about, flaw;  // of studies: where such kernels run, what is computed, what is wrong with it
};

// One way to remove a flaw: the name of its side, what is written instead, and which causes that removes.
struct Fix {
    std::string side, transformation;
    std::vector<std::string> causes;
};

// A kernel as people write it, and several ways to remove its one flaw: side "flawed" against a side for each fix.
// Without a flaw (and fixes) there is one side, "sound".
struct Study : Family {
    Study(const std::string &name, std::string domain, long size, std::string about, std::string flaw,
        const std::vector<Fix> &fixes, Make make, const char *file = __builtin_FILE())
        : Family(name, name, {size}, {}, std::move(make), file) {
        this->domain = std::move(domain), this->about = std::move(about), this->flaw = std::move(flaw);
        for (const Fix &fix : fixes) rows.push_back({"flawed", fix.side, fix.causes, "real", fix.transformation});
        if (fixes.empty()) rows.push_back({"sound", "", {}, "near_optimal"});
    }
};

// A launch to be run later. Asks for more than 48 KiB of dynamic shared memory where needed.
template <typename... Parameters, typename... Arguments>
std::function<void()> launch(
    void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, Arguments... arguments) {
    return [=] {
        if (shared > 48 * 1024)
            CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
        kernel<<<grid, block, shared>>>(static_cast<Parameters>(arguments)...);
    };
}

inline unsigned blocks(long work, long per_block) { return static_cast<unsigned>((work + per_block - 1) / per_block); }

// Multiprocessors of the GPU in use; 132 where there is none (the lists can be read on any machine).
inline int multiprocessors() {
    int count = 0;
    return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess ? count : 132;
}

__device__ __forceinline__ float warp_sum(float x) {
    for (int offset = 16; offset; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
    for (int offset = 16; offset; offset /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
    return x;
}

// A cheap hash, for kernels that draw their own random numbers.
__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

}  // namespace pairs

using namespace pairs;  // NOLINT: these files are programs, not headers for others
