from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.driver import Isolation
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.provider import SandboxProvider
from remit.parts.sandbox.sandbox import Sandbox
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.workspaces import Workspaces
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context

pytestmark = pytest.mark.slow

NAMES = ("python", "bash")


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as work:
        work.chmod(0o711)
        yield work


def sandbox(folder: Path, driver: BwrapDriver | None = None, **policy: Any) -> SandboxProvider:
    terms = SandboxPolicy(commands=frozenset(NAMES), **policy)
    return SandboxProvider(terms, lambda: Sandbox(driver or BwrapDriver(), terms, Commands(NAMES), Workspaces(folder)))


SAMPLES = [
    Sample("sandbox.write_files", {"files": [{"path": "a.txt", "text": "a"}]}),
    Sample("sandbox.exec", {"command": ["bash", "-c", "echo hello; echo x > made"]}),
    Sample("sandbox.collect", {"paths": []}),
]


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
async def test_the_sandbox_keeps_the_promises_of_a_provider(check: Check, sample: Sample, folder: Path) -> None:
    await check(lambda: sandbox(folder), sample)


async def test_calls_of_a_session_share_a_workspace_wherever_they_are_recorded(folder: Path) -> None:
    provider = sandbox(folder)
    asked = call_context(stream="call/call_1", within="session/session_1")
    await provider.invoke("sandbox.write_files", {"files": [{"path": "a.txt", "text": "a"}]}, asked)
    for ctx in (call_context(), call_context(stream="session/session_1/part/part_1")):
        taken = await provider.invoke("sandbox.collect", {"paths": ["a.txt"]}, ctx)
        assert [one["path"] for one in taken.value["artifacts"]] == ["a.txt"]
    await provider.close()


async def test_files_are_written_run_and_taken(folder: Path) -> None:
    provider = sandbox(folder)
    ctx = call_context()
    files = [
        {"path": "main.py", "text": "import sys; open('out.bin', 'wb').write(b'\\xff'); print(open('d/x').read())"},
        {"path": "d/x", "base64": base64.b64encode(b"bytes").decode()},
    ]
    await provider.invoke("sandbox.write_files", {"files": files}, ctx)
    ran = await provider.invoke("sandbox.exec", {"command": ["python", "main.py"]}, ctx)
    assert (ran.value["status"], ran.value["stdout"]) == ("SUCCEEDED", "bytes\n")
    assert ran.value["files"] == [{"path": "out.bin", "change": "created", "bytes": 1}]
    assert [one.kind for one in ran.evidence] == ["stdout"]
    taken = await provider.invoke("sandbox.collect", {"paths": ["out.bin"]}, ctx)
    assert [one.data for one in taken.evidence] == [b"\xff"]
    assert [one["path"] for one in taken.value["artifacts"]] == ["out.bin"]
    assert ctx.keeper is not None
    assert await ctx.keeper.get(taken.value["artifacts"][0]["sha256"]) == b"\xff"
    await provider.close()


async def test_inputs_can_be_read_and_not_changed(folder: Path) -> None:
    provider = sandbox(folder)
    ctx = call_context()
    args = {"files": [{"path": "data.csv", "text": "1,2"}], "folder": "inputs"}
    await provider.invoke("sandbox.write_files", args, ctx)
    ran = await provider.invoke(
        "sandbox.exec", {"command": ["bash", "-c", "cat /inputs/data.csv; rm -f /inputs/*"]}, ctx
    )
    assert ran.value["stdout"] == "1,2"
    ran = await provider.invoke("sandbox.exec", {"command": ["bash", "-c", "ls /inputs"]}, ctx)
    assert ran.value["stdout"] == "data.csv\n"
    await provider.close()


async def test_conversations_do_not_see_each_other(folder: Path) -> None:
    provider = sandbox(folder)
    await provider.invoke(
        "sandbox.exec", {"command": ["bash", "-c", "echo mine > secret"]}, call_context(stream="job/a")
    )
    ran = await provider.invoke(
        "sandbox.exec", {"command": ["bash", "-c", "ls -R /workspace /inputs"]}, call_context(stream="job/b")
    )
    assert "secret" not in ran.value["stdout"]
    await provider.close()


async def test_the_same_call_again_finds_the_workspace_as_it_was(folder: Path) -> None:
    provider = sandbox(folder)
    command = {"command": ["bash", "-c", "echo x >> log; cat log"]}
    first = await provider.invoke("sandbox.exec", command, call_context())
    again = await provider.invoke("sandbox.exec", command, call_context())
    assert (first.value["restored"], again.value["restored"]) == (False, True)
    assert first.value["stdout"] == again.value["stdout"] == "x\n"
    later = await provider.invoke("sandbox.exec", command, call_context(idempotency_key="1" * 64))
    assert later.value["stdout"] == "x\nx\n"
    await provider.close()


async def test_more_files_than_can_be_kept_fail_and_leave_the_workspace_as_it_was(folder: Path) -> None:
    provider = sandbox(folder)
    ctx = call_context()
    await provider.invoke("sandbox.write_files", {"files": [{"path": "mine", "text": "mine"}]}, ctx)
    deep = "rm mine; for i in {1..80}; do mkdir d; cd d; done; echo made"
    ran = await provider.invoke("sandbox.exec", {"command": ["bash", "-c", deep]}, ctx)
    assert (ran.value["status"], ran.value["limit"], ran.value["stdout"]) == ("FAILED", "workspace_files", "made\n")
    assert ran.value["workspace_before"] == ran.value["workspace_after"]
    later = await provider.invoke(
        "sandbox.exec", {"command": ["bash", "-c", "ls"]}, call_context(idempotency_key="2" * 64)
    )
    assert later.value["stdout"] == "mine\n"
    await provider.close()


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"command": ["ruby", "-e", "1"]}, r"command: ruby may not run \(allowed: bash, .*see `sandbox.commands`"),
        ({"command": ["/bin/bash"]}, "command: /bin/bash"),
        ({"command": ["bash"], "policy": {"limits": {"wall_ms": 10**9}}}, "limits.wall_ms"),
        ({"command": ["bash"], "policy": {"network": ["example.org"]}}, "network"),
        ({"command": ["bash"], "policy": {"min_isolation": "process"}}, "min_isolation"),
        ({"command": ["bash"], "policy": {"sandbox": False}}, "sandbox"),
    ],
)
async def test_what_is_looser_than_the_policy_is_denied_by_its_name(
    folder: Path, args: dict[str, Any], field: str
) -> None:
    provider = sandbox(folder)
    with pytest.raises(ProviderError, match=f"^{field}") as refused:
        await provider.invoke("sandbox.exec", args, call_context())
    assert refused.value.code is Code.POLICY_DENIED
    await provider.close()


async def test_where_nothing_isolates_nothing_runs(folder: Path) -> None:
    provider = sandbox(folder, BwrapDriver("/no/bwrap"))
    with pytest.raises(ProviderError, match=r"bwrap: /no/bwrap cannot be run.*Install bubblewrap") as refused:
        await provider.invoke("sandbox.exec", {"command": ["bash", "-c", "echo ran > ran"]}, call_context())
    assert refused.value.code is Code.SANDBOX_UNAVAILABLE
    assert not list(folder.rglob("ran"))


async def test_a_stronger_isolation_than_there_is_refuses(folder: Path) -> None:
    provider = sandbox(folder, min_isolation=Isolation.kernel)
    with pytest.raises(ProviderError, match="provides namespaces isolation, but kernel is required"):
        await provider.invoke("sandbox.exec", {"command": ["bash", "-c", ":"]}, call_context())
    await provider.close()


async def test_a_command_that_is_not_installed_is_named(folder: Path) -> None:
    terms = SandboxPolicy(commands=frozenset({"no-such-command"}))
    provider = SandboxProvider(
        terms, lambda: Sandbox(BwrapDriver(), terms, Commands(("no-such-command",)), Workspaces(folder))
    )
    with pytest.raises(ProviderError, match="no-such-command is not in") as refused:
        await provider.invoke("sandbox.exec", {"command": ["no-such-command"]}, call_context())
    assert refused.value.code is Code.SANDBOX_UNAVAILABLE
    await provider.close()


async def test_output_that_is_no_text_is_kept_as_it_was(folder: Path) -> None:
    provider = sandbox(folder)
    ran = await provider.invoke("sandbox.exec", {"command": ["bash", "-c", r"printf 'a\xffb'"]}, call_context())
    assert (ran.value["stdout"], ran.value["lossy"]) == ("a\ufffdb", ["stdout"])
    assert ran.evidence[0].data == b"a\xffb"
    await provider.close()


async def test_a_character_that_the_limit_cuts_is_left_out(folder: Path) -> None:
    provider = sandbox(folder)
    args = {"command": ["bash", "-c", "printf 'ab\u20ac'"], "policy": {"limits": {"stdout_bytes": 4}}}
    ran = await provider.invoke("sandbox.exec", args, call_context())
    assert (ran.value["stdout"], ran.value["truncated"], ran.value["lossy"]) == ("ab", ["stdout"], [])
    await provider.close()


async def test_lines_are_reported_as_they_come(folder: Path) -> None:
    provider = sandbox(folder)
    heard: list[str] = []
    ctx = call_context(progress=lambda _done, _total, message: heard.append(message))
    await provider.invoke("sandbox.exec", {"command": ["bash", "-c", "echo one; echo two >&2"]}, ctx)
    assert sorted(heard) == ["one", "two"]
    await provider.close()
