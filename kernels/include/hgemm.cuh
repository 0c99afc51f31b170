// Launcher plumbing that every stage of the 16-bit ladder shares: element types, stores of C, and what makes any shape,
// stride and alignment right, so that a stage's file holds its kernel and little else.
#pragma once

#include "half.cuh"

namespace gemmprof {

constexpr int CHUNK = 8;  // elements in the 16 bytes that move together

// ------------------------------------------------------------------------------------------------------- elements

// Lists of kernels hold those of float16 first, then those of bfloat16.
inline int half_index(const Gemm& gemm) { return gemm.dtype == Dtype::kFloat16 ? 0 : 1; }

// Two neighbouring elements as the 32 bits that hold them, the first in the lower half.
template <class T>
__device__ __forceinline__ unsigned pack(float first, float second);
template <>
__device__ __forceinline__ unsigned pack<__half>(float first, float second) {
    const __half2 both = __floats2half2_rn(first, second);
    return *reinterpret_cast<const unsigned*>(&both);
}
template <>
__device__ __forceinline__ unsigned pack<__nv_bfloat16>(float first, float second) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const unsigned*>(&both);
}

// ------------------------------------------------------------------------------------------------------ storing C

// Where and how sums become C.
struct Output {
    void* c;
    std::int64_t ldc;
    int m, n;
    float alpha, beta;
    bool is_float;  // C is float32, else of the type of A and B
    bool plain;     // beta = 0, and two neighbouring elements from an even column move as one access
    bool wide;      // plain, of 16 bits, and CHUNK elements from a column that is a multiple of CHUNK move as one, too
};

inline Output output_of(const Gemm& gemm) {
    const bool is_float = gemm.c_dtype == Dtype::kFloat32;
    const bool plain = gemm.beta == 0.0f && gemm.n % 2 == 0 && gemm.ldc % 2 == 0 &&
                       reinterpret_cast<std::uintptr_t>(gemm.c) % (is_float ? 8 : 4) == 0;
    const bool wide = plain && !is_float && rows_aligned(gemm.c, gemm.ldc, 2);
    return {gemm.c, gemm.ldc, gemm.m, gemm.n, gemm.alpha, gemm.beta, is_float, plain, wide};
}

// alpha * sum + beta * C, where beta = 0 means that C is not read: it may hold NaN.
template <class T>
__device__ __forceinline__ void store_one(const Output& out, int row, int col, float sum) {
    const std::int64_t at = row * out.ldc + col;
    float value = out.alpha * sum;
    if (out.is_float) {
        float* const c = static_cast<float*>(out.c) + at;
        *c = out.beta == 0.0f ? value : value + out.beta * *c;
    } else {
        T* const c = static_cast<T*>(out.c) + at;
        *c = from_float<T>(out.beta == 0.0f ? value : value + out.beta * to_float(*c));
    }
}

// The sums of (row, col) and (row, col + 1), those that lie in C; col is even.
template <class T>
__device__ __forceinline__ void store_pair(const Output& out, int row, int col, float first, float second) {
    if (row >= out.m || col >= out.n) return;
    if (out.plain) {
        const std::int64_t at = row * out.ldc + col;
        first *= out.alpha, second *= out.alpha;
        if (out.is_float)
            *reinterpret_cast<float2*>(static_cast<float*>(out.c) + at) = make_float2(first, second);
        else
            *reinterpret_cast<unsigned*>(static_cast<T*>(out.c) + at) = pack<T>(first, second);
    } else {
        store_one<T>(out, row, col, first);
        if (col + 1 < out.n) store_one<T>(out, row, col + 1, second);
    }
}

// What one thread holds of a 16 x 8 tile of sums that mma and wgmma leave: two pairs, eight rows apart.
template <class T>
__device__ __forceinline__ void store_fragment(const Output& out, int row, int col, const float* sums) {
    store_pair<T>(out, row, col, sums[0], sums[1]);
    store_pair<T>(out, row + 8, col, sums[2], sums[3]);
}

// K = 0: there are no products, so C is beta * C, and zeros where beta is 0.
template <class T>
static __global__ void scale_output(Output out) {
    const std::int64_t stride = std::int64_t(gridDim.x) * blockDim.x;
    for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < std::int64_t(out.m) * out.n;
         i += stride)
        store_one<T>(out, int(i / out.n), int(i % out.n), 0.0f);
}

// ---------------------------------------------------------------------------------------------- operands in order

// What a stage's kernels take of A and B besides 16-byte aligned rows.
struct Accepts {
    bool transposed;   // either storage order; otherwise row-major only
    bool ragged_rows;  // rows whose length is no multiple of CHUNK (a tensor copy clips them)
};

// A matrix as it lies in memory: rows x columns, neighbouring columns side by side.
struct Stored {
    const void* data;
    int rows, columns;
    std::int64_t ld;
};

inline Stored stored(const void* data, int rows, int columns, std::int64_t ld, bool transposed) {
    return transposed ? Stored{data, columns, rows, ld} : Stored{data, rows, columns, ld};
}

inline int round_up(int x, int multiple) { return ceil_div(x, multiple) * multiple; }

// Copies a stored matrix to rows of `ld` elements (a multiple of CHUNK), the rest of a row filled with zeros, through a
// 64 x 64 tile of shared memory when TRANSPOSE is set. The bits are copied, so the type does not matter.
template <bool TRANSPOSE>
static __global__ void __launch_bounds__(256)
    pack_operand(Stored from, unsigned short* to, int to_rows, std::int64_t ld) {
    constexpr int SIDE = 64;
    __shared__ unsigned short tile[SIDE][SIDE + 2];
    const int across = ceil_div(int(ld), SIDE);
    const std::int64_t tiles = std::int64_t(ceil_div(to_rows, SIDE)) * across;
    const unsigned short* const source = static_cast<const unsigned short*>(from.data);
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int row0 = int(t / across) * SIDE, col0 = int(t % across) * SIDE;
        for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x) {
            const int r = i / SIDE, c = i % SIDE;
            const int row = (TRANSPOSE ? col0 : row0) + r, col = (TRANSPOSE ? row0 : col0) + c;
            const bool inside = row < from.rows && col < from.columns;
            tile[r][c] = inside ? source[row * from.ld + col] : static_cast<unsigned short>(0);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < SIDE * SIDE / 2; i += blockDim.x) {
            const int r = i / (SIDE / 2), c = i % (SIDE / 2) * 2, row = row0 + r, col = col0 + c;
            if (row >= to_rows || col >= ld) continue;
            const unsigned first = TRANSPOSE ? tile[c][r] : tile[r][c];
            const unsigned second = TRANSPOSE ? tile[c + 1][r] : tile[r][c + 1];
            *reinterpret_cast<unsigned*>(to + row * ld + col) = first | second << 16;
        }
        __syncthreads();
    }
}

// A problem whose operands the kernels accept. An operand that they do not is first copied, into memory of the device's
// stream-ordered pool that goes back when the launches before it are done.
class Prepared {
  public:
    Gemm gemm;
    cudaError_t error = cudaSuccess;

    Prepared(const Gemm& given, Accepts accepts, cudaStream_t stream) : gemm(given), stream_(stream) {
        take(accepts, given.m, given.k, gemm.a, gemm.lda, gemm.a_transposed, copies_[0]);
        take(accepts, given.k, given.n, gemm.b, gemm.ldb, gemm.b_transposed, copies_[1]);
    }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
    ~Prepared() {
        for (void* copy : copies_)
            if (copy != nullptr) cudaFreeAsync(copy, stream_);
    }

  private:
    void take(Accepts accepts, int rows, int columns, const void*& data, std::int64_t& ld, int& transposed,
              void*& copy) {
        Stored matrix = stored(data, rows, columns, ld, transposed);
        const bool keep_order = !transposed || accepts.transposed;
        if (matrix.rows == 1) matrix.ld = ld = round_up(matrix.columns, CHUNK);  // there is no second row
        if (keep_order && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && matrix.ld % CHUNK == 0 &&
            matrix.ld >= matrix.columns && (accepts.ragged_rows || matrix.columns % CHUNK == 0))
            return;
        const int to_rows = keep_order ? matrix.rows : matrix.columns;
        const std::int64_t to_ld = round_up(keep_order ? matrix.columns : matrix.rows, CHUNK);
        if (error != cudaSuccess) return;
        error = cudaMallocAsync(&copy, std::size_t(to_rows) * to_ld * 2, stream_);
        if (error != cudaSuccess) {
            copy = nullptr;
            return;
        }
        auto* const kernel = keep_order ? pack_operand<false> : pack_operand<true>;
        const std::int64_t tiles = std::int64_t(ceil_div(to_rows, 64)) * ceil_div(int(to_ld), 64);
        kernel<<<unsigned(tiles < 132 * 16 ? tiles : 132 * 16), 256, 0, stream_>>>(
            matrix, static_cast<unsigned short*>(copy), to_rows, to_ld);
        error = cudaGetLastError();
        data = copy, ld = to_ld, transposed = keep_order ? transposed : 0;
    }

    cudaStream_t stream_;
    void* copies_[2] = {nullptr, nullptr};
};

// ------------------------------------------------------------------------------------------------------ launching

template <class... P>
const void* address(void (*kernel)(P...)) {
    return reinterpret_cast<const void*>(kernel);
}

// Launches `blocks` blocks as clusters of `cluster` (1: no clusters) with the kernel's parameters.
template <class... P>
cudaError_t launch_kernel(const KernelFacts& kernel, unsigned blocks, unsigned cluster, cudaStream_t stream,
                          P... parameters) {
    if (cudaError_t error = allow_shared_memory(kernel)) return error;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(unsigned(kernel.threads));
    config.dynamicSmemBytes = std::size_t(kernel.dynamic_shared_memory);
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
    void* pointers[] = {static_cast<void*>(&parameters)...};
    return cudaLaunchKernelExC(&config, kernel.function, pointers);
}

// What every stage does before its kernels: nothing where C is empty, beta * C where K is 0, else operands in order.
// `launch` is cudaError_t(const Gemm&, cudaStream_t).
template <class Launch>
cudaError_t run_half(const Gemm& gemm, cudaStream_t stream, Accepts accepts, Launch launch) {
    if (gemm.m == 0 || gemm.n == 0) return cudaSuccess;
    if (gemm.k == 0) {
        const std::int64_t count = std::int64_t(gemm.m) * gemm.n;
        const unsigned blocks = unsigned(count / 256 < 2048 ? count / 256 + 1 : 2048);
        const Output out = output_of(gemm);
        if (gemm.dtype == Dtype::kFloat16)
            scale_output<__half><<<blocks, 256, 0, stream>>>(out);
        else
            scale_output<__nv_bfloat16><<<blocks, 256, 0, stream>>>(out);
        return cudaGetLastError();
    }
    const Prepared prepared(gemm, accepts, stream);
    return prepared.error != cudaSuccess ? prepared.error : launch(prepared.gemm, stream);
}

}  // namespace gemmprof
