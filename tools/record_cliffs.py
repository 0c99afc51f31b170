"""Where cuBLAS loses against its neighbours: times of torch.mm around sizes that people use, and the kernels it chose.

    python tools/record_cliffs.py OUT.json [--repetitions 20] [--seconds 70]

Every group of neighbours is timed in one process in random turns, L2 flushed before each call; medians and the middle
80 % are kept, clocks and power before, in between and after.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_hgemm import FLUSH_BYTES, card_state

SLEEP_CYCLES = 2_000_000  # a millisecond: all of a turn is enqueued while the GPU still sleeps
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
    for type_, n, k in (
        ("bf16", 4096, 4096),
        ("bf16", 14336, 4096),
        ("fp32", 4096, 4096),
        ("tf32", 4096, 4096),
    ):
        yield from (Point(f"{type_} few rows {n}x{k}", type_, "tn", m, n, k) for m in FEW)
    for type_ in ("bf16", "fp32", "tf32"):
        yield from (Point(f"{type_} few columns", type_, "tn", 4096, n, 4096) for n in NARROW)
        for side, length in (
            (64, 65536),
            (128, 32768),
            (256, 16384),
            (512, 8192),
            (1024, 4096),
            (2048, 2048),
        ):
            yield Point(f"{type_} long K", type_, "tn", side, side, length)
            yield Point(f"{type_} tall", type_, "tn", length, side, side)
            yield Point(f"{type_} flat", type_, "tn", side, length, side)
    yield from (Point("bf16 cubes", "bf16", "tn", side, side, side) for side in range(896, 1409, 32))
    for type_ in ("bf16", "fp32"):
        for m in (16, 128, 1024, 4096):
            for n in (4095, 4096, 4097):
                for call in ("mm", "addmm"):
                    yield Point(f"{type_} bias {m}", type_, "tn", m, n, 4096, call)
    for m in (512, 4096):
        for offset, pitch in ((0, 0), (0, 8), (4, 8), (2, 8), (1, 8), (0, 1), (0, 2), (0, 4)):
            yield Point(f"bf16 view {m}", "bf16", "tn", m, 4096, 4096, "view", offset, pitch)


def made(point: Point) -> Callable[[], Any]:
    """The call of a point, its operands allocated and filled."""
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
    out = torch.empty(m, n, device="cuda", dtype=element)
    if point.call == "addmm":
        bias = matrix(1, n)[0]
        return lambda: torch.addmm(bias, a, b, out=out)
    return lambda: torch.mm(a, b, out=out)


def timed(
    calls: Sequence[Callable[[], Any]], repetitions: int, flush: Any, dice: random.Random
) -> list[list[float]]:
    """Microseconds of each call, in random turns, L2 flushed before each."""
    import torch

    for call in calls:
        call()
    kept: list[list[tuple[Any, Any]]] = [[] for _ in calls]
    order = list(range(len(calls)))
    for _ in range(repetitions):
        dice.shuffle(order)
        torch.cuda._sleep(SLEEP_CYCLES)
        for at in order:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush.zero_()
            start.record()
            calls[at]()
            end.record()
            kept[at].append((start, end))
    torch.cuda.synchronize()
    return [sorted(1e3 * start.elapsed_time(end) for start, end in events) for events in kept]


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
        library.cublasLtGetVersion.restype = __import__("ctypes").c_size_t
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


def best_proposal(point: Point, repetitions: int, flush: Any, dice: random.Random) -> float:
    """Median microseconds of the fastest of the sixteen proposals of cublasLt, chosen by a first look."""
    import torch
    from cublas_lt import CublasLt

    a, b = (torch.randn(*size, device="cuda").bfloat16() for size in ((point.m, point.k), (point.n, point.k)))
    out = torch.empty(point.m, point.n, device="cuda", dtype=torch.bfloat16)
    plans = CublasLt().plans(a, b.t(), out)
    first = [statistics.median(times) for times in timed(plans, 5, flush, dice)]
    best = sorted(range(len(plans)), key=first.__getitem__)[:2]
    return min(statistics.median(t) for t in timed([plans[i] for i in best], repetitions, flush, dice))


def record(out: Path, repetitions: int, seconds: float) -> None:
    """Time every group, as many as the seconds allow; then the best proposals and the names, if there is time."""
    import torch

    began = time.monotonic()
    dice, flush = random.Random(29), torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    torch.manual_seed(29)
    groups: dict[str, list[Point]] = {}
    for point in points():
        groups.setdefault(point.group, []).append(point)
    told = versions() | {"before": card_state()}
    rows: dict[str, list[dict[str, Any]]] = {}

    def write() -> None:
        flat = [row for found in rows.values() for row in found]
        content = {**told, "after": card_state(), "left_out": len(groups) - len(rows), "rows": flat}
        out.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
        print(
            f"{len(rows)} of {len(groups)} groups, {len(flat)} points, {time.monotonic() - began:.0f} s",
            flush=True,
        )

    def in_time() -> bool:
        return time.monotonic() - began < seconds

    def calls_of(group: str) -> list[Callable[[], Any]]:
        torch.backends.cuda.matmul.allow_tf32 = groups[group][0].type == "tf32"
        return [made(point) for point in groups[group]]

    for group, members in groups.items():
        if not in_time():
            break
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
            }
            for point, times in zip(members, timed(calls_of(group), repetitions, flush, dice), strict=True)
        ]
    told["loaded"] = card_state()
    write()
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
                        row["best"] = round(best_proposal(point, 10, flush, dice), 2)
    except Exception as error:
        told["no_best"] = str(error)[:200]
    write()


def main() -> None:
    """Record, or say what would be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="no group is begun after so many")
    parser.add_argument("--dry-run", action="store_true", help="print how many points there are")
    options = parser.parse_args()
    if options.dry_run:
        found = list(points())
        print(len(found), "points in", len({point.group for point in found}), "groups")
        return
    record(options.out, options.repetitions, options.seconds)


if __name__ == "__main__":
    main()
