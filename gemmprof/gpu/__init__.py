"""What is true of NVIDIA's GPUs and tools: architectures, devices, types, compilers."""
