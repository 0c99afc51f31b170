"""Profile a marked region of a script or notebook: ``with gemmprof.profile(): …`` or ``@gemmprof.profile``.

Nsight Compute profiles whole processes from their start, so a region cannot be profiled where it runs. It runs here
once as it is; then the script (or the notebook's cells up to this one) runs again in a child under ncu, in which only
this region is profiled and which ends with it.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from gemmprof.base.errors import UsageError
from gemmprof.runs.directory import DEFAULT_PROFILES_DIRECTORY, timestamped

if TYPE_CHECKING:
    from gemmprof.api.opened import Report

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Set in the child: which region, counted from 1 in the order in which regions are entered, to profile.
REGION_VARIABLE = "GEMMPROF_REGION"
# Set in the child: JSON of the reports of the regions before, by their number, which the script may look at again.
REPORTS_VARIABLE = "GEMMPROF_REGION_REPORTS"
_entered = 0
_reports: dict[str, str] = {}  # of the regions profiled so far, by number: paths


class Region:
    """One marked region; made by `profile`.

    Attributes:
        folder: where reports, logs and pages lie.
    """

    def __init__(self, options: dict[str, Any], output: str | os.PathLike[str] | None, pages: bool) -> None:
        self._options, self._pages, self._number = options, pages, 0
        self.folder = None if output is None else Path(output)
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """The profiled launches. In the child, those that an earlier region brought when it was profiled.

        Raises:
            UsageError: the region has not been left yet.
        """
        if self._report is None:
            known = json.loads(os.environ.get(REPORTS_VARIABLE, "{}")).get(str(self._number))
            if known is None:
                fix = "look at it behind the with block, or after the decorated function's first call"
                raise UsageError("this region has not been profiled yet", fix)
            from gemmprof.api import opened

            self._report = opened.open(known)
        return self._report

    @property
    def _mine(self) -> bool:
        """In the child: whether this is the region that it was started for."""
        return os.environ.get(REGION_VARIABLE) == str(self._number)

    def __enter__(self) -> Region:
        global _entered
        _entered += 1
        self._number = _entered
        if REGION_VARIABLE not in os.environ:
            from gemmprof.profiler.ncu.command import require_ncu

            require_ncu()  # before the region's work is done
            _again()
        elif self._mine:
            _driver("cuProfilerStart")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if REGION_VARIABLE in os.environ:
            if self._mine:
                _driver("cuCtxSynchronize")
                _driver("cuProfilerStop")
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, ValueError):
                        stream.flush()
                os._exit(0 if kind is None else 1)  # what follows the region is not wanted a second time
        elif kind is None:
            self._report = self._profiled()

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """As a decorator: the first call is the region, the others run as they are."""
        first = True

        @functools.wraps(function)
        def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            nonlocal first
            if not first:
                return function(*args, **kwargs)
            first = False
            with self:
                return function(*args, **kwargs)

        wrapped.profile = self  # type: ignore[attr-defined]
        return wrapped

    def _say(self, *lines: str) -> None:
        if not self._options["quiet"]:
            sys.stderr.write("".join(f"{line}\n" for line in lines))

    def _profiled(self) -> Report:
        """Run the program again under ncu and open what comes of it."""
        from gemmprof.analysis.inputs.selection import selection
        from gemmprof.api import launch_choice, opened
        from gemmprof.profiler.programs import ProgramProfiler, program_name

        options = self._options
        with tempfile.TemporaryDirectory(prefix="gemmprof-region-") as scratch:
            program = _again(Path(scratch))
            name = program_name(program)
            folder = self.folder or Path(DEFAULT_PROFILES_DIRECTORY) / f"{name}_{timestamped()}"
            folder.mkdir(parents=True, exist_ok=True)
            self.folder = folder
            profiler = ProgramProfiler(
                program=program,
                folder=folder,
                metric_set=options["metric_set"],
                marked_only=True,
                environment={REGION_VARIABLE: str(self._number), REPORTS_VARIABLE: json.dumps(_reports)},
            )
            wanted = selection(options["kernel"], None, options["nvtx"], options["top"])
            counted = launch_choice.count(profiler, wanted)
            choice = launch_choice.chosen(counted, wanted, limit=options["count"])
            cost = launch_choice.cost(choice, counted, metric_set=options["metric_set"])
            self._say(f"gemmprof: {counted}", *cost)
            collected = profiler.profile(choice.filters)
        if collected.report is None:
            raise KeyboardInterrupt
        report = opened.open(collected.report)
        _reports[str(self._number)] = str(collected.report.absolute())
        if self._pages:
            report.write_html(folder / "pages", force=True)
            self._say(f"Wrote {folder / 'pages' / 'index.html'}")
        return report


@overload
def profile(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]: ...
@overload
def profile(
    function: None = None,
    *,
    kernel: str | None = None,
    nvtx: str | None = None,
    top: int | None = None,
    count: int = 50,
    metric_set: str = "lean",
    output: str | os.PathLike[str] | None = None,
    pages: bool = False,
    quiet: bool = False,
) -> Region: ...
def profile(
    function: Callable[..., Any] | None = None,
    *,
    kernel: str | None = None,
    nvtx: str | None = None,
    top: int | None = None,
    count: int = 50,
    metric_set: str = "lean",
    output: str | os.PathLike[str] | None = None,
    pages: bool = False,
    quiet: bool = False,
) -> Any:
    """Profile the kernels of a region with Nsight Compute::

        with gemmprof.profile(kernel="softmax") as region:
            step()
        print(region.report.to_markdown())

        @gemmprof.profile
        def step(): ...

    The region runs once as it is, then the whole script (or the notebook's cells so far) runs again in a child, up to
    the end of this region. What stands before it should be quick, and do the same every time.

    Args:
        function: the decorated function where the decorator has no arguments.
        kernel: only kernels in whose full name this regular expression is found.
        nvtx: only launches within such NVTX ranges.
        top: only the so many kernels and grids that take most time.
        count: at most so many kernels and grids, the most expensive ones.
        metric_set: ``lean`` or one of ncu's own: ``basic``, ``detailed``, ``full``, ``roofline``.
        output: folder for reports and logs (default: a new one in ``gemmprof-profiles``).
        pages: also render the pages, into ``pages`` of that folder.
        quiet: say nothing on stderr.

    Raises:
        DeviceError: there is no ncu.
        UsageError: there is no script to run again, or the words of selection are wrong.
        ProfilerError: ncu failed; the message says why.
    """
    if function is not None and not callable(function):
        raise UsageError(
            f"profile() takes no {type(function).__name__}: it marks a region of Python",
            "mark a region: with gemmprof.profile(): …",
            "profile a program: gemmprof profile -- COMMAND",
            "read a report: gemmprof.open(path)",
        )
    asked = {"kernel": kernel, "nvtx": nvtx, "top": top, "count": count, "metric_set": metric_set}
    region = Region({**asked, "quiet": quiet}, output, pages)
    return region(function) if function is not None else region


def _driver(call: str) -> None:
    """A call of the CUDA driver without arguments; nothing without a driver, which ncu will say."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libcuda.so.1")
        library.cuInit(0)
        getattr(library, call)()


def _again(scratch: Path | None = None) -> tuple[str, ...]:
    """The command that runs this program again; a notebook's cells are written to ``scratch`` first."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None:
        if scratch is None:
            return ()
        # What was run so far, this cell included; magics are already translated into calls of get_ipython() here.
        cells = [cell for cell in shell.history_manager.input_hist_parsed if cell.strip()]
        files = []  # each cell from a file of its own, so that its source is found
        for number, cell in enumerate(cells, 1):
            file = scratch / f"cell_{number}.py"
            file.write_text(cell, encoding="utf-8")
            files.append(str(file))
        script = scratch / "notebook.py"
        script.write_text(_RUNNER.format(folder=str(Path.cwd()), files=json.dumps(files)), encoding="utf-8")
        return (sys.executable, str(script))
    words = tuple(sys.orig_argv)
    has_script = any(not word.startswith("-") for word in words[1:]) or "-c" in words
    if not has_script or hasattr(sys, "ps1"):
        fixes = "put the lines into a file and run it with python", "or use a notebook"
        raise UsageError("there is no script to run again: the region was entered at a prompt", *fixes)
    return (sys.executable, *words[1:])


_RUNNER = """\
import json, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
class _NoShell:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None
def get_ipython():
    return _NoShell()
def display(*args, **kwargs):
    pass
names = {{"__name__": "__main__", "get_ipython": get_ipython, "display": display}}
for file in json.loads({files!r}):
    code = compile(Path(file).read_text(encoding="utf-8"), file, "exec")
    try:
        exec(code, names)
    except Exception as error:  # a cell that failed in the notebook fails here too, and the next one goes on
        print(f"{{Path(file).name}}: {{type(error).__name__}}: {{error}}", file=sys.stderr)
"""
