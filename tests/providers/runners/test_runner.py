"""A runner: a real server of Remit that runs tools for another process, over HTTP with a token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import NotSentError, ProviderError, ServerError, SettingsError, StateError
from remit.providers.runners.provider import RunnerProvider
from remit.providers.runners.settings import RunnerEntry, entries_of
from remit.record.outcome import OutcomeView
from remit.tools.catalog import Catalog
from remit_testing.clock import ManualClock
from remit_testing.providers import call_context
from tests.cli.conftest import Project
from tests.cli.test_remote import serving
from tests.gateway.world import Scripted, meta, odd

RULES = """
[[policy.rules]]
id = "notes"
effect = "allow"
tools = ["note.*"]
"""
RUNNER = f"""
[[clients]]
principal = "orchestrator"
token = "runner-token-of-this-test"
scopes = ["read", "call"]
tools = ["note.*"]
{RULES}
"""
ENTRY = RunnerEntry(name="far", url="http://127.0.0.1:1", serves=("note.*",))


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    """The project of the runner."""
    (tmp_path / "far").mkdir()
    one = Project(tmp_path / "far", monkeypatch, capsys)
    one.configure(RUNNER)
    return one


@pytest.fixture
def near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    """The project that calls; it has the same tools itself."""
    (tmp_path / "near").mkdir()
    return Project(tmp_path / "near", monkeypatch, capsys)


def use(near: Project, url: str, sends: str = "runner-token-of-this-test") -> None:
    near.env["RUNNER_TOKEN"] = sends
    reference = "token = '${RUNNER_TOKEN}'"
    near.configure(f'[[runners]]\nname = "far"\nurl = "{url}"\n{reference}\nserves = ["note.*"]\n{RULES}')


def write(near: Project, text: str) -> Any:
    args = f'{{"path": "n.txt", "text": "{text}"}}'
    return near.here("api", "tools.execute", "tool_name=note_write", f"args={args}").json


@pytest.mark.slow
def test_a_call_runs_at_the_runner_and_is_recorded_on_both_sides(far: Project, near: Project) -> None:
    with serving(far, "--no-work") as url:
        use(near, url)
        outcome = write(near, "hello")
        assert outcome["status"] == "ok", outcome
        assert (far.folder / "n.txt").read_text() == "hello"
        assert not (near.folder / "n.txt").exists()
        assert near.here("api", "tools.view", "tool=note.write").json["provider_id"] == "runner_far"
        assert {row["tool"] for row in far.here("audit", "--json").json["tools"]} == {"note.write"}
    refused = write(near, "again")
    assert (refused["status"], (far.folder / "n.txt").read_text()) == ("blocked", "hello")
    assert not (near.folder / "n.txt").exists()


@pytest.mark.slow
def test_a_runner_that_refuses_the_token_offers_nothing(far: Project, near: Project) -> None:
    with serving(far, "--no-work") as url:
        use(near, url, "another")
        assert write(near, "hello")["status"] == "blocked"
        assert "UNAUTHENTICATED" in near.here("api", "tools.failures").json["runner_far"]


class Answers:
    """A connection that answers as it is told, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.keys: list[str] = []

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        return None

    async def ask(self, _operation: str, **request: Any) -> Any:
        self.keys.append(request["key"])
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def runner(clock: ManualClock, *answers: Any) -> tuple[RunnerProvider, Answers]:
    provider, connection = RunnerProvider(ENTRY, clock), Answers(*answers)
    vars(provider)["_connection"] = connection
    return provider, connection


@pytest.mark.parametrize(
    ("answer", "code", "cause"),
    [
        (OutcomeView(status="failed", code="TOOL_TIMEOUT", cause="Timeout"), Code.TOOL_TIMEOUT, Code.Timeout),
        (OutcomeView(status="failed", code="TOOL_TIMEOUT", uncertain=True), Code.OUTCOME_UNKNOWN, None),
        (OutcomeView(status="pending", code="CONFIRMATION_REQUIRED"), Code.POLICY_DENIED, None),
        (OutcomeView(status="blocked", code="RATE_LIMITED"), Code.RATE_LIMITED, None),
        (OutcomeView(status="failed", code="OF_A_NEWER_REMIT"), None, None),
        (ServerError("gone"), None, Code.ConnectionError),
        (NotSentError("not there"), None, Code.SpawnFailed),
        (StateError("no", code=Code.SCOPE_REQUIRED), None, Code.ProviderClosed),
    ],
)
async def test_what_went_wrong_at_the_runner_is_told_here(answer: Any, code: Code | None, cause: Code | None) -> None:
    provider, _ = runner(ManualClock(), answer)
    with pytest.raises(ProviderError) as caught:
        await provider.invoke("note.write", {}, call_context())
    assert (caught.value.code, caught.value.cause) == (code, cause)


async def test_a_limit_of_the_runner_says_when_to_call_again() -> None:
    refusal = OutcomeView(status="blocked", code="RATE_LIMITED", reason="note.write: too often", again_ms=1_500)
    provider, _ = runner(ManualClock(), refusal)
    with pytest.raises(ProviderError, match=r"^too often, at the runner far: again in 2 s$"):
        await provider.invoke("note.write", {}, call_context())


async def test_a_runner_that_stops_is_asked_again_under_the_same_key() -> None:
    clock = ManualClock()
    provider, connection = runner(clock, StateError("", code=Code.SERVER_STOPPING), OutcomeView(status="ok", value=3))
    call = provider.invoke("note.write", {}, call_context())
    task = asyncio.ensure_future(call)
    await clock.until_asleep()
    clock.advance(1)
    assert (await task).value == 3
    assert len(set(connection.keys)) == 1
    await provider.close()
    with pytest.raises(ProviderError):
        await provider.list_tools()


class Reserving(Scripted):
    """A provider that alone offers notes."""

    reserves = ("note.*",)


async def test_no_other_provider_stands_in_for_a_runner() -> None:
    near = odd(lambda _args, _ctx: None, name="note.write")
    far = Reserving([meta("note.write", provider_id="runner_far")], lambda _args, _ctx: None)
    catalog = Catalog([near, far])
    assert [tool.meta.provider_id for tool in await catalog.tools()] == ["runner_far"]
    far.metas = [meta("note.read", provider_id="runner_far")]
    catalog.invalidate()
    assert [tool.meta.name for tool in await catalog.tools()] == ["note.read"]


@pytest.mark.parametrize(
    "table",
    [
        {"name": "far", "url": "http://127.0.0.1:1"},
        {"name": "far", "url": "http://127.0.0.1:1", "serves": []},
        {"name": "Far!", "url": "http://127.0.0.1:1", "serves": ["a.*"]},
        {"name": "far", "url": "http://127.0.0.1:1", "serves": ["a.*"], "tokens": ""},
        {"name": "far", "url": "http://127.0.0.1:1", "serves": ["a.*"], "token": "${NO_SUCH_VARIABLE_HERE}"},
    ],
)
def test_a_runner_that_cannot_be_used_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        entries_of((table,))
