from __future__ import annotations

import base64
import hashlib
import json

from markupsafe import Markup, escape
from page_sessions import HOSTILE

from gemmprof.base.printable import visible
from gemmprof.reports.formatting import moment
from gemmprof.reports.pages import environment as e


def render(template: str, **values: object) -> str:
    return e.environment().from_string(template).render(**values)


def test_text_is_escaped_and_made_visible() -> None:
    text = render('<p title="{{ x }}">{{ x }}</p>', x=HOSTILE)
    assert "<script" not in text and "<img" not in text and "\u202e" not in text and "\x00" not in text
    assert "&lt;/script&gt;" in text and "⟨U+202E⟩" in text and "␀" in text
    assert "{{7*7}}" in text, "template syntax in data is data"
    assert text.count('"') == 2, "an attribute cannot be left"


def test_json_stays_inside_its_script_and_keeps_its_value() -> None:
    text = render(
        '<script type="application/json">{{ x | json }}</script>',
        x={"k": [HOSTILE, 1.5, float("nan")], HOSTILE: 1},
    )
    body = text.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert "<" not in body and ">" not in body and "&" not in body
    data = json.loads(body)
    assert data["k"][0].startswith("</script><script>") and "⟨U+202E⟩" in data["k"][0]
    assert data["k"][1:] == [1.5, None]


def test_the_policy_names_the_hash_of_each_inline_text() -> None:
    policy = e.content_security_policy(("p{}",), ("let a;",))
    for text in ("p{}", "let a;"):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_rule_text_loses_its_link_marks_only() -> None:
    message = "See @url:Kernel Profiling Guide:https://docs.nvidia.com/x@ and @section:SourceCounters:Source Counters@."
    assert render("{{ x | rule_text }}", x=message) == "See Kernel Profiling Guide and Source Counters."
    assert render("{{ x | rule_text }}", x="mail a@b.example: yes") == "mail a@b.example: yes"


def test_heat_has_seven_steps() -> None:
    assert [e.heat(x) for x in (None, 0.1, 0.5, 3, 100)] == ["", "", "h1", "h2", "h7"]


def test_moments_are_short() -> None:
    assert moment("2026-01-02T03:04:05+00:00") == "2026-01-02 03:04 UTC"
    assert moment("2026-01-02T03:04:05.123456Z") == "2026-01-02 03:04 UTC"
    assert moment("yesterday") == "yesterday"


def test_every_character_is_printed_as_it_is_shown_and_escaped() -> None:
    for code in (*range(0x250), 0x2028, 0x202E, 0xD800, 0xFEFF, 0x1F600):
        text = f"a{chr(code)}b"
        assert render("{{ x }}", x=text) == str(escape(visible(text)))
    values = (0, -1.5, True, Markup("<b>"), "", None)
    assert [render("{{ x }}", x=value) for value in values] == ["0", "-1.5", "True", "<b>", "", ""]
    template = "{% set bold %}<b>{{ x }}</b>{% endset %}{{ bold }}{{ x }}{{ y }}"
    assert render(template, x="<i>", y=None) == "<b>&lt;i&gt;</b>&lt;i&gt;"
