"""`remit recorder` and `remit witness`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from remit.evidence.note import Checkpoint
    from remit.parts.recorder.keys import RecordSigner

COMMANDS: Final[dict[str, LazyCommand]] = {
    "key": LazyCommand("Commands", "Make the key if there is none, and print its public half."),
    "sign": LazyCommand("Commands", "Sign what is recorded now, once."),
    "checkpoints": LazyCommand("Commands", "Print the signed checkpoints in the journal."),
}


@click.group("recorder", cls=LazyGroup, package="remit.parts.recorder.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Sign what is recorded: the key, and checkpoints.

    With recorder.origin set, `remit serve` and `remit worker` sign while they run. docs/audit.md says what that shows.
    """
    show_help(context)


@command.command("key")
@json_option("the public key")
@pass_state
def key_command(state: CommandState) -> int:
    """Make the key if there is none, and print its public half.

    Give the public key to those who will verify: `remit verify --key KEY`. The private one stays in the file of
    recorder.key, or in your data folder.
    """
    import os

    from remit.parts.recorder.keys import key_place, known_signers
    from remit.parts.recorder.settings import RecorderSettings
    from remit.settings.parts import settings_of

    own = settings_of(state.trusted(), "recorder", RecorderSettings)
    if not own.origin:
        raise SettingsError("recorder.origin is empty", remedy="Name the log, such as example.com/agents.")
    place = key_place(own, os.environ).file
    if place is not None:
        _make(place)
    signers = known_signers(own, os.environ)
    if not signers:
        raise UsageError("recorder.key_command prints the key", remedy="Run that program to make one.")
    return _print(state, signers[0], place)


@command.command("sign")
@json_option("the checkpoint, and why places did not take it")
@pass_state
def sign_command(state: CommandState) -> int:
    """Sign what is recorded now, once.

    For a journal that no server or worker keeps open: run it after `remit run`, or by cron. It does nothing while
    another process signs, or nothing is recorded. It exits with status 1 if a witness or a place did not take the
    checkpoint.
    """
    from remit.cli.runner import run_to_end
    from remit.journal.event import HeadQuery
    from remit.parts.recorder.wiring import close, open_recorder

    async def signed() -> tuple[str, dict[str, str]] | None:
        async with state.remit(code="unused", writes=True) as remit:
            recorder, publisher = await open_recorder(remit.runtime)
            if not await remit.runtime.journal.heads(HeadQuery(limit=1)):
                return None
            while await recorder.look(at_once=True):
                pass
            if not recorder.records:
                return "", {}
            await close(recorder, publisher)
            return publisher.text, publisher.failures

    done = run_to_end(signed())
    note, failures = done or ("", {})
    if state.as_json:
        state.output.json({"checkpoint": note, "failures": failures})
    elif done is None:
        state.note("nothing is recorded yet: there is nothing to sign")
    elif note:
        state.output.out.line(note.rstrip())
    else:
        state.note("another process signs, and covers this within its time")
    return exit_codes.ERROR if failures else exit_codes.OK


@command.command("checkpoints")
@click.option("--limit", metavar="N", default=100, type=click.IntRange(1, 100_000), help="Print the newest N.")
@click.option(
    "--stamps",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write what an authority stamped to FOLDER: SIZE.checkpoint, the text, and SIZE.tsr, its answer.",
)
@json_option("the checkpoints")
@pass_state
def checkpoints_command(state: CommandState, limit: int, stamps: Path | None) -> int:
    """Print the signed checkpoints in the journal, the newest last, as signed notes (c2sp.org)."""
    from remit.cli.runner import run_to_end
    from remit.parts.recorder.log import notes, stamps_of

    async def read() -> tuple[list[str], list[tuple[Checkpoint, bytes]]]:
        async with state.remit(code="unused") as remit:
            journal = remit.runtime.journal
            return await notes(journal, limit), await stamps_of(journal) if stamps is not None else []

    texts, stamped = run_to_end(read())
    if stamps is not None:
        stamps.mkdir(parents=True, exist_ok=True)
        for checkpoint, stamp in stamped:
            (stamps / f"{checkpoint.size}.checkpoint").write_text(checkpoint.body, encoding="utf-8")
            (stamps / f"{checkpoint.size}.tsr").write_bytes(stamp)
    if state.as_json:
        state.output.json(texts)
    elif texts:
        state.output.out.line("\n".join(texts).rstrip())
    else:
        state.note(
            "nothing is signed yet: `remit recorder sign`, or recorder.origin and `remit serve` or `remit worker`"
        )
    return exit_codes.OK


@click.command("witness")
@click.option("--log", "logs", multiple=True, metavar="KEY", help="Public key of a log to witness; repeatable.")
@click.option(
    "--recorder",
    "recorders",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Public key file of who may register anchors, as `remit export --publish` writes it; repeatable.",
)
@click.option("--name", metavar="NAME", default="remit.witness", help="Its name, such as witness.example.org/w1.")
@click.option(
    "--folder",
    metavar="FOLDER",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where its key and what it cosigned last are kept.",
)
@click.option("--host", metavar="HOST", default="127.0.0.1", help="The address to listen on. Default: this machine's.")
@click.option("--port", metavar="PORT", default=8765, type=click.IntRange(0, 65535), help="The port. Default: 8765.")
@pass_state
def witness_command(
    state: CommandState,
    logs: tuple[str, ...],
    recorders: tuple[Path, ...],
    name: str,
    folder: Path,
    host: str,
    port: int,
) -> int:
    """Hold the checkpoints of journals, and refuse what does not continue them.

    Run it on another machine, by other people: it cosigns each checkpoint that continues the one it holds, and refuses
    a journal that was put back, or that tells its history in two ways. It speaks tlog-witness (c2sp.org). With
    --recorder it also keeps a log in which recorders register their newest records of calls over MCP (anchors of AEL).
    Without either it prints its public key, for recorder.witness_key and audit.anchor_key, and ends. Never start it
    again with a folder that was put back.
    """
    from remit.cli.runner import run_async
    from remit.clock import SystemClock
    from remit.evidence.note import WITNESS, is_name
    from remit.journal.seals import contents
    from remit.journal.signing_key import private_keys
    from remit.parts.recorder.keys import RecordSigner, key_of
    from remit.parts.recorder.witness import Witness, open_anchors, serve

    if not is_name(name):
        raise UsageError("--name holds a space or a +", remedy="Write, say, witness.example.org/w1.")
    place = folder / "witness.pem"
    _make(place)
    signer = RecordSigner(name, private_keys(contents(place, "--folder"), str(place))[0], WITNESS)
    if not logs and not recorders:
        return _print(state, signer, place)
    clock = SystemClock()
    witness = Witness(folder, [key_of(text, "--log") for text in logs], signer, clock)
    paths = {"/add-checkpoint": witness.add}
    if recorders:
        paths |= open_anchors(folder, recorders, signer, clock)

    def ready(port: int) -> None:
        state.note(f"cosigns as {signer.key}")
        state.note(f"listens on http://{host}:{port}")

    return run_async(lambda stop: serve(paths, host, port, stop.requested, ready), gentle=True)


def _make(place: Path) -> None:
    from remit.journal.signing_key import make_key

    try:
        make_key(place)
    except OSError as error:
        raise UsageError(f"cannot make {place}: {error.strerror}", remedy="Choose another place.") from error


def _print(state: CommandState, signer: RecordSigner, place: Path | None) -> int:
    if state.as_json:
        state.output.json({"key": str(signer.key), "file": str(place) if place else ""})
    else:
        state.output.out.line(str(signer.key))
        if place is not None:
            state.note(f"the private key is in {place}")
    return exit_codes.OK
