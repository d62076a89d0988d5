"""The command line on a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import asyncpg

from remit_testing.clock import ManualClock
from remit_testing.journal.storage import job
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage

_ROOT: Final = Path(__file__).parents[3]


async def execute(server: PostgresServer, script: str) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute(script)
    await connection.close()


def doctor(folder: Path, url: str) -> dict[str, Any]:
    """What it says of the journal."""
    command = [sys.executable, "-m", "remit", "--journal", url, "doctor", "--json"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "HOME": str(folder)}, capture_output=True, check=False
    )
    (found,) = (check for check in json.loads(done.stdout) if check["name"] == "journal")
    assert done.returncode == (found["verdict"] != "ok")
    return dict(found)


async def test_doctor_says_whether_this_user_can_write(
    storage: PostgresStorage, postgres: PostgresServer, schema: str, tmp_path: Path
) -> None:
    async with storage.open(ManualClock()) as journal:
        await job(journal, "job/a")
    user = f"reader_{schema}"
    await execute(postgres, f"CREATE ROLE {user} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {user}")
    await execute(postgres, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {user}")
    url = storage.url.replace("remit@", f"{user}@")
    found = doctor(tmp_path, url)
    assert (found["verdict"], bool(found["remedy"])) == ("fail", True)

    await execute(postgres, f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user}")
    await execute(postgres, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {user}")
    assert doctor(tmp_path, url)["verdict"] == "ok"
    async with PostgresStorage(url).open(ManualClock()) as journal:
        await job(journal, "job/b")
    await execute(postgres, f"ALTER ROLE {user} SET default_transaction_read_only = on")
    assert doctor(tmp_path, url)["verdict"] == "fail"
