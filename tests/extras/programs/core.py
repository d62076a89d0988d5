"""docs/start.md: the first job, without any extra."""

from here import project, remit, told

project()
assert told("run", "triage", "--customer", "ada")["state"] == "completed"
assert "refund" in remit("trace", "last")
assert told("replay", "last")["verdict"] == "same"
remit("verify", "last")
