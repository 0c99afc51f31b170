"""Whose code a kernel is, on names from public profiles and on our own reports."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.inputs.owners import OWNERS, owner_of, owner_of_name
from gemmprof.analysis.reading.report import read_report

EXAMPLES = ROOT / "docs" / "examples" / "recorded"


def names() -> list[dict[str, str]]:
    with (DATA / "kernel_names.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_names_of_public_profiles() -> None:
    rows = names()
    assert len(rows) >= 300
    assert len({row["name"] for row in rows}) == len(rows)
    assert {row["owner"] for row in rows} == OWNERS.keys()
    for held_back in ("no", "yes", "later"):
        those = [row for row in rows if row["held_back"] == held_back]
        wrong = [row for row in those if owner_of_name(row["name"]).key != row["owner"]]
        assert len(those) > 100
        assert len(wrong) <= 0.02 * len(those), wrong


def test_what_was_held_back_was_chosen_by_a_hash() -> None:
    for row in names():
        if row["held_back"] != "later":
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
    assert Counter(owner_of(profile).key for profile in read_report(report)) == expected


def test_source_lines_tell_more_than_a_name() -> None:
    """What a library ships has no line information; a name that says nothing is Triton's where the file is Python's."""
    softmax = read_report(EXAMPLES / "softmax_triton.ncu-rep.xz")[0]
    assert owner_of(softmax).key == "triton"
    assert owner_of(replace(softmax, source=replace(softmax.source, instructions=(), files={}))).key == "own"
    gelu = read_report(EXAMPLES / "gelu.ncu-rep.xz")[0]
    assert owner_of(replace(gelu, name="void vllm::rms_norm_kernel<float>(float *)")).key == "own"
    assert owner_of_name("void vllm::rms_norm_kernel<float>(float *)").key == "library"
    assert owner_of(replace(softmax, name="triton_poi_fused_add_0")).key == "inductor"
    assert owner_of(replace(softmax, name="cudapy::__main__::add(Array<float, 1, C>)")).key == "own"
