"""The process of the command line: ``gemmprof`` and ``python -m gemmprof``.

While modules load nothing is begun that would have to be cleaned up, and Python turns Ctrl-C there into whatever the
module at hand makes of an exception: until the command runs, and once it has ended, Ctrl-C ends the process at once.
"""

import _signal  # type: ignore[import-not-found]  # `signal` is itself a module that takes its time to load
import gc
import sys

from gemmprof import end_at_once


def entry() -> int:
    """Run the command of this process; returns the exit code."""
    if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, end_at_once)
    from gemmprof.cli import main

    code = main()
    gc.freeze()  # what is left ends with the process: to look for garbage in it took an eighth of `explain`
    if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, end_at_once)
    if "pyarrow" in sys.modules:
        # Its threads may still be at work: ended with the process, they end it as if it had failed. So it ends here,
        # after what modules asked to be done at its end; libraries end nothing of their own.
        import atexit
        import os
        from contextlib import suppress

        buckets = sys.modules.get("gemmprof.base.buckets")
        if buckets is None or not buckets.under_way:  # else Arrow's end waits for a silent storage
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
