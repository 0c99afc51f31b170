"""Calls of cuBLAS that its own times say are slow: operands that are not aligned, FP32 where TF32 would do.

The sizes of a product are not in a report; the name of the kernel says which alignment of operands and which type it
was chosen for. What another call brings was timed on two cards (``cublas.json``, `tools/record_cliffs.py`): for others,
and for other kernels, no size is given.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.demands.resources import dram_bytes
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.work import Work
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.model import KernelProfile

TIMES = Path(__file__).with_name("cublas.json")
# Elements in 16 bytes, the alignment that TMA and the fastest kernels need.
WHOLE = {"bf16": 8, "fp16": 8, "tf32": 4}
# Timed products whose time is within this factor of a launch's are like it; of fewer no size is said.
NEAR, ENOUGH = 3.0, 5
# Bytes from DRAM a second, within this factor.
ALIKE = 2.0
_MOVED = (metrics.DRAM_READ_BYTES, metrics.DRAM_WRITE_BYTES)
_ALIGN = re.compile(r"tensorop\w*?_align(\d)")
# Products and convolutions of FP32 operands; cuDNN names some of FP16 operands after the FP32 they add up in.
_FP32 = re.compile(
    r"ffma|simt_sgemm|(?:volta|turing|ampere|maxwell|pascal)_sgemm_|sgemm_largek|magma_sgemm|convolve_sgemm(?:<|I)f"
)


@dataclass(frozen=True, slots=True)
class Timed:
    """One timed product."""

    group: str  # what its neighbours differ in
    type: str
    layout: str  # ``tn`` where the second operand is stored as N × K, else ``nn``
    shape: tuple[int, int, int]  # M, N, K
    call: str  # ``mm``, ``addmm`` or ``view``
    # offset, pitch: elements that the first operand begins later, and that its rows are longer
    offset: int
    pitch: int
    # us, p10, p90: median and the middle 80 % of its times, microseconds
    us: float
    p10: float
    p90: float
    best: float | None  # of the fastest of cublasLt's sixteen proposals; None where they were not timed
    kernels: tuple[str, ...]  # what it launched
    ours: float | None = None  # microseconds of gemmprof's own stage beside it; None where that was not timed


@dataclass(frozen=True, slots=True)
class Card:
    """What was timed on one card."""

    name: str  # as people say it: ``H200``
    cublas: str  # version, as 13.1.0
    # torch, date: of the run
    torch: str
    date: str
    states: tuple[str, ...]  # clock, power and temperature before, in between and after
    products: tuple[Timed, ...]  # every product
    # date of the run in which gemmprof's own stage was timed in turns with them; '' where it was not
    beside: str = ""


@cache
def cards() -> tuple[Card, ...]:
    """All that was recorded."""
    # Of the package itself, not a foreign file: a confined reader may read it, too.
    found = json.loads(TIMES.read_bytes())["cards"]
    return tuple(
        Card(
            one["name"], one["cublas"], one["torch"], one["date"], tuple(one["states"]),
            tuple(
                Timed(
                    one["groups"][group], type_, layout, (m, n, k), call, offset, pitch, us, p10, p90, best,
                    tuple(one["kernels"][kernel] for kernel in names), *own,
                )
                for group, type_, layout, m, n, k, call, offset, pitch, us, p10, p90, best, names, *own in one["rows"]
            ),
            one.get("beside", ""),
        )
        for one in found
    )  # fmt: skip


def alignment(name: str) -> tuple[str, int] | None:
    """Type and alignment in elements that a kernel of cuBLAS was made for, where its name says so."""
    found = _ALIGN.search(name)
    if found is None:
        return None
    sixteen = "bf16" if "bf16" in name else "fp16" if re.search(r"f16|h16816|h1688|h161616", name) else ""
    return sixteen or "tf32", int(found[1])


@cache
def padded(card: Card) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """By type and alignment: microseconds of products that are not aligned, and what padding N and K saves of them."""
    aligned = {(one.type, one.layout, one.shape): one.us for one in card.products if one.call == "mm"}
    saved: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for one in card.products:
        made_for = alignment(one.kernels[0]) if one.kernels else None
        whole = WHOLE.get(one.type, 1)
        if made_for is None or made_for[1] >= whole or one.call == "addmm":
            continue
        m, n, k = one.shape
        other = aligned.get((one.type, one.layout, (m, -(-n // whole) * whole, -(-k // whole) * whole)))
        if other is not None:
            saved.setdefault(made_for, []).append((one.us, 1.0 - other / one.us))
    return saved


@cache
def reduced(card: Card) -> list[tuple[float, float]]:
    """Microseconds of FP32 products, and what TF32 saves of them."""
    return [(us, saved) for us, saved, _ in _reduced(card)]


@cache
def _reduced(card: Card) -> list[tuple[float, float, float]]:
    """The same with the bytes that each moves at least in a microsecond: what is bound by memory gains less."""
    fast = {one.shape: one.us for one in card.products if one.type == "tf32" and one.call == "mm"}
    slow = [
        one
        for one in card.products
        if one.type == "fp32" and one.call == "mm" and one.shape in fast and is_fp32(one.kernels[0])
    ]
    moved = {one.shape: 4.0 * (m * k + k * n + m * n) for one in slow for m, n, k in (one.shape,)}
    return [(one.us, 1.0 - fast[one.shape] / one.us, moved[one.shape] / one.us) for one in slow]


def like(pairs: Sequence[tuple[float, float]], duration_ns: float | None) -> list[float]:
    """What was saved of products that take about as long; [] where too few do, or nobody knows how long it takes."""
    us = (duration_ns or 0.0) / 1e3
    near = [saved for timed, saved in pairs if timed / NEAR <= us <= timed * NEAR]
    return near if len(near) >= ENOUGH else []


def card_of(profile: KernelProfile) -> Card | None:
    """What was recorded on a card like the launch's."""
    return next((card for card in cards() if card.name in profile.device.name), None)


def without_padding(profile: KernelProfile) -> tuple[str, int] | None:
    """Type and alignment of a product of cuBLAS whose operands are not aligned; None of others."""
    made_for = alignment(profile.name) if owner_of(profile).key == "cublas" else None
    return made_for if made_for is not None and made_for[1] < WHOLE.get(made_for[0], 1) else None


@lru_cache(maxsize=4096)
def is_fp32(name: str) -> bool:
    """Whether a library's kernel multiplies FP32 operands on the FMA pipe, by its name."""
    return bool(_FP32.search(name))


def in_fp32(profile: KernelProfile) -> bool:
    """Whether it is a product of cuBLAS in FP32 on the FMA pipe."""
    return owner_of(profile).key == "cublas" and is_fp32(profile.name)


def as_tf32(profile: KernelProfile) -> list[float]:
    """What TF32 saves of a product of cuBLAS in FP32, of each timed one like it; [] where too few are.

    Like it are those that take about as long and move about as much from DRAM, where the report says how much that is.
    """
    card = card_of(profile)
    if card is None or not in_fp32(profile):
        return []
    time, moved = profile.number(metrics.DURATION), _bytes(profile)
    alike = [
        (us, saved)
        for us, saved, rate in _reduced(card)
        if not (time and moved) or rate / ALIKE <= 1e3 * moved / time <= rate * ALIKE
    ]
    return like(alike, time)


def _bytes(profile: KernelProfile) -> float | None:
    """What a launch moves to and from DRAM; None where nothing tells."""
    found = [number for names in _MOVED if (number := profile.first_number(names)) is not None]
    if len(found) == len(_MOVED):
        return sum(found)
    return dram_bytes(profile)


def about(savings: Sequence[float]) -> tuple[float, float, float]:
    """Median and the middle 80 %, as shares of the time."""
    ranked = sorted(savings)
    tenth = len(ranked) // 10
    return statistics.median(ranked), max(0.0, ranked[tenth]), min(0.999, ranked[-1 - tenth])


def unaligned_operands(work: Work) -> Iterator[Candidate]:
    """A product of cuBLAS whose operands' rows are no multiples of 16 bytes: it falls back to kernels of older chips.

    Fixed: N and K (the lengths of rows) are padded to multiples of 8 elements (FP32: 4). What that saves was timed on
    an H200 and an H100; on other cards it is not said.
    """
    made_for, card = without_padding(work.profile), card_of(work.profile)
    if made_for is None or card is None:
        return
    savings = like(padded(card).get(made_for, []), work.duration)
    if not savings:
        return
    type_, elements = made_for
    yield Candidate(
        cause="unaligned_operands",
        variants=(Variant(f"multiples of {WHOLE[type_]}", Fix(), known=about(savings)),),
        change=(
            f"Pad the rows of the operands to multiples of {WHOLE[type_]} elements (N and K, or their leading "
            f"dimensions): cuBLAS chose a kernel for rows that are multiples of {elements}."
        ),
        evidence=(
            derived(f"products timed with and without padding (cuBLAS {card.cublas}, {card.name})", len(savings)),
        ),
    )  # fmt: skip


def fp32_products(work: Work) -> Iterator[Candidate]:
    """A product of cuBLAS in FP32 on the FMA pipe.

    Fixed: it is computed as TF32. What that saves was timed on an H200 and an H100; elsewhere the time model says it,
    where the report has instructions.
    """
    card, savings = card_of(work.profile), as_tf32(work.profile)
    if card is None or not savings:
        return
    yield Candidate(
        cause="tensor_cores_idle",
        variants=(Variant("TF32", Fix(), known=about(savings), exact=False),),
        change="Allow TF32.",
        evidence=(
            derived(f"products timed in FP32 and TF32 (cuBLAS {card.cublas}, {card.name})", len(savings)),
        ),
        another_arithmetic=True,
    )
