from __future__ import annotations

import pytest

from remit.errors import SettingsError
from remit.journal.postgres.address import Address


@pytest.mark.parametrize(
    ("url", "dsn", "schema", "shown"),
    [
        (
            "postgresql://ann:pw@db:5433/x",
            "postgresql://ann:pw@db:5433/x",
            "remit",
            "postgresql://db:5433/x?schema=remit",
        ),
        ("postgres://db/x?schema=mine", "postgres://db/x", "mine", "postgresql://db/x?schema=mine"),
        (
            "postgresql://ann@/x?host=/run/pg&schema=a&sslmode=require",
            "postgresql://ann@/x?host=/run/pg&sslmode=require",
            "a",
            "postgresql:///run/pg/x?schema=a",
        ),
        ("postgresql://db/x?password=pw", "postgresql://db/x?password=pw", "remit", "postgresql://db/x?schema=remit"),
    ],
)
def test_an_address_is_shown_without_what_is_secret(url: str, dsn: str, schema: str, shown: str) -> None:
    address = Address.parse(url)
    assert (address.dsn, address.schema, str(address)) == (dsn, schema, shown)
    assert "pw" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db/x?schema=",
        "postgresql://db/x?schema=Mine",
        "postgresql://db/x?schema=a;b",
        'postgresql://db/x?schema="a"',
        "postgresql://db/x?schema=" + "a" * 51,
        "postgresql://db:port/x",
        "postgresql://db/x?schema",
        "postgresql://[db/x",
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(SettingsError) as error:
        Address.parse(url)
    assert error.value.remedy
