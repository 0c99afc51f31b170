"""One way in for files that somebody else may have written, one way out for their texts at each place."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

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
    "gemmprof.analysis.reading.frame": "a duplicate of what the door opened",
    "gemmprof.analysis.reading.lookup": "memory of its own, without a name",
    "gemmprof.reports.tables.parquet": "what the door opened, checked by schema and counted",
    "gemmprof.reports.tables.export": "slices that it has just written into a folder of its own",
    "gemmprof.reports.figures.__init__": "the current folder, to come back to it",
    "gemmprof.api.opened": "its own `open`",
    "gemmprof.profiler.ncu.command": "ncu's own section files, copied",
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
    """What a file says; parsed once for all tests."""
    return ast.parse(file.read_text(encoding="utf-8"))


def readers(tree: ast.AST) -> list[tuple[int, str]]:
    found = []
    # Constants of the module that name a file beside it: the package's own data, which a confined server reads, too.
    packaged = {
        node.targets[0].id
        for node in getattr(tree, "body", [])
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and ast.unparse(node.value).startswith("Path(__file__).with_name('")
    }
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
        if name not in READERS or WRITES & set(modes) or of == DOOR.rpartition(".")[2]:
            continue
        path_like = name in ("read_bytes", "read_text", "open") and isinstance(function, ast.Attribute)
        if (
            of in MODULES
            or (path_like and not is_ours(function) and of not in packaged)
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
    assert readers(ast.parse("TABLE = Path(name)\nTABLE.read_bytes()"))
    for code in ("path.open('w')", "HistoryStore.open(f)", "read_bytes(p)", "store.load(x)",
                 "TABLE = Path(__file__).with_name('table.json')\nTABLE.read_bytes()"):  # fmt: skip
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
        pattern.id.isupper() or pattern.id in ("pattern", "signature", "text", "unsafe")
    )


COMMAND = "runs inside `guarded_output`, which renders whatever is printed"
OWN_PIPE = "its own pipe to the process that started it"
MADE_HERE = "put together of cells, fragments and pictures that the environment has rendered"
ENGINE = "caught by its room, which makes a `GemmprofError` of it"
PLACES: dict[str, dict[str, str]] = {
    "print": {
        **dict.fromkeys(("gemmprof.commands", "gemmprof.arguments", "gemmprof.cli"), COMMAND),
        "gemmprof.analysis.reading.native": OWN_PIPE,
    },
    "console": {"gemmprof.arguments.common": "the one console, on the guarded streams"},
    "stream": {
        "gemmprof.__init__": "a constant, before anything is loaded",
        "gemmprof.arguments.common": "asks how wide the terminal is",
        "gemmprof.base": "the guard itself, and pipes",
        "gemmprof.commands.mcp": "messages of the protocol, JSON for a program",
        "gemmprof.commands.profile": "the descriptor that the user's own program prints to",
        "gemmprof.reports.terminal.progress_bars": "the guarded stream",
        "gemmprof.api.region": "lines of `reports.agents`, rendered",
    },
    "log": {},
    "markup": {
        "gemmprof.reports.pages": MADE_HERE,
        "gemmprof.reports.figures.svg": "matplotlib's SVG, whose texts were made visible before",
    },
    "template": {"gemmprof.reports.pages.environment": "the one environment: escapes and makes visible"},
    "csv": {
        "gemmprof.reports.tables.export": "every cell goes through `spreadsheet`",
    },
    "agents": {"gemmprof.api.server": "marks what is foreign as data, fences and bounds errors"},
    "raise": {
        "gemmprof.__init__": "names an attribute that a programmer wrote",
        "gemmprof.analysis.occupancy.calculator": ENGINE,
        "gemmprof.analysis.whole.traces": ENGINE,
        "gemmprof.base": ENGINE,
        "gemmprof.kernels": "arguments of the programmer's own call",
        "gemmprof.model": "arguments of the programmer's own call",
        "gemmprof.profiler.gpu_worker": "a sentence of the project's own: no GPU is there",
        "gemmprof.runs.directory": ENGINE,
    },
}
"""Where text leaves the process, kind by kind, and who alone may do it. A room stands for its modules."""
STREAMS = ("sys.__stdout__", "sys.__stderr__", "sys.stdout", "sys.stderr")
BUILTIN_ERRORS = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
}


def is_constant(node: ast.expr) -> bool:
    """Whether it is text that stands in the code, or was rendered."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("log_text", "one_line")
    if isinstance(node, ast.BinOp):
        return is_constant(node.left) and is_constant(node.right)
    return isinstance(node, ast.Constant)


def outlets(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Kind, line and code of whatever lets text out of the process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if ast.unparse(node.exc.func) in BUILTIN_ERRORS and not all(map(is_constant, node.exc.args)):
                yield "raise", node.lineno, ast.unparse(node)[:90]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            if any(name.partition(".")[0] == "mcp" for name in names):
                yield "agents", node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in STREAMS[:2]:
            yield "stream", node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            for name, kind in (("Console", "console"), ("Environment", "template")):
                if name in bases:
                    yield kind, node.lineno, f"class {node.name}({name})"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        of, _, name = called.rpartition(".")
        if called == "print":
            yield "print", node.lineno, ast.unparse(node)[:90]
        elif name == "Console":
            yield "console", node.lineno, called
        elif (
            called == "os.write"
            or (of in STREAMS and name in ("write", "writelines", "fileno"))
            or (name in ("write", "writelines") and of.endswith("stdout.buffer"))
        ):
            yield "stream", node.lineno, ast.unparse(node)[:90]
        elif called == "warnings.warn" or (
            name in ("debug", "info", "warning", "error", "exception", "critical", "log")
            and of.partition("(")[0].rpartition(".")[2].lower().strip("_")
            in ("log", "logger", "logging", "getlogger")
        ):
            yield "log", node.lineno, ast.unparse(node)[:90]
        elif name == "Markup" and not all(map(is_constant, node.args)):
            yield "markup", node.lineno, ast.unparse(node)[:90]
        elif name in ("Environment", "Template", "from_string", "from_markup", "from_ansi"):
            yield "template", node.lineno, ast.unparse(node)[:90]
        elif name in ("to_csv", "write_csv", "DictWriter", "CSVWriter") or called == "csv.writer":
            yield "csv", node.lineno, ast.unparse(node)[:90]


@cache
def outlets_of(file: Path) -> list[tuple[str, int, str]]:
    """Those of a file."""
    return list(outlets(tree_of(file)))


def may(module: str, kind: str) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in PLACES[kind])


def test_text_leaves_through_the_renderer_of_its_place_alone() -> None:
    """A new print, log line, Markup, CSV or exception with text in it beside the places that render it is refused."""
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {what}: text leaves here ({kind}) past every renderer"
        for module, file in sources()
        for kind, line, what in outlets_of(file)
        if not may(module.removesuffix(".__init__") or module, kind) and not may(module, kind)
    ]
    assert not wrong, "\n".join(wrong)


RAW_IN_A_TEMPLATE = re.compile(r"\|\s*(?:safe|forceescape|xmlattr)\b|autoescape|\{%\s*raw")
OUR_OWN = {"style", "script", "scripts[0]"}
"""What templates print as it is: the style and the scripts of the page, which are files of gemmprof's."""


def raw_parts(template: str) -> list[str]:
    found = []
    for part in re.findall(r"\{[{%].*?[%}]\}", template, re.DOTALL):
        if RAW_IN_A_TEMPLATE.search(part) and part.strip("{}% ").partition("|")[0].strip() not in OUR_OWN:
            found.append(part)
    return found


def test_templates_print_nothing_raw() -> None:
    wrong = {
        str(file.relative_to(ROOT)): parts
        for file in sorted((ROOT / "templates").rglob("*"))
        if file.suffix in (".html", ".svg", ".xml") and (parts := raw_parts(file.read_text(encoding="utf-8")))
    }
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("print", "print(profile.name)"),
        ("console", "rich.console.Console().print(name)"),
        ("stream", "sys.stdout.write(name)"),
        ("stream", "sys.__stderr__.write(name)"),
        ("stream", "os.write(2, name.encode())"),
        ("stream", "sys.stdout.buffer.write(data)"),
        ("log", "log.warning('%s', name)"),
        ("log", "logging.getLogger('x').error(name)"),
        ("log", "warnings.warn(name)"),
        ("markup", "Markup(f'<b>{name}</b>')"),
        ("markup", "markupsafe.Markup('<b>' + name)"),
        ("template", "jinja2.Environment()"),
        ("template", "Text.from_markup(name)"),
        ("csv", "csv.writer(file).writerow([name])"),
        ("csv", "table.to_csv(path)"),
        ("agents", "from mcp.server import FastMCP"),
        ("raise", "raise ValueError(f'no such kernel: {name}')"),
        ("raise", "raise KeyError(name)"),
    ],
)
def test_a_planted_hole_of_each_kind_is_seen(kind: str, code: str) -> None:
    assert kind in {found for found, _, _ in outlets(ast.parse(code))}
    assert not may("gemmprof.analysis.inputs.names", kind) and not may("gemmprof.reports.facts", kind)


def test_a_hole_planted_in_a_template_is_seen() -> None:
    for code in ("{{ kernel.name | safe }}", "{{name|safe}}", "{% autoescape false %}", "{% raw %}"):
        assert raw_parts(code), code
    for code in ("{{ style | safe }}", "{{ kernel.name }}"):
        assert not raw_parts(code), code


def test_what_is_allowed_is_used() -> None:
    """A permission that nobody uses any more is taken away."""
    used = {
        (kind, place)
        for module, file in sources()
        for kind, _, _ in outlets_of(file)
        for place in PLACES[kind]
        if module == place or module.startswith(f"{place}.")
    }
    assert used == {(kind, place) for kind, places in PLACES.items() for place in places}
