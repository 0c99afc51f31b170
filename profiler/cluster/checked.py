"""What the workers of a cluster have and lack: `gemmprof doctor --cluster`."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import gemmprof
from gemmprof.model.answers import Check, WorkerReport
from gemmprof.profiler.cluster import remote
from gemmprof.profiler.cluster.connection import RESOURCE, START_WORKER, connected
from gemmprof.profiler.cluster.content import code_digest

if TYPE_CHECKING:
    from distributed import Client

# Packages by which the parts of a cluster talk to each other.
SAME_EVERYWHERE = ("distributed", "dask", "cloudpickle", "msgpack")

START_REMEDY = f"start it with: {START_WORKER}"


def examine_cluster(address: str) -> tuple[WorkerReport, ...]:
    """Look at every worker of a cluster, in the order of their machines.

    Raises:
        UsageError: the extra is not installed.
        DeviceError: no scheduler answers.
    """
    with connected(address) as client:
        workers: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
        answers = _answers(client, remote.look)
        packages = _answers(client, installed)
        reports = [
            _report(worker, facts, answers.get(worker), packages.get(worker))
            for worker, facts in workers.items()
        ]
    return tuple(sorted(reports, key=lambda report: (report.host, report.worker)))


def _answers(client: Client, question: Any) -> dict[str, Any]:
    return dict(client.run(question, on_error="return"))


def installed() -> dict[str, str]:
    """Versions of the packages that must be the same on client, scheduler and workers."""
    found = {"python": platform.python_version()}
    for name in SAME_EVERYWHERE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def _report(worker: str, facts: Mapping[str, Any], answer: Any, packages: Any) -> WorkerReport:
    if not isinstance(answer, remote.WorkerFacts):
        found = f"{type(answer).__name__}: {answer}".splitlines()[0]
        remedy = "install it there: pip install '.[cluster,gpu]' in the checkout of gemmprof"
        return WorkerReport(worker, str(facts.get("host", "")), (Check("gemmprof", False, found, (remedy,)),))
    declared = facts.get("resources", {}).get(RESOURCE, 0)
    same = answer.sources == code_digest()
    checks = [
        Check(
            "gemmprof", same, answer.versions["gemmprof"] + ("" if same else ", with other code than here"),
            () if same else (f"install the same as here ({gemmprof.__version__}) on every worker",),
        ),
        _packages(packages),
        Check(f"resource {RESOURCE}", declared >= 1, f"{declared:g}", () if declared >= 1 else (START_REMEDY,)),
        *(check for check in answer.checks if check.name != "disk space"),
    ]  # fmt: skip
    return WorkerReport(worker, answer.host, tuple(checks))


def _packages(theirs: Any) -> Check:
    """Do both ends speak the same Dask?"""
    ours = installed()
    theirs = theirs if isinstance(theirs, dict) else {}
    other = [
        f"{name} {theirs.get(name, 'none')} (here {ours[name]})"
        for name in ours
        if theirs.get(name) != ours[name]
    ]
    # Pickles of other minor versions of Python do not pass; a patch release apart they do.
    if other == [name for name in other if name.startswith("python")] and (
        str(theirs.get("python", "")).split(".")[:2] == ours["python"].split(".")[:2]
    ):
        other = []
    found = ", ".join(other) if other else f"distributed {ours['distributed']}, Python {theirs.get('python')}"
    return Check(
        "versions", not other, found, ("use one environment for all of the cluster",) if other else ()
    )
