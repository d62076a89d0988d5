from __future__ import annotations

import re
from typing import Any

import pytest

from remit.cli.output import TerminalOutput, pretty
from remit.cli.prompt import TerminalPrompt
from remit.cli.question import show_question
from remit.codes import Code
from remit.errors import StateError
from remit.journal.kinds import UntrustedArgument
from remit.record.views import ConfirmationView
from remit.service.approvals import scopes_of
from tests.cli.test_text import Screen


def question(**fields: Any) -> ConfirmationView:
    given: dict[str, Any] = {
        "confirmation": "c_1",
        "state": "pending",
        "caller": "job/job_1",
        "step": "2",
        "tool": "note.write",
        "question": "The tool writes.",
        "args": {"path": "a.txt"},
        "digest": "sha256:" + "d" * 64,
        "principal": "alice",
        "approvals": 1,
        "approved_by": (),
        "approvers": (),
        "contract_hash": "sha256:" + "c" * 64,
        "rule_id": "r",
        "edited_from": "",
        "expires_at": None,
        "rememberable": True,
        **fields,
    }
    return ConfirmationView(**given)


class Remit:
    """As much of one as a prompt uses."""

    def __init__(self, decided: Any) -> None:
        self.decided = decided
        self.given: dict[str, Any] = {}
        self.service = self.confirmations = self

    async def preview(self, _name: str) -> None:
        raise StateError("gone", code=Code.CONFIRMATION_NOT_FOUND)

    async def decide(self, confirmation: str, decision: str, **given: Any) -> Any:
        self.given = {"confirmation": confirmation, "decision": decision, **given}
        if isinstance(self.decided, Exception):
            raise self.decided
        return self.decided


class Decided:
    state = "approved"
    approved_by = ("alice",)


async def ask(
    monkeypatch: pytest.MonkeyPatch, asked: ConfirmationView, *typed: str | None, decided: Any = Decided
) -> tuple[bool, Remit, TerminalPrompt]:
    remit: Any = Remit(decided)
    prompt = TerminalPrompt(remit, TerminalOutput("never"), "bob")
    answers = iter(typed)

    async def line(_prompt: str) -> str | None:
        return next(answers)

    monkeypatch.setattr(prompt, "_line", line)
    return await prompt.ask(asked), remit, prompt


async def test_an_answer_carries_the_digest_that_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, remit, _ = await ask(monkeypatch, question(), "a")
    assert answered
    assert remit.given == {
        "confirmation": "c_1",
        "decision": "approve",
        "digest": question().digest,
        "by": "bob",
        "reason": "",
        "proof": "terminal",
    }


@pytest.mark.parametrize("typed", ["a", "A", " approve ", "y", "YES"])
async def test_yes_has_several_names(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    assert (await ask(monkeypatch, question(), typed))[0]


@pytest.mark.parametrize("typed", ["l", "later", None])
async def test_later_decides_nothing(monkeypatch: pytest.MonkeyPatch, typed: str | None) -> None:
    answered, remit, prompt = await ask(monkeypatch, question(), typed)
    assert (answered, remit.given, prompt.current) == (False, {}, "c_1")


async def test_nothing_is_taken_for_an_answer_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _, remit, _ = await ask(monkeypatch, question(), "", "ok", "approve it", "later")
    assert remit.given == {}


@pytest.mark.parametrize(
    ("code", "answered"),
    [(Code.CONFIRMATION_CLOSED, True), (Code.CONFIRMATION_EXPIRED, True), (Code.DECIDER_NOT_ALLOWED, False)],
)
async def test_a_refused_answer_is_shown_and_asked_again_only_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: Code, *, answered: bool
) -> None:
    error = StateError("no", code=code)
    assert (await ask(monkeypatch, question(), "a", decided=error))[0] is answered
    assert f"error: {code.name}: no" in capsys.readouterr().err


async def test_one_of_two_approvals_leaves_the_question_to_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Pending(Decided):
        state = "pending"

    answered, _, prompt = await ask(monkeypatch, question(approvals=2), "a", decided=Pending)
    assert (answered, prompt.current) == (False, "c_1")
    assert "1 more must approve" in capsys.readouterr().err


def test_an_approval_is_remembered_where_it_was_asked_for() -> None:
    assert list(scopes_of(question()).values()) == ["job", "everything"]
    assert list(scopes_of(question(caller="call/call_1")).values()) == ["session", "everything"]


def test_what_must_be_asked_each_time_is_not_remembered_with_one_key() -> None:
    doubted = UntrustedArgument(path="url", role="url", value="https://x", seen="nowhere")
    for one in (question(approvals=2), question(untrusted=(doubted,)), question(rememberable=False)):
        assert scopes_of(one) == {}


@pytest.mark.parametrize("typed", ["j", "job", "8", "everything", "t", "session"])
async def test_a_key_that_was_not_offered_approves_nothing(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    _, remit, _ = await ask(monkeypatch, question(approvals=2), typed, "later")
    assert remit.given == {}


# --- the screen


def shown(asked: ConfirmationView) -> str:
    screen = Screen(80)
    show_question(screen, asked, now=0)
    return "\n".join(screen.lines)


def test_everything_that_a_decision_is_made_from_is_shown() -> None:
    text = shown(question(approvals=2, approvers=("bob", "eve"), approved_by=("bob",), expires_at=3_600_000_000))
    for part in ("c_1", "note.write", "not recorded", "The tool writes.", "alice", "job_1 step 2", "d" * 64):
        assert part in text
    assert "2 needed, so far bob" in text
    assert "bob, eve" in text
    assert "(in 1 h 0 min)" in text


def test_nothing_in_a_call_can_hide_or_forge_what_is_shown() -> None:
    args = {"path": "a\u202etxt.b", "text": "x\x1b[2J\u200b", "more\r": "\u00a0"}
    text = shown(question(args=args, question="why\nrule: forged", principal="bob\x1b[1A"))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\u202e" in text
    assert "\nrule: forged" not in text


def test_long_arguments_are_shown_whole() -> None:
    args = {"text": "word " * 5_000}
    assert pretty(args).count("word") == 5_000
    assert re.sub(r"\n +> ", "", shown(question(args=args))).count("word") == 5_000


def test_what_nobody_trusted_named_is_shown_with_its_place() -> None:
    screen = Screen(100)
    one = UntrustedArgument(
        path="iban", role="iban", value="DE89", seen="untrusted", step="2", tool="mail.read",
        before="pay to ", span="de89", after=" now",
    )  # fmt: skip
    other = UntrustedArgument(path="url", role="url", value="https://x", seen="nowhere")
    show_question(screen, question(untrusted=(one, other)), now=0)
    shown = "\n".join(screen.lines)
    assert "arguments from untrusted text" in shown
    assert "iban (iban) comes from mail.read, step 2, which is not trusted" in shown
    assert "…pay to »de89« now…" in shown
    assert "url (url) appears in nothing that the model was given" in shown
