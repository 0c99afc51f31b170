"""The house keeps its shape: imports flow one way, every package is listed, names live in one place."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gemmprof.base.foreign_files import facts
from gemmprof.metrics import constants

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "profiler", "analysis", "reports", "templates")

MAY_IMPORT = {
    "base": set(),
    "kernels": {"base"},
    "profiler": {"base", "kernels"},
    "analysis": {"base"},
    "reports": {"base", "analysis", "templates"},
    "templates": set(),
    "commands": {"base", "kernels", "profiler", "analysis", "reports", "templates", "commands"},
}
"""Which rooms a room may import; every room may import itself."""


def room_of(module: str) -> str:
    """``gemmprof.analysis.occupancy.table`` → ``analysis``; the shared base and the front door are told apart."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in ROOMS:
        return parts[1]
    if len(parts) > 1 and parts[1] in ("commands", "arguments", "api", "cli", "__main__"):
        return "commands"
    return "base"


@cache
def sources() -> list[tuple[str, Path]]:
    """Every module with its file."""
    return list(_sources())


@cache
def tree_of(file: Path) -> ast.Module:
    """What a file says; parsed once for all tests."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes_of(file: Path) -> list[ast.AST]:
    """Everything in a file."""
    return list(ast.walk(tree_of(file)))


def _sources() -> Iterator[tuple[str, Path]]:
    for folder in (*ROOMS, "gemmprof"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            if parts[0] == "gemmprof" and parts[1] in ROOMS:
                continue  # the links gemmprof/<room>
            parts = parts if parts[0] == "gemmprof" else ("gemmprof", *parts)
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def test_sub_packages_are_seen() -> None:
    modules = {module for module, _ in sources()}
    assert {
        "gemmprof.analysis.sections.roofline",
        "gemmprof.reports.pages.html",
        "gemmprof.metrics.patterns",
    } <= modules


def is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


@cache
def imports_of(file: Path) -> list[tuple[str, int]]:
    """What a file imports, in functions, too, with the line."""
    return list(imports(tree_of(file)))


def imports(tree: ast.AST, *, top_level_only: bool = False) -> Iterator[tuple[str, int]]:
    """Imported module names with their line; `if TYPE_CHECKING:` blocks do not run and do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and is_type_checking(node.test):
            continue
        if top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno
        else:
            yield from imports(node, top_level_only=top_level_only)


def test_imports_flow_one_way() -> None:
    wrong = []
    for module, file in sources():
        room = room_of(module)
        for name, line in imports_of(file):
            if not name.startswith("gemmprof"):
                continue
            target = room_of(name)
            if target == room or target in MAY_IMPORT[room]:
                continue
            wrong.append(f"{file.relative_to(ROOT)}:{line}: {room} imports {name} ({target})")
    assert not wrong, "\n".join(wrong)


def all_imports(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported anywhere: late ones and those for types alone, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def circles(graph: dict[str, set[str]]) -> list[str]:
    """What is left of the graph once everything is taken out that leads nowhere."""
    left = dict(graph)
    while ends := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in ends:
            del left[module]
    return sorted(left)


def test_no_circle_between_modules() -> None:
    """Late imports and those for types included: two modules that need each other are one, or three."""
    known = dict(sources())

    def home(name: str) -> str:
        while name and name not in known:
            name = name.rpartition(".")[0]
        return name

    graph = {
        module: {home(name) for name in all_imports(tree_of(file))} - {module, ""}
        for module, file in known.items()
    }
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert circles(graph) == []


MOST_MODULES = 20
"""In a folder: more are not known by name after a day."""


def test_no_folder_holds_too_many_modules() -> None:
    folders = Counter(file.parent for _, file in sources() if file.stem != "__init__")
    assert {folder.name: count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_no_module_name_stands_twice() -> None:
    """But a command's, which has the name of what it calls."""
    names = Counter(
        file.stem
        for module, file in sources()
        if file.stem not in ("__init__", "__main__") and not module.startswith("gemmprof.commands.")
    )
    assert {name for name, count in names.items() if count > 1} == set()


WRITES_JSON = {
    "gemmprof.base.documents": "the one encoder",
    "gemmprof.runs.directory": "run.json may hold NaN",
    "gemmprof.children.line_worker": "lines of a pipe",
    "gemmprof.analysis.reading.native": "lines of a pipe",
    "gemmprof.api.region": "names of files for a child",
    "gemmprof.kernels.compiler": "what is hashed",
    "gemmprof.reports.tables.launches": "a column of Parquet",
    "gemmprof.reports.tables.export": "metadata of Parquet",
    "gemmprof.reports.history.store": "metadata of Parquet",
}
"""Who writes JSON; what a person or a later call reads is a `Document`, encoded in the first place."""


def test_every_json_is_a_typed_document() -> None:
    wrong, writers = [], set()
    for module, file in sources():
        tree = tree_of(file)
        if any(
            isinstance(node, ast.Call) and ast.unparse(node.func).startswith("json.dump")
            for node in nodes_of(file)
            if getattr(getattr(node, "func", None), "attr", "").startswith("dump")
        ):
            writers.add(module)
        wrong += [
            f"{file.relative_to(ROOT)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Dict)
            and any(isinstance(key, ast.Constant) and key.value == "format" for key in node.keys)
        ]
    assert not wrong, "a document that is built as a dict:\n" + "\n".join(wrong)
    assert writers == set(WRITES_JSON)


def test_nothing_is_keyed_by_where_it_lies_or_by_a_sentence() -> None:
    """`id()` is no key: what is equal is told apart, and what is gone comes back. Nor is a text what a memo is of."""
    wrong = []
    for _, file in sources():
        for node in nodes_of(file):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name == "id" or (
                name == "once" and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
            ):
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)


def test_a_name_of_a_number_means_one_thing_in_explanation() -> None:
    """A threshold's name stands for one number in all of the room: two of a name are near things that drift apart."""
    values: dict[str, dict[float, str]] = {}
    for _, file in sources():
        if "explanation" not in file.parts:
            continue
        for node in tree_of(file).body:
            name = node.targets[0] if isinstance(node, ast.Assign) else None
            with contextlib.suppress(ValueError):
                if (
                    isinstance(node, ast.Assign)
                    and isinstance(name, ast.Name)
                    and not name.id.startswith("_")
                ):
                    value = ast.literal_eval(node.value)
                    if isinstance(value, int | float):
                        values.setdefault(name.id, {})[value] = f"{file.relative_to(ROOT)}:{node.lineno}"
    assert values["GAPLESS"]
    wrong = {name: found for name, found in values.items() if len(found) > 1}
    assert not wrong, wrong


def test_commands_hold_no_tables_and_no_arithmetic() -> None:
    wrong = []
    for module, file in sources():
        if not module.startswith(("gemmprof.commands", "gemmprof.arguments")):
            continue
        tree = tree_of(file)
        wrong += [
            f"{file.name}:{line}: {name}" for name, line in imports_of(file) if name.startswith("rich.table")
        ]
        wrong += [
            f"{file.name}:{node.lineno}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow))  # "/" joins paths
        ]
    assert not wrong, "\n".join(wrong)


def test_all_imports_are_absolute() -> None:
    for _, file in sources():
        for node in nodes_of(file):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}:{node.lineno}"


@pytest.mark.parametrize(
    ("package", "homes"),
    [("ncu_report", {"analysis"}), ("torch", {"kernels", "profiler"}), ("jinja2", {"reports"})],
)
def test_heavy_packages_stay_in_their_rooms(package: str, homes: set[str]) -> None:
    for module, file in sources():
        names = {name.split(".")[0] for name, _ in imports_of(file)}
        if package in names:
            assert room_of(module) in homes, f"{file.relative_to(ROOT)} imports {package}"


def test_torch_is_imported_only_inside_functions() -> None:
    for _, file in sources():
        tree = tree_of(file)
        names = {name.split(".")[0] for name, _ in imports(tree, top_level_only=True)}
        assert "torch" not in names, f"{file.relative_to(ROOT)} imports torch when it is imported"


METRIC_NAME = re.compile(
    r"^(?:breakdown:)?(?:sm|smsp|gpc|gpu|l1tex|lts|dram|launch|sass|device|lrc|pcie|idc|fbpa|derived)__\w+"
)


def test_metric_names_live_in_one_place() -> None:
    wrong = []
    for module, file in sources():
        if module.startswith("gemmprof.metrics"):
            continue
        for node in nodes_of(file):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and METRIC_NAME.match(node.value)
            ):
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}")
    assert not wrong, "metric names outside gemmprof/metrics:\n" + "\n".join(wrong)


def test_every_named_metric_is_used_and_known_to_type_checkers() -> None:
    """The constants are rows of a table: nothing else would miss one that nobody reads, or the stub that is older."""
    used = {name for _, file in sources() for name in named(tree_of(file))}
    read = {row[0] for row in facts(constants.__file__, "constants.csv") if row[3]}  # by its group
    assert {name for name in constants.ROWS_OF if name not in used} <= read
    written = subprocess.run(
        [sys.executable, "-c", "import build_metric_constants; print(build_metric_constants.stub(), end='')"],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(constants.__file__).with_suffix(".pyi").read_text("utf-8") == written.stdout


def test_every_package_folder_is_listed_for_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    found = set()
    for folder in (*ROOMS, "gemmprof"):
        for marker in (ROOT / folder).rglob("__init__.py"):
            if any(part in ROOMS for part in marker.relative_to(ROOT).parts[1:]):
                continue  # the links gemmprof/<room>
            parts = marker.parent.relative_to(ROOT).parts
            found.add(".".join(parts if parts[0] == "gemmprof" else ("gemmprof", *parts)))
    assert found == listed


def test_rooms_are_linked_for_editors() -> None:
    for room in ROOMS:
        link = ROOT / "gemmprof" / room
        assert link.is_symlink() and link.resolve() == ROOT / room


def test_help_imports_nothing_heavy() -> None:
    heavy = {"torch", "pandas", "matplotlib", "ncu_report", "numpy", "jinja2", "pyarrow"}
    program = (
        "import sys; from gemmprof.cli import build_parser; from gemmprof.commands import COMMANDS\n"
        "for name in COMMANDS: build_parser(name)\n"
        f"sys.exit(' '.join({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


MOST_ENTERED = 70
"""Modules with a function that runs: what somebody reads who follows one answer from end to end."""


def test_explaining_a_report_enters_few_modules(tmp_path: Path) -> None:
    program = (
        "import inspect, sys\n"
        "entered, flags = set(), inspect.CO_NEWLOCALS | inspect.CO_OPTIMIZED\n"
        "def seen(frame, event, argument):\n"
        "    module, code = frame.f_globals.get('__name__', ''), frame.f_code\n"
        "    if event == 'call' and module.startswith('gemmprof') and code.co_filename != '<string>':\n"
        "        if code.co_flags & flags == flags and not code.co_name.startswith('<'):\n"
        "            entered.add(module)\n"
        "from gemmprof.cli import main\n"
        "sys.setprofile(seen)\n"
        f"code = main(['explain', {str(ROOT / 'tests' / 'data' / 'flaws_tensor.ncu-rep.xz')!r}, '--launch', '0'])\n"
        "sys.setprofile(None)\n"
        "print(*sorted(entered), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    # Nothing disassembled before: that takes a module more.
    own = {**os.environ, "GEMMPROF_CACHE": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", program], env=own, capture_output=True, text=True, check=True
    )
    entered = told.stderr.split()
    assert "gemmprof.analysis.explanation.engine" in entered
    assert len(entered) <= MOST_ENTERED, "\n".join(entered)


HOUSE_WORDS = {
    r"mend(s|ed|ing)?": "fix",
    r"blam(e|es|ed|ing)": "attribute",
    "guilty": "with most excess",
    "culprit": "cause",
    r"told from (its|their) names?": "known by",
}
"""Words of our own, and the field's word for each."""
CORPUS = ("docs/corpus.md", "docs/explain_scores.md")
"""The corpus calls the sides of its pairs ``flawed`` and ``mended``: a format that is recorded."""


def test_plain_words() -> None:
    pages = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "templates").rglob("*.html")),
    ]
    wrong = []
    for file in [*(file for _, file in sources()), *pages]:
        if str(file.relative_to(ROOT)) in CORPUS:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            wrong += [
                f"{file.relative_to(ROOT)}:{number}: '{found[0]}', better {plain}"
                for word, plain in HOUSE_WORDS.items()
                if (found := re.search(rf"(?<![a-z]){word}(?![a-z])", line, re.IGNORECASE))
            ]
    assert not wrong, "\n".join(wrong)


CALLED_FROM_OUTSIDE = {
    "scaled_mm", "to_dataframe", "to_markdown", "_repr_html_", "check_against",  # by users, and by notebooks
    "warps_left", "active_share",  # of results that users hold
    "pytest_addoption", "format_help", "writable", "visit_UnaryOp", "visit_BoolOp", "code_generator_class",
    "pytest_runtest_makereport", "setup", "_fill_text",
    "_output_child_pre", "_output_child_post",  # by the libraries whose classes these are
    "FRONT_LINES",  # what a test holds the front door to
}  # fmt: skip


def named(tree: ast.AST) -> Iterator[str]:
    """Every name that code uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def test_no_name_is_dead_or_there_for_tests_alone() -> None:
    trees = {file: tree_of(file) for _, file in sources() if not file.stem.endswith("_pb2")}
    used = Counter(name for tree in trees.values() for name in named(tree))
    for file in sorted((ROOT / "tools").glob("*.py")):
        used.update(named(tree_of(file)))
    for file in (
        *sorted((ROOT / "templates").rglob("*.html")),
        *ROOT.glob("analysis/explanation/causes/*.csv"),
        *ROOT.glob("reports/pages/*.csv"),
    ):
        used.update(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    dead = []
    for file, tree in trees.items():
        methods = (node for kind in tree.body if isinstance(kind, ast.ClassDef) for node in kind.body)
        for node in [*tree.body, *(one for one in methods if isinstance(one, ast.FunctionDef))]:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            else:
                continue
            own = Counter(named(node))
            dead += [
                f"{file.relative_to(ROOT)}:{node.lineno}: {name}"
                for name in names
                if used[name] <= own[name] and not name.startswith("__") and name not in CALLED_FROM_OUTSIDE
            ]
    assert not dead, "\n".join(dead)


def test_every_file_that_the_design_names_is_there() -> None:
    text = (ROOT / "docs/design.md").read_text("utf-8") + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[\w.]+/)+\w+\.(?:py|md|proto|json|toml|csv))`", text))
    assert len(named) > 40
    missing = {
        name for name in named if not any((ROOT / folder / name).exists() for folder in (".", "gemmprof"))
    }
    assert missing == set()


def test_what_make_test_has_a_part_of_is_whole_in_the_campaign() -> None:
    """Outside tests/safety `make campaign` asks for the mark alone, which `inputs` does not need to stand beside."""
    file = "tests/analysis/test_families.py"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "campaign",
            file,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "GEMMPROF_CAMPAIGN": "1"},
    )
    assert "inputs(20, 7)" in (ROOT / file).read_text("utf-8")
    assert "test_families.py::" in done.stdout, done.stdout + done.stderr
