"""The only table of GPUs: ``chips.csv``, a row a chip with its limits, flags, tensor rates, L1, products, and what was
measured on it. A chip that is not there has none of these: nothing is assumed of it.

Limits: the table inside Nsight Compute's occupancy calculator (2025.3.1). Products: NVIDIA's data sheets.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gemmprof.base.errors import OccupancyError, UsageError
from gemmprof.base.foreign_files import facts
from gemmprof.model import ArchLimits, Practice

# Of every GPU that CUDA has run on so far: threads of a warp, and banks of shared memory with the bytes of a word.
WARP, BANKS, BANK_BYTES = 32, 32, 4
# Of every chip in the table; a warp is given registers in steps of the last.
REGISTERS_PER_SM, REGISTERS_PER_THREAD, REGISTER_UNIT = 65536, 255, 256


@dataclass(frozen=True, slots=True)
class Product:
    """A GPU as it is sold. ``sm_count`` is that of the usual full configuration, None where it varies."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int | None = None


def _numbers(text: str) -> dict[str, float]:
    """Numbers by name, from ``fp16=8192/3 int8=…``."""
    found = {}  # plain dicts: results hold their chip's limits, and must travel to other processes
    for name, number in (word.split("=") for word in text.split()):
        whole, _, part = number.partition("/")
        found[name] = float(whole) / float(part or 1)
    return found


def _pair(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


# Of the first card that was measured; of others what is different stands with their chip (`make ceilings` measures).
_MEASURED = {name: float(value) for name, value, _ in facts(__file__, "practice.csv")}


def _practices(text: str) -> Iterator[Practice]:
    """What was measured on cards with a chip, from ``an H200; an H100: l2_cycles=278 …``: other cards, other memory."""
    for card, different in re.findall(r"([^;:]+)(?:: ([^;]*))?", text):
        values = _MEASURED | _numbers(different)
        cycles = {name: values.pop(name) for name in [*values] if name.endswith("_cycles")}
        yield Practice(card.strip(), values, **cycles)


def _limits(row: Sequence[str]) -> ArchLimits:
    """A chip's row of the table, with what changed once and for all."""
    number, chip, warps, blocks, barriers, shared, nvcc, l1, built, counters, *rest = row
    tensor, fast_tensor, filled = rest[:3]
    pair = _pair(number)
    ampere_on, hopper_on = pair >= (8, 0), pair >= (9, 0)
    # Shared memory that an SM can set aside for its blocks (the rest of the array is L1), largest first.
    configs = tuple(int(size) * 1024 for size in shared.split())
    return ArchLimits(
        compute_capability=pair,
        chip=chip,
        max_warps_per_sm=int(warps),
        max_blocks_per_sm=int(blocks),
        max_barriers_per_sm=int(barriers),
        shared_memory_per_sm=configs[0],
        max_shared_memory_per_block=configs[0],
        registers_per_sm=REGISTERS_PER_SM,
        max_registers_per_thread=REGISTERS_PER_THREAD,
        register_allocation_unit=REGISTER_UNIT,
        warp_allocation_granularity=4,
        shared_memory_allocation_unit=128 if ampere_on else 256,
        max_threads_per_block=1024,
        shared_memory_configs=configs,
        reserved_shared_memory_per_block=1024 if ampere_on else 0,
        oldest_nvcc=_pair(nvcc),
        built=bool(built),
        dram_counters=bool(counters),
        clusters=hopper_on,
        barriers_limit_occupancy=hopper_on,
        cubin_counts_reserve=hopper_on,
        l1_bytes=int(l1) * 1024,
        tensor=_numbers(tensor),
        fast_tensor=_numbers(fast_tensor),
        filled_sectors=int(filled) if filled else None,
        practice=next(iter(_PRACTICES[pair]), None),
    )


_CHIPS = facts(__file__, "chips.csv")
_PRACTICES = {_pair(row[0]): tuple(_practices(row[-1])) for row in _CHIPS}

# Every architecture by compute capability, oldest first.
LIMITS: Mapping[tuple[int, int], ArchLimits] = MappingProxyType(
    {limits.compute_capability: limits for limits in map(_limits, _CHIPS)}
)

# The architectures that every stage of the ladders must compile for, unless it is written for some only.
BUILT = tuple(limits for limits in LIMITS.values() if limits.built)

# What explanations rest on where nothing was measured on a chip; they say so.
MEASURED = next(limits.practice for limits in LIMITS.values() if limits.practice is not None)
# Turing's L1 moves 64 bytes a cycle, half of what the peak of its wavefronts' counter stands for: ncu's throughput of
# L1 is twice that counter's share wherever it is the limit (99.9 and 50.0 %, 96.8 and 48.4 %, 81.1 and 40.6 %).
_ON_TURING = dataclasses.replace(
    MEASURED, ceilings={**MEASURED.ceilings, "l1_data": 0.5 * MEASURED.ceilings["l1_data"]}
)


def practice_of(compute_capability: tuple[int, int], name: str = "") -> tuple[Practice, bool]:
    """What was measured on this chip, else on another one; and whether it was on this one.

    The card's name, as its driver calls it, counts too: cards of one capability may have other memory.
    """
    cards = _PRACTICES.get(compute_capability, ())
    own = next((card for card in cards if card.card.split()[-1] in name), next(iter(cards), None))
    elsewhere = _ON_TURING if compute_capability == (7, 5) else MEASURED
    return (elsewhere, False) if own is None else (own, True)


# The first and last compute capability that has it (PTX ISA, the tables of target architectures).
_FEATURES = {name: (_pair(first), _pair(last)) for name, first, last in facts(__file__, "features.csv")}


def has(feature: str, compute_capability: tuple[int, int]) -> bool:
    """Whether GPUs of a compute capability have something; True where a report does not say which it is, (0, 0)."""
    first, last = _FEATURES[feature]
    return compute_capability == (0, 0) or first <= compute_capability <= last


# Products of compute capability 7.5 on chips without them (TU116, TU117).
_WITHOUT_TENSOR_CORES = r"(?i)\b(GTX 16\d0|MX[45]50|T[456]00|T550|T1[02]00|T2000|CMP 30HX)\b"


def has_tensor_cores(name: str, compute_capability: tuple[int, int]) -> bool:
    """Whether a GPU has tensor cores: of 7.5 the name of the product decides."""
    small = compute_capability == (7, 5) and re.search(_WITHOUT_TENSOR_CORES, name) is not None
    return has("tensor cores", compute_capability) and not small


# Cards whose tensor cores add up in FP32 at half the rate, from Turing on; their workstation and data-centre sisters,
# TITANs included, do so at the full one. Appendix A of NVIDIA's whitepaper of the GA102, dense: an RTX 3090 does 142
# TFLOP/s of FP16 with FP16 sums, 71 with FP32 ones, 71 of BF16, 35.6 of TF32; a second table has an RTX A6000 at 154.8
# of all three and 77.4 of TF32. Those of TU102 (RTX 2080 Ti: 107.6, 53.8), AD102 (RTX 4090: 330.3, 165.2, TF32 82.6,
# FP8 660.6 and 330.3) and GB202 (RTX 5090: 419, 209.5, TF32 104.8, FP8 838 and 419) say the same. The pipe's counter
# has the faster sums as its peak: of launches on an RTX 4090 that wait for nothing else it says 45 to 48 %.
_HALF_IN_FP32, _HALF_FROM = re.compile(r"(?i)\bGeForce\b"), (7, 5)


def sums_at_half_rate(name: str, compute_capability: tuple[int, int]) -> bool:
    """Whether a card's tensor cores add up in FP32 at half the rate at which they do in FP16."""
    return compute_capability >= _HALF_FROM and _HALF_IN_FP32.search(name) is not None


def tensor_rate(name: str, limits: ArchLimits, source: str, sums: str = "fp32") -> float:
    """Dense operations of an SM a cycle by warp-level instructions on a card; 0 where no source gives them.

    ``source`` is the type of the operands (``fp16``, ``tf32`` …), ``sums`` that of their sums, '' for integers.
    """
    half = sums == "fp32" and sums_at_half_rate(name, limits.compute_capability)
    return limits.tensor.get(source, 0.0) * (0.5 if half else 1.0)


# Blocks in a cluster after opting in to non-portable sizes (`cudaFuncAttributeNonPortableClusterSizeAllowed`).
MAX_CLUSTER_SIZE = 16
MAX_BARRIERS_PER_BLOCK = 16  # named barriers that a block can use (PTX ISA, ``barrier``: 0 to 15)
_WRITTEN = r"(?:sm|compute|lto)?_?(\d{1,2})\.?(\d)[af]?"


def known_architectures() -> str:
    """The compute capabilities of the table as people write them: ``7.0, 7.2, …``."""
    return ", ".join(limits.label for limits in LIMITS.values())


def parse_compute_capability(value: Any) -> tuple[int, int]:
    """``"8.6"``, ``8.6``, ``(8, 6)``, ``"sm_86"``, ``"sm_90a"``, ``86`` as (major, minor); else OccupancyError."""
    # float32(8.6) is 8.6000004: one decimal is all that a compute capability has.
    number = round(value, 4) if isinstance(value, float) else value
    text = ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(number)
    found = re.fullmatch(_WRITTEN, text.strip().lower())
    if found is None or (pair := (int(found[1]), int(found[2]))) not in LIMITS:
        fixes = f"use one of {known_architectures()}", 'write it as "8.6", 8.6, (8, 6) or "sm_86"'
        raise OccupancyError(f"compute capability {value!r} is not in the table of limits", *fixes)
    return pair


def limits_of(compute_capability: Any) -> ArchLimits:
    """The limits of a compute capability, in any form that `parse_compute_capability` reads; errors as of it."""
    return LIMITS[parse_compute_capability(compute_capability)]


# Common products, each name once.
PRODUCTS = tuple(
    Product(name.strip(), _pair(row[0]), int(count) if count else None)
    for row in _CHIPS
    for name, count in re.findall(r"([^;=]+)(?:=(\d+))?", row[-2])
)

# What vendors and drivers put around the name that people say: "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3".
_NOISE = (
    r"\b(nvidia|geforce|tesla|graphics|gpu|generation|laptop|max q|\d+\s*gb|hbm\d\w?|sxm\d?|pcie?|"
    r"workstation|server|edition|developer kit)\b"
)


def _words(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()


def find_product(name: str) -> Product:
    """The product that a name means (``h100``, ``NVIDIA A100-SXM4-80GB``, ``3090ti``); UsageError names the closest."""
    by_name = {_words(product.name): product for product in PRODUCTS}
    joined = {key.replace(" ", ""): product for key, product in by_name.items()}
    exact = _words(name)
    plain = _words(re.sub(_NOISE, " ", exact))
    for candidate in (_words(exact.replace("nvidia", " ")), plain, f"rtx {plain}", f"jetson {plain}"):
        product = by_name.get(candidate) or joined.get(candidate.replace(" ", ""))
        if product is not None:
            mobile = re.search(r"\b(laptop|max q)\b", exact)  # they carry a desktop's name with fewer SMs
            return dataclasses.replace(product, sm_count=None) if mobile else product
    import difflib  # for a name that nobody knows, alone

    close = difflib.get_close_matches(plain, by_name, n=4, cutoff=0.5)
    known = ", ".join(by_name[key].name for key in close) or "H100, A100, L4, RTX 4090, …"
    fixes = f"did you mean {known}?", f"or give --arch, one of {known_architectures()}"
    raise UsageError(f"no GPU called '{name}' in the table", *fixes)
