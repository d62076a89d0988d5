"""Results of tools as a model reads them: whole if they are short, else their beginning and how to read on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from remit.gateway.model_text import text_of
from remit.models.prompt import ToolSpec

LONG_RESULT: Final = 16_000
"""Characters of a tool's result that a model gets at once."""
RUN: Final = "run__"
"""The beginning of names of recipes that are tools of an agent, as models see them."""
READ_MORE: Final = "agent__read_result"
"""The tool by which a model reads on; it is answered from what is recorded."""
SPEC: Final = ToolSpec(
    name=READ_MORE,
    description="Read on in a result that was cut. `id` and `offset` stand where it was cut.",
    schema={
        "type": "object",
        "properties": {"id": {"type": "string"}, "offset": {"type": "integer", "minimum": 0}},
        "required": ["id", "offset"],
        "additionalProperties": False,
    },
)
LEFT_OUT: Final = re.compile(r"\n\[(?:cut: characters \d|left out to make room;)[^\n]*\]\Z")
"""Ends a text that is not whole, and says how to read on."""
NO_RESULTS: Final[Mapping[str, str]] = MappingProxyType({})


class Results:
    """Results of every call, in full."""

    def __init__(self, limit: int, earlier: Mapping[str, str] = NO_RESULTS) -> None:
        self._limit = limit
        self._texts: dict[str, str] = dict(earlier)

    def keep(self, call: str, value: Any) -> str:
        """Keep a result under the call's identifier; the text that the model gets."""
        self._texts[call] = text_of(value)
        return self._from(call, 0)

    def read(self, args: dict[str, Any]) -> tuple[str, bool]:
        """The text behind `id` from `offset` on, and whether there is such a place."""
        call, offset = args.get("id"), args.get("offset")
        if not isinstance(call, str) or call not in self._texts:
            return f"There is no result with the id {call!r}.", False
        if not isinstance(offset, int) or not 0 <= offset <= len(self._texts[call]):
            return f"The result has {len(self._texts[call])} characters.", False
        return self._from(call, offset), True

    def _from(self, call: str, offset: int) -> str:
        text = self._texts[call]
        end = offset + self._limit
        if end >= len(text):
            return text[offset:]
        note = f'[cut: characters {offset} to {end} of {len(text)}; read on with id "{call}" and offset {end}]'
        return f"{text[offset:end]}\n{note}"
