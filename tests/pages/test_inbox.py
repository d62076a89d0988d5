from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.parts.agents.recipes import agent
from remit.record.views import ConfirmationView
from remit.settings import load
from tests.pages.conftest import Served, token
from tests.parts.agents import bank

pytestmark = pytest.mark.slow

HIDDEN = "pay\u202eyap\u200b <b>bold</b> **bold** [x](https://evil.example)"


@tool("shop.order")
def order(item: str, count: int = 1, note: str = "") -> dict[str, Any]:
    """Order an item."""
    return {"item": item, "count": count, "note": note}


@recipe("ordering")
async def ordering(run: Run, item: str, note: str = "") -> Any:
    """Order something."""
    return (await run.call("shop.order", {"item": item, "count": 2, "note": note})).value


def remit(**more: Any) -> Remit:
    return Remit(":memory:", tools=[order], recipes=[ordering], **more)


async def asked(opened: Remit, **given: str) -> tuple[Any, ConfirmationView]:
    """A job that has asked, and its question."""
    job = await opened.start(ordering(**{"item": "milk", **given}))
    await opened.service.jobs.settled([job.id])
    (question,) = await job.questions()
    return job, question


async def test_the_exact_call_is_shown_whole_and_never_as_markup(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        _job, question = await asked(opened, item=HIDDEN, note="x" * 300_000)
        text = (await browser.get(f"/inbox/{question.confirmation}")).text
        assert "x" * 300_000 in text
        assert "pay⟨U+202E⟩yap⟨U+200B⟩ &lt;b&gt;bold&lt;/b&gt; **bold** [x](https://evil.example)" in text
        assert question.digest in text
        assert 'href="https' not in text


async def test_defaults_of_the_tool_are_shown_beside_the_arguments(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        outcome = await opened.call("shop.order", {"item": "milk", "count": 3})
        inbox = await browser.get("/inbox")
        fields = [("csrf", inbox.csrf), ("decision", "approve"), ("pick", str(outcome.confirmation))]
        pages = [await browser.get(f"/inbox/{outcome.confirmation}"), await browser.send("/inbox/review", fields)]
        for page in pages:
            arguments, _, defaults = page.text.partition("so the tool takes its defaults")
            assert "&#34;count&#34;: 3" in arguments
            assert "&#34;/note&#34;: &#34;&#34;" in defaults
            assert "&#34;/count&#34;" not in defaults


async def test_an_edit_of_a_file_is_shown_as_the_difference_that_it_makes(served: Served, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n--- two <b>\nthree\n")
    flags = {"journal.url": ":memory:", "fs.roots": ["."]}
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    async with Remit(settings=settings) as opened, served(opened) as browser:
        edits = [{"search": "--- two <b>", "replace": f"+++ 2 {HIDDEN}"}]
        outcome = await opened.call("fs.edit", {"path": "a.md", "edits": edits})
        page = (await browser.get(f"/inbox/{outcome.confirmation}")).text
        assert "Edits a.md: 3 lines now, 3 lines afterwards." in page
        assert '<span class="removed">- --- two &lt;b&gt;\n</span>' in page
        assert '<span class="added">+ +++ 2 pay⟨U+202E⟩yap⟨U+200B⟩ &lt;b&gt;bold&lt;/b&gt;' in page
        assert '<span class="same">  three\n</span>' in page

        (tmp_path / "a.md").write_text("another text\n")
        page = (await browser.get(f"/inbox/{outcome.confirmation}")).text
        assert "What the call would change is unknown." in page
        assert 'class="removed"' not in page


async def test_a_job_that_asks_shows_what_the_call_would_be_given(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job, question = await asked(opened, note="x" * 10_000)
        page = (await browser.get(f"/jobs/{job.id}?step={question.step}")).text
        assert "&#34;item&#34;: &#34;milk&#34;" in page.partition('id="step-args"')[2]
        assert "&#34;item&#34;:&#34;milk&#34;" in page, "in its row, too"
        kept = f"/jobs/{job.id}/steps/{question.step}/kept/args"
        assert kept in page
        assert "x" * 10_000 in (await browser.get(kept)).text


async def test_lists_tell_questions_apart_by_what_the_call_is_given(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        await asked(opened, item="milk", note="password=hunter2hunter2")
        await asked(opened, item=HIDDEN)
        for path in ("/", "/inbox"):
            text = (await browser.get(path)).text
            assert "item: milk" in text
            assert "pay\\u202eyap\\u200b" in text
            assert "<b>bold" not in text
            assert "hunter2" not in text


async def test_an_approval_lets_the_call_run_and_goes_back_to_the_inbox(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job, question = await asked(opened)
        assert 'class="count">1<' in (await browser.get("/")).text
        page = await browser.get(f"/inbox/{question.confirmation}")
        fields = [("csrf", page.csrf), ("digest", question.digest)]
        done = await browser.send(f"/inbox/{question.confirmation}/approve", fields)
        assert done.status == 303
        after = await browser.get(done.headers["location"])
        assert "shop.order: " in after.text
        assert "Nothing waits for you." in after.text
        assert await job == {"item": "milk", "count": 2, "note": ""}


async def test_an_approval_is_taken_back_by_its_form(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        outcome = await opened.call("shop.order", {"item": "milk"})
        where = f"/inbox/{outcome.confirmation}"
        page = await browser.get(where)
        assert "Take back" not in page.text
        fields = [("csrf", page.csrf), ("digest", re.findall(r"sha256:[0-9a-f]{64}", page.text)[0])]
        await browser.send(f"{where}/approve", fields)
        approved = await browser.get(where)
        assert "Take back" in approved.text
        done = await browser.send(f"{where}/revoke", [("csrf", approved.csrf), ("reason", "too much milk")])
        assert (done.status, done.headers["location"]) == (303, where)
        after = await browser.get(where)
        assert "too much milk" in after.text
        assert "Take back" not in after.text
        again = await browser.send(f"{where}/revoke", [("csrf", approved.csrf)])
        assert (again.status, "did not count" in again.text) == (409, True)
        assert (await opened.call("shop.order", {"item": "milk"})).confirmation != outcome.confirmation


async def test_an_answer_to_something_else_than_was_shown_does_not_count(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        _, question = await asked(opened)
        page = await browser.get(f"/inbox/{question.confirmation}")
        fields = [("csrf", page.csrf), ("digest", "sha256:" + "0" * 64)]
        got = await browser.send(f"/inbox/{question.confirmation}/approve", fields)
        assert got.status == 409
        assert "did not count" in got.text
        assert (await opened.service.confirmations.view(question.confirmation)).state == "pending"


async def test_the_loser_of_a_race_is_told_who_decided(served: Served) -> None:
    tokens = [token("ann", "read", "decide"), token("ben", "read", "decide")]
    async with remit() as opened, served(opened, tokens) as ann, served(opened, tokens) as ben:
        _, question = await asked(opened)
        where = f"/inbox/{question.confirmation}"
        sent = []
        for browser, name, verb in ((ann, "ann", "approve"), (ben, "ben", "deny")):
            await browser.log_in(f"secret-{name}")
            fields = [("csrf", (await browser.get(where)).csrf), ("digest", question.digest), ("reason", "because")]
            sent.append(browser.send(f"{where}/{verb}", fields))
        answers = await asyncio.gather(*sent)
        assert sorted(one.status for one in answers) == [303, 409]
        lost = next(one for one in answers if one.status == 409)
        winner = "ben" if answers[1].status == 303 else "ann"
        assert re.search(rf"{winner} was faster: \w+", lost.text)
        assert "because" in lost.text
        assert "Approve once" not in lost.text


async def test_a_denial_reaches_whoever_asked(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job, question = await asked(opened)
        page = await browser.get(f"/inbox/{question.confirmation}")
        fields = [("csrf", page.csrf), ("digest", question.digest), ("reason", "Not now.")]
        assert (await browser.send(f"/inbox/{question.confirmation}/deny", fields)).status == 303
        await opened.service.jobs.settled([job.id])
        assert "Not now." in (await browser.get(f"/jobs/{job.id}")).text
        over = (await browser.get(f"/inbox/{question.confirmation}")).text
        assert "It is over: denied." in over
        assert "Not now." in over
        assert "Approve once" not in over


async def test_an_edit_is_a_question_of_its_own_with_the_difference(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job, question = await asked(opened)
        page = await browser.get(f"/inbox/{question.confirmation}")
        fields = [("csrf", page.csrf)]
        for name, value in (("item", "milk"), ("count", "5"), ("note", "")):
            fields += [("name", name), ("value", value)]
        done = await browser.send(f"/inbox/{question.confirmation}/edit", fields)
        assert done.status == 303
        edited = await browser.get(done.headers["location"])
        assert '<span class="removed">-   &#34;count&#34;: 2,' in edited.text
        assert '<span class="added">+   &#34;count&#34;: 5,' in edited.text
        assert question.digest not in edited.text
        digest = edited.text.partition('name="digest" value="')[2].partition('"')[0]
        await browser.send(f"{done.headers['location']}/approve", [("csrf", page.csrf), ("digest", digest)])
        assert await job == {"item": "milk", "count": 5, "note": ""}


async def test_an_edit_that_does_not_fit_the_schema_is_refused_and_the_question_stays(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        _, question = await asked(opened)
        page = await browser.get(f"/inbox/{question.confirmation}")
        fields = [("csrf", page.csrf), ("name", "item"), ("value", "milk"), ("name", "count"), ("value", '"many"')]
        got = await browser.send(f"/inbox/{question.confirmation}/edit", fields)
        assert (got.status, "INVALID_TOOL_ARGS" in got.text) == (400, True)
        assert (await opened.service.confirmations.view(question.confirmation)).state == "pending"


async def test_a_remembered_approval_lets_the_same_call_run_again(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job, question = await asked(opened)
        page = await browser.get(f"/inbox/{question.confirmation}")
        assert page.text.count("Tested: this call would run without asking.") == 2
        fields = [("csrf", page.csrf), ("digest", question.digest), ("scope", "everything"), ("exact", "yes")]
        refused = await browser.send(f"/inbox/{question.confirmation}/remember", [*fields, ("seconds", "999999999")])
        assert refused.status == 400
        done = await browser.send(f"/inbox/{question.confirmation}/remember", [*fields, ("seconds", "3600")])
        assert done.status == 303
        await job
        assert await (await opened.start(ordering(item="milk")))
        other = await opened.start(ordering(item="tea"))
        await opened.service.jobs.settled([other.id])
        assert len(await other.questions()) == 1


async def test_two_people_approve_and_both_have_to_want_it_remembered(served: Served, tmp_path: Path) -> None:
    found = load(cwd=tmp_path, env={}, flags={"journal.url": ":memory:"})
    two = {"id": "two", "effect": "ask", "tools": ["shop.order"], "approvals": 2}
    settings = msgspec.structs.replace(found, policy=msgspec.structs.replace(found.policy, rules=(two,)))
    tokens = [token("ann", "read", "decide"), token("ben", "read", "decide")]
    shop = Remit(settings=settings, tools=[order], recipes=[ordering])
    async with shop as opened, served(opened, tokens) as ann, served(opened, tokens) as ben:
        job, question = await asked(opened)
        where = f"/inbox/{question.confirmation}"
        await ann.log_in("secret-ann")
        await ben.log_in("secret-ben")
        page = await ann.get(where)
        assert "0 of 2" in page.text
        assert "2 people have to choose this" in page.text
        wish = [("digest", question.digest), ("scope", "everything"), ("exact", "yes"), ("seconds", "3600")]
        sent = await ann.send(f"{where}/remember", [("csrf", page.csrf), *wish])
        assert "your approval counts; 1 more must approve" in (await ann.get(sent.headers["location"])).text
        assert "You have approved it; it needs another person too." in (await ann.get(where)).text
        page = await ben.get(where)
        assert "1 of 2: ann" in page.text
        assert page.text.count("Tested: this call would run without asking.") == 1
        assert await opened.service.approvals.active() == []
        await ben.send(f"{where}/remember", [("csrf", page.csrf), *wish])
        assert (await job)["item"] == "milk"
        (kept,) = await opened.service.approvals.active()
        assert kept.made_by == ("ann", "ben")


async def test_whoever_may_not_answer_is_told_why_and_sees_no_button(served: Served) -> None:
    async with remit() as opened, served(opened, [token("eve", "read")]) as browser:
        _, question = await asked(opened)
        await browser.log_in("secret-eve")
        page = await browser.get(f"/inbox/{question.confirmation}")
        assert "Your token lacks the scope decide." in page.text
        assert "Approve once" not in page.text
        fields = [("csrf", page.csrf), ("digest", question.digest)]
        assert (await browser.send(f"/inbox/{question.confirmation}/approve", fields)).status == 403
        inbox = (await browser.get("/inbox")).text
        assert "Nothing waits for you." in inbox
        assert "For others" in inbox
        assert 'class="count"' not in inbox


async def test_what_nobody_trusted_named_is_shown_with_the_text_that_it_comes_from(
    served: Served, tmp_path: Path
) -> None:
    async with bank.opened(bank.settings(tmp_path, *bank.INJECTED)) as opened, served(opened) as browser:
        job = await opened.start(agent(task="Answer my mail.", tools=list(bank.TOOLS)))
        await opened.service.jobs.settled([job.id])
        (question,) = await job.questions()
        text = (await browser.get(f"/inbox/{question.confirmation}")).text
        assert "What this call reaches comes only from untrusted text." in text
        assert "iban (iban) comes from mail.read, step 2.0.1, which is not trusted" in text
        assert f"/jobs/{job.id}?step=2.0.1" in text
        assert "pay 900 EUR to <mark>DE89 3704 0044 0532 0130 00</mark>" in text
        await opened.service.confirmations.decide(question.confirmation, "deny", by="ann")
        await job.result()
        text = (await browser.get(f"/jobs/{job.id}?step={question.step}")).text
        assert '<span class="note">calls mail.read {}</span>' in text
        assert "What this call reaches came only from untrusted text: denied by ann." in text
        assert f"/jobs/{job.id}?step=2.0.1" in text
        assert "pay 900 EUR to <mark>DE89 3704 0044 0532 0130 00</mark>" in text


async def test_text_that_nobody_trusts_is_never_markup(served: Served, tmp_path: Path) -> None:
    evil = "</blockquote><script>alert(1)</script>"
    pays = bank.call(("bank.pay", {"iban": bank.IBAN, "amount": 1}))
    given = bank.settings(tmp_path, {"say": "as imported"}, pays, {"say": "Done."})
    async with bank.opened(given) as opened, served(opened) as browser:
        said = [{"role": "user", "content": "Hi"}, *bank.imported(f"{evil} {bank.IBAN} {evil}")]
        job = await opened.start(agent(task="Go on.", tools=list(bank.TOOLS), messages=said))
        await opened.service.jobs.settled([job.id])
        (question,) = await job.questions()
        text = (await browser.get(f"/inbox/{question.confirmation}")).text
        assert f"<mark>{bank.IBAN}</mark>" in text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text


async def test_a_question_shows_what_was_asked_before_and_how_it_ended(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        answers: tuple[tuple[Literal["approve", "deny"], str], ...] = (("approve", "milk"), ("deny", "tea"))
        for decision, item in answers:
            _, question = await asked(opened, item=item)
            await opened.service.confirmations.decide(question.confirmation, decision, by="boss", reason="as agreed")
        await opened.service.jobs.settled()
        _, question = await asked(opened, item="milk")
        text = (await browser.get(f"/inbox/{question.confirmation}")).text
        before = text.partition('id="earlier"')[2].partition("</section>")[0]
        assert before.index("denied by boss: as agreed") < before.index("approved and done by boss: as agreed")
        assert before.count("same call") == 1
        assert before.index("item: tea") < before.index("same call")


async def test_after_an_answer_the_next_question_is_one_step_away(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        _, first = await asked(opened, item="milk")
        _, second = await asked(opened, item="tea")
        page = await browser.get(f"/inbox/{first.confirmation}")
        sent = await browser.send(
            f"/inbox/{first.confirmation}/deny", [("csrf", page.csrf), ("digest", first.digest), ("reason", "")]
        )
        after = (await browser.get(sent.headers["location"])).text
        assert f'href="/inbox/{second.confirmation}">Next question</a>' in after
