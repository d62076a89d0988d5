"""The cost of an answer, estimated: from prices of your own, else from the data of the package genai-prices.

Nothing is fetched: the data is that of the installed package, named in the record by its version and digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from typing import Final

import msgspec

from remit.canonical import sha256
from remit.clock import SECOND
from remit.models.names import ModelName
from remit.models.reply import TokenUsage

_MILLION: Final = 1_000_000
_PACKAGE: Final = "genai_prices"
_OWN: Final = "settings"
_KNOWN: Final[Mapping[str, str]] = {"openai": "openai", "anthropic": "anthropic", "google": "google"}
"""The package's names of providers."""


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    """Input read from a cache; None: as any other."""
    cache_written: float | None = None
    """Input written to a cache; None: as any other."""
    cache_written_hour: float | None = None
    """Input written to a cache for an hour; None: as what is written for less."""


class Cost(msgspec.Struct, frozen=True):
    """An estimate."""

    amount: float
    """US dollars."""
    table: str
    """Which prices it was made with."""


class Prices:
    """Prices by model."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = dict(own or {})

    def cost(self, name: ModelName, model: str, usage: TokenUsage, at: int) -> Cost | None:
        """Return what an answer of `model` cost at the time `at`; None if no price is known.

        `name` is the model that was asked, `model` the one that answered, `at` in microseconds since the Unix epoch.
        """
        own = next((price for pattern, price in self._own.items() if fnmatchcase(str(name), pattern)), None)
        if own is not None:
            return Cost(_amount(own, usage), _OWN)
        provider = _KNOWN.get(name.provider)
        if provider is None:
            return None
        return next(
            (cost for candidate in (model, name.model) if (cost := _packaged(provider, candidate, usage, at))), None
        )


def _amount(price: Price, usage: TokenUsage) -> float:
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.cache_written is None else price.cache_written
    for_an_hour = written if price.cache_written_hour is None else price.cache_written_hour
    plain, brief = usage.input - usage.cached - usage.cache_written, usage.cache_written - usage.cache_written_hour
    cached_cost = usage.cached * cached + brief * written + usage.cache_written_hour * for_an_hour
    return (plain * price.input + cached_cost + usage.output * price.output) / _MILLION


def _packaged(provider: str, model: str, usage: TokenUsage, at: int) -> Cost | None:
    try:
        # An extra, and slow to import.
        from genai_prices import Usage as Counted  # noqa: PLC0415 - as above
        from genai_prices import calc_price  # noqa: PLC0415 - as above
    except ModuleNotFoundError:
        return None
    counted = Counted(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.cache_written,
        cache_write_1h_tokens=usage.cache_written_hour,
    )
    try:
        moment = datetime.fromtimestamp(at / SECOND, UTC)
        calculation = calc_price(counted, model, provider_id=provider, genai_request_timestamp=moment)
    except LookupError:
        return None
    return Cost(float(calculation.total_price), _table())


@lru_cache(maxsize=1)
def _table() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to load, and few ask a model

    try:
        data = files(_PACKAGE).joinpath("data.py").read_bytes()
        return f"genai-prices/{version('genai-prices')}+{sha256(data)}"
    except (OSError, PackageNotFoundError):
        return _PACKAGE
