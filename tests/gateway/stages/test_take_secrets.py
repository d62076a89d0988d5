"""TakeSecrets: a call gets the secrets that its tool declares; the record has their versions, and never a value."""

from __future__ import annotations

import asyncio
import logging
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import keyring
import msgspec
import pytest
from keyrings.alt.file import PlaintextKeyring

from remit.codes import Code
from remit.errors import ProviderError
from remit.gateway.secrets import Secrets, version_of
from remit.journal.kinds import GateRefused, ToolInvocationStarted
from remit.settings.sections.secrets import secret_tables
from remit.tools.function import tool
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult
from tests.gateway.world import World, opened

VALUE = 'sk"live/51HxQ9+abcdef'
NEXT = "another-value-of-it"
PIN = "12345678"


@tool("bank.echo", level="L0", secrets=("BANK",))
async def echo(ctx: CallContext, how: str = "plain") -> Any:
    """Give the secret back."""
    value = ctx.secret("BANK")
    match how:
        case "error":
            raise ProviderError(f"401 for {value}", cause=None, detail={"sent": value})
        case "own":
            raise ValueError(f"{'x' * 990} {value}")
        case "evidence":
            item = EvidenceCandidate(
                kind="tool_output", source=f"https://x/{value}", retrieved_at=1, text=value, metadata={"key": value}
            )
            data = EvidenceCandidate(kind="page", source="x", retrieved_at=1, data=value.encode())
            return ToolResult(None, (item, data))
        case "kept":
            assert ctx.keeper is not None
            return await ctx.keeper.put(value.encode())
        case "number":
            return {"pin": int(value), value: [value.encode().hex(), b64encode(value.encode()).decode()]}
        case "refused":
            ctx.refuse_secret("BANK")
            return None
        case "progress":
            ctx.progress(1, 2, value)
            ctx.log(f"sent {value}")
            return None
        case _:
            return {"key": value, "nested": msgspec.json.encode({"key": value}).decode(), "length": len(value)}


@tool("bank.other", level="L0", secrets=("BANK",))
async def ask_for_another(ctx: CallContext) -> str:
    """Ask for a secret that it does not declare."""
    return ctx.secret("CARD")


@tool("bank.plain", level="L0")
async def declare_none(ctx: CallContext) -> str:
    """Declare none."""
    ctx.refuse_secret("BANK")
    return ctx.secret("BANK")


def secrets(source: dict[str, Any], environ: dict[str, str] | None = None, **more: Any) -> Secrets:
    """The secret BANK from a source."""
    return Secrets(secret_tables({"BANK": source}), {"BANK": VALUE} if environ is None else environ, **more)


def recorded(world: World) -> bytes:
    """Everything that was written to the journal."""
    return b"".join(
        b"".join(event.data for append in commit.appends for event in append.events)
        + b"".join(blob.data for blob in commit.blobs)
        for commit in world.store.commits
    )


@pytest.mark.parametrize("how", ["plain", "error", "own", "evidence", "kept", "number", "progress"])
async def test_the_value_is_nowhere_in_what_is_recorded_or_answered(how: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "remit.gateway")
    value = PIN if how == "number" else VALUE
    heard: list[str] = []
    async with opened(echo, secrets=secrets({"env": "BANK"}, {"BANK": value})) as world:
        outcome = await world.call("bank.echo", {"how": how}, lambda _done, _total, message: heard.append(message))
        assert outcome.ok == (how not in {"error", "own"})
        texts = (recorded(world).decode(), repr(outcome), caplog.text, *heard)
        for text in texts:
            assert value not in text
            assert msgspec.json.encode(value).decode()[1:-1] not in text
            assert how == "number" or value[:6] not in text
        assert heard == (["********"] if how == "progress" else [])
        started = await world.last(ToolInvocationStarted)
        assert started.secrets == {"BANK": version_of("BANK", value)}


async def test_the_tool_gets_the_value_and_the_caller_the_recorded_result() -> None:
    async with opened(echo, secrets=secrets({"env": "BANK"})) as world:
        outcome = await world.call("bank.echo")
        assert outcome.value == {"key": "********", "nested": '{"key":"********"}', "length": len(VALUE)}


@pytest.mark.parametrize(
    ("source", "environ"),
    [
        ({"env": "BANK"}, {}),
        ({"env": "BANK"}, {"BANK": "short"}),
        ({"file": "/nowhere/bank"}, {}),
        ({"command": [sys.executable, "-c", "raise SystemExit(3)"]}, {}),
        ({"command": ["/nowhere/vault"]}, {}),
        ({"command": [sys.executable, "-c", r"import os; os.write(1, b'\xff' * 9)"]}, {}),
    ],
)
async def test_a_secret_that_cannot_be_read_refuses_the_call_before_it_is_announced(
    source: dict[str, Any], environ: dict[str, str], tmp_path: Path
) -> None:
    async with opened(echo, secrets=secrets(source, environ, folder=tmp_path)) as world:
        outcome = await world.call("bank.echo")
        assert (outcome.status, outcome.code) == ("blocked", Code.SECRET_MISSING)
        assert "secrets.BANK" in outcome.reason
        assert "***" not in outcome.reason
        assert await world.kinds() == ["gate_refused"]
        assert (await world.last(GateRefused)).stage == "take_secrets"


@pytest.mark.parametrize(
    ("name", "given", "code", "kinds"),
    [
        ("bank.echo", Secrets(), Code.SECRET_MISSING, ["gate_refused"]),
        ("bank.echo", secrets({"env": "BANK", "tools": ["pay.*"]}), Code.SECRET_DENIED, ["gate_refused"]),
        (
            "bank.other",
            secrets({"env": "BANK"}),
            Code.SECRET_DENIED,
            ["tool_invocation_started", "tool_invocation_finished"],
        ),
        (
            "bank.plain",
            secrets({"env": "BANK"}),
            Code.SECRET_DENIED,
            ["tool_invocation_started", "tool_invocation_finished"],
        ),
    ],
)
async def test_only_what_is_declared_on_both_sides_is_given(
    name: str, given: Secrets, code: Code, kinds: list[str]
) -> None:
    async with opened(echo, ask_for_another, declare_none, secrets=given) as world:
        assert (await world.call(name)).code is code
        assert await world.kinds() == kinds


@pytest.mark.slow
async def test_another_value_counts_at_the_next_call(tmp_path: Path) -> None:
    file = tmp_path / "bank"
    file.write_text(f"{VALUE}\n")
    async with opened(echo, secrets=secrets({"file": str(file)})) as world:
        versions = []
        for value in (VALUE, VALUE, NEXT):
            file.write_text(f"{value}\n")
            assert (await world.call("bank.echo")).value["length"] == len(value)
            versions.append((await world.last(ToolInvocationStarted)).secrets["BANK"])
        assert versions == [version_of("BANK", VALUE)] * 2 + [version_of("BANK", NEXT)]


@pytest.mark.slow
async def test_a_command_runs_again_after_its_time_or_once_its_value_was_refused(tmp_path: Path) -> None:
    (tmp_path / "bank").write_text(VALUE)
    command = [sys.executable, "-c", "print(open('bank').read())"]
    async with opened(echo) as world:
        world.secrets = secrets({"command": command, "seconds": 60}, {}, folder=tmp_path, clock=world.clock)
        world.under(())
        assert (await world.call("bank.echo")).value["length"] == len(VALUE)
        (tmp_path / "bank").write_text(NEXT)
        assert (await world.call("bank.echo")).value["length"] == len(VALUE)
        await world.call("bank.echo", {"how": "refused"})
        assert (await world.call("bank.echo")).value["length"] == len(NEXT)
        (tmp_path / "bank").write_text(VALUE)
        assert (await world.call("bank.echo")).value["length"] == len(NEXT)
        world.clock.advance(60)
        assert (await world.call("bank.echo")).value["length"] == len(VALUE)


async def test_the_version_is_on_disk_before_a_side_effect_has_the_value() -> None:
    diary: list[str] = []
    given = asyncio.Event()

    @tool("bank.pay", level="L1", confirm=False, secrets=("BANK",))
    async def pay(ctx: CallContext) -> None:
        """Pay, and never come back."""
        diary.extend(world.store.diary)
        assert ctx.secret("BANK") == VALUE
        given.set()
        await asyncio.Event().wait()

    async with opened(
        pay, rules=[{"id": "all", "effect": "allow", "tools": ["*"]}], secrets=secrets({"env": "BANK"})
    ) as world:
        call = asyncio.create_task(world.call("bank.pay"))
        await given.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "durable tool_invocation_started" in diary
        assert await world.kinds() == ["tool_invocation_started"]
        assert (await world.last(ToolInvocationStarted)).secrets == {"BANK": version_of("BANK", VALUE)}


@pytest.mark.slow
def test_the_version_depends_on_name_and_value_alone() -> None:
    versions = [version_of("A", VALUE), version_of("B", VALUE), version_of("A", NEXT)]
    assert len(set(versions)) == 3
    assert versions[0] == version_of("A", VALUE)


async def test_the_keyring_holds_secrets_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before, own = keyring.get_keyring(), PlaintextKeyring()
    own.set_password("remit", "bank/key", VALUE)
    keyring.set_keyring(own)
    try:
        async with opened(echo, secrets=secrets({"keyring": "bank/key"})) as world:
            assert (await world.call("bank.echo")).value["length"] == len(VALUE)
    finally:
        keyring.set_keyring(before)
