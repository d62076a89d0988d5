"""The role of an argument: it says where something goes, or it is what goes there.

An argument of *authority* chooses what a call reaches: an address, a path, an account, a command, an identifier. An
argument of *content* is free text. The schema says which (`x-remit-role`), else its `format` does, else its name; what
none of them tells is authority if it looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, get_args

from remit.regex import regex

Role = Literal["url", "email", "path", "iban", "command", "id", "content"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
KEYWORD: Final = "x-remit-role"
"""The keyword of a schema that names the role."""

FORMATS: Final[dict[str, Role]] = {
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "uri-reference": "url",
    "iri-reference": "url",
    "hostname": "url",
    "idn-hostname": "url",
    "ipv4": "url",
    "ipv6": "url",
    "uuid": "id",
    "path": "path",
    "iban": "iban",
    "date": "content",
    "date-time": "content",
    "duration": "content",
    "time": "content",
}
"""The role of a text of a schema's `format`."""
_REACHED: Final = (
    "ssn passport license licence phone tel mobile fax sms address wallet card key password passphrase passcode "
)
_OPENS: Final = "pin otp secret token credential fingerprint"
_WORDS: Final[dict[Role, str]] = {
    "url": "url uri href link endpoint webhook callback host hostname domain server site website homepage proxy ip "
    "upstream mirror registry feed redirect",
    "email": "email mail to cc bcc recipient sender attendee invitee participant subscriber receiver addressee "
    "correspondent",
    "path": "path filepath pathname file filename dir directory folder root dest destination",
    "iban": "iban account bic swift payee beneficiary creditor debtor routing",
    "command": "command cmd argv args script shell executable program code sql entrypoint macro expression",
    "id": "id ids uuid guid repo repository owner org organization organisation branch ref user username login "
    "channel project issue ticket tenant database table bucket group team member person people employee contact "
    "assignee reviewer approver customer client supplier vendor seller company room venue hotel restaurant flight "
    f"seat guest vehicle car product item sku article booking reservation package service {_REACHED}{_OPENS}",
    "content": "text body message content title subject summary description comment note prompt question answer reason "
    "query instructions task memo remark detail feedback review caption greeting paragraph",
}
_BY_WORD: Final[dict[str, Role]] = {word: role for role, words in _WORDS.items() for word in words.split()}
_UNLISTED: Final = frozenset((_REACHED + _OPENS).split())
"""Identifiers that are what another one is reached by, or what opens something: no listing vouches for them."""
_NUMBERS: Final = (
    "count limit size length total max min maximum minimum num amount quantity width height depth timeout age level "
    "duration ms seconds minutes hours days percent price rate score rank offset"
)
_MEASURES: Final = frozenset(_NUMBERS.split())
_WORD: Final = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IBAN: Final = r"(?=(?:[^0-9]*[0-9]){8})"
_SHAPES: Final[tuple[tuple[re.Pattern[str], Role], ...]] = (
    (regex(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}://\S+"), "url"),
    (regex(r"(?:javascript|vbscript|data|file|tel|sms):\S+|www\.\S+\.\S+", re.IGNORECASE), "url"),
    (regex(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5})?"), "url"),
    (regex(r"(?:mailto:)?[^\s@<>]{1,64}@[^\s@<>]{1,255}"), "email"),
    (regex(r"[^@<>]{0,100}<[^\s@<>]{1,64}@[^\s@<>]{1,255}>"), "email"),
    (regex(_IBAN + r"[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}"), "iban"),
    (regex(r"(?:~?/|\.\.?/|[A-Za-z]:\\|\\\\)[^\s]{1,1000}"), "path"),
    (regex(r"\+[0-9][0-9 ()./-]{6,20}|0x[0-9a-fA-F]{40}|(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,60}"), "id"),
)
_WITHIN: Final[tuple[tuple[re.Pattern[str], Role], ...]] = (
    (regex(r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s\"'<>`|]+|\bwww\.[^\s\"'<>`|]+\.[^\s\"'<>`|]+"), "url"),
    (regex(r"\b[\w.%+-]{1,64}@[\w-]+(?:\.[\w-]+)+"), "email"),
    (regex(r"\b" + _IBAN + r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"), "iban"),
)
_ENDS: Final = ".,;:!?)]}"
"""Signs that end a sentence rather than an address."""
_LONGEST_SHAPE: Final = 2_048
_HEADERS: Final = frozenset({"subject", "title", "header", "name"})


def role_of_name(name: str) -> Role | None:
    """The role that a name suggests: its last word counts most; a measure is content. None if it tells nothing."""
    words = _words(name)
    if words and (words[0] in _MEASURES or words[-1] in _MEASURES):
        return "content"
    for word in reversed(words):
        role = _BY_WORD.get(word) or _BY_WORD.get(word.removesuffix("s"))
        if role is not None:
            return role
    return None


def is_count(name: str) -> bool:
    """Return whether a single number of this name says how many of what identifiers are of, such as `rooms`."""
    last = _words(name)[-1:]
    return bool(last) and last[0] not in _BY_WORD and _BY_WORD.get(last[0].removesuffix("s")) == "id"


def role_of_shape(value: str) -> Role | None:
    """The role of a text that as a whole is an address, an account number or an absolute path."""
    if len(value) > _LONGEST_SHAPE:
        return None
    return next((role for pattern, role in _SHAPES if pattern.fullmatch(value)), None)


def addresses_in(text: str) -> Iterator[tuple[Role, str]]:
    """Every URL, address and account number within a text."""
    for pattern, role in _WITHIN:
        yield from ((role, match[0].rstrip(_ENDS)) for match in pattern.finditer(text))


def is_header(name: str) -> bool:
    """Return whether an argument of this name is a line, such as one of the head of an e-mail."""
    words = _words(name)
    return bool(words) and words[-1] in _HEADERS


def is_listed(name: str) -> bool:
    """Return whether a field or an argument of this name holds an identifier for which a listing can vouch."""
    words = _words(name)
    if words[-1:] == ["name"]:
        words.pop()
        if not words:
            return True
    plain = {word for each in words for word in (each, each.removesuffix("s"))}
    return role_of_name(" ".join(words)) == "id" and not plain & _UNLISTED


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
