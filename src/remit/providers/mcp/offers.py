"""From a server's raw definition of a tool to what the catalog holds of it.

What a tool may do is the operator's word (`level`, `tools`, `idempotent` of the server's entry); what the server says
of it can only make that stricter (rule 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from remit.providers.mcp.schemas import readable
from remit.redact import line
from remit.regex import regex
from remit.tools.meta import DEFAULT_TIMEOUT_MS, Level, Retry, Risk, ToolMeta
from remit.tools.names import MAX_WIRE
from remit.tools.remote import task_support

if TYPE_CHECKING:
    from remit.settings.mcp import LevelName, McpServer

_OUTSIDE: Final = regex(r"[^A-Za-z0-9_-]+|__+")
_HASH: Final = 6
_DESCRIPTION: Final = 100_000
_PIN: Final = 12
"""Hexadecimal digits of a pin."""
TASK_MS: Final = 3_600_000
"""Milliseconds that a call of a tool that demands a task may take."""
_SAID: Final = 60
"""Characters of a server's name and of its version."""


def full_name(server: str, tool: str, *, apart: bool = False) -> str:
    """The tool's name in the catalog; one that models could not write, or that is too long for them, is rewritten.

    Different names may meet here; `apart` gives those a name each.
    """
    rewritten = _OUTSIDE.sub("-", tool) or "-"
    room = MAX_WIRE - len(f"mcp__{server}__")
    if apart or len(rewritten) > room:
        rewritten = (
            f"{rewritten[: max(0, room - _HASH - 1)]}-{sha256(tool.encode('utf-8', 'replace')).hexdigest()[:_HASH]}"
        )
    return f"mcp.{server}.{rewritten}"


def full_names(server: str, own: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The catalog's name of each tool by the server's own, and of those that would share one, that name.

    Tools that would share a name are set apart here; none of them can be called.
    """
    names = {each: full_name(server, each) for each in own}
    times = Counter(names.values())
    shared = {each: name for each, name in names.items() if times[name] > 1}
    return {**names, **{each: full_name(server, each, apart=True) for each in shared}}, shared


def meta_of(
    server: McpServer,
    name: str,
    raw: dict[str, Any],
    *,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    withheld: str = "",
    reviewed: bool = True,
    version: str = "",
) -> ToolMeta:
    """The catalog's view of a raw definition; `name` is the full one.

    Unless a person has `reviewed` the server's tools, patterns make nothing less strict: the server chose the names.
    """
    hints = raw.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    level = _level(server, raw["name"], hints, reviewed=reviewed)
    reads = level is Level.L0
    repeats = _matches(raw["name"], server.idempotent) if reviewed else raw["name"] in server.idempotent
    idempotent = not reads and repeats and hints.get("idempotentHint") is not False
    arguments, result = readable(raw.get("inputSchema")), readable(raw.get("outputSchema"))
    return ToolMeta(
        name=name,
        provider_id=f"mcp_{server.name}",
        description=_text(raw),
        input_schema=arguments.schema,
        output_schema=result.schema,
        capability_level=level,
        risk_level=Risk.READ_ONLY if reads else Risk.WRITE if level is Level.L1 else Risk.UNKNOWN,
        side_effects=not reads,
        idempotent=idempotent,
        requires_confirm=not reads,
        timeout_ms=server.timeout_ms or max(timeout_ms, TASK_MS if task_support(raw) == "required" else 0),
        retry=Retry() if reads or idempotent else None,
        requires=(f"mcp.{server.name}",),
        definition=raw,
        open=not server.strict,
        version=version,
        withheld=withheld,
        unchecked=(
            *(f"inputSchema{place}" for place in arguments.unchecked),
            *(f"outputSchema{place}" for place in result.unchecked),
        ),
    )


def version_of(name: str, version: str, pinned: str) -> str:
    """The version of a tool: its server's name and version, and the pin: the hash of the definition that was taken.

    Such as `acme-mail 1.4.2 (pin 0f3a…)`. What a server says of itself is cut.
    """
    words = " ".join(filter(None, (line(name, _SAID), line(version, _SAID))))
    pin = f"pin {pinned.rpartition(':')[2][:_PIN]}"
    return f"{words} ({pin})" if words else pin


def _level(server: McpServer, tool: str, hints: dict[str, Any], *, reviewed: bool) -> Level:
    matching = (level for pattern, level in server.tools.items() if fnmatchcase(tool, pattern))
    level_name: LevelName = server.tools[tool] if tool in server.tools else next(matching, server.level)
    level = Level[level_name]
    if not reviewed and tool not in server.tools:
        level = max(level, Level[server.level])
    writes = hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True
    return max(level, Level.L1) if writes and hints.get("readOnlyHint") is not True else level


def _matches(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def _text(raw: dict[str, Any]) -> str:
    """Return what a person reads first: the description, else a title."""
    for text in (raw.get("description"), raw.get("title")):
        if isinstance(text, str) and text.strip():
            return text[:_DESCRIPTION]
    return f"The tool {raw['name']}, which its server does not describe."
