#!/usr/bin/env python3
"""Write the Python modules (and their types) of the messages that gemmprof reads and writes, from their .proto files.

Usage: build_messages.py [--check]

Needs `pip install 'grpcio-tools<1.63'`: what that generation of the compiler writes works with every protobuf from
4.25 on, where newer ones ask for a protobuf of their own age. With --check nothing is written; exit code 1 if it would
differ.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from recording import ROOT, options_of, written

PROTOS = (ROOT / "gemmprof" / "ncurep" / "ncu_messages.proto", ROOT / "reports" / "tables" / "perfetto.proto")


def generated() -> dict[Path, str]:
    """The text of each generated file."""
    try:
        from grpc_tools import protoc
    except ImportError:
        raise SystemExit("build_messages.py: pip install 'grpcio-tools<1.63'") from None
    found = {}
    for proto in PROTOS:
        with tempfile.TemporaryDirectory(prefix="gemmprof-") as folder:
            outcome = protoc.main(
                ["protoc", f"-I{ROOT}", f"--python_out={folder}", f"--pyi_out={folder}", str(proto)]
            )
            if outcome:
                raise SystemExit(f"build_messages.py: the compiler ended with {outcome}")
            head = f"# Written by tools/build_messages.py from {proto.name}.\n"
            for name in (f"{proto.stem}_pb2.py", f"{proto.stem}_pb2.pyi"):
                written = Path(folder) / proto.parent.relative_to(ROOT) / name
                text = written.read_text(encoding="utf-8")
                # Where each message stands in the descriptor: only `CopyToProto` of a protobuf without C asks for it.
                text = re.sub(r"(?m)^if _descriptor\._USE_C_DESCRIPTORS == False:\n(?:  .*\n)+", "", text)
                found[proto.parent / name] = head + text
    return found


def main() -> int:
    """Write or compare."""
    parser = options_of(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file differs")
    options = parser.parse_args()
    return written(generated(), check=options.check)


if __name__ == "__main__":
    sys.exit(main())
