"""Look at this machine: GPU, driver, nvcc, ncu, ncu-report, counter permission, torch.

  gemmprof doctor
  gemmprof doctor --json

Says what is there, what is missing, and the exact remedy. Exits with 0 if `gemmprof collect` can run here, with 1 if
something it needs is missing. Reading reports needs none of this.
"""

from __future__ import annotations

import argparse

from gemmprof.arguments.common import answer
from gemmprof.arguments.parser import JSON
from gemmprof.model.answers import DoctorClusterDocument, DoctorDocument
from gemmprof.runs.directory import runs_directory

ARGUMENTS = f"""{JSON}
--hint                  only say whether one can collect here, and how; always exits with 0
--cluster ADDRESS       look at the workers of a Dask cluster instead (tcp://host:8786, or its scheduler file)
"""


def run(options: argparse.Namespace) -> int:
    """Examine the machine, or the workers of a cluster, and print the findings."""
    if options.cluster:
        from gemmprof.profiler.cluster.cluster_site import examine_cluster
        from gemmprof.reports.terminal.summary import worker_parts

        workers = examine_cluster(options.cluster)
        lacking = not workers or any(check.is_missing for worker in workers for check in worker.checks)
        found = DoctorClusterDocument(not lacking, tuple(workers))
        answer(options, lambda: found, lambda _: worker_parts(workers))
        return 1 if lacking else 0
    from gemmprof.profiler.machine import examine

    checks = examine(runs_directory())
    missing = [check for check in checks if check.is_missing]
    if options.hint:
        from gemmprof.reports.terminal.summary import hint

        print(hint(checks))
        return 0
    from gemmprof.reports.terminal.summary import check_parts

    answer(options, lambda: DoctorDocument(not missing, tuple(checks)), lambda _: check_parts(checks))
    return 1 if missing else 0
