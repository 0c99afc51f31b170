// Launcher plumbing that every stage of the 16-bit ladder shares: what makes any shape, stride and alignment right, so
// that a stage's file holds its kernel and little else. It has kernels of its own: of a stage that is compiled in parts
// only the one that launches includes it.
#pragma once

#include "half.cuh"

namespace gemmprof {

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
