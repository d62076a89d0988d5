"""The section `[journal]`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from remit.redact import MASK, mask
from remit.settings.address import HIDDEN
from remit.settings.base import Base
from remit.settings.section import About, Section

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SERVERS: Final = frozenset({"postgresql", "postgres"})
"""Schemes of journals in PostgreSQL."""
SQLITE: Final = "sqlite:///"
BACKENDS: Final = "remit.journals"
"""The group of entry points by which other packages offer journals, each named by the scheme of its URLs."""
_MEMORY: Final = ":memory:"


def installed(scheme: str) -> "EntryPoint | None":
    """Return what opens the journals of a scheme that is not Remit's own; None if nothing that is installed does."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it looks at every package, and few need it

    return next(iter(entry_points(group=BACKENDS, name=scheme)), None)


def shards_in(url: str) -> list[str]:
    """Return the URLs of the shards, in their order; one if the journal has none."""
    urls = url.split()
    return urls if urls and all(one.partition("://")[0] in SERVERS for one in urls) else [url]


def _absolute(url: str, base: Base) -> str:
    if len(urls := shards_in(url)) > 1:
        if len(set(urls)) < len(urls):
            raise ValueError("it names a shard twice")
        return " ".join(urls)
    path = url.removeprefix(SQLITE)
    if path == _MEMORY:
        return path
    scheme, separator, _ = path.partition("://")  # the rest may hold a password
    if separator and (scheme in SERVERS or installed(scheme) is not None):
        return path
    if path.startswith(tuple(f"{server}:" for server in SERVERS)):
        raise ValueError("// is missing after the first colon; give postgresql://user:password@host/database")
    if separator:
        raise ValueError(f"{scheme}:// is unknown; give a path, {SQLITE}path, {_MEMORY} or postgresql://…")
    return str(base.path(path or ".remit/journal.db"))


def _picture(url: Any) -> Any:
    """Show a path unchanged; of a URL, drop everything up to the last @, since users write passwords unescaped."""
    if not isinstance(url, str):
        return HIDDEN
    return " ".join(_one_picture(one) for one in shards_in(url))


def _one_picture(url: str) -> str:
    scheme, separator, rest = mask(url).partition("://")
    _user, at, place = rest.rpartition("@") if separator else ("", "", "")
    return f"{scheme}://{MASK}@{place}" if at else mask(url)


def _place(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class JournalSettings(Section, frozen=True):
    """Where everything is recorded."""

    url: Annotated[
        str,
        About(
            "The journal: a path, `sqlite:///path`, `postgresql://user:password@host/database?schema=remit` or "
            "`:memory:`. Empty: `.remit/journal.db` in the project folder. Several `postgresql://` URLs, with spaces "
            "between them, are the [shards](journal.md#shards) of one journal: always name them in the same order.",
            env=("REMIT_JOURNAL",),
            resolve=_absolute,
            picture=_picture,
        ),
    ] = ""
    key_file: Annotated[
        str,
        About(
            "The file with the keys that seal the journal. Keep it outside the project folder, readable only by "
            "you. Empty: Remit creates one together with a project's journal, in your data folder.",
            resolve=_place,
        ),
    ] = ""

    @property
    def file(self) -> Path | None:
        """The file that the journal is kept in; None for one in memory or on a server."""
        return None if self.url.startswith(_MEMORY) or "://" in self.url else Path(self.url)
