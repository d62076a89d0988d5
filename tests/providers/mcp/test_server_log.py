"""The log of a server: nothing of a secret is in it, also where a line without an end is cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.providers.mcp.server_log import ServerLog
from remit_testing.clock import ManualClock

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
