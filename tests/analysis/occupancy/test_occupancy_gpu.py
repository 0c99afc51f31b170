"""On a GPU: the CUDA runtime's answer for every kernel of the ladder is ours."""

from __future__ import annotations

import pytest

from gemmprof import occupancy


@pytest.mark.gpu
def test_the_cuda_runtime_agrees_for_every_kernel_that_we_build() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device for torch")
    from gemmprof.kernels.catalog import all_variants
    from gemmprof.kernels.operators import load

    extension = load()
    compute_capability = torch.cuda.get_device_capability()
    asked = 0
    for variant in all_variants():
        for kernel in extension.occupancy(variant.name):
            shared = kernel.static_shared_memory + kernel.dynamic_shared_memory
            answer = occupancy(
                compute_capability, kernel.threads_per_block, kernel.registers_per_thread, shared
            )
            assert answer.blocks_per_sm == kernel.blocks_per_sm, (variant.name, kernel)
            asked += 1
    assert asked >= 7
