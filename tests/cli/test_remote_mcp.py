"""MCP servers and their pins through a server: the same output and exit status as beside the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.cli import exit_codes
from tests.cli.conftest import Finished, Project
from tests.cli.test_mcp_pins import LOUD, READ, WRITE, far, offer
from tests.cli.test_remote import serving

__all__ = ["far"]
pytestmark = pytest.mark.slow


class Both:
    """A project, and a server that keeps its journal and talks to its MCP servers."""

    def __init__(self, project: Project, url: str) -> None:
        self.project = project
        self.url = url

    def there(self, *words: str) -> Finished:
        return self.project.here("--server", self.url, *words)

    def same(self, *words: str) -> Finished:
        """Run a command here and send it; what both print."""
        found = self.there(*words)
        here = self.project.here(*words)
        assert (found.status, found.out) == (here.status, here.out)
        return found


@pytest.fixture
def both(far: Project) -> Iterator[Both]:
    with serving(far, "--no-work") as url:
        yield Both(far, url)


def test_servers_are_listed_and_shown(both: Both) -> None:
    rows = both.there("mcp", "list", "--json").json["servers"]
    here = both.project.here("mcp", "list", "--json").json["servers"]
    assert [{**row, "origin": ""} for row in rows] == [{**row, "origin": ""} for row in here]
    assert {row["origin"] for row in rows} == {both.url}
    assert "far " in both.there("mcp", "list").out
    assert both.there("mcp", "pin", "far").out == "ok pinned 2 tools of far\n"
    assert both.same("mcp", "show", "far", "--json").json["pin"]["by"] == "alice"
    assert "Be kind." in both.same("mcp", "show", "far").out
    assert both.same("mcp", "show", "nobody", "--json").status == exit_codes.USAGE


def test_what_changed_is_shown_and_approved(both: Both) -> None:
    never = both.same("mcp", "diff", "far")
    assert never.status != 0
    both.there("mcp", "pin", "far")
    assert both.same("mcp", "diff", "far").status == 0
    offer(both.project, LOUD, {**WRITE, "name": "erase"})
    assert both.same("mcp", "diff", "far").status == exit_codes.FAILED
    told = both.same("mcp", "diff", "far", "--json").json
    assert told["changes"] == {"added": ["erase"], "changed": ["read"], "removed": ["write"]}
    assert both.there("mcp", "approve", "far", "--json").error["code"] == "USAGE"
    wrong = both.there("mcp", "approve", "far", "--digest", "sha256:0", "--json")
    assert wrong.error["code"] == "CONFIRMATION_MISMATCH"
    taken = both.there("mcp", "approve", "far", "--digest", told["digest"])
    assert (taken.status, taken.out) == (0, "ok accepted the tools of far\n")
    assert both.same("mcp", "diff", "far").status == 0


def test_a_command_of_this_machine_is_not_sent(both: Both, tmp_path: Path) -> None:
    offer(both.project, READ)
    words = ("mcp", "diff", "far", "--json", "--", str(tmp_path / "server"))
    assert both.there(*words).error["code"] == "LOCAL_ONLY"
