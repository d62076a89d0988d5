"""The sections about a process: `[app]`, `[output]`, `[journal]`, `[serve]`, `[jobs]` and `[fs]`."""

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import msgspec

from remit.redact import MASK, mask
from remit.settings import pictures
from remit.settings.file import Base
from remit.settings.pictures import HIDDEN, url_or_empty
from remit.settings.section import About, Bytes, Count, Seconds, Section, Tables, Texts

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def _modules(modules: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(name)) if name.endswith(".py") or os.sep in name else name for name in modules)


def account() -> str:
    """The name of the OS user: of the account, not of the environment, which any program can set."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run under accounts without a name
        return f"uid{os.getuid()}"


def _principal(name: str, _base: Base) -> str:
    return name or account()


class AppSettings(Section, frozen=True):
    """Your code, and who you are."""

    modules: Annotated[
        Texts,
        About(
            "Python files or dotted modules that define tools, recipes and providers. "
            "Separated as in PATH in the environment.",
            env=("REMIT_MODULES",),
            separator=os.pathsep,
            resolve=_modules,
        ),
    ] = ()
    capabilities: Annotated[
        Texts,
        About(
            "Installed parts that others made, by name (docs/extending.md). "
            "Each may have settings in a table of its name.",
            env=("REMIT_CAPABILITIES",),
        ),
    ] = ()
    principal: Annotated[
        str,
        About(
            "The name recorded with every call. Empty: the name of the OS user.",
            env=("REMIT_PRINCIPAL",),
            resolve=_principal,
        ),
    ] = ""


class OutputSettings(Section, frozen=True):
    """What commands print."""

    color: Annotated[
        Literal["auto", "always", "never"],
        About(
            "When to use colour; auto: on a terminal. Any `NO_COLOR` means never, any `FORCE_COLOR` means always.",
            env=("NO_COLOR", "FORCE_COLOR"),
            fixed={"NO_COLOR": "never", "FORCE_COLOR": "always"},  # no-color.org, force-color.org
        ),
    ] = "auto"
    log: Annotated[
        Literal["text", "json"],
        About(
            "The form of the log on stderr. json: an object a line with `at`, `level`, `logger`, `message`, `error`, "
            "and `job` (or `stream`), `step` and `tool` of what it belongs to; your own code's warnings are in it, too."
        ),
    ] = "text"


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
    return urls if urls and all(address.partition("://")[0] in SERVERS for address in urls) else [url]


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
    return " ".join(_one_picture(shard) for shard in shards_in(url))


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


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class ServeSettings(Section, frozen=True):
    """How `remit serve` and `remit mcp serve --http` listen."""

    tls_cert: Annotated[
        str,
        About("The certificate for HTTPS, a PEM file with its chain. Empty: HTTP.", resolve=_path),
    ] = ""
    tls_key: Annotated[
        str,
        About(
            "The certificate's private key, a PEM file without a password. Empty: `tls_cert` contains it.",
            resolve=_path,
        ),
    ] = ""
    without_tls: Annotated[
        bool,
        About(
            "Whether to listen beyond this machine without a certificate, behind a proxy that serves HTTPS. "
            "Without such a proxy, tokens and answers cross the network in plain text."
        ),
    ] = False
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=3_600)],
        About(
            "Seconds that a server that was told to stop goes on answering, while `/health` says 503 and each answer "
            "ends its connection: as long as a balancer takes to leave it alone."
        ),
    ] = 0
    queue_bytes: Annotated[
        Bytes,
        About(
            "Bytes that may wait to be written to the journal. Beyond that, requests that begin jobs, calls or tickets "
            "are refused (`JOURNAL_BUSY`)."
        ),
    ] = 33_554_432
    public_url: Annotated[
        str,
        About(
            "The base URL at which people reach the console, such as `https://remit.example.com`; notifications and "
            "dialogs of MCP clients link to it, and the server card names it. Empty: no links, and no card.",
            resolve=url_or_empty,
        ),
    ] = ""


class ClientSettings(Section, frozen=True):
    """Who may connect over HTTP: each `[[clients]]` table is one client."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "The clients, one `[[clients]]` table each, as explained below. A JSON array in the environment.",
            env=("REMIT_CLIENTS",),
            entry="remit.settings.clients:ClientTable",
            picture=pictures.clients,
        ),
    ] = ()


class ReadinessSettings(Section, frozen=True):
    """What has to be there."""

    required: Annotated[
        Texts,
        About(
            "Dependencies that must work for this process to be ready: `mcp` (all MCP servers) or `mcp.<server>`. "
            "An unknown name is never ready."
        ),
    ] = ()


_Of = Annotated[
    str, msgspec.Meta(pattern=r"^(principal|recipe|label:.+)$", description="principal, recipe or label:NAME")
]


class JobSettings(Section, frozen=True):
    """How jobs run."""

    concurrency: Annotated[Count, About("Jobs that one worker runs at the same time.")] = 16
    lease_seconds: Annotated[
        Seconds,
        About("Seconds until other workers can take over the job of a worker that disappeared."),
    ] = 30
    share: Annotated[
        _Of,
        About(
            "Those who take turns if more jobs are due than workers have room for: each `principal`, `recipe` or value "
            "of a label, as in `label:team`."
        ),
    ] = "principal"
    quotas: Annotated[
        dict[_Of, Count],
        About(
            "Jobs that may be open for each principal, recipe or value of a label, as in `principal = 1000` and "
            '`"label:team" = 200`. One more is refused (`JOB_QUOTA_EXCEEDED`).'
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it
    queue: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=1_000_000)],
        About("Jobs that may wait for a worker. One more is refused (`JOBS_FULL`). 0: no bound."),
    ] = 0
    engine: Annotated[
        str,
        About(
            "The engine that places jobs on workers: `local`, which needs the journal alone, or `dbos` "
            "([production.md](production.md))."
        ),
    ] = "local"
    mismatch: Annotated[
        Literal["warn", "fail", "migrate"],
        About(
            "What to do if a job resumes or is replayed under other versions than recorded: warn, record it and "
            "continue; fail, refuse; migrate, continue if a registered migration covers the change, else refuse."
        ),
    ] = "warn"
    code_version: Annotated[
        str,
        About(
            "The code version to record with recipes: `package:NAME`, `git`, or any text. Empty: a digest of the code."
        ),
    ] = ""
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=86_400)],
        About("Seconds that a stopping worker waits for running calls to end."),
    ] = 20


def _roots(roots: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(root)) for root in roots)


class FsSettings(Section, frozen=True):
    """What the file tools may touch."""

    roots: Annotated[
        Texts, About("The folders that file tools may use; they cannot reach anything outside.", resolve=_roots)
    ] = (".",)
    max_read_bytes: Annotated[Bytes, About("The largest file that file tools read.")] = 2_000_000
    search_anywhere: Annotated[
        bool,
        About(
            "Whether folder.search and folder.read may read folders outside the roots, except hidden ones and the "
            "system's. `remit mcp serve` confines all clients to the roots."
        ),
    ] = True
