"""Search in a folder of the person's own files, over an index that is kept beside and never in it."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="folder",
        about="Search and read the text files of a folder.",
        providers="remit.providers.folder.provider:open_search",
        provider_ids=("folder",),
        tools=True,
    ),
)
