"""What makes a launch's numbers doubtful: one sentence each, said before any finding."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gemmprof import metrics
from gemmprof.analysis.explanation.demands.work import Work, runs_elsewhere
from gemmprof.analysis.inputs.names import NUMBA, owner_of
from gemmprof.analysis.occupancy.calculator import in_words
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy, analyse
from gemmprof.analysis.reading.messages import clock_control
from gemmprof.gpu.arch import LIMITS, practice_of
from gemmprof.model import Explanation, KernelProfile

FEW_SAMPLES = 300  # samples below which shares of lines and states are rough
SHORT = 5000.0  # nanoseconds below which the launch itself is a large part of the time
HALF = 0.5  # of a short launch, below which what it does is not what it takes; of instructions, another run's
WAITS = "exposed latency"  # among what the time consists of: warps' waits that nothing hides
DISAGREE = 0.1  # relative difference between passes from which on a word is said
OVER = 101.0  # per cent of a peak above which a value is remarked on
FEW_SECTIONS = 2  # so many are named one by one
UNSEEN = "Most causes show in these alone, and what is told may bring much less."
UNLIKE = "Its passes disagree"  # on what the launch did
ELSEWHERE = (
    "Most of what it executes is in no code of its own: printf, malloc, free and the like, which the driver brings. "
    "Take them out of the kernel and profile again: they hide what the rest of it costs."
)
NOT_PROFILED = "ncu could not profile it: none of its counters has a value. What ncu printed then says why."


def doubts(work: Work) -> Iterator[str]:
    """The trust lines of one launch, most important first."""
    profile = work.profile
    if not profile.profiled:
        yield NOT_PROFILED
        return
    if profile.one_by_one:
        yield of_several(profile)
    yield from (f"{doubt[:1].upper()}{doubt[1:]}." for doubt in profile.doubts)
    if runs_elsewhere(profile):
        yield ELSEWHERE
    if not profile.one_by_one:
        yield from _missing(work)
    yield from _not_numbers(profile)
    yield from _clocks(work)
    yield from _chip(work)
    yield from _passes(work)
    yield from _short(work)
    yield from _over(profile)
    yield from _source(work)


def mostly_launching(found: Explanation) -> bool:
    """Whether a launch is so short that it mostly starts and ends."""
    return bool(found.time) and (found.duration_ns or SHORT) < SHORT and found.time[0].share < HALF


def of_several(profile: KernelProfile) -> str:
    """Why nothing is told of a graph or range as a whole, and how to profile what it launches."""
    return (
        f"This is a {profile.workload} of several launches: its counters are sums, so no cause can be told apart. "
        f"Profile its kernels one by one (ncu {profile.one_by_one})."
    )


def _missing(work: Work) -> Iterator[str]:
    profile = work.profile
    have = profile.metrics
    seen = metrics.INSTRUCTIONS_BY_ADDRESS in profile.instances and not work.worked_out
    wanted = {
        "how busy each unit was": (
            any(key in work.loads for key in ("issue", "l1_data")),
            "--section SpeedOfLight",
        ),
        "DRAM and L2 traffic": (
            metrics.L2_TO_L1_BYTES in have,
            "--section MemoryWorkloadAnalysis_Chart --section MemoryWorkloadAnalysis_Tables",
        ),
        "what warps wait for": (
            bool(work.reason_shares),
            "--section WarpStateStats --section SourceCounters",
        ),
        "which instructions ran and stalled": (seen, "--section SourceCounters"),
        "how many warps were resident": (work.resident_warps is not None, "--section Occupancy"),
        "launch statistics": (metrics.GRID_SIZE in have, "--section LaunchStats"),
    }
    absent = {what: option for what, (there, option) in wanted.items() if not there}
    if absent:
        sections = dict.fromkeys(
            word for option in absent.values() for word in option.split() if word[0] != "-"
        )
        options = " ".join(f"--section {section}" for section in sections)
        yield (
            f"Not collected: {', '.join(absent)}. {'Findings that need it are left out.' if seen else UNSEEN} "
            f"ncu {'--set full' if len(sections) > FEW_SECTIONS else options} brings it."
        )
        yield from _from_the_launch(profile)


def _from_the_launch(profile: KernelProfile) -> Iterator[str]:
    """What the launch statistics alone tell."""
    found = analyse(profile)
    if (
        not isinstance(found, LaunchOccupancy)
        or found.theoretical_warps is None
        or found.achieved_warps is not None
    ):
        return
    waves = None if found.waves is None else f"{found.waves:.2f}" if found.waves >= 0.01 else "less than 0.01"
    yield (
        f"Known from the launch alone: {in_words(found.limited_by)} let {found.theoretical_warps:.0f} warps on an "
        f"SM ({found.theoretical_percent:.0f} %)" + (f", and the grid is {waves} waves." if waves else ".")
    )


def _not_numbers(profile: KernelProfile) -> Iterator[str]:
    shown = [
        name
        for name, value in profile.metrics.items()
        if isinstance(value, float)
        and not math.isfinite(value)
        and not name.startswith(("derived_temp", "breakdown", "device__"))
    ]
    important = [
        name
        for name in shown
        if name.split("__")[0] in ("sm", "smsp", "l1tex", "lts", "dram", "gpu")
        and "ratio" not in name
        and "pct" not in name
    ]
    if important:
        yield (
            f"{len(important)} counters are not a number (ncu could not measure them), {important[0]} among "
            "them; what rests on them is left out."
        )


def _clocks(work: Work) -> Iterator[str]:
    profile = work.profile
    clock = work.number(metrics.SM_CLOCK)
    most = profile.device.max_clock_hz
    if clock_control(profile.session) == "base":
        yield (
            "ncu held the clocks at their base (--clock-control base): shares hold, times in use are shorter."
        )
    if clock and most and clock < 0.6 * most and (work.duration or 0) > SHORT:
        yield (
            f"The SMs ran at {clock / 1e6:.0f} of {most / 1e6:.0f} MHz while it was profiled: memory looks "
            "faster than in use."
        )
    sides = [
        value
        for name in (metrics.SM_CLOCK, metrics.SM_ELAPSED_CLOCK, metrics.SMSP_CLOCK, metrics.L1_CLOCK)
        if (value := work.number(name))
    ]
    if len(sides) > 1 and max(sides) / min(sides) > 1.08:
        yield (
            f"Clocks drifted between the passes ({min(sides) / 1e6:.0f} to {max(sides) / 1e6:.0f} MHz): "
            "counters of different passes do not quite belong together."
        )


def _chip(work: Work) -> Iterator[str]:
    """Whose figures the predictions rest on, where they are another chip's."""
    capability = work.profile.device.compute_capability
    practice, own = practice_of(capability, work.profile.device.name)
    if not own and work.samples:
        limits = LIMITS.get(capability)
        this = (
            f"this chip ({limits.chip})"
            if limits is not None
            else "this chip, which is not in the table of chips"
        )
        yield f"Ceilings and latencies were measured on {practice.card}, not on {this}: predictions are rougher."


def runs_unlike(work: Work) -> str:
    """That the kernel does not run alike each time, by what passes say of its cycles; '' where they agree."""
    pairs = (
        (metrics.ELAPSED_CYCLES, metrics.SM_ELAPSED_CYCLES_MAX),
        (metrics.SM_ACTIVE_CYCLES, metrics.L1_ACTIVE_CYCLES_AVERAGE),
    )
    for one, other in pairs:
        first, second = work.number(one), work.number(other)
        if first and second and abs(first - second) / max(first, second) > DISAGREE:
            return (
                f"{UNLIKE}: {one} is {first:,.0f}, {other} is {second:,.0f} cycles. The kernel "
                "does not run alike each time; profile it again."
            )
    return ""


def counts_unlike(work: Work) -> str:
    """That instructions were counted in a run of other work than the one that the units were in; '' where not."""
    units = work.number(metrics.INSTRUCTIONS_EXECUTED)
    if work.program is None or work.worked_out or not units:
        return ""
    each = work.total_executed
    if min(units, each) > HALF * max(
        units, each
    ):  # what is tried again (a lock, a compare-and-swap) differs by less
        return ""
    return (
        f"{UNLIKE}: {units:,.0f} instructions by the SMs' counter, {each:,.0f} one by one. The kernel does "
        "other work each time (a queue or a flag that is not reset?); profile it with --replay-mode application."
    )


def _passes(work: Work) -> Iterator[str]:
    if unlike := counts_unlike(work) or runs_unlike(work):
        yield unlike
        return
    latency = work.number(metrics.CYCLES_PER_ISSUE)
    counted = sum(work.number(name) or 0.0 for name in metrics.stall_cycles(work.profile.metrics).values())
    if latency and counted and abs(counted - latency) / latency > DISAGREE:
        yield (
            f"The warp states add up to {counted:.1f} cycles an instruction where {latency:.1f} were "
            "measured: its passes disagree."
        )


def _short(work: Work) -> Iterator[str]:
    if not work.samples:
        return
    if work.sample_count < FEW_SAMPLES:
        yield (
            f"Too short to sample well: {work.sample_count:.0f} samples. Shares of lines and states are "
            "rough; profile a larger problem."
        )
    dropped = work.number(metrics.SAMPLES_DROPPED_BYTES)
    if dropped:
        yield (
            f"The sampler's buffer overflowed ({dropped:,.0f} bytes lost): raise --sampling-buffer-size or "
            "--sampling-interval."
        )


def _over(profile: KernelProfile) -> Iterator[str]:
    over = [
        (value, name)
        for name, value in profile.metrics.items()
        if isinstance(value, float)
        and value > OVER
        and math.isfinite(value)
        and ".avg.pct_of_peak_sustained" in name
        and "occupancy" not in name
    ]
    if over:
        value, name = max(over)
        yield (
            f"{name} is {value:.0f} % of its peak, which cannot be: counters of different passes met, or the "
            "peak is not the hardware's. It is taken as full."
        )


def _source(work: Work) -> Iterator[str]:
    unread = work.profile.source.unread
    if work.worked_out:
        yield (
            "How often each instruction ran is worked out: a warp goes through the code once, and through its loops as "
            "often as all instructions that were issued need; the units' counters agree with that."
        )
    if unread:
        yield f"Its code was not disassembled: {unread}. What its instructions cost cannot be attributed."
    elif work.program is None:
        if metrics.INSTRUCTIONS_BY_ADDRESS in work.profile.instances and not runs_elsewhere(work.profile):
            yield (
                "The code of the kernel is not in the report: what its instructions cost cannot "
                "be attributed."
            )
    elif not any(line.file for line in work.instructions):
        yield f"No line information: places are instructions.{_how_to_see_lines(work.profile)}"
    elif not any(work.profile.source.files.values()):
        yield "No source in the report: lines have numbers only. Use --import-source yes to see their text."


def _how_to_see_lines(profile: KernelProfile) -> str:
    """What whoever compiles a kernel does for it; '' where that is not the reader."""
    if not owner_of(profile).editable:
        return ""
    numba = profile.name.startswith(NUMBA)
    return f" {'Use @cuda.jit(lineinfo=True)' if numba else 'Compile with -lineinfo'} to see lines."
