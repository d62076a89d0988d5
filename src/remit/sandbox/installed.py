"""What a program outside /usr needs to run: its own installation, and that of what interprets it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from remit.process.enclosure import CommandMissingError

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
"""Every sandbox has these."""
_SHARED: Final = frozenset({".local", "opt"})
"""Folders with `bin` and `lib` that hold more than one program."""
_DEEPEST: Final = 4
"""Interpreters of interpreters."""


class Located(NamedTuple):
    """A program of the operator's own, as a sandbox sees it, and what it needs there."""

    program: str
    reads: tuple[Path, ...] = ()
    search: tuple[str, ...] = ()
    """Folders that its `PATH` needs beside the usual ones."""


def located(name: str, cwd: Path, path: str) -> Located:
    """The program behind the first word of a command. Raises CommandMissingError."""
    found = str(cwd / name) if os.sep in name else shutil.which(name, path=path)
    if found is None or not os.access(found, os.X_OK):
        raise CommandMissingError(f"the program {name} does not exist here, or cannot be run")
    reads: dict[Path, None] = {}
    search: dict[str, None] = {}
    program = Path(os.path.normpath(found))
    for one in _chain(program, path):
        reads.update(dict.fromkeys(_installation(one)))
        if not _of_system(one):
            search[str(one.parent)] = None
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
    """What the first line of a script names."""
    try:
        with file.open("rb") as stream:
            head = stream.readline(512)
    except OSError:
        return None
    words = head[2:].decode(errors="replace").split() if head.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
        found = shutil.which(words[0], path=path) if words else None
        return Path(found) if found else None
    return Path(words[0]) if words else None


def _installation(program: Path) -> Sequence[Path]:
    """What has to be seen for a program to start."""
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
