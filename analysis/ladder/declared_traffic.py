"""The traffic model: what a GEMM stage must load at every level, from its tile sizes, beside what was measured.

How many elements a stage loads for an output from global and from shared memory follows from the addresses that it
declares (`gemmprof.base.expressions`), and so do the bytes.

Bytes: a thread asks shared memory for the bytes of its elements; L1 moves the 32-byte sectors that warps touch; L2 must
deliver the rows of A and columns of B that a block needs once a block, K/BM + K/BN elements an output; device memory
must deliver A and B once and take C once. Where caches work across
blocks the measured figure is below the model, where a level is too small to keep what is used again it is above.

Tensor copies (TMA) count as elements loaded from global memory, but no warp loads them: they touch no sector of L1.
What they moved is measured as the copies that were executed times the size of their boxes. What wgmma reads of its
operands in shared memory is no thread's load either: it has a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gemmprof.analysis import opcodes
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.ladder.access_pattern import AccessPatterns, TensorCopy, WarpAccess
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.coalescing import Coalescing
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.memory_chart import SECTOR_BYTES, WAVEFRONT_BYTES, MemoryChart
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.base.expressions import Access, Addresses, ExpressionError, evaluate
from gemmprof.base.foreign_files import facts
from gemmprof.gpu.arch import WARP
from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32
from gemmprof.model import Problem, Stage

# --- What a stage declares --------------------------------------------------------------------------------------------
# Coordinates are those of warp 0 in block (0, 0) at the first step along K; other warps and steps shift them by whole
# rows or tiles, which changes no pattern. The declaration may come from anybody's run: what has no value gives no
# model.

_SPACES = {"global": "global memory", "shared": "shared memory"}
WIDEST = 16  # bytes that a thread moves at most with one instruction
MOST = 64  # accesses, copies and shorthands of a stage


def access_patterns(stage: Stage, problem: Problem) -> AccessPatterns | None:
    """The access patterns of a stage on a problem; None where it declares none, or none that fit its parameters."""
    if stage.addresses is None:
        return None
    try:
        return _Model(stage, stage.addresses, problem).patterns()
    except (ExpressionError, TypeError, AttributeError, KeyError):
        # A run of another version, or one that somebody changed: texts that do not fit the parameters.
        return None


def _positive(text: str, names: Mapping[str, int]) -> int:
    value = evaluate(text, names)
    if value < 1:
        raise ExpressionError(f"'{text}' is {value}")
    return value


class _Model:
    """The declaration with its letters bound to values."""

    def __init__(self, stage: Stage, declared: Addresses, problem: Problem) -> None:
        self._stage, self._declared, self._problem = stage, declared, problem
        if any(type(value) is not int or value < 0 for value in stage.parameters.values()):
            raise ExpressionError("tile parameters are whole numbers from 0 on")
        self._letters = {**stage.parameters, "M": problem.m, "N": problem.n, "K": problem.k}
        a, c = (ELEMENT_TYPES.get(name, FLOAT32).bytes for name in (problem.dtype, problem.c_dtype))
        self._element_bytes = {"A": a, "B": a, "C": c}

    def patterns(self) -> AccessPatterns:
        """Everything that pages draw and the traffic model adds up."""
        declared, problem = self._declared, self._problem
        parts = (declared.accesses, declared.copies, declared.operand_reads, declared.names)
        if max(map(len, parts)) > MOST:
            raise ExpressionError("more is declared than a stage has")
        names = self._names(0)
        rows, columns, depth = (_positive(text, names) for text in declared.tile)
        sizes = self._element_bytes
        copies = []
        for copy in declared.copies:
            texts = (copy.rows, copy.columns, copy.boxes, copy.receivers)
            height, width, boxes, times = (_positive(text, names) for text in texts)
            box = copy.matrix, height, width, sizes[copy.matrix], copy.code, copy.layout
            copies.append(TensorCopy(*box, boxes, times))
        reads = (
            _positive(read.rows, names) * _positive(read.columns, names) * sizes[read.matrix]
            for read in declared.operand_reads
        )
        return AccessPatterns(
            self._stage,
            problem,
            warps_per_block=-(-_positive(declared.threads, names) // WARP),
            computing_warps=-(-_positive(declared.computing or declared.threads, names) // WARP),
            resident=declared.resident,
            blocks=-(-problem.m // rows) * -(-problem.n // columns),
            steps=-(-problem.k // depth),
            tile=(rows, columns),
            accesses=tuple(map(self._access, declared.accesses)),
            whole_tiles=not (problem.m % rows or problem.n % columns or problem.k % depth),
            copies=tuple(copies),
            operand_bytes_a_step=sum(reads),
        )

    def _names(self, thread: int) -> dict[str, int]:
        """Letters and shorthands, as the thread sees them."""
        names = {**self._letters, "t": thread}
        for name, text in self._declared.names.items():
            names[name] = evaluate(text, names)
        return names

    def _access(self, access: Access) -> WarpAccess:
        names = self._names(0)
        direction = "from" if access.operation == "load" else "to"
        if (
            access.space not in _SPACES
            or access.operation not in ("load", "store")
            or access.matrix not in self._element_bytes
            or type(access.elements) is not int
        ):
            raise ExpressionError("this is no access")
        size = access.elements * self._size(access)
        if not 1 <= size <= WIDEST:
            raise ExpressionError(f"{size} bytes are no access")
        rows, columns, addresses = self._lanes(access)
        return WarpAccess(
            name=f"{access.space}_{access.operation}_{access.matrix.lower()}",
            title=f"{access.operation.title()} of {access.matrix} {direction} {_SPACES[access.space]}",
            space=access.space,
            operation=access.operation,
            matrix=access.matrix,
            code=access.code,
            bytes_per_thread=size,
            addresses=addresses,
            rows=rows,
            columns=columns,
            executions=_positive(access.executions, names),
            once=access.once,
            copied_from=self._source_of(access) if access.asynchronous else (),
            ahead=evaluate(access.ahead, names),
            element_bytes=self._size(access),
        )

    def _source_of(self, copy: Access) -> tuple[int, ...]:
        """The global addresses that an asynchronous copy into shared memory reads."""
        for access in self._declared.accesses:
            if (access.space, access.operation, access.matrix) == ("global", "load", copy.matrix):
                return self._lanes(access)[2]
        raise ExpressionError(f"nothing is copied to {copy.matrix}")

    def _lanes(self, access: Access) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Rows, columns and addresses of the threads of a warp."""
        length = self._problem.k if access.matrix == "A" else self._problem.n
        place = access.place or f"row * {length} + column"
        lanes = []
        for thread in range(WARP):
            names = self._names(thread)
            row, column = evaluate(access.row, names), evaluate(access.column, names)
            at = evaluate(place, {**names, "row": row, "column": column})
            lanes.append((row, column, at * self._size(access)))
        rows, columns, addresses = zip(*lanes, strict=True)
        return rows, columns, addresses

    def _size(self, access: Access) -> int:
        """Bytes of an element where the access touches it."""
        return FLOAT32.bytes if access.as_float else self._element_bytes[access.matrix]


# --- The traffic model ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """One quantity, predicted and measured."""

    name: str  # identifier, for example ``global_loads_per_output``
    title: str  # name for people
    unit: str  # ``element``, ``byte``, ``FLOP/byte`` or ''
    predicted: float | None  # from the tile sizes; None where the model says nothing
    formula: str  # how, in tile letters, for example ``K/BM + K/BN``; '' where nothing is predicted
    measured: float | None = None  # from the report, None if it was not collected
    note: str = ""  # why the two may differ (what a cache did), '' if they should agree exactly

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        if self.measured is None or not self.predicted:
            return None
        return self.measured / self.predicted


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic model of one stage on one problem, and what the report measured."""

    # stage, problem: what was modelled
    stage: Stage
    problem: Problem
    # the quantities, from the threads outward: loads per output, bytes at shared memory, L1, L2 and device memory,
    # then the arithmetic intensity at each level
    rows: tuple[TrafficRow, ...]
    # False if the shape is no multiple of the block tile: then blocks at the rim do less than the model says
    whole_tiles: bool = True


_COPIED = "tensor copies keep nothing in L1 that blocks could share"
_AHEAD = "above: the last step loads the first operands of a step that does not come"

# Row of bytes to name and title of its intensity.
_INTENSITIES = {
    "shared_bytes": ("shared_intensity", "Arithmetic intensity at shared memory"),
    "l1_bytes": ("l1_intensity", "Arithmetic intensity at L1"),
    "l2_read_bytes": ("l2_intensity", "Arithmetic intensity at L2 (reads)"),
    "dram_read_bytes": ("dram_intensity", "Arithmetic intensity at device memory (reads)"),
}


def model(stage: Stage, problem: Problem, analysis: KernelAnalysis | None = None) -> Traffic:
    """Predict a stage's traffic on a problem, with what the analysis of its launch measured beside it.

    A stage whose accesses are not written down (cuBLAS), and a launch with another grid than the stage's parameters
    give, get the figures that hold for any GEMM, and what was measured. Levels where the model expects nothing and
    nothing was measured have no row.
    """
    patterns = access_patterns(stage, problem)
    if patterns is not None and analysis is not None and not patterns.describes(analysis.profile.launch):
        patterns = None
    said = ((name, (value, how)) for name, value, how in _predicted(problem, patterns) if value is not None)
    predicted: dict[str, tuple[float | None, str]] = dict(said)
    measured = {} if analysis is None else _measured(analysis, problem, patterns)
    notes = {}
    if patterns is not None and patterns.copies:
        notes["l2_read_bytes"] = _COPIED
    if patterns is not None and patterns.bytes_ahead:
        notes.update(shared_loads_per_output=_AHEAD, shared_bytes=_AHEAD)
    rows, intensities = [], []
    for name, title, unit, usual in facts(__file__, "traffic.csv"):
        # Why measurement and model may differ is the note.
        expected, note = predicted.get(name, (None, "")), notes.get(name, usual)
        row = TrafficRow(name, title, unit, *expected, measured.get(name), note)
        rows.append(row)
        if name in _INTENSITIES:
            sides = (row.predicted, row.measured)
            told, found = (problem.flops / moved if moved else None for moved in sides)
            how, why = "2 M N K / bytes" if row.predicted else "", "see the bytes" if note else ""
            intensities.append(TrafficRow(*_INTENSITIES[name], "FLOP/byte", told, how, found, why))
    kept = tuple(row for row in (*rows, *intensities) if row.predicted or row.measured)
    return Traffic(stage, problem, kept, patterns is None or patterns.whole_tiles)


def _predicted(problem: Problem, patterns: AccessPatterns | None) -> Iterator[tuple[str, float | None, str]]:
    """What must be moved, and how that follows: for any kernel A and B once and C once, the rest from its accesses."""
    size, c_size, outputs = _bytes_of(problem.dtype), _bytes_of(problem.c_dtype), problem.m * problem.n
    yield "fma_per_output", float(problem.k), "K"
    yield "l2_write_bytes", float(c_size * outputs), f"{c_size} M N"
    yield "dram_read_bytes", float(size * (problem.m + problem.n) * problem.k), f"{size} (M K + K N)"
    yield "dram_write_bytes", float(c_size * outputs), f"{c_size} M N"
    if patterns is None or patterns.stage.addresses is None:
        return
    declared = patterns.stage.addresses
    loaded = _elements(patterns, "global", size)
    yield "global_loads_per_output", _per(loaded, outputs), declared.global_formula
    shared_size = _shared_size(patterns, size)
    loaded = _elements(patterns, "shared", shared_size)
    yield "shared_loads_per_output", _per(loaded, outputs), declared.shared_formula
    if loaded:
        yield "shared_bytes", loaded * shared_size, f"{shared_size} M N ({declared.shared_formula})"
    if patterns.operand_bytes:
        # A warpgroup's 64 rows of C read all columns of B anew.
        reads = " + ".join(f"{read.rows} {read.columns}" for read in declared.operand_reads)
        yield "operand_bytes", float(patterns.operand_bytes), f"2 ({reads}) a warpgroup and step"
    yield "l1_bytes", float(patterns.sectors("load") * SECTOR_BYTES), "32 x sectors of every warp's loads"
    # The rows of A and columns of B that each block needs.
    rows, columns = patterns.tile
    formula = "{} M N (K/{} + K/{})".format(size, *declared.tile)
    yield "l2_read_bytes", size * outputs * (problem.k / rows + problem.k / columns), formula


def _per(value: float | None, divisor: float) -> float | None:
    return None if value is None or not divisor else value / divisor


def _bytes_of(dtype: str) -> int:
    return ELEMENT_TYPES.get(dtype, FLOAT32).bytes


def _elements(patterns: AccessPatterns, space: str, size: int) -> float | None:
    """Elements that all threads, or tensor copies for them, load from a memory space."""
    loads = [a for a in patterns.accesses if a.space == space and a.operation == "load"]
    if space == "shared" and not loads:
        return None  # wgmma's reads are no loads, and of WMMA's nothing is declared
    loaded = sum(patterns.needed_requests(a) * WARP * a.bytes_per_thread for a in loads)
    copied = patterns.copied_bytes if space == "global" else 0
    return float((loaded + copied) // size)


def _shared_size(patterns: AccessPatterns | None, size: int) -> int:
    """Bytes of an element in shared memory, where operands may lie as float32."""
    loads = () if patterns is None else patterns.accesses
    return max((a.element_bytes for a in loads if (a.space, a.operation) == ("shared", "load")), default=size)


def _measured(
    analysis: KernelAnalysis, problem: Problem, patterns: AccessPatterns | None
) -> dict[str, float | None]:
    """What the analyses of a launch measured of each quantity; None for what was not collected."""
    executed = _executed(analysis)
    outputs, size = problem.m * problem.n, _bytes_of(problem.dtype)

    def counted(names: tuple[str, ...], weight: Callable[[str], int] = lambda _: 1) -> float | None:
        """Thread executions of these opcodes, each as often as it weighs."""
        found = (n * weight(opcode) for opcode, n in executed or () if opcode.partition(".")[0] in names)
        return None if executed is None else float(sum(found))

    def moved(source: str, target: str, label: str) -> float | None:
        chart = analysis.get(MemoryChart)
        link = chart.link(source, target, label) if isinstance(chart, MemoryChart) else None
        return None if link is None else link.bytes

    loaded = counted(("LDG", "LDGSTS"), opcodes.bytes_per_thread)
    copied = counted(("UTMALDG",))
    if patterns is not None and patterns.copies and loaded is not None and copied is not None:
        # What the tensor copies that were executed bring with their boxes: every step starts each box once.
        boxes = sum(copy.boxes for copy in patterns.copies)
        loaded += copied * sum(copy.bytes for copy in patterns.copies) / boxes
    shared = counted(("LDS", "LDSM"), opcodes.bytes_per_thread)
    conflicts = analysis.get(BankConflicts)
    wgmma = conflicts.operation("wgmma") if isinstance(conflicts, BankConflicts) else None
    return {
        # None, not 0, for a kernel of tensor cores: none of its multiply-adds is an instruction of a thread.
        "fma_per_output": _per(counted(("FFMA",)) or None, outputs),
        "global_loads_per_output": _per(loaded, outputs * size),
        "shared_loads_per_output": _per(shared, outputs * _shared_size(patterns, size)),
        "shared_bytes": shared,
        "operand_bytes": wgmma.wavefronts * WAVEFRONT_BYTES if wgmma and wgmma.wavefronts else None,
        "l1_bytes": _l1_bytes(analysis),
        "l2_read_bytes": moved("l2", "l1", "read"),
        "l2_write_bytes": moved("l1", "l2", "write"),
        "dram_read_bytes": moved("device", "l2", "read"),
        "dram_write_bytes": moved("l2", "device", "write"),
    }


def _executed(analysis: KernelAnalysis) -> list[tuple[str, int]] | None:
    """(opcode with modifiers, threads that executed it), from the source counters or the opcode counts."""
    view = analysis.get(SourceView)
    if isinstance(view, SourceView) and view.totals.threads_predicated_on and view.sass[0].sass:
        found = ((opcodes.opcode_of(line.sass), line.counters.threads_predicated_on) for line in view.sass)
        return [(opcode, threads or 0) for opcode, threads in found if opcode]
    mix = analysis.get(InstructionMix)
    if not isinstance(mix, InstructionMix) or not mix.modifiers:
        return None
    counts = [(item.opcode, item.thread_executed) for item in mix.modifiers]
    known = [(opcode, threads) for opcode, threads in counts if threads is not None]
    return known if len(known) == len(counts) else None


def _l1_bytes(analysis: KernelAnalysis) -> float | None:
    coalescing = analysis.get(Coalescing)
    if not isinstance(coalescing, Coalescing):
        return None
    counted = [access for access in coalescing.instructions if access.operation in ("load", "async_copy")]
    if counted:
        # Exact. Of the hardware's counter, ncu may add up hits and misses of two passes, which differ a little.
        return float(sum(access.sectors for access in counted) * SECTOR_BYTES)
    loads = coalescing.operation("load")
    return None if loads is None or loads.sectors is None else loads.sectors * SECTOR_BYTES
