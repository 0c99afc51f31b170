#!/usr/bin/env python3
"""Write gemmprof/ncurep/ncu_messages_pb2.py and its types from gemmprof/ncurep/ncu_messages.proto.

Usage: build_messages.py [--check]

Needs `pip install 'grpcio-tools<1.63'`: what that generation of the compiler writes works with every protobuf from
4.25 on, where newer ones ask for a protobuf of their own age. With --check nothing is written; exit code 1 if it would
differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "gemmprof" / "ncurep"
PROTO = FOLDER / "ncu_messages.proto"
HEAD = "# Written by tools/build_messages.py from ncu_messages.proto.\n"
GENERATED = ("ncu_messages_pb2.py", "ncu_messages_pb2.pyi")


def generated() -> dict[str, str]:
    """The text of each generated file."""
    try:
        from grpc_tools import protoc
    except ImportError:
        raise SystemExit("build_messages.py: pip install 'grpcio-tools<1.63'") from None
    with tempfile.TemporaryDirectory(prefix="gemmprof-") as folder:
        outcome = protoc.main(
            ["protoc", f"-I{ROOT}", f"--python_out={folder}", f"--pyi_out={folder}", str(PROTO)]
        )
        if outcome:
            raise SystemExit(f"build_messages.py: the compiler ended with {outcome}")
        written = Path(folder) / FOLDER.relative_to(ROOT)
        return {name: HEAD + (written / name).read_text(encoding="utf-8") for name in GENERATED}


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file differs")
    options = parser.parse_args()
    changed = []
    for name, text in generated().items():
        path = FOLDER / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            changed.append(name)
            if not options.check:
                path.write_text(text, encoding="utf-8")
    print("changed:" if changed else "nothing changed", *changed)
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
