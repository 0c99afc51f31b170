"""torch takes seconds to load, and most processes that collect its tests run none of them: it is loaded when used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


class _Torch:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_mock_name":  # pytest asks that of every name in a module
            raise AttributeError(name)
        return getattr(import_module("torch"), name)


torch = _Torch()
