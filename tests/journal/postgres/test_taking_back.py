"""An approval that another process takes back while its call is on its way, on PostgreSQL."""

from __future__ import annotations

from tests.cli.conftest import Project, project
from tests.cli.test_taking_back import take_back_on_the_way
from tests.journal.postgres.server import PostgresServer

__all__ = ["project"]


def test_nothing_runs_and_the_job_asks_again(project: Project, postgres: PostgresServer, schema: str) -> None:
    take_back_on_the_way(project, f'[journal]\nurl = "{postgres.url}&schema={schema}"\n')
