"""A suite: the checks of one module, each for one promise of a port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def checks_in(module: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the functions `check_…` that a module defines, of whose names this is the mapping, as they stand there."""
    own = module["__name__"]
    return tuple(value for name, value in module.items() if name.startswith("check_") and value.__module__ == own)
