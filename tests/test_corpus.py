"""The corpus of pairs: the reports hold what outcomes.json says, in the counts promised; one pair recorded on a GPU."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scale import few

from gemmprof.analysis.reading.report import read_report
from gemmprof.gpu.arch import practice_of

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "pairs"
STUDIES = sorted(path.parent for path in (ROOT / "tests" / "data").glob("*/*/studies.json"))
KINDS = {"toy", "real", "ladder", "behind_limit", "two_flaws", "not_mended"}
CAUSES = {
    "uncoalesced_access", "narrow_access", "redundant_loads", "cache_locality", "shared_bank_conflicts",
    "shared_memory_bandwidth", "global_atomics", "shared_atomics", "local_memory", "constant_divergence",
    "branch_divergence", "workload_imbalance", "tail_effect", "small_grid", "low_occupancy", "instruction_latency",
    "memory_latency", "barriers", "instruction_cache", "double_precision", "integer_arithmetic", "expensive_math",
    "non_fused_arithmetic", "tensor_cores_idle", "launch_overhead",
}  # fmt: skip
SOME_REPORTS = [
    f"{name}.ncu-rep.xz" for name in ("atomics", "ceilings", "frameworks", "ladder_smaller", "shared")
]
"""Those that `make test` reads: of four causes, the ceilings, of frameworks and of the ladder."""
MEGABYTES = 15  # what the tests may weigh


@cache
def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / name).read_text(encoding="utf-8"))
    return content


def pairs() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recorded("outcomes.json")["pairs"]
    return found


def saved(pair: dict[str, Any]) -> float:
    return 1.0 - float(pair["mended"]["time_ns"]) / float(pair["flawed"]["time_ns"])


def test_format() -> None:
    head = recorded("outcomes.json")
    assert head["format"] == "gemmprof.pairs/1"
    assert all(head[key] for key in ("device", "driver", "cuda", "ncu"))
    for pair in pairs():
        assert pair.keys() == {"pair", "kernel", "size", "kind", "causes", "flawed", "mended"}, pair
        assert pair["kind"] in KINDS and pair["causes"] and set(pair["causes"]) <= CAUSES, pair
        assert pair["pair"] and pair["kernel"] and int(pair["size"]) > 0
        for side in (pair["flawed"], pair["mended"]):
            assert side.keys() == {"report", "launch", "time_ns", "spread", "launches", "side"}, pair
            assert side["time_ns"] > 2_000 and 0.0 <= side["spread"] < 0.2 and side["launches"] >= 1, pair
        assert pair["flawed"] != pair["mended"]
        assert (saved(pair) < -0.04) <= (pair["kind"] == "not_mended"), pair
    names = Counter((pair["pair"], pair["size"]) for pair in pairs())
    assert max(names.values()) == 1, names.most_common(3)


def test_as_many_as_promised() -> None:
    assert len({pair["pair"] for pair in pairs()}) >= 60
    assert {cause for pair in pairs() for cause in pair["causes"]} == CAUSES
    nothing_gained = {p["pair"] for p in pairs() if p["kind"] == "behind_limit" and abs(saved(p)) < 0.05}
    assert len(nothing_gained) >= 10, nothing_gained
    two_flaws = {pair["pair"].partition(":")[0] for pair in pairs() if pair["kind"] == "two_flaws"}
    assert len(two_flaws) >= 10, two_flaws
    assert len({pair["kernel"] for pair in pairs() if pair["kind"] == "real"}) >= 8
    assert sum(pair["kind"] == "ladder" for pair in pairs()) >= 5
    assert sum(pair["pair"].startswith(("triton_", "torch_")) for pair in pairs()) >= 5
    sizes = Counter(pair["pair"] for pair in pairs())
    assert sum(count >= 2 for count in sizes.values()) >= 60, sizes


def test_flaws_are_of_all_strengths() -> None:
    shares = [saved(pair) for pair in pairs() if pair["kind"] in ("toy", "real")]
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        assert sum(low <= share < high for share in shares) >= 5, (low, high)


@pytest.mark.parametrize(
    "report", few((path.name for path in sorted(DATA.glob("*.ncu-rep.xz"))), SOME_REPORTS)
)
def test_reports_hold_what_outcomes_say(report: str) -> None:
    profiles = read_report(DATA / report)
    sides = {}
    for pair in pairs():
        for side in (pair["flawed"], pair["mended"]):
            if side["report"] == report:
                sides[side["launch"]] = (pair, side)
    for ceiling in recorded("ceilings.json")["ceilings"]:
        if ceiling.get("report") == report:
            sides[ceiling["launch"]] = (ceiling, ceiling)
    assert sides and max(sides) < len(profiles)
    for launch, (what, side) in sides.items():
        profile = profiles[launch]
        # ncu runs each launch alone; contended atomics take up to twice as long or half as long under it.
        profiled = float(profile.metrics["gpu__time_duration.sum"])
        timed = side["time_ns"] / side.get(
            "launches", what.get("amount", 1) if what.get("unit") == "launches" else 1
        )
        assert 0.3 < profiled / timed < 2.5, (what, profiled)


def test_reports_keep_sources_and_rules() -> None:
    profile = read_report(DATA / "access.ncu-rep.xz")[0]
    assert any(name.endswith("access.cu") for name in profile.source.files), "no --import-source"
    assert profile.rules


def test_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < MEGABYTES << 20


def test_docs_define_every_cause_and_count_the_rows() -> None:
    text = (ROOT / "docs" / "corpus.md").read_text(encoding="utf-8")
    assert f"{len(pairs())} rows, which are {len({pair['pair'] for pair in pairs()})} pairs" in text
    assert set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", text, re.MULTILINE)) >= CAUSES


@pytest.mark.parametrize("folder", STUDIES, ids=lambda path: "_".join(path.parts[-2:]))
def test_docs_count_the_studies(folder: Path) -> None:
    studies = json.loads((folder / "studies.json").read_text(encoding="utf-8"))["studies"]
    slower = [
        fix for one in studies for fix in one["fixes"] if fix["time_ns"] > 1.05 * one["kernel"]["time_ns"]
    ]
    counts = len(studies), sum(not one["fixes"] for one in studies), sum(len(one["fixes"]) for one in studies)
    name, card = folder.parts[-2:]
    where = f"`{name}` | `tests/cuda/{name}` | `tests/data/{name}/{card}`"
    row = f"| {where} | {' | '.join(map(str, (*counts, len(slower))))} |"
    assert row in (ROOT / "docs" / "corpus.md").read_text(encoding="utf-8").splitlines(), row


def test_ceilings() -> None:
    content = recorded("ceilings.json")
    assert content["format"] == "gemmprof.ceilings/1"
    shares = {(c["ceiling"], c["size"]): c["metrics"] for c in content["ceilings"] if "metrics" in c}
    dram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
    assert 85.0 < shares["dram_read", 1024][dram] < 100.0
    assert 65.0 < shares["dram_copy", 1024][dram] < shares["dram_read", 1024][dram]
    assert shares["pipe_fma", 256]["sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"] > 85.0
    times = {(c["ceiling"], c["size"]): c["time_ns"] / c["amount"] for c in content["ceilings"]}
    # Nanoseconds of one dependent load: L1, L2, device memory.
    assert 10.0 < times["latency_global", 16] < 50.0 < times["latency_global", 8192]


def test_every_pair_has_its_source() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "cuda" / "pairs").glob("*.*")
    )
    missing = {name for pair in pairs() if f'"{(name := pair["pair"].partition(":")[0])}"' not in sources}
    assert not missing


def test_rows_without_a_side_are_left_out_and_slower_ones_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    outcomes = importlib.import_module("record_pairs").outcomes
    rows = [{"from": "flawed", "to": "mended", "kind": "toy", "causes": ["barriers"]}]
    family = {"family": "f", "kernel": "k", "sizes": [1, 2, 3], "rows": rows}
    keys = [(1, "flawed"), (1, "mended"), (2, "flawed"), (3, "flawed"), (3, "mended")]
    sides = [{"family": "f", "size": size, "side": side} for size, side in keys]
    nanoseconds = {(1, "flawed"): 10.0, (1, "mended"): 5.0, (3, "mended"): 11.0}
    times = [
        side | {"time_ns": nanoseconds.get(key, 10.0), "spread": 0.0, "launches": 1}
        for key, side in zip(keys, sides, strict=True)
    ]
    launches = [side | {"report": "r.ncu-rep.xz", "launch": i} for i, side in enumerate(sides)]
    found = outcomes([family], times, launches)
    assert [(row["pair"], row["size"], row["kind"]) for row in found] == [
        ("f", "1", "toy"),
        ("f", "3", "not_mended"),
    ]
    assert [found[0][side]["launch"] for side in ("flawed", "mended")] == [0, 1]


def test_studies_keep_every_fix_that_was_verified_and_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    variants = importlib.import_module("record_variants")
    fixes = [{"from": "flawed", "to": name, "causes": ["barriers"], "transformation": name} for name in "abc"]
    study = {"family": "s", "program": "p", "sizes": [1], "domain": "d", "about": "", "flaw": "", "file": "f"}
    study["rows"] = fixes
    timed = {"time_ns": 10.0, "spread": 0.0, "repetitions": 21, "error": 0.0}
    times = [
        {"family": "s", "side": side, "agrees": side != "b"} | timed for side in ("flawed", "a", "b", "c")
    ]
    sides = [json.dumps({"family": "s", "side": side}) for side in ("flawed", "a")]
    # A library's call may be two kernels: the next side's launch is the third, not the second.
    printed = ["==PROF== Profiling x", sides[0], "==PROF== Profiling y", "==PROF== Profiling z", sides[1]]
    launches = variants.profiled("\n".join(printed), "r")
    assert [(one["launch"], one["launches"]) for one in launches] == [(0, 1), (1, 2)]
    (found,) = variants.outcomes([study], times, launches)
    assert found["kernel"]["launch"] == 0 and [fix["side"] for fix in found["fixes"]] == ["a"]
    # A kernel without its flawed side is no study; what is profiled together is of one program.
    assert not variants.outcomes([study], times, launches[1:])
    order = variants.bunches([study | {"program": name} for name in ("q", "p", "q")])
    assert [[one["program"] for one in bunch] for bunch in order] == [["p"], ["q", "q"]]


TAKEN_LONGER = {
    (("blind10", "h200"), "farthest_points_tree_each_pick", "flawed"): 1.35,
    (("triton", "h100"), "torch_bilinear_twice_as_large", "flawed"): 1.35,
    (("blind15", "h200"), "jet_distances_an_event_a_block", "longest_first"): 1.35,
    (("blind15", "h100"), "jet_distances_an_event_a_block", "longest_first"): 1.35,
}
"""Sides whose profiled launch took that much longer than was timed (docs/corpus.md): 256 blocks of barriers, as they
landed on the SMs; a torch kernel that took 419 µs under ncu where 317 had been timed; and blocks in an order that
leaves the short ones for the end, 1.32 and 1.33 times as long with caches flushed.
"""


@pytest.mark.campaign
@pytest.mark.parametrize("folder", STUDIES, ids=lambda path: "_".join(path.parts[-2:]))
def test_studies_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side's launch of its report took about as long as the side was timed: none stands for another."""
    content = json.loads((folder / "studies.json").read_text(encoding="utf-8"))
    assert content["format"] == "gemmprof.studies/1" and folder.name.upper() in content["device"]
    sources = "".join(
        path.read_text("utf-8") for path in (ROOT / "tests" / "cuda" / folder.parent.name).glob("*.*")
    )
    monkeypatch.syspath_prepend(ROOT / "tools")
    packed = importlib.import_module("score_studies").reports(folder)
    reports = {path.name: read_report(path) for path in sorted(packed.glob("*.ncu-rep*"))}
    compared = 0
    for study in content["studies"]:
        assert bool(study["flaw"]) == bool(study["fixes"]) and f'"{study["study"]}"' in sources, study
        # Of a side that is many launches the report holds one.
        many = any("launch_overhead" in fix["causes"] for fix in study["fixes"])
        for side in (study["kernel"], *study["fixes"]):
            assert set(side.get("causes", ())) <= CAUSES | {"idle_threads", "constant_cache"}, side
            compared += 1
            profile = reports[side["report"]][side["launch"]]
            profiled = float(profile.metrics["gpu__time_duration.sum"])
            # Of a few microseconds a launch alone takes less than one that is timed from outside.
            launch = content.get("empty_launch_ns", 0.0)
            least = 0.0 if many else 0.7 * (side["time_ns"] - launch)
            most = TAKEN_LONGER.get((folder.parts[-2:], study["study"], side["side"]), 1.3)
            assert least < profiled < most * side["time_ns"], (
                study["study"],
                side,
                profiled,
            )
    assert compared > 10


def test_studies_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three MiB a set in the mean, both cards together: the sets grow in number, a recording does not grow."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    sets = importlib.import_module("record_variants").SETS
    files = [path for name in sets for path in (ROOT / "tests" / "data" / name).rglob("*.*")]
    assert len(files) > 10 and sum(path.stat().st_size for path in files) < len(sets) * 3 << 20


@pytest.mark.gpu
@pytest.mark.long(seconds=40)
def test_recording_one_pair(tmp_path: Path) -> None:
    """``make record-pairs`` from sources to a readable outcome."""
    command = ["make", "record-pairs", f"OUT={tmp_path}", f"PYTHON={sys.executable}"]
    command.append("ARGS=--only transpose_direct=2048 --without-frameworks")
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"MAKEFLAGS": ""}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (pair,) = json.loads((tmp_path / "pairs" / "outcomes.json").read_text(encoding="utf-8"))["pairs"]
    assert pair["pair"] == "transpose_direct" and saved(pair) > 0.2
    assert len(read_report(tmp_path / "pairs" / pair["flawed"]["report"])) == 2


def test_what_a_chip_does_in_practice_follows_from_its_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    entry = importlib.import_module("measure_ceilings").entry
    h100, h200 = (
        json.loads((DATA.parent / "ceilings" / f"{chip}.json").read_text("utf-8"))
        for chip in ("h100", "h200")
    )
    for content in (h100, h200):
        practice, own = practice_of((9, 0), content["device"])
        assert own
        for name, value in entry(content, h200).items():
            assert getattr(practice, name) == pytest.approx(value, rel=0.03), name
    # A word of L2 takes a floating-point sum every third cycle; a sector anywhere costs four times one in a row.
    rates = {(one["ceiling"], one["size"]): one["amount"] / one["time_ns"] for one in h200["ceilings"]}
    assert 0.5 < rates["hot_atomics_float", 1] < 0.6 < 1.3 < rates["hot_atomics_int", 1]
    assert 3 < rates["dram_read", 1024] / rates["random_sectors", 2048] < 4


def test_each_statement_that_was_tried_has_its_program_and_times() -> None:
    for file in sorted((ROOT / "tests" / "cuda" / "tried").glob("*/statements.json")):
        tried = json.loads(file.read_text("utf-8"))["statements"]
        programs = [path.stem for path in sorted(file.parent.glob("[0-9]*"))]
        named = [f"{at:02}_{one['study'].removeprefix('triton_')}" for at, one in enumerate(tried)]
        assert programs == named, file
        for one in tried:
            assert {"as_it_is", *one["beyond"]} < set(one["us"]), one["study"]
            assert one["low"] <= one["told"] <= one["high"], one["study"]


def test_each_step_of_a_climb_has_its_forms_and_times() -> None:
    climbs = ROOT / "tests" / "cuda" / "climbs"
    files = sorted(climbs.glob("*.json"))
    made = [climb for file in files for climb in json.loads(file.read_text("utf-8"))["climbs"]]
    programs = {file.stem: file.read_text("utf-8") for file in climbs.glob("*.[cp]*")}
    assert sorted(climb["program"] for climb in made) == sorted(programs)
    for climb in made:
        assert all(f'"{name}"' in programs[climb["program"]] for name in climb["us"]), climb["program"]
        assert {"as_it_is", "expert"} <= set(climb["us"]), climb["program"]
        for step in [*climb["steps"], *climb.get("told_of_expert", ())]:
            assert {step["of"], *step.get("forms", ())} <= set(climb["us"]), climb["program"]
            assert bool(step.get("forms")) != ("cannot" in step), climb["program"]
            assert step["low"] <= step["told"] <= step["high"], climb["program"]
