"""What a report says of how ncu was run."""

from __future__ import annotations

import pytest
from recorded_data import ReadRecorded

from gemmprof.analysis.reading.messages import clock_control, collected_by
from gemmprof.model import SessionDetails


def session(command_line: str) -> SessionDetails:
    return SessionDetails(command_line=command_line)


@pytest.mark.parametrize(
    ("command_line", "collected"),
    [
        ("ncu --set full ./app", ("--set full",)),
        ("ncu ./app", ("--set basic",)),
        ("ncu --section B --section=A -o x ./app", ("--section A", "--section B")),
        # The program's own words are not ncu's.
        ("ncu --set full -f ./app --set test --metrics loss", ("--set full",)),
        ("ncu --set full --export out.ncu-rep ./app --section intro", ("--set full",)),
        ("ncu --export=out.ncu-rep ./app --metrics loss", ("--set basic",)),
        ("ncu -f python train.py --set full", ("--set basic",)),
        ('ncu --set full "an unclosed quote', ("--set full",)),
        ("", ()),
    ],
)
def test_what_was_asked_for(command_line: str, collected: tuple[str, ...]) -> None:
    assert collected_by(session(command_line)) == collected


@pytest.mark.parametrize(
    ("command_line", "control"),
    [
        ("ncu --clock-control none ./app", "none"),
        ("ncu --clock-control=Base ./app", "base"),
        ("ncu ./app --clock-control none", "base"),
        ("ncu ./app", "base"),
        ("", ""),
    ],
)
def test_the_clocks(command_line: str, control: str) -> None:
    assert clock_control(session(command_line)) == control


def test_a_recorded_report(recorded: ReadRecorded) -> None:
    found = recorded("train_100")[0].session
    assert collected_by(found) == ("--set basic",) and clock_control(found) == "none"
