"""The only home of Nsight Compute metric names, and of which sections collect them.

An analysis reads one `MetricGroup`; ``collect`` asks ncu for the union of all groups (`collection_options`). Names and
groups are rows of tables (`constants`), what names tell and what is made of them stands in `patterns`; a reader writes
``metrics.DURATION`` wherever it is at home.
"""

from gemmprof.metrics.constants import *  # noqa: F403
from gemmprof.metrics.groups import *  # noqa: F403
from gemmprof.metrics.patterns import *  # noqa: F403
