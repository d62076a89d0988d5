"""Events about subjects: those that recorded values are about. All of these are ours."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class SubjectErased(Payload, frozen=True, kw_only=True):
    """Ours, in a subject's own stream: every value of its streams was erased in this transaction."""

    KIND: ClassVar[str] = "subject_erased"
    subject: str
    """Digest of the subject's name, in hexadecimal."""
    streams: int = 0
    """How many streams it had."""
    values: int = 0
    """How many values and pieces of evidence were erased."""
    left: int = 0
    """How many values stand in events of an older Remit, and could not be erased."""
    by: str = ""
    reason: str = ""
