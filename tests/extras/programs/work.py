"""docs/work.md: a person's result is handed in as protobuf, and an order has a text of it."""

import subprocess
from pathlib import Path

from here import project, remit, told

from remit.parts.work.forms import read_order_in, write_in
from remit.parts.work.order import WorkOrder
from remit.parts.work.result import WorkResult

RULE = """
[[policy.rules]]
id = "outbox"
effect = "allow"
tools = "outbox.*"
"""

project(RULE)
for words in ("init --quiet", "add .", "-c user.name=Ann -c user.email=ann@example.org commit --quiet -m Begin"):
    subprocess.run(["git", *words.split()], check=True)
remit("work", "init")
remit("trust", "--yes")
issue = remit("work", "issue", "Say when the tide comes").strip()
run = remit("work", "run", issue, "--executor", "manual").strip()
result = WorkResult(issue_ref=issue, run_id=run, status="blocked", summary="No one knows.", blocked_by=("the sea",))
Path("result.pb").write_bytes(write_in("pb", result))
assert told("work", "result", issue, "--file", "result.pb")
assert "No one knows." in remit("work", "show", issue)
order = WorkOrder(issue_ref=issue, run_id=run, role="work", repo_dir=".")
assert read_order_in("textproto", write_in("textproto", order)) == order
