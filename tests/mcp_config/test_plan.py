from __future__ import annotations

from pathlib import Path
from typing import Any

from remit.mcp_config.foreign import Foreign
from remit.mcp_config.plan import Planned, plan
from remit.settings.file import Base
from remit.settings.mcp import McpServer

BASE = Base(Path("/p"), Path("/h"))
HERE = McpServer(name="a", command=("x",), cwd="/p", level="L1")


def foreign(name: str, **entry: Any) -> Foreign:
    return Foreign(name, entry, "claude-code", Path("/f/.mcp.json"))


def planned(*found: Foreign, known: tuple[McpServer, ...] = (), wanted: tuple[str, ...] = ()) -> list[Planned]:
    return plan(found, known, wanted, BASE, keep_secrets=False)


def test_a_new_server_has_its_table_ready() -> None:
    (one,) = planned(foreign("My A", command="npx", args=["-y"], env={"API_KEY": "swordfish"}))
    assert (one.name, one.original, one.status, one.transport, one.where) == ("my_a", "My A", "new", "stdio", "npx")
    assert one.table == {"name": "my_a", "command": ["npx", "-y"], "env": {"API_KEY": "${API_KEY}"}}
    assert one.variables == {"API_KEY": "the secret in env API_KEY"}
    assert one.notes == ("renamed to my_a: names are lower-case letters, digits and single underscores",)


def test_secrets_are_kept_where_that_is_wanted_and_shown_in_no_case() -> None:
    (one,) = plan([foreign("a", command="x", env={"API_KEY": "swordfish"})], (), (), BASE, keep_secrets=True)
    assert one.table["env"] == {"API_KEY": "swordfish"}
    assert one.variables == {}
    assert "swordfish" not in repr(one)


def test_names_that_collide_are_numbered_and_that_is_told() -> None:
    found = planned(foreign("A", command="y"), foreign("a!", command="z"), known=(HERE,))
    assert [(one.name, one.notes) for one in found] == [
        ("a_2", ("the name a is taken: renamed to a_2",)),
        ("a_3", ("the name a is taken: renamed to a_3",)),
    ]


def test_a_server_that_is_there_already_is_not_written_twice_whatever_it_is_called() -> None:
    (one,) = planned(foreign("other", command="x"), known=(HERE,))
    assert (one.status, one.name, one.table) == ("known", "a", {})
    first, second = planned(foreign("b", url="https://h"), foreign("c", url="https://h"))
    assert (first.status, second.status, second.name) == ("new", "known", "b")


def test_what_our_settings_would_refuse_is_skipped_with_the_reason() -> None:
    (one,) = planned(foreign("a", url="ftp://swordfish"))
    assert (one.status, one.notes) == ("skipped", ("url must be text that begins with https:// or http:// and a host",))


def test_only_the_wanted_are_planned_by_either_name() -> None:
    found = (foreign("My A", command="x"), foreign("b", command="y"), foreign("c", command="z"))
    assert [one.original for one in planned(*found, wanted=("my_a", "c"))] == ["My A", "c"]
    assert [one.original for one in planned(*found, wanted=("My A",))] == ["My A"]
