"""`gemmprof REPORT`, one screen of what there is to gain; and the same ids, names, counts and order at every door."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import in_process
import pytest
from recorded_data import DATA, ROOT
from scale import few

import gemmprof
from gemmprof.analysis.session import load_session
from gemmprof.api.server import Folders, Tools
from gemmprof.cli import main
from gemmprof.commands import COMMANDS
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.family_rows import family_rows
from gemmprof.reports.terminal import overview

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
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        return capsys.readouterr().out

    return run


def paths() -> list[Path]:
    return [*(DATA / f"{name}.ncu-rep.xz" for name in SEVERAL), TRANSFORMER, LAUNCHES]


CHOSEN = [
    DATA / f"{name}.ncu-rep.xz" for name in ("flaws_bank_conflicts", "names_nvtx", "launches_same_kernel")
]
"""Several kernels, several ranges, several grids."""


def ids(text: str) -> list[str]:
    """Ids that begin a line, in order."""
    return re.findall(r"^(#\d+)\b", text, re.MULTILINE)


def inside(cut: str, whole: str) -> bool:
    """Whether a name that may have been cut in its middle is this one."""
    places = [place for place, character in enumerate(cut) if character == "…"]
    return cut == whole or any(
        whole.startswith(cut[:place]) and whole.endswith(cut[place + 1 :]) for place in places
    )


@pytest.mark.parametrize("path", few(paths(), CHOSEN), ids=lambda path: path.name.partition(".")[0])
def test_every_door_gives_the_same_ids_names_counts_and_order(
    path: Path, printed: Printed, tmp_path: Path
) -> None:
    session = load_session([path], listed=True)
    order = [family.id for family in session.families]
    labels = {family.id: family.label for family in session.families}
    counted = session.counts
    assert len(order) == len({kernel.profile.family for kernel in session.kernels})

    front = printed(str(path))
    assert ids(front) == order[: len(ids(front))]
    assert len(ids(front)) >= min(3, len(order)) and ("and " in front or len(ids(front)) == len(order))
    assert counted in " ".join(front.split())
    for found in re.finditer(r"^(#\d+) +(?:[\d.]+ % +[\d.,]+ \S+ +[\d,]+  )?(\S.*)$", front, re.MULTILINE):
        assert inside(found[2], labels[found[1]])

    shown = printed("show", str(path))
    assert counted in " ".join(shown.split())
    table = ids(shown.partition("\nid ")[2].partition("\n\n")[0])
    assert table == order[: overview.LISTED]
    record = json.loads(printed("show", str(path), "--json"))
    assert [(one["id"], one["label"]) for one in record["families"]] == list(labels.items())

    assert ids(printed("explain", str(path), "--all")) == order
    explain = json.loads(printed("explain", str(path), "--json"))
    assert explain["families"] == order
    assert {(kernel["family"], kernel["label"]) for kernel in explain["kernels"]} == set(labels.items())
    assert sorted(kernel["launch"] for kernel in explain["kernels"]) == list(range(len(session.kernels)))
    markdown = printed("explain", str(path), "--format", "markdown")
    assert re.findall(r"^## (#\d+) ", markdown, re.MULTILINE) == order

    rows = family_rows(session, plan(session))
    assert [(row.family.id, row.family.label) for row in rows] == list(labels.items())
    assert {page.title for page in plan(session).pages} == set(labels.values())

    opened = gemmprof.open(path)
    assert [(family.id, family.label) for family in opened.families] == list(labels.items())
    assert counted in repr(opened)
    frame = opened.to_dataframe()
    assert {(f"#{row.family}", row.kernel) for row in frame.itertuples()} == set(labels.items())

    answer = Tools(Folders([path.parent])).open(path.name, tokens=100_000)
    assert counted in answer
    assert re.findall(r"^\| (#\d+) ", answer, re.MULTILINE) == order[:20]


@pytest.mark.parametrize(
    "path", few([*paths(), RECORDED], [CHOSEN[1], TRANSFORMER, RECORDED]), ids=lambda path: path.name
)
def test_the_front_door_is_one_screen(path: Path, printed: Printed) -> None:
    lines = printed(str(path)).splitlines()
    assert len(lines) <= overview.FRONT_LINES
    assert max(map(len, lines)) <= 80
    first = next(line for line in lines if line.startswith("#")).split()[0]
    assert lines[-1].startswith("Next: ") and f"'{first}'" in lines[-1]


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
    assert family.id in Tools(Folders([DATA])).explain("launches_same_kernel.ncu-rep.xz", kernel=family.id)
    printed("report", path, family.id, "-o", str(tmp_path / "pages"))
    assert len([*(tmp_path / "pages").glob("[0-9]*.html")]) == 1
    assert len(json.loads(printed("roofline", path, "--kernel", family.id, "--json"))["kernels"]) == len(
        launches
    )


def test_an_id_of_no_family_is_said_and_where_ids_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TRANSFORMER), "#999"]) == 2
    error = capsys.readouterr().err
    assert "#999" in error and "10 launches of 8 kernels" in error and "lists" in error


def test_the_index_page_lists_families_as_the_front_door_does(tmp_path: Path, printed: Printed) -> None:
    printed("report", str(TRANSFORMER), "-o", str(tmp_path / "pages"))
    text = (tmp_path / "pages" / "index.html").read_text("utf-8")
    session = load_session([TRANSFORMER], listed=True)
    table = text.partition('id="families"')[2].partition("</table>")[0]
    assert re.findall(r"<td[^>]*>(#\d+)</td>", table) == [family.id for family in session.families]
    for family in session.families:
        assert family.label in unescape(table)


def test_one_kernel_has_one_page_however_often_it_is_launched(tmp_path: Path) -> None:
    session = load_session([DATA / "launches_same_kernel.ncu-rep.xz"])
    assert len(plan(session).pages) == len(session.families) < len(session.kernels)
    assert len(plan(session, every=True).pages) == len(session.kernels)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_help_has_an_example(command: str) -> None:
    shown = in_process.run(["gemmprof", command, "--help"], check=True).stdout
    assert re.search(rf"^(?!usage)(\w+: +)? *gemmprof {command} \S", shown, re.MULTILINE), shown[:400]
