"""Remit over HTTP: the same commands and queries as on a journal here, sent to a server of `remit serve`.

async with RemoteRemit("https://remit.example", token) as remit:
    print(await (await remit.start_named("triage", {"repo": "octo/site"})))
"""

from __future__ import annotations

from remit.client.remote import RemoteRemit

__all__ = ["RemoteRemit"]
