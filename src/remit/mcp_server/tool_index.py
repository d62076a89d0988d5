"""Which tools fit a question best: BM25 over names, texts and parameters, in a full-text index of SQLite in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from remit.files.index.rank import any_of
from remit.files.index.store import words_of
from remit.files.words import STOP, compounds, words

_SCHEMA: Final = """
CREATE VIRTUAL TABLE tools USING fts5 (name, text, parameters, tokenize = 'porter unicode61 remove_diacritics 2')
"""
_BEST: Final = "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 4.0, 2.0, 1.0), rowid LIMIT ?"
_SAME: Final = (
    "create add make new open",
    "update edit change modify",
    "delete remove",
    "get read show fetch view",
    "search find look",
    "send post",
    "email mail",
)
"""Words of which a server chose one for its tools, and a question another."""
_SYNONYMS: Final = {word: group.split() for group in _SAME for word in group.split()}


class ToolIndex:
    """The tools that one client can find: BM25 over their names, their texts and their parameters."""

    def __init__(self, definitions: Sequence[dict[str, Any]]) -> None:
        self._definitions = definitions
        self._db = apsw.Connection(":memory:")
        self._db.execute(_SCHEMA)
        with self._db:
            rows = ((i, *map(words_of, _texts(each))) for i, each in enumerate(definitions))
            self._db.executemany("INSERT INTO tools (rowid, name, text, parameters) VALUES (?, ?, ?, ?)", rows)

    def best(self, query: str, limit: int) -> list[dict[str, Any]]:
        """The tools that fit a question, the best first."""
        # The words of asking count here, in contrast to a search in documents: they are the names of tools, as `list`.
        terms = [word for word in words(query) if word not in STOP]
        same = (synonym for word in terms for synonym in _SYNONYMS.get(word, ()))
        expression = any_of(list(dict.fromkeys([*compounds(query), *terms, *same])))
        rows = self._db.execute(_BEST, (expression, limit)) if expression else ()
        return [self._definitions[number] for (number,) in rows]


def _texts(definition: dict[str, Any]) -> tuple[str, str, str]:
    """The texts of a definition that are searched: name, description, parameters."""
    text = " ".join(str(definition[key]) for key in ("title", "description") if definition.get(key))
    properties = definition["inputSchema"].get("properties")
    texts: list[str] = []
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        about = schema.get("description") if isinstance(schema, dict) else None
        texts += [name, about] if isinstance(about, str) else [name]
    return str(definition["name"]), text, " ".join(texts)
