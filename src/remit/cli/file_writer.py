"""Writes files whose names a program chose below a folder of the user's: never anywhere else, never over a link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from remit.codes import Code
from remit.errors import UsageError

_OTHER: Final = "Take it with --cat instead, and name the file yourself."
# fmt: off
_RUN_BY_NAME: Final = frozenset({
    "conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "noxfile.py", "tasks.py",
    "fabfile.py", "manage.py", "remit.toml", "pyproject.toml", "setup.cfg", "tox.ini",
    "pytest.ini", "package.json", "makefile", "gnumakefile", "justfile", "rakefile",
    "gemfile", "vagrantfile", "dockerfile", "jenkinsfile", "cmakelists.txt", "build.gradle",
    "build.gradle.kts", "build.rs", "cargo.toml", "taskfile.yml", "taskfile.yaml", "docker-compose.yml",
    "docker-compose.yaml", "compose.yml", "compose.yaml", "autorun.inf", "desktop.ini",
})
# fmt: on
"""Names by which programs find what they run or are configured by; in lower case."""
_RUN_BY_ENDING: Final = (".pth", ".desktop", ".service", ".code-workspace")
_RUN_WITHIN: Final = frozenset({"hooks", "node_modules", "site-packages", "__pycache__"})
"""Folders in which programs look for code."""


def require_free(place: Path, *, force: bool) -> None:
    """Raise UsageError for a file that is there, unless it may be replaced."""
    if place.exists() and not force:
        raise UsageError(f"{place} exists", remedy="Name another file, or use --force.")


def runs_by_name(name: str) -> bool:
    """Say whether a program might run or obey a file because of its name: a hidden one, or one that tools look for."""
    *folders, file = name.lower().split("/")
    hidden = any(part.startswith(".") for part in (*folders, file))
    known = file in _RUN_BY_NAME or file.endswith(_RUN_BY_ENDING)
    return hidden or known or not _RUN_WITHIN.isdisjoint(folders)


def place_below(folder: Path, name: str, *, force: bool, named: bool = False) -> Path:
    """Return where a file of that name goes; `named` says that the user asked for just this name.

    Raises UsageError for a name that leads elsewhere, a file that is there, and (ARTIFACT_NAME_REFUSED) a name that
    could make another program run it, unless it was asked for.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} or not part.isprintable() for part in parts) or (os.sep != "/" and os.sep in name):
        raise UsageError(f"{name!r} is not a plain relative path", remedy=_OTHER)
    if not named and runs_by_name(name):
        remedy = f"Save it by its own name if you want it there: `--save {folder} {name}`, or use --force-names."
        raise UsageError(
            f"{name!r} is a name that other programs obey or run", code=Code.ARTIFACT_NAME_REFUSED, remedy=remedy
        )
    place = folder
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise UsageError(f"{place} is a link", remedy=_OTHER)
    place = folder.joinpath(*parts)
    if place.is_symlink() or place.is_dir() or (place.exists() and not force):
        raise UsageError(f"{place} exists", remedy="Choose another folder, or --force to overwrite files.")
    return place


def write(place: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with fresh.open("xb") as file:
            file.write(data)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
