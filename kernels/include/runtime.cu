// What the binding needs of the CUDA runtime, kept out of it so that it compiles without CUDA's headers.
#include <cuda_runtime.h>

#include "gemm.h"

extern "C" const char* gemmprof_error_string(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
