"""Approvers are people, not names (reviews s01/C29 to C31, s05/X01): an approval without its proof lets nothing run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, tool
from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.confirmation import Confirmation
from remit.gateway.proof import statement
from remit.journal.kinds import ConfirmationDecided
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit


def key(folder: Path, name: str) -> Path:
    """A new SSH key of somebody."""
    path = folder / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path],  # noqa: S607 - as users have it
        check=True,
    )
    return path


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    """Keys of bob and mallory, of which bob's and carol's may sign."""
    found = {name: key(tmp_path, name) for name in ("bob", "carol", "mallory")}
    lines = [f"{name} {found[name].with_suffix('.pub').read_text(encoding='utf-8')}" for name in ("bob", "carol")]
    (tmp_path / "allowed").write_text("".join(lines), encoding="utf-8")
    return found


def flags(tmp_path: Path, proof: str, **more: Any) -> dict[str, Any]:
    ask = [{"id": "ask", "effect": "ask", "tools": ["fs.write"], **more}]
    return {
        "confirm.proof": proof,
        "confirm.allowed_signers": str(tmp_path / "allowed"),
        "fs.roots": [str(tmp_path)],
        "policy.rules": ask,
    }


WRITE = {"path": "out.txt", "content": "x"}


async def asked(remit: Remit, content: str = "x") -> str:
    """The question of a call that alice makes."""
    outcome = await remit.call("fs.write", {**WRITE, "content": content})
    assert outcome.confirmation is not None
    return outcome.confirmation


async def written(remit: Remit, tmp_path: Path) -> bool:
    """Whether the call now runs."""
    await remit.call("fs.write", WRITE)
    return (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(("proof", "counts"), [("any", True), ("terminal", False), ("token", False), ("signed", False)])
async def test_an_answer_with_nothing_but_a_name_counts_only_where_any_does(
    remit_in: OpenRemit, tmp_path: Path, proof: str, counts: bool
) -> None:  # C29, C30, C31
    async with remit_in(flags=flags(tmp_path, proof)) as remit:
        question = await asked(remit)
        if counts:
            await remit.service.confirmations.decide(question, "approve", by="bob")
        else:
            with pytest.raises(UsageError) as refused:
                await remit.service.confirmations.decide(question, "approve", by="bob")
            assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        assert await written(remit, tmp_path) == counts


async def test_an_answer_taken_under_weaker_rules_does_not_count_where_the_call_runs(
    remit_in: OpenRemit, tmp_path: Path
) -> None:  # an agent's own `REMIT_CONFIRM_PROOF=any remit confirm … --approve`
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        async with remit_in(flags=flags(tmp_path, "any")) as agent:
            decided = await agent.service.confirmations.decide(question, "approve", by="bob", proof="terminal")
            assert decided.state == "approved"
        assert (await remit.service.confirmations.view(question)).state == "pending"
        assert not await written(remit, tmp_path)


async def test_a_signed_answer_of_an_allowed_signer_lets_the_call_run(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]
) -> None:
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="bob", sign=keys["bob"])
        assert await written(remit, tmp_path)


@pytest.mark.parametrize(("by", "signer"), [("mallory", "mallory"), ("bob", "mallory"), ("carol", "bob"), ("*", "bob")])
async def test_nobody_signs_in_another_s_name(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path], by: str, signer: str
) -> None:
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        question = await asked(remit)
        with pytest.raises(UsageError) as refused:
            await remit.service.confirmations.decide(question, "approve", by=by, sign=keys[signer])
        assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        assert not await written(remit, tmp_path)


async def test_a_signature_holds_for_one_question_and_one_answer(
    remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]
) -> None:
    async with remit_in(flags=flags(tmp_path, "signed")) as remit:
        confirmations = remit.runtime.services.confirmations
        question = await asked(remit)
        denied = await remit.service.confirmations.decide(question, "deny", by="bob", sign=keys["bob"])
        assert denied.state == "denied"
        of_denial = (await confirmations.find(question)).decisions[-1].signature
        other: Confirmation = await confirmations.find(await asked(remit, "y"))
        for signature in (of_denial, "", "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"):
            forged = ConfirmationDecided(
                confirmation=other.id, decision="approve", digest=other.request.digest, by="bob", signature=signature
            )
            with pytest.raises(UsageError):
                await confirmations.decide(other, forged)


async def test_whoever_asked_cannot_approve_unless_the_operator_says_so(remit_in: OpenRemit, tmp_path: Path) -> None:
    for own in (False, True):
        async with remit_in(flags={**flags(tmp_path, "token"), "confirm.own": own}) as remit:
            question = await asked(remit)
            if not own:
                with pytest.raises(UsageError, match="alice requested this call"):
                    await remit.service.confirmations.decide(question, "approve", by="alice", proof="token")
            else:
                await remit.service.confirmations.decide(question, "approve", by="alice", proof="token")
            assert await written(remit, tmp_path) == own


async def test_two_of_two_are_two_who_can_prove_it(remit_in: OpenRemit, tmp_path: Path, keys: dict[str, Path]) -> None:
    async with remit_in(flags=flags(tmp_path, "signed", approvals=2)) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve", by="bob", sign=keys["bob"])
        await remit.service.confirmations.decide(question, "approve", by="bob", sign=keys["bob"])
        assert not await written(remit, tmp_path)
        await remit.service.confirmations.decide(question, "approve", by="carol", sign=keys["carol"])
        assert await written(remit, tmp_path)


def test_what_is_signed_names_the_question_the_answer_and_the_person() -> None:
    texts = {
        statement(*parts)
        for parts in (("c", "d", "approve", "b"), ("c", "d", "deny", "b"), ("c2", "d", "approve", "b"))
    }
    assert len(texts) == 3


@tool("desk.pay", level="L1")
def pay(to: str) -> str:
    """Pay somebody."""
    return to


async def test_the_questions_of_one_principal_do_not_fill_the_list(remit_in: OpenRemit) -> None:  # s07/B11
    clock = ManualClock()
    flags = {"confirm.max_open": 3, "confirm.expires_seconds": 60}
    async with remit_in(tools=[pay], flags=flags, clock=clock, work=False) as remit:

        async def ask(who: str, to: str) -> str:
            session = await remit.service.sessions.open("mcp", principal=who)
            return (await remit.service.sessions.call(session, "desk.pay", {"to": to})).code or ""

        for number in range(3):
            assert await ask("mallory", f"m{number}") == Code.CONFIRMATION_REQUIRED.name
        assert await ask("mallory", "m3") == Code.TOO_MANY_QUESTIONS.name
        assert await ask("alice", "a") == Code.CONFIRMATION_REQUIRED.name
        (first, *_) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(first.confirmation, "deny")
        assert await ask("mallory", "m4") == Code.CONFIRMATION_REQUIRED.name
        assert await ask("mallory", "m5") == Code.TOO_MANY_QUESTIONS.name
        clock.advance(61)
        assert await ask("mallory", "m6") == Code.CONFIRMATION_REQUIRED.name, "what nobody answered in time is over"
