"""Old output or new output, never half of either: whatever stops a command, and whatever disk it writes to."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import in_process
import pytest
from recorded_data import ROOT
from reports_in_bytes import content_of
from scale import inputs as how_many

HELPERS = ROOT / "tests" / "helpers"
SEED = 11
KILLS = how_many(1, 4)
COMMANDS = {"report": ("report",), "export": ("export", "--format", "csv")}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    found = {}
    for name in ("names_nvtx", "names_templates", "partial_basic", "partial_roofline"):
        found[name] = folder / f"{name}.ncu-rep"
        found[name].write_bytes(content_of(name))
    return found


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    return {**os.environ, "TMPDIR": str(scratch)}


def call(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return in_process.run(["gemmprof", *map(str, arguments)], **options)  # type: ignore[arg-type]


def state(folder: Path) -> dict[str, str]:
    """Everything in a folder, by content."""
    if not folder.exists():
        return {}
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_failed_replacement_leaves_the_old_output(
    command: str, inputs: dict[str, Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    out, damaged = tmp_path / "out", tmp_path / "damaged.ncu-rep"
    damaged.write_bytes(content_of("names_nvtx")[:-7])
    assert call(*COMMANDS[command], inputs["names_nvtx"], "-o", out, env=environment).returncode == 0
    before = state(out)
    answer = call(*COMMANDS[command], damaged, "-o", out, "--force", env=environment)
    assert answer.returncode == 2
    assert state(out) == before
    assert call(*COMMANDS[command], inputs["partial_basic"], "-o", out, env=environment).returncode == 2
    assert state(out) == before
    assert (
        call(*COMMANDS[command], inputs["partial_basic"], "-o", out, "--force", env=environment).returncode
        == 0
    )
    assert state(out) != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.ncu-rep", "out", "tmp"]
    assert not any((tmp_path / "tmp").iterdir())


STOPPED = [
    (command, number) for command in COMMANDS for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
]


@pytest.mark.campaign
@pytest.mark.parametrize(("command", "number"), STOPPED)
def test_killed_at_any_moment(
    command: str, number: int, inputs: dict[str, Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    dice = random.Random(SEED)
    out, new = tmp_path / "out", tmp_path / "new"
    before_report, after_report = inputs["names_nvtx"], inputs["names_templates"]
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "gemmprof", *COMMANDS[command], after_report, "-o", new], check=True,
        capture_output=True, env=environment,
    )  # fmt: skip
    takes = time.monotonic() - started
    assert call(*COMMANDS[command], before_report, "-o", out, env=environment).returncode == 0
    old_state, new_state = state(out), state(new)
    assert old_state != new_state
    endings: set[int] = set()
    seen: list[int] = []
    for _ in range(2 * KILLS):
        if len(endings - {0}) and len(seen) >= KILLS:
            break
        process = subprocess.Popen(
            [sys.executable, "-m", "gemmprof", *COMMANDS[command], after_report, "-o", out, "--force"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        time.sleep(dice.uniform(0.5, 1.05) * takes)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert state(out) in (old_state, new_state)
        if number != signal.SIGKILL and process.returncode not in (0, -number):
            assert process.returncode == 128 + number, errors
            assert "Traceback" not in errors
            assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "out", "tmp"]
        endings.add(process.returncode)
        seen.append(process.returncode)
        if not process.returncode:
            takes *= 0.7  # this machine has become faster: it was too late
        if state(out) == new_state:
            assert (
                call(*COMMANDS[command], before_report, "-o", out, "--force", env=environment).returncode == 0
            )
    # The next run cleans up.
    assert call(*COMMANDS[command], before_report, "-o", out, "--force", env=environment).returncode == 0
    assert state(out) == old_state
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "out", "tmp"]
    assert not any((tmp_path / "tmp").iterdir())
    assert endings - {0}


@pytest.mark.campaign
def test_two_reports_into_one_folder_do_not_mix(
    inputs: dict[str, Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    wanted = []
    for name in ("names_nvtx", "names_templates"):
        assert call("report", inputs[name], "-o", tmp_path / name, env=environment).returncode == 0
        wanted.append(state(tmp_path / name))
    out = tmp_path / "out"
    for _ in range(how_many(1, 2)):
        both = [
            subprocess.Popen(
                [sys.executable, "-m", "gemmprof", "report", inputs[name], "-o", out, "--force"],
                stderr=subprocess.DEVNULL, env=environment,
            )
            for name in ("names_nvtx", "names_templates")
        ]  # fmt: skip
        assert [process.wait(60) for process in both] == [0, 0]
        assert state(out) in wanted


USERS_PAGES = {
    "own": "<!doctype html><title>mine</title>",
    "quoting": '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<title>How pages say &lt;meta&gt;</title><meta name="generator" content="gemmprof">',
}


@pytest.mark.parametrize("kind", [*USERS_PAGES, "link", "folder"])
def test_a_users_own_page_is_not_replaced(kind: str, inputs: dict[str, Path], tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside.html"
    assert call("report", inputs["partial_basic"], "-o", out).returncode == 0
    outside.write_bytes((out / "index.html").read_bytes())
    before = outside.read_bytes()
    (out / "index.html").unlink()
    if kind == "link":
        (out / "index.html").symlink_to(outside)
    elif kind == "folder":
        (out / "index.html").mkdir()
    else:
        (out / "index.html").write_text(USERS_PAGES[kind])
    answer = call("report", inputs["partial_basic"], "-o", out, "--force")
    assert answer.returncode == 2
    assert "index.html was not written by gemmprof" in answer.stderr
    assert outside.read_bytes() == before
    if kind in USERS_PAGES:
        assert (out / "index.html").read_text() == USERS_PAGES[kind]


def test_other_files_in_the_folder_stay(inputs: dict[str, Path], tmp_path: Path) -> None:
    for with_folder in (False, True):
        out = tmp_path / f"out{with_folder}"
        assert call("report", inputs["names_templates"], "-o", out).returncode == 0
        (out / "notes.txt").write_text("mine")
        (out / "mine.html").write_text(USERS_PAGES["quoting"])
        (out / "link").symlink_to("notes.txt")
        if with_folder:
            (out / "data").mkdir()
            (out / "data" / "x").write_text("mine, too")
        pages = {path.name for path in out.glob("*.html")}
        assert call("report", inputs["partial_basic"], "-o", out, "--force").returncode == 0
        after = {path.name for path in out.glob("*.html")}
        assert (out / "notes.txt").read_text() == (out / "link").read_text() == "mine"
        assert (out / "mine.html").read_text() == USERS_PAGES["quoting"]
        assert not with_folder or (out / "data" / "x").read_text() == "mine, too"
        assert "index.html" in after and after - pages and pages - after  # the pages of old kernels went


def test_the_folder_that_one_stands_in(inputs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    inode = out.stat().st_ino
    for _ in range(2):
        assert call("report", inputs["partial_basic"], "-o", ".", "--force", cwd=out).returncode == 0
    assert (out / "index.html").is_file() and out.stat().st_ino == inode
    assert not [path for path in (*out.iterdir(), *tmp_path.iterdir()) if path.name.startswith(".")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with 300 KB, where mounting is permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "gemmprof-test", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a disk of its own needs root here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.parametrize("command", [*COMMANDS, "roofline"])
def test_a_full_disk(
    command: str, inputs: dict[str, Path], small_disk: Path, environment: dict[str, str]
) -> None:
    out = small_disk / ("picture.png" if command == "roofline" else "out")
    filler = small_disk / "filler"
    filler.write_bytes(bytes(250_000))
    arguments = COMMANDS.get(command, (command,))
    report = inputs["partial_roofline" if command == "roofline" else "names_templates"]
    answer = call(*arguments, report, "-o", out, env=environment)
    assert answer.returncode == 2, answer.stderr
    assert "Traceback" not in answer.stderr
    assert "No space left on device" in answer.stderr and str(out) in answer.stderr
    assert "fix: free some space" in answer.stderr
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_full_disk_for_temporary_files(inputs: dict[str, Path], small_disk: Path, tmp_path: Path) -> None:
    import lzma

    packed = tmp_path / "packed.ncu-rep.xz"
    packed.write_bytes(lzma.compress(content_of("names_templates")))
    answer = call("report", packed, "-o", tmp_path / "out", env={**os.environ, "TMPDIR": str(small_disk)})
    assert answer.returncode == 2
    assert "TMPDIR" in answer.stderr and "Traceback" not in answer.stderr
    assert not any(small_disk.iterdir()) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_only_disk(command: str, inputs: dict[str, Path], small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    answer = call(*COMMANDS[command], inputs["partial_basic"], "-o", small_disk / "out")
    assert answer.returncode == 2
    assert "Read-only file system" in answer.stderr and str(small_disk / "out") in answer.stderr
    assert "fix: this disk is read-only" in answer.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_is_removed(command: str, inputs: dict[str, Path], tmp_path: Path) -> None:
    """The folder beneath vanishes while the command works."""
    disk = tmp_path / "disk"
    disk.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "gemmprof", *COMMANDS[command], inputs["names_templates"], "-o", disk / "out"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(disk.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.005)
    disk.rename(tmp_path / "gone")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert "Traceback" not in errors and str(disk / "out") in errors


@pytest.fixture(scope="module")
def slow_writes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes a disk slow, where there is a compiler."""
    library = tmp_path_factory.mktemp("slow") / "slow_disk.so"
    source = HELPERS / "slow_disk.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a C compiler")
    return library


def look(folder: Path) -> list[dict[str, str]]:
    """The state of the folder that has this name, if it still has it afterwards."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = state(Path(f"/proc/self/fd/{handle}"))
        return [found] if os.path.samestat(os.fstat(handle), folder.stat()) else []
    except FileNotFoundError:
        return []  # an old folder that is being removed
    finally:
        os.close(handle)


@pytest.mark.campaign
@pytest.mark.parametrize("command", COMMANDS)
def test_a_slow_disk(
    command: str, inputs: dict[str, Path], slow_writes: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Who looks while the disk writes sees the old output or the new; two writers wait for each other."""
    out, wanted = tmp_path / "disk" / "out", tmp_path / "wanted"
    out.parent.mkdir()
    assert call(*COMMANDS[command], inputs["names_templates"], "-o", wanted, env=environment).returncode == 0
    started = time.monotonic()
    assert call(*COMMANDS[command], inputs["names_nvtx"], "-o", out, env=environment).returncode == 0
    quick = time.monotonic() - started
    old, new = state(out), state(wanted)
    slow = {**environment, "LD_PRELOAD": str(slow_writes), "SLOW_DISK": str(out.parent)}
    started = time.monotonic()
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "gemmprof", *COMMANDS[command], inputs["names_templates"], "-o", out, "--force"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=slow,
        )
        for _ in range(2)
    ]  # fmt: skip
    seen = []
    while any(writer.poll() is None for writer in writers):
        seen += look(out)
        time.sleep(0.01)
    takes = time.monotonic() - started
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], errors
    assert takes > quick, "the disk was not slow"
    assert seen and all(found in (old, new) for found in seen)
    assert old in seen and state(out) == new
    assert [path.name for path in out.parent.iterdir()] == ["out"]
