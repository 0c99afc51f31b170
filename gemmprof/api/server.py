"""The tools that agents call through the Model Context Protocol: open, explain, diff, source.

The server reads the folders that it was started with and nothing else: a path is resolved, links included, and refused
if it leads out of them, and so is a file that turns out to lie elsewhere once it is open. It writes nothing and starts
no profiler. Reading is done by workers, which are ended when an answer takes too long or the client is gone.
"""

from __future__ import annotations

import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.analysis.comparison.outcome import ACROSS, compare
from gemmprof.analysis.comparison.sides import load_side
from gemmprof.analysis.inputs.selection import expand, selection
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.documents import Document, json_text
from gemmprof.base.errors import GemmprofError, ReportError, UsageError
from gemmprof.base.foreign_files import confine
from gemmprof.base.printable import json_safe
from gemmprof.children.line_worker import LineWorker, WorkerError, serve
from gemmprof.children.watched import python_command
from gemmprof.reports import agents
from gemmprof.reports.words import explained

if TYPE_CHECKING:
    from mcp.server import MCPServer

INSTRUCTIONS = (
    "Reads Nsight Compute reports (.ncu-rep) of CUDA kernels and says what holds them back. Start with `open` on a "
    "report, a run directory or a folder; then `explain` for what to change first, where, and what it would bring; "
    "`source` for the hottest lines; `diff` for what changed between two reports. Launches are counted from 0. "
    + agents.QUOTED
)
TOKENS = 3000
MOST_TOKENS = 100_000  # no answer is longer, whatever is asked for
SECONDS = 10.0  # how long an answer may take: longer and clients give up
# How much of them the whole answer may take; the rest is for listing what there is, which needs no explaining.
WHOLE_SECONDS = 7.0
WORKERS = 2  # requests that are answered at a time; one that takes its whole time must not hold up the next
GRACE_SECONDS = 5.0  # how long it answers what was asked before the client closed its end: it may listen on
MODULE = "gemmprof.api.server"


class Tools:
    """What clients may call; the docstrings of `all` are what they are told of each.

    Args:
        roots: the folders that may be read.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def allowed(self, path: str) -> list[Path]:
        """The reports and runs that a path of a client stands for.

        Raises:
            UsageError: it leads out of the folders; whether there is something is not told.
        """
        text = Path(path)
        places = [text] if text.is_absolute() else [root / text for root in self.roots]
        inside = [place for place in places if self._is_inside(place)]
        if "\0" in path or ".." in text.parts or not inside:
            outside = "this path is outside the folders that the server was started with"
            raise UsageError(outside, f"use a path below {', '.join(map(str, self.roots))}")
        named = next((place for place in inside if place.exists()), inside[0])
        try:
            # Of a folder or pattern, links that lead elsewhere are left out, as if there were nothing.
            found = [item for item in expand([named]) if self._is_inside(item)]
        except ReportError:
            if named.is_dir():
                raise
            found = []
        if not found:
            raise UsageError("no report or run under this path", "`open` with the path . lists what there is")
        return found

    def _is_inside(self, place: Path) -> bool:
        try:
            return any(map(place.resolve().is_relative_to, self.roots))
        except (OSError, ValueError, RuntimeError):
            return False

    def session(self, path: str, **words: Any) -> Session:
        """What a path stands for, read and analysed."""
        return load_session(self.allowed(path), selection=selection(**words), listed=True)

    def open(
        self,
        path: str,
        kernel: str | None = None,
        nvtx: str | None = None,
        owner: str | None = None,
        json: bool = False,
        tokens: int = TOKENS,
    ) -> str:
        """List what a report, run directory or folder holds: families of launches, the most to gain first.

        Args:
            path: a .ncu-rep file, a run directory, or a folder of them.
            kernel: only kernels in whose full name this regular expression is found, or ids of families: #3.
            nvtx: only launches within NVTX ranges (joined by /) in which this regular expression is found.
            owner: only kernels whose owner it is found in: own, triton, cublas, cudnn, torch, inductor, nccl.
            json: the document that the command line prints with --json, instead of Markdown.
            tokens: about how long the answer may be.
        """
        session = self.session(path, kernel=kernel, nvtx=nvtx, owner=owner)
        if json:
            from gemmprof.reports.documents.of_launches import ShowDocument

            return _typed(ShowDocument.of_session(session, everything=False), tokens)
        return agents.within(agents.overview(session), tokens)

    def explain(
        self,
        path: str,
        kernel: str | None = None,
        launch: int | str | None = None,
        json: bool = False,
        tokens: int = TOKENS,
    ) -> str:
        """Say what to change first in each kernel, where, and what it is predicted to save, with the evidence.

        Args:
            path: a .ncu-rep file, a run directory, or a folder of them.
            kernel: only kernels in whose full name this regular expression is found, or ids of families: #3.
            launch: only these positions in the report, from 0: 3, "2-5", "0,4".
            json: the document that the command line prints with --json, instead of Markdown.
            tokens: about how long the answer may be.
        """
        session = self.session(path, kernel=kernel, launches=launch)
        if json:
            from gemmprof.reports.documents.of_findings import explain_document

            return _typed(explain_document(session), tokens)
        found = explained(session, session.families)
        return f"{agents.QUOTED}\n\n{agents.markdown(found, budget=max(tokens, 50))}"

    def diff(
        self,
        before: str,
        after: str,
        kernel: str | None = None,
        code: bool = False,
        json: bool = False,
        tokens: int = TOKENS,
    ) -> str:
        """Say whether each kernel is SAME, FASTER, SLOWER or one CAN'T TELL from one report or run to another, and why.

        Args:
            before, after: .ncu-rep files or run directories.
            kernel: only kernels in whose full name this regular expression is found, or ids of families: #3.
            code: source and SASS of both aligned, where time moved or is spent; `gemmprof diff BEFORE AFTER --format
                html -o diff.html` writes the whole of it as a page for people.
            json: the document that the command line prints with --json, instead of Markdown.
            tokens: about how long the answer may be.
        """
        wanted = selection(kernel=kernel)
        left, right = (load_side(self.allowed(path), wanted) for path in (before, after))
        outcome = compare(left, right, across=ACROSS)
        if json:
            from gemmprof.reports.documents.of_comparison import compared

            return _typed(compared(outcome, None), tokens)
        if code:
            return agents.within(agents.code_diff(outcome), tokens)
        return agents.within(agents.diff(outcome), tokens)

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
        session = self.session(path, launches=str(launch))
        shown = agents.source(session.whole(0, code=True), most=max(1, lines), sass=sass)
        return agents.within(shown, tokens)

    @property
    def all(self) -> tuple[Callable[..., str], ...]:
        """Every tool, in the order in which they are used."""
        return (self.open, self.explain, self.diff, self.source)

    def listing(self, path: str = "", before: str = "", after: str = "", **arguments: Any) -> str:
        """What is answered in place of that which takes too long: what there is, and how to ask for less."""
        if arguments.get("json"):
            what = f"the document was not done within {WHOLE_SECONDS:g} s, and a part of one would be another"
            fixes = "ask for one kernel: '#1'", "ask without json: families are listed"
            raise UsageError(what, *fixes)
        words = {name: arguments.get(name) for name in ("kernel", "nvtx", "owner")}
        lines = [
            f"Not done within {WHOLE_SECONDS:g} s: families by time, nothing explained. Ask for one of them "
            "(kernel='#1'), one launch, or one report of several."
        ]
        for place in filter(None, (path, before, after)):
            session = self.session(place, launches=arguments.get("launch"), **words)
            lines += ["", *agents.overview(session, explained=False)]
        return agents.within(lines, arguments.get("tokens", TOKENS))


def _typed(document: Document, tokens: int) -> str:
    """A document as JSON, whole or not at all: a part of one would be another."""
    text = json_safe(json_text(document, indent=0))
    needed = int(len(text) / agents.LETTERS_PER_TOKEN) + 1
    if needed > tokens:
        fixes = f"tokens={needed}" if needed <= MOST_TOKENS else "one report", "ask for one kernel: '#1'"
        raise UsageError(f"the document takes about {needed:,} tokens", *fixes)
    return text


def server(roots: Sequence[Path]) -> MCPServer:
    """The server over these folders; UsageError if the package ``mcp`` is not installed."""
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise UsageError("the server needs the package mcp", "pip install 'mcp>=2'") from None
    made = MCPServer("gemmprof", instructions=INSTRUCTIONS)
    readers = Readers(roots)
    for tool in Tools(roots).all:
        made.tool()(_answering(tool, readers))
    if hasattr(select, "poll"):  # else the server ends with its input, once what was asked is answered
        threading.Thread(target=_end_with_client, args=(readers,), daemon=True).start()
    return made


class Readers:
    """The workers that read and answer.

    Args:
        roots: the folders that they may read.
        whole_seconds: how much of `SECONDS` an answer may take before families are listed in its place.
    """

    def __init__(self, roots: Sequence[Path], whole_seconds: float = WHOLE_SECONDS) -> None:
        self._whole_seconds = whole_seconds
        self._roots = [str(root.resolve()) for root in roots]
        self._all = [LineWorker(python_command(MODULE), name="the reader") for _ in range(WORKERS)]
        self._idle: queue.LifoQueue[LineWorker] = queue.LifoQueue()
        for worker in self._all:
            self._idle.put(worker)

    @property
    def busy(self) -> bool:
        """Whether something is being answered."""
        return self._idle.qsize() < len(self._all)

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The ``text`` of an answer, or its ``error``, within `SECONDS`."""
        end = time.monotonic() + SECONDS
        try:
            worker = self._idle.get(timeout=self._whole_seconds)
        except queue.Empty:
            return {"error": str(UsageError("other requests take all the time", "ask again"))}
        request = {"tool": tool, "arguments": arguments, "roots": self._roots}
        try:
            try:
                return worker.ask(request, max(0.0, end - SECONDS + self._whole_seconds - time.monotonic()))
            except WorkerError as error:
                if error.ending:  # it crashed, and would again
                    raise
                return worker.ask({**request, "tool": "listing"}, max(0.0, end - time.monotonic()))
        except WorkerError as error:
            return {"error": str(UsageError(str(error), "ask for less: one report, one kernel, one launch"))}
        finally:
            self._idle.put(worker)

    def stop(self) -> None:
        """End them, whatever they do."""
        for worker in self._all:
            worker.stop()


def _end_with_client(readers: Readers) -> None:
    """Leave when the client has closed its end, and what it had asked is answered or has had its time."""
    poll = select.poll()
    try:
        poll.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)
        while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
            time.sleep(0.1)
    except (OSError, ValueError):  # no standard input to look at: the server itself ends then
        return
    end = time.monotonic() + GRACE_SECONDS
    time.sleep(0.2)  # what was just read is on its way to a worker
    while readers.busy and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)  # and the answer on its way to the client
    readers.stop()
    os._exit(0)


def _answering(function: Callable[..., str], readers: Readers) -> Callable[..., Any]:
    """The tool, answered by a worker; its errors come back as the sentences that people get, marked as errors."""
    from anyio.to_thread import run_sync
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(function)
    async def answer(**kwargs: Any) -> str:
        ask = partial(readers.ask, function.__name__, kwargs)
        found = await run_sync(ask, abandon_on_cancel=True)
        if "error" in found:
            # Sentences quote names of files and kernels: they are data, too.
            tokens = min(int(kwargs.get("tokens", TOKENS)), MOST_TOKENS)
            lines = found["error"].splitlines()
            raise ToolError(f"{agents.QUOTED}\n\n{agents.fence(agents.shortened(lines, tokens))}")
        return str(found["text"])

    return answer


def _answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    confine(request["roots"])
    made = Tools([Path(root) for root in request["roots"]])
    tools = {tool.__name__: tool for tool in (*made.all, made.listing)}
    arguments = dict(request["arguments"])
    if "tokens" in arguments:
        arguments["tokens"] = max(1, min(int(arguments["tokens"]), MOST_TOKENS))
    try:
        return {"text": tools[request["tool"]](**arguments)}
    except GemmprofError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": str(UsageError(error.strerror or type(error).__name__, "check the path"))}
    except Exception as error:
        return {"error": f"this is a fault of gemmprof: {type(error).__name__}: {error}\n  fix: report it"}


if __name__ == "__main__":
    serve(_answer)
