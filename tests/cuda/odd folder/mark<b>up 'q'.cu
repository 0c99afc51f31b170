// A source whose text and path look like markup, imported into the report with all of it.
#include "../common.cuh"

__global__ void marked_up(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] < 3.0f && in[i] > 1.0f ? 1.0f : 0.0f;  // </pre></script><script>alert('line')</script> {{7*7}}
    // A comment with a right-to-left override "‮" and a tab	inside.
}

int main() {
    marked_up<<<132, 128>>>(device_buffer<float>(132 * 128), device_buffer<float>(132 * 128));
    CHECK_LAUNCH();
}
