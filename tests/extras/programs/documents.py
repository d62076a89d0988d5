"""docs/documents.md: a PDF file is read, and searched."""

import asyncio
import os
import shutil

from remit import Remit


async def main() -> None:
    """Read the file that lies in the folder."""
    async with Remit("jobs.db") as remit:
        read = await remit.call("doc.read", {"path": "paper.pdf"})
        assert read.status == "ok", read
        assert read.value["text"], read


shutil.copy(os.environ["PDF"], "paper.pdf")
asyncio.run(main())
