"""`remit export`: the evidence of a job, a session, a ticket or a time, as a package or in a format of others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.file_writer import require_free
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean
from remit.codes import Code
from remit.errors import ChainBrokenError, UsageError
from remit.parts.audit.formats import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.cli.access import Opened
    from remit.evidence.verify import PackageVerdict
    from remit.parts.audit.formats import Form
    from remit.parts.audit.formats.ael_check import Custody

_PART: Final = 1 << 20


@click.command("export")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.option("--since", metavar="AGE", help="Everything written to in this time, instead of JOB: 7d, or a time.")
@click.option("--until", metavar="AGE", help="With --since: nothing that was only written to later. Default: now.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file; `-` is stdout. Default: the id or the time with the format's ending, here.",
)
@click.option(
    "--format", "form", type=click.Choice([*ENDINGS]), default="package", help="Remit's own package, or one of others."
)
@click.option("--to", metavar="URL", help="With --format otlp: send the spans to this collector, and write no file.")
@click.option(
    "--beside",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --format ael: add what a second recorder exported of the same calls.",
)
@click.option(
    "--custody",
    type=click.Choice(["same-host", "same-operator", "independent"]),
    help="With --beside: who keeps the two recorders apart. You say it; nothing proves it.",
)
@click.option(
    "--anchored",
    is_flag=True,
    help="With --format ael: add what the log of audit.anchor_url has of its records.",
)
@click.option(
    "--publish",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the public key there too: keys.json and FINGERPRINT.pub; without JOB, that alone.",
)
@click.option("--redacted", is_flag=True, help="Leave out the values that stand beside events; their digests stay.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option("the file and the verdict about it")
@pass_state
def command(
    state: CommandState,
    job: str | None,
    since: str | None,
    until: str | None,
    output: Path | None,
    form: Form,
    to: str | None,
    beside: Path | None,
    custody: Custody | None,
    publish: Path | None,
    *,
    anchored: bool,
    redacted: bool,
    force: bool,
) -> int:
    """Export the evidence of a job: everything recorded, in a zip that anyone can check.

    The zip holds every event with its hash, the values, and verify.py, which checks it with Python alone: no Remit, no
    network, no key. JOB is an id, a unique ending of one, `last`, the id of a session or a ticket, or a stream by its
    name. The same record gives the same bytes each time. `remit verify FILE` checks a package too.
    --publish alone writes the key of audit.key for others, before anything is exported.

    --since and --until, such as 30d or 2026-11-01T00:00:00Z, put all that was written to in a time into one package,
    each job, session and ticket whole.

    --format writes it for the tools of others: `ael` (Agent Evidence Level), `in-toto` (AI Agent Action in DSSE),
    `receipts` (signed decision receipts), `ocsf` (API Activity) and `otlp` (spans). The first three are signed with
    audit.key. --beside puts two artifacts of AEL together, of recorders on both sides of the same calls over MCP, and
    --anchored adds proofs of a log that got the hashes of their records while they were recorded.
    """
    from tempfile import NamedTemporaryFile

    if to is not None and (form != "otlp" or output is not None):
        raise UsageError("--to sends spans", remedy="Use it with --format otlp, and without --output.")
    if (beside is None) != (custody is None) or (beside is not None and form != "ael"):
        raise UsageError("--beside is of two artifacts of AEL", remedy="Give --format ael, --beside and --custody.")
    if anchored and form != "ael":
        raise UsageError("--anchored is of an artifact of AEL", remedy="Give --format ael.")
    alone = job is None and since is None
    if publish is not None and _publish(state, publish, alone=alone):
        return exit_codes.OK
    _check_scope(job, since, until, form)
    with NamedTemporaryFile() as file:
        if since is None:
            name = _pack(state, job or "", file, form, redacted=redacted)
        else:
            name = _pack_interval(state, since, until, file, redacted=redacted)
        if beside is not None and custody is not None:
            _join(file, beside, custody)
        anchors = _anchor(state, file) if anchored else None
        file.seek(0)
        if to is not None:
            return _send(state, file.read(), to)
        return _write(state, file, output, f"{name}{ENDINGS[form]}", form, anchors, force=force)


def _check_scope(job: str | None, since: str | None, until: str | None, form: Form) -> None:
    if (job is None) == (since is None) or (until is not None and since is None):
        raise UsageError(
            "an export is of one JOB, or of a time", remedy="Give JOB, or --since with or without --until."
        )
    if since is not None and form != "package":
        raise UsageError(f"--format {form} is of one JOB", remedy="Leave --since out, or --format.")


def _publish(state: CommandState, folder: Path, *, alone: bool) -> bool:
    """Write the files that others check signatures with, and show them if that is all; return whether it is."""
    from remit.atomic import replace_file

    keys: dict[str, bytes] = state.ask(lambda remit: remit.service.audit.published(), code="unused")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in keys.items():
        replace_file(folder / name, content)
    if alone:
        files = [str(folder / name) for name in keys]
        state.show({"files": files}, lambda state, _: state.output.out.line("\n".join(map(clean, files))))
    return alone


def _pack(state: CommandState, job: str, file: IO[bytes], form: Form, *, redacted: bool) -> str:
    """Write what is recorded of a job; return the name that its file gets."""
    from remit.parts.audit.noun import file_name, scope_of

    async def pack(remit: Opened) -> str:
        identifier = await scope_of(remit.service, job)
        await remit.service.audit.package(identifier, file, redacted=redacted, form=form)
        await remit.service.audit.note_export(identifier, "export")
        return identifier

    return file_name(state.ask(pack, code="unused"))


def _join(file: IO[bytes], beside: Path, custody: Custody) -> None:
    """Put the other recorder's artifact into the one in `file`."""
    from remit.parts.audit.formats.account import Bundle
    from remit.parts.audit.formats.ael_check import join

    _rewrite(file, join(Bundle(file), beside, custody))


def _anchor(state: CommandState, file: IO[bytes]) -> int:
    """Put what the log has of the artifact in `file` into it; return the number of anchors."""
    import json

    from remit.evidence.anchors import MOST
    from remit.parts.audit.anchoring.client import AnchorClient
    from remit.parts.audit.formats.account import Bundle
    from remit.parts.audit.formats.ael_anchors import FILE, anchored
    from remit.parts.audit.settings import AuditSettings
    from remit.settings.parts import settings_of

    own = settings_of(state.settings(), "audit", AuditSettings)
    if not own.anchor_url:
        raise UsageError("there is no log to ask", remedy="Set audit.anchor_url and audit.anchor_key.")
    client, bundle = AnchorClient.of(own), Bundle(file)
    try:
        files = anchored({name: bundle.read(name) for name in bundle.names}, client.prove, client.fingerprint, MOST)
    except (OSError, ValueError) as error:
        remedy = "Try again once it answers, or leave --anchored out."
        raise UsageError(f"the log of anchors proves nothing: {error}", remedy=remedy) from error
    _rewrite(file, files)
    return len(json.loads(files[FILE])["entries"]) if FILE in files else 0


def _rewrite(file: IO[bytes], files: Mapping[str, bytes]) -> None:
    from remit.parts.audit.formats.account import pack

    file.seek(0)
    file.truncate()
    file.write(pack(files))


def _pack_interval(state: CommandState, since: str, until: str | None, file: IO[bytes], *, redacted: bool) -> str:
    """Write what is recorded of a time; return the name that its file gets."""
    from remit.cli.values import moment_us
    from remit.clock import SystemClock
    from remit.evidence.interval import Interval

    now = SystemClock().now()
    interval = Interval(moment_us(since, "--since", now), moment_us(until, "--until", now) if until else now)

    async def pack(remit: Opened) -> None:
        await remit.service.audit.package_between(*interval, file, redacted=redacted)
        await remit.service.audit.note_export(str(interval), "export", of="interval")

    state.ask(pack, code="unused")
    return interval.file_name


def _write(
    state: CommandState,
    file: IO[bytes],
    output: Path | None,
    name: str,
    form: Form,
    anchors: int | None,
    *,
    force: bool,
) -> int:
    """Put what was packed where it belongs, and say what it is."""
    from remit.atomic import replace_file
    from remit.cli.output import counted

    if output == Path("-"):
        from shutil import copyfileobj

        copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return exit_codes.OK
    place = output or Path(name)
    require_free(place, force=force)
    verdict = _checked(file) if form == "package" else None
    replace_file(place, iter(lambda: file.read(_PART), b""))
    size = place.stat().st_size
    if verdict is not None:
        _say(state, place, size, verdict)
    elif state.as_json:
        extra = {} if anchors is None else {"anchors": anchors}
        state.output.json({"file": str(place), "bytes": size, "format": form, **extra})
    else:
        words = "" if anchors is None else f"  {counted(anchors, 'anchor')}"
        state.output.out.line(f"{place}  {size} bytes{words}")
        state.note(f"check it: remit verify {place}; what it cannot show: docs/audit.md")
    return exit_codes.OK


def _checked(file: IO[bytes]) -> PackageVerdict:
    """Return the verdict on a package that was written. Raise ChainBrokenError where it would be rejected."""
    from remit.evidence.verify import check
    from remit.journal.values import RESTORE

    file.flush()
    verdict = check(file.name)
    if verdict.state == "rejected":
        raise ChainBrokenError(verdict.problem, code=Code.RECORD_CONTRADICTED, remedy=RESTORE)
    return verdict


def _say(state: CommandState, place: Path, size: int, verdict: PackageVerdict) -> None:
    from remit.cli.output import counted

    recorded = f"{counted(verdict.events, 'event')} in {counted(verdict.streams, 'stream')}"
    if state.as_json:
        state.output.json({"file": str(place), "bytes": size, **verdict.members()})
    else:
        state.output.out.line(f"{place}  {size} bytes  {recorded}")
        if "Z/" in verdict.scope:
            state.output.out.line(verdict.scope)
        state.output.out.line(verdict.hash)
        state.note(f"check it anywhere: unzip -p {place} verify.py > verify.py; python3 verify.py {place}")


def _send(state: CommandState, data: bytes, url: str) -> int:
    from remit.cli.output import counted
    from remit.parts.audit.collector import send

    count = send(data, url)
    if state.as_json:
        state.output.json({"sent": count})
    else:
        state.output.out.line(f"{counted(count, 'span')} sent")
    return exit_codes.OK
