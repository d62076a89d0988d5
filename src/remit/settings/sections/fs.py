"""The section `[fs]`."""

from typing import Annotated

from remit.settings.base import Base
from remit.settings.section import About, Bytes, Section, Texts


def _roots(roots: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(root)) for root in roots)


class FsSettings(Section, frozen=True):
    """What the file tools may touch."""

    roots: Annotated[
        Texts, About("The folders that file tools may use; they cannot reach anything outside.", resolve=_roots)
    ] = (".",)
    max_read_bytes: Annotated[Bytes, About("The largest file that file tools read.")] = 2_000_000
    search_anywhere: Annotated[
        bool,
        About(
            "Whether folder.search and folder.read may read folders outside the roots, except hidden ones and the "
            "system's. `remit mcp serve` confines all clients to the roots."
        ),
    ] = True
