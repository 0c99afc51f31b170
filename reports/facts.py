"""Small facts that several pages and tables state about a launch or a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from gemmprof import metrics
from gemmprof.analysis.explanation.trust import NOT_PROFILED, of_several
from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.session import Session
from gemmprof.model import KernelProfile
from gemmprof.reports import formatting
from gemmprof.reports.pages.contents import KernelPage
from gemmprof.reports.words import conclusion, is_known
from gemmprof.runs.directory import Run

Tile = tuple[str, str, str]  # name, value, and a remark below it ('' if none)


def achieved_occupancy(analysis: KernelAnalysis) -> float | None:
    """Warps that were active on an SM, per cent of the most that it can hold; None where the occupancy section is."""
    found: float | None = analysis.field(LaunchOccupancy, "achieved_percent")
    return found


def limited_by(analysis: KernelAnalysis) -> str:
    """What holds a launch back in a few words, '' where nothing is known that would say it."""
    return analysis.verdict.limited_by if isinstance(analysis.get(SpeedOfLight), SpeedOfLight) else ""


def gpu_index(profile: KernelProfile) -> int | None:
    """Which of its GPUs the program launched on, by CUDA's index; None if not collected."""
    index = profile.number(metrics.DEVICE_ID)
    return None if index is None else int(index)


def process_of(profile: KernelProfile) -> int | None:
    """The process that launched, of a report of several; else None."""
    return profile.session.process if profile.session.processes > 1 else None


def collected_with(session: Session) -> dict[str, str]:
    """Clocks, versions and date of a session's reports by their names; what was not noted is absent."""
    sessions = [kernel.profile.session for kernel in session.kernels]
    known: dict[str, str] = {}
    clocks = [clock for one in session.kernels if (clock := one.field(SpeedOfLight, "sm_clock_hz"))]
    if clocks:
        low, high = formatting.hertz(min(clocks)), formatting.hertz(max(clocks))
        known["SM clock under the profiler"] = (
            low if low == high else f"{formatting.hertz(median(clocks))} in the middle, {low} to {high}"
        )
    ncu = ("Nsight Compute", "Nsight Compute Target", "Nsight Compute")
    for title, *names in (ncu, ("CUDA", "CUDA Version"), ("Driver", "Display Driver Version")):
        found = (next(filter(None, map(one.versions.get, names)), "") for one in sessions)
        known[title] = ", ".join(dict.fromkeys(version.partition(" ")[0] for version in found if version))
    moments = sorted(one.moment for one in sessions if one.moment is not None)
    ends = (formatting.moment(one.isoformat()) for one in (*moments[:1], *moments[-1:]))
    known["Profiled"] = " to ".join(dict.fromkeys(ends))
    return {name: value for name, value in known.items() if value}


def headline(session: Session) -> str:
    """Title, number of launches, GPU."""
    devices = list(dict.fromkeys(kernel.profile.device.name for kernel in session.kernels))
    return " · ".join([session.title, session.counts, *devices[:2]])


def facts(session: Session) -> str:
    """Time on the GPU, clocks, ncu, date: what a reader needs to trust the rest."""
    total = sum(family.total_ns or 0.0 for family in session.by_time)
    known = collected_with(session)
    words = {"SM clock under the profiler": "SM clock ", "Nsight Compute": "ncu ", "Profiled": ""}
    parts = [f"{formatting.nanoseconds(total)} under the profiler"] if total else []
    return " · ".join([*parts, *(f"{word}{known[name]}" for name, word in words.items() if name in known)])


def whose(profile: KernelProfile) -> str:
    """Of a report of several processes a launch's, and its GPU if collected: ``process 2220 on GPU 1``; else ''."""
    process = process_of(profile)
    if process is None:
        return ""
    index = gpu_index(profile)
    return f"process {process}" + ("" if index is None else f" on GPU {index}")


def counters_of(analysis: KernelAnalysis) -> list[tuple[str, str, str]]:
    """What ncu measured of a launch beside its duration: name, value in base units, unit."""
    profile, duration = analysis.profile, metrics.DURATION.partition(".")[0]
    names = metrics.counters(profile.metrics) if profile.profiled else ()
    found = ((name, profile.metrics[name]) for name in names if not name.startswith(duration))
    numbers = ((name, value) for name, value in found if not isinstance(value, str))
    return [(name, formatting.raw_value(value), profile.units.get(name, "")) for name, value in numbers]


def nothing_found(session: Session, found: Sequence[Family], little: str = "") -> str:
    """Where no family has a finding: what the longest one's time goes to or that it is a debug build; if that is known
    of none, how to come to know it, unless what was collected too ``little`` of says that.
    """
    known = [session.explanation(family.representative) for family in found]
    first = next((at for at, one in enumerate(known) if is_known(one)), None)
    if first is None:
        return "" if little else unexplained(session.kernels)
    said = conclusion(known[first])
    return said if len(session.by_time) == 1 else f"{found[first].id}: {said}"


def unexplained(kernels: Iterable[KernelAnalysis]) -> str:
    """What to say of launches of which nothing is known that would explain their time."""
    kernels = list(kernels)
    if not any(kernel.profile.profiled for kernel in kernels):
        return NOT_PROFILED
    if all(kernel.profile.one_by_one for kernel in kernels):
        return of_several(kernels[0].profile)
    count = max((len(counters_of(kernel)) for kernel in kernels), default=0)
    remedy = "`gemmprof profile` or ncu --set full collects what explains the time."
    if not count:
        timed = any(kernel.profile.number(metrics.DURATION) for kernel in kernels)
        return f"{'Only durations were' if timed else 'Neither times nor counters were'} collected: {remedy}"
    if count == 1:
        return f"Of a launch one counter was collected, which alone does not explain its time: {remedy}"
    return f"Of a launch {count:,} counters were collected, which alone do not explain its time: {remedy}"


def tiles(page: KernelPage) -> list[Tile]:
    """The key figures at the top of a kernel page; what is not known is left out."""
    if not page.analysis.profile.profiled:
        return []
    return [tile for tile in _all_tiles(page) if not tile[1].startswith("–")]


def _all_tiles(page: KernelPage) -> Iterator[Tile]:
    from gemmprof.reports.pages.environment import with_formula  # a terminal needs no jinja2

    analysis = page.analysis.traced
    light = analysis.get(SpeedOfLight)
    launch = page.analysis.profile.launch
    yield "Code", owner_of(page.analysis.profile).title, "known by its name and lines"
    if page.timing is not None:
        spread = f"{formatting.seconds(page.timing.p10)} to {formatting.seconds(page.timing.p90)} (p10, p90)"
        yield "Time", formatting.seconds(page.timing.median), spread
    if page.tflops is not None:
        yield "Speed", formatting.flops(page.tflops * 1e12), "at the median time"
    if page.of_yardstick is not None:
        yield "Of cuBLAS", formatting.ratio(page.of_yardstick), "in the same run"
    if isinstance(light, SpeedOfLight):
        duration = with_formula(formatting.nanoseconds)(light.duration_ns)
        yield "Under the profiler", duration, "by Nsight Compute, caches flushed"
        yield "Compute", with_formula(formatting.percent)(light.sm_percent), "of peak throughput"
        yield "Memory", with_formula(formatting.percent)(light.memory_percent), "of peak throughput"
    theoretical = page.analysis.field(LaunchOccupancy, "theoretical_percent")
    possible = "" if theoretical is None else f", {formatting.occupancy(theoretical)} possible"
    achieved = with_formula(formatting.occupancy)(achieved_occupancy(analysis))
    yield "Occupancy", achieved, f"achieved{possible}"
    registers = analysis.results["launch"].registers_per_thread
    yield "Registers", with_formula(formatting.number)(registers), "per thread"
    yield "Grid", formatting.dimensions(launch.grid), f"blocks of {formatting.dimensions(launch.block)}"
    if page.result is not None and page.result.verification is not None:
        check = page.result.verification
        title = "Verified" if check.passed else "Verification failed"
        yield title, f"{check.relative_error:.1e}", f"relative error, {check.tolerance:.0e} allowed"


VERSIONS = {
    "driver": "Driver",
    "cuda": "CUDA",
    "torch": "PyTorch",
    "ncu": "Nsight Compute",
    "python": "Python",
}


def run_facts(run: Run) -> list[tuple[str, str]]:
    """Where and how a run was made: pairs of a name and a text (untrusted)."""
    info = run.info
    timings = (result.timing for result in run.results if result.timing is not None)
    clocks = sorted({round(one.sm_clock_mhz) for one in timings if one.sm_clock_mhz is not None})
    shapes: dict[str, list[str]] = {problem.types_label: [] for problem in run.problems}
    for problem in sorted(run.problems, key=lambda item: item.flops):
        shapes[problem.types_label].append(problem.shape_label)
    facts = [
        ("GPU", f"{info.device}, compute capability {'.'.join(map(str, info.compute_capability))}"),
        *((f"Shapes in {types} (M×N×K)", ", ".join(of)) for types, of in shapes.items()),
        ("Collected", formatting.moment(info.created)),
    ]
    if clocks:
        span = f"{clocks[0]:,}" if len(clocks) == 1 else f"{clocks[0]:,} to {clocks[-1]:,}"
        facts.append(("SM clock while timing", f"{span} MHz"))
    facts.append(("Clock control under the profiler", info.clock_control))
    facts += [(VERSIONS.get(name, name), str(version)) for name, version in info.versions.items()]
    facts += [("Metric set", info.metric_set), ("Seed", str(info.seed))]
    if info.command:
        facts.append(("Command", info.command))
    skipped = info.notes.get("skipped")
    if isinstance(skipped, Mapping):
        facts += [(f"Not run here: {name}", str(reason)) for name, reason in skipped.items()]
    return facts
