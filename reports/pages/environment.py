"""The jinja2 environment of all pages: autoescape everywhere, untrusted text made visible, numbers formatted.

Kernel names, NVTX ranges, paths, source lines and rule texts come from somebody else's report. They reach a page in one
way only: printed by a template, which first shows control and bidi characters by name (`printable.visible`) and then
escapes for HTML. Data for scripts goes through the ``json`` filter.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from gemmprof.analysis import opcodes
from gemmprof.analysis.figure import TracedFloat, TracedInt, declared, figures
from gemmprof.analysis.occupancy.calculator import in_words
from gemmprof.analysis.sections import rules
from gemmprof.analysis.sections.by_line import base_name
from gemmprof.base import amounts
from gemmprof.base.printable import lower_first, markdown, visible
from gemmprof.model import NotCollected
from gemmprof.reports import formatting, sentences
from gemmprof.reports import words as explanations


def printed(value: Any) -> Any:
    """What a template prints, before it is escaped: markup as it is, text made visible, nothing for None."""
    return value if isinstance(value, Markup) else "" if value is None else visible(str(value))


def _shown(value: Any) -> Any:
    """The same for data: every string in it made visible, NaN and infinities null."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(str(key)): _shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value


_HEAT = (0.5, 2.0, 4.0, 8.0, 14.0, 22.0, 35.0)


def heat(percent: float | None) -> str:
    """CSS class of a heat cell for a share in per cent: seven steps, '' below half a per cent."""
    step = bisect_right(_HEAT, percent or 0.0)
    return f"h{step}" if step else ""


_PER_CENT = "100 * ({})"  # formula of a share from 0 to 1 that is shown in per cent


def with_formula(function: Callable[..., str], scale: str = "{}") -> Callable[..., str]:
    """The filter whose text says, when it is pointed at, by which formula its figure was computed."""

    @wraps(function)
    def shown(value: Any, *arguments: Any) -> str:
        text = function(value, *arguments)
        if not isinstance(value, (TracedFloat, TracedInt)):
            return text
        return Markup('<span title="{}">{}</span>').format(scale.format(value.formula), text)

    return shown


_figure_text = with_formula(formatting.figure_text)
_share_text = with_formula(formatting.figure_text, _PER_CENT)


def listed(result: Any, *names: str) -> list[tuple[str, str, str]]:
    """Title, text and meaning of the known figures that a section lists: these, or those that are declared so."""
    return [
        (item.title, (_share_text if item.unit == "share" else _figure_text)(value, item), item.meaning)
        for name, item in declared(type(result)).items()
        if (name in names if names else item.listed) and (value := getattr(result, name)) is not None
    ]


# The roofs of a picture: those that the kernel stands under are of its points, too.
_OF_A_PICTURE = ("compute_roofs.",)
_LONG = ("lines.", "instructions.", "opcodes.", "modifiers.", "classes.opcodes.")
MOST_ROWS = 6  # rows of a list whose formulas are spelled out, as many as tables of places show


def formulas(result: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Title of each figure of a section with its formulas: one for each row where it has rows."""
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for key, row, item, value in figures(result) if dataclasses.is_dataclass(result) else ():
        if isinstance(value, (TracedFloat, TracedInt)):
            if not item.shown or key.startswith(_OF_A_PICTURE):
                continue
            rows = found.setdefault(key, (item.title, []))[1]
            if len(rows) < MOST_ROWS or not key.startswith(_LONG):
                rows.append((row if "." in key else "", value.formula))
    return list(found.values())


def code(text: str) -> str:
    """Foreign text as inline code that it cannot leave: with a fence longer than any in it."""
    flat = visible(" ".join(text.split()))
    if not flat:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def marked(text: str) -> str:
    """Our own sentences as Markdown: names of metrics and other names with underscores are code, the rest stays."""
    parts = re.split(r"(\w*_[\w.]*\w)", visible(text))
    return "".join(
        code(part) if odd % 2 else re.sub(r"([\\*<>|\[\]_`])", r"\\\1", part)
        for odd, part in enumerate(parts)
    )


def options(text: str) -> Markup:
    """A sentence or command whose options stay whole: browsers break lines behind a hyphen, and so ``--section``."""
    return Markup(" ").join(
        Markup('<span class="nowrap">{}</span>').format(word)
        if word.lstrip("(").startswith("-")
        else escape(word)
        for word in text.split(" ")
    )


# Every amount that can be written is a filter of its name.
_OF_FIGURES: tuple[Callable[..., str], ...] = tuple(
    one
    for name, one in vars(amounts).items()
    if name[0] != "_" and getattr(one, "__module__", "") == amounts.__name__
)
_OF_OTHERS: dict[str, Callable[..., Any]] = {
    **{one.__name__: one for one in (formatting.change_text, formatting.moment, heat)},
    **{one.__name__: one for one in (in_words, lower_first, listed, formulas, code, marked, options)},
    **{one.__name__: one for one in (explanations.conclusion, explanations.how_predicted, sentences.named)},
    "base_name": base_name,
    "marked_name": markdown,
    # What may stand inside a ``<script type="application/json">``: no ``<``, ``>``, ``&`` or line separators.
    "json": lambda value: htmlsafe_json_dumps(
        _shown(value), ensure_ascii=True, allow_nan=False, separators=(",", ":")
    ),
    "plain": msgspec.to_builtins,
    "finding_title": explanations.title,
    "finding_ways": explanations.ways,
    "no_finding": explanations.no_finding,
    "small": explanations.small,
    "other_arithmetic": explanations.others,
    "place_words": explanations.place,
    "evidence_words": explanations.fact,
    # A rule's message without ncu's link marks; of a web link only the words.
    "rule_text": partial(rules.plain_text, addresses=False),
    "opcode_words": lambda opcode: opcodes.info(opcode).meaning,
    "words": lambda identifier: identifier.replace("_", " "),
    # Unlike ``capitalize``: the other letters stay as they are.
    "capitalize_first": lambda text: text[:1].upper() + text[1:],
}


@cache
def environment() -> Environment:
    """The environment; templates come from the package ``gemmprof.templates``."""
    env = Environment(
        loader=PackageLoader("gemmprof.templates", ""),
        autoescape=lambda name: name is None or not name.endswith(".md.jinja"),
        finalize=printed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        optimized=False,  # a page is filled once: what is worked out while compiling takes longer than it saves
    )
    for function in _OF_FIGURES:
        scale = _PER_CENT if function is formatting.ratio else "{}"
        env.filters[function.__name__] = with_formula(function, scale)
    env.filters |= _OF_OTHERS
    env.tests["missing"] = lambda value: isinstance(value, NotCollected)
    return env


def filled(template: str, **values: Any) -> Markup:
    """A template of a page with these values in it."""
    return Markup(filled_text(template, **values))


def filled_text(template: str, **values: Any) -> str:
    """The same of a text that is no HTML."""
    return environment().get_template(template).render(**values)


@cache
def asset(name: str) -> str:
    """Text of a style sheet or script in ``templates/``."""
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), name)[0]


def content_security_policy(styles: tuple[str, ...], scripts: tuple[str, ...]) -> str:
    """A policy that lets exactly these inline style sheets and scripts act, and nothing load from anywhere."""

    def hashes(texts: tuple[str, ...]) -> str:
        digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"

    return (
        f"default-src 'none'; style-src {hashes(styles)}; script-src {hashes(scripts)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


STYLES = ("style.css", "occupancy.css")
SCRIPTS = ("page.js", "occupancy.js", "roofline.js")
# By what marks the part of a page that a script is for: only where a page has that part.
SCRIPTS_OF_PARTS = {"data-code-area": "code.js", "data-timeline": "timeline.js"}


def document(title: str, articles: Sequence[Markup], *, scripts: tuple[str, ...] = ()) -> str:
    """A whole HTML document around one article or several; ``scripts`` are assets beside those of every page."""
    of_parts = (name for mark, name in SCRIPTS_OF_PARTS.items() if any(mark in one for one in articles))
    styles, texts = tuple(map(asset, STYLES)), tuple(map(asset, (*SCRIPTS, *of_parts, *scripts)))
    policy = content_security_policy(styles, texts)
    whole = {"policy": policy, "styles": styles, "scripts": texts, "articles": articles}
    return filled("document.html", title=title, **whole)
