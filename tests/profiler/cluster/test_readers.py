"""A cluster reads reports: what a command answers is what it would be here, whatever is killed meanwhile."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import forked
import pyarrow.parquet as pq
import pytest
from bucket import buckets
from kept import own_cache
from recorded_data import DATA, ROOT
from scale import few, inputs

pytest.importorskip("distributed")
from distributed import Security

from gemmprof.analysis import session
from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.base.spread import each
from gemmprof.profiler.cluster.readers import reading_on
from gemmprof.reports.dataset.manifest import update
from gemmprof.reports.tables.export import export_tables

ROUNDS = int(os.environ.get("GEMMPROF_KILLS", "10"))

# Two of them say whether a cluster answers as one machine does; the campaign has more of what may differ.
REPORTS = ("flaws_atomics", "flaws_spills", "launches_same_kernel", "names_nvtx", "partial_basic")[
    : inputs(2, 5)
]

# The commands that read reports, what they write into the folder {out}, and what they print.
COMMANDS = {
    "find": ["find", "duration > 1us", "reports", "--json"],
    "data set": ["export", "reports", "--format", "dataset", "-o", "{out}"],
    "export": ["export", "reports", "-o", "{out}"],
    "explain": ["explain", "reports", "--all"],
    "report": ["report", "reports", "-o", "{out}"],
    "single file": ["report", "reports", "--single-file", "-o", "{out}.html"],
    "diff": ["diff", "reports/flaws_atomics.ncu-rep.xz", "reports/flaws_spills.ncu-rep.xz", "--details"],
}  # fmt: skip


class Scheduler:
    """A scheduler with workers that read; each can be killed, and is there again a moment later."""

    def __init__(self, folder: Path, code: Path = ROOT, protocol: str = "tcp", workers: int = 2) -> None:
        self.folder, self.code, self.protocol = folder, code, protocol
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"{protocol}://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes] | forked.Begun] = {}
        for name in ("scheduler", "worker-1", "worker-2")[: 1 + workers]:
            self.start(name)

    def start(self, name: str) -> None:
        arguments = (
            ["dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show",
             "--protocol", self.protocol]
            if name == "scheduler"
            else ["dask_worker", self.address, "--no-nanny", "--no-dashboard", "--nthreads", "1",
                  "--local-directory", str(self.folder / name)]
        )  # fmt: skip
        module, log = f"distributed.cli.{arguments[0]}", self.folder / f"{name}.log"
        variables = {
            **os.environ, "PYTHONPATH": str(self.code), "GEMMPROF_CACHE": str(own_cache(self.folder / "cache"))
        }  # fmt: skip
        if self.code == ROOT:
            self.processes[name] = forked.begin(
                module, *arguments[1:], cwd=Path.cwd(), log=log, env=variables
            )
            return
        with log.open("ab") as file:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments[1:]],
                stdout=file, stderr=subprocess.STDOUT, env=variables,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def revive(self) -> None:
        """Start what was killed, and workers that ended because their scheduler was."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                self.start(name)

    def stop(self) -> None:
        for name in self.processes:
            self.kill(name)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    found = Scheduler(tmp_path_factory.mktemp("readers"))
    try:
        yield found
    finally:
        found.stop()


def begin(folder: Path, cache: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "gemmprof", *arguments], stdout=subprocess.PIPE, stderr=errors, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "GEMMPROF_CACHE": str(own_cache(cache)), "COLUMNS": "120"},
        )  # fmt: skip


def answer(folder: Path, cache: Path, *arguments: str) -> tuple[int, bytes]:
    variables = {**os.environ, "GEMMPROF_CACHE": str(own_cache(cache)), "COLUMNS": "120"}
    ended = forked.run(*arguments, cwd=folder, env=variables, load=["distributed"])
    (folder / "errors").write_text(ended.stderr)
    return ended.returncode, ended.stdout.encode()


def written(out: Path) -> dict[str, bytes]:
    """What a command wrote, without what differs from time to time: names of parts, and what names them."""
    files = [out.with_suffix(".html")] if out.with_suffix(".html").exists() else sorted(out.rglob("*"))
    return {
        path.name: path.read_bytes() for path in files if path.is_file() and "parts" not in str(path) and
        path.name != "dataset.json" and path.parent.name not in ("metrics", "manifests")
    }  # fmt: skip


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A folder with a folder of reports, some of them large for a test."""
    (tmp_path / "reports").mkdir()
    for name in REPORTS:
        (tmp_path / "reports" / f"{name}.ncu-rep.xz").symlink_to(DATA / f"{name}.ncu-rep.xz")
    (tmp_path / "reports" / "damaged.ncu-rep").write_bytes(b"NVR\0 nothing")
    return tmp_path


@pytest.mark.parametrize("command", few(COMMANDS, ["find"]))
def test_the_answer_is_the_same_to_the_bit(scheduler, reports: Path, command: str) -> None:
    found = []
    for where in ((), ("--cluster", scheduler.address)):
        out = reports / "out"
        arguments = [argument.format(out="out") for argument in COMMANDS[command]]
        code, output = answer(reports, reports / f"cache{len(where)}", *arguments, *where)
        errors = (reports / "errors").read_text()
        assert code == (0 if command == "diff" else 2), errors
        found.append((output, written(out)))
        if command == "data set":
            found[-1] = answer(reports, reports / "cache", "find", "duration > 1us", "out", "--json")
        shutil.rmtree(out, ignore_errors=True)
        out.with_suffix(".html").unlink(missing_ok=True)
    assert found[0] == found[1] and any(found[0])


@pytest.mark.parametrize("command", few(("explain", "report -o out --force"), ["explain"]))
def test_a_large_report_is_split(scheduler, reports: Path, monkeypatch, command: str) -> None:
    """Also where its launches are few, so that a test need not wait for a large one."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    split = "import sys; from gemmprof.analysis import session; session.LARGE_REPORT, session.LOT_LAUNCHES = 0, 1; "
    split += "from gemmprof.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = [*command.split(), "--json", "reports/flaws_spills.ncu-rep.xz"]
    whole = answer(reports, reports / "cache", *arguments)
    pages = written(reports / "out")
    done = subprocess.run(
        [sys.executable, "-P", "-c", split, *arguments, "--cluster", scheduler.address], capture_output=True,
        check=False, cwd=reports, timeout=200, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == whole, done.stderr
    assert written(reports / "out") == pages


@pytest.mark.campaign
def test_a_large_report_in_a_bucket_is_split_and_its_tables_go_there(tmp_path: Path, monkeypatch) -> None:
    """Each worker fetches it once, however many of its launches it is given."""
    (tmp_path / "bucket").mkdir()
    name = "flaws_atomics.ncu-rep.xz"
    shutil.copy(DATA / name, tmp_path / "bucket" / name)
    here = export_tables([DATA / name], tmp_path / "here")
    monkeypatch.setattr(session, "LARGE_REPORT", 0)
    monkeypatch.setattr(session, "LOT_LAUNCHES", 1)
    assert here.launches >= 4
    monkeypatch.chdir(tmp_path)
    with buckets(tmp_path) as (variables, asked):
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        farm = Scheduler(tmp_path)
        try:
            with reading_on(farm.address, wait=60, progress=Progress()):
                there = export_tables(["s3://bucket/" + name], "s3://bucket/tables")
                fetched = [line for line in asked if line == f"GET /bucket/{name}"]
                data = update(Path("s3://bucket/set"), [Path("s3://bucket/" + name)])
        finally:
            farm.stop()
    assert there.launches == here.launches == data.launches
    assert len(fetched) <= 3, asked  # by the command, which asks for its launches, and by each worker
    for file in here.files:
        tables = [
            pq.read_table(path).drop(["report"]).to_pandas()
            for path in (file, tmp_path / "bucket" / "tables" / file.name)
        ]
        assert tables[0].equals(tables[1]), file.name
    assert len(list((tmp_path / "bucket" / "set" / "parts").iterdir())) == 1


def test_workers_of_another_gemmprof_are_refused(scheduler, reports: Path, tmp_path: Path) -> None:
    """By every command that reads, and by doctor."""
    other = tmp_path / "other"
    shutil.copytree(
        ROOT / "gemmprof", other / "gemmprof", ignore=shutil.ignore_patterns("__pycache__", "recorded")
    )
    with (other / "gemmprof" / "analysis" / "session.py").open("a") as file:
        file.write("# another\n")
    (tmp_path / "farm").mkdir()
    strange = Scheduler(tmp_path / "farm", other, workers=1)
    try:
        for command in ("find", "export", "explain", "report", "diff")[: inputs(1, 5)]:
            arguments = [argument.format(out="out") for argument in COMMANDS[command]]
            code, output = answer(reports, reports / "cache", *arguments, "--cluster", strange.address)
            errors = (reports / "errors").read_text()
            assert code == 2 and "another gemmprof than this command" in errors, errors
        code, output = answer(reports, reports / "cache", "doctor", "--cluster", strange.address)
        assert code == 1 and b"with other code than here" in output
    finally:
        strange.stop()


SBATCH = """#!/bin/sh
for script; do :; done
cp "$script" {folder}/job.sh
setsid sh {folder}/job.sh > {folder}/job.log 2>&1 &
echo $! >> {folder}/jobs
echo "Submitted batch job $!"
"""


@pytest.mark.campaign
def test_slurm_starts_readers_without_a_gpu_and_ends_them(reports: Path, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("dask_jobqueue")
    (tmp_path / "bin").mkdir()
    for name, text in {
        "sbatch": SBATCH.format(folder=tmp_path),
        "scancel": f'#!/bin/sh\necho "$@" >> {tmp_path}/cancelled\nkill -9 -- "-$1"\n',
    }.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    right = answer(reports, reports / "cache-0", *COMMANDS["explain"])
    job = ["--slurm", "1", "--job", "cores=2", "--job", "interface=lo", "--wait", "100"]
    assert answer(reports, reports / "cache-1", *COMMANDS["explain"], *job) == right
    script = (tmp_path / "job.sh").read_text()
    assert "tls://" in script and "gres" not in script and "GPU=1" not in script
    assert (tmp_path / "cancelled").read_text().split() == (tmp_path / "jobs").read_text().split()


def test_nobody_there_and_nothing_shared(scheduler, reports: Path, tmp_path: Path) -> None:
    arguments = [*COMMANDS["explain"], "--wait", "1", "--cluster"]
    assert answer(reports, reports / "cache", *arguments, "tcp://127.0.0.1:9")[0] == 2
    assert "no Dask scheduler answers" in (reports / "errors").read_text()
    assert answer(reports, reports / "cache", *arguments, "http://127.0.0.1:8787")[0] == 2
    assert "http:// is the address of its pages" in (reports / "errors").read_text()
    scheduler.kill("worker-1")
    scheduler.kill("worker-2")
    try:
        assert answer(reports, reports / "cache", *arguments, scheduler.address)[0] == 2
        assert "has had no worker for 1 s" in (reports / "errors").read_text()
        scheduler.kill("scheduler")
        scheduler.revive()
        code, said = answer(reports, reports / "cache", *arguments[:-2], "60", "--cluster", scheduler.address)
        assert said and code == 2
    finally:
        scheduler.revive()


def test_what_dask_cannot_speak_to_from_here_is_said_at_once(reports: Path) -> None:
    for address, words in (
        ("tls", "certificates that this user has not configured"),
        ("ucxx", "cannot speak to"),
    ):
        began = time.monotonic()
        place = [*COMMANDS["explain"], "--cluster", f"{address}://127.0.0.1:9"]
        assert answer(reports, reports / "cache-0", *place)[0] == 2
        said = (reports / "errors").read_text()
        assert words in said and "Traceback" not in said
        assert time.monotonic() - began < 20, "a client that cannot begin takes half a minute to end"


@pytest.mark.campaign
def test_certificates_are_those_of_dasks_settings(reports: Path, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("cryptography")
    made = Security.temporary()
    for name, text in (
        ("ca", made.tls_ca_file),
        ("cert", made.tls_client_cert),
        ("key", made.tls_client_key),
    ):
        (tmp_path / name).write_text(text)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    monkeypatch.setenv(f"{tls}CA_FILE", str(tmp_path / "ca"))
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        monkeypatch.setenv(f"{tls}{who}__CERT", str(tmp_path / "cert"))
        monkeypatch.setenv(f"{tls}{who}__KEY", str(tmp_path / "key"))
    (tmp_path / "farm").mkdir()
    encrypted = Scheduler(tmp_path / "farm", protocol="tls")
    try:
        right = answer(reports, reports / "cache-1", *COMMANDS["explain"])
        place = ["--cluster", encrypted.address, "--wait", "60"]
        assert answer(reports, reports / "cache-2", *COMMANDS["explain"], *place) == right
        assert "is not encrypted" not in (reports / "errors").read_text()
    finally:
        encrypted.stop()


def test_a_file_that_only_the_command_has_is_named_as_that(scheduler, reports: Path) -> None:
    with (DATA / "flaws_spills.ncu-rep.xz").open("rb") as file:
        number = fcntl.fcntl(file, fcntl.F_DUPFD, 500)  # a worker has none of it
        path = f"/dev/fd/{number}"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gemmprof", "explain", path, "--cluster", scheduler.address], cwd=reports,
            capture_output=True, check=False, timeout=100, env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=[number],
        )  # fmt: skip
        os.close(number)
    assert done.returncode == 2 and f"does not see {path}, which is here".encode() in done.stderr, done.stderr


def test_workers_that_go_for_good_are_not_waited_for_for_ever(scheduler, tmp_path: Path, monkeypatch) -> None:
    """Also where jobs have something in common, which one of the workers had."""
    monkeypatch.chdir(tmp_path)
    with each_on(scheduler, 60):
        pass  # workers of the test before may be only beginning
    waiting, common = each_on(scheduler, 2), (os.P_WAIT, "sleep")
    try:
        with waiting, pytest.raises(DeviceError, match="has had no worker for 2 s"):
            for answer in each(os.spawnvp, [(["sleep", "0"],)], common):
                assert answer() == 0
            for answer in each(os.spawnvp, [(["sleep", "60"],)], common):
                for name in ("worker-1", "worker-2"):
                    scheduler.kill(name)
                answer()
    finally:
        scheduler.revive()


def test_a_result_that_is_here_is_not_lost_with_its_worker(scheduler, tmp_path: Path, monkeypatch) -> None:
    """Two jobs ended, one answer was taken: the other was fetched before the last worker went; a third is lost."""
    monkeypatch.chdir(tmp_path)
    with each_on(scheduler, 60):
        pass  # workers of the test before may be only beginning
    try:
        with each_on(scheduler, 2):
            answers = each(subprocess.call, ((["sleep", seconds],) for seconds in ("0", "0", "3")))
            first, second, third = (next(answers) for _ in range(3))
            assert first() == 0
            assert second.__self__.exception(60) is None
            for name in ("worker-1", "worker-2"):
                scheduler.kill(name)
            assert second() == 0
            with pytest.raises(DeviceError, match="has had no worker for 2 s"):
                third()
    finally:
        scheduler.revive()


def each_on(scheduler: Scheduler, wait: int):
    return reading_on(scheduler.address, wait=wait, progress=Progress())


def test_what_is_given_up_is_forgotten(scheduler, tmp_path: Path, monkeypatch) -> None:
    """Jobs whose answers nobody takes, and a connection that came to nothing."""
    from distributed import Client

    monkeypatch.chdir(tmp_path)
    # Sent as they are: the scheduler cannot import a test.
    tasks = lambda dask_scheduler: len(dask_scheduler.tasks)  # noqa: E731
    clients = lambda dask_scheduler: set(dask_scheduler.clients)  # noqa: E731
    with Client(scheduler.address, set_as_default=False) as client:
        end = time.monotonic() + 60
        while len(client.nthreads()) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        alone = client.run_on_scheduler(clients)
        with each_on(scheduler, 60):
            answers = each(pow, ((2, power) for power in range(30)))
            assert [next(answers) for _ in range(3)][2]() == 4
            del answers
            end = time.monotonic() + 30
            while client.run_on_scheduler(tasks) and time.monotonic() < end:
                time.sleep(0.1)
            assert client.run_on_scheduler(tasks) == 0
        scheduler.kill("worker-1")
        scheduler.kill("worker-2")
        with pytest.raises(DeviceError, match="no worker"), each_on(scheduler, 1):
            pass
        end = time.monotonic() + 30
        while client.run_on_scheduler(clients) != alone and time.monotonic() < end:
            time.sleep(0.1)
        assert client.run_on_scheduler(clients) == alone
    scheduler.revive()


def _output(process: subprocess.Popen[bytes]) -> bytes | None:
    """What a command printed, None while it runs."""
    try:
        return process.communicate(timeout=1)[0]
    except subprocess.TimeoutExpired:
        return None


@pytest.mark.campaign
@pytest.mark.timeout(60 * (10 + ROUNDS))
def test_kills_at_random_change_nothing(tmp_path: Path, reports: Path) -> None:
    """Workers, the scheduler and the command itself: kill -9, and the same command again where it was the command."""
    for path in list((reports / "reports").glob("*.xz")):
        for copy in range(6):
            (path.parent / f"{copy}-{path.name}").symlink_to(path.resolve())
    right = {}
    for command in ("find", "explain", "export"):
        arguments = [argument.format(out="right") for argument in COMMANDS[command]]
        right[command] = answer(reports, reports / "here", *arguments)[1], written(reports / "right")
        shutil.rmtree(reports / "right", ignore_errors=True)
    (tmp_path / "farm").mkdir()
    farm, rng, killed = Scheduler(tmp_path / "farm"), random.Random(), []
    try:
        for number in range(ROUNDS):
            command = ("find", "explain", "export")[number % 3]
            arguments = [argument.format(out="out") for argument in COMMANDS[command]]
            again = [*arguments, *(["--force"] if command == "export" else [])]
            victims = rng.choices(("worker-1", "worker-2", "scheduler", "client"), k=3)
            cache = reports / f"cache-{number}"
            process = begin(reports, cache, *arguments, "--cluster", farm.address)
            for victim in victims:
                time.sleep(rng.uniform(0.3, 4))
                if process.poll() is not None:
                    break
                killed.append(victim)
                if victim == "client":
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    process = begin(reports, cache, *again, "--cluster", farm.address)
                else:
                    farm.kill(victim)
                    time.sleep(rng.uniform(0, 1))
                    farm.revive()
            end = time.monotonic() + 300
            while (output := _output(process)) is None or b"no Dask scheduler" in (
                reports / "errors"
            ).read_bytes():
                assert time.monotonic() < end
                farm.revive()  # as whoever runs a cluster does
                if output is not None:  # begun while there was no scheduler: that is not waited for
                    process = begin(reports, cache, *again, "--cluster", farm.address)
            assert process.returncode == 2, (victims, (reports / "errors").read_text())
            assert (output, written(reports / "out")) == right[command], (command, victims)
            shutil.rmtree(reports / "out", ignore_errors=True)
            print(f"{number + 1} commands, killed: {Counter(killed)}")
    finally:
        farm.stop()
    assert killed
