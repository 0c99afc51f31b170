"""The tools that agents call through the Model Context Protocol: open, explain, diff, source.

The server reads the folders that it was started with and nothing else: a path is resolved, links included, and refused
if it leads out of them. It writes nothing and starts no profiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.analysis.inputs.patterns import expand
from gemmprof.analysis.inputs.selection import selection
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.reports import agents

if TYPE_CHECKING:
    from mcp.server import MCPServer

INSTRUCTIONS = (
    "Reads Nsight Compute reports (.ncu-rep) of CUDA kernels and says what holds them back. Start with `open` on a "
    "report, a run directory or a folder; then `explain` for what to change first, where, and what it would bring; "
    "`source` for the hottest lines; `diff` for what changed between two reports. Launches are counted from 0. "
    + agents.QUOTED
)
TOKENS = 3000


class Folders:
    """The folders that may be read."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def allowed(self, path: str) -> list[Path]:
        """The reports and runs that a path of a client stands for.

        Raises:
            UsageError: it leads out of the folders; whether there is something is not told.
        """
        named = self._inside(path)
        # Of a folder, links that lead elsewhere are left out.
        found = [item for item in expand([named]) if any(self._leads_into(item, root) for root in self.roots)]
        if not found:
            raise self._outside()
        return found

    def _inside(self, path: str) -> Path:
        text = Path(path)
        places = [text] if text.is_absolute() else [root / text for root in self.roots]
        inside = [place for place in places if any(self._leads_into(place, root) for root in self.roots)]
        if "\0" in path or not inside:
            raise self._outside()
        return next((place for place in inside if place.exists()), inside[0])

    def _outside(self) -> UsageError:
        return UsageError(
            "this path is outside the folders that the server was started with",
            remedies=[f"use a path below {', '.join(map(str, self.roots))}"],
        )

    @staticmethod
    def _leads_into(place: Path, root: Path) -> bool:
        try:
            return place.resolve().is_relative_to(root)
        except (OSError, ValueError, RuntimeError):
            return False

    def session(self, path: str, **words: Any) -> Session:
        """What a path stands for, read and analysed."""
        return load_session(self.allowed(path), selection=selection(**words), listed=True)


class Tools:
    """What clients may call; the docstrings are what they are told of each.

    Args:
        folders: what may be read.
    """

    def __init__(self, folders: Folders) -> None:
        self.folders = folders

    def open(
        self, path: str, kernel: str | None = None, nvtx: str | None = None, tokens: int = TOKENS
    ) -> str:
        """List what a report, run directory or folder holds: families of launches, the most to gain first.

        Args:
            path: a .ncu-rep file, a run directory, or a folder of them.
            kernel: only kernels in whose full name this regular expression is found, or ids of families: #3.
            nvtx: only launches within NVTX ranges (joined by /) in which this regular expression is found.
            tokens: about how long the answer may be.
        """
        return agents.within(agents.overview(self.folders.session(path, kernel=kernel, nvtx=nvtx)), tokens)

    def explain(
        self, path: str, kernel: str | None = None, launch: int | str | None = None, tokens: int = TOKENS
    ) -> str:
        """Say what to change first in each kernel, where, and what it is predicted to save, with the evidence.

        Args:
            path: a .ncu-rep file, a run directory, or a folder of them.
            kernel: only kernels in whose full name this regular expression is found, or ids of families: #3.
            launch: only these positions in the report, from 0: 3, "2-5", "0,4".
            tokens: about how long the answer may be.
        """
        from gemmprof.reports.explanations.markdown import document
        from gemmprof.reports.explanations.words import explained

        session = self.folders.session(path, kernel=kernel, launches=launch)
        found = explained(session, session.families)
        return f"{agents.QUOTED}\n\n{document(found, budget=max(tokens, 50))}"

    def diff(self, before: str, after: str, kernel: str | None = None, tokens: int = TOKENS) -> str:
        """Say whether each kernel is SAME, FASTER, SLOWER or one CAN'T TELL from one report or run to another, and why.

        Args:
            before, after: .ncu-rep files or run directories.
            kernel: only kernels in whose full name this regular expression is found, or ids of families: #3.
            tokens: about how long the answer may be.
        """
        from gemmprof.analysis.comparison.matching import match
        from gemmprof.analysis.comparison.outcome import ACROSS, compare_matches
        from gemmprof.analysis.comparison.sides import load_side

        wanted = selection(kernel=kernel)
        left, right = (load_side(self.folders.allowed(path), wanted) for path in (before, after))
        found = compare_matches(match(left, right), before=left.title, after=right.title, across=ACROSS)
        return agents.within(agents.diff(found), tokens)

    def source(
        self, path: str, launch: int = 0, sass: bool = False, lines: int = 20, tokens: int = TOKENS
    ) -> str:
        """Show the hottest source lines (or SASS instructions) of one launch, with their share of the samples.

        Args:
            path: a .ncu-rep file or a run directory.
            launch: position in the report, from 0.
            sass: instructions instead of CUDA lines.
            lines: how many.
            tokens: about how long the answer may be.
        """
        session = self.folders.session(path, launches=str(launch))
        return agents.within(
            agents.source(session.whole(0, code=True), most=max(1, lines), sass=sass), tokens
        )

    @property
    def all(self) -> tuple[Callable[..., str], ...]:
        """Every tool, in the order in which they are used."""
        return (self.open, self.explain, self.diff, self.source)


def server(roots: Sequence[Path]) -> MCPServer:
    """The server over these folders.

    Raises:
        UsageError: the package ``mcp`` is not installed.
    """
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise UsageError("the server needs the package mcp", remedies=["pip install 'mcp>=2'"]) from None
    made = MCPServer("gemmprof", instructions=INSTRUCTIONS)
    for tool in Tools(Folders(roots)).all:
        made.tool()(_answering(tool))
    return made


def _answering(function: Callable[..., str]) -> Callable[..., str]:
    """The tool, whose errors come back as the sentences that people get, marked as errors."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(function)
    def answer(*args: Any, **kwargs: Any) -> str:
        try:
            return function(*args, **kwargs)
        except GemmprofError as error:
            raise ToolError(agents.fence(str(error))) from None

    return answer
