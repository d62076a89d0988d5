"""docs/client.md: its commands and its code run against a live server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from remit.cli.root import COMMANDS, root
from remit.codes import Code
from tests.cli.conftest import Project, project
from tests.patience import PATIENCE_S

__all__ = ["project"]

CONTEXT = click.Context(root)
PAGE = (Path(__file__).parents[2] / "docs/client.md").read_text(encoding="utf-8")
MODULE = '''
from remit import Run, recipe

@recipe("greet")
async def greet(run: Run, name: str) -> str:
    """Greet."""
    return f"Hello {name}"
'''


def block(kind: str) -> str:
    """The page's one block of a kind."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.mark.slow
def test_the_commands_and_the_code_print_what_the_page_shows(project: Project, tmp_path: Path) -> None:
    (project.folder / "greet.py").write_text(MODULE, encoding="utf-8")
    (project.folder / "remit.toml").write_text('[app]\nmodules = ["greet.py"]\n', encoding="utf-8")
    (project.folder / "notes.txt").write_text("hello\n", encoding="utf-8")
    here = {**project.env, "PATH": str(Path(sys.executable).parent)}
    with project.start("serve", "--port", "0") as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            for each in re.split(r"^\$ ", block("console"), flags=re.MULTILINE)[1:]:
                line, _, shown = each.partition("\n")
                words = shlex.split(line.replace("$URL", url))
                done = subprocess.run(words, capture_output=True, text=True, check=False, env=here, timeout=60)
                pattern = re.escape(shown.strip()).replace("…", ".*")
                assert re.match(pattern, done.stdout, re.DOTALL), (line, done.stdout, done.stderr)
            code = [sys.executable, "-c", block("python")]
            env = {**here, "REMIT_SERVER": url}
            ran = subprocess.run(code, capture_output=True, text=True, check=False, env=env, timeout=60)
            assert (ran.stdout, ran.stderr) == (block("text"), "")
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)


def test_every_code_on_the_page_exists() -> None:
    codes = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE)) - {"REMIT_SERVER", "REMIT_TOKEN", "SSL_CERT_FILE"}
    assert codes <= set(Code.__members__)


LOCAL = PAGE.partition("run only where it is: ")[2].partition(". With a server")[0]
"""The commands that the page says are refused beside a server."""
ARGUMENTS = {
    "journal activate": (),
    "journal backup": ("b.db",),
    "journal copy": ("a.db", "b.db"),
    "journal move": ("0", "b.db"),
    "journal prune": ("--rules",),
    "erase": ("--subject", "ann"),
    "mcp call": ("a.b",),
    "mcp logs": ("a",),
    "mcp test": ("a",),
    "mcp wrap": ("--", "true"),
}


def local() -> list[str]:
    """Each command that the page names, and each one below a group of its names."""
    names: list[str] = []
    group = ""
    for name, more in re.findall(r"`([a-z ]+)`( of all streams)?", LOCAL):
        group = name.partition(" ")[0] if " " in name else group
        words = name if name in COMMANDS or " " in name else f"{group} {name}"
        below = getattr(root.get_command(CONTEXT, words), "entries", None) if " " not in words else None
        names += [f"{words} {each}" for each in below] if below and not more else [words]
    return [name for name in names if name not in {"recorder key", "sandbox probe"}]  # they need no journal


def test_the_page_names_commands() -> None:
    assert {"check", "journal shards", "notify test", "verify", "policy lint", "mcp logs"} <= set(local())


@pytest.mark.parametrize("words", local())
def test_commands_that_the_page_says_are_refused_beside_a_server_are(project: Project, words: str) -> None:
    done = project.here("--server", "http://127.0.0.1:9", *words.split(), *ARGUMENTS.get(words, ()))
    assert (done.status, "LOCAL_ONLY" in done.err) == (2, True), done.err
    assert not (project.folder / ".remit/journal.db").exists()
