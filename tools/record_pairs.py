#!/usr/bin/env python3
"""Record the corpus of pairs: build, verify, time and profile every kernel of tests/cuda/pairs on this machine's GPU.

A pair is one kernel with a flaw and the same work without it (docs/corpus.md). Sides of a pair must agree in their
results; they are timed interleaved in one process with a cold L2, then each is profiled once. The ceilings of
tests/cuda/ceilings are recorded the same way. Needs nvcc, ncu and, for the Triton and torch kernels, torch.

Usage: record_pairs.py OUTPUT [--only FAMILY[=SIZE] ...] [--budget SECONDS] [--without-frameworks]

Writes OUTPUT/pairs/*.ncu-rep.xz, OUTPUT/pairs/outcomes.json and OUTPUT/pairs/ceilings.json: copy the folder to
tests/data/pairs.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import recording
from recording import ROOT

# Reports keep the paths of sources: build in a place that is the same on every machine.
BUILD = Path("/tmp/gemmprof-pairs")
NVCC = ("nvcc", "-O3", "-std=c++17", "-lineinfo", "-diag-suppress=128,177")
LADDER = ("naive", "coalesced", "shared", "block1d", "block2d", "vectorized", "linearized", "padded")
# What `ncu --set full` collects, less what is only bulk (samples over time, the tensor roofline's thousands)
# or about links between GPUs. The sections are taken without gemmprof.metrics.LEAN_WITHOUT, for fewer passes; of the
# cache tables that this leaves out, what is read is asked for by name.
SECTIONS = (
    "SpeedOfLight", "SpeedOfLight_RooflineChart", "SpeedOfLight_HierarchicalSingleRooflineChart",
    "SpeedOfLight_HierarchicalHalfRooflineChart", "SpeedOfLight_HierarchicalDoubleRooflineChart", "Occupancy",
    "LaunchStats", "WorkloadDistribution", "InstructionStats", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats",
    "SourceCounters",
)  # fmt: skip
OF_TABLES = (
    *(f"l1tex__t_{what}_pipe_lsu_mem_{op}.sum"
      for what in ("requests", "sectors")
      for op in ("global_op_ld", "global_op_st", "global_op_atom", "global_op_red", "local_op_ld", "local_op_st")),
    *(f"l1tex__t_sectors_pipe_lsu_mem_{op}_lookup_miss.sum" for op in ("global_op_ld", "local_op_ld", "local_op_st")),
    *(f"l1tex__t_sector_pipe_lsu_mem_{op}_hit_rate.pct" for op in ("global_op_ld", "local_op_ld")),
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum",
    *(f"l1tex__m_l1tex2xbar_write_sectors_mem_{op}.sum" for op in ("lg_op_st", "global_op_red", "global_op_atom")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")),
    "lts__t_sector_hit_rate.pct",
    "lts__t_sector_op_read_hit_rate.pct",
    *(f"lts__t_sectors_srcunit_tex_{what}.sum" for what in ("op_red", "op_atom", "lookup_hit", "lookup_miss")),
    *(f"lts__d_atomic_input_cycles_active.{of}.pct_of_peak_sustained_elapsed" for of in ("avg", "max")),
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "idc__requests.sum",
)  # fmt: skip
NCU = (
    "ncu", "--clock-control", "none", "--profile-from-start", "off", "--import-source", "yes", "--force-overwrite",
    *(word for section in SECTIONS for word in ("--section", section)), "--metrics", ",".join(OF_TABLES),
)  # fmt: skip
SIZES = {"all": slice(None), "largest": slice(-1, None), "smaller": slice(-1)}

# What ceilings.json keeps of a ceiling's report: how much of each peak was reached, where it is worth a word, and
# cycles and clock, which turn times into cycles.
OF_PEAK = re.compile(r"\.avg\.pct_of_peak_sustained_(?:elapsed|active)$")
LEAST_SHARE = 2.0
MUCH_SLOWER = 1.05
CYCLES = ("gpu__time_duration.sum", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second")

Record = dict[str, Any]


def build() -> dict[str, tuple[str, ...]]:
    """Compile everything at once; return the programs' commands. Ends the process where the compiler fails."""
    from gemmprof.kernels.catalog import SINGLE

    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "cuda", BUILD / "cuda")
    units = {
        source.stem: (source, ("-I", str(ROOT / "kernels" / "include")))
        for folder in ("pairs", "ceilings")
        for source in sorted((BUILD / "cuda" / folder).glob("*.cu"))
    }
    for stage in SINGLE.stages:
        if stage.name in LADDER and stage.source:
            options = (f"-DGEMMPROF_STAGE={stage.name}", *(f"-D{k}={v}" for k, v in stage.parameters.items()))
            source = ROOT / "kernels" / stage.source
            units[f"stage_{stage.name}"] = (source, ("-I", str(ROOT / "kernels" / "include"), *options))

    objects = {name: str(BUILD / f"{name}.o") for name in units}
    commands = {
        name: (*NVCC, "-arch=native", *options, "-c", str(source), "-o", objects[name])
        for name, (source, options) in units.items()
    }
    if failures := recording.compiled(commands):
        sys.exit("\n".join(failures))
    programs = {"pairs": [name for name in units if name != "ceilings"], "ceilings": ["main", "ceilings"]}
    for program, names in programs.items():
        subprocess.run(["nvcc", "-o", str(BUILD / program), *map(objects.__getitem__, names)], check=True)
    return {program: (str(BUILD / program),) for program in programs}


def run(command: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run in the build folder, to the end or to the timeout."""
    return recording.run_to_end(command, timeout, folder=BUILD)


def main() -> int:
    """Record; return 1 where something failed, after saving all that did not."""
    parser = recording.options_of(__doc__)
    parser.add_argument("output", type=Path, help="folder to write into")
    parser.add_argument("--only", nargs="+", metavar="FAMILY[=SIZE]", help="record these alone")
    parser.add_argument(
        "--sizes", choices=SIZES, default="all", help="of each family: all, the largest or all smaller ones"
    )
    parser.add_argument(
        "--suffix", default="", help="of the reports' names, to add to what OUTPUT holds already"
    )
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds for everything (default: 3600)")
    parser.add_argument(
        "--without-frameworks", action="store_true", help="leave out Triton's and torch's kernels"
    )
    parser.add_argument("--measure-only", action="store_true", help="stop before reading the reports")
    parser.add_argument(
        "--summarise", action="store_true", help="only read what --measure-only has left in OUTPUT"
    )
    options = parser.parse_args()
    folder = options.output.resolve() / "pairs"
    folder.mkdir(parents=True, exist_ok=True)
    problems = [] if options.summarise else measure(folder, options)
    if not options.measure_only:
        write(folder)
    return int(bool(problems))


def lean_sections(folder: Path) -> tuple[str, ...]:
    """ncu's option for a copy of its sections that takes fewer passes; none where the installation is not found."""
    from gemmprof import metrics
    from gemmprof.gpu.devices import ncu_installation
    from gemmprof.profiler.ncu.command import write_lean_sections

    installation = ncu_installation()
    folder.mkdir()
    if installation and write_lean_sections(installation / "sections", folder, metrics.LEAN_WITHOUT):
        return ("--section-folder", str(folder))
    return ()


def chosen_groups(
    commands: dict[str, tuple[str, ...]], only: Sequence[str] | None, sizes: str
) -> tuple[dict[str, tuple[tuple[str, ...], list[str]]], list[Record]]:
    """What to record, by the file that holds the kernels (its command, FAMILY=SIZE words), and the families of it."""
    groups: dict[str, tuple[tuple[str, ...], list[str]]] = {}
    families: list[Record] = []
    for command in commands.values():
        for family in recording.lines_of(run((*command, "list"), 120).stdout):
            # A sweep of a ceiling is one piece.
            chosen = SIZES[sizes] if family["rows"] else slice(0 if sizes == "smaller" else None)
            names = [f"{family['family']}={size}" for size in family["sizes"][chosen]]
            if only and family["family"] not in only:
                names = [name for name in names if name in only]
            if names:
                groups.setdefault(family["file"], (command, []))[1].extend(names)
                families.append(family)
    return dict(sorted(groups.items())), families


def measure(folder: Path, options: argparse.Namespace) -> list[str]:
    """Build, time and profile; leave the reports and times*.json in ``folder``; return what went wrong."""
    kept = recording.Recording(options.budget)
    commands = build()
    if not options.without_frameworks:
        commands["frameworks"] = (sys.executable, str(BUILD / "cuda" / "pairs" / "frameworks.py"))
    kept.say("built")
    groups, families = chosen_groups(commands, options.only, options.sizes)
    times: list[Record] = []
    launches: list[Record] = []

    def save() -> None:
        content = {"families": families, "times": times, "launches": launches}
        content |= {"versions": recording.versions()}
        (folder / f"times{options.suffix}.json").write_text(json.dumps(content), encoding="utf-8")

    for name, (command, chosen) in groups.items():
        result = run((*command, "time", *chosen), kept.left())
        found = recording.lines_of(result.stdout)
        times += [line for line in found if "family" in line]
        for line in found:
            if not line.get("agrees", True):
                kept.problem(f"{line['family']} {line['size']} {line['side']}: error {line['error']:.3g}")
        if result.returncode:
            kept.problem(f"timing {name} {recording.ended(result)}")
        empty = next((line["empty_launch_ns"] for line in found if "empty_launch_ns" in line), None)
        kept.say(f"timed {name} (an empty launch: {empty} ns)")
    save()
    # Of latencies and sweeps the times are what counts.
    unprofiled = {
        f["family"] for f in families if not f["rows"] and (f["kernel"] == "dependent" or len(f["sizes"]) > 5)
    }
    ncu = (*NCU, *lean_sections(BUILD / "sections"))
    with ThreadPoolExecutor(2) as pool:
        packing: list[Future[int]] = []
        for name, (command, chosen) in groups.items():
            if kept.left() < 5:
                kept.problem(f"no time left to profile {name}")
                continue
            report = BUILD / f"{name}{options.suffix}.ncu-rep"
            wanted = [word for word in chosen if word.split("=")[0] not in unprofiled]
            result = run((*ncu, "--export", str(report), *command, "profile", *wanted), kept.left())
            found = [line for line in recording.lines_of(result.stdout) if "family" in line]
            passes, count = recording.passes_of(result), recording.launches_of(result)
            if count != len(found) or result.returncode:
                counted = f"{count} launches for {len(found)} sides"
                kept.problem(f"profiling {name}: {counted}, {recording.ended(result)}")
            launches += [{**line, "report": f"{report.name}.xz", "launch": i} for i, line in enumerate(found)]
            save()
            if report.exists():
                target = folder / f"{report.name}.xz"
                packing.append(pool.submit(recording.compress, report, target, preset=9))
                size = report.stat().st_size / 1e6
                most = max(passes, default=0)
                kept.say(f"profiled {name}: {count} launches, {most} passes at most, {size:.0f} MB")
        for task in packing:
            task.result()
    kept.say("packed")
    return kept.problems


# What came out of it: outcomes.json and ceilings.json (docs/corpus.md), from times*.json and the reports


def outcomes(families: Iterable[Record], times: Iterable[Record], launches: Iterable[Record]) -> list[Record]:
    """One record a row and size, as docs/corpus.md documents them; rows with a side missing are left out."""
    timed = {(t["family"], t["size"], t["side"]): t for t in times}
    profiled = {(p["family"], p["size"], p["side"]): p for p in launches}

    def side(key: tuple[str, int, str]) -> Record:
        t, p = timed[key], profiled[key]
        return {"report": p["report"], "launch": p["launch"], "time_ns": t["time_ns"], "spread": t["spread"],
                "launches": t["launches"], "side": key[2]}  # fmt: skip

    rows = []
    for family in families:
        for size in family["sizes"]:
            for row in family["rows"]:
                before, after = ((family["family"], size, row[end]) for end in ("from", "to"))
                if not {before, after} <= timed.keys() & profiled.keys():
                    continue
                way = f":{row['from']}>{row['to']}" if len(family["rows"]) > 1 else ""
                flawed, mended = side(before), side(after)
                # Slower without the flaw: at this size the change brings another flaw along (a small grid, say).
                kind = "not_mended" if mended["time_ns"] > MUCH_SLOWER * flawed["time_ns"] else row["kind"]
                head = {"pair": f"{family['family']}{way}", "kernel": family["kernel"], "size": str(size)}
                rest = {"kind": kind, "causes": row["causes"], "flawed": flawed, "mended": mended}
                rows.append(head | rest)
    return rows


def ceilings(
    folder: Path, times: Sequence[Record], launches: Sequence[Record], units: dict[str, str]
) -> list[Record]:
    """One record a ceiling and size: the time, what was done in it and, where profiled, how much of each peak."""
    from gemmprof.analysis.reading.report import read_report

    reports = {name: read_report(folder / name) for name in {p["report"] for p in launches}}
    profiled = {(p["family"], p["size"]): p for p in launches}
    records = []
    for t in times:
        record = {"ceiling": t["family"], "size": t["size"], "unit": units[t["family"]], "amount": t["amount"],
                  "time_ns": t["time_ns"], "spread": t["spread"]}  # fmt: skip
        if p := profiled.get((t["family"], t["size"])):
            metrics = reports[p["report"]][p["launch"]].metrics
            record |= {"report": p["report"], "launch": p["launch"], "metrics": reached(metrics)}
        records.append(record)
    return records


def reached(metrics: Mapping[str, object]) -> dict[str, float]:
    """The shares of peaks of a launch, in per cent, that are worth a word, and its cycles."""
    numbers = {name: value for name, value in sorted(metrics.items()) if isinstance(value, int | float)}
    shares = {n: round(v, 3) for n, v in numbers.items() if OF_PEAK.search(n) and v >= LEAST_SHARE}
    return shares | {name: round(numbers[name], 1) for name in CYCLES if name in numbers}


def write(folder: Path) -> None:
    """Make outcomes.json and ceilings.json of what was measured (times*.json) and the reports."""
    measured: Record = {"families": {}, "times": [], "launches": []}
    for file in sorted(folder.glob("times*.json")):
        part = json.loads(file.read_text(encoding="utf-8"))
        measured["families"] |= {family["family"]: family for family in part["families"]}
        measured["times"] += part["times"]
        measured["launches"] += part["launches"]
        measured["versions"] = part["versions"]
    measured["families"] = list(measured["families"].values())
    is_ceiling = {family["family"]: not family["rows"] for family in measured["families"]}
    head = measured["versions"]

    def split(records: Iterable[Record], wanted: bool) -> list[Record]:
        return [record for record in records if is_ceiling[record["family"]] == wanted]

    def dump(name: str, content: Record, key: str) -> None:
        lines = ",\n".join(json.dumps(record) for record in content.pop(key))
        text = json.dumps(content)[:-1] + f', "{key}": [\n{lines}\n]}}\n'
        (folder / name).write_text(text, encoding="utf-8")

    families, times, launches = (measured[name] for name in ("families", "times", "launches"))
    pairs = outcomes(families, split(times, False), split(launches, False))
    dump("outcomes.json", {"format": "gemmprof.pairs/1", **head, "pairs": pairs}, "pairs")
    units = {family["family"]: family["kernel"] for family in families}
    if found := ceilings(folder, split(times, True), split(launches, True), units):
        dump("ceilings.json", {"format": "gemmprof.ceilings/1", **head, "ceilings": found}, "ceilings")
    for row in pairs:
        saved = 1.0 - row["mended"]["time_ns"] / row["flawed"]["time_ns"]
        took = row["flawed"]["time_ns"] / 1e3
        why = f"{'+'.join(row['causes'])} ({row['kind']})"
        print(f"{row['pair']:40} {row['size']:>9} {took:9.1f} us  saved {100 * saved:5.1f} %  {why}")


if __name__ == "__main__":
    sys.exit(main())
