"""The two settings of a part that signs: an Ed25519 key, or a program that prints it."""

from typing import Annotated, Any

from remit.redact import MASK
from remit.settings.base import Base
from remit.settings.pictures import command
from remit.settings.section import About, Texts


def place(value: str, base: Base) -> str:
    """Return a path in full; a name of the environment, and nothing, stay."""
    return str(base.path(value)) if value and not value.startswith("${") else value


def _key(value: Any) -> Any:
    return value if isinstance(value, str) and "PRIVATE" not in value else MASK


def key_about(more: str = "") -> About:
    """Return the facts of the setting `key`; `more` is said at the end."""
    meaning = (
        "The Ed25519 key to sign with: the path of a PEM file that only you can read, or `${NAME}` for PEM in the "
        "environment."
    )
    return About(f"{meaning} {more}".rstrip(), resolve=place, picture=_key)


KeyCommand = Annotated[
    Texts, About("A program and its arguments that print the key as PEM; in the place of `key`.", picture=command)
]
