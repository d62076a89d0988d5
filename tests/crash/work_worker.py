"""A control plane that is going to be killed, and the executors that it hands issues to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from remit import Remit
from remit.cli.services import keep_part
from remit.parts.work.control import control_of
from remit.service import calls
from remit.settings import load

EXECUTORS: Final = {
    "commit": "echo $REMIT_ISSUE_REF > done.txt",
    "slow": "sleep 0.7; echo $REMIT_ISSUE_REF > done.txt",
    "fail": "exit 7",
    "hang": "sleep 86400",
    "lie": "sed s/RUN/$REMIT_RUN_ID/ LIE | sed s/ISSUE/$REMIT_ISSUE_REF/ > $REMIT_CONTEXT_PACK/work_result.txt",
    "crash": "kill -9 $$",
    "fork": "echo $REMIT_ISSUE_REF > done.txt; setsid sh -c 'sleep 2; echo $REMIT_RUN_ID >> WITNESS' &",
    "babble": "echo what > $REMIT_CONTEXT_PACK/work_result.txt",
}
"""By name, the shell script of each."""
_LIE: Final = (
    "IssueRef: ISSUE\nRunId: RUN\nStatus: ok\nPR: none\nCommit: none\nTests: make test => pass\n\nAll is done.\n"
)
ENDS: Final = {
    "commit": {"review"},
    "slow": {"review"},
    "fork": {"review"},
    "fail": {"blocked"},
    "hang": {"blocked"},
    "crash": {"blocked"},
    "lie": {"blocked"},
    "babble": {"needs-human"},
}
"""By executor, the states in which an issue may end, if nothing else happens to it."""


def workflow(witness: Path) -> str:
    """Return the workflow of a project with a group for each executor."""
    tables = []
    lie = witness.with_name("lie.txt")
    lie.write_text(_LIE)
    for name, script in EXECUTORS.items():
        args = json.dumps(["-c", script.replace("WITNESS", str(witness)).replace("LIE", str(lie))])
        limit = 1 if name == "hang" else 600
        tables.append(
            f'[executors.{name}]\nprogram = "sh"\nargs = {args}\nisolation = "none"\ntimeout_seconds = {limit}\n'
            f'[groups.{name}]\nrole = "work"\nexecutor = "{name}"\nmax_concurrent = 2\nlisten_labels = ["ex:{name}"]\n'
        )
    return "\n".join(tables)


def opened(url: str, folder: Path, *, work: bool) -> Remit:
    """Return a Remit in the repository of the test."""
    flags = {
        "journal.url": url,
        "policy.rules": [{"effect": "allow", "tools": ["outbox.*", "executor.*"]}],
        "app.principal": "alice",
        "jobs.lease_seconds": 2,
        "sandbox.folder": str(folder.with_name("places")),
    }
    return Remit(settings=load(env={}, cwd=folder, flags=flags), work=work)


def serve_until_killed(url: str, folder: str) -> None:
    """Be a control plane; entry point of the process that is killed."""
    setattr(calls, "_LEASE_S", 1.0)  # noqa: B010 - a process that was killed gives way sooner

    async def main() -> None:
        async with opened(url, Path(folder), work=True) as remit:
            await keep_part(remit, control_of(remit, asyncio.Event()))

    asyncio.run(main())
