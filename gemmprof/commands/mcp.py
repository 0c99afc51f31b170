"""Serve reports to agents through the Model Context Protocol, over standard input and output.

  gemmprof mcp reports/                     only what lies in these folders is read; without any: the current folder
  gemmprof mcp --skill > SKILL.md           how an agent works with the command line instead

Tools: open (what a report holds), explain (what to change first), diff (what changed), source (the hottest lines). The
server writes nothing and starts no profiler. Names and source text of reports are fenced and marked as quoted. Needs
the package mcp: pip install 'mcp>=2'
"""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path

from gemmprof.arguments.parser import REDACT
from gemmprof.base.errors import UsageError

ARGUMENTS = f"""
folders FOLDER*         what may be read (default: the current folder)
{REDACT}
--skill                 print the skill file for agents and end
"""


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves; UsageError if a folder is none, or the package mcp is not installed."""
    if options.skill:
        print((Path(__file__).parent.parent / "SKILL.md").read_text(encoding="utf-8"), end="")
        return 0
    from gemmprof.api.server import server

    folders = [Path(folder) for folder in options.folders or ["."]]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder", "name the folders that hold reports")
    if sys.stdin.isatty():
        waits = "waiting for an MCP client on standard input; agents start this command themselves"
        print(f"gemmprof mcp: {waits} (Ctrl-C ends it)", file=sys.stderr)
    with redirect_stdout(sys.__stdout__):  # messages are JSON for a program, not text for a terminal
        server(folders).run("stdio")
    return 0
