"""The jinja2 environment of all pages: autoescape everywhere, untrusted text made visible, numbers formatted.

Kernel names, NVTX ranges, paths, source lines and rule texts come from somebody else's report. They reach a page in one
way only: printed by a template, which first shows control and bidi characters by name (`formatting.visible`) and then
escapes for HTML. Data for scripts goes through the ``json`` filter.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from gemmprof.model import NotCollected
from gemmprof.reports import formatting

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def _printed(value: Any) -> Any:
    """What a template prints: markup as it is, text made visible, nothing for None."""
    from markupsafe import Markup

    if value is None:
        return ""
    if isinstance(value, Markup):
        return value
    return formatting.visible(value if isinstance(value, str) else str(value))


def _shown(value: Any) -> Any:
    """The same for data: every string in it made visible, NaN and infinities null."""
    if isinstance(value, str):
        return formatting.visible(value)
    if isinstance(value, Mapping):
        return {formatting.visible(str(key)): _shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value


def json_for_script(value: Any) -> Markup:
    """JSON that may stand inside a ``<script type="application/json">``: no ``<``, ``>``, ``&`` or line separators."""
    from markupsafe import Markup

    text = json.dumps(_shown(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def heat(percent: float | None) -> str:
    """CSS class of a heat cell for a share in per cent: seven steps, '' below half a per cent."""
    if percent is None or percent < 0.5:
        return ""
    return f"h{sum(percent >= edge for edge in (0.5, 2, 4, 8, 14, 22, 35))}"


def _is_missing(value: Any) -> bool:
    return isinstance(value, NotCollected)


@cache
def environment() -> Environment:
    """The environment; templates come from the package ``gemmprof.templates``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("gemmprof.templates", ""),
        autoescape=True,
        finalize=_printed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for function in (
        formatting.number, formatting.scaled, formatting.percent, formatting.ratio, formatting.times,
        formatting.seconds, formatting.nanoseconds, formatting.traffic, formatting.capacity, formatting.bandwidth,
        formatting.flops, formatting.hertz, formatting.dimensions, formatting.quantity, formatting.significant,
        formatting.short_name, heat,
    ):
        env.filters[function.__name__] = function
    env.filters["json"] = json_for_script
    env.tests["missing"] = _is_missing
    return env


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
