"""docs/mcp.md: a server on stdio is added; all tools are served over HTTP, and called from there."""

import os
import sys
from pathlib import Path

from here import address, project, remit, started, told

project()
Path("notes.json").write_text('{"tides": "two a day"}', encoding="utf-8")
server = [sys.executable, os.environ["NOTES"], "notes.json"]
remit("mcp", "add", "notes", "--no-sandbox", "--level", "read_note=L0", "--", *server)
remit("trust", "--yes")
assert told("mcp", "call", "notes.read_note", '{"topic": "tides"}')["value"] == "two a day"
with started("mcp", "serve", "--http", "--port", "0") as process:
    remit("mcp", "add", "far", "--url", f"{address(process)}/mcp", "--level", "L0")
    remit("trust", "--yes")
    assert told("mcp", "call", "far.mcp-notes-read_note", '{"topic": "tides"}')["value"] == "two a day"
