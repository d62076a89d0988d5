"""Reading and replacing a configuration file: whole or not at all, its mode kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from remit.atomic import replace_file
from remit.errors import UsageError


def read_text(file: Path) -> str:
    """The text of a file, its line ends as they are; empty if it does not exist. Raises UsageError."""
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{file}: cannot be read: {_why(exc)}", remedy="Make it a readable text in UTF-8.") from exc


def replace_text(file: Path, text: str, *, private: bool = False) -> None:
    """Put a text in the place of a file's, or make the file and its folder; durable when this returns.

    A link stays a link. The mode stays what it was; `private`: only its owner may read it afterwards. Raises UsageError
    where that is not possible; the file is then as it was.
    """
    target = Path(os.path.realpath(file))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode(), mode=_mode(target, private=private))
    except (OSError, UnicodeEncodeError) as exc:
        raise UsageError(f"{file}: cannot be written: {_why(exc)}", remedy="Make it and its folder writable.") from exc


def remove(file: Path) -> None:
    """Remove a file, if there is one. Raises UsageError."""
    try:
        file.unlink(missing_ok=True)
    except OSError as exc:
        raise UsageError(f"{file}: cannot be removed: {_why(exc)}", remedy="Make its folder writable.") from exc


def _mode(target: Path, *, private: bool) -> int:
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)  # it cannot be asked without being set
        os.umask(mask)
        mode = 0o666 & ~mask
    else:
        if not os.access(target, os.W_OK):
            raise PermissionError(0, "it is not writable")
    return 0o600 if private else mode


def _why(exc: OSError | UnicodeError) -> str:
    return exc.strerror or str(exc) if isinstance(exc, OSError) else "it is not UTF-8"
