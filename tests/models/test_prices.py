from __future__ import annotations

import pytest

from remit.models.names import parse
from remit.models.prices import Price, Prices
from remit.models.reply import TokenUsage
from remit.models.wires.anthropic import usage_of

USAGE = TokenUsage(input=1_000_000, output=1_000_000, cached=400_000, cache_written=100_000)
AT = 1_767_225_600_000_000


def test_prices_of_ones_own_come_first_and_tell_cached_tokens_apart() -> None:
    prices = Prices({"openai:*": Price(input=2, output=10, cached=1, cache_written=4)})
    cost = prices.cost(parse("openai:gpt-4o"), "gpt-4o", USAGE, AT)
    assert cost is not None
    assert cost.amount == pytest.approx(0.5 * 2 + 0.4 * 1 + 0.1 * 4 + 10)
    assert cost.table == "settings"


@pytest.mark.parametrize(
    ("price", "amount"),
    [(Price(input=1, cache_written=4), 4.0), (Price(input=1, cache_written=4, cache_written_hour=8), 6.0)],
)
def test_what_a_cache_keeps_for_an_hour_has_a_price_of_its_own(price: Price, amount: float) -> None:
    usage = TokenUsage(input=1_000_000, cache_written=1_000_000, cache_written_hour=500_000)
    cost = Prices({"*": price}).cost(parse("anthropic:claude"), "claude", usage, AT)
    assert cost is not None
    assert cost.amount == pytest.approx(amount)


def test_known_models_tell_an_hour_in_a_cache_from_five_minutes() -> None:
    raw = {"input_tokens": 0, "cache_creation_input_tokens": 2_000_000, "output_tokens": 0}
    usage = usage_of(raw | {"cache_creation": {"ephemeral_1h_input_tokens": 1_000_000}})
    assert usage is not None
    cost = Prices().cost(parse("anthropic:claude-opus-4-5"), "claude-opus-4-5", usage, AT)
    assert cost is not None
    assert cost.amount == pytest.approx(6.25 + 10)


def test_known_models_have_a_price_that_names_its_table() -> None:
    cost = Prices().cost(parse("openai:gpt-4o"), "gpt-4o-2024-08-06", TokenUsage(input=1_000_000, output=0), AT)
    assert cost is not None
    assert cost.amount == pytest.approx(2.5)
    assert cost.table.startswith("genai-prices/0.")
    assert "+sha256:" in cost.table


@pytest.mark.parametrize("name", ["ollama:llama3", "scripted:x.yaml", "openai:no-such-model-at-all"])
def test_what_has_no_price_has_none(name: str) -> None:
    assert Prices().cost(parse(name), parse(name).model, USAGE, AT) is None
