"""Random products by every stage of every ladder on this machine's GPU, each compared element by element.

    python tests/helpers/random_products.py --problems 1000000 --output gemmprof/recorded/campaign.json

Operands are small whole numbers, and alpha and beta powers of two: every sum is exact in float32 in whatever order it
is added, so a stage's C is right to the last bit or wrong. That makes a problem cheap: operands are windows of one
pool, the reference is one product for all stages of a ladder, and copies of C with guard bands lie side by side, so
that one comparison serves them all. Nothing waits for the host between launches.

A problem is one product by one operator in one pair of types; it may be launched more than once.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gemmprof.gpu.dtypes import ELEMENT_TYPES
from gemmprof.kernels.catalog import LADDERS, Variant, all_variants
from gemmprof.runs.directory import load_recorded_run

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult

POOL = 1 << 24
"""Elements that operands are cut from: more than the largest of them has, at any distance between its rows."""
LARGEST_NUMBER = 6
"""Of the operands. Products over 128 of K stay below 2^13: more bits the tensor cores do not keep of 8-bit operands."""
GUARD, GUARD_VALUE = 64, 57.0
"""Elements before and after each C, and what they hold: a number that every type of C has."""
ARENA_BYTES, PRODUCT_BYTES = 1 << 30, 1 << 28
"""Of all C of a batch, and of those of one product."""
LONGEST = 100e-6
"""Seconds that a launch may be expected to take: a slow stage gets the smaller problems."""
RESULTS_AHEAD = 100
"""How many products are tried before the host looks at a result."""
WAYS = {"queued": 0.52, "two streams": 0.25, "beside a full card": 0.12, "one by one": 0.06, "graph": 0.05}
"""How a batch is launched, and how often."""
LADDER_SHARES = {"single": 0.24, "half": 0.33, "fp8": 0.43}
"""Of the products. FP8 has one stage, so that it gets fewest problems of a product."""
ALWAYS_SHARE, OTHER_SHARE, AGAIN_SHARE = 0.85, 0.33, 0.2
"""How often a product is given to a ladder's last stage, which has most to get wrong, to each of the others, and to one
of them twice."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where a matrix lies in the pool: rows x columns, `ld` elements from row to row (or column to column)."""

    rows: int
    columns: int
    ld: int
    start: int
    transposed: bool

    def of(self, pool: torch.Tensor) -> torch.Tensor:
        """The matrix."""
        strides = (1, self.ld) if self.transposed else (self.ld, 1)
        return pool.as_strided((self.rows, self.columns), strides, self.start)


@dataclass(frozen=True, slots=True)
class Product:
    """C = alpha * A @ B + beta * C, in these types, as it lies in memory; `stride` leads from one C to the next."""

    dtype: str
    c_dtype: str
    a: Window
    b: Window
    alpha: float
    beta: float
    ldc: int
    shift: int
    stride: int
    old_c: int

    def c_of(self, copy: torch.Tensor) -> torch.Tensor:
        """The matrix within one of its copies."""
        return copy.as_strided(
            (self.a.rows, self.b.columns), (self.ldc, 1), copy.storage_offset() + GUARD + self.shift
        )

    @property
    def flops(self) -> float:
        return 2.0 * self.a.rows * self.a.columns * self.b.columns

    def __str__(self) -> str:
        orders = "".join("T" if side.transposed else "N" for side in (self.a, self.b))
        shape = f"{self.a.rows}x{self.b.columns}x{self.a.columns}"
        starts = f"lda {self.a.ld}+{self.a.start % 16} ldb {self.b.ld}+{self.b.start % 16}"
        return (
            f"{shape} {orders} {self.dtype}->{self.c_dtype} {starts} ldc {self.ldc}+{self.shift} "
            f"alpha {self.alpha} beta {self.beta}"
        )


@dataclass(frozen=True, slots=True)
class Zone:
    """A product's copies of C, one for each launch."""

    product: Product
    launches: Sequence[str]
    rows: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor


@dataclass(slots=True)
class Tally:
    """What was tried and what was wrong."""

    problems: Counter[str] = field(default_factory=Counter)
    """By operator."""
    launches: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    """Launches."""
    ways: Counter[str] = field(default_factory=Counter)
    """Launches by the way of launching."""
    examples: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Another process's part."""
        for name in ("problems", "launches", "wrong", "ways"):
            getattr(self, name).update(getattr(other, name))
        self.examples += other.examples


def log_uniform(dice: random.Random, low: int, high: int) -> int:
    return int(low * (high / low) ** dice.random())


def shape(dice: random.Random, small: bool) -> tuple[int, int, int]:
    """M, N and K: small in all, many tiles with a short K, few tiles with a long one, few rows, near tiles' ends."""
    kind = dice.random() * (0.3 if small else 1.0)
    if kind < 0.3:
        return tuple(log_uniform(dice, 1, 400) for _ in range(3))  # type: ignore[return-value]
    if kind < 0.6:
        return dice.randint(600, 3400), dice.randint(600, 3400), log_uniform(dice, 1, 400)
    if kind < 0.72:
        return log_uniform(dice, 1, 600), log_uniform(dice, 1, 600), log_uniform(dice, 500, 8000)
    if kind < 0.8:
        few, many = log_uniform(dice, 1, 64), log_uniform(dice, 64, 4000)
        return (*((few, many) if dice.random() < 0.5 else (many, few)), log_uniform(dice, 1, 3000))
    near = [max(1, 64 * dice.randint(0, 24) + dice.choice((-8, -1, 0, 0, 0, 1, 8, 16))) for _ in range(3)]
    return near[0], near[1], near[2]


def window(dice: random.Random, rows: int, columns: int, transposable: bool, aligned: bool) -> Window:
    transposed = transposable and dice.random() < 0.5
    length, lines = (rows, columns) if transposed else (columns, rows)
    ld = length + (0 if dice.random() < 0.5 else dice.randint(0, 70))
    if aligned:
        ld = (ld + 15) // 16 * 16
    ld = max(1, ld)
    start = dice.randrange(POOL - lines * ld - 16)
    return Window(rows, columns, ld, start - start % 16 if aligned else start, transposed)


def random_product(dice: random.Random, ladder: str, dtypes: Sequence[str], small: bool) -> Product:
    """A product of this ladder; of half of them the rows lie as the copy engine wants them."""
    m, n, k = shape(dice, small)
    aligned = dice.random() < 0.5
    if aligned:
        n = (n + 7) // 8 * 8
    if dice.random() < 0.01:
        k = 0
    dtype = dice.choice(dtypes)
    c_dtype = dice.choice(ELEMENT_TYPES[dtype].c_types)
    a = window(dice, m, k, ladder != "single", aligned or dice.random() < 0.2)
    b = window(dice, k, n, ladder != "single", aligned or dice.random() < 0.2)
    beta = 0.0 if dice.random() < 0.65 else dice.choice((1.0, -1.0, 0.5, 2.0))
    alpha = 1.0 if dice.random() < 0.6 else dice.choice((-1.0, 0.5, 2.0, -0.25, 0.0))
    ldc = n + (0 if dice.random() < 0.5 else dice.randint(0, 40))
    shift = dice.randint(0, 15)
    stride = 2 * GUARD + (m - 1) * ldc + n + 16 + dice.randint(0, 15)
    if aligned:
        ldc, shift = (ldc + 7) // 8 * 8, 0
        stride = (2 * GUARD + (m - 1) * ldc + n + 31) // 16 * 16
    return Product(dtype, c_dtype, a, b, alpha, beta, ldc, shift, stride, dice.randrange(POOL - m * n))


class Bench:
    """One process's memory and streams on the GPU.

    Args:
        seed: of its dice.
        names: operators to try.
        on_host: references and comparisons are the host's work, so that a sanitizer sees kernels of ours only.
    """

    def __init__(self, seed: int, names: Sequence[str], on_host: bool = False) -> None:
        self.dice = random.Random(seed)
        self.on_host = on_host
        self.tally = Tally()
        variants = {variant.name: variant for variant in all_variants() if variant.name in names}
        self.ladders: Mapping[str, list[Variant]] = {
            ladder.name: found
            for ladder in LADDERS
            if (found := [v for v in variants.values() if v.stage.ladder == ladder.name])
        }
        self.speeds = recorded_speeds()
        generator = torch.Generator().manual_seed(seed)
        numbers = torch.randint(-LARGEST_NUMBER, LARGEST_NUMBER + 1, (POOL,), generator=generator)
        self.pools = {
            name: numbers.to(getattr(torch, name)).cuda()
            for name in ("float32", "float16", "bfloat16", "float8_e4m3fn")
        }
        self.math_pool = numbers.float() if on_host else self.pools["float32"]
        self.arena = torch.zeros(ARENA_BYTES >> (4 if on_host else 0), dtype=torch.uint8).cuda()
        self.main, self.side, self.third = (torch.cuda.Stream() for _ in range(3))
        if not on_host:
            self.load = torch.randn(6144, 6144, device="cuda", dtype=torch.bfloat16)
            self.filled = torch.empty_like(self.load)
        self.pending: list[tuple[torch.Tensor, Sequence[tuple[str, Product, str]]]] = []

    def batch(self, products: int = 10) -> list[Zone]:
        """Products, the operators that each is given to, and room for what they make of it."""
        zones, space = [], 0
        for _ in range(products):
            (ladder,) = self.dice.choices(list(self.ladders), [LADDER_SHARES[name] for name in self.ladders])
            variants = self.ladders[ladder]
            product = random_product(self.dice, ladder, variants[-1].stage.dtypes, self.on_host)
            names = [
                v.name
                for v in variants
                if product.flops <= LONGEST * self.speeds[v.stage.name]
                and self.dice.random() < (ALWAYS_SHARE if v is variants[-1] else OTHER_SHARE)
            ]
            launches = [*names, *(name for name in names if self.dice.random() < AGAIN_SHARE)]
            c_type = getattr(torch, product.c_dtype)
            size = product.stride * c_type.itemsize * len(launches)
            if not names or size > PRODUCT_BYTES or space + size > self.arena.numel():
                continue
            rows = self.arena[space : space + size].view(c_type).view(len(launches), product.stride)
            space += (size + 255) // 256 * 256
            zones.append(Zone(product, launches, rows, *self.before_and_after(product)))
            self.tally.problems.update(names)
        return zones

    def before_and_after(self, product: Product) -> tuple[torch.Tensor, torch.Tensor]:
        """What lies where a C is to be made, between guard bands, and what must lie there then."""
        m, n, pool = product.a.rows, product.b.columns, self.math_pool
        before = torch.full(
            (product.stride,), GUARD_VALUE, dtype=getattr(torch, product.c_dtype), device=pool.device
        )
        after = before.clone()
        result = torch.mm(product.a.of(pool), product.b.of(pool)).mul_(product.alpha)
        if product.beta:
            old = pool.as_strided((m, n), (n, 1), product.old_c)
            product.c_of(before).copy_(old)
            result.add_(old, alpha=product.beta)
        else:
            product.c_of(before).fill_(float("nan"))
        product.c_of(after).copy_(result)
        return before, after

    def step(self) -> None:
        """Launch a batch; its results are looked at later."""
        torch.cuda.set_stream(self.main)
        way = "one by one" if self.on_host else self.dice.choices(list(WAYS), list(WAYS.values()))[0]
        zones = self.batch()
        calls = [
            (
                getattr(torch.ops.gemmprof, f"{name}_out"),
                zone.product.a.of(self.pools[zone.product.dtype]),
                zone.product.b.of(self.pools[zone.product.dtype]),
                zone.product.c_of(row),
                zone.product.alpha,
                zone.product.beta,
            )
            for zone in zones
            for name, row in zip(zone.launches, zone.rows, strict=True)
        ]
        if not calls:
            return
        self.dice.shuffle(calls)
        graph = self.captured(calls) if way == "graph" else None
        for _ in range(2 if graph is not None else 1):
            for zone in zones:
                zone.rows.copy_(
                    zone.before.expand_as(zone.rows).contiguous() if self.on_host else zone.before
                )
            if graph is not None:
                graph.replay()
            else:
                self.launch(calls, way)
            for zone in zones:
                wrong = (zone.rows.to(zone.after.device) != zone.after).any(1)
                self.pending.append((wrong, [(name, zone.product, way) for name in zone.launches]))
        if len(self.pending) >= RESULTS_AHEAD or graph is not None:
            self.look()

    def launch(self, calls: Sequence[tuple[Any, ...]], way: str) -> None:
        if way == "beside a full card":
            with torch.cuda.stream(self.third):
                for _ in range(2):
                    torch.mm(self.load, self.load, out=self.filled)
        if way == "two streams":
            self.side.wait_stream(self.main)
        for operator, *operands in calls:
            if way == "two streams":
                torch.cuda.set_stream(self.side if self.dice.random() < 0.5 else self.main)
            operator(*operands)
            if way == "one by one":
                torch.cuda.synchronize()
        torch.cuda.set_stream(self.main)
        if way == "two streams":
            self.main.wait_stream(self.side)

    def captured(self, calls: Sequence[tuple[Any, ...]]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(capture_error_mode="relaxed")
        self.launch(calls, self.dice.choice(("queued", "two streams")))
        graph.capture_end()
        return graph

    def look(self) -> None:
        """Wait for what was launched, and count it."""
        if not self.pending:
            return
        flags = torch.cat([wrong for wrong, _ in self.pending]).tolist()
        made = [launch for _, launches in self.pending for launch in launches]
        self.pending = []
        for wrong, (name, product, way) in zip(flags, made, strict=True):
            self.tally.launches[name] += 1
            self.tally.ways[way] += 1
            if wrong:
                self.tally.wrong[name] += 1
                if len(self.tally.examples) < 10:
                    self.tally.examples.append(f"{name} {product}, {way}; {self.alone(name, product)}")

    def alone(self, name: str, product: Product, times: int = 20) -> str:
        """How often it is wrong by itself, and whether the reference is right."""
        before, after = self.before_and_after(product)
        exact = product.a.of(self.math_pool).double() @ product.b.of(self.math_pool).double()
        exact *= product.alpha
        if product.beta:
            exact += product.beta * product.c_of(before).double()
        reference = (
            "reference right"
            if torch.equal(product.c_of(after), exact.to(after.dtype))
            else "REFERENCE WRONG"
        )
        wrong, elements = 0, 0
        for _ in range(times):
            row = before.to("cuda", copy=True)
            operands = [side.of(self.pools[product.dtype]) for side in (product.a, product.b)]
            getattr(torch.ops.gemmprof, f"{name}_out")(
                *operands, product.c_of(row), product.alpha, product.beta
            )
            differs = row.to(after.device) != after
            wrong, elements = wrong + bool(differs.any()), max(elements, int(differs.sum()))
        return f"by itself wrong in {wrong} of {times}, {elements} elements; {reference}"


def recorded_speeds() -> Mapping[str, float]:
    """FLOP/s of each stage on the largest cube of the recorded run; one that is not recorded yet gets the slowest's."""
    run = load_recorded_run()
    speeds = {stage.name: 0.0 for ladder in LADDERS for stage in ladder.stages}
    for result in run.results:
        if result.timing is not None:
            name = run.record_of(result).stage.name
            speeds[name] = max(speeds.get(name, 0.0), result.problem.flops / result.timing.median)
    slowest = min(filter(None, speeds.values()))
    return {name: speed or slowest for name, speed in speeds.items()}


def work(seed: int, problems: int, names: Sequence[str], on_host: bool = False) -> Tally:
    """One process's part: so many problems."""
    torch.set_num_threads(1 if not on_host else 2)
    from gemmprof.kernels.operators import load

    load()
    bench = Bench(seed, names, on_host)
    while bench.tally.problems.total() < problems:
        bench.step()
    bench.look()
    return bench.tally


def try_products(problems: int, jobs: int, names: Sequence[str], seed: int = 0) -> Tally:
    """So many problems by so many processes, which share the GPU."""
    tally = Tally()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        parts = [pool.submit(work, seed + job, -(-problems // jobs), names) for job in range(jobs)]
        for part in parts:
            tally.add(part.result())
    return tally


def sanitize(tools: Sequence[str], problems: int, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The same under compute-sanitizer, one process for each tool and ladder: small products, one by one."""
    calls = {}
    for ladder in LADDERS:
        of_ladder = [v.name for v in all_variants([ladder]) if v.name in names]
        for tool in tools:
            command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "0", sys.executable, __file__]
            command += ["--on-host", "--problems", str(problems), "--names", *of_ladder]
            calls[tool, ladder.name] = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
    found: dict[str, dict[str, Any]] = {tool: {} for tool in tools}
    for (tool, ladder_name), process in calls.items():
        output, _ = process.communicate()
        lines = [
            line.removeprefix("========= ") for line in output.splitlines() if line.startswith("=========")
        ]
        summary = next((line for line in lines if "SUMMARY" in line), "no summary")
        found[tool][ladder_name] = summary
        if " 0 errors" not in summary and "0 hazards" not in summary:
            print(f"--- {tool} {ladder_name}", *output.splitlines()[:60], sep="\n", file=sys.stderr)
    return found


def document(tally: Tally, built: BuildResult, seconds: float, jobs: int) -> dict[str, Any]:
    """What is kept of a campaign."""
    from gemmprof.gpu.devices import list_gpus

    ladders: dict[str, Any] = {}
    for variant in all_variants():
        if tally.problems[variant.name]:
            stages = ladders.setdefault(
                variant.stage.ladder, {"problems": 0, "launches": 0, "wrong": 0, "stages": {}}
            )
            counts = {
                "problems": tally.problems[variant.name],
                "launches": tally.launches[variant.name],
                "wrong": tally.wrong[variant.name],
            }
            code = next(iter(built.stages[variant.name].note.sass.values()), "")
            stages["stages"][variant.name] = {**counts, "sass": code}
            for key, count in counts.items():
                stages[key] += count
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "versions": {
            "driver": list_gpus()[0].driver,
            "cuda": torch.version.cuda,
            "torch": torch.__version__,
            "nvcc": built.compiler,
        },
        "seconds": round(seconds, 1),
        "processes": jobs,
        "ladders": ladders,
        "launches": dict(tally.ways),
        "examples": tally.examples[:20],
    }


def main() -> int:
    """Try, print, write; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=4, help="processes that share the GPU")
    parser.add_argument("--names", nargs="+", help="operators (default: all)")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--sanitize", type=int, metavar="PROBLEMS", help="of each ladder, by each tool")
    parser.add_argument("--on-host", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or [variant.name for variant in all_variants()]
    if options.on_host:
        tally = work(options.seed, options.problems, names, on_host=True)
        print(json.dumps(asdict(tally)))
        return 1 if tally.wrong else 0
    from gemmprof.kernels.build import build
    from gemmprof.kernels.operators import load

    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)  # before minutes are spent
    built = build()
    names = [name for name in names if name in load(built).names]
    started = time.monotonic()
    tally = try_products(options.problems, options.jobs, names, options.seed)
    made = document(tally, built, time.monotonic() - started, options.jobs)
    if options.sanitize:
        made["sanitizer"] = sanitize(("memcheck", "racecheck", "initcheck"), options.sanitize, names)
    text = json.dumps(made, indent=1)
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
