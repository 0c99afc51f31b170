"""`gemmprof profile -- PROGRAM` end to end over a stand-in for ncu that hands out recorded reports."""

from __future__ import annotations

import json
import lzma
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import in_process
import pytest
from json_formats import violations
from profiler_fakes import write_ncu
from recorded_data import DATA
from reports_in_bytes import content_of

from gemmprof.analysis.inputs.selection import expand
from gemmprof.base.documents import ErrorDocument
from gemmprof.profiler.programs import ALL_KERNELS, rank_of
from gemmprof.reports.documents.of_launches import ProfileDocument

NCU = """
here = Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
report, log = Path(value("--export")), Path(value("--log-file"))
plan = json.loads((here / "plan").read_text())["count" if report.stem == "count" else "profile"]
log.write_text(plan["log"])
if plan["report"]:
    report.write_bytes(Path(plan["report"]).read_bytes())
program = arguments[arguments.index("--") + 1 :] if "--" in arguments else plan["program"]
sys.exit(subprocess.run(program).returncode or plan["exit_code"])
"""


class Machine:
    """A folder with a stand-in for ncu, and the command line run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = ["sh", "-c", "echo the program speaks"]
        (folder / "bin").mkdir()
        write_ncu(folder / "bin" / "ncu", NCU)
        self.plans = {
            "count": {"log": "", "report": self.report("train_100"), "exit_code": 0, "program": self.program},
            "profile": {
                "log": "",
                "report": self.report("ladder_simple"),
                "exit_code": 0,
                "program": self.program,
            },
        }

    def report(self, name: str) -> str:
        path = self.folder / f"{name}.ncu-rep"
        path.write_bytes(content_of(name))
        return str(path)

    def run(
        self, *options: str, program: list[str] | None = None, process: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """``process``: in one of its own, whose output the program's own is part of."""
        (self.folder / "bin" / "plan").write_text(json.dumps(self.plans))
        words = self.program if program is None else program
        line = [sys.executable, "-m", "gemmprof", "profile", *options, "--", *words]
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        if not process:
            return in_process.run(line, cwd=self.folder, env=environment)
        return subprocess.run(
            line, capture_output=True, text=True, check=False, cwd=self.folder, timeout=120, env=environment
        )

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "bin" / "calls").read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_cost_first_then_reports_explanation_and_pages(machine: Machine) -> None:
    result = machine.run("-o", "out", process=True)
    assert result.returncode == 1, "39 kernels were chosen and the stand-in profiled three"
    said = result.stderr.splitlines()
    assert said[0].startswith("Counting the launches of: sh -c")
    assert "100 launches of 39 kernels" in said[1] and "673 µs on the GPU" in said[1]
    assert "kernels and grids: 9" in said[2] and "about" in said[2]
    assert "3 of 50 kernels and grids were profiled" in result.stderr
    assert "the program speaks" in result.stdout and "gemm_naive" in result.stdout
    assert (machine.folder / "out" / "sh.ncu-rep").is_file()
    assert (machine.folder / "out" / "pages" / "index.html").is_file()
    assert (machine.folder / "out" / "logs" / "count.ncu-rep.zst").is_file()
    assert [path.name for path in expand([machine.folder / "out"])] == ["sh.ncu-rep"]
    count, profile = machine.calls
    assert "gpu__time_duration.sum" in count[count.index("--metrics") + 1]
    assert "nccl" in count[count.index("--kernel-name") + 1]
    assert profile[profile.index("--target-processes") + 1] == "all"
    assert profile[profile.index("--clock-control") + 1] == "none"
    assert "SourceCounters" in profile and "SpeedOfLight_HierarchicalTensorRooflineChart" in profile


def test_the_words_of_selection_reach_ncu(machine: Machine) -> None:
    result = machine.run("--kernel", "layer_norm", "--nvtx", "forward$", "--cost")
    assert result.returncode == 0
    assert "Profiling 1 launch of 1 kernel and grid: 100.0 % of the time" in result.stderr
    assert len(machine.calls) == 1
    nothing = machine.run("--kernel", "no_such_kernel")
    assert nothing.returncode == 2
    assert "no launch matches --kernel 'no_such_kernel'" in nothing.stderr and "39 kernels" in nothing.stderr


def test_the_most_expensive_come_first(machine: Machine) -> None:
    machine.run("--top", "2", "--no-pages", "-o", "out")
    wanted = machine.calls[1][machine.calls[1].index("--kernel-id") + 1]
    assert wanted.startswith("::regex:^(sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8")


def test_print_command_runs_nothing(machine: Machine) -> None:
    result = machine.run("--print-command", "--set", "full", program=["./not here", "-x", "--", "--json"])
    words = shlex.split(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    assert (
        words[0] == "ncu"
        and words[-4:] == ["./not here", "-x", "--", "--json"]
        and words[words.index("--set") + 1] == "full"
    )
    assert not (machine.folder / "bin" / "calls").exists()


def test_json_holds_the_reports_and_nothing_of_the_program(machine: Machine) -> None:
    machine.plans["count"]["report"] = machine.plans["profile"]["report"]
    result = machine.run("--json", "--no-pages", "--repeat", "2", "-o", "out")
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert violations(record, ProfileDocument) == []
    assert [Path(report).name for report in record["reports"]] == ["sh.ncu-rep", "sh-2.ncu-rep"]
    assert record["launches"] == 3 and record["pages"] is None
    assert "the program speaks" in result.stderr


PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access GPU Performance Counters\n"
)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (PERMISSION, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==WARNING== No kernels were profiled.\n", "launches kernels without the profiler"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", "driver"),
    ],
)
def test_what_ncu_says_is_explained_as_collect_does(machine: Machine, log: str, said: str) -> None:
    machine.plans["count"].update(log=log, report="", exit_code=1)
    result = machine.run()
    assert result.returncode == 2
    assert said in result.stderr and "fix:" in result.stderr
    assert "gemmprof collect" not in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ([], "gemmprof profile -- python train.py"),
        (["./train.py"], "gemmprof profile -- python ./train.py"),
        (["kernel.cu"], "nvcc -O3 -lineinfo kernel.cu -o kernel"),
        (["no-such-program"], "was not found"),
    ],
)
def test_a_program_that_is_none_gets_the_line_that_works(
    machine: Machine, program: list[str], said: str
) -> None:
    (machine.folder / "train.py").write_text("")
    (machine.folder / "kernel.cu").write_text("")
    result = machine.run(program=program)
    assert result.returncode == 2
    assert said in result.stderr


def test_a_folder_that_holds_something_is_not_written_to(machine: Machine) -> None:
    (machine.folder / "out").mkdir()
    (machine.folder / "out" / "mine").write_text("")
    result = machine.run("-o", "out")
    assert result.returncode == 2 and "exists already" in result.stderr


def test_json_without_a_count_is_what_is_declared(machine: Machine) -> None:
    result = machine.run("--json", "--no-count", "-o", "out")
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert violations(record, ProfileDocument) == [] and (machine.folder / record["pages"]).is_file()


def test_an_error_in_json_is_what_is_declared(machine: Machine) -> None:
    machine.plans["count"].update(log=PERMISSION, report="", exit_code=1)
    result = machine.run("--json")
    assert result.returncode == 2
    record = json.loads(result.stdout)
    assert violations(record, ErrorDocument) == []
    assert record["remedies"]


def test_processes_of_a_launcher_are_profiled_together(machine: Machine) -> None:
    """One ncu around torchrun: its children, ranges of all threads, nothing of NCCL, and the user's environment."""
    torchrun = machine.folder / "bin" / "torchrun"
    torchrun.write_text(
        '#!/bin/sh\necho "arguments: $*"; env | grep -c "^NV_NSIGHT\\|^CUDA_INJECTION" ; echo "$MINE"\n'
    )
    torchrun.chmod(0o755)
    program = ["torchrun", "--nproc-per-node", "2", "train.py", "--json"]
    for plan in machine.plans.values():
        plan["program"] = program
    os.environ["MINE"] = "kept"
    try:
        result = machine.run("--no-pages", "-o", "out", program=program)
    finally:
        del os.environ["MINE"]
    assert (machine.folder / "out" / "train.ncu-rep").is_file(), result.stderr
    said = (machine.folder / "out" / "logs" / "train.out.log").read_text().splitlines()
    assert said == ["arguments: --nproc-per-node 2 train.py --json", "0", "kept"]
    assert machine.calls[0][machine.calls[0].index("--kernel-name") + 1] == ALL_KERNELS
    for call in machine.calls:
        assert call[-5:] == program, "the launcher's own options reach it as they are"
        assert call[call.index("--target-processes") + 1] == "all"
        assert call[call.index("--nvtx-push-pop-scope") + 1] == "process"
        assert "--replay-mode" not in call, (
            "ranks wait for each other: the program is not run again for each pass"
        )


RANKED = """
report, log = Path(value("--export")), Path(value("--log-file"))
launched = [subprocess.Popen(["sleep", "60"], env={**os.environ, "RANK": rank}) for rank in "10"]
report.write_bytes((Path(__file__).parent / report.stem).read_bytes())
log.write_text("".join(f"==PROF== Connected to process {one.pid} (python)\\n" for one in launched))
time.sleep(1.0)
for one in launched:
    one.kill()
"""


def test_ranks_are_told_by_what_their_launcher_gave_them(machine: Machine) -> None:
    """Real processes with a rank in their environment, connected to while they run."""
    (machine.folder / "bin" / "ncu").unlink()
    write_ncu(machine.folder / "bin" / "ncu", RANKED)
    for name, report in (("count", "nccl_count"), ("sh", "nccl")):
        content = lzma.decompress((DATA / "processes" / f"{report}.ncu-rep.xz").read_bytes())
        (machine.folder / "bin" / name).write_bytes(content)
    done = machine.run("--top", "3", "--no-pages", "-o", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Ranks: 0 is process (\d+), 1 is process (?!\1)\d+$", done.stderr, re.MULTILINE)
    record = json.loads(done.stdout)
    assert violations(record, ProfileDocument) == []
    assert [(one["process"], one["gpu"], one["rank"]) for one in record["processes"]] == [
        (2219, 0, None),
        (2220, 1, None),
    ], "other processes than those that live here"


def test_a_rank_is_read_from_a_running_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "5")
    for variables, rank in (
        ({"RANK": "3", "SLURM_PROCID": "7"}, 3),
        ({"OMPI_COMM_WORLD_RANK": "0"}, 0),
        ({"RANK": "none"}, None),
        ({"SLURM_PROCID": "5"}, None),
        ({"SLURM_PROCID": "5", "PMI_RANK": "1"}, 1),
        ({}, None),
    ):
        with subprocess.Popen(["sleep", "60"], env=variables | {"PATH": os.environ["PATH"]}) as process:
            try:
                while not Path(f"/proc/{process.pid}/environ").read_bytes():
                    time.sleep(0.01)  # it is only beginning
                assert rank_of(process.pid) == rank
            finally:
                process.kill()
        assert rank_of(process.pid) is None, "it is gone"


def test_a_launcher_whose_processes_ncu_does_not_see_is_told_apart(machine: Machine) -> None:
    srun = machine.folder / "bin" / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    machine.plans["count"].update(log="==WARNING== No kernels were profiled.\n", report="", exit_code=0)
    for plan in machine.plans.values():
        plan["program"] = ["true"]
    result = machine.run(program=["srun", "./app"])
    assert result.returncode == 2
    assert "srun … gemmprof profile -o DIR -- PROGRAM" in result.stderr
    assert "srun" not in machine.run().stderr


def test_print_command_says_what_it_cannot_know(machine: Machine) -> None:
    result = machine.run("--print-command", "--top", "5", "--nvtx", "forward")
    assert result.returncode == 0 and result.stdout.startswith("ncu ")
    assert "--nvtx 'forward' --top 5 is worked out from a count" in result.stderr
