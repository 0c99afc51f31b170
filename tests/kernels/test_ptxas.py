from __future__ import annotations

import pytest

from gemmprof.gpu.devices import KernelResources, parse_ptxas, short_name, with_short_names
from gemmprof.kernels.compiler import is_main, main_kernels

OUTPUT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN9warptiled15sgemm_warptiledILb1ELb0EEEviiifPKflS2_lfPfl' for 'sm_90'
ptxas info    : Function properties for _ZN9warptiled15sgemm_warptiledILb1ELb0EEEviiifPKflS2_lfPfl
    24 bytes stack frame, 40 bytes spill stores, 52 bytes spill loads
ptxas info    : Used 191 registers, used 1 barriers, 24 bytes cumulative stack size, 16384 bytes smem
ptxas info    : Compile time = 529.872 ms
ptxas info    : Compiling entry function '_ZN5naive11sgemm_naiveEiiifPKflS1_lfPfl' for 'sm_80'
ptxas info    : Function properties for _ZN5naive11sgemm_naiveEiiifPKflS1_lfPfl
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 440 bytes cmem[0]
"""


def test_parse():
    kernels = with_short_names(parse_ptxas(OUTPUT))
    assert kernels == (
        KernelResources("sgemm_naive", "sm_80", 32, barriers=0, spill_store_bytes=0, spill_load_bytes=0),
        KernelResources(
            "sgemm_warptiled<true, false>",
            "sm_90",
            191,
            16384,
            barriers=1,
            stack_bytes=24,
            spill_store_bytes=40,
            spill_load_bytes=52,
        ),
    )
    assert kernels[1].spill_bytes == 92


def test_without_demangler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    names = {kernel.name for kernel in with_short_names(parse_ptxas(OUTPUT))}
    assert "_ZN5naive11sgemm_naiveEiiifPKflS1_lfPfl" in names


def test_nothing_compiled():
    assert parse_ptxas("nvcc warning : something\n") == ()


@pytest.mark.parametrize(
    ("demangled", "short"),
    [
        ("void warptiled::sgemm_warptiled<false, true>(int, int)", "sgemm_warptiled<false, true>"),
        ("void warptiled::sgemm_warptiled<(bool)0, (bool)1>(int, int)", "sgemm_warptiled<false, true>"),
        ("void naive::sgemm_naive<int>(int, float const*)", "sgemm_naive<int>"),
        ("void a::kernel<b::type<(int)3>, 4>(b::type<(int)3>)", "kernel<b::type<3>, 4>"),
        ("plain(int)", "plain"),
    ],
)
def test_both_demanglers_give_one_short_name(demangled, short):
    assert short_name(demangled) == short


@pytest.mark.parametrize(
    ("kernel", "main"),
    [
        ("sgemm", True),
        ("sgemm<false, true>", True),
        ("sgemm<true, false>", False),
        ("sgemm<int>", True),
        ("sgemm_fastest<fastest::Large, false, 4>", True),
        ("sgemm_fastest<fastest::Large, true, 4>", False),
        ("_ZN7fastest13sgemm_fastestINS_5LargeELb0ELi4EEEv14CUtensorMap_st", True),
        ("_ZN7fastest13sgemm_fastestINS_5LargeELb1ELi4EEEv14CUtensorMap_st", False),
        ("align_rows", False),
        ("sgemm<long>", False),
        ("_ZN5naive11sgemm_naiveIiEEviiifPKflS2_lfPfl", True),
        ("_ZN5naive11sgemm_naiveIlEEviiifPKflS2_lfPfl", False),
        ("_ZN9warptiled15sgemm_warptiledILb1ELb0EEEviiifPKflS2_lfPfl", False),
        ("_ZN9warptiled15sgemm_warptiledILb0ELb1EEEviiifPKflS2_lfPfl", True),
    ],
)
def test_main_kernel(kernel, main):
    assert is_main(kernel) is main


def test_main_kernels_are_those_or_all():
    guarded, large, small = (
        KernelResources(name, "sm_90", registers)
        for name, registers in (
            ("sgemm<true>", 9),
            ("sgemm<a::Large, false>", 8),
            ("sgemm<a::Small, false>", 4),
        )
    )
    assert main_kernels([small, guarded, large]) == (large, small)
    assert main_kernels([guarded]) == (guarded,)
