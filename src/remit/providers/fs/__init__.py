"""Files below the folders that the operator opened to agents."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="fs",
        about="Read and write files below the folders that you opened to agents.",
        providers="remit.providers.fs.provider:open_files",
        provider_ids=("builtin",),
        tools=True,
        checks="remit.providers.fs.provider:check_folders",
    ),
)
