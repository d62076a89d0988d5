"""Checks on questions to people, and on the approvals that are remembered."""

from __future__ import annotations

from typing import Final

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit_testing.service.world import Check, Reach, refused, world
from remit_testing.suite import checks_in


async def check_a_question_is_approved_by_its_digest(reach: Reach) -> None:
    """The job continues the call that was shown; the same question is not answered twice."""
    async with world(reach) as place:
        job = await place.ran("writes")
        (question,) = await place.service.confirmations.pending()
        assert (question.tool, question.args, question.caller) == ("desk.write", {"text": "hello"}, f"job/{job}")
        assert await place.service.confirmations.view(question.confirmation[-10:]) == question
        assert await place.service.confirmations.pending(job) == [question]
        assert await place.service.confirmations.pending("job_none") == []
        decided = await place.service.confirmations.decide(
            question.confirmation, "approve", digest=question.digest, reason="fine"
        )
        assert (decided.state, decided.approved_by) == ("approved", ("ann",))
        await place.at_rest(job)
        assert await place.service.jobs.result(job) == "hello"
        with refused(Code.CONFIRMATION_CLOSED, StateError):
            await place.service.confirmations.decide(question.confirmation, "deny")


async def check_a_question_is_denied(reach: Reach) -> None:
    """Without a digest the question is taken as seen as it is."""
    async with world(reach) as place:
        job = await place.ran("writes")
        (question,) = await place.service.confirmations.pending()
        denied = await place.service.confirmations.decide(question.confirmation, "deny", reason="not today")
        assert denied.state == "denied"
        assert (await place.at_rest(job)).state == "failed"


async def check_another_digest_does_not_count(reach: Reach) -> None:
    """An answer to what was not shown is refused; so is one to a question that does not exist."""
    async with world(reach) as place:
        await place.ran("writes")
        (question,) = await place.service.confirmations.pending()
        with refused(Code.CONFIRMATION_MISMATCH, StateError):
            await place.service.confirmations.decide(question.confirmation, "approve", digest="sha256:" + "0" * 64)
        with refused(Code.CONFIRMATION_NOT_FOUND, NotFoundError):
            await place.service.confirmations.view("c_none")


async def check_a_question_is_edited(reach: Reach) -> None:
    """The new question asks about the new arguments; arguments that do not fit the tool are refused."""
    async with world(reach) as place:
        await place.ran("writes")
        (question,) = await place.service.confirmations.pending()
        for wrong in ({"text": 1}, ["text"]):
            with refused(Code.INVALID_TOOL_ARGS, UsageError):
                await place.service.confirmations.edit(question.confirmation, wrong)
        edited = await place.service.confirmations.edit(question.confirmation, {"text": "bye"}, reason="politer")
        assert (edited.args, edited.edited_from) == ({"text": "bye"}, question.confirmation)
        assert edited.digest != question.digest


async def check_defaults_of_what_a_call_leaves_out_are_shown(reach: Reach) -> None:
    """Beside the arguments, in lists as well; what is given has none, and a question about no tool neither."""
    async with world(reach) as place:
        await place.ran("writes")
        (question,) = await place.service.confirmations.pending()
        assert (question.args, question.defaults) == ({"text": "hello"}, {"/copies": 1})
        edited = await place.service.confirmations.edit(question.confirmation, {"text": "bye", "copies": 2})
        assert edited.defaults == {}


async def check_what_a_call_would_change_is_shown(reach: Reach) -> None:
    """By what is there now; a tool that cannot say shows nothing, and an unknown question is refused."""
    async with world(reach) as place:
        first = await place.ran("keeps", content="one\ntwo\n")
        (question,) = await place.service.confirmations.pending(first)
        creates = await place.service.confirmations.preview(question.confirmation)
        assert creates is not None
        assert (creates.what, creates.problem) == ("Creates kept.txt, 2 lines.", "")
        assert "+one\n+two" in creates.diff
        await place.service.confirmations.decide(question.confirmation, "approve")
        await place.at_rest(first)
        second = await place.ran("keeps", content="one\nthree\n")
        (question,) = await place.service.confirmations.pending(second)
        replaces = await place.service.confirmations.preview(question.confirmation)
        assert replaces is not None
        assert replaces.what == "Replaces kept.txt: 2 lines now, 2 lines afterwards."
        assert replaces.diff.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+three"]
        (other,) = await place.service.confirmations.pending(await place.ran("writes"))
        assert await place.service.confirmations.preview(other.confirmation) is None
        with refused(Code.CONFIRMATION_NOT_FOUND, NotFoundError):
            await place.service.confirmations.preview("c_none")


async def check_an_approval_is_remembered_and_revoked(reach: Reach) -> None:
    """It holds for the next call until it is revoked."""
    async with world(reach) as place:
        await place.ran("writes")
        (question,) = await place.service.confirmations.pending()
        with refused(Code.CONFIRMATION_CLOSED, StateError):
            await place.service.approvals.remember(question.confirmation, "everything", seconds=600, exact=True)
        await place.service.confirmations.decide(question.confirmation, "approve")
        remembered = await place.service.approvals.remember(
            question.confirmation, "everything", seconds=600, exact=True
        )
        assert remembered is not None
        assert await place.service.approvals.active() == [remembered]
        assert await place.service.jobs.result(await place.ran("writes")) == "hello"
        await place.service.approvals.revoke(remembered.id, reason="over")
        assert await place.service.approvals.active() == []
        with refused(Code.STREAM_NOT_FOUND, NotFoundError):
            await place.service.approvals.revoke("rem_none")


QUESTION_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
