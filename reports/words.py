"""The sentences that every form of an explanation shares, and its form for a terminal: one screen of 30 lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.explanation.levers import DEBUG_BUILD
from gemmprof.analysis.explanation.prediction import calibration
from gemmprof.analysis.explanation.trust import NOT_PROFILED, UNLIKE, UNSEEN, WAITS, mostly_launching
from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.sections.by_line import base_name
from gemmprof.analysis.session import Session
from gemmprof.base import amounts
from gemmprof.base.amounts import counted, fit, nanoseconds, quantity, ratio, wrapped
from gemmprof.base.printable import visible
from gemmprof.model import NOTABLE, CodePlace, Evidence, Explanation, Finding


def saved(finding: Finding) -> str:
    """``62 % (50 to 70)``: what fixing saves, with its interval."""
    return amounts.saved(finding.saves, finding.saves_low, finding.saves_high)


def ways(finding: Finding) -> str:
    """``registers, 4 outputs a thread: 62 %; tile in shared memory: 33 %``; '' where there is but one way."""
    if len(finding.variants) < 2:
        return ""
    return "; ".join(f"{one.name}: {100 * one.saves:.0f} %" for one in finding.variants)


def other_ways(found: Sequence[Finding], *, whole: bool) -> list[str]:
    """``Another way to the same: memory latency, 41 % (34 to 62). Have more …``: each, or their names alone."""
    if whole or not found:
        return [f"Another way to the same: {title(one).lower()}, {saved(one)}. {one.change}" for one in found]
    return [f"Other ways to the same: {named(found)}"]


def named(found: Iterable[Finding]) -> str:
    """``narrow access 41 %, memory latency 37 %``."""
    return ", ".join(f"{title(one).lower()} {100 * one.saves:.0f} %" for one in found)


def small(explanation: Explanation) -> str:
    """What is no statement, for it may be nothing; '' where there is none."""
    return f"Small, if anything: {named(explanation.small)}." if explanation.small else ""


def others(explanation: Explanation) -> str:
    """What only another arithmetic would save, in a sentence; '' for nothing."""
    if not explanation.other_arithmetic:
        return ""
    several = explanation.other_arithmetic
    found = (f"{title(one).lower()} {100 * one.saves:.0f} % ({one.change})" for one in several)
    return f"With another arithmetic or precision: {'; '.join(found)}"


def title(finding: Finding) -> str:
    """The cause in words."""
    return CAUSES.get(finding.cause, finding.cause)


def place(where: CodePlace) -> str:
    """``kernel.cu:42`` or the instruction."""
    if where.file is not None and where.line is not None:
        return f"{visible(base_name(where.file))}:{where.line}"
    return visible(where.sass)


def place_with_code(where: CodePlace) -> str:
    """The place, the header line that was inlined there, and the text of the line."""
    inlined = f" (inlined {', '.join(map(visible, where.inlined))})" if where.inlined else ""
    code = where.text or (where.sass if where.line is not None else "")
    return f"{place(where)}{inlined}{f': {visible(code)}' if code else ''}"


def fact(item: Evidence) -> str:
    """``sectors per request = 32 sectors``."""
    return f"{item.metric} = {quantity(item.value, item.unit)}"


def duration(explanation: Explanation) -> str:
    """The time under the profiler."""
    return nanoseconds(explanation.duration_ns)


FLOOR = 0.5  # share of what findings leave, from which on it is told how long what a launch moves takes


def conclusion(explanation: Explanation) -> str:
    """What there is to say below or instead of findings, and about the call: first, where nothing was found."""
    said = _end(explanation), " ".join(explanation.levers)
    return " ".join(filter(None, said if explanation.losses else reversed(said)))


def is_known(explanation: Explanation) -> bool:
    """Whether it is known what the launch's time goes to, or why that is not told."""
    return explanation.limit is not None or DEBUG_BUILD in explanation.levers


def no_finding(explanation: Explanation) -> str:
    """In place of a finding: what the time goes to, so that the owner knows whether to look further."""
    if DEBUG_BUILD in explanation.levers:
        return "a debug build (nvcc -G)"
    if NOT_PROFILED in explanation.trust:
        return NOT_PROFILED.partition(":")[0]
    if (limit := explanation.at_limit) is not None:
        return f"at its limit: {limit.resource} {ratio(limit.share, 0)}"
    return "no finding" + "".join(f": {one.resource} {ratio(one.share, 0)}" for one in explanation.time[:1])


def too_little(found: Iterable[Explanation]) -> str:
    """Where of none of several launches enough was collected to see most causes: what is missing of the first one."""
    doubts = [next((doubt for doubt in one.trust if UNSEEN in doubt), "") for one in found]
    return doubts[0] if doubts and all(doubts) else ""


def how_predicted(explanation: Explanation) -> str:
    """How far the savings are to be trusted, in a sentence; '' where none is told."""
    if not explanation.losses:
        return ""
    known = calibration()
    return (
        "Each saving is what fixing that cause alone would bring, predicted from this report, with an 80\u00a0% "
        "interval: of kernels that were seen for the first time since it was learnt and whose cause was named, "
        f"{known.inside} of {known.of} outcomes lay inside theirs."
    )


def in_order(explanation: Explanation, besides: list[str]) -> list[str]:
    """The conclusion behind what is said besides; where nothing was found, that is said first."""
    said = conclusion(explanation)
    return [*besides, said] if explanation.losses else [said, *besides]


def _end(explanation: Explanation) -> str:
    if explanation.losses:
        overlap = ""
        if explanation.together is not None:
            overlap = f"All of them together save about {100 * explanation.together:.0f} % (they overlap)."
        return f"{overlap} {_floor(explanation)}".strip()
    limit, nothing = explanation.at_limit, "No other finding" if explanation.levers else "No finding"
    if limit is not None:
        return (
            f"{nothing}: it is at its limit, {article(limit.resource)} at {100 * limit.share:.0f} % of what is "
            "reached in practice. What is faster asks less of it."
        )
    if mostly_launching(explanation):
        most = explanation.time[0]
        return (
            f"{nothing}: {duration(explanation)} are mostly the launch's start and end. What would need most of them "
            f"alone: {article(most.resource)} {100 * most.share:.0f} %."
        )
    if explanation.time:
        most, *others = explanation.time
        told = (most, *(one for one in others if one.share >= NOTABLE))
        parts = ", ".join(f"{article(one.resource)} {100 * one.share:.0f} %" for one in told)
        where = ""
        if most.resource == WAITS and not too_little([explanation]):
            where = " Exposed latency is waiting that no other warp fills: the lines with most samples show where."
        return f"{nothing}. What would need most of its time alone: {parts}.{where}"
    said = DEBUG_BUILD in explanation.levers or NOT_PROFILED in explanation.trust
    said |= any(line.startswith(UNLIKE) for line in explanation.trust)
    return "" if said else "Too little was collected to say what limits it."


def _floor(explanation: Explanation) -> str:
    """How long what it moves takes alone, '' where that is not known, where what is found saves more (it moves less),
    and where most of what it leaves is something else: nobody meets that floor.
    """
    left = 1.0 - max(explanation.together or 0.0, explanation.losses[0][0].saves)
    moves = 0.0 if explanation.traffic is None else explanation.traffic.share
    if explanation.traffic is None or explanation.floor_ns is None or not FLOOR * left <= moves <= left:
        return ""
    floor = nanoseconds(explanation.floor_ns)
    return f"What it moves takes {floor} alone ({explanation.traffic.resource}): to save more, it has to move less."


def article(resource: str) -> str:
    """``the FMA pipe``, ``DRAM``, ``issue slots``."""
    plural = resource.endswith(("slots", "cores", "lookups of L2", "units of L2")) or "to L" in resource
    bare = plural or resource.startswith("launching") or resource in ("DRAM", WAITS)
    return resource if bare else f"the {resource}"


@dataclass(frozen=True, slots=True)
class Explained:
    """A family, and what to change in the launch that stands for it."""

    explanation: Explanation
    family: Family

    @property
    def owner(self) -> str:
        """Whose code it is where that is not one's own CUDA, else ''."""
        return self.family.owner.title if self.family.owner.key != "own" else ""


def explained(session: Session, families: Iterable[Family]) -> tuple[Explained, ...]:
    """These families of a session with what to change in the launch that stands for each."""
    return tuple(Explained(session.explanation(one.representative), one) for one in families)


def in_room(family: Family, room: int) -> str:
    """A family's name in so many columns, cut before what tells it from others; safe to print."""
    label, apart = visible(family.label), visible(family.title[len(family.label) :])
    return fit(label, max(room // 2, room - len(apart))) + fit(apart, room // 2)


# --- For a terminal of 80 columns -------------------------------------------------------------------------------------

LINES = 30
WIDTH = 80
TOKENS_PER_LINE = 20
WHOLE = 99  # so many findings, facts and places are all: then nothing is cut, either


def lines_for(budget: int | None, *, everything: bool) -> int | None:
    """Rows for a budget of tokens, else one screen; None where everything was asked for."""
    if budget is not None:
        return max(5, budget // TOKENS_PER_LINE)
    return None if everything else LINES


def screen(found: Sequence[Explained], *, of: int = 0, width: int = WIDTH, lines: int | None = LINES) -> str:
    """Families in their order, the first ``of`` so many; what does not fit into the lines (None: any number) is said in
    one.
    """
    if not found:
        return "The input holds no kernel."
    left = max(of, len(found))
    room = lines if lines is not None else 1 << 30
    of_all = doubts_of_all(found)
    out = [
        line for doubt in of_all[: None if lines is None else 3] for line in wrapped(doubt, width, "! ", "  ")
    ]
    for at, one in enumerate(found):
        form = list(_fitting(one, width, room - len(out) - (1 if left > 1 else 0), of_all, first=not at))
        if not form:
            break
        out += form
        left -= 1
    if left:
        out.append(_cut(f"and {counted(left, 'more family')}: --all shows all, '#3' behind it one.", width))
    return "\n".join(out)


def doubts_of_all(found: Sequence[Explained]) -> list[str]:
    """What makes the numbers of each of several families doubtful: to be said once. Of one family nothing."""
    first, *others_ = (one.explanation.trust for one in found)
    return [doubt for doubt in first if others_ and all(doubt in trust for trust in others_)]


def _fitting(one: Explained, width: int, left: int, said: Sequence[str], *, first: bool) -> Iterator[str]:
    """The fullest form of a kernel that fits the lines left, without what was said; nothing if none does."""
    for findings, facts, places in ((3, 2, 2), (3, 1, 1), (2, 1, 1), (2, 0, 1), (1, 0, 1), (1, 0, 0)):
        form = list(block(one, width, findings, facts, places, said=said))
        if len(form) <= left:
            yield from form
            return
    if first:
        yield from list(block(one, width, 1, 0, 0, said=said))[: max(1, left)]
    elif left >= 1:
        yield _line(one, width)


def _line(one: Explained, width: int) -> str:
    kernel = one.explanation
    what = (
        named(kernel.losses[0][:1]) if kernel.losses else "at its limit" if kernel.at_limit else "no finding"
    )
    start, end = f"{one.family.id:<3} {duration(kernel):>9}  ", f": {what}"
    return _cut(f"{start}{in_room(one.family, max(20, width - len(start + end)))}{end}", width)


def block(
    one: Explained,
    width: int,
    findings: int,
    facts: int,
    places: int,
    *,
    headed: bool = True,
    said: Sequence[str] = (),
) -> Iterator[str]:
    """One family: heading, doubts that were not said, so many findings with facts and places, and the conclusion."""
    kernel = one.explanation
    if headed:
        end = duration(kernel) + (f", {one.owner}" if one.owner else "")
        end += f", {one.family.count} launches, the longest:" if one.family.count > 1 else ""
        yield _cut(f"{one.family.id:<3} {in_room(one.family, max(20, width - len(end) - 6))}  {end}", width)
    doubts = [doubt for doubt in kernel.trust if doubt not in said]
    for sentence in doubts[: None if places >= WHOLE else 3 if places else 1]:
        yield from wrapped(sentence, width, "  ! ", "    ")
    for number, (finding, *others_) in enumerate(kernel.losses[:findings], 1):
        yield from _finding(number, finding, width, facts, places)
        for way in other_ways(others_, whole=facts > 1):
            yield from wrapped(way, width, "     ", "       ")
    rest = named(one for one, *_ in kernel.losses[findings:])
    ends = in_order(kernel, [small(kernel), others(kernel) if places else ""])
    for end in filter(None, [f"also: {rest}" if rest else "", *ends]):
        yield from wrapped(end, width, "  ", "  ")


def _finding(number: int, finding: Finding, width: int, facts: int, places: int) -> Iterator[str]:
    yield _cut(f"  {number}. {title(finding)}: saves {saved(finding)}", width)
    yield from wrapped(finding.change, width, "     ", "     ")
    if several := ways(finding):
        yield from wrapped(several, width, "     ", "     ")
    lines = [f"at {place_with_code(where)} ({100 * where.share:.0f} %)" for where in finding.places[:places]]
    lines += [fact(item) for item in finding.evidence[:facts]]
    for line in lines:
        yield from (
            wrapped(line, width, "     ", "       ") if places >= WHOLE else [_cut(f"     {line}", width)]
        )


def _cut(text: str, width: int) -> str:
    flat = " ".join(text.split("\n"))
    if len(flat) <= width:
        return flat
    whole = flat[: width - 1].rpartition(" ")[0]
    return f"{whole} …" if 3 * len(whole.strip()) > width else flat[: width - 1] + "…"
