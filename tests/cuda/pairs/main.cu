// Runs the registered families: `pairs list`, `pairs check|time|profile [FAMILY[=SIZE] ...]`.
//
// list     one JSON line a family: its sizes and what differs between its sides
// check    one JSON line a side and size: the difference between its results and the first side's
// time     one JSON line a side and size: median and spread of L2-flushed launches in random turns, and the difference
//          between this side's results and the first side's
// profile  launches every side of every size once between cudaProfilerStart and cudaProfilerStop, and says in which
//          order: for `ncu --profile-from-start off`
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <cuda_profiler_api.h>

#include "pair.cuh"

namespace {

constexpr size_t FLUSH_BYTES = size_t{256} << 20;  // several times the L2 of any GPU of today
constexpr int REPETITIONS = 21;

__device__ double read(const void *data, Type type, size_t i) {
    switch (type) {
    case Type::F32: return static_cast<const float *>(data)[i];
    case Type::F64: return static_cast<const double *>(data)[i];
    case Type::F16: return __half2float(static_cast<const __half *>(data)[i]);
    case Type::I32: return static_cast<const int *>(data)[i];
    case Type::U32: return static_cast<const unsigned *>(data)[i];
    case Type::I8: return static_cast<const signed char *>(data)[i];
    case Type::U8: return static_cast<const unsigned char *>(data)[i];
    case Type::U64: return static_cast<double>(static_cast<const unsigned long long *>(data)[i]);
    }
    return 0.0;
}

__global__ void fill_kernel(void *data, Type type, size_t count, double low, double high, unsigned seed) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
        double unit = hash(static_cast<unsigned>(i) ^ hash(seed + static_cast<unsigned>(i >> 32))) / 4294967296.0;
        double value = low + unit * (high - low);
        switch (type) {
        case Type::F32: static_cast<float *>(data)[i] = static_cast<float>(value); break;
        case Type::F64: static_cast<double *>(data)[i] = value; break;
        case Type::F16: static_cast<__half *>(data)[i] = __float2half(static_cast<float>(value)); break;
        case Type::I32: static_cast<int *>(data)[i] = static_cast<int>(floor(value)); break;
        case Type::U32: static_cast<unsigned *>(data)[i] = static_cast<unsigned>(floor(value)); break;
        case Type::I8: static_cast<signed char *>(data)[i] = static_cast<signed char>(floor(value)); break;
        case Type::U8: static_cast<unsigned char *>(data)[i] = static_cast<unsigned char>(floor(value)); break;
        case Type::U64: static_cast<unsigned long long *>(data)[i] = static_cast<unsigned long long>(value); break;
        }
    }
}

// result[0]: largest difference, result[1]: largest value, both as bits of a non-negative double; result[2]: NaNs.
__global__ void compare_kernel(const void *a, const void *b, Type type, size_t count, unsigned long long *result) {
    double difference = 0.0, largest = 0.0;
    unsigned long long wrong = 0;
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
        double x = read(a, type, i), y = read(b, type, i);
        if (!isfinite(x) || !isfinite(y)) ++wrong;
        else {
            difference = fmax(difference, fabs(x - y));
            largest = fmax(largest, fabs(x));
        }
    }
    atomicMax(&result[0], static_cast<unsigned long long>(__double_as_longlong(difference)));
    atomicMax(&result[1], static_cast<unsigned long long>(__double_as_longlong(largest)));
    if (wrong) atomicAdd(&result[2], wrong);
}

__global__ void flush_kernel(const float4 *data, size_t count, float *sink) {
    float sum = 0.0f;
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
        sum += data[i].x;
    if (sum == -1.0f) *sink = sum;
}

// Keeps the GPU busy while the host queues the launch to be timed, so that no gap between launches is timed.
__global__ void spin_kernel(long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (static_cast<long long>(now - start) < nanoseconds);
}

__global__ void empty_kernel() {}

// Largest difference of the present outputs to `reference` (one copy an output), as a share of the largest value.
double difference(const Buffers &buffers, const std::vector<void *> &reference) {
    static unsigned long long *result = nullptr;
    if (!result) CHECK(cudaMalloc(&result, 3 * sizeof *result));
    double worst = 0.0;
    for (size_t i = 0; i < buffers.outputs.size(); ++i) {
        const Buffers::Output &o = buffers.outputs[i];
        if (!o.count) continue;
        CHECK(cudaMemset(result, 0, 3 * sizeof *result));
        compare_kernel<<<1024, 256>>>(reference[i], o.data, o.type, o.count, result);
        CHECK_LAUNCH();
        unsigned long long bits[3];
        CHECK(cudaMemcpy(bits, result, sizeof bits, cudaMemcpyDeviceToHost));
        double values[2];
        std::memcpy(values, bits, sizeof values);
        double share = bits[2] ? INFINITY : values[1] > 0.0 ? values[0] / values[1] : INFINITY;
        worst = std::max(worst, share);
    }
    return worst;
}

struct Timer {
    float4 *flush = nullptr;
    float *sink = nullptr;
    cudaEvent_t start, stop;

    Timer() {
        CHECK(cudaMalloc(&flush, FLUSH_BYTES));
        CHECK(cudaMemset(flush, 0, FLUSH_BYTES));
        CHECK(cudaMalloc(&sink, sizeof *sink));
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&stop));
    }
    // Nanoseconds of one run with a cold L2.
    double once(const std::function<void()> &run, int launches) {
        flush_kernel<<<1056, 256>>>(flush, FLUSH_BYTES / sizeof(float4), sink);
        spin_kernel<<<1, 1>>>(30000 + 6000LL * launches);
        CHECK(cudaEventRecord(start));
        run();
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaGetLastError());
        float milliseconds = 0.0f;
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        return milliseconds * 1e6;
    }
};

double quantile(const std::vector<double> &sorted, double share) {
    double position = share * (sorted.size() - 1);
    size_t below = static_cast<size_t>(position), above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}

std::string stem(const std::string &path) {
    size_t slash = path.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
    return path.substr(begin, path.rfind('.') - begin);
}

void list(const Family &family) {
    std::printf("{\"family\": \"%s\", \"kernel\": \"%s\", \"file\": \"%s\", \"sizes\": [", family.name.c_str(),
        family.kernel.c_str(), stem(family.file).c_str());
    for (size_t i = 0; i < family.sizes.size(); ++i) std::printf("%s%ld", i ? ", " : "", family.sizes[i]);
    std::printf("], \"rows\": [");
    for (size_t i = 0; i < family.rows.size(); ++i) {
        const Row &row = family.rows[i];
        std::printf("%s{\"from\": \"%s\", \"to\": \"%s\", \"kind\": \"%s\", \"causes\": [", i ? ", " : "",
            row.from.c_str(), row.to.c_str(), row.kind.c_str());
        for (size_t c = 0; c < row.causes.size(); ++c) std::printf("%s\"%s\"", c ? ", " : "", row.causes[c].c_str());
        std::printf("]");
        if (!row.transformation.empty()) std::printf(", \"transformation\": \"%s\"", row.transformation.c_str());
        std::printf("}");
    }
    std::printf("]");
    if (!family.domain.empty())
        std::printf(", \"domain\": \"%s\", \"about\": \"%s\", \"flaw\": \"%s\"", family.domain.c_str(),
            family.about.c_str(), family.flaw.c_str());
    std::printf("}\n");
}

// Launches every side once; the errors of each against the first.
std::vector<double> verify(Buffers &buffers, const Sides &sides) {
    std::vector<void *> reference;
    std::vector<double> errors;
    for (const Side &side : sides) {
        buffers.prepare();
        side.run();
        if (side.check) side.check();
        CHECK_LAUNCH();
        if (reference.empty())
            for (const Buffers::Output &o : buffers.outputs) {
                reference.push_back(buffers.allocate<char>(o.bytes));
                CHECK(cudaMemcpy(reference.back(), o.data, o.bytes, cudaMemcpyDeviceToDevice));
            }
        errors.push_back(difference(buffers, reference));
    }
    return errors;
}

void check(const Family &family, long size) {
    Buffers buffers;
    Sides sides = family.make(buffers, size);
    std::vector<double> errors = verify(buffers, sides);
    for (size_t i = 0; i < sides.size(); ++i)
        std::printf("{\"family\": \"%s\", \"size\": %ld, \"side\": \"%s\", \"error\": %.3g, \"agrees\": %s}\n",
            family.name.c_str(), size, sides[i].name.c_str(), std::isfinite(errors[i]) ? errors[i] : 1e30,
            errors[i] <= buffers.tolerance ? "true" : "false");
}

void time(const Family &family, long size, Timer &timer) {
    Buffers buffers;
    Sides sides = family.make(buffers, size);
    std::vector<double> errors = verify(buffers, sides);
    std::vector<size_t> turns(sides.size());
    for (size_t i = 0; i < turns.size(); ++i) turns[i] = i;
    std::mt19937 random(1);
    std::vector<std::vector<double>> times(sides.size());
    for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
        std::shuffle(turns.begin(), turns.end(), random);
        for (size_t turn : turns) {
            buffers.prepare();
            times[turn].push_back(timer.once(sides[turn].run, sides[turn].launches));
        }
    }
    for (size_t i = 0; i < sides.size(); ++i) {
        std::sort(times[i].begin(), times[i].end());
        double median = quantile(times[i], 0.5);
        std::printf("{\"family\": \"%s\", \"size\": %ld, \"side\": \"%s\", \"time_ns\": %.1f, \"spread\": %.5f, "
                    "\"repetitions\": %d, \"launches\": %d, \"amount\": %.9g, \"error\": %.3g, \"agrees\": %s}\n",
            family.name.c_str(), size, sides[i].name.c_str(), median,
            (quantile(times[i], 0.75) - quantile(times[i], 0.25)) / median, REPETITIONS, sides[i].launches,
            buffers.amount, std::isfinite(errors[i]) ? errors[i] : 1e30,
            errors[i] <= buffers.tolerance ? "true" : "false");
    }
    std::fflush(stdout);
}

void profile(const Family &family, long size) {
    Buffers buffers;
    Sides sides = family.make(buffers, size);
    for (Side &side : sides) {
        buffers.prepare();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaProfilerStart());
        (side.profiled ? side.profiled : side.run)();
        CHECK_LAUNCH();
        CHECK(cudaProfilerStop());
        std::printf(
            "{\"family\": \"%s\", \"size\": %ld, \"side\": \"%s\"}\n", family.name.c_str(), size, side.name.c_str());
        std::fflush(stdout);
    }
}

}  // namespace

void pairs::fill(void *data, Type type, size_t count, double low, double high, unsigned seed) {
    fill_kernel<<<1056, 256>>>(data, type, count, low, high, seed);
    CHECK_LAUNCH();
}

int main(int argc, char **argv) {
    std::string mode = argc > 1 ? argv[1] : "";
    if (mode != "list" && mode != "check" && mode != "time" && mode != "profile") {
        std::fprintf(stderr, "usage: %s list | check [FAMILY[=SIZE] ...] | time [FAMILY[=SIZE] ...] | profile [FAMILY[=SIZE] ...]\n", argv[0]);
        return 2;
    }
    // Families in the order of their names, each with the sizes asked for; without arguments all of all.
    std::vector<Family *> chosen = Family::all();
    std::sort(chosen.begin(), chosen.end(), [](const Family *a, const Family *b) { return a->name < b->name; });
    auto wanted = [&](const Family *family, long size) {
        auto named = [&](const std::string &name) { return std::find(argv + 2, argv + argc, name) != argv + argc; };
        return argc == 2 || named(family->name) || named(family->name + "=" + std::to_string(size));
    };
    if (mode == "list") {
        for (const Family *family : chosen) list(*family);
        return 0;
    }
    if (mode != "time") {
        for (const Family *family : chosen)
            for (long size : family->sizes)
                if (wanted(family, size)) (mode == "check" ? check : profile)(*family, size);
        return 0;
    }
    Timer timer;
    spin_kernel<<<1, 1>>>(200000000);  // lets the clocks rise
    CHECK_LAUNCH();
    std::vector<double> empty;
    for (int i = 0; i < REPETITIONS; ++i) empty.push_back(timer.once([] { empty_kernel<<<1, 32>>>(); }, 1));
    std::sort(empty.begin(), empty.end());
    std::printf("{\"empty_launch_ns\": %.1f}\n", quantile(empty, 0.5));
    for (const Family *family : chosen)
        for (long size : family->sizes)
            if (wanted(family, size)) time(*family, size, timer);
    return 0;
}
