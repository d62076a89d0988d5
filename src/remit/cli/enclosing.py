"""What `remit mcp add` proposes for a server in the sandbox, and how it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from remit.settings.mcp import McpServer
from remit.settings.terms import terms_of

_FETCHERS: Final = frozenset({"npx", "uvx", "pipx", "bunx"})
"""Programs that download what they run."""
_MARKS: Final = ("package.json", "pyproject.toml")
"""What the folder of a program holds."""


def proposed(
    words: tuple[str, ...], folder: Path, *, roots: tuple[str, ...], writable: tuple[str, ...], network: tuple[str, ...]
) -> bool | dict[str, Any]:
    """The key `sandbox` for a command that starts in `folder`: with what its arguments name, which it can read.

    False if there is no command.
    """
    given = [str(Path(path).expanduser().absolute()) for path in (*roots, *writable)]
    named = [path for word in words[1:] if (path := _named(word, folder)) and path not in given]
    table = {
        "roots": list(dict.fromkeys([*given[: len(roots)], *named])),
        "writable": given[len(roots) :],
        "network": list(network),
    }
    return {key: value for key, value in table.items() if value} or bool(words)


def isolation_note(server: McpServer) -> str:
    """What the operator should know of a server that is started here."""
    terms = terms_of(server.sandbox)
    if terms is None:
        return f"isolation: none; {server.name} runs as you, and may do on this machine what you may"
    reads = [f"reads {', '.join(terms.roots)}"] if terms.roots else []
    changes = [f"changes {', '.join(terms.writable)}"] if terms.writable else []
    reaches = [f"reaches {', '.join(terms.network)}" if terms.network else "has no network"]
    said = f"isolation: sandbox; {server.name} {', '.join((*reads, *changes, *reaches))}"
    program = Path(server.command[0]).name
    if program in _FETCHERS and not terms.network:
        said += f"\n{program} downloads what it runs: name its registry with --network, or install the server"
    return said


def _named(word: str, folder: Path) -> str:
    """The path that an argument names, if there is one; the whole folder of a program that is named by its file."""
    place = folder / word
    if "://" in word or word.startswith("-") or not ("/" in word or place.is_file()) or not place.exists():
        return ""
    place = place.resolve()
    if place.is_file():
        return str(next((above for above in place.parents if any((above / mark).exists() for mark in _MARKS)), place))
    return str(place) if place != Path("/") else ""
