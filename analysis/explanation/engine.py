"""`explain`: one launch's findings, most saved first, with the trust lines that come before them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant
from gemmprof.analysis.explanation.causes import detect
from gemmprof.analysis.explanation.demands.resources import BY_KEY, TRAFFIC
from gemmprof.analysis.explanation.demands.time_model import FEW_LOADS, LATENCY, Settings, TimeModel
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.places import places
from gemmprof.analysis.explanation.prediction import Prediction, Predictor
from gemmprof.analysis.explanation.trust import doubts
from gemmprof.model import AtLimit, Explanation, Finding, KernelProfile, Rewrite

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
        findings = tuple(_finding(found, one) for one in weighed)
        if len(weighed) > 1:
            together = max(predictor.together(one.variant.fix for one in weighed), findings[0].saves)
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


@dataclass(frozen=True)
class Weighed:
    """A candidate with what each of its variants saves, the best first: that one stands for the finding."""

    candidate: Candidate
    variants: tuple[tuple[Variant, Prediction], ...]

    @property
    def variant(self) -> Variant:
        """The best."""
        return self.variants[0][0]

    @property
    def prediction(self) -> Prediction:
        """What it saves."""
        return self.variants[0][1]

    def at_most(self, saves: float) -> Weighed:
        """The same with no variant that saves more."""
        return replace(self, variants=tuple((variant, one.at_most(saves)) for variant, one in self.variants))


def weigh(found: Work, predictor: Predictor) -> list[Weighed]:
    """Candidates that save enough, most saved first; general names behind specific ones that explain the
    same.
    """
    worth = []
    for candidate in detect(found):
        saving = [one for one in candidate.variants if predictor.quick(one.fix) >= candidate.least]
        if saving:
            variants = sorted(
                ((one, predictor.predict(one)) for one in saving), key=lambda one: -one[1].saves
            )
            worth.append(Weighed(candidate, tuple(variants)))
    worth.sort(key=lambda one: -one.prediction.saves)
    kept: list[Weighed] = []
    # Time in which warps are stalled together is a loss of its own, which no general name tells.
    told = [(one.candidate.rank, _without_stalls(one, predictor)) for one in worth]
    for one in worth:
        candidate, saves = one.candidate, one.prediction.saves
        rival = max((told_saves for rank, told_saves in told if rank > candidate.rank), default=0.0)
        if rival < candidate.yields * saves:
            kept.append(one)
        elif candidate.follows and saves < ALIKE * rival:
            kept.append(one.at_most(rival))
    kept.sort(key=lambda one: (-one.prediction.saves, -one.candidate.rank))
    return kept[:MOST]


def _without_stalls(one: Weighed, predictor: Predictor) -> float:
    fix = one.variant.fix
    return predictor.quick(replace(fix, stalled=0.0)) if fix.stalled else one.prediction.saves


def _finding(found: Work, one: Weighed) -> Finding:
    candidate, best = one.candidate, one.prediction
    return Finding(
        cause=candidate.cause,
        saves=best.saves,
        saves_low=best.low,
        saves_high=best.high,
        places=places(found, candidate.attributed),
        evidence=candidate.evidence,
        change=one.variant.change or candidate.change,
        variants=tuple(
            Rewrite(variant.name, saved.saves, saved.low, saved.high, variant.exact)
            for variant, saved in one.variants
        ),
    )


def _limit(model: TimeModel) -> AtLimit | None:
    key, share = model.limit()
    title = "latency" if key == LATENCY else BY_KEY[key].title
    return AtLimit(title, min(1.0, share))
