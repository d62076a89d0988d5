"""Everything that a model was given, by whether it is trusted, and the verdict on an argument."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.journal.kinds import UntrustedArgument
from remit.origins.arguments import Argument
from remit.origins.listing import identifiers
from remit.origins.needles import parts, whole
from remit.origins.readings import folded, strict, wide
from remit.origins.roles import is_listed
from remit.origins.text_index import Hit, Needle, TextIndex
from remit.redact import line

_AROUND: Final = 80
"""Characters shown before and after what was found."""
_VALUE: Final = 2_000
"""Characters of a value that are recorded."""


class Source(NamedTuple):
    """Where a text comes from."""

    step: str
    tool: str
    given: str = ""
    """The arguments that the model itself gave to the call; what only repeats them adds no trust."""
    family: str = ""
    """The tools whose listing it may be, see `family_of`; empty: it is none."""


def family_of(provider: str, tool: str) -> str:
    """The tools that a listing may vouch to: those of its provider whose names differ in the last part alone."""
    return f"{provider} {tool.rpartition('.')[0]}"


class Ledger:
    """Grows with a conversation."""

    def __init__(self) -> None:
        self._trusted = TextIndex()
        self._untrusted = TextIndex()
        self._sources: list[Source] = []
        self._listed: dict[str, set[str]] = {}
        """Identifiers that listings of a family of tools gave."""
        self.tainted = False
        """Whether any of it is untrusted."""

    def trust(self, text: str, source: Source, *, is_json: bool = False) -> None:
        """Take a text that a person, the settings or a trusted tool gave."""
        given = folded(strict(source.given, is_json=True))
        self._sources.append(source._replace(given=given))
        self._trusted.add(strict(text, is_json=is_json), len(self._sources) - 1)

    def distrust(self, text: str, source: Source) -> None:
        """Take a text from outside."""
        self.tainted = True
        listed = identifiers(text) if source.family else frozenset()
        if listed:
            self._listed.setdefault(source.family, set()).update(listed)
        else:
            source = source._replace(family="")
        self._sources.append(source)
        self._untrusted.add(wide(text), len(self._sources) - 1)

    def trusts(self, argument: Argument) -> bool:
        """Whether a trusted text holds an argument, or each of its parts; or there is nothing to distrust."""
        if not self.tainted or any(map(self._holds, whole(argument))):
            return True
        pieces = parts(argument)
        return bool(pieces) and all(map(self._holds, pieces))

    def judge(self, argument: Argument, family: str = "") -> UntrustedArgument | None:
        """What there is to say against an argument; None: a trusted text holds it, or there is nothing to distrust.

        An identifier may also stand in a listing of the `family` of the tool that it is for, if no other text from
        outside holds it.
        """
        if self.trusts(argument) or self._lists(argument, family):
            return None
        found = UntrustedArgument(path=argument.path, role=argument.role, value=argument.value[:_VALUE], seen="nowhere")
        missing = [piece for piece in parts(argument) if not self._holds(piece)]
        hit = self._seen(whole(argument)) or self._seen(sorted(missing, key=lambda piece: -len(piece.text)))
        return self._shown(found, hit) if hit is not None else found

    def _holds(self, needle: Needle) -> bool:
        """Whether a trusted text holds it that does not merely repeat what the model said."""
        wanted = folded(needle.text)
        return any(wanted not in self._sources[hit.source].given for hit in self._trusted.find(needle))

    def _lists(self, argument: Argument, family: str) -> bool:
        if argument.role != "id" or argument.value not in self._listed.get(family, ()):
            return False
        if not is_listed(argument.path.rpartition(".")[2]):
            return False
        needle = Needle(wide(argument.value), any_case=True)
        return all(self._sources[hit.source].family for hit in self._untrusted.find(needle))

    def _seen(self, needles: list[Needle]) -> Hit | None:
        for needle in needles:
            text = wide(needle.text)
            if any(char.isalnum() for char in text):
                hit = next(self._untrusted.find(Needle(text, any_case=True, loose=needle.loose)), None)
                if hit is not None:
                    return hit
        return None

    def _shown(self, found: UntrustedArgument, hit: Hit) -> UntrustedArgument:
        source = self._sources[hit.source]
        return UntrustedArgument(
            path=found.path,
            role=found.role,
            value=found.value,
            seen="untrusted",
            step=source.step,
            tool=source.tool,
            before=line(hit.text[max(0, hit.start - _AROUND) : hit.start], _AROUND),
            span=line(hit.text[hit.start : hit.end], _AROUND * 2),
            after=line(hit.text[hit.end : hit.end + _AROUND], _AROUND),
        )
