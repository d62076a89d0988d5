from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import expect

from remit import Remit, Run, recipe, tool
from remit.service.options import Options
from remit.settings import load
from tests.pages.browsing import window
from tests.pages.conftest import Browser, Got, Served, token

pytestmark = pytest.mark.slow


@tool("desk.refund")
def refund(customer: str, cents: int, currency: str = "EUR") -> str:
    """Refund."""
    return f"{customer} {cents} {currency}"


@recipe("refunds")
async def refunds(run: Run, customer: str, cents: int) -> Any:
    """Refund something."""
    return (await run.call("desk.refund", {"customer": customer, "cents": cents, "currency": "EUR"})).value


@recipe("restarts")
async def restarts(run: Run, service: str) -> bool:
    """Ask before it restarts."""
    return (await run.confirm(f"Restart {service} now?", details={"service": service})).approved


def remit(**more: Any) -> Remit:
    return Remit(":memory:", tools=[refund], recipes=[refunds, restarts], **more)


async def asked(opened: Remit, count: int) -> list[Any]:
    """Jobs that each ask for a refund, and one that asks a question of its own, the last."""
    jobs = [
        await opened.start(
            refunds(customer=f"c{number}", cents=100 + number), Options(labels={"team": f"t{number % 2}"})
        )
        for number in range(count)
    ]
    jobs.append(await opened.start(restarts(service="web")))
    await opened.service.jobs.settled([job.id for job in jobs])
    return jobs


async def reviewed(browser: Browser, *fields: tuple[str, str]) -> Got:
    """The page that shows what is selected."""
    inbox = await browser.get("/inbox")
    return await browser.send("/inbox/review", [("csrf", inbox.csrf), *fields])


def seen(page: Got) -> list[tuple[str, str]]:
    return [("seen", text) for text in re.findall(r'name="seen" value="([^"]+)"', page.text)]


async def test_a_question_is_the_heading_of_its_page_and_of_its_row(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        (job,) = await asked(opened, 0)
        (question,) = await job.questions()
        page = (await browser.get(f"/inbox/{question.confirmation}")).text
        assert '<h1 class="asks">Restart web now?</h1>' in page
        assert "What will happen" not in page
        for path in ("/", "/inbox"):
            assert f'<a href="/inbox/{question.confirmation}">Restart web now?</a>' in (await browser.get(path)).text


async def test_rows_of_one_tool_stand_together_and_show_what_differs_and_for_which_job(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        await asked(opened, 3)
        page = (await browser.get("/inbox")).text
        assert "All 3 of <strong>desk.refund</strong>" in page
        assert '<td class="about">customer: c1, cents: 101</td>' in page
        assert "currency: EUR" not in page
        row = page.partition("customer: c1, cents: 101</td>")[2].partition("</tr>")[0]
        assert ">refunds</a>" in row
        assert "team=t1" in row


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("tool=desk.refund", 3),
        ("recipe=restarts", 1),
        ("label=team%3Dt0", 2),
        ("principal=nobody", 0),
        ("tool=desk.refund&label=team%3Dt1", 1),
    ],
)
async def test_the_inbox_is_filtered_by_tool_recipe_label_and_principal(
    served: Served, query: str, number: int
) -> None:
    async with remit() as opened, served(opened) as browser:
        await asked(opened, 3)
        page = (await browser.get(f"/inbox?{query}")).text
        assert page.count('name="pick"') == number
        assert ("None of the 4 questions that wait for you fits the filter." in page) == (not number)


async def test_a_label_without_a_value_is_refused(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        assert (await browser.get("/inbox?label=team")).status == 400


async def test_a_whole_group_is_shown_call_by_call_and_answered_each_by_its_digest(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        *jobs, other = await asked(opened, 3)
        page = await reviewed(browser, ("decision", "approve"), ("whole", "desk.refund"))
        assert "Approve 3 questions" in page.text
        assert page.text.count("&#34;currency&#34;: &#34;EUR&#34;") == 3
        (late,) = await jobs[1].questions()
        await opened.service.confirmations.decide(late.confirmation, "deny", by="ben")
        done = await browser.send("/inbox/answers/approve", [("csrf", page.csrf), *seen(page), ("reason", "fine")])
        assert "Approve: 2 of 3 questions" in done.text
        assert "CONFIRMATION_CLOSED" in done.text
        assert [await jobs[number] for number in (0, 2)] == ["c0 100 EUR", "c2 102 EUR"]
        assert len(await other.questions()) == 1


async def test_what_is_selected_is_denied_with_the_reason(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        *jobs, _ = await asked(opened, 3)
        picks = [("pick", (await job.questions())[0].confirmation) for job in jobs[:2]]
        page = await reviewed(browser, ("decision", "deny"), *picks)
        done = await browser.send("/inbox/answers/deny", [("csrf", page.csrf), *seen(page), ("reason", "Too much.")])
        assert "Deny: 2 of 2 questions" in done.text
        for _, name in picks:
            told = await opened.service.confirmations.answers(name)
            assert (told.decisions[-1].decision, told.decisions[-1].reason) == ("deny", "Too much.")


async def test_a_digest_that_was_not_shown_answers_nothing(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        *jobs, _ = await asked(opened, 2)
        page = await reviewed(browser, ("decision", "approve"), ("whole", "desk.refund"))
        first, second = seen(page)
        wrong = ("seen", f"{first[1].partition(' ')[0]} sha256:{'0' * 64}")
        done = await browser.send("/inbox/answers/approve", [("csrf", page.csrf), wrong, second])
        assert "Approve: 1 of 2 questions" in done.text
        assert "CONFIRMATION_MISMATCH" in done.text
        assert len(await jobs[0].questions()) == 1


async def test_above_twenty_their_number_is_typed(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        *jobs, _ = await asked(opened, 21)
        page = await reviewed(browser, ("decision", "approve"), ("whole", "desk.refund"))
        assert "Type 21 to confirm" in page.text
        refused = await browser.send("/inbox/answers/approve", [("csrf", page.csrf), *seen(page), ("number", "20")])
        assert (refused.status, "Type the number of questions: 21." in refused.text) == (400, True)
        done = await browser.send("/inbox/answers/approve", [("csrf", page.csrf), *seen(page), ("number", "21")])
        assert "Approve: 21 of 21 questions" in done.text
        assert await jobs[20] == "c20 120 EUR"


async def test_one_of_two_approvals_counts_and_more_must_follow(served: Served, tmp_path: Path) -> None:
    found = load(cwd=tmp_path, env={}, flags={"journal.url": ":memory:"})
    two = {"id": "two", "effect": "ask", "tools": ["desk.refund"], "approvals": 2}
    settings = msgspec.structs.replace(found, policy=msgspec.structs.replace(found.policy, rules=(two,)))
    desk = Remit(settings=settings, tools=[refund], recipes=[refunds, restarts])
    async with desk as opened, served(opened, [token("ann", "read", "decide")]) as browser:
        await asked(opened, 2)
        await browser.log_in("secret-ann")
        page = await reviewed(browser, ("decision", "approve"), ("whole", "desk.refund"))
        done = await browser.send("/inbox/answers/approve", [("csrf", page.csrf), *seen(page)])
        assert done.text.count("counts; 1 more must approve") == 2
        again = await reviewed(browser, ("decision", "approve"), ("whole", "desk.refund"))
        assert "No question is selected." in again.text


async def test_whoever_may_not_decide_reviews_and_answers_nothing(served: Served) -> None:
    async with remit() as opened, served(opened, [token("eve", "read")]) as browser:
        await asked(opened, 1)
        await browser.log_in("secret-eve")
        assert 'name="pick"' not in (await browser.get("/inbox")).text
        assert (await reviewed(browser, ("decision", "approve"), ("whole", "desk.refund"))).status == 403


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
async def test_a_group_is_selected_and_answered_in_a_browser(
    served: Served, browser: Chromium, *, scripts: bool
) -> None:
    async with remit() as opened, served(opened) as server:
        *jobs, _ = await asked(opened, 3)
        async with window(browser, server.url, java_script_enabled=scripts) as shown:
            page = await shown.open("/inbox")
            await page.get_by_label("All 3 of desk.refund").check()
            picked = await page.locator("input[name=pick]:checked").count()
            assert picked == (3 if scripts else 0)
            await page.get_by_role("button", name="Approve…").click()
            await page.get_by_role("button", name="Approve 3 questions").click()
            await expect(page.locator("h1")).to_have_text("Approve: 3 of 3 questions")
            assert [await job for job in jobs] == ["c0 100 EUR", "c1 101 EUR", "c2 102 EUR"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_selection_outlives_news(served: Served, browser: Chromium) -> None:
    async with remit() as opened, served(opened) as server:
        *jobs, last = await asked(opened, 3)
        async with window(browser, server.url) as shown:
            page = await shown.open("/inbox")
            await expect(page.locator("#live-state")).to_have_text("Live")
            box = page.get_by_label("All 3 of desk.refund")
            await box.check()
            await box.blur()
            (question,) = await jobs[2].questions()
            await opened.service.confirmations.decide(question.confirmation, "deny")
            (other,) = await last.questions()
            await opened.service.confirmations.decide(other.confirmation, "deny")
            await expect(page.locator("tr.gone")).to_have_count(2)
            await expect(page.get_by_label("All 2 of desk.refund")).to_be_checked()
            assert await page.locator("input[name=pick]:checked").count() == 3
