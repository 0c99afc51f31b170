// Kernel names that are hard to keep apart, to cut short or to print: templates, nested template
// arguments, operators, lambdas, anonymous namespaces, C linkage. Compile with --extended-lambda.
#include "common.cuh"

template <int BM, int BN>
struct Tile {};

template <typename First, typename Second>
struct Pair {};

struct Vector {
    float x, y;
};

__host__ __device__ bool operator<(Vector a, Vector b) { return a.x < b.x; }
__host__ __device__ Vector operator>>(Vector a, int shift) { return {a.x / float(1 << shift), a.y}; }

template <const int BM, const int BN>
__global__ void sgemm(int n, const float *a, const float *b, float *c) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = float(BM - BN);
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

template <typename Layout>
__global__ void transform(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + sizeof(Layout);
}

template <bool (*Less)(Vector, Vector)>
__global__ void pick(const Vector *in, Vector *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = Less(in[i], in[i + 1]) ? in[i] : in[i + 1];
}

template <Vector (*Operation)(Vector, int)>
__global__ void shifted(const Vector *in, Vector *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = Operation(in[i], 1);
}

template <typename Function>
__global__ void apply(Function function, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = function(i);
}

namespace {
__global__ void hidden(float *out) { out[threadIdx.x] = 1.0f; }
}  // namespace

namespace gemm::detail {
template <typename T, char Tag>
__global__ void tagged(T *out) {
    out[threadIdx.x] = T(Tag);
}
}  // namespace gemm::detail

extern "C" __global__ void plain_c_name(float *out) { out[threadIdx.x] = 2.0f; }

int main() {
    const int n = 128;
    float *a = device_buffer<float>(n * n), *b = device_buffer<float>(n * n), *c = device_buffer<float>(n * n);
    Vector *vectors = reinterpret_cast<Vector *>(a);
    sgemm<64, 64><<<dim3(4, 16), dim3(32, 8)>>>(n, a, b, c);
    sgemm<128, 128><<<dim3(4, 16), dim3(32, 8)>>>(n, a, b, c);
    transform<Pair<Tile<64, 64>, Pair<Tile<8, 8>, float const *>>><<<4, 128>>>(a, c);
    pick<(operator<)><<<4, 128>>>(vectors, reinterpret_cast<Vector *>(c));
    shifted<(operator>>)><<<4, 128>>>(vectors, reinterpret_cast<Vector *>(c));
    apply<<<4, 128>>>([] __device__(int i) { return float(i) * 2.0f; }, c);
    hidden<<<1, 32>>>(c);
    gemm::detail::tagged<float, '<'><<<1, 32>>>(c);
    plain_c_name<<<1, 32>>>(c);
    CHECK_LAUNCH();
}
