from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.sqlite.schema import APPLICATION_ID, MIGRATIONS, VERSION, check, migrate


@pytest.fixture
def db() -> apsw.Connection:
    return apsw.Connection(":memory:")


def everything(db: apsw.Connection) -> list[object]:
    marks = [db.execute(f"PRAGMA {name}").get for name in ("user_version", "application_id")]
    return [*marks, db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()]


def test_a_fresh_database_gets_todays_schema(db: apsw.Connection) -> None:
    check(db)
    migrate(db)
    version, application, tables = everything(db)
    assert (version, application) == (VERSION, APPLICATION_ID)
    assert {"heads", "events", "blobs"} <= {name for name, _ in tables}  # type: ignore[attr-defined] # rows
    check(db)


@pytest.mark.parametrize("after", range(1, 4))
def test_a_journal_made_while_it_is_looked_at_is_no_foreign_database(after: int, tmp_path: Path) -> None:
    looking, making = (apsw.Connection(str(tmp_path / "journal.db")) for _ in range(2))
    making.execute("PRAGMA journal_mode = WAL").fetchall()
    asked = 0

    def make_meanwhile(_connection: object, sql: str, _bindings: object) -> bool:
        nonlocal asked
        asked += sql.startswith(("PRAGMA", "SELECT"))
        if asked == after:
            migrate(making)
        return True

    looking.set_exec_trace(make_meanwhile)
    check(looking)
    looking.set_exec_trace(None)
    migrate(looking)
    assert everything(looking) == everything(making)
    looking.close()
    making.close()


def test_migrating_again_changes_nothing(db: apsw.Connection) -> None:
    migrate(db)
    before = everything(db)
    migrate(db)
    assert everything(db) == before


def test_every_version_leads_to_todays(db: apsw.Connection) -> None:
    migrate(db)
    today = everything(db)
    for version in range(VERSION):
        older = apsw.Connection(":memory:")
        for script in MIGRATIONS[:version]:
            older.execute(script)
        older.execute(f"PRAGMA user_version = {version}")
        older.execute(f"PRAGMA application_id = {APPLICATION_ID if version else 0}")
        migrate(older)
        assert everything(older) == today


def test_one_that_became_newer_meanwhile_is_left_alone(db: apsw.Connection) -> None:
    """Another process upgraded it between the check and the migration."""
    migrate(db)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = everything(db)
    for look in (check, migrate):
        with pytest.raises(JournalError) as refusal:
            look(db)
        assert refusal.value.code is Code.JOURNAL_NEWER
    assert everything(db) == before
    assert not db.in_transaction


def test_a_migration_that_fails_leaves_nothing(db: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.journal.sqlite.schema.MIGRATIONS", (*MIGRATIONS, "CREATE TABLE x(a); nonsense"))
    monkeypatch.setattr("remit.journal.sqlite.schema.VERSION", VERSION + 1)
    before = everything(db)
    with pytest.raises(apsw.SQLError):
        migrate(db)
    assert everything(db) == before
    assert not db.in_transaction
