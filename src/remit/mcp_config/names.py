"""Names of servers that keep our rule, made from names that any client may have given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from typing import Final

_OTHERS: Final = re.compile("[^a-z0-9]+")
LONGEST: Final = 32
"""Characters, so that its tools' names still fit what models take."""


def server_name(name: str) -> str:
    """The nearest name of lower-case letters, digits and single underscores: `My Server` gives `my_server`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return _OTHERS.sub("_", plain).strip("_")[:LONGEST].rstrip("_") or "server"


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with the first number behind it that makes it free."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
