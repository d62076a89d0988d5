"""The folder of packs and worktrees of a project.

If Remit runs as root, it lies where the user of the sandbox can reach it, outside the project. The project carries its
id, and it notes where the project lies. So a project that was moved finds it, a copy gets one of its own, and a
project that took the place of another one does not meet what that one left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.atomic import replace_file
from remit.capability import Check, Look
from remit.ids import new_id
from remit.regex import regex

if TYPE_CHECKING:
    from remit.parts.work.references import IssueRef
    from remit.process.enclosure import Enclosures
    from remit.settings import Settings

_SHARED: Final = Path("/var/lib/remit/work")
_ID: Final = Path(".remit", "work.id")
"""The file of a project that carries the id."""
_NOTE: Final = "project"
"""The file of a folder that notes where its project lies."""
_NAME: Final = regex(r"work_[0-9a-z]{26}|[0-9a-f]{16}")
_LONGEST: Final = 4_096
_NAMED: Final = 5
"""Folders that `remit doctor` names."""


class WorkFolder:
    """The folder of one project, made or not.

    It lies below `shared`; None: where it is chosen by the settings and the user as whom Remit runs.
    """

    def __init__(self, settings: Settings, shared: Path | None = None) -> None:
        own = settings.value("sandbox.folder", "")
        self._project = settings.folder
        self._shared = shared or (_SHARED if os.geteuid() == 0 and not own else None)
        self._fixed = Path(own) / "work" if own else settings.folder / ".remit" / "work"

    @property
    def path(self) -> Path:
        """Return the path of it."""
        if self._shared is None:
            return self._fixed
        return self._shared / (_carried_by(self._project) or self._earlier(self._shared) or "none")

    def make(self, enclosures: Enclosures) -> Path:
        """Make it, if it is not there, and close it to all but Remit and the user of the sandbox. Raise OSError."""
        place = self.path
        if self._shared is not None:
            self._shared.mkdir(parents=True, exist_ok=True)
            enclosures.admit(self._shared)
            if place.name == "none" or self._is_of_another(place):
                place = self._shared / new_id("work")
            place.mkdir(mode=0o700, exist_ok=True)
            self._note(place)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        enclosures.admit(place)
        return place

    def leftovers(self) -> dict[str, list[Path]]:
        """Return what is unused, by what it is: folders of projects that are gone, and what was set aside."""
        return {
            "folders of runs whose project is gone": list(_dead(self._shared)) if self._shared is not None else [],
            "set aside, for they are of no run of this project": sorted(self.path.glob("*/*/*.aside*")),
        }

    def _note(self, place: Path) -> None:
        """Have the folder and its project name each other."""
        if _noted_in(place) != self._project:
            replace_file(place / _NOTE, os.fsencode(self._project))
        if _carried_by(self._project) != place.name:
            (self._project / _ID).parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._project / _ID, place.name.encode())

    def _is_of_another(self, place: Path) -> bool:
        """Return whether the project is a copy of one that is still there."""
        other = _noted_in(place)
        return other is not None and _lives(other, place.name) and not other.samefile(self._project)

    def _earlier(self, shared: Path) -> str:
        """Return the name of the folder that an older Remit made for this path; empty if a project has taken it."""
        name = sha256(os.fsencode(self._project)).hexdigest()[:16]
        return name if (shared / name).is_dir() and _noted_in(shared / name) is None else ""


async def check_work(look: Look) -> list[Check]:
    """Return the row of `remit doctor`; none if there is nothing to say."""
    leftovers = WorkFolder(look.settings).leftovers()
    texts = [f"{what}: {_named(places)}" for what, places in leftovers.items() if places]
    return [Check("work", "warn", "; ".join(texts), "Delete them once nothing in them is needed.")] if texts else []


def _dead(shared: Path) -> Iterable[Path]:
    """Give the folders whose project is no more where they note it, or whose checkouts no repository knows."""
    with suppress(OSError):
        for place in sorted(shared.iterdir()):
            project = _noted_in(place)
            marks = [*place.glob("trees/*/*/.git")] if project is None else []
            if (project is not None and not _lives(project, place.name)) or (marks and not any(map(_known, marks))):
                yield place


def _known(mark: Path) -> bool:
    """Return whether the repository of a checkout is there."""
    return Path(os.fsdecode(_read(mark)).removeprefix("gitdir:").strip()).is_dir()


def _lives(project: Path, name: str) -> bool:
    return _carried_by(project) == name


def _carried_by(project: Path) -> str:
    name = _read(project / _ID).decode("ascii", "replace").strip()
    return name if _NAME.fullmatch(name) else ""


def _noted_in(place: Path) -> Path | None:
    noted = _read(place / _NOTE)
    return Path(os.fsdecode(noted)) if noted else None


def _read(file: Path) -> bytes:
    """Return the content of a small regular file; empty if there is no such file."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read(_LONGEST)
    return b""


def _named(places: list[Path]) -> str:
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return ", ".join(map(str, places[:_NAMED])) + more


def tree_folder(root: Path, issue: IssueRef, run_id: str) -> Path:
    """Return where the worktree of a run is. No `%` is in its name, which some agents would decode."""
    return root / "trees" / issue.file_name.replace("%", "=") / run_id
