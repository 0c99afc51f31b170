from __future__ import annotations

import shutil

import pytest
from called_stages import CALLED, as_noted
from scale import CAMPAIGN


@pytest.fixture(scope="session")
def nvcc() -> None:
    """Skips where there is no CUDA compiler."""
    from gemmprof.base.errors import BuildError
    from gemmprof.kernels.compiler import require_nvcc

    try:
        require_nvcc()
    except BuildError as error:
        pytest.skip(str(error))
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler, which nvcc needs")


EVERY = pytest.param("every architecture", marks=pytest.mark.campaign)


@pytest.fixture(scope="session", params=[EVERY] if CAMPAIGN else ["sm_90"])
def built(nvcc, request):
    """Stages that tests call and those that are not what the tables' lines were made from, compiled for one
    architecture and linked with this environment's torch; in the campaign all, for every architecture, and that alone:
    two builds of an operator cannot be loaded into one process.
    """
    pytest.importorskip("torch")
    from gemmprof.gpu.arch import BUILT
    from gemmprof.kernels.build import build
    from gemmprof.kernels.catalog import all_variants
    from gemmprof.kernels.compiler import require_nvcc

    if request.param != "sm_90":
        return build(architectures=[limits.label for limits in BUILT])
    rest = as_noted(require_nvcc()) - set(CALLED)
    return build(architectures=["9.0"], names=[v.name for v in all_variants() if v.name not in rest])
