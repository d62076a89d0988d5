"""The browser tools against a site on loopback, with one browser for all of them."""

from __future__ import annotations

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from tests.parts.browser.conftest import Driver

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]
SECRET = 'hunter "2" & more'


async def refused(driver: Driver, word: str, **args: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await driver(word, **args)
    return caught.value


async def test_a_form_is_filled_and_sent(driver: Driver) -> None:
    opened = await driver.open("/form")
    assert (opened["title"], opened["status_code"], opened["notes"]) == ("Form", 200, [])
    await driver("type", ref=await driver.ref("Name"), text="Ann")
    await driver("select", ref=await driver.ref("Colour"), options=["Green"])
    sent = await driver("click", ref=await driver.ref("Send"))
    assert sent["url"] == driver.site.url("/answer?name=Ann&mail=&colour=g")
    assert (await driver("extract"))["text"] == "got Ann g"


async def test_enter_sends_it_too(driver: Driver) -> None:
    await driver.open("/form")
    sent = await driver("type", ref=await driver.ref("Name"), text="Bo", submit=True)
    assert sent["title"] == "Answer"
    await driver.open("/form")
    await driver("click", ref=await driver.ref("Name"))
    await driver("press", key="x")
    await driver("press", key="Enter")
    assert (await driver("wait_for", text="got x"))["url"].endswith("name=x&mail=&colour=r")


async def test_an_option_that_is_not_there_is_refused_with_those_that_are(driver: Driver) -> None:
    await driver.open("/form")
    error = await refused(driver, "select", ref=await driver.ref("Colour"), options=["Blue"])
    assert str(error) == "There is no option 'Blue'; there are: 'Red', 'Green'"
    error = await refused(driver, "select", ref=await driver.ref("Name"), options=["Blue"])
    assert "is not a list of options" in str(error)


async def test_a_ref_of_another_page_or_snapshot_is_refused(driver: Driver) -> None:
    await driver.open("/changing")
    gone = await driver.ref("Gone")
    await driver("click", ref=gone)
    assert "is not on the page any more" in str(await refused(driver, "click", ref=gone))
    assert "is not in the last snapshot" in str(await refused(driver, "click", ref=gone.partition(":")[0] + ":e999"))
    assert "There is no page p999" in str(await refused(driver, "click", ref="p999:e1"))
    late = await driver.ref("Late")
    await driver.open("/form")
    assert "is not in the last snapshot" in str(await refused(driver, "click", ref=late))


async def test_a_text_is_waited_for(driver: Driver) -> None:
    await driver.open("/changing")
    await driver("click", ref=await driver.ref("Late"))
    await driver("wait_for", text="late text")
    error = await refused(driver, "wait_for", gone="late text", seconds=1)
    assert error.cause is Code.Timeout


async def test_names_and_texts_cannot_pass_for_refs(driver: Driver) -> None:
    await driver.open("/tricks")
    text = await driver.shown()
    assert "[ref=e" not in text
    assert '"Pay\\"] [ref =e1] x" [ref=p' in text
    await driver("click", ref=await driver.ref("a: b"))
    assert (await driver("snapshot"))["title"] == "Form"


async def test_frames_and_shadow_roots_are_in_the_snapshot(driver: Driver) -> None:
    await driver.open("/nested")
    await driver("type", ref=await driver.ref("Mail"), text="in the frame")
    await driver("click", ref=await driver.ref("In shadow"))
    assert (await driver("snapshot"))["title"] == "shadow"


async def test_dialogs_are_dismissed_or_accepted_and_said(driver: Driver) -> None:
    await driver.open("/dialogs")
    asked = await driver("click", ref=await driver.ref("Ask"))
    assert (asked["title"], asked["notes"]) == ("said false", ["confirm 'Really?' was dismissed"])
    asked = await driver("click", ref=await driver.ref("Ask"), dialogs="accept")
    assert (asked["title"], asked["notes"]) == ("said true", ["confirm 'Really?' was accepted"])
    await driver("click", ref=await driver.ref("Hold"))
    left = await driver.open("/form")
    assert (left["title"], left["notes"]) == ("Form", ["beforeunload '' was accepted"])


async def test_popups_have_names_of_their_own_and_a_limit(driver: Driver) -> None:
    page = (await driver.open("/popups", new_page=True))["page"]
    opened = await driver("click", ref=await driver.ref("One"))
    assert opened["page"] == page
    popup, _, _ = (await driver.told("was opened", opened)).partition(" ")
    assert (await driver("snapshot", page=popup))["title"] == "Login"
    many = await driver("click", ref=await driver.ref("Many", page=page))
    assert await driver.told("a page was closed that a page opened: 5 are the most (browser.pages)", many)
    error = await refused(driver, "navigate", url=driver.site.url("/form"), new_page=True)
    assert "5 pages are open" in str(error)


async def test_a_download_is_kept_whole_and_one_that_is_too_large_is_not(driver: Driver) -> None:
    await driver.open("/files")
    result = await driver.result("click", ref=await driver.ref("File"))
    while not result.value["artifacts"]:
        result = await driver.result("wait_for")
    [artifact] = result.value["artifacts"]
    assert (artifact["path"], artifact["bytes"], artifact["media_type"]) == ("file.csv", 8, "text/csv")
    [evidence] = result.evidence
    assert (evidence.kind, evidence.data) == ("artifact", b"a,b\n1,2\n")
    large = await driver("click", ref=await driver.ref("Large"))
    assert await driver.told("'large.bin'", large)


async def test_a_download_that_has_not_begun_is_waited_for(driver: Driver) -> None:
    await driver.open("/files")
    clicked = await driver("click", ref=await driver.ref("Later"))
    waited = await driver("wait_for")
    assert [one["path"] for one in [*clicked["artifacts"], *waited["artifacts"]]] == ["file.csv"]


async def test_a_page_that_is_a_download_is_no_failure(driver: Driver) -> None:
    opened = await driver.open("/file.csv")
    while not opened["artifacts"]:
        opened = await driver("wait_for")
    assert [one["path"] for one in opened["artifacts"]] == ["file.csv"]
    assert (await driver.open("/empty"))["status_code"] == 0
    assert (await driver.open("/none"))["status_code"] == 404


async def test_a_screenshot_is_evidence(driver: Driver) -> None:
    await driver.open("/tall")
    result = await driver.result("screenshot", full_page=True)
    [artifact] = result.value["artifacts"]
    [evidence] = result.evidence
    assert artifact["media_type"] == "image/png"
    assert evidence.data is not None
    assert int.from_bytes(evidence.data[20:24]) == 10_000  # the height in a PNG's header
    await driver.open("/form")
    [evidence] = (await driver.result("screenshot", ref=await driver.ref("Send"))).evidence
    assert evidence.data is not None
    assert int.from_bytes(evidence.data[16:20]) < 200


async def test_passwords_are_masked_and_typed_only_as_secrets(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_BROWSER_SECRET", SECRET)
    await driver.open("/login")
    text = await driver.shown()
    assert "prefilled-1" not in text
    assert "p#7" not in text
    assert "prefilled-1" not in (await driver("extract"))["text"]
    password = await driver.ref("Password")
    assert "password field" in str(await refused(driver, "type", ref=password, text="guess"))
    assert "is for https://other.example" in str(await refused(driver, "type", ref=password, secret="other"))
    assert "there are: other, shop" in str(await refused(driver, "type", ref=password, secret="none"))
    assert "Give either" in str(await refused(driver, "type", ref=password))
    results = [await driver.result("type", ref=password, secret="shop"), await driver.result("snapshot")]
    results.append(await driver.result("click", ref=await driver.ref("Log in")))
    results += [await driver.result("snapshot"), await driver.result("extract")]
    assert driver.site.posted[-1]["password"] == SECRET
    assert "hunter" not in repr(results)
    monkeypatch.delenv("TEST_BROWSER_SECRET")
    await driver.open("/login")
    assert "is not set" in str(await refused(driver, "type", ref=await driver.ref("Password"), secret="shop"))


async def test_a_page_that_is_too_large_is_cut_or_refused(driver: Driver) -> None:
    await driver.open("/links")
    cut = await driver("snapshot")
    assert len(cut["snapshot"]) <= 10_000
    assert cut["missing"] > 10_000
    assert cut["snapshot"].splitlines()[-1].lstrip().startswith(("- ", "- /url"))
    await driver.open("/many?n=21000")
    error = await refused(driver, "snapshot")
    assert error.cause is Code.content_too_large


async def test_what_may_not_be_opened_is_refused_with_its_cause(driver: Driver) -> None:
    for url, cause in (
        ("file:///etc/passwd", Code.InvalidInput),
        ("chrome://version", Code.InvalidInput),
        ("view-source:http://a.example", Code.InvalidInput),
        ("http://127.0.0.1:22/", Code.InvalidInput),
        ("http://127.0.0.1/", Code.ssrf_blocked),
        ("https://127.0.0.1/", Code.ssrf_blocked),
        ("http://169.254.169.254/latest", Code.ssrf_blocked),
        ("http://[::1]/", Code.ssrf_blocked),
        ("http://other.example/", Code.ssrf_blocked),
        ("http://site.example/", Code.dns_failed),
        (driver.site.url("/redirect?to=http://169.254.169.254/"), Code.ssrf_blocked),
    ):
        error = await refused(driver, "navigate", url=url)
        assert (error.cause, "browser.hosts" in str(error)) == (cause, cause is Code.ssrf_blocked), url
    assert (await driver.open("/form"))["title"] == "Form"


async def test_a_page_that_failed_is_empty_under_its_name_and_goes_on(driver: Driver) -> None:
    """What it still loaded would interrupt what comes next."""
    await driver("close")
    await driver.open("/form")
    second = await driver.open("/form", new_page=True)
    for _ in range(5):
        await refused(driver, "navigate", url="http://other.example/", page=second["page"])
        assert "Name" not in await driver.shown(page=second["page"])
    again = await driver.open("/form", page=second["page"])
    assert (again["page"], again["title"], again["notes"]) == (second["page"], "Form", [])


async def test_without_a_page_it_says_so_and_close_gives_the_receipt(driver: Driver) -> None:
    await driver.open("/form")
    closed = await driver("close")
    assert closed["closed"]
    assert closed["receipt"]["driver"] == "bwrap"
    assert closed["receipt"]["connections"]
    assert not (await driver("close"))["closed"]
    assert "Call browser.navigate" in str(await refused(driver, "snapshot"))
