"""The names of stages, as each tells the call and refusals record it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from remit.gateway.call import Stage

_WORD: Final = re.compile(r"(?<=[a-z])([A-Z])")


def name_of(stage: Callable[..., Stage]) -> str:
    """Return `validate_arguments` for ValidateArguments."""
    return _WORD.sub(r"_\1", stage.__name__).lower()
