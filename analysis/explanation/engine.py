"""`explain`: one launch's findings, most saved first, with the trust lines that come before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation import levers
from gemmprof.analysis.explanation.candidate import SPECIFIC, Candidate, Variant
from gemmprof.analysis.explanation.causes import detectors
from gemmprof.analysis.explanation.causes.reuse import looked_up_again
from gemmprof.analysis.explanation.code.latency import behind_atomics
from gemmprof.analysis.explanation.demands.resources import BY_KEY, FULL, TRAFFIC
from gemmprof.analysis.explanation.demands.rounds import with_counts
from gemmprof.analysis.explanation.demands.time_model import FEW_LOADS, LATENCY, NOTHING, Fix, TimeModel
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1
from gemmprof.analysis.explanation.demands.work import Array, Work, once
from gemmprof.analysis.explanation.prediction import FLOOR, Prediction, Predictor
from gemmprof.analysis.explanation.trust import WAITS, counts_unlike, doubts, runs_unlike
from gemmprof.analysis.reading.report import few_collections
from gemmprof.analysis.sections.by_line import Code, base_name
from gemmprof.model import NOTABLE, AtLimit, CodePlace, Explanation, Finding, KernelProfile, Rewrite
from gemmprof.model.profiles import is_notable

# --- Places -----------------------------------------------------------------------------------------------------------
# Where a finding sits: the user's own lines that its weight falls on, else the instructions.
#
# What a called function does counts where it is called, code of a toolkit's header against the line of the user's own
# file that it was inlined into: the nearest instruction before it that has one, where the report says no more. Code
# without lines has stretches of instructions as places, each named by its heaviest one.


MOST_PLACES = 5  # places of one finding
STRETCH = 8  # instructions without a line that lie no further apart are one place
LEAST = 0.03  # share of a finding below which a place is not named


def places(work: Work, weights: Array | None) -> tuple[CodePlace, ...]:
    """The places that a weight by instruction falls on, heaviest first; at most `MOST_PLACES`."""
    if weights is None or work.program is None:
        return ()
    total = float(weights.sum())
    if total <= 0:
        return ()
    code, weights = Code(work.profile), _at_the_calls(work, weights)
    groups: dict[tuple[str, int] | int, list[int]] = {}
    stretch = last = -STRETCH - 1
    for at in np.flatnonzero(weights).tolist():
        if (own := work.own_lines[at]) is None:
            # Code without lines: what lies close together is one place.
            stretch = stretch if at - last <= STRETCH and stretch >= 0 else at
            last = at
        groups.setdefault(stretch if own is None else own, []).append(at)
    ranked = sorted(groups.items(), key=lambda item: -float(weights[item[1]].sum()))
    found: list[CodePlace] = []
    for key, indices in ranked[:MOST_PLACES]:
        part = float(weights[indices].sum()) / total
        if found and part < LEAST:
            break
        worst = work.instructions[max(indices, key=lambda at: weights[at])]
        place = CodePlace(None, None, part, "", worst.address, worst.sass.strip())
        if isinstance(key, tuple):
            place = replace(place, file=key[0], line=key[1], text=code.line_text(*key))
            if worst.file is not None and (worst.file, worst.line) != key:
                place = replace(place, inlined=(f"{base_name(worst.file)}:{worst.line}",))
        found.append(place)
    return tuple(found)


def _at_the_calls(work: Work, weights: Array) -> Array:
    """The same with what weighs in a toolkit's function (a division) where it is called: its code has the last line."""
    found = weights.copy()
    for first, last in work.code.functions:
        callers = (at for at in work.code.callers((first, last)) if work.executed[at] > 0)
        calls = [at for at in callers if not first <= at <= last]
        often = work.executed[calls]
        if calls and all(work.own_lines[at] is not None for at in calls):
            found[calls] += float(found[first : last + 1].sum()) * often / float(often.sum())
            found[first : last + 1] = 0.0
    return found


# --- `explain` --------------------------------------------------------------------------------------------------------


MOST_FINDINGS = 8  # findings of one launch
SAME = 0.5  # of what a finding saves alone: where less is left of it once another is done, both are one loss
# Of what the statement before it saves: a general name for the same loss that saves less is no statement. Of those of
# opened studies' flawed sides a fix removes what 15 % name, 40 % of the others.
NEARLY = 0.8
# The same of a specific name: a fix removes what 2 of 12 name that save less, what 103 of 210 others do.
CLEARLY_LESS = 0.25
SHARES = 3  # of what the time consists of, so many are named


@few_collections()
def explain(profile: KernelProfile) -> Explanation:
    """What to change first in one launch.

    Needs no GPU. A sparse report gives fewer findings, and the trust lines say which option brings what is
    missing.
    """
    return explain_work(with_counts(profile.in_names_of_today()))


def explain_work(found: Work) -> Explanation:
    """The same, of what was already made out of the launch."""
    profile, model, full = found.profile, TimeModel(found), False
    findings: tuple[Finding, ...] = ()
    other: tuple[Finding, ...] = ()
    time: tuple[AtLimit, ...] = ()
    together = limit = None
    if levers.is_debug_build(profile):
        pass  # said once, and nothing of code that nobody means to run
    elif profile.workload == "kernel" and found.elapsed > 0 and model.known and not counts_unlike(found):
        predictor = Predictor(model)
        everything = weigh(found, predictor)
        weighed = _said(everything, predictor)
        findings, other = _told(found, weighed)
        said = {one.cause for one in findings if not one.another_way_to and one.notable}
        losses = [one for one in weighed if one.candidate.cause in said]
        if len(losses) > 1:
            together = max(at_once(losses, predictor).saves, *(one.prediction.saves for one in losses))
        time = _time(model) if found.samples or len(found.loads) > FEW_LOADS else ()
        limit = next((one for one in time if one.resource != WAITS), None)
        full = _full(model, everything)
    elif profile.workload == "kernel":
        findings, other = _told(found, _measured(found))
    # The memory that needs longest for what the launch moves, as a share of the time; None where none was measured.
    moved = [load for key in TRAFFIC if (load := found.loads.get(key)) is not None and load.share > 0]
    busiest = max(moved, key=lambda load: load.share, default=None)
    traffic = None if busiest is None else AtLimit(busiest.resource.title, min(1.0, busiest.share))
    return Explanation(
        launch=profile.index,
        report=profile.report,
        name=profile.name,
        nvtx=profile.nvtx,
        duration_ns=profile.number(metrics.DURATION),
        trust=tuple(doubts(found)),
        at_limit=limit if full and not findings else None,
        findings=findings,
        together=together,
        limit=limit,
        traffic=traffic if findings else None,
        other_arithmetic=other,
        time=time[:SHARES],
        levers=(
            *(() if findings or full else levers.of_the_launch(found)),
            *levers.levers(profile, {one.cause for one in (*findings, *other)}),
        ),
    )


def _told(found: Work, weighed: Sequence[Weighed]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings that keep the arithmetic, and those of another one: a list of its own."""
    by_cause = {one.candidate.cause: one for one in weighed}
    told = [(one, _finding(found, one, by_cause.get(one.another_way_to))) for one in weighed]
    other = tuple(said for one, said in told if one.candidate.another_arithmetic)
    return tuple(said for one, said in told if not one.candidate.another_arithmetic), other


@dataclass(frozen=True)
class Weighed:
    """A candidate with what each of its variants saves, the best first: that one stands for the finding."""

    candidate: Candidate
    variants: tuple[tuple[Variant, Prediction], ...]
    another_way_to: str = ""

    @property
    def variant(self) -> Variant:
        """The best."""
        return self.variants[0][0]

    @property
    def prediction(self) -> Prediction:
        """What it saves."""
        return self.variants[0][1]

    @property
    def change(self) -> str:
        """What to try."""
        return self.variant.change or self.candidate.change

    def told(self, predictor: Predictor) -> Weighed:
        """The same as records say that it comes true."""
        variants = [(variant, predictor.told(variant, one)) for variant, one in self.variants]
        return replace(self, variants=tuple(sorted(variants, key=lambda one: -one[1].saves)))


@once
def detect(found: Work) -> tuple[Candidate, ...]:
    """What each cause says of a launch, not yet weighed."""
    known = detectors(code=found.program is not None)
    return tuple(candidate for detector in known for candidate in detector(found))


def weigh(found: Work, predictor: Predictor) -> list[Weighed]:
    """Candidates that save enough, most saved first; general names behind specific ones for it, as another way."""
    worth = []
    for candidate in levers.offered(found, detect(found)):
        variants = [
            (one, predictor.predict(one))
            for one in candidate.variants
            if one.known is not None or predictor.quick(one.fix) >= candidate.least
        ]
        if variants:
            worth.append(Weighed(candidate, tuple(sorted(variants, key=lambda one: -one[1].saves))))
    worth.sort(key=lambda one: -one.prediction.saves)
    # Time in which warps are stalled together is a loss of its own, which no general name tells.
    alone = (
        predictor.quick(replace(fix, stalled=0.0))
        if (fix := one.variant.fix).stalled
        else one.prediction.saves
        for one in worth
    )
    told = list(zip(alone, (one.candidate for one in worth), strict=True))
    kept: list[Weighed] = []
    ways: list[Weighed] = []
    for one in worth:
        leader = _led_by(one, told)
        (ways if leader else kept).append(replace(one, another_way_to=leader))
    # Calibrated last: names were weighed by what the model says.
    names = [one.told(predictor) for one in (*kept, *ways[: max(0, MOST_FINDINGS - len(kept))])]
    return _in_order(names)[:MOST_FINDINGS]


def _led_by(one: Weighed, told: Sequence[tuple[float, Candidate]]) -> str:
    """The more specific cause that saves most, where that is enough of what this general name would; '' for none."""
    mine = one.candidate
    others = [each for each in told if each[1].cause != mine.cause and not each[1].another_arithmetic]
    specific = [each for each in others if each[1].rank > mine.rank]
    rival, leader = max(specific, key=lambda each: each[0], default=(0.0, mine))
    return "" if rival < mine.yields * one.prediction.saves else leader.cause


def _place(one: Weighed) -> tuple[float, int]:
    """By what it saves. Where wider accesses save no more than something else does, that is what is wrong; what only
    fast functions save steps behind what computes the same, as general names do.
    """
    candidate, saves = one.candidate, one.prediction.saves
    if candidate.cause == "narrow_access":
        saves -= FLOOR
    elif candidate.cause == "expensive_math":
        exact = max((to.saves for way, to in one.variants if way.exact), default=0.0)
        saves = max(exact, candidate.yields * saves)
    return -saves, -candidate.rank


def _in_order(names: Sequence[Weighed]) -> list[Weighed]:
    """Most saved first; behind each what it would save as well: two names of one loss are not two losses."""
    found = sorted((one for one in names if not one.another_way_to), key=_place)
    for way in reversed([one for one in names if one.another_way_to]):
        behind = [place for place, one in enumerate(found) if one.candidate.cause == way.another_way_to]
        found.insert(behind[0] + 1 if behind else len(found), way)
    return found


def _said(weighed: Sequence[Weighed], predictor: Predictor) -> list[Weighed]:
    """Of what was weighed, what the kernel can lose and what can be told from nothing, each loss with its ways."""
    # That a launch is short is no loss of it: what it could be one with `analysis.whole.program_advice` tells.
    worth = [
        one for one in weighed if one.prediction.saves > FLOOR and one.candidate.cause != "launch_overhead"
    ]
    if runs_unlike(predictor.model.work):  # how even that run was says nothing of another
        worth = [one for one in worth if one.candidate.attributed is not None or one.variant.known]
    told = [(one.prediction.saves, one.candidate) for one in worth]
    saves = {candidate.cause: saved for saved, candidate in told}
    # What a name is another way to may not be said, or, as it is told, save too little to be the same.
    names = [
        replace(one, another_way_to=_led_by(one, told))
        if one.another_way_to
        and saves.get(one.another_way_to, 0.0) < min(SAME, one.candidate.yields) * one.prediction.saves
        else one
        for one in worth
    ]
    # Nor does what is no statement itself lead one.
    tell = {one.candidate.cause: _tells(one) for one in names}
    names = [
        replace(one, another_way_to="") if _tells(one) and not tell.get(one.another_way_to, True) else one
        for one in names
    ]
    return _in_order(_one_a_loss(names, predictor))


def _tells(one: Weighed) -> bool:
    """Whether it saves enough to be a statement."""
    return is_notable(one.candidate.cause, one.prediction.saves, placed=one.candidate.attributed is not None)


def _one_a_loss(names: Sequence[Weighed], predictor: Predictor) -> list[Weighed]:
    """The same, each with what it is another way to: what stands before it and saves the same time."""
    found: list[Weighed] = []
    # Behind what saves less than half as much it would be told of as the smaller loss.
    saves = {one.candidate.cause: one.prediction.saves for one in names}
    names = [
        replace(one, another_way_to="")
        if saves.get(one.another_way_to, 1.0) < SAME * one.prediction.saves
        else one
        for one in names
    ]
    behind = {one.candidate.cause: one.another_way_to for one in names}
    for one in sorted(names, key=lambda one: (bool(one.another_way_to), *_place(one))):
        leaders = [each for each in found if not each.another_way_to and _tells(each) >= _tells(one)]
        to = behind[one.candidate.cause] = one.another_way_to or _same_loss(one, leaders, predictor)
        heads = {each.candidate.cause: each.prediction.saves for each in reversed(leaders)}
        # What is another way to another way is one to the loss.
        while to not in heads and behind.get(to):
            to = behind[to]
        head = heads.get(to, 0.0)
        found.append(replace(one, another_way_to=to if head >= SAME * one.prediction.saves else ""))
    return found


def _same_loss(one: Weighed, leaders: Sequence[Weighed], predictor: Predictor) -> str:
    """The cause before it that saves the same time; '' where it saves time of its own.

    Where both relieve the same instructions or the same resource, little is left for the second once the first is
    done: less than half of what it saves now, each as a share of the time that there is then.
    """
    least, cause = SAME * one.prediction.saves, ""
    for each in leaders:
        told = each.prediction.saves
        # Whether the model knows of the time that both save (not measured elsewhere), with the same arithmetic.
        known = all(it.variant.known is None and not it.candidate.another_arithmetic for it in (one, each))
        # What saves half as much is another loss, however little is left of the second.
        if known and told >= SAME * one.prediction.saves:
            # Once it is done in one of the ways that save nearly as much, for nobody knows which is written.
            ways = [way for way in each.variants if way[1].saves >= NEARLY * told]
            then = min(
                (at_once((replace(each, variants=(way,)), one), predictor).saves - way[1].saves)
                / (1.0 - way[1].saves)
                for way in ways
            )
            if then < least:
                least, cause = then, each.candidate.cause
    return cause


def at_once(several: Sequence[Weighed], predictor: Predictor) -> Prediction:
    """What these save at once, told as each of them is."""
    fix = reduce(Fix.together, (one.variant.fix for one in several))
    most, bound = (min(1.0, sum(getattr(one.variant, end) for one in several)) for end in ("most", "bound"))
    all_of_them = Variant("at once", fix, most=most, bound=bound)
    return predictor.told(all_of_them, predictor.predict(all_of_them))


def _full(model: TimeModel, weighed: Sequence[Weighed]) -> bool:
    """Whether the busiest resource does what it can, and nothing is known that asks less of it: a change whose gain
    is too small to be told, because another one is nearly as busy, is no proof that nothing is left.
    """
    work = model.work
    terms = model.terms(NOTHING)
    busiest = max((key for key in terms if key != LATENCY), key=terms.__getitem__, default="")
    # Whether nothing is left to gain is known only where instructions and waits were looked at.
    queue = busiest == "l2_atomics" and behind_atomics(work)  # of it waits tell, no counter
    if not busiest or terms[busiest] < FULL or queue or not work.samples or len(work.loads) <= FEW_LOADS:
        return False
    # Look-ups in a table meet in banks whatever its layout, but copies of it do not.
    passes = float(work.data_passes.sum()) if busiest == "l1_data" and work.program is not None else 0.0
    if float((work.shared_wavefronts - work.shared_ideal).sum()) > (1.0 - FULL) * passes > 0.0:
        return False
    # In another order look-ups would find in L2 what was read before.
    if busiest == "dram" and looked_up_again(work):
        return False
    # Nor is it known that look-ups need a sector for each value: in another order or layout they may share some.
    asked = float(work.global_sectors.sum()) if busiest in BELOW_L1 and busiest != "dram" else 0.0
    if asked - float(work.global_ideal.sum()) > (1.0 - FULL) * asked > 0.0:
        return False
    same = [one for one in weighed if not one.candidate.another_arithmetic]
    return all(model.factor(busiest, one.variant.fix) > FULL for one in same)


def _measured(found: Work) -> list[Weighed]:
    """Of a report too sparse for the time model: the candidates whose saving was measured elsewhere."""
    told = []
    for one in levers.offered(found, detect(found)):
        if known := tuple((way, Prediction(*way.known)) for way in one.variants if way.known):
            told.append(Weighed(one, known))
    return sorted(told, key=lambda one: -one.prediction.saves)


def _finding(found: Work, one: Weighed, leader: Weighed | None) -> Finding:
    candidate, best = one.candidate, one.prediction
    general = leader is not None and (candidate.rank < SPECIFIC or candidate.attributed is None)
    enough = (NEARLY if general else CLEARLY_LESS) * leader.prediction.saves if leader is not None else 0.0
    again = leader is not None and leader.change == one.change
    return Finding(
        cause=candidate.cause,
        saves=best.saves,
        saves_low=best.low,
        saves_high=best.high,
        places=places(found, candidate.attributed),
        evidence=candidate.evidence,
        change=one.change,
        variants=tuple(Rewrite(way.name, to.saves, to.low, to.high, way.exact) for way, to in one.variants),
        another_way_to=one.another_way_to,
        minor=bool(one.another_way_to) and (again or best.saves < max(NOTABLE, enough)),
    )


def _time(model: TimeModel) -> tuple[AtLimit, ...]:
    """What would need most of the time alone, the most first."""
    terms = sorted(model.terms(NOTHING).items(), key=lambda term: -term[1])
    return tuple(
        AtLimit(WAITS if key == LATENCY else BY_KEY[key].title, min(1.0, share)) for key, share in terms
    )
