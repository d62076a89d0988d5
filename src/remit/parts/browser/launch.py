"""One browser: Chromium in the sandbox, with a network that is empty except for the filtering proxy's door.

Playwright starts a stub in its place (stub.py). The stub hands its pipes and the browser's arguments over to us, and we
start the browser on these pipes in the sandbox. So it has the sandbox's limits, proxy, receipt and clean-up, and
Playwright knows a browser as ever. The stub lives as long as the browser: if one ends, the other does.

Failures in a browser, as the causes of the tools contract: one table of Chromium's errors.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from playwright.async_api import Error

from remit.codes import Code
from remit.errors import ProviderError
from remit.ids import new_id
from remit.parts.browser import stub
from remit.parts.browser.program import FLAGS, INSTALL, find
from remit.process.child import Tail
from remit.process.enclosure import MB, PROXY_PORT, FolderMount, RunLimits, SandboxUnavailableError, Spec, python
from remit.redact import line
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import BrowserContext, Playwright

    from remit.parts.browser.settings import BrowserSettings
    from remit.process.enclosure import ConnectionAttempt, Enclosures, ProgramRun, RunScratch


GONE: Final = (
    "No page is open: the browser was closed, was idle for too long, or Remit was restarted. Call browser.navigate."
)
_TABLE: Final = (
    (
        r"Target (?:page, context or browser|closed)|has been closed|Target crashed|Page crashed",
        Code.ConnectionError,
        GONE,
    ),
    (r"net::ERR_NAME_NOT_RESOLVED", Code.dns_failed, "the name has no address"),
    (r"net::ERR_(?:CERT|SSL)_\w+", Code.tls_failed, "the certificate is not trusted, or TLS failed"),
    (r"net::ERR_(?:CONNECTION_)?TIMED_OUT", Code.timeout_connect, "it did not accept the connection in time"),
    (
        r"net::ERR_(?:CONNECTION|ADDRESS|TUNNEL|PROXY|SOCKET|EMPTY|INTERNET|NETWORK)_\w+",
        Code.connect_failed,
        "it cannot be reached, or closed the connection",
    ),
    (r"intercepts pointer events", Code.InvalidInput, "something else lies over the element; take a snapshot"),
    (r"Timeout \d+ms exceeded", Code.Timeout, "it was not done in time; take a snapshot to see what is there"),
    (r"Unknown key", Code.InvalidInput, "there is no such key; keys are named like Enter, Escape, Tab, ArrowDown, a"),
    (r"not an? <(?:input|select|textarea)>|Element is not", Code.InvalidInput, "the element cannot take this"),
)
_NET: Final = regex(r"net::ERR_\w+")


class BrowserError(ProviderError):
    """Something that the browser or a page did not do; `cause` says why."""

    def __init__(self, message: str, cause: Code = Code.InvalidInput, effect: Literal["", "unknown"] = "") -> None:
        super().__init__(message, cause=cause, effect=effect)


def browser_error(what: str, error: BaseException) -> BrowserError:
    """Return what an exception of Playwright means; its log, which holds command lines, is left out."""
    message = str(error)
    if isinstance(error, TimeoutError):
        return BrowserError(f"{what}: the page did not answer in time", Code.Timeout)
    for pattern, cause, words in _TABLE:
        if re.search(pattern, message):
            named = _NET.search(message)
            return BrowserError(
                words if words is GONE else f"{what}: {words}{f' ({named[0]})' if named else ''}", cause
            )
    first = message.partition("\nCall log")[0].partition("Browser logs")[0]
    cause = Code.NetworkError if "net::" in message else Code.InvalidInput
    return BrowserError(f"{what}: {line(first, 200)}", cause, "unknown")  # a click may have been done


_SECONDS: Final = 30.0
_YEAR_MS: Final = 365 * 24 * 3_600_000
_REFUSALS: Final = 1_000
_TMP: Final = "/tmp"  # noqa: S108 - the sandbox's own
_PROFILE: Final = "--user-data-dir="
_STUB: Final = '#!/bin/sh\nexec "$REMIT_PYTHON" -I -S "$REMIT_STUB" "$@"\n'
_BEGIN: Final = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(word), fcntl.F_DUPFD_CLOEXEC, 10) for word in sys.argv[1:3]]
for word in sys.argv[1:3]:
    os.close(int(word))
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives the browser its pipes where it looks for them; the words after it are two descriptors and its command line."""


class SandboxedBrowser:
    """A browser that runs, until it is closed or ends."""

    def __init__(self, enclosures: Enclosures, settings: BrowserSettings) -> None:
        self.refusals: OrderedDict[tuple[str, int], ConnectionAttempt] = OrderedDict()
        """The hosts that the proxy refused or could not reach, by host and port."""
        self._enclosures = enclosures
        self._settings = settings
        self._scratch: RunScratch | None = None
        self._run: asyncio.Task[ProgramRun] | None = None
        self._stderr = Tail(64 * 1024)
        self._context: BrowserContext | None = None

    @property
    def folder(self) -> Path:
        """Return where its downloads lie, and nothing else that is not the browser's."""
        return self._made().work

    def size(self) -> int:
        """Return the bytes of its folder on the disk."""
        return self._made().size()

    @property
    def context(self) -> BrowserContext:
        """Its pages, as Playwright knows them."""
        if self._context is None:
            raise AssertionError("the browser was not started")
        return self._context

    @property
    def lives(self) -> bool:
        """Return whether it runs."""
        return self._run is not None and not self._run.done() and self._is_connected()

    async def start(self, playwright: Callable[[], Awaitable[Playwright]]) -> None:
        """Start it; Playwright is only started where there is a browser and a sandbox. Raises ProviderError."""
        try:
            program = find(self._settings.program)
            if program is None:
                where = self._settings.program or "this machine"
                raise ProviderError(f"There is no browser: none at {where}. {INSTALL}", cause=Code.SpawnFailed)
            await self._enclosures.require()
            await self._launch(await playwright(), program)
        except BaseException as error:
            await self.close()
            if isinstance(error, SandboxUnavailableError):
                raise _unavailable(
                    str(error), error.remedy or "`remit sandbox probe` shows what is missing."
                ) from error
            if isinstance(error, Error | TimeoutError | OSError):
                raise self._unstarted(error) from error
            raise

    async def close(self) -> ProgramRun | None:
        """End it, and return how it ran; None if it never did."""
        if self._context is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    await self._context.close()
        execution = None
        if self._run is not None:
            if self._context is None or self._is_connected():
                self._run.cancel()
            with suppress(asyncio.CancelledError, SandboxUnavailableError):
                execution = await asyncio.shield(self._run)
        if self._scratch is not None:
            self._scratch.close()
        return execution

    def _made(self) -> RunScratch:
        if self._scratch is None:
            raise AssertionError("the browser was not started")
        return self._scratch

    def _is_connected(self) -> bool:
        browser = self.context.browser
        return browser is not None and browser.is_connected()

    # --- starting

    async def _launch(self, playwright: Playwright, program: Path) -> None:
        scratch = self._scratch = self._enclosures.scratch()
        place = scratch.beside("hand-over")
        place.chmod(0o700)
        started = place / "browser"
        started.write_text(_STUB, encoding="ascii")
        started.chmod(0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.setblocking(False)  # noqa: FBT003 - the standard library's
            _bind(listening, place)
            listening.listen(1)
            handing = asyncio.create_task(self._hand_over(listening, program), name="remit:browser-start")
            try:
                self._context = await playwright.chromium.launch_persistent_context(
                    program.parent,  # is there, and not used: what Playwright makes of its own stays if we are killed
                    artifacts_dir=self.folder,
                    downloads_path=self.folder,
                    executable_path=started,
                    args=FLAGS,
                    chromium_sandbox=self._settings.inner_sandbox,
                    proxy={"server": f"http://127.0.0.1:{PROXY_PORT}"},
                    viewport={"width": 1280, "height": 800},
                    env={
                        "REMIT_BROWSER": str(place),
                        "REMIT_PYTHON": sys.executable,
                        "REMIT_STUB": stub.__file__,
                    },
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=_SECONDS * 1_000,
                )
            except Error:
                if self._run is not None and self._run.done() and not self._run.cancelled():
                    self._run.result()  # raises why the sandbox did not stand
                raise
            finally:
                handing.cancel()

    async def _hand_over(self, listening: socket.socket, program: Path) -> None:
        link, _ = await asyncio.get_running_loop().sock_accept(listening)
        try:
            await _readable(link)
            data, pipes, _, _ = socket.recv_fds(link, MB, 2)
        except BaseException:
            link.close()
            raise
        words = [word for word in json.loads(data) if not word.startswith(_PROFILE)]
        self._run = asyncio.create_task(self._runs(link, words, tuple(pipes), program), name="remit:browser")

    async def _runs(self, link: socket.socket, words: list[str], pipes: tuple[int, ...], program: Path) -> ProgramRun:
        """Run the browser until it ends, or the stub does."""
        feed = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            spec = self._spec(words, pipes, program, feed)
            running = asyncio.ensure_future(self._enclosures.execute(spec, self._hear))
            left = asyncio.ensure_future(_readable(link))
            try:
                await asyncio.wait({running, left}, return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    await self._enclosures.kill(spec.id)
                return await running
            finally:
                left.cancel()
                running.cancel()
                await asyncio.wait({running, left})
        finally:
            for fd in (feed, *pipes):
                os.close(fd)
            link.close()

    def _spec(self, words: list[str], pipes: tuple[int, ...], program: Path, feed: int) -> Spec:
        settings = self._settings
        places = [] if program.is_relative_to("/usr") else [FolderMount(program.parent, str(program.parent))]
        start = (python(), "-I", "-S", "-c", _BEGIN, *map(str, pipes), str(program))
        return Spec(
            id=new_id("run"),
            argv=(*start, *words, f"{_PROFILE}{_TMP}/profile"),
            workspace=self.folder,
            env={"HOME": _TMP, "USER": "sandbox"},
            feed=feed,
            mounts=(FolderMount(self.folder, str(self.folder), writable=True), *places),
            limits=RunLimits(
                wall_ms=_YEAR_MS,
                cpu_ms=_YEAR_MS,
                cpu_percent=200,
                memory_bytes=settings.memory_bytes,
                pids=2_048,
                descriptors=4_096,
                file_bytes=settings.download_bytes * 8 + 64 * MB,
                tmp_bytes=256 * MB,
                workspace_bytes=settings.download_bytes * 8 + 64 * MB,
            ),
            network=(*settings.hosts, *settings.private),
            private=settings.private,
            listener=self._heard,
            inherited=pipes,
            rules="browser" if settings.inner_sandbox else "program",
        )

    def _hear(self, _stream: Literal["stdout", "stderr"], data: bytes) -> None:
        self._stderr.feed(data)

    def _heard(self, connection: ConnectionAttempt) -> None:
        if connection.reason:
            self.refusals[connection.host, connection.port] = connection
            while len(self.refusals) > _REFUSALS:
                self.refusals.popitem(last=False)

    def _unstarted(self, error: BaseException) -> ProviderError:
        stderr = self._stderr.data.decode(errors="replace")
        if "No usable sandbox" in stderr or "SUID sandbox" in stderr:
            reason = "Chromium's own sandbox cannot start within Remit's: this system allows no user namespaces there"
            return _unavailable(
                reason, "Set browser.inner_sandbox = false to do without it; Remit's own sandbox stays."
            )
        failure = browser_error("The browser did not start", error)
        last = stderr.strip().rpartition("\n")[2]
        return ProviderError(f"{failure}{f' ({last[:300]})' if last else ''}", cause=Code.SpawnFailed)


def _unavailable(reason: str, remedy: str) -> ProviderError:
    return ProviderError(f"{reason}. {remedy}", cause=None, code=Code.SANDBOX_UNAVAILABLE)


def _bind(listening: socket.socket, place: Path) -> None:
    """Bind a socket in a folder whose path may be longer than that of a socket."""
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{folder}/socket")
    finally:
        os.close(folder)


async def _readable(link: socket.socket) -> None:
    """Return once something can be read, or the other end is gone."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(link, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(link)
