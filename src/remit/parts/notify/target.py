"""A target: who is told of what, and by which way. What `[[notify]]` in remit.toml says, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from remit.clock import DAY, SECOND
from remit.errors import PolicyError, SettingsError
from remit.jobs.plans.problem import EXPECTED, parse_duration
from remit.policy.condition import Window, parse_window
from remit.policy.table import Table
from remit.regex import regex
from remit.settings.expansion import expand
from remit.settings.pictures import address, program
from remit.settings.section import converted

_MINUTE: Final = 60 * SECOND
_URGENT: Final = "L2"


def window_of(quiet: Mapping[str, Any]) -> Window | None:
    """Return the window that `quiet` of a target names; None: none. Raises PolicyError."""
    return parse_window(Table({"quiet": quiet}, "the target", ("quiet",)), "quiet") if quiet else None


def quiet_until(quiet: Mapping[str, Any], now: int, *, level: str, expires_at: int | None) -> int | None:
    """Return until when a message waits, at most a day ahead, when it is asked again; None: it goes now.

    `level` is that of its call, and `expires_at` the time from which there is nothing left to answer. Minutes are tried
    one by one, as policy reads them, so that a change of clocks needs no rule of its own.
    """
    window = window_of(quiet)
    if window is None or level == _URGENT or not window.holds(now):
        return None
    minute = now - now % _MINUTE
    minutes = range(minute + _MINUTE, minute + DAY, _MINUTE)
    until = next((at for at in minutes if not window.holds(at)), minute + DAY)
    return None if expires_at is not None and expires_at <= until else until


EventName = Literal["question", "expired", "stuck", "failed", "uncertain", "budget"]
EVENTS: Final[tuple[EventName, ...]] = ("question", "expired", "stuck", "failed", "uncertain", "budget")
ABOUT_CALLS: Final[tuple[EventName, ...]] = ("question", "expired", "uncertain")
"""The events that are about a call, and so about a tool and its level."""
OPEN: Final[tuple[EventName, ...]] = ("question", "stuck", "uncertain")
"""The events that someone can settle, so that telling them later makes sense."""
PERSON: Final = "person"
"""The place of a target whose people are told each in their own."""
_NAME: Final = regex("[a-z0-9][a-z0-9_-]{0,63}")
_SLACK: Final = regex(r"[CGD][A-Z0-9]{1,20}")
_TELEGRAM: Final = regex(r"-?[0-9]{1,16}", re.ASCII)
_SHORTEST: Final = 16
"""Characters of a secret from which a key follows."""
_ADDRESS: Final = regex(r"[^\s@<>,;:\"\\]+@[^\s@<>,;:\"\\]+", re.ASCII)
_WAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "url": ("format", "secret", "headers"),
    "email": ("from", "smtp", "user", "password"),
    "command": ("env",),
    "slack": ("token", "secret", "api"),
    "telegram": ("token", "api"),
    "push": ("secret", "api"),
}
"""The key that chooses each way, and those that belong to it alone."""


class NotifyTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"sender": "from"}):
    """One `[[notify]]` table; exactly one of `url`, `email`, `command`, `slack`, `telegram` and `push` is given."""

    name: str
    """Lower-case letters, digits, `_` and `-`: stands in the record and in commands."""
    on: tuple[EventName, ...] = ()
    """The events to tell; empty: all that the other conditions can fit."""
    recipes: tuple[str, ...] = ()
    """Names or patterns of recipes and plans; empty: any, also calls that no job made."""
    labels: dict[str, str] = {}
    """Labels that the job must have."""
    tools: tuple[str, ...] = ()
    """Names or patterns of the tool that the event is about."""
    levels: tuple[Literal["L0", "L1", "L2"], ...] = ()
    """Levels of that tool."""
    ask: tuple[str, ...] = ()
    """People to tell one after the other, such as `ann`, `bob after 15m` or `@leads after 1h`, each in their place."""
    person: str = ""
    """The person of a turn: `ask` makes a target for each."""
    table: str = ""
    """The name of the table whose turn it is."""
    after: str = ""
    """The time to wait before telling, such as `30m`: not told if it is settled by then."""
    quiet: dict[str, Any] = {}
    """Hours in which messages wait, as a window of policy (`hours`, `days`, `zone`, `since`, `until`)."""
    digest: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 5
    """So many messages go one by one; what comes beyond within 30 seconds is one message."""
    details: bool = True
    """Whether the message shows arguments, the question's text and reasons; otherwise it only says what to look at."""
    url: str = ""
    """Where to POST the message; `${NAME}` takes it, or a part of it, from the environment."""
    format: Literal["json", "slack", "teams", "ntfy"] = "json"
    """The form of the post: the whole message, or a text with a link for what is named."""
    secret: str = ""
    """The key of the signature; `${NAME}` as in `url`. Empty: the message is not signed."""
    headers: dict[str, str] = {}
    """Further headers of the request; `${NAME}` as in `url`."""
    email: tuple[str, ...] = ()
    """Addresses that get a mail."""
    sender: str = ""
    """The address that the mail is from."""
    smtp: str = ""
    """The mail server, `smtps://HOST:PORT` or, with STARTTLS, `smtp://HOST:PORT`."""
    user: str = ""
    """The name to log in with at the mail server; empty: no login."""
    password: str = ""
    """The password for it; `${NAME}` as in `url`."""
    slack: str = ""
    """The identifier of a channel in which a Slack app posts, with buttons to answer."""
    token: str = ""
    """The token of the app (`xoxb-…`) or bot; `${NAME}` as in `url`. `secret` is the app's signing secret."""
    api: str = ""
    """The URL of the channel's methods; empty: Slack's or Telegram's own."""
    telegram: str = ""
    """The number of a chat in which a Telegram bot posts, with buttons to answer."""
    push: str = ""
    """`person`: the devices of each person of `ask`, by Web Push; `secret` is what the server's key follows from."""
    command: tuple[str, ...] = ()
    """A program and its arguments; it gets the message as JSON on stdin."""
    env: dict[str, str] = {}
    """Variables for the program; `${NAME}` as in `url`."""

    def __repr__(self) -> str:
        """Leave out what may be secret."""
        return f"Target({self.name!r}, {self.where!r})"

    @property
    def events(self) -> tuple[EventName, ...]:
        """The events to tell, never empty."""
        if self.on:
            return self.on
        fitting = OPEN if self.after else EVENTS
        return tuple(event for event in fitting if not self._of_calls or event in ABOUT_CALLS)

    @property
    def delay(self) -> int:
        """Return how long to wait before telling, in microseconds."""
        return (parse_duration(self.after) or 0) * 1_000

    @property
    def where(self) -> str:
        """Return who is told, in words without secrets."""
        if self.url:
            return address(self.url)
        if self.person:
            return f"{self.person} by {self.way}"
        if self.slack:
            return f"Slack channel {self.slack}"
        if self.telegram:
            return f"Telegram chat {self.telegram}"
        return f"mail to {', '.join(self.email)}" if self.email else f"command {program(self.command[0])}"

    @property
    def way(self) -> str:
        """Return the key that says by which way it is told."""
        return next(way for way in _WAYS if getattr(self, way))

    @property
    def answerable(self) -> bool:
        """Return whether people can answer where they are told."""
        return bool(self.slack or self.telegram)

    @property
    def bot(self) -> tuple[str, str]:
        """Return what tells its Telegram bot from others."""
        return self.api, self.token

    @property
    def _of_calls(self) -> bool:
        return bool(self.tools or self.levels)

    def wants(self, *, tool: str, level: str, recipe: str, labels: Mapping[str, str]) -> bool:
        """Return whether the conditions on tool, level, recipe and labels hold for an event."""
        return (
            _fits(recipe, self.recipes)
            and _fits(tool, self.tools)
            and (not self.levels or level in self.levels)
            and self.labels.items() <= labels.items()
        )


def target_of(table: Mapping[str, Any], where: str) -> NotifyTarget:
    """Read one `[[notify]]` table. Raises SettingsError, which quotes no value that may be secret."""
    target = converted(table, NotifyTarget, where, "docs/notifications.md shows its keys.")
    reason, remedy = next(filter(None, (check(target, table) for check in _CHECKS)), ("", ""))
    if reason:
        raise SettingsError(f"{where}: {reason}", remedy=remedy)
    return target


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


# --- what a type does not say; each check gives what is wrong and the remedy, or nothing

_Problem = tuple[str, str] | None


def _misnamed(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if _NAME.fullmatch(target.name):
        return None
    return "name must be lower-case letters, digits, _ and -", "Call it, for example, oncall."


def _turns(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if target.person or target.table:
        return "person and table are no keys", "List people under ask."
    if target.ask and target.after:
        return "after does not go with ask", 'Write it there: ask = ["ann", "bob after 15m"].'
    places = target.email or (target.slack, target.telegram, target.push)
    if bool(target.ask) != (PERSON in places) or (PERSON in target.email and len(target.email) > 1):
        remedy = "Each person of ask is told in their own place; whom else to tell is a target of its own."
        return f'ask goes with slack, telegram or push = "{PERSON}", or email = ["{PERSON}"]', remedy
    return None


def _ways(target: NotifyTarget, table: Mapping[str, Any]) -> _Problem:
    ways = [way for way in _WAYS if getattr(target, way)]
    if len(ways) != 1:
        none = "none of url, email, command, slack, telegram and push is given"
        return f"{' and '.join(ways)} are given" if ways else none, "Give one; a second way is a second target."
    own = _WAYS[ways[0]]
    others = [key for way, keys in _WAYS.items() if way != ways[0] for key in (way, *keys)]
    foreign = [key for key in others if key in table and key not in own]
    return (f"{foreign[0]} does not belong to {ways[0]}", f"Leave {foreign[0]} out.") if foreign else None


def _conditions(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if target.after and parse_duration(target.after) is None:
        return f"after must be {EXPECTED}", "Write, for example, 30m."
    if target.after and (final := [event for event in target.on if event not in OPEN]):
        return f"after does not fit {final[0]}, which no one can settle", "Make it a target of its own, without after."
    if (target.tools or target.levels) and (others := [event for event in target.on if event not in ABOUT_CALLS]):
        return (
            f"tools and levels do not fit {others[0]}, which is about no call",
            "Make it a target of its own, without them.",
        )
    return None


def _quiet(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    try:
        window_of(target.quiet)
    except PolicyError as error:
        return error.message, error.remedy or 'Write, for example, quiet = { hours = "22:00-07:00" }.'
    return None


def _webhook(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    return url_problem(target.url) if target.url and "${" not in target.url else None


def _mail(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if not target.email:
        return None
    wrong = [
        recipient
        for recipient in (*target.email, target.sender)
        if recipient != PERSON and not _ADDRESS.fullmatch(recipient)
    ]
    if wrong:
        return "email and from must be addresses such as oncall@example.com", "Correct them; from is required."
    server = mail_server(target.smtp)
    if server is None:
        return "smtp must be smtps://HOST, smtp://HOST, or one of these with a port", "Name the mail server."
    return ("a password is given without a user", "Add user.") if target.password and not target.user else None


def _program(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if target.command and (not target.command[0] or any("\0" in word for word in target.command)):
        return "command must be a list of texts, the first of them a program", 'Write ["/path/to/program", …].'
    return None


def _slack(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if not target.slack:
        return None
    if target.slack != PERSON and not _SLACK.fullmatch(target.slack):
        return "slack must be the identifier of a channel, such as C0123ABC", "Copy it from the channel's details."
    if not target.token or not target.secret:
        return "slack needs token and secret", "Add the app's token and its signing secret, as ${NAME}."
    return url_problem(target.api) if target.api else None


def _push(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if not target.push:
        return None
    if target.push != PERSON or not target.secret:
        return f'push must be "{PERSON}", with a secret', "Add a secret, as ${NAME}."
    return url_problem(target.api) if target.api else None


def _telegram(target: NotifyTarget, _table: Mapping[str, Any]) -> _Problem:
    if not target.telegram:
        return None
    if target.telegram != PERSON and not _TELEGRAM.fullmatch(target.telegram):
        return "telegram must be the number of a chat, such as -1001234567890", "Write it as a text, in quotes."
    if not target.token:
        return "telegram needs token", "Add the bot's token, as ${NAME}."
    return url_problem(target.api) if target.api else None


_CHECKS: Final = (_misnamed, _turns, _ways, _conditions, _quiet, _webhook, _mail, _program, _slack, _telegram, _push)


class MailServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where mail is handed in."""

    host: str
    port: int
    tls: bool
    """Whether the connection begins with TLS; otherwise STARTTLS comes first, except on this machine."""


def mail_server(smtp: str) -> MailServer | None:
    """The server that a URL names; None if it names none."""
    try:
        parts = urlsplit(smtp)
        port = parts.port
    except ValueError:
        return None
    extra = parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in {"smtp", "smtps"} or not parts.hostname or extra:
        return None
    tls = parts.scheme == "smtps"
    return MailServer(host=parts.hostname, port=port or (465 if tls else 587), tls=tls)


def url_problem(url: str) -> _Problem:
    """Return why nothing is posted to a URL, and what to do; None: it can be."""
    wrong = "url must begin with https:// and a host", "Correct it."
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return wrong
    if (
        host is None
        or parts.scheme not in {"http", "https"}
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        return wrong
    if parts.username is not None or parts.password is not None:
        return "url contains a user or password", "Put them into headers, as Authorization."
    if parts.scheme == "http" and not is_loopback(host):
        return "url must begin with https://, except on this machine", "Use https."
    return None


def push_secret(target: NotifyTarget, environ: Mapping[str, str]) -> str:
    """Return what a server's key for Web Push follows from. Raises SettingsError."""
    secret = expand(target.secret, environ, f"notify {target.name}")
    check_secret(target, secret)
    return secret


def check_secret(target: NotifyTarget, secret: str) -> None:
    """Raise SettingsError for a secret from which no key may follow."""
    if len(secret) < _SHORTEST:
        reason = f"notify {target.name}: its secret is shorter than {_SHORTEST} characters"
        remedy = "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        raise SettingsError(reason, remedy=remedy)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or address alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
