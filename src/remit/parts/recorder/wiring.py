"""The recorder as the settings say: what signs beside a worker or a server, what verifies, what `doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from remit.canonical import canonical
from remit.capability import Check, Look, Upkeep
from remit.clock import SECOND, isoformat
from remit.errors import JournalError, RemitError, SettingsError, UsageError
from remit.evidence.note import notes_in
from remit.journal.leases import Owner
from remit.parts.recorder.keys import key_of, known_signers, load_signers, roots_in
from remit.parts.recorder.log import newest
from remit.parts.recorder.publisher import Publisher
from remit.parts.recorder.recorder import MISSED, LogRecorder, RecorderTerms
from remit.parts.recorder.settings import RecorderSettings
from remit.parts.recorder.verifier import LogVerifier
from remit.settings.parts import settings_of
from remit.tasks import uncut

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.journal.journal import Journal
    from remit.service.verification import Elsewhere
    from remit.wiring.runtime import Runtime

_log: Final = logging.getLogger("remit.recorder")
PART: Final = "recorder"
_TICK_S: Final = 1.0
"""Seconds between two looks at what was recorded."""
_AGAIN_S: Final = 5.0
"""Seconds until something that failed is tried again."""
_LAST_S: Final = 5.0
"""Seconds for the last checkpoint to reach its places when the process stops."""


async def open_recorder(runtime: Runtime) -> tuple[LogRecorder, Publisher]:
    """Return what records, and what publishes. Raises SettingsError."""
    settings, own = runtime.settings, settings_of(runtime.settings, PART, RecorderSettings)
    if not own.origin:
        raise SettingsError("recorder.origin is empty", remedy="Name the log, such as example.com/agents.")
    shown = {row.key: msgspec.to_builtins(row.value) for row in settings.explain()}
    terms = RecorderTerms(
        origin=own.origin,
        every_events=own.every_events,
        every_seconds=own.every_seconds,
        session_seconds=own.session_seconds,
        settings=canonical(shown),
    )
    signers = await load_signers(own, os.environ, settings.folder)
    publisher = Publisher(runtime.journal, own, os.environ, settings.folder)
    return LogRecorder(runtime.journal, terms, signers, publisher), publisher


def work_on_checkpoints(remit: Remit, _stop: asyncio.Event, _role: str) -> Upkeep | None:
    """Return what signs beside a worker or a server; None without `recorder.origin`."""
    own = settings_of(remit.settings, PART, RecorderSettings)
    return Upkeep(PART, partial(_record, remit)) if own.origin else None


async def _record(remit: Remit, tell: Callable[[str], object]) -> None:
    """Sign checkpoints until cancelled, then once more."""
    recorder, publisher = await open_recorder(remit.runtime)
    publishing = asyncio.create_task(publisher.keep(_AGAIN_S, tell), name="remit:recorder:publish")
    try:
        while True:
            more = await uncut(recorder.look())  # or whether a checkpoint was recorded would not be known
            if publishing.done():
                await publishing  # it ends by an error only, of our own: what a place answers is told
            if not more:
                await remit.clock.sleep(_TICK_S)
    finally:
        publishing.cancel()
        await asyncio.wait([publishing])
        await close(recorder, publisher)


async def close(recorder: LogRecorder, publisher: Publisher) -> None:
    """Sign what is left, publish it if that is soon done, and end the session with what others said of it."""
    try:
        await recorder.cover()
        try:
            async with asyncio.timeout(_LAST_S):
                await publisher.publish(last=True)
        except TimeoutError:
            _log.warning("the last checkpoint: no place took it in time")
        for place, reason in publisher.failures.items():
            _log.warning("the last checkpoint: %s: %s", place, reason)
        await recorder.end()
    except RemitError as error:
        _log.warning("the last checkpoint: %s", error)


def open_verifier(journal: Journal, own: RecorderSettings, elsewhere: Elsewhere) -> LogVerifier:
    """Return what compares a journal with its checkpoints. Raises SettingsError or UsageError."""
    keys = [key_of(text, "--key") for text in elsewhere.keys]
    if own.origin:
        try:
            keys += [signer.key for signer in known_signers(own, os.environ)]
        except SettingsError as error:  # another user's key: who verifies need not be able to sign
            _log.warning("checkpoints are verified without the recorder's key: %s", error)
    if own.witness_key:
        keys.append(key_of(own.witness_key, "recorder.witness_key"))
    notes = notes_in(elsewhere.notes)
    if elsewhere.notes.strip() and not notes:
        raise UsageError("there is no checkpoint in the file", remedy="Name a file of recorder.file or of a witness.")
    place, setting = (
        (elsewhere.roots, "--stamp-roots") if elsewhere.roots else (own.stamp_roots, "recorder.stamp_roots")
    )
    return LogVerifier(journal, keys, notes, roots_in(place, setting))


async def check_recorder(look: Look) -> list[Check]:
    """Return whether what is recorded is signed."""
    own = settings_of(look.settings, PART, RecorderSettings)
    if not own.origin:
        return []
    try:
        if not own.key_command and not known_signers(own, os.environ):
            return [Check(PART, "fail", "there is no key to sign with", "Run `remit recorder key`.")]
        if own.witness_key:
            key_of(own.witness_key, "recorder.witness_key")
        roots_in(own.stamp_roots, "recorder.stamp_roots")
        async with look.open() as remit:
            return [await _state(remit, own)]
    except JournalError:  # which has a check of its own
        return []
    except RemitError as error:
        return [Check.failed(PART, error)]


async def _state(remit: Remit, own: RecorderSettings) -> Check:
    session = await newest(remit.runtime.journal, own.origin)
    if session is None:
        return Check(PART, "warn", f"{own.origin}: nothing is signed yet", "Start `remit serve` or `remit worker`.")
    at, silent = isoformat(session.last_at), remit.clock.now() - session.last_at
    owner, last = Owner.parse(session.opened.owner), session.checkpoints[-1:]
    size = last[0].size if last else session.opened.size
    is_late = silent > MISSED * session.opened.every_seconds * SECOND or (owner is not None and owner.dead())
    if session.is_open and is_late:
        return Check(PART, "warn", f"{own.origin}: nothing was signed since {at}", "Start its worker or server again.")
    least = session.opened.size if session.is_open else size
    if own.witness and last and session.cosigned < least:
        reason = f"{own.origin}: {size} leaves are signed, the last at {at}; the witness did not cosign"
        return Check(PART, "warn", reason, "See /health, or what `remit recorder sign` says.")
    when = f"the last at {at}" if session.is_open else f"the last session ended at {at}"
    return Check(PART, "ok", f"{own.origin}: {size} leaves are signed; {when}")
