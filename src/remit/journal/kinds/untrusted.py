"""What is recorded of an argument that came from untrusted text."""

from __future__ import annotations

from typing import Literal

import msgspec


class UntrustedArgument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An argument of authority that no trusted text holds, and where it was seen instead."""

    path: str
    """Where it stands in the arguments, such as `to` or `files.path`."""
    role: str
    """What it is for: `url`, `email`, `path`, `iban`, `command` or `id`."""
    value: str
    """The argument itself; its beginning, if it is very long."""
    seen: Literal["untrusted", "nowhere"]
    """Whether an untrusted output holds it, or nothing that the model was given."""
    step: str = ""
    """The step whose output holds it."""
    tool: str = ""
    """The tool that gave that output, or what else the text is."""
    before: str = ""
    """What stands before it there."""
    span: str = ""
    """The value, or the part of it that was found, as it stands there."""
    after: str = ""
    """What stands after it there."""

    @property
    def words(self) -> str:
        """The finding in one line, without the text around it."""
        if self.seen == "nowhere":
            return f"{self.path} ({self.role}) appears in nothing that the model was given"
        where = f"{self.tool}, step {self.step}" if self.step else self.tool
        return f"{self.path} ({self.role}) comes from {where}, which is not trusted"

    @property
    def excerpt(self) -> str:
        """What was found, in its text; empty if it was found nowhere."""
        return f"…{self.before}»{self.span}«{self.after}…" if self.span else ""
