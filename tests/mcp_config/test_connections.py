"""Remit in the configuration of MCP clients, and out of it again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError, UsageError
from remit.mcp_config.connection_record import ConnectionRecord, digest_of, put_together, taken_back
from remit.mcp_config.connections import ClientFile, FileConnection, ServerChange
from remit.mcp_config.foreign import parse

SERVE = ["/opt/remit", "--config", "/srv/remit.toml", "mcp", "serve"]
WRAP = ["/opt/remit", "mcp", "wrap", "--name", "notes"]

JSON: dict[str, str] = {
    "nothing": "",
    "an empty object": "{}",
    "other settings alone": '{\n    "theme": "dark"\n}\n',
    "no servers": '{"mcpServers": {}, "theme": "dark"}',
    "servers": '{\n  "mcpServers": {\n    "notes": {\n      "command": "py",\n      "args": ["a"]\n    }\n  }\n}\n',
    "tabs and CRLF": '{\r\n\t"mcpServers": {\r\n\t\t"notes": { "command": "notes" }\r\n\t},\r\n\t"é": "ü"\r\n}',
    "one line": '{"mcpServers":{"notes":{"args":["a","b"],"command":"x","env":{"A":"}"}}},"z":[1,{"a":2}]}',
    "a mark of its order": '\ufeff{"mcpServers": {"notes": {"command": "x"}}}',
    "comments and commas too many": (
        '// mine\n{\n  /* "mcpServers": {} */\n  "mcpServers": { // "a": 1 }\n'
        '    "notes": {\n      "command": "x", // why\n'
        '      "args": [\n        "// no comment",\n      ],\n    }, // last\n  },\n}\n// end\n'
    ),
    "an empty object with a comment": '{\n  "mcpServers": {\n    // none yet\n  }\n}',
}
TOML: dict[str, str] = {
    "nothing": "",
    "other settings": 'model = "x"  # mine\n\n[tui]\nnotifications = true',
    "servers": (
        '# mine\nmodel = "x"\n\n[mcp_servers.notes] # a\ncommand = "python3"   # the program\n'
        'args = [\n  "notes.py", # its file\n]\n\n[mcp_servers.notes.env]\nA = "b"\n\n# tail\n[tui]\nx = 1\n'
    ),
    "an inline table": 'mcp_servers = { notes = { command = "x", args = [ "a" ] } } # all\n',
    "dotted keys": '[mcp_servers]\nnotes.command = "x"\nnotes.enabled = true\n',
    "CRLF": '[mcp_servers.notes]\r\ncommand = "x"\r\n\r\n[tui]\r\nx = 1\r\n',
}
FILES = [
    *(pytest.param("cursor", text, id=f"json-{name}") for name, text in JSON.items()),
    *(
        pytest.param("vscode", text.replace("mcpServers", "servers"), id=f"vscode-{name}")
        for name, text in JSON.items()
    ),
    *(pytest.param("codex", text, id=f"toml-{name}") for name, text in TOML.items()),
]


def read(client: str, text: str) -> Any:
    return tomllib.loads(text) if client == "codex" else parse(text.removeprefix("\ufeff") or "{}", "it")


def servers(client: str, text: str) -> Any:
    return read(client, text).get({"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers"), {})


def common(one: str, other: str) -> int:
    """Characters in which two texts begin alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize(("client", "text"), FILES)
def test_remit_is_one_more_server_and_goes_as_it_came(client: str, text: str) -> None:
    file = ClientFile(text, client, "it")
    after, change = file.served("remit", SERVE)
    added = servers(client, after.text)
    assert (added["remit"]["command"], added["remit"]["args"]) == (SERVE[0], SERVE[1:])
    assert {name: entry for name, entry in added.items() if name != "remit"} == servers(client, text)
    assert common(text, after.text) + common(text[::-1], after.text[::-1]) >= len(text) - text.count(" = { "), (
        "the rest"
    )
    left = read(client, after.undone(change).text)
    assert {key: value for key, value in left.items() if value} == {
        key: value for key, value in read(client, text).items() if value
    }


@pytest.mark.parametrize(("client", "text"), [case for case in FILES if "notes" in str(case.values[1])])
def test_remit_is_put_before_a_server_and_the_change_alone_is_taken_back_byte_for_byte(client: str, text: str) -> None:
    file = ClientFile(text, client, "it")
    before = file.servers["notes"]
    after, change = file.wrapped("notes", WRAP)
    entry = servers(client, after.text)["notes"]
    assert entry["command"] == WRAP[0]
    assert entry["args"] == [*WRAP[1:], "--", before["command"], *before.get("args", [])]
    assert {key: entry[key] for key in before if key not in {"command", "args"}} == {
        key: value for key, value in before.items() if key not in {"command", "args"}
    }
    assert "\r\n" not in text or after.text.count("\n") == after.text.count("\r\n"), "one kind of line ends"
    back = after.undone(change).text
    assert back == text or (" = {" in text and back.replace(" ", "") == text.replace(" ", ""))


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_change_is_taken_back_beside_those_of_others(client: str) -> None:
    text = TOML["servers"] if client == "codex" else JSON["comments and commas too many"]
    after, change = ClientFile(text, client, "it").wrapped("notes", WRAP)
    connection = put_together(None, Path("it"), client, text, after.text, (change,))
    other = after.text.replace("mine", "yours")
    assert taken_back(connection, other) == text.replace("mine", "yours")
    assert taken_back(connection, after.text) == text


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_what_was_changed_since_is_left_as_it_is(client: str) -> None:
    text = TOML["servers"] if client == "codex" else JSON["servers"]
    after, change = ClientFile(text, client, "it").wrapped("notes", WRAP)
    connection = put_together(None, Path("it"), client, text, after.text, (change,))
    with pytest.raises(SettingsError, match="notes was changed since it was connected"):
        taken_back(connection, after.text.replace("wrap", "other"))
    with pytest.raises(SettingsError, match="notes is not there any more"):
        taken_back(connection, "" if client == "codex" else "{}")


def test_two_changes_lead_back_to_what_was_there_first() -> None:
    text = JSON["servers"]
    once, first = ClientFile(text, "cursor", "it").wrapped("notes", WRAP)
    twice, second = once.served("remit", SERVE)
    done = put_together(None, Path("it"), "cursor", text, once.text, (first,))
    both = put_together(done, Path("it"), "cursor", once.text, twice.text, (second,))
    assert taken_back(both, twice.text) == text
    assert taken_back(both, twice.text + "\n") == text + "\n"
    changed = once.text + "\n"
    between, third = ClientFile(changed, "cursor", "it").served("remit", SERVE)
    mixed = put_together(done, Path("it"), "cursor", changed, between.text, (third,))
    assert taken_back(mixed, between.text) == text + "\n"


def test_a_file_that_was_not_there_is_there_no_more() -> None:
    after, change = ClientFile("", "cursor", "it").served("remit", SERVE)
    connection = put_together(None, Path("it"), "cursor", None, after.text, (change,))
    assert taken_back(connection, after.text) is None
    assert json.loads(after.text) == {"mcpServers": {"remit": change.entry}}


@pytest.mark.parametrize(
    ("client", "text", "why"),
    [
        ("cursor", "[1]", "is not a JSON object"),
        ("cursor", "{", "it:1:"),
        ("cursor", '{"mcpServers": []}', "mcpServers does not hold servers"),
        ("cursor", '{"a": 1, "a": 2}', "a is there twice"),
        ("vscode", '{"servers": "x"}', "servers does not hold servers"),
        ("codex", "a = ", "is not TOML"),
        ("codex", "mcp_servers = 1", "mcp_servers does not hold servers"),
    ],
)
def test_a_file_of_another_shape_is_refused(client: str, text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        ClientFile(text, client, "it")


def test_an_entry_that_is_no_server_costs_itself_alone() -> None:
    file = ClientFile('{"mcpServers": {"a": null, "good": {"command": "x"}}}', "cursor", "it")
    assert (list(file.servers), file.odd) == (["good"], ("a",))
    after, _ = file.wrapped("good", WRAP)
    assert json.loads(after.text)["mcpServers"]["a"] is None
    with pytest.raises(SettingsError, match="has a server a already"):
        file.served("a", ["remit"])


def test_a_server_without_a_command_or_with_a_name_that_is_taken_is_refused() -> None:
    file = ClientFile('{"mcpServers": {"far": {"type": "stdio"}}}', "cursor", "it")
    with pytest.raises(SettingsError, match="far has no command"):
        file.wrapped("far", WRAP)
    with pytest.raises(SettingsError, match="has a server far already"):
        file.served("far", SERVE)


REMOTE = [
    pytest.param(
        "claude-code",
        '{"mcpServers": {"far": {"type": "http", "url": "https://a.example/mcp",\n // mine\n'
        ' "headers": {"Authorization": "Bearer ${KEY}", "X-Team": "blue"}, "timeout": 9}}}',
        {
            "type": "stdio",
            "command": WRAP[0],
            "args": [
                *WRAP[1:],
                *("--url", "https://a.example/mcp", "--header-env", "Authorization=FAR_AUTHORIZATION"),
                *("--header-env", "X-Team=FAR_X_TEAM"),
            ],
            "env": {"FAR_AUTHORIZATION": "Bearer ${KEY}", "FAR_X_TEAM": "blue"},
            "timeout": 9,
        },
        id="json",
    ),
    pytest.param(
        "cursor",
        '{"mcpServers": {"far": {"url": "https://a.example/mcp"}}}',
        {"command": WRAP[0], "args": [*WRAP[1:], "--url", "https://a.example/mcp"]},
        id="a URL alone",
    ),
    pytest.param(
        "codex",
        '# mine\n[mcp_servers.far]\nurl = "https://a.example/mcp" # there\nbearer_token_env_var = "KEY"\n'
        'env_http_headers = { "X-Org" = "ORG" }\n\n[mcp_servers.far.http_headers]\nX-Team = "blue"\n\n[tui]\nx = 1\n',
        {
            "command": WRAP[0],
            "args": [
                *WRAP[1:],
                *("--url", "https://a.example/mcp", "--header-env", "X-Team=FAR_X_TEAM"),
                *("--header-env", "X-Org=ORG", "--header", "Authorization=Bearer ${KEY}"),
            ],
            "env": {"FAR_X_TEAM": "blue"},
            "env_vars": ["ORG", "KEY"],
            "required": True,
            "default_tools_approval_mode": "approve",
        },
        id="toml",
    ),
]


@pytest.mark.parametrize(("client", "text", "entry"), REMOTE)
def test_remit_takes_the_place_of_a_url_and_the_change_alone_is_taken_back(
    client: str, text: str, entry: dict[str, Any]
) -> None:
    after, change = ClientFile(text, client, "it").wrapped("far", WRAP)
    assert servers(client, after.text)["far"] == entry
    connection = put_together(None, Path("it"), client, text, after.text, (change,))
    assert taken_back(connection, after.text) == text
    beside = taken_back(connection, after.text + "\n")
    assert beside is not None
    assert read(client, beside) == read(client, text)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"url": "https://a.example/${TEAM}"}, "has no URL and headers"),
        ({"url": 7}, "has no URL and headers"),
        ({"url": "https://a.example", "headers": {"X": 1}}, "has no URL and headers"),
        ({"url": "https://a.example", "type": "sse"}, "speaks SSE"),
        ({"url": "https://a.example", "oauth": {"clientId": "x"}}, "has oauth"),
    ],
)
def test_a_url_that_wrap_cannot_reach_as_the_client_does_is_refused(entry: dict[str, Any], why: str) -> None:
    file = ClientFile(json.dumps({"mcpServers": {"far": entry}}), "cursor", "it")
    with pytest.raises(SettingsError, match=f"far {why}"):
        file.wrapped("far", WRAP)


def test_the_record_of_a_connection_is_its_owners_and_can_be_read_again(tmp_path: Path) -> None:
    record = ConnectionRecord(tmp_path / "connections", tmp_path / "mcp.json")
    assert record.read() is None
    kept = FileConnection("f", "cursor", digest_of("x"), (ServerChange("a", {"command": "x"}, {"args": None}),), None)
    record.keep(kept)
    assert record.read() == kept
    (place,) = (tmp_path / "connections").iterdir()
    assert place.stat().st_mode & 0o777 == 0o600
    place.write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        record.read()
    record.forget()
    assert record.read() is None
