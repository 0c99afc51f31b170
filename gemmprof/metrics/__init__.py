"""The only home of Nsight Compute metric names, and of which sections collect them.

An analysis reads one `MetricGroup`; ``collect`` asks ncu for the union of all groups (`collection_options`). Names and
groups are rows of tables (`constants`), what is made of names stands in a module a kind; a reader writes
``metrics.DURATION`` wherever it is at home.
"""

from gemmprof.metrics.compute import *  # noqa: F403
from gemmprof.metrics.constants import *  # noqa: F403
from gemmprof.metrics.groups import *  # noqa: F403
from gemmprof.metrics.lean import *  # noqa: F403
from gemmprof.metrics.memory import *  # noqa: F403
from gemmprof.metrics.throughput import *  # noqa: F403
