"""SARIF and JUnit as those who read them do: the parts of the two schemas that gemmprof's documents use.

Read from sarif-schema-2.1.0.json (OASIS) and JUnit.xsd (the strict one, of Ant's task); both whole schemas were held
against the same documents once, without a complaint.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import in_process
import jsonschema
import pytest
from recorded_data import DATA, ROOT

NOISE = DATA / "noise"
GELU = [ROOT / "docs" / "examples" / "recorded" / f"{name}.ncu-rep.xz" for name in ("gelu_fixed", "gelu")]
CODE = [NOISE / "code_base.ncu-rep.xz", NOISE / "code_fewer_registers.ncu-rep.xz"]
MORE = [NOISE / "base_0.ncu-rep.xz", NOISE / "more_020_0.ncu-rep.xz"]


def some(kind: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind, **more}


def known(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object that may have no other properties: as every object of SARIF, of which these are the ones we use."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
MESSAGE = known(("text",), text=TEXT)
PLACE = known(
    physicalLocation=known(
        artifactLocation=known(uri={"type": "string", "format": "uri-reference"}),
        region=known(startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations=some(known(fullyQualifiedName=TEXT, kind=TEXT), uniqueItems=True),
)
RESULT = known(
    ("message",),
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations=some(PLACE),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=some(
        known(("kind",), kind={"enum": ["inSource", "external"]}, justification=TEXT), uniqueItems=True
    ),
)
DRIVER = known(
    ("name",), name=TEXT, version=TEXT, rules=some(known(("id",), id=TEXT, shortDescription=MESSAGE))
)
SARIF = known(
    ("version", "runs"),
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"enum": ["2.1.0"]},
    runs=some(known(("tool",), tool=known(("driver",), driver=DRIVER), results=some(RESULT))),
)

COUNTS = dict.fromkeys(("tests", "failures", "errors"), r"\d+")
JUNIT: dict[str, tuple[dict[str, str], dict[str, str], tuple[str, ...]]] = {
    # element: attributes that it must have, that it may have, and its children in their order
    "testsuites": ({}, {}, ("testsuite*",)),
    "testsuite": (
        {
            "name": r".+", "package": r".*", "id": r"\d+", "hostname": r".+", "time": r"\d+(\.\d+)?",
            "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", **COUNTS,
        },
        {"skipped": r"\d+"},
        ("properties", "testcase*", "system-out", "system-err"),
    ),
    "properties": ({}, {}, ("property*",)),
    "testcase": ({"name": r".+", "classname": r".+", "time": r"\d+(\.\d+)?"}, {}, ("skipped|error|failure?",)),
    "failure": ({"type": r".+"}, {"message": r"(.|\n)*"}, ()),
    "skipped": ({}, {"message": r"(.|\n)*"}, ()),
    "system-out": ({}, {}, ()),
    "system-err": ({}, {}, ()),
}  # fmt: skip


def misfits(element: ElementTree.Element) -> list[str]:
    """Where an element is not as the schema of JUnit wants it."""
    must, may, children = JUNIT[element.tag]
    found = [f"{element.tag} without {name}" for name in must if name not in element.attrib]
    for name, value in element.attrib.items():
        if not re.fullmatch({**must, **may}.get(name, r"(?!)"), value):
            found.append(f"{element.tag} {name}={value!r}")
    # No name is the beginning of another one's, so a pattern of names does.
    order = "".join(
        f"(?:(?:{part.rstrip('*?')}) ){part[-1] if part[-1] in '*?' else ''}" for part in children
    )
    names = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(order, names):
        found.append(f"{element.tag} holds {names}")
    return found + [text for child in element if child.tag in JUNIT for text in misfits(child)]


def printed(kind: str, *words: object) -> str:
    return in_process.run(["gemmprof", "diff", *map(str, words), "--format", kind]).stdout


@pytest.fixture
def cases(tmp_path: Path) -> list[list[object]]:
    waivers = tmp_path / "waivers.toml"
    waivers.write_text('[[waiver]]\nkernel = "normalise"\nreason = "new <numerics>"\nuntil = 2999-01-31\n')
    return [
        [*GELU],
        [*GELU, "--fail-slower", "5"],
        [*CODE, "--fail-if", "time > +5%", "--waivers", waivers],
        [*MORE, "--fail-if", "time > +1% and kernel ~ 'sine'", "--fail-if", "registers > 30"],
        [MORE[0], GELU[1], "--across", "set", "--fail-if", "time > +1%"],
    ]


def test_sarif_is_valid(cases: list[list[object]]) -> None:
    results = 0
    for case in cases:
        log = json.loads(printed("sarif", *case))
        jsonschema.validate(log, SARIF, format_checker=jsonschema.FormatChecker())
        (run,) = log["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        for result in run["results"]:
            # What code scanning wants beyond the schema: a place, a rule that is there, an identity of its own.
            assert rules[result["ruleIndex"]] == result["ruleId"]
            assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            results += 1
        prints = [tuple(result["partialFingerprints"].values()) for result in run["results"]]
        assert len(set(prints)) == len(prints)
    assert results > 40
    bent = copy.deepcopy(log)
    bent["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bent, SARIF)


def test_junit_is_valid(cases: list[list[object]]) -> None:
    for case in cases:
        root = ElementTree.fromstring(printed("junit", *case))
        assert misfits(root) == []
        suite = root[0]
        for name, kind in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == len(list(suite.iter(kind)))
    suite.remove(suite[0])
    suite[0].set("time", "1 s")
    assert len(misfits(root)) == 2


def test_github_annotations_stand_at_file_and_line_and_sum_up_what_is_undecided() -> None:
    lines = printed("github", *GELU, "--fail-if", "time > +5%").splitlines()
    assert re.match(r"::error file=[^,]*gelu\.cu,line=\d+,title=gemmprof::gelu: ", lines[0])
    many = printed("github", *MORE, "--fail-if", "time > +1%").splitlines()
    (undecided,) = (line for line in many if "gemmprof::not decided" in line)
    assert re.search(r"not decided: \d+ of 35: .*; .* and \d+ more", undecided)
    slower, tally = printed("github", *GELU).splitlines()  # no gate: what is slower, and the count
    assert re.match(r"::warning file=[^,]*gelu\.cu,line=\d+,title=gemmprof::gelu: SLOWER ", slower)
    assert tally.startswith("::notice title=gemmprof::") and "1 slower" in tally.lower()


def test_a_condition_on_the_name_alone_breaks_the_gate_by_what_was_asked() -> None:
    done = in_process.run(["gemmprof", "diff", *map(str, GELU), "--fail-if", "kernel ~ 'gelu'"])
    assert done.returncode == 1 and ": kernel ~ 'gelu'\n" in done.stderr, done.stderr
