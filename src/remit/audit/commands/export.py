"""`remit export`: the evidence package of a job, a session or a ticket."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened


@click.command("export")
@click.argument("job", shell_complete=complete.jobs)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file; `-` is stdout. Default: the id with .zip, here.",
)
@click.option("--redacted", is_flag=True, help="Leave out the values that stand beside events; their digests stay.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option("the file and the verdict about it")
@pass_state
def command(state: State, job: str, output: Path | None, *, redacted: bool, force: bool) -> int:
    """Export the evidence of a job: everything recorded, in a zip that anyone can check.

    The zip holds every event with its hash, the values, and verify.py, which checks it with Python alone: no Remit, no
    network, no key. JOB is an id, a unique ending of one, `last`, a session's id, or a stream such as `ticket/ID`. The
    same record gives the same bytes each time. `remit verify FILE` checks a package too.
    """
    from io import BytesIO

    from remit.atomic import replace_file
    from remit.evidence.verify import check

    async def pack(remit: Opened) -> tuple[str, bytes]:
        found, file = job if "/" in job else await remit.service.jobs.find(job), BytesIO()
        await remit.service.audit.package(found, file, redacted=redacted)
        await remit.service.audit.note_export(found, "export")
        return found, file.getvalue()

    found, data = state.ask(pack, code="unused")
    if output == Path("-"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return exit_codes.OK
    place = output or Path(f"{found.replace('/', '-')}.zip")
    if place.exists() and not force:
        raise UsageError(f"{place} exists", remedy="Name another file with --output, or use --force.")
    replace_file(place, data)
    verdict = check(str(place))
    if state.as_json:
        state.output.json({"file": str(place), "bytes": len(data), **verdict.members()})
    else:
        state.output.out.line(f"{place}  {len(data)} bytes  {verdict.events} events in {verdict.streams} streams")
        state.output.out.line(verdict.hash)
        state.note(f"check it anywhere: unzip -p {place} verify.py > verify.py; python3 verify.py {place}")
    return exit_codes.OK
