"""The GPU side of a search: verifies and times one candidate after another, as the search asks.

It reads one JSON object a line and answers each with one (`gemmprof.children.line_worker`): first the settings, then
candidates. It is a process of its own because a candidate that faults spoils the CUDA context, and one that hangs can
only be killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from gemmprof.children.line_worker import serve_worker
from gemmprof.kernels.candidates import LoadedCandidate
from gemmprof.kernels.catalog import ladder_of
from gemmprof.kernels.operators import run_stage
from gemmprof.model import Problem
from gemmprof.profiler.measuring import Bench, facts_of, random_operands, verify

ODD_SHAPE = (193, 251, 97)  # a shape that divides by no tile, verified beside the ones to tune for
EARLY_BUDGET = 0.01  # seconds of the first look at a candidate on one problem


class Worker:
    """Holds the operands and the yardstick between candidates."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        import torch

        self.device = torch.device("cuda", torch.cuda.current_device())
        self.seed = int(settings["seed"])
        self.minimum_warps = int(settings["minimum_warps"])
        self.early_factor = float(settings["early_factor"])
        problems = [Problem(*problem) for problem in settings["problems"]]
        self.operands = [random_operands(p, seed=self.seed, device=self.device) for p in problems]
        odd = Problem(*ODD_SHAPE, problems[0].dtype, problems[0].c_dtype)
        self.odd = random_operands(odd, seed=self.seed, device=self.device)
        self.bench = Bench(self.device)
        self.yardstick = ladder_of(problems[0].dtype).yardstick
        first = self.operands[0]
        self.bench.ramp(lambda: run_stage(self.yardstick, first.a.matrix, first.b.matrix, first.c.matrix))

    def facts(self) -> dict[str, Any]:
        """What the search needs to know of the GPU."""
        return facts_of(self.device)

    def do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Verify and time one candidate; ``score`` is its speed as a fraction of the yardstick's, geometric mean."""
        candidate = LoadedCandidate.load(request["name"], Path(request["library"]))
        main = candidate.occupancy()[0]
        facts = {"blocks_per_sm": main.blocks_per_sm, "registers": main.registers_per_thread}
        warps = main.blocks_per_sm * main.threads_per_block // 32
        if warps < self.minimum_warps:
            return {**facts, "status": "occupancy", "detail": f"{warps} resident warps an SM"}
        kernel = candidate.kernel()
        # An early look, before the costly part, drops what is far behind.
        if request["best"] is not None:
            early = self._score(kernel, EARLY_BUDGET)
            if early * self.early_factor < request["best"]:
                return {**facts, "status": "slow", "score": early}
        for operands in (self.odd, *self.operands):
            verification = verify(kernel, operands)
            if not verification.passed:
                what = f"{operands.problem.label}: {verification.detail}"
                return {**facts, "status": "wrong", "detail": what}
        return {**facts, "status": "timed", "score": self._score(kernel, float(request["budget"]))}

    def _score(self, kernel: Any, budget: float) -> float:
        shares = []
        for operands in self.operands:
            matrices = operands.a.matrix, operands.b.matrix, operands.c.matrix
            yardstick = partial(run_stage, self.yardstick, *matrices)
            timing = self.bench.time(partial(kernel, *matrices, 1.0, 0.0), yardstick, budget=budget)
            assert timing.of_yardstick is not None
            shares.append(timing.of_yardstick)
        return geometric_mean(shares)


if __name__ == "__main__":
    serve_worker(Worker)
