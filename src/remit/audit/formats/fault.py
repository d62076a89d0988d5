"""The error that ends a check, and JSON that two readers take alike."""

from __future__ import annotations

from typing import Any

from remit.canonical import canonical
from remit.errors import NotCanonicalError
from remit.evidence.answer import Answer, Verdict
from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import read_json
from remit.evidence.verify import counted


class FormError(Exception):
    """The check stops here: a verdict, its code, and a sentence."""

    def __init__(self, verdict: Verdict, code: str, words: str = "") -> None:
        super().__init__(words or code)
        self.answer = Answer(verdict, code, words or code)


def invalid(code: str, words: str = "") -> FormError:
    """Return the error that says that a file is not what it claims."""
    return FormError("invalid", code, words)


def not_signed(number: int, noun: str) -> FormError:
    """Return that a file holds so many records of its form, and no signature."""
    return undecidable(
        "not_signed", f"{counted(number, noun)} of this form; nothing signs them: export a package as well"
    )


def undecidable(code: str, words: str = "") -> FormError:
    """Return the error that says that a file cannot be judged."""
    return FormError("undecidable", code, words)


def strict(data: bytes, where: str, code: str = "") -> Any:
    """Return JSON that two readers take alike. Raise FormError (invalid), with `code` if there is one."""
    try:
        return read_json(data, where)
    except RejectedError as error:
        reason = "duplicate_member" if "twice" in str(error) else error.reason
        raise invalid(code or reason, str(error)) from None


def canonical_of(value: Any, code: str) -> bytes:
    """Return the canonical form. Raise FormError (undecidable) with `code` if there is none."""
    try:
        return canonical(value)
    except NotCanonicalError as error:
        raise undecidable(code, str(error)) from None
