"""Who may open what: one door for files that somebody else may have written, read from the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "profiler", "analysis", "reports", "templates")

DOOR = "gemmprof.base.foreign_files"
READERS = {
    # file objects and bytes
    *("open", "fdopen", "read_bytes", "read_text", "readlines", "mmap", "memmap", "fromfile", "copyfile"),
    *("copy", "copy2", "copytree", "unpack_archive", "getlines"),
    # decompression
    *(
        "decompress",
        "decompressobj",
        "LZMADecompressor",
        "ZstdDecompressor",
        "LZMAFile",
        "GzipFile",
        "ZipFile",
    ),
    # tables and documents straight from a path
    *(
        "ParquetFile",
        "read_table",
        "read_metadata",
        "read_schema",
        "read_parquet",
        "read_csv",
        "read_feather",
    ),
    *("OSFile", "memory_map", "open_file", "open_stream", "dataset", "load", "safe_load"),
}
"""Names of functions that read a file or unpack bytes."""
MODULES = {
    *(
        "builtins",
        "os",
        "io",
        "shutil",
        "lzma",
        "gzip",
        "zlib",
        "bz2",
        "zstandard",
        "tomllib",
        "json",
        "pickle",
    ),
    *("np", "numpy", "pa", "pq", "ipc", "mmap", "linecache", "zipfile", "tarfile", "codecs"),
}
ALLOWED = {
    DOOR: "the door",
    "gemmprof.base.output": "locks of folders, files that it is writing itself, without links",
    "gemmprof.base.printable": "/dev/null",
    "gemmprof.base.system": "folders, to lock them or to have them on the disk",
    "gemmprof.children.line_worker": "its own pipes, and a file of events that it appends to",
    "gemmprof.analysis.reading.native": "its own pipes",
    "gemmprof.analysis.reading.unpack": "a duplicate of what the door opened",
    "gemmprof.analysis.reading.lookup": "memory of its own, without a name",
    "gemmprof.reports.tables.parquet": "what the door opened, checked by schema and counted",
    "gemmprof.reports.history.index": "what the door read, message by message",
    "gemmprof.reports.history.compaction": "files that it has just written itself, under the store's lock",
    "gemmprof.reports.tables.files": "slices that it has just written into a folder of its own",
    "gemmprof.reports.tables.export": "its parent's job, from a pipe",
    "gemmprof.reports.figures.__init__": "the current folder, to come back to it",
    "gemmprof.api.opened": "its own `open`",
    "gemmprof.profiler.ncu.lean_sections": "ncu's own section files, copied",
}
"""Modules with readers of their own, and why."""
WRITES = {"w", "wb", "a", "ab", "x", "xb"}


def sources() -> Iterator[tuple[str, Path]]:
    for folder in (*ROOMS, "gemmprof"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            if parts[:2] not in {("gemmprof", room) for room in ROOMS}:  # the links gemmprof/<room>
                yield ".".join(parts if parts[0] == "gemmprof" else ("gemmprof", *parts)), file


@cache
def tree_of(file: Path) -> ast.Module:
    """What a file says; parsed once for both tests."""
    return ast.parse(file.read_text(encoding="utf-8"))


def readers(tree: ast.AST) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name):
            name, of = function.id, "builtins" if function.id == "open" else ""
        elif isinstance(function, ast.Attribute):
            name = function.attr
            of = (
                function.value.id
                if isinstance(function.value, ast.Name)
                else ast.unparse(function.value).rpartition(".")[2]
            )
        else:
            continue
        modes = [
            a.value
            for a in (*node.args, *(k.value for k in node.keywords if k.arg == "mode"))
            if isinstance(a, ast.Constant)
        ]
        if name not in READERS or WRITES & set(modes):
            continue
        path_like = name in ("read_bytes", "read_text", "open") and isinstance(function, ast.Attribute)
        if (
            of in MODULES
            or (path_like and not is_ours(function))
            or name.endswith(("Decompressor", "decompressobj"))
        ):
            found.append((node.lineno, ast.unparse(node)[:80]))
    return found


def is_ours(function: ast.expr) -> bool:
    """``HistoryStore.open``, ``opened.open`` and ``self.open`` are this project's; resources are its files."""
    text = ast.unparse(function)
    return (
        text in ("HistoryStore.open", "opened.open", "self.open")
        or "resources.files" in text
        or "__file__" in text
    )


def test_foreign_files_come_through_one_door() -> None:
    wrong = []
    for module, file in sources():
        if module in ALLOWED:
            continue
        for line, what in readers(tree_of(file)):
            wrong.append(f"{file.relative_to(ROOT)}:{line}: {what}: read it with {DOOR}")
    assert not wrong, "\n".join(wrong)


def test_the_scan_sees_what_it_is_for() -> None:
    for code in ("open(p)", "path.open('rb')", "p.read_bytes()", "pq.read_table(p)", "zlib.decompress(b)",
                 "lzma.open(p)", "os.open(p, 0)", "tomllib.load(f)", "zstandard.ZstdDecompressor()"):  # fmt: skip
        assert readers(ast.parse(code)), code
    for code in ("path.open('w')", "HistoryStore.open(f)", "read_bytes(p)", "store.load(x)"):
        assert not readers(ast.parse(code)), code


def test_expressions_from_outside_run_in_linear_time() -> None:
    """Python's engine takes patterns that stand in the code alone: text, or put together of such text."""
    wrong = []
    for module, file in sources():
        if module == "gemmprof.base.regex":
            continue
        for node in ast.walk(tree_of(file)):
            called = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args
            if called and ast.unparse(node.func).removeprefix("re.") in (
                "compile", "search", "match", "fullmatch", "sub", "findall", "finditer", "split"
            ) and not is_written_here(node.args[0]):  # fmt: skip
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:80]}")
    assert not wrong, "\n".join(wrong)


def is_written_here(pattern: ast.expr) -> bool:
    if isinstance(pattern, (ast.Constant, ast.JoinedStr)):
        return True
    if isinstance(pattern, ast.BinOp):
        return is_written_here(pattern.left) and is_written_here(pattern.right)
    if isinstance(pattern, ast.Call):
        return ast.unparse(pattern.func) in ("re.escape", "'|'.join")
    # A constant of its module, or what a loop takes from one.
    return isinstance(pattern, ast.Name) and (
        pattern.id.isupper() or pattern.id in ("pattern", "signature", "text")
    )
