"""What ncu prints on its source page, instruction by instruction and line by line, is what the source view says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from ncu_exports import csv_rows, has_export
from recorded_data import ReadRecorded

from gemmprof.analysis.sections import source_view
from gemmprof.analysis.sections.source_view import Counters, SourceView
from gemmprof.model import KernelProfile, NotCollected

Table = tuple[str, list[dict[str, str]]]

COUNTERS: dict[str, Callable[[Counters], int | None]] = {
    "Warp Stall Sampling (All Samples)": lambda c: c.samples,
    "# Samples": lambda c: c.samples,
    "Instructions Executed": lambda c: c.executed,
    "Predicated-On Thread Instructions Executed": lambda c: c.threads_predicated_on,
    "Divergent Branches": lambda c: c.divergent_branches,
    "L1 Tag Requests Global": lambda c: c.global_tags,
    "L1 Wavefronts Shared": lambda c: c.shared_wavefronts,
    "L1 Wavefronts Shared Ideal": lambda c: c.shared_ideal,
    "L1 Wavefronts Shared Excessive": lambda c: c.shared_excess,
    "L2 Theoretical Sectors Global": lambda c: c.global_sectors,
    "L2 Theoretical Sectors Global Ideal": lambda c: c.global_ideal,
    "L2 Theoretical Sectors Global Excessive": lambda c: c.global_excess,
    "L2 Theoretical Sectors Local": lambda c: c.local_sectors,
    # ncu stores these averages as whole numbers, cut off.
    "Avg. Predicated-On Threads Executed": lambda c: whole(c.threads_predicated_on_per_instruction),
}


def whole(value: float | None) -> int:
    return 0 if value is None else int(value)


AVERAGES = ("Avg. Predicated-On Threads Executed", "L1 Conflicts Shared N-Way")

STALLS = {
    "stall_dispatch": "dispatch_stall",
    "stall_imc": "imc_miss",
    "stall_lg": "lg_throttle",
    "stall_long_sb": "long_scoreboard",
    "stall_math": "math_pipe_throttle",
    "stall_mio": "mio_throttle",
    "stall_no_inst": "no_instructions",
    "stall_short_sb": "short_scoreboard",
    "stall_sleep": "sleeping",
    "stall_tex": "tex_throttle",
    **{
        f"stall_{reason}": reason
        for reason in ("barrier", "branch_resolving", "drain", "membar", "misc", "not_selected", "selected")
    },
    "stall_sleeping": "sleeping",
    "stall_wait": "wait",
}


def tables(report: str, page: str, key: str) -> list[Table]:
    """The tables of a source page: kernel name and rows by column."""
    found: list[Table] = []
    columns: list[str] | None = None
    for row in csv_rows(report, page):
        if row and row[0] in ("Kernel Name", "Function Name"):
            found.append((row[1], []))
            columns = None
        elif row and row[0] == key:
            columns = row
        elif columns is not None and found and row and row[0] not in ("File Path", "File Name"):
            # Two columns are called "Source" where CUDA and SASS stand side by side: the first is kept.
            found[-1][1].append(dict(reversed(list(zip(columns, row, strict=False)))))
    return found


def printed_launches(report: str, launches: int) -> list[Table]:
    """One SASS table a launch; ncu prints each twice where a report holds several functions."""
    found = tables(report, "source", "Address")
    if len(found) == 2 * launches:
        assert found[::2] == found[1::2]
        found = found[::2]
    assert len(found) == launches
    return found


def compare(printed: dict[str, str], counters: Counters) -> Iterator[tuple[str, str, str]]:
    """(column, printed, ours) of every counter column that this row has."""
    for column, text in printed.items():
        if column in COUNTERS:
            yield column, text, str(COUNTERS[column](counters))
        if reason := STALLS.get(column):
            yield column, text, str(counters.stalls.get(reason, 0))


REWORDED = ("LDGSTS", "TLD")
"""Opcodes whose operands the disassembler of ncu-report orders or separates in another way than ncu 2025.3.1 does."""


def same_instruction(ours: str, printed: str) -> bool:
    """The same SASS; newer disassemblers print a label before a jump's address, older ones do not."""
    ours, printed = re.sub(r"`\([^)]*\) *", "", ours.strip()), printed.strip()
    if any(opcode in printed for opcode in REWORDED):
        return sorted(re.findall(r"\w+", ours)) == sorted(re.findall(r"\w+", printed))
    return ours == printed


def views(profiles: tuple[KernelProfile, ...]) -> Iterator[tuple[KernelProfile, SourceView | NotCollected]]:
    for profile in profiles:
        yield profile, source_view.analyse(profile)


def test_every_instruction_agrees(report_name: str, recorded: ReadRecorded) -> None:
    if not has_export(report_name, "source"):
        pytest.skip("no source page was exported")
    profiles = recorded(report_name, source=True)
    compared = 0
    for (profile, view), (_, rows) in zip(
        views(profiles), printed_launches(report_name, len(profiles)), strict=True
    ):
        if isinstance(view, NotCollected):
            assert not any(column in rows[0] for column in COUNTERS)
            assert [i.address for i in profile.source.instructions] == [int(r["Address"], 16) for r in rows]
            continue
        by_address = {line.address: line for line in view.sass}
        assert [line.address for line in view.sass] == [int(row["Address"], 16) for row in rows]
        for row in rows:
            line = by_address[int(row["Address"], 16)]
            assert same_instruction(line.sass, row["Source"]), (line.sass, row["Source"])
            for column, printed, ours in compare(row, line.counters):
                assert printed == ours, (profile.function_name, row["Address"], row["Source"], column)
                compared += 1
    if any(view for _, view in views(profiles)):
        assert compared > 500


def test_memory_classes_agree(report_name: str, recorded: ReadRecorded) -> None:
    if not has_export(report_name, "source"):
        pytest.skip("no source page was exported")
    profiles = recorded(report_name, source=True)
    for (_, view), (_, rows) in zip(
        views(profiles), printed_launches(report_name, len(profiles)), strict=True
    ):
        if isinstance(view, NotCollected):
            continue
        for line, row in zip(view.sass, rows, strict=True):
            spaces = row.get("Address Space", "-")
            assert ",".join(line.spaces) == ("" if spaces == "-" else spaces.lower()), row["Source"]
            operations = row.get("Access Operation", "-")
            assert ",".join(line.operations) == ("" if operations == "-" else operations.lower())
            size = row.get("Access Size", "-")
            assert line.access_bits == (int(size) if size.isdigit() else None)


@pytest.mark.parametrize("report", ["flaws_bank_conflicts", "ladder_simple"])
def test_every_line_agrees(report: str, recorded: ReadRecorded) -> None:
    profiles = recorded(report, source=True)
    printed = tables(report, "source_cuda_sass", "Line No")
    compared = 0
    for (_, view), (_, rows) in zip(views(profiles), printed, strict=True):
        assert isinstance(view, SourceView)
        lines = {str(line.line): line for line in view.lines}
        for row in rows:
            number = row["Line No"]
            if not number or row.get("Instructions Executed", "-") == "-":
                continue
            assert row["Source"].strip() == lines[number].text
            for column, text, ours in compare(row, lines[number].counters):
                # For a line ncu adds up the averages of its instructions, which means nothing.
                if column not in AVERAGES:
                    assert text == ours, (number, column)
                    compared += 1
    assert compared > 500


def test_hottest_line_is_the_one_with_most_samples(recorded: ReadRecorded) -> None:
    for profile in recorded("flaws_bank_conflicts", source=True):
        view = source_view.analyse(profile)
        assert isinstance(view, SourceView)
        samples = [line.counters.samples or 0 for line in view.hottest()]
        assert samples == sorted(samples, reverse=True)
        assert sum(samples) == view.totals.samples
        assert {line.label for line in view.hottest()} == {line.label for line in view.lines}
        first = view.hottest()[0]
        assert view.share(first.counters) == pytest.approx(100 * samples[0] / sum(samples))
