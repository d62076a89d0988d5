"""Several people have to approve: one key is one of them, whatever names it may sign with."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.proof import key_of, signed, statement
from remit.journal.kinds import ConfirmationDecided
from tests.opened import OpenRemit
from tests.security.test_approvers import asked, flags, key, written


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    """Keys for everybody of a domain, as a team shares a pattern, and one of carol's own."""
    found = {name: key(tmp_path, name) for name in ("team", "carol")}
    texts = {name: path.with_suffix(".pub").read_text(encoding="utf-8") for name, path in found.items()}
    (tmp_path / "allowed").write_text(f"*@acme {texts['team']}carol {texts['carol']}", encoding="utf-8")
    return found


async def test_one_key_does_not_approve_in_two_names(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]
) -> None:
    async with remit_in(flags=flags(tmp_path, "signed", approvals=2)) as remit:
        question, decide = await asked(remit), remit.service.confirmations.decide
        await decide(question, "approve", by="ann@acme", sign=keys["team"])
        with pytest.raises(UsageError) as refused:
            await decide(question, "approve", by="bob@acme", sign=keys["team"])
        assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        assert not await written(remit, tmp_path)
        await decide(question, "approve", by="carol", sign=keys["carol"])
        assert await written(remit, tmp_path)


async def test_nor_by_an_answer_that_was_put_into_the_journal(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]
) -> None:
    """A process with weaker settings takes the second answer; where the call runs it counts for nothing."""
    rules = flags(tmp_path, "signed", approvals=2)
    async with remit_in(flags=rules) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="ann@acme", sign=keys["team"])
        async with remit_in(flags={**rules, "confirm.proof": "any"}) as agent:
            await agent.service.confirmations.decide(question, "approve", by="bob@acme", sign=keys["team"])
        assert (await remit.service.confirmations.view(question)).approved_by == ("ann@acme",)
        assert not await written(remit, tmp_path)


async def test_verify_names_a_call_that_ran_on_one_key(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]
) -> None:
    rules = flags(tmp_path, "signed", approvals=2)
    async with remit_in(flags={**rules, "confirm.proof": "any"}) as weak:
        question = await asked(weak)
        for name in ("ann@acme", "bob@acme"):
            await weak.service.confirmations.decide(question, "approve", by=name, sign=keys["team"])
        assert await written(weak, tmp_path)
    async with remit_in(flags=rules) as remit:
        report = await remit.service.streams.verify()
        assert report.codes == (Code.APPROVAL_UNPROVEN.name,)


@pytest.mark.parametrize(
    "by", ["ann@acme\nbob@acme", "ann@acme,bob@acme", "*@acme", "-Oprint-pubkeys", "", "ann@ACME "]
)
async def test_no_name_stands_for_several(remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path], by: str) -> None:
    async with remit_in(flags=flags(tmp_path, "signed", approvals=2)) as remit:
        question = await asked(remit)
        answers = 0
        for name in dict.fromkeys((by, "bob@acme")):
            try:
                await remit.service.confirmations.decide(question, "approve", by=name, sign=keys["team"])
            except UsageError:
                continue
            answers += 1
        assert answers <= 1
        assert not await written(remit, tmp_path)


async def test_a_signature_counts_for_its_own_question_answer_and_digest(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]
) -> None:
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        one, other = await asked(remit), await asked(remit, "y")
        confirmations = remit.runtime.services.confirmations
        first, second = await confirmations.find(one), await confirmations.find(other)
        for said in (
            statement(first.id, first.request.digest, "approve", "carol"),
            statement(second.id, second.request.digest, "deny", "carol"),
            statement(second.id, first.request.digest, "approve", "carol"),
            statement(second.id, second.request.digest, "approve", "ann@acme"),
        ):
            forged = ConfirmationDecided(
                confirmation=second.id,
                decision="approve",
                digest=second.request.digest,
                by="carol",
                signature=await signed(said, keys["carol"]),
            )
            with pytest.raises(UsageError):
                await confirmations.decide(second, forged)


@pytest.mark.parametrize("text", ["", "x", "-----BEGIN SSH SIGNATURE-----\n!!!\n", "AAAA", "U1NIU0lHAAAAAf////8="])
def test_what_is_no_signature_has_no_key(text: str) -> None:
    assert key_of(text) == b""
