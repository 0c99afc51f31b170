"""Pages made by several processes: in order, and none of them outlives the one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from recorded_data import ROOT

from gemmprof.analysis.session import Session
from gemmprof.reports.pages.html import TOGETHER, WORTH_IT_FROM, _of_one_code

# An alarm ends the parent after it has made its workers and before they ask to be told of its end: the sleep stands
# for a machine with other work to do. Children inherit no alarm.
KILLED_AT_ONCE = f"""
import signal, time
from gemmprof.reports.pages import html as workers

begin = workers._left_to_parent

def late(*arguments):
    time.sleep(1)
    begin(*arguments)

workers._left_to_parent = late
signal.setitimer(signal.ITIMER_REAL, 0.25)
next(iter(workers.ordered(lambda index: index, {WORTH_IT_FROM}, processes=2)))
"""


IN_ORDER = f"""
import os
from gemmprof.reports.pages.html import ordered

for here in (None, 5):
    made = list(ordered(lambda index: (index, os.getpid()), {3 * WORTH_IT_FROM}, processes=2, here=here))
    print([index for index, _ in made], [index for index, pid in made if pid == os.getpid()])
"""

several = pytest.mark.skipif(
    sys.platform != "linux" or os.cpu_count() == 1, reason="pages are made by one process here"
)


@several
def test_what_several_processes_make_comes_in_order() -> None:
    made = subprocess.run(
        [sys.executable, "-c", IN_ORDER], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    in_order = list(range(3 * WORTH_IT_FROM))
    assert made.stdout.splitlines() == [f"{in_order} []", f"{in_order} [5]"], (
        "what this process made, if anything"
    )


@several
def test_a_worker_whose_parent_was_killed_before_it_began_ends() -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED_AT_ONCE], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.wait(30) == -signal.SIGALRM
    output, _ = process.communicate(timeout=30)  # ends when nobody holds the pipe open any more
    assert not output


def test_launches_of_one_kernel_are_explained_by_one_process(load: Callable[[str], Session]) -> None:
    kernels = load("launches_same_kernel").kernels[:1] * 9 + load("ladder_simple").kernels[:1] * 7
    lots = _of_one_code(kernels)
    assert [len(lot) for lot in lots] == [2, 2, 2, 2, 1, 2, 2, 2, 1], "enough of them for several processes"
    assert all(len({kernel.profile.name for kernel in lot}) == 1 for lot in lots)
    assert max(map(len, _of_one_code(kernels * 20))) == TOGETHER
    assert _of_one_code([]) == []
