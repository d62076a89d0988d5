"""A Remit without parts that ship: their lines are gone, and nothing can import their folders (rule 17)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GONE = {
    "agents": "remit.agents",
    "sandbox": "remit.sandbox",
    "tickets": "remit.tickets",
    "notify": "remit.notify",
    "skills": "remit.skills",
    "web": "remit.providers.web",
}
PROGRAM = '''
import ast, asyncio, sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

gone = {gone}

class WithoutTheirLines(SourceFileLoader):
    """Compiles the list of the parts as it is once their lines are gone."""

    def get_code(self, name):
        tree = ast.parse(Path(self.path).read_bytes())
        (parts,) = (node.value for node in tree.body if isinstance(node, ast.AnnAssign))
        parts.elts = [part for part in parts.elts if part.keywords[0].value.value not in gone]
        return compile(tree, self.path, "exec")

class Away(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == module or name.startswith(module + ".") for module in gone.values()):
            raise ImportError("the part is gone: " + name)
        spec = PathFinder.find_spec(name, path) if name == "remit.wiring.capabilities" else None
        if spec is not None:
            spec.loader = WithoutTheirLines(name, spec.origin)
        return spec

sys.meta_path.insert(0, Away())
from remit.wiring.capabilities import FIRST_PARTY

assert gone.keys().isdisjoint(part.name for part in FIRST_PARTY)
assert FIRST_PARTY

from remit import Remit, Run, recipe, tool
from remit.api.openapi import openapi
from remit.api.table import ROUTES
from remit.client.service import service_at
from remit.cli.root import COMMANDS, run
from remit.pages.table import PAGES

@tool("shop.pay", level="L1")
def pay(cents: int) -> int:
    """Pay."""
    return cents

@recipe("settle")
async def settle(run: Run) -> int:
    """Pay once a person agrees."""
    return (await run.call("shop.pay", {{"cents": 450}})).value

async def work() -> None:
    async with Remit("journal.db", tools=[pay], recipes=[settle]) as remit:
        job = await remit.start(settle())
        await remit.settled(job.id)
        (question,) = await remit.service.confirmations.pending(job.id)
        await remit.service.confirmations.decide(question.confirmation, "approve")
        assert await job == 450
        assert [tool.name for tool in await remit.service.tools.views() if tool.provider_id == "web"] == []
        assert (await remit.service.streams.verify()).ok

asyncio.run(work())
from remit.errors import SettingsError
from remit.settings import documented, load

assert gone.keys().isdisjoint(doc.key.partition(".")[0] for doc in documented())
for text in ("[tickets]\\ntool_only = true\\n", "[[notify]]\\nname = 'a'\\n", "[web]\\n", "[sandbox]\\n"):
    Path("other.toml").write_text(text)
    try:
        load(env={{}}, file=Path("other.toml"))
    except SettingsError as error:
        assert "there is no setting" in str(error), error
    else:
        raise AssertionError(text)
assert {{"tickets", "notify", "chat", "sandbox", "skills"}}.isdisjoint(COMMANDS)
assert not [route for route in ROUTES if "ticket" in route.path]
assert openapi(ROUTES)["paths"]["/v1/tools/execute"]
assert not [page for page in PAGES if page.path.startswith("/tickets")]
assert run(["--journal", "journal.db", "jobs"]) == run(["--journal", "journal.db", "show", "last"]) == 0
assert run(["--journal", "journal.db", "parts"]) == run(["--help"]) == run(["config"]) == 0
'''


@pytest.mark.slow
def test_without_six_parts_a_job_runs_and_every_face_stands(tmp_path: Path) -> None:
    program = PROGRAM.format(gone=GONE)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "settle" in done.stdout
