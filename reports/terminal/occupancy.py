"""Occupancy in the terminal: the table of answers, the reasoning under it, and what would help."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from gemmprof.analysis.occupancy import calculator
from gemmprof.analysis.occupancy.calculator import Occupancy
from gemmprof.base.amounts import DASH, counted, dimensions
from gemmprof.base.errors import OccupancyError
from gemmprof.base.printable import visible
from gemmprof.base.spread import grouped
from gemmprof.gpu.arch import PRODUCTS, Product

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from gemmprof.analysis.occupancy.configurations import BuiltKernel
    from gemmprof.analysis.session import Session

Answer = tuple[Product, Occupancy | OccupancyError]
Row = list[str | tuple[str, str]]


def _table(rows: Sequence[Row], *, right: Collection[int] = ()) -> Table:
    """Rows of texts, some with their style, without lines; ``right``: columns of numbers, never wrapped."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2), pad_edge=False)
    for column in range(len(rows[0])):
        table.add_column(justify="right" if column in right else "left", no_wrap=column in right)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else Text(*cell) for cell in row))
    return table


def answer_parts(answers: Sequence[Answer]) -> Iterator[RenderableType]:
    """The answers for one configuration on several GPUs."""
    solved = [(target, answer) for target, answer in answers if isinstance(answer, Occupancy)]
    first = solved[0][1]
    parts = [first.configuration]
    if first.block_barriers != 1:
        parts.append(counted(first.block_barriers, "barrier") + " per block")
    if first.cluster_size > 1:
        parts.append(f"clusters of {first.cluster_size}")
    yield ", ".join(parts)
    yield ""
    on_gpu = any(target.sm_count for target, _ in answers)
    numbers = ["Blocks/SM", "Warps/SM", "Occupancy", *["Blocks/GPU"] * on_gpu]
    rows: list[Row] = [[(head, "bold") for head in ("", "GPU", *numbers, "Limited by")]]
    for target, answer in answers:
        capability = target.compute_capability
        alike = [product.name for product in PRODUCTS if product.compute_capability == capability]
        head = (".".join(map(str, capability)), visible(target.name or ", ".join(alike[:2])))
        if isinstance(answer, OccupancyError):
            rows.append([*head, *[DASH] * len(numbers), (answer.message, "red")])
            continue
        warps = f"{answer.active_warps_per_sm} of {answer.limits.max_warps_per_sm}"
        cells = [str(answer.blocks_per_sm), warps, f"{answer.theoretical_percent:.1f} %"]
        if on_gpu:
            cells.append(f"{answer.max_active_blocks(target.sm_count):,}" if target.sm_count else DASH)
        full = "green" if answer.theoretical_occupancy == 1 else ""
        style = "red" if answer.blocks_per_sm == 0 else full
        rows.append([(cell, style) for cell in (*head, *cells, calculator.limited_by(answer))])
    yield _table(rows, right=range(2, 2 + len(numbers)))
    distinct = list({answer.limits.compute_capability: answer for _, answer in solved}.values())
    yield from _reasoning(distinct)
    for target, answer in solved:
        if answer.cluster_size > 1 and target.sm_count is not None:
            bound = counted(answer.max_active_clusters(target.sm_count), "cluster")
            yield (
                f"\nAt most {bound} of {answer.cluster_size} blocks run at once on {target.sm_count} SMs "
                f"({visible(target.name)}). A cluster stays within one GPC, and how many SMs a GPC has differs from "
                "GPU to GPU: cudaOccupancyMaxActiveClusters gives the exact number on the device."
            )
    yield from _suggestions(distinct)


def _where(labels: Sequence[str], answers: Sequence[Occupancy]) -> tuple[str, str]:
    """On which of several architectures, ``all`` where it is all; nothing where there is but one."""
    several = "all" if len(labels) == len(answers) else ", ".join(labels)
    return several if len(answers) > 1 else "", "dim"


def _reasoning(answers: Sequence[Occupancy]) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text("\nWhy", style="bold")
    rows: list[Row] = []
    last = ""
    for step, labels in calculator.explain_together(answers).items():
        name = calculator.RESOURCE_WORDS[step.resource] if step.resource != last else ""
        last = step.resource
        rows.append([name, (step.text, "bold" if step.binding else ""), _where(labels, answers)])
    endings = grouped((calculator.conclusion(answer), answer.limits.label) for answer in answers)
    for text, labels in endings.items():
        rows.append(["so" if text == next(iter(endings)) else "", text, _where(labels, answers)])
    yield _table(rows)


def _suggestions(answers: Sequence[Occupancy]) -> Iterator[RenderableType]:
    from rich.text import Text

    if all(answer.theoretical_occupancy == 1 for answer in answers):
        return
    found = grouped(
        (str(one), answer.limits.label) for answer in answers for one in calculator.suggest(answer)
    )
    yield Text("\nWhat would help", style="bold")
    rows: list[Row] = [[text, _where(labels, answers)] for text, labels in found.items()]
    yield _table(rows) if rows else "No smaller block, register count or shared memory raises it."


def build_parts(kernels: Sequence[BuiltKernel], threads: int) -> Iterator[RenderableType]:
    """Every kernel of a build at one block size, with its warning."""
    from gemmprof.analysis.inputs.names import labels
    from gemmprof.gpu.devices import demangle

    yield f"{counted(threads, 'thread')} per block\n"
    heads = ("Kernel", "Target", "Registers", "Static smem", "Blocks/SM", "Occupancy", "Limited by", "")
    rows: list[Row] = [[(head, "bold") for head in heads]]
    names = demangle([kernel.resources.name for kernel in kernels])
    told = labels(names)
    for kernel, name in zip(kernels, names, strict=True):
        resources, answer = kernel.resources, kernel.occupancy
        cells = [DASH, DASH, DASH]
        if answer is not None:
            share = f"{answer.theoretical_percent:.1f} %"
            cells = [str(answer.blocks_per_sm), share, calculator.limited_by(answer)]
        built = [str(resources.registers_per_thread), f"{resources.static_shared_memory:,}"]
        warning = kernel.problem or resources.warning, "red" if kernel.problem else "yellow"
        rows.append([visible(told[name]), visible(resources.architecture), *built, *cells, warning])
    yield _table(rows, right=range(2, 6))


def launch_parts(session: Session, width: int) -> Iterator[RenderableType]:
    """Theoretical beside achieved occupancy of each family's longest launch, the family with most time first, and where
    the difference went, as `show` says it.
    """
    # Late: an answer from numbers alone knows no launch, and what describes launches takes its time to load.
    from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
    from gemmprof.reports.terminal.section_tables import ALL_ROWS, rows, rows_table

    for family in session.by_time:
        kernel = session.kernels[family.representative]
        profile, result = kernel.profile, kernel.get(LaunchOccupancy)
        sizes = [dimensions(of) for of in (profile.launch.grid, profile.launch.block) if any(of)]
        launch = ", ".join(filter(None, (profile.device.name, " of ".join(sizes))))
        if family.count > 1:
            launch += f", the longest of {family.count:,} launches"
        yield _table([[(visible(f"{family.id} {family.title}"), "bold"), (launch, "dim")]])
        yield rows_table(rows(result, ALL_ROWS) or [(str(result), "", "")], width=width)
        yield ""
