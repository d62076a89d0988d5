"""Programs that may be run, found by their absolute paths: no search path has a say in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from remit.process.enclosure import PLACES, CommandMissingError, SandboxUnavailableError
from remit.sandbox.identity import CLOSED, identity, reachable
from remit.sandbox.installed import Located, located
from remit.sandbox.spec import Mount

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {"python": ("python3", "python"), "node": ("node", "nodejs")}
_PACKAGES: Final[Mapping[str, str]] = {
    "python": "PYTHONPATH",
    "node": "NODE_PATH",
    "ruby": "RUBYLIB",
    "perl": "PERL5LIB",
}
PACKAGES: Final = "/packages"


class Command(NamedTuple):
    """A program within the sandbox, and what it needs there."""

    program: str
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = {}


class Finder(Protocol):
    """Finds the programs of a driver."""

    def find(self, name: str) -> Command:
        """The program behind a name. Raises CommandMissingError, or SandboxUnavailableError without its packages."""
        ...

    def locate(self, program: str, cwd: Path, path: str) -> Located:
        """A program that the operator named, by a path (relative to `cwd`) or a name that the search path `path` finds.

        Raises CommandMissingError.
        """
        ...


class Commands:
    """What the operator allows, with a folder of packages for some of them."""

    def __init__(self, allowed: tuple[str, ...], packages: Mapping[str, Path] | None = None) -> None:
        self.allowed = allowed
        self._packages = packages or {}

    def find(self, name: str) -> Command:
        for called in _NAMES.get(name, (name,)):
            for place in PLACES:
                path = Path(place, called)
                if os.access(path, os.X_OK) and path.resolve().is_relative_to("/usr"):
                    return self._with_packages(name, str(path))
        if name == "python" and not Path(sys.base_prefix).is_relative_to("/usr"):
            # A machine whose only Python is ours, outside /usr: a uv or pyenv installation.
            prefix = Path(sys.base_prefix)
            program = prefix / "bin" / "python3"
            if program.exists():
                return self._with_packages(name, str(program), Mount(prefix, str(prefix)))
        raise CommandMissingError(f"{name} is not in {' or '.join(PLACES)}")

    def locate(self, program: str, cwd: Path, path: str) -> Located:
        """A program of this machine. Raises CommandMissingError."""
        return located(program, cwd, path)

    def _with_packages(self, name: str, program: str, *mounts: Mount) -> Command:
        folder, variable = self._packages.get(name), _PACKAGES.get(name)
        if folder is None or variable is None:
            return Command(program, mounts)
        if not folder.is_dir():
            why = f"the folder with the packages of {name} does not exist: {folder}"
            raise SandboxUnavailableError(why, "Create it, or correct sandbox.packages.")
        if identity().uid is not None and not reachable(folder):
            raise SandboxUnavailableError(f"the sandbox's user cannot read the packages in {folder}", CLOSED)
        target = f"{PACKAGES}/{name}"
        return Command(program, (*mounts, Mount(folder, target)), {variable: target})


class Listed:
    """Commands that are files of their own, such as WASI modules."""

    def __init__(self, programs: Mapping[str, Path]) -> None:
        self._programs = programs

    def find(self, name: str) -> Command:
        if name not in self._programs:
            known = ", ".join(sorted(self._programs)) or "none"
            raise CommandMissingError(f"{name} is not among the modules of sandbox.wasm ({known})")
        return Command(str(self._programs[name]))

    def locate(self, program: str, cwd: Path, path: str) -> Located:  # noqa: ARG002 - the port's
        """One of the modules. Raises CommandMissingError."""
        return Located(self.find(program).program)


class Named:
    """Commands that another file system than ours holds, such as a container's image: it finds them in its own PATH."""

    def find(self, name: str) -> Command:
        return Command(_NAMES.get(name, (name,))[0])

    def locate(self, program: str, cwd: Path, path: str) -> Located:  # noqa: ARG002 - the port's
        return Located(program)
