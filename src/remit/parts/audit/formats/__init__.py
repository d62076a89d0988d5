"""Formats of others: the same evidence as their tools read it, each mapped by one table."""

from __future__ import annotations

from typing import Final, Literal

Form = Literal["package", "ael", "in-toto", "receipts", "ocsf", "otlp"]
"""Remit's own package, or a format of others."""
ENDINGS: Final[dict[Form, str]] = {
    "package": ".zip",
    "ael": ".ael.zip",
    "in-toto": ".in-toto.zip",
    "receipts": ".receipts.jsonl",
    "ocsf": ".ocsf.jsonl",
    "otlp": ".otlp.json",
}
"""The ending of the files of each."""
