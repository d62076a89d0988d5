"""Tells programs to send their model calls here: by variables, and for some that read none, by more words.

The versions that were tried stand in docs/record.md. A variable is set to the gateway's own URL and token; the keys of
providers that a program would have found are taken away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit.codes import Code
from remit.errors import ProviderError
from remit.mcp_config import own_tools
from remit.mcp_config.own_tools import SERVER
from remit.models import registry

KEYS: Final = frozenset(
    {
        *(name for names in registry.KEYS.values() for name in names),
        *("ANTHROPIC_AUTH_TOKEN", "CODEX_API_KEY", "OPENCODE_API_KEY"),
    }
)
"""Variables in which programs find the keys of providers: those that Remit reads too, and more."""
STEADY: Final = {
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    "SOURCE_DATE_EPOCH": "1577836800",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
}
"""Variables by which what tools return is the same in every run."""


class Place(NamedTuple):
    """Where a program finds the gateway."""

    url: str
    token: str
    proxy: str
    """The URL of what refuses every other host; empty: nothing does."""
    files: Path
    """A folder of the run for files of ours."""
    tools: tuple[str, ...] = ()
    """The command of Remit's MCP server, the only tools that it has; empty: it has its own."""
    claims: bool = False
    """Whether it is asked for the spans that it tells of itself."""


class Start(NamedTuple):
    """The words and variables that a program is started with."""

    command: tuple[str, ...]
    env: dict[str, str]


def _server(place: Place) -> dict[str, Any]:
    program, *args = place.tools
    return {"command": program, "args": args}


def _claude(command: tuple[str, ...], place: Place) -> Start:
    if not place.tools:
        return Start(command, {})
    servers = json.dumps({"mcpServers": {SERVER: _server(place)}})
    # With `=`, since a list would take the prompt for one of its own.
    words = (f"--mcp-config={servers}", "--strict-mcp-config", "--tools=", f"--allowedTools=mcp__{SERVER}")
    env = {"MCP_TIMEOUT": "120000", "MCP_CONNECTION_NONBLOCKING": "0", "MCP_TOOL_TIMEOUT": "3600000"}
    return Start((command[0], *words, "--setting-sources=user", *command[1:]), env)


def _codex(command: tuple[str, ...], place: Place) -> Start:
    """Codex reads its settings alone, which its command line can set."""
    table = {
        "name": "remit",
        "base_url": f"{place.url}/openai/v1",
        "env_key": "OPENAI_API_KEY",
        "wire_api": "responses",
    }
    inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items())
    settings = [f"model_providers.remit={{{inline}}}", 'model_provider="remit"']
    if place.tools:
        ours = [name for name in os.environ if name.startswith(("REMIT_", "XDG_"))]  # it passes on none but the usual
        # Required: otherwise its first question may leave before the server has told of its tools.
        server = _server(place) | {
            "required": True,
            "env_vars": ours,
            "startup_timeout_sec": 120,
            "tool_timeout_sec": 3600,
        }
        settings += [f"mcp_servers.{SERVER}.{name}={json.dumps(value)}" for name, value in server.items()]
        settings += [f'mcp_servers.{SERVER}.default_tools_approval_mode="approve"', 'sandbox_mode="read-only"']
        settings += ['approval_policy="never"', 'web_search="disabled"']
        settings += [f"features.{name}=false" for name in own_tools.CODEX]
    words = (word for setting in settings for word in ("-c", setting))
    return Start((command[0], *words, *command[1:]), {})


def _gemini(command: tuple[str, ...], place: Place) -> Start:
    """Gemini takes the way in which it logs in from a file of its home: it gets a copy, with that changed."""
    own, copy = Path.home() / ".gemini" / "settings.json", place.files / ".gemini" / "settings.json"
    settings: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        read = json.loads(own.read_text(encoding="utf-8"))
        settings = read if isinstance(read, dict) else {}
    security = settings.get("security") if isinstance(settings.get("security"), dict) else {}
    settings["security"] = {**(security or {}), "auth": {"selectedType": "gemini-api-key"}}
    if place.tools:
        settings["tools"] = {"exclude": list(own_tools.GEMINI)}
        settings["mcpServers"] = {SERVER: {**_server(place), "trust": True, "timeout": 3_600_000}}
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(json.dumps(settings), encoding="utf-8")
    return Start(command, {"GEMINI_CLI_HOME": str(place.files)})


def _opencode(command: tuple[str, ...], place: Place) -> Start:
    bases = {"openai": "openai/v1", "anthropic": "anthropic/v1", "google": "gemini/v1beta"}
    providers = {
        name: {"options": {"baseURL": f"{place.url}/{path}", "apiKey": place.token}} for name, path in bases.items()
    }
    settings: dict[str, Any] = {"provider": providers}
    if place.tools:
        settings["mcp"] = {SERVER: {"type": "local", "command": [*place.tools], "enabled": True, "timeout": 3_600_000}}
        settings["permission"] = {"*": "deny", f"{SERVER}_*": "allow"}
    own = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1"} if place.tools else {}
    return Start(command, {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), **own})


_ROWS: Final[Mapping[str, Callable[[tuple[str, ...], Place], Start]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
}


def start_of(command: tuple[str, ...], ours: Mapping[str, str], place: Place) -> Start:
    """Return the words and the whole environment of a program."""
    row = _ROWS.get(Path(command[0]).name)
    if row is None and place.tools:
        reason = f"nothing is known of {Path(command[0]).name}'s own tools, so they cannot be left out"
        raise ProviderError(f"{reason}. Governed are {', '.join(_ROWS)}", cause=Code.InvalidInput)
    start = row(command, place) if row is not None else Start(command, {})
    gateway = {
        "OPENAI_BASE_URL": f"{place.url}/openai/v1",
        "OPENAI_API_BASE": f"{place.url}/openai/v1",
        "OPENAI_API_KEY": place.token,
        "ANTHROPIC_BASE_URL": f"{place.url}/anthropic",
        "ANTHROPIC_API_KEY": place.token,
        "GOOGLE_GEMINI_BASE_URL": f"{place.url}/gemini",
        "GEMINI_API_KEY": place.token,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    if place.claims:
        gateway |= {
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{place.url}/otlp/v1/traces",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": f"authorization=Bearer%20{place.token}",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        }
    refusing = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), place.proxy)
    local = "127.0.0.1,localhost"
    config = {name: value for name, value in ours.items() if name not in KEYS}
    return Start(
        start.command,
        {**config, **(refusing if place.proxy else {}), "NO_PROXY": local, "no_proxy": local, **gateway, **start.env},
    )
