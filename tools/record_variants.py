#!/usr/bin/env python3
"""Record the studies: build, verify, time and profile every kernel of a set on this machine's GPU.

A set is a folder of tests/cuda, one of `SETS` or `OF_ONE_CAUSE`; docs/corpus.md tells what each holds and which are
known by now.

A study is a kernel as people write it, with one flaw, and two or three ways to remove it (docs/corpus.md). Each study
is verified in a process of its own first, so that one that fails takes no other along; then all are timed in random
turns with a cold L2, then each side is profiled once.

Usage: record_variants.py OUTPUT [--set SET] [--only STUDY ...] [--budget SECONDS] [--full] [--check-only]
       record_variants.py --build [--set SET]     compile into build/SET, to be carried to a machine with a GPU

Writes OUTPUT/studies.json and OUTPUT/*.ncu-rep.xz; where the time does not suffice, the last studies are left out.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import recording as tools
from record_pairs import BUILD, NCU, NVCC, lean_sections, run
from recording import ARCHITECTURE, ROOT, Recording, compress, ended, lines_of

SETS = (
    "variants",
    *(f"blind{number}" for number in range(2, 12)),
    "triton",
    *(f"blind{number}" for number in range(12, 26)),
    "idioms",
    "blind26",
    "siblings",
    "blind27",
    "blind28",
    "blind29",
    "blind30",
    "blind31",
)
"""In the order in which they were written; the last is the one judged at first sight (tools/score_studies.py)."""
OF_ONE_CAUSE = ("constants",)
"""Written with one cause in mind, by who wrote its rule: no sum of docs/explain_scores.md has them."""
FULL = (*NCU[: NCU.index("--section")], "--set", "full")
# Of one ncu process: enough that its start costs little, few enough that a failure takes few along.
LAUNCHES_EACH = 50

Record = dict[str, Any]


def build(studies: str, folder: Path) -> list[str]:
    """Compile a set of studies into ``folder``; return what the compiler complained about."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = [BUILD / "cuda" / "pairs" / "main.cu", *sorted((BUILD / "cuda" / studies).glob("*.cu"))]
    objects = [folder / f"{source.stem}.o" for source in sources]
    commands = {
        source.name: (*NVCC, ARCHITECTURE, "-c", str(source), "-o", str(made))
        for source, made in zip(sources, objects, strict=True)
    }
    failures = tools.compiled(commands)
    if not failures:
        subprocess.run(["nvcc", ARCHITECTURE, "-o", str(folder / "variants"), *map(str, objects)], check=True)
    for made in objects:
        made.unlink(missing_ok=True)
    return failures


def bunches(studies: list[Record]) -> list[list[Record]]:
    """The studies in the order of recording, by their program and in pieces of about as many launches."""
    ordered = sorted(studies, key=lambda study: (study["program"], study["family"]))
    found: list[list[Record]] = []
    for study in ordered:
        last = found[-1] if found else []
        full = sum(len(one["rows"]) + 1 for one in last) + len(study["rows"]) + 1 > LAUNCHES_EACH
        if not last or full or last[0]["program"] != study["program"]:
            found.append([])
        found[-1].append(study)
    return found


def profiled(printed: str, report: str) -> list[Record]:
    """Which launches of a report are each side's: those that ncu announced before the side's line.

    A library may launch several kernels for one call; ``launch`` is the first, ``launches`` how many.
    """
    found, seen, before = [], 0, 0
    for line in printed.splitlines():
        if line.startswith("==PROF== Profiling "):
            seen += 1
        elif line.startswith("{") and "side" in (side := json.loads(line)):
            found.append({**side, "report": report, "launch": before, "launches": seen - before})
            before = seen
    return found


def outcomes(studies: list[Record], times: list[Record], launches: list[Record]) -> list[Record]:
    """One record a study, as docs/corpus.md documents them; fixes that failed or were not profiled are left out."""
    timed = {(t["family"], t["side"]): t for t in times if t["agrees"]}
    profiled = {(p["family"], p["side"]): p for p in launches}

    def side(name: str, which: str) -> Record:
        t, p = timed[name, which], profiled[name, which]
        return (
            {"side": which}
            | {key: p[key] for key in ("report", "launch", "launches")}
            | {key: t[key] for key in ("time_ns", "spread", "repetitions", "error")}
        )

    found = []
    for study in sorted(studies, key=lambda one: str(one["family"])):
        name, there = study["family"], timed.keys() & profiled.keys()
        if (name, study["rows"][0]["from"]) not in there:
            continue
        record = {"study": name} | {key: study[key] for key in ("domain", "about", "flaw", "file")}
        record |= {"size": study["sizes"][0], "kernel": side(name, study["rows"][0]["from"])}
        fixes = [row for row in study["rows"] if (name, row["to"]) in there]
        record["fixes"] = [
            {key: row[key] for key in ("transformation", "causes")} | side(name, row["to"]) for row in fixes
        ]
        found.append(record)
    return found


def clocks(log: str) -> Record:
    """Median and range of the multiprocessors' clock, in MHz, while it worked."""
    seen = [int(number) for number in re.findall(r"^(\d+)$", log, re.MULTILINE)]
    busy = [mhz for mhz in seen if mhz > 0.5 * max(seen)]
    return {"median": statistics.median(busy), "least": min(busy), "most": max(busy)} if busy else {}


class Studies(Recording):
    """What was found so far, saved after each step."""

    def __init__(self, folder: Path, budget: float) -> None:
        super().__init__(budget)
        self.folder = folder
        self.studies: list[Record] = []
        self.times: list[Record] = []
        self.launches: list[Record] = []
        self.head: Record = {"format": "gemmprof.studies/1", **tools.versions()}

    def save(self) -> None:
        """Write what there is by now."""
        content = {**self.head, "problems": self.problems}
        content["studies"] = outcomes(self.studies, self.times, self.launches)
        (self.folder / "studies.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        raw = {"studies": self.studies, "times": self.times, "launches": self.launches}
        (self.folder / "raw.json").write_text(json.dumps(raw), encoding="utf-8")

    def list(self, programs: dict[str, tuple[str, ...]], only: list[str] | None) -> None:
        """Which studies there are, each with its program."""
        for name, command in programs.items():
            result = run((*command, "list"), 60)
            found = [one | {"program": name} for one in lines_of(result.stdout)]
            if not found:
                self.problem(f"{name} lists nothing: {ended(result)}")
            self.studies += [one for one in found if not only or one["family"] in only]

    def check(self, programs: dict[str, tuple[str, ...]]) -> None:
        """Run every side of every study once; leave out what fails."""

        def check_one(study: Record) -> tuple[Record, subprocess.CompletedProcess[str]]:
            return study, run((*programs[study["program"]], "check", study["family"]), 60)

        sound = []
        with ThreadPoolExecutor(8) as pool:
            for study, result in pool.map(check_one, self.studies):
                found = [line for line in lines_of(result.stdout) if "side" in line]
                for line in found:
                    if not line["agrees"]:
                        self.problem(f"{line['family']} {line['side']}: error {line['error']:.3g}")
                if result.returncode or len(found) != 1 + sum(bool(row["to"]) for row in study["rows"]):
                    self.problem(f"{study['family']} {ended(result)}")
                else:
                    sound.append(study)
        self.studies = sound
        self.say(f"checked: {len(sound)} studies run")

    def lean_sections(self) -> tuple[str, ...]:
        """ncu's option for sections of fewer passes; none where the packages that gemmprof needs are missing."""
        try:
            return lean_sections(BUILD / "sections")
        except ImportError as error:
            self.problem(f"{error}: profiled with ncu's own sections, which takes longer")
            return ()

    def time(self, programs: dict[str, tuple[str, ...]]) -> None:
        """Time all studies, one process a program, while nvidia-smi writes down the clock."""
        watch = subprocess.Popen(
            ("nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-lms", "200"),
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        for name, command in programs.items():
            wanted = [study["family"] for study in self.studies if study["program"] == name]
            if not wanted:
                continue
            result = run((*command, "time", *wanted), self.left())
            found = lines_of(result.stdout)
            self.times += [line for line in found if "side" in line]
            self.head |= {key: line[key] for line in found for key in line if key == "empty_launch_ns"}
            if result.returncode:
                self.problem(f"timing {name} {ended(result)}")
            self.say(f"timed {name}: {len(self.times)} sides so far")
        watch.terminate()
        self.head["clocks_mhz"] = clocks(watch.communicate()[0])
        self.save()

    def profile(self, programs: dict[str, tuple[str, ...]], ncu: tuple[str, ...]) -> None:
        """Profile every side once, bunch by bunch, as long as there is time; pack the reports meanwhile."""
        packing: list[Future[int]] = []
        with ThreadPoolExecutor(2) as pool:
            for number, bunch in enumerate(bunches(self.studies), 1):
                names = [study["family"] for study in bunch]
                if self.left() < 15:
                    self.problem(f"no time left to profile {' '.join(names)}")
                    continue
                report = BUILD / f"part{number}.ncu-rep"
                command = (*ncu, "--export", str(report), *programs[bunch[0]["program"]], "profile", *names)
                result = run(command, self.left() - 10)
                launches = profiled(result.stdout, f"{report.name}.xz")
                count = sum(one["launches"] for one in launches)
                if result.returncode:
                    self.problem(f"{report.name}: {ended(result)}")
                for one in launches:
                    if one["launches"] != 1:
                        count_of = f"{one['family']} {one['side']}: {one['launches']} launches"
                        self.problem(f"{count_of}, the report's first is named")
                self.launches += [one for one in launches if one["launches"]]
                if report.exists():
                    packing.append(pool.submit(compress, report, self.folder / f"{report.name}.xz", preset=9))
                most = max(tools.passes_of(result), default=0)
                self.say(f"profiled {report.name}: {count} launches, {most} passes at most")
                self.save()
        self.say(f"packed: {sum(task.result() for task in packing) / 1e6:.1f} MB")


def main() -> int:
    """Record; return 1 where something failed, after saving all that did not."""
    parser = tools.options_of(__doc__)
    parser.add_argument("output", type=Path, nargs="?", help="folder to write into")
    parser.add_argument(
        "--set", choices=(*SETS, *OF_ONE_CAUSE), default=SETS[0], help="which studies (default: variants)"
    )
    parser.add_argument("--build", action="store_true", help="only compile into build/SET")
    parser.add_argument("--only", nargs="+", metavar="STUDY", help="these alone")
    parser.add_argument("--budget", type=float, default=270.0, help="seconds for everything (default: 270)")
    parser.add_argument(
        "--full", action="store_true", help="ncu's full set; otherwise what the pairs were recorded with"
    )
    parser.add_argument("--check-only", action="store_true", help="verify only")
    parser.add_argument(
        "--without-frameworks", action="store_true", help="leave out Triton's and torch's kernels"
    )
    options = parser.parse_args()
    shutil.rmtree(BUILD, ignore_errors=True)
    # Reports hold the paths of sources: where they are built, there they must lie when they are profiled.
    shutil.copytree(ROOT / "tests" / "cuda", BUILD / "cuda")
    program = ROOT / "build" / options.set / "variants"
    cuda = any((ROOT / "tests" / "cuda" / options.set).glob("*.cu"))  # a set may be of frameworks alone
    if options.build or (cuda and not program.exists()):
        failures = build(options.set, program.parent) if cuda else []
        if failures or options.build:
            print("\n".join(failures) or (program if cuda else "nothing to compile"))
            return bool(failures)
    if not options.output:
        parser.error("say where to write, or --build")
    options.output.mkdir(parents=True, exist_ok=True)
    recording = Studies(options.output.resolve(), options.budget)
    programs: dict[str, tuple[str, ...]] = {"variants": (str(program),)} if cuda else {}
    if not options.without_frameworks:
        scripts = sorted((BUILD / "cuda" / options.set).glob("*frameworks.py"))
        programs |= {script.stem: (sys.executable, str(script)) for script in scripts}
    recording.list(programs, options.only)
    recording.check(programs)
    if not options.check_only:
        recording.time(programs)
        recording.profile(programs, FULL if options.full else (*NCU, *recording.lean_sections()))
    recording.save()
    recording.say(f"{len(recording.problems)} problems")
    return int(bool(recording.problems))


if __name__ == "__main__":
    sys.exit(main())
