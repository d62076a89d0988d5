"""A Remit without parts that ship: their folders are gone (rule 17)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import remit

SOURCE: Final = Path(remit.__file__).parent
PARTS: Final = sorted(path.name for path in (SOURCE / "parts").iterdir() if (path / "__init__.py").exists())
PROGRAM: Final = """
import asyncio, sys
from importlib.util import find_spec
from pathlib import Path

gone = set(sys.argv[1:])
from remit import Remit, Run, recipe, tool
from remit.api.openapi import openapi
from remit.api.table import ROUTES
from remit.cli.root import COMMANDS, run
from remit.pages.table import PAGES

if find_spec("aiohttp"):
    import remit.client.service

@tool("shop.pay", level="L1")
def pay(cents: int) -> int:
    'Pay.'
    return cents

@recipe("settle")
async def settle(run: Run) -> int:
    'Pay once a person agrees.'
    return (await run.call("shop.pay", {"cents": 450})).value

async def work() -> None:
    async with Remit("journal.db", tools=[pay], recipes=[settle]) as remit:
        job = await remit.start(settle())
        await remit.settled(job.id)
        (question,) = await remit.service.confirmations.pending(job.id)
        await remit.service.confirmations.decide(question.confirmation, "approve")
        assert await job == 450
        assert gone.isdisjoint(tool.provider_id for tool in await remit.service.tools.views())
        assert (await remit.service.streams.verify()).ok

asyncio.run(work())
from remit.errors import SettingsError
from remit.settings import documented, load

assert gone.isdisjoint(doc.key.partition(".")[0] for doc in documented())
for text in ("[tickets]\\ntool_only = true\\n", "[[notify]]\\nname = 'a'\\n", "[web]\\n", "[sandbox]\\n"):
    Path("other.toml").write_text(text)
    if text.strip("[").partition("]")[0] not in gone:
        continue
    try:
        load(env={}, file=Path("other.toml"))
    except SettingsError as error:
        assert "there is no setting" in str(error), error
    else:
        raise AssertionError(text)
assert (gone & {"notify", "sandbox", "skills", "tickets"}).isdisjoint(COMMANDS)
assert "tickets" not in gone or not [route for route in ROUTES if "ticket" in route.path]
assert openapi(ROUTES)["paths"]["/v1/tools/execute"]
assert "tickets" not in gone or not [page for page in PAGES if page.path.startswith("/tickets")]
assert run(["--journal", "journal.db", "jobs"]) == run(["--journal", "journal.db", "show", "last"]) == 0
assert run(["--journal", "journal.db", "parts"]) == run(["--help"]) == run(["config"]) == 0
"""


def house_without(gone: set[str], place: Path) -> Path:
    """Lay out Remit without the folders of some parts, by links to the rest; return the folder to import from."""
    parts = place / "remit" / "parts"
    parts.mkdir(parents=True)
    for folder, left in ((SOURCE, {"parts", "__pycache__"}), (SOURCE / "parts", {*gone, "__pycache__"})):
        for path in folder.iterdir():
            if path.name not in left:
                (place / path.relative_to(SOURCE.parent)).symlink_to(path)
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    "gone", [PARTS, *([part] for part in PARTS)], ids=lambda gone: gone[0] if gone[1:] == [] else "all"
)
def test_without_a_part_a_job_runs_and_every_face_stands(gone: list[str], tmp_path: Path) -> None:
    house = house_without(set(gone), tmp_path / "house")
    begin = f"import sys; sys.path.insert(0, {str(house)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + PROGRAM, *gone],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "settle" in done.stdout
