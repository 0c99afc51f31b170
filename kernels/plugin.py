"""A user's own GEMMs beside the ladder: functions on tensors from a Python file, whatever they launch.

The file is read here without running it, so that a collection can be planned on any machine; the programs that verify,
time and profile import it when they first call one of its functions. What counts: the names in a list ``GEMMS`` at the
top of the file, else every public function with ``gemm`` or ``matmul`` in its name. A function takes

* ``(a, b, out)``: write A B into ``out``. Scaling is added around it where it is verified;
* ``(a, b, out, alpha, beta)``: write alpha A B + beta C into ``out`` (which holds C);
* ``(a, b)``: return A B. It is copied into the result, and the copy is timed and profiled with it.

``DTYPES = ("bfloat16",)`` at the top restricts the operand types; without it, 8-bit ones are left out, whose B is
stored transposed and which a plain product does not take. The first line of the docstring becomes the stage's idea.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import hash_file, read_text
from gemmprof.gpu.dtypes import DTYPES, ELEMENT_TYPES
from gemmprof.kernels import catalog, operators
from gemmprof.model import Stage

if TYPE_CHECKING:
    from torch import Tensor

PLUGIN_VARIABLE = "GEMMPROF_PLUGIN"  # names the file to the helper programs of a collection
FIRST_NUMBER = 100  # number of the first plugged-in stage in its ladder
_FORMS = (2, 3, 5)
_USUAL = tuple(name for name, element in ELEMENT_TYPES.items() if not element.k_major)
_sources: dict[str, Path] = {}


def install(file: Path) -> tuple[Stage, ...]:
    """Put the functions of a file into the ladders, as stages from `FIRST_NUMBER` on, and tell the helper programs.

    One for each function and ladder whose types it takes. UsageError if the file cannot be read, or holds none.
    """
    path = file.resolve()
    declared = list(_declared(path))
    ladders, added = [], []
    for ladder in catalog.LADDERS:
        kept = [stage for stage in ladder.stages if stage.number < FIRST_NUMBER]
        mine = [
            replace(stage, number=number, ladder=ladder.name, dtypes=types)
            for number, (stage, _) in enumerate(declared, FIRST_NUMBER)
            if (types := tuple(name for name in ladder.dtypes if name in stage.dtypes))
        ]
        added += mine
        ladders.append(replace(ladder, stages=(*kept, *mine)))
    own = {s.name for ladder in catalog.LADDERS for s in ladder.stages if s.number < FIRST_NUMBER}
    for stage, parameters in declared:
        if stage.name in own:
            raise UsageError(f"{file}: the ladder has a stage {stage.name} already", "rename the function")
        operators.LIBRARY_CALLS[stage.name] = _adapter(path, stage.name, parameters)
        _sources[stage.name] = path
    catalog.LADDERS = tuple(ladders)
    os.environ[PLUGIN_VARIABLE] = str(path)
    return tuple(added)


def install_named() -> None:
    """Install the file that `PLUGIN_VARIABLE` names, if any: what a helper program does first."""
    if named := os.environ.get(PLUGIN_VARIABLE):
        install(Path(named))


def source_hash(stage: Stage) -> str:
    """Hash of the file that a plugged-in stage comes from, '' for others: results of a changed file are not mixed."""
    path = _sources.get(stage.name)
    return "" if path is None else hash_file(path)[0]


def _declared(path: Path) -> Iterator[tuple[Stage, int]]:
    """The stages that a file declares, each with the number of its function's parameters."""
    try:
        tree = ast.parse(read_text(path), str(path))
    except (OSError, ValueError) as error:
        fix = "name a Python file with a function (a, b, out) whose name holds gemm or matmul"
        raise UsageError(f"{path} cannot be read as a plug-in", fix, found=str(error)) from error
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno} is no Python", found=error.msg) from error
    named, dtypes = _list(tree, "GEMMS"), _list(tree, "DTYPES")
    if wrong := [name for name in dtypes or () if name not in DTYPES]:
        raise UsageError(f"{path}: DTYPES names '{wrong[0]}'", f"use some of {', '.join(DTYPES)}")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    chosen = named if named is not None else [
        name for name in functions if not name.startswith("_") and ("gemm" in name or "matmul" in name)
        and not functions[name].decorator_list
    ]  # fmt: skip
    if missing := [name for name in chosen if name not in functions]:
        there = f"functions: {', '.join(functions) or 'none'}"
        raise UsageError(f"{path}: GEMMS names '{missing[0]}'", found=there)
    if not chosen:
        what = f"{path} holds no GEMM"
        fixes = "write def my_gemm(a, b, out): …", 'or name the functions: GEMMS = ["name"]'
        raise UsageError(what, *fixes, found=f"functions: {', '.join(functions) or 'none'}")
    for name in chosen:
        parameters = len(functions[name].args.args)
        if parameters not in _FORMS:
            fix = "take (a, b, out), (a, b, out, alpha, beta), or (a, b) and return the product"
            raise UsageError(f"{path}:{functions[name].lineno}: {name} takes {parameters} parameters", fix)
        text = (ast.get_docstring(functions[name]) or f"{name} of {path.name}.").splitlines()[0]
        stage = Stage(FIRST_NUMBER, name, name.replace("_", " "), text, dtypes=tuple(dtypes or _USUAL))
        yield stage, parameters


def _list(tree: ast.Module, name: str) -> list[str] | None:
    """The list of texts that a file assigns to a name, None if it assigns none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == [name]:
            try:
                return [str(item) for item in ast.literal_eval(node.value)]
            except (ValueError, TypeError):
                raise UsageError(f"{name} in line {node.lineno} is no list of names") from None
    return None


def _adapter(
    path: Path, name: str, parameters: int
) -> Callable[[Tensor, Tensor, Tensor, float, float], None]:
    """The function in the form in which stages are run."""

    def run(a: Tensor, b: Tensor, out: Tensor, alpha: float, beta: float) -> None:
        import torch

        function = _loaded(path, name)
        plain = alpha == 1.0 and beta == 0.0
        if parameters == 5:
            function(a, b, out, alpha, beta)
        elif parameters == 3 and plain:
            function(a, b, out)
        elif parameters == 3:
            product = torch.empty_like(out)
            function(a, b, product)
            out.mul_(beta).add_(product, alpha=alpha)
        else:
            product = function(a, b)
            if not isinstance(product, torch.Tensor) or product.shape != out.shape:
                shape = tuple(getattr(product, "shape", ()))
                what = f"{type(product).__name__} {shape}, not a tensor {tuple(out.shape)}"
                raise ValueError(f"{name} returned {what}")
            if plain:
                out.copy_(product)
            else:
                out.mul_(beta).add_(product.to(out.dtype), alpha=alpha)

    return run


@cache
def _loaded(path: Path, name: str) -> Callable[..., Any]:
    """The function, from the file imported as a module of its own; its folder comes last on the path of imports."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = sys.modules.get(f"gemmprof_plugin_{path.stem}")
    if module is None:
        specification = spec_from_file_location(f"gemmprof_plugin_{path.stem}", path)
        if specification is None or specification.loader is None:
            raise UsageError(f"{path} is no Python file", "name a file that ends in .py")
        module = module_from_spec(specification)
        sys.modules[module.__name__] = module
        specification.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, name)
    return function
