"""Files in object storage (``s3://bucket/key``, ``gs://…``, ``abfs://…``) as Arrow has them, which Parquet needs.

Keys, regions and endpoints are the storage's own settings (``AWS_ENDPOINT_URL``, ``AWS_PROFILE`` …).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from gemmprof.base import foreign_files
from gemmprof.base.errors import UnreachableError
from gemmprof.base.output import new_file
from gemmprof.base.system import in_time

COPIED_BYTES = 1 << 20
# For so many bytes, or the list of a folder: the slowest line that anybody reads reports through has 20 KB a second.
PATIENCE_SECONDS = 60.0
under_way: list[str] = []
"""What the storage has not answered yet. Arrow waits for it at the end of the process: the command line does not."""


def fetch(url: str) -> BinaryIO:
    """A copy of an object in a temporary file without a name; UnreachableError if the storage does not give it."""
    with ExitStack() as unless_whole:
        out = unless_whole.enter_context(tempfile.TemporaryFile(prefix="gemmprof-", buffering=0))
        try:
            system, path = _system(url)
            source = _in_time(url, lambda: system.open_input_stream(path))
            while part := _in_time(url, lambda: source.read(COPIED_BYTES)):
                out.write(part)
        except OSError as error:
            raise _unreachable(url, error) from None
        unless_whole.pop_all()
        return cast(BinaryIO, out)


def below(url: str, *, deep: bool) -> dict[str, tuple[int, int]]:
    """The object, or those in the folder (``deep``: at any depth): size and time of change; errors as `fetch`."""
    system, path = _system(url)
    from pyarrow.fs import FileSelector, FileType

    try:
        found = _in_time(url, lambda: system.get_file_info(path))
        several: Iterable[Any] = [found]
        if found.type == FileType.Directory:
            several = _in_time(url, lambda: system.get_file_info(FileSelector(path, recursive=deep)))
    except OSError as error:
        raise _unreachable(url, error) from None
    scheme = url.partition("://")[0]
    files = (info for info in several if info.type == FileType.File)
    return {f"{scheme}://{info.path}": (info.size, info.mtime_ns or 0) for info in files}


def put(source: Path, url: str) -> None:
    """Write an object, which has its name when all of it is there; UnreachableError if the storage does not take it."""
    system, path = _system(url)
    try:
        with foreign_files.open_file(source) as file:
            out = _in_time(url, lambda: system.open_output_stream(path))
            try:
                while part := file.read(COPIED_BYTES):
                    _in_time(url, partial(out.write, part))
                _in_time(url, out.close)
            except BaseException:  # a stream that is closed becomes an object, with whatever it was given
                with suppress(OSError):
                    _in_time(url, out.close)
                with suppress(OSError):
                    _in_time(url, lambda: system.delete_file(path))
                raise
    except OSError as error:
        raise _unreachable(url, error, "written") from None


# What is on a disk or in a bucket, as the path says.


def listed(folder: Path) -> dict[str, tuple[int, int]]:
    """The files of a folder by name, with size and time of change; no hidden ones, none of what is not there."""
    if url := foreign_files.url_of(folder):
        found = {name.rpartition("/")[2]: facts for name, facts in below(url, deep=False).items()}
    else:
        found = {}
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    facts = entry.stat(follow_symlinks=False)
                    found[entry.name] = facts.st_size, facts.st_mtime_ns
    return {name: facts for name, facts in found.items() if not name.startswith(".")}


def size_of(path: Path) -> int:
    """Bytes of a file; FileNotFoundError, OSError or UnreachableError if nobody says."""
    if not (url := foreign_files.url_of(path)):
        return path.stat().st_size
    if not (found := below(url, deep=False)):
        raise FileNotFoundError(f"{url} is not there")
    return next(iter(found.values()))[0]


def is_there(path: Path) -> bool:
    """Whether there is such a file."""
    return bool(below(url, deep=False)) if (url := foreign_files.url_of(path)) else path.is_file()


def content(path: Path, largest: int = foreign_files.LARGEST_DOCUMENT) -> bytes:
    """The bytes of a file; FileNotFoundError, OSError or UnreachableError if it cannot be read."""
    if not (url := foreign_files.url_of(path)):
        return foreign_files.read_bytes(path, largest)
    if size_of(path) > largest:
        raise foreign_files.RefusedFileError(path, f"has more than {largest} bytes")
    with fetch(url) as file:
        file.seek(0)
        return file.read(largest)


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """A path to write to; what stands there at the end of the context becomes the target, at an error nothing does."""
    if not (url := foreign_files.url_of(target)):
        with new_file(target, durable=True) as path:
            yield path
        return
    with tempfile.TemporaryDirectory(prefix="gemmprof-") as folder:
        path = Path(folder) / target.name
        yield path
        put(path, url)


def write_text(target: Path, text: str) -> Path:
    """Write such a file (`written`); returns the target."""
    with written(target) as path:
        path.write_text(text, encoding="utf-8")
    return target


@contextmanager
def sent(target: Path, *, within: Path | None = None) -> Iterator[Path]:
    """The target; of one in object storage a place (``within`` a folder) for a file, or for the files of a folder.

    What stands there at the end of the context goes to the storage, an index behind the pages that it leads to.
    """
    if not (url := foreign_files.url_of(target)):
        yield target
        return
    with tempfile.TemporaryDirectory(prefix="gemmprof-", dir=within) as folder:
        here = Path(folder) / target.name
        yield here
        files = sorted(here.iterdir(), key=lambda file: file.stem == "index") if here.is_dir() else [here]
        for file in files:
            put(file, url if file == here else f"{url}/{file.name}")


def remove(path: Path) -> None:
    """Delete a file, if it is there."""
    if not (url := foreign_files.url_of(path)):
        path.unlink(missing_ok=True)
        return
    system, place = _system(url)
    with suppress(FileNotFoundError):
        _in_time(url, lambda: system.delete_file(place))


def _in_time(url: str, call: Callable[[], Any]) -> Any:
    """What the storage answers, in a thread: Arrow hears no signal, and a body may have no end; TimeoutError if so."""
    under_way.append(url)

    def answered() -> Any:
        try:
            return call()
        finally:
            under_way.remove(url)

    return in_time(answered, PATIENCE_SECONDS)


def _system(url: str) -> tuple[Any, str]:
    if foreign_files.is_confined():  # who may read some folders alone does not read with this user's keys
        raise UnreachableError.of(url, f"{url} lies outside of the folders that may be read here")
    system = _opened("/".join(url.split("/")[:3]))
    return system, url.partition("://")[2].rstrip("/")


@cache
def _opened(bucket: str) -> Any:
    """The file system of a bucket: to find where it is takes a request or two."""
    from pyarrow.fs import FileSystem

    try:
        return FileSystem.from_uri(bucket)[0]
    except (OSError, ValueError) as error:
        raise _unreachable(bucket, error) from None


def _unreachable(url: str, error: Exception, done: str = "read") -> UnreachableError:
    return UnreachableError.of(
        url,
        f"{url} cannot be {done}",
        "check the name, and what the storage wants to know: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL …",
        found=str(error).splitlines()[0][:300] if str(error) else type(error).__name__,
    )
