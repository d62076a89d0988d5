"""Resources, prompts and completions, as the scenarios of the official conformance suite ask for them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.peers.conformance_dialogue import asks_form, unanswered
from tests.peers.conformance_tools import PIXEL, Context

TEXT_URI: Final = "test://static-text"
BINARY_URI: Final = "test://static-binary"
WATCHED_URI: Final = "test://watched-resource"
TEMPLATE: Final = "test://template/{id}/data"

Page = types.PaginatedRequestParams | None


# ------------------------------------------------------------------------------------------------------------ resources
async def list_resources(_context: Context, _params: Page) -> types.ListResourcesResult:
    rows = (
        (TEXT_URI, "Text", "text/plain"),
        (BINARY_URI, "Binary", "image/png"),
        (WATCHED_URI, "Watched", "text/plain"),
    )
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=name, description=f"{name} for tests", mime_type=kind)
            for uri, name, kind in rows
        ]
    )


async def list_templates(_context: Context, _params: Page) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template=TEMPLATE, name="Template", description="Data by number", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(_context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Contents of a resource; -32602 with its URI if there is none."""
    uri = params.uri
    if uri == BINARY_URI:
        return types.ReadResourceResult(
            contents=[types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)]
        )
    found = _texts(uri)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    kind, content = found
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=content)])


def _texts(uri: str) -> tuple[str, str] | None:
    """Kind and content."""
    if uri == TEXT_URI:
        return "text/plain", "This is the content of the static text resource."
    if uri == WATCHED_URI:
        return "text/plain", "Watched."
    filled = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if filled is None:
        return None
    number = filled[1]
    return "application/json", json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})


async def subscribe(_context: Context, _params: types.SubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def unsubscribe(_context: Context, _params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def set_level(_context: Context, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


# -------------------------------------------------------------------------------------------------------------- prompts
def _prompt(name: str, description: str, *arguments: str) -> types.Prompt:
    listed = [types.PromptArgument(name=item, description=item, required=True) for item in arguments]
    return types.Prompt(name=name, description=description, arguments=listed or None)


PROMPTS: Final = (
    _prompt("test_simple_prompt", "Of one line"),
    _prompt("test_prompt_with_arguments", "With two arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "With a resource", "resourceUri"),
    _prompt("test_prompt_with_image", "With an image"),
    _prompt("test_input_required_result_prompt", "Needs an answer first"),
)
_CONTEXT: Final[types.InputRequests] = {"user_context": asks_form("What context should the prompt use?", "context")}


async def list_prompts(_context: Context, _params: Page) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=list(PROMPTS))


async def get_prompt(
    _context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    """Messages of a prompt; -32602 if there is none."""
    if params.name == "test_input_required_result_prompt":
        return unanswered(_CONTEXT, params) or _messages(types.TextContent(text="With the context that was given."))
    if params.name not in {prompt.name for prompt in PROMPTS}:
        raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name}")
    return _messages(*_content(params.name, params.arguments or {}))


def _messages(*content: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=item) for item in content])


def _content(name: str, arguments: dict[str, Any]) -> list[types.ContentBlock]:
    if name == "test_prompt_with_arguments":
        given = f"arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
        return [types.TextContent(text=f"Prompt with arguments: {given}")]
    if name == "test_prompt_with_embedded_resource":
        embedded = types.TextResourceContents(
            uri=str(arguments.get("resourceUri")), mime_type="text/plain", text="Embedded resource content for testing."
        )
        request = types.TextContent(text="Please process the embedded resource above.")
        return [types.EmbeddedResource(resource=embedded), request]
    if name == "test_prompt_with_image":
        image = types.ImageContent(data=PIXEL, mime_type="image/png")
        return [image, types.TextContent(text="Please analyze the image above.")]
    return [types.TextContent(text="This is a simple prompt for testing.")]


# ---------------------------------------------------------------------------------------------------------- completions
async def complete(_context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Cities that begin with what is given."""
    cities = [city for city in ("paris", "parma", "testaccio") if city.startswith(params.argument.value.lower())]
    return types.CompleteResult(completion=types.Completion(values=cities, total=len(cities), has_more=False))
