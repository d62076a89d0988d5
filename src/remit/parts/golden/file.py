"""The file of a golden job: JSON, a line for each event, with every value in its event.

    {"golden": 1, "name": …, "job": …, "state": …, "labels": …}     the first line
    {"kind": "job_created", "data": {…}}                            a line for each event
    {"blob": "sha256:…", "text": "…"}                               what events name by digest: schemas, lists of tools,
                                                                    bytes of programs (in `base64` if they are no text)
    {"end": 42, "sha256": "…"}                                      the lines before it, and the digest of their bytes

A golden file comes from a repository, so nothing of it is believed: it is read within limits, never through a link, and
whole or not at all. It names no files.
"""

from __future__ import annotations

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.atomic import replace_file
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import RemitError, UsageError
from remit.regex import regex

FORMAT: Final = 1
SUFFIX: Final = ".golden.jsonl"
MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a file at most."""
MAX_LINES: Final = 400_000
_FRAME: Final = 2
"""Lines of a file without an event."""
MAX_FILES: Final = 20_000
_NAME: Final = regex(r"[a-z0-9][a-z0-9._-]{0,99}")
_AGAIN: Final = "Export it again: remit golden add JOB."


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded job."""

    name: str
    job: str
    """The job that it was made of."""
    state: str
    labels: dict[str, str] = {}
    secrets: int = 0
    """The number of secrets that were replaced in it."""
    events: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Kind and payload of each."""
    blobs: dict[str, bytes] = {}
    """Bytes that events name by digest."""


def checked_name(name: str) -> str:
    """Return the name of a golden job. Raise UsageError for one that no file should have."""
    if not _NAME.fullmatch(name) or ".." in name:
        reason = f"{name!r:.80} is not a name for a golden job"
        raise UsageError(reason, code=Code.GOLDEN_INVALID, remedy="Use letters a-z, digits, '-', '_' and '.'.")
    return name


def write(folder: Path, golden: Golden) -> Path:
    """Write a golden job into a folder, in place of one of that name. Raises UsageError or OSError."""
    path = folder / f"{checked_name(golden.name)}{SUFFIX}"
    if path.is_symlink():
        raise _invalid(path, "is a link", "Remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, encoded(golden), mode=0o644)
    return path


def encoded(golden: Golden) -> bytes:
    """Return the bytes of a golden job's file."""
    head = {"golden": FORMAT, "name": golden.name, "job": golden.job, "state": golden.state, "labels": golden.labels}
    lines: list[Any] = [head | ({"secrets": golden.secrets} if golden.secrets else {})]
    lines += [{"kind": kind, "data": data} for kind, data in golden.events]
    lines += [_blob(digest, data) for digest, data in sorted(golden.blobs.items())]
    body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    end = {"end": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    return body + msgspec.json.encode(end) + b"\n"


def read(path: Path) -> Golden:
    """Read a golden job's file. Raises UsageError (GOLDEN_INVALID), which says what is wrong with it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _invalid(path, "is not a plain file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _invalid(path, f"cannot be read: {error.strerror}", "Name a golden file, and no link.") from error
    if len(data) > MAX_BYTES:
        raise _invalid(path, f"is larger than {MAX_BYTES} bytes")
    return decoded(data, path)


def decoded(data: bytes, path: Path) -> Golden:
    """Return the golden job of a file's bytes. Raises UsageError (GOLDEN_INVALID)."""
    lines = data.splitlines()
    if len(lines) < _FRAME:
        raise _invalid(path, "was cut short" if data else "is empty")
    if len(lines) > MAX_LINES:
        raise _invalid(path, f"has more than {MAX_LINES} lines")
    head, end = _line(path, lines, 0), _line(path, lines, len(lines) - 1)
    if not isinstance(head.get("golden"), int) or head["golden"] < 1:
        raise _invalid(path, "is not a golden job")
    if head["golden"] > FORMAT:
        raise _invalid(path, f"has the format {head['golden']}; this Remit reads {FORMAT}", "Upgrade Remit.")
    body = data[: data.rstrip(b"\n").rfind(b"\n") + 1]
    if end.get("end") != len(lines) - 1 or end.get("sha256") != hashlib.sha256(body).hexdigest():
        raise _invalid(path, "was cut short or changed")
    events, blobs = [], {}
    for number in range(1, len(lines) - 1):
        line = _line(path, lines, number)
        if isinstance(line.get("kind"), str) and isinstance(line.get("data"), dict):
            events.append((line["kind"], line["data"]))
        elif isinstance(line.get("blob"), str) and (data_of := _bytes(line)) is not None:
            blobs[line["blob"]] = data_of
            if sha256(blobs[line["blob"]]) != line["blob"]:
                raise _invalid(path, f"has a blob in line {number + 1} that is not the one it names")
        else:
            raise _invalid(path, f"has a line {number + 1} that is neither an event nor a blob")
    return _golden(path, head, tuple(events), blobs)


def _blob(digest: str, data: bytes) -> dict[str, str]:
    try:
        return {"blob": digest, "text": data.decode()}
    except UnicodeDecodeError:
        return {"blob": digest, "base64": b64encode(data).decode()}


def _bytes(line: dict[str, Any]) -> bytes | None:
    if isinstance(line.get("text"), str):
        return bytes(line["text"].encode("utf-8", "surrogatepass"))
    try:
        return b64decode(line["base64"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Return the golden files that are named, and those in named folders, by name; no link leads anywhere.

    Raises UsageError (GOLDEN_INVALID) if there is none, or one is too many.
    """
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        files += sorted(file for file in path.rglob(f"*{SUFFIX}") if not file.is_symlink())
    if not files:
        raise UsageError("there is no golden job", code=Code.GOLDEN_INVALID, remedy="Export one: remit golden add JOB.")
    if len(files) > MAX_FILES:
        raise UsageError(f"more than {MAX_FILES} golden jobs", code=Code.GOLDEN_INVALID, remedy="Name fewer folders.")
    return files


def _golden(path: Path, head: dict[str, Any], events: tuple[Any, ...], blobs: dict[str, bytes]) -> Golden:
    known = {name: head[name] for name in ("name", "job", "state", "labels", "secrets") if name in head}
    try:
        golden = msgspec.convert({**known}, Golden)
    except msgspec.ValidationError as error:
        raise _invalid(path, f"begins with a line that does not fit: {error}") from error
    return msgspec.structs.replace(golden, events=events, blobs=blobs)


def _line(path: Path, lines: list[bytes], number: int) -> dict[str, Any]:
    try:
        line = msgspec.json.decode(lines[number])
    except (msgspec.DecodeError, RecursionError) as error:
        cut = "was cut short: it " if number == len(lines) - 1 else ""
        raise _invalid(path, f"{cut}has a line {number + 1} that is not JSON") from error
    if not isinstance(line, dict):
        raise _invalid(path, f"has a line {number + 1} that is not an object")
    return line


def _invalid(path: Path, what: str, remedy: str = _AGAIN) -> RemitError:
    return UsageError(f"{path} {what}", code=Code.GOLDEN_INVALID, remedy=remedy)
