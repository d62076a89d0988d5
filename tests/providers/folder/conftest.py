from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.folder.library import TASKS, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    library = tmp_path / "library"
    write(library, "asyncio/tasks.py", TASKS)
    write(library, "test/test_tasks.py", TASKS.replace("Request", "Test a request"))
    write(library, "guide.md", "# Guide\n\n## Cooking\n\nHow to boil an egg.\n\n## Travel\n\nHow to take a train.\n")
    write(library, "page.html", "<title>Whales</title><p>The blue whale is large.</p><script>var blue;</script>")
    return library
