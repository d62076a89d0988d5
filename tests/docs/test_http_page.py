"""docs/http.md: its commands run against a live server, and its tables name what there is."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from remit.api import events
from remit.api import route as request
from remit.api.table import ROUTES
from remit.codes import Code
from remit.http.access import REQUESTS, SCOPES
from remit.http.server import HEAD_S
from remit.wiring.capabilities import FIRST_PARTY
from tests.cli.conftest import Project, project
from tests.patience import PATIENCE_S

__all__ = ["project"]

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text(encoding="utf-8")
MODULE = '''
from remit import Run, recipe

@recipe("greet")
async def greet(run: Run, name: str) -> str:
    """Greet."""
    return f"Hello {name}"
'''


def commands() -> list[tuple[str, str]]:
    """Every command of the page and what it prints."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = each.partition("\n")
            found.append((line, shown.strip()))
    return found


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(project: Project) -> None:
    (project.folder / "greet.py").write_text(MODULE, encoding="utf-8")
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["greet.py"]\n', encoding="utf-8")
    (project.folder / "notes.txt").write_text("hello\n", encoding="utf-8")
    with project.start("serve", "--port", "0") as server:
        assert server.stdout is not None
        known = {"$URL": server.stdout.readline().strip()}
        try:
            for line, shown in commands():
                for name, text in known.items():
                    line = line.replace(name, text)  # noqa: PLW2901 - the command with what came before
                done = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True, timeout=PATIENCE_S)
                assert re.match(re.escape(shown).replace("…", ".*"), done.stdout, re.DOTALL), (line, done.stdout)
                if line.endswith('/v1/confirmations"'):
                    (question,) = json.loads(done.stdout)
                    known |= {"QUESTION": question["confirmation"], "DIGEST": question["digest"]}
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)
    assert (project.folder / "notes.txt").read_text(encoding="utf-8") == "bye\n"


def test_every_scope_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Who may")[2].partition("## Refusals")[0], re.MULTILINE)
    assert set(rows) == SCOPES


def test_every_limit_is_the_one_in_force() -> None:
    limits = PAGE.partition("## Limits")[2]
    assert f"{request.MAX_BODY // 1024**2} MiB" in limits
    assert f"headers of a request to arrive | {HEAD_S:g} s" in limits
    assert f"a body to arrive | {request.BODY_S:g} s" in limits
    assert f"{request.MAX_QUERY:,} bytes" in limits
    assert f"{events.SEND_S:g} s" in limits
    assert f"| {REQUESTS} |" in limits


def test_every_code_on_the_page_exists() -> None:
    assert set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE)) <= set(Code.__members__)


def test_every_path_on_the_page_is_served_and_every_noun_is_on_it() -> None:
    paths = {route.path for route in ROUTES}
    named = re.findall(r"`(?:GET |POST )?(/(?:v1|events|health|metrics|openapi)[\w/{}.]*)`", PAGE)
    assert {path for path in named if path.count("/") > 1} - paths <= {"/v1"}
    of_parts = {noun.name for part in FIRST_PARTY for noun in part.nouns}
    core = {
        route.path.split("/")[2]
        for route in ROUTES
        if route.name.partition(".")[0] not in of_parts and route.path.startswith("/v1/")
    }
    assert [noun for noun in sorted(core) if not re.search(rf"/v1/{noun}\b", PAGE)] == []


def test_every_act_on_a_job_or_a_server_is_on_the_page() -> None:
    table = PAGE.partition("## Operations")[2].partition("\n## ")[0]
    acts = {route.path.split("/")[5] for route in ROUTES if route.method == "POST" and route.path.count("/") == 5}
    acts |= {route.path.split("/")[4] for route in ROUTES if route.path.startswith("/v1/jobs/{job}/")}
    assert [act for act in sorted(acts - {"row"}) if f"/{act}" not in table] == []
