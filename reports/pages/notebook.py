"""How a run and a kernel show themselves in a notebook: the pages' own partials, and tables as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any

import pandas as pd

from gemmprof.analysis.comparison.outcome import Outcome
from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.analysis.session import Session
from gemmprof.base.printable import visible
from gemmprof.model import Finding
from gemmprof.reports import sentences
from gemmprof.reports.facts import facts, headline, run_facts, tiles
from gemmprof.reports.formatting import change_text, dimensions, nanoseconds, ratio, times
from gemmprof.reports.pages.contents import KernelPage, Plan
from gemmprof.reports.pages.environment import asset, filled
from gemmprof.reports.pages.ladder_page import Overview
from gemmprof.reports.pages.sections import sections
from gemmprof.reports.words import place, saved, title
from gemmprof.runs.directory import Run

# Sections of a kernel page that a notebook shows (the others are long, or need the page's script).
SECTIONS = ("speed_of_light", "roofline", "memory_chart", "warp_states", "instruction_mix", "rules")

_outputs = count()  # numbers the outputs of one notebook, so that ids of two figures differ


@cache
def _style() -> str:
    """The colours of the pages and the rules of `notebook.css`."""
    sheet = asset("style.css")
    tokens = sheet[: sheet.index("}") + 1].replace(":root, ", "")
    # The memory chart's rules name its class only, so they are safe beside foreign content.
    chart = "\n".join(line for line in sheet.splitlines() if line.startswith(".memory-chart"))
    return f"{tokens}\n{asset('notebook.css')}\n{chart}"


def run_html(run: Run) -> str:
    """The ladder of a run, from its ``run.json`` alone."""
    view = Overview(Session(title=run.directory.name, kernels=(), run=run), Plan((), {}, 0))
    return filled(
        "notebook_run.html",
        run=run, groups=view.groups, size_tables=view.sizes, facts=run_facts(run), style=_style(),
    )  # fmt: skip


def kernel_html(analysis: KernelAnalysis) -> str:
    """The verdict, the key figures and the main sections of one kernel."""
    page = KernelPage(key="kernel", analysis=analysis)
    prefix = f"gp{next(_outputs)}-"
    shown, absent = sections(page, None, prefix, only=SECTIONS)
    return filled(
        "notebook_kernel.html",
        page=page,
        profile=analysis.profile,
        verdict=analysis.verdict,
        explanation=analysis.explanation,
        no_links=lambda place: "",
        tiles=tiles(page),
        sections=shown,
        absent=absent,
        p=prefix,
        style=_style(),
    )


FAMILIES = 25  # families that a report lists in a notebook


def session_html(session: Session) -> str:
    """Where a report is from, and its families."""
    shown = session.families[:FAMILIES]
    left = len(session.families) - len(shown)
    more, lead = f"and {left:,} more families" if left else "", facts(session) if session.kernels else ""
    return _table(_family_rows(shown), title=headline(session), lead=lead, more=more)


def families_html(found: Sequence[Family]) -> str:
    """Families as a table."""
    return _table(_family_rows(found))


def findings_html(found: Sequence[tuple[Family, Finding, float | None]]) -> str:
    """Findings as a table, each with its family and the time that it saves there in nanoseconds."""
    rows = [
        {
            "id": family.id,
            "kernel": family.label,
            "finding": title(finding),
            "saves": saved(finding),
            "of all launches": nanoseconds(saves_ns),
            "where": "; ".join(place(where) for where in finding.places[:2]),
            "what to change": finding.change,
        }
        for family, finding, saves_ns in found
    ]
    return _table(rows)


def outcome_html(found: Outcome) -> str:
    """The verdicts as a table: the times, why they changed, and the quantities that moved most."""
    rows = [
        {
            "verdict": sentences.VERDICTS[kernel.verdict],
            "kernel": sentences.named(kernel),
            "before": sentences.seconds(kernel, "before"),
            "after": sentences.seconds(kernel, "after"),
            "time": sentences.change(kernel),
            "why": "; ".join(sentences.why(kernel)),
            "what moved most": "; ".join(
                f"{one.title} {change_text(one)}" for one in sentences.moved(kernel)[:3]
            ),
        }
        for kernel in found.kernels
    ]
    return _table(rows, lead=f"{found.before} → {found.after}: {sentences.tally(found)}")


def outcome_frame(found: Outcome) -> pd.DataFrame:
    """One row a kernel: verdict, times in seconds, change with its interval, what changed and why."""
    return pd.DataFrame(
        {
            "kernel": kernel.record.name,
            "grid": kernel.record.grid_text,
            "verdict": kernel.verdict,
            "before_s": kernel.seconds[0],
            "after_s": kernel.seconds[1],
            **{name: getattr(kernel.judgement, name, None) for name in ("change", "low", "high")},
            "changed": ", ".join(kernel.changed),
            "why": "; ".join(sentences.why(kernel)),
        }
        for kernel in found
    )


def _family_rows(found: Sequence[Family]) -> list[dict[str, str]]:
    ranges = any(family.nvtx for family in found)
    return [
        {
            "id": family.id,
            "kernel": family.label,
            **({"range": family.path} if ranges else {}),
            "owner": family.owner.title,
            "launches": f"{family.count:,}",
            "time": nanoseconds(family.total_ns),
            "share": ratio(family.share),
            "spread": times(family.spread),
            "grid": dimensions(family.grid),
            "to change first": title(family.worst) if family.worst is not None else "",
            "saves": ratio(family.worst.saves, 0) if family.worst is not None else "",
        }
        for family in found
    ]


def _table(rows: Sequence[Mapping[str, str]], *, title: str = "", lead: str = "", more: str = "") -> str:
    """Rows as a table, each by the titles of its columns."""
    return filled("notebook_table.html", rows=rows, title=title, lead=lead, more=more, style=_style())


_TIMES = ("median", "minimum", "p10", "p90", "yardstick_median")


def run_frame(run: Run) -> pd.DataFrame:
    """One row a stage and problem: times in seconds, speed in TFLOP/s, verification, failure."""
    rows = []
    for result in run.results:
        timing, check = result.timing, result.verification
        rows.append(
            {
                "stage": result.stage,
                "name": run.record_of(result).stage.name,
                **{name: getattr(result.problem, name) for name in ("m", "n", "k", "dtype")},
                **{f"{name}_s": getattr(timing, name, None) for name in _TIMES},
                "tflops": timing.tflops(result.problem) if timing else None,
                "relative_error": check.relative_error if check else None,
                "verified": check.passed if check else None,
                "failure": result.failure,
            }
        )
    return pd.DataFrame(rows)


def kernel_frame(analysis: KernelAnalysis) -> pd.DataFrame:
    """Every scalar metric of the launch: ``value`` (base units) and ``unit``, indexed by metric name."""
    profile = analysis.profile
    names = sorted(profile.metrics)
    return pd.DataFrame(
        {
            "value": pd.Series([profile.metrics[name] for name in names], dtype=object),
            "unit": [profile.units.get(name, "") for name in names],
        }
    ).set_index(pd.Index([visible(name) for name in names], name="metric"))


# What draws each type that is `Shown`, in a notebook and as a table.
VIEWS = {
    Outcome: (outcome_html, outcome_frame),
    Run: (run_html, run_frame),
    KernelAnalysis: (kernel_html, kernel_frame),
}


Column = tuple[str, Callable[[KernelAnalysis, Family], Any]]


def _of_light(name: str) -> Column:
    return "float64", lambda one, _: one.field(SpeedOfLight, name)


def _occupancy(name: str) -> Column:
    return "float64", lambda one, _: one.field(LaunchOccupancy, f"{name}_percent")


def _size(what: str, at: int) -> Column:
    return "int64", lambda one, _: getattr(one.profile.launch, what)[at]


# Type and value of each column; what was not collected is NA or NaN.
_COLUMNS: dict[str, Column] = {
    "report": ("string", lambda one, _: one.profile.report),
    "launch": ("int64", lambda one, _: one.profile.index),
    "process": ("Int64", lambda one, _: one.profile.session.process),
    "kernel": ("string", lambda _, family: family.label),
    "name": ("string", lambda one, _: one.profile.name),
    "nvtx": ("string", lambda one, _: "/".join(one.profile.nvtx)),
    "family": ("int64", lambda _, family: family.number),
    "owner": ("string", lambda _, family: family.owner.key),
    **{f"grid_{axis}": _size("grid", at) for at, axis in enumerate("xyz")},
    **{f"block_{axis}": _size("block", at) for at, axis in enumerate("xyz")},
    "registers": ("Int64", lambda one, _: one.profile.launch.registers_per_thread),
    "static_shared_bytes": ("Int64", lambda one, _: one.profile.launch.static_shared_memory),
    "dynamic_shared_bytes": ("Int64", lambda one, _: one.profile.launch.dynamic_shared_memory),
    "waves": ("float64", lambda one, _: one.profile.launch.waves_per_sm),
    **{name: _of_light(name) for name in ("duration_ns", "sm_clock_hz", "sm_percent", "memory_percent")},
    **{name: _of_light(name) for name in ("l1_percent", "l2_percent", "dram_percent")},
    "flops": ("float64", lambda one, _: one.field(Roofline, "main", "achieved")),
    "bytes_per_second": (
        "float64",
        lambda one, _: next(
            (f.achieved for f in one.field(Roofline, "memory_roofs") or () if f.level == "dram"), None
        ),
    ),
    **{f"{name}_occupancy_percent": _occupancy(name) for name in ("theoretical", "achieved")},
    "main_stall": ("string", lambda one, _: one.field(WarpStates, "main_stall", "reason", "key")),
    "limited_by": ("string", lambda one, _: one.verdict.limited_by),
}


def launches_frame(session: Session, metrics: tuple[str, ...] = ()) -> pd.DataFrame:
    """One row a launch; ``kernel`` is the name for people, ``name`` the full demangled one, ``family`` 3 for ``#3``;
    scalar ``metrics`` as more columns, float64 in base units.
    """
    family = {member: one for one in session.by_time for member in one.members}
    rows = [
        {
            **{name: value(kernel, family[position]) for name, (_, value) in _COLUMNS.items()},
            **{name: kernel.profile.number(name) for name in metrics},
        }
        for position, kernel in enumerate(session.kernels)
    ]
    columns = {**{name: kind for name, (kind, _) in _COLUMNS.items()}, **dict.fromkeys(metrics, "float64")}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)
