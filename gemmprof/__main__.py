"""``python -m gemmprof``."""

import sys

from gemmprof.cli import main

sys.exit(main())
