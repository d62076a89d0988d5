"""A project folder from the internet: nothing of it runs, and nothing in it counts, before it is trusted."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from msgspec import structs

from remit.cli.output import TerminalOutput
from remit.cli.root import root
from remit.cli.trust_question import show
from remit.settings import load
from remit.trust.state import Register, standing, trust
from tests.security.conftest import Folder

LOOKS = (
    ("jobs",), ("show", "last"), ("trace", "last"), ("verify",), ("sessions",), ("confirm",), ("usage",), ("config",),
    ("mcp", "list"), ("policy", "rules"), ("policy", "lint"), ("policy", "test"), ("policy", "explain", "fs.read"),
    ("doctor",), ("tickets", "list"), ("--help",), ("run", "--help"), ("completion", "bash"),
)  # fmt: skip
"""W01 to W17, but `remit tools`: commands that only look."""
RUNS = (
    ("tools",), ("replay", "last"), ("cancel", "last"), ("resume", "--all"),
    ("run", "research_report", "--query", "x", "--folder", "."), ("mcp", "show", "local"), ("mcp", "test"),
    ("mcp", "pin", "local"), ("mcp", "diff", "local"), ("sandbox", "probe"), ("doctor", "--live"),
    ("policy", "lint", "--live"), ("confirm", "c_1", "--approve"), ("decide", "last", "1", "--retry"), ("worker",),
    ("mcp", "serve"), ("tickets", "create", "--thread", "t", "--content", "x"), ("recorder", "key"),
)  # fmt: skip
"""W13 and W18 to W23: commands that run what the folder names, or write what counts there."""
COMPLETED = (("tools", ""), ("run", ""), ("confirm", ""), ("show", ""), ("mcp", "show", ""), ("policy", "explain", ""))

BASH = shutil.which("bash") or ""


class Listener:
    """Hears whoever connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.heard = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.heard += 1
            connection.close()

    def close(self) -> None:
        """Hear no more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """What the folder's settings would send secrets to."""
    found = Listener()
    yield found
    found.close()


@pytest.fixture
def clone(tmp_path: Path, listener: Listener, capsys: pytest.CaptureFixture[str]) -> Folder:
    """A folder that somebody fetched and has not trusted."""
    return Folder(tmp_path, listener.port, capsys)


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_command_that_looks_runs_nothing_and_connects_nowhere(
    clone: Folder, listener: Listener, words: tuple[str, ...]
) -> None:
    done = clone.run(*words)
    assert "Traceback" not in done.err
    assert "ghp_secret" not in done.out + done.err
    assert (clone.ran(), listener.heard) == (False, 0)


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_it_does_not_even_in_a_trusted_folder(clone: Folder, listener: Listener, words: tuple[str, ...]) -> None:
    done = clone.run(*words, env={"REMIT_TRUST": "1"})
    assert "FOLDER_NOT_TRUSTED" not in done.err
    assert (clone.ran(), listener.heard) == (False, 0)


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_a_command_that_runs_or_writes_is_refused(clone: Folder, listener: Listener, words: tuple[str, ...]) -> None:
    done = clone.run(*words)
    assert "FOLDER_NOT_TRUSTED" in done.err
    assert "remit trust" in done.err
    assert done.status != 0
    assert (clone.ran(), listener.heard) == (False, 0)


@pytest.mark.parametrize("words", COMPLETED, ids=" ".join)
def test_pressing_tab_runs_nothing(clone: Folder, listener: Listener, words: tuple[str, ...]) -> None:
    asked = {
        "_REMIT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("remit", *words)),
        "COMP_CWORD": str(len(words)),
    }
    for trusted in ({}, {"REMIT_TRUST": "1"}):
        assert clone.run(env={**asked, **trusted}).status == 0
    assert (clone.ran(), listener.heard) == (False, 0)


def test_the_library_refuses_it_too(clone: Folder) -> None:
    clone.write(
        "main.py", "import asyncio, remit\nasync def go():\n  async with remit.Remit(): pass\nasyncio.run(go())\n"
    )
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=clone.path, env=clone.env, capture_output=True, text=True, check=False
    )
    assert "FOLDER_NOT_TRUSTED" in done.stderr
    assert not clone.ran()


@pytest.mark.parametrize("named", [False, True], ids=["found", "named by REMIT_CONFIG"])
def test_the_library_in_memory_goes_without_settings_that_nobody_named(clone: Folder, *, named: bool) -> None:
    clone.write("workflow.toml", '[outbox]\nbackend = "github"\nrepo = "a/b"\ntoken_env = "TOKEN"\n')
    clone.write(
        "main.py",
        "import asyncio, remit\nasync def go():\n  unopened = remit.Remit(':memory:')\n"
        "  print(repr(unopened.settings), unopened.settings.explain())\n  async with unopened as opened:\n"
        "    print('OPEN', opened.settings.sources['app.modules'], opened.settings.doubted)\nasyncio.run(go())\n",
    )
    env = {**clone.env, **({"REMIT_CONFIG": "remit.toml"} if named else {})}
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=clone.path, env=env, capture_output=True, text=True, check=False
    )
    if named:
        assert "FOLDER_NOT_TRUSTED" in done.stderr
    else:
        before, _, after = done.stdout.partition("OPEN ")
        assert before
        assert "evil.py" not in before
        assert after.startswith("default")
        assert "'app.modules'" in done.stdout
        assert "'workflow.toml'" in done.stdout
    assert not clone.ran()


# --- trusting


def test_a_person_is_asked_once_with_everything_that_it_would_do(clone: Folder) -> None:
    with clone.terminal("run", "greet") as screen:
        screen.expect("is not trusted yet")
        screen.expect("It would import evil.py")
        screen.expect(r"start the MCP server local: \S+ \S+/server\.py")
        screen.expect("connect to the MCP server exfil at http://127")
        screen.expect(r"give exfil \$GITHUB_TOKEN")
        screen.expect("allow without asking, by rule everything: \\*")
        screen.expect("yes or no: ")
        assert not clone.ran()
        screen.type("yes\r")
        screen.expect("hello")
        assert screen.end() == 0
    assert clone.ran()
    assert clone.run("run", "greet").out == '"hello"\n'


@pytest.mark.parametrize("answer", ["\r", "no\r", "n\r", "yess\r", "\x04"])
def test_anything_but_yes_is_no(clone: Folder, answer: str) -> None:
    with clone.terminal("tools") as screen:
        screen.expect("yes or no: ")
        screen.type(answer)
        screen.expect("FOLDER_NOT_TRUSTED")
        assert screen.end() == 2
    assert not clone.ran()


def test_a_pipe_cannot_answer(clone: Folder) -> None:
    done = clone.apart("trust", stdin="yes\n")
    assert done.status == 2
    assert "It would " in done.err
    assert "remit trust --yes" in done.err
    assert "FOLDER_NOT_TRUSTED" in clone.apart("tools", stdin="yes\n").err


@pytest.mark.parametrize("name", ["remit.toml", "evil.py", "server.py"])
def test_trust_ends_with_any_change_of_what_was_trusted(clone: Folder, name: str) -> None:
    assert clone.run("trust", "--yes").status == 0
    assert clone.run("run", "greet").out == '"hello"\n'
    with (clone.path / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    done = clone.run("run", "greet")
    assert f"has changed since: {name}" in done.err
    assert clone.run("trust", "--yes", "--edits").status == 0
    with (clone.path / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed again\n")
    assert clone.run("run", "greet").out == '"hello"\n'


def test_trust_is_kept_outside_listed_and_revoked(clone: Folder) -> None:
    clone.run("trust", "--yes")
    assert not list(clone.path.glob("**/*trust*"))
    (listed,) = json.loads(clone.run("trust", "--list", "--json").out)
    assert listed["file"] == str(clone.path / "remit.toml")
    assert clone.run("trust", "--revoke").status == 0
    assert "FOLDER_NOT_TRUSTED" in clone.run("tools").err


def test_a_copy_elsewhere_is_not_trusted(clone: Folder) -> None:
    clone.run("trust", "--yes")
    moved = clone.path.parent / "copy"
    clone.path.rename(moved)
    clone.path = moved
    assert "FOLDER_NOT_TRUSTED" in clone.run("tools").err


def test_a_register_that_others_may_write_to_counts_for_nothing(clone: Folder) -> None:
    clone.run("trust", "--yes")
    (kept,) = (clone.path.parent / "home/.local/share/remit/trust").glob("file-*")
    kept.chmod(0o666)
    assert "FOLDER_NOT_TRUSTED" in clone.run("tools").err


def test_a_folder_of_ones_own_is_never_asked_about(clone: Folder) -> None:
    (clone.path / "remit.toml").unlink()
    plan = "version: taskgraph-v1\nname: p\nnodes:\n  - {id: a, tool: fs.list, args: {path: .}}\noutput: done\n"
    clone.write("plan.yaml", plan)
    for _ in range(2):  # the second time with the journal that the first one made
        assert clone.run("run", "plan.yaml").status == 0
    clone.write("remit.toml", '[output]\ncolor = "never"\n[[policy.rules]]\neffect = "deny"\ntools = ["fs.write"]\n')
    assert clone.run("run", "plan.yaml").status == 0


def test_what_remit_itself_writes_into_a_trusted_file_stays_trusted(clone: Folder) -> None:
    clone.write("remit.toml", "")
    assert clone.run("mcp", "add", "--no-sandbox", "notes", "--", "python", "server.py").status == 0
    assert "FOLDER_NOT_TRUSTED" not in clone.run("mcp", "test").err


def test_what_remit_writes_into_an_untrusted_file_does_not_make_it_trusted(clone: Folder) -> None:
    assert clone.run("mcp", "add", "--no-sandbox", "notes", "--", "python", "server.py").status == 0
    assert "FOLDER_NOT_TRUSTED" in clone.run("tools").err


# --- what else a folder brings


def test_roots_and_rules_of_the_folder_do_not_count(clone: Folder) -> None:  # W34
    target = clone.path.parent / "outside.txt"
    clone.write("remit.toml", '[fs]\nroots = ["/"]\n[[policy.rules]]\neffect = "allow"\ntools = ["*"]\n')
    plan = f"nodes:\n  - {{id: a, tool: fs.write, args: {{path: {target}, content: x}}}}\noutput: done\n"
    clone.write("plan.yaml", "version: taskgraph-v1\nname: p\n" + plan)
    done = clone.run("run", "plan.yaml")
    assert "FOLDER_NOT_TRUSTED" in done.err
    assert not target.exists()


@pytest.mark.parametrize("url", ["../elsewhere/journal.db", "postgresql://u:p@127.0.0.1:{port}/x"])
def test_a_journal_elsewhere_is_not_opened(clone: Folder, listener: Listener, url: str) -> None:  # W35, W36
    clone.write("remit.toml", f'[journal]\nurl = "{url.format(port=listener.port)}"\n')
    assert clone.run("jobs").status == 0
    assert "FOLDER_NOT_TRUSTED" in clone.run("resume", "--all").err
    assert listener.heard == 0
    assert not (clone.path.parent / "elsewhere").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_journal_behind_a_link_is_not_written(clone: Folder, there: bool) -> None:  # M01, M02, M04
    clone.write("remit.toml", "")
    victim = clone.path.parent / "victim.db"
    if there:
        victim.write_bytes(b"")
    (clone.path / ".remit").mkdir()
    (clone.path / ".remit/journal.db").symlink_to(victim)
    assert clone.run("jobs").status == 0
    assert "FOLDER_NOT_TRUSTED" in clone.run("tickets", "create", "--thread", "t", "--content", "x").err
    assert not victim.exists() or victim.read_bytes() == b""


def test_a_journal_that_came_with_the_folder_counts_for_nothing(clone: Folder) -> None:  # W37
    (clone.path / "remit.toml").unlink()
    clone.run("tickets", "create", "--thread", "t", "--content", "x", env={"REMIT_TRUST": "1"})
    journal = clone.path / ".remit/journal.db"
    assert journal.exists()
    assert clone.run("tickets", "list").status == 0
    for words in (("resume", "--all"), ("confirm", "c_1", "--approve"), ("run", "research_report", "--query", "x")):
        assert "it came with the folder" in clone.run(*words).err
    assert clone.run("trust", "--yes").status == 0
    assert clone.run("resume", "--all").status == 0
    copy = journal.with_name("copy.db")
    copy.write_bytes(journal.read_bytes())
    copy.replace(journal)
    assert "it came with the folder" in clone.run("resume", "--all").err


@pytest.mark.parametrize("hostile", ["TRIGGER t AFTER INSERT ON heads BEGIN SELECT 1; END", "VIEW v AS SELECT 1 AS x"])
def test_a_journal_with_a_trigger_or_a_view_is_refused(clone: Folder, hostile: str) -> None:  # D01, D03, D04
    (clone.path / "remit.toml").unlink()
    clone.run("tickets", "create", "--thread", "t", "--content", "x")
    with sqlite3.connect(clone.path / ".remit/journal.db") as db:
        db.execute(f"CREATE {hostile}")
    db.close()
    done = clone.run("jobs")
    assert (done.status, "JOURNAL_CORRUPT" in done.err) == (1, True)


def test_a_file_of_the_folder_takes_no_library_s_place(clone: Folder) -> None:  # W32
    for name in ("yaml", "email", "click"):
        clone.write(f"{name}.py", f"open({str(clone.mark)!r}, 'w').write('shadowed')\n")
    clone.write("remit.toml", '[app]\nmodules = ["good.py"]\n')
    clone.write(
        "good.py",
        "import yaml, email.message\nfrom remit import recipe\n\n"
        "@recipe('g')\nasync def g(run): return yaml.safe_load('1')\n",
    )
    assert clone.apart("--trust", "run", "g").out == "1\n"
    assert not clone.ran()


def test_settings_of_another_user_are_named_so_and_trust_in_them_ends_with_their_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # W30
    (tmp_path / "remit.toml").write_text('[app]\nmodules = ["evil.py"]\n', encoding="utf-8")
    (tmp_path / "evil.py").write_text("", encoding="utf-8")
    kept = Register(tmp_path / "kept")
    found = standing(load(cwd=tmp_path, env={}), kept, {})
    assert not found.trusted
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: found.owner + 1)
        show(TerminalOutput("never"), found)
    assert f"remit.toml belongs to another user (uid {found.owner})" in capsys.readouterr().err
    trust(found, kept, edits=False, now=0)
    again = standing(found.settings, kept, {})
    assert again.settings_trusted
    assert not structs.replace(again, owner=again.owner + 1).settings_trusted


@pytest.mark.skipif(not BASH, reason="bash completes")
def test_words_that_are_completed_are_words(tmp_path: Path) -> None:  # W38, s09/S01
    offers = "plain,$(touch PWNED)\nplain,`touch PWNED`\nplain,a;touch PWNED\n"
    (tmp_path / "remit").write_text(f"#!/bin/sh\ncat <<'EOF'\n{offers}EOF\n", encoding="utf-8")
    (tmp_path / "remit").chmod(0o755)
    script = BashComplete(root, {}, "remit", "_REMIT_COMPLETE").source()
    asked = f'{script}\nCOMP_WORDS=(remit show ""); COMP_CWORD=2; _remit_completion remit; echo "${{COMPREPLY[0]}}"'
    done = subprocess.run(
        [BASH, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout == "$(touch PWNED)\n"
    assert not (tmp_path / "PWNED").exists()


# --- the guard


def test_wrap_reads_no_settings_of_the_folder_that_it_is_started_in(clone: Folder) -> None:  # W39, W40
    notes = Path(__file__).parents[2] / "examples/mcp/notes.py"
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    }  # fmt: skip
    call = {
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "write_note", "arguments": {"topic": "a", "text": "b"}},
    }  # fmt: skip
    said = "".join(
        json.dumps(one) + "\n" for one in (hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call)
    )
    words = ("mcp", "wrap", "--", sys.executable, str(notes), str(clone.path.parent / "notes.json"))
    done = clone.apart(*words, stdin=said)
    assert "CONFIRMATION_REQUIRED" in done.out
    assert not clone.ran()
    assert not (clone.path.parent / "notes.json").exists()
    named = clone.apart("--config", "remit.toml", *words, stdin=said)
    assert "FOLDER_NOT_TRUSTED" in named.err
    assert not clone.ran()
