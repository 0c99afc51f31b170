"""Occupancy in the terminal: the table of answers, the reasoning under it, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gemmprof.analysis.occupancy.advice import suggest
from gemmprof.analysis.occupancy.calculator import Occupancy
from gemmprof.analysis.occupancy.reasoning import (
    RESOURCE_WORDS,
    conclusion,
    count,
    explain_together,
    in_words,
    limited_by,
)
from gemmprof.base.errors import OccupancyError
from gemmprof.base.printable import visible
from gemmprof.gpu.arch import PRODUCTS, Product
from gemmprof.reports.formatting import DASH

if TYPE_CHECKING:
    from gemmprof.analysis.occupancy.configurations import BuiltKernel
    from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
    from gemmprof.model import KernelProfile, NotCollected

Answer = tuple[Product, Occupancy | OccupancyError]


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table without lines; the columns named in ``right`` are aligned there."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=column in right)
    return table


def _style(answer: Occupancy) -> str:
    if answer.blocks_per_sm == 0:
        return "red"
    return "green" if answer.theoretical_occupancy == 1 else ""


def _label(target: Product) -> str:
    return ".".join(map(str, target.compute_capability))


def _examples(target: Product) -> str:
    """The GPU's name, or two products of its architecture."""
    if target.name:
        return target.name
    return ", ".join([p.name for p in PRODUCTS if p.compute_capability == target.compute_capability][:2])


def _together(labels: Sequence[str], everyone: Sequence[str]) -> str:
    """Labels as a list, ``all`` where it is everyone."""
    return "all" if len(labels) == len(everyone) > 1 else ", ".join(labels)


def print_answers(console: Console, answers: Sequence[Answer]) -> None:
    """The answers for one configuration on several GPUs."""
    solved = [(target, answer) for target, answer in answers if isinstance(answer, Occupancy)]
    first = solved[0][1]
    console.print(_configuration(first))
    console.print()
    show_gpu = any(target.sm_count for target, _ in answers)
    columns = [
        "",
        "GPU",
        "Blocks/SM",
        "Warps/SM",
        "Occupancy",
        *(["Blocks/GPU"] if show_gpu else []),
        "Limited by",
    ]
    table = _table(*columns, right=("Blocks/SM", "Warps/SM", "Occupancy", "Blocks/GPU"))
    for target, answer in answers:
        name = Text(visible(_examples(target)))
        if isinstance(answer, OccupancyError):
            blank = [DASH] * (4 if show_gpu else 3)
            table.add_row(_label(target), name, *blank, Text(answer.message, style="red"))
            continue
        cells = [
            str(answer.blocks_per_sm),
            f"{answer.active_warps_per_sm} of {answer.limits.max_warps_per_sm}",
            f"{100 * answer.theoretical_occupancy:.1f} %",
        ]
        if show_gpu:
            cells.append(f"{answer.max_active_blocks(target.sm_count):,}" if target.sm_count else DASH)
        table.add_row(_label(target), name, *cells, limited_by(answer), style=_style(answer))
    console.print(table)
    _print_reasoning(console, [answer for _, answer in solved])
    _print_clusters(console, solved)
    _print_suggestions(console, [answer for _, answer in solved])


def _configuration(answer: Occupancy) -> str:
    parts = [
        count(answer.threads_per_block, "thread") + " per block",
        count(answer.registers_per_thread, "register") + " per thread",
        count(answer.shared_memory_per_block, "byte") + " of shared memory per block",
    ]
    if answer.block_barriers != 1:
        parts.append(count(answer.block_barriers, "barrier") + " per block")
    if answer.cluster_size > 1:
        parts.append(f"clusters of {answer.cluster_size}")
    return ", ".join(parts)


def _print_reasoning(console: Console, answers: Sequence[Occupancy]) -> None:
    distinct = list({answer.limits.compute_capability: answer for answer in answers}.values())
    everyone = [answer.limits.label for answer in distinct]
    console.print("\nWhy", style="bold")
    table = _table("", "", "")
    table.show_header = False
    last = ""
    for shared in explain_together(distinct):
        step = shared.step
        name = RESOURCE_WORDS[step.resource] if step.resource != last else ""
        last = step.resource
        where = _together(shared.architectures, everyone) if len(everyone) > 1 else ""
        style = "bold" if step.binding else ""
        table.add_row(Text(name), Text(step.text, style=style), Text(where, style="dim"))
    endings: dict[str, list[str]] = {}
    for answer in distinct:
        endings.setdefault(conclusion(answer), []).append(answer.limits.label)
    for text, cards in endings.items():
        where = _together(cards, everyone) if len(everyone) > 1 else ""
        table.add_row(Text("so" if text == next(iter(endings)) else ""), Text(text), Text(where, style="dim"))
    console.print(table)


def _print_clusters(console: Console, answers: Iterable[tuple[Product, Occupancy]]) -> None:
    """The bound on clusters, with what it leaves out."""
    for target, answer in answers:
        if answer.cluster_size == 1 or target.sm_count is None:
            continue
        bound = answer.max_active_clusters(target.sm_count)
        console.print(
            f"\nAt most {count(bound, 'cluster')} of {answer.cluster_size} blocks run at once on {target.sm_count} SMs "
            f"({visible(target.name)}). A cluster stays within one GPC, and how many SMs a GPC has differs from GPU to "
            "GPU: cudaOccupancyMaxActiveClusters gives the exact number on the device."
        )


def _print_suggestions(console: Console, answers: Sequence[Occupancy]) -> None:
    distinct = list({answer.limits.compute_capability: answer for answer in answers}.values())
    everyone = [answer.limits.label for answer in distinct]
    found: dict[str, list[str]] = {}
    for answer in distinct:
        for suggestion in suggest(answer):
            found.setdefault(str(suggestion), []).append(answer.limits.label)
    if all(answer.theoretical_occupancy == 1 for answer in distinct):
        return
    console.print("\nWhat would help", style="bold")
    if not found:
        console.print("No smaller block, register count or shared memory raises it.")
        return
    table = _table("", "")
    table.show_header = False
    for text, cards in found.items():
        table.add_row(Text(text), Text(_together(cards, everyone) if len(everyone) > 1 else "", style="dim"))
    console.print(table)


def print_build(console: Console, kernels: Sequence[BuiltKernel], threads: int) -> None:
    """Every kernel of a build at one block size, with its warning."""
    from gemmprof.analysis.inputs.names import labels
    from gemmprof.gpu.ptxas import demangle

    console.print(f"{count(threads, 'thread')} per block\n")
    table = _table(
        "Kernel", "Target", "Registers", "Static smem", "Blocks/SM", "Occupancy", "Limited by", "",
        right=("Registers", "Static smem", "Blocks/SM", "Occupancy"),
    )  # fmt: skip
    names = demangle([kernel.resources.name for kernel in kernels])
    told = labels(names)
    for kernel, name in zip(kernels, names, strict=True):
        resources, answer = kernel.resources, kernel.occupancy
        cells = [DASH, DASH, DASH]
        if answer is not None:
            cells = [
                str(answer.blocks_per_sm),
                f"{100 * answer.theoretical_occupancy:.1f} %",
                "nothing" if answer.theoretical_occupancy == 1 else limited_by(answer),
            ]
        table.add_row(
            Text(visible(told[name])),
            visible(resources.architecture),
            str(resources.registers_per_thread),
            f"{resources.static_shared_memory:,}",
            *cells,
            Text(kernel.problem or resources.warning, style="red" if kernel.problem else "yellow"),
        )
    console.print(table)


def print_launches(
    console: Console, launches: Sequence[tuple[KernelProfile, LaunchOccupancy | NotCollected]]
) -> None:
    """Theoretical beside achieved occupancy of every launch, and where the difference went."""
    # Late: an answer from numbers alone knows no launch, and what describes launches takes its time to load.
    from gemmprof.analysis.inputs.names import labels
    from gemmprof.model import NotCollected

    told = labels(profile.name for profile, _ in launches)
    for profile, result in launches:
        title = Text(visible(told[profile.name]), style="bold")
        title.append(
            f"  {profile.device.name}, {profile.launch.blocks:,} × {profile.launch.threads_per_block:,}",
            "dim",
        )
        console.print(title)
        if isinstance(result, NotCollected):
            console.print(f"  occupancy was {result}\n")
            continue
        why = (
            f"limited by {in_words(result.limited_by)}"
            if result.limits_theoretical
            else "every warp slot can be taken"
        )
        limits = ", ".join(f"{RESOURCE_WORDS[item.resource]} {item.blocks}" for item in result.block_limits)
        console.print(f"  theoretical {_percent(result.theoretical_percent)}  {why}  (blocks: {limits})")
        console.print(f"  achieved    {_percent(result.achieved_percent)}  {_waves(result)}")
        for loss in result.losses:
            console.print(f"  {-loss.points:+6.1f}  {loss.kind}: {loss.text}")
        for suggestion in result.suggestions:
            console.print(f"  would help: {suggestion}")
        console.print()


def _percent(value: float | None) -> str:
    return f"{DASH:>8}" if value is None else f"{value:6.2f} %"


def _waves(result: LaunchOccupancy) -> str:
    if result.waves is None or result.wave_blocks is None:
        return ""
    return f"{result.waves:.2f} waves of {result.wave_blocks:,} blocks"
