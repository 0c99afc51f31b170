// Operands of 8-bit floats in the one order that wgmma reads them in: K along the rows of both, A row-major and B
// stored transposed, rows at multiples of 16 bytes. Others are copied into that order first. Host code but for the
// copy.
#pragma once

#include "../include/hgemm.cuh"
#include "../include/workspace.cuh"

namespace gemmprof {

constexpr int ROW_BYTES = 16;  // a tensor copy's rows begin at multiples of them

// Copies a stored matrix of bytes to rows of `ld` (a multiple of ROW_BYTES), the rest of a row filled with zeros,
// through tiles of SIDE x SIDE in shared memory. `words`: the rows of `from` begin at multiples of 4 bytes.
template <bool TRANSPOSE>
static __global__ void __launch_bounds__(256)
    pack_bytes(Stored from, unsigned char* to, int to_rows, std::int64_t ld, bool words) {
    constexpr int SIDE = 128, WORDS = SIDE / 4;
    __shared__ unsigned tile[SIDE][WORDS + 1];
    const unsigned char* const source = static_cast<const unsigned char*>(from.data);
    const int across = ceil_div(int(ld), SIDE);
    const std::int64_t tiles = std::int64_t(ceil_div(to_rows, SIDE)) * across;
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int to_row = int(t / across) * SIDE, to_col = int(t % across) * SIDE;
        for (int i = threadIdx.x; i < SIDE * WORDS; i += blockDim.x) {
            const int r = i / WORDS, c = i % WORDS;
            const int row = (TRANSPOSE ? to_col : to_row) + r, col = (TRANSPOSE ? to_row : to_col) + 4 * c;
            const unsigned char* const at = source + row * from.ld + col;
            unsigned word = 0;
            if (words && row < from.rows && col + 4 <= from.columns)
                word = *reinterpret_cast<const unsigned*>(at);
            else
                for (int byte = 0; byte < 4; ++byte)
                    if (row < from.rows && col + byte < from.columns) word |= unsigned(at[byte]) << 8 * byte;
            tile[r][c] = word;
        }
        __syncthreads();
        // Four rows of four bytes a thread: transposed in registers, or as they are.
        for (int i = threadIdx.x; i < WORDS * WORDS; i += blockDim.x) {
            const int across_rows = i % WORDS, down_rows = i / WORDS;
            unsigned v[4];
            for (int j = 0; j < 4; ++j)
                v[j] = TRANSPOSE ? tile[4 * across_rows + j][down_rows] : tile[4 * down_rows + j][across_rows];
            if (TRANSPOSE) {
                const unsigned a = __byte_perm(v[0], v[1], 0x5140), b = __byte_perm(v[2], v[3], 0x5140);
                const unsigned c = __byte_perm(v[0], v[1], 0x7362), d = __byte_perm(v[2], v[3], 0x7362);
                v[0] = __byte_perm(a, b, 0x5410), v[1] = __byte_perm(a, b, 0x7632);
                v[2] = __byte_perm(c, d, 0x5410), v[3] = __byte_perm(c, d, 0x7632);
            }
            for (int j = 0; j < 4; ++j) {
                const int row = to_row + 4 * down_rows + j, col = to_col + 4 * across_rows;
                if (row < to_rows && col < ld) *reinterpret_cast<unsigned*>(to + row * ld + col) = v[j];
            }
        }
        __syncthreads();
    }
}

// A problem whose operands a tensor copy can bring to wgmma; where one had to be copied, the copy lives as long as
// this.
class KMajor {
  public:
    Gemm gemm;
    cudaError_t error = cudaSuccess;

    KMajor(const Gemm& given, int device, cudaStream_t stream)
        : gemm(given),
          // As K lies along the rows: M rows of A, N of B.
          a_copy_(device, copy_bytes(given.m, given.k, given.a, given.lda, !given.a_transposed), stream),
          b_copy_(device, copy_bytes(given.n, given.k, given.b, given.ldb, given.b_transposed), stream) {
        take(given.m, given.k, gemm.a, gemm.lda, !given.a_transposed, a_copy_, stream);
        take(given.n, given.k, gemm.b, gemm.ldb, given.b_transposed, b_copy_, stream);
        gemm.a_transposed = 0, gemm.b_transposed = 1;
    }

  private:
    // Whether `rows` rows with K along them can stay where they are. A single row has no distance to a next one, and a
    // single element along K lies in either order.
    static bool fits(int rows, int k, const void* data, std::int64_t ld, bool along_k) {
        return along_k && reinterpret_cast<std::uintptr_t>(data) % ROW_BYTES == 0 &&
               (rows == 1 || (ld % ROW_BYTES == 0 && ld >= k));
    }
    // Bytes of a copy's row: whole sectors.
    static int copied_row(int k) { return round_up(k, 2 * ROW_BYTES); }
    static std::size_t copy_bytes(int rows, int k, const void* data, std::int64_t ld, bool along_k) {
        return fits(rows, k, data, ld, along_k) ? 0 : std::size_t(rows) * std::size_t(copied_row(k));
    }
    void take(int rows, int k, const void*& data, std::int64_t& ld, bool along_k, const Workspace& copy,
              cudaStream_t stream) {
        const std::int64_t to_ld = copied_row(k);
        if (fits(rows, k, data, ld, along_k)) {
            if (rows == 1) ld = to_ld;
            return;
        }
        if (copy.data == nullptr) error = cudaErrorMemoryAllocation;
        if (error != cudaSuccess) return;
        const Stored from = along_k ? Stored{data, rows, k, ld} : Stored{data, k, rows, ld};
        const bool words = (reinterpret_cast<std::uintptr_t>(data) | std::uintptr_t(ld)) % 4 == 0;
        const std::int64_t tiles = std::int64_t(ceil_div(rows, 128)) * ceil_div(int(to_ld), 128);
        auto* const kernel = along_k ? pack_bytes<false> : pack_bytes<true>;
        kernel<<<unsigned(tiles < 132 * 16 ? tiles : 132 * 16), 256, 0, stream>>>(
            from, static_cast<unsigned char*>(copy.data), rows, to_ld, words);
        error = cudaGetLastError();
        data = copy.data, ld = to_ld;
    }

    Workspace a_copy_, b_copy_;
};

// What comes before the kernels: nothing where C is empty, beta * C where K is 0, else operands in order. `launch` is
// cudaError_t(const Gemm&, int device, cudaStream_t).
template <class Launch>
cudaError_t run_fp8(const Gemm& gemm, cudaStream_t stream, Launch launch) {
    if (gemm.m == 0 || gemm.n == 0) return cudaSuccess;
    if (gemm.k == 0) {
        const std::int64_t count = std::int64_t(gemm.m) * gemm.n;
        const unsigned blocks = unsigned(count / 256 < 2048 ? count / 256 + 1 : 2048);
        if (gemm.c_dtype == Dtype::kFloat16)
            scale_output<__half><<<blocks, 256, 0, stream>>>(output_of(gemm));
        else
            scale_output<__nv_bfloat16><<<blocks, 256, 0, stream>>>(output_of(gemm));
        return cudaGetLastError();
    }
    int device = 0;
    if (cudaError_t error = cudaGetDevice(&device)) return error;
    const KMajor prepared(gemm, device, stream);
    return prepared.error != cudaSuccess ? prepared.error : launch(prepared.gemm, device, stream);
}

}  // namespace gemmprof
