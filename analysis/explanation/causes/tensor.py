"""Matrix products that leave the tensor cores idle, or reach them through their slower instructions."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import LATENCY, Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.access import WIDE
from gemmprof.analysis.explanation.code.flow import reached
from gemmprof.analysis.explanation.code.latency import LINE
from gemmprof.analysis.explanation.code.sequences import compiled_by_triton
from gemmprof.analysis.explanation.demands.distinct import own_of_warps
from gemmprof.analysis.explanation.demands.footprint import rounds
from gemmprof.analysis.explanation.demands.resources import FMA, TENSOR
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTOR, traffic
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, once, share
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.opcodes import Sass, matrix_product
from gemmprof.gpu import arch

# Multiply-adds that a warp's instructions do: an FFMA, and those that do several a lane (``IDP.4A``).
SCALAR_MACS = 32.0
SEVERAL_MACS = {"HFMA2": 64.0, "IDP": 128.0}
MMA_MACS = {"bf16": 2048.0, "tf32": 1024.0, "int8": 4096.0}  # the same of an ``mma.sync``: 256 bits of a row
MMA_ROWS = 16.0  # rows of an ``mma.sync``
# Passes of operand loads that stay: two bytes of a value in place of four, or one fragment for two results; of values
# that were widened on their way to shared memory both.
FRAGMENTS = 0.5
# Multiply-adds for each operand fetched from L2 below which it is no product of matrices: no operand is used again.
REUSED = 4.0
FEWEST = 0.15  # share of the instructions below which products are no matrix product's
BUSY_PIPE = 0.7  # share of the time from which on the FMA pipe limits a product
# Passes of operands through shared memory for each multiply-add of a ``wgmma.m64n128k16`` and an ``m64n256k16``.
WGMMA_PASSES = 48.0 / 131072.0
# Instructions of a warp that a ``wgmma.m64n128k16`` takes for each ``mma.sync`` of the same work.
WGMMA_ISSUES = 1.0 / 16.0
OPERAND_BYTES = 2.0  # of an element of an operand
GROUP_WARPS = 4  # warps that multiply together by ``wgmma``
STAGES = 3.0  # tiles of shared memory that take turns, two of them on their way (Triton's own choice)
_AWAITED = re.compile(r"(?:@!?U?P\d+ +)?DEPBAR\.LE SB0, (0x[0-9a-f]+)")


@dataclass(frozen=True)
class _Products:
    """Multiply-adds of a matrix product on the FMA pipe."""

    rows: Mask  # the instructions
    macs: float  # multiply-adds that all warps do with them
    converts: Mask  # instructions that make FP32 values of their 16-bit operands
    widened: Mask  # stores to shared memory of such values
    source: str  # type of the operands: ``bf16`` for any of 16 bits, ``tf32`` for FP32, ``int8``


def tensor_cores_idle(work: Work) -> Iterator[Candidate]:
    """The inner product of a matrix multiplication on tensor cores.

    Only for operands of 16 bits and of bytes, and for FP32 where multiply-adds are what limits (TF32); only where an
    operand is used in several multiply-adds. Fixed: an `mma.sync` does the multiply-adds of 64 warp instructions (TF32
    and bytes: of 32) at the tensor cores' rate, conversions are gone, and operand loads take half the passes, a quarter
    where values were widened on their way to shared memory. Where products, or squares of differences, were exchanged
    between threads to be added up, the exchanges are gone; FP32 ones keep their arithmetic and read operands from
    shared memory. Where a
    loop takes a row a round, its rounds are taken 16 at a time.
    """
    if not work.total_executed:
        return
    if work.products.any():
        return
    found, device = _products(work), work.profile.device
    if found is None:
        yield from _summed_over_lanes(work)
        return
    if not arch.has_tensor_cores(device.name, device.compute_capability):
        return
    if not tensor_rates(work, found.source)[0]:
        return  # no tensor cores for this type, or nobody knows their rate
    if found.source == "tf32" and not _limit(work, found):
        return
    yield Candidate(
        cause="tensor_cores_idle",
        variants=(Variant("mma.sync", _without_exchanges(work, found)),),
        change=(
            "Multiply on the tensor cores (wmma, mma.sync, cuBLAS): its 16-bit operands go through the FMA "
            "pipe, a sixteenth as fast."
            if found.source == "bf16"
            else "Multiply on the tensor cores (mma.sync, wmma, cuBLAS): its bytes go through the FMA pipe four at a "
            "time."
            if found.source == "int8"
            else "Where TF32's ten bits of mantissa suffice, multiply on the tensor cores (mma.sync, "
            "wmma, cuBLAS with TF32): its multiply-adds are what limits."
        ),
        evidence=(
            work.of_all("accumulating multiply-adds", work.executed[found.rows]),
            *work.evidence(metrics.BUSY["fma"][0], metrics.BUSY["tensor"][0]),
        ),
        attributed=np.where(found.rows, work.executed, 0.0),
        another_arithmetic=found.source == "tf32",
    )


def _limit(work: Work, found: _Products) -> bool:
    """Whether multiply-adds limit: they keep the FMA pipe busy, or most issue slots where nothing is busier."""
    fma, busiest = work.loads.get(FMA), max(work.loads, key=lambda key: work.loads[key].share, default="")
    # Triton brings the FMA pipe operands anew for each few of its sums.
    units = (FMA, "issue", "l1_data") if compiled_by_triton(work) else (FMA, "issue")
    filled = 2.0 * float(work.executed[found.rows].sum()) > work.total_executed and busiest in units
    return filled or (fma is not None and fma.busy * work.imbalance >= BUSY_PIPE)


def _products(work: Work) -> _Products | None:
    """The multiply-adds of a matrix product, if the launch spends a good part of its instructions on them."""
    packed = work.where(lambda line: line.opcode == "HFMA2" and not line.moves_a_constant)
    single = work.where(lambda line: line.opcode == "FFMA")
    bytes_ = work.where(lambda line: line.full.startswith("IDP.4A"))
    rows = _accumulating(work, packed | single | bytes_)
    executed = float(work.executed[rows].sum())
    if executed < FEWEST * work.total_executed:
        return None
    fetched = traffic(work).missed * SECTOR
    if bool(bytes_[rows].all()):
        macs, none = float((_macs(work) * work.executed)[rows].sum()), np.zeros_like(rows)
        return _Products(rows, macs, none, none, "int8") if macs >= REUSED * fetched else None
    rows &= ~bytes_
    converts = work.where(_converts_half)
    staged, stores = _widened_for_shared(work)
    narrow = work.where(lambda line: line.is_load and bool(_HALF_LOADS.search(line.full)))
    narrow &= work.where(lambda line: line.space in ("shared", "global"))
    sixteen_bits = (
        float(work.executed[packed & rows].sum()) > 0.3 * executed
        or float(work.executed[converts | narrow].sum()) > 0.2 * executed
        or bool(staged.any())
    )
    macs = float((_macs(work) * work.executed)[rows].sum())
    if macs < REUSED * fetched / (2.0 if sixteen_bits else 4.0):
        return None
    return _Products(rows, macs, converts | staged, stores, "bf16" if sixteen_bits else "tf32")


def _macs(work: Work) -> Array:
    """Multiply-adds that a warp does with each instruction of a product."""
    return np.array([SEVERAL_MACS.get(line.opcode, SCALAR_MACS) for line in work.sass])


def _summed_over_lanes(work: Work) -> Iterator[Candidate]:
    """The products of two tiles, or the squares of their differences, each formed by itself and exchanged between
    threads to be added up.

    A lane takes each of some values with each of others, so that all of them are used several times.
    """
    products = work.ran & work.where(lambda line: line.opcode in ("FMUL", "FFMA"))
    rows = np.zeros_like(products)
    pairs: dict[frozenset[_Value], float] = {}
    for index in np.flatnonzero(products).tolist():
        at, factors = index, factors_of(work, index)
        if len(factors) == 1:
            differences = [one for one, _ in next(iter(factors)) if work.sass[one].opcode == "FADD"]
            at = differences[0] if len(differences) == 1 else index
            factors = factors_of(work, at)
        opcodes = {work.sass[one].opcode for each in factors for one, _ in each}
        if len(factors) == 2 and opcodes <= _FROM_MEMORY:
            rows[[index, at]] = True
            pairs[factors] = float(work.executed[index])
    values = frozenset[_Value]().union(*pairs)
    if not pairs or len(values) * REUSED > 2.0 * len(pairs):
        return
    sums, count = _sums(work, rows, values), sum(pairs.values())
    if not (sums & work.where(lambda line: line.opcode == "SHFL")).any():
        return
    converts = work.ran & work.where(widens)
    half = 2 * sum(1 for each in values if all(converts[one] for one, _ in each)) > len(values)
    if half and tensor_rates(work, "bf16")[0]:
        found = _Products(rows, SCALAR_MACS * count, converts, np.zeros_like(rows), source="bf16")
        fix = _by_mma(work, found)
        assert fix.keep is not None
        variant = Variant("mma.sync", replace(fix, keep=np.where(rows | sums, 0.0, fix.keep)), plain=True)
    else:
        # Both operands of a product come from shared memory for as many as each is used in.
        keep = np.where(sums, 0.0, 1.0)
        variant = Variant("sums within a thread", Fix(keep=keep, passes=2.0 * count / REUSED), plain=True)
    yield Candidate(
        cause="tensor_cores_idle",
        variants=(variant,),
        change=(
            "Form the products of the tiles as a matrix product's (Triton: tl.dot; of FP32 with "
            'input_precision="ieee" where TF32 is too coarse; a squared difference as a * a - 2 * a * b + b * b): '
            "each is formed by itself now, and threads exchange it to be added up."
        ),
        evidence=(
            derived("exchanges and sums / products", share(work.executed[sums].sum(), count)),
            *work.evidence(metrics.BUSY["lsu"][0], metrics.BUSY["tensor"][0]),
        ),
        attributed=np.where(rows | sums, work.executed, 0.0),
    )


def _sums(work: Work, products: Mask, values: Collection[_Value]) -> Mask:
    """What adds products of several threads up: exchanges and sums, but for what their factors are made by."""
    found = work.ran & ~products & work.where(lambda line: line.opcode in _ADD_UP)
    found[list(reached({one for each in values for one, _ in each}, work.code.sources))] = False
    return found


def _without_exchanges(work: Work, found: _Products) -> Fix:
    """The multiply-adds on tensor cores; where the terms of a sum lie in several threads, these exchange none.

    Where the rounds of a loop meet one operand, each with a row of its own, an instruction takes 16 of them: what a
    round does beside, it does for so many, and no longer in all threads that exchanged a sum. What is fetched stays.
    """
    fix, code = _by_mma(work, found), work.code
    rows = np.flatnonzero(found.rows).tolist()
    shuffles = work.ran & work.where(lambda line: line.opcode == "SHFL")
    if fix.keep is None or not any(shuffles[use] for row in rows for use in code.readers[row]):
        return fix
    factors = {row: factors_of(work, row) for row in rows}
    keep = np.where(_sums(work, found.rows, frozenset[_Value]().union(*factors.values())), 0.0, fix.keep)
    loads = work.global_loads
    least = share(traffic(work).missed * SECTOR, arch.WARP * WIDE * float(work.executed[loads].sum()))
    for loop in code.loops:
        inside = [each for row in rows if code.loop_of(row) == loop for each in factors[row]]
        held = [each for each in inside if all(at not in loop for at, _ in each)]
        if inside and 2 * len(held) >= len(inside):
            a_tile = 1.0 / min(MMA_ROWS, max(1.0, rounds(work, loop)))
            once = np.where(loads, max(a_tile, min(1.0, least)), a_tile)
            keep = np.where([at in loop for at in range(len(keep))], np.minimum(keep, once), keep)
    return replace(fix, keep=keep)


def factors_of(work: Work, index: int) -> frozenset[_Value]:
    """The two factors, or terms, of an instruction; one where both are the same."""
    names = [_bare(operand) for operand in work.sass[index].operands[1:3]]
    known = all(_REGISTER.fullmatch(name) for name in names)
    found = (frozenset((at, name) for at in work.code.producers(index, name)) for name in names if known)
    return frozenset(filter(None, found))


# What adds values of several threads up: in the warp, and through shared memory across warps.
_ADD_UP = frozenset({"SHFL", "FADD", "FFMA", "FSEL", "SEL", "LDS", "STS"})
_Value = frozenset[tuple[int, str]]
"""What a register holds: where it may come from, each with the register."""
_HALF_LOADS = re.compile(r"\.U16|\.S16")
_FROM_MEMORY = frozenset(
    {"LDS", "LDG", "LDSM", "LDL", "HADD2", "F2F", "PRMT", "IMAD", "SHF", "SHFL", "LD", "LOP3"}
)
_REGISTER = re.compile(r"R\d+")
_DRESS = re.compile(r"[-|]|\..*")


@lru_cache(maxsize=8192)
def _bare(operand: str) -> str:
    """A register without sign, bars and modifiers."""
    return _DRESS.sub("", operand)


def _accumulating(work: Work, products: Mask) -> Mask:
    """Multiply-adds into their own summand, both factors fresh: the inner loop of a matrix product."""
    code, found = work.code, np.zeros_like(products)
    for index in np.flatnonzero(products & work.ran).tolist():
        registers = [_bare(operand) for operand in work.sass[index].operands[1:4]]
        if len(set(registers)) < 3 or not all(_REGISTER.fullmatch(name) for name in registers):
            continue
        sources = {code.sass[at].opcode for name in registers[:2] for at in code.producers(index, name)}
        sums = {code.sass[at].opcode for at in code.producers(index, registers[2])}
        found[index] = code.sass[index].opcode in sums and bool(sources) and sources <= _FROM_MEMORY
    return found


def widens(line: Sass) -> bool:
    """An instruction that makes an FP32 value of a 16-bit one: BF16 are the upper half of an FP32 number."""
    if line.opcode in ("SHF", "IMAD"):
        return ("L" in line.modifiers and "0x10" in line.operands) or "0x10000" in line.operands
    if line.opcode in ("LOP3", "PRMT"):
        return "0xffff0000" in line.operands or "0x7632" in line.operands
    return _converts_half(line)


def _converts_half(line: Sass) -> bool:
    """An instruction that makes an FP32 value of an FP16 one."""
    return line.full.startswith(("HADD2.F32", "F2F.F32.F16"))


def _widened_for_shared(work: Work) -> tuple[Mask, Mask]:
    """Conversions to FP32 of 16-bit values on their way to shared memory, and those stores; none if few are so."""
    stores = work.where(lambda line: line.opcode == "STS" and line.access_bytes >= 4) & work.ran
    found, widened = np.zeros_like(stores), np.zeros_like(stores)
    for index in np.flatnonzero(stores).tolist():
        data = work.sass[index].reads[-(work.sass[index].access_bytes // 4) :]
        sources = {at for name in data for at in work.code.producers(index, name)}
        if sources and all(widens(work.sass[at]) for at in sources):
            widened[index] = found[list(sources)] = True
    most = float(work.executed[widened].sum()) > 0.5 * float(work.executed[stores].sum())
    return (found, widened) if most else (np.zeros_like(found), np.zeros_like(found))


def _by_mma(work: Work, found: _Products) -> Fix:
    """The multiply-adds on tensor cores."""
    keep = work.all_kept()
    operands = work.where(lambda line: line.space in ("shared", "global") and line.is_load)
    often = float(work.executed[found.rows].max(initial=0.0))
    operands &= work.executed > 0.05 * often
    keep[operands] = FRAGMENTS
    if compiled_by_triton(work):
        # It lays a warp's sums out as a square tile: a fragment is read once for a row or column of that.
        sums = len({work.sass[at].operands[0] for at in np.flatnonzero(found.rows).tolist()})
        width = OPERAND_BYTES * (1.0 if found.source == "bf16" else 2.0)
        fragments = 2.0 * width * found.macs / math.sqrt(arch.WARP * sums) / LINE
        keep[operands] = min(FRAGMENTS, share(fragments, work.data_passes[operands].sum()))
    if found.widened.any():
        keep[found.widened] = FRAGMENTS
        keep[work.where(lambda line: line.opcode == "LDS")] *= FRAGMENTS
    keep[found.rows] = _macs(work)[found.rows] / MMA_MACS[found.source]
    keep[found.converts] = 0.05
    rate, _ = tensor_rates(work, found.source)
    return Fix(
        keep=keep,
        resources={TENSOR: 1.0, **dict.fromkeys(BELOW_L1, 1.0)},
        added={TENSOR: share(2.0 * found.macs, rate * work.sms * work.elapsed)},
    )


def tensor_rates(work: Work, source: str) -> tuple[float, float]:
    """Operations of an SM's tensor cores a cycle on operands of a type (``bf16``, ``tf32``): by warp-level and by the
    fastest instructions; 0 where not known.
    """
    limits = arch.LIMITS.get(work.profile.device.compute_capability)
    known = fastest = 0.0
    if limits is not None:
        # The first chips know FP16 alone.
        kind = "fp16" if source == "bf16" and source not in limits.tensor else source
        known = arch.tensor_rate(work.profile.device.name, limits, kind)
        fastest = limits.fast_tensor.get(source, known)

    def peak(name: str, otherwise: float) -> float:
        path = metrics.tensor_operations_peak(f"op_{name}_src_{source}_dst_fp32_sparsity_off")
        return (work.number(path) or 0.0) / work.sms or otherwise

    by_warp = peak("hmma", known)
    return by_warp, max(by_warp, peak("hgmma", fastest))


def warp_level_mma(work: Work, *, taller: bool = False) -> Iterator[Candidate]:
    """A matrix product by wgmma (tcgen05.mma from 10.0 on) in place of mma.sync or WMMA.

    Only where the GPU has it and its rate is higher. Fixed: the tensor cores read operands straight from shared
    memory, so fragment loads are gone; the tensor pipe works at its full rate.
    """
    if not work.samples or not work.elapsed:
        return
    if not taller and owner_of(work.profile).key == "triton" and work.warps_of_block % GROUP_WARPS == 0:
        return  # Triton multiplies by it where a tile has rows enough; what taller ones bring is told as such
    macs = mma_macs(work)
    rows = (macs > 0) & work.ran
    before, after = tensor_rates(work, "bf16")
    if not rows.any() or after <= before or TENSOR not in work.loads:
        return
    total = float((macs * work.executed)[rows].sum())
    copied = work.global_fetches
    if not taller and total <= MMA_ROWS * SECTOR / 2.0 * float(work.global_sectors[copied].sum()):
        return  # what is fetched meets the rows of one instruction, of which wgmma takes four times as many
    # Generic loads that touched no sector read shared memory.
    fragments = work.where(lambda line: line.opcode == "LD" and line.space == "global")
    fragments &= work.global_sectors == 0
    fragments |= work.where(lambda line: line.opcode in ("LDS", "LDSM", "MOVM"))
    fragments &= work.executed > 0.2 * float(work.executed[rows].max())
    fast = "wgmma" if work.profile.device.compute_capability < (10, 0) else "tcgen05.mma"
    keep, passes = np.where(fragments, 0.0, 1.0), work.data_passes
    # In Triton, where tiles have no rows for all warps, these do some alike.
    own = own_of_warps(work) if taller else np.ones_like(keep)
    keep[rows] = WGMMA_ISSUES * own[rows]
    mine = float((macs * own * work.executed)[rows].sum())
    left = float(passes[~fragments].sum()) + WGMMA_PASSES * mine
    resources = dict.fromkeys(BELOW_L1, 1.0)
    resources |= {TENSOR: before / after * share(mine, total), "l1_data": share(left, passes.sum()) or 1.0}
    fix = Fix(keep=keep, resources=resources)
    yield Candidate(
        cause="warp_level_mma",
        variants=(Variant("warpgroup instructions", fix),),
        change=(
            f"Multiply by {fast} (CUTLASS's kernels for this GPU, cuBLAS): mma.sync reaches "
            f"{100 * before / after:.0f} % of its tensor rate, and each warp loads its operands into registers first. "
            f"{fast} reads them from shared memory, where tensor copies (TMA) put them."
        ),
        evidence=(
            derived("operations a cycle and SM by mma.sync / by wgmma, at most", before / after),
            work.of_all("fragment loads", work.executed[fragments]),
            *work.evidence(metrics.BUSY["tensor"][0], metrics.BUSY["l1_data"][0]),
        ),
        attributed=np.where(rows | fragments, work.executed, 0.0),
        least=0.05,
        rank=LATENCY,
        yields=1.0,
    )


@once
def stages(work: Work) -> float:
    """Tiles of operands that take turns in a loop's copies to shared memory, with the one in use; 1 without copies."""
    found = [1.0]
    for loop in work.code.loops:
        lines = [work.sass[at] for at in range(loop.first, loop.last + 1) if work.executed[at]]
        left = [int(one[1], 16) for line in lines if (one := _AWAITED.match(line.text))]
        begun = sum(line.opcode == "LDGDEPBAR" for line in lines)
        found += [2.0 + min(left) * len(left) / begun] if left and begun else []
    return max(found)


@once
def mma_macs(work: Work) -> Array:
    """Multiply-adds of each instruction that is an ``HMMA``, for a warp that executes it; 0 of all others."""
    return np.where(work.where(lambda line: line.opcode == "HMMA"), tensor_macs(work), 0.0)


@once
def tensor_macs(work: Work) -> Array:
    """The same of any tensor-core instruction, of a warp group's a quarter for each warp."""
    products = (matrix_product(line.full) for line in work.sass)
    return np.array([0.5 * product.operations if product is not None else 0.0 for product in products])
