// Programs that go wrong under a profiler, to see how the profiler reports it:
//   failures none | exit | fault | many
#include <cstring>

#include "common.cuh"

__global__ void touch(float *out, int rounds) {
    float value = threadIdx.x;
    for (int i = 0; i < rounds; ++i) value = value * 0.5f + 1.0f;
    out[threadIdx.x] = value;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "none";
    float *out = device_buffer<float>(1024);
    if (std::strcmp(mode, "none") == 0) return 0;  // no kernel at all
    touch<<<1, 32>>>(out, 100);
    CHECK_LAUNCH();
    if (std::strcmp(mode, "exit") == 0) return 3;  // one kernel, then a failing exit code
    if (std::strcmp(mode, "fault") == 0) {
        touch<<<1, 32>>>(reinterpret_cast<float *>(16), 100);  // illegal address
        CHECK_LAUNCH();
    }
    if (std::strcmp(mode, "many") == 0)
        for (int i = 0; i < 400; ++i) {
            touch<<<132, 256>>>(out, 1000);
            CHECK_LAUNCH();
        }
}
