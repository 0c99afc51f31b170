"""CUDA kernels of the ladder, their catalog, and the build of the torch extension."""
