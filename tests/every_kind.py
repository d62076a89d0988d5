"""Every kind of event: the core's, and those of the parts that ship."""

from __future__ import annotations

from typing import Final

from remit.capability import resolve
from remit.journal.kinds import KINDS, Payload
from remit.wiring.capabilities import FIRST_PARTY

_OF_PARTS: Final[dict[str, type[Payload]]] = {
    kind: resolve(reference) for part in FIRST_PARTY for kind, reference in part.kinds.items()
}
EVERY_KIND: Final = KINDS | _OF_PARTS
