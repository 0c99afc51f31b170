"""`gemmprof REPORT`, one screen of what there is to gain; and the same ids, names, counts and order at every door."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Any

import in_process
import pyarrow.parquet as pq
import pytest
from kept import own_cache
from recorded_data import DATA, ROOT
from reports_in_bytes import keep_metrics, rewritten
from scale import CAMPAIGN, few

import gemmprof
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.inputs.conditions import ALIASES
from gemmprof.analysis.inputs.named_figures import findings
from gemmprof.analysis.inputs.selection import selection
from gemmprof.analysis.session import Session, load_session
from gemmprof.api.server import Tools
from gemmprof.cli import main
from gemmprof.commands import COMMANDS
from gemmprof.model.profiles import NOTABLE
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.html import Report, index_article, kernel_article
from gemmprof.reports.terminal import overview
from gemmprof.reports.terminal.roofline_table import kernels, name_of
from gemmprof.runs.directory import RUN_FILE

TRANSFORMER = ROOT / "docs" / "examples" / "recorded" / "transformer.ncu-rep.xz"
RECORDED = Path(gemmprof.__file__).parent / "recorded"
LAUNCHES = TRANSFORMER.with_name("transformer_launches.ncu-rep.xz")
SEVERAL = (
    "flaws_atomics",
    "flaws_bank_conflicts",
    "flaws_global_access",
    "ladder_simple",
    "launches_same_kernel",
    "names_nvtx",
    "names_templates",
    "train_100",
)
"""Reports of several launches: of several kernels, of one kernel on several grids, in several NVTX ranges."""

Printed = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Printed:
    def run(*arguments: str, columns: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(arguments) == 0
        return capsys.readouterr().out

    return run


def paths() -> list[Path]:
    return [*(DATA / f"{name}.ncu-rep.xz" for name in SEVERAL), TRANSFORMER, LAUNCHES]


CHOSEN = [
    DATA / f"{name}.ncu-rep.xz" for name in ("flaws_bank_conflicts", "names_nvtx", "launches_same_kernel")
]
"""Several kernels, several ranges, several grids."""
REPORTS = [
    *CHOSEN,
    *(DATA / f"{name}.ncu-rep.xz" for name in ("flaws_cluster", "modes_range")),
    TRANSFORMER,
]
"""The same, launches of clusters, a range that was replayed as one, and kernels of libraries."""


def ids(text: str) -> list[str]:
    """Ids that begin a line, in order."""
    return re.findall(r"^(#\d+)\b", text, re.MULTILINE)


def inside(cut: str, whole: str) -> bool:
    """Whether a name that may have been cut in its middle is this one."""
    places = [place for place, character in enumerate(cut) if character == "…"]
    return cut == whole or any(
        whole.startswith(cut[:place]) and whole.endswith(cut[place + 1 :]) for place in places
    )


@dataclass(frozen=True)
class Row:
    """What a door says of a family; None where it does not say that."""

    id: str
    name: str
    launches: int | None = None
    saves: int | None = None
    """Per cent that the first finding saves; 0 without one."""


@dataclass(frozen=True)
class Answer:
    """What a door says of a report.

    Attributes:
        rows: of the families, as they are listed.
        order: what they are listed by: ``gain``, ``time`` (which is that of the ids) or ``launch``.
        text: in which the counts of launches, kernels and families stand in words; '' for data.
    """

    rows: list[Row]
    order: str = "gain"
    text: str = ""


@dataclass
class Asked:
    """A report, and how to ask for it."""

    path: Path
    printed: Printed
    found: Callable[[Path], list[dict[str, Any]]]

    @cached_property
    def session(self) -> Session:
        return load_session([self.path], listed=True)

    @cached_property
    def opened(self) -> Any:
        return gemmprof.open(self.path)

    @cached_property
    def tools(self) -> Tools:
        return Tools([self.path.parent])

    @cached_property
    def pages(self) -> Report:
        session = load_session([self.path])
        session.explain(range(len(session.kernels)))
        return Report(session, plan(session), single_file=True)

    def json(self, *words: str) -> Any:
        return json.loads(self.printed(*words, "--json"))


def rows_in(text: str, pattern: str) -> list[Row]:
    """A row a match of a pattern with the groups ``id``, ``name`` and perhaps ``launches`` and ``saves``."""
    found = []
    for match in re.finditer(pattern, text, re.MULTILINE):
        groups = match.groupdict()
        launches = int(groups["launches"].replace(",", "")) if groups.get("launches") else None
        saves = int(groups["saves"] or 0) if "saves" in groups else None
        found.append(Row(groups["id"], groups["name"].strip(), launches, saves))
    return found


def table_in(page: str, *columns: str) -> list[Row]:
    """The rows of a page's table by its columns for id, kernel, launches and saves; '' for one that it has not."""

    def texts(row: str) -> list[str]:
        # Ranges below a name and times below a number are no part of them.
        told = (
            re.sub(r'<span class="idea">.*?</span>|<br>.*', "", cell)
            for cell in re.split(r"<t[hd]\b", row)[1:]
        )
        return [unescape(re.sub(r"^[^>]*>|<[^>]*>", "", cell)).strip() for cell in told]

    table = next(part for part in page.split("<table")[1:] if f">{columns[0]}</th>" in part)
    head, _, body = table.partition("</table>")[0].partition("<tbody>")
    places = [texts(head).index(name) if name in texts(head) else None for name in columns]
    found = []
    for row in body.split("<tr")[1:]:
        id_, name, launches, saves = ("" if at is None else texts(row)[at] for at in places)
        count = int(launches.replace(",", "")) if launches else None
        if not id_.startswith("#"):  # it stands before the name
            id_, _, name = name.partition(" ")
        found.append(Row(id_, name, count, int((saves or "0").split(" ")[0]) if columns[3] else None))
    return found


def per_cent(worst: Mapping[str, Any] | None) -> int:
    """What is told of it in text: nothing of what saves little, which JSON has among its findings."""
    return round(100 * worst["saves"]) if worst and worst["saves"] >= NOTABLE else 0


def front(asked: Asked) -> Answer:
    text = asked.printed(str(asked.path))
    return Answer(
        rows_in(text, r"^(?P<id>#\d+) +(?P<name>\S.*)\n +(?:[\d.]+ %|–) +\S+ \S+ +(?P<launches>[\d,]+)  "
                      r"(?:.*?: (?P<saves>\d+) % of it|.*nothing found)")
        or rows_in(text, r"^(?P<id>#\d+) +[\d.]+ % +\S+ \S+ +(?P<launches>[\d,]+)  (?P<name>\S.*)$"),
        text=text,
    )  # fmt: skip


def show(asked: Asked) -> Answer:
    text = asked.printed("show", str(asked.path), columns=300)
    table = re.sub(r"(?s)^.*?(?=^id )|\n\n.*", "", text, flags=re.MULTILINE)
    at = table.find("kernel")
    rows = []
    for entry in re.split(r"^(?=#)", table, flags=re.MULTILINE)[1:]:  # the owner and the finding stand below
        saves = re.search(r": saves (\d+) %", entry)
        name = entry.partition("\n")[0][at:].strip()
        rows.append(Row(entry.split()[0], name, int(entry.split()[1]), int(saves[1]) if saves else 0))
    return Answer(rows or rows_in(text, r"^(?P<id>#\d+) (?P<name>.*?)  \("), text=text)


def families_of(document: Any) -> list[Row]:
    return [
        Row(one["id"], one["label"], len(one["launches"]), per_cent(one["worst"]))
        for one in document["families"]
    ]


def explain_json(asked: Asked) -> Answer:
    document = asked.json("explain", str(asked.path))
    assert sorted(one["launch"] for one in document["kernels"]) == list(range(len(asked.session.kernels)))
    rows = []
    for id_ in document["families"]:
        longest, *others = sorted(
            (one for one in document["kernels"] if one["family"] == id_),
            key=lambda one: -(one["duration_ns"] or 0),
        )
        rows.append(
            Row(id_, longest["label"], 1 + len(others), per_cent(next(iter(longest["findings"]), None)))
        )
    return Answer(rows)


def markdown_in(text: str) -> list[Row]:
    return rows_in(
        text,
        r"^## (?P<id>#\d+) `(?P<name>.*?)`.*\n\n"
        r".* under the profiler(?:, the longest of (?P<launches>\d+) launches)?.*\n"
        r"(?:(?!1\. |## ).*\n)*(?:1\. .* saves (?P<saves>\d+) %)?",
    )


def kernel_pages(asked: Asked) -> Answer:
    rows = []
    for page in asked.pages.plan.pages:
        text = str(kernel_article(asked.pages, page))
        (row,) = rows_in(
            re.sub(r"\n", " ", text),
            r"<h1[^>]*>(?P<name>.*?)</h1>.*?<p class=\"muted small\">(?P<id>#\d+) · [^<]*?"
            r"(?:longest of (?P<launches>[\d,]+) launches[^<]*)?</p>.*?(?:saves <strong>(?P<saves>\d+) %|$)",
        )
        rows.append(replace(row, name=unescape(row.name)))
    return Answer(rows, "launch")


def notebook_findings(asked: Asked) -> Answer:
    first: dict[str, Row] = {}
    if asked.opened.findings:
        for row in table_in(asked.opened.findings._repr_html_(), "id", "kernel", "", "saves"):
            first.setdefault(row.id, row)
    without = [Row(one.id, one.label, None, 0) for one in asked.session.families if one.worst is None]
    return Answer([*first.values(), *without])


def mcp_open(asked: Asked) -> Answer:
    text = asked.tools.open(asked.path.name, tokens=100_000)
    row = r"^\| (?P<id>#\d+) \| \d+ \| (?P<launches>[\d,]+) (?:\|[^|]*){2}"
    row += r"\| (?:(?P<saves>\d+) % [^|]+)? \|[^|]*\| `+(?P<name>.*?)`+ \|"
    return Answer(rows_in(text, row), text=text)


def mcp_listing(asked: Asked) -> Answer:
    text = asked.tools.listing(asked.path.name, tokens=100_000)
    row = r"^\| (?P<id>#\d+) \| \d+ \| (?P<launches>[\d,]+) (?:\|[^|]*){3}\| `+(?P<name>.*?)`+ \|"
    return Answer(rows_in(text, row), "time", text)


def find(asked: Asked) -> Answer:
    rows: dict[str, Row] = {}
    found = asked.found(asked.path)
    first = {family.id: family.worst.cause for family in asked.session.families if family.worst}
    assert [one["duration_ns"] for one in found] == sorted(
        (one["duration_ns"] for one in found), reverse=True
    )
    for one in found:  # the longest first, which is what stands for its family
        count = sum(other["family"] == one["family"] for other in found)
        savings = {name: value or 0 for name, value in one["values"].items() if name != "time"}
        # Behind what is named first another way to the same may save more.
        saves = savings.get(first.get(one["family"], ""), max(savings.values()))
        told = round(saves) if saves >= 100 * NOTABLE else 0
        rows.setdefault(one["family"], Row(one["family"], one["label"], count, told))
    return Answer([rows[id_] for id_ in sorted(rows, key=lambda id_: int(id_[1:]))], "time")


def compared(document: Any) -> list[Row]:
    return [
        Row(more["family"], more["label"], one["launches_after"])
        for one, more in zip(document["kernels"], document["details"], strict=True)
    ]


def diff_text(asked: Asked) -> Answer:
    text = asked.printed("diff", str(asked.path), str(asked.path), columns=300)
    return Answer(rows_in(text, r"^ *(?:SAME|CAN'T TELL) +(?P<id>#\d+) (?P<name>\S.*?)(?:  |$)"), "time")


def mcp_diff(asked: Asked) -> Answer:
    text = asked.tools.diff(asked.path.name, asked.path.name, tokens=100_000)
    return Answer(rows_in(text, r"^(?P<id>#\d+) `+(?P<name>.*?)`+: "), "time")


def exported(asked: Asked, folder: Path) -> Answer:
    asked.printed("export", str(asked.path), "--table", "kernels", "-o", str(folder))
    rows = pq.read_table(folder / "kernels.parquet").to_pylist()
    count = Counter(row["family"] for row in rows)
    found = {row["family"]: Row(f"#{row['family']}", row["label"], count[row["family"]]) for row in rows}
    return Answer([*found.values()], "launch")


def frame(asked: Asked) -> Answer:
    table = asked.opened.to_dataframe()
    count = Counter(table["family"])
    first = table.drop_duplicates("family").itertuples()
    return Answer([Row(f"#{row.family}", row.kernel, count[row.family]) for row in first], "launch")


def roofline(asked: Asked) -> Answer:
    kernels = asked.json("roofline", str(asked.path))["kernels"]
    count = Counter(one["family"] for one in kernels)
    labels = {family.id: family.label for family in asked.session.families}
    return Answer([Row(id_, labels[id_], count[id_]) for id_ in count], "time")


DOORS: dict[str, Callable[..., Answer]] = {
    "REPORT": front,
    "REPORT --json": lambda asked: Answer(families_of(asked.json(str(asked.path)))),
    "show": show,
    "show --json": lambda asked: Answer(families_of(asked.json("show", str(asked.path)))),
    "explain": lambda asked: Answer(
        rows_in(
            asked.printed("explain", str(asked.path), "--all"),
            r"^(?P<id>#\d+) +(?P<name>\S.*?)  .*?(?P<launches>\d+ )?(?:launches, the longest:)?\n"
            r"(?:(?!  1\. |#).*\n)*(?:  1\. [^:\n]+: saves (?P<saves>\d+) %)?",
        )
    ),
    "explain --json": explain_json,
    "explain --format markdown": lambda asked: Answer(
        markdown_in(asked.printed("explain", str(asked.path), "--format", "markdown"))
    ),
    "index page": lambda asked: Answer(
        table_in(str(index_article(asked.pages)), "Id", "Kernel", "Launches", "Saves of it"),
        text=str(index_article(asked.pages)),
    ),
    "kernel pages": kernel_pages,
    "notebook": lambda asked: Answer(
        table_in(asked.opened._repr_html_(), "id", "kernel", "launches", "saves"),
        text=asked.opened._repr_html_(),
    ),
    "notebook, families": lambda asked: Answer(
        table_in(asked.opened.families._repr_html_(), "id", "kernel", "launches", "saves")
    ),
    "notebook, findings": notebook_findings,
    "notebook, diff": lambda asked: Answer(
        table_in(asked.opened.diff(asked.opened)._repr_html_(), "verdict", "kernel", "", ""), "time"
    ),
    "repr": lambda asked: Answer([], text=repr(asked.opened)),
    "MCP open": mcp_open,
    "MCP open, JSON": lambda asked: Answer(
        families_of(json.loads(asked.tools.open(asked.path.name, json=True, tokens=100_000)))
    ),
    "MCP explain": lambda asked: Answer(markdown_in(asked.tools.explain(asked.path.name, tokens=100_000))),
    "MCP diff": mcp_diff,
    "MCP listing": mcp_listing,
    "find": find,
    "diff": diff_text,
    "diff --json": lambda asked: Answer(
        compared(asked.json("diff", str(asked.path), str(asked.path))), "time"
    ),
    "export": exported,
    "to_dataframe": frame,
    "roofline --json": roofline,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[dict[str, Any]]]:
    """What `find` says of the launches of a report, with the savings of every cause; asked once for all of them."""
    condition = " or ".join(["time > 0", *(f"{cause} >= 0" for cause in CAUSES if cause not in ALIASES)])
    # What another version of the code kept is no answer of this one.
    own = {**os.environ, "GEMMPROF_CACHE": str(own_cache(tmp_path_factory.mktemp("cache")))}
    done = in_process.run(
        ["gemmprof", "find", condition, *map(str, REPORTS if CAMPAIGN else REPORTS[:-1]), "--json"],
        env=own,
        check=True,
    )
    launches = json.loads(done.stdout)["found"]
    return lambda path: [one for one in launches if one["report"] == str(path)]


@pytest.mark.parametrize("path", few(REPORTS, REPORTS[:-1]), ids=lambda path: path.name.partition(".")[0])
def test_every_door_says_the_same(
    path: Path, printed: Printed, found: Callable[[Path], list[dict[str, Any]]], tmp_path: Path
) -> None:
    asked = Asked(path, printed, found)
    families = asked.session.families
    truth = {
        one.id: Row(one.id, one.label, one.count, round(100 * one.worst.saves) if one.worst else 0)
        for one in families
    }
    apart_of = {one.id: one.apart for one in families}
    by_launch = sorted(families, key=lambda one: one.members[0])
    orders = {
        "gain": [one.id for one in families],
        "time": sorted(truth, key=lambda id_: int(id_[1:])),
        "launch": [one.id for one in by_launch],
    }
    wrong = []
    for name, door in DOORS.items():
        answer = door(asked, tmp_path / "tables") if door is exported else door(asked)
        told = [row.id for row in answer.rows]
        order = orders[answer.order]
        if told != order[: len(told)] or (len(told) < len(order) and name not in ("REPORT", "repr")):
            wrong.append(f"{name}: {told} for {order}")
        for row in answer.rows:
            same = truth.get(row.id)
            # Texts say behind the name what tells it from others of that name.
            apart = (
                same is not None
                and "JSON" not in name
                and (row.name.startswith(f"{same.name} ") or inside(row.name.rpartition(" ")[0], same.name))
                and row.name.rpartition(" ")[2] in " ".join(apart_of[row.id])
            )
            if same is None or not (apart or inside(row.name, same.name)):
                wrong.append(f"{name}: {row.id} is called {row.name!r}, not {same and same.name!r}")
            elif row.launches not in (None, same.launches) or row.saves not in (None, same.saves):
                wrong.append(f"{name}: {row} for {same}")
        if answer.text and asked.session.counts not in " ".join(unescape(answer.text).split()):
            wrong.append(f"{name}: not {asked.session.counts}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "path", few([*paths(), RECORDED], [CHOSEN[1], TRANSFORMER]), ids=lambda path: path.name
)
def test_the_front_door_is_one_screen(path: Path, printed: Printed) -> None:
    is_one_screen(printed(str(path)))


def is_one_screen(text: str) -> None:
    lines = text.splitlines()
    assert len(lines) <= overview.FRONT_LINES
    assert max(map(len, lines)) <= 80
    first = next(line for line in lines if line.startswith("#")).split()[0]
    assert lines[-1].startswith("Next: ") and f"'{first}'" in lines[-1]


def test_the_front_door_of_a_run_is_one_screen(tmp_path: Path, printed: Printed) -> None:
    """Of the two reports with the fewest launches: explaining all takes half a minute."""
    run = json.loads((RECORDED / RUN_FILE).read_text("utf-8"))
    profiled = Counter(result["report"] for result in run["results"] if result["report"] is not None)
    fewest = {name for name, _ in profiled.most_common()[-2:]}
    run["results"] = [result for result in run["results"] if result["report"] in fewest]
    run["reports"] = {name: run["reports"][name] for name in fewest}
    (tmp_path / RUN_FILE).write_text(json.dumps(run), "utf-8")
    shutil.copytree(RECORDED / "reports", tmp_path / "reports")
    is_one_screen(printed(str(tmp_path)))


@pytest.mark.parametrize("columns", [40, 60])
def test_on_a_narrow_terminal_words_stand_below_the_numbers_and_whole(columns: int, printed: Printed) -> None:
    lines = printed(str(DATA / "flaws_global_access.ncu-rep.xz"), columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    first = next(place for place, line in enumerate(lines) if line.startswith("#"))
    figures, words = lines[first + 1 : first + 3]
    assert figures.split()[-1].isdigit(), figures
    assert re.match(r" {5}[a-z][a-z ]+: \d+ % of it( at |$)", words), words


def test_families_of_one_name_are_told_apart_where_they_are_listed(
    printed: Printed, found: Callable[[Path], list[dict[str, Any]]]
) -> None:
    asked = Asked(DATA / "launches_same_kernel.ncu-rep.xz", printed, found)
    explained, page = printed("explain", str(asked.path), "--all"), str(index_article(asked.pages))
    words = {one.id: one.apart for one in asked.session.families}
    assert len({" ".join(one) for one in words.values()}) == len(words) == 4
    for id_, (grid,) in words.items():
        assert re.search(rf"^{id_}  saxpy {grid}  \d", explained, re.MULTILINE), id_
        assert f'<span class="idea">{grid}</span>' in page


def test_a_kernel_that_two_reports_hold_is_told_with_its_report(printed: Printed) -> None:
    """A folder of reports before and after a change had two rows of each name."""
    recorded = TRANSFORMER.parent
    pair = [str(recorded / f"{name}.ncu-rep.xz") for name in ("gelu", "gelu_fixed")]
    for words in ([], ["explain"], ["show"]):
        said = printed(*words, *pair)
        assert all(re.search(rf"gelu.*?\b(from|of) {Path(path).name}", said, re.DOTALL) for path in pair), (
            said
        )
    assert "from gelu" not in printed(pair[0])


def test_an_id_stands_behind_options_too(printed: Printed) -> None:
    """What the front door tells to type was refused behind an option."""
    path = str(DATA / "flaws_tensor.ncu-rep.xz")
    for command, *options in (["show", "--source"], ["explain", "--all"], ["occupancy", "--owner", "own"]):
        behind = printed(command, path, *options, "#2")
        assert behind == printed(command, path, "#2", *options) and "#2 wmma" in behind.replace("  ", " ")


def test_each_point_of_a_family_says_its_launch() -> None:
    names = [name_of(page) for page in kernels(load_session([LAUNCHES], listed=True))]
    assert len(set(names)) == len(names) > 100


def test_versions_and_dates_are_those_of_every_report(printed: Printed) -> None:
    said = printed("show", str(DATA / "flaws_tensor.ncu-rep.xz"), str(TRANSFORMER))
    assert re.search(
        r"ncu [\d.]+, [\d.]+ · [\d-]+ [\d:]+ UTC to [\d-]+ [\d:]+ UTC|ncu [\d.]+ · .* UTC to .* UTC", said
    )


def test_what_a_point_lacks_is_named_in_json_as_in_the_table(tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "some.ncu-rep"
    content = lzma.decompress((DATA / "launches_same_kernel.ncu-rep.xz").read_bytes())

    def wanted(name: str) -> bool:
        return "inst_executed_op_f" not in name

    path.write_bytes(rewritten(content, lambda launch, names, _: keep_metrics(launch, names, wanted)))
    (lacking,) = {
        one["not_collected"] for one in json.loads(printed("roofline", str(path), "--json"))["kernels"]
    }
    assert lacking and f"profile with ncu {lacking}" in " ".join(printed("roofline", str(path)).split())


GELU = [str(TRANSFORMER.with_name(f"gelu{which}.ncu-rep.xz")) for which in ("", "_fixed")]


@pytest.mark.parametrize("columns", [60, 66, 73, 80])
def test_a_unit_stands_on_the_line_of_its_number(columns: int, printed: Printed) -> None:
    """The front door wrote ``launches of 14.2`` and ``µs`` below, a comparison ``−57.5`` and ``%``."""
    conflicts = str(DATA / "flaws_bank_conflicts.ncu-rep.xz")
    told = [printed(conflicts, columns=columns), printed("explain", conflicts, columns=columns)]
    told.append(printed("diff", *GELU, "--details", columns=columns).partition("\n  Quantity")[0])
    told.append(printed(conflicts, "#1", columns=columns))
    assert not re.findall(r".*\d\n *(?:%|(?:[nµm]?s|[kMG]?B|[MG]Hz)\b).*", "\n".join(told))
    assert all(len(line) <= columns for text in told for line in text.splitlines())


def test_what_no_door_tells_find_and_diff_do_not_tell(printed: Printed) -> None:
    """Ways by a general name to what another finding saves (`Finding.minor`) were hits, and predictions come true."""
    report = str(TRANSFORMER.with_name("gemm_cutlass.ncu-rep.xz"))
    fill = next(one for one in gemmprof.open(report).launches if "fill" in one.profile.name).explanation
    (way,) = (one.cause for one in fill.findings if one.minor)
    assert way == "low_occupancy" and "occupancy" not in printed("explain", report, "--kernel", "fill")
    told = findings(fill)
    assert told["narrow_access"] > 50 and told[way] == 0
    gate = "diff", report, report, "--kernel", "fill", "--fail-if"
    assert main([*gate, "narrow_access"]) == 1 and main([*gate, way]) == 0
    assert "double precision (" in (said := printed("diff", *GELU)) and "instruction latency" not in said


def test_a_pair_of_reports_tells_whole_what_came_of_the_prediction(printed: Printed) -> None:
    """The interval that it fell in, and what is next, were cut off."""
    said = " ".join(printed("diff", *GELU).split())
    assert re.search(r"is gone: −20\.9 % measured, as predicted; next: [a-z ]+ \d+ % code: ", said)
    assert "Several reports a side (--with) measure it. All 37" in said


@pytest.mark.parametrize("columns", [72, 80, 90, 100])
def test_an_instruction_is_named_whole_or_not_at_all(columns: int, printed: Printed) -> None:
    """Once "at LDG.E.SY…R2]": a part of an instruction leads nowhere."""
    said = printed(str(DATA / "partial_no_lineinfo.ncu-rep.xz"), columns=columns)
    places = re.findall(r"% of it(?: at (.*))?$", said, re.MULTILINE)
    assert len(places) == 3 and "…" not in "".join(places)
    assert columns < 90 or any(places)
    lines = re.findall(
        r"% of it at (.*)$", printed(str(DATA / "flaws_global_access.ncu-rep.xz"), columns=columns), re.M
    )
    assert lines and all(re.fullmatch(r"glob.*:\d+", one) for one in lines), "once global_…17"


def test_without_times_no_share_of_them_is_told(tmp_path: Path, printed: Printed) -> None:
    """Kernels beyond the screen once had "0.0 % of the time" where no time was collected."""
    path = tmp_path / "no_times.ncu-rep"
    content = lzma.decompress(LAUNCHES.read_bytes())

    def wanted(name: str) -> bool:
        return not name.startswith("gpu__time")

    path.write_bytes(rewritten(content, lambda launch, names, _: keep_metrics(launch, names, wanted)))
    said = printed(str(path))
    assert re.search(r"^and \d+ more: the same with --all", said, re.MULTILINE) and "0.0 %" not in said
    session = load_session([path], listed=True)
    page = str(index_article(Report(session, plan(session))))
    assert "No durations were measured" in page and "most time first" not in page and "longest" not in page
    assert re.search(r"^and \d+ more with [\d.]+ % of the time: ", printed(str(LAUNCHES)), re.MULTILINE)


def test_all_families_are_there_when_asked_for(printed: Printed) -> None:
    """Those beyond the screen had no door that lists them a line each in the one order."""
    ids = {family.id for family in load_session([LAUNCHES], listed=True).families}
    screen, whole = (
        re.findall(r"^(#\d+) ", printed(str(LAUNCHES), *more), re.MULTILINE) for more in ([], ["--all"])
    )
    assert len(screen) < len(ids) == len(whole) and set(whole) == ids and whole[: len(screen)] == screen


@pytest.mark.parametrize(
    ("name", "option"), [("graph", "--graph-profiling node"), ("range", "--replay-mode kernel")]
)
def test_of_a_graph_or_range_every_door_names_the_one_option_that_helps(
    name: str, option: str, printed: Printed
) -> None:
    path = str(DATA / f"modes_{name}.ncu-rep.xz")
    for said in (printed(path), printed("explain", path)):
        words = " ".join(said.replace("! ", "").split())
        assert f"This is a {name} of several launches" in words and f"(ncu {option})" in words
        assert "--set full" not in words and words.count("--") == 1
    assert f" in 1 launch of 1 {name} in 1 family " in printed(path)


def test_commands_on_pages_stand_in_no_backticks() -> None:
    session = load_session([DATA / "partial_two_metrics.ncu-rep.xz"], selection=selection(launches="0"))
    page = str(index_article(Report(session, plan(session), single_file=True)))
    assert '<code class="nowrap">gemmprof profile</code>' in page and "`" not in page


def test_one_report_twice_is_told(printed: Printed, tmp_path: Path) -> None:
    path, told = DATA / "launches_same_kernel.ncu-rep.xz", "same numbers to the last digit"
    copy = tmp_path / "copy.ncu-rep.xz"
    copy.write_bytes(path.read_bytes())
    assert told in " ".join(printed("diff", str(path), str(copy)).split())
    noise = DATA / "noise"
    assert told not in printed("diff", str(noise / "base_0.ncu-rep.xz"), str(noise / "base_1.ncu-rep.xz"))


def test_what_it_says_to_type_next_shows_the_family_in_full(printed: Printed) -> None:
    lines = printed(str(DATA / "flaws_global_access.ncu-rep.xz")).splitlines()
    number = re.findall(r"'(#\d+)'", lines[-1])[0]
    whole = printed(str(DATA / "flaws_global_access.ncu-rep.xz"), number)
    assert f"\n{number} " in whole and "Speed of light" in whole and "  1. " in whole
    assert whole == printed("show", str(DATA / "flaws_global_access.ncu-rep.xz"), "--kernel", number, "--all")


def test_the_first_line_comes_before_anything_is_explained(printed: Printed) -> None:
    session = load_session([TRANSFORMER], listed=True)
    assert "10 launches" in session.sentence and not session.explain([])
    program = (
        "import sys; from gemmprof.analysis.session import load_session;"
        "from gemmprof.reports.terminal.program_lines import where;"
        f"session = load_session([{str(TRANSFORMER)!r}], listed=True);"
        "heavy = {'numpy', 'jinja2', 'gemmprof.analysis.explanation.engine', 'gemmprof.analysis.sections.roofline'};"
        "print(session.sentence, len([*where(session, 80)]), heavy & {*sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{session.sentence} 3 set()", (
        "nothing is loaded for it that only explaining needs"
    )


def test_an_id_means_the_same_wherever_launches_are_chosen(printed: Printed, tmp_path: Path) -> None:
    path = str(DATA / "launches_same_kernel.ncu-rep.xz")
    session = load_session([path], listed=True)
    family = session.families[-1]
    launches = sorted(session.kernels[member].profile.index for member in family.members)
    (explained_id,) = {
        kernel["family"] for kernel in json.loads(printed("explain", path, family.id, "--json"))["kernels"]
    }
    assert explained_id == family.id
    (record,) = json.loads(printed("show", path, "--kernel", family.id, "--json"))["families"]
    assert record["id"] == family.id and [one["launch"] for one in record["launches"]] == launches
    assert [launch.profile.index for launch in gemmprof.open(path, kernel=family.id).launches] == launches
    assert family.id in Tools([DATA]).explain("launches_same_kernel.ncu-rep.xz", kernel=family.id)
    printed("report", path, family.id, "-o", str(tmp_path / "pages"))
    assert len([*(tmp_path / "pages").glob("[0-9]*.html")]) == 1
    assert len(json.loads(printed("roofline", path, "--kernel", family.id, "--json"))["kernels"]) == len(
        launches
    )


def test_an_id_of_no_family_is_said_and_where_ids_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TRANSFORMER), "#999"]) == 2
    error = capsys.readouterr().err
    assert "#999" in error and "10 launches of 8 kernels" in error and "lists" in error


def test_what_only_looks_like_an_id_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TRANSFORMER), "#first"]) == 2
    out, error = capsys.readouterr()
    assert "'#first' is no family's id" in error and "'#3'" in error and not out


def test_one_kernel_has_one_page_however_often_it_is_launched(tmp_path: Path) -> None:
    session = load_session([DATA / "launches_same_kernel.ncu-rep.xz"])
    assert len(plan(session).pages) == len(session.families) < len(session.kernels)
    assert len(plan(session, every=True).pages) == len(session.kernels)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_help_has_an_example(command: str) -> None:
    shown = in_process.run(["gemmprof", command, "--help"], check=True).stdout
    assert re.search(rf"^(?!usage) *(\w+: +)?gemmprof {command} \S", shown, re.MULTILINE), shown[:400]


def test_a_debug_build_is_known_without_counters_by_instruction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At every door, as of `--set basic`; of a report of durations alone, whose code is not read, at none."""

    def without(wanted: Callable[[str], bool]) -> Path:
        content = lzma.decompress((DATA / "phases" / "h200" / "debug_build.ncu-rep.xz").read_bytes())
        path = tmp_path / "some.ncu-rep"
        path.write_bytes(rewritten(content, lambda launch, names, _: keep_metrics(launch, names, wanted)))
        return path

    def facts(name: str) -> bool:
        return name.startswith(("device__", "launch__", "gpu__time_duration"))

    basic = without(lambda name: facts(name) or "throughput" in name)
    assert main([str(basic)]) == 0
    assert "debug build" in capsys.readouterr().out
    assert main(["explain", str(basic), "#1"]) == 0
    assert "A debug build" in capsys.readouterr().out
    assert any("A debug build" in one for one in gemmprof.open(basic).explanations[0].levers)

    timed = without(facts)
    assert main(["explain", str(timed), "#1"]) == 0
    assert "debug build" not in capsys.readouterr().out
    assert not any("debug build" in one for one in gemmprof.open(timed).explanations[0].levers)


def test_where_nothing_is_found_it_is_said_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the time goes to, or that the code was not optimised: never the counters that were collected."""
    page = tmp_path / "one.html"
    for door in ([], ["show"], ["report", "-o", str(page), "--single-file"]):
        assert main([*door, str(DATA / "phases" / "h200" / "debug_build.ncu-rep.xz")]) == 0
        debug = capsys.readouterr().out if door[:1] != ["report"] else page.read_text("utf-8")
        assert "A debug build" in debug and "counters were collected" not in debug
    report = DATA / "flaws_cluster.ncu-rep.xz"
    found = load_session([report])
    assert not any(family.worst for family in found.families)
    assert main([str(report)]) == 0
    assert "would need most of its time alone" in capsys.readouterr().out


def test_what_was_not_collected_is_said_once_before_the_numbers(printed: Printed) -> None:
    partial = DATA / "partial_basic.ncu-rep.xz"
    front = printed(str(partial), str(DATA / "partial_roofline.ncu-rep.xz")).splitlines()
    assert len(front) <= overview.FRONT_LINES
    doubt = next(
        at for at, line in enumerate(front) if line.startswith("! Not collected: DRAM and L2 traffic")
    )
    assert doubt < next(at for at, line in enumerate(front) if line.startswith("#"))
    for options in ((), ("--all",), ("--format", "markdown")):
        said = printed("explain", *options, str(partial))
        assert said.count("Not collected") == 1 and said.index("Not collected") < said.index("#1")
    said = printed("show", str(partial), str(DATA / "partial_two_metrics.ncu-rep.xz"))
    assert said.count("Not collected") == 1 and said.index("Not collected") < said.index("Whose time it is")
    assert "counters were collected" not in said
    for whole in (("explain", "--all"), ()):
        assert "Not collected" not in printed(*whole, str(DATA / "flaws_global_access.ncu-rep.xz"))


def test_a_row_without_finding_says_what_the_time_goes_to(printed: Printed) -> None:
    front = printed(str(TRANSFORMER))
    assert re.search(r" no finding: exposed latency \d+ %\n", front)


def test_the_index_says_of_kernels_without_findings_what_the_front_door_says(
    tmp_path: Path, printed: Printed
) -> None:
    partial = [str(DATA / f"partial_{name}.ncu-rep.xz") for name in ("basic", "roofline")]
    front = printed(*partial)
    printed("report", "--output", str(tmp_path), *partial)
    page = (tmp_path / "index.html").read_text("utf-8").replace("\u00a0%", " %")
    assert page.count("Not collected: ") == front.count("Not collected: ") == 1
    told = re.findall(r"no finding: [^\n]+", front)
    assert told and all(f">{one}<" in page for one in told)
