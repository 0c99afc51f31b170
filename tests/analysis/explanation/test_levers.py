"""Findings in the words of whoever owns the kernel: nobody is told to change code that cannot be changed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.explanation.levers import WORDS
from gemmprof.analysis.inputs.names import OWNERS, owner_of
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections.by_line import is_users
from gemmprof.model import KernelProfile

CODE = re.compile(r"float4|__launch_bounds__|double.buffer|shared memory|__syncthreads|wmma|registers")
"""Words that tell somebody to change the code of a kernel."""


def test_every_cause_has_its_words_in_triton_and_every_word_its_cause() -> None:
    assert WORDS["triton"].keys() == CAUSES.keys() - {
        "unaligned_operands",
        "launch_overhead",
        "memory_latency",
    }
    assert WORDS.keys() <= OWNERS.keys()
    for words in WORDS.values():
        assert words.keys() <= CAUSES.keys()


@pytest.fixture(scope="module")
def launches() -> list[KernelProfile]:
    reports = (
        DATA / "train_100.ncu-rep.xz",
        DATA / "pairs" / "frameworks.ncu-rep.xz",
        ROOT / "docs" / "examples" / "recorded" / "transformer.ncu-rep.xz",
        ROOT / "docs" / "examples" / "recorded" / "softmax_triton.ncu-rep.xz",
    )
    return [profile for report in reports for profile in read_report(report)]


def test_nobody_is_told_to_change_what_cannot_be_changed(launches: list[KernelProfile]) -> None:
    told = 0
    for profile in launches:
        owner = owner_of(profile)
        found = explain(profile)
        if owner.key == "triton":
            for finding in found.findings:
                assert all(is_users(where.file) for where in finding.places if where.file)
                assert "float4" not in finding.change
        if owner.editable:
            continue
        told += len(found.findings) + len(found.levers)
        for finding in found.findings:
            assert not finding.places
            assert not CODE.search(finding.change), finding.change
            assert [way.name for way in finding.variants] != []
    assert told > 50


def test_a_library_that_may_keep_its_flaw_is_told_with_nothing_as_the_least(
    launches: list[KernelProfile],
) -> None:
    uncertain = [
        finding
        for profile in launches
        if not owner_of(profile).editable
        for finding in explain(profile).findings
        if finding.cause in ("small_grid", "narrow_access", "tail_effect")
    ]
    assert uncertain
    assert all(finding.saves_low == 0.0 for finding in uncertain)


def test_operands_of_one_layout_bring_what_was_said() -> None:
    """torch's addition of a transposed tensor, and of contiguous ones: 63 % came."""
    strided, contiguous = read_report(DATA / "pairs" / "frameworks.ncu-rep.xz")[14:16]
    finding = explain(strided).findings[0]
    came = 1 - contiguous.metrics["gpu__time_duration.sum"] / strided.metrics["gpu__time_duration.sum"]  # type: ignore[operator]
    assert finding.cause == "uncoalesced_access"
    assert ".contiguous()" in finding.change
    assert finding.saves_low <= came <= finding.saves_high


def test_own_code_keeps_its_words_and_places() -> None:
    gelu = read_report(ROOT / "docs" / "examples" / "recorded" / "gelu.ncu-rep.xz")[0]
    own, foreign = (explain(one) for one in (gelu, replace(gelu, name="cudnn::ops::gelu(float *)")))
    assert own.findings and own.findings[0].places
    assert all(not finding.places for finding in foreign.findings)
    assert len(foreign.findings) < len(own.findings) or all(
        one.change != other.change for one, other in zip(foreign.findings, own.findings, strict=True)
    )
