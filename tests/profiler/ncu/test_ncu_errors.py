"""Every way in which ncu fails becomes one error of its own class, with what ncu said and what to do."""

from __future__ import annotations

import signal
from itertools import pairwise
from pathlib import Path

import pytest
from profiler_fakes import a_job, calls, event, fake_ncu, launched, profiling_line, real_report

from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.children.watched import python_command
from gemmprof.gpu.devices import Tool
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import Problem
from gemmprof.profiler.job import Task
from gemmprof.profiler.ncu.command import KILLED, NcuCommand, NcuLog, require_ncu, translate
from gemmprof.profiler.ncu.profile_pass import PassFiles, PassOutcome, finish_pass, start_pass
from gemmprof.profiler.settings import Settings

NOTE = (
    "==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be "
    "inconsistent.\n"
)
CONNECTED = "==PROF== Connected to process 9437 (/usr/bin/python3.12)\n"
TASKS = [Task(number, Problem(64, 64, 64)) for number in (0, 1, 2)]


def attempt(tmp_path: Path, executable: Path, tasks: list[Task] = TASKS) -> PassOutcome:
    """One pass with a fake ncu."""
    run = tmp_path / "run"
    job = a_job(run, tasks)
    files = PassFiles(run, "profile-01")
    settings = Settings(SINGLE.stages, (tasks[0].problem,))
    return finish_pass(start_pass(Tool(executable, (2025, 3, 1)), files, settings, None, 0, {}), files, job)


def test_a_pass_without_trouble_has_every_launch(tmp_path: Path) -> None:
    log = NOTE + CONNECTED + "".join(profiling_line(index) for index in range(3))
    log += "==PROF== Disconnected from process 9437\n==PROF== Report: /tmp/r.ncu-rep\n"
    ncu = fake_ncu(tmp_path / "bin", log=log, events=launched(TASKS), report=real_report(tmp_path, 3))
    outcome = attempt(tmp_path, ncu)
    assert outcome.error is None and outcome.attributed is None
    assert [(p.task.stage, p.launch_index) for p in outcome.finished] == [(0, 0), (1, 1), (2, 2)]
    assert {p.report for p in outcome.finished} == {"reports/profile-01.ncu-rep"}


PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)
BUSY = (
    "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
    "concurrently collecting profiling data. See https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq "
    'for more details.\n==ERROR== Failed to profile "sgemm_naive" in process 9437\n'
)
OLD_DRIVER = (
    "==ERROR== An error was reported by the driver:\n"
    "==ERROR== Cuda driver is not compatible with Nsight Compute.\n"
)
NO_LIBRARY = "==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n"
NO_KERNELS = (
    NOTE + CONNECTED + "==PROF== Disconnected from process 9437\n==WARNING== No kernels were profiled.\n"
)
NO_SECTION = (
    "==ERROR== Option '--section NoSuchSection' did not match any section.\n"
    "==ERROR== Use --list-sections to see the list of available sections.\n"
)


@pytest.mark.parametrize(
    ("log", "error", "found", "remedy"),
    [
        (
            PERMISSION,
            "permission",
            "ERR_NVGPUCTRPERM",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (PERMISSION + NO_KERNELS, "permission", "ERR_NVGPUCTRPERM", "provider"),
        (BUSY, "resource", "driver resource was unavailable", "dcgmi profiling --pause"),
        (OLD_DRIVER, "driver", "Cuda driver is not compatible", "upgrade the driver"),
        (NO_LIBRARY, "driver", "LibraryNotLoaded", "upgrade the driver"),
        (NO_KERNELS, "nothing", "No kernels were profiled", "--no-profile"),
        (NO_SECTION, "metric", "NoSuchSection", "ncu --list-sections"),
    ],
)
def test_a_cause_that_hits_every_stage_is_named_with_its_remedy(
    tmp_path: Path, log: str, error: str, found: str, remedy: str
) -> None:
    outcome = attempt(tmp_path, fake_ncu(tmp_path / "bin", log=log, exit_code=1, events=launched(TASKS)))
    assert outcome.error.kind == error
    assert outcome.finished == ()
    assert found in outcome.error.found
    assert any(remedy in text for text in outcome.error.remedies)
    assert any("profile-01.ncu.log" in text for text in outcome.error.remedies)
    assert outcome.error.hits_every_stage


def test_the_permission_error_tells_of_the_capability_and_of_the_driver_that_accepts_it(
    tmp_path: Path,
) -> None:
    error = translate(NcuLog.parse(PERMISSION), log_file=tmp_path)
    text = str(error)
    for word in ("CAP_SYS_ADMIN", "CAP_PERFMON", "R565", "--no-profile"):
        assert word in text


@pytest.mark.parametrize(
    "text",
    [
        "OSError: [Errno 28] No space left on device",
        "==ERROR== Failed to write report file: No space left on device",
        "==ERROR== Could not save the report file /tmp/small/r.ncu-rep",
    ],
)
def test_a_full_disk_is_told_from_the_log_or_the_output(tmp_path: Path, text: str) -> None:
    outcome = attempt(tmp_path, fake_ncu(tmp_path / "bin", output=text, exit_code=1))
    assert outcome.error.kind == "disk"
    assert "TMPDIR" in str(outcome.error)


def test_a_kernel_fault_blames_its_stage_and_keeps_the_ones_before(tmp_path: Path) -> None:
    log = (
        CONNECTED
        + profiling_line(0)
        + '==PROF== Profiling "sgemm_coalesced" - 1: 0%....50%..==ERROR== LaunchFailed\n'
        + "==PROF== Trying to shutdown target application\n"
        + "==ERROR== The application returned an error code (9).\n==PROF== Report: /tmp/r.ncu-rep\n"
    )
    events = [*launched(TASKS[:1]), event("begin", TASKS[1])]
    outcome = attempt(
        tmp_path,
        fake_ncu(tmp_path / "bin", log=log, exit_code=9, events=events, report=real_report(tmp_path, 1)),
    )
    assert outcome.error.kind == "kernel"
    assert outcome.error.found == "LaunchFailed"
    assert outcome.attributed == TASKS[1]
    assert [p.task for p in outcome.finished] == TASKS[:1]
    assert not outcome.error.hits_every_stage


def test_what_the_program_said_of_a_fault_is_in_the_error(tmp_path: Path) -> None:
    events = [event("begin", TASKS[0]), event("failed", TASKS[0], message="CUDA error: misaligned address")]
    outcome = attempt(
        tmp_path,
        fake_ncu(
            tmp_path / "bin",
            log="==ERROR== The application returned an error code (3).\n",
            exit_code=3,
            events=events,
        ),
    )
    assert outcome.error.kind == "kernel"
    assert "misaligned address" in outcome.error.found
    assert outcome.attributed == TASKS[0]


@pytest.mark.parametrize("how", [{"signal": signal.SIGKILL}, {"exit_code": 137}])
def test_a_killed_ncu_keeps_its_finished_stages_and_cuts_off_the_torn_one(
    tmp_path: Path, how: dict[str, int]
) -> None:
    whole = real_report(tmp_path, 2)
    torn = tmp_path / "torn.ncu-rep"
    torn.write_bytes(real_report(tmp_path / "more", 3).read_bytes()[: whole.stat().st_size + 1000])
    log = CONNECTED + profiling_line(0) + profiling_line(1) + '==PROF== Profiling "sgemm_coalesced" - 2: 0%..'
    events = [*launched(TASKS[:2]), event("begin", TASKS[2])]
    outcome = attempt(tmp_path, fake_ncu(tmp_path / "bin", log=log, events=events, report=torn, **how))
    assert outcome.error.kind == "killed"
    assert "signal 9" in outcome.error.message
    assert [p.task for p in outcome.finished] == TASKS[:2]
    assert outcome.attributed == TASKS[2]
    assert (tmp_path / "run/reports/profile-01.ncu-rep").read_bytes() == whole.read_bytes()


def test_fewer_kernels_than_launches_means_that_none_can_be_told_apart(tmp_path: Path) -> None:
    log = CONNECTED + profiling_line(0) + profiling_line(1)
    ncu = fake_ncu(tmp_path / "bin", log=log, events=launched(TASKS), report=real_report(tmp_path, 2))
    outcome = attempt(tmp_path, ncu)
    assert outcome.finished == ()
    assert outcome.error is not None and not outcome.error.hits_every_stage


def test_more_kernels_than_launches_leave_their_positions_open(tmp_path: Path) -> None:
    log = CONNECTED + "".join(profiling_line(index) for index in range(4))
    ncu = fake_ncu(tmp_path / "bin", log=log, events=launched(TASKS), report=real_report(tmp_path, 4))
    outcome = attempt(tmp_path, ncu)
    assert [(p.task.stage, p.launch_index) for p in outcome.finished] == [(0, None), (1, None), (2, None)]


def test_a_file_that_is_no_report_is_no_success(tmp_path: Path) -> None:
    bogus = tmp_path / "bogus"
    bogus.write_text("not a report")
    log = CONNECTED + "".join(profiling_line(index) for index in range(3))
    outcome = attempt(tmp_path, fake_ncu(tmp_path / "bin", log=log, events=launched(TASKS), report=bogus))
    assert outcome.finished == ()
    assert outcome.error is not None


def test_an_unknown_complaint_is_shown_in_ncus_words(tmp_path: Path) -> None:
    error = translate(
        NcuLog.parse("==ERROR== Something new.\n==ERROR== Something else.\n"), log_file=tmp_path
    )
    assert error.kind == ""
    assert error.found == "Something new.; Something else."
    assert translate(NcuLog(), log_file=tmp_path) is None
    assert translate(NcuLog(), log_file=tmp_path, exit_code=0) is None
    assert "exit code 5" in translate(NcuLog(), log_file=tmp_path, exit_code=5).message


def test_the_log_is_read_kernel_by_kernel() -> None:
    log = NcuLog.parse(
        NOTE
        + '==PROF== Profiling "sgemm_naive" - 9: 0%==WARNING== Launching the workload is taking more time.\n'
        + "....50%....100% - 36 passes\n"
        + '==PROF== Profiling "touch(float *, int)" - 0: 0%....50%....100% - 10 passes\n'
        + '==PROF== Profiling "pick<operator "">" - 1 (2/2): 0%....50%....100% - 1 pass\n'
        + '==PROF== Profiling "touch(float *, int)" - 8: 0%..==PROF== Trying to shutdown target application\n'
        + "==PROF== Report: /tmp/r.ncu-rep\nprogram output 100% - 3 passes\n"
    )
    assert [(kernel.name, kernel.passes) for kernel in log.kernels] == [
        ("sgemm_naive", 36),
        ("touch(float *, int)", 10),
        ('pick<operator "">', 1),
    ]
    assert log.errors == () and len(log.warnings) == 2


def command(folder: Path, **changes: object) -> list[str]:
    values = {
        "executable": Path("/opt/ncu"),
        "report": folder / "r.ncu-rep",
        "log": folder / "r.log",
        "collection": ("--section", "LaunchStats"),
        "program": ("python", "-m", "thing", "job"),
    }
    return NcuCommand(**{**values, **changes}).arguments()  # type: ignore[arg-type]


def test_the_command_profiles_ranges_only_with_sources_and_untouched_clocks() -> None:
    arguments = command(Path("/run"))
    assert arguments[0] == "/opt/ncu"
    pairs = list(pairwise(arguments))
    for pair in [
        ("--profile-from-start", "off"),
        ("--import-source", "yes"),
        ("--clock-control", "none"),
        ("--config-file", "off"),
        ("--section", "LaunchStats"),
        ("--export", "/run/r.ncu-rep"),
        ("--log-file", "/run/r.log"),
    ]:
        assert pair in pairs
    assert "--nvtx" in arguments
    assert arguments[-4:] == ["python", "-m", "thing", "job"]
    locked = command(Path("/run"), clock_control="base")
    assert ("--clock-control", "base") in pairwise(locked)


def test_percent_signs_in_a_path_are_not_ncus_macros() -> None:
    arguments = command(Path("/run/100%p"))
    assert "/run/100%%p/r.ncu-rep" in arguments


def test_a_report_has_the_ending_that_ncu_would_add() -> None:
    with pytest.raises(UsageError, match=r"ends in \.ncu-rep"):
        command(Path("/run"), report=Path("/run/report"))


def test_the_fake_is_called_with_the_job_of_every_task(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path / "bin", log=NO_KERNELS)
    attempt(tmp_path, ncu)
    (arguments,) = calls(ncu)
    job = str(tmp_path / "run/logs/profile-01.job.json")
    assert arguments[-4:] == [*python_command("gemmprof.profiler.workload")[1:], job]


def test_no_ncu_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMMPROF_NCU", str(tmp_path / "nothing"))
    with pytest.raises(DeviceError, match="was not found") as caught:
        require_ncu()
    assert any("GEMMPROF_NCU" in remedy for remedy in caught.value.remedies)


def test_an_old_ncu_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMMPROF_NCU", str(fake_ncu(tmp_path, version="2021.2.0.0")))
    with pytest.raises(DeviceError, match=r"ncu 2021\.2\.0 is too old"):
        require_ncu()


def test_an_ncu_that_does_not_start_is_explained(tmp_path: Path) -> None:
    broken = tmp_path / "ncu"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(DeviceError, match="cannot start"):
        attempt(tmp_path, broken)


def test_every_stage_has_a_number_that_jobs_can_carry() -> None:
    assert len({stage.number for stage in SINGLE.stages}) == len(SINGLE.stages)


def test_the_log_of_a_filtered_program_counts_too() -> None:
    """With a filter of kernels ncu names them otherwise, and without a number."""
    log = NcuLog.parse(
        '==PROF== Profiling "gelu": 0%....50%....100% - 1 pass\n'
        '==PROF== Profiling "1:7:_Z4geluiPKfPf:5": 0%....50%....100% - 33 passes\n'
    )
    assert [(kernel.name, kernel.passes) for kernel in log.kernels] == [
        ("gelu", 1),
        ("1:7:_Z4geluiPKfPf:5", 33),
    ]


@pytest.mark.parametrize(
    ("exit_code", "said"),
    [
        (-9, "ended by signal 9"),
        (-15, "ended by signal 15"),
        (137, "ended by signal 9"),
        (143, "ended by signal 15"),
        (1, "exit code 1"),
        (129, "exit code 129"),
    ],
)
def test_how_ncu_ended_is_told_from_its_exit_code(exit_code: int, said: str, tmp_path: Path) -> None:
    error = translate(NcuLog(), log_file=tmp_path / "ncu.log", exit_code=exit_code, output="last words")
    assert error is not None and said in error.message and error.found == "last words"
    assert (error.kind == KILLED) is ("signal" in said)
