"""A client's call: asked about at the client if it can be, run once, answered with its outcome.

A dialog outlives its call: a call answers that it waits before its client gives up on it, and what the person says in
the dialog afterwards counts as if it had waited. The same call made again meets the dialog that is still open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.clock import isoformat
from remit.errors import NotFoundError, StateError, UsageError
from remit.http.trace_context import PARENT, TraceContext
from remit.journal.kinds import ConfirmationPutOff
from remit.mcp_server.question import QuestionForm, approvable, link_to, page_of, reason_form, reason_in
from remit.redact import line
from remit.service.approvals import REMEMBERED_S
from remit.service.calls import LiveCaller
from remit.tasks import Tasks
from remit.tools.peer import ELICIT, PeerError

if TYPE_CHECKING:
    from remit.gateway.call import Progress
    from remit.http.access import Access
    from remit.mcp_server.peers import ClientPeer, Parked
    from remit.mcp_server.question import PersonAnswer
    from remit.mcp_server.request import AskingTerms, McpCaller
    from remit.record.outcome import OutcomeView
    from remit.record.step import QuestionRecord
    from remit.record.views import ConfirmationView
    from remit.service.service import Service


_KEY: Final = "decision"
_WHY: Final = "reason"
TELL_S: Final = 5.0
"""Seconds after which a client that wants progress hears once more that a person decides."""
_OWN: Final = frozenset({PARENT, "tracestate", "baggage", "claudecode/toolUseId", "callId", "threadId", "sessionId"})
"""Names under which clients tell of their own trace and conversation: of W3C, of Claude Code, of Codex."""
_TOLD: Final = 500
_PAST: Final[Mapping[str, str]] = {"approve": "approved", "deny": "denied", "expire": "expired", "revoke": "revoked"}
_log: Final = logging.getLogger("remit.mcp")


class CallAsker(NamedTuple):
    """A call's client, to which questions about it are put."""

    client: McpCaller
    peer: ClientPeer | Parked
    access: Access
    terms: AskingTerms
    waits: Callable[[str], None]
    """Is told, again and again, what the call waits for."""


class McpCalls:
    """Makes calls for clients."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._dialogs: dict[tuple[int, str], asyncio.Task[bool]] = {}
        self._tasks = Tasks()

    async def make(self, asker: CallAsker, tool: str, args: dict[str, Any], *, progress: Progress) -> OutcomeView:
        """Make a call. One that waits for a person is put to the person at the client, if `asker` says there is one.

        If not, or if they did not decide, it goes on once someone has, if its client takes a task for an answer. If
        not, it stays pending; the same call made again continues with what was decided meanwhile, and runs once.
        """
        waited = ""
        while True:
            outcome = await self._make(asker, tool, args, progress)
            question, confirmations = outcome.confirmation or "", self._service.confirmations
            if outcome.status != "pending" or question in {"", waited} or not asker.peer.defer(_waits(asker, question)):
                return outcome
            await confirmations.decided(question)
            asker.peer.decide(_words(await confirmations.answers(question)))
            waited, asker = question, asker._replace(terms=asker.terms._replace(ask="terminal"))

    async def _make(self, asker: CallAsker, tool: str, args: dict[str, Any], progress: Progress) -> OutcomeView:

        async def ask(confirmation: str) -> bool:
            return await self._decided(confirmation, asker)

        access, peer = asker.access, asker.peer
        there = asker.terms.ask != "terminal" and access.dialog and access.allows("decide") and peer.can(ELICIT)
        live = LiveCaller(progress, peer, ask if there else None)
        meta = {
            name: line(text, _TOLD) for name, text in peer.attached.items() if name in _OWN and isinstance(text, str)
        }
        trace = TraceContext.of(meta.get(PARENT, ""))
        return await self._service.sessions.call(
            await asker.client.session(),
            tool,
            args,
            only=access.tools,
            trace_id=trace.trace_id if trace.named else "",
            client=meta,
            repaired=peer.request.repaired,
            live=live,
        )

    async def close(self) -> None:
        """Close the dialogs that are open."""
        self._tasks.cancel()
        await self._tasks.ended()

    async def _decided(self, confirmation: str, asker: CallAsker) -> bool:
        """Return whether it is decided within the client's patience: in its dialog, or meanwhile elsewhere."""
        key = (id(asker.client), confirmation)
        dialog = self._dialogs.get(key)
        if dialog is None:
            dialog = self._dialogs[key] = self._tasks.task(self._put(confirmation, asker))
            dialog.add_done_callback(lambda ended: self._forget(key, ended))
        loop, late = asyncio.get_running_loop(), asker.peer.hears_late
        patience_s = asker.terms.patience_s if late else None
        until = None if patience_s is None else loop.time() + patience_s
        try:
            while not dialog.done():
                left = TELL_S if until is None else min(TELL_S, until - loop.time())
                if left <= 0:
                    return False
                await asyncio.wait({dialog}, timeout=left)
                if not dialog.done():
                    asker.waits(_waits(asker, confirmation))
        except asyncio.CancelledError:  # the client may have closed the dialog as well: another is opened next time
            self._forget(key, dialog)
            if not late:
                dialog.cancel()
            raise
        return dialog.result()

    def _forget(self, key: tuple[int, str], dialog: asyncio.Task[bool]) -> None:
        if self._dialogs.get(key) is dialog:
            del self._dialogs[key]

    async def _put(self, confirmation: str, asker: CallAsker) -> bool:
        """Put it to the person at the client; whether it is decided, there or elsewhere."""
        confirmations = self._service.confirmations
        try:
            question = await confirmations.view(confirmation)
            if question.state != "pending":
                return True
            dialogs = asker.peer.request.dialogs
            page = page_of(question, asker.terms.console) if "url" in dialogs else ""
            if page and ("form" not in dialogs or not approvable(question)):
                return await self._led_to(page, question, asker)
            return "form" in dialogs and await self._filled_in(page, question, asker)
        except (PeerError, NotFoundError):
            return False  # the client is gone, or the question
        except (StateError, UsageError) as error:
            _log.info("the answer of %s to %s does not count: %s", asker.client.principal, confirmation, error.message)
            return (await confirmations.view(confirmation)).state != "pending"

    async def _filled_in(self, page: str, question: ConfirmationView, asker: CallAsker) -> bool:
        """Have the person fill a form in. Raises PeerError, and what the answer raises where it does not count."""
        confirmation = question.confirmation
        asked_in = await self._service.sessions.asked_in(question.caller)
        form = QuestionForm.of(question, session=asked_in == await asker.client.session(), page=page)
        begun = asyncio.get_running_loop().time()
        answer = await self._answered(confirmation, {"method": ELICIT, "params": form.params}, asker)
        if answer is None:
            return True
        took_s = asyncio.get_running_loop().time() - begun
        answer_form = form.said(answer)
        action = answer.get("action")
        alone = action in {"decline", "cancel"} and (took_s < asker.terms.person_s or asker.peer.request.unattended)
        if action == "cancel" or (action == "decline" and alone):
            put_off = ConfirmationPutOff(
                confirmation=confirmation,
                client=asker.client.name,
                answer=action,
                after_ms=round(took_s * 1_000),
                by_program=alone,
            )
            await self._service.confirmations.put_off(confirmation, put_off)
            return False
        if answer_form is None:
            return False
        if answer_form.decision == "deny" and not answer_form.reason:
            answer_form = answer_form._replace(reason=await _why(asker))
        return (await self._take(question, answer_form, asker)).state != "pending"

    async def _led_to(self, page: str, question: ConfirmationView, asker: CallAsker) -> bool:
        """Lead the person to a question's page; whether it is decided, there or elsewhere. Raises PeerError."""
        confirmation = question.confirmation
        answer = await self._answered(confirmation, {"method": ELICIT, "params": link_to(question, page)}, asker)
        if answer is None:
            return True
        if answer.get("action") != "accept" or asker.peer.request.takes_tasks:
            return False  # they did not open it, or the client asks about its task
        try:
            async with asyncio.timeout(None if asker.peer.hears_late else asker.terms.patience_s):
                await self._service.confirmations.decided(confirmation)
        except TimeoutError:
            return False
        return True

    async def _answered(self, confirmation: str, request: Mapping[str, Any], asker: CallAsker) -> dict[str, Any] | None:
        """The client's answer; None if it is decided elsewhere first, which closes the dialog. Raises PeerError."""
        asking = self._tasks.task(asker.peer.ask({_KEY: request}))
        running: set[asyncio.Task[Any]] = {asking}
        if asker.terms.ask == "both":
            running.add(self._tasks.task(self._service.confirmations.decided(confirmation)))
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            return asking.result()[_KEY] if asking.done() else None
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    async def _take(self, question: ConfirmationView, answer: PersonAnswer, asker: CallAsker) -> ConfirmationView:
        """Record a person's answer; the question as that left it. Raises StateError, UsageError or NotFoundError."""
        confirmation, by = question.confirmation, asker.client.principal
        proof: Any = "token" if asker.access.principal else ""
        if answer.scope is None:
            return await self._service.confirmations.decide(
                confirmation, answer.decision, digest=question.digest, by=by, reason=answer.reason, proof=proof
            )
        await self._service.approvals.remember(
            confirmation,
            answer.scope,
            seconds=REMEMBERED_S,
            digest=question.digest,
            by=by,
            reason=answer.reason,
            proof=proof,
        )
        return await self._service.confirmations.view(confirmation)


def _waits(asker: CallAsker, confirmation: str) -> str:
    return f"waits for {asker.client.principal}, {confirmation}"


def _words(record: QuestionRecord) -> str:
    """Say how and when a question ended."""
    if not record.decisions:
        return "it goes on"
    last = record.decisions[-1]
    by = f" by {last.by}" if last.by else ""
    return f"{_PAST.get(last.decision, last.decision)}{by} at {isoformat(last.at)}"


async def _why(asker: CallAsker) -> str:
    """The reason of a denial, if the person gives one."""
    try:
        answers = await asker.peer.ask({_WHY: {"method": ELICIT, "params": reason_form()}})
    except PeerError:
        return ""
    return reason_in(answers[_WHY])
