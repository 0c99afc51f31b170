"""Files in object storage (``s3://bucket/key``, ``gs://…``, ``abfs://…``) as Arrow reads them, which Parquet needs.

Keys, regions and endpoints are the storage's own settings (``AWS_ENDPOINT_URL``, ``AWS_PROFILE`` …).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from gemmprof.base.errors import UnreachableError
from gemmprof.base.foreign_files import is_confined

if TYPE_CHECKING:
    from collections.abc import Iterable

# A `Path` of a URL has lost one of its slashes.
_URL = re.compile(r"(s3|gs|gcs|abfs|abfss):/{1,2}(?=[^/])")
COPIED_BYTES = 1 << 20


def url_of(path: str | os.PathLike[str]) -> str:
    """The URL that a path stands for; '' if it is one of a file system's."""
    text = os.fspath(path)
    head = _URL.match(text)
    return f"{head[1]}://{text[head.end() :]}" if head else ""


def fetch(url: str) -> BinaryIO:
    """A copy of an object in a temporary file without a name.

    Raises:
        UnreachableError: it is not there, or the storage does not give it.
    """
    out = cast(BinaryIO, tempfile.TemporaryFile(prefix="gemmprof-", buffering=0))  # noqa: SIM115 (the caller's)
    try:
        system, path = _system(url)
        with system.open_input_stream(path) as source:
            shutil.copyfileobj(source, out, COPIED_BYTES)
        return out
    except BaseException as error:
        out.close()
        if isinstance(error, OSError):
            raise _unreachable(url, error) from None
        raise


def below(url: str, *, deep: bool) -> dict[str, tuple[int, int]]:
    """The object, or those in the folder (``deep``: at any depth), with size and time of change.

    Raises:
        UnreachableError: the storage does not answer.
    """
    system, path = _system(url)
    from pyarrow.fs import FileSelector, FileType

    try:
        found = system.get_file_info(path)
        several: Iterable[Any] = (
            system.get_file_info(FileSelector(path, recursive=deep))
            if found.type == FileType.Directory
            else [found]
        )
    except OSError as error:
        raise _unreachable(url, error) from None
    scheme = url.partition("://")[0]
    return {
        f"{scheme}://{info.path}": (info.size, info.mtime_ns or 0)
        for info in several
        if info.type == FileType.File
    }


def _system(url: str) -> tuple[Any, str]:
    if is_confined():  # who may read some folders alone does not read with this user's keys
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


def _unreachable(url: str, error: Exception) -> UnreachableError:
    return UnreachableError.of(
        url,
        f"{url} cannot be read",
        found=str(error).splitlines()[0][:300] if str(error) else type(error).__name__,
        remedies=[
            "check the name, and what the storage wants to know: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL …"
        ],
    )
