"""The command line with a cluster whose GPUs, compilers and ladder are played (`fake_cluster`, `fake_gpu`)."""

from __future__ import annotations

import os
import sys
import time


def main() -> int:
    """``on_farm.py collect …`` or ``on_farm.py tune …``."""
    import fake_cluster
    from tiny_ladder import TINY

    from gemmprof import cli
    from gemmprof.kernels import catalog
    from gemmprof.profiler import collect, tuning
    from gemmprof.profiler.cluster import connection, remote

    collect.MODULE = tuning.MODULE = "fake_gpu"
    remote.build_extension = fake_cluster.build_extension
    remote.compile_library = fake_cluster.compile_library
    catalog.LADDERS = (catalog.SINGLE, TINY)
    asks, delay = connection.bounded, float(os.environ.get("ON_FARM_DELAY", "0"))

    def late(*arguments):
        """The cluster is asked, and answers, a while later."""
        time.sleep(delay)
        answer = asks(*arguments)
        time.sleep(delay)
        return answer

    connection.bounded = late
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
