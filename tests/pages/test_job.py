"""A job at one look: what it changed, who allowed that, what it read, what it cost, and its values as fields."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages.page import changes_of, shown
from remit.settings import load
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow


@tool("bank.look", level="L0")
def look(customer: str) -> dict[str, Any]:
    """Look."""
    return {"customer": customer}


@tool("bank.pay")
def pay(customer: str, cents: int) -> dict[str, Any]:
    """Pay."""
    return {"paid": cents, "to": {"name": customer, "parts": ["a", "b"]}}


@recipe("refund")
async def refund(run: Run, customer: str) -> Any:
    """Look twice, ask a model, pay."""
    for _ in range(2):
        await run.call("bank.look", {"customer": customer})
    await run.model("How much?")
    return (await run.call("bank.pay", {"customer": customer, "cents": 700})).value


def remit(folder: Path) -> Remit:
    (folder / "s.yaml").write_text("[{say: four words are said}]")
    flags = {
        "models.default": "scripted:s.yaml",
        "models.prices": [{"model": "scripted:*", "input": 1, "output": 1_000_000}],
        "journal.url": ":memory:",
    }
    return Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), tools=[look, pay], recipes=[refund])


def section(text: str, name: str) -> str:
    return text.partition(f'id="{name}"')[2].partition("</section>")[0]


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("approve", ("approved by boss", "customer: ada", "paid: 700")),
        ("deny", ("denied by boss", "CONFIRMATION_DENIED")),
    ],
)
async def test_what_a_job_changed_stands_above_its_steps_with_who_allowed_it(
    served: Served, tmp_path: Path, decision: Any, words: tuple[str, ...]
) -> None:
    async with remit(tmp_path) as opened, served(opened) as server:
        job = await opened.start(refund(customer="ada"))
        await opened.service.jobs.settled([job.id])
        asking = section((await server.get(f"/jobs/{job.id}")).text, "what-it-did")
        assert "waiting" in asking
        assert "cents: 700" in asking
        (question,) = await job.questions()
        await opened.service.confirmations.decide(question.confirmation, decision, by="boss")
        await opened.service.jobs.settled([job.id])
        text = (await server.get(f"/jobs/{job.id}")).text
        did = section(text, "what-it-did")
        assert all(word in did for word in words), did
        assert re.search(r'find=bank\.look">bank\.look</a> 2 times', did)
        assert did.count("<li>") == 1
        assert re.search(r"<dt>Models</dt><dd><a [^>]*>[^<]*tokens[^<]*\$\d", text)


async def test_only_its_models_are_shown_where_the_cost_leads(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path) as opened, served(opened) as server:
        job = await opened.start(refund(customer="ada"))
        await opened.service.jobs.settled([job.id])
        text = (await server.get(f"/jobs/{job.id}?only=models")).text
        assert 'id="s-3"' in text
        assert 'id="s-1"' not in text
        assert "tokens" in text.partition('id="s-3"')[2]


def test_a_value_is_shown_as_its_leaves_unless_they_are_many_or_it_is_cut() -> None:
    value = {"a": 1, "b": {"c": "x\ny", "d": []}, "e": [{"f": None}, {"f": True}], "g": ["p", "q"], "h": {}}
    assert shown(value).fields == (
        ("a", "1"),
        ("b.c", "x\ny"),
        ("b.d", "[]"),
        ("e 1.f", "null"),
        ("e 2.f", "true"),
        ("g", "p\nq"),
        ("h", "{}"),
    )
    assert shown({str(number): number for number in range(41)}).fields == ()
    assert shown({"a": "x" * 9_000}).fields == ()
    assert shown(["a"]).fields == shown("a").fields == ()


def test_a_difference_is_told_line_by_line_without_its_head() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n"
    assert [(one.mark, one.text) for one in changes_of(diff)][1:] == [("-", "old"), ("+", "new"), (" ", "same")]
    assert changes_of("") == ()
