"""Every setting, in one place: its type and limits, its default, what it means, its environment names.

The loader, `remit config` and docs/configuration.md all read these classes; a setting exists nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from remit.settings.shown import shown

Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
EvidenceBytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=10 * 365 * 86_400)]
Millis = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]
Texts = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...]
Tables = tuple[dict[str, Any], ...]


class About(NamedTuple):
    """What the type of a setting does not say."""

    meaning: str
    env: tuple[str, ...] = ()
    """Environment names beside `REMIT_<SECTION>_<NAME>`, which comes first where several are set."""


class JournalSettings(msgspec.Struct, frozen=True):
    """Where everything is recorded."""

    url: Annotated[
        str,
        About(
            "The journal: a path, `sqlite:///path`, `postgresql://user:password@host/database?schema=remit` or "
            "`:memory:`. Empty: `.remit/journal.db` in the project folder.",
            env=("REMIT_JOURNAL",),
        ),
    ] = ""

    def __repr__(self) -> str:
        """Without the password."""
        return f"JournalSettings(url={shown('journal.url', self.url)!r})"


class AppSettings(msgspec.Struct, frozen=True):
    """Your code, and who you are."""

    modules: Annotated[
        Texts,
        About(
            "Python files or dotted modules that define tools and recipes. Separated as in PATH in the environment.",
            env=("REMIT_MODULES",),
        ),
    ] = ()
    principal: Annotated[
        str,
        About("Who asks, as recorded with every call. Empty: the name of the OS user.", env=("REMIT_PRINCIPAL",)),
    ] = ""


class ToolSettings(msgspec.Struct, frozen=True):
    """Which tools there are and how strictly they are held to their schemas."""

    preferred_provider_order: Annotated[
        Texts,
        About("Which provider serves a name that several offer: the first that matches; `*` stands for any ending."),
    ] = ("builtin", "mcp_*", "stub")
    choose: Annotated[
        Literal["order", "safest"],
        About("How to choose between several providers of a name: by that order, or the tool that can do least."),
    ] = "order"
    schema_gate: Annotated[
        Literal["strict", "warn", "off"],
        About(
            "What becomes of a value that breaks its tool's schema: refused, reported, or not looked at.",
            env=("SCHEMA_GATE_MODE",),
        ),
    ] = "strict"
    no_mcp: Annotated[
        bool,
        About("Whether to do without MCP servers; scripted tools stand in for theirs.", env=("NO_MCP",)),
    ] = False
    max_value_bytes: Annotated[
        Bytes,
        About("The largest result of a tool, as JSON; a larger one is a failure."),
    ] = 16 * 1024 * 1024


class McpSettings(msgspec.Struct, frozen=True):
    """MCP servers whose tools are used, and MCP clients that may use yours."""

    servers: Annotated[
        Tables,
        About("The servers, one `[[mcp.servers]]` table each, as explained below. A JSON array in the environment."),
    ] = ()
    timeout_ms: Annotated[
        Millis,
        About("How long a call of a server's tool may take, where the server has no limit.", env=("MCP_TIMEOUT_MS",)),
    ] = 30_000
    first_use: Annotated[
        Literal["trust", "refuse"],
        About(
            "Whether tools of a server that was never pinned may be used. With trust, what it lists first is pinned; "
            "with refuse, nothing is used before `remit mcp pin`."
        ),
    ] = "trust"
    elicitation: Annotated[
        Literal["decline", "defaults", "forward"],
        About(
            "What a server's question is answered with: a refusal, the defaults that its schema names, where it names "
            "all that is required, or what the MCP client says that made the call (a refusal where none did)."
        ),
    ] = "decline"
    sampling: Annotated[
        Literal["refuse", "forward"],
        About("Whether a server may ask for a model: never, or that of the MCP client that made the call."),
    ] = "refuse"
    max_message_bytes: Annotated[Bytes, About("The largest message taken from a server.")] = 64 * 1024 * 1024
    expose: Annotated[
        Texts,
        About("Recipes that MCP clients are offered as tools: names, or patterns such as `report_*`."),
    ] = ()
    clients: Annotated[
        Tables,
        About("Who may connect over HTTP, one `[[mcp.clients]]` table each. A JSON array in the environment."),
    ] = ()
    servers_json: Annotated[
        str,
        About(
            "For the environment: more servers, as a JSON array of `{name, cmd, args, cwd}`, also with `env`, `url` "
            "and `headers`. It wins over the names below.",
            env=("MCP_SERVERS_JSON",),
        ),
    ] = ""
    server_name: Annotated[
        str, About("For the environment: the name of a single server.", env=("MCP_SERVER_NAME",))
    ] = ""
    server_cmd: Annotated[
        str, About("For the environment: the program of the single server.", env=("MCP_SERVER_CMD",))
    ] = ""
    server_args_json: Annotated[
        str,
        About(
            "For the environment: its arguments, as a JSON array. It wins over the next name.",
            env=("MCP_SERVER_ARGS_JSON",),
        ),
    ] = ""
    server_args: Annotated[
        str,
        About(
            "For the environment: its arguments, split as a shell would; no shell ever sees them.",
            env=("MCP_SERVER_ARGS",),
        ),
    ] = ""
    server_cwd: Annotated[
        str,
        About(
            "For the environment: the folder the single server is started in. Empty: the project folder.",
            env=("MCP_SERVER_CWD",),
        ),
    ] = ""

    def __repr__(self) -> str:
        """Without what may be secret."""
        fields = ", ".join(f"{name}={shown(f'mcp.{name}', getattr(self, name))!r}" for name in self.__struct_fields__)
        return f"McpSettings({fields})"


class FsSettings(msgspec.Struct, frozen=True):
    """What the file tools may touch."""

    roots: Annotated[Texts, About("The folders that file tools see; nothing outside them can be named.")] = (".",)
    max_read_bytes: Annotated[Bytes, About("The largest file that file tools read.")] = 2_000_000
    search_anywhere: Annotated[
        bool,
        About(
            "Whether folder.search and folder.read may look into any folder that is named, or only into the roots. "
            "`remit mcp serve` lets no client look outside them."
        ),
    ] = True


class PolicySettings(msgspec.Struct, frozen=True):
    """What may be called by whom."""

    rules: Annotated[
        Tables,
        About("The rules, one `[[policy.rules]]` table each. A JSON array in the environment."),
    ] = ()
    tests: Annotated[
        Tables,
        About("What the rules should say to a call, one `[[policy.tests]]` table each; `remit policy test` runs them."),
    ] = ()
    remembered: Annotated[
        bool,
        About("Whether approvals that a person chose to have remembered count as rules."),
    ] = True


class ConfirmSettings(msgspec.Struct, frozen=True):
    """How people are asked."""

    expires_seconds: Annotated[
        Seconds,
        About("How long a question may stay unanswered; after that the call is refused."),
    ] = 86_400


class JobSettings(msgspec.Struct, frozen=True):
    """How jobs run."""

    concurrency: Annotated[Count, About("Jobs that one worker runs at the same time.")] = 16
    lease_seconds: Annotated[
        Seconds,
        About("How long a job of a worker that vanished stays out of reach of others."),
    ] = 30
    mismatch: Annotated[
        Literal["warn", "fail"],
        About("What to do when a job resumes under other versions than it was recorded with."),
    ] = "warn"
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=86_400)],
        About("How long a worker that is told to stop waits for running calls to end."),
    ] = 20


class EvidenceSettings(msgspec.Struct, frozen=True):
    """What is kept of what tools found."""

    inline_limit_bytes: Annotated[
        EvidenceBytes,
        About("The largest piece of evidence kept within a report.", env=("EVIDENCE_INLINE_LIMIT_BYTES",)),
    ] = 4_096
    raw_limit_bytes: Annotated[
        EvidenceBytes,
        About("The largest piece of evidence stored beside a report.", env=("EVIDENCE_RAW_LIMIT_BYTES",)),
    ] = 1_000_000
    max_items_per_report: Annotated[
        Count,
        About("How many pieces of evidence a report may list.", env=("EVIDENCE_MAX_ITEMS_PER_REPORT",)),
    ] = 50
    retention_days: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=36_500)],
        About(
            "How long the evidence stored beside a report is kept; its digest is kept for ever, and with 0 so is it.",
            env=("EVIDENCE_RETENTION_DAYS",),
        ),
    ] = 7


class TicketSettings(msgspec.Struct, frozen=True):
    """Tickets: messages that become tool runs and replies."""

    derive_replies: Annotated[
        bool,
        About("Whether a TOOL ticket that may proceed gets a REPLY ticket.", env=("ENABLE_REPLY_DERIVATION",)),
    ] = False
    tool_only: Annotated[bool, About("Whether to stop after TOOL tickets, whatever their verdict.")] = False
    cutover_until_ms: Annotated[
        int,
        msgspec.Meta(ge=0, le=2**53 - 1),
        About(
            "From when on steps in the older place (`ticket.tool_steps`) count as a violation, in milliseconds since "
            "the Unix epoch; 0: never.",
            env=("CUTOVER_UNTIL_MS",),
        ),
    ] = 0
    expose_warn_count: Annotated[
        bool,
        About(
            "Whether answers over HTTP say how many warnings the schema gate had, as `X-Schema-Warn-Count`.",
            env=("SCHEMA_GATE_EXPOSE_WARN_HEADER",),
        ),
    ] = False


class OutputSettings(msgspec.Struct, frozen=True):
    """What commands print."""

    color: Annotated[
        Literal["auto", "always", "never"],
        About(
            "Whether to colour; auto: on a terminal. Any `NO_COLOR` means never, any `FORCE_COLOR` means always.",
            env=("NO_COLOR", "FORCE_COLOR"),
        ),
    ] = "auto"


class Explained(NamedTuple):
    """One setting as it stands."""

    key: str
    value: Any
    source: str
    """`default`, `command line`, the name of an environment variable, or the path of a file."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, as loaded: every path in them is absolute, every empty default filled in."""

    journal: JournalSettings
    app: AppSettings
    tools: ToolSettings
    mcp: McpSettings
    fs: FsSettings
    policy: PolicySettings
    confirm: ConfirmSettings
    jobs: JobSettings
    evidence: EvidenceSettings
    tickets: TicketSettings
    output: OutputSettings

    file: Path | None
    """The remit.toml that was read."""
    folder: Path
    """The project folder: that file's, or the working folder where there is none."""
    working_folder: Path
    """What relative paths in the environment and in flags count from."""
    sources: Mapping[str, str]
    """Where each setting came from, by key."""

    def explain(self) -> list[Explained]:
        """Every setting with its value and where that came from, in the order of the documentation; secrets masked."""
        places = ((key, *key.split("."), source) for key, source in self.sources.items())
        rows = ((key, getattr(getattr(self, section), name), source) for key, section, name, source in places)
        return [Explained(key, shown(key, value), source) for key, value, source in rows]
