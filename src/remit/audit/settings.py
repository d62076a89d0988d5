"""The section `[audit]`."""

from typing import Annotated, Any, Literal

from remit.redact import MASK
from remit.settings.base import Base
from remit.settings.pictures import command
from remit.settings.section import About, Section, Texts


def _place(value: str, base: Base) -> str:
    return str(base.path(value)) if value and not value.startswith("${") else value


def _key(value: Any) -> Any:
    return value if isinstance(value, str) and "PRIVATE" not in value else MASK


class AuditSettings(Section, frozen=True):
    """Evidence of what was recorded."""

    reads: Annotated[
        Literal["off", "values", "all"],
        About(
            "Record who reads over HTTP and on pages, and exports by command: `values`, what names a job, step, "
            "question or file; `all`, lists and searches too. Each is recorded before the answer leaves."
        ),
    ] = "off"
    key: Annotated[
        str,
        About(
            "The Ed25519 key to sign with: the path of a PEM file that only you can read, or `${NAME}` for PEM in the "
            "environment.",
            resolve=_place,
            picture=_key,
        ),
    ] = ""
    key_command: Annotated[
        Texts, About("A program and its arguments that print the key as PEM; in the place of `key`.", picture=command)
    ] = ()
