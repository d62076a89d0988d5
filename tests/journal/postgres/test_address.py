from __future__ import annotations

import traceback

import pytest

from remit.errors import SettingsError
from remit.journal.postgres.server import Address


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
        "postgresql://ann:xyzzy@plugh2@db/x",
        "postgresql://ann:xyzzy/plugh2@db/x",
        "postgresql://ann:4711/plugh2@db/x",
        "postgresql://ann:xyzzy?plugh2@db/x",
        "postgresql://ann:4711?plugh=2@db/x",
        "postgresql://ann:xyzzy#plugh2@db/x",
        "postgresql://ann:4711#plugh2@db/x",
        "postgresql://ann:xyzzy[plugh2@db/x",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(SettingsError) as error:
        Address.parse(url)
    assert error.value.remedy
    told = "".join(traceback.format_exception(error.value))
    assert not any(part in told for part in ("xyzzy", "plugh", "4711"))
