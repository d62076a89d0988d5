#!/usr/bin/env bash
# Run every test. A few that fail are run once more, alone: a browser or a server that this machine had no time for fails
# nobody. They are named as unstable, to be fixed; what fails alone too, or more than a few, is a failure.
# Usage: scripts/test.sh PROCESSES
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

most=5
list=build/pytest/v/cache/lastfailed
rm -f "$list"
.venv/bin/pytest --quiet -n "$1"
status=$?
[ "$status" -eq 1 ] || exit "$status"

failed=$(.venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$list") || exit 1
count=$(grep -c . <<<"$failed")
if [ "$count" -eq 0 ] || [ "$count" -gt "$most" ]; then
	exit 1
fi
printf '\nOnce more, alone:\n%s\n\n' "$failed"
.venv/bin/pytest --quiet --last-failed --last-failed-no-failures=none || exit 1
printf '\nUnstable: these failed beside other tests and passed alone.\n%s\n' "$failed"
