"""Models told apart: name, provider and version, an alias and what answers under it."""

from __future__ import annotations

import msgspec
import pytest

from remit.journal import kinds as k
from remit.journal.journal import Journal
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.models.message import answer_digest
from remit.models.names import info_of
from remit.parts.drift.models import ModelCollector
from remit.record.walk import walk
from remit_testing.clock import ManualClock


@pytest.mark.parametrize(
    ("provider", "model", "name", "version", "alias"),
    [
        ("openai", "gpt-4o-2024-08-06", "gpt-4o", "2024-08-06", False),
        ("openai", "gpt-4o", "gpt-4o", "", True),
        ("openai", "gpt-5-mini", "gpt-5-mini", "", True),
        ("anthropic", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet", "20241022", False),
        ("anthropic", "claude-3-5-sonnet-latest", "claude-3-5-sonnet", "", True),
        ("google", "gemini-1.5-pro-002", "gemini-1.5-pro", "002", False),
        ("google", "gemini-2.5-flash-preview-05-20", "gemini-2.5-flash", "preview-05-20", False),
        ("ollama", "llama3.1:8b", "llama3.1", "8b", False),
        ("ollama", "llama3.1:latest", "llama3.1", "", True),
        ("scripted", "a.yaml", "a.yaml", "", False),
    ],
)
def test_name_and_version_are_told_apart(provider: str, model: str, name: str, version: str, alias: bool) -> None:
    found = info_of(provider, model)
    assert (found.name, found.provider, found.version, found.alias) == (name, provider, version, alias)


def test_an_alias_fits_every_version_of_its_name() -> None:
    alias, first, second = (info_of("openai", name) for name in ("gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-2024-11-20"))
    assert alias.is_same(first)
    assert first.is_same(first)
    assert not first.is_same(second)
    assert not alias.is_same(info_of("openai", "gpt-4o-mini"))
    assert not alias.is_same(info_of("ollama", "gpt-4o"))


def call(identifier: str, arguments: str) -> bytes:
    block = {"type": "call", "id": identifier, "name": "a__b", "arguments": arguments, "wire_id": identifier * 2}
    return msgspec.json.encode({"role": "assistant", "blocks": [block]})


def test_answers_that_differ_in_identifiers_alone_are_the_same() -> None:
    assert answer_digest(call("1-0", "{}")) == answer_digest(call("7-0", "{}"))
    assert answer_digest(call("1-0", "{}")) != answer_digest(call("1-0", '{"a": 1}'))


async def asked(journal: Journal, number: int, answered: str) -> None:
    started = k.CommandStarted(
        invocation_id=f"inv_{number}", step="1", llm_model="gpt-4o", llm_provider="openai", prompt_hash="sha256:1"
    )
    committed = k.CommandCommitted(
        invocation_id=f"inv_{number}",
        step="1",
        llm_model=answered,
        llm_provider="openai",
        prompt_hash="sha256:1",
        result=msgspec.Raw(msgspec.json.encode({"role": "assistant", "blocks": [{"type": "text", "text": answered}]})),
    )
    created = k.JobCreated(kind="recipe", name="r")
    await journal.create(f"job/j{number}", "job", created, started, committed)


async def test_an_alias_that_another_version_answers_under_has_moved() -> None:
    journal = Journal(SqliteStore(MEMORY, ManualClock()), ManualClock())
    for number, answered in enumerate(["gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "gpt-4o-2024-11-20"]):
        await asked(journal, number, answered)
    collector = ModelCollector(journal)
    await walk(journal, [collector])
    (model,) = collector.models()
    assert (model.name, model.moved, model.open) == ("openai:gpt-4o", True, 3)
    assert [(one.model.version, one.answers) for one in model.answered] == [("2024-08-06", 2), ("2024-11-20", 1)]
    (output,) = await collector.outputs()
    assert (output.answers, output.different, output.models) == (3, 2, 2)
    of_one = ModelCollector(journal, "gpt-4o-2024-11-20")
    await walk(journal, [of_one])
    assert [one.name for one in of_one.models()] == ["openai:gpt-4o"]
    await journal.close()
