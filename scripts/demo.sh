#!/usr/bin/env bash
# A first look at Remit: run a recipe over Python's own library, show what was recorded, replay it. `make demo` runs this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Of another environment than .venv where scripts/versions.py names one.
env=$(cd "${DEMO_ENV:-.venv}" && pwd)
remit=$env/bin/remit
python=$env/bin/python
export REMIT_JOURNAL=build/demo/remit.db
rm -rf build/demo
mkdir -p build/demo

library=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])')
# The library may lie in a hidden folder, which tools may enter only if it is a root.
REMIT_FS_ROOTS=$library "$remit" run research_report --query "how does asyncio cancel a task" --folder "$library"
job=$("$remit" jobs --limit 1 --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)[0]["job"])')

printf '\nWhat happened, from the journal:\n\n'
"$remit" trace "$job"

printf '\nReplay it: every result comes from the journal, nothing is called again.\n\n'
printf 'REMIT_JOURNAL=%s %s replay %s\n\n' "$REMIT_JOURNAL" "$remit" "$job"
"$remit" replay "$job"

printf '\nAn agent, with a scripted model: no key, no network. It asks before it writes.\n\n'
mkdir -p build/demo/agent
: > build/demo/agent/remit.toml
cat > build/demo/agent/script.yaml <<'SCRIPT'
- say: I will note that.
  call:
    - {tool: fs.write, args: {path: note.txt, content: "Buy milk.\n"}}
- expect: "."
  say: Noted, as soon as I was allowed to.
SCRIPT
cd build/demo/agent
export REMIT_JOURNAL=agent.db
"$remit" run agent --task "Note that I need milk." --tools 'fs.write' --model scripted:script.yaml || test $? -eq 4
question=$("$remit" confirm --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)[0]["confirmation"])')
printf '\nIt waits, and holds no process. Somebody approves:\n\n'
"$remit" confirm "$question" --approve
job=$("$remit" jobs --limit 1 --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)[0]["job"])')
"$remit" resume "$job"
printf '\nnote.txt says: '
cat note.txt
