"""The pages of one job or session, and what happens on them beside the acts: dialogs, pop-ups, downloads, crashes."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from playwright.async_api import Error

from remit.parts.browser.launch import GONE, BrowserError
from remit.redact import line
from remit.tasks import Tasks

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Download, Locator, Page, Request

    from remit.parts.browser.launch import SandboxedBrowser
    from remit.parts.browser.settings import BrowserSettings

ACT_S: Final = 10.0
"""Seconds for an act on an element."""
_DOWNLOADS: Final = 20
"""At the same time, or not yet reported; more are cancelled."""
_NOTES: Final = 20
_LOOK_S: Final = 0.1
_CLOSE_S: Final = 5.0
_EXTENSIONS: Final = mimetypes.MimeTypes()


class BrowserFile(NamedTuple):
    """A download that ended, or a screenshot."""

    name: str
    source: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Its digest."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"

    @property
    def media_type(self) -> str:
        """Its type, by its name."""
        return _EXTENSIONS.guess_type(self.name, strict=False)[0] or "application/octet-stream"


class Tab:
    """One page, by the name that refs to its elements begin with."""

    def __init__(self, name: str, page: Page) -> None:
        self.name = name
        self.page = page
        self.refs: frozenset[str] = frozenset()
        """The elements that its last snapshot showed."""
        self.address = ""
        """The URL that it asked for last, of its own or by a redirect."""
        page.on("request", self._follow)

    def _follow(self, request: Request) -> None:
        with suppress(Error):  # a frame that is not there yet is not the page's own
            if request.is_navigation_request() and request.frame == self.page.main_frame:
                self.address = request.url


class BrowserConversation:
    """A browser with its pages. One act at a time: callers hold `turn`."""

    def __init__(self, browser: SandboxedBrowser, settings: BrowserSettings) -> None:
        self.browser = browser
        self.turn = asyncio.Lock()
        self.used = 0.0
        """When it was last used, on the monotonic clock."""
        self.typed: set[str] = set()
        """Secrets that were typed: they are masked wherever they turn up."""
        self.accepts = False
        """Whether dialogs are accepted."""
        self._settings = settings
        self._tabs: dict[str, Tab] = {}
        self._count = self._shots = 0
        self._notes: list[str] = []
        self._files: list[BrowserFile] = []
        self._downloads, self._begun = Tasks(), asyncio.Event()
        self._closing = Tasks()
        browser.context.set_default_timeout(ACT_S * 1_000)
        browser.context.on("page", self._opened)
        self._current = self._add(browser.context.pages[0]).name

    @property
    def pages(self) -> list[str]:
        """The names of its pages."""
        return list(self._tabs)

    async def new_tab(self) -> Tab:
        """Open a page, which is then the current one. Raises BrowserError or Error."""
        if len(self._tabs) >= self._settings.pages:
            raise BrowserError(
                f"{len(self._tabs)} pages are open, which is the most (browser.pages); go on in one of them"
            )
        page = await self.browser.context.new_page()
        tab = next(tab for tab in self._tabs.values() if tab.page == page)
        self._notes[:] = [note for note in self._notes if not note.startswith(f"{tab.name} was opened")]
        self._current = tab.name
        return tab

    async def renew(self, failed: Tab) -> None:
        """Put an empty page in the place of one that failed: what that one still loads would interrupt what comes next.

        Where no page can be opened, as in a browser that died, it is gone, and the next act says so.
        """
        self.abandon(failed)
        with suppress(Error, BrowserError):
            tab = await self.new_tab()
            self._tabs[failed.name] = self._tabs.pop(tab.name)
            self._current = tab.name = failed.name

    def tab(self, name: str = "") -> Tab:
        """The page of a name, or the current one; it is the current one from now on. Raises BrowserError."""
        tab = self._tabs.get(name or self._current)
        if tab is None:
            raise BrowserError(
                f"There is no page {name}; open are: {', '.join(self._tabs)}" if name and self._tabs else GONE
            )
        self._current = tab.name
        return tab

    async def element(self, ref: str) -> tuple[Tab, Locator]:
        """The element of a ref that was handed out. Raises BrowserError for one that is not there any more."""
        name, _, inner = ref.partition(":")
        tab = self.tab(name)
        if inner not in tab.refs:
            raise BrowserError(f"{ref} is not in the last snapshot of {name}: take a new one with browser.snapshot")
        locator = tab.page.locator(f"aria-ref={inner}")
        count = 0
        with suppress(Error):  # the page has gone elsewhere
            count = await locator.count()
        if count != 1:
            raise BrowserError(f"{ref} is not on the page any more: take a new snapshot with browser.snapshot")
        return tab, locator

    def name(self, kind: str, ending: str) -> str:
        """Return a name for a file that this conversation leaves."""
        self._shots += 1
        return f"{kind}-{self._shots}.{ending}"

    def note(self, text: str) -> None:
        """Have something said with the next result."""
        if len(self._notes) < _NOTES:
            self._notes.append(line(text, 300))

    async def begun(self, seconds: float) -> None:
        """Wait as long for a download to begin, unless one is under way, or has ended and was not said."""
        if len(self._downloads) or self._files:
            return
        self._begun.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._begun.wait()

    async def taken(self, seconds: float) -> tuple[list[str], list[BrowserFile]]:
        """Give what is to be said, and the downloads that have ended within `seconds`; they are then not said again."""
        if len(self._downloads):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._downloads.ended()
            if len(self._downloads):
                self.note(f"{len(self._downloads)} downloads are not done; browser.wait_for waits for them")
        notes, files = self._notes, self._files
        self._notes, self._files = [], []
        refused = [
            f"{refusal.host}:{refusal.port} was not reached: {refusal.reason}"
            for refusal in self.browser.refusals.values()
        ]
        self.browser.refusals.clear()
        return [*notes, *(line(reason, 300) for reason in refused[:_NOTES])], files

    def abandon(self, tab: Tab) -> None:
        """Close a page on which something was cut short: it could still do it."""
        self._forget(tab)
        self._close(tab.page)

    async def close(self) -> None:
        """Let nothing go on."""
        for tasks in (self._downloads, self._closing):
            tasks.cancel()
            await tasks.ended()

    # --- what pages do

    def _opened(self, page: Page) -> None:
        if len(self._tabs) >= self._settings.pages:
            self.note(f"a page was closed that a page opened: {self._settings.pages} are the most (browser.pages)")
            self._close(page)
        else:
            self.note(f"{self._add(page).name} was opened: {page.url}")

    def _add(self, page: Page) -> Tab:
        self._count += 1
        tab = self._tabs[f"p{self._count}"] = Tab(f"p{self._count}", page)
        page.on("dialog", self._answer)
        page.on("download", self._begin)
        page.on("crash", lambda _: self._crashed(tab))
        page.on("close", lambda _: self._forget(tab))
        return tab

    def _forget(self, tab: Tab) -> None:
        if self._tabs.get(tab.name) is not tab:  # a new page has its name
            return
        del self._tabs[tab.name]
        if self._current == tab.name:
            self._current = next(reversed(self._tabs), "")

    def _crashed(self, tab: Tab) -> None:
        self.note(f"{tab.name} crashed, perhaps for want of memory (browser.memory_bytes), and was closed")
        self.abandon(tab)

    def _close(self, page: Page) -> None:
        self._closing.keep(asyncio.create_task(_closed(page), name="remit:browser-page"))

    async def _answer(self, dialog: Dialog) -> None:
        leaves = dialog.type == "beforeunload"  # one that is dismissed keeps the page, and every other away
        accepted = leaves or self.accepts
        self.note(f"{dialog.type} {dialog.message[:200]!r} was {'accepted' if accepted else 'dismissed'}")
        with suppress(Error):
            await (dialog.accept() if accepted else dialog.dismiss())

    def _begin(self, download: Download) -> None:
        self._begun.set()
        self._downloads.keep(asyncio.create_task(self._download(download), name="remit:browser-download"))

    async def _download(self, download: Download) -> None:
        name, most = line(download.suggested_filename, 200), self._settings.download_bytes
        try:
            if len(self._downloads) + len(self._files) > _DOWNLOADS:
                await download.cancel()
                self.note(f"the download {name!r} was cancelled: {_DOWNLOADS} are the most at once")
                return
            done = asyncio.ensure_future(download.path())
            try:
                while not done.done():
                    await asyncio.wait({done}, timeout=_LOOK_S)
                    if self.browser.size() > most * len(self._downloads):
                        await download.cancel()
                path = await done
            finally:
                done.cancel()
            size = path.stat().st_size
            if size <= most:
                self._files.append(BrowserFile(name, download.url, path.read_bytes()))
            else:
                self.note(
                    f"the download {name!r} of {size} bytes is left out: {most} are the most (browser.download_bytes)"
                )
            await download.delete()
        except (Error, OSError) as error:
            self.note(f"the download {name!r} did not end: {line(str(error).partition('Call log')[0], 100)}")


async def _closed(page: Page) -> None:
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await page.close()
