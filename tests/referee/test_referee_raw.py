"""Every number that ncu prints on its raw page is the one that gemmprof reads, to the last digit."""

from __future__ import annotations

import ncu_units as units
import pytest
from ncu_exports import has_export, raw_page
from recorded_data import ReadRecorded

from gemmprof import metrics as m


def test_raw_page_in_base_units(recorded: ReadRecorded, report_name: str) -> None:
    if not has_export(report_name, "raw_base"):
        pytest.skip("no base-unit export of this report")
    page = raw_page(report_name)
    profiles = recorded(report_name)
    assert len(page.launches) == len(profiles)
    compared = 0
    for printed, profile in zip(page.launches, profiles, strict=True):
        for name, text in printed.items():
            value = profile.metrics.get(name)
            if name in profile.sampled:
                # ncu prints the sum over the samples, also of rates (an IPC of 204), or nothing.
                assert value is None
                if name.endswith((".sum", ".per_cycle_active")):
                    total = sum(profile.instances[name].values)
                    assert float(text.replace(",", "")) == pytest.approx(total, abs=0.006)
            elif value is None and name.startswith(m.OF_THE_PROFILER) and name in profile.instances:
                assert text == "1"  # there is a time stamp; it is no value either
            elif value is None:
                assert text in ("", "no data"), (
                    f"{profile.name}: {name} is {text} for ncu, absent for gemmprof"
                )
            else:
                ours = value if isinstance(value, str) else units.number_text(value)
                assert ours == text, f"{profile.name}: {name}"
                compared += 1
        # Lists of names (breakdown:…, group:…) are no values; ncu does not print them.
        unprinted = {name for name in profile.metrics.keys() - printed.keys() if ":" not in name}
        assert not unprinted
    assert compared >= 250 * len(profiles)


OTHER_WORDS = {
    "idc__requests.sum",
    "derived__memory_l2_theoretical_sectors_global_excessive",
    *(f"smsp__pcsamp_warps_issue_stalled_{name}" for name in ("no_instructions", "membar")),
    *(f"smsp__pcsamp_warps_issue_stalled_{name}_not_issued" for name in ("no_instructions", "membar")),
    *(
        f"derived__{unit}__sass_thread_inst_executed_op_{operation}"
        for unit in ("sm", "smsp")
        for operation in (
            "dfma_pred_on_x2",
            "ffma_pred_on_x2",
            "hfma_pred_on_x4",
            "hadd_pred_on_x2",
            "hmul_pred_on_x2",
        )
    ),
}
"""Metrics that NVIDIA's current library gives another unit than the ncu that wrote the export (thread for inst …)."""


def test_units_of_the_raw_page(recorded: ReadRecorded, report_name: str) -> None:
    if not has_export(report_name, "raw_base"):
        pytest.skip("no base-unit export of this report")
    page = raw_page(report_name)
    for profile in recorded(report_name):
        printed = {name: unit for name, unit in page.units.items() if name in profile.metrics}
        assert {name for name in printed if profile.units[name] != printed[name]} <= OTHER_WORDS


def test_scaled_raw_page(recorded: ReadRecorded, report_name: str) -> None:
    """Scaled columns share one unit per report, so only the first launch shows how ncu scales a value."""
    page = raw_page(report_name, "raw")
    profile = recorded(report_name)[0]
    scaled = 0
    for name, text in page.launches[0].items():
        value = profile.number(name)
        if value is None or text in ("", "no data"):
            continue
        ours, unit = units.scale(value, profile.units[name])
        if unit == page.units[name] and unit != profile.units[name]:
            assert float(text.replace(",", "")) == pytest.approx(ours, abs=5.1e-7)
            scaled += 1
    assert scaled > 0
