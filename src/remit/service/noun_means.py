"""The means that nouns of parts are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from remit.service.parts import Parts, Worker
    from remit.service.service import Service
    from remit.settings.section import Section


class NounOpening(NamedTuple):
    """The means that a noun of a part is made of."""

    parts: Parts
    service: Service
    """The other nouns."""
    part: Section | None
    """The part's own settings, if it has any."""
    principal: str
    """Acts if a call names no one else."""
    worker: Worker
