"""What a worker of the cluster does for us: it asks children, builds, compiles, and looks at its machine.

These functions travel by name, so gemmprof must be installed on the workers, the same as here. A worker has as many
GPUs as CUDA shows it; a task that carries the resource GPU = 1 takes a free one, and the child on it stays for the
next. Files travel between machines by the hash of their content.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import platform
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gemmprof
from gemmprof.base.errors import BuildError, DeviceError, RunError
from gemmprof.base.foreign_files import MIB, read_bytes
from gemmprof.base.output import new_file
from gemmprof.base.system import cache_directory
from gemmprof.gpu.devices import Gpu, KernelResources, Tool, find_ncu, find_nvcc, list_gpus, visible_gpus
from gemmprof.kernels.compiler import compile_candidate, is_whole, new_entry
from gemmprof.model import Card
from gemmprof.model.answers import Check
from gemmprof.model.ladder import Variant
from gemmprof.profiler import machine
from gemmprof.profiler.site import ChildFailed, GpuChild, Work

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult

try:
    from distributed import WorkerPlugin
except ImportError:  # which `connection.connected` says
    WorkerPlugin = object

LARGEST = 2048 * MIB  # a report of a pass; Dask sends it in pieces, and keeps it in memory meanwhile

# What decides what a worker does: modules and their tables, templates, kernels.
_CODE = frozenset((".py", ".csv", ".toml", ".html", ".css", ".js", ".cu", ".cuh", ".h", ".cpp"))


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Hash of all of gemmprof as it lies here: with other code a worker would give other answers."""
    digest = hashlib.sha256()
    package = Path(gemmprof.__file__).parent
    for folder in sorted(path for path in package.iterdir() if path.is_dir()):
        for path in sorted(path for path in folder.resolve().rglob("*") if path.suffix in _CODE):
            digest.update(path.name.encode() + read_bytes(path, LARGEST))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it travels between client and workers: a library, a plug-in, a report."""

    name: str
    sha256: str
    data: bytes = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> Content:
        """The content of a file."""
        data = read_bytes(path, LARGEST)
        return cls(path.name, hashlib.sha256(data).hexdigest(), data)

    def place(self) -> Path:
        """Have the file in this machine's cache, under its hash, once; RunError if it came damaged."""
        folder = cache_directory() / "fetched" / self.sha256
        if not is_whole(folder):
            data = self._whole()
            with new_entry(folder) as new:
                (new / self.name).write_bytes(data)
        return folder / self.name

    def write(self, target: Path) -> None:
        """Write the file to ``target``, whole or not at all; errors as `place`."""
        data = self._whole()
        with new_file(target) as new:
            new.write_bytes(data)

    def _whole(self) -> bytes:
        if hashlib.sha256(self.data).hexdigest() != self.sha256:
            raise RunError(f"{self.name} arrived damaged", "run the command again")
        return self.data


IDLE_SECONDS = 60.0  # how long a child stays that nobody asks anything: it holds memory of its GPU

Carried = Mapping[str, Content]  # files that children need, by the variable that tells them the path


@dataclass(frozen=True, slots=True)
class Errand:
    """What every task of a command that takes a GPU brings along."""

    command: str  # whose it is: all of a command's are ended together (`Ending`)
    code: str  # `code_digest` of the command
    model: str  # the GPU must be one of these
    carried: Carried

    def files(self, extension: Extension | None) -> dict[str, Content]:
        """What the children of a task need, the extension among it once there is one."""
        return {**self.carried, **({extension.variable: extension.library} if extension else {})}


class GpuGone(Exception):
    """The GPU of this worker (or that one) cannot be used any more: the task is none the worse, and goes elsewhere."""

    def __init__(self, message: str, worker: str = "") -> None:
        self.worker = worker or own_address()
        super().__init__(message, self.worker)

    def __str__(self) -> str:
        return str(self.args[0])


NOT_BEGUN = "not begun"  # a request that was not begun, because its command was ended
_ended: set[str] = set()  # commands of which nothing more is begun here
_stop_files: dict[Path, str] = {}  # of the passes that are at work here, with their command
_beginning = threading.Lock()


class Ending(WorkerPlugin):  # type: ignore[misc]
    """Has every worker begin nothing more of a command, those that come later too; what was begun goes on.

    What was begun is decided where it is begun: seen from afar, a task is waiting when it has just ended, and begins
    after it was looked at.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self.name = f"gemmprof-ending-{command}"

    def setup(self, worker: Any) -> None:
        """Begin nothing more; passes at work end after the stage at hand."""
        with _beginning:
            _ended.add(self.command)
            for path in [path for path, command in _stop_files.items() if command == self.command]:
                with contextlib.suppress(FileNotFoundError):
                    path.touch()


@contextlib.contextmanager
def at_work(command: str, stop_file: Path) -> Iterator[bool]:
    """A pass that is told by a file to stop; False where it must not begin."""
    with _beginning:
        if begins := command not in _ended:
            _stop_files[stop_file] = command
    try:
        yield begins
    finally:
        with _beginning:
            _stop_files.pop(stop_file, None)


def own_address() -> str:
    """The address of the worker that this runs on."""
    from distributed import get_worker

    return str(get_worker().address)


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What a worker is like."""

    host: str
    gpus: tuple[Gpu, ...]  # those that CUDA shows it
    versions: Mapping[str, str]  # of gemmprof, Python and what decides the numbers
    sources: str  # hash of gemmprof's code, kernels and all, which must be the same everywhere
    banner: str  # the build of its nvcc, '' without one
    ncu: Tool | None
    checks: tuple[Check, ...] = field(repr=False)  # what `gemmprof doctor` finds there


def look() -> WorkerFacts:
    """What this machine is like; takes a fraction of a second and starts nothing on the GPU."""
    try:
        gpus = visible_gpus(list_gpus())
    except DeviceError:
        gpus = ()
    ncu, nvcc = find_ncu(), find_nvcc()
    versions = {"gemmprof": gemmprof.__version__, "python": platform.python_version()}
    if gpus:
        versions |= machine.versions(gpus[0], ncu)
    return WorkerFacts(
        host=socket.gethostname(),
        gpus=gpus,
        versions=versions,
        sources=code_digest(),
        banner=nvcc.banner if nvcc else "",
        ncu=ncu,
        checks=machine.examine(Path(tempfile.gettempdir())),
    )


class _Gpus:
    """The GPUs of this worker and the children on them, handed out one task at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._free: list[Card] | None = None
        self._children: dict[Card, tuple[tuple[object, ...], GpuChild]] = {}
        self._reaper: threading.Timer | None = None

    @contextlib.contextmanager
    def one(self, model: str) -> Iterator[Card]:
        """A GPU of that model that nobody else of this worker uses meanwhile."""
        with self._changed:
            if self._free is None:
                host = socket.gethostname()
                self._free = [Card(gpu.name, gpu.index, gpu.uuid, host) for gpu in look().gpus] or None
                if not self._free:
                    raise GpuGone(f"CUDA shows no GPU to the worker on {host}")
            if self._reaper is not None:
                self._reaper.cancel()
            self._changed.wait_for(lambda: bool(self._free))
            card = self._free.pop(0)
        try:
            if card.model != model:
                raise GpuGone(f"{card.label} is of another model: {card.model}")
            yield card
        finally:
            with self._changed:
                self._free.insert(0, card)  # the one whose child is there already comes first
                self._changed.notify_all()
                self._reaper = threading.Timer(IDLE_SECONDS, self.close)
                self._reaper.daemon = True
                self._reaper.start()

    def child(self, card: Card, work: Work, carried: Carried) -> GpuChild:
        """The child for this work on a GPU of ours, ready."""
        key = (repr(work), *sorted((name, content.sha256) for name, content in carried.items()))
        known = self._children.get(card)
        if known is not None and known[0] == key and known[1].running:
            return known[1]
        if known is not None:
            known[1].stop()
        child = GpuChild(work, card, pinned=True, environment=environment(carried))
        try:
            child.start()
        except ChildFailed as error:
            raise GpuGone(f"{card.label}: {error}") from None
        self._children[card] = key, child
        return child

    def drop(self, card: Card) -> None:
        """End the child on a GPU: the profiler needs it for itself."""
        if (known := self._children.pop(card, None)) is not None:
            known[1].stop()

    def close(self) -> None:
        """End the children that are not being asked."""
        with self._changed:
            for card in list(self._free or ()):
                self.drop(card)


GPUS = _Gpus()
atexit.register(GPUS.close)


def environment(carried: Carried) -> dict[str, str]:
    """The variables that tell children where their files are, each file fetched if it is not here yet."""
    return {name: str(content.place()) for name, content in carried.items()}


def ask(
    errand: Errand,
    extension: Extension | None,
    work: Work,
    record: Mapping[str, Any],
    seconds: float,
    candidate: Library | None,
) -> tuple[dict[str, Any], Card, str]:
    """Have a child answer a request; the record of its answer, the GPU, and the worker's address.

    The status is `NOT_BEGUN` once the command was ended. GpuGone if no GPU of that model can be used here.
    """
    if errand.code != code_digest():
        raise GpuGone("its gemmprof is another than the command's")
    with _beginning:
        if errand.command in _ended:
            return {"status": NOT_BEGUN}, Card(errand.model, -1, ""), own_address()
    request = dict(record)
    if candidate is not None and candidate.content is not None:
        request["library"] = str(candidate.content.place())
    with GPUS.one(errand.model) as card:
        child = GPUS.child(card, work, errand.files(extension))
        return child.ask(request, seconds), card, own_address()


def start(errand: Errand, extension: Extension | None, work: Work) -> dict[str, Any]:
    """Have a child ready for work that will come; what it says of its GPU; GpuGone if there is none of that model."""
    with GPUS.one(errand.model) as card:
        return dict(GPUS.child(card, work, errand.files(extension)).facts)


@dataclass(frozen=True, slots=True)
class Extension:
    """The extension as one worker built it, for all of its architecture."""

    record: BuildResult
    library: Content
    variable: str  # of the environment, which tells children where it is


def build_extension(architecture: str, parameters: Mapping[str, Mapping[str, int]]) -> Extension:
    """Build the extension here, with these tile parameters in place of the catalog's; errors as `build`."""
    from gemmprof.kernels.build import build
    from gemmprof.kernels.operators import EXTENSION_VARIABLE

    record = build(architectures=[architecture], parameters=parameters)
    return Extension(record, Content.of(record.library), EXTENSION_VARIABLE)


@dataclass(frozen=True, slots=True)
class Library:
    """A candidate as a worker compiled it, or the compiler's error."""

    kernels: tuple[KernelResources, ...] = ()
    content: Content | None = None
    error: BuildError | None = None


def compile_library(variant: Variant, architecture: str) -> Library:
    """Compile a candidate of a search, or find it in this machine's cache."""
    try:
        candidate = compile_candidate(variant, architecture)
    except BuildError as error:
        return Library(error=error)
    return Library(candidate.kernels, Content.of(candidate.library))


def parts(made: Extension | Library, *names: str) -> tuple[Any, ...]:
    """What is known of something that a worker made, without its bytes."""
    return tuple(getattr(made, name) for name in names)


def close() -> None:
    """End what runs on this worker's GPUs."""
    GPUS.close()
