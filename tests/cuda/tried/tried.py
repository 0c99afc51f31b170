"""What the programs in Triton share: their kernels and data, the comparison of every form with the kernel as it is, and
the times, printed as tried.cuh prints them.

With TRITON_INTERPRET=1 nothing is timed, and data lie in the host's memory. With TRIED_ONCE each form only runs once,
for ncu; so do the forms whose names are the program's arguments, where there are any.
"""

import importlib.util
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
FLUSH_BYTES = 128 << 20  # more than twice an H100's L2
WARM, LAUNCHES, TURNS = 10, 50, 2
SETS = Path(__file__).resolve().parent.parent

Form = Callable[[], object]


def kernels(path: str) -> ModuleType:
    """The studies of a file, by its path in tests/cuda without suffix."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), SETS / f"{path}.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The studies' values, from -1 up to 1."""
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    return (torch.rand(*shape, device=DEVICE, generator=generator) * 2 - 1).to(dtype)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, device=DEVICE, dtype=dtype)


def small(full: int, few: int) -> int:
    """A size: of the study, or for the interpreter."""
    return few if INTERPRETED else full


def _difference(own: torch.Tensor, right: torch.Tensor) -> float:
    """The largest difference as a share of the largest value; infinite where one is not a number."""
    off = (own.double() - right.double()).abs().max().item() / max(right.double().abs().max().item(), 1e-30)
    return off if off == off else float("inf")


def _median_us(form: Form, prepare: Form, flush: torch.Tensor) -> float:
    times = []
    for launch in range(WARM + LAUNCHES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        prepare()
        flush.zero_()
        torch.cuda._sleep(100_000)  # the host is ahead, so that no gap between launches is timed
        begin.record()
        form()
        end.record()
        end.synchronize()
        if launch >= WARM:
            times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def judge(forms: dict[str, Form], outputs: Sequence[torch.Tensor], prepare: Form = lambda: None) -> None:
    """Compare all forms with the first, the kernel as it is, then time each in turns, with a cold L2."""
    only = sys.argv[1:]
    if only or os.environ.get("TRIED_ONCE"):
        if unknown := set(only) - set(forms):
            print(
                f"no form is named {', '.join(sorted(unknown))}; there are: {', '.join(forms)}",
                file=sys.stderr,
            )
            sys.exit(2)
        for name in only or forms:
            prepare()
            forms[name]()
        torch.cuda.synchronize()
        sys.exit()
    right: list[torch.Tensor] = []
    differences = []
    for form in forms.values():
        for output in outputs:
            output.fill_(float("nan") if output.is_floating_point() else 99)
        prepare()
        form()
        right = right or [output.clone() for output in outputs]
        differences.append(max(_difference(own, old) for own, old in zip(outputs, right, strict=True)))
    if INTERPRETED:
        print(dict(zip(forms, differences, strict=True)))
        sys.exit()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=DEVICE)
    for _ in range(TURNS):
        for (name, form), difference in zip(forms.items(), differences, strict=True):
            print(f"STMT {name} {_median_us(form, prepare, flush):.3f} {difference:.3g}")
