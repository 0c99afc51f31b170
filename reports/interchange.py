"""A comparison for other machines than gemmprof's readers: JUnit, SARIF; and as Markdown for a pull request."""

from __future__ import annotations

import datetime
import hashlib
import platform
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from gemmprof import __version__
from gemmprof.analysis.comparison.gate import Break, GateResult
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.comparison.sides import source_place
from gemmprof.base.documents import json_text
from gemmprof.base.printable import one_line, printable
from gemmprof.base.spread import grouped
from gemmprof.reports import sentences
from gemmprof.reports.pages.environment import filled_text


def markdown_text(outcome: Outcome, gate: GateResult | None) -> str:
    """A table for a pull request, what changed under it, and what the gate says."""
    text = filled_text("pull_request.md.jinja", outcome=outcome, gate=gate, sentences=sentences)
    return text.removesuffix("\n")


def junit_text(outcome: Outcome, gate: GateResult | None) -> str:
    """JUnit XML by its strict schema, a test a kernel: those that break the gate failed, waived and undecided ones are
    skipped.
    """
    items = gate.broken if gate is not None else ()
    waived = (
        (item.kernel, f"{item.text}; {sentences.waiver_words(item.waiver)}") for item in items if item.waiver
    )
    undecided = gate.undecided if gate is not None else ()
    skipped = grouped((kernel.record.key, text) for kernel, text in (*waived, *undecided))
    broken = grouped((item.kernel.record.key, item.text) for item in items if item.waiver is None)
    return filled_text(
        "junit.xml.jinja",
        outcome=outcome,
        broken=broken,
        skipped={key: texts for key, texts in skipped.items() if key not in broken},
        seconds=sum(kernel.seconds[1] or 0.0 for kernel in outcome.kernels),
        now=datetime.datetime.now().isoformat(timespec="seconds"),
        host=platform.node(),
        facts=_facts,
        one_line=one_line,
    )


def _facts(kernel: Compared) -> str:
    head = f"{sentences.VERDICTS[kernel.verdict]} {sentences.change(kernel)}".rstrip()
    return printable("\n".join([head, *sentences.why(kernel)]))


def place_of(kernel: Compared, settings: str = "") -> tuple[str, int] | None:
    """File and line that a kernel stands at, as the repository knows it; without one the settings' first line."""
    found = source_place(kernel.record)
    if found is None:
        return (settings, 1) if settings else None
    parts = PurePath(found[0]).parts
    # The program may have been built elsewhere: the longest end of its path that lies here.
    for start in range(len(parts)):
        candidate = PurePath(*parts[start:])
        if not candidate.is_absolute() and ".." not in candidate.parts and Path(candidate).is_file():
            return candidate.as_posix(), found[1]
    return PurePath(found[0]).as_posix(), found[1]


def sarif_text(outcome: Outcome, gate: GateResult | None, settings: str = "") -> str:
    """SARIF 2.1.0: a result for every break, waived ones suppressed; without a gate one for every SLOWER. The first
    line of ``settings`` stands for kernels without line information: code scanning refuses results without a place.
    """
    slower = (kernel for kernel in outcome.kernels if kernel.verdict == "slower")
    found = [Break(one, "time", sentences.change(one)) for one in slower] if gate is None else gate.broken
    rules = list(dict.fromkeys(item.condition for item in found))
    described = [{"id": rule, "shortDescription": {"text": f"gate on {rule}"}} for rule in rules]
    run = {
        "tool": {"driver": {"name": "gemmprof", "version": __version__, "rules": described}},
        "results": [_result(item, rules.index(item.condition), settings) for item in found],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json_text({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _result(item: Break, rule: int, settings: str) -> dict[str, Any]:
    kernel = item.kernel
    file, line = place_of(kernel, settings) or (kernel.record.name, 1)
    # Neither times nor lines: the same kernel against the same condition is the same alert the next day.
    identity = "\0".join((*kernel.record.key, item.condition)).encode("utf-8", "replace")
    result: dict[str, Any] = {
        "ruleId": item.condition,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": f"{kernel.match.title}: {item.text}. " + " ".join(sentences.why(kernel))},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(file)}, "region": {"startLine": line}},
                "logicalLocations": [{"fullyQualifiedName": kernel.record.name, "kind": "function"}],
            }
        ],
        "partialFingerprints": {
            "kernelAndCondition/v1": hashlib.blake2b(identity, digest_size=16).hexdigest()
        },
    }
    if item.waiver is not None:
        result["suppressions"] = [{"kind": "external", "justification": sentences.waiver_words(item.waiver)}]
    return result


TITLE = "gemmprof"
UNDECIDED = 5  # so many undecided kernels are named


def github_annotations(
    outcome: Outcome, gate: GateResult | None, settings: str = ""
) -> list[tuple[str, str, str, tuple[str, int] | None]]:
    """Kind, title, text and place of each annotation for GitHub; the undecided kernels are one together."""
    lines: list[sentences.GateLine] = []
    if gate is None:
        slower = (kernel for kernel in outcome.kernels if kernel.verdict == "slower")
        lines += [("warning", f"{one.match.title}: SLOWER {sentences.change(one)}", one) for one in slower]
        lines.append(("notice", sentences.tally(outcome), None))
    else:
        lines += [line for line in sentences.gate_lines(gate) if line[0] != "notice"]
        if gate.undecided:
            kernels = dict.fromkeys(kernel.match.title for kernel, _ in gate.undecided)
            shown = "; ".join(list(kernels)[:UNDECIDED])
            more = f" and {len(kernels) - UNDECIDED} more" if len(kernels) > UNDECIDED else ""
            text = f"not decided: {len(kernels)} of {len(outcome.kernels)}: {shown}{more}"
            lines.append(("notice", text, None))
        lines.append(("notice", sentences.gate_summary(gate, outcome), None))
    return [
        (kind, TITLE, text, None if kernel is None else place_of(kernel, settings))
        for kind, text, kernel in lines
    ]
