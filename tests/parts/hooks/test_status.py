"""`remit guard status` tells of each way in which hooks are switched off, and names it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from remit.parts.hooks.hook import AgentName
from remit.parts.hooks.places import off_lines
from tests.parts.hooks.agents import ROWS, Home, configure, real


class Off(NamedTuple):
    """A way in which an agent's hooks are switched off."""

    agent: AgentName
    cause: str
    """It, as `status` names it."""
    files: Mapping[str, str] = {}
    """Files that do it, by their paths in the home (`~`) or the project."""
    env: Mapping[str, str] = {}
    everywhere: bool = True
    """Whether it does so in an empty folder too."""
    change: Callable[[str], str] | None = None
    """Changes the file in which the agent is connected."""


def _of_claude(change: Callable[[dict[str, Any]], object]) -> Callable[[str], str]:
    def changed(text: str) -> str:
        settings = json.loads(text)
        change(settings)
        return json.dumps(settings)

    return changed


_OFF: Final = '{\n "disableAllHooks": true\n}'
WAYS: Final = {
    "claude: repository": Off("claude", "settings.json:2:", {".claude/settings.json": _OFF}, everywhere=False),
    "claude: own file in the repository": Off(
        "claude", "settings.local.json:2:", {".claude/settings.local.json": _OFF}, everywhere=False
    ),
    "claude: variable": Off("claude", "CLAUDE_CODE_SIMPLE", env={"CLAUDE_CODE_SIMPLE": "1"}),
    "claude: user": Off("claude", "disableAllHooks", change=_of_claude(lambda s: s.update(disableAllHooks=True))),
    "claude: matcher": Off(
        "claude", "hooks.Stop[1] has no text", change=_of_claude(lambda s: s["hooks"]["Stop"].append({"matcher": 5}))
    ),
    "claude: type of hook": Off(
        "claude",
        "a type that Claude does not know",
        change=_of_claude(lambda s: s["hooks"]["Stop"].append({"hooks": [{"type": "telepathy"}]})),
    ),
    "claude: comment": Off("claude", "drops the whole file", change=lambda text: f"// mine\n{text}"),
    "claude: model": Off("claude", "model is not of the type str", change=_of_claude(lambda s: s.update(model=5))),
    "claude: taken out": Off("claude", "hooks are not there", change=lambda _: "{}"),
    "codex: repository": Off(
        "codex",
        "config.toml:2:",
        {
            ".codex/config.toml": "[features]\nhooks = false\n",
            "~/.codex/config.toml": '[projects."{project}"]\ntrust_level = "trusted"\n',
        },
        everywhere=False,
    ),
    "codex: user": Off("codex", "config.toml:", {"~/.codex/config.toml": "[features]\nhooks = false\n"}),
    "codex: trust": Off("codex", "not trusted", change=lambda text: text.replace("|| exit 2", "|| exit  2")),
    "opencode: variable": Off("opencode", "OPENCODE_PURE", env={"OPENCODE_PURE": "1"}),
    "opencode: plugin": Off("opencode", "", change=lambda text: f"this is no script(\n{text}"),
    "qwen: repository": Off("qwen", "settings.json:2:", {".qwen/settings.json": _OFF}, everywhere=False),
}
HELD: Final = {
    "gemini": {".gemini/settings.json": '{"hooksConfig": {"enabled": false}}'},
    "opencode": {"opencode.json": '{"plugin": []}'},
    "copilot": {
        ".github/hooks/x.json": '{"version": 1, "disableAllHooks": true, "hooks": {}}',
        ".github/copilot/settings.json": _OFF,
        "~/.copilot/settings.json": _OFF,
    },
}
"""Things that do not switch a user's hooks off, though they try to."""


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as place:
        made = Home(Path(place))
        yield made
        made.kill()


def place(home: Home, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = home.home / name[2:] if name.startswith("~") else home.repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_text() if file.exists() else ""
        own = text.replace("{project}", str(home.repository))
        file.write_text(f"{before}\n{own}" if before else own)


async def findings(home: Home, agent: str) -> list[dict[str, str]]:
    _, text = await home.remit("guard", "status", agent, "--json")
    found: list[dict[str, str]] = json.loads(text[text.index("[") :])
    return found


@real
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WAYS)
async def test_a_way_is_told_and_named(way: str, home: Home) -> None:
    off = WAYS[way]
    await home.connect(off.agent)
    configure_model(home, off.agent)
    place(home, off.files)
    if off.change is not None:
        file = next(
            path for path in home.home.rglob("*") if path.is_file() and "guard" in path.read_text("utf-8", "replace")
        )
        file.write_text(off.change(file.read_text()))
    home.env.update(off.env)
    empty, project = await findings(home, off.agent)
    assert (empty["answer"], project["answer"]) == ("not asked" if off.everywhere else "asked", "not asked"), project
    assert off.cause in project["why"]


@real
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("agent", ROWS)
async def test_an_agent_that_asks_is_told_so_also_where_a_repository_tries(agent: str, home: Home) -> None:
    await home.connect(agent)
    configure_model(home, agent)
    place(home, HELD.get(agent, {}))
    assert [finding["answer"] for finding in await findings(home, agent)] == ["asked", "asked"]


@pytest.mark.slow
async def test_a_session_whose_begin_was_not_seen_is_named(home: Home) -> None:
    message = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    await home.remit("guard", "ask", "claude.before", stdin=json.dumps(message).encode())
    home.env["PATH"] = "/usr/bin:/bin"
    absent, session = await findings(home, "claude")
    assert (absent["answer"], session["answer"]) == ("not installed", "begin not seen")
    assert [*session] == ["agent", "where", "answer", "why"]
    _, listed = await home.remit("sessions")
    assert f"{session['where']}" in listed
    assert "begin not seen" in listed
    _, traced = await home.remit("trace", session["where"], "--events")
    assert "begin not seen" in traced


def configure_model(home: Home, agent: str) -> None:
    """Leave the model to `status`."""
    home.env.pop("OPENCODE_CONFIG", None)
    if agent == "codex":
        configure(agent, home.home, "http://127.0.0.1:9")


@pytest.mark.parametrize("way", [way for way, off in WAYS.items() if off.cause and "trust" not in way])
def test_a_way_is_named_by_reading_the_files(way: str, tmp_path: Path) -> None:
    off = WAYS[way]
    home, project = tmp_path / "h", tmp_path / "r"
    project.mkdir()
    connected_as = home / {"codex": ".codex/hooks.json", "copilot": ".copilot/hooks/remit.json"}.get(
        off.agent, f".{off.agent}/settings.json"
    )
    if off.agent == "opencode":
        connected_as = home / ".config/opencode/plugin/remit.js"
    connected_as.parent.mkdir(parents=True)
    hooks = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "remit guard ask"}]}]}}'
    connected_as.write_text(off.change(hooks) if off.change is not None else hooks)
    for name, text in off.files.items():
        file = home / name[2:] if name.startswith("~") else project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert off.cause in "; ".join(off_lines(off.agent, project, {"HOME": str(home), **off.env}))
    whole = {"HOME": str(tmp_path / "h")}
    connected_as.write_text(hooks)
    assert off_lines(off.agent, tmp_path / "empty", whole) == [] or off.files
