"""Logging in with a client's token, and out again."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from remit.pages.page import PageView

PATH: Final = "/login"
LOGOUT: Final = "/logout"
PROVIDER: Final = "/login/provider"
"""Begins a login at a provider; what answers there is a part's."""


class LoginPage(PageView, frozen=True, kw_only=True):
    """Asks for a token."""

    template: ClassVar[str] = "login.html"
    to: str
    """Where the reader wanted to go."""
    wrong: str = ""
    """Why the last token was not taken."""
    provider: str = ""
    """The issuer at which people log in; empty: they do not."""
    start: str = ""
    """Where a login there begins."""
    tokens: bool = True
    """Whether people can log in with a token."""


class Again(PageView, frozen=True, kw_only=True):
    """Loads the page that was asked for once more."""

    template: ClassVar[str] = "again.html"
    here: str


class LoginForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form to log in."""

    token: str
    to: str = "/"

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"Given(to={self.to!r})"


class Leave(msgspec.Struct, frozen=True):
    """The form to log out."""


def local(path: str) -> str:
    """A path of this server; the first page instead of anything that could lead elsewhere."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if safe and path.partition("?")[0] not in {PATH, LOGOUT} else "/"
