"""docs/client.md: its commands and its code run against a live server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from remit.codes import Code
from tests.cli.conftest import Project, project
from tests.patience import PATIENCE_S

__all__ = ["project"]

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
