"""docs/look.md: `--jq` chooses of what `--json` prints."""

from here import project, remit

project()
remit("run", "triage", "--customer", "ada")
assert remit("jobs", "--jq", ".[].state") == "completed\n"
