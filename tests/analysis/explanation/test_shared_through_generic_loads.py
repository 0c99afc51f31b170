"""WMMA reads shared memory with generic loads: they look like global ones, and what they read changes between two."""

from __future__ import annotations

from recorded_data import one_launch

from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.runs.directory import load_recorded_run


def test_generic_loads_of_shared_memory_are_not_redundant() -> None:
    run = load_recorded_run()
    (result,) = (
        result
        for result in run.results
        if result.report is not None
        and run.record_of(result).stage.name == "hgemm_wmma"
        and result.problem.m == 2048
    )
    profile = one_launch(run.directory / f"{result.report}.xz", result.launch_index or 0)
    code = [i.sass for i in profile.source.instructions]
    assert "hgemm_wmma" in profile.name
    if not any(sass.startswith("LD.E") for sass in code):
        return  # recorded again, with other code
    explanation = analyse(profile).explanation
    assert "redundant_loads" not in {finding.cause for finding in explanation.findings}
