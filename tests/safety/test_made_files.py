"""Files made to cost: they are refused by name, in time and memory like those of a true report of their size."""

from __future__ import annotations

import gzip
import lzma
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from reports_in_bytes import block, blocks, content_of, fields_of, length_prefixed, varint
from scale import few

SECONDS = 10
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.errors import ReportError
try:
    with ReportReader(sys.argv[1]) as reader:
        print("read", sum(1 for _ in reader.profiles(source=False)))
except ReportError as error:
    print("refused", error)
"""


def cpu_seconds_of_children() -> float:
    """Processor time of the children that ended: unlike a clock on the wall it does not count who else works here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_limited(path: Path) -> str:
    """What comes of reading it with 1 GB of memory, within the time."""
    before = cpu_seconds_of_children()
    answer = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert answer.returncode == 0, answer.stderr[-800:]
    assert cpu_seconds_of_children() - before < SECONDS
    return answer.stdout


def zeros(compressor: object, size: int) -> bytes:
    """A report's magic and then zeros, compressed piece by piece."""
    compress: Callable[[bytes], bytes] = compressor.compress  # type: ignore[attr-defined]
    packed = [compress(b"NVR\0" + bytes(60))]
    chunk = bytes(1 << 24)
    packed += [compress(chunk) for _ in range(size >> 24)]
    return b"".join([*packed, compressor.flush()])  # type: ignore[attr-defined]


BOMBS: dict[str, Callable[[], bytes]] = {
    "zstd": lambda: zeros(zstandard.ZstdCompressor(level=1).compressobj(), 1 << 30),
    "xz": lambda: zeros(lzma.LZMACompressor(preset=0), 1 << 30),
    "gzip": lambda: gzip.compress(b"NVR\0" + bytes(1 << 28), 9),
    "xz in zstd": lambda: zstandard.compress(zeros(lzma.LZMACompressor(preset=0), 1 << 30)),
}


@pytest.mark.parametrize("kind", few(BOMBS, ["zstd"]))
def test_what_unpacks_to_more_than_a_report_can_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.ncu-rep"
    path.write_bytes(BOMBS[kind]())
    assert path.stat().st_size < 2 << 20
    answer = read_limited(path)
    assert "refused" in answer and "unpacks to more than" in answer
    assert "unpack it yourself" in answer


def test_a_decompressor_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "window.ncu-rep"
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(packed.compress(content_of("names_nvtx")) + packed.flush())
    assert "does not unpack" in read_limited(path)


def with_blocks(more: bytes) -> bytes:
    return content_of("partial_two_metrics") + more


def session_blocks(count: int) -> bytes:
    made = []
    for number in range(count):
        header = length_prefixed(3, b"\x58" + varint(number)) + b"\x28\x00"
        made.append(struct.pack("<I", len(header)) + header)
    return b"".join(made)


def launch(field: int, value: bytes) -> bytes:
    """A small true launch with one field more."""
    content = content_of("partial_two_metrics")
    *before, last = blocks(content)
    size = struct.unpack_from("<I", last)[0]
    header = fields_of(last[4 : 4 + size])
    owner = next(last[4:][start:end] for number, _, start, _, end in header if number == 6)
    message = last[8 + size :] + length_prefixed(field, value)
    return b"".join([*before, block([message], header=owner)])


def nested(field: int, depth: int) -> bytes:
    value = b""
    for _ in range(depth):
        value = length_prefixed(field, value)
    return value


def launch_of_runs() -> bytes:
    # Two that look like unsigned metrics, but by its length the first holds the second.
    one = b"\x6a\x12" + b"\x08\x01\x12\x02\x28\x01\x20\x01" + b"\x6a\x08\x08\x01\x12\x02\x28\x01\x20\x01"
    content = content_of("partial_two_metrics")
    *before, last = blocks(content)
    size = struct.unpack_from("<I", last)[0]
    owner = next(last[4:][s:e] for n, _, s, _, e in fields_of(last[4 : 4 + size]) if n == 6)
    return b"".join([*before, block([last[8 + size :] + one * 60_000], header=owner)])


MADE: dict[str, Callable[[], bytes]] = {
    "zeros behind the report": lambda: with_blocks(bytes(10_000_000)),
    "empty blocks": lambda: with_blocks((struct.pack("<I", 2) + b"\x08\x00") * 1_500_000),
    "blocks with a name each": lambda: with_blocks((struct.pack("<I", 5) + b"\x22\x03\x0a\x01x") * 1_000_000),
    "session blocks": lambda: with_blocks(session_blocks(200_000)),
    "items without content": lambda: with_blocks(block([b""] * 2_000_000, kind=1)),
    "small items": lambda: with_blocks(block([b"\x08"] * 1_900_000, kind=1)),
    # A run of metrics whose first is not what the pattern takes it for, again and again.
    "runs that only look like metrics": launch_of_runs,
    "nested rules": lambda: launch(19, nested(3, 20_000)),
    "nested ranges": lambda: launch(21, nested(2, 20_000)),
    "rules without end": lambda: launch(19, length_prefixed(3, length_prefixed(1, b"\x0a\x00") * 300_000)),
    "ranges without end": lambda: launch(21, length_prefixed(2, length_prefixed(2, b"\x1a\x00" * 9)) * 100_000),
}  # fmt: skip


def with_message(more: bytes) -> bytes:
    """The small true launch with these fields behind its own."""
    content = content_of("partial_two_metrics")
    *before, last = blocks(content)
    size = struct.unpack_from("<I", last)[0]
    owner = next(last[4:][s:e] for n, _, s, _, e in fields_of(last[4 : 4 + size]) if n == 6)
    return b"".join([*before, block([last[8 + size :] + more], header=owner)])


# Messages that decode to many times their size. Compressed, a few kilobytes stand for the megabytes of each.
GROWING: dict[str, Callable[[], bytes]] = {
    "empty metrics": lambda: with_message(b"\x6a\x00" * (30 << 20)),
    "small metrics": lambda: with_message(b"\x6a\x02\x08\x01" * (15 << 20)),
    "empty rules": lambda: with_message(b"\x9a\x01\x00" * (20 << 20)),
    "empty messages in a rule": lambda: launch(19, length_prefixed(3, b"\x0a\x00" * (30 << 20))),
    "empty ranges": lambda: launch(21, length_prefixed(3, b"\x1a\x00" * (30 << 20))),
    "empty values by instruction": lambda: launch(13, b"\x08\x01" + b"\x1a\x00" * (30 << 20)),
    "values without keys": lambda: launch(13, b"\x08\x01" + b"\x1a\x04\x12\x02\x28\x01" * (10 << 20)),
    "values of several kinds": lambda: launch(
        13, b"\x08\x01" + (b"\x1a\x04\x12\x02\x28\x01" + b"\x1a\x05\x12\x03\x0a\x01x") * (4 << 20)
    ),
    "a launch of 200 MiB": lambda: launch(40, bytes(200 << 20)),
    "empty names": lambda: with_blocks(header_block(length_prefixed(4, b"\x0a\x00" * (5 << 20)))),
}  # fmt: skip


@pytest.mark.parametrize("kind", few(GROWING, ["values of several kinds"]))
def test_a_message_that_grows_when_it_is_decoded_costs_no_more_than_it_may(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "growing.ncu-rep"
    # 3 MB that do not compress, so that the limit on what unpacks is not what refuses it.
    path.write_bytes(zstandard.compress(GROWING[kind](), 1) + skippable(3 << 20))
    answer = read_limited(path)
    assert "unpacks to more" not in answer and "ends in the middle" not in answer


def header_block(header: bytes) -> bytes:
    """A block that is a header alone."""
    return struct.pack("<I", len(header)) + header


def skippable(size: int) -> bytes:
    """A frame of zstd that holds nothing of the data."""
    return struct.pack("<II", 0x184D2A50, size) + bytes(size)


@pytest.mark.parametrize("kind", few(MADE, ["runs that only look like metrics", "nested rules"]))
def test_a_made_file_costs_no_more_than_a_true_one(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "made.ncu-rep"
    path.write_bytes(MADE[kind]())
    read_limited(path)


def test_zeros_and_empty_blocks_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "made.ncu-rep"
    for kind in ("zeros behind the report", "empty blocks", "items without content"):
        path.write_bytes(MADE[kind]())
        assert "damaged" in read_limited(path), kind
