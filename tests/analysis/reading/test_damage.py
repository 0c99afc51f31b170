"""Damaged, truncated and foreign files: each is read whole or refused by name, and nothing hangs or takes us down."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import in_process
import pytest
import zstandard
from recorded_data import DATA
from reports_in_bytes import boundaries
from scale import inputs

from gemmprof.analysis.reading import lookup as report_worker
from gemmprof.analysis.reading.frame import open_frame
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.session import load_session
from gemmprof.base.errors import ReportError

REPORT = "partial_basic"
MUTATIONS = inputs(60, 500)
SEED = 20251121

Written = Callable[[bytes], Path]


@pytest.fixture(scope="module")
def content() -> bytes:
    """A real report of three launches."""
    return lzma.decompress((DATA / f"{REPORT}.ncu-rep.xz").read_bytes())


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(data: bytes, name: str = "x.ncu-rep") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEMMPROF_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def refused(path: Path) -> ReportError:
    """The error of a file that must not be read; it names the file."""
    with pytest.raises(ReportError) as caught:
        read_report(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 2
    return caught.value


def test_every_class_of_truncation_is_refused(content: bytes, written: Written) -> None:
    edges = boundaries(content)
    assert edges[-1] == len(content)
    cuts = {0, 1, 3, 4, 5, 7, 8, 9, *range(10, len(content), len(content) // 60)}
    for edge in edges[:-1]:
        cuts |= {edge + 1, edge + 3, edge + 4, edge + 5, edge + 40}
    cuts |= {edge - 1 for edge in edges}
    for cut in sorted(cuts - set(edges)):
        assert 0 <= cut < len(content)
        refused(written(content[:cut]))


def test_a_cut_between_two_blocks_leaves_whole_launches(content: bytes, written: Written) -> None:
    """What the format cannot tell: the launches that are there are whole, those behind the cut are gone."""
    whole = read_report(written(content), source=False)
    for edge in boundaries(content)[:-1]:
        path = written(content[:edge])
        try:
            launches = read_report(path, source=False)
        except ReportError as error:
            assert "no profiled launch" in error.message
            continue
        assert 0 < len(launches) < len(whole)
        assert [p.metrics for p in launches] == [p.metrics for p in whole[: len(launches)]]


def test_random_mutations_are_read_whole_or_refused(content: bytes, written: Written) -> None:
    dice = random.Random(SEED)
    outcomes = {"refused": 0, "read": 0}
    for number in range(MUTATIONS):
        changed = bytearray(content)
        for _ in range((1, 4, 16, 64)[number % 4]):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        path = written(bytes(changed))
        started = time.monotonic()
        try:
            session = load_session([path])
        except ReportError as error:
            assert str(path) in error.message
            outcomes["refused"] += 1
        else:
            assert len(session.kernels) == 3
            assert all(kernel.profile.function_name for kernel in session.kernels)
            outcomes["read"] += 1
        assert time.monotonic() - started < 30
    # A change of one byte mostly hits a value, which no reader can tell; one of 64 mostly hits a length somewhere.
    assert min(outcomes.values()) > MUTATIONS // 20, outcomes


def test_mutations_of_lengths_and_headers_are_read_whole_or_refused(content: bytes, written: Written) -> None:
    """The bytes whose change makes NVIDIA's library abort its process: lengths and block headers."""
    dice = random.Random(SEED)
    edges = boundaries(content)
    for _ in range(200):
        changed = bytearray(content)
        edge = dice.choice(edges[:-1])
        at = min(edge + dice.randrange(48), len(content) - 1)
        changed[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ 0x80))
        path = written(bytes(changed))
        try:
            launches = read_report(path)
        except ReportError as error:
            assert str(path) in error.message
        else:
            assert len(launches) <= 3


FOREIGN = {
    "empty": (b"", "empty"),
    "text": (b"==PROF== Connected to process 1\n" * 9, "console output"),
    "csv": (b'"ID","Process ID","Process Name"\n', "CSV"),
    "elf": (Path(sys.executable).read_bytes()[:4096], "ELF"),
    "zip": (b"PK\x03\x04" + bytes(64), "zip"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
    "zeros": (bytes(4096), "not an Nsight Compute report"),
    "magic": (b"NVR\0", "file header"),
    "gzip of text": (gzip.compress(b"some text" * 99), "not an Nsight Compute report"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "xz of text": (lzma.compress(b"some text" * 99), "not an Nsight Compute report"),
    "zstd of text": (zstandard.compress(b"some text" * 99), "not an Nsight Compute report"),
    "gzip bomb": (gzip.compress(bytes(1 << 24)), "not an Nsight Compute report"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_refused_by_name(kind: str, written: Written) -> None:
    data, says = FOREIGN[kind]
    assert says in str(refused(written(data)))


def test_two_reports_joined_are_refused(content: bytes, written: Written) -> None:
    assert "more than one report" in str(refused(written(content + content)))
    refused(written(content + b"trailing bytes"))


def test_missing_files_folders_and_devices_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nothing.ncu-rep")
    refused(tmp_path)
    refused(Path("/dev/null"))
    fifo = tmp_path / "fifo.ncu-rep"
    os.mkfifo(fifo)
    refused(fifo)  # opening it would wait for ever


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstandard.compress])
def test_compressed_reports_are_read_and_their_truncations_refused(
    compress: Callable[[bytes], bytes], content: bytes, written: Written
) -> None:
    whole = read_report(written(content), source=False)
    packed = compress(content)
    found = read_report(written(packed), source=False)
    assert [p.metrics for p in found] == [p.metrics for p in whole]
    for cut in (len(packed) - 1, len(packed) // 2, 20, 7):
        refused(written(packed[:cut]))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_changed_bytes_under_a_checksum_are_refused(
    compress: Callable[[bytes], bytes], content: bytes, written: Written
) -> None:
    packed = compress(content)
    dice = random.Random(SEED)
    for _ in range(25):
        changed = bytearray(packed)
        at = dice.randrange(32, len(packed) - 32)
        changed[at] ^= 1 << dice.randrange(8)
        refused(written(bytes(changed)))


def test_temporary_files_do_not_stay(content: bytes, written: Written, tmp_path: Path) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    path = written(lzma.compress(content))
    program = f"from gemmprof.analysis.reading.report import read_report; read_report({str(path)!r})"
    environment = {**os.environ, "TMPDIR": str(scratch)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    "name", ["a b.ncu-rep", "ü€.ncu-rep", "no_extension", "x.ncu-repz", 'it\'s "q" <b>.ncu-rep']
)
def test_any_file_name_will_do(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(zstandard.compress(content) if name.endswith("z") else content)
    assert len(read_report(path)) == 3


def test_a_file_name_that_is_no_utf8(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\xfe.ncu-rep")
    path.write_bytes(content)
    assert len(read_report(path)) == 3


def test_a_batch_goes_on_with_the_other_files(content: bytes, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.ncu-rep", tmp_path / "bad.ncu-rep"
    good.write_bytes(content)
    bad.write_bytes(content[:-9])
    session = load_session([bad, good])
    assert len(session.kernels) == 3
    assert [str(bad) in failure.message for failure in session.failures] == [True]


@pytest.mark.parametrize("command", ["export", "report"])
@pytest.mark.parametrize("kind", ["truncated", "text", "missing"])
def test_commands_exit_with_2_and_name_the_file(
    command: str, kind: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "given.ncu-rep"
    if kind != "missing":
        path.write_bytes(content[:-100] if kind == "truncated" else b"hello")
    output = tmp_path / "out"
    answer = in_process.run(["gemmprof", command, str(path), "-o", str(output)])
    assert answer.returncode == 2, answer.stderr
    assert str(path) in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list(output.glob("*")) if output.exists() else True


def test_the_death_of_the_native_reader_costs_the_disassembly_alone(
    content: bytes, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMPROF_CACHE", "off")
    path = written(content)
    assert len(read_report(path)) == 3
    reader = report_worker.native_reader()
    process = reader.worker.process
    # Stopped, it takes the request and never answers; then it is killed as an abort would kill it.
    process.send_signal(signal.SIGSTOP)
    killer = subprocess.Popen(
        ["/bin/sh", "-c", f"sleep 0.3; kill -ABRT {process.pid}; kill -CONT {process.pid}"]
    )
    found = read_report(path)
    killer.wait()
    assert len(found) == 3 and "SIGABRT" in found[0].source.unread and not found[0].source.instructions
    assert read_report(path)[0].source.instructions  # the next file gets a new worker


def test_a_hanging_native_reader_is_given_up(
    content: bytes, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMPROF_CACHE", "off")
    path = written(content)
    read_report(path)
    reader = report_worker.native_reader()
    reader.worker.process.send_signal(signal.SIGSTOP)
    with pytest.raises(report_worker.NativeReaderError, match="did not answer within"):
        reader.ask({"path": str(path), "pcs": [], "units": []}, timeout=0.5)
    assert len(read_report(path)) == 3


def test_a_native_reader_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    """Whoever asked was killed while the native library hangs: standard input tells nobody."""
    (tmp_path / "ncu_report.py").write_text(
        "import ctypes\ndef load_report(path):\n    ctypes.PyDLL(None).sleep(600)\n"
    )
    program = (
        f"import sys; sys.argv[1:] = [{str(tmp_path)!r}]\nfrom gemmprof.analysis.reading import native\n"
        "native.LONGEST_SECONDS = 1\nnative.main()\n"
    )
    hanging = subprocess.run(
        [sys.executable, "-c", program],
        input=b'{"path": "x"}\n',
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert hanging.returncode == -signal.SIGALRM


def test_reports_become_shorter_while_they_are_read(content: bytes, written: Written) -> None:
    path = written(content)
    with open_frame(path) as frame:
        os.truncate(path, len(content) // 2)
        with pytest.raises(ReportError, match="shorter"):
            frame.read(frame.size - 10, frame.size)
