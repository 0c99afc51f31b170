from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def nvcc() -> None:
    """Skips where there is no CUDA compiler."""
    from gemmprof.base.errors import BuildError
    from gemmprof.kernels.targets import require_nvcc

    try:
        require_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler, which nvcc needs")


@pytest.fixture(scope="session")
def built(nvcc):
    """The whole ladder, compiled for every supported architecture and linked with this environment's torch."""
    pytest.importorskip("torch")
    from gemmprof.gpu.arch import BUILT
    from gemmprof.kernels.build import build

    return build(architectures=[limits.label for limits in BUILT])
