"""A golden file is read whole, within limits and through no link, or refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.golden import file
from remit.parts.golden.file import Golden, checked_name, encoded, files_in, read, write

GOLDEN = Golden(
    name="one",
    job="job_1",
    state="completed",
    labels={"suite": "ci"},
    events=(("job_created", {"kind": "recipe", "name": "r"}), ("job_completed", {"result": "ünï\u2028"})),
    blobs={f"sha256:{hashlib.sha256(b'{}').hexdigest()}": b"{}"},
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "deep" / "folder", GOLDEN)
    assert (path.name, read(path)) == ("one.golden.jsonl", GOLDEN)
    assert write(path.parent, GOLDEN) == path


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a b", "A", ".hidden", "x" * 101, "a..b", "a\n"])
def test_a_name_leads_nowhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        checked_name(name)


def signed(lines: list[Any]) -> bytes:
    """Lines with the right last one."""
    body = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    end = {"end": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


HEAD = {"golden": 1, "name": "one", "job": "job_1", "state": "completed"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"{}\n{}\n",
        encoded(GOLDEN)[:-20],
        encoded(GOLDEN)[: len(encoded(GOLDEN)) // 2],
        encoded(GOLDEN).replace(b'"recipe"', b'"plan"'),
        encoded(GOLDEN) + b"{}\n",
        signed([{**HEAD, "golden": 2}]),
        signed([{**HEAD, "golden": "1"}]),
        signed([{**HEAD, "labels": {"a": 1}}]),
        signed([{**HEAD, "name": None}]),
        signed([HEAD, []]),
        signed([HEAD, {"kind": 1, "data": {}}]),
        signed([HEAD, {"kind": "job_created", "data": "{}"}]),
        signed([HEAD, {"blob": "sha256:00", "text": "x"}]),
        signed([HEAD, b"[" * 100_000 + b"]" * 100_000]),
        signed([HEAD, b"\xff\xfe"]),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / f"one{file.SUFFIX}"
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read(path)
    assert (caught.value.code, bool(caught.value.remedy)) == (Code.GOLDEN_INVALID, True)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (encoded(GOLDEN)[:1], "was cut short"),
        (encoded(GOLDEN)[:-20], "was cut short: it has a line"),
        (b"\n".join(encoded(GOLDEN).splitlines()[:-1]), "was cut short or changed"),
        (signed([{**HEAD, "golden": 2}]), "has the format 2; this Remit reads 1"),
    ],
)
def test_a_file_that_was_cut_says_so(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / f"one{file.SUFFIX}"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=re.escape(words)):
        read(path)


def test_links_pipes_and_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, GOLDEN)
    link, pipe = tmp_path / f"link{file.SUFFIX}", tmp_path / f"pipe{file.SUFFIX}"
    link.symlink_to(path)
    os.mkfifo(pipe)
    for bad in (link, pipe, tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError):
            read(bad)
    with pytest.raises(UsageError):
        write(tmp_path, Golden(name="link", job="j", state="completed"))
    assert link not in files_in([tmp_path])
    monkeypatch.setattr(file, "MAX_BYTES", 10)
    with pytest.raises(UsageError):
        read(path)
    monkeypatch.setattr(file, "MAX_FILES", 0)
    with pytest.raises(UsageError):
        files_in([path])


def test_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        files_in([tmp_path])
