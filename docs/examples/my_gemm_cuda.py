"""A GEMM of one's own in a .cu file: gemmprof collect --plugin my_gemm_cuda.py --shape 2048."""

import ctypes
import functools
import os
import subprocess
from pathlib import Path

import torch

DTYPES = ("float32",)
SOURCE = Path(__file__).with_suffix(".cu")


@functools.cache
def library():
    """The .cu as a shared library, compiled where it is newer than what lies in build/."""
    built = SOURCE.parent / "build" / f"{SOURCE.stem}.so"
    if not built.exists() or built.stat().st_mtime < SOURCE.stat().st_mtime:
        built.parent.mkdir(exist_ok=True)
        scratch = built.with_suffix(f".{os.getpid()}")  # several programs may build at one time
        flags = ("-O3", "-lineinfo", "-arch=native", "-shared", "-Xcompiler=-fPIC")
        subprocess.run(["nvcc", *flags, str(SOURCE), "-o", str(scratch)], check=True)
        scratch.replace(built)
    return ctypes.CDLL(str(built))


def cuda_gemm(a, b, out):
    """Tiles of 32 x 32 through shared memory."""
    (m, k), n = a.shape, b.shape[1]
    pointer = ctypes.c_void_p
    error = library().launch(
        m, n, k, pointer(a.data_ptr()), a.stride(0), pointer(b.data_ptr()), b.stride(0),
        pointer(out.data_ptr()), out.stride(0), pointer(torch.cuda.current_stream().cuda_stream),
    )  # fmt: skip
    if error:
        raise RuntimeError(f"CUDA error {error}")
