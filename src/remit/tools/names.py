"""The three ways to write a tool's name (contract: tickets, "Names").

    full name   `web.search`   `mcp.github.create_issue`     the catalog's; always has a dot
    wire name   `web__search`  `mcp__github__create_issue`   towards models and MCP clients, which take no dots
    key         `web_search`   `github`                      in tickets and allowlists; one key may cover several tools

The three never meet: only a full name has a dot, only a wire name has a double underscore. For that, a segment neither
contains `__` nor begins or ends with `_`. Only the last segment of an MCP tool is its server's to choose, and freer.
"""

from __future__ import annotations

from typing import Final

from remit.errors import NameInvalidError
from remit.regex import regex

MAX_WIRE: Final = 64
"""Characters a model API takes for a tool's name."""
MCP: Final = "mcp"
"""First segment of every MCP tool, and of no other."""
MODEL: Final = "model"
"""First segment of the names of models in rules and records; no tool has it."""

_SEGMENT: Final = "[a-z0-9]+(?:_[a-z0-9]+)*"
_MCP_TOOL: Final = "(?:(?!__)[A-Za-z0-9_-])+"
_NAME: Final = regex(rf"(?!mcp\.|model\.){_SEGMENT}(?:\.{_SEGMENT})+|mcp\.{_SEGMENT}\.{_MCP_TOOL}")
_PROVIDER_ID: Final = regex(_SEGMENT)
_RULE: Final = (
    "A tool's name has two or more segments of lower-case letters, digits and single underscores inside, joined by "
    "dots, such as fs.read, and the first is not model; an MCP tool's is mcp.<server>.<tool>, where <tool> may "
    "also hold capitals and hyphens."
)


def name_of_model(provider_id: str) -> str:
    """Return the name by which rules know the models of a provider, `model.openai` of `model_openai`."""
    return f"{MODEL}.{provider_id.partition('_')[2]}"


def check_name(name: object) -> str:
    """The full name itself; a provider may offer anything. Raises NameInvalidError where it breaks the rules above."""
    if callable(name):
        raise NameInvalidError("the tool has no name", remedy='Give it one, such as @tool("shop.refund").')
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise NameInvalidError(f"{_shown(name)} is not a tool's name", remedy=_RULE)
    length = len(name) + name.count(".")
    if length > MAX_WIRE:
        raise NameInvalidError(
            f"{_shown(name)} takes {length} characters as models see it; they accept {MAX_WIRE}",
            remedy="Shorten it; for an MCP tool, give its server a shorter name.",
        )
    return name


def check_provider_id(provider_id: object) -> str:
    """The provider's id itself. Raises NameInvalidError unless it is like `builtin` or `mcp_github`."""
    if not isinstance(provider_id, str) or not _PROVIDER_ID.fullmatch(provider_id):
        raise NameInvalidError(
            f"{_shown(provider_id)} is not a provider's id",
            remedy="Use lower-case letters and digits, with single underscores inside, such as mcp_github.",
        )
    return provider_id


def key_of(name: str) -> str:
    """The key that covers the tool of this full name: an MCP tool's server, any other's name with `_` for dots."""
    first, *rest = name.split(".")
    return rest[0] if first == MCP else "_".join((first, *rest))


def wire_name(name: str) -> str:
    """A full name as models and MCP clients see it."""
    return name.replace(".", "__")


def provider_of(name: str) -> str | None:
    """The only provider that may offer an MCP tool of this full name, None for any other tool."""
    segments = name.split(".")
    return f"mcp_{segments[1]}" if segments[0] == MCP else None


def dependency_of(name: str) -> str | None:
    """The readiness key of the server that a name of an MCP tool speaks of, full or wire; None for any other name."""
    segments = name.replace("__", ".").split(".")
    return f"{MCP}.{segments[1]}" if segments[0] == MCP and len(segments) > 2 else None  # noqa: PLR2004 - mcp, server, tool


def _shown(name: object) -> str:
    text = repr(name)
    return text if len(text) <= MAX_WIRE * 2 else f"{text[: MAX_WIRE * 2]}…"
