"""`remit export`: the evidence of a job, a session or a ticket, as a package or in a format of others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.audit.formats import ENDINGS
from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.audit.formats import Form
    from remit.cli.opened import Opened


@click.command("export")
@click.argument("job", shell_complete=complete.jobs)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file; `-` is stdout. Default: the id with the format's ending, here.",
)
@click.option(
    "--format", "form", type=click.Choice([*ENDINGS]), default="package", help="Remit's own package, or one of others."
)
@click.option("--to", metavar="URL", help="With --format otlp: send the spans to this collector, and write no file.")
@click.option(
    "--publish",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the public key there: keys.json and FINGERPRINT.pub.",
)
@click.option("--redacted", is_flag=True, help="Leave out the values that stand beside events; their digests stay.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option("the file and the verdict about it")
@pass_state
def command(
    state: State,
    job: str,
    output: Path | None,
    form: Form,
    to: str | None,
    publish: Path | None,
    *,
    redacted: bool,
    force: bool,
) -> int:
    """Export the evidence of a job: everything recorded, in a zip that anyone can check.

    The zip holds every event with its hash, the values, and verify.py, which checks it with Python alone: no Remit, no
    network, no key. JOB is an id, a unique ending of one, `last`, a session's id, or a stream such as `ticket/ID`. The
    same record gives the same bytes each time. `remit verify FILE` checks a package too.

    --format writes it for the tools of others: `ael` (Agent Evidence Level), `in-toto` (AI Agent Action in DSSE),
    `receipts` (signed decision receipts), `ocsf` (API Activity) and `otlp` (spans). The first three are signed with
    audit.key.
    """
    from io import BytesIO

    from remit.atomic import replace_file

    if to is not None and (form != "otlp" or output is not None):
        raise UsageError("--to sends spans", remedy="Use it with --format otlp, and without --output.")

    async def pack(remit: Opened) -> tuple[str, bytes, dict[str, bytes]]:
        identifier, file = job if "/" in job else await remit.service.jobs.find(job), BytesIO()
        await remit.service.audit.package(identifier, file, redacted=redacted, form=form)
        await remit.service.audit.note_export(identifier, "export")
        return identifier, file.getvalue(), await remit.service.audit.published() if publish is not None else {}

    identifier, data, keys = state.ask(pack, code="unused")
    if publish is not None:
        publish.mkdir(parents=True, exist_ok=True)
        for name, content in keys.items():
            replace_file(publish / name, content)
    if to is not None:
        return _send(state, data, to)
    if output == Path("-"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return exit_codes.OK
    place = output or Path(f"{identifier.replace('/', '-')}{ENDINGS[form]}")
    if place.exists() and not force:
        raise UsageError(f"{place} exists", remedy="Name another file with --output, or use --force.")
    replace_file(place, data)
    if form == "package":
        _say(state, place, len(data))
    elif state.as_json:
        state.output.json({"file": str(place), "bytes": len(data), "format": form})
    else:
        state.output.out.line(f"{place}  {len(data)} bytes")
        state.note(f"check it: remit verify {place}; what it cannot show: docs/audit.md")
    return exit_codes.OK


def _say(state: State, place: Path, size: int) -> None:
    from remit.evidence.verify import check

    verdict = check(str(place))
    if state.as_json:
        state.output.json({"file": str(place), "bytes": size, **verdict.members()})
    else:
        state.output.out.line(f"{place}  {size} bytes  {verdict.events} events in {verdict.streams} streams")
        state.output.out.line(verdict.hash)
        state.note(f"check it anywhere: unzip -p {place} verify.py > verify.py; python3 verify.py {place}")


def _send(state: State, data: bytes, url: str) -> int:
    from remit.audit.collector import send

    count = send(data, url)
    if state.as_json:
        state.output.json({"sent": count})
    else:
        state.output.out.line(f"{count} spans sent")
    return exit_codes.OK
