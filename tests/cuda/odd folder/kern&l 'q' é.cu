// A source file whose path holds spaces, quotes, an ampersand and a letter outside ASCII;
// one of its lines looks like markup: <script>alert("source")</script> {{7*7}}
#include "../common.cuh"

__global__ void from_odd_path(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] < 3.0f && in[i] > 1.0f ? 1.0f : 0.0f;  // </pre><script>alert('line')</script>
}

int main() {
    from_odd_path<<<132, 128>>>(device_buffer<float>(132 * 128), device_buffer<float>(132 * 128));
    CHECK_LAUNCH();
}
