"""Reads the fields of an object in a plan: each by its form, with a problem and a stand-in where it has another one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from remit.jobs.plans.problem import Findings, Path, cut, one_of
from remit.jobs.plans.references import kind_of
from remit.jobs.plans.schema import ID
from remit.jobs.plans.shape import EXPECTED as A_DURATION
from remit.jobs.plans.shape import parse_duration

_AN_ID: Final = "a lower-case letter, then up to 63 of a-z, 0-9, - and _"


class FieldReader:
    """Reads fields of decoded objects; problems go to `findings`."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def fields(self, value: Any, path: Path, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of an object of this schema; none if it is not an object."""
        known, required = tuple(schema["properties"]), tuple(schema.get("required", ()))
        if not isinstance(value, dict):
            self._findings.add(path, f"found {kind_of(value)}", f"an object with {listed(required or known)}")
            return {}
        for name in value:
            if name not in known:
                expected = one_of(known) + self._findings.near(name, known)
                self._findings.add((*path, name), f"unknown field `{cut(name)}`", expected, key=True)
        for name in required:
            if name not in value:
                self._findings.add(path, f"found no `{name}`", f"a field `{name}`")
        return value

    def text(self, fields: dict[str, Any], name: str, path: Path, *, empty: bool = True) -> str:
        """A text, empty where it is left out."""
        value = fields.get(name, "")
        if isinstance(value, str) and (value or empty):
            return value
        self._findings.add((*path, name), "found an empty text" if value == "" else f"found {kind_of(value)}", "a text")
        return ""

    def name(self, fields: dict[str, Any], name: str, path: Path) -> str:
        """A name by which the plan or a node is known."""
        return self.word(fields, name, path, ID, _AN_ID, None)

    def word(
        self, fields: dict[str, Any], name: str, path: Path, form: re.Pattern[str], expected: str,
        known: Collection[str] | None,
    ) -> str:  # fmt: skip
        """A text of a certain form, and one of the known ones where those are known."""
        value = fields.get(name)
        if isinstance(value, str) and form.fullmatch(value):
            if known is not None and value not in known:
                expected = f"a {name} that is offered here{self._findings.near(value, sorted(known))}"
                self._findings.add((*path, name), f"unknown {name} `{cut(value)}`", expected)
            return value
        if name in fields:
            self._findings.add((*path, name), f"found {kind_of(value)}", expected)
        return ""

    def choice(self, fields: dict[str, Any], name: str, path: Path, allowed: tuple[str, ...], default: Any) -> Any:
        """One of a few words."""
        value = fields.get(name, default)
        if name not in fields or (isinstance(value, str) and value in allowed):
            return value
        suggestion = self._findings.near(value, allowed) if isinstance(value, str) else ""
        self._findings.add((*path, name), f"found {kind_of(value)}", one_of(allowed) + suggestion)
        return default

    def number(self, fields: dict[str, Any], name: str, path: Path, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        value = fields.get(name, default)
        if type(value) is int and 1 <= value <= most:
            return value
        self._findings.add((*path, name), f"found {kind_of(value)}", f"a whole number from 1 to {most}")
        return default

    def duration(self, fields: dict[str, Any], name: str, path: Path) -> int | None:
        """Milliseconds, None where it is left out."""
        if name not in fields:
            return None
        value = fields[name]
        millis = parse_duration(value) if isinstance(value, str) else None
        if millis is None:
            self._findings.add((*path, name), f"found {kind_of(value)}", A_DURATION)
        return millis


def listed(names: Collection[str]) -> str:
    """Names as a sentence has them: `a` and `b`."""
    return " and ".join(f"`{name}`" for name in names)
