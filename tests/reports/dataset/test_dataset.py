"""A data set of many reports: complete, incremental, and answering as the reports themselves would."""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import forked
import in_process
import pytest
from bucket import DENIED, buckets
from kept import own_cache
from recorded_data import DATA, ROOT
from scale import inputs

from gemmprof import metrics as m
from gemmprof.analysis.inputs.conditions import parse_condition
from gemmprof.analysis.inputs.named_figures import figures, findings
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading.report import read_report
from gemmprof.base import buckets as buckets_module
from gemmprof.base import foreign_files
from gemmprof.base.errors import DeviceError, ReportError, UsageError
from gemmprof.base.spread import elsewhere
from gemmprof.reports.dataset import manifest
from gemmprof.reports.dataset.manifest import DatasetError, load_contents
from gemmprof.reports.dataset.query import search
from gemmprof.reports.tables.export import export_tables

NAMES = ("names_nvtx", "partial_basic", "partial_two_metrics", "launches_same_kernel", "modes_range")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for number, name in enumerate(NAMES):
        deep = folder / f"week{number}" / "night"
        deep.mkdir(parents=True)
        (deep / f"{name}.ncu-rep").write_bytes(lzma.decompress((DATA / f"{name}.ncu-rep.xz").read_bytes()))
    return folder


# What is tested of most data sets is which reports they hold, which nobody need explain.
update = partial(manifest.update, explained=False)


def reports(tree: Path) -> list[Path]:
    return sorted(tree.rglob("*.ncu-rep"))


@pytest.fixture(scope="module")
def dataset(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "set"
    manifest.update(folder, reports(tree))
    return folder


class Apart:
    """A worker whose disk nobody else sees."""

    def do(self, job, inputs, common):
        for reports, part, generation in inputs:
            answer = job(*common, reports, part, generation)
            (part.parent.parent / "manifests" / f"{part.stem}.json").unlink()
            yield lambda answer=answer: answer


class Unmounted:
    """A worker where the reports' disk is missing."""

    def __init__(self, disk: Path) -> None:
        self.disk = disk

    def do(self, job, inputs, common):
        for arguments in inputs:
            self.disk.rename(self.disk.with_name("elsewhere"))
            answer = job(*common, *arguments)
            self.disk.with_name("elsewhere").rename(self.disk)
            yield lambda answer=answer: answer


def test_what_is_written_where_nobody_else_sees_it_is_an_error(tree: Path, tmp_path: Path) -> None:
    with elsewhere(Apart().do), pytest.raises(DeviceError, match=r"does not see .*set, which is here"):
        update(tmp_path / "set", reports(tree))
    assert not load_contents(tmp_path / "set").reports


def test_what_a_worker_does_not_see_is_no_fault_of_the_report(tree: Path, tmp_path: Path) -> None:
    disk, target = tmp_path / "disk", tmp_path / "set"
    shutil.copytree(tree, disk)
    with (
        elsewhere(Unmounted(disk).do),
        pytest.raises(DeviceError, match=r"does not see .*ncu-rep, which is here"),
    ):
        update(target, reports(disk))
    update(target, reports(disk))
    assert not any(entry.error for entry in load_contents(target).reports.values())


def test_what_the_disk_did_not_give_is_asked_for_again(tree: Path, tmp_path: Path) -> None:
    """A report whose name led nowhere for a moment, with the size and time that it had before."""
    report = tmp_path / "away.ncu-rep"
    report.symlink_to(tmp_path / "disk" / "one.ncu-rep")
    target = tmp_path / "set"
    assert [text for _, text in update(target, [report]).errors] == [
        f"there is no file {report.resolve()}\n  fix: check the name; the shell expands ~ only unquoted"
    ]
    (tmp_path / "disk").mkdir()
    shutil.copy(reports(tree)[0], tmp_path / "disk" / "one.ncu-rep")
    assert update(target, [report]).errors == ()


@pytest.mark.parametrize(
    "condition",
    [
        "time > 5us",
        "registers >= 16 and occupancy < 90%",
        "low_occupancy > 1% or not (time < 1ms)",
        "l2_hit_rate < 60",
    ],
)
def test_answers_are_those_of_the_reports(tree: Path, dataset: Path, condition: str) -> None:
    parsed = parse_condition(condition)
    expected = set()
    for path in reports(tree):
        for profile in read_report(path, source=True):
            analysis = analyse(profile)
            values = {**figures(analysis), **findings(analysis.explanation)}
            values |= {"time": values.get("duration"), "occupancy": values.get("achieved_occupancy")}
            if _holds(parsed, values):
                expected.add((str(path), profile.index))
    answer = search(dataset, parsed)
    assert {(found.report, found.launch) for found in answer.found} == expected
    assert answer.matches == len(expected)
    assert answer.launches == sum(len(read_report(path)) for path in reports(tree))


def _holds(condition: object, values: dict[str, float | None]) -> bool | None:
    """What SQL makes of it: unknown stays unknown."""
    from gemmprof.analysis.inputs.conditions import Both, Comparison, Not

    if isinstance(condition, Comparison):
        value = values.get(condition.name)
        operators = {">": float.__gt__, ">=": float.__ge__, "<": float.__lt__}
        return None if value is None else operators[condition.operator](float(value), condition.value)
    if isinstance(condition, Not):
        part = _holds(condition.part, values)
        return None if part is None else not part
    parts = [_holds(part, values) for part in condition.parts]  # type: ignore[attr-defined]
    decisive = not isinstance(condition, Both)
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def test_metrics_by_their_own_name(tree: Path, dataset: Path) -> None:
    answer = search(dataset, parse_condition(f"{m.REGISTERS_PER_THREAD} > 0"))
    for found in answer.found:
        profile = read_report(found.report)[found.launch]
        assert found.values[m.REGISTERS_PER_THREAD] == profile.number(m.REGISTERS_PER_THREAD)
    assert answer.found


def test_an_unknown_name_is_refused_with_close_ones(dataset: Path) -> None:
    with pytest.raises(UsageError, match="registers"):
        search(dataset, parse_condition("registrs > 3"))


def test_only_what_changed_is_read_again(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    shutil.copytree(tree, copy)
    folder = tmp_path / "set"
    first = update(folder, reports(copy), processes=2)
    assert (first.read, first.kept, first.removed) == (5, 0, 0)
    again = update(folder, reports(copy))
    assert (again.read, again.kept, again.removed, again.launches) == (0, 5, 0, first.launches)
    changed, gone = reports(copy)[0], reports(copy)[1]
    shutil.copyfile(reports(copy)[2], changed)
    gone.unlink()
    third = update(folder, reports(copy))
    assert (third.read, third.kept, third.removed) == (1, 3, 1)
    seen = search(folder, parse_condition("kernel ~ '.'"))
    assert seen.matches == seen.launches == third.launches
    assert str(gone.resolve()) not in {found.report for found in seen.found}
    used = {entry.part for entry in load_contents(folder).reports.values()}
    assert {path.name for path in (folder / "parts").iterdir()} == used


def test_damaged_reports_are_listed_and_the_others_kept(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    shutil.copytree(tree, copy)
    damaged = reports(copy)[0]
    damaged.write_bytes(damaged.read_bytes()[:-1000])
    done = run("find", "time > 1ns", str(copy), "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert damaged.name in done.stderr
    assert json.loads(done.stdout)["launches"] > 0


def exporting(reports_below: Path, folder: Path, errors: int) -> subprocess.Popen[bytes]:
    """A command of its own that reads these reports into a data set."""
    command = [
        sys.executable,
        "-m",
        "gemmprof",
        "export",
        str(reports_below),
        "--format",
        "dataset",
        "--no-findings",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*command, "-o", str(folder)], env=environment, stderr=errors)


def test_a_killed_update_goes_on_where_it_was(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    for number in range(12):
        shutil.copytree(tree, copy / str(number))
    folder = tmp_path / "set"
    first = exporting(copy, folder, subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(folder.glob("manifests/[!.]*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = len(load_contents(folder).reports)
    assert before > 0
    done = update(folder, reports(copy))
    # What was being read when the command was killed may have ended after all.
    assert done.kept >= before and done.read + done.kept == 60
    assert not done.errors
    assert not list(folder.rglob(".scratch-*"))


@pytest.mark.campaign
def test_two_writers_at_a_time_lose_nothing(tree: Path, tmp_path: Path) -> None:
    """Of one data set, over reports of which one gets new ones meanwhile; nobody waits for anybody."""
    copy, folder = tmp_path / "tree", tmp_path / "set"
    copies = inputs(2, 3)
    for number in range(copies):
        shutil.copytree(tree, copy / str(number))
    writers = [exporting(copy, folder, subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        errors = writer.communicate(timeout=120)[1]
        assert writer.returncode == 0, errors
    single = tmp_path / "single"
    update(single, reports(copy))
    wanted = parse_condition("kernel ~ '.'")
    assert search(folder, wanted) == search(single, wanted)
    done = update(folder, reports(copy))
    assert (done.read, done.kept) == (0, 5 * copies)
    named = {entry.part for entry in load_contents(folder).reports.values()}
    assert {path.name for path in (folder / "parts").glob("[!.]*")} == named


def test_what_is_gone_stays_gone_while_older_manifests_name_it(tree: Path, tmp_path: Path) -> None:
    folder, every = tmp_path / "set", reports(tree)
    update(folder, every)
    assert update(folder, every[1:]).removed == 1
    assert update(folder, every[1:]).removed == 0, "it was back"
    assert update(folder, every).read == 1
    assert update(folder, every).read == 0
    assert search(folder, parse_condition("kernel ~ '.'")).launches == load_contents(folder).launches


def test_foreign_and_older_folders(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(DatasetError, match="holds other files"):
        update(tmp_path / "mine", reports(tree)[:1])
    folder = tmp_path / "set"
    update(folder, reports(tree)[:1])
    mark = folder / "dataset.json"
    whole = mark.read_text()
    for text, why in (('{"rows": 3}', "damaged"), ('{"format": "gemmprof.dataset/1"}', "another format")):
        mark.write_text(text)
        for ask in (load_contents, lambda folder: update(folder, reports(tree)[:1])):
            with pytest.raises(DatasetError, match=why):
                ask(folder)
    mark.write_text(whole)
    assert update(folder, reports(tree)[:1]).launches
    next((folder / "manifests").glob("*.json")).write_text(
        '{"format": "gemmprof.dataset-part/1", "reports": 3}'
    )
    with pytest.raises(DatasetError, match="damaged"):
        load_contents(folder)


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GEMMPROF_CACHE": str(own_cache(cwd / "cache"))}
    return in_process.run(
        [sys.executable, "-m", "gemmprof", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_command(tree: Path, tmp_path: Path) -> None:
    first = run("find", "time > 1us and kernel ~ 'saxpy'", str(tree), cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "5 reports read" in first.stderr and "saxpy" in first.stdout
    again = run("find", "time > 1us", str(tree), cwd=tmp_path)
    assert "reports read" not in again.stderr
    exported = run("export", str(tree), "--format", "dataset", "-o", "set", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert run("find", "time > 1us", "set", cwd=tmp_path).stdout == again.stdout
    names = run("find", "--names", cwd=tmp_path)
    assert "registers" in names.stdout and "low_occupancy" in names.stdout
    said = names.stdout.split()
    # `local_memory` is a word for a figure and a cause: a condition means the figure, and the list says so, once.
    assert said.count("low_occupancy") == 1 and "local_memory," in said and "local_memory" not in said
    wrong = run("find", "tim > 1us", "set", cwd=tmp_path)
    assert wrong.returncode == 2 and "fix:" in wrong.stderr


def test_reports_in_a_bucket_are_read_as_those_on_disk(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "bucket" / "nightly")
    names = [str(path.relative_to(tree)) for path in reports(tree)]
    environment = {**os.environ, "GEMMPROF_CACHE": str(own_cache(tmp_path / "cache"))}

    def said(*arguments: str) -> tuple[int, str, str]:
        done = forked.run(*arguments, cwd=tmp_path, env=environment)
        return done.returncode, done.stdout, done.stderr

    with buckets(tmp_path) as (variables, asked):
        environment |= variables
        for command in (["find", "time > 1us", "--json"], ["explain", "--all"])[: inputs(1, 2)]:
            place = "" if command[0] == "find" else f"/{names[0]}"
            here, there = (
                said(*command[:-1], f"{folder}{place}", command[-1])
                for folder in ("bucket/nightly", "s3://bucket/nightly")
            )
            assert there[0] == here[0] == 0, there[2]
            plain = here[1].replace(str(tmp_path / "bucket"), "bucket")
            assert there[1].replace("s3://bucket", "bucket") == plain and plain
        until = len(asked)
        again = said("find", "time > 1us", "s3://bucket/nightly")
        assert again[0] == 0 and "reports read" not in again[2]
        assert not [line for line in asked[until:] if line.startswith("GET") and "list-type" not in line]
        code, _, errors = said("explain", "s3://bucket/nightly/none.ncu-rep")
        assert code == 2 and "there is no report s3://bucket/nightly/none.ncu-rep" in errors
        # Where nobody answers, Arrow asks again for six seconds, twice.
        for bucket, endpoint in ((DENIED, variables["AWS_ENDPOINT_URL"]), ("bucket", "http://127.0.0.1:9"))[
            : inputs(1, 2)
        ]:
            environment["AWS_ENDPOINT_URL"] = endpoint
            code, _, errors = said("find", "time > 1us", f"s3://{bucket}/nightly")
            assert code == 2 and f"s3://{bucket}/nightly cannot be read" in errors
            assert "AWS_ENDPOINT_URL" in errors


def test_tables_and_data_sets_are_written_into_a_bucket_as_onto_a_disk(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bucket").mkdir()
    tree = Path(shutil.copytree(tree, tmp_path / "tree"))
    one = reports(tree)[0]
    with buckets(tmp_path) as (variables, asked):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        here, there = (export_tables([one], place) for place in (tmp_path / "tables", "s3://bucket/tables"))
        assert here.launches == there.launches and len(there.files) == 6
        for file in here.files:
            assert (tmp_path / "bucket" / "tables" / file.name).read_bytes() == file.read_bytes()
        again = run("export", str(one), "-o", "s3://bucket/tables", cwd=tmp_path)
        assert again.returncode == 2 and "s3://bucket/tables/kernels.parquet exists already" in again.stderr
        forced = run("export", str(one), "-o", "s3://bucket/tables", "--force", cwd=tmp_path)
        assert forced.returncode == 0 and "Wrote s3://bucket/tables/kernels.parquet" in forced.stderr

        words = ("export", str(tree), "--format", "dataset", "-o")
        said = [run(*words, place, cwd=tmp_path) for place in ("set", "s3://bucket/set")]
        assert said[1].returncode == 0 and "5 reports read" in said[1].stderr, said[1].stderr
        found = [run("find", "time > 1us", place, cwd=tmp_path) for place in ("set", "s3://bucket/set")]
        assert found[0].stdout == found[1].stdout and "saxpy" in found[1].stdout
        until = len(asked)
        assert "reports read" not in run(*words, "s3://bucket/set", cwd=tmp_path).stderr
        assert not [line for line in asked[until:] if line.startswith(("PUT", "POST", "DELETE"))]
        one.unlink()
        assert "1 gone" in run(*words, "s3://bucket/set", cwd=tmp_path).stderr
        assert len(load_contents(Path("s3://bucket/set")).reports) == 4
        other = run(*words, "s3://bucket/tables", cwd=tmp_path)
        assert other.returncode == 2 and "s3://bucket/tables holds other files" in other.stderr

        class Interrupted(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                if self.tell():
                    raise KeyboardInterrupt
                return super().read(100)

        monkeypatch.setattr(
            buckets_module.foreign_files, "open_file", lambda path: Interrupted(path.read_bytes())
        )
        with pytest.raises(KeyboardInterrupt):
            buckets_module.put(here.files[0], "s3://bucket/half.parquet")
        assert not (tmp_path / "bucket" / "half.parquet").exists()
    refused = run("profile", "-o", "s3://bucket/run", "--", "true", cwd=tmp_path)
    assert refused.returncode == 2 and "where no run is made" in refused.stderr
    assert not list(tmp_path.glob("s3*"))


def test_pages_documents_and_pictures_are_written_into_a_bucket_as_onto_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bucket").mkdir()
    report = DATA / "launches_same_kernel.ncu-rep.xz"
    with buckets(tmp_path) as (variables, _):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for command, name in (
            (["report", str(report)], "pages"),
            (["report", str(report), "--single-file"], "one.html"),
            (["diff", str(report), str(report), "--format", "markdown"], "diff.md"),
            (["export", str(report), "--format", "speedscope"], "flames.json"),
            (["occupancy", "--threads", "256", "--regs", "64"], "curves.html"),
        )[: inputs(2, 5)]:
            for place in (name, f"s3://bucket/{name}"):
                done = run(*command, "-o", place, cwd=tmp_path)
                assert done.returncode == 0 and f"Wrote {place}" in done.stderr, done.stderr
            here, there = tmp_path / name, tmp_path / "bucket" / name
            for file in sorted(here.iterdir()) if here.is_dir() else [here]:
                assert (there / file.relative_to(here)).read_bytes() == file.read_bytes()
            again = run(*command, "-o", f"s3://bucket/{name}", cwd=tmp_path)
            assert again.returncode == 2 and f"s3://bucket/{name} exists already" in again.stderr
        forced = run("report", str(report), "-o", "s3://bucket/pages", "--force", "--json", cwd=tmp_path)
        assert json.loads(forced.stdout)["index"] == "s3://bucket/pages/index.html", forced.stderr
    assert not list(tmp_path.glob("s3*"))


def test_who_may_read_some_folders_alone_reads_no_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_files, "_roots", (tmp_path,))
    with pytest.raises(ReportError, match="outside of the folders"):
        read_report("s3://bucket/one.ncu-rep")
