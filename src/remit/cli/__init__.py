"""The `remit` command: a thin face over `remit.service`. Nothing slow is imported before a command needs it."""

from __future__ import annotations

_INTERRUPTED = 130
"""The exit status of Ctrl-C (exit_codes.py)."""
_GARBAGE = 200_000
"""Objects that Python makes before it looks for garbage: more than a command loads, of which all is used to its end."""


def main() -> None:
    """Run the command line of this process, then end it with the status that docs/cli.md lists."""
    import gc
    import sys

    gc.set_threshold(_GARBAGE)
    try:
        from remit.cli.root import leave, run

        leave(run())
    except KeyboardInterrupt:  # before or after the part that handles it: while modules are loaded, say
        sys.exit(_INTERRUPTED)
