from __future__ import annotations

import shutil

import pytest
from scale import few


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


@pytest.fixture(scope="session", params=few(["sm_90", "every architecture"], ["sm_90"]))
def built(nvcc, request):
    """The whole ladder, compiled and linked with this environment's torch."""
    pytest.importorskip("torch")
    from gemmprof.gpu.arch import BUILT
    from gemmprof.kernels.build import build

    everything = [limits.label for limits in BUILT]
    return build(architectures=["9.0"] if request.param == "sm_90" else everything)
