"""Commands that start the real MCP servers which `make peers` installs: each speaks on stdio and needs no network.

A command runs from any folder and with any environment that has a PATH.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PEERS: Final = ROOT / "build" / "peers-mcp"
MODULES: Final = PEERS / "npm" / "node_modules"


def _node() -> str:
    """The pinned Node; where npm has none for this kind of machine, whichever the PATH has."""
    found = sorted(MODULES.glob("node-*/bin/node"))
    return str(found[0]) if found else "node"


NODE22: Final = _node()


def module(path: str) -> str:
    """A file of an npm package.

    Raises:
        FileNotFoundError: The peers are not installed.
    """
    return _installed(MODULES / path)


def everything() -> list[str]:
    """Tools, resources and prompts of every kind, of the TypeScript SDK."""
    return [NODE22, module("@modelcontextprotocol/server-everything/dist/index.js"), "stdio"]


def filesystem(root: Path) -> list[str]:
    """Files under `root`, which exists."""
    return [NODE22, module("@modelcontextprotocol/server-filesystem/dist/index.js"), str(root)]


def memory(file: Path) -> list[str]:
    """A graph of knowledge, kept in `file`."""
    server = module("@modelcontextprotocol/server-memory/dist/index.js")
    return ["env", f"MEMORY_FILE_PATH={file.absolute()}", NODE22, server]


def playwright() -> list[str]:
    """A browser: its tools can be listed without one."""
    return [NODE22, module("@playwright/mcp/cli.js"), "--headless", "--isolated"]


def git(repository: Path) -> list[str]:
    """The repository at a path; Python SDK 1.x."""
    return [_python("git"), "-m", "mcp_server_git", "--repository", str(repository)]


def time() -> list[str]:
    """The clock, in UTC; Python SDK 1.x."""
    return [_python("time"), "-m", "mcp_server_time", "--local-timezone", "UTC"]


def sqlite(database: Path) -> list[str]:
    """The database in a file, which is made if there is none; Python SDK 1.x."""
    return [_python("sqlite"), "-c", "import mcp_server_sqlite; mcp_server_sqlite.main()", "--db-path", str(database)]


def conformance(*, http: bool = False) -> list[str]:
    """All that the conformance suite asks of a server, of Python SDK 2.x; with `http` its first line is its URL."""
    server = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.peers.conformance_server"]
    return [*server, *(["--http"] if http else [])]


def _python(name: str) -> str:
    return _installed(PEERS / name / "bin" / "python")


def _installed(path: Path) -> str:
    if not path.exists():
        raise FileNotFoundError(f"{path.relative_to(ROOT)} is missing: run `make peers`")
    return str(path)
