"""The columns of a head in a table: the same columns, in the same order, on every backend that speaks SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from remit.journal.event import Head

COLUMNS: Final = Head.__struct_fields__
"""A head's columns are named as its fields are, and come in their order."""
HEADS: Final = f"SELECT {', '.join(COLUMNS)} FROM heads"  # noqa: S608 - names of fields

_decode: Final = msgspec.json.Decoder(dict[str, str]).decode


def reached(bounds: Sequence[int]) -> str:
    """Return how many of the bounds the time between a head's first and last event reached, as an expression in SQL."""
    steps = " ".join(f"WHEN updated_at - created_at < {bound:d} THEN {number}" for number, bound in enumerate(bounds))
    return f"CASE {steps} ELSE {len(bounds)} END" if bounds else "0"


def to_head(row: Sequence[Any]) -> Head:
    """The head in a row that begins with COLUMNS, its labels as JSON text."""
    return Head(
        stream=row[0],
        kind=row[1],
        state=row[2],
        seq=row[3],
        epoch=row[4],
        hash=row[5],
        lease_owner=row[6],
        lease_until=row[7],
        due_at=row[8],
        priority=row[9],
        wakes=row[10],
        closed=bool(row[11]),
        route=row[12],
        subject=row[13],
        title=row[14],
        labels=_labels(row[15]),
        created_at=row[16],
        updated_at=row[17],
        seal=row[18],
        share=row[19],
    )


def _labels(text: str) -> dict[str, str]:
    """Labels as stored. If the text is something else, none, so that lists stay readable: `verify` names it."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return {}
