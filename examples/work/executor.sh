#!/bin/sh
# An executor: it hands the specification of an issue to a tool, and says how that went.
#
#   [executors.tool]
#   program = "sh"
#   args = ["/path/to/executor.sh", "tool", "its", "arguments"]
#
# The tool reads the specification from stdin and works in the current folder, the run's own checkout. Remit archives
# what it prints, commits what it changed, and runs the acceptance commands: the result below may be worse than what
# Remit saw, and never counts for more.
set -u
pack=$REMIT_CONTEXT_PACK
spec=$pack/spec_snapshot.md
[ -f "$spec" ] || spec=/dev/null

said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$@" < "$spec" > "$said"
code=$?
cat "$said"

case $code in
  0) status=ok ;;
  75) status=blocked ;;   # EX_TEMPFAIL: what it needs is not there yet
  *) status=fail ;;
esac

printf 'IssueRef: %s\nRunId: %s\nStatus: %s\nPR: none\nCommit: none\nTests: n/a\nSummary: %s\n\n' \
  "$REMIT_ISSUE_REF" "$REMIT_RUN_ID" "$status" "$(tail -n 1 "$said")" > "$pack/work_result.txt"
exit "$code"
