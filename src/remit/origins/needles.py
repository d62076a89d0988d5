"""What to look for in order to find a value of authority: its spellings, and the parts that it may be made of.

A value is as trusted as its parts where the parts are what names something: the host and every piece of a URL, every
part of a path, every word of a command. An address, an account number and an identifier are one piece.
"""

from __future__ import annotations

import re
from typing import Final

from remit.origins.arguments import Argument
from remit.origins.readings import strict
from remit.origins.text_index import Needle

_URL: Final = re.compile(r"(?:https?|wss?|ftps?)://([^/?#\\\s@]+)([^\s\\]*)", re.IGNORECASE)
_MAIL: Final = "mailto:"
_SLASHES: Final = re.compile(r"[/\\]+")
_PIECES: Final = re.compile(r"[/?#&=]+")
_BESIDE: Final = {"id": "@/", "path": "/\\", "command": ""}
"""Signs that may stand beside a value of this role."""
_GROUP: Final = 4


def whole(argument: Argument) -> list[Needle]:
    """The spellings of a value as a whole."""
    role, value = argument.role, strict(argument.value).strip()
    if role == "iban":
        compact = "".join(value.split())
        groups = " ".join(compact[at : at + _GROUP] for at in range(0, len(compact), _GROUP))
        return [Needle(compact, any_case=True), Needle(groups, any_case=True)]
    if role == "email":
        bare = value[len(_MAIL) :] if value.lower().startswith(_MAIL) else value
        return [Needle(bare, any_case=True)]
    return [Needle(value, loose=_BESIDE.get(role, ""))]


def parts(argument: Argument) -> list[Needle]:
    """What a value is made of; empty if it is one piece, or if its parts would not say what it is."""
    value = strict(argument.value).strip()
    match argument.role:
        case "url":
            return _of_url(value)
        case "path":
            return _of_path(value)
        case "command":
            words = [word.strip("\"'") for word in value.split()]
            return [Needle(word) for word in words if word] if len(words) > 1 else []
        case _:
            return []


def _of_url(value: str) -> list[Needle]:
    found = _URL.fullmatch(value)
    if found is None:  # another scheme, or a user before the host
        return []
    host, rest = found[1], found[2]
    pieces = [piece for piece in _PIECES.split(rest) if piece]
    if ".." in pieces:
        return []
    return [Needle(host, any_case=True, loose="/"), *(Needle(piece, loose="/") for piece in pieces)]


def _of_path(value: str) -> list[Needle]:
    names = [name for name in _SLASHES.split(value) if name not in {"", "."}]
    if ".." in names or len(names) < 2:  # noqa: PLR2004 - one name is the whole
        return []
    if value[0] in "/\\":
        names[0] = value[0] + names[0]
    return [Needle(name, loose="/\\") for name in names]
