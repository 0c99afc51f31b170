"""A comparison for other machines than gemmprof's readers: JUnit, SARIF; and as Markdown for a pull request."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from gemmprof import __version__
from gemmprof.analysis.comparison.gate import GateResult
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.base.documents import json_text
from gemmprof.base.printable import json_safe, markdown, one_line, printable
from gemmprof.reports.verdicts import words


def markdown_text(outcome: Outcome, gate: GateResult | None) -> str:
    """A table for a pull request, what changed under it, and what the gate says."""
    lines = [
        f"**{markdown(words.tally(outcome))}** ({markdown(outcome.before)} → {markdown(outcome.after)})",
        "",
    ]
    if gate is not None:
        lines += [f"{'✅' if gate.holds else '❌'} {markdown(words.gate_summary(gate, outcome))}", ""]
    lines += [
        "| verdict | kernel | grid | before | after | change | in cycles |",
        "|---|---|---|---:|---:|---|---:|",
    ]
    for kernel in words.ordered(outcome):
        cells = (
            words.VERDICTS[kernel.verdict],
            kernel.match.label,
            kernel.record.grid_text,
            words.seconds(kernel, "before"),
            words.seconds(kernel, "after"),
            words.change(kernel),
            words.cycles(kernel),
        )
        lines.append("| " + " | ".join(markdown(cell) for cell in cells) + " |")
    changed = [
        f"- {markdown(kernel.match.label)}: {markdown(text)}"
        for kernel in words.ordered(outcome)
        for text in words.why(kernel)
        if kernel.verdict != "same"
    ]
    notes = [f"- {markdown(note)}" for note in outcome.notes]
    said = [] if gate is None else [f"- {kind}: {markdown(text)}" for kind, text in words.gate_lines(gate)]
    for part in (notes, said, changed):
        if part:
            lines += ["", *part]
    return "\n".join(lines)


def junit_text(outcome: Outcome, gate: GateResult | None) -> str:
    """JUnit XML: a test a kernel; one that breaks the gate failed, one that could not be decided was skipped."""
    broken: dict[tuple[str, ...], list[str]] = {}
    undecided: dict[tuple[str, ...], list[str]] = {}
    if gate is not None:
        for item in gate.broken:
            if item.waiver is None:
                broken.setdefault(item.kernel.record.key, []).append(item.text)
        for kernel, text in gate.undecided:
            undecided.setdefault(kernel.record.key, []).append(text)
    suite = ElementTree.Element(
        "testsuite",
        name="gemmprof diff",
        tests=str(len(outcome.kernels)),
        failures=str(len(broken)),
        errors="0",
        skipped=str(len(undecided.keys() - broken.keys())),
    )
    for kernel in outcome.kernels:
        name = " ".join(filter(None, (kernel.record.name, kernel.record.grid_text)))
        case = ElementTree.SubElement(suite, "testcase", classname="gemmprof.diff", name=one_line(name))
        if texts := broken.get(kernel.record.key):
            ElementTree.SubElement(case, "failure", message=one_line("; ".join(texts))).text = _facts(kernel)
        elif texts := undecided.get(kernel.record.key):
            ElementTree.SubElement(case, "skipped", message=one_line("; ".join(texts)))
        ElementTree.SubElement(case, "system-out").text = _facts(kernel)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def _facts(kernel: Compared) -> str:
    lines = [f"{words.VERDICTS[kernel.verdict]} {words.change(kernel)}".rstrip(), *words.why(kernel)]
    return printable("\n".join(lines))


def sarif_text(outcome: Outcome, gate: GateResult | None) -> str:
    """SARIF 2.1.0: a result for every break, waived ones suppressed; without a gate one for every SLOWER."""
    found: list[tuple[Compared, str, str, str | None]]
    if gate is None:
        found = [
            (kernel, "time", f"{words.change(kernel)}", None)
            for kernel in outcome.kernels
            if kernel.verdict == "slower"
        ]
    else:
        found = [
            (item.kernel, item.condition, item.text, None if item.waiver is None else item.waiver.reason)
            for item in gate.broken
        ]
    rules = list(dict.fromkeys(condition for _, condition, _, _ in found))
    results = []
    for kernel, condition, text, waived in found:
        result: dict[str, Any] = {
            "ruleId": condition,
            "ruleIndex": rules.index(condition),
            "level": "error",
            "message": {"text": f"{kernel.match.label}: {text}. " + " ".join(words.why(kernel))},
            "locations": [
                {"logicalLocations": [{"fullyQualifiedName": kernel.record.name, "kind": "function"}]}
            ],
        }
        if waived is not None:
            result["suppressions"] = [{"kind": "external", "justification": waived}]
        results.append(result)
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "gemmprof",
                        "version": __version__,
                        "rules": [
                            {"id": rule, "shortDescription": {"text": f"gate on {rule}"}} for rule in rules
                        ],
                    }
                },
                "results": results,
            }
        ],
    }
    return json_safe(json_text(log))
