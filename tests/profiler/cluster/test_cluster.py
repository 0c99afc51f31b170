"""A Dask cluster as the place where work runs: what comes out is what this machine would have found."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fake_cluster import LIBRARY
from json_formats import violations
from kept import own_cache
from recorded_data import ROOT
from tiny_ladder import TINY

from gemmprof.base.errors import DeviceError, RunError, UsageError
from gemmprof.base.progress import Progress
from gemmprof.base.system import cache_directory
from gemmprof.kernels import catalog
from gemmprof.kernels.catalog import all_variants
from gemmprof.model import Problem
from gemmprof.model.answers import DoctorClusterDocument, Search
from gemmprof.profiler import collect as collection
from gemmprof.profiler import tuning as searching
from gemmprof.profiler.collect import collect
from gemmprof.profiler.settings import Settings
from gemmprof.profiler.tuning import identity, tune
from gemmprof.runs.directory import load_run

pytest.importorskip("distributed")

import fake_cluster
from distributed import Client, Security

from gemmprof.cli import main
from gemmprof.profiler.cluster import connection, remote
from gemmprof.profiler.cluster.cluster_site import cluster_site
from gemmprof.profiler.cluster.remote import Content

PROBLEMS = tuple(Problem(size, size, size, "bfloat16") for size in (32, 64, 96))
BLOCK2D = next(variant for variant in all_variants() if variant.name == "block2d")


@pytest.fixture(autouse=True)
def played(monkeypatch, plan, tmp_path):
    """Children, compilers and the ladder are played, here and on the workers."""
    monkeypatch.setattr(collection, "MODULE", "fake_gpu")
    monkeypatch.setattr(searching, "MODULE", "fake_gpu")
    monkeypatch.setattr(remote, "build_extension", fake_cluster.build_extension)
    monkeypatch.setattr(remote, "compile_library", fake_cluster.compile_library)
    monkeypatch.setattr(catalog, "LADDERS", (catalog.SINGLE, TINY))
    monkeypatch.setenv("GEMMPROF_CACHE", str(own_cache(tmp_path / "cache")))


def collected(farm, directory: Path, problems=PROBLEMS, **more) -> Any:
    settings = Settings(TINY.stages, problems, **more)
    with cluster_site(farm.address, wait=30) as site:
        return collect(settings, directory, resume=directory.exists(), progress=Progress(), site=site)


def searched(farm, limit: int) -> Any:
    search = Search(BLOCK2D, (Problem(64, 64, 64),), limit=limit, jobs=4)
    with cluster_site(farm.address, wait=30) as site:
        return tune(search, Progress(), site)


def without_cards(run) -> list[dict]:
    plain = []
    for result in json.loads((run.directory / "run.json").read_text())["results"]:
        for part in ("timing", "verification"):
            if result[part]:
                result[part].pop("card")
        plain.append({**result, "report": bool(result["report"]), "launch_index": None})
    return plain


def test_a_collection_is_what_it_would_be_here(farm, tmp_path: Path) -> None:
    run = collected(farm, tmp_path / "run", PROBLEMS[:1])
    assert load_run(tmp_path / "run") == run
    assert all(r.failure is None and r.timing and r.verification and r.report for r in run.results)
    assert {r.timing.card.index for r in run.results} <= {0, 1}
    assert all(r.timing.card.host for r in run.results)
    assert run.info.device == "NVIDIA Fake" and run.info.versions["ncu"] == "2025.3.1"
    assert run.info.versions["torch"] == "2.11.0+cu130"
    for name, record in run.reports.items():
        data = (tmp_path / "run" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == record.sha256 and record.card.model == "NVIDIA Fake"
        assert data == (farm.folder / "reports" / f"{record.launches}.ncu-rep").read_bytes()
    # The extension was built once, and every worker has it under its hash.
    digest = hashlib.sha256(LIBRARY).hexdigest()
    for gpu in {r.timing.card.index for r in run.results}:
        assert (farm.folder / f"cache-{gpu}" / "fetched" / digest / "libgemmprof.so").read_bytes() == LIBRARY
    assert not list(farm.folder.glob("gemmprof-pass-*"))


def test_as_many_compile_as_the_workers_have_threads(farm) -> None:
    """However few cores the machine has from which they are sent."""
    with cluster_site(farm.address) as site, site.compilers(1) as compilers:
        assert compilers.width == 2 * 2


def test_a_search_is_what_it_would_be_here(farm) -> None:
    found = searched(farm, 60)
    assert found.tried == 60 and {o.status for o in found.outcomes} == {"timed"}
    assert {o.card.index for o in found.outcomes} == {0, 1} == {card.index for card in found.cards}
    again = searched(farm, 0)
    assert (again.tried, again.winner, again.best) == (0, found.winner, found.best)


@pytest.mark.campaign
def test_workers_that_are_killed_at_random_cost_nothing(farm, tmp_path: Path, monkeypatch) -> None:
    undisturbed = without_cards(collected(farm, tmp_path / "undisturbed", profile=False))
    farm.start(2)
    stop, killed, rng = threading.Event(), [], random.Random()

    def reap() -> None:
        while not stop.wait(rng.uniform(0.5, 1.2)) and len(killed) < 4:
            gpu = rng.choice(sorted(farm.workers))
            farm.kill(gpu)
            killed.append(gpu)
            farm.start(gpu)

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        found = searched(farm, 120)
        run = collected(farm, tmp_path / "run", profile=False)
    finally:
        stop.set()
        reaper.join()
    assert killed
    assert found.tried == 120 and {o.status for o in found.outcomes} == {"timed"}
    assert len({identity(o.parameters) for o in found.outcomes}) == 120
    assert without_cards(run) == undisturbed


def test_a_profile_whose_worker_is_killed_is_made_again(farm, tmp_path: Path) -> None:
    done = threading.Event()

    def reap() -> None:
        end = time.monotonic() + 60
        while not list(farm.folder.glob("gemmprof-pass-*/logs/*.job.json")) and time.monotonic() < end:
            time.sleep(0.01)
        for gpu in list(farm.workers):
            farm.kill(gpu)
        farm.start(3)
        done.set()

    reaper = threading.Thread(target=reap)
    reaper.start()
    run = collected(farm, tmp_path / "run", PROBLEMS[:1], bench=False)
    reaper.join()
    assert done.is_set()
    assert all(r.failure is None and r.report for r in run.results)
    assert {record.card.index for record in run.reports.values()} == {3}


def test_a_child_that_dies_is_tried_on_another_worker_and_then_listed(farm, tmp_path: Path) -> None:
    plan = farm.folder / "gpus"
    for gpu in range(4):
        (plan / f"GPU-{gpu}").write_text("die-1")
    try:
        run = collected(farm, tmp_path / "run", profile=False)
    finally:
        for gpu in range(4):
            (plan / f"GPU-{gpu}").write_text("")
    assert [r.stage for r in run.results if r.failure] == [1] * len(PROBLEMS)
    assert "exit code 9" in next(r.failure for r in run.results if r.failure)
    resumed = collected(farm, tmp_path / "run", profile=False)
    assert all(r.failure is None and r.timing for r in resumed.results)


def test_a_worker_whose_gpu_is_gone_is_left_out(farm, tmp_path: Path) -> None:
    gone = farm.folder / "gpus" / "GPU-0"
    gone.write_text("absent")
    try:
        run = collected(farm, tmp_path / "run", profile=False)
    finally:
        gone.write_text("")
    assert all(r.failure is None and r.timing.card.index != 0 for r in run.results)


def cli(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "gemmprof", *arguments], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
    )  # fmt: skip


def test_doctor_looks_at_every_worker(farm) -> None:
    farm.start(2, resources="")
    try:
        with_one_that_declares_nothing = wait_for_answer(farm, 3)
    finally:
        farm.kill(2)
    answer = json.loads(with_one_that_declares_nothing.stdout)
    assert with_one_that_declares_nothing.returncode == 1 and not answer["can_collect"]
    assert violations(answer, DoctorClusterDocument) == []
    checks = [check for worker in answer["workers"] for check in worker["checks"]]
    missing = [check["name"] for check in checks if check["ok"] is False and check["needed"]]
    assert missing == ["resource GPU"]
    fine = wait_for_answer(farm, 2, "doctor", "--cluster", str(farm.file))
    assert fine.returncode == 0, fine.stdout
    assert "2 of 2 workers can verify, time and profile" in fine.stdout and "NVIDIA Fake" in fine.stdout


def wait_for_answer(farm, workers: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The doctor's answer once the cluster has so many workers."""
    from distributed import Client

    with Client(farm.address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)
        end = time.monotonic() + 60
        while len(client.scheduler_info(n_workers=-1)["workers"]) != workers and time.monotonic() < end:
            time.sleep(0.1)
    return cli(*(arguments or ("doctor", "--cluster", farm.address, "--json")))


def test_errors_name_the_fix(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    monkeypatch.setattr(connection, "FILE_SECONDS", 0.1)

    def said(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        return capsys.readouterr().err

    nobody = said("tune", "--stage", "9", "--cluster", "tcp://127.0.0.1:9")
    assert "no Dask scheduler answers" in nobody and "dask scheduler" in nobody and "GPU=1" in nobody
    assert "no address of a scheduler" in said("doctor", "--cluster", "localhorst:x")
    assert "there is no scheduler file" in said("doctor", "--cluster", "nowhere.json")
    assert "there is no scheduler file" in said(
        "tune", "--stage", "9", "--cluster", "nowhere.json", "--wait", "0"
    )
    began = time.monotonic()
    assert "there is no folder nowhere" in said("tune", "--stage", "9", "--cluster", "nowhere/s.json")
    assert time.monotonic() - began < 60, "nothing is waited for that cannot come"
    late = said("tune", "--stage", "9", "--cluster", "nowhere.json", "--wait", "1")
    assert "waiting for the scheduler file nowhere.json, 1 s at most" in late
    assert "no scheduler file nowhere.json after 1 s" in late and "--wait SECONDS" in late
    (tmp_path / "folder.json").mkdir()
    assert "cannot be read" in said("doctor", "--cluster", str(tmp_path / "folder.json"))
    for text in ("", "{", "[]", '"x"', "{}", '{"address": null}', '{"address": "x"}', "[" * 200_000):
        (tmp_path / "odd.json").write_text(text)
        assert "is no scheduler file" in said("doctor", "--cluster", str(tmp_path / "odd.json"))
    assert "--slurm" in said("tune", "--stage", "9", "--job", "queue=gpu")
    assert "not of the form name=value" in said("tune", "--stage", "9", "--slurm", "1", "--job", "gpu")
    with pytest.raises(SystemExit) as error:
        main(["tune", "--stage", "9", "--gpus", "all", "--cluster", "x:1"])
    assert error.value.code == 2 and "not allowed with" in capsys.readouterr().err


NEXT_CLIENT = """
import gc, sys
from distributed import utils
from gemmprof.base.errors import UsageError
from gemmprof.profiler.cluster import connection

class Thread(utils._CollectErrorThread):
    def __init__(self, *arguments, **more):
        if gc.isenabled():
            gc.collect()  # as it may at any allocation
        super().__init__(*arguments, **more)


utils._CollectErrorThread = Thread
connection.CONNECT_SECONDS = 1
gc.set_threshold(0)
try:
    with connection.connected("tls://127.0.0.1:9"):
        pass
except UsageError:
    pass
with connection.connected(sys.argv[1]) as client:
    print(len(client.scheduler_info(n_workers=-1)["workers"]))
"""


def test_a_client_that_could_not_connect_does_not_stop_the_next_one(farm) -> None:
    """It closes itself when it is collected, and takes a lock for it that the next one holds while it starts."""
    farm.address  # noqa: B018
    done = subprocess.run(
        [sys.executable, "-P", "-c", NEXT_CLIENT, farm.address],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip().isdigit(), done.stderr


def test_a_scheduler_file_that_comes_a_moment_later_is_waited_for(farm, tmp_path: Path) -> None:
    """A job script starts scheduler, workers and command in one go."""
    file, notes = tmp_path / "later.json", []

    class Notes(Progress):
        def note(self, text: str) -> None:
            notes.append(text)
            threading.Timer(0.3, file.write_bytes, [farm.file.read_bytes()]).start()

    with connection.connected(str(file), wait=30, progress=Notes()) as client:
        assert client.scheduler_info()["address"] == farm.address
    assert notes == [f"waiting for the scheduler file {file}, 30 s at most"]


def test_without_the_extra_it_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="Dask") as error, cluster_site("tcp://127.0.0.1:9"):
        pass
    assert "pip install '.[cluster]'" in error.value.remedies[0]


def test_a_cluster_without_gpus_says_how_to_start_workers() -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        pytest.raises(DeviceError, match="resource GPU") as error,
        cluster_site(cluster.scheduler_address, wait=0.5),
    ):
        pass
    assert "--resources GPU=1" in error.value.remedies[0] and "1 workers without it" in error.value.found


def test_files_travel_and_damage_is_found(tmp_path: Path) -> None:
    data = random.Random(0).randbytes(9 << 20)
    (tmp_path / "report").write_bytes(data)
    content = Content.of(tmp_path / "report")
    assert content.place().read_bytes() == data and content.place() == content.place()
    with pytest.raises(RunError, match="arrived damaged"):
        Content("x", "0" * 64, b"something else").place()
    content.write(tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == data
    with pytest.raises(RunError, match="arrived damaged"):
        Content("x", "0" * 64, b"something else").write(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("address", "words"),
    [("http://127.0.0.1:8787", "no address of a scheduler"), ("tls://127.0.0.1:9", "certificates")],
)
def test_other_addresses_get_a_sentence(address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words), connection.connected(address):
        pass


SBATCH = """#!/bin/sh
for script; do :; done
cp "$script" {folder}/job.sh
setsid sh {folder}/job.sh > {folder}/job.log 2>&1 &
echo $! >> {folder}/jobs
echo "Submitted batch job $!"
"""


def test_slurm_starts_the_workers_and_ends_them(farm, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("dask_jobqueue")
    commands = {
        "sbatch": SBATCH.format(folder=tmp_path),
        "scancel": f'#!/bin/sh\necho "$@" >> {tmp_path}/cancelled\nkill -9 -- "-$1"\n',
    }
    for name, text in commands.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name, value in farm.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{tmp_path}:{farm.environment['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    jobs = connection.Jobs("slurm", 1, ("queue=gpu", "cores=2", "walltime=00:10:00", "interface=lo"))
    settings = Settings(TINY.stages, PROBLEMS[:1], profile=False)
    with cluster_site(jobs, wait=40) as site:
        run = collect(settings, tmp_path / "run", resume=False, progress=Progress(), site=site)
        script = (tmp_path / "job.sh").read_text()
        (address,) = re.findall(r"tls://[\d.]+:\d+", script)
        assert "--tls-key" in script
        for stranger in (None, Security.temporary()):
            # Without the certificates of this very run nobody comes in.
            with pytest.raises((OSError, TypeError)), connection.no_collection():
                Client(address, security=stranger, timeout=3, set_as_default=False)
        with pytest.raises(OSError), connection.no_collection():
            Client(address.replace("tls", "tcp"), timeout=3, set_as_default=False)
    assert not list((cache_directory() / "certificates").iterdir())
    assert all(r.failure is None and r.timing.card.index == 1 for r in run.results)
    assert (tmp_path / "cancelled").read_text().split() == (tmp_path / "jobs").read_text().split()


def test_the_job_scripts_ask_for_a_gpu_each() -> None:
    arguments = connection.Jobs("slurm", 2, ("queue=gpu", "directive=--gres=gpu:h200:1")).arguments()
    assert arguments["job_extra_directives"] == ["--gres=gpu:h200:1"] and arguments["queue"] == "gpu"
    assert (
        arguments["worker_extra_args"] == ["--no-dashboard", "--resources", "GPU=1"]
        and arguments["processes"] == 1
    )
    readers = connection.Jobs("slurm", 2, ("cores=4",), gpu=False).arguments()
    assert readers["worker_extra_args"] == ["--no-dashboard"] and readers["processes"] == 4
    assert "job_extra_directives" not in readers
    assert connection.Jobs("slurm", 2).arguments()["job_extra_directives"] == ["--gres=gpu:1"]
    assert connection.Jobs("pbs", 2, ("cores=4",)).arguments()["resource_spec"] == "select=1:ncpus=4:ngpus=1"
