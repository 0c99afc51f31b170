"""What commands print of hostile reports: nothing that a terminal or the reader of a build log would obey."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
import traceback
import unicodedata
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import in_process
import pytest
from reports_in_bytes import blocks, content_of, fields_of, length_prefixed, varint_at
from scale import few

import gemmprof
from gemmprof.analysis.comparison.outcome import ACROSS
from gemmprof.api.server import Tools
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


UNSAFE = [
    character
    for first in range(0, 0x110000, 256)
    if printable(row := "".join(map(chr, range(first, first + 256)))) != row
    for code in range(first, first + 256)
    if not 0xD800 <= code < 0xE000  # no file holds these
    and printable(character := chr(code)) != character
    and (code < 0x100 or printable(chr(code - 1)) == chr(code - 1))  # of a long row the first
]
_turn = itertools.cycle(UNSAFE)


def hostile_text(length: int) -> bytes:
    """So many bytes: the line breaks, commands and links of `HOSTILE`, and in turn every unsafe character."""
    text = HOSTILE.encode()[:length].decode("utf-8", "ignore").encode()
    while len(text) < length - 4:
        text += next(_turn).encode()
    return text + b"x" * (length - len(text))


def is_text(value: bytes) -> bool:
    """Whether it is what somebody reads: a name, or a file of many lines."""
    with contextlib.suppress(UnicodeDecodeError):
        text = value.decode("utf-8")
        lines = text.replace("\n", "").replace("\t", "")
        return text.isprintable() or (text.count("\n") > 9 and lines.isprintable())
    return False


def with_hostile_texts(message: bytes, depth: int = 0, keep: tuple[int, ...] = ()) -> tuple[bytes, int]:
    """The message with every text of six bytes and more replaced, and how many there were."""
    out, replaced = bytearray(message), 0
    for number, kind, _, start, end in fields_of(message):
        value = message[start:end]
        if kind != 2 or number in keep or end - start < 6:
            continue
        if is_text(value):
            out[start:end] = hostile_text(end - start)
            replaced += 1
            continue
        with contextlib.suppress(IndexError):
            if depth < 6 and fields_of(value)[-1][-1] == len(value):
                out[start:end], count = with_hostile_texts(value, depth + 1)
                replaced += count
    return bytes(out), replaced


def with_hostile_names(header: bytes, every: int = 7) -> bytes:
    """The table of names with some of them hostile: those of many metrics."""
    out = bytearray(header)
    for number, kind, _, start, end in fields_of(header):
        if number == STRING_TABLE and kind == 2:
            names = [(start + s, start + e) for _, kind, _, s, e in fields_of(header[start:end]) if kind == 2]
            for s, e in names[::every]:
                out[s:e] = hostile_text(e - s)
    return bytes(out)


def hostile_report(name: str, *, metrics: bool = False) -> bytes:
    """A real report in which every text is hostile: kernels, ranges, rules, files, device; ``metrics``, too."""
    head, *parts = blocks(content_of(name))
    made, replaced = [head], 0
    for part in parts:
        size = int.from_bytes(part[:4], "little")
        header, count = with_hostile_texts(part[4 : 4 + size], keep=(STRING_TABLE,))
        replaced += count
        header = with_hostile_names(header) if metrics else header
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


def commands(*lines: list[str], cwd: Path) -> str:
    """What commands print that all succeed, or find something."""
    done = [in_process.run(["gemmprof", *line], cwd=cwd) for line in lines]
    assert all(one.returncode in (0, 1) for one in done), [one.stderr for one in done]
    return "".join(one.stdout + one.stderr for one in done)


def written(*lines: list[str], cwd: Path) -> str:
    """What commands print, and every text file that they write."""
    said = commands(*lines, cwd=cwd)
    texts = [
        path.read_text("utf-8")
        for path in sorted(cwd.rglob("*"))
        if path.suffix in (".html", ".svg", ".csv", ".jsonl", ".json")
    ]
    assert texts
    return "\n".join([said, *texts])


def notebook(report: Path, plain: Path) -> str:
    """What a notebook, a console and an exception show of a report's values."""
    opened = gemmprof.open(report)
    changed = opened.diff(plain, across=ACROSS)
    values: list[object] = [
        opened, opened.families, opened.findings, changed, *opened.families, *opened.findings, *opened.explanations,
        *opened.launches, *(launch.profile for launch in opened.launches),
        opened.to_markdown(), opened.session,
    ]  # fmt: skip
    shown = [repr(value) for value in values if not isinstance(value, str)]
    shown += [value for value in values if isinstance(value, str)]
    shown += [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    for ask in (
        lambda: opened[10_000],
        lambda: opened.select(HOSTILE),
        lambda: gemmprof.open(str(report) + HOSTILE),
    ):
        with pytest.raises(GemmprofError) as caught:
            ask()
        shown += [str(caught.value), "".join(traceback.format_exception(caught.value))]
    return "\n".join(shown)


def agent(report: Path, plain: Path) -> str:
    """What an agent reads."""
    tools = Tools([report.parent])
    said = [tools.open(report.name), tools.explain(report.name), tools.source(report.name)]
    said += [tools.source(report.name, sass=True), tools.diff(report.name, plain.name), tools.open(".")]
    said += [tools.listing(report.name), tools.listing(before=report.name, after=plain.name)]
    assert any("::" in text for text in said)
    for path in (report.name + HOSTILE, "../" + HOSTILE):
        with pytest.raises(GemmprofError) as caught:
            tools.open(path)
        said.append(str(caught.value))
    return "\n".join(said)


ANYWAY = [word for one in ACROSS for word in ("--across", one)]
SURFACES: dict[str, Callable[[Path, Path], str]] = {
    "pages": lambda r, p: written(["report", str(r), "-o", "pages"], cwd=p.parent / "w"),
    "one page": lambda r, p: written(["report", str(r), "--single-file", "-o", "page.html"], cwd=p.parent / "w"),
    "table for a spreadsheet": lambda r, p: written(
        ["export", str(r), "--format", "csv", "-o", "tables"], cwd=p.parent / "w"
    ),
    "lines of JSON": lambda r, p: written(
        ["export", str(r), "--format", "jsonl", "-o", "lines"], cwd=p.parent / "w"
    ),
    "flame graph": lambda r, p: written(
        ["export", str(r), "--format", "speedscope", "-o", "flames.json"], cwd=p.parent / "w"
    ),
    "pictures": lambda r, p: written(
        ["roofline", str(r), "-o", "a.svg"], cwd=p.parent / "w",
    ),
    "data set": lambda r, p: commands(
        ["export", str(r), "--format", "dataset", "-o", "set"], ["find", "time > 0", "set"],
        ["find", "time > 0", "set", "--json"], ["find", "time > 0", str(r)], cwd=p.parent / "w",
    ),
    "history": lambda r, p: written(
        *[["history", "record", str(r), "--commit", HOSTILE, "--note", HOSTILE, "--machine", HOSTILE]] * 2,
        ["history", "list"], ["history", "show", "."], ["history", "show", ".", "-o", "h.html"],
        ["history", "check"], cwd=p.parent / "w",
    ),
    "baseline": lambda r, p: commands(
        ["baseline", "save", "main", str(r)], ["baseline", "list"], ["baseline", "show", "main"],
        ["diff", str(p), "--against", "main", "--details", *ANYWAY], cwd=p.parent / "w",
    ),
    "front door": lambda r, p: commands([str(r)], [str(r), "#1"], ["show", str(r), "--all"], cwd=p.parent / "w"),
    "notebook": notebook,
    "agent": agent,
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile_metrics() -> bytes:
    """Made once: NVIDIA's library is asked for the units of names that it has not seen, half a second each time."""
    return hostile_report("names_markup", metrics=True)


@pytest.mark.parametrize("surface", SURFACES)
def test_no_surface_shows_a_character_that_acts(
    surface: str, hostile: Path, hostile_metrics: bytes, tmp_path: Path
) -> None:
    """Wherever foreign text comes out: files that are written, values in a notebook, answers to agents."""
    report = tmp_path / hostile.name
    pictured = surface == "pictures"  # which need every metric
    report.write_bytes(hostile_report("partial_roofline") if pictured else hostile_metrics)
    plain = tmp_path / "plain.ncu-rep"
    plain.write_bytes(content_of("names_markup"))
    (tmp_path / "w").mkdir()
    text = SURFACES[surface](report, plain)
    assert "error" in text, "the hostile text is there"
    assert not (found := OBEYED.search(text)), (found, text[max(0, found.start() - 80) :][:160])


def test_a_timeline_names_nothing_that_acts(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "time.pftrace"
    commands(["export", str(hostile), "--format", "perfetto", "-o", str(out)], cwd=tmp_path)
    held = out.read_bytes()
    assert b"error" in held, "the hostile text is there"
    for text in ("\x1b[2J", "\x9b31m", "\u202e", "\u2066", "\U000e0041", "\ufe0f"):
        assert text.encode() not in held


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
    error = GemmprofError("::error::a\nb", "\n::c::", found="\n::set-output::x\n##vso[task]")
    assert_harmless(str(error))


def test_there_is_one_list_of_unsafe_characters() -> None:
    """Every formatting character of Unicode is on it, and every renderer goes by it."""
    hidden = {
        c for c in map(chr, range(0x110000)) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    } - set("\t\n")
    hidden |= set("\ufe0f\U000e0041\U000e0100\u2800\u3164")
    renderers = {
        "terminal": printable,
        "line": one_line,
        "page": visible,
        "Markdown": markdown,
        "log": log_text,
    }
    for name, render in renderers.items():
        left = hidden & set(render("".join(hidden)))
        assert not left, (name, sorted(map(hex, map(ord, left)))[:5])
    assert "www." not in markdown("see www.example.com or WWW.example.com").lower()
