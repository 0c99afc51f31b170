"""What to change in each launch as JSON: ``explain``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.session import Session
from gemmprof.base.documents import Digits, Document, PartOf
from gemmprof.model import AtLimit, CodePlace, Evidence, Explanation, Finding, Rewrite

# Predictions are not better known than that.
Share = Annotated[float, Meta(ge=0, le=1), Digits(4)]
Position = Annotated[int, Meta(ge=0)]
CauseKey = Annotated[str, Meta(extra_json_schema={"enum": list(CAUSES)})]


class PlacePart(PartOf[CodePlace], frozen=True):
    """A line or an instruction."""

    file: str | None
    line: int | None
    share: Share
    sass: str = ""
    inlined: tuple[str, ...] = ()


class Fact(PartOf[Evidence], frozen=True):
    """A number that a finding rests on."""

    metric: str  # Nsight Compute's name, or what was computed
    value: float | None  # in base units
    unit: str  # its unit


class VariantPart(PartOf[Rewrite], frozen=True):
    """One way to change what a finding names."""

    name: str
    saves: Share
    saves_low: Share
    saves_high: Share
    same_arithmetic: bool


class FindingPart(PartOf[Finding], frozen=True):
    """A cause that holds a launch back."""

    cause: CauseKey  # key of the cause; the page of causes explains each
    saves: Share
    saves_low: Share
    saves_high: Share
    places: tuple[PlacePart, ...]
    evidence: tuple[Fact, ...]
    change: str
    variants: tuple[VariantPart, ...]
    another_way_to: str
    minor: bool


class LimitPart(PartOf[AtLimit], frozen=True):
    """A resource."""

    resource: str  # what it is called
    share: Share  # share of its practical rate that is in use, 0 to 1


class Explained(PartOf[Explanation], frozen=True):
    """One launch, explained."""

    launch: Position
    report: str
    family: str  # id of its family (`#3`), which every door takes
    label: str  # the name as every door spells it; untrusted text
    name: str
    nvtx: tuple[str, ...]
    owner: str  # whose code the kernel is: `own`, `triton`, `torch`, `cublas` …
    duration_ns: float | None
    trust: tuple[str, ...]
    at_limit: LimitPart | None
    findings: tuple[FindingPart, ...]
    other_arithmetic: tuple[FindingPart, ...]
    time: tuple[LimitPart, ...]
    together: Share | None
    floor_ns: float | None
    levers: tuple[str, ...]


class ExplainDocument(Document, frozen=True, tag="gemmprof.explain/1"):
    """``gemmprof explain``."""

    families: tuple[str, ...]  # ids of the families, the most to gain first
    kernels: tuple[Explained, ...]  # every launch, in the order of the reports


def explain_document(session: Session) -> ExplainDocument:
    """Every launch in the report's order, and the ids of the families in theirs."""
    session.explain(range(len(session.kernels)))
    of = {member: family for family in session.families for member in family.members}
    kernels = (
        Explained.of(session.explanation(at), family=one.id, label=one.label, owner=one.owner.key)
        for at, one in sorted(of.items())
    )
    return ExplainDocument.of(families=(family.id for family in session.families), kernels=kernels)
