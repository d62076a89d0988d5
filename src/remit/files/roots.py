"""Which root a path of an agent is below.

With one root, paths are relative to it. With several, the first component names the root by its folder's name, so that
a path means the same file whatever the folders hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from remit.codes import Code
from remit.errors import ProviderError
from remit.files.closed import Closed
from remit.files.confined import ConfinedDirectory, Entry, parts_of

_OURS = ".remit"
"""Holds the journal: what an agent did is not the agent's to read or to change."""
_SETTINGS = "remit.toml"
"""Holds the policy: what an agent may do is not the agent's to decide."""


def is_ours(name: str) -> bool:
    """Return whether a file or folder of this name belongs to Remit: it is not read, listed or searched."""
    return name.casefold() == _OURS


class Roots:
    """The roots by the name an agent knows them by; the only one has no name."""

    def __init__(self, folders: Sequence[Path], decisive: Sequence[Path] = (), private: Sequence[Path] = ()) -> None:
        """Resolve the folders; a root reached twice counts once.

        Nothing in `decisive` is changed, nor below it; nothing in `private` is read, listed or searched either.
        """
        self._decisive = Closed(decisive)
        self._private = Closed(private)
        resolved = list(dict.fromkeys(folder.resolve() for folder in folders))
        self.names: dict[str, ConfinedDirectory] = {}
        if len(resolved) == 1:
            self.names[""] = ConfinedDirectory(resolved[0])
            return
        for folder in resolved:
            self.names[self._free(folder.name or "root")] = ConfinedDirectory(folder)

    def _free(self, name: str) -> str:
        wanted, number = name, 2
        while name in self.names:
            name, number = f"{wanted}-{number}", number + 1
        return name

    @property
    def several(self) -> bool:
        """Return whether a path begins with the name of its root."""
        return "" not in self.names

    def find(self, path: str) -> tuple[ConfinedDirectory, str, str]:
        """The root of a path, the path below it, and what stands before a path below it. Raises ProviderError."""
        parts = parts_of(path)
        if any(is_ours(part) for part in parts):
            raise ProviderError(f"{path!r} belongs to Remit itself.", code=Code.PATH_NOT_ALLOWED)
        root, below, prefix = self._rooted(parts, path)
        if f"{root.root}/{below}" in self._private:
            raise ProviderError(f"{path!r} belongs to Remit itself.", code=Code.PATH_NOT_ALLOWED)
        return root, below, prefix

    def shown(self, root: ConfinedDirectory) -> Callable[[Entry], bool]:
        """Return whether what a walk through a root meets is listed and searched."""
        private, place = self._private.below(root.root), root.root
        return lambda entry: not is_ours(entry.name) and f"{place}/{entry.path}" not in private

    def _rooted(self, parts: list[str], path: str) -> tuple[ConfinedDirectory, str, str]:
        if not self.several:
            return self.names[""], "/".join(parts), ""
        root = self.names.get(parts[0]) if parts else None
        if root is None:
            known = ", ".join(sorted(self.names)) or "none"
            message = f"{path!r} has to begin with the name of a folder that is open to agents: {known}."
            raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
        return root, "/".join(parts[1:]), parts[0] + "/"

    def find_for_writing(self, path: str) -> tuple[ConfinedDirectory, str, str]:
        """As `find`, for a file that is going to be changed. Raises ProviderError."""
        found = self.find(path)
        if found[1].rpartition("/")[2].casefold() == _SETTINGS:
            message = f"{path!r} holds Remit's settings and policy; only a person changes it."
            raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
        if f"{found[0].root}/{found[1]}" in self._decisive:
            message = f"{path!r} is code that Remit runs, or decides what it may do; only a person changes it."
            raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
        return found
