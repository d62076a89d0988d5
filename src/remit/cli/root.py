"""The root of the command line: global options, the list of commands, and the one place where errors end up."""

from __future__ import annotations

import errno
import gc
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Never

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.errors import report
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.output import Color
from remit.version import __version__
from remit.wiring.capabilities import FIRST_PARTY

_DESCRIPTORS: Final = {"stdout": 1, "stderr": 2}


def prepare() -> None:
    """Give the process both streams, and let characters that their encoding lacks become question marks."""
    for name in _DESCRIPTORS:
        stream = getattr(sys, name)
        if stream is None:  # it was closed before the process began
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - it lasts as long as we do
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def leave(status: int) -> Never:
    """End the process. Threads that tools left behind (Python cannot stop one) are not waited for.

    Python does not collect what is loaded before it ends: that takes a third of a second, for which others would wait.
    """
    lost = [name for name in _DESCRIPTORS if not _flushed(name)]
    if lost and status == exit_codes.OK:
        status = exit_codes.ERROR
    if threading.active_count() > 1:
        os._exit(status)
    gc.freeze()
    sys.exit(status)


def _flushed(name: str) -> bool:
    """Write what a stream still holds; whether nothing was lost. That its reader went away loses nothing."""
    try:
        getattr(sys, name).flush()
    except (OSError, ValueError) as error:
        # Python's own flush at the end would complain once more.
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, _DESCRIPTORS[name])
        os.close(sink)
        return isinstance(error, OSError) and error.errno == errno.EPIPE
    return True


_HERE: Final = "remit.cli.commands"
_CORE: Final[dict[str, LazyCommand]] = {
    "init": LazyCommand("Run", "Start a project: settings, a working example and a test."),
    "run": LazyCommand("Run", "Run a recipe or a plan, and show its result."),
    "resume": LazyCommand("Run", "Continue jobs that stopped or are waiting.", f"{_HERE}.run:resume"),
    "retry": LazyCommand(
        "Run", "Run a failed or cancelled job again, keeping its finished steps.", f"{_HERE}.run:retry"
    ),
    "jobs": LazyCommand("Look", "List jobs, newest first."),
    "show": LazyCommand("Look", "Show a job (input, steps, result), or one of its steps."),
    "sessions": LazyCommand("Look", "List sessions: calls that no job made.", f"{_HERE}.jobs:sessions"),
    "usage": LazyCommand("Look", "Show what models used: requests, tokens, dollars.", f"{_HERE}.jobs:usage"),
    "budgets": LazyCommand("Look", "Show how full budgets, pots and limits are.", f"{_HERE}.jobs:budgets"),
    "trace": LazyCommand("Look", "Show what a job did: times, versions, approvals."),
    "replay": LazyCommand("Look", "Run a job's code against its record, and report differences."),
    "artifacts": LazyCommand("Look", "List, print or save the files that a job produced.", f"{_HERE}.show:artifacts"),
    "verify": LazyCommand("Look", "Check that no recorded event was changed."),
    "recipes": LazyCommand("Look", "List the recipes and their parameters, or show one.", f"{_HERE}.tools:recipes"),
    "tools": LazyCommand("Look", "List the tools, or show one."),
    "confirm": LazyCommand("Decide", "List pending approvals and questions, or answer one or many."),
    "decide": LazyCommand("Decide", "Resolve a step whose outcome is unknown."),
    "signal": LazyCommand("Decide", "Send a signal to a job.", f"{_HERE}.decide:signal"),
    "cancel": LazyCommand("Decide", "Stop a job for good.", f"{_HERE}.decide:cancel"),
    "policy": LazyCommand("Decide", "Check and explain the rules: who may call which tool, and who must approve."),
    "mcp": LazyCommand("Operate", "Use MCP servers, and serve tools to MCP clients."),
    "token": LazyCommand("Operate", "Manage the tokens of clients that connect over HTTP."),
    "serve": LazyCommand(
        "Operate", "Serve the HTTP API, the console and MCP, and run jobs and TOOL tickets.", f"{_HERE}.worker:serve"
    ),
    "worker": LazyCommand("Operate", "Run due jobs until stopped."),
    "journal": LazyCommand("Operate", "Move or back up the journal, prune records, or seal it."),
    "workers": LazyCommand(
        "Operate", "List the processes that run jobs, and the code they run.", f"{_HERE}.worker:workers"
    ),
    "api": LazyCommand("Operate", "List the operations of the HTTP API, or call one and print its answer as JSON."),
    "config": LazyCommand("Operate", "Show every setting and where it came from."),
    "trust": LazyCommand("Operate", "Let this folder's settings run code and allow calls.", f"{_HERE}.config:trust"),
    "parts": LazyCommand(
        "Operate", "List the parts of Remit: where each is from, and what it brings.", f"{_HERE}.doctor:parts"
    ),
    "doctor": LazyCommand("Operate", "Check that Remit has everything it needs."),
    "completion": LazyCommand("Operate", "Print a shell completion script.", f"{_HERE}.doctor:completion"),
}
"""The core's commands; the module that a reference names in remit.cli.commands holds each, or the one of its name."""
_SECTIONS: Final = ("Run", "Look", "Decide", "Work", "Operate")
_OF_PARTS: Final = {
    command.word: LazyCommand(command.section, command.about, command.command)
    for part in FIRST_PARTY
    for command in part.commands
    if " " not in command.word
}
COMMANDS: Final = dict(sorted((_CORE | _OF_PARTS).items(), key=lambda row: _SECTIONS.index(row[1].section)))
"""Every command: the core's and those of the parts that ship."""

COMPLETE: Final = "_REMIT_COMPLETE"
"""The environment variable through which a shell asks what it can complete."""
_EXAMPLES: Final = """\
Examples:

\b
  remit init shop                     start a project
  remit run                           list what you can run
  remit run research_report --query "how are tasks cancelled" --folder ~/notes
  remit run plan.yaml --repo octo/site
  remit jobs --state waiting          list jobs that wait
  remit confirm                       list what waits for your answer
  remit resume last                   continue after an answer, Ctrl-C or a crash
  remit trace last                    show what happened, step by step
"""


def _epilog() -> str:
    codes = "\n".join(f"  {status:>3}  {meaning}" for status, meaning in exit_codes.MEANINGS.items())
    return f"{_EXAMPLES}\nExit status:\n\n\b\n{codes}"


class Root(LazyGroup):
    """The root group: its own commands, and those of the parts that a trusted folder names.

    Its epilogue stands at the margin.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        command = None if word in self.entries or word.startswith("-") else _command_of_part(ctx, word)
        return super().resolve_command(ctx, args) if command is None else (word, command, args[1:])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Examples and exit codes."""
        formatter.write_paragraph()
        formatter.write_text(self.epilog or "")


def _command_of_part(context: click.Context, word: str) -> click.Command | None:
    """A command that a part brings. Parts of others are imported where the folder that names them is trusted."""
    state = context.ensure_object(CommandState)
    state.config, state.trust = context.params["config"], context.params["trust"]
    if context.params["server"] or not state.settings().app.capabilities:
        return None
    from remit.wiring.parts import command_of, parts_of

    return command_of(parts_of(state.trusted()), word)


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"remit {__version__}")
        context.exit()


@click.group(
    cls=Root,
    package=_HERE,
    entries=COMMANDS,
    epilog=_epilog(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--journal", metavar="URL", help="The journal: a path, a URL or :memory:. Default: .remit/journal.db here."
)
@click.option(
    "--server",
    metavar="URL",
    envvar="REMIT_SERVER",
    help="Run the command on this server, with the token in REMIT_TOKEN.",
)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The settings file. Default: the nearest remit.toml.",
)
@click.option(
    "--module",
    "modules",
    metavar="FILE",
    multiple=True,
    help="Also load the tools and recipes of this Python file; repeatable.",
)
@click.option("--as", "principal", metavar="NAME", help="Your name in the record. Default: your user name.")
@click.option("--trust", is_flag=True, help="Trust this folder's settings for this command.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), help="When to use colour. Default: auto, on a terminal."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice for more. Errors show where they occurred.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def root(
    context: click.Context,
    journal: str | None,
    server: str | None,
    config: Path | None,
    modules: tuple[str, ...],
    principal: str | None,
    trust: bool,
    color: Color | None,
    quiet: bool,
    verbose: int,
) -> None:
    """Run AI agents: every tool call is checked, recorded and, if need be, approved by a person.

    A job runs a recipe (a Python function) or a plan (a YAML file). Remit writes everything the job does to a journal,
    so you can stop it, resume it, explain it and replay it.
    """
    state = context.ensure_object(CommandState)
    state.journal, state.config, state.principal = journal, config, principal
    state.trust = trust
    state.modules = list(modules)
    if journal is not None and server:
        if context.get_parameter_source("server") is not click.core.ParameterSource.ENVIRONMENT:
            raise click.UsageError("--journal and --server exclude each other.", context)
        server = None
    state.server = server or ""
    state.quiet, state.verbose = quiet, verbose
    state.set_color(color)
    show_help(context)


def run(args: Sequence[str] | None = None) -> int:
    """Run a command line, by default this process's; the exit status. Never raises for what a command can cause."""
    state = CommandState()
    words = list(sys.argv[1:] if args is None else args)
    # Before the options are understood, an error must already know in which form it is wanted.
    options = words[: words.index("--")] if "--" in words else words
    state.as_json = any(word in {"--json", "--jq"} or word.startswith("--jq=") for word in options)
    prepare()
    completing = os.environ.get(COMPLETE)
    if completing:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "remit", COMPLETE, completing)
    try:
        # Not root.main(): it answers a closed pipe and Ctrl-C in its own way.
        with root.make_context("remit", words, obj=state) as context:
            status: Any = root.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:
        return exit_codes.OK  # the reader of the output has seen enough
    except BaseException as error:  # noqa: BLE001 - the one place where every error ends up
        return report(error, state.output, as_json=state.as_json, verbose=bool(state.verbose))
    return status if isinstance(status, int) else exit_codes.OK
