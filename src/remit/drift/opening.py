"""Opens drift over the parts of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.drift.noun import Drift

if TYPE_CHECKING:
    from remit.service.opening import NounOpening


def open_drift(opening: NounOpening) -> Drift:
    """Return what compares the journal with the tools, recipes and rules of this process."""
    return Drift(opening.parts, opening.service)
