from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import apsw
import pytest

from remit.codes import Code
from remit.errors import UsageError
from remit.journal.labels import Bound, check_key, conditions, measure, relabeled, text_of
from remit.journal.sqlite.schema import APPLICATION_ID, MIGRATIONS, migrate


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("250", ("n", 250.0)),
        ("-0.5", ("n", -0.5)),
        ("1e3", ("n", 1000.0)),
        ("1970-01-01T00:00:01Z", ("t", 1_000_000)),
        ("1970-01-01T01:00:00+01:00", ("t", 0)),
        ("007", None),
        ("1e999", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-02-03T00:00:00", None),
        ("NaN", None),
        ("", None),
        ("12 apples", None),
    ],
)
def test_the_type_of_a_label_follows_from_its_text(text: str, size: Any) -> None:
    assert measure(text) == size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is ", "as it is "),
        (250, "250"),
        (2.5, "2.5"),
        (True, "true"),
        (datetime(2026, 11, 29, 13, tzinfo=timezone(timedelta(hours=1))), "2026-11-29T12:00:00Z"),
        (datetime(2026, 11, 29, 13, 0, 0, 5, tzinfo=UTC), "2026-11-29T13:00:00.000005Z"),
    ],
)
def test_a_value_is_kept_as_the_text_that_says_its_type(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), datetime(2026, 1, 1), "x" * 1_001, [1], b"x"])  # noqa: DTZ001 - that is the point
def test_other_values_are_no_labels(value: Any) -> None:
    with pytest.raises(UsageError) as refused:
        text_of(value)
    assert refused.value.code is Code.INVALID_INPUT


@pytest.mark.parametrize("key", ["", "remit.name", "a=b", "a<b", "x" * 101, "line\nend"])
def test_other_keys_are_no_labels(key: str) -> None:
    with pytest.raises(UsageError):
        check_key(key)


def test_conditions_are_read_as_they_are_written() -> None:
    texts = ("team=a>=b", "x.y=", "size>=10", "at<1970-01-01T00:00:01Z")
    found = conditions(texts)
    assert found.labels == {"team": "a>=b", "x.y": ""}
    assert found.bounds == (
        Bound("size", ">=", "10", "n", 10.0),
        Bound("at", "<", "1970-01-01T00:00:01Z", "t", 1_000_000),
    )
    assert found.texts == texts


@pytest.mark.parametrize("text", ["", "team", "=x", ">=3", "size>=", "size>big", "size<2026-01-01"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        conditions([text])
    assert refused.value.code is Code.INVALID_INPUT


def test_changes_count_in_their_order() -> None:
    assert relabeled({"a": "1", "b": "2"}, {"a": 3, "c": True}, {"b": None, "d": None}) == {"a": "3", "c": "true"}


def test_labels_of_an_older_journal_are_indexed_as_it_becomes_a_newer_one() -> None:
    db = apsw.Connection(":memory:")
    for script in MIGRATIONS[:-1]:
        db.execute(script)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) - 1}")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    row = "INSERT INTO heads (stream, kind, seq, hash, labels, created_at, updated_at) VALUES (?, ?, 1, x'', ?, 1, 1)"
    db.execute(row, ("job/a", "job", '{"remit.name": "r", "size": "10", "team": "a"}'))
    db.execute(row, ("call/a", "call", '{"session": "s"}'))
    migrate(db)
    assert db.execute("SELECT key, value, type, size FROM labels ORDER BY key").fetchall() == [
        ("size", "10", "n", 10.0),
        ("team", "a", None, None),
    ]
