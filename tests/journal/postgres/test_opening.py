"""How a schema is made, checked and opened."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import asyncpg
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.journal import Journal
from remit.journal.postgres.schema import VERSION
from remit.journal.postgres.server import Address, connect, translated
from remit.journal.postgres.store import PostgresStore
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import job, note
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage


async def refusal(url: str) -> JournalError:
    """What opening and using it is refused with."""
    journal = Journal(PostgresStore(url, SystemClock()))
    try:
        with pytest.raises(JournalError) as error:
            await journal.create("job/a", "job", note(1))
        with pytest.raises(JournalError):
            await journal.head("job/a")
    finally:
        await journal.close()
    assert error.value.remedy
    assert "secret" not in str(error.value)
    return error.value


async def execute(server: PostgresServer, script: str) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute(script)
    await connection.close()


async def test_its_connections_bear_the_name_that_the_url_gives_them(storage: PostgresStorage) -> None:
    for url, name in ((storage.url, "remit"), (f"{storage.url}&application_name=worker%201", "worker 1")):
        connection = await connect(Address.parse(url))
        assert await connection.fetchval("SELECT current_setting('application_name')") == name
        await connection.close()


async def test_several_may_make_it_at_once(storage: PostgresStorage) -> None:
    async def use(number: int) -> None:
        async with storage.open(ManualClock()) as journal:
            await job(journal, f"job/{number}")

    await asyncio.gather(*(use(number) for number in range(6)))
    async with storage.open(ManualClock()) as journal:
        assert {await journal.verify(f"job/{number}") for number in range(6)} == {1}


async def test_what_is_submitted_before_it_is_open_is_written(storage: PostgresStorage) -> None:
    async with storage.open(ManualClock()) as journal:
        writer = journal.writer("job/a", "job")
        await journal.append(writer, note(1), synced=False)
        await journal.append(writer, note(2), synced=True)
    async with storage.open(ManualClock()) as journal:
        assert await journal.verify("job/a") == 2


async def test_it_may_be_closed_before_it_is_open(storage: PostgresStorage) -> None:
    async with storage.open(ManualClock()):
        pass


APPROVING = """
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.state := ''approved''; RETURN NEW; END';
CREATE TRIGGER t BEFORE UPDATE ON heads FOR EACH ROW EXECUTE FUNCTION f()
"""


@pytest.mark.parametrize(
    "made",
    [
        APPROVING,
        "CREATE RULE r AS ON UPDATE TO heads DO ALSO NOTHING",
        "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE heads RENAME TO kept; CREATE VIEW heads AS SELECT * FROM kept",
    ],
    ids=["trigger", "rule", "policy", "view"],
)
async def test_a_journal_whose_tables_do_more_than_hold_what_is_written_is_refused(
    postgres: PostgresServer, storage: PostgresStorage, schema: str, made: str
) -> None:  # D01 to D04, on a server
    async with storage.open(ManualClock()) as journal:
        await job(journal, "job/x")
    await execute(postgres, f'SET search_path TO "{schema}"; {made}')
    error = await refusal(storage.url)
    assert error.code is Code.JOURNAL_CORRUPT
    assert "trigger, rule or policy" in error.message


async def test_a_newer_journal_is_left_alone(postgres: PostgresServer, schema: str) -> None:
    await execute(
        postgres,
        f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.remit_version (version int); "
        f"INSERT INTO {schema}.remit_version VALUES ({VERSION + 1})",
    )
    assert (await refusal(f"{postgres.url}&schema={schema}")).code is Code.JOURNAL_NEWER


async def test_somebody_elses_schema_is_left_alone(postgres: PostgresServer, schema: str) -> None:
    await execute(postgres, f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.heads (a int)")
    assert (await refusal(f"{postgres.url}&schema={schema}")).code is Code.JOURNAL_CORRUPT


async def test_a_database_that_is_not_there_is_said(postgres: PostgresServer) -> None:
    error = await refusal(postgres.url.replace("/postgres?", "/nothing?"))
    assert error.code is Code.JOURNAL_IO
    assert "nothing" in error.message


async def test_a_server_that_is_not_there_is_said() -> None:
    error = await refusal("postgresql://remit:secret@/x?host=/nowhere")
    assert error.code is Code.JOURNAL_IO
    assert "server" in error.remedy


@pytest.mark.parametrize(
    "wrong",
    ["sslmode=bogus", "sslmode=verify-full", "connect_timeout=5", "work_mem=much", "port=much"],
)
async def test_a_url_that_says_what_cannot_be_is_told(
    postgres: PostgresServer, schema: str, wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where certificates are looked for
    error = await refusal(f"{postgres.url}&schema={schema}&{wrong}")
    assert error.code is Code.SETTINGS_INVALID
    assert "\n" not in error.message


def test_an_answer_that_did_not_come_is_said_in_words() -> None:
    assert translated(TimeoutError(), "postgresql://db/x").message == "postgresql://db/x: no answer came in time"


def test_a_certificate_that_is_refused_is_no_value_that_cannot_be_recorded() -> None:
    error = translated(ssl.SSLCertVerificationError(1, "self-signed certificate"), "postgresql://db/x")
    assert error.code is Code.JOURNAL_IO
    assert "sslrootcert" in error.remedy


async def test_a_file_that_is_not_there_is_said(postgres: PostgresServer, schema: str) -> None:
    error = await refusal(f"{postgres.url}&schema={schema}&sslmode=verify-full&sslrootcert=/nowhere")
    assert error.code is Code.JOURNAL_IO
    assert "sslrootcert" in error.remedy


async def test_a_user_who_may_not_write_is_told(postgres: PostgresServer, schema: str) -> None:
    await execute(postgres, f"CREATE ROLE reader_{schema} LOGIN")
    url = postgres.url.replace("remit@", f"reader_{schema}@")
    error = await refusal(f"{url}&schema={schema}")
    assert error.code is Code.JOURNAL_READ_ONLY
    assert "CREATE on the database" in error.remedy


async def test_a_read_only_server_is_told(postgres: PostgresServer, schema: str) -> None:
    await execute(postgres, f"CREATE ROLE still_{schema} LOGIN SUPERUSER")
    await execute(postgres, f"ALTER ROLE still_{schema} SET default_transaction_read_only = on")
    url = postgres.url.replace("remit@", f"still_{schema}@")
    assert (await refusal(f"{url}&schema={schema}")).code is Code.JOURNAL_READ_ONLY


async def test_a_text_the_server_cannot_hold_harms_nothing_else(storage: PostgresStorage) -> None:
    async with storage.open(ManualClock()) as journal:
        good, other = await job(journal, "job/a"), await job(journal, "job/b")
        bad = journal.create("job/\0", "job", note(1))
        results = await asyncio.gather(
            journal.append(good, note(2), synced=True),
            bad,
            journal.append(other, note(2), synced=True),
            return_exceptions=True,
        )
        assert [getattr(result, "code", None) for result in results] == [None, Code.RECORD_INVALID, None]
        assert await journal.verify("job/a") == await journal.verify("job/b") == 2


async def test_integrity_names_a_stream_that_lost_events(storage: PostgresStorage, postgres: PostgresServer) -> None:
    async with storage.open(ManualClock()) as journal:
        writer = await job(journal, "job/a")
        await journal.append(writer, note(2), synced=True)
        await execute(postgres, f"DELETE FROM {storage.url.rpartition('=')[2]}.events WHERE seq = 1")
        (problem,) = await journal.integrity()
        assert problem.startswith("job/a: the head says 2 events")


async def test_writers_that_ended_are_forgotten(storage: PostgresStorage, postgres: PostgresServer) -> None:
    schema = storage.url.rpartition("=")[2]
    for number in range(2):
        async with storage.open(ManualClock()) as journal:
            await journal.create(f"job/{number}", "job", note(1))
    connection = await asyncpg.connect(postgres.url)
    assert await connection.fetchval(f"SELECT count(*) FROM {schema}.writers") == 0
    async with storage.open(ManualClock()) as journal:
        writer = await job(journal, "job/a")
        # One that was idle for so long that it was erased goes on, with a new row.
        await connection.execute(f"UPDATE {schema}.writers SET at = now() - interval '8 days'")
        assert await journal.prune() == 0
        await journal.append(writer, note(2), synced=True)
        assert await journal.verify("job/a") == 2
    await connection.close()
