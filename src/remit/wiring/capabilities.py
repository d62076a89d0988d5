"""The capabilities that ship: those of the folders of remit.providers and remit.parts (rule 17)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remit.capability import Capability

_HOUSES: Final = ("remit.providers", "remit.parts")


def _capabilities_in(package: str) -> Iterator[Capability]:
    (house,) = import_module(package).__path__
    for name in sorted(path.name for path in Path(house).iterdir()):
        if not name.startswith("_") and "." not in name:
            yield from getattr(import_module(f"{package}.{name}"), "CAPABILITIES", ())


FIRST_PARTY: Final = tuple(capability for house in _HOUSES for capability in _capabilities_in(house))
"""The capabilities of the core's providers and of the parts, by the names of their folders."""
