"""Makes the image in which containers are tried: `python -m tests.parts.sandbox.image podman docker`.

It holds this machine's own Python, a shell and a few programs, with the libraries that they need, and no other file: a
probe that finds more has seen the machine. Nothing is fetched.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from tests.parts.sandbox.abuse.subjects import IMAGE, PYTHON

_PROGRAMS: Final = ("bash", "cat", "chmod", "mkdir", "rm", "setsid", "sh", "sleep")
_LINKS: Final = ("bin", "lib", "lib64", "sbin")
"""Folders of the root that lead to those of `/usr`."""
_FOLDERS: Final = ("dev", "etc", "proc", "sys", "tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "workspace")
_USERS: Final = b"root:x:0:0::/:/bin/sh\n"
"""Services look up by name as whom a program runs."""
_LEFT_OUT: Final = frozenset({"__pycache__", "dist-packages", "ensurepip", "idlelib", "site-packages", "test"})
_LIBRARY: Final = re.compile(rb"(/\S+) \(0x")


def files() -> Iterator[Path]:
    """All that the image holds, where it lies on this machine."""
    programs = [Path(found) for name in _PROGRAMS if (found := shutil.which(name, path="/usr/bin:/bin"))]
    lines = subprocess.run(
        [PYTHON, "-c", "import sysconfig as s; print(s.get_path('stdlib'), s.get_path('platstdlib'), sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    modules = [file for folder in dict.fromkeys(lines) for file in _below(Path(folder))]
    native = [file for file in modules if file.suffix == ".so"]
    yield from modules
    yield from (Path(PYTHON), *programs, *_libraries([Path(PYTHON), *programs, *native]))


def _below(folder: Path) -> Iterator[Path]:
    for place in sorted(folder.iterdir()):
        if place.is_dir():
            if place.name not in _LEFT_OUT and not place.name.startswith("config-"):
                yield from _below(place)
        else:
            yield place


def _libraries(programs: list[Path]) -> set[Path]:
    """What `ldd` finds for them."""
    said = subprocess.run(["/usr/bin/ldd", *map(str, programs)], capture_output=True, check=True).stdout
    return {Path(found.decode()) for found in _LIBRARY.findall(said)}


def write(out: IO[bytes]) -> None:
    """Write the image as a tar file."""
    with tarfile.open(fileobj=out, mode="w|") as tar:
        for name in _FOLDERS:
            _add(tar, name, tarfile.DIRTYPE)
        for name in _LINKS:
            _add(tar, name, tarfile.SYMTYPE, f"usr/{name}")
        _add(tar, "usr/bin/python", tarfile.SYMTYPE, "python3")
        users = tarfile.TarInfo("etc/passwd").replace(mode=0o644)
        users.size = len(_USERS)
        tar.addfile(users, BytesIO(_USERS))
        for place in sorted({_in_usr(file) for file in files()}):
            tar.add(place.resolve(), str(place)[1:], recursive=False)


def _in_usr(file: Path) -> Path:
    return Path("/usr", *file.parts[1:]) if file.parts[1] in _LINKS else file


def _add(tar: tarfile.TarFile, name: str, kind: bytes, target: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.type = kind
    tar.addfile(member.replace(mode=0o755, linkname=target))


def main(programs: list[str]) -> None:
    """Make it for each of these programs."""
    made = BytesIO()
    write(made)
    for program in programs:
        words = [program, "import", "-", IMAGE]
        done = subprocess.run(words, input=made.getvalue(), capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{program} cannot import it: {done.stderr.decode(errors='replace').strip()}")


if __name__ == "__main__":
    main(sys.argv[1:])
