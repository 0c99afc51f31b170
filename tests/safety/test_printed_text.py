"""What commands print of hostile reports: nothing that a terminal or the reader of a build log would obey."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from importlib.metadata import entry_points
from pathlib import Path

import in_process
import pytest
from reports_in_bytes import blocks, content_of, fields_of, length_prefixed, varint_at
from scale import few

from gemmprof.base.errors import GemmprofError
from gemmprof.base.printable import (
    GuardedStream,
    json_safe,
    log_text,
    markdown,
    one_line,
    printable,
    visible,
    without_log_commands,
)

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = (
    "\n::error::gone\x1b[2J\x1b]8;;http://e/\x07\x9b31m\u202eevil\u2066\r##[command]x\U000e0041\ufe0f##vso[y]"
)
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)
LOG_COMMAND = re.compile(r"(?m)^\s*::|##\w*\[")
STRING_TABLE = 4


def assert_harmless(text: str) -> None:
    assert not (found := OBEYED.search(text)), (found, text[max(0, found.start() - 80) :][:160])
    assert not (found := LOG_COMMAND.search(text)), text[max(0, found.start() - 80) :][:160]


def hostile_text(length: int) -> bytes:
    text = (HOSTILE * (length // len(HOSTILE) + 1)).encode()[:length]
    text = text.decode("utf-8", "ignore").encode()
    return text + b"x" * (length - len(text))


def with_hostile_texts(message: bytes, depth: int = 0, keep: tuple[int, ...] = ()) -> tuple[bytes, int]:
    """The message with every text of six bytes and more replaced, and how many there were."""
    out, replaced = bytearray(message), 0
    for number, kind, _, start, end in fields_of(message):
        value = message[start:end]
        if kind != 2 or number in keep or end - start < 6:
            continue
        with contextlib.suppress(UnicodeDecodeError):
            if value.decode("utf-8").isprintable():
                out[start:end] = hostile_text(end - start)
                replaced += 1
                continue
        with contextlib.suppress(IndexError):
            if depth < 6 and fields_of(value)[-1][-1] == len(value):
                out[start:end], count = with_hostile_texts(value, depth + 1)
                replaced += count
    return bytes(out), replaced


def hostile_report(name: str) -> bytes:
    """A real report in which every text but the names of metrics is hostile: kernels, ranges, rules, files, device."""
    head, *parts = blocks(content_of(name))
    made, replaced = [head], 0
    for part in parts:
        size = int.from_bytes(part[:4], "little")
        header, count = with_hostile_texts(part[4 : 4 + size], keep=(STRING_TABLE,))
        replaced += count
        out, at = part[:4] + header, 4 + size
        while at < len(part):
            length = int.from_bytes(part[at : at + 4], "little")
            item = part[at + 4 : at + 4 + length]
            if not item.startswith(b"\x08") or b"\x7fELF" not in item[:4096]:  # code stays code
                item, count = with_hostile_texts(item)
                replaced += count
            out += part[at : at + 4] + item
            at += 4 + length
        made.append(out)
    assert replaced > 50
    return b"".join(made)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / f"a{HOSTILE.replace('/', '')}.ncu-rep"
    path.write_bytes(hostile_report("names_nvtx"))
    return path


COMMANDS = {
    "report": ["report", "{report}", "-o", "{out}"],
    "report --json": ["report", "{report}", "-o", "{out}", "--json"],
    "report of two": ["report", "{report}", "{damaged}", "-o", "{out}"],
    "export": ["export", "{report}", "{damaged}", "-o", "{out}"],
    "damaged": ["export", "{damaged}", "-o", "{out}"],
    "missing": ["report", "{report}.gone", "-o", "{out}"],
    "roofline": ["roofline", "{report}", "{damaged}"],
    "roofline --json": ["roofline", "{report}", "--json"],
    "occupancy": ["occupancy", "{report}"],
    "diff": ["diff", "{report}"],
    "diff of two": ["diff", "{report}", "{plain}", "--details"],
    "diff --json": ["diff", "{report}", "{plain}", "--json"],
    "gate": ["diff", "{plain}", "{report}", "--fail-slower", "0"],
    "explain": ["explain", "{report}"],
    "explain markdown": ["explain", "{report}", "--format", "markdown"],
    "explain --json": ["explain", "{report}", "--json"],
    "show": ["show", "{report}"],
    "diff markdown": ["diff", "{plain}", "{report}", "--format", "markdown"],
    "diff junit": ["diff", "{plain}", "{report}", "--format", "junit", "--fail-slower", "1"],
    "diff sarif": ["diff", "{plain}", "{report}", "--format", "sarif", "--fail-slower", "1"],
    "kernel": ["show", "{report}", "--kernel", HOSTILE],
    "baseline": ["report", "{plain}", "--baseline", HOSTILE, "-o", "{out}"],
    "option": ["report", f"--{HOSTILE}"],
    "command": [HOSTILE],
    "no such stage": ["collect", "--stage", HOSTILE],
}


@pytest.mark.parametrize("case", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(case: str, hostile: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.ncu-rep"
    plain.write_bytes(content_of("names_nvtx"))
    damaged = hostile.with_name("damaged" + hostile.name)
    damaged.write_bytes(hostile.read_bytes()[:-9])
    names = {
        "{report}": str(hostile),
        "{damaged}": str(damaged),
        "{plain}": str(plain),
        "{out}": str(tmp_path / f"out{HOSTILE.replace('/', '')}"),
    }
    arguments = []
    for argument in COMMANDS[case]:
        for name, value in names.items():
            argument = argument.replace(name, value)  # noqa: PLW2901
        arguments.append(argument)
    answer = in_process.run(["gemmprof", *arguments])
    printed = answer.stdout, answer.stderr
    assert answer.returncode in (0, 1, 2)
    assert "Traceback" not in printed[1], printed[1]
    assert "".join(printed)
    for text in printed:
        assert_harmless(text)
    if case == "damaged":
        assert "damaged" in printed[1]
    if case.endswith("--json"):
        assert HOSTILE[1:5] in json.dumps(json.loads(printed[0]))


def test_colours_of_our_own_reach_a_terminal_and_those_of_others_do_not(hostile: Path) -> None:
    script = f"{sys.executable} -m gemmprof stages; {sys.executable} -m gemmprof explain '{hostile}'"
    answer = subprocess.run(
        ["script", "-qec", script, "/dev/null"], capture_output=True, timeout=60, check=False,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    shown = answer.stdout.decode()
    assert "\x1b[1m" in shown  # the heading of our own table
    assert "\x1b[2J" not in shown and "\x1b]8" not in shown and "\x9b" not in shown


def test_the_guard_sees_a_command_that_is_written_in_pieces() -> None:
    into = io.StringIO()
    stream = GuardedStream(into)
    for piece in ("  ", ":", ":error::x\n", "std", "::sort ", " #", "#[error]x\n", "::stop-commands::\n"):
        stream.write(piece)
    assert_harmless(into.getvalue())
    assert "std::sort" in into.getvalue()


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "void gemm<float, 128>(float const*, int)\t4096³ × 95 % – é 🔥 ▇\nstd::sort ## a"
    assert printable(text) == text == without_log_commands(text)
    assert printable(printable("\x1b[0m")) == "\\x1b[0m"


def test_names_in_sentences_markdown_and_json() -> None:
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert "\n" not in str(GemmprofError("no\n::error::x"))
    assert (
        markdown("[x](javascript:1)<b>@me\n# https://e")
        == "\\[x\\](javascript:1)\\<b\\>\\@me\\\\n\\# https\\://e"
    )
    assert markdown("plain.ncu-rep: 3 % (+1)") == "plain.ncu-rep: 3 % (+1)"
    hostile = {"name": HOSTILE + "\U000e0041\udcff"}
    text = json_safe(json.dumps(hostile, ensure_ascii=False))
    assert json.loads(text) == hostile
    assert_harmless(text)


def test_every_text_field_was_reached() -> None:
    """The injection itself: the fields that commands print are hostile in the report that the tests above use."""
    content = hostile_report("names_nvtx")
    for text in (b"inside(float", b"NVIDIA H100", b"Small Grid", b"start/end range"):
        assert text in content_of("names_nvtx")
        assert text not in content
    assert len(length_prefixed(3, b"x")) == 3 and varint_at(b"\x80\x01", 0) == (128, 2)


@pytest.mark.parametrize("style", few(["native", "line", "short", "long"], ["native"]))
def test_pytest_prints_nothing_that_a_log_obeys(hostile: Path, tmp_path: Path, style: str) -> None:
    """The fixture's assertions, its errors, and what pytest shows of values all end in a build log."""
    (tmp_path / "test_it.py").write_text(
        f"REPORT = {str(hostile)!r}\n"
        "def test_gate(ncu):\n    ncu.open(REPORT).check('time > 0')\n"
        "def test_none(ncu):\n    ncu.open(REPORT).kernel('nothing')\n"
        "def test_value(ncu):\n    assert ncu.open(REPORT).kernels == ()\n"
        "def test_name(ncu):\n    name = ncu.open(REPORT).kernels[0].name\n    print(name)\n    assert not name\n"
        "def test_raised(ncu):\n    raise ValueError(ncu.open(REPORT).kernels[0].name)\n"
    )
    installed = any(point.name == "gemmprof" for point in entry_points(group="pytest11"))
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--tb={style}", "-q",
         *([] if installed else ["-p", "gemmprof.api.pytest_plugin"])],
        capture_output=True, text=True, cwd=tmp_path, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert told.returncode == 1 and "5 failed" in told.stdout
    assert_harmless(told.stdout)


def test_exceptions_are_harmless_wherever_they_are_printed() -> None:
    error = GemmprofError("::error::a\nb", found="\n::set-output::x\n##vso[task]", remedies=["\n::c::"])
    assert_harmless(str(error))


def test_there_is_one_list_of_unsafe_characters() -> None:
    """Every formatting character of Unicode is on it, and every renderer goes by it."""
    every = "".join(map(chr, range(0x110000)))
    hidden = {c for c in every if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - set("\t\n")
    hidden |= set("\ufe0f\U000e0041\U000e0100\u2800\u3164")
    renderers = {
        "terminal": printable,
        "line": one_line,
        "page": visible,
        "Markdown": markdown,
        "log": log_text,
    }
    for name, render in renderers.items():
        left = hidden & set(render(every))
        assert not left, (name, sorted(map(hex, map(ord, left)))[:5])
    assert "www." not in markdown("see www.example.com or WWW.example.com").lower()
