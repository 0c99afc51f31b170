"""Every file that somebody else may have put there: pipes, devices, links, bombs and tables of another kind.

Each attack is tried at every door with the real command. What is asked of each: an answer within ten seconds and one
GiB, exit code 0 or 2, and no traceback.
"""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import in_process
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from bucket import buckets
from measured import gemmprof
from recorded_data import DATA
from scale import few, inputs

from gemmprof.base import system
from gemmprof.base.foreign_files import RefusedFileError, open_file, open_lock, read_bytes, read_packed
from gemmprof.base.system import ask_tool

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
REPORT = DATA / "partial_basic.ncu-rep.xz"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set, a history, a compacted history, and a baseline, as gemmprof writes them."""
    folder = tmp_path_factory.mktemp("good")
    shutil.copy(REPORT, folder / "report.ncu-rep.xz")
    for line in (
        "export report.ncu-rep.xz --format dataset -o set",
        "history record report.ncu-rep.xz --store single",
        "baseline save main report.ncu-rep.xz",
        *("history record report.ncu-rep.xz --store compact",) * 8,
    ):
        in_process.run(["gemmprof", *line.split()], cwd=folder, check=True)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "w")
    return tmp_path / "w"


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


DOORS: dict[str, tuple[str, str]] = {
    "data set's part": ("set/parts/*.parquet", "find set"),
    "data set's metrics": ("set/metrics/*.parquet", "find set|launch__thread_count > 1"),
    "data set's list": ("set/manifests/*.json", "find set"),
    "history's record": ("single/records/*.parquet", "history show .* --store single"),
    "compacted history": ("compact/records/compact-*.parquet", "history show .* --store compact"),
    "history's marker": ("compact/history.json", "history show --store compact"),
    "baseline": (".gemmprof/baselines/main.json.zst", "diff report.ncu-rep.xz --against main"),
    "report": ("report.ncu-rep.xz", "show report.ncu-rep.xz"),
    "waivers": (
        "report.ncu-rep.xz",
        "diff report.ncu-rep.xz --against main --fail-slower 5 --waivers waivers.toml",
    ),
    "build log": ("report.ncu-rep.xz", "occupancy --ptxas waivers.toml"),
}


def command_of(door: str, folder: Path) -> tuple[Path, list[str]]:
    """The file of a door, and the command that reads it."""
    pattern, line = DOORS[door]
    if "waivers.toml" in line:
        (folder / "waivers.toml").write_text("x")
        return folder / "waivers.toml", line.split()
    words, _, condition = line.partition("|")
    if words.startswith("find"):
        return one(folder, pattern), ["find", condition or "time > 1ns", "set"]
    return one(folder, pattern), words.split()


def as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def as_device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def as_link(file: Path) -> None:
    """To a sound file of the same kind elsewhere."""
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def as_sparse(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.truncate(5 << 30)


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def as_nothing(file: Path) -> None:
    file.write_bytes(b"")


def as_noise(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 4096)


def as_cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def as_zstd_bomb(file: Path) -> None:
    file.write_bytes(bombs()[0])


def as_gzip_bomb(file: Path) -> None:
    file.write_bytes(bombs()[1])


def as_xz_bomb(file: Path) -> None:
    file.write_bytes(bombs()[2])


_bombs: list[bytes] = []


def bombs() -> list[bytes]:
    """Two GiB of spaces (which is JSON) in a few kilobytes to megabytes."""
    if not _bombs:
        block = b" " * (64 * MIB)
        packer = zstandard.ZstdCompressor(level=1).compressobj()
        _bombs.append(b"".join(packer.compress(block) for _ in range(32)) + packer.flush())
        _bombs.append(gzip.compress(block, 9) * 32)
        _bombs.append(lzma.compress(block, preset=0) * 32)
    return _bombs


def as_other_table(file: Path) -> None:
    """The right columns of the wrong types."""
    if file.suffix == ".parquet":
        there = pq.read_table(file)
        pq.write_table(pa.table({n: pa.array([[1]] * len(there)) for n in there.column_names}), file)
    else:
        file.write_text('{"format": [1, {}], "reports": 5, "kernels": {}}')


def as_table_of_nothing(file: Path) -> None:
    if file.suffix == ".parquet":
        there = pq.read_schema(file)
        pq.write_table(pa.table({f.name: pa.nulls(3, f.type) for f in there}), file)
    else:
        file.write_text("[]")


def as_table_of_billions(file: Path) -> None:
    """300 million rows of one value in some kilobytes; texts of a megabyte, thousands of times."""
    if file.suffix != ".parquet":
        file.write_text("[" * 5_000_000)
        return
    rows = 20_000
    columns = {}
    for part in pq.read_schema(file):
        if pa.types.is_string(part.type):
            columns[part.name] = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["k" * MIB])
        else:
            columns[part.name] = pa.array([1] * rows).cast(part.type)
    pq.write_table(pa.table(columns), file, store_schema=False)


def as_narrow_bomb(file: Path) -> None:
    """Ten million equal rows in some kilobytes; beside the campaign as many as are just too many."""
    there = pq.read_table(file)
    rows = inputs(2_000_000, 10_000_000)
    table = pa.table({name: pa.repeat(there[name][0], rows) for name in there.column_names})
    pq.write_table(table, file, use_dictionary=True, compression="zstd", row_group_size=rows)


ATTACKS: dict[str, Callable[[Path], None]] = {
    "pipe": as_pipe, "device": as_device, "folder": as_folder, "sparse": as_sparse, "empty": as_nothing,
    "noise": as_noise, "cut short": as_cut, "zstd bomb": as_zstd_bomb, "gzip bomb": as_gzip_bomb,
    "xz bomb": as_xz_bomb, "other types": as_other_table, "nothing but nulls": as_table_of_nothing,
    "large texts": as_table_of_billions,
}  # fmt: skip
MINIATURE = ("pipe", "zstd bomb", "other types", "large texts")


def cases() -> Iterator[object]:
    """All of them; beside the campaign one of four at each door in turn."""
    for number, door in enumerate(DOORS):
        for attack in ATTACKS:
            marks = [] if attack == MINIATURE[number % len(MINIATURE)] else [pytest.mark.campaign]
            yield pytest.param(door, attack, id=f"{attack} as {door}", marks=marks)


@pytest.mark.parametrize(("door", "attack"), list(cases()))
def test_no_file_hangs_fills_the_memory_or_passes_for_an_answer(folder: Path, door: str, attack: str) -> None:
    file, command = command_of(door, folder)
    ATTACKS[attack](file)
    gemmprof(*command, cwd=folder)


DENSE = {"times": b'{"nanoseconds":[9]}', "nanoseconds": b"2.5"}


@pytest.mark.parametrize("field", few(DENSE, ["nanoseconds"]))
def test_a_baseline_that_decodes_to_gigabytes_is_refused(folder: Path, field: str) -> None:
    """Whole and of its format, but of as many values as 256 MiB hold, in some kilobytes."""
    file, command = command_of("baseline", folder)
    text = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes())
    head, mark, rest = text.partition(f'"{field}":['.encode())
    item = DENSE[field] + b","
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    block = item * (MIB // len(item))
    file.write_bytes(
        packer.compress(head + mark)
        + b"".join(packer.compress(block) for _ in range(inputs(64, 250)))
        + packer.compress(rest)
        + packer.flush()
    )
    told = gemmprof(*command, cwd=folder)
    assert told.returncode == 2 and "values; 4,194,304 are read" in told.stderr


@pytest.mark.campaign
@pytest.mark.parametrize("door", ["compacted history", "data set's part"])
def test_a_table_of_ten_million_equal_rows_is_refused(folder: Path, door: str) -> None:
    file, command = command_of(door, folder)
    as_narrow_bomb(file)
    assert file.stat().st_size < 10 * MIB
    answer = gemmprof(*command, cwd=folder)
    assert answer.returncode == 2 and ("unpacks to more than" in answer.stderr or "rows" in answer.stderr)


@pytest.mark.parametrize("door", ["data set's part", "data set's metrics", "history's record"])
def test_no_link_is_followed_out_of_a_store(folder: Path, door: str) -> None:
    file, command = command_of(door, folder)
    as_link(file)
    told = gemmprof(*command, cwd=folder)
    assert told.returncode == 2 and "is a link" in told.stderr


ROOMS = ["single/records", "compact/records", "set/manifests", "set/parts", "set/metrics"]


@pytest.mark.parametrize("room", few(ROOMS, ["compact/records", "set/parts"]))
def test_a_folder_of_a_store_that_is_a_link_is_neither_read_nor_cleared(folder: Path, room: str) -> None:
    """What is written to a store clears away what nothing there names any more: not somebody's files elsewhere."""
    (folder / room).rename(folder / "mine")
    (folder / room).symlink_to(folder / "mine")
    (folder / "mine" / "thesis.tex").write_text("mine")
    (folder / "mine" / "orphan.parquet").write_text("mine")
    before = sorted((folder / "mine").iterdir())
    for path in before:
        os.utime(path, (0, 0))
    (folder / "report.ncu-rep.xz").touch()
    store = room.partition("/")[0]
    lines = (
        ["export report.ncu-rep.xz --format dataset -o set", "find time>1ns set"]
        if store == "set"
        else [f"history record report.ncu-rep.xz --store {store}", f"history show .* --store {store}"]
    )
    for line in lines:
        told = gemmprof(*line.split(), cwd=folder)
        assert told.returncode == 2 and "is a link" in told.stderr
    assert sorted((folder / "mine").iterdir()) == before


MUTANTS = """
import random, sys
from pathlib import Path
from gemmprof.analysis.inputs.conditions import parse_condition
from gemmprof.base.errors import GemmprofError
from gemmprof.reports.dataset.query import search
from gemmprof.reports.history.store import HistoryStore

dice = random.Random(7)
files = [next(Path().glob(p)) for p in sys.argv[2:]]
good = {file: file.read_bytes() for file in files}
numbers = [b"\\xff" * 4, b"\\0" * 4, b"\\xff\\xff\\xff\\x7f", b"\\0\\0\\0\\x80"]
refused = 0
for _ in range(int(sys.argv[1])):
    file = dice.choice(files)
    data = bytearray(good[file])
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        if len(data) < 2:  # nothing is left to be changed
            break
        # Half of the changes hit the end, where these formats describe themselves.
        at = dice.randrange(len(data)) if dice.random() < 0.5 else -dice.randrange(1, min(len(data), 3000))
        at %= len(data)
        kind = dice.randrange(5)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at : at + 4] = dice.choice(numbers)
        elif kind == 2:
            data[at : at + 8] = (1 << dice.randrange(62)).to_bytes(8, "little")
        elif kind == 3:
            del data[at : at + dice.randrange(1, 64)]
        else:
            data[at:at] = dice.randbytes(dice.randrange(1, 64))
    file.write_bytes(data)
    try:
        if file.parts[0] == "compact":
            store = HistoryStore.open("compact")
            store.points(store.series())
        else:
            search(Path("set"), parse_condition("time > 1ns and launch__thread_count > 1"))
    except GemmprofError:
        refused += 1
    file.write_bytes(good[file])
print(refused)
"""


@pytest.mark.parametrize("mutants", [40, pytest.param(3000, marks=pytest.mark.campaign)])
def test_changed_tables_are_read_or_refused(folder: Path, mutants: int) -> None:
    """Nothing else: no other exception, no crash of a library."""
    files = ["compact/records/*.parquet", "set/parts/*.parquet", "set/metrics/*.parquet", "set/manifests/*.json",
             "set/dataset.json"]  # fmt: skip
    told = subprocess.run(
        [sys.executable, "-c", MUTANTS, str(mutants), *files], capture_output=True, text=True, cwd=folder,
        timeout=500, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr[-2000:]
    assert int(told.stdout) > mutants / 2


@pytest.mark.parametrize("flaw", ["other columns", "encrypted", "codec 14"])
def test_what_pyarrow_ends_the_process_at_is_refused(folder: Path, flaw: str) -> None:
    file = one(folder, "set/metrics/*.parquet")
    data = file.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    heads = [
        found.start() for found in re.finditer(rb"\x1c\x15[\x02-\x0c]", footer)
    ]  # of the columns' metadata
    if flaw == "other columns":  # a number for a text
        footer = footer[: heads[0] + 2] + b"\x04" + footer[heads[0] + 3 :]
    elif flaw == "codec 14":  # the field after the path in the schema, which is the column's name
        at = footer.index(b"\x06metric\x15", heads[0]) + 8
        footer = footer[:at] + b"\x1c" + footer[at + 1 :]
    else:  # a chunk ends before the next one's offset; ENCRYPTION_WITH_COLUMN_KEY of a path "a"
        end = footer.rfind(b"\x26", 0, heads[1]) - 1
        footer = footer[:end] + b"\x5c\x2c\x19\x18\x01a\x00\x00" + footer[end:]
    file.write_bytes(data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    told = gemmprof("find", "launch__thread_count > 1", "set", cwd=folder)
    assert told.returncode == 2 and flaw in told.stderr


def test_a_record_names_no_files_to_delete(folder: Path) -> None:
    """A compacted history says which records it replaces, and those are removed."""
    victim = folder / "victim.txt"
    victim.write_text("mine")
    file = one(folder, "compact/records/compact-*.parquet")
    table = pq.read_table(file)
    names = json.dumps(["../../victim.txt", str(victim)]).encode()
    pq.write_table(table.replace_schema_metadata({b"gemmprof.replaces": names}), file)
    gemmprof("history", "show", "--store", "compact", cwd=folder)
    gemmprof("history", "record", "report.ncu-rep.xz", "--store", "compact", cwd=folder)
    assert victim.read_text() == "mine"


def test_locks_and_caches_follow_no_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(RefusedFileError, match="is a link"), open_lock(tmp_path / "lock"):
        pass
    with pytest.raises(RefusedFileError, match="is a link"):
        read_bytes(tmp_path / "lock", private=True)
    (tmp_path / "other").write_text("kept")
    with open_lock(tmp_path / "other"):
        pass
    assert victim.read_text() == "mine" and (tmp_path / "other").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_cache_entry_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "entry").write_text("{}")
    os.chown(tmp_path / "entry", 65534, 65534)
    assert read_bytes(tmp_path / "entry") == b"{}"
    with pytest.raises(RefusedFileError, match="somebody else"):
        read_bytes(tmp_path / "entry", private=True)


def test_a_file_that_grows_is_read_no_further(tmp_path: Path) -> None:
    """/proc says that its files are empty, and so may a file be at first."""
    assert b"Name:" in read_bytes("/proc/self/status")
    with pytest.raises(RefusedFileError, match="no more than"):
        read_bytes("/proc/self/status", largest=5)
    with pytest.raises(OSError, match="No such file"), open_file(tmp_path / "none"):
        pass
    (tmp_path / "bomb").write_bytes(bombs()[0])
    with pytest.raises(RefusedFileError, match="unpacks to more than 1 MiB"):
        read_packed(tmp_path / "bomb", MIB * 3 // 2)


@pytest.mark.campaign
def test_cache_entries_that_are_none_are_made_again(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    report = DATA / "flaws_atomics.ncu-rep.xz"
    first = gemmprof("show", report, cwd=tmp_path, GEMMPROF_CACHE=str(cache))
    entries = list((cache / "disassembly").iterdir())
    assert first.returncode == 0 and entries
    assert len(entries) >= 3
    for entry, attack in zip(entries, itertools.cycle([as_pipe, as_device, as_gzip_bomb])):
        attack(entry)
    again = gemmprof("show", report, cwd=tmp_path, GEMMPROF_CACHE=str(cache))
    assert again.stdout == first.stdout


def test_a_mangled_name_of_terabytes_stays_mangled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its parts names the last one twice: 300 letters that c++filt spells out for ever."""
    monkeypatch.setattr(system, "TOOL_MEMORY", 256 * MIB)  # which it fills sooner
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    name = "_Z1f1pIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits)
    (tmp_path / "log").write_text(
        f"ptxas info    : Compiling entry function '{name}' for 'sm_90'\n"
        "ptxas info    : Used 10 registers, used 0 barriers, 32 bytes smem\n"
    )
    told = in_process.run(["gemmprof", "occupancy", "--ptxas", "log", "--threads", "128"], cwd=tmp_path)
    assert told.returncode == 0 and name[:20] in told.stdout


def test_a_tool_prints_and_remembers_no_more_than_it_may(tmp_path: Path) -> None:
    told = ask_tool(["yes"], seconds=30.0, most=MIB)
    assert told.returncode == -signal.SIGXFSZ and len(told.stdout) == MIB
    hungry = ask_tool([sys.executable, "-c", "bytes(5 << 30)"], seconds=30.0, most=MIB)
    assert hungry.returncode == 1 and "MemoryError" in hungry.stderr


IMPATIENT = """
import sys
from gemmprof.base import buckets
from gemmprof.__main__ import entry
buckets.PATIENCE_SECONDS = 2.0
sys.argv.insert(1, "show")
sys.exit(entry())
"""


@pytest.mark.parametrize("place", few(["object.ncu-rep", "folder/"], ["object.ncu-rep"]))
def test_a_bucket_without_an_end_is_given_up(place: str, tmp_path: Path) -> None:
    """A byte now and then, a list that always goes on: inside Arrow no signal is heard, and its end waits for both."""
    with buckets(tmp_path, endless=True) as (variables, asked):
        told = subprocess.run(
            [sys.executable, "-c", IMPATIENT, f"s3://bucket/{place}"], capture_output=True, text=True, check=False,
            timeout=60, cwd=ROOT, env=os.environ | variables,
        )  # fmt: skip
    assert asked and told.returncode == 2 and "no answer within 2 s" in told.stderr, told.stderr


def test_no_expression_hangs(folder: Path) -> None:
    for line in (
        ["show", "report.ncu-rep.xz", "--kernel", "(.*)*x"],
        ["find", "kernel ~ '(.*)*x'", "set"],
        ["history", "show", "(.*)*x", "--store", "single"],
    )[: inputs(1, 3)]:
        assert gemmprof(*line, cwd=folder).returncode in (0, 2)
    refused = gemmprof("show", "report.ncu-rep.xz", "--kernel", "(?=x)", cwd=folder)
    assert refused.returncode == 2 and "no regular expression" in refused.stderr


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["pipe", "latex"])
def test_a_matplotlibrc_of_somebody_changes_nothing(folder: Path, kind: str) -> None:
    line = ["roofline", DATA / "flaws_precision.ncu-rep.xz", "-o"]
    assert gemmprof(*line, "before.png", cwd=folder).returncode == 0
    if kind == "pipe":
        os.mkfifo(folder / "matplotlibrc")
    else:
        (folder / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 9\nfigure.facecolor: red\n")
    answer = gemmprof(*line, "after.png", cwd=folder, MATPLOTLIBRC=str(folder / "matplotlibrc"))
    assert answer.returncode == 0, answer.stderr
    assert (folder / "after.png").read_bytes() == (folder / "before.png").read_bytes()
    occupancy = ["occupancy", "-t", "256", "-r", "64", "-o", "o.svg"]
    assert gemmprof(*occupancy, cwd=folder).returncode == 0


AMBIENT = {
    "MPLBACKEND": "nonsense", "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error", "COLUMNS": "9" * 40, "LINES": "x",
    "GEMMPROF_RUNS": "/dev/zero", "TERM": "\x1b[2J",
}  # fmt: skip


def test_a_hostile_environment_changes_no_answer(folder: Path) -> None:
    report = DATA / "flaws_cluster.ncu-rep.xz"
    for line in (["show", report], ["roofline", report, "-o"])[: inputs(1, 2)]:
        plain, hostile = (
            subprocess.run(
                [sys.executable, "-m", "gemmprof", *line, *([f"{len(given)}.png"] if line[-1] == "-o" else [])],
                capture_output=True, text=True, cwd=folder, check=False, env=os.environ | given,
            )
            for given in ({}, AMBIENT)
        )  # fmt: skip
        assert hostile.returncode == 0, hostile.stderr
        assert hostile.stdout == plain.stdout
    pictures = [(folder / f"{number}.png").read_bytes() for number in (0, len(AMBIENT))[: inputs(0, 2)]]
    assert len({*pictures}) <= 1


def test_what_is_used_of_the_environment_is_documented() -> None:
    said = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    used = {
        name
        for room in ("gemmprof", "kernels", "profiler", "analysis", "reports")
        for file in (ROOT / room).rglob("*.py")
        for name in re.findall(r"[\"'](GEMMPROF_[A-Z_]+)[\"']", file.read_text(encoding="utf-8"))
    }
    assert len(used) > 8 and {name for name in used if f"`{name}`" not in said} == set()


def test_a_fault_of_gemmprof_is_no_finding() -> None:
    program = (
        "import sys\nimport gemmprof.cli as cli\n"
        "def broken(only):\n    raise KeyError('::error::\\x1b[31m')\n"
        "cli.build_parser = broken\nsys.exit(cli.main(['show', 'x', '--json']))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 70 and "Traceback" not in answer.stderr and "\x1b" not in answer.stderr
    assert "a fault of gemmprof" in json.loads(answer.stdout)["message"]


def test_an_interrupt_that_a_loading_module_makes_something_else_of_is_none_of_gemmprofs_faults() -> None:
    program = (
        "import signal, sys\nimport gemmprof.cli as cli\n"
        "def broken(only):\n"
        "    try:\n        signal.raise_signal(signal.SIGINT)\n"
        "    except BaseException:\n        pass\n"
        "    raise ImportError('half a module')\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "cli.build_parser = broken\nsys.exit(cli.main(['show', 'x']))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (130, "gemmprof: interrupted\n")


@pytest.mark.parametrize("moment", few([0.01, 0.05, 0.1, 0.2], [0.01, 0.05]))
def test_interrupted_while_modules_load_it_says_so_and_ends(moment: float) -> None:
    program = (
        "import signal, sys\nfrom gemmprof.__main__ import entry\n"
        "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\n"
        f"signal.setitimer(signal.ITIMER_REAL, {moment})\n"
        "sys.argv[0] = 'gemmprof'\nsys.exit(entry())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "explain", str(DATA / "ladder_simple.ncu-rep.xz")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert re.fullmatch(r"gemmprof( explain)?: interrupted\n", errors), errors


def test_the_documented_table_says_what_is_tried() -> None:
    """docs/security.md names how many inputs each attack is tried with."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert f"| {len(DOORS) * len(ATTACKS)} files |" in text
    for name in re.findall(r"`((?:tests/[\w/]+/)?test_\w+\.py)`", text):
        assert (ROOT / name).is_file() or (ROOT / "tests" / "safety" / name).is_file(), name


def test_the_documented_signature_covers_a_run(tmp_path: Path) -> None:
    """The two lines of docs/security.md, with a key made here."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    (tmp_path / "run.json").write_text("{}")

    def keygen(*words: str, given: str = "") -> int:
        return subprocess.run(
            ["ssh-keygen", *words], input=given, capture_output=True, text=True, cwd=tmp_path, check=False
        ).returncode

    assert keygen("-q", "-t", "ed25519", "-N", "", "-f", "key") == 0
    (tmp_path / "allowed").write_text(f"me@example.com {(tmp_path / 'key.pub').read_text()}")
    assert keygen("-Y", "sign", "-f", "key", "-n", "gemmprof", "run.json") == 0
    verify = ("-Y", "verify", "-f", "allowed", "-I", "me@example.com", "-n", "gemmprof", "-s", "run.json.sig")
    assert keygen(*verify, given="{}") == 0 and keygen(*verify, given="{} ") != 0
