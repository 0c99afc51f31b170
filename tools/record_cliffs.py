"""Where cuBLAS loses against its neighbours: times of torch.mm around sizes that people use, and the kernels it chose.

    python tools/record_cliffs.py OUT.json [--repetitions 20] [--seconds 60] [--ours STAGE]      # on a GPU
    python tools/record_cliffs.py --write H200.json H100.json                     # here: the table and its page
    python tools/record_cliffs.py --beside OUT.json      # here: only the stage's times, relative to torch.mm's

Every group of neighbours is timed in one process in random turns, L2 flushed before each call; medians and the middle
80 % are kept, clocks and power before, in between and after.
"""

from __future__ import annotations

import ctypes
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_hgemm import FLUSH_BYTES, card_state, fastest, medians, timed
from recording import ROOT, filled, options_of

from gemmprof.analysis.explanation.causes.library_calls import TIMES, WHOLE, Timed, cards, padded, reduced
from gemmprof.base.spread import grouped

PAGE = ROOT / "docs" / "cublas_cliffs.md"
STEPS = (-32, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32, 64)
FEW = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32, 33, 48, 64, 65, 96, 128, 129, 192, 256, 257)
NARROW = (1, 2, 4, 8, 16, 17, 32, 33, 64, 65, 128)
BASES = {
    "bf16": ((4096, 4096, 4096), (512, 4096, 4096), (16, 4096, 4096), (1024, 1024, 1024)),
    "fp16": ((4096, 4096, 4096), (512, 4096, 4096)),
    "fp32": ((2048, 2048, 2048), (512, 4096, 4096)),
    "tf32": ((2048, 2048, 2048), (512, 4096, 4096)),
}
"""M, N, K around which one size at a time is changed."""
LAYERS = (("bf16", 4096, 4096), ("bf16", 14336, 4096), ("fp32", 4096, 4096), ("tf32", 4096, 4096))
"""Type, N and K of what is tried with few rows."""
TYPES = ("bf16", "fp32", "tf32")
LONG = ((64, 65536), (128, 32768), (256, 16384), (512, 8192), (1024, 4096), (2048, 2048))
"""Two sides, and the third."""
BIASED = (4095, 4096, 4097)
Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Point:
    """One call.

    Attributes:
        group: what is changed in it: points of one group are neighbours.
        layout: ``tn``: the second operand is stored as N × K, as layers store weights; ``nn``: as K × N.
        call: ``mm``, ``addmm`` (a bias is added), or ``view`` (an operand that begins or whose rows begin elsewhere).
        offset, pitch: elements that the first operand begins later, and that its rows are longer.
    """

    group: str
    type: str
    layout: str
    m: int
    n: int
    k: int
    call: str = "mm"
    offset: int = 0
    pitch: int = 0


def points() -> Iterator[Point]:
    """Everything that is timed."""
    for type_, bases in BASES.items():
        for m, n, k in bases:
            at = f"{type_} {m}x{n}x{k}"
            yield from (Point(f"{at} N", type_, "tn", m, n + step, k) for step in STEPS)
            yield from (Point(f"{at} K", type_, "tn", m, n, k + step) for step in STEPS)
            yield from (Point(f"{at} M", type_, "tn", m + step, n, k) for step in STEPS if m + step > 0)
            odd = (-1, 0, 1, 7, 8)
            yield from (Point(f"{at} all", type_, "tn", m + step, n + step, k + step) for step in odd)
    for m, n, k in BASES["bf16"][:2]:
        at = f"bf16 nn {m}x{n}x{k}"
        yield from (Point(f"{at} N", "bf16", "nn", m, n + step, k) for step in STEPS)
        yield from (Point(f"{at} K", "bf16", "nn", m, n, k + step) for step in STEPS)
    for type_, n, k in LAYERS:
        yield from (Point(f"{type_} few rows {n}x{k}", type_, "tn", m, n, k) for m in FEW)
    for type_ in TYPES:
        yield from (Point(f"{type_} few columns", type_, "tn", 4096, n, 4096) for n in NARROW)
        for side, length in LONG:
            yield Point(f"{type_} long K", type_, "tn", side, side, length)
            yield Point(f"{type_} tall", type_, "tn", length, side, side)
            yield Point(f"{type_} flat", type_, "tn", side, length, side)
    yield from (Point("bf16 cubes", "bf16", "tn", side, side, side) for side in range(896, 1409, 32))
    for type_ in ("bf16", "fp32"):
        for m in (16, 128, 1024, 4096):
            for n in BIASED:
                for call in ("mm", "addmm"):
                    yield Point(f"{type_} bias {m}", type_, "tn", m, n, 4096, call)
    for m in (512, 4096):
        for offset, pitch in ((0, 0), (0, 8), (4, 8), (2, 8), (1, 8), (0, 1), (0, 2), (0, 4)):
            yield Point(f"bf16 view {m}", "bf16", "tn", m, 4096, 4096, "view", offset, pitch)


def operands(point: Point) -> tuple[Any, Any, Any]:
    """A and B of a point, filled with normal numbers, and room for C."""
    import torch

    element = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(point.type, torch.float32)

    def matrix(rows: int, columns: int) -> Any:
        return torch.empty(rows, columns, device="cuda", dtype=element).normal_()

    m, n, k = point.m, point.n, point.k
    if point.call == "view":
        rows = matrix(m + 1, k + point.pitch).flatten()
        a = rows.as_strided((m, k), (k + point.pitch, 1), point.offset)
    else:
        a = matrix(m, k)
    b = matrix(n, k).t() if point.layout == "tn" else matrix(k, n)
    return a, b, torch.empty(m, n, device="cuda", dtype=element)


def made(point: Point) -> Callable[[], Any]:
    """The call of a point, its operands allocated and filled."""
    import torch

    a, b, out = operands(point)
    if point.call == "addmm":
        bias = torch.empty_like(out[0]).normal_()
        return lambda: torch.addmm(bias, a, b, out=out)
    return lambda: torch.mm(a, b, out=out)


def ours(point: Point, stage: str) -> Callable[[], Any] | None:
    """The same product by one of gemmprof's stages, which has to be built; None of those that it does not take."""
    if point.type not in ("bf16", "fp16") or point.call != "mm":
        return None
    from gemmprof.kernels.operators import run_stage

    a, b, out = operands(point)
    return lambda: run_stage(stage, a, b, out)


def kernels(calls: Sequence[Callable[[], Any]]) -> list[list[str]]:
    """Names of the kernels that each call launches."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    mark = torch.empty(17, device="cuda")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for call in calls:
            mark.fill_(1.5)
            call()
        torch.cuda.synchronize()
    events = [e for e in found.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    names: list[list[str]] = []
    for event in sorted(events, key=lambda e: e.time_range.start):
        if "FillFunctor" in event.name:
            names.append([])
        elif names and not event.name.startswith(("Mem", "aten::", "ProfilerStep")):
            names[-1].append(event.name.partition("(")[0].removeprefix("void "))
    return names if len(names) == len(calls) else [[] for _ in calls]


def versions() -> dict[str, Any]:
    """What ran where."""
    import torch
    from cublas_lt import find_library

    try:
        library = find_library()
        library.cublasLtGetVersion.restype = ctypes.c_size_t
        cublas = int(library.cublasLtGetVersion())
    except (OSError, AttributeError):
        cublas = 0
    return {
        "card": torch.cuda.get_device_name(),
        "cublas": cublas,
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def best_proposal(point: Point, repetitions: int, flush: Any) -> float:
    """Median microseconds of the fastest of the sixteen proposals of cublasLt, chosen by a first look."""
    from cublas_lt import CublasLt

    return min(medians(fastest(CublasLt().plans(*operands(point)), 2, 5, flush), repetitions, flush))


def record(out: Path, repetitions: int, seconds: float, stage: str = "", *, times_only: bool = False) -> None:
    """Time every group, as many as the seconds allow; then the best proposals and the names, if there is time.

    Args:
        stage: one of gemmprof's own, timed in the same turns.
        times_only: neither proposals nor names, as `beside` needs neither.
    """
    import torch

    if stage:
        from gemmprof.kernels.build import build
        from gemmprof.kernels.operators import load

        load(build(names=[stage]))  # before the seconds are counted
    began = time.monotonic()
    dice, flush = random.Random(29), torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    torch.manual_seed(29)
    groups = grouped((point.group, point) for point in points())
    told = versions() | {"before": card_state()}
    rows: dict[str, list[dict[str, Any]]] = {}

    def write() -> None:
        flat = [row for found in rows.values() for row in found]
        content = {**told, "after": card_state(), "left_out": len(groups) - len(rows), "rows": flat}
        out.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
        so_far = f"{len(rows)} of {len(groups)} groups, {len(flat)} points"
        print(f"{so_far}, {time.monotonic() - began:.0f} s", flush=True)

    def in_time() -> bool:
        return time.monotonic() - began < seconds

    def calls_of(group: str) -> list[Callable[[], Any]]:
        torch.backends.cuda.matmul.allow_tf32 = groups[group][0].type == "tf32"
        return [made(point) for point in groups[group]]

    for group, members in groups.items():
        if not in_time():
            break
        beside = {at: call for at, point in enumerate(members) if stage and (call := ours(point, stage))}
        found = timed([*calls_of(group), *beside.values()], repetitions, flush, dice)
        own = dict(zip(beside, found[len(members) :], strict=True))
        rows[group] = [
            {
                "group": group,
                "type": point.type,
                "layout": point.layout,
                "shape": [point.m, point.n, point.k],
                **({"call": point.call} if point.call != "mm" else {}),
                **({"view": [point.offset, point.pitch]} if point.call == "view" else {}),
                "us": round(statistics.median(times), 2),
                "p10": round(times[len(times) // 10], 2),
                "p90": round(times[-1 - len(times) // 10], 2),
                **({"ours": round(statistics.median(own[at]), 2)} if at in own else {}),
            }
            for at, (point, times) in enumerate(zip(members, found[: len(members)], strict=True))
        ]
    told["loaded"] = card_state()
    write()
    if times_only:
        return
    try:
        for group in rows:
            if in_time():
                for row, launched in zip(rows[group], kernels(calls_of(group)), strict=True):
                    row["kernels"] = launched
    except Exception as error:  # names are worth less than the times
        told["no_names"] = str(error)[:200]
    write()
    try:
        for group, members in groups.items():
            if group in rows and group.startswith(("bf16 4096", "bf16 512")) and group[-1] in "NK":
                for row, point in zip(rows[group], members, strict=True):
                    if in_time():
                        row["best"] = round(best_proposal(point, 10, flush), 2)
    except Exception as error:
        told["no_best"] = str(error)[:200]
    write()


def pack(recorded: Sequence[Path]) -> None:
    """Put recorded times into the package: names once, a row a product."""
    cards = []
    for file in recorded:
        found = json.loads(file.read_text(encoding="utf-8"))
        groups, kernels = ({}, {})  # type: dict[str, int], dict[str, int]
        rows = []
        for row in found["rows"]:
            group = groups.setdefault(row["group"], len(groups))
            call = (
                row["type"],
                row["layout"],
                *row["shape"],
                row.get("call", "mm"),
                *row.get("view", (0, 0)),
            )
            times = row["us"], row["p10"], row["p90"], row.get("best")
            names = (name.partition("<cublas")[0] for name in row["kernels"])
            launched = [kernels.setdefault(name, len(kernels)) for name in names]
            rows.append([group, *call, *times, launched, *([row["ours"]] if "ours" in row else [])])
        card = _of_card(found) | {name: found[name] for name in ("torch", "date")}
        card["states"] = [found[when] for when in ("before", "loaded", "after")]
        if any("ours" in row for row in found["rows"]):
            card["beside"] = found["date"]
        cards.append(card | {"groups": list(groups), "kernels": list(kernels), "rows": rows})
    _write(cards)


def beside(recorded: Sequence[Path]) -> None:
    """Put the stage's times of other runs on the same cards beside the recorded ones, relative to torch.mm's there.

    Raises:
        SystemExit: a run is of a card or a cuBLAS that the table does not have.
    """
    cards = json.loads(TIMES.read_text(encoding="utf-8"))["cards"]
    for file in recorded:
        found = json.loads(file.read_text(encoding="utf-8"))
        card = next((one for one in cards if _of_card(found).items() <= one.items()), None)
        if card is None:
            raise SystemExit(f"{file}: {_of_card(found)} is not in the table: --write it")
        ratios = {
            (row["type"], row["layout"], *row["shape"]): row["ours"] / row["us"]
            for row in found["rows"]
            if "ours" in row
        }
        for row in card["rows"]:
            ratio = ratios.get(tuple(row[1:6])) if row[6] == "mm" else None
            row[14:] = [round(row[9] * ratio, 2)] if ratio is not None else []
        card["beside"] = found["date"]
    _write(cards)


def _of_card(found: dict[str, Any]) -> dict[str, Any]:
    """Card and cuBLAS of a run, as the table names them."""
    version = found["cublas"]
    return {
        "name": "H200" if "H200" in found["card"] else "H100",
        "cublas": f"{version // 10000}.{version // 100 % 100}.{version % 100}",
    }


def _write(cards: list[dict[str, Any]]) -> None:
    """The package's table, a line a product."""
    TIMES.write_text(
        json.dumps({"cards": cards}, separators=(",", ":")).replace("],[", "],\n[") + "\n", encoding="utf-8"
    )


def _key(one: Point | Timed) -> tuple[object, ...]:
    """What tells a product from every other."""
    shape = (one.m, one.n, one.k) if isinstance(one, Point) else one.shape
    return one.type, one.layout, shape, one.call, one.offset, one.pitch


def _both(point: Point, over: Point | None = None, *, speed: bool = False) -> str:
    """Microseconds of a product on both cards, or its time over another's, or its TFLOP/s."""
    told = []
    for card in cards():
        times = {_key(one): one.us for one in card.products}
        time = times[_key(point)]
        flop = 2e-6 * point.m * point.n * point.k
        value = flop / time if speed else time / (times[_key(over)] if over else 1.0)
        told.append(f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}")
    return " / ".join(told)


def _at(type_: str, shape: Sequence[int], call: str = "mm", offset: int = 0, pitch: int = 0) -> Point:
    return Point("", type_, "tn", *shape, call, offset, pitch)


def _axes(types: Iterable[str]) -> Iterator[tuple[str, str, Shape, Callable[[int], Shape]]]:
    """Of each base of these types and each of M, N, K: its name, type and shape, and the shape so many steps off."""
    for type_ in types:
        for base in BASES[type_]:
            for axis, which in enumerate("MNK"):

                def moved(step: int, base: Shape = base, axis: int = axis) -> Shape:
                    m, n, k = (size + step * (at == axis) for at, size in enumerate(base))
                    return m, n, k

                yield f"{type_} {' × '.join(map(str, base))}, {which}", type_, base, moved


def page() -> str:
    """docs/cublas_cliffs.md."""
    found = cards()

    def table(first: str, others: Iterable[object], rows: Iterable[Sequence[str]]) -> tuple[str, list[Any]]:
        return " | ".join([first, *(f"{one}>" for one in others)]), list(rows)

    saved = [
        [
            f"{type_}, rows multiples of {elements}: pad to {WHOLE[type_]}",
            *(_spread(padded(card).get((type_, elements), [])) for card in found),
        ]
        for type_, elements in sorted({key for card in found for key in padded(card)})
    ]
    saved.append(["FP32 as TF32", *(_spread(reduced(card)) for card in found)])
    steps = (-4, -2, -1, 1, 2, 4, 8)
    moves = [f"{step:+d}" for step in steps]
    one_off = (
        [name, *(_both(_at(type_, moved(step)), _at(type_, base)) for step in steps)]
        for name, type_, base, moved in _axes(BASES)
    )
    ours = (
        [name, *(_beside(type_, moved(step)) for step in (0, *steps))]
        for name, type_, _, moved in _axes(("bf16", "fp16"))
    )
    timed_ours = any(one.ours for card in found for one in card.products)
    few = (1, 2, 3, 4, 8, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257)
    few_rows = ([f"{t} {n} × {k}", *(_both(_at(t, (m, n, k))) for m in few)] for t, n, k in LAYERS)
    few_columns = ([t, *(_both(_at(t, (4096, n, 4096))) for n in NARROW)] for t in TYPES)
    ways: dict[str, Callable[[int, int], Shape]] = {
        "side × side × length": lambda side, length: (side, side, length),
        "length × side × side": lambda side, length: (length, side, side),
        "side × length × side": lambda side, length: (side, length, side),
    }
    long = (
        [f"{t} {way}", *(_both(_at(t, shape(*sides)), speed=True) for sides in LONG)]
        for t in TYPES
        for way, shape in ways.items()
    )
    bias = (
        [f"{t} M {m}", *(_both(_at(t, (m, n, 4096), "addmm"), _at(t, (m, n, 4096))) for n in BIASED)]
        for t in ("bf16", "fp32")
        for m in (16, 128, 1024, 4096)
    )
    views = ((0, 8), (4, 8), (2, 8), (1, 8), (0, 4), (0, 2), (0, 1))
    begun = [_at("bf16", (m, 4096, 4096), "view") for m in (512, 4096)]
    of_views = (
        [f"M {at.m}", *(_both(replace(at, offset=begins, pitch=longer), at) for begins, longer in views)]
        for at in begun
    )
    worst = [max(one.us / one.best for one in card.products if one.best) for card in found]
    return filled(
        "cublas_cliffs.md.jinja",
        cards=found,
        names=" / ".join(card.name for card in found),
        saved=table("call", (card.name for card in found), saved),
        one_off=table("product", moves, one_off),
        ours=table("product", ("0", *moves), ours) if timed_ours else None,
        few_rows=table("N × K", few, few_rows),
        few_columns=table("", NARROW, few_columns),
        long=table("", (f"{side}, {length}" for side, length in LONG), long),
        bias=table("", (f"N {n}" for n in BIASED), bias),
        views=table("", (f"+{begins}, rows +{longer}" for begins, longer in views), of_views),
        proposals=" / ".join(f"{one:.2f}" for one in worst),
    )


def _beside(type_: str, shape: Shape) -> str:
    """Our stage's time over torch.mm's on both cards."""
    key = _key(_at(type_, shape))
    of_both = ([o.ours / o.us for o in card.products if o.ours and _key(o) == key] for card in cards())
    return " / ".join(f"{statistics.median(same):.2f}" if same else "–" for same in of_both)


def _spread(saved: Sequence[tuple[float, float]]) -> str:
    """The savings of some products: median and the middle 80 %."""
    if not saved:
        return "–"
    ranked = sorted(saving for _, saving in saved)
    tenth = len(ranked) // 10
    low, middle, high = ranked[tenth], statistics.median(ranked), ranked[-1 - tenth]
    return f"{100 * middle:.0f} % ({100 * low:.0f} to {100 * high:.0f}, {len(ranked)} pairs)"


def main() -> None:
    """Record; or pack what was recorded and write its page."""
    parser = options_of(__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument(
        "--write", type=Path, nargs="+", metavar="JSON", help="what was recorded, a file a card"
    )
    parser.add_argument(
        "--beside", type=Path, nargs="+", metavar="JSON", help="only the stage's times of runs"
    )
    parser.add_argument("--no-names", action="store_true", help="times alone: neither kernels nor proposals")
    parser.add_argument("--page", action="store_true", help="write the page from the package's table")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="no group is begun after so many")
    parser.add_argument("--ours", default="", metavar="STAGE", help="time this stage of gemmprof's beside it")
    options = parser.parse_args()
    if options.write:
        pack(options.write)
    if options.beside:
        beside(options.beside)
    if options.write or options.beside or options.page:
        PAGE.write_text(page(), encoding="utf-8")
        return
    if options.out is None:
        parser.error("name the file to write")
    record(options.out, options.repetitions, options.seconds, options.ours, times_only=options.no_names)


if __name__ == "__main__":
    main()
