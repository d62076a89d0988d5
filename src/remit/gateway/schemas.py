"""The schemas and rules behind recorded hashes: each is kept once, and can be read when tool or rules are others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.canonical import canonical
from remit.journal.event import Blob

if TYPE_CHECKING:
    from remit.journal.writer import StreamWriter
    from remit.policy.rules import Policy
    from remit.tools.tool import Tool


class KeptTexts:
    """Texts that this process has recorded already, and with whose events."""

    def __init__(self) -> None:
        self._with: dict[str, StreamWriter] = {}

    def schemas(self, tool: Tool, writer: StreamWriter) -> tuple[Blob, ...]:
        """Return the blobs for the writer's next events: each schema's canonical form, under its own hash."""
        given, output = self._with.get(tool.input.hash), tool.output
        if given is not None and given.failure is None and (output is None or not self._lacks(output.hash)):
            return ()  # as for every call but a tool's first
        found = []
        for compiled, schema in ((tool.input, tool.meta.input_schema), (tool.output, tool.meta.output_schema)):
            if compiled is not None and self._lacks(compiled.hash):
                self._with[compiled.hash] = writer
                found.append(Blob(compiled.hash, canonical(schema)))
        return tuple(found)

    def rules(self, policy: Policy, writer: StreamWriter) -> tuple[Blob, ...]:
        """Return the blobs for the writer's next events: the policy's text, and those of what is added to it."""
        given = self._with.get(policy.hash)
        if given is not None and given.failure is None:
            return ()  # as for every call but the first under these rules
        texts = ((policy.hash, policy.text), *((each.key, each.text) for each in policy.overlays))
        blobs = [Blob(digest, text) for digest, text in texts if self._lacks(digest)]
        self._with.update((blob.digest, writer) for blob in blobs)
        return tuple(blobs)

    def _lacks(self, digest: str) -> bool:
        """Return whether it was never recorded, or with events that the storage lost or refused."""
        writer = self._with.get(digest)
        return writer is None or writer.failure is not None
