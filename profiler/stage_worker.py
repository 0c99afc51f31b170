"""The GPU side of a collection: verifies or times one stage after another, as the collection asks.

It reads one JSON object a line and answers each with one (`gemmprof.children.line_worker`): first the settings, then
a part of a task a time, ``{"part": "verify" | "time", "stage": number, "problem": {…}}``. An answer is ``verified``,
``timed`` or ``failed``; one that says ``spoiled`` comes from a CUDA context that answers nothing any more. It is a
process of its own because a faulty kernel ends the context, and often the process, that ran it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from gemmprof.base.errors import GemmprofError
from gemmprof.children.line_worker import serve_worker
from gemmprof.kernels.catalog import ladder_of, stage_by_number
from gemmprof.kernels.plugin import install_named
from gemmprof.model import Problem
from gemmprof.profiler.measuring import Bench, facts_of, launches, verify_stage


class Worker:
    """Verifies and times on one device; the settings have the operands' ``seed`` and ``time_budget`` seconds a task."""

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
        self._seed = int(settings["seed"])
        self._budget = float(settings["time_budget"])
        self._device = torch.device("cuda", 0)
        self._bench: Bench | None = None
        torch.cuda.init()

    def facts(self) -> dict[str, Any]:
        """What the collection may want to know of the GPU."""
        return facts_of(self._device)

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
        from gemmprof.kernels.operators import run_stage

        stage = stage_by_number(number, problem.dtype)
        result = verify_stage(stage, problem, partial(run_stage, stage), seed=self._seed, device=self._device)
        return {"status": "verified", "verification": asdict(result)}

    def _time(self, number: int, problem: Problem) -> dict[str, Any]:
        from gemmprof.kernels.operators import run_stage

        ladder = ladder_of(problem.dtype)
        run = partial(launches, problem, seed=self._seed, device=self._device)
        yardstick = run(partial(run_stage, ladder.yardstick))
        if self._bench is None:
            self._bench = Bench(self._device)
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
            torch.cuda.synchronize(self._device)
        except RuntimeError:
            return False
        return True


if __name__ == "__main__":
    serve_worker(Worker)
