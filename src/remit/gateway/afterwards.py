"""Whether approvals that stand in the journal prove what they have to: checked after the fact, by `remit verify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from remit.codes import Code
from remit.errors import PayloadErasedError
from remit.gateway.confirmation import rebinding
from remit.journal.kinds import ConfirmationDecided, ConfirmationRequested, ConfirmationUsed, decode

if TYPE_CHECKING:
    from remit.gateway.proof import Proofs
    from remit.journal.event import Event, Head
    from remit.journal.journal import Journal


class Checked(msgspec.Struct, frozen=True):
    """What checking the answers to a question found."""

    signed: int = 0
    """Signatures that hold."""
    unchecked: int = 0
    """Signatures that could not be checked, since no file of allowed signers is named."""
    problems: tuple[tuple[Code, str], ...] = ()


async def check(journal: Journal, proofs: Proofs, head: Head) -> Checked:
    """Check the answers to the question in a stream, whose chain holds.

    A signature has to be one of the person it names, at the time of the answer (SIGNATURE_INVALID). The digest has to
    be that of the recorded call, and a call that ran needs as many approvals with the proof that `confirm.proof` asks
    for as its rule says (APPROVAL_UNPROVEN).
    """
    request, approvals, used = _read(await journal.read(head.stream))
    if request is None:
        return Checked()
    problems: list[tuple[Code, str]] = []
    if not await _bound(journal, head, request):
        why = f"{head.stream}: the recorded call is not the call that was approved"
        problems.append((Code.APPROVAL_UNPROVEN, why))
    given = [(at, said) for at, said in approvals if said.signature]
    wrong = [said.by for at, said in given if proofs.signers and not await proofs.signed(request, said, at)]
    texts = [f"{head.stream}: the signature in the name {by!r} does not hold" for by in wrong]
    problems += [(Code.SIGNATURE_INVALID, text) for text in texts]
    if used:
        proven = {said.by for said in await proofs.counted(request, ((said, at) for at, said in approvals))}
        if len(proven) < request.approvals:
            why = f"{head.stream}: a call ran on {len(proven)} of {request.approvals} approvals that are {proofs.words}"
            problems.append((Code.APPROVAL_UNPROVEN, why))
    known = len(given) if proofs.signers else 0
    return Checked(known - len(wrong), len(given) - known, tuple(problems))


def _read(
    events: Sequence[Event],
) -> tuple[ConfirmationRequested | None, list[tuple[int, ConfirmationDecided]], bool]:
    """The question, the approvals and when they were given, and whether the call ran."""
    request: ConfirmationRequested | None = None
    approvals: list[tuple[int, ConfirmationDecided]] = []
    used = False
    for event in events:
        payload = decode(event.kind, event.data)
        if isinstance(payload, ConfirmationRequested):
            request = payload
        elif isinstance(payload, ConfirmationDecided) and payload.decision == "approve":
            approvals.append((event.at, payload))
        used = used or isinstance(payload, ConfirmationUsed)
    return request, approvals, used


async def _bound(journal: Journal, head: Head, request: ConfirmationRequested) -> bool:
    """Return whether the recorded call is the one that its digest stands for; also if its arguments were erased."""
    if not request.tool_name:
        return True  # a recipe asked, and no call hangs on the answer
    try:
        encoded = await journal.value(request.args, request.args_blob)
    except PayloadErasedError:
        return True
    args = msgspec.json.decode(encoded) if encoded is not None else None
    return rebinding(request, head.stream.rpartition("/confirmation/")[0], args) == request.digest
