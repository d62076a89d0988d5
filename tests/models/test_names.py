from __future__ import annotations

import pytest

from remit.errors import UsageError
from remit.models.names import parse


@pytest.mark.parametrize(
    ("text", "provider", "model", "url"),
    [
        ("openai:gpt-5", "openai", "gpt-5", ""),
        ("anthropic:claude-x@2026", "anthropic", "claude-x@2026", ""),
        ("ollama:llama3:8b", "ollama", "llama3:8b", ""),
        ("scripted:demo/script.yaml", "scripted", "demo/script.yaml", ""),
        ("openai-compatible:http://127.0.0.1:8000/v1#qwen", "openai-compatible", "qwen", "http://127.0.0.1:8000/v1"),
    ],
)
def test_a_name_says_provider_and_model_and_reads_back(text: str, provider: str, model: str, url: str) -> None:
    name = parse(text)
    assert (name.provider, name.model, name.url) == (provider, model, url)
    assert str(name) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpt-5",
        "openai:",
        "nobody:x",
        "openai-compatible:http://host/v1",
        "openai-compatible:file:///etc/passwd#m",
        "openai-compatible:http://user:secret@host/v1#m",
        "openai:a\nb",
        "openai:" + "x" * 600,
    ],
)
def test_what_names_no_model_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "MODEL" in caught.value.remedy


def test_without_a_name_the_setting_is_named_that_gives_one() -> None:
    with pytest.raises(UsageError) as caught:
        parse("")
    assert "models.default" in caught.value.remedy


def test_a_misspelt_provider_is_suggested() -> None:
    with pytest.raises(UsageError) as refused:
        parse("opnai:gpt")
    assert refused.value.remedy.startswith("Did you mean openai")
