"""What the recorded programs share: modules as NVTX ranges, turns on the GPU, times before and after a change.

A program is a module with ``VARIANTS`` (a name and the options of `build` for each) and ``build(device, **options)``,
which returns one step to call. Run by tools/record_programs.py, or by hand::

    python train.py measure [--device cpu] [--json FILE] [--traces FOLDER]   every variant in turn
    ncu --profile-from-start off --nvtx … python train.py profile base       one step of one variant
"""

from __future__ import annotations

import argparse
import fcntl
import gzip
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

Step = Callable[[], object]
Build = Callable[..., Step]
# Steps before anything is measured (compiled programs record their graphs in the first ones); turns of all variants,
# and steps of a turn: what drifts meets every variant alike.
WARM, ROUNDS, EACH = 3, 7, 5
LOCK = "GEMMPROF_PROGRAMS_LOCK"


@contextmanager
def turn(*, together: bool = False) -> Iterator[None]:
    """The GPU for this process alone among those that were given the same lock, or together with all who compile."""
    path = os.environ.get(LOCK)
    if not path:
        yield
        return
    with Path(path).open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_SH if together else fcntl.LOCK_EX)
        yield


def marked(name: str) -> Any:
    """An NVTX range, nothing without a GPU."""
    return torch.cuda.nvtx.range(name) if torch.cuda.is_available() else nullcontext()


def _opening(name: str) -> Callable[..., None]:
    """A hook; what a hook returns takes the place of a module's input or output, so that it must be nothing."""

    def hook(*_: object) -> None:
        torch.cuda.nvtx.range_push(name)

    return hook


def _closing(*_: object) -> None:
    torch.cuda.nvtx.range_pop()


def mark_modules(model: nn.Module, depth: int = 2) -> None:
    """Give each module down to this depth a range of its name around its forward pass, as profiling tools do."""
    if not torch.cuda.is_available():
        return
    for name, module in model.named_modules():
        if name and name.count(".") < depth:
            module.register_forward_pre_hook(_opening(name))
            module.register_forward_hook(_closing)


def compiled(build: Build, **how: Any) -> Build:
    """The same program through ``torch.compile``; the step itself is what it compiles."""

    def made(device: str, **options: Any) -> Step:
        return build(device, wrap=lambda model: torch.compile(model, **how), **options)

    return made


def captured(step: Step) -> Step:
    """A step as one CUDA graph; itself without a GPU."""
    if not torch.cuda.is_available():
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        step()

    def replay(keeps: Step = step) -> None:
        recorded.replay()  # it reads and writes what the step holds

    return replay


def variant(build: Build, inductor: bool = False, **options: Any) -> Build:
    """A program with these options, ``inductor``: through ``torch.compile``."""
    made = compiled(build) if inductor else build
    return lambda device: made(device, **options)


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds(step: Step, times: int) -> float:
    """Seconds a step, by CUDA events around several: the GPU's time with what it waits for the host."""
    if not torch.cuda.is_available():
        started = time.perf_counter()
        for _ in range(times):
            step()
        return (time.perf_counter() - started) / times
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / times


def kernels(step: Step, trace: Path | None) -> tuple[float, int]:
    """Seconds of a step's kernels one by one and how many there are, from torch's profiler; writes its trace."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True) as found:
        step()
        synchronize()
    path = Path(tempfile.gettempdir()) / f"trace-{os.getpid()}.json"
    found.export_chrome_trace(str(path))
    written = re.sub(rb'\s*"host_name": "[^"]*",', b"", path.read_bytes())
    path.unlink()
    if trace is not None:
        trace.with_name(trace.name + ".json.gz").write_bytes(gzip.compress(written, 9))
    times = [event["dur"] for event in json.loads(written)["traceEvents"] if event.get("cat") == "kernel"]
    return sum(times) / 1e6, len(times)


def measure(
    variants: Mapping[str, Build], device: str, traces: Path | None, name: str
) -> list[dict[str, Any]]:
    """Build all variants, then time them in turns; one that fails takes no other along."""
    steps: dict[str, Step] = {}
    found: dict[str, dict[str, Any]] = {}
    with turn(together=True):
        for variant, build in variants.items():
            torch.manual_seed(1)
            try:
                steps[variant] = build(device)
                for _ in range(WARM):
                    steps[variant]()
                synchronize()
            except Exception as error:
                steps.pop(variant, None)
                print(f"{name} {variant}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    with turn():
        times: dict[str, list[float]] = {variant: [] for variant in steps}
        for _ in range(ROUNDS):
            for variant, step in steps.items():
                step()
                times[variant].append(seconds(step, EACH))
        for variant, step in steps.items():
            trace = traces and traces / f"{name}_{variant}"
            busy, count = kernels(step, trace)
            found[variant] = {
                "program": name,
                "variant": variant,
                "wall_ns": 1e9 * statistics.median(times[variant]),
                "wall_spread": (max(times[variant]) - min(times[variant]))
                / statistics.median(times[variant]),
                "kernels_ns": 1e9 * busy,
                "launches": count,
            }
    return list(found.values())


def run_one(build: Build, device: str) -> None:
    """One step between profiler start and stop, after the warm-up."""
    torch.manual_seed(1)
    with turn(together=True):
        step = build(device)
        for _ in range(WARM):
            step()
        synchronize()
    with turn():
        if torch.cuda.is_available():
            torch.cuda.profiler.start()
        with marked("step"):
            step()
        synchronize()
        if torch.cuda.is_available():
            torch.cuda.profiler.stop()


def main(name: str, variants: Mapping[str, Build]) -> None:
    """The command line of a program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("measure", "profile"))
    parser.add_argument("variant", nargs="?", default="base", choices=list(variants))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(variants), help="measure these alone")
    options = parser.parse_args()
    if options.what == "profile":
        run_one(variants[options.variant], options.device)
        return
    chosen = {key: build for key, build in variants.items() if not options.only or key in options.only}
    found = measure(chosen, options.device, options.traces, name)
    text = json.dumps(found, indent=1)
    (options.json.write_text(text, encoding="utf-8") if options.json else print(text))
