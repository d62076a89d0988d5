"""`remit work init`: a workflow.toml to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.commands.stage import staged_option

_SCHEMA: Final = ".remit/workflow.schema.json"
_WORKFLOW: Final = """\
#:schema ./.remit/workflow.schema.json
# How this project hands out its work. `remit work --help` lists the commands; docs/work.md explains every key.

[outbox]
backend = "local"            # issues are kept in Remit's journal: local#1, local#2, ...

# A program that does the work, or that tests it. It runs in a git worktree of its own, with stdin closed.
# {pack} is the context pack, {repo} the worktree, {issue} and {run} name the work; the environment says it too:
# REMIT_CONTEXT_PACK, REMIT_ISSUE_REF, REMIT_RUN_ID. The worktree begins at your last commit: commit work.sh first.
# It runs in the sandbox (`remit sandbox probe` says whether there is one); isolation = "none" runs it with your rights.
[executors.shell]
program = "sh"
args = ["work.sh"]
timeout_seconds = 3600

# Of every run. Remit itself runs the commands, on what the run committed; each must end with exit code 0.
[constraints]
forbidden_paths = []
notes = []
# [[constraints.commands]]
# args = ["make", "test"]
# timeout_seconds = 600
"""
_TEMPLATE: Final = """\
SpecRef: none
ContractsRef: none
Repo: .
Role: work
Priority: prio:p2

## Goal

## Scope

## DependsOn

## BlockedBy

## Acceptance Criteria
"""
_RULES: Final = """\
# What runs without a question: opening issues, comments on them, their labels.
[[policy.rules]]
id = "outbox"
effect = "allow"
tools = "outbox.*"
"""
_FILES: Final = {"workflow.toml": _WORKFLOW, ".remit/issue.md": _TEMPLATE}


@click.command("init")
@staged_option
@json_option("the files that were written")
@pass_state
def command(state: CommandState, staged: bool) -> int:
    """Write a commented workflow.toml and an issue template into this folder.

    A file that is there stays as it is. The rule that lets Remit write to local issues without a question is printed.
    """
    from remit.wiring.schemas import schema_text

    folder = Path.cwd()
    if not any((place / ".git").exists() for place in (folder, *folder.parents)):
        reason = f"{folder} is in no git repository, and runs work in worktrees of one"
        remedy = "Begin where the code is, or: git init && git add . && git commit -m Begin"
        raise UsageError(reason, code=Code.env_unavailable, remedy=remedy)
    files = {**_FILES, _SCHEMA: schema_text("workflow.toml")}
    written = [name for name in files if not (folder / name).exists() and not (folder / name).is_symlink()]
    if not staged:
        from remit.cli.trust_question import still_trusted

        with still_trusted(state.settings, trusted=state.trust):
            for name in written:
                path = folder / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.write_text(files[name], encoding="utf-8")

    def told(state: CommandState, _: object) -> None:
        for name in written:
            state.output.out.line(f"{'would write' if staged else 'wrote'} {name}")

    state.show({"files": written}, told)
    state.note(
        "opening issues and writing to them asks you first; to let Remit write without, add this to remit.toml:\n\n"
        + _RULES
    )
    state.note(f'next: {state.command("work", "issue")} "Fix the flaky test"')
    return exit_codes.OK
