"""The answer to a server when it asks something: the caller may answer, where policy lets it; else policy does.

    elicitation   declined, answered with the defaults its schema names, or put to the caller as the server's question;
                  one for a secret, or that leads to a page without https, is declined
    sampling      refused, or put to the caller: a server does not get to use our models
    roots         none, or those of the caller

Before 2026-07-28 a server's request does not say which call it is about. It is put to someone only if all calls under
way are theirs, or if no one else can be meant: the client of a process on stdio is asked outside of calls, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from remit.codes import Code
from remit.jsonrpc.protocol import INVALID_REQUEST, TASKS, MCPError, MethodNotFoundError, UnansweredError
from remit.redact import preview_of
from remit.redact.clues import names_secret
from remit.redact.visible import visible
from remit.tools.peer import ELICIT, ROOTS, SAMPLE, PeerError
from remit.tools.provider import LogLevel, no_lines

if TYPE_CHECKING:
    from remit.tools.peer import OnlyPeer, Peer

Elicitation = Literal["decline", "defaults", "forward"]
Sampling = Literal["refuse", "forward"]

_GOVERNED: Final = frozenset({"elicitation", "sampling", "tasks"})
"""Capabilities of a client that policy, or Remit itself, stands before."""
_LEVELS: Final[Mapping[str, LogLevel]] = {"debug": "debug", "info": "info", "notice": "info", "warning": "warning"}
"""Levels of log messages; all others are errors."""
DECLARES_S: Final = 60.0
"""Seconds that a server waits for a client to say what it can."""


class ServerAnswers:
    """Answers one server's questions."""

    def __init__(
        self, server: str, elicitation: Elicitation, sampling: Sampling, shared: Mapping[str, Any] | None = None
    ) -> None:
        self._server = server
        self.shared = shared
        """The capabilities that are declared to a server which many use, in place of the usual ones."""
        self.only: OnlyPeer | None = None
        """The one who is asked outside of calls, if there is no other client."""
        self._elicitation = elicitation
        self._forwarded = {ELICIT: elicitation == "forward", SAMPLE: sampling == "forward", ROOTS: True}
        self._peers: list[Peer | None] = []
        self._logs: list[Callable[[str, LogLevel], None]] = []

    async def declared(self) -> dict[str, Any]:
        """The capabilities that the server is told: those of the only client, once it has said what they are."""
        own = None
        if self.only is not None:
            with suppress(TimeoutError):  # it connected, and says nothing
                async with asyncio.timeout(DECLARES_S):
                    own = await self.only.declared()
        if own is not None or self.shared is not None:
            return self.allowed(own if own is not None else self.shared or {})
        usual: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
        if self._forwarded[SAMPLE]:
            usual |= {"sampling": {}, "roots": {"listChanged": True}}
        return self.allowed(usual)

    def allowed(self, declared: Mapping[str, Any]) -> dict[str, Any]:
        """Return those capabilities of a client that a server gets to use; not tasks, which are ours on either side."""
        passed = {name: value for name, value in declared.items() if name not in _GOVERNED}
        if isinstance(passed.get("extensions"), Mapping):
            passed["extensions"] = {name: each for name, each in passed["extensions"].items() if name != TASKS}
        if self._elicitation == "defaults":
            passed["elicitation"] = {"form": {}}
        elif self._elicitation == "forward" and "elicitation" in declared:
            passed["elicitation"] = declared["elicitation"]
        if self._forwarded[SAMPLE] and "sampling" in declared:
            passed["sampling"] = declared["sampling"]
        return passed

    @contextmanager
    def calling(self, peer: Peer | None, log: Callable[[str, LogLevel], None] = no_lines) -> Iterator[None]:
        """A call of this peer is under way; `log` takes what the server says of it."""
        self._peers.append(peer)
        self._logs.append(log)
        try:
            yield
        finally:
            self._peers.remove(peer)
            self._logs.remove(log)

    async def all(self, requests: Mapping[str, Any], peer: Peer | None) -> dict[str, Any]:
        """The answers to what a call needs to go on, by the request's key. Raises UnansweredError for a refusal."""
        questions = {key: _request(request) for key, request in requests.items()}
        forwarded = {
            key: _marked(request, self._server)
            for key, request in questions.items()
            if self._goes_to(peer, request["method"]) and not _deceives(request)
        }
        answers: dict[str, Any] = {}
        if peer is not None and forwarded:
            try:
                answers = await peer.ask(forwarded)
            except PeerError as error:
                raise UnansweredError(Code.permission_denied, str(error)) from error
        return {key: answers[key] if key in answers else self._by_policy(request) for key, request in questions.items()}

    async def one(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question that came as a request of its own. Raises MCPError for what is refused."""
        if not self._peers and self.only is not None:
            await self.only.served()
        answers = await self.all({method: {"method": method, "params": params}}, self._caller())
        answer: dict[str, Any] = answers[method]
        return answer

    async def own(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The client's answer to a request of the server's own. Raises MCPError, also the client's own."""
        if not self._peers and self.only is not None:
            await self.only.served()
        peer = self._caller()
        if peer is None or not peer.can(method):
            raise MethodNotFoundError(method)
        try:
            return (await peer.ask({method: {"method": method, "params": params}}))[method]
        except PeerError as error:
            theirs = error.__cause__
            refused = UnansweredError(Code.permission_denied, str(error))
            raise (theirs if isinstance(theirs, MCPError) else refused) from error

    def logged(self, params: Mapping[str, Any]) -> None:
        """Pass a log message on to everyone whose call may be meant; it is recorded beside one that is alone."""
        if len(self._logs) == 1:
            data, level = params.get("data"), params.get("level")
            text = data if isinstance(data, str) else preview_of(data)
            self._logs[0](text, _LEVELS.get(level, "error") if isinstance(level, str) else "info")
        peers = self._peers or [self.only]
        for peer in {id(each): each for each in peers if each is not None}.values():
            peer.tell("notifications/message", params)

    def _caller(self) -> Peer | None:
        """Whose the calls under way are, if they are all of one."""
        if self._peers and all(peer is self._peers[0] for peer in self._peers):
            return self._peers[0]
        return self.only if None not in self._peers else None

    def _goes_to(self, peer: Peer | None, method: str) -> bool:
        return peer is not None and self._forwarded.get(method, False) and peer.can(method)

    def _by_policy(self, request: Mapping[str, Any]) -> dict[str, Any]:
        method = request["method"]
        if method == ELICIT:
            return self._elicited(request["params"])
        if method == ROOTS:
            return {"roots": []}
        raise UnansweredError(Code.permission_denied, f"{method} is refused by policy")

    def _elicited(self, params: Mapping[str, Any]) -> dict[str, Any]:
        schema = params.get("requestedSchema")
        fields = schema.get("properties") if isinstance(schema, dict) else None
        if self._elicitation != "defaults" or not isinstance(schema, dict) or not isinstance(fields, dict):
            return {"action": "decline"}
        content = {
            name: field["default"] for name, field in fields.items() if isinstance(field, dict) and "default" in field
        }
        required = schema.get("required")
        if not set(required if isinstance(required, list) else ()) <= set(content):
            return {"action": "decline"}
        return {"action": "accept", "content": content}


def _request(request: object) -> dict[str, Any]:
    """Method and parameters of a request. Raises MCPError for anything else."""
    method = request.get("method") if isinstance(request, dict) else None
    params = request.get("params") if isinstance(request, dict) else None
    if not isinstance(method, str):
        raise MCPError(code=INVALID_REQUEST, message="it asks for something that is not a request")
    return {"method": method, "params": params if isinstance(params, dict) else {}}


def _marked(request: dict[str, Any], server: str) -> dict[str, Any]:
    """The request as the caller is to see it: a question of the server, which could use Remit's own words."""
    if request["method"] != ELICIT:
        return request
    params = request["params"]
    message = f"The MCP server {server} asks, not Remit:\n\n{visible(str(params.get('message', '')))}"
    return {**request, "params": {**params, "message": message}}


def _deceives(request: dict[str, Any]) -> bool:
    """Return whether a question asks for a secret, or leads anywhere except to a page over https."""
    if request["method"] != ELICIT:
        return False
    params = request["params"]
    if params.get("mode") == "url" or "url" in params:
        return not _is_page(str(params.get("url", "")))
    schema = params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    return isinstance(fields, dict) and any(names_secret(str(name)) for name in fields)


def _is_page(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and parts.username is None
