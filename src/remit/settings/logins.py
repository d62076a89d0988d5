"""The file of a login at an MCP server: tokens, for the owner of the file alone, changed by one process at a time.

That of a login at a server of Remit's own, with `remit login`: the token of a session, which the server renews.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.atomic import replace_file
from remit.canonical import sha256
from remit.settings.expansion import encrypting_keyring
from remit.settings.places import login_folder
from remit.threads import StopEvent, wait_for_lock

if TYPE_CHECKING:
    from remit.settings.mcp import McpServer

LoginState = Literal["", "none", "logged in", "expired"]
"""The state of a login; empty for a server without OAuth. `expired`: only a new login helps."""
EXPIRY: Final = "expires_at"
"""Key of the file: seconds since the Unix epoch."""
_DIGITS: Final = 16
_SERVICE: Final = "remit login"
"""The service of the keyring under which tokens of logins are kept; `${keyring:NAME}` reads none of them."""


class LoginFile:
    """The file of one login at a server.

    It lies in `folder`, by the server's URL: tokens of one server are never sent to another. Where each person logs in,
    there is one for each `principal`.
    """

    def __init__(self, folder: Path, server: McpServer, principal: str = "") -> None:
        person = f"-{_short(principal)}" if server.login == "user" else ""
        self.path = folder / f"{server.name}-{_short(server.url)}{person}.json"

    def read(self) -> dict[str, Any]:
        """Return all that is kept; nothing of a file that is damaged."""
        try:
            content = msgspec.json.decode(self.path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}
        return content if isinstance(content, dict) else {}

    def keep(self, **values: Any) -> None:
        """Keep these values beside the others. The file is replaced whole, and never readable by others."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self.path, msgspec.json.encode({**self.read(), **values}))

    async def remove(self) -> bool:
        """Forget the login, once no process renews it; whether there was one."""
        if not self.path.parent.exists():
            return False
        async with self.alone():
            there = self.path.exists()
            self.path.unlink(missing_ok=True)
            self._lock.unlink(missing_ok=True)
        return there

    def state(self, server: McpServer, now_s: float) -> LoginState:
        """Return what the file says of the login, without asking the server."""
        if server.oauth is None:
            return ""
        content = self.read()
        tokens, expires = content.get("tokens"), content.get(EXPIRY)
        if not isinstance(tokens, dict):
            return "none"
        late = isinstance(expires, int | float) and now_s > expires
        return "expired" if late and not tokens.get("refresh_token") else "logged in"

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Be the only one that renews this login, among all processes, within the block."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = await self._locked()
        try:
            while not _is(number, self._lock):  # its file was removed, so another process may hold a new one
                os.close(number)
                number = -1
                number = await self._locked()
            yield
        finally:
            if number >= 0:
                os.close(number)

    @property
    def _lock(self) -> Path:
        return self.path.with_suffix(".lock")

    async def _locked(self) -> int:
        """Return the number of the file of the lock, once it is ours."""
        number = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        stop = StopEvent()
        waiting = asyncio.ensure_future(asyncio.to_thread(wait_for_lock, number, stop))
        try:
            await asyncio.shield(waiting)
        except BaseException:
            stop.set()
            await asyncio.wait([waiting])
            os.close(number)
            raise
        return number


def keep_login(env: Mapping[str, str], url: str, login: Mapping[str, str]) -> None:
    """Keep the login at a server of Remit's own: its token in the keyring if there is one, else in the file."""
    file, own = _server_login(env, url), dict(login)
    ring = encrypting_keyring()
    if ring is not None:
        with suppress(Exception):  # backends are others', and raise what they like: then the file has it
            ring.set_password(_SERVICE, _place(url), own["token"])
            own = {**own, "token": "", "in": "keyring"}
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(file, msgspec.json.encode({"url": url, **own}))


def forget_login(env: Mapping[str, str], url: str) -> None:
    """Forget the login at a server of Remit's own."""
    if _login_in(env, url).get("in") and (ring := encrypting_keyring()) is not None:
        with suppress(Exception):  # as above; the token ends at the server, too
            ring.delete_password(_SERVICE, _place(url))
    _server_login(env, url).unlink(missing_ok=True)


def login_token(env: Mapping[str, str], url: str) -> str:
    """The token of the login at a server of Remit's own; empty: there is none."""
    content = _login_in(env, url)
    if content.get("in") and (ring := encrypting_keyring()) is not None:
        with suppress(Exception):  # as above
            return ring.get_password(_SERVICE, _place(url)) or ""
    return content.get("token", "")


def _login_in(env: Mapping[str, str], url: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(_server_login(env, url).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}


def _server_login(env: Mapping[str, str], url: str) -> Path:
    return login_folder(env) / f"remit-{_short(_place(url))}.json"


def _place(url: str) -> str:
    return url.rstrip("/")


def _is(number: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False


def _short(text: str) -> str:
    return sha256(text.encode()).rpartition(":")[2][:_DIGITS]
