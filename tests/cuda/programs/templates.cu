// A feed-forward layer and a batch of small products on templates of our own: tile, stages and epilogue are parameters.
//
// As first written: small tiles, one stage, bias and activation as a kernel of their own, one launch for each small
// product. Variants follow one piece of advice each.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "app.cuh"

namespace tiles {

struct Store {
  __device__ static float apply(float value, float) { return value; }
};
struct BiasRelu {
  __device__ static float apply(float value, float bias) { return fmaxf(value + bias, 0.0f); }
};

template <int BM_, int BN_, int BK_, int WM_, int WN_, int Stages_, typename Epilogue_>
struct Shape {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, Stages = Stages_;
  static constexpr int Threads = (BM / WM) * (BN / WN) * 32;
  static constexpr int PadA = BK + 8, PadB = BN + 8;
  static constexpr size_t StageHalves = BM * PadA + BK * PadB;
  static constexpr size_t Mainloop = Stages * StageHalves * sizeof(half);
  static constexpr size_t Output = (Threads / 32) * 16 * 20 * sizeof(float);
  static constexpr size_t Bytes = Mainloop > Output ? Mainloop : Output;
  using Epilogue = Epilogue_;
};

template <typename S>
__device__ void load_tile(half* a, half* b, const half* A, const half* B, int n, int k, int row, int column, int at) {
  constexpr int Vector = 8;
  for (int i = threadIdx.x; i < S::BM * S::BK / Vector; i += S::Threads) {
    const int r = i / (S::BK / Vector), c = i % (S::BK / Vector) * Vector;
    __pipeline_memcpy_async(a + r * S::PadA + c, A + size_t(row + r) * k + at + c, 16);
  }
  for (int i = threadIdx.x; i < S::BK * S::BN / Vector; i += S::Threads) {
    const int r = i / (S::BN / Vector), c = i % (S::BN / Vector) * Vector;
    __pipeline_memcpy_async(b + r * S::PadB + c, B + size_t(at + r) * n + column + c, 16);
  }
  __pipeline_commit();
}

// C = epilogue(A B), row-major; sizes are multiples of the tile. blockIdx.z counts products of one size.
template <typename S>
__global__ void __launch_bounds__(S::Threads) gemm(const half* A, const half* B, half* C, const float* bias, int m, int n, int k) {
  using namespace nvcuda;
  extern __shared__ __align__(128) unsigned char raw[];
  half* shared = reinterpret_cast<half*>(raw);
  A += size_t(blockIdx.z) * m * k;
  B += size_t(blockIdx.z) * k * n;
  C += size_t(blockIdx.z) * m * n;
  const int row = blockIdx.y * S::BM, column = blockIdx.x * S::BN;
  const int warp = threadIdx.x / 32, wr = warp / (S::BN / S::WN) * S::WM, wc = warp % (S::BN / S::WN) * S::WN;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[S::WM / 16][S::WN / 16];
  for (auto& line : sum)
    for (auto& one : line) wmma::fill_fragment(one, 0.0f);
  auto stage = [&](int i) { return shared + (i % S::Stages) * S::StageHalves; };
  const int steps = k / S::BK;
  for (int i = 0; i < S::Stages - 1; ++i) {
    if (i < steps) load_tile<S>(stage(i), stage(i) + S::BM * S::PadA, A, B, n, k, row, column, i * S::BK);
    else __pipeline_commit();
  }
  for (int i = 0; i < steps; ++i) {
    const int next = i + S::Stages - 1;
    if (next < steps) load_tile<S>(stage(next), stage(next) + S::BM * S::PadA, A, B, n, k, row, column, next * S::BK);
    else __pipeline_commit();
    __pipeline_wait_prior(S::Stages - 1);
    __syncthreads();
    const half *a = stage(i), *b = a + S::BM * S::PadA;
    for (int kk = 0; kk < S::BK; kk += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa[S::WM / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb[S::WN / 16];
      for (int x = 0; x < S::WM / 16; ++x) wmma::load_matrix_sync(fa[x], a + (wr + 16 * x) * S::PadA + kk, S::PadA);
      for (int y = 0; y < S::WN / 16; ++y) wmma::load_matrix_sync(fb[y], b + kk * S::PadB + wc + 16 * y, S::PadB);
      for (int x = 0; x < S::WM / 16; ++x)
        for (int y = 0; y < S::WN / 16; ++y) wmma::mma_sync(sum[x][y], fa[x], fb[y], sum[x][y]);
    }
    __syncthreads();
  }
  float* scratch = reinterpret_cast<float*>(raw) + warp * 16 * 20;
  for (int x = 0; x < S::WM / 16; ++x)
    for (int y = 0; y < S::WN / 16; ++y) {
      wmma::store_matrix_sync(scratch, sum[x][y], 20, wmma::mem_row_major);
      __syncwarp();
      for (int i = threadIdx.x % 32; i < 16 * 8; i += 32) {
        const int r = i / 8, c = i % 8 * 2, at = column + wc + 16 * y + c;
        const float b0 = bias ? bias[at] : 0.0f, b1 = bias ? bias[at + 1] : 0.0f;
        const half2 pair = __floats2half2_rn(S::Epilogue::apply(scratch[r * 20 + c], b0),
                                             S::Epilogue::apply(scratch[r * 20 + c + 1], b1));
        *reinterpret_cast<half2*>(C + size_t(row + wr + 16 * x + r) * n + at) = pair;
      }
      __syncwarp();
    }
}

template <typename S>
void launch(const half* A, const half* B, half* C, const float* bias, int m, int n, int k, int batch, cudaStream_t stream) {
  static const bool ready = [] {
    CHECK(cudaFuncSetAttribute(gemm<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(S::Bytes)));
    return true;
  }();
  (void)ready;
  gemm<S><<<dim3(n / S::BN, m / S::BM, batch), S::Threads, S::Bytes, stream>>>(A, B, C, bias, m, n, k);
  CHECK(cudaGetLastError());
}

template <typename E>
using Small = Shape<64, 64, 32, 32, 32, 1, E>;
template <typename E>
using Staged = Shape<64, 64, 32, 32, 32, 4, E>;
template <typename E>
using Large = Shape<128, 128, 32, 64, 32, 4, E>;

}  // namespace tiles

__global__ void bias_relu(half* values, const float* bias, int n, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = __float2half(fmaxf(__half2float(values[i]) + bias[i % n], 0.0f));
}

// 16 bytes a thread.
__global__ void bias_relu_wide(half* values, const float* bias, int n, size_t count) {
  const size_t i = 8 * (size_t(blockIdx.x) * blockDim.x + threadIdx.x);
  if (i >= count) return;
  uint4 raw = *reinterpret_cast<uint4*>(values + i);
  half* mine = reinterpret_cast<half*>(&raw);
  const float4 b[2] = {*reinterpret_cast<const float4*>(bias + i % n), *reinterpret_cast<const float4*>(bias + i % n + 4)};
  const float* added = reinterpret_cast<const float*>(b);
  for (int j = 0; j < 8; ++j) mine[j] = __float2half(fmaxf(__half2float(mine[j]) + added[j], 0.0f));
  *reinterpret_cast<uint4*>(values + i) = raw;
}

__global__ void add_residual(half* values, const half* residual, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = __hadd(values[i], residual[i]);
}

constexpr int M = 4096, WIDTH = 1024, HIDDEN = 4096, SMALL = 256, PRODUCTS = 24;

struct Data {
  half *x, *w1, *hidden, *w2, *y, *a, *b, *c;
  float* bias;
};

template <template <typename> class Tile>
std::vector<Launch> layer(const Data& d, bool fused, bool wide = false) {
  std::vector<Launch> found;
  if (fused) {
    found.push_back({[=](cudaStream_t s) { tiles::launch<Tile<tiles::BiasRelu>>(d.x, d.w1, d.hidden, d.bias, M, HIDDEN, WIDTH, 1, s); }});
  } else {
    found.push_back({[=](cudaStream_t s) { tiles::launch<Tile<tiles::Store>>(d.x, d.w1, d.hidden, nullptr, M, HIDDEN, WIDTH, 1, s); }});
    found.push_back({[=](cudaStream_t s) {
      const size_t count = size_t(M) * HIDDEN;
      if (wide) bias_relu_wide<<<unsigned((count / 8 + 255) / 256), 256, 0, s>>>(d.hidden, d.bias, HIDDEN, count);
      else bias_relu<<<unsigned((count + 255) / 256), 256, 0, s>>>(d.hidden, d.bias, HIDDEN, count);
    }});
  }
  found.push_back({[=](cudaStream_t s) { tiles::launch<Tile<tiles::Store>>(d.hidden, d.w2, d.y, nullptr, M, WIDTH, HIDDEN, 1, s); }});
  found.push_back({[=](cudaStream_t s) {
    const size_t count = size_t(M) * WIDTH;
    add_residual<<<unsigned((count + 255) / 256), 256, 0, s>>>(d.y, d.x, count);
  }});
  return found;
}

template <template <typename> class Tile>
std::vector<Launch> products(const Data& d, bool batched) {
  std::vector<Launch> found;
  if (batched) {
    found.push_back({[=](cudaStream_t s) { tiles::launch<Tile<tiles::Store>>(d.a, d.b, d.c, nullptr, SMALL, SMALL, SMALL, PRODUCTS, s); }});
    return found;
  }
  for (int i = 0; i < PRODUCTS; ++i) {
    const size_t at = size_t(i) * SMALL * SMALL;
    found.push_back({[=](cudaStream_t s) { tiles::launch<Tile<tiles::Store>>(d.a + at, d.b + at, d.c + at, nullptr, SMALL, SMALL, SMALL, 1, s); }});
  }
  return found;
}

Variant variant(const std::string& name, std::vector<Launch> first, std::vector<Launch> second) {
  std::vector<Launch> all = first;
  all.insert(all.end(), second.begin(), second.end());
  return {name, [first, second] {
            {
              const Range range("feed forward");
              for (const auto& launch : first) launch.run(nullptr);
            }
            const Range range("small products");
            for (const auto& launch : second) launch.run(nullptr);
          }, all};
}

int main(int argc, char** argv) {
  const auto halves = [](size_t count) {
    std::vector<half> values(count);
    unsigned state = 1;
    for (auto& value : values) value = __float2half(float((state = state * 1664525u + 1013904223u) >> 24) / 256.0f - 0.5f);
    return device_array(values);
  };
  Data d;
  d.x = halves(size_t(M) * WIDTH), d.w1 = halves(size_t(WIDTH) * HIDDEN), d.hidden = halves(size_t(M) * HIDDEN);
  d.w2 = halves(size_t(HIDDEN) * WIDTH), d.y = halves(size_t(M) * WIDTH);
  d.a = halves(size_t(PRODUCTS) * SMALL * SMALL), d.b = halves(size_t(PRODUCTS) * SMALL * SMALL), d.c = halves(size_t(PRODUCTS) * SMALL * SMALL);
  d.bias = device_array<float>(HIDDEN);
  using namespace tiles;
  std::vector<Variant> variants{
      variant("base", layer<Small>(d, false), products<Small>(d, false)),
      variant("stages", layer<Staged>(d, false), products<Small>(d, false)),
      variant("larger_tile", layer<Large>(d, false), products<Small>(d, false)),
      variant("fused_epilogue", layer<Small>(d, true), products<Small>(d, false)),
      variant("batched", layer<Small>(d, false), products<Small>(d, true)),
      variant("wide_access", layer<Small>(d, false, true), products<Small>(d, false)),
      variant("all", layer<Large>(d, true), products<Staged>(d, true)),
  };
  return run_program("templates", variants, argc, argv);
}
