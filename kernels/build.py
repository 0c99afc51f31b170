"""Builds the ladders as a torch extension.

Every stage is compiled by nvcc alone; one binding registers the operators. Objects are cached by content
(``compiler.py``), the library under the hash of its objects and of torch. So a second build compiles nothing, and
changing one stage compiles one file. Builds may run concurrently. Nothing here imports torch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmprof.base.documents import json_text
from gemmprof.base.errors import BuildError
from gemmprof.base.progress import SILENT, Progress
from gemmprof.base.system import cache_directory
from gemmprof.gpu.devices import KernelResources, Tool, TorchInstallation
from gemmprof.gpu.dtypes import ELEMENT_TYPES
from gemmprof.kernels import compiler
from gemmprof.kernels.catalog import all_variants
from gemmprof.kernels.compiler import Unit, digest, is_whole, main_kernels, new_entry
from gemmprof.kernels.parameters import Tuned, load_tuned, read_constraints
from gemmprof.model import Ladder
from gemmprof.model.ladder import Variant

LIBRARY_NAME = "libgemmprof.so"
RECORDS_NAME = "build.json"


@dataclass(frozen=True, slots=True)
class StageBuild:
    """What the compiler made of one variant of a stage."""

    name: str  # the operator's name
    source_hash: str  # hash of the source, its headers and its parameters (not of flags or compiler)
    parameters: Mapping[str, int]  # what it was compiled with: the catalog's, or those of `gemmprof tune`
    compiled: bool  # whether this build compiled it; False if the cache had it
    note: compiler.Compiled = field(repr=False)  # of its compiling, maybe by an earlier build

    def resources(self, architecture: str | None = None) -> KernelResources:
        """The stage's main kernel, of several tiles that with most registers; BuildError if ``sm_90`` was not built."""
        chosen = [k for k in self.note.kernels if architecture in (None, k.architecture.rstrip("af"))]
        if not chosen:
            raise BuildError(f"stage {self.name} was not built for {architecture}")
        return main_kernels(chosen)[0]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A built extension."""

    library: Path  # the shared library that ``load`` opens
    architectures: tuple[str, ...]  # targets that it holds code for, for example ``("sm_90",)``
    compiler: str  # nvcc's build line
    stages: Mapping[str, StageBuild]  # by operator name, in the order of the ladder
    # what this build compiled (operator names, and ``binding.cpp``), empty if all came from the cache
    compiled: tuple[str, ...]
    seconds: float  # wall time of this build
    log: str = field(default="", repr=False)  # the compiler's warnings, empty if nothing was compiled
    # the compiler's message for each variant that did not compile; the others are in the library
    failures: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)  # why not compiled for these targets, by name


def build(
    *,
    architectures: Sequence[str] | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress = SILENT,
    names: Sequence[str] | None = None,
    parameters: Mapping[str, Mapping[str, int]] | None = None,
    ladders: Sequence[Ladder] | None = None,
) -> BuildResult:
    """Build the extension, or find it in the cache.

    Args:
        architectures: compute capabilities (``9.0``); the GPUs of this machine if None, 9.0 if it has none.
        jobs: compilers at a time; the number of cores if None.
        force: compile everything again.
        names: operator names to build; all of them if None.
        parameters: tile parameters by operator name, in place of the catalog's. If None, those that
            `gemmprof tune` found for the one architecture that is built for.
        ladders: whose stages to build; the catalog's if None.

    Raises:
        BuildError: no compiler, no torch, or (where nothing compiles) the compiler's own message.
    """
    started = time.perf_counter()
    nvcc, torch = compiler.require_nvcc(), compiler.require_torch()
    cache = cache_directory()
    targets = architectures or compiler.present_architectures() or (compiler.DEFAULT_ARCHITECTURE,)
    numbers = tuple(dict.fromkeys(compiler.architecture_number(target) for target in targets))
    if parameters is None:
        parameters = tuned_parameters(cache, numbers)
    variants = with_parameters(all_variants(ladders), parameters)
    if names is not None:
        variants = tuple(variant for variant in variants if variant.name in names)
    skipped = {
        v.name: reason for v in variants if (reason := compiler.why_skipped(v.stage.architectures, numbers))
    }
    variants = tuple(variant for variant in variants if variant.name not in skipped)
    plan = _Plan(variants, nvcc, torch, numbers, cache)
    compiled: tuple[str, ...] = ()
    log, errors = "", dict[str, BuildError]()
    if force or not is_whole(plan.library.parent):
        with compiler.locked(cache):
            plan, compiled, log, errors = plan.made(force, jobs or os.cpu_count() or 1, progress)
    notes = compiler.read_note(plan.library.parent / RECORDS_NAME, dict[str, compiler.Compiled])
    if lacking := [variant.name for variant in plan.variants if variant.name not in notes]:
        lacks = f"the note of the build in {plan.library.parent} lacks {lacking[0]}"
        raise BuildError(lacks, "remove that folder; it is made again")
    stages = {}
    for v in plan.variants:
        made_from, parameters_of = plan.units[v.name][0].source_hash, dict(v.parameters)
        stages[v.name] = StageBuild(v.name, made_from, parameters_of, v.name in compiled, notes[v.name])
    return BuildResult(
        library=plan.library,
        architectures=tuple(f"sm_{number}" for number in numbers),
        compiler=nvcc.banner,
        stages=stages,
        compiled=compiled,
        seconds=time.perf_counter() - started,
        log=log,
        failures={name: str(error) for name, error in errors.items()},
        skipped=skipped,
    )


class _Plan:
    """What a library is made of, and where it will lie.

    Attributes:
        units: the compiler calls of each file without kernels and of each variant, by name, as they start.
    """

    def __init__(
        self,
        variants: tuple[Variant, ...],
        nvcc: Tool,
        torch: TorchInstallation,
        numbers: tuple[str, ...],
        cache: Path,
    ) -> None:
        self.variants = variants
        self._nvcc, self._torch, self._numbers, self._cache = nvcc, torch, numbers, cache
        # The types as the binding takes them: a bit each, counted as `gemmprof::Dtype` counts.
        masks = {v.name: sum(1 << ELEMENT_TYPES[dtype].code for dtype in v.stage.dtypes) for v in variants}
        stage_list = "".join(f"GEMMPROF_STAGE({name}, {mask})\n" for name, mask in masks.items())
        self._headers = {"stages.inc": stage_list}
        places = ("include", "include/torch/csrc/api/include")
        includes = [f"-isystem={torch.root / place}" for place in places]
        binding = compiler.host_unit("include/binding.cpp", nvcc, includes, [stage_list, torch.version_file])
        hosts = (binding, compiler.host_unit("include/runtime.cu", nvcc))
        stages = {v.name: compiler.stage_units(v, nvcc, numbers) for v in variants}
        # The longest calls first, so that none is left alone at the end: the binding, then stages by their source,
        # which parts divide (of 16 a part takes half as long as the whole of a stage with two thirds of the source).
        longest_first = sorted(stages.items(), key=lambda item: -item[1][0].length / (7 + len(item[1])))
        self.units: dict[str, tuple[Unit, ...]] = {unit.name: (unit,) for unit in hosts} | dict(longest_first)
        self._all = tuple(unit for calls in self.units.values() for unit in calls)
        key = digest([unit.key for unit in self._all], str(torch.root), torch.version_file)
        self.library = cache / "libraries" / key / LIBRARY_NAME

    def made(
        self, force: bool, jobs: int, progress: Progress
    ) -> tuple[_Plan, tuple[str, ...], str, dict[str, BuildError]]:
        """Compile what is missing and link. A stage that does not compile is left out, and so never costs the others.

        Returned are the plan whose library exists, what was compiled for it, the compiler's warnings, and what failed.
        """
        missing = [unit for unit in self._all if force or not compiler.is_compiled(self._cache, unit)]
        if not missing and is_whole(self.library.parent):
            return self, (), "", {}
        log, errors = compiler.compile_units(self._cache, missing, jobs, progress, self._headers)
        plan = self
        if errors:
            good = tuple(variant for variant in self.variants if variant.name not in errors)
            if not good or set(errors) - {variant.name for variant in self.variants}:
                raise next(iter(errors.values()))
            plan = _Plan(good, self._nvcc, self._torch, self._numbers, self._cache)
            rest = [unit for unit in plan._all if not compiler.is_compiled(self._cache, unit)]
            _, later = compiler.compile_units(self._cache, rest, jobs, progress, plan._headers)
            if later:
                raise next(iter(later.values()))
        plan._link()
        return plan, tuple(dict.fromkeys(u.name for u in missing if u.name not in errors)), log, errors

    def _link(self) -> None:
        """Link the objects, and note beside the library what its stages are made of."""
        with new_entry(self.library.parent) as folder:
            notes = {name: compiler.read_record(self._cache, calls) for name, calls in self.units.items()}
            (folder / RECORDS_NAME).write_text(json_text(notes, 1), encoding="utf-8")
            torch = (f"-L{self._torch.root / 'lib'}", "-ltorch_cpu", "-ltorch", "-lc10")
            library = folder / LIBRARY_NAME
            compiler.link(self._cache, self._nvcc, self._all, library, LIBRARY_NAME, *torch)


def with_parameters(
    variants: Sequence[Variant], parameters: Mapping[str, Mapping[str, int]]
) -> tuple[Variant, ...]:
    """The variants with some parameters replaced; BuildError for a name that no ladder has, or a letter no stage."""
    names = {variant.name: variant for variant in variants}
    for name, values in parameters.items():
        if name not in names or set(values) - set(names[name].parameters):
            raise BuildError(f"no stage {name} with parameters {', '.join(values)}")
    return tuple(replace(v, parameters={**v.parameters, **parameters.get(v.name, {})}) for v in variants)


def tuned_parameters(cache: Path, numbers: Sequence[str]) -> dict[str, Mapping[str, int]]:
    """Winners of earlier searches that still fit the sources; none where several architectures share a build."""
    if len(numbers) != 1:
        return {}
    winners = load_tuned(cache)
    found: dict[str, Mapping[str, int]] = {}
    for variant in all_variants():
        winner = winners.get((variant.name, f"sm_{numbers[0]}"))
        if winner is not None and winner.source == compiler.code_hash(variant) and _fits(variant, winner):
            found[variant.name] = winner.parameters
    return found


def _fits(variant: Variant, winner: Tuned) -> bool:
    """Whether a winner names just the variant's letters, with values that its source allows."""
    if set(winner.parameters) != set(variant.parameters):
        return False
    return read_constraints(compiler.SOURCES / variant.source).violation(winner.parameters) is None
