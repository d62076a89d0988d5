"""Tools that ask the client for something before they answer.

Up to 2025-11-25 a server sends a request of its own; from 2026-07-28 it answers that input is required and is called
again with the responses.
"""

from __future__ import annotations

import json
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tests.peers.conformance_tools import Context, Entry, Handler, entry, text

STATE: Final = "asked"
"""Sealed on its way out and opened on its way in by the server's middleware."""


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def asks_form(message: str, field: str, kind: str = "string") -> types.ElicitRequest:
    """A request for one field."""
    schema = _object([field], **{field: {"type": kind}})
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def asks_model(prompt: str, max_tokens: int = 100) -> types.CreateMessageRequest:
    """A request for what the client's model says to a prompt."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    return types.CreateMessageRequest(params=params)


def _shown(response: types.InputResponse) -> str:
    return json.dumps(response.model_dump(by_alias=True, mode="json", exclude_none=True), sort_keys=True)


# ------------------------------------------------------------------------------------------- until 2025-11-25: requests
async def _samples(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    request = asks_model(str((params.arguments or {})["prompt"]))
    related = ServerMessageMetadata(related_request_id=context.request_id)
    result = await context.session.send_request(request, types.CreateMessageResult, metadata=related)
    return text(f"LLM response: {_shown(result)}")


async def _elicits(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    schema = _object(["username", "email"], username={"type": "string"}, email={"type": "string"})
    message = str((params.arguments or {})["message"])
    result = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
    return text(f"User response: action={result.action}, content={json.dumps(result.content)}")


def _elicits_form(properties: dict[str, Any]) -> Handler:
    async def handle(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
        schema = {"type": "object", "properties": properties}
        result = await context.session.elicit_form("Please fill in", schema, related_request_id=context.request_id)
        return text(f"Elicitation completed: action={result.action}, content={json.dumps(result.content)}")

    return handle


_DEFAULTS: Final[dict[str, Any]] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_OPTIONS: Final = ["option1", "option2", "option3"]
_TITLED: Final = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
_ENUMS: Final[dict[str, Any]] = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


# --------------------------------------------------------------------------------------- from 2026-07-28: another round
def unanswered(
    asked: types.InputRequests, params: types.InputResponseRequestParams, state: str | None = None
) -> types.InputRequiredResult | None:
    """What is to be asked again; None: every request has a response of its own kind."""
    given = params.input_responses or {}
    kinds: dict[type[types.InputRequest], tuple[type[types.InputResponse], ...]] = {
        types.ElicitRequest: (types.ElicitResult,),
        types.CreateMessageRequest: (types.CreateMessageResult, types.CreateMessageResultWithTools),
        types.ListRootsRequest: (types.ListRootsResult,),
    }
    if all(isinstance(given.get(key), kinds[type(request)]) for key, request in asked.items()):
        return None
    return types.InputRequiredResult(input_requests=asked, request_state=state)


def _asks(asked: types.InputRequests, said: str = "Answered", *, state: str | None = None) -> Handler:
    """A tool that needs these responses, and its state where it keeps one."""

    async def handle(
        _context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        again = unanswered(asked, params, state)
        if again is not None or params.request_state != state:
            return again or types.InputRequiredResult(input_requests=asked, request_state=state)
        responses = params.input_responses or {}
        return text(f"{said}: " + ", ".join(f"{key}={_shown(responses[key])}" for key in asked))

    return handle


async def _asks_twice(
    _context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    first: types.InputRequests = {"step1": asks_form("Step 1: What is your name?", "name")}
    second: types.InputRequests = {"step2": asks_form("Step 2: What is your favorite color?", "color")}
    if params.request_state is None:
        return types.InputRequiredResult(input_requests=first, request_state="first")
    if params.request_state == "first":
        again = unanswered(first, params, "first")
        return again or types.InputRequiredResult(input_requests=second, request_state="second")
    return unanswered(second, params, "second") or text("Both steps were answered")


def _declared(context: Context) -> types.ClientCapabilities:
    return context.session.client_capabilities or types.ClientCapabilities()


async def _asks_what_is_declared(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    declared = _declared(context)
    asked: types.InputRequests = {}
    if declared.elicitation is not None:
        asked["name"] = asks_form("What is your name?", "name")
    if declared.sampling is not None:
        asked["greeting"] = asks_model("Generate a greeting")
    return unanswered(asked, params) or text("Asked for what the client can do")


async def _needs_sampling(context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    if _declared(context).sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs a client that can sample",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return text("The client can sample")


async def _streams(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    await context.session.report_progress(0, 1)
    return unanswered({"name": asks_form("What is your name?", "name")}, params) or text("Answered")


_ROOTS: Final[types.InputRequests] = {"client_roots": types.ListRootsRequest()}
_CONFIRM: Final[types.InputRequests] = {"confirm": asks_form("Please confirm", "ok", "boolean")}
_USER: Final[types.InputRequests] = {"user_name": asks_form("What is your name?", "name")}
_CAPITAL: Final[types.InputRequests] = {"capital_question": asks_model("What is the capital of France?")}
_GREETING: Final[types.InputRequests] = {"greeting": asks_model("Generate a greeting", 50)}

TOOLS: Final[dict[str, Entry]] = {
    "test_sampling": entry("Asks the client's model", _samples, _object(["prompt"], prompt={"type": "string"})),
    "test_elicitation": entry("Asks the user", _elicits, _object(["message"], message={"type": "string"})),
    "test_elicitation_sep1034_defaults": entry("Asks with defaults", _elicits_form(_DEFAULTS)),
    "test_elicitation_sep1330_enums": entry("Asks with choices", _elicits_form(_ENUMS)),
    "test_missing_capability": entry("Needs a client that can sample", _needs_sampling),
    "test_streaming_elicitation": entry("Asks after it reported progress", _streams),
    "test_input_required_result_elicitation": entry("Needs a name", _asks(_USER, "Hello")),
    "test_input_required_result_sampling": entry("Needs what a model says", _asks(_CAPITAL)),
    "test_input_required_result_list_roots": entry("Needs the roots", _asks(_ROOTS)),
    "test_input_required_result_request_state": entry("Keeps a state", _asks(_CONFIRM, "state-ok", state=STATE)),
    "test_input_required_result_tampered_state": entry("Keeps a sealed state", _asks(_CONFIRM, state=STATE)),
    "test_input_required_result_multiple_inputs": entry(
        "Needs three things at once", _asks({**_USER, **_GREETING, **_ROOTS}, state=STATE)
    ),
    "test_input_required_result_multi_round": entry("Asks in two rounds", _asks_twice),
    "test_input_required_result_capabilities": entry("Asks for what the client can do", _asks_what_is_declared),
}
