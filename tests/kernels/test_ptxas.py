from __future__ import annotations

import pytest

from gemmprof.kernels import ptxas
from gemmprof.kernels.ptxas import KernelResources, parse_ptxas

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
    assert parse_ptxas(OUTPUT) == (
        KernelResources("sgemm_naive", "sm_80", 32, 0, 0, 0, 0),
        KernelResources("sgemm_warptiled<true, false>", "sm_90", 191, 16384, 24, 40, 52),
    )
    assert parse_ptxas(OUTPUT)[1].spill_bytes == 92


def test_without_demangler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    names = {kernel.kernel for kernel in parse_ptxas(OUTPUT)}
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
    assert ptxas._short(demangled) == short


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
    assert KernelResources(kernel, "sm_90", 0, 0, 0, 0, 0).is_main is main
