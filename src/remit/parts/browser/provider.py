"""The provider of the browser tools: level L2, and whatever they return is the page's word."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.browser.shapes import TAKES
from remit.tools.meta import Level, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.parts.browser.browsers import Browsers

_PROVIDER: Final = "browser"
_PREFIX: Final = "browser."
_TIMEOUT_MS: Final = 90_000
"""More than a start, a page and its downloads take together, which have limits of their own."""
_READS: Final = frozenset({"snapshot", "wait_for", "extract", "screenshot"})
_REPEATABLE: Final = frozenset({"navigate", "close"})
_SAID: Final = {
    "navigate": "Opens {url} in the browser of this job or session.",
    "click": "Clicks {ref} of the page that the last snapshot shows.",
    "type": "Types into {ref} of the page that the last snapshot shows, in place of what is there.",
    "secret": "Types the secret {secret} into {ref} of the page that the last snapshot shows, if it is of its host.",
    "select": "Chooses {options} in {ref} of the page that the last snapshot shows.",
    "press": "Presses {key} in the page that is open.",
}
"""By tool, what a call would do (`secret`: of one that types a secret); of the others their description says it."""


def _tool(name: str) -> ToolMeta:
    takes, gives, description = TAKES[name]
    reads = name in _READS
    return declare(
        f"{_PREFIX}{name}",
        description,
        takes,
        gives,
        provider=_PROVIDER,
        writes=not reads,
        capability_level=Level.L2,
        idempotent=reads or name in _REPEATABLE,
        timeout_ms=_TIMEOUT_MS,
        isolation="sandbox",
        output_trusted=False,
    )


class BrowserProvider(Toolset):
    """Lists the browser tools, and has them done by browsers that are started for the first call."""

    def __init__(self, make: Callable[[], Browsers]) -> None:
        super().__init__(_PROVIDER, tuple(map(_tool, TAKES)))
        self._make = make
        self._browsers: Browsers | None = None

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Act on a page of this job or session. Raises ProviderError."""
        self._require(name)
        word = name.removeprefix(_PREFIX)
        call_args = arguments(TAKES[word][0], args)
        browsers = self._browsers = self._browsers or self._make()
        return await browsers.act(word, call_args, ctx)

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Say what would be done; the page is not looked at."""
        self._require(name)
        word = name.removeprefix(_PREFIX)
        fields = msgspec.to_builtins(arguments(TAKES[word][0], args))
        verb = _SAID.get("secret" if fields.get("secret") else word)
        what = TAKES[word][2] if verb is None else verb.format(**fields)
        return Preview(what=f"{what} Then presses Enter." if fields.get("submit") else what)

    async def close(self) -> None:
        await super().close()
        if self._browsers is not None:
            await self._browsers.end()


def open_browser(opening: Opening) -> tuple[BrowserProvider]:
    """Return the provider; Playwright is loaded with the first call."""

    def make() -> Browsers:
        try:
            from remit.parts.browser.browsers import Browsers  # noqa: PLC0415 - an extra, and slow to load
        except ModuleNotFoundError as error:
            reason = f"{error.name} is not installed: pip install 'remit[browser]'"
            raise ProviderError(reason, cause=Code.SpawnFailed) from error
        from remit.parts.browser.settings import BrowserSettings  # noqa: PLC0415 - likewise

        settings = opening.part if isinstance(opening.part, BrowserSettings) else BrowserSettings()
        return Browsers(opening.enclosures(), settings, opening.clock)

    return (BrowserProvider(make),)
