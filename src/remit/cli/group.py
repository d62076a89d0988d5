"""A click group that imports a command's module only when the command runs, so that `remit --help` stays fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from remit.nearest import did_you_mean

if TYPE_CHECKING:
    from remit.capability import Capability

_SYNONYMS: Final = {
    **dict.fromkeys(("approve", "deny", "reject", "answer", "inbox"), "confirm"),
    **dict.fromkeys(("list", "ls", "ps", "status"), "jobs"),
    **dict.fromkeys(("log", "logs", "history", "describe"), "trace"),
    "start": "run",
    "exec": "run",
    "continue": "resume",
    "stop": "cancel",
    "kill": "cancel",
    "inspect": "show",
    "delete": "journal prune",
    "rm": "journal prune",
    "login": "mcp login",
    "cost": "usage",
    "schedule": "run",
}
"""Words that other programs have for what a command does."""


class LazyCommand(NamedTuple):
    """A command that is not imported yet."""

    section: str
    help: str
    """One line; the same as the first one of the command's own help."""
    reference: str = ""
    """Where the command is, as `"module:name"`; empty: in the module of its name in the group's package."""


class LazyGroup(click.Group):
    """A group of commands: those of its own module, and each other one the `command` of a module of its name."""

    def __init__(
        self, *args: Any, package: str = "", entries: Mapping[str, LazyCommand] | None = None, **kwargs: Any
    ) -> None:
        kwargs |= {"invoke_without_command": True, "subcommand_metavar": "COMMAND [ARGS]..."}
        super().__init__(*args, **kwargs)
        self.package = package
        self.entries = dict(entries or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every command, in the order of the help."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a name, imported now."""
        if cmd_name in self.commands or cmd_name not in self.entries:
            return self.commands.get(cmd_name)
        from remit.capability import resolve

        command: click.Command = resolve(self.entries[cmd_name].reference or f"{self.package}.{cmd_name}:command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name. Raises click.UsageError with close names."""
        name = args[0]
        if name not in self.entries and not name.startswith("-"):
            word = _SYNONYMS.get(name, "") if ctx.parent is None else ""
            hint = f"That is `remit {word}`." if word else did_you_mean(name, self.entries, most=2)
            raise click.UsageError(f"There is no command {name!r}. {hint}".rstrip(), ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Return what there is to do first, then how to say it."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The commands under their sections, without importing any."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        width = max(map(len, self.entries))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Commands and options that begin so."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.entries if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.entries[name].help) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)


def entries_below(group: str, parts: Iterable[Capability]) -> dict[str, LazyCommand]:
    """The commands that parts add to a group of the core, such as `policy backtest`."""
    return {
        command.word.removeprefix(f"{group} "): LazyCommand(command.section, command.about, command.command)
        for part in parts
        for command in part.commands
        if command.word.startswith(f"{group} ")
    }


def show_help(context: click.Context) -> None:
    """Print a group's help where it was called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
