"""The GPU side of a collection, which verifies or times one stage after another, and of a search, candidates.

It reads one JSON object a line and answers each with one (`gemmprof.children.line_worker`): first the settings, then
of a collection a part of a task a time, ``{"part": "verify" | "time", "stage": number, "problem": {…}}``, and of a
search candidates. An answer is ``verified``, ``timed`` or ``failed``; one that says ``spoiled`` comes from a CUDA
context that answers nothing any more. It is a process of its own because a faulty kernel ends the context, and often
the process, that ran it, and one that hangs can only be killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from gemmprof.base.errors import GemmprofError
from gemmprof.children.line_worker import Works, serve_worker
from gemmprof.kernels.catalog import ladder_of, stage_by_number
from gemmprof.kernels.operators import LoadedCandidate, run_stage
from gemmprof.kernels.plugin import install_named
from gemmprof.model import Problem
from gemmprof.profiler.measuring import Bench, launches, random_operands, verify, verify_stage

ODD_SHAPE = (193, 251, 97)  # a shape that divides by no tile, verified beside the ones to tune for
EARLY_BUDGET = 0.01  # seconds of the first look at a candidate on one problem


class OnGpu:
    """What both have: the GPU, and the ``seed`` of the operands among the settings."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        import torch

        if not torch.cuda.is_available():
            try:
                torch.cuda.init()
            except Exception as error:
                # torch raises RuntimeError, AssertionError (a build without CUDA) or its own classes here.
                raise RuntimeError(str(error).strip().splitlines()[0]) from None
            raise RuntimeError("torch.cuda.is_available() is false")
        install_named()
        self.seed, self.device = int(settings["seed"]), torch.device("cuda", 0)
        torch.cuda.init()

    def facts(self) -> dict[str, Any]:
        """What whoever has work done on a GPU wants to know of it first: its name, its compute capability (``9.0``)."""
        import torch

        found = torch.cuda.get_device_properties(self.device)
        return {"device": found.name, "architecture": f"{found.major}.{found.minor}"}


class Stages(OnGpu):
    """Verifies and times on one device; the settings have ``time_budget`` seconds a task."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._budget = float(settings["time_budget"])
        self._bench: Bench | None = None

    def do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Verify or time one stage on one problem."""
        import torch

        work = self._verify if request["part"] == "verify" else self._time
        try:
            return work(int(request["stage"]), Problem(**request["problem"]))
        except GemmprofError as error:
            return {"status": "failed", "detail": error.message, "spoiled": not self._context_lives()}
        except Exception as error:
            # Whatever a kernel, torch or CUDA raises is this task's failure, and the next task's turn.
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            detail = "; ".join(lines[:2]) or type(error).__name__
            return {"status": "failed", "detail": detail, "spoiled": not self._context_lives()}
        finally:
            if self._context_lives():
                torch.cuda.empty_cache()

    def _verify(self, number: int, problem: Problem) -> dict[str, Any]:
        stage = stage_by_number(number, problem.dtype)
        result = verify_stage(stage, problem, partial(run_stage, stage), seed=self.seed, device=self.device)
        return {"status": "verified", "verification": asdict(result)}

    def _time(self, number: int, problem: Problem) -> dict[str, Any]:
        ladder = ladder_of(problem.dtype)
        run = partial(launches, problem, seed=self.seed, device=self.device)
        yardstick = run(partial(run_stage, ladder.yardstick))
        if self._bench is None:
            self._bench = Bench(self.device)
        self._bench.ramp(yardstick)
        stage = ladder.stage(number)
        if stage.yardstick:
            timing = self._bench.time(yardstick, None, budget=self._budget)
        else:
            timing = self._bench.time(run(partial(run_stage, stage)), yardstick, budget=self._budget)
        return {"status": "timed", "timing": asdict(timing)}

    def _context_lives(self) -> bool:
        import torch

        try:
            torch.cuda.synchronize(self.device)
        except RuntimeError:
            return False
        return True


class Candidates(OnGpu):
    """Holds the operands and the yardstick between candidates."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
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


def worker_for(settings: Mapping[str, Any]) -> Works:
    """The worker that these settings are for."""
    return Candidates(settings) if "problems" in settings else Stages(settings)


if __name__ == "__main__":
    serve_worker(worker_for)
