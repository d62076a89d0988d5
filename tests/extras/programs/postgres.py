"""docs/journal.md: a journal in PostgreSQL, which a worker works on."""

import os

from here import project, remit, told, worked_on

project(f'[journal]\nurl = "{os.environ["POSTGRES_URL"]}"\n')
job = told("run", "triage", "--customer", "ada", "--detach")["job"]
assert worked_on(job) == "completed"
remit("verify", job)
