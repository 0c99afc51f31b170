"""Recorded reports are unpacked and explained once, and decoded once a worker, however many tests ask for them.

What a report holds does not change while its file does not: profiles are frozen, and an explanation follows from one
alone. Reports that a test writes are read anew each time, and so is everything where reading is what is tested
(`read_anew`) and in the campaign.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import gzip
import os
import pickle
import shutil
import sys
import tarfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import forked
import score_studies
from recorded_data import DATA, ROOT

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.comparison import sides
from gemmprof.analysis.comparison.records import KernelRecord
from gemmprof.analysis.explanation import engine
from gemmprof.analysis.reading import frame, lookup
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.system import kept_folder
from gemmprof.children import line_worker
from gemmprof.model import Explanation, KernelProfile

HOMES = (DATA, ROOT / "gemmprof" / "recorded", ROOT / "docs" / "examples" / "recorded")
MOST_LAUNCHES = 4000
"""Decoded launches that are kept."""
MOST_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 6
"""Memory of a worker from which on it forgets what it kept, between two files of tests: reading it again takes a sixth
of all processor time."""


UNPACKED = "GEMMPROF_TESTS_UNPACKED"
"""Names the folder in which workers of a session keep what all need: explanations and unpacked reports (1 GB)."""


_shared: list[Path] = []

_KNOWN = kept_folder(lookup.FOLDER)

SAID = DATA / "said.tar.xz"
"""What NVIDIA's library says of recorded code and units, entries of the cache (`tools/keep_said.py`): asking it of each
kernel anew took the tests of `explain` a quarter of their processor time."""
ASK = "GEMMPROF_TESTS_ASK"
"""With "1" the library is asked all the same."""


def put_what_was_said() -> None:
    """Put these answers into the cache, where all processes look: they are by the library's version and the code."""
    if _KNOWN is None or os.environ.get(ASK) == "1":
        return
    with suppress(OSError), tarfile.open(SAID) as archive:  # a cache that cannot be written is no error
        _KNOWN.mkdir(parents=True, exist_ok=True)
        for entry in archive:
            kept = _KNOWN / entry.name
            if not kept.exists():
                with _written(kept) as beside:
                    beside.write_bytes(gzip.compress(archive.extractfile(entry).read(), 1))  # type: ignore[union-attr]


def own_cache(folder: Path) -> Path:
    """A new cache, in which nothing is but what NVIDIA's library said of code and units: it takes each process that
    asks it half a second.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if _KNOWN is not None and not (folder / _KNOWN.name).exists():
        _KNOWN.mkdir(parents=True, exist_ok=True)
        (folder / _KNOWN.name).symlink_to(_KNOWN)
    return folder


def keep_recorded(stack: ExitStack) -> None:
    """Keep what is read of the recorded reports until the stack is closed."""
    if UNPACKED not in os.environ:  # the first process of a session
        os.environ[UNPACKED] = stack.enter_context(TemporaryDirectory(prefix="gemmprof-tests-"))
        stack.callback(os.environ.pop, UNPACKED, None)
    _shared.append(Path(os.environ[UNPACKED]))  # tests put another environment in place of this one
    frame._decompress = _kept_unpacked(frame._decompress)
    stack.enter_context(frame.unpacked_once())
    ReportReader.profiles = _kept_profiles(ReportReader.profiles)  # type: ignore[method-assign]
    engine.explain = _kept_explanations(engine.explain)
    sides._of_report = _kept_records(sides._of_report)
    kernel_analysis.Results.__init__ = _kept_results(kernel_analysis.Results.__init__)  # type: ignore[method-assign]
    line_worker.subprocess = forked.Subprocess()  # type: ignore[attr-defined]
    score_studies._unpacked = cache(_kept_studies)


_anew: list[None] = []


@contextmanager
def read_anew() -> Iterator[None]:
    """Inside this context nothing is kept: for tests of the reading itself, and of what damaged files do to it."""
    _anew.append(None)
    token = frame._kept.set(None)
    try:
        yield
    finally:
        frame._kept.reset(token)
        _anew.pop()


_launches: OrderedDict[Any, KernelProfile] = OrderedDict()
_ids: dict[int, KernelProfile] = {}
_names: dict[int, str] = {}
_explanations: dict[int, Explanation] = {}
_results: dict[int, dict[str, Any]] = {}
_records: dict[Any, list[KernelRecord]] = {}


def forget_if_large() -> None:
    """Where this process has grown large, drop what is kept here and what analyses remember of code that they saw."""
    if (
        not _shared
        or int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") < MOST_BYTES
    ):
        return
    for kept in (_launches, _ids, _names, _explanations, _results, _records):
        kept.clear()  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):
        if name.startswith("gemmprof.analysis."):
            for function in vars(module).values():
                if hasattr(function, "cache_clear"):
                    function.cache_clear()
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library than GNU's
        ctypes.CDLL(None).malloc_trim(0)


def _file(path: str | Path) -> tuple[str, str, int] | None:
    """What tells a recorded report from others and from itself changed; None of a file that is none."""
    place = Path(path).absolute()
    if _anew or not any(place.is_relative_to(home) for home in HOMES) or not place.exists():
        return None
    return str(path), str(place), place.stat().st_mtime_ns


def _plain(value: Any) -> object:
    """What tells one of what is wanted from another, in every process."""
    if isinstance(value, (set, frozenset, tuple)):
        return tuple(sorted(value))
    return getattr(value, "__qualname__", value)


def _name(*of: object) -> str:
    return sha256(repr(of).encode()).hexdigest()


@contextmanager
def _written(kept: Path) -> Iterator[Path]:
    """A file that is there, whole, once it is written; another worker may have been as far."""
    beside = kept.with_suffix(f".{os.getpid()}")
    yield beside
    beside.replace(kept)


def _kept_unpacked(decompress: Callable[..., BinaryIO]) -> Callable[..., BinaryIO]:
    def unpacked(path: Path, packed: BinaryIO, limit: int) -> BinaryIO:
        file = _file(path)
        if file is None:
            return decompress(path, packed, limit)
        kept = _shared[0] / _name(file[1:])
        if not kept.exists():
            with _written(kept) as beside, decompress(path, packed, limit) as made, beside.open("wb") as copy:
                made.seek(0)
                shutil.copyfileobj(made, copy, 1 << 20)
        return kept.open("rb", buffering=0)

    return unpacked


def _kept_studies(packed: Path) -> Path:
    kept = _shared[0] / _name(str(packed), packed.stat().st_mtime_ns)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait for what takes them as long
        if not kept.exists():
            score_studies.unpack(packed, kept.with_suffix(".new"))
            kept.with_suffix(".new").rename(kept)
    return kept


def _kept_profiles(read: Callable[..., Iterator[KernelProfile]]) -> Callable[..., Iterator[KernelProfile]]:
    def profiles(self: ReportReader, **wanted: Any) -> Iterator[KernelProfile]:
        file, only = _file(self.path), wanted.pop("only", None)
        places = range(len(self)) if only is None else sorted(set(only) & set(range(len(self))))
        cells = [cell.cell_contents for cell in getattr(wanted.get("source"), "__closure__", None) or ()]
        # A function that closes over more than a word may choose otherwise next time.
        chosen = any(not isinstance(cell, (bool, str)) for cell in cells)
        if file is None or chosen or len(places) > MOST_LAUNCHES // 4:
            yield from read(self, **wanted, only=only)
            return
        key = (*file, *cells, *((name, _plain(value)) for name, value in sorted(wanted.items())))
        missing = {place for place in places if (key, place) not in _launches}
        for profile in read(self, **wanted, only=missing) if missing else ():
            _launches[key, profile.index] = _ids[id(profile)] = profile
            # By what was read, not by how it was asked for: an explanation follows from that alone.
            parts = (
                profile.metrics,
                profile.units,
                profile.instances,
                profile.rules,
                profile.source.instructions,
            )
            _names[id(profile)] = _name(file, profile.index, *map(len, parts))
        found = [_launches[key, place] for place in places]
        for place in places:
            _launches.move_to_end((key, place))
        while len(_launches) > MOST_LAUNCHES:
            profile = _launches.popitem(last=False)[1]
            for kept in (_ids, _names, _explanations, _results):
                kept.pop(id(profile), None)  # type: ignore[attr-defined]
        yield from found

    return profiles


def _kept_records(read: Callable[..., list[KernelRecord]]) -> Callable[..., list[KernelRecord]]:
    @wraps(read)  # workers of a cluster look it up by its name
    def records(path: Path, only: set[int] | None, each_launch: bool) -> list[KernelRecord]:
        file = _file(path)
        if file is None:
            return read(path, only, each_launch)
        key = (file, only and frozenset(only), each_launch)
        if key not in _records:
            _records[key] = read(path, only, each_launch)
        return list(_records[key])

    return records


def _kept_explanations(explain: Callable[..., Explanation]) -> Callable[..., Explanation]:
    def explained(profile: KernelProfile, *settings: Any) -> Explanation:
        if _anew or settings or _ids.get(id(profile)) is not profile:
            return explain(profile, *settings)
        if id(profile) not in _explanations:
            kept = _shared[0] / _names[id(profile)]
            if kept.exists():
                _explanations[id(profile)] = pickle.loads(kept.read_bytes())
            else:
                _explanations[id(profile)] = explain(profile)
                with _written(kept) as beside:
                    beside.write_bytes(pickle.dumps(_explanations[id(profile)]))
        return _explanations[id(profile)]

    return explained


def _kept_results(begin: Callable[..., None]) -> Callable[..., None]:
    def init(self: kernel_analysis.Results, profile: KernelProfile, *made: Any) -> None:
        begin(self, profile, *made)
        if not _anew and not made and _ids.get(id(profile)) is profile:
            self._made = _results.setdefault(id(profile), self._made)

    return init
