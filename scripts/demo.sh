#!/usr/bin/env bash
# A first look at Remit: run a recipe over Python's own library, show what was recorded, replay it. `make demo` runs this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

remit=.venv/bin/remit
python=.venv/bin/python
export REMIT_JOURNAL=build/demo/remit.db
rm -rf build/demo
mkdir -p build/demo

library=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])')
"$remit" run research_report --query "how does asyncio cancel a task" --folder "$library"
job=$("$remit" jobs --limit 1 --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)[0]["job"])')

printf '\nWhat happened, from the journal:\n\n'
"$remit" trace "$job"

printf '\nReplay it: every result comes from the journal, nothing is called again.\n\n'
printf 'REMIT_JOURNAL=%s %s replay %s\n\n' "$REMIT_JOURNAL" "$remit" "$job"
"$remit" replay "$job"
