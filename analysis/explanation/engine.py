"""`explain`: one launch's findings, most saved first, with the trust lines that come before them."""

from __future__ import annotations

from dataclasses import replace

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate
from gemmprof.analysis.explanation.causes import detect
from gemmprof.analysis.explanation.demands.resources import BY_KEY, TRAFFIC
from gemmprof.analysis.explanation.demands.time_model import FEW_LOADS, LATENCY, Settings, TimeModel
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.places import places
from gemmprof.analysis.explanation.prediction import Prediction, Predictor
from gemmprof.analysis.explanation.trust import doubts
from gemmprof.model import AtLimit, Explanation, Finding, KernelProfile

MOST = 8
"""Findings of one launch."""
ALIKE = 1.15
"""Names that save the same within this factor: the specific one leads, the other follows."""


def explain(profile: KernelProfile, settings: Settings | None = None) -> Explanation:
    """What to change first in one launch.

    Needs no GPU. A sparse report gives fewer findings, and the trust lines say which option brings what is
    missing.
    """
    return explain_work(work(profile.in_names_of_today()), settings)


def explain_work(found: Work, settings: Settings | None = None) -> Explanation:
    """The same, of what was already made out of the launch."""
    profile = found.profile
    trust = tuple(doubts(found))
    findings: tuple[Finding, ...] = ()
    together = None
    limit = None
    model = TimeModel(found, settings)
    if profile.workload == "kernel" and found.elapsed > 0 and model.known:
        predictor = Predictor(model)
        weighed = weigh(found, predictor)
        findings = tuple(_finding(found, candidate, prediction) for candidate, prediction in weighed)
        if len(weighed) > 1:
            together = max(predictor.together(candidate for candidate, _ in weighed), findings[0].saves)
        limit = _limit(model)
    return Explanation(
        launch=profile.index,
        report=profile.report,
        name=profile.name,
        nvtx=profile.nvtx,
        duration_ns=profile.number(metrics.DURATION),
        trust=trust,
        # Whether nothing is left to gain is known only where instructions and waits were looked at.
        at_limit=limit if not findings and found.samples and len(found.loads) > FEW_LOADS else None,
        findings=findings,
        together=together,
        limit=limit,
        traffic=_traffic(found) if findings else None,
    )


def _traffic(found: Work) -> AtLimit | None:
    """The memory that needs longest for what the launch moves, as a share of the time; None where none was measured."""
    moved = [load for key in TRAFFIC if (load := found.loads.get(key)) is not None and load.share > 0]
    busiest = max(moved, key=lambda load: load.share, default=None)
    return None if busiest is None else AtLimit(busiest.resource.title, min(1.0, busiest.share))


def weigh(found: Work, predictor: Predictor) -> list[tuple[Candidate, Prediction]]:
    """Candidates that save enough, most saved first; general names behind specific ones that explain the
    same.
    """
    worth = []
    for candidate in detect(found):
        if predictor.quick(candidate.fix) >= candidate.least:
            worth.append((candidate, predictor.predict(candidate)))
    worth.sort(key=lambda item: -item[1].saves)
    kept: list[tuple[Candidate, Prediction]] = []
    # Time in which warps are stalled together is a loss of its own, which no general name tells.
    told = [
        (one, predictor.quick(replace(one.fix, stalled=0.0)) if one.fix.stalled else prediction.saves)
        for one, prediction in worth
    ]
    for candidate, prediction in worth:
        rival = max((saves for other, saves in told if other.rank > candidate.rank), default=0.0)
        if rival < candidate.yields * prediction.saves:
            kept.append((candidate, prediction))
        elif candidate.follows and prediction.saves < ALIKE * rival:
            kept.append((candidate, prediction.at_most(rival)))
    kept.sort(key=lambda item: (-item[1].saves, -item[0].rank))
    return kept[:MOST]


def _finding(found: Work, candidate: Candidate, prediction: Prediction) -> Finding:
    return Finding(
        cause=candidate.cause,
        saves=prediction.saves,
        saves_low=prediction.low,
        saves_high=prediction.high,
        places=places(found, candidate.attributed),
        evidence=candidate.evidence,
        change=candidate.change,
    )


def _limit(model: TimeModel) -> AtLimit | None:
    key, share = model.limit()
    title = "latency" if key == LATENCY else BY_KEY[key].title
    return AtLimit(title, min(1.0, share))
