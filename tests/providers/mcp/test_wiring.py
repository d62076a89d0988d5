"""What a process loads for its MCP servers."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

_OF_HTTP: Final = ("aiohttp", "remit.providers.mcp.oauth", "remit.providers.mcp.http")
_LOOK: Final = """
import sys
import remit.mcp_server.server
import remit.mcp_server.stdio
import remit.providers.mcp.enclosure
import remit.providers.mcp.provider
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""


@pytest.mark.slow
def test_a_server_on_stdio_does_not_wait_for_http_or_logins() -> None:
    command = [sys.executable, "-c", _LOOK, *_OF_HTTP]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == []
