"""Folds: sums over events of all streams that are kept, so that the journal is not added up again.

A fold is an index (rule 14). It is made of events alone and can be made again from them at any time; it is kept with
the position that it came to, in one transaction, and never copied to another journal, where positions are others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remit.journal.event import Fold
from remit.journal.port import Store


class Folds:
    """The folds of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, name: str, parts: Iterable[str] = ()) -> list[Fold]:
        """A fold that was kept, and these parts of it, of one moment."""
        return await self._store.folds(name, tuple(parts))

    async def keep(self, folds: Sequence[Fold], before: int) -> bool:
        """Keep a fold in the place of the one kept at the position `before`; False if another one is kept by now."""
        return await self._store.keep_folds(folds, before)
