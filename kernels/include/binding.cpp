// torch.ops.gemmprof.<stage>: the operators, and every check that stands between a caller and a wrong result.
//
// The only file that includes torch's headers. It needs no CUDA build of torch: the current stream comes through c10's
// device-generic guard. The list of stages is generated from the catalog (stages.inc: a line GEMMPROF_STAGE(name,
// dtypes) each, dtypes a mask of 1 << gemmprof::Dtype).
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <optional>
#include <string>

#include "gemm.h"

#define GEMMPROF_STAGE(name, dtypes) extern "C" GemmprofLaunch gemmprof_launch_##name;
#include "stages.inc"
#undef GEMMPROF_STAGE

namespace {

using at::Tensor;

struct NamedType {
    at::ScalarType scalar;
    const char* name;
};
// In the order of gemmprof::Dtype.
constexpr NamedType kTypes[] = {
    {at::kFloat, "float32"}, {at::kHalf, "float16"}, {at::kBFloat16, "bfloat16"}, {at::kFloat8_e4m3fn, "float8_e4m3fn"}};
constexpr int kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]);

gemmprof::Dtype dtype_of(const Tensor& matrix) {
    int code = 0;
    while (kTypes[code].scalar != matrix.scalar_type()) ++code;  // check_type has found it in the list
    return static_cast<gemmprof::Dtype>(code);
}

constexpr int mask_of(gemmprof::Dtype type) { return 1 << static_cast<int>(type); }

// What C may be: float32, or of the operands' type; 8-bit operands' C is of 16 bits instead, bfloat16 where none is given.
constexpr int mask_of_c(gemmprof::Dtype type) {
    const int own = type == gemmprof::Dtype::kFloat8E4M3
                        ? mask_of(gemmprof::Dtype::kFloat16) | mask_of(gemmprof::Dtype::kBFloat16)
                        : mask_of(type);
    return own | mask_of(gemmprof::Dtype::kFloat32);
}
at::ScalarType usual_c_type(const Tensor& a) {
    return a.scalar_type() == at::kFloat8_e4m3fn ? at::kBFloat16 : a.scalar_type();
}

// The operand's type is one of the mask's.
void check_type(const char* stage, const char* operand, const Tensor& matrix, int mask) {
    std::string allowed;
    for (int code = 0; code < kTypeCount; ++code) {
        if (!(mask >> code & 1)) continue;
        if (matrix.scalar_type() == kTypes[code].scalar) return;
        allowed += (allowed.empty() ? "" : " or ") + std::string(kTypes[code].name);
    }
    TORCH_CHECK_TYPE(false, "gemmprof.", stage, ": ", operand, " must be ", allowed, ", found ", matrix.scalar_type());
}

// Whether neighbours along a column, and not along a row, lie side by side.
bool stored_transposed(const Tensor& matrix) {
    return matrix.dim() == 2 && matrix.size(1) > 1 && matrix.stride(1) != 1 &&
           (matrix.size(0) <= 1 || matrix.stride(0) == 1);
}

void check_matrix(const char* stage, const char* operand, const Tensor& matrix, int dtypes, bool transposable) {
    check_type(stage, operand, matrix, dtypes);
    TORCH_CHECK_VALUE(matrix.dim() == 2, "gemmprof.", stage, ": ", operand, " must be a matrix, found ", matrix.dim(),
                      " dimension(s), shape ", matrix.sizes());
    for (const auto size : matrix.sizes())
        TORCH_CHECK_VALUE(size <= gemmprof::kMaxDimension, "gemmprof.", stage, ": ", operand, " has shape ",
                          matrix.sizes(), "; a dimension may be at most ", gemmprof::kMaxDimension,
                          " (the kernels count rows and columns in 32 bits)");
    // Stages of 16-bit and 8-bit types take a transposed operand, whose columns lie side by side, as it is. C is
    // row-major.
    if (transposable && stored_transposed(matrix)) return;
    TORCH_CHECK_VALUE(matrix.size(1) <= 1 || matrix.size(0) == 0 || matrix.stride(1) == 1, "gemmprof.", stage, ": ",
                      operand, " must be row-major with neighbouring columns side by side",
                      transposable ? ", or the transpose of such a matrix" : "", ", found strides ", matrix.strides(),
                      "; call .contiguous() on it first");
}

// Distance between rows as they are stored, in elements. The stride of a single row means nothing, so the row's length
// stands in for it.
std::int64_t leading_dimension(const Tensor& matrix) {
    if (stored_transposed(matrix)) return matrix.stride(1);
    return matrix.size(0) > 1 ? matrix.stride(0) : matrix.size(1);
}

// Elements from the first to one past the last.
std::int64_t extent(const Tensor& matrix) {
    const int row = stored_transposed(matrix) ? 1 : 0;
    return matrix.numel() == 0 ? 0 : (matrix.size(row) - 1) * leading_dimension(matrix) + matrix.size(1 - row);
}

// Whether a store to c may change an element of matrix. Two column ranges of one buffer interleave without sharing.
bool overlap(const Tensor& c, const Tensor& matrix) {
    const std::int64_t c_extent = extent(c), extent_ = extent(matrix);
    if (c_extent == 0 || extent_ == 0 || c.device() != matrix.device()) return false;
    const auto c_begin = reinterpret_cast<std::intptr_t>(c.const_data_ptr());
    const auto begin = reinterpret_cast<std::intptr_t>(matrix.const_data_ptr());
    const std::intptr_t c_size = c.element_size(), size = matrix.element_size();
    if (c_begin + c_extent * c_size <= begin || begin + extent_ * size <= c_begin) return false;
    const std::intptr_t row = leading_dimension(c) * c_size;
    if (row != leading_dimension(matrix) * size) return true;
    // Columns as offsets into a row of the common buffer, counted from where c's columns start.
    const std::intptr_t offset = ((begin - c_begin) % row + row) % row;
    const std::int64_t columns = matrix.size(stored_transposed(matrix) ? 0 : 1);
    return !(offset >= c.size(1) * c_size && offset + columns * size <= row);
}

// Types and shapes. `c` is null where there is none.
void check_matrices(const char* stage, int dtypes, const Tensor& a, const Tensor& b, const Tensor* c,
                    const char* c_name) {
    const bool transposable = (dtypes & mask_of(gemmprof::Dtype::kFloat32)) == 0;
    check_matrix(stage, "A", a, dtypes, transposable);
    check_matrix(stage, "B", b, mask_of(dtype_of(a)), transposable);
    TORCH_CHECK_VALUE(a.size(1) == b.size(0), "gemmprof.", stage, ": A is ", a.size(0), " x ", a.size(1), " and B is ",
                      b.size(0), " x ", b.size(1), "; the columns of A must equal the rows of B");
    if (c == nullptr) return;
    check_matrix(stage, c_name, *c, mask_of_c(dtype_of(a)), false);
    TORCH_CHECK_VALUE(c->size(0) == a.size(0) && c->size(1) == b.size(1), "gemmprof.", stage, ": ", c_name, " must be ",
                      a.size(0), " x ", b.size(1), ", found ", c->size(0), " x ", c->size(1));
}

void check_device(const char* stage, const char* operand, const Tensor& matrix, const Tensor& a) {
    TORCH_CHECK_VALUE(matrix.device().is_cuda(), "gemmprof.", stage, ": ", operand, " must be on a CUDA device, found ",
                      matrix.device());
    TORCH_CHECK_VALUE(matrix.device() == a.device(), "gemmprof.", stage, ": A is on ", a.device(), " and ", operand,
                      " on ", matrix.device(), "; all operands must be on one device");
}

// What a store to `out` must not do: touch an input, or two rows at once.
void check_writable(const char* stage, const Tensor& a, const Tensor& b, const Tensor& out) {
    TORCH_CHECK_VALUE(out.size(0) <= 1 || out.size(1) == 0 || out.stride(0) >= out.size(1), "gemmprof.", stage,
                      ": the rows of out overlap each other (strides ", out.strides(), ")");
    TORCH_CHECK_VALUE(!overlap(out, a), "gemmprof.", stage, ": out overlaps A in memory");
    TORCH_CHECK_VALUE(!overlap(out, b), "gemmprof.", stage, ": out overlaps B in memory");
}

void launch(const char* stage, GemmprofLaunch* launcher, const Tensor& a, const Tensor& b, const Tensor& out,
            double alpha, double beta) {
    const c10::DeviceGuard guard(a.device());
    const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
    const gemmprof::Gemm gemm{static_cast<int>(a.size(0)),
                              static_cast<int>(b.size(1)),
                              static_cast<int>(a.size(1)),
                              static_cast<float>(alpha),
                              static_cast<float>(beta),
                              dtype_of(a),
                              dtype_of(out),
                              a.const_data_ptr(),
                              leading_dimension(a),
                              b.const_data_ptr(),
                              leading_dimension(b),
                              out.mutable_data_ptr(),
                              leading_dimension(out),
                              stored_transposed(a),
                              stored_transposed(b)};
    const int error = launcher(&gemm, cuda.getStream(a.device()).native_handle());
    TORCH_CHECK(error == 0, "gemmprof.", stage, ": the launch failed: ", gemmprof_error_string(error));
}

void run_into(const char* stage, int dtypes, GemmprofLaunch* launcher, const Tensor& a, const Tensor& b,
              const Tensor& out, double alpha, double beta) {
    // Devices come last, so that every other check can be tested without a GPU.
    check_matrices(stage, dtypes, a, b, &out, "out");
    check_writable(stage, a, b, out);
    check_device(stage, "A", a, a);
    check_device(stage, "B", b, a);
    check_device(stage, "out", out, a);
    launch(stage, launcher, a, b, out, alpha, beta);
}

// The result is of C's type; of the operands' where there is no C, or bfloat16 where those have 8 bits.
Tensor run(const char* stage, int dtypes, GemmprofLaunch* launcher, const Tensor& a, const Tensor& b,
           const std::optional<Tensor>& c, double alpha, double beta) {
    TORCH_CHECK_VALUE(c.has_value() || beta == 0.0, "gemmprof.", stage, ": beta is ", beta, " but there is no C");
    check_matrices(stage, dtypes, a, b, c.has_value() ? &*c : nullptr, "C");
    check_device(stage, "A", a, a);
    check_device(stage, "B", b, a);
    if (c.has_value()) check_device(stage, "C", *c, a);
    const at::ScalarType type = c.has_value() ? c->scalar_type() : usual_c_type(a);
    Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(type));
    if (beta != 0.0) out.copy_(*c);
    launch(stage, launcher, a, b, out, alpha, beta);
    return out;
}

// One pair of functions a stage, because the dispatcher tells operators apart by function.
#define GEMMPROF_STAGE(name, dtypes)                                                                                   \
    namespace name {                                                                                                   \
    Tensor functional(const Tensor& a, const Tensor& b, const std::optional<Tensor>& c, double alpha, double beta) {   \
        return run(#name, dtypes, gemmprof_launch_##name, a, b, c, alpha, beta);                                       \
    }                                                                                                                  \
    void into(const Tensor& a, const Tensor& b, Tensor out, double alpha, double beta) {                               \
        run_into(#name, dtypes, gemmprof_launch_##name, a, b, out, alpha, beta);                                       \
    }                                                                                                                  \
    }
#include "stages.inc"
#undef GEMMPROF_STAGE

}  // namespace

TORCH_LIBRARY_FRAGMENT(gemmprof, library) {
#define GEMMPROF_STAGE(name, dtypes)                                                                                   \
    library.def(#name "(Tensor a, Tensor b, Tensor? c=None, float alpha=1.0, float beta=0.0) -> Tensor");              \
    library.def(#name "_out(Tensor a, Tensor b, Tensor(a!) out, float alpha=1.0, float beta=0.0) -> ()");              \
    /* Registered for CPU tensors too, so that they meet our message and not the dispatcher's. */                      \
    for (const auto key : {c10::DispatchKey::CUDA, c10::DispatchKey::CPU}) {                                           \
        library.impl(#name, torch::dispatch(key, name::functional));                                                   \
        library.impl(#name "_out", torch::dispatch(key, name::into));                                                  \
    }
#include "stages.inc"
#undef GEMMPROF_STAGE
}
