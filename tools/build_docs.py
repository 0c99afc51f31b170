"""Writes the documentation that `make docs` turns into a site: the written pages, and what can be generated.

Generated: every command's options, a page a cause, and the pages of the reports that were
recorded for the tutorials. In the written pages ``{{ file: … }}`` stands for a source file, ``{{ text: … }}`` for a
recorded output and ``{{ run: … }}`` for what gemmprof prints now. Links that lead out of the documentation become plain
text.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from functools import partial
from pathlib import Path

from recording import ROOT, printed

from gemmprof.analysis.explanation.causes import CAUSES, definition
from gemmprof.cli import build_parser
from gemmprof.commands import COMMANDS

DOCS = ROOT / "docs"
RECORDED = DOCS / "examples" / "recorded"
REPORTS = ("gelu", "gelu_fixed", "softmax_triton", "gemm_cutlass", "transformer", "transformer_launches")
_DIRECTIVE = re.compile(r"^\{\{ (file|text|run): (.+?) \}\}$", re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_LANGUAGES = {".cu": "cuda", ".py": "python"}


gemmprof = partial(printed, columns=84)  # what a page of the site shows without scrolling


def filled(text: str) -> str:
    """A written page with its directives carried out."""

    def fill(match: re.Match[str]) -> str:
        kind, what = match.groups()
        if kind == "file":
            path = DOCS / what
            return f"```{_LANGUAGES.get(path.suffix, '')}\n{path.read_text(encoding='utf-8').rstrip()}\n```"
        if kind == "text":
            return f"```\n{(RECORDED / what).read_text(encoding='utf-8').rstrip()}\n```"
        return f"```\n{gemmprof(*shlex.split(what)).rstrip()}\n```"

    return _DIRECTIVE.sub(fill, text)


def without_escapes(text: str) -> str:
    """GitHub wants a pipe in the code of a table's cell escaped; here the backslash would be printed."""
    return re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"`[^`]*`", lambda c: c[0].replace("\\|", "|"), row[0]),
        text,
        flags=re.M,
    )


def within_docs(text: str, source: Path, target: Path, home: Path) -> str:
    """The page with its links to other documents kept, and those to files of the repository as plain text."""

    def link(match: re.Match[str]) -> str:
        image, words, address = match.groups()
        if re.match(r"[a-z]+:|#", address):
            return match[0]
        path, hash_mark, anchor = address.partition("#")
        meant = (source.parent / path).resolve()
        if not meant.is_relative_to(DOCS):
            below = (target.parent / path).resolve()
            return match[0] if below.is_relative_to(home) and not meant.exists() else words
        inside = meant.relative_to(DOCS)
        if meant.is_dir() or inside.parts[0] == "examples":
            return words
        up = "../" * (len(target.relative_to(home).parts) - 1)
        return f"{image}[{words}]({up}{inside.as_posix()}{hash_mark}{anchor})"

    return _LINK.sub(link, text)


def commands_page() -> str:
    """Every command with its help."""

    def helped(*words: str) -> str:
        return f"```text\n{gemmprof(*words, '--help').rstrip()}\n```\n"

    says = "The same words mean the same everywhere; `gemmprof COMMAND --help` prints this."
    parts = [f"# Commands\n\n{says}\n", helped()]
    for name, summary in COMMANDS.items():
        parts.append(f"## {name}\n\n{summary[:1].upper()}{summary[1:]}.\n")
        parts += [helped(name), *(helped(name, action) for action in actions(name))]
    return "\n".join(parts)


def actions(command: str) -> list[str]:
    """The second words of a command, such as ``save`` of ``baseline``: each has options of its own."""
    subparsers = build_parser(command)._subparsers
    own = subparsers._group_actions[0].choices[command]._subparsers if subparsers is not None else None
    return [] if own is None else list(own._group_actions[0].choices)


def cause_pages(folder: Path) -> str:
    """A page a cause, from the function that finds it; returns the index."""
    (folder / "causes").mkdir()
    index = ["# Causes", "", "What `gemmprof explain` looks for, and what it takes for fixed.", ""]
    found = examples_of_causes()
    for key, title in CAUSES.items():
        body = [f"# {title}", "", f"`{key}` in the findings of `gemmprof explain`.", "", definition(key), ""]
        if key in found:
            body += ["## Seen in a recorded kernel", "", found[key], ""]
        (folder / "causes" / f"{key}.md").write_text("\n".join(body), encoding="utf-8")
        index.append(f"- [{title}](causes/{key}.md)")
    return "\n".join(index) + "\n"


def examples_of_causes() -> dict[str, str]:
    """For each cause the recorded launch in which it weighs most."""
    best: dict[str, tuple[float, str]] = {}
    for folder in (RECORDED, ROOT / "tests" / "data"):
        reports = [str(path) for path in sorted(folder.glob("*.ncu-rep.xz")) if "launches" not in path.name]
        answer = json.loads(gemmprof("explain", *(r for r in reports if "train" not in r), "--json"))
        for kernel in answer["kernels"]:
            for finding in kernel["findings"]:
                saves = finding["saves"]
                if saves > best.get(finding["cause"], (0.0, ""))[0]:
                    name = kernel["name"].partition("(")[0].removeprefix("void ")[:60]
                    text = (
                        f"In `{name}` of `{Path(kernel['report']).name}` fixing it is predicted to save "
                        f"{100 * saves:.0f} % of the time. {finding['change']}"
                    )
                    best[finding["cause"]] = (saves, text)
    return {cause: text for cause, (_, text) in best.items()}


def build(target: Path, *, pages: bool = True) -> None:
    """Write everything into ``target``, which is replaced."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for folder in ("images", "workflows"):
        shutil.copytree(DOCS / folder, target / folder)
    for name in ("site.css", "file_worker.js"):
        shutil.copy(DOCS / name, target)
    if pages:
        for name in REPORTS:
            gemmprof("report", str(RECORDED / f"{name}.ncu-rep.xz"), "-o", str(target / "pages" / name))
    (target / "causes.md").write_text(cause_pages(target), encoding="utf-8")
    (target / "commands.md").write_text(commands_page(), encoding="utf-8")
    for source in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        name = "index.md" if source.parent == ROOT else source.relative_to(DOCS)
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        text = without_escapes(filled(source.read_text(encoding="utf-8")))
        place.write_text(within_docs(text, source, place, target), encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs")
