"""ncu's own sections less what makes them slow and no analysis reads, or what the user does without.

For some metrics of a section ncu patches the kernel and runs it several times slower, once more for each kind; some
tables make it collect hundreds of metrics. ncu takes its sections from any folder, so the lean set gets a copy of the
installation's folder in which these blocks are missing. The rules that hang on the sections come along, and apply as
ever (but for those that need what is missing).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gemmprof import metrics
from gemmprof.base.foreign_files import read_text
from gemmprof.gpu.toolchain import Tool, ncu_installation
from gemmprof.metrics import LEAN

# A metric, or a table of the memory tables, whose metrics ncu knows by itself.
_NAME = re.compile(r'\bName:\s*"([^"]+)"|\b(Memory\w+Table)\s*\{')
# A section says of itself which sets it belongs to.
_SETS = re.compile(r"\bSets\s*\{[^{}]*\}")


@contextmanager
def section_folder(ncu: Tool, metric_set: str, *, timeline: bool = True) -> Iterator[Path | None]:
    """A folder with ncu's sections for a set, there as long as the context; None for ncu's own folder.

    Without ``timeline`` ncu's own sets are without what is sampled over time; the lean set is asked for by section.
    """
    installation = ncu_installation(ncu.path)
    if (metric_set != LEAN and timeline) or installation is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gemmprof-sections-")))
            lean = write_lean_sections(
                installation / "sections", folder, metrics.LEAN_WITHOUT if metric_set == LEAN else ()
            )
        except OSError:
            # No room for temporary files. ncu's own sections take longer, and do as well.
            lean = False
        yield folder if lean else None


def write_lean_sections(installed: Path, folder: Path, without: Collection[str]) -> bool:
    """Copy section and rule files into ``folder``, the sections without some metrics.

    Args:
        installed: the folder ``sections`` of an ncu installation.
        folder: an existing folder to write to.
        without: prefixes of the names of the metrics and tables to leave out; without any, what is sampled over time
            is left out of ncu's sets, and is there for who asks for the section.

    Returns:
        Whether there was anything to leave out; if not, ``folder`` is of no use.
    """
    changed = False
    for file in sorted(installed.glob("*.*")):
        if file.suffix != ".section":
            shutil.copyfile(file, folder / file.name)
            continue
        text = read_text(file, errors="surrogateescape")
        if without:
            lean = without_metrics(text, without)
        else:
            lean = _SETS.sub("", text) if file.stem.startswith(metrics.PM_SAMPLING) else text
        changed |= lean != text
        (folder / file.name).write_text(lean, encoding="utf-8", errors="surrogateescape")
    return changed


def without_metrics(section: str, without: Collection[str]) -> str:
    """The text of a section file less the innermost block around each metric or table whose name begins like this."""
    cuts: set[tuple[int, int]] = set()
    for match in _NAME.finditer(section):
        name = match.group(1) or match.group(2)
        if name.startswith(tuple(without)) and (block := _block_around(section, match.start())):
            cuts.add(block)
    for first, end in sorted(cuts, reverse=True):
        section = section[:first] + section[end:]
    return section


def _block_around(text: str, position: int) -> tuple[int, int] | None:
    """Where the ``Metrics { … }`` or ``Items { … }`` right around ``position`` begins and ends; None if none is."""
    first, depth = position, 0
    while depth >= 0:
        first -= 1
        if first < 0:
            return None
        depth += {"}": 1, "{": -1}.get(text[first], 0)
    keyword = re.search(r"\b(?:Metrics|Items)\s*$", text[:first])
    if keyword is None:
        return None
    end, depth = first, 0
    while True:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if depth == 0:
            return keyword.start(), end
        if end == len(text):
            return None
