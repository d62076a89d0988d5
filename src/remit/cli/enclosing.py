"""What `remit mcp add` proposes for a server in the sandbox, and how it says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from remit.settings.mcp import McpServer
from remit.settings.terms import terms_of

_FETCHERS: Final = frozenset({"npx", "uvx", "pipx", "bunx"})
"""Programs that download what they run."""
_PACKAGES: Final = "node_modules"
_MARKS: Final = ("package.json", "pyproject.toml")
"""What the folder of a program holds."""


def proposed(
    words: tuple[str, ...], folder: Path, *, roots: tuple[str, ...], writable: tuple[str, ...], network: tuple[str, ...]
) -> bool | dict[str, Any]:
    """The key `sandbox` for a command that starts in `folder`: with what its arguments name, which it can read.

    False if there is no command.
    """
    given = [str(Path(path).expanduser().absolute()) for path in (*roots, *writable)]
    named = [path for word in words[1:] for path in _named(word, folder) if path not in given]
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
        return f"isolation: none; {server.name} runs as you, with all your rights on this machine"
    reads = [f"reads {', '.join(terms.roots)}"] if terms.roots else []
    changes = [f"changes {', '.join(terms.writable)}"] if terms.writable else []
    reaches = [f"reaches {', '.join(terms.network)}" if terms.network else "has no network"]
    said = f"isolation: sandbox; {server.name} {', '.join((*reads, *changes, *reaches))}"
    program = Path(server.command[0]).name
    if program in _FETCHERS and not terms.network:
        said += f"\n{program} downloads what it runs: name its registry with --network, or install the server"
    return said


def _named(word: str, folder: Path) -> list[str]:
    """The path that an argument names, if there is one; the whole folder of a program that is named by its file.

    A link is named as well as what it leads to: the program finds the one by its words, and the other from there.
    """
    place = folder / word
    if "://" in word or word.startswith("-") or not ("/" in word or place.is_file()) or not place.exists():
        return []
    named, real = Path(os.path.normpath(place)), place.resolve()
    if real == Path("/"):
        return []
    if real.is_file() and _PACKAGES in named.parts:  # what a package needs lies beside it, or above
        return [str(Path(*named.parts[: named.parts.index(_PACKAGES) + 1]))]
    root = real
    if real.is_file():
        root = next((above for above in real.parents if any((above / mark).exists() for mark in _MARKS)), real)
    return [str(root)] if named.is_relative_to(root) else [str(named), str(root)]
