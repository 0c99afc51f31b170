// A conjugate-gradient solver with statistics beside it on a second stream, as it is first written.
//
// CSR with a thread for each row, every vector operation a launch of its own, sums in two launches, a histogram by
// global atomics. Variants follow one piece of advice each.
#include <cmath>

#include "app.cuh"

constexpr int ROWS = 1 << 18, PER_ROW = 32, ITERATIONS = 2, BLOCK = 256, PARTIAL = 1024, BINS = 64;

struct Matrix {
  const int *starts, *columns;
  const float* values;
};

__global__ void spmv_thread_per_row(Matrix m, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = m.starts[row]; i < m.starts[row + 1]; ++i) sum += m.values[i] * x[m.columns[i]];
  y[row] = sum;
}

__global__ void spmv_warp_per_row(Matrix m, const float* x, float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = m.starts[row] + lane; i < m.starts[row + 1]; i += 32) sum += m.values[i] * x[m.columns[i]];
  for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) y[row] = sum;
}

__device__ float block_sum(float value) {
  __shared__ float shared[BLOCK / 32];
  for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < BLOCK / 32 ? shared[threadIdx.x] : 0;
  for (int step = BLOCK / 64; step; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  return value;
}

__global__ void dot_partial(const float* a, const float* b, float* partial, int count) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void sum_partial(const float* partial, float* out, int count) {
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = sum;
}

__global__ void divide(const float* a, const float* b, float* out) { *out = *b != 0 ? *a / *b : 0; }

__global__ void axpy(const float* alpha, float sign, const float* x, float* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += sign * *alpha * x[i];
}

__global__ void xpay(const float* x, const float* beta, float* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = x[i] + *beta * y[i];
}

// Both updates and the partial sums of the new residual in one pass.
__global__ void update(const float* alpha, const float* p, const float* q, float* x, float* r, float* partial, int count) {
  float sum = 0;
  const float a = *alpha;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    x[i] += a * p[i];
    const float value = r[i] - a * q[i];
    r[i] = value;
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void sum_and_divide(const float* partial, int count, const float* other, float* sum_out, float* out, bool sum_below) {
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x) return;
  const float before = *other;
  *out = sum_below ? (sum != 0 ? before / sum : 0) : (before != 0 ? sum / before : 0);
  *sum_out = sum;
}

__global__ void histogram_global(const float* values, int* bins, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&bins[min(BINS - 1, int(fabsf(values[i]) * 16))], 1);
}

__global__ void histogram_shared(const float* values, int* bins, int count) {
  __shared__ int mine[BINS];
  if (threadIdx.x < BINS) mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&mine[min(BINS - 1, int(fabsf(values[i]) * 16))], 1);
  __syncthreads();
  if (threadIdx.x < BINS && mine[threadIdx.x]) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

struct Data {
  Matrix matrix;
  float *x, *r, *p, *q, *partial, *rr, *pq, *alpha, *beta, *next;
  const float *start, *samples;
  int* bins;
};

constexpr int EVERY = (ROWS + BLOCK - 1) / BLOCK;

struct How {
  bool warps = false, fused = false, shared = false, graph = false;
};

struct Named {
  const char* range;
  Launch launch;
  bool beside = false;  // on the second stream
};

std::vector<Named> iteration(const Data& d, How how) {
  std::vector<Named> found;
  const auto add = [&](const char* range, std::function<void(cudaStream_t)> run, bool beside = false) {
    found.push_back({range, {std::move(run)}, beside});
  };
  const auto dot = [&](const float* a, const float* b, float* out) {
    add("dot", [=](cudaStream_t s) { dot_partial<<<PARTIAL, BLOCK, 0, s>>>(a, b, d.partial, ROWS); });
    add("dot", [=](cudaStream_t s) { sum_partial<<<1, BLOCK, 0, s>>>(d.partial, out, PARTIAL); });
  };
  if (how.warps)
    add("matrix", [=](cudaStream_t s) { spmv_warp_per_row<<<ROWS / (BLOCK / 32), BLOCK, 0, s>>>(d.matrix, d.p, d.q, ROWS); });
  else
    add("matrix", [=](cudaStream_t s) { spmv_thread_per_row<<<EVERY, BLOCK, 0, s>>>(d.matrix, d.p, d.q, ROWS); });
  if (how.fused) {
    add("dot", [=](cudaStream_t s) { dot_partial<<<PARTIAL, BLOCK, 0, s>>>(d.p, d.q, d.partial, ROWS); });
    add("dot", [=](cudaStream_t s) { sum_and_divide<<<1, BLOCK, 0, s>>>(d.partial, PARTIAL, d.rr, d.pq, d.alpha, true); });
    add("update", [=](cudaStream_t s) { update<<<PARTIAL, BLOCK, 0, s>>>(d.alpha, d.p, d.q, d.x, d.r, d.partial, ROWS); });
    add("update", [=](cudaStream_t s) { sum_and_divide<<<1, BLOCK, 0, s>>>(d.partial, PARTIAL, d.rr, d.rr, d.beta, false); });
  } else {
    dot(d.p, d.q, d.pq);
    add("update", [=](cudaStream_t s) { divide<<<1, 1, 0, s>>>(d.rr, d.pq, d.alpha); });
    add("update", [=](cudaStream_t s) { axpy<<<EVERY, BLOCK, 0, s>>>(d.alpha, 1, d.p, d.x, ROWS); });
    add("update", [=](cudaStream_t s) { axpy<<<EVERY, BLOCK, 0, s>>>(d.alpha, -1, d.q, d.r, ROWS); });
    dot(d.r, d.r, d.next);
    add("update", [=](cudaStream_t s) { divide<<<1, 1, 0, s>>>(d.next, d.rr, d.beta); });
  }
  add("update", [=](cudaStream_t s) { xpay<<<EVERY, BLOCK, 0, s>>>(d.r, d.beta, d.p, ROWS); });
  if (how.shared)
    add("statistics", [=](cudaStream_t s) { histogram_shared<<<PARTIAL / 4, BLOCK, 0, s>>>(d.samples, d.bins, ROWS); }, true);
  else
    add("statistics", [=](cudaStream_t s) { histogram_global<<<EVERY, BLOCK, 0, s>>>(d.samples, d.bins, ROWS); }, true);
  return found;
}

Variant variant(const std::string& name, const Data& d, How how, cudaStream_t main, cudaStream_t side) {
  std::vector<Named> all;
  for (int i = 0; i < ITERATIONS; ++i)
    for (auto& one : iteration(d, how)) all.push_back(one);
  cudaEvent_t done, joined;
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  const auto once = [=] {
    for (float* vector : {d.r, d.p})
      CHECK(cudaMemcpyAsync(vector, d.start, ROWS * sizeof(float), cudaMemcpyDeviceToDevice, main));
    for (const auto& one : all) {
      const Range range(one.range);
      if (one.beside) {
        CHECK(cudaEventRecord(done, main));
        CHECK(cudaStreamWaitEvent(side, done));
      }
      one.launch.run(one.beside ? side : main);
    }
    CHECK(cudaEventRecord(joined, side));
    CHECK(cudaStreamWaitEvent(main, joined));
  };
  std::vector<Launch> launches;
  for (const auto& one : all) launches.push_back(one.launch);
  if (!how.graph) return {name, once, launches};
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
  once();
  CHECK(cudaStreamEndCapture(main, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  return {name, [=] { CHECK(cudaGraphLaunch(ready, main)); }, launches};
}

int main(int argc, char** argv) {
  std::vector<int> starts(ROWS + 1), columns(size_t(ROWS) * PER_ROW);
  std::vector<float> values(columns.size(), -1.0f / PER_ROW), ones(ROWS), samples(ROWS);
  unsigned state = 1;
  for (int row = 0; row < ROWS; ++row) {
    starts[row + 1] = starts[row] + PER_ROW;
    for (int i = 0; i < PER_ROW; ++i) {
      state = state * 1664525u + 1013904223u;
      const int near = row + int(state >> 20) % 4096 - 2048;
      columns[size_t(row) * PER_ROW + i] = i ? std::min(std::max(near, 0), ROWS - 1) : row;
    }
    values[size_t(row) * PER_ROW] = 2.0f;
    ones[row] = float(row % 97) / 97.0f;
    samples[row] = float(state >> 24) / 64.0f;
  }
  Data d;
  d.matrix = {device_array(starts), device_array(columns), device_array(values)};
  d.x = device_array<float>(ROWS), d.r = device_array(ones), d.p = device_array(ones), d.q = device_array<float>(ROWS);
  d.start = device_array(ones), d.samples = device_array(samples);
  d.partial = device_array<float>(PARTIAL);
  d.rr = device_array(std::vector<float>{1}), d.pq = device_array<float>(1), d.alpha = device_array<float>(1);
  d.beta = device_array<float>(1), d.next = device_array<float>(1);
  d.bins = device_array<int>(BINS);
  cudaStream_t main, side;
  // Ordered with the legacy stream, on which the times are taken.
  CHECK(cudaStreamCreate(&main));
  CHECK(cudaStreamCreate(&side));
  std::vector<Variant> variants{
      variant("base", d, {}, main, side),
      variant("warp_per_row", d, {.warps = true}, main, side),
      variant("fused_updates", d, {.fused = true}, main, side),
      variant("shared_histogram", d, {.shared = true}, main, side),
      variant("graph", d, {.graph = true}, main, side),
      variant("all", d, {true, true, true, true}, main, side),
  };
  return run_program("mixed", variants, argc, argv);
}
