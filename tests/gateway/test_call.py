"""A call on its way through the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from remit.canonical import digest
from remit.gateway.call import Call, GateRequest, asked, no_progress
from tests.gateway.world import opened


async def call(args: Any, **said: Any) -> Call:
    async with opened() as world:
        request = GateRequest(tool="math_add", args=args, step="1", principal="alice", **said)
        return Call(request, world.journal, world.writer, no_progress)


async def test_arguments_are_copied_as_the_call_comes_in() -> None:
    args: dict[str, Any] = {"a": [1, {"b": 2}]}
    made = await call(args)
    args["a"][1]["b"] = 3
    assert made.args == {"a": [1, {"b": 2}]}
    assert (made.encoded, made.arguments_hash) == (b'{"a":[1,{"b":2}]}', digest({"a": [1, {"b": 2}]}))


async def test_a_hash_that_the_caller_has_is_not_computed_again() -> None:
    assert (await call({"a": 1}, hash="sha256:known")).arguments_hash == "sha256:known"


@pytest.mark.parametrize("args", [{"a": float("nan")}, {"a": object()}, {"a": "\ud800"}, {1: 2}])
async def test_arguments_that_json_cannot_hold_have_no_hash(args: Any) -> None:
    made = await call(args)
    assert (made.arguments_hash, made.asked_hash, made.encoded, made.args) == ("", "", b"", args)


def test_a_request_is_bound_by_name_and_arguments() -> None:
    assert asked("a", "sha256:1") != asked("a", "sha256:2")
    assert asked("a", "sha256:1") != asked("b", "sha256:1")
    assert asked("\ud800", "").startswith("sha256:")
