#!/usr/bin/env bash
# Run every test, or those that more options leave. A few that fail are run once more, alone: a browser or a server that
# this machine had no time for fails nobody. They are named as unstable, to be fixed; what fails alone too, or more than
# a few, is a failure.
# Usage: scripts/test.sh PROCESSES [--quick]
# REMIT_TEST_DATE=2028-02-29T12:00:00Z, or =+400 for days from now: all of it at that date.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Journals of tests wait for the disk at every commit, and no test looks at the disk: their folders lie in memory where
# there is room for them, and programs in them can run.
folders=()
room() { awk '/^MemAvailable:/ { exit $2 < 6000000 }' /proc/meminfo && [ "$(df -Pk "$1" | awk 'END { print $4 }')" -gt 4000000 ]; }
if room /dev/shm 2>/dev/null && memory=$(mktemp -d /dev/shm/remit-tests-XXXXXX); then
	trap 'rm -rf "$memory"' EXIT
	if printf '#!/bin/sh\n' >"$memory/runs" && chmod +x "$memory/runs" && "$memory/runs" 2>/dev/null; then
		folders=(--basetemp="$memory/folders" -o tmp_path_retention_policy=failed)
	fi
fi

tests=(.venv/bin/pytest --quiet "${@:2}")
if [ -n "${REMIT_TEST_DATE:-}" ]; then
	tests=(.venv/bin/python -m tests.dates "$REMIT_TEST_DATE" "${tests[@]}")
fi
most=5
list=build/pytest/v/cache/lastfailed
rm -f "$list"
"${tests[@]}" -n "$1" ${folders[@]+"${folders[@]}"}
status=$?
[ "$status" -ne 0 ] || echo 'unstable: none'
[ "$status" -eq 1 ] || exit "$status"

failed=$(.venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$list") || exit 1
count=$(grep -c . <<<"$failed")
if [ "$count" -eq 0 ] || [ "$count" -gt "$most" ]; then
	exit 1
fi
printf '\nOnce more, alone:\n%s\n\n' "$failed"
"${tests[@]}" --last-failed --last-failed-no-failures=none || exit 1
printf 'unstable: %s, %s\n' "$count" "$(paste -sd, <<<"$failed" | sed 's/,/, /g')"
