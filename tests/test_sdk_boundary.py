"""What of the MCP SDK is private is used in one module on each side, so that a release of it is met there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import remit

SOURCE = Path(remit.__file__).parent


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        (r"\._request_outbound\b", "mcp_server/request.py"),  # of a server's session
        (r"session\._connection\b", "mcp_server/request.py"),
        (r"self\._stamp\(", "providers/mcp/session.py"),  # of a client's session
        (r"self\._dispatcher\.send_raw_request\(", "providers/mcp/session.py"),
    ],
)
def test_a_private_name_of_the_sdk_is_used_in_one_module(pattern: str, place: str) -> None:
    users = [path for path in SOURCE.rglob("*.py") if re.search(pattern, path.read_text(encoding="utf-8"))]
    assert [path.relative_to(SOURCE).as_posix() for path in users] == [place]


def test_no_other_module_of_mcp_reads_what_is_private() -> None:
    places = [path for part in ("jsonrpc", "mcp_server", "providers/mcp") for path in (SOURCE / part).glob("*.py")]
    excused = {path.name for path in places if "SLF001" in path.read_text(encoding="utf-8")}
    assert excused == {"request.py"}
