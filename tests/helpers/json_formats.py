"""What of a printed JSON is not as its document is declared, by the schema that ships with the package."""

from __future__ import annotations

import importlib
import json
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator

from gemmprof.base.documents import Document


@cache
def shipped() -> dict[str, Any]:
    """The schema of every document."""
    text = resources.files("gemmprof.reports.documents").joinpath("gemmprof.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def violations(value: object, document: type[Document]) -> list[str]:
    """Where the value is not such a document: each place with what is wrong there."""
    rule = {"$ref": f"#/$defs/{document.__name__}", "$defs": shipped()["$defs"]}
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(rule).iter_errors(value)]


@cache
def generator() -> Any:
    """tools/build_formats.py."""
    return importlib.import_module("build_formats")
