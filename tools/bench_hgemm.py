"""The fastest 16-bit stage against torch.mm and the best of cublasLt's first sixteen proposals; prints the tables of
docs/fastest_hgemm.md and with --write puts them there.

    python tools/bench_hgemm.py [--dtype bfloat16] [--stage hgemm_fastest] [--repetitions 30] [--json FILE] [--write]

Random normal data; L2 flushed before every launch; torch.mm, the fastest proposal of cublasLt and the stage in turns in
one process; medians. Every product is compared with a float64 one.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

GOAL = (
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 8192, 2048),
    (4096, 14336, 4096),
    (16384, 4096, 4096),
    (4096, 4096, 16384),
)
"""The shapes of the goal: M, N, K."""

LAYERS = {
    "7B, up": (11008, 4096),
    "8B, down": (4096, 14336),
    "70B, QKV": (10240, 8192),
    "70B, down": (8192, 28672),
}
"""N and K of one linear layer each of common language models; M counts tokens."""

MODELS = tuple((m, n, k) for m in (16, 64, 128, 256, 512, 1024, 2048, 8192) for n, k in LAYERS.values())

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "fastest_hgemm.md"
"""Its tables are made from the numbers beside it, ``fastest_hgemm.json``: times in microseconds."""

FLUSH_BYTES = 256 << 20
SLEEP_CYCLES = 1_000_000  # half a millisecond
QUERY = "clocks.sm,power.draw,temperature.gpu"


@dataclass(frozen=True, slots=True)
class Row:
    """One shape: median microseconds, the relative Frobenius error of the stage, and how fast the card ran after it.

    The last two are None and '' where a run did not note them.
    """

    m: int
    n: int
    k: int
    torch: float
    cublaslt: float
    ours: float
    error: float | None
    card: str

    def teraflops(self, microseconds: float) -> float:
        """Speed of a time."""
        return 2.0 * self.m * self.n * self.k / microseconds / 1e6

    @property
    def over_torch(self) -> float:
        """Speed of the stage over torch.mm's."""
        return self.torch / self.ours

    @property
    def over_best(self) -> float:
        """Speed of the stage over the faster yardstick's."""
        return min(self.torch, self.cublaslt) / self.ours


def medians(calls: Sequence[Callable[[], Any]], repetitions: int, flush: Tensor) -> list[float]:
    """Median microseconds of each call, in turns, L2 flushed before each."""
    import torch

    for call in calls:
        call()
    events: list[list[tuple[Any, Any]]] = [[] for _ in calls]
    for _ in range(repetitions):
        # All of a turn is enqueued while the GPU still sleeps: a host that falls behind would enter the times.
        torch.cuda._sleep(SLEEP_CYCLES)
        for call, kept in zip(calls, events, strict=True):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush.zero_()
            start.record()
            call()
            end.record()
            kept.append((start, end))
    torch.cuda.synchronize()
    return [statistics.median(s.elapsed_time(e) * 1e3 for s, e in kept) for kept in events]


def card_state() -> str:
    """Clock, power and temperature as nvidia-smi reports them now."""
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().split("\n")[0]


def measure(
    stage: str, shape: tuple[int, int, int], dtype: str, repetitions: int, library: Any, flush: Tensor
) -> Row:
    """Time and check one shape."""
    import torch

    from gemmprof.kernels.operators import run_stage

    m, n, k = shape
    element = getattr(torch, dtype)
    a, b = (torch.randn(*size, device="cuda").to(element) for size in ((m, k), (k, n)))
    out = torch.full((m, n), math.nan, device="cuda", dtype=element)
    run_stage(stage, a, b, out)
    reference = a.double() @ b.double()
    error = float((out.double() - reference).norm() / reference.norm())
    del reference
    plans = library.plans(a, b, out)
    # The fastest three of a first look are timed again, so that no lucky repetition chooses the yardstick.
    first = medians(plans, 5, flush)
    best = sorted(range(len(plans)), key=first.__getitem__)[:3]
    calls = [
        lambda: torch.mm(a, b, out=out),
        lambda: run_stage(stage, a, b, out),
        *(plans[i] for i in best),
    ]
    times = medians(calls, repetitions, flush)
    return Row(m, n, k, times[0], min(times[2:]), times[1], error, card_state())


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table, with the geometric means."""
    lines = [
        "| M × N × K | torch.mm | best of cublasLt | ours | ours / torch.mm | ours / faster | error | MHz, W, °C |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        speeds = " | ".join(f"{row.teraflops(time):.0f}" for time in (row.torch, row.cublaslt, row.ours))
        card = re.sub(r" (MHz|W)", "", row.card) or "–"
        error = "–" if row.error is None else f"{row.error:.0e}"
        lines.append(
            f"| {row.m} × {row.n} × {row.k} | {speeds} | {row.over_torch:.3f} | {row.over_best:.3f} "
            f"| {error} | {card} |"
        )
    torch_mean = geometric_mean([row.over_torch for row in rows])
    best_mean = geometric_mean([row.over_best for row in rows])
    lines.append(f"| **geometric mean** | | | | **{torch_mean:.3f}** | **{best_mean:.3f}** | | |")
    return "\n".join(lines)


def write_table(text: str, name: str) -> None:
    """Put a table between its marks in the document."""
    begin, end = f"<!-- {name}: generated by tools/bench_hgemm.py -->", f"<!-- /{name} -->"
    document = DOCUMENT.read_text(encoding="utf-8")
    before, rest = document.split(begin)
    after = rest.split(end)[1]
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, print, and where asked keep the numbers and rewrite the document's tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16"))
    parser.add_argument("--stage", default="hgemm_fastest")
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--json", type=Path, help="where to keep the numbers")
    parser.add_argument("--from-json", type=Path, help="take the numbers from there instead of measuring")
    parser.add_argument("--write", action="store_true", help=f"rewrite the tables of {DOCUMENT.name}")
    arguments = parser.parse_args()
    if arguments.from_json:
        kept = json.loads(arguments.from_json.read_text(encoding="utf-8"))
        results = {name: [Row(**row) for row in rows] for name, rows in kept.items()}
    else:
        results = run(arguments.stage, arguments.dtype, arguments.repetitions)
    if arguments.json:
        text = json.dumps({name: [asdict(row) for row in rows] for name, rows in results.items()}, indent=1)
        arguments.json.write_text(text, encoding="utf-8")
    for name, rows in results.items():
        print(f"{name}\n{table(rows)}\n")
        if arguments.write:
            write_table(table(rows), name)


def run(stage: str, dtype: str, repetitions: int) -> dict[str, list[Row]]:
    """Measure every shape."""
    import torch
    from cublas_lt import CublasLt

    torch.manual_seed(0)
    library, flush = CublasLt(), torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    return {
        name: [measure(stage, shape, dtype, repetitions, library, flush) for shape in shapes]
        for name, shapes in (("goal", GOAL), ("models", MODELS))
    }


if __name__ == "__main__":
    main()
