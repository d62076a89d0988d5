"""The environment of a child process: the part of ours that it sees, and the part that is never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from remit.redact import MASK, mask

INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Variables that programs need to run at all; none of them holds a secret."""
_FOLDERS: Final = ("PWD", "OLDPWD")
"""Names that look like `password` and hold a path."""
_SHORTEST: Final = 4
"""Characters of the shortest value that is masked: a shorter one stands in every second word."""


def environment(ours: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: the inherited variables of `ours`, and all that is `added`."""
    return {**{name: ours[name] for name in INHERITED if name in ours}, **added}


def secrets_of(env: Mapping[str, str]) -> list[str]:
    """The values whose names say that they are secret, longest first."""
    values = {value for name, value in env.items() if name not in _FOLDERS and MASK in mask(f"{name}={value}")}
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)


def without(secrets: list[str], text: str) -> str:
    """The text with each of the `secrets` masked."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text
