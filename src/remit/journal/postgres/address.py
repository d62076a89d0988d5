"""Where a journal is: a PostgreSQL URL, and the schema in it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from remit.codes import Code
from remit.errors import SettingsError

_SCHEMA: Final = "remit"
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,49}")


class Address(msgspec.Struct, frozen=True):
    """What a URL says."""

    dsn: str
    """For the driver; holds the password."""
    schema: str
    name: str = "remit"
    """The name that the server has for its connections."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `postgresql://user:password@host:port/database?schema=NAME&sslmode=…`. Raises SettingsError."""
        try:
            parts = urlsplit(url)
            query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            _ = parts.port
        except ValueError:  # it quotes what stands where a port should: the beginning of a password that holds a /
            raise SettingsError("the journal's URL cannot be read", remedy=_REMEDY) from None
        if parts.netloc.count("@") > 1 or "@" in parts.path + parts.fragment or ("@" in parts.query and not parts.path):
            raise SettingsError("the journal's URL has an @ in the wrong place", remedy=_REMEDY)
        given = dict(query)
        schema = given.get("schema", _SCHEMA)
        if not _NAME.fullmatch(schema):
            msg = f"{schema!r} is not a valid schema name: use at most 50 lower-case letters, digits and _"
            raise SettingsError(msg, code=Code.SETTINGS_INVALID, remedy=_REMEDY)
        rest = urlencode([(key, value) for key, value in query if key != "schema"], safe="/")
        return cls(urlunsplit(parts._replace(query=rest)), schema, given.get("application_name", "remit"))

    def __str__(self) -> str:
        """Without user, password and anything else that may be secret."""
        parts = urlsplit(self.dsn)
        host = parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")
        return f"postgresql://{host}{parts.path}?schema={self.schema}"

    def __repr__(self) -> str:
        """As `str`: an address may end in a log."""
        return f"Address({self})"


_REMEDY: Final = (
    "Give postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME; "
    "in USER and PASSWORD, write @ : / ? # [ ] % as %40 %3A %2F %3F %23 %5B %5D %25."
)
