"""`remit mcp` where the extra is not installed: what needs it says so, and on stdio nothing does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Project, hiding
from tests.cli.talking import ENVELOPE, MODERN, text_of

NOTES = Path(__file__).parents[2] / "examples" / "mcp" / "notes.py"
ERAS = pytest.mark.parametrize("modern", [False, True], ids=["legacy", MODERN])


def without(modules: str, project: Project, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    """`remit mcp` where these modules are not installed, told this by its client."""
    return subprocess.run(
        hiding(modules, *words),
        cwd=project.folder,
        env=project.env,
        capture_output=True,
        text=True,
        check=False,
        input=said,
    )


def test_without_the_extra_the_person_is_told_what_to_install(project: Project) -> None:
    for words in (("serve", "--http"), ("wrap", "--http", "--", "x")):
        done = without("mcp mcp_types", project, *words)
        assert done.returncode == 2, done.stderr
        assert "pip install 'remit[mcp]'" in done.stderr
        assert "Traceback" not in done.stderr


@ERAS
def test_on_stdio_nothing_of_the_extra_is_imported(project: Project, modern: bool) -> None:
    """Else a client would wait half a second longer for the first answer."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = ("server/discover", {}) if modern else ("initialize", hello)
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        first,
        ("tools/list", {}),
        ("tools/call", {"name": "read_note", "arguments": {"topic": "x"}}),
    )
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": ENVELOPE}})
        if modern
        else json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(asked)
    ]
    words = ("wrap", "--name", "notes", "--level", "read_note=L0", "--", sys.executable, str(NOTES), "notes.json")
    extra = "mcp mcp_types pydantic anyio aiohttp uvicorn httptools starlette"
    done = without(extra, project, *words, said="\n".join([*lines, ""]))
    answers = sorted(map(json.loads, done.stdout.splitlines()), key=lambda answer: answer["id"])
    assert [sorted(answer) for answer in answers] == [["id", "jsonrpc", "result"]] * 3, done.stderr
    assert {tool["name"] for tool in answers[1]["result"]["tools"]} == {"read_note", "write_note"}
    assert text_of(answers[2]["result"]) == "there is no note on x"
