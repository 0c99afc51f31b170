"""What mkdocs calls while it builds the site: no page asks another host for anything."""

from __future__ import annotations

from typing import Any

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme would fetch so that the search works in pages opened as files; docs/file_worker.js does that."""


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The page with our own script in the place of the fetched one."""
    return output.replace(SHIM, "../" * page.url.count("/") + "file_worker.js")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Likewise for pages that are no document: the one for what is not found."""
    return output_content.replace(SHIM, "file_worker.js")
