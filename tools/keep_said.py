"""Packs what NVIDIA's library said of the code and the units that the tests asked it about, so that they need not.

After data that tests read was added, or for a new version of `ncu-report`; what is not there is asked for.

Usage: GEMMPROF_CACHE=/tmp/said GEMMPROF_TESTS_ASK=1 make test
       keep_said.py /tmp/said
"""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from recording import ROOT, options_of

from gemmprof.analysis.reading import lookup

SAID = ROOT / "tests" / "data" / "said.tar.xz"


def main() -> None:
    """Pack the entries of a cache, each as it is before it is compressed: together they take a fifteenth."""
    parser = options_of(__doc__)
    parser.add_argument("cache", type=Path)
    with tarfile.open(SAID, "w:xz", preset=9) as archive:
        for entry in sorted((parser.parse_args().cache / lookup.FOLDER).iterdir()):
            content = gzip.decompress(entry.read_bytes())
            member = tarfile.TarInfo(entry.name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    main()
