"""`remit token`."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.cli.conftest import Project
from tests.patience import PATIENCE_S

HAND_WRITTEN = """
# who may connect
[[clients]]
principal = "bob"
token = "${BOB}"

# the end
"""


def tables(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((project.folder / "remit.toml").read_text(encoding="utf-8"))["clients"]
    return found


def test_a_token_is_shown_once_and_kept_as_its_digest(project: Project) -> None:
    done = project.here("token", "new", "ann", "--scope", "read", "--scope", "decide", "--tool", "fs.*")
    token = done.out.strip()
    assert re.fullmatch(r"rmt_[A-Za-z0-9_-]{43}", token)
    (table,) = tables(project)
    assert table == {
        "name": "ann",
        "principal": "ann",
        "sha256": hashlib.sha256(token.encode()).hexdigest(),
        "scopes": ["read", "decide"],
        "tools": ["fs.*"],
    }
    assert (project.folder / "remit.toml").stat().st_mode & 0o777 == 0o600
    assert token not in done.err + (project.folder / "remit.toml").read_text(encoding="utf-8")
    assert project.here("token", "new", "bob").out != done.out


def test_clients_are_listed_without_their_tokens(project: Project) -> None:
    project.configure(HAND_WRITTEN)
    project.here("token", "new", "ci", "--principal", "build", "--expires", "2020-01-31T12:00:00Z")
    listed = project.here("token", "list", "--json").json
    assert [(one["name"], one["principal"], one["state"]) for one in listed] == [
        ("bob", "bob", "valid"),
        ("ci", "build", "expired"),
    ]
    assert listed[1]["expires"] == "2020-01-31T12:00:00+00:00"
    shown = project.here("token", "list").out
    assert "2020-01-31" in shown
    assert not re.search("BOB|[0-9a-f]{64}", shown)


def test_one_is_revoked_and_the_rest_stays_as_it_was(project: Project) -> None:
    project.configure(HAND_WRITTEN)
    before = (project.folder / "remit.toml").read_text(encoding="utf-8")
    project.here("token", "new", "ann", "--expires", "30d")
    assert project.here("token", "revoke", "ann").status == 0
    assert (project.folder / "remit.toml").read_text(encoding="utf-8").rstrip() == before.rstrip()
    assert "no clients are left" in project.here("token", "revoke", "bob").err
    text = (project.folder / "remit.toml").read_text(encoding="utf-8")
    assert "[[clients]]" not in text
    assert "# who may connect" in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("new", "bob"), "has a client 'bob'"),
        (("new", "x", "--expires", "soon"), "--expires"),
        (("new", "x", "--expires", "2027-01-31T12:00:00"), "no offset"),
        (("new", "x", "--tool", "a b"), "tools must be"),
        (("new", " "), "must be a non-empty text"),
        (("revoke", "nobody"), "has no client 'nobody'"),
    ],
)
def test_what_cannot_be_done_changes_nothing(project: Project, words: tuple[str, ...], why: str) -> None:
    project.configure(HAND_WRITTEN)
    before = (project.folder / "remit.toml").read_text(encoding="utf-8")
    done = project.here("token", *words)
    assert (done.status, done.out) == (2, "")
    assert why in done.err
    assert (project.folder / "remit.toml").read_text(encoding="utf-8") == before


def test_an_old_table_of_mcp_clients_is_listed_with_a_note(project: Project) -> None:
    project.configure('[[mcp.clients]]\nprincipal = "old"\ntoken = "${OLD}"\n')
    listed = project.here("token", "list")
    assert "old" in listed.out
    assert "[[mcp.clients]] is deprecated" in listed.err


@pytest.mark.slow
@pytest.mark.parametrize("over", ["api", "mcp"])
def test_a_token_lets_its_bearer_in_until_it_is_revoked(project: Project, over: str) -> None:
    token = project.here("token", "new", "ann", "--scope", "read", "--scope", "call").out.strip()
    old = project.here("token", "new", "late", "--expires", "2020-01-01T00:00:00Z").out.strip()

    def status(url: str, bearer: str) -> int:
        headers = {"authorization": f"Bearer {bearer}", "content-type": "application/json"}
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() if over == "mcp" else None
        path = "/mcp" if over == "mcp" else "/v1/jobs"
        try:
            request = urllib.request.Request(url + path, ping, headers)  # noqa: S310 - loopback
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:  # noqa: S310 - loopback
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def statuses() -> list[int]:
        with project.start("serve", "--port", "0", "--no-work") as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            try:
                return [status(url, one) for one in (token, old, "rmt_wrong")]
            finally:
                server.terminate()
                server.communicate(timeout=PATIENCE_S)

    found = statuses()
    assert found[0] != 401
    assert found[1:] == [401, 401]
    project.here("token", "revoke", "ann")
    assert statuses() == [401, 401, 401]
