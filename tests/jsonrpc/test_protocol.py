"""The words of the protocol are those of the SDK."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest
from mcp.shared import inbound, subscriptions
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from remit.jsonrpc import protocol

THEIRS = mcp_types, inbound, subscriptions
WITHOUT = {"BATCHES_VERSION", "RELATED_TASK_META_KEY", "TASKS", "TASKS_VERSION"}
"""Words of tasks and batches, which the SDK has no constants for."""
WORDS = [name for name, value in vars(protocol).items() if name.isupper() and isinstance(value, int | str)]


@pytest.mark.parametrize("name", WORDS)
def test_a_constant_is_that_of_the_sdk(name: str) -> None:
    theirs = next((getattr(module, name) for module in THEIRS if hasattr(module, name)), None)
    assert (theirs is None) == (name in WITHOUT)
    assert theirs is None or getattr(protocol, name) == theirs


@pytest.mark.parametrize(
    ("value", "found"), [(7, 7), ("7", "7"), (0, 0), (True, None), (1.0, 1.0), (1.5, 1.5), (None, None), ([1], None)]
)
def test_an_id_is_text_or_a_number(value: Any, found: Any) -> None:
    assert protocol.as_request_id(value) == found
    assert type(protocol.as_request_id(value)) is type(found)


def test_the_versions_are_those_of_the_sdk() -> None:
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == protocol.HANDSHAKE_VERSIONS
    assert tuple(MODERN_PROTOCOL_VERSIONS) == protocol.MODERN_VERSIONS


@pytest.mark.parametrize(
    "text", ["x", "a b", "", " x", "x ", "é", "a\tb", "a\nb", "=?base64?eA==?=", "=?base64?", "\x7f", "~"]
)
def test_a_header_carries_text_as_the_sdk_does(text: str) -> None:
    assert protocol.header_value(text) == inbound.encode_header_value(text)
    assert inbound.decode_header_value(protocol.header_value(text)) == text


def test_an_error_travels_without_data_that_is_not_there() -> None:
    assert protocol.MCPError(1, "x").told == {"code": 1, "message": "x"}
    assert protocol.MCPError(1, "x", {"y": 2}).told == {"code": 1, "message": "x", "data": {"y": 2}}


def test_versions_since_2026_07_28_are_modern() -> None:
    assert [version for version in KNOWN_PROTOCOL_VERSIONS if protocol.is_modern(version)] == ["2026-07-28"]
    assert [version for version in KNOWN_PROTOCOL_VERSIONS if not protocol.has_handshake(version)] == ["2026-07-28"]
    assert not protocol.is_modern(None)
    assert not protocol.is_modern("2031-01-01")
