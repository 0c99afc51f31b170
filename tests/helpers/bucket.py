"""Folders as buckets of a server that speaks as much of S3's language as reading and writing takes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from gemmprof.base.buckets import _opened

DENIED = "denied"
"""A bucket that nobody may read."""


class _Handler(BaseHTTPRequestHandler):
    """HEAD and GET of objects, whole or a range of them; PUT, also in parts; DELETE; ListObjectsV2."""

    protocol_version = "HTTP/1.1"
    root: Path
    asked: list[str]

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the library's name)
        self.asked.append(f"{self.command} {self.path}")

    def do_HEAD(self) -> None:
        self._object()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        if "list-type" in query and not self.path.startswith(f"/{DENIED}"):
            self._list(url.path.strip("/"), query.get("prefix", ""), query.get("delimiter", ""))
        else:
            self._object()

    def do_PUT(self) -> None:
        query = dict(parse_qsl(urlsplit(self.path).query))
        data = self._body()
        if "partNumber" in query:
            # Nothing of it is to be seen before all parts are there.
            self.server.parts.setdefault(query["uploadId"], {})[int(query["partNumber"])] = data  # type: ignore[attr-defined]
        else:
            self._write(data)
        self._answer(200, ETag='"0"')

    def do_POST(self) -> None:
        query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        self._body()
        if "uploads" in query:
            identity = f"u{len(self.asked)}"
            found = f"<InitiateMultipartUploadResult><UploadId>{identity}</UploadId></InitiateMultipartUploadResult>"
        elif "uploadId" in query:
            parts = self.server.parts.pop(query["uploadId"], {})  # type: ignore[attr-defined]
            self._write(b"".join(part for _, part in sorted(parts.items())))
            found = '<CompleteMultipartUploadResult><ETag>"0"</ETag></CompleteMultipartUploadResult>'
        else:  # DeleteObjects
            found = "<DeleteResult/>"
        self._answer(200, found.encode())

    def do_DELETE(self) -> None:
        self._place().unlink(missing_ok=True)
        self._answer(204)

    def _place(self) -> Path:
        return self.root / unquote(urlsplit(self.path).path).strip("/")

    def _write(self, data: bytes) -> None:
        place = self._place()
        if self.path.split("?")[0].endswith("/"):  # an empty object that stands for a folder
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_name(f".{place.name}.new")
        new.write_bytes(data)
        new.replace(place)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = self._chunks()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # What is signed piece by piece comes in pieces of its own.
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            pieces, rest = b"", data
            while rest:
                size, _, rest = rest.partition(b"\r\n")
                count = int(size.partition(b";")[0], 16)
                if not count:
                    break
                pieces, rest = pieces + rest[:count], rest[count + 2 :]
            data = pieces
        return data

    def _chunks(self) -> bytes:
        data = b""
        while count := int(self.rfile.readline().partition(b";")[0], 16):
            data += self.rfile.read(count)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, code: int, data: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _object(self) -> None:
        if self.path.startswith(f"/{DENIED}"):
            self._answer(403)
            return
        path = self._place()
        if not path.is_file():
            self._answer(200 if path.is_dir() and path.parent == self.root else 404)
            return
        data, changed = path.read_bytes(), formatdate(path.stat().st_mtime, usegmt=True)
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if part is None:
            self._answer(200, data, Last_Modified=changed)
            return
        first, last = int(part[1]), min(int(part[2]), len(data) - 1)
        there = f"bytes {first}-{last}/{len(data)}"
        self._answer(206, data[first : last + 1], Last_Modified=changed, Content_Range=there)

    def _list(self, bucket: str, prefix: str, delimiter: str) -> None:
        files = {
            path.relative_to(self.root / bucket).as_posix(): path for path in (self.root / bucket).rglob("*")
        }
        keys = sorted(key for key, path in files.items() if path.is_file() and key.startswith(prefix))
        deeper = [key for key in keys if delimiter and delimiter in key[len(prefix) :]]
        folders = dict.fromkeys(prefix + key[len(prefix) :].partition(delimiter)[0] + "/" for key in deeper)
        objects = [key for key in keys if key not in deeper]
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{facts.st_size}</Size><LastModified>"
            f"{datetime.fromtimestamp(facts.st_mtime, UTC):%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
            for key, facts in ((key, files[key].stat()) for key in objects)
        )
        listed += "".join(
            f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>" for key in folders
        )
        count = f"<KeyCount>{len(objects) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._answer(200, f"<ListBucketResult>{count}{listed}</ListBucketResult>".encode())


class _Endless(_Handler):
    """Lists and objects that never end."""

    def _object(self) -> None:
        self.send_response(200 if self.path.endswith(".ncu-rep") else 404)
        self.send_header("Content-Length", str(1 << 30))
        self.end_headers()
        with suppress(OSError):
            while self.command == "GET":
                self.wfile.write(b"x")
                time.sleep(0.1)

    def _list(self, bucket: str, prefix: str, delimiter: str) -> None:
        listed = "".join(
            f"<Contents><Key>{prefix}{len(self.asked)}-{i}</Key><Size>5</Size></Contents>" for i in range(9)
        )
        more = (
            f"<NextContinuationToken>{len(self.asked)}</NextContinuationToken><IsTruncated>true</IsTruncated>"
        )
        self._answer(
            200, f"<ListBucketResult><KeyCount>1</KeyCount>{more}{listed}</ListBucketResult>".encode()
        )


@contextmanager
def buckets(root: Path, *, endless: bool = False) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Serve the folders in ``root``; yields the variables that lead there, and what was asked so far."""
    asked: list[str] = []
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0),
        type("Handler", (_Endless if endless else _Handler,), {"root": root, "asked": asked}),
    )
    server.parts = {}  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    _opened.cache_clear()  # this process may have opened a bucket of the same name where another server was
    try:
        yield (
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
                "AWS_ACCESS_KEY_ID": "x",
                "AWS_SECRET_ACCESS_KEY": "y",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            },
            asked,
        )
    finally:
        server.shutdown()
        server.server_close()
