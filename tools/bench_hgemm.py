"""The fastest stage against torch.mm and the best of cublasLt's first sixteen proposals; prints the tables of
docs/fastest_hgemm.md and with --write puts them there.

    python tools/bench_hgemm.py [--dtype bfloat16] [--stage hgemm_fastest] [--repetitions 30] [--json FILE] [--write]
    python tools/bench_hgemm.py --dtype float32 [--json FILE]                      # the fastest FP32 stage, TF32 off
    python tools/bench_hgemm.py --every OUT.json [--seconds 100] [--seeds 1 2]     # a thousand shapes, and drawn ones
    python tools/bench_hgemm.py --write-every OUT.json...                          # their table, a file a card

Random normal data; L2 flushed before every launch; torch.mm, the fastest proposal of cublasLt and the stage in turns in
one process; medians. Every product is compared with a float64 one.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from recording import ROOT, options_of, table_of, write_block

from gemmprof.base.spread import grouped

if TYPE_CHECKING:
    from torch import Tensor

GOAL = (
    *((side, side, side) for side in (2048, 4096, 8192)),
    *((8192, 8192, 2048), (4096, 14336, 4096), (16384, 4096, 4096), (4096, 4096, 16384)),
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

SINGLE = {
    "known": (
        (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192),
        (4096, 4096, 1024), (8192, 1024, 4096), (1000, 1000, 1000), (4097, 4097, 4097),
    ),
    "others": (
        (1, 4096, 4096), (1, 14336, 4096), (2, 4288, 3904), (3000, 1, 5001), (16, 4096, 4096), (64, 4096, 4096),
        (48, 40, 60000), (256, 256, 4096), (4096, 128, 4096), (512, 512, 8192), (1536, 768, 8192),
        (640, 640, 640), (1280, 1280, 1280), (2304, 2304, 2304), (4095, 4095, 4095),
    ),
}  # fmt: skip
"""The shapes of FP32: those of its goal, and fifteen of other kinds."""

SIDES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384)
"""M, N and K of the grid: every combination."""

EVERY = ROOT / "docs" / "fastest_every.json"
"""What ``--write-every`` keeps of them: rows of group, type, orders, M, N, K and three times in microseconds."""

DOCUMENT = ROOT / "docs" / "fastest_hgemm.md"
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
    """Median microseconds of each call, as `timed` takes them."""
    return [statistics.median(times) for times in timed(calls, repetitions, flush)]


def timed(
    calls: Sequence[Callable[[], Any]], repetitions: int, flush: Tensor, dice: random.Random | None = None
) -> list[list[float]]:
    """Microseconds of each call, ascending, L2 flushed before each; in turns, with dice in random ones.

    Raises:
        RuntimeError: the host falls behind the GPU however long that sleeps before a turn.
    """
    import torch

    for call in calls:
        call()
    events: list[list[tuple[Any, Any]]] = [[] for _ in calls]
    cycles, turns, order = SLEEP_CYCLES, 0, list(range(len(calls)))
    while turns < repetitions:
        # A turn counts only if the GPU had not come as far when each call was enqueued: a host that falls behind would
        # enter the times (a product of 7 us read 1,900 so).
        if dice is not None:
            dice.shuffle(order)
        torch.cuda._sleep(cycles)
        before = torch.cuda.Event()
        before.record()
        turn, behind = [], False
        for at in order:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush.zero_()
            start.record()
            calls[at]()
            end.record()
            behind, before = behind or before.query(), end
            turn.append((start, end))
        if behind:
            cycles *= 2
            if cycles > 1000 * SLEEP_CYCLES:
                raise RuntimeError("the host is too slow to time anything")
            continue
        turns += 1
        for at, pair in zip(order, turn, strict=True):
            events[at].append(pair)
    torch.cuda.synchronize()
    return [sorted(s.elapsed_time(e) * 1e3 for s, e in kept) for kept in events]


def fastest(
    plans: Sequence[Callable[[], Any]], count: int, looks: int, flush: Tensor
) -> list[Callable[[], Any]]:
    """The fastest plans of a first look, to be timed again: no lucky repetition chooses the yardstick."""
    first = medians(plans, looks, flush) if plans else []
    return [plans[at] for at in sorted(range(len(plans)), key=first.__getitem__)[:count]]


def checked(stage: str, a: Tensor, b: Tensor, out: Tensor) -> float:
    """Run a stage once; the relative Frobenius error of what it wrote, NaN where it wrote nothing."""
    from gemmprof.kernels.operators import run_stage

    run_stage(stage, a, b, out.fill_(math.nan))
    reference = a.double() @ b.double()
    return float((out.double() - reference).norm() / reference.norm())


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
    out = torch.empty((m, n), device="cuda", dtype=element)
    error = checked(stage, a, b, out)
    calls = [
        lambda: torch.mm(a, b, out=out),
        lambda: run_stage(stage, a, b, out),
        *fastest(library.plans(a, b, out), 3, 5, flush),
    ]
    times = medians(calls, repetitions, flush)
    return Row(m, n, k, times[0], min(times[2:]), times[1], error, card_state())


@dataclass(frozen=True, slots=True)
class Product:
    """One of many products: a type, and which operands are stored transposed ("nn" to "tt")."""

    group: str
    dtype: str
    order: str
    m: int
    n: int
    k: int


def drawn(seed: int, count: int, *, odd: bool) -> list[Product]:
    """Random products: sides of models (multiples of 8, up to 65,536 rows), or any sides up to 4,096."""
    dice = random.Random(seed)

    def side(least: int, most: int) -> int:
        found = math.exp(dice.uniform(math.log(least), math.log(most)))
        return max(least, round(found) if odd else round(found / 8) * 8)

    products = []
    while len(products) < count:
        if odd:
            shape = (side(1, 4096), side(1, 4096), side(16, 4096))
        else:
            rows = round(math.exp(dice.uniform(0.0, math.log(65536))))
            shape = (rows, side(64, 16384), side(64, 16384))
        order = dice.choice(("nn", "nt", "tn", "tt"))
        if 2.0 * math.prod(shape) < 2e12 and (odd or order[0] == "n" or shape[0] % 8 == 0):
            dtype = dice.choice(("bfloat16", "float16"))
            products.append(Product("odd sizes" if odd else "drawn", dtype, order, *shape))
    return products


def every(stage: str, out: Path, seconds: float, seeds: Sequence[int]) -> None:
    """Time the grid and drawn products in random order, as many as the seconds allow, each checked."""
    import torch
    from cublas_lt import CublasLt

    from gemmprof.kernels.operators import run_stage

    began = time.monotonic()
    torch.manual_seed(0)
    library, flush = CublasLt(), torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    grid = [Product("grid", "bfloat16", "nn", *shape) for shape in itertools.product(SIDES, repeat=3)]
    random.Random(0).shuffle(grid)
    chosen = [p for seed in seeds for odd in (False, True) for p in drawn(seed, 100, odd=odd)]
    random.Random(1).shuffle(chosen)
    rows, wrong, before = [], [], card_state()
    for product in (*chosen, *grid):
        if time.monotonic() - began > seconds:
            break
        element = getattr(torch, product.dtype)
        m, n, k = product.m, product.n, product.k

        def operand(rows: int, columns: int, order: str, element: Any = element) -> Tensor:
            if order == "n":
                return torch.randn(rows, columns, device="cuda", dtype=element)
            return torch.randn(columns, rows, device="cuda", dtype=element).t()

        a, b = operand(m, k, product.order[0]), operand(k, n, product.order[1])
        result = torch.empty((m, n), device="cuda", dtype=element)
        error = checked(stage, a, b, result)
        if not error < (4e-3 if product.dtype == "bfloat16" else 5e-4):
            wrong.append([*astuple(product), error])
        try:
            plans = library.plans(a, b, result)
        except RuntimeError:  # it refuses rows that are not aligned to what its kernels need
            plans = []
        large = 2.0 * m * n * k > 3e11
        # Bound as defaults: the names are those of the next product when Python looks.
        calls: list[Callable[[], Any]] = [
            lambda a=a, b=b, result=result: torch.mm(a, b, out=result),  # type: ignore[misc]
            lambda a=a, b=b, result=result: run_stage(stage, a, b, result),  # type: ignore[misc]
            *fastest(plans, *((1, 1) if large else (2, 3)), flush),
        ]
        times = medians(calls, 4 if large else 8, flush)
        kept = times[0], min(times[0], *times[2:], math.inf), times[1]
        rows.append([*astuple(product), *(round(time, 2) for time in kept)])
    told = {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "seeds": list(seeds),
        "states": [before, card_state()],
        "left_out": len(grid) + len(chosen) - len(rows),
        "wrong": wrong,
        "rows": rows,
    }
    out.write_text(json.dumps(told, separators=(",", ":")).replace("],[", "],\n["), encoding="utf-8")
    print(every_table([told]))
    took = time.monotonic() - began
    print(f"{len(rows)} products, {told['left_out']} left out, wrong: {wrong[:5]}, {took:.0f} s")


def _class_of(row: Sequence[Any]) -> str:
    """The line of the table that a row of ``every`` belongs to."""
    group, _, order, m, n, k = row[:6]
    if group != "grid":
        return f"{group}, {'A transposed' if order[0] == 't' else 'A row-major'}"
    size = 2.0 * m * n * k
    if min(m, n) <= 64:
        return "grid, 64 rows or columns"
    if size < 4e9:
        return "grid, below 4 GFLOP"
    return "grid, below 100 GFLOP" if size < 1e11 else "grid, from 100 GFLOP"


def every_table(cards: Sequence[dict[str, Any]]) -> str:
    """Of each class of products and card: how many, our speed over torch.mm's and over the best of cublasLt's."""
    lines = []
    for card in cards:
        of_class = grouped((_class_of(row), row) for row in card["rows"])
        if grid := [row for row in card["rows"] if row[0] == "grid"]:
            of_class["**grid**"] = grid
        for name, rows in sorted(of_class.items()):
            over, of_best = ([row[at] / row[8] for row in rows] for at in (6, 7))
            shares = (f"{100 * sum(x >= bound for x in over) / len(over):.0f} %" for bound in (0.97, 0.92))
            means = (f"{geometric_mean(ratios):.3f}" for ratios in (over, of_best))
            lines.append(
                (card["card"].removeprefix("NVIDIA "), name, len(rows), *means, f"{min(over):.2f}", *shares)
            )
    speed = "over torch.mm> | over cublasLt's best> | least> | at least 0.97> | at least 0.92>"
    return "\n".join(table_of(f"card | products | count> | {speed}", lines))


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table, with the geometric means."""
    lines = []
    for row in rows:
        speeds = (f"{row.teraflops(time):.0f}" for time in (row.torch, row.cublaslt, row.ours))
        card = re.sub(r" (MHz|W)", "", row.card) or "–"
        error = "–" if row.error is None else f"{row.error:.0e}"
        ratios = f"{row.over_torch:.3f}", f"{row.over_best:.3f}"
        lines.append((f"{row.m} × {row.n} × {row.k}", *speeds, *ratios, error, card))
    means = (
        geometric_mean(ratios) for ratios in zip(*((r.over_torch, r.over_best) for r in rows), strict=True)
    )
    lines.append(("**geometric mean**", "", "", "", *(f"**{mean:.3f}**" for mean in means), "", ""))
    head = "M × N × K | torch.mm> | best of cublasLt> | ours> | ours / torch.mm> | ours / faster> | error>"
    return "\n".join(table_of(f"{head} | MHz, W, °C", lines))


def main() -> None:
    """Measure, print, and where asked keep the numbers and rewrite the document's tables."""
    parser = options_of(__doc__)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument("--stage", help="default: the fastest of its type's ladder")
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--json", type=Path, help="where to keep the numbers")
    parser.add_argument("--from-json", type=Path, help="take the numbers from there instead of measuring")
    parser.add_argument("--write", action="store_true", help=f"rewrite the tables of {DOCUMENT.name}")
    parser.add_argument("--every", type=Path, metavar="OUT", help="time the grid and drawn products instead")
    parser.add_argument("--seconds", type=float, default=100.0, help="no product is begun after so many")
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="of the drawn products")
    parser.add_argument("--write-every", type=Path, nargs="+", metavar="JSON", help="write their table")
    arguments = parser.parse_args()
    single = arguments.dtype == "float32"
    if single and (arguments.write or arguments.every):
        parser.error("the tables and --every are of 16 bits")
    stage = arguments.stage or ("fastest" if single else "hgemm_fastest")
    if arguments.every:
        every(stage, arguments.every, arguments.seconds, arguments.seeds)
        return
    if arguments.write_every:
        cards = [json.loads(file.read_text(encoding="utf-8")) for file in arguments.write_every]
        EVERY.write_text(
            json.dumps(cards, separators=(",", ":")).replace("],[", "],\n[") + "\n", encoding="utf-8"
        )
        write_block(DOCUMENT, "every", every_table(cards))
        return
    if arguments.from_json:
        kept = json.loads(arguments.from_json.read_text(encoding="utf-8"))
        results = {name: [Row(**row) for row in rows] for name, rows in kept.items()}
    else:
        results = run(stage, arguments.dtype, arguments.repetitions)
    if arguments.json:
        text = json.dumps({name: [asdict(row) for row in rows] for name, rows in results.items()}, indent=1)
        arguments.json.write_text(text, encoding="utf-8")
    for name, rows in results.items():
        print(f"{name}\n{table(rows)}\n")
        if arguments.write:
            write_block(DOCUMENT, name, table(rows))


def run(stage: str, dtype: str, repetitions: int) -> dict[str, list[Row]]:
    """Measure every shape."""
    import torch
    from cublas_lt import CublasLt

    torch.manual_seed(0)
    library, flush = CublasLt(), torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    groups = SINGLE if dtype == "float32" else {"goal": GOAL, "models": MODELS}
    results = {
        name: [measure(stage, shape, dtype, repetitions, library, flush) for shape in shapes]
        for name, shapes in groups.items()
    }
    if vectors := [row for row in itertools.chain(*results.values()) if min(row.m, row.n) == 1]:
        # A vector times a matrix can be no faster than a copy of as many bytes.
        copied = torch.empty_like(flush)
        copy = 2 * FLUSH_BYTES / medians([lambda: copied.copy_(flush)], repetitions, copied)[0]
        for row in vectors:
            moved = getattr(torch, dtype).itemsize * (row.m * row.k + row.k * row.n + row.m * row.n)
            of_copy = f"{moved / row.ours / copy:.2f} of the speed of a copy, {copy / 1e6:.2f} TB/s"
            print(f"{row.m} x {row.n} x {row.k}: {of_copy}")
    return results


if __name__ == "__main__":
    main()
