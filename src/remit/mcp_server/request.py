"""A client's request, as everything that answers it sees it; the client, and the session of its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.http.access import OPERATOR
from remit.jsonrpc.message import REPAIRED
from remit.jsonrpc.protocol import TASKS, TASKS_VERSION, is_modern

if TYPE_CHECKING:
    from remit.http.access import Access, TokenIdentity
    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.jsonrpc.inbound import Inbound
    from remit.service.sessions import Sessions
    from remit.settings.model import Settings

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request that is taken."""


_STOPPED: Final = frozenset({"claude-code", "codex-mcp-client"})
"""Programs whose dialog stops the clock of the call that it is about."""


class HttpCaller(NamedTuple):
    """The caller of a request over HTTP."""

    access: Access
    """The rights of its token."""
    session: str | None
    """The session it names (before 2026-07-28)."""


class AskingTerms(NamedTuple):
    """The way in which people are asked about a client's calls, and it is answered while they decide."""

    ask: str = "both"
    """As `mcp.ask`."""
    patience_s: float | None = None
    """Seconds that a call waits for its dialog; None: as long as it takes."""
    waiting: str = "error"
    """As `mcp.waiting`."""
    person_s: float = 0.5
    """Seconds that a person takes at least to decline."""
    patience_is_ours: bool = False
    """Whether the patience is the default, which is known better for some programs."""
    expose_tools: str = "all"
    """As `mcp.expose_tools`."""
    always: tuple[str, ...] = ()
    """As `mcp.always`."""
    console: str = ""
    """The base URL at which people reach the console, where there is one."""

    @classmethod
    def read(cls, settings: Settings) -> AskingTerms:
        """The terms that the settings name."""
        mcp = settings.mcp
        ours = settings.sources["mcp.patience"] == "default"
        url = settings.serve.public_url.rstrip("/")
        return cls(
            ask=mcp.ask,
            patience_s=mcp.patience or None,
            waiting=mcp.waiting,
            person_s=mcp.person_ms / 1_000,
            patience_is_ours=ours,
            expose_tools=mcp.expose_tools,
            always=mcp.always,
            console=url if url.startswith(("https://", "http://")) else "",
        )

    def of(self, access: Access, program: str) -> AskingTerms:
        """The terms for one client, by its table if it has one."""
        patience_s = self.patience_s
        if access.patience is not None:
            patience_s = access.patience or None
        elif self.patience_is_ours and program in _STOPPED:
            patience_s = None
        return self._replace(ask=access.ask or self.ask, patience_s=patience_s, waiting=access.waiting or self.waiting)

    def listed(self, access: Access) -> tuple[str, ...] | None:
        """Names or globs of the tools that one client lists, where it finds the others; None: it lists all."""
        searches = (access.expose_tools or self.expose_tools) == "search"
        return (access.always or self.always) if searches else None


class McpCaller:
    """The caller."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        principal: str,
        name: str,
        version: str,
        transport: str,
        identity: TokenIdentity | None = None,
    ) -> None:
        self._identity = identity
        self.principal = principal
        self.name = name
        self._sessions = sessions
        self._version = version
        self._transport = transport
        self._session = ""
        self._opening = asyncio.Lock()

    async def session(self) -> str:
        """The identifier of its session, opened when it is needed first."""
        async with self._opening:
            if not self._session:
                self._session = await self._sessions.open(
                    "mcp",
                    principal=self.principal,
                    client=self.name,
                    client_version=self._version,
                    via=self._transport,
                    identity=self._identity,
                )
        return self._session


_TURN: Final = "x-codex-turn-metadata"
"""Key of `_meta` under which Codex describes the turn that makes a call."""


class ClientProgram(msgspec.Struct, frozen=True):
    """A client as it describes itself."""

    name: str
    version: str


class ClientConnection:
    """A client's connection (before 2026-07-28), which takes what belongs to no request."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.notify = dispatcher.notify
        self._endings: list[Callable[[], None]] = []

    def at_end(self, ending: Callable[[], None]) -> None:
        """Have `ending` called once it is over."""
        self._endings.append(ending)

    def end(self) -> None:
        """Let go of what was kept for it."""
        while self._endings:
            self._endings.pop()()


class ClientRequest(NamedTuple):
    """One request, and the ways back to who made it."""

    method: str
    params: Mapping[str, Any]
    version: str
    """Of the protocol."""
    channel: Inbound
    """Takes what belongs to this request."""
    program: ClientProgram | None
    """None before the handshake."""
    declared: Mapping[str, Any]
    """The capabilities that the client declared, as it wrote them."""
    connection: ClientConnection | None
    """Takes what belongs to no request; None where each stands for itself."""

    @property
    def caller(self) -> HttpCaller:
        """Return who made it, as far as the transport knows."""
        return self.channel.caller if isinstance(self.channel.caller, HttpCaller) else HttpCaller(OPERATOR, None)

    @property
    def dialogs(self) -> frozenset[str]:
        """The kinds of questions to its person that it shows: `form`, and `url` for a page that it opens."""
        elicitation = self.declared.get("elicitation")
        if not isinstance(elicitation, Mapping):
            return frozenset()
        named = frozenset(mode for mode in ("form", "url") if elicitation.get(mode) is not None)
        return named or frozenset({"form"})

    @property
    def takes_tasks(self) -> bool:
        """Return whether it can be answered with a task at any time (2026-07-28)."""
        extensions = self.declared.get("extensions")
        return self.modern and isinstance(extensions, Mapping) and TASKS in extensions

    def can(self, capability: str) -> bool:
        """Return whether the client declared that it can be asked this, such as `sampling`."""
        return isinstance(self.declared.get(capability), Mapping)

    @property
    def unattended(self) -> bool:
        """Return whether its program says that no person is there, as `codex exec` does."""
        meta = self.params.get("_meta")
        turn = meta.get(_TURN) if isinstance(meta, Mapping) else None
        if isinstance(turn, str):
            try:
                turn = msgspec.json.decode(turn)
            except msgspec.DecodeError:
                return False
        return isinstance(turn, Mapping) and turn.get("turn_trigger") == "exec"

    @property
    def repaired(self) -> Mapping[str, int]:
        """Return what our reader repaired in its parameters."""
        meta = self.params.get("_meta")
        repaired: Mapping[str, int] = meta.get(REPAIRED, {}) if isinstance(meta, Mapping) else {}
        return repaired

    @property
    def wants_task(self) -> bool:
        """Return whether its client asks to be answered with a task (2025-11-25)."""
        return self.version == TASKS_VERSION and isinstance(self.params.get("task"), Mapping)

    @property
    def modern(self) -> bool:
        """Return whether it stands for itself, without a session (2026-07-28)."""
        return is_modern(self.version)


PATH: Final = "/mcp"
