"""The diff command on real collections: verdicts, reasons, pairs, refusals, documents and the gate."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_process
import pytest
from made_runs import LADDER, make_run
from recorded_data import DATA
from scale import few

from gemmprof.analysis.comparison.outcome import Outcome, compare_matches
from gemmprof.analysis.comparison.sides import load_side, match
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.cli import main

NOISE = DATA / "noise"
BASE, AGAIN, MORE = (str(NOISE / f"{name}.ncu-rep.xz") for name in ("base_0", "base_1", "more_020_0"))
CODE, RENAMED, FEWER = (
    str(NOISE / f"code_{name}.ncu-rep.xz") for name in ("base", "renamed", "fewer_registers")
)
ROOT = Path(__file__).resolve().parents[3]
GELU = tuple(
    str(ROOT / "docs" / "examples" / "recorded" / f"{name}.ncu-rep.xz") for name in ("gelu_fixed", "gelu")
)
LAUNCHES = str(ROOT / "docs" / "examples" / "recorded" / "transformer_launches.ncu-rep.xz")


def outcome(before: str, after: str) -> Outcome:
    return compare_matches(match(load_side([before]), load_side([after])))


def document(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["diff", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def kept_baseline(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A baseline as it lies on disk."""
    folder = tmp_path_factory.mktemp("baselines")
    assert main(["baseline", "save", "a", CODE, "--baselines", str(folder)]) == 0
    return (folder / "a.json.zst").read_bytes()


class TestFamilies:
    """What counts as a repetition, and which launch a number means."""

    def test_launches_in_another_range_are_no_repetitions(self) -> None:
        """The optimizer's 100 fills and the one of the backward pass have one name, grid and block."""
        fills = [
            kernel
            for kernel in load_side([LAUNCHES]).kernels
            if kernel.name.startswith("void at::native::vectorized") and kernel.grid == (1, 1, 1)
        ]
        ranges = {(kernel.name, kernel.nvtx) for kernel in fills}
        assert len(ranges) > len({kernel.name for kernel in fills})
        assert len({kernel.title for kernel in fills}) == len(fills)
        assert any(kernel.apart.endswith("in optimizer") for kernel in fills)

    def test_launches_of_other_shared_memory_are_no_repetitions(self) -> None:
        with ReportReader(Path(LAUNCHES)) as reader:
            launch = next(reader.profiles(instances=False, rules=False))
        other = replace(launch, launch=replace(launch.launch, dynamic_shared_memory=4096))
        assert launch.family != other.family and launch.family[:3] == other.family[:3]

    def test_a_number_is_the_position_of_a_launch(self, capsys: pytest.CaptureFixture[str]) -> None:
        with ReportReader(Path(LAUNCHES)) as reader:
            launches = list(reader.profiles(instances=False, rules=False, only={30, 31}))
        found = document([LAUNCHES, "--before", "30", "--after", "31"], capsys)
        (details,) = found["details"]
        assert [details["before"], details["after"]] == [launch.name for launch in launches]
        assert [details["seconds_before"], details["seconds_after"]] == pytest.approx(
            [(launch.number("gpu__time_duration.sum") or 0) / 1e9 for launch in launches]
        )
        assert main(["diff", LAUNCHES, "--before", "30", "--after", "843"]) == 2

    @pytest.mark.parametrize("pair", [(BASE, MORE), (LAUNCHES, LAUNCHES), (CODE, FEWER)])
    def test_the_change_is_that_of_the_times_beside_it(
        self, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        found = document(
            [*pair, "--fail-unclear"] if pair[0] == pair[1] else [*pair], capsys, int(pair[0] == pair[1])
        )
        for kernel, details in zip(found["kernels"], found["details"], strict=True):
            ratio = details["seconds_after"] / details["seconds_before"]
            assert kernel["time_change"] == pytest.approx(ratio - 1, abs=1e-12)
            changes = {change["name"]: change for change in details["changes"]}
            assert changes["duration"]["ratio"] == pytest.approx(ratio)
            if details["cycles_change"] is not None and "elapsed_cycles" in changes:
                assert changes["elapsed_cycles"]["ratio"] - 1 == pytest.approx(details["cycles_change"])


class TestVerdicts:
    def test_a_collection_and_its_repetition_are_never_red(self) -> None:
        found = outcome(BASE, AGAIN)
        assert found.count("slower", "faster", "new", "gone") == 0
        assert found.count("same") > 20
        assert {kernel.code_same for kernel in found.kernels} == {True}

    def test_two_per_cent_more_work_is_found_and_its_reason_named(self) -> None:
        found = outcome(BASE, MORE)
        assert found.count("slower") >= 28 and found.count("faster", "same") == 0
        slow = [kernel for kernel in found.kernels if kernel.verdict == "slower"]
        assert all(kernel.changed[0] == "counters" and kernel.code_same for kernel in slow)
        assert all("instructions executed" in kernel.reasons[0].text for kernel in slow)
        assert not any("SMSP: " in kernel.reasons[0].text for kernel in slow), (
            "as everywhere, or as ncu takes it"
        )
        for kernel in slow:
            assert kernel.judgement is not None and 0 < kernel.judgement.low < 0.03

    def test_kernels_of_one_name_and_other_grids_are_apart(self) -> None:
        names = [
            kernel.match.title
            for kernel in outcome(BASE, AGAIN).kernels
            if "multiply_add " in kernel.match.title
        ]
        assert sorted(names) == ["<unnamed>::multiply_add 1056x1x1", "<unnamed>::multiply_add 528x1x1"]

    def test_another_name_and_another_line_are_no_change(self) -> None:
        found = outcome(CODE, RENAMED)
        renamed = {kernel.match.label: kernel for kernel in found.kernels if kernel.match.how == "renamed"}
        assert sorted(renamed) == [
            "<unnamed>::sine → <unnamed>::waves",
            "<unnamed>::stencil → <unnamed>::five_points",
        ]
        for kernel in found.kernels:
            assert kernel.verdict in ("same", "unclear") and kernel.changed == []
        assert all("renamed: its code is the same" in kernel.note for kernel in renamed.values())

    def test_fewer_registers_are_told_with_what_they_did_to_the_code(self) -> None:
        found = {kernel.match.label: kernel for kernel in outcome(CODE, FEWER).kernels}
        spilled = found["<unnamed>::normalise<1024>"]
        assert spilled.verdict == "slower" and spilled.changed[:2] == ["code", "counters"]
        # In cycles it is less: the clock fell, too.
        assert 0.27 < spilled.cycles < spilled.judgement.change < 0.29
        text = spilled.reasons[0].text
        assert "registers 48 → 32" in text and "STL 0 →" in text and "instructions 224 → 280" in text
        others = {kernel.verdict for name, kernel in found.items() if name != spilled.match.label}
        assert others <= {"same", "unclear"} and "same" in others

    def test_same_code_and_counters_are_not_red_however_slow(self, tmp_path: Path) -> None:
        before = make_run(tmp_path / "a", {1: 1e-3, 2: 1e-3})
        after = make_run(tmp_path / "b", {1: 1e-3, 2: 1.5e-3})
        slow = outcome(str(before), str(after)).kernels[0]
        assert slow.verdict == "unclear" and slow.label.startswith("2 ")
        assert "same code and same counters" in slow.note

    def test_several_reports_a_side_are_repetitions(self, capsys: pytest.CaptureFixture[str]) -> None:
        kernels = document([BASE, AGAIN, "--with", MORE], capsys)["kernels"]
        assert (kernels[0]["launches_before"], kernels[0]["launches_after"]) == (24, 12)

    def test_launches_can_be_compared_one_by_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        kernels = document([CODE, RENAMED, "--each-launch", "--kernel", "tiled"], capsys)["kernels"]
        assert len(kernels) == 6
        assert {kernel["launches_before"] for kernel in kernels} == {1}


class TestWhatMayBeCompared:
    def test_another_set_is_refused_and_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", CODE, BASE]) == 2
        error = capsys.readouterr().err
        assert "what ncu collected" in error and "--across set" in error
        assert main(["diff", CODE, BASE, "--across", "set"]) == 0
        assert "Compared across what ncu collected" in capsys.readouterr().out

    def test_another_card_is_refused_and_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        reports = [str(DATA / "partial_basic.ncu-rep.xz"), CODE, "--before", "naive", "--after", "sine"]
        assert main(["diff", *reports]) == 2
        error = capsys.readouterr().err
        assert "NVIDIA H100 80GB HBM3 → NVIDIA H200" in error and "--across card" in error
        assert main(["diff", *reports, "--across", "card", "--across", "set"]) == 0

    def test_times_without_the_profiler_compare_however_it_was_run(self, tmp_path: Path) -> None:
        before = make_run(tmp_path / "a", {1: 1e-3})
        after = make_run(tmp_path / "b", {1: 1e-3})
        report = after / "reports" / "ladder.ncu-rep.xz"
        shutil.copy(DATA / "partial_basic.ncu-rep.xz", report)
        assert main(["diff", str(before), str(after)]) == 0

    def test_a_ladder_is_compared_within_itself(self, capsys: pytest.CaptureFixture[str]) -> None:
        details = document([LADDER], capsys)["details"]
        assert [item["label"] for item in details] == [
            "gemm_naive → gemm_coalesced",
            "gemm_coalesced → gemm_shared",
        ]

    def test_one_report_of_unrelated_kernels_names_what_to_type(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for more in ([], ["--fail-slower", "3"]):
            assert main(["diff", BASE, *more]) == 2
            said = capsys.readouterr()
            assert "nothing to compare" in said.err and f"gemmprof diff {BASE} LATER" in said.err
            assert not said.out

    def test_stages_of_runs_pair_and_selectors_choose(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = str(make_run(tmp_path / "a", {1: 4e-3, 2: 3e-3, 3: 2e-3}))
        kernels = document([run, "--before", "1", "--after", "tiling"], capsys)["kernels"]
        assert kernels[0]["verdict"] == "faster"
        assert main(["diff", run, "--before", "1"]) == 2
        assert main(["diff", run, "--before", "1", "--after", "nothing"]) == 2
        assert "matches nothing" in capsys.readouterr().err

    def test_two_single_kernels_pair_whatever_their_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        reports = [LADDER, LADDER, "--before", "naive", "--after", "coalesced"]
        kernels = document(reports, capsys)["kernels"]
        assert kernels[0]["verdict"] == "faster"

    def test_a_folder_of_profiles_is_one_side_without_the_report_that_only_counted(
        self, tmp_path: Path
    ) -> None:
        for name, report in (("count", AGAIN), ("sines", CODE), ("sines-2", RENAMED)):
            (tmp_path / f"{name}.ncu-rep.xz").symlink_to(report)
        side = load_side([tmp_path])
        assert side.processes == 2 and {record.launches for record in side.kernels} == {12, 6}


def test_a_change_is_told_in_the_words_of_findings() -> None:
    (kernel,) = outcome(*reversed(GELU)).kernels
    assert re.match(
        r"double precision \(predicted \d+ %, \d+ to \d+\) is gone(, [a-z ]+ \(predicted [^)]+\) is gone)*"
        r": −2\d\.\d % measured, as predicted; next: [a-z]",
        kernel.said,
    )


class TestDocuments:
    def test_json_is_the_contract(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = document([BASE, MORE], capsys)
        assert found["format"] == "gemmprof.diff/1"
        kernels = found["kernels"]
        assert len(kernels) == 35
        keys = ["name", "grid", "launches_before", "launches_after", "verdict"]
        keys += ["time_change", "low", "high", "changed"]
        for kernel in kernels:
            assert list(kernel) == keys
            assert kernel["verdict"] in ("same", "faster", "slower", "unclear", "new", "gone")
            assert kernel["low"] <= kernel["time_change"] <= kernel["high"]
            assert set(kernel["changed"]) <= {"code", "counters", "clocks", "tools"}

    def test_junit(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", BASE, MORE, "--fail-slower", "1", "--format", "junit"]) == 1
        (suite,) = ElementTree.fromstring(capsys.readouterr().out)
        # The strict schema's: these attributes, these children in this order.
        attributes = ["name", "timestamp", "hostname", "tests", "failures", "errors", "time", "id", "package"]
        assert set(attributes) <= set(suite.keys())
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        children = list(dict.fromkeys(child.tag for child in suite))
        assert children == ["properties", "testcase", "system-out", "system-err"]
        for case in suite.findall("testcase"):
            assert float(case.get("time", "")) > 0 and len(case) <= 1
            assert all(child.get("type") for child in case.findall("failure"))
        assert suite.get("tests") == "35" == str(len(suite.findall("testcase")))
        assert int(suite.get("failures", "0")) == len(suite.findall(".//failure")) > 20

    def test_sarif(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", CODE, FEWER, "--fail-if", "time > +5%", "--format", "sarif"]) == 1
        log = json.loads(capsys.readouterr().out)
        (result,) = log["runs"][0]["results"]
        assert (
            log["version"] == "2.1.0"
            and result["ruleId"] == "time"
            and "normalise" in result["message"]["text"]
        )
        # Without -lineinfo the report stands for the kernel: code scanning refuses results without a place.
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith("code_fewer_registers.ncu-rep.xz")
        assert main(["diff", *GELU, "--fail-slower", "5", "--format", "sarif"]) == 1
        (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith("gelu.cu") and place["region"]["startLine"] > 1
        assert len(result["partialFingerprints"]) == 1

    def test_a_waived_kernel_is_suppressed_and_skipped_with_its_reason(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        waivers = tmp_path / "waivers.toml"
        waivers.write_text('[[waiver]]\nkernel = "normalise"\nreason = "new numerics"\nuntil = 2999-01-31\n')
        gate = ["diff", CODE, FEWER, "--fail-if", "time > +5%", "--waivers", str(waivers)]
        assert main([*gate, "--format", "sarif"]) == 0
        (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        assert result["suppressions"] == [
            {"kind": "external", "justification": "waived until 2999-01-31: new numerics"}
        ]
        assert main([*gate, "--format", "junit"]) == 0
        (suite,) = ElementTree.fromstring(capsys.readouterr().out)
        waived = [case.get("message", "") for case in suite.iter("skipped")]
        assert any("waived until 2999-01-31: new numerics" in message for message in waived)

    def test_markdown_has_no_markup_of_the_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", CODE, FEWER, "--format", "markdown"]) == 0
        shown = capsys.readouterr().out
        assert "| SLOWER |" in shown and "<unnamed>" not in shown and r"\<unnamed\>" in shown

    def test_github_annotations_are_commands_and_names_are_not(self) -> None:
        done = in_process.run(["gemmprof", "diff", *GELU, "--fail-slower", "5", "--format", "github"])
        assert done.returncode == 1
        lines = done.stdout.splitlines()
        assert re.match(r"::error file=[^,]*gelu\.cu,line=\d+,title=gemmprof::gelu", lines[0])
        assert sum("not decided" in line for line in lines) <= 2
        assert all(line.startswith("::") for line in lines)

    def test_a_document_goes_into_a_file(self, tmp_path: Path) -> None:
        target = tmp_path / "diff.json"
        assert main(["diff", CODE, FEWER, "--json", "-o", str(target)]) == 0
        assert json.loads(target.read_text())["format"] == "gemmprof.diff/1"
        assert main(["diff", CODE, FEWER, "--json", "-o", str(target)]) == 2

    def test_tables(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", CODE, FEWER]) == 0
        shown = capsys.readouterr().out
        assert "1 SLOWER" in shown and "registers 48 → 32" in shown and "Elapsed cycles" not in shown
        assert main(["diff", CODE, FEWER, "--details"]) == 0
        assert "Elapsed cycles" in capsys.readouterr().out


class TestGate:
    def test_it_holds_for_a_repetition_and_says_what_it_compared(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["diff", BASE, AGAIN, "--fail-slower", "1", "--fail-if", "registers > +0"]) == 0
        error = capsys.readouterr().err
        assert "the gate holds: 35 of 35 kernels checked" in error and "not decided" in error

    def test_it_stops_what_is_slower_and_names_the_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", CODE, FEWER, "--fail-if", "time > +3%"]) == 1
        error = capsys.readouterr().err
        assert "<unnamed>::normalise<1024>: 28.0 % slower" in error and "(time > +3%)" in error
        assert main(["diff", CODE, FEWER, "--fail-if", "time > +40%"]) == 0

    @pytest.mark.parametrize(
        ("condition", "code"),
        [
            ("registers > +0", 0),
            ("registers < -10%", 1),
            ("local_memory > 0", 1),
            ("cycles > +10%", 1),
            ("cycles > +40%", 0),
            ("instructions > 0", 2),
            ("smsp__inst_executed.sum > +10%", 1),
            ("smsp__inst_executed.sum > +90%", 0),
            ("time > 1000", 1),
            ("AchievedOccupancy", 1),
            ("+AchievedOccupancy", 0),
            ("UncoalescedGlobalAccess", 0),
            ("+low_occupancy", 0),
            ("NoSuchRule", 2),
            ("no_such_figure > 0", 2),
            ("time >> 3", 2),
        ],
    )
    def test_conditions(self, condition: str, code: int) -> None:
        assert main(["diff", CODE, FEWER, "--fail-if", condition]) == code

    @pytest.mark.parametrize("figure", ["cycles", "duration", "sm_clock", "sm_percent", "achieved_occupancy"])
    def test_no_figure_cries_wolf_over_a_repetition(self, figure: str) -> None:
        gate = ["diff", CODE, RENAMED, "--fail-if", f"{figure} > +0", "--fail-if", f"{figure} < -0%"]
        assert main(gate) == 0

    def test_new_and_gone_kernels(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = str(make_run(tmp_path / "a", {1: 1e-3, 2: 1e-3}, profiled=False))
        after = str(make_run(tmp_path / "b", {1: 1e-3, 3: 1e-3}, profiled=False))
        gate = ["diff", before, after, "--fail-slower", "5"]
        assert main(gate) == 1
        error = capsys.readouterr().err
        assert "is missing after" in error and "no counterpart before" in error
        assert main([*gate, "--allow-new"]) == 1
        assert main([*gate, "--allow-new", "--allow-gone"]) == 0

    def test_timed_runs(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = str(make_run(tmp_path / "a", {1: 1e-3, 2: 1e-3}, profiled=False))
        after = str(make_run(tmp_path / "b", {1: 1.001e-3, 2: 1.2e-3}, profiled=False))
        assert main(["diff", before, after, "--fail-slower", "25"]) == 0
        assert main(["diff", before, after, "--fail-slower", "5"]) == 1
        error = capsys.readouterr().err
        assert "2 Coalesced" in error and "20.0 % slower" in error and "1 Naive" not in error

    def test_it_stops_what_nobody_timed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = str(make_run(tmp_path / "a", {1: 1e-3}))
        after = str(make_run(tmp_path / "b", {1: None}, profiled=False))
        assert main(["diff", before, after, "--fail-slower", "50", "--across", "card"]) == 1
        assert "no time on both sides" in capsys.readouterr().err

    def test_a_waiver_lets_one_pass_until_its_day(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        waivers = tmp_path / "waivers.toml"
        gate = ["diff", CODE, FEWER, "--fail-slower", "3", "--waivers", str(waivers)]
        entry = '[[waiver]]\nkernel = "normalise"\nreason = "trial of fewer registers"\nuntil = {}\n'
        waivers.write_text(entry.format("9999-12-31"))
        assert main(gate) == 0
        assert "waived until 9999-12-31: trial of fewer registers" in capsys.readouterr().err
        waivers.write_text(entry.format("2020-01-01"))
        assert main(gate) == 1
        assert "ended on 2020-01-01" in capsys.readouterr().err
        for wrong in (
            "[[waiver]]\nkernel = 'x'\n",
            "[[waiver]]\nkernel='x'\nreason='y'\nuntil='soon'\n",
            "x = [",
            "",
        ):
            waivers.write_text(wrong)
            assert main(gate) == 2

    def test_cannot_tell_breaks_it_only_where_asked(self) -> None:
        assert main(["diff", BASE, AGAIN, "--fail-slower", "3"]) == 0
        assert main(["diff", BASE, AGAIN, "--fail-slower", "3", "--fail-unclear"]) == 1

    def test_a_closed_pipe_keeps_the_exit_code(self) -> None:
        command = f"{sys.executable} -m gemmprof diff {CODE} {FEWER} --fail-slower 3 --json"
        done = subprocess.run(
            ["bash", "-c", f"{command} 2>/dev/null | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}"],
            check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 1

    @pytest.mark.parametrize("limit", ["-1", "nan", "inf", "five"])
    def test_an_odd_limit_is_refused(self, limit: str) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["diff", LADDER, f"--fail-slower={limit}"])
        assert stopped.value.code == 2


class TestBaselines:
    def test_a_baseline_is_as_good_as_its_report(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = ["--baselines", str(tmp_path / "kept")]
        assert main(["baseline", "save", "main", CODE, *folder]) == 0
        (file,) = (tmp_path / "kept").iterdir()
        assert file.name == "main.json.zst" and file.stat().st_size < 60_000
        kept, direct = (
            document(["--against", "main", FEWER, *folder], capsys),
            document([CODE, FEWER], capsys),
        )
        assert kept["kernels"] == direct["kernels"]
        assert [d["reasons"] for d in kept["details"]] == [d["reasons"] for d in direct["details"]]  # type: ignore[attr-defined]
        renamed = document(["--against", "main", RENAMED, *folder], capsys)
        assert [d["paired_by"] for d in renamed["details"]].count("renamed") == 2  # type: ignore[attr-defined]

    def test_list_show_rm(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        folder = ["--baselines", str(tmp_path)]
        assert main(["baseline", "list", *folder]) == 0
        assert "no baseline" in capsys.readouterr().out
        assert main(["baseline", "save", "a", CODE, *folder]) == 0
        assert main(["baseline", "save", "a", CODE, *folder]) == 2
        assert main(["baseline", "save", "a", CODE, "--force", *folder]) == 0
        capsys.readouterr()
        assert main(["baseline", "list", "--json", *folder]) == 0
        (listed,) = json.loads(capsys.readouterr().out)["baselines"]
        assert listed["name"] == "a" and len(listed["kernels"]) == 5
        assert main(["baseline", "show", "a", *folder]) == 0
        shown = capsys.readouterr().out
        # One card is said once, so that neither names nor titles are broken.
        assert "::stencil" in shown and " Instructions" in shown and shown.count("NVIDIA") == 1
        assert main(["baseline", "rm", "a", *folder]) == 0
        assert main(["baseline", "rm", "a", *folder]) == 2
        assert main(["diff", "--against", "a", CODE, *folder]) == 2

    @pytest.mark.parametrize(
        "damage",
        few(["cut", "flip", "format", "type", "zero", "negative", "bomb"], ["cut", "zero"]),
    )
    def test_a_damaged_one_is_refused_by_name(
        self, damage: str, kept_baseline: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        import zstandard

        folder = ["--baselines", str(tmp_path)]
        path = tmp_path / "a.json.zst"
        data = kept_baseline
        text = zstandard.decompress(data, max_output_size=1 << 26)
        pack = zstandard.ZstdCompressor().compress
        path.write_bytes(
            {
                "cut": data[:-9],
                "flip": data[:500] + bytes([data[500] ^ 1]) + data[501:],
                "format": pack(text.replace(b"gemmprof.baseline/1", b"gemmprof.baseline/9")),
                "type": pack(text.replace(b'"launches":6', b'"launches":"six"')),
                "zero": pack(re.sub(rb'"nanoseconds":\[[\d.]+', b'"nanoseconds":[0.0', text)),
                "negative": pack(re.sub(rb'"sm_hz":\[', b'"sm_hz":[-', text)),
                "bomb": pack(b" " * (300 << 20)),
            }[damage]
        )
        capsys.readouterr()
        assert main(["diff", "--against", "a", CODE, *folder]) == 2
        error = capsys.readouterr().err
        assert "a.json.zst" in error and "baseline save a" in error

    @pytest.mark.parametrize(
        "choice",
        few(
            [["--kernel", "softmax"], ["--launch", "40-90"], ["--top", "3"], []],
            [["--kernel", "softmax"], []],
        ),
    )
    def test_a_selection_is_of_both_sides(
        self, choice: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = ["--baselines", str(tmp_path)]
        assert main(["baseline", "save", "a", BASE, *folder]) == 0
        found = document(["--against", "a", BASE, *folder, *choice, "--fail-if", "time > +30%"], capsys)
        assert {kernel["verdict"] for kernel in found["kernels"]} <= {"same", "unclear"}  # type: ignore[attr-defined, index]
        assert found["gate"]["holds"]  # type: ignore[index, call-overload]

    @pytest.mark.parametrize("name", ["../a", "", ".a", "a/b", "a b"])
    def test_a_name_stays_in_the_folder(self, name: str, tmp_path: Path) -> None:
        assert main(["baseline", "save", name, CODE, "--baselines", str(tmp_path)]) == 2
        assert list(tmp_path.iterdir()) == []


def test_an_id_chooses_a_pair_and_two_ids_two_launches(capsys: pytest.CaptureFixture[str]) -> None:
    (one,), everything = (document([CODE, FEWER, *ids], capsys)["details"] for ids in (["#2"], []))  # type: ignore[misc, attr-defined]
    named = {kernel["family"]: (kernel["before"], kernel["after"]) for kernel in everything}  # type: ignore[attr-defined]
    # Its interval is narrower: nothing is corrected for the other four.
    assert len(named) == 5 and (one["before"], one["after"]) == named[one["family"]] and one["family"] == "#2"
    (two,) = document([CODE, "--before", "#1", "--after", "#2"], capsys)["details"]  # type: ignore[misc, attr-defined]
    assert (two["family"], two["paired_by"]) == ("#2", "chosen")


def test_a_narrow_terminal_keeps_names_and_changes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["diff", CODE, FEWER]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert any("#5→#4 <unnamed>::normalise<1024>" in line and "+28.0 %" in line for line in lines)


def test_one_pair_is_told_on_a_screen_and_in_full_on_demand() -> None:
    recorded = ROOT / "docs" / "examples" / "recorded"
    pair = [str(recorded / f"{name}.ncu-rep.xz") for name in ("gelu", "gelu_fixed")]
    environment = {**os.environ, "COLUMNS": "80"}
    short = in_process.run(["gemmprof", "diff", *pair], env=environment, check=True).stdout.splitlines()
    assert len(short) <= 24 and max(map(len, short)) <= 80
    assert short[1] == "FASTER #1 gelu"
    assert re.search(r"double precision \(predicted \d+ %, \d+ to \d+\) is gone", short[3])
    assert short[-1].endswith("quantities: --details")
    full = in_process.run(["gemmprof", "diff", *pair, "--details"], env=environment, check=True).stdout
    assert "Eligible" in full and len(full.splitlines()) > 40


def test_times_have_the_digits_that_were_measured() -> None:
    words = ["gemmprof", "diff", LAUNCHES, LAUNCHES, "--json"]
    document = json.loads(in_process.run(words, check=True).stdout)
    singles = [one for one in document["details"] if one["seconds_before"] is not None]
    assert len(singles) > 20
    for one in singles:
        digits = repr(one["seconds_before"]).partition("e")[0].replace(".", "").strip("0")
        assert len(digits) <= 13, one["seconds_before"]
