"""Whose code a kernel is, on names from public profiles and on our own reports."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from recorded_data import DATA, EXAMPLES

from gemmprof.analysis.inputs.names import OWNERS, owner_of
from gemmprof.analysis.reading.report import read_report
from gemmprof.model import KernelProfile


def names() -> list[dict[str, str]]:
    with (DATA / "kernel_names.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def launch() -> KernelProfile:
    """A launch without line information, of a program that nothing is known of, to be given names."""
    found = read_report(EXAMPLES / "transformer.ncu-rep.xz", source=False)[0]
    return replace(found, lines="", session=replace(found.session, command_line=""))


def test_array_packages_compile_their_own_kernels_where_they_run(launch: KernelProfile) -> None:
    """Julia's fill! and broadcasts: line information does not make them the reader's."""
    fill = replace(
        launch, name="julia__5_11236(CuKernelContext, CuDeviceArray<Float32, (int)1>, Float32)", lines="c"
    )
    assert not owner_of(fill).editable


def test_names_of_public_profiles(launch: KernelProfile) -> None:
    rows = names()
    assert len(rows) >= 300
    assert len({row["name"] for row in rows}) == len(rows)
    assert {row["owner"] for row in rows} == OWNERS.keys()
    for held_back in ("no", "yes", "later", "last"):
        those = [row for row in rows if row["held_back"] == held_back]
        wrong = [row for row in those if owner_of(replace(launch, name=row["name"])).key != row["owner"]]
        assert len(those) > 50
        assert len(wrong) <= 0.02 * len(those), wrong


def test_what_was_held_back_was_chosen_by_a_hash() -> None:
    for row in names():
        if row["held_back"] in ("no", "yes"):
            chosen = int(hashlib.sha256(row["name"].encode()).hexdigest(), 16) % 3 == 0
            assert row["held_back"] == ("yes" if chosen else "no")


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (EXAMPLES / "softmax_triton.ncu-rep.xz", {"triton": 2}),
        (EXAMPLES / "gelu.ncu-rep.xz", {"own": 1}),
        (EXAMPLES / "gemm_cutlass.ncu-rep.xz", {"own": 1, "cutlass": 1}),
        (EXAMPLES / "transformer.ncu-rep.xz", {"torch": 5, "cudnn": 2, "cublas": 3}),
        (DATA / "train_100.ncu-rep.xz", {"torch": 64, "cublas": 27, "cudnn": 6, "attention": 3}),
        (DATA / "pairs" / "frameworks.ncu-rep.xz", {"triton": 14, "torch": 6}),
        (DATA / "pairs" / "real.ncu-rep.xz", {"own": 27}),
        (DATA / "names_templates.ncu-rep.xz", {"own": 9}),
    ],
)
def test_reports(report, expected) -> None:  # type: ignore[no-untyped-def]
    assert Counter(owner_of(profile).key for profile in read_report(report, source=False)) == expected


def test_line_information_tells_more_than_a_name(launch: KernelProfile) -> None:
    """What a library ships has none; a plain word is Triton's where the file is Python's."""
    softmax = read_report(EXAMPLES / "softmax_triton.ncu-rep.xz", source=False)[0]
    assert (softmax.lines, owner_of(softmax).key) == ("python", "triton")
    # In a Python program nothing but Triton's functions and those compiled at run time have C linkage.
    unknown = replace(softmax, lines="")
    assert owner_of(unknown).key == "triton"
    assert owner_of(replace(unknown, name="vadd_e1f2_cuda_kernel_forward")).key == "own", "NVIDIA Warp's"
    square = replace(softmax.launch, block=(16, 16, 1))
    static = replace(softmax.launch, static_shared_memory=8192)
    assert {owner_of(replace(unknown, launch=one)).key for one in (square, static)} == {"own"}, (
        "CUDA, by NVRTC"
    )
    compiled = replace(softmax.session, command_line="ncu --set basic ./solver")
    assert owner_of(replace(unknown, session=compiled)).key == "own"
    assert owner_of(replace(softmax, name="triton_poi_fused_add_0")).key == "inductor"
    assert owner_of(replace(softmax, name="cudapy::__main__::add(Array<float, 1, C>)")).key == "own"
    norm = replace(launch, name="void vllm::rms_norm_kernel<float>(float *)")
    assert owner_of(norm).key == "library"
    assert owner_of(replace(norm, lines="c")).key == "own"
    linked = [
        p for p in read_report(DATA / "names_templates.ncu-rep.xz", source=False) if p.name.isidentifier()
    ]
    assert linked and all(owner_of(one).key == "own" for one in linked)
