"""Migrations of arguments, and finding the one for a recorded call."""

from __future__ import annotations

import pytest

from remit.errors import NameInvalidError
from remit.tools.migration import Migration, Migrations, migration

DIGEST = "sha256:" + "a" * 64


def test_the_schema_a_call_was_recorded_with_says_more_than_its_version() -> None:
    by_version, by_schema = (
        Migration("bank.charge", "1", lambda args: {"by": "version", **args}),
        Migration("bank.charge", DIGEST, lambda args: {"by": "schema", **args}),
    )
    found = Migrations([by_version, by_schema])
    assert found.find("bank.charge", "1", DIGEST) is by_schema
    assert found.find("bank.charge", "1", DIGEST.removeprefix("sha256:")) is by_schema
    assert found.find("bank.charge", "1", "b" * 64) is by_version
    assert found.find("bank.charge", "2", "b" * 64) is None
    assert found.find("bank.refund", "1", DIGEST) is None


def test_two_for_the_same_version_are_refused() -> None:
    one, other = (Migration("bank.charge", "1", dict) for _ in range(2))
    assert Migrations([one, one]).find("bank.charge", "1", "") is one
    with pytest.raises(NameInvalidError, match=r"two migrations are for bank\.charge"):
        Migrations([one, other])


@pytest.mark.parametrize(("tool", "recorded"), [("", "1"), ("bank.charge", "")])
def test_a_migration_names_a_tool_and_a_version(tool: str, recorded: str) -> None:
    with pytest.raises(NameInvalidError, match="names a tool"):
        migration(tool, recorded=recorded)(dict)
