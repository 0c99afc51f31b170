"""The explanation of every launch that has a page: what to change first there."""

from __future__ import annotations

from dataclasses import replace

from gemmprof.reports.pages.contents import Plan


def explained(pages: Plan) -> Plan:
    """The same plan with every page's launch explained."""
    by_launch = {
        index: replace(page, explanation=page.analysis.explanation) for index, page in pages.by_launch.items()
    }
    by_key = {page.key: page for page in by_launch.values()}
    return replace(
        pages,
        pages=tuple(by_launch.values()),
        by_launch=by_launch,
        stand_ins={index: by_key[page.key] for index, page in pages.stand_ins.items()},
    )
