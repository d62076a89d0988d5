"""How a head is stored in a table: the same columns, in the same order, on every backend that speaks SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from remit.journal.event import Head

COLUMNS: Final = Head.__struct_fields__
"""A head's columns are named as its fields are."""
HEADS: Final = f"SELECT {', '.join(COLUMNS)} FROM heads"  # noqa: S608 - names of fields

_labels: Final = msgspec.json.Decoder(dict[str, str]).decode


def to_head(row: Sequence[Any]) -> Head:
    """The head in a row that begins with COLUMNS, its labels as JSON text."""
    fields = dict(zip(COLUMNS, row, strict=False))
    fields["closed"] = bool(fields["closed"])
    fields["labels"] = _labels(fields["labels"])
    return Head(**fields)
