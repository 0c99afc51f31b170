"""What was not collected is never told as "does not": every sentence, on every subset of what ncu can collect.

A launch of a full report is cut down to what one section, one set, one analysis or two metrics alone would have
collected. Whatever pages, `show` and `explain` then deny must be denied of the whole report, too.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from asked import metrics_read
from recorded_data import ReadRecorded
from scale import few

from gemmprof import metrics
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse, analyses
from gemmprof.analysis.session import Session
from gemmprof.model import KernelProfile
from gemmprof.reports.agents import markdown
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.html import Report, kernel_article
from gemmprof.reports.terminal.section_tables import rows
from gemmprof.reports.words import Explained

DENIES = re.compile(r"\b(no|not|nothing|none|without|unused|never|neither|nor|cannot)\b", re.IGNORECASE)
OF_COLLECTION = re.compile(
    r"not collected|not counted|partly collected|Not in this report|counters that were not|left out, not zero|"
    r"Links without counters|Not all of this|was counted|holds no warp samples|those that were did nothing|"
    r"no point under the roofs|compile with -lineinfo|Source lines none|only durations|too little|known by|No finding",
    re.IGNORECASE,
)
"""Sentences on the report, not on the kernel."""
SHARE = re.compile(r"issue nothing in [\d.]+ %|[\d.]+ % no warp was ready")
"""Denied in a share of the cycles, which is a figure."""
NUMBERS = re.compile(r"[\d.,]+")
"""A share from another counter may differ in a digit: `issued` and its idle cycles."""
SETS = ("source_counters", "basic", "detailed", "roofline", "two_metrics", "no_source")


def said(analysis: KernelAnalysis) -> set[str]:
    """Everything that denies something, on the page, in the terminal's rows and in the explanation."""
    session = Session("one launch", (analysis,))
    pages = plan(session)
    page = str(kernel_article(Report(session, pages), pages.pages[0]))
    text = re.sub(r"<(textarea|script|svg|code)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = re.sub(r"</(p|li|t[dhr]|d[dt]|h\d|figcaption|caption|summary)>", " .\n", text)
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    for result in analysis.results.values():
        text += "\n" + "\n".join(" ".join(row) for row in rows(result))
    text += "\n" + markdown([Explained(analysis.explanation, pages.pages[0].family)])
    sentences = (re.sub(r"\s+", " ", part).strip() for part in re.split(r"(?<=[.;:])\s+|\n", text))
    return {
        NUMBERS.sub("#", sentence)
        for sentence in sentences
        # A state of warps is called so; it denies nothing.
        if DENIES.search(SHARE.sub("", sentence).replace("No Instruction", ""))
        and not OF_COLLECTION.search(sentence)
    }


def only(profile: KernelProfile, names: set[str]) -> KernelProfile:
    """The launch as a collection of these metrics would have left it."""
    return replace(
        profile,
        metrics={k: v for k, v in profile.metrics.items() if k in names or k.startswith("device__")},
        instances={k: v for k, v in profile.instances.items() if k in names},
        rules=(),
    )


def subsets(profile: KernelProfile, recorded: ReadRecorded, *, alone: bool) -> Iterator[tuple[str, set[str]]]:
    read: set[str] = set()
    for analysis in analyses():
        names = metrics_read(analysis, profile)
        read |= names
        yield analysis.NAME, names
        for section, of_section in analysis.GROUP.sources.items():
            yield section, set(of_section)
    for part in SETS:
        launch = recorded(f"partial_{part}")[0]
        yield part, {*launch.metrics, *launch.instances}
    for metric in sorted(read if alone else ()):
        yield f"{metric} and the duration", {metric, metrics.DURATION}


@pytest.mark.parametrize(
    ("report", "launch", "alone"),
    few(
        [("flaws_async_copy", 0, True), ("flaws_spills", 0, False), ("flaws_tensor", 0, False)],
        [("flaws_spills", 0, False)],
    ),
)
def test_nothing_is_denied_that_was_not_collected(
    report: str, launch: int, alone: bool, recorded: ReadRecorded
) -> None:
    profile = replace(recorded(report, source=True)[launch], rules=())
    true = said(analyse(profile))
    false = {}
    count = 0
    tried = set()
    for name, names in subsets(profile, recorded, alone=alone):
        count += 1
        if frozenset(names) in tried:
            continue
        tried.add(frozenset(names))
        for sentence in said(analyse(only(profile, names))) - true:
            false.setdefault(sentence, name)
    assert count > (150 if alone else 20)
    assert false == {}
