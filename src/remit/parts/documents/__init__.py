"""Documents: read, searched, and edited in two phases."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="documents",
        about="Read, search and edit documents: PDF, Office, EPUB, HTML, Markdown, text, CSV, notebooks.",
        settings="remit.parts.documents.settings:DocumentSettings",
        providers="remit.parts.documents.provider:open_documents",
        provider_ids=("doc",),
        tools=True,
        recipes=("remit.parts.documents.edit_docs:edit_docs",),
        modules=("pypdfium2",),
        extra="documents",
    ),
)
