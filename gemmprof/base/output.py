"""Writing so that a reader, and the next run, meets the old output or the new one, never half of either.

A file is written beside its target and renamed over it. A folder is made beside its target and the two change places
in one step. Whatever stops the writing (an error, Ctrl-C, ``kill -9``, a full disk) leaves the old output as it was;
what a killed process leaves lying is removed by the next one that writes to the same place. Links are not followed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gemmprof.base import system
from gemmprof.base.errors import UsageError

_MARK = "gemmprof-"
PATIENCE_SECONDS = 5.0  # how long a writer of one file waits for others that are about to begin theirs
LOCK_POLL_SECONDS = 0.002
_EXCHANGE = 2  # renameat2's RENAME_EXCHANGE
_AT_FDCWD = -100


@contextlib.contextmanager
def new_file(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """A path to write to; what stands there at the end of the context replaces ``target``, at an error nothing does.

    The path has the target's suffix, for writers that go by it. ``durable``: it is on the disk before it has its name,
    so that no loss of power leaves an empty file there. An OSError names the target.
    """
    with _naming(target), _one_at_a_time(target.parent, patience=PATIENCE_SECONDS) as alone:
        if alone:
            _remove_leftovers(target.parent, target.name)
        handle: int | None
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target.name), suffix=target.suffix)
        if not system.POSIX:  # there no open file can be renamed
            os.close(handle)
            handle = None
        _hold(handle)
    temporary = Path(name)
    try:
        with _naming(target):
            yield temporary
            os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101 (mkstemp makes files private)
            if durable:
                _sync(temporary)
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        system.close(handle)


def write_new(target: Path, text: str, *, durable: bool = False) -> Path:
    """Write a text as such a file (`new_file`); returns the target."""
    with new_file(target, durable=durable) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


@contextlib.contextmanager
def new_folder(target: Path, *, is_ours: Callable[[Path], bool], durable: bool = False) -> Iterator[Path]:
    """A folder to write to; at the end of the context its files stand in ``target`` (made), in place of the older ones.

    Regular files of the target that ``is_ours`` says yes to and that were not written again are removed, others stay;
    one of somebody else's under the name of a new one is not replaced: UsageError. ``durable``: the files are on the
    disk before they take their places. An OSError names the target.
    """
    target = target.resolve()
    with _naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(target.parent):
            _remove_leftovers(target.parent, target.name)
            staging = _staging(target)
            lock = system.open_folder(staging)
            _hold(lock)
    try:
        with _naming(target):
            yield staging
            if durable:
                for path in staging.iterdir():
                    _sync(path)
            os.chmod(staging, stat.S_IMODE(target.stat().st_mode) if target.is_dir() else 0o777 & ~_umask())  # noqa: PTH101 (mkdtemp makes folders private)
            with _one_at_a_time(target.parent):
                _publish(staging, target, is_ours)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        system.close(lock)


def refuse_foreign(files: list[Path]) -> None:
    """Refuse to replace what is not ours: UsageError naming the first of these files."""
    if files:
        fixes = "name another folder with -o", "move the file away, if it is not needed"
        raise UsageError(f"{files[0]} was not written by gemmprof, or is a link, and is not replaced", *fixes)


def _publish(staging: Path, target: Path, is_ours: Callable[[Path], bool]) -> None:
    made = {entry.name for entry in staging.iterdir()}
    there = list(target.iterdir()) if target.is_dir() else []
    ours = [entry for entry in there if _is_regular(entry) and is_ours(entry)]
    others = [entry for entry in there if entry not in ours]
    refuse_foreign([entry for entry in others if entry.name in made])
    movable = all(not entry.is_dir() or entry.is_symlink() for entry in others)
    if movable and not _is_stood_in(target) and staging.parent == target.parent:
        try:
            for entry in others:
                os.link(entry, staging / entry.name, follow_symlinks=False)
            if target.exists():
                _exchange(staging, target)
            else:
                staging.rename(target)
            return
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            for entry in others:  # this disk cannot link or exchange: go on file by file
                with contextlib.suppress(OSError):
                    (staging / entry.name).unlink()
    target.mkdir(exist_ok=True)
    for name in sorted(made):
        (staging / name).replace(target / name)
    for entry in ours:
        if entry.name not in made:
            entry.unlink(missing_ok=True)


def _exchange(one: Path, other: Path) -> None:
    """Let two folders change places in one step."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        raise OSError(errno.ENOSYS, "no renameat2 here") from None
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))


def _staging(target: Path) -> Path:
    """A folder beside the target, so that they can change places; within it where nothing may be made beside it."""
    try:
        if not target.is_dir() or target.stat().st_dev == target.parent.stat().st_dev:
            return Path(tempfile.mkdtemp(dir=target.parent, prefix=_prefix(target.name)))
    except PermissionError:
        if not target.is_dir():
            raise
    _remove_leftovers(target, "new")
    return Path(tempfile.mkdtemp(dir=target, prefix=_prefix("new")))


def _prefix(name: str) -> str:
    return f".{name[:100]}.{_MARK}"


def is_leftover(path: Path) -> bool:
    """Whether a killed process left this: the next one that writes there removes it."""
    return path.name.startswith(".") and f".{_MARK}" in path.name


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left in a folder, whatever they were writing; a missing folder has none."""
    with contextlib.suppress(FileNotFoundError), _one_at_a_time(folder, patience=PATIENCE_SECONDS) as alone:
        if alone:
            _remove_leftovers(folder)


def _remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left for this target (for any): nobody holds a lock on it any more."""
    if not system.LOCKS:
        return  # nobody can tell what is being written from what was left
    try:
        begins = "" if name is None else _prefix(name)
        named = (entry for entry in os.scandir(folder) if entry.name.startswith(begins))
        found = [entry for entry in named if is_leftover(Path(entry.path))]
    except OSError:
        return
    for entry in found:
        with contextlib.suppress(OSError):
            handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                system.lock(handle)
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink()
            finally:
                os.close(handle)


def _hold(handle: int | None) -> None:
    """Mark what is being written as somebody's, until the process ends or closes it."""
    with contextlib.suppress(OSError):  # a disk without locks: then nothing is taken for a leftover, either
        if handle is not None:
            system.lock(handle, wait=True)


@contextlib.contextmanager
def _one_at_a_time(folder: Path, patience: float | None = None) -> Iterator[bool]:
    """Only one process at a time changes folders within this one; whether that is so, after ``patience`` seconds.

    A process that was stopped keeps its lock, and who makes a file of its own needs it only to clear leftovers away.
    """
    handle = system.open_folder(folder)
    try:
        if handle is None or patience is None:
            _hold(handle)
            yield True
        else:  # a disk without locks counts as locked: nothing there is taken for a leftover
            yield system.lock_within(handle, patience, poll=LOCK_POLL_SECONDS)
    finally:
        system.close(handle)


@contextlib.contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Errors of the file system in this context name the target: many come without a name."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is not None and _MARK not in str(error.filename)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(target)) from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if system.POSIX else os.O_RDWR)  # Windows: only what may be written to
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _is_stood_in(folder: Path) -> bool:
    """Whether this process stands in the folder or below: it and its shell would be left in the old one."""
    try:
        return Path.cwd().is_relative_to(folder)
    except OSError:
        return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
