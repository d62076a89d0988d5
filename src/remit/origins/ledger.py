"""Everything that a model was given, by whether it is trusted, and the verdict on an argument.

Identifiers that a listing of a provider vouches for: those in its fields, if none of them is free text.

A list of rooms or people as records of short fields names things that the provider has. A result with free text in any
field is none: the author of the text may have chosen what stands beside it.

What to look for in order to find a value of authority: its spellings, and the parts that it may be made of.

A value is as trusted as its parts where the parts are what names something: the host and every piece of a URL, every
part of a path, every word of a command. An address, an account number and an identifier are one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from remit.journal.kinds import UntrustedArgument
from remit.origins.arguments import AuthorityValue
from remit.origins.roles import is_count, is_listed, role_of_name
from remit.origins.text_index import Needle, TextHit, TextIndex, folded, strict, wide
from remit.redact import line
from remit.regex import regex

_AROUND: Final = 80
"""Characters shown before and after what was found."""
_VALUE: Final = 2_000
"""Characters of a value that are recorded."""


class OriginSource(NamedTuple):
    """Where a text comes from."""

    step: str
    tool: str
    args: str = ""
    """The arguments that the model itself gave to the call, in JSON; what only repeats them adds no trust."""
    family: str = ""
    """The tools whose listing it may be, see remit.gateway.conversation.family_of; empty: it is none."""


class OriginLedger:
    """Grows with a conversation."""

    def __init__(self) -> None:
        self._trusted = TextIndex()
        self._untrusted = TextIndex()
        self._sources: list[OriginSource] = []
        self._listed: dict[str, set[str]] = {}
        """Identifiers that listings of a family of tools gave."""
        self.tainted = False
        """Whether any of it is untrusted."""

    def trust(self, text: str, source: OriginSource, *, is_json: bool = False) -> None:
        """Take a text that a person, the settings or a trusted tool gave."""
        input_text = folded(strict(source.args, is_json=True))
        self._sources.append(source._replace(args=input_text))
        self._trusted.add(strict(text, is_json=is_json), len(self._sources) - 1)

    def distrust(self, text: str, source: OriginSource) -> None:
        """Take a text from outside."""
        self.tainted = True
        listed = identifiers(text, source.tool.rpartition(".")[2]) if source.family else frozenset()
        if listed:
            self._listed.setdefault(source.family, set()).update(listed)
        else:
            source = source._replace(family="")
        self._sources.append(source)
        self._untrusted.add(wide(text), len(self._sources) - 1)

    def trusts(self, argument: AuthorityValue) -> bool:
        """Return whether a trusted text holds an argument, or each of its parts; or there is nothing to distrust."""
        if not self.tainted or any(map(self._holds, whole(argument))):
            return True
        pieces = parts(argument)
        return bool(pieces) and all(map(self._holds, pieces))

    def judge(self, argument: AuthorityValue, family: str = "") -> UntrustedArgument | None:
        """Say what there is to say against an argument; None: a trusted text holds it, or there is nothing to distrust.

        An identifier may also stand in a listing of the `family` of the tool that it is for, if no other text from
        outside holds it.
        """
        if self.trusts(argument) or self._lists(argument, family):
            return None
        argument_found = UntrustedArgument(
            path=argument.path, role=argument.role, value=argument.value[:_VALUE], seen="nowhere"
        )
        missing = [piece for piece in parts(argument) if not self._holds(piece)]
        hit = self._seen(whole(argument)) or self._seen(sorted(missing, key=lambda piece: -len(piece.text)))
        return self._shown(argument_found, hit) if hit is not None else argument_found

    def _holds(self, needle: Needle) -> bool:
        """Return whether a trusted text holds it that does not merely repeat what the model said."""
        wanted = folded(needle.text)
        return any(wanted not in self._sources[hit.source].args for hit in self._trusted.find(needle))

    def _lists(self, argument: AuthorityValue, family: str) -> bool:
        if argument.role != "id" or argument.value not in self._listed.get(family, ()):
            return False
        if not is_listed(argument.path.rpartition(".")[2]):
            return False
        needle = Needle(wide(argument.value), any_case=True)
        return all(self._sources[hit.source].family for hit in self._untrusted.find(needle))

    def _seen(self, needles: list[Needle]) -> TextHit | None:
        for needle in needles:
            text = wide(needle.text)
            if any(char.isalnum() for char in text):
                hit = next(self._untrusted.find(Needle(text, any_case=True, loose=needle.loose)), None)
                if hit is not None:
                    return hit
        return None

    def _shown(self, argument: UntrustedArgument, hit: TextHit) -> UntrustedArgument:
        source = self._sources[hit.source]
        return UntrustedArgument(
            path=argument.path,
            role=argument.role,
            value=argument.value,
            seen="untrusted",
            step=source.step,
            tool=source.tool,
            place=_place(source.args),
            before=line(hit.text[max(0, hit.start - _AROUND) : hit.start], _AROUND),
            span=line(hit.text[hit.start : hit.end], _AROUND * 2),
            after=line(hit.text[hit.end : hit.end + _AROUND], _AROUND),
        )


def _place(text: str) -> str:
    """The page or file that a call with these arguments read; empty: none is named."""
    try:
        args = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return ""
    table = args if isinstance(args, dict) else {}
    named = (value for name, value in table.items() if role_of_name(name) in {"url", "path"})
    return next((line(value, _AROUND * 2) for value in named if isinstance(value, str)), "")


_LONGEST: Final = 128
"""Characters of an identifier."""
_WORDS: Final = 5
"""Words of a field from which on it is free text."""
_NOTHING: Final[frozenset[str]] = frozenset()


class _Field(msgspec.Struct, frozen=True):
    """A single value of a result."""

    name: str
    value: Any


def identifiers(text: str, tool: str = "") -> frozenset[str]:
    """The identifiers in a result, given as JSON; none if it is no table or list, or holds free text.

    What a bare list holds, no field says: the `tool` does, as `list_channels`.
    """
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:  # it was cut, as one too long to be shown whole
        return _NOTHING
    fields = list(_fields(value, tool if isinstance(value, list) else "")) if isinstance(value, dict | list) else []
    if any(map(_is_free, fields)):
        return _NOTHING
    return frozenset(str(field.value) for field in fields if is_listed(field.name) and _is_identifier(field))


def _fields(value: Any, name: str) -> Iterator[_Field]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _fields(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item, name)
    else:
        yield _Field(name, value)


def _is_free(field: _Field) -> bool:
    """Return whether a field is text that someone has written."""
    value = field.value
    if not isinstance(value, str) or not value:
        return False
    return role_of_name(field.name) == "content" or len(value.splitlines()) > 1 or len(value.split()) >= _WORDS


def _is_identifier(field: _Field) -> bool:
    if isinstance(field.value, str):
        return 0 < len(field.value) <= _LONGEST
    return isinstance(field.value, int) and not isinstance(field.value, bool) and not is_count(field.name)


_URL: Final = regex(r"(?:https?|wss?|ftps?)://([^/?#\\\s@]+)([^\s\\]*)", re.IGNORECASE)
_MAIL: Final = "mailto:"
_SLASHES: Final = regex(r"[/\\]+")
_PIECES: Final = regex(r"[/?#&=]+")
_BESIDE: Final = {"id": "@/", "path": "/\\", "command": ""}
"""Signs that may stand beside a value of this role."""
_GROUP: Final = 4


def whole(argument: AuthorityValue) -> list[Needle]:
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


def parts(argument: AuthorityValue) -> list[Needle]:
    """Return what a value is made of; empty if it is one piece, or if its parts would not say what it is."""
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
    match = _URL.fullmatch(value)
    if match is None:  # another scheme, or a user before the host
        return []
    host, rest = match[1], match[2]
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
