"""Matplotlib figures as SVG that lives in a page: themed, without inline styles, text kept as text.

The page forbids inline ``style`` attributes (Content-Security-Policy), so they become presentation attributes; the
palette's colours become the page's CSS variables, so that a figure follows light and dark.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import io
import logging
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from gemmprof import templates
from gemmprof.base import system
from gemmprof.base.printable import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of figures by name: the light values of ``--gp-<name>`` in the pages' style sheet, which they stand for.
PALETTE: dict[str, str] = dict(
    re.findall(
        r"--gp-([\w-]+): light-dark\((#\w+),",
        Path(templates.__file__).with_name("style.css").read_text("utf-8"),
    )
)

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gemmprof",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.parse_math": False,
    "axes.edgecolor": PALETTE["faint"],
    "axes.labelcolor": PALETTE["muted"],
    "axes.titlecolor": PALETTE["fg"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALETTE["border"],
    "grid.linewidth": 0.7,
    "xtick.color": PALETTE["faint"],
    "ytick.color": PALETTE["faint"],
    "xtick.labelcolor": PALETTE["muted"],
    "ytick.labelcolor": PALETTE["muted"],
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "text.color": PALETTE["fg"],
    "figure.facecolor": PALETTE["panel"],
    "savefig.facecolor": "auto",
}
_inside: ContextVar[bool] = ContextVar("_inside", default=False)


@contextmanager
def drawing() -> Iterator[None]:
    """Draw and save figures inside this context: it sets fonts and colours, and no global state that outlives it."""
    if _inside.get():
        yield
        return
    token = _inside.set(True)
    try:
        with matplotlib_defaults(_STYLE):
            yield
    finally:
        _inside.reset(token)


def blank(width: float, height: float, *, right: float = 0.35) -> tuple[Figure, Any]:
    """A figure of this size with one pair of axes and fixed margins (all in inches), without pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    left, bottom, top = 0.75, 0.55, 0.12
    box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
    return figure, figure.add_axes(box)


_PROLOG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>|\s*<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)
_ROOT = re.compile(r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>")
_INLINE = re.compile(r' style="([^"]*)"')
_IDENTIFIER = re.compile(r'( id="|url\(#|href="#)')
_DROPPED = {"font-family", "font", "stroke-linejoin", "stroke-linecap"}


def _attributes(match: re.Match[str]) -> str:
    """``style="fill: #fff; …"`` as presentation attributes."""
    parts = []
    for declaration in match.group(1).split(";"):
        name, separator, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font" and (size := re.search(r"([\d.]+)px", value)):
            parts.append(f' font-size="{size.group(1)}"')
        if separator and name not in _DROPPED:
            parts.append(f' {name}="{value}"')
    return "".join(parts)


def page_svg(
    figure: Figure, identifier: str, title: str, description: str, tips: Mapping[str, str] | None = None
) -> Markup:
    """The figure as an ``<svg>`` element for a page: ``identifier`` makes its ids unique in the document, ``tips`` are
    texts that appear over the element with this ``gid``; title and description are for those who do not see it.
    """
    figure.patch.set_visible(False)
    buffer = io.StringIO()
    with drawing(), warnings.catch_warnings():
        # Text stays text: whether matplotlib's own font has a glyph does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = _METADATA.sub("", _PROLOG.sub("", buffer.getvalue()))
    text = _INLINE.sub(_attributes, text)
    text = text.replace("xlink:href", "href")
    text = _IDENTIFIER.sub(lambda match: f"{match.group(1)}{identifier}-", text)
    for name, colour in PALETTE.items():
        text = text.replace(colour, f"var(--gp-{name})")
    for gid, tip in (tips or {}).items():
        opening = f'id="{identifier}-{gid}">'
        text = text.replace(opening, f"{opening}<title>{escape(visible(tip))}</title>", 1)
    root = _ROOT.search(text)
    assert root is not None
    label = escape(visible(f"{title}. {description}"))
    head = (
        f'<svg class="plot" viewBox="{root.group(1)}" role="img" aria-label="{label}" '
        'stroke-linejoin="round" stroke-linecap="butt">'
    )
    return Markup((text[: root.start()] + head + text[root.end() :]).strip())


@contextmanager
def matplotlib_defaults(style: Mapping[str, Any]) -> Iterator[None]:
    """Draw and save inside this context, with matplotlib's own settings and these: no rc file changes a picture.

    A ``matplotlibrc`` in the current folder is read before any other, and may name programs (``text.usetex``).
    """
    _load()
    import matplotlib

    defaults: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"
    }
    with matplotlib.rc_context(defaults | dict(style)):
        yield


@cache
def _load() -> None:
    """Import matplotlib, which reads an rc file while it is imported: the one that it comes with."""
    # It would tell of its cache where the home is not writable: nothing that a user of ours can act on.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if "MPLCONFIGDIR" not in os.environ:
        try:
            Path.home()
        except RuntimeError:  # older ones cannot be imported then; where they may not write they find a place
            os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="gemmprof-matplotlib-")
            atexit.register(shutil.rmtree, os.environ["MPLCONFIGDIR"], ignore_errors=True)
    found = importlib.util.find_spec("matplotlib")
    assert found is not None and found.origin is not None, "it is one of gemmprof's dependencies"
    own = Path(found.origin).parent / "mpl-data" / "matplotlibrc"
    # A backend of another environment, as a notebook names one for its children, would end the import.
    before = {name: os.environ.pop(name, None) for name in ("MATPLOTLIBRC", "MPLBACKEND")}
    os.environ["MATPLOTLIBRC"] = str(own)
    # One of the current folder comes first whatever is set, and may be a pipe: leave that folder meanwhile.
    here = Path.cwd() if os.path.lexists("matplotlibrc") else None
    try:
        if here is not None:
            os.chdir(own.parent.parent)
        with warnings.catch_warnings(), contextlib.ExitStack() as left_out:
            if system.one_command:
                # Of matplotlib what a command of ours draws with: a quarter is what describes every artist to people in
                # a shell, and axes in space, of which it warns that they are not there.
                warnings.simplefilter("ignore")
                left_out.enter_context(system.without_modules("mpl_toolkits.mplot3d"))
                from matplotlib.artist import Artist

                vars(Artist.set).pop("_autogenerated_signature", None)
            import matplotlib.figure  # noqa: F401
    finally:
        if here is not None:
            os.chdir(here)
        del os.environ["MATPLOTLIBRC"]
        os.environ.update({name: value for name, value in before.items() if value is not None})
