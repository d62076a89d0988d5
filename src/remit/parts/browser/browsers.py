"""The browsers of a process: one for each job or session, started by its first page and ended when it is idle."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

import msgspec
from playwright.async_api import Error, async_playwright

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.browser.acts import LOAD_S, ActResult, Acts, settle
from remit.parts.browser.conversation import BrowserConversation, BrowserFile
from remit.parts.browser.launch import GONE, BrowserError, SandboxedBrowser, browser_error
from remit.parts.browser.shapes import TAKES, Artifact, CloseResult, WaitArgs
from remit.process.environment import without
from remit.tasks import Tasks
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult

if TYPE_CHECKING:
    from playwright.async_api import Playwright

    from remit.clock import Clock
    from remit.parts.browser.settings import BrowserSettings
    from remit.process.enclosure import Enclosures, ProgramRun

_ACT_S: Final = LOAD_S + 10
_DOWNLOAD_S: Final = 15.0
"""For downloads that an act began; they go on if they take longer."""
_LOOKS: Final = 4
"""At idle browsers, in the time after which they are closed."""


class Browsers:
    """Starts, finds and ends browsers, and has acts done in them."""

    def __init__(self, enclosures: Enclosures, settings: BrowserSettings, clock: Clock) -> None:
        self._enclosures = enclosures
        self._settings = settings
        self._clock = clock
        self._acts = Acts(settings)
        self._conversations: dict[str, BrowserConversation] = {}
        self._changing = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting = 0
        self._ends = Tasks()

    async def act(self, word: str, args: Any, ctx: CallContext) -> ToolResult:
        """Do what a tool says, in the browser of the call's job or session. Raises ProviderError."""
        name = ctx.conversation
        if word == "close":
            return await self._close_one(name)
        conversation = await self._of(name, opens=word == "navigate")
        async with conversation.turn:
            conversation.used = self._clock.monotonic()
            conversation.accepts = getattr(args, "dialogs", "") == "accept"
            try:
                return await self._result(word, args, conversation, ctx)
            except ProviderError as error:
                error.args = (without(_spellings(conversation.typed), str(error)),)
                raise
            finally:
                conversation.accepts = False
                conversation.used = self._clock.monotonic()

    async def end(self) -> None:
        """End every browser."""
        async with self._changing:
            if self._watching is not None:
                self._watching.cancel()
            await asyncio.gather(*(self._drop(name) for name in list(self._conversations)))
            await self._ends.ended()
            await self._rest()

    # --- one act

    async def _result(self, word: str, args: Any, conversation: BrowserConversation, ctx: CallContext) -> ToolResult:
        done = await self._done(word, args, conversation)
        url, title = await settle(done.tab)
        waits = args.seconds if isinstance(args, WaitArgs) else _DOWNLOAD_S
        notes, files = await conversation.taken(waits)
        files = [*done.files, *files]
        secrets = _spellings(conversation.typed)
        fields = {
            **dict(done.fields),
            "page": done.tab.name,
            "url": url,
            "title": title,
            "notes": notes,
            "artifacts": [
                Artifact(path=file.name, bytes=len(file.data), sha256=file.sha256, media_type=file.media_type)
                for file in files
            ],
        }
        if ctx.keeper is not None:
            for file in files:  # whole and for good, as those of sandbox.collect
                await ctx.keeper.put(file.data)
        result = _masked(msgspec.to_builtins(TAKES[word][1](**fields)), secrets)
        return ToolResult(result, tuple(_evidence(done, files, result, ctx)))

    async def _done(self, word: str, args: Any, conversation: BrowserConversation) -> ActResult:
        try:
            async with asyncio.timeout(_ACT_S):
                return await self._acts.by_word[word](conversation, args)
        except (Error, TimeoutError) as error:
            if not conversation.browser.lives:
                raise BrowserError(GONE, Code.ConnectionError) from error
            raise browser_error(f"browser.{word}", error) from error
        except asyncio.CancelledError:
            with suppress(BrowserError):
                conversation.abandon(conversation.tab())
            raise

    # --- browsers

    async def _of(self, name: str, *, opens: bool) -> BrowserConversation:
        async with self._changing:
            conversation = self._conversations.get(name)
            if conversation is not None and not conversation.browser.lives:
                await self._drop(name)
                conversation = None
            if conversation is None:
                if not opens:
                    raise BrowserError(GONE)
                conversation = await self._open(name)
            return conversation

    async def _open(self, name: str) -> BrowserConversation:
        self._starting += 1
        try:
            await self._make_room()
            browser = SandboxedBrowser(self._enclosures, self._settings)
            await browser.start(self._driver)
            conversation = self._conversations[name] = BrowserConversation(browser, self._settings)
        finally:
            self._starting -= 1
            await self._rest()
        conversation.used = self._clock.monotonic()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="remit:browser-idle")
        return conversation

    async def _driver(self) -> Playwright:
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        return self._playwright

    async def _make_room(self) -> None:
        """End the browser that was idle for longest, if there are too many. Raises ProviderError if all are in use."""
        if len(self._conversations) < self._settings.browsers:
            return
        idle = [name for name, conversation in self._conversations.items() if not conversation.turn.locked()]
        if not idle:
            reason = f"{self._settings.browsers} browsers are in use, which is the most (browser.browsers)"
            raise ProviderError(reason, cause=Code.Timeout)
        await self._drop(min(idle, key=lambda name: self._conversations[name].used))

    async def _close_one(self, name: str) -> ToolResult:
        conversation = self._conversations.get(name)
        if conversation is None:
            return ToolResult(msgspec.to_builtins(CloseResult(closed=False)))
        async with conversation.turn, self._changing:
            execution = await self._drop(name) if self._conversations.get(name) is conversation else None
        receipt = execution.receipt if execution is not None else None
        return ToolResult(msgspec.to_builtins(CloseResult(closed=True, receipt=receipt)))

    async def _drop(self, name: str) -> ProgramRun | None:
        """End a browser, whatever becomes of the caller. Returns how it ran."""
        return await asyncio.shield(self._ends.task(self._ended(self._conversations.pop(name))))

    async def _ended(self, conversation: BrowserConversation) -> ProgramRun | None:
        await conversation.close()
        execution = await conversation.browser.close()
        await self._rest()
        return execution

    async def _rest(self) -> None:
        """End Playwright's own process, if no browser needs it."""
        if self._playwright is not None and not (self._conversations or self._starting):
            playwright, self._playwright = self._playwright, None
            await playwright.stop()

    async def _watch(self) -> None:
        """End what is idle, until nothing is left."""
        while self._conversations:
            await self._clock.sleep(self._settings.idle_seconds / _LOOKS)
            async with self._changing:
                oldest = self._clock.monotonic() - self._settings.idle_seconds
                for name, conversation in list(self._conversations.items()):
                    if not conversation.turn.locked() and (
                        conversation.used <= oldest or not conversation.browser.lives
                    ):
                        await self._drop(name)


def _spellings(secrets: set[str]) -> list[str]:
    """Return secrets as they are written in texts, in JSON and in URLs, the longest first."""
    spellings = {
        spelt
        for secret in secrets
        for spelt in (secret, quote(secret), quote_plus(secret), msgspec.json.encode(secret)[1:-1].decode())
    }
    return sorted(filter(None, spellings), key=len, reverse=True)


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        return without(secrets, value) if secrets else value
    if isinstance(value, list):
        return [_masked(entry, secrets) for entry in value]
    return {name: _masked(entry, secrets) for name, entry in value.items()} if isinstance(value, dict) else value


def _evidence(
    done: ActResult, files: list[BrowserFile], result: dict[str, Any], ctx: CallContext
) -> list[EvidenceCandidate]:
    evidence = [
        EvidenceCandidate(
            kind="artifact",
            source=result["url"] or "browser",
            retrieved_at=ctx.now,
            data=file.data,
            metadata={"path": artifact["path"]},
        )
        for file, artifact in zip(files, result["artifacts"], strict=True)
    ]
    if done.text:
        text = EvidenceCandidate(
            kind="http_body_preview", source=result["url"], retrieved_at=ctx.now, text=result["text"]
        )
        evidence.append(text)
    return evidence
