"""docs/production.md: jobs that DBOS places on a worker."""

import os

from here import project, told, worked_on

project(f'[journal]\nurl = "{os.environ["POSTGRES_URL"]}"\n[jobs]\nengine = "dbos"\n[dbos]\nqueue = "extras"\n')
job = told("run", "triage", "--customer", "ada", "--detach")["job"]
assert worked_on(job) == "completed"
