"""fastmcp's proxy before a server on stdio: `python bench/peers/fastmcp_proxy.py COMMAND [ARG]...`, itself on stdio."""

from __future__ import annotations

import sys

from fastmcp.server import create_proxy

if __name__ == "__main__":
    command, *args = sys.argv[1:]
    create_proxy({"mcpServers": {"echo": {"command": command, "args": args}}}).run(show_banner=False, log_level="ERROR")
