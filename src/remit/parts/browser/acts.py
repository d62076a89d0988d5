"""The acts of the tools on a page. Each raises BrowserError, or Playwright's Error, which the provider translates.

A page as its accessibility tree: refs that name their page, values of password fields masked, cut at a line's end.

The lines are Playwright's (`aria_snapshot(mode="ai")`): indentation, `- `, a role, a name in JSON, attributes in
brackets, and a value after a colon; a key that YAML would misread stands in single quotes. Names and values are the
page's words: only a `[ref=…]` among the attributes is a ref, and what looks like one elsewhere is spelt differently.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from playwright.async_api import Error

from remit.codes import Code
from remit.files.hypertext import TooDeepError, page_text
from remit.http.urls import InvalidUrlError, checked, place_of
from remit.parts.browser.conversation import ACT_S, BrowserConversation, BrowserFile, Tab
from remit.parts.browser.launch import BrowserError, browser_error
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from playwright.async_api import Locator

    from remit.parts.browser import shapes
    from remit.parts.browser.settings import BrowserSettings
    from remit.process.enclosure import ConnectionAttempt


MASK: Final = "***"
_QUOTED: Final = regex(r" *- '((?:[^']|'')*)'(:.*)?", re.DOTALL)
_KEY: Final = regex(r'(?P<role>[a-z]+)(?P<name> "(?:[^"\\]|\\.)*")?(?P<attributes>(?: \[[^\[\]"]*\])*)')
_REF: Final = regex(r" \[ref=((?:f\d+)?e\d+)\]")


class SnapshotLine(NamedTuple):
    """One line of a snapshot."""

    indent: int
    role: str
    name: str
    """In JSON, with a blank before it; empty: none."""
    attributes: str
    ref: str
    """Empty: none."""
    value: str
    """With the colon before it; empty: none."""


class ShownSnapshot(NamedTuple):
    """A snapshot as it is handed out."""

    text: str
    refs: frozenset[str]
    """The refs in the text, as Playwright knows them."""
    missing: int
    """Characters that were cut off."""


def lines_of(snapshot: str) -> Iterator[SnapshotLine]:
    """Return the lines of a snapshot; one that is of another form has a value alone."""
    for text in snapshot.split("\n"):
        yield _line(text)


def shown(lines: list[SnapshotLine], page: str, most: int, *, secret: Callable[[str], bool]) -> ShownSnapshot:
    """Return the first `most` characters of a snapshot of a page; `secret` says whether a ref's value is hidden."""
    texts: list[str] = []
    refs: set[str] = set()
    total, length, hidden_below = 0, 0, -1
    for line in lines:
        if line.indent <= hidden_below:
            hidden_below = -1
        hides = hidden_below >= 0 and line.role == "text"
        if line.ref and secret(line.ref):
            hidden_below, hides = line.indent, len(line.value) > 1
        text = _text(line, page, hides=hides)
        total += len(text) + 1
        if total <= most:
            texts.append(text)
            length = total
            refs.update(filter(None, (line.ref,)))
    return ShownSnapshot("\n".join(texts), frozenset(refs), total - length)


def _line(text: str) -> SnapshotLine:
    indent = len(text) - len(text.lstrip(" "))
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        key, value = _KEY.fullmatch(quoted[1].replace("''", "'")), quoted[2] or ""
    else:
        key = _KEY.match(text, indent + 2) if text.startswith("- ", indent) else None
        value = text[key.end() :] if key is not None else ""
    if key is None or not (value == "" or value.startswith(":")):
        return SnapshotLine(indent, "", "", "", "", text[indent:])
    ref = _REF.search(key["attributes"])
    return SnapshotLine(indent, key["role"], key["name"] or "", key["attributes"], ref[1] if ref else "", value)


def _text(line: SnapshotLine, page: str, *, hides: bool) -> str:
    """Return a line as it is handed out: its key is never quoted, since a name in JSON needs no more."""
    value = f": {MASK}" if hides else _harmless(line.value)
    if not line.role:
        return " " * line.indent + value
    attributes = _REF.sub(rf" [ref={page}:\1]", line.attributes)
    return f"{' ' * line.indent}- {line.role}{_harmless(line.name)}{attributes}{value}"


def _harmless(words: str) -> str:
    return words.replace("[ref=", "[ref =")


LOAD_S: Final = 25.0
_BEGINS_S: Final = 1.5
"""A download that a click asked for has begun by then, or is waited for once more."""
_SETTLE_S: Final = 0.5
_ELEMENTS: Final = 20_000
"""Above it a snapshot takes seconds and gigabytes, at whatever depth."""
_TALLEST: Final = 10_000
_FIELDS: Final = 200
"""Text fields of a snapshot that are asked for their type; the values of more are masked."""
_SHORTEST: Final = 4
"""Characters of a password from which on it is masked wherever it stands; a shorter one only in its field."""
_PROXY_SAYS: Final = frozenset({403, 502, 503})
"""The answers of the proxy where a page is not reached, unless it is asked for a tunnel: that fails."""
_COUNT: Final = "document.getElementsByTagName('*').length"
_OPTIONS: Final = (
    "(list) => list.options ? [...list.options].slice(0, 1000).map((one) => [one.value, one.label]) : null"
)
_VALUES: Final = "(fields) => fields.slice(0, 50).map((field) => String(field.value).slice(0, 1000))"


class ActResult(NamedTuple):
    """The result of an act beside the state of its page."""

    tab: Tab
    fields: tuple[tuple[str, Any], ...] = ()
    """The fields of the result beside it, by name."""
    files: tuple[BrowserFile, ...] = ()
    text: str = ""
    """Kept as evidence."""


class Acts:
    """The acts, on the terms of the settings."""

    def __init__(self, settings: BrowserSettings) -> None:
        self._settings = settings
        self._secrets = dict(map(_secret, settings.secrets))
        self.by_word: Final[Mapping[str, Callable[[BrowserConversation, Any], Awaitable[ActResult]]]] = {
            "navigate": self.navigate,
            "snapshot": self.snapshot,
            "click": self.click,
            "type": self.type,
            "press": self.press,
            "select": self.select,
            "wait_for": self.wait_for,
            "extract": self.extract,
            "screenshot": self.screenshot,
        }

    async def navigate(self, conversation: BrowserConversation, args: shapes.NavigateArgs) -> ActResult:
        """Open a URL."""
        try:
            address, fragment = checked(args.url), urlsplit(args.url.strip()).fragment
        except InvalidUrlError as error:
            raise BrowserError(str(error)) from error
        fresh = args.new_page or not (args.page or conversation.pages)
        tab = await conversation.new_tab() if fresh else conversation.tab(args.page)
        tab.refs, tab.address = frozenset(), address
        status, failure, before = 0, None, dict(conversation.browser.refusals)
        try:
            url = f"{address}#{quote(fragment)}" if fragment else address
            response = await tab.page.goto(url, wait_until="domcontentloaded", timeout=LOAD_S * 1_000)
            status = response.status if response is not None else 0
        except Error as error:
            failure = error
        refusal = self._refusal(conversation, tab, before)
        if refusal is not None and (failure is not None or status in _PROXY_SAYS):
            conversation.browser.refusals.clear()
            await conversation.renew(tab)
            if not refusal.allowed:
                reason = f"{tab.address}: {refusal.reason} (browser.hosts; for a private address browser.private)"
                raise BrowserError(reason, Code.ssrf_blocked)
            reached = Code.dns_failed if "[Errno -" in refusal.reason else Code.connect_failed
            raise BrowserError(f"{tab.address}: {refusal.reason}", reached)
        if failure is not None and not _is_no_failure(failure):
            await conversation.renew(tab)
            raise browser_error(tab.address, failure)
        return ActResult(tab, (("status_code", status),))

    def _refusal(
        self, conversation: BrowserConversation, tab: Tab, before: Mapping[tuple[str, int], ConnectionAttempt]
    ) -> ConnectionAttempt | None:
        """Return how the proxy refused what a page asked for last, since `before`; None: it did not."""
        for place, connection in conversation.browser.refusals.items():
            if f"{place[0]}:{place[1]}" == place_of(tab.address) and connection is not before.get(place):
                return connection
        return None

    async def snapshot(self, conversation: BrowserConversation, args: shapes.SnapshotArgs) -> ActResult:
        """Show a page, or a part of it."""
        if args.ref is not None:
            tab, part = await conversation.element(args.ref)
            snapshot = await part.aria_snapshot(mode="ai", timeout=LOAD_S * 1_000)
        else:
            tab = conversation.tab(args.page)
            elements = await tab.page.evaluate(_COUNT)
            if not isinstance(elements, int) or elements > _ELEMENTS:
                reason = (
                    f"The page has {elements} elements, and a snapshot shows {_ELEMENTS}: read it with browser.extract"
                )
                raise BrowserError(reason, Code.content_too_large)
            snapshot = await tab.page.aria_snapshot(mode="ai", timeout=LOAD_S * 1_000)
        lines = list(lines_of(snapshot))
        hidden = await self._hidden(conversation, tab, lines)
        shown_text = shown(lines, tab.name, self._settings.snapshot_chars, secret=hidden.__contains__)
        tab.refs = shown_text.refs
        return ActResult(tab, (("snapshot", shown_text.text), ("missing", shown_text.missing)))

    async def click(self, conversation: BrowserConversation, args: shapes.ClickArgs) -> ActResult:
        """Click an element."""
        tab, element = await conversation.element(args.ref)
        await element.click(button=args.button, click_count=2 if args.double else 1)
        return ActResult(tab)

    async def type(self, conversation: BrowserConversation, args: shapes.TypeArgs) -> ActResult:
        """Put a text into a field."""
        if (args.text is None) == (args.secret is None):
            raise BrowserError("Give either `text` or `secret`.")
        tab, element = await conversation.element(args.ref)
        if args.secret is not None:
            text = await self._secret_text(args.secret, element)
            conversation.typed.add(text)
        elif ((await element.get_attribute("type")) or "").lower() == "password":
            raise BrowserError("This is a password field: give `secret`, the name of a secret of browser.secrets.")
        else:
            text = args.text or ""
        await element.fill(text)
        if args.submit:
            await element.press("Enter")
        return ActResult(tab)

    async def press(self, conversation: BrowserConversation, args: shapes.PressArgs) -> ActResult:
        """Press a key."""
        tab = conversation.tab(args.page)
        await tab.page.keyboard.press(args.key)
        return ActResult(tab)

    async def select(self, conversation: BrowserConversation, args: shapes.SelectArgs) -> ActResult:
        """Choose options of a list; one that is not there would be waited for."""
        tab, element = await conversation.element(args.ref)
        options = await element.evaluate(_OPTIONS)
        if options is None:
            raise BrowserError(f"{args.ref} is not a list of options: click it, and what it shows then")
        values = {label: value for value, label in options} | {value: value for value, _ in options}
        if missing := [option for option in args.options if option not in values]:
            known = ", ".join(repr(label[:80]) for _, label in options[:30])
            raise BrowserError(f"There is no option {missing[0]!r}; there are: {known}")
        await element.select_option(value=[values[option] for option in args.options])
        return ActResult(tab)

    async def wait_for(self, conversation: BrowserConversation, args: shapes.WaitArgs) -> ActResult:
        """Wait for a text to appear or to vanish, or for a download to begin; the caller waits for its end."""
        tab = conversation.tab(args.page)
        for text, state in ((args.text, "visible"), (args.gone, "hidden")):
            if text:
                locator = tab.page.get_by_text(text).first
                await locator.wait_for(
                    state="visible" if state == "visible" else "hidden", timeout=args.seconds * 1_000
                )
        if not (args.text or args.gone):
            await conversation.begun(min(args.seconds, _BEGINS_S))
        return ActResult(tab)

    async def extract(self, conversation: BrowserConversation, args: shapes.PageArgs) -> ActResult:
        """Read the text of a page."""
        tab = conversation.tab(args.page)
        await self._hidden(conversation, tab, [])
        try:
            text = page_text(await tab.page.content()).text
        except TooDeepError as error:
            raise BrowserError(f"{tab.page.url}: its elements are nested too deeply", Code.parse_failed) from error
        cut_text = text[: self._settings.snapshot_chars]
        return ActResult(tab, (("text", cut_text), ("truncated", len(text) > len(cut_text))), text=cut_text)

    async def screenshot(self, conversation: BrowserConversation, args: shapes.ScreenshotArgs) -> ActResult:
        """Photograph a page or an element."""
        if args.ref is not None:
            tab, element = await conversation.element(args.ref)
            data = await element.screenshot(animations="disabled", timeout=LOAD_S * 1_000)
        else:
            tab = conversation.tab(args.page)
            size = tab.page.viewport_size or {"width": 1280, "height": 800}
            tall = await tab.page.evaluate("document.documentElement.scrollHeight") if args.full_page else 0
            height = min(tall, _TALLEST) if isinstance(tall, int) and tall > size["height"] else size["height"]
            data = await tab.page.screenshot(
                animations="disabled",
                timeout=LOAD_S * 1_000,
                full_page=args.full_page,
                clip={"x": 0, "y": 0, "width": size["width"], "height": height} if args.full_page else None,
            )
        return ActResult(tab, files=(BrowserFile(conversation.name("screenshot", "png"), tab.page.url, data),))

    async def _hidden(self, conversation: BrowserConversation, tab: Tab, lines: list[SnapshotLine]) -> set[str]:
        """Return the refs of password fields, and have what stands in them masked wherever else it turns up."""
        for frame in tab.page.frames:
            with suppress(Error):  # it has just gone
                values = await frame.locator("input[type=password]").evaluate_all(_VALUES)
                conversation.typed.update(value for value in values if len(value) >= _SHORTEST)
        fields = [line.ref for line in lines if line.ref and line.role in _FIELD_ROLES]
        kinds = await asyncio.gather(*(_kind(tab, ref) for ref in fields[:_FIELDS]))
        return {ref for ref, kind in zip(fields, kinds, strict=False) if kind == "password"} | set(fields[_FIELDS:])

    async def _secret_text(self, name: str, element: Locator) -> str:
        variable, place = self._secrets.get(name, ("", ""))
        if not variable:
            known = ", ".join(sorted(self._secrets)) or "none"
            raise BrowserError(f"There is no secret {name!r} in browser.secrets; there are: {known}")
        handle = await element.element_handle()
        frame = await handle.owner_frame()
        url = frame.url if frame is not None else ""
        if place_of(url) != place or not (url.startswith("https://") or place in self._settings.private):
            raise BrowserError(f"The secret {name!r} is for https://{place.removesuffix(':443')}, not for {url[:200]}")
        if not (text := os.environ.get(variable, "")):
            raise BrowserError(f"The variable {variable} of the secret {name!r} is not set where Remit runs")
        return text


_FIELD_ROLES: Final = frozenset({"textbox", "searchbox", "combobox", "spinbutton"})


async def settle(tab: Tab) -> tuple[str, str]:
    """Wait a moment for what an act began, and return URL and title; both are empty for a page that is gone."""
    try:
        with suppress(Error):
            await tab.page.wait_for_load_state("domcontentloaded", timeout=_SETTLE_S * 1_000)
        async with asyncio.timeout(_SETTLE_S * 2):
            return tab.page.url, (await tab.page.title())[:500]
    except (Error, TimeoutError):
        return "" if tab.page.is_closed() else tab.page.url, ""


async def _kind(tab: Tab, ref: str) -> str:
    try:
        attribute = await tab.page.locator(f"aria-ref={ref}").get_attribute("type", timeout=ACT_S * 100)
    except Error:  # it has just gone: what it held is not shown
        return "password"
    return (attribute or "").lower()


def _is_no_failure(error: Error) -> bool:
    """Return whether a page merely has nothing to show: a download, or an answer without content (204)."""
    return "Download is starting" in str(error) or "net::ERR_ABORTED" in str(error)


def _secret(entry: str) -> tuple[str, tuple[str, str]]:
    name, _, rest = entry.partition("=")
    variable, _, place = rest.partition("@")
    if not (name and variable and place):
        raise BrowserError(f"{entry!r} in browser.secrets does not look like NAME=VARIABLE@HOST")
    return name, (variable, place if place.rpartition(":")[2].isdigit() else f"{place}:443")
