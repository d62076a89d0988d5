"""Programs that may be run, found by their absolute paths: no search path has a say in it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from remit.parts.sandbox.identity import CLOSED, reachable
from remit.process.enclosure import PLACES, CommandMissingError, FolderMount, SandboxUnavailableError

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {"python": ("python3", "python"), "node": ("node", "nodejs")}
_PACKAGES: Final[Mapping[str, str]] = {
    "python": "PYTHONPATH",
    "node": "NODE_PATH",
    "ruby": "RUBYLIB",
    "perl": "PERL5LIB",
}
PACKAGES: Final = "/packages"


class SandboxCommand(msgspec.Struct, frozen=True):
    """A program within the sandbox, and what it needs there."""

    program: str
    mounts: tuple[FolderMount, ...] = ()
    env: Mapping[str, str] = {}


class Finder(Protocol):
    """Finds the programs of a driver."""

    def find(self, name: str) -> SandboxCommand:
        """The program behind a name. Raises CommandMissingError, or SandboxUnavailableError without its packages."""
        ...

    def locate(self, program: str, cwd: Path, path: str) -> Located:
        """A program that the operator named, by a path (relative to `cwd`) or a name that the search path `path` finds.

        Raises CommandMissingError.
        """
        ...


class Commands:
    """The commands that the operator allows, with a folder of packages for some of them."""

    def __init__(self, allowed: tuple[str, ...], packages: Mapping[str, Path] | None = None) -> None:
        self.allowed = allowed
        self._packages = packages or {}

    def find(self, name: str) -> SandboxCommand:
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
                return self._with_packages(name, str(program), FolderMount(prefix, str(prefix)))
        raise CommandMissingError(f"{name} is not in {' or '.join(PLACES)}")

    def locate(self, program: str, cwd: Path, path: str) -> Located:
        return located(program, cwd, path)

    def _with_packages(self, name: str, program: str, *mounts: FolderMount) -> SandboxCommand:
        folder, variable = self._packages.get(name), _PACKAGES.get(name)
        if folder is None or variable is None:
            return SandboxCommand(program, mounts)
        if not folder.is_dir():
            reason = f"the folder with the packages of {name} does not exist: {folder}"
            raise SandboxUnavailableError(reason, "Create it, or correct sandbox.packages.")
        if not reachable(folder):
            raise SandboxUnavailableError(f"the sandbox's user cannot read the packages in {folder}", CLOSED)
        target = f"{PACKAGES}/{name}"
        return SandboxCommand(program, (*mounts, FolderMount(folder, target)), {variable: target})


class ImageCommands:
    """Commands that another file system than ours holds, such as a container's image: it finds them in its own PATH."""

    def find(self, name: str) -> SandboxCommand:
        return SandboxCommand(_NAMES.get(name, (name,))[0])

    def locate(self, program: str, cwd: Path, path: str) -> Located:  # noqa: ARG002 - the port's
        return Located(program)


_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
"""Every sandbox has these."""
_SHARED: Final = frozenset({".local", "opt"})
"""Folders with `bin` and `lib` that hold more than one program."""
_DEEPEST: Final = 4
"""Interpreters of interpreters."""


class Located(msgspec.Struct, frozen=True):
    """A program of the operator's own, as a sandbox sees it, and what it needs there."""

    program: str
    reads: tuple[Path, ...] = ()
    search: tuple[str, ...] = ()
    """Folders that its `PATH` needs beside the usual ones."""


def located(name: str, cwd: Path, path: str) -> Located:
    """The program behind the first word of a command. Raises CommandMissingError."""
    program_path = str(cwd / name) if os.sep in name else shutil.which(name, path=path)
    if program_path is None or not os.access(program_path, os.X_OK):
        raise CommandMissingError(f"the program {name} does not exist here, or cannot be run")
    reads: dict[Path, None] = {}
    search: dict[str, None] = {}
    program = Path(os.path.normpath(program_path))
    for program_part in _chain(program, path):
        reads.update(dict.fromkeys(_installation(program_part)))
        if not _of_system(program_part):
            search[str(program_part.parent)] = None
    return Located(str(program), tuple(reads), tuple(search))


def _chain(program: Path, path: str) -> Iterator[Path]:
    """The program and its interpreters, each as it is named and as it is found behind links."""
    current: Path | None = program
    for _ in range(_DEEPEST):
        if current is None:
            return
        yield current
        real = current.resolve()
        if real != current:
            yield real
        current = _interpreter(real, path)


def _interpreter(file: Path, path: str) -> Path | None:
    """Return what the first line of a script names."""
    try:
        with file.open("rb") as stream:
            head = stream.readline(512)
    except OSError:
        return None
    words = head[2:].decode(errors="replace").split() if head.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
        program_path = shutil.which(words[0], path=path) if words else None
        return Path(program_path) if program_path else None
    return Path(words[0]) if words else None


def _installation(program: Path) -> Sequence[Path]:
    """Return what has to be seen for a program to start."""
    if _of_system(program):
        return ()
    above = program.parent.parent
    if (above / "pyvenv.cfg").is_file():
        return (above, *_bases(above))
    if "node_modules" in program.parts:
        return (Path(*program.parts[: program.parts.index("node_modules") + 1]),)
    if program.parent.name == "bin" and (above / "lib").is_dir() and above.name not in _SHARED:
        return (above,)
    return (program,)


def _bases(environment: Path) -> Sequence[Path]:
    """The Python that a virtual environment was made of."""
    for line in (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return _installation(Path(value.strip()) / "python3")
    return ()


def _of_system(program: Path) -> bool:
    return any(program.is_relative_to(place) for place in _SYSTEM)
