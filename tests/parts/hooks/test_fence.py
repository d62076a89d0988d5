"""An agent in the sandbox asks the guard outside, and changes none of the settings by which it asks.

The agent here is a program that tries to. A plain user runs it: root's sandbox is another user, whom root's home and
guard are closed to.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from remit.mcp_config.agent_ground import AgentNeeds
from remit.parts.hooks.fence import fenced
from remit.parts.hooks.hook import AGENTS, AgentName
from remit_testing.models import ModelServer
from tests.parts.hooks.agents import ROWS, RULES, configure, env_of, log_in, real, script_of
from tests.parts.sandbox.abuse.plain import NOBODY, plain_python
from tests.parts.work.executors.agents import BIN
from tests.patience import PATIENCE_S

ATTEMPTS: Final = {
    "settings": "echo {} > $HOME/.claude/settings.json",
    "settings replaced": "echo {} > $HOME/.claude/x.json; mv -f $HOME/.claude/x.json $HOME/.claude/settings.json",
    "settings removed": "rm -f $HOME/.claude/settings.json",
    "folder renamed": "mv $HOME/.claude $HOME/.other",
    "company's settings": "echo {} > $HOME/.claude/remote-settings.json",
    "machine's settings": "mkdir -p /etc/claude-code",
    "project's settings": "echo {} > .claude/settings.json",
    "project's folder renamed": "mv .claude .other",
    "git's hooks": "echo > .git/hooks/post-commit",
    "git's folder renamed": "mv .git .other",
    "client": "echo > $GUARD/client",
    "socket": "rm -f $GUARD/socket",
    "another file": "cat $SECRET",
    "journal": "ls $SETTINGS",
}
LARGE: Final = "[sandbox]\nmemory_bytes = 34_359_738_368\ntmp_bytes = 2_147_483_648"
"""Real agents are."""
DONE: Final = {
    "project": "echo new > made.txt",
    "state": "echo new > $HOME/.claude/history.jsonl",
    "commit": "git add made.txt && git -c user.name=a -c user.email=a@b commit -q -m x",
}


class Place:
    """A home, a project and the settings of a guard, of a plain user."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        self.home, self.project, self.settings = folder / "h", folder / "r", folder / "s"
        for each in (self.home, self.project, self.settings, folder / "bin"):
            each.mkdir()
        (self.settings / "remit.toml").write_text(f'[hooks]\nmode = "gate"\n{LARGE}\n{RULES}')
        (folder / "secret").write_text("secret")
        subprocess.run(["/usr/bin/git", "init", "-q", str(self.project)], check=True)
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "XDG_DATA_HOME": str(folder / "d"),
            "REMIT_TRUST": "1",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.own()

    def own(self) -> None:
        """Give all of it to the plain user."""
        subprocess.run(["/usr/bin/chown", "-R", f"{NOBODY}:{NOBODY}", str(self.folder)], check=True)

    @property
    def guard(self) -> Path:
        [found] = (self.folder / "d/remit/guard").iterdir()
        return found

    def agent(self, script: str, name: str = "claude") -> None:
        """Write the agent."""
        program = self.folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def start(self, *words: str, stdin: int, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start the command as the plain user."""
        return subprocess.Popen(
            [self.python, "-m", "remit", "--config", str(self.settings / "remit.toml"), *words],
            cwd=self.project,
            env=self.env,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
        )

    def remit(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        process = self.start(*words, stdin=stdin)
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def place() -> Iterator[Place]:
    if os.geteuid() != 0:
        pytest.skip("it makes a plain user's home")
    with plain_python() as python, tempfile.TemporaryDirectory(prefix="f-", ignore_cleanup_errors=True) as folder:
        if python is None:
            pytest.skip("no Python here that a plain user could run")
        Path(folder).chmod(0o755)
        made = Place(Path(folder), python)
        made.agent("exit 7")
        done = made.remit("guard", "connect", "claude", "--yes")
        assert done.returncode == 0, done.stderr
        yield made


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_within_changes_the_settings_and_work_goes_on(place: Place) -> None:
    place.env |= {"GUARD": str(place.guard), "SECRET": str(place.folder / "secret"), "SETTINGS": str(place.settings)}
    lines = [f"if ({words}) 2>/dev/null; then echo '{name}'; fi" for name, words in {**ATTEMPTS, **DONE}.items()]
    place.agent("\n".join(lines))
    before = (place.home / ".claude/settings.json").read_text()
    done = place.remit("guard", "run", "--sandbox", "claude")
    assert done.stdout.splitlines() == [*DONE], done.stderr
    assert done.returncode == 0
    assert (place.home / ".claude/settings.json").read_text() == before


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_guard_is_asked_from_within_and_ends_with_the_agents_status(place: Place) -> None:
    hooks = json.loads((place.home / ".claude/settings.json").read_text())["hooks"]
    ask = hooks["PreToolUse"][0]["hooks"][0]["command"]
    calls = [
        json.dumps({"session_id": "s", "tool_use_id": c, "tool_name": "Bash", "tool_input": {"command": c}})
        for c in ("echo hi", "rm -f a.txt")
    ]
    place.agent("\n".join([*(f"echo '{call}' | {{ {ask}; }}" for call in calls), "cat", "exit 5"]))
    reading, writing = os.pipe()
    os.write(writing, b"from outside\n")
    os.close(writing)
    done = place.remit("guard", "run", "--sandbox", "claude", stdin=reading)
    os.close(reading)
    allowed, denied, echoed = done.stdout.splitlines()
    assert json.loads(allowed)["hookSpecificOutput"]["permissionDecision"] == "allow", done.stderr
    assert "deleting is forbidden" in denied
    assert (echoed, done.returncode) == ("from outside", 5)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_agent_at_a_terminal_has_one_of_its_own(place: Place) -> None:
    place.agent('tty; stty size; read line; echo "read: $line"')
    ours, theirs = pty.openpty()
    subprocess.run(["/usr/bin/stty", "rows", "33", "cols", "77"], stdin=theirs, check=True)
    process = place.start("guard", "run", "--sandbox", "claude", stdin=theirs, stdout=theirs)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # its end, if it ends
        while piece := os.read(ours, 65_536):
            if b"33 77" in piece:
                os.write(ours, b"words\r")
            said += piece
    os.close(ours)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert [word in said for word in (b"/dev/pts/", b"33 77", b"read: words")] == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--read", "/proc", "claude"), "POLICY_DENIED"),
        (("--network", "not a host", "claude"), "POLICY_DENIED"),
        (("--read", "/no/such/path", "claude"), "SANDBOX_UNAVAILABLE"),
        (("claude", "--bare"), "USAGE"),
        (("codex",), "USAGE"),
    ],
)
def test_what_cannot_be_held_is_not_started(words: tuple[str, ...], code: str, place: Place) -> None:
    place.agent("echo started")
    done = place.remit("guard", "run", "--sandbox", *words)
    assert (code in done.stderr, done.stdout, done.returncode != 0) == (True, "", True), done.stderr


@pytest.mark.parametrize("agent", AGENTS)
def test_what_an_agent_reads_of_its_hooks_is_read_only(
    agent: AgentName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "r"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    env = {"HOME": str(tmp_path / "h"), "SOME_BASE_URL": "http://127.0.0.1:80/v1"}
    program = fenced(agent, [agent], env, tmp_path / "g", AgentNeeds(("a.example",), ("/r",), ("/w",)))
    roots, writable = program.terms.roots, program.terms.writable
    assert all(Path(path).exists() for path in (*roots, *writable) if path not in {"/r", "/w", str(tmp_path / "g")})
    assert {str(tmp_path / "g"), str(project / ".git/hooks"), "/r"} <= {*roots}
    assert {str(project), str(project / ".git"), "/w"} <= {*writable}
    assert not {*roots} & {*writable}
    assert any(path.startswith(str(tmp_path / "h")) for path in roots)
    assert any(path.startswith(f"{project}/.") and ".git/" not in path for path in roots)
    assert program.private == program.terms.network[-2:] == ("127.0.0.1:80", "a.example")


@real
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("agent", ROWS)
async def test_a_real_agent_works_within_and_asks(agent: str, place: Place) -> None:
    place.env |= {"PATH": f"{BIN}:{os.environ['PATH']}", "OPENCODE_CONFIG": str(place.home / "opencode.json")}
    log_in(agent, place.home)
    place.own()
    done = await asyncio.to_thread(place.remit, "guard", "connect", agent, "--yes")
    assert done.returncode == 0, done.stderr
    script = script_of(agent, ["echo hi > b.txt", "rm -f b.txt"])
    async with ModelServer(script).listening() as server:
        configure(agent, place.home, server.url)
        place.own()
        place.env |= env_of(agent, server.url)
        read = ("--read", str(place.home / "opencode.json")) if agent == "opencode" else ()
        words = ("guard", "run", "--sandbox", "--network", server.url.rpartition("/")[2], *read)
        words = (*words, agent, *ROWS[agent].args)
        done = await asyncio.to_thread(place.remit, *words)
    assert (place.project / "b.txt").exists(), done.stdout + done.stderr
    assert "deleting is forbidden" in script.said[-1], done.stdout + done.stderr
