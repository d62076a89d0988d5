"""Probes: what was found out of a program once, and holds for as long as its file is the same."""

from __future__ import annotations

import asyncio
import re
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from remit.atomic import replace_file
from remit.work.executors.port import Site
from remit.work.executors.program import run_program
from remit.work.pack import STDERR, STDOUT

_VERSION: Final = re.compile(rb"\d+\.\d+\.\d+[\w.+-]*")
_PROBE_S: Final = 60.0
_READ: Final = 4_000


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    version: str


async def version_of(site: Site, program: str) -> str:
    """Return the version that a program says it is, asked once for each file; empty if it does not say."""
    path = await asyncio.to_thread(shutil.which, program, path=site.env.get("PATH"))
    if path is None:
        return ""  # the run says so
    state = await asyncio.to_thread(Path(path).stat)
    mark = sha256(f"{path} {state.st_ino} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:32]
    known = site.pack.root / "versions" / f"{mark}.json"
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(known.read_bytes(), type=_Found).version
    names = (f"version.{STDOUT}", f"version.{STDERR}")
    ending = await run_program(
        (path, "--version"),
        cwd=site.home,
        env=site.env,
        timeout_s=_PROBE_S,
        logs=(site.pack.folder / names[0], site.pack.folder / names[1]),
        clock=site.clock,
        launch=site.launch,
    )
    log = site.pack.open_log(names[0])
    if log is None or not ending.passed:
        return ""
    with log:
        said = _VERSION.search(log.read(_READ))
    found = _Found(version=said[0].decode() if said is not None else "")
    known.parent.mkdir(parents=True, exist_ok=True)
    replace_file(known, msgspec.json.encode(found))
    return found.version
