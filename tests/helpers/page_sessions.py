"""Sessions that the tests of pages share: a small run over recorded launches, and one whose every string is hostile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_data import ReadRecorded

from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.session import Session
from gemmprof.base.errors import ReportError
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import (
    KernelProfile,
    Problem,
    RuleResult,
    RunInfo,
    Source,
    Stage,
    StageRecord,
    StageResult,
    Timing,
    Verification,
)
from gemmprof.runs.directory import Run

SMALL, LARGE = Problem(1024, 1024, 1024), Problem(2048, 2048, 2048)

HOSTILE = (
    '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2">\'"`{{7*7}}{% raw %}'
    "<!--]]>&amp;\x00\x1b[31m\u202egpj.exe\u2066\u200b javascript:window.pwned=3"
)
"""Markup, quotes, template syntax, NUL, an escape sequence, bidi and zero-width characters."""


def timing(milliseconds: float, cublas_milliseconds: float) -> Timing:
    seconds = milliseconds * 1e-3
    return Timing(
        median=seconds,
        minimum=seconds * 0.98,
        p10=seconds * 0.99,
        p90=seconds * 1.05,
        repetitions=50,
        sm_clock_mhz=1755.0,
        yardstick_median=cublas_milliseconds * 1e-3,
    )


def ladder_session(profiles: tuple[KernelProfile, ...]) -> Session:
    """A run of stages 0 to 4 on two shapes; stages 1 to 3 at 1024³ are profiled, stage 4 failed there."""
    kernels = tuple(analyse(profile) for profile in profiles)
    stages = [stage for stage in SINGLE.stages if stage.number <= 4]
    milliseconds = {0: 0.05, 1: 4.3, 2: 0.34, 3: 0.235, 4: 0.12}
    results = []
    for stage in stages:
        number = stage.number
        if number == 4:
            results.append(StageResult(number, SMALL, failure="an illegal memory access was encountered"))
        else:
            profiled = 1 <= number <= 3
            results.append(
                StageResult(
                    number,
                    SMALL,
                    Verification(1.2e-7, 1e-5, True),
                    timing(milliseconds[number], 0.05),
                    report="reports/ladder.ncu-rep" if profiled else None,
                    launch_index=number - 1 if profiled else None,
                )
            )
        results.append(
            StageResult(
                number,
                LARGE,
                Verification(1.3e-7, 1e-5, True),
                timing(7.6 * milliseconds[number], 7.6 * 0.05),
            )
        )
    info = RunInfo(
        created="2026-01-02T03:04:05+00:00",
        device="NVIDIA H100 80GB HBM3",
        compute_capability=(9, 0),
        versions={"gemmprof": "0.1.0", "driver": "580.00", "cuda": "13.0"},
        clock_control="none",
        seed=7,
        metric_set="default",
        command="gemmprof collect",
    )
    run = Run(Path("ladder"), info, tuple(map(StageRecord, stages)), (SMALL, LARGE), tuple(results))
    return Session("ladder", kernels, run, _by_launch=_launches(kernels))


def _launches(kernels: tuple[KernelAnalysis, ...]) -> dict[tuple[str, int], KernelAnalysis]:
    return {("reports/ladder.ncu-rep", index): kernel for index, kernel in enumerate(kernels)}


def hostile_profile(profile: KernelProfile) -> KernelProfile:
    """The launch with every text in it replaced by a hostile one."""
    path = f"/home/{HOSTILE}/kernel.cu"
    source = profile.source
    lines = {
        file: "\n".join(HOSTILE + line for line in text.split("\n")) for file, text in source.files.items()
    }
    return replace(
        profile,
        report=f"{HOSTILE}.ncu-rep",
        name=f"void {HOSTILE}<{HOSTILE}>({HOSTILE})",
        function_name=HOSTILE,
        mangled_name=HOSTILE,
        device=replace(profile.device, name=HOSTILE),
        metrics={
            **{
                n: HOSTILE if isinstance(v, str) and not n.startswith("breakdown") else v
                for n, v in profile.metrics.items()
            },
            HOSTILE: HOSTILE,
        },
        units={**profile.units, HOSTILE: HOSTILE},
        nvtx=(HOSTILE, HOSTILE),
        rules=(
            *(
                replace(
                    rule,
                    rule=HOSTILE,
                    title=HOSTILE,
                    message=f"{HOSTILE} @url:{HOSTILE}:https://example.com/@",
                )
                for rule in profile.rules
            ),
            RuleResult(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "optimization", 50.0, "global"),
        ),
        source=Source(
            tuple(
                replace(item, sass=f"{item.sass} {HOSTILE}", file=path if item.file is not None else None)
                for item in source.instructions
            ),
            {path: next(iter(lines.values()), "")},
            source.function_address,
        ),
    )


def hostile_session(profiles: tuple[KernelProfile, ...]) -> Session:
    """A run and its launches, every text hostile, plus one launch that belongs to no stage and one failure."""
    base = ladder_session(tuple(map(hostile_profile, profiles)))
    assert base.run is not None
    run = base.run
    stages = tuple(StageRecord(_hostile_stage(record.stage)) for record in run.stages)
    info = replace(
        run.info,
        device=HOSTILE,
        created=HOSTILE,
        versions={HOSTILE: HOSTILE},
        clock_control=HOSTILE,
        metric_set=HOSTILE,
        command=HOSTILE,
    )
    results = tuple(
        replace(
            result,
            failure=HOSTILE if result.failure else None,
            verification=replace(result.verification, detail=HOSTILE) if result.verification else None,
        )
        for result in run.results
    )
    loose = analyse(hostile_profile(profiles[0]))
    return replace(
        base,
        title=HOSTILE,
        run=replace(run, directory=Path("hostile"), info=info, stages=stages, results=results),
        kernels=(*base.kernels, loose),
        unread=(ReportError(HOSTILE, HOSTILE, found=HOSTILE),),
    )


def _hostile_stage(stage: Stage) -> Stage:
    addresses = stage.addresses
    if addresses is not None:
        addresses = replace(
            addresses,
            accesses=tuple(replace(access, code=HOSTILE) for access in addresses.accesses),
            global_formula=HOSTILE,
            shared_formula=HOSTILE,
        )
    return replace(stage, title=f"{stage.title} {HOSTILE}", idea=HOSTILE, addresses=addresses)


@pytest.fixture(scope="session")
def ladder(recorded: ReadRecorded) -> Session:
    """A run of five stages over recorded launches."""
    return ladder_session(recorded("ladder_simple", source=True))


@pytest.fixture(scope="session")
def hostile(recorded: ReadRecorded) -> Session:
    """The same with hostile strings everywhere."""
    return hostile_session(recorded("ladder_simple", source=True))


@pytest.fixture(scope="session")
def load(recorded: ReadRecorded) -> Callable[[str], Session]:
    """A session of one recorded report."""

    def session(name: str) -> Session:
        return Session(name, tuple(analyse(profile) for profile in recorded(name, source=True)))

    return session
