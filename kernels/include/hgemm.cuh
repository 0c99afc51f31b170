// Launcher plumbing that every stage of the 16-bit ladder shares: what makes any shape, stride and alignment right, so
// that a stage's file holds its kernel and little else. It has kernels of its own, so of a stage that is compiled in
// parts only the first, which launches, has any of it.
#pragma once

#include <optional>

#include "half.cuh"
#include "workspace.cuh"

#if GEMMPROF_PART == 0

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

// 16 bytes of two words, from so many bytes on.
__device__ __forceinline__ uint4 shifted(const uint4& low, const uint4& high, int bytes) {
    const bool two = bytes & 8, one = bytes & 4;
    const unsigned a[6] = {two ? low.z : low.x,  two ? low.w : low.y,   two ? high.x : low.z,
                           two ? high.y : low.w, two ? high.z : high.x, two ? high.w : high.y};
    unsigned v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = __funnelshift_r(one ? a[i + 1] : a[i], one ? a[i + 2] : a[i + 1], (bytes & 2) * 8);
    return make_uint4(v[0], v[1], v[2], v[3]);
}

// Eight neighbours of a stored row, from an element on, as the one or two aligned 16-byte words that hold them. What lies
// outside the matrix becomes zero. The bits are moved, so the type does not matter.
struct Chunk {
    uint4 low, high;
    int shift;   // bytes of `low` before the first element
    int inside;  // elements that lie in the matrix, from the first on

    __device__ __forceinline__ void load(const Stored& matrix, int row, int column) {
        low = high = make_uint4(0, 0, 0, 0);
        shift = 0;
        inside = row < matrix.rows ? min(CHUNK, matrix.columns - column) : 0;
        if (inside <= 0) return;
        const unsigned short* const data = static_cast<const unsigned short*>(matrix.data);
        const unsigned short* const from = data + row * matrix.ld + column;
        const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(from), aligned = address & ~std::uintptr_t(15);
        const unsigned short* const end = data + (matrix.rows - 1) * matrix.ld + matrix.columns;
        const bool two = int(address - aligned) + 2 * inside > 16;
        if (aligned + (two ? 32 : 16) <= reinterpret_cast<std::uintptr_t>(end)) {
            shift = int(address - aligned);
            low = __ldg(reinterpret_cast<const uint4*>(aligned));
            if (two) high = __ldg(reinterpret_cast<const uint4*>(aligned) + 1);
        } else {  // the matrix ends in these words: nothing is read beyond it
            unsigned elements[CHUNK];
#pragma unroll
            for (int i = 0; i < CHUNK; ++i) elements[i] = i < inside ? from[i] : 0;
            low = make_uint4(elements[0] | elements[1] << 16, elements[2] | elements[3] << 16,
                             elements[4] | elements[5] << 16, elements[6] | elements[7] << 16);
        }
    }
    __device__ __forceinline__ uint4 value() const {
        const uint4 found = shifted(low, high, shift);
        unsigned v[4] = {found.x, found.y, found.z, found.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (inside <= 2 * i + 1) v[i] &= inside <= 2 * i ? 0u : 0xffffu;
        return make_uint4(v[0], v[1], v[2], v[3]);
    }
};

// A matrix to be copied to rows of `ld` elements, a multiple of CHUNK; the rest of a row is filled with zeros.
struct Packing {
    Stored from;
    unsigned short* to;
    std::int64_t ld, chunks;
};

inline Packing packing(const Stored& from, void* to, std::int64_t ld) {
    return {from, static_cast<unsigned short*>(to), ld, from.rows * ld / CHUNK};
}

// Both operands of a problem, in one launch; one of them may have no chunks.
static __global__ void __launch_bounds__(256) pack_rows(Packing a, Packing b) {
    const std::int64_t stride = std::int64_t(gridDim.x) * blockDim.x, all = a.chunks + b.chunks;
    for (std::int64_t at = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < all; at += stride) {
        const Packing packing = at < a.chunks ? a : b;
        const std::int64_t index = at < a.chunks ? at : at - a.chunks, across = packing.ld / CHUNK;
        // 64-bit divisions take a hundred instructions.
        const std::int64_t row = all <= 0xffffffff ? unsigned(index) / unsigned(across) : index / across;
        Chunk chunk;
        chunk.load(packing.from, int(row), int(index - row * across) * CHUNK);
        reinterpret_cast<uint4*>(packing.to)[index] = chunk.value();
    }
}

// Copies the transpose of a stored matrix, through a 64 x 64 tile of shared memory.
static __global__ void __launch_bounds__(256) pack_transposed(Packing packing) {
    constexpr int SIDE = 64;
    __shared__ unsigned short tile[SIDE][SIDE + 2];
    const Stored& from = packing.from;
    const int across = ceil_div(int(packing.ld), SIDE);
    const std::int64_t tiles = std::int64_t(ceil_div(from.columns, SIDE)) * across;
    const unsigned short* const source = static_cast<const unsigned short*>(from.data);
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int row0 = int(t / across) * SIDE, col0 = int(t % across) * SIDE;
        for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x) {
            const int r = i / SIDE, c = i % SIDE, row = col0 + r, col = row0 + c;
            const bool inside = row < from.rows && col < from.columns;
            tile[r][c] = inside ? source[row * from.ld + col] : static_cast<unsigned short>(0);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < SIDE * SIDE / 2; i += blockDim.x) {
            const int r = i / (SIDE / 2), c = i % (SIDE / 2) * 2, row = row0 + r, col = col0 + c;
            if (row >= from.columns || col >= packing.ld) continue;
            *reinterpret_cast<unsigned*>(packing.to + row * packing.ld + col) = tile[c][r] | tile[c + 1][r] << 16;
        }
        __syncthreads();
    }
}

// Whether the kernels can take a matrix as it lies.
inline bool in_order(const Stored& matrix, Accepts accepts) {
    return rows_aligned(matrix.data, matrix.ld, 2) && matrix.ld >= matrix.columns &&
           (accepts.ragged_rows || matrix.columns % CHUNK == 0);
}

// A problem whose operands the kernels accept. Those that they do not are first copied, to memory that goes back when
// the launches before it are done.
class Prepared {
  public:
    Gemm gemm;
    cudaError_t error = cudaSuccess;

    Prepared(const Gemm& given, Accepts accepts, cudaStream_t stream) : gemm(given) {
        const Stored stored_a = stored(given.a, given.m, given.k, given.lda, given.a_transposed);
        const Stored stored_b = stored(given.b, given.k, given.n, given.ldb, given.b_transposed);
        const Packed a = take(stored_a, given.a_transposed, accepts), b = take(stored_b, given.b_transposed, accepts);
        gemm.lda = a.ld, gemm.ldb = b.ld;
        if (a.bytes + b.bytes == 0) return;
        int device = 0;
        if ((error = cudaGetDevice(&device)) != cudaSuccess) return;
        memory_.emplace(device, a.bytes + b.bytes, stream);
        if (memory_->data == nullptr) {
            error = cudaErrorMemoryAllocation;
            return;
        }
        Packing rows[2] = {};
        const auto copy = [&](const Packed& packed, const Stored& from, std::size_t at, const void*& data,
                              int& transposed, Packing& straight) {
            if (packed.bytes == 0) return;
            void* const to = static_cast<char*>(memory_->data) + at;
            data = to;
            if (!packed.turned) {
                straight = packing(from, to, packed.ld);
                return;
            }
            transposed = 0;
            const std::int64_t tiles = std::int64_t(ceil_div(from.columns, 64)) * ceil_div(int(packed.ld), 64);
            pack_transposed<<<unsigned(tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS), 256, 0, stream>>>(
                packing(from, to, packed.ld));
        };
        copy(a, stored_a, 0, gemm.a, gemm.a_transposed, rows[0]);
        copy(b, stored_b, a.bytes, gemm.b, gemm.b_transposed, rows[1]);
        if (const std::int64_t chunks = rows[0].chunks + rows[1].chunks) {
            const std::int64_t blocks = (chunks + 255) / 256;
            pack_rows<<<unsigned(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 256, 0, stream>>>(rows[0], rows[1]);
        }
        error = cudaGetLastError();
    }

  private:
    static constexpr int MOST_BLOCKS = 132 * 8;

    struct Packed {
        std::int64_t ld;    // of the rows that the kernels read
        std::size_t bytes;  // of the copy; 0: there is none
        bool turned;        // it is of the transpose
    };

    static Packed take(const Stored& matrix, int transposed, Accepts accepts) {
        Stored seen = matrix;
        if (seen.rows == 1) seen.ld = round_up(seen.columns, CHUNK);  // there is no second row
        const bool turned = transposed && !accepts.transposed;
        if (!turned && in_order(seen, accepts)) return {seen.ld, 0, false};
        const std::int64_t rows = turned ? matrix.columns : matrix.rows;
        // Rows that begin at multiples of 128 bytes are copied fastest, and cost little more memory unless they are short.
        const int columns = turned ? matrix.rows : matrix.columns;
        const std::int64_t ld = round_up(columns, columns < 256 ? CHUNK : 64);
        return {ld, std::size_t(rows * ld * 2 + 255) / 256 * 256, turned};
    }

    std::optional<Workspace> memory_;
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
#endif
