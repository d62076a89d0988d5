"""Function tools in the sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remit import CallContext, FunctionTool, tool
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.gateway.secrets import Secrets, TakenSecrets
from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.enclosure import SandboxEnclosures
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.sandbox import Sandbox
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.workspaces import Workspaces
from remit.providers.functions.provider import FunctionProvider
from remit.redact import MASK
from remit.settings.sections.secrets import SecretTable
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context
from tests.patience import PATIENCE_S
from tests.providers.functions import sandboxed

pytestmark = pytest.mark.slow

TOOLS = [each for each in vars(sandboxed).values() if isinstance(each, FunctionTool)]


def enclosures(folder: Path, driver: BwrapDriver | None = None) -> SandboxEnclosures:
    finder = Commands(())
    return SandboxEnclosures(
        Sandbox(driver or BwrapDriver(), SandboxPolicy(), finder, Workspaces(folder)), finder, folder.parent
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as work:
        yield work


@pytest.fixture
async def provider(folder: Path) -> AsyncIterator[FunctionProvider]:
    boxes = enclosures(folder)
    yield FunctionProvider(TOOLS, enclosures=lambda: boxes)
    await boxes.close()


async def called(provider: FunctionProvider, name: str, **args: Any) -> Any:
    return (await provider.invoke(name, args, call_context())).value


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_sandboxed_functions_keep_the_promises_of_a_provider(check: Check, folder: Path) -> None:
    boxes = enclosures(folder)
    await check(lambda: FunctionProvider(TOOLS, enclosures=lambda: boxes), Sample("box.look", {"path": "/usr"}))
    await boxes.close()


async def test_it_sees_an_empty_machine_and_runs_in_another_process(
    provider: FunctionProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_TEST_SECRET", "swordfish")
    seen = await called(provider, "box.look", path="/etc/shadow")
    assert (seen["there"], seen["uid"], seen["secret"], seen["interfaces"]) == (False, 1000, None, ["lo"])
    assert seen["pid"] < 10
    assert seen["pid"] != os.getpid()


async def test_values_and_evidence_pass_in_and_out(provider: FunctionProvider) -> None:
    assert await called(provider, "box.move", point={"x": 1}, by=2) == {"x": 3, "y": 2}
    result = await provider.invoke("box.keep", {}, call_context())
    assert (result.value, result.evidence[0].data) == ("kept", b"\xff")


@pytest.mark.parametrize(
    ("name", "args", "said", "cause"),
    [
        ("box.fail", {"how": "refuse"}, "not today", Code.NetworkError),
        ("box.fail", {"how": "nan"}, r"\$\.mean is NaN or infinite", Code.BadGateway),
        ("box.fail", {"how": "raise"}, "ValueError: no good", None),
        ("box.fail", {"how": "die"}, "exit code 7; it last wrote: last words", None),
        ("box.move", {"point": {"x": "1"}, "by": 1}, "Expected `int`", Code.InvalidInput),
        ("box.slow", {}, "longer than limits.wall_ms", Code.Timeout),
        ("box.loose", {}, "limits.pids: 100000 is more than", Code.InvalidInput),
    ],
)
async def test_failures_come_back_in_words(
    provider: FunctionProvider, name: str, args: dict[str, Any], said: str, cause: Code | None
) -> None:
    with pytest.raises(ProviderError, match=said) as caught:
        await called(provider, name, **args)
    assert caught.value.cause is cause


async def test_what_it_writes_to_stderr_is_seen_as_it_comes_and_a_cancelled_call_ends_it(
    provider: FunctionProvider,
) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    ctx = msgspec.structs.replace(call_context(), progress=lambda _done, _total, line: said.put_nowait(line))
    call = asyncio.create_task(provider.invoke("box.hang", {"marker": "here I am"}, ctx))
    async with asyncio.timeout(PATIENCE_S):
        assert await said.get() == "here I am"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


SECRET = "s3cret-b4nk-key/+"


async def with_secret() -> tuple[TakenSecrets, CallContext, list[str], list[str]]:
    """The secret of a call, its context, what it logs, and the versions that were refused."""
    table = SecretTable(env="BANK", tools=("box.*",))
    taken = await Secrets({"BANK": table}, {"BANK": SECRET}).take("box.vault", ("BANK",))
    assert isinstance(taken, TakenSecrets)
    lines, refused = list[str](), list[str]()
    taken._forget = lambda name, _value: refused.append(name)
    return taken, taken.given_to(replace(call_context(), lines=lambda text, _level: lines.append(text))), lines, refused


async def test_a_secret_comes_by_stdin_alone_and_is_masked_in_all_that_comes_back(provider: FunctionProvider) -> None:
    taken, ctx, lines, refused = await with_secret()
    result = await provider.invoke("box.vault", {"how": "look"}, ctx)
    value = taken.result(result).value
    assert (value["length"], value["elsewhere"], value["child"]) == (len(SECRET), [], "")
    assert value["shown"] == [MASK, MASK]
    assert value["facts"] == [ctx.step, ctx.attempt, ctx.conversation, None]
    assert lines == [f"logged {MASK}"]
    assert refused == []


async def test_a_line_of_a_secret_is_masked_in_what_is_reported_line_by_line() -> None:
    table = SecretTable(env="KEY", tools=("box.*",))
    taken = await Secrets({"KEY": table}, {"KEY": "first-line\nsecond-line"}).take("box.vault", ("KEY",))
    assert isinstance(taken, TakenSecrets)
    shown = list[str]()
    ctx = replace(
        call_context(),
        lines=lambda text, _level: shown.append(text),
        progress=lambda _done, _total, text: shown.append(text),
    )
    ctx = taken.given_to(ctx)
    ctx.log("it is second-line")
    ctx.progress(1, None, "it is first-line")
    assert shown == [f"it is {MASK}"] * 2


async def test_a_secret_is_masked_before_the_last_words_of_a_failure_are_cut(provider: FunctionProvider) -> None:
    _, ctx, lines, refused = await with_secret()
    with pytest.raises(ProviderError, match="exit code 3") as failure:
        await provider.invoke("box.vault", {"how": "fail"}, ctx)
    pieces = [SECRET[at : at + 6] for at in range(len(SECRET) - 5)]
    assert not [piece for piece in pieces if piece in f"{failure.value} {lines}"]
    assert refused == []


async def test_a_secret_that_was_not_accepted_is_read_again(provider: FunctionProvider) -> None:
    taken, ctx, _, refused = await with_secret()
    with pytest.raises(ProviderError, match="401 for") as failure:
        await provider.invoke("box.vault", {"how": "raise"}, ctx)
    assert taken.text(str(failure.value)) == f"401 for {MASK}"
    assert refused == ["BANK"]


async def test_without_its_secret_it_does_not_run(provider: FunctionProvider) -> None:
    with pytest.raises(ProviderError) as failure:
        await provider.invoke("box.vault", {"how": "look"}, call_context())
    assert failure.value.code is Code.SECRET_DENIED


async def test_without_a_sandbox_it_never_runs_in_this_process(folder: Path) -> None:
    boxes = enclosures(folder, BwrapDriver(str(folder / "absent")))
    for provider in (FunctionProvider(TOOLS), FunctionProvider(TOOLS, enclosures=lambda: boxes)):
        with pytest.raises(ProviderError) as caught:
            await called(provider, "box.look", path="/")
        assert caught.value.code is Code.SANDBOX_UNAVAILABLE


def test_what_cannot_run_in_a_process_of_its_own_is_refused_when_it_is_defined() -> None:
    def inner() -> None: ...

    with pytest.raises(UsageError, match="within another"):
        tool("a.b", level="L2", sandbox=True)(inner)
    with pytest.raises(UsageError, match="both unprotected and in the sandbox"):
        tool("a.b", level="L2", sandbox=True, unprotected=True)
    with pytest.raises(UsageError, match=r"sandbox: .*root"):
        tool("a.b", level="L2", sandbox={"root": []})
