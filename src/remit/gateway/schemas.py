"""The schemas behind recorded hashes: each is kept once, so that a hash can be resolved when the tool is long gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.canonical import canonical
from remit.journal.event import Blob

if TYPE_CHECKING:
    from remit.journal.writer import StreamWriter
    from remit.tools.tool import Tool


class KeptSchemas:
    """Which schemas this process has recorded already, and with whose events."""

    def __init__(self) -> None:
        self._with: dict[str, StreamWriter] = {}

    def missing(self, tool: Tool, writer: StreamWriter) -> tuple[Blob, ...]:
        """Return the blob for the writer's next events: the schema's canonical form, under its own hash."""
        given, output = self._with.get(tool.input.hash), tool.output
        if given is not None and given.failure is None and (output is None or not self._lacks(output.hash)):
            return ()  # as for every call but a tool's first
        found = []
        for compiled, schema in ((tool.input, tool.meta.input_schema), (tool.output, tool.meta.output_schema)):
            if compiled is not None and self._lacks(compiled.hash):
                self._with[compiled.hash] = writer
                found.append(Blob(compiled.hash, canonical(schema)))
        return tuple(found)

    def _lacks(self, digest: str) -> bool:
        """Whether it was never recorded, or with events that the storage lost or refused."""
        writer = self._with.get(digest)
        return writer is None or writer.failure is not None
