"""`remit login`: log in at a server as a person, and out again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.codes import Code
from remit.errors import RemitError, StateError, UsageError

if TYPE_CHECKING:
    import aiohttp

_PAUSE_S: Final = 5.0
"""Seconds between two questions, if the provider says nothing (RFC 8628, section 3.5)."""
_LONGEST_S: Final = 1_800.0
_ANSWER_S: Final = 30.0


@click.command("login")
@click.argument("url", required=False)
@click.option("--logout", is_flag=True, help="Log out there, and forget the login.")
@json_option("who you are there")
@pass_state
def command(state: CommandState, url: str | None, logout: bool) -> int:
    """Log in at a server as a person, or out again.

    Shows a code to enter at your provider, in a browser on any device, and waits until you have logged in there. Then
    commands with `--server URL` act in your name, for twelve hours. URL is that of `remit serve`; without it, that of
    --server.
    """
    from remit.cli.runner import run_to_end
    from remit.client.connection import base_url

    server = base_url(url or state.server, "token")
    if logout:
        return run_to_end(_log_out(state, server))
    return run_to_end(_log_in(state, server))


async def _log_in(state: CommandState, server: str) -> int:
    """Begin a login, show where it goes on, and wait for its end."""
    from remit.settings.logins import keep_login

    async with _session(server) as http:
        begun = await _ask(http, "POST", f"{server}/login/provider/device")
        place = str(begun.get("verification_uri_complete") or begun.get("verification_uri"))
        state.note(f"open {place} and enter the code {begun['user_code']}")
        login = await _wait(http, server, begun)
    keep_login(os.environ, server, login)
    shown = {"principal": login["principal"], "server": server}
    state.done(shown, f"logged in at {server} as {login['principal']}")
    return exit_codes.OK


async def _wait(http: aiohttp.ClientSession, server: str, begun: dict[str, Any]) -> dict[str, str]:
    """Ask until the person has logged in. Raises RemitError."""
    from remit.clock import SystemClock

    clock = SystemClock()
    pause_s, form = _seconds(begun.get("interval"), _PAUSE_S), {"device_code": str(begun.get("device_code"))}
    left_s = min(_seconds(begun.get("expires_in"), _LONGEST_S), _LONGEST_S)
    while left_s > 0:
        await clock.sleep(pause_s)
        left_s -= pause_s
        try:
            return await _ask(http, "POST", f"{server}/login/provider/session", form)
        except RemitError as error:
            if error.code is not Code.LOGIN_PENDING:
                raise
            pause_s += _PAUSE_S if "slow_down" in error.message else 0
    raise StateError("no one logged in in time", code=Code.LOGIN_REFUSED, remedy="Begin again.")


def _seconds(value: Any, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else otherwise


async def _log_out(state: CommandState, server: str) -> int:
    """End the session there; the file goes in any case."""
    from remit.settings.logins import forget_login, login_token

    token = login_token(os.environ, server)
    if not token:
        raise UsageError(f"you are not logged in at {server}", remedy=f"Log in: remit login {server}")
    forget_login(os.environ, server)
    async with _session(server) as http:
        await _ask(http, "DELETE", f"{server}/login/provider/session", token=token)
    state.done({"server": server}, f"logged out at {server}")
    return exit_codes.OK


def _session(server: str) -> aiohttp.ClientSession:
    import aiohttp

    from remit.client.connection import proxy_for

    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_S), proxy=proxy_for(server))


async def _ask(
    http: aiohttp.ClientSession, method: str, url: str, form: dict[str, str] | None = None, token: str = ""
) -> dict[str, Any]:
    """Return the JSON object that a server answers with. Raises the error that its problem stands for."""
    import aiohttp
    import msgspec

    from remit.client.connection import MAX_ANSWER, error_of
    from remit.errors import NotSentError, ServerError

    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        async with http.request(method, url, data=form or {}, headers=headers, allow_redirects=False) as response:
            body, status = await response.content.read(MAX_ANSWER), response.status
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise NotSentError(f"{url}: {reason}", remedy="Check the URL, and that `remit serve` runs there.") from error
    if status != 200:  # noqa: PLR2004 - OK
        raise _known(error_of(status, body))
    try:
        members: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ServerError(f"{url} answered with no JSON object", code=Code.SERVER_ANSWER_INVALID) from error
    return members


def _known(error: RemitError) -> RemitError:
    """The error of a server without `[login]`, which has nothing at these paths, in words that say so."""
    if error.code in {Code.PATH_UNKNOWN, Code.UNAUTHENTICATED}:
        return UsageError(
            f"people do not log in at this server: {error.message}",
            code=error.code,
            remedy="Set [login] in its settings, or use a token: REMIT_TOKEN.",
        )
    return error
