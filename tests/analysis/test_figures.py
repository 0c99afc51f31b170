"""Every figure of every section is what its formula gives, computed again from the raw metrics of all reports."""

from __future__ import annotations

import dataclasses
import html
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest
from recorded_data import DATA, ReadRecorded
from scale import inputs

from gemmprof.analysis import opcodes
from gemmprof.analysis.figure import Derived, declared, figures, formula_of, traced
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse, analyses, result_of
from gemmprof.analysis.session import Session
from gemmprof.model import KernelProfile, NotCollected
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.html import Report, kernel_article

TOKEN = re.compile(
    r"(?P<number>(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.:]))"
    r"|(?P<name>[A-Za-z_][\w.:]*)(?:\[(?P<keys>[^]]*)\])?"
    r"|(?P<operator>//|[-+*/%()])|(?P<blank>\s+)"
)


def recompute(formula: str, profile: KernelProfile) -> float:
    """The value of a formula, by the raw metrics of the launch alone."""
    parts = []
    place = 0
    while place < len(formula):
        match = TOKEN.match(formula, place)
        assert match, f"{formula!r} is no formula at {formula[place:]!r}"
        place = match.end()
        if match["name"]:
            parts.append(repr(value_of(match["name"], match["keys"], profile)))
        else:
            parts.append(match.group())
    return float(eval("".join(parts), {"__builtins__": {}}))


def value_of(name: str, keys: str | None, profile: KernelProfile) -> float:
    if keys is not None:
        instances = profile.instances.get(name)
        pairs = [] if instances is None else [(k, v) for k, v in instances.items() if not isinstance(v, str)]
        if keys == "*":
            return math.fsum(value for _, value in pairs)
        wanted = keys.split(", ")
        assert len(wanted) == len(set(wanted)), keys
        by_key = [
            value for key, value in pairs if (f"0x{key:x}" if isinstance(key, int) else str(key)) in wanted
        ]
        return math.fsum(by_key) or math.fsum(
            value for key, value in pairs if {*words_for(key, profile)} & {*wanted}
        )
    value = profile.metrics.get(name)
    if name == "device__attribute_multiprocessor_count" or (value is None and name == "launch__sm_count"):
        value = profile.device.sm_count
    elif name == "launch__grid_size":
        value = profile.launch.blocks
    elif name == "launch__block_size":
        value = profile.launch.threads_per_block
    assert isinstance(value, (int, float)), f"{name} is not in the report"
    return value


def words_for(key: object, profile: KernelProfile) -> list[str]:
    """What a formula may call an address: its opcode with and without modifiers."""
    code = _CODE.setdefault(id(profile), {one.address: one for one in profile.source.instructions})
    if not isinstance(key, int):
        return []
    instruction = code.get(key)
    if instruction is None:
        return []
    opcode = opcodes.opcode_of(instruction.sass)
    return [opcode, opcode.partition(".")[0]]


_CODE: dict[int, Mapping[int, Any]] = {}


def test_every_figure_is_what_its_formula_gives(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name, source=True):
        analysis = analyse(profile)
        for name, result in analysis.traced.results.items():
            if isinstance(result, NotCollected) or not dataclasses.is_dataclass(result):
                continue
            plain = list(figures(analysis.results[name]))
            for (key, row, _, value), (_, _, _, before) in zip(figures(result), plain, strict=True):
                assert value == before, "the formula changes no value"
                formula = formula_of(value)
                # A whole that is 0 because nothing of the kind occurred has no term, and an integral over samples
                # is told in words; else every figure has a formula.
                _, _, item, _ = next(found for found in figures(result) if found[0] == key)
                assert formula or value == 0 or item.how, f"{name}.{key} ({row})"
                if formula:
                    again = recompute(formula, profile)
                    assert again == pytest.approx(value, rel=1e-9, abs=1e-12), (
                        f"{name}.{key} ({row}): {formula}"
                    )


def article(analysis: KernelAnalysis) -> str:
    session = Session("one launch", (analysis,))
    pages = plan(session)
    return str(kernel_article(Report(session, pages), pages.pages[0]))


UNITS = {"%": 1, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


FACTS = ("launch", "raw_metrics", "source_view", "rules", "findings", "timeline", "absent")
"""Sections of facts, of the report's own rows and of words: nothing in them is computed."""
NUMBER = r"([\d.,]+)(?: (%|[kKMGTP])?(B/s|B|FLOP/s|Hz|inst)?)?[×]?"


def test_a_page_shows_what_the_formula_beside_it_gives(recorded: ReadRecorded, report_name: str) -> None:
    """Every figure on the pages of every report: it has a formula, and that gives it."""
    compared = 0
    for profile in recorded(report_name, source=True)[: inputs(3, 1000)]:
        page = article(analyse(profile))
        for name, section in re.findall(r'<section id="([^"]*)"[^>]*>(.*?)</section>', page, re.DOTALL):
            if name in FACTS:
                continue
            body = re.sub(r"<(script|svg|details|textarea|code)\b.*?</\1>", "", section, flags=re.DOTALL)
            figure = r'<span title="([^"]*)">([^<]*)</span>'
            for formula, text in re.findall(figure, body):
                match = re.fullmatch(NUMBER, html.unescape(text))
                if not match or "__" not in formula:
                    continue
                scale = UNITS.get(match[2] or "", 1)
                number = float(match[1].replace(",", "")) * scale
                value = recompute(html.unescape(formula), profile)
                step = 0.5000001 * 10.0 ** -len(match[1].partition(".")[2]) * scale
                assert abs(value - number) <= max(step, 5.1e-4 * abs(value)), (name, formula, text, value)
                compared += 1
            for cell in re.findall(
                r"<(?:td|dd|strong)\b[^>]*>(.*?)</(?:td|dd|strong)>", re.sub(figure, "", body)
            ):
                plain = html.unescape(re.sub(r"<[^>]*>", "", cell)).strip()
                assert not re.fullmatch(NUMBER, plain), f"{name}: no formula of {plain}"
    assert compared or report_name in ("partial_two_metrics", "train_100")


def test_every_number_of_a_result_is_declared() -> None:
    """A number that a page could show has a title: it stands at its field."""
    facts = {
        "Launch": {
            *("blocks", "threads_per_block", "threads", "warps_per_block"),
            *("idle_lanes", "launches", "green_context"),
        },
        "Divergence": {"warp_size"},
        "Roofline": {"duration_ns"},  # of the speed of light
        "SourceView": {"sampling_interval_cycles"},  # of the warp states
    }
    missing = []
    for analysis in analyses():
        kind = result_of(analysis)
        for field in dataclasses.fields(kind):
            if re.fullmatch(r"(int|float)( \| None)?", str(field.type)) and field.name not in declared(kind):
                missing.append(f"{kind.__name__}.{field.name}")
    known = {f"{name}.{field}" for name, fields in facts.items() for field in fields}
    assert set(missing) <= known
    assert all(item.title for analysis in analyses() for item in declared(result_of(analysis)).values())


def test_the_formula_follows_the_arithmetic() -> None:
    a, b = traced(6.0, "a.sum"), traced(3.0, "b.sum")
    for value, formula in (
        (2 * a / b, "2 * a.sum / b.sum"),
        (a / (2 * b), "a.sum / (2 * b.sum)"),
        (a - (b - 1), "a.sum - (b.sum - 1)"),
        (100 * (1 - b / a), "100 * (1 - b.sum / a.sum)"),
        (sum([a, b]), "a.sum + b.sum"),
        (1 * a, "a.sum"),
        (traced(1, "m[A]") + traced(2, "m[B]"), "m[A, B]"),
        (-(-traced(33, "n") // 32), "-(-n // 32)"),
    ):
        assert formula_of(value) == formula
        assert value == eval(formula.replace("m[A, B]", "3"), {"a": _Sum(6.0), "b": _Sum(3.0), "n": 33})
    assert isinstance(vars(type("x", (), {"y": Derived(lambda _: 1, declared_title())}))["y"], Derived)


@dataclasses.dataclass
class _Sum:
    sum: float


def declared_title() -> Any:
    from gemmprof.analysis.figure import Figure

    return Figure("title")


def test_the_documentation_names_every_figure() -> None:
    text = (DATA.parent.parent / "docs" / "analyses.md").read_text(encoding="utf-8")
    table = text[text.index("<!-- figures") : text.index("<!-- /figures -->")]
    for analysis in analyses():
        for name, item in declared(result_of(analysis)).items():
            assert f"| `{analysis.NAME}.{name}` | {item.title} |" in table
