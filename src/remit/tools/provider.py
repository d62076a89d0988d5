"""The port through which tools enter Remit. The gateway is its only caller (rule 1).

Arguments and results of built-in tools as structs: the schema a caller sees and the values code uses are one.

Providers of tools of ours: each tool is declared by the structs that it takes and gives.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

import msgspec
from msgspec import Meta

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.door import Inside
from remit.tools.meta import JsonSchema, Level, Risk, ToolMeta
from remit.tools.peer import Peer

P = TypeVar("P")


class Keeper(Protocol):
    """Keeps bytes for the stream that a call is recorded in."""

    async def put(self, data: bytes, *, until: int | None = None) -> str:
        """Keep bytes durably; their digest, `sha256:` and 64 hexadecimal digits.

        They are kept for good, so that a replay finds them, or `until` a time in microseconds since the Unix epoch.
        They end with the subject of the stream. Raises JournalError.
        """
        ...

    async def get(self, digest: str) -> bytes | None:
        """The bytes of a digest; None if they are not kept, or no more. Raises JournalError."""
        ...


class MemoryKeeper:
    """Keeps bytes for as long as it lives: for calls that no journal records."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    async def put(self, data: bytes, *, until: int | None = None) -> str:  # noqa: ARG002 - it does not last that long
        digest = sha256(data)
        self.blobs[digest] = data
        return digest

    async def get(self, digest: str) -> bytes | None:
        return self.blobs.get(digest)


class EvidenceCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something a call found that may have to be shown later.

    The gateway gives it a digest and decides what is kept; content travels in `text` or `data`, never in `metadata`
    (rule 10).
    """

    kind: str
    """Such as `tool_output`, `http_body_preview`, `stderr`: decides the class (contract: tickets, "Evidence")."""
    source: str
    """The origin: a URL, a path, a tool."""
    retrieved_at: int
    """Microseconds since the Unix epoch."""
    text: str | None = None
    """The content, where it is to be kept."""
    data: bytes | None = None
    """The content that is not text, such as an image: it is kept beside the record, never in it."""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class ToolResult(msgspec.Struct, frozen=True):
    """What a call gave: a value that JSON can hold, and evidence."""

    value: Any = None
    evidence: tuple[EvidenceCandidate, ...] = ()
    repaired: Mapping[str, int] | None = None
    """The repairs of a value that a stranger wrote, as `remit.jsonrpc.message.REPAIRS` names them; None: its author is
    asked to correct what JSON cannot hold."""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a call would change, by what is there now."""

    what: str
    """A sentence, such as `Replaces notes.md, 12 lines by 14.`"""
    diff: str = ""
    """The whole change as a unified diff; empty where there is nothing to compare."""
    problem: str = ""
    """The reason why it is unknown; the call would probably fail for the same one."""


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may know of the job that calls it."""

    id: str
    recipe: str
    """The recipe or plan that runs."""
    labels: dict[str, str]
    encoded: bytes
    """The input of the job, as JSON bytes."""

    @property
    def input(self) -> Any:
        """Return what the job was started with; decoded each time, so that a tool may change what it is given."""
        return msgspec.json.decode(self.encoded)


class SecretsOfCall(Protocol):
    """The secrets of one call."""

    def get(self, name: str) -> str | None:
        """Return a secret as it was when the call was announced; None: the call has none of this name."""
        ...

    def refuse(self, name: str) -> None:
        """Have a secret read again for the next call."""
        ...


def no_time() -> None:
    """Give a call no more time."""


LogLevel = Literal["debug", "info", "warning", "error"]


def no_lines(text: str, level: LogLevel) -> None:
    """Record nothing beside a call."""


def _words(value: object) -> str:
    """Return a value as text, whatever its own code does."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a value may bring code of its own
        return f"<{type(value).__name__}>"


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider may know of the call it serves."""

    stream: str
    """The journal stream the call is recorded in, such as `job/job_06…`."""
    step: str
    """The call's place in that stream."""
    invocation_id: str
    idempotency_key: str
    """SHA-256 (hex) of job, step, tool and arguments; the same for every attempt."""
    attempt: int
    principal: str
    """The principal that asked."""
    trace_id: str
    span_id: str
    timeout_s: float
    """Seconds the call may take; the gateway cancels it afterwards."""
    now: int
    """Microseconds since the Unix epoch when the call was announced."""
    progress: Callable[[float, float | None, str], None]
    """Reports `(done, total, message)` to anyone who watches; never recorded, never fails."""
    job: JobFacts | None = None
    """The job that calls; None outside jobs."""
    keeper: Keeper | None = None
    """Keeps bytes beside the record; None where a call is only asked about."""
    peer: Peer | None = None
    """The caller, where they can be asked back while it runs."""
    untrusted: bool = False
    """True if a model wants the call that had read untrusted text."""
    sandbox: tuple[dict[str, Any], ...] = ()
    """Layers that make the sandbox stricter than it is for other calls; one may say more than the policy allows."""
    hidden: Callable[[str, dict[str, Any]], bool] | None = None
    """Whether rules about arguments keep a call of a tool, by its name and arguments, from the caller.

    Who searches or lists leaves out what could not be read by itself; from any thread. None: no rule is about
    arguments.
    """
    moves: Callable[[], None] = no_time
    """Told that the tool is at work, begins `timeout_s` again: for tools whose time runs while they are silent."""
    within: str = ""
    """The stream of the session that calls, if the call is recorded in another, as one that asks a person is."""
    inside: Inside | None = None
    """Records what a program does that the call runs; None where a call is only asked about."""
    secrets: SecretsOfCall | None = None
    """The secrets that the tool declares; None: it declares none, or is only asked about a call."""
    lines: Callable[[str, LogLevel], None] = no_lines
    """Takes what `log` is told."""

    def log(self, text: str, level: LogLevel = "info") -> None:
        """Record what the tool does, for people: live beside the step, and later; from any thread, and never fails.

        Each line is masked and cut to 400 characters; a call has 200. No replay reads them.
        """
        self.lines(_words(text), level)

    def secret(self, name: str) -> str:
        """Return a secret that the tool declares. Raises ProviderError (SECRET_DENIED) for any other.

        Its value is masked in whatever the call records. Never pass it on in the arguments of another call.
        """
        value = self.secrets.get(name) if self.secrets is not None else None
        if value is None:
            raise ProviderError(f"it does not declare the secret {name}", cause=None, code=Code.SECRET_DENIED)
        return value

    def refuse_secret(self, name: str) -> None:
        """Report that a secret was not accepted, as by a status 401: the next call or attempt reads it again."""
        if self.secrets is not None:
            self.secrets.refuse(name)

    @property
    def conversation(self) -> str:
        """The job or session that calls, such as `job/job_06…`: what a tool keeps for later calls belongs to it."""
        return "/".join((self.within or self.stream).split("/")[:2])


class ToolProvider(Protocol):
    """A source of tools."""

    @property
    def provider_id(self) -> str:
        """Stable identifier, `[a-z0-9_]+`, such as `builtin` or `mcp_github`."""
        ...

    async def list_tools(self) -> Sequence[ToolMeta]:
        """Every tool on offer; names are unique. Raises ProviderError where the source cannot be asked."""
        ...

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Call a tool that was listed, with arguments that passed its schema.

        Raises ProviderError for a failure it understands; any other exception counts as `TOOL_EXEC_FAILED`.
        Cancellation means the deadline passed or the caller gave up: stop the work, then let it through.
        """
        ...

    async def close(self) -> None:
        """Release everything; may be called twice. Later calls raise ProviderError with cause `ProviderClosed`."""
        ...


def supports(provider: object, port: type[P]) -> TypeGuard[P]:
    """Return whether a provider has an optional port, which is one of methods; each class is looked at once.

    `isinstance` looks at the object again each time: 5 to 15 µs on Python 3.11, a fifth of a call through the gateway.
    """
    return issubclass(type(provider), port)


@runtime_checkable
class Watched(Protocol):
    """A provider that can say that its tools changed."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed` called whenever the tools may differ from what was last listed; in the event loop's thread."""
        ...


@runtime_checkable
class Follows(Protocol):
    """A provider whose tools follow something that does not report its changes, such as a file."""

    def outdated(self) -> bool:
        """Return whether a listing would bring other tools than the last one; asked before each use, so it is quick."""
        ...


@runtime_checkable
class Reserves(Protocol):
    """A provider of tools that no other may offer in its place, also while it cannot be listed."""

    @property
    def reserves(self) -> Sequence[str]:
        """Patterns of their full names."""
        ...


class Digests(msgspec.Struct, frozen=True):
    """The digests of a tool."""

    contract_hash: str
    """Digest of name and schemas: what validates."""
    prompt_hash: str
    """Digest of all text a model sees of it: a change here may be an instruction slipped in."""


@runtime_checkable
class Vouches(Protocol):
    """A provider of tools whose schemas are known to be sound: each is compiled with its first use."""

    def digests(self, name: str) -> Digests | None:
        """Return the digests of a tool that it lists; None: they are to be made."""
        ...


@runtime_checkable
class LimitedProvider(Protocol):
    """A provider that runs only so many calls at once."""

    def slots(self, name: str) -> asyncio.Semaphore | None:
        """Give what a call of this tool holds from before it is announced until it ends; None: it waits for nothing."""
        ...


@runtime_checkable
class UsesSecrets(Protocol):
    """A provider whose tools need secrets of the settings."""

    def secrets(self, name: str) -> tuple[str, ...]:
        """Return the names of the secrets that a tool declares."""
        ...


@runtime_checkable
class TypedProvider(Protocol):
    """A provider that makes typed values of arguments: they drop fields that they do not declare."""

    def typed(self, name: str) -> bool:
        """Return whether types stand behind the input schema of this tool."""
        ...


@runtime_checkable
class Reconciles(Protocol):
    """A provider that can find out the outcome of an announced call whose end was not recorded (rule 3)."""

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        """The result if the call with this idempotency key happened, None if it certainly did not.

        Raises ProviderError where it cannot tell.
        """
        ...


class ClientReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says of a call that it made itself."""

    by: str
    """The client, such as `claude`."""
    remarks: tuple[str, ...] = ()
    """Remarks on it, as `tool_invocation_finished` has them."""
    open: bool = False
    """Whether what the call began goes on, so that its effect is not known yet."""


@runtime_checkable
class Reports(Protocol):
    """A provider whose calls are made by a client once the gate allows them; it hears how they ended."""

    def report(self, invocation_id: str) -> ClientReport | None:
        """Return what the client said of a call that has ended, once; None: it said nothing."""
        ...


@runtime_checkable
class Previews(Protocol):
    """A provider that can show, before a call is approved, what it would change."""

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Return what the call would change now; None for a tool that has no preview. It changes nothing.

        Raises ProviderError if it is unknown, which is often what the call itself would raise.
        """
        ...


@runtime_checkable
class PreviewsWithin(Protocol):
    """A provider whose previews depend on what the skills of the caller leave of the sandbox."""

    async def preview_within(
        self, name: str, args: dict[str, Any], sandbox: Sequence[Mapping[str, Any]]
    ) -> Preview | None:
        """Return what `preview` does, for a call under these layers (`CallContext.sandbox`)."""
        ...


@runtime_checkable
class MakesDefaults(Protocol):
    """A provider whose tools have defaults that their schemas do not say."""

    def made(self, name: str) -> Mapping[str, str]:
        """Return these of a tool by place, such as `job.at`, as words for people."""
        ...


T = TypeVar("T", bound=msgspec.Struct)
_VALUES: Final = ("default", "const", "enum", "examples")
"""Keywords that hold values and no schemas."""
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_048,
        description="The page's address; http or https.",
        extra_json_schema={"x-remit-role": "url"},
    ),
]
"""An argument that is a page's address; rules about hosts and the origin of addresses apply to it."""


def unindented(schema: Any, key: str = "") -> Any:
    """Return a schema, or some, without the indentation of docstrings, which Python keeps up to 3.12: hashes agree."""
    if isinstance(schema, str) and key == "description":
        return inspect.cleandoc(schema)
    if isinstance(schema, dict) and key not in _VALUES:
        return {name: unindented(part, name) for name, part in schema.items()}
    return [*map(unindented, schema)] if isinstance(schema, list | tuple) and key not in _VALUES else schema


@cache
def struct_schema(shape: type[msgspec.Struct]) -> JsonSchema:
    """The JSON schema of a struct, complete in itself; the same object for the same struct."""
    [reference], parts = unindented(msgspec.json.schema_components((shape,), ref_template="#/$defs/{name}"))
    schema = parts.pop(reference["$ref"].rpartition("/")[2])
    return {**schema, "$defs": parts} if parts else schema


def arguments(shape: type[T], args: dict[str, Any]) -> T:
    """The arguments as their struct. Raises ProviderError: the schema gate may have been told to let them pass."""
    try:
        return msgspec.convert(args, shape)
    except msgspec.ValidationError as exc:
        raise ProviderError(str(exc)) from exc


def declare(
    name: str,
    description: str,
    takes: type[msgspec.Struct],
    gives: type[msgspec.Struct],
    *,
    provider: str,
    writes: bool = False,
    **more: Any,
) -> ToolMeta:
    """Return a tool that reads (L0) or `writes` and asks (L1), and may be repeated; `more` are fields that differ."""
    fields: dict[str, Any] = {
        "input_schema": struct_schema(takes),
        "output_schema": struct_schema(gives),
        "capability_level": Level.L1 if writes else Level.L0,
        "risk_level": Risk.WRITE if writes else Risk.READ_ONLY,
        "side_effects": writes,
        "idempotent": True,
        "requires_confirm": writes,
        "version": "1",
    }
    return ToolMeta(name=name, provider_id=provider, description=description, **(fields | more))


class Toolset:
    """A provider that lists its tools, and refuses calls once it is closed; what they do, a subclass says."""

    def __init__(self, provider_id: str, tools: Sequence[ToolMeta]) -> None:
        self._provider_id = provider_id
        self._tools = tuple(tools)
        self._closed = False

    @property
    def provider_id(self) -> str:
        return self._provider_id

    async def list_tools(self) -> Sequence[ToolMeta]:
        self._require_open()
        return self._tools

    def digests(self, name: str) -> Digests | None:  # noqa: ARG002 - the port's; structs make its schemas
        return None

    async def close(self) -> None:
        """Refuse later calls; a subclass ends what it started."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise ProviderError(f"The provider {self._provider_id} has been closed.", cause=Code.ProviderClosed)

    def _require(self, name: str) -> None:
        """Raise ProviderError where the provider is closed, or has no such tool."""
        self._require_open()
        if all(tool.name != name for tool in self._tools):
            raise ProviderError(f"The provider {self._provider_id} has no tool {name!r}.", cause=Code.ToolNotFound)
