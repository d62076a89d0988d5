"""A remembered approval proves what an answer proves (rule 15): who gave it, for which calls, and until when."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Remit
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.gateway import proof as proofs
from remit.gateway.approvals import extended
from remit.journal.kinds import ConfirmationDecided, ToolInvocationStarted
from remit.journal.kinds.people import Extension
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit
from tests.security.test_approvers import asked, flags, key, written

Keys = dict[str, Path]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Keys of bob, carol and mallory, of which bob's and carol's may sign."""
    made = {name: key(tmp_path, name) for name in ("bob", "carol", "mallory")}
    lines = [f"{name} {made[name].with_suffix('.pub').read_text(encoding='utf-8')}" for name in ("bob", "carol")]
    (tmp_path / "allowed").write_text("".join(lines), encoding="utf-8")
    return made


async def remember(remit: Remit, question: str, *, seconds: int = 600, exact: bool = False, **more: Any) -> Any:
    return await remit.service.approvals.remember(question, "everything", seconds=seconds, exact=exact, **more)


async def digest_of(remit: Remit, question: str) -> str:
    return (await remit.service.confirmations.view(question)).digest


async def forge(remit: Remit, question: str, by: str, *answers: ConfirmationDecided, **changes: Any) -> str:
    """Remember an approval as somebody does who writes the journal; the rule's identifier."""
    confirmations = remit.runtime.services.confirmations
    found, now = await confirmations.find(question), remit.clock.now()
    extension = Extension(scope="everything", stream="", until=now + 500 * SECOND, exact=False)
    rule = msgspec.structs.replace(extended(found, extension, (by,), made_at=now), **changes)
    return (await remit.runtime.services.remembered.keep(rule, question, by, answers)).id


@pytest.mark.parametrize("proof", ["any", "terminal", "token"])
async def test_only_a_person_who_approved_may_have_it_remembered(
    remit_in: OpenRemit, tmp_path: Path, proof: str
) -> None:
    async with remit_in(flags=flags(tmp_path, proof)) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="bob", proof="token")
        for by in ("alice", "carol"):
            with pytest.raises(UsageError) as refused:
                await remember(remit, question, by=by, proof="token")
            assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        assert await remit.service.approvals.active() == []
        kept = await remember(remit, question, by="bob", proof="token")
        assert await remit.service.approvals.active() == [kept]
        assert (await asked_again(remit, "y")).ok
        assert (await remit.service.streams.verify()).ok


async def asked_again(remit: Remit, content: str) -> Any:
    return await remit.call("fs.write", {"path": "out.txt", "content": content})


@pytest.mark.parametrize(("proof", "given"), [("terminal", ""), ("token", "terminal"), ("signed", "token")])
async def test_the_wish_to_remember_proves_as_much_as_the_answer(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys, proof: str, given: Any
) -> None:
    async with remit_in(flags=flags(tmp_path, proof)) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="bob", sign=keys["bob"])
        with pytest.raises(UsageError) as refused:
            await remember(remit, question, by="bob", proof=given)
        assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        assert await remember(remit, question, by="bob", sign=keys["bob"])
        assert (await asked_again(remit, "y")).ok


async def test_one_signature_approves_and_remembers(remit_in: OpenRemit, tmp_path: Path, keys: Keys) -> None:
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        digest = await digest_of(remit, question)
        kept = await remember(remit, question, by="bob", sign=keys["bob"], digest=digest)
        assert await remit.service.approvals.active() == [kept]
        assert (await asked_again(remit, "y")).ok
        assert (await remit.service.streams.verify()).codes == ()


async def test_what_is_not_signed_alike_is_left_out(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys
) -> None:  # whoever writes the journal
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        open_ = await asked(remit, "z")
        question = await asked(remit)
        await remember(remit, question, by="bob", sign=keys["bob"], digest=await digest_of(remit, question), exact=True)
        (true,) = await remit.service.approvals.active()
        decided = (await remit.runtime.services.confirmations.find(question)).decisions[-1]
        assert isinstance(decided.remember, Extension)
        wider = msgspec.structs.replace(decided.remember, exact=False)
        longer = msgspec.structs.replace(decided.remember, until=decided.remember.until + SECOND)
        await forge(remit, question, "bob")
        await forge(remit, open_, "bob")
        await forge(remit, question, "bob", decided)
        await forge(remit, question, "bob", msgspec.structs.replace(decided, remember=wider))
        await forge(remit, open_, "bob", msgspec.structs.replace(decided, confirmation=open_, remember=wider))
        await forge(
            remit, question, "bob", msgspec.structs.replace(decided, remember=longer), args_digest=true.args_digest
        )
        for changes in (
            {"tool": "fs.edit"}, {"principal": "eve"}, {"contract_hash": "sha256:" + "0" * 64}, {"provider_id": "x"},
            {"tool_version": "9"}, {"capability_level": 0}, {"prompt_hash": ""}, {"scope": "session", "stream": "s/x"},
            {"args_digest": "sha256:" + "0" * 64}, {"expires_at": true.expires_at + 1},
        ):  # fmt: skip
            await forge(remit, question, "bob", decided, **{"args_digest": true.args_digest, **changes})
        assert await remit.service.approvals.active() == [true]
        assert (await asked_again(remit, "y")).status == "pending"


async def test_a_call_on_an_unproven_one_is_reported(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(flags=flags(tmp_path, "any")) as remit:
        await forge(remit, await asked(remit), "bob")
        assert (await asked_again(remit, "y")).ok
        assert (await remit.service.streams.verify()).ok
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        assert await remit.service.approvals.active() == []
        report = await remit.service.streams.verify()
        assert (report.codes, report.damaged) == ((Code.APPROVAL_UNPROVEN.name,), 1)
        assert (await asked_again(remit, "w")).status == "pending"


@pytest.mark.parametrize("proof", ["any", "signed"])
async def test_a_call_on_one_that_is_not_in_the_journal_is_reported(
    remit_in: OpenRemit, tmp_path: Path, proof: str
) -> None:
    started = ToolInvocationStarted(
        invocation_id="inv_1",
        step="1",
        tool_name="fs.write",
        rule_id="remembered:no",
    )
    async with remit_in(flags=flags(tmp_path, proof)) as remit:
        await remit.runtime.journal.create("session/ses_1", "session", started)
        assert (await remit.service.streams.verify()).codes == (Code.APPROVAL_UNPROVEN.name,)


async def test_its_approvers_are_those_who_prove_it(remit_in: OpenRemit, tmp_path: Path, keys: Keys) -> None:
    async with remit_in(flags=flags(tmp_path, "signed", approvals=2)) as remit:
        question = await asked(remit)
        digest = await digest_of(remit, question)
        assert await remember(remit, question, by="bob", sign=keys["bob"], digest=digest) is None
        await remit.service.confirmations.decide(question, "approve", by="carol", sign=keys["carol"])
        await forge(remit, question, "bob", made_by=("bob", "carol"))
        assert await remit.service.approvals.active() == []
        kept = await remember(remit, question, by="carol", sign=keys["carol"])
        assert kept.made_by == ("bob", "carol")
        assert (await asked_again(remit, "y")).ok


async def test_it_ends_with_the_key(remit_in: OpenRemit, tmp_path: Path, keys: Keys) -> None:
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        digest = await digest_of(remit, question)
        assert await remember(remit, question, by="bob", sign=keys["bob"], digest=digest)
        assert len(await remit.service.approvals.active()) == 1
        (tmp_path / "allowed").write_text("", encoding="utf-8")
        assert await remit.service.approvals.active() == []
        (tmp_path / "allowed").unlink()
        assert not await written(remit, tmp_path)


async def test_it_ends_with_the_time_of_the_key(
    remit_in: OpenRemit, tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, verified = ManualClock(), proofs._verified

    async def verified_by_clock(text: bytes, signature: str, by: str, signers: Path, at: int | None) -> bool:
        return await verified(text, signature, by, signers, clock.now() if at is None else at)

    monkeypatch.setattr(proofs, "SystemClock", lambda: clock)
    monkeypatch.setattr(proofs, "_verified", verified_by_clock)  # as if ssh-keygen read this clock
    allowed = keys["bob"].with_suffix(".pub").read_text(encoding="utf-8")
    ends = datetime.fromtimestamp(clock.now() / SECOND + 30)  # noqa: DTZ006 - ssh-keygen reads local time
    (tmp_path / "allowed").write_text(f'bob valid-before="{ends:%Y%m%d%H%M%S}" {allowed}', encoding="utf-8")
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        digest = await digest_of(remit, question)
        assert await remember(remit, question, by="bob", sign=keys["bob"], digest=digest)
        assert len(await remit.service.approvals.active()) == 1
        clock.advance(60)
        assert await remit.service.approvals.active() == []


async def test_its_time_is_bounded(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(flags=flags(tmp_path, "any")) as remit:
        question = await asked(remit)
        for seconds in (0, -1, 91 * 86_400, 300_000_000):
            with pytest.raises(UsageError) as refused:
                await remember(remit, question, by="bob", seconds=seconds, digest=await digest_of(remit, question))
            assert refused.value.code is Code.INVALID_INPUT
        with pytest.raises(StateError):
            await remember(remit, question, by="bob")
