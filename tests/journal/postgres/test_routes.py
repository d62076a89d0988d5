"""Worker processes with different code on one database."""

from __future__ import annotations

from pathlib import Path

from tests.engines.unlike import check_unlike_workers
from tests.journal.postgres.server import PostgresServer


async def test_worker_processes_of_different_code_share_a_database_and_survive_kills(
    postgres: PostgresServer, schema: str, tmp_path: Path
) -> None:
    await check_unlike_workers(f"{postgres.url}&schema={schema}", tmp_path, each=6, kills=8)
