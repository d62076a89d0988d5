"""The `remit` command: a thin face over `remit.service`. Nothing slow is imported before a command needs it."""

from __future__ import annotations

_INTERRUPTED = 130
"""The exit status of Ctrl-C (exit_codes.py)."""


def main() -> None:
    """Run the command line of this process, then end it with the status that docs/cli.md lists."""
    import sys

    try:
        from remit.cli.root import leave, run

        leave(run())
    except KeyboardInterrupt:  # before or after the part that handles it: while modules are loaded, say
        sys.exit(_INTERRUPTED)
