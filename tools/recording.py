"""What the tools share: their options, generated parts of pages, and what those need that record on a GPU machine.

Only the standard library is used: such a machine needs nothing else.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import lzma
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
"""The repository. gemmprof is imported from it, whether it is installed here or not, and what tests share is found."""
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]
CHUNK = 16 << 20
"""Bytes of input per xz stream, so that a large report is compressed by several cores."""
ARCHITECTURE = "-gencode=arch=compute_90a,code=sm_90a"
"""What nvcc compiles for where the program is carried to a machine with a GPU."""


def options_of(text: str | None) -> argparse.ArgumentParser:
    """The options of a tool, of which its docstring is the help."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def table_of(head: str, rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a Markdown table; in its head, ``kernel | µs>``, titles that end in ``>`` stand over numbers."""
    titles = [title.strip() for title in head.split("|")]
    names = (f" {title.removesuffix('>')}" if title else "" for title in titles)
    marks = ("---:" if title.endswith(">") else "---" for title in titles)
    lines = (f"| {' | '.join(map(str, row))} |" for row in rows)
    return [f"|{' |'.join(names)} |", f"|{'|'.join(marks)}|", *lines]


def with_block(text: str, name: str, content: str) -> str:
    """A page with other content between its marks ``<!-- NAME: … -->`` and ``<!-- /NAME -->``.

    Raises:
        SystemExit: it has no such marks.
    """
    pattern = rf"(<!-- {re.escape(name)}: [^>]*-->\n).*?(\n<!-- /{re.escape(name)} -->)"
    found, count = re.subn(pattern, lambda marks: marks[1] + content + marks[2], text, flags=re.DOTALL)
    if not count:
        raise SystemExit(f"there is no block named {name}")
    return found


def printed(*words: str, columns: int = 80) -> str:
    """What a command of gemmprof prints on standard output; in this process, which has loaded what all of them need."""
    import in_process

    return in_process.run(["gemmprof", *words], cwd=ROOT, env={**os.environ, "COLUMNS": str(columns)}).stdout


def filled(template: str, **values: object) -> str:
    """A page from its template beside the tools, in which ``table`` is `table_of` and ``mean`` that of some shares."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    pages = Environment(
        loader=FileSystemLoader(ROOT / "tools"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    pages.globals["table"] = lambda head, rows: "\n".join(table_of(head, rows))
    pages.filters["mean"] = lambda shares: f"{100 * statistics.fmean(shares):.1f}" if shares else "–"
    return pages.get_template(template).render(**values)


def write_block(page: Path, name: str, content: str) -> None:
    """Put this between the marks of a page."""
    page.write_text(with_block(page.read_text("utf-8"), name, content), encoding="utf-8")


def written(contents: Mapping[Path, str], *, check: bool) -> int:
    """Write the files that are not yet as they should be (``check``: none) and say which; the exit code."""
    stale = [file for file, text in contents.items() if not file.exists() or file.read_text("utf-8") != text]
    for file in stale:
        print(f"{file.relative_to(ROOT)} is {'out of date' if check else 'written'}", file=sys.stderr)
        if not check:
            file.write_text(contents[file], encoding="utf-8")
    return int(check and bool(stale))


class Recording:
    """A recording within a budget of seconds from now on, and what went wrong in it."""

    def __init__(self, budget: float) -> None:
        self.started, self.budget = time.monotonic(), budget
        self.problems: list[str] = []

    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.budget - (time.monotonic() - self.started)

    def say(self, text: str) -> None:
        """Print a line with the seconds since the beginning."""
        print(f"{time.monotonic() - self.started:6.1f} s  {text}", flush=True)

    def problem(self, text: str) -> None:
        """Keep and print what went wrong."""
        self.problems.append(text)
        self.say(f"PROBLEM: {text}")


def first(command: Sequence[str], pattern: str) -> str:
    """What ``pattern`` finds in the output of ``command``; ``unknown`` without either."""
    try:
        said = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    except OSError:
        said = ""
    found = re.search(pattern, said)
    return found.group(1) if found else "unknown"


def device() -> str:
    """The name of this machine's first GPU."""
    return first(("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"), r"(.+)")


def versions() -> dict[str, str]:
    """The GPU, and the versions of the tools, that a recording is of."""
    return {
        "device": device(),
        "driver": first(("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"), r"(\S+)"),
        "cuda": first(("nvcc", "--version"), r"release (\S+),"),
        "ncu": first(("ncu", "--version"), r"Version (\S+)"),
    }


def compiled(commands: Mapping[str, Sequence[str]]) -> list[str]:
    """Run these compilers, by the names of what they make, all at once; return what those that failed said."""

    def compile_one(name: str) -> str:
        result = subprocess.run(commands[name], check=False, capture_output=True, text=True)
        return "" if result.returncode == 0 else f"{name}: {result.stderr.strip()}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [message for message in pool.map(compile_one, commands) if message]


def run_to_end(
    command: Sequence[str], timeout: float, *, folder: Path, grace: float = 15.0
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in a folder; a timeout is a result with return code 124, not an exception.

    ``ncu`` is a shell script that starts the real profiler, which starts the program: all of them are one process
    group and are ended together. An interrupt first, for then ncu closes a report of the launches profiled so far
    within ``grace`` seconds.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=max(timeout, 1.0))
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
    try:
        output, errors = process.communicate(timeout=grace)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
    return subprocess.CompletedProcess(command, 124, output, errors)


def ended(result: subprocess.CompletedProcess[str]) -> str:
    """How a process ended, and its last words."""
    return f"ended with {result.returncode}: {(result.stdout + result.stderr).strip()[-400:]}"


def passes_of(result: subprocess.CompletedProcess[str]) -> list[int]:
    """How often ncu replayed each launch that it profiled."""
    return [int(passes) for passes in re.findall(r"- (\d+) pass", result.stdout)]


def launches_of(result: subprocess.CompletedProcess[str]) -> int:
    """How many launches ncu profiled."""
    return len(re.findall(r"^==PROF== Profiling ", result.stdout, re.MULTILINE))


def complaints_of(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The errors and warnings of ncu."""
    return re.findall(r"^==(?:ERROR|WARNING)==.*", result.stdout + result.stderr, re.MULTILINE)


def compress(source: Path, target: Path, *, preset: int) -> int:
    """Compress ``source`` into ``target`` as xz; return the size. Large files become several streams, made at once."""
    content = source.read_bytes()
    chunks = [content[start : start + CHUNK] for start in range(0, len(content), CHUNK)] or [b""]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        packed = b"".join(pool.map(lambda chunk: lzma.compress(chunk, preset=preset), chunks))
    target.write_bytes(packed)
    return len(packed)


def loaded(source: Path) -> ModuleType:
    """A Python file as a module, loaded once; its name is made of its folder's and its own."""
    name = f"{source.parent.name}_{source.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, source)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def processor_seconds(*, children: bool = True) -> float:
    """Of the children of this process that have ended; else of this process alone."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mb(pid: int | str = "self") -> int:
    """Largest resident memory that a process has had so far, 0 if it is gone.

    ``ru_maxrss`` knows of that of the process that started it, too.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s*(\d+)", status)
    return int(found[1]) >> 10 if found else 0


def rows_of(table: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, each by the titles of its columns."""
    with table.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def lines_of(text: str) -> list[dict[str, Any]]:
    """The JSON lines among what a program (and ncu around it) printed."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
