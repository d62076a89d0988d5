"""docs/security.md names every module that starts a program, and says what that program reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
STARTS: Final = frozenset(
    {
        *("Popen", "check_call", "check_output", "create_subprocess_exec", "create_subprocess_shell"),
        *("execv", "execve", "execvp", "posix_spawn", "posix_spawnp", "subprocess_exec", "subprocess_shell"),
    }
)
"""Names whose call starts a program."""
MEANS: Final = {
    ("remit.process.child", "ChildProcess"),
    ("remit.process.enclosure", "Program"),
    ("remit.parts.work.executors.program", "run_program"),
}
"""Names of ours that start one, or have the sandbox start one."""
SUSPECT: Final = re.compile(rf"subprocess|os\.exec|os\.system|{'|'.join((*STARTS, *(name for _, name in MEANS)))}")
"""What stands in a module that starts one, and in few others: only these are parsed."""


def called(tree: ast.AST) -> Iterator[str]:
    """Return the names of what a module calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                whole = ast.unparse(function)
                yield "Popen" if whole == "subprocess.run" else function.attr
            elif isinstance(function, ast.Name):
                yield function.id


def starters() -> Iterator[str]:
    """Return the modules that start programs."""
    for path in (ROOT / "src/remit").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        if not SUSPECT.search(text):
            continue
        tree = ast.parse(text)
        imported = {
            (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if MEANS & imported or STARTS & {*called(tree)} or "os.exec" in text or "os.system" in text:
            yield name


def named() -> set[str]:
    """Return the modules of the first column."""
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    table = page.partition("## Programs that Remit starts")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(remit[\w.]+)`", row)}


@pytest.mark.slow
def test_every_module_that_starts_a_program_is_in_the_table() -> None:
    sandbox = "remit.parts.sandbox"
    found = {sandbox if name.startswith(f"{sandbox}.") else name for name in starters()}
    assert sorted(found) == sorted(named())
