"""The sections about calls: `[policy]`, `[confirm]`, `[limits]`, `[tools]`, `[models]` and `[evidence]`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from remit.errors import SettingsError
from remit.regex import regex
from remit.settings.file import Base
from remit.settings.pictures import url_or_empty
from remit.settings.section import About, Bytes, Count, Millis, Seconds, Section, Tables, Texts, converted


class PolicySettings(Section, frozen=True):
    """What may be called by whom."""

    rules: Annotated[
        Tables,
        About(
            "The rules, one `[[policy.rules]]` table each. A JSON array in the environment.",
            entry="remit.policy.rule:RuleTable",
        ),
    ] = ()
    groups: Annotated[
        dict[str, list[str]],
        About('Groups by name: `clerks = ["ann", "bob"]`. In rules `@clerks` stands for its members, people or tools.'),
    ] = msgspec.field(default_factory=dict)
    pots: Annotated[
        dict[str, dict[str, Any]],
        About(
            "Limits that several rules share, by name, as a rule's `limit` holds them: rules say "
            '`limit = { pot = "refunds" }`.'
        ),
    ] = msgspec.field(default_factory=dict)
    tests: Annotated[
        Tables,
        About(
            "Tests of the rules, one `[[policy.tests]]` table each; `remit policy test` runs them.",
            entry="remit.policy.cases:CaseTable",
        ),
    ] = ()
    taint: Annotated[
        Literal["ask", "strict", "deny", "allow"],
        About(
            "What to do with an agent's call that writes or executes, if an argument that decides what it reaches "
            "comes from untrusted text and no rule decides; `strict` asks, and looks at every argument."
        ),
    ] = "ask"
    remembered: Annotated[
        bool,
        About("Whether remembered approvals count as rules."),
    ] = True


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class ConfirmSettings(Section, frozen=True):
    """How people are asked."""

    expires_seconds: Annotated[
        Seconds,
        About("Seconds that a question stays open; after that the call is refused."),
    ] = 86_400
    max_open: Annotated[
        Count,
        About(
            "How many calls of one principal may wait for an answer at a time. The next is refused with "
            "`TOO_MANY_QUESTIONS`, or its job waits, so no principal can crowd out the questions of others."
        ),
    ] = 500
    proof: Annotated[
        Literal["any", "terminal", "channel", "token", "signed"],
        About(
            "The proof that an approval needs: any, none; terminal, typed at a terminal; channel, given on one "
            "such as Slack by someone other than the requester; token, sent over HTTP "
            "with a token of someone other than the requester; signed, an SSH signature of such a person."
        ),
    ] = "any"
    allowed_signers: Annotated[
        str,
        About(
            "The file that lists who may sign, and their keys, in the format of `ssh-keygen`. Keep it outside the "
            "project folder.",
            resolve=_path,
        ),
    ] = ""
    own: Annotated[
        bool, About("Whether, with the proofs `channel`, `token` and `signed`, requesters may approve their own calls.")
    ] = False


_UNITS: Final = {"s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
"""Microseconds."""
_RATE: Final = regex(r"([1-9][0-9]{0,8})/(s|min|h|d)")
_RATE_FORM: Final = r"^[1-9][0-9]{0,8}/(s|min|h|d)$"
_Of = Annotated[
    str,
    msgspec.Meta(pattern=r"^(principal|recipe|tool|label:.+)$", description="principal, recipe, tool or label:NAME"),
]


def _read(tables: dict[str, dict[str, Any]], _base: Base) -> dict[str, dict[str, Any]]:
    """Return the tables as they are. Raise SettingsError for one that does not fit."""
    limits_of(tables)
    return tables


class LimitSettings(Section, frozen=True):
    """How often, and how many at once, tools may be called by all processes together."""

    tables: ClassVar[str] = "tools"

    tools: Annotated[
        dict[str, dict[str, Any]],
        About(
            'Written as `[limits."web.*"]`: `rate`, `burst`, `concurrency`, `breaker`, `breaker_seconds`, '
            "`wait_seconds`, `queue`, `each` and `share` of the tools that a pattern names, see [limits](limits.md).",
            entry="remit.settings.sections.calls:CallLimit",
            resolve=_read,
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it


class CallLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limit of the tools that one pattern names."""

    rate: Annotated[
        str, msgspec.Meta(pattern=_RATE_FORM, description="calls in a time (s, min, h or d), as in 60/min")
    ] = ""
    """Calls in a time, such as `60/min`; empty: any number."""
    burst: Count | None = None
    """Calls that may come at once if there were none for long; None: as many as `rate` names."""
    concurrency: Count | None = None
    """Calls under way at once; None: any number."""
    breaker: Count | None = None
    """Failures to reach the tool, one after the other, after which no call is tried for a while; None: it is always."""
    breaker_seconds: Seconds = 30
    """Seconds until the next call is tried then."""
    wait_seconds: Annotated[int, msgspec.Meta(ge=0, le=3_600)] = 10
    """Seconds that a call waits for its turn."""
    queue: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 100
    """Calls that may wait in one process."""
    each: _Of | None = None
    """Whatever has this limit for itself: each `principal`, `recipe`, `tool` or `label:NAME`; None: all share it."""
    share: _Of = "principal"
    """Those who take turns while calls wait."""

    def bounds(self) -> dict[str, str]:
        """Return each bound in words, by its name."""
        apart = f" for each {self.each.removeprefix('label:')}" if self.each else ""
        bounds = {
            "rate": self.rate and f"{self.rate}, {self.room} at once",
            "concurrency": self.concurrency and f"{self.concurrency} under way",
            "breaker": self.breaker and f"{self.breaker} failures in a row, then a rest of {self.breaker_seconds} s",
        }
        return {bound: f"{words}{apart}" for bound, words in bounds.items() if words}

    @property
    def period(self) -> int:
        """Microseconds between two calls at the rate; 0 without a rate."""
        parts = _RATE.fullmatch(self.rate)
        return max(1, _UNITS[parts[2]] // int(parts[1])) if parts else 0

    @property
    def room(self) -> int:
        """Calls that may come at once."""
        parts = _RATE.fullmatch(self.rate)
        return self.burst or (int(parts[1]) if parts else 1)


def call_limits(settings: LimitSettings) -> dict[str, CallLimit]:
    """Return the limits, by the pattern of their tools. Raises SettingsError."""
    return limits_of(settings.tools)


def limits_of(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, CallLimit]:
    """Return the limits that tables say. Raises SettingsError."""
    keys = f"Its keys are: {', '.join(CallLimit.__struct_fields__)}; a rate is written as 60/min."
    limits = {}
    for pattern, table in tables.items():
        limit = limits[pattern] = converted(table, CallLimit, f'limits."{pattern}"', keys)
        if not (limit.rate or limit.concurrency or limit.breaker):
            remedy = "Give it a rate, a concurrency or a breaker."
            raise SettingsError(f'limits."{pattern}" limits nothing', remedy=remedy)
    return limits


class ToolSettings(Section, frozen=True):
    """Which tools there are and how strictly they are held to their schemas."""

    preferred_provider_order: Annotated[
        Texts,
        About("If several providers offer a name, the first match in this list serves it; `*` matches any ending."),
    ] = ("builtin", "mcp_*", "web", "stub")
    choose: Annotated[
        Literal["order", "safest"],
        About("How to choose between several providers of a name: by that order, or the tool with the lowest level."),
    ] = "order"
    schema_gate: Annotated[
        Literal["strict", "warn", "off"],
        About(
            "What becomes of a value that breaks its tool's schema: refused, reported, or not looked at.",
            env=("SCHEMA_GATE_MODE",),
        ),
    ] = "strict"
    only: Annotated[
        Texts,
        About(
            "The parts of Remit whose tools there are, such as `mcp` or `fs`, as `remit parts` names them; "
            "empty: all. Modules and programs bring theirs all the same."
        ),
    ] = ()
    no_mcp: Annotated[
        bool,
        About(
            "Whether to do without MCP servers. Their pinned tools are answered by stand-ins that touch nothing and "
            "say the same to the same arguments; other tools of theirs are refused.",
            env=("NO_MCP",),
        ),
    ] = False
    unprotected: Annotated[
        Texts,
        About(
            "`@tool` functions of level L2 that may run in this process, without isolation; `*` stands for any ending."
        ),
    ] = ()
    trusted_output: Annotated[
        Texts,
        About(
            "Tools whose results are trusted although they read from outside, such as `mcp.calendar.*`, unless "
            "untrusted values went in; `*` matches any characters."
        ),
    ] = ()
    always_trusted_output: Annotated[
        Texts,
        About("Tools whose results are trusted whatever went in, because they hold only what a source of yours says."),
    ] = ()
    untrusted_output: Annotated[
        Texts,
        About("Tools whose results are not trusted, whatever else says so."),
    ] = ()
    max_value_bytes: Annotated[
        Bytes,
        About("The largest result of a tool, as JSON; the call fails if it is larger."),
    ] = 16 * 1024 * 1024


class ModelSettings(Section, frozen=True):
    """Which models are asked, where, and for how much."""

    default: Annotated[
        str,
        About("The model to use if none is named, such as `openai:MODEL`.", env=("REMIT_MODEL",)),
    ] = ""
    openai_url: Annotated[
        str, About("The base URL of OpenAI's API.", env=("OPENAI_BASE_URL",), resolve=url_or_empty)
    ] = "https://api.openai.com/v1"
    anthropic_url: Annotated[
        str, About("The base URL of Anthropic's API.", env=("ANTHROPIC_BASE_URL",), resolve=url_or_empty)
    ] = "https://api.anthropic.com"
    google_url: Annotated[str, About("The base URL of Google's API.", resolve=url_or_empty)] = (
        "https://generativelanguage.googleapis.com"
    )
    ollama_url: Annotated[str, About("The base URL of Ollama.", resolve=url_or_empty)] = "http://127.0.0.1:11434/v1"
    patience_seconds: Annotated[
        Seconds, About("Seconds that a model may send nothing before its answer counts as cut off.")
    ] = 120
    at_once: Annotated[Count, About("Concurrent requests, for each model and key.")] = 64
    attempts: Annotated[
        Count,
        About("How often a model is asked a question in all, if it fails or is away. Deaths of workers do not count."),
    ] = 12
    retried: Annotated[
        Texts,
        About("The [faults](models.md#faults) after which a model is asked again."),
    ] = ("busy", "overloaded", "server", "cut", "timeout")
    cache: Annotated[
        Literal["", "off", "short", "long"],
        About(
            "Whether providers keep the beginning of prompts for further questions, and how long, where a question "
            "does not say it; empty: as the provider does."
        ),
    ] = ""
    fallbacks: Annotated[
        Tables,
        About(
            "Which models are asked in the place of one that fails, one `[[models.fallbacks]]` table each, see "
            "[models](models.md#fallbacks). A JSON array in the environment.",
            entry="remit.models.fallback:Fallback",
        ),
    ] = ()
    first_pause_ms: Annotated[
        Millis, About("Milliseconds before a question is asked again; each further pause is twice as long.")
    ] = 500
    longest_pause_seconds: Annotated[
        Seconds, About("Seconds that such a pause takes at most, unless the provider names a longer one.")
    ] = 60
    day_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**50)],
        About("Tokens that each principal may use in a day (UTC), over all jobs; 0: no limit."),
    ] = 0
    day_cents: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**40)],
        About("US cents that each principal may spend in a day (UTC), over all jobs; 0: no limit."),
    ] = 0
    budgets: Annotated[
        Tables,
        About(
            "What questions may take in a day or month, one `[[models.budgets]]` table each, see "
            "[models](models.md#budgets-of-a-month). A JSON array in the environment.",
            entry="remit.gateway.model_budgets:ModelBudget",
        ),
    ] = ()
    prices: Annotated[
        Tables,
        About("Prices of your own, one `[[models.prices]]` table each. A JSON array in the environment."),
    ] = ()


EvidenceBytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class EvidenceSettings(Section, frozen=True):
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
            "Days to keep the evidence stored beside a report; 0: forever. Digests are kept forever.",
            env=("EVIDENCE_RETENTION_DAYS",),
        ),
    ] = 183
