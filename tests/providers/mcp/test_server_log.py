"""The log of a server: nothing of a secret is in it, also where a line without an end is cut."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from remit.providers.mcp import stdio
from remit.providers.mcp.server_log import ServerLog
from remit.providers.mcp.stdio import Stdio
from remit_testing.clock import ManualClock
from tests.patience import PATIENCE_S

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

NAME = 'password = "'


@pytest.mark.parametrize(
    ("before", "secret"),
    [
        ("x", TOKEN),
        ("x ", TOKEN),
        ("word ", TOKEN),
        ("x" * 40 + "/", TOKEN),
        ("word ", f'{NAME}{TOKEN[4:]}"'),
        ("é", TOKEN),
        ("word ", "given-to the server"),
    ],
)
@pytest.mark.parametrize("back", [1, 3, 5, 20, 31])
def test_half_a_secret_is_not_written_where_a_long_line_is_cut(
    tmp_path: Path, before: str, secret: str, back: int
) -> None:
    log = ServerLog(tmp_path / "server.log", 1 << 20, ManualClock())
    filling = (before * 9000).encode()[: 8191 - back].decode(errors="ignore") + " "
    for piece in (filling, secret, " " + "and so on " * 1000, "\n"):
        log.feed(piece.encode(), ["given-to the server"])
    text = (tmp_path / "server.log").read_text()
    words = "".join(line.split(" ", 2)[2] for line in text.splitlines())
    hidden = secret.removeprefix(NAME)
    assert not any(hidden[at : at + 6] in words for at in range(len(hidden) - 5))
    assert "********" in words


def words(log: Path) -> list[str]:
    """The lines of a log, without time and process."""
    return [line.split(" ", 2)[2] for line in log.read_text().splitlines()]


@pytest.mark.parametrize("row", ["row {} of the work", f'row {{}} {NAME}{TOKEN}"', "row {} " + "and so on " * 200])
def test_of_a_flood_its_beginning_and_its_last_lines_are_written_and_the_others_counted(
    tmp_path: Path, row: str
) -> None:
    path, clock = tmp_path / "server.log", ManualClock()
    log = ServerLog(path, 1 << 22, clock)
    number_of_rows = 1_500_000 // len(row)
    rows = [row.format(number) for number in range(number_of_rows)]
    data = "".join(f"{line}\n" for line in rows).encode()
    for start in range(0, len(data), 65_536):
        log.feed(data[start : start + 65_536], [])
    assert log.flooded
    begin = len(words(path))
    assert sum(map(len, words(path))) < 140_000
    clock.advance(1)
    log.feed(b"calm again\n", [])
    *lines, last = words(path)
    ends = lines[begin + 1 :]
    assert last == "calm again"
    assert ends
    assert sum(map(len, ends[1:])) < 8_200
    assert [line.split()[1] for line in lines[:begin] + ends] == [
        str(number) for number in [*range(begin), *range(number_of_rows - len(ends), number_of_rows)]
    ]
    left = len(data) - len("".join(rows[:begin])) - begin
    assert lines[begin] == f"remit: left out: {number_of_rows - begin - len(ends):,} lines; {left:,} bytes came at once"
    assert TOKEN[4:] not in path.read_text()


@pytest.mark.parametrize("size", range(131_020, 131_110, 5))
def test_no_half_of_a_secret_is_written_where_a_flood_begins_or_ends(tmp_path: Path, size: int) -> None:
    path, clock = tmp_path / "server.log", ManualClock()
    log = ServerLog(path, 1 << 22, clock)
    secret = f"token={TOKEN[4:]}"
    line = "word " * 6_000 + secret
    for piece in ("w " * (size // 2), f"{secret} ", f"{line} " * 8, f"{line}\n{line}\n", "and so on\n"):
        log.feed(piece.encode(), [])
    clock.advance(1)
    log.note("lost")
    text = "".join(words(path))
    assert not any(TOKEN[at : at + 6] in text for at in range(4, len(TOKEN) - 5))
    assert words(path)[-2:] == ["and so on", "remit: lost"]


def test_of_a_line_whose_beginning_is_left_out_nothing_is_written(tmp_path: Path) -> None:
    path, clock = tmp_path / "server.log", ManualClock()
    log = ServerLog(path, 1 << 22, clock)
    log.feed(b"many words " * 60_000, [])
    begin = len(words(path))
    for _ in range(3):
        clock.advance(1)
        log.feed(b"and more of it " * 4_000, [])
    log.feed(b"its end\nthe next line\n", [])
    clock.advance(1)
    log.settle()
    assert [line for line in words(path)[begin:] if not line.startswith("remit: left out: ")] == ["the next line"]


def test_what_is_short_is_written_whole_though_it_comes_behind_the_beginning(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log", 1 << 22, ManualClock())
    rows = [f"row {number}" for number in range(14_500)]
    for start in range(0, 14_500, 100):
        log.feed("".join(f"{row}\n" for row in rows[start : start + 100]).encode(), [])
    assert log.flooded
    log.settle()
    assert words(tmp_path / "server.log") == rows


def test_a_private_key_is_masked_that_comes_line_by_line(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log", 1 << 20, ManualClock())
    for line in (
        "begun",
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEow+IBAAKCAQEA",
        "-----END RSA PRIVATE KEY-----",
        "on",
    ):
        log.feed(f"{line}\n".encode(), [])
    assert words(tmp_path / "server.log") == ["begun", "********", "********", "********", "on"]


def test_a_secret_in_the_last_words_of_a_server_is_masked(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log", 1 << 20, ManualClock())
    log.feed(b"it was given-to it", ["given-to"])
    log.note("lost")
    assert words(tmp_path / "server.log") == ["it was ******** it", "remit: lost"]


LOUD = "import sys; sys.stderr.write('a line\\n' * 200_000 + 'the last\\n'); sys.stderr.flush(); sys.stdin.read()"


async def test_the_last_lines_of_a_flood_are_written_though_the_server_is_quiet_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "SECOND_S", 0.0)
    path, written = tmp_path / "server.log", asyncio.Event()

    class Watched(ServerLog):
        def settle(self) -> None:
            super().settle()
            if path.read_text().endswith("the last\n"):
                written.set()

    log = Watched(path, 1 << 22, ManualClock())
    path.touch()
    server = await Stdio.run(
        [sys.executable, "-c", LOUD], cwd=str(tmp_path), env={}, max_message_bytes=1 << 20, grace_s=1, log=log
    )
    async with asyncio.timeout(PATIENCE_S):
        await written.wait()
    await server.close()
