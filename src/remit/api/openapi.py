"""The OpenAPI 3.1 document, made from the table of routes and the types that they name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from remit.api.route import BYTES, Route
from remit.codes import Code
from remit.http.problem import phrase
from remit.tools.provider import unindented
from remit.version import __version__

_REF: Final = "#/components/schemas/{name}"
_EVERY: Final = (
    Code.UNAUTHENTICATED,
    Code.SCOPE_REQUIRED,
    Code.HOST_REFUSED,
    Code.ORIGIN_REFUSED,
    Code.PATH_UNKNOWN,
    Code.METHOD_NOT_ALLOWED,
    Code.INVALID_INPUT,
    Code.TOO_MANY_REQUESTS,
    Code.SERVER_STOPPING,
    Code.JOURNAL_IO,
    Code.JOURNAL_FULL,
    Code.JOURNAL_SHARD_UNAVAILABLE,
    Code.JOURNAL_BUSY,
    Code.UNHANDLED_EXCEPTION,
)
"""Codes that any request can be refused with."""
_BODY: Final = (Code.MEDIA_TYPE_UNSUPPORTED, Code.REQUEST_TOO_LARGE, Code.BODY_TIMEOUT)
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repetition under the same key meets the first request; another body under it is refused.",
    "schema": {"type": "string", "maxLength": 255},
}
_PROBLEM: Final = {
    "type": "object",
    "description": "Problem details (RFC 9457) with a stable code.",
    "required": ["type", "title", "status", "detail", "error_code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "error_code": {"enum": sorted(code.name for code in Code)},
        "remedy": {"type": "string"},
    },
}


def openapi(routes: Sequence[Route], server: str = "/") -> dict[str, Any]:
    """The document."""
    types = [kind for route in routes for kind in (*_types(route.body), *_types(route.answer))]
    shapes, components = unindented(msgspec.json.schema_components(types, ref_template=_REF))
    named = iter(shapes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        body, answer = (_shape([next(named) for _ in _types(kinds)]) for kinds in (route.body, route.answer))
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, body, answer)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Remit",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server}],
        "security": [{}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(kinds: Any) -> tuple[Any, ...]:
    """The types of a body or an answer."""
    return () if kinds is None else kinds if isinstance(kinds, tuple) else (kinds,)


def _shape(shapes: list[Any]) -> Any:
    """The schema of a body or an answer; None if there is none."""
    return {"anyOf": shapes} if len(shapes) > 1 else shapes[0] if shapes else None


def _operation(route: Route, body: Any, answer: Any) -> dict[str, Any]:
    handler = route.handler or route.stream
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.name.partition(".")[0]],
        "summary": route.summary,
        "description": f"{inspect.getdoc(handler) or route.summary}\n\n{_scope(route)}",
        "parameters": [*_path(route), *_query(route), *([_KEY] if route.starts else [])],
        "responses": {**_answers(route, answer), **_problems(route)},
    }
    if body is not None:
        content: dict[str, Any] = {"schema": body}
        if route.example is not msgspec.UNSET:
            content["example"] = route.example
        operation["requestBody"] = {"required": not route.optional, "content": {"application/json": content}}
    return operation


def _scope(route: Route) -> str:
    return f"Scope: `{route.scope}`." if route.scope is not None else "Any token will do."


def _path(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]


def _query(route: Route) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(route.query)["$defs"][route.query.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": shape}
        for name, shape in schema["properties"].items()
    ]


def _answers(route: Route, answer: Any) -> dict[str, Any]:
    kind = "text/event-stream" if route.stream is not None else route.media
    content = {kind: {"schema": answer} if route.stream is None and kind != BYTES else {}}
    answer_object = {
        "description": route.summary,
        **({"content": content} if answer is not None or route.stream else {}),
    }
    statuses = (204,) if answer is None and route.stream is None else (route.status, *route.also)
    return {str(status): answer_object for status in statuses}


def _problems(route: Route) -> dict[str, Any]:
    keyed = (Code.IDEMPOTENCY_MISMATCH,) if route.starts else ()
    codes = dict.fromkeys((*_EVERY, *keyed, *(_BODY if route.body is not None else ()), *route.codes))
    by_status: dict[int, list[Code]] = {}
    for code in codes:
        by_status.setdefault(code.http, []).append(code)
    content = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}}
    return {
        str(status): {
            "description": f"{phrase(status)}: {', '.join(code.name for code in status_codes)}",
            "content": content,
        }
        for status, status_codes in sorted(by_status.items())
    }
