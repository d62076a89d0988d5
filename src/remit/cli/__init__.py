"""The `remit` command: a thin face over `remit.service`. Nothing slow is imported before a command needs it."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process, then end it with the status that docs/cli.md lists."""
    from remit.cli.process import leave
    from remit.cli.root import run

    leave(run())
