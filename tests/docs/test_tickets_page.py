"""docs/tickets.md: its walk runs, and its tables name what there is."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from remit.codes import Code
from tests.cli.conftest import Project, project
from tests.patience import PATIENCE_S

__all__ = ["project"]

PAGE = (Path(__file__).parents[2] / "docs/tickets.md").read_text(encoding="utf-8")


def walk(command: str) -> list[tuple[list[str], str]]:
    """The words of every such command on the page, and what it prints."""
    found: list[tuple[list[str], str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = each.partition("\n")
            words = shlex.split(line)
            found += [(words[1:], shown)] if words[0] == command else []
    return found


def pattern(shown: str) -> str:
    """What a command may print: `…` stands for anything, and columns may be further apart."""
    lines = [r"\s+".join(map(re.escape, line.split())) for line in shown.strip().splitlines()]
    return r"\s+".join(lines).replace("…", ".*")


def test_the_walk_is_what_happens(project: Project) -> None:
    project.env["ENABLE_REPLY_DERIVATION"] = "true"
    (project.folder / "build.log").write_text("all green\n", encoding="utf-8")
    known: dict[str, str] = {}
    for words, shown in walk("remit"):
        done = project.here(*(known.get(word, word) for word in words))
        assert done.status == 0, (words, done.err)
        printed = "\n".join(line for line in (done.out + done.err).splitlines() if " INFO " not in line)
        assert re.fullmatch(pattern(shown), printed, re.DOTALL), (words, printed)
        known |= {f"{kind}_TICKET": name for name, kind in re.findall(r"(tkt_\w+)\s+(TRIAGE|TOOL|REPLY)", done.out)}
        if token := re.search(r"token (\S+)", done.out):
            known["TOKEN"] = token[1]
        if "lease" in words:
            known["TICKET"] = done.out.split()[0]


def filled_in(word: str, known: dict[str, str]) -> str:
    """A word of the page with what came before."""
    for name in sorted(known, key=len, reverse=True):
        word = word.replace(name, known[name])
    return word


@pytest.mark.slow
def test_the_walk_over_http_is_what_happens(project: Project) -> None:
    project.env["ENABLE_REPLY_DERIVATION"] = "true"
    (project.folder / "build.log").write_text("all green\n", encoding="utf-8")
    with project.start("serve", "--port", "0") as server:
        assert server.stdout is not None
        known = {"$URL": server.stdout.readline().strip()}
        try:
            for words, shown in walk("curl"):
                said = [filled_in(word, known) for word in ("curl", *words)]
                done = subprocess.run(said, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
                assert re.match(pattern(shown), done.stdout, re.DOTALL), (said, done.stdout)
                if found := re.search(r'"derived":{"reason":"created","ticket":"(\w+)"', done.stdout):
                    known["TOOL_TICKET"] = found[1]
                if found := re.search(r'{"id":"(\w+)".*"lease_token":"([^"]+)"', done.stdout):
                    known |= {"TICKET": found[1], "TOKEN": found[2]}
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)


def test_every_code_on_the_page_exists() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+|[a-z]+(?:_[a-z]+){2,})`", PAGE))
    codes = {name for name in named if name in Code.__members__}
    assert {"CONFIRMATION_REQUIRED", "missing_parent_triage_ticket", "gate_tool_verdict_not_proceed"} <= codes


def test_every_reason_of_the_contract_is_in_the_table() -> None:
    source = (Path(__file__).parents[2] / "src/remit/codes.py").read_text(encoding="utf-8")
    block = source.partition("# --- what happened to a reply")[2].partition("# ---")[0]
    reasons = re.findall(r"^    (\w+) = Row", block, re.MULTILINE)
    table = PAGE.partition("`derive_reason` says")[2]
    assert reasons
    assert [reason for reason in reasons if f"`{reason}`" not in table] == []
