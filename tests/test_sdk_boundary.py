"""The MCP SDK is used where HTTP and its logins need it, and nothing of it that is private."""

from __future__ import annotations

import re
from pathlib import Path

import remit

SOURCE = Path(remit.__file__).parent
PLACES = [path for part in ("jsonrpc", "mcp_server", "providers/mcp") for path in (SOURCE / part).glob("*.py")]


def test_the_models_of_the_sdk_are_used_nowhere() -> None:
    users = [path for path in SOURCE.rglob("*.py") if re.search(r"^\s*(import|from) mcp_types\b", path.read_text())]
    assert users == []


def test_no_module_of_mcp_reads_what_is_private() -> None:
    assert [path.name for path in PLACES if "SLF001" in path.read_text(encoding="utf-8")] == []
