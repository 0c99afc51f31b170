"""A real scheduler and real workers in processes of their own; GPUs, compiler and ncu are played."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
from kept import own_cache
from profiler_fakes import real_report
from recorded_data import ROOT
from waiting import wait_for

MOST_KERNELS = 5

TEST_SECONDS = 300  # many times what the longest takes: whoever waits longer waits for ever


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for other processes gives up, and says where it was."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


class Farm:
    """A scheduler, and workers that come and go."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.file = folder / "scheduler.json"
        self.workers: dict[int, forked.Begun] = {}
        self.started = 0
        self._scheduler = self._schedule("0")

    def _schedule(self, port: str) -> forked.Begun:
        return self._run(
            "dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show",
            "--scheduler-file", str(self.file),
        )  # fmt: skip

    def kill_scheduler(self) -> None:
        """Another one listens at the same address a moment later, with new workers: the old ones end with theirs."""
        port = self.address.rpartition(":")[2]
        self._scheduler.kill()
        self._scheduler.wait()
        time.sleep(0.5)
        self._scheduler = self._schedule(port)
        for gpu in list(self.workers):
            self.start(gpu)

    def _run(self, module: str, *arguments: str, **more: str) -> forked.Begun:
        self.started += 1
        return forked.begin(
            f"distributed.cli.{module}", *arguments, cwd=Path.cwd(), log=self.folder / f"{self.started}.log",
            env={**os.environ, **self.environment, **more},
        )  # fmt: skip

    @property
    def address(self) -> str:
        """The scheduler's, as soon as it listens."""
        import json

        # It is there before anything is written to it.
        wait_for(lambda: self.file.exists() and bool(self.file.read_text()))
        return str(json.loads(self.file.read_text())["address"])

    def start(self, gpu: int, resources: str = "GPU=1") -> None:
        """Start the worker of a GPU, in place of the one that it has."""
        if gpu in self.workers:
            self.kill(gpu)
        self.workers[gpu] = self._run(
            "dask_worker", self.address, "--no-nanny", "--no-dashboard", "--nthreads", "2",
            "--local-directory", str(self.folder / f"work-{self.started}"),
            *(("--resources", resources) if resources else ()),
            CUDA_VISIBLE_DEVICES=f"GPU-{gpu}", GEMMPROF_CACHE=str(own_cache(self.folder / f"cache-{gpu}")),
        )  # fmt: skip

    def have(self, *gpus: int) -> None:
        """Have workers of these GPUs and no others, whatever tests before have left."""
        for gpu in set(self.workers).difference(gpus):
            self.kill(gpu)
        for gpu in gpus:
            if gpu not in self.workers:
                self.start(gpu)

    def kill(self, gpu: int) -> None:
        """As the out-of-memory killer does."""
        process = self.workers.pop(gpu)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End everything."""
        for process in (*self.workers.values(), self._scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def farm(every_farm: Farm) -> Farm:
    """A scheduler with the workers of GPUs 0 and 1."""
    every_farm.have(0, 1)
    return every_farm


@pytest.fixture(scope="module")
def every_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """A scheduler, and workers that each test starts and kills as it needs them."""
    pytest.importorskip("distributed")
    import fake_cluster
    import profiler_fakes

    folder = tmp_path_factory.mktemp("farm")
    for name in ("gpus", "bin", "packages/torch", "reports"):
        (folder / name).mkdir(parents=True)
    (folder / "packages/torch/__init__.py").touch()
    (folder / "packages/torch/version.py").write_text("__version__ = '2.11.0+cu130'\ncuda = '13.0'\n")
    for kernels in range(1, MOST_KERNELS + 1):
        real_report(folder / "reports", kernels)
    ncu = profiler_fakes.ncu_script(fake_cluster.NCU.format(reports=str(folder / "reports")))
    scripts = {
        "nvidia-smi": fake_cluster.NVIDIA_SMI,
        "nvcc": fake_cluster.NVCC,
        "ncu": ncu,
        "c++": "#!/bin/sh\n",
    }
    for name, text in scripts.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    paths = [folder / "packages", ROOT, ROOT / "tests" / "helpers"]
    farm = Farm(
        folder,
        {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "FAKE_GPU_PLAN": str(folder / "gpus"),
            "CUDACXX": str(folder / "bin" / "nvcc"),
            "GEMMPROF_NCU": str(folder / "bin" / "ncu"),
            "TMPDIR": str(folder),
        },
    )
    try:
        yield farm
    finally:
        farm.stop()
